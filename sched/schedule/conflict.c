/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

/* The pairs of systems that must keep their order, found row by row (compile.h). */

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
        !quern__access_index_reset(&conflicts->index, allocator, count) ||
        !quern__array_reserve(allocator, &conflicts->words, word_count))
        return fail_memory(plan);
    for (uint32_t i = 0; i < count; i++) {
        plan->order.items[i]->checked_match_count = 0;
        if (!quern__access_index_add(&conflicts->index, allocator, i, &plan->order.items[i]->access))
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
    quern__access_index_release(&plan->conflicts.index, allocator);
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
            const uint64_t *others = quern__access_index_find(&search->plan->conflicts.index,
                                                              meetings[use.kind][k].other, use.index);
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
    bool is_order = quern__access_terms_may_conflict(&first->access, &second->access) &&
                    first->end == NULL && second->begin == NULL && second->condition == NULL &&
                    !second->access.watches_resources;
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
        if (!quern__access_terms_conflict_in(&system->access, &other->access, archetype))
            hits &= ~(1ull << bit);
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
        const quern__conflict found = quern__access_find_conflict_in(
            &matching->access, &looking->access, is_first, unchecked_match(matching, i), false);
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
    const quern__conflict_kind most = quern__access_may_conflict_by_lookup(&a->access, &b->access)
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
        strengthen(conflict, quern__access_find_conflict_in(
                                 &a->access, &b->access, a->position < b->position, archetype, b_matches));
    }
}

quern__conflict quern__conflict_between(const quern__system *earlier, const quern__system *later)
{
    const quern__plan *plan = earlier->plan;
    quern__conflict conflict = {.kind = QUERN__NO_CONFLICT};
    if (!quern__conflicts_have(plan, earlier->position, later->position)) return conflict;
    conflict.kind = (uint8_t)find_rule(earlier, later);
    if (conflict.kind == QUERN__CONFLICT_DECLARED) return conflict;
    strengthen(&conflict, quern__access_find_fixed_conflict(&earlier->access, &later->access));
    if (conflict.kind > QUERN__CONFLICT_COMPONENT) return conflict;
    strengthen_by_matches(&conflict, earlier, later);
    strengthen_by_matches(&conflict, later, earlier);
    const bool is_local = !quern__conflicts_have_global(plan, earlier->position, later->position);
    /* If the archetypes of the conflict were removed, the declared accesses have to explain it. */
    if (conflict.kind == QUERN__NO_CONFLICT || quern__conflict_is_local(conflict.kind) != is_local)
        conflict = quern__access_find_possible_conflict(&earlier->access, &later->access, is_local);
    return conflict;
}
