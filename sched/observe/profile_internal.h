/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H
#define QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H

/* The observer of a schedule's frames (sched/schedule/frame_observer.h): the profile, the schedule's events
 * in a trace, and the data that a frame stores in a capture.
 *
 * A chunk of a fused pass takes some hundred nanoseconds and a clock read some twenty. So the profiler
 * cannot time every call, or even every job, which is a range of chunks. It times the jobs of a pass that a
 * worker runs one after the other together, as a span, once the span is long enough:
 *
 *     span of jobs:  | chunk | chunk || chunk | chunk || chunk |     one clock read at its end
 *                            one in sample_stride:  | a | b | c |    one clock read after each system
 *
 * Chunks that remain untimed at the end of a pass are counted, and each counts with the last measured
 * duration of a chunk. The time of the jobs of a pass is divided among its systems in the proportion of the
 * sampled chunks; earlier samples count less. The stride is chosen so that samples cost about a thousandth
 * of the pass, a two-hundredth while a trace runs, and a hundredth with hardware counters (hardware_counters.h); all
 * chunks are sampled if they are long. A schedule with `timing` times every call. In a trace each job is
 * timed separately.
 *
 * Workers measure their own idle time (sched/jobs/worker_times.c); the rest of their time they are busy.
 *
 * Shares, strides and the duration of chunks are updated in every 16th frame, and in each of the first 16,
 * because the cache lines with samples are in the workers' caches, and every change of a stride has to be
 * transferred to them. On two threads a profile of 100,000 entities cost 3.5 us per frame with this rule,
 * and 5 us without it. */

#include "sched/frame/schedule_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/observe/capture.h"
#include "sched/observe/hardware_counters.h"
#include "sched/observe/trace.h"
#include "sched/schedule/frame_observer.h"

/* Times of a system on a worker. VIEWS: its views; HOOKS: begin, end and conditions. Only for the first
 * system of a pass: JOBS: the jobs of the pass; LONGEST: a chunk of the job with the longest chunks;
 * COUNTED: the number of chunks in jobs that were not timed. */
enum {
    QUERN__TIME_VIEWS,
    QUERN__TIME_HOOKS,
    QUERN__TIME_JOBS,
    QUERN__TIME_LONGEST,
    QUERN__TIME_COUNTED,
    QUERN__TIME_COUNT
};

/* Consecutive jobs of a pass on one worker that have not been timed yet. */
typedef struct quern__span {
    const quern__pass *pass;
    /* The worker's executed_job_count when the span began; the span ends when this changes. */
    uint32_t executed_job_count;
    uint32_t chunk_count;
    uint64_t start_ns;
} quern__span;

/* State of one worker, in cache lines of its own. */
typedef struct quern__observed_worker {
    _Alignas(QUERN__APART_BYTES) uint64_t lap_start_ns; /* begin of the current observed call */
    uint32_t sample_countdown; /* number of chunks up to and including the next sampled one; 0: not begun */
    bool is_recorded;          /* whether observed calls are recorded in the trace */
    bool is_counted;           /* whether observed calls are counted with hardware counters */
    quern__span span;
    uint64_t job_start_ns;  /* start of the begin or end callbacks of a pass */
    uint64_t item_start_ns; /* in a captured frame: begin of the current item */
    /* Time in loops of sync points that other workers lead, over all observed frames. */
    uint64_t sync_ns;

    /* Values that the thread that runs the frames keeps for each worker. They are on other cache lines, so
     * that the worker's own lines stay in its cache. */
    _Alignas(QUERN__APART_BYTES) uint64_t sync_seen_ns;
    uint64_t sleep_seen_ns;
    uint64_t idle_seen_ns;
    quern_worker_profile profile, profile_total;
} quern__observed_worker;

/* Profile of a pass, until the passes are rebuilt. */
typedef struct quern__pass_profile {
    bool is_named; /* whether its own name and those of its systems are in the trace */
    uint32_t trace_name;
    uint32_t sample_stride;    /* sampling interval in chunks; 0: unknown */
    uint32_t span_chunk_count; /* minimum number of chunks per timed span */
    /* Index of the first stage's task in this frame's capture; the other stages follow. */
    uint32_t first_task;
    uint64_t chunk_ns; /* duration of a chunk, or of another item, when it was last measured */
    uint64_t hooks_ns; /* duration of begin, end and conditions in this segment */

    /* Written only by the thread that runs the frame, on other cache lines than what all workers read. */
    _Alignas(QUERN__APART_BYTES) uint64_t frame_ns; /* total time of the pass's jobs in this frame */
    uint64_t path_ns;  /* from the segment's beginning to the pass's end, along the passes it waits for */
    uint64_t least_ns; /* duration of this run with a thread for each chunk: that of the longest chunk */
} quern__pass_profile;

/* Profile of a system. */
typedef struct quern__system_profile {
    uint32_t trace_name;
    uint64_t views_seen_ns; /* sum of its QUERN__TIME_VIEWS when samples were last taken */
    uint64_t hooks_seen_ns; /* sum of its QUERN__TIME_HOOKS at that time */
    uint64_t sampled_ns;    /* time in the views of sampled chunks; older samples count less */
    uint64_t profile_ns;    /* time in the last frame, by the profile */
    uint64_t total_ns;      /* time since the profile began */
    uint64_t total_view_count, total_entity_count, total_command_count; /* since the profile began */
} quern__system_profile;

/* Profiler of a schedule. */
typedef struct quern__profiler {
    quern__frame_observer observer; /* first member: frames use only this */
    quern__plan *plan;
    quern_trace *trace;    /* or NULL */
    uint32_t trace_number; /* number of the schedule in the trace */
    bool is_timing;        /* whether every call is timed in all frames */
    bool is_profiling;
    bool is_on;       /* whether this frame needs more than the times of calls */
    bool is_traced;   /* whether this frame is recorded in the trace */
    bool is_learning; /* whether this frame updates shares and strides; see `learns` in profile_frame.c */
    uint64_t observed_count;      /* frames in which is_on was true */
    quern_frame_capture *capture; /* capture of this frame, or NULL */
    quern_jobs *jobs;             /* pool of the last observed frame, or NULL */
    uint64_t start_ns;
    /* Begin of the segment, and the total idle time of worker `caller_index` until then. */
    uint64_t segment_start_ns, segment_idle_ns;
    uint64_t segments_ns;    /* duration of this frame's segments minus idle time of `caller_index` */
    quern__sync_stage stage; /* current stage of the sync point; SYNC: none */
    uint64_t stage_start_ns;
    quern__hardware_counters counters;
    quern__pass_profile *passes; /* indexed by pass number */
    uint32_t pass_capacity;
    uint64_t passes_version;                     /* the plan's passes_version for which `passes` is valid */
    QUERN__ARRAY(quern__system_profile) systems; /* indexed by system */
    quern__observed_worker *workers;
    uint64_t *times_ns; /* [worker * time_stride + system * QUERN__TIME_COUNT + ..] */
    uint32_t time_stride;
    uint32_t worker_count;       /* number of workers in `workers` and `times_ns` */
    uint32_t frame_worker_count; /* number of workers of the last frame */
    uint32_t caller_index;       /* worker that ran the last frame */
    quern_frame_profile frame;   /* profile of the last frame */
    quern_frame_profile total;   /* sums over all frames since the profile began */
    uint64_t frame_count;        /* number of frames in `total` */
} quern__profiler;

_Static_assert(offsetof(struct quern__profiler, observer) == 0, "what a schedule is given is an observer");

static inline quern__profiler *quern__profiler_of(quern__frame_observer *observer)
{
    return (quern__profiler *)(void *)observer;
}

static inline quern__profiler *quern__schedule_profiler(const quern_schedule *schedule)
{
    return quern__profiler_of(schedule->observer);
}

static inline quern__pass_profile *quern__profile_of_pass(const quern__profiler *profiler,
                                                          const quern__pass *pass)
{
    return &profiler->passes[pass->number];
}

static inline quern__system_profile *quern__profile_of_system(const quern__profiler *profiler,
                                                              const quern__system *system)
{
    return &profiler->systems.items[system->index];
}

/* Returns a copy of the profile of a system; all zero for a system that was added after the last profiled
 * frame. */
static inline quern__system_profile quern__profile_copy_of(const quern__profiler *profiler,
                                                           const quern__system *system)
{
    return system->index < profiler->systems.count ? profiler->systems.items[system->index]
                                                   : (quern__system_profile){0};
}

/* Returns the index of a stage's task in the capture. */
static inline uint32_t quern__profile_task_of(const quern__profiler *profiler,
                                              const quern__pass_stage *stage)
{
    return quern__profile_of_pass(profiler, stage->pass)->first_task +
           (uint32_t)(stage - stage->pass->stages);
}

/* Whether one thread runs the whole stage because of its kind. */
static inline bool quern__stage_is_serial(const quern__pass_stage *stage)
{
    const quern__pass_kind kind = stage->pass->kind;
    return (kind != QUERN__PASS_CHUNKS && kind != QUERN__PASS_EVENTS) || stage->is_deep;
}

/* ---------------------------------------------------------------------------- profile_frame.c: frames */

/* Resets the sums of earlier frames; quern__profile_reset also resets shares and strides. */
void quern__profile_reset_totals(quern__profiler *profiler);
void quern__profile_reset(quern__profiler *profiler);

void quern__profile_begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame);
void quern__profile_end_frame(quern__frame_observer *observer);
uint64_t quern__profile_time_ns(const quern__frame_observer *observer, const quern__system *system);

/* Reserves memory for the profile of each pass and system. If the passes were rebuilt, the profiles of the
 * old passes are dropped. Errors: OUT_OF_MEMORY. */
quern_result quern__profile_reserve(quern__profiler *profiler);

/* ----------------------------------------------------------------------- profile_jobs.c: jobs and calls */

void quern__profile_begin_job(quern__frame_observer *observer, const quern__observed_job *job);
quern__job_range quern__profile_next_range(quern__frame_observer *observer, const quern__observed_job *job,
                                           uint32_t begin, uint32_t end);
void quern__profile_end_job(quern__frame_observer *observer, const quern__observed_job *job);
void quern__profile_begin_calls(quern__frame_observer *observer, uint32_t worker_index);
void quern__profile_end_call(quern__frame_observer *observer, const quern__observed_call *call);

/* Returns the duration of a clock read. Any thread. */
uint64_t quern__clock_cost_ns(void);

/* Returns the sample stride for a pass if its chunks took busy_ns together. */
uint32_t quern__profile_choose_stride(const quern__profiler *profiler, const quern__pass *pass,
                                      uint64_t busy_ns);

/* ---------------------------------------------------------- profile_segment.c: segments and sync points */

quern_result quern__profile_prepare_pass(quern__frame_observer *observer, quern__pass *pass);
void quern__profile_begin_segment(quern__frame_observer *observer, const quern__segment *segment);
void quern__profile_end_segment(quern__frame_observer *observer, const quern__segment *segment);
void quern__profile_begin_sync(quern__frame_observer *observer);
void quern__profile_end_sync(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count);
void quern__profile_begin_stage(quern__frame_observer *observer, quern__sync_stage stage);
void quern__profile_begin_loop(quern__frame_observer *observer, uint32_t part_count);
void quern__profile_end_loop(quern__frame_observer *observer);
void quern__profile_end_part(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns);

/* Writes the name of the pass: "move", or "move + 6" if six other systems share it. The text fits for all
 * names. */
void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes);

/* -------------------------------------------------------- capture_frame.c: captured frames */

void quern__capture_begin_segment(const quern__profiler *profiler, const quern__segment *segment);
void quern__capture_end_frame(quern_frame_capture *capture, uint64_t frame_ns);

/* Store the duration of an item, of the part before or after the items, or of a part of a sync point's
 * loop. Any worker. */
void quern__capture_end_item(const quern__profiler *profiler, const quern__pass_stage *stage, uint32_t item,
                             uint64_t took_ns);
void quern__capture_end_hooks(const quern__profiler *profiler, const quern__observed_job *job,
                              uint64_t took_ns);
void quern__capture_end_part(quern_frame_capture *capture, uint64_t took_ns);

/* ----------------------------------------------------------------------------------- between the files */

/* Returns one of the QUERN__TIME_ values of a system on a worker. */
static inline uint64_t *quern__profile_time_of(const quern__profiler *profiler, uint32_t worker_index,
                                               uint32_t system_index, uint32_t what)
{
    return &profiler->times_ns[(size_t)worker_index * profiler->time_stride +
                               (size_t)system_index * QUERN__TIME_COUNT + what];
}

static inline uint64_t quern__profile_idle_ns(const quern__profiler *profiler, uint32_t index,
                                              uint64_t now_ns)
{
    const quern_jobs *jobs = profiler->jobs;
    return jobs != NULL && index < jobs->worker_count ? quern__worker_idle_ns(&jobs->workers[index], now_ns)
                                                      : 0;
}

static inline void quern__profile_record_event(const quern__profiler *profiler, uint32_t track,
                                               const quern__trace_event *event)
{
    if (profiler->is_traced) quern__trace_record_if_running(profiler->trace, track, event);
}

/* Whether samples also read hardware counters. */
static inline bool quern__profile_counts(const quern__profiler *profiler)
{
    return profiler->is_profiling && profiler->counters.is_on;
}

#endif
