/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, stress */
#include "tests/flow/flow_reference.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/stress.h"

#include <stdio.h>
#include <string.h>

/* Like flow/test_determinism.c, with larger worlds, more frames, and another pool in every frame.
 * QUERN_STRESS_SECONDS sets the duration, QUERN_STRESS_SEED the first seed. */

enum { DEFAULT_SECONDS = 2, FRAME_COUNT = 10, MAX_THREADS = 12, MAX_ENTITIES = 12000 };

static flow_plan plan;
/* steady runs without a pool; shifting runs with a new pool in every frame and a shuffled schedule. */
static flow_subject steady, shifting;
static flow_reference reference;
static random_source chance;

static quern_jobs *random_pool(void)
{
    return setup_jobs(random_below(&chance, MAX_THREADS + 1));
}

/* Creates and destroys entities immediately, between frames. */
static void change_between_frames(flow_subject *subject)
{
    quern_entity entity = setup_entity_with(subject->world, subject->components, 3);
    if (quern_entity_index(entity) % 2 == 0) must(quern_entity_destroy(subject->world, entity));
}

static void change_reference_between_frames(void)
{
    uint64_t words[FLOW_WORD_COUNT] = {0};
    uint32_t set = 0;
    for (uint32_t type = 0; type < 3; type++)
        naive_add_type(&reference.world, &set, words, type, NULL); /* types may have default values */
    quern_entity entity = naive_create(&reference.world, set, words);
    if (quern_entity_index(entity) % 2 == 0) naive_destroy(&reference.world, entity);
}

static void play_frame(uint32_t frame)
{
    quern_jobs *jobs = random_pool();
    uint32_t thread_count = jobs != NULL ? quern_jobs_thread_count(jobs) : 0;
    flow_subject_call(&steady, NULL);
    flow_subject_call(&shifting, jobs);
    flow_subject_must_run(&steady, NULL);
    flow_subject_must_run(&shifting, jobs);
    quern_jobs_destroy(jobs);
    flow_reference_call(&reference);
    flow_reference_frame(&reference);
    flow_reference_compare(&reference, &steady);
    assert_valid(shifting.world);
    cr_assert_eq(quern_world_hash(shifting.world), quern_world_hash(steady.world),
                 "seed %llu, frame %u, %u threads", (unsigned long long)plan.seed, frame, thread_count);
    change_between_frames(&steady);
    change_between_frames(&shifting);
    change_reference_between_frames();
}

static void play(uint64_t seed)
{
    chance.state = seed;
    flow_plan_make(&plan, seed, 1 + random_below(&chance, MAX_ENTITIES));
    flow_subject_open(&steady, &plan, NULL);
    quern_schedule_def style = {.disable_fusing = random_chance(&chance, 25)};
    style.timing = random_chance(&chance, 25);
    style.shuffle_seed = random_chance(&chance, 50) ? random_next(&chance) : 0;
    flow_subject_open_as(&shifting, &plan, NULL, style);
    quern_entity probe = setup_entity(steady.world);
    setup_entity(shifting.world);
    flow_reference_open(&reference, &plan, probe);
    naive_create(&reference.world, 0, NULL);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
        play_frame(frame);
    flow_reference_close(&reference);
    flow_subject_close(&steady);
    flow_subject_close(&shifting);
}

Test(stress_frames, random_frames_match_the_reference_with_any_pool, .timeout = 86400)
{
    double end = stress_deadline(DEFAULT_SECONDS, 1);
    uint64_t seed = stress_seed(5000);
    do {
        fprintf(stderr, "QUERN_STRESS_SEED=%llu\n", (unsigned long long)seed);
        play(seed++);
    } while (stress_seconds_now() < end);
}
