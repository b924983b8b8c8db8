/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* One flock on several ranks, all in this process, without MPI. docs/machines.md explains it. */
#include "party.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    const Options options = options_parse(argc, argv);
    if (options.ping || options.dying_rank != NO_RANK) {
        fprintf(stderr,
                "ranks: --ping and --die need ranks in several processes: start quern's ranks over MPI\n");
        return 2;
    }
    Link link = link_open_alone(options.rank_count > 0 ? options.rank_count : 1);
    return party_run(&link, &options);
}
