/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Calls every public function that has a pointer, a count, an index or a number as an argument with the worst
 * values: NULL, the largest count with a list of one element, NaN. Each call must fail with its error and a message
 * that names the function, and leave the world unchanged. Lists have memory blocks of their own, so that the
 * address sanitizer detects accesses beyond them. */

static quern_world *world;
static quern_component number;
static quern_component *list; /* one element */
static quern_entity entity;
static quern_query *query;
static quern_schedule *schedule;
static quern_system idle;
static quern_jobs *jobs;
static quern_graph *graph;
static quern_trace *trace;
static quern_frame_capture *capture;

static void *one_of(const void *value, size_t bytes)
{
    void *copy = malloc(bytes);
    cr_assert_not_null(copy);
    return memcpy(copy, value, bytes);
}

static void open_all(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    list = one_of(&number, sizeof number);
    entity = setup_entity_with(world, &number, 1);
    query = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    schedule = setup_schedule(world);
    idle = make_system(schedule, "idle", idle_run);
    jobs = setup_jobs(1);
    must(quern_graph_create(NULL, &graph));
    must(quern_trace_create(NULL, &trace));
    must(quern_frame_capture_create(NULL, &capture));
}

static void close_all(void)
{
    quern_frame_capture_destroy(capture);
    quern_trace_destroy(trace);
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_query_destroy(query);
    free(list);
    quern_world_destroy(world);
}

TestSuite(arguments, .init = open_all, .fini = close_all);

/* Checks that the call fails with this error and that the message names the call. */
#define REFUSED(code, function, ...)                                                               \
    do {                                                                                           \
        assert_refused(world, QUERN_ERROR_##code, function(__VA_ARGS__));                          \
        cr_assert_not_null(strstr(quern_error_message(), #function), "%s", quern_error_message()); \
    } while (0)

/* Checks that the call fails with this error and that the message contains these words. */
#define REFUSED_FOR(code, words, ...)                                                          \
    do {                                                                                       \
        assert_refused(world, QUERN_ERROR_##code, __VA_ARGS__);                                \
        cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message()); \
    } while (0)

/* Checks that a call returns NULL, false or 0 and that the message names the call. */
#define REFUSED_VALUE(function, ...)                                                               \
    do {                                                                                           \
        assert_refused_value(world, function(__VA_ARGS__));                                        \
        cr_assert_not_null(strstr(quern_error_message(), #function), "%s", quern_error_message()); \
    } while (0)

/* ------------------------------------------------------------------------------------------- world.h */

Test(arguments, of_worlds)
{
    quern_archetype_stats stats;
    cr_assert_eq(quern_world_create(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    quern_world_destroy(NULL);
    REFUSED_VALUE(quern_world_hash, NULL);
    REFUSED(NULL_ARGUMENT, quern_world_validate, NULL);
    quern_world_stats all;
    REFUSED(NULL_ARGUMENT, quern_world_get_stats, NULL, &all);
    REFUSED(NULL_ARGUMENT, quern_world_get_stats, world, NULL);
    REFUSED(NULL_ARGUMENT, quern_world_trim, NULL);
    REFUSED(NULL_ARGUMENT, quern_world_remove_empty_archetypes, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_world_get_archetype_stats, NULL, 0, &stats);
    REFUSED(NULL_ARGUMENT, quern_world_get_archetype_stats, world, 0, NULL);
    REFUSED(INVALID_ARGUMENT, quern_world_get_archetype_stats, world, UINT32_MAX, &stats);
    REFUSED_VALUE(quern_world_list_archetype_components, NULL, 0, list, 1);
    REFUSED_VALUE(quern_world_list_archetype_components, world, 1, NULL, UINT32_MAX);
    REFUSED_VALUE(quern_world_list_archetype_components, world, UINT32_MAX, list, 1);
    cr_assert_eq(quern_world_list_archetype_components(world, 1, list, UINT32_MAX), 1u,
                 "a capacity is no promise");
    cr_assert_eq(quern_world_list_archetype_components(world, 1, NULL, 0), 1u);
}

Test(arguments, of_calls_on_one_entity)
{
    const uint32_t too_many[] = {QUERN_MAX_ENTITY_COMPONENTS + 1, INT32_MAX, UINT32_MAX};
    quern_entity out;
    uint64_t value = 1;
    REFUSED(NULL_ARGUMENT, quern_entity_create, NULL, &out);
    REFUSED(NULL_ARGUMENT, quern_entity_create, world, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_create_with, NULL, list, NULL, 1, &out);
    REFUSED(NULL_ARGUMENT, quern_entity_create_with, world, NULL, NULL, 1, &out);
    REFUSED(NULL_ARGUMENT, quern_entity_create_with, world, NULL, NULL, UINT32_MAX, &out);
    for (uint32_t i = 0; i < COUNT_OF(too_many); i++)
        REFUSED_FOR(TOO_MANY_COMPONENTS, "QUERN_MAX_ENTITY_COMPONENTS",
                    quern_entity_create_with(world, list, NULL, too_many[i], &out));
    REFUSED(NULL_ARGUMENT, quern_entity_destroy, NULL, entity);
    REFUSED(NULL_ARGUMENT, quern_entity_add, NULL, entity, number, &value);
    REFUSED(NULL_ARGUMENT, quern_entity_remove, NULL, entity, number);
    REFUSED(NULL_ARGUMENT, quern_entity_set, NULL, entity, number, &value);
    REFUSED(NULL_ARGUMENT, quern_entity_set, world, entity, number, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_mark_changed, NULL, entity, number);
    REFUSED_VALUE(quern_entity_get, NULL, entity, number);
    REFUSED_VALUE(quern_entity_has, NULL, entity, number);
    REFUSED_VALUE(quern_entity_use_count, NULL, entity);
    REFUSED_VALUE(quern_entity_seed, NULL, entity);
    cr_assert_not(quern_entity_is_alive(NULL, entity));
}

/* Bit patterns that are no handles of living entities must not cause accesses beyond the records. */
Test(arguments, of_handles)
{
    static const uint64_t wrong[] = {
        UINT64_MAX,
        UINT32_MAX,
        1ull << 63,
        0x01FFFFFFFFFFFFFFull,
        0x0100000100000001ull,
        0xFF00000100000000ull,
    };
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        const quern_entity handle = {wrong[i]};
        cr_assert_not(quern_entity_is_alive(world, handle));
        assert_refused_value(world, quern_entity_destroy(world, handle) == QUERN_OK);
        assert_refused_value(world, quern_entity_get(world, handle, number));
        assert_refused_value(world, quern_entity_has(world, handle, number));
        assert_refused_value(world, quern_entity_destroy_many(world, &handle, 1) == QUERN_OK);
        const quern_component component = {(uint32_t)wrong[i]};
        REFUSED_FOR(UNKNOWN_COMPONENT, "component", quern_entity_add(world, entity, component, NULL));
        assert_refused_value(world, quern_entity_get(world, entity, component));
        assert_refused_value(world, quern_component_name(world, component));
        const quern_resource resource = {(uint32_t)wrong[i]};
        assert_refused_value(world, quern_resource_get(world, resource));
    }
}

/* -------------------------------------------------------------------------------------------- bulk.h */

static void fill_nothing(quern_context *context, const quern_view *view) {}

Test(arguments, of_calls_on_many_entities)
{
    const uint32_t too_many[] = {QUERN_MAX_ENTITY_COMPONENTS + 1, INT32_MAX, UINT32_MAX};
    REFUSED(NULL_ARGUMENT, quern_entity_create_many, NULL, list, NULL, 1, 3, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_create_many, world, NULL, NULL, 1, 3, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_create_filled, NULL, list, 1, 3, fill_nothing, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_create_filled, world, NULL, 1, 3, fill_nothing, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_create_filled, world, list, 1, 3, NULL, NULL, NULL);
    for (uint32_t i = 0; i < COUNT_OF(too_many); i++) {
        REFUSED_FOR(TOO_MANY_COMPONENTS, "QUERN_MAX_ENTITY_COMPONENTS",
                    quern_entity_create_many(world, list, NULL, too_many[i], 3, NULL));
        REFUSED(INVALID_ARGUMENT, quern_entity_create_filled, world, list, too_many[i], 3, fill_nothing,
                NULL, NULL);
    }
    REFUSED_FOR(LIMIT, "QUERN_MAX_ENTITIES",
                quern_entity_create_many(world, list, NULL, 1, UINT32_MAX, NULL));
    REFUSED_FOR(LIMIT, "QUERN_MAX_ENTITIES",
                quern_entity_create_filled(world, list, 1, UINT32_MAX, fill_nothing, NULL, NULL));
    REFUSED(NULL_ARGUMENT, quern_entity_destroy_many, NULL, &entity, 1);
    REFUSED(NULL_ARGUMENT, quern_entity_destroy_many, world, NULL, UINT32_MAX);
    REFUSED(NULL_ARGUMENT, quern_entity_destroy_matching, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_add_matching, NULL, number, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_entity_remove_matching, NULL, number, NULL);
}

/* ------------------------------------------------------------------------------- component.h, query.h */

/* A name one byte longer than the limit. */
static const char long_name[] = "123456789.123456789.123456789.123456789.123456789.123456789.1234";

static quern_result register_field(quern_field field)
{
    quern_component_def def = {.name = "described", .size_bytes = 8, .fields = {field}};
    quern_component component;
    return quern_component_register(world, &def, &component);
}

Test(arguments, of_components)
{
    quern_component_def def = {0};
    quern_component out;
    REFUSED(NULL_ARGUMENT, quern_component_register, NULL, &def, &out);
    REFUSED(NULL_ARGUMENT, quern_component_register, world, NULL, &out);
    REFUSED(NULL_ARGUMENT, quern_component_register, world, &def, NULL);
    REFUSED_FOR(INVALID_ARGUMENT, "name", quern_component_register(world, &def, &out));
    def.name = long_name;
    REFUSED_FOR(INVALID_ARGUMENT, "QUERN_MAX_NAME_BYTES", quern_component_register(world, &def, &out));
    def.size_bytes = UINT32_MAX;
    REFUSED_FOR(COMPONENT_TOO_LARGE, "QUERN_MAX_COMPONENT_BYTES",
                quern_component_register(world, &def, &out));
    def.name = NULL;
    REFUSED_FOR(INVALID_ARGUMENT, "name", quern_component_register(world, &def, &out));
    static const uint32_t alignments[] = {3, 128, 1u << 31, UINT32_MAX};
    def.name = "new";
    def.size_bytes = 8;
    for (uint32_t i = 0; i < COUNT_OF(alignments); i++) {
        def.alignment_bytes = alignments[i];
        REFUSED_FOR(BAD_ALIGNMENT, "'new'", quern_component_register(world, &def, &out));
    }
    def.alignment_bytes = 8;
    def.type_name = long_name;
    REFUSED_FOR(INVALID_ARGUMENT, "QUERN_MAX_NAME_BYTES", quern_component_register(world, &def, &out));
    assert_refused_value(world, quern_component_find(NULL, "number").bits);
    assert_refused_value(world, quern_component_find(world, NULL).bits);
    REFUSED_VALUE(quern_component_name, NULL, number);
}

Test(arguments, of_fields)
{
    const quern_field good = {"field", QUERN_FIELD_U64, 0, .count = 1};
    quern_field bad[] = {good, good, good, good, good, good, good};
    bad[0].name = NULL;
    bad[1].name = long_name;
    bad[2].type = (quern_field_type)-1;
    bad[3].type = (quern_field_type)(QUERN_FIELD_LIST + 1);
    bad[4].offset_bytes = UINT32_MAX;
    bad[5].count = UINT32_MAX;
    bad[6] = (quern_field){"field", QUERN_FIELD_U64, UINT32_MAX, .count = UINT32_MAX};
    for (uint32_t i = 0; i < COUNT_OF(bad); i++)
        REFUSED_FOR(INVALID_ARGUMENT, "field", register_field(bad[i]));
}

Test(arguments, of_resources)
{
    quern_resource_def def = {0};
    quern_resource out;
    REFUSED(NULL_ARGUMENT, quern_resource_register, NULL, &def, &out);
    REFUSED(NULL_ARGUMENT, quern_resource_register, world, NULL, &out);
    REFUSED(NULL_ARGUMENT, quern_resource_register, world, &def, NULL);
    REFUSED_FOR(INVALID_ARGUMENT, "name", quern_resource_register(world, &def, &out));
    def.name = "new";
    REFUSED_FOR(INVALID_ARGUMENT, "'new'", quern_resource_register(world, &def, &out));
    def.size_bytes = 8;
    def.alignment_bytes = UINT32_MAX;
    REFUSED_FOR(BAD_ALIGNMENT, "'new'", quern_resource_register(world, &def, &out));
    def.alignment_bytes = 8;
    def.fields[1] = (quern_field){"field", QUERN_FIELD_U64, 0, .count = 1};
    REFUSED_FOR(INVALID_ARGUMENT, "field 1", quern_resource_register(world, &def, &out));
    assert_refused_value(world, quern_resource_find(NULL, "new").bits);
    assert_refused_value(world, quern_resource_find(world, NULL).bits);
    REFUSED_VALUE(quern_resource_get, NULL, (quern_resource){1});
}

static void view_nothing(quern_context *context, const quern_view *view) {}

static quern_result query_of(quern_term term)
{
    quern_query *out = NULL;
    return quern_query_create(world, &(quern_query_def){.terms = {term}}, &out);
}

Test(arguments, of_queries)
{
    quern_query_def def = {0};
    quern_query *out;
    REFUSED(NULL_ARGUMENT, quern_query_create, NULL, &def, &out);
    REFUSED(NULL_ARGUMENT, quern_query_create, world, NULL, &out);
    REFUSED(NULL_ARGUMENT, quern_query_create, world, &def, NULL);
    REFUSED(INVALID_ARGUMENT, quern_query_create, world, &def, &out);
    def.terms[1] = quern_term_read(number);
    REFUSED_FOR(INVALID_ARGUMENT, "term 1", quern_query_create(world, &def, &out));
    REFUSED_FOR(INVALID_ARGUMENT, "match",
                query_of(quern_term_make(number, (quern_match)-1, QUERN_ACCESS_READ)));
    REFUSED_FOR(INVALID_ARGUMENT, "access",
                query_of(quern_term_make(number, QUERN_MATCH_ALL, (quern_access)-1)));
    REFUSED_VALUE(quern_query_count, NULL);
    REFUSED_VALUE(quern_query_view_count, NULL);
    REFUSED(NULL_ARGUMENT, quern_query_parallel_for, NULL, NULL, view_nothing, NULL);
    REFUSED(NULL_ARGUMENT, quern_query_parallel_for, query, NULL, NULL, NULL);
    quern_query_iterator none = quern_query_iterate(NULL);
    cr_assert_eq(none.result, QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_not(quern_query_next(&none));
    REFUSED_VALUE(quern_query_next, NULL);
    quern_query_iterator_end(&none);
    quern_query_iterator_end(NULL);
    quern_query_destroy(NULL);
}

/* ------------------------------------------------------------------------------------------ commands.h */

static void record_wrongly(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t value = 1;
    const quern_entity wild = {UINT64_MAX};
    const quern_component strange = {UINT32_MAX};
    assert_refused_value(NULL, record_entity(NULL).bits);
    assert_refused_value(NULL, record_entity_with(NULL, list, NULL, 1).bits);
    assert_refused_value(NULL, record_entity_with(commands, NULL, NULL, UINT32_MAX).bits);
    assert_refused_value(NULL, record_entity_with(commands, list, NULL, UINT32_MAX).bits);
    assert_refused_value(NULL, record_entity_with(commands, &strange, NULL, 1).bits);
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_many(NULL, list, NULL, 1, 1, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_many(commands, NULL, NULL, 1, 1, NULL));
    must_refuse(TOO_MANY_COMPONENTS, NULL,
                quern_commands_create_many(commands, list, NULL, UINT32_MAX, 1, NULL));
    must_refuse(LIMIT, NULL, quern_commands_create_many(commands, list, NULL, 1, UINT32_MAX, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_destroy(NULL, entity));
    assert_refused_value(NULL, quern_commands_destroy(commands, wild) == QUERN_OK);
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_add(NULL, entity, number, &value));
    must_refuse(UNKNOWN_COMPONENT, NULL, quern_commands_add(commands, entity, strange, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_remove(NULL, entity, number));
    must_refuse(UNKNOWN_COMPONENT, NULL, quern_commands_remove(commands, entity, strange));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_set(NULL, entity, number, &value));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_set(commands, entity, number, NULL));
    must_refuse(UNKNOWN_COMPONENT, NULL, quern_commands_set(commands, entity, strange, &value));
}

Test(arguments, of_commands)
{
    uint64_t hash = quern_world_hash(world);
    cr_assert_eq(run_once(world, record_wrongly).command_count, 0u);
    cr_assert_eq(quern_world_hash(world), hash);
    cr_assert_str_eq(quern_drop_reason_string((quern_drop_reason)-1), "unknown reason");
    cr_assert_str_eq(quern_drop_reason_string((quern_drop_reason)INT32_MAX), "unknown reason");
    cr_assert_str_eq(quern_result_string((quern_result)-1), "unknown result");
}

/* ------------------------------------------------------------------------------------------ schedule.h */

Test(arguments, of_schedules)
{
    const quern_schedule_def def = {.phases = {NULL, "update"}};
    quern_schedule *out;
    quern_system_def system = system_def("new", idle_run);
    REFUSED(NULL_ARGUMENT, quern_schedule_create, NULL, NULL, &out);
    REFUSED(NULL_ARGUMENT, quern_schedule_create, world, NULL, NULL);
    REFUSED_FOR(INVALID_ARGUMENT, "phase 1", quern_schedule_create(world, &def, &out));
    quern_schedule_destroy(NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_add_system, NULL, &system, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_add_system, schedule, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_set_system_enabled, NULL, idle, true);
    REFUSED(INVALID_ARGUMENT, quern_schedule_set_system_enabled, schedule, (quern_system){UINT32_MAX},
            true);
    REFUSED(NULL_ARGUMENT, quern_schedule_set_fixed_step, NULL, 0, 1, 1);
    REFUSED(INVALID_ARGUMENT, quern_schedule_set_fixed_step, schedule, UINT32_MAX, 1, 1);
    REFUSED(NULL_ARGUMENT, quern_schedule_compile, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_run, NULL, NULL, 0);
    static const double times[] = {-1, (double)INFINITY, -(double)INFINITY, (double)NAN};
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        REFUSED(INVALID_ARGUMENT, quern_schedule_run, schedule, NULL, times[i]);
        REFUSED(INVALID_ARGUMENT, quern_schedule_run_captured, schedule, NULL, times[i], capture);
        REFUSED(INVALID_ARGUMENT, quern_schedule_set_fixed_step, schedule, 0, times[i], 1);
    }
    assert_refused_value(world, quern_schedule_find_system(NULL, "idle").bits);
    assert_refused_value(world, quern_schedule_find_system(schedule, NULL).bits);
}

Test(arguments, of_lists_in_a_system)
{
    static const char *const expected[] = {"term 3", "lookup 3", "resource 3", "before 3", "after 3"};
    const quern_system_def good = system_def("new", idle_run);
    quern_system_def bad[] = {good, good, good, good, good};
    bad[0].terms[3] = quern_term_read(number);
    bad[1].lookups[3].component = number;
    bad[2].resources[3] = (quern_resource_access){{1}, QUERN_ACCESS_READ};
    bad[3].before[3] = bad[4].after[3] = "idle";
    for (uint32_t i = 0; i < COUNT_OF(bad); i++) {
        REFUSED_FOR(INVALID_ARGUMENT, expected[i], quern_schedule_add_system(schedule, &bad[i], NULL));
        assert_message_has("system 'new'");
        cr_assert_eq(quern_schedule_system_count(schedule), 1u);
    }
}

Test(arguments, of_looking_at_schedules)
{
    quern_dropped_command dropped;
    quern_system_stats stats;
    const quern_system wild = {UINT32_MAX};
    quern_frame_stats frame;
    REFUSED(NULL_ARGUMENT, quern_schedule_get_frame_stats, NULL, &frame);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_frame_stats, schedule, NULL);
    REFUSED_VALUE(quern_schedule_dropped_command_count, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_dropped_command, NULL, 0, &dropped);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_dropped_command, schedule, 0, NULL);
    REFUSED(INVALID_ARGUMENT, quern_schedule_get_dropped_command, schedule, UINT32_MAX, &dropped);
    REFUSED_VALUE(quern_schedule_kept_command_count, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_discard_commands, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_system_stats, NULL, idle, &stats);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_system_stats, schedule, idle, NULL);
    REFUSED(INVALID_ARGUMENT, quern_schedule_get_system_stats, schedule, wild, &stats);
    cr_assert_eq(quern_schedule_system_count(NULL), 0u);
    cr_assert_eq(quern_schedule_system_at(NULL, 0).bits, 0u);
    must(quern_schedule_compile(schedule));
    cr_assert_eq(quern_schedule_system_at(schedule, UINT32_MAX).bits, 0u);
    REFUSED_VALUE(quern_schedule_has_edge, NULL, idle, idle);
    REFUSED_VALUE(quern_schedule_has_edge, schedule, wild, idle);
    REFUSED_VALUE(quern_schedule_are_fused, schedule, idle, wild);
    REFUSED_VALUE(quern_schedule_are_fused, NULL, idle, idle);
    REFUSED(NULL_ARGUMENT, quern_schedule_describe, NULL, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout));
    REFUSED(NULL_ARGUMENT, quern_schedule_describe, schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(NULL));
    REFUSED(INVALID_ARGUMENT, quern_schedule_describe, schedule, (quern_describe_format)-1,
            quern_sink_file(stdout));
}

/* -------------------------------------------------------------------------------- profile.h, hardware.h */

Test(arguments, of_profiles)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    quern_worker_profile profile;
    const quern_hardware_source half = {.user_data = counts};
    REFUSED(NULL_ARGUMENT, quern_schedule_set_profiling, NULL, true);
    REFUSED(NULL_ARGUMENT, quern_schedule_set_counting, NULL, NULL);
    assert_refused_value(world, quern_schedule_set_counting(schedule, &half) == QUERN_OK);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_system_counts, NULL, idle, counts);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_system_counts, schedule, idle, NULL);
    REFUSED(INVALID_ARGUMENT, quern_schedule_get_system_counts, schedule, (quern_system){UINT32_MAX},
            counts);
    cr_assert_eq(quern_schedule_get_system_counts(schedule, idle, counts), QUERN_OK, "before any frame");
    quern_frame_profile frame;
    REFUSED(NULL_ARGUMENT, quern_schedule_get_frame_profile, NULL, &frame);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_frame_profile, schedule, NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_worker_profile, NULL, 0, &profile);
    REFUSED(NULL_ARGUMENT, quern_schedule_get_worker_profile, schedule, 0, NULL);
    REFUSED(INVALID_ARGUMENT, quern_schedule_get_worker_profile, schedule, UINT32_MAX, &profile);
    REFUSED(NULL_ARGUMENT, quern_schedule_write_profile, NULL, quern_sink_file(stdout));
    REFUSED(NULL_ARGUMENT, quern_schedule_write_profile, schedule, quern_sink_text(NULL));
}

Test(arguments, of_hardware_readings)
{
    const quern_hardware_reading *reading = calloc(1, sizeof *reading);
    cr_assert_not_null(reading);
    static const quern_hardware_event wrong[] = {(quern_hardware_event)-1, QUERN_HARDWARE_EVENT_COUNT,
                                                 (quern_hardware_event)INT32_MAX};
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_refused_value(world, !isnan(quern_hardware_difference(reading, reading, wrong[i])));
        cr_assert_str_eq(quern_hardware_event_string(wrong[i]), "unknown event");
    }
    assert_refused_value(world, !isnan(quern_hardware_difference(NULL, reading, QUERN_HARDWARE_CYCLES)));
    assert_refused_value(world, !isnan(quern_hardware_difference(reading, NULL, QUERN_HARDWARE_CYCLES)));
    free((void *)(uintptr_t)reading);
}

Test(arguments, of_forecasts)
{
    quern_forecast_costs costs = {0};
    quern_forecast forecast;
    quern_frame_capture *out;
    quern_allocator half = quern_allocator_default();
    half.allocate = NULL;
    REFUSED(NULL_ARGUMENT, quern_frame_capture_create, NULL, NULL);
    REFUSED(INVALID_ARGUMENT, quern_frame_capture_create, &half, &out);
    quern_frame_capture_destroy(NULL);
    REFUSED(NULL_ARGUMENT, quern_schedule_run_captured, NULL, NULL, 0, capture);
    REFUSED(NULL_ARGUMENT, quern_schedule_run_captured, schedule, NULL, 0, NULL);
    REFUSED(INVALID_ARGUMENT, quern_frame_capture_forecast, capture, &costs, 1, &forecast);
    must(quern_schedule_run_captured(schedule, NULL, 0, capture));
    REFUSED(NULL_ARGUMENT, quern_frame_capture_forecast, NULL, &costs, 1, &forecast);
    REFUSED(NULL_ARGUMENT, quern_frame_capture_forecast, capture, &costs, 1, NULL);
    REFUSED(INVALID_ARGUMENT, quern_frame_capture_forecast, capture, &costs, 0, &forecast);
    REFUSED(INVALID_ARGUMENT, quern_frame_capture_forecast, capture, &costs, UINT32_MAX, &forecast);
    static const double wrong[] = {-1, (double)INFINITY, -(double)INFINITY, (double)NAN};
    for (uint32_t i = 0; i < 3 * COUNT_OF(wrong); i++) {
        costs = (quern_forecast_costs){.steal_ns = 1000, .wake_ns = 50000};
        *(double *[]){&costs.steal_ns, &costs.wake_ns, &costs.bytes_per_ns_limit}[i % 3] = wrong[i / 3];
        must_refuse(INVALID_ARGUMENT, world, quern_frame_capture_forecast(capture, &costs, 1, &forecast));
    }
    REFUSED(NULL_ARGUMENT, quern_forecast_measure_costs, NULL, &costs);
    REFUSED(NULL_ARGUMENT, quern_forecast_measure_costs, jobs, NULL);
    cr_assert_not_null(quern_forecast_bottleneck_string((quern_forecast_bottleneck)-1));
    cr_assert_not_null(quern_forecast_bottleneck_string(QUERN_FORECAST_BOTTLENECK_COUNT));
}

Test(arguments, of_traces)
{
    quern_trace_def def = {0};
    quern_trace *out;
    uint32_t name;
    REFUSED(NULL_ARGUMENT, quern_trace_create, NULL, NULL);
    def.track_count = UINT32_MAX;
    REFUSED(INVALID_ARGUMENT, quern_trace_create, &def, &out);
    def.track_count = 1;
    def.events_per_track = UINT32_MAX;
    REFUSED(INVALID_ARGUMENT, quern_trace_create, &def, &out);
    REFUSED(NULL_ARGUMENT, quern_trace_add_name, NULL, "a", &name);
    REFUSED(NULL_ARGUMENT, quern_trace_add_name, trace, NULL, &name);
    REFUSED(NULL_ARGUMENT, quern_trace_add_name, trace, "a", NULL);
    REFUSED_FOR(INVALID_ARGUMENT, "QUERN_MAX_NAME_BYTES", quern_trace_add_name(trace, long_name, &name));
    REFUSED(NULL_ARGUMENT, quern_trace_set_track_name, NULL, 0, "a");
    REFUSED(NULL_ARGUMENT, quern_trace_set_track_name, trace, 0, NULL);
    REFUSED(INVALID_ARGUMENT, quern_trace_set_track_name, trace, UINT32_MAX, "a");
    REFUSED(NULL_ARGUMENT, quern_trace_write, NULL, quern_sink_file(stdout));
    REFUSED(NULL_ARGUMENT, quern_trace_write, trace, quern_sink_file(NULL));
    REFUSED(NULL_ARGUMENT, quern_trace_save, NULL, "file");
    REFUSED(NULL_ARGUMENT, quern_trace_save, trace, NULL);
    quern_trace_start(NULL);
    quern_trace_stop(NULL);
    quern_trace_destroy(NULL);
    cr_assert_not(quern_trace_is_running(NULL));
    quern_trace_stats stats;
    REFUSED(NULL_ARGUMENT, quern_trace_get_stats, NULL, &stats);
    REFUSED(NULL_ARGUMENT, quern_trace_get_stats, trace, NULL);
    quern_trace_zone zone = quern_trace_zone_begin(NULL, UINT32_MAX, UINT32_MAX);
    quern_trace_zone_end(&zone);
    quern_trace_zone_end(NULL);
}

Test(arguments, of_zones)
{
    captured_reports reports;
    capture_reports(&reports);
    quern_trace_start(trace);
    static const uint32_t wrong[] = {1, INT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        quern_trace_zone zone = quern_trace_zone_begin(trace, wrong[i], UINT32_MAX);
        quern_trace_zone_end(&zone);
    }
    cr_assert_eq(stats_of_trace(trace).event_count, 0u);
    cr_assert_eq(reports.log_count, 1u, "once");
    quern_trace_stop(trace);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

/* ------------------------------------------------------------------------------------------- jobs.h */

static void do_nothing(void *argument, uint32_t worker_index) {}

static void do_range(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index) {}

Test(arguments, of_pools)
{
    quern_jobs *out;
    quern_jobs_def def = {0};
    REFUSED(NULL_ARGUMENT, quern_jobs_create, NULL, NULL);
    def.thread_count = UINT32_MAX;
    REFUSED(INVALID_ARGUMENT, quern_jobs_create, &def, &out);
    REFUSED(NULL_ARGUMENT, quern_jobs_resize, NULL, 1);
    REFUSED(INVALID_ARGUMENT, quern_jobs_resize, jobs, UINT32_MAX);
    quern_jobs_destroy(NULL);
    quern_jobs_wake(NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_describe, NULL, quern_sink_file(stdout));
    REFUSED(NULL_ARGUMENT, quern_jobs_describe, jobs, quern_sink_file(NULL));
    REFUSED(NULL_ARGUMENT, quern_jobs_parallel_for, NULL, 1, 0, do_range, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_parallel_for, jobs, UINT32_MAX, UINT32_MAX, NULL, NULL);
}

Test(arguments, of_jobs)
{
    quern_counter counter = {0};
    quern_fork fork = {0};
    quern_job_def def = {0};
    REFUSED(NULL_ARGUMENT, quern_jobs_run, NULL, do_nothing, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_run, jobs, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_fork, NULL, &fork, do_nothing, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_fork, jobs, NULL, do_nothing, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_fork, jobs, &fork, NULL, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_join, NULL, &fork);
    REFUSED(NULL_ARGUMENT, quern_jobs_join, jobs, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, jobs, NULL);
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.function = do_nothing;
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, NULL, &def);
    REFUSED(NULL_ARGUMENT, quern_jobs_submit_after, jobs, &def, NULL);
    def.payload_bytes = 1;
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.payload_bytes = UINT32_MAX;
    def.payload = &def;
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.payload_bytes = 0;
    def.priority = (quern_priority)-1;
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit, jobs, &def);
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit_after, jobs, &def, &counter);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait, NULL, &counter);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait, jobs, NULL);
    REFUSED(NULL_ARGUMENT, quern_counter_release, NULL, &counter);
    REFUSED(NULL_ARGUMENT, quern_counter_release, jobs, NULL);
    REFUSED(INVALID_ARGUMENT, quern_counter_release, jobs, &counter);
    REFUSED(NULL_ARGUMENT, quern_jobs_run_caller_jobs, NULL, NULL);
}

Test(arguments, of_several_counters)
{
    quern_counter counter = {0}, *one = &counter, *none = NULL;
    quern_counter **list_of_one = one_of(&one, sizeof one), **list_of_none = one_of(&none, sizeof none);
    quern_job_def def = {.function = do_nothing, .after_count = 1};
    bool is_done;
    uint32_t index;
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.after = list_of_none;
    REFUSED(NULL_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.after = list_of_one;
    def.after_count = UINT32_MAX;
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.after_count = 1;
    def.counter = one;
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit, jobs, &def);
    def.counter = NULL;
    REFUSED(INVALID_ARGUMENT, quern_jobs_submit_after, jobs, &def, one);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait_for, NULL, one, UINT64_MAX, &is_done);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait_for, jobs, NULL, UINT64_MAX, &is_done);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait_any, NULL, list_of_one, 1, UINT64_MAX, &index);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait_any, jobs, NULL, 1, UINT64_MAX, &index);
    REFUSED(NULL_ARGUMENT, quern_jobs_wait_any, jobs, list_of_none, 1, UINT64_MAX, &index);
    REFUSED(INVALID_ARGUMENT, quern_jobs_wait_any, jobs, list_of_one, UINT32_MAX, UINT64_MAX, &index);
    REFUSED(INVALID_ARGUMENT, quern_jobs_wait_any, jobs, list_of_one, 0, UINT64_MAX, NULL);
    free(list_of_one);
    free(list_of_none);
}

Test(arguments, of_graphs)
{
    quern_graph *out;
    const quern_allocator half = {.allocate = quern_allocator_default().allocate};
    const quern_graph_node_def def = {0};
    must(quern_graph_add_node(graph, &def, NULL));
    REFUSED(NULL_ARGUMENT, quern_graph_create, NULL, NULL);
    REFUSED(INVALID_ARGUMENT, quern_graph_create, &half, &out);
    REFUSED(NULL_ARGUMENT, quern_graph_add_node, NULL, &def, NULL);
    REFUSED(NULL_ARGUMENT, quern_graph_add_edge, NULL, 0, 1);
    REFUSED(INVALID_ARGUMENT, quern_graph_add_edge, graph, 0, UINT32_MAX);
    REFUSED(INVALID_ARGUMENT, quern_graph_add_edge, graph, UINT32_MAX, UINT32_MAX);
    REFUSED(INVALID_ARGUMENT, quern_graph_add_edge, graph, UINT32_MAX, 0);
    REFUSED(NULL_ARGUMENT, quern_graph_set_count, NULL, 0, 1);
    REFUSED(INVALID_ARGUMENT, quern_graph_set_count, graph, UINT32_MAX, 1);
    REFUSED(NULL_ARGUMENT, quern_graph_run, NULL, NULL);
    quern_graph_destroy(NULL);
    quern_graph_clear(NULL);
}
