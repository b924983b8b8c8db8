/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_SIMULATION_H
#define SWARM_SIMULATION_H

#include "components.h"
#include "neighbours.h"
#include "rules.h"

/* A world with its systems. Its frames depend only on the seed and the number of agents. */
typedef struct Simulation {
    quern_world *world;
    quern_schedule *schedule;
    quern_grid *grid;
    Types types;
} Simulation;

/* Creates the world. Systems keep a pointer to the simulation, so it must not move. trace may be NULL. */
void simulation_create(Simulation *simulation, uint64_t seed, uint32_t agent_count, quern_trace *trace);
void simulation_destroy(Simulation *simulation);

extern const double simulation_frame_seconds;

/* Runs a frame, 1/60 of a second of simulated time. If jobs is NULL, only this thread runs it. */
void simulation_step(Simulation *simulation, quern_jobs *jobs);

/* Runs a frame on a pool of one thread, and captures it for forecasts. */
void simulation_capture(Simulation *simulation, quern_jobs *jobs, quern_frame_capture *capture);

/* Returns the census of the last frame. Call it between frames. */
const Census *simulation_census(Simulation *simulation);

#endif
