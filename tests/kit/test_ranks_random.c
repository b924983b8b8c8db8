/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "ranks_program.h"

#include "tests/support/effort.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Programs drawn at random have one hash on 1, 2, 3, 4 and 7 ranks with 0 to 3 threads, and after a restart on another number
 * of ranks. */

Test(ranks_random, programs_have_one_hash_on_every_number_of_ranks)
{
    static const uint32_t rank_counts[] = {2, 3, 4, 7};
    quern_ranks_stats sum = {0};
    for (uint64_t seed = 1; seed <= effort(40, 12, 4); seed++) {
        const program_draw draw = program_draw_from(seed);
        quern_ranks_stats alone;
        const uint64_t wanted = program_hash(&draw, &(program_run){0}, &alone);
        for (uint32_t i = 0; i < 4; i++) {
            quern_ranks_stats stats;
            const program_run run = {.rank_count = rank_counts[i],
                                     .thread_count = (uint32_t)(seed + i) % 4};
            const uint64_t hash = program_hash(&draw, &run, &stats);
            cr_assert_eq(hash, wanted, "seed %u on %u ranks", (unsigned)seed, (unsigned)rank_counts[i]);
            cr_assert_eq(stats.owned_count, alone.owned_count);
            cr_assert_eq(stats.message_count, alone.message_count);
            cr_assert_eq(stats.dropped_count, alone.dropped_count);
            sum.dropped_count += stats.dropped_count;
            sum.moved_count += stats.moved_count;
            sum.ghost_count += stats.ghost_count;
            sum.message_count += stats.message_count;
            sum.far_count += stats.far_count;
        }
    }
    cr_assert(sum.moved_count > 0 && sum.dropped_count > 0 && sum.ghost_count > 0 &&
              sum.message_count > 0 && sum.far_count > 0 && program_felt_count > 0);
}

Test(ranks_random, restarts_have_the_hash_of_an_uninterrupted_run)
{
    for (uint64_t seed = 101; seed <= 100 + effort(15, 5, 2); seed++) {
        char folder[] = "/tmp/quern-ranks-XXXXXX", command[64];
        const program_draw draw = program_draw_from(seed);
        const uint64_t wanted = program_hash(&draw, &(program_run){0}, NULL);
        cr_assert_not_null(mkdtemp(folder));
        const program_run first = {.rank_count = 1 + (uint32_t)(seed % 5),
                                   .thread_count = (uint32_t)(seed % 3),
                                   .folder = folder,
                                   .until = 6 + seed % 4};
        program_hash(&draw, &first, NULL);
        for (uint32_t count = 1; count <= 4; count++) {
            const program_run second = {.rank_count = count, .folder = folder, .restart = true};
            const uint64_t hash = program_hash(&draw, &second, NULL);
            cr_assert_eq(hash, wanted, "seed %u, restarted on %u ranks", (unsigned)seed, (unsigned)count);
        }
        snprintf(command, sizeof command, "rm -rf %s", folder);
        cr_assert_eq(system(command), 0);
    }
}
