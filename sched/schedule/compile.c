/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "sched/schedule/conflict.h"
#include "sched/schedule/fuse.h"
#include "sched/schedule/order.h"

/* ------------------------------------------------------------------------------------------- steps */

static void release_steps(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->steps.count; i++) {
        quern__step *step = &schedule->steps.items[i];
        for (uint32_t k = 0; k < step->passes.count; k++)
            quern__pass_destroy(step->passes.items[k]);
        quern__array_release(quern__schedule_allocator(schedule), &step->passes);
        quern_graph_destroy(step->graph);
    }
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

static quern_result create_graphs(quern_schedule *schedule)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < schedule->steps.count && result == QUERN_OK; i++)
        if (schedule->steps.items[i].kind == QUERN__STEP_RUN)
            result =
                quern_graph_create(quern__schedule_allocator(schedule), &schedule->steps.items[i].graph);
    return result;
}

static quern_result compile_steps(quern_schedule *schedule)
{
    uint32_t most = 3 * schedule->order.count + 2 * schedule->phase_count;
    if (!quern__array_reserve(quern__schedule_allocator(schedule), &schedule->steps, most))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the steps of a schedule");
    uint32_t first = 0;
    for (uint32_t i = 0; i < schedule->phase_count; i++) {
        quern__phase *phase = &schedule->phases[i];
        uint32_t end = first;
        while (end < schedule->order.count && schedule->order.items[end]->phase == i)
            end++;
        phase->first_step = schedule->steps.count;
        cut_phase(schedule, i, first, end);
        phase->end_step = schedule->steps.count;
        first = end;
    }
    return create_graphs(schedule);
}

/* ------------------------------------------------------------------------------------------- graphs */

static quern_result add_node(quern_graph *graph, quern__pass *pass, quern_range_function *function,
                             uint32_t *out_node)
{
    quern_graph_node_def def = quern_graph_node_def_default();
    def.function = function;
    def.argument = pass;
    def.caller_only = quern__system_is(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD);
    return quern_graph_add_node(graph, &def, out_node);
}

/* begin -> run -> end; the parts that are missing take the number of their neighbour. */
static quern_result add_pass_nodes(quern_graph *graph, quern__pass *pass)
{
    quern_result result = QUERN_OK;
    if (pass->has_begin) result = add_node(graph, pass, quern__pass_begin, &pass->begin_node);
    if (result == QUERN_OK) result = add_node(graph, pass, quern__pass_run, &pass->run_node);
    if (!pass->has_begin) pass->begin_node = pass->run_node;
    if (result == QUERN_OK && pass->has_begin)
        result = quern_graph_add_edge(graph, pass->begin_node, pass->run_node);
    pass->end_node = pass->run_node;
    if (result != QUERN_OK || !pass->has_end) return result;
    result = add_node(graph, pass, quern__pass_end, &pass->end_node);
    return result == QUERN_OK ? quern_graph_add_edge(graph, pass->run_node, pass->end_node) : result;
}

static bool must_wait(const quern__pass *pass, const quern__pass *other)
{
    return other->index < pass->index && quern__fuse_conflict(other, pass).kind != QUERN__NO_CONFLICT;
}

/* Edges from nearer to farther passes; one that already follows from those added is left out. reached[i]:
 * the passes that i waits for, directly or not, as bits by place in the step. */
static quern_result add_edges(const quern__step *step, uint32_t later, uint64_t *reached, uint32_t words)
{
    quern__pass *pass = step->passes.items[later];
    uint64_t *mine = reached + (size_t)later * words;
    for (uint32_t earlier = later; earlier-- > 0;) {
        const quern__pass *other = step->passes.items[earlier];
        if (quern__bitset_has(mine, earlier) || !must_wait(pass, other)) continue;
        quern_result result = quern_graph_add_edge(step->graph, other->end_node, pass->begin_node);
        if (result != QUERN_OK) return result;
        if (!quern__array_reserve(quern__schedule_allocator(pass->schedule), &pass->waits_for,
                                  pass->waits_for.count + 1))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for an edge between passes");
        pass->waits_for.items[pass->waits_for.count++] = earlier;
        quern__bitset_add(mine, earlier);
        for (uint32_t word = 0; word < words; word++)
            mine[word] |= reached[(size_t)earlier * words + word];
    }
    return QUERN_OK;
}

static quern_result link_passes(const quern_schedule *schedule, const quern__step *step)
{
    uint32_t count = step->passes.count, words = QUERN__BITSET_WORDS(count);
    size_t bytes = (size_t)count * words * sizeof(uint64_t);
    uint64_t *reached = quern__allocate(quern__schedule_allocator(schedule), bytes, _Alignof(uint64_t));
    if (reached == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to link %u passes", count);
    memset(reached, 0, bytes);
    quern_graph_clear(step->graph);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = add_pass_nodes(step->graph, step->passes.items[i]);
        if (result == QUERN_OK) result = add_edges(step, i, reached, words);
    }
    quern__release(quern__schedule_allocator(schedule), reached, bytes, _Alignof(uint64_t));
    return result;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern_result compile_passes(quern_schedule *schedule)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < schedule->steps.count && result == QUERN_OK; i++) {
        quern__step *step = &schedule->steps.items[i];
        if (step->kind == QUERN__STEP_SYNC) continue;
        result = quern__fuse(schedule, step);
        if (result == QUERN_OK && step->kind == QUERN__STEP_RUN) result = link_passes(schedule, step);
    }
    return result;
}

static quern_result extend_passes(quern_schedule *schedule)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < schedule->steps.count && result == QUERN_OK; i++) {
        quern__step *step = &schedule->steps.items[i];
        for (uint32_t k = 0; k < step->passes.count && result == QUERN_OK; k++)
            result = quern__pass_extend(step->passes.items[k]);
    }
    return result;
}

/* --------------------------------------------------------------------------------------------- all */

static quern_result compile_systems(quern_schedule *schedule)
{
    release_steps(schedule);
    quern_result result = schedule->systems.count > 0 ? quern__order_systems(schedule) : QUERN_OK;
    if (result == QUERN_OK) result = compile_steps(schedule);
    return result != QUERN_OK ? result : quern__conflicts_start(schedule);
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

quern_result quern__compile(quern_schedule *schedule)
{
    uint64_t version = schedule->world->storage.archetypes_version;
    bool was_compiled = schedule->is_compiled;
    if (was_compiled && version == schedule->compiled_version) return QUERN_OK;
    schedule->is_compiled = false; /* until all of this has succeeded */
    quern__schedule_unprepare(schedule);
    quern_result result = was_compiled ? QUERN_OK : compile_systems(schedule);
    if (result == QUERN_OK) result = refresh_queries(schedule);
    if (result != QUERN_OK) return result;
    bool found = quern__conflicts_extend(schedule);
    if (found || !was_compiled) result = compile_passes(schedule);
    if (result == QUERN_OK) result = extend_passes(schedule);
    schedule->is_compiled = result == QUERN_OK;
    schedule->compiled_version = version;
    return result;
}

void quern__compile_release(quern_schedule *schedule)
{
    const quern_allocator *allocator = quern__schedule_allocator(schedule);
    release_steps(schedule);
    quern__array_release(allocator, &schedule->steps);
    quern__array_release(allocator, &schedule->conflicts);
    quern__array_release(allocator, &schedule->order);
}
