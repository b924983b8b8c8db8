/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/pass_run.h"
#include "sched/observe/profile_internal.h"

/* The profiler as the observer of a schedule: its creation and memory, and the settings for the next frame. */

enum { OBSERVED_ALIGNMENT_BYTES = 128, TIMES_PER_LINE = 16 };

/* ------------------------------------------------------------------------------------------- memory */

/* Workers and times are in one block of memory. */
static size_t times_offset(uint32_t worker_count)
{
    return quern__align_up(worker_count * sizeof(quern__observed_worker), OBSERVED_ALIGNMENT_BYTES);
}

static size_t block_bytes(uint32_t worker_count, uint32_t time_stride)
{
    return times_offset(worker_count) + (size_t)worker_count * time_stride * sizeof(uint64_t);
}

static void release_workers(const quern__profiler *profiler)
{
    quern__release(quern__plan_allocator(profiler->plan), profiler->workers,
                   block_bytes(profiler->worker_count, profiler->time_stride), OBSERVED_ALIGNMENT_BYTES);
}

/* Reserves memory for each worker and a time per worker and system. Keeps the profiles of workers. */
static quern_result reserve_workers(quern__profiler *profiler, uint32_t worker_count)
{
    const uint32_t stride = (uint32_t)quern__align_up(
        (size_t)(profiler->plan->systems.count + 1) * QUERN__TIME_COUNT, TIMES_PER_LINE);
    if (worker_count <= profiler->worker_count && stride <= profiler->time_stride) return QUERN_OK;
    if (worker_count < profiler->worker_count) worker_count = profiler->worker_count;
    const size_t bytes = block_bytes(worker_count, stride);
    char *memory = quern__allocate(quern__plan_allocator(profiler->plan), bytes, OBSERVED_ALIGNMENT_BYTES);
    if (memory == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for the times of %u workers",
                           worker_count);
    memset(memory, 0, bytes);
    quern__observed_worker *workers = (quern__observed_worker *)(void *)memory;
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        workers[i].profile = profiler->workers[i].profile;
        workers[i].profile_total = profiler->workers[i].profile_total;
    }
    release_workers(profiler);
    profiler->workers = workers;
    profiler->times_ns = (uint64_t *)(void *)(memory + times_offset(worker_count));
    profiler->time_stride = stride;
    profiler->worker_count = worker_count;
    return QUERN_OK;
}

static void release_passes(const quern__profiler *profiler)
{
    quern__release(quern__plan_allocator(profiler->plan), profiler->passes,
                   profiler->pass_capacity * sizeof *profiler->passes, _Alignof(quern__pass_profile));
}

static quern_result fail_memory(const char *kind, uint32_t count)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for the profile of %u %s", count, kind);
}

static quern_result reserve_passes(quern__profiler *profiler)
{
    const uint32_t count = profiler->plan->pass_count;
    if (count > profiler->pass_capacity) {
        quern__pass_profile *passes = quern__allocate(
            quern__plan_allocator(profiler->plan), count * sizeof *passes, _Alignof(quern__pass_profile));
        if (passes == NULL) return fail_memory("passes", count);
        release_passes(profiler);
        profiler->passes = passes;
        profiler->pass_capacity = count;
    }
    if (count > 0) memset(profiler->passes, 0, count * sizeof *profiler->passes);
    profiler->passes_version = profiler->plan->passes_version;
    return QUERN_OK;
}

quern_result quern__profile_reserve(quern__profiler *profiler)
{
    const uint32_t count = profiler->plan->systems.count;
    if (!quern__array_reserve(quern__plan_allocator(profiler->plan), &profiler->systems, count))
        return fail_memory("systems", count);
    while (profiler->systems.count < count)
        profiler->systems.items[profiler->systems.count++] = (quern__system_profile){0};
    return profiler->passes_version == profiler->plan->passes_version ? QUERN_OK : reserve_passes(profiler);
}

/* --------------------------------------------------------------------------------------------- frames */

/* Decides what the frame records. A trace may be started and stopped at any time; the decision is valid for
 * the whole frame. */
static quern_result prepare(quern__frame_observer *observer, uint32_t worker_count)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    const bool was_on = profiler->is_on, was_traced = profiler->is_traced;
    profiler->is_traced = quern__trace_is_recording(profiler->trace);
    profiler->is_on = profiler->is_profiling || profiler->is_traced || profiler->capture != NULL;
    observer->is_observing = profiler->is_on || profiler->is_timing;
    observer->wants_loop_parts = profiler->capture != NULL;
    if (!observer->is_observing) return QUERN_OK;
    quern_result result = quern__profile_reserve(profiler);
    if (result == QUERN_OK) result = reserve_workers(profiler, worker_count);
    if (result == QUERN_OK)
        result = quern__hardware_counters_reserve(&profiler->counters, worker_count,
                                                  profiler->plan->systems.count,
                                                  quern__plan_allocator(profiler->plan));
    if (result != QUERN_OK) return result;
    if (profiler->is_traced != was_traced) profiler->observed_count = 0; /* a trace needs more samples */
    for (uint32_t i = 0; i < profiler->worker_count && profiler->is_on != was_on; i++)
        profiler->workers[i].sample_countdown = 0;
    return QUERN_OK;
}

static void destroy(quern__frame_observer *observer)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    const quern_allocator *allocator = quern__plan_allocator(profiler->plan);
    quern__trace_remove_schedule(profiler->trace);
    quern__hardware_counters_release(&profiler->counters, allocator);
    release_workers(profiler);
    release_passes(profiler);
    quern__array_release(allocator, &profiler->systems);
    quern__release(allocator, profiler, sizeof *profiler, _Alignof(quern__profiler));
}

static const quern__frame_observer_calls calls = {
    .prepare = prepare,
    .prepare_pass = quern__profile_prepare_pass,
    .begin_frame = quern__profile_begin_frame,
    .end_frame = quern__profile_end_frame,
    .begin_segment = quern__profile_begin_segment,
    .end_segment = quern__profile_end_segment,
    .run_job = quern__pass_run_observed,
    .begin_job = quern__profile_begin_job,
    .next_range = quern__profile_next_range,
    .end_job = quern__profile_end_job,
    .begin_calls = quern__profile_begin_calls,
    .end_call = quern__profile_end_call,
    .begin_sync = quern__profile_begin_sync,
    .end_sync = quern__profile_end_sync,
    .begin_stage = quern__profile_begin_stage,
    .begin_loop = quern__profile_begin_loop,
    .end_loop = quern__profile_end_loop,
    .end_part = quern__profile_end_part,
    .system_time_ns = quern__profile_time_ns,
    .destroy = destroy,
};

static quern_result create_profiler(quern__plan *plan, const quern_schedule_def *def,
                                    quern__frame_observer **out_observer)
{
    quern__profiler *profiler =
        quern__allocate(quern__plan_allocator(plan), sizeof *profiler, _Alignof(quern__profiler));
    if (profiler == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_schedule_create: no memory for the profiler");
    *profiler = (quern__profiler){
        .observer.calls = &calls, .plan = plan, .trace = def->trace, .is_timing = def->timing};
    profiler->trace_number = quern__trace_add_schedule(def->trace);
    *out_observer = &profiler->observer;
    return QUERN_OK;
}

/* This public call is here because frames do not depend on a particular observer, and each schedule has a
 * profiler. */
quern_result quern_schedule_create(quern_world *world, const quern_schedule_def *def,
                                   quern_schedule **out_schedule)
{
    return quern__schedule_create(world, def, create_profiler, out_schedule);
}

/* ----------------------------------------------------------------------------------------- public calls */

quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_profiling", "schedule");
    const quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_set_profiling");
    if (result != QUERN_OK) return result;
    quern__profiler *profiler = quern__schedule_profiler(schedule);
    profiler->is_profiling = is_on;
    quern__profile_reset(profiler);
    return QUERN_OK;
}

static quern_result check_source(const quern_hardware_source *source)
{
    if (source == NULL || (source->open != NULL && source->read != NULL && source->close != NULL))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "quern_schedule_set_counting: source->open, read or close is NULL; set all three");
}

quern_result quern_schedule_set_counting(quern_schedule *schedule, const quern_hardware_source *source)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_counting", "schedule");
    quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_set_counting");
    if (result == QUERN_OK) result = check_source(source);
    quern__profiler *profiler = quern__schedule_profiler(schedule);
    const quern_allocator *allocator = quern__plan_allocator(profiler->plan);
    if (result == QUERN_OK && source != NULL)
        result = quern__hardware_counters_start(&profiler->counters, source, allocator);
    if (result != QUERN_OK) return result;
    if (source == NULL) quern__hardware_counters_release(&profiler->counters, allocator);
    profiler->observed_count = 0; /* strides are measured again */
    quern__profile_reset_totals(profiler);
    return QUERN_OK;
}

quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                              double out_counts[QUERN_HARDWARE_EVENT_COUNT])
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_system_counts", "schedule");
    if (out_counts == NULL) return quern__fail_null("quern_schedule_get_system_counts", "out_counts");
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    if (system.bits == 0 || system.bits > profiler->plan->systems.count)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_get_system_counts: no system has handle %u; the schedule has %u systems",
            system.bits, profiler->plan->systems.count);
    const quern__system *counted = profiler->plan->systems.items[system.bits - 1];
    const double frames = (double)profiler->frame_count;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        out_counts[i] =
            quern__hardware_counters_rate(&profiler->counters, counted->index, (quern_hardware_event)i) *
            (double)quern__profile_copy_of(profiler, counted).total_ns / frames;
    return QUERN_OK;
}

quern_result quern_schedule_get_frame_profile(const quern_schedule *schedule,
                                              quern_frame_profile *out_profile)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_frame_profile", "schedule");
    if (out_profile == NULL) return quern__fail_null("quern_schedule_get_frame_profile", "out_profile");
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    *out_profile = profiler->is_profiling ? profiler->frame : (quern_frame_profile){0};
    return QUERN_OK;
}

quern_result quern_schedule_get_worker_profile(const quern_schedule *schedule, uint32_t worker_index,
                                               quern_worker_profile *out_profile)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_worker_profile", "schedule");
    if (out_profile == NULL) return quern__fail_null("quern_schedule_get_worker_profile", "out_profile");
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    const uint32_t worker_count = profiler->is_profiling ? profiler->frame_worker_count : 0;
    if (worker_index >= worker_count)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_get_worker_profile: worker_index is %u; the last profile has %u workers",
            worker_index, worker_count);
    *out_profile = profiler->workers[worker_index].profile;
    return QUERN_OK;
}
