/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* Building graphs. graph_run.c runs them. */

enum { MIN_CAPACITY = 16 };

#define DEFAULT_CHOICE_LIMIT (UINT32_C(1) << 31)

quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph)
{
    if (out_graph == NULL) return quern__fail_null("quern_graph_create", "out_graph");
    quern_allocator chosen;
    quern_result result = quern__choose_allocator(allocator, "quern_graph_create", &chosen);
    if (result != QUERN_OK) return result;
    quern_graph *graph = quern__allocate(&chosen, sizeof *graph, _Alignof(quern_graph));
    if (graph == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_graph_create: out of memory for the graph");
    memset((void *)graph, 0, sizeof *graph);
    graph->allocator = chosen;
    atomic_init(&graph->claimed_by, NULL);
    *out_graph = graph;
    return QUERN_OK;
}

static quern_result check_idle(const quern_graph *graph, const char *function)
{
    if (!quern__graph_is_running(graph)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: the graph is running; wait for the run first",
                       function);
}

void quern_graph_destroy(quern_graph *graph)
{
    if (graph == NULL) return;
    if (quern__graph_is_running(graph)) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_graph_destroy: the graph is running and was not destroyed; wait for the run first");
        return;
    }
    quern_allocator allocator = graph->allocator;
    quern__graph_release_tasks(graph);
    if (graph->own_run.has_ready_mutex) quern__mutex_deinit(&graph->own_run.ready_mutex);
    quern__release(&allocator, graph->nodes, graph->node_capacity * sizeof(quern__graph_node),
                   _Alignof(quern__graph_node));
    quern__release(&allocator, graph->edges, graph->edge_capacity * sizeof(quern__graph_edge),
                   _Alignof(quern__graph_node));
    quern__release(&allocator, graph, sizeof *graph, _Alignof(quern_graph));
}

void quern_graph_clear(quern_graph *graph)
{
    if (graph == NULL) return;
    if (quern__graph_is_running(graph)) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_graph_clear: the graph is running and was not cleared; wait for the run first");
        return;
    }
    graph->node_count = 0;
    graph->edge_count = 0;
    graph->choice_count = 0;
    graph->inner_count = 0;
    graph->caller_count = 0;
    graph->prioritized_count = 0;
    quern__times_forget(&graph->times);
}

/* Returns an array with room for one more item, aligned like quern__graph_node. Returns NULL if there is no
 * memory; then nothing has changed. */
static void *grow(const quern_allocator *allocator, void *items, uint32_t count, uint32_t *capacity,
                  size_t item_bytes)
{
    if (count < *capacity) return items;
    uint32_t new_capacity = count < MIN_CAPACITY ? MIN_CAPACITY : count * 2;
    void *new_items = quern__allocate(allocator, new_capacity * item_bytes, _Alignof(quern__graph_node));
    if (new_items == NULL) return NULL;
    if (count != 0) memcpy(new_items, items, count * item_bytes);
    quern__release(allocator, items, *capacity * item_bytes, _Alignof(quern__graph_node));
    *capacity = new_capacity;
    return new_items;
}

static quern_result refuse_node(const char *what)
{
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "quern_graph_add_node: %s", what);
}

static quern_result check_node(const quern_graph *graph, const quern_graph_node_def *def)
{
    if (graph->node_count == QUERN_MAX_GRAPH_NODES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "quern_graph_add_node: a graph has at most %d nodes: split the graph, and add "
                           "one part as a node",
                           QUERN_MAX_GRAPH_NODES);
    if ((uint32_t)def->priority > QUERN_PRIORITY_LOW)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_graph_add_node: def->priority %d is no quern_priority",
                           (int)def->priority);
    if ((def->function != NULL) + (def->choose != NULL) + (def->graph != NULL) > 1)
        return refuse_node("set only one of def->function, def->choose and def->graph");
    if (def->choose == NULL && def->choice_limit != 0)
        return refuse_node("def->choice_limit is set; it needs def->choose");
    if ((def->choose != NULL || def->graph != NULL) && (def->count > 1 || def->grain != 0))
        return refuse_node(
            "a node with choose or graph has no items; leave def->count and def->grain at 0");
    if (def->on_worker != 0 && def->on_worker != QUERN_ON_CALLER)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_graph_add_node: def->on_worker is %u; a node runs on any worker (0) or on the "
            "caller (QUERN_ON_CALLER): for one worker, submit a job",
            (unsigned)def->on_worker);
    if (def->graph != NULL && def->on_worker != 0)
        return refuse_node("def->on_worker is set, and def->graph, too; set it for nodes of that graph");
    if (def->graph == graph)
        return refuse_node("def->graph is the graph itself; a graph cannot be a node of itself");
    return QUERN_OK;
}

quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def, uint32_t *out_node)
{
    static const quern_graph_node_def joint = {0};
    if (def == NULL) def = &joint;
    if (graph == NULL) return quern__fail_null("quern_graph_add_node", "graph");
    quern_result result = check_idle(graph, "quern_graph_add_node");
    if (result == QUERN_OK) result = check_node(graph, def);
    if (result != QUERN_OK) return result;
    quern__graph_node *nodes = grow(&graph->allocator, graph->nodes, graph->node_count,
                                    &graph->node_capacity, sizeof(quern__graph_node));
    if (nodes == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_graph_add_node: out of memory for node %u",
                           (unsigned)graph->node_count);
    graph->nodes = nodes;
    nodes[graph->node_count] = (quern__graph_node){
        .range = {.function = def->function,
                  .user_data = def->user_data,
                  .count = def->count != 0 ? def->count : 1,
                  .grain = def->grain},
        .first_edge = QUERN__NO_EDGE,
        .choose = def->choose,
        .choice_limit = def->choice_limit != 0 ? def->choice_limit : DEFAULT_CHOICE_LIMIT,
        .inner = def->graph,
        .name = def->name,
        .priority = def->priority,
        .is_for_caller = def->on_worker == QUERN_ON_CALLER,
    };
    if (out_node != NULL) *out_node = graph->node_count;
    /* Unusual properties are counted, so that runs need not search for them. */
    const quern__graph_node *node = &nodes[graph->node_count];
    graph->choice_count += node->choose != NULL;
    graph->inner_count += node->inner != NULL;
    graph->caller_count += node->is_for_caller;
    graph->prioritized_count += node->priority != QUERN_PRIORITY_NORMAL;
    graph->node_count++;
    quern__times_forget(&graph->times);
    return QUERN_OK;
}

quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after)
{
    if (graph == NULL) return quern__fail_null("quern_graph_add_edge", "graph");
    quern_result result = check_idle(graph, "quern_graph_add_edge");
    if (result != QUERN_OK) return result;
    const uint32_t missing = after >= graph->node_count ? after : before;
    if (missing >= graph->node_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_graph_add_edge: no node %u; the graph has %u", (unsigned)missing,
                           (unsigned)graph->node_count);
    if (before >= after && graph->nodes[before].choose == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_graph_add_edge: edge from %u to %u; only nodes that choose may have edges to "
            "themselves or to lower indices",
            (unsigned)before, (unsigned)after);
    quern__graph_edge *edges = NULL;
    if (graph->edge_count < QUERN__NO_EDGE / 2)
        edges = grow(&graph->allocator, graph->edges, graph->edge_count, &graph->edge_capacity,
                     sizeof(quern__graph_edge));
    if (edges == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_graph_add_edge: out of memory for edge %u",
                           (unsigned)graph->edge_count);
    graph->edges = edges;
    edges[graph->edge_count] = (quern__graph_edge){.after = after, .next = graph->nodes[before].first_edge};
    graph->nodes[before].first_edge = graph->edge_count++;
    if (graph->nodes[before].choose != NULL) {
        graph->nodes[before].edge_count++;
        graph->nodes[after].is_chosen = true;
    } else {
        graph->nodes[after].predecessor_count++;
    }
    return QUERN_OK;
}

quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count)
{
    if (graph == NULL) return quern__fail_null("quern_graph_set_count", "graph");
    quern_result result = check_idle(graph, "quern_graph_set_count");
    if (result != QUERN_OK) return result;
    if (node >= graph->node_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_graph_set_count: no node %u; the graph has %u", (unsigned)node,
                           (unsigned)graph->node_count);
    if (graph->nodes[node].choose != NULL || graph->nodes[node].inner != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_graph_set_count: node %u %s and has no items: name a node of items",
                           (unsigned)node, graph->nodes[node].choose != NULL ? "chooses" : "is a graph");
    graph->nodes[node].range.count = count;
    return QUERN_OK;
}
