/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_FLOCK_H
#define RANKS_FLOCK_H

/* The world of a flock: its types and systems. They are those of a flock in one world, except that systems which write name the
 * number of an agent, which ghosts lack.
 *
 * What an agent does depends on its own values and on the set of the agents that it sees, and on nothing else: neither
 * on the order of agents, nor on handles. Sums over neighbours are therefore in whole numbers, and random numbers come
 * from the number of an agent and the frame. Lengths are in cells, which are as wide as an agent can see. */

#include <quern/kit/grid.h>
#include <quern/kit/ranks.h>
#include <quern/quern.h>

enum { FLOCK_FRAMES_PER_SECOND = 60 };

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
    quern_trace *trace;
    quern_grid *grid;
    quern_component number, place, motion, life;
    quern_resource grid_resource;
    Field field;
} Flock;

/* Returns the field for that many agents. */
Field field_for(uint64_t seed, uint32_t agent_count);

/* Opens a world without agents. trace, which may be NULL, records its frames. */
void flock_open(Flock *flock, const Field *field, quern_trace *trace);

void flock_close(Flock *flock);

/* Creates agent `index` of the beginning. */
void flock_create_agent(const Flock *flock, uint32_t index);

#endif
