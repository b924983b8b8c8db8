/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Save sessions: many lists of entities, of which only the first archives have the types. */

#include "core/archive/select.h"
#include "core/base/call_memory.h"

struct quern_save_session {
    quern__saving saving;
    quern_save_def def;
    quern__call_memory memory; /* memory of one message */
};

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a session; nothing has changed");
}

static quern_result create(quern_world *world, const quern_save_def *def, quern_save_session **out_session)
{
    quern_result result = quern__world_check_unlocked(world, "quern_save_session_create");
    if (result == QUERN_OK) result = quern__archive_check_def(def);
    if (result != QUERN_OK) return result;
    const quern_allocator *allocator = &world->storage.allocator;
    quern_save_session *session = quern__allocate(allocator, sizeof *session, _Alignof(quern_save_session));
    if (session == NULL) return fail_memory();
    session->def = def != NULL ? *def : (quern_save_def){0};
    result = quern__saving_init(&session->saving, world, &session->def);
    session->saving.is_session = true;
    if (result == QUERN_OK && !quern__call_memory_init(&session->memory, allocator)) {
        quern__saving_release(&session->saving);
        result = fail_memory();
    }
    session->saving.allocator = quern__call_memory_allocator(&session->memory);
    if (result == QUERN_OK)
        *out_session = session;
    else
        quern__release(allocator, session, sizeof *session, _Alignof(quern_save_session));
    return result;
}

quern_result quern_save_session_create(quern_world *world, const quern_save_def *def,
                                       quern_save_session **out_session)
{
    static const char function[] = "quern_save_session_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (out_session == NULL) return quern__fail_null(function, "out_session");
    return quern__in_call(create(world, def, out_session), function);
}

void quern_save_session_destroy(quern_save_session *session)
{
    if (session == NULL) return;
    const quern_allocator allocator = session->saving.world->storage.allocator;
    quern__saving_release(&session->saving);
    quern__call_memory_release(&session->memory);
    quern__release(&allocator, session, sizeof *session, _Alignof(quern_save_session));
}

static quern_result write_list(quern_save_session *session, const quern_archive *archive, quern_sink sink)
{
    quern_world *world = session->saving.world;
    quern_result result = quern__world_check_unlocked(world, "quern_save_session_write");
    if (result == QUERN_OK && archive->world != world)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the list belongs to another world than the session: create a session for its world");
    if (result != QUERN_OK) return result;
    quern__world_set_locked(world, true); /* the sink may call a function of the program */
    result = quern__archive_write(archive, &session->saving, sink);
    quern__world_set_locked(world, false);
    return result;
}

quern_result quern_save_session_write(quern_save_session *session, const quern_archive *archive,
                                      quern_sink sink)
{
    static const char function[] = "quern_save_session_write";
    if (session == NULL) return quern__fail_null(function, "session");
    if (archive == NULL) return quern__fail_null(function, "archive");
    const quern_result result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(write_list(session, archive, sink), function);
}
