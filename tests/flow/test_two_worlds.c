/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"
#include "tests/support/effort.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Several worlds, schedules and pools in one process must not affect each other. */

enum { FRAME_COUNT = effort(6, 6, 3), ENTITY_COUNT = 1500 };

typedef struct program {
    flow_plan plan;
    flow_subject subject;
    quern_jobs *jobs;
    uint64_t expected[FRAME_COUNT]; /* hashes when the world runs alone */
    quern_result worst;
    bool differs;
} program;

static program programs[2];

static void play_alone(program *it)
{
    flow_subject_open(&it->subject, &it->plan, NULL);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_must_run(&it->subject, NULL);
        it->expected[frame] = quern_world_hash(it->subject.world);
    }
    flow_subject_close(&it->subject);
}

static void open_programs(void)
{
    for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
        programs[i] = (program){.jobs = NULL};
        flow_plan_make(&programs[i].plan, 300 + i, ENTITY_COUNT);
        play_alone(&programs[i]);
    }
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        flow_subject_open(&programs[i].subject, &programs[i].plan, NULL);
}

static void close_programs(void)
{
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        flow_subject_close(&programs[i].subject);
}

/* Opens new programs on one pool. */
static void reopen_worlds(quern_jobs *jobs)
{
    close_programs();
    open_programs();
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        programs[i].jobs = jobs;
}

TestSuite(two_worlds, .init = open_programs, .fini = close_programs);

static void play_frame(program *it, uint32_t frame)
{
    quern_result result = flow_subject_run(&it->subject, it->jobs);
    if (result != QUERN_OK) it->worst = result;
    it->differs |= quern_world_hash(it->subject.world) != it->expected[frame];
}

static void assert_as_expected(const program *it)
{
    cr_assert_eq(it->worst, QUERN_OK, "%s", quern_result_string(it->worst));
    cr_assert_not(it->differs, "seed %llu: not as when alone", (unsigned long long)it->plan.seed);
    assert_valid(it->subject.world);
}

Test(two_worlds, worlds_share_a_pool_in_turn, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(4);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
        for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
            programs[i].jobs = jobs;
            play_frame(&programs[i], frame);
        }
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        assert_as_expected(&programs[i]);
    quern_jobs_destroy(jobs);
}

static void *run_program(void *argument)
{
    program *it = argument;
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
        play_frame(it, frame);
    return NULL;
}

static void run_at_the_same_time(void)
{
    pthread_t threads[COUNT_OF(programs)];
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_program, &programs[i]), 0);
    for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
        pthread_join(threads[i], NULL);
        assert_as_expected(&programs[i]);
    }
}

Test(two_worlds, worlds_run_on_two_pools_at_the_same_time, .timeout = 300)
{
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        programs[i].jobs = setup_jobs(2 + i);
    run_at_the_same_time();
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        quern_jobs_destroy(programs[i].jobs);
}

static const uint32_t shared_thread_counts[] = {1, 2, 3, 8};

static quern_jobs *open_for_two(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count, .external_thread_count = COUNT_OF(programs)};
    must(quern_jobs_create(&def, &jobs));
    return jobs;
}

Test(two_worlds, worlds_run_on_one_pool_at_the_same_time, .timeout = 600)
{
    for (uint32_t i = 0; i < COUNT_OF(shared_thread_counts); i++) {
        quern_jobs *jobs = open_for_two(shared_thread_counts[i]);
        reopen_worlds(jobs);
        run_at_the_same_time();
        quern_jobs_destroy(jobs);
    }
}

static void run_in_job(void *argument, uint32_t worker_index)
{
    run_program(*(program **)argument);
}

/* The frames run in jobs: on external threads and, with two threads or more, on the pool's own threads. */
Test(two_worlds, worlds_run_in_jobs_of_one_pool, .timeout = 600)
{
    for (uint32_t i = 0; i < COUNT_OF(shared_thread_counts); i++) {
        quern_jobs *jobs = open_for_two(shared_thread_counts[i]);
        quern_counter counter = {0};
        reopen_worlds(jobs);
        for (uint32_t k = 0; k < COUNT_OF(programs); k++) {
            program *it = &programs[k];
            const quern_job_def def = {
                .function = run_in_job, .payload = &it, .payload_bytes = sizeof it, .counter = &counter};
            must(quern_jobs_submit(jobs, &def));
        }
        must(quern_jobs_wait(jobs, &counter));
        for (uint32_t k = 0; k < COUNT_OF(programs); k++)
            assert_as_expected(&programs[k]);
        quern_jobs_destroy(jobs);
    }
}

Test(two_worlds, worlds_run_without_pools_at_the_same_time, .timeout = 300)
{
    run_at_the_same_time();
}

/* Runs frames and repeats those that fail because the pool is busy. */
static void *run_until_pool_is_free(void *argument)
{
    program *it = argument;
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        uint64_t hash = quern_world_hash(it->subject.world);
        quern_result result;
        while ((result = flow_subject_run(&it->subject, it->jobs)) == QUERN_ERROR_POOL_BUSY)
            it->differs |= quern_world_hash(it->subject.world) != hash;
        if (result != QUERN_OK) it->worst = result;
        it->differs |= quern_world_hash(it->subject.world) != it->expected[frame];
    }
    return NULL;
}

Test(two_worlds, worlds_contend_for_one_pool, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(3);
    pthread_t threads[COUNT_OF(programs)];
    for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
        programs[i].jobs = jobs;
        cr_assert_eq(pthread_create(&threads[i], NULL, run_until_pool_is_free, &programs[i]), 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
        pthread_join(threads[i], NULL);
        assert_as_expected(&programs[i]);
    }
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------------- a busy pool */

static quern_jobs *shared;
static _Atomic bool is_busy, may_end;

static void hold(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    is_busy = true;
    while (!may_end) {
    }
}

static void *occupy_pool(void *argument)
{
    must(quern_jobs_parallel_for(shared, 1, 0, hold, NULL));
    return NULL;
}

Test(two_worlds, busy_pool_refuses_a_frame_before_its_first_system, .timeout = 300)
{
    shared = setup_jobs(2);
    is_busy = may_end = false;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, occupy_pool, NULL), 0);
    while (!is_busy) {
    }
    for (uint32_t i = 0; i < COUNT_OF(programs); i++)
        assert_refused(programs[i].subject.world, QUERN_ERROR_POOL_BUSY,
                       flow_subject_run(&programs[i].subject, shared));
    may_end = true;
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < COUNT_OF(programs); i++) {
        flow_subject_must_run(&programs[i].subject, shared);
        cr_assert_eq(quern_world_hash(programs[i].subject.world), programs[i].expected[0]);
    }
    quern_jobs_destroy(shared);
}

static void run_frame_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    program *it = argument;
    play_frame(it, 0);
}

Test(two_worlds, frame_runs_inside_a_loop_of_its_pool)
{
    shared = programs[0].jobs = setup_jobs(2);
    must(quern_jobs_parallel_for(shared, 1, 0, run_frame_inside, &programs[0]));
    assert_as_expected(&programs[0]);
    quern_jobs_destroy(shared);
}

/* ----------------------------------------------------------------------------------- foreign handles */

static quern_entity foreign;
static quern_component foreign_component;

static void use_foreign(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must_refuse(FOREIGN_ENTITY, NULL, quern_commands_destroy(commands, foreign));
    assert_refused_value(NULL, record_entity_with(commands, &foreign_component, NULL, 1).bits);
    cr_assert_not(quern_context_is_alive(context, foreign));
}

Test(two_worlds, worlds_refuse_handles_of_each_other)
{
    foreign = setup_entity(programs[0].subject.world);
    foreign_component = programs[0].subject.components[0];
    cr_assert_eq(run_once(programs[1].subject.world, use_foreign).command_count, 0u);
}
