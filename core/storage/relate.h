/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_RELATE_H
#define QUERN_CORE_STORAGE_RELATE_H

/* Relating single entities: links, the component's value and the tags of levels change together, for the
 * source and for all those below it whose level changes. Each call does all of it or, when it fails,
 * nothing: who moves where is listed first, and room made; then nothing can fail. */

#include "core/storage/storage.h"

/* The source gets the target; both live and are not the same. Errors: CYCLE, OUT_OF_MEMORY, and those of
 * quern__storage_archetype. */
quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target);

/* The living source, which has a target, loses it. Errors: as above, but for CYCLE. */
quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source);

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
