/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATE_H
#define QUERN_CORE_RELATIONS_RELATE_H

/* Relating entities: links, the component's value and the tags of levels change together, for the
 * source and for all those below it whose level changes. Each call does all of it or, when it fails,
 * nothing: links change first, by a log (link_log.h); then all rows that move are reserved, which may fail and takes the
 * links back; then the rows move. */

#include "core/relations/relation_internal.h"
#include "core/storage/storage.h"

/* The source gets the target; both live and are not the same. Errors: CYCLE, NAME_TAKEN, OUT_OF_MEMORY, and those of
 * quern__storage_archetype. */
quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target);

/* The i-th source gets the i-th target, one after the other; all live, and none is its own target. What comes
 * out is as if each call of quern__relate found what those before had left, but for the order of rows: links
 * go first, and then each row moves once at most. All is done or nothing. Errors: as above; *out_failed is
 * which pair cannot be, or count where it is no matter of one. */
quern_result quern__relate_many(quern__storage *storage, quern__relation *relation,
                                const quern_entity *sources, const quern_entity *targets, uint32_t count,
                                uint32_t *out_failed);

/* The living source, which has a target, loses it. Errors: as above, but for CYCLE. */
quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source);

/* Ends a transaction of link_log.h in which no link has changed twice, but for links of several relations: moves the rows
 * of all entities in the log to the archetypes of their new targets and levels. Values of new targets are left to write.
 * The caller has begun the change (quern__leaving_begin). `result` is that of the transaction so far: when it, or the
 * reservation of rows, has failed, takes all links and names back and returns the error. Errors: OUT_OF_MEMORY, and those
 * of quern__storage_archetype. */
quern_result quern__relate_rows(quern__storage *storage, quern_result result);

/* The living entity of a slot. */
static inline quern_entity quern__entity_of_slot(const quern__storage *storage, uint32_t slot)
{
    return (quern_entity){(uint64_t)quern__entities_record(&storage->entities, slot)->handle_high << 32 |
                          slot};
}

/* The same, and null for QUERN__SLOT_NONE. */
static inline quern_entity quern__entity_of_link(const quern__storage *storage, uint32_t slot)
{
    return slot != QUERN__SLOT_NONE ? quern__entity_of_slot(storage, slot) : (quern_entity){0};
}

#endif
