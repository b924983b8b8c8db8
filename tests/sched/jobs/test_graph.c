/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "core/base/base_internal.h"
#include "tests/sched/jobs/planned_graph.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

TestSuite(graph, .timeout = 120);

Test(graph, random_graphs_keep_their_order)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint64_t seed = 1; seed <= 12; seed++) {
            planned_graph *plan = open_plan(seed, (uint32_t)seed * 20, (uint32_t)seed % 4);
            for (uint32_t run = 0; run < 10; run++)
                run_plan(plan, jobs, 0);
            close_plan(plan);
        }
        quern_jobs_destroy(jobs);
    }
}

Test(graph, runs_a_thousand_times)
{
    planned_graph *plan = open_plan(99, 60, 3);
    quern_jobs *pools[] = {open_pool(2), open_pool(5)};
    for (uint32_t run = 0; run < 1000; run++)
        run_plan(plan, pools[run / 100 % 2], 0);
    for (size_t i = 0; i < QUERN__COUNT_OF(pools); i++)
        quern_jobs_destroy(pools[i]);
    close_plan(plan);
}

Test(graph, runs_without_a_pool)
{
    planned_graph *plan = open_plan(7, 100, 2);
    for (uint32_t run = 0; run < 3; run++)
        run_plan(plan, NULL, 0);
    close_plan(plan);
}

/* ------------------------------------------------------------------------------------------ one by one */

typedef struct order_log {
    uint32_t numbers[100];
    uint32_t count;
} order_log;

static order_log order;

static void log_order(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    order.numbers[order.count++] = (uint32_t)(uintptr_t)argument;
}

static void check_serial_order(quern_jobs *jobs)
{
    quern_graph *graph = open_graph();
    for (uintptr_t i = 0; i < 100; i++)
        cr_assert_eq(add_node(graph, log_order, (void *)i, 1), (uint32_t)i);
    order.count = 0;
    run_graph(graph, jobs);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(order.numbers[i], i);
    quern_graph_destroy(graph);
}

Test(graph, one_thread_runs_nodes_by_index)
{
    quern_jobs *jobs = open_pool(1);
    check_serial_order(NULL);
    check_serial_order(jobs);
    quern_jobs_destroy(jobs);
}

Test(graph, empty_graph_and_empty_nodes)
{
    quern_jobs *jobs = open_pool(3);
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    run_graph(graph, jobs);
    run_graph(graph, NULL);
    uint32_t nothing = add_node(graph, count_items, (void *)&sum, 0);
    uint32_t join = add_node(graph, NULL, NULL, 50);
    uint32_t last = add_node(graph, count_items, (void *)&sum, 7);
    add_edge(graph, nothing, join);
    add_edge(graph, join, last);
    for (uint32_t run = 1; run <= 100; run++) {
        run_graph(graph, run % 2 ? jobs : NULL);
        cr_assert_eq(atomic_load(&sum), 7 * run);
    }
    quern_graph_destroy(graph);
    quern_graph_destroy(NULL);
    quern_jobs_destroy(jobs);
}

Test(graph, a_definition_may_be_all_zero)
{
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    uint32_t joint = UINT32_MAX, counter = UINT32_MAX;
    quern_graph_node_def one = {.function = count_items, .user_data = (void *)&sum};
    cr_assert_eq(quern_graph_add_node(graph, NULL, &joint), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(graph, &(quern_graph_node_def){0}, NULL), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(graph, &one, &counter), QUERN_OK);
    add_edge(graph, joint, counter);
    run_graph(graph, NULL);
    cr_assert_eq(atomic_load(&sum), 1u, "no count stands for one item");
    cr_assert_eq(quern_graph_set_count(graph, counter, 0), QUERN_OK);
    run_graph(graph, NULL);
    cr_assert_eq(atomic_load(&sum), 1u);
    quern_graph_destroy(graph);
}

Test(graph, counts_can_change)
{
    quern_jobs *jobs = open_pool(3);
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    uint32_t node = add_node(graph, count_items, (void *)&sum, 1);
    uint32_t expected = 0;
    for (uint32_t count = 0; count < 3000; count += 100) {
        cr_assert_eq(quern_graph_set_count(graph, node, count), QUERN_OK);
        run_graph(graph, jobs);
        expected += count;
        cr_assert_eq(atomic_load(&sum), expected);
    }
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

Test(graph, clear_empties_and_keeps_working)
{
    quern_jobs *jobs = open_pool(2);
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    for (uint32_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < round * 10; i++)
            cr_assert_eq(add_node(graph, count_items, (void *)&sum, 1), i);
        for (uint32_t i = 1; i < round * 10; i++)
            add_edge(graph, i / 2, i);
        run_graph(graph, jobs);
        cr_assert_eq(atomic_exchange(&sum, 0), round * 10);
        quern_graph_clear(graph);
        run_graph(graph, jobs);
        cr_assert_eq(atomic_load(&sum), 0u);
    }
    quern_graph_clear(NULL);
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

/* More ready nodes than a deque holds, at the beginning and at once in the middle. */
Test(graph, more_ready_nodes_than_a_deque_holds)
{
    enum { WIDTH = 5000 };
    quern_jobs *jobs = open_pool(3);
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    for (uint32_t i = 0; i < WIDTH; i++)
        add_node(graph, count_items, (void *)&sum, 1);
    uint32_t middle = add_node(graph, count_items, (void *)&sum, 1);
    for (uint32_t i = 0; i < WIDTH; i++)
        add_edge(graph, i, middle);
    for (uint32_t i = 0; i < WIDTH; i++)
        add_edge(graph, middle, add_node(graph, count_items, (void *)&sum, i % 5));
    for (uint32_t run = 0; run < 5; run++) {
        run_graph(graph, jobs);
        cr_assert_eq(atomic_exchange(&sum, 0), WIDTH * 3 + 1u);
    }
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

Test(graph, same_edge_twice_is_harmless)
{
    quern_jobs *jobs = open_pool(2);
    quern_graph *graph = open_graph();
    _Atomic uint32_t sum = 0;
    add_node(graph, count_items, (void *)&sum, 3);
    add_node(graph, count_items, (void *)&sum, 3);
    for (uint32_t i = 0; i < 5; i++)
        add_edge(graph, 0, 1);
    run_graph(graph, jobs);
    cr_assert_eq(atomic_load(&sum), 6u);
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------- caller and pool */

typedef struct sleeper {
    pthread_t caller;
    _Atomic uint32_t caller_count;
    _Atomic uint32_t other_count;
} sleeper;

static void sleep_elsewhere(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    struct timespec time = {0, 3000000};
    nanosleep(&time, NULL);
    atomic_fetch_add(&((sleeper *)argument)->other_count, 1);
}

static void count_on_caller(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    sleeper *shared = argument;
    cr_expect(worker_index == 0 && pthread_equal(pthread_self(), shared->caller));
    atomic_fetch_add(&shared->caller_count, 1);
}

static void add_sleeper_graph(quern_graph *graph, sleeper *shared)
{
    quern_graph_node_def def = {.user_data = shared};
    for (uint32_t i = 0; i < 24; i++) {
        def.on_worker = i % 3 == 2 ? QUERN_ON_CALLER : 0;
        def.function = def.on_worker != 0 ? count_on_caller : sleep_elsewhere;
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
        if (i >= 3) add_edge(graph, i - 3 + (i % 3 == 0), i);
        if (def.on_worker != 0) add_edge(graph, i - 1, i);
    }
}

/* Other workers run long nodes, so that the caller falls asleep and has to be woken for its own nodes and
 * for the end. */
Test(graph, caller_is_woken_for_its_nodes)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        sleeper shared = {.caller = pthread_self()};
        add_sleeper_graph(graph, &shared);
        for (uint32_t run = 1; run <= 5; run++) {
            run_graph(graph, jobs);
            cr_assert_eq(atomic_load(&shared.caller_count), 8 * run);
            cr_assert_eq(atomic_load(&shared.other_count), 16 * run);
        }
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

typedef struct inside {
    quern_jobs *jobs;
    quern_graph *graph;
    _Atomic uint32_t sum;
} inside;

static void loop_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    inside *shared = argument;
    for (uint32_t i = begin; i < end; i++)
        cr_expect(quern_jobs_parallel_for(shared->jobs, 50, 1, count_items, (void *)&shared->sum) ==
                  QUERN_OK);
}

Test(graph, nodes_may_run_loops)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        inside shared = {.jobs = open_pool(thread_counts[t]), .graph = open_graph()};
        for (uint32_t i = 0; i < 20; i++)
            add_node(shared.graph, loop_inside, &shared, 10);
        for (uint32_t i = 5; i < 20; i++)
            add_edge(shared.graph, i - 5, i);
        for (uint32_t run = 0; run < 20; run++) {
            run_graph(shared.graph, shared.jobs);
            cr_assert_eq(atomic_exchange(&shared.sum, 0), 10000u);
        }
        quern_graph_destroy(shared.graph);
        quern_jobs_destroy(shared.jobs);
    }
}

static void misuse_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    inside *shared = argument;
    quern_graph_node_def def = {0};
    cr_expect(quern_graph_run(shared->graph, shared->jobs) == QUERN_ERROR_POOL_BUSY);
    cr_expect(quern_graph_run(shared->graph, NULL) == QUERN_ERROR_POOL_BUSY);
    cr_expect(quern_graph_add_node(shared->graph, &def, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect(quern_graph_add_edge(shared->graph, 0, 1) == QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect(quern_graph_set_count(shared->graph, 0, 5) == QUERN_ERROR_INVALID_ARGUMENT);
    captured_reports reports;
    capture_reports(&reports);
    quern_graph_clear(shared->graph);
    quern_graph_destroy(shared->graph);
    quern_jobs_destroy(shared->jobs);
    cr_expect(reports.log_count == 3, "%u reports", reports.log_count);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    atomic_fetch_add(&shared->sum, 1);
}

Test(graph, a_running_graph_cannot_be_changed)
{
    inside shared = {.jobs = open_pool(2), .graph = open_graph()};
    add_node(shared.graph, misuse_inside, &shared, 1);
    run_graph(shared.graph, shared.jobs);
    run_graph(shared.graph, shared.jobs);
    cr_assert_eq(atomic_load(&shared.sum), 2u);
    quern_graph_destroy(shared.graph);
    quern_jobs_destroy(shared.jobs);
}

/* ---------------------------------------------------------------------------------------------- errors */

Test(graph, bad_arguments_are_rejected)
{
    quern_graph *graph = open_graph();
    quern_graph_node_def def = {0};
    quern_allocator half = quern_allocator_default();
    half.allocate = NULL;
    quern_graph *other;
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_create(NULL, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_create(&half, &other));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_add_node(NULL, &def, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_set_count(NULL, 0, 1));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_set_count(graph, 0, 1));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_run(NULL, NULL));
    quern_graph_destroy(graph);
}

Test(graph, bad_edges_are_rejected)
{
    quern_graph *graph = open_graph();
    for (uint32_t i = 0; i < 3; i++)
        add_node(graph, NULL, NULL, 1);
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_add_edge(NULL, 0, 1));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 1, 1));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 2, 1));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 0, 3));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 3, 4));
    run_graph(graph, NULL);
    quern_graph_destroy(graph);
}

/* Builds and runs a graph of 40 nodes; retries each step that fails. */
static void build_under_failures(failing_allocator *allocator, quern_jobs *jobs)
{
    quern_allocator interface = failing_allocator_interface(allocator);
    _Atomic uint32_t sum = 0;
    quern_graph_node_def def = {.function = count_items, .user_data = (void *)&sum, .count = 3};
    quern_graph *graph = NULL;
    while (quern_graph_create(&interface, &graph) != QUERN_OK)
        cr_assert_null(graph);
    for (uint32_t i = 0, number; i < 40; i++) {
        while (quern_graph_add_node(graph, &def, &number) == QUERN_ERROR_OUT_OF_MEMORY) {
        }
        cr_assert_eq(number, i);
        while (i != 0 && quern_graph_add_edge(graph, i - 1, i) == QUERN_ERROR_OUT_OF_MEMORY) {
        }
    }
    while (quern_graph_run(graph, jobs) == QUERN_ERROR_OUT_OF_MEMORY)
        cr_assert_eq(atomic_load(&sum), 0u);
    cr_assert_eq(atomic_load(&sum), 120u);
    quern_graph_destroy(graph);
}

Test(graph, survives_failing_memory)
{
    quern_jobs *jobs = open_pool(3);
    for (uint64_t call = 1; call <= 12; call++) {
        failing_allocator *allocator = failing_allocator_create();
        failing_allocator_fail_at(allocator, call);
        build_under_failures(allocator, jobs);
        failing_allocator_fail_often(allocator, 50, call);
        build_under_failures(allocator, jobs);
        cr_assert_gt(failing_allocator_failed_count(allocator), 0u);
        failing_allocator_close(allocator);
    }
    quern_jobs_destroy(jobs);
}

Test(graph, running_again_allocates_nothing)
{
    quern_jobs *jobs = open_pool(3);
    failing_allocator *allocator = failing_allocator_create();
    quern_allocator interface = failing_allocator_interface(allocator);
    _Atomic uint32_t sum = 0;
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(&interface, &graph), QUERN_OK);
    for (uint32_t i = 0; i < 50; i++)
        add_node(graph, count_items, (void *)&sum, i);
    run_graph(graph, jobs);
    uint64_t call_count = failing_allocator_call_count(allocator);
    for (uint32_t run = 0; run < 20; run++) {
        cr_assert_eq(quern_graph_set_count(graph, run, run * 10), QUERN_OK);
        run_graph(graph, jobs);
    }
    cr_assert_eq(failing_allocator_call_count(allocator), call_count);
    quern_graph_destroy(graph);
    failing_allocator_destroy(allocator);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------- nodes that wait */

enum { WAIT_ROUNDS = 8, SHORT_NODES = 4, MAX_WAITERS = 3 };

typedef struct waiting_graph {
    quern_jobs *jobs;
    quern_counter held;
    _Atomic uint32_t in_node[MAX_WAITERS]; /* one per worker */
    _Atomic uint32_t run_count;
} waiting_graph;

static void wait_at_first(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    waiting_graph *of = argument;
    if (begin == 0) cr_expect(quern_jobs_wait(of->jobs, &of->held) == QUERN_OK);
}

/* The wait is inside of a loop, whose offers are in the worker's deque meanwhile. */
static void run_node_that_waits(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    waiting_graph *of = argument;
    cr_expect(atomic_fetch_add(&of->in_node[worker_index], 1) == 0, "began in the middle of another node");
    cr_expect(quern_jobs_parallel_for(of->jobs, 2, 1, wait_at_first, of) == QUERN_OK);
    atomic_fetch_sub(&of->in_node[worker_index], 1);
    atomic_fetch_add(&of->run_count, 1);
}

static void run_short_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    waiting_graph *of = argument;
    cr_expect(atomic_load(&of->in_node[worker_index]) == 0, "began in the middle of another node");
    atomic_fetch_add(&of->run_count, 1);
    pass_time(1000);
}

static void *release_later(void *argument)
{
    waiting_graph *of = argument;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    cr_expect(quern_counter_release(of->jobs, &of->held) == QUERN_OK);
    return NULL;
}

/* Per-worker data of a node must be unchanged after a wait inside of the node. */
Test(graph, no_node_begins_in_the_middle_of_another)
{
    for (uint32_t thread_count = 2; thread_count <= MAX_WAITERS; thread_count++) {
        waiting_graph of = {.jobs = open_pool(thread_count)};
        quern_graph *graph = open_graph();
        for (uint32_t i = 0; i < thread_count; i++)
            add_node(graph, run_node_that_waits, &of, 1);
        for (uint32_t i = 0; i < SHORT_NODES; i++)
            add_node(graph, run_short_node, &of, 1);
        for (uint32_t round = 0; round < WAIT_ROUNDS; round++) {
            pthread_t releaser;
            quern_counter_hold(&of.held);
            cr_assert_eq(pthread_create(&releaser, NULL, release_later, &of), 0);
            run_graph(graph, of.jobs);
            pthread_join(releaser, NULL);
        }
        cr_assert_eq(atomic_load(&of.run_count), WAIT_ROUNDS * (thread_count + SHORT_NODES));
        quern_graph_destroy(graph);
        quern_jobs_destroy(of.jobs);
    }
}
