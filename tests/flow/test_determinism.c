/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "core/playback/playback.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_reference.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"

#include <string.h>

/* Random systems over random worlds, and random calls between frames. The result after every frame must
 * equal that of the naive reference at every thread count, with passes fused or not, and in every order
 * that the schedule's rules leave open. */

enum {
    FRAME_COUNT = 7,
    SEED_COUNT = effort(10, 4, 2),
    DESTROY_AND_CREATE_SEED_COUNT = effort(4, 3, 2),
    ENTITY_COUNT = effort(1500, 800, 400)
};

/* The results of a frame that must not depend on threads. */
typedef struct outcome {
    uint64_t hash;
    uint64_t archetype_count;
    uint64_t drops;
    uint64_t seen; /* flow_subject.seen */
    quern_flush_stats flush_stats;
    quern_frame_stats stats;
} outcome;

/* Hashes the report of dropped commands, except for the addresses of names. */
static uint64_t hash_drops(const quern_schedule *schedule)
{
    uint64_t hash = quern_schedule_dropped_command_count(schedule);
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command dropped;
        must(quern_schedule_get_dropped_command(schedule, i, &dropped));
        hash = flow_mix(hash ^ dropped.system.bits);
        hash = flow_mix(hash ^ dropped.reason);
        hash = flow_mix(hash ^ dropped.count);
        hash = flow_mix(hash ^ (dropped.first.bits & UINT32_MAX));
    }
    return hash;
}

static outcome outcome_of(const flow_subject *subject)
{
    outcome it = {.hash = quern_world_hash(subject->world),
                  .archetype_count = stats_of_world(subject->world).archetype_count,
                  .drops = hash_drops(subject->schedule),
                  .seen = subject->seen,
                  .stats = stats_of_frame(subject->schedule)};
    must(quern_world_get_flush_stats(subject->world, &it.flush_stats));
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
static uint64_t left_command_count; /* commands that calls left to the next frame */

static uint32_t empty_archetype_checks_per_sync; /* setting of the worlds that are created next */

static bool disable_fast_paths;           /* setting of the sync points that follow */
static uint32_t destroy_and_create_count; /* sync points that used the fast path destroy_and_create */

static void count_destroy_and_creates(void)
{
    destroy_and_create_count += subject.schedule->playback.destroy_and_create_count;
    if (subject.world->commands != NULL)
        destroy_and_create_count += subject.world->commands->playback.destroy_and_create_count;
}

/* Returns a schedule definition with prefetching, even if the heuristic finds it not worthwhile. */
static quern_schedule_def style(bool fuse, uint64_t shuffle_seed)
{
    quern_schedule_def def = {
        .disable_fusing = !fuse, .shuffle_seed = shuffle_seed, .prefetch = QUERN_PREFETCH_CHUNKS};
    return def;
}

/* Opens the subject and creates one more entity. Its handle contains the world's tag. */
static quern_entity open_subject(quern_schedule_def schedule_def)
{
    quern_world_def def = {.empty_archetype_checks_per_sync = empty_archetype_checks_per_sync};
    flow_subject_open_as(&subject, &plan, &def, schedule_def);
    return setup_entity(subject.world);
}

static void play_with_reference(quern_schedule_def schedule_def, uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_entity probe = open_subject(schedule_def);
    flow_reference_open(&reference, &plan, probe);
    naive_create(&reference.world, 0, NULL);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_call(&subject, jobs);
        flow_subject_must_run(&subject, jobs);
        flow_reference_call(&reference);
        left_command_count += reference.world_recorder.command_count;
        flow_reference_frame(&reference);
        flow_reference_compare(&reference, &subject);
        expected[frame] = outcome_of(&subject);
    }
    count_destroy_and_creates();
    flow_reference_close(&reference);
    flow_subject_close(&subject);
    quern_jobs_destroy(jobs);
}

static void play_as_expected(quern_schedule_def schedule_def, uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_subject(schedule_def);
    /* apply commands in parallel even if they are few */
    subject.schedule->playback.parallel_command_count = 1;
    must(quern__world_reserve_commands(subject.world, 1));
    subject.world->commands->playback.parallel_command_count = 1;
    subject.schedule->playback.disable_fast_paths = disable_fast_paths;
    subject.world->commands->playback.disable_fast_paths = disable_fast_paths;
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_call(&subject, jobs);
        flow_subject_must_run(&subject, jobs);
        outcome actual = outcome_of(&subject);
        cr_assert(same_outcome(&actual, &expected[frame]),
                  "seed %llu, frame %u, %u threads, %s, shuffled with %llu", (unsigned long long)plan.seed,
                  frame, thread_count, schedule_def.disable_fusing ? "not fused" : "fused",
                  (unsigned long long)schedule_def.shuffle_seed);
    }
    count_destroy_and_creates();
    flow_subject_close(&subject);
    quern_jobs_destroy(jobs);
}

/* In one of three plans the entities are so few that passes have fewer chunks than workers. */
static uint32_t entity_count_for(uint64_t seed)
{
    return seed % 3 == 0 ? 30 : ENTITY_COUNT;
}

Test(determinism, frames_match_the_reference_at_every_thread_count, .timeout = 600)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed));
        play_with_reference(style(true, 0), 0);
        for (uint32_t i = 1; i < POOL_COUNT; i++) {
            play_as_expected(style(true, 0), pool_threads[i]);
            play_as_expected(style(i % 2 == seed % 2, seed * 31 + i), pool_threads[i]);
        }
        play_as_expected(style(false, 0), pool_threads[seed % POOL_COUNT]);
    }
}

Test(determinism, frames_match_the_reference_in_every_style, .timeout = 600)
{
    for (uint64_t seed = 201; seed <= 200 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed));
        play_with_reference(style(seed % 2 == 0, seed % 4 < 2 ? seed : 0), pool_threads[seed % POOL_COUNT]);
    }
    cr_assert_gt(left_command_count, 40u * SEED_COUNT, "%llu commands waited for a frame",
                 (unsigned long long)left_command_count);
}

Test(determinism, fast_path_of_create_and_destroy_matches_the_reference, .timeout = 600)
{
    destroy_and_create_count = 0;
    for (uint64_t seed = 601; seed <= 600 + DESTROY_AND_CREATE_SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed) / 3);
        flow_plan_destroy_and_create(&plan);
        play_with_reference(style(true, 0), 0);
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            disable_fast_paths = false;
            play_as_expected(style(i % 2 == 0, seed % 2 == 0 ? seed : 0), pool_threads[i]);
            disable_fast_paths = true;
            const uint32_t before = destroy_and_create_count;
            play_as_expected(style(true, 0), pool_threads[i]);
            cr_assert_eq(destroy_and_create_count, before);
        }
        disable_fast_paths = false;
    }
    cr_assert_gt(destroy_and_create_count, 10u * POOL_COUNT * DESTROY_AND_CREATE_SEED_COUNT,
                 "%u sync points", destroy_and_create_count);
}

/* Runs the plan without a pool and without fusing, and expects its outcomes from later runs. */
static void record_expected_outcomes(void)
{
    open_subject(style(false, 0));
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_call(&subject, NULL);
        flow_subject_must_run(&subject, NULL);
        expected[frame] = outcome_of(&subject);
    }
    flow_subject_close(&subject);
}

Test(determinism, filters_by_row_match_the_reference, .timeout = 600)
{
    uint32_t filtered_count = 0;
    for (uint64_t seed = 701; seed <= 700 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed));
        record_expected_outcomes();
        const uint64_t hash_without = expected[FRAME_COUNT - 1].hash;
        flow_plan_add_row_filters(&plan);
        play_with_reference(style(seed % 2 == 0, 0), 0);
        filtered_count += expected[FRAME_COUNT - 1].hash != hash_without;
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play_as_expected(style(i % 2 == 0, seed % 3 == 0 ? seed : 0), pool_threads[i]);
        play_with_reference(style(true, seed), pool_threads[seed % POOL_COUNT]);
    }
    cr_assert_gt(filtered_count, SEED_COUNT / 2u, "filters made a difference to %u plans", filtered_count);
}

Test(determinism, change_filters_are_equal_in_every_style, .timeout = 600)
{
    uint32_t filtered_count = 0;
    for (uint64_t seed = 301; seed <= 300 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, 2 * entity_count_for(seed));
        record_expected_outcomes();
        uint64_t hash_without = expected[FRAME_COUNT - 1].hash;
        flow_plan_add_filters(&plan);
        record_expected_outcomes();
        filtered_count += expected[FRAME_COUNT - 1].hash != hash_without;
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play_as_expected(style(i % 2 == 0, seed % 2 == 0 ? seed : 0), pool_threads[i]);
    }
    cr_assert_gt(filtered_count, SEED_COUNT / 2u, "filters made a difference to %u plans", filtered_count);
}

/* Creates and destroys so many worlds that tags are reused, with other generation bases. */
static void use_up_tags(void)
{
    for (uint32_t i = 0; i < QUERN_MAX_WORLDS; i++)
        quern_world_destroy(setup_world());
}

Test(determinism, generation_bases_do_not_affect_frames, .timeout = 600)
{
    for (uint64_t seed = 401; seed <= 403; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed));
        play_with_reference(style(true, 0), 0);
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            use_up_tags();
            play_as_expected(style(i % 2 == 0, 0), pool_threads[i]);
        }
        play_with_reference(style(true, 0), pool_threads[seed % POOL_COUNT]);
    }
}

/* An archetype that is removed and needed again gets a higher index. So views have another order than
 * without removal. */
Test(determinism, archetype_removal_at_sync_points_is_equal_in_every_style, .timeout = 600)
{
    uint64_t taken_count = 0;
    for (uint64_t seed = 501; seed <= 500 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, 30 + 10 * (uint32_t)(seed % 3));
        empty_archetype_checks_per_sync = 0;
        record_expected_outcomes();
        uint64_t count_without = expected[FRAME_COUNT - 1].archetype_count;
        empty_archetype_checks_per_sync = 4u << seed % 6;
        record_expected_outcomes();
        taken_count += expected[FRAME_COUNT - 1].archetype_count < count_without;
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play_as_expected(style(i % 2 == 0, seed % 2 == 0 ? seed : 0), pool_threads[i]);
    }
    cr_assert_geq(taken_count, SEED_COUNT / 2u, "something was taken out in %llu plans",
                  (unsigned long long)taken_count);
}

/* The tests above show little if few systems are fused. */
Test(determinism, random_plans_fuse_many_systems)
{
    runs_on_one_thread();
    uint32_t fused_count[2] = {0};
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        for (uint32_t fuse = 0; fuse < 2; fuse++) {
            flow_plan_make(&plan, seed, 200);
            open_subject(style(fuse == 1, 0));
            must(quern_schedule_compile(subject.schedule));
            for (uint32_t i = 1; i < plan.system_count; i++)
                for (uint32_t k = 0; k < i; k++)
                    fused_count[fuse] +=
                        quern_schedule_are_fused(subject.schedule, subject.systems[i], subject.systems[k]);
            flow_subject_close(&subject);
        }
    cr_assert_eq(fused_count[0], 0u);
    cr_assert_gt(fused_count[1], 5u * SEED_COUNT, "%u fused pairs", fused_count[1]);
}

static bool writes(const flow_system *system, uint32_t type)
{
    return system->terms[type].used && system->terms[type].access == QUERN_ACCESS_WRITE;
}

static bool touches(const flow_system *system, uint32_t type)
{
    return system->terms[type].used &&
           (system->terms[type].access != QUERN_ACCESS_NONE || system->terms[type].changed);
}

/* Whether the views of a system run in parallel. */
static bool is_parallel(const flow_system *system)
{
    bool writes_alone = false;
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++)
        writes_alone |= system->resources[i] == QUERN_ACCESS_WRITE;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        writes_alone |= system->lookups[type].writes;
    return system->flags == 0 && flow_system_has_terms(system) && !writes_alone;
}

static bool share_resource(const flow_system *a, const flow_system *b)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        bool both = a->resources[i] != QUERN_ACCESS_NONE && b->resources[i] != QUERN_ACCESS_NONE;
        if (both && (a->resources[i] != QUERN_ACCESS_READ || b->resources[i] != QUERN_ACCESS_READ))
            return true;
    }
    return false;
}

/* Whether `looker` looks up values that `writer` writes, in one of the archetypes that entities start
 * in. */
static bool looks_up_writes(const flow_system *looker, const flow_system *writer)
{
    for (uint32_t i = 0; i < FLOW_SET_COUNT; i++) {
        const uint32_t set = flow_complete(plan.required, plan.sets[i]);
        for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
            if (looker->lookups[type].used && writes(writer, type) && (set >> type & 1) != 0 &&
                flow_lookup_matches(&looker->lookups[type], set) && flow_system_matches(writer, set))
                return true;
    }
    return false;
}

static bool is_whole_order(uint32_t first, uint32_t second)
{
    const flow_system *a = &plan.systems[first], *b = &plan.systems[second];
    if (!flow_plan_must_precede(&plan, first, second)) return false;
    bool shares_rows = false;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        shares_rows |= (writes(a, type) && touches(b, type)) || (writes(b, type) && touches(a, type));
    return !shares_rows || a->has_end || b->has_begin || b->condition_percent > 0;
}

static bool must_not_share_pass(uint32_t a, uint32_t b)
{
    const flow_system *x = &plan.systems[a], *y = &plan.systems[b];
    return x->phase != y->phase || !is_parallel(x) || !is_parallel(y) || share_resource(x, y) ||
           looks_up_writes(x, y) || looks_up_writes(y, x) || is_whole_order(a, b) || is_whole_order(b, a);
}

Test(determinism, no_random_plan_fuses_conflicting_systems, .timeout = 600)
{
    runs_on_one_thread();
    uint32_t fused_count = 0, apart_count = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        flow_plan_make(&plan, seed, 200);
        if (seed % 2 == 0) flow_plan_add_filters(&plan);
        open_subject(style(true, seed % 3 == 0 ? seed : 0));
        must(quern_schedule_compile(subject.schedule));
        for (uint32_t i = 1; i < plan.system_count; i++)
            for (uint32_t k = 0; k < i; k++) {
                bool fused =
                    quern_schedule_are_fused(subject.schedule, subject.systems[i], subject.systems[k]);
                cr_assert_not(fused && must_not_share_pass(i, k), "seed %llu: %s and %s",
                              (unsigned long long)seed, plan.systems[i].name, plan.systems[k].name);
                fused_count += fused;
                apart_count += must_not_share_pass(i, k);
            }
        flow_subject_close(&subject);
    }
    cr_assert_gt(fused_count, 500u);
    cr_assert_gt(apart_count, 500u);
}

Test(determinism, pool_may_change_between_frames, .timeout = 600)
{
    for (uint64_t seed = 101; seed <= 104; seed++) {
        flow_plan_make(&plan, seed, ENTITY_COUNT);
        play_with_reference(style(true, 0), 0);
        open_subject(style(true, 0));
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
            quern_jobs *jobs = setup_jobs(pool_threads[(frame * 3 + seed) % POOL_COUNT]);
            flow_subject_call(&subject, jobs);
            flow_subject_must_run(&subject, jobs);
            outcome actual = outcome_of(&subject);
            cr_assert(same_outcome(&actual, &expected[frame]), "seed %llu, frame %u",
                      (unsigned long long)seed, frame);
            quern_jobs_destroy(jobs);
        }
        flow_subject_close(&subject);
    }
}

Test(determinism, pool_may_be_resized_between_frames, .timeout = 600)
{
    static const uint32_t thread_counts[FRAME_COUNT] = {2, 8, 1, 3, 3, 8, 2};
    quern_jobs *jobs = setup_jobs(1);
    for (uint64_t seed = 105; seed <= 108; seed++) {
        flow_plan_make(&plan, seed, entity_count_for(seed));
        play_with_reference(style(true, 0), 0);
        open_subject(style(true, 0));
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
            must(quern_jobs_resize(jobs, thread_counts[frame]));
            flow_subject_call(&subject, jobs);
            flow_subject_must_run(&subject, jobs);
            outcome actual = outcome_of(&subject);
            cr_assert(same_outcome(&actual, &expected[frame]), "seed %llu, frame %u",
                      (unsigned long long)seed, frame);
        }
        flow_subject_close(&subject);
    }
    quern_jobs_destroy(jobs);
}
