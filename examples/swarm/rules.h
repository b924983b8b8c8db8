/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_RULES_H
#define SWARM_RULES_H

#include <quern/kit/random.h>

/* Resources that all agents share: the rules and the census. */

typedef struct Species {
    float min_speed, max_speed; /* cells per second */
    float lifetime_seconds;     /* on average */
    float income;               /* energy per second of a lone agent: grazing, or the cost of hunting */
    float crowding;             /* energy lost per second for each nearby agent of the same kind */
    uint32_t floor_count;       /* number of agents below which immigrants are created */
} Species;

typedef struct Rules {
    uint64_t seed;
    float width, height; /* of the world, in cells */
    Species prey, hunter;
} Rules;

/* Living agents at the end of the last frame. */
typedef struct Census {
    uint64_t prey_count, hunter_count;
    double prey_energy, hunter_energy; /* on average */
} Census;

/* Returns the rules for a world of that many agents. */
Rules rules_make(uint64_t seed, uint32_t agent_count);

/* Returns the lifetime of the agent with that seed: 0.5 to 1.5 times the average. */
static inline float lifetime_seconds(const Species *species, uint64_t seed)
{
    return species->lifetime_seconds * (0.5f + quern_random_unit(quern_random_mix(seed)));
}

#endif
