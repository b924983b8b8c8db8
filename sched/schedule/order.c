/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/order.h"

/* Working memory for ordering: the predecessors of each system. Indices count systems in order of
 * registration. */
typedef struct order_graph {
    uint32_t count;
    uint32_t words;         /* 64-bit words per system */
    uint64_t *predecessors; /* [system * words]: bit set of the systems that must run before it */
    bool *placed;
} order_graph;

static uint64_t *predecessors_of(const order_graph *graph, uint32_t system)
{
    return graph->predecessors + (size_t)system * graph->words;
}

static const quern__system *find_system(const quern__plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->systems.count; i++)
        if (strcmp(plan->systems.items[i]->name, name) == 0) return plan->systems.items[i];
    return NULL;
}

static quern_result add_rule(quern__plan *plan, order_graph *graph, const quern__system *system,
                             const quern__order_rule *rule)
{
    const char *word = rule->is_before ? "before" : "after";
    const quern__system *other = find_system(plan, rule->name);
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
    if (!quern__system_may_overlap(system, other))
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' is to run %s '%s', and only one of them is a reaction: reactions run at sync "
            "points, and are ordered among themselves",
            system->name, word, other->name);
    uint32_t first = rule->is_before ? system->index : other->index;
    uint32_t second = rule->is_before ? other->index : system->index;
    quern__bitset_add(predecessors_of(graph, second), first);
    return QUERN_OK;
}

static bool is_ready(const order_graph *graph, uint32_t system)
{
    const uint64_t *predecessors = predecessors_of(graph, system);
    for (uint32_t i = 0; i < graph->count; i++)
        if (quern__bitset_has(predecessors, i) && !graph->placed[i]) return false;
    return true;
}

static uint32_t unplaced_predecessor(const order_graph *graph, uint32_t system)
{
    uint32_t i = 0;
    while (!quern__bitset_has(predecessors_of(graph, system), i) || graph->placed[i])
        i++;
    return i;
}

/* Fails with a message that names the systems of a cycle. No system of the phase is ready, so each has an
 * unplaced predecessor: following these predecessors must reach a cycle. */
static quern_result fail_cycle(const quern__plan *plan, const order_graph *graph, uint32_t stuck)
{
    for (uint32_t i = 0; i < graph->count; i++) /* after `count` steps, `stuck` is on the cycle */
        stuck = unplaced_predecessor(graph, stuck);
    char text[384] = "";
    quern__append(text, sizeof text, "'%s'", plan->systems.items[stuck]->name);
    uint32_t i = stuck;
    do {
        i = unplaced_predecessor(graph, i);
        quern__append(text, sizeof text, " after '%s'", plan->systems.items[i]->name);
    } while (i != stuck);
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT, "before and after form a cycle: %s", text);
}

/* Appends the systems of the phase to the order, either its reactions or the others. Each time, chooses the
 * first system by registration that has no unplaced predecessor. */
static quern_result order_phase(quern__plan *plan, order_graph *graph, uint32_t phase, bool reacts)
{
    for (;;) {
        uint32_t stuck = UINT32_MAX, next = UINT32_MAX;
        for (uint32_t i = 0; i < graph->count && next == UINT32_MAX; i++) {
            const quern__system *system = plan->systems.items[i];
            const bool is_meant = system->phase == phase && (system->reaction != NULL) == reacts;
            if (!is_meant || graph->placed[i]) continue;
            if (is_ready(graph, i))
                next = i;
            else
                stuck = i;
        }
        if (next == UINT32_MAX) return stuck == UINT32_MAX ? QUERN_OK : fail_cycle(plan, graph, stuck);
        graph->placed[next] = true;
        quern__system *system = plan->systems.items[next];
        system->position = plan->order.count;
        plan->order.items[plan->order.count++] = system;
    }
}

static quern_result order_systems(quern__plan *plan, order_graph *graph)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < graph->count && result == QUERN_OK; i++) {
        const quern__system *system = plan->systems.items[i];
        for (uint32_t k = 0; k < system->rules.count && result == QUERN_OK; k++)
            result = add_rule(plan, graph, system, &system->rules.items[k]);
    }
    for (uint32_t phase = 0; phase < plan->phase_count && result == QUERN_OK; phase++)
        result = order_phase(plan, graph, phase, false);
    for (uint32_t phase = 0; phase < plan->phase_count && result == QUERN_OK; phase++)
        result = order_phase(plan, graph, phase, true);
    return result;
}

/* Returns the kind of conflict for a before/after rule. If the terms of both systems conflict, the rule
 * orders their accesses to each chunk: ORDER. Otherwise its purpose is unknown to the schedule: DECLARED. A
 * rule is also DECLARED if the first system has an end callback, or the second a begin callback or
 * condition: these callbacks must run after, or before, all chunks of the other system. */
static quern__conflict_kind kind_of_rule(const quern__system *first, const quern__system *second)
{
    bool is_order = quern__access_terms_may_conflict(&first->access, &second->access) &&
                    first->end == NULL && second->begin == NULL && second->condition == NULL;
    return is_order ? QUERN__CONFLICT_ORDER : QUERN__CONFLICT_DECLARED;
}

static void note_rules(quern__plan *plan, const order_graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->count; k++) {
            if (!quern__bitset_has(predecessors_of(graph, i), k)) continue;
            const quern__system *first = plan->systems.items[k], *second = plan->systems.items[i];
            *quern__plan_conflict(plan, first->position, second->position) =
                (quern__conflict){.kind = (uint8_t)kind_of_rule(first, second)};
        }
}

quern_result quern__order_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    uint32_t count = plan->systems.count;
    uint32_t pairs = count * count; /* fits: QUERN_MAX_SYSTEMS is 1024 */
    order_graph graph = {.count = count, .words = QUERN__BITSET_WORDS(count)};
    size_t rows_bytes = (size_t)count * graph.words * sizeof(uint64_t);
    char *scratch = quern__allocate(allocator, rows_bytes + count, _Alignof(uint64_t));
    if (scratch == NULL || !quern__array_reserve(allocator, &plan->order, count) ||
        !quern__array_reserve(allocator, &plan->conflicts, pairs)) {
        quern__release(allocator, scratch, rows_bytes + count, _Alignof(uint64_t));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order %u systems", count);
    }
    memset(scratch, 0, rows_bytes + count);
    graph.predecessors = (uint64_t *)(void *)scratch;
    graph.placed = (bool *)(scratch + rows_bytes);
    plan->order.count = 0;
    quern_result result = order_systems(plan, &graph);
    if (result == QUERN_OK) {
        plan->conflicts.count = pairs;
        memset(plan->conflicts.items, 0, pairs * sizeof *plan->conflicts.items);
        note_rules(plan, &graph);
    }
    quern__release(allocator, scratch, rows_bytes + count, _Alignof(uint64_t));
    return result;
}
