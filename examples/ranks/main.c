/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* One flock on several ranks of MPI: mpirun -n 4 ranks. Without mpirun there is one rank. docs/machines.md explains it. */
#include "link_mpi.h"
#include "party.h"
#include "ping.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static int run(const Options *options)
{
    Link link = link_open_mpi();
    if (options->ping) return ping_run(options->json);
    if (options->rank_count == 0 || options->rank_count == link.rank_count) {
        if (link.rank_count <= RANKS_MAX) return party_run(&link, options);
    }
    if (link.first_rank == 0)
        fprintf(stderr, "ranks: there are %u ranks, not %u, of at most %d: start mpirun with -n\n",
                (unsigned)link.rank_count, (unsigned)options->rank_count, RANKS_MAX);
    return 2;
}

int main(int argc, char **argv)
{
    const Options options = options_parse(argc, argv);
    int level;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return EXIT_FAILURE;
    const int status = run(&options);
    /* MPI_Finalize would wait for the rank that is lost. */
    if (status == EXIT_LOST) _Exit(EXIT_LOST);
    MPI_Finalize();
    return status;
}
