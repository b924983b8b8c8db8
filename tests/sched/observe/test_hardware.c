/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/observe/profile_internal.h"

#include "core/platform/platform.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <unistd.h>
#endif

enum {
    CROWD = 3000,
    FRAMES = 10,
    MOST_FRAMES = 4000,
    WORK_NS = 20000,
    BURNT_NS = 30000000,
    HALF_BURNT_NS = BURNT_NS / 2
};

TestSuite(hardware, .timeout = 120);

/* -------------------------------------------------------------------------------------------- readings */

Test(hardware, counts_between_readings_are_scaled_to_the_whole_time)
{
    quern_hardware_reading from = {.counts[QUERN_HARDWARE_L1_MISSES] = 1000,
                                   .enabled_ns[QUERN_HARDWARE_L1_MISSES] = 50,
                                   .running_ns[QUERN_HARDWARE_L1_MISSES] = 20};
    quern_hardware_reading to = from;
    cr_expect(isnan(quern_hardware_difference(&from, &to, QUERN_HARDWARE_L1_MISSES)), "no turn");
    to.counts[QUERN_HARDWARE_L1_MISSES] += 100;
    to.enabled_ns[QUERN_HARDWARE_L1_MISSES] += 40;
    cr_expect(isnan(quern_hardware_difference(&from, &to, QUERN_HARDWARE_L1_MISSES)), "no turn yet");
    to.running_ns[QUERN_HARDWARE_L1_MISSES] += 10;
    cr_expect_eq(quern_hardware_difference(&from, &to, QUERN_HARDWARE_L1_MISSES), 400);
}

Test(hardware, events_have_names)
{
    cr_assert_str_eq(quern_hardware_event_string(QUERN_HARDWARE_L1_MISSES), "L1 misses");
    cr_assert_str_eq(quern_hardware_event_string(QUERN_HARDWARE_EVENT_COUNT), "unknown event");
}

static volatile uint64_t sink;

/* On this machine: either the counts are plausible, or the call reports why there are none. */
Test(hardware, the_system_counts_or_reports_why_not)
{
    const quern_hardware_source source = quern_hardware_source_default();
    void *counters;
    const quern_result result = source.open(source.user_data, QUERN_HARDWARE_THREAD, &counters);
    if (result != QUERN_OK) {
        cr_assert_eq(result, QUERN_ERROR_UNAVAILABLE);
        cr_assert_not_null(strstr(quern_error_message(), "hardware counters are not available: "));
        cr_skip_test("%s", quern_error_message());
    }
    quern_hardware_reading from, to;
    cr_assert(source.read(counters, &from));
    for (uint64_t i = 0; i < 1000000; i++)
        sink += i;
    cr_assert(source.read(counters, &to));
    const double count = quern_hardware_difference(&from, &to, QUERN_HARDWARE_INSTRUCTIONS);
    cr_expect(isnan(count) || count >= 1000000, "%g instructions", count);
    source.close(counters);
}

#if defined(__linux__)

/* Events that systems without hardware counters can count: the processor time in nanoseconds. Other events
 * are missing. */
static const quern__hardware_code software_codes[QUERN_HARDWARE_EVENT_COUNT] = {
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {PERF_TYPE_SOFTWARE, UINT32_MAX},
    {PERF_TYPE_SOFTWARE, UINT32_MAX},
    {PERF_TYPE_SOFTWARE, UINT32_MAX},
    {PERF_TYPE_SOFTWARE, UINT32_MAX},
    {PERF_TYPE_SOFTWARE, UINT32_MAX},
};

static uint64_t thread_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *burn(void *argument)
{
    const uint64_t start_ns = thread_time_ns();
    while (thread_time_ns() - start_ns < BURNT_NS) {
    }
    return argument;
}

static void burn_elsewhere(void)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, burn, NULL), 0);
    pthread_join(thread, NULL);
}

static double count_time(const quern_hardware_source *source, quern_hardware_scope scope,
                         void (*work)(void))
{
    void *counters;
    quern_hardware_reading from, to;
    must(quern__hardware_open(software_codes, scope, &counters));
    cr_assert(source->read(counters, &from));
    work();
    cr_assert(source->read(counters, &to));
    cr_expect(isnan(quern_hardware_difference(&from, &to, QUERN_HARDWARE_INSTRUCTIONS)), "is not there");
    cr_expect_eq(to.enabled_ns[QUERN_HARDWARE_INSTRUCTIONS], 0);
    source->close(counters);
    return quern_hardware_difference(&from, &to, QUERN_HARDWARE_CYCLES);
}

static void burn_here(void)
{
    burn(NULL);
}

Test(hardware, a_thread_counts_its_own_and_a_process_those_of_later_threads)
{
    const quern_hardware_source source = quern_hardware_source_default();
    void *counters;
    if (quern__hardware_open(software_codes, QUERN_HARDWARE_THREAD, &counters) != QUERN_OK) {
        cr_assert_not_null(strstr(quern_error_message(), "not available"), "%s", quern_error_message());
        cr_skip_test("%s", quern_error_message());
    }
    source.close(counters);
    cr_assert_geq(count_time(&source, QUERN_HARDWARE_THREAD, burn_here), HALF_BURNT_NS);
    /* the sanitizer of threads may need long to create one, which counts as work of this thread */
    double own_ns = INFINITY;
    for (uint32_t i = 0; i < 5 && own_ns >= HALF_BURNT_NS; i++)
        own_ns = count_time(&source, QUERN_HARDWARE_THREAD, burn_elsewhere);
    cr_assert_lt(own_ns, HALF_BURNT_NS);
    cr_assert_geq(count_time(&source, QUERN_HARDWARE_PROCESS, burn_elsewhere), HALF_BURNT_NS);
}

/* The lowest free number of a file is 0 in a program that has closed its standard input. */
Test(hardware, a_counter_may_have_the_number_0)
{
    const int first = quern__hardware_counter_open(&software_codes[0], QUERN_HARDWARE_THREAD);
    if (first < 0) cr_skip_test("%s", strerror(-first));
    quern__hardware_counter_close(first);
    const int input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    const int counter = quern__hardware_counter_open(&software_codes[0], QUERN_HARDWARE_THREAD);
    quern_hardware_reading reading;
    cr_expect_eq(counter, 0, "%d", counter);
    cr_expect(quern__hardware_counter_read(counter, &reading, 0));
    quern__hardware_counter_close(counter);
    if (input >= 0) dup2(input, STDIN_FILENO);
}

Test(hardware, a_counter_that_gives_less_than_a_reading_fails)
{
    const uint64_t values[] = {10, 30, 20};
    quern_hardware_reading reading = {.counts[1] = 0};
    int files[2];
    cr_assert_eq(pipe(files), 0);
    cr_assert_eq(write(files[1], values, sizeof values), (ssize_t)sizeof values);
    cr_expect(quern__hardware_counter_read(files[0], &reading, 1));
    cr_expect_eq(reading.counts[1], 10);
    cr_expect_eq(reading.enabled_ns[1], 30);
    cr_expect_eq(reading.running_ns[1], 20);
    cr_assert_eq(write(files[1], values, sizeof values[0]), (ssize_t)sizeof values[0]);
    cr_expect_not(quern__hardware_counter_read(files[0], &reading, 1));
    cr_expect_eq(reading.counts[1], 10);
    close(files[0]);
    close(files[1]);
}

#endif

/* -------------------------------------------------------------------------------------------- a source */

/* A simulated processor whose counts are set by the systems. Reading costs some cycles, as on real
 * processors. */
enum { READ_CYCLES = 70 };

static _Thread_local uint64_t made[QUERN_HARDWARE_EVENT_COUNT];
static _Thread_local uint64_t made_ns;

static struct {
    _Atomic uint32_t opened_count, closed_count;
    uint32_t allowed_count; /* number of successful opens; 0: all */
    bool is_unreadable;
} processor;

static quern_result open_made(void *user_data, quern_hardware_scope scope, void **out_counters)
{
    cr_expect_eq(user_data, &processor);
    cr_expect_eq(scope, QUERN_HARDWARE_THREAD);
    const uint32_t before = atomic_load(&processor.opened_count);
    if (processor.allowed_count != 0 && before >= processor.allowed_count) return QUERN_ERROR_UNAVAILABLE;
    atomic_fetch_add(&processor.opened_count, 1);
    *out_counters = made;
    return QUERN_OK;
}

static bool read_made(void *counters, quern_hardware_reading *out_reading)
{
    cr_expect_eq(counters, made, "counters of another thread");
    *out_reading = (quern_hardware_reading){0};
    made[QUERN_HARDWARE_CYCLES] += READ_CYCLES;
    made_ns++;
    for (int i = 0; i < QUERN_HARDWARE_L1_MISSES; i++) {
        out_reading->counts[i] = made[i];
        out_reading->enabled_ns[i] = out_reading->running_ns[i] = made_ns;
    }
    return !processor.is_unreadable;
}

static void close_made(void *counters)
{
    atomic_fetch_add(&processor.closed_count, 1);
}

static const quern_hardware_source source = {open_made, read_made, close_made, &processor};

/* --------------------------------------------------------------------------------------------- frames */

static quern_component number;

static void spend(uint32_t rows, uint64_t cycles, uint64_t instructions)
{
    const uint64_t start_ns = quern__clock_ns();
    made[QUERN_HARDWARE_CYCLES] += rows * cycles;
    made[QUERN_HARDWARE_INSTRUCTIONS] += rows * instructions;
    while (quern__clock_ns() - start_ns < WORK_NS) {
    }
}

static void run_slow(quern_context *context, const quern_view *view)
{
    spend(view->count, 40, 10);
}

static void run_quick(quern_context *context, const quern_view *view)
{
    spend(view->count, 10, 30);
}

static void spend_once(quern_context *context, const quern_view *view)
{
    spend(1, 1000, 2000);
}

typedef struct scene {
    quern_schedule *schedule;
    quern_system slow, quick, once;
} scene;

static quern_system add(quern_schedule *schedule, const char *name, quern_view_callback *run, bool has_term)
{
    const quern_term term = quern_term_write(number);
    quern_system_def def = system_def(name, run);
    if (has_term) def.terms[0] = term;
    return setup_system(schedule, &def);
}

static scene open_scene(void)
{
    scene opened = {.schedule = setup_schedule(world)};
    opened.slow = add(opened.schedule, "slow", run_slow, true);
    opened.quick = add(opened.schedule, "quick", run_quick, true);
    opened.once = add(opened.schedule, "once", spend_once, false);
    must(quern_schedule_set_profiling(opened.schedule, true));
    return opened;
}

static void open_crowd(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    const quern_component wide = setup_component(world, "wide", 256, 64);
    const quern_component both[] = {number, wide};
    for (uint32_t i = 0; i < CROWD; i++)
        setup_entity_with(world, both, 2);
}

TestSuite(counting, .init = open_crowd, .fini = close_world, .timeout = 120);

static void run_frames(const scene *opened, quern_jobs *jobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        must_run(opened->schedule, jobs);
}

/* The sampling interval depends on the cost of a clock read on this machine, so it may take some frames. */
static void run_until_counted(const scene *opened, quern_jobs *jobs, quern_system system)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT] = {NAN};
    for (int i = 0; i < MOST_FRAMES && !(counts[QUERN_HARDWARE_CYCLES] > 0); i++) {
        must_run(opened->schedule, jobs);
        must(quern_schedule_get_system_counts(opened->schedule, system, counts));
    }
    cr_assert(counts[QUERN_HARDWARE_CYCLES] > 0);
}

static void run_until_all_are_counted(const scene *opened, quern_jobs *jobs)
{
    run_until_counted(opened, jobs, opened->slow);
    run_until_counted(opened, jobs, opened->quick);
    run_until_counted(opened, jobs, opened->once);
}

static double ratio_of(const scene *opened, quern_system system)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    must(quern_schedule_get_system_counts(opened->schedule, system, counts));
    cr_expect(counts[QUERN_HARDWARE_CYCLES] > 0);
    cr_expect(isnan(counts[QUERN_HARDWARE_L1_MISSES]), "the processor does not count them");
    return counts[QUERN_HARDWARE_INSTRUCTIONS] / counts[QUERN_HARDWARE_CYCLES];
}

static void check_counts(uint32_t thread_count)
{
    scene opened = open_scene();
    quern_jobs *jobs = setup_jobs(thread_count);
    atomic_store(&processor.opened_count, 0);
    atomic_store(&processor.closed_count, 0);
    must(quern_schedule_set_counting(opened.schedule, &source));
    run_until_all_are_counted(&opened, jobs);
    cr_assert_float_eq(ratio_of(&opened, opened.slow), 0.25, 1e-9);
    cr_assert_float_eq(ratio_of(&opened, opened.quick), 3, 1e-9);
    cr_assert_float_eq(ratio_of(&opened, opened.once), 2, 1e-9);
    cr_assert_leq(atomic_load(&processor.opened_count), thread_count + 1, "once by thread, and to try");
    quern_schedule_destroy(opened.schedule);
    cr_expect_eq(atomic_load(&processor.opened_count), atomic_load(&processor.closed_count));
    quern_jobs_destroy(jobs);
}

Test(counting, each_system_gets_its_counts_at_any_thread_count)
{
    check_counts(1);
    check_counts(3);
}

/* The second pool has other threads with the same worker indices. */
Test(counting, other_threads_open_counters_of_their_own)
{
    scene opened = open_scene();
    must(quern_schedule_set_counting(opened.schedule, &source));
    for (int i = 0; i < 3; i++) {
        quern_jobs *jobs = setup_jobs(2);
        run_frames(&opened, jobs, FRAMES);
        quern_jobs_destroy(jobs);
    }
    run_until_counted(&opened, NULL, opened.quick);
    cr_assert_float_eq(ratio_of(&opened, opened.quick), 3, 1e-9);
    quern_schedule_destroy(opened.schedule);
    cr_expect_eq(atomic_load(&processor.opened_count), atomic_load(&processor.closed_count));
}

Test(counting, a_thread_without_counters_counts_nothing)
{
    scene opened = open_scene();
    processor.allowed_count = 2; /* the trial open, and one worker */
    must(quern_schedule_set_counting(opened.schedule, &source));
    quern_jobs *jobs = setup_jobs(3);
    run_frames(&opened, jobs, FRAMES);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(opened.schedule, opened.slow, &stats));
    cr_assert_gt(stats.time_ns, 0);
    quern_schedule_destroy(opened.schedule);
    quern_jobs_destroy(jobs);
    cr_expect_eq(atomic_load(&processor.opened_count), atomic_load(&processor.closed_count));
}

Test(counting, systems_added_later_are_counted)
{
    scene opened = open_scene();
    must(quern_schedule_set_counting(opened.schedule, &source));
    run_until_counted(&opened, NULL, opened.slow);
    const quern_system late = add(opened.schedule, "late", spend_once, false);
    double before[QUERN_HARDWARE_EVENT_COUNT], after[QUERN_HARDWARE_EVENT_COUNT];
    must(quern_schedule_get_system_counts(opened.schedule, late, before));
    cr_expect(isnan(before[QUERN_HARDWARE_CYCLES]));
    run_frames(&opened, NULL, 1);
    must(quern_schedule_get_system_counts(opened.schedule, opened.slow, after));
    cr_expect(after[QUERN_HARDWARE_CYCLES] > 0);
    run_until_counted(&opened, NULL, late);
    cr_assert_float_eq(ratio_of(&opened, late), 2, 1e-9);
    quern_schedule_destroy(opened.schedule);
}

Test(counting, without_profiling_or_a_source_nothing_is_counted)
{
    scene opened = open_scene();
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    run_frames(&opened, NULL, FRAMES);
    must(quern_schedule_get_system_counts(opened.schedule, opened.slow, counts));
    cr_expect(isnan(counts[QUERN_HARDWARE_CYCLES]), "no source");
    must(quern_schedule_set_counting(opened.schedule, &source));
    must(quern_schedule_set_profiling(opened.schedule, false));
    run_frames(&opened, NULL, FRAMES);
    must(quern_schedule_get_system_counts(opened.schedule, opened.slow, counts));
    cr_expect(isnan(counts[QUERN_HARDWARE_CYCLES]), "no profile");
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_until_counted(&opened, NULL, opened.slow);
    cr_assert_float_eq(ratio_of(&opened, opened.slow), 0.25, 1e-9);
    must(quern_schedule_set_counting(opened.schedule, NULL));
    must(quern_schedule_get_system_counts(opened.schedule, opened.slow, counts));
    cr_expect(isnan(counts[QUERN_HARDWARE_CYCLES]), "no longer");
    quern_schedule_destroy(opened.schedule);
    cr_expect_eq(atomic_load(&processor.opened_count), atomic_load(&processor.closed_count));
}

Test(counting, the_table_has_events_per_entity_and_per_frame)
{
    scene opened = open_scene();
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    cr_assert_not_null(file);
    must(quern_schedule_set_counting(opened.schedule, &source));
    run_until_all_are_counted(&opened, NULL);
    must(quern_schedule_write_profile(opened.schedule, quern_sink_file(file)));
    fclose(file);
    const char *table = strstr(text, "\nsystem, events");
    cr_assert_not_null(table, "%s", text);
    const char *quick = strstr(table, "\nquick "), *once = strstr(table, "\nonce ");
    double ratio;
    char by[8];
    cr_assert(quick != NULL && once != NULL, "%s", text);
    cr_assert_eq(sscanf(quick, "\nquick %7s %lf", by, &ratio), 2);
    cr_assert_str_eq(by, "entity");
    cr_expect_eq(ratio, 3);
    cr_assert_eq(sscanf(once, "\nonce %7s %lf", by, &ratio), 2);
    cr_assert_str_eq(by, "frame");
    cr_expect_eq(ratio, 2);
    cr_assert_not_null(strstr(quick, " -\n"), "misses are not counted");
    free(text);
    quern_schedule_destroy(opened.schedule);
}

/* Limits the world's memory so that the allocation of the counts fails in the first frame. */
Test(counting, a_frame_without_memory_for_counts_does_not_run)
{
    failing_allocator *failing = failing_allocator_create();
    quern_world *scarce = make_world(.allocator = failing_allocator_interface(failing));
    quern_schedule *schedule = setup_schedule(scarce);
    const quern_system_def once = system_def("once", spend_once);
    const quern_system system = setup_system(schedule, &once);
    must(quern_schedule_set_profiling(schedule, true));
    must_run(schedule, NULL);
    must(quern_schedule_set_counting(schedule, &source));
    failing_allocator_fail_at(failing, 1);
    const uint64_t frame_index = schedule->frame_index;
    must_refuse(OUT_OF_MEMORY, scarce, quern_schedule_run(schedule, NULL, 0.1));
    cr_expect_eq(schedule->frame_index, frame_index);
    const scene opened = {.schedule = schedule};
    run_until_counted(&opened, NULL, system);
    quern_schedule_destroy(schedule);
    quern_world_destroy(scarce);
    failing_allocator_destroy(failing);
}

Test(counting, misuse_is_rejected)
{
    scene opened = open_scene();
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    quern_hardware_source partial = source;
    partial.read = NULL;
    must_refuse(NULL_ARGUMENT, world, quern_schedule_set_counting(NULL, &source));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_counting(opened.schedule, &partial));
    processor.is_unreadable = true;
    must_refuse(UNAVAILABLE, world, quern_schedule_set_counting(opened.schedule, &source));
    processor.is_unreadable = false;
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_system_counts(NULL, opened.slow, counts));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_system_counts(opened.schedule, opened.slow, NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_get_system_counts(opened.schedule, (quern_system){.bits = 99}, counts));
    quern_schedule_destroy(opened.schedule);
    cr_expect_eq(atomic_load(&processor.opened_count), atomic_load(&processor.closed_count));
}
