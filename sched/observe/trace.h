/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_TRACE_H
#define QUERN_SCHED_OBSERVE_TRACE_H

/* Rings of events, one for each track. A ring has one writer, the thread that is the track's at the time,
 * and any number of readers, at any time:
 *
 *     writer                                 reader
 *     head is h                              end = head (acquire)
 *     slot h mod capacity (release, each     copies the slots from end - capacity to end - 1 (acquire,
 *       word) is the event                     each word)
 *     head = h + 1 (release)                 now = head (relaxed)
 *
 * With the acquire of head the reader has every event below end, as a whole. But the writer may go on, and
 * write event e + capacity over event e while that is copied. If the reader got a word of the new one,
 * then its acquire of that word makes visible what the writer did before, which is head = e + capacity. So
 * an event is whole when now < e + capacity; others are left out. Of a ring that is full, capacity - 1
 * events can be read. */

#include "core/base/array.h"
#include "sched/jobs/atomic.h"
#include "sched/jobs/job_observer.h"

#include <quern/profile.h>

#include <pthread.h>

typedef enum quern__trace_kind {
    QUERN__TRACE_ZONE, /* of the user */
    QUERN__TRACE_FRAME,
    QUERN__TRACE_PASS,   /* a job of a pass: a run of chunks */
    QUERN__TRACE_SYSTEM, /* a system on one view */
    QUERN__TRACE_BEGIN,  /* a system's condition or begin */
    QUERN__TRACE_END,    /* a system's end */
    QUERN__TRACE_SYNC,   /* a stage of a sync point, or the whole of it; on others what they do for it */
    QUERN__TRACE_STEAL,
    QUERN__TRACE_SLEEP,
    QUERN__TRACE_LOOP, /* help with a parallel loop that somebody else waits for */
    QUERN__TRACE_JOB,  /* named work of a pool: a job, a loop, a node of a graph */
    QUERN__TRACE_KIND_COUNT
} quern__trace_kind;

/* Of events whose kind, and for a sync point ordinal, says what they are. */
#define QUERN__TRACE_NO_NAME UINT32_MAX

typedef struct quern__trace_event {
    uint64_t begin_ns; /* of quern__clock_ns */
    uint64_t duration_ns;
    quern__trace_kind kind;
    uint32_t name;
    uint32_t ordinal; /* of the frame; the first chunk; the view; the stage */
    uint32_t count; /* of chunks in a job; of rows; of commands; of what was stolen; the frame's schedule */
} quern__trace_event;

enum { QUERN__TRACE_EVENT_WORDS = 4, QUERN__TRACE_KIND_BITS = 8 };

typedef struct quern__trace_slot {
    _Atomic uint64_t words[QUERN__TRACE_EVENT_WORDS];
} quern__trace_slot;

/* A name of work that a track has shown, so that it need not be looked for under the mutex again. */
typedef struct quern__trace_seen {
    char text[QUERN_MAX_NAME_BYTES + 1]; /* empty: none */
    uint32_t number;
} quern__trace_seen;

enum { QUERN__TRACE_SEEN_COUNT = 16 }; /* a power of two */

typedef struct quern__trace_track {
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t head; /* events ever written */
    _Atomic uint64_t start_head;                        /* head at the last start */
    _Atomic uint32_t depth;              /* of open zones; by the writer, in builds with QUERN_CHECKS */
    quern__trace_slot *slots;            /* capacity of them */
    char name[QUERN_MAX_NAME_BYTES + 1]; /* by the trace's mutex; empty: worker N */
    quern__trace_seen seen[QUERN__TRACE_SEEN_COUNT]; /* by the writer alone */
} quern__trace_track;

typedef struct quern__trace_name {
    char text[QUERN_MAX_NAME_BYTES + 1];
} quern__trace_name;

/* What is told once and not again until the trace starts anew: zones come by the thousand. */
enum { QUERN__TOLD_TRACK = 1, QUERN__TOLD_CROSSING = 2, QUERN__TOLD_WORKERS = 4 };

struct quern_trace {
    _Alignas(QUERN__APART_BYTES) quern__observer observer; /* first: pools know no more of a trace */
    _Atomic uint32_t told;                                 /* since the start */
    _Atomic uint64_t start_ns;                             /* what began earlier does not count */
    uint32_t track_count;
    uint32_t capacity; /* of each ring; a power of two */
    quern__trace_track *tracks;
    quern_allocator allocator;
    pthread_mutex_t mutex; /* for names */
    QUERN__ARRAY(quern__trace_name) names;
    _Atomic uint32_t schedule_count; /* that ever did */
};

_Static_assert(offsetof(struct quern_trace, observer) == 0, "what a pool is given is an observer");

/* A schedule that was given the trace begins to hold on to it, and has ended. It gets a number, by which
 * its frames are told from others': 0, 1, ... trace may be NULL. */
uint32_t quern__trace_add_schedule(quern_trace *trace);
void quern__trace_remove_schedule(quern_trace *trace);

/* Names may be added at any time, so who reads them takes a copy: "?" for a number that is none, and an
 * empty text for a track that was given no name. */
void quern__trace_copy_name(quern_trace *trace, uint32_t name, char text[QUERN_MAX_NAME_BYTES + 1]);
void quern__trace_copy_track_name(quern_trace *trace, uint32_t track, char text[QUERN_MAX_NAME_BYTES + 1]);

/* The number of a name, which is added when it is new; QUERN__TRACE_NO_NAME when there is no room. */
uint32_t quern__trace_number_of(quern_trace *trace, const char *name);

/* What a pool calls: see quern__observer. */
void quern__trace_show_job(quern__observer *observer, uint32_t worker_index, quern__job_event event,
                           const char *name, uint64_t begin_ns, uint32_t count);

/* Whether events are wanted. */
static inline bool quern__trace_wants(const quern_trace *trace)
{
    return trace != NULL && quern__observer_is_recording(&trace->observer);
}

/* By the track's thread, for a trace that wants events. The track must exist. */
void quern__trace_record(quern_trace *trace, uint32_t track, const quern__trace_event *event);

/* Records where the trace runs and has the track, and did so when the event began. trace may be NULL. */
void quern__trace_show(quern_trace *trace, uint32_t track, const quern__trace_event *event);

/* Warns once per start if so many workers are more than there are tracks. trace may be NULL. By the caller
 * of a frame. */
void quern__trace_expect_workers(quern_trace *trace, uint32_t worker_count);

/* The oldest event that can be read as a whole, by its number, when head is this. */
static inline uint64_t quern__trace_oldest_whole(const quern_trace *trace, uint64_t head)
{
    return head + 1 > trace->capacity ? head + 1 - trace->capacity : 0;
}

/* Copies what the track's ring holds since the start, oldest first, into capacity events. Returns their
 * number. */
uint32_t quern__trace_read(const quern_trace *trace, uint32_t track, quern__trace_event *events);

#endif
