/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_LIMIT_H
#define QUERN_CORE_HISTORY_DELTA_LIMIT_H

/* The part of two snapshots that a delta compares. A *member* of a snapshot is an entity that the query of the limit
 * matches there. A limited delta leads from the members of `from` to those of `to`, so an entity that begins to match
 * is created, and one that no longer matches is destroyed.
 *
 * Membership follows from the archetype. So rows of archetypes that do not match are left out. A target, or a parent of
 * a name, may be a member or not, whatever the archetype of the source: these are looked up in sets of members by slot.
 * A link exists for the delta only if both its ends are members, and a name only if the parent is.
 *
 * A target can become a member, or stop being one, while the row of its source stays as it is. If any entity that is
 * alive in both snapshots does that (`crosses`), links and names are compared even where both snapshots share pages. */

#include "core/base/bitset.h"
#include "core/history/history_internal.h"
#include "core/query/query_internal.h"

#include <quern/history.h>

typedef struct quern__delta_limit {
    const quern_delta_def *def;
    const quern__relations *relations;
    quern__page members_page; /* contains the sets; 0: there are none */
    const uint64_t *from_members,
        *to_members; /* by slot; NULL: not needed, every entity counts as a member */
    bool crosses;
} quern__delta_limit;

/* Builds the sets if links or names may need them. Returns false if out of memory. quern__delta_limit_release must be
 * called in any case. */
bool quern__delta_limit_init(quern__delta_limit *limit, quern__history *history, const quern_delta_def *def,
                             const quern__snapshot *from, const quern__snapshot *to);
void quern__delta_limit_release(const quern__delta_limit *limit, quern__history *history);

/* Whether the rows of an archetype are members. */
static inline bool quern__limit_matches(const quern__delta_limit *limit,
                                        const quern__saved_archetype *saved)
{
    return limit->def->query == NULL ||
           quern__query_matches_set(limit->def->query, saved->component_indices, saved->component_count);
}

/* Whether the delta has changes of the component. */
static inline bool quern__limit_lists(const quern__delta_limit *limit, quern_component component)
{
    const quern_component *list = limit->def->components;
    if (list[0].bits == 0) return true;
    for (uint32_t i = 0; i < QUERN_MAX_DELTA_COMPONENTS && list[i].bits != 0; i++)
        if (list[i].bits == component.bits) return true;
    return false;
}

/* Whether the living entity in a slot of the snapshot of `members` is a member. */
static inline bool quern__limit_has(const uint64_t *members, uint32_t slot)
{
    return members == NULL || quern__bitset_has(members, slot);
}

#endif
