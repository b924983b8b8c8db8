/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/frame/reactions_scene.h"

/* Reactions in schedules: what they are shown and when, their order and rounds, and what is refused. */

Test(reactions, rows_added_by_calls_are_shown_once_at_next_frame_begin)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED);
    const quern_entity first = with_health(1), second = with_health(2);
    cr_assert_eq(list_count, 0);
    frame();
    cr_assert_eq(list_count, 2);
    assert_shown(0, QUERN_REACT_ADDED, first, 1);
    assert_shown(1, QUERN_REACT_ADDED, second, 2);
    frame();
    cr_assert_eq(list_count, 0);
    close_valid_world();
}

static uint32_t count_when_second_phase_begins;

static void look_at_list(quern_context *context)
{
    cr_assert_eq(quern_context_reaction(context), 0);
    count_when_second_phase_begins = list_count;
}

Test(reactions, rows_added_by_commands_are_shown_after_their_sync_point)
{
    open_world();
    make_system(schedule, "create", NULL, .begin = create_with_health);
    make_system(schedule, "look", NULL, .begin = look_at_list, .phase = 1);
    add_note("watch", QUERN_REACT_ADDED);
    frame();
    cr_assert_eq(list_count, 1);
    cr_assert_eq(count_when_second_phase_begins, 1);
    cr_assert_eq(list[0].value, 7);
    close_valid_world();
}

Test(reactions, rows_set_by_calls_and_commands_are_shown_but_not_view_writes)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_REACT_SET);
    make_system(schedule, "heal", heal_all, .terms = {quern_term_write(health)});
    frame();
    cr_assert_eq(list_count, 0);
    must(quern_entity_set(world, entity, health, &(uint64_t){5}));
    must(quern_entity_set(world, entity, health, &(uint64_t){6}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_SET, entity, 6);
    must(quern_entity_mark_changed(world, entity, health));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_SET, entity, 106);
    must(quern_entity_add(world, entity, damage, &(uint64_t){1}));
    frame();
    cr_assert_eq(list_count, 0, "it does not look at the damage");
    close_valid_world();
}

Test(reactions, row_that_was_added_and_set_is_shown_as_added)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_SET);
    const quern_entity entity = with_health(1);
    must(quern_entity_set(world, entity, health, &(uint64_t){2}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_ADDED, entity, 2);
    close_valid_world();
}

Test(reactions, removed_rows_are_shown_with_old_values_before_added_rows)
{
    open_world();
    const quern_entity first = with_health(1), second = with_health(2);
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    const quern_entity third = with_health(3);
    must(quern_entity_destroy(world, first));
    must(quern_entity_remove(world, second, health));
    must(quern_entity_set(world, second, health, &(uint64_t){4}));
    frame();
    cr_assert_eq(list_count, 4);
    assert_shown(0, QUERN_REACT_REMOVED, first, 1);
    assert_shown(1, QUERN_REACT_REMOVED, second, 2);
    cr_assert_eq(list[2].kind, QUERN_REACT_ADDED);
    cr_assert_eq(list[3].kind, QUERN_REACT_ADDED);
    cr_assert(quern_entity_equal(list[2].entity, third) || quern_entity_equal(list[3].entity, third));
    cr_assert_not(quern_entity_is_alive(world, list[0].entity));
    close_valid_world();
}

Test(reactions, rows_added_and_removed_between_rounds_are_not_shown)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, with_health(1)));
    frame();
    cr_assert_eq(list_count, 0);
    close_valid_world();
}

static void write_gone(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) == QUERN_REACT_REMOVED)
        cr_assert(is_scratch(quern_view_write(view, 0), view->count * sizeof(uint64_t)));
}

Test(reactions, copies_of_removed_rows_are_read_only)
{
    open_world();
    const quern_entity entity = with_health(1);
    make_system(schedule, "write", write_gone, .terms = {quern_term_write(health)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, entity));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(reports.log_count, 1);
    close_valid_world();
}

Test(reactions, present_rows_count_as_added_on_request)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("late", QUERN_REACT_ADDED);
    add_note("present", QUERN_REACT_ADDED | QUERN_REACT_PRESENT);
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_ADDED, entity, 1);
    cr_assert_str_eq(list[0].name, "present");
    close_valid_world();
}

static uint64_t partial_sum;
static uint32_t partial_count, begin_count;

static void begin_partials(quern_context *context)
{
    begin_count++;
}

static void end_partials(quern_context *context)
{
    partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        partial_sum += *(const uint64_t *)quern_context_partial_at(context, i);
}

Test(reactions, runs_of_a_chunk_share_its_ordinal_and_partial_result)
{
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        open_world();
        create_values(20000);
        const quern_system system = make_system(
            schedule, "sum", add_up, .terms = {quern_term_read(health)}, .reacts_to = QUERN_REACT_SET,
            .partial_bytes = sizeof(uint64_t), .begin = begin_partials, .end = end_partials);
        quern_query *query =
            setup_query(world, &(quern_term){.component = health, .access = QUERN_ACCESS_READ}, 1);
        uint64_t expected = 0;
        uint32_t chunk_count = 0, row_number = 0;
        for (quern_query_iterator iterator = quern_query_iterate(query); quern_query_next(&iterator);) {
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
        close_valid_world();
    }
}

static void read_up(quern_context *context, const quern_view *view)
{
    const void *const *above = quern_view_up(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        atomic_fetch_add(&parallel_sum, above[i] != NULL ? *(const uint64_t *)above[i] : 1);
}

Test(reactions, rows_that_were_added_may_read_upward)
{
    open_world();
    quern_relation parent;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to"}, &parent));
    make_system(schedule, "up", read_up,
                .terms = {quern_term_with(damage), quern_term_up_optional(health, parent)},
                .reacts_to = QUERN_REACT_ADDED);
    const quern_entity target = with_health(30);
    for (uint32_t i = 0; i < 3; i++) {
        const quern_entity source = setup_entity_with(world, &damage, 1);
        if (i != 1) must(quern_entity_relate(world, source, parent, target));
    }
    parallel_sum = 0;
    frame();
    cr_assert_eq(parallel_sum, 61);
    close_valid_world();
}
