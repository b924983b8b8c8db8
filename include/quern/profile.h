/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PROFILE_H
#define QUERN_PROFILE_H

/* Where the time of frames goes: profiles, in figures, and traces, in pictures. docs/profiling.md shows
 * both at work, and examples/watch.c a program with both.
 *
 * Profiles: quern_schedule_set_profiling has each frame measured, cheap enough to be left on.
 *
 * Traces: what each thread did when, for looking at in Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 *     quern_trace *trace;
 *     quern_trace_create(&(quern_trace_def){.track_count = quern_processor_count()}, &trace);    a pool's default
 *     jobs_def.trace = trace;         steals and sleeps
 *     schedule_def.trace = trace;     frames, passes, systems, sync points
 *     quern_trace_add_name(trace, "find paths", &find_paths);
 *     quern_trace_start(trace);
 *     ...
 *         quern_trace_zone zone = quern_trace_zone_begin(trace, quern_context_worker_index(context), find_paths);
 *         ...
 *         quern_trace_zone_end(&zone);
 *     ...
 *     quern_trace_stop(trace);
 *     quern_trace_save(trace, "trace.json");
 *
 * A trace has tracks: one for each worker of a pool, by its index, and more for threads of your own if you
 * like. Each keeps its latest events in a ring; older ones are dropped, and counted. Recording takes no
 * lock and no memory. A zone costs two looks at the clock and some tens of nanoseconds; a few while the
 * trace does not run. */

#include <quern/base.h>
#include <quern/hardware.h>
#include <quern/id.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------ profiles */

/* Of <quern/schedule.h>. */
typedef struct quern_schedule quern_schedule;

/* What a worker did with the time of a frame, in nanoseconds; together it is the time of the frame. */
typedef struct quern_worker_profile {
    /* In systems, going from chunk to chunk, and in loops and jobs that systems share with other
     * workers. */
    uint64_t busy_ns;
    /* Awake without a job, looking for one; of worker 0 also what the scheduler does between segments. */
    uint64_t stealing_ns;
    uint64_t idle_ns; /* asleep */
    uint64_t sync_ns; /* at sync points; of workers but 0, in the loops that they help with */
} quern_worker_profile;

/* One frame. Time is in nanoseconds. */
typedef struct quern_frame_profile {
    uint64_t frame_index; /* as in quern_frame_stats */
    uint32_t thread_count;
    uint64_t time_ns;
    /* What it would take with a thread for every chunk: the longest chain of passes that wait for each
     * other, each as long as its slowest chunk, and the sync points. */
    uint64_t critical_path_ns;
    uint64_t sync_ns;             /* at sync points that had commands; nearly all of it in the stages */
    uint64_t gather_ns;           /* putting the streams of commands in order */
    uint64_t merge_ns;            /* finding what each entity's commands come to */
    uint64_t resolve_ns;          /* finding new archetypes and making room */
    uint64_t apply_ns;            /* moving rows, and calling hooks */
    quern_worker_profile workers; /* of all, added up */
    double efficiency;            /* busy_ns of all, of thread_count times time_ns: 0 to 1 */
} quern_frame_profile;

/* Switches the profile of frames on or off; off in the beginning. What earlier frames took, and counted, is
 * forgotten. Between frames. Errors: NULL_ARGUMENT, WORLD_LOCKED.
 *
 * While it is on, time_ns of quern_system_stats is the system's share of what the jobs of its pass took.
 * Shares come from chunks that are measured now and then; the fewer there were, the rougher they are. Where
 * a chunk takes long all of it is measured. What other workers do in a loop or job that a system has
 * started is in their busy_ns, and in no system's time. */
QUERN_API quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on);

/* Has the profile count what processors do in systems, too, with counters of a source, which is copied;
 * NULL: no more. The profile of earlier frames is forgotten. Only frames with profiling count, in chunks
 * that are measured now and then: so rarely that reading the counters takes about a hundredth of a pass.
 * Between frames. Errors: NULL_ARGUMENT (schedule), INVALID_ARGUMENT (a source without all of its
 * functions), WORLD_LOCKED, and what the source's open says, such as UNAVAILABLE; then nothing is
 * changed. */
QUERN_API quern_result quern_schedule_set_counting(quern_schedule *schedule,
                                                   const quern_hardware_source *source);

/* Events of a system in a frame, the mean of all frames with profiling since counting began, estimated from
 * the chunks that were measured; NAN for what is not available or was not counted yet. Between frames.
 * Errors: NULL_ARGUMENT, UNKNOWN_SYSTEM. */
QUERN_API quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                                        double out_counts[QUERN_HARDWARE_EVENT_COUNT]);

/* The last frame; all 0 without profiling, and before the first frame with it. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_profile(const quern_schedule *schedule,
                                                        quern_frame_profile *out_profile);

/* One worker in it. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (worker_index). */
QUERN_API quern_result quern_schedule_get_worker_profile(const quern_schedule *schedule,
                                                         uint32_t worker_index,
                                                         quern_worker_profile *out_profile);

/* Writes a table: the mean of all frames since profiling was switched on or the number of threads was
 * another, by frame, sync point, system and worker; with counting another one of events by system. Between
 * frames. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no such frame), FILE. */
QUERN_API quern_result quern_schedule_write_profile(const quern_schedule *schedule, quern_sink sink);

/* ----------------------------------------------------------------------------------------- forecasts */

/* What a frame would take on more threads than there are: a frame is captured, and its schedule
 * simulated. */

typedef struct quern_jobs quern_jobs;
typedef struct quern_capture quern_capture;

/* An empty capture. allocator NULL: the default. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_capture_create(const quern_allocator *allocator, quern_capture **out_capture);

/* NULL is allowed. */
QUERN_API void quern_capture_destroy(quern_capture *capture);

/* quern_schedule_run, with what each chunk takes measured, which slows it down a little; what the capture
 * had is forgotten. Best on one thread (jobs NULL, or a pool of one), where nothing disturbs the chunks;
 * sync points are applied there part by part, as threads would share them. With more threads what they cost
 * each other, in caches, is part of what chunks take. Errors, after which nothing is captured:
 * NULL_ARGUMENT (capture), as quern_schedule_run, and OUT_OF_MEMORY for the capture, when the frame has
 * run. */
QUERN_API quern_result quern_schedule_run_captured(quern_schedule *schedule, quern_jobs *jobs,
                                                   double delta_seconds, quern_capture *capture);

/* What the machine takes for what a capture cannot tell. Each is finite and 0 or more. A typical machine
 * steals in 1000 ns, wakes in 50,000, and has enough memory bandwidth. */
typedef struct quern_forecast_costs {
    double steal_ns; /* until a thread that is awake takes part in work that has begun */
    double wake_ns;  /* the same of a thread that sleeps */
    /* What all threads together get from memory, in bytes per nanosecond; 0: enough. */
    double bytes_per_ns_limit;
} quern_forecast_costs;

/* Measures them with the threads of a pool: some tens of milliseconds. The limit of memory is that of a
 * triad on all threads, where more threads got little more of it, and 0 otherwise; the triad takes 96 MiB
 * of the pool's allocator meanwhile. What could not be measured is as on a typical machine: in a pool of one
 * thread, and where processors are busy otherwise. The pool must be at rest. Errors, with out_costs left as
 * it is: NULL_ARGUMENT, POOL_BUSY, OUT_OF_MEMORY. */
QUERN_API quern_result quern_forecast_costs_measure(quern_jobs *jobs, quern_forecast_costs *out_costs);

/* What would save most of a frame's time if it were not so. */
typedef enum quern_forecast_limit {
    QUERN_FORECAST_NONE,       /* nothing saves five percent */
    QUERN_FORECAST_CHUNKS,     /* a pass has too few chunks, or too uneven ones, for so many threads */
    QUERN_FORECAST_SERIAL,     /* systems that run on one thread */
    QUERN_FORECAST_SYNC,       /* sync points */
    QUERN_FORECAST_BANDWIDTH,  /* memory */
    QUERN_FORECAST_SCHEDULING, /* stealing and waking */
    QUERN_FORECAST_LIMIT_COUNT
} quern_forecast_limit;

/* In words. Never NULL. */
QUERN_API const char *quern_forecast_limit_string(quern_forecast_limit limit);

typedef struct quern_forecast {
    uint32_t thread_count;
    double frame_ns;
    double speedup;          /* against the captured work on one thread */
    double critical_path_ns; /* the frame on as many threads as there are chunks, without any costs */
    quern_forecast_limit limit;
    double without_limit_ns; /* the frame if the limit were not; 0 with QUERN_FORECAST_NONE */
    /* The pass with the longest chunk, or call, that the limit is about, where that is CHUNKS or SERIAL;
     * otherwise NULL. Valid until the capture changes. */
    const char *limit_system;
} quern_forecast;

/* costs NULL: a typical machine. Errors, with out_forecast left as it is: NULL_ARGUMENT (capture,
 * out_forecast), INVALID_ARGUMENT (thread_count is not 1 to QUERN_MAX_THREADS; a cost is negative, infinite or
 * not a number; nothing was captured), OUT_OF_MEMORY. */
QUERN_API quern_result quern_capture_forecast(const quern_capture *capture,
                                              const quern_forecast_costs *costs, uint32_t thread_count,
                                              quern_forecast *out_forecast);

/* -------------------------------------------------------------------------------------------- traces */

#define QUERN_MAX_TRACKS       1024
#define QUERN_MAX_TRACK_EVENTS (1u << 24) /* 32 bytes each */
#define QUERN_MAX_TRACE_NAMES  65536

typedef struct quern_trace quern_trace;

typedef struct quern_trace_def {
    uint32_t track_count; /* 1 to QUERN_MAX_TRACKS; 0 means 1 */
    /* 2 to QUERN_MAX_TRACK_EVENTS, made a power of two, of which a full ring keeps one less; 0 means 65536 */
    uint32_t events_per_track;
    quern_allocator allocator;
} quern_trace_def;

/* A trace that is not running. def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
QUERN_API quern_result quern_trace_create(const quern_trace_def *def, quern_trace **out_trace);

/* Nobody may record or write. While pools or schedules exist that were given the trace the call is refused,
 * with a message in the log. NULL is allowed. */
QUERN_API void quern_trace_destroy(quern_trace *trace);

/* ------------------------------------------------------------------------------------- recording */

/* Forgets what was recorded before, and records from now on. NULL is allowed and does nothing. Any thread,
 * at any time. */
QUERN_API void quern_trace_start(quern_trace *trace);

/* Records no more; what was recorded stays. NULL is allowed. Any thread, at any time. */
QUERN_API void quern_trace_stop(quern_trace *trace);

/* False for NULL. Any thread. */
QUERN_API bool quern_trace_is_running(const quern_trace *trace);

/* A number for a name of 1 to QUERN_MAX_NAME_BYTES bytes; the same one for the same name. Not for the hot
 * path: it takes a lock. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name), LIMIT, OUT_OF_MEMORY. Any
 * thread. */
QUERN_API quern_result quern_trace_add_name(quern_trace *trace, const char *name, uint32_t *out_name);

/* How a track is called; "worker N" when nothing else is said. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (track, name). Any thread. */
QUERN_API quern_result quern_trace_set_track_name(quern_trace *trace, uint32_t track, const char *name);

/* A piece of work that has begun. To be kept by whoever ends it; the fields are internal. */
typedef struct quern_trace_zone {
    quern_trace *trace; /* NULL: nothing is recorded */
    uint64_t begin_ns;
    uint32_t track;
    uint32_t name;
    uint32_t depth;
} quern_trace_zone;

/* track: only one thread at a time may record on it. name: from quern_trace_add_name of this trace; other
 * numbers are not checked here, which would take a lock, and the file shows them as "?". Zones of a track
 * end in the reverse order of their beginning. Costs a load when the trace is not running; NULL is allowed
 * and records nothing. A track that the trace does not have is a misuse, and nothing is recorded: it is
 * reported for the first such zone after each quern_trace_start. */
QUERN_API quern_trace_zone quern_trace_zone_begin(quern_trace *trace, uint32_t track, uint32_t name);

/* On the same track. Records nothing when the trace did not run at the beginning, has been started again,
 * or does not run now. A zone that never ends is not in the file. One that ends twice is there twice, and
 * zones that cross are there as they are; viewers cut such zones off or leave them out. Builds with
 * QUERN_CHECKS report the first such end after each quern_trace_start. */
QUERN_API void quern_trace_zone_end(const quern_trace_zone *zone);

/* --------------------------------------------------------------------------------------- reading */

typedef struct quern_trace_stats {
    uint64_t event_count;   /* that the rings hold */
    uint64_t dropped_count; /* that were recorded since the start and made room for later ones */
} quern_trace_stats;

/* Any thread, at any time. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_trace_get_stats(const quern_trace *trace, quern_trace_stats *out_stats);

/* Writes the trace in the trace event format (JSON). Best after quern_trace_stop; while the trace runs, it
 * has what was recorded up to the call. Errors: NULL_ARGUMENT, OUT_OF_MEMORY, FILE. Any thread. */
QUERN_API quern_result quern_trace_write(quern_trace *trace, quern_sink sink);

/* The same to the file of a path, which is there as a whole afterwards or as it was before. Errors and
 * threads as quern_trace_write. */
QUERN_API quern_result quern_trace_save(quern_trace *trace, const char *path);

#ifdef __cplusplus
}
#endif

#endif
