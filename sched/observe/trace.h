/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_TRACE_H
#define QUERN_SCHED_OBSERVE_TRACE_H

/* Rings of events, one per track. A ring has one writer, the thread that uses the track at the time, and
 * any number of readers at any time:
 *
 *     writer                                 reader
 *     head is h                              end = head (acquire)
 *     slot h mod capacity (release, each     copies the slots from end - capacity to end - 1 (acquire,
 *       word) = event                          each word)
 *     head = h + 1 (release)                 now = head (relaxed)
 *
 * The acquire of head gives the reader each event below end completely. But the writer may continue and
 * write event e + capacity over event e during the copy. If the reader loaded a word of the new event, the
 * acquire of that word makes visible what the writer did before, which is head = e + capacity. So event e
 * is complete if now < e + capacity, and the reader drops other events. Of a full ring, capacity - 1 events
 * can be read. */

#include "core/base/array.h"
#include "core/platform/platform.h"
#include "sched/jobs/atomic.h"
#include "sched/jobs/job_observer.h"

#include <quern/profile.h>

typedef enum quern__trace_kind {
    QUERN__TRACE_ZONE, /* a zone of the user */
    QUERN__TRACE_FRAME,
    QUERN__TRACE_PASS,   /* a job of a pass: a range of chunks */
    QUERN__TRACE_SYSTEM, /* a system on one view */
    QUERN__TRACE_BEGIN,  /* a system's condition or begin */
    QUERN__TRACE_END,    /* a system's end */
    /* A stage of a sync point, or a whole sync point; on tracks of other workers, their part of it. */
    QUERN__TRACE_SYNC,
    QUERN__TRACE_STEAL,
    QUERN__TRACE_SLEEP,
    QUERN__TRACE_LOOP, /* help with a parallel loop that another worker waits for */
    QUERN__TRACE_JOB,  /* named work of a pool: a job, a loop, a node of a graph */
    QUERN__TRACE_KIND_COUNT
} quern__trace_kind;

/* Name of events without a name of their own: the kind, and for a sync point `ordinal`, say what they
 * are. */
#define QUERN__TRACE_NO_NAME UINT32_MAX

typedef struct quern__trace_event {
    uint64_t begin_ns; /* on quern__clock_ns */
    uint64_t duration_ns;
    quern__trace_kind kind;
    uint32_t name;
    uint32_t ordinal; /* FRAME: index of the frame; PASS: first chunk; SYSTEM: view; SYNC: stage */
    /* Number of chunks (PASS), rows (SYSTEM), commands (SYNC) or stolen items (STEAL); FRAME: number of the
     * schedule. */
    uint32_t count;
} quern__trace_event;

enum { QUERN__TRACE_EVENT_WORDS = 4, QUERN__TRACE_KIND_BITS = 8 };

typedef struct quern__trace_slot {
    _Atomic uint64_t words[QUERN__TRACE_EVENT_WORDS];
} quern__trace_slot;

/* Cache of the names that a track has recorded: it saves searching for them under the mutex. */
typedef struct quern__trace_cached_name {
    char text[QUERN_MAX_NAME_BYTES + 1]; /* empty if the entry is unused */
    uint32_t number;
} quern__trace_cached_name;

enum { QUERN__TRACE_CACHED_NAME_COUNT = 16 }; /* a power of two */

typedef struct quern__trace_track {
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t head; /* number of events ever written */
    _Atomic uint64_t start_head;                        /* head at the last start */
    /* Number of open zones; written by the track's thread, in builds with QUERN_CHECKS. */
    _Atomic uint32_t depth;
    quern__trace_slot *slots;            /* [capacity] */
    char name[QUERN_MAX_NAME_BYTES + 1]; /* protected by the trace's mutex; empty: "worker N" */
    quern__trace_cached_name cached_names[QUERN__TRACE_CACHED_NAME_COUNT]; /* used by the writer only */
} quern__trace_track;

typedef struct quern__trace_name {
    char text[QUERN_MAX_NAME_BYTES + 1];
} quern__trace_name;

/* Messages that are reported once per start of the trace, because there may be thousands of zones. */
enum { QUERN__REPORTED_TRACK = 1, QUERN__REPORTED_CROSSING = 2, QUERN__REPORTED_WORKERS = 4 };

struct quern_trace {
    _Alignas(QUERN__APART_BYTES) quern__observer observer; /* first member: pools use only this */
    /* Messages reported since the start (QUERN__REPORTED_). */
    _Atomic uint32_t reported_messages;
    _Atomic uint64_t start_ns; /* events that began earlier are not recorded */
    uint32_t track_count;
    uint32_t capacity; /* number of slots per ring; a power of two */
    quern__trace_track *tracks;
    quern_allocator allocator;
    quern__mutex mutex; /* protects names */
    QUERN__ARRAY(quern__trace_name) names;
    _Atomic uint32_t schedule_count; /* number of schedules ever added */
};

_Static_assert(offsetof(struct quern_trace, observer) == 0, "what a pool is given is an observer");

/* Adds or removes a schedule that uses the trace. Returns a number, 0, 1, ..., that distinguishes its
 * frames from those of other schedules. `trace` may be NULL. */
uint32_t quern__trace_add_schedule(quern_trace *trace);
void quern__trace_remove_schedule(quern_trace *trace);

/* Copy a name, because names may be added at any time. A number without a name gives "?"; a track without a
 * name gives an empty text. */
void quern__trace_copy_name(quern_trace *trace, uint32_t name, char text[QUERN_MAX_NAME_BYTES + 1]);
void quern__trace_copy_track_name(quern_trace *trace, uint32_t track, char text[QUERN_MAX_NAME_BYTES + 1]);

/* Returns the number of a name; adds the name if it is new. Returns QUERN__TRACE_NO_NAME if there is no
 * room. */
uint32_t quern__trace_number_of(quern_trace *trace, const char *name);

/* Records an event of a pool; the callback of quern__observer. */
void quern__trace_record_job(quern__observer *observer, uint32_t worker_index, quern__job_event event,
                             const char *name, uint64_t begin_ns, uint32_t count);

/* Whether the trace records events. */
static inline bool quern__trace_is_recording(const quern_trace *trace)
{
    return trace != NULL && quern__observer_is_recording(&trace->observer);
}

/* Records an event. Called by the track's thread while the trace records; the track must exist. */
void quern__trace_record(quern_trace *trace, uint32_t track, const quern__trace_event *event);

/* Records an event if the trace is running, has the track, and was running when the event began. `trace`
 * may be NULL. */
void quern__trace_record_if_running(quern_trace *trace, uint32_t track, const quern__trace_event *event);

/* Warns once per start if there are more workers than tracks. `trace` may be NULL. Called by the thread
 * that runs the frame. */
void quern__trace_check_worker_count(quern_trace *trace, uint32_t worker_count);

/* Returns the number of the oldest event that can be read completely for this value of head. */
static inline uint64_t quern__trace_oldest_whole(const quern_trace *trace, uint64_t head)
{
    return head + 1 > trace->capacity ? head + 1 - trace->capacity : 0;
}

/* Copies the events of the track since the start, oldest first, into `events`, which has room for
 * `capacity` of them. Returns their number. */
uint32_t quern__trace_read(const quern_trace *trace, uint32_t track, quern__trace_event *events);

#endif
