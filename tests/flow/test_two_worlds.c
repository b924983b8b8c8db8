/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Several worlds, schedules and pools in one process do not notice each other. */

enum { FRAME_COUNT = 6, ENTITY_COUNT = 1500 };

typedef struct life {
    flow_plan plan;
    flow_subject subject;
    quern_jobs *jobs;
    uint64_t expected[FRAME_COUNT]; /* hashes when it lives alone */
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

Test(two_worlds, live_without_pools_at_the_same_time, .timeout = 300)
{
    live_at_the_same_time();
}

/* Tries until the pool is free. */
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

static quern_result run_from_inside;

static void run_frame_inside(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin;
    (void)end;
    (void)worker_index;
    life *it = argument;
    run_from_inside = flow_subject_run(&it->subject, shared);
}

Test(two_worlds, a_frame_cannot_run_inside_a_job_of_its_pool)
{
    shared = setup_jobs(2);
    cr_assert_eq(quern_jobs_parallel_for(shared, 1, 0, run_frame_inside, &lives[0]), QUERN_OK);
    cr_assert_eq(run_from_inside, QUERN_ERROR_POOL_BUSY);
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
