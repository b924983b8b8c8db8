/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/profile.h"

#include "sched/frame/frame.h"
#include "sched/jobs/jobs.h"
#include "sched/jobs/thread.h"
#include "sched/observe/capture.h"

#include <inttypes.h>

enum {
    FIRST_STRIDE = 16,
    MAX_STRIDE = 4096,
    PROFILE_SHARE = 1000, /* samples may cost one part in so many of a pass */
    TRACE_SHARE = 200,
    COUNTER_SHARE = 100,
    SPAN_LOOKS = 500, /* jobs are timed that take longer than so many looks at the clock, */
    MIN_SPANS = 16,   /* but no more than one part in so many of a pass at once */
    SHOW_NS = 30,     /* about what capture an event takes */
    CLOCK_LOOKS = 32
};

/* -------------------------------------------------------------------------------------------- clock */

/* What two looks at the clock, one after another, tell of as time gone by. */
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

/* Relaxed: every thread that measures it comes to about the same, and nothing else depends on it. */
uint64_t quern__clock_cost_ns(void)
{
    static _Atomic uint64_t known_ns; /* and one, 0 being unknown */
    uint64_t cost_ns = atomic_load_explicit(&known_ns, memory_order_relaxed);
    if (cost_ns == 0) {
        cost_ns = measure_clock_ns() + 1;
        atomic_store_explicit(&known_ns, cost_ns, memory_order_relaxed);
    }
    return cost_ns - 1;
}

/* What the jobs of a pass took in a segment. */
typedef struct pass_times {
    uint64_t timed_ns;      /* of jobs that were timed */
    uint64_t longest_ns;    /* a chunk of them */
    uint64_t counted_count; /* chunks of jobs that were not */
} pass_times;

static uint64_t take(uint64_t *time)
{
    const uint64_t taken = *time;
    *time = 0;
    return taken;
}

/* Between segments, when no worker adds to it. */
static pass_times take_jobs(const quern_schedule *schedule, const quern__pass *pass)
{
    const uint32_t first = pass->systems.items[0]->index;
    pass_times sum = {0};
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        sum.timed_ns += take(quern__profile_time_of(schedule, i, first, QUERN__TIME_JOBS));
        sum.counted_count += take(quern__profile_time_of(schedule, i, first, QUERN__TIME_COUNTED));
        const uint64_t longest_ns = take(quern__profile_time_of(schedule, i, first, QUERN__TIME_LONGEST));
        if (longest_ns > sum.longest_ns) sum.longest_ns = longest_ns;
    }
    return sum;
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

quern_result quern__profile_name_pass(quern__pass *pass)
{
    quern_trace *trace = pass->plan->schedule->watch.trace;
    if (trace == NULL || pass->is_named) return QUERN_OK;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__profile_describe_pass(pass, name, sizeof name);
    quern_result result = quern_trace_add_name(trace, name, &pass->trace_name);
    for (uint32_t i = 0; i < pass->systems.count && result == QUERN_OK; i++) {
        quern__system *system = pass->systems.items[i];
        result = quern_trace_add_name(trace, system->name, &system->trace_name);
    }
    pass->is_named = result == QUERN_OK;
    return result;
}

/* ------------------------------------------------------------------------------------ jobs and calls */

static uint32_t stride_of(const quern__pass *pass)
{
    return pass->sample_stride != 0 ? pass->sample_stride : FIRST_STRIDE;
}

static uint32_t run_count_of(const quern_context *context)
{
    const quern_jobs *jobs = context->schedule->jobs;
    return jobs != NULL ? jobs->workers[context->worker_index].run_count : 0;
}

/* A span goes on while the worker runs one job of the pass after the other, for which it does not even look
 * at the clock. In a trace each is shown by itself. */
void quern__profile_start_job(const quern__pass *pass, quern_context *context)
{
    const quern__watch *watch = &context->schedule->watch;
    const bool samples = watch->is_profiling || watch->is_traced;
    if (samples && (context->sample_countdown == 0 || context->sample_countdown > stride_of(pass)))
        context->sample_countdown = stride_of(pass);
    const uint32_t run_count = run_count_of(context);
    const quern__span *span = &context->span;
    const bool goes_on =
        span->pass == pass && span->run_count == run_count && span->start_ns >= watch->start_ns;
    if (goes_on && !watch->is_traced) return;
    context->span = (quern__span){.pass = pass, .run_count = run_count, .start_ns = quern__clock_ns()};
}

uint32_t quern__profile_next_sample(quern_context *context, uint32_t begin, uint32_t end)
{
    if (context->sample_countdown <= end - begin) return begin + context->sample_countdown - 1;
    context->sample_countdown -= end - begin;
    return end;
}

void quern__profile_start_sample(const quern__pass *pass, quern_context *context)
{
    context->sample_countdown = stride_of(pass);
    context->is_timed = true;
    context->is_shown = context->schedule->watch.is_traced;
    context->is_counted = quern__watch_counts(&context->schedule->watch);
}

void quern__profile_finish_sample(quern_context *context)
{
    context->is_counted = false;
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
}

void quern__profile_start_laps(quern_context *context)
{
    if (context->is_counted)
        quern__counters_begin(&context->schedule->watch.counters, context->worker_index);
    context->lap_start_ns = quern__clock_ns();
}

static void show_call(const quern_context *context, uint64_t took_ns, uint32_t row_count)
{
    static const quern__trace_kind kinds[] = {[QUERN__CALLBACK_BEGIN] = QUERN__TRACE_BEGIN,
                                              [QUERN__CALLBACK_RUN] = QUERN__TRACE_SYSTEM,
                                              [QUERN__CALLBACK_END] = QUERN__TRACE_END};
    const bool has_view = context->callback == QUERN__CALLBACK_RUN;
    const quern__trace_event event = {.begin_ns = context->lap_start_ns,
                                      .duration_ns = took_ns,
                                      .kind = kinds[context->callback],
                                      .name = context->system->trace_name,
                                      .ordinal = has_view ? context->part - QUERN__PART_FIRST_VIEW : 0,
                                      .count = row_count};
    quern__profile_show(context->schedule, context->worker_index, &event);
}

void quern__profile_end_lap(quern_context *context, uint32_t row_count)
{
    const quern_schedule *schedule = context->schedule;
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - context->lap_start_ns;
    const uint32_t what = context->callback == QUERN__CALLBACK_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
    const uint64_t cost_ns = schedule->timing ? 0 : quern__clock_cost_ns();
    const uint64_t call_ns = took_ns > cost_ns ? took_ns - cost_ns : 0;
    *quern__profile_time_of(schedule, context->worker_index, context->system->index, what) += call_ns;
    if (context->is_shown) show_call(context, took_ns, row_count);
    context->lap_start_ns = now_ns;
    if (!context->is_counted) return;
    quern__counters_add(&schedule->watch.counters, context->worker_index, context->system->index, call_ns);
    context->lap_start_ns = quern__clock_ns(); /* reading took its time */
}

static void show_job(const quern__pass *pass, const quern_context *context, uint64_t took_ns,
                     uint32_t begin, uint32_t end)
{
    const quern__trace_event event = {.begin_ns = context->span.start_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_PASS,
                                      .name = pass->trace_name,
                                      .ordinal = begin,
                                      .count = end - begin};
    quern__profile_show(context->schedule, context->worker_index, &event);
}

static uint32_t span_count_of(const quern__pass *pass)
{
    const quern__watch *watch = &pass->plan->schedule->watch;
    return watch->is_learning || watch->is_traced ? 1 : pass->span_count;
}

void quern__profile_finish_job(const quern__pass *pass, quern_context *context, uint32_t begin,
                               uint32_t end)
{
    const uint32_t first = pass->systems.items[0]->index;
    uint64_t *times = quern__profile_time_of(pass->plan->schedule, context->worker_index, first, 0);
    quern__span *span = &context->span;
    span->chunk_count += end - begin;
    times[QUERN__TIME_COUNTED] += end - begin;
    if (span->chunk_count < span_count_of(pass)) return;
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - span->start_ns;
    const uint64_t chunk_ns = took_ns / span->chunk_count;
    times[QUERN__TIME_JOBS] += took_ns;
    times[QUERN__TIME_COUNTED] -= span->chunk_count;
    if (chunk_ns > times[QUERN__TIME_LONGEST]) times[QUERN__TIME_LONGEST] = chunk_ns;
    show_job(pass, context, took_ns, begin, end);
    span->start_ns = now_ns;
    span->chunk_count = 0;
}

uint64_t quern__profile_start_hooks(quern_context *context)
{
    const quern__watch *watch = &context->schedule->watch;
    if (watch->is_on) {
        context->is_timed = true;
        context->is_shown = watch->is_traced;
    }
    if (context->is_timed) quern__profile_start_laps(context);
    return watch->is_on ? context->lap_start_ns : 0;
}

void quern__profile_finish_hooks(quern__pass *pass, quern_context *context, uint64_t start_ns)
{
    if (start_ns == 0) return;
    const uint64_t took_ns = quern__clock_ns() - start_ns;
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
    pass->hooks_ns += took_ns;
    quern__profile_capture_hooks(pass, context, took_ns);
}

/* ------------------------------------------------------------------------------------------ segments */

void quern__profile_start_segment(quern_schedule *schedule, const quern__segment *segment)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    watch->segment_start_ns = quern__clock_ns();
    watch->segment_dry_ns = quern__profile_dry_ns(schedule, 0, watch->segment_start_ns);
    schedule->contexts[0].span.pass = NULL; /* nothing that it did before this segment belongs to a span */
    for (uint32_t i = 0; i < segment->passes.count; i++)
        segment->passes.items[i]->hooks_ns = 0;
    if (schedule->watch.capture != NULL) quern__profile_capture_segment(schedule->watch.capture, segment);
}

static uint32_t choose_stride(const quern__pass *pass, uint64_t busy_ns)
{
    const quern__watch *watch = &pass->plan->schedule->watch;
    const uint32_t chunk_count = pass->kind == QUERN__PASS_ONCE ? 1 : pass->chunk_count;
    uint64_t call_ns = quern__clock_cost_ns(), share = PROFILE_SHARE;
    if (watch->is_traced) {
        call_ns += SHOW_NS;
        share = TRACE_SHARE;
    }
    if (quern__watch_counts(watch)) {
        call_ns += watch->counters.read_ns + quern__clock_cost_ns();
        share = COUNTER_SHARE;
    }
    const uint64_t stride = (pass->systems.count + 1) * call_ns * share * chunk_count / busy_ns;
    return stride < 1 ? 1 : stride > MAX_STRIDE ? MAX_STRIDE : (uint32_t)stride;
}

/* What later frames time follows from what chunks took in this one. Workers look at it in each job, so it
 * is written now and then only: a line that worker 0 has written has to come to them anew. */
static void learn(quern__pass *pass, const pass_times *times)
{
    if (times->timed_ns == 0 || pass->item_count <= times->counted_count) return;
    pass->chunk_ns = times->timed_ns / (pass->item_count - times->counted_count);
    const uint64_t most = pass->item_count / MIN_SPANS;
    const uint64_t wanted = SPAN_LOOKS * quern__clock_cost_ns() / (pass->chunk_ns + 1);
    pass->span_count = (uint32_t)(wanted < most ? wanted : most);
    pass->sample_stride = choose_stride(pass, pass->chunk_ns * pass->item_count + 1);
}

/* The longest chain of passes that wait for each other, each as long as if it had a thread for every chunk.
 * Passes stand in an order that respects what they wait for. */
static uint64_t longest_path_ns(const quern__segment *segment)
{
    uint64_t longest_ns = 0;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        uint64_t start_ns = 0;
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const quern__pass *before = segment->passes.items[pass->waits_for.items[k]];
            if (before->path_ns > start_ns) start_ns = before->path_ns;
        }
        pass->path_ns = start_ns + pass->hooks_ns + pass->longest_ns;
        if (pass->path_ns > longest_ns) longest_ns = pass->path_ns;
    }
    return longest_ns;
}

void quern__profile_finish_segment(quern_schedule *schedule, const quern__segment *segment)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    watch->segments_ns += now_ns - watch->segment_start_ns -
                          (quern__profile_dry_ns(schedule, 0, now_ns) - watch->segment_dry_ns);
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        const pass_times times = take_jobs(schedule, pass);
        pass->frame_ns += times.timed_ns + times.counted_count * pass->chunk_ns;
        pass->longest_ns =
            times.longest_ns > 0 || times.counted_count == 0 ? times.longest_ns : pass->chunk_ns;
        if (watch->is_learning || pass->chunk_ns == 0) learn(pass, &times);
    }
    watch->frame.critical_path_ns += longest_path_ns(segment);
    if (watch->capture != NULL) quern__capture_finish_section(watch->capture, quern__clock_ns());
}

/* --------------------------------------------------------------------------------------- sync points */

static void show_stage(const quern_schedule *schedule, quern__sync_stage stage, uint32_t track,
                       uint64_t start_ns, uint64_t end_ns, uint32_t count)
{
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = end_ns - start_ns,
                                      .kind = QUERN__TRACE_SYNC,
                                      .name = QUERN__TRACE_NO_NAME,
                                      .ordinal = stage,
                                      .count = count};
    quern__profile_show(schedule, track, &event);
}

static uint64_t *stage_time(quern_frame_profile *frame, quern__sync_stage stage)
{
    switch (stage) {
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

/* The stage that runs ends now. */
static void end_stage(quern_schedule *schedule, uint64_t now_ns)
{
    quern__watch *watch = &schedule->watch;
    if (watch->stage == QUERN__STAGE_SYNC) return;
    *stage_time(&watch->frame, watch->stage) += now_ns - watch->stage_start_ns;
    show_stage(schedule, watch->stage, 0, watch->stage_start_ns, now_ns, 0);
}

void quern__profile_start_sync(quern_schedule *schedule)
{
    schedule->watch.stage = QUERN__STAGE_SYNC;
    if (schedule->watch.capture != NULL)
        quern__capture_start_section(schedule->watch.capture, true, quern__clock_ns());
}

void quern__profile_begin_stage(quern_schedule *schedule, quern__sync_stage stage)
{
    quern__watch *watch = &schedule->watch;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(schedule, now_ns);
    watch->stage = stage;
    watch->stage_start_ns = now_ns;
}

void quern__profile_finish_sync(quern_schedule *schedule, uint64_t start_ns, uint32_t command_count)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(schedule, now_ns);
    watch->frame.sync_ns += now_ns - start_ns;
    watch->frame.critical_path_ns += now_ns - start_ns;
    show_stage(schedule, QUERN__STAGE_SYNC, 0, start_ns, now_ns, command_count);
    if (watch->capture == NULL) return;
    quern__capture_add_gap(watch->capture, now_ns);
    quern__capture_finish_section(watch->capture, now_ns);
}

void quern__profile_start_loop(const quern_schedule *schedule, uint32_t part_count)
{
    if (schedule->watch.capture == NULL) return;
    quern__capture_add_gap(schedule->watch.capture, quern__clock_ns());
    quern__capture_start_loop(schedule->watch.capture, part_count);
}

void quern__profile_finish_loop(const quern_schedule *schedule)
{
    if (schedule->watch.capture != NULL)
        quern__capture_finish_loop(schedule->watch.capture, quern__clock_ns());
}

/* Worker 0 leads the sync point, so all of that is its time already. */
void quern__profile_add_sync_part(quern_context *context, uint64_t start_ns)
{
    const quern_schedule *schedule = context->schedule;
    const uint64_t now_ns = quern__clock_ns();
    if (schedule->watch.capture != NULL)
        quern__profile_capture_part(schedule->watch.capture, now_ns - start_ns);
    if (context->worker_index == 0) return;
    context->sync_ns += now_ns - start_ns;
    show_stage(schedule, schedule->watch.stage, context->worker_index, start_ns, now_ns, 0);
}
