/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_FLOCK_H
#define RANKS_FLOCK_H

/* The world of one rank: the agents of its stripe, and ghosts, which are copies of agents of adjacent stripes.
 *
 * What an agent does depends on its own values and on the set of the agents that it sees, and on nothing else: neither
 * on the order of agents, nor on handles, nor on the stripe that it is in. Sums over neighbours are therefore in whole
 * numbers, and random numbers come from the number of an agent and the frame. Lengths are in cells, which are as wide as
 * an agent can see. */

#include <quern/kit/grid.h>
#include <quern/quern.h>

#include <stdatomic.h>

/* Component "Number": the same for an agent in every world. */
typedef struct Number {
    uint64_t value;
} Number;

typedef struct Place {
    float x, y;
} Place;

typedef struct Motion {
    float x, y; /* cells per second */
} Motion;

typedef struct Life {
    int32_t energy;  /* dies below 0, and has a child from ENERGY_OF_PARENTS */
    uint32_t frames; /* age */
} Life;

typedef struct Field {
    uint64_t seed;
    uint32_t width, height; /* cells */
} Field;

typedef struct Flock {
    quern_world *world;
    quern_schedule *schedule;
    quern_grid *grid;
    quern_component number, place, motion, life;
    quern_component ghost; /* tag; ghosts have only place and motion besides */
    quern_resource grid_resource;
    quern_query *agents, *ghosts; /* agents: number, place */
    Field field;
    atomic_uint_least64_t birth_count, death_count; /* of the agents here, so far */
} Flock;

/* Returns the field for that many agents. */
Field field_for(uint64_t seed, uint32_t agent_count);

/* Opens a world without agents. */
void flock_open(Flock *flock, const Field *field);

void flock_close(Flock *flock);

/* Returns the place that agent `index` of the beginning has. */
Place flock_first_place(const Field *field, uint32_t index);

/* Creates agent `index` of the beginning. */
void flock_create_agent(const Flock *flock, uint32_t index);

/* Runs a frame. */
void flock_step(const Flock *flock, quern_jobs *jobs);

/* Returns the hash of the agents here. The hashes of all ranks add up to that of one world with all agents. */
uint64_t flock_hash(const Flock *flock);

#endif
