/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_FRAME_OBSERVER_H
#define QUERN_SCHED_SCHEDULE_FRAME_OBSERVER_H

/* The interface through which a frame reports what it does. Frames know nothing else about their observer.
 * The observer of every schedule is the profiler of sched/observe, which feeds profiles, traces and
 * captures.
 *
 *     frame     | segment            | sync point            | segment ...
 *     segment   | job  job           |
 *               |      job  job      |      on several workers
 *     job         call call call            or, for items of a pass: range | reported range | range
 *     sync point                     | stage | stage         |
 *     stage                            part part part               of a loop, on several workers
 *
 * A job is a range of a pass's items on one worker, or all callbacks that the pass calls before or after
 * its items. In a frame that is not observed, a job costs one branch. The observer divides a job into
 * ranges, and decides for each range whether its calls are reported one by one. Reported ranges run
 * in a separate copy of the chunk loop. So other ranges cost nothing, and an observer that samples calls
 * pays only for the samples.
 *
 * Reporting never changes what a frame does. */

#include "core/base/executor.h"
#include "sched/schedule/schedule_plan.h"

typedef struct quern__observed_frame {
    quern_jobs *jobs; /* NULL: the frame runs on the calling thread alone */
    uint32_t thread_count;
    uint32_t worker_count;
    uint32_t caller_index; /* worker that runs the frame */
    uint64_t frame_index;
    uint64_t begin_ns;
} quern__observed_frame;

typedef enum quern__callback_kind {
    QUERN__CALLBACK_BEGIN, /* begin callbacks and conditions */
    QUERN__CALLBACK_RUN,
    QUERN__CALLBACK_END
} quern__callback_kind;

typedef struct quern__observed_job {
    quern__pass *pass;
    const quern__pass_stage *stage; /* used if callback is RUN */
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t begin, end; /* items of the stage; used if callback is RUN */
} quern__observed_job;

/* The next range of a job, which ends before `end`. is_reported: whether each of its calls is reported to the
 * observer. Unit of the range: chunks in a serial pass (its job is a single item); otherwise items. */
typedef struct quern__job_range {
    uint32_t end;
    bool is_reported;
} quern__job_range;

/* A callback that has returned. */
typedef struct quern__observed_call {
    const quern__system *system;
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t ordinal, row_count; /* of the callback's view; used if callback is RUN */
} quern__observed_call;

typedef struct quern__frame_observer quern__frame_observer;

/* The thread that runs the frame calls these functions, except for the functions of jobs, calls and parts:
 * the worker concerned calls those. In a frame that is not observed, only prepare, prepare_pass,
 * begin_frame, system_time_ns and destroy are called. */
typedef struct quern__frame_observer_calls {
    /* Decides before a frame whether to observe it, and reserves memory. Errors: OUT_OF_MEMORY; the frame
     * does not begin. */
    quern_result (*prepare)(quern__frame_observer *observer, uint32_t worker_count);
    /* Reserves memory in a frame, after the items of the pass were counted. Errors: OUT_OF_MEMORY,
     * LIMIT. */
    quern_result (*prepare_pass)(quern__frame_observer *observer, quern__pass *pass);
    void (*begin_frame)(quern__frame_observer *observer, const quern__observed_frame *frame);
    void (*end_frame)(quern__frame_observer *observer);

    void (*begin_segment)(quern__frame_observer *observer, const quern__segment *segment);
    void (*end_segment)(quern__frame_observer *observer, const quern__segment *segment);

    /* Runs a job of an observed frame, by begin_job, next_range and end_job: quern__pass_run_observed. */
    void (*run_job)(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                    struct quern_context *context);
    void (*begin_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Returns the next range of the job, which begins at `begin`. [begin, end) is the rest of the job.
     * Called if the job's callback is RUN. */
    quern__job_range (*next_range)(quern__frame_observer *observer, const quern__observed_job *job,
                                   uint32_t begin, uint32_t end);
    void (*end_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Announces a sequence of reported calls in a job with the callback RUN. In other jobs, begin_job
     * announces it. */
    void (*begin_calls)(quern__frame_observer *observer, uint32_t worker_index);
    void (*end_call)(quern__frame_observer *observer, const quern__observed_call *call);

    void (*begin_sync)(quern__frame_observer *observer);
    void (*end_sync)(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count);
    void (*begin_stage)(quern__frame_observer *observer, quern__sync_stage stage);
    void (*begin_loop)(quern__frame_observer *observer, uint32_t call_count);
    void (*end_loop)(quern__frame_observer *observer);
    void (*end_part)(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns);

    /* Returns the time of the system in the last frame, in ns; 0 if it was not measured. */
    uint64_t (*system_time_ns)(const quern__frame_observer *observer, const quern__system *system);
    void (*destroy)(quern__frame_observer *observer);
} quern__frame_observer_calls;

struct quern__frame_observer {
    const quern__frame_observer_calls *calls;
    bool is_observing; /* the current frame is observed; set by prepare or begin_frame */
    /* Loops of sync points are divided into parts even on one thread. Set by prepare or begin_frame. */
    bool wants_loop_parts;
};

/* Creates the observer of a schedule that is being created. Errors: OUT_OF_MEMORY. */
typedef quern_result quern__frame_observer_create(quern__plan *plan, const quern_schedule_def *def,
                                                  quern__frame_observer **out_observer);

#endif
