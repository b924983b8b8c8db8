/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Schedules that change between frames: systems, reactions and phases are removed, replaced and added again. */

#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"

#include <quern/profile.h>
#include <quern/replay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTITIES = 300 };

static failing_allocator *memory;
static quern_component number, other, tag;
static quern_event note;
static quern_schedule *schedule;
static quern_entity entities[ENTITIES];

static void open_scene(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    tag = setup_tag(world, "tag");
    note = make_event(world, .name = "note", .size_bytes = 8, .alignment_bytes = 8);
    for (uint32_t i = 0; i < ENTITIES; i++)
        entities[i] = setup_entity_with(world, (const quern_component[]){number, other}, 2);
    schedule = setup_phases(world, 2);
}

TestSuite(changed_schedule, .init = open_scene, .fini = close_valid_world, .timeout = 120);

static uint64_t value_of(quern_component component, uint32_t i)
{
    return *(const uint64_t *)quern_entity_get(world, entities[i], component);
}

static void add_one(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        values[i]++;
}

static void twice(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] *= 2;
}

static quern_system add_adder(const char *name)
{
    return make_system(schedule, name, add_one, .terms = {quern_term_write(number)});
}

/* ------------------------------------------------------------------------------------------ removing */

Test(changed_schedule, other_systems_go_on_after_a_removal)
{
    add_adder("a");
    const quern_system b = make_system(schedule, "b", twice, .terms = {quern_term_write(number)});
    const quern_system c = add_adder("c");
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 7), 3u); /* (0 + 1) * 2 + 1 */
    must(quern_schedule_remove_system(schedule, b));
    cr_assert_eq(quern_schedule_system_count(schedule), 2u);
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 7), 5u);
    cr_assert_eq(quern_schedule_system_at(schedule, 1).bits, c.bits);
    cr_assert_eq(quern_schedule_system_at(schedule, 2).bits, 0u);
    cr_assert_null(strstr(described(schedule), "'b'"));
    must(quern_schedule_remove_system(schedule, c));
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "a")));
    must_run(schedule, NULL); /* without systems */
    cr_assert_eq(value_of(number, 7), 5u);
}

Test(changed_schedule, handles_of_removed_systems_are_refused)
{
    quern_system_stats stats;
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    const quern_system kept = add_adder("kept"), old = add_adder("gone");
    const quern_sink sink = quern_sink_bytes(&(quern_byte_buffer){.bytes = NULL});
    for (uint32_t round = 0; round < 3; round++) {
        if (round == 1) must(quern_schedule_remove_system(schedule, old));
        if (round == 2) {
            const quern_system again = add_adder("gone");
            cr_assert_neq(again.bits, old.bits);
            cr_assert_eq(quern_schedule_find_system(schedule, "gone").bits, again.bits);
        }
        if (round == 0) continue;
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_remove_system(schedule, old));
        assert_message_has("'gone'");
        must_refuse(INVALID_ARGUMENT, world,
                    quern_schedule_replace_system(schedule, old, &(quern_system_def){.run = add_one}));
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_system_enabled(schedule, old, false));
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_target(schedule, old, entities[0]));
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_get_system_stats(schedule, old, &stats));
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_get_system_counts(schedule, old, counts));
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_describe_edges(schedule, old, false, sink));
        assert_refused_value(world, quern_schedule_is_system_enabled(schedule, old));
        assert_refused_value(world, quern_schedule_has_edge(schedule, old, kept));
        assert_refused_value(world, quern_schedule_are_fused(schedule, kept, old));
        if (round == 1) cr_assert_eq(quern_schedule_find_system(schedule, "gone").bits, 0u);
        must_run(schedule, NULL);
    }
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_remove_system(schedule, (quern_system){0}));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_remove_system(schedule, (quern_system){999}));
}

/* A name's slot has as many generations as fit into a handle, and then the name gets another slot. */
Test(changed_schedule, handles_are_never_given_twice)
{
    runs_on_one_thread();
    const quern_system first = add_adder("name");
    quern_system last = first;
    for (uint32_t i = 0; i < (1u << QUERN__SYSTEM_INDEX_BITS) + 10; i++) {
        must(quern_schedule_remove_system(schedule, last));
        const quern_system next = add_adder("name");
        cr_assert(next.bits != first.bits && next.bits != last.bits);
        last = next;
    }
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_remove_system(schedule, first));
    cr_assert_eq(quern_schedule_find_system(schedule, "name").bits, last.bits);
    cr_assert_eq(schedule->plan.slots.count, 2u);
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 0), 1u);
}

Test(changed_schedule, rules_that_name_a_removed_system_are_refused_until_it_is_back)
{
    const quern_system a = add_adder("a");
    make_system(schedule, "b", twice, .terms = {quern_term_write(number)}, .before = {"a"});
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 0), 1u); /* 0 * 2 + 1 */
    must(quern_schedule_remove_system(schedule, a));
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_compile(schedule));
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_run(schedule, NULL, 0));
    assert_message_has("'a'");
    add_adder("a");
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 0), 3u);
}

static quern_system removed_in_frame;
static quern_schedule *changed_in_frame;
static uint32_t refused_count;

static void change_in_frame(quern_context *context)
{
    static const char *const phases[] = {"p0", "p1"};
    refused_count += quern_schedule_remove_system(changed_in_frame, removed_in_frame) != QUERN_OK;
    refused_count += strstr(quern_error_message(), "quern_schedule_remove_system") != NULL;
    refused_count += quern_schedule_replace_system(changed_in_frame, removed_in_frame,
                                                   &(quern_system_def){.run = twice}) != QUERN_OK;
    refused_count += quern_schedule_set_phases(changed_in_frame, phases, 2) != QUERN_OK;
}

Test(changed_schedule, a_frame_in_progress_refuses_changes)
{
    static const uint32_t flags[] = {0, QUERN_SYSTEM_EXCLUSIVE};
    for (uint32_t i = 0; i < COUNT_OF(flags); i++) {
        removed_in_frame = add_adder("adder");
        changed_in_frame = schedule;
        refused_count = 0;
        const quern_system changer =
            make_system(schedule, "changer", NULL, .begin = change_in_frame, .flags = flags[i]);
        must_run(schedule, NULL);
        cr_assert_eq(refused_count, 4u);
        cr_assert_eq(quern_schedule_system_count(schedule), 2u);
        must(quern_schedule_remove_system(schedule, changer));
        must(quern_schedule_remove_system(schedule, removed_in_frame));
    }
}

Test(changed_schedule, an_exclusive_system_may_change_another_schedule)
{
    quern_schedule *second = setup_phases(world, 2);
    removed_in_frame = make_system(second, "adder", add_one, .terms = {quern_term_write(number)});
    changed_in_frame = second;
    refused_count = 0;
    make_system(schedule, "changer", NULL, .begin = change_in_frame, .flags = QUERN_SYSTEM_EXCLUSIVE);
    must_run(second, NULL);
    must_run(schedule, NULL);
    cr_assert_eq(quern_schedule_system_count(second), 0u);
    must_run(second, NULL);
    cr_assert_eq(value_of(number, 0), 1u);
}

/* ---------------------------------------------------------------------------------------- replacing */

static uint64_t seen_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    seen_count += view->count;
}

static void count_rows_again(quern_context *context, const quern_view *view)
{
    seen_count += 1000 * view->count;
}

Test(changed_schedule, a_replaced_system_keeps_handle_order_and_state)
{
    const quern_system a = make_system(schedule, "a", twice, .terms = {quern_term_write(number)});
    add_adder("b");
    const quern_system filter =
        make_system(schedule, "filter", count_rows, .terms = {quern_term_changed(quern_term_read(other))});
    const quern_system off = add_adder("off");
    must(quern_schedule_set_system_enabled(schedule, off, false));
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, ENTITIES);
    must(quern_schedule_replace_system(
        schedule, a, &(quern_system_def){.run = add_one, .terms = {quern_term_write(number)}}));
    must(quern_schedule_replace_system(
        schedule, filter,
        &(quern_system_def){.name = "filter",
                            .run = count_rows_again,
                            .terms = {quern_term_changed(quern_term_read(other))}}));
    must(quern_schedule_replace_system(
        schedule, off, &(quern_system_def){.run = twice, .terms = {quern_term_write(number)}}));
    cr_assert_eq(quern_schedule_find_system(schedule, "a").bits, a.bits);
    cr_assert_not(quern_schedule_is_system_enabled(schedule, off));
    must(quern_entity_set(world, entities[3], other, &(uint64_t){5}));
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 0), 3u); /* 1 + 1 + 1 */
    /* only the chunk with the change */
    cr_assert(seen_count > ENTITIES + 999 && seen_count <= ENTITIES + 1000 * ENTITIES);
    const uint64_t seen = seen_count;
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, seen);
    cr_assert_eq(quern_schedule_system_at(schedule, 0).bits, a.bits);
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_replace_system(schedule, a,
                                              &(quern_system_def){.name = "x", .begin = idle_callback}));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_replace_system(schedule, a, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_replace_system(schedule, a, &(quern_system_def){0}));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_replace_system(schedule, a,
                                              &(quern_system_def){.begin = idle_callback, .phase = 2}));
}

static double last_delta;

static void note_delta(quern_context *context)
{
    seen_count++;
    last_delta = quern_context_delta_seconds(context);
}

Test(changed_schedule, a_replaced_system_keeps_its_times)
{
    const quern_system slow =
        make_system(schedule, "slow", NULL, .begin = note_delta, .interval_seconds = 1);
    seen_count = 0;
    must(quern_schedule_run(schedule, NULL, 0.75));
    must(quern_schedule_replace_system(
        schedule, slow, &(quern_system_def){.begin = note_delta, .interval_seconds = 1, .phase = 1}));
    must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(seen_count, 1u);
    cr_assert_float_eq(last_delta, 1.25, 1e-9);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, slow, &stats));
    cr_assert_eq(stats.phase, 1u);
    must(quern_schedule_remove_system(schedule, slow));
    make_system(schedule, "slow", NULL, .begin = note_delta, .interval_seconds = 1);
    must(quern_schedule_run(schedule, NULL, 0.75)); /* a new system: 0.25 s of the old one are gone */
    cr_assert_eq(seen_count, 1u);
}

static void emit_notes(quern_context *context)
{
    for (uint64_t i = 0; i < 3; i++)
        cr_assert(quern_context_emit(context, note, &i, 1));
}

static void count_notes(quern_context *context)
{
    QUERN_EACH_EVENT(context, note, value, uint64_t)
    seen_count += 1 + 0 * *value;
}

static void run_notes(quern_context *context, const quern_view *view)
{
    seen_count += 100 * view->count;
}

Test(changed_schedule, a_replaced_system_keeps_its_place_in_events)
{
    const quern_system emitter = make_system(schedule, "emit", NULL, .begin = emit_notes, .emits = {note});
    const quern_system reader =
        make_system(schedule, "read", NULL, .begin = count_notes, .reads_events = {note}, .phase = 1);
    seen_count = 0;
    must(quern_schedule_set_system_enabled(schedule, reader, false));
    must_run(schedule, NULL);
    must(quern_schedule_replace_system(schedule, reader,
                                       &(quern_system_def){.run = run_notes, .items = note, .phase = 1}));
    must(quern_schedule_remove_system(schedule, emitter));
    must(quern_schedule_set_system_enabled(schedule, reader, true));
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, 300u); /* those that waited for it */
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, 300u);
    must(quern_schedule_remove_system(schedule, reader));
    quern_event_stats stats;
    must(quern_event_get_stats(world, note, &stats));
    cr_assert_eq(stats.reader_count, 0u);
}

/* ---------------------------------------------------------------------------------------- reactions */

static uint32_t shown[8]; /* rows by kind */

static void show(quern_context *context, const quern_view *view)
{
    shown[quern_context_reaction(context)] += view->count;
}

static void show_tenfold(quern_context *context, const quern_view *view)
{
    shown[quern_context_reaction(context)] += 10 * view->count;
}

static void show_old(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) != QUERN_REACT_SET) return;
    const uint64_t *olds = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        shown[QUERN_REACT_SET] += (uint32_t)olds[i];
}

enum { ALL = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED };

/* Makes something pending of each kind: 2 rows ADDED, 3 SET, 4 REMOVED. */
static void make_pending(void)
{
    static const uint64_t values[3] = {7, 8, 9};
    for (uint32_t i = 0; i < 2; i++)
        setup_entity_with(world, (const quern_component[]){number, other}, 2);
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_set(world, entities[i], number, &values[i]));
    for (uint32_t i = 4; i < 8; i++)
        must(quern_entity_destroy(world, entities[i]));
}

static quern_system add_reaction(const char *name, uint32_t kinds)
{
    memset(shown, 0, sizeof shown);
    return make_system(schedule, name, show, .terms = {quern_term_read(number)}, .reacts_to = kinds);
}

Test(changed_schedule, what_waits_for_a_removed_reaction_goes)
{
    const quern_system reaction = add_reaction("reaction", ALL);
    const quern_system second = add_reaction("second", ALL);
    make_pending();
    must(quern_schedule_remove_system(schedule, reaction));
    assert_valid(world);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 2u);
    cr_assert_eq(shown[QUERN_REACT_SET], 3u);
    cr_assert_eq(shown[QUERN_REACT_REMOVED], 4u);
    must(quern_schedule_remove_system(schedule, second));
    add_reaction("reaction", ALL);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED] + shown[QUERN_REACT_SET] + shown[QUERN_REACT_REMOVED], 0u);
}

Test(changed_schedule, a_replaced_reaction_keeps_what_waits)
{
    const quern_system reaction = add_reaction("reaction", ALL);
    make_pending();
    must(quern_schedule_replace_system(
        schedule, reaction,
        &(quern_system_def){
            .run = show_tenfold, .terms = {quern_term_read(number)}, .reacts_to = ALL, .phase = 1}));
    assert_valid(world);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 20u);
    cr_assert_eq(shown[QUERN_REACT_SET], 30u);
    cr_assert_eq(shown[QUERN_REACT_REMOVED], 40u);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 20u);
}

Test(changed_schedule, a_replaced_reaction_keeps_old_values)
{
    static const quern_system_def def = {.run = show_old, .reacts_to = QUERN_REACT_SET};
    const quern_system reaction = make_system(schedule, "reaction", show, .reacts_to = QUERN_REACT_SET,
                                              .terms = {quern_term_read(number), quern_term_old(number)});
    memset(shown, 0, sizeof shown);
    must(quern_entity_set(world, entities[0], number, &(uint64_t){5}));
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_SET], 1u);
    must(quern_entity_set(world, entities[0], number, &(uint64_t){6}));
    quern_system_def replacing = def;
    replacing.terms[0] = quern_term_read(number);
    replacing.terms[1] = quern_term_old(number);
    must(quern_schedule_replace_system(schedule, reaction, &replacing));
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_SET], 6u); /* the old value 5 */
}

Test(changed_schedule, a_reaction_with_other_terms_keeps_rows_that_both_match)
{
    const quern_system reaction = make_system(schedule, "reaction", show, .reacts_to = ALL,
                                              .terms = {quern_term_read(number), quern_term_without(tag)});
    memset(shown, 0, sizeof shown);
    make_pending();
    must(quern_entity_add(world, entities[20], tag, NULL)); /* removed; and matches the new terms */
    must(quern_schedule_replace_system(schedule, reaction,
                                       &(quern_system_def){.run = show_tenfold,
                                                           .terms = {quern_term_write(number)},
                                                           .reacts_to = ALL | QUERN_REACT_PRESENT}));
    assert_valid(world);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 30u, "with the row that the old terms did not match");
    cr_assert_eq(shown[QUERN_REACT_SET], 30u);
    cr_assert_eq(shown[QUERN_REACT_REMOVED], 0u);
    /* with old terms, rows pending as SET are dropped: their old values are missing */
    must(quern_entity_set(world, entities[0], number, &(uint64_t){6}));
    must(quern_schedule_replace_system(
        schedule, reaction,
        &(quern_system_def){.run = show_old,
                            .terms = {quern_term_read(number), quern_term_old(number)},
                            .reacts_to = QUERN_REACT_SET}));
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_SET], 30u);
    /* and a system that is no reaction any more runs in its phase */
    must(quern_schedule_replace_system(
        schedule, reaction, &(quern_system_def){.run = add_one, .terms = {quern_term_write(number)}}));
    must_run(schedule, NULL);
    cr_assert_eq(value_of(number, 0), 7u);
    must(quern_schedule_replace_system(
        schedule, reaction,
        &(quern_system_def){.run = show, .terms = {quern_term_read(number)}, .reacts_to = ALL}));
    must(quern_entity_set(world, entities[0], number, &(uint64_t){6}));
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_SET], 31u);
}

/* ------------------------------------------------------------------------------------ failing memory */

static quern_system_def rich_def(void)
{
    return (quern_system_def){.run = show_tenfold,
                              .begin = emit_notes,
                              .terms = {quern_term_read(number), quern_term_old(number),
                                        quern_term_up_optional(other, quern_world_parent(world))},
                              .lookups = {{.component = other}},
                              .emits = {note},
                              .reads_events = {note},
                              .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET,
                              .after = {"second"},
                              .partial_bytes = 8};
}

Test(changed_schedule, a_replacement_without_memory_changes_nothing)
{
    const quern_system_def def = rich_def();
    const quern_system reaction = add_reaction("reaction", ALL);
    add_reaction("second", QUERN_REACT_ADDED);
    must_run(schedule, NULL);
    make_pending();
    for (uint64_t call = 1;; call++) {
        if (!runs_out_of_memory(memory, call, quern_schedule_replace_system(schedule, reaction, &def)))
            break;
        assert_valid(world);
        assert_message_has("'reaction'");
        cr_assert_eq(quern_schedule_find_system(schedule, "reaction").bits, reaction.bits);
        if (call % 3 != 0) continue;
        /* what waits is still there */
        memset(shown, 0, sizeof shown);
        must_run(schedule, NULL);
        cr_assert_eq(shown[QUERN_REACT_SET], 3u);
        cr_assert_eq(shown[QUERN_REACT_REMOVED], call == 3 ? 4u : 0u);
        for (uint32_t i = 0; i < 3; i++)
            must(quern_entity_set(world, entities[i], number, &(uint64_t){call}));
    }
    assert_valid(world);
    must_run(schedule, NULL);
}

Test(changed_schedule, a_removal_needs_no_memory)
{
    const quern_system reaction = add_reaction("reaction", ALL), adder = add_adder("adder");
    quern_schedule_set_profiling(schedule, true);
    must_run(schedule, NULL);
    make_pending();
    static const char *const phases[] = {"new", "p0"};
    failing_allocator_fail_from(memory, 1);
    must(quern_schedule_remove_system(schedule, reaction));
    must(quern_schedule_remove_system(schedule, adder));
    must(quern_schedule_set_phases(schedule, phases, 2));
    failing_allocator_heal(memory);
    must_run(schedule, NULL);
}

static void spawn(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < 2000; i++)
        record_entity_with(commands, &number, NULL, 1);
    must(quern_commands_add(commands, entities[0], tag, NULL));
}

Test(changed_schedule, kept_commands_and_events_of_a_removed_system_are_applied)
{
    const quern_system spawner = make_system(schedule, "spawner", NULL, .begin = spawn);
    const quern_system emitter =
        make_system(schedule, "emitter", NULL, .begin = emit_notes, .emits = {note});
    const quern_system destroyer = add_adder("adder");
    make_system(schedule, "read", NULL, .begin = count_notes, .reads_events = {note}, .phase = 1);
    must_run(schedule, NULL);
    const uint64_t count = stats_of_world(world).entity_count;
    seen_count = 0;
    quern_result result = QUERN_OK;
    for (uint64_t call = 1; result == QUERN_OK && call < 100; call++) {
        failing_allocator_fail_from(memory, call);
        result = quern_schedule_run(schedule, NULL, 0);
        failing_allocator_heal(memory);
        if (result != QUERN_OK && quern_schedule_kept_command_count(schedule) == 0) result = QUERN_OK;
    }
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "no frame has kept commands");
    const uint64_t made = stats_of_world(world).entity_count - count;
    must(quern_entity_destroy(world, entities[0])); /* so that one command is dropped */
    must(quern_schedule_remove_system(schedule, spawner));
    must(quern_schedule_remove_system(schedule, emitter));
    must(quern_schedule_remove_system(schedule, destroyer));
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_world(world).entity_count, count + made + 2000 - 1);
    quern_dropped_command dropped;
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 1u);
    must(quern_schedule_get_dropped_command(schedule, 0, &dropped));
    cr_assert_eq(dropped.system.bits, 0u);
    cr_assert_str_eq(dropped.system_name, "spawner");
    cr_assert_gt(seen_count, 0u);
}

/* ------------------------------------------------------------------------------------------- phases */

Test(changed_schedule, phases_are_added_removed_and_reordered)
{
    static const char *const longer[] = {"p1", "middle", "p0", "last"};
    static const char *const fewer[] = {"p0", "middle"};
    quern_schedule_info info;
    add_adder("a");
    const quern_system b =
        make_system(schedule, "b", twice, .terms = {quern_term_write(number)}, .phase = 1);
    must(quern_schedule_set_fixed_step(schedule, 1, 0.5, 4));
    must(quern_schedule_run(schedule, NULL, 0.75));
    cr_assert_eq(value_of(number, 0), 2u);
    must(quern_schedule_set_phases(schedule, longer, 4));
    must(quern_schedule_get_info(schedule, &info));
    cr_assert_eq(info.phase_count, 4u);
    cr_assert_str_eq(info.phases[1], "middle");
    /* b is in the first phase now, and a quarter of a second of its step has passed */
    make_system(schedule, "c", add_one, .terms = {quern_term_write(number)}, .phase = 3);
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(value_of(number, 0), 6u); /* 2 * 2 + 1 + 1 */
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_phases(schedule, fewer, 2));
    assert_message_has("'p1'");
    must(quern_schedule_remove_system(schedule, b));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_phases(schedule, fewer, 2));
    assert_message_has("'last'");
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "c")));
    must(quern_schedule_set_phases(schedule, fewer, 2));
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(value_of(number, 0), 7u);
    must_refuse(LIMIT, world, quern_schedule_set_phases(schedule, fewer, 0));
    must_refuse(LIMIT, world, quern_schedule_set_phases(schedule, fewer, QUERN_MAX_PHASES + 1));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_set_phases(schedule, NULL, 1));
    must_refuse(DUPLICATE_NAME, world,
                quern_schedule_set_phases(schedule, (const char *const[]){"p0", "p0"}, 2));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_set_phases(schedule, (const char *const[]){"p0", ""}, 2));
}

/* ---------------------------------------------------------------------------------------- histories */

static quern_history *history;

static void open_history(void)
{
    const quern_history_def def = {.schedules = {schedule},
                                   .allocator = failing_allocator_interface(memory)};
    must(quern_history_create(world, &def, &history));
}

static quern_system add_filter(const char *name)
{
    return make_system(schedule, name, count_rows, .terms = {quern_term_changed(quern_term_read(other))});
}

Test(changed_schedule, a_frame_from_before_a_removal_can_be_restored)
{
    static const char *const phases[] = {"p0", "p1", "p2"};
    const quern_system a = add_filter("a"), b = add_filter("b"), late = add_filter("late");
    open_history();
    must(quern_schedule_set_system_enabled(schedule, late, false));
    must_run(schedule, NULL);
    must(quern_history_save(history, 1, NULL));
    must(quern_schedule_remove_system(schedule, a));
    must(quern_schedule_set_system_enabled(schedule, late, true));
    must(quern_schedule_set_phases(schedule, phases, 3));
    must_run(schedule, NULL);
    must(quern_history_save(history, 2, NULL));
    const uint64_t hash = quern_world_hash(world);
    add_filter("a");
    must_run(schedule, NULL);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_not(quern_schedule_is_system_enabled(schedule, late), "its state is that of the frame");
    seen_count = 0;
    must_run(schedule, NULL);
    /* b has seen everything, and the new a nothing */
    cr_assert_eq(seen_count, ENTITIES);
    must(quern_history_restore(history, 2, NULL));
    cr_assert_eq(quern_world_hash(world), hash);
    cr_assert(quern_schedule_is_system_enabled(schedule, late));
    must(quern_schedule_remove_system(schedule, b));
    must(quern_history_restore(history, 1, NULL));
    must_run(schedule, NULL);
    quern_history_destroy(history);
}

Test(changed_schedule, a_frame_with_phases_that_were_removed_since_can_be_restored)
{
    static const char *const phases[] = {"p0", "p1", "p2"}, *const fewer[] = {"p1"};
    must(quern_schedule_set_phases(schedule, phases, 3));
    must(quern_schedule_set_fixed_step(schedule, 1, 0.5, 4));
    make_system(schedule, "add", add_one, .terms = {quern_term_write(number)}, .phase = 1);
    open_history();
    must(quern_schedule_run(schedule, NULL, 0.25));
    must(quern_history_save(history, 1, NULL));
    must(quern_schedule_set_phases(schedule, fewer, 1));
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(value_of(number, 0), 1u);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(value_of(number, 0), 0u);
    /* a quarter of a second of the remaining phase's step has passed again */
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(value_of(number, 0), 1u);
    quern_history_destroy(history);
}

Test(changed_schedule, a_restore_gives_a_replaced_system_its_state)
{
    const quern_system filter = add_filter("filter"), reaction = add_reaction("reaction", ALL);
    open_history();
    must_run(schedule, NULL);
    make_pending();
    must(quern_history_save(history, 1, NULL));
    must_run(schedule, NULL);
    must(quern_schedule_replace_system(
        schedule, filter,
        &(quern_system_def){.run = count_rows_again,
                            .terms = {quern_term_changed(quern_term_read(other))}}));
    must(quern_schedule_replace_system(
        schedule, reaction,
        &(quern_system_def){.run = show_tenfold, .terms = {quern_term_read(number)}, .reacts_to = ALL}));
    memset(shown, 0, sizeof shown);
    must(quern_history_restore(history, 1, NULL));
    assert_valid(world);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 20u);
    cr_assert_eq(shown[QUERN_REACT_SET], 30u);
    cr_assert_eq(shown[QUERN_REACT_REMOVED], 40u);
    quern_history_destroy(history);
}

Test(changed_schedule, a_restored_frame_has_nothing_for_other_reactions)
{
    const quern_system reaction = add_reaction("reaction", ALL);
    open_history();
    must_run(schedule, NULL);
    make_pending();
    must(quern_history_save(history, 1, NULL));
    must(quern_schedule_remove_system(schedule, reaction));
    add_reaction("reaction", ALL); /* gets the number of the removed one */
    const quern_system present = make_system(schedule, "present", show_tenfold,
                                             .terms = {quern_term_read(number), quern_term_without(tag)},
                                             .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_PRESENT);
    must_run(schedule, NULL);
    memset(shown, 0, sizeof shown);
    must(quern_history_restore(history, 1, NULL));
    assert_valid(world);
    must_run(schedule, NULL);
    cr_assert_eq(shown[QUERN_REACT_SET] + shown[QUERN_REACT_REMOVED], 0u);
    cr_assert_eq(shown[QUERN_REACT_ADDED], 10u * (ENTITIES + 2 - 4), "as if it were added now");
    must(quern_schedule_remove_system(schedule, present));
    must(quern_history_restore(history, 1, NULL));
    must_run(schedule, NULL);
    quern_history_destroy(history);
}

/* ------------------------------------------------------------------------- profiles, traces, replays */

static bool has_text(quern_byte_buffer *bytes, const char *text)
{
    const quern_sink sink = quern_sink_bytes(bytes);
    cr_assert(sink.write(sink.user_data, "", 1));
    return strstr(bytes->bytes, text) != NULL;
}

Test(changed_schedule, profiles_traces_and_captures_go_on)
{
    quern_trace *trace;
    quern_frame_capture *capture;
    quern_byte_buffer bytes = {.bytes = NULL};
    quern_jobs *jobs = setup_jobs(2);
    must(quern_trace_create(&(quern_trace_def){.track_count = 8}, &trace));
    quern_schedule_destroy(schedule);
    must(quern_schedule_create(world, &(quern_schedule_def){.trace = trace, .timing = true}, &schedule));
    must(quern_frame_capture_create(NULL, &capture));
    quern_trace_start(trace);
    must(quern_schedule_set_profiling(schedule, true));
    quern_system gone = add_adder("gone"), kept = add_adder("kept");
    for (uint32_t round = 0; round < 6; round++) {
        quern_system_stats stats;
        must_run(schedule, jobs);
        must(quern_schedule_run_captured(schedule, jobs, 0, capture));
        must(quern_schedule_get_system_stats(schedule, gone, &stats));
        cr_assert_gt(stats.time_ns, 0u);
        must(quern_schedule_remove_system(schedule, gone));
        must(quern_schedule_get_system_stats(schedule, kept, &stats));
        cr_assert_gt(stats.time_ns, 0u);
        bytes.size_bytes = 0;
        must(quern_schedule_write_profile(schedule, quern_sink_bytes(&bytes)));
        cr_assert(has_text(&bytes, "kept"));
        cr_assert_not(has_text(&bytes, "gone"));
        gone = add_adder(round % 2 == 0 ? "gone" : "gone2");
        must(quern_schedule_get_system_stats(schedule, gone, &stats));
        cr_assert_eq(stats.time_ns, 0u, "the time of the removed system that had the name");
        must(quern_schedule_remove_system(schedule, gone));
        gone = add_adder("gone");
    }
    quern_trace_stop(trace);
    bytes.size_bytes = 0;
    must(quern_trace_write(trace, quern_sink_bytes(&bytes)));
    cr_assert(has_text(&bytes, "gone"));
    quern_byte_buffer_release(&bytes);
    quern_frame_capture_destroy(capture);
    quern_schedule_destroy(schedule);
    quern_trace_destroy(trace);
    quern_jobs_destroy(jobs);
    schedule = setup_phases(world, 2);
}

/* Changes the schedule before some frames; a replay repeats it. */
static void change_before(void *user_data, uint64_t frame)
{
    (void)user_data;
    if (frame == 2) must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "a")));
    if (frame == 4)
        must(quern_schedule_replace_system(
            schedule, quern_schedule_find_system(schedule, "b"),
            &(quern_system_def){.run = add_one, .terms = {quern_term_write(number)}}));
    if (frame == 6) add_adder("a");
}

static void open_replayed(void)
{
    quern_schedule_destroy(schedule);
    close_valid_world();
    open_scene();
    add_adder("a");
    make_system(schedule, "b", twice, .terms = {quern_term_write(number)});
}

Test(changed_schedule, replays_repeat_changes_of_the_schedule)
{
    quern_byte_buffer bytes = {.bytes = NULL};
    quern_replay_recorder *recorder;
    quern_replay_report report;
    open_replayed();
    must(quern_replay_recorder_create(schedule, quern_sink_bytes(&bytes), NULL, &recorder));
    for (uint64_t frame = 0; frame < 8; frame++) {
        change_before(NULL, frame);
        must(quern_replay_record(recorder, NULL, 0.25));
    }
    must(quern_replay_finish(recorder));
    const uint64_t hash = quern_world_hash(world);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        open_replayed();
        must(quern_replay_run(schedule, jobs, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                              &(quern_replay_run_def){.before_frame = change_before}, &report));
        cr_assert_eq(report.frame_count, 8u);
        cr_assert_eq(quern_world_hash(world), hash);
        quern_jobs_destroy(jobs);
    }
    quern_byte_buffer_release(&bytes);
}

/* ---------------------------------------------------------------------------------------- addresses */

/* An allocator that knows its blocks, so that a test can look for addresses in them. */
enum { MOST_BLOCKS = 65536 };
static struct {
    void *memory;
    size_t size_bytes;
} blocks[MOST_BLOCKS];
static uint32_t block_count;

static void *allocate_known(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    const quern_allocator plain = quern_allocator_default();
    void *made = plain.allocate(plain.user_data, size_bytes, alignment_bytes);
    cr_assert(made != NULL && block_count < MOST_BLOCKS);
    memset(made, 0, size_bytes);
    blocks[block_count].memory = made;
    blocks[block_count++].size_bytes = size_bytes;
    return made;
}

static void release_known(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    const quern_allocator plain = quern_allocator_default();
    uint32_t i = 0;
    while (blocks[i].memory != pointer)
        i++;
    blocks[i] = blocks[--block_count];
    plain.release(plain.user_data, pointer, size_bytes, alignment_bytes);
}

/* Asserts that no block has an address in [first, first + bytes). */
static void assert_no_address(uintptr_t first, size_t bytes, const char *what)
{
    for (uint32_t i = 0; i < block_count; i++)
        for (size_t k = 0; k + sizeof(uintptr_t) <= blocks[i].size_bytes; k += sizeof(uintptr_t)) {
            uintptr_t word;
            memcpy(&word, (const char *)blocks[i].memory + k, sizeof word);
            cr_assert(word < first || word >= first + bytes,
                      "an address of %s at byte %zu of a block of %zu", what, k, blocks[i].size_bytes);
        }
}

/* Everything of a definition that has an address. */
typedef struct module {
    quern_system_def def;
    char name[8], before[8], after[8];
    char user_data[8];
} module;

static bool always(quern_context *context)
{
    return quern_context_user_data(context) != NULL;
}

static void begin_module(quern_context *context)
{
    emit_notes(context);
}

static void end_module(quern_context *context)
{
    must(quern_commands_add(quern_context_commands(context), entities[1], tag, NULL));
}

static void run_module(quern_context *context, const quern_view *view)
{
    add_one(context, view);
    *(uint64_t *)quern_context_partial(context) = view->count;
}

static module *make_module(bool is_reaction)
{
    module *made = calloc(1, sizeof *made);
    (void)snprintf(made->name, sizeof made->name, "%s", is_reaction ? "react" : "module");
    (void)snprintf(made->after, sizeof made->after, "%s", is_reaction ? "first2" : "first");
    (void)snprintf(made->before, sizeof made->before, "%s", is_reaction ? "last2" : "last");
    made->def = (quern_system_def){.name = made->name,
                                   .run = run_module,
                                   .begin = begin_module,
                                   .end = end_module,
                                   .condition = always,
                                   .terms = {quern_term_write(number)},
                                   .emits = {note},
                                   .reads_events = {note},
                                   .before = {made->before},
                                   .after = {made->after},
                                   .partial_bytes = 8,
                                   .user_data = made->user_data};
    if (is_reaction) made->def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_PRESENT;
    return made;
}

/* Forgets the module, of which no address may be left. */
static void assert_forgotten(module *gone)
{
    assert_no_address((uintptr_t)gone, sizeof *gone, "the definition");
    assert_no_address((uintptr_t)run_module, 1, "run");
    assert_no_address((uintptr_t)begin_module, 1, "begin");
    assert_no_address((uintptr_t)end_module, 1, "end");
    assert_no_address((uintptr_t)always, 1, "condition");
    free(gone);
}

Test(changed_schedule, no_address_of_a_removed_or_replaced_system_is_left)
{
    quern_trace *trace;
    const quern_allocator known = {.allocate = allocate_known, .release = release_known};
    quern_jobs *jobs;
    quern_world *own = make_world(.allocator = known);
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 1, .allocator = known}, &jobs));
    must(quern_trace_create(&(quern_trace_def){.track_count = 4, .allocator = known}, &trace));
    quern_world *outer = world;
    quern_schedule *outer_schedule = schedule;
    world = own;
    number = setup_component(world, "number", 8, 8);
    tag = setup_tag(world, "tag");
    note = make_event(world, .name = "note", .size_bytes = 8, .alignment_bytes = 8);
    for (uint32_t i = 0; i < 50; i++)
        entities[i] = setup_entity_with(world, &number, 1);
    must(quern_schedule_create(world, &(quern_schedule_def){.trace = trace, .timing = true}, &schedule));
    must(quern_schedule_set_profiling(schedule, true));
    quern_trace_start(trace);
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}, .allocator = known},
                              &history));
    add_adder("first");
    add_adder("last");
    for (uint32_t i = 0; i < 2; i++)
        make_system(schedule, i == 0 ? "first2" : "last2", show, .terms = {quern_term_read(number)},
                    .reacts_to = QUERN_REACT_SET);
    for (uint32_t round = 0; round < 4; round++) {
        const bool is_reaction = round % 2 == 1;
        quern_system system;
        module *made = make_module(is_reaction);
        must(quern_schedule_add_system(schedule, &made->def, &system));
        must_run(schedule, jobs);
        must(quern_entity_set(world, entities[3], number, &(uint64_t){5}));
        must(quern_history_save(history, round, jobs));
        must_run(schedule, round == 2 ? NULL : jobs);
        if (round < 2) {
            must(quern_schedule_remove_system(schedule, system));
        } else {
            quern_system_def plain = {.run = is_reaction ? show : twice, .reacts_to = made->def.reacts_to};
            plain.terms[0] = quern_term_write(number);
            must(quern_schedule_replace_system(schedule, system, &plain));
        }
        assert_forgotten(made);
        must_run(schedule, jobs);
        must(quern_history_restore(history, round, jobs));
        must_run(schedule, jobs);
        if (round >= 2) must(quern_schedule_remove_system(schedule, system));
    }
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_trace_destroy(trace);
    quern_jobs_destroy(jobs);
    quern_world_destroy(own);
    cr_assert_eq(block_count, 0u);
    world = outer;
    schedule = outer_schedule;
}

/* ------------------------------------------------------------------------------- like a new schedule */

/* A schedule that has changed runs like one that had the same systems from the beginning, fused or not, at every number
 * of threads. */
static quern_schedule *make_changed(quern_schedule_def style, bool changes)
{
    schedule = setup_schedule_as(world, style, 2);
    const quern_system a = add_adder("a");
    if (changes) must_run(schedule, NULL);
    make_system(schedule, "b", twice, .terms = {quern_term_write(number)});
    make_system(schedule, "c", count_rows, .terms = {quern_term_read(number)}, .after = {"d"},
                .flags = QUERN_SYSTEM_SERIAL);
    make_system(schedule, "d", add_one, .terms = {quern_term_write(other)});
    if (!changes) return schedule;
    must_run(schedule, NULL);
    must(quern_schedule_replace_system(
        schedule, a,
        &(quern_system_def){.run = twice, .terms = {quern_term_write(other)}, .before = {"d"}}));
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "b")));
    must_run(schedule, NULL);
    make_system(schedule, "b", twice, .terms = {quern_term_write(number)});
    must(quern_schedule_replace_system(
        schedule, a, &(quern_system_def){.run = add_one, .terms = {quern_term_write(number)}}));
    return schedule;
}

Test(changed_schedule, a_changed_schedule_runs_like_a_new_one)
{
    quern_schedule_destroy(schedule);
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i, 1);
        uint64_t hashes[2];
        quern_jobs *jobs = setup_jobs(setting.thread_count);
        for (uint32_t changes = 0; changes < 2; changes++) {
            make_changed(schedule_style(setting.style), changes == 1);
            for (uint32_t k = 0; k < ENTITIES; k++) {
                must(quern_entity_set(world, entities[k], number, &(uint64_t){k}));
                must(quern_entity_set(world, entities[k], other, &(uint64_t){k}));
            }
            for (uint32_t frame = 0; frame < 5; frame++)
                must_run(schedule, jobs);
            hashes[changes] = quern_world_hash(world);
            quern_schedule_destroy(schedule);
        }
        cr_assert_eq(hashes[0], hashes[1]);
        quern_jobs_destroy(jobs);
    }
    schedule = setup_phases(world, 2);
}
