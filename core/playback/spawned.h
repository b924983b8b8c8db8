/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_SPAWNED_H
#define QUERN_CORE_PLAYBACK_SPAWNED_H

/* What spawning by command comes to at the sync point. Instances of which no other command knows a member
 * (spawn.h) depend on nothing, and nothing depends on them: all stages pass them by, but for the handles
 * that their members get among all creates. They are put into the world as those are that are spawned at
 * once (core/prefabs/prefab_instances.h), as many together as follow one another. */

#include "core/playback/gather.h"
#include "core/prefabs/prefab_internal.h"

typedef struct quern__resolved quern__resolved;

/* Some instances of one prefab, one after the other among all creates. */
typedef struct quern__spawned {
    const quern__operation *operation; /* of the first; of all where there are overrides */
    const char *first_item;
    const quern__prefab_plan *plan; /* NULL: refused, since the world can have no more archetypes */
    uint32_t count;
    uint32_t first_created;   /* of all creates: the first one's root */
    uint32_t first_destroyed; /* in the list of those, where they are refused */
} quern__spawned;

/* Lists all that is spawned, finds archetypes, and adds what comes to deltas and counts. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__spawned_plan(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage);

/* Room for links and names, when there is room for rows and slots. Errors: OUT_OF_MEMORY. */
quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage);

/* Puts all instances into the world; creates have their handles. */
void quern__spawned_put(const quern__resolved *resolved, quern__storage *storage);

#endif
