/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_FRAME_OBSERVER_H
#define QUERN_SCHED_SCHEDULE_FRAME_OBSERVER_H

/* The interface through which a frame reports what it does. Frames know nothing else of their observer; the one
 * of each schedule is the profiler of sched/observe, which feeds profiles, traces and captures.
 *
 *     frame     | segment            | sync point            | segment ...
 *     segment   | job  job           |
 *               |      job  job      |      on several workers
 *     job         call call call            or, of the items of a pass: stretch | told stretch | stretch
 *     sync point                     | stage | stage         |
 *     stage                            part part part               of a loop, on several workers
 *
 * A job is a run of items of a pass on one worker, or all that the pass calls before its items or after
 * them. While nobody looks it costs one branch, when it begins. The observer divides a job into stretches,
 * and says of each whether its calls are to be told, one by one. Those are run by a copy of the loop over
 * chunks, so the others pay nothing for them, and who takes a sample now and then pays for the sample.
 *
 * What is told has no influence on what a frame does. */

#include "core/base/executor.h"
#include "sched/schedule/schedule_plan.h"

typedef struct quern__observed_frame {
    quern_jobs *jobs; /* or NULL */
    uint32_t thread_count;
    uint32_t worker_count;
    uint32_t caller_index; /* of its workers */
    uint64_t frame_index;
    uint64_t begin_ns;
} quern__observed_frame;

typedef enum quern__callback_kind {
    QUERN__CALLBACK_BEGIN, /* also conditions */
    QUERN__CALLBACK_RUN,
    QUERN__CALLBACK_END
} quern__callback_kind;

typedef struct quern__observed_job {
    quern__pass *pass;
    const quern__stage *stage; /* of callback RUN */
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t begin, end; /* items of the stage; callback RUN alone */
} quern__observed_job;

/* Part of a job: chunks up to this one, and whether their calls are told. Of the one item of a serial pass
 * the chunks, of others the items. */
typedef struct quern__stretch {
    uint32_t end;
    bool is_told;
} quern__stretch;

/* A callback that has returned. */
typedef struct quern__observed_call {
    const quern__system *system;
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t ordinal, row_count; /* of its view; callback RUN alone */
} quern__observed_call;

typedef struct quern__frame_observer quern__frame_observer;

/* By the caller of the frame, but for jobs, calls and parts, which their workers tell. Only prepare,
 * prepare_pass, begin_frame, system_time_ns and destroy are called when nobody looks. */
typedef struct quern__frame_observer_calls {
    /* Before a frame: decides whether it is looked at, and makes room. Errors, after which the frame does
     * not begin: OUT_OF_MEMORY. */
    quern_result (*prepare)(quern__frame_observer *observer, uint32_t worker_count);
    /* In a frame, when what the pass has to do was counted anew. Errors: OUT_OF_MEMORY, LIMIT. */
    quern_result (*prepare_pass)(quern__frame_observer *observer, quern__pass *pass);
    void (*begin_frame)(quern__frame_observer *observer, const quern__observed_frame *frame);
    void (*end_frame)(quern__frame_observer *observer);

    void (*begin_segment)(quern__frame_observer *observer, const quern__segment *segment);
    void (*end_segment)(quern__frame_observer *observer, const quern__segment *segment);

    void (*begin_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Of callback RUN: the stretch that begins now, of what is left of the job. */
    quern__stretch (*next_stretch)(quern__frame_observer *observer, const quern__observed_job *job,
                                   uint32_t begin, uint32_t end);
    void (*end_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Calls of a job that follow each other are about to be told. Jobs of other callbacks begin so. */
    void (*begin_calls)(quern__frame_observer *observer, uint32_t worker_index);
    void (*end_call)(quern__frame_observer *observer, const quern__observed_call *call);

    void (*begin_sync)(quern__frame_observer *observer);
    void (*end_sync)(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count);
    void (*begin_stage)(quern__frame_observer *observer, quern__sync_stage stage);
    void (*begin_loop)(quern__frame_observer *observer, uint32_t part_count);
    void (*end_loop)(quern__frame_observer *observer);
    void (*end_part)(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns);

    /* What the system took in the last frame; 0 when nobody knows. */
    uint64_t (*system_time_ns)(const quern__frame_observer *observer, const quern__system *system);
    void (*destroy)(quern__frame_observer *observer);
} quern__frame_observer_calls;

struct quern__frame_observer {
    const quern__frame_observer_calls *calls;
    bool is_looking;  /* at this frame: set by prepare or begin_frame */
    bool wants_parts; /* likewise: loops of sync points are in parts on one thread, too */
};

/* Makes the observer of a schedule that is being created. Errors: OUT_OF_MEMORY. */
typedef quern_result quern__frame_observer_create(quern__plan *plan, const quern_schedule_def *def,
                                                  quern__frame_observer **out_observer);

#endif
