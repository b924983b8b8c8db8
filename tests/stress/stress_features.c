/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, stress */
#include <quern/graph.h>
#include <quern/jobs.h>

#include "tests/stress/features.h"
#include "tests/support/stress.h"
#include "tests/support/watchdog.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>

/* All features of a pool at random and at the same time. Eight external threads, of which some find an
 * external slot and others do not, and jobs within jobs submit webs of jobs, run loops and graphs, fork,
 * hold, release, cancel and wait. All submitted work is counted; each item must have run once or been
 * cancelled. QUERN_STRESS_SECONDS: duration of each test, default 2. QUERN_STRESS_SEED: the first seed. */

enum { MAX_DEPTH = 2, MAX_LEVELS = 5, MAX_WEB_JOBS = 24, MAX_NODES = 12, MAX_TRIES = 4, MAX_RANGES = 3 };

/* --------------------------------------------------------------------------------------- webs of jobs */

/* A job of a web. It runs after some of the earlier levels and is counted by the counter of its own
 * level. */
typedef struct web_job {
    mix *of;
    uint64_t seed;
    uint32_t depth;
    _Atomic uint32_t run_count;
    uint32_t after_count;
    uint32_t only_worker; /* index of the pool thread that alone may run it; 0: any worker */
    quern_counter *after[MAX_LEVELS];
    quern_cancel *cancels;   /* request that the job makes; NULL: none */
    quern_counter *releases; /* counter that the job releases; NULL: none */
    bool may_be_cancelled;
} web_job;

static void run_web_job(void *argument, uint32_t worker_index)
{
    web_job *self = *(web_job **)argument;
    mix *of = self->of;
    random_source random = {self->seed};
    const uint64_t before = enter(of, worker_index);
    for (uint32_t i = 0; i < self->after_count; i++)
        cr_expect(quern_counter_is_done(self->after[i]), "seed %llu: too early",
                  (unsigned long long)of->seed);
    cr_expect(atomic_fetch_add_explicit(&self->run_count, 1, memory_order_relaxed) == 0,
              "seed %llu: a job ran twice", (unsigned long long)of->seed);
    cr_expect(self->only_worker == 0 || self->only_worker == worker_index,
              "seed %llu: on worker %u, not %u", (unsigned long long)of->seed, worker_index,
              self->only_worker);
    disturb(random_next(&random));
    if (self->cancels != NULL) quern_cancel_request(self->cancels);
    if (self->releases != NULL) expect_ok(of, quern_counter_release(of->jobs, self->releases), "release");
    if (self->depth > 0 && random_chance(&random, 25)) act(of, &random, self->depth - 1);
    leave(of, worker_index, before);
}

/* Assigns the job to a pool thread or to a registered thread. Returns false if the job was not
 * submitted, for instance because the registered thread has left. */
static bool submit_assigned(web_job *self, random_source *random, quern_job_def *def)
{
    mix *of = self->of;
    const uint32_t number = random_below(random, EXTERNAL_COUNT);
    def->on_worker = atomic_load_explicit(&of->registered[number], memory_order_relaxed);
    if (def->on_worker == 0 && of->thread_count > 1) {
        self->only_worker = 1 + random_below(random, of->thread_count - 1);
        def->on_worker = self->only_worker + 1;
    }
    if (def->on_worker == 0) return false;
    self->depth = 0;
    const quern_result result = quern_jobs_submit(of->jobs, def);
    def->on_worker = 0;
    if (result == QUERN_ERROR_INVALID_ARGUMENT && self->only_worker == 0) return false;
    expect_ok(of, result, "submit for a worker");
    return true;
}

static void submit_web_job(web_job *self, random_source *random, quern_counter *counter,
                           quern_cancel *cancel, bool may_be_for_caller)
{
    quern_job_def def = {.function = run_web_job,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .priority =
                             (quern_priority)(random_chance(random, 50) ? 0 : random_below(random, 3)),
                         .counter = counter,
                         .after = self->after,
                         .after_count = self->after_count,
                         .name = random_chance(random, 50) ? "thing" : NULL};
    if (self->may_be_cancelled) def.cancel = cancel;
    if (may_be_for_caller && random_chance(random, 5)) {
        def.on_worker = QUERN_ON_CALLER;
        self->depth = 0;
    } else if (random_chance(random, 10) && submit_assigned(self, random, &def)) {
        return;
    }
    expect_ok(self->of, quern_jobs_submit(self->of->jobs, &def), "submit");
}

/* Waits with time limits, and without limit after a few attempts. If all workers waited with limits
 * only, none would be left to run jobs that no wait is for. */
static void wait_with_limits(const mix *of, random_source *random, quern_counter *counter)
{
    bool is_over = false;
    for (uint32_t tries = 1; !is_over; tries++) {
        const uint64_t limit_ns = tries < MAX_TRIES ? random_below(random, 300000) : UINT64_MAX;
        expect_ok(of, quern_jobs_wait_for(of->jobs, counter, limit_ns, &is_over), "wait for");
    }
    cr_expect(quern_counter_is_done(counter));
}

/* Waits for the counters in the order in which they finish. */
static void wait_for_each(const mix *of, random_source *random, quern_counter *counters, uint32_t count)
{
    quern_counter *left[MAX_LEVELS];
    for (uint32_t i = 0; i < count; i++)
        left[i] = &counters[i];
    for (uint32_t tries = 1; count > 0; tries++) {
        const bool has_limit = tries < MAX_TRIES && random_chance(random, 50);
        const uint64_t limit_ns = has_limit ? random_below(random, 200000) : UINT64_MAX;
        uint32_t index;
        expect_ok(of, quern_jobs_wait_any(of->jobs, left, count, limit_ns, &index), "wait any");
        if (index == count) continue;
        cr_expect(quern_counter_is_done(left[index]));
        left[index] = left[--count];
    }
}

static void wait_for_all(const mix *of, random_source *random, quern_counter *counters, uint32_t count)
{
    const uint32_t first = random_below(random, count);
    if (random_chance(random, 30)) wait_for_each(of, random, counters, count);
    for (uint32_t i = 0; i < count; i++) {
        quern_counter *counter = &counters[(first + i) % count];
        if (random_chance(random, 30))
            wait_with_limits(of, random, counter);
        else
            expect_ok(of, quern_jobs_wait(of->jobs, counter), "wait");
    }
}

static void check_web_jobs(const mix *of, const web_job *web_jobs, uint32_t count, bool is_cancelled)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t runs = atomic_load_explicit(&web_jobs[i].run_count, memory_order_relaxed);
        cr_expect(runs == 1 || (runs == 0 && is_cancelled && web_jobs[i].may_be_cancelled),
                  "seed %llu: job %u of %u ran %u times", (unsigned long long)of->seed, i, count, runs);
    }
}

static void submit_range(range *items, random_source *random, quern_counter *levels, uint32_t level,
                         quern_cancel *cancel)
{
    quern_counter *after[MAX_LEVELS];
    quern_loop_def def = {.function = run_range,
                          .user_data = items,
                          .count = items->count,
                          .grain = random_below(random, 4),
                          .priority = (quern_priority)random_below(random, 3),
                          .counter = &levels[level],
                          .cancel = cancel,
                          .name = random_chance(random, 50) ? "range" : NULL};
    for (uint32_t k = 0; k < level; k++)
        if (random_chance(random, 50)) after[def.after_count++] = &levels[k];
    def.after = after;
    expect_ok(items->of, quern_jobs_submit_loop(items->of->jobs, &def), "submit loop");
}

/* Submits several levels of jobs and a few loops. The counters are held until all of them are submitted;
 * some holds are released by jobs. */
static void act_web(mix *of, random_source *random, uint32_t depth)
{
    web_job web_jobs[MAX_WEB_JOBS] = {0};
    range ranges[MAX_RANGES] = {0};
    quern_counter levels[MAX_LEVELS + 1] = {0}; /* one more for the jobs that release holds */
    quern_cancel cancel = {0};
    const uint32_t level_count = 1 + random_below(random, MAX_LEVELS);
    const uint32_t count = 1 + random_below(random, MAX_WEB_JOBS - MAX_LEVELS);
    const uint32_t range_count = random_below(random, MAX_RANGES + 1);
    const bool has_cancel = random_chance(random, 30);
    uint32_t next = count;
    for (uint32_t i = 0; i < level_count; i++)
        quern_counter_hold(&levels[i]);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t level = random_below(random, level_count);
        web_job *self = &web_jobs[i];
        self->of = of;
        self->seed = random_next(random);
        self->depth = depth;
        self->may_be_cancelled = has_cancel && random_chance(random, 70);
        if (has_cancel && random_chance(random, 10)) self->cancels = &cancel;
        for (uint32_t k = 0; k < level; k++)
            if (random_chance(random, 50)) self->after[self->after_count++] = &levels[k];
        submit_web_job(self, random, &levels[level], &cancel, true);
    }
    for (uint32_t i = 0; i < range_count; i++) {
        ranges[i].of = of;
        ranges[i].seed = random_next(random);
        ranges[i].depth = depth;
        ranges[i].count = random_below(random, MAX_ITEMS);
        submit_range(&ranges[i], random, levels, random_below(random, level_count),
                     has_cancel ? &cancel : NULL);
    }
    if (has_cancel && random_chance(random, 30)) quern_cancel_request(&cancel);
    for (uint32_t i = 0; i < level_count; i++) {
        if (depth < MAX_DEPTH || random_chance(random, 70)) {
            expect_ok(of, quern_counter_release(of->jobs, &levels[i]), "release");
            continue;
        }
        web_jobs[next] = (web_job){.of = of, .seed = random_next(random), .releases = &levels[i]};
        submit_web_job(&web_jobs[next++], random, &levels[MAX_LEVELS], NULL, false);
    }
    wait_for_all(of, random, levels, level_count);
    expect_ok(of, quern_jobs_wait(of->jobs, &levels[MAX_LEVELS]), "wait");
    check_web_jobs(of, web_jobs, next, quern_cancel_is_requested(&cancel));
    for (uint32_t i = 0; i < range_count; i++)
        check_items(&ranges[i], quern_cancel_is_requested(&cancel));
}

/* ---------------------------------------------------------------------------------- loops and graphs */

static void act_loop(mix *of, random_source *random, uint32_t depth, bool is_external)
{
    range items = {.of = of, .seed = random_next(random), .depth = depth};
    items.count = 1 + random_below(random, MAX_ITEMS);
    const quern_result result =
        quern_jobs_parallel_for(of->jobs, items.count, random_below(random, 4), run_range, &items);
    check_range(&items, is_done(of, result, is_external, "loop"));
}

/* A loop that may cancel itself. */
typedef struct stopping {
    range items; /* the first member, because run_range receives a pointer to it */
    quern_cancel cancel;
    uint32_t cancels_at;
} stopping;

static void run_and_stop(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stopping *self = argument;
    run_range(&self->items, begin, end, worker_index);
    if (begin <= self->cancels_at && self->cancels_at < end) quern_cancel_request(&self->cancel);
}

static void act_stopping_loop(mix *of, random_source *random, bool is_external)
{
    stopping here = {.items = {.of = of, .seed = random_next(random)}};
    here.items.count = 1 + random_below(random, MAX_ITEMS);
    here.cancels_at = random_below(random, 2 * MAX_ITEMS);
    const quern_loop_def def = {.function = run_and_stop,
                                .user_data = &here,
                                .count = here.items.count,
                                .grain = random_below(random, 4),
                                .cancel = &here.cancel};
    const quern_result result = quern_jobs_run_loop(of->jobs, &def);
    if (result == QUERN_ERROR_CANCELLED) {
        cr_expect(quern_cancel_is_requested(&here.cancel));
        check_items(&here.items, true);
    } else {
        check_range(&here.items, is_done(of, result, is_external, "run loop"));
    }
}

/* A graph with the ranges of its nodes. One node may be a graph itself. */
typedef struct plan {
    quern_graph *graph;
    range nodes[MAX_NODES];
    uint32_t count;
    struct plan *inner; /* NULL: none */
} plan;

static void make_node(mix *of, random_source *random, plan *made, uint32_t number)
{
    range *node = &made->nodes[number];
    quern_graph_node_def def = {
        .priority = (quern_priority)(random_chance(random, 70) ? 0 : random_below(random, 3)),
        .name = "node"};
    node->of = of;
    node->seed = random_next(random);
    if (made->inner != NULL && number == made->count / 2) {
        def.graph = made->inner->graph;
    } else {
        node->count = 1 + random_below(random, 20);
        def.function = run_range;
        def.user_data = node;
        def.count = node->count;
        def.grain = random_below(random, 3);
        def.on_worker = random_chance(random, 10) ? QUERN_ON_CALLER : 0;
    }
    expect_ok(of, quern_graph_add_node(made->graph, &def, NULL), "node");
    for (uint32_t i = 0; i < 3 && number > 0; i++) {
        if (random_chance(random, 50)) continue;
        const uint32_t before = random_below(random, number);
        node->before[node->before_count++] = &made->nodes[before];
        expect_ok(of, quern_graph_add_edge(made->graph, before, number), "edge");
    }
}

static void make_plan(mix *of, random_source *random, plan *made, plan *inner)
{
    made->inner = inner;
    made->count = 1 + random_below(random, MAX_NODES);
    expect_ok(of, quern_graph_create(NULL, &made->graph), "graph");
    for (uint32_t i = 0; i < made->count; i++)
        make_node(of, random, made, i);
}

static void check_plan(plan *made, bool has_run, bool is_cancelled)
{
    for (uint32_t i = 0; i < made->count; i++)
        for (uint32_t k = 0; k < made->nodes[i].count; k++) {
            const uint32_t hits =
                atomic_exchange_explicit(&made->nodes[i].hits[k], 0, memory_order_relaxed);
            cr_expect(hits == has_run || (hits == 0 && is_cancelled), "seed %llu: node %u ran %u times",
                      (unsigned long long)made->nodes[i].of->seed, i, hits);
        }
    for (uint32_t i = 0; i < made->count; i++)
        atomic_store_explicit(&made->nodes[i].done_count, 0, memory_order_relaxed);
    if (made->inner != NULL) check_plan(made->inner, has_run, is_cancelled);
}

/* Submits a graph, in some cases after a held counter. In some cases the run is cancelled before or
 * after the counter is released. */
static void submit_plan(mix *of, random_source *random, plan *made)
{
    quern_counter before = {0}, finished = {0}, *const after[] = {&before};
    quern_cancel cancel = {0};
    const bool stops = random_chance(random, 20);
    const uint32_t after_count = random_below(random, 2);
    const quern_graph_run_def def = {
        .counter = &finished, .after = after, .after_count = after_count, .cancel = &cancel};
    quern_counter_hold(&before);
    expect_ok(of, quern_graph_submit(made->graph, of->jobs, &def), "submit graph");
    disturb(random_next(random));
    if (stops && random_chance(random, 50)) quern_cancel_request(&cancel);
    expect_ok(of, quern_counter_release(of->jobs, &before), "release");
    disturb(random_next(random));
    if (stops) quern_cancel_request(&cancel);
    expect_ok(of, quern_jobs_wait(of->jobs, &finished), "wait");
    const quern_result result = quern_graph_result(made->graph);
    cr_expect(result == QUERN_OK || (stops && result == QUERN_ERROR_CANCELLED), "seed %llu: %s",
              (unsigned long long)of->seed, quern_result_string(result));
    check_plan(made, true, result != QUERN_OK);
}

static void act_graph(mix *of, random_source *random, bool is_external)
{
    plan whole = {0}, inner = {0};
    const bool has_inner = random_chance(random, 30);
    if (has_inner) make_plan(of, random, &inner, NULL);
    make_plan(of, random, &whole, has_inner ? &inner : NULL);
    for (uint32_t run = 1 + random_below(random, 3); run > 0; run--) {
        if (random_chance(random, 50))
            submit_plan(of, random, &whole);
        else
            check_plan(&whole, is_done(of, quern_graph_run(whole.graph, of->jobs), is_external, "graph"),
                       false);
    }
    quern_graph_destroy(whole.graph);
    quern_graph_destroy(inner.graph);
}

typedef struct rounds {
    range body;
    uint32_t left;
} rounds;

static uint32_t choose(void *argument, uint32_t worker_index)
{
    rounds *self = argument;
    atomic_store_explicit(&self->body.done_count, 0, memory_order_relaxed);
    return self->left-- > 1 ? 0 : 1; /* choose node 0 (repeat) or 1 (continue) */
}

/* Runs a graph in which a node repeats until a choice node leaves the cycle. */
static void act_rounds(mix *of, random_source *random, bool is_external)
{
    rounds here = {.body = {.of = of, .seed = random_next(random), .count = 1 + random_below(random, 20)}};
    range last = {.of = of, .seed = random_next(random), .count = 1};
    const uint32_t round_count = 1 + random_below(random, 20);
    const bool is_limited = random_chance(random, 20);
    const quern_graph_node_def nodes[] = {
        {.name = "begin"},
        {.function = run_range, .user_data = &here.body, .count = here.body.count},
        {.choose = choose, .user_data = &here, .choice_limit = is_limited ? round_count - 1 : round_count},
        {.function = run_range, .user_data = &last}};
    static const uint32_t edges[][2] = {{0, 1}, {1, 2}, {2, 1}, {2, 3}};
    quern_graph *graph;
    expect_ok(of, quern_graph_create(NULL, &graph), "graph");
    for (uint32_t i = 0; i < 4; i++)
        expect_ok(of, quern_graph_add_node(graph, &nodes[i], NULL), "node");
    for (uint32_t i = 0; i < 4; i++)
        expect_ok(of, quern_graph_add_edge(graph, edges[i][0], edges[i][1]), "edge");
    here.left = round_count;
    const quern_result result = quern_graph_run(graph, of->jobs);
    if (is_limited && round_count > 1 && result == QUERN_ERROR_LIMIT) {
        check_range(&here.body, round_count);
        check_range(&last, 0);
    } else {
        const bool has_run = is_done(of, result, is_external, "rounds");
        check_range(&here.body, has_run ? round_count : 0);
        check_range(&last, has_run);
    }
    quern_graph_destroy(graph);
}

/* --------------------------------------------------------------------------------------------- forks */

typedef struct fork_tree {
    mix *of;
    uint64_t seed;
    uint32_t depth;
    _Atomic uint32_t *leaf_count;
} fork_tree;

static void grow(void *argument, uint32_t worker_index)
{
    const fork_tree *self = argument;
    random_source random = {self->seed};
    const uint64_t before = enter(self->of, worker_index);
    disturb(random_next(&random));
    if (self->depth == 0) {
        atomic_fetch_add_explicit(self->leaf_count, 1, memory_order_relaxed);
    } else {
        fork_tree left = *self, right = *self;
        quern_fork fork;
        left.depth = right.depth = self->depth - 1;
        left.seed = random_next(&random);
        right.seed = random_next(&random);
        expect_ok(self->of, quern_jobs_fork(self->of->jobs, &fork, grow, &left), "fork");
        grow(&right, worker_index);
        expect_ok(self->of, quern_jobs_join(self->of->jobs, &fork), "join");
    }
    leave(self->of, worker_index, before);
}

static void act_forks(mix *of, random_source *random, bool is_external)
{
    _Atomic uint32_t leaf_count = 0;
    fork_tree root = {of, random_next(random), random_below(random, 6), &leaf_count};
    const bool has_run = is_done(of, quern_jobs_run(of->jobs, grow, &root), is_external, "run");
    cr_expect(leaf_count == (has_run ? 1u << root.depth : 0), "seed %llu: %u leaves",
              (unsigned long long)of->seed, leaf_count);
}

/* --------------------------------------------------------------------------------------------- tests */

static void act_at(mix *of, random_source *random, uint32_t depth, bool is_external)
{
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        act_loop(of, random, depth, is_external);
        break;
    case 2:
        act_graph(of, random, is_external);
        if (random_chance(random, 20)) act_rounds(of, random, is_external);
        break;
    case 3:
        act_forks(of, random, is_external);
        break;
    case 4:
        act_stopping_loop(of, random, is_external);
        break;
    default:
        act_web(of, random, depth);
        break;
    }
    watchdog_beat();
}

static void act(mix *of, random_source *random, uint32_t depth)
{
    act_at(of, random, depth, false);
}

typedef struct external_thread {
    mix *of;
    uint32_t number;
    uint64_t seed;
    pthread_t thread;
} external_thread;

/* Registers the thread with the pool, or unregisters it. */
static void register_or_unregister(const external_thread *self)
{
    mix *of = self->of;
    uint32_t worker_index;
    if (atomic_exchange(&of->registered[self->number], 0) != 0) {
        expect_ok(of, quern_jobs_unregister_thread(of->jobs), "unregister");
    } else if (is_done(of, quern_jobs_register_thread(of->jobs, &worker_index), true, "register")) {
        cr_expect(worker_index < of->worker_count);
        atomic_store(&of->registered[self->number], worker_index + 1);
    }
}

static void run_caller_jobs(const mix *of)
{
    is_done(of, quern_jobs_run_caller_jobs(of->jobs, NULL), true, "caller jobs");
}

static void *run_external_thread(void *argument)
{
    const external_thread *self = argument;
    mix *of = self->of;
    random_source random = {self->seed};
    while (stress_seconds_now() < of->deadline) {
        act_at(of, &random, MAX_DEPTH, true);
        if (random_chance(&random, 5)) quern_jobs_wake(of->jobs);
        if (random_chance(&random, 5)) run_caller_jobs(of);
        if (random_chance(&random, 3)) register_or_unregister(self);
        disturb(random_next(&random));
    }
    atomic_fetch_sub(&of->acting_count, 1);
    while (atomic_load(&of->acting_count) > 0) { /* there may be jobs that only this thread can run */
        run_caller_jobs(of);
        sched_yield();
    }
    if (atomic_load(&of->registered[self->number]) != 0) register_or_unregister(self);
    return NULL;
}

static void stress_pool(uint64_t seed, uint32_t thread_count, double deadline)
{
    static mix here;
    external_thread external_threads[EXTERNAL_COUNT];
    random_source random = {seed};
    const uint32_t external_thread_count = 1 + random_below(&random, EXTERNAL_COUNT);
    const quern_jobs_def def = {.thread_count = thread_count,
                                .external_thread_count = external_thread_count,
                                .disable_spinning = random_chance(&random, 25)};
    here = (mix){.seed = seed, .deadline = deadline, .may_be_busy = external_thread_count < EXTERNAL_COUNT};
    cr_assert_eq(quern_jobs_create(&def, &here.jobs), QUERN_OK, "%s", quern_error_message());
    here.worker_count = quern_jobs_worker_count(here.jobs);
    here.thread_count = thread_count;
    here.acting_count = EXTERNAL_COUNT;
    watchdog_watch(here.jobs, seed);
    for (uint32_t i = 0; i < EXTERNAL_COUNT; i++) {
        external_threads[i] = (external_thread){.of = &here, .number = i, .seed = random_next(&random)};
        cr_assert_eq(
            pthread_create(&external_threads[i].thread, NULL, run_external_thread, &external_threads[i]),
            0);
    }
    for (uint32_t i = 0; i < EXTERNAL_COUNT; i++)
        pthread_join(external_threads[i].thread, NULL);
    watchdog_watch(NULL, seed);
    quern_jobs_destroy(here.jobs);
}

TestSuite(stress_features, .init = watchdog_start, .fini = watchdog_stop);

enum { POOL_COUNT = 4 };

/* Stresses several pools one after another, with different numbers of external slots. */
static void stress_pools(uint64_t default_seed, uint32_t min_threads, uint32_t max_threads)
{
    const double end = stress_deadline(2.0, 1), begin = stress_seconds_now();
    random_source random = {stress_seed(default_seed)};
    for (uint32_t i = 1; i <= POOL_COUNT; i++) {
        const uint64_t seed = random.state;
        const uint32_t thread_count = min_threads + random_below(&random, max_threads - min_threads + 1);
        stress_pool(seed, thread_count, begin + (end - begin) * i / POOL_COUNT);
    }
}

Test(stress_features, one_to_three_threads)
{
    stress_pools(1, 1, 3);
}

Test(stress_features, four_to_sixteen_threads)
{
    stress_pools(2, 4, 16);
}

Test(stress_features, up_to_sixty_four_threads)
{
    stress_pools(3, 17, 64);
}
