/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

#include <string.h>

/* Random programs that are rolled back repeatedly. Each frame must have the same result as in a world
 * that is never rolled back, at every thread count. */

enum { FRAMES = 20, KEPT = 8, ENTITIES = 400, MAX_TURNS = 90 };

/* The results of a frame. */
typedef struct outcome {
    uint64_t hash, seen;
    uint64_t conditions; /* evaluations of conditions, over all systems */
} outcome;

/* The state of the test program outside of the world, saved for each frame. */
typedef struct program_state {
    uint64_t frame_index, seen;
    uint64_t condition_counts[FLOW_MAX_SYSTEMS];
} program_state;

static flow_plan plan;
static flow_subject subject;
static outcome expected[FRAMES + 1];
static program_state program_states[FRAMES + 1];
static failing_allocator *memory;
static uint32_t failed_count; /* frames that ran out of memory and were undone by a restore */

static outcome look(void)
{
    outcome it = {.hash = quern_world_hash(subject.world), .seen = subject.seen};
    for (uint32_t i = 0; i < plan.system_count; i++)
        it.conditions += subject.players[i].condition_count;
    return it;
}

static void expect(uint64_t frame, const char *when)
{
    must(quern_world_validate(subject.world));
    const outcome it = look();
    cr_assert(it.hash == expected[frame].hash && it.seen == expected[frame].seen &&
                  it.conditions == expected[frame].conditions,
              "seed %llu, frame %llu %s: hash %llx, not %llx; seen %llx, not %llx",
              (unsigned long long)plan.seed, (unsigned long long)frame, when, (unsigned long long)it.hash,
              (unsigned long long)expected[frame].hash, (unsigned long long)it.seen,
              (unsigned long long)expected[frame].seen);
}

static program_state save_program_state(void)
{
    program_state it = {.frame_index = subject.frame_index, .seen = subject.seen};
    for (uint32_t i = 0; i < plan.system_count; i++)
        it.condition_counts[i] = subject.players[i].condition_count;
    return it;
}

static void restore_program_state(const program_state *it)
{
    subject.frame_index = it->frame_index;
    subject.seen = it->seen;
    for (uint32_t i = 0; i < plan.system_count; i++)
        subject.players[i].condition_count = it->condition_counts[i];
}

/* Commands that exclusive systems record on the world are applied by the next frame, also if the history
 * saves the world in between. */
static void run_frame(quern_jobs *jobs)
{
    flow_subject_call(&subject, jobs);
    flow_subject_must_run(&subject, jobs);
}

/* Runs the frames without rollback and stores their results. */
static void run_straight(const quern_world_def *def, quern_jobs *jobs)
{
    flow_subject_open(&subject, &plan, def);
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        expected[frame] = look();
        run_frame(jobs);
    }
    expected[FRAMES] = look();
    flow_subject_close(&subject);
}

/* Runs a frame in which one allocation fails, early or late. A restore undoes its effects. */
static void run_failing_frame(quern_jobs *jobs, random_source *random)
{
    const uint32_t most = 1u << random_below(random, 8);
    const uint32_t n = 1 + random_below(random, most);
    failed_count += runs_out_of_memory(memory, n, flow_subject_run(&subject, jobs));
}

/* Runs the same frames with random restores: of earlier and later frames, after several frames without a
 * save, and after failed frames. */
static void run_back_and_forth(const quern_world_def *def, quern_jobs *jobs)
{
    quern_history *history;
    random_source random = {plan.seed + 7};
    flow_subject_open(&subject, &plan, def);
    must(quern_history_create(subject.world,
                              &(quern_history_def){.schedules = {subject.schedule},
                                                   .frame_count = KEPT,
                                                   .allocator = def->allocator},
                              &history));
    uint64_t frame = 0;
    for (uint32_t turn = 0; frame < FRAMES && turn < MAX_TURNS; turn++) {
        if (turn == 0 || random_below(&random, 5) != 0) {
            program_states[frame] = save_program_state();
            must(quern_history_save(history, frame, jobs));
            expect(frame, "saved");
        }
        uint64_t oldest, newest;
        cr_assert(quern_history_get_frames(history, &oldest, &newest));
        bool must_go_back = false;
        while (must_go_back || random_below(&random, 4) == 0) {
            if (!must_go_back && random_below(&random, 2) == 0) run_failing_frame(jobs, &random);
            must_go_back = true;
            const uint64_t to = oldest + random_below(&random, (uint32_t)(newest - oldest + 1));
            const quern_result result = quern_history_restore(history, to, jobs);
            if (result != QUERN_OK) {
                cr_assert(strstr(quern_error_message(), "is not kept") != NULL, "%s",
                          quern_error_message());
                continue;
            }
            must_go_back = false;
            frame = to;
            restore_program_state(&program_states[frame]);
            expect(frame, "restored");
        }
        run_frame(jobs);
        frame++;
        expect(frame, "run");
    }
    quern_history_destroy(history);
    flow_subject_close(&subject);
}

static void try_seeds(uint64_t first, uint32_t count, bool has_filters, quern_world_def def)
{
    memory = failing_allocator_create();
    def.allocator = failing_allocator_interface(memory);
    failed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        flow_plan_make(&plan, first + i, ENTITIES);
        if (has_filters) {
            if (i % 2 == 0)
                flow_plan_add_filters(&plan);
            else
                flow_plan_add_row_filters(&plan);
            plan.call_count = 0; /* after a restore, the filters of calls would see everything again */
        }
        quern_jobs *jobs = setup_jobs(pool_threads[i % POOL_COUNT]);
        run_straight(&def, jobs);
        quern_jobs_destroy(jobs);
        jobs = setup_jobs(pool_threads[(i / 2 + 1) % POOL_COUNT]);
        run_back_and_forth(&def, jobs);
        quern_jobs_destroy(jobs);
    }
    cr_assert_gt(failed_count, count);
    failing_allocator_close(memory);
}

Test(history_frames, restored_programs_play_the_same_frames)
{
    try_seeds(100, effort(6, 6, 3), false, (quern_world_def){0});
}

Test(history_frames, restore_resets_what_filters_have_seen)
{
    try_seeds(200, effort(4, 4, 2), true, (quern_world_def){0});
}

Test(history_frames, archetypes_are_removed_and_created_as_without_restore)
{
    try_seeds(300, effort(4, 4, 2), false, (quern_world_def){.empty_archetype_checks_per_sync = 5});
}
