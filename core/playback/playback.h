/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_PLAYBACK_H
#define QUERN_CORE_PLAYBACK_PLAYBACK_H

/* Playback: what a sync point does with the commands that were recorded (record.h). Its stages, each with a
 * header that says what it hands to the next; all but the last may fail and change nothing (relate takes
 * back what it has done), the last cannot fail:
 *
 *   gather    the streams of all recorders, sorted by key
 *   relate    where commands relate, or destroy what is related: links, and commands that follow from that
 *   merge     all commands on one entity into one edit; edits that do the same into groups
 *   resolve   for each sequence of commands: final archetype, plan, where its values come from; for each
 *             archetype: how many rows come and go, and room for them
 *   apply     handles for creates, in order; then rows, chunk by chunk
 *
 * Three short ways take the place of the last three stages: in_place.h where all commands set values that are
 * there, one_entity.h where a few commands are all on one entity, turnover.h where all commands destroy and
 * create.
 *
 * Values that were accumulated (accumulate.h) are gathered before the first of these stages, and combined
 * after the last.
 *
 * Then the recorders are reset, and values that nobody wanted are destroyed. */

#include "core/playback/accumulate.h"
#include "core/playback/relate_stage.h"
#include "core/playback/turnover.h"

typedef struct quern__playback {
    quern__storage *storage;
    uint64_t parallel_command_count; /* fewer commands than this are applied on the caller */
    /* for tests */
    bool no_short_ways;      /* all stages, whatever the commands do */
    uint32_t turnover_count; /* sync points that went by turnover.h */
    /* scratch, kept from one sync point to the next */
    quern__gathered gathered;
    quern__merged merged;
    quern__resolved resolved;
    quern__turnover turnover;
    quern__relating *relating;         /* NULL until it is needed */
    quern__accumulating *accumulating; /* likewise */
    quern__drops drops;                /* since quern__playback_start_frame */
    /* Called when creates of a sync point have their handles: in the order of streams. Or NULL. */
    void (*on_created)(void *argument, const quern__gathered *gathered, const quern_entity *created);
    void *on_created_argument;
} quern__playback;

typedef struct quern__playback_stats {
    uint64_t command_count;
    uint64_t dropped_count; /* their entity did not live any more, or was refused */
    uint64_t created_count;
    uint64_t destroyed_count;
    uint64_t refused_count; /* see quern__resolved */
    quern_result refused_result;
} quern__playback_stats;

void quern__playback_init(quern__playback *playback, quern__storage *storage);

void quern__playback_release(quern__playback *playback);

/* Removes the drops reported so far. */
static inline void quern__playback_start_frame(quern__playback *playback)
{
    playback->drops.count = 0;
}

/* Applies everything that the recorders hold, resets them, and adds to stats and drops. executor may be
 * NULL. On failure the world and the recorders are as before, so that it can be tried again. Errors:
 * OUT_OF_MEMORY, LIMIT. */
quern_result quern__playback_run(quern__playback *playback, quern__recorders recorders,
                                 const quern__executor *executor, quern__playback_stats *stats);

#endif
