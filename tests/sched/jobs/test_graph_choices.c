/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "core/base/base_internal.h"
#include "tests/sched/jobs/graph_program.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <stdatomic.h>
#include <string.h>

/* Nodes that choose, nodes that are graphs, and priorities. */

TestSuite(graph_choices, .timeout = 120);

Test(graph_choices, random_programs_run_nodes_as_often_as_on_one_thread)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint64_t seed = 1; seed <= 40; seed++) {
            program *of = open_program(seed, 1);
            for (uint32_t run = 0; run < 6; run++) {
                interpret(of);
                run_graph(of->graph, run % 3 == 2 ? NULL : jobs);
                check_program(of);
            }
            close_program(of);
        }
        quern_jobs_destroy(jobs);
    }
}

/* ---------------------------------------------------------------------------------------------- order */

typedef struct order_log {
    uint32_t numbers[64];
    uint32_t count;
    uint32_t rounds_left;
} order_log;

typedef struct entry {
    order_log *log;
    uint32_t number;
} entry;

static void write_down(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const entry *mine = argument;
    mine->log->numbers[mine->log->count++] = mine->number;
}

static uint32_t go_around(void *argument, uint32_t worker_index)
{
    entry *mine = argument;
    write_down(argument, 0, 1, worker_index);
    return mine->log->rounds_left-- > 1 ? 0 : 1;
}

static void check_log(const order_log *log, const uint32_t *expected, uint32_t count)
{
    cr_assert_eq(log->count, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(log->numbers[i], expected[i], "place %u: %u, not %u", i, log->numbers[i], expected[i]);
}

/* 0 -> 1 -> 2, which chooses 1 again or 3. */
static void build_circle(quern_graph *graph, entry *entries)
{
    for (uint32_t i = 0; i < 4; i++) {
        quern_graph_node_def def = {.user_data = &entries[i]};
        if (i == 2)
            def.choose = go_around;
        else
            def.function = write_down;
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    }
    add_edge(graph, 0, 1);
    add_edge(graph, 1, 2);
    add_edge(graph, 2, 1);
    add_edge(graph, 2, 3);
}

Test(graph_choices, a_choice_may_lead_back)
{
    static const uint32_t expected[] = {0, 1, 2, 1, 2, 1, 2, 3};
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        order_log log;
        entry entries[4] = {{&log, 0}, {&log, 1}, {&log, 2}, {&log, 3}};
        build_circle(graph, entries);
        for (uint32_t run = 0; run < 20; run++) {
            log = (order_log){.rounds_left = 3};
            run_graph(graph, run % 2 ? jobs : NULL);
            check_log(&log, expected, QUERN__COUNT_OF(expected));
        }
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

Test(graph_choices, one_thread_runs_nodes_by_priority_then_readiness)
{
    static const quern_priority priorities[] = {QUERN_PRIORITY_LOW,  QUERN_PRIORITY_NORMAL,
                                                QUERN_PRIORITY_HIGH, QUERN_PRIORITY_NORMAL,
                                                QUERN_PRIORITY_HIGH, QUERN_PRIORITY_LOW};
    static const uint32_t expected[] = {2, 1, 4, 3, 0, 5};
    quern_jobs *jobs = open_pool(1);
    quern_graph *graph = open_graph();
    order_log log;
    entry entries[6];
    for (uint32_t i = 0; i < 6; i++) {
        entries[i] = (entry){&log, i};
        quern_graph_node_def def = {
            .function = write_down, .user_data = &entries[i], .priority = priorities[i]};
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    }
    add_edge(graph, 1, 4);
    for (uint32_t run = 0; run < 4; run++) {
        log = (order_log){0};
        run_graph(graph, run % 2 ? jobs : NULL);
        check_log(&log, expected, QUERN__COUNT_OF(expected));
    }
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

enum { RANKED_NODES = 60 };

typedef struct ranking {
    _Atomic uint32_t begun[3];   /* one per priority */
    _Atomic uint32_t late_count; /* nodes of high priority that began after more than one of low */
} ranking;

typedef struct ranked {
    ranking *of;
    quern_priority priority;
} ranked;

/* While a node of high priority waits, no thread takes one of low priority; but the system may pause a thread between
 * taking its node and beginning it. So at most one node of high priority, that of the other thread, begins late. */
static void begin_ranked(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const ranked *mine = argument;
    atomic_fetch_add(&mine->of->begun[mine->priority], 1);
    if (mine->priority == QUERN_PRIORITY_HIGH && atomic_load(&mine->of->begun[QUERN_PRIORITY_LOW]) > 1)
        atomic_fetch_add(&mine->of->late_count, 1);
    pass_time(50);
}

Test(graph_choices, ready_nodes_of_high_priority_begin_first)
{
    quern_jobs *jobs = open_pool(2);
    quern_graph *graph = open_graph();
    ranking all = {0};
    ranked nodes[RANKED_NODES];
    for (uint32_t i = 0; i < RANKED_NODES; i++) {
        nodes[i] = (ranked){&all, i % 2 ? QUERN_PRIORITY_HIGH : QUERN_PRIORITY_LOW};
        quern_graph_node_def def = {
            .function = begin_ranked, .user_data = &nodes[i], .priority = nodes[i].priority};
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    }
    for (uint32_t run = 0; run < 10; run++) {
        run_graph(graph, jobs);
        cr_assert_leq(atomic_exchange(&all.late_count, 0), 1u);
        for (uint32_t p = 0; p < 3; p++)
            cr_assert_eq(atomic_exchange(&all.begun[p], 0),
                         p == QUERN_PRIORITY_NORMAL ? 0 : RANKED_NODES / 2);
    }
    quern_graph_destroy(graph);
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------------------- limits */

Test(graph_choices, exceeding_the_choice_limit_names_the_node)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        order_log log;
        entry mine = {&log, 7};
        quern_graph_node_def joint = {0};
        quern_graph_node_def around = {
            .choose = go_around, .user_data = &mine, .choice_limit = 5, .name = "around"};
        cr_assert_eq(quern_graph_add_node(graph, &joint, NULL), QUERN_OK);
        cr_assert_eq(quern_graph_add_node(graph, &around, NULL), QUERN_OK);
        add_edge(graph, 0, 1);
        add_edge(graph, 1, 1);
        for (uint32_t run = 0; run < 3; run++) {
            log = (order_log){.rounds_left = 100};
            cr_assert_eq(quern_graph_run(graph, run == 1 ? NULL : jobs), QUERN_ERROR_LIMIT);
            cr_assert_not_null(strstr(quern_error_message(), "node 1 'around'"));
            cr_assert_eq(log.count, 5u);
            cr_assert_eq(quern_graph_result(graph), QUERN_ERROR_LIMIT);
        }
        log = (order_log){.rounds_left = 5};
        run_graph(graph, jobs);
        cr_assert_eq(quern_graph_result(graph), QUERN_OK);
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

/* -------------------------------------------------------------------------------------------- misuse */

static void try_to_use(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern_graph *inner = argument;
    cr_expect(quern_graph_run(inner, NULL) == QUERN_ERROR_POOL_BUSY);
    cr_expect(quern_graph_add_node(inner, NULL, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect(quern_graph_result(inner) == QUERN_ERROR_POOL_BUSY);
}

Test(graph_choices, an_inner_graph_runs_until_the_outer_run_ends)
{
    quern_jobs *jobs = open_pool(2);
    quern_graph *inner = open_graph(), *outer = open_graph();
    _Atomic uint32_t sum = 0;
    add_node(inner, count_items, (void *)&sum, 9);
    quern_graph_node_def as_node = {.graph = inner};
    add_node(outer, try_to_use, inner, 1);
    cr_assert_eq(quern_graph_add_node(outer, &as_node, NULL), QUERN_OK);
    add_node(outer, try_to_use, inner, 1);
    add_edge(outer, 0, 1);
    add_edge(outer, 1, 2);
    run_graph(outer, jobs);
    run_graph(outer, NULL);
    run_graph(inner, jobs);
    cr_assert_eq(atomic_load(&sum), 27u);
    quern_graph_destroy(outer);
    quern_graph_destroy(inner);
    quern_jobs_destroy(jobs);
}

Test(graph_choices, bad_nodes_are_rejected)
{
    quern_graph *graph = open_graph(), *other = open_graph();
    const quern_graph_node_def bad[] = {
        {.function = write_down, .choose = go_around},
        {.function = write_down, .graph = other},
        {.choose = go_around, .graph = other},
        {.choice_limit = 1},
        {.choose = go_around, .count = 2},
        {.choose = go_around, .grain = 1},
        {.graph = other, .count = 2},
        {.graph = other, .on_worker = QUERN_ON_CALLER},
        {.function = write_down, .on_worker = 1},
        {.graph = graph},
        {.priority = (quern_priority)3},
    };
    for (size_t i = 0; i < QUERN__COUNT_OF(bad); i++)
        must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_node(graph, &bad[i], NULL));
    const quern_graph_node_def choice = {.choose = go_around}, node = {.graph = other};
    cr_assert_eq(quern_graph_add_node(graph, &choice, NULL), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(graph, &node, NULL), QUERN_OK);
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_set_count(graph, 0, 2));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_set_count(graph, 1, 2));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 2, 0));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_add_edge(graph, 1, 0));
    quern_graph_destroy(graph);
    quern_graph_destroy(other);
}

static void refuse_run(quern_graph *graph, quern_jobs *jobs, const char *word)
{
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_run(graph, jobs));
    cr_assert_not_null(strstr(quern_error_message(), word), "%s", quern_error_message());
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_submit(graph, jobs, NULL));
    cr_assert_not_null(strstr(quern_error_message(), word), "%s", quern_error_message());
}

Test(graph_choices, impossible_runs_are_rejected_and_claim_nothing)
{
    quern_jobs *jobs = open_pool(2);
    quern_graph *a = open_graph(), *b = open_graph(), *c = open_graph();
    const quern_graph_node_def is_a = {.graph = a}, is_b = {.graph = b},
                               is_c = {.graph = c, .name = "shared"};
    const quern_graph_node_def choice = {.choose = go_around};
    cr_assert_eq(quern_graph_add_node(a, &is_b, NULL), QUERN_OK);
    cr_assert_eq(quern_graph_add_node(a, &is_c, NULL), QUERN_OK);
    run_graph(a, jobs);
    cr_assert_eq(quern_graph_add_node(b, &is_c, NULL), QUERN_OK);
    refuse_run(a, jobs, "the graph of node 1 'shared' is part of this run already");
    quern_graph_clear(b);
    cr_assert_eq(quern_graph_add_node(b, &is_a, NULL), QUERN_OK);
    refuse_run(a, jobs, "the graph of node 0 is part of this run already");
    quern_graph_clear(b);
    cr_assert_eq(quern_graph_add_node(c, &choice, NULL), QUERN_OK);
    add_edge(c, 0, 0);
    refuse_run(c, jobs, "begin");
    refuse_run(a, jobs, "begin");
    quern_graph_clear(c);
    run_graph(a, jobs);
    run_graph(b, jobs);
    run_graph(c, jobs);
    quern_graph_destroy(a);
    quern_graph_destroy(b);
    quern_graph_destroy(c);
    quern_jobs_destroy(jobs);
}

/* Each allocation fails once; afterwards the graph is unchanged. */
Test(graph_choices, survives_failing_memory)
{
    quern_jobs *jobs = open_pool(3);
    for (uint64_t call = 1; call <= 12; call++) {
        failing_allocator *allocator = failing_allocator_create();
        failing_allocator_fail_at(allocator, call);
        quern_allocator interface = failing_allocator_interface(allocator);
        _Atomic uint32_t sum = 0;
        quern_graph *inner = NULL, *outer = NULL;
        const quern_graph_node_def count = {.function = count_items,
                                            .user_data = (void *)&sum,
                                            .count = 5,
                                            .priority = QUERN_PRIORITY_HIGH};
        while (quern_graph_create(&interface, &inner) != QUERN_OK ||
               quern_graph_create(&interface, &outer) != QUERN_OK) {
            quern_graph_destroy(inner);
            inner = NULL;
        }
        while (quern_graph_add_node(inner, &count, NULL) == QUERN_ERROR_OUT_OF_MEMORY) {
        }
        const quern_graph_node_def as_node = {.graph = inner};
        while (quern_graph_add_node(outer, &as_node, NULL) == QUERN_ERROR_OUT_OF_MEMORY) {
        }
        while (quern_graph_run(outer, jobs) == QUERN_ERROR_OUT_OF_MEMORY)
            cr_assert_eq(atomic_load(&sum), 0u);
        cr_assert_eq(atomic_load(&sum), 5u);
        run_graph(inner, jobs);
        cr_assert_eq(atomic_load(&sum), 10u);
        quern_graph_destroy(outer);
        quern_graph_destroy(inner);
        failing_allocator_close(allocator);
    }
    quern_jobs_destroy(jobs);
}
