/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_SYSTEMS_H
#define SWARM_SYSTEMS_H

/* Functions that add the systems, one per file, by phase. */

#include "components.h"

enum { PHASE_SENSE, PHASE_THINK, PHASE_MOVE, PHASE_LIFE, PHASE_OBSERVE, PHASE_COUNT };

void systems_add_flock(quern_schedule *schedule, Types *types);
void systems_add_hunt(quern_schedule *schedule, Types *types);
void systems_add_motion(quern_schedule *schedule, Types *types);
void systems_add_life(quern_schedule *schedule, Types *types);
void systems_add_population(quern_schedule *schedule, Types *types);

#endif
