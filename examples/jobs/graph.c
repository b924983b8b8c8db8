/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/graph.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4096 };

/* Each value moves toward the mean of its two neighbours until all moves are small. */
typedef struct cloth {
    float now[COUNT], next[COUNT];
    float moves[QUERN_MAX_THREADS]; /* greatest move, per worker */
    uint32_t step_count;
} cloth;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void relax(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    cloth *of = user_data;
    for (uint32_t i = begin; i < end; i++) {
        float left = i > 0 ? of->now[i - 1] : 0, right = i + 1 < COUNT ? of->now[i + 1] : 1;
        float move = (left + right) * 0.5f - of->now[i];
        of->next[i] = of->now[i] + move;
        if (move < 0) move = -move;
        if (move > of->moves[worker_index]) of->moves[worker_index] = move;
    }
}

static void take_over(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    cloth *of = user_data;
    (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        of->now[i] = of->next[i];
}

/* Returns which edge to follow: 0 leads back, 1 to the end. */
static uint32_t is_at_rest(void *user_data, uint32_t worker_index)
{
    cloth *of = user_data;
    float greatest = 0;
    (void)worker_index;
    for (uint32_t i = 0; i < QUERN_MAX_THREADS; i++) {
        if (of->moves[i] > greatest) greatest = of->moves[i];
        of->moves[i] = 0;
    }
    of->step_count++;
    return greatest < 0.01f;
}

static void show(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const cloth *of = user_data;
    (void)begin, (void)end, (void)worker_index;
    printf("at rest after %u steps\n", of->step_count);
}

int main(void)
{
    static cloth all;
    uint32_t start, relaxing, taking, choice, last;
    quern_jobs *jobs;
    quern_graph *graph;
    quern_counter counter = {0};
    check(quern_jobs_create(NULL, &jobs));
    check(quern_graph_create(NULL, &graph));
    check(quern_graph_add_node(graph, NULL, &start)); /* a node without edges to it begins */
    quern_graph_node_def loop = {.function = relax, .user_data = &all, .count = COUNT};
    check(quern_graph_add_node(graph, &loop, &relaxing));
    loop.function = take_over;
    check(quern_graph_add_node(graph, &loop, &taking));
    quern_graph_node_def question = {
        .choose = is_at_rest, .user_data = &all, .choice_limit = 1000, .name = "is at rest"};
    check(quern_graph_add_node(graph, &question, &choice));
    quern_graph_node_def end = {.function = show, .user_data = &all, .caller_only = true};
    check(quern_graph_add_node(graph, &end, &last));
    check(quern_graph_add_edge(graph, start, relaxing));
    check(quern_graph_add_edge(graph, relaxing, taking));
    check(quern_graph_add_edge(graph, taking, choice));
    check(quern_graph_add_edge(graph, choice, relaxing));
    check(quern_graph_add_edge(graph, choice, last));
    quern_graph_run_def run = {.counter = &counter};
    check(quern_graph_submit(graph, jobs, &run)); /* quern_graph_run would wait */
    check(quern_jobs_wait(jobs, &counter));
    check(quern_graph_result(graph)); /* LIMIT if it never came to rest */
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
    return 0;
}
