/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_AGENT_H
#define SWARM_AGENT_H

/* One whole agent, for the three ways to come into the world: in the beginning, by birth, over the
 * border. */

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

/* Somewhere in the world, at any age; all of it follows from the seed. */
Agent agent_make(const Rules *rules, uint64_t seed, bool is_hunter);

void agent_create(quern_world *world, const Types *types, const Agent *agent);

/* From inside a system: the agent exists from the next sync point on. */
quern_entity agent_create_deferred(quern_commands *commands, const Types *types, const Agent *agent);

#endif
