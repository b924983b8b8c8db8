/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <string.h>

#if defined(__linux__)
#include <sched.h>
#endif

TestSuite(own_threads, .timeout = 120);

/* ------------------------------------------------------------------------------------ start and stop */

enum { MOST_WORKERS = 16 };

/* What the callbacks recorded for each worker. */
typedef struct roll {
    board of;
    pthread_t threads[MOST_WORKERS];
    _Atomic bool is_there[MOST_WORKERS];
    _Atomic uint32_t start_counts[MOST_WORKERS];
    _Atomic uint32_t stop_counts[MOST_WORKERS];
    _Atomic uint32_t fault_count;
} roll;

static void note_start(void *user_data, uint32_t worker_index)
{
    roll *all = user_data;
    if (worker_index >= MOST_WORKERS || atomic_exchange(&all->is_there[worker_index], true))
        atomic_fetch_add(&all->fault_count, 1);
    all->threads[worker_index] = pthread_self();
    atomic_fetch_add(&all->start_counts[worker_index], 1);
}

static void note_stop(void *user_data, uint32_t worker_index)
{
    roll *all = user_data;
    if (!pthread_equal(all->threads[worker_index], pthread_self()) ||
        !atomic_exchange(&all->is_there[worker_index], false))
        atomic_fetch_add(&all->fault_count, 1);
    atomic_fetch_add(&all->stop_counts[worker_index], 1);
}

static void run_between(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    roll *all = argument;
    bool is_there = atomic_load(&all->is_there[worker_index]);
    if (is_there != (worker_index != 0)) atomic_fetch_add(&all->fault_count, 1);
    if (is_there && !pthread_equal(all->threads[worker_index], pthread_self()))
        atomic_fetch_add(&all->fault_count, 1);
    atomic_fetch_add(&all->of.run_count, end - begin);
}

static void check_counts(roll *all, uint32_t worker, uint32_t expected)
{
    cr_expect_eq(atomic_load(&all->start_counts[worker]), expected, "worker %u", (unsigned)worker);
    cr_expect_eq(atomic_load(&all->stop_counts[worker]), expected, "worker %u", (unsigned)worker);
}

Test(own_threads, each_thread_starts_before_its_first_job_and_stops_after_its_last)
{
    roll all = {0};
    quern_jobs_def def = {
        .thread_count = 4, .thread_start = note_start, .thread_stop = note_stop, .user_data = &all};
    cr_assert_eq(quern_jobs_create(&def, &all.of.jobs), QUERN_OK, "%s", quern_error_message());
    for (uint32_t round = 0; round < 20; round++)
        cr_assert_eq(quern_jobs_parallel_for(all.of.jobs, 200, 1, run_between, &all), QUERN_OK);
    cr_assert_eq(quern_jobs_resize(all.of.jobs, 4), QUERN_OK); /* three threads end, three start */
    cr_assert_eq(quern_jobs_resize(all.of.jobs, 3), QUERN_OK); /* three threads end, two start */
    cr_assert_eq(quern_jobs_parallel_for(all.of.jobs, 200, 1, run_between, &all), QUERN_OK);
    quern_jobs_destroy(all.of.jobs);
    check_counts(&all, 0, 0);
    check_counts(&all, 1, 3);
    check_counts(&all, 2, 3);
    check_counts(&all, 3, 2);
    cr_assert_eq(atomic_load(&all.of.run_count), 21 * 200u);
    cr_assert_eq(atomic_load(&all.fault_count), 0u);
}

Test(own_threads, either_callback_may_be_left_out)
{
    roll all = {0};
    quern_jobs_def def = {.thread_count = 3, .thread_start = note_start, .user_data = &all};
    cr_assert_eq(quern_jobs_create(&def, &all.of.jobs), QUERN_OK);
    quern_jobs_destroy(all.of.jobs);
    cr_assert_eq(atomic_load(&all.start_counts[2]), 1u);
    for (uint32_t i = 0; i < 3; i++)
        all.threads[i] = pthread_self();
    def = (quern_jobs_def){.thread_count = 3, .thread_stop = note_stop, .user_data = &all};
    cr_assert_eq(quern_jobs_create(&def, &all.of.jobs), QUERN_OK);
    quern_jobs_destroy(all.of.jobs);
    cr_assert_eq(atomic_load(&all.stop_counts[1]), 1u);
    cr_assert_eq(atomic_load(&all.stop_counts[2]), 1u);
}

static void *call_at_once(void *argument)
{
    void **call = argument;
    void (*function)(void *data) = (void (*)(void *))(uintptr_t)call[0];
    void *data = call[1];
    free(call);
    function(data);
    return NULL;
}

/* A minimal job system: one thread per job. */
static void submit_to_new_thread(void *user_data, void (*function)(void *data), void *data)
{
    pthread_t thread;
    void **call = malloc(2 * sizeof *call);
    cr_assert_not_null(call);
    call[0] = (void *)(uintptr_t)function;
    call[1] = data;
    cr_assert_eq(pthread_create(&thread, NULL, call_at_once, call), 0);
    pthread_detach(thread);
}

/* The callbacks see one thread at a time as a worker. */
Test(own_threads, host_threads_start_and_stop_around_their_work)
{
    roll all = {0};
    quern_jobs_def def = {.thread_count = 4,
                          .host_threads = {.submit = submit_to_new_thread},
                          .thread_start = note_start,
                          .thread_stop = note_stop,
                          .user_data = &all};
    cr_assert_eq(quern_jobs_create(&def, &all.of.jobs), QUERN_OK);
    cr_assert_eq(atomic_load(&all.start_counts[1]), 0u);
    for (uint32_t round = 0; round < 50; round++) {
        cr_assert_eq(quern_jobs_parallel_for(all.of.jobs, 200, 1, run_between, &all), QUERN_OK);
        if (round % 10 == 9) sleep_ms(1);
    }
    quern_jobs_wake(all.of.jobs);
    quern_jobs_destroy(all.of.jobs);
    uint32_t start_count = 0;
    for (uint32_t worker = 0; worker < MOST_WORKERS; worker++) {
        uint32_t count = atomic_load(&all.start_counts[worker]);
        check_counts(&all, worker, count);
        start_count += count;
    }
    cr_assert_gt(start_count, 0u);
    cr_assert_eq(atomic_load(&all.start_counts[0]), 0u);
    cr_assert_eq(atomic_load(&all.fault_count), 0u);
}

/* ------------------------------------------------------------------------------------------- stacks */

static void check_refused(const quern_jobs_def *def, quern_result expected, const char *word)
{
    quern_jobs *const before = (quern_jobs *)(uintptr_t)64;
    quern_jobs *jobs = before;
    assert_refused(NULL, expected, quern_jobs_create(def, &jobs));
    cr_assert_not_null(strstr(quern_error_message(), word), "%s", quern_error_message());
    cr_assert_eq(jobs, before);
}

Test(own_threads, bad_stacks_are_refused_before_anything_starts)
{
    roll all = {0};
    quern_jobs_def def = {.thread_count = 3,
                          .stack_bytes = 1,
                          .thread_start = note_start,
                          .thread_stop = note_stop,
                          .user_data = &all};
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "is 1; the system's minimum");
    def.stack_bytes = quern__thread_min_stack_bytes() - 1;
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "the system's minimum");
    def.stack_bytes = SIZE_MAX;
    check_refused(&def, QUERN_ERROR_THREAD_UNAVAILABLE, "thread 1 of 2");
    cr_assert_eq(atomic_load(&all.start_counts[1]), 0u);
    def.stack_bytes = 1 << 20;
    def.host_threads.submit = submit_to_new_thread;
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "leave out stack_bytes");
}

#if defined(__linux__)

static void measure_stack(void *user_data, uint32_t worker_index)
{
    size_t *bytes = user_data;
    pthread_attr_t attributes;
    cr_assert_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
    cr_assert_eq(pthread_attr_getstacksize(&attributes, &bytes[worker_index]), 0);
    pthread_attr_destroy(&attributes);
}

Test(own_threads, stacks_are_as_large_as_asked_for)
{
    enum { ASKED_BYTES = (3 << 20) + 5 };
    size_t bytes[3] = {0};
    quern_jobs *jobs;
    quern_jobs_def def = {
        .thread_count = 3, .stack_bytes = ASKED_BYTES, .thread_start = measure_stack, .user_data = bytes};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    quern_jobs_destroy(jobs);
    for (uint32_t worker = 1; worker < 3; worker++) {
        cr_expect(bytes[worker] >= (size_t)ASKED_BYTES);
        cr_expect(bytes[worker] < (size_t)ASKED_BYTES + (64 << 10));
    }
}

/* --------------------------------------------------------------------------------------- processors */

static cpu_set_t own_affinity(void)
{
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static uint32_t nth_processor(const cpu_set_t *set, uint32_t n)
{
    for (uint32_t processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, set) && n-- == 0) return processor;
    return UINT32_MAX;
}

typedef struct places {
    cpu_set_t seen[4]; /* by worker */
} places;

static void see_affinity(void *user_data, uint32_t worker_index)
{
    ((places *)user_data)->seen[worker_index] = own_affinity();
}

static void check_same(const cpu_set_t *actual, const cpu_set_t *expected)
{
    cr_expect(CPU_EQUAL(actual, expected), "%d processors instead of %d", CPU_COUNT(actual),
              CPU_COUNT(expected));
}

/* The threads are confined at the end, too, after workers may have moved to other processors. */
static void check_confined(quern_jobs_def def, const cpu_set_t *expected)
{
    const cpu_set_t before = own_affinity();
    places at_start = {0}, at_end = {0};
    for (int side = 0; side < 2; side++) {
        roll all = {0};
        *(side == 0 ? &def.thread_start : &def.thread_stop) = see_affinity;
        def.user_data = side == 0 ? &at_start : &at_end;
        cr_assert_eq(quern_jobs_create(&def, &all.of.jobs), QUERN_OK, "%s", quern_error_message());
        submit_many(&all.of, 500, QUERN_PRIORITY_NORMAL);
        cr_assert_eq(quern_jobs_wait(all.of.jobs, &all.of.counter), QUERN_OK);
        quern_jobs_destroy(all.of.jobs);
        def.thread_start = NULL;
    }
    for (uint32_t worker = 1; worker < def.thread_count; worker++) {
        check_same(&at_start.seen[worker], &expected[worker]);
        check_same(&at_end.seen[worker], &expected[worker]);
    }
    const cpu_set_t after = own_affinity();
    check_same(&after, &before);
}

Test(own_threads, run_only_on_the_processors_of_the_set)
{
    const cpu_set_t all = own_affinity();
    const uint32_t last = nth_processor(&all, (uint32_t)CPU_COUNT(&all) - 1);
    cpu_set_t expected[4];
    quern_jobs_def def = {.thread_count = 4};
    cr_assert_eq(quern_processors_add(&def.processors, last), QUERN_OK);
    for (uint32_t i = 0; i < 4; i++) {
        CPU_ZERO(&expected[i]);
        CPU_SET(last, &expected[i]);
    }
    check_confined(def, expected);
    for (uint32_t i = 0; i < (uint32_t)CPU_COUNT(&all); i++) {
        cr_assert_eq(quern_processors_add(&def.processors, nth_processor(&all, i)), QUERN_OK);
        for (uint32_t worker = 0; worker < 4; worker++)
            CPU_SET(nth_processor(&all, i), &expected[worker]);
    }
    check_confined(def, expected);
}

Test(own_threads, are_pinned_within_the_set)
{
    const cpu_set_t all = own_affinity();
    const uint32_t count = (uint32_t)CPU_COUNT(&all) - 1; /* all processors but the first */
    if (count == 0) cr_skip_test("needs two processors");
    cpu_set_t expected[4];
    quern_jobs_def def = {.thread_count = 4, .pin_threads = true};
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(quern_processors_add(&def.processors, nth_processor(&all, 1 + i)), QUERN_OK);
    for (uint32_t worker = 0; worker < 4; worker++) {
        CPU_ZERO(&expected[worker]);
        CPU_SET(nth_processor(&all, 1 + worker % count), &expected[worker]);
    }
    check_confined(def, expected);
}

/* The program has moved its own thread to other processors. */
Test(own_threads, set_may_exclude_the_caller)
{
    const cpu_set_t all = own_affinity();
    if (CPU_COUNT(&all) < 2) cr_skip_test("needs two processors");
    cpu_set_t first, second;
    CPU_ZERO(&first);
    CPU_ZERO(&second);
    CPU_SET(nth_processor(&all, 0), &first);
    CPU_SET(nth_processor(&all, 1), &second);
    cr_assert_eq(sched_setaffinity(0, sizeof first, &first), 0);
    cpu_set_t expected[4] = {second, second, second, second};
    quern_jobs_def def = {.thread_count = 2};
    cr_assert_eq(quern_processors_add(&def.processors, nth_processor(&all, 1)), QUERN_OK);
    check_confined(def, expected);
    cr_assert_eq(sched_setaffinity(0, sizeof all, &all), 0);
}

/* One thread per processor of the set, plus the caller if it may use another processor. These threads may
 * spin. */
Test(own_threads, default_count_matches_processor_set)
{
    const cpu_set_t all = own_affinity();
    quern_jobs_def def = {0};
    for (uint32_t i = 0; i < (uint32_t)CPU_COUNT(&all); i++) {
        quern_jobs *jobs;
        const uint32_t last = nth_processor(&all, (uint32_t)CPU_COUNT(&all) - 1 - i);
        const uint32_t expected = i + 2 <= (uint32_t)CPU_COUNT(&all) ? i + 2 : i + 1;
        cr_assert_eq(quern_processors_add(&def.processors, last), QUERN_OK);
        cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
        cr_expect_eq(quern_jobs_thread_count(jobs), expected);
        cr_expect_neq(jobs->spin_ns, 0u);
        cr_assert_eq(quern_jobs_resize(jobs, expected + 1), QUERN_OK);
        cr_expect_eq(jobs->spin_ns, 0u);
        cr_assert_eq(quern_jobs_resize(jobs, 0), QUERN_OK);
        cr_expect_eq(quern_jobs_thread_count(jobs), expected);
        quern_jobs_destroy(jobs);
    }
}

Test(own_threads, processors_that_may_not_be_used_are_refused)
{
    const cpu_set_t all = own_affinity();
    roll noted = {0};
    quern_jobs_def def = {.thread_count = 2, .thread_start = note_start, .user_data = &noted};
    cr_assert_eq(quern_processors_add(&def.processors, QUERN_MAX_PROCESSORS - 1), QUERN_OK);
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "processor 1023");
    cr_assert_eq(quern_processors_add(&def.processors, nth_processor(&all, 0)), QUERN_OK);
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "processor 1023");
    cr_assert_eq(atomic_load(&noted.start_counts[1]), 0u);
    const cpu_set_t after = own_affinity();
    check_same(&after, &all);
}

#endif

Test(own_threads, bad_sets_of_processors_are_refused)
{
    quern_jobs_def def = {.thread_count = 2, .host_threads.submit = submit_to_new_thread};
    must_refuse(NULL_ARGUMENT, NULL, quern_processors_add(NULL, 0));
    must_refuse(INVALID_ARGUMENT, NULL, quern_processors_add(&def.processors, QUERN_MAX_PROCESSORS));
    for (uint32_t word = 0; word < QUERN_MAX_PROCESSORS / 64; word++)
        cr_assert_eq(def.processors.words[word], 0u);
    cr_assert_eq(quern_processors_add(&def.processors, 0), QUERN_OK);
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT, "leave out processors");
}
