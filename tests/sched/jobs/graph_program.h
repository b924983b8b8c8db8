/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_SCHED_JOBS_GRAPH_PROGRAM_H
#define TESTS_SCHED_JOBS_GRAPH_PROGRAM_H

/* Random graphs with nodes that choose, nodes that are graphs, priorities and caller_only nodes; and a
 * simple interpreter of these graphs, which computes how often each node has to run. */

#include "tests/sched/jobs/planned_graph.h"

enum { PROGRAM_NODES = 24, PROGRAM_EDGES = 4, PROGRAM_DEPTH = 3, MOST_CHOICES = 6 };

typedef struct program program;

typedef struct step {
    program *of;
    uint32_t number;
    uint32_t count;
    bool chooses;
    bool caller_only;
    program *inner;
    uint32_t edges[PROGRAM_EDGES];
    uint32_t edge_count;
    uint32_t predecessor_count;
    bool is_chosen;
    _Atomic uint32_t item_count; /* number of executions */
    _Atomic uint32_t call_count; /* number of choices */
    _Atomic uint32_t in_call;    /* calls in progress, for nodes with one item */
    uint32_t expected_items;
    uint32_t expected_calls;
    uint32_t waiting_count; /* used by the interpreter */
} step;

struct program {
    quern_graph *graph;
    uint64_t seed;
    uint32_t depth;
    uint32_t node_count;
    step steps[PROGRAM_NODES];
};

/* Result of the k-th call: some edge or none. Late calls return none, so that each program ends. */
static inline uint32_t pick(const step *choice, uint32_t k)
{
    if (k % (MOST_CHOICES + 1) == MOST_CHOICES) return UINT32_MAX;
    random_source random = {choice->of->seed * 7919 + choice->number * 104729 + k};
    random_below(&random, 2);
    return random_below(&random, choice->edge_count + 2);
}

static inline uint32_t choose_edge(void *argument, uint32_t worker_index)
{
    step *mine = argument;
    cr_expect(atomic_fetch_add(&mine->in_call, 1) == 0, "a node runs twice at a time");
    uint32_t choice = pick(mine, atomic_fetch_add(&mine->call_count, 1));
    atomic_fetch_sub(&mine->in_call, 1);
    return choice;
}

static inline void run_step(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    step *mine = argument;
    if (mine->count == 1)
        cr_expect(atomic_fetch_add(&mine->in_call, 1) == 0, "a node runs twice at a time");
    atomic_fetch_add(&mine->item_count, end - begin);
    if (mine->number % 5 == 0) pass_time(3);
    if (mine->count == 1) atomic_fetch_sub(&mine->in_call, 1);
}

static inline program *open_program(uint64_t seed, uint32_t depth);

static inline void add_step(program *of, random_source *random)
{
    step *mine = &of->steps[of->node_count];
    mine->of = of;
    mine->number = of->node_count++;
    mine->count = random_chance(random, 60) ? 1 : 1 + random_below(random, MAX_ITEMS);
    mine->chooses = random_chance(random, 25);
    mine->caller_only = random_chance(random, 10);
    if (!mine->chooses && !mine->caller_only && of->depth < PROGRAM_DEPTH && random_chance(random, 12))
        mine->inner = open_program(of->seed * 31 + mine->number, of->depth + 1);
    quern_graph_node_def def = {.user_data = mine, .on_worker = mine->caller_only ? QUERN_ON_CALLER : 0};
    if (mine->chooses)
        def.choose = choose_edge;
    else if (mine->inner != NULL)
        def.graph = mine->inner->graph;
    else
        def.function = run_step, def.count = mine->count, def.grain = random_below(random, 3);
    if (of->seed % 3 == 0) def.priority = (quern_priority)random_below(random, 3);
    cr_assert_eq(quern_graph_add_node(of->graph, &def, NULL), QUERN_OK, "%s", quern_error_message());
}

static inline void add_steps_edges(program *of, random_source *random)
{
    for (uint32_t i = 0; i < of->node_count; i++) {
        step *mine = &of->steps[i];
        for (uint32_t e = random_below(random, PROGRAM_EDGES + 1); e != 0; e--) {
            uint32_t after = random_below(random, of->node_count);
            if (!mine->chooses && after <= i) continue;
            if (mine->chooses && after == 0) continue; /* the first node can begin */
            mine->edges[mine->edge_count++] = after;
            if (mine->chooses)
                of->steps[after].is_chosen = true;
            else
                of->steps[after].predecessor_count++;
            add_edge(of->graph, i, after);
        }
    }
}

static inline program *open_program(uint64_t seed, uint32_t depth)
{
    random_source random = {seed};
    program *of = calloc(1, sizeof *of);
    cr_assert_not_null(of);
    of->seed = seed;
    of->depth = depth;
    of->graph = open_graph();
    for (uint32_t count = 1 + random_below(&random, PROGRAM_NODES); count != 0; count--)
        add_step(of, &random);
    add_steps_edges(of, &random);
    return of;
}

static inline void close_program(program *of)
{
    quern_graph_destroy(of->graph);
    for (uint32_t i = 0; i < of->node_count; i++)
        if (of->steps[i].inner != NULL) close_program(of->steps[i].inner);
    free(of);
}

/* Checks that each node ran as often as one run of the program requires, and that its executions were
 * sequential. */
static inline void interpret(program *of)
{
    uint32_t due_counts[PROGRAM_NODES] = {0};
    for (uint32_t i = 0; i < of->node_count; i++) {
        of->steps[i].waiting_count = of->steps[i].predecessor_count;
        due_counts[i] = of->steps[i].predecessor_count == 0 && !of->steps[i].is_chosen;
    }
    for (uint32_t i = 0; i < of->node_count; i++) {
        if (due_counts[i] == 0) continue;
        step *mine = &of->steps[i];
        due_counts[i]--;
        if (mine->chooses) {
            uint32_t choice = pick(mine, mine->expected_calls++);
            if (choice < mine->edge_count) due_counts[mine->edges[choice]]++;
        } else {
            if (mine->inner != NULL)
                interpret(mine->inner);
            else
                mine->expected_items += mine->count;
            for (uint32_t e = 0; e < mine->edge_count; e++) {
                step *after = &of->steps[mine->edges[e]];
                if (--after->waiting_count != 0) continue;
                after->waiting_count = after->predecessor_count;
                due_counts[mine->edges[e]]++;
            }
        }
        i = UINT32_MAX; /* starts again at the first */
    }
}

static inline void check_program(const program *of)
{
    for (uint32_t i = 0; i < of->node_count; i++) {
        const step *mine = &of->steps[i];
        if (mine->inner != NULL) check_program(mine->inner);
        cr_expect(atomic_load(&mine->item_count) == mine->expected_items,
                  "program %llu node %u: %u items, not %u", (unsigned long long)of->seed, i,
                  atomic_load(&mine->item_count), mine->expected_items);
        cr_expect(atomic_load(&mine->call_count) == mine->expected_calls,
                  "program %llu node %u: %u calls, not %u", (unsigned long long)of->seed, i,
                  atomic_load(&mine->call_count), mine->expected_calls);
    }
}

#endif
