/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_SCHED_JOBS_BOARD_H
#define TESTS_SCHED_JOBS_BOARD_H

/* Helpers for tests of single jobs: a board that the jobs share, and jobs that write to it. */

#include "sched/jobs/jobs_internal.h"

#include <quern/jobs.h>

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static const uint32_t thread_counts[] = {1, 2, 3, 8};

static inline quern_jobs *open_pool(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_jobs_thread_count(jobs), thread_count);
    return jobs;
}

/* Threads of a pool whose definition names no number. */
static inline uint32_t default_thread_count(void)
{
    return quern__default_thread_count(1, quern_processor_count(), quern__read_processor_quota(""));
}

static inline void sleep_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The data that most jobs share; the payload has its address. */
typedef struct board {
    quern_jobs *jobs;
    quern_counter counter;
    _Atomic uint32_t run_count;
    _Atomic uint32_t order; /* next free position */
    uint32_t places[8];     /* not atomic: must be visible after the wait */
    _Atomic bool gate;
    pthread_t caller;
} board;

typedef struct ticket {
    board *of;
    uint32_t number;
} ticket;

static inline void open_gate(board *of)
{
    atomic_store(&of->gate, true);
}

static inline void count_run(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect(worker_index < quern_jobs_thread_count(mine->of->jobs));
    atomic_fetch_add_explicit(&mine->of->run_count, 1, memory_order_relaxed);
}

static inline void count_plain(void *argument, uint32_t worker_index)
{
    atomic_fetch_add_explicit((_Atomic uint32_t *)argument, 1, memory_order_relaxed);
}

static inline void rest(void *argument, uint32_t worker_index) {}

static inline void note_place(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    mine->of->places[mine->number] = atomic_fetch_add(&mine->of->order, 1) + 1;
}

static inline quern_job_def job_of(quern_job_function *function, const ticket *payload,
                                   quern_counter *counter)
{
    quern_job_def def = {
        .function = function, .payload = payload, .payload_bytes = sizeof *payload, .counter = counter};
    return def;
}

static inline void submit_many(board *of, uint32_t count, quern_priority priority)
{
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    def.priority = priority;
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

/* A job that submits two more, down to a given depth, all with one counter. */
static inline void submit_two(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    count_run(&mine, worker_index);
    if (mine.number == 0) return;
    mine.number--;
    quern_job_def def = job_of(submit_two, &mine, &mine.of->counter);
    for (uint32_t i = 0; i < 2; i++)
        cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
}

static inline void block_until_gate(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    atomic_fetch_add(&mine->of->order, 1);
    while (!atomic_load(&mine->of->gate))
        sleep_ms(1);
    atomic_fetch_add(&mine->of->run_count, 1);
}

typedef struct fib {
    quern_jobs *jobs;
    uint32_t n;
    uint64_t result;
} fib;

static inline void run_fib(void *argument, uint32_t worker_index)
{
    fib *whole = argument;
    if (whole->n < 2) {
        whole->result = whole->n;
        return;
    }
    fib left = {whole->jobs, whole->n - 1, 0}, right = {whole->jobs, whole->n - 2, 0};
    quern_fork fork;
    cr_expect(quern_jobs_fork(whole->jobs, &fork, run_fib, &left) == QUERN_OK);
    run_fib(&right, worker_index);
    cr_expect(quern_jobs_join(whole->jobs, &fork) == QUERN_OK);
    whole->result = left.result + right.result;
}

#endif
