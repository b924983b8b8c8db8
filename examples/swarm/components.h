/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_COMPONENTS_H
#define SWARM_COMPONENTS_H

/* What an agent is made of. Lengths are in grid cells, which are as wide as an agent can see; times are in
 * seconds. */

#include <quern/quern.h>

typedef struct Vector {
    float x, y;
} Vector;

typedef Vector Position;
typedef Vector Velocity;
typedef Vector Steering; /* wished acceleration, made anew each frame */

typedef struct Energy {
    float value; /* dies at 0, may breed from 1 */
} Energy;

typedef struct Age {
    float seconds;
} Age;

typedef struct Crowd {
    float weight; /* how many of its own kind are near, the nearest counting most */
} Crowd;

/* What an agent's random numbers are drawn from. */
typedef struct Genes {
    uint64_t seed;
} Genes;

/* Handles of agents that may have died meanwhile: looking them up tells. */
typedef struct Lineage {
    quern_entity mother; /* null for those that were there first */
    quern_entity last_child;
} Lineage;

/* Hunters only. */
typedef struct Target {
    quern_entity prey; /* null while it has none */
} Target;

/* The ids that the world gave to components and resources. Every system gets them as its user data. */
typedef struct Types {
    quern_component position, velocity, steering, energy, age, crowd, genes, lineage, target;
    quern_component prey, hunter; /* tags: an agent is one or the other */
    quern_resource grid, rules, census;
} Types;

void types_register_components(Types *types, quern_world *world);

#endif
