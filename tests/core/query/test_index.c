/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/sorted_scene.h"

#include <stddef.h>
#include <string.h>

/* Indexes and ordered queries: definitions, messages, doubles, deltas, other layouts, and memory that runs out. */

static sorted_scene scene;
static quern_entity entities[64];
static random_source numbers;

static void open_scene(void)
{
    world = setup_world();
    scene_open(&scene, world, false);
    numbers = (random_source){7};
    for (uint32_t i = 0; i < 64; i++) {
        const unit value = {.depth = (float)(i * 37 % 64), .layer = (int32_t)i, .team = (int8_t)(i % 3)};
        must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1, &entities[i]));
    }
}

/* Indexes go after the schedules that declare them, and before the world. */
static void close_scene(void)
{
    quern_schedule *schedule;
    while (quern_world_list_schedules(world, &schedule, 1) > 0)
        quern_schedule_destroy(schedule);
    scene_close(&scene);
    close_valid_world();
}

TestSuite(index, .init = open_scene, .fini = close_scene);

static uint32_t count_of(uint64_t value)
{
    uint32_t count = 0;
    must(quern_index_find(scene.indexes[0], value, NULL, &count));
    return count;
}

Test(index, entities_ascend_by_slot)
{
    const quern_entity *found;
    uint32_t count;
    must(quern_index_find(scene.indexes[0], 1, &found, &count));
    cr_assert_eq(count, 21u);
    for (uint32_t i = 0; i < count; i++)
        cr_assert(quern_entity_equal(found[i], entities[1 + 3 * i]));
}

Test(index, disabled_entities_and_destroyed_ones_are_not_found)
{
    must(quern_entity_destroy(world, entities[1]));
    must(quern_entity_set_enabled(world, entities[4], false));
    cr_assert_eq(count_of(1), 19u);
    must(quern_entity_set_enabled(world, entities[4], true));
    cr_assert_eq(count_of(1), 20u);
}

Test(index, pointers_count_when_changes_are_marked)
{
    unit *value = quern_entity_get(world, entities[0], scene.unit);
    cr_assert_eq(count_of(0), 22u);
    value->team = 9;
    must(quern_entity_mark_changed(world, entities[0], scene.unit));
    cr_assert_eq(count_of(0), 21u);
    cr_assert_eq(count_of(9), 1u);
}

Test(index, negative_values_are_converted)
{
    must(quern_entity_set(world, entities[0], scene.unit, &(unit){.team = -1}));
    cr_assert_eq(count_of((uint64_t)-1), 1u);
    cr_assert_eq(count_of(255), 0u);
}

Test(index, unique_index_refuses_doubles)
{
    captured_reports reports;
    quern_index *unique;
    const quern_entity *found;
    uint32_t count;
    quern_index_def def = {.name = "numbers", .component = scene.unit, .field = "team", .is_unique = true};
    must_refuse(INVALID_ARGUMENT, world, quern_index_create(world, &def, &unique));
    cr_assert_str_eq(quern_error_message(),
                     "quern_index_create: index 'numbers' of unit.team: entities 0:1 and 3:1 both have the "
                     "value 0: give one of them another value, or create the index without is_unique");
    def.field = "layer";
    must(quern_index_create(world, &def, &unique));
    must(quern_index_check(unique));
    must(quern_entity_set(world, entities[5], scene.unit, &(unit){.layer = 7}));
    capture_reports(&reports);
    must(quern_index_find(unique, 7, &found, &count));
    cr_assert_eq(count, 2u);
    cr_assert_eq(reports.log_count, 1u);
    cr_assert_not_null(strstr(reports.last, "entities 5:1 and 7:1 both have the value 7"));
    must(quern_index_find(unique, 7, &found, &count)); /* not reported again */
    cr_assert_eq(reports.log_count, 1u);
    must_refuse(INVALID_ARGUMENT, world, quern_index_check(unique));
    must(quern_entity_destroy(world, entities[7]));
    must(quern_index_check(unique));
    quern_index_destroy(unique);
}

Test(index, a_field_with_another_name_is_suggested)
{
    quern_index *made;
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_read(scene.unit)},
                                 .order_by = {.component = scene.unit, .field = "deth"}};
    must_refuse(
        INVALID_ARGUMENT, world,
        quern_index_create(world, &(quern_index_def){.component = scene.unit, .field = "tema"}, &made));
    cr_expect_not_null(strstr(quern_error_message(), "did you mean 'team'?"), "%s", quern_error_message());
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
    cr_expect_not_null(strstr(quern_error_message(), "quern_query_create: order_by: component 'unit'"),
                       "%s", quern_error_message());
    cr_expect_not_null(strstr(quern_error_message(), "did you mean 'depth'?"));
}

Test(index, definitions_are_checked)
{
    quern_index *made;
    const quern_index_def defs[] = {
        {.component = scene.unit, .field = "missing"},
        {.component = scene.unit, .field = "depth"},
        {.component = scene.unit},
        {.component = scene.unit, .type = QUERN_FIELD_TEXT},
        {.component = scene.unit, .type = QUERN_FIELD_U64, .offset_bytes = sizeof(unit) - 7},
        {.component = scene.tag, .type = QUERN_FIELD_U8},
        {.component = scene.unit, .field = "team", .name = ""},
    };
    for (uint32_t i = 0; i < sizeof defs / sizeof *defs; i++)
        must_refuse(INVALID_ARGUMENT, world, quern_index_create(world, &defs[i], &made));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_index_create(world, &(quern_index_def){.field = "x"}, &made));
    must_refuse(NULL_ARGUMENT, world, quern_index_create(world, NULL, &made));
    must_refuse(NULL_ARGUMENT, world, quern_index_create(world, &defs[0], NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_index_create(NULL, &defs[0], &made));
    must_refuse(NULL_ARGUMENT, NULL, quern_index_find(NULL, 0, NULL, &(uint32_t){0}));
    must_refuse(NULL_ARGUMENT, world, quern_index_find(scene.indexes[0], 0, NULL, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_index_check(NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_index_get_stats(NULL, &(quern_index_stats){0}));
    must_refuse(NULL_ARGUMENT, NULL, quern_index_get_def(NULL, &(quern_index_def){.name = NULL}));
    quern_index_destroy(NULL);
}

Test(index, definition_can_be_read)
{
    quern_index_def def;
    quern_query_def query;
    must(quern_index_get_def(scene.indexes[1], &def));
    cr_assert(quern_component_equal(def.component, scene.unit) && def.name == NULL && !def.is_unique);
    cr_assert_str_eq(def.field, "owner");
    must(quern_query_get_def(scene.ordered[1], &query));
    cr_assert(query.order_by.descending && quern_component_equal(query.order_by.component, scene.unit));
    cr_assert_str_eq(query.order_by.field, "layer");
    must(quern_query_get_def(scene.ordered[3], &query));
    cr_assert(query.order_by.field == NULL && query.order_by.type == QUERN_FIELD_ENTITY &&
              query.order_by.offset_bytes == offsetof(unit, owner));
    must(quern_query_get_def(scene.plain[0], &query));
    cr_assert(quern_component_is_null(query.order_by.component));
}

static void ignore_view(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
}

Test(index, orders_are_checked)
{
    quern_query *made;
    const quern_order by_depth = {.component = scene.unit, .field = "depth"};
    const quern_query_def defs[] = {
        {.terms = {quern_term_with(scene.unit)}, .order_by = by_depth},
        {.terms = {quern_term_optional(scene.unit, QUERN_ACCESS_READ)}, .order_by = by_depth},
        {.terms = {quern_term_read(scene.other)}, .order_by = by_depth},
        {.terms = {quern_term_changed(quern_term_read(scene.unit))}, .order_by = by_depth},
        {.terms = {quern_term_read(scene.unit)}, .order_by = by_depth, .whole_chunks = true},
        {.terms = {quern_term_read(scene.unit)}, .order_by = {.component = scene.unit, .field = "missing"}},
        {.terms = {quern_term_read(scene.unit)},
         .order_by = {.component = scene.unit, .field = "depth", .compare = scene_compare}},
        {.terms = {quern_term_read(scene.unit)}, .order_by = {.component = scene.unit}},
    };
    for (uint32_t i = 0; i < sizeof defs / sizeof *defs; i++)
        must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &defs[i], &made));
    const quern_query_def nameless = {.terms = {quern_term_read(scene.unit)}, .order_by = {.field = "x"}};
    must_refuse(UNKNOWN_COMPONENT, world, quern_query_create(world, &nameless, &made));
    must_refuse(INVALID_ARGUMENT, world,
                quern_query_parallel_for(scene.ordered[0], NULL, ignore_view, NULL));
}

Test(index, later_iteration_that_sorts_again_ends_the_first_one)
{
    quern_query_iterator outer = quern_query_iterate(scene.ordered[0]);
    cr_assert(quern_query_next(&outer));
    quern_query_iterator inner = quern_query_iterate(scene.ordered[0]);
    cr_assert(quern_query_next(&inner) && quern_query_next(&outer));
    QUERN_COLUMN(&outer.view, 0, unit)->depth = 1000;
    inner = quern_query_iterate(scene.ordered[0]);
    cr_assert(quern_query_next(&inner));
    cr_assert(!quern_query_next(&outer));
    cr_assert_eq(outer.result, QUERN_ERROR_STRUCTURE_CHANGED);
}

Test(index, rows_in_a_chunk_and_in_order_are_one_view)
{
    uint32_t views = 0, rows = 0;
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t depth = i / 20;
        must(quern_entity_set(world, entities[i], scene.unit, &(unit){.depth = (float)depth}));
    }
    quern_query_iterator it = quern_query_iterate(scene.ordered[0]);
    for (; quern_query_next(&it); views++) {
        cr_assert_eq(it.view.ordinal, views);
        rows += it.view.count;
    }
    cr_assert(views == 1 && rows == 64);
}

/* ----------------------------------------------------------------------------------------- systems */

static void ask_other(quern_context *context, const quern_view *view)
{
    const quern_entity *found = entities;
    (void)view;
    cr_assert_eq(quern_context_find(context, scene.indexes[1], 0, &found), 0u);
    cr_assert_null(found);
}

Test(index, systems_ask_only_what_they_declare)
{
    captured_reports reports;
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    quern_system_def def = {.name = "ask", .run = ask_other, .indexes = {scene.indexes[0]}};
    must(quern_schedule_add_system(schedule, &def, NULL));
    capture_reports(&reports);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "list it in `indexes`"));
    def.name = "twice";
    def.indexes[1] = scene.indexes[0];
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.indexes[1] = NULL;
    def.terms[0] = quern_term_write(scene.unit);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.flags = QUERN_SYSTEM_SERIAL;
    must(quern_schedule_add_system(schedule, &def, NULL));
    def = (quern_system_def){
        .name = "alone", .run = ask_other, .flags = QUERN_SYSTEM_EXCLUSIVE, .indexes = {scene.indexes[0]}};
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    quern_world *other = setup_world();
    quern_schedule *foreign;
    must(quern_schedule_create(other, NULL, &foreign));
    def.flags = 0;
    must_refuse(INVALID_ARGUMENT, other, quern_schedule_add_system(foreign, &def, NULL));
    quern_schedule_destroy(foreign);
    quern_world_destroy(other);
}

static uint32_t found_count;

static void ask(quern_context *context, const quern_view *view)
{
    const quern_entity *found;
    (void)view;
    found_count = quern_context_find(context, quern_context_user_data(context), 1, &found);
}

Test(index, destroyed_index_goes_with_the_last_system_that_declares_it)
{
    quern_schedule *schedule;
    quern_index *teams;
    quern_system system;
    must(quern_index_create(world, &(quern_index_def){.component = scene.unit, .field = "team"}, &teams));
    must(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def def = {.name = "ask", .run = ask, .indexes = {teams}, .user_data = teams};
    must(quern_schedule_add_system(schedule, &def, &system));
    quern_index_destroy(teams);
    must(quern_entity_destroy(world, entities[1]));
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(found_count, 20u);
    must(quern_schedule_remove_system(schedule, system));
}

/* ---------------------------------------------------------------------------------- state from elsewhere */

Test(index, worlds_that_follow_by_deltas_find_the_same)
{
    sorted_scene follower;
    quern_history *history;
    quern_delta_applier *applier;
    quern_byte_buffer bytes = {0};
    scene_open(&follower, setup_world(), false);
    must(quern_world_save(world, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(follower.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    scene_check(&follower, "after loading");
    must(quern_history_create(world, NULL, &history));
    must(quern_delta_applier_create(follower.world, &applier));
    must(quern_history_save(history, 0, NULL));
    for (uint64_t frame = 1; frame <= 60; frame++) {
        quern_delta *delta;
        for (uint32_t i = random_below(&numbers, 6); i > 0; i--) {
            quern_entity *entity = &entities[random_below(&numbers, 64)];
            const unit value = scene_unit(&numbers, entities, 64);
            if (quern_entity_is_alive(world, *entity) && random_chance(&numbers, 30))
                must(quern_entity_destroy(world, *entity));
            else if (quern_entity_is_alive(world, *entity))
                must(quern_entity_set(world, *entity, random_chance(&numbers, 80) ? scene.unit : scene.tag,
                                      &value));
            else
                must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1, entity));
        }
        must(quern_history_save(history, frame, NULL));
        must(quern_delta_create(history, frame - 1, frame, &delta));
        bytes.size_bytes = 0;
        must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
        quern_delta_destroy(delta);
        must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
        scene_check(&scene, "sender");
        scene_check(&follower, "follower");
    }
    quern_byte_buffer_release(&bytes);
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    scene_close(&follower);
    quern_world_destroy(follower.world);
}

/* ------------------------------------------------------------------------------------------- in frames */

static uint32_t found_before, found_after;

static void count_up(quern_context *context, const quern_view *view)
{
    unit *units = QUERN_COLUMN(view, 0, unit);
    if (view->ordinal == 0) {
        found_before = quern_context_find(context, scene.indexes[0], 0, NULL);
        quern_query_iterator it = quern_context_query(context, 0);
        cr_assert(quern_query_next(&it));
    }
    for (uint32_t i = 0; i < view->count; i++) {
        units[i].team = (int8_t)(units[i].team + 1);
        units[i].depth = -units[i].depth;
    }
}

static quern_schedule *schedule_of(const quern_system_def *def)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule, def, NULL));
    return schedule;
}

Test(index, the_first_system_of_a_frame_may_write_what_it_finds_by)
{
    const quern_system_def def = {.name = "count up",
                                  .run = count_up,
                                  .flags = QUERN_SYSTEM_SERIAL,
                                  .terms = {quern_term_write(scene.unit)},
                                  .indexes = {scene.indexes[0]},
                                  .queries = {scene.orders[0]}};
    quern_schedule *schedule = schedule_of(&def);
    for (int frame = 0; frame < 4; frame++) {
        /* a write at the time at which the frame begins, which nothing has read before the system does */
        must(quern_entity_set(world, entities[frame], scene.unit,
                              &(unit){.team = 0, .depth = (float)frame}));
        must(quern_schedule_run(schedule, NULL, 0.01));
        scene_check(&scene, "after a frame");
        cr_assert_eq(count_of(0), 0u);
        found_after = count_of(1);
        cr_assert_eq(found_after, found_before, "frame %d", frame);
    }
    quern_schedule_destroy(schedule);
}

static void never_called(quern_context *context, const quern_view *view)
{
    cr_assert_fail("the system runs without its index");
}

static uint32_t seen_event_count;

static void count_events(quern_context *context, const quern_view *view)
{
    seen_event_count += view->count;
}

Test(index, a_system_without_its_field_fails_the_frame_and_no_other_system)
{
    quern_event event = make_event(world, .name = "ping", .size_bytes = 4, .alignment_bytes = 4);
    quern_schedule *schedule = schedule_of(&(quern_system_def){.name = "finds",
                                                               .run = never_called,
                                                               .terms = {quern_term_read(scene.other)},
                                                               .indexes = {scene.indexes[0]}});
    must(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "hears", .run = count_events, .items = event}, NULL));
    must(quern_entity_add(world, entities[0], scene.other, &(uint64_t){1}));
    const quern_component_def narrow = {.name = "unit",
                                        .size_bytes = 4,
                                        .alignment_bytes = 4,
                                        .fields = {{"other", QUERN_FIELD_U32, 0, .count = 1}}};
    must(quern_component_redefine(world, scene.unit, &narrow, NULL, NULL));
    must(quern_world_emit(world, event, &(uint32_t){1}, 1));
    for (int frame = 0; frame < 2; frame++) {
        cr_assert_eq(quern_schedule_run(schedule, NULL, 0.01), QUERN_ERROR_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(quern_error_message(), "finds"), "%s", quern_error_message());
        cr_assert_not_null(strstr(quern_error_message(), "'team'"), "%s", quern_error_message());
        cr_assert_eq(seen_event_count, 1u, "the event was handled once");
    }
    quern_schedule_destroy(schedule);
}

Test(index, doubles_whose_rows_move_are_not_reported_again)
{
    captured_reports reports;
    quern_index *unique;
    uint32_t count;
    must(quern_index_create(
        world, &(quern_index_def){.component = scene.unit, .field = "layer", .is_unique = true}, &unique));
    must(quern_entity_set(world, entities[63], scene.unit, &(unit){.layer = 5}));
    capture_reports(&reports);
    must(quern_index_find(unique, 5, NULL, &count));
    cr_assert_eq(reports.log_count, 1u);
    must(quern_entity_destroy(world, entities[10])); /* the last row fills the gap */
    must(quern_index_find(unique, 5, NULL, &count));
    cr_assert_eq(reports.log_count, 1u);
    must(quern_entity_set(world, entities[30], scene.unit, &(unit){.layer = 40}));
    must(quern_entity_set(world, entities[20], scene.unit, &(unit){.layer = 50}));
    must(quern_index_find(unique, 5, NULL, &count));
    cr_assert_eq(reports.log_count, 3u);
    cr_assert_not_null(strstr(reports.last, "entities 30:1 and 40:1"), "in the order of entities");
    quern_index_destroy(unique);
}

/* ---------------------------------------------------------------------------------------- other layouts */

typedef struct wide_unit {
    double first;
    int32_t layer;
    int8_t team;
} wide_unit;

typedef struct narrow_unit {
    uint32_t other;
} narrow_unit;

Test(index, fields_are_found_again_in_other_layouts)
{
    const quern_entity *found;
    uint32_t count;
    quern_index *teams = scene.indexes[0];
    quern_query *ordered = scene.ordered[1];
    quern_index *by_offset;
    must(quern_index_create(world,
                            &(quern_index_def){.component = scene.unit,
                                               .type = QUERN_FIELD_I8,
                                               .offset_bytes = offsetof(unit, team)},
                            &by_offset));
    const quern_component_def wide = {.name = "unit",
                                      .size_bytes = sizeof(wide_unit),
                                      .alignment_bytes = _Alignof(wide_unit),
                                      .fields = QUERN_FIELDS(wide_unit, first, layer, team)};
    must(quern_component_redefine(world, scene.unit, &wide, NULL, NULL));
    must(quern_index_find(teams, 1, &found, &count));
    cr_assert_eq(count, 21u);
    must(quern_index_find(by_offset, 1, &found, &count));
    cr_assert_eq(count, 21u, "a described field that was given by its offset is found by its name");
    quern_index_destroy(by_offset);
    quern_query_iterator it = quern_query_iterate(ordered);
    must(it.result);
    cr_assert(quern_query_next(&it));
    cr_assert(quern_entity_equal(it.view.entities[0], entities[63]));
    const quern_component_def narrow = {.name = "unit",
                                        .size_bytes = sizeof(narrow_unit),
                                        .alignment_bytes = _Alignof(narrow_unit),
                                        .fields = QUERN_FIELDS(narrow_unit, other)};
    must(quern_component_redefine(world, scene.unit, &narrow, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_index_find(teams, 1, &found, &count));
    it = quern_query_iterate(ordered);
    cr_assert_eq(it.result, QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert(!quern_query_next(&it));
    must(quern_component_redefine(world, scene.unit, &wide, NULL, NULL));
    must(quern_index_find(teams, 0, &found, &count));
    cr_assert_eq(count, 64u);
}

/* ------------------------------------------------------------------------------------------- memory */

static failing_allocator *memory;

static void open_failing(void)
{
    memory = open_failing_world();
    scene_open(&scene, world, true);
    numbers = (random_source){11};
}

TestSuite(index_memory, .init = open_failing, .fini = close_scene);

Test(index_memory, what_fails_is_right_afterwards, .timeout = 120)
{
    uint32_t failures = 0;
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = 0; i < 6; i++) {
            quern_entity *entity = &entities[random_below(&numbers, 64)];
            const unit value = scene_unit(&numbers, entities, 64);
            if (quern_entity_is_alive(world, *entity) && random_chance(&numbers, 30))
                must(quern_entity_destroy(world, *entity));
            else if (quern_entity_is_alive(world, *entity))
                must(quern_entity_set(world, *entity,
                                      random_chance(&numbers, 80) ? scene.unit : scene.other, &value));
            else
                must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1, entity));
        }
        failing_allocator_fail_at(memory, 1 + round % 5);
        for (uint32_t i = 0; i < SCENE_INDEXES; i++) {
            const quern_entity *found;
            uint32_t count;
            const quern_result result = quern_index_find(scene.indexes[i], 0, &found, &count);
            cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
            failures += result != QUERN_OK;
        }
        for (uint32_t i = 0; i < SCENE_ORDERS; i++) {
            quern_query_iterator it = quern_query_iterate(scene.ordered[i]);
            cr_assert(it.result == QUERN_OK || it.result == QUERN_ERROR_OUT_OF_MEMORY);
            failures += it.result != QUERN_OK;
        }
        failing_allocator_heal(memory);
        scene_check(&scene, "after failures");
    }
    cr_assert_gt(failures, 10u);
}

/* A list of changes grows at its first, third, fifth, ninth ... change. */
Test(index_memory, changes_that_find_no_memory_are_found_later)
{
    static const uint32_t change_counts[] = {1, 2, 3, 5, 9, 17, 33, 64};
    uint32_t failures = 0;
    for (uint32_t i = 0; i < sizeof change_counts / sizeof *change_counts; i++)
        for (uint64_t call = 1; call <= 8; call++) {
            for (uint32_t k = 0; k < change_counts[i]; k++) {
                const unit value = scene_unit(&numbers, entities, 64);
                if (quern_entity_is_alive(world, entities[k]))
                    must(quern_entity_set(world, entities[k], scene.unit, &value));
                else
                    must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1,
                                                  &entities[k]));
            }
            failing_allocator_fail_at(memory, call);
            const quern_entity *found;
            uint32_t count;
            failures += quern_index_find(scene.indexes[0], 0, &found, &count) != QUERN_OK;
            failing_allocator_heal(memory);
            scene_check(&scene, "after failures");
            if (call % 4 == 0) {
                close_scene();
                memset(entities, 0, sizeof entities);
                open_failing();
            }
        }
    cr_assert_gt(failures, 10u);
}

Test(index_memory, creation_fails_as_a_whole)
{
    const quern_index_def def = {.name = "teams", .component = scene.unit, .field = "team"};
    for (uint32_t i = 0; i < 40; i++) {
        const unit value = scene_unit(&numbers, entities, 0);
        must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1, &entities[i]));
    }
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t failures = 0;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        quern_index *made = NULL;
        failing_allocator_fail_at(memory, call);
        result = quern_index_create(world, &def, &made);
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        failures += result != QUERN_OK;
        quern_index_destroy(made);
    }
    cr_assert_gt(failures, 3u);
    result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        quern_query *made = NULL;
        failing_allocator_fail_at(memory, call);
        result = quern_query_create(world, &scene.orders[0], &made);
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        quern_query_destroy(made);
    }
}

static uint32_t call_count;

static void count_call(quern_context *context, const quern_view *view)
{
    const quern_entity *found;
    (void)view;
    (void)quern_context_find(context, scene.indexes[0], 0, &found);
    quern_query_iterator it = quern_context_query(context, 0);
    while (quern_query_next(&it))
        call_count++;
}

Test(index_memory, frame_without_memory_does_not_call_the_system)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def def = {
        .name = "look", .run = count_call, .queries = {scene.orders[3]}, .indexes = {scene.indexes[0]}};
    must(quern_schedule_add_system(schedule, &def, NULL));
    must(quern_schedule_run(schedule, NULL, 0));
    uint32_t failures = 0;
    for (uint32_t round = 0; round < 60; round++) {
        for (uint32_t i = 0; i < 10; i++) {
            const unit value = scene_unit(&numbers, entities, 0);
            must(quern_entity_create_with(world, &scene.unit, (const void *[]){&value}, 1, &entities[i]));
        }
        call_count = 0;
        const bool has_failed =
            runs_out_of_memory(memory, 1 + round % 4, quern_schedule_run(schedule, NULL, 0));
        failures += has_failed;
        cr_assert((call_count > 0) == !has_failed);
        must(quern_schedule_run(schedule, NULL, 0));
        scene_check(&scene, "after a frame");
    }
    cr_assert_gt(failures, 3u);
}
