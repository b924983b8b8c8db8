/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_AGENT_H
#define SWARM_AGENT_H

/* All values of one agent, for the three ways to create it: at the start, by birth, and by immigration. */

#include "components.h"
#include "rules.h"

typedef struct Agent {
    bool is_hunter;
    Position position;
    Velocity velocity;
    Energy energy;
    Age age;
    Genes genes;
    Lineage lineage;
} Agent;

/* Returns an agent of random position and age. All of it follows from the seed. */
Agent agent_make(const Rules *rules, uint64_t seed, bool is_hunter);

void agent_create(quern_world *world, const Types *types, const Agent *agent);

/* Creates an agent by command: it exists from the next sync point on. */
quern_entity agent_create_deferred(quern_commands *commands, const Types *types, const Agent *agent);

#endif
