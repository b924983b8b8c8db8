/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_REPLAY_H
#define SWARM_REPLAY_H

/* Recordings: what a run did, frame by frame, and whether another does the same. */

#include "options.h"
#include "simulation.h"

#include <signal.h>
#include <stdio.h>

/* Frames of a simulation on their way to a file; no recorder: they are not recorded. */
typedef struct Recording {
    quern_replay_recorder *recorder;
    FILE *file;
} Recording;

void recording_open(Recording *recording, const Options *options, Simulation *simulation);
void recording_close(Recording *recording);

/* A frame, recorded if there is a recorder. */
void recording_step(Recording *recording, Simulation *simulation, quern_jobs *jobs);

/* Runs the recording of the options again and says what came of it. Returns whether all frames agree. */
bool replay_run(const Options *options, Simulation *simulation, quern_jobs *jobs,
                const volatile sig_atomic_t *is_interrupted);

#endif
