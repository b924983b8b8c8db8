/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/platform/platform.h"
#include "sched/frame/schedule_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/observe/profile_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tests what frames report: traces and profiles. */

enum { CROWD = 6000, FRAMES = 6, TRACK_EVENTS = 1 << 14, WORK_NS = 3000, LONG_WORK_NS = 150000 };

static uint64_t work_ns; /* minimum duration of the work per view */

static quern_component number, wide;

static void open_crowd(void)
{
    work_ns = WORK_NS;
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    wide = setup_component(world, "wide", 256, 64);
    const quern_component both[] = {number, wide};
    for (uint32_t i = 0; i < CROWD; i++)
        setup_entity_with(world, both, 2);
}

TestSuite(watched, .init = open_crowd, .fini = close_world, .timeout = 120);

static void work(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    const uint64_t start_ns = quern__clock_ns();
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
    while (quern__clock_ns() - start_ns < work_ns) {
    }
}

/* Works three times as long. */
static void work_long(quern_context *context, const quern_view *view)
{
    for (int i = 0; i < 3; i++)
        work(context, view);
}

static void spawn(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < 50; i++) {
        quern_entity entity = record_entity(quern_context_commands(context));
        must(quern_commands_add(quern_context_commands(context), entity, number, NULL));
        must(quern_commands_destroy(quern_context_commands(context), entity));
    }
}

typedef struct scene {
    quern_trace *trace;
    quern_jobs *jobs;
    quern_schedule *schedule;
    quern_system quick, slow, spawn;
} scene;

static quern_trace *open_trace(uint32_t track_count)
{
    quern_trace_def def = {0};
    quern_trace *trace;
    def.track_count = track_count;
    def.events_per_track = TRACK_EVENTS;
    must(quern_trace_create(&def, &trace));
    return trace;
}

static quern_jobs *open_jobs(uint32_t thread_count, quern_trace *trace)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count, .trace = trace};
    must(quern_jobs_create(&def, &jobs));
    return jobs;
}

static quern_schedule *open_schedule(quern_trace *trace)
{
    quern_schedule_def def = {0};
    quern_schedule *schedule;
    def.trace = trace;
    must(quern_schedule_create(world, &def, &schedule));
    return schedule;
}

static quern_system add_worker(quern_schedule *schedule, const char *name, quern_view_callback *run)
{
    return make_system(schedule, name, run, .terms = {quern_term_write(number)});
}

static scene open_scene(uint32_t thread_count)
{
    scene opened = {.trace = open_trace(thread_count)};
    opened.jobs = open_jobs(thread_count, opened.trace);
    opened.schedule = open_schedule(opened.trace);
    opened.quick = add_worker(opened.schedule, "quick", work);
    opened.slow = add_worker(opened.schedule, "slow", work_long);
    const quern_system_def spawn_def = system_def("spawn", spawn);
    opened.spawn = setup_system(opened.schedule, &spawn_def);
    return opened;
}

static void close_scene(const scene *opened)
{
    quern_schedule_destroy(opened->schedule);
    quern_jobs_destroy(opened->jobs);
    quern_trace_destroy(opened->trace);
}

static void run_frames(const scene *opened, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        must_run(opened->schedule, opened->jobs);
}

/* -------------------------------------------------------------------------------------------- traces */

typedef struct track_events {
    quern__trace_event *items;
    uint32_t count;
} track_events;

static track_events read_track(const quern_trace *trace, uint32_t track)
{
    track_events events = {.items = calloc(trace->capacity, sizeof *events.items)};
    cr_assert_not_null(events.items);
    events.count = quern__trace_read(trace, track, events.items);
    return events;
}

static uint64_t end_of(const quern__trace_event *event)
{
    return event->begin_ns + event->duration_ns;
}

/* Asserts that any two events of a track are nested or disjoint. */
static void assert_nested(const track_events *events)
{
    for (uint32_t i = 0; i < events->count; i++)
        for (uint32_t k = i + 1; k < events->count; k++) {
            const quern__trace_event *a = &events->items[i], *b = &events->items[k];
            const bool apart = end_of(a) <= b->begin_ns || end_of(b) <= a->begin_ns;
            const bool a_in_b = a->begin_ns >= b->begin_ns && end_of(a) <= end_of(b);
            const bool b_in_a = b->begin_ns >= a->begin_ns && end_of(b) <= end_of(a);
            cr_assert(apart || a_in_b || b_in_a, "events %u (kind %d) and %u (kind %d) cross", i, a->kind,
                      k, b->kind);
        }
}

static uint64_t sum_counts(const scene *opened, uint32_t thread_count, quern__trace_kind kind,
                           const char *name)
{
    uint64_t sum = 0;
    for (uint32_t track = 0; track < thread_count; track++) {
        track_events events = read_track(opened->trace, track);
        for (uint32_t i = 0; i < events.count; i++) {
            const quern__trace_event *event = &events.items[i];
            if (event->kind != kind) continue;
            if (name == NULL || (event->name < opened->trace->names.count &&
                                 strcmp(opened->trace->names.items[event->name].text, name) == 0))
                sum += event->count;
        }
        free(events.items);
    }
    return sum;
}

/* Asserts that each view of a system has one event and that the views of a worker are in order. */
static void assert_views(const scene *opened, const char *name, uint32_t view_count)
{
    track_events events = read_track(opened->trace, 0);
    uint32_t next = 0;
    for (uint32_t i = 0; i < events.count; i++) {
        const quern__trace_event *event = &events.items[i];
        if (event->kind != QUERN__TRACE_SYSTEM) continue;
        if (strcmp(opened->trace->names.items[event->name].text, name) == 0)
            cr_assert_eq(event->ordinal, next++, "view %u comes as %u", event->ordinal, next - 1);
    }
    cr_assert_eq(next, view_count);
    free(events.items);
}

static uint32_t chunk_count(const scene *opened)
{
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(opened->schedule, opened->quick, &stats));
    return stats.view_count;
}

static void check_trace(uint32_t thread_count)
{
    scene opened = open_scene(thread_count);
    run_frames(&opened, 2);
    cr_assert_eq(stats_of_trace(opened.trace).event_count, 0, "it has not been started");
    quern_trace_start(opened.trace);
    run_frames(&opened, FRAMES);
    quern_trace_stop(opened.trace);
    cr_assert_eq(stats_of_trace(opened.trace).dropped_count, 0);
    const uint64_t event_count = stats_of_trace(opened.trace).event_count;
    run_frames(&opened, 1);
    cr_assert_eq(stats_of_trace(opened.trace).event_count, event_count, "it has been stopped");
    for (uint32_t track = 0; track < thread_count; track++) {
        track_events events = read_track(opened.trace, track);
        assert_nested(&events);
        free(events.items);
    }
    const uint64_t chunks = (uint64_t)chunk_count(&opened) * FRAMES;
    cr_assert_gt(chunks, 50u * FRAMES);
    cr_assert_eq(sum_counts(&opened, thread_count, QUERN__TRACE_PASS, "quick + 1"), chunks,
                 "every chunk is in one job");
    cr_assert_eq(sum_counts(&opened, thread_count, QUERN__TRACE_PASS, "spawn"), FRAMES);
    close_scene(&opened);
}

Test(watched, every_chunk_is_in_one_job_of_the_trace_and_events_nest)
{
    check_trace(1);
    check_trace(3);
}

/* Sums of durations on track 0 in all frames, by kind of event; for sync points, by stage. */
typedef struct track_sums {
    uint64_t frames_ns, passes_ns, sync_ns, stages_ns;
    uint32_t frame_count;
} track_sums;

static track_sums sum_track(const quern_trace *trace)
{
    track_sums sums = {0};
    track_events events = read_track(trace, 0);
    for (uint32_t i = 0; i < events.count; i++) {
        const quern__trace_event *event = &events.items[i];
        if (event->kind == QUERN__TRACE_FRAME) sums.frames_ns += event->duration_ns, sums.frame_count++;
        if (event->kind == QUERN__TRACE_PASS) sums.passes_ns += event->duration_ns;
        if (event->kind == QUERN__TRACE_SYNC && event->ordinal == QUERN__STAGE_SYNC)
            sums.sync_ns += event->duration_ns;
        if (event->kind == QUERN__TRACE_SYNC && event->ordinal != QUERN__STAGE_SYNC)
            sums.stages_ns += event->duration_ns;
    }
    free(events.items);
    return sums;
}

Test(watched, times_of_a_trace_add_up)
{
    scene opened = open_scene(1);
    quern_trace_start(opened.trace);
    run_frames(&opened, FRAMES);
    const track_sums sums = sum_track(opened.trace);
    cr_assert_eq(sums.frame_count, FRAMES);
    cr_assert_leq(sums.passes_ns + sums.sync_ns, sums.frames_ns);
    cr_assert_leq(sums.stages_ns, sums.sync_ns);
    cr_assert_gt(sums.stages_ns, 0);
    cr_assert_geq(sums.passes_ns, (uint64_t)chunk_count(&opened) * FRAMES * 4 * WORK_NS);
    close_scene(&opened);
}

Test(watched, every_call_is_traced_if_chunks_take_long)
{
    work_ns = LONG_WORK_NS;
    scene opened = open_scene(1);
    quern_trace_start(opened.trace);
    run_frames(&opened, 2); /* the first frame measures how long views take */
    quern_trace_start(opened.trace);
    run_frames(&opened, 1);
    cr_assert_eq(sum_counts(&opened, 1, QUERN__TRACE_SYSTEM, "quick"), CROWD);
    cr_assert_eq(sum_counts(&opened, 1, QUERN__TRACE_SYSTEM, "slow"), CROWD);
    assert_views(&opened, "quick", chunk_count(&opened));
    assert_views(&opened, "slow", chunk_count(&opened));
    assert_views(&opened, "spawn", 1);
    close_scene(&opened);
}

static bool want_always(quern_context *context)
{
    return true;
}

/* Each hook has an event of its own with the name of its system. */
Test(watched, hooks_are_in_the_trace)
{
    quern_trace *trace = open_trace(1);
    quern_schedule *schedule = open_schedule(trace);
    quern_system_def def = system_def("hooked", work);
    def.terms[0] = quern_term_write(number);
    def.condition = want_always;
    def.begin = def.end = idle_callback;
    setup_system(schedule, &def);
    quern_trace_start(trace);
    must_run(schedule, NULL);
    track_events events = read_track(trace, 0);
    uint32_t begin_count = 0, end_count = 0;
    for (uint32_t i = 0; i < events.count; i++) {
        begin_count += events.items[i].kind == QUERN__TRACE_BEGIN;
        end_count += events.items[i].kind == QUERN__TRACE_END;
    }
    cr_assert_eq(begin_count, 2, "the condition and the beginning");
    cr_assert_eq(end_count, 1);
    free(events.items);
    quern_schedule_destroy(schedule);
    quern_trace_destroy(trace);
}

Test(watched, frames_of_schedules_that_share_a_trace_are_distinct)
{
    quern_trace *trace = open_trace(1);
    quern_schedule *schedules[] = {open_schedule(trace), open_schedule(trace)};
    quern_trace_start(trace);
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        must_run(schedules[frame % 2], NULL);
    track_events events = read_track(trace, 0);
    uint32_t frame_count = 0;
    for (uint32_t i = 0; i < events.count; i++) {
        if (events.items[i].kind != QUERN__TRACE_FRAME) continue;
        cr_assert_eq(events.items[i].count, frame_count % 2);
        cr_assert_eq(events.items[i].ordinal, frame_count / 2);
        frame_count++;
    }
    cr_assert_eq(frame_count, FRAMES);
    free(events.items);
    for (int i = 0; i < 2; i++)
        quern_schedule_destroy(schedules[i]);
    quern_trace_destroy(trace);
}

Test(watched, a_sleep_is_in_the_trace)
{
    quern_trace *trace = open_trace(2);
    quern_trace_start(trace);
    quern_jobs *jobs = open_jobs(2, trace);
    uint64_t since_ns = 0;
    while (since_ns == 0) /* until worker 1 has gone to sleep */
        since_ns = atomic_load_explicit(&jobs->workers[1].times.asleep_since_ns, memory_order_relaxed);
    quern_jobs_destroy(jobs);
    track_events events = read_track(trace, 1);
    bool found = false;
    for (uint32_t i = 0; i < events.count; i++)
        found |= events.items[i].kind == QUERN__TRACE_SLEEP && events.items[i].begin_ns == since_ns;
    cr_assert(found);
    free(events.items);
    quern_trace_destroy(trace);
}

Test(watched, workers_without_a_track_are_omitted_and_logged_once_per_start)
{
    captured_reports reports = {0};
    capture_reports(&reports);
    quern_trace *trace = open_trace(1);
    quern_jobs *jobs = open_jobs(3, trace);
    quern_schedule *schedule = open_schedule(trace);
    add_worker(schedule, "quick", work);
    must_run(schedule, jobs);
    cr_assert_eq(reports.log_count, 0, "it does not run yet");
    quern_trace_start(trace);
    for (int i = 0; i < FRAMES; i++)
        must_run(schedule, jobs);
    cr_assert_gt(stats_of_trace(trace).event_count, 0);
    cr_assert_eq(reports.log_count, 1);
    cr_assert_eq(reports.assert_count, 0, "it is no misuse");
    cr_assert_not_null(strstr(reports.last, "on 3 threads"), "%s", reports.last);
    quern_trace_start(trace);
    must_run(schedule, jobs);
    cr_assert_eq(reports.log_count, 2);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_trace_destroy(trace);
}

/* Each pool and schedule holds a reference to its trace. */
Test(watched, a_trace_in_use_is_not_destroyed)
{
    captured_reports reports = {0};
    scene opened = open_scene(2);
    capture_reports(&reports);
    quern_trace_start(opened.trace);
    quern_trace_destroy(opened.trace);
    cr_assert_eq(reports.log_count, 1);
    cr_assert_not_null(strstr(reports.last, "2 pools and schedules"), "%s", reports.last);
    run_frames(&opened, 1);
    cr_assert_gt(stats_of_trace(opened.trace).event_count, 0, "it is as it was");
    quern_schedule_destroy(opened.schedule);
    quern_trace_destroy(opened.trace);
    cr_assert_eq(reports.log_count, 2, "the pool has it");
    quern_jobs_destroy(opened.jobs);
    opened.schedule = open_schedule(opened.trace);
    quern_trace_destroy(opened.trace);
    cr_assert_eq(reports.log_count, 3, "another schedule has it");
    quern_schedule_destroy(opened.schedule);
    quern_trace_destroy(opened.trace);
    cr_assert_eq(reports.log_count, 3);
}

/* ------------------------------------------------------------------------------------------ profiles */

static quern_system_stats stats_of(const scene *opened, quern_system system)
{
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(opened->schedule, system, &stats));
    return stats;
}

static uint64_t total_of(const quern_worker_profile *worker)
{
    return worker->busy_ns + worker->stealing_ns + worker->idle_ns + worker->sync_ns;
}

static void check_profile(uint32_t thread_count)
{
    scene opened = open_scene(thread_count);
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, FRAMES);
    const quern_frame_profile frame = profile_of_frame(opened.schedule);
    cr_assert_eq(frame.frame_index, FRAMES - 1);
    cr_assert_eq(frame.thread_count, thread_count);
    cr_assert_geq(frame.workers.busy_ns, (uint64_t)chunk_count(&opened) * 4 * WORK_NS);
    cr_assert_leq(frame.gather_ns + frame.merge_ns + frame.resolve_ns + frame.apply_ns, frame.sync_ns);
    cr_assert_gt(frame.apply_ns, 0);
    cr_assert_leq(frame.sync_ns, frame.time_ns);
    cr_assert_geq(frame.critical_path_ns, 4 * WORK_NS + frame.sync_ns);
    cr_assert(frame.efficiency > 0 && frame.efficiency <= 1.0001);
    uint64_t busy_ns = 0;
    for (uint32_t i = 0; i < thread_count; i++) {
        quern_worker_profile worker;
        must(quern_schedule_get_worker_profile(opened.schedule, i, &worker));
        cr_assert_geq(total_of(&worker), frame.time_ns);
        busy_ns += worker.busy_ns;
    }
    cr_assert_eq(busy_ns, frame.workers.busy_ns);
    const uint64_t systems_ns = stats_of(&opened, opened.quick).time_ns +
                                stats_of(&opened, opened.slow).time_ns +
                                stats_of(&opened, opened.spawn).time_ns;
    cr_assert_geq(systems_ns, (uint64_t)chunk_count(&opened) * 4 * WORK_NS);
    cr_assert_leq(systems_ns, busy_ns + 3, "workers were busy for %llu ns, systems %llu",
                  (unsigned long long)busy_ns, (unsigned long long)systems_ns);
    cr_assert_eq(stats_of(&opened, opened.spawn).command_count, 150);
    close_scene(&opened);
}

Test(watched, a_profile_adds_up_at_any_thread_count)
{
    check_profile(1);
    check_profile(3);
}

/* The items of a loop that no thread can finish alone: each item waits until the others have begun, and
 * then works for a while. */
typedef struct meeting {
    _Atomic uint32_t present_count;
    uint32_t expected_count;
} meeting;

static void meet(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    meeting *place = argument;
    cr_assert_eq(end, begin + 1);
    atomic_fetch_add(&place->present_count, 1);
    while (atomic_load(&place->present_count) < place->expected_count)
        sched_yield();
    const uint64_t start_ns = quern__clock_ns();
    while (quern__clock_ns() - start_ns < LONG_WORK_NS) {
    }
}

static void share_work(quern_context *context, const quern_view *view)
{
    quern_jobs *jobs = quern_context_user_data(context);
    meeting place = {.expected_count = quern_jobs_thread_count(jobs)};
    must(quern_jobs_parallel_for(jobs, place.expected_count, 1, meet, &place));
}

Test(watched, workers_helping_with_a_loop_count_as_busy)
{
    enum { THREADS = 3 };
    quern_trace *trace = open_trace(THREADS);
    quern_jobs *jobs = open_jobs(THREADS, trace);
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "share", share_work, .user_data = jobs);
    must(quern_schedule_set_profiling(schedule, true));
    quern_trace_start(trace);
    for (int frame = 0; frame < FRAMES; frame++) {
        must_run(schedule, jobs);
        for (uint32_t i = 0; i < THREADS; i++) {
            quern_worker_profile worker;
            must(quern_schedule_get_worker_profile(schedule, i, &worker));
            cr_assert_geq(worker.busy_ns, LONG_WORK_NS, "worker %u", i);
        }
    }
    for (uint32_t track = 1; track < THREADS; track++) {
        track_events events = read_track(trace, track);
        uint64_t helped_ns = 0;
        for (uint32_t i = 0; i < events.count; i++)
            if (events.items[i].kind == QUERN__TRACE_LOOP) helped_ns += events.items[i].duration_ns;
        cr_assert_geq(helped_ns, FRAMES * LONG_WORK_NS);
        free(events.items);
    }
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_trace_destroy(trace);
}

/* Other programs may interrupt this one for longer than a frame, so the expected order is only required
 * in one of 100 frames. */
Test(watched, longer_system_has_longer_time)
{
    scene opened = open_scene(1);
    must(quern_schedule_set_profiling(opened.schedule, true));
    bool is_told = false;
    for (int i = 0; i < 100 && !is_told; i++) {
        run_frames(&opened, 1);
        is_told = stats_of(&opened, opened.slow).time_ns > stats_of(&opened, opened.quick).time_ns &&
                  stats_of(&opened, opened.quick).time_ns > stats_of(&opened, opened.spawn).time_ns;
    }
    cr_assert(is_told);
    close_scene(&opened);
}

Test(watched, without_profiling_there_are_no_times)
{
    scene opened = open_scene(1);
    run_frames(&opened, 1);
    cr_assert_eq(stats_of(&opened, opened.slow).time_ns, 0);
    cr_assert_eq(profile_of_frame(opened.schedule).time_ns, 0);
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, 2);
    cr_assert_gt(stats_of(&opened, opened.slow).time_ns, 0);
    must(quern_schedule_set_profiling(opened.schedule, false));
    run_frames(&opened, 1);
    cr_assert_eq(stats_of(&opened, opened.slow).time_ns, 0);
    close_scene(&opened);
}

/* Returns the profile as text; release with free(). */
static char *written_profile(const scene *opened)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    cr_assert_not_null(file);
    must(quern_schedule_write_profile(opened->schedule, quern_sink_file(file)));
    fclose(file);
    return text;
}

Test(watched, means_restart_when_the_thread_count_changes)
{
    scene opened = open_scene(2);
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, FRAMES);
    for (int i = 0; i < 2; i++)
        must_run(opened.schedule, NULL);
    char *text = written_profile(&opened);
    cr_assert_not_null(strstr(text, "on 1 thread, mean of 2;"), "%s", text);
    cr_assert_null(strstr(text, "\n1 "), "%s", text);
    free(text);
    close_scene(&opened);
}

/* The pool of both schedules. */
static quern_jobs *shared_jobs;
static bool is_watched_later;

static void run_other(quern_context *context, const quern_view *view)
{
    must(quern_schedule_run(quern_context_user_data(context), shared_jobs, 0.1));
}

static void look_at_pool(quern_context *context, const quern_view *view)
{
    is_watched_later = atomic_load_explicit(&shared_jobs->idle_time_reader, memory_order_relaxed) != NULL;
}

Test(watched, nested_frame_without_profile_does_not_end_the_outer_profile)
{
    quern_schedule *outer = setup_schedule(world), *inner = setup_schedule(world);
    shared_jobs = open_jobs(2, NULL);
    add_worker(inner, "inner", work);
    quern_system_def exclusive = system_def("run other", run_other),
                     later = system_def("later", look_at_pool);
    exclusive.flags = QUERN_SYSTEM_EXCLUSIVE;
    exclusive.user_data = inner;
    later.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(outer, &exclusive);
    setup_system(outer, &later);
    must(quern_schedule_set_profiling(outer, true));
    must_run(outer, shared_jobs);
    cr_assert(is_watched_later);
    must(quern_schedule_set_profiling(outer, false));
    must_run(outer, shared_jobs);
    cr_assert_not(is_watched_later);
    quern_schedule_destroy(outer);
    quern_schedule_destroy(inner);
    quern_jobs_destroy(shared_jobs);
}

/* Threads of another pool have the same worker indices and may have run the same number of jobs. */
Test(watched, run_of_jobs_does_not_continue_in_another_pool)
{
    quern_schedule *schedule = setup_schedule(world);
    const quern_system quick = add_worker(schedule, "quick", work);
    must(quern_schedule_set_profiling(schedule, true));
    for (int i = 0; i < 12; i++) {
        quern_jobs *jobs = open_jobs(2, NULL);
        quern_system_stats stats;
        must_run(schedule, jobs);
        must(quern_schedule_get_system_stats(schedule, quick, &stats));
        const quern_frame_profile frame = profile_of_frame(schedule);
        cr_assert_leq(stats.time_ns, 2 * frame.time_ns);
        cr_assert_leq(frame.critical_path_ns, frame.time_ns);
        quern_jobs_destroy(jobs);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static _Atomic bool has_changed_places;

static void work_first(quern_context *context, const quern_view *view)
{
    (has_changed_places ? work : work_long)(context, view);
}

static void work_second(quern_context *context, const quern_view *view)
{
    (has_changed_places ? work_long : work)(context, view);
}

Test(watched, shares_follow_recent_times_of_systems)
{
    quern_schedule *schedule = setup_schedule(world);
    const quern_system first = add_worker(schedule, "first", work_first);
    const quern_system second = add_worker(schedule, "second", work_second);
    quern_system_stats one = {0}, other = {0};
    must(quern_schedule_set_profiling(schedule, true));
    for (int i = 0; i < 20 * 16; i++)
        must_run(schedule, NULL);
    has_changed_places = true;
    for (int i = 0; i < 10 * 16 && one.time_ns >= other.time_ns; i++) {
        must_run(schedule, NULL);
        must(quern_schedule_get_system_stats(schedule, first, &one));
        must(quern_schedule_get_system_stats(schedule, second, &other));
    }
    cr_assert_lt(one.time_ns, other.time_ns);
}

Test(watched, mean_of_workers_continues_when_a_system_is_added)
{
    scene opened = open_scene(2);
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, FRAMES);
    for (int i = 0; i < 8; i++) { /* more systems than the profiler had reserved room for */
        char name[32];
        snprintf(name, sizeof name, "late %d", i);
        add_worker(opened.schedule, name, work);
    }
    run_frames(&opened, FRAMES);
    uint64_t busy_ns = 0;
    for (uint32_t i = 0; i < 2; i++)
        busy_ns += quern__schedule_profiler(opened.schedule)->workers[i].profile_total.busy_ns;
    cr_assert_eq(busy_ns, quern__schedule_profiler(opened.schedule)->total.workers.busy_ns);
    close_scene(&opened);
}

Test(watched, a_system_without_a_profiled_frame_is_written_with_zeros)
{
    scene opened = open_scene(1);
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, 1);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "late %d", i);
        add_worker(opened.schedule, name, work);
    }
    must(quern_schedule_compile(opened.schedule));
    char *text = written_profile(&opened);
    const char *late = strstr(text, "\nlate 19 ");
    cr_assert_not_null(late, "%s", text);
    cr_assert_float_eq(strtod(late + strlen("\nlate 19 "), NULL), 0, 0);
    free(text);
    close_scene(&opened);
}

/* An exclusive system that creates, during a frame, the first archetype on which `plain` and `rare`
 * conflict. */
static void make_conflict(quern_context *context, const quern_view *view)
{
    const quern_component *both = quern_context_user_data(context);
    quern_entity entity;
    quern_world *changed = quern_context_world(context);
    /* the frame continues without the archetype */
    if (quern_entity_create(changed, &entity) != QUERN_OK) return;
    (void)quern_entity_add(changed, entity, both[0], NULL);
    (void)quern_entity_add(changed, entity, both[1], NULL);
}

static quern_schedule *open_conflict(quern_world *failing, const quern_component *both)
{
    quern_schedule *schedule;
    must(quern_schedule_create(failing, &(quern_schedule_def){.phases = {"first", "second"}}, &schedule));
    make_system(schedule, "make", make_conflict, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .user_data = (void *)(uintptr_t)both);
    make_system(schedule, "plain", work, .phase = 1, .terms = {quern_term_write(both[0])});
    make_system(schedule, "rare", work, .phase = 1, .terms = {quern_term_write(both[1])},
                .lookups = {{.component = both[0]}});
    return schedule;
}

/* Runs a profiled frame that compiles new passes while an allocation fails. Returns whether an
 * allocation failed. */
static bool profile_failing_frame(uint64_t failing_call)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world *failing;
    must(
        quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &failing));
    const quern_component both[] = {setup_component(failing, "number", 8, 8),
                                    setup_component(failing, "rare", 8, 8)};
    setup_entity_with(failing, both + 1, 1);
    quern_schedule *schedule = open_conflict(failing, both);
    must(quern_schedule_set_profiling(schedule, true));
    failing_allocator_fail_at(memory, failing_call);
    (void)quern_schedule_run(schedule, NULL, 0);
    const bool failed = failing_allocator_failed_count(memory) > 0;
    failing_allocator_heal(memory);
    must(quern_schedule_run(schedule, NULL, 0));
    quern_frame_profile profile;
    must(quern_schedule_get_frame_profile(schedule, &profile));
    cr_assert_gt(profile.time_ns, 0);
    quern_schedule_destroy(schedule);
    quern_world_destroy(failing);
    failing_allocator_close(memory);
    return failed;
}

Test(watched, profile_survives_passes_that_failed_to_compile)
{
    work_ns = 0;
    uint64_t call = 1;
    while (profile_failing_frame(call))
        call++;
    cr_assert_gt(call, 20, "the frame asked for memory %llu times", (unsigned long long)call);
}

Test(watched, a_frame_that_is_only_traced_has_no_profile)
{
    scene opened = open_scene(1);
    quern_trace_start(opened.trace);
    run_frames(&opened, 1);
    cr_assert_eq(profile_of_frame(opened.schedule).time_ns, 0);
    quern_worker_profile worker;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_get_worker_profile(opened.schedule, 0, &worker));
    close_scene(&opened);
}

Test(watched, the_profile_is_written_as_a_table)
{
    scene opened = open_scene(2);
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_write_profile(opened.schedule, quern_sink_file(stdout)));
    must(quern_schedule_set_profiling(opened.schedule, true));
    run_frames(&opened, FRAMES);
    char *text = written_profile(&opened);
    cr_assert_not_null(strstr(text, "on 2 threads, mean of 6;"), "%s", text);
    cr_assert_not_null(strstr(text, "\nquick "), "%s", text);
    cr_assert_not_null(strstr(text, "\nslow "), "%s", text);
    cr_assert_not_null(strstr(text, "\n1 "), "%s", text);
    free(text);
    close_scene(&opened);
}

Test(watched, misuse_is_refused)
{
    scene opened = open_scene(1);
    quern_worker_profile worker;
    must_refuse(NULL_ARGUMENT, NULL, quern_schedule_set_profiling(NULL, true));
    must_refuse(NULL_ARGUMENT, NULL, quern_schedule_get_worker_profile(NULL, 0, &worker));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_worker_profile(opened.schedule, 0, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_get_worker_profile(opened.schedule, 0, &worker));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_write_profile(opened.schedule, quern_sink_file(NULL)));
    close_scene(&opened);
}

/* ---------------------------------------------------------------------------------------- no effect */

static uint64_t hash_after(bool is_profiled, bool is_traced)
{
    open_crowd();
    scene opened = open_scene(3);
    must(quern_schedule_set_profiling(opened.schedule, is_profiled));
    if (is_traced) quern_trace_start(opened.trace);
    run_frames(&opened, FRAMES);
    const uint64_t hash = quern_world_hash(world);
    close_scene(&opened);
    close_world();
    return hash;
}

Test(watched, tracing_and_profiling_do_not_change_the_world)
{
    close_world();
    const uint64_t hash = hash_after(false, false);
    cr_assert_eq(hash_after(true, false), hash);
    cr_assert_eq(hash_after(false, true), hash);
    open_crowd();
}
