/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include "core/base/text.h"
#include "sched/frame/schedule_internal.h"
#include "sched/observe/profile_internal.h"

#include <inttypes.h>
#include <math.h>

/* The profiler as the observer of a schedule: names, segments, sync points, memory, and the public functions. */

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
        result = quern_trace_add_name(trace, system->name,
                                      &quern__profile_of_system(profiler, system)->trace_name);
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
    const uint32_t first = pass->systems.items[0]->number;
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

static void profile_end_segment(quern__frame_observer *observer, const quern__segment *segment)
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

/* Ends the current stage. */
static void end_stage(quern__profiler *profiler, uint64_t now_ns)
{
    if (profiler->stage == QUERN__STAGE_SYNC) return;
    const quern__interval stage = {.kind = QUERN__INTERVAL_STAGE,
                                   .worker_index = profiler->caller_index,
                                   .begin_ns = profiler->stage_start_ns,
                                   .took_ns = now_ns - profiler->stage_start_ns,
                                   .stage = profiler->stage};
    quern__profile_record(profiler, &stage);
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
    quern__profile_record(profiler, &sync);
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
    quern__interval part = quern__interval_end(QUERN__INTERVAL_PART, worker_index, begin_ns);
    part.stage = profiler->stage;
    quern__profile_record(profiler, &part);
}

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
            memset(quern__profile_time_of(profiler, i, number, 0), 0,
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
    .begin_frame = quern__profile_begin_frame,
    .end_frame = quern__profile_end_frame,
    .begin_segment = profile_begin_segment,
    .end_segment = profile_end_segment,
    .run_job = quern__pass_run_observed,
    .begin_job = quern__profile_begin_job,
    .next_range = quern__profile_next_range,
    .end_job = quern__profile_end_job,
    .begin_calls = quern__profile_begin_calls,
    .end_call = quern__profile_end_call,
    .begin_sync = profile_begin_sync,
    .end_sync = profile_end_sync,
    .begin_stage = profile_begin_stage,
    .begin_loop = profile_begin_loop,
    .end_loop = profile_end_loop,
    .end_part = profile_end_part,
    .system_time_ns = quern__profile_time_ns,
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
    quern__profile_reset(profiler);
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
    quern__profile_reset_totals(profiler);
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
