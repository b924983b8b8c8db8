/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_REFERENCE_H
#define QUERN_TESTS_FLOW_REFERENCE_H

/* Runs a plan without the library: its systems one after another over the entities of a naive world,
 * then the commands of the phase. */

#include "tests/flow/flow_act.h"
#include "tests/flow/flow_naive.h"
#include "tests/flow/flow_subject.h"

typedef struct flow_reference {
    const flow_plan *plan;
    naive_world world;
    naive_recorder frame_recorder; /* commands of systems and of parallel queries */
    naive_recorder world_recorder; /* commands of the program between frames */
    uint64_t frame_index;
    flow_resource resources[FLOW_RESOURCE_COUNT];
    uint32_t order[FLOW_MAX_SYSTEMS];
    /* per system with an interval: ticks since the last multiple of the interval that a run covered */
    uint64_t due_ticks[FLOW_MAX_SYSTEMS];
    uint64_t elapsed_ticks[FLOW_MAX_SYSTEMS]; /* per system with an interval: ticks since it last ran */
    /* per phase with a fixed step: ticks not yet covered by steps */
    uint64_t phase_ticks[FLOW_PHASE_COUNT];
    uint64_t condition_counts[FLOW_MAX_SYSTEMS];
    /* results of all calls, as flow_subject.seen */
    uint64_t seen;
    /* time (naive_world.now) at which each system or call last ran */
    uint64_t system_times[FLOW_MAX_SYSTEMS], call_times[FLOW_MAX_CALLS];
    naive_stats flush_stats; /* statistics of the last sync point outside of frames */
    /* The following members describe the last frame. */
    naive_stats stats;
    uint64_t entity_counts[FLOW_MAX_SYSTEMS];
    uint64_t command_counts[FLOW_MAX_SYSTEMS];
} flow_reference;

/* Opens the reference for comparison with a world in which `probe` is the handle of an entity in its
 * slot's first generation. */
void flow_reference_open(flow_reference *reference, const flow_plan *plan, quern_entity probe);
void flow_reference_close(flow_reference *reference);

/* Does the plan's calls before the next frame, as flow_subject_call. */
void flow_reference_call(flow_reference *reference);

void flow_reference_frame(flow_reference *reference);

/* Fails the test if order of execution, statistics, dropped commands, rows, handles, values or resources
 * differ. */
void flow_reference_compare(const flow_reference *reference, const flow_subject *subject);

#endif
