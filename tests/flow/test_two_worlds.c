/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Several worlds, schedules and pools in one process must not affect each other. */

enum { FRAME_COUNT = 6, ENTITY_COUNT = 1500 };

typedef struct life {
    flow_plan plan;
    flow_subject subject;
    quern_jobs *jobs;
    uint64_t expected[FRAME_COUNT]; /* hashes when the world runs alone */
    quern_result worst;
    bool differs;
} life;

static life lives[2];

static void play_alone(life *it)
{
    flow_subject_open(&it->subject, &it->plan, NULL);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_must_run(&it->subject, NULL);
        it->expected[frame] = quern_world_hash(it->subject.world);
    }
    flow_subject_close(&it->subject);
}

static void open_lives(void)
{
    for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
        lives[i] = (life){.jobs = NULL};
        flow_plan_make(&lives[i].plan, 300 + i, ENTITY_COUNT);
        play_alone(&lives[i]);
    }
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        flow_subject_open(&lives[i].subject, &lives[i].plan, NULL);
}

static void close_lives(void)
{
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        flow_subject_close(&lives[i].subject);
}

/* Opens new lives on one pool. */
static void begin_anew(quern_jobs *jobs)
{
    close_lives();
    open_lives();
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        lives[i].jobs = jobs;
}

TestSuite(two_worlds, .init = open_lives, .fini = close_lives);

static void play_frame(life *it, uint32_t frame)
{
    quern_result result = flow_subject_run(&it->subject, it->jobs);
    if (result != QUERN_OK) it->worst = result;
    it->differs |= quern_world_hash(it->subject.world) != it->expected[frame];
}

static void assert_lived_well(const life *it)
{
    cr_assert_eq(it->worst, QUERN_OK, "%s", quern_result_string(it->worst));
    cr_assert_not(it->differs, "seed %llu: not as when alone", (unsigned long long)it->plan.seed);
    assert_valid(it->subject.world);
}

Test(two_worlds, share_a_pool_in_turn, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(4);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
        for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
            lives[i].jobs = jobs;
            play_frame(&lives[i], frame);
        }
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        assert_lived_well(&lives[i]);
    quern_jobs_destroy(jobs);
}

static void *live(void *argument)
{
    life *it = argument;
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
        play_frame(it, frame);
    return NULL;
}

static void live_at_the_same_time(void)
{
    pthread_t threads[COUNT_OF(lives)];
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, live, &lives[i]), 0);
    for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
        pthread_join(threads[i], NULL);
        assert_lived_well(&lives[i]);
    }
}

Test(two_worlds, live_on_two_pools_at_the_same_time, .timeout = 300)
{
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        lives[i].jobs = setup_jobs(2 + i);
    live_at_the_same_time();
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        quern_jobs_destroy(lives[i].jobs);
}

static const uint32_t shared_thread_counts[] = {1, 2, 3, 8};

static quern_jobs *open_for_two(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count, .external_thread_count = COUNT_OF(lives)};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    return jobs;
}

Test(two_worlds, live_on_one_pool_at_the_same_time, .timeout = 600)
{
    for (uint32_t i = 0; i < COUNT_OF(shared_thread_counts); i++) {
        quern_jobs *jobs = open_for_two(shared_thread_counts[i]);
        begin_anew(jobs);
        live_at_the_same_time();
        quern_jobs_destroy(jobs);
    }
}

static void live_in_job(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    live(*(life **)argument);
}

/* The frames run in jobs: on external threads and, with two threads or more, on the pool's own threads. */
Test(two_worlds, live_as_jobs_of_one_pool, .timeout = 600)
{
    for (uint32_t i = 0; i < COUNT_OF(shared_thread_counts); i++) {
        quern_jobs *jobs = open_for_two(shared_thread_counts[i]);
        quern_counter counter = {0};
        begin_anew(jobs);
        for (uint32_t k = 0; k < COUNT_OF(lives); k++) {
            life *it = &lives[k];
            const quern_job_def def = {
                .function = live_in_job, .payload = &it, .payload_bytes = sizeof it, .counter = &counter};
            cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
        }
        cr_assert_eq(quern_jobs_wait(jobs, &counter), QUERN_OK);
        for (uint32_t k = 0; k < COUNT_OF(lives); k++)
            assert_lived_well(&lives[k]);
        quern_jobs_destroy(jobs);
    }
}

Test(two_worlds, live_without_pools_at_the_same_time, .timeout = 300)
{
    live_at_the_same_time();
}

/* Runs frames and repeats those that fail because the pool is busy. */
static void *live_patiently(void *argument)
{
    life *it = argument;
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

Test(two_worlds, contend_for_one_pool, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(3);
    pthread_t threads[COUNT_OF(lives)];
    for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
        lives[i].jobs = jobs;
        cr_assert_eq(pthread_create(&threads[i], NULL, live_patiently, &lives[i]), 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
        pthread_join(threads[i], NULL);
        assert_lived_well(&lives[i]);
    }
    quern_jobs_destroy(jobs);
}

/* --------------------------------------------------------------------------------------- a busy pool */

static quern_jobs *shared;
static _Atomic bool is_busy, may_end;

static void hold(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)argument;
    (void)begin;
    (void)end;
    (void)worker_index;
    is_busy = true;
    while (!may_end) {
    }
}

static void *keep_busy(void *argument)
{
    (void)argument;
    cr_assert_eq(quern_jobs_parallel_for(shared, 1, 0, hold, NULL), QUERN_OK);
    return NULL;
}

Test(two_worlds, a_busy_pool_refuses_a_frame_before_its_first_system, .timeout = 300)
{
    shared = setup_jobs(2);
    is_busy = may_end = false;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, keep_busy, NULL), 0);
    while (!is_busy) {
    }
    for (uint32_t i = 0; i < COUNT_OF(lives); i++)
        assert_refused(lives[i].subject.world, QUERN_ERROR_POOL_BUSY,
                       flow_subject_run(&lives[i].subject, shared));
    may_end = true;
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < COUNT_OF(lives); i++) {
        flow_subject_must_run(&lives[i].subject, shared);
        cr_assert_eq(quern_world_hash(lives[i].subject.world), lives[i].expected[0]);
    }
    quern_jobs_destroy(shared);
}

static void run_frame_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin;
    (void)end;
    (void)worker_index;
    life *it = argument;
    play_frame(it, 0);
}

Test(two_worlds, a_frame_runs_inside_a_loop_of_its_pool)
{
    shared = lives[0].jobs = setup_jobs(2);
    cr_assert_eq(quern_jobs_parallel_for(shared, 1, 0, run_frame_inside, &lives[0]), QUERN_OK);
    assert_lived_well(&lives[0]);
    quern_jobs_destroy(shared);
}

/* ----------------------------------------------------------------------------------- foreign handles */

static quern_entity foreign;
static quern_component foreign_component;

static void use_foreign(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    assert_refused(NULL, QUERN_ERROR_FOREIGN_ENTITY, quern_commands_destroy(commands, foreign));
    assert_refused_value(NULL, quern_commands_create_with(commands, &foreign_component, NULL, 1).bits);
    cr_assert_not(quern_context_is_alive(context, foreign));
}

Test(two_worlds, refuse_handles_of_each_other)
{
    foreign = setup_entity(lives[0].subject.world);
    foreign_component = lives[0].subject.components[0];
    cr_assert_eq(run_once(lives[1].subject.world, use_foreign).command_count, 0u);
}
