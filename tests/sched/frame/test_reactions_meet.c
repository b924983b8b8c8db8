/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

/* Reactions together with other work of a sync point: accumulated values, disabled components, events, and
 * their own commands when memory is missing. */

typedef struct health {
    int32_t points;
} health;

static quern_schedule *schedule;
static quern_component life, dead;

static void open_as(const quern_world_def *def)
{
    must(quern_world_create(def, &world));
    must(quern_component_register(
        world,
        &(quern_component_def){.name = "life",
                               .size_bytes = sizeof(health),
                               .alignment_bytes = _Alignof(health),
                               .fields = {{"points", QUERN_FIELD_I32, 0, .count = 1}},
                               .can_disable = true},
        &life));
    dead = setup_tag(world, "dead");
}

static void open_world(void)
{
    open_as(NULL);
    schedule = setup_phases(world, 2);
}

static quern_entity living(int32_t points)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &life, (const void *const[]){&(health){points}}, 1, &entity));
    return entity;
}

/* What the reaction below was shown. */
typedef struct watched {
    uint32_t row_count, view_count, disabled_count, kinds;
    int64_t points;
    quern_entity last;
} watched;

static void watch(quern_context *context, const quern_view *view)
{
    watched *seen = quern_context_user_data(context);
    const health *values = quern_view_read(view, 0);
    const uint32_t count = view->count;
    seen->view_count++;
    seen->row_count += count;
    seen->kinds |= (uint32_t)quern_context_reaction(context);
    seen->last = view->entities[count - 1];
    for (uint32_t i = 0; values != NULL && i < count; i++)
        seen->points += values[i].points;
}

static void watch_by(quern_component component, uint32_t reacts_to, quern_view_callback *run, watched *seen)
{
    quern_system_def def = system_def("watch", run);
    def.terms[0] = quern_term_read(component);
    def.reacts_to = reacts_to;
    def.flags = QUERN_SYSTEM_SERIAL;
    def.user_data = seen;
    *seen = (watched){.row_count = 0};
    setup_system(schedule, &def);
}

/* ----------------------------------------------------------------------------------- accumulated values */

static quern_entity target;

static void hit_thrice(quern_context *context, const quern_view *view)
{
    const health wound = {.points = -2};
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_accumulate(quern_context_commands(context), target, life, &wound, QUERN_SUM));
}

Test(reactions_meet, values_that_are_accumulated_count_as_set_once)
{
    open_world();
    living(100);
    target = living(10);
    make_system(schedule, "hits", hit_thrice);
    watched seen;
    watch_by(life, QUERN_REACT_SET, watch, &seen);
    must_run(schedule, NULL);
    cr_assert_eq(seen.row_count, 1u);
    cr_assert(quern_entity_equal(seen.last, target));
    cr_assert_eq(seen.points, 4, "what they add up to");
    cr_assert_eq(seen.kinds, (uint32_t)QUERN_REACT_SET);
    close_valid_world();
}

/* -------------------------------------------------------------------------------- disabled components */

static void count_disabled(quern_context *context, const quern_view *view)
{
    watched *seen = quern_context_user_data(context);
    const uint32_t count = view->count;
    watch(context, view);
    for (uint32_t i = 0; i < count; i++)
        seen->disabled_count += !quern_view_is_enabled(view, 0, i);
}

/* An entity matches if it has the component. So disabled components are shown as added and as removed,
 * too. */
Test(reactions_meet, rows_with_disabled_component_are_shown_and_distinguished)
{
    open_world();
    watched seen;
    watch_by(life, QUERN_REACT_ADDED | QUERN_REACT_SET, count_disabled, &seen);
    living(1);
    const quern_entity hidden = living(10);
    living(100);
    must(quern_entity_set_component_enabled(world, hidden, life, false));
    must_run(schedule, NULL);
    cr_assert_eq(seen.row_count, 3u);
    cr_assert_eq(seen.disabled_count, 1u);
    cr_assert_eq(seen.points, 111);
    must(quern_entity_set(world, hidden, life, &(health){20}));
    must_run(schedule, NULL);
    cr_assert_eq(seen.row_count, 4u, "what is set while it is disabled");
    cr_assert_eq(seen.disabled_count, 2u);
    must(quern_entity_set_component_enabled(world, hidden, life, true));
    must_run(schedule, NULL);
    cr_assert_eq(seen.row_count, 4u, "to be enabled is no arrival");
    close_valid_world();
}

/* -------------------------------------------------------------------------------------------- events */

static quern_event death;

static void announce(quern_context *context, const quern_view *view)
{
    cr_assert(quern_context_emit(context, death, view->entities, view->count));
}

static void read_deaths(quern_context *context, const quern_view *view)
{
    watched *seen = quern_context_user_data(context);
    quern_event_iterator it;
    cr_assert(quern_context_events(context, death, &it));
    seen->view_count++;
    while (quern_event_next(&it)) {
        seen->row_count += it.block.count;
        seen->last = ((const quern_entity *)it.block.values)[it.block.count - 1];
    }
}

Test(reactions_meet, they_emit_events_which_later_rounds_and_systems_read)
{
    open_world();
    must(QUERN_EVENT_REGISTER(world, &death, quern_entity));
    quern_system_def announcer = system_def("announce", announce),
                     mourner = system_def("mourn", read_deaths), reader = system_def("read", read_deaths);
    announcer.terms[0] = quern_term_read(life);
    announcer.reacts_to = QUERN_REACT_REMOVED;
    announcer.emits[0] = death;
    watched mourned = {.row_count = 0}, read = {.row_count = 0};
    mourner.terms[0] = quern_term_with(dead);
    mourner.reacts_to = QUERN_REACT_ADDED;
    mourner.reads_events[0] = reader.reads_events[0] = death;
    mourner.user_data = &mourned;
    reader.user_data = &read;
    reader.phase = 1;
    setup_system(schedule, &announcer);
    setup_system(schedule, &mourner);
    setup_system(schedule, &reader);
    const quern_entity gone = living(1), left = living(2);
    must_run(schedule, NULL);
    must(quern_entity_destroy(world, gone));
    must_run(schedule, NULL);
    cr_assert_eq(read.row_count, 1u, "the system of a later phase, in the same frame");
    cr_assert(quern_entity_equal(read.last, gone));
    cr_assert_eq(mourned.view_count, 0u, "a reaction without rows is not called");
    must(quern_entity_add(world, left, dead, NULL));
    must_run(schedule, NULL);
    cr_assert_eq(mourned.row_count, 1u, "what it has missed waits for it");
    cr_assert_eq(read.row_count, 1u, "each event once");
    close_valid_world();
}

/* ----------------------------------------------------------------------------- commands of their own */

static int64_t score;

static void bury(quern_context *context, const quern_view *view)
{
    const health *values = quern_view_read(view, 0);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (values[i].points < 0)
            (void)quern_commands_add(quern_context_commands(context), view->entities[i], dead, NULL);
}

static void destroy(quern_context *context, const quern_view *view)
{
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        (void)quern_commands_destroy(quern_context_commands(context), view->entities[i]);
}

static void reward(quern_context *context, const quern_view *view)
{
    const health *values = quern_view_read(view, 0);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        score += values[i].points;
}

static void add_chain(void)
{
    quern_system_def first = system_def("bury", bury), second = system_def("destroy", destroy),
                     third = system_def("reward", reward);
    first.terms[0] = third.terms[0] = quern_term_read(life);
    second.terms[0] = quern_term_with(dead);
    first.reacts_to = QUERN_REACT_SET;
    second.reacts_to = QUERN_REACT_ADDED;
    third.reacts_to = QUERN_REACT_REMOVED;
    third.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
    setup_system(schedule, &third);
}

/* Returns false if the chain needed fewer allocations. The frame reports each command that it could not
 * record; all other commands are applied once. */
static bool chain_with_failure(uint64_t failing_call)
{
    enum { COUNT = 300 };
    failing_allocator *memory = failing_allocator_create();
    open_as(&(quern_world_def){.allocator = failing_allocator_interface(memory)});
    schedule = setup_phases(world, 1);
    add_chain();
    quern_entity entities[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        entities[i] = living(1);
    must_run(schedule, NULL);
    score = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_set(world, entities[i], life, &(health){i % 3 == 0 ? -5 : 5}));
    failing_allocator_fail_at(memory, failing_call);
    uint32_t failed_frames = 0;
    for (uint32_t frame = 0; frame < 3; frame++) {
        const quern_result result = quern_schedule_run(schedule, NULL, 0);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        failed_frames += result != QUERN_OK;
        assert_valid(world);
    }
    const bool has_failed = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(failed_frames, has_failed, "call %llu", (unsigned long long)failing_call);
    failing_allocator_heal(memory);
    for (
        uint32_t i = 0; i < COUNT;
        i++) /* entities that were not destroyed, because the command could not be recorded, are set again */
        if (i % 3 == 0 && quern_entity_is_alive(world, entities[i]))
            must(quern_entity_has(world, entities[i], dead)
                     ? quern_entity_destroy(world, entities[i])
                     : quern_entity_set(world, entities[i], life, &(health){-5}));
    must_run(schedule, NULL);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), i % 3 != 0);
    cr_assert_eq(score, -5 * COUNT / 3, "call %llu", (unsigned long long)failing_call);
    close_valid_world();
    failing_allocator_close(memory);
    return has_failed;
}

Test(reactions_meet, recorded_commands_are_applied_once_whatever_allocation_fails)
{
    uint64_t failing_call = 1;
    while (chain_with_failure(failing_call))
        failing_call++;
    cr_assert_gt(failing_call, 5u);
}
