/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_SUBJECT_H
#define QUERN_TESTS_FLOW_SUBJECT_H

/* A plan played by the library. */

#include "tests/flow/flow_act.h"

#include <quern/schedule.h>

struct flow_subject;

/* The user_data of a system. */
typedef struct flow_player {
    struct flow_subject *subject;
    const flow_system *system;
    uint32_t term_of_type[FLOW_TYPE_COUNT];
    bool has_terms;
} flow_player;

typedef struct flow_subject {
    const flow_plan *plan;
    quern_world *world;
    quern_schedule *schedule;
    quern_component components[FLOW_TYPE_COUNT];
    quern_resource resources[FLOW_RESOURCE_COUNT];
    quern_system systems[FLOW_MAX_SYSTEMS];
    flow_player players[FLOW_MAX_SYSTEMS];
} flow_subject;

/* def of the world may be NULL. The subject must not move. */
void flow_subject_open(flow_subject *subject, const flow_plan *plan, const quern_world_def *def);
void flow_subject_close(flow_subject *subject);

#endif
