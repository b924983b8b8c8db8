/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/sync.h"

#include "core/platform/platform.h"
#include "sched/jobs/jobs_internal.h"

static void count_by_system(const quern_schedule *schedule, const quern_commands *recorder)
{
    for (uint32_t k = 0; k < recorder->streams.count; k++) {
        const quern__stream *stream = &recorder->streams.items[k];
        schedule->plan.systems.items[stream->origin.system_number]->command_count += stream->command_count;
    }
}

/* Counts the commands by system. Commands that could not be recorded fail the frame; the recorded ones are
 * applied. */
static void count_streams(quern_schedule *schedule, quern__flush_report *report)
{
    schedule->has_command_counts = true;
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern_commands *recorder = schedule->recorders.items[i];
        quern__commands_close(recorder);
        if (recorder->failed != QUERN_OK) report->record_result = recorder->failed;
        recorder->failed = QUERN_OK;
        count_by_system(schedule, recorder);
        if (quern__accumulator_is_used(recorder))
            count_by_system(schedule, &recorder->accumulator->recorder);
    }
}

/* ------------------------------------------------------------------------------------ loops of a stage */

/* Runs a loop on the pool. Without a pool, the caller runs it in ranges of `grain` items; only an observer that
 * reports each range requests that. */
static void run_in_parts(quern_jobs *jobs, uint32_t count, uint32_t grain,
                         quern__executor_function *function, void *argument)
{
    if (jobs != NULL) {
        quern_jobs_parallel_for(jobs, count, grain, function, argument);
        return;
    }
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        end = count - begin > grain ? begin + grain : count;
        function(argument, begin, end, 0);
    }
}

typedef struct observed_loop {
    quern__frame_observer *observer;
    quern__executor_function *function;
    void *argument;
} observed_loop;

static void run_observed_part(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const observed_loop *loop = argument;
    const uint64_t begin_ns = quern__clock_ns();
    loop->function(loop->argument, begin, end, worker_index);
    loop->observer->calls->end_part(loop->observer, worker_index, begin_ns);
}

static void run_on_jobs(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                        void *argument)
{
    const quern_schedule *schedule = context;
    if (!schedule->is_observed) {
        run_in_parts(schedule->jobs, count, grain, function, argument);
        return;
    }
    quern__frame_observer *observer = schedule->observer;
    observed_loop loop = {.observer = observer, .function = function, .argument = argument};
    observer->calls->begin_loop(observer, (count - 1) / grain + 1);
    run_in_parts(schedule->jobs, count, grain, run_observed_part, &loop);
    observer->calls->end_loop(observer);
}

static void begin_stage(void *context, quern__sync_stage stage)
{
    const quern_schedule *schedule = context;
    schedule->observer->calls->begin_stage(schedule->observer, stage);
}

/* ------------------------------------------------------------------------------------------ sync points */

static quern_result play_back(quern_schedule *schedule, quern__playback_stats *applied)
{
    const quern__frame_observer *observer = schedule->observer;
    quern__executor executor = {.parallel_for = run_on_jobs,
                                .context = schedule,
                                .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1,
                                .worker_count = schedule->worker_count,
                                .always_divides = observer->wants_loop_parts,
                                .begin_stage = schedule->is_observed ? begin_stage : NULL};
    if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    return quern__playback_run_recorded(&schedule->playback, quern__schedule_recorders(schedule), &executor,
                                        applied);
}

quern_result quern__sync_world(quern_schedule *schedule, quern__flush_report *report)
{
    quern_world *world = schedule->plan.world;
    if (QUERN__LIKELY(world->commands == NULL)) return QUERN_OK;
    quern__world_end_recording(world);
    if (!quern__world_has_commands(world)) return QUERN_OK;
    quern__frame_observer *observer = schedule->observer;
    const uint64_t begin_ns = quern__clock_ns();
    if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    if (schedule->is_observed) observer->calls->begin_sync(observer);
    const quern_result result = quern__world_apply_commands(world, report);
    if (schedule->is_observed)
        observer->calls->end_sync(observer, begin_ns, (uint32_t)world->commands->stats.command_count);
    schedule->stats.sync_ns += quern__clock_ns() - begin_ns;
    return result;
}

quern_result quern__sync_commands(quern_schedule *schedule, quern__flush_report *report)
{
    quern__frame_observer *observer = schedule->observer;
    const uint64_t begin_ns = quern__clock_ns();
    count_streams(schedule, report);
    quern__playback_stats applied = {0};
    if (schedule->is_observed) observer->calls->begin_sync(observer);
    quern_result result = play_back(schedule, &applied);
    if (schedule->is_observed)
        observer->calls->end_sync(observer, begin_ns, (uint32_t)applied.command_count);
    schedule->stats.command_count += applied.command_count;
    schedule->stats.dropped_count += applied.dropped_count;
    schedule->stats.created_count += applied.created_count;
    schedule->stats.destroyed_count += applied.destroyed_count;
    quern__flush_report_add(report, &applied);
    schedule->stats.sync_ns += quern__clock_ns() - begin_ns;
    return result;
}

quern_result quern__sync_events(quern_schedule *schedule, quern__flush_report *report)
{
    const uint64_t begin_ns = quern__clock_ns();
    quern_result result = quern__events_begin_sync(schedule);
    uint64_t events_ns = quern__clock_ns() - begin_ns;
    schedule->playback.on_created = quern__events_resolve_handles;
    schedule->playback.on_created_argument = schedule;
    if (result == QUERN_OK && quern__schedule_has_commands(schedule))
        result = quern__sync_commands(schedule, report);
    schedule->playback.on_created = NULL;
    const uint64_t publish_ns = quern__clock_ns();
    if (result == QUERN_OK) quern__events_end_sync(schedule);
    events_ns += quern__clock_ns() - publish_ns;
    schedule->stats.sync_ns += events_ns;
    return result;
}
