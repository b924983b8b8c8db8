/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_LINK_H
#define RANKS_LINK_H

/* How ranks exchange bytes: over MPI, with one rank in each process (link_mpi.c), or in memory, with all ranks in one
 * process (link_alone.c). */

#include "rank.h"

#include <stddef.h>

typedef struct Link Link;

/* What the ranks that remain agree on after one does not answer. */
typedef struct Loss {
    uint64_t frame; /* frames that all remaining ranks have run */
    uint64_t lost;  /* bit i: rank i does not answer */
} Loss;

struct Link {
    uint32_t first_rank, here_count, rank_count; /* ranks of this process, and all */
    /* Sends mail->out of each rank here to its neighbours, and fills mail->in. Returns false if a rank does not answer.
     * Over MPI, a message has less than 2 GiB. */
    bool (*exchange)(Link *link, Rank *ranks);
    /* Gives all ranks the same number of bytes of every rank. own: of the ranks here; all: of rank_count ranks. Returns
     * false if a rank does not answer. */
    bool (*share)(Link *link, const void *own, size_t size_bytes, void *all);
    /* After a false: tells the others how many frames this process has run, and waits for theirs. */
    Loss (*agree_on_loss)(Link *link, uint64_t frame);
    double timeout_seconds; /* after which a rank is taken as lost */
};

/* All ranks in this process. */
Link link_open_alone(uint32_t rank_count);

#endif
