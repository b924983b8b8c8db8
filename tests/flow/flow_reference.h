/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_REFERENCE_H
#define QUERN_TESTS_FLOW_REFERENCE_H

/* A plan played without the library: entities in a plain array, systems one after another over all of them,
 * commands one by one. Rows are kept in the order in which the library shows them: archetypes in the order in
 * which they came into being, a new row at the end, and the last row in the place of one that is gone. */

#include "tests/flow/flow_subject.h"

typedef struct reference_entity {
    uint32_t generation; /* of the living, or of the next one */
    bool is_alive;
    uint32_t archetype, row;
    uint32_t set;                    /* bit per type */
    uint64_t words[FLOW_WORD_COUNT]; /* zero where the set lacks the type */
} reference_entity;

typedef struct reference_archetype {
    uint32_t set;
    uint32_t *slots; /* of its entities, by row */
    uint32_t count, capacity;
} reference_archetype;

typedef enum reference_kind {
    REFERENCE_CREATE,
    REFERENCE_DESTROY,
    REFERENCE_ADD,
    REFERENCE_SET,
    REFERENCE_REMOVE
} reference_kind;

typedef struct reference_command {
    reference_kind kind;
    quern_entity entity; /* provisional: the number of the create, in the index */
    uint32_t type;
    uint64_t *value; /* NULL: none */
} reference_command;

/* What the commands make of one entity. */
typedef struct reference_edit {
    uint32_t slot;
    bool is_new, is_destroyed;
    uint32_t set;
    uint64_t words[FLOW_WORD_COUNT];
} reference_edit;

typedef struct reference_stats {
    uint64_t command_count, dropped_count, created_count, destroyed_count;
    uint64_t entity_counts[FLOW_MAX_SYSTEMS];
    uint64_t command_counts[FLOW_MAX_SYSTEMS];
} reference_stats;

typedef struct flow_reference {
    const flow_plan *plan;
    uint32_t world_tag;
    uint64_t frame_index;
    reference_entity *entities;
    uint32_t slot_count, slot_capacity;
    uint32_t *free_slots; /* the last is reused first */
    uint32_t free_count;
    uint32_t alive_count;
    reference_archetype archetypes[1u << FLOW_TYPE_COUNT];
    uint32_t archetype_count;
    flow_resource resources[FLOW_RESOURCE_COUNT];
    reference_command *commands;
    uint32_t command_count, command_capacity;
    uint32_t create_count;
    uint32_t order[FLOW_MAX_SYSTEMS];
    reference_stats stats; /* of the latest frame */
} flow_reference;

/* For comparison with worlds of that tag. */
void flow_reference_open(flow_reference *reference, const flow_plan *plan, uint32_t world_tag);
void flow_reference_close(flow_reference *reference);

void flow_reference_frame(flow_reference *reference);

/* Fails the test when anything differs: order of execution, statistics, entities, rows, values, resources. */
void flow_reference_compare(const flow_reference *reference, const flow_subject *subject);

#endif
