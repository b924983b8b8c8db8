/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* One flock on several ranks: mpirun -n 4 ranks. docs/machines.md explains it. Without MPI, `ranks_alone --ranks 4` has all
 * ranks in one process. */
#include "flock.h"

#ifdef RANKS_HAVE_MPI
#include <quern/kit/ranks_mpi.h>
#else
#include <quern/kit/ranks_main.h>
#define quern_ranks_mpi_main(argc, argv, program) quern_ranks_main(argc, argv, program, NULL)
#endif

#include <stdlib.h>

static uint64_t agent_count = 10000, seed = 1;

static quern_result open_flock(quern_ranks_setup *setup)
{
    Flock *flock = setup->user_data = calloc(1, sizeof *flock);
    const Field field = field_for(seed, (uint32_t)agent_count);
    if (flock == NULL) return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a flock");
    flock_open(flock, &field, setup->trace);
    setup->def.world = flock->world;
    setup->def.id = flock->number;
    setup->def.position = flock->place;
    setup->def.planar = true;
    setup->def.radius = 1;
    setup->def.ghost[0] = flock->motion;
    setup->schedule = flock->schedule;
    setup->delta_seconds = 1.0f / FLOCK_FRAMES_PER_SECOND;
    return quern_ranks_create(&setup->def, &setup->ranks);
}

static quern_result populate_flock(quern_ranks_setup *setup)
{
    for (uint32_t i = 0; i < agent_count; i++)
        if (quern_ranks_creates(setup->ranks, i)) flock_create_agent(setup->user_data, i);
    return QUERN_OK;
}

static void close_flock(quern_ranks_setup *setup)
{
    quern_ranks_destroy(setup->ranks);
    if (setup->user_data != NULL) flock_close(setup->user_data);
    free(setup->user_data);
}

int main(int argc, char **argv)
{
    const quern_ranks_program program = {
        .name = "ranks",
        .about = "Simulates one flock on several ranks. Prints its hash by id, which is the same for every "
                 "number of "
                 "ranks and\nthreads.\n",
        .options = {{"agents", &agent_count, 1, 100000000, "number of agents at the beginning"},
                    {"seed", &seed, 0, UINT64_MAX, "seed of the flock"}},
        .open = open_flock,
        .populate = populate_flock,
        .close = close_flock};
    return quern_ranks_mpi_main(argc, argv, &program);
}
