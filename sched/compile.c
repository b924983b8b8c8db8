/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/compile.h"

#include "sched/frame.h"

#include <stdio.h>

static const quern_allocator *allocator_of(const quern_schedule *schedule)
{
    return &schedule->world->storage.allocator;
}

/* -------------------------------------------------------------------------------------------- order */

/* Scratch of ordering: which system must precede which, by registration. */
typedef struct order_graph {
    uint32_t count;
    uint32_t words;         /* per row */
    uint64_t *predecessors; /* [system * words]: bits of systems that must come first */
    bool *placed;
} order_graph;

static uint64_t *predecessors_of(const order_graph *graph, uint32_t system)
{
    return graph->predecessors + (size_t)system * graph->words;
}

static quern_result add_rule(quern_schedule *schedule, order_graph *graph, const quern__system *system,
                             const quern__order_rule *rule)
{
    const char *word = rule->is_before ? "before" : "after";
    const quern__system *other =
        quern__schedule_system(schedule, quern_schedule_find(schedule, rule->name));
    if (other == NULL)
        return quern__fail(QUERN_ERROR_UNKNOWN_SYSTEM,
                           "system '%s' is to run %s '%s', which the schedule does not have", system->name,
                           word, rule->name);
    if (other->phase != system->phase || other == system)
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' (phase '%s') is to run %s '%s' (phase '%s'): before and after order different "
            "systems of one phase",
            system->name, schedule->phases[system->phase], word, other->name,
            schedule->phases[other->phase]);
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

/* No system of the phase is ready, so each waits for another: walking back must come round to a cycle. */
static quern_result fail_cycle(const quern_schedule *schedule, const order_graph *graph, uint32_t stuck)
{
    for (uint32_t i = 0; i < graph->count; i++) /* after that many steps the walk is inside the cycle */
        stuck = unplaced_predecessor(graph, stuck);
    char text[384];
    size_t used = (size_t)snprintf(text, sizeof text, "'%s'", schedule->systems.items[stuck]->name);
    for (uint32_t i = unplaced_predecessor(graph, stuck); used < sizeof text;
         i = unplaced_predecessor(graph, i)) {
        int written =
            snprintf(text + used, sizeof text - used, " after '%s'", schedule->systems.items[i]->name);
        used += written > 0 ? (size_t)written : 0;
        if (i == stuck) break;
    }
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT, "before and after form a cycle: %s", text);
}

/* Appends the phase's systems to the order: always the first by registration that nothing holds back. */
static quern_result order_phase(quern_schedule *schedule, order_graph *graph, uint32_t phase)
{
    for (;;) {
        uint32_t stuck = UINT32_MAX, next = UINT32_MAX;
        for (uint32_t i = 0; i < graph->count && next == UINT32_MAX; i++) {
            if (schedule->systems.items[i]->phase != phase || graph->placed[i]) continue;
            if (is_ready(graph, i))
                next = i;
            else
                stuck = i;
        }
        if (next == UINT32_MAX) return stuck == UINT32_MAX ? QUERN_OK : fail_cycle(schedule, graph, stuck);
        graph->placed[next] = true;
        quern__system *system = schedule->systems.items[next];
        system->position = schedule->order.count;
        schedule->order.items[schedule->order.count++] = system;
    }
}

static quern_result order_systems(quern_schedule *schedule, order_graph *graph)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < graph->count && result == QUERN_OK; i++) {
        const quern__system *system = schedule->systems.items[i];
        for (uint32_t k = 0; k < system->rules.count && result == QUERN_OK; k++)
            result = add_rule(schedule, graph, system, &system->rules.items[k]);
    }
    for (uint32_t phase = 0; phase < schedule->phase_count && result == QUERN_OK; phase++)
        result = order_phase(schedule, graph, phase);
    return result;
}

/* A before/after counts as a conflict, so that it becomes an edge like any other. */
static void note_rules(quern_schedule *schedule, const order_graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->count; k++)
            if (quern__bitset_has(predecessors_of(graph, i), k))
                *quern__schedule_conflict(schedule, schedule->systems.items[k]->position,
                                          schedule->systems.items[i]->position) =
                    (quern__conflict){.kind = QUERN__CONFLICT_DECLARED};
}

/* Orders the systems and starts the table of conflicts with what was declared. */
static quern_result compile_order(quern_schedule *schedule)
{
    const quern_allocator *allocator = allocator_of(schedule);
    uint32_t count = schedule->systems.count;
    uint32_t pairs = count * count; /* fits: QUERN_MAX_SYSTEMS is 1024 */
    order_graph graph = {.count = count, .words = QUERN__BITSET_WORDS(count)};
    size_t rows_bytes = (size_t)count * graph.words * sizeof(uint64_t);
    char *scratch = quern__allocate(allocator, rows_bytes + count, _Alignof(uint64_t));
    if (scratch == NULL || !quern__array_reserve(allocator, &schedule->order, count) ||
        !quern__array_reserve(allocator, &schedule->conflicts, pairs)) {
        quern__release(allocator, scratch, rows_bytes + count, _Alignof(uint64_t));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order %u systems", count);
    }
    memset(scratch, 0, rows_bytes + count);
    graph.predecessors = (uint64_t *)(void *)scratch;
    graph.placed = (bool *)(scratch + rows_bytes);
    schedule->order.count = 0;
    quern_result result = order_systems(schedule, &graph);
    if (result == QUERN_OK) {
        schedule->conflicts.count = pairs;
        memset(schedule->conflicts.items, 0, pairs * sizeof *schedule->conflicts.items);
        note_rules(schedule, &graph);
    }
    quern__release(allocator, scratch, rows_bytes + count, _Alignof(uint64_t));
    return result;
}

/* ---------------------------------------------------------------------------------------- conflicts */

/* The entry of a pair that may still be found to conflict, or NULL. Sync points stand between phases. */
static quern__conflict *open_pair(const quern_schedule *schedule, const quern__system *a,
                                  const quern__system *b)
{
    if (a == b || a->phase != b->phase) return NULL;
    bool in_order = a->position < b->position;
    quern__conflict *conflict = quern__schedule_conflict(schedule, in_order ? a->position : b->position,
                                                         in_order ? b->position : a->position);
    return conflict->kind == QUERN__NO_CONFLICT ? conflict : NULL;
}

static quern_result add_partner(quern_schedule *schedule, quern__system *system,
                                const quern__system *partner)
{
    if (!quern__array_reserve(allocator_of(schedule), &system->partners, system->partners.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the partners of system '%s'",
                           system->name);
    system->partners.items[system->partners.count++] = partner->position;
    return QUERN_OK;
}

/* Judges what does not depend on archetypes, and notes who has to be judged when archetypes appear. */
static quern_result judge_pair(quern_schedule *schedule, quern__system *a, quern__system *b)
{
    quern__conflict *conflict = open_pair(schedule, a, b);
    if (conflict == NULL) return QUERN_OK;
    *conflict = quern__access_meet(&a->access, &b->access);
    if (conflict->kind != QUERN__NO_CONFLICT || !quern__access_may_meet(&a->access, &b->access))
        return QUERN_OK;
    quern_result result = add_partner(schedule, a, b);
    return result != QUERN_OK ? result : add_partner(schedule, b, a);
}

static quern_result judge_declared(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->order.count; i++) {
        schedule->order.items[i]->judged_count = 0;
        schedule->order.items[i]->partners.count = 0;
    }
    quern_result result = QUERN_OK;
    for (uint32_t later = 1; later < schedule->order.count && result == QUERN_OK; later++)
        for (uint32_t earlier = 0; earlier < later && result == QUERN_OK; earlier++)
            result = judge_pair(schedule, schedule->order.items[earlier], schedule->order.items[later]);
    return result;
}

/* Matches are sorted by archetype. */
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

/* What arises from a system matching an archetype that it did not match before. True when a conflict is new. */
static bool judge_match(quern_schedule *schedule, quern__system *system, const quern__archetype *archetype)
{
    bool found = false;
    for (uint32_t i = 0; i < system->partners.count; i++) {
        quern__system *other = schedule->order.items[system->partners.items[i]];
        quern__conflict *conflict = open_pair(schedule, system, other);
        if (conflict == NULL) continue;
        *conflict = quern__access_meet_on(&system->access, &other->access, archetype,
                                          is_match(&other->query, archetype));
        found |= conflict->kind != QUERN__NO_CONFLICT;
    }
    return found;
}

static quern_result refresh_queries(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->order.count; i++) {
        quern__query *query = &schedule->order.items[i]->query;
        quern_result result = query->term_count > 0 ? quern__query_refresh(query) : QUERN_OK;
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Judges the matches that are new since the last time. */
static bool judge_new_matches(quern_schedule *schedule)
{
    bool found = false;
    for (uint32_t i = 0; i < schedule->order.count; i++) {
        quern__system *system = schedule->order.items[i];
        if (system->judged_collected_count != system->query.collected_count) system->judged_count = 0;
        system->judged_collected_count = system->query.collected_count;
        for (; system->judged_count < system->query.matches.count; system->judged_count++)
            found |=
                judge_match(schedule, system, system->query.matches.items[system->judged_count].archetype);
    }
    return found;
}

/* ------------------------------------------------------------------------------------------- steps */

static void release_steps(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->steps.count; i++)
        quern_graph_destroy(schedule->steps.items[i].graph);
    schedule->steps.count = 0;
}

static void step_add(quern_schedule *schedule, quern__step_kind kind, uint32_t phase, uint32_t first,
                     uint32_t end)
{
    schedule->steps.items[schedule->steps.count++] =
        (quern__step){.kind = kind, .phase = phase, .first = first, .end = end};
}

/* Cuts the phase's part of the order, [first, end), at its exclusive systems. */
static void cut_phase(quern_schedule *schedule, uint32_t phase, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (!quern__system_is(schedule->order.items[i], QUERN_SYSTEM_EXCLUSIVE)) continue;
        if (first < i) step_add(schedule, QUERN__STEP_RUN, phase, first, i);
        step_add(schedule, QUERN__STEP_SYNC, phase, i, i);
        step_add(schedule, QUERN__STEP_EXCLUSIVE, phase, i, i + 1);
        first = i + 1;
    }
    if (first < end) step_add(schedule, QUERN__STEP_RUN, phase, first, end);
    step_add(schedule, QUERN__STEP_SYNC, phase, end, end);
}

static quern_result compile_steps(quern_schedule *schedule)
{
    release_steps(schedule);
    uint32_t most = 3 * schedule->order.count + 2 * schedule->phase_count;
    if (!quern__array_reserve(allocator_of(schedule), &schedule->steps, most))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the steps of a schedule");
    uint32_t first = 0;
    for (uint32_t phase = 0; phase < schedule->phase_count; phase++) {
        uint32_t end = first;
        while (end < schedule->order.count && schedule->order.items[end]->phase == phase)
            end++;
        cut_phase(schedule, phase, first, end);
        first = end;
    }
    for (uint32_t i = 0; i < schedule->steps.count; i++) {
        quern__step *step = &schedule->steps.items[i];
        if (step->kind != QUERN__STEP_RUN) continue;
        quern_result result = quern_graph_create(allocator_of(schedule), &step->graph);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- graphs */

static quern_result add_node(quern_graph *graph, quern__system *system, quern_range_function *function,
                             uint32_t *out_node)
{
    quern_graph_node_def def = quern_graph_node_def_default();
    def.function = function;
    def.argument = system;
    def.caller_only = quern__system_is(system, QUERN_SYSTEM_MAIN_THREAD);
    return quern_graph_add_node(graph, &def, out_node);
}

/* begin -> run -> end; the parts that are missing take the number of their neighbour. */
static quern_result add_system_nodes(quern_graph *graph, quern__system *system)
{
    quern_result result = QUERN_OK;
    if (system->begin != NULL)
        result = add_node(graph, system, quern__frame_begin_node, &system->begin_node);
    if (result == QUERN_OK) result = add_node(graph, system, quern__frame_run_node, &system->run_node);
    if (system->begin == NULL) system->begin_node = system->run_node;
    if (result == QUERN_OK && system->begin != NULL)
        result = quern_graph_add_edge(graph, system->begin_node, system->run_node);
    system->end_node = system->run_node;
    if (result != QUERN_OK || system->end == NULL) return result;
    result = add_node(graph, system, quern__frame_end_node, &system->end_node);
    if (result == QUERN_OK) result = quern_graph_add_edge(graph, system->run_node, system->end_node);
    return result;
}

/* Edges from nearer to farther systems; one that already follows from those added is left out. reached[i]: the
 * systems that i waits for, directly or not, as bits by position. */
static quern_result add_conflict_edges(const quern_schedule *schedule, const quern__step *step,
                                       uint32_t later, uint64_t *reached, uint32_t words)
{
    uint64_t *mine = reached + (size_t)later * words;
    for (uint32_t earlier = later; earlier-- > step->first;) {
        if (quern__schedule_conflict(schedule, earlier, later)->kind == QUERN__NO_CONFLICT ||
            quern__bitset_has(mine, earlier))
            continue;
        quern_result result = quern_graph_add_edge(step->graph, schedule->order.items[earlier]->end_node,
                                                   schedule->order.items[later]->begin_node);
        if (result != QUERN_OK) return result;
        quern__bitset_add(mine, earlier);
        for (uint32_t word = 0; word < words; word++)
            mine[word] |= reached[(size_t)earlier * words + word];
    }
    return QUERN_OK;
}

static quern_result compile_graph(const quern_schedule *schedule, const quern__step *step,
                                  uint64_t *reached, uint32_t words)
{
    quern_graph_clear(step->graph);
    quern_result result = QUERN_OK;
    for (uint32_t i = step->first; i < step->end && result == QUERN_OK; i++) {
        result = add_system_nodes(step->graph, schedule->order.items[i]);
        if (result == QUERN_OK) result = add_conflict_edges(schedule, step, i, reached, words);
    }
    return result;
}

static quern_result compile_graphs(quern_schedule *schedule)
{
    uint32_t count = schedule->order.count, words = QUERN__BITSET_WORDS(count);
    if (count == 0) return QUERN_OK;
    size_t bytes = (size_t)count * words * sizeof(uint64_t);
    uint64_t *reached = quern__allocate(allocator_of(schedule), bytes, _Alignof(uint64_t));
    if (reached == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to link %u systems", count);
    memset(reached, 0, bytes);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < schedule->steps.count && result == QUERN_OK; i++)
        if (schedule->steps.items[i].kind == QUERN__STEP_RUN)
            result = compile_graph(schedule, &schedule->steps.items[i], reached, words);
    quern__release(allocator_of(schedule), reached, bytes, _Alignof(uint64_t));
    return result;
}

/* --------------------------------------------------------------------------------------------- all */

static quern_result compile_systems(quern_schedule *schedule)
{
    quern_result result = schedule->systems.count > 0 ? compile_order(schedule) : QUERN_OK;
    if (result == QUERN_OK) result = compile_steps(schedule);
    return result != QUERN_OK ? result : judge_declared(schedule);
}

quern_result quern__compile(quern_schedule *schedule)
{
    bool was_compiled = schedule->is_compiled;
    schedule->is_compiled = false; /* until all of this has succeeded */
    quern_result result = was_compiled ? QUERN_OK : compile_systems(schedule);
    if (result == QUERN_OK) result = refresh_queries(schedule);
    if (result != QUERN_OK) return result;
    if (judge_new_matches(schedule) || !was_compiled) result = compile_graphs(schedule);
    schedule->is_compiled = result == QUERN_OK;
    return result;
}

void quern__compile_release(quern_schedule *schedule)
{
    release_steps(schedule);
    quern__array_release(allocator_of(schedule), &schedule->steps);
    quern__array_release(allocator_of(schedule), &schedule->conflicts);
    quern__array_release(allocator_of(schedule), &schedule->order);
}
