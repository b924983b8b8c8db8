/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_MOVE_PLAN_H
#define QUERN_CORE_STORAGE_MOVE_PLAN_H

/* Move plans: how a row comes from one archetype to another. Each archetype caches those that lead away
 * from it: under the target's number, and, where the two sets differ by one component, under that component
 * too. A plan is worked out once, so that a move looks at offsets and sizes and never at sets. */

#include "core/storage/storage.h"

/* One value of a row, on its way from one archetype to another. */
typedef struct quern__move_step {
    const quern__type *type;      /* NULL: plain bytes */
    uint16_t source_offset_bytes; /* of the column; unused when the value is added */
    uint16_t target_offset_bytes; /* unused when it is removed */
    uint16_t size_bytes;
} quern__move_step;

/* steps[0 .. shared_count)                           carry a value over
 * steps[shared_count .. shared_count + added_count)  make a new one
 * the remaining removed_count steps                  destroy one
 *
 * The plan stands in its source's map, and in the list of those that lead to its target. */
typedef struct quern__move_plan {
    quern__archetype *source, *target;
    struct quern__move_plan *next_incoming, **place_incoming; /* in the target's list */
    quern__copy_word *carry;      /* does what the shared steps do; NULL unless is_plain */
    quern__column_position added; /* of the first added step; size 0 when there is none */
    bool is_plain;                /* no step has a type, or is larger than QUERN__COPY_MAX_BYTES */
    uint32_t shared_count, added_count, removed_count;
    quern__move_step steps[];
} quern__move_plan;

/* The edge of a plan that is_plain. */
static inline quern__edge quern__plan_edge(const quern__move_plan *plan, uint64_t key)
{
    return (quern__edge){.key = key,
                         .target = plan->target,
                         .carry = plan->carry,
                         .target_number = plan->target->number,
                         .added = plan->added};
}

/* The plan between two archetypes. Errors: OUT_OF_MEMORY. */
quern_result quern__plan_between(quern__storage *storage, quern__archetype *source,
                                 quern__archetype *target, const quern__move_plan **out_plan);

/* The plan to the archetype with one component more, or less where the source has it; the archetype is made
 * where there is none. Errors: as quern__plan_between and quern__storage_ensure_archetype. */
quern_result quern__plan_add_or_remove(quern__storage *storage, quern__archetype *source,
                                       uint32_t component_index, const quern__move_plan **out_plan);

/* An edge that was taken before, for a key of quern__edge_key; NULL where there is none, where its plan is
 * not plain, or its source not quick. Brings the edge to its place in source->edges. */
const quern__edge *quern__plan_find_edge(const quern__storage *storage, quern__archetype *source,
                                         uint64_t key);

/* Forgets all plans that lead away from an archetype; they are made again when they are needed. */
void quern__plans_release(quern__storage *storage, quern__archetype *archetype);

#endif
