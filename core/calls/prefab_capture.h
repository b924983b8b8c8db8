/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_PREFAB_CAPTURE_H
#define QUERN_CORE_CALLS_PREFAB_CAPTURE_H

/* What the two halves of capturing share: members with their values (prefab_capture.c), and their links
 * (prefab_links.c). */

#include "core/prefabs/prefab_internal.h"
#include "core/world/world_internal.h"

/* A prefab that is being made. */
typedef struct quern__capture {
    quern_world *world;
    const quern_allocator *allocator;
    quern__prefab *prefab;
    QUERN__ARRAY(quern_entity) entities; /* by member */
    QUERN__ARRAY(uint32_t) depths;       /* below the root */
    quern__map members;                  /* handle -> member */
    /* by group: what its members have in common */
    QUERN__ARRAY(quern__archetype *) archetypes;
    QUERN__ARRAY(uint32_t) group_depths;
} quern__capture;

static inline quern_result quern__capture_fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a prefab");
}

/* QUERN_NO_MEMBER: it is none. */
static inline uint32_t quern__capture_member_of(const quern__capture *it, quern_entity entity)
{
    const uint64_t *member = entity.bits != 0 ? quern__map_find(&it->members, entity.bits) : NULL;
    return member != NULL ? (uint32_t)*member : QUERN_NO_MEMBER;
}

/* Of a prefab with members and groups: its links, those of the hierarchy once more by member, and which
 * links decide about the levels of which group. Errors: OUT_OF_MEMORY. */
quern_result quern__capture_links(quern__capture *it);

#endif
