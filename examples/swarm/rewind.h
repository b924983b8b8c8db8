/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_REWIND_H
#define SWARM_REWIND_H

/* Every 60 frames the last 60 are taken back by a history and run again; each must come to the same world. */

#include "simulation.h"

#include <stdio.h>

enum { REWIND_FRAMES = 60 };

typedef struct Rewind {
    quern_history *history; /* NULL: nothing is taken back */
    uint64_t hashes[REWIND_FRAMES];
    uint32_t count;        /* frames since the last save */
    uint64_t again_count;  /* frames that were run again and agreed */
    bool differs;          /* one did not: nothing is taken back from then on */
    uint64_t parted_frame; /* that one */
    uint64_t expected_hash, actual_hash;
} Rewind;

void rewind_open(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

/* After each frame. */
void rewind_note(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

/* Takes back what is left. Before the simulation goes. */
void rewind_close(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

void rewind_print(const Rewind *rewind);

#endif
