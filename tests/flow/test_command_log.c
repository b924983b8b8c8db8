/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Command logs: what they list of each kind of command, where sync points are, what they say about drops, and random
 * programs whose callbacks note what they record. */

#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

typedef struct Like {
    quern_entity target;
    uint32_t strength;
    uint32_t unused;
} Like;

typedef struct Likes {
    QUERN_LIST(Like) edges;
} Likes;

static failing_allocator *memory;
static quern_schedule *schedule;
static quern_command_log *command_log;
static quern_component number, label, toggle;
static quern_relation near, parent, many;
static quern_event note, alarm_event;
static quern_prefab prefab;

static void open_scene(void)
{
    memory = open_failing_world();
    label = setup_tag(world, "label");
    must(quern_component_register(
        world,
        &(quern_component_def){
            .name = "toggle", .size_bytes = 4, .alignment_bytes = 4, .can_disable = true},
        &toggle));
    quern_field field = {.name = "number", .type = QUERN_FIELD_U64};
    must(quern_component_register(
        world,
        &(quern_component_def){.name = "number", .size_bytes = 8, .alignment_bytes = 8, .fields = {field}},
        &number));
    must(quern_relation_register(world, &(quern_relation_def){.name = "near"}, &near));
    quern_component likings;
    must(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Likes),
                               .fields = {QUERN_LIST_FIELD(Likes, edges, Like, target, strength)}},
        &likings));
    must(quern_relation_register(
        world, &(quern_relation_def){.name = "many", .many = true, .value = likings}, &many));
    parent = quern_world_parent(world);
    (void)quern_world_disabled_tag(world);
    must(quern_event_register(
        world, &(quern_event_def){.name = "note", .size_bytes = 8, .alignment_bytes = 8}, &note));
    must(quern_event_register(world, &(quern_event_def){.name = "alarm"}, &alarm_event));
    const quern_entity root = setup_entity_with(world, &label, 1);
    must(quern_prefab_capture(world, root, &prefab));
    must(quern_entity_destroy(world, root));
    schedule = setup_phases(world, 2);
    must(quern_command_log_create(NULL, &command_log));
    must(quern_schedule_set_command_log(schedule, command_log));
}

static void close_scene(void)
{
    quern_command_log_destroy(command_log);
    close_valid_world();
}

TestSuite(command_log, .init = open_scene, .fini = close_scene, .timeout = 240);

static quern_command_log_stats stats_of_log(void)
{
    quern_command_log_stats stats;
    must(quern_command_log_get_stats(command_log, &stats));
    return stats;
}

static quern_logged_command command_at(uint32_t i)
{
    quern_logged_command command;
    must(quern_command_log_get(command_log, i, &command));
    return command;
}

static quern_logged_sync sync_at(uint32_t i)
{
    quern_logged_sync sync;
    must(quern_command_log_get_sync(command_log, i, &sync));
    return sync;
}

/* --------------------------------------------------------------------------------------- every kind */

static quern_entity a, b, c;

static void record_each_kind(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity made;
    const uint64_t one = 1;
    const Like edge = {.strength = 5};
    const quern_component both[] = {number, label};
    must(quern_commands_create_with(commands, both, (const void *[]){&one, NULL}, 2, &made));
    must(quern_commands_spawn(commands, prefab, NULL, NULL));
    must(quern_commands_clone(commands, a, NULL, NULL));
    must(quern_commands_add(commands, a, label, NULL));
    must(quern_commands_set(commands, a, number, &one));
    must(quern_commands_remove(commands, a, label));
    must(quern_commands_accumulate(commands, made, number, &one, QUERN_SUM));
    must(quern_commands_relate(commands, a, near, b));
    must(quern_commands_unrelate(commands, a, near));
    must(quern_commands_relate(commands, a, many, b));
    must(quern_commands_relate_with(commands, a, many, made, &edge));
    must(quern_commands_set_edge_value(commands, a, many, b, &edge));
    must(quern_commands_unrelate_from(commands, a, many, b));
    must(quern_commands_set_name(commands, a, "gun"));
    must(quern_commands_set_component_enabled(commands, b, toggle, false));
    must(quern_commands_set_component_enabled(commands, b, toggle, true));
    must(quern_commands_set_enabled(commands, c, false));
    must(quern_commands_set_enabled(commands, c, true));
    must(quern_commands_destroy(commands, c));
    cr_assert(quern_context_emit(context, alarm_event, NULL, 2));
    cr_assert(quern_context_emit(context, note, &one, 1));
    cr_assert(quern_context_emit(context, note, &one, 1));
}

Test(command_log, each_kind_is_listed_with_its_entity_and_component)
{
    a = setup_entity_with(world, &number, 1);
    b = setup_entity_with(world, &toggle, 1);
    c = setup_entity(world);
    const quern_system system = make_system(schedule, "all", NULL, .begin = record_each_kind, .phase = 1,
                                            .emits = {note, alarm_event});
    must_run(schedule, NULL);
    const quern_component near_component = quern_relation_component(near),
                          many_component = quern_relation_component(many), none = {0};
    const struct {
        quern_command_kind kind;
        quern_entity entity;
        quern_component component;
        quern_entity other;
        uint64_t command_count;
    } expected[] = {
        {QUERN_COMMAND_CREATE, {0}, number, {0}, 3},
        {QUERN_COMMAND_SPAWN, {0}, none, {0}, 2},
        {QUERN_COMMAND_CLONE, {0}, none, a, 1},
        {QUERN_COMMAND_ADD, a, label, {0}, 1},
        {QUERN_COMMAND_SET, a, number, {0}, 1},
        {QUERN_COMMAND_REMOVE, a, label, {0}, 1},
        {QUERN_COMMAND_RELATE, a, near_component, b, 1},
        {QUERN_COMMAND_UNRELATE, a, near_component, {0}, 1},
        {QUERN_COMMAND_RELATE, a, many_component, b, 1},
        {QUERN_COMMAND_RELATE, a, many_component, {1}, 1},
        {QUERN_COMMAND_SET_EDGE_VALUE, a, many_component, b, 1},
        {QUERN_COMMAND_UNRELATE, a, many_component, b, 1},
        {QUERN_COMMAND_SET_NAME, a, none, {0}, 1},
        {QUERN_COMMAND_DISABLE, b, toggle, {0}, 1},
        {QUERN_COMMAND_ENABLE, b, toggle, {0}, 1},
        {QUERN_COMMAND_DISABLE, c, none, {0}, 1},
        {QUERN_COMMAND_ENABLE, c, none, {0}, 1},
        {QUERN_COMMAND_DESTROY, c, none, {0}, 1},
        {QUERN_COMMAND_ACCUMULATE, {0}, number, {0}, 1},
        {QUERN_COMMAND_EMIT, {0}, none, {0}, 2},
        {QUERN_COMMAND_EMIT, {0}, none, {0}, 2},
    };
    const quern_entity made = command_at(0).entity;
    cr_assert(quern_entity_is_alive(world, made));
    cr_assert_eq(stats_of_log().count, COUNT_OF(expected));
    cr_assert_eq(stats_of_log().sync_count, 1u);
    cr_assert_eq(sync_at(0).place, QUERN_SYNC_PHASE);
    cr_assert_eq(sync_at(0).phase, 1u);
    cr_assert_eq(sync_at(0).count, COUNT_OF(expected));
    uint64_t command_count = 0;
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        const quern_logged_command command = command_at(i);
        const bool is_of_made = i < 3 || command.kind == QUERN_COMMAND_ACCUMULATE;
        const quern_entity other = expected[i].other.bits == 1 ? made : expected[i].other;
        cr_assert_eq(command.kind, expected[i].kind, "%u is %s", i,
                     quern_command_kind_string(command.kind));
        cr_assert_eq(command.system.bits, system.bits);
        cr_assert_eq(command.callback, 0u);
        cr_assert_eq(command.is_new, is_of_made, "%u", i);
        cr_assert(!command.is_dropped && command.dropped_count == 0 && !command.is_of_view);
        if (is_of_made)
            cr_assert(quern_entity_is_alive(world, command.entity), "%u", i);
        else
            cr_assert_eq(command.entity.bits, expected[i].entity.bits, "%u", i);
        cr_assert_eq(command.other.bits, other.bits, "%u", i);
        cr_assert_eq(command.command_count, expected[i].command_count, "%u", i);
        if (expected[i].component.bits == 0) {
            cr_assert(command.component_count == 0 && command.components == NULL, "%u", i);
        } else
            cr_assert_eq(command.components[0].bits, expected[i].component.bits, "%u", i);
        if (command.kind != QUERN_COMMAND_EMIT) command_count += command.command_count;
    }
    cr_assert_eq(command_count, stats_of_frame(schedule).command_count);
    cr_assert_eq(command_at(0).component_count, 2u);
    cr_assert_eq(command_at(0).components[1].bits, label.bits);
    cr_assert_eq(command_at(1).prefab.bits, prefab.bits);
    cr_assert_eq(command_at(18).entity.bits, made.bits);
    cr_assert_eq(command_at(19).event.bits, note.bits);
    cr_assert_eq(command_at(20).event.bits, alarm_event.bits);
    cr_assert_str_eq(quern_command_kind_string(QUERN_COMMAND_SET_EDGE_VALUE), "set edge value");
    cr_assert_str_eq(quern_command_kind_string((quern_command_kind)99), "unknown kind");
}

/* --------------------------------------------------------------------------------------------- drops */

static void record_drops(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity made;
    must(quern_commands_create(commands, &made));
    must(quern_commands_set_name(commands, made, "gun"));
    must(quern_commands_destroy(commands, a));
    must(quern_commands_add(commands, a, label, NULL));
    must(quern_commands_relate(commands, b, parent, c));
    must(quern_commands_relate(commands, c, parent, b));
    must(quern_commands_relate(commands, b, near, a));
    must(quern_commands_set_edge_value(commands, b, many, c, &(Like){.strength = 1}));
    must(quern_commands_accumulate(commands, b, number, &(uint64_t){1}, QUERN_SUM));
    must(quern_commands_accumulate(commands, a, number, &(uint64_t){1}, QUERN_SUM));
}

Test(command_log, each_dropped_command_says_why)
{
    static const int reasons[] = {-1,
                                  QUERN_DROP_SIBLING_NAME_TAKEN,
                                  -1,
                                  QUERN_DROP_DESTROYED,
                                  -1,
                                  QUERN_DROP_CYCLE,
                                  QUERN_DROP_TARGET_DEAD,
                                  QUERN_DROP_NO_EDGE,
                                  QUERN_DROP_NO_COMPONENT,
                                  QUERN_DROP_DESTROYED};
    a = setup_entity_with(world, &number, 1);
    b = setup_entity(world);
    c = setup_entity(world);
    must(quern_entity_set_name(world, setup_entity(world), "gun"));
    make_system(schedule, "drops", NULL, .begin = record_drops);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_log().count, COUNT_OF(reasons));
    for (uint32_t i = 0; i < COUNT_OF(reasons); i++) {
        const quern_logged_command command = command_at(i);
        cr_assert_eq(command.is_dropped, reasons[i] >= 0, "%u %s", i,
                     quern_drop_reason_string(command.reason));
        if (reasons[i] < 0) continue;
        cr_assert_eq((int)command.reason, reasons[i], "%u %s", i, quern_drop_reason_string(command.reason));
        cr_assert_eq(command.dropped_count, 1u);
    }
}

/* --------------------------------------------------------------------------------- places and limits */

static void end_with_create(quern_context *context)
{
    (void)record_entity(quern_context_commands(context));
    cr_assert(quern_context_emit(context, alarm_event, NULL, 1));
}

Test(command_log, end_callbacks_are_told_from_views)
{
    (void)setup_entity_with(world, &number, 1);
    make_system(schedule, "ends", idle_run, .begin = end_with_create, .end = end_with_create,
                .terms = {quern_term_read(number)}, .emits = {alarm_event});
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_log().count, 4u);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(command_at(i).callback, i % 2 == 0 ? 0u : 2u);
        cr_assert_eq(command_at(i).is_end, i % 2 == 1);
    }
}

static void create_one(quern_context *context)
{
    (void)record_entity(quern_context_commands(context));
}

static void react_once(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_remove(quern_context_commands(context), view->entities[i], label));
}

static void label_one(quern_context *context)
{
    (void)record_entity_with(quern_context_commands(context), &label, NULL, 1);
}

Test(command_log, each_sync_point_has_its_place)
{
    make_system(schedule, "first", NULL, .begin = label_one);
    make_system(schedule, "alone", NULL, .begin = idle_callback, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .after = {"first"});
    make_system(schedule, "last", NULL, .begin = create_one, .phase = 1);
    make_system(schedule, "react", react_once, .terms = {quern_term_with(label)},
                .reacts_to = QUERN_REACT_ADDED);
    (void)record_entity(quern_world_commands(world));
    must_run(schedule, NULL);
    const struct {
        quern_sync_place place;
        uint32_t phase;
        const char *before, *system;
    } expected[] = {{QUERN_SYNC_FRAME_START, 0, NULL, NULL},
                    {QUERN_SYNC_PHASE, 0, "alone", "first"},
                    {QUERN_SYNC_REACTIONS, 0, NULL, "react"},
                    {QUERN_SYNC_PHASE, 1, NULL, "last"}};
    cr_assert_eq(stats_of_log().sync_count, COUNT_OF(expected));
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        const quern_logged_sync sync = sync_at(i);
        cr_assert_eq(sync.place, expected[i].place, "%u", i);
        cr_assert_eq(sync.phase, expected[i].phase, "%u", i);
        cr_assert_eq(sync.phase_name != NULL, sync.place == QUERN_SYNC_PHASE);
        if (sync.phase_name != NULL)
            cr_assert_str_eq(sync.phase_name, expected[i].phase == 0 ? "p0" : "p1");
        cr_assert(sync.first == i && sync.count == 1 && sync.left_out_count == 0, "%u", i);
        const uint32_t before =
            expected[i].before != NULL ? quern_schedule_find_system(schedule, expected[i].before).bits : 0;
        const uint32_t system =
            expected[i].system != NULL ? quern_schedule_find_system(schedule, expected[i].system).bits : 0;
        cr_assert_eq(sync.before.bits, before, "%u", i);
        cr_assert_eq(command_at(i).system.bits, system, "%u", i);
    }
    must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "first"), false));
    must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "last"), false));
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_log().sync_count, 0u, "a frame without commands");
    cr_assert_eq(stats_of_log().frame_index, 1u);
}

static void create_many(quern_context *context)
{
    for (uint32_t i = 0; i < 100; i++)
        must(quern_commands_destroy(quern_context_commands(context),
                                    record_entity(quern_context_commands(context))));
}

Test(command_log, commands_beyond_its_size_are_counted)
{
    quern_command_log *small;
    must(quern_command_log_create(&(quern_command_log_def){.max_command_count = 150}, &small));
    must(quern_schedule_set_command_log(schedule, small));
    make_system(schedule, "first", NULL, .begin = create_many);
    make_system(schedule, "last", NULL, .begin = create_many, .phase = 1);
    must_run(schedule, NULL);
    quern_command_log_stats stats;
    must(quern_command_log_get_stats(small, &stats));
    cr_assert(stats.count == 150 && stats.left_out_count == 250 && stats.sync_count == 2);
    quern_logged_sync sync;
    must(quern_command_log_get_sync(small, 0, &sync));
    cr_assert(sync.count == 150 && sync.left_out_count == 50);
    must(quern_command_log_get_sync(small, 1, &sync));
    cr_assert(sync.count == 0 && sync.left_out_count == 200);
    cr_assert(!stats_of_log().has_frame, "the other log was taken from the schedule");
    quern_command_log_destroy(small);
    must_run(schedule, NULL);
}

static void create_with_components(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component list[] = {number, label, toggle};
    (void)record_entity_with(commands, list, NULL, 3);
    (void)record_entity_with(commands, list, NULL, 2);
    must(quern_commands_destroy(commands, a));
    for (uint64_t i = 0; i < 10240; i++)
        cr_assert(quern_context_emit(context, note, &i, 1));
}

Test(command_log, events_of_one_callback_are_listed_as_one)
{
    a = setup_entity(world);
    make_system(schedule, "first", NULL, .begin = create_with_components, .emits = {note});
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_log().count, 4u);
    cr_assert(command_at(3).kind == QUERN_COMMAND_EMIT && command_at(3).command_count == 10240);
}

/* The list of components is full before the list of commands. Events of one callback are one, in however many blocks. */
Test(command_log, what_is_left_out_is_the_end_of_the_frame)
{
    quern_command_log *small;
    a = setup_entity(world);
    must(quern_command_log_create(&(quern_command_log_def){.max_command_count = 2}, &small));
    must(quern_schedule_set_command_log(schedule, small));
    make_system(schedule, "first", NULL, .begin = create_with_components, .emits = {note});
    must_run(schedule, NULL);
    quern_command_log_stats stats;
    quern_logged_command command;
    must(quern_command_log_get_stats(small, &stats));
    cr_assert(stats.count == 1 && stats.left_out_count == 3);
    must(quern_command_log_get(small, 0, &command));
    cr_assert(command.kind == QUERN_COMMAND_CREATE && command.component_count == 3);
    quern_command_log_destroy(small);
}

Test(command_log, sync_points_beyond_the_maximum_are_counted)
{
    must(quern_schedule_set_fixed_step(schedule, 0, 1.0 / 512, 300));
    make_system(schedule, "often", NULL, .begin = create_one, .emits = {alarm_event});
    must(quern_schedule_run(schedule, NULL, 1.0));
    cr_assert_eq(stats_of_log().sync_count, QUERN_MAX_LOGGED_SYNCS);
    cr_assert_eq(stats_of_log().left_out_sync_count, 300u - QUERN_MAX_LOGGED_SYNCS);
    cr_assert_eq(stats_of_log().left_out_count, 300u - QUERN_MAX_LOGGED_SYNCS);
}

/* The last of many callbacks: nothing can be gathered. */
static void create_and_fail(quern_context *context)
{
    create_one(context);
    failing_allocator_fail_at(memory, 1);
}

Test(command_log, sync_points_that_cannot_gather_are_not_counted)
{
    enum { STREAMS = 200 }; /* more than the list of an earlier sync point has room for */
    must(quern_schedule_set_fixed_step(schedule, 0, 1.0 / 512, 300));
    make_system(schedule, "often", NULL, .begin = create_one);
    for (uint32_t i = 0; i < STREAMS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "more %u", i);
        make_system(schedule, name, NULL, .phase = 1,
                    .begin = i + 1 < STREAMS ? create_one : create_and_fail);
    }
    cr_assert_eq(quern_schedule_run(schedule, NULL, 1.0), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(quern_schedule_kept_command_count(schedule), (uint64_t)STREAMS);
    cr_assert_eq(stats_of_log().sync_count, QUERN_MAX_LOGGED_SYNCS);
    cr_assert_eq(stats_of_log().left_out_sync_count, 300u - QUERN_MAX_LOGGED_SYNCS);
}

static void destroy_and_accumulate(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    failing_allocator_pause(memory, true);
    must(quern_commands_destroy(commands, a));
    must(quern_commands_accumulate(commands, b, number, &(uint64_t){1}, QUERN_SUM));
    failing_allocator_pause(memory, false);
}

/* A failed sync point marks accumulated values on dead entities for itself alone. */
Test(command_log, kept_values_have_the_entity_that_was_recorded)
{
    enum { ALLOCATIONS = 80 }; /* more than the frame makes */
    uint32_t kept_count = 0;
    for (uint64_t n = 1; n <= ALLOCATIONS; n++) {
        if (n > 1) {
            close_scene();
            open_scene();
        }
        a = setup_entity_with(world, &number, 1);
        b = setup_entity_with(world, &number, 1);
        must(quern_entity_destroy(world, b));
        const quern_system ends = make_system(schedule, "ends", NULL, .begin = destroy_and_accumulate);
        (void)runs_out_of_memory(memory, n, quern_schedule_run(schedule, NULL, 0));
        if (quern_schedule_kept_command_count(schedule) == 0) continue;
        kept_count++;
        must(quern_schedule_set_system_enabled(schedule, ends, false));
        must_run(schedule, NULL);
        cr_assert_eq(stats_of_log().count, 2u);
        cr_assert_eq(command_at(1).entity.bits, b.bits, "allocation %llu", (unsigned long long)n);
        cr_assert_eq(command_at(1).reason, QUERN_DROP_DEAD);
    }
    cr_assert_gt(kept_count, 0u);
}

/* ---------------------------------------------------------------------------------------- lifetimes */

Test(command_log, a_log_and_its_schedule_may_end_in_any_order)
{
    quern_schedule *other = setup_schedule(world);
    quern_command_log_stats stats;
    quern_logged_sync sync;
    quern_logged_command command;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_command_log(other, command_log));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_set_command_log(NULL, command_log));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get_stats(NULL, &stats));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get_stats(command_log, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get_sync(NULL, 0, &sync));
    must_refuse(INVALID_ARGUMENT, world, quern_command_log_get_sync(command_log, 0, &sync));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get_sync(command_log, 0, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get(NULL, 0, &command));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_get(command_log, 0, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_command_log_get(command_log, 0, &command));
    must_refuse(NULL_ARGUMENT, world, quern_command_log_create(NULL, NULL));
    quern_command_log *made = NULL;
    must_refuse(INVALID_ARGUMENT, world,
                quern_command_log_create(
                    &(quern_command_log_def){.max_command_count = QUERN_MAX_LOGGED_COMMANDS + 1}, &made));
    quern_command_log_def def = {.allocator = failing_allocator_interface(memory)};
    cr_assert(runs_out_of_memory(memory, 1, quern_command_log_create(&def, &made)));
    must(quern_command_log_create(&def, &made));
    must(quern_schedule_set_command_log(other, made));
    must(quern_schedule_set_command_log(other, made));
    quern_schedule_destroy(other);
    must(quern_schedule_set_command_log(schedule, made));
    must_run(schedule, NULL);
    must(quern_command_log_get_stats(made, &stats));
    cr_assert(stats.has_frame && stats.count == 0);
    quern_command_log_destroy(made);
    must_run(schedule, NULL);
    quern_command_log_destroy(NULL);
}

Test(command_log, names_of_phases_stay_until_the_next_frame)
{
    quern_schedule *other = setup_phases(world, 2);
    quern_command_log_destroy(command_log);
    must(quern_command_log_create(NULL, &command_log));
    must(quern_schedule_set_command_log(other, command_log));
    make_system(other, "creates", NULL, .begin = create_one, .phase = 1);
    must_run(other, NULL);
    char name[QUERN_MAX_NAME_BYTES + 1];
    snprintf(name, sizeof name, "%s", sync_at(0).phase_name);
    quern_schedule_destroy(other);
    cr_assert_str_eq(sync_at(0).phase_name, name);
}

/* ------------------------------------------------------------------------------------ random programs */

enum { ENTITIES = 600, SYSTEMS = 5, VIEWS = 64, NOTED = 4096, FRAMES = 4, SEEDS = effort(6, 3, 1) };

/* What a callback records, as it is listed. */
typedef struct noted {
    quern_command_kind kind;
    quern_entity entity; /* null: an entity that the callback creates */
    quern_component component;
    quern_entity other;
    uint64_t event_count;
} noted;

typedef struct notes {
    uint32_t count;
    noted list[NOTED];
} notes;

static struct {
    notes commands, values;
    uint64_t event_counts[2];
} recorded[SYSTEMS][VIEWS + 2];
static quern_entity known[ENTITIES];
static uint64_t salt;

static void note_one(notes *to, quern_command_kind kind, quern_entity entity, quern_component component,
                     quern_entity other)
{
    cr_assert_lt(to->count, NOTED);
    if (quern_entity_is_provisional(entity)) entity = quern_entity_null();
    to->list[to->count++] = (noted){.kind = kind, .entity = entity, .component = component, .other = other};
}

static void draw_command(quern_context *context, random_source *random, uint32_t system, uint32_t callback)
{
    quern_commands *commands = quern_context_commands(context);
    notes *to = &recorded[system][callback].commands;
    const quern_entity entity = known[random_below(random, ENTITIES)],
                       other = known[random_below(random, ENTITIES)], copied = entity, nothing = {0};
    const quern_component none = {0};
    const uint64_t value = random_next(random);
    if (!quern_context_is_alive(context, entity) || !quern_context_is_alive(context, other)) return;
    quern_entity made;
    switch (random_below(random, 13)) {
    case 0:
        must(quern_commands_create_with(commands, &number, (const void *[]){&value}, 1, &made));
        note_one(to, QUERN_COMMAND_CREATE, made, number, nothing);
        must(quern_commands_add(commands, made, label, NULL));
        note_one(to, QUERN_COMMAND_ADD, made, label, nothing);
        break;
    case 1:
        must(quern_commands_spawn(commands, prefab, NULL, &made));
        note_one(to, QUERN_COMMAND_SPAWN, made, none, nothing);
        break;
    case 2:
        must(quern_commands_clone(commands, copied, NULL, &made));
        note_one(to, QUERN_COMMAND_CLONE, made, none, copied);
        break;
    case 3:
        must(quern_commands_destroy(commands, entity));
        note_one(to, QUERN_COMMAND_DESTROY, entity, none, nothing);
        break;
    case 4:
        must(quern_commands_add(commands, entity, label, NULL));
        note_one(to, QUERN_COMMAND_ADD, entity, label, nothing);
        break;
    case 5:
        must(quern_commands_remove(commands, entity, toggle));
        note_one(to, QUERN_COMMAND_REMOVE, entity, toggle, nothing);
        break;
    case 6:
        must(quern_commands_set(commands, entity, number, &value));
        note_one(to, QUERN_COMMAND_SET, entity, number, nothing);
        break;
    case 7:
        must(quern_commands_accumulate(commands, entity, number, &value, QUERN_SUM));
        note_one(&recorded[system][callback].values, QUERN_COMMAND_ACCUMULATE, entity, number, nothing);
        break;
    case 8:
        if (quern_entity_equal(entity, other)) break;
        must(quern_commands_relate(commands, entity, parent, other));
        note_one(to, QUERN_COMMAND_RELATE, entity, quern_relation_component(parent), other);
        break;
    case 9:
        must(quern_commands_unrelate(commands, entity, parent));
        note_one(to, QUERN_COMMAND_UNRELATE, entity, quern_relation_component(parent), nothing);
        break;
    case 10:
        must(quern_commands_set_component_enabled(commands, entity, toggle, value % 2 == 0));
        note_one(to, value % 2 == 0 ? QUERN_COMMAND_ENABLE : QUERN_COMMAND_DISABLE, entity, toggle,
                 nothing);
        break;
    case 11:
        must(quern_commands_set_name(commands, entity, value % 3 == 0 ? "a" : "b"));
        note_one(to, QUERN_COMMAND_SET_NAME, entity, none, nothing);
        break;
    default:
        cr_assert(quern_context_emit(context, value % 2 == 0 ? note : alarm_event, &value, 1));
        recorded[system][callback].event_counts[value % 2]++;
    }
}

static void record_view(quern_context *context, const quern_view *view, random_source *random)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    notes *to = &recorded[system][1 + view->ordinal].commands;
    quern_commands *commands = quern_context_commands(context);
    const bool destroys = random_chance(random, 20);
    must(destroys ? quern_commands_destroy_view(commands, view, NULL)
                  : quern_commands_set_view(commands, view, NULL, number, &(uint64_t){7}));
    for (uint32_t i = 0; i < view->count; i++)
        note_one(to, destroys ? QUERN_COMMAND_DESTROY : QUERN_COMMAND_SET, view->entities[i],
                 destroys ? (quern_component){0} : number, quern_entity_null());
}

static void record_random(quern_context *context, const quern_view *view)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    const uint32_t callback = 1 + view->ordinal;
    cr_assert_lt(callback, VIEWS + 2);
    random_source random = {salt ^ (uint64_t)quern_entity_index(view->entities[0]) << 8 ^ system};
    failing_allocator_pause(memory, true);
    const uint32_t count = random_below(&random, 12);
    for (uint32_t i = 0; i < count; i++)
        draw_command(context, &random, system, callback);
    if (random_chance(&random, 30)) record_view(context, view, &random);
    failing_allocator_pause(memory, false);
}

static void begin_random(quern_context *context)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    random_source random = {salt ^ 77 ^ system};
    failing_allocator_pause(memory, true);
    for (uint32_t i = 0; i < 5; i++)
        draw_command(context, &random, system, 0);
    failing_allocator_pause(memory, false);
}

static void open_random(uint64_t seed, uint32_t style)
{
    random_source random = {seed};
    quern_schedule_destroy(schedule);
    schedule = setup_schedule_as(world, schedule_style(style), 1);
    must(quern_schedule_set_command_log(schedule, command_log));
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern_component all[] = {number, toggle};
        known[i] = setup_entity_with(world, all, random_chance(&random, 50) ? 1 : 2);
        if (random_chance(&random, 30)) must(quern_entity_add(world, known[i], label, NULL));
    }
    static const char *const names[SYSTEMS] = {"r0", "r1", "r2", "r3", "r4"};
    for (uint32_t i = 0; i < SYSTEMS; i++)
        make_system(schedule, names[i], record_random, .begin = i % 2 == 0 ? begin_random : NULL,
                    .terms = {i == 3 ? quern_term_write(toggle) : quern_term_read(number)},
                    .user_data = (void *)(uintptr_t)i, .emits = {note, alarm_event});
}

static void assert_listed(const noted *expected, uint32_t *at, uint32_t system, uint32_t callback)
{
    const quern_logged_command command = command_at((*at)++);
    cr_assert_eq(command.kind, expected->kind, "%u: %s instead of %s", *at - 1,
                 quern_command_kind_string(command.kind), quern_command_kind_string(expected->kind));
    char name[3] = {'r', (char)('0' + system)};
    cr_assert_eq(command.system.bits, quern_schedule_find_system(schedule, name).bits);
    cr_assert_eq(command.callback, callback);
    cr_assert_eq(command.is_new, quern_entity_is_null(expected->entity));
    if (!command.is_new) cr_assert_eq(command.entity.bits, expected->entity.bits);
    cr_assert_eq(command.other.bits, expected->other.bits);
    if (expected->component.bits != 0) cr_assert_eq(command.components[0].bits, expected->component.bits);
}

/* The log is what the callbacks have noted, one after another. */
static void assert_log_is_noted(void)
{
    uint32_t at = 0;
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t s = 0; s < SYSTEMS; s++)
            for (uint32_t v = 0; v < VIEWS + 2; v++) {
                const notes *list = part == 0 ? &recorded[s][v].commands : &recorded[s][v].values;
                for (uint32_t i = 0; i < list->count; i++)
                    assert_listed(&list->list[i], &at, s, v);
            }
    for (uint32_t e = 0; e < 2; e++)
        for (uint32_t s = 0; s < SYSTEMS; s++)
            for (uint32_t v = 0; v < VIEWS + 2; v++) {
                if (recorded[s][v].event_counts[e] == 0) continue;
                const quern_logged_command command = command_at(at++);
                cr_assert_eq(command.kind, QUERN_COMMAND_EMIT);
                cr_assert_eq(command.event.bits, (e == 0 ? note : alarm_event).bits);
                cr_assert_eq(command.callback, v);
                cr_assert_eq(command.command_count, recorded[s][v].event_counts[e]);
            }
    cr_assert_eq(at, stats_of_log().count);
}

/* The dropped commands add up to the report. */
static void assert_drops_are_reported(void)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < stats_of_log().count; i++)
        total += command_at(i).dropped_count;
    cr_assert_eq(total, stats_of_frame(schedule).dropped_count);
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command drop;
        must(quern_schedule_get_dropped_command(schedule, i, &drop));
        uint64_t count = 0;
        for (uint32_t k = 0; k < stats_of_log().count; k++) {
            const quern_logged_command command = command_at(k);
            if (command.system.bits == drop.system.bits && command.reason == drop.reason)
                count += command.dropped_count;
        }
        cr_assert_eq(count, drop.count, "%s of %s", quern_drop_reason_string(drop.reason),
                     drop.system_name);
    }
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    random_source source = {hash ^ word};
    return random_next(&source);
}

static uint64_t hash_of_log(uint64_t hash)
{
    for (uint32_t i = 0; i < stats_of_log().count; i++) {
        const quern_logged_command command = command_at(i);
        hash = mix(hash, quern_entity_index(command.entity));
        hash = mix(hash, command.dropped_count);
        hash = mix(hash, command.is_dropped ? 1u + command.reason : 0);
    }
    return hash;
}

/* Returns a hash of all logs, which is the same with each setting. */
static uint64_t play_random(uint64_t seed, frame_setting setting, uint32_t *out_dropped)
{
    uint64_t hash = 0;
    open_random(seed, setting.style);
    if (seed % 2 == 1) schedule->playback.parallel_command_count = 1;
    quern_jobs *jobs = setup_jobs(setting.thread_count);
    for (uint32_t i = 0; i < FRAMES; i++) {
        memset((void *)recorded, 0, sizeof recorded);
        salt = seed * 100 + i;
        must_run(schedule, jobs);
        assert_log_is_noted();
        assert_drops_are_reported();
        *out_dropped += (uint32_t)stats_of_frame(schedule).dropped_count;
        hash = hash_of_log(hash);
    }
    quern_jobs_destroy(jobs);
    return hash;
}

Test(command_log, random_programs_are_listed_as_they_were_recorded)
{
    uint32_t dropped_count = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t first = 0;
        for (uint32_t i = 0; i < SETTING_COUNT; i++) {
            if (i + seed > 1) {
                close_scene();
                open_scene();
            }
            const uint64_t hash = play_random(seed, frame_setting_at(i, seed), &dropped_count);
            if (i == 0) first = hash;
            cr_assert_eq(hash, first, "seed %u, setting %u", seed, i);
        }
    }
    cr_assert_gt(dropped_count, 0u);
}

Test(command_log, frames_without_memory_list_nothing_until_they_succeed)
{
    open_random(3, 0);
    memset((void *)recorded, 0, sizeof recorded);
    salt = 5;
    uint64_t n = 1;
    for (; runs_out_of_memory(memory, n, quern_schedule_run(schedule, NULL, 0)); n++) {
        const quern_command_log_stats stats = stats_of_log();
        cr_assert(stats.count == 0 && stats.sync_count == 0 && stats.left_out_count == 0);
        must(quern_schedule_discard_commands(schedule));
        memset((void *)recorded, 0, sizeof recorded);
    }
    cr_assert_gt(n, 1u);
    assert_log_is_noted();
    assert_drops_are_reported();
}
