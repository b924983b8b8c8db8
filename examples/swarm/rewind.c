/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "rewind.h"

#include "check.h"

#include <inttypes.h>

static void save(Rewind *rewind, quern_jobs *jobs)
{
    check(quern_history_save(rewind->history, rewind->rerun_count, jobs));
    rewind->count = 0;
}

void rewind_open(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    const quern_history_def def = {.schedules = {simulation->schedule}, .frame_count = 1};
    *rewind = (Rewind){.history = NULL};
    check(quern_history_create(simulation->world, &def, &rewind->history));
    save(rewind, jobs);
}

static void rerun(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    check(quern_history_restore(rewind->history, rewind->rerun_count, jobs));
    const uint64_t first = rewind->rerun_count;
    for (uint32_t i = 0; i < rewind->count && !rewind->differs; i++) {
        simulation_step(simulation, jobs);
        rewind->expected_hash = rewind->hashes[i];
        rewind->actual_hash = quern_world_hash(simulation->world);
        rewind->differs = rewind->actual_hash != rewind->expected_hash;
        rewind->different_frame = first + i;
    }
    if (rewind->differs) return;
    rewind->rerun_count += rewind->count;
    save(rewind, jobs);
}

void rewind_after_frame(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    if (rewind->history == NULL || rewind->differs) return;
    rewind->hashes[rewind->count++] = quern_world_hash(simulation->world);
    if (rewind->count == REWIND_FRAMES) rerun(rewind, simulation, jobs);
}

void rewind_close(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    if (rewind->history != NULL && !rewind->differs && rewind->count > 0) rerun(rewind, simulation, jobs);
    quern_history_destroy(rewind->history);
}

void rewind_print(const Rewind *rewind)
{
    if (rewind->differs)
        printf("rewind: frame %" PRIu64 " has world hash 0x%016" PRIx64 ", and 0x%016" PRIx64
               " when it ran again\n",
               rewind->different_frame, rewind->expected_hash, rewind->actual_hash);
    else
        printf("rewind: %" PRIu64 " frames were restored and ran again, and agree\n", rewind->rerun_count);
}
