/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/profile_internal.h"

#include "core/platform/platform.h"

#include <stdio.h>

/* Captured frames: the data, and how the profiler fills it while a frame runs (profile_internal.h). */

_Static_assert(offsetof(struct quern_frame_capture, loop_observer) == 0,
               "an observer of loops is a capture");

static void add_inner_loop(quern__loop_observer *watch, uint32_t piece_count, uint64_t took_ns)
{
    quern_frame_capture *capture = (quern_frame_capture *)(void *)watch;
    if (capture->is_out_of_memory ||
        !quern__array_reserve(&capture->allocator, &capture->loops, capture->loops.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    uint32_t *first = &capture->tasks.items[capture->looping_task].first_loop[capture->looping_part];
    capture->loops.items[capture->loops.count] =
        (quern__inner_loop){.took_ns = took_ns, .piece_count = piece_count, .next = *first};
    *first = capture->loops.count++;
}

quern_result quern_frame_capture_create(const quern_allocator *allocator, quern_frame_capture **out_capture)
{
    if (out_capture == NULL) return quern__fail_null("quern_frame_capture_create", "out_capture");
    quern_allocator chosen;
    const quern_result result = quern__choose_allocator(allocator, "quern_frame_capture_create", &chosen);
    if (result != QUERN_OK) return result;
    quern_frame_capture *capture = quern__allocate(&chosen, sizeof *capture, _Alignof(quern_frame_capture));
    if (capture == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_frame_capture_create: out of memory for the capture");
    *capture = (quern_frame_capture){.loop_observer.report = add_inner_loop, .allocator = chosen};
    *out_capture = capture;
    return QUERN_OK;
}

void quern_frame_capture_destroy(quern_frame_capture *capture)
{
    if (capture == NULL) return;
    if (capture->is_in_use) {
        quern__report_violation(
            QUERN_ERROR_WORLD_LOCKED,
            "quern_frame_capture_destroy: a frame that uses the capture is running; destroy "
            "the capture after the frame");
        return;
    }
    const quern_allocator allocator = capture->allocator;
    quern__array_release(&allocator, &capture->segments);
    quern__array_release(&allocator, &capture->tasks);
    quern__array_release(&allocator, &capture->items_ns);
    quern__array_release(&allocator, &capture->waits);
    quern__array_release(&allocator, &capture->loops);
    quern__release(&allocator, capture, sizeof *capture, _Alignof(quern_frame_capture));
}

void quern__capture_start(quern_frame_capture *capture, uint32_t thread_count)
{
    capture->segments.count = capture->tasks.count = 0;
    capture->items_ns.count = capture->waits.count = capture->loops.count = 0;
    capture->thread_count = thread_count;
    capture->frame_ns = capture->serial_ns = capture->segments_ns = 0;
    capture->is_out_of_memory = false;
}

void quern__capture_start_segment(quern_frame_capture *capture, bool is_sync, uint64_t now_ns)
{
    capture->segment_start_ns = capture->mark_ns = now_ns;
    if (!quern__array_reserve(&capture->allocator, &capture->segments, capture->segments.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    capture->segments.items[capture->segments.count++] = (quern__captured_segment){
        .first_task = capture->tasks.count, .end_task = capture->tasks.count, .is_sync = is_sync};
}

void quern__capture_finish_segment(quern_frame_capture *capture, uint64_t now_ns)
{
    capture->segments_ns += now_ns - capture->segment_start_ns;
}

uint32_t quern__capture_add_task(quern_frame_capture *capture, const char *name, uint32_t item_count)
{
    const bool has_memory =
        !capture->is_out_of_memory &&
        quern__array_reserve(&capture->allocator, &capture->tasks, capture->tasks.count + 1) &&
        quern__array_reserve(&capture->allocator, &capture->items_ns, capture->items_ns.count + item_count);
    if (!has_memory) {
        capture->is_out_of_memory = true;
        return UINT32_MAX;
    }
    quern__task *task = &capture->tasks.items[capture->tasks.count];
    *task = (quern__task){.first_item = capture->items_ns.count,
                          .item_count = item_count,
                          .first_wait = capture->waits.count,
                          .first_loop = {QUERN__NO_LOOP, QUERN__NO_LOOP, QUERN__NO_LOOP}};
    snprintf(task->name, sizeof task->name, "%s", name);
    for (uint32_t i = 0; i < item_count; i++)
        capture->items_ns.items[capture->items_ns.count++] = 0;
    capture->segments.items[capture->segments.count - 1].end_task++;
    return capture->tasks.count++;
}

void quern__capture_add_wait(quern_frame_capture *capture, uint32_t before)
{
    if (capture->is_out_of_memory ||
        !quern__array_reserve(&capture->allocator, &capture->waits, capture->waits.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    capture->waits.items[capture->waits.count++] = before;
    capture->tasks.items[capture->tasks.count - 1].wait_count++;
}

void quern__capture_set_loop_owner(quern_frame_capture *capture, uint32_t task, quern__task_part part)
{
    capture->looping_task = task;
    capture->looping_part = part;
}

/* Adds a task to a sync point. It waits for the previous one. */
static quern__task *add_link(quern_frame_capture *capture, uint32_t item_count)
{
    const uint32_t number = quern__capture_add_task(capture, "sync point", item_count);
    if (number == UINT32_MAX) return NULL;
    const uint32_t first = capture->segments.items[capture->segments.count - 1].first_task;
    capture->tasks.items[number].is_sync = true;
    if (number > first) quern__capture_add_wait(capture, number - 1);
    return &capture->tasks.items[number];
}

void quern__capture_add_gap(quern_frame_capture *capture, uint64_t now_ns)
{
    quern__task *gap = add_link(capture, 1);
    if (gap == NULL) return;
    gap->caller_only = true;
    capture->items_ns.items[gap->first_item] = now_ns - capture->mark_ns;
}

/* Relaxed: parts are added by a loop that begins later, and the pool publishes this write to it. */
void quern__capture_start_loop(quern_frame_capture *capture, uint32_t part_count)
{
    atomic_store_explicit(&capture->part_count, 0, memory_order_relaxed);
    (void)add_link(capture, part_count);
}

/* Relaxed: each part has an element of its own, and the end of the loop orders these elements. */
void quern__capture_add_part(quern_frame_capture *capture, uint64_t took_ns)
{
    if (capture->is_out_of_memory) return;
    const quern__task *loop = &capture->tasks.items[capture->tasks.count - 1];
    const uint32_t part = atomic_fetch_add_explicit(&capture->part_count, 1, memory_order_relaxed);
    if (part < loop->item_count) capture->items_ns.items[loop->first_item + part] = took_ns;
}

void quern__capture_finish_loop(quern_frame_capture *capture, uint64_t now_ns)
{
    capture->mark_ns = now_ns;
}

/* ------------------------------------------------------------------------------------- capturing a frame */

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
        /* The stage's share, by its number of chunks, of the bytes that the pass touches, unless these bytes fit
         * into the threads' own caches. */
        task->bytes =
            !pass->exceeds_own_caches ? 0
            : pass->stage_count == 1
                ? pass->touched_bytes
                : (uint64_t)((double)pass->touched_bytes * stage->chunk_count / (pass->chunk_count + 1.0));
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

/* Returns the task of the job's stage, or of the first or last one if the job is one of callbacks before or
 * after items. */
static quern__task *task_of_job(const quern__profiler *profiler, const quern__observed_job *job)
{
    const quern__pass *pass = job->pass;
    const quern__pass_stage *stage = job->callback == QUERN__CALLBACK_RUN ? job->stage
                                     : job->callback == QUERN__CALLBACK_BEGIN
                                         ? &pass->stages[0]
                                         : &pass->stages[pass->stage_count - 1];
    return &profiler->capture->tasks.items[quern__profile_task_of(profiler, stage)];
}

void quern__capture_add(const quern__profiler *profiler, const quern__interval *interval)
{
    quern_frame_capture *capture = profiler->capture;
    const uint64_t took_ns = interval->took_ns, cost_ns = quern__clock_cost_ns();
    const uint64_t net_ns = took_ns > cost_ns ? took_ns - cost_ns : 0;
    if (interval->kind == QUERN__INTERVAL_FRAME) {
        capture->frame_ns = took_ns;
        if (took_ns > capture->segments_ns) capture->serial_ns = took_ns - capture->segments_ns;
    } else if (interval->kind == QUERN__INTERVAL_STAGE && interval->stage == QUERN__STAGE_SYNC) {
        quern__capture_add_gap(capture, interval->begin_ns + took_ns);
        quern__capture_finish_segment(capture, interval->begin_ns + took_ns);
    } else if (interval->kind == QUERN__INTERVAL_PART) {
        quern__capture_add_part(capture, net_ns);
    } else if (interval->kind == QUERN__INTERVAL_ITEM && !capture->is_out_of_memory) {
        const quern__task *task = task_of_job(profiler, interval->job);
        capture->items_ns.items[task->first_item + interval->ordinal] = net_ns;
    } else if (interval->kind == QUERN__INTERVAL_HOOKS && !capture->is_out_of_memory) {
        quern__task *task = task_of_job(profiler, interval->job);
        *(interval->job->callback == QUERN__CALLBACK_BEGIN ? &task->before_ns : &task->after_ns) = took_ns;
    }
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
