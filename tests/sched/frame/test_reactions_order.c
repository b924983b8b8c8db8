/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/frame/reactions_scene.h"

#include <string.h>

/* The order and the number of reactions, in frames and between frames. */

/* ------------------------------------------------------------------------------------- order and rounds */

/* Damage lowers the health; an entity without health is destroyed; deaths are counted. */
static void hurt(quern_context *context, const quern_view *view)
{
    const uint64_t *damages = quern_view_read(view, 0);
    uint64_t *healths = quern_view_write(view, 1);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        healths[i] -= damages[i] < healths[i] ? damages[i] : healths[i];
        must(quern_commands_remove(commands, view->entities[i], damage));
        if (healths[i] == 0) must(quern_commands_add(commands, view->entities[i], dead, NULL));
    }
}

static void bury(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
}

static void count_dead(quern_context *context, const quern_view *view)
{
    const quern_resource *score = quern_context_user_data(context);
    *(uint64_t *)quern_context_resource_write(context, *score) += view->count;
}

TestSuite(reactions_order, .fini = close_valid_world);

Test(reactions_order, rounds_run_until_nothing_is_pending)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 3}, 1);
    const quern_resource score = setup_counter(world, "score");
    const quern_system hurting =
        make_system(schedule, "hurt", hurt, .terms = {quern_term_read(damage), quern_term_write(health)},
                    .reacts_to = QUERN_REACT_ADDED);
    make_system(schedule, "bury", bury, .terms = {quern_term_with(dead)}, .reacts_to = QUERN_REACT_ADDED);
    make_system(schedule, "count", count_dead, .terms = {quern_term_with(dead)},
                .reacts_to = QUERN_REACT_REMOVED, .resources = {{score, QUERN_ACCESS_WRITE}},
                .user_data = (void *)(uintptr_t)&score);
    const quern_entity weak = with_health(3), strong = with_health(30);
    must(quern_entity_add(world, weak, damage, &(uint64_t){5}));
    must(quern_entity_add(world, strong, damage, &(uint64_t){5}));
    frame();
    cr_assert_eq(counter_value(world, score), 1);
    cr_assert_not(quern_entity_is_alive(world, weak));
    cr_assert_eq(*(uint64_t *)quern_entity_get(world, strong, health), 25);
    cr_assert_not(quern_entity_has(world, strong, damage));
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, hurting, &stats));
    cr_assert_eq(stats.entity_count, 2);
}

static void put_damage(quern_context *context, const quern_view *view)
{
    const uint64_t value = 1;
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_set(quern_context_commands(context), view->entities[i], damage, &value));
}

static void put_health(quern_context *context, const quern_view *view)
{
    const uint64_t value = 1;
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_set(quern_context_commands(context), view->entities[i], health, &value));
}

static void add_cycle(void)
{
    make_system(schedule, "ping", put_damage, .terms = {quern_term_read(health)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET);
    make_system(schedule, "pong", put_health, .terms = {quern_term_read(damage)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET);
}

static void exclusive_idle(quern_context *context, const quern_view *view)
{
    cr_assert_not_null(quern_context_world(context));
    cr_assert_gt(view->count, 0);
}

static uint32_t run_count;

static void count_run(quern_context *context)
{
    run_count++;
}

Test(reactions_order, cycle_is_named_and_dropped_and_frame_continues)
{
    open_world();
    add_cycle();
    make_system(schedule, "last", NULL, .begin = count_run, .phase = 1);
    run_count = 0;
    (void)with_health(1);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("8 rounds");
    assert_message_has("'ping' -> 'pong' -> 'ping' -> 'pong' -> 'ping'");
    cr_assert_eq(run_count, 1);
    must_run(schedule, NULL);
    cr_assert_eq(run_count, 2);
}

/* The exclusive reaction runs in the first round only, in a segment of its own. */
Test(reactions_order, reactions_without_run_in_last_rounds_are_not_named)
{
    open_world();
    make_system(schedule, "alone", exclusive_idle, .terms = {quern_term_with(dead)},
                .reacts_to = QUERN_REACT_ADDED, .flags = QUERN_SYSTEM_EXCLUSIVE);
    add_cycle();
    (void)with_health(1);
    (void)setup_entity_with(world, &dead, 1);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("'ping' -> 'pong' -> 'ping'");
    cr_assert_null(strstr(quern_error_message(), "alone"));
}

Test(reactions_order, between_frames_a_cycle_is_named_too)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 2}, 1);
    add_cycle();
    (void)with_health(1);
    cr_assert_eq(quern_world_react(world, NULL), QUERN_ERROR_LIMIT);
    assert_message_has("quern_world_react");
    assert_message_has("'ping' -> 'pong' -> 'ping'");
    must(quern_world_react(world, NULL));
}

/* The reaction adds the components one by one: round n causes round n + 1. */
static quern_component chain[12];

static void go_on(quern_context *context, const quern_view *view)
{
    const uint32_t link = (uint32_t)(uintptr_t)quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_add(quern_context_commands(context), view->entities[i], chain[link + 1], NULL));
}

Test(reactions_order, as_many_rounds_run_as_are_allowed)
{
    for (uint32_t most = 0; most <= 11; most++) {
        open_as((quern_schedule_def){.max_reaction_rounds = most}, 1);
        const uint32_t allowed = most > 0 ? most : QUERN_DEFAULT_REACTION_ROUNDS;
        for (uint32_t i = 0; i < 12; i++) {
            char name[16];
            snprintf(name, sizeof name, "link %u", i);
            chain[i] = setup_tag(world, name);
            if (i == 11) break;
            make_system(schedule, name, go_on, .terms = {quern_term_with(chain[i])},
                        .reacts_to = QUERN_REACT_ADDED, .user_data = (void *)(uintptr_t)i);
        }
        const quern_entity entity = setup_entity_with(world, &chain[0], 1);
        cr_assert_eq(quern_schedule_run(schedule, NULL, 0), allowed >= 11 ? QUERN_OK : QUERN_ERROR_LIMIT);
        cr_assert(quern_entity_has(world, entity, chain[allowed < 11 ? allowed : 11]));
        if (allowed < 11) cr_assert_not(quern_entity_has(world, entity, chain[allowed + 1]));
        close_valid_world();
    }
}

Test(reactions_order, the_order_is_that_of_phases_then_rules_then_registration)
{
    open_world();
    quern_system_def def = note_def("late", QUERN_REACT_ADDED);
    def.phase = 1;
    setup_system(schedule, &def);
    def = note_def("third", QUERN_REACT_ADDED);
    def.after[0] = "second";
    setup_system(schedule, &def);
    def = note_def("second", QUERN_REACT_ADDED);
    setup_system(schedule, &def);
    def = note_def("first", QUERN_REACT_ADDED);
    def.before[0] = "second";
    setup_system(schedule, &def);
    (void)with_health(1);
    frame();
    cr_assert_eq(list_count, 4);
    cr_assert_str_eq(list[0].name, "first");
    cr_assert_str_eq(list[1].name, "second");
    cr_assert_str_eq(list[2].name, "third");
    cr_assert_str_eq(list[3].name, "late");
}

Test(reactions_order, reactions_of_several_phases_keep_their_order_where_they_conflict)
{
    open_world();
    quern_system_def def = system_def("writes", heal_all);
    def.terms[0] = quern_term_write(health);
    def.reacts_to = QUERN_REACT_ADDED;
    const quern_system writer = setup_system(schedule, &def);
    def = note_def("reads", QUERN_REACT_ADDED);
    def.phase = 1;
    const quern_system reader = setup_system(schedule, &def);
    const quern_entity entity = with_health(1);
    frame();
    assert_shown(0, QUERN_REACT_ADDED, entity, 101);
    cr_assert(quern_schedule_has_edge(schedule, writer, reader));
}

Test(reactions_order, reactions_share_passes_with_reactions_alone)
{
    open_world();
    quern_system_def def = system_def("a", heal_all);
    def.terms[0] = quern_term_write(health);
    def.reacts_to = QUERN_REACT_ADDED;
    const quern_system a = setup_system(schedule, &def);
    def.name = "b";
    const quern_system b = setup_system(schedule, &def);
    def.name = "c";
    def.reacts_to = 0;
    const quern_system c = setup_system(schedule, &def);
    must(quern_schedule_compile(schedule));
    cr_assert(quern_schedule_are_fused(schedule, a, b));
    cr_assert_not(quern_schedule_are_fused(schedule, a, c));
    cr_assert_not(quern_schedule_has_edge(schedule, c, a));
    const quern_entity entity = with_health(1);
    frame();
    cr_assert_eq(*(uint64_t *)quern_entity_get(world, entity, health), 301);
}

static bool is_wanted;

static bool want(quern_context *context)
{
    return is_wanted;
}

Test(reactions_order, disabled_or_gated_reaction_misses_changes)
{
    open_world();
    quern_system_def def = note_def("picky", QUERN_REACT_ADDED);
    def.condition = want;
    setup_system(schedule, &def);
    const quern_system disabled = add_note("disabled", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_schedule_set_system_enabled(schedule, disabled, false));
    is_wanted = false;
    const quern_entity gone = with_health(1);
    frame();
    must(quern_entity_destroy(world, gone));
    cr_assert_eq(list_count, 0);
    frame();
    is_wanted = true;
    must(quern_schedule_set_system_enabled(schedule, disabled, true));
    frame();
    cr_assert_eq(list_count, 0);
    (void)with_health(2);
    frame();
    cr_assert_eq(list_count, 2);
    cr_assert_str_eq(list[0].name, "picky");
    cr_assert_str_eq(list[1].name, "disabled");
}

Test(reactions_order, each_step_of_a_phase_has_its_reactions)
{
    open_world();
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 10));
    make_system(schedule, "create", NULL, .begin = create_with_health);
    const quern_system watch = add_note("watch", QUERN_REACT_ADDED);
    list_count = 0;
    must(quern_schedule_run(schedule, NULL, 1.0));
    cr_assert_eq(list_count, 4);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, watch, &stats));
    cr_assert_eq(stats.view_count, 4);
    cr_assert_eq(stats.entity_count, 4);
}

/* ------------------------------------------------------------------------------ exclusive, other schedules */

static uint32_t entities_then;

/* Changes the world while it reads its views: this does not change the views that follow. */
static void exclusive_run(quern_context *context, const quern_view *view)
{
    quern_world *mine = quern_context_world(context);
    cr_assert_eq(mine, world);
    if (quern_context_reaction(context) == QUERN_REACT_REMOVED) {
        const uint64_t *values = quern_view_read(view, 0);
        for (uint32_t i = 0; i < view->count; i++)
            list[list_count++] =
                (shown){.kind = QUERN_REACT_REMOVED, .entity = view->entities[i], .value = values[i]};
        return;
    }
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity entity = view->entities[i];
        list[list_count++] = (shown){.kind = quern_context_reaction(context),
                                     .entity = entity,
                                     .value = *(uint64_t *)quern_entity_get(mine, entity, health)};
        must(quern_entity_destroy(mine, entity));
        entities_then++;
    }
}

Test(reactions_order, exclusive_reaction_may_change_the_world)
{
    open_world();
    make_system(schedule, "alone", exclusive_run, .terms = {quern_term_read(health)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED, .flags = QUERN_SYSTEM_EXCLUSIVE);
    quern_entity created[5];
    for (uint32_t i = 0; i < 5; i++)
        created[i] = with_health(i);
    list_count = entities_then = 0;
    must_run(schedule, NULL);
    cr_assert_eq(entities_then, 5);
    cr_assert_eq(list_count, 10, "five that came, and in the next round five that went");
    for (uint32_t i = 0; i < 5; i++) {
        assert_shown(i, QUERN_REACT_ADDED, created[i], i);
        assert_shown(5 + i, QUERN_REACT_REMOVED, created[i], i);
    }
}

static void read_exclusively(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_view_read(view, 0), view->count * sizeof(uint64_t)));
}

Test(reactions_order, views_of_exclusive_reaction_have_no_columns)
{
    open_world();
    make_system(schedule, "alone", read_exclusively, .terms = {quern_term_read(health)},
                .reacts_to = QUERN_REACT_ADDED, .flags = QUERN_SYSTEM_EXCLUSIVE);
    (void)with_health(1);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
}

Test(reactions_order, exclusive_reaction_runs_after_commands_of_earlier_reactions)
{
    open_world();
    make_system(schedule, "bury", bury, .terms = {quern_term_read(health)}, .reacts_to = QUERN_REACT_ADDED);
    make_system(schedule, "alone", exclusive_run, .terms = {quern_term_read(health)},
                .reacts_to = QUERN_REACT_REMOVED, .flags = QUERN_SYSTEM_EXCLUSIVE);
    const quern_entity entity = with_health(9);
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_REMOVED, entity, 9);
}

Test(reactions_order, a_reaction_runs_in_frames_of_its_own_schedule)
{
    open_world();
    quern_schedule *other = setup_schedule(world);
    add_note("mine", QUERN_REACT_ADDED);
    quern_system_def def = note_def("other's", QUERN_REACT_ADDED);
    setup_system(other, &def);
    (void)with_health(1);
    frame();
    cr_assert_eq(list_count, 1);
    cr_assert_str_eq(list[0].name, "mine");
    list_count = 0;
    must_run(other, NULL);
    cr_assert_eq(list_count, 1);
    cr_assert_str_eq(list[0].name, "other's");
    quern_schedule_destroy(other);
}

Test(reactions_order, between_frames_all_schedules_react_in_the_order_of_their_creation)
{
    open_world();
    quern_schedule *other = setup_schedule(world);
    quern_system_def def = note_def("other's", QUERN_REACT_ADDED);
    setup_system(other, &def);
    add_note("mine", QUERN_REACT_ADDED);
    (void)with_health(1);
    quern_jobs *jobs = setup_jobs(2);
    must(quern_world_react(world, jobs));
    cr_assert_eq(list_count, 2);
    cr_assert_str_eq(list[0].name, "mine");
    cr_assert_str_eq(list[1].name, "other's");
    must(quern_world_react(world, NULL));
    cr_assert_eq(list_count, 2);
    frame();
    cr_assert_eq(list_count, 0);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(other);
}

Test(reactions_order, between_frames_schedules_may_cause_each_other_as_often_as_a_frame_may)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 5}, 1);
    quern_schedule *other = setup_schedule_as(world, (quern_schedule_def){.max_reaction_rounds = 2}, 1);
    make_system(schedule, "ping", put_damage, .terms = {quern_term_read(health)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET);
    make_system(other, "pong", put_health, .terms = {quern_term_read(damage)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET);
    (void)with_health(1);
    cr_assert_eq(quern_world_react(world, NULL), QUERN_ERROR_LIMIT);
    assert_message_has("several schedules");
    assert_message_has("'ping'");
    must(quern_world_react(world, NULL));
    quern_schedule_destroy(other);
}

static quern_result react_in_frame;

static void react_again(quern_context *context)
{
    react_in_frame = quern_world_react(quern_context_world(context), NULL);
}

Test(reactions_order, react_call_within_frame_is_refused)
{
    open_world();
    make_system(schedule, "again", NULL, .begin = react_again, .flags = QUERN_SYSTEM_EXCLUSIVE);
    must_run(schedule, NULL);
    cr_assert_eq(react_in_frame, QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_world_react(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
}

Test(reactions_order, schedule_may_be_destroyed_with_pending_reactions)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, entity));
    (void)with_health(2);
    quern_schedule_destroy(schedule);
    assert_valid(world);
    schedule = setup_schedule(world);
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    frame();
    cr_assert_eq(list_count, 0);
}
