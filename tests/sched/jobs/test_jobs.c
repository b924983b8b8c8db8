/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "core/base/base_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/jobs/loop.h"
#include "sched/observe/profile_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_ITEM_COUNT = 70000 };

TestSuite(jobs, .timeout = 120);

static void do_nothing(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index) {}

/* ----------------------------------------------------------------------------------------- definitions */

Test(jobs, default_def_uses_every_processor)
{
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(NULL, &jobs), QUERN_OK);
    cr_assert_geq(quern_processor_count(), 1u);
    cr_assert_eq(quern_jobs_thread_count(jobs), default_thread_count());
    quern_jobs_destroy(jobs);
    quern_jobs_destroy(NULL);
}

static void check_refused(const quern_jobs_def *def, quern_result expected)
{
    quern_jobs *const before = (quern_jobs *)(uintptr_t)64;
    quern_jobs *jobs = before;
    assert_refused(NULL, expected, quern_jobs_create(def, &jobs));
    cr_assert_eq(jobs, before);
}

Test(jobs, create_refuses_bad_definitions)
{
    cr_assert_eq(quern_jobs_create(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    check_refused(&(quern_jobs_def){.thread_count = QUERN_MAX_THREADS + 1}, QUERN_ERROR_INVALID_ARGUMENT);
    check_refused(&(quern_jobs_def){.name = ""}, QUERN_ERROR_INVALID_ARGUMENT);
    check_refused(&(quern_jobs_def){.spin_ns = 1, .disable_spinning = true}, QUERN_ERROR_INVALID_ARGUMENT);
    quern_jobs_def def = {.allocator = quern_allocator_default()};
    def.allocator.release = NULL;
    check_refused(&def, QUERN_ERROR_INVALID_ARGUMENT);
}

Test(jobs, a_definition_may_be_all_zero)
{
    const quern_jobs_def zero = {0};
    for (const quern_jobs_def *def = &zero;; def = NULL) {
        quern_jobs *jobs;
        cr_assert_eq(quern_jobs_create(def, &jobs), QUERN_OK);
        cr_assert_eq(quern_jobs_thread_count(jobs), default_thread_count());
        cr_assert_str_eq(jobs->name, "quern");
        cr_assert_eq(jobs->spin_ns, 200000u);
        quern_jobs_destroy(jobs);
        if (def == NULL) break;
    }
}

Test(jobs, create_survives_failing_memory)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_jobs_def def = {.thread_count = 4, .allocator = failing_allocator_interface(allocator)};
    cr_assert_eq(quern_trace_create(NULL, &def.trace), QUERN_OK);
    quern_jobs *jobs = NULL;
    for (uint64_t call = 1; jobs == NULL; call++) {
        if (!runs_out_of_memory(allocator, call, quern_jobs_create(&def, &jobs))) break;
        cr_assert_null(jobs);
        cr_assert_eq(failing_allocator_outstanding_bytes(allocator), 0u);
        cr_assert_eq(def.trace->observer.user_count, 0u);
    }
    cr_assert_gt(failing_allocator_failed_count(allocator), 0u);
    cr_assert_eq(def.trace->observer.user_count, 1u);
    quern_jobs_destroy(jobs);
    quern_trace_destroy(def.trace);
    failing_allocator_close(allocator);
}

Test(jobs, a_thousand_pools)
{
    for (uint32_t i = 0; i < 1000; i++) {
        quern_jobs *jobs = open_pool(1 + i % 7);
        if (i % 3 == 0) cr_assert_eq(quern_jobs_parallel_for(jobs, 10, 1, do_nothing, NULL), QUERN_OK);
        quern_jobs_destroy(jobs);
    }
}

#if defined(__linux__)

static uint32_t count_threads_named(const char *name)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], line[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        if (fgets(line, sizeof line, file) != NULL) line[strcspn(line, "\n")] = '\0';
        fclose(file);
        count += strcmp(line, name) == 0;
    }
    closedir(tasks);
    return count;
}

static void check_thread_name(const char *pool_name, const char *thread_name)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 13, .name = pool_name};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    for (uint32_t turn = 0; turn < 1000 && count_threads_named(thread_name) == 0; turn++)
        sleep_ms(1);
    cr_assert_eq(count_threads_named(thread_name), 1u, "no thread '%s'", thread_name);
    quern_jobs_destroy(jobs);
}

Test(jobs, threads_have_names)
{
    check_thread_name("physics", "physics/12");
    check_thread_name("a-name-that-is-too-long", "a-name-that-/12");
}

#endif

/* -------------------------------------------------------------------------------------- parallel loops */

typedef struct coverage {
    _Atomic uint8_t call_count[MAX_ITEM_COUNT];
    uint32_t written[MAX_ITEM_COUNT]; /* plain: must be visible when the loop has returned */
    uint32_t count;
    uint32_t grain;
    uint32_t thread_count;
    uint32_t round;
} coverage;

static void cover(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    coverage *covered = argument;
    cr_expect(begin < end && end <= covered->count, "%u to %u of %u", begin, end, covered->count);
    cr_expect(covered->grain == 0 || end - begin <= covered->grain);
    cr_expect(worker_index < covered->thread_count);
    for (uint32_t i = begin; i < end; i++) {
        atomic_fetch_add_explicit(&covered->call_count[i], 1, memory_order_relaxed);
        covered->written[i] = i + covered->round;
    }
}

static void check_coverage(quern_jobs *jobs, coverage *covered, uint32_t count, uint32_t grain)
{
    covered->count = count;
    covered->grain = grain;
    covered->thread_count = quern_jobs_thread_count(jobs);
    covered->round++;
    cr_assert_eq(quern_jobs_parallel_for(jobs, count, grain, cover, covered), QUERN_OK);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t call_count = atomic_exchange_explicit(&covered->call_count[i], 0, memory_order_relaxed);
        cr_assert_eq(call_count, 1, "item %u of %u, grain %u: %u calls", i, count, grain, call_count);
        cr_assert_eq(covered->written[i], i + covered->round);
    }
}

Test(jobs, loop_covers_every_item_once)
{
    static const uint32_t counts[] = {1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 1023, MAX_ITEM_COUNT};
    static const uint32_t grains[] = {0, 1, 2, 3, 7, 64, 999, MAX_ITEM_COUNT, UINT32_MAX};
    coverage *covered = calloc(1, sizeof *covered);
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (size_t c = 0; c < QUERN__COUNT_OF(counts); c++)
            for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++)
                check_coverage(jobs, covered, counts[c], grains[g]);
        quern_jobs_destroy(jobs);
    }
    free(covered);
}

Test(jobs, loop_survives_many_repetitions)
{
    coverage *covered = calloc(1, sizeof *covered);
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t i = 0; i < 1000; i++)
            check_coverage(jobs, covered, 1 + i % 70, i % 5);
        quern_jobs_destroy(jobs);
    }
    free(covered);
}

static void sum_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    atomic_fetch_add_explicit((_Atomic uint64_t *)argument, (uint64_t)end - begin, memory_order_relaxed);
}

Test(jobs, loop_takes_the_largest_count)
{
    quern_jobs *jobs = open_pool(3);
    _Atomic uint64_t sum = 0;
    cr_assert_eq(quern_jobs_parallel_for(jobs, UINT32_MAX, 0, sum_items, (void *)&sum), QUERN_OK);
    cr_assert_eq(atomic_load(&sum), (uint64_t)UINT32_MAX);
    cr_assert_eq(quern_jobs_parallel_for(jobs, UINT32_MAX, UINT32_MAX - 1, sum_items, (void *)&sum),
                 QUERN_OK);
    cr_assert_eq(quern_jobs_parallel_for(jobs, UINT32_MAX, 3u << 20, sum_items, (void *)&sum), QUERN_OK);
    cr_assert_eq(atomic_load(&sum), 3 * (uint64_t)UINT32_MAX);
    quern_jobs_destroy(jobs);
}

Test(jobs, loop_refuses_bad_arguments)
{
    quern_jobs *jobs = open_pool(2);
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_parallel_for(NULL, 1, 1, do_nothing, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_parallel_for(jobs, 1, 1, NULL, NULL));
    _Atomic uint64_t sum = 0;
    cr_assert_eq(quern_jobs_parallel_for(jobs, 0, 1, sum_items, (void *)&sum), QUERN_OK);
    cr_assert_eq(atomic_load(&sum), 0u);
    quern_jobs_destroy(jobs);
}

/* Some items are slow, and one is very slow: the others must not wait for it. */
static void sleep_by_number(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    for (uint32_t i = begin; i < end; i++) {
        sleep_ms(i == 0 ? 40 : 1);
        atomic_fetch_add((_Atomic uint32_t *)argument, 1);
    }
}

Test(jobs, caller_sleeps_until_the_last_item_is_done)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        _Atomic uint32_t done_count = 0;
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(quern_jobs_parallel_for(jobs, 20, 1, sleep_by_number, (void *)&done_count),
                         QUERN_OK);
        cr_assert_eq(atomic_load(&done_count), 60u);
        quern_jobs_destroy(jobs);
    }
}

static void note_worker(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    atomic_fetch_or((_Atomic uint32_t *)argument, 1u << worker_index);
    sleep_ms(5);
}

Test(jobs, all_threads_take_part)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        _Atomic uint32_t seen = 0;
        for (uint32_t turn = 0; turn < 100 && atomic_load(&seen) != (1u << thread_counts[t]) - 1; turn++) {
            sleep_ms(2);
            cr_assert_eq(quern_jobs_parallel_for(jobs, 64, 1, note_worker, (void *)&seen), QUERN_OK);
        }
        cr_assert_eq(atomic_load(&seen), (1u << thread_counts[t]) - 1);
        quern_jobs_destroy(jobs);
    }
}

/* --------------------------------------------------------------------------------------------- nesting */

typedef struct nest {
    quern_jobs *jobs;
    uint32_t count; /* item count of the nested loop */
    uint32_t depth; /* number of loops to nest inside this one */
    _Atomic uint64_t *leaf_count;
} nest;

static void run_nest(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const nest *outer = argument;
    cr_expect(worker_index < quern_jobs_thread_count(outer->jobs));
    nest inner = *outer;
    inner.depth--;
    for (uint32_t i = begin; i < end; i++) {
        if (outer->depth == 0)
            atomic_fetch_add_explicit(outer->leaf_count, 1, memory_order_relaxed);
        else
            cr_expect(quern_jobs_parallel_for(outer->jobs, outer->count, i % 3, run_nest, &inner) ==
                      QUERN_OK);
    }
}

static uint64_t count_leaves(quern_jobs *jobs, uint32_t count, uint32_t depth)
{
    _Atomic uint64_t leaf_count = 0;
    nest outermost = {jobs, count, depth, &leaf_count};
    cr_assert_eq(quern_jobs_parallel_for(jobs, count, 1, run_nest, &outermost), QUERN_OK);
    return atomic_load(&leaf_count);
}

Test(jobs, loops_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t i = 0; i < 20; i++)
            cr_assert_eq(count_leaves(jobs, 12, 2), 12u * 12 * 12);
        cr_assert_eq(count_leaves(jobs, 2, 9), 1024u);
        quern_jobs_destroy(jobs);
    }
}

Test(jobs, pool_of_many_threads)
{
    quern_jobs *jobs = open_pool(100);
    cr_assert_eq(count_leaves(jobs, 20, 1), 400u);
    coverage *covered = calloc(1, sizeof *covered);
    for (uint32_t i = 0; i < 50; i++)
        check_coverage(jobs, covered, 300 + i, i % 3);
    free(covered);
    quern_jobs_destroy(jobs);
}

/* In a job of one pool, the thread is an outside thread of another pool. */
static void use_other_pool(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    nest *other = argument;
    nest inner = {other->jobs, 0, 0, other->leaf_count};
    quern_result result = quern_jobs_parallel_for(other->jobs, 10, 1, run_nest, &inner);
    cr_expect(result == QUERN_OK || result == QUERN_ERROR_POOL_BUSY);
    if (result == QUERN_ERROR_POOL_BUSY)
        for (uint32_t i = 0; i < 10; i++)
            run_nest(&inner, i, i + 1, 0);
}

Test(jobs, jobs_of_one_pool_run_loops_on_another)
{
    quern_jobs *outer = open_pool(3);
    quern_jobs *inner = open_pool(2);
    _Atomic uint64_t leaf_count = 0;
    nest other = {inner, 0, 0, &leaf_count};
    cr_assert_eq(quern_jobs_parallel_for(outer, 50, 1, use_other_pool, &other), QUERN_OK);
    cr_assert_eq(atomic_load(&leaf_count), 500u);
    quern_jobs_destroy(inner);
    quern_jobs_destroy(outer);
}

typedef struct round_trip {
    quern_jobs *first;
    quern_jobs *second;
    _Atomic uint32_t call_count;
} round_trip;

static void count_call(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    atomic_fetch_add(&((round_trip *)argument)->call_count, end - begin);
}

static void return_to_first(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    round_trip *trip = argument;
    cr_expect(quern_jobs_parallel_for(trip->first, 5, 1, count_call, trip) == QUERN_OK);
}

static void go_to_second(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    round_trip *trip = argument;
    cr_expect(quern_jobs_parallel_for(trip->second, 1, 1, return_to_first, trip) == QUERN_OK);
}

Test(jobs, a_call_back_into_the_first_pool_is_inside_it)
{
    round_trip trip = {open_pool(3), open_pool(2), 0};
    cr_assert_eq(quern_jobs_parallel_for(trip.first, 1, 1, go_to_second, &trip), QUERN_OK);
    cr_assert_eq(atomic_load(&trip.call_count), 5u);
    quern_jobs_destroy(trip.first);
    quern_jobs_destroy(trip.second);
}

/* ------------------------------------------------------------------------------------ external threads */

typedef struct outsider {
    quern_jobs *jobs;
    _Atomic bool is_inside;
    _Atomic bool may_leave;
    _Atomic uint32_t busy_count;
    _Atomic uint32_t ok_count;
} outsider;

static void stay_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    outsider *shared = argument;
    atomic_store(&shared->is_inside, true);
    while (!atomic_load(&shared->may_leave))
        sleep_ms(1);
}

static void *call_and_stay(void *argument)
{
    outsider *shared = argument;
    cr_expect(quern_jobs_parallel_for(shared->jobs, 1, 1, stay_inside, shared) == QUERN_OK);
    return NULL;
}

static void check_busy(uint32_t thread_count)
{
    outsider shared = {.jobs = open_pool(thread_count)};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, call_and_stay, &shared), 0);
    while (!atomic_load(&shared.is_inside))
        sleep_ms(1);
    must_refuse(POOL_BUSY, NULL, quern_jobs_parallel_for(shared.jobs, 4, 1, do_nothing, NULL));
    captured_reports reports;
    capture_reports(&reports);
    quern_jobs_destroy(shared.jobs);
    cr_assert_eq(reports.log_count, 1u);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    atomic_store(&shared.may_leave, true);
    pthread_join(thread, NULL);
    cr_assert_eq(quern_jobs_parallel_for(shared.jobs, 4, 1, do_nothing, NULL), QUERN_OK);
    quern_jobs_destroy(shared.jobs);
}

Test(jobs, one_external_thread_at_a_time)
{
    check_busy(1);
    check_busy(3);
}

static void *call_often(void *argument)
{
    outsider *shared = argument;
    for (uint32_t i = 0; i < 2000; i++) {
        _Atomic uint64_t sum = 0;
        quern_result result = quern_jobs_parallel_for(shared->jobs, 20, 1, sum_items, (void *)&sum);
        cr_expect(result == QUERN_OK || result == QUERN_ERROR_POOL_BUSY);
        cr_expect(atomic_load(&sum) == (result == QUERN_OK ? 20u : 0u));
        atomic_fetch_add(result == QUERN_OK ? &shared->ok_count : &shared->busy_count, 1);
    }
    return NULL;
}

Test(jobs, external_threads_take_turns)
{
    outsider shared = {.jobs = open_pool(3)};
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &shared), 0);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(atomic_load(&shared.ok_count) + atomic_load(&shared.busy_count), 4000u);
    cr_assert_gt(atomic_load(&shared.ok_count), 0u);
    quern_jobs_destroy(shared.jobs);
}

/* ----------------------------------------------------------------------------------- helping in a wait */

static void count_calls(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    uint32_t *counts = argument;
    for (uint32_t i = begin; i < end; i++)
        counts[i]++;
}

/* Worker 1 owns a share and begins none of its items. The caller steals them all, and must run them itself,
 * because the loop is over once the others have left. */
Test(jobs, helper_runs_all_items_that_it_steals)
{
    quern_jobs *jobs = open_pool(2);
    uint32_t counts[64] = {0};
    quern__range range = {.function = count_calls, .user_data = counts, .count = 64, .grain = 1};
    quern__loop_slot slots[2];
    quern__loop loop;
    quern__loop_init(&loop, NULL, &loop, &range, slots, &jobs->workers[0]);
    atomic_store(&slots[1].is_owned, true);
    cr_assert(quern__loop_help(&loop, &jobs->workers[0]));
    for (uint32_t i = 0; i < 64; i++)
        cr_assert_eq(counts[i], 1u, "item %u", i);
    cr_assert_not(quern__loop_help(&loop, &jobs->workers[0]));
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------------------ rest */

static uint64_t process_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

Test(jobs, idle_pool_uses_no_processor_time)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        _Atomic uint64_t sum = 0;
        for (uint32_t i = 0; i < 100; i++)
            cr_assert_eq(quern_jobs_parallel_for(jobs, 100, 1, sum_items, (void *)&sum), QUERN_OK);
        sleep_ms(50);
        uint64_t before_ns = process_time_ns();
        sleep_ms(300);
        cr_assert_lt(process_time_ns() - before_ns, 30000000u, "%u threads", thread_counts[t]);
        quern_jobs_destroy(jobs);
    }
}

#if defined(__linux__)

static void note_processors(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    cpu_set_t allowed;
    cr_expect(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    ((_Atomic int *)argument)[worker_index] = CPU_COUNT(&allowed);
    sleep_ms(5);
}

Test(jobs, only_processors_on_which_the_thread_may_run_count)
{
    cpu_set_t allowed;
    cr_assert(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    cr_assert_eq(quern_processor_count(), (uint32_t)CPU_COUNT(&allowed));
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&allowed) > 1; i++)
        CPU_CLR(i, &allowed);
    cr_assert(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    cr_assert_eq(quern_processor_count(), 1u);
}

Test(jobs, threads_can_be_pinned)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 5, .pin_threads = true};
    _Atomic int counts[5] = {0};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    for (uint32_t turn = 0; turn < 100 && (counts[1] & counts[2] & counts[3] & counts[4]) == 0; turn++)
        cr_assert_eq(quern_jobs_parallel_for(jobs, 20, 1, note_processors, counts), QUERN_OK);
    cr_assert_eq(counts[0], (int)quern_processor_count(), "the caller is left alone");
    for (uint32_t i = 1; i < 5; i++)
        cr_assert_eq(counts[i], 1, "worker %u may run on %d processors", i, counts[i]);
    quern_jobs_destroy(jobs);
}

#endif

Test(jobs, spinning_can_be_turned_off)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 2, .disable_spinning = true};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    for (uint32_t i = 0; i < 50; i++)
        cr_assert_eq(count_leaves(jobs, 10, 1), 100u);
    quern_jobs_destroy(jobs);
}
