/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_RULES_H
#define SWARM_RULES_H

/* The resources that hold what all agents share: the rules they live by, and the census. */

#include "random.h"

typedef struct Species {
    float min_speed, max_speed; /* cells per second */
    float lifetime_seconds;     /* on average */
    float income;               /* energy per second of an agent alone: grazing, or what hunting costs */
    float crowding;             /* energy per second taken by each of its kind nearby */
    uint32_t floor_count;       /* below that, others come in over the border */
} Species;

typedef struct Rules {
    uint64_t seed;
    float width, height; /* of the world, in cells */
    Species prey, hunter;
} Rules;

/* The living at the end of the last frame. */
typedef struct Census {
    uint64_t prey_count, hunter_count;
    double prey_energy, hunter_energy; /* on average */
} Census;

/* For a world of that many agents. */
Rules rules_make(uint64_t seed, uint32_t agent_count);

/* Of the agent with that seed: between half and 1.5 times the average. */
static inline float lifetime_seconds(const Species *species, uint64_t seed)
{
    return species->lifetime_seconds * (0.5f + random_unit(random_mix(seed)));
}

#endif
