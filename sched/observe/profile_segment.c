/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"
#include "sched/observe/profile_internal.h"

#include <inttypes.h>

/* The observer functions for segments and sync points, which the thread that runs the frame calls. */

enum {
    SPAN_CLOCK_READS = 500, /* minimum length of a timed span, in clock reads */
    MIN_SPANS = 16          /* minimum number of timed spans per pass; limits SPAN_CLOCK_READS */
};

/* --------------------------------------------------------------------------------------------- names */

void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes)
{
    const char *first = pass->systems.items[0]->name;
    if (pass->systems.count == 1)
        snprintf(name, bytes, "%s", first);
    else
        snprintf(name, bytes, "%.*s + %" PRIu32, QUERN_MAX_NAME_BYTES - 13, first, pass->systems.count - 1);
}

quern_result quern__profile_prepare_pass(quern__frame_observer *observer, quern__pass *pass)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    quern_trace *trace = profiler->trace;
    if (!observer->is_observing && trace == NULL) return QUERN_OK;
    quern_result result = quern__profile_reserve(profiler);
    if (result != QUERN_OK) return result;
    quern__pass_profile *profile = quern__profile_of_pass(profiler, pass);
    if (trace == NULL || profile->is_named) return QUERN_OK;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__profile_describe_pass(pass, name, sizeof name);
    result = quern_trace_add_name(trace, name, &profile->trace_name);
    for (uint32_t i = 0; i < pass->systems.count && result == QUERN_OK; i++) {
        const quern__system *system = pass->systems.items[i];
        result = quern_trace_add_name(trace, system->name,
                                      &quern__profile_of_system(profiler, system)->trace_name);
    }
    profile->is_named = result == QUERN_OK;
    return result;
}

/* ------------------------------------------------------------------------------------------ segments */

void quern__profile_begin_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    profiler->segment_start_ns = quern__clock_ns();
    profiler->segment_idle_ns =
        quern__profile_idle_ns(profiler, profiler->caller_index, profiler->segment_start_ns);
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
    const uint32_t first = pass->systems.items[0]->index;
    pass_times sum = {0};
    for (uint32_t i = 0; i < profiler->worker_count; i++) {
        sum.timed_ns += take(quern__profile_time_of(profiler, i, first, QUERN__TIME_JOBS));
        sum.counted_count += take(quern__profile_time_of(profiler, i, first, QUERN__TIME_COUNTED));
        const uint64_t longest_ns = take(quern__profile_time_of(profiler, i, first, QUERN__TIME_LONGEST));
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
        quern__profile_choose_stride(profiler, pass, profile->chunk_ns * pass->item_count + 1);
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

void quern__profile_end_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    profiler->segments_ns +=
        now_ns - profiler->segment_start_ns -
        (quern__profile_idle_ns(profiler, profiler->caller_index, now_ns) - profiler->segment_idle_ns);
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

static void record_stage(const quern__profiler *profiler, quern__sync_stage stage, uint32_t track,
                         uint64_t start_ns, uint64_t end_ns, uint32_t count)
{
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = end_ns - start_ns,
                                      .kind = QUERN__TRACE_SYNC,
                                      .name = QUERN__TRACE_NO_NAME,
                                      .ordinal = stage,
                                      .count = count};
    quern__profile_record_event(profiler, track, &event);
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

/* Ends the current stage. */
static void end_stage(quern__profiler *profiler, uint64_t now_ns)
{
    if (profiler->stage == QUERN__STAGE_SYNC) return;
    *stage_time(&profiler->frame, profiler->stage) += now_ns - profiler->stage_start_ns;
    record_stage(profiler, profiler->stage, profiler->caller_index, profiler->stage_start_ns, now_ns, 0);
}

void quern__profile_begin_sync(quern__frame_observer *observer)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    profiler->stage = QUERN__STAGE_SYNC;
    if (profiler->capture != NULL) quern__capture_start_segment(profiler->capture, true, quern__clock_ns());
}

void quern__profile_begin_stage(quern__frame_observer *observer, quern__sync_stage stage)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    const uint64_t now_ns = quern__clock_ns();
    end_stage(profiler, now_ns);
    profiler->stage = stage;
    profiler->stage_start_ns = now_ns;
}

void quern__profile_end_sync(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count)
{
    quern__profiler *profiler = quern__profiler_of(observer);
    if (!profiler->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(profiler, now_ns);
    profiler->frame.sync_ns += now_ns - begin_ns;
    profiler->frame.critical_path_ns += now_ns - begin_ns;
    record_stage(profiler, QUERN__STAGE_SYNC, profiler->caller_index, begin_ns, now_ns, command_count);
    if (profiler->capture == NULL) return;
    quern__capture_add_gap(profiler->capture, now_ns);
    quern__capture_finish_segment(profiler->capture, now_ns);
}

void quern__profile_begin_loop(quern__frame_observer *observer, uint32_t part_count)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    if (profiler->capture == NULL) return;
    quern__capture_add_gap(profiler->capture, quern__clock_ns());
    quern__capture_start_loop(profiler->capture, part_count);
}

void quern__profile_end_loop(quern__frame_observer *observer)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    if (profiler->capture != NULL) quern__capture_finish_loop(profiler->capture, quern__clock_ns());
}

/* The caller leads the sync point, so its parts are included in the time of the sync point already. */
void quern__profile_end_part(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns)
{
    const quern__profiler *profiler = quern__profiler_of(observer);
    const uint64_t now_ns = quern__clock_ns();
    if (profiler->capture != NULL) quern__capture_end_part(profiler->capture, now_ns - begin_ns);
    if (worker_index == profiler->caller_index) return;
    profiler->workers[worker_index].sync_ns += now_ns - begin_ns;
    record_stage(profiler, profiler->stage, worker_index, begin_ns, now_ns, 0);
}
