/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H
#define QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H

/* The observer of a schedule's frames (sched/schedule/frame_observer.h): the profile, the schedule's part of
 * a trace, and what a frame tells a capture.
 *
 * A chunk of a fused pass takes some hundred nanoseconds, and a look at the clock some twenty, so not every
 * call can be timed, nor even every job, which is a run of chunks. Jobs of a pass that a worker runs one
 * after the other are timed together, as a span, when they come to a length worth a look:
 *
 *     span of jobs:  | chunk | chunk || chunk | chunk || chunk |     one look at its end: the next begins
 *                            one in sample_stride:  | a | b | c |    one after each system
 *
 * What is left toward the end of a pass is counted, and taken to last as long as chunks did when that was
 * learnt. What the jobs of a pass took is divided among its systems in the proportion of the sampled
 * chunks, of which earlier ones fade. The stride is such that samples cost about a thousandth of the pass,
 * or a two-hundredth while a trace runs, or a hundredth with hardware counters (counters.h); where chunks
 * take long all of them are timed. A schedule with `timing` times every call anyway. In a trace each job is
 * timed by itself.
 *
 * For how long workers have no job they tell themselves (sched/jobs/worker_times.c); the rest of their
 * time they are busy.
 *
 * Shares, strides and what a chunk takes are learnt in every 16th frame alone, and in each of the first 16:
 * the lines with the samples are in the caches of the workers, and those with the strides would have to
 * come back to them. On two threads a profile of 100,000 entities cost 3.5 us of a frame with this, and 5
 * without. */

#include "sched/frame/schedule_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/observe/capture.h"
#include "sched/observe/counters.h"
#include "sched/observe/trace.h"
#include "sched/schedule/frame_observer.h"

/* What is timed of a system: its views; begin, end and condition; of the first one of a pass: the pass's
 * jobs, a chunk of those whose chunks took longest, and the number of chunks in jobs that were not
 * timed. */
enum {
    QUERN__TIME_VIEWS,
    QUERN__TIME_HOOKS,
    QUERN__TIME_JOBS,
    QUERN__TIME_LONGEST,
    QUERN__TIME_COUNTED,
    QUERN__TIME_COUNT
};

/* Jobs of a pass that a worker has run one right after the other, and not yet timed. */
typedef struct quern__span {
    const quern__pass *pass;
    uint32_t run_count; /* the worker's */
    uint32_t chunk_count;
    uint64_t start_ns;
} quern__span;

/* What workers do, each in cache lines of its own. */
typedef struct quern__observed_worker {
    _Alignas(QUERN__APART_BYTES) uint64_t lap_start_ns; /* when the call began that is told */
    uint32_t sample_countdown; /* chunks up to and with the next that is timed by system; 0: not begun */
    bool is_shown;             /* the calls that are told, in the trace */
    bool is_counted;           /* likewise, with hardware counters */
    quern__span span;
    uint64_t job_start_ns;  /* of what comes before or after items */
    uint64_t item_start_ns; /* in a frame that is captured */
    uint64_t sync_ns;       /* in loops of sync points that others lead, in all frames that were observed */

    /* What worker 0 keeps of it between frames: apart, so that the worker's own lines stay where they
     * are. */
    _Alignas(QUERN__APART_BYTES) uint64_t sync_seen_ns;
    uint64_t slept_seen_ns;
    uint64_t dry_seen_ns;
    quern_worker_profile profile, profile_total;
} quern__observed_worker;

/* What the profile keeps of a pass, until the passes are made anew. */
typedef struct quern__pass_profile {
    bool is_named; /* its own name and those of its systems are in the trace */
    uint32_t trace_name;
    uint32_t sample_stride;    /* one chunk in so many is timed by system; 0: not known yet */
    uint32_t span_chunk_count; /* the fewest chunks of a span that is timed */
    uint32_t first_task; /* in the capture of this frame: the task of the first stage; others follow */
    uint64_t chunk_ns;   /* duration of a chunk, or of another item, when it was last measured */
    uint64_t hooks_ns;   /* duration of begin, end and conditions in this segment */

    /* Written by worker 0 alone: apart from what all workers read. */
    _Alignas(QUERN__APART_BYTES) uint64_t frame_ns; /* sum of all jobs, over the runs of this frame */
    uint64_t path_ns;  /* from the segment's beginning to the pass's end, along the passes it waits for */
    uint64_t least_ns; /* duration of this run with a thread for each chunk: that of the longest chunk */
} quern__pass_profile;

/* What the profile keeps of a system. */
typedef struct quern__system_profile {
    uint32_t trace_name;
    uint64_t views_seen_ns; /* sum of its QUERN__TIME_VIEWS when samples were last taken */
    uint64_t hooks_seen_ns; /* sum of its QUERN__TIME_HOOKS likewise */
    uint64_t sampled_ns;    /* time in the views of sampled chunks; older samples count less */
    uint64_t profile_ns;    /* time in the last frame, by the profile */
    uint64_t total_ns;      /* time since the profile began */
    uint64_t total_view_count, total_entity_count, total_command_count; /* since the profile began */
} quern__system_profile;

/* Of a schedule. */
typedef struct quern__profiler {
    quern__frame_observer observer; /* first: frames know no more of it */
    quern__plan *plan;
    quern_trace *trace;    /* or NULL */
    uint32_t trace_number; /* of the schedule, in the trace */
    bool is_timing;        /* every call, in all frames */
    bool is_profiling;
    bool is_on;              /* in this frame: more than the times of calls is asked for */
    bool is_traced;          /* in this frame */
    bool is_learning;        /* from this frame: see above */
    uint64_t observed_count; /* frames in which is_on was true */
    quern_capture *capture;  /* of this frame, or NULL */
    quern_jobs *jobs;        /* of the last frame that was looked at; or NULL */
    uint64_t start_ns;
    /* When the segment began, and how long worker 0 had been without a job until then. */
    uint64_t segment_start_ns, segment_dry_ns;
    uint64_t segments_ns;    /* of this frame's segments, less worker 0 without a job */
    quern__sync_stage stage; /* of the sync point that runs; SYNC: none */
    uint64_t stage_start_ns;
    quern__counters counters;
    quern__pass_profile *passes; /* by the number of the pass */
    uint32_t pass_capacity;
    uint64_t passes_version; /* of the plan, when `passes` began; another one: `passes` is void */
    QUERN__ARRAY(quern__system_profile) systems; /* by the index of the system */
    quern__observed_worker *workers;
    uint64_t *times_ns; /* [worker * time_stride + system * QUERN__TIME_COUNT + ..] */
    uint32_t time_stride;
    uint32_t worker_count;       /* entries of both */
    uint32_t frame_worker_count; /* of the last frame */
    uint32_t caller_index;       /* the worker that ran it */
    quern_frame_profile frame;   /* the last */
    quern_frame_profile total;   /* of all since the profile began */
    uint64_t frame_count;        /* of those */
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

/* The same as a copy, all zero for a system that was added after the last profiled frame. */
static inline quern__system_profile quern__profile_known_of(const quern__profiler *profiler,
                                                            const quern__system *system)
{
    return system->index < profiler->systems.count ? profiler->systems.items[system->index]
                                                   : (quern__system_profile){0};
}

/* The number of a stage's task in the capture. */
static inline uint32_t quern__profile_task_of(const quern__profiler *profiler, const quern__stage *stage)
{
    return quern__profile_of_pass(profiler, stage->pass)->first_task +
           (uint32_t)(stage - stage->pass->stages);
}

/* Whether one thread runs all of it, by what it is. */
static inline bool quern__stage_is_serial(const quern__stage *stage)
{
    const quern__pass_kind kind = stage->pass->kind;
    return (kind != QUERN__PASS_CHUNKS && kind != QUERN__PASS_EVENTS) || stage->is_deep;
}

/* ---------------------------------------------------------------------------- profile_frame.c: frames */

/* What earlier frames came to is forgotten: the sums; all of it, also what was learnt. */
void quern__profile_forget_totals(quern__profiler *profiler);
void quern__profile_forget(quern__profiler *profiler);

void quern__profile_begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame);
void quern__profile_end_frame(quern__frame_observer *observer);
uint64_t quern__profile_time_ns(const quern__frame_observer *observer, const quern__system *system);

/* Makes room for what is kept of each pass and system. When the passes were made anew, what was kept of the
 * old ones is forgotten. Errors: OUT_OF_MEMORY. */
quern_result quern__profile_reserve(quern__profiler *profiler);

/* ----------------------------------------------------------------------- profile_jobs.c: jobs and calls */

void quern__profile_begin_job(quern__frame_observer *observer, const quern__observed_job *job);
quern__stretch quern__profile_next_stretch(quern__frame_observer *observer, const quern__observed_job *job,
                                           uint32_t begin, uint32_t end);
void quern__profile_end_job(quern__frame_observer *observer, const quern__observed_job *job);
void quern__profile_begin_calls(quern__frame_observer *observer, uint32_t worker_index);
void quern__profile_end_call(quern__frame_observer *observer, const quern__observed_call *call);

/* What a look at the clock takes. Any thread. */
uint64_t quern__clock_cost_ns(void);

/* Of a pass that took so long on so many chunks: one chunk in how many is to be timed by system. */
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

/* "move", or "move + 6" when six others share the pass: so that it fits, whatever the names. */
void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes);

/* -------------------------------------------------------- capture_frame.c: what a frame tells a capture */

void quern__capture_begin_segment(const quern__profiler *profiler, const quern__segment *segment);
void quern__capture_end_frame(quern_capture *capture, uint64_t frame_ns);

/* What an item of the pass took; before or after its items; a part of a sync point's loop. Any worker. */
void quern__capture_end_item(const quern__profiler *profiler, const quern__stage *stage, uint32_t item,
                             uint64_t took_ns);
void quern__capture_end_hooks(const quern__profiler *profiler, const quern__observed_job *job,
                              uint64_t took_ns);
void quern__capture_end_part(quern_capture *capture, uint64_t took_ns);

/* ----------------------------------------------------------------------------------- between the files */

/* One of the QUERN__TIME_ of a system, on a worker. */
static inline uint64_t *quern__profile_time_of(const quern__profiler *profiler, uint32_t worker_index,
                                               uint32_t system_index, uint32_t what)
{
    return &profiler->times_ns[(size_t)worker_index * profiler->time_stride +
                               (size_t)system_index * QUERN__TIME_COUNT + what];
}

static inline uint64_t quern__profile_dry_ns(const quern__profiler *profiler, uint32_t index,
                                             uint64_t now_ns)
{
    const quern_jobs *jobs = profiler->jobs;
    return jobs != NULL && index < jobs->worker_count ? quern__worker_idle_ns(&jobs->workers[index], now_ns)
                                                      : 0;
}

static inline void quern__profile_show(const quern__profiler *profiler, uint32_t track,
                                       const quern__trace_event *event)
{
    if (profiler->is_traced) quern__trace_show(profiler->trace, track, event);
}

/* Whether samples are taken with hardware counters, too. */
static inline bool quern__profile_counts(const quern__profiler *profiler)
{
    return profiler->is_profiling && profiler->counters.is_on;
}

#endif
