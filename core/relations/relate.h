/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATE_H
#define QUERN_CORE_RELATIONS_RELATE_H

/* Relating entities: links, the component's value and the tags of levels change together, for the
 * source and for all those below it whose level changes. Each call does all of it or, when it fails,
 * nothing: who moves where is listed first, and room made; then nothing can fail. */

#include "core/names/name_internal.h"
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

/* ------------------------------------------------------------------------------- lists of changes
 *
 * What relate.c does for its own calls, and cascade.c for those that lose their target: begin, list, reserve,
 * apply. Links are as before until all is reserved; who lists an entity then links or unlinks it, and
 * applies. The list is the storage's, and holds from begin to the next begin. */

void quern__changes_begin(quern__storage *storage);

/* Lists an entity that comes to a level of the relation, and all below it whose level follows from that, but
 * not those that a cascade, if there is one, ends. Where a level stays as it is, so do all below it. Within
 * one relation nobody may be listed twice. Errors: OUT_OF_MEMORY. */
quern_result quern__changes_list(quern__storage *storage, quern__relation *relation, uint32_t slot,
                                 bool has_target, uint32_t level, const quern__cascade *cascade);

/* Plans and rows for all that are listed. Errors: OUT_OF_MEMORY, and those of quern__storage_archetype; then
 * nothing is held. */
quern_result quern__changes_reserve(quern__storage *storage);

/* Moves the rows, and notes the levels in the links. Targets that are new are still to be written. */
void quern__changes_apply(quern__storage *storage);

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
