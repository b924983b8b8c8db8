/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule.h"
#include "tests/flow/flow_reference.h"
#include "tests/flow/flow_setup.h"

#include <criterion/criterion.h>

#include <string.h>

/* Random systems over random worlds: the same after every frame at every thread count, and the same as the
 * naive reference. */

enum { FRAME_COUNT = 6, SEED_COUNT = 12, ENTITY_COUNT = 1500 };

/* What of a frame must not depend on threads. */
typedef struct outcome {
    uint64_t hash;
    quern_frame_stats stats;
} outcome;

static outcome outcome_of(const flow_subject *subject)
{
    outcome it = {quern_world_hash(subject->world), quern_schedule_frame_stats(subject->schedule)};
    it.stats.time_ns = 0;
    it.stats.sync_ns = 0;
    return it;
}

static bool same_outcome(const outcome *a, const outcome *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static flow_plan plan;
static flow_subject subject;
static flow_reference reference;
static outcome expected[FRAME_COUNT];

static void play_with_reference(void)
{
    flow_subject_open(&subject, &plan, NULL);
    quern_entity probe = setup_entity(subject.world);
    flow_reference_open(&reference, &plan, quern_entity_world_tag(probe));
    naive_create(&reference.world, 0, NULL);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        must_run(subject.schedule, NULL);
        flow_reference_frame(&reference);
        flow_reference_compare(&reference, &subject);
        expected[frame] = outcome_of(&subject);
    }
    flow_reference_close(&reference);
    flow_subject_close(&subject);
}

static void play_with_threads(uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    flow_subject_open(&subject, &plan, NULL);
    subject.schedule->playback.parallel_command_count = 1; /* also what is not worth it */
    setup_entity(subject.world);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        must_run(subject.schedule, jobs);
        outcome actual = outcome_of(&subject);
        cr_assert(same_outcome(&actual, &expected[frame]), "seed %llu, frame %u, %u threads",
                  (unsigned long long)plan.seed, frame, thread_count);
    }
    flow_subject_close(&subject);
    quern_jobs_destroy(jobs);
}

Test(determinism, frames_are_as_in_the_reference_at_every_thread_count, .timeout = 600)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, ENTITY_COUNT);
        play_with_reference();
        for (uint32_t i = 1; i < POOL_COUNT; i++)
            play_with_threads(pool_threads[i]);
    }
}

Test(determinism, a_pool_may_change_between_frames, .timeout = 600)
{
    for (uint64_t seed = 101; seed <= 104; seed++) {
        flow_plan_make(&plan, seed, ENTITY_COUNT);
        play_with_reference();
        flow_subject_open(&subject, &plan, NULL);
        setup_entity(subject.world);
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
            quern_jobs *jobs = setup_jobs(pool_threads[(frame * 3 + seed) % POOL_COUNT]);
            must_run(subject.schedule, jobs);
            outcome actual = outcome_of(&subject);
            cr_assert(same_outcome(&actual, &expected[frame]), "seed %llu, frame %u",
                      (unsigned long long)seed, frame);
            quern_jobs_destroy(jobs);
        }
        flow_subject_close(&subject);
    }
}
