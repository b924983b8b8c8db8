/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_many, jobs_chain, jobs_fib, jobs_graph: single jobs, continuations, forks, and a graph of loops. The
 * control is the same work by plain calls on one thread. For the graph, which is worth sharing, the control
 * is the work divided by the number of threads. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { JOB_COUNT = 100000, JOB_NS = 100, CHAIN_STEPS = 4000, FIB_N = 30, LAYERS = 5, NODES_PER_LAYER = 10 };
enum { NODE_COUNT = LAYERS * NODES_PER_LAYER, NODE_ITEMS = 64, ITEM_NS = 2000 };

typedef struct job_scene {
    quern_jobs *jobs;
    quern_graph *graph;
    uint32_t thread_count; /* number of threads by which the control divides the work */
    uint64_t steps;        /* steps of a job or item */
    uint64_t result;
    quern_counter *chain; /* CHAIN_STEPS + 1 counters; each counts one job, after which the next starts */
    bench_tally tallies[QUERN_MAX_THREADS];
} job_scene;

static void *open_raw(double work_ns)
{
    job_scene *scene = bench_allocate(1, sizeof *scene);
    scene->steps = bench_burn_steps(work_ns);
    return scene;
}

static job_scene *open_with_pool(const bench_case *bench, double work_ns)
{
    job_scene *scene = open_raw(work_ns);
    scene->jobs = bench_jobs_create(bench->thread_count);
    return scene;
}

static void close_scene(void *state)
{
    job_scene *scene = state;
    quern_graph_destroy(scene->graph);
    quern_jobs_destroy(scene->jobs);
    free(scene->chain);
    free(scene);
}

static void enter_awake(void *state)
{
    const job_scene *scene = state;
    bench_jobs_wake(scene->jobs);
}

static uint32_t one_pass(uint32_t entity_count)
{
    return 1;
}

static uint64_t one_operation(uint32_t entity_count)
{
    return 1;
}

/* -------------------------------------------------------------------------------------------- many */

static void *open_many_raw(const bench_case *bench)
{
    return open_raw(JOB_NS);
}

static void *open_many(const bench_case *bench)
{
    return open_with_pool(bench, JOB_NS);
}

static void burn_job(void *argument, uint32_t worker_index)
{
    bench_burn(*(const uint64_t *)argument);
}

static void run_many_raw(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    quern_job_function *volatile function = burn_job; /* volatile: the calls must not be inlined */
    for (uint32_t i = 0; i < pass_count * JOB_COUNT; i++)
        function(&scene->steps, 0);
}

static void submit_and_wait(void *argument, uint32_t worker_index)
{
    job_scene *scene = argument;
    quern_counter counter = {0};
    const quern_job_def def = {.function = burn_job,
                               .payload = &scene->steps,
                               .payload_bytes = sizeof scene->steps,
                               .counter = &counter};
    for (uint32_t i = 0; i < JOB_COUNT; i++)
        REQUIRE(quern_jobs_submit(scene->jobs, &def));
    REQUIRE(quern_jobs_wait(scene->jobs, &counter));
}

static void run_many(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_jobs_run(scene->jobs, submit_and_wait, scene));
}

static uint64_t checksum_steps(void *state)
{
    const job_scene *scene = state;
    return scene->steps;
}

static uint64_t operations_of_many(uint32_t entity_count)
{
    return JOB_COUNT;
}

const bench_workload workload_jobs_many = {
    .name = "jobs_many",
    .summary = "100,000 jobs of about 100 ns, submitted by one job; raw: as many calls on one thread",
    .unit = "job",
    .entity_counts = {JOB_COUNT},
    .fixed_size = true,
    .pass_count = one_pass,
    .operation_count = operations_of_many,
    .subjects =
        {
            [BENCH_RAW] = {open_many_raw, NULL, run_many_raw, NULL, checksum_steps, close_scene, NULL},
            [BENCH_QUERN] = {open_many, enter_awake, run_many, NULL, checksum_steps, close_scene, NULL},
        },
};

/* ------------------------------------------------------------------------------------------- chain */

static void step(void *argument, uint32_t worker_index)
{
    job_scene *scene = *(job_scene **)argument;
    scene->result++;
}

static void *open_chain_raw(const bench_case *bench)
{
    return open_raw(0);
}

static void *open_chain(const bench_case *bench)
{
    job_scene *scene = open_with_pool(bench, 0);
    scene->chain = bench_allocate(CHAIN_STEPS + 1, sizeof *scene->chain);
    return scene;
}

static void enter_chain_raw(void *state)
{
    job_scene *scene = state;
    scene->result = 0;
}

/* Submits all jobs of the chain. None starts before the first counter is 0. */
static void enter_chain(void *state)
{
    job_scene *scene = state;
    quern_job_def def = {.function = step, .payload = &scene, .payload_bytes = sizeof scene};
    scene->result = 0;
    quern_counter_hold(&scene->chain[0]);
    for (uint32_t i = 0; i < CHAIN_STEPS; i++) {
        def.counter = &scene->chain[i + 1];
        REQUIRE(quern_jobs_submit_after(scene->jobs, &def, &scene->chain[i]));
    }
    bench_jobs_wake(scene->jobs);
}

static void run_chain_raw(void *state, uint32_t pass_count)
{
    quern_job_function *volatile function = step;
    for (uint32_t i = 0; i < pass_count * CHAIN_STEPS; i++)
        function(&state, 0);
}

static void run_chain(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    REQUIRE(quern_counter_release(scene->jobs, &scene->chain[0]));
    REQUIRE(quern_jobs_wait(scene->jobs, &scene->chain[CHAIN_STEPS]));
}

static void count_item(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    job_scene *scene = argument;
    scene->result += end - begin;
}

/* The same chain as a graph, which is built before. */
static void *open_chain_graph(const bench_case *bench)
{
    job_scene *scene = open_with_pool(bench, 0);
    const quern_graph_node_def def = {.function = count_item, .user_data = scene, .count = 1};
    REQUIRE(quern_graph_create(NULL, &scene->graph));
    for (uint32_t i = 0; i < CHAIN_STEPS; i++) {
        REQUIRE(quern_graph_add_node(scene->graph, &def, NULL));
        if (i > 0) REQUIRE(quern_graph_add_edge(scene->graph, i - 1, i));
    }
    REQUIRE(quern_graph_run(scene->graph, scene->jobs)); /* the first run compiles the graph */
    return scene;
}

static void enter_chain_graph(void *state)
{
    job_scene *scene = state;
    scene->result = 0;
    bench_jobs_wake(scene->jobs);
}

static void run_chain_graph(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    REQUIRE(quern_graph_run(scene->graph, scene->jobs));
}

static uint64_t checksum_chain(void *state)
{
    const job_scene *scene = state;
    return scene->result;
}

static uint64_t operations_of_chain(uint32_t entity_count)
{
    return CHAIN_STEPS;
}

const bench_workload workload_jobs_chain = {
    .name = "jobs_chain",
    .summary = "4,000 jobs, each a continuation of the one before; raw: as many calls",
    .unit = "step",
    .entity_counts = {CHAIN_STEPS},
    .fixed_size = true,
    .pass_count = one_pass,
    .operation_count = operations_of_chain,
    .subjects =
        {
            [BENCH_RAW] = {open_chain_raw, enter_chain_raw, run_chain_raw, NULL, checksum_chain,
                           close_scene, NULL},
            [BENCH_QUERN] = {open_chain, enter_chain, run_chain, NULL, checksum_chain, close_scene, NULL},
            {open_chain_graph, enter_chain_graph, run_chain_graph, NULL, checksum_chain, close_scene, NULL},
        },
    .subject_names = {NULL, NULL, "graph"},
};

/* --------------------------------------------------------------------------------------------- fib */

typedef struct fib_call {
    quern_jobs *jobs;
    uint32_t n;
    uint64_t result;
} fib_call;

static void *open_fib_raw(const bench_case *bench)
{
    return open_raw(0);
}

static void *open_fib(const bench_case *bench)
{
    return open_with_pool(bench, 0);
}

__attribute__((noinline)) static uint64_t plain_fib(uint32_t n)
{
    return n < 2 ? n : plain_fib(n - 1) + plain_fib(n - 2);
}

static void run_fib_raw(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        scene->result = plain_fib(FIB_N);
}

static uint64_t fib(quern_jobs *jobs, uint32_t n);

static void run_fib_call(void *argument, uint32_t worker_index)
{
    fib_call *fork = argument;
    fork->result = fib(fork->jobs, fork->n);
}

/* Computes a Fibonacci number with one fork per inner node. The calls of the pool cannot fail here, so
 * their results are not checked. */
static uint64_t fib(quern_jobs *jobs, uint32_t n)
{
    if (n < 2) return n;
    quern_fork fork;
    fib_call left = {jobs, n - 1, 0};
    quern_jobs_fork(jobs, &fork, run_fib_call, &left);
    const uint64_t right = fib(jobs, n - 2);
    quern_jobs_join(jobs, &fork);
    return left.result + right;
}

static void run_fib(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        fib_call whole = {scene->jobs, FIB_N, 0};
        REQUIRE(quern_jobs_run(scene->jobs, run_fib_call, &whole));
        scene->result = whole.result;
    }
}

static uint64_t checksum_fib(void *state)
{
    const job_scene *scene = state;
    return scene->result;
}

const bench_workload workload_jobs_fib = {
    .name = "jobs_fib",
    .summary = "Fibonacci of 30, a fork for each of 1,346,268 inner nodes; raw: plain recursion",
    .unit = "run",
    .entity_counts = {FIB_N},
    .fixed_size = true,
    .pass_count = one_pass,
    .operation_count = one_operation,
    .subjects =
        {
            [BENCH_RAW] = {open_fib_raw, NULL, run_fib_raw, NULL, checksum_fib, close_scene, NULL},
            [BENCH_QUERN] = {open_fib, enter_awake, run_fib, NULL, checksum_fib, close_scene, NULL},
        },
};

/* ------------------------------------------------------------------------------------------- graph */

static void burn_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    job_scene *scene = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn(scene->steps);
    scene->tallies[worker_index].count += end - begin;
}

static void *open_graph_raw(const bench_case *bench)
{
    job_scene *scene = open_raw(ITEM_NS);
    scene->thread_count = bench->thread_count;
    return scene;
}

static void add_edges(quern_graph *graph, uint32_t node)
{
    static const uint32_t shifts[] = {0, 1, 3};
    if (node < NODES_PER_LAYER) return;
    const uint32_t first = (node / NODES_PER_LAYER - 1) * NODES_PER_LAYER;
    for (uint32_t i = 0; i < 3; i++)
        REQUIRE(quern_graph_add_edge(graph, first + (node + shifts[i]) % NODES_PER_LAYER, node));
}

static void *open_graph(const bench_case *bench)
{
    job_scene *scene = open_with_pool(bench, ITEM_NS);
    const quern_graph_node_def def = {
        .function = burn_items, .user_data = scene, .count = NODE_ITEMS, .grain = 1};
    REQUIRE(quern_graph_create(NULL, &scene->graph));
    for (uint32_t node = 0; node < NODE_COUNT; node++) {
        REQUIRE(quern_graph_add_node(scene->graph, &def, NULL));
        add_edges(scene->graph, node);
    }
    return scene;
}

/* Does the work of one thread if all threads shared the work equally, on the calling thread. */
static void run_graph_raw(void *state, uint32_t pass_count)
{
    const job_scene *scene = state;
    const uint32_t item_count = pass_count * NODE_COUNT * NODE_ITEMS / scene->thread_count;
    for (uint32_t i = 0; i < item_count; i++)
        burn_items(state, i, i + 1, 0);
}

static void run_graph(void *state, uint32_t pass_count)
{
    job_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_graph_run(scene->graph, scene->jobs));
}

static uint64_t checksum_graph(void *state)
{
    const job_scene *scene = state;
    return bench_tally_sum(scene->tallies) % ((uint64_t)NODE_COUNT * NODE_ITEMS);
}

static uint64_t checksum_graph_raw(void *state)
{
    return 0;
}

/* A sample has many frames in a row. */
static uint32_t passes_of_graph(uint32_t entity_count)
{
    return 5;
}

const bench_workload workload_jobs_graph = {
    .name = "jobs_graph",
    .summary =
        "50 nodes in 5 layers, three edges to each, a loop of 64 items of 2 us in each; raw: ideal time",
    .unit = "run",
    .entity_counts = {NODE_COUNT},
    .fixed_size = true,
    .pass_count = passes_of_graph,
    .operation_count = one_operation,
    .subjects =
        {
            [BENCH_RAW] = {open_graph_raw, NULL, run_graph_raw, NULL, checksum_graph_raw, close_scene,
                           NULL},
            [BENCH_QUERN] = {open_graph, enter_awake, run_graph, NULL, checksum_graph, close_scene, NULL},
        },
};
