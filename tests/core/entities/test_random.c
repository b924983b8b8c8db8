/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: optimised */
#include "tests/support/program.h"

#include <criterion/criterion.h>

/* Compares random programs with a model. A failure names the seed. */

enum { SEED_COUNT = 8, STEP_COUNT = 6000, STEPS_PER_CHECK = 500 };

static program runs[16];

/* Interleaves the steps of several programs, so that their worlds exist at the same time. */
static void run_programs(uint32_t program_count, uint32_t step_count)
{
    for (uint32_t step = 0; step < step_count; step++) {
        program_step(&runs[step % program_count]);
        if (step % STEPS_PER_CHECK == 0) program_check(&runs[step % program_count]);
    }
}

Test(random, world_agrees_with_the_model)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        program_init(&runs[0], seed, NULL, 0);
        run_programs(1, STEP_COUNT);
        program_release(&runs[0]);
    }
}

Test(random, several_worlds_agree_with_their_models)
{
    for (uint32_t i = 0; i < 16; i++)
        program_init(&runs[i], 100 + i, NULL, 0);
    run_programs(15, 4 * STEP_COUNT);
    for (uint32_t i = 0; i < 16; i++)
        program_release(&runs[i]);
}

static uint64_t final_hash(uint64_t seed, failing_allocator *allocator, uint32_t percent)
{
    program_init(&runs[0], seed, allocator, percent);
    run_programs(1, STEP_COUNT / 2);
    program_check(&runs[0]);
    uint64_t hash = quern_world_hash(runs[0].model.world);
    program_release(&runs[0]);
    return hash;
}

Test(random, program_is_repeatable_bit_for_bit)
{
    for (uint64_t seed = 200; seed < 204; seed++)
        cr_assert_eq(final_hash(seed, NULL, 0), final_hash(seed, NULL, 0), "seed %llu",
                     (unsigned long long)seed);
}

Test(random, failing_programs_agree_with_the_model)
{
    for (uint64_t seed = 300; seed < 304; seed++) {
        failing_allocator *allocator = failing_allocator_create();
        uint64_t hash = final_hash(seed, allocator, 50);
        cr_assert_gt(runs[0].out_of_memory_count, 20u, "memory hardly ever ran out");
        failing_allocator_close(allocator);
        cr_assert_eq(hash, final_hash(seed, NULL, 0), "seed %llu", (unsigned long long)seed);
    }
}
