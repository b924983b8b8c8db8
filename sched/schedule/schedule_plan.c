/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/schedule_plan.h"

/* Keys of maps are not 0. */
static uint64_t key_of(const char *name)
{
    const uint64_t hash = quern__hash_string(name);
    return hash != 0 ? hash : 1;
}

quern__system *quern__plan_find_system(const quern__plan *plan, const char *name)
{
    const uint64_t *number = quern__map_find(&plan->names, key_of(name));
    uint32_t next = number != NULL ? (uint32_t)*number : 0;
    while (next != 0) {
        quern__system *system = plan->systems.items[next - 1];
        if (strcmp(system->name, name) == 0) return system;
        next = system->next_same_hash;
    }
    return NULL;
}

bool quern__plan_reserve_system(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    return quern__array_reserve(allocator, &plan->systems, plan->systems.count + 1) &&
           quern__map_reserve(&plan->names, allocator, plan->names.count + 1);
}

void quern__plan_add_system(quern__plan *plan, quern__system *system)
{
    const uint64_t key = key_of(system->name);
    uint64_t *number = quern__map_find(&plan->names, key);
    system->plan = plan;
    system->index = plan->systems.count;
    system->next_same_hash = number != NULL ? (uint32_t)*number : 0;
    plan->systems.items[plan->systems.count++] = system;
    if (number != NULL)
        *number = plan->systems.count;
    else
        quern__map_put(&plan->names, key, plan->systems.count);
}

void quern__plan_release_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    for (uint32_t i = 0; i < plan->systems.count; i++)
        quern__system_destroy(plan->systems.items[i]);
    quern__array_release(allocator, &plan->systems);
    quern__map_release(&plan->names, allocator);
}
