/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_SYSTEMS_H
#define SWARM_SYSTEMS_H

/* The systems, phase by phase. Each file adds its own. */

#include "components.h"

enum { PHASE_SENSE, PHASE_THINK, PHASE_MOVE, PHASE_LIFE, PHASE_OBSERVE, PHASE_COUNT };

void systems_add_grid(quern_schedule *schedule, Types *types);
void systems_add_flock(quern_schedule *schedule, Types *types);
void systems_add_hunt(quern_schedule *schedule, Types *types);
void systems_add_motion(quern_schedule *schedule, Types *types);
void systems_add_life(quern_schedule *schedule, Types *types);
void systems_add_population(quern_schedule *schedule, Types *types);

/* Hands an array and its length to a quern_system_def. */
#define SET_ARRAY(field, count, array) \
    ((field) = (array), (count) = (uint32_t)(sizeof(array) / sizeof((array)[0])))
#define SET_TERMS(def, array)     SET_ARRAY((def).terms, (def).term_count, array)
#define SET_LOOKUPS(def, array)   SET_ARRAY((def).lookups, (def).lookup_count, array)
#define SET_RESOURCES(def, array) SET_ARRAY((def).resources, (def).resource_count, array)

#endif
