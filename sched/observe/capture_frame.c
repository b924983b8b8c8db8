/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"
#include "sched/observe/profile_internal.h"

/* Stores the tasks and durations of a running frame in a capture. */

/* Returns the stage's share, by its number of chunks, of the bytes that the pass touches. Returns 0 if these bytes
 * fit into the threads' own caches. */
static uint64_t streamed_bytes(const quern__pass *pass, const quern__pass_stage *stage)
{
    if (!pass->exceeds_own_caches || pass->stage_count == 1)
        return pass->exceeds_own_caches ? pass->touched_bytes : 0;
    return (uint64_t)((double)pass->touched_bytes * stage->chunk_count / (pass->chunk_count + 1.0));
}

/* Adds one task per stage; each stage waits for the one before it. */
static void capture_pass(const quern__profiler *profiler, const quern__segment *segment,
                         const quern__pass *pass)
{
    quern_frame_capture *capture = profiler->capture;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__profile_describe_pass(pass, name, sizeof name);
    for (uint32_t i = 0; i < pass->stage_count; i++) {
        const quern__pass_stage *stage = &pass->stages[i];
        const uint32_t number = quern__capture_add_task(capture, name, stage->item_count);
        if (number == UINT32_MAX) return;
        if (i == 0) quern__profile_of_pass(profiler, pass)->first_task = number;
        quern__task *task = &capture->tasks.items[number];
        task->bytes = streamed_bytes(pass, stage);
        task->is_serial = quern__stage_is_serial(stage);
        task->caller_only = quern__system_has_flag(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD);
        if (i > 0) quern__capture_add_wait(capture, number - 1);
        for (uint32_t k = 0; k < pass->waits_for.count && i == 0; k++) {
            const quern__pass *before = segment->passes.items[pass->waits_for.items[k]];
            quern__capture_add_wait(
                capture, quern__profile_task_of(profiler, &before->stages[before->stage_count - 1]));
        }
    }
}

void quern__capture_begin_segment(const quern__profiler *profiler, const quern__segment *segment)
{
    quern__capture_start_segment(profiler->capture, false, quern__clock_ns());
    for (uint32_t i = 0; i < segment->passes.count; i++)
        capture_pass(profiler, segment, segment->passes.items[i]);
}

void quern__capture_end_item(const quern__profiler *profiler, const quern__pass_stage *stage, uint32_t item,
                             uint64_t took_ns)
{
    const quern_frame_capture *capture = profiler->capture;
    if (capture->is_out_of_memory) return;
    const uint64_t cost_ns = quern__clock_cost_ns();
    capture->items_ns
        .items[capture->tasks.items[quern__profile_task_of(profiler, stage)].first_item + item] =
        took_ns > cost_ns ? took_ns - cost_ns : 0;
}

void quern__capture_end_hooks(const quern__profiler *profiler, const quern__observed_job *job,
                              uint64_t took_ns)
{
    const quern_frame_capture *capture = profiler->capture;
    if (capture->is_out_of_memory) return;
    const quern__pass *pass = job->pass;
    if (job->callback == QUERN__CALLBACK_BEGIN)
        capture->tasks.items[quern__profile_task_of(profiler, &pass->stages[0])].before_ns = took_ns;
    else
        capture->tasks.items[quern__profile_task_of(profiler, &pass->stages[pass->stage_count - 1])]
            .after_ns = took_ns;
}

void quern__capture_end_part(quern_frame_capture *capture, uint64_t took_ns)
{
    const uint64_t cost_ns = quern__clock_cost_ns();
    quern__capture_add_part(capture, took_ns > cost_ns ? took_ns - cost_ns : 0);
}

void quern__capture_end_frame(quern_frame_capture *capture, uint64_t frame_ns)
{
    capture->frame_ns = frame_ns;
    if (frame_ns > capture->segments_ns) capture->serial_ns = frame_ns - capture->segments_ns;
}

static quern_result run_captured(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 quern_frame_capture *capture, const char *function)
{
    /* fails, because the schedule is not idle */
    if (quern__schedule_check_idle(schedule, function) != QUERN_OK)
        return quern__schedule_run(schedule, jobs, delta_seconds, function);
    if (capture->is_in_use)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: a running frame uses the capture; pass another capture to the frame of an "
                           "exclusive system",
                           function);
    quern__profiler *profiler = quern__schedule_profiler(schedule);
    quern__capture_start(capture, jobs != NULL ? quern_jobs_thread_count(jobs) : 1);
    profiler->capture = capture;
    capture->is_in_use = true;
    const quern_result result = quern__schedule_run(schedule, jobs, delta_seconds, function);
    profiler->capture = NULL;
    capture->is_in_use = false;
    if (result == QUERN_OK && !capture->is_out_of_memory) return QUERN_OK;
    capture->frame_ns = 0; /* marks the capture as empty */
    if (result != QUERN_OK) return result;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for the capture; the frame has run",
                       function);
}

/* The world is claimed first, as for any frame: until then another thread's frame may use the profiler. */
quern_result quern_schedule_run_captured(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                         quern_frame_capture *capture)
{
    static const char function[] = "quern_schedule_run_captured";
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    if (capture == NULL) return quern__fail_null(function, "capture");
    quern_world *world = schedule->plan.world;
    if (!quern__world_claim(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    const quern_result result = run_captured(schedule, jobs, delta_seconds, capture, function);
    quern__world_unclaim(world);
    return result;
}
