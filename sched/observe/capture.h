/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_CAPTURE_H
#define QUERN_SCHED_OBSERVE_CAPTURE_H

/* A captured frame: segments, which run one after another. Each segment has tasks that wait for each other.
 * A task is a pass or a part of a sync point: a part before the items, items in any order on any thread,
 * and a part after the items. The item of a serial task, and the parts before and after items, may have run
 * loops on the pool, which several threads would share. */

#include "core/base/array.h"
#include "sched/jobs/job_observer.h"

#include <quern/profile.h>

#include <stdatomic.h>

typedef enum quern__task_part {
    QUERN__TASK_BEFORE,
    QUERN__TASK_ITEM, /* the only item, if the task is serial */
    QUERN__TASK_AFTER,
    QUERN__TASK_PART_COUNT
} quern__task_part;

typedef struct quern__task {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t before_ns, after_ns;
    uint64_t bytes; /* bytes that the items touch if these exceed the caches; otherwise 0 */
    uint32_t first_item, item_count;             /* in capture.items_ns */
    uint32_t first_wait, wait_count;             /* in capture.waits */
    uint32_t first_loop[QUERN__TASK_PART_COUNT]; /* in capture.loops; QUERN__NO_LOOP: none */
    bool is_sync;                                /* whether the task is part of a sync point */
    /* Whether one thread runs the whole task because of its kind. */
    bool is_serial;
    bool caller_only; /* whether that thread must be the one that runs the frame */
} quern__task;

typedef struct quern__inner_loop {
    uint64_t took_ns; /* duration on one thread */
    /* Number of pieces that threads can share; 1: as many as there are threads, because code that divides
     * its own work does that. */
    uint32_t piece_count;
    uint32_t next; /* next loop of the same part of the same task, or QUERN__NO_LOOP */
} quern__inner_loop;

#define QUERN__NO_LOOP UINT32_MAX

typedef struct quern__captured_segment {
    uint32_t first_task, end_task;
    bool is_sync;
} quern__captured_segment;

struct quern_frame_capture {
    /* First member: a report of a loop finds the capture by this address. */
    quern__loop_observer loop_observer;
    quern_allocator allocator;
    uint64_t frame_ns;
    uint64_t serial_ns; /* part of frame_ns outside of segments */
    uint32_t thread_count;
    QUERN__ARRAY(quern__captured_segment) segments;
    QUERN__ARRAY(quern__task) tasks;
    QUERN__ARRAY(uint64_t) items_ns;
    QUERN__ARRAY(uint32_t) waits; /* earlier tasks of the same segment */
    QUERN__ARRAY(quern__inner_loop) loops;

    /* The following members are used while a frame is captured. */
    bool is_in_use; /* whether a frame that uses this capture is running */
    bool is_out_of_memory;
    uint64_t segment_start_ns, mark_ns;
    uint64_t segments_ns;
    uint32_t looping_task; /* the running task that may run loops */
    quern__task_part looping_part;
    _Atomic uint32_t part_count; /* number of finished parts of the running loop */
};

/* Begin the capture of a frame, and begin and end its segments. Called by the thread that runs the frame. If memory
 * is exhausted, they drop data and set is_out_of_memory. */
void quern__capture_start(quern_frame_capture *capture, uint32_t thread_count);
void quern__capture_start_segment(quern_frame_capture *capture, bool is_sync, uint64_t now_ns);
void quern__capture_finish_segment(quern_frame_capture *capture, uint64_t now_ns);

/* Adds a task with items of duration 0. Returns its index, or UINT32_MAX if there is no memory. */
uint32_t quern__capture_add_task(quern_frame_capture *capture, const char *name, uint32_t item_count);

/* Makes the last added task wait for `before`, an index that add_task returned in this segment. */
void quern__capture_add_wait(quern_frame_capture *capture, uint32_t before);

/* Adds a serial task to a sync point: the work of the thread that runs the frame since the segment began or the
 * last loop ended. */
void quern__capture_add_gap(quern_frame_capture *capture, uint64_t now_ns);
/* Begin a loop with at most `part_count` parts in a sync point, add the duration of a part, and end the loop. Any
 * worker may add parts. */
void quern__capture_start_loop(quern_frame_capture *capture, uint32_t part_count);
void quern__capture_add_part(quern_frame_capture *capture, uint64_t took_ns);
void quern__capture_finish_loop(quern_frame_capture *capture, uint64_t now_ns);

/* Attributes the loops that are reported from now on to this part of this task. */
void quern__capture_set_loop_owner(quern_frame_capture *capture, uint32_t task, quern__task_part part);

extern const quern_forecast_costs quern__typical_costs;

#endif
