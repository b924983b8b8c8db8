/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/history/many.h"

#include <string.h>

/* Changes between frames that are pending for reactions are part of a frame. */

enum { ROWS = 1500, MAX_TOLD = 4 * ROWS };

/* The rows that a reaction received, in order. */
typedef struct told_row {
    quern_entity entity;
    uint64_t value, old; /* old: 0 unless the row was set */
} told_row;

typedef struct told_list {
    told_row rows[MAX_TOLD];
    uint32_t count;
} told_list;

static told_list told, expected;
static quern_schedule *first_schedule, *schedule;
static quern_system watching;
static quern_entity rows[ROWS];

static void be_told(quern_context *context, const quern_view *view)
{
    const amount *values = quern_view_read(view, 0), *old = quern_view_read(view, 2);
    for (uint32_t i = 0; i < view->count && told.count < MAX_TOLD; i++)
        told.rows[told.count++] =
            (told_row){view->entities[i], values[i].value, old != NULL ? old[i].value : 0};
}

static void add_watching(quern_schedule *to, const char *name, quern_term term, quern_system *out_system)
{
    const quern_system_def def = {
        .name = name,
        .run = be_told,
        .terms = {quern_term_read(many_it.amount), term, quern_term_old(many_it.amount)},
        .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
        .flags = QUERN_SYSTEM_SERIAL};
    must(quern_schedule_add_system(to, &def, out_system));
}

/* The first reaction of the world is destroyed, so its number is free. */
static void open_watched(void)
{
    many_open_world(NULL);
    must(quern_schedule_create(many_it.world, NULL, &first_schedule));
    must(quern_schedule_create(many_it.world, NULL, &schedule));
    add_watching(first_schedule, "gone", quern_term_with(many_it.tag), NULL);
    add_watching(schedule, "watching", quern_term_without(many_it.tag), &watching);
    quern_schedule_destroy(first_schedule);
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&i, NULL}, 1 + i % 2, &rows[i]));
    must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule}},
                              &many_it.history));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, (uint32_t)ROWS);
}

static void close_watched(void)
{
    quern_history_destroy(many_it.history);
    many_it.history = NULL;
    quern_schedule_destroy(schedule);
    many_close_world();
}

/* Destroys some entities, writes some, makes some stop matching, and creates some. */
static void change_rows(void)
{
    const amount value = {ROWS * 2};
    for (uint32_t i = 0; i < ROWS; i++)
        switch (i % 7) {
        case 0:
        case 1:
        case 2:
            must(quern_entity_destroy(many_it.world, rows[i]));
            break;
        case 3:
            must(quern_entity_set(many_it.world, rows[i], many_it.amount, &value));
            break;
        case 4:
            must(quern_entity_add(many_it.world, rows[i], many_it.tag, NULL));
            break;
        default:
            must(quern_entity_create_with(many_it.world, &many_it.amount,
                                          (const void *const[]){&(amount){i}}, 1, NULL));
            break;
        }
}

/* Restores the frame and checks that the reactions receive the expected rows. */
static void expect_told(uint64_t frame)
{
    must(quern_history_restore(many_it.history, frame, NULL));
    must(quern_world_validate(many_it.world));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, expected.count, "%u rows, not %u", told.count, expected.count);
    for (uint32_t i = 0; i < told.count; i++)
        cr_assert(quern_entity_equal(told.rows[i].entity, expected.rows[i].entity) &&
                  told.rows[i].value == expected.rows[i].value && told.rows[i].old == expected.rows[i].old);
}

static void expect_nothing_told(uint64_t frame)
{
    must(quern_history_restore(many_it.history, frame, NULL));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, 0u);
}

/* Frame 0: no change is pending. Frame 1: all changes are pending. */
static void save_both(void)
{
    must(quern_history_save(many_it.history, 0, NULL));
    change_rows();
    must(quern_history_save(many_it.history, 1, NULL));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    expected = told;
    cr_assert_gt(expected.count, ROWS / 2u);
    uint32_t old_count = 0;
    for (uint32_t i = 0; i < told.count; i++) {
        if (told.rows[i].value != ROWS * 2) continue;
        cr_assert(quern_entity_equal(rows[told.rows[i].old], told.rows[i].entity));
        old_count++;
    }
    cr_assert_eq(old_count, (ROWS + 3u) / 7u);
}

TestSuite(history_reactions, .init = open_watched, .fini = close_watched);

Test(history_reactions, pending_changes_are_reported_after_each_restore)
{
    save_both();
    expect_told(1);
    expect_nothing_told(0);
    expect_told(1);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows(); /* all changes are pending when the frame is restored */
    expect_told(1);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows();
    expect_nothing_told(0);
    must(quern_history_restore(many_it.history, 1, NULL));
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_world_react(many_it.world, NULL));
    expect_told(2);
}

static void destroy_all(void)
{
    for (uint32_t count = many_list_all(); count > 0; count = many_list_all())
        for (uint32_t i = 0; i < count; i++)
            must(quern_entity_destroy(many_it.world, many_entities[i]));
    must(quern_world_react(many_it.world, NULL));
    uint32_t removed_count;
    must(quern_world_remove_empty_archetypes(many_it.world, &removed_count));
    cr_assert_gt(removed_count, 2u);
}

Test(history_reactions, recreated_archetypes_have_their_subscriptions)
{
    save_both();
    destroy_all();
    expect_told(1);
    destroy_all();
    expect_nothing_told(0);
    change_rows();
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, expected.count);
    destroy_all();
    must(quern_history_save(many_it.history, 2, NULL));
    expect_told(1);
    expect_nothing_told(2);
}

static void set_all(void)
{
    for (uint32_t i = 0; i < ROWS; i++)
        must(quern_entity_set(many_it.world, rows[i], many_it.amount, &(amount){ROWS + i}));
}

/* The archetype that the restore brings back is older than the one that the reaction has kept. */
Test(history_reactions, rows_are_told_in_the_order_of_archetypes_after_a_restore)
{
    must(quern_history_save(many_it.history, 0, NULL));
    set_all();
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    expected = told;
    cr_assert_eq(expected.count, (uint32_t)ROWS);
    for (uint32_t i = 0; i < ROWS; i += 2)
        must(quern_entity_destroy(many_it.world, rows[i]));
    must(quern_world_react(many_it.world, NULL));
    uint32_t removed_count;
    must(quern_world_remove_empty_archetypes(many_it.world, &removed_count));
    cr_assert_geq(removed_count, 1u);
    must(quern_history_restore(many_it.history, 0, NULL));
    set_all();
    must(quern_history_save(many_it.history, 1, NULL));
    expect_told(1);
}

/* It gets the number that the destroyed reaction had. */
Test(history_reactions, a_reaction_that_the_frame_does_not_know_is_told_nothing)
{
    save_both();
    quern_schedule *other;
    must(quern_schedule_create(many_it.world, NULL, &other));
    add_watching(other, "new", quern_term_without(many_it.tag), NULL);
    quern_entity entity;
    must(quern_entity_create_with(many_it.world, &many_it.amount, NULL, 1, &entity));
    must(quern_entity_destroy(many_it.world, rows[5]));
    must(quern_history_restore(many_it.history, 1, NULL));
    told.count = 0;
    must(quern_schedule_run(other, NULL, 0));
    cr_assert_eq(told.count, 0u);
    expect_told(1);
    quern_schedule_destroy(other);
    expect_told(1);
}

/* ------------------------------------------------------------------------------------ state of systems */

Test(history_reactions, restoring_enables_and_disables_systems_as_saved)
{
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_schedule_set_system_enabled(schedule, watching, false));
    must(quern_history_save(many_it.history, 1, NULL));
    change_rows();
    told.count = 0;
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 0u);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows();
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_gt(told.count, 0u);
    told.count = 0;
    must(quern_history_restore(many_it.history, 1, NULL));
    change_rows();
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 0u);
}

static void count_rows(quern_context *context, const quern_view *view)
{
    told.count += view->count;
}

Test(history_reactions, the_target_of_a_system_is_restored)
{
    quern_system system;
    const quern_system_def def = {.name = "children",
                                  .run = count_rows,
                                  .terms = {quern_term_target(many_it.friend, rows[0])},
                                  .flags = QUERN_SYSTEM_SERIAL};
    must(quern_schedule_add_system(schedule, &def, &system));
    must(quern_entity_relate(many_it.world, rows[2], many_it.friend, rows[0]));
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_schedule_set_target(schedule, system, rows[1]));
    must(quern_history_restore(many_it.history, 0, NULL));
    told.count = 0;
    must(quern_schedule_set_system_enabled(schedule, watching, false));
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 1u);
    quern_history *twice;
    quern_history_destroy(many_it.history);
    must_refuse(INVALID_ARGUMENT, many_it.world,
                quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule, schedule}},
                                     &twice));
    cr_assert(strstr(quern_error_message(), "twice") != NULL);
    must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule}},
                              &many_it.history));
}
