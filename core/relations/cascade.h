/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_CASCADE_H
#define QUERN_CORE_RELATIONS_CASCADE_H

/* Who ends with whom. A cascade begins empty, gets the entities that are to end by their slots, and is
 * closed: then it has all that end, and those that live on without the target they had.
 *
 *   slots[0 .. named_count)   those that were named, once each, in their order
 *   slots[named_count .. )    those that follow, as a walk from the named ones comes to them: entity by
 *                             entity, relation by relation, child by child, each appended when it is seen
 *                             first. Cycles end there, and no call calls itself, however deep a tree is
 *   loosened                  sources of relations that unrelate, whose target is in slots and they are not
 *
 * Up to there links are only looked at. */

#include "core/base/array.h"

#include <stdbool.h>

struct quern__relation;
struct quern__storage;

typedef struct quern__loosened {
    struct quern__relation *relation;
    uint32_t source;
} quern__loosened;

typedef struct quern__cascade {
    QUERN__ARRAY(uint32_t) slots;
    uint32_t named_count;
    QUERN__ARRAY(quern__loosened) loosened;
    QUERN__ARRAY(uint64_t) marks; /* a bit for each slot: it is in slots. All zero between cascades */
} quern__cascade;

void quern__cascade_release(quern__cascade *cascade, const quern_allocator *allocator);

/* Makes the cascade fit for all slots there are. Errors: OUT_OF_MEMORY. */
quern_result quern__cascade_begin(quern__cascade *cascade, const struct quern__storage *storage);

/* Names an entity; again, without effect. Errors: OUT_OF_MEMORY; then the cascade is to be ended. */
quern_result quern__cascade_name(quern__cascade *cascade, const struct quern__storage *storage,
                                 uint32_t slot);

/* Errors: TARGET_IN_USE, OUT_OF_MEMORY; then the cascade is to be ended. */
quern_result quern__cascade_close(quern__cascade *cascade, const struct quern__storage *storage);

/* Empties it. */
void quern__cascade_end(quern__cascade *cascade);

/* Lists a source that is to live on without its target. For cascades that end nobody: where all sources that
 * lose their target are named, too, each settles those below it that are not named. Errors:
 * OUT_OF_MEMORY; then the cascade is to be ended. */
quern_result quern__cascade_list_loosened(quern__cascade *cascade, const struct quern__storage *storage,
                                          struct quern__relation *relation, uint32_t source);

static inline bool quern__cascade_has(const quern__cascade *cascade, uint32_t slot)
{
    return (cascade->marks.items[slot / 64] >> slot % 64 & 1) != 0;
}

/* Takes the target from all loosened sources of a closed cascade and moves their rows, and those of all entities below
 * them whose level changes. The caller has begun the change (quern__leaving_begin). On failure nothing has changed.
 * Errors: NAME_TAKEN, OUT_OF_MEMORY, and those of quern__storage_archetype. */
quern_result quern__cascade_loosen(const quern__cascade *cascade, struct quern__storage *storage);

/* Takes links and names from all entities that end, once quern__cascade_loosen is done. Their rows are left to remove. */
void quern__cascade_unlink(const quern__cascade *cascade, struct quern__storage *storage);

#endif
