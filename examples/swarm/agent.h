/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_AGENT_H
#define SWARM_AGENT_H

/* The values of a new agent. Agents are created at the start, by birth and by immigration. */

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

/* Returns an agent of random position and age, which depends only on the rules and the seed. */
Agent agent_make(const Rules *rules, uint64_t seed, bool is_hunter);

void agent_create(quern_world *world, const Types *types, const Agent *agent);

/* Creates an agent by a command, which the next sync point applies. */
quern_entity agent_create_deferred(quern_commands *commands, const Types *types, const Agent *agent);

#endif
