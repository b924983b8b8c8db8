/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_REPLAY_H
#define QUERN_REPLAY_H

/** @file
 * Replays: frames that are recorded, and run again elsewhere.
 *
 * What a frame does follows from the world, the time step and what came from outside. If that is in
 * resources, the inputs, then these and the time steps are all that a recording needs for the same frames
 * to run again, on any number of threads. A recording also tells what the world was like after each frame,
 * as hashes; so a run that does something else is found at the first frame where it does.
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
 * Later, in a world and with a schedule that were made the same way:
 *
 *     quern_replay_report report;
 *     quern_result result = quern_replay_run(schedule, jobs, quern_source_file(file), NULL, &report);
 *     if (result == QUERN_ERROR_PARTED) puts(report.text);
 *
 * Recordings are little-endian, and hashes are those of a little-endian machine: on others both calls are
 * refused (UNAVAILABLE). */

#include <quern/base.h>
#include <quern/id.h>
#include <quern/jobs.h>
#include <quern/schedule.h>
#include <quern/sink.h>
#include <quern/source.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_REPLAY_INPUTS      32  /**< Inputs of one recording. */
#define QUERN_REPLAY_TEXT_BYTES      512 /**< For the text of a report. */
#define QUERN_REPLAY_COMPONENT_BYTES 256 /**< For the list of components in a report. */

/* --------------------------------------------------------------------------------------- recording */

/** How much a recording tells of the world after each frame. */
typedef enum quern_replay_detail {
    /** Hashes of each component in each archetype, of relations, names and resources. Goes
     * over all values once more than quern_world_hash does. */
    QUERN_REPLAY_PARTS = 0,
    QUERN_REPLAY_WHOLE,   /**< quern_world_hash alone: which frame it is can be told, and no more. */
    QUERN_REPLAY_ENTITIES /**< As PARTS, and which entity: 8 bytes for each, and 4 for each of its
                             components. */
} quern_replay_detail;

/** Says what is recorded. */
typedef struct quern_replay_recorder_def {
    /** What comes from outside: a list that ends at the first null resource, or when it is full. Of one
     * with described fields these are recorded, otherwise all bytes. A handle in a described field is
     * written as index and life. Resources with copy, move or destroy hooks are refused. */
    quern_resource inputs[QUERN_MAX_REPLAY_INPUTS] QUERN__ZERO;
    quern_replay_detail detail QUERN__ZERO; /**< Of hashes. */
    /** Of detail ENTITIES: that much every so many frames, beginning with the first, and PARTS in between.
     * 0 stands for 1. */
    uint32_t entity_interval QUERN__ZERO;
} quern_replay_recorder_def;

/** Records frames of one schedule. */
typedef struct quern_replay_recorder quern_replay_recorder;

/** Begins a recording. The schedule, and what the sink writes to, must stay until quern_replay_finish. def
 * may be NULL: no inputs. Nothing is written yet. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (a resource with
 * hooks, or named twice), UNKNOWN_RESOURCE, WORLD_LOCKED, UNAVAILABLE, OUT_OF_MEMORY. Threads: main,
 * between frames.
 */
QUERN_API quern_result quern_replay_recorder_create(quern_schedule *schedule, quern_sink sink,
                                                    const quern_replay_recorder_def *def,
                                                    quern_replay_recorder **out_recorder);

/** Runs one frame as quern_schedule_run does, and records it: before the frame the inputs and the time
 * step, so that a frame in which the program crashes has been written; after it, what the world is like.
 * The first call also records what the world is like before.
 *
 * What else the program does with the world between frames is not recorded: it belongs into systems that
 * read inputs, or has to be done again by the callbacks of quern_replay_run.
 *
 * Errors: those of quern_schedule_run; a frame that ran and ended with an error is recorded with it, and
 * one that did not begin is left out. If a frame went well and could not be recorded: FILE, OUT_OF_MEMORY,
 * LIMIT (4 GiB for one frame); then the recording is at its end, and this and later calls run their frames
 * all the same, and return that error. Threads: main, between frames. */
QUERN_API quern_result quern_replay_record(quern_replay_recorder *recorder, quern_jobs *jobs,
                                           double delta_seconds);

/** Ends a recording and releases the recorder. NULL is allowed. Errors: WORLD_LOCKED, and nothing is done;
 * what quern_replay_record returned when it could not record, or FILE, and the recorder is gone all the
 * same. Threads: main, between frames. */
QUERN_API quern_result quern_replay_finish(quern_replay_recorder *recorder);

/* --------------------------------------------------------------------------------------- replaying */

/** Where two runs part. What can be told depends on the detail of the recording. Recording and world are
 * compared in this order. */
typedef enum quern_replay_difference {
    QUERN_REPLAY_NONE = 0,       /**< Nowhere. */
    QUERN_REPLAY_RESULT,         /**< The frame ended with another result. */
    QUERN_REPLAY_WORLD,          /**< Somewhere: the recording has no detail. */
    QUERN_REPLAY_ENTITY_MISSING, /**< An entity of the recording does not live. */
    QUERN_REPLAY_ENTITY_EXTRA,   /**< An entity lives that the recording does not have. */
    QUERN_REPLAY_ENTITY_MOVED,   /**< An entity has other components. */
    QUERN_REPLAY_ENTITIES_OTHER, /**< Other entities, or in another order, in one archetype. */
    QUERN_REPLAY_VALUE,          /**< Values of a component. */
    QUERN_REPLAY_DISABLED,       /**< Which entities have a component disabled. */
    QUERN_REPLAY_RELATION,       /**< Targets of a relation, or the order of siblings. */
    QUERN_REPLAY_NAMES,          /**< Names of entities. */
    QUERN_REPLAY_RESOURCE_VALUE, /**< The value of a resource. */
    QUERN_REPLAY_HANDLES         /**< Which handles come next, or the order of archetypes. */
} quern_replay_difference;

/** What a replay came to. */
typedef struct quern_replay_report {
    uint64_t frame_count;               /**< Frames that ran and agreed. */
    quern_replay_difference difference; /**< What is told below; NONE: nothing is. */
    bool is_before_first;   /**< They part before the first frame: the world was made otherwise. */
    uint64_t frame;         /**< In which they part; 0 is the first of the recording. */
    uint64_t expected_hash; /**< quern_world_hash after it, in the recording. */
    uint64_t actual_hash;   /**< And here. */
    /** Names of the components of the archetype, with commas, cut off where they are too many; "": none. */
    char archetype[QUERN_REPLAY_COMPONENT_BYTES];
    quern_component component; /**< Of VALUE and DISABLED, or the relation's; otherwise null. */
    quern_resource resource;   /**< Of RESOURCE_VALUE; null where this world does not have it. */
    /** The first entity, of the ENTITY_ differences and of VALUE, if the recording tells of entities: its
     * quern_entity_index. */
    uint32_t entity_index;
    uint32_t entity_life;               /**< Its quern_entity_life; 0: no entity is told. */
    quern_entity entity;                /**< The same, where it lives here; otherwise null. */
    uint64_t entity_count;              /**< Of VALUE, with entities: how many differ in this archetype. */
    char text[QUERN_REPLAY_TEXT_BYTES]; /**< All this in words. */
} quern_replay_report;

/** Says how to replay. */
typedef struct quern_replay_run_def {
    /** Runs before each frame, when the inputs are set, and before the world is compared the first time.
     * For what the program does between frames besides the inputs. */
    void (*before_frame)(void *user_data, uint64_t frame) QUERN__ZERO;
    /** Runs after each frame that agreed. Returns false to end the replay (CANCELLED). */
    bool (*after_frame)(void *user_data, uint64_t frame) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to both. */
} quern_replay_run_def;

/** Runs recorded frames: sets the inputs, runs a frame with the recorded time step, compares the world; up
 * to the end of the recording, or the first frame that parts. def and out_report may be NULL; the report is
 * also written when the call fails.
 *
 * World and schedule must be as they were when the recording began: the same components and resources,
 * registered in the same order (others may follow), entities made by the same calls, a schedule that has
 * run as many frames. Whether entities agree is compared before the first frame.
 *
 * A recording without its end, of a program that crashed, or a damaged one, runs as far as it is good, the
 * last frame included of which only the inputs were written; then BAD_ARCHIVE.
 *
 * Errors: PARTED, where the runs part; LAYOUT_MISMATCH and UNKNOWN_RESOURCE, naming what differs, and
 * INVALID_ARGUMENT for inputs with hooks, all before anything is changed; BAD_ARCHIVE; CANCELLED;
 * NULL_ARGUMENT, WORLD_LOCKED, UNAVAILABLE, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_replay_run(quern_schedule *schedule, quern_jobs *jobs, quern_source source,
                                        const quern_replay_run_def *def, quern_replay_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
