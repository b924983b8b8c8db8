/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"

#include <quern/graph.h>

#include <criterion/criterion.h>

/* Jobs that one waiting worker may run and another may not: which worker runs them, or is woken for
 * them. */

TestSuite(rescue, .timeout = 120);

enum { DEEP = 300, PATIENCE_MS = 20000 };

/* Waits until the counter is zero, without running jobs. */
static bool reaches_zero(const quern_counter *counter)
{
    for (uint32_t look = 0; look < PATIENCE_MS && !quern_counter_is_done(counter); look++)
        sleep_ms(1);
    return quern_counter_is_done(counter);
}

/* ----------------------------------------------------------------------------- waits for any of several */

typedef struct descent {
    quern_jobs *jobs;
    quern_counter never;
    quern_counter counters[DEEP + 1];
    _Atomic uint32_t run_count;
} descent;

typedef struct step {
    descent *of;
    uint32_t depth;
} step;

static void descend(void *argument, uint32_t worker_index);

static void submit_step(descent *of, uint32_t depth, uint32_t worker_index)
{
    const step next = {of, depth};
    const quern_job_def def = {.function = descend,
                               .payload = &next,
                               .payload_bytes = sizeof next,
                               .counter = &of->counters[depth],
                               .on_worker = worker_index + 1};
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void descend(void *argument, uint32_t worker_index)
{
    const step *mine = argument;
    descent *of = mine->of;
    uint32_t index;
    atomic_fetch_add(&of->run_count, 1);
    if (mine->depth == DEEP) return;
    quern_counter *const counters[] = {&of->never, &of->counters[mine->depth + 1]};
    submit_step(of, mine->depth + 1, worker_index);
    cr_expect_eq(quern_jobs_wait_any(of->jobs, counters, 2, UINT64_MAX, &index), QUERN_OK);
    cr_expect_eq(index, 1u);
}

Test(rescue, wait_for_any_runs_assigned_jobs_at_any_depth)
{
    static descent of;
    of.jobs = open_pool(2);
    quern_counter_hold(&of.never);
    submit_step(&of, 0, 1);
    cr_assert(reaches_zero(&of.counters[0]), "%u jobs ran", of.run_count);
    cr_assert_eq(of.run_count, DEEP + 1);
    quern_jobs_destroy(of.jobs);
}

static void finish_one(quern__job *job, quern__worker *worker)
{
    quern__counter_finish(job->target, 1, worker);
}

/* Leaves a closed job in the deque of a worker that no thread is. */
static void leave_closed(quern__worker *worker, quern_counter *counter)
{
    const quern__job job = {.run = finish_one, .scope = quern__scope_close(counter), .target = counter};
    quern_counter_hold(counter);
    cr_assert(quern__deque_push(&worker->deque, &job, 0));
}

Test(rescue, wait_for_any_finds_hidden_job_of_each_scope)
{
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = 1, .external_thread_count = 2};
    quern_counter never = {0}, awaited = {0}, other = {0}, *const counters[] = {&never, &awaited};
    uint32_t index;
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    quern_counter_hold(&never);
    cr_assert_eq(quern__jobs_enter(jobs, "the test"), QUERN_OK);
    quern__worker *worker = quern__current_worker;
    leave_closed(&jobs->workers[1], &other);
    leave_closed(&jobs->workers[1], &awaited);
    leave_closed(&jobs->workers[1], &other);
    quern__worker_add_closed_depth(worker, 1);
    cr_assert_eq(quern_jobs_wait_any(jobs, counters, 2, UINT64_MAX, &index), QUERN_OK);
    quern__worker_add_closed_depth(worker, (uint32_t)-1);
    cr_assert_eq(index, 1u);
    cr_assert(!quern_counter_is_done(&other));
    cr_assert_eq(jobs->queues.pushed_count, 1u,
                 "%u jobs were put aside: what stood before it, and nothing else",
                 (unsigned)jobs->queues.pushed_count);
    quern__jobs_leave(jobs);
    quern_jobs_destroy(jobs);
    cr_assert(quern_counter_is_done(&other));
}

/* Another worker may publish what it waits for next before this worker has read that it no longer serves the awaited
 * scope. Then a job of a graph, which this worker has put into its deque before it began a node, seems to be awaited. */
Test(rescue, wait_in_a_node_leaves_its_own_jobs_of_graphs_alone)
{
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = 1, .external_thread_count = 2};
    quern_counter held = {0}, of_graph = {0};
    bool is_done;
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    cr_assert_eq(quern__jobs_enter(jobs, "the test"), QUERN_OK);
    quern__worker *worker = quern__current_worker, *other = &jobs->workers[1];
    cr_assert_neq(worker, other);
    quern_counter_hold(&held);
    atomic_store(&other->served_scope, &held);
    atomic_store(&other->awaited_scope, quern__scope_close(&of_graph));
    leave_closed(worker, &of_graph);
    const int64_t floor = worker->floor;
    worker->floor = quern__deque_bottom(&worker->deque);
    quern__worker_add_closed_depth(worker, 1);
    cr_assert_eq(quern_jobs_wait_for(jobs, &held, 2000000, &is_done), QUERN_OK);
    cr_assert(!is_done && !quern_counter_is_done(&of_graph));
    quern__worker_add_closed_depth(worker, (uint32_t)-1);
    cr_assert_eq(quern_jobs_wait_for(jobs, &held, 2000000, &is_done), QUERN_OK);
    cr_assert(quern_counter_is_done(&of_graph), "a worker that is in no node may run it");
    worker->floor = floor;
    atomic_store(&other->served_scope, NULL);
    atomic_store(&other->awaited_scope, NULL);
    quern__jobs_leave(jobs);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------------ closed jobs */

/* Worker 1 waits in a node, worker 2 in a job. */
typedef struct sleepers {
    quern_jobs *jobs;
    quern_graph *graph;
    quern_counter held, jobs_done;
    _Atomic bool may_sleep; /* of the worker in the node */
    _Atomic uint32_t node_count;
} sleepers;

static void wait_in_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    sleepers *of = argument;
    atomic_fetch_add(&of->node_count, 1);
    while (!atomic_load(&of->may_sleep))
        sleep_ms(1);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->held), QUERN_OK);
}

static void run_node(void *argument, uint32_t worker_index)
{
    sleepers *of = *(sleepers **)argument;
    cr_expect_eq(quern_graph_run(of->graph, of->jobs), QUERN_OK);
}

static void wait_in_job(void *argument, uint32_t worker_index)
{
    sleepers *of = *(sleepers **)argument;
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->held), QUERN_OK);
}

static void submit_for(sleepers *of, quern_job_function *function, uint32_t worker_index)
{
    const quern_job_def def = {.function = function,
                               .payload = &of,
                               .payload_bytes = sizeof of,
                               .counter = &of->jobs_done,
                               .on_worker = worker_index + 1};
    cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void wait_until_asleep(const quern_jobs *jobs, uint32_t count)
{
    while (atomic_load(&jobs->blocked_count) != count)
        sleep_ms(1);
}

static void open_sleepers(sleepers *of)
{
    of->jobs = open_pool(3);
    cr_assert_eq(quern_graph_create(NULL, &of->graph), QUERN_OK);
    const quern_graph_node_def node = {.function = wait_in_node, .user_data = of};
    cr_assert_eq(quern_graph_add_node(of->graph, &node, NULL), QUERN_OK);
    quern_counter_hold(&of->held);
    submit_for(of, run_node, 1);
    submit_for(of, wait_in_job, 2);
    while (atomic_load(&of->node_count) == 0)
        sleep_ms(1);
}

static void close_sleepers(sleepers *of)
{
    cr_assert_eq(quern_counter_release(of->jobs, &of->held), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->jobs_done), QUERN_OK);
    quern_graph_destroy(of->graph);
    quern_jobs_destroy(of->jobs);
}

static void count_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    count_plain(argument, worker_index);
}

typedef struct other_graph {
    quern_graph *graph;
    quern_counter counter;
    _Atomic uint32_t run_count;
} other_graph;

static void submit_other(other_graph *other, quern_jobs *jobs)
{
    const quern_graph_node_def node = {.function = count_node, .user_data = &other->run_count};
    const quern_graph_run_def def = {.counter = &other->counter};
    cr_assert_eq(quern_graph_create(NULL, &other->graph), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(other->graph, &node, NULL), QUERN_OK);
    cr_assert_eq(quern_graph_submit(other->graph, jobs, &def), QUERN_OK);
}

Test(rescue, graph_wakes_worker_waiting_outside_of_nodes)
{
    sleepers of = {.may_sleep = true};
    other_graph other = {0};
    open_sleepers(&of);
    wait_until_asleep(of.jobs, 2);
    submit_other(&other, of.jobs);
    cr_assert(reaches_zero(&other.counter));
    cr_assert_eq(other.run_count, 1u);
    quern_graph_destroy(other.graph);
    close_sleepers(&of);
}

Test(rescue, worker_falling_asleep_in_node_wakes_another_for_graph)
{
    sleepers of = {.may_sleep = false};
    other_graph other = {0};
    open_sleepers(&of);
    wait_until_asleep(of.jobs, 1);
    submit_other(&other, of.jobs);
    atomic_store(&of.may_sleep, true);
    cr_assert(reaches_zero(&other.counter));
    cr_assert_eq(other.run_count, 1u);
    quern_graph_destroy(other.graph);
    close_sleepers(&of);
}

/* -------------------------------------------------------------------------------- short-lived threads */

typedef struct visit {
    quern_jobs *jobs;
    quern_counter counter, other, busy, never;
    uint32_t worker; /* index of the registered thread's worker */
    _Atomic bool may_end;
    _Atomic bool has_come;
    _Atomic uint32_t run_count, other_count;
} visit;

static void count_visit(void *argument, uint32_t worker_index)
{
    atomic_fetch_add(&(*(visit **)argument)->run_count, 1);
}

static void count_other(void *argument, uint32_t worker_index)
{
    atomic_fetch_add(&(*(visit **)argument)->other_count, 1);
}

static quern_job_def visit_job(visit **of, quern_job_function *function, quern_counter *counter)
{
    return (quern_job_def){
        .function = function, .payload = of, .payload_bytes = sizeof *of, .counter = counter};
}

static quern_jobs *open_with_slots(uint32_t thread_count, uint32_t external_thread_count)
{
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = thread_count,
                                .external_thread_count = external_thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    return jobs;
}

static void *register_and_end(void *argument)
{
    visit *of = argument;
    cr_expect_eq(quern_jobs_register_thread(of->jobs, &of->worker), QUERN_OK);
    atomic_store(&of->has_come, true);
    while (!atomic_load(&of->may_end))
        sleep_ms(1);
    return NULL;
}

static void stay_busy(void *argument, uint32_t worker_index)
{
    visit *of = *(visit **)argument;
    while (quern_counter_is_done(&of->busy) || !atomic_load(&of->has_come))
        sleep_ms(1);
    while (!quern_counter_is_done(&of->never))
        sleep_ms(1);
}

static void wait_for_visit(void *argument, uint32_t worker_index)
{
    visit *of = *(visit **)argument;
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
}

Test(rescue, jobs_of_ending_thread_wake_worker_that_waits_for_them)
{
    visit of = {.jobs = open_with_slots(3, 2)}, *address = &of;
    pthread_t window;
    quern_counter_hold(&of.never);
    cr_assert_eq(pthread_create(&window, NULL, register_and_end, &of), 0);
    while (!atomic_load(&of.has_come))
        sleep_ms(1);
    quern_job_def job = visit_job(&address, count_visit, &of.counter);
    job.on_worker = of.worker + 1;
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
    job = visit_job(&address, stay_busy, &of.busy);
    job.on_worker = 3;
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
    job = visit_job(&address, wait_for_visit, &of.other);
    job.on_worker = 2;
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
    wait_until_asleep(of.jobs, 1);
    atomic_store(&of.may_end, true);
    pthread_join(window, NULL);
    cr_assert(reaches_zero(&of.counter), "worker 1 is not told, and worker 2 has no time");
    cr_assert_eq(of.run_count, 1u);
    cr_assert_eq(quern_counter_release(of.jobs, &of.never), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.busy), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

static void stay_inside(void *argument, uint32_t worker_index)
{
    visit *of = argument;
    atomic_store(&of->has_come, true);
    while (!atomic_load(&of->may_end))
        sleep_ms(1);
}

static void *come_and_stay(void *argument)
{
    visit *of = argument;
    cr_expect_eq(quern_jobs_run(of->jobs, stay_inside, of), QUERN_OK);
    return NULL;
}

static void *submit_two_and_go(void *argument)
{
    visit *of = argument;
    const quern_job_def jobs[] = {visit_job(&of, count_visit, &of->counter),
                                  visit_job(&of, count_other, &of->other)};
    for (uint32_t i = 0; i < 2; i++)
        cr_expect_eq(quern_jobs_submit(of->jobs, &jobs[i]), QUERN_OK);
    return NULL;
}

/* Another external thread is inside, so the waiting one need not run unrelated jobs. */
Test(rescue, external_thread_skips_jobs_left_by_previous_thread)
{
    visit of = {.jobs = open_with_slots(1, 2)}, *address = &of;
    pthread_t stays, goes;
    bool is_done;
    quern_counter_hold(&of.never);
    cr_assert_eq(pthread_create(&stays, NULL, come_and_stay, &of), 0);
    while (!atomic_load(&of.has_come))
        sleep_ms(1);
    cr_assert_eq(pthread_create(&goes, NULL, submit_two_and_go, &of), 0);
    while (quern_counter_is_done(&of.other))
        sleep_ms(1);
    cr_assert_eq(quern_jobs_wait_for(of.jobs, &of.never, 5000000, &is_done), QUERN_OK);
    cr_assert_eq(of.run_count + of.other_count, 0u, "no thread waits for these jobs");
    cr_assert_eq(quern_jobs_wait_for(of.jobs, &of.counter, PATIENCE_MS * 1000000ull, &is_done), QUERN_OK);
    cr_assert(is_done, "what it waits for is among what was left");
    cr_assert_eq(of.run_count, 1u);
    cr_assert_eq(of.other_count, 0u);
    const quern_job_def own = visit_job(&address, count_visit, NULL);
    cr_assert_eq(quern_jobs_submit(of.jobs, &own), QUERN_OK);
    cr_assert_eq(quern_jobs_wait_for(of.jobs, &of.never, 5000000, &is_done), QUERN_OK);
    cr_assert_eq(of.run_count, 2u, "its own it does run");
    cr_assert_eq(of.other_count, 0u);
    pthread_join(goes, NULL);
    atomic_store(&of.may_end, true);
    pthread_join(stays, NULL);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(of.other_count, 1u);
}
