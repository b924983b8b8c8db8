/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, stress */
#include <quern/graph.h>

#include "sched/jobs/jobs_internal.h"
#include "tests/support/random.h"
#include "tests/support/watchdog.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Random loops, nested loops, graphs, forks, trees and floods of jobs. Random pauses of the caller let
 * workers fall asleep in every state, and jobs yield at random. Pools of every size up to many times the
 * number of processors are tested; some are resized meanwhile, and four external threads submit as well.
 * All results are checked. A watchdog turns a hang into a failure that shows the state of every worker.
 * QUERN_STRESS_SECONDS: duration of each test, default 1.5. */

enum { MAX_ITEMS = 60000, MAX_NODES = 80, MAX_POOL_THREADS = 64, INNER_ITEMS = 24 };
enum { MAX_TREE_DEPTH = 7, FOREIGN_COUNT = 4 };
enum { MEETING_ROUNDS = 60, FLOOD_JOBS = 1500 };

typedef struct stress {
    quern_jobs *jobs;
    uint32_t thread_count;
    uint32_t max_thread_count; /* 0: the pool is not resized */
    random_source random;
    uint64_t seed;
    uint64_t step_count;
    _Atomic uint8_t hits[MAX_ITEMS];
    uint32_t pause_every; /* one of so many items takes longer; 0: none */
    _Atomic uint32_t inner_count;
    _Atomic uint32_t job_count;
    _Atomic uint32_t yield_state;
    _Atomic uint32_t in_node[MAX_POOL_THREADS]; /* per worker: graph nodes that it runs at present */
} stress;

typedef struct stress_node {
    stress *of;
    struct stress_node *nodes;
    uint32_t count;
    uint32_t nanoseconds; /* duration of each item */
    bool has_inner_loop;
    bool waits; /* submits jobs of its own and waits for them */
    uint32_t predecessors[3];
    uint32_t predecessor_count;
    _Atomic uint32_t done_count;
} stress_node;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
    nanosleep(&time, NULL);
}

static void burn_ns(uint64_t nanoseconds)
{
    uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < nanoseconds) {
    }
}

/* --------------------------------------------------------------------------------------------- loops */

static void hit_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stress *of = argument;
    cr_expect(worker_index < of->thread_count);
    for (uint32_t i = begin; i < end; i++) {
        atomic_fetch_add_explicit(&of->hits[i], 1, memory_order_relaxed);
        if (of->pause_every != 0 && i * 2654435761u % of->pause_every == 0) burn_ns(i % 3000);
    }
}

static void check_hits(stress *of, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t hits = atomic_exchange_explicit(&of->hits[i], 0, memory_order_relaxed);
        cr_assert_eq(hits, 1, "seed %llu, step %llu: item %u of %u ran %u times",
                     (unsigned long long)of->seed, (unsigned long long)of->step_count, i, count, hits);
    }
}

static void stress_loop(stress *of)
{
    uint32_t count = 1 + random_below(&of->random, random_chance(&of->random, 6) ? MAX_ITEMS : 200);
    uint32_t grain = random_chance(&of->random, 66) ? 1 + random_below(&of->random, 7) : 0;
    of->pause_every = random_below(&of->random, 50);
    cr_assert_eq(quern_jobs_parallel_for(of->jobs, count, grain, hit_items, of), QUERN_OK);
    check_hits(of, count);
}

static void count_inner(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stress *of = argument;
    atomic_fetch_add_explicit(&of->inner_count, end - begin, memory_order_relaxed);
    if (begin % 7 == 0) burn_ns(500);
}

static void run_inner(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stress *of = argument;
    for (uint32_t i = begin; i < end; i++)
        cr_expect(quern_jobs_parallel_for(of->jobs, INNER_ITEMS, i % 3, count_inner, of) == QUERN_OK);
}

static void stress_nested_loop(stress *of)
{
    uint32_t count = 1 + random_below(&of->random, 40);
    atomic_store(&of->inner_count, 0);
    cr_assert_eq(quern_jobs_parallel_for(of->jobs, count, 1, run_inner, of), QUERN_OK);
    cr_assert_eq(atomic_load(&of->inner_count), count * INNER_ITEMS, "seed %llu, step %llu",
                 (unsigned long long)of->seed, (unsigned long long)of->step_count);
}

/* -------------------------------------------------------------------------------------------- graphs */

static void wait_for_tree(stress *of);

/* While a node waits, its worker must not run another node. */
static void run_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stress_node *node = argument;
    _Atomic uint32_t *in_node = &node->of->in_node[worker_index];
    cr_expect(atomic_fetch_add_explicit(in_node, 1, memory_order_relaxed) == 0);
    for (uint32_t i = 0; i < node->predecessor_count; i++) {
        const stress_node *before = &node->nodes[node->predecessors[i]];
        cr_expect(atomic_load_explicit(&before->done_count, memory_order_relaxed) == before->count);
    }
    for (uint32_t i = begin; i < end; i++)
        if (node->nanoseconds != 0) burn_ns(node->nanoseconds);
    if (node->has_inner_loop) run_inner(node->of, begin, begin + 1, worker_index);
    if (node->waits) wait_for_tree(node->of);
    atomic_fetch_sub_explicit(in_node, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&node->done_count, end - begin, memory_order_relaxed);
}

static void plan_node(stress *of, stress_node *nodes, uint32_t number)
{
    stress_node *node = &nodes[number];
    *node = (stress_node){.of = of, .nodes = nodes};
    node->count = random_chance(&of->random, 50) ? 1 : random_below(&of->random, 64);
    node->nanoseconds = random_chance(&of->random, 50) ? random_below(&of->random, 4000) : 0;
    node->has_inner_loop = random_chance(&of->random, 10);
    node->waits = random_chance(&of->random, 5);
    if (number != 0) node->predecessor_count = random_below(&of->random, 4);
    for (uint32_t i = 0; i < node->predecessor_count; i++)
        node->predecessors[i] = random_below(&of->random, number);
}

static void add_node(stress *of, quern_graph *graph, stress_node *node)
{
    uint32_t number;
    quern_graph_node_def def = {.function = run_node, .user_data = node, .count = node->count};
    def.grain = random_below(&of->random, 4);
    def.on_worker = random_chance(&of->random, 10) ? QUERN_ON_CALLER : 0;
    cr_assert_eq(quern_graph_add_node(graph, &def, &number), QUERN_OK);
    if (node->count == 0) cr_assert_eq(quern_graph_set_count(graph, number, 0), QUERN_OK);
    for (uint32_t i = 0; i < node->predecessor_count; i++)
        cr_assert_eq(quern_graph_add_edge(graph, node->predecessors[i], number), QUERN_OK);
}

static void run_graph_once(stress *of, quern_graph *graph, stress_node *nodes, uint32_t node_count)
{
    for (uint32_t i = 0; i < node_count; i++)
        atomic_store_explicit(&nodes[i].done_count, 0, memory_order_relaxed);
    cr_assert_eq(quern_graph_run(graph, of->jobs), QUERN_OK);
    for (uint32_t i = 0; i < node_count; i++)
        cr_assert_eq(atomic_load_explicit(&nodes[i].done_count, memory_order_relaxed), nodes[i].count,
                     "seed %llu, step %llu: node %u", (unsigned long long)of->seed,
                     (unsigned long long)of->step_count, i);
}

static void stress_graph(stress *of)
{
    static stress_node nodes[MAX_NODES];
    uint32_t node_count = 1 + random_below(&of->random, MAX_NODES);
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    for (uint32_t i = 0; i < node_count; i++) {
        plan_node(of, nodes, i);
        add_node(of, graph, &nodes[i]);
    }
    for (uint32_t run = 1 + random_below(&of->random, 5); run != 0; run--)
        run_graph_once(of, graph, nodes, node_count);
    quern_graph_destroy(graph);
}

/* --------------------------------------------------------------------------------------- single jobs */

/* The test's own random source cannot be used by jobs that run at the same time. */
static uint32_t draw(stress *of)
{
    uint32_t number = atomic_fetch_add_explicit(&of->yield_state, 1, memory_order_relaxed) * 2654435761u;
    return number ^ number >> 15;
}

static void disturb(stress *of)
{
    uint32_t number = draw(of);
    if (number % 5 == 0) sched_yield();
    if (number % 11 == 0) burn_ns(number % 4096);
    if (number % 251 == 0) sleep_ns(number % 300000);
}

typedef struct branch {
    stress *of;
    quern_counter *counter; /* counts all jobs of the tree */
    uint32_t depth;
    uint32_t kind; /* how children are submitted and waited for */
} branch;

static void grow(void *argument, uint32_t worker_index);

static void submit_branch(const branch *child, quern_counter *counter)
{
    uint32_t number = draw(child->of);
    quern_job_def def = {
        .function = grow,
        .payload = child,
        .payload_bytes = sizeof *child,
        .priority = number % 4 == 0 ? (quern_priority)(number / 4 % 3) : QUERN_PRIORITY_NORMAL,
        .on_worker = number % 64 == 7 ? QUERN_ON_CALLER : 0,
        .counter = counter,
    };
    cr_expect(quern_jobs_submit(child->of->jobs, &def) == QUERN_OK);
}

/* Submits two children, and a third that starts when the first two have finished. */
static void continue_with(const branch *child)
{
    quern_counter both = {0}, third = {0};
    quern_job_def def = {
        .function = grow, .payload = child, .payload_bytes = sizeof *child, .counter = &third};
    quern_counter_hold(&both);
    submit_branch(child, &both);
    submit_branch(child, &both);
    cr_expect(quern_jobs_submit_after(child->of->jobs, &def, &both) == QUERN_OK);
    cr_expect(quern_counter_release(child->of->jobs, &both) == QUERN_OK);
    cr_expect(quern_jobs_wait(child->of->jobs, &third) == QUERN_OK);
}

static void fork_three(branch *child, uint32_t worker_index)
{
    quern_fork forks[2];
    branch children[2] = {*child, *child};
    bool in_order = draw(child->of) % 2 == 0;
    for (uint32_t i = 0; i < 2; i++)
        cr_expect(quern_jobs_fork(child->of->jobs, &forks[i], grow, &children[i]) == QUERN_OK);
    grow(child, worker_index);
    for (uint32_t i = 0; i < 2; i++)
        cr_expect(quern_jobs_join(child->of->jobs, &forks[in_order ? i : 1 - i]) == QUERN_OK);
}

/* Runs a job of the tree. Each job has three children in every case, so a tree has (3^(depth + 1) - 1) /
 * 2 jobs. */
static void grow(void *argument, uint32_t worker_index)
{
    branch mine = *(branch *)argument;
    stress *of = mine.of;
    quern_counter own = {0};
    cr_expect(worker_index < of->thread_count);
    atomic_fetch_add_explicit(&of->job_count, 1, memory_order_relaxed);
    disturb(of);
    if (mine.depth-- == 0) return;
    switch (mine.kind++ % 4) {
    case 0:
        fork_three(&mine, worker_index);
        break;
    case 1:
        continue_with(&mine);
        break;
    case 2:
        for (uint32_t i = 0; i < 3; i++)
            submit_branch(&mine, mine.counter);
        break;
    default:
        for (uint32_t i = 0; i < 3; i++)
            submit_branch(&mine, &own);
        cr_expect(quern_jobs_wait(of->jobs, &own) == QUERN_OK);
        break;
    }
}

static void stress_tree(stress *of)
{
    quern_counter counter = {0};
    branch root = {of, &counter, random_below(&of->random, MAX_TREE_DEPTH), random_below(&of->random, 4)};
    uint32_t expected = 1;
    for (uint32_t level = 0; level < root.depth; level++)
        expected = expected * 3 + 1;
    atomic_store(&of->job_count, 0);
    atomic_store(&of->yield_state, (uint32_t)of->seed + (uint32_t)of->step_count);
    submit_branch(&root, &counter);
    cr_assert_eq(quern_jobs_wait(of->jobs, &counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of->job_count), expected, "seed %llu, step %llu",
                 (unsigned long long)of->seed, (unsigned long long)of->step_count);
}

/* Submits jobs from within a node and waits for them. Their number is not checked, because trees of
 * several nodes grow at the same time. */
static void wait_for_tree(stress *of)
{
    quern_counter counter = {0};
    branch root = {of, &counter, 2, draw(of) % 4};
    submit_branch(&root, &counter);
    cr_expect(quern_jobs_wait(of->jobs, &counter) == QUERN_OK);
}

/* A job of a flood: more jobs than a deque holds. Half of them submit another job each. */
typedef struct drop {
    stress *of;
    quern_counter *counter;
    uint32_t left;
} drop;

static void run_flood_job(void *argument, uint32_t worker_index)
{
    drop mine = *(drop *)argument;
    atomic_fetch_add_explicit(&mine.of->job_count, 1, memory_order_relaxed);
    if (mine.left-- == 0) return;
    quern_job_def def = {
        .function = run_flood_job, .payload = &mine, .payload_bytes = sizeof mine, .counter = mine.counter};
    cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
}

static void submit_flood(void *argument, uint32_t worker_index)
{
    stress *of = argument;
    quern_counter counter = {0};
    for (uint32_t i = 0; i < FLOOD_JOBS; i++) {
        drop each = {of, &counter, i % 2};
        run_flood_job(&each, worker_index);
    }
    cr_expect(quern_jobs_wait(of->jobs, &counter) == QUERN_OK);
}

static void stress_flood(stress *of)
{
    atomic_store(&of->job_count, 0);
    cr_assert_eq(quern_jobs_run(of->jobs, submit_flood, of), QUERN_OK);
    cr_assert_eq(atomic_load(&of->job_count), FLOOD_JOBS + FLOOD_JOBS / 2);
}

/* One thread releases the last hold of a counter while others add continuations to it and wait for it. */
typedef struct meeting {
    quern_jobs *jobs;
    quern_counter shared;
    _Atomic uint32_t round;      /* number of the round in which `shared` is held */
    _Atomic uint32_t done_count; /* threads that have finished, over all rounds */
    _Atomic uint32_t run_count;
} meeting;

static void arrive(void *argument, uint32_t worker_index)
{
    meeting *of = *(meeting **)argument;
    atomic_fetch_add(&of->run_count, 1);
}

static void visit(meeting *of, uint32_t number)
{
    quern_counter own = {0};
    quern_job_def def = {.function = arrive, .payload = &of, .payload_bytes = sizeof of, .counter = &own};
    burn_ns(number % 7 * 300);
    for (uint32_t i = 0; i < 1 + number % 2; i++)
        cr_expect(quern_jobs_submit_after(of->jobs, &def, &of->shared) == QUERN_OK);
    if (number % 3 == 0) cr_expect(quern_jobs_wait(of->jobs, &of->shared) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &own) == QUERN_OK);
    if (number % 16 == 5) quern_jobs_wake(of->jobs);
}

static void *run_external_thread(void *argument)
{
    meeting *of = argument;
    for (uint32_t round = 1; round <= MEETING_ROUNDS; round++) {
        while (atomic_load(&of->round) < round)
            sched_yield();
        visit(of, round);
        atomic_fetch_add(&of->done_count, 1);
    }
    return NULL;
}

static void stress_meeting(stress *of)
{
    meeting here = {.jobs = of->jobs};
    pthread_t guests[FOREIGN_COUNT];
    uint32_t expected = 0;
    for (uint32_t i = 0; i < FOREIGN_COUNT; i++)
        cr_assert_eq(pthread_create(&guests[i], NULL, run_external_thread, &here), 0);
    for (uint32_t round = 1; round <= MEETING_ROUNDS; round++) {
        quern_counter_hold(&here.shared);
        atomic_store(&here.round, round);
        burn_ns(random_below(&of->random, 3000));
        cr_assert_eq(quern_counter_release(of->jobs, &here.shared), QUERN_OK);
        while (atomic_load(&here.done_count) < round * FOREIGN_COUNT)
            sched_yield();
        expected += FOREIGN_COUNT * (1 + round % 2);
        cr_assert_eq(atomic_load(&here.run_count), expected);
        watchdog_beat();
    }
    for (uint32_t i = 0; i < FOREIGN_COUNT; i++)
        pthread_join(guests[i], NULL);
}

/* An external thread that submits trees and waits for them. */
static void *submit_trees(void *argument)
{
    stress own = *(stress *)argument;
    atomic_init(&own.yield_state, 0);
    for (uint32_t i = 0; i < 20; i++) {
        own.step_count = i;
        quern_counter counter = {0};
        branch root = {&own, &counter, 3, i % 4};
        atomic_init(&own.job_count, 0);
        submit_branch(&root, &counter);
        cr_expect(quern_jobs_wait(own.jobs, &counter) == QUERN_OK);
        cr_expect(atomic_load(&own.job_count) == 40, "tree %u: %u jobs", i, atomic_load(&own.job_count));
        watchdog_beat();
    }
    return NULL;
}

static void stress_foreign(stress *of)
{
    static stress copy; /* too large for a stack */
    pthread_t threads[FOREIGN_COUNT];
    copy.jobs = of->jobs;
    copy.thread_count = of->thread_count;
    copy.seed = of->seed;
    for (uint32_t i = 0; i < FOREIGN_COUNT; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, submit_trees, &copy), 0);
    for (uint32_t i = 0; i < FOREIGN_COUNT; i++)
        pthread_join(threads[i], NULL);
}

static void stress_resize(stress *of)
{
    uint32_t thread_count = 1 + random_below(&of->random, of->max_thread_count);
    cr_assert_eq(quern_jobs_resize(of->jobs, thread_count), QUERN_OK);
    of->thread_count = thread_count;
}

/* --------------------------------------------------------------------------------------------- tests */

static void pause_between(stress *of)
{
    switch (random_below(&of->random, 8)) {
    case 0:
        sleep_ns(random_below(&of->random, 400000)); /* about as long as workers spin */
        break;
    case 1:
        burn_ns(random_below(&of->random, 100000));
        break;
    default:
        break;
    }
}

static void take_step(stress *of)
{
    if (of->max_thread_count != 0 && random_chance(&of->random, 20)) stress_resize(of);
    switch (random_below(&of->random, 9)) {
    case 0:
    case 4:
        stress_graph(of);
        break;
    case 2:
        if (random_chance(&of->random, 10)) stress_foreign(of);
        if (random_chance(&of->random, 10)) stress_meeting(of);
        stress_tree(of);
        break;
    case 5:
        stress_flood(of);
        break;
    case 3:
        stress_tree(of);
        break;
    case 1:
        stress_nested_loop(of);
        break;
    default:
        stress_loop(of);
        break;
    }
    of->step_count++;
    watchdog_beat();
    pause_between(of);
}

static double chosen_seconds(double otherwise)
{
    const char *text = getenv("QUERN_STRESS_SECONDS");
    double seconds = text != NULL ? atof(text) : 0;
    return seconds > 0 ? seconds : otherwise;
}

/* Stresses one pool. The seed depends on the duration, so it is fixed for runs of the usual length. */
static void stress_pool(uint32_t thread_count, double seconds, bool may_resize)
{
    quern_jobs_def def = {.thread_count = thread_count};
    stress *of = calloc(1, sizeof *of);
    cr_assert_not_null(of);
    cr_assert_eq(quern_jobs_create(&def, &of->jobs), QUERN_OK);
    of->thread_count = thread_count;
    of->max_thread_count = may_resize ? thread_count : 0;
    of->seed = (uint64_t)(seconds * 1000) * 100 + thread_count;
    of->random = (random_source){of->seed};
    watchdog_watch(of->jobs, of->seed);
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < seconds * 1e9)
        take_step(of);
    watchdog_watch(NULL, of->seed);
    quern_jobs_destroy(of->jobs);
    free(of);
}

TestSuite(stress_jobs, .init = watchdog_start, .fini = watchdog_stop);

Test(stress_jobs, as_many_threads_as_processors)
{
    stress_pool(quern_processor_count() < MAX_POOL_THREADS ? quern_processor_count() : MAX_POOL_THREADS,
                chosen_seconds(1.5), false);
}

Test(stress_jobs, two_threads)
{
    stress_pool(2, chosen_seconds(1.5), false);
}

Test(stress_jobs, five_threads)
{
    stress_pool(5, chosen_seconds(1.5), false);
}

Test(stress_jobs, sixteen_threads)
{
    stress_pool(16, chosen_seconds(1.5), false);
}

Test(stress_jobs, sixty_four_threads)
{
    stress_pool(MAX_POOL_THREADS, chosen_seconds(1.5), false);
}

Test(stress_jobs, resized_pools)
{
    stress_pool(12, chosen_seconds(1.5), true);
}

static void *release_one(void *argument)
{
    meeting *of = argument;
    while (atomic_load(&of->round) == 0)
        sched_yield();
    cr_expect(quern_counter_release(of->jobs, &of->shared) == QUERN_OK);
    return NULL;
}

/* The pool is destroyed as soon as the counter is done, while the call that released the counter may
 * still be running in it. */
Test(stress_jobs, pools_are_destroyed_when_an_external_release_ends_the_wait)
{
    random_source random = {9};
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9) {
        meeting here = {0};
        pthread_t releaser;
        quern_jobs_def def = {.thread_count = 1 + random_below(&random, 4)};
        cr_assert_eq(quern_jobs_create(&def, &here.jobs), QUERN_OK);
        quern_counter_hold(&here.shared);
        cr_assert_eq(pthread_create(&releaser, NULL, release_one, &here), 0);
        atomic_store(&here.round, 1);
        burn_ns(random_below(&random, 20000));
        cr_assert_eq(quern_jobs_wait(here.jobs, &here.shared), QUERN_OK);
        quern_jobs_destroy(here.jobs);
        pthread_join(releaser, NULL);
        watchdog_beat();
    }
}

/* ---------------------------------------------------------------------------------------------- the end */

enum { LEFT_JOBS = 40, MAX_LEFT_DEPTH = 3, RESIZERS = 3 };

/* State of jobs that still run while their pool is destroyed or its workers are replaced. */
typedef struct ending {
    quern_jobs *jobs;
    uint32_t thread_count;
    _Atomic uint32_t drawn;
    _Atomic uint32_t submitted_count;
    _Atomic uint32_t run_count;
    _Atomic bool is_over;
} ending;

typedef struct left_job {
    ending *of;
    quern_counter *end_signal; /* released by the job at its end; may be NULL */
    uint32_t depth;            /* depth of the jobs that it may submit */
} left_job;

static uint32_t draw_end(ending *of)
{
    uint32_t number = atomic_fetch_add_explicit(&of->drawn, 1, memory_order_relaxed) * 2654435761u;
    return number ^ number >> 15;
}

static void run_left(void *argument, uint32_t worker_index);

/* Submits a job for any worker, for a given worker, or for the caller only. */
static void submit_left(ending *of, const left_job *child, bool for_any)
{
    uint32_t number = draw_end(of);
    quern_job_def def = {.function = run_left,
                         .payload = child,
                         .payload_bytes = sizeof *child,
                         .priority = (quern_priority)(number % 3)};
    if (!for_any && number % 8 == 3) def.on_worker = QUERN_ON_CALLER;
    if (!for_any && number % 8 == 5 && of->thread_count > 1) def.on_worker = 2;
    atomic_fetch_add(&of->submitted_count, 1);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK, "%s", quern_error_message());
}

/* Submits a job and waits for a counter that the job itself releases, not for the job's completion. */
static void submit_left_and_wait(ending *of, uint32_t depth)
{
    quern_counter end_signal = {0};
    const left_job child = {of, &end_signal, depth};
    quern_counter_hold(&end_signal);
    submit_left(of, &child, true);
    cr_expect_eq(quern_jobs_wait(of->jobs, &end_signal), QUERN_OK);
}

static void run_left(void *argument, uint32_t worker_index)
{
    const left_job mine = *(left_job *)argument;
    uint32_t number = draw_end(mine.of);
    atomic_fetch_add(&mine.of->run_count, 1);
    if (number % 16 == 1) sleep_ns(number % 300000);
    if (mine.depth != 0 && number % 3 == 0) submit_left_and_wait(mine.of, mine.depth - 1);
    if (mine.depth != 0 && number % 3 == 1)
        submit_left(mine.of, &(left_job){mine.of, NULL, mine.depth - 1}, false);
    if (mine.end_signal != NULL)
        cr_expect_eq(quern_counter_release(mine.of->jobs, mine.end_signal), QUERN_OK);
}

static void check_all_ran(ending *of)
{
    cr_assert_eq(atomic_load(&of->run_count), atomic_load(&of->submitted_count));
}

static void end_with_jobs_left(random_source *random, uint32_t most_threads)
{
    ending of = {.thread_count = 1 + random_below(random, most_threads),
                 .drawn = random_below(random, 1u << 20)};
    const quern_jobs_def def = {.thread_count = of.thread_count};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    watchdog_watch(of.jobs, of.drawn);
    for (uint32_t round = random_below(random, 3); round != 0; round--) {
        for (uint32_t i = random_below(random, LEFT_JOBS); i != 0; i--)
            submit_left(&of, &(left_job){&of, NULL, MAX_LEFT_DEPTH}, false);
        if (random_chance(random, 30)) sleep_ns(random_below(random, 400000));
        /* Jobs read thread_count when they submit. It changes only while no job runs. */
        const uint32_t thread_count = of.thread_count > 1 ? 2 + random_below(random, most_threads) : 1;
        cr_assert_eq(quern_jobs_resize(of.jobs, thread_count), QUERN_OK);
        check_all_ran(&of);
        of.thread_count = thread_count;
    }
    for (uint32_t i = random_below(random, LEFT_JOBS); i != 0; i--)
        submit_left(&of, &(left_job){&of, NULL, MAX_LEFT_DEPTH}, false);
    watchdog_watch(NULL, 0);
    quern_jobs_destroy(of.jobs);
    check_all_ran(&of);
    watchdog_beat();
}

Test(stress_jobs, pools_are_destroyed_while_their_jobs_submit_and_wait)
{
    random_source random = {11};
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9)
        end_with_jobs_left(&random, random_chance(&random, 10) ? MAX_POOL_THREADS : 6);
}

/* A resize needs a moment in which the pool has no work. So these threads stop submitting from time to
 * time, and when many jobs are pending, until all have run. */
static void let_pool_catch_up(ending *of, uint32_t number)
{
    uint32_t left_count = atomic_load(&of->submitted_count) - atomic_load(&of->run_count);
    if (left_count < LEFT_JOBS / 2 && number % 4 != 2) return;
    while (atomic_load(&of->run_count) != atomic_load(&of->submitted_count) && !atomic_load(&of->is_over))
        sleep_ns(20000);
}

static void *submit_from_outside(void *argument)
{
    ending *of = argument;
    while (!atomic_load(&of->is_over)) {
        quern_counter before = {0};
        const left_job child = {of, NULL, 1};
        const quern_job_def def = {.function = run_left, .payload = &child, .payload_bytes = sizeof child};
        uint32_t number = draw_end(of);
        submit_left(of, &child, number % 2 == 0);
        quern_counter_hold(&before);
        atomic_fetch_add(&of->submitted_count, 1);
        cr_expect_eq(quern_jobs_submit_after(of->jobs, &def, &before), QUERN_OK);
        cr_expect_eq(quern_counter_release(of->jobs, &before), QUERN_OK);
        if (number % 4 == 1) submit_left_and_wait(of, 0);
        if (number % 8 == 1) quern_jobs_wake(of->jobs);
        let_pool_catch_up(of, number);
    }
    return NULL;
}

/* External threads that wait occupy external slots. A resize may then fail and must change nothing. */
static void resize_beside_others(random_source *random)
{
    ending of = {.thread_count = 2, .drawn = random_below(random, 1u << 20)};
    const quern_jobs_def def = {.thread_count = 2, .external_thread_count = 1 + random_below(random, 3)};
    pthread_t threads[RESIZERS];
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    watchdog_watch(of.jobs, of.drawn);
    for (uint32_t i = 0; i < RESIZERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, submit_from_outside, &of), 0);
    for (uint32_t i = 0; i < 10; i++) {
        const quern_result result = quern_jobs_resize(of.jobs, 2 + random_below(random, 15));
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_POOL_BUSY, "%s", quern_error_message());
        if (random_chance(random, 50)) sleep_ns(random_below(random, 1000000));
        watchdog_beat();
    }
    atomic_store(&of.is_over, true);
    for (uint32_t i = 0; i < RESIZERS; i++)
        pthread_join(threads[i], NULL);
    watchdog_watch(NULL, 0);
    quern_jobs_destroy(of.jobs);
    check_all_ran(&of);
}

Test(stress_jobs, pools_are_resized_while_external_threads_submit)
{
    random_source random = {12};
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9)
        resize_beside_others(&random);
}

enum { MOST_REPLACED_THREADS = 16 };

/* A job that needs two threads, and that is submitted while a resize stops the threads and starts others. */
typedef struct dialogue {
    quern_jobs *jobs;
    quern_counter done;
    _Atomic uint32_t question_count;
    _Atomic uint32_t answer_count;
    _Atomic bool is_over;
} dialogue;

static void answer(void *argument, uint32_t worker_index)
{
    dialogue *of = *(dialogue **)argument;
    (void)worker_index;
    cr_expect_not(atomic_load(&of->jobs->has_stopped));
    atomic_fetch_add(&of->answer_count, 1);
}

/* Blocks its worker, not in a wait of the pool, until another worker has run the job that it submits. Threads that
 * end after this job would leave none for the other job. */
static void ask(void *argument, uint32_t worker_index)
{
    dialogue *of = *(dialogue **)argument;
    const quern_job_def def = {.function = answer, .payload = &of, .payload_bytes = sizeof of};
    (void)worker_index;
    cr_expect_not(atomic_load(&of->jobs->has_stopped));
    const uint32_t number = atomic_fetch_add(&of->question_count, 1);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    if (quern_jobs_thread_count(of->jobs) < 3) return; /* maybe no thread but this one runs jobs */
    while (atomic_load(&of->answer_count) <= number)
        sched_yield();
}

/* Submits one job after another. Every second one, which lets the pool come to rest, at the moment when the threads
 * stop. */
static void *ask_while_resized(void *argument)
{
    dialogue *of = argument;
    const quern_job_def def = {
        .function = ask, .payload = &of, .payload_bytes = sizeof of, .counter = &of->done};
    for (uint32_t step = 0; !atomic_load(&of->is_over); step++) {
        while (step % 2 == 1 && !atomic_load(&of->jobs->has_stopped) && !atomic_load(&of->is_over))
            sched_yield();
        cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
        while (!quern_counter_is_done(&of->done) && !atomic_load(&of->is_over))
            sched_yield();
    }
    return NULL;
}

static void resize_beside_dialogue(random_source *random)
{
    dialogue of = {.jobs = NULL};
    pthread_t asker;
    const quern_jobs_def def = {.thread_count = 1 + random_below(random, MOST_REPLACED_THREADS)};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    watchdog_watch(of.jobs, def.thread_count);
    cr_assert_eq(pthread_create(&asker, NULL, ask_while_resized, &of), 0);
    for (uint32_t i = 0; i < 10; i++) {
        cr_assert_eq(quern_jobs_resize(of.jobs, 1 + random_below(random, MOST_REPLACED_THREADS)), QUERN_OK);
        watchdog_beat();
    }
    atomic_store(&of.is_over, true);
    pthread_join(asker, NULL);
    watchdog_watch(NULL, 0);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.answer_count), atomic_load(&of.question_count));
}

Test(stress_jobs, pools_are_resized_while_a_job_needs_two_threads)
{
    random_source random = {14};
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9)
        resize_beside_dialogue(&random);
}

enum { DROP_COUNTERS = 6, DROP_JOBS = 60 };

typedef struct dropping {
    quern_jobs *other;
    quern_counter counters[DROP_COUNTERS]; /* each one is held once */
    uint32_t pause_ns;
    _Atomic uint32_t run_count;
} dropping;

static void count_kept(void *argument, uint32_t worker_index)
{
    atomic_fetch_add(&(*(dropping **)argument)->run_count, 1);
}

static void *release_through_other(void *argument)
{
    dropping *of = argument;
    for (uint32_t i = 0; i < DROP_COUNTERS; i++) {
        cr_expect_eq(quern_counter_release(of->other, &of->counters[i]), QUERN_OK);
        burn_ns(of->pause_ns);
    }
    return NULL;
}

/* Jobs wait for counters that are released through another pool before, while and after their own pool
 * is destroyed. Each job must run at most once, and the counters must keep no link to dropped jobs. */
static void drop_and_release(random_source *random, quern_jobs *other)
{
    dropping state = {.other = other, .pause_ns = random_below(random, 20000)}, *of = &state;
    const quern_jobs_def def = {.thread_count = 1 + random_below(random, 4)};
    quern_counter *after[DROP_COUNTERS];
    pthread_t releaser;
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    for (uint32_t i = 0; i < DROP_COUNTERS; i++)
        quern_counter_hold(&state.counters[i]);
    const uint32_t job_count = random_below(random, DROP_JOBS);
    for (uint32_t i = 0; i < job_count; i++) {
        quern_job_def job = {
            .function = count_kept, .payload = &of, .payload_bytes = sizeof of, .after = after};
        const uint32_t first = random_below(random, DROP_COUNTERS);
        job.after_count = 1 + random_below(random, DROP_COUNTERS);
        for (uint32_t k = 0; k < job.after_count; k++)
            after[k] = &state.counters[(first + k) % DROP_COUNTERS];
        cr_assert_eq(quern_jobs_submit(jobs, &job), QUERN_OK);
    }
    cr_assert_eq(pthread_create(&releaser, NULL, release_through_other, of), 0);
    burn_ns(random_below(random, 150000));
    quern_jobs_destroy(jobs);
    const uint32_t run_count = atomic_load(&state.run_count);
    pthread_join(releaser, NULL);
    cr_assert_eq(atomic_load(&state.run_count), run_count);
    cr_assert_leq(run_count, job_count);
    for (uint32_t i = 0; i < DROP_COUNTERS; i++)
        cr_assert(quern_counter_is_done(&state.counters[i]) && state.counters[i].links == NULL);
    watchdog_beat();
}

Test(stress_jobs, counters_are_released_through_another_pool)
{
    random_source random = {13};
    quern_jobs *other;
    const quern_jobs_def def = {.thread_count = 2};
    uint64_t start_ns = now_ns();
    cr_assert_eq(quern_jobs_create(&def, &other), QUERN_OK);
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9)
        drop_and_release(&random, other);
    quern_jobs_destroy(other);
}

/* Pools that exist for a few steps only, so that workers are stopped in every state. */
Test(stress_jobs, short_lived_pools_stop_workers_in_every_state)
{
    random_source random = {5};
    uint64_t start_ns = now_ns();
    while ((double)(now_ns() - start_ns) < chosen_seconds(1.5) * 1e9)
        stress_pool(1 + random_below(&random, 16), 0.001 * random_below(&random, 20), false);
}
