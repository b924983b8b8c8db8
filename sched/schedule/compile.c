/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "sched/schedule/conflict.h"
#include "sched/schedule/fuse.h"
#include "sched/schedule/order.h"

/* ---------------------------------------------------------------------------------------- segments */

static void release_segments(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->segments.count; i++) {
        quern__segment *segment = &plan->segments.items[i];
        for (uint32_t k = 0; k < segment->passes.count; k++)
            quern__pass_destroy(segment->passes.items[k]);
        quern__array_release(quern__plan_allocator(plan), &segment->passes);
        quern_graph_destroy(segment->graph);
    }
    plan->segments.count = 0;
}

/* Passed instead of a phase to mark the segments of a round of reactions. */
enum { REACTIONS = QUERN_MAX_PHASES };

static void add_segment(quern__plan *plan, quern__segment_kind kind, uint32_t phase, uint32_t first,
                        uint32_t end)
{
    const bool runs_reactions = phase == REACTIONS;
    plan->segments.items[plan->segments.count++] = (quern__segment){.kind = kind,
                                                                    .phase = runs_reactions ? 0 : phase,
                                                                    .runs_reactions = runs_reactions,
                                                                    .first = first,
                                                                    .end = end};
}

/* Adds the segments of a phase: the systems [first, end) in execution order, split at exclusive systems. */
static void split_phase(quern__plan *plan, uint32_t phase, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (!quern__system_has_flag(plan->order.items[i], QUERN_SYSTEM_EXCLUSIVE)) continue;
        if (first < i) add_segment(plan, QUERN__SEGMENT_RUN, phase, first, i);
        add_segment(plan, QUERN__SEGMENT_SYNC, phase, i, i);
        add_segment(plan, QUERN__SEGMENT_EXCLUSIVE, phase, i, i + 1);
        first = i + 1;
    }
    if (first < end) add_segment(plan, QUERN__SEGMENT_RUN, phase, first, end);
    add_segment(plan, QUERN__SEGMENT_SYNC, phase, end, end);
}

static quern_result create_graphs(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++)
        if (plan->segments.items[i].kind == QUERN__SEGMENT_RUN)
            result = quern_graph_create(quern__plan_allocator(plan), &plan->segments.items[i].graph);
    return result;
}

static quern_result compile_segments(quern__plan *plan)
{
    uint32_t most = 3 * plan->order.count + 2 * plan->phase_count + 2;
    if (!quern__array_reserve(quern__plan_allocator(plan), &plan->segments, most))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the segments of a schedule");
    uint32_t first = 0;
    for (uint32_t i = 0; i < plan->phase_count; i++) {
        quern__phase *phase = &plan->phases[i];
        uint32_t end = first;
        while (end < plan->order.count && plan->order.items[end]->phase == i &&
               plan->order.items[end]->reaction == NULL)
            end++;
        phase->first_segment = plan->segments.count;
        split_phase(plan, i, first, end);
        phase->end_segment = plan->segments.count;
        first = end;
    }
    plan->first_reaction_segment = plan->segments.count;
    if (first < plan->order.count) split_phase(plan, REACTIONS, first, plan->order.count);
    return create_graphs(plan);
}

/* ------------------------------------------------------------------------------------------- graphs */

static quern_result add_node(quern_graph *graph, const quern__pass *pass, quern_range_function *function,
                             void *argument, uint32_t *out_node)
{
    quern_graph_node_def def = {
        .function = function,
        .user_data = argument,
        .caller_only = quern__system_has_flag(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD)};
    return quern_graph_add_node(graph, &def, out_node);
}

/* Adds one node per stage. */
static quern_result add_run_nodes(quern_graph *graph, quern__pass *pass, uint32_t *out_last)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < pass->run_node_count && result == QUERN_OK; i++) {
        const uint32_t before = *out_last;
        result = add_node(graph, pass, pass->plan->functions->run, &pass->stages[i], out_last);
        if (i == 0) pass->run_node = *out_last;
        if (result == QUERN_OK && i > 0) result = quern_graph_add_edge(graph, before, *out_last);
    }
    return result;
}

/* Adds the nodes begin -> run -> end. A missing begin or end shares the number of the adjacent run node. */
static quern_result add_pass_nodes(quern_graph *graph, quern__pass *pass)
{
    quern_result result = QUERN_OK;
    uint32_t last_run = 0;
    if (pass->has_begin)
        result = add_node(graph, pass, pass->plan->functions->begin, pass, &pass->begin_node);
    if (result == QUERN_OK) result = add_run_nodes(graph, pass, &last_run);
    if (result != QUERN_OK) return result;
    if (!pass->has_begin) pass->begin_node = pass->run_node;
    if (pass->has_begin) result = quern_graph_add_edge(graph, pass->begin_node, pass->run_node);
    pass->end_node = last_run;
    if (result != QUERN_OK || !pass->has_end) return result;
    result = add_node(graph, pass, pass->plan->functions->end, pass, &pass->end_node);
    return result == QUERN_OK ? quern_graph_add_edge(graph, last_run, pass->end_node) : result;
}

/* Builds the graph of a RUN segment. */
static quern_result build_graph(const quern__segment *segment)
{
    quern_graph_clear(segment->graph);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < segment->passes.count && result == QUERN_OK; i++) {
        quern__pass *pass = segment->passes.items[i];
        result = add_pass_nodes(segment->graph, pass);
        for (uint32_t k = 0; k < pass->waits_for.count && result == QUERN_OK; k++)
            result = quern_graph_add_edge(segment->graph,
                                          segment->passes.items[pass->waits_for.items[k]]->end_node,
                                          pass->begin_node);
    }
    return result;
}

static bool has_nodes(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        if (segment->passes.items[i]->stage_count > segment->passes.items[i]->run_node_count) return false;
    return true;
}

/* Rebuilds the graph with one node for each stage. Needed when a pass has more stages than ever before,
 * because the trees of its relation have become deeper. */
static quern_result add_nodes(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (pass->stage_count > pass->run_node_count) pass->run_node_count = pass->stage_count;
    }
    quern_result result = build_graph(segment);
    for (uint32_t i = 0; i < segment->passes.count && result != QUERN_OK; i++)
        /* The graph is incomplete: the next call rebuilds it. */
        segment->passes.items[i]->run_node_count = 0;
    return result;
}

quern_result quern__compile_prepare(const quern__segment *segment)
{
    quern_result result = has_nodes(segment) ? QUERN_OK : add_nodes(segment);
    for (uint32_t i = 0; i < segment->passes.count && result == QUERN_OK; i++) {
        const quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->run_node_count && result == QUERN_OK; k++)
            result = quern_graph_set_count(segment->graph, pass->run_node + k,
                                           k < pass->stage_count ? pass->stages[k].item_count : 0);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern_result compile_passes(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    plan->pass_count = 0;
    plan->passes_version++;
    if (!quern__array_reserve(quern__plan_allocator(plan), &plan->pass_indices, 2 * plan->order.count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the passes of %u systems",
                           plan->order.count);
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++) {
        quern__segment *segment = &plan->segments.items[i];
        if (segment->kind == QUERN__SEGMENT_SYNC) continue;
        result = quern__fuse(plan, segment);
        if (result == QUERN_OK && segment->kind == QUERN__SEGMENT_RUN) result = build_graph(segment);
        for (uint32_t k = 0; k < segment->passes.count; k++)
            segment->passes.items[k]->number = plan->pass_count++;
    }
    return result;
}

static quern_result extend_passes(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++) {
        quern__segment *segment = &plan->segments.items[i];
        for (uint32_t k = 0; k < segment->passes.count && result == QUERN_OK; k++)
            result = quern__pass_extend(segment->passes.items[k]);
    }
    return result;
}

/* ------------------------------------------------------------------------------------- compilation */

static quern_result compile_systems(quern__plan *plan)
{
    release_segments(plan);
    quern_result result = plan->systems.count > 0 ? quern__order_systems(plan) : QUERN_OK;
    if (result == QUERN_OK) result = compile_segments(plan);
    return result != QUERN_OK ? result : quern__conflicts_start(plan);
}

static quern_result refresh_queries(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->order.count; i++) {
        quern__query *query = &plan->order.items[i]->query;
        quern_result result = query->term_count > 0 ? quern__query_refresh(query) : QUERN_OK;
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

quern_result quern__compile(quern__plan *plan)
{
    uint64_t version = plan->world->storage.archetypes_version;
    bool was_compiled = plan->is_compiled;
    if (was_compiled && version == plan->compiled_version) return QUERN_OK;
    plan->is_compiled = false; /* until everything below has succeeded */
    quern__plan_invalidate_segments(plan);
    quern_result result = was_compiled ? QUERN_OK : compile_systems(plan);
    if (result == QUERN_OK) result = refresh_queries(plan);
    if (result != QUERN_OK) return result;
    bool found;
    result = quern__conflicts_extend(plan, &found);
    if (result == QUERN_OK && (found || !was_compiled)) result = compile_passes(plan);
    if (result == QUERN_OK) result = extend_passes(plan);
    plan->is_compiled = result == QUERN_OK;
    plan->compiled_version = version;
    return result;
}

void quern__compile_release(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    release_segments(plan);
    quern__array_release(allocator, &plan->segments);
    quern__conflicts_release(plan);
    quern__array_release(allocator, &plan->pass_indices);
    quern__array_release(allocator, &plan->rules);
    quern__array_release(allocator, &plan->order);
}
