/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/graph.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4096 };

/* Each value moves toward the mean of its two neighbours until all moves are small. */
typedef struct Cloth {
    float now[COUNT], next[COUNT];
    float greatest_moves[QUERN_MAX_THREADS]; /* one per worker */
    uint32_t step_count;
} Cloth;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void relax(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    Cloth *cloth = user_data;
    float *greatest = &cloth->greatest_moves[worker_index];
    for (uint32_t i = begin; i < end; i++) {
        float left = i > 0 ? cloth->now[i - 1] : 0, right = i + 1 < COUNT ? cloth->now[i + 1] : 1;
        float move = (left + right) * 0.5f - cloth->now[i];
        cloth->next[i] = cloth->now[i] + move;
        if (move < 0) move = -move;
        if (move > *greatest) *greatest = move;
    }
}

static void copy_back(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    Cloth *cloth = user_data;
    (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        cloth->now[i] = cloth->next[i];
}

/* Returns the index of the edge to follow: 0 leads to another step, 1 to the end. */
static uint32_t is_at_rest(void *user_data, uint32_t worker_index)
{
    Cloth *cloth = user_data;
    float greatest = 0;
    (void)worker_index;
    for (uint32_t i = 0; i < QUERN_MAX_THREADS; i++) {
        if (cloth->greatest_moves[i] > greatest) greatest = cloth->greatest_moves[i];
        cloth->greatest_moves[i] = 0;
    }
    cloth->step_count++;
    return greatest < 0.01f;
}

static void show(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const Cloth *cloth = user_data;
    (void)begin, (void)end, (void)worker_index;
    printf("at rest after %u steps\n", cloth->step_count);
}

int main(void)
{
    static Cloth cloth;
    uint32_t start, relaxing, copying, choice, last;
    quern_jobs *jobs;
    quern_graph *graph;
    quern_counter counter = {0};
    check(quern_jobs_create(NULL, &jobs));
    check(quern_graph_create(NULL, &graph));
    check(quern_graph_add_node(graph, NULL, &start)); /* nodes without incoming edges run first */
    quern_graph_node_def loop = {.function = relax, .user_data = &cloth, .count = COUNT};
    check(quern_graph_add_node(graph, &loop, &relaxing));
    loop.function = copy_back;
    check(quern_graph_add_node(graph, &loop, &copying));
    quern_graph_node_def question = {
        .choose = is_at_rest, .user_data = &cloth, .choice_limit = 1000, .name = "is at rest"};
    check(quern_graph_add_node(graph, &question, &choice));
    quern_graph_node_def end = {.function = show, .user_data = &cloth, .on_worker = QUERN_ON_CALLER};
    check(quern_graph_add_node(graph, &end, &last));
    check(quern_graph_add_edge(graph, start, relaxing));
    check(quern_graph_add_edge(graph, relaxing, copying));
    check(quern_graph_add_edge(graph, copying, choice));
    check(quern_graph_add_edge(graph, choice, relaxing)); /* edge 0 of the choice */
    check(quern_graph_add_edge(graph, choice, last));     /* edge 1 */
    quern_graph_run_def run = {.counter = &counter};
    check(quern_graph_submit(graph, jobs, &run)); /* quern_graph_run would wait */
    check(quern_jobs_wait(jobs, &counter));
    check(quern_graph_result(graph)); /* QUERN_ERROR_LIMIT if 1000 steps are not enough */
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
    return 0;
}
