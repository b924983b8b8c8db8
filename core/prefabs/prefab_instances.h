/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PREFABS_PREFAB_INSTANCES_H
#define QUERN_CORE_PREFABS_PREFAB_INSTANCES_H

/* Instances of a prefab, made at once or at a sync point. Who makes them finds the plan, makes room for
 * slots, rows and what is asked for here, and takes handles; then they are put into the world, and nothing
 * can fail. */

#include "core/prefabs/prefab_internal.h"

/* Some instances of one prefab. */
typedef struct quern__instances {
    quern__storage *storage;
    const quern__prefab *prefab;
    const quern__prefab_plan *plan;
    quern__relation *parent_relation; /* NULL: roots get no parent */
    quern_entity parent;
    const quern__prefab_override *overrides;
    uint32_t override_count;
    uint32_t count;
} quern__instances;

/* The slots that members are going to get: those of these handles, then slots that were never used, one
 * after the other. */
typedef struct quern__coming_slots {
    const quern_entity *handles;
    uint32_t handle_count;
    uint32_t first;
} quern__coming_slots;

/* Members whose handles and records stay in the first cache from one group to the next. */
enum { QUERN__INSTANCES_BLOCK = 1024 };

/* How many instances of a prefab are put together. */
static inline uint32_t quern__instances_per_block(const quern__prefab *prefab)
{
    const uint32_t count = QUERN__INSTANCES_BLOCK / prefab->members.count;
    return count > 0 ? count : 1;
}

/* Pages of links, and room for names; *name_count is how many others are promised room for names, and
 * counts these too then. Errors: OUT_OF_MEMORY. */
quern_result quern__instances_reserve_links(const quern__instances *it, const quern__coming_slots *slots,
                                            uint32_t *name_count);

/* Puts `count` instances, beginning with the one of this number, into rows that were reserved. handles: of
 * their members, instance after instance; taken already. */
void quern__instances_put(const quern__instances *it, uint32_t first, uint32_t count,
                          const quern_entity *handles);

#endif
