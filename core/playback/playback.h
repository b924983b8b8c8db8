/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_PLAYBACK_H
#define QUERN_CORE_PLAYBACK_PLAYBACK_H

/* Playback: applying recorded commands (record.h) at a sync point, in stages. stages.h
 * describes what each stage hands to the next. All stages but the last may fail and then change nothing; relate reverts
 * its changes. The last stage cannot fail.
 *
 *   gather    lists the streams of all recorders, sorted by key
 *   relate    only if commands relate or name entities, or may destroy related ones: changes links and names, and
 *             adds follow-up commands on rows
 *   merge     combines all commands on one entity to one edit, and edits with the same effect to groups
 *   resolve   finds the final archetype, move plan and new values of each sequence of commands; counts the rows that
 *             leave and arrive in each archetype, and reserves memory
 *   apply     allocates the handles of creates, in order, and then changes rows, chunk by chunk
 *
 * Three fast paths replace merge, resolve and apply: if all commands set existing values, if a few commands are all on
 * one entity, and if all commands destroy or create entities. A fourth replaces all stages after gather: if all commands
 * relate entities in one relation.
 *
 * Accumulated values are gathered before the first stage and combined after the last.
 *
 * At the end, values that items still own are destroyed and the recorders are reset. */

#include "core/playback/stages.h"

typedef struct quern__playback {
    quern__storage *storage;
    uint64_t parallel_command_count; /* sync points with fewer commands run on the calling thread */
    /* For tests: */
    bool disable_fast_paths;
    uint32_t
        destroy_and_create_count; /* number of sync points that used the path of destroys and creates */
    uint32_t only_relates_count;  /* number of sync points that used the path of relating */
    /* Scratch memory, reused at every sync point: */
    quern__gathered gathered;
    quern__merged merged;
    quern__resolved resolved;
    quern__destroy_and_create destroy_and_create;
    quern__relating *relating;         /* NULL until first used */
    quern__accumulating *accumulating; /* NULL until first used */
    quern__drops drops;                /* dropped commands since quern__playback_start_frame */
    /* Called at the end of a successful sync point with creates. created: their handles, in the order of
     * streams. May be NULL. */
    void (*on_created)(void *argument, const quern__gathered *gathered, const quern_entity *created);
    void *on_created_argument;
} quern__playback;

typedef struct quern__playback_stats {
    uint64_t command_count;
    uint64_t dropped_count; /* commands that were not applied; quern_drop_reason lists the reasons */
    uint64_t created_count;
    uint64_t destroyed_count;
    uint64_t refused_count; /* entities with refused commands: see quern__resolved */
    quern_result refused_result;
} quern__playback_stats;

void quern__playback_init(quern__playback *playback, quern__storage *storage);

void quern__playback_release(quern__playback *playback);

/* Removes the drops reported so far. */
static inline void quern__playback_start_frame(quern__playback *playback)
{
    playback->drops.count = 0;
}

/* Playback as the recorders know it. A sync point reaches playback only through recorders whose callbacks may have
 * recorded something: a program without such callbacks links the sync point, but not the stages of playback. */
typedef struct quern__playback_calls {
    quern_result (*run)(quern__playback *playback, quern__recorders recorders,
                        const quern__executor *executor, quern__playback_stats *stats);
} quern__playback_calls;

extern const quern__playback_calls quern__playback_calls_of_recorders;

/* quern__commands_begin for recorders whose commands a sync point applies by quern__playback_run_recorded. */
static inline void quern__playback_begin(quern_commands *recorder, const quern__origin *origin)
{
    recorder->playback_calls = &quern__playback_calls_of_recorders;
    quern__commands_begin(recorder, origin);
}

/* Calls quern__playback_run by the recorders. Does nothing if quern__playback_begin was called for none of them. */
static inline quern_result quern__playback_run_recorded(quern__playback *playback,
                                                        quern__recorders recorders,
                                                        const quern__executor *executor,
                                                        quern__playback_stats *stats)
{
    for (uint32_t i = 0; i < recorders.count; i++) {
        const quern__playback_calls *calls = recorders.items[i]->playback_calls;
        if (calls != NULL) return calls->run(playback, recorders, executor, stats);
    }
    return QUERN_OK;
}

/* Applies all commands of the recorders and resets them. Adds to stats and to the drops. executor may be NULL.
 * On failure, the world and the recorders are unchanged, so the call can be repeated. Errors: OUT_OF_MEMORY,
 * LIMIT. */
quern_result quern__playback_run(quern__playback *playback, quern__recorders recorders,
                                 const quern__executor *executor, quern__playback_stats *stats);

#endif
