/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "core/query/query_internal.h"

/* Conflicts: of two systems (access.h), and the pairs of all systems that must keep their order, found row by row
 * (compile.h). */

/* ------------------------------------------------------------------------------------- two systems */

/* Returns whether the limits exclude a common entity: one requires a component that the other forbids. */
static bool exclude_each_other(quern__archetype_filter a, quern__archetype_filter b)
{
    return (a.with != QUERN__FILTER_NONE && a.with == b.without) ||
           (b.with != QUERN__FILTER_NONE && b.with == a.without);
}

/* Returns the first component from index `first` on that both systems look up and at least one of them writes, unless
 * the limits of the two lookups exclude a common entity. Returns QUERN_MAX_COMPONENTS if there is none. */
static uint32_t lookups_find_common(const quern__lookups *a, const quern__lookups *b, uint32_t first)
{
    uint32_t found = QUERN_MAX_COMPONENTS;
    for (uint32_t i = 0; i < a->count; i++) {
        const quern__lookup *mine = &a->list[i];
        if (mine->index < first || mine->index >= found) continue;
        const quern__lookup *other = quern__lookups_find(b, mine->index);
        if (other != NULL && (mine->writes || other->writes) &&
            !exclude_each_other(mine->limit, other->limit))
            found = mine->index;
    }
    return found;
}

/* Returns whether the limit excludes all rows that the terms match: the terms exclude its `with` component,
 * or require its `without` component. */
static bool excludes_all(quern__archetype_filter limit, const quern_term *terms, uint32_t term_count)
{
    for (uint32_t i = 0; i < term_count; i++) {
        if (terms[i].path != QUERN_PATH_ROW) continue;
        const uint32_t index = quern__component_index(terms[i].component);
        if (terms[i].match == QUERN_MATCH_NONE && index == limit.with) return true;
        if (terms[i].match == QUERN_MATCH_ALL && index == limit.without) return true;
    }
    return false;
}

uint32_t quern__access_self_conflict(const quern__access *access, const quern_term *terms,
                                     uint32_t term_count)
{
    for (uint32_t i = 0; i < access->lookups.count; i++) {
        const quern__lookup *lookup = &access->lookups.list[i];
        if (quern__bitset_has(access->writes, lookup->index) &&
            !excludes_all(lookup->limit, terms, term_count))
            return lookup->index;
    }
    return QUERN_MAX_COMPONENTS;
}

/* Returns whether a further query reads or writes the component on the row itself. writes: whether it must write it. */
static bool query_uses(const quern__query *query, uint32_t index, bool writes)
{
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_term *term = &query->terms[i];
        if (quern__component_index(term->component) != index) continue;
        if (writes ? term->access == QUERN_ACCESS_WRITE
                   : quern__access_reads_row(&query->storage->components, term))
            return true;
    }
    return false;
}

bool quern__access_queries_reach(const quern__access *access, uint32_t index, bool writes,
                                 const quern__archetype *archetype)
{
    if (!quern__bitset_has(writes ? access->query_writes : access->query_reads, index)) return false;
    for (uint32_t i = 0; i < access->query_count; i++) {
        const quern__query *query = &access->queries[i];
        if (query_uses(query, index, writes) &&
            (archetype == NULL || quern__query_matches(query, archetype)))
            return true;
    }
    return false;
}

uint32_t quern__access_query_conflict(const quern__access *access, const quern__query *query,
                                      uint32_t *out_number)
{
    for (uint32_t i = 0; i < access->query_count; i++) {
        const quern__query *other = &access->queries[i];
        const bool may_meet = !quern__query_excludes(query, other);
        *out_number = i;
        for (uint32_t k = 0; k < other->term_count; k++) {
            const quern_term *term = &other->terms[k];
            const uint32_t index = quern__component_index(term->component);
            const bool is_read = term->path != QUERN_PATH_ROW ||
                                 (may_meet && quern__access_reads_row(&query->storage->components, term));
            if (is_read && quern__bitset_has(access->writes, index)) return index;
        }
    }
    return QUERN_MAX_COMPONENTS;
}

/* Returns whether one system may reach an entity by a further query that the other reaches by the lookup, to access the
 * component of the lookup, and one of them writes it. */
static bool query_meets_lookup(const quern__access *a, const quern__lookup *lookup)
{
    for (uint32_t i = 0; i < a->query_count; i++) {
        const quern__query *query = &a->queries[i];
        if (query_uses(query, lookup->index, !lookup->writes) &&
            !excludes_all(lookup->limit, query->terms, query->term_count))
            return true;
    }
    return false;
}

/* Returns whether a further query of `a` writes the component on an entity on which a further query of `b` reads or writes
 * it. */
static bool queries_meet(const quern__access *a, const quern__access *b, uint32_t index)
{
    for (uint32_t i = 0; i < a->query_count; i++) {
        if (!query_uses(&a->queries[i], index, true)) continue;
        for (uint32_t k = 0; k < b->query_count; k++)
            if (query_uses(&b->queries[k], index, false) &&
                !quern__query_excludes(&a->queries[i], &b->queries[k]))
                return true;
    }
    return false;
}

/* Returns the first component from index `first` on that `a` writes elsewhere, by a lookup or a further query, and `b`
 * reads by an up-term or accesses by a further query, possibly on the same entity; or that `a` looks up and `b` writes by a
 * further query. Returns QUERN_MAX_COMPONENTS if there is none. */
static uint32_t find_conflict_elsewhere(const quern__access *a, const quern__access *b, uint32_t first)
{
    uint32_t found = QUERN_MAX_COMPONENTS;
    for (uint32_t i = 0; i < a->lookups.count; i++) {
        const quern__lookup *lookup = &a->lookups.list[i];
        if (lookup->index < first || lookup->index >= found) continue;
        const bool is_upward = quern__bitset_has(b->upward_by_others, lookup->index) ||
                               quern__bitset_has(b->upward_by_levels, lookup->index);
        if ((lookup->writes && is_upward) || query_meets_lookup(b, lookup)) found = lookup->index;
    }
    for (uint32_t word = first / 64; word < QUERN__COMPONENT_WORDS && a->query_count > 0; word++) {
        uint64_t left = a->query_writes[word] &
                        (b->query_reads[word] | b->upward_by_others[word] | b->upward_by_levels[word]);
        while (left != 0) {
            const uint32_t index = 64 * word + quern__bitset_pop_lowest(&left);
            if (index < first || index >= found) continue;
            if (quern__bitset_has(b->upward_by_others, index) ||
                quern__bitset_has(b->upward_by_levels, index) || queries_meet(a, b, index))
                found = index;
        }
    }
    return found;
}

uint32_t quern__access_find_common_lookup(const quern__access *a, const quern__access *b, uint32_t first)
{
    const uint32_t in_lookups = lookups_find_common(&a->lookups, &b->lookups, first);
    const uint32_t by_a = find_conflict_elsewhere(a, b, first), by_b = find_conflict_elsewhere(b, a, first);
    const uint32_t by_others = by_a < by_b ? by_a : by_b;
    return in_lookups < by_others ? in_lookups : by_others;
}

/* Returns the conflict that does not depend on archetypes: over a resource, or between lookups (or a lookup and an
 * up-term) of both systems. */
static quern__conflict access_find_fixed_conflict(const quern__access *a, const quern__access *b)
{
    for (uint32_t i = 0; i < a->resource_count; i++) {
        quern_access other = quern__access_to_resource(b, a->resources[i].index);
        if (other == QUERN_ACCESS_NONE ||
            (other == QUERN_ACCESS_READ && a->resources[i].access == QUERN_ACCESS_READ))
            continue;
        return (quern__conflict){.kind = QUERN__CONFLICT_RESOURCE, .index = a->resources[i].index};
    }
    const uint32_t elsewhere = quern__access_find_common_lookup(a, b, 0);
    if (elsewhere < QUERN_MAX_COMPONENTS)
        return (quern__conflict){.kind = QUERN__CONFLICT_LOOKUP, .index = (uint16_t)elsewhere};
    return (quern__conflict){.kind = QUERN__NO_CONFLICT};
}

/* Returns whether the terms of one system write a component that the terms of the other read or write. */
static bool access_terms_may_conflict(const quern__access *a, const quern__access *b)
{
    uint64_t both = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        both |= (a->writes[word] & b->reads[word]) | (b->writes[word] & a->reads[word]);
    return both != 0;
}

/* Returns whether `b` may read a component of other entities that `a` writes through its terms, or write
 * one that `a` reads. */
static bool may_conflict_elsewhere(const quern__access *a, const quern__access *b)
{
    uint64_t both = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        both |= (a->writes[word] &
                 (b->upward_by_others[word] | b->upward_by_levels[word] | b->lookups.unlimited[word] |
                  b->lookups.limited[word] | b->query_reads[word])) |
                (a->reads[word] & (b->lookups.written[word] | b->query_writes[word]));
    return both != 0;
}

quern__conflict_kind quern__access_lookup_conflict(const quern__access *a, const quern__access *b,
                                                   uint32_t index, bool a_is_first,
                                                   const quern__archetype *archetype)
{
    const bool is_written = quern__bitset_has(a->writes, index);
    const bool is_met =
        is_written || (quern__bitset_has(a->reads, index) && quern__bitset_has(b->lookups.written, index));
    if (is_met && quern__lookups_include(&b->lookups, index, archetype)) return QUERN__CONFLICT_LOOKUP;
    if ((is_written || quern__bitset_has(a->reads, index)) &&
        quern__access_queries_reach(b, index, !is_written, archetype))
        return QUERN__CONFLICT_LOOKUP;
    if (!is_written) return QUERN__NO_CONFLICT;
    if (quern__bitset_has(b->upward_by_others, index)) return QUERN__CONFLICT_LOOKUP;
    if (!quern__bitset_has(b->upward_by_levels, index)) return QUERN__NO_CONFLICT;
    return a_is_first && quern_relation_equal(a->levels, b->levels) ? QUERN__CONFLICT_LEVEL
                                                                    : QUERN__CONFLICT_LOOKUP;
}

static bool terms_conflict_over(const quern__access *a, const quern__access *b, uint32_t index)
{
    return (quern__bitset_has(a->writes, index) && quern__bitset_has(b->reads, index)) ||
           (quern__bitset_has(b->writes, index) && quern__bitset_has(a->reads, index));
}

/* Returns whether the terms of one system write a component of the archetype that the terms of the other read or
 * write. */
static bool access_terms_conflict_in(const quern__access *a, const quern__access *b,
                                     const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->component_count; i++)
        if (terms_conflict_over(a, b, archetype->component_indices[i])) return true;
    return false;
}

/* Returns the strongest conflict that results from `a` matching `archetype`: between the terms of `a` and the lookups
 * and up-terms of `b`, and, if `b_matches`, between the terms of both systems. */
static quern__conflict access_find_conflict_in(const quern__access *a, const quern__access *b,
                                               bool a_is_first, const quern__archetype *archetype,
                                               bool b_matches)
{
    quern__conflict strongest = {.kind = QUERN__NO_CONFLICT};
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint16_t index = archetype->component_indices[i];
        quern__conflict_kind kind = quern__access_lookup_conflict(a, b, index, a_is_first, archetype);
        if (kind == QUERN__NO_CONFLICT && b_matches && terms_conflict_over(a, b, index))
            kind = QUERN__CONFLICT_COMPONENT;
        if (kind > strongest.kind) strongest = (quern__conflict){.kind = (uint8_t)kind, .index = index};
    }
    return strongest;
}

/* Returns the strongest conflict, or the strongest local one, that some archetype could cause between `a` and `b`,
 * which is later, over the first such component. */
static quern__conflict access_find_possible_conflict(const quern__access *a, const quern__access *b,
                                                     bool is_local)
{
    quern__conflict strongest = {.kind = QUERN__NO_CONFLICT};
    const quern__conflict_kind most = is_local ? QUERN__CONFLICT_LEVEL : QUERN__CONFLICT_LOOKUP;
    for (uint32_t i = 0; i < QUERN_MAX_COMPONENTS; i++) {
        const quern__conflict_kind kinds[] = {terms_conflict_over(a, b, i) ? QUERN__CONFLICT_COMPONENT
                                                                           : QUERN__NO_CONFLICT,
                                              quern__access_lookup_conflict(a, b, i, true, NULL),
                                              quern__access_lookup_conflict(b, a, i, false, NULL)};
        for (uint32_t k = 0; k < QUERN__COUNT_OF(kinds); k++)
            if (kinds[k] > strongest.kind && kinds[k] <= most)
                strongest = (quern__conflict){.kind = (uint8_t)kinds[k], .index = (uint16_t)i};
    }
    return strongest;
}

/* -------------------------------------------------------------------------------------------------- index */

enum {
    LIMIT = QUERN_MAX_COMPONENTS, /* of indices of components and of resources */
    NUMBER_COUNT = QUERN__USE_KIND_COUNT * LIMIT
};

_Static_assert(QUERN_MAX_RESOURCES <= LIMIT, "components and resources have the same limit");
_Static_assert(NUMBER_COUNT <= UINT16_MAX, "numbers of sets have 16 bits");

/* Empties the index and prepares it for the positions from 0 to system_count - 1. Returns false if out of memory. */
static bool access_index_reset(quern__access_index *index, const quern_allocator *allocator,
                               uint32_t system_count)
{
    index->numbers.count = index->words.count = 0;
    index->words_per_set = QUERN__BITSET_WORDS(system_count);
    if (!quern__array_reserve(allocator, &index->numbers, NUMBER_COUNT)) return false;
    memset(index->numbers.items, 0, NUMBER_COUNT * sizeof *index->numbers.items);
    index->numbers.count = NUMBER_COUNT;
    return true;
}

/* Adds all uses of the system at a position. Returns false if out of memory. */
static bool access_index_add(quern__access_index *index, const quern_allocator *allocator,
                             uint32_t position, const quern__access *access)
{
    const uint32_t words_per_set = index->words_per_set;
    for (uint32_t i = 0; i < access->uses.count; i++) {
        const quern__access_use use = access->uses.items[i];
        uint16_t *number = &index->numbers.items[use.kind * LIMIT + use.index];
        if (*number == 0) {
            if (!quern__array_reserve(allocator, &index->words, index->words.count + words_per_set))
                return false;
            memset(index->words.items + index->words.count, 0, words_per_set * sizeof *index->words.items);
            index->words.count += words_per_set;
            *number = (uint16_t)(index->words.count / words_per_set);
        }
        quern__bitset_add(index->words.items + (size_t)(*number - 1) * words_per_set, position);
    }
    return true;
}

/* Returns the positions of the systems that use the component or resource in this way, or NULL if there are none. */
static const uint64_t *access_index_find(const quern__access_index *index, quern__use_kind kind,
                                         uint32_t of_index)
{
    const uint32_t number = index->numbers.items[(uint32_t)kind * LIMIT + of_index];
    return number > 0 ? index->words.items + (size_t)(number - 1) * index->words_per_set : NULL;
}

/* ------------------------------------------------------------------------------------- all pairs */

/* How two systems could conflict. */
typedef enum partner_kind {
    BY_TERMS,     /* terms of both */
    BY_ELSEWHERE, /* terms of one, lookups or up-terms of the other */
    BY_LOOKUPS,   /* lookups of one, lookups or up-terms of the other */
    BY_RESOURCES,
    PARTNER_KIND_COUNT
} partner_kind;

/* For each kind of use: with which uses of the same component or resource by other systems it can conflict. */
static const struct {
    quern__use_kind other;
    partner_kind kind;
} meetings[QUERN__USE_KIND_COUNT][2] = {
    [QUERN__USE_TERM] = {{QUERN__USE_TERM_WRITE, BY_TERMS}, {QUERN__USE_LOOKUP_WRITE, BY_ELSEWHERE}},
    [QUERN__USE_TERM_WRITE] = {{QUERN__USE_TERM, BY_TERMS}, {QUERN__USE_LOOKUP, BY_ELSEWHERE}},
    [QUERN__USE_LOOKUP] = {{QUERN__USE_TERM_WRITE, BY_ELSEWHERE}, {QUERN__USE_LOOKUP_WRITE, BY_LOOKUPS}},
    [QUERN__USE_LOOKUP_WRITE] = {{QUERN__USE_TERM, BY_ELSEWHERE}, {QUERN__USE_LOOKUP, BY_LOOKUPS}},
    [QUERN__USE_RESOURCE] = {{QUERN__USE_RESOURCE_WRITE, BY_RESOURCES},
                             {QUERN__USE_RESOURCE_WRITE, BY_RESOURCES}},
    [QUERN__USE_RESOURCE_WRITE] = {{QUERN__USE_RESOURCE, BY_RESOURCES},
                                   {QUERN__USE_RESOURCE, BY_RESOURCES}}};

/* 64 systems, of which `bits` match an archetype. */
typedef struct match_word {
    uint64_t bits;
    uint32_t word; /* index in a bit set of positions */
} match_word;

/* A search for pairs. The bit sets are of positions; those of the current row have only earlier systems of
 * its group. */
typedef struct conflict_search {
    quern__plan *plan;
    bool is_first;           /* first search after quern__conflicts_start: all rows are empty */
    bool found;              /* some row has changed */
    bool is_changed;         /* the current row has changed */
    uint32_t next_rule;      /* first rule whose second system is not before the current row */
    uint64_t *with_news;     /* systems with matches that were not checked */
    uint64_t *with_optional; /* systems with has_optional_terms */
    /* The current row: partners that could conflict, found pairs, and found pairs that are not local. */
    uint64_t *partners[PARTNER_KIND_COUNT], *all, *global;
    /* The systems that match archetype first_archetype + i, among unchecked matches: matcher_counts[i] items of `matchers`
     * from first_matchers[i] on. */
    uint32_t first_archetype, archetype_count;
    QUERN__ARRAY(uint32_t) first_matchers;
    QUERN__ARRAY(uint32_t) matcher_counts;
    QUERN__ARRAY(match_word) matchers;
} conflict_search;

enum { WORD_SET_COUNT = PARTNER_KIND_COUNT + 4 };

static quern_result fail_memory(const quern__plan *plan)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the conflicts of %u systems",
                       plan->order.count);
}

/* -------------------------------------------------------------------------------------------- start */

quern_result quern__conflicts_start(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = plan->order.count;
    quern__conflicts *conflicts = &plan->conflicts;
    const uint32_t word_count = WORD_SET_COUNT * QUERN__BITSET_WORDS(count);
    if (!quern__pair_set_reset(&conflicts->all, allocator, count) ||
        !quern__pair_set_reset(&conflicts->global, allocator, count) ||
        !access_index_reset(&conflicts->index, allocator, count) ||
        !quern__array_reserve(allocator, &conflicts->words, word_count))
        return fail_memory(plan);
    for (uint32_t i = 0; i < count; i++) {
        plan->order.items[i]->checked_match_count = 0;
        if (!access_index_add(&conflicts->index, allocator, i, &plan->order.items[i]->access))
            return fail_memory(plan);
    }
    plan->has_pairs = false;
    return QUERN_OK;
}

void quern__conflicts_release(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    quern__pair_set_release(&plan->conflicts.all, allocator);
    quern__pair_set_release(&plan->conflicts.global, allocator);
    quern__array_release(allocator, &plan->conflicts.index.numbers);
    quern__array_release(allocator, &plan->conflicts.index.words);
    quern__array_release(allocator, &plan->conflicts.words);
}

/* ------------------------------------------------------------------------------------ unchecked matches */

static quern__archetype *unchecked_match(const quern__system *system, uint32_t i)
{
    return system->query.matches.items[system->checked_match_count + i].archetype;
}

static uint32_t unchecked_count(const quern__system *system)
{
    return system->query.matches.count - system->checked_match_count;
}

/* Marks the systems with unchecked matches, and finds the range of their archetypes. Returns the number of
 * matches. */
static uint32_t mark_news(conflict_search *search)
{
    const quern__plan *plan = search->plan;
    uint32_t count = 0, first = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < plan->order.count; i++) {
        quern__system *system = plan->order.items[i];
        if (system->checked_removed_count != system->query.removed_count) system->checked_match_count = 0;
        system->checked_removed_count = system->query.removed_count;
        if (system->access.has_optional_terms) quern__bitset_add(search->with_optional, i);
        const uint32_t unchecked = unchecked_count(system);
        if (unchecked == 0) continue;
        quern__bitset_add(search->with_news, i);
        count += unchecked;
        const uint32_t least = unchecked_match(system, 0)->index,
                       most = unchecked_match(system, unchecked - 1)->index;
        if (least < first) first = least;
        if (most + 1 > end) end = most + 1;
    }
    search->first_archetype = first;
    search->archetype_count = count > 0 ? end - first : 0;
    return count;
}

/* Lists for each archetype the systems with an unchecked match of it, by position. */
static bool list_matchers(conflict_search *search, uint32_t match_count)
{
    const quern__plan *plan = search->plan;
    const quern_allocator *allocator = quern__plan_allocator(plan);
    if (!quern__array_reserve(allocator, &search->first_matchers, search->archetype_count + 1) ||
        !quern__array_reserve(allocator, &search->matcher_counts, search->archetype_count + 1) ||
        !quern__array_reserve(allocator, &search->matchers, match_count))
        return false;
    uint32_t *firsts = search->first_matchers.items, *counts = search->matcher_counts.items;
    memset(firsts, 0, (search->archetype_count + 1) * sizeof *firsts);
    for (uint32_t i = 0; i < plan->order.count; i++)
        for (uint32_t k = 0; k < unchecked_count(plan->order.items[i]); k++)
            firsts[unchecked_match(plan->order.items[i], k)->index - search->first_archetype + 1]++;
    for (uint32_t i = 0; i < search->archetype_count; i++)
        firsts[i + 1] += firsts[i];
    memset(counts, 0, search->archetype_count * sizeof *counts);
    for (uint32_t i = 0; i < plan->order.count; i++)
        for (uint32_t k = 0; k < unchecked_count(plan->order.items[i]); k++) {
            const uint32_t of = unchecked_match(plan->order.items[i], k)->index - search->first_archetype;
            match_word *matchers = search->matchers.items + firsts[of];
            uint32_t *count = &counts[of];
            if (*count == 0 || matchers[*count - 1].word != i / 64)
                matchers[(*count)++] = (match_word){.word = i / 64};
            matchers[*count - 1].bits |= 1ull << i % 64;
        }
    return true;
}

/* -------------------------------------------------------------------------------------------- a row */

static void find_partners(const conflict_search *search, const quern__system *system)
{
    const uint32_t first = system->group_first / 64, end = system->position / 64 + 1;
    for (uint32_t kind = 0; kind < PARTNER_KIND_COUNT; kind++)
        memset(search->partners[kind] + first, 0, (end - first) * sizeof(uint64_t));
    for (uint32_t i = 0; i < system->access.uses.count; i++) {
        const quern__access_use use = system->access.uses.items[i];
        for (uint32_t k = 0; k < QUERN__COUNT_OF(meetings[0]); k++) {
            const uint64_t *others =
                access_index_find(&search->plan->conflicts.index, meetings[use.kind][k].other, use.index);
            uint64_t *partners = search->partners[meetings[use.kind][k].kind];
            for (uint32_t word = first; word < end && others != NULL; word++)
                partners[word] |= others[word];
        }
    }
    /* Clear the bits beyond the earlier systems of the group. */
    for (uint32_t kind = 0; kind < PARTNER_KIND_COUNT; kind++) {
        search->partners[kind][first] &= UINT64_MAX << system->group_first % 64;
        search->partners[kind][end - 1] &= (1ull << system->position % 64) - 1;
    }
}

/* Returns the kind of conflict for a before/after rule. If the terms of both systems conflict, the rule
 * orders their accesses to each chunk: ORDER. Otherwise its purpose is unknown to the schedule: DECLARED. A
 * rule is also DECLARED if the first system has an end callback, or the second a begin callback, a condition or
 * if_changed: these callbacks must run after, or before, all chunks of the other system. */
static quern__conflict_kind kind_of_rule(const quern__system *first, const quern__system *second)
{
    bool is_order = access_terms_may_conflict(&first->access, &second->access) && first->end == NULL &&
                    second->begin == NULL && second->condition == NULL && !second->access.watches_resources;
    return is_order ? QUERN__CONFLICT_ORDER : QUERN__CONFLICT_DECLARED;
}

static void add_pairs(conflict_search *search, uint32_t word, uint64_t bits, bool are_global)
{
    search->is_changed |= (bits & ~(are_global ? search->global : search->all)[word]) != 0;
    search->all[word] |= bits;
    if (are_global) search->global[word] |= bits;
}

/* Adds to the row what needs no archetypes: rules, resources, and lookups of both systems. */
static void add_fixed(conflict_search *search, const quern__system *system)
{
    const quern__plan *plan = search->plan;
    for (; search->next_rule < plan->rules.count &&
           plan->rules.items[search->next_rule].second == system->position;
         search->next_rule++) {
        const uint32_t first = plan->rules.items[search->next_rule].first;
        const bool is_global = kind_of_rule(plan->order.items[first], system) == QUERN__CONFLICT_DECLARED;
        add_pairs(search, first / 64, 1ull << first % 64, is_global);
    }
    for (uint32_t word = system->group_first / 64; word <= system->position / 64; word++) {
        add_pairs(search, word, search->partners[BY_RESOURCES][word], true);
        for (uint64_t left = search->partners[BY_LOOKUPS][word] & ~search->global[word]; left != 0;) {
            const uint32_t i = 64 * word + quern__bitset_pop_lowest(&left);
            if (quern__access_find_common_lookup(&plan->order.items[i]->access, &system->access, 0) <
                QUERN_MAX_COMPONENTS)
                add_pairs(search, word, 1ull << i % 64, true);
        }
    }
}

/* Returns those of the systems 64 * word + i with bit i in `hits` whose terms conflict with the terms of `system` in the
 * archetype, which all of them match. If one of two systems requires its components, the archetype has the common
 * ones. */
static uint64_t check_hits(const conflict_search *search, const quern__system *system,
                           const quern__archetype *archetype, uint32_t word, uint64_t hits)
{
    if (!system->access.has_optional_terms) return hits;
    uint64_t unsure = hits & search->with_optional[word];
    while (unsure != 0) {
        const uint32_t bit = quern__bitset_pop_lowest(&unsure);
        const quern__system *other = search->plan->order.items[64 * word + bit];
        if (!access_terms_conflict_in(&system->access, &other->access, archetype)) hits &= ~(1ull << bit);
    }
    return hits;
}

/* Returns whether some partner by terms is not in the row yet. */
static bool has_open_partner(const conflict_search *search, const quern__system *system)
{
    uint64_t open = 0;
    for (uint32_t word = system->group_first / 64; word <= system->position / 64; word++)
        open |= search->partners[BY_TERMS][word] & ~search->all[word];
    return open != 0;
}

/* Adds to the row the partners by terms that match the archetype, which the system matches. Returns whether there are
 * any. */
static bool add_matchers(conflict_search *search, const quern__system *system,
                         const quern__archetype *archetype)
{
    const uint32_t of = archetype->index - search->first_archetype;
    const match_word *matcher = search->matchers.items + search->first_matchers.items[of],
                     *end = matcher + search->matcher_counts.items[of];
    bool found = false;
    for (; matcher < end && matcher->word <= system->position / 64; matcher++) {
        const uint32_t word = matcher->word;
        if (word < system->group_first / 64) continue;
        uint64_t hits = search->partners[BY_TERMS][word] & matcher->bits & ~search->all[word];
        if (hits == 0) continue;
        hits = check_hits(search, system, archetype, word, hits);
        add_pairs(search, word, hits, false);
        found |= hits != 0;
    }
    return found;
}

/* Returns the strongest conflict between the terms of one system in its unchecked matches and the lookups and up-terms
 * of another. */
static quern__conflict_kind find_elsewhere(const quern__system *matching, const quern__system *looking)
{
    quern__conflict_kind strongest = QUERN__NO_CONFLICT;
    const bool is_first = matching->position < looking->position;
    for (uint32_t i = 0; i < unchecked_count(matching) && strongest < QUERN__CONFLICT_LOOKUP; i++) {
        const quern__conflict found = access_find_conflict_in(&matching->access, &looking->access, is_first,
                                                              unchecked_match(matching, i), false);
        if (found.kind > strongest) strongest = (quern__conflict_kind)found.kind;
    }
    return strongest;
}

static void add_by_elsewhere(conflict_search *search, const quern__system *system)
{
    const bool has_news = unchecked_count(system) > 0;
    for (uint32_t word = system->group_first / 64; word <= system->position / 64; word++) {
        uint64_t left = search->partners[BY_ELSEWHERE][word] & ~search->global[word];
        if (!has_news) left &= search->with_news[word];
        while (left != 0) {
            const uint32_t i = 64 * word + quern__bitset_pop_lowest(&left);
            const quern__system *other = search->plan->order.items[i];
            const quern__conflict_kind one = find_elsewhere(other, system);
            const quern__conflict_kind two =
                one < QUERN__CONFLICT_LOOKUP ? find_elsewhere(system, other) : one;
            if (one != QUERN__NO_CONFLICT || two != QUERN__NO_CONFLICT)
                add_pairs(search, word, 1ull << i % 64, two == QUERN__CONFLICT_LOOKUP);
        }
    }
}

/* ------------------------------------------------------------------------------------------- search */

/* Extends the row of a system. Returns false if out of memory. */
static bool extend_row(conflict_search *search, const quern__system *system)
{
    const bool has_news = unchecked_count(system) > 0;
    quern__conflicts *conflicts = &search->plan->conflicts;
    const uint32_t later = system->position;
    if (!search->is_first && !has_news && !system->access.looks_elsewhere) return true;
    memset(search->all, 0, (later / 64 + 1) * sizeof *search->all);
    memset(search->global, 0, (later / 64 + 1) * sizeof *search->global);
    quern__pair_set_get(&conflicts->all, later, search->all);
    quern__pair_set_get(&conflicts->global, later, search->global);
    search->is_changed = false;
    find_partners(search, system);
    if (search->is_first) add_fixed(search, system);
    /* The partners by terms with which the system has an unchecked match in common. */
    bool is_open = has_news && has_open_partner(search, system);
    for (uint32_t i = 0; i < unchecked_count(system) && is_open; i++)
        if (add_matchers(search, system, unchecked_match(system, i)))
            is_open = has_open_partner(search, system);
    add_by_elsewhere(search, system);
    if (!search->is_changed) return true;
    search->found = true;
    const quern_allocator *allocator = quern__plan_allocator(search->plan);
    return quern__pair_set_put(&conflicts->all, allocator, later, search->all) &&
           quern__pair_set_put(&conflicts->global, allocator, later, search->global);
}

quern_result quern__conflicts_extend(quern__plan *plan, bool *out_found)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t words_per_set = QUERN__BITSET_WORDS(plan->order.count);
    conflict_search search = {.plan = plan, .is_first = !plan->has_pairs};
    *out_found = false;
    if (plan->order.count == 0) { /* the list of words may be NULL */
        plan->has_pairs = true;
        return QUERN_OK;
    }
    uint64_t *words = plan->conflicts.words.items;
    search.with_news = words;
    search.with_optional = words + words_per_set;
    search.all = words + (size_t)2 * words_per_set;
    search.global = words + (size_t)3 * words_per_set;
    for (uint32_t i = 0; i < PARTNER_KIND_COUNT; i++)
        search.partners[i] = words + (size_t)(4 + i) * words_per_set;
    memset(words, 0, (size_t)2 * words_per_set * sizeof *words);
    bool has_memory = true;
    const uint32_t match_count = mark_news(&search);
    if (match_count > 0 || search.is_first) {
        has_memory = list_matchers(&search, match_count);
        for (uint32_t i = 0; i < plan->order.count && has_memory; i++)
            has_memory = extend_row(&search, plan->order.items[i]);
        for (uint32_t i = 0; i < plan->order.count && has_memory; i++)
            plan->order.items[i]->checked_match_count = plan->order.items[i]->query.matches.count;
    }
    quern__array_release(allocator, &search.first_matchers);
    quern__array_release(allocator, &search.matcher_counts);
    quern__array_release(allocator, &search.matchers);
    plan->has_pairs = has_memory;
    *out_found = search.found;
    return has_memory ? QUERN_OK : fail_memory(plan);
}

/* --------------------------------------------------------------------------------------- single pairs */

static bool strengthen(quern__conflict *conflict, quern__conflict found)
{
    if (found.kind <= conflict->kind) return false;
    *conflict = found;
    return true;
}

/* Returns the kind of conflict for the before/after rule between two systems, or NO_CONFLICT. */
static quern__conflict_kind find_rule(const quern__system *first, const quern__system *second)
{
    const quern__plan *plan = first->plan;
    uint32_t low = 0, high = plan->rules.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const quern__order_pair *rule = &plan->rules.items[middle];
        if (rule->second < second->position ||
            (rule->second == second->position && rule->first < first->position))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == plan->rules.count) return QUERN__NO_CONFLICT;
    const quern__order_pair *rule = &plan->rules.items[low];
    return rule->second == second->position && rule->first == first->position ? kind_of_rule(first, second)
                                                                              : QUERN__NO_CONFLICT;
}

/* Strengthens the conflict by the matches of `a`; those of both are sorted by archetype. */
static void strengthen_by_matches(quern__conflict *conflict, const quern__system *a, const quern__system *b)
{
    /* Returns whether some archetype could make the systems conflict over a component that one accesses through its terms
     * and the other through a lookup or an up-term. */
    const quern__conflict_kind most =
        may_conflict_elsewhere(&a->access, &b->access) || may_conflict_elsewhere(&b->access, &a->access)
            ? QUERN__CONFLICT_LOOKUP
            : QUERN__CONFLICT_COMPONENT;
    uint32_t next = 0;
    for (uint32_t i = 0; i < a->query.matches.count && conflict->kind < most; i++) {
        const quern__archetype *archetype = a->query.matches.items[i].archetype;
        while (next < b->query.matches.count &&
               b->query.matches.items[next].archetype->index < archetype->index)
            next++;
        const bool b_matches =
            next < b->query.matches.count && b->query.matches.items[next].archetype == archetype;
        strengthen(conflict, access_find_conflict_in(&a->access, &b->access, a->position < b->position,
                                                     archetype, b_matches));
    }
}

quern__conflict quern__conflict_between(const quern__system *earlier, const quern__system *later)
{
    const quern__plan *plan = earlier->plan;
    quern__conflict conflict = {.kind = QUERN__NO_CONFLICT};
    if (!quern__conflicts_have(plan, earlier->position, later->position)) return conflict;
    conflict.kind = (uint8_t)find_rule(earlier, later);
    if (conflict.kind == QUERN__CONFLICT_DECLARED) return conflict;
    strengthen(&conflict, access_find_fixed_conflict(&earlier->access, &later->access));
    if (conflict.kind > QUERN__CONFLICT_COMPONENT) return conflict;
    strengthen_by_matches(&conflict, earlier, later);
    strengthen_by_matches(&conflict, later, earlier);
    const bool is_local = !quern__conflicts_have_global(plan, earlier->position, later->position);
    /* If the archetypes of the conflict were removed, the declared accesses have to explain it. */
    if (conflict.kind == QUERN__NO_CONFLICT || quern__conflict_is_local(conflict.kind) != is_local)
        conflict = access_find_possible_conflict(&earlier->access, &later->access, is_local);
    return conflict;
}
