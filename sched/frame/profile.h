/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_PROFILE_H
#define QUERN_SCHED_FRAME_PROFILE_H

/* Watching a frame: the profile, and the schedule's part of a trace.
 *
 * A chunk of a fused pass takes some hundred nanoseconds, and a look at the clock some twenty, so not every
 * call can be timed, nor even every job, which is a run of chunks. Jobs of a pass that a worker runs one
 * after the other are timed together, as a span, when they come to a length worth a look:
 *
 *     span of jobs:  | chunk | chunk || chunk | chunk || chunk |     one look at its end, which begins the next
 *                            one in sample_stride:  | a | b | c |    one after each system
 *
 * What is left toward the end of a pass is counted, and taken to last as long as chunks did when that was
 * learnt. What the jobs of a pass took is divided among its systems in the proportion of the sampled
 * chunks, of which earlier ones fade. The stride is such that samples cost about a thousandth of the pass,
 * or a two-hundredth while a trace runs, or a hundredth with hardware counters (counters.h); where chunks
 * take long all of them are timed. A schedule with `timing` times every call anyway. In a trace each job is
 * timed by itself.
 *
 * For how long workers have no job they tell themselves (watch.c); the rest of their time they are busy.
 *
 * Shares, strides and what a chunk takes are learnt in every 16th frame alone, and in each of the first 16:
 * the lines with the samples are in the caches of the workers, and those with the strides would have to
 * come back to them. On two threads a profile of 100,000 entities cost 3.5 us of a frame with this, and 5
 * without.
 *
 * Nothing here has an influence on what a frame does. */

#include "sched/frame/context.h"
#include "sched/jobs/jobs.h"

/* ------------------------------------------------------------------- profile_frame.c: frames, workers */

/* Whether somebody wants to know about the frame that begins. */
void quern__profile_start_frame(quern_schedule *schedule, uint64_t start_ns);
void quern__profile_finish_frame(quern_schedule *schedule);

/* In a schedule with a trace: the names of the pass and its systems. Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__profile_name_pass(quern__pass *pass);

/* Of the system in the latest frame: by every call, or by the profile; 0 without both. */
uint64_t quern__profile_time_ns(const quern_schedule *schedule, const quern__system *system);

/* -------------------------------------------------------------- profile.c: jobs, segments, sync points */

/* Around a segment with passes. */
void quern__profile_start_segment(quern_schedule *schedule, const quern__segment *segment);
void quern__profile_finish_segment(quern_schedule *schedule, const quern__segment *segment);

/* Around a sync point that has commands. */
void quern__profile_start_sync(quern_schedule *schedule);
void quern__profile_begin_stage(quern_schedule *schedule, quern__sync_stage stage);
void quern__profile_finish_sync(quern_schedule *schedule, uint64_t start_ns, uint32_t command_count);

/* Around a loop of the sync point, in a frame that is watched. */
void quern__profile_start_loop(const quern_schedule *schedule, uint32_t part_count);
void quern__profile_finish_loop(const quern_schedule *schedule);

/* After a part of a loop of the sync point, in a frame that is watched. */
void quern__profile_add_sync_part(quern_context *context, uint64_t start_ns);

/* Around the callbacks of a job, in a frame that is watched. Any worker. */
void quern__profile_start_job(const quern__pass *pass, quern_context *context);
void quern__profile_finish_job(const quern__pass *pass, quern_context *context, uint32_t begin,
                               uint32_t end);

/* While a job has samples to take (the context's sample_countdown is not 0): the first of the chunks begin
 * to end - 1 that is one, or end; and around it. */
uint32_t quern__profile_next_sample(quern_context *context, uint32_t begin, uint32_t end);
void quern__profile_start_sample(const quern__pass *pass, quern_context *context);
void quern__profile_finish_sample(quern_context *context);

/* Where calls are timed (the context's is_timed): before a row of calls, and after each of them, which is
 * when the next one begins. */
void quern__profile_start_laps(quern_context *context);
void quern__profile_end_lap(quern_context *context, uint32_t row_count);

/* Around what a pass does before and after its jobs. 0: the frame is not watched. */
uint64_t quern__profile_start_hooks(quern_context *context);
void quern__profile_finish_hooks(quern__pass *pass, quern_context *context, uint64_t start_ns);

/* ---------------------------------------------------------- profile_capture.c: frames that are captured */

void quern__profile_capture_segment(quern_capture *capture, const quern__segment *segment);
void quern__profile_finish_capture(const quern__watch *watch);

/* What an item of the pass took; before or after its items; a part of a sync point's loop. Any worker. */
void quern__profile_capture_item(const quern__pass *pass, uint32_t item, uint64_t took_ns);
void quern__profile_capture_hooks(const quern__pass *pass, const quern_context *context, uint64_t took_ns);
void quern__profile_capture_part(quern_capture *capture, uint64_t took_ns);

/* ----------------------------------------------------------------------------------- between the files */

/* What a look at the clock takes. Any thread. */
uint64_t quern__clock_cost_ns(void);

/* "move", or "move + 6" when six others share the pass: so that it fits, whatever the names. */
void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes);

/* One of the QUERN__TIME_ of a system, on a worker. */
static inline uint64_t *quern__profile_time_of(const quern_schedule *schedule, uint32_t worker_index,
                                               uint32_t system_index, uint32_t what)
{
    return &schedule->times_ns[(size_t)worker_index * schedule->time_stride +
                               (size_t)system_index * QUERN__TIME_COUNT + what];
}

static inline uint64_t quern__profile_dry_ns(const quern_schedule *schedule, uint32_t index,
                                             uint64_t now_ns)
{
    const quern_jobs *jobs = schedule->jobs;
    return jobs != NULL && index < jobs->thread_count ? quern__worker_dry_ns(&jobs->workers[index], now_ns)
                                                      : 0;
}

static inline void quern__profile_show(const quern_schedule *schedule, uint32_t track,
                                       const quern__trace_event *event)
{
    if (schedule->watch.is_traced) quern__trace_show(schedule->watch.trace, track, event);
}

/* Whether samples are taken with hardware counters, too. */
static inline bool quern__watch_counts(const quern__watch *watch)
{
    return watch->is_profiling && watch->counters.is_on;
}

#endif
