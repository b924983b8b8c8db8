/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Load sessions: the messages of a save session, whose types are kept from one message to the next. */

#include "core/archive/run_restorer.h"
#include "core/base/call_memory.h"

struct quern_load_session {
    quern_world *world;
    quern_load_def def;
    uint32_t extra_count;
    quern__archive_position position; /* the messages that were read */
    quern__archived_types types;      /* of all messages so far */
    quern__call_memory memory;        /* memory of one message */
};

static quern_result create(quern_world *world, const quern_load_def *def, quern_load_session **out_session)
{
    static const quern_load_def zero;
    if (def == NULL) def = &zero;
    uint32_t extra_count;
    quern_result result = quern__world_check_unlocked(world, "quern_load_session_create");
    if (result == QUERN_OK) result = quern__load_check_def(world, def, &extra_count);
    if (result == QUERN_OK &&
        (def->schedules[0] != NULL || def->entities != NULL || def->entity_capacity > 0))
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "schedules, entities and entity_capacity have no meaning for a session: leave them zero, "
            "and pass entities to quern_load_session_read");
    if (result != QUERN_OK) return result;
    quern_load_session *session =
        quern__allocate(&world->storage.allocator, sizeof *session, _Alignof(quern_load_session));
    if (session != NULL) {
        *session = (quern_load_session){.world = world, .def = *def, .extra_count = extra_count};
        if (!quern__call_memory_init(&session->memory, &world->storage.allocator)) {
            quern__release(&world->storage.allocator, session, sizeof *session,
                           _Alignof(quern_load_session));
            session = NULL;
        }
    }
    if (session == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a session; nothing has changed");
    *out_session = session;
    return QUERN_OK;
}

quern_result quern_load_session_create(quern_world *world, const quern_load_def *def,
                                       quern_load_session **out_session)
{
    static const char function[] = "quern_load_session_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (out_session == NULL) return quern__fail_null(function, "out_session");
    return quern__in_call(create(world, def, out_session), function);
}

void quern_load_session_destroy(quern_load_session *session)
{
    if (session == NULL) return;
    const quern_allocator allocator = session->world->storage.allocator;
    quern__archived_types_release(&session->types, 0, &allocator);
    quern__array_release(&allocator, &session->types);
    quern__call_memory_release(&session->memory);
    quern__release(&allocator, session, sizeof *session, _Alignof(quern_load_session));
}

static quern_result read_message(quern_load_session *session, quern_source source,
                                 quern_load_report *report)
{
    quern_world *world = session->world;
    const uint32_t known_count = session->types.count;
    quern_result result = quern__world_check_unlocked(world, "quern_load_session_read");
    if (result != QUERN_OK) return result;
    quern__image image = {.def = &session->def,
                          .report = report,
                          .world = world,
                          .allocator = quern__call_memory_allocator(&session->memory),
                          .keeps_handles = world->storage.entities.slot_count == 0,
                          .session = &session->position,
                          .extra_count = session->extra_count,
                          .types = session->types};
    result = quern__image_load(&image, source, NULL);
    /* the types of a message that failed are read again, if the program passes it again */
    if (result != QUERN_OK)
        quern__archived_types_release(&image.types, known_count, &world->storage.allocator);
    session->types = image.types;
    return result;
}

quern_result quern_load_session_read(quern_load_session *session, quern_source source,
                                     quern_entity *entities, uint32_t capacity,
                                     quern_load_report *out_report)
{
    static const char function[] = "quern_load_session_read";
    quern_load_report ignored, *report = out_report != NULL ? out_report : &ignored;
    *report = (quern_load_report){0};
    if (session == NULL) return quern__fail_null(function, "session");
    if (entities == NULL && capacity > 0) return quern__fail_null(function, "entities");
    const quern_result result = quern__check_source(source, function);
    if (result != QUERN_OK) return result;
    if (!quern__world_enter(session->world, function)) return QUERN_ERROR_WORLD_LOCKED;
    session->def.entities = entities;
    session->def.entity_capacity = capacity;
    return quern__world_leave(session->world,
                              quern__in_call(read_message(session, source, report), function));
}
