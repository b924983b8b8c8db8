/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RESOLVE_H
#define QUERN_CORE_PLAYBACK_RESOLVE_H

/* Resolving, the third stage of a sync point and the last that may fail: what each sequence comes to, which
 * rows each archetype loses and gets, and room for all of it.
 *
 * The order of rows that comes out is defined by archetype, in this order:
 *   1. Entities that come from other archetypes are appended, in the order of archetype and row that they
 *      come from.
 *   2. Rows that were left are gaps. New entities, in the order of their creates, fill them, the first gap
 *      first; those that find none are appended.
 *   3. Members of instances (spawned.h) are appended, in the order of instances.
 *   4. While there are gaps, the archetype ends as many rows earlier: those after that end which are no
 *      gaps fill the gaps before it, first to first. */

#include "core/playback/merge.h"
#include "core/playback/spawned.h"

/* An archetype delta: what happens to the rows of one archetype. */
typedef struct quern__archetype_delta {
    quern__archetype *archetype;
    uint32_t row_count;      /* before */
    uint32_t leaving_count;  /* destroyed, or gone to other archetypes */
    uint32_t arriving_count; /* from other archetypes */
    uint32_t created_count;
    uint32_t spawned_count;   /* members of instances */
    uint32_t appended_count;  /* of those that arrive and are created */
    uint32_t left_over_count; /* gaps that no create fills */
    uint64_t first_gap;
    uint32_t led_edits, leader; /* the edits whose groups are being resolved, and their leader to here */
    bool is_reserved;
    bool is_emptied; /* all rows leave, and none come: gaps need not be listed */
} quern__archetype_delta;

typedef QUERN__ARRAY(uint32_t) quern__slot_list;

/* Besides what stands in sequences, groups and edits. */
struct quern__resolved {
    QUERN__ARRAY(quern__archetype_delta) deltas;
    QUERN__ARRAY(uint32_t) delta_of_archetype; /* by index: a guess, checked against the delta */
    uint64_t created_count, destroyed_count;
    uint64_t refused_count;      /* entities whose commands ask for more than it, or the world, can have */
    uint32_t further_drop_count; /* entries that the report of drops needs room for besides */
    quern_result refused_result; /* of the first of them, or QUERN_OK */
    /* lists with room for what applying puts there */
    QUERN__ARRAY(uintptr_t) gaps;       /* locations, ascending for each archetype */
    QUERN__ARRAY(uintptr_t) tails;      /* what moves into the gaps of one archetype */
    quern__slot_list destroyed;         /* in the order in which they are freed */
    quern__slot_list freed;             /* by the sync point before */
    QUERN__ARRAY(quern_entity) created; /* handles, in the order of creates */
    QUERN__ARRAY(quern__spawned) spawned;
};

void quern__resolved_release(quern__resolved *resolved, const quern_allocator *allocator);

/* Forgets everything and keeps the memory. */
static inline void quern__resolved_clear(quern__resolved *resolved)
{
    resolved->deltas.count = 0;
    resolved->spawned.count = 0;
    resolved->created.count = 0;
    resolved->created_count = 0;
    resolved->destroyed_count = 0;
    resolved->refused_count = 0;
    resolved->refused_result = QUERN_OK;
}

/* What `resolved` had before has been cleared. What comes out stands in `merged` as well; room for it is
 * still to be made. drops: where dropped commands will be reported; there is room for them afterwards. On
 * failure nothing is held that was not before, but for archetypes without rows. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_resolve(quern__resolved *resolved, quern__merged *merged,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     quern__drops *drops);

/* Finds the target, plan and values of a sequence that is not resolved. A sequence that asks for more than an
 * entity, or the world, can have is_refused afterwards, which is no failure. Errors: OUT_OF_MEMORY; the tree is
 * to be cleared then. */
quern_result quern__sequence_resolve(quern__resolved *resolved, quern__storage *storage,
                                     quern__sequences *sequences, quern__sequence *sequence);

/* The delta of an archetype, made where there is none. NULL: no memory. */
quern__archetype_delta *quern__resolved_add(quern__resolved *resolved, const quern__storage *storage,
                                            quern__archetype *archetype);

/* Rows, slots and lists for what comes and goes, as the deltas and the counts say, and for what spawns. On
 * failure nothing is held that was not before, but for records that were absent. Errors: OUT_OF_MEMORY,
 * LIMIT. */
quern_result quern__resolved_reserve(quern__resolved *resolved, const quern__gathered *gathered,
                                     quern__storage *storage);

/* The delta of an archetype that has one. */
static inline quern__archetype_delta *quern__resolved_delta(const quern__resolved *resolved,
                                                            const quern__archetype *archetype)
{
    return &resolved->deltas.items[resolved->delta_of_archetype.items[archetype->index]];
}

#endif
