/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The children of many targets in one call: what goes down trees level by level asks for those of a whole
 * level. The arguments are checked once, and the waits for the links of the targets overlap. */

#include "core/storage/relate.h"
#include "core/world/world.h"

#include <quern/relation.h>

static bool may_look(const quern_world *world, const quern_entity *targets, uint32_t count,
                     quern_relation relation, quern__relation **out_relation)
{
    static const char function[] = "quern_entity_get_children_many";
    quern_result result = QUERN_OK;
    if (world == NULL) result = quern__fail_null(function, "world");
    if (result == QUERN_OK && count > 0 && targets == NULL) result = quern__fail_null(function, "targets");
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = quern__relation_check(&world->storage, relation, out_relation);
    if (result != QUERN_OK) quern__in_call(result, function);
    return result == QUERN_OK;
}

/* The links of a target, or NULL: it has no children. */
static inline const quern__kin *links_of(const quern__storage *storage, const quern__links *links,
                                         quern_entity target)
{
    const quern__kin *link = quern__links_find(links, quern_entity_index(target));
    if (link == NULL || link->first == QUERN__SLOT_NONE) return NULL;
    return quern__entities_find(&storage->entities, target) != NULL ? link : NULL;
}

uint64_t quern_entity_get_children_many(const quern_world *world, const quern_entity *targets,
                                        uint32_t count, quern_relation relation, quern_entity *out_children,
                                        uint32_t capacity, uint32_t *out_counts)
{
    quern__relation *known;
    if (out_counts != NULL && count > 0) memset(out_counts, 0, count * sizeof *out_counts);
    if (!may_look(world, targets, count, relation, &known)) return 0;
    const quern__storage *storage = &world->storage;
    const quern__links *links = &known->links;
    uint64_t total = 0;
    if (out_children == NULL) capacity = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__kin *ahead =
            i + 4 < count ? quern__links_find(links, quern_entity_index(targets[i + 4])) : NULL;
        if (ahead != NULL) __builtin_prefetch(ahead);
        const quern__kin *link = links_of(storage, links, targets[i]);
        if (link == NULL) continue;
        if (out_counts != NULL) out_counts[i] = link->count;
        uint32_t child = link->first;
        for (uint64_t k = total; k < capacity && child != QUERN__SLOT_NONE; k++) {
            out_children[k] = quern__entity_of_slot(storage, child);
            child = quern__links_at(links, child)->next;
        }
        total += link->count;
    }
    return total;
}
