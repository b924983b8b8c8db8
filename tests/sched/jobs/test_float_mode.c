/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"

#include <criterion/criterion.h>

/* Workers compute shared work in the floating-point mode of the thread that began it. */

TestSuite(float_mode, .timeout = 120);

#if defined(__aarch64__)
static const uint32_t flush_bit = 1u << 24; /* FZ of FPCR */
#else
static const uint32_t flush_bit = 1u << 15; /* FTZ of MXCSR */
#endif

enum { ITEMS = 32, NODES = 6, PATIENCE_MS = 20000 };

typedef struct scene {
    quern_jobs *jobs;
    uint32_t mode;                 /* expected */
    _Atomic uint32_t helped_count; /* calls on other workers than 0 */
    _Atomic uint32_t wrong_count;
} scene;

/* Checks the mode, and lets other workers take part. */
static void check_mode(scene *of, uint32_t worker_index)
{
    if (quern__float_mode() != of->mode) atomic_fetch_add(&of->wrong_count, 1);
    if (worker_index != 0)
        atomic_fetch_add(&of->helped_count, 1);
    else if (atomic_load(&of->helped_count) == 0)
        sleep_ms(1);
}

static void check_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    for (uint32_t i = begin; i < end; i++)
        check_mode(argument, worker_index);
}

static void check_job(void *argument, uint32_t worker_index)
{
    check_mode(argument, worker_index);
}

static void run_loop(scene *of)
{
    cr_assert_eq(quern_jobs_parallel_for(of->jobs, ITEMS, 1, check_items, of), QUERN_OK);
}

/* Half of the nodes are loops. A submitted run computes in the mode of the thread that submits it. */
static void run_graph_of(scene *of, quern_priority priority, bool is_submitted)
{
    quern_graph *graph;
    quern_counter done = {0};
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        const quern_graph_node_def def = {.function = check_items,
                                          .user_data = of,
                                          .count = i % 2 == 0 ? ITEMS : 1,
                                          .grain = 1,
                                          .on_worker = i == 1 ? QUERN_ON_CALLER : 0,
                                          .priority = priority};
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    }
    if (is_submitted)
        cr_assert_eq(quern_graph_submit(graph, of->jobs, &(quern_graph_run_def){.counter = &done}),
                     QUERN_OK);
    else
        cr_assert_eq(quern_graph_run(graph, of->jobs), QUERN_OK);
    for (uint32_t i = 0; is_submitted && i < PATIENCE_MS && atomic_load(&of->helped_count) == 0; i++)
        sleep_ms(1); /* until another worker has begun the run */
    cr_assert_eq(quern_jobs_wait(of->jobs, &done), QUERN_OK);
    quern_graph_destroy(graph);
}

static void run_graph(scene *of)
{
    run_graph_of(of, QUERN_PRIORITY_NORMAL, false);
}

static void run_graph_with_priorities(scene *of)
{
    run_graph_of(of, QUERN_PRIORITY_HIGH, false);
}

static void run_submitted_graph(scene *of)
{
    run_graph_of(of, QUERN_PRIORITY_NORMAL, true);
}

static void fork_all(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    quern_fork forks[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        cr_expect_eq(quern_jobs_fork(of->jobs, &forks[i], check_job, of), QUERN_OK);
    check_mode(of, worker_index);
    for (uint32_t i = NODES; i-- > 0;)
        cr_expect_eq(quern_jobs_join(of->jobs, &forks[i]), QUERN_OK);
}

static void run_forks(scene *of)
{
    cr_assert_eq(quern_jobs_run(of->jobs, fork_all, of), QUERN_OK);
}

static void note_mode(void *argument, uint32_t worker_index)
{
    atomic_store(*(_Atomic uint32_t **)argument, quern__float_mode());
}

static uint32_t mode_of_worker_1(quern_jobs *jobs)
{
    _Atomic uint32_t mode = 0, *const address = &mode;
    quern_counter done = {0};
    const quern_job_def job = {.function = note_mode,
                               .payload = &address,
                               .payload_bytes = sizeof address,
                               .counter = &done,
                               .on_worker = 2};
    cr_assert_eq(quern_jobs_submit(jobs, &job), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(jobs, &done), QUERN_OK);
    return atomic_load(&mode);
}

/* The pool is older than the mode. Repeats the work until another worker has taken part. */
static void expect_mode_of_caller(void (*run)(scene *of))
{
    scene of = {.jobs = open_pool(3)};
    const uint32_t before = quern__float_mode();
    of.mode = before ^ flush_bit;
    quern__float_set_mode(of.mode);
    if (quern__float_mode() != of.mode) cr_skip_test("no floating-point mode is known");
    for (uint32_t i = 0; i < PATIENCE_MS / ITEMS && atomic_load(&of.helped_count) == 0; i++)
        run(&of);
    cr_expect_neq(atomic_load(&of.helped_count), 0u);
    cr_expect_eq(atomic_load(&of.wrong_count), 0u);
    cr_expect_eq(quern__float_mode(), of.mode);
    cr_expect_eq(mode_of_worker_1(of.jobs), before, "the worker has its own mode again");
    quern__float_set_mode(before);
    quern_jobs_destroy(of.jobs);
}

Test(float_mode, loops_have_the_mode_of_their_caller)
{
    expect_mode_of_caller(run_loop);
}

Test(float_mode, graphs_have_the_mode_of_their_caller)
{
    expect_mode_of_caller(run_graph);
    expect_mode_of_caller(run_graph_with_priorities);
}

Test(float_mode, submitted_graphs_have_the_mode_of_the_submitting_thread)
{
    expect_mode_of_caller(run_submitted_graph);
}

Test(float_mode, forks_have_the_mode_of_the_forking_job)
{
    expect_mode_of_caller(run_forks);
}
