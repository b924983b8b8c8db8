/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_MOVE_PLAN_H
#define QUERN_CORE_STORAGE_MOVE_PLAN_H

/* Move plans: the steps that move a row from one archetype to another. Each archetype caches the plans that lead away
 * from it: by the target's number, and also by component if the two sets differ by one component. A plan is compiled
 * once, so that a move reads offsets and sizes, and no component sets. */

#include "core/storage/storage.h"

/* What happens to one value of a row that moves to another archetype. */
typedef struct quern__move_step {
    const quern__type *type;      /* NULL: the type has no hooks */
    uint16_t source_offset_bytes; /* of the column in a chunk of the source; 0 if the value is added */
    uint16_t target_offset_bytes; /* of the column in a chunk of the target; 0 if the value is removed */
    uint16_t size_bytes;          /* of one value */
} quern__move_step;

/* A plan for all moves from one archetype to another.
 *
 *   steps[0 .. shared_count)                           move a value
 *   steps[shared_count .. shared_count + added_count)  create a value
 *   the remaining removed_count steps                  destroy a value
 *
 * A plan is in the map `plans` of its source, and in the list `incoming` of its target. */
typedef struct quern__move_plan {
    quern__archetype *source, *target;
    struct quern__move_plan *next_incoming,
        **place_incoming; /* links in the target's list of incoming plans */
    /* copy plan of the shared and the removed steps (see copy.h); NULL unless is_plain */
    quern__copy_word *carry;
    quern__column_position added; /* column of the first added step; size 0 if there is none */
    bool is_plain;                /* no step has a type or a value larger than QUERN__COPY_MAX_BYTES */
    uint32_t shared_count, added_count, removed_count;
    quern__move_step steps[];
} quern__move_plan;

/* Whether a plan that adds a component also adds components that it requires. */
static inline bool quern__plan_adds_required(const quern__move_plan *plan)
{
    return plan->target->component_count > plan->source->component_count + 1;
}

/* Returns the edge of a plan. Precondition: plan->is_plain. */
static inline quern__edge quern__plan_edge(const quern__move_plan *plan, uint64_t key)
{
    return (quern__edge){.key = key,
                         .target = plan->target,
                         .carry = plan->carry,
                         .target_number = plan->target->number,
                         .added = plan->added};
}

/* Finds or compiles the plan from `source` to `target`. Errors: OUT_OF_MEMORY. */
quern_result quern__plan_between(quern__storage *storage, quern__archetype *source,
                                 quern__archetype *target, const quern__move_plan **out_plan);

/* Finds or compiles the plan that removes one component if the source has it, and otherwise adds it, with the components
 * that it requires. Creates the target archetype if it does not exist. Errors: those of quern__plan_between and
 * quern__storage_ensure_archetype; COMPONENT_REQUIRED. */
quern_result quern__plan_add_or_remove(quern__storage *storage, quern__archetype *source,
                                       uint32_t component_index, const quern__move_plan **out_plan);

/* Returns the edge for a key of quern__edge_key if its plan was compiled before, and caches the edge in
 * source->edges, with QUERN__EDGE_NEEDS_ROOM if the source lacks has_fast_leave. Returns NULL if there is no such plan,
 * or if plan or source are not plain. */
const quern__edge *quern__plan_find_edge(const quern__storage *storage, quern__archetype *source,
                                         uint64_t key);

/* Releases all plans and edges that lead away from an archetype. They are compiled again when needed. */
void quern__plans_release(quern__storage *storage, quern__archetype *archetype);

#endif
