/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include "core/base/base.h"
#include "sched/jobs/jobs.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint32_t thread_counts[] = {1, 2, 3, 8};

TestSuite(single, .timeout = 120);

static quern_jobs *open_pool(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    return jobs;
}

static void sleep_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* What most jobs here share: given by address in the payload. */
typedef struct board {
    quern_jobs *jobs;
    quern_counter counter;
    _Atomic uint32_t run_count;
    _Atomic uint32_t order; /* next place */
    uint32_t places[8];     /* plain: must be visible when a wait has ended */
    _Atomic bool gate;
    pthread_t caller;
} board;

typedef struct ticket {
    board *of;
    uint32_t number;
} ticket;

static void open_gate(board *of)
{
    atomic_store(&of->gate, true);
}

static void count_run(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect(worker_index < quern_jobs_thread_count(mine->of->jobs));
    atomic_fetch_add_explicit(&mine->of->run_count, 1, memory_order_relaxed);
}

static quern_job_def job_of(quern_job_function *function, const ticket *payload, quern_counter *counter)
{
    quern_job_def def = {
        .function = function, .payload = payload, .payload_bytes = sizeof *payload, .counter = counter};
    return def;
}

/* ---------------------------------------------------------------------------------- fork and join */

typedef struct fib {
    quern_jobs *jobs;
    uint32_t n;
    uint64_t result;
} fib;

static void count_plain(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    atomic_fetch_add_explicit((_Atomic uint32_t *)argument, 1, memory_order_relaxed);
}

static void run_fib(void *argument, uint32_t worker_index)
{
    fib *whole = argument;
    (void)worker_index;
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

Test(single, forks_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t i = 0; i < 10; i++) {
            fib whole = {jobs, 16, 0};
            cr_assert_eq(quern_jobs_run(jobs, run_fib, &whole), QUERN_OK);
            cr_assert_eq(whole.result, 987u);
        }
        quern_jobs_destroy(jobs);
    }
}

static void join_below_a_job(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    quern_fork fork;
    _Atomic uint32_t forked_count = 0;
    (void)worker_index;
    cr_expect(quern_jobs_fork(of->jobs, &fork, count_plain, (void *)&forked_count) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_join(of->jobs, &fork) == QUERN_OK);
    cr_expect(atomic_load(&of->run_count) == 1 && atomic_load(&forked_count) == 1);
    cr_expect(quern_counter_is_done(&of->counter));
}

/* One thread, so that it is the join that runs the job. */
Test(single, a_join_leaves_no_finished_job_uncounted)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, join_below_a_job, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

enum { MANY_FORKS = 2000 };

/* More than a deque holds, joined in the order in which they were forked: the slow one. */
static void fork_many(void *argument, uint32_t worker_index)
{
    board *of = argument;
    quern_fork *forks = calloc(MANY_FORKS, sizeof *forks);
    (void)worker_index;
    for (uint32_t i = 0; i < MANY_FORKS; i++)
        cr_expect(quern_jobs_fork(of->jobs, &forks[i], count_plain, &of->run_count) == QUERN_OK);
    for (uint32_t i = 0; i < MANY_FORKS; i++)
        cr_expect(quern_jobs_join(of->jobs, &forks[i]) == QUERN_OK);
    free(forks);
}

Test(single, forks_may_be_many_and_joined_in_any_order)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 1; i <= 5; i++) {
            cr_assert_eq(quern_jobs_run(of.jobs, fork_many, &of), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), i * MANY_FORKS);
        }
        quern_jobs_destroy(of.jobs);
    }
}

static void note_number(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    ++*(uint64_t *)argument;
}

static void join_wrongly(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    quern_fork fork = {.function = NULL};
    uint64_t number = 3;
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_join(argument, &fork));
    cr_expect(quern_jobs_fork(argument, &fork, note_number, &number) == QUERN_OK);
    cr_expect(quern_jobs_join(argument, &fork) == QUERN_OK);
    cr_expect_eq(number, 4u);
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_join(argument, &fork));
}

Test(single, a_fork_is_joined_once_and_not_before_it_was_forked)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        quern_jobs *jobs = open_pool(threads);
        cr_assert_eq(quern_jobs_run(jobs, join_wrongly, jobs), QUERN_OK);
        quern_jobs_destroy(jobs);
    }
}

Test(single, forks_are_refused_outside_a_job)
{
    quern_jobs *jobs = open_pool(2);
    quern_fork fork;
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_fork(jobs, &fork, run_fib, NULL));
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_join(jobs, &fork));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_fork(NULL, &fork, run_fib, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_fork(jobs, NULL, run_fib, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_fork(jobs, &fork, NULL, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_join(jobs, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_run(jobs, NULL, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_run(NULL, run_fib, NULL));
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------- submit and wait */

static void submit_many(board *of, uint32_t count, quern_priority priority)
{
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    def.priority = priority;
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

Test(single, every_submitted_job_runs_once)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        uint32_t expected = 0;
        for (uint32_t count = 1; count < 5000; count = count * 2 + 1)
            for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
                submit_many(&of, count, (quern_priority)priority);
                cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
                expected += count;
                cr_assert_eq(atomic_load(&of.run_count), expected);
                cr_assert(quern_counter_is_done(&of.counter));
            }
        quern_jobs_destroy(of.jobs);
    }
}

static void check_payload(void *argument, uint32_t worker_index)
{
    unsigned char *bytes = argument;
    (void)worker_index;
    cr_expect((uintptr_t)argument % 8 == 0);
    for (uint32_t i = 1; i < bytes[0]; i++) {
        cr_expect(bytes[i] == (unsigned char)(bytes[0] + i), "byte %u of %u", i, bytes[0]);
        bytes[i] = 0; /* allowed: it is a copy */
    }
}

Test(single, payload_is_copied_whatever_its_size)
{
    quern_jobs *jobs = open_pool(2);
    quern_counter counter = {0};
    unsigned char bytes[QUERN_JOB_PAYLOAD_BYTES];
    quern_job_def def = {.function = check_payload, .payload = bytes, .counter = &counter};
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t size = 1; size <= QUERN_JOB_PAYLOAD_BYTES; size++) {
            bytes[0] = (unsigned char)size;
            for (uint32_t i = 1; i < size; i++)
                bytes[i] = (unsigned char)(size + i);
            def.payload_bytes = size;
            def.priority = (quern_priority)round;
            cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
            memset(bytes, 0xFF, sizeof bytes);
        }
    cr_assert_eq(quern_jobs_wait(jobs, &counter), QUERN_OK);
    quern_jobs_destroy(jobs);
}

Test(single, submit_refuses_bad_definitions)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_job_def good = job_of(count_run, &mine, &of.counter), def = good;
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_submit(NULL, &def));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_submit(of.jobs, NULL));
    def.function = NULL;
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.payload = NULL;
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.payload_bytes = QUERN_JOB_PAYLOAD_BYTES + 1;
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.priority = (quern_priority)7;
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_submit(of.jobs, &def));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_submit_after(of.jobs, &good, NULL));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_wait(NULL, &of.counter));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_wait(of.jobs, NULL));
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_release(of.jobs, &of.counter));
    cr_assert(quern_counter_is_done(&of.counter));
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

/* A job that submits two more, to a depth, all counted by one counter. */
static void submit_two(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    count_run(&mine, worker_index);
    if (mine.number == 0) return;
    mine.number--;
    quern_job_def def = job_of(submit_two, &mine, &mine.of->counter);
    for (uint32_t i = 0; i < 2; i++)
        cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
}

Test(single, jobs_submit_jobs)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket root = {&of, 11};
        quern_job_def def = job_of(submit_two, &root, &of.counter);
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 4095u);
        quern_jobs_destroy(of.jobs);
    }
}

/* Each waits for its own two, in a counter on its stack. */
static void wait_for_two(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_counter counter = {0};
    if (mine.number != 0) {
        ticket child = {mine.of, mine.number - 1};
        quern_job_def def = job_of(wait_for_two, &child, &counter);
        def.priority = (quern_priority)(mine.number % 3);
        for (uint32_t i = 0; i < 2; i++)
            cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
        cr_expect(quern_jobs_wait(mine.of->jobs, &counter) == QUERN_OK);
    }
    count_run(&mine, worker_index);
}

Test(single, waits_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 1; i <= 5; i++) {
            ticket root = {&of, 9};
            cr_assert_eq(quern_jobs_run(of.jobs, wait_for_two, &root), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), i * 1023);
        }
        quern_jobs_destroy(of.jobs);
    }
}

/* ---------------------------------------------------------------------------- a wait helps with its own */

static void block_until_gate(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    (void)worker_index;
    atomic_fetch_add(&mine->of->order, 1);
    while (!atomic_load(&mine->of->gate))
        sleep_ms(1);
    atomic_fetch_add(&mine->of->run_count, 1);
}

/* The jobs of the other counter were submitted first, so they are what a thief finds; they end only
 * after the wait. */
Test(single, a_wait_does_not_run_other_work)
{
    board of = {.jobs = open_pool(3)};
    quern_counter slow = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(block_until_gate, &mine, &slow);
    for (uint32_t i = 0; i < 20; i++) {
        def.priority = (quern_priority)(i % 2 == 0 ? QUERN_PRIORITY_LOW : QUERN_PRIORITY_HIGH);
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    }
    while (atomic_load(&of.order) < 2)
        sleep_ms(1);
    submit_many(&of, 50, QUERN_PRIORITY_HIGH);
    submit_many(&of, 50, QUERN_PRIORITY_NORMAL);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 100u);
    cr_assert_eq(atomic_load(&of.order), 2u, "the wait took a job that it did not wait for");
    open_gate(&of);
    cr_assert_eq(quern_jobs_wait(of.jobs, &slow), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 120u);
    quern_jobs_destroy(of.jobs);
}

static void wait_for_other(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect(quern_jobs_wait(mine->of->jobs, &mine->of->counter) == QUERN_OK);
    count_run(mine, worker_index);
}

/* Every worker waits for a job that nobody has begun: one of them has to take it. */
Test(single, the_last_one_takes_what_is_left)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        quern_counter waiting = {0};
        ticket mine = {&of, 0};
        quern_counter_hold(&of.counter);
        quern_job_def def = job_of(wait_for_other, &mine, &waiting);
        for (uint32_t i = 0; i < 12; i++)
            cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        sleep_ms(5);
        def = job_of(count_run, &mine, &of.counter);
        def.priority = QUERN_PRIORITY_LOW;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_release(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &waiting), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 13u);
        quern_jobs_destroy(of.jobs);
    }
}

/* --------------------------------------------------------------------------- continuations and holds */

static void note_place(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    (void)worker_index;
    mine->of->places[mine->number] = atomic_fetch_add(&mine->of->order, 1) + 1;
}

/* A diamond: 0, then 1 and 2, then 3. */
Test(single, continuations_start_when_their_counter_is_done)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t round = 0; round < 300; round++) {
            quern_counter first = {0}, middle = {0}, last = {0};
            ticket tickets[4];
            quern_job_def defs[4];
            quern_counter *counters[] = {&first, &middle, &middle, &last};
            atomic_store(&of.order, 0);
            for (uint32_t i = 0; i < 4; i++) {
                tickets[i] = (ticket){&of, i};
                defs[i] = job_of(note_place, &tickets[i], counters[i]);
                defs[i].priority = (quern_priority)((round + i) % 3);
            }
            quern_counter_hold(&first);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[1], &first), QUERN_OK);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[2], &first), QUERN_OK);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[3], &middle), QUERN_OK);
            cr_assert_eq(quern_jobs_submit(of.jobs, &defs[0]), QUERN_OK);
            cr_assert_eq(quern_jobs_release(of.jobs, &first), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &last), QUERN_OK);
            cr_assert_eq(of.places[0], 1u);
            cr_assert_eq(of.places[1] + of.places[2], 5u);
            cr_assert_eq(of.places[3], 4u);
        }
        quern_jobs_destroy(of.jobs);
    }
}

Test(single, a_continuation_of_nothing_starts_now)
{
    board of = {.jobs = open_pool(2)};
    quern_counter done = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &done), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

static void *release_later(void *argument)
{
    board *of = argument;
    sleep_ms(10);
    of->places[0] = 7;
    cr_expect(quern_jobs_release(of->jobs, &of->counter) == QUERN_OK);
    return NULL;
}

Test(single, a_hold_can_be_released_by_any_thread)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        pthread_t thread;
        quern_counter_hold(&of.counter);
        cr_assert_eq(pthread_create(&thread, NULL, release_later, &of), 0);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(of.places[0], 7u);
        pthread_join(thread, NULL);
        quern_jobs_destroy(of.jobs);
    }
}

/* ---------------------------------------------------------------------------------------- priorities */

/* One worker is kept busy while jobs of all priorities pile up; then it takes them. */
Test(single, high_goes_first_and_low_last)
{
    board of = {.jobs = open_pool(2)};
    quern_counter gate = {0};
    ticket tickets[] = {{&of, 0}, {&of, 1}, {&of, 2}, {&of, 3}};
    quern_job_def def = job_of(block_until_gate, &tickets[0], &gate);
    def.priority = QUERN_PRIORITY_HIGH;
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    while (atomic_load(&of.order) == 0)
        sleep_ms(1);
    static const quern_priority priorities[] = {QUERN_PRIORITY_LOW, QUERN_PRIORITY_NORMAL,
                                                QUERN_PRIORITY_HIGH, QUERN_PRIORITY_HIGH};
    for (uint32_t i = 0; i < 4; i++) {
        def = job_of(note_place, &tickets[i], &of.counter);
        def.priority = priorities[i];
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    }
    open_gate(&of);
    while (!quern_counter_is_done(&of.counter))
        sleep_ms(1);
    cr_assert_eq(of.places[2], 2u); /* the blocked one took 1 */
    cr_assert_eq(of.places[3], 3u);
    cr_assert_eq(of.places[1], 4u);
    cr_assert_eq(of.places[0], 5u);
    quern_jobs_destroy(of.jobs);
}

/* ------------------------------------------------------------------------------ jobs for the caller */

static void check_caller(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect(worker_index == 0);
    cr_expect(pthread_equal(pthread_self(), mine->of->caller) != 0);
    cr_expect(atomic_fetch_add(&mine->of->run_count, 1) == mine->number);
}

static void submit_caller_jobs(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    (void)worker_index;
    for (mine.number = 0; mine.number < 10; mine.number++) {
        quern_job_def def = job_of(check_caller, &mine, &mine.of->counter);
        def.caller_only = true;
        cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
    }
}

Test(single, caller_jobs_run_on_the_caller_in_order)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t]), .caller = pthread_self()};
        ticket mine = {&of, 0};
        quern_job_def def = job_of(submit_caller_jobs, &mine, &of.counter);
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 10u);
        quern_jobs_destroy(of.jobs);
    }
}

Test(single, caller_jobs_can_be_run_when_it_suits)
{
    board of = {.jobs = open_pool(2), .caller = pthread_self()};
    ticket mine = {&of, 0};
    uint32_t count = 99;
    submit_caller_jobs(&mine, 0);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
    cr_assert_eq(quern_jobs_run_caller_jobs(of.jobs, &count), QUERN_OK);
    cr_assert_eq(count, 10u);
    cr_assert_eq(atomic_load(&of.run_count), 10u);
    cr_assert_eq(quern_jobs_run_caller_jobs(of.jobs, &count), QUERN_OK);
    cr_assert_eq(count, 0u);
    cr_assert_eq(quern_jobs_run_caller_jobs(NULL, &count), QUERN_ERROR_NULL_ARGUMENT);
    quern_jobs_destroy(of.jobs);
}

/* ---------------------------------------------------------------------------------- foreign threads */

enum { FOREIGN_THREADS = 4, FOREIGN_ROUNDS = 200 };

static void *submit_and_wait(void *argument)
{
    board *shared = argument;
    for (uint32_t i = 0; i < FOREIGN_ROUNDS; i++) {
        board of = {.jobs = shared->jobs};
        submit_many(&of, 1 + i % 7, (quern_priority)(i % 3));
        cr_expect(quern_jobs_wait(of.jobs, &of.counter) == QUERN_OK);
        cr_expect(atomic_load(&of.run_count) == 1 + i % 7);
    }
    return NULL;
}

Test(single, foreign_threads_submit_and_wait)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board shared = {.jobs = open_pool(thread_counts[t])};
        pthread_t threads[FOREIGN_THREADS];
        for (uint32_t i = 0; i < FOREIGN_THREADS; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, submit_and_wait, &shared), 0);
        for (uint32_t i = 0; i < FOREIGN_THREADS; i++)
            pthread_join(threads[i], NULL);
        quern_jobs_destroy(shared.jobs);
    }
}

/* ------------------------------------------------------------------------------------ what is kept back */

/* A loop that the worker helps with in its wait: one item, which wants the counter at zero. */
static bool help_that_looks(const quern__wait *wait, quern__worker *worker)
{
    board *of = wait->target;
    (void)worker;
    if (atomic_load(&of->run_count) == 0 || atomic_load(&of->gate)) return false;
    cr_expect(quern_counter_is_done(&of->counter));
    open_gate(of);
    return true;
}

static bool gate_is_open(const quern__wait *wait)
{
    board *of = wait->target;
    return atomic_load(&of->gate);
}

static void wait_with_help(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    quern__wait wait = {.scope = of, .target = of, .is_done = gate_is_open, .help = help_that_looks};
    (void)worker_index;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    quern__worker_wait(quern__current_worker, &wait);
}

Test(single, a_wait_that_helps_leaves_no_finished_job_uncounted)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, wait_with_help, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

enum { CHAIN_STEPS = 30 };

/* Workers search for four seconds before they do anything else: a step that had to wait for that would let
 * the test run out of time. */
Test(single, a_worker_takes_a_continuation_before_it_searches, .timeout = 60)
{
    board of = {0};
    quern_jobs_def def = {.thread_count = 2, .spin_ns = UINT32_MAX};
    quern_counter steps[CHAIN_STEPS + 1] = {0};
    ticket mine = {&of, 0};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    quern_counter_hold(&steps[0]);
    for (uint32_t i = 0; i < CHAIN_STEPS; i++) {
        quern_job_def job = job_of(count_run, &mine, &steps[i + 1]);
        cr_assert_eq(quern_jobs_submit_after(of.jobs, &job, &steps[i]), QUERN_OK);
    }
    cr_assert_eq(quern_jobs_release(of.jobs, &steps[0]), QUERN_OK);
    while (!quern_counter_is_done(&steps[CHAIN_STEPS]))
        sleep_ms(1);
    cr_assert_eq(atomic_load(&of.run_count), (uint32_t)CHAIN_STEPS);
    quern_jobs_destroy(of.jobs);
}

enum { DIG_COUNT = 20000, DEQUE_FILL = 600, DEPTH_LIMIT = 70 };

typedef struct shaft {
    quern_jobs *jobs;
    uint32_t left, depth, deepest;
} shaft;

static void dig(void *argument, uint32_t worker_index)
{
    shaft *of = *(shaft **)argument;
    (void)worker_index;
    if (of->left-- == 1) return;
    if (++of->depth > of->deepest) of->deepest = of->depth;
    quern_job_def def = {.function = dig, .payload = &of, .payload_bytes = sizeof of};
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    of->depth--;
}

static void rest(void *argument, uint32_t worker_index)
{
    (void)argument;
    (void)worker_index;
}

static void dig_beside_a_full_deque(void *argument, uint32_t worker_index)
{
    shaft *of = argument;
    quern_job_def filler = {.function = rest};
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    dig(&of, worker_index);
}

Test(single, jobs_that_submit_themselves_beside_a_full_deque_use_little_stack)
{
    shaft of = {.jobs = open_pool(1), .left = DIG_COUNT};
    cr_assert_eq(quern_jobs_run(of.jobs, dig_beside_a_full_deque, &of), QUERN_OK);
    cr_assert_gt(of.deepest, 2u, "the deque was not full");
    cr_assert_leq(of.deepest, (uint32_t)DEPTH_LIMIT);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(of.left, 0u);
}

enum { NEST_DEPTH = 150 };

/* Waits for a continuation of what it submits, which a wait does not see. */
static void nest(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_counter inner = {0}, last = {0};
    atomic_fetch_add(&mine.of->run_count, 1);
    (void)worker_index;
    if (mine.number-- == 0) return;
    quern_job_def job = job_of(nest, &mine, &inner), end = job_of(count_run, &mine, &last);
    job.priority = (quern_priority)(mine.number % 3);
    quern_counter_hold(&inner);
    cr_expect(quern_jobs_submit(mine.of->jobs, &job) == QUERN_OK);
    cr_expect(quern_jobs_submit_after(mine.of->jobs, &end, &inner) == QUERN_OK);
    cr_expect(quern_jobs_release(mine.of->jobs, &inner) == QUERN_OK);
    cr_expect(quern_jobs_wait(mine.of->jobs, &last) == QUERN_OK);
}

Test(single, waits_for_continuations_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket whole = {&of, NEST_DEPTH};
        quern_job_def job = job_of(nest, &whole, &of.counter);
        cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 2 * NEST_DEPTH + 1u);
        quern_jobs_destroy(of.jobs);
    }
}

/* With an empty deque, and also just after a full one, a submitted job runs later. */
static void submit_after_a_flood(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_counter flood = {0};
    quern_job_def filler = job_of(count_run, &mine, &flood), later = job_of(count_run, &mine, &of->counter);
    (void)worker_index;
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &flood) == QUERN_OK);
    atomic_store(&of->run_count, 0);
    for (uint32_t i = 0; i < 10; i++)
        cr_expect(quern_jobs_submit(of->jobs, &later) == QUERN_OK);
    cr_expect(atomic_load(&of->run_count) == 0, "%u ran at once", atomic_load(&of->run_count));
    cr_expect(quern_jobs_wait(of->jobs, &of->counter) == QUERN_OK);
}

Test(single, an_emptied_deque_does_not_count_as_full)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, submit_after_a_flood, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 10u);
    quern_jobs_destroy(of.jobs);
}

/* What waits for its counter has to wait for it, in the queue as in the call that submits. */
static void continue_own_end(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_job_def after = job_of(count_run, &mine, NULL);
    (void)worker_index;
    cr_expect(!quern_counter_is_done(&mine.of->counter), "the job is not counted");
    cr_expect(quern_jobs_submit_after(mine.of->jobs, &after, &mine.of->counter) == QUERN_OK);
    cr_expect(!quern_counter_is_done(&mine.of->counter));
}

static void run_beside_a_full_deque(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def filler = {.function = rest}, job = job_of(continue_own_end, &mine, &of->counter);
    (void)worker_index;
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &job) == QUERN_OK);
    cr_expect(quern_counter_is_done(&of->counter), "it was to run at once");
}

Test(single, a_job_that_runs_at_once_is_counted_meanwhile)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, run_beside_a_full_deque, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
}

/* -------------------------------------------------------- what frames below on the stack have submitted */

typedef struct burrow {
    quern_jobs *jobs;
    quern_counter first, second, inner, outer;
    _Atomic uint32_t forked_count;
    _Atomic uint32_t stage;
} burrow;

static void wait_and_fork(void *argument, uint32_t worker_index)
{
    burrow *of = *(burrow **)argument;
    (void)worker_index;
    cr_expect(quern_jobs_wait(of->jobs, &of->second) == QUERN_OK);
    uint32_t begun = 0;
    atomic_compare_exchange_strong(&of->stage, &begun, 1);
    while (atomic_load(&of->stage) != 2)
        sleep_ms(1);
    for (uint32_t i = 0; i < 100; i++) {
        quern_fork fork;
        cr_expect(quern_jobs_fork(of->jobs, &fork, count_plain, (void *)&of->forked_count) == QUERN_OK);
        cr_expect(quern_jobs_join(of->jobs, &fork) == QUERN_OK);
    }
}

static void submit_and_wait_inside(void *argument, uint32_t worker_index)
{
    burrow *of = *(burrow **)argument;
    quern_job_def def = {
        .function = rest, .payload = &of, .payload_bytes = sizeof of, .counter = &of->first};
    (void)worker_index;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    def.counter = &of->second;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    def.function = wait_and_fork;
    def.counter = &of->inner;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &of->inner) == QUERN_OK);
}

/* For the other worker. */
static void submit_burrow(burrow *of)
{
    quern_job_def def = {.function = submit_and_wait_inside,
                         .payload = &of,
                         .payload_bytes = sizeof of,
                         .counter = &of->outer,
                         .priority = QUERN_PRIORITY_HIGH};
    cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

/* Keeps the other worker busy, without helping. */
static void watch_burrow(void *argument, uint32_t worker_index)
{
    burrow *of = argument;
    (void)worker_index;
    atomic_store(&of->stage, 2);
    for (uint32_t i = 0; i < 20000 && !quern_counter_is_done(&of->outer); i++)
        sleep_ms(1);
    cr_expect(quern_counter_is_done(&of->outer), "a job does not see what it has forked");
}

Test(single, a_job_sees_what_it_forks_after_a_wait_that_took_older_jobs)
{
    burrow of = {.jobs = open_pool(2)};
    submit_burrow(&of);
    while (atomic_load(&of.stage) != 1)
        sleep_ms(1);
    cr_assert_eq(quern_jobs_run(of.jobs, watch_burrow, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.forked_count), 100u);
    quern_jobs_destroy(of.jobs);
}

/* While the other worker is busy all the time: what is waited for is the waiter's own newest, put there by
 * a job below on its stack. */
Test(single, a_wait_finds_what_it_waits_for_below_on_its_stack)
{
    burrow of = {.jobs = open_pool(2)};
    submit_burrow(&of);
    cr_assert_eq(quern_jobs_run(of.jobs, watch_burrow, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

/* -------------------------------------------------------------------------------- low jobs come last */

typedef struct queue_jump {
    board of;
    _Atomic uint32_t run_count, low_at; /* low_at: how many had run when the low one began */
    _Atomic bool is_low_in;
    quern_counter before, all;
} queue_jump;

static void end_when_low_is_in(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
    (void)worker_index;
    while (!atomic_load(&of->is_low_in))
        sleep_ms(1);
}

static void note_low(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
    (void)worker_index;
    atomic_store(&of->low_at, atomic_fetch_add(&of->run_count, 1));
}

static void note_continuation(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
    (void)worker_index;
    atomic_fetch_add(&of->run_count, 1);
}

static void submit_for_jump(queue_jump *of, quern_job_function *function, quern_priority priority,
                            quern_counter *counter)
{
    quern_job_def def = {.function = function,
                         .payload = &of,
                         .payload_bytes = sizeof of,
                         .priority = priority,
                         .counter = counter};
    if (function == note_continuation)
        cr_expect(quern_jobs_submit_after(of->of.jobs, &def, &of->before) == QUERN_OK);
    else
        cr_expect(quern_jobs_submit(of->of.jobs, &def) == QUERN_OK);
}

/* On worker 0, which stays busy until the other one has done all. */
static void watch_jump(void *argument, uint32_t worker_index)
{
    queue_jump *of = argument;
    (void)worker_index;
    submit_for_jump(of, end_when_low_is_in, QUERN_PRIORITY_HIGH, &of->before);
    submit_for_jump(of, note_continuation, QUERN_PRIORITY_NORMAL, &of->all);
    submit_for_jump(of, note_continuation, QUERN_PRIORITY_HIGH, &of->all);
    submit_for_jump(of, note_low, QUERN_PRIORITY_LOW, &of->all);
    atomic_store(&of->is_low_in, true);
    while (!quern_counter_is_done(&of->all))
        sleep_ms(1);
}

Test(single, low_jobs_come_after_what_a_finished_job_has_let_go)
{
    queue_jump of = {.of = {.jobs = open_pool(2)}};
    cr_assert_eq(quern_jobs_run(of.of.jobs, watch_jump, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.low_at), 2u);
    quern_jobs_destroy(of.of.jobs);
}

Test(single, a_job_cannot_wait_for_its_own_counter)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_submit_after(of.jobs, &def, &of.counter));
    cr_assert(quern_counter_is_done(&of.counter));
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

/* ------------------------------------------------------------------------------ shutdown and resize */

Test(single, destroy_runs_what_was_submitted)
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
        def.caller_only = true;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        quern_jobs_destroy(of.jobs);
        cr_assert_eq(atomic_load(&of.run_count), 3 * 255u + 1);
    }
}

Test(single, destroy_drops_what_waits_for_ever)
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

Test(single, resize_keeps_what_was_submitted)
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
    cr_assert_eq(quern_jobs_thread_count(of.jobs), quern_processor_count());
    quern_jobs_destroy(of.jobs);
}

static void resize_inside(void *argument, uint32_t worker_index)
{
    board *of = argument;
    (void)worker_index;
    cr_expect(quern_jobs_resize(of->jobs, 5) == QUERN_ERROR_POOL_BUSY);
}

Test(single, resize_is_refused_when_it_cannot_be)
{
    board of = {.jobs = open_pool(2)};
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_jobs_resize(NULL, 2));
    assert_refused(NULL, QUERN_ERROR_INVALID_ARGUMENT, quern_jobs_resize(of.jobs, QUERN_MAX_THREADS + 1));
    cr_assert_eq(quern_jobs_run(of.jobs, resize_inside, &of), QUERN_OK);
    cr_assert_eq(quern_jobs_thread_count(of.jobs), 2u);
    quern_jobs_destroy(of.jobs);
}

/* --------------------------------------------------------------------------------------------- memory */

Test(single, failed_memory_submits_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_jobs_def def = {.thread_count = 1, .allocator = failing_allocator_interface(allocator)};
    board of = {0};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    ticket mine = {&of, 0};
    quern_job_def job = job_of(count_run, &mine, &of.counter);
    job.priority = QUERN_PRIORITY_HIGH;
    failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + 1);
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert(quern_counter_is_done(&of.counter));
    failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + 1);
    quern_counter after = {0};
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &job, &after), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert(quern_counter_is_done(&of.counter));
    failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + 1);
    cr_assert_eq(quern_jobs_resize(of.jobs, 4), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(quern_jobs_thread_count(of.jobs), 1u);
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
    uint64_t calls = failing_allocator_call_count(allocator);
    submit_many(&of, 60, QUERN_PRIORITY_HIGH);
    cr_assert_eq(failing_allocator_call_count(allocator), calls, "nodes come from a store");
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    submit_many(&of, 400, QUERN_PRIORITY_NORMAL);
    cr_assert_eq(failing_allocator_call_count(allocator), calls, "normal jobs take no memory");
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 461u);
    cr_assert_eq(failing_allocator_outstanding_bytes(allocator), 0u);
    cr_assert_eq(failing_allocator_misuse_count(allocator), 0u);
    failing_allocator_destroy(allocator);
}

/* -------------------------------------------------------------------------------- threads of the host */

enum { FOREIGN_QUEUE = 256, FOREIGN_WORKERS = 3 };

/* A job system of somebody else: a queue, a lock, threads. */
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

Test(single, a_pool_runs_on_the_threads_of_another_system)
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

/* How often a pool wakes somebody is how often it asks the other system. */
Test(single, one_job_wakes_one_worker)
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

/* The worker is idle again when this returns. */
static void run_to_the_end(void *user_data, void (*function)(void *argument), void *argument)
{
    uint32_t *count = user_data;
    other_call call = {function, argument};
    pthread_t thread;
    cr_assert_leq(++*count, 100u, "the same workers are woken again and again");
    cr_assert_eq(pthread_create(&thread, NULL, make_call, &call), 0);
    pthread_join(thread, NULL);
}

Test(single, wake_calls_each_worker_once)
{
    uint32_t count = 0;
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 70, .host_threads = {run_to_the_end, &count}};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    quern_jobs_wake(jobs);
    cr_assert_eq(count, 69u);
    quern_jobs_destroy(jobs);
}

/* ----------------------------------------------------------------------------------------- describe */

Test(single, describe_names_every_worker)
{
    quern_jobs *jobs = open_pool(3);
    char text[1000], small[10];
    quern_buffer buffer = {text, sizeof text, 0};
    cr_assert_eq(quern_jobs_describe(jobs, quern_sink_buffer(&buffer)), QUERN_OK);
    cr_assert_eq(buffer.length_bytes, strlen(text));
    cr_assert_not_null(strstr(text, "3 threads"));
    cr_assert_not_null(strstr(text, "worker 0: outside"));
    cr_assert_not_null(strstr(text, "worker 2: "));
    buffer = (quern_buffer){small, sizeof small, 0};
    cr_assert_eq(quern_jobs_describe(jobs, quern_sink_buffer(&buffer)), QUERN_OK);
    cr_assert_eq(buffer.length_bytes, strlen(text));
    cr_assert_eq(strlen(small), sizeof small - 1);
    quern_jobs_destroy(jobs);
}
