/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_NAMING_H
#define QUERN_CORE_RELATIONS_NAMING_H

/* Names of living entities (name_internal.h), under their parents in the built-in hierarchy. */

#include "core/relations/relate.h"
#include "core/storage/storage.h"

/* The slot of the parent, or QUERN__SLOT_NONE. */
static inline uint32_t quern__parent_slot(const quern__storage *storage, uint32_t slot)
{
    const quern__relation *parent = storage->relations->parent;
    return parent != NULL ? quern__links_target(&parent->links, slot) : QUERN__SLOT_NONE;
}

/* Whether a text may be a name. Errors: INVALID_ARGUMENT. */
quern_result quern__entity_check_name(const char *name);

/* A living entity gets a name, or loses it where that is NULL or empty. Errors: INVALID_ARGUMENT,
 * NAME_TAKEN, OUT_OF_MEMORY. */
quern_result quern__entity_set_name(quern__storage *storage, quern_entity entity, const char *name);

/* For who relates: whether the name of a source allows another target, or none (QUERN__SLOT_NONE). */
static inline bool quern__naming_is_free(const quern__storage *storage, const quern__relation *relation,
                                         uint32_t source, uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return true;
    const quern__name *name = quern__names_of(storage->names, source);
    if (name == NULL) return true;
    const uint32_t owner =
        quern__names_find(storage->names, target, name->text, (uint32_t)strlen(name->text));
    return owner == QUERN__SLOT_NONE || owner == source;
}

/* NAME_TAKEN, of a name that does not. */
quern_result quern__naming_fail_taken(const quern__storage *storage, quern_entity source, uint32_t target);

/* Both. Errors: NAME_TAKEN. */
static inline quern_result quern__naming_check(const quern__storage *storage,
                                               const quern__relation *relation, quern_entity source,
                                               uint32_t target)
{
    if (quern__naming_is_free(storage, relation, quern_entity_index(source), target)) return QUERN_OK;
    return quern__naming_fail_taken(storage, source, target);
}

/* The same when it is done. */
static inline void quern__naming_follow(quern__storage *storage, const quern__relation *relation,
                                        uint32_t source, uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return;
    quern__names_move(storage->names, source, target);
}

/* Gives the source this target instead of the one that it has (QUERN__SLOT_NONE: none), in the place of a new child,
 * and moves its name to the new parent. Its level stays. */
QUERN__ALWAYS_INLINE void quern__relink(quern__storage *storage, quern__relation *relation, uint32_t source,
                                        uint32_t target)
{
    quern__links *links = &relation->links;
    if (quern__links_at(links, source)->target != QUERN__SLOT_NONE) quern__links_unlink(links, source);
    if (target != QUERN__SLOT_NONE)
        quern__links_link(links, source, target,
                          quern__links_new_place(links, target, relation->is_ordered));
    quern__naming_follow(storage, relation, source, target);
}

#endif
