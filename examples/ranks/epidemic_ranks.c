/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* An epidemic on several ranks: mpirun -n 4 epidemic, or epidemic_alone --ranks 4 without MPI. docs/machines.md explains it. */
#include "epidemic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef RANKS_HAVE_MPI
#include <quern/kit/ranks_mpi.h>
#else
#include <quern/kit/ranks_main.h>
#define quern_ranks_mpi_main(argc, argv, program) quern_ranks_main(argc, argv, program, NULL)
#endif

static uint64_t household_count = 2500, seed = 1;

static quern_result open_epidemic(quern_ranks_setup *setup)
{
    Epidemic *epidemic = setup->user_data = calloc(1, sizeof *epidemic);
    if (epidemic == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for an epidemic");
    epidemic_open(epidemic, seed, (uint32_t)household_count);
    setup->def.world = epidemic->world;
    setup->def.id = epidemic->id;
    setup->def.position = epidemic->spot;
    setup->def.planar = true;
    setup->def.radius = 1;
    setup->def.reach = EPIDEMIC_REACH;
    setup->def.ghost[0] = epidemic->health;
    setup->def.holds[0] = epidemic->household;
    setup->def.globals[0] = (quern_ranks_global){QUERN_RANKS_SUM, epidemic->health, epidemic_is_ill};
    setup->def.globals[1] = (quern_ranks_global){QUERN_RANKS_SUM, epidemic->health, epidemic_is_immune};
    QUERN_TRY(quern_ranks_create(&setup->def, &setup->ranks));
    epidemic->ranks = setup->ranks;
    epidemic_add_systems(epidemic);
    setup->schedule = epidemic->schedule;
    setup->delta_seconds = 1;
    return QUERN_OK;
}

static quern_result populate_epidemic(quern_ranks_setup *setup)
{
    for (uint32_t i = 0; i < household_count; i++)
        if (quern_ranks_creates(setup->ranks, i)) epidemic_create_household(setup->user_data, i);
    return QUERN_OK;
}

static void close_epidemic(quern_ranks_setup *setup)
{
    const quern_ranks_state *state = quern_ranks_get_state(setup->ranks);
    if (state != NULL && quern_ranks_index(setup->ranks) == 0)
        fprintf(stderr, "day %" PRIu64 ": %" PRId64 " ill, %" PRId64 " immune\n", state->frame,
                state->globals[0], state->globals[1]);
    quern_ranks_destroy(setup->ranks);
    if (setup->user_data != NULL) epidemic_close(setup->user_data);
    free(setup->user_data);
}

int main(int argc, char **argv)
{
    const quern_ranks_program program = {
        .name = "epidemic",
        .about = "Simulates an epidemic in households on several ranks, a frame for each day. Prints its "
                 "hash by id.\n",
        .options = {{"households", &household_count, 1, 10000000, "number of households of four persons"},
                    {"seed", &seed, 0, UINT64_MAX, "seed of the epidemic"}},
        .frame_count = 100,
        .open = open_epidemic,
        .populate = populate_epidemic,
        .close = close_epidemic};
    return quern_ranks_mpi_main(argc, argv, &program);
}
