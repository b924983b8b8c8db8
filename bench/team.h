/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_TEAM_H
#define QUERN_BENCH_TEAM_H

/* Fork and join for the control: every thread processes one equal part of the rows, and spins between two
 * loops. This is the cheapest method, but a team keeps its processors busy as long as it exists. So the
 * team is started before each sample and stopped after it. */

#include <stddef.h>
#include <stdint.h>

typedef struct raw_team raw_team;

typedef void raw_team_function(void *argument, uint32_t part, uint32_t part_count);

/* Starts part_count - 1 threads and returns when all of them are spinning. */
raw_team *raw_team_start(uint32_t part_count);

/* Calls the function for all parts, in the caller for part 0, and returns when all calls have ended. */
void raw_team_run(raw_team *team, raw_team_function *function, void *argument);

void raw_team_stop(raw_team *team);

typedef struct raw_range {
    size_t begin;
    size_t count;
} raw_range;

static inline raw_range raw_team_share(size_t count, uint32_t part, uint32_t part_count)
{
    const size_t begin = count * part / part_count;
    return (raw_range){.begin = begin, .count = count * (part + 1) / part_count - begin};
}

#endif
