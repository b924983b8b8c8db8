/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_LOOKUP_H
#define QUERN_SCHED_SCHEDULE_LOOKUP_H

/* The components that a system declares to look up on entities that need not be in its views. */

#include "core/base/bitset.h"
#include "core/storage/archetype_filter.h"

#include <quern/schedule.h>

enum { QUERN__COMPONENT_WORDS = QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS) };

typedef struct quern__lookup {
    uint16_t index; /* component index */
    quern__archetype_filter limit;
    bool writes;
} quern__lookup;

typedef struct quern__lookups {
    /* Components that are looked up on any entity, for reading or writing. */
    uint64_t unlimited[QUERN__COMPONENT_WORDS];
    /* Components that are looked up only within a limit, for reading or writing. */
    uint64_t limited[QUERN__COMPONENT_WORDS];
    uint64_t written[QUERN__COMPONENT_WORDS]; /* components that are written by a lookup, limited or not */
    quern__lookup list[2 * QUERN_MAX_ACCESS]; /* read-only lookups, then lookups that write */
    uint32_t count;
} quern__lookups;

/* Initialises the lookups from a definition. Errors: INVALID_ARGUMENT, UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT. */
quern_result quern__lookups_init(quern__lookups *lookups, const quern_world *world,
                                 const quern_system_def *def);

/* Returns the lookup of the component, or NULL. */
const quern__lookup *quern__lookups_find(const quern__lookups *lookups, uint32_t component_index);

/* Returns whether the component may be looked up on entities of `archetype`. Precondition: the archetype has the
 * component. `archetype` is NULL to test for any archetype. */
static inline bool quern__lookups_include(const quern__lookups *lookups, uint32_t component_index,
                                          const quern__archetype *archetype)
{
    if (quern__bitset_has(lookups->unlimited, component_index)) return true;
    if (!quern__bitset_has(lookups->limited, component_index)) return false;
    return archetype == NULL ||
           quern__archetype_filter_passes(quern__lookups_find(lookups, component_index)->limit, archetype);
}

/* Returns the first component from index `first` on that both systems look up and at least one of them writes, unless
 * the limits of the two lookups exclude a common entity. Returns QUERN_MAX_COMPONENTS if there is none. */
uint32_t quern__lookups_find_common(const quern__lookups *a, const quern__lookups *b, uint32_t first);

/* Writes the declared lookups into `text`, for messages: "'position', 'velocity'", or "none". `written`:
 * only lookups that write. */
void quern__lookups_list(const quern__lookups *lookups, const quern_world *world, bool written, char *text,
                         size_t text_bytes);

#endif
