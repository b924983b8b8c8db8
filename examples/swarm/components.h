/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_COMPONENTS_H
#define SWARM_COMPONENTS_H

/* The components of an agent. Lengths are in grid cells, which are as wide as an agent can see. Times
 * are in seconds. */

#include <quern/quern.h>

typedef struct Vector {
    float x, y;
} Vector;

typedef Vector Position;
typedef Vector Velocity;
typedef Vector Steering; /* desired acceleration, computed anew each frame */

typedef struct Energy {
    float value; /* dies at 0, may breed from 1 */
} Energy;

typedef struct Age {
    float seconds;
} Age;

typedef struct Crowd {
    float weight; /* weighted number of agents of the same kind nearby; the nearest count most */
} Crowd;

/* Seed of the random numbers of an agent. */
typedef struct Genes {
    uint64_t seed;
} Genes;

/* Handles of agents that may be dead; a lookup returns NULL then. */
typedef struct Lineage {
    quern_entity mother; /* null for the first generation and for immigrants */
    quern_entity last_child;
} Lineage;

/* Component of hunters only. */
typedef struct Target {
    quern_entity prey; /* the target; null while the hunter has none */
} Target;

/* The components and resources of the world. All systems get them as user data. */
typedef struct Types {
    quern_component position, velocity, steering, energy, age, crowd, genes, lineage, target;
    quern_component prey, hunter; /* tags: an agent is one or the other */
    quern_resource grid, rules, census;
} Types;

void types_register_components(Types *types, quern_world *world);

#endif
