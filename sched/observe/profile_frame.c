/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include "sched/observe/profile_internal.h"

/* What the profiler does in a frame: samples, calls and jobs on the workers, and the evaluation at the end. */

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

static void add_to_profile(quern__profiler *profiler, const quern__interval *interval)
{
    const uint64_t took_ns = interval->took_ns;
    const uint32_t worker_index = interval->worker_index;
    if (interval->kind == QUERN__INTERVAL_CALL) {
        const quern__observed_call *call = interval->call;
        const uint32_t what = call->callback == QUERN__CALLBACK_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
        const uint64_t cost_ns = profiler->is_timing ? 0 : quern__clock_cost_ns();
        const uint64_t call_ns = took_ns > cost_ns ? took_ns - cost_ns : 0;
        *quern__profile_time_of(profiler, worker_index, call->system->number, what) += call_ns;
        if (profiler->workers[worker_index].is_counted)
            quern__hardware_counters_add(&profiler->counters, worker_index, call->system->number, call_ns);
    } else if (interval->kind == QUERN__INTERVAL_JOBS) {
        const uint32_t first = interval->job->pass->systems.items[0]->number;
        uint64_t *times = quern__profile_time_of(profiler, worker_index, first, 0);
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
        event.name = quern__profile_of_system(profiler, interval->call->system)->trace_name;
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

void quern__profile_record(quern__profiler *profiler, const quern__interval *interval)
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

uint32_t quern__profile_choose_stride(const quern__profiler *profiler, const quern__pass *pass,
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

/* Ends an item in a captured frame. The next one begins. */
static void end_item(quern__profiler *profiler, const quern__observed_job *job, uint32_t item)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    quern__interval ended =
        quern__interval_end(QUERN__INTERVAL_ITEM, job->worker_index, worker->item_start_ns);
    ended.job = job;
    ended.ordinal = item;
    worker->item_start_ns += ended.took_ns;
    quern__profile_record(profiler, &ended);
}

quern__job_range quern__profile_next_range(quern__frame_observer *observer, const quern__observed_job *job,
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

void quern__profile_begin_calls(quern__frame_observer *observer, uint32_t worker_index)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[worker_index];
    if (worker->is_counted) quern__hardware_counters_begin(&profiler->counters, worker_index);
    worker->lap_start_ns = quern__clock_ns();
}

/* Only the end of a call is timed: it began when the previous one ended. */
void quern__profile_end_call(quern__frame_observer *observer, const quern__observed_call *call)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern__observed_worker *worker = &profiler->workers[call->worker_index];
    quern__interval ended =
        quern__interval_end(QUERN__INTERVAL_CALL, call->worker_index, worker->lap_start_ns);
    ended.call = call;
    worker->lap_start_ns += ended.took_ns;
    quern__profile_record(profiler, &ended);
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

static void end_items(quern__profiler *profiler, const quern__observed_job *job)
{
    quern__observed_worker *worker = &profiler->workers[job->worker_index];
    if (profiler->capture != NULL) end_item(profiler, job, job->end - 1);
    quern__span *span = &worker->span;
    span->chunk_count += job->end - job->begin;
    *quern__profile_time_of(profiler, job->worker_index, job->pass->systems.items[0]->number,
                            QUERN__TIME_COUNTED) += job->end - job->begin;
    const bool at_once = profiler->is_learning || profiler->is_traced;
    if (span->chunk_count < (at_once ? 1 : quern__profile_of_pass(profiler, job->pass)->span_chunk_count))
        return;
    quern__interval ended = quern__interval_end(QUERN__INTERVAL_JOBS, job->worker_index, span->start_ns);
    ended.job = job;
    ended.count = span->chunk_count;
    quern__profile_record(profiler, &ended);
    span->start_ns += ended.took_ns;
    span->chunk_count = 0;
}

void quern__profile_end_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    if (profiler->capture != NULL && profiler->jobs != NULL)
        profiler->jobs->workers[job->worker_index].loop_observer = NULL;
    if (job->callback == QUERN__CALLBACK_RUN) {
        end_items(profiler, job);
        return;
    }
    quern__interval ended = quern__interval_end(QUERN__INTERVAL_HOOKS, job->worker_index,
                                                profiler->workers[job->worker_index].job_start_ns);
    ended.job = job;
    quern__profile_record(profiler, &ended);
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
        time_ns += *quern__profile_time_of(profiler, i, system->number, what);
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

void quern__profile_begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame)
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
        profiler->workers[i].idle_seen_ns = quern__profile_idle_ns(profiler, i, frame->begin_ns);
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
        quern__system_profile *profile = quern__profile_of_system(profiler, system);
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
        quern__system_profile *profile = quern__profile_of_system(profiler, system);
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
    const uint64_t idle_ns =
        passed(observed->idle_seen_ns, quern__profile_idle_ns(profiler, index, now_ns));
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

void quern__profile_reset_totals(quern__profiler *profiler)
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

void quern__profile_end_frame(quern__frame_observer *observer)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    quern__interval ended = quern__interval_end(QUERN__INTERVAL_FRAME, 0, profiler->start_ns);
    const uint64_t now_ns = ended.begin_ns + ended.took_ns;
    ended.ordinal = (uint32_t)profiler->frame.frame_index;
    quern__profile_record(profiler, &ended);
    if (!profiler->is_profiling) return;
    if (profiler->total.thread_count != profiler->frame.thread_count) quern__profile_reset_totals(profiler);
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
        quern__system_profile *profile = quern__profile_of_system(profiler, system);
        quern_system_stats stats;
        const quern_system handle = {.bits = system->handle_bits};
        if (quern_schedule_get_system_stats(profiler->plan->schedule, handle, &stats) != QUERN_OK) continue;
        profile->total_ns += stats.time_ns;
        profile->total_view_count += stats.view_count;
        profile->total_entity_count += stats.entity_count;
        profile->total_command_count += stats.command_count;
    }
}

uint64_t quern__profile_time_ns(const quern__frame_observer *observer, const quern__system *system)
{
    const quern__profiler *profiler = (const quern__profiler *)(const void *)observer;
    if (!has_times(profiler, system)) return 0;
    if (profiler->is_timing)
        return sum_times(profiler, system, QUERN__TIME_VIEWS) +
               sum_times(profiler, system, QUERN__TIME_HOOKS);
    return profiler->is_profiling ? quern__profile_of_system(profiler, system)->profile_ns : 0;
}

/* Resets the profile: the times of earlier frames, shares and strides. */
void quern__profile_reset(quern__profiler *profiler)
{
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        profiler->workers[i].sync_seen_ns = profiler->workers[i].sync_ns;
        profiler->workers[i].profile = (quern_worker_profile){0};
    }
    for (uint32_t i = 0; i < profiler->plan->systems.count; i++) {
        const quern__system *system = profiler->plan->systems.items[i];
        if (!has_times(profiler, system)) continue;
        quern__system_profile *profile = quern__profile_of_system(profiler, system);
        (void)take_times(profiler, system, QUERN__TIME_VIEWS, &profile->views_seen_ns);
        (void)take_times(profiler, system, QUERN__TIME_HOOKS, &profile->hooks_seen_ns);
        profile->sampled_ns = profile->profile_ns = 0;
    }
    profiler->frame = (quern_frame_profile){0};
    profiler->observed_count = 0;
    quern__profile_reset_totals(profiler);
}
