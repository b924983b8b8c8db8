/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

quern_world *setup_world(void)
{
    quern_world *world = NULL;
    quern_result result = quern_world_create(NULL, &world);
    cr_assert_eq(result, QUERN_OK, "quern_world_create: %s", quern_error_message());
    cr_assert_not_null(world);
    return world;
}

quern_component setup_component(quern_world *world, const char *name, uint32_t size_bytes,
                                uint32_t alignment_bytes)
{
    quern_component_def def = {.name = name, .size_bytes = size_bytes, .alignment_bytes = alignment_bytes};
    quern_component component = {0};
    quern_result result = quern_component_register(world, &def, &component);
    cr_assert_eq(result, QUERN_OK, "registering '%s': %s", name, quern_error_message());
    return component;
}

quern_component setup_tag(quern_world *world, const char *name)
{
    return setup_component(world, name, 0, 1);
}

quern_entity setup_entity(quern_world *world)
{
    return setup_entity_with(world, NULL, 0);
}

quern_entity setup_entity_with(quern_world *world, const quern_component *components, uint32_t count)
{
    quern_entity entity = quern_entity_null();
    quern_result result = count == 0 ? quern_entity_create(world, &entity)
                                     : quern_entity_create_with(world, components, NULL, count, &entity);
    cr_assert_eq(result, QUERN_OK, "creating an entity: %s", quern_error_message());
    return entity;
}

quern_world *make_world_of(const quern_world_def *def)
{
    quern_world *made;
    must(quern_world_create(def, &made));
    return made;
}

quern_query *make_query_of(quern_world *world, const quern_query_def *def)
{
    quern_query *made;
    must(quern_query_create(world, def, &made));
    return made;
}

quern_component make_component_of(quern_world *world, const quern_component_def *def)
{
    quern_component made;
    must(quern_component_register(world, def, &made));
    return made;
}

quern_relation make_relation_of(quern_world *world, const quern_relation_def *def)
{
    quern_relation made;
    must(quern_relation_register(world, def, &made));
    return made;
}

quern_event make_event_of(quern_world *world, const quern_event_def *def)
{
    quern_event made;
    must(quern_event_register(world, def, &made));
    return made;
}

quern_resource make_resource_of(quern_world *world, const quern_resource_def *def)
{
    quern_resource made;
    must(quern_resource_register(world, def, &made));
    return made;
}

quern_entity record_entity(quern_commands *commands)
{
    quern_entity entity;
    (void)quern_commands_create(commands, &entity);
    return entity;
}

quern_entity record_entity_with(quern_commands *commands, const quern_component *components,
                                const void *const *values, uint32_t count)
{
    quern_entity entity;
    (void)quern_commands_create_with(commands, components, values, count, &entity);
    return entity;
}

quern_query *setup_query(quern_world *world, const quern_term *terms, uint32_t term_count)
{
    quern_query_def def = {0};
    for (uint32_t i = 0; i < term_count; i++)
        def.terms[i] = terms[i];
    quern_query *query = NULL;
    quern_result result = quern_query_create(world, &def, &query);
    cr_assert_eq(result, QUERN_OK, "creating a query: %s", quern_error_message());
    return query;
}

quern_world_stats stats_of_world(const quern_world *world)
{
    quern_world_stats told;
    cr_assert_eq(quern_world_get_stats(world, &told), QUERN_OK, "%s", quern_error_message());
    return told;
}

quern_frame_stats stats_of_frame(const quern_schedule *schedule)
{
    quern_frame_stats told;
    cr_assert_eq(quern_schedule_get_frame_stats(schedule, &told), QUERN_OK, "%s", quern_error_message());
    return told;
}

quern_frame_profile profile_of_frame(const quern_schedule *schedule)
{
    quern_frame_profile told;
    cr_assert_eq(quern_schedule_get_frame_profile(schedule, &told), QUERN_OK, "%s", quern_error_message());
    return told;
}

quern_trace_stats stats_of_trace(const quern_trace *trace)
{
    quern_trace_stats told;
    cr_assert_eq(quern_trace_get_stats(trace, &told), QUERN_OK, "%s", quern_error_message());
    return told;
}

void assert_valid(const quern_world *world)
{
    quern_result result = quern_world_validate(world);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
}

void fail_at_end(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: at the end of a test: %s; last message: %s\n", file, line, condition,
            quern_error_message());
    abort();
}

/* ----------------------------------------------------------------------------------- wrong handles */

quern_entity entity_of_other_world(quern_entity entity)
{
    uint64_t tag = quern_entity_world_tag(entity) % 255 + 1;
    return (quern_entity){(entity.bits & 0x00FFFFFFFFFFFFFFu) | tag << 56};
}

quern_entity entity_provisional(uint32_t index)
{
    return (quern_entity){(uint64_t)1 << 32 | index};
}

quern_component component_unregistered(quern_component registered)
{
    return (quern_component){(registered.bits & 0xFF000000u) | QUERN_MAX_COMPONENTS};
}

quern_component component_of_other_world(quern_component component)
{
    uint32_t tag = (component.bits >> 24) % 255 + 1;
    return (quern_component){(component.bits & 0x00FFFFFFu) | tag << 24};
}

/* ---------------------------------------------------------------------------------------- refusals */

/* Also hashes a world that a test has locked. */
static uint64_t hash_unlocked(const quern_world *world)
{
    quern_world *open = (quern_world *)(uintptr_t)world;
    const bool was_locked = open->locked;
    open->locked = false;
    const uint64_t hash = quern_world_hash(world);
    open->locked = was_locked;
    return hash;
}

static quern_result validate_unlocked(const quern_world *world)
{
    quern_world *open = (quern_world *)(uintptr_t)world;
    const bool was_locked = open->locked;
    open->locked = false;
    const quern_result valid = quern_world_validate(world);
    open->locked = was_locked;
    return valid;
}

refusal refusal_begin(const quern_world *world)
{
    refusal before = {.world = world, .hash = world != NULL ? hash_unlocked(world) : 0};
    /* Sets a message that no call under test produces, so that a message of the call is recognised. */
    (void)quern_world_create(NULL, NULL);
    snprintf(before.message, sizeof before.message, "%s", quern_error_message());
    return before;
}

bool refusal_has_message(const refusal *before)
{
    const char *message = quern_error_message();
    return message[0] != '\0' && strcmp(message, before->message) != 0;
}

void refusal_end_value(const refusal *before, bool refused, int line, const char *call)
{
    cr_assert(refused, "line %d: %s was not refused", line, call);
    cr_assert(refusal_has_message(before), "line %d: %s set no message", line, call);
    if (before->world == NULL) return;
    cr_assert_eq(hash_unlocked(before->world), before->hash, "line %d: %s changed the world", line, call);
    quern_result valid = validate_unlocked(before->world);
    cr_assert_eq(valid, QUERN_OK, "line %d: after %s: %s", line, call, quern_error_message());
}

void refusal_end_code(const refusal *before, quern_result actual, quern_result expected, int line,
                      const char *call)
{
    cr_assert_eq(actual, expected, "line %d: %s gave %s (%s), not %s", line, call,
                 quern_result_string(actual), quern_error_message(), quern_result_string(expected));
    refusal_end_value(before, actual != QUERN_OK, line, call);
}

bool is_scratch(const void *memory, size_t size_bytes)
{
    unsigned char *bytes = (unsigned char *)(uintptr_t)memory;
    bool is_zero = bytes != NULL;
    for (size_t i = 0; i < size_bytes && is_zero; i++)
        is_zero = bytes[i] == 0;
    if (bytes != NULL) memset(bytes, 0xA5, size_bytes);
    return is_zero;
}

/* ----------------------------------------------------------------------------------------- reports */

static void capture_log(void *user_data, quern_log_level level, const char *message)
{
    captured_reports *reports = user_data;
    reports->log_count++;
    snprintf(reports->last, sizeof reports->last, "%s", message);
}

static void capture_assert(void *user_data, const char *message)
{
    captured_reports *reports = user_data;
    reports->assert_count++;
    snprintf(reports->last, sizeof reports->last, "%s", message);
}

void capture_reports(captured_reports *reports)
{
    *reports = (captured_reports){0};
    quern_log_set_handler(capture_log, reports);
    quern_assert_set_handler(capture_assert, reports);
}

uint64_t iterate_rows(quern_query *query)
{
    uint64_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        count += it.view.count;
    must(it.result);
    return count;
}

void assert_matches(quern_query *query, const quern_entity *entities, uint32_t count)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < count; i++)
        if (quern_entity_index(entities[i]) >= end) end = quern_entity_index(entities[i]) + 1;
    uint64_t *const seen = calloc(end > 0 ? end : 1, sizeof *seen);
    cr_assert_not_null(seen);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++)
            if (quern_entity_index(it.view.entities[i]) < end)
                seen[quern_entity_index(it.view.entities[i])] = it.view.entities[i].bits;
    cr_assert_eq(it.result, QUERN_OK, "%s", quern_error_message());
    for (uint32_t i = 0; i < count; i++)
        if (quern_entity_is_alive(query->world, entities[i]))
            cr_assert_eq(quern_query_matches(query, entities[i]),
                         seen[quern_entity_index(entities[i])] == entities[i].bits, "entity %u of the list",
                         i);
    free(seen);
}
