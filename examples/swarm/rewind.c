/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "rewind.h"

#include "check.h"

#include <inttypes.h>

static void save(Rewind *rewind, quern_jobs *jobs)
{
    check(quern_history_save(rewind->history, rewind->again_count, jobs));
    rewind->count = 0;
}

void rewind_open(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    const quern_history_def def = {.schedules = {simulation->schedule}, .frame_count = 1};
    *rewind = (Rewind){.history = NULL};
    check(quern_history_create(simulation->world, &def, &rewind->history));
    save(rewind, jobs);
}

static void run_again(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    check(quern_history_restore(rewind->history, rewind->again_count, jobs));
    const uint64_t first = rewind->again_count;
    for (uint32_t i = 0; i < rewind->count && !rewind->differs; i++) {
        simulation_step(simulation, jobs);
        rewind->expected_hash = rewind->hashes[i];
        rewind->actual_hash = quern_world_hash(simulation->world);
        rewind->differs = rewind->actual_hash != rewind->expected_hash;
        rewind->parted_frame = first + i;
    }
    if (rewind->differs) return;
    rewind->again_count += rewind->count;
    save(rewind, jobs);
}

void rewind_note(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    if (rewind->history == NULL || rewind->differs) return;
    rewind->hashes[rewind->count++] = quern_world_hash(simulation->world);
    if (rewind->count == REWIND_FRAMES) run_again(rewind, simulation, jobs);
}

void rewind_close(Rewind *rewind, Simulation *simulation, quern_jobs *jobs)
{
    if (rewind->history != NULL && !rewind->differs && rewind->count > 0)
        run_again(rewind, simulation, jobs);
    quern_history_destroy(rewind->history);
}

void rewind_print(const Rewind *rewind)
{
    if (rewind->differs)
        printf("rewind: frame %" PRIu64 " came to 0x%016" PRIx64 ", and run again to 0x%016" PRIx64 "\n",
               rewind->parted_frame, rewind->expected_hash, rewind->actual_hash);
    else
        printf("rewind: %" PRIu64 " frames were taken back and run again, and agree\n",
               rewind->again_count);
}
