/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_PREFAB_CAPTURE_H
#define QUERN_CORE_CALLS_PREFAB_CAPTURE_H

/* State of capturing a prefab. prefab_capture.c captures members and their values, prefab_links.c their links. */

#include "core/prefabs/prefab_internal.h"
#include "core/world/world_internal.h"

/* A prefab under construction. */
typedef struct quern__prefab_capture {
    quern_world *world;
    const quern_allocator *allocator;
    quern__prefab *prefab;
    QUERN__ARRAY(quern_entity) entities; /* by member */
    QUERN__ARRAY(uint32_t) depths;       /* levels below the root, by member */
    quern__map members;                  /* handle -> member */
    /* common to all members of a group, by group: */
    QUERN__ARRAY(quern__archetype *) archetypes;
    QUERN__ARRAY(uint32_t) group_depths;
} quern__prefab_capture;

static inline quern_result quern__prefab_capture_fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a prefab");
}

/* Returns the member number of an entity, or QUERN_NO_MEMBER. */
static inline uint32_t quern__prefab_capture_find_member(const quern__prefab_capture *it,
                                                         quern_entity entity)
{
    const uint64_t *member = entity.bits != 0 ? quern__map_find(&it->members, entity.bits) : NULL;
    return member != NULL ? (uint32_t)*member : QUERN_NO_MEMBER;
}

/* Captures the links of a prefab that has its members and groups: all links, the nodes of the hierarchy by member,
 * and the links that decide the levels of each group. Errors: OUT_OF_MEMORY. */
quern_result quern__prefab_capture_add_links(quern__prefab_capture *it);

#endif
