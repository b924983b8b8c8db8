/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <criterion/criterion.h>

#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/context.h>
#include <quern/relation.h>

#include <stdatomic.h>
#include <string.h>

/* Reactions in schedules: what they are shown and when, their order and rounds, and what is refused. */

enum { MOST = 8192 };

static quern_world *world;
static quern_schedule *schedule;
static quern_component health, damage, dead;
static captured_reports reports;

static void open_as(quern_schedule_def def, uint32_t phase_count)
{
    world = setup_world();
    health = setup_component(world, "health", 8, 8);
    damage = setup_component(world, "damage", 8, 8);
    dead = setup_tag(world, "dead");
    schedule = setup_schedule_as(world, def, phase_count);
    capture_reports(&reports);
}

static void open_world(void)
{
    open_as((quern_schedule_def){.timing = false}, 2);
}

static void close_world(void)
{
    assert_valid(world);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

static quern_entity with_health(uint64_t value)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &health, (const void *const[]){&value}, 1, &entity));
    return entity;
}

/* What a reaction was shown, row by row. */
typedef struct shown {
    uint32_t kind;
    quern_entity entity;
    uint64_t value;
    const char *name;
} shown;

static shown list[MOST];
static uint32_t list_count;

static const char *name_of(quern_context *context)
{
    const char *name = quern_context_user_data(context);
    return name;
}

/* Of one that runs serially, with the health as its first term. */
static void note(quern_context *context, const quern_view *view)
{
    const uint64_t *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert_lt(list_count, (uint32_t)MOST);
        list[list_count++] = (shown){.kind = quern_context_reaction(context),
                                     .entity = view->entities[i],
                                     .value = values != NULL ? values[i] : 0,
                                     .name = name_of(context)};
    }
}

static quern_system_def note_def(const char *name, uint32_t reacts_to)
{
    quern_system_def def = system_def(name, note);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = reacts_to;
    def.flags = QUERN_SYSTEM_SERIAL;
    def.user_data = (void *)(uintptr_t)name;
    return def;
}

static quern_system add_note(const char *name, uint32_t reacts_to)
{
    list_count = 0;
    const quern_system_def def = note_def(name, reacts_to);
    return setup_system(schedule, &def);
}

static void assert_shown(uint32_t i, uint32_t kind, quern_entity entity, uint64_t value)
{
    cr_assert_lt(i, list_count, "only %u rows were shown", list_count);
    cr_assert_eq(list[i].kind, kind, "row %u: kind %u", i, list[i].kind);
    cr_assert(quern_entity_equal(list[i].entity, entity));
    cr_assert_eq(list[i].value, value, "row %u: %llu", i, (unsigned long long)list[i].value);
}

static void frame(void)
{
    list_count = 0;
    must_run(schedule, NULL);
}

/* ------------------------------------------------------------------------------------- what is shown */

Test(reactions, what_calls_added_is_shown_once_when_the_next_frame_begins)
{
    open_world();
    add_note("watch", QUERN_ON_ADDED);
    const quern_entity first = with_health(1), second = with_health(2);
    cr_assert_eq(list_count, 0);
    frame();
    cr_assert_eq(list_count, 2);
    assert_shown(0, QUERN_ON_ADDED, first, 1);
    assert_shown(1, QUERN_ON_ADDED, second, 2);
    frame();
    cr_assert_eq(list_count, 0);
    close_world();
}

static void create_with_health(quern_context *context)
{
    const uint64_t value = 7;
    (void)quern_commands_create_with(quern_context_commands(context), &health,
                                     (const void *const[]){&value}, 1);
}

static uint32_t count_when_second_phase_begins;

static void look_at_list(quern_context *context)
{
    cr_assert_eq(quern_context_reaction(context), 0);
    count_when_second_phase_begins = list_count;
}

Test(reactions, what_commands_added_is_shown_after_their_sync_point)
{
    open_world();
    quern_system_def def = {.name = "create", .begin = create_with_health};
    setup_system(schedule, &def);
    def = (quern_system_def){.name = "look", .begin = look_at_list, .phase = 1};
    setup_system(schedule, &def);
    add_note("watch", QUERN_ON_ADDED);
    frame();
    cr_assert_eq(list_count, 1);
    cr_assert_eq(count_when_second_phase_begins, 1);
    cr_assert_eq(list[0].value, 7);
    close_world();
}

static void heal_all(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    (void)context;
    for (uint32_t i = 0; i < view->count; i++)
        values[i] += 100;
}

Test(reactions, what_calls_and_commands_set_is_shown_and_what_views_write_is_not)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_ON_SET);
    quern_system_def def = system_def("heal", heal_all);
    def.terms[0] = quern_term_write(health);
    setup_system(schedule, &def);
    frame();
    cr_assert_eq(list_count, 0);
    must(quern_entity_set(world, entity, health, &(uint64_t){5}));
    must(quern_entity_set(world, entity, health, &(uint64_t){6}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_ON_SET, entity, 6);
    must(quern_entity_mark_changed(world, entity, health));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_ON_SET, entity, 106);
    must(quern_entity_add(world, entity, damage, &(uint64_t){1}));
    frame();
    cr_assert_eq(list_count, 0, "it does not look at the damage");
    close_world();
}

Test(reactions, one_that_was_added_and_set_is_shown_as_added)
{
    open_world();
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_SET);
    const quern_entity entity = with_health(1);
    must(quern_entity_set(world, entity, health, &(uint64_t){2}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_ON_ADDED, entity, 2);
    close_world();
}

Test(reactions, what_is_gone_is_shown_with_its_old_values_and_before_what_is_added)
{
    open_world();
    const quern_entity first = with_health(1), second = with_health(2);
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    const quern_entity third = with_health(3);
    must(quern_entity_destroy(world, first));
    must(quern_entity_remove(world, second, health));
    must(quern_entity_set(world, second, health, &(uint64_t){4}));
    frame();
    cr_assert_eq(list_count, 4);
    assert_shown(0, QUERN_ON_REMOVED, first, 1);
    assert_shown(1, QUERN_ON_REMOVED, second, 2);
    cr_assert_eq(list[2].kind, QUERN_ON_ADDED);
    cr_assert_eq(list[3].kind, QUERN_ON_ADDED);
    cr_assert(quern_entity_equal(list[2].entity, third) || quern_entity_equal(list[3].entity, third));
    cr_assert_not(quern_entity_is_alive(world, list[0].entity));
    close_world();
}

Test(reactions, what_came_and_went_before_anybody_was_told_is_nothing)
{
    open_world();
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    must(quern_entity_destroy(world, with_health(1)));
    frame();
    cr_assert_eq(list_count, 0);
    close_world();
}

static void write_gone(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) == QUERN_ON_REMOVED)
        cr_assert(is_scratch(quern_view_write(view, 0), view->count * sizeof(uint64_t)));
}

Test(reactions, copies_of_what_is_gone_are_to_read)
{
    open_world();
    const quern_entity entity = with_health(1);
    quern_system_def def = system_def("write", write_gone);
    def.terms[0] = quern_term_write(health);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_REMOVED;
    setup_system(schedule, &def);
    must(quern_entity_destroy(world, entity));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(reports.log_count, 1);
    close_world();
}

Test(reactions, who_is_there_when_the_system_is_added_counts_as_added_when_asked_for)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("late", QUERN_ON_ADDED);
    add_note("present", QUERN_ON_ADDED | QUERN_ON_PRESENT);
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_ON_ADDED, entity, 1);
    cr_assert_str_eq(list[0].name, "present");
    close_world();
}

static _Atomic uint64_t parallel_sum;
static _Atomic uint32_t parallel_views;

static void add_up(quern_context *context, const quern_view *view)
{
    const uint64_t *values = quern_view_read(view, 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->count; i++)
        sum += values[i];
    *(uint64_t *)quern_context_partial(context) += sum;
    atomic_fetch_add(&parallel_sum, sum);
    atomic_fetch_add(&parallel_views, 1);
}

static uint64_t partial_sum;
static uint32_t partial_count, begin_count;

static void begin_partials(quern_context *context)
{
    (void)context;
    begin_count++;
}

static void end_partials(quern_context *context)
{
    partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        partial_sum += *(const uint64_t *)quern_context_partial_at(context, i);
}

static void create_values(uint32_t count)
{
    static uint64_t values[20000];
    cr_assert_leq(count, 20000u);
    for (uint32_t i = 0; i < count; i++)
        values[i] = i;
    must(quern_entity_create_many(world, &health, (const void *const[]){values}, 1, count, NULL));
}

Test(reactions, runs_of_a_chunk_share_its_ordinal_and_partial_result)
{
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        open_world();
        create_values(20000);
        quern_system_def def = system_def("sum", add_up);
        def.terms[0] = quern_term_read(health);
        def.reacts_to = QUERN_ON_SET;
        def.partial_bytes = sizeof(uint64_t);
        def.begin = begin_partials;
        def.end = end_partials;
        const quern_system system = setup_system(schedule, &def);
        quern_query *query =
            setup_query(world, &(quern_term){.component = health, .access = QUERN_READ}, 1);
        uint64_t expected = 0;
        uint32_t chunk_count = 0, row_number = 0;
        quern_query_iterator iterator = quern_query_iterate(query);
        while (quern_query_next(&iterator)) {
            chunk_count++;
            for (uint32_t i = 0; i < iterator.view.count; i++, row_number++)
                if (row_number % 3 == 0) {
                    must(quern_entity_mark_changed(world, iterator.view.entities[i], health));
                    expected += ((const uint64_t *)quern_view_read(&iterator.view, 0))[i];
                }
        }
        quern_query_destroy(query);
        parallel_sum = 0;
        parallel_views = 0;
        partial_sum = partial_count = begin_count = 0;
        quern_jobs *jobs = setup_jobs(pool_threads[pool]);
        must_run(schedule, jobs);
        cr_assert_eq(parallel_sum, expected);
        cr_assert_eq(partial_sum, expected);
        cr_assert_eq(partial_count, chunk_count);
        cr_assert_gt(parallel_views, chunk_count);
        cr_assert_eq(begin_count, 1);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.view_count, chunk_count);
        cr_assert_eq(stats.entity_count, (20000 + 2) / 3);
        must_run(schedule, jobs);
        cr_assert_eq(begin_count, 1, "nothing happened");
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.view_count, 0);
        cr_assert_eq(stats.entity_count, 0);
        quern_jobs_destroy(jobs);
        close_world();
    }
}

static void read_up(quern_context *context, const quern_view *view)
{
    (void)context;
    const void *const *above = quern_view_up(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        atomic_fetch_add(&parallel_sum, *(const uint64_t *)above[i]);
}

Test(reactions, rows_that_were_added_may_read_upward)
{
    open_world();
    quern_relation parent;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to"}, &parent));
    quern_system_def def = system_def("up", read_up);
    def.terms[0] = quern_term_with(damage);
    def.terms[1] = quern_term_up(health, parent);
    def.reacts_to = QUERN_ON_ADDED;
    setup_system(schedule, &def);
    const quern_entity target = with_health(30);
    for (uint32_t i = 0; i < 3; i++) {
        const quern_entity source = setup_entity_with(world, &damage, 1);
        if (i != 1) must(quern_entity_relate(world, source, parent, target));
    }
    parallel_sum = 0;
    frame();
    cr_assert_eq(parallel_sum, 60);
    close_world();
}

/* ------------------------------------------------------------------------------------- order and rounds */

/* Damage lowers health; who has none left dies; deaths are counted. */
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

Test(reactions, rounds_go_on_until_nothing_is_left)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 3}, 1);
    const quern_resource score = setup_counter(world, "score");
    quern_system_def def = system_def("hurt", hurt);
    def.terms[0] = quern_term_read(damage);
    def.terms[1] = quern_term_write(health);
    def.reacts_to = QUERN_ON_ADDED;
    const quern_system hurting = setup_system(schedule, &def);
    def = system_def("bury", bury);
    def.terms[0] = quern_term_with(dead);
    def.reacts_to = QUERN_ON_ADDED;
    setup_system(schedule, &def);
    def = system_def("count", count_dead);
    def.terms[0] = quern_term_with(dead);
    def.reacts_to = QUERN_ON_REMOVED;
    def.resources[0] = (quern_resource_access){score, QUERN_WRITE};
    def.user_data = (void *)(uintptr_t)&score;
    setup_system(schedule, &def);
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
    close_world();
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
    quern_system_def def = system_def("ping", put_damage);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_SET;
    setup_system(schedule, &def);
    def = system_def("pong", put_health);
    def.terms[0] = quern_term_read(damage);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_SET;
    setup_system(schedule, &def);
}

static void exclusive_idle(quern_context *context, const quern_view *view)
{
    cr_assert_not_null(quern_context_world(context));
    cr_assert_gt(view->count, 0);
}

static uint32_t run_count;

static void count_run(quern_context *context)
{
    (void)context;
    run_count++;
}

Test(reactions, a_cycle_is_named_and_dropped_and_the_frame_goes_on)
{
    open_world();
    add_cycle();
    quern_system_def def = {.name = "last", .begin = count_run, .phase = 1};
    setup_system(schedule, &def);
    run_count = 0;
    (void)with_health(1);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("8 rounds");
    assert_message_has("'ping' -> 'pong' -> 'ping' -> 'pong' -> 'ping'");
    cr_assert_eq(run_count, 1);
    must_run(schedule, NULL);
    cr_assert_eq(run_count, 2);
    close_world();
}

/* The exclusive one runs in the first round alone, in a segment of its own. */
Test(reactions, who_has_not_run_in_the_last_rounds_is_not_named)
{
    open_world();
    quern_system_def def = system_def("alone", exclusive_idle);
    def.terms[0] = quern_term_with(dead);
    def.reacts_to = QUERN_ON_ADDED;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    add_cycle();
    (void)with_health(1);
    (void)setup_entity_with(world, &dead, 1);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("'ping' -> 'pong' -> 'ping'");
    cr_assert_null(strstr(quern_error_message(), "alone"));
    close_world();
}

Test(reactions, between_frames_a_cycle_is_named_too)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 2}, 1);
    add_cycle();
    (void)with_health(1);
    cr_assert_eq(quern_world_react(world, NULL), QUERN_ERROR_LIMIT);
    assert_message_has("quern_world_react");
    assert_message_has("'ping' -> 'pong' -> 'ping'");
    must(quern_world_react(world, NULL));
    close_world();
}

/* Adds components one by one: round n leads to round n + 1. */
static quern_component chain[12];

static void go_on(quern_context *context, const quern_view *view)
{
    const uint32_t link = (uint32_t)(uintptr_t)quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_add(quern_context_commands(context), view->entities[i], chain[link + 1], NULL));
}

Test(reactions, as_many_rounds_run_as_are_allowed)
{
    for (uint32_t most = 0; most <= 11; most++) {
        open_as((quern_schedule_def){.max_reaction_rounds = most}, 1);
        const uint32_t allowed = most > 0 ? most : QUERN_DEFAULT_REACTION_ROUNDS;
        for (uint32_t i = 0; i < 12; i++) {
            char name[16];
            snprintf(name, sizeof name, "link %u", i);
            chain[i] = setup_tag(world, name);
            if (i == 11) break;
            quern_system_def def = system_def(name, go_on);
            def.terms[0] = quern_term_with(chain[i]);
            def.reacts_to = QUERN_ON_ADDED;
            def.user_data = (void *)(uintptr_t)i;
            setup_system(schedule, &def);
        }
        const quern_entity entity = setup_entity_with(world, &chain[0], 1);
        cr_assert_eq(quern_schedule_run(schedule, NULL, 0), allowed >= 11 ? QUERN_OK : QUERN_ERROR_LIMIT);
        cr_assert(quern_entity_has(world, entity, chain[allowed < 11 ? allowed : 11]));
        if (allowed < 11) cr_assert_not(quern_entity_has(world, entity, chain[allowed + 1]));
        close_world();
    }
}

Test(reactions, the_order_is_that_of_phases_then_rules_then_registration)
{
    open_world();
    quern_system_def def = note_def("late", QUERN_ON_ADDED);
    def.phase = 1;
    setup_system(schedule, &def);
    def = note_def("third", QUERN_ON_ADDED);
    def.after[0] = "second";
    setup_system(schedule, &def);
    def = note_def("second", QUERN_ON_ADDED);
    setup_system(schedule, &def);
    def = note_def("first", QUERN_ON_ADDED);
    def.before[0] = "second";
    setup_system(schedule, &def);
    (void)with_health(1);
    frame();
    cr_assert_eq(list_count, 4);
    cr_assert_str_eq(list[0].name, "first");
    cr_assert_str_eq(list[1].name, "second");
    cr_assert_str_eq(list[2].name, "third");
    cr_assert_str_eq(list[3].name, "late");
    close_world();
}

Test(reactions, reactions_of_several_phases_keep_their_order_where_they_conflict)
{
    open_world();
    quern_system_def def = system_def("writes", heal_all);
    def.terms[0] = quern_term_write(health);
    def.reacts_to = QUERN_ON_ADDED;
    const quern_system writer = setup_system(schedule, &def);
    def = note_def("reads", QUERN_ON_ADDED);
    def.phase = 1;
    const quern_system reader = setup_system(schedule, &def);
    const quern_entity entity = with_health(1);
    frame();
    assert_shown(0, QUERN_ON_ADDED, entity, 101);
    cr_assert(quern_schedule_has_edge(schedule, writer, reader));
    close_world();
}

Test(reactions, reactions_share_passes_with_reactions_alone)
{
    open_world();
    quern_system_def def = system_def("a", heal_all);
    def.terms[0] = quern_term_write(health);
    def.reacts_to = QUERN_ON_ADDED;
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
    close_world();
}

static bool is_wanted;

static bool want(quern_context *context)
{
    (void)context;
    return is_wanted;
}

Test(reactions, who_is_disabled_or_held_back_misses_what_happens)
{
    open_world();
    quern_system_def def = note_def("picky", QUERN_ON_ADDED);
    def.condition = want;
    setup_system(schedule, &def);
    const quern_system disabled = add_note("disabled", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    must(quern_schedule_set_enabled(schedule, disabled, false));
    is_wanted = false;
    const quern_entity gone = with_health(1);
    frame();
    must(quern_entity_destroy(world, gone));
    cr_assert_eq(list_count, 0);
    frame();
    is_wanted = true;
    must(quern_schedule_set_enabled(schedule, disabled, true));
    frame();
    cr_assert_eq(list_count, 0);
    (void)with_health(2);
    frame();
    cr_assert_eq(list_count, 2);
    cr_assert_str_eq(list[0].name, "picky");
    cr_assert_str_eq(list[1].name, "disabled");
    close_world();
}

Test(reactions, each_step_of_a_phase_has_its_reactions)
{
    open_world();
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 10));
    quern_system_def def = {.name = "create", .begin = create_with_health};
    setup_system(schedule, &def);
    const quern_system watch = add_note("watch", QUERN_ON_ADDED);
    list_count = 0;
    must(quern_schedule_run(schedule, NULL, 1.0));
    cr_assert_eq(list_count, 4);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, watch, &stats));
    cr_assert_eq(stats.view_count, 4);
    cr_assert_eq(stats.entity_count, 4);
    close_world();
}

/* ------------------------------------------------------------------------------ exclusive, other schedules */

static uint32_t entities_then;

/* Changes the world while it looks at what happened: what was shown to come is not disturbed. */
static void exclusive_run(quern_context *context, const quern_view *view)
{
    quern_world *mine = quern_context_world(context);
    cr_assert_eq(mine, world);
    if (quern_context_reaction(context) == QUERN_ON_REMOVED) {
        const uint64_t *values = quern_view_read(view, 0);
        for (uint32_t i = 0; i < view->count; i++)
            list[list_count++] =
                (shown){.kind = QUERN_ON_REMOVED, .entity = view->entities[i], .value = values[i]};
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

Test(reactions, an_exclusive_one_has_the_world_to_itself)
{
    open_world();
    quern_system_def def = system_def("alone", exclusive_run);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_REMOVED;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    quern_entity created[5];
    for (uint32_t i = 0; i < 5; i++)
        created[i] = with_health(i);
    list_count = entities_then = 0;
    must_run(schedule, NULL);
    cr_assert_eq(entities_then, 5);
    cr_assert_eq(list_count, 10, "five that came, and in the next round five that went");
    for (uint32_t i = 0; i < 5; i++) {
        assert_shown(i, QUERN_ON_ADDED, created[i], i);
        assert_shown(5 + i, QUERN_ON_REMOVED, created[i], i);
    }
    close_world();
}

static void read_exclusively(quern_context *context, const quern_view *view)
{
    (void)context;
    cr_assert(is_scratch(quern_view_read(view, 0), view->count * sizeof(uint64_t)));
}

Test(reactions, views_of_an_exclusive_one_have_no_columns)
{
    open_world();
    quern_system_def def = system_def("alone", read_exclusively);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    (void)with_health(1);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    close_world();
}

Test(reactions, an_exclusive_one_is_behind_the_commands_of_those_before_it)
{
    open_world();
    quern_system_def def = system_def("bury", bury);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED;
    setup_system(schedule, &def);
    def = system_def("alone", exclusive_run);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_REMOVED;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    const quern_entity entity = with_health(9);
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_ON_REMOVED, entity, 9);
    close_world();
}

Test(reactions, a_reaction_runs_in_frames_of_its_own_schedule)
{
    open_world();
    quern_schedule *other = setup_schedule(world);
    add_note("mine", QUERN_ON_ADDED);
    quern_system_def def = note_def("other's", QUERN_ON_ADDED);
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
    close_world();
}

Test(reactions, between_frames_all_schedules_react_in_the_order_of_their_creation)
{
    open_world();
    quern_schedule *other = setup_schedule(world);
    quern_system_def def = note_def("other's", QUERN_ON_ADDED);
    setup_system(other, &def);
    add_note("mine", QUERN_ON_ADDED);
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
    close_world();
}

Test(reactions, between_frames_schedules_may_cause_each_other_as_often_as_a_frame_may)
{
    open_as((quern_schedule_def){.max_reaction_rounds = 5}, 1);
    quern_schedule *other = setup_schedule_as(world, (quern_schedule_def){.max_reaction_rounds = 2}, 1);
    quern_system_def def = system_def("ping", put_damage);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_SET;
    setup_system(schedule, &def);
    def = system_def("pong", put_health);
    def.terms[0] = quern_term_read(damage);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_SET;
    setup_system(other, &def);
    (void)with_health(1);
    cr_assert_eq(quern_world_react(world, NULL), QUERN_ERROR_LIMIT);
    assert_message_has("several schedules");
    assert_message_has("'ping'");
    must(quern_world_react(world, NULL));
    quern_schedule_destroy(other);
    close_world();
}

static quern_result react_in_frame;

static void react_again(quern_context *context)
{
    react_in_frame = quern_world_react(quern_context_world(context), NULL);
}

Test(reactions, between_frames_is_not_within_one)
{
    open_world();
    quern_system_def def = {.name = "again", .begin = react_again, .flags = QUERN_SYSTEM_EXCLUSIVE};
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    cr_assert_eq(react_in_frame, QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_world_react(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    close_world();
}

Test(reactions, a_schedule_may_go_while_something_waits_for_its_reactions)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    must(quern_entity_destroy(world, entity));
    (void)with_health(2);
    quern_schedule_destroy(schedule);
    assert_valid(world);
    schedule = setup_schedule(world);
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    frame();
    cr_assert_eq(list_count, 0);
    close_world();
}

/* ------------------------------------------------------------------------------------------- what is seen */

Test(reactions, a_description_has_their_segments_behind_the_phases)
{
    open_world();
    quern_system_def def = note_def("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED | QUERN_ON_PRESENT);
    def.phase = 1;
    setup_system(schedule, &def);
    const char *text = described(schedule);
    const char *heading = strstr(text, "reactions, in at most 8 rounds after each sync point\n");
    cr_assert_not_null(heading, "%s", text);
    cr_assert_not_null(
        strstr(heading, "'watch': read 'health'; reacts to added, removed, present; of phase 'p1'"), "%s",
        text);
    static char json[65536];
    quern_buffer buffer = {json, sizeof json, 0};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_buffer(&buffer)));
    cr_assert_not_null(strstr(json, "\"reactions\":"), "%s", json);
    cr_assert_not_null(strstr(json, "\"max_rounds\":"), "%s", json);
    cr_assert_not_null(strstr(json, "\"reacts_to\":"), "%s", json);
    close_world();
}

Test(reactions, a_description_without_them_says_nothing)
{
    open_world();
    setup_reader(schedule, "read", health);
    cr_assert_null(strstr(described(schedule), "reaction"));
    close_world();
}

Test(reactions, a_profile_has_their_times_and_a_trace_their_views)
{
    quern_trace *trace;
    must(quern_trace_create(&(quern_trace_def){.track_count = 2}, &trace));
    open_as((quern_schedule_def){.trace = trace}, 1);
    quern_system_def def = system_def("sum", add_up);
    def.terms[0] = quern_term_read(health);
    def.reacts_to = QUERN_ON_ADDED;
    def.partial_bytes = 8;
    const quern_system system = setup_system(schedule, &def);
    quern_trace_start(trace);
    must(quern_schedule_set_profiling(schedule, true));
    quern_jobs *jobs = setup_jobs(2);
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < 20; i++) {
        create_values(20000);
        must_run(schedule, jobs);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.entity_count, 20000);
        time_ns += stats.time_ns;
    }
    cr_assert_gt(time_ns, 0u);
    quern_trace_stop(trace);
    static char text[1 << 22];
    quern_buffer buffer = {text, sizeof text, 0};
    must(quern_trace_write(trace, quern_sink_buffer(&buffer)));
    cr_assert_not_null(strstr(text, "\"cat\":\"pass\",\"name\":\"sum\""), "%.2000s", text);
    quern_jobs_destroy(jobs);
    close_world();
    quern_trace_destroy(trace);
}

Test(reactions, a_capture_has_a_task_for_what_is_gone_and_one_for_what_came)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    must(quern_entity_destroy(world, entity));
    create_values(5000);
    quern_capture *capture;
    must(quern_capture_create(NULL, &capture));
    list_count = 0;
    quern_jobs *jobs = setup_jobs(2);
    must(quern_schedule_run_captured(schedule, jobs, 0, capture));
    cr_assert_eq(list_count, 5001);
    assert_shown(0, QUERN_ON_REMOVED, entity, 1);
    quern_jobs_destroy(jobs);
    quern_capture_destroy(capture);
    close_world();
}

/* -------------------------------------------------------------------------------------- what is refused */

static void must_not_add(const quern_system_def *def, const char *reason)
{
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, def, NULL));
    assert_message_has(reason);
}

Test(reactions, what_they_cannot_have_is_refused)
{
    open_world();
    quern_relation parent;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to", .levels = true},
                                 &parent));
    quern_system_def def = note_def("wrong", QUERN_ON_ADDED);
    def.terms[0] = (quern_term){0};
    must_not_add(&def, "no terms");
    def = note_def("wrong", 16);
    must_not_add(&def, "unknown kinds");
    def = note_def("wrong", QUERN_ON_PRESENT | QUERN_ON_SET);
    must_not_add(&def, "QUERN_ON_PRESENT without QUERN_ON_ADDED");
    def = note_def("wrong", QUERN_ON_ADDED);
    def.interval_seconds = 1;
    must_not_add(&def, "an interval");
    def = note_def("wrong", QUERN_ON_ADDED);
    def.levels = parent;
    must_not_add(&def, "levels");
    def = note_def("wrong", QUERN_ON_ADDED);
    def.terms[0] = quern_term_changed(def.terms[0]);
    must_not_add(&def, "a change filter");
    def = note_def("wrong", QUERN_ON_ADDED);
    def.terms[1] = quern_term_target(parent, (quern_entity){0});
    must_not_add(&def, "a target term");
    def = note_def("wrong", QUERN_ON_ADDED | QUERN_ON_REMOVED);
    def.terms[1] = quern_term_up(damage, parent);
    must_not_add(&def, "an up-term");
    def = note_def("wrong", QUERN_ON_REMOVED);
    def.terms[0] = quern_term_write(health);
    must_not_add(&def, "a term to write");
    def = note_def("wrong", QUERN_ON_ADDED);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    def.partial_bytes = 8;
    must_not_add(&def, "exclusive");
    def = note_def("right", QUERN_ON_ADDED | QUERN_ON_SET);
    def.terms[1] = quern_term_up(damage, parent);
    setup_system(schedule, &def);
    close_world();
}

Test(reactions, what_owns_something_and_cannot_be_copied_cannot_be_shown_when_it_is_gone)
{
    open_world();
    static atomic_llong live;
    const quern_component box = owned_register(world, "box", &live);
    quern_system_def def = note_def("wrong", QUERN_ON_REMOVED);
    def.terms[1] = quern_term_read(box);
    must_not_add(&def, "'box'");
    def.terms[1] = quern_term_with(box);
    setup_system(schedule, &def);
    close_world();
}

Test(reactions, they_are_ordered_among_themselves)
{
    open_world();
    setup_reader(schedule, "plain", health);
    quern_system_def def = note_def("watch", QUERN_ON_ADDED);
    def.after[0] = "plain";
    setup_system(schedule, &def);
    cr_assert_eq(quern_schedule_compile(schedule), QUERN_ERROR_SCHEDULE_CONFLICT);
    assert_message_has("reactions run at sync points");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

Test(reactions, before_and_after_name_reactions_of_one_phase)
{
    open_world();
    add_note("watch", QUERN_ON_ADDED);
    quern_system_def def = note_def("late", QUERN_ON_ADDED);
    def.phase = 1;
    def.before[0] = "watch";
    setup_system(schedule, &def);
    cr_assert_eq(quern_schedule_compile(schedule), QUERN_ERROR_SCHEDULE_CONFLICT);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* --------------------------------------------------------------------------------- where memory is missing */

static _Atomic uint64_t added_count, removed_count;

static void tally(quern_context *context, const quern_view *view)
{
    const tracked *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(values == NULL || tracked_is_live(&values[i]));
    _Atomic uint64_t *count =
        quern_context_reaction(context) == QUERN_ON_REMOVED ? &removed_count : &added_count;
    atomic_fetch_add(count, view->count);
}

/* Every allocation of a program fails once: what happened is shown later, once, and nothing is lost. */
static bool play_with_failure(uint64_t failing_call, quern_jobs *jobs)
{
    static tracked_counts counts;
    memset((void *)&counts, 0, sizeof counts);
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(memory);
    const quern_world_def world_def = {.allocator = interface};
    must(quern_world_create(&world_def, &world));
    const quern_component type = tracked_register(world, "tracked", &counts);
    const quern_component other = setup_component(world, "other", 8, 8);
    schedule = setup_schedule(world);
    added_count = removed_count = 0;
    quern_system_def def = system_def("tally", tally);
    def.terms[0] = quern_term_read(type);
    def.reacts_to = QUERN_ON_ADDED | QUERN_ON_REMOVED;
    def.partial_bytes = 8;
    const uint64_t start = failing_allocator_call_count(memory);
    failing_allocator_fail_at(memory, start + failing_call);
    quern_system first, second;
    while (quern_schedule_add_system(schedule, &def, &first) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    def.name = "tally too";
    while (quern_schedule_add_system(schedule, &def, &second) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    enum { COUNT = 700 };
    quern_entity entities[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const quern_component components[] = {type, other};
        while (quern_entity_create_with(world, components, NULL, 1 + i % 2, &entities[i]) ==
               QUERN_ERROR_OUT_OF_MEMORY)
            ;
    }
    while (quern_schedule_run(schedule, jobs, 0) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    cr_assert_eq(added_count, 2 * COUNT);
    for (uint32_t i = 0; i < COUNT; i += 2)
        while (quern_entity_destroy(world, entities[i]) == QUERN_ERROR_OUT_OF_MEMORY)
            ;
    for (uint32_t i = 1; i < COUNT; i += 2)
        while (quern_entity_remove(world, entities[i], type) == QUERN_ERROR_OUT_OF_MEMORY)
            ;
    while (quern_schedule_run(schedule, jobs, 0) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    cr_assert_eq(added_count, 2 * COUNT);
    cr_assert_eq(removed_count, 2 * COUNT);
    assert_valid(world);
    const bool has_failed = failing_allocator_failed_count(memory) > 0;
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0);
    cr_assert_eq(atomic_load(&counts.broken_count), 0);
    failing_allocator_close(memory);
    return has_failed;
}

Test(reactions, what_happened_is_shown_once_whatever_allocation_fails, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(2);
    uint64_t failing_call = 1;
    while (play_with_failure(failing_call, failing_call % 2 == 0 ? jobs : NULL))
        failing_call++;
    cr_assert_gt(failing_call, 20u);
    quern_jobs_destroy(jobs);
}
