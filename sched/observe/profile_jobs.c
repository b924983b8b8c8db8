/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"
#include "sched/observe/profile_internal.h"

/* The observer functions that workers call: begin and end of jobs, of their ranges, and of calls of systems. */

enum {
    FIRST_STRIDE = 16,
    MAX_STRIDE = 4096,
    PROFILE_SHARE = 1000, /* reciprocal of the part of a pass's time that samples may cost */
    TRACE_SHARE = 200,
    COUNTER_SHARE = 100,
    RECORD_NS = 30, /* approximate duration of recording an event */
    CLOCK_LOOKS = 32
};

/* -------------------------------------------------------------------------------------------- clock */

/* Measures the time between two consecutive clock reads. */
static uint64_t measure_clock_ns(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (uint32_t i = 0; i < CLOCK_LOOKS; i++) {
        const uint64_t start_ns = quern__clock_ns();
        const uint64_t took_ns = quern__clock_ns() - start_ns;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    return least_ns;
}

/* Relaxed: all threads measure about the same value, and nothing else depends on it. */
uint64_t quern__clock_cost_ns(void)
{
    static _Atomic uint64_t known_ns; /* cost plus 1; 0: unknown */
    uint64_t cost_ns = atomic_load_explicit(&known_ns, memory_order_relaxed);
    if (cost_ns == 0) {
        cost_ns = measure_clock_ns() + 1;
        atomic_store_explicit(&known_ns, cost_ns, memory_order_relaxed);
    }
    return cost_ns - 1;
}

/* ------------------------------------------------------------------------------------------ samples */

static uint32_t stride_of(const quern__profiler *profiler, const quern__pass *pass)
{
    const uint32_t stride = quern__profile_of_pass(profiler, pass)->sample_stride;
    return stride != 0 ? stride : FIRST_STRIDE;
}

uint32_t quern__profile_choose_stride(const quern__profiler *profiler, const quern__pass *pass,
                                      uint64_t busy_ns)
{
    const uint32_t chunk_count = pass->kind == QUERN__PASS_ONCE ? 1 : pass->chunk_count;
    uint64_t call_ns = quern__clock_cost_ns(), share = PROFILE_SHARE;
    if (profiler->is_traced) {
        call_ns += RECORD_NS;
        share = TRACE_SHARE;
    }
    if (quern__profile_counts(profiler)) {
        call_ns += profiler->counters.read_ns + quern__clock_cost_ns();
        share = COUNTER_SHARE;
    }
    const uint64_t stride = (pass->systems.count + 1) * call_ns * share * chunk_count / busy_ns;
    return stride < 1 ? 1 : stride > MAX_STRIDE ? MAX_STRIDE : (uint32_t)stride;
}

/* Returns the range up to the next sample, or the sample, which is a range of one chunk, so that other
 * chunks pay nothing for it. */
static quern__job_range next_sample(const quern__profiler *profiler, quern__observed_worker *worker,
                                    const quern__pass *pass, uint32_t begin, uint32_t end)
{
    const bool is_sample = worker->sample_countdown == 1;
    worker->is_recorded = is_sample && profiler->is_traced;
    worker->is_counted = is_sample && quern__profile_counts(profiler);
    if (is_sample) {
        worker->sample_countdown = stride_of(profiler, pass);
        return (quern__job_range){.end = begin + 1, .is_reported = true};
    }
    uint32_t count = end - begin;
    if (worker->sample_countdown != 0) {
        if (worker->sample_countdown <= count) count = worker->sample_countdown - 1;
        worker->sample_countdown -= count;
    }
    return (quern__job_range){.end = begin + count, .is_reported = profiler->is_timing};
}

/* Stores the duration of an item in the capture of this frame. */
static void end_item(const quern__profiler *profiler, quern__observed_worker *worker,
                     const quern__pass_stage *stage, uint32_t item)
{
    const uint64_t now_ns = quern__clock_ns();
    quern__capture_end_item(profiler, stage, item, now_ns - worker->item_start_ns);
    worker->item_start_ns = now_ns;
}

quern__job_range quern__profile_next_range(quern__frame_observer *observer, const quern__observed_job *job,
                                           uint32_t begin, uint32_t end)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    if (profiler->capture != NULL && job->pass->kind != QUERN__PASS_SERIAL) {
        if (begin > job->begin) end_item(profiler, worker, job->stage, begin - 1);
        end = begin + 1;
    }
    return next_sample(profiler, worker, job->pass, begin, end);
}

/* --------------------------------------------------------------------------------------------- calls */

void quern__profile_begin_calls(quern__frame_observer *observer, uint32_t worker_index)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[worker_index];
    if (worker->is_counted) quern__hardware_counters_begin(&profiler->counters, worker_index);
    worker->lap_start_ns = quern__clock_ns();
}

static void record_call(const quern__profiler *profiler, const quern__observed_call *call, uint64_t took_ns)
{
    static const quern__trace_kind kinds[] = {[QUERN__CALLBACK_BEGIN] = QUERN__TRACE_BEGIN,
                                              [QUERN__CALLBACK_RUN] = QUERN__TRACE_SYSTEM,
                                              [QUERN__CALLBACK_END] = QUERN__TRACE_END};
    const quern__trace_event event = {.begin_ns = profiler->workers[call->worker_index].lap_start_ns,
                                      .duration_ns = took_ns,
                                      .kind = kinds[call->callback],
                                      .name = quern__profile_of_system(profiler, call->system)->trace_name,
                                      .ordinal = call->ordinal,
                                      .count = call->row_count};
    quern__profile_record_event(profiler, call->worker_index, &event);
}

/* Adds the duration of the call to its system. Only its end is timed: it began when the previous call ended. */
void quern__profile_end_call(quern__frame_observer *observer, const quern__observed_call *call)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[call->worker_index];
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - worker->lap_start_ns;
    const uint32_t what = call->callback == QUERN__CALLBACK_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
    const uint64_t cost_ns = profiler->is_timing ? 0 : quern__clock_cost_ns();
    const uint64_t call_ns = took_ns > cost_ns ? took_ns - cost_ns : 0;
    *quern__profile_time_of(profiler, call->worker_index, call->system->index, what) += call_ns;
    if (worker->is_recorded) record_call(profiler, call, took_ns);
    worker->lap_start_ns = now_ns;
    if (!worker->is_counted) return;
    quern__hardware_counters_add(&profiler->counters, call->worker_index, call->system->index, call_ns);
    worker->lap_start_ns = quern__clock_ns(); /* the next call begins after the reading */
}

/* ---------------------------------------------------------------------------------------------- jobs */

static uint32_t executed_job_count_of(const quern__profiler *profiler, uint32_t worker_index)
{
    return profiler->jobs != NULL ? profiler->jobs->workers[worker_index].executed_job_count : 0;
}

/* Makes the capture observe loops inside of work that one thread runs, for forecasts. Only in frames on one
 * thread, where the duration of a loop is the sum of its pieces. */
static void observe_loops(const quern__profiler *profiler, const quern__observed_job *job)
{
    const quern__pass *pass = job->pass;
    if (profiler->jobs == NULL || profiler->frame.thread_count != 1) return;
    if (job->callback == QUERN__CALLBACK_BEGIN)
        quern__capture_set_loop_owner(profiler->capture, quern__profile_task_of(profiler, &pass->stages[0]),
                                      QUERN__TASK_BEFORE);
    else if (job->callback == QUERN__CALLBACK_END)
        quern__capture_set_loop_owner(
            profiler->capture, quern__profile_task_of(profiler, &pass->stages[pass->stage_count - 1]),
            QUERN__TASK_AFTER);
    else if (quern__stage_is_serial(job->stage))
        quern__capture_set_loop_owner(profiler->capture, quern__profile_task_of(profiler, job->stage),
                                      QUERN__TASK_ITEM);
    else
        return;
    profiler->jobs->workers[job->worker_index].loop_observer = &profiler->capture->loop_observer;
}

static void stop_observing_loops(const quern__profiler *profiler, const quern__observed_job *job)
{
    if (profiler->jobs != NULL) profiler->jobs->workers[job->worker_index].loop_observer = NULL;
}

/* Begins a job of a pass. A span continues while the worker runs consecutive jobs of the pass; then the
 * clock is not read. In a trace each job is a span. */
static void begin_items(const quern__profiler *profiler, const quern__observed_job *job)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    const quern__pass *pass = job->pass;
    const bool samples = profiler->is_profiling || profiler->is_traced;
    if (samples && (worker->sample_countdown == 0 || worker->sample_countdown > stride_of(profiler, pass)))
        worker->sample_countdown = stride_of(profiler, pass);
    if (profiler->capture != NULL) worker->item_start_ns = quern__clock_ns();
    const uint32_t executed_job_count = executed_job_count_of(profiler, job->worker_index);
    const quern__span *span = &worker->span;
    const bool continues_span = span->pass == pass && span->executed_job_count == executed_job_count &&
                                span->start_ns >= profiler->start_ns;
    if (continues_span && !profiler->is_traced) return;
    worker->span = (quern__span){
        .pass = pass, .executed_job_count = executed_job_count, .start_ns = quern__clock_ns()};
}

void quern__profile_begin_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    worker->is_counted = false;
    if (profiler->capture != NULL) observe_loops(profiler, job);
    if (job->callback == QUERN__CALLBACK_RUN) {
        if (profiler->is_on) begin_items(profiler, job);
        return;
    }
    worker->is_recorded = profiler->is_traced;
    quern__profile_begin_calls(observer, job->worker_index);
    worker->job_start_ns = worker->lap_start_ns;
}

static void record_job(const quern__profiler *profiler, const quern__observed_job *job, uint64_t begin_ns,
                       uint64_t took_ns)
{
    const quern__trace_event event = {.begin_ns = begin_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_PASS,
                                      .name = quern__profile_of_pass(profiler, job->pass)->trace_name,
                                      .ordinal = job->begin,
                                      .count = job->end - job->begin};
    quern__profile_record_event(profiler, job->worker_index, &event);
}

static void end_items(const quern__profiler *profiler, const quern__observed_job *job)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    if (profiler->capture != NULL) end_item(profiler, worker, job->stage, job->end - 1);
    const uint32_t first = job->pass->systems.items[0]->index;
    uint64_t *times = quern__profile_time_of(profiler, job->worker_index, first, 0);
    quern__span *span = &worker->span;
    span->chunk_count += job->end - job->begin;
    times[QUERN__TIME_COUNTED] += job->end - job->begin;
    const bool at_once = profiler->is_learning || profiler->is_traced;
    if (span->chunk_count < (at_once ? 1 : quern__profile_of_pass(profiler, job->pass)->span_chunk_count))
        return;
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - span->start_ns;
    const uint64_t chunk_ns = took_ns / span->chunk_count;
    times[QUERN__TIME_JOBS] += took_ns;
    times[QUERN__TIME_COUNTED] -= span->chunk_count;
    if (chunk_ns > times[QUERN__TIME_LONGEST]) times[QUERN__TIME_LONGEST] = chunk_ns;
    record_job(profiler, job, span->start_ns, took_ns);
    span->start_ns = now_ns;
    span->chunk_count = 0;
}

void quern__profile_end_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    if (profiler->capture != NULL) stop_observing_loops(profiler, job);
    if (job->callback == QUERN__CALLBACK_RUN) {
        end_items(profiler, job);
        return;
    }
    const uint64_t took_ns = quern__clock_ns() - profiler->workers[job->worker_index].job_start_ns;
    quern__profile_of_pass(profiler, job->pass)->hooks_ns += took_ns;
    if (profiler->capture != NULL) quern__capture_end_hooks(profiler, job, took_ns);
}
