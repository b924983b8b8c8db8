/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/observe/profile_internal.h"

#include "core/platform/platform.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(trace, .timeout = 120);

static quern_trace *open_trace(uint32_t track_count, uint32_t events_per_track)
{
    quern_trace_def def = {0};
    quern_trace *trace = NULL;
    def.track_count = track_count;
    def.events_per_track = events_per_track;
    must(quern_trace_create(&def, &trace));
    return trace;
}

static uint32_t add_name(quern_trace *trace, const char *name)
{
    uint32_t number = UINT32_MAX;
    must(quern_trace_add_name(trace, name, &number));
    return number;
}

static void record_zone(quern_trace *trace, uint32_t track, uint32_t name)
{
    const quern_trace_zone zone = quern_trace_zone_begin(trace, track, name);
    quern_trace_zone_end(&zone);
}

static uint32_t read_track(const quern_trace *trace, uint32_t track, quern__trace_event **events)
{
    *events = malloc(trace->capacity * sizeof **events);
    cr_assert_not_null(*events);
    return quern__trace_read(trace, track, *events);
}

static uint32_t count_events(const quern_trace *trace, uint32_t track)
{
    quern__trace_event *events;
    const uint32_t count = read_track(trace, track, &events);
    free(events);
    return count;
}

Test(trace, names_are_numbered_once)
{
    quern_trace *trace = open_trace(1, 16);
    const uint32_t steer = add_name(trace, "steer");
    const uint32_t cull = add_name(trace, "cull");
    cr_assert_neq(steer, cull);
    cr_assert_eq(add_name(trace, "steer"), steer);
    quern_trace_destroy(trace);
}

Test(trace, records_only_while_it_runs)
{
    quern_trace *trace = open_trace(2, 16);
    const uint32_t name = add_name(trace, "work");
    record_zone(trace, 0, name);
    cr_assert_eq(count_events(trace, 0), 0);
    quern_trace_start(trace);
    cr_assert(quern_trace_is_running(trace));
    record_zone(trace, 0, name);
    const quern_trace_zone open = quern_trace_zone_begin(trace, 0, name);
    quern_trace_stop(trace);
    cr_assert_not(quern_trace_is_running(trace));
    quern_trace_zone_end(&open);
    cr_assert_eq(count_events(trace, 0), 1, "the zone that was open at the stop is left out");
    cr_assert_eq(count_events(trace, 1), 0);
    quern_trace_destroy(trace);
}

Test(trace, restarting_drops_events)
{
    quern_trace *trace = open_trace(1, 16);
    const uint32_t name = add_name(trace, "work");
    quern_trace_start(trace);
    record_zone(trace, 0, name);
    const quern_trace_zone across = quern_trace_zone_begin(trace, 0, name);
    while (quern__clock_ns() == across.begin_ns) {
    }
    quern_trace_start(trace);
    quern_trace_zone_end(&across);
    cr_assert_eq(count_events(trace, 0), 0);
    cr_assert_eq(stats_of_trace(trace).event_count, 0);
    record_zone(trace, 0, name);
    cr_assert_eq(count_events(trace, 0), 1);
    quern_trace_destroy(trace);
}

Test(trace, events_are_read_as_recorded)
{
    quern_trace *trace = open_trace(2, 8);
    const quern__trace_event event = {.begin_ns = UINT64_MAX - 1,
                                      .duration_ns = 123456789012345,
                                      .kind = QUERN__TRACE_SLEEP,
                                      .name = UINT32_MAX,
                                      .ordinal = UINT32_MAX - 2,
                                      .count = 77};
    quern_trace_start(trace);
    quern__trace_record(trace, 1, &event);
    quern__trace_event *events;
    cr_assert_eq(read_track(trace, 1, &events), 1);
    cr_assert_eq(events[0].begin_ns, event.begin_ns);
    cr_assert_eq(events[0].duration_ns, event.duration_ns);
    cr_assert_eq(events[0].kind, event.kind);
    cr_assert_eq(events[0].name, event.name);
    cr_assert_eq(events[0].ordinal, event.ordinal);
    cr_assert_eq(events[0].count, event.count);
    free(events);
    quern_trace_destroy(trace);
}

Test(trace, statistics_are_sums_over_all_tracks)
{
    quern_trace *trace = open_trace(3, 5);
    quern_trace_start(trace);
    for (uint32_t track = 0; track < 2; track++)
        for (uint32_t i = 0; i < 10; i++)
            quern__trace_record(trace, track, &(quern__trace_event){.begin_ns = i, .count = i});
    const quern_trace_stats stats = stats_of_trace(trace);
    cr_assert_eq(stats.event_count, 14);
    cr_assert_eq(stats.dropped_count, 6);
    quern_trace_destroy(trace);
}

Test(trace, a_full_ring_drops_the_oldest_and_counts_them)
{
    quern_trace *trace = open_trace(1, 5); /* made 8, of which 7 are kept */
    quern_trace_start(trace);
    for (uint32_t i = 0; i < 20; i++)
        quern__trace_record(trace, 0, &(quern__trace_event){.begin_ns = i, .count = i});
    quern__trace_event *events;
    cr_assert_eq(read_track(trace, 0, &events), 7);
    for (uint32_t i = 0; i < 7; i++)
        cr_assert_eq(events[i].count, 13 + i);
    free(events);
    const quern_trace_stats stats = stats_of_trace(trace);
    cr_assert_eq(stats.event_count, 7);
    cr_assert_eq(stats.dropped_count, 13);
    quern_trace_start(trace);
    cr_assert_eq(stats_of_trace(trace).dropped_count, 0);
    quern_trace_destroy(trace);
}

Test(trace, nothing_happens_without_a_trace)
{
    quern_trace_start(NULL);
    quern_trace_stop(NULL);
    quern_trace_destroy(NULL);
    quern_trace_zone_end(NULL);
    cr_assert_not(quern_trace_is_running(NULL));
    record_zone(NULL, 0, 0);
}

Test(trace, a_missing_track_is_reported_once_per_start)
{
    captured_reports reports = {0};
    capture_reports(&reports);
    quern_trace *trace = open_trace(2, 16);
    record_zone(trace, 2, 0);
    cr_assert_eq(reports.log_count, 0, "not while the trace does not run");
    quern_trace_start(trace);
    for (uint32_t track = 2; track < 100; track++)
        record_zone(trace, track, 0);
    cr_assert_eq(reports.log_count, 1);
    cr_assert_not_null(strstr(reports.last, "raise track_count"), "%s", reports.last);
    cr_assert_eq(stats_of_trace(trace).event_count, 0);
    quern_trace_start(trace);
    record_zone(trace, 2, 0);
    cr_assert_eq(reports.log_count, 2);
    quern_trace_destroy(trace);
}

/* All builds record the same; builds with checks also report the misuse. */
Test(trace, zones_that_cross_or_end_twice_are_reported_once_per_start)
{
    captured_reports reports = {0};
    capture_reports(&reports);
    const uint32_t expected = quern_has_checks() ? 1 : 0;
    quern_trace *trace = open_trace(1, 16);
    const uint32_t name = add_name(trace, "steer");
    quern_trace_start(trace);
    record_zone(trace, 0, name);
    quern_trace_zone outer = quern_trace_zone_begin(trace, 0, name);
    record_zone(trace, 0, name);
    const quern_trace_zone inner = quern_trace_zone_begin(trace, 0, name);
    cr_assert_eq(reports.log_count, 0);
    quern_trace_zone_end(&outer);
    cr_assert_eq(reports.log_count, expected);
    quern_trace_zone_end(&inner);
    cr_assert_eq(reports.log_count, expected);
    cr_assert_eq(count_events(trace, 0), 4);
    quern_trace_start(trace);
    outer = quern_trace_zone_begin(trace, 0, name);
    quern_trace_zone_end(&outer);
    cr_assert_eq(reports.log_count, expected, "it was all right");
    quern_trace_zone_end(&outer);
    cr_assert_eq(reports.log_count, 2 * expected);
    if (expected != 0) cr_assert_not_null(strstr(reports.last, "'steer'"), "%s", reports.last);
    cr_assert_eq(count_events(trace, 0), 2);
    quern_trace_destroy(trace);
}

/* A trace may be stopped or restarted while zones are open. */
Test(trace, zones_may_be_open_across_a_stop_or_start)
{
    captured_reports reports = {0};
    capture_reports(&reports);
    quern_trace *trace = open_trace(1, 16);
    quern_trace_start(trace);
    const quern_trace_zone outer = quern_trace_zone_begin(trace, 0, 0);
    const quern_trace_zone inner = quern_trace_zone_begin(trace, 0, 0);
    quern_trace_stop(trace);
    quern_trace_zone_end(&inner);
    while (quern__clock_ns() == inner.begin_ns) {
    }
    quern_trace_start(trace);
    record_zone(trace, 0, 0);
    quern_trace_zone_end(&outer);
    record_zone(trace, 0, 0);
    cr_assert_eq(reports.log_count, 0, "%s", reports.last);
    cr_assert_eq(count_events(trace, 0), 2);
    quern_trace_destroy(trace);
}

/* -------------------------------------------------------------------------------------------- refusals */

Test(trace, wrong_definitions_are_rejected)
{
    quern_trace *trace = NULL;
    quern_trace_def def = {0};
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_create(&def, NULL));
    def.track_count = QUERN_MAX_TRACKS + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_create(&def, &trace));
    def = (quern_trace_def){0};
    def.events_per_track = 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_create(&def, &trace));
    def.events_per_track = QUERN_MAX_TRACK_EVENTS + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_create(&def, &trace));
    def = (quern_trace_def){.allocator = quern_allocator_default()};
    def.allocator.release = NULL;
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_create(&def, &trace));
    cr_assert_null(trace);
}

Test(trace, wrong_names_are_rejected)
{
    quern_trace *trace = open_trace(1, 16);
    uint32_t number = 5;
    char name[QUERN_MAX_NAME_BYTES + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_add_name(NULL, "n", &number));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_add_name(trace, NULL, &number));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_add_name(trace, "n", NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_add_name(trace, "", &number));
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_add_name(trace, name, &number));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_set_track_name(NULL, 0, "n"));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_set_track_name(trace, 0, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_set_track_name(trace, 1, "n"));
    must_refuse(INVALID_ARGUMENT, NULL, quern_trace_set_track_name(trace, 0, ""));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_save(NULL, "path"));
    must_refuse(NULL_ARGUMENT, NULL, quern_trace_save(trace, NULL));
    cr_assert_eq(number, 5);
    name[QUERN_MAX_NAME_BYTES] = '\0';
    must(quern_trace_add_name(trace, name, &number));
    quern_trace_destroy(trace);
}

/* Each allocation of a trace fails in turn; nothing leaks, and the next attempt succeeds. */
Test(trace, failed_allocations_leak_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_trace_def def = {
        .allocator = failing_allocator_interface(allocator), .track_count = 3, .events_per_track = 4};
    quern_trace *trace = NULL;
    uint64_t failures = 0;
    quern_result result;
    do {
        failing_allocator_fail_at(allocator, ++failures);
        result = quern_trace_create(&def, &trace);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        if (result != QUERN_OK) cr_assert_eq(failing_allocator_outstanding_bytes(allocator), 0);
    } while (result != QUERN_OK);
    cr_assert_eq(failures, 6, "the trace, its tracks, three rings, and none");
    uint32_t number = 9;
    failing_allocator_fail_at(allocator, 1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_trace_add_name(trace, "n", &number));
    cr_assert_eq(number, 9);
    for (uint64_t call = 1; call <= 2; call++) {
        failing_allocator_fail_at(allocator, call);
        must_refuse(OUT_OF_MEMORY, NULL, quern_trace_save(trace, "nowhere/to/be/seen"));
    }
    failing_allocator_heal(allocator);
    cr_assert_eq(add_name(trace, "n"), 0);
    quern_trace_destroy(trace);
    failing_allocator_close(allocator);
}

/* --------------------------------------------------------------------------------------------- threads */

enum { WRITERS = 3, READ_ROUNDS = 1000, RING = 64 };

typedef struct track_writer {
    quern_trace *trace;
    uint32_t track;
    const char *path;
    _Atomic bool *is_done;
    quern__thread thread;
} track_writer;

/* All fields of an event are derived from its number, so that a reader can recognize a mixed one. */
static quern__trace_event numbered_event(uint64_t number)
{
    return (quern__trace_event){.begin_ns = number,
                                .duration_ns = number * 3,
                                .kind = (quern__trace_kind)(number % QUERN__TRACE_KIND_COUNT),
                                .name = (uint32_t)number * 5,
                                .ordinal = (uint32_t)number * 7,
                                .count = (uint32_t)number * 11};
}

static void *write_events(void *argument)
{
    const track_writer *writer = argument;
    for (uint64_t number = 0; !atomic_load_explicit(writer->is_done, memory_order_relaxed); number++) {
        const quern__trace_event event = numbered_event(number);
        quern__trace_record(writer->trace, writer->track, &event);
    }
    return NULL;
}

static void expect_whole(const quern__trace_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const quern__trace_event wanted = numbered_event(events[i].begin_ns);
        cr_assert(events[i].duration_ns == wanted.duration_ns && events[i].kind == wanted.kind &&
                      events[i].name == wanted.name && events[i].ordinal == wanted.ordinal &&
                      events[i].count == wanted.count,
                  "event %u of %u is mixed", i, count);
        cr_assert(i == 0 || events[i].begin_ns == events[i - 1].begin_ns + 1, "out of order");
    }
}

/* Number of events recorded so far. */
static uint64_t recorded_count(const quern_trace *trace)
{
    const quern_trace_stats stats = stats_of_trace(trace);
    return stats.event_count + stats.dropped_count;
}

/* Rounds without new events do not count, so that the race occurs on any machine. */
static void read_while_written(const quern_trace *trace)
{
    quern__trace_event events[RING];
    uint64_t seen = 0;
    for (uint32_t round = 0; round < READ_ROUNDS;) {
        for (uint32_t i = 0; i < WRITERS; i++)
            expect_whole(events, quern__trace_read(trace, i, events));
        const uint64_t now = recorded_count(trace);
        if (now > seen)
            round++;
        else
            sched_yield();
        seen = now;
    }
}

Test(trace, a_reader_sees_complete_events_while_rings_are_written)
{
    quern_trace *trace = open_trace(WRITERS, RING);
    track_writer writers[WRITERS];
    _Atomic bool is_done = false;
    quern_trace_start(trace);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (track_writer){.trace = trace, .track = i, .is_done = &is_done};
        cr_assert(quern__thread_start(&writers[i].thread, 0, write_events, &writers[i]));
    }
    read_while_written(trace);
    atomic_store_explicit(&is_done, true, memory_order_relaxed);
    for (uint32_t i = 0; i < WRITERS; i++)
        quern__thread_join(&writers[i].thread);
    quern__trace_event events[RING];
    for (uint32_t i = 0; i < WRITERS; i++)
        expect_whole(events, quern__trace_read(trace, i, events));
    quern_trace_destroy(trace);
}

static void *write_to_pipe(void *argument)
{
    const track_writer *writer = argument;
    must(quern_trace_save(writer->trace, writer->path));
    atomic_store_explicit(writer->is_done, true, memory_order_release);
    return NULL;
}

/* A full pipe stops the writer in the middle of the file, as a slow disk would. */
Test(trace, names_can_be_added_while_the_file_is_written)
{
    enum { ZONES = 4000 }; /* the file is many times larger than a pipe's buffer */
    quern_trace *trace = open_trace(1, 2 * ZONES);
    char folder[] = P_tmpdir "/quern_trace_XXXXXX", path[sizeof folder + 8];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_geq(reader, 0);
    quern_trace_start(trace);
    for (uint32_t i = 0; i < ZONES; i++)
        record_zone(trace, 0, add_name(trace, "zone"));
    _Atomic bool is_done = false;
    track_writer writer = {.trace = trace, .path = path, .is_done = &is_done};
    cr_assert(quern__thread_start(&writer.thread, 0, write_to_pipe, &writer));
    char text[4096];
    while (read(reader, text, sizeof text) <= 0) /* until the writer has begun the file */
        sched_yield();
    (void)add_name(trace, "another");
    must(quern_trace_set_track_name(trace, 0, "main"));
    cr_assert_not(atomic_load_explicit(&is_done, memory_order_acquire), "the file fits into a pipe");
    while (!atomic_load_explicit(&is_done, memory_order_acquire))
        if (read(reader, text, sizeof text) <= 0) sched_yield();
    quern__thread_join(&writer.thread);
    close(reader);
    unlink(path);
    rmdir(folder);
    quern_trace_destroy(trace);
}

static void *add_same_names(void *argument)
{
    track_writer *writer = argument;
    for (uint32_t i = 0; i < 100; i++) {
        char name[QUERN_MAX_NAME_BYTES];
        snprintf(name, sizeof name, "zone %u", i);
        const uint32_t number = add_name(writer->trace, name);
        record_zone(writer->trace, writer->track, number);
        if (i % 10 == 0) quern_trace_start(writer->trace);
    }
    return NULL;
}

Test(trace, any_thread_may_add_names_and_start)
{
    quern_trace *trace = open_trace(WRITERS, RING);
    track_writer writers[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (track_writer){.trace = trace, .track = i};
        cr_assert(quern__thread_start(&writers[i].thread, 0, add_same_names, &writers[i]));
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        quern__thread_join(&writers[i].thread);
    cr_assert_eq(trace->names.count, 100);
    quern_trace_destroy(trace);
}

/* ------------------------------------------------------------------------------------ events of a pool */

static uint32_t count_steals(const quern_trace *trace)
{
    uint32_t steal_count = 0;
    for (uint32_t track = 0; track < 2; track++) {
        quern__trace_event *events;
        const uint32_t count = read_track(trace, track, &events);
        for (uint32_t i = 0; i < count; i++)
            steal_count += events[i].kind == QUERN__TRACE_STEAL;
        free(events);
    }
    return steal_count;
}

static void take(void *payload, uint32_t worker_index)
{
    atomic_bool *is_taken = *(atomic_bool **)payload;
    atomic_store(is_taken, true);
}

/* Submits a job and waits, without running jobs, until the other worker has taken it. */
static void offer(void *user_data, uint32_t worker_index)
{
    atomic_bool is_taken = false, *address = &is_taken;
    const quern_job_def def = {.function = take, .payload = &address, .payload_bytes = sizeof address};
    must(quern_jobs_submit(user_data, &def));
    while (!atomic_load(&is_taken))
        sched_yield();
}

Test(trace, searches_that_find_a_job_are_steals_and_others_are_not)
{
    quern_trace *trace = open_trace(2, 1024);
    quern_jobs *jobs;
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 2, .trace = trace}, &jobs));
    quern_trace_start(trace);
    for (uint32_t i = 0; i < 5; i++) {
        quern_jobs_wake(jobs);
        quern__thread_sleep(3000000);
    }
    cr_assert_eq(count_steals(trace), 0u);
    must(quern_jobs_run(jobs, offer, jobs));
    cr_assert_eq(count_steals(trace), 1u);
    quern_trace_stop(trace);
    quern_jobs_destroy(jobs);
    quern_trace_destroy(trace);
}
