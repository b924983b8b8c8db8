/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_REPLAY_H
#define SWARM_REPLAY_H

/* Recordings of runs, and comparing another run with one. */

#include "options.h"
#include "simulation.h"

#include <signal.h>
#include <stdio.h>

/* A recording of a simulation to a file. Without a recorder, nothing is recorded. */
typedef struct Recording {
    quern_replay_recorder *recorder;
    FILE *file;
} Recording;

void recording_open(Recording *recording, const Options *options, Simulation *simulation);
void recording_close(Recording *recording);

/* Runs a frame, and records it if there is a recorder. */
void recording_step(Recording *recording, Simulation *simulation, quern_jobs *jobs);

/* Runs the recording of the options again and prints the result. Returns whether all frames agree. */
bool replay_run(const Options *options, Simulation *simulation, quern_jobs *jobs,
                const volatile sig_atomic_t *is_interrupted);

#endif
