/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <string.h>

TestSuite(submit, .timeout = 120);

/* ------------------------------------------------------------------------------------- submit and wait */

Test(submit, every_submitted_job_runs_once)
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
    cr_expect((uintptr_t)argument % 8 == 0);
    for (uint32_t i = 1; i < bytes[0]; i++) {
        cr_expect(bytes[i] == (unsigned char)(bytes[0] + i), "byte %u of %u", i, bytes[0]);
        bytes[i] = 0; /* allowed: the payload was copied */
    }
}

Test(submit, payload_of_any_size_is_copied)
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

Test(submit, submit_refuses_bad_definitions)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_counter before = {0};
    quern_job_def good = job_of(count_run, &mine, &of.counter), def = good;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(NULL, &def));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(of.jobs, NULL));
    def.function = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.payload = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.payload_bytes = 0;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "def->payload_bytes is 0"));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, &before));
    def.priority = QUERN_PRIORITY_HIGH;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.payload_bytes = QUERN_JOB_PAYLOAD_BYTES + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    def = good;
    def.priority = (quern_priority)7;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &good, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_wait(NULL, &of.counter));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_wait(of.jobs, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_counter_release(of.jobs, &of.counter));
    cr_assert(quern_counter_is_done(&of.counter));
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

Test(submit, jobs_submit_jobs)
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

/* ------------------------------------------------------------------------------------------ priorities */

/* Jobs of all priorities pile up while the only worker is busy; then it runs them. */
Test(submit, high_runs_first_and_low_last)
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
    cr_assert_eq(of.places[2], 2u); /* the blocked job took index 1 */
    cr_assert_eq(of.places[3], 3u);
    cr_assert_eq(of.places[1], 4u);
    cr_assert_eq(of.places[0], 5u);
    quern_jobs_destroy(of.jobs);
}

/* ---------------------------------------------------------------------------------------- low priority */

typedef struct queue_jump {
    board of;
    _Atomic uint32_t run_count, low_at; /* low_at: number of jobs run before the low one */
    _Atomic bool is_low_in;
    quern_counter before, all;
} queue_jump;

static void end_when_low_is_in(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
    while (!atomic_load(&of->is_low_in))
        sleep_ms(1);
}

static void note_low(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
    atomic_store(&of->low_at, atomic_fetch_add(&of->run_count, 1));
}

static void note_continuation(void *argument, uint32_t worker_index)
{
    queue_jump *of = *(queue_jump **)argument;
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

/* Runs on worker 0, which is busy until the other worker has run all jobs. */
static void watch_jump(void *argument, uint32_t worker_index)
{
    queue_jump *of = argument;
    submit_for_jump(of, end_when_low_is_in, QUERN_PRIORITY_HIGH, &of->before);
    submit_for_jump(of, note_continuation, QUERN_PRIORITY_NORMAL, &of->all);
    submit_for_jump(of, note_continuation, QUERN_PRIORITY_HIGH, &of->all);
    submit_for_jump(of, note_low, QUERN_PRIORITY_LOW, &of->all);
    atomic_store(&of->is_low_in, true);
    while (!quern_counter_is_done(&of->all))
        sleep_ms(1);
}

Test(submit, low_jobs_run_after_continuations_of_finished_jobs)
{
    queue_jump of = {.of = {.jobs = open_pool(2)}};
    cr_assert_eq(quern_jobs_run(of.of.jobs, watch_jump, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.low_at), 2u);
    quern_jobs_destroy(of.of.jobs);
}

/* --------------------------------------------------------------------------------- jobs for the caller */

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
    for (mine.number = 0; mine.number < 10; mine.number++) {
        quern_job_def def = job_of(check_caller, &mine, &mine.of->counter);
        def.on_worker = QUERN_ON_CALLER;
        cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
    }
}

Test(submit, caller_jobs_run_on_the_caller_in_order)
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

Test(submit, caller_jobs_run_in_explicit_call)
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

/* ------------------------------------------------------------------------------------ external threads */

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

Test(submit, external_threads_submit_and_wait)
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

/* ----------------------------------------------------------------------------------------- full deques */

enum { DIG_COUNT = 20000, DEQUE_FILL = 600, DEPTH_LIMIT = 70 };

typedef struct shaft {
    quern_jobs *jobs;
    uint32_t left, depth, deepest;
} shaft;

static void dig(void *argument, uint32_t worker_index)
{
    shaft *of = *(shaft **)argument;
    if (of->left-- == 1) return;
    if (++of->depth > of->deepest) of->deepest = of->depth;
    quern_job_def def = {.function = dig, .payload = &of, .payload_bytes = sizeof of};
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    of->depth--;
}

static void dig_beside_a_full_deque(void *argument, uint32_t worker_index)
{
    shaft *of = argument;
    quern_job_def filler = {.function = rest};
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    dig(&of, worker_index);
}

Test(submit, self_submitting_jobs_with_full_deque_use_little_stack)
{
    shaft of = {.jobs = open_pool(1), .left = DIG_COUNT};
    cr_assert_eq(quern_jobs_run(of.jobs, dig_beside_a_full_deque, &of), QUERN_OK);
    cr_assert_gt(of.deepest, 2u, "the deque was not full");
    cr_assert_leq(of.deepest, (uint32_t)DEPTH_LIMIT);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(of.left, 0u);
}

static void submit_after_a_flood(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_counter flood = {0};
    quern_job_def filler = job_of(count_run, &mine, &flood), later = job_of(count_run, &mine, &of->counter);
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &flood) == QUERN_OK);
    atomic_store(&of->run_count, 0);
    for (uint32_t i = 0; i < 10; i++)
        cr_expect(quern_jobs_submit(of->jobs, &later) == QUERN_OK);
    cr_expect(atomic_load(&of->run_count) == 0, "%u ran at once", atomic_load(&of->run_count));
    cr_expect(quern_jobs_wait(of->jobs, &of->counter) == QUERN_OK);
}

Test(submit, an_emptied_deque_does_not_count_as_full)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, submit_after_a_flood, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 10u);
    quern_jobs_destroy(of.jobs);
}

/* A job that waits for its own counter must wait, whether the submitting call queues it or runs it
 * inside. */
static void continue_own_end(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_job_def after = job_of(count_run, &mine, NULL);
    cr_expect(!quern_counter_is_done(&mine.of->counter), "the job is not counted");
    cr_expect(quern_jobs_submit_after(mine.of->jobs, &after, &mine.of->counter) == QUERN_OK);
    cr_expect(!quern_counter_is_done(&mine.of->counter));
}

static void run_beside_a_full_deque(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def filler = {.function = rest}, job = job_of(continue_own_end, &mine, &of->counter);
    for (uint32_t i = 0; i < DEQUE_FILL; i++)
        cr_expect(quern_jobs_submit(of->jobs, &filler) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &job) == QUERN_OK);
    cr_expect(quern_counter_is_done(&of->counter), "it was to run at once");
}

Test(submit, inline_job_is_counted_meanwhile)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, run_beside_a_full_deque, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
}

/* ---------------------------------------------------------------------------------------------- memory */

Test(submit, failed_memory_submits_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_jobs_def def = {.thread_count = 1, .allocator = failing_allocator_interface(allocator)};
    board of = {0};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    ticket mine = {&of, 0};
    quern_job_def job = job_of(count_run, &mine, &of.counter);
    job.priority = QUERN_PRIORITY_HIGH;
    failing_allocator_fail_at(allocator, 1);
    cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert(quern_counter_is_done(&of.counter));
    failing_allocator_fail_at(allocator, 1);
    quern_counter after = {0};
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &job, &after), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert(quern_counter_is_done(&of.counter));
    failing_allocator_fail_at(allocator, 1);
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
    failing_allocator_close(allocator);
}
