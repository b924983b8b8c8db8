/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_CAPTURE_H
#define QUERN_SCHED_OBSERVE_CAPTURE_H

/* What a frame consisted of: segments, one after another, each of tasks that wait for each other. A task is
 * a pass or a part of a sync point: something before, items in any order on any thread, something after.
 * The item of a serial task, and what comes before and after items, may have run loops on the pool, which
 * several threads would share. */

#include "core/base/array.h"
#include "sched/jobs/job_observer.h"

#include <quern/profile.h>

#include <stdatomic.h>

typedef enum quern__task_part {
    QUERN__TASK_BEFORE,
    QUERN__TASK_ITEM, /* the only one of a serial task */
    QUERN__TASK_AFTER,
    QUERN__TASK_PART_COUNT
} quern__task_part;

typedef struct quern__task {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t before_ns, after_ns;
    uint64_t bytes; /* that its items touch, when that is more than the caches hold; 0: less */
    uint32_t first_item, item_count;             /* in the capture's items */
    uint32_t first_wait, wait_count;             /* in the capture's waits */
    uint32_t first_loop[QUERN__TASK_PART_COUNT]; /* in the capture's loops; QUERN__NO_LOOP: none */
    bool is_sync;                                /* of a sync point */
    bool is_serial;                              /* one thread runs all of it, by what it is */
    bool caller_only;                            /* and that is worker 0 */
} quern__task;

typedef struct quern__inner_loop {
    uint64_t took_ns; /* on one thread */
    uint32_t
        piece_count; /* 1: as many as there are threads, for so does code that divides its work itself */
    uint32_t next;   /* of the same part of the same task, or QUERN__NO_LOOP */
} quern__inner_loop;

#define QUERN__NO_LOOP UINT32_MAX

typedef struct quern__captured_segment {
    uint32_t first_task, end_task;
    bool is_sync;
} quern__captured_segment;

struct quern_capture {
    quern__loop_observer loop_observer; /* first: who tells it of loops tells the capture */
    quern_allocator allocator;
    uint64_t frame_ns;
    uint64_t serial_ns; /* of it, outside the segments */
    uint32_t thread_count;
    QUERN__ARRAY(quern__captured_segment) segments;
    QUERN__ARRAY(quern__task) tasks;
    QUERN__ARRAY(uint64_t) items_ns;
    QUERN__ARRAY(uint32_t) waits; /* tasks of the same segment, that come earlier */
    QUERN__ARRAY(quern__inner_loop) loops;

    /* while it is made */
    bool is_in_use; /* a frame runs that is captured in it */
    bool is_out_of_memory;
    uint64_t segment_start_ns, mark_ns;
    uint64_t segments_ns;
    uint32_t looping_task; /* what runs, and may run loops */
    quern__task_part looping_part;
    _Atomic uint32_t part_count; /* of the loop that runs */
};

/* By the caller. What there is no memory for is left out, and is_out_of_memory says so. */
void quern__capture_start(quern_capture *capture, uint32_t thread_count);
void quern__capture_start_segment(quern_capture *capture, bool is_sync, uint64_t now_ns);
void quern__capture_finish_segment(quern_capture *capture, uint64_t now_ns);

/* Adds a task with items that take no time yet. Returns its number, or UINT32_MAX. */
uint32_t quern__capture_add_task(quern_capture *capture, const char *name, uint32_t item_count);

/* Of the task that was added last. before: a number that add_task returned in this segment. */
void quern__capture_add_wait(quern_capture *capture, uint32_t before);

/* Of a sync point: what worker 0 did since the segment began, or the last loop ended. */
void quern__capture_add_gap(quern_capture *capture, uint64_t now_ns);
/* A loop of at most so many parts; each part, on any worker; and its end. */
void quern__capture_start_loop(quern_capture *capture, uint32_t part_count);
void quern__capture_add_part(quern_capture *capture, uint64_t took_ns);
void quern__capture_finish_loop(quern_capture *capture, uint64_t now_ns);

/* The loops that are told from now on are of this part of this task. */
void quern__capture_expect_loops(quern_capture *capture, uint32_t task, quern__task_part part);

extern const quern_forecast_costs quern__typical_costs;

#endif
