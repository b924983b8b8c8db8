/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_NAMING_H
#define QUERN_CORE_RELATIONS_NAMING_H

/* Names of living entities (name_internal.h), under their parents in the built-in hierarchy. */

#include "core/relations/relate.h"
#include "core/storage/storage.h"

/* Returns the slot of the parent, or QUERN__SLOT_NONE. */
static inline uint32_t quern__parent_slot(const quern__storage *storage, uint32_t slot)
{
    const quern__relation *parent = storage->relations->parent;
    return parent != NULL ? quern__links_target(&parent->links, slot) : QUERN__SLOT_NONE;
}

/* Checks that a text is valid as a name. Errors: INVALID_ARGUMENT. */
quern_result quern__entity_check_name(const char *name);

/* Sets the name of a living entity, or removes it if `name` is NULL or empty. Errors: INVALID_ARGUMENT, SIBLING_NAME_TAKEN,
 * OUT_OF_MEMORY. */
quern_result quern__entity_set_name(quern__storage *storage, quern_entity entity, const char *name);

/* Returns whether the source could get the target, or lose its target (QUERN__SLOT_NONE), without a name collision.
 * Names are unique among the children of one parent; for relations other than the hierarchy, returns true. */
static inline bool quern__naming_allows_target(const quern__storage *storage,
                                               const quern__relation *relation, uint32_t source,
                                               uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return true;
    const quern__name *name = quern__names_of(storage->names, source);
    if (name == NULL) return true;
    const uint32_t owner =
        quern__names_find(storage->names, target, name->text, (uint32_t)strlen(name->text));
    return owner == QUERN__SLOT_NONE || owner == source;
}

/* Fails with SIBLING_NAME_TAKEN, because the name of the source collides among the children of the target. */
quern_result quern__naming_fail_taken(const quern__storage *storage, quern_entity source, uint32_t target);

/* Checks quern__naming_allows_target(). Errors: SIBLING_NAME_TAKEN. */
static inline quern_result quern__naming_check(const quern__storage *storage,
                                               const quern__relation *relation, quern_entity source,
                                               uint32_t target)
{
    if (quern__naming_allows_target(storage, relation, quern_entity_index(source), target)) return QUERN_OK;
    return quern__naming_fail_taken(storage, source, target);
}

/* Moves the name of the source to its new parent, after a change of target in the built-in hierarchy. No effect for
 * other relations. */
static inline void quern__naming_update_parent(quern__storage *storage, const quern__relation *relation,
                                               uint32_t source, uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return;
    quern__names_move(storage->names, source, target);
}

/* Replaces the target of the source (QUERN__SLOT_NONE: no target), inserts the source where
 * quern__links_insert_position says, and moves its name to the new parent if the relation is the hierarchy. The
 * source's level does not change. */
QUERN__ALWAYS_INLINE void quern__relink(quern__storage *storage, quern__relation *relation, uint32_t source,
                                        uint32_t target)
{
    quern__links *links = &relation->links;
    if (quern__links_at(links, source)->target != QUERN__SLOT_NONE) quern__links_unlink(links, source);
    if (target != QUERN__SLOT_NONE)
        quern__links_link(links, source, target,
                          quern__links_insert_position(links, target, relation->is_ordered));
    quern__naming_update_parent(storage, relation, source, target);
}

#endif
