/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"

#include <stdatomic.h>

enum { ROWS = 20000 };

static quern_world *world;
static quern_component number, other;
static quern_query *query;
static captured_reports reports;

/* Opens a world with two archetypes that have many chunks. */
static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 16, 8);
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(world, (quern_component[]){number, other},
                                      (const void *const[]){&i, NULL}, 1 + (uint32_t)(i % 2), NULL));
    query = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    capture_reports(&reports);
}

static void close_world(void)
{
    quern_query_destroy(query);
    quern_world_destroy(world);
}

TestSuite(parallel, .init = open_world, .fini = close_world);

typedef struct tally {
    _Atomic uint64_t row_count;
    _Atomic uint32_t view_count, refused_count;
    _Atomic uint8_t seen[ROWS]; /* by ordinal */
    uint32_t worker_limit;
} tally;

static tally counts;

static void increment(quern_context *context, const quern_view *view)
{
    tally *it = quern_context_user_data(context);
    cr_assert_lt(quern_context_worker_index(context), it->worker_limit);
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
    it->row_count += view->count;
    it->view_count++;
    it->seen[view->ordinal]++;
}

static void reset_counts(uint32_t worker_limit)
{
    counts = (tally){.worker_limit = worker_limit};
}

static uint64_t sum_numbers(void)
{
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *numbers = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += numbers[i];
    }
    must(it.result);
    return sum;
}

Test(parallel, each_view_is_called_once_at_any_thread_count)
{
    uint64_t sum = sum_numbers();
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = pool_threads[i] > 0 ? setup_jobs(pool_threads[i]) : NULL;
        reset_counts(pool_threads[i] > 0 ? pool_threads[i] : 1);
        must(quern_query_parallel_for(query, jobs, increment, &counts));
        cr_assert_eq(counts.row_count, ROWS);
        cr_assert_eq(counts.view_count, quern_query_view_count(query));
        for (uint32_t k = 0; k < counts.view_count; k++)
            cr_assert_eq(counts.seen[k], 1);
        quern_jobs_destroy(jobs);
    }
    cr_assert_eq(sum_numbers(), sum + (uint64_t)ROWS * POOL_COUNT);
}

static void touch_what_is_not_declared(quern_context *context, const quern_view *view)
{
    tally *it = quern_context_user_data(context);
    it->refused_count += is_scratch(quern_view_write(view, 0), view->count * sizeof(uint64_t));
    it->refused_count += is_scratch(quern_view_read(view, 1), view->count * sizeof(uint64_t));
    it->refused_count += quern_entity_create(world, &(quern_entity){0}) == QUERN_ERROR_WORLD_LOCKED;
    assert_message_has("quern_entity_create: ");
    assert_message_has("quern_query_parallel_for");
    it->view_count++;
}

Test(parallel, only_declared_columns_are_accessible)
{
    quern_query *reader = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    reset_counts(1);
    cr_assert_eq(quern_query_parallel_for(reader, NULL, touch_what_is_not_declared, &counts),
                 QUERN_ERROR_UNDECLARED_ACCESS);
    char words[64];
    snprintf(words, sizeof words, "(%u in all)", 2 * counts.view_count);
    assert_message_has(words);
    cr_assert_eq(counts.refused_count, 3 * counts.view_count);
    cr_assert_eq(reports.log_count, 1u);
    quern_query_destroy(reader);
    setup_entity(world); /* the world is unlocked again */
}

Test(parallel, filters_leave_views_out_and_others_see_what_was_written)
{
    quern_jobs *jobs = setup_jobs(3);
    quern_term term = quern_term_changed(quern_term_write(number));
    quern_query *changed = setup_query(world, &term, 1), *watcher = setup_query(world, &term, 1);
    reset_counts(3);
    must(quern_query_parallel_for(changed, jobs, increment, &counts));
    cr_assert_eq(counts.row_count, ROWS);
    reset_counts(3);
    must(quern_query_parallel_for(changed, jobs, increment, &counts));
    cr_assert_eq(counts.row_count, 0u, "what it wrote itself is not new");
    must(quern_query_parallel_for(watcher, jobs, increment, &counts));
    cr_assert_eq(counts.row_count, ROWS);
    must(quern_query_parallel_for(query, jobs, increment, &counts));
    reset_counts(3);
    must(quern_query_parallel_for(changed, jobs, increment, &counts));
    cr_assert_eq(counts.row_count, ROWS, "a query without filters tells, too");
    quern_query_destroy(changed);
    quern_query_destroy(watcher);
    quern_jobs_destroy(jobs);
}

static void run_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern_jobs *jobs = argument;
    must(quern_query_parallel_for(query, jobs, increment, &counts));
}

Test(parallel, a_job_may_run_a_query)
{
    quern_jobs *jobs = setup_jobs(2);
    reset_counts(2);
    must(quern_jobs_parallel_for(jobs, 1, 1, run_inside, jobs));
    cr_assert_eq(counts.row_count, ROWS);
    quern_jobs_destroy(jobs);
}

static void run_in_frame(quern_context *context)
{
    counts.refused_count += quern_query_parallel_for(query, quern_context_jobs(context), increment,
                                                     &counts) == QUERN_ERROR_WORLD_LOCKED;
}

Test(parallel, wrong_calls_are_refused)
{
    reset_counts(1);
    must_refuse(NULL_ARGUMENT, NULL, quern_query_parallel_for(NULL, NULL, increment, &counts));
    must_refuse(NULL_ARGUMENT, world, quern_query_parallel_for(query, NULL, NULL, &counts));
    assert_refused_value(NULL, quern_query_view_count(NULL));
    run_once(world, run_in_frame);
    cr_assert_eq(counts.refused_count, 1u);
    cr_assert_eq(counts.view_count, 0u);
}

static void look_up(quern_context *context, const quern_view *view)
{
    const uint64_t *found = quern_context_lookup(context, view->entities[0], number);
    ((tally *)quern_context_user_data(context))->refused_count += is_scratch(found, sizeof *found);
}

Test(parallel, lookups_are_refused)
{
    reset_counts(1);
    cr_assert_eq(quern_query_parallel_for(query, NULL, look_up, &counts), QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("in all");
    cr_assert_gt(counts.refused_count, 0u);
}

static quern_query *looked_at;

static void look_inside(quern_context *context, const quern_view *view)
{
    quern_query_iterator it = quern_query_iterate(looked_at);
    ((tally *)quern_context_user_data(context))->refused_count += it.result == QUERN_ERROR_WORLD_LOCKED;
}

Test(parallel, refused_query_does_not_count_as_seen)
{
    quern_term term = quern_term_changed(quern_term_write(number));
    looked_at = setup_query(world, &term, 1);
    quern_jobs *jobs = setup_jobs(3);
    reset_counts(3);
    must(quern_query_parallel_for(query, jobs, look_inside, &counts));
    cr_assert_gt(counts.refused_count, 1u);
    must(quern_query_parallel_for(looked_at, jobs, increment, &counts));
    cr_assert_eq(counts.row_count, ROWS, "all is new");
    quern_query_destroy(looked_at);
    quern_jobs_destroy(jobs);
}

Test(parallel, a_query_without_matches_calls_nothing)
{
    quern_component absent = setup_component(world, "absent", 4, 4);
    quern_query *none = setup_query(world, (quern_term[]){quern_term_read(absent)}, 1);
    reset_counts(1);
    must(quern_query_parallel_for(none, NULL, increment, &counts));
    cr_assert_eq(counts.view_count, 0u);
    cr_assert_eq(quern_query_view_count(none), 0u);
    quern_query_destroy(none);
}

/* -------------------------------------------------------------------------------------------- memory */

Test(parallel, missing_memory_calls_nothing_and_sees_no_changes)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    quern_world *poor;
    must(quern_world_create(&def, &poor));
    quern_component component = setup_component(poor, "component", 8, 8);
    quern_term term = quern_term_changed(quern_term_write(component));
    quern_query *changed = setup_query(poor, &term, 1);
    setup_entity_with(poor, &component, 1);
    reset_counts(1);
    uint64_t call = 1;
    for (;; call++) {
        if (!runs_out_of_memory(memory, call, quern_query_parallel_for(changed, NULL, increment, &counts)))
            break;
        cr_assert_eq(counts.view_count, 0u);
    }
    cr_assert_gt(call, 1u);
    cr_assert_eq(counts.view_count, 1u, "the first look that succeeds shows all");
    quern_query_destroy(changed);
    quern_world_destroy(poor);
    failing_allocator_destroy(memory);
}
