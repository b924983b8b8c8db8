/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reactions/reaction.h"
#include "core/world/world_internal.h"
#include "tests/sched/frame/reactions_scene.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Reactions that are disabled and enabled between frames: they are shown nothing that happened while they were
 * disabled, whether or not a frame ran meanwhile, and nothing that was pending when they were disabled. */

enum { ALL_KINDS = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED };

static quern_system watch;
static quern_entity seen[4]; /* entities that the reaction was shown */

static void open_watched(void)
{
    open_world();
    watch = add_note("watch", ALL_KINDS);
    for (uint64_t i = 0; i < 4; i++)
        seen[i] = with_health(i);
    frame();
    cr_assert_eq(list_count, 4u);
}

static void enable(bool enabled)
{
    must(quern_schedule_set_system_enabled(schedule, watch, enabled));
}

/* One change of each kind, by calls, by commands, and by moves to other archetypes. */
static void change_all(void)
{
    const uint64_t value = 50;
    must(quern_entity_set(world, seen[0], health, &value));
    must(quern_entity_destroy(world, seen[1]));
    must(quern_entity_set(world, with_health(9), health, &value));
    must(quern_entity_remove(world, seen[2], health));
    must(quern_entity_set(world, seen[2], health, &value));
    must(quern_entity_add(world, seen[3], dead, NULL));
    must(quern_commands_set(quern_world_commands(world), seen[3], health, &value));
    must(quern_world_flush(world));
}

/* Checks that the reaction is shown a new change of each kind and nothing else. */
static void expect_new_changes_only(void)
{
    const uint64_t value = 60;
    must(quern_entity_set(world, seen[0], health, &value));
    const quern_entity added = with_health(61);
    must(quern_entity_destroy(world, seen[3]));
    frame();
    cr_assert_eq(list_count, 3u, "%u rows were shown", list_count);
    assert_shown(0, QUERN_REACT_REMOVED, seen[3], 50);
    assert_shown(1, QUERN_REACT_ADDED, added, 61);
    assert_shown(2, QUERN_REACT_SET, seen[0], 60);
}

TestSuite(reactions_disabled, .fini = close_valid_world);

Test(reactions_disabled, changes_while_disabled_are_not_shown)
{
    open_watched();
    enable(false);
    change_all();
    cr_assert(!quern__reactions_are_pending(world->storage.reactions));
    enable(true);
    expect_new_changes_only();
}

Test(reactions_disabled, frames_and_rounds_while_disabled_make_no_difference)
{
    open_watched();
    enable(false);
    change_all();
    frame();
    must(quern_world_react(world, NULL));
    cr_assert_eq(list_count, 0u);
    enable(true);
    expect_new_changes_only();
}

Test(reactions_disabled, disabling_discards_what_is_pending)
{
    open_watched();
    change_all();
    enable(true); /* it is enabled already */
    cr_assert(quern__reactions_are_pending(world->storage.reactions));
    enable(false);
    cr_assert(!quern__reactions_are_pending(world->storage.reactions));
    enable(true);
    expect_new_changes_only();
}

Test(reactions_disabled, commands_count_when_they_are_applied)
{
    open_watched();
    const uint64_t value = 5;
    enable(false);
    must(quern_commands_set(quern_world_commands(world), seen[0], health, &value));
    enable(true);
    frame();
    cr_assert_eq(list_count, 1u);
    assert_shown(0, QUERN_REACT_SET, seen[0], 5);
    must(quern_commands_set(quern_world_commands(world), seen[0], health, &value));
    enable(false);
    must(quern_world_flush(world));
    enable(true);
    frame();
    cr_assert_eq(list_count, 0u);
}

static uint64_t old_value;

static void note_old(quern_context *context, const quern_view *view)
{
    const uint64_t *old = QUERN_COLUMN(view, 0, const uint64_t);
    cr_assert_eq(view->count, 1u);
    old_value = old[0];
}

Test(reactions_disabled, old_values_are_those_from_before_the_first_set_that_counts)
{
    open_world();
    watch = make_system(schedule, "old", note_old, .terms = {quern_term_old(health)},
                        .reacts_to = QUERN_REACT_SET, .flags = QUERN_SYSTEM_SERIAL);
    const quern_entity entity = with_health(1);
    const uint64_t values[4] = {2, 3, 4, 5};
    must(quern_entity_set(world, entity, health, &values[0]));
    enable(false);
    must(quern_entity_set(world, entity, health, &values[1]));
    enable(true);
    must(quern_entity_set(world, entity, health, &values[2]));
    must(quern_entity_add(world, entity, dead, NULL));
    must(quern_entity_set(world, entity, health, &values[3]));
    frame();
    cr_assert_eq(old_value, 3u);
}

static void ignore(quern_context *context, const quern_view *view) {}

Test(reactions_disabled, no_value_is_copied_for_it)
{
    open_world();
    static tracked_counts counts;
    const quern_component type = tracked_register(world, "tracked", &counts);
    watch = make_system(schedule, "removed", ignore, .terms = {quern_term_read(type)},
                        .reacts_to = QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, setup_entity_with(world, &type, 1)));
    cr_assert_eq(counts.copied_count, 1u);
    cr_assert_eq(tracked_live_count(&counts), 1u);
    enable(false);
    cr_assert_eq(tracked_live_count(&counts), 0u, "disabling destroys the copies");
    must(quern_entity_destroy(world, setup_entity_with(world, &type, 1)));
    cr_assert_eq(counts.copied_count, 1u);
    enable(true);
    must(quern_entity_destroy(world, setup_entity_with(world, &type, 1)));
    cr_assert_eq(counts.copied_count, 2u);
    frame();
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
}

/* ---------------------------------------------------------------------------------- restored and loaded */

static quern_history *open_history(bool saves_schedule)
{
    quern_history *history;
    must(quern_history_create(world, &(quern_history_def){.schedules = {saves_schedule ? schedule : NULL}},
                              &history));
    return history;
}

Test(reactions_disabled, a_restored_frame_has_what_was_pending_in_it)
{
    open_watched();
    quern_history *history = open_history(true);
    const uint64_t value = 7;
    must(quern_entity_set(world, seen[0], health, &value));
    must(quern_history_save(history, 0, NULL));
    enable(false);
    must(quern_entity_set(world, seen[1], health, &value));
    must(quern_history_save(history, 1, NULL));
    must(quern_history_restore(history, 0, NULL));
    must(quern_entity_set(world, seen[2], health, &value)); /* restoring has enabled it */
    frame();
    cr_assert_eq(list_count, 2u);
    assert_shown(0, QUERN_REACT_SET, seen[0], 7);
    assert_shown(1, QUERN_REACT_SET, seen[2], 7);
    must(quern_history_restore(history, 1, NULL));
    cr_assert(!quern_schedule_is_system_enabled(schedule, watch));
    must(quern_entity_set(world, seen[2], health, &value)); /* restoring has disabled it */
    enable(true);
    frame();
    cr_assert_eq(list_count, 0u);
    quern_history_destroy(history);
}

Test(reactions_disabled, a_history_without_the_schedule_leaves_it_disabled)
{
    open_watched();
    quern_history *history = open_history(false);
    const uint64_t value = 7;
    must(quern_entity_set(world, seen[0], health, &value));
    must(quern_history_save(history, 0, NULL));
    enable(false);
    must(quern_history_save(history, 1, NULL));
    for (uint32_t runs_frame = 0; runs_frame < 2; runs_frame++) {
        must(quern_history_restore(history, 0, NULL));
        list_count = 0;
        if (runs_frame == 1) frame();
        enable(true);
        must(quern_world_react(world, NULL));
        cr_assert_eq(list_count, 0u);
        enable(false);
    }
    enable(true);
    must(quern_history_restore(history, 1, NULL));
    frame();
    cr_assert_eq(list_count, 0u, "nothing was pending when the frame was saved");
    quern_history_destroy(history);
}

Test(reactions_disabled, an_archive_with_the_schedule_says_whether_it_is_disabled)
{
    for (uint32_t was_enabled = 0; was_enabled < 2; was_enabled++) {
        open_watched();
        const uint64_t value = 7;
        must(quern_entity_set(world, seen[0], health, &value));
        if (was_enabled == 0) enable(false);
        quern_byte_buffer archive = {0};
        must(quern_world_save(world, quern_sink_bytes(&archive),
                              &(quern_save_def){.schedules = {schedule}}));
        close_valid_world();

        open_world();
        watch = add_note("watch", ALL_KINDS);
        if (was_enabled == 1) enable(false);
        must(quern_world_load(world, quern_source_bytes(archive.bytes, archive.size_bytes),
                              &(quern_load_def){.schedules = {schedule}}, NULL));
        cr_assert_eq(quern_schedule_is_system_enabled(schedule, watch), was_enabled == 1);
        (void)with_health(8);
        enable(true);
        frame();
        cr_assert_eq(list_count, 2 * was_enabled);
        (void)with_health(9);
        frame();
        cr_assert_eq(list_count, 1u);
        quern_byte_buffer_release(&archive);
        close_valid_world();
    }
}

/* -------------------------------------------------------------------------------------------- refused */

static quern_schedule *other_schedule;
static quern_result refused_result;

static void disable_watch(quern_context *context)
{
    refused_result = quern_schedule_set_system_enabled(schedule, watch, false);
}

Test(reactions_disabled, a_frame_of_another_schedule_refuses_it)
{
    open_watched();
    other_schedule = setup_phases(world, 1);
    const quern_system_def def = {
        .name = "disable", .begin = disable_watch, .flags = QUERN_SYSTEM_MAIN_THREAD};
    setup_system(other_schedule, &def);
    must(quern_schedule_run(other_schedule, NULL, 0));
    cr_assert_eq(refused_result, QUERN_ERROR_WORLD_LOCKED);
    assert_message_has("quern_schedule_set_system_enabled");
    cr_assert(quern_schedule_is_system_enabled(schedule, watch));
    change_all();
    frame();
    cr_assert_gt(list_count, 0u);
    quern_schedule_destroy(other_schedule);
}
