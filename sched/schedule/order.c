/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "sched/schedule/schedule_plan.h"

/* The order of the systems, the edges between passes, and the passes of a segment (compile.h). */

/* Working memory for ordering. Indices count systems in order of registration. */
typedef struct order_graph {
    uint32_t count;
    /* Rules, each once, ascending by first system, then second. first_rules[i]: index of the first rule whose first
     * system is not before i; one entry more than systems. */
    quern__order_pair *rules;
    uint32_t rule_count;
    uint32_t *first_rules;
    uint32_t *waiting_counts;  /* per system: its predecessors that are not placed yet */
    uint32_t *members;         /* systems by group, then in order of registration */
    uint64_t *ready;           /* bit set of the systems of the current group without such predecessors */
    uint64_t *placed;          /* bit set */
    uint32_t first_ready_word; /* all words of `ready` before this one are 0 */
    uint32_t group_ends[2 * QUERN_MAX_PHASES];
} order_graph;

/* ------------------------------------------------------------------------------------------- rules */

/* The systems that a rule orders: one, or those of a set. */
typedef struct rule_side {
    quern__system *const *systems;
    uint32_t count;
    const char *set; /* NULL: one system */
} rule_side;

static rule_side side_of_set(const quern__set *set)
{
    return (rule_side){set->members.items, set->members.count, set->name};
}

/* Returns whether a rule orders two systems: those of different phases are in order already, and reactions are not ordered
 * among other systems. Only a rule that names a set may have such pairs. */
static bool is_ordered(const quern__system *system, const quern__system *other)
{
    return system->phase == other->phase && (system->reaction != NULL) == (other->reaction != NULL);
}

static quern_result fail_set_rule(const quern__plan *plan, const quern__system *system, const char *word,
                                  const quern__system *other, const char *name)
{
    if (other == system)
        return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                           "system '%s' is to run %s '%s', to which it belongs: a system is on one side of "
                           "a rule; take it "
                           "out of a set",
                           system->name, word, name);
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                       "system '%s' (phase '%s') is to run %s '%s' (phase '%s') by a rule of a set, "
                       "against the order of the "
                       "phases: change the rule, the set or a phase",
                       system->name, plan->phases[system->phase].name, word, other->name,
                       plan->phases[other->phase].name);
}

/* Fails for a rule whose name neither a system nor a set has. */
static quern_result fail_unknown_name(const quern__plan *plan, const rule_side *side,
                                      const quern__order_rule *rule)
{
    const quern__system *system = side->set == NULL ? side->systems[0] : NULL;
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < plan->systems.count; i++)
        if (plan->systems.items[i] != system)
            quern_suggestion_offer(&suggestion, rule->name, strlen(rule->name),
                                   plan->systems.items[i]->name);
    for (uint32_t i = 0; i < plan->sets.count; i++)
        quern_suggestion_offer(&suggestion, rule->name, strlen(rule->name), plan->sets.items[i]->name);
    return quern__fail(
        QUERN_ERROR_UNKNOWN_SYSTEM,
        "%s '%s' is to run %s '%s', which the schedule does not have: add that system or set, or "
        "remove the rule%s",
        system == NULL ? "set" : "system", system == NULL ? side->set : system->name,
        rule->sees_commands ? "after the commands of"
        : rule->is_before   ? "before"
                            : "after",
        rule->name, suggestion.text);
}

static quern_result check_pair(const quern__plan *plan, const rule_side *side, const quern__system *system,
                               const quern__order_rule *rule, const rule_side *other_side,
                               const quern__system *other)
{
    const char *word = rule->sees_commands ? "after the commands of" : rule->is_before ? "before" : "after";
    const bool is_of_set = side->set != NULL || other_side->set != NULL;
    if (rule->sees_commands && system->reaction != NULL && (other->reaction != NULL || !is_of_set))
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "reaction '%s' is to run after the commands of '%s': reactions of one round all see "
            "the same state; use after",
            system->name, other->name);
    if (is_of_set) {
        const bool is_against =
            rule->is_before ? other->phase < system->phase : other->phase > system->phase;
        const bool is_reaction = system->reaction != NULL || other->reaction != NULL;
        if (other != system && (!is_against || is_reaction)) return QUERN_OK;
        return fail_set_rule(plan, system, word, other, rule->name);
    }
    if (other->phase != system->phase || other == system)
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' (phase '%s') is to run %s '%s' (phase '%s'): before and after order different "
            "systems of one phase",
            system->name, plan->phases[system->phase].name, word, other->name,
            plan->phases[other->phase].name);
    if ((system->reaction != NULL) == (other->reaction != NULL)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_SCHEDULE_CONFLICT,
        "system '%s' is to run %s '%s', and only one of them is a reaction: reactions run at sync "
        "points, and are ordered among themselves",
        system->name, word, other->name);
}

/* What is done with the pairs of systems that rules order: they are counted and, if pairs is not NULL, listed as indices of
 * registration; or, when the systems have their positions, it is noted which commands a system must see. */
typedef struct rule_walk {
    quern__order_pair *pairs;
    uint64_t count; /* a rule between two sets has a pair for each pair of their systems */
    bool notes_syncs;
} rule_walk;

/* Pairs of all rules: a gigabyte of working memory. */
enum { MOST_PAIRS = 1 << 26 };

static void visit_pair(const quern__plan *plan, rule_walk *walk, const quern__order_rule *rule,
                       quern__system *system, quern__system *other)
{
    const quern__system *first = rule->is_before ? system : other;
    quern__system *second = rule->is_before ? other : system;
    if (walk->pairs != NULL) walk->pairs[walk->count] = (quern__order_pair){first->index, second->index};
    walk->count++;
    const bool needs_sync = rule->sees_commands || plan->phases[system->phase].syncs_between;
    if (walk->notes_syncs && needs_sync && system->reaction == NULL &&
        first->position >= second->sync_after)
        second->sync_after = first->position + 1;
}

static quern_result expand_rules(const quern__plan *plan, rule_walk *walk, const rule_side *side,
                                 const quern__order_rules *rules)
{
    for (uint32_t r = 0; r < rules->count; r++) {
        const quern__order_rule *rule = &rules->items[r];
        quern__system *one = quern__plan_find_system(plan, rule->name);
        const quern__set *set = one == NULL ? quern__plan_find_set(plan, rule->name) : NULL;
        if (one == NULL && set == NULL) return fail_unknown_name(plan, side, rule);
        const rule_side other_side = set != NULL ? side_of_set(set) : (rule_side){&one, 1, NULL};
        for (uint32_t i = 0; i < side->count; i++)
            for (uint32_t k = 0; k < other_side.count; k++) {
                quern__system *system = side->systems[i], *other = other_side.systems[k];
                const quern_result result = check_pair(plan, side, system, rule, &other_side, other);
                if (result != QUERN_OK) return result;
                if (is_ordered(system, other)) visit_pair(plan, walk, rule, system, other);
            }
    }
    return QUERN_OK;
}

/* Visits the pairs of all rules: those of systems, then those of sets. */
static quern_result walk_rules(const quern__plan *plan, rule_walk *walk)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < plan->systems.count && result == QUERN_OK; i++) {
        const rule_side side = {&plan->systems.items[i], 1, NULL};
        result = expand_rules(plan, walk, &side, &plan->systems.items[i]->rules);
    }
    for (uint32_t i = 0; i < plan->sets.count && result == QUERN_OK; i++) {
        const rule_side side = side_of_set(plan->sets.items[i]);
        result = expand_rules(plan, walk, &side, &plan->sets.items[i]->rules);
    }
    return result;
}

/* Moves the rules to `sorted`, by first or by second system; rules with the same such system keep their order. ends:
 * scratch memory for one number more than systems; ends[i] becomes the index of the first rule from system i on. */
static void sort_rules(const quern__order_pair *rules, uint32_t rule_count, bool by_first,
                       uint32_t system_count, uint32_t *ends, quern__order_pair *sorted)
{
    memset(ends, 0, (system_count + 1) * sizeof *ends);
    for (uint32_t i = 0; i < rule_count; i++)
        ends[by_first ? rules[i].first : rules[i].second]++;
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= system_count; i++) {
        sum += ends[i];
        ends[i] = sum;
    }
    for (uint32_t i = rule_count; i-- > 0;)
        sorted[--ends[by_first ? rules[i].first : rules[i].second]] = rules[i];
}

/* ------------------------------------------------------------------------------------------- order */

/* Fails with a message that names the systems of a cycle. No system of the group is ready, so each has an unplaced
 * predecessor: following the first of these must reach a cycle. stuck: a system of the group. */
static quern_result fail_cycle(const quern__plan *plan, const order_graph *graph, uint32_t stuck)
{
    uint32_t *predecessors = graph->members; /* no longer needed */
    for (uint32_t i = graph->rule_count; i-- > 0;)
        if (!quern__bitset_has(graph->placed, graph->rules[i].first))
            predecessors[graph->rules[i].second] = graph->rules[i].first;
    for (uint32_t i = 0; i < graph->count; i++) /* after `count` steps, `stuck` is on the cycle */
        stuck = predecessors[stuck];
    char text[384] = "";
    quern__append(text, sizeof text, "'%s'", plan->systems.items[stuck]->name);
    uint32_t i = stuck;
    do {
        i = predecessors[i];
        quern__append(text, sizeof text, " after '%s'", plan->systems.items[i]->name);
    } while (i != stuck);
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                       "before and after form a cycle: %s; remove one of these rules", text);
}

static void add_ready(order_graph *graph, uint32_t system)
{
    quern__bitset_add(graph->ready, system);
    if (system / 64 < graph->first_ready_word) graph->first_ready_word = system / 64;
}

/* Removes and returns the ready system that was registered first, or returns UINT32_MAX. */
static uint32_t pop_ready(order_graph *graph)
{
    const uint32_t word_count = QUERN__BITSET_WORDS(graph->count);
    uint32_t word = graph->first_ready_word;
    while (word < word_count && graph->ready[word] == 0)
        word++;
    graph->first_ready_word = word;
    return word < word_count ? 64 * word + quern__bitset_pop_lowest(&graph->ready[word]) : UINT32_MAX;
}

/* Appends the systems of a group to the order: each time, the first by registration whose predecessors are placed. */
static quern_result order_group(quern__plan *plan, order_graph *graph, const uint32_t *members,
                                uint32_t count)
{
    const uint32_t end = plan->order.count + count;
    for (uint32_t i = 0; i < count; i++)
        if (graph->waiting_counts[members[i]] == 0) add_ready(graph, members[i]);
    for (uint32_t next; (next = pop_ready(graph)) != UINT32_MAX;) {
        quern__bitset_add(graph->placed, next);
        quern__system *system = plan->systems.items[next];
        system->position = plan->order.count;
        system->group_first = system->reaction != NULL ? graph->count - plan->reaction_count : end - count;
        plan->order.items[plan->order.count++] = system;
        for (uint32_t i = graph->first_rules[next]; i < graph->first_rules[next + 1]; i++)
            if (--graph->waiting_counts[graph->rules[i].second] == 0)
                add_ready(graph, graph->rules[i].second);
    }
    if (plan->order.count == end) return QUERN_OK;
    uint32_t last = count - 1;
    while (quern__bitset_has(graph->placed, members[last]))
        last--;
    return fail_cycle(plan, graph, members[last]);
}

/* Groups are ordered one after another: the systems of each phase, then the reactions of each phase. */
static uint32_t group_of(const quern__plan *plan, const quern__system *system)
{
    return (system->reaction != NULL ? plan->phase_count : 0) + system->phase;
}

static quern_result order_systems(quern__plan *plan, order_graph *graph, quern__order_pair *scratch)
{
    quern__order_pair *rules = graph->rules;
    rule_walk listing = {.pairs = rules};
    quern_result result = walk_rules(plan, &listing);
    if (result != QUERN_OK) return result;
    assert(listing.count == graph->rule_count);
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    /* Remove the rules that were declared twice: equal rules are adjacent. */
    rules = graph->rules;
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < graph->rule_count; i++) {
        const quern__order_pair *last = &rules[kept_count > 0 ? kept_count - 1 : 0];
        if (kept_count == 0 || last->first != rules[i].first || last->second != rules[i].second)
            rules[kept_count++] = rules[i];
    }
    graph->rule_count = kept_count;
    /* Once more, for first_rules without the repeated rules. */
    memcpy(scratch, graph->rules, graph->rule_count * sizeof *scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    for (uint32_t i = 0; i < graph->rule_count; i++)
        graph->waiting_counts[graph->rules[i].second]++;
    const uint32_t group_count = 2 * plan->phase_count;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->group_ends[group_of(plan, plan->systems.items[i])]++;
    for (uint32_t group = 1; group < group_count; group++)
        graph->group_ends[group] += graph->group_ends[group - 1];
    uint32_t next[2 * QUERN_MAX_PHASES] = {0};
    memcpy(next + 1, graph->group_ends, (group_count - 1) * sizeof *next);
    for (uint32_t i = 0; i < graph->count; i++)
        graph->members[next[group_of(plan, plan->systems.items[i])]++] = i;
    plan->order.count = 0;
    uint32_t first = 0;
    for (uint32_t group = 0; group < 2 * plan->phase_count && result == QUERN_OK; group++) {
        const uint32_t end = graph->group_ends[group];
        result = order_group(plan, graph, graph->members + first, end - first);
        first = end;
    }
    /* Replaces the registration indices of the listed rules by positions, and sorts the rules by later
     * system, then earlier one. */
    if (result != QUERN_OK) return result;
    quern__system *const *systems = plan->systems.items;
    for (uint32_t i = 0; i < graph->rule_count; i++)
        scratch[i] = (quern__order_pair){systems[graph->rules[i].first]->position,
                                         systems[graph->rules[i].second]->position};
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, plan->rules.items);
    plan->rules.count = graph->rule_count;
    return QUERN_OK;
}

quern_result quern__order_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = plan->systems.count;
    rule_walk counting = {.pairs = NULL}, noting = {.notes_syncs = true};
    const quern_result counted = walk_rules(plan, &counting);
    if (counted != QUERN_OK) return counted;
    if (counting.count > MOST_PAIRS)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "the rules of systems and sets order %llu pairs of systems, more than %d: use phases, or "
            "smaller sets",
            (unsigned long long)counting.count, MOST_PAIRS);
    const uint32_t rule_count = (uint32_t)counting.count;
    /* Working memory: the bit sets, then the rules twice, then the numbers. */
    const size_t bytes = (size_t)2 * QUERN__BITSET_WORDS(count) * sizeof(uint64_t) +
                         2 * (size_t)rule_count * sizeof(quern__order_pair) +
                         (3 * (size_t)count + 1) * sizeof(uint32_t);
    void *memory = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    if (memory == NULL || !quern__array_reserve(allocator, &plan->order, count) ||
        !quern__array_reserve(allocator, &plan->rules, rule_count)) {
        quern__release(allocator, memory, bytes, _Alignof(uint64_t));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order %u systems", count);
    }
    memset(memory, 0, bytes);
    order_graph graph = {.count = count, .rule_count = rule_count, .ready = memory};
    graph.placed = graph.ready + QUERN__BITSET_WORDS(count);
    graph.rules = (void *)(graph.placed + QUERN__BITSET_WORDS(count));
    quern__order_pair *scratch = graph.rules + rule_count;
    graph.first_rules = (void *)(scratch + rule_count);
    graph.waiting_counts = graph.first_rules + count + 1;
    graph.members = graph.waiting_counts + count;
    const quern_result result = order_systems(plan, &graph, scratch);
    quern__release(allocator, memory, bytes, _Alignof(uint64_t));
    for (uint32_t i = 0; i < count; i++)
        plan->systems.items[i]->sync_after = 0;
    return result == QUERN_OK ? walk_rules(plan, &noting) : result;
}

/* ------------------------------------------------------------------------------------------------- edges */

/* The edges are the transitive reduction of the conflicts between passes. To find it, each pass has a set of the passes
 * that it *reaches*: it waits for them, directly or indirectly. A pass takes its conflicts from the nearest pass to the
 * farthest, skips those that it reaches already, and adds the sets of the others to its own.
 *
 * The sets of all passes together would be quadratic. So the passes that can be reached are divided into blocks, from the
 * last to the first, and there are sets for the passes of one block at a time. Edges to later blocks are then known:
 * they can lead to the block, but edges to earlier blocks cannot. */

enum { BLOCK_PASSES = 4096, BLOCK_WORDS = BLOCK_PASSES / 64 };

typedef struct pass_links {
    const quern__plan *plan;
    const quern__segment *segment;
    uint32_t first, end;    /* the block: passes by index */
    uint32_t words_per_set; /* words of a set of passes of a block */
    uint64_t *reached;      /* one set per pass */
    uint64_t *conflicting;  /* passes of the block with a conflict with the current pass */
    bool *are_chained;      /* per pass: whether it reaches all passes before it */
} pass_links;

static uint64_t *reached_by(const pass_links *links, uint32_t pass)
{
    return links->reached + (size_t)pass * links->words_per_set;
}

/* Adds `before`, a pass of the block, and all that it reaches. */
static void add_reached(const pass_links *links, uint64_t *reached, uint32_t before)
{
    const uint64_t *others = reached_by(links, before);
    if (before < links->end) quern__bitset_add(reached, before - links->first);
    for (uint32_t word = 0; word < links->words_per_set; word++)
        reached[word] |= others[word];
}

static bool add_edge(const pass_links *links, quern__pass *pass, uint32_t before)
{
    if (!quern__array_reserve(quern__plan_allocator(links->plan), &pass->waits_for,
                              pass->waits_for.count + 1))
        return false;
    pass->waits_for.items[pass->waits_for.count++] = before;
    add_reached(links, reached_by(links, pass->index), before);
    return true;
}

/* Returns whether the pass reaches all before it because it conflicts with the pass before, which reaches all others.
 * Looks only at the nearest conflict of a pass with one system: this keeps long chains from being quadratic. */
static bool is_chained(const pass_links *links, const quern__pass *pass)
{
    const quern__plan *plan = links->plan;
    uint32_t earlier;
    if (pass->index == 0) return true;
    if (pass->systems.count > 1 || !links->are_chained[pass->index - 1]) return false;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, pass->systems.items[0]->position);
    return quern__pair_walk_next(&walk, &earlier) && earlier >= links->segment->first &&
           plan->pass_indices.items[earlier] == pass->index - 1;
}

/* Finds the edges from passes of the block to the pass. Returns false if out of memory. */
static bool link_pass(const pass_links *links, quern__pass *pass)
{
    uint64_t *reached = reached_by(links, pass->index);
    memset(reached, 0, links->words_per_set * sizeof *reached);
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        add_reached(links, reached, pass->waits_for.items[i]);
    if (links->are_chained[pass->index]) return true;
    if (pass->index > links->first && pass->index <= links->end && is_chained(links, pass)) {
        links->are_chained[pass->index] = true;
        return add_edge(links, pass, pass->index - 1);
    }
    /* Find the passes of the block that conflict with the pass, and add edges to those that it does not reach. */
    const quern__plan *plan = links->plan;
    bool found = false;
    uint32_t earlier;
    memset(links->conflicting, 0, links->words_per_set * sizeof(uint64_t));
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__pair_walk walk =
            quern__pair_set_walk(&plan->conflicts.all, pass->systems.items[i]->position);
        while (quern__pair_walk_next(&walk, &earlier) && earlier >= links->segment->first) {
            const uint32_t before = plan->pass_indices.items[earlier];
            if (before == pass->index || before < links->first || before >= links->end) continue;
            quern__bitset_add(links->conflicting, before - links->first);
            found = true;
        }
    }
    if (!found) return true;
    for (uint32_t word = links->words_per_set; word-- > 0;)
        for (uint64_t left; (left = links->conflicting[word] & ~reached[word]) != 0;) {
            const uint32_t high = (uint32_t)(left >> 32);
            const uint32_t bit =
                high != 0 ? 32 + quern__highest_bit_32(high) : quern__highest_bit_32((uint32_t)left);
            links->conflicting[word] &= (1ull << bit) - 1;
            if (!add_edge(links, pass, links->first + 64 * word + bit)) return false;
        }
    return true;
}

/* Lists in waits_for of each pass the indices of the passes that it must wait for, the greatest first. Omits passes for
 * which another of these waits, directly or indirectly. Preconditions: the passes are in ascending order of index, and
 * all conflicts lead from earlier to later ones. Errors: OUT_OF_MEMORY. */
static quern_result link_passes(const quern__plan *plan, const quern__segment *segment)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = segment->passes.count, all_words = QUERN__BITSET_WORDS(count);
    pass_links links = {.plan = plan, .segment = segment};
    if (count < 2) return QUERN_OK;
    links.words_per_set = all_words < BLOCK_WORDS ? all_words : BLOCK_WORDS;
    const size_t bytes = (count + (size_t)1) * links.words_per_set * sizeof(uint64_t) + count;
    links.reached = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    bool has_memory = links.reached != NULL;
    if (has_memory) {
        links.conflicting = reached_by(&links, count);
        links.are_chained = (bool *)(links.conflicting + links.words_per_set);
        memset(links.are_chained, 0, count);
        const uint32_t block_count = (count + BLOCK_PASSES - 1) / BLOCK_PASSES;
        links.are_chained[0] = true;
        for (uint32_t block = block_count; has_memory && block-- > 0;) {
            links.first = block * BLOCK_PASSES;
            links.end = links.first + BLOCK_PASSES < count ? links.first + BLOCK_PASSES : count;
            for (uint32_t i = links.first; i < count && has_memory; i++)
                has_memory = link_pass(&links, segment->passes.items[i]);
        }
    }
    quern__release(allocator, links.reached, bytes, _Alignof(uint64_t));
    return has_memory ? QUERN_OK
                      : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to link %u passes", count);
}

/* -------------------------------------------------------------------------- grouping systems into passes */

bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system)
{
    return pass->levels == NULL || system->levels == NULL || pass->levels == system->levels;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern__pass *create_pass(quern__plan *plan, const quern__system *first)
{
    quern__pass *pass = quern__allocate(quern__plan_allocator(plan), sizeof *pass, _Alignof(quern__pass));
    if (pass == NULL) return NULL;
    *pass = (quern__pass){.plan = plan, .kind = QUERN__PASS_CHUNKS, .run_node_count = 1};
    if (first->events.items != NULL) pass->kind = QUERN__PASS_EVENTS;
    if (first->query.order != NULL) pass->kind = QUERN__PASS_ORDERED;
    if (quern__system_has_flag(first, QUERN_SYSTEM_SERIAL)) pass->kind = QUERN__PASS_SERIAL;
    if (first->query.term_count == 0 && first->events.items == NULL) pass->kind = QUERN__PASS_ONCE;
    return pass;
}

static bool add_to_pass(quern__pass *pass, quern__system *system)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    if (!quern__array_reserve(allocator, &pass->systems, pass->systems.count + 1)) return false;
    pass->systems.items[pass->systems.count++] = system;
    pass->has_begin |= system->begin != NULL || quern__system_is_gated(system);
    pass->has_end |= system->end != NULL;
    pass->has_partials |= system->partial_bytes > 0;
    pass->has_filters |= system->has_filters;
    pass->runs_reactions |= system->reaction != NULL;
    if (system->levels != NULL) pass->levels = system->levels;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        pass->touched[word] |= system->access.reads[word];
    system->pass = pass;
    system->table_match_count = 0;
    system->table_removed_count = system->query.removed_count;
    return true;
}

/* Returns the index of the first pass that the system may join without violating the order. No bound exceeds the number
 * of passes, nor, if the system has only local conflicts, the index of the last pass. */
static uint32_t first_allowed_pass(const quern__segment *segment, const quern__system *system)
{
    const quern__plan *plan = system->plan;
    const uint32_t pass_count = segment->passes.count;
    uint32_t first = 0, earlier;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.global, system->position);
    while (first < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] >= first) first = plan->pass_indices.items[earlier] + 1;
    walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
    while (first + 1 < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] > first) first = plan->pass_indices.items[earlier];
    return first;
}

/* xorshift64*, Vigna 2014. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static bool may_join(const quern__pass *pass, const quern__system *system)
{
    return pass->kind == QUERN__PASS_CHUNKS && quern__fuse_levels_agree(pass, system);
}

/* Returns the eligible pass that shares the most components with the system, the last of these on a tie, or NULL. */
static quern__pass *choose_best_pass(const quern__segment *segment, const quern__system *system,
                                     uint32_t first)
{
    uint32_t most = 0, best_count = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        if (system->access.reads[word] != 0) most += quern__count_bits_64(system->access.reads[word]);
    quern__pass *best = NULL;
    for (uint32_t i = segment->passes.count; i-- > first && (best == NULL || best_count < most);) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        uint32_t count = 0;
        for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++) {
            const uint64_t shared = pass->touched[word] & system->access.reads[word];
            if (shared != 0) count += quern__count_bits_64(shared);
        }
        if (best != NULL && count <= best_count) continue;
        best = pass;
        best_count = count;
    }
    return best;
}

/* For tests: chooses an eligible pass at random. */
static quern__pass *choose_any_pass(const quern__segment *segment, const quern__system *system,
                                    uint32_t first, uint64_t *random)
{
    quern__pass *best = NULL;
    uint32_t best_number = 0;
    for (uint32_t i = first; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        const uint32_t number = (uint32_t)(next_random(random) >> 40);
        if (best != NULL && number < best_number) continue;
        best = pass;
        best_number = number;
    }
    return best;
}

static quern_result assign_to_pass(quern__plan *plan, quern__segment *segment, quern__system *system,
                                   uint64_t *random)
{
    quern__pass *pass = NULL;
    /* A system may share a pass if it has terms, no order of rows, and is not serial. */
    if (plan->fuses_systems && system->query.term_count > 0 && system->query.order == NULL &&
        !quern__system_has_flag(system, QUERN_SYSTEM_SERIAL)) {
        const uint32_t first = first_allowed_pass(segment, system);
        pass = random != NULL ? choose_any_pass(segment, system, first, random)
                              : choose_best_pass(segment, system, first);
    }
    if (pass == NULL) {
        pass = create_pass(plan, system);
        if (pass == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass");
        pass->index = segment->passes.count;
        segment->passes.items[segment->passes.count++] = pass;
    }
    plan->pass_indices.items[system->position] = pass->index;
    if (add_to_pass(pass, system)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass of %u systems",
                       pass->systems.count + 1);
}

/* -------------------------------------------------------------------------------------------- lanes */

/* Returns the first system of the lane that has the system at index i of the pass. Until lanes are renumbered, the lane of
 * a system is the index of an earlier system of its lane, or of itself. Shortens the path for later calls. */
static uint32_t find_lane(const quern__pass *pass, uint32_t i)
{
    quern__system *const *systems = pass->systems.items;
    while (systems[i]->lane != i) {
        systems[i]->lane = systems[systems[i]->lane]->lane;
        i = systems[i]->lane;
    }
    return i;
}

/* Joins the lanes of systems with a conflict. numbers: scratch memory, by position; the caller has set those of the
 * pass's systems to their index in the pass. The walk over a row ends when all systems up to this one are in one lane. */
static void find_lanes(quern__pass *pass, const uint32_t *numbers)
{
    const quern__plan *plan = pass->plan;
    uint32_t lane_count = 0, earlier;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        const uint32_t first_position = pass->systems.items[0]->position;
        quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
        system->lane = i;
        lane_count++;
        while (lane_count > 1 && quern__pair_walk_next(&walk, &earlier) && earlier >= first_position) {
            if (plan->pass_indices.items[earlier] != pass->index) continue;
            const uint32_t one = find_lane(pass, i), other = find_lane(pass, numbers[earlier]);
            if (one == other) continue;
            pass->systems.items[one < other ? other : one]->lane = one < other ? one : other;
            lane_count--;
        }
    }
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->lane = find_lane(pass, i);
    /* Renumber the lanes from 0 on, without gaps. */
    pass->lane_count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->lane = system->lane < i ? pass->systems.items[system->lane]->lane : pass->lane_count++;
    }
}

/* ------------------------------------------------------------------------------ passes of a segment */

/* Returns whether all passes for which `pass` waits are placed. waits_for has indices of passes. */
static bool is_ready(const quern__pass *pass, const bool *placed)
{
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        if (!placed[pass->waits_for.items[i]]) return false;
    return true;
}

/* For tests: chooses one of the orders that respect the edges, at random. placed: zeroed scratch memory, by index of
 * pass. */
static void shuffle_passes(quern__segment *segment, uint64_t *random, bool *placed)
{
    for (uint32_t placed_count = 0; placed_count < segment->passes.count; placed_count++) {
        uint32_t left = segment->passes.count - placed_count;
        uint32_t chosen = placed_count + (uint32_t)((next_random(random) >> 32) % left);
        while (!is_ready(segment->passes.items[chosen], placed))
            /* the unplaced pass with the smallest index is always ready */
            chosen = placed_count + (chosen - placed_count + 1) % left;
        quern__pass *pass = segment->passes.items[chosen];
        placed[pass->index] = true;
        segment->passes.items[chosen] = segment->passes.items[placed_count];
        segment->passes.items[placed_count] = pass;
    }
}

/* Replaces the indices in waits_for by those in segment->passes, the greatest first. places: scratch memory, by index of
 * pass. */
static void number_waits(const quern__segment *segment, uint32_t *places)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        places[segment->passes.items[i]->index] = i;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const uint32_t place = places[pass->waits_for.items[k]];
            uint32_t to = k;
            for (; to > 0 && pass->waits_for.items[to - 1] < place; to--)
                pass->waits_for.items[to] = pass->waits_for.items[to - 1];
            pass->waits_for.items[to] = place;
        }
    }
}

static quern_result shuffle(const quern__plan *plan, quern__segment *segment, uint64_t *random)
{
    const size_t bytes = segment->passes.count * (sizeof(uint32_t) + sizeof(bool));
    uint32_t *places = quern__allocate(quern__plan_allocator(plan), bytes, _Alignof(uint32_t));
    if (places == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to shuffle passes");
    memset(places, 0, bytes);
    shuffle_passes(segment, random, (bool *)(places + segment->passes.count));
    number_waits(segment, places);
    quern__release(quern__plan_allocator(plan), places, bytes, _Alignof(uint32_t));
    return QUERN_OK;
}

quern_result quern__fuse(quern__plan *plan, quern__segment *segment)
{
    uint32_t system_count = segment->end - segment->first;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_destroy(segment->passes.items[i]);
    segment->passes.count = 0;
    if (!quern__array_reserve(quern__plan_allocator(plan), &segment->passes, system_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the passes of %u systems",
                           system_count);
    uint64_t seed = plan->shuffle_seed;
    uint64_t *random = seed != 0 ? &seed : NULL;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern_result result = assign_to_pass(plan, segment, plan->order.items[i], random);
        if (result != QUERN_OK) return result;
    }
    uint32_t *numbers = plan->pass_indices.items + plan->order.count;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->systems.count; k++)
            numbers[pass->systems.items[k]->position] = k;
        find_lanes(pass, numbers);
    }
    quern_result result = link_passes(plan, segment);
    if (result == QUERN_OK && random != NULL) result = shuffle(plan, segment, random);
    return result;
}
