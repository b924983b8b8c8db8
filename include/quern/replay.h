/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_REPLAY_H
#define QUERN_REPLAY_H

/** @file
 * Replays: recorded frames that run again, elsewhere or later.
 *
 * The result of a frame depends only on the world, the time step, and data from outside. If all data from
 * outside is in resources, the *inputs*, then inputs and time steps are sufficient to run the same frames
 * again, on any number of threads. A recording also contains hashes of the world after each frame, so that
 * a run that diverges is detected at the first frame that differs.
 *
 *     quern_replay_recorder *recorder;
 *     quern_replay_recorder_create(schedule, quern_sink_file(file),
 *                                  &(quern_replay_recorder_def){.inputs = {keys}}, &recorder);
 *     while (...) {
 *         read_keys(quern_resource_get(world, keys));
 *         quern_replay_record(recorder, jobs, 1.0 / 60); // instead of quern_schedule_run
 *     }
 *     quern_replay_finish(recorder);
 *
 * Later, with a world and a schedule that were created in the same way:
 *
 *     quern_replay_report report;
 *     quern_result result = quern_replay_run(schedule, jobs, quern_source_file(file), NULL, &report);
 *     if (result == QUERN_ERROR_DIVERGED) puts(report.text);
 *
 * Recordings are little-endian, and their hashes are those of little-endian machines. On other machines,
 * recording and replaying fail with UNAVAILABLE. */

#include <quern/base.h>
#include <quern/id.h>
#include <quern/jobs.h>
#include <quern/schedule.h>
#include <quern/sink.h>
#include <quern/source.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_REPLAY_INPUTS      32  /**< Maximum number of inputs of one recording. */
#define QUERN_REPLAY_TEXT_BYTES      512 /**< Size of the text in a report. */
#define QUERN_REPLAY_COMPONENT_BYTES 256 /**< Size of the list of components in a report. */

/* --------------------------------------------------------------------------------------- recording */

/** How detailed the hashes of a recording are. */
typedef enum quern_replay_detail {
    /** Hashes of each component in each archetype, of relations, names and resources. Costs one more pass
     * over all values than quern_world_hash. */
    QUERN_REPLAY_PARTS = 0,
    /** Only quern_world_hash. A divergence can be attributed to a frame, but not to a part of the world. */
    QUERN_REPLAY_WHOLE,
    /** Like PARTS, plus hashes of entities: 8 bytes per entity, and 4 for each of its components. */
    QUERN_REPLAY_ENTITIES
} quern_replay_detail;

/** Definition of a recording. */
typedef struct quern_replay_recorder_def {
    /** Resources with data from outside. The list ends at its first null resource. Of a resource with
     * described fields these are recorded, otherwise all bytes. A handle in a described field is recorded
     * as index and use count (see quern_entity). Resources with copy, move or destroy hooks are an error.
     */
    quern_resource inputs[QUERN_MAX_REPLAY_INPUTS] QUERN__ZERO;
    quern_replay_detail detail QUERN__ZERO; /**< How detailed the hashes are. */
    /** With QUERN_REPLAY_ENTITIES: distance in frames between detailed records, beginning with the first
     * frame; the frames in between have PARTS. 0 means 1. */
    uint32_t entity_interval QUERN__ZERO;
} quern_replay_recorder_def;

/** Records frames of one schedule. */
typedef struct quern_replay_recorder quern_replay_recorder;

/** Creates a recorder. The schedule, and what the sink writes to, must remain valid until
 * quern_replay_finish. def may be NULL: no inputs. Nothing is written yet. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT (a resource with hooks, or listed twice), UNKNOWN_RESOURCE, WORLD_LOCKED, UNAVAILABLE,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_replay_recorder_create(quern_schedule *schedule, quern_sink sink,
                                                    const quern_replay_recorder_def *def,
                                                    quern_replay_recorder **out_recorder);

/** Runs one frame like quern_schedule_run, and records it. Inputs and time step are written before the
 * frame, so that they are available even if the program crashes in it; the hashes are written after it.
 * The first call also records the hashes of the world before the frame.
 *
 * Changes that the program makes between frames are not recorded. Make them in systems that read inputs,
 * or repeat them in the callbacks of quern_replay_run.
 *
 * Errors: those of quern_schedule_run. A frame that ran and returned an error is recorded with it; a frame
 * that did not begin is not recorded. If a frame succeeded but could not be recorded: IO, OUT_OF_MEMORY,
 * LIMIT (4 GiB for one frame). The recording then ends; this call and later ones still run their frames,
 * and return that error. Threads: main, between frames. */
QUERN_API quern_result quern_replay_record(quern_replay_recorder *recorder, quern_jobs *jobs,
                                           double delta_seconds);

/** Ends a recording and frees the recorder. NULL is allowed. Errors: WORLD_LOCKED, with nothing done;
 * IO, or the error with which quern_replay_record failed to record, with the recorder freed. Threads:
 * main, between frames. */
QUERN_API quern_result quern_replay_finish(quern_replay_recorder *recorder);

/* --------------------------------------------------------------------------------------- replaying */

/** How two runs differ. Which differences can be reported depends on the detail of the recording.
 * Recording and world are compared in this order. */
typedef enum quern_replay_difference {
    QUERN_REPLAY_NONE = 0,       /**< No difference. */
    QUERN_REPLAY_RESULT,         /**< The frame returned another result. */
    QUERN_REPLAY_WORLD,          /**< The world differs; the recording has no detail. */
    QUERN_REPLAY_ENTITY_MISSING, /**< An entity of the recording is not alive. */
    QUERN_REPLAY_ENTITY_EXTRA,   /**< An entity is alive that the recording does not have. */
    QUERN_REPLAY_ENTITY_MOVED,   /**< An entity has other components. */
    QUERN_REPLAY_ENTITIES_OTHER, /**< An archetype has other entities, or another order of entities. */
    QUERN_REPLAY_VALUE,          /**< Values of a component differ. */
    QUERN_REPLAY_DISABLED,       /**< Other entities have a component disabled. */
    QUERN_REPLAY_RELATION,       /**< Targets in a relation, or the order of siblings, differ. */
    QUERN_REPLAY_NAMES,          /**< Names of entities differ. */
    QUERN_REPLAY_RESOURCE_VALUE, /**< The value of a resource differs. */
    QUERN_REPLAY_HANDLES /**< The handles to be given out next, or the order of archetypes, differ. */
} quern_replay_difference;

/** Result of a replay. */
typedef struct quern_replay_report {
    uint64_t frame_count; /**< Number of frames that ran and agreed. */
    /** Kind of the first difference. The members below describe it. */
    quern_replay_difference difference;
    /** Whether the runs differ before the first frame, because the world was created differently. */
    bool is_before_first;
    uint64_t frame;         /**< Frame with the difference; 0 is the first of the recording. */
    uint64_t expected_hash; /**< quern_world_hash after that frame, in the recording. */
    /** quern_world_hash after that frame, in this run, without resources that the recording does not have. */
    uint64_t actual_hash;
    /** Names of the archetype's components, separated by commas and truncated to the size; "" if no
     * archetype is known. */
    char archetype[QUERN_REPLAY_COMPONENT_BYTES];
    /** Component, for VALUE and DISABLED, or component of the relation, for RELATION; otherwise null. */
    quern_component component;
    quern_resource resource; /**< Resource, for RESOURCE_VALUE; null if this world does not have it. */
    /** quern_entity_index of the first entity that differs, for the ENTITY_ differences and for VALUE, if
     * the recording has entities. */
    uint32_t entity_index;
    uint32_t entity_use_count; /**< quern_entity_use_count of that entity; 0 if no entity is known. */
    quern_entity entity;       /**< Handle of that entity, if it is alive in this run; otherwise null. */
    /** Number of entities that differ in this archetype, for VALUE if the recording has entities. */
    uint64_t entity_count;
    char text[QUERN_REPLAY_TEXT_BYTES]; /**< The difference as text. */
} quern_replay_report;

/** Options of a replay. */
typedef struct quern_replay_run_def {
    /** Called before each frame, after its inputs are set, and before the world is compared for the first
     * time. It must repeat what the recorded program did between frames, except for setting the inputs. */
    void (*before_frame)(void *user_data, uint64_t frame) QUERN__ZERO;
    /** Called after each frame that agreed. Returning false ends the replay (CANCELLED). */
    bool (*after_frame)(void *user_data, uint64_t frame) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to both. */
} quern_replay_run_def;

/** Runs recorded frames: for each, sets the inputs, runs the frame with the recorded time step, and
 * compares the world. Stops at the end of the recording, or at the first frame that differs. def and
 * out_report may be NULL; the report is also written if the call fails.
 *
 * World and schedule must be as they were when the recording began: the same components and resources,
 * registered in the same order (others may follow), entities created by the same calls, and a schedule
 * that has run the same number of frames. The entities are compared before the first frame.
 *
 * A damaged recording, or one of a program that crashed, is run as far as it is intact. This includes a
 * last frame of which only the inputs were written. The result is then BAD_ARCHIVE.
 *
 * Errors: DIVERGED (the runs differ); LAYOUT_MISMATCH and UNKNOWN_RESOURCE (the message names the
 * difference) and INVALID_ARGUMENT (inputs with hooks), all before anything is changed; INVALID_ARGUMENT also if a
 * callback has redefined a type with another layout; BAD_ARCHIVE; CANCELLED; NULL_ARGUMENT, WORLD_LOCKED, UNAVAILABLE,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_replay_run(quern_schedule *schedule, quern_jobs *jobs, quern_source source,
                                        const quern_replay_run_def *def, quern_replay_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
