/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PREFABS_PREFAB_INSTANCES_H
#define QUERN_CORE_PREFABS_PREFAB_INSTANCES_H

/* Creation of a prefab's instances, immediately or at a sync point. The caller finds the plan, reserves slots,
 * rows, and the links and names declared here, and allocates the handles. Putting the instances into the world then
 * cannot fail. */

#include "core/prefabs/prefab_internal.h"

/* Instances of one prefab that are created together. */
typedef struct quern__instances {
    quern__storage *storage;
    const quern__prefab *prefab;
    const quern__prefab_plan *plan;
    quern__relation *parent_relation; /* NULL if the roots get no parent */
    quern_entity parent;
    const quern__prefab_override *overrides;
    uint32_t override_count;
    uint32_t count;
} quern__instances;

/* The slots that members will get: first those of `handles`, then consecutive slots that were never used, from
 * `first` on. */
typedef struct quern__new_slots {
    const quern_entity *handles;
    uint32_t handle_count;
    uint32_t first;
} quern__new_slots;

/* Number of members in a block. Their handles and records fit the L1 cache, and all groups of the block use them. */
enum { QUERN__INSTANCES_BLOCK = 1024 };

/* Returns the number of instances that are put into the world as one block. */
static inline uint32_t quern__instances_per_block(const quern__prefab *prefab)
{
    const uint32_t count = QUERN__INSTANCES_BLOCK / prefab->members.count;
    return count > 0 ? count : 1;
}

/* Reserves pages of links, and memory for names. *name_count is the number of names that are reserved already;
 * the names of these instances are added to it. Fails with OUT_OF_MEMORY. */
quern_result quern__instances_reserve_links(const quern__instances *it, const quern__new_slots *slots,
                                            uint32_t *name_count);

/* Puts `count` instances into reserved rows. first: number of the first of them, by which overrides find their
 * values. handles: allocated handles of their members, instance after instance. */
void quern__instances_put(const quern__instances *it, uint32_t first, uint32_t count,
                          const quern_entity *handles);

#endif
