/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_CASCADE_H
#define QUERN_CORE_RELATIONS_CASCADE_H

/* The set of entities that are destroyed together. A cascade begins empty. The caller adds the slots of the entities
 * to destroy and closes the cascade. A closed cascade lists all entities to destroy, and the surviving sources that
 * lose their target.
 *
 *   slots[0 .. requested_count)   the entities that the caller added, once each, in this order
 *   slots[requested_count .. )    the entities destroyed because their target is. A breadth-first search from the
 *                                 requested entities appends them: entity by entity, relation by relation, source by
 *                                 source, each when it is first seen. The search ends on cycles, and it does not
 *                                 recurse, so the depth of a tree is not limited by the call stack
 *   detached                      surviving sources with a target in slots, in a relation that unrelates them; if
 *                                 sources may have several targets, once for each such target
 *
 * Adding and closing only read links. */

#include "core/base/array.h"

#include <stdbool.h>

struct quern__relation;
struct quern__storage;

typedef struct quern__detached_source {
    struct quern__relation *relation;
    uint32_t source;
    uint32_t target; /* the lost target; QUERN__SLOT_NONE: all targets */
} quern__detached_source;

typedef struct quern__cascade {
    QUERN__ARRAY(uint32_t) slots;
    uint32_t requested_count;
    QUERN__ARRAY(quern__detached_source) detached;
    /* One bit per slot of the storage, set if `slots` contains it; all zero between cascades. */
    QUERN__ARRAY(uint64_t) marks;
} quern__cascade;

void quern__cascade_release(quern__cascade *cascade, const quern_allocator *allocator);

/* Reserves a mark for every slot of the storage. Errors: OUT_OF_MEMORY. */
quern_result quern__cascade_begin(quern__cascade *cascade, const struct quern__storage *storage);

/* Adds an entity to destroy. Adding it again has no effect. Errors: OUT_OF_MEMORY; the caller then ends the
 * cascade. */
quern_result quern__cascade_add(quern__cascade *cascade, const struct quern__storage *storage,
                                uint32_t slot);

/* Appends all entities that are destroyed with the requested ones, and lists the detached sources. Errors:
 * TARGET_IN_USE, OUT_OF_MEMORY; the caller then ends the cascade. */
quern_result quern__cascade_close(quern__cascade *cascade, const struct quern__storage *storage);

/* Empties the cascade and clears its marks. */
void quern__cascade_end(quern__cascade *cascade);

/* Lists a source that survives and loses this target (QUERN__SLOT_NONE: all its targets). Callers outside of cascade.c
 * use it for cascades that destroy no entity. If they also add all sources that lose their target to `slots`, detaching one of these sources updates only
 * the entities below it that are not in `slots`. Errors: OUT_OF_MEMORY; the caller then ends the cascade. */
quern_result quern__cascade_list_detached(quern__cascade *cascade, const struct quern__storage *storage,
                                          struct quern__relation *relation, uint32_t source,
                                          uint32_t target);

static inline bool quern__cascade_has(const quern__cascade *cascade, uint32_t slot)
{
    return (cascade->marks.items[slot / 64] >> slot % 64 & 1) != 0;
}

/* Removes the target of every detached source of a closed cascade. Moves the rows of these sources and of all
 * entities below them with a changed level. Precondition: the caller has called quern__leaving_begin. On failure
 * nothing has changed. Errors: SIBLING_NAME_TAKEN, OUT_OF_MEMORY, and those of quern__storage_ensure_archetype. */
quern_result quern__cascade_detach(const quern__cascade *cascade, struct quern__storage *storage);

/* Removes the links and names of all entities in `slots`. Precondition: quern__cascade_detach has succeeded. The
 * caller removes the rows. */
void quern__cascade_unlink(const quern__cascade *cascade, struct quern__storage *storage);

#endif
