/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/board.h"

#include <quern/graph.h>

#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

TestSuite(host_threads, .timeout = 120);

/* --------------------------------------------------------------------------------- threads of the host */

enum { FOREIGN_QUEUE = 256, FOREIGN_WORKERS = 3 };

/* Another job system: a queue, a lock, threads. */
typedef struct other_system {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    void (*functions[FOREIGN_QUEUE])(void *argument);
    void *arguments[FOREIGN_QUEUE];
    uint32_t first, count;
    bool is_over;
    _Atomic uint32_t submit_count;
    pthread_t threads[FOREIGN_WORKERS];
} other_system;

static void *work_for_others(void *argument)
{
    other_system *system = argument;
    pthread_mutex_lock(&system->mutex);
    for (;;) {
        while (system->count == 0 && !system->is_over)
            pthread_cond_wait(&system->condition, &system->mutex);
        if (system->count == 0) break;
        uint32_t slot = system->first;
        system->first = (slot + 1) % FOREIGN_QUEUE;
        system->count--;
        pthread_mutex_unlock(&system->mutex);
        system->functions[slot](system->arguments[slot]);
        pthread_mutex_lock(&system->mutex);
    }
    pthread_mutex_unlock(&system->mutex);
    return NULL;
}

static void submit_to_system(void *user_data, void (*function)(void *argument), void *argument)
{
    other_system *system = user_data;
    pthread_mutex_lock(&system->mutex);
    cr_assert(system->count < FOREIGN_QUEUE);
    uint32_t slot = (system->first + system->count++) % FOREIGN_QUEUE;
    system->functions[slot] = function;
    system->arguments[slot] = argument;
    pthread_cond_signal(&system->condition);
    pthread_mutex_unlock(&system->mutex);
    atomic_fetch_add(&system->submit_count, 1);
}

static void open_system(other_system *system)
{
    memset((void *)system, 0, sizeof *system);
    pthread_mutex_init(&system->mutex, NULL);
    pthread_cond_init(&system->condition, NULL);
    for (uint32_t i = 0; i < FOREIGN_WORKERS; i++)
        cr_assert_eq(pthread_create(&system->threads[i], NULL, work_for_others, system), 0);
}

static void close_system(other_system *system)
{
    pthread_mutex_lock(&system->mutex);
    system->is_over = true;
    pthread_cond_broadcast(&system->condition);
    pthread_mutex_unlock(&system->mutex);
    for (uint32_t i = 0; i < FOREIGN_WORKERS; i++)
        pthread_join(system->threads[i], NULL);
}

static void add_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    board *of = argument;
    cr_expect(worker_index < quern_jobs_thread_count(of->jobs));
    atomic_fetch_add_explicit(&of->run_count, end - begin, memory_order_relaxed);
}

static void run_graph_on(board *of)
{
    quern_graph *graph;
    quern_graph_node_def def = {.function = add_items, .user_data = of, .count = 50, .grain = 1};
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    for (uint32_t i = 1; i < 10; i++)
        cr_assert_eq(quern_graph_add_edge(graph, i / 2, i), QUERN_OK);
    atomic_store(&of->run_count, 0);
    cr_assert_eq(quern_graph_run(graph, of->jobs), QUERN_OK);
    cr_assert_eq(atomic_load(&of->run_count), 500u);
    quern_graph_destroy(graph);
}

static void use_pool(board *of)
{
    atomic_store(&of->run_count, 0);
    cr_assert_eq(quern_jobs_parallel_for(of->jobs, 1000, 1, add_items, of), QUERN_OK);
    cr_assert_eq(atomic_load(&of->run_count), 1000u);
    run_graph_on(of);
    fib whole = {of->jobs, 13, 0};
    cr_assert_eq(quern_jobs_run(of->jobs, run_fib, &whole), QUERN_OK);
    cr_assert_eq(whole.result, 233u);
    atomic_store(&of->run_count, 0);
    submit_many(of, 300, QUERN_PRIORITY_NORMAL);
    submit_many(of, 30, QUERN_PRIORITY_LOW);
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of->run_count), 330u);
}

Test(host_threads, a_pool_runs_on_the_threads_of_another_system)
{
    other_system system;
    open_system(&system);
    board of = {0};
    quern_jobs_def def = {.thread_count = 3, .host_threads = {submit_to_system, &system}};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    cr_assert_eq(quern_jobs_thread_count(of.jobs), 3u);
    for (uint32_t round = 0; round < 30; round++) {
        use_pool(&of);
        if (round % 10 == 9) sleep_ms(2);
        if (round == 15) cr_assert_eq(quern_jobs_resize(of.jobs, 4), QUERN_OK);
    }
    submit_many(&of, 100, QUERN_PRIORITY_NORMAL);
    atomic_store(&of.run_count, 0);
    submit_many(&of, 100, QUERN_PRIORITY_HIGH);
    quern_jobs_destroy(of.jobs);
    cr_assert_gt(atomic_load(&system.submit_count), 0u);
    close_system(&system);
}

/* The pool requests one call of the host per worker that it wakes. */
Test(host_threads, one_job_wakes_one_worker)
{
    other_system system;
    open_system(&system);
    board of = {0};
    quern_jobs_def def = {.thread_count = 64, .host_threads = {submit_to_system, &system}};
    ticket mine = {&of, 0};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    quern_job_def job = job_of(count_run, &mine, &of.counter);
    for (uint32_t i = 1; i <= 20; i++) {
        cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
        while (!quern_counter_is_done(&of.counter))
            sleep_ms(1);
        cr_assert_leq(atomic_load(&system.submit_count), i);
        sleep_ms(1);
    }
    cr_assert_gt(atomic_load(&system.submit_count), 0u);
    quern_jobs_destroy(of.jobs);
    close_system(&system);
}

typedef struct other_call {
    void (*function)(void *argument);
    void *argument;
} other_call;

static void *make_call(void *argument)
{
    const other_call *call = argument;
    call->function(call->argument);
    return NULL;
}

/* The worker is idle again when this function returns. */
static void run_to_the_end(void *user_data, void (*function)(void *argument), void *argument)
{
    uint32_t *count = user_data;
    other_call call = {function, argument};
    pthread_t thread;
    cr_assert_leq(++*count, 100u, "the same workers are woken again and again");
    cr_assert_eq(pthread_create(&thread, NULL, make_call, &call), 0);
    pthread_join(thread, NULL);
}

Test(host_threads, wake_calls_each_worker_once)
{
    uint32_t count = 0;
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 70, .host_threads = {run_to_the_end, &count}};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    quern_jobs_wake(jobs);
    cr_assert_eq(count, 69u);
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------------------- resizing */

/* A resize whose workers are being replaced when another thread submits a job. */
typedef struct resize_window {
    quern_jobs *jobs;
    quern_counter done;
    _Atomic bool is_open;
    _Atomic bool is_submitted;
    _Atomic uint32_t run_count;
} resize_window;

static void *allocate_aligned(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    return aligned_alloc(alignment_bytes,
                         (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
}

/* The resizing thread releases the old workers while no other thread may access them. */
static void release_in_window(void *user_data, void *memory, size_t size_bytes, size_t alignment_bytes)
{
    resize_window *of = user_data;
    if (of->jobs != NULL && atomic_load(&of->jobs->is_replacing_workers)) {
        atomic_store(&of->is_open, true);
        while (!atomic_load(&of->is_submitted))
            sched_yield();
    }
    free(memory);
}

static void count_in_window(void *argument, uint32_t worker_index)
{
    resize_window *of = *(resize_window **)argument;
    atomic_fetch_add(&of->run_count, 1);
}

static void *submit_in_window(void *argument)
{
    resize_window *of = argument;
    const quern_job_def def = {
        .function = count_in_window, .payload = &of, .payload_bytes = sizeof of, .counter = &of->done};
    while (!atomic_load(&of->is_open))
        sched_yield();
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    atomic_store(&of->is_submitted, true);
    return NULL;
}

/* No later call enters the pool: only the end of the resize can wake a worker for the job. */
Test(host_threads, a_job_submitted_while_workers_are_replaced_wakes_one)
{
    enum { PATIENCE_MS = 20000 };
    other_system system;
    resize_window of = {.jobs = NULL};
    pthread_t other;
    open_system(&system);
    const quern_jobs_def def = {
        .thread_count = 3,
        .host_threads = {submit_to_system, &system},
        .allocator = {.user_data = &of, .allocate = allocate_aligned, .release = release_in_window}};
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    of.jobs = jobs;
    cr_assert_eq(pthread_create(&other, NULL, submit_in_window, &of), 0);
    cr_assert_eq(quern_jobs_resize(jobs, 2), QUERN_OK);
    pthread_join(other, NULL);
    for (uint32_t look = 0; look < PATIENCE_MS && !quern_counter_is_done(&of.done); look++)
        sleep_ms(1);
    cr_expect_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(jobs);
    close_system(&system);
}

/* ------------------------------------------------------------------------------------------- the end */

typedef struct last_call {
    quern_jobs *jobs;
    _Atomic bool has_locked, has_unlocked;
} last_call;

/* Like the end of a host's call, on a slow thread: the pool counts the call no longer, and it still unlocks the mutex. */
static void *unlock_slowly(void *argument)
{
    last_call *of = argument;
    quern__mutex_lock(&of->jobs->outside_mutex);
    atomic_store(&of->has_locked, true);
    sleep_ms(20);
    atomic_store(&of->has_unlocked, true);
    quern__mutex_unlock(&of->jobs->outside_mutex);
    return NULL;
}

Test(host_threads, a_pool_ends_after_the_last_call_of_the_host_has_unlocked)
{
    other_system system;
    last_call of = {.jobs = NULL};
    pthread_t slow;
    open_system(&system);
    const quern_jobs_def def = {.thread_count = 2, .host_threads = {submit_to_system, &system}};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    cr_assert_eq(pthread_create(&slow, NULL, unlock_slowly, &of), 0);
    while (!atomic_load(&of.has_locked))
        sched_yield();
    quern_jobs_destroy(of.jobs);
    cr_assert(atomic_load(&of.has_unlocked));
    pthread_join(slow, NULL);
    close_system(&system);
}
