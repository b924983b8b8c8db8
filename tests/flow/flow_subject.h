/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_SUBJECT_H
#define QUERN_TESTS_FLOW_SUBJECT_H

/* A plan played by the library. */

#include "tests/flow/flow_act.h"

#include <quern/getter.h>
#include <quern/schedule.h>

enum { FLOW_REF_COUNT = 256 };

struct flow_subject;

/* The user_data of a system or call. */
typedef struct flow_player {
    struct flow_subject *subject;
    const flow_system *system;
    uint32_t term_of_type[FLOW_TYPE_COUNT];
    bool has_terms;
    uint64_t condition_count; /* how often its condition was asked */
    quern_query *query;       /* of a call */
    uint64_t moment;          /* of a call, while it runs */
    flow_digest *digests;     /* of a parallel call, by ordinal, while it runs */
} flow_player;

typedef struct flow_subject {
    const flow_plan *plan;
    quern_world *world;
    quern_schedule *schedule;
    quern_component components[FLOW_TYPE_COUNT];
    quern_combine mixes[FLOW_TYPE_COUNT];
    quern_resource resources[FLOW_RESOURCE_COUNT];
    quern_system systems[FLOW_MAX_SYSTEMS];
    flow_player players[FLOW_MAX_SYSTEMS];
    flow_player callers[FLOW_MAX_CALLS];
    quern_getter *getter; /* with refs, of a type with values; NULL in every other plan */
    uint32_t getter_type;
    quern_ref *refs;      /* FLOW_REF_COUNT, each of some entity whose slot leads to it, alive or not */
    quern_entity first;   /* of the world: index 0, first life */
    uint64_t frame_index; /* of the next frame */
    uint64_t seen;        /* all that calls have seen so far, as one number */
} flow_subject;

/* def of the world may be NULL. The subject must not move. */
void flow_subject_open(flow_subject *subject, const flow_plan *plan, const quern_world_def *def);
void flow_subject_open_as(flow_subject *subject, const flow_plan *plan, const quern_world_def *def,
                          quern_schedule_def schedule_def);
void flow_subject_close(flow_subject *subject);

/* The calls of the plan before the next frame. They leave commands for it. */
void flow_subject_call(flow_subject *subject, quern_jobs *jobs);

/* The next frame of the plan, which is tried again after POOL_BUSY; and one that must succeed, after which
 * each ref finds what its entity has. */
quern_result flow_subject_run(flow_subject *subject, quern_jobs *jobs);
void flow_subject_must_run(flow_subject *subject, quern_jobs *jobs);

/* All entities, disabled or not. The caller destroys it. */
quern_query *flow_subject_query_all(const flow_subject *subject);

#endif
