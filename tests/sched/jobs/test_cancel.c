/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cancel, .timeout = 120);

/* ------------------------------------------------------------------------------------------ the request */

Test(cancel, a_request_is_seen_until_it_is_reset)
{
    quern_cancel cancel = {0};
    cr_assert_not(quern_cancel_is_requested(&cancel));
    quern_cancel_request(&cancel);
    quern_cancel_request(&cancel);
    cr_assert(quern_cancel_is_requested(&cancel));
    quern_cancel_reset(&cancel);
    cr_assert_not(quern_cancel_is_requested(&cancel));
}

Test(cancel, null_is_never_requested)
{
    quern_cancel_request(NULL);
    quern_cancel_reset(NULL);
    cr_assert_not(quern_cancel_is_requested(NULL));
}

/* ------------------------------------------------------------------------------------------ single jobs */

static quern_job_def cancellable(const ticket *payload, quern_counter *counter, quern_cancel *cancel)
{
    quern_job_def def = job_of(count_run, payload, counter);
    def.cancel = cancel;
    return def;
}

/* Covers each path from a submit to a worker: the deque, each queue, and a counter's list. */
static void submit_each_way(board *of, const ticket *payload, quern_cancel *cancel)
{
    quern_job_def def = cancellable(payload, &of->counter, cancel);
    quern_counter never = {0};
    for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
        def.priority = (quern_priority)priority;
        cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_submit_after(of->jobs, &def, &never), QUERN_OK);
    }
    def.on_worker = QUERN_ON_CALLER;
    cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

enum { WAYS = 7 };

Test(cancel, jobs_that_have_not_begun_do_not_begin)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket mine = {&of, 0};
        quern_cancel cancel = {0};
        quern_cancel_request(&cancel);
        submit_each_way(&of, &mine, &cancel);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert(quern_counter_is_done(&of.counter));
        cr_assert_eq(atomic_load(&of.run_count), 0u);
        quern_jobs_destroy(of.jobs);
    }
}

Test(cancel, jobs_run_without_a_request_and_after_a_reset)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket mine = {&of, 0};
        quern_cancel cancel = {0};
        submit_each_way(&of, &mine, &cancel);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), WAYS);
        quern_cancel_request(&cancel);
        quern_cancel_reset(&cancel);
        submit_each_way(&of, &mine, &cancel);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 2 * WAYS);
        quern_jobs_destroy(of.jobs);
    }
}

/* One job occupies the only other worker. Jobs that are submitted meanwhile are cancelled before they can
 * begin. */
Test(cancel, a_request_reaches_queued_jobs)
{
    board of = {.jobs = open_pool(2)};
    quern_counter gate = {0};
    ticket mine = {&of, 0};
    quern_cancel cancel = {0};
    quern_job_def block = job_of(block_until_gate, &mine, &gate),
                  low = cancellable(&mine, &of.counter, &cancel);
    block.priority = QUERN_PRIORITY_HIGH;
    low.priority = QUERN_PRIORITY_LOW;
    cr_assert_eq(quern_jobs_submit(of.jobs, &block), QUERN_OK);
    while (atomic_load(&of.order) == 0)
        sleep_ms(1);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(quern_jobs_submit(of.jobs, &low), QUERN_OK);
    quern_cancel_request(&cancel);
    open_gate(&of);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &gate), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u); /* the job that occupied the worker */
    quern_jobs_destroy(of.jobs);
}

Test(cancel, a_request_affects_exactly_the_jobs_that_share_it)
{
    board of = {.jobs = open_pool(3)};
    ticket mine = {&of, 0};
    quern_cancel asked = {0}, other = {0};
    quern_cancel_request(&asked);
    quern_counter first = {0}, second = {0};
    for (uint32_t i = 0; i < 300; i++) {
        quern_job_def def = cancellable(&mine, i % 2 == 0 ? &first : &second, i % 3 == 0 ? &other : &asked);
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    }
    cr_assert_eq(quern_jobs_wait(of.jobs, &first), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &second), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 100u);
    quern_jobs_destroy(of.jobs);
}

/* These jobs would run inside of the submitting call, because the deque is full. */
static void submit_many_cancelled(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_cancel cancel = {0};
    quern_cancel_request(&cancel);
    quern_job_def def = cancellable(&mine, &of->counter, &cancel);
    for (uint32_t i = 0; i < 2000; i++)
        cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &of->counter) == QUERN_OK);
}

Test(cancel, jobs_that_find_the_deque_full_do_not_begin_either)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        cr_assert_eq(quern_jobs_run(of.jobs, submit_many_cancelled, &of), QUERN_OK);
        cr_assert(quern_counter_is_done(&of.counter));
        cr_assert_eq(atomic_load(&of.run_count), 0u);
        quern_jobs_destroy(of.jobs);
    }
}

Test(cancel, a_continuation_of_cancelled_jobs_runs)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_cancel cancel = {0};
    quern_counter last = {0};
    quern_cancel_request(&cancel);
    quern_counter_hold(&of.counter);
    submit_each_way(&of, &mine, &cancel);
    quern_job_def after = job_of(count_run, &mine, &last);
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &after, &of.counter), QUERN_OK);
    cr_assert_eq(quern_counter_release(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &last), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

/* -------------------------------------------------------------------------- jobs that cancel themselves */

typedef struct question {
    quern_cancel *cancel;
    _Atomic bool has_begun;
    uint32_t note; /* not atomic: written before the request */
    uint32_t seen;
} question;

static void run_until_asked(void *argument, uint32_t worker_index)
{
    question *of = *(question **)argument;
    atomic_store(&of->has_begun, true);
    while (!quern_cancel_is_requested(of->cancel))
        sleep_ms(1);
    of->seen = of->note;
}

Test(cancel, a_running_job_sees_writes_from_before_the_request)
{
    board of = {.jobs = open_pool(2)};
    quern_cancel cancel = {0};
    question asked = {.cancel = &cancel}, *payload = &asked;
    quern_job_def def = {.function = run_until_asked,
                         .payload = &payload,
                         .payload_bytes = sizeof payload,
                         .priority = QUERN_PRIORITY_HIGH,
                         .counter = &of.counter,
                         .cancel = &cancel};
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    while (!atomic_load(&asked.has_begun))
        sleep_ms(1);
    asked.note = 7;
    quern_cancel_request(&cancel);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(asked.seen, 7u);
    quern_jobs_destroy(of.jobs);
}

/* ------------------------------------------------------------------------ the payload, and what is left */

enum { WORD_BYTES = sizeof(uintptr_t) };

static void check_bytes(void *argument, uint32_t worker_index)
{
    const unsigned char *bytes = argument;
    for (uint32_t i = 1; i < bytes[0]; i++)
        cr_expect(bytes[i] == (unsigned char)(bytes[0] + i), "byte %u of %u", i, bytes[0]);
}

static void submit_sizes(quern_jobs *jobs, quern_job_def *def, uint32_t room)
{
    unsigned char bytes[QUERN_JOB_PAYLOAD_BYTES];
    def->payload = bytes;
    for (uint32_t size = 1; size <= room; size++) {
        bytes[0] = (unsigned char)size;
        for (uint32_t i = 1; i < size; i++)
            bytes[i] = (unsigned char)(size + i);
        def->payload_bytes = size;
        cr_assert_eq(quern_jobs_submit(jobs, def), QUERN_OK);
        memset(bytes, 0xFF, sizeof bytes);
    }
    def->payload_bytes = room + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(jobs, def));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(jobs, def, &(quern_counter){0}));
}

Test(cancel, request_and_name_each_reduce_the_payload_by_a_pointer)
{
    quern_jobs *jobs = open_pool(2);
    quern_counter counter = {0};
    quern_cancel cancel = {0};
    quern_job_def def = {.function = check_bytes, .counter = &counter};
    for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
        def.priority = (quern_priority)priority;
        def.cancel = &cancel, def.name = NULL;
        submit_sizes(jobs, &def, QUERN_JOB_PAYLOAD_BYTES - WORD_BYTES);
        def.cancel = NULL, def.name = "check";
        submit_sizes(jobs, &def, QUERN_JOB_PAYLOAD_BYTES - WORD_BYTES);
        def.cancel = &cancel;
        submit_sizes(jobs, &def, QUERN_JOB_PAYLOAD_BYTES - 2 * WORD_BYTES);
    }
    cr_assert_eq(quern_jobs_wait(jobs, &counter), QUERN_OK);
    quern_jobs_destroy(jobs);
}

Test(cancel, a_job_with_a_name_can_be_cancelled_too)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_cancel cancel = {0};
    quern_job_def def = cancellable(&mine, &of.counter, &cancel);
    def.name = "counted";
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    quern_cancel_request(&cancel);
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

/* Takes the job out of the queue directly, as workers do. */
Test(cancel, a_job_knows_its_name)
{
    static const char name[] = "streaming";
    board of = {.jobs = open_pool(1)};
    ticket mine = {&of, 0};
    quern_cancel cancel = {0};
    for (uint32_t kind = 0; kind < 4; kind++) {
        quern__job job;
        quern_job_def def = cancellable(&mine, &of.counter, kind % 2 == 0 ? NULL : &cancel);
        def.name = kind < 2 ? NULL : name;
        def.priority = QUERN_PRIORITY_LOW;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert(quern__queues_take(&of.jobs->queues, QUERN__QUEUE_LOW, NULL, &job));
        cr_assert_eq(quern__job_name(&job), kind < 2 ? NULL : name);
        quern__counter_finish(&of.counter, 1, NULL); /* the job will not run */
    }
    quern_jobs_destroy(of.jobs);
}

/* ------------------------------------------------------------------------------------------------ loops */

enum { LOOP_ITEMS = 200000 };

typedef struct stopped_loop {
    quern_jobs *jobs;
    quern_counter counter;
    quern_cancel cancel;
    quern_cancel *asks; /* request that an item makes; may be NULL */
    uint32_t asks_at;   /* number of items after which the request is made */
    _Atomic uint32_t run_count;
    _Atomic uint32_t late_count; /* number of calls that began after the end */
    _Atomic bool is_over;
    uint8_t run_counts[LOOP_ITEMS];
} stopped_loop;

static void run_stopped(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stopped_loop *of = argument;
    if (atomic_load(&of->is_over)) atomic_fetch_add(&of->late_count, 1);
    for (uint32_t i = begin; i < end; i++)
        of->run_counts[i]++;
    uint32_t before = atomic_fetch_add(&of->run_count, end - begin);
    if (before + (end - begin) >= of->asks_at) quern_cancel_request(of->asks);
}

static stopped_loop *open_stopped(uint32_t thread_count)
{
    stopped_loop *of = calloc(1, sizeof *of);
    of->jobs = open_pool(thread_count);
    return of;
}

static void close_stopped(stopped_loop *of)
{
    quern_jobs_destroy(of->jobs);
    cr_assert_eq(atomic_load(&of->late_count), 0u);
    free(of);
}

static quern_loop_def stopped_def(stopped_loop *of, uint32_t grain)
{
    memset(of->run_counts, 0, sizeof of->run_counts);
    atomic_store(&of->run_count, 0);
    atomic_store(&of->is_over, false);
    return (quern_loop_def){.function = run_stopped,
                            .user_data = of,
                            .count = LOOP_ITEMS,
                            .grain = grain,
                            .cancel = &of->cancel};
}

/* Checks that no item ran twice, and that the number of items is right. */
static void check_stopped(stopped_loop *of)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < LOOP_ITEMS; i++) {
        cr_assert_leq(of->run_counts[i], 1, "item %u", i);
        sum += of->run_counts[i];
    }
    cr_assert_eq(sum, atomic_load(&of->run_count));
}

static void submit_stopped(stopped_loop *of, uint32_t grain, quern_priority priority)
{
    quern_loop_def def = stopped_def(of, grain);
    def.counter = &of->counter;
    def.priority = priority;
    cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    atomic_store(&of->is_over, true);
    check_stopped(of);
}

static quern_result run_blocking(stopped_loop *of, uint32_t grain)
{
    const quern_loop_def def = stopped_def(of, grain);
    quern_result result = quern_jobs_run_loop(of->jobs, &def);
    atomic_store(&of->is_over, true);
    check_stopped(of);
    return result;
}

static const uint32_t grains[] = {0, 1, 64};

/* The test does not depend on time: if items are this short, far fewer than all of them run before a worker
 * sees the request. */
Test(cancel, a_loop_stops_in_the_middle)
{
    for (uint32_t thread_count = 1; thread_count <= 8; thread_count++)
        for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++) {
            stopped_loop *of = open_stopped(thread_count);
            of->asks = &of->cancel;
            of->asks_at = LOOP_ITEMS / 100;
            for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
                submit_stopped(of, grains[g], (quern_priority)priority);
                cr_assert_geq(atomic_load(&of->run_count), of->asks_at);
                cr_assert_lt(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
                quern_cancel_reset(&of->cancel);
            }
            cr_assert_eq(run_blocking(of, grains[g]), QUERN_ERROR_CANCELLED);
            cr_assert_lt(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
            close_stopped(of);
        }
}

Test(cancel, a_loop_that_is_cancelled_before_it_begins_runs_nothing)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++) {
            stopped_loop *of = open_stopped(thread_counts[t]);
            quern_cancel_request(&of->cancel);
            submit_stopped(of, grains[g], QUERN_PRIORITY_NORMAL);
            cr_assert_eq(atomic_load(&of->run_count), 0u);
            cr_assert_eq(run_blocking(of, grains[g]), QUERN_ERROR_CANCELLED);
            cr_assert_eq(atomic_load(&of->run_count), 0u);
            close_stopped(of);
        }
}

/* The last item makes the request: no item is skipped, so the loop is not cancelled. */
Test(cancel, a_request_after_the_last_item_changes_nothing)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++) {
            stopped_loop *of = open_stopped(thread_counts[t]);
            of->asks = &of->cancel;
            of->asks_at = LOOP_ITEMS;
            submit_stopped(of, grains[g], QUERN_PRIORITY_NORMAL);
            cr_assert_eq(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
            quern_cancel_reset(&of->cancel);
            cr_assert_eq(run_blocking(of, grains[g]), QUERN_OK);
            cr_assert_eq(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
            close_stopped(of);
        }
}

Test(cancel, loops_without_an_actual_request_run_all_items)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++) {
            stopped_loop *of = open_stopped(thread_counts[t]);
            submit_stopped(of, grains[g], QUERN_PRIORITY_HIGH);
            cr_assert_eq(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
            cr_assert_eq(run_blocking(of, grains[g]), QUERN_OK);
            cr_assert_eq(atomic_load(&of->run_count), (uint32_t)LOOP_ITEMS);
            close_stopped(of);
        }
}

/* Loops, jobs and their continuation share a request that another thread makes at an arbitrary time. */
static void *ask_soon(void *argument)
{
    sched_yield();
    quern_cancel_request(argument);
    return NULL;
}

Test(cancel, a_shared_request_at_any_time_leaves_all_counters_at_zero)
{
    for (uint32_t round = 0; round < 64; round++) {
        stopped_loop *first = open_stopped(1 + round % 8), *second = calloc(1, sizeof *second);
        board of = {.jobs = first->jobs};
        ticket mine = {&of, 0};
        quern_counter last = {0};
        pthread_t asker;
        second->jobs = first->jobs;
        quern_loop_def a = stopped_def(first, round % 3), b = stopped_def(second, 1);
        a.counter = b.counter = &first->counter;
        b.cancel = a.cancel;
        quern_job_def job = cancellable(&mine, &first->counter, &first->cancel), after = job;
        after.cancel = NULL;
        after.counter = &last;
        pthread_create(&asker, NULL, ask_soon, &first->cancel);
        cr_assert_eq(quern_jobs_submit_loop(of.jobs, &a), QUERN_OK);
        cr_assert_eq(quern_jobs_submit_loop(of.jobs, &b), QUERN_OK);
        cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
        cr_assert_eq(quern_jobs_submit_after(of.jobs, &after, &first->counter), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &last), QUERN_OK);
        cr_assert(quern_counter_is_done(&first->counter));
        atomic_store(&first->is_over, true);
        atomic_store(&second->is_over, true);
        pthread_join(asker, NULL);
        check_stopped(first);
        check_stopped(second);
        cr_assert_geq(atomic_load(&of.run_count), 1u);
        cr_assert_leq(atomic_load(&of.run_count), 2u);
        close_stopped(first);
        free(second);
    }
}
