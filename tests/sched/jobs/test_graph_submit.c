/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "core/base/base_internal.h"
#include "tests/sched/jobs/graph_program.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <stdatomic.h>

/* Submitted runs of graphs, and cancelled ones. */

TestSuite(graph_submit, .timeout = 120);

static void submit(quern_graph *graph, quern_jobs *jobs, quern_counter *counter)
{
    const quern_graph_run_def def = {.counter = counter};
    quern_result result = quern_graph_submit(graph, jobs, &def);
    cr_expect(result == QUERN_OK, "%s", quern_error_message());
}

static void wait_for(quern_jobs *jobs, quern_counter *counter)
{
    cr_expect(quern_jobs_wait(jobs, counter) == QUERN_OK);
}

Test(graph_submit, submitted_programs_run_like_awaited_ones)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint64_t seed = 1; seed <= 30; seed++) {
            program *of = open_program(seed, 1);
            for (uint32_t run = 0; run < 5; run++) {
                quern_counter counter = {0};
                interpret(of);
                submit(of->graph, jobs, &counter);
                wait_for(jobs, &counter);
                cr_assert_eq(quern_graph_result(of->graph), QUERN_OK);
                check_program(of);
            }
            close_program(of);
        }
        quern_jobs_destroy(jobs);
    }
}

Test(graph_submit, many_runs_may_share_a_counter)
{
    enum { PROGRAMS = 12 };
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        program *programs[PROGRAMS];
        for (uint32_t i = 0; i < PROGRAMS; i++)
            programs[i] = open_program(500 + i, 1);
        for (uint32_t run = 0; run < 20; run++) {
            quern_counter counter = {0};
            for (uint32_t i = 0; i < PROGRAMS; i++) {
                interpret(programs[i]);
                submit(programs[i]->graph, jobs, &counter);
            }
            wait_for(jobs, &counter);
            for (uint32_t i = 0; i < PROGRAMS; i++)
                check_program(programs[i]);
        }
        for (uint32_t i = 0; i < PROGRAMS; i++)
            close_program(programs[i]);
        quern_jobs_destroy(jobs);
    }
}

/* With ASan this test finds accesses to a graph after its end. */
Test(graph_submit, a_graph_may_be_destroyed_when_its_counter_is_zero)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t run = 0; run < 300; run++) {
            _Atomic uint32_t sum = 0;
            quern_counter counter = {0};
            quern_graph *inner = open_graph(), *graph = open_graph();
            add_node(inner, count_items, (void *)&sum, 3);
            add_node(inner, count_items, (void *)&sum, 1);
            for (uint32_t i = 0; i < 4; i++)
                add_node(graph, count_items, (void *)&sum, 1 + i);
            const quern_graph_node_def as_node = {.graph = inner};
            cr_assert_eq(quern_graph_add_node(graph, &as_node, NULL), QUERN_OK);
            if (run % 2) add_edge(graph, 0, 4);
            submit(graph, jobs, &counter);
            wait_for(jobs, &counter);
            quern_graph_destroy(graph);
            quern_graph_destroy(inner);
            cr_assert_eq(atomic_load(&sum), 14u);
        }
        quern_jobs_destroy(jobs);
    }
}

Test(graph_submit, a_run_needs_neither_counter_nor_wait)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        program *of = open_program(77, 1);
        interpret(of);
        cr_assert_eq(quern_graph_submit(of->graph, jobs, NULL), QUERN_OK);
        quern_jobs_destroy(jobs);
        check_program(of);
        cr_assert_eq(quern_graph_result(of->graph), QUERN_OK);
        close_program(of);
    }
}

/* ---------------------------------------------------------------------------------------- one by one */

typedef struct ordered {
    _Atomic uint32_t *done_count;
    uint32_t least;
} ordered;

static void check_before(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const ordered *mine = argument;
    cr_expect(atomic_fetch_add(mine->done_count, 1) >= mine->least);
}

/* Graph i starts after all graphs with a lower index. */
Test(graph_submit, runs_start_after_counters)
{
    enum { ROW = 6 };
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t run = 0; run < 30; run++) {
            _Atomic uint32_t done_count = 0;
            quern_graph *graphs[ROW];
            ordered order[ROW];
            quern_counter counters[ROW] = {0}, *before[ROW];
            quern_counter_hold(&counters[0]);
            for (uint32_t i = 0; i < ROW; i++) {
                graphs[i] = open_graph();
                order[i] = (ordered){&done_count, i * 3};
                for (uint32_t n = 0; n < 3; n++)
                    add_node(graphs[i], check_before, &order[i], 1);
                before[i] = &counters[i];
                const quern_graph_run_def def = {
                    .counter = &counters[i], .after = before, .after_count = i};
                cr_assert_eq(quern_graph_submit(graphs[i], jobs, &def), QUERN_OK);
            }
            if (run % 2) pass_time(100);
            cr_assert_eq(quern_counter_release(jobs, &counters[0]), QUERN_OK);
            wait_for(jobs, &counters[ROW - 1]);
            cr_assert_eq(atomic_load(&done_count), ROW * 3u);
            for (uint32_t i = 0; i < ROW; i++)
                quern_graph_destroy(graphs[i]);
        }
        quern_jobs_destroy(jobs);
    }
}

/* ------------------------------------------------------------------------------------- for the caller */

typedef struct place {
    pthread_t outside;
    _Atomic uint32_t count;
} place;

static void be_outside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    place *of = argument;
    cr_expect(pthread_equal(pthread_self(), of->outside), "on a thread of the pool");
    atomic_fetch_add(&of->count, 1);
}

Test(graph_submit, caller_only_nodes_run_on_a_waiting_external_thread)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        place of = {.outside = pthread_self()};
        for (uint32_t i = 0; i < 20; i++) {
            quern_graph_node_def def = {
                .function = be_outside, .user_data = &of, .on_worker = QUERN_ON_CALLER};
            if (i % 3 == 1) def = (quern_graph_node_def){0};
            cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
            if (i % 4 != 0) add_edge(graph, i - 1, i);
        }
        for (uint32_t run = 1; run <= 20; run++) {
            quern_counter counter = {0};
            submit(graph, jobs, &counter);
            if (run % 2)
                wait_for(jobs, &counter);
            else
                while (!quern_counter_is_done(&counter))
                    cr_assert_eq(quern_jobs_run_caller_jobs(jobs, NULL), QUERN_OK);
            cr_assert_eq(atomic_load(&of.count), 13 * run);
            if (thread_counts[t] == 1) run++; /* in such a pool, jobs run only during waits */
            if (thread_counts[t] == 1) atomic_fetch_add(&of.count, 13);
        }
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

/* ------------------------------------------------------------------------------------- inside of nodes */

enum { ENTRANTS = 8 };

typedef struct house {
    quern_jobs *jobs;
    quern_graph *other; /* submitted from a node */
    quern_counter other_counter;
    quern_counter held;
    _Atomic uint32_t in_node[16]; /* one per worker */
    _Atomic uint32_t count;
} house;

static void be_alone(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    house *of = argument;
    cr_expect(atomic_fetch_add(&of->in_node[worker_index], 1) == 0, "began in the middle of another node");
    atomic_fetch_add(&of->count, 1);
    pass_time(100);
    atomic_fetch_sub(&of->in_node[worker_index], 1);
}

static void submit_and_wait_for_something_else(void *argument, uint32_t begin, uint32_t end,
                                               uint32_t worker_index)
{
    house *of = argument;
    cr_expect(atomic_fetch_add(&of->in_node[worker_index], 1) == 0, "began in the middle of another node");
    submit(of->other, of->jobs, &of->other_counter);
    wait_for(of->jobs, &of->held);
    atomic_fetch_sub(&of->in_node[worker_index], 1);
}

static void *release_later(void *argument)
{
    house *of = argument;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    cr_expect(quern_counter_release(of->jobs, &of->held) == QUERN_OK);
    return NULL;
}

/* A node submits a graph and waits for something unrelated. */
Test(graph_submit, no_node_begins_in_the_middle_of_one_that_submitted_it)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        house of = {.jobs = open_pool(thread_counts[t]), .other = open_graph()};
        quern_graph *graph = open_graph();
        for (uint32_t i = 0; i < ENTRANTS; i++) {
            quern_graph_node_def def = {
                .function = be_alone, .user_data = &of, .on_worker = i % 4 == 3 ? QUERN_ON_CALLER : 0};
            cr_assert_eq(quern_graph_add_node(of.other, &def, NULL), QUERN_OK);
        }
        add_node(graph, submit_and_wait_for_something_else, &of, 1);
        for (uint32_t run = 1; run <= 10; run++) {
            pthread_t releaser;
            quern_counter_hold(&of.held);
            cr_assert_eq(pthread_create(&releaser, NULL, release_later, &of), 0);
            run_graph(graph, of.jobs);
            wait_for(of.jobs, &of.other_counter);
            pthread_join(releaser, NULL);
            cr_assert_eq(atomic_load(&of.count), ENTRANTS * run);
        }
        quern_graph_destroy(graph);
        quern_graph_destroy(of.other);
        quern_jobs_destroy(of.jobs);
    }
}

static void submit_and_wait(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    program **programs = argument;
    quern_jobs *jobs = (quern_jobs *)(void *)programs[ENTRANTS];
    for (uint32_t i = begin; i < end; i++) {
        quern_counter counter = {0};
        submit(programs[i]->graph, jobs, &counter);
        wait_for(jobs, &counter);
    }
}

Test(graph_submit, nodes_may_wait_for_graphs_they_submit)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        program *programs[ENTRANTS + 1];
        quern_graph *graph = open_graph();
        for (uint32_t i = 0; i < ENTRANTS; i++)
            programs[i] = open_program(900 + i, PROGRAM_DEPTH);
        programs[ENTRANTS] = (program *)(void *)jobs;
        add_node(graph, submit_and_wait, (void *)programs, ENTRANTS);
        for (uint32_t run = 0; run < 10; run++) {
            for (uint32_t i = 0; i < ENTRANTS; i++)
                interpret(programs[i]);
            run_graph(graph, jobs);
            for (uint32_t i = 0; i < ENTRANTS; i++)
                check_program(programs[i]);
        }
        for (uint32_t i = 0; i < ENTRANTS; i++)
            close_program(programs[i]);
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

/* A job waits for an event that a submitted graph causes. If all other workers wait, the job's worker may
 * run the graph. */
typedef struct awaited_event {
    quern_jobs *jobs;
    quern_graph *graph;
    quern_counter held;
} awaited_event;

static void bring(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    awaited_event *of = argument;
    cr_expect(quern_counter_release(of->jobs, &of->held) == QUERN_OK);
}

static void submit_and_wait_for_what_it_brings(void *argument, uint32_t worker_index)
{
    awaited_event *of = argument;
    quern_counter_hold(&of->held);
    cr_expect(quern_graph_submit(of->graph, of->jobs, NULL) == QUERN_OK);
    wait_for(of->jobs, &of->held);
}

Test(graph_submit, a_job_may_wait_for_an_event_of_a_graph)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        awaited_event of = {.jobs = open_pool(thread_counts[t]), .graph = open_graph()};
        add_node(of.graph, bring, &of, 1);
        for (uint32_t run = 0; run < 50; run++) {
            cr_assert_eq(quern_jobs_run(of.jobs, submit_and_wait_for_what_it_brings, &of), QUERN_OK);
            while (quern_graph_result(of.graph) == QUERN_ERROR_POOL_BUSY)
                pass_time(10);
        }
        quern_graph_destroy(of.graph);
        quern_jobs_destroy(of.jobs);
    }
}

/* ------------------------------------------------------------------------------------ external threads */

typedef struct visitor {
    quern_jobs *jobs;
    uint64_t seed;
} visitor;

static void *visit(void *argument)
{
    const visitor *mine = argument;
    program *of = open_program(mine->seed, 1);
    for (uint32_t run = 0; run < 20; run++) {
        quern_counter counter = {0};
        interpret(of);
        submit(of->graph, mine->jobs, &counter);
        wait_for(mine->jobs, &counter);
        check_program(of);
    }
    close_program(of);
    return NULL;
}

Test(graph_submit, several_external_threads_submit_and_wait)
{
    enum { VISITORS = 4 };
    for (uint32_t external_thread_count = 1; external_thread_count <= VISITORS; external_thread_count++) {
        for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
            const quern_jobs_def def = {.thread_count = thread_counts[t],
                                        .external_thread_count = external_thread_count};
            quern_jobs *jobs;
            pthread_t threads[VISITORS];
            visitor visitors[VISITORS];
            cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
            for (uint32_t i = 0; i < VISITORS; i++) {
                visitors[i] = (visitor){jobs, 300 + i};
                cr_assert_eq(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
            }
            for (uint32_t i = 0; i < VISITORS; i++)
                pthread_join(threads[i], NULL);
            quern_jobs_destroy(jobs);
        }
    }
}

/* ----------------------------------------------------------------------------------------- cancellation */

typedef struct stoppable {
    quern_cancel cancel;
    uint32_t stop_at;
    _Atomic uint32_t count;
} stoppable;

static void stop_at_some_time(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stoppable *of = argument;
    if (atomic_fetch_add(&of->count, 1) + 1 == of->stop_at) quern_cancel_request(&of->cancel);
}

Test(graph_submit, after_a_request_no_node_begins)
{
    enum { LONG = 50 };
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        stoppable of = {0};
        for (uint32_t i = 0; i < LONG; i++) {
            add_node(graph, stop_at_some_time, &of, 1);
            if (i != 0) add_edge(graph, i - 1, i);
        }
        for (uint32_t stop_at = 0; stop_at <= LONG + 1; stop_at += 7) {
            quern_counter counter = {0};
            const quern_graph_run_def def = {.counter = &counter, .cancel = &of.cancel};
            of.stop_at = stop_at;
            atomic_store(&of.count, 0);
            quern_cancel_reset(&of.cancel);
            if (stop_at == 0) quern_cancel_request(&of.cancel);
            cr_assert_eq(quern_graph_submit(graph, jobs, &def), QUERN_OK);
            wait_for(jobs, &counter);
            cr_assert_eq(atomic_load(&of.count), stop_at <= LONG ? stop_at : LONG);
            cr_assert_eq(quern_graph_result(graph), stop_at < LONG ? QUERN_ERROR_CANCELLED : QUERN_OK);
        }
        run_graph(graph, jobs);
        cr_assert_eq(quern_graph_result(graph), QUERN_OK, "a request is for one run");
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

static void stop_in_the_middle(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    stoppable *of = argument;
    if (atomic_fetch_add(&of->count, end - begin) + (end - begin) >= of->stop_at)
        quern_cancel_request(&of->cancel);
}

/* A worker that has claimed items before the request finishes its call; with a grain of 1 that is one item
 * per thread. */
Test(graph_submit, a_request_ends_the_loop_of_a_node)
{
    enum { ITEMS = 100000, STOP_AT = 500 };
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *graph = open_graph();
        stoppable of = {.stop_at = STOP_AT};
        quern_counter counter = {0};
        const quern_graph_run_def run = {.counter = &counter, .cancel = &of.cancel};
        const quern_graph_node_def def = {
            .function = stop_in_the_middle, .user_data = &of, .count = ITEMS, .grain = 1};
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
        cr_assert_eq(quern_graph_submit(graph, jobs, &run), QUERN_OK);
        wait_for(jobs, &counter);
        cr_assert_geq(atomic_load(&of.count), STOP_AT);
        cr_assert_leq(atomic_load(&of.count), STOP_AT + thread_counts[t]);
        cr_assert_eq(quern_graph_result(graph), QUERN_ERROR_CANCELLED);
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
    }
}

static uint32_t go_on(void *argument, uint32_t worker_index)
{
    stop_at_some_time(argument, 0, 1, worker_index);
    return 0;
}

Test(graph_submit, a_request_ends_cycles_and_inner_graphs)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        quern_graph *inner = open_graph(), *outer = open_graph();
        stoppable of = {.stop_at = 1000};
        const quern_graph_node_def around = {.choose = go_on, .user_data = &of}, as_node = {.graph = inner};
        add_node(inner, count_items, (void *)&of.count, 0);
        cr_assert_eq(quern_graph_add_node(inner, &around, NULL), QUERN_OK);
        add_edge(inner, 0, 1);
        add_edge(inner, 1, 1);
        cr_assert_eq(quern_graph_add_node(outer, &as_node, NULL), QUERN_OK);
        add_node(outer, stop_at_some_time, &of, 1);
        add_edge(outer, 0, 1);
        quern_counter counter = {0};
        const quern_graph_run_def def = {.counter = &counter, .cancel = &of.cancel};
        cr_assert_eq(quern_graph_submit(outer, jobs, &def), QUERN_OK);
        wait_for(jobs, &counter);
        cr_assert_eq(atomic_load(&of.count), 1000u);
        cr_assert_eq(quern_graph_result(outer), QUERN_ERROR_CANCELLED);
        quern_graph_destroy(outer);
        quern_graph_destroy(inner);
        quern_jobs_destroy(jobs);
    }
}

/* -------------------------------------------------------------------------------------------- misuse */

typedef struct gate {
    quern_graph *graph;
    quern_jobs *jobs;
} gate;

static void try_all(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    gate *of = argument;
    cr_expect(quern_graph_submit(of->graph, of->jobs, NULL) == QUERN_ERROR_POOL_BUSY);
    cr_expect(quern_graph_run(of->graph, of->jobs) == QUERN_ERROR_POOL_BUSY);
    cr_expect(quern_graph_result(of->graph) == QUERN_ERROR_POOL_BUSY);
}

Test(graph_submit, misuse_is_rejected)
{
    gate of = {open_graph(), open_pool(2)};
    quern_counter counter = {0};
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_submit(NULL, of.jobs, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_submit(of.graph, NULL, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_result(NULL));
    cr_assert_eq(quern_graph_result(of.graph), QUERN_OK, "of none");
    quern_counter *itself[] = {&counter, NULL};
    const quern_graph_run_def in_itself = {.counter = &counter, .after = itself, .after_count = 1};
    const quern_graph_run_def of_null = {.after = itself, .after_count = 2};
    const quern_graph_run_def too_many = {.after = itself, .after_count = QUERN_MAX_AFTER + 1};
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_submit(of.graph, of.jobs, &in_itself));
    must_refuse(NULL_ARGUMENT, NULL, quern_graph_submit(of.graph, of.jobs, &of_null));
    must_refuse(INVALID_ARGUMENT, NULL, quern_graph_submit(of.graph, of.jobs, &too_many));
    add_node(of.graph, try_all, &of, 1);
    submit(of.graph, of.jobs, &counter);
    wait_for(of.jobs, &counter);
    quern_graph_clear(of.graph);
    submit(of.graph, of.jobs, &counter);
    wait_for(of.jobs, &counter);
    cr_assert_eq(quern_graph_result(of.graph), QUERN_OK, "of no nodes");
    quern_graph_destroy(of.graph);
    quern_jobs_destroy(of.jobs);
}

/* Each allocation of the pool and of the graph fails in turn; then nothing was submitted. */
Test(graph_submit, survives_failing_memory)
{
    for (uint64_t call = 1; call <= 8; call++) {
        failing_allocator *allocator = failing_allocator_create();
        failing_allocator_pause(allocator, true);
        const quern_jobs_def def = {.thread_count = 3, .allocator = failing_allocator_interface(allocator)};
        _Atomic uint32_t sum = 0;
        quern_counter counter = {0};
        quern_jobs *jobs;
        quern_graph *graph;
        cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
        cr_assert_eq(quern_graph_create(&def.allocator, &graph), QUERN_OK);
        add_node(graph, count_items, (void *)&sum, 5);
        failing_allocator_pause(allocator, false);
        failing_allocator_fail_at(allocator, call);
        const quern_graph_run_def run = {.counter = &counter};
        while (quern_graph_submit(graph, jobs, &run) == QUERN_ERROR_OUT_OF_MEMORY)
            cr_assert(quern_counter_is_done(&counter) && quern_graph_result(graph) == QUERN_OK);
        wait_for(jobs, &counter);
        cr_assert_eq(atomic_load(&sum), 5u);
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
        failing_allocator_destroy(allocator);
    }
}
