/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RESOLVE_H
#define QUERN_CORE_PLAYBACK_RESOLVE_H

/* Resolving, the third stage of a sync point and the last that may fail: determines the effect of each sequence
 * and the rows that leave and arrive in each archetype, and reserves memory for all changes.
 *
 * The final order of rows in each archetype is defined by these steps:
 *
 *   1. Rows from other archetypes are appended, in the order of their source archetype and row.
 *   2. Rows that left are gaps. New entities fill the gaps in the order of their creates, first gap first. The
 *      remaining new entities are appended.
 *   3. Members of prefab instances (spawned.h) are appended, in the order of instances.
 *   4. If gaps remain, the archetype shrinks by their number. The rows after the new end, except gaps, fill the
 *      gaps before it in order. */

#include "core/playback/merge.h"
#include "core/playback/spawned.h"

/* An archetype delta: the changes of the rows of one archetype. */
typedef struct quern__archetype_delta {
    quern__archetype *archetype;
    uint32_t row_count;      /* number of rows before the sync point */
    uint32_t leaving_count;  /* rows destroyed or moved to other archetypes */
    uint32_t arriving_count; /* rows moved from other archetypes */
    uint32_t created_count;
    uint32_t spawned_count;   /* rows of members of prefab instances */
    uint32_t appended_count;  /* arriving and created rows that fill no gap */
    uint32_t left_over_count; /* gaps that no created row fills */
    uint64_t first_gap;
    /* index of the edits being resolved, and their first group with this target */
    uint32_t led_edits, leader;
    bool is_reserved;
    bool is_emptied; /* all rows leave and none arrives, so gaps are not listed */
} quern__archetype_delta;

typedef QUERN__ARRAY(uint32_t) quern__slot_list;

/* Output of resolving, in addition to that in sequences, groups and edits. */
struct quern__resolved {
    QUERN__ARRAY(quern__archetype_delta) deltas;
    /* index of the delta by archetype index; valid only if that delta belongs to the archetype */
    QUERN__ARRAY(uint32_t) delta_of_archetype;
    uint64_t created_count, destroyed_count;
    uint64_t refused_count; /* entities with commands that exceed a limit of an entity or of the world */
    uint32_t further_drop_count; /* entries to reserve in drops for later stages */
    quern_result refused_result; /* error of the first refused entity, or QUERN_OK */
    /* Lists with capacity for the entries that applying appends: */
    QUERN__ARRAY(uintptr_t) gaps;       /* locations of gaps, ascending within each archetype */
    QUERN__ARRAY(uintptr_t) tails;      /* locations of the rows that fill the gaps of one archetype */
    quern__slot_list destroyed;         /* slots of destroyed entities, in the order of freeing */
    quern__slot_list freed;             /* slots freed by the previous sync point */
    QUERN__ARRAY(quern_entity) created; /* handles of created entities, in the order of creates */
    QUERN__ARRAY(quern__spawned) spawned;
};

void quern__resolved_release(quern__resolved *resolved, const quern_allocator *allocator);

/* Clears all results and keeps the memory. */
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

/* Resolves all edits. `resolved` must have been cleared. Also writes to `merged`. Reserves entries in drops for
 * the dropped commands, but no rows: see quern__resolved_reserve. On failure, nothing stays allocated except
 * empty archetypes. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_resolve(quern__resolved *resolved, quern__merged *merged,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     quern__drops *drops);

/* Finds the target, plan and values of an unresolved sequence. If the sequence exceeds a limit of an entity or
 * of the world, sets is_refused and succeeds. Errors: OUT_OF_MEMORY; the caller must then clear the tree. */
quern_result quern__sequence_resolve(quern__resolved *resolved, quern__storage *storage,
                                     quern__sequences *sequences, quern__sequence *sequence);

/* Returns the delta of an archetype, and adds one if there is none. Returns NULL if out of memory. */
quern__archetype_delta *quern__resolved_add(quern__resolved *resolved, const quern__storage *storage,
                                            quern__archetype *archetype);

/* Reserves rows, slots and lists according to the deltas and counts, and memory for spawned instances. On
 * failure, nothing stays reserved except new entity records. Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__resolved_reserve(quern__resolved *resolved, const quern__gathered *gathered,
                                     quern__storage *storage);

/* Returns the delta of an archetype, which must have one. */
static inline quern__archetype_delta *quern__resolved_delta(const quern__resolved *resolved,
                                                            const quern__archetype *archetype)
{
    return &resolved->deltas.items[resolved->delta_of_archetype.items[archetype->index]];
}

#endif
