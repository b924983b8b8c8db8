/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/order.h"

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

static quern_result check_rule(const quern__plan *plan, const quern__system *system,
                               const quern__order_rule *rule, const quern__system *other)
{
    const char *word = rule->is_before ? "before" : "after";
    if (other == NULL)
        return quern__fail(
            QUERN_ERROR_UNKNOWN_SYSTEM,
            "system '%s' is to run %s '%s', which the schedule does not have: add that system, or remove "
            "the rule",
            system->name, word, rule->name);
    if (other->phase != system->phase || other == system)
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' (phase '%s') is to run %s '%s' (phase '%s'): before and after order different "
            "systems of one phase",
            system->name, plan->phases[system->phase].name, word, other->name,
            plan->phases[other->phase].name);
    if (quern__system_may_overlap(system, other)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_SCHEDULE_CONFLICT,
        "system '%s' is to run %s '%s', and only one of them is a reaction: reactions run at sync "
        "points, and are ordered among themselves",
        system->name, word, other->name);
}

/* Lists the rules of all systems, in the order of registration. Precondition: `rules` has room for all. */
static quern_result list_rules(const quern__plan *plan, quern__order_pair *rules)
{
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        const quern__system *system = plan->systems.items[i];
        for (uint32_t k = 0; k < system->rules.count; k++) {
            const quern__order_rule *rule = &system->rules.items[k];
            const quern__system *other = quern__plan_find_system(plan, rule->name);
            const quern_result result = check_rule(plan, system, rule, other);
            if (result != QUERN_OK) return result;
            *rules++ = rule->is_before ? (quern__order_pair){system->index, other->index}
                                       : (quern__order_pair){other->index, system->index};
        }
    }
    return QUERN_OK;
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

/* Removes the rules that were declared twice. Precondition: equal rules are adjacent. */
static uint32_t remove_repeated(quern__order_pair *rules, uint32_t count)
{
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__order_pair *last = &rules[kept_count > 0 ? kept_count - 1 : 0];
        if (kept_count == 0 || last->first != rules[i].first || last->second != rules[i].second)
            rules[kept_count++] = rules[i];
    }
    return kept_count;
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
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT, "before and after form a cycle: %s", text);
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

static void list_members(const quern__plan *plan, order_graph *graph)
{
    const uint32_t group_count = 2 * plan->phase_count;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->group_ends[group_of(plan, plan->systems.items[i])]++;
    for (uint32_t group = 1; group < group_count; group++)
        graph->group_ends[group] += graph->group_ends[group - 1];
    uint32_t next[2 * QUERN_MAX_PHASES] = {0};
    memcpy(next + 1, graph->group_ends, (group_count - 1) * sizeof *next);
    for (uint32_t i = 0; i < graph->count; i++)
        graph->members[next[group_of(plan, plan->systems.items[i])]++] = i;
}

static quern_result order_groups(quern__plan *plan, order_graph *graph)
{
    quern_result result = QUERN_OK;
    uint32_t first = 0;
    for (uint32_t group = 0; group < 2 * plan->phase_count && result == QUERN_OK; group++) {
        const uint32_t end = graph->group_ends[group];
        result = order_group(plan, graph, graph->members + first, end - first);
        first = end;
    }
    return result;
}

/* Replaces the registration indices of the listed rules by positions, and sorts the rules by later system, then
 * earlier one. */
static void list_positions(quern__plan *plan, const order_graph *graph, quern__order_pair *scratch)
{
    quern__system *const *systems = plan->systems.items;
    for (uint32_t i = 0; i < graph->rule_count; i++)
        scratch[i] = (quern__order_pair){systems[graph->rules[i].first]->position,
                                         systems[graph->rules[i].second]->position};
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, plan->rules.items);
    plan->rules.count = graph->rule_count;
}

static quern_result order_systems(quern__plan *plan, order_graph *graph, quern__order_pair *scratch)
{
    quern_result result = list_rules(plan, graph->rules);
    if (result != QUERN_OK) return result;
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    graph->rule_count = remove_repeated(graph->rules, graph->rule_count);
    /* Once more, for first_rules without the repeated rules. */
    memcpy(scratch, graph->rules, graph->rule_count * sizeof *scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    for (uint32_t i = 0; i < graph->rule_count; i++)
        graph->waiting_counts[graph->rules[i].second]++;
    list_members(plan, graph);
    plan->order.count = 0;
    result = order_groups(plan, graph);
    if (result == QUERN_OK) list_positions(plan, graph, scratch);
    return result;
}

/* Working memory: the bit sets, then the rules twice, then the numbers. */
static size_t scratch_bytes(uint32_t count, uint32_t rule_count)
{
    return (size_t)2 * QUERN__BITSET_WORDS(count) * sizeof(uint64_t) +
           2 * (size_t)rule_count * sizeof(quern__order_pair) + (3 * (size_t)count + 1) * sizeof(uint32_t);
}

quern_result quern__order_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = plan->systems.count;
    uint32_t rule_count = 0;
    for (uint32_t i = 0; i < count; i++)
        rule_count += plan->systems.items[i]->rules.count;
    const size_t bytes = scratch_bytes(count, rule_count);
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
    return result;
}
