/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H
#define QUERN_SCHED_OBSERVE_PROFILE_INTERNAL_H

/* Observing frames: captured frames, hardware counters, traces, and the profiler, which observes the frames of a
 * schedule and passes what it measures to the three. */

#include "core/base/base_internal.h"
#include "core/base/containers.h"
#include "core/platform/platform.h"
#include "sched/frame/schedule_internal.h"
#include "sched/jobs/deque.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/schedule/schedule_plan.h"

#include <quern/hardware.h>
#include <quern/profile.h>

#include <stdatomic.h>

/* -------------------------------------------------------------------------------------- captured frames */

/* A captured frame: segments, which run one after another. Each segment has tasks that wait for each other.
 * A task is a pass or a part of a sync point: a part before the items, items in any order on any thread,
 * and a part after the items. The item of a serial task, and the parts before and after items, may have run
 * loops on the pool, which several threads would share. */

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

/* ------------------------------------------------------------------------------------- hardware counters */

/* Hardware counters in a profile. Each worker reads the counters of its own thread before and after the
 * calls that the profiler samples.
 *
 * The result is a rate: events divided by the time during which they were counted. The system may multiplex
 * counters, so an event may be counted in some samples only, and a system is sampled for part of its time
 * only. The profile reports the rate multiplied by the system's time. */

/* Sums of one system on one worker. */
typedef struct quern__hardware_count_sum {
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    double covered_ns[QUERN_HARDWARE_EVENT_COUNT]; /* time during which the event was counted */
} quern__hardware_count_sum;

/* Hardware counters of one worker. */
typedef struct quern__worker_hardware_counters {
    _Alignas(QUERN__APART_BYTES) void *counters; /* NULL if not open */
    /* Number of the thread that opened the counters; 0: none. */
    uint64_t thread;
    bool is_reading; /* whether `last` is the reading before the current call */
    quern_hardware_reading last;
    double bias[QUERN_HARDWARE_EVENT_COUNT]; /* events that the two readings add to a difference */
    quern__hardware_count_sum *sums;         /* indexed by number of the system */
} quern__worker_hardware_counters;

/* Hardware counters of a schedule. If all members are zero, nothing is counted. */
typedef struct quern__hardware_counters {
    bool is_on;
    quern_hardware_source source;
    uint64_t read_ns;                       /* duration of one reading */
    quern__worker_hardware_counters *items; /* one per worker */
    uint32_t worker_count;
    uint32_t system_count; /* number of sums per worker */
} quern__hardware_counters;

/* Starts counting with a source; all sums start at 0. Errors: those of the source; then nothing has
 * changed. */
quern_result quern__hardware_counters_start(quern__hardware_counters *counters,
                                            const quern_hardware_source *source,
                                            const quern_allocator *allocator);

/* Reserves memory for this number of workers and systems; keeps the sums. Errors: OUT_OF_MEMORY. */
quern_result quern__hardware_counters_reserve(quern__hardware_counters *counters, uint32_t worker_count,
                                              uint32_t system_count, const quern_allocator *allocator);

void quern__hardware_counters_reset(quern__hardware_counters *counters);

/* Sets the sums of one system to 0. */
void quern__hardware_counters_forget(quern__hardware_counters *counters, uint32_t system_index);

/* Stops counting and frees the memory. */
void quern__hardware_counters_release(quern__hardware_counters *counters, const quern_allocator *allocator);

/* Called by the worker: begin before a sequence of calls, add after each call of a system, which is also
 * before the next one. took_ns is the duration of the call. Nothing is counted on a thread that cannot open
 * counters. */
void quern__hardware_counters_begin(const quern__hardware_counters *counters, uint32_t worker_index);
void quern__hardware_counters_add(const quern__hardware_counters *counters, uint32_t worker_index,
                                  uint32_t system_index, uint64_t took_ns);

/* Returns the events of the system per nanosecond; NAN if unknown. */
double quern__hardware_counters_rate(const quern__hardware_counters *counters, uint32_t system_index,
                                     quern_hardware_event event);

/* ------------------------------------------------------------------------------------------------ traces */

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

/* Copies the events of the track since the start, oldest first, into `events`, which has room for
 * `capacity` of them. Returns their number. */
uint32_t quern__trace_read(const quern_trace *trace, uint32_t track, quern__trace_event *events);

/* ------------------------------------------------------------------------------------------ the profiler */

/* The observer of a schedule's frames (sched/schedule/schedule_plan.h): the profile, the schedule's events
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
 * of the pass, a two-hundredth while a trace runs, and a hundredth with hardware counters; all
 * chunks are sampled if they are long. A schedule with `timing` times every call. In a trace each job is
 * timed separately.
 *
 * Workers measure their own idle time (sched/jobs/describe_jobs.c); the rest of their time they are busy.
 *
 * Shares, strides and the duration of chunks are updated in every 16th frame, and in each of the first 16,
 * because the cache lines with samples are in the workers' caches, and every change of a stride has to be
 * transferred to them. On two threads a profile of 100,000 entities cost 3.5 us per frame with this rule,
 * and 5 us without it. */

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
    bool is_on;              /* whether this frame needs more than the times of calls */
    bool is_traced;          /* whether this frame is recorded in the trace */
    bool is_learning;        /* whether this frame updates shares and strides; see `learns` in profiler.c */
    uint64_t observed_count; /* frames in which is_on was true */
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
    QUERN__ARRAY(quern__system_profile) systems; /* indexed by number of the system */
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

/* ------------------------------------------------------------------------------------------ intervals */

typedef enum quern__interval_kind {
    QUERN__INTERVAL_FRAME,
    QUERN__INTERVAL_JOBS,  /* consecutive jobs of a pass on a worker */
    QUERN__INTERVAL_ITEM,  /* an item of a stage, in captured frames */
    QUERN__INTERVAL_CALL,  /* a callback of a system */
    QUERN__INTERVAL_HOOKS, /* all begin callbacks or all end callbacks of a pass */
    QUERN__INTERVAL_STAGE, /* a stage of a sync point; stage SYNC: the whole sync point */
    QUERN__INTERVAL_PART   /* what a worker did of a stage */
} quern__interval_kind;

/* A part of a frame that was measured. Its three readers take what they need: the sums of the profile, the capture of
 * the frame, and the trace. */
typedef struct quern__interval {
    quern__interval_kind kind;
    uint32_t worker_index;
    uint64_t begin_ns;
    uint64_t took_ns;
    const quern__observed_job *job;   /* JOBS, ITEM, HOOKS */
    const quern__observed_call *call; /* CALL */
    quern__sync_stage stage;          /* STAGE, PART */
    uint32_t ordinal;                 /* FRAME: its index; ITEM: its index in the stage */
    uint32_t count;                   /* JOBS: chunks; STAGE: commands */
} quern__interval;

/* Returns the duration of a clock read. Any thread. */
uint64_t quern__clock_cost_ns(void);

/* Writes the name of the pass: "move", or "move + 6" if six other systems share it. The text fits for all
 * names. */
void quern__profile_describe_pass(const quern__pass *pass, char *name, size_t bytes);

void quern__capture_begin_segment(const quern__profiler *profiler, const quern__segment *segment);

/* Stores an interval of the frame in the frame's capture. Any worker. */
void quern__capture_add(const quern__profiler *profiler, const quern__interval *interval);

/* ----------------------------------------------------------------------- hardware counters of the system */

/* Opens counters like the default source, but for other events: `codes` has QUERN_HARDWARE_EVENT_COUNT
 * elements. Tests use it to count events that every machine has. */
quern_result quern__hardware_open(const quern__hardware_code *codes, quern_hardware_scope scope,
                                  void **out_counters);

#endif
