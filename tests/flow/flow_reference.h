/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_REFERENCE_H
#define QUERN_TESTS_FLOW_REFERENCE_H

/* A plan played without the library: its systems one after another, each over all the entities of a naive
 * world, and the commands of each phase behind its last system. */

#include "tests/flow/flow_act.h"
#include "tests/flow/flow_naive.h"
#include "tests/flow/flow_subject.h"

typedef struct flow_reference {
    const flow_plan *plan;
    naive_world world;
    naive_recorder frame_recorder; /* of systems, and of parallel queries */
    naive_recorder world_recorder; /* of the program between frames */
    uint64_t frame_index;
    flow_resource resources[FLOW_RESOURCE_COUNT];
    uint32_t order[FLOW_MAX_SYSTEMS];
    uint64_t due_ticks[FLOW_MAX_SYSTEMS];     /* of systems with an interval, which they have to reach */
    uint64_t elapsed_ticks[FLOW_MAX_SYSTEMS]; /* since they ran */
    uint64_t phase_ticks[FLOW_PHASE_COUNT];   /* not yet stepped through */
    uint64_t condition_counts[FLOW_MAX_SYSTEMS];
    uint64_t seen;                                                       /* as in the subject */
    uint64_t system_looks[FLOW_MAX_SYSTEMS], call_looks[FLOW_MAX_CALLS]; /* when each ran last */
    naive_stats flush_stats; /* of the last sync point outside of frames */
    /* of the last frame */
    naive_stats stats;
    uint64_t entity_counts[FLOW_MAX_SYSTEMS];
    uint64_t command_counts[FLOW_MAX_SYSTEMS];
} flow_reference;

/* For comparison with a world in which the first entity of some slot has this handle. */
void flow_reference_open(flow_reference *reference, const flow_plan *plan, quern_entity probe);
void flow_reference_close(flow_reference *reference);

/* As flow_subject_call. */
void flow_reference_call(flow_reference *reference);

void flow_reference_frame(flow_reference *reference);

/* Fails the test when anything differs: order of execution, statistics, rows, handles, values,
 * resources. */
void flow_reference_compare(const flow_reference *reference, const flow_subject *subject);

#endif
