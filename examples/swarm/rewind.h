/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_REWIND_H
#define SWARM_REWIND_H

/* --rewind: every 60 frames, a history restores the world of 60 frames before, and these frames run
 * again. Each must have the same result as before. */

#include "simulation.h"

#include <stdio.h>

enum { REWIND_FRAMES = 60 };

typedef struct Rewind {
    quern_history *history; /* NULL: disabled */
    uint64_t hashes[REWIND_FRAMES];
    uint32_t count;           /* frames since the last save */
    uint64_t rerun_count;     /* frames that ran again with the same result */
    bool differs;             /* whether a frame had another result; frames are no longer restored then */
    uint64_t different_frame; /* number of that frame */
    uint64_t expected_hash, actual_hash;
} Rewind;

void rewind_open(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

/* Call it after each frame. */
void rewind_after_frame(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

/* Restores and repeats the remaining frames. Call it before the simulation is destroyed. */
void rewind_close(Rewind *rewind, Simulation *simulation, quern_jobs *jobs);

void rewind_print(const Rewind *rewind);

#endif
