/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 6 of the tutorial: the same game on several threads, and in random orders of work. */
#include "game.h"

#include <stdio.h>

/* Plays twelve frames, and returns the hash of the world. */
static uint64_t play(uint32_t thread_count, uint64_t shuffle_seed)
{
    Game game;
    quern_jobs *jobs;
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    game_open(&game, shuffle_seed);
    game_populate(&game, 600);
    for (int frame = 0; frame < 12; frame++) {
        *game_keys(&game) = (Keys){.fire = 1, .left = frame % 2};
        QUERN_MUST(quern_schedule_run(game.schedule, jobs, 1.0 / 20));
    }
    const uint64_t hash = quern_world_hash(game.world);
    game_close(&game);
    quern_jobs_destroy(jobs);
    return hash;
}

int main(void)
{
    const uint64_t hash = play(1, 0);
    for (uint32_t threads = 2; threads <= 3; threads++)
        printf("%u threads: %s\n", threads, play(threads, 0) == hash ? "the same world" : "another world");
    for (uint64_t seed = 1; seed <= 2; seed++)
        printf("shuffled, seed %d: %s\n", (int)seed,
               play(2, seed) == hash ? "the same world" : "another world");
}
