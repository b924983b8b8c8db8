/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_SUBJECT_H
#define QUERN_TESTS_FLOW_SUBJECT_H

/* Runs a plan with the library. */

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
    uint64_t condition_count; /* evaluations of its condition */
    quern_query *query;       /* calls only */
    uint64_t moment;          /* calls only, while the call runs */
    /* parallel calls only, while the call runs: digest of each view, by ordinal */
    flow_digest *digests;
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
    quern_getter *getter; /* getter with refs for a type with values; NULL in every second plan */
    uint32_t getter_type;
    /* FLOW_REF_COUNT refs. Ref i is to an entity, alive or not, in a slot with slot % FLOW_REF_COUNT ==
     * i. */
    quern_ref *refs;
    quern_entity first;   /* handle of the entity with index 0 in its first generation */
    uint64_t frame_index; /* index of the next frame */
    uint64_t seen;        /* results of all calls so far, mixed into one number */
} flow_subject;

/* Creates the world, its entities and the schedule of a plan. def may be NULL. Systems keep a pointer to
 * the subject, so it must not move. */
void flow_subject_open(flow_subject *subject, const flow_plan *plan, const quern_world_def *def);
void flow_subject_open_as(flow_subject *subject, const flow_plan *plan, const quern_world_def *def,
                          quern_schedule_def schedule_def);
void flow_subject_close(flow_subject *subject);

/* Does the plan's calls that precede the next frame. Commands that they do not flush are applied by that
 * frame. */
void flow_subject_call(flow_subject *subject, quern_jobs *jobs);

/* flow_subject_run runs the next frame of the plan. If it fails with POOL_BUSY, the next call tries the
 * same frame again. flow_subject_must_run runs a frame that must succeed, and then checks all refs. */
quern_result flow_subject_run(flow_subject *subject, quern_jobs *jobs);
void flow_subject_must_run(flow_subject *subject, quern_jobs *jobs);

/* Creates a query for all entities, disabled or not. The caller destroys it. */
quern_query *flow_subject_query_all(const flow_subject *subject);

#endif
