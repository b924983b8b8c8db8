/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/conflict.h"

/* Returns the entry of a pair if its conflict may still be found or become stronger; otherwise NULL. */
static quern__conflict *find_open_pair(const quern__plan *plan, const quern__system *a,
                                       const quern__system *b)
{
    if (a == b || !quern__system_may_overlap(a, b)) return NULL;
    bool in_order = a->position < b->position;
    quern__conflict *conflict = quern__plan_conflict(plan, in_order ? a->position : b->position,
                                                     in_order ? b->position : a->position);
    bool is_open = conflict->kind < QUERN__CONFLICT_COMPONENT ||
                   (conflict->kind < QUERN__CONFLICT_LOOKUP && conflict->may_become_lookup);
    return is_open ? conflict : NULL;
}

static bool strengthen(quern__conflict *conflict, quern__conflict found)
{
    if (found.kind <= conflict->kind) return false;
    conflict->kind = found.kind;
    conflict->index = found.index;
    return true;
}

static quern_result add_partner(quern__plan *plan, quern__system *system, const quern__system *partner)
{
    if (!quern__array_reserve(quern__plan_allocator(plan), &system->partners, system->partners.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the partners of system '%s'",
                           system->name);
    system->partners.items[system->partners.count++] = partner->position;
    return QUERN_OK;
}

/* Detects the conflicts of a pair that do not depend on archetypes. Makes the systems partners if an
 * archetype could cause or strengthen a conflict. */
static quern_result detect_pair_conflict(quern__plan *plan, quern__system *a, quern__system *b)
{
    quern__conflict *conflict = find_open_pair(plan, a, b);
    if (conflict == NULL) return QUERN_OK;
    strengthen(conflict, quern__access_find_fixed_conflict(&a->access, &b->access));
    if (conflict->kind > QUERN__CONFLICT_COMPONENT || !quern__access_may_conflict(&a->access, &b->access))
        return QUERN_OK;
    conflict->may_become_lookup = quern__access_may_conflict_by_lookup(&a->access, &b->access);
    quern_result result = add_partner(plan, a, b);
    return result != QUERN_OK ? result : add_partner(plan, b, a);
}

quern_result quern__conflicts_start(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->order.count; i++) {
        plan->order.items[i]->checked_match_count = 0;
        plan->order.items[i]->partners.count = 0;
    }
    quern_result result = QUERN_OK;
    for (uint32_t later = 1; later < plan->order.count && result == QUERN_OK; later++)
        for (uint32_t earlier = 0; earlier < later && result == QUERN_OK; earlier++)
            result = detect_pair_conflict(plan, plan->order.items[earlier], plan->order.items[later]);
    return result;
}

/* Binary search: matches are sorted by archetype. */
static bool is_match(const quern__query *query, const quern__archetype *archetype)
{
    uint32_t low = 0, high = query->matches.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (query->matches.items[middle].archetype->index < archetype->index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < query->matches.count && query->matches.items[low].archetype == archetype;
}

/* Detects the conflicts that result from the system matching the archetype. Returns true if a conflict is
 * new or has become stronger. */
static bool detect_match_conflicts(quern__plan *plan, quern__system *system,
                                   const quern__archetype *archetype)
{
    bool found = false;
    for (uint32_t i = 0; i < system->partners.count; i++) {
        quern__system *other = plan->order.items[system->partners.items[i]];
        quern__conflict *conflict = find_open_pair(plan, system, other);
        if (conflict == NULL) continue;
        found |= strengthen(conflict,
                            quern__access_find_conflict_in(&system->access, &other->access,
                                                           system->position < other->position, archetype,
                                                           is_match(&other->query, archetype)));
    }
    return found;
}

bool quern__conflicts_extend(quern__plan *plan)
{
    bool found = false;
    for (uint32_t i = 0; i < plan->order.count; i++) {
        quern__system *system = plan->order.items[i];
        if (system->checked_removed_count != system->query.removed_count) system->checked_match_count = 0;
        system->checked_removed_count = system->query.removed_count;
        for (; system->checked_match_count < system->query.matches.count; system->checked_match_count++)
            found |= detect_match_conflicts(
                plan, system, system->query.matches.items[system->checked_match_count].archetype);
    }
    return found;
}
