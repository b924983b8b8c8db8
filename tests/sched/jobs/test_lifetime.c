/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lifetime, .timeout = 120);

/* --------------------------------------------------------------------------------- shutdown and resize */

Test(lifetime, destroy_runs_what_was_submitted)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t]), .caller = pthread_self()};
        ticket root = {&of, 7}, mine = {&of, 0};
        for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
            quern_job_def def = job_of(submit_two, &root, &of.counter);
            def.priority = (quern_priority)priority;
            cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        }
        quern_job_def def = job_of(count_run, &mine, &of.counter);
        def.on_worker = QUERN_ON_CALLER;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        quern_jobs_destroy(of.jobs);
        cr_assert_eq(atomic_load(&of.run_count), 3 * 255u + 1);
    }
}

Test(lifetime, destroy_drops_jobs_of_unfinished_counters)
{
    board of = {.jobs = open_pool(2)};
    quern_counter never = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, NULL);
    quern_counter_hold(&never);
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &never), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

/* Each counter has a waiting job of the pool. The first counter fires, and is freed, before the pool is
 * destroyed. */
Test(lifetime, destroy_takes_dropped_jobs_off_their_counters)
{
    enum { COUNTER_COUNT = 5 };
    board of = {.jobs = open_pool(2)};
    quern_jobs *other = open_pool(2);
    quern_counter counters[COUNTER_COUNT] = {{0}}, *gone = calloc(1, sizeof *gone), *list[COUNTER_COUNT];
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, NULL);
    list[0] = gone;
    for (uint32_t i = 1; i < COUNTER_COUNT; i++)
        list[i] = &counters[i];
    for (uint32_t i = 0; i < COUNTER_COUNT; i++)
        quern_counter_hold(list[i]);
    def.after = list;
    for (def.after_count = 2; def.after_count <= COUNTER_COUNT; def.after_count++)
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    cr_assert_eq(quern_counter_release(other, gone), QUERN_OK);
    free(gone);
    quern_jobs_destroy(of.jobs);
    of.jobs = other;
    for (uint32_t i = 1; i < COUNTER_COUNT; i++) {
        cr_expect_null(counters[i].links);
        cr_expect_eq(quern_counter_release(other, &counters[i]), QUERN_OK);
    }
    cr_expect_eq(atomic_load(&of.run_count), 0u);
    quern_counter_hold(&counters[1]);
    def.after = NULL;
    def.after_count = 0;
    def.counter = &of.counter;
    cr_assert_eq(quern_jobs_submit_after(other, &def, &counters[1]), QUERN_OK);
    cr_expect_eq(quern_counter_release(other, &counters[1]), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(other, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(other);
}

static void count_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    count_plain(argument, worker_index);
}

static quern_graph *graph_of(const quern_graph_node_def *node)
{
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(graph, node, NULL), QUERN_OK);
    return graph;
}

/* One of the three waiting graphs has begun before, and is not dropped. */
Test(lifetime, destroy_ends_graphs_that_wait_for_ever)
{
    quern_jobs *jobs = open_pool(2);
    quern_counter never = {0}, soon = {0}, ended[3] = {0};
    _Atomic uint32_t run_count = 0;
    const quern_graph_node_def node = {.function = count_node, .user_data = &run_count};
    quern_graph *inner = graph_of(&node);
    const quern_graph_node_def nested = {.graph = inner};
    quern_graph *graphs[] = {graph_of(&node), graph_of(&nested), graph_of(&node)};
    quern_counter_hold(&never);
    quern_counter_hold(&soon);
    for (uint32_t i = 0; i < 3; i++) {
        const quern_graph_run_def def = {
            .counter = &ended[i], .after = (quern_counter *[]){i == 1 ? &soon : &never}, .after_count = 1};
        cr_assert_eq(quern_graph_submit(graphs[i], jobs, &def), QUERN_OK);
        if (i == 0) cr_assert_eq(quern_jobs_resize(jobs, 3), QUERN_OK); /* the job continues to wait */
    }
    cr_assert_eq(quern_graph_submit(inner, jobs, NULL), QUERN_ERROR_POOL_BUSY);
    cr_assert_eq(quern_counter_release(jobs, &soon), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(jobs, &ended[1]), QUERN_OK);
    const quern_graph_run_def again = {.after = (quern_counter *[]){&never}, .after_count = 1};
    cr_assert_eq(quern_graph_submit(graphs[1], jobs, &again), QUERN_OK);
    quern_jobs_destroy(jobs);
    cr_assert_eq(run_count, 1u);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(quern_graph_result(graphs[i]), QUERN_ERROR_CANCELLED, "graph %u", i);
        cr_assert_eq(quern_graph_run(graphs[i], NULL), QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(quern_graph_result(graphs[i]), QUERN_OK);
        quern_graph_destroy(graphs[i]);
    }
    cr_assert_eq(run_count, 4u);
    quern_graph_destroy(inner);
}

Test(lifetime, resize_keeps_what_was_submitted)
{
    static const uint32_t sizes[] = {3, 1, 8, 2, 2, 5, 1, 1, 16};
    board of = {.jobs = open_pool(2)};
    uint32_t expected = 0;
    for (size_t s = 0; s < QUERN__COUNT_OF(sizes); s++) {
        submit_many(&of, 100, (quern_priority)(s % 3));
        expected += 100;
        cr_assert_eq(quern_jobs_resize(of.jobs, sizes[s]), QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(quern_jobs_thread_count(of.jobs), sizes[s]);
        fib whole = {of.jobs, 12, 0};
        cr_assert_eq(quern_jobs_run(of.jobs, run_fib, &whole), QUERN_OK);
        cr_assert_eq(whole.result, 144u);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), expected);
    }
    cr_assert_eq(quern_jobs_resize(of.jobs, 0), QUERN_OK);
    cr_assert_eq(quern_jobs_thread_count(of.jobs), default_thread_count());
    quern_jobs_destroy(of.jobs);
}

typedef struct waiters {
    quern_jobs *jobs;
    quern_counter held, counter;
} waiters;

/* Submits more jobs than a worker takes nodes from the store at a time. */
static void submit_waiters(void *argument, uint32_t worker_index)
{
    waiters *of = argument;
    const quern_job_def def = {.function = rest, .counter = &of->counter};
    quern_counter_hold(&of->held);
    for (uint32_t i = 0; i < 100; i++)
        cr_expect_eq(quern_jobs_submit_after(of->jobs, &def, &of->held), QUERN_OK);
    cr_expect_eq(quern_counter_release(of->jobs, &of->held), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
}

Test(lifetime, resize_keeps_the_memory_of_jobs_that_waited)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_jobs_def def = {.thread_count = 2, .allocator = failing_allocator_interface(memory)};
    waiters of = {.jobs = NULL};
    uint64_t outstanding_bytes = 0;
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    for (uint32_t round = 0; round < 60; round++) {
        cr_assert_eq(quern_jobs_run(of.jobs, submit_waiters, &of), QUERN_OK);
        cr_assert_eq(quern_jobs_resize(of.jobs, 3), QUERN_OK);
        cr_assert_eq(quern_jobs_resize(of.jobs, 2), QUERN_OK);
        if (round == 9) outstanding_bytes = failing_allocator_outstanding_bytes(memory);
    }
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), outstanding_bytes);
    quern_jobs_destroy(of.jobs);
    failing_allocator_close(memory);
}

/* Caller-only jobs run as well. */
Test(lifetime, resize_to_the_same_number_runs_what_was_submitted)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, NULL);
    def.on_worker = QUERN_ON_CALLER;
    submit_many(&of, 100, QUERN_PRIORITY_LOW);
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_resize(of.jobs, 2), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 101u);
    quern_jobs_destroy(of.jobs);
}

/* ----------------------------------------------------------------------- resizing with external threads */

enum { OUTSIDE_THREADS = 3, RESIZES = 30 };

typedef struct outside {
    quern_jobs *jobs;
    _Atomic bool is_over;
    _Atomic uint32_t run_count;
    _Atomic uint32_t submitted_count;
} outside;

static void count_outside(void *argument, uint32_t worker_index)
{
    outside *of = *(outside **)argument;
    atomic_fetch_add(&of->run_count, 1);
}

static void submit_in_some_way(outside *of, uint32_t step, quern_counter *done)
{
    quern_counter before = {0};
    quern_job_def def = {.function = count_outside,
                         .payload = &of,
                         .payload_bytes = sizeof of,
                         .counter = done,
                         .priority = (quern_priority)(step % 3)};
    if (step % 5 == 1) def.on_worker = 2;
    quern_counter_hold(&before);
    if (step % 4 == 0) {
        cr_expect_eq(quern_jobs_submit_after(of->jobs, &def, &before), QUERN_OK);
    } else if (quern_jobs_submit(of->jobs, &def) != QUERN_OK) {
        cr_expect_eq(step % 5, 1u); /* there may be no worker 1 */
        atomic_fetch_sub(&of->submitted_count, 1);
    }
    cr_expect_eq(quern_counter_release(of->jobs, &before), QUERN_OK);
}

static void *submit_while_resized(void *argument)
{
    outside *of = argument;
    quern_counter done = {0};
    for (uint32_t step = 0; !atomic_load(&of->is_over); step++) {
        atomic_fetch_add(&of->submitted_count, 1);
        submit_in_some_way(of, step, &done);
        cr_expect(quern_jobs_worker_count(of->jobs) >= 1 && quern_jobs_thread_count(of->jobs) <= 4);
        if (step % 8 == 7) quern_jobs_wake(of->jobs);
        while (step % 4 == 3 && !quern_counter_is_done(&done) && !atomic_load(&of->is_over))
            sleep_ms(1);
    }
    while (!quern_counter_is_done(&done))
        sleep_ms(1);
    return NULL;
}

Test(lifetime, resize_while_external_threads_submit)
{
    outside of = {.jobs = open_pool(4)};
    pthread_t threads[OUTSIDE_THREADS];
    for (uint32_t i = 0; i < OUTSIDE_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, submit_while_resized, &of), 0);
    for (uint32_t i = 0; i < RESIZES; i++)
        cr_expect_eq(quern_jobs_resize(of.jobs, 2 + i % 3), QUERN_OK, "%s", quern_error_message());
    atomic_store(&of.is_over, true);
    for (uint32_t i = 0; i < OUTSIDE_THREADS; i++)
        pthread_join(threads[i], NULL);
    quern_jobs_destroy(of.jobs);
    cr_expect_eq(atomic_load(&of.run_count), atomic_load(&of.submitted_count));
}

#if !defined(__SANITIZE_THREAD__) /* ThreadSanitizer delays signals for a thread that waits for a mutex */

/* An outside thread that submits while the workers of the pool are replaced, and that a signal stops before the job
 * is in the queue, until the resize has ended. */
typedef struct late_submitter {
    quern_jobs *jobs;
    pthread_t thread;
    quern_counter done;
    _Atomic bool may_submit;
    _Atomic bool is_stopped;
    _Atomic bool may_continue;
} late_submitter;

static late_submitter *_Atomic signalled;

static void stop_here(int signal_number)
{
    late_submitter *of = atomic_load(&signalled);
    (void)signal_number;
    atomic_store(&of->is_stopped, true);
    while (!atomic_load(&of->may_continue))
        sched_yield();
}

static void *allocate_for_late(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    (void)user_data;
    return aligned_alloc(alignment_bytes,
                         (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
}

/* The resizing thread releases the old workers. It holds the lock of the queues until the submitter waits for it; if
 * the submitter is too slow, the signal stops it earlier, and this round shows nothing. */
static void release_for_late(void *user_data, void *memory, size_t size_bytes, size_t alignment_bytes)
{
    late_submitter *of = user_data;
    (void)size_bytes, (void)alignment_bytes;
    free(memory);
    /* in this order: the memory may have been that of the pool, which ends after the submitter has begun */
    if (of->jobs == NULL || atomic_load(&of->may_submit) || !atomic_load(&of->jobs->is_replacing_workers))
        return;
    quern__mutex_lock(&of->jobs->queues.mutex);
    atomic_store(&of->may_submit, true);
    while (atomic_load(&of->jobs->outside_call_count) == 0)
        sched_yield();
    sleep_ms(2);
    cr_assert_eq(pthread_kill(of->thread, SIGUSR1), 0);
    while (!atomic_load(&of->is_stopped))
        sched_yield();
    quern__mutex_unlock(&of->jobs->queues.mutex);
}

static void *submit_late(void *argument)
{
    late_submitter *of = argument;
    const quern_job_def def = {.function = rest, .counter = &of->done};
    while (!atomic_load(&of->may_submit))
        sched_yield();
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    return NULL;
}

/* No later call enters the pool, so the submitter itself has to wake the thread that runs the job. */
Test(lifetime, a_job_queued_after_a_resize_has_looked_for_jobs_wakes_a_thread)
{
    enum { ROUNDS = 5, PATIENCE_MS = 10000 };
    const struct sigaction action = {.sa_handler = stop_here};
    cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        late_submitter of = {.jobs = NULL};
        const quern_jobs_def def = {
            .thread_count = 2,
            .allocator = {.user_data = &of, .allocate = allocate_for_late, .release = release_for_late}};
        quern_jobs *jobs;
        cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
        of.jobs = jobs;
        atomic_store(&signalled, &of);
        cr_assert_eq(pthread_create(&of.thread, NULL, submit_late, &of), 0);
        cr_assert_eq(quern_jobs_resize(jobs, 2), QUERN_OK);
        while (atomic_load(&jobs->sleeper_count) == 0)
            sched_yield();
        sleep_ms(1);
        atomic_store(&of.may_continue, true);
        pthread_join(of.thread, NULL);
        for (uint32_t look = 0; look < PATIENCE_MS && !quern_counter_is_done(&of.done); look++)
            sleep_ms(1);
        cr_expect(quern_counter_is_done(&of.done));
        quern_jobs_destroy(jobs);
    }
}

#endif

static void resize_inside(void *argument, uint32_t worker_index)
{
    board *of = argument;
    cr_expect(quern_jobs_resize(of->jobs, 5) == QUERN_ERROR_POOL_BUSY);
}

Test(lifetime, resize_refuses_invalid_calls)
{
    board of = {.jobs = open_pool(2)};
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_resize(NULL, 2));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_resize(of.jobs, QUERN_MAX_THREADS + 1));
    cr_assert_eq(quern_jobs_run(of.jobs, resize_inside, &of), QUERN_OK);
    cr_assert_eq(quern_jobs_thread_count(of.jobs), 2u);
    quern_jobs_destroy(of.jobs);
}

/* -------------------------------------------------------------------------------------------- describe */

Test(lifetime, describe_names_every_worker)
{
    quern_jobs *jobs = open_pool(3);
    char text[1000], small[10];
    quern_text_buffer buffer = {text, sizeof text, 0};
    cr_assert_eq(quern_jobs_describe(jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_assert_eq(buffer.length_bytes, strlen(text));
    cr_assert_not_null(strstr(text, "3 threads"));
    cr_assert_not_null(strstr(text, "worker 0: outside"));
    cr_assert_not_null(strstr(text, "worker 2: "));
    buffer = (quern_text_buffer){small, sizeof small, 0};
    cr_assert_eq(quern_jobs_describe(jobs, quern_sink_text(&buffer)), QUERN_OK);
    /* the length depends on the current state of the workers */
    cr_assert_gt(buffer.length_bytes, sizeof small);
    cr_assert_eq(strlen(small), sizeof small - 1);
    quern_jobs_destroy(jobs);
}

static void describe_itself(void *argument, uint32_t worker_index)
{
    char text[1000];
    quern_text_buffer buffer = {text, sizeof text, 0};
    quern_jobs *jobs = *(quern_jobs **)argument;
    cr_expect_eq(quern_jobs_describe(jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_expect_not_null(strstr(text, ", in 'inner job';"), "%s", text);
}

static void submit_inner(void *argument, uint32_t worker_index)
{
    char text[1000];
    quern_text_buffer buffer = {text, sizeof text, 0};
    quern_jobs *jobs = *(quern_jobs **)argument;
    quern_counter done = {0};
    const quern_job_def def = {.function = describe_itself,
                               .payload = argument,
                               .payload_bytes = sizeof jobs,
                               .counter = &done,
                               .name = "inner job"};
    cr_expect_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(jobs, &done), QUERN_OK);
    cr_expect_eq(quern_jobs_describe(jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_expect_not_null(strstr(text, ", in 'outer job';"), "%s", text);
    cr_expect_null(strstr(text, "inner job"), "%s", text);
}

Test(lifetime, describe_shows_names_of_jobs)
{
    char text[1000];
    quern_text_buffer buffer = {text, sizeof text, 0};
    quern_jobs *jobs = open_pool(1);
    quern_counter done = {0};
    const quern_job_def def = {.function = submit_inner,
                               .payload = &jobs,
                               .payload_bytes = sizeof jobs,
                               .counter = &done,
                               .name = "outer job"};
    cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(jobs, &done), QUERN_OK);
    cr_assert_eq(quern_jobs_describe(jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_assert_null(strstr(text, "outer job"), "%s", text);
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------------------- the end */

/* What the last running job may do while quern_jobs_destroy or quern_jobs_resize ends the threads. */

TestSuite(end, .timeout = 120);

/* The job that runs last submits another one, and waits for an effect that only that job has. */
typedef struct last_job {
    quern_jobs *jobs;
    quern_counter bell;
    quern_priority priority; /* priority of the submitted job */
    _Atomic bool has_begun;
    _Atomic uint32_t run_count;
} last_job;

static void ring(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    atomic_fetch_add(&of->run_count, 1);
    cr_expect_eq(quern_counter_release(of->jobs, &of->bell), QUERN_OK);
}

static quern_job_def last_job_def(last_job **of, quern_job_function *function)
{
    return (quern_job_def){.function = function, .payload = of, .payload_bytes = sizeof *of};
}

/* Waits until this worker is the only one that does not rest. */
static void await_rest(const quern_jobs *jobs)
{
    while (!atomic_load(&jobs->is_stopping) || atomic_load(&jobs->active_thread_count) > 1)
        sched_yield();
}

static void submit_and_wait(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_counter_hold(&of->bell);
    quern_job_def def = last_job_def(&of, ring);
    def.priority = of->priority;
    atomic_fetch_add(&of->run_count, 1);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->bell), QUERN_OK);
}

static void be_last(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    submit_and_wait(argument, worker_index);
}

static void submit_for_caller(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_job_def def = last_job_def(&of, submit_and_wait);
    def.on_worker = QUERN_ON_CALLER;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void submit_for_another(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_job_def def = last_job_def(&of, submit_and_wait);
    def.on_worker = worker_index == 1 ? 3 : 2;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void end_while(quern_job_function *last, uint32_t thread_count, quern_priority priority,
                      bool resizes)
{
    last_job state = {.jobs = open_pool(thread_count), .priority = priority}, *of = &state;
    const quern_job_def def = last_job_def(&of, last);
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    while (!atomic_load(&state.has_begun))
        sched_yield();
    if (resizes) cr_assert_eq(quern_jobs_resize(state.jobs, thread_count + 1), QUERN_OK);
    if (resizes) cr_expect_eq(atomic_load(&state.run_count), 2u);
    quern_jobs_destroy(state.jobs);
    cr_expect_eq(atomic_load(&state.run_count), 2u);
}

static void end_in_every_way(quern_job_function *last, uint32_t least_threads)
{
    for (uint32_t thread_count = least_threads; thread_count <= 4; thread_count++)
        for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++)
            for (int resizes = 0; resizes < 2; resizes++)
                end_while(last, thread_count, (quern_priority)priority, resizes != 0);
}

Test(end, last_job_waits_for_an_unrelated_job)
{
    end_in_every_way(be_last, 2);
}

Test(end, last_job_for_the_caller_waits_for_an_unrelated_job)
{
    end_in_every_way(submit_for_caller, 2);
}

Test(end, last_job_of_a_given_worker_waits_for_an_unrelated_job)
{
    end_in_every_way(submit_for_another, 3);
}

/* ---------------------------------------------------------------------------------------------- sharing */

enum { MEETING_THREADS = 4 };

typedef struct meeting {
    quern_jobs *jobs;
    _Atomic bool has_begun;
    _Atomic uint32_t arrived_count;
} meeting;

/* Returns only when all such jobs run at the same time. */
static void meet(void *argument, uint32_t worker_index)
{
    meeting *of = *(meeting **)argument;
    atomic_fetch_add(&of->arrived_count, 1);
    while (atomic_load(&of->arrived_count) < MEETING_THREADS)
        sched_yield();
}

static void call_meeting(void *argument, uint32_t worker_index)
{
    meeting *of = *(meeting **)argument;
    quern_counter done = {0};
    const quern_job_def def = {
        .function = meet, .payload = &of, .payload_bytes = sizeof of, .counter = &done};
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    for (uint32_t i = 0; i < MEETING_THREADS; i++)
        cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &done), QUERN_OK);
}

Test(end, all_workers_share_what_the_last_job_submits)
{
    meeting state = {.jobs = open_pool(MEETING_THREADS)}, *of = &state;
    const quern_job_def def = {.function = call_meeting, .payload = &of, .payload_bytes = sizeof of};
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    while (!atomic_load(&state.has_begun))
        sched_yield();
    quern_jobs_destroy(state.jobs);
    cr_expect_eq(atomic_load(&state.arrived_count), (uint32_t)MEETING_THREADS);
}

/* ------------------------------------------------------------------------------------- after the threads stopped */

enum { STOPPED_THREADS = 3 };

/* A pool all of whose workers but one are held between their sleep and the end of their rest, while the last one
 * stops the threads and another thread then submits a job. */
typedef struct stop {
    quern__observer observer; /* first; the pool reports sleeps to it */
    quern_jobs *jobs;
    _Atomic bool
        has_begun; /* the job of the last worker; the end of its sleep before that is none of a rest */
    _Atomic uint32_t held_count;
    _Atomic bool has_submitted;
    _Atomic bool has_run;
    bool ran_on_stopped_threads; /* written by the job */
} stop;

/* Called by each worker after a sleep. */
static void hold_at_rest(quern__observer *observer, uint32_t worker_index, quern__job_event event,
                         const char *name, uint64_t begin_ns, uint32_t count)
{
    stop *of = (stop *)(void *)observer;
    (void)worker_index, (void)name, (void)begin_ns, (void)count;
    if (event != QUERN__JOB_EVENT_SLEEP || !atomic_load(&of->jobs->is_stopping)) return;
    if (atomic_load(&of->jobs->active_thread_count) > 1 || atomic_load(&of->has_submitted)) return;
    atomic_fetch_add(&of->held_count, 1);
    while (!atomic_load(&of->has_submitted))
        sched_yield();
}

static void rest_last(void *argument, uint32_t worker_index)
{
    stop *of = *(stop **)argument;
    (void)worker_index;
    atomic_store(&of->has_begun, true);
    while (atomic_load(&of->held_count) < STOPPED_THREADS - 1) {
        quern_jobs_wake(of->jobs);
        sched_yield();
    }
}

static void note_state(void *argument, uint32_t worker_index)
{
    stop *of = *(stop **)argument;
    (void)worker_index;
    of->ran_on_stopped_threads = atomic_load(&of->jobs->has_stopped);
    atomic_store(&of->has_run, true);
}

static void *submit_after_stop(void *argument)
{
    stop *of = argument;
    const quern_job_def def = {.function = note_state, .payload = &of, .payload_bytes = sizeof of};
    while (!atomic_load(&of->jobs->has_stopped))
        sched_yield();
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    atomic_store(&of->has_submitted, true);
    return NULL;
}

/* The job needs threads that do not end: it may wait for others. So the threads of the resized pool run it. */
Test(end, a_job_submitted_after_the_threads_stopped_runs_on_new_threads)
{
    stop state = {.observer = {.report = hold_at_rest}}, *of = &state;
    const quern_jobs_def pool_def = {.thread_count = STOPPED_THREADS,
                                     .trace = (struct quern_trace *)(void *)&state.observer};
    const quern_job_def def = {
        .function = rest_last, .payload = &of, .payload_bytes = sizeof of, .on_worker = 2};
    pthread_t submitter;
    cr_assert_eq(quern_jobs_create(&pool_def, &state.jobs), QUERN_OK);
    atomic_store(&state.observer.is_recording, true);
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    cr_assert_eq(pthread_create(&submitter, NULL, submit_after_stop, of), 0);
    while (!atomic_load(&state.has_begun))
        sched_yield();
    cr_assert_eq(quern_jobs_resize(state.jobs, STOPPED_THREADS), QUERN_OK);
    pthread_join(submitter, NULL);
    while (!atomic_load(&state.has_run))
        sched_yield();
    cr_expect_not(state.ran_on_stopped_threads);
    quern_jobs_destroy(state.jobs);
}
