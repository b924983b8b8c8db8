/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PROFILE_H
#define QUERN_PROFILE_H

/** @file
 * Measures where the time of frames goes. Profiles give figures, traces give timelines, and forecasts
 * estimate frames with more threads. docs/profiling.md shows all three, and examples/watch.c is a program
 * with a profile and a trace.
 *
 * A profile, switched on by quern_schedule_set_profiling, measures each frame. It is cheap enough to stay
 * on.
 *
 * A trace records what each thread did and when, for Perfetto (ui.perfetto.dev) or chrome://tracing.
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
 * A trace has one track per worker of a pool, by worker index, and optionally more tracks for other threads
 * of the program. Each track keeps its most recent events in a ring; older events are dropped and counted.
 * Recording takes no lock and allocates nothing. A zone costs two clock readings and some tens of
 * nanoseconds, and a few nanoseconds while the trace is not running. */

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

/** How one worker spent the time of a frame. The members add up to the duration of the frame. */
typedef struct quern_worker_profile {
    /** Time in systems, between the chunks of a pass, and in loops and jobs that systems share with other
     * workers. */
    uint64_t busy_ns;
    /** Time awake without a job, searching for one. For the worker that runs the frame, this includes the
     * schedule's work between segments. */
    uint64_t stealing_ns;
    uint64_t idle_ns; /**< Time asleep. */
    /** Time at sync points. For workers other than the one that runs the frame: time in the loops of sync
     * points. */
    uint64_t sync_ns;
} quern_worker_profile;

/** Profile of one frame. */
typedef struct quern_frame_profile {
    uint64_t frame_index;  /**< Number of the frame, as in quern_frame_stats. */
    uint32_t thread_count; /**< Number of threads that ran the frame. */
    uint64_t time_ns;      /**< Duration of the frame. */
    /** Duration that the frame would have with one thread per chunk: the longest chain of dependent passes,
     * each as long as its slowest chunk, plus the sync points. */
    uint64_t critical_path_ns;
    /** Time at sync points that had commands. Nearly all of it is in the four stages below. A sync point on
     * a fast path has only the first stage, in which the fast path is chosen, and the last. */
    uint64_t sync_ns;
    uint64_t gather_ns;  /**< Stage of sync points: ordering the command streams. */
    uint64_t merge_ns;   /**< Stage of sync points: combining the commands of each entity. */
    uint64_t resolve_ns; /**< Stage of sync points: finding target archetypes and reserving room. */
    uint64_t apply_ns;   /**< Stage of sync points: moving rows and calling hooks. */
    quern_worker_profile workers; /**< Sum over all workers. */
    double efficiency;            /**< busy_ns of all workers / (thread_count * time_ns), from 0 to 1. */
} quern_frame_profile;

/** Switches profiling of frames on or off. It is off by default. The call drops the times and counts of
 * earlier frames. Errors: NULL_ARGUMENT, WORLD_LOCKED. Threads: main, between frames.
 *
 * While profiling is on, time_ns of quern_system_stats is the system's share of the time of its pass's
 * jobs. Shares are estimated from sampled chunks: the fewer samples, the less precise. Long chunks are
 * always measured. When other workers help with a loop or job of a system, their time counts as their
 * busy_ns, but not as time of the system. */
QUERN_API quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on);

/** Counts hardware events in systems with the counters of a source, which is copied. NULL stops counting.
 * The call drops the profile of earlier frames. Events are counted only in frames with profiling, in
 * sampled chunks: reading the counters costs about a hundredth of a pass.
 *
 * Errors, with nothing changed: NULL_ARGUMENT (schedule), INVALID_ARGUMENT (a function of the source is
 * NULL), WORLD_LOCKED, and those of the source's open, such as UNAVAILABLE. Threads: main, between frames.
 */
QUERN_API quern_result quern_schedule_set_counting(quern_schedule *schedule,
                                                   const quern_hardware_source *source);

/** Returns the hardware events of a system per frame: the mean over all frames with profiling since
 * counting began, estimated from sampled chunks. An entry is NAN if the event is not available or was not
 * counted yet. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (unknown system). Threads: main, between frames. */
QUERN_API quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                                        double out_counts[QUERN_HARDWARE_EVENT_COUNT]);

/** Returns the profile of the last frame; all 0 without profiling, and before the first frame with
 * profiling. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_profile(const quern_schedule *schedule,
                                                        quern_frame_profile *out_profile);

/** Returns how a worker spent the last frame. External threads of the pool that did not run the frame are
 * not part of the profile, because they did nothing for it. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (worker_index). */
QUERN_API quern_result quern_schedule_get_worker_profile(const quern_schedule *schedule,
                                                         uint32_t worker_index,
                                                         quern_worker_profile *out_profile);

/** Writes the profile as tables, by frame, sync point, system and worker. Each value is the mean over all
 * frames since profiling was switched on or the number of threads changed. With counting, a second table
 * lists the hardware events by system. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no frame was profiled),
 * IO. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_write_profile(const quern_schedule *schedule, quern_sink sink);

/* ----------------------------------------------------------------------------------------- forecasts */

/** A job pool; see <quern/jobs.h>. */
typedef struct quern_jobs quern_jobs;

/** A recorded frame, from which forecasts estimate its duration on other numbers of threads. */
typedef struct quern_frame_capture quern_frame_capture;

/** Creates an empty capture. allocator NULL: the default allocator. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (only one function of the allocator is set), OUT_OF_MEMORY. */
QUERN_API quern_result quern_frame_capture_create(const quern_allocator *allocator,
                                                  quern_frame_capture **out_capture);

/** Destroys a capture. The call is refused, with a message in the log, while a frame is being captured in
 * it. NULL is allowed. */
QUERN_API void quern_frame_capture_destroy(quern_frame_capture *capture);

/** Runs a frame like quern_schedule_run and captures it, which makes the frame slightly slower. The
 * previous contents of the capture are dropped.
 *
 * A capture is most precise on one thread (jobs NULL, or a pool of one thread), where no other thread
 * disturbs the chunks; sync points are then applied in parts, as several threads would share them. With a
 * pool of one thread, loops run with quern_jobs_parallel_for by serial systems, and by begin and end
 * callbacks, are recorded as loops: forecasts distribute them over threads by their grains. A loop with a
 * single piece is distributed freely, because code that divides its work by the number of threads produces
 * such loops. On more threads, the times of chunks include the cache interference of threads.
 *
 * Errors, after which the capture is empty: NULL_ARGUMENT (capture), INVALID_ARGUMENT (a frame is being
 * captured in it), those of quern_schedule_run, and OUT_OF_MEMORY for the capture, after the frame has run.
 */
QUERN_API quern_result quern_schedule_run_captured(quern_schedule *schedule, quern_jobs *jobs,
                                                   double delta_seconds, quern_frame_capture *capture);

/** Costs of the machine that a capture does not contain. Each is finite and at least 0. A typical machine
 * has a steal_ns of 1000, a wake_ns of 50,000, and a bytes_per_ns_limit of 0. */
typedef struct quern_forecast_costs {
    double steal_ns; /**< Time until an awake thread joins work that has begun. */
    double wake_ns;  /**< Time until a sleeping thread joins work that has begun. */
    /** Memory bandwidth of all threads together, in bytes per nanosecond; 0 means that it is no limit. */
    double bytes_per_ns_limit;
} quern_forecast_costs;

/** Measures the costs with the threads of a pool, in some tens of milliseconds. The pool must be idle.
 *
 * The bandwidth limit is that of a triad (a[i] = b[i] + s * c[i]) on all threads if more threads gained
 * little, and 0 otherwise. The triad temporarily allocates 96 MiB from the pool's allocator. A cost that
 * cannot be measured, in a pool of one thread or while other programs use the processors, is set to that of
 * a typical machine. Errors, with out_costs unchanged: NULL_ARGUMENT, POOL_BUSY, OUT_OF_MEMORY. */
QUERN_API quern_result quern_forecast_measure_costs(quern_jobs *jobs, quern_forecast_costs *out_costs);

/** The cause that costs a forecast frame most time: without it, the frame would be shortest. */
typedef enum quern_forecast_bottleneck {
    QUERN_FORECAST_NONE,       /**< No cause costs five percent. */
    QUERN_FORECAST_CHUNKS,     /**< A pass has too few or too uneven chunks for the number of threads. */
    QUERN_FORECAST_SERIAL,     /**< Systems that run on one thread, and begin and end callbacks. */
    QUERN_FORECAST_SYNC,       /**< Sync points. */
    QUERN_FORECAST_BANDWIDTH,  /**< Memory bandwidth. */
    QUERN_FORECAST_SCHEDULING, /**< Stealing jobs and waking threads. */
    QUERN_FORECAST_BOTTLENECK_COUNT /**< Number of enumerators above. */
} quern_forecast_bottleneck;

/** Returns a description of the limit, in English. Never NULL. */
QUERN_API const char *quern_forecast_bottleneck_string(quern_forecast_bottleneck bottleneck);

/** Forecast of a captured frame on some number of threads. */
typedef struct quern_forecast {
    uint32_t thread_count; /**< Number of threads, as given to quern_frame_capture_forecast. */
    double frame_ns;       /**< Duration of the frame. */
    double speedup;        /**< Captured work on one thread, divided by frame_ns. */
    /** Duration of the frame with one thread per chunk and without any costs of the machine. */
    double critical_path_ns;
    quern_forecast_bottleneck bottleneck; /**< The cause that costs most time. */
    double without_limit_ns; /**< Duration of the frame without that cause; 0 for QUERN_FORECAST_NONE. */
    /** For QUERN_FORECAST_CHUNKS and QUERN_FORECAST_SERIAL: the pass with the longest chunk or call
     * concerned; otherwise NULL. Valid until the capture changes. */
    const char *bottleneck_system;
} quern_forecast;

/** Forecasts a captured frame on thread_count threads. costs NULL: those of a typical machine. Errors, with
 * out_forecast unchanged: NULL_ARGUMENT (capture, out_forecast), INVALID_ARGUMENT (thread_count is not 1 to
 * QUERN_MAX_THREADS; a cost is negative or not finite; the capture is empty), OUT_OF_MEMORY. */
QUERN_API quern_result quern_frame_capture_forecast(const quern_frame_capture *capture,
                                                    const quern_forecast_costs *costs,
                                                    uint32_t thread_count, quern_forecast *out_forecast);

/* -------------------------------------------------------------------------------------------- traces */

#define QUERN_MAX_TRACKS       1024       /**< Maximum number of tracks of a trace. */
#define QUERN_MAX_TRACK_EVENTS (1u << 24) /**< Maximum number of events of a track, 32 bytes each. */
#define QUERN_MAX_TRACE_NAMES  65536      /**< Maximum number of names in a trace. */

/** A record of what threads did and when. */
typedef struct quern_trace quern_trace;

/** Definition of a trace. */
typedef struct quern_trace_def {
    uint32_t track_count QUERN__ZERO; /**< Number of tracks, 1 to QUERN_MAX_TRACKS; 0 means 1. */
    /** Size of each track's ring, 2 to QUERN_MAX_TRACK_EVENTS events, rounded up to a power of two; 0 means
     *   65536. A full ring holds one event less. */
    uint32_t events_per_track QUERN__ZERO;
    /** Allocator of the trace. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
} quern_trace_def;

/** Creates a trace. It does not record before quern_trace_start. def may be NULL for the defaults. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_trace_create(const quern_trace_def *def, quern_trace **out_trace);

/** Destroys a trace. No thread may record or write it meanwhile. The call is refused, with a message in the
 * log, while pools or schedules that use the trace exist. NULL is allowed. */
QUERN_API void quern_trace_destroy(quern_trace *trace);

/* ------------------------------------------------------------------------------------- recording */

/** Drops all recorded events and starts recording. NULL is allowed and does nothing. Threads: any, at any
 * time. */
QUERN_API void quern_trace_start(quern_trace *trace);

/** Stops recording, and keeps the recorded events. NULL is allowed. Threads: any, at any time. */
QUERN_API void quern_trace_stop(quern_trace *trace);

/** Returns whether the trace is recording; false for NULL. Threads: any. */
QUERN_API bool quern_trace_is_running(const quern_trace *trace);

/** Registers a name of 1 to QUERN_MAX_NAME_BYTES bytes and returns its number. The same name always gets
 * the same number. Acquires a lock, so avoid it on hot paths. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name),
 * LIMIT (QUERN_MAX_TRACE_NAMES), OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_trace_add_name(quern_trace *trace, const char *name, uint32_t *out_name);

/** Sets the name of a track; the default is "worker N". Errors: NULL_ARGUMENT, INVALID_ARGUMENT (track,
 * name). Threads: any. */
QUERN_API quern_result quern_trace_set_track_name(quern_trace *trace, uint32_t track, const char *name);

/** A piece of work that has begun. Keep it until quern_trace_zone_end. */
typedef struct quern_trace_zone {
    quern_trace *trace; /**< Internal; NULL if the zone is not recorded. */
    uint64_t begin_ns;  /**< Internal. */
    uint32_t track;     /**< Internal. */
    uint32_t name;      /**< Internal. */
    uint32_t depth;     /**< Internal. */
} quern_trace_zone;

/** Begins a zone. Zones of a track must end in the reverse order of their beginning. While the trace is not
 * running, this costs one load. A NULL trace is allowed and records nothing.
 *
 * track: only one thread at a time may record on a track. A track that the trace does not have is an error,
 * and nothing is recorded; the first such zone after each quern_trace_start is reported. name: a number
 * from quern_trace_add_name of this trace. It is not checked, because that would need a lock; the file
 * shows "?" for an unknown number. */
QUERN_API quern_trace_zone quern_trace_zone_begin(quern_trace *trace, uint32_t track, uint32_t name);

/** Ends a zone, on the track on which it began. Records nothing if the trace was not running when the zone
 * began, was started again since, or is not running now.
 *
 * A zone that never ends is missing in the file. A zone that ends twice is written twice, and crossing
 * zones are written as they are; viewers cut off or omit such zones. Builds with QUERN_CHECKS report the
 * first such error after each quern_trace_start. */
QUERN_API void quern_trace_zone_end(const quern_trace_zone *zone);

/* --------------------------------------------------------------------------------------- reading */

/** Statistics of a trace. */
typedef struct quern_trace_stats {
    uint64_t event_count;   /**< Number of events in the rings. */
    uint64_t dropped_count; /**< Number of events since the start that were overwritten by later ones. */
} quern_trace_stats;

/** Returns the statistics of a trace. Errors: NULL_ARGUMENT. Threads: any, at any time. */
QUERN_API quern_result quern_trace_get_stats(const quern_trace *trace, quern_trace_stats *out_stats);

/** Writes the trace in the trace event format (JSON). Call it after quern_trace_stop if possible; while the
 * trace is running, the events recorded before the call are written. Errors: NULL_ARGUMENT, OUT_OF_MEMORY,
 * IO. Threads: any. */
QUERN_API quern_result quern_trace_write(quern_trace *trace, quern_sink sink);

/** Writes the trace to a file. If the call fails, the file is as it was before. Errors and threads: as
 * quern_trace_write. */
QUERN_API quern_result quern_trace_save(quern_trace *trace, const char *path);

#ifdef __cplusplus
}
#endif

#endif
