/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on pools of threads, as one program. */
#include <quern/graph.h>
#include <quern/jobs.h>
#include <quern/quern.h>

#include <stdatomic.h>
#include <stdio.h>

enum { MILLISECOND = 1000000 }; /* in nanoseconds */

/* A pool for a machine with a few fast processors, whose numbers the program knows. */
static quern_jobs *create_pool(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_processors fast = {0};
    for (uint32_t i = 0; i < thread_count; i++)
        QUERN_MUST(quern_processors_add(&fast, i));
    quern_jobs_def def = {.thread_count = thread_count, .processors = fast};
    if (quern_jobs_create(&def, &jobs) == QUERN_OK) return jobs;
    def.processors = (quern_processors){0}; /* the process may not use one of them */
    QUERN_MUST(quern_jobs_create(&def, &jobs));
    return jobs;
}

/* Plans a route for at most a moment, and keeps the best one so far. */
typedef struct Search {
    quern_cancel cancel;
    atomic_int round_count;
} Search;

static void search(void *user_data, uint32_t worker_index)
{
    Search *it = *(Search **)user_data;
    (void)worker_index;
    while (!quern_cancel_is_requested(&it->cancel)) /* a job that has begun is never interrupted: it asks */
        atomic_fetch_add(&it->round_count, 1);
}

static void search_for_a_moment(quern_jobs *jobs)
{
    Search it = {0}, *payload = &it;
    quern_counter searched = {0};
    bool is_done;
    const quern_job_def def = {.function = search,
                               .payload = &payload,
                               .payload_bytes = sizeof payload,
                               .counter = &searched,
                               .cancel = &it.cancel};
    QUERN_MUST(quern_jobs_submit(jobs, &def));
    QUERN_MUST(
        quern_jobs_wait_for(jobs, &searched, 0, &is_done)); /* 0: only looks; never helps with the search */
    if (!is_done) quern_cancel_request(&it.cancel);
    QUERN_MUST(quern_jobs_wait(jobs, &searched));
    printf("searched\n");
}

typedef struct Piece {
    quern_counter ready;
    uint32_t number;
} Piece;

static void decode(void *user_data, uint32_t worker_index)
{
    Piece *piece = *(Piece **)user_data;
    (void)worker_index;
    piece->number *= 10;
}

/* Handles pieces of a level in the order in which they become ready. */
static void handle_pieces(quern_jobs *jobs)
{
    enum { COUNT = 3 };
    Piece pieces[COUNT] = {{.number = 1}, {.number = 2}, {.number = 3}};
    quern_counter *left[COUNT];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        Piece *piece = &pieces[i];
        left[i] = &piece->ready;
        QUERN_MUST(quern_jobs_submit(jobs, &(quern_job_def){.function = decode,
                                                            .payload = &piece,
                                                            .payload_bytes = sizeof piece,
                                                            .counter = left[i]}));
    }
    for (uint32_t count = COUNT; count > 0; count--) {
        uint32_t i;
        QUERN_MUST(
            quern_jobs_wait_any(jobs, left, count, UINT64_MAX, &i)); /* or after a time: i == count */
        sum += ((Piece *)left[i])->number;                           /* the counter is the first member */
        left[i] = left[count - 1];
    }
    printf("pieces: %u\n", sum);
}

static void add_range(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    atomic_fetch_add((atomic_uint *)user_data, end - begin);
}

/* A loop with a name in traces, which another thread may cancel. */
static void count_items(quern_jobs *jobs, quern_cancel *cancel)
{
    atomic_uint count = 0;
    const quern_loop_def def = {
        .function = add_range, .user_data = &count, .count = 1000, .cancel = cancel, .name = "count"};
    const quern_result result = quern_jobs_run_loop(jobs, &def);
    printf("%u items: %s\n", atomic_load(&count), result == QUERN_ERROR_CANCELLED ? "cancelled" : "all");
}

/* Runs a graph on another number of items each time. The nodes, the edges and the memory stay. */
static void run_graph(quern_jobs *jobs)
{
    quern_graph *graph;
    uint32_t node;
    atomic_uint count = 0;
    const quern_graph_node_def def = {.function = add_range, .user_data = &count};
    QUERN_MUST(quern_graph_create(NULL, &graph));
    for (uint32_t level = 0; level < 2; level++) {
        QUERN_MUST(quern_graph_add_node(graph, &def, &node));
        for (uint32_t items = 10; items <= 30; items += 10) {
            QUERN_MUST(quern_graph_set_count(graph, node, items));
            QUERN_MUST(quern_graph_run(graph, jobs));
        }
        quern_graph_clear(graph); /* for the nodes of the next level */
    }
    printf("items of graphs: %u\n", atomic_load(&count));
    quern_graph_destroy(graph);
}

int main(void)
{
    quern_jobs *jobs = create_pool(2);
    quern_cancel cancel = {0};
    handle_pieces(jobs);
    quern_jobs_wake(
        jobs); /* before work that comes at once, such as a frame: no thread has to wake up then */
    count_items(jobs, &cancel);
    quern_cancel_request(&cancel);
    count_items(jobs, &cancel);
    run_graph(jobs);
    search_for_a_moment(jobs);
    QUERN_MUST(quern_jobs_resize(jobs, 3)); /* a setting of the game has changed; no pool is created anew */
    QUERN_MUST(quern_jobs_describe(jobs, quern_sink_file(stdout))); /* when something hangs */
    quern_jobs_destroy(jobs);
}
