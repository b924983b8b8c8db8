/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include "core/base/text.h"
#include "sched/frame/schedule_internal.h"
#include "sched/observe/profile_internal.h"

#include <inttypes.h>
#include <math.h>

/* The profiler, the observer of a schedule: samples, calls and jobs on the workers, the evaluation at the end of a
 * frame, segments and sync points, memory, and the public functions. */

enum {
    FIRST_STRIDE = 16,
    MAX_STRIDE = 4096,
    PROFILE_SHARE = 1000, /* reciprocal of the part of a pass's time that samples may cost */
    TRACE_SHARE = 200,
    COUNTER_SHARE = 100,
    RECORD_NS = 30, /* approximate duration of recording an event */
    CLOCK_LOOKS = 32,
    SPAN_CLOCK_READS = 500, /* minimum length of a timed span, in clock reads */
    MIN_SPANS = 16          /* minimum number of timed spans per pass; limits SPAN_CLOCK_READS */
};

/* -------------------------------------------------------------------------------------------- clock */

/* Relaxed: all threads measure about the same value, and nothing else depends on it. */
uint64_t quern__clock_cost_ns(void)
{
    static _Atomic uint64_t known_ns; /* cost plus 1; 0: unknown */
    uint64_t cost_ns = atomic_load_explicit(&known_ns, memory_order_relaxed);
    if (cost_ns == 0) {
        /* The time between two consecutive clock reads. */
        uint64_t least_ns = UINT64_MAX;
        for (uint32_t i = 0; i < CLOCK_LOOKS; i++) {
            const uint64_t start_ns = quern__clock_ns();
            const uint64_t took_ns = quern__clock_ns() - start_ns;
            if (took_ns < least_ns) least_ns = took_ns;
        }
        cost_ns = least_ns + 1;
        atomic_store_explicit(&known_ns, cost_ns, memory_order_relaxed);
    }
    return cost_ns - 1;
}

/* ---------------------------------------------------------------------------------------- intervals */

static uint64_t *stage_time(quern_frame_profile *frame, quern__sync_stage stage)
{
    switch (stage) {
    case QUERN__STAGE_SYNC:
        return &frame->sync_ns;
    case QUERN__STAGE_GATHER:
        return &frame->gather_ns;
    case QUERN__STAGE_MERGE:
        return &frame->merge_ns;
    case QUERN__STAGE_RESOLVE:
        return &frame->resolve_ns;
    default:
        return &frame->apply_ns;
    }
}

/* Returns one of the QUERN__TIME_ values of a system on a worker. */
static inline uint64_t *profile_time_of(const quern__profiler *profiler, uint32_t worker_index,
                                        uint32_t system_index, uint32_t what)
{
    return &profiler->times_ns[(size_t)worker_index * profiler->time_stride +
                               (size_t)system_index * QUERN__TIME_COUNT + what];
}

static void add_to_profile(quern__profiler *profiler, const quern__interval *interval)
{
    const uint64_t took_ns = interval->took_ns;
    const uint32_t worker_index = interval->worker_index;
    if (interval->kind == QUERN__INTERVAL_CALL) {
        const quern__observed_call *call = interval->call;
        const uint32_t what = call->callback == QUERN__CALLBACK_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
        const uint64_t cost_ns = profiler->is_timing ? 0 : quern__clock_cost_ns();
        const uint64_t call_ns = took_ns > cost_ns ? took_ns - cost_ns : 0;
        *profile_time_of(profiler, worker_index, call->system->number, what) += call_ns;
        if (profiler->workers[worker_index].is_counted)
            quern__hardware_counters_add(&profiler->counters, worker_index, call->system->number, call_ns);
    } else if (interval->kind == QUERN__INTERVAL_JOBS) {
        const uint32_t first = interval->job->pass->systems.items[0]->number;
        uint64_t *times = profile_time_of(profiler, worker_index, first, 0);
        const uint64_t chunk_ns = took_ns / interval->count;
        times[QUERN__TIME_JOBS] += took_ns;
        times[QUERN__TIME_COUNTED] -= interval->count;
        if (chunk_ns > times[QUERN__TIME_LONGEST]) times[QUERN__TIME_LONGEST] = chunk_ns;
    } else if (interval->kind == QUERN__INTERVAL_HOOKS) {
        quern__profile_of_pass(profiler, interval->job->pass)->hooks_ns += took_ns;
    } else if (interval->kind == QUERN__INTERVAL_STAGE) {
        *stage_time(&profiler->frame, interval->stage) += took_ns;
        if (interval->stage == QUERN__STAGE_SYNC) profiler->frame.critical_path_ns += took_ns;
    } else if (interval->kind == QUERN__INTERVAL_PART) {
        /* The caller leads the sync point, so the time of the sync point includes its parts already. */
        if (worker_index != profiler->caller_index) profiler->workers[worker_index].sync_ns += took_ns;
    } else if (interval->kind == QUERN__INTERVAL_FRAME) {
        profiler->frame.time_ns = took_ns;
    }
}

static inline quern__system_profile *profile_of_system(const quern__profiler *profiler,
                                                       const quern__system *system)
{
    return &profiler->systems.items[system->number];
}

/* Not inlined: most frames have no trace. */
static QUERN__NO_INLINE void add_to_trace(const quern__profiler *profiler, const quern__interval *interval)
{
    static const quern__trace_kind kinds[] = {[QUERN__CALLBACK_BEGIN] = QUERN__TRACE_BEGIN,
                                              [QUERN__CALLBACK_RUN] = QUERN__TRACE_SYSTEM,
                                              [QUERN__CALLBACK_END] = QUERN__TRACE_END};
    const uint32_t track = interval->worker_index;
    quern__trace_event event = {.begin_ns = interval->begin_ns,
                                .duration_ns = interval->took_ns,
                                .kind = QUERN__TRACE_SYNC,
                                .name = QUERN__TRACE_NO_NAME,
                                .ordinal = interval->stage,
                                .count = interval->count};
    if (interval->kind == QUERN__INTERVAL_CALL) {
        if (!profiler->workers[track].is_recorded) return;
        event.kind = kinds[interval->call->callback];
        event.name = profile_of_system(profiler, interval->call->system)->trace_name;
        event.ordinal = interval->call->ordinal;
        event.count = interval->call->row_count;
    } else if (interval->kind == QUERN__INTERVAL_JOBS) {
        event.kind = QUERN__TRACE_PASS;
        event.name = quern__profile_of_pass(profiler, interval->job->pass)->trace_name;
        event.ordinal = interval->job->begin;
        event.count = interval->job->end - interval->job->begin;
    } else if (interval->kind == QUERN__INTERVAL_FRAME) {
        event.kind = QUERN__TRACE_FRAME;
        event.ordinal = interval->ordinal;
        event.count = profiler->trace_number;
    } else if (interval->kind == QUERN__INTERVAL_ITEM || interval->kind == QUERN__INTERVAL_HOOKS ||
               (interval->kind == QUERN__INTERVAL_PART && track == profiler->caller_index)) {
        return; /* of the caller, the stage is shown; of items and hooks, their calls */
    }
    quern__trace_record_if_running(profiler->trace, track, &event);
}

/* Passes an interval to its readers. Called by the worker. */
static void profile_record(quern__profiler *profiler, const quern__interval *interval)
{
    add_to_profile(profiler, interval);
    if (profiler->capture != NULL) quern__capture_add(profiler, interval);
    if (profiler->is_traced) add_to_trace(profiler, interval);
}

/* ------------------------------------------------------------------------------------------ samples */

static uint32_t stride_of(const quern__profiler *profiler, const quern__pass *pass)
{
    const uint32_t stride = quern__profile_of_pass(profiler, pass)->sample_stride;
    return stride != 0 ? stride : FIRST_STRIDE;
}

/* Whether samples also read hardware counters. */
static inline bool profile_counts(const quern__profiler *profiler)
{
    return profiler->is_profiling && profiler->counters.is_on;
}

/* Returns the sample stride for a pass if its chunks took busy_ns together. */
static uint32_t profile_choose_stride(const quern__profiler *profiler, const quern__pass *pass,
                                      uint64_t busy_ns)
{
    const uint32_t chunk_count = pass->kind == QUERN__PASS_ONCE ? 1 : pass->chunk_count;
    uint64_t call_ns = quern__clock_cost_ns(), share = PROFILE_SHARE;
    if (profiler->is_traced) {
        call_ns += RECORD_NS;
        share = TRACE_SHARE;
    }
    if (profile_counts(profiler)) {
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
    worker->is_counted = is_sample && profile_counts(profiler);
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

/* Returns an interval that ends now. */
static inline quern__interval interval_end(quern__interval_kind kind, uint32_t worker_index,
                                           uint64_t begin_ns)
{
    return (quern__interval){.kind = kind,
                             .worker_index = worker_index,
                             .begin_ns = begin_ns,
                             .took_ns = quern__clock_ns() - begin_ns};
}

/* Ends an item in a captured frame. The next one begins. */
static void end_item(quern__profiler *profiler, const quern__observed_job *job, uint32_t item)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    quern__interval ended = interval_end(QUERN__INTERVAL_ITEM, job->worker_index, worker->item_start_ns);
    ended.job = job;
    ended.ordinal = item;
    worker->item_start_ns += ended.took_ns;
    profile_record(profiler, &ended);
}

static quern__job_range profile_next_range(quern__frame_observer *observer, const quern__observed_job *job,
                                           uint32_t begin, uint32_t end)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    if (profiler->capture != NULL && job->pass->kind != QUERN__PASS_SERIAL) {
        if (begin > job->begin) end_item(profiler, job, begin - 1);
        end = begin + 1;
    }
    return next_sample(profiler, worker, job->pass, begin, end);
}

/* --------------------------------------------------------------------------------------------- calls */

static void profile_begin_calls(quern__frame_observer *observer, uint32_t worker_index)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[worker_index];
    if (worker->is_counted) quern__hardware_counters_begin(&profiler->counters, worker_index);
    worker->lap_start_ns = quern__clock_ns();
}

/* Only the end of a call is timed: it began when the previous one ended. */
static void profile_end_call(quern__frame_observer *observer, const quern__observed_call *call)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[call->worker_index];
    quern__interval ended = interval_end(QUERN__INTERVAL_CALL, call->worker_index, worker->lap_start_ns);
    ended.call = call;
    worker->lap_start_ns += ended.took_ns;
    profile_record(profiler, &ended);
    if (worker->is_counted)
        worker->lap_start_ns = quern__clock_ns(); /* after the reading of the counters */
}

/* ---------------------------------------------------------------------------------------------- jobs */

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
    const uint32_t executed_job_count =
        profiler->jobs != NULL ? profiler->jobs->workers[job->worker_index].executed_job_count : 0;
    const quern__span *span = &worker->span;
    const bool continues_span = span->pass == pass && span->executed_job_count == executed_job_count &&
                                span->start_ns >= profiler->start_ns;
    if (continues_span && !profiler->is_traced) return;
    worker->span = (quern__span){
        .pass = pass, .executed_job_count = executed_job_count, .start_ns = quern__clock_ns()};
}

static void profile_begin_job(quern__frame_observer *observer, const quern__observed_job *job)
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
    profile_begin_calls(observer, job->worker_index);
    worker->job_start_ns = worker->lap_start_ns;
}

static void end_items(quern__profiler *profiler, const quern__observed_job *job)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    if (profiler->capture != NULL) end_item(profiler, job, job->end - 1);
    quern__span *span = &worker->span;
    span->chunk_count += job->end - job->begin;
    *profile_time_of(profiler, job->worker_index, job->pass->systems.items[0]->number,
                     QUERN__TIME_COUNTED) += job->end - job->begin;
    const bool at_once = profiler->is_learning || profiler->is_traced;
    if (span->chunk_count < (at_once ? 1 : quern__profile_of_pass(profiler, job->pass)->span_chunk_count))
        return;
    quern__interval ended = interval_end(QUERN__INTERVAL_JOBS, job->worker_index, span->start_ns);
    ended.job = job;
    ended.count = span->chunk_count;
    profile_record(profiler, &ended);
    span->start_ns += ended.took_ns;
    span->chunk_count = 0;
}

static void profile_end_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    if (profiler->capture != NULL && profiler->jobs != NULL)
        profiler->jobs->workers[job->worker_index].loop_observer = NULL;
    if (job->callback == QUERN__CALLBACK_RUN) {
        end_items(profiler, job);
        return;
    }
    quern__interval ended = interval_end(QUERN__INTERVAL_HOOKS, job->worker_index,
                                         profiler->workers[job->worker_index].job_start_ns);
    ended.job = job;
    profile_record(profiler, &ended);
}

/* -------------------------------------------------------------------------------------------- evaluation */

/* Evaluation of a frame: how workers spent their time, and how the time of passes divides among systems. */

enum {
    LEARN_INTERVAL = 16, /* shares and strides are updated once per this many frames */
    FADE_SHARE = 2,
};

/* False for a system that was added since the last frame. */
static bool has_times(const quern__profiler *profiler, const quern__system *system)
{
    return system->number < profiler->systems.count &&
           (system->number + 1) * QUERN__TIME_COUNT <= profiler->time_stride;
}

static uint64_t sum_times(const quern__profiler *profiler, const quern__system *system, uint32_t what)
{
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < profiler->worker_count; i++)
        time_ns += *profile_time_of(profiler, i, system->number, what);
    return time_ns;
}

/* Returns the growth of a sum since the last call. The sum starts again at 0 when the workers are
 * replaced. */
static uint64_t growth(uint64_t *seen, uint64_t sum)
{
    const uint64_t before = *seen <= sum ? *seen : 0;
    *seen = sum;
    return sum - before;
}

/* -------------------------------------------------------------------------------------------- frames */

static uint64_t slept_ns(const quern__profiler *profiler, uint32_t index, uint64_t now_ns)
{
    const quern_jobs *jobs = profiler->jobs;
    return jobs != NULL && index < jobs->worker_count
               ? quern__worker_sleep_ns(&jobs->workers[index], now_ns)
               : 0;
}

/* Requests idle times from the pool's workers, or withdraws the request. Frames of other schedules, with or
 * without a profile, may run on the pool at the same time: a profiler withdraws only its own request, and
 * another one then makes its own in its next frame. Relaxed: a worker that sees the request late has not
 * counted its idle time until then. Most frames only load. */
static void request_idle_times(const quern__profiler *profiler)
{
    quern_jobs *jobs = profiler->jobs;
    if (jobs == NULL) return;
    const void *reader = atomic_load_explicit(&jobs->idle_time_reader, memory_order_relaxed);
    if (profiler->is_profiling && reader == NULL)
        atomic_store_explicit(&jobs->idle_time_reader, profiler, memory_order_relaxed);
    else if (!profiler->is_profiling && reader == profiler)
        atomic_store_explicit(&jobs->idle_time_reader, NULL, memory_order_relaxed);
}

static inline uint64_t profile_idle_ns(const quern__profiler *profiler, uint32_t index, uint64_t now_ns)
{
    const quern_jobs *jobs = profiler->jobs;
    return jobs != NULL && index < jobs->worker_count ? quern__worker_idle_ns(&jobs->workers[index], now_ns)
                                                      : 0;
}

static void profile_begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    profiler->jobs = frame->jobs;
    request_idle_times(profiler);
    if (profiler->is_timing)
        memset(profiler->times_ns, 0,
               (size_t)profiler->worker_count * profiler->time_stride * sizeof *profiler->times_ns);
    if (!profiler->is_on) return;
    /* The first frames all update shares and strides, because there are no earlier samples. */
    profiler->is_learning =
        profiler->observed_count < LEARN_INTERVAL || profiler->observed_count % LEARN_INTERVAL == 0;
    profiler->observed_count++;
    profiler->start_ns = frame->begin_ns;
    profiler->frame =
        (quern_frame_profile){.frame_index = frame->frame_index, .thread_count = frame->thread_count};
    profiler->segments_ns = 0;
    profiler->frame_worker_count = frame->worker_count;
    profiler->caller_index = frame->caller_index;
    if (profiler->is_traced) quern__trace_check_worker_count(profiler->trace, frame->worker_count);
    for (uint32_t i = 0; i < profiler->frame_worker_count && profiler->is_profiling; i++) {
        profiler->workers[i].sleep_seen_ns = slept_ns(profiler, i, frame->begin_ns);
        profiler->workers[i].idle_seen_ns = profile_idle_ns(profiler, i, frame->begin_ns);
    }
    for (uint32_t i = 0; i < profiler->plan->pass_count; i++)
        profiler->passes[i].frame_ns = 0;
}

/* With `timing` the times are those of this frame; without it they accumulate over frames. */
static uint64_t take_times(const quern__profiler *profiler, const quern__system *system, uint32_t what,
                           uint64_t *seen_ns)
{
    if (profiler->is_timing) *seen_ns = 0;
    return growth(seen_ns, sum_times(profiler, system, what));
}

/* Whether the system ran in this frame. Reactions may have run in any round of the frame. */
static bool took_part(const quern__system *system)
{
    return system->reaction != NULL ? system->step_view_count > 0 : system->is_active;
}

static double rows_of(const quern__system *system)
{
    return (double)(system->reaction != NULL ? system->step_entity_count : system->entity_count) + 1;
}

/* Divides the time of the pass's jobs among its systems: by the samples, or by rows if there are no samples
 * yet. */
static void divide_pass(const quern__profiler *profiler, const quern__pass *pass)
{
    const bool has_hooks = pass->has_begin || pass->has_end;
    const double pass_ns = (double)quern__profile_of_pass(profiler, pass)->frame_ns;
    double sampled_ns = 0, rows = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        quern__system_profile *profile = profile_of_system(profiler, system);
        if (profiler->is_learning) {
            const bool fades = profiler->observed_count % LEARN_INTERVAL == 1; /* includes this frame */
            if (fades) profile->sampled_ns -= profile->sampled_ns / FADE_SHARE;
            profile->sampled_ns += take_times(profiler, system, QUERN__TIME_VIEWS, &profile->views_seen_ns);
        }
        profile->profile_ns =
            has_hooks ? take_times(profiler, system, QUERN__TIME_HOOKS, &profile->hooks_seen_ns) : 0;
        if (!took_part(system)) continue;
        sampled_ns += (double)profile->sampled_ns;
        rows += rows_of(system);
    }
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        quern__system_profile *profile = profile_of_system(profiler, system);
        if (!took_part(system)) continue;
        const double share =
            sampled_ns > 0 ? (double)profile->sampled_ns / sampled_ns : rows_of(system) / rows;
        profile->profile_ns += (uint64_t)(pass_ns * share);
    }
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
    return value < limit ? value : limit;
}

/* A sum that is read while its worker changes it may be too small for a moment; see
 * sched/jobs/describe_jobs.c. */
static uint64_t passed(uint64_t before_ns, uint64_t now_ns)
{
    return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* Returns how a worker spent the frame. The caller is busy while segments run, other workers during the
 * whole frame, minus idle time in each case. */
static quern_worker_profile worker_profile(const quern__profiler *profiler, uint32_t index, uint64_t now_ns)
{
    quern__observed_worker *observed = &profiler->workers[index];
    const quern_frame_profile *frame = &profiler->frame;
    /* External threads other than the one that runs the frame are not part of the frame. */
    if (index != profiler->caller_index && (index == 0 || index >= profiler->frame.thread_count))
        return (quern_worker_profile){0};
    const uint64_t idle_ns = passed(observed->idle_seen_ns, profile_idle_ns(profiler, index, now_ns));
    const uint64_t asleep_ns = passed(observed->sleep_seen_ns, slept_ns(profiler, index, now_ns));
    const uint64_t without_ns = at_most(idle_ns, frame->time_ns);
    const uint64_t helped_ns = growth(&observed->sync_seen_ns, observed->sync_ns);
    quern_worker_profile worker = {.sync_ns = at_most(helped_ns, frame->time_ns - without_ns)};
    if (index == profiler->caller_index) {
        worker.sync_ns = frame->sync_ns;
        worker.busy_ns = at_most(profiler->segments_ns, frame->time_ns - frame->sync_ns);
    } else {
        worker.busy_ns = frame->time_ns - without_ns - worker.sync_ns;
    }
    const uint64_t left_ns = frame->time_ns - worker.busy_ns - worker.sync_ns;
    worker.idle_ns = at_most(asleep_ns, left_ns);
    worker.stealing_ns = left_ns - worker.idle_ns;
    return worker;
}

static void add_worker(quern_worker_profile *sum, const quern_worker_profile *worker)
{
    sum->busy_ns += worker->busy_ns;
    sum->stealing_ns += worker->stealing_ns;
    sum->idle_ns += worker->idle_ns;
    sum->sync_ns += worker->sync_ns;
}

/* Resets the sums of earlier frames; profile_reset also resets shares and strides. */
static void profile_reset_totals(quern__profiler *profiler)
{
    profiler->total = (quern_frame_profile){0};
    profiler->frame_count = 0;
    quern__hardware_counters_reset(&profiler->counters);
    for (uint32_t i = 0; i < profiler->worker_count; i++)
        profiler->workers[i].profile_total = (quern_worker_profile){0};
    for (uint32_t i = 0; i < profiler->systems.count; i++) {
        quern__system_profile *profile = &profiler->systems.items[i];
        profile->total_ns = 0;
        profile->total_view_count = profile->total_entity_count = profile->total_command_count = 0;
    }
}

static void profile_end_frame(quern__frame_observer *observer)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    quern__interval ended = interval_end(QUERN__INTERVAL_FRAME, 0, profiler->start_ns);
    const uint64_t now_ns = ended.begin_ns + ended.took_ns;
    ended.ordinal = (uint32_t)profiler->frame.frame_index;
    profile_record(profiler, &ended);
    if (!profiler->is_profiling) return;
    if (profiler->total.thread_count != profiler->frame.thread_count) profile_reset_totals(profiler);
    for (uint32_t i = 0; i < profiler->frame_worker_count; i++) {
        quern__observed_worker *observed = &profiler->workers[i];
        observed->profile = worker_profile(profiler, i, now_ns);
        add_worker(&profiler->frame.workers, &observed->profile);
        add_worker(&observed->profile_total, &observed->profile);
    }
    const double all_ns = (double)profiler->frame.time_ns * profiler->frame.thread_count;
    profiler->frame.efficiency = all_ns > 0 ? (double)profiler->frame.workers.busy_ns / all_ns : 0;
    /* If the frame has rebuilt the passes but could not run, the new passes have no profile. */
    const bool has_passes = profiler->passes_version == profiler->plan->passes_version;
    for (uint32_t i = 0; i < profiler->plan->segments.count && has_passes; i++)
        for (uint32_t k = 0; k < profiler->plan->segments.items[i].passes.count; k++)
            divide_pass(profiler, profiler->plan->segments.items[i].passes.items[k]);
    const quern_frame_profile *frame = &profiler->frame;
    quern_frame_profile *total = &profiler->total;
    profiler->frame_count++;
    total->thread_count = frame->thread_count;
    total->time_ns += frame->time_ns;
    total->sync_ns += frame->sync_ns;
    total->gather_ns += frame->gather_ns;
    total->merge_ns += frame->merge_ns;
    total->resolve_ns += frame->resolve_ns;
    total->apply_ns += frame->apply_ns;
    total->critical_path_ns += frame->critical_path_ns;
    add_worker(&total->workers, &frame->workers);
    for (uint32_t i = 0; i < profiler->plan->systems.count; i++) {
        const quern__system *system = profiler->plan->systems.items[i];
        quern__system_profile *profile = profile_of_system(profiler, system);
        quern_system_stats stats;
        const quern_system handle = {.bits = system->handle_bits};
        if (quern_schedule_get_system_stats(profiler->plan->schedule, handle, &stats) != QUERN_OK) continue;
        profile->total_ns += stats.time_ns;
        profile->total_view_count += stats.view_count;
        profile->total_entity_count += stats.entity_count;
        profile->total_command_count += stats.command_count;
    }
}

static uint64_t profile_time_ns(const quern__frame_observer *observer, const quern__system *system)
{
    const quern__profiler *profiler = (const quern__profiler *)(const void *)observer;
    if (!has_times(profiler, system)) return 0;
    if (profiler->is_timing)
        return sum_times(profiler, system, QUERN__TIME_VIEWS) +
               sum_times(profiler, system, QUERN__TIME_HOOKS);
    return profiler->is_profiling ? profile_of_system(profiler, system)->profile_ns : 0;
}

/* Resets the profile: the times of earlier frames, shares and strides. */
static void profile_reset(quern__profiler *profiler)
{
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        profiler->workers[i].sync_seen_ns = profiler->workers[i].sync_ns;
        profiler->workers[i].profile = (quern_worker_profile){0};
    }
    for (uint32_t i = 0; i < profiler->plan->systems.count; i++) {
        const quern__system *system = profiler->plan->systems.items[i];
        if (!has_times(profiler, system)) continue;
        quern__system_profile *profile = profile_of_system(profiler, system);
        (void)take_times(profiler, system, QUERN__TIME_VIEWS, &profile->views_seen_ns);
        (void)take_times(profiler, system, QUERN__TIME_HOOKS, &profile->hooks_seen_ns);
        profile->sampled_ns = profile->profile_ns = 0;
    }
    profiler->frame = (quern_frame_profile){0};
    profiler->observed_count = 0;
    profile_reset_totals(profiler);
}

/* --------------------------------------------------------------------------------------------- names */

void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes)
{
    const char *first = pass->systems.items[0]->name;
    if (pass->systems.count == 1)
        snprintf(name, bytes, "%s", first);
    else
        snprintf(name, bytes, "%.*s + %" PRIu32, QUERN_MAX_NAME_BYTES - 13, first, pass->systems.count - 1);
}

static quern_result fail_memory(const char *kind, uint32_t count)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for the profile of %u %s", count, kind);
}

static void release_passes(const quern__profiler *profiler)
{
    quern__release(quern__plan_allocator(profiler->plan), profiler->passes,
                   profiler->pass_capacity * sizeof *profiler->passes, _Alignof(quern__pass_profile));
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

/* Reserves memory for the profile of each pass and system. If the passes were rebuilt, the profiles of the
 * old passes are dropped. Errors: OUT_OF_MEMORY. */
static quern_result profile_reserve(quern__profiler *profiler)
{
    const uint32_t count = profiler->plan->slots.count;
    if (!quern__array_reserve(quern__plan_allocator(profiler->plan), &profiler->systems, count))
        return fail_memory("systems", count);
    while (profiler->systems.count < count)
        profiler->systems.items[profiler->systems.count++] = (quern__system_profile){0};
    return profiler->passes_version == profiler->plan->passes_version ? QUERN_OK : reserve_passes(profiler);
}

static quern_result profile_prepare_pass(quern__frame_observer *observer, quern__pass *pass)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern_trace *trace = profiler->trace;
    if (!observer->is_observing && trace == NULL) return QUERN_OK;
    quern_result result = profile_reserve(profiler);
    if (result != QUERN_OK) return result;
    quern__pass_profile *profile = quern__profile_of_pass(profiler, pass);
    if (trace == NULL || profile->is_named) return QUERN_OK;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__profile_describe_pass(pass, name, sizeof name);
    result = quern_trace_add_name(trace, name, &profile->trace_name);
    for (uint32_t i = 0; i < pass->systems.count && result == QUERN_OK; i++) {
        const quern__system *system = pass->systems.items[i];
        result =
            quern_trace_add_name(trace, system->name, &profile_of_system(profiler, system)->trace_name);
    }
    profile->is_named = result == QUERN_OK;
    return result;
}

/* ------------------------------------------------------------------------------------------ segments */

static void profile_begin_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    profiler->segment_start_ns = quern__clock_ns();
    profiler->segment_idle_ns =
        profile_idle_ns(profiler, profiler->caller_index, profiler->segment_start_ns);
    /* Work of the caller before this segment is not part of a span. */
    profiler->workers[profiler->caller_index].span.pass = NULL;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__profile_of_pass(profiler, segment->passes.items[i])->hooks_ns = 0;
    if (profiler->capture != NULL) quern__capture_begin_segment(profiler, segment);
}

/* Times of a pass's jobs in a segment. */
typedef struct pass_times {
    uint64_t timed_ns;      /* total of the timed jobs */
    uint64_t longest_ns;    /* longest chunk of the timed jobs */
    uint64_t counted_count; /* number of chunks in jobs that were not timed */
} pass_times;

static uint64_t take(uint64_t *time)
{
    const uint64_t taken = *time;
    *time = 0;
    return taken;
}

/* Takes the times of a pass and resets them. Called between segments, when no worker changes them. */
static pass_times take_jobs(const quern__profiler *profiler, const quern__pass *pass)
{
    const uint32_t first = pass->systems.items[0]->number;
    pass_times sum = {0};
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        sum.timed_ns += take(profile_time_of(profiler, i, first, QUERN__TIME_JOBS));
        sum.counted_count += take(profile_time_of(profiler, i, first, QUERN__TIME_COUNTED));
        const uint64_t longest_ns = take(profile_time_of(profiler, i, first, QUERN__TIME_LONGEST));
        if (longest_ns > sum.longest_ns) sum.longest_ns = longest_ns;
    }
    return sum;
}

/* Chooses the spans and samples of later frames from the duration of chunks in this one. Workers read these
 * values in each job; each write causes cache misses on all workers, so they are updated only in some
 * frames. */
static void learn(const quern__profiler *profiler, const quern__pass *pass, const pass_times *times)
{
    quern__pass_profile *profile = quern__profile_of_pass(profiler, pass);
    if (times->timed_ns == 0 || pass->item_count <= times->counted_count) return;
    profile->chunk_ns = times->timed_ns / (pass->item_count - times->counted_count);
    const uint64_t most = pass->item_count / MIN_SPANS;
    const uint64_t wanted = SPAN_CLOCK_READS * quern__clock_cost_ns() / (profile->chunk_ns + 1);
    profile->span_chunk_count = (uint32_t)(wanted < most ? wanted : most);
    profile->sample_stride =
        profile_choose_stride(profiler, pass, profile->chunk_ns * pass->item_count + 1);
}

/* Estimates the duration of the pass with one thread per chunk: the longest chunk once per stage, at most
 * busy_ns. */
static uint64_t least_ns(const quern__pass *pass, const pass_times *times, uint64_t chunk_ns,
                         uint64_t busy_ns)
{
    const bool is_known = times->longest_ns > 0 || times->counted_count == 0;
    const uint64_t longest_ns = is_known ? times->longest_ns : chunk_ns;
    if (pass->stage_count == 1) return longest_ns;
    return longest_ns * pass->stage_count < busy_ns ? longest_ns * pass->stage_count : busy_ns;
}

/* Returns the duration of the longest chain of passes that wait for each other, with one thread per chunk.
 * The order of passes respects what they wait for. */
static uint64_t longest_path_ns(const quern__profiler *profiler, const quern__segment *segment)
{
    uint64_t longest_ns = 0;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        const quern__pass *pass = segment->passes.items[i];
        quern__pass_profile *profile = quern__profile_of_pass(profiler, pass);
        uint64_t start_ns = 0;
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const quern__pass *before = segment->passes.items[pass->waits_for.items[k]];
            const uint64_t end_ns = quern__profile_of_pass(profiler, before)->path_ns;
            if (end_ns > start_ns) start_ns = end_ns;
        }
        profile->path_ns = start_ns + profile->hooks_ns + profile->least_ns;
        if (profile->path_ns > longest_ns) longest_ns = profile->path_ns;
    }
    return longest_ns;
}

static void profile_end_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    profiler->segments_ns +=
        now_ns - profiler->segment_start_ns -
        (profile_idle_ns(profiler, profiler->caller_index, now_ns) - profiler->segment_idle_ns);
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        const quern__pass *pass = segment->passes.items[i];
        quern__pass_profile *profile = quern__profile_of_pass(profiler, pass);
        const pass_times times = take_jobs(profiler, pass);
        const uint64_t busy_ns = times.timed_ns + times.counted_count * profile->chunk_ns;
        profile->frame_ns += busy_ns;
        profile->least_ns = least_ns(pass, &times, profile->chunk_ns, busy_ns);
        if (profiler->is_learning || profile->chunk_ns == 0) learn(profiler, pass, &times);
    }
    profiler->frame.critical_path_ns += longest_path_ns(profiler, segment);
    if (profiler->capture != NULL) quern__capture_finish_segment(profiler->capture, quern__clock_ns());
}

/* --------------------------------------------------------------------------------------- sync points */

/* Ends the current stage. */
static void end_stage(quern__profiler *profiler, uint64_t now_ns)
{
    if (profiler->stage == QUERN__STAGE_SYNC) return;
    const quern__interval stage = {.kind = QUERN__INTERVAL_STAGE,
                                   .worker_index = profiler->caller_index,
                                   .begin_ns = profiler->stage_start_ns,
                                   .took_ns = now_ns - profiler->stage_start_ns,
                                   .stage = profiler->stage};
    profile_record(profiler, &stage);
}

static void profile_begin_sync(quern__frame_observer *observer)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    profiler->stage = QUERN__STAGE_SYNC;
    if (profiler->capture != NULL) quern__capture_start_segment(profiler->capture, true, quern__clock_ns());
}

static void profile_begin_stage(quern__frame_observer *observer, quern__sync_stage stage)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    const uint64_t now_ns = quern__clock_ns();
    end_stage(profiler, now_ns);
    profiler->stage = stage;
    profiler->stage_start_ns = now_ns;
}

static void profile_end_sync(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(profiler, now_ns);
    const quern__interval sync = {.kind = QUERN__INTERVAL_STAGE,
                                  .worker_index = profiler->caller_index,
                                  .begin_ns = begin_ns,
                                  .took_ns = now_ns - begin_ns,
                                  .stage = QUERN__STAGE_SYNC,
                                  .count = command_count};
    profile_record(profiler, &sync);
}

static void profile_begin_loop(quern__frame_observer *observer, uint32_t part_count)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    if (profiler->capture == NULL) return;
    quern__capture_add_gap(profiler->capture, quern__clock_ns());
    quern__capture_start_loop(profiler->capture, part_count);
}

static void profile_end_loop(quern__frame_observer *observer)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    if (profiler->capture != NULL) quern__capture_finish_loop(profiler->capture, quern__clock_ns());
}

static void profile_end_part(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern__interval part = interval_end(QUERN__INTERVAL_PART, worker_index, begin_ns);
    part.stage = profiler->stage;
    profile_record(profiler, &part);
}

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
        (size_t)(profiler->plan->slots.count + 1) * QUERN__TIME_COUNT, TIMES_PER_LINE);
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
    quern_result result = profile_reserve(profiler);
    if (result == QUERN_OK) result = reserve_workers(profiler, worker_count);
    if (result == QUERN_OK)
        result =
            quern__hardware_counters_reserve(&profiler->counters, worker_count, profiler->plan->slots.count,
                                             quern__plan_allocator(profiler->plan));
    if (result != QUERN_OK) return result;
    if (profiler->is_traced != was_traced) profiler->observed_count = 0; /* a trace needs more samples */
    for (uint32_t i = 0; i < profiler->worker_count && profiler->is_on != was_on; i++)
        profiler->workers[i].sample_countdown = 0;
    return QUERN_OK;
}

static void forget_system(quern__frame_observer *observer, const quern__system *system)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    const uint32_t number = system->number;
    if (number < profiler->systems.count)
        profiler->systems.items[number] = (quern__system_profile){.trace_name = 0};
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        if ((number + 1) * QUERN__TIME_COUNT <= profiler->time_stride)
            memset(profile_time_of(profiler, i, number, 0), 0,
                   QUERN__TIME_COUNT * sizeof *profiler->times_ns);
        profiler->workers[i].span.pass = NULL;
    }
    quern__hardware_counters_forget(&profiler->counters, number);
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
    .prepare_pass = profile_prepare_pass,
    .begin_frame = profile_begin_frame,
    .end_frame = profile_end_frame,
    .begin_segment = profile_begin_segment,
    .end_segment = profile_end_segment,
    .run_job = quern__pass_run_observed,
    .begin_job = profile_begin_job,
    .next_range = profile_next_range,
    .end_job = profile_end_job,
    .begin_calls = profile_begin_calls,
    .end_call = profile_end_call,
    .begin_sync = profile_begin_sync,
    .end_sync = profile_end_sync,
    .begin_stage = profile_begin_stage,
    .begin_loop = profile_begin_loop,
    .end_loop = profile_end_loop,
    .end_part = profile_end_part,
    .system_time_ns = profile_time_ns,
    .forget_system = forget_system,
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
    profile_reset(profiler);
    return QUERN_OK;
}

quern_result quern_schedule_set_counting(quern_schedule *schedule, const quern_hardware_source *source)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_counting", "schedule");
    quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_set_counting");
    if (result != QUERN_OK) return result;
    if (source != NULL && (source->open == NULL || source->read == NULL || source->close == NULL))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_set_counting: source->open, read or close is NULL; set all three");
    quern__profiler *profiler = quern__schedule_profiler(schedule);
    const quern_allocator *allocator = quern__plan_allocator(profiler->plan);
    if (source != NULL) result = quern__hardware_counters_start(&profiler->counters, source, allocator);
    if (result != QUERN_OK) return result;
    if (source == NULL) quern__hardware_counters_release(&profiler->counters, allocator);
    profiler->observed_count = 0; /* strides are measured again */
    profile_reset_totals(profiler);
    return QUERN_OK;
}

/* Returns a copy of the profile of a system; all zero for a system that was added after the last profiled
 * frame. */
static inline quern__system_profile profile_copy_of(const quern__profiler *profiler,
                                                    const quern__system *system)
{
    return system->number < profiler->systems.count ? profiler->systems.items[system->number]
                                                    : (quern__system_profile){0};
}

quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                              double out_counts[QUERN_HARDWARE_EVENT_COUNT])
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_system_counts", "schedule");
    if (out_counts == NULL) return quern__fail_null("quern_schedule_get_system_counts", "out_counts");
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    const quern__system *counted = quern__schedule_system(schedule, system);
    if (counted == NULL)
        return quern__schedule_fail_system(schedule, system, "quern_schedule_get_system_counts");
    const double frames = (double)profiler->frame_count;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        out_counts[i] =
            quern__hardware_counters_rate(&profiler->counters, counted->number, (quern_hardware_event)i) *
            (double)profile_copy_of(profiler, counted).total_ns / frames;
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

/* -------------------------------------------------------------------------------- the profile as a table */

typedef struct profile_writer {
    const quern_schedule *schedule;
    const quern__profiler *profiler;
    quern__printer *printer;
    double frames;
} profile_writer;

static double mean_us(const profile_writer *writer, uint64_t total_ns)
{
    return (double)total_ns / writer->frames / 1000;
}

static double share_of(uint64_t part_ns, uint64_t all_ns)
{
    return all_ns > 0 ? 100 * (double)part_ns / (double)all_ns : 0;
}

static void write_count(const profile_writer *writer, double count)
{
    if (isnan(count))
        quern__print(writer->printer, " %12s", "-");
    else
        quern__print(writer->printer, " %12.2f", count);
}

/* Writes the counts per entity, or per frame if the system has no entities. */
static void write_counts_of(const profile_writer *writer, const quern__system *system)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    const quern_system handle = {.bits = system->handle_bits};
    if (quern_schedule_get_system_counts(writer->schedule, handle, counts) != QUERN_OK) return;
    const uint64_t entity_count = profile_copy_of(writer->profiler, system).total_entity_count;
    const bool has_entities = entity_count > 0;
    const double share = has_entities ? (double)entity_count / writer->frames : 1;
    quern__print(writer->printer, "%-24s %-6s", system->name, has_entities ? "entity" : "frame");
    write_count(writer, counts[QUERN_HARDWARE_INSTRUCTIONS] / counts[QUERN_HARDWARE_CYCLES]);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        write_count(writer, counts[i] / share);
    quern__print(writer->printer, "\n");
}

static void write_counts(const profile_writer *writer)
{
    const quern__profiler *profiler = writer->profiler;
    if (!profiler->counters.is_on) return;
    quern__print(writer->printer, "\n%-24s %-6s %12s", "system, events", "by", "instr/cycle");
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        quern__print(writer->printer, " %12s", quern_hardware_event_string((quern_hardware_event)i));
    quern__print(writer->printer, "\n");
    for (uint32_t i = 0; i < profiler->plan->order.count; i++)
        write_counts_of(writer, profiler->plan->order.items[i]);
}

quern_result quern_schedule_write_profile(const quern_schedule *schedule, quern_sink sink)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_write_profile", "schedule");
    quern_result result = quern__check_sink(sink, "quern_schedule_write_profile");
    if (result != QUERN_OK) return result;
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    if (profiler->frame_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_write_profile: no frame has been profiled yet; call "
                           "quern_schedule_set_profiling(schedule, true) and run frames first");
    quern__printer printer;
    quern__printer_open(&printer, sink);
    const profile_writer writer = {.schedule = schedule,
                                   .profiler = profiler,
                                   .printer = &printer,
                                   .frames = (double)profiler->frame_count};
    const quern_frame_profile *total = &profiler->total;
    const uint32_t thread_count = total->thread_count;
    quern__print(&printer,
                 "frame %.1f us on %" PRIu32
                 " thread%s, mean of %.0f; critical path %.1f us; efficiency %.0f %%\n",
                 mean_us(&writer, total->time_ns), thread_count, thread_count == 1 ? "" : "s",
                 writer.frames, mean_us(&writer, total->critical_path_ns),
                 share_of(total->workers.busy_ns, total->time_ns * thread_count));
    quern__print(&printer, "sync points %.1f us: gather %.1f, merge %.1f, resolve %.1f, apply %.1f\n\n",
                 mean_us(&writer, total->sync_ns), mean_us(&writer, total->gather_ns),
                 mean_us(&writer, total->merge_ns), mean_us(&writer, total->resolve_ns),
                 mean_us(&writer, total->apply_ns));
    quern__print(&printer, "%-24s %10s %6s %8s %10s %8s\n", "system", "us", "%", "views", "entities",
                 "commands");
    for (uint32_t i = 0; i < profiler->plan->order.count; i++) {
        const quern__system *system = profiler->plan->order.items[i];
        const quern__system_profile profile = profile_copy_of(profiler, system);
        quern__print(&printer, "%-24s %10.1f %6.1f %8.0f %10.0f %8.0f\n", system->name,
                     mean_us(&writer, profile.total_ns), share_of(profile.total_ns, total->workers.busy_ns),
                     (double)profile.total_view_count / writer.frames,
                     (double)profile.total_entity_count / writer.frames,
                     (double)profile.total_command_count / writer.frames);
    }
    write_counts(&writer);
    quern__print(&printer, "\n%-24s %10s %10s %10s %10s\n", "worker, us", "busy", "stealing", "idle",
                 "sync");
    for (uint32_t i = 0; i < profiler->frame_worker_count; i++) {
        const quern_worker_profile *worker = &profiler->workers[i].profile_total;
        quern__print(&printer, "%-24" PRIu32 " %10.1f %10.1f %10.1f %10.1f\n", i,
                     mean_us(&writer, worker->busy_ns), mean_us(&writer, worker->stealing_ns),
                     mean_us(&writer, worker->idle_ns), mean_us(&writer, worker->sync_ns));
    }
    return quern__printer_close(&printer, "quern_schedule_write_profile");
}
