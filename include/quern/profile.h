/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PROFILE_H
#define QUERN_PROFILE_H

/** @file
 * Where the time of frames goes: profiles, in figures, and traces, in pictures; and forecasts for more
 * threads. docs/profiling.md shows them at work, examples/watch.c is a program with profile and trace.
 *
 * Profiles: quern_schedule_set_profiling has each frame measured, cheaply enough to leave it on.
 *
 * Traces: what each thread did and when, to be viewed in Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 *     quern_trace *trace;
 *     quern_trace_def def = {.track_count = quern_processor_count()};    a pool's default
 *     quern_trace_create(&def, &trace);
 *     jobs_def.trace = trace;         steals and sleeps
 *     schedule_def.trace = trace;     frames, passes, systems, sync points
 *     quern_trace_add_name(trace, "find paths", &find_paths);
 *     quern_trace_start(trace);
 *     ...
 *         const uint32_t track = quern_context_worker_index(context);
 *         quern_trace_zone zone = quern_trace_zone_begin(trace, track, find_paths);
 *         ...
 *         quern_trace_zone_end(&zone);
 *     ...
 *     quern_trace_stop(trace);
 *     quern_trace_save(trace, "trace.json");
 *
 * A trace has tracks: one for each worker of a pool, by its index, and more for your own threads if you
 * like. Each track keeps its last events in a ring; older ones are dropped and counted. Recording takes
 * no lock and no memory. A zone costs two clock readings and some tens of nanoseconds, and a few
 * nanoseconds while the trace is not running. */

#include <quern/base.h>
#include <quern/hardware.h>
#include <quern/id.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------ profiles */

/** A schedule; see <quern/schedule.h>. */
typedef struct quern_schedule quern_schedule;

/** What a worker did with the time of a frame. Together the members are the frame's time. */
typedef struct quern_worker_profile {
    /** In systems, between their chunks, and in loops and jobs that systems share with other workers. */
    uint64_t busy_ns;
    /** Awake without a job, looking for one; for the worker that runs the frame this includes the
     * schedule's work between segments. */
    uint64_t stealing_ns;
    uint64_t idle_ns; /**< Asleep. */
    /** At sync points; for workers other than the one that runs the frame, in the loops they help with. */
    uint64_t sync_ns;
} quern_worker_profile;

/** The profile of one frame. */
typedef struct quern_frame_profile {
    uint64_t frame_index;  /**< As in quern_frame_stats. */
    uint32_t thread_count; /**< Threads that ran it. */
    uint64_t time_ns;      /**< From begin to end. */
    /** How long it would take with a thread for every chunk: the longest chain of passes that wait for each
     * other, each as long as its slowest chunk, and the sync points. */
    uint64_t critical_path_ns;
    /** At sync points that had commands; nearly all of it in their stages. Those that take a short way have
     * only the first stage, which finds that out, and the last. */
    uint64_t sync_ns;
    uint64_t gather_ns;           /**< Stage: putting the command streams in order. */
    uint64_t merge_ns;            /**< Stage: working out what each entity's commands add up to. */
    uint64_t resolve_ns;          /**< Stage: finding new archetypes and making room. */
    uint64_t apply_ns;            /**< Stage: moving rows and calling hooks. */
    quern_worker_profile workers; /**< Sum over all workers. */
    double efficiency;            /**< busy_ns of all workers / (thread_count * time_ns): 0 to 1. */
} quern_frame_profile;

/** Switches the profile of frames on or off; it is off at first. Drops the times and counts of earlier
 * frames. Errors: NULL_ARGUMENT, WORLD_LOCKED. Threads: main, between frames.
 *
 * While it is on, time_ns of quern_system_stats is the system's share of the time of its pass's jobs.
 * Shares come from sampled chunks; the fewer samples, the rougher the shares. Long chunks are all
 * measured. The help of other workers with a loop or job of a system counts in their busy_ns, and in no
 * system's time. */
QUERN_API quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on);

/** Counts hardware events in systems, too, with counters of a source, which is copied; NULL stops counting.
 * Drops the profile of earlier frames. Only frames with profiling count, in sampled chunks: reading the
 * counters takes about a hundredth of a pass. Errors: NULL_ARGUMENT (schedule), INVALID_ARGUMENT (a source
 * without all of its functions), WORLD_LOCKED, and those of the source's open, such as UNAVAILABLE; nothing
 * changes then. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_counting(quern_schedule *schedule,
                                                   const quern_hardware_source *source);

/** Returns the events of a system per frame: the mean of all frames with profiling since counting began,
 * estimated from sampled chunks. NAN for what is not available or was not counted yet. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                                        double out_counts[QUERN_HARDWARE_EVENT_COUNT]);

/** Returns the profile of the last frame; all 0 without profiling, and before the first frame with it.
 * Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_profile(const quern_schedule *schedule,
                                                        quern_frame_profile *out_profile);

/** Returns what one worker did in the last frame. Guests of the pool that did not run the frame are no part
 * of it: they did nothing. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (worker_index). */
QUERN_API quern_result quern_schedule_get_worker_profile(const quern_schedule *schedule,
                                                         uint32_t worker_index,
                                                         quern_worker_profile *out_profile);

/** Writes the profile as a table: by frame, sync point, system and worker, the mean of all frames since
 * profiling was switched on or the number of threads changed. With counting, a second table has the
 * events by system. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no such frame), FILE. Threads: main,
 * between frames. */
QUERN_API quern_result quern_schedule_write_profile(const quern_schedule *schedule, quern_sink sink);

/* ----------------------------------------------------------------------------------------- forecasts */

/** A job pool; see <quern/jobs.h>. */
typedef struct quern_jobs quern_jobs;

/** A captured frame, from which forecasts say how long it would take on more threads. */
typedef struct quern_capture quern_capture;

/** Creates an empty capture. allocator NULL: the default. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_capture_create(const quern_allocator *allocator, quern_capture **out_capture);

/** Destroys a capture. Refused, with a message in the log, while a frame is captured in it. NULL is
 * allowed. */
QUERN_API void quern_capture_destroy(quern_capture *capture);

/** Runs a frame like quern_schedule_run and captures it, which slows it down a little. What the capture had
 * is dropped.
 *
 * Best on one thread (jobs NULL, or a pool of one), where nothing disturbs the chunks; sync points are then
 * applied part by part, as several threads would share them. With a pool of one thread, loops that serial
 * systems, and the begin and end of any, run by quern_jobs_parallel_for are told apart: in forecasts
 * threads share them out, by grains; a loop of one piece at will, since code that divides its work by the
 * number of threads makes such. On more threads, the times of chunks include what threads cost each other
 * in caches. Errors, after which nothing is captured: NULL_ARGUMENT (capture), INVALID_ARGUMENT (a frame is
 * running that is captured in it), those of quern_schedule_run, and OUT_OF_MEMORY for the capture, when the
 * frame has run. */
QUERN_API quern_result quern_schedule_run_captured(quern_schedule *schedule, quern_jobs *jobs,
                                                   double delta_seconds, quern_capture *capture);

/** Costs of the machine that a capture does not show. Each is finite and 0 or more. A typical machine
 * steals in 1000 ns, wakes in 50,000 ns, and has enough memory bandwidth. */
typedef struct quern_forecast_costs {
    double steal_ns;           /**< Until a thread that is awake takes part in work that has begun. */
    double wake_ns;            /**< The same for a thread that sleeps. */
    double bytes_per_ns_limit; /**< What all threads together get from memory; 0: enough. */
} quern_forecast_costs;

/** Measures the costs with the threads of a pool, in some tens of milliseconds. The pool must be at rest.
 *
 * The memory limit is that of a triad on all threads, if more threads gained little, and 0 otherwise; the
 * triad takes 96 MiB from the pool's allocator meanwhile. What could not be measured (in a pool of one
 * thread, or while other programs use the processors) gets the values of a typical machine. Errors, which
 * leave out_costs as it is: NULL_ARGUMENT, POOL_BUSY, OUT_OF_MEMORY. */
QUERN_API quern_result quern_forecast_costs_measure(quern_jobs *jobs, quern_forecast_costs *out_costs);

/** What would save most of a frame's time if it were absent. */
typedef enum quern_forecast_limit {
    QUERN_FORECAST_NONE,       /**< Nothing saves five percent. */
    QUERN_FORECAST_CHUNKS,     /**< A pass has too few or too uneven chunks for so many threads. */
    QUERN_FORECAST_SERIAL,     /**< Systems that run on one thread; the begin and end of others. */
    QUERN_FORECAST_SYNC,       /**< Sync points. */
    QUERN_FORECAST_BANDWIDTH,  /**< Memory bandwidth. */
    QUERN_FORECAST_SCHEDULING, /**< Stealing and waking. */
    QUERN_FORECAST_LIMIT_COUNT /**< The number of limits. */
} quern_forecast_limit;

/** Returns the limit in words. Never NULL. */
QUERN_API const char *quern_forecast_limit_string(quern_forecast_limit limit);

/** A captured frame on some number of threads. */
typedef struct quern_forecast {
    uint32_t thread_count;      /**< As asked for. */
    double frame_ns;            /**< Time of the frame. */
    double speedup;             /**< Against the captured work on one thread. */
    double critical_path_ns;    /**< The frame on as many threads as there are chunks, without any costs. */
    quern_forecast_limit limit; /**< What limits it most. */
    double without_limit_ns;    /**< The frame without that limit; 0 with QUERN_FORECAST_NONE. */
    /** With CHUNKS and SERIAL, the pass with the longest chunk or call that the limit is about; otherwise
     * NULL. Valid until the capture changes. */
    const char *limit_system;
} quern_forecast;

/** Forecasts a captured frame. costs NULL: a typical machine. Errors, which leave out_forecast as it is:
 * NULL_ARGUMENT (capture, out_forecast), INVALID_ARGUMENT (thread_count is not 1 to QUERN_MAX_THREADS; a
 * cost is negative, infinite or not a number; nothing is captured), OUT_OF_MEMORY. */
QUERN_API quern_result quern_capture_forecast(const quern_capture *capture,
                                              const quern_forecast_costs *costs, uint32_t thread_count,
                                              quern_forecast *out_forecast);

/* -------------------------------------------------------------------------------------------- traces */

#define QUERN_MAX_TRACKS       1024       /**< Tracks of a trace. */
#define QUERN_MAX_TRACK_EVENTS (1u << 24) /**< Events of a track, 32 bytes each. */
#define QUERN_MAX_TRACE_NAMES  65536      /**< Names in a trace. */

/** A trace: what threads did and when. */
typedef struct quern_trace quern_trace;

/** Describes a trace. */
typedef struct quern_trace_def {
    uint32_t track_count QUERN__ZERO; /**< 1 to QUERN_MAX_TRACKS; 0 means 1. */
    /** 2 to QUERN_MAX_TRACK_EVENTS, rounded up to a power of two; a full ring keeps one less. 0 means
     * 65536. */
    uint32_t events_per_track QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_trace_def;

/** Creates a trace, which is not running yet. def may be NULL for the defaults. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_trace_create(const quern_trace_def *def, quern_trace **out_trace);

/** Destroys a trace. Nobody may record or write meanwhile. Refused, with a message in the log, while
 * pools or schedules that have the trace exist. NULL is allowed. */
QUERN_API void quern_trace_destroy(quern_trace *trace);

/* ------------------------------------------------------------------------------------- recording */

/** Drops what was recorded before, and records from now on. NULL is allowed and does nothing. Threads: any,
 * at any time. */
QUERN_API void quern_trace_start(quern_trace *trace);

/** Stops recording; what was recorded stays. NULL is allowed. Threads: any, at any time. */
QUERN_API void quern_trace_stop(quern_trace *trace);

/** Returns whether the trace is recording. False for NULL. Threads: any. */
QUERN_API bool quern_trace_is_running(const quern_trace *trace);

/** Returns a number for a name of 1 to QUERN_MAX_NAME_BYTES bytes; the same name gets the same number.
 * Takes a lock, so it is not for hot paths. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name), LIMIT,
 * OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_trace_add_name(quern_trace *trace, const char *name, uint32_t *out_name);

/** Names a track; the default is "worker N". Errors: NULL_ARGUMENT, INVALID_ARGUMENT (track, name).
 * Threads: any. */
QUERN_API quern_result quern_trace_set_track_name(quern_trace *trace, uint32_t track, const char *name);

/** A piece of work that has begun. Keep it to end it; the fields are internal. */
typedef struct quern_trace_zone {
    quern_trace *trace; /**< Internal; NULL: nothing is recorded. */
    uint64_t begin_ns;  /**< Internal. */
    uint32_t track;     /**< Internal. */
    uint32_t name;      /**< Internal. */
    uint32_t depth;     /**< Internal. */
} quern_trace_zone;

/** Begins a zone. Zones of a track end in the reverse order of their beginning. While the trace is not
 * running this costs a load; NULL is allowed and records nothing.
 *
 * track: only one thread at a time may record on it. A track that the trace does not have is misuse, and
 * nothing is recorded: the first such zone after each quern_trace_start is reported. name: from
 * quern_trace_add_name of this trace. Other numbers are not checked here, since that would take a lock; the
 * file shows them as "?". */
QUERN_API quern_trace_zone quern_trace_zone_begin(quern_trace *trace, uint32_t track, uint32_t name);

/** Ends a zone, on the track it began on. Records nothing when the trace was not running at the begin,
 * has been started again, or is not running now.
 *
 * A zone that never ends is not in the file. One that ends twice is there twice, and zones that cross
 * are there as they are; viewers cut such zones off or leave them out. Builds with QUERN_CHECKS report
 * the first such end after each quern_trace_start. */
QUERN_API void quern_trace_zone_end(const quern_trace_zone *zone);

/* --------------------------------------------------------------------------------------- reading */

/** What a trace holds. */
typedef struct quern_trace_stats {
    uint64_t event_count;   /**< Events in the rings. */
    uint64_t dropped_count; /**< Events since the start that made room for later ones. */
} quern_trace_stats;

/** Counts what a trace holds. Errors: NULL_ARGUMENT. Threads: any, at any time. */
QUERN_API quern_result quern_trace_get_stats(const quern_trace *trace, quern_trace_stats *out_stats);

/** Writes the trace in the trace event format (JSON). Best after quern_trace_stop; while the trace is
 * running, it writes what was recorded up to the call. Errors: NULL_ARGUMENT, OUT_OF_MEMORY, FILE. Threads:
 * any. */
QUERN_API quern_result quern_trace_write(quern_trace *trace, quern_sink sink);

/** Writes the trace to a file. Afterwards the file is either complete or as it was before. Errors and
 * threads: as quern_trace_write. */
QUERN_API quern_result quern_trace_save(quern_trace *trace, const char *path);

#ifdef __cplusplus
}
#endif

#endif
