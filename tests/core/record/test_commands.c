/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/record/record.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Recording: which commands are refused, and that a refused command records nothing. test_playback.c tests the
 * effect of commands. */

static quern_component position, tag, links;
static quern_entity known; /* alive, with a position */

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    tag = setup_tag(world, "tag");
    links = setup_links(world, "links");
    known = setup_entity_with(world, &position, 1);
}

static captured_reports reports;

TestSuite(commands, .init = open_world, .fini = close_world);

/* Asserts that every command of the callback is refused. */
static void assert_records_nothing(quern_system_callback *callback)
{
    uint64_t hash = quern_world_hash(world);
    cr_assert_eq(run_once(world, callback).command_count, 0u, "a refused command was recorded");
    cr_assert_eq(quern_world_hash(world), hash, "a refused command changed the world");
}

/* --------------------------------------------------------------------------------- provisional handles */

static void record_creates(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity first = record_entity(commands);
    quern_entity second = record_entity_with(commands, &position, NULL, 1);
    cr_assert(quern_entity_is_provisional(first) && quern_entity_is_provisional(second));
    cr_assert_not(quern_entity_equal(first, second));
    cr_assert_not(quern_context_is_alive(context, first));
    must(quern_commands_create(commands, NULL)); /* handles that are not needed */
    must(quern_commands_create_with(commands, &position, NULL, 1, NULL));
}

Test(commands, creates_return_distinct_provisional_handles)
{
    quern_frame_stats stats = run_once(world, record_creates);
    cr_assert_eq(stats.created_count, 4u);
    cr_assert_eq(stats_of_world(world).entity_count, 5u);
}

static void use_own_handle(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity entity = record_entity(commands);
    vec3 value = {1, 2, 3};
    must(quern_commands_add(commands, entity, position, &value));
    must(quern_commands_set(commands, entity, position, &value));
    must(quern_commands_remove(commands, entity, position));
    must(quern_commands_add(commands, entity, links, &(link3){.targets = {entity}}));
    must(quern_commands_destroy(commands, entity));
}

Test(commands, provisional_handle_is_valid_in_its_stream)
{
    quern_frame_stats stats = run_once(world, use_own_handle);
    cr_assert_eq(stats.command_count, 6u);
    cr_assert_eq(stats.dropped_count, 0u);
}

static quern_entity stolen;

static void assert_handle_refused(quern_commands *commands, quern_entity entity, quern_result code)
{
    vec3 value = {0};
    assert_refused(NULL, code, quern_commands_destroy(commands, entity));
    assert_refused(NULL, code, quern_commands_add(commands, entity, position, NULL));
    assert_refused(NULL, code, quern_commands_remove(commands, entity, position));
    assert_refused(NULL, code, quern_commands_set(commands, entity, position, &value));
}

static void assert_smuggling_refused(quern_commands *commands, quern_entity entity)
{
    for (uint32_t i = 0; i < 3; i++) {
        link3 value = {0};
        value.targets[i] = entity;
        const void *values[] = {&value};
        quern_result code = QUERN_ERROR_PROVISIONAL_ENTITY;
        assert_refused(NULL, code, quern_commands_add(commands, known, links, &value));
        assert_refused(NULL, code, quern_commands_set(commands, known, links, &value));
        assert_refused_value(NULL, record_entity_with(commands, &links, values, 1).bits);
        cr_assert_not_null(strstr(quern_error_message(), "deferred"), "%s", quern_error_message());
    }
}

/* Builds with checks report the violation and name the system. */
static void assert_reported(uint32_t asserts_before)
{
    cr_assert_eq(reports.assert_count > asserts_before, quern_has_checks());
    cr_assert_not_null(strstr(reports.last, "system '"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, "provisional handle"), "%s", reports.last);
}

static void use_stolen_handle(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    uint32_t asserts_before = reports.assert_count;
    assert_handle_refused(commands, stolen, QUERN_ERROR_PROVISIONAL_ENTITY);
    assert_reported(asserts_before);
    asserts_before = reports.assert_count;
    assert_smuggling_refused(commands, stolen);
    assert_reported(asserts_before);
}

static void make_stolen_handle(quern_context *context)
{
    stolen = record_entity(quern_context_commands(context));
}

/* Runs a frame with a system that creates an entity, and others that use its handle where it is invalid. */
static void steal_handle(uint32_t thief_phase, uint32_t flags)
{
    quern_schedule *schedule = setup_phases(world, 2);
    quern_system_def maker = system_def("maker", NULL), thief = system_def("thief", NULL);
    maker.begin = make_stolen_handle;
    thief.begin = use_stolen_handle;
    thief.phase = thief_phase;
    thief.flags = flags;
    setup_system(schedule, &maker);
    setup_system(schedule, &thief);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 1u);
    quern_schedule_destroy(schedule);
}

Test(commands, provisional_handle_of_another_system_is_refused)
{
    capture_reports(&reports);
    steal_handle(0, QUERN_SYSTEM_DEFAULT);
}

Test(commands, provisional_handle_is_refused_after_its_sync_point)
{
    capture_reports(&reports);
    steal_handle(1, QUERN_SYSTEM_DEFAULT);
    steal_handle(0, QUERN_SYSTEM_EXCLUSIVE);
}

Test(commands, provisional_handle_of_an_earlier_frame_is_refused)
{
    capture_reports(&reports);
    run_once(world, make_stolen_handle);
    assert_records_nothing(use_stolen_handle);
}

static void use_handle_of_later_create(quern_context *context)
{
    quern_entity entity = record_entity(quern_context_commands(context));
    stolen = (quern_entity){entity.bits + 1};
    use_stolen_handle(context);
}

Test(commands, provisional_handle_of_a_later_create_is_refused)
{
    capture_reports(&reports);
    quern_frame_stats stats = run_once(world, use_handle_of_later_create);
    cr_assert_eq(stats.command_count, 1u);
    stolen = entity_provisional(0);
    assert_records_nothing(use_stolen_handle);
}

static void steal_from_earlier_part(quern_context *context, const quern_view *view)
{
    use_stolen_handle(context);
    make_stolen_handle(context);
}

Test(commands, provisional_handle_of_another_callback_or_view_is_refused)
{
    capture_reports(&reports);
    enum { COUNT = 4000 };
    for (uint32_t i = 0; i < COUNT; i++)
        setup_entity_with(world, &position, 1);
    quern_schedule *schedule = setup_schedule(world);
    quern_system system =
        make_system(schedule, "views", steal_from_earlier_part, .terms = {quern_term_read(position)},
                    .begin = make_stolen_handle, .end = use_stolen_handle);
    must_run(schedule, NULL);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_gt(stats.view_count, 2u, "the test needs several views");
    cr_assert_eq(stats.command_count, 1u + stats.view_count);
}

/* ------------------------------------------------------------------------------------- wrong handles */

static quern_entity stale, foreign;

static void use_wrong_handles(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    assert_handle_refused(commands, quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
    assert_handle_refused(commands, stale, QUERN_ERROR_STALE_ENTITY);
    assert_handle_refused(commands, foreign, QUERN_ERROR_FOREIGN_ENTITY);
}

Test(commands, null_stale_and_foreign_handles_are_refused)
{
    foreign = entity_of_other_world(known);
    stale = setup_entity(world);
    must(quern_entity_destroy(world, stale));
    assert_records_nothing(use_wrong_handles);
    setup_entity(world); /* the slot is used again, the handle is not */
    assert_records_nothing(use_wrong_handles);
}

static void put_any_handle_in_values(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    link3 value = {.targets = {quern_entity_null(), stale, foreign}, .number = 5};
    must(quern_commands_set(commands, known, links, &value));
}

Test(commands, values_may_contain_null_stale_and_foreign_handles)
{
    foreign = entity_of_other_world(known);
    stale = setup_entity(world);
    must(quern_entity_destroy(world, stale));
    run_once(world, put_any_handle_in_values);
    const link3 *value = quern_entity_get(world, known, links);
    cr_assert(quern_entity_equal(value->targets[1], stale));
    cr_assert(quern_entity_equal(value->targets[2], foreign));
}

static void record_after_destroy(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_destroy(commands, known));
    must(quern_commands_destroy(commands, known));
    must(quern_commands_add(commands, known, tag, NULL));
    must(quern_commands_remove(commands, known, tag));
    must(quern_commands_set(commands, known, tag, NULL));
}

Test(commands, commands_on_a_destroyed_entity_are_recorded_and_counted_as_dropped)
{
    quern_frame_stats stats = run_once(world, record_after_destroy);
    cr_assert_eq(stats.command_count, 5u);
    cr_assert_eq(stats.dropped_count, 4u);
    cr_assert_eq(stats.destroyed_count, 1u);
}

/* ---------------------------------------------------------------------------------- wrong arguments */

static void use_null_arguments(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_result code = QUERN_ERROR_NULL_ARGUMENT;
    quern_entity made[] = {known, known, known};
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create(NULL, &made[0]));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_with(NULL, &position, NULL, 1, &made[1]));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_with(commands, NULL, NULL, 1, &made[2]));
    for (uint32_t i = 0; i < COUNT_OF(made); i++)
        cr_assert(quern_entity_is_null(made[i]));
    assert_refused(NULL, code, quern_commands_destroy(NULL, known));
    assert_refused(NULL, code, quern_commands_add(NULL, known, position, NULL));
    assert_refused(NULL, code, quern_commands_remove(NULL, known, position));
    assert_refused(NULL, code, quern_commands_set(NULL, known, position, &(vec3){0}));
    assert_refused(NULL, code, quern_commands_set(commands, known, position, NULL));
}

Test(commands, null_arguments_are_refused)
{
    assert_records_nothing(use_null_arguments);
}

static void use_wrong_components(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_component wrong[] = {{0}, component_unregistered(position), component_of_other_world(position)};
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        quern_result code = QUERN_ERROR_UNKNOWN_COMPONENT;
        quern_component set[] = {position, wrong[i]};
        assert_refused(NULL, code, quern_commands_add(commands, known, wrong[i], NULL));
        assert_refused(NULL, code, quern_commands_remove(commands, known, wrong[i]));
        assert_refused(NULL, code, quern_commands_set(commands, known, wrong[i], &(vec3){0}));
        assert_refused_value(NULL, record_entity_with(commands, set, NULL, 2).bits);
    }
}

Test(commands, unknown_components_are_refused)
{
    assert_records_nothing(use_wrong_components);
}

static quern_component large;

static void create_with_wrong_sets(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    static quern_component many[QUERN_MAX_ENTITY_COMPONENTS + 1];
    quern_component twice[] = {position, tag, position}, too_wide[] = {large, position, links};
    must_refuse(DUPLICATE_COMPONENT, NULL, quern_commands_create_with(commands, twice, NULL, 3, NULL));
    assert_message_has("position");
    assert_refused_value(NULL, record_entity_with(commands, too_wide, NULL, 3).bits);
    assert_refused_value(NULL, record_entity_with(commands, many, NULL, COUNT_OF(many)).bits);
    assert_message_has("QUERN_MAX_ENTITY_COMPONENTS");
}

Test(commands, create_with_refuses_duplicates_and_rows_larger_than_a_chunk)
{
    large = setup_component(world, "large", QUERN_MAX_COMPONENT_BYTES, 1);
    assert_records_nothing(create_with_wrong_sets);
}

/* The list has the minimal size, so that the address sanitizer detects reads beyond it. */
static void create_with_wild_counts(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    static const uint32_t counts[] = {QUERN_MAX_ENTITY_COMPONENTS + 1, INT32_MAX, UINT32_MAX};
    quern_component *alone = malloc(sizeof *alone);
    cr_assert_not_null(alone);
    *alone = position;
    for (uint32_t i = 0; i < COUNT_OF(counts); i++) {
        assert_refused_value(NULL, record_entity_with(commands, alone, NULL, counts[i]).bits);
        assert_message_has("QUERN_MAX_ENTITY_COMPONENTS");
        must_refuse(TOO_MANY_COMPONENTS, NULL,
                    quern_commands_create_many(commands, alone, NULL, counts[i], 3, NULL));
        assert_message_has("QUERN_MAX_ENTITY_COMPONENTS");
    }
    free(alone);
}

Test(commands, list_is_not_read_before_its_length_is_checked)
{
    assert_records_nothing(create_with_wild_counts);
}

static quern_component set250[QUERN_MAX_ENTITY_COMPONENTS];

static void create_with_250(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    uint64_t number = 0x0123456789ABCDEFu;
    const void *values[COUNT_OF(set250)];
    for (uint32_t i = 0; i < COUNT_OF(set250); i++)
        values[i] = &number;
    for (uint32_t i = 0; i < 20; i++)
        cr_assert(record_entity_with(commands, set250, values, COUNT_OF(set250)).bits, "%s",
                  quern_error_message());
}

Test(commands, create_with_accepts_the_maximum_number_of_components)
{
    for (uint32_t i = 0; i < COUNT_OF(set250); i++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", i);
        set250[i] = setup_component(world, name, 8, 8);
    }
    cr_assert_eq(run_once(world, create_with_250).created_count, 20u);
    quern_term term = quern_term_read(set250[249]);
    quern_query *query = setup_query(world, &term, 1);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const uint64_t *numbers = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            cr_assert_eq(numbers[i], 0x0123456789ABCDEFu);
    }
    cr_assert_eq(quern_query_count(query), 20u);
}

/* -------------------------------------------------------------------------------------- long streams */

enum { LONG_COUNT = 20000 };

static void record_long_stream(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 1; i <= LONG_COUNT; i++) {
        vec3 value = {(float)i, 0, 0};
        must(quern_commands_set(commands, known, position, &value));
        quern_entity entity = record_entity(commands);
        must(quern_commands_add(commands, entity, position, &value));
    }
}

Test(commands, stream_continues_over_many_blocks)
{
    for (uint32_t frame = 1; frame <= 3; frame++) { /* later frames reuse the blocks */
        cr_assert_eq(run_once(world, record_long_stream).command_count, 3u * LONG_COUNT);
        const vec3 *value = quern_entity_get(world, known, position);
        cr_assert_float_eq(value->x, (float)LONG_COUNT, 0);
        cr_assert_eq(stats_of_world(world).entity_count, 1u + frame * LONG_COUNT);
    }
}

enum { LARGE_COUNT = 40 };

static void record_large_values(quern_context *context)
{
    static unsigned char bytes[QUERN_MAX_COMPONENT_BYTES];
    const void *values[] = {bytes};
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < LARGE_COUNT; i++) {
        memset(bytes, (int)i + 1, sizeof bytes);
        cr_assert(record_entity_with(commands, &large, values, 1).bits, "%s", quern_error_message());
    }
}

static void assert_large_values(void)
{
    quern_term term = quern_term_read(large);
    quern_query *query = setup_query(world, &term, 1);
    quern_query_iterator it = quern_query_iterate(query);
    for (uint32_t i = 0; quern_query_next(&it); i++) {
        static unsigned char expected[QUERN_MAX_COMPONENT_BYTES];
        memset(expected, (int)i + 1, sizeof expected);
        cr_assert_arr_eq(quern_view_read(&it.view, 0), expected, sizeof expected, "value %u", i);
    }
    cr_assert_eq(quern_query_count(query), (uint64_t)LARGE_COUNT);
    quern_query_destroy(query);
}

Test(commands, the_largest_component_can_be_recorded)
{
    large = setup_component(world, "large", QUERN_MAX_COMPONENT_BYTES, 1);
    run_once(world, record_large_values);
    assert_large_values();
}

Test(commands, the_largest_component_may_be_aligned_to_64_bytes)
{
    large = setup_component(world, "large", QUERN_MAX_COMPONENT_BYTES / 64 * 64, 64);
    run_once(world, record_large_values);
    assert_large_values();
}

/* ------------------------------------------------------------------------------------- owned values */

static tracked_counts counts;
static quern_component tracked_component;
static atomic_llong owned_count;
static quern_component owned_component;

static void open_owners(void)
{
    memset((void *)&counts, 0, sizeof counts);
    open_world();
    tracked_component = tracked_register(world, "tracked", &counts);
    owned_component = owned_register(world, "owned", &owned_count);
}

TestSuite(commands_owners, .init = open_owners, .fini = close_world);

static void record_tracked(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    tracked value;
    tracked_construct(&value, 5, &counts);
    const void *values[] = {&value};
    must(quern_commands_set(commands, known, tracked_component, &value));
    cr_assert(record_entity_with(commands, &tracked_component, values, 1).bits);
    cr_assert_eq(counts.copied_count, 2u, "values are copied when they are recorded");
    tracked_destroy(&value, &counts);
}

Test(commands_owners, value_is_copied_when_recorded)
{
    run_once(world, record_tracked);
    cr_assert_eq(counts.copied_count, 2u);
    cr_assert_eq(tracked_live_count(&counts), 2u);
    cr_assert_eq(counts.broken_count, 0u);
    const tracked *value = quern_entity_get(world, known, tracked_component);
    cr_assert_eq(value->payload, 5u);
    cr_assert(tracked_is_live(value));
}

static void record_refused_values(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    owned value;
    owned_construct(&value, 3, &owned_count);
    const void *values[] = {&value, NULL};
    quern_component twice[] = {owned_component, owned_component};
    must_refuse(STALE_ENTITY, NULL, quern_commands_set(commands, stale, owned_component, &value));
    assert_refused_value(NULL, record_entity_with(commands, twice, values, 2).bits);
    cr_assert(owned_is_intact(&value));
    owned_destroy(&value, &owned_count);
}

Test(commands_owners, refused_command_leaves_the_value_with_the_caller)
{
    stale = setup_entity(world);
    must(quern_entity_destroy(world, stale));
    assert_records_nothing(record_refused_values);
    cr_assert_eq(owned_count, 0);
}

static void record_owned(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint64_t i = 0; i < 100; i++) {
        owned value;
        owned_construct(&value, i, &owned_count);
        must(quern_commands_set(commands, known, owned_component, &value));
    }
}

Test(commands_owners, value_without_copy_hook_is_moved_into_the_command)
{
    run_once(world, record_owned);
    cr_assert_eq(owned_count, 1, "99 of 100 values were replaced and destroyed");
    const owned *value = quern_entity_get(world, known, owned_component);
    cr_assert(owned_is_intact(value));
    cr_assert_eq(value->payload, 99u);
}

/* ------------------------------------------------------------------------------------ no memory left */

static failing_allocator *memory;
static uint32_t recorded_count, refused_count;

static void record_until_no_memory(quern_context *context)
{
    failing_allocator_fail_from(memory, 6);
    for (uint32_t i = 0; i < 3000; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        const void *values[] = {&value};
        quern_entity entity =
            record_entity_with(quern_context_commands(context), &tracked_component, values, 1);
        tracked_destroy(&value, &counts);
        if (!quern_entity_is_null(entity)) recorded_count++;
        if (quern_entity_is_null(entity)) refused_count++;
    }
    failing_allocator_heal(memory);
}

static void open_failing(void)
{
    memset((void *)&counts, 0, sizeof counts);
    memory = open_failing_world();
    tracked_component = tracked_register(world, "tracked", &counts);
}

Test(commands_memory, command_without_memory_fails_the_frame_but_no_other_command, .init = open_failing,
     .fini = close_world)
{
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "recorder", NULL, .begin = record_until_no_memory);
    must_not_run(schedule, NULL, QUERN_ERROR_OUT_OF_MEMORY);
    quern_schedule_destroy(schedule);
    assert_valid(world);
    cr_assert_gt(recorded_count, 0u);
    cr_assert_gt(refused_count, 0u);
    cr_assert_eq(stats_of_world(world).entity_count, recorded_count);
    cr_assert_eq(tracked_live_count(&counts), recorded_count);
    cr_assert_eq(counts.broken_count, 0u);
}

static void create_all_there_can_be(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_create_many(commands, &tracked_component, NULL, 1, 1, NULL));
    uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    for (uint32_t i = 1; i < 3; i++) { /* the maximum, and a little less */
        failing_allocator_fail_from(memory, 40);
        must_refuse(OUT_OF_MEMORY, NULL,
                    quern_commands_create_many(commands, NULL, NULL, 0, QUERN_MAX_ENTITIES - i, NULL));
        failing_allocator_heal(memory);
    }
    cr_assert_lt(failing_allocator_outstanding_bytes(memory), bytes + 64 * 1024, "blocks are still held");
}

Test(commands_memory, creates_that_exceed_memory_fail_and_keep_no_blocks, .init = open_failing,
     .fini = close_world)
{
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "recorder", NULL, .begin = create_all_there_can_be);
    must_not_run(schedule, NULL, QUERN_ERROR_OUT_OF_MEMORY);
    quern_schedule_destroy(schedule);
    cr_assert_eq(stats_of_world(world).entity_count, 1u);
}

/* Fills blocks with batches of different sizes: of items without a value, with another first address for each parity
 * of their number, and of one item with a value. With each number of bytes that is left at the end of a block, no item
 * ends beyond it. */
Test(commands, items_end_within_their_block)
{
    enum { BLOCKS = 100, MOST = 24 };
    const vec3 value = {4, 5, 6};
    quern_commands *commands = quern_world_commands(world);
    cr_assert(!quern_component_is_null(quern_world_disabled_tag(world))); /* set_enabled needs the tag */
    for (uint32_t i = 0; commands->blocks.count < BLOCKS; i++) {
        for (uint32_t j = 0; j < i % MOST; j++)
            must(quern_commands_set_enabled(commands, known, j < i % 5));
        must(quern_commands_set(commands, known, position, &value));
        cr_assert(commands->next <= commands->end);
    }
    must(quern_world_flush(world));
    cr_assert_eq(((const vec3 *)quern_entity_get(world, known, position))->z, 6);
}

/* ------------------------------------------------------------------------------------ created entities */

/* Creates with random components and values, among other commands. The way a create is recorded depends on the
 * create before it. Most creates are therefore equal to the previous one, and some differ in one component or
 * in whether a value is given. */

enum { CREATE_COUNT = 6000, LIST_COUNT = 5, VALUE_BYTES = 48 };

static const uint32_t sizes[] = {1, 2, 4, 6, 8, 12, 16, 20, 48, 0};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

static quern_component number, mark, sized[SIZE_COUNT];
static quern_entity victims[CREATE_COUNT];

/* The components of a create, by index in `sized`, and whether each has a value. */
typedef struct create_spec {
    uint32_t count;
    uint32_t which[LIST_COUNT];
    bool is_given[LIST_COUNT];
} create_spec;

static create_spec create_specs[CREATE_COUNT];

static bool has_component(const create_spec *it, uint32_t which)
{
    for (uint32_t i = 0; i < it->count; i++)
        if (it->which[i] == which) return true;
    return false;
}

static void draw_list(create_spec *it, random_source *random)
{
    it->count = 0;
    const uint32_t count = random_below(random, LIST_COUNT + 1);
    while (it->count < count) {
        const uint32_t which = random_below(random, SIZE_COUNT);
        if (has_component(it, which)) continue;
        it->is_given[it->count] = random_chance(random, 80);
        it->which[it->count++] = which;
    }
}

/* Most specs are equal to the previous one, or differ slightly. */
static void draw_specs(void)
{
    random_source random = {14};
    draw_list(&create_specs[0], &random);
    for (uint32_t i = 1; i < CREATE_COUNT; i++) {
        create_spec *it = &create_specs[i];
        *it = create_specs[i - 1];
        if (random_chance(&random, 20)) draw_list(it, &random);
        if (it->count == 0 || !random_chance(&random, 20)) continue;
        const uint32_t place = random_below(&random, it->count), which = random_below(&random, SIZE_COUNT);
        if (random_chance(&random, 50))
            it->is_given[place] = !it->is_given[place];
        else if (!has_component(it, which))
            it->which[place] = which;
    }
}

static void make_value(unsigned char *value, uint32_t create, uint32_t which)
{
    for (uint32_t i = 0; i < VALUE_BYTES; i++)
        value[i] = (unsigned char)(1 + (create * 31 + which * 7 + i) % 255);
}

static void record_spec(quern_commands *commands, uint32_t create)
{
    const create_spec *it = &create_specs[create];
    _Alignas(16) unsigned char bytes[LIST_COUNT][VALUE_BYTES];
    quern_component list[LIST_COUNT + 1] = {number};
    const void *values[LIST_COUNT + 1] = {&create};
    for (uint32_t i = 0; i < it->count; i++) {
        list[i + 1] = sized[it->which[i]];
        make_value(bytes[i], create, it->which[i]);
        values[i + 1] = it->is_given[i] ? bytes[i] : NULL;
    }
    cr_assert_not(quern_entity_is_null(record_entity_with(commands, list, values, it->count + 1)), "%s",
                  quern_error_message());
}

static void record_all(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < CREATE_COUNT; i++) {
        if (i % 3 == 0) cr_assert_eq(quern_commands_destroy(commands, victims[i]), QUERN_OK);
        if (i % 7 == 0) cr_assert_eq(quern_commands_add(commands, victims[i], mark, &i), QUERN_OK);
        record_spec(commands, i);
    }
}

static void assert_spec(quern_entity entity, uint32_t create)
{
    const create_spec *it = &create_specs[create];
    static const unsigned char zeros[VALUE_BYTES];
    unsigned char value[VALUE_BYTES];
    uint32_t found = 0;
    for (uint32_t i = 0; i < SIZE_COUNT; i++)
        found += quern_entity_has(world, entity, sized[i]);
    cr_assert_eq(found, it->count, "create %u", create);
    for (uint32_t i = 0; i < it->count; i++) {
        const uint32_t which = it->which[i];
        cr_assert(quern_entity_has(world, entity, sized[which]), "create %u", create);
        if (sizes[which] == 0) continue;
        make_value(value, create, which);
        cr_assert_arr_eq(quern_entity_get(world, entity, sized[which]), it->is_given[i] ? value : zeros,
                         sizes[which], "create %u, %u bytes", create, sizes[which]);
    }
}

static void assert_specs(void)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t created = 0;
    while (quern_query_next(&it)) {
        const uint32_t *creates = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            assert_spec(it.view.entities[i], creates[i]);
        created += it.view.count;
    }
    cr_assert_eq(created, (uint32_t)CREATE_COUNT);
    quern_query_destroy(query);
}

Test(creates, each_entity_has_its_own_components_and_values)
{
    world = setup_world();
    number = setup_component(world, "number", sizeof(uint32_t), _Alignof(uint32_t));
    mark = setup_component(world, "mark", sizeof(uint32_t), _Alignof(uint32_t));
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "sized %u", i);
        sized[i] = setup_component(world, name, sizes[i], sizes[i] == 16 ? 16 : 1);
    }
    draw_specs();
    for (uint32_t round = 0; round < 2; round++) { /* the second round records over other values */
        for (uint32_t i = 0; i < CREATE_COUNT; i++)
            victims[i] = setup_entity(world);
        run_once(world, record_all);
        assert_specs();
        assert_valid(world);
        quern_query *created = setup_query(world, (quern_term[]){quern_term_with(number)}, 1);
        cr_assert_eq(quern_entity_destroy_matching(created, NULL), QUERN_OK);
        quern_query_destroy(created);
    }
    quern_world_destroy(world);
}
