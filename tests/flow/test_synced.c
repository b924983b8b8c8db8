/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Sync points that the schedule makes between systems: after_commands_of, and syncs_between of a phase. */

#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

static quern_component number;
static quern_event note;
static quern_schedule *schedule;
static failing_allocator *memory;

static void open_scene(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    note = make_event(world, .name = "note", .size_bytes = 8, .alignment_bytes = 8);
    schedule = setup_phases(world, 2);
}

TestSuite(synced, .init = open_scene, .fini = close_valid_world, .timeout = 120);

static void spawn(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint64_t i = 0; i < 10; i++)
        record_entity_with(commands, &number, (const void *[]){&i}, 1);
    cr_assert(quern_context_emit(context, note, &(uint64_t){1}, 1));
}

static uint32_t row_count, note_count, reaction_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    row_count += view->count;
}

static void count_notes(quern_context *context)
{
    note_count += (uint32_t)quern_context_event_count(context, note);
}

static void react(quern_context *context, const quern_view *view)
{
    reaction_count += view->count;
}

static uint32_t count_syncs(const quern_schedule *of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->plan.first_reaction_segment; i++)
        count += of->plan.segments.items[i].kind == QUERN__SEGMENT_SYNC;
    return count;
}

static quern_system_def counting(const char *name)
{
    quern_system_def def = system_def(name, count_rows);
    def.begin = count_notes;
    def.terms[0] = quern_term_read(number);
    def.reads_events[0] = note;
    def.flags = QUERN_SYSTEM_SERIAL;
    return def;
}

static void add_spawner(const char *name)
{
    make_system(schedule, name, NULL, .begin = spawn, .emits = {note});
}

static void play(quern_jobs *jobs)
{
    row_count = note_count = reaction_count = 0;
    must_run(schedule, jobs);
}

Test(synced, a_system_sees_the_commands_and_events_of_those_before_it)
{
    quern_system_def def = counting("look");
    def.after_commands_of[0] = "spawn";
    setup_system(schedule, &def);
    add_spawner("spawn");
    make_system(schedule, "react", react, .terms = {quern_term_read(number)},
                .reacts_to = QUERN_REACT_ADDED);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        play(jobs);
        cr_assert_eq(row_count, 10u * (i + 1));
        cr_assert_eq(note_count, 1u);
        cr_assert_eq(reaction_count, 10u);
        quern_jobs_destroy(jobs);
    }
    cr_assert_eq(count_syncs(schedule), 3u);
    cr_assert_not_null(strstr(described(schedule), "sync: 'look' sees the commands of 'spawn'\n"));
    const quern_system spawner = quern_schedule_find_system(schedule, "spawn");
    must(quern_schedule_set_system_enabled(schedule, spawner, false));
    play(NULL);
    cr_assert_eq(count_syncs(schedule), 3u, "made also if nothing ran");
    must(quern_schedule_remove_system(schedule, spawner));
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_compile(schedule));
    assert_message_has("after the commands of 'spawn'");
    must(quern_schedule_replace_system(schedule, quern_schedule_find_system(schedule, "look"),
                                       &(quern_system_def){.begin = idle_callback}));
    play(NULL);
    cr_assert_eq(count_syncs(schedule), 2u);
}

Test(synced, a_phase_may_ask_for_syncs_between_all_ordered_systems)
{
    quern_schedule_destroy(schedule);
    schedule = setup_schedule_as(world, (quern_schedule_def){.syncs_between = {false, true}}, 2);
    for (uint32_t phase = 0; phase < 2; phase++) {
        quern_system_def def = counting(phase == 0 ? "look" : "look again");
        const char *spawner = phase == 0 ? "spawn" : "spawn again";
        def.phase = phase;
        def.after[0] = spawner;
        setup_system(schedule, &def);
        make_system(schedule, spawner, NULL, .begin = spawn, .emits = {note}, .phase = phase);
        make_system(schedule, phase == 0 ? "free" : "free again", NULL, .begin = idle_callback,
                    .phase = phase);
    }
    play(NULL);
    cr_assert_eq(row_count, 0u + 20u);
    cr_assert_eq(count_syncs(schedule), 3u);
    static const char *const phases[] = {"p1", "p0"};
    must(quern_schedule_set_phases(schedule, phases, 2));
    play(NULL);
    cr_assert_eq(row_count, 30u + 30u, "the phase has kept it");
}

Test(synced, sets_are_seen_as_a_whole)
{
    quern_system_def def = counting("look");
    def.after_commands_of[0] = "spawners";
    setup_system(schedule, &def);
    for (uint32_t i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%u", i);
        make_system(schedule, name, NULL, .begin = spawn, .emits = {note}, .sets = {"spawners"});
    }
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "spawners"}));
    play(NULL);
    cr_assert_eq(row_count, 30u);
    cr_assert_eq(count_syncs(schedule), 3u);
    must(quern_schedule_add_set(schedule,
                                &(quern_set_def){.name = "late", .after_commands_of = {"spawners"}}));
    def = counting("late look");
    def.sets[0] = "late";
    setup_system(schedule, &def);
    play(NULL);
    cr_assert_eq(row_count, 60u + 60u);
    cr_assert_eq(count_syncs(schedule), 3u, "one sync point serves both");
}

Test(synced, rules_that_cannot_hold_are_refused)
{
    add_spawner("spawn");
    make_system(schedule, "react", react, .terms = {quern_term_read(number)},
                .reacts_to = QUERN_REACT_ADDED, .after_commands_of = {"spawn"});
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "reactions"}));
    make_system(schedule, "first", react, .terms = {quern_term_read(number)},
                .reacts_to = QUERN_REACT_ADDED, .sets = {"reactions"});
    must(quern_schedule_replace_system(schedule, quern_schedule_find_system(schedule, "react"),
                                       &(quern_system_def){.run = react,
                                                           .terms = {quern_term_read(number)},
                                                           .reacts_to = QUERN_REACT_ADDED,
                                                           .after_commands_of = {"reactions"}}));
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("use after");
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "first")));
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "react")));
    const quern_system late = make_system(schedule, "late", NULL, .begin = idle_callback, .phase = 1,
                                          .after_commands_of = {"spawn"});
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("one phase");
    must(quern_schedule_replace_system(
        schedule, late,
        &(quern_system_def){.begin = idle_callback, .before = {"spawn"}, .after_commands_of = {"spawn"}}));
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("cycle");
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_add_system(
                    schedule,
                    &(quern_system_def){.name = "x", .begin = idle_callback, .after_commands_of = {""}},
                    NULL));
}

/* ------------------------------------------------------------------------------------------- fewest */

enum { MOST = 9 };

/* What systems in their order ask for: must_see[j][i]: j must see the commands of i. */
typedef struct order_case {
    uint32_t count;
    bool must_see[MOST][MOST];
    bool is_exclusive[MOST];
} order_case;

/* Returns whether sync points before these systems, one bit each, do for all. */
static bool is_enough(const order_case *it, uint32_t places)
{
    for (uint32_t j = 0; j < it->count; j++) {
        if (it->is_exclusive[j] && (places >> j & 1) == 0) return false;
        for (uint32_t i = 0; i < j; i++) {
            const uint32_t between = ((2u << j) - 1) & ~((2u << i) - 1); /* i + 1 to j */
            if (it->must_see[j][i] && (places & between) == 0) return false;
        }
    }
    return true;
}

static uint32_t fewest(const order_case *it)
{
    uint32_t best = it->count;
    for (uint32_t places = 0; places < 1u << it->count; places++)
        if (is_enough(it, places) && quern__count_bits_32(places) < best)
            best = quern__count_bits_32(places);
    return best;
}

Test(synced, no_choice_of_sync_points_needs_fewer)
{
    random_source random = {7};
    char names[MOST][8];
    for (uint32_t i = 0; i < MOST; i++)
        snprintf(names[i], sizeof names[i], "s%u", i);
    quern_schedule_destroy(schedule);
    for (uint32_t turn = 0; turn < 300; turn++) {
        order_case it = {.count = 2 + (uint32_t)random_below(&random, MOST - 1)};
        schedule = setup_phases(world, 1);
        for (uint32_t j = 0; j < it.count; j++) {
            quern_system_def def = system_def(names[j], NULL);
            uint32_t rule_count = 0;
            def.begin = idle_callback;
            it.is_exclusive[j] = random_chance(&random, 10);
            if (it.is_exclusive[j]) def.flags = QUERN_SYSTEM_EXCLUSIVE;
            for (uint32_t i = 0; i < j; i++) {
                if (!random_chance(&random, turn % 40)) continue;
                it.must_see[j][i] = true;
                def.after_commands_of[rule_count++] = names[i];
            }
            setup_system(schedule, &def);
        }
        must(quern_schedule_compile(schedule));
        uint32_t places = 0;
        for (uint32_t i = 0; i < schedule->plan.segments.count; i++)
            if (schedule->plan.segments.items[i].kind == QUERN__SEGMENT_SYNC)
                places |= 1u << schedule->plan.segments.items[i].first;
        places &= (1u << it.count) - 1; /* without the end of the phase */
        cr_assert(is_enough(&it, places));
        cr_assert_eq(quern__count_bits_32(places), fewest(&it), "turn %u: %x", turn, places);
        must_run(schedule, NULL);
        quern_schedule_destroy(schedule);
    }
    schedule = setup_phases(world, 2);
}

/* More sync points than phases can be. */
Test(synced, the_number_of_phases_is_no_limit)
{
    char name[8], before[8];
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "s%u", i);
        snprintf(before, sizeof before, "s%u", i - 1);
        make_system(schedule, name, NULL, .begin = spawn, .emits = {note},
                    .after_commands_of = {i > 0 ? before : NULL});
    }
    quern_system_def def = counting("look");
    def.after_commands_of[0] = "s99";
    setup_system(schedule, &def);
    play(NULL);
    cr_assert_eq(row_count, 1000u);
    cr_assert_eq(count_syncs(schedule), 100u + 2u);
}
