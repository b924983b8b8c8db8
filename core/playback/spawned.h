/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_SPAWNED_H
#define QUERN_CORE_PLAYBACK_SPAWNED_H

/* Spawning by command at a sync point. No other command refers to members of a compact instance (spawn.h), so
 * compact instances and other commands do not affect each other. The stages skip these instances, except that
 * their members get handles among all creates. Consecutive instances of a prefab are spawned together, by the
 * same functions as immediate spawning (core/prefabs/prefab_instances.h). */

#include "core/playback/gather.h"
#include "core/prefabs/prefab_internal.h"

typedef struct quern__resolved quern__resolved;

/* Consecutive instances of one prefab. */
typedef struct quern__spawned {
    /* operation of the first instance; of all instances if it has overrides */
    const quern__operation *operation;
    const char *first_item;
    const quern__prefab_plan *plan; /* NULL: refused, since the world cannot have more archetypes */
    uint32_t count;
    uint32_t first_created;   /* index of the first root among the creates of all streams */
    uint32_t first_destroyed; /* index in the list of destroyed entities, if refused */
} quern__spawned;

/* Lists all instances, finds their archetypes, and adds their rows to deltas and counts. Errors: OUT_OF_MEMORY. */
quern_result quern__spawned_plan(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage);

/* Reserves links and names. Rows and slots must have been reserved. Errors: OUT_OF_MEMORY. */
quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage);

/* Spawns all instances. Creates must have their handles. */
void quern__spawned_put(const quern__resolved *resolved, quern__storage *storage);

#endif
