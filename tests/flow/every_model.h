/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_EVERY_MODEL_H
#define QUERN_TESTS_FLOW_EVERY_MODEL_H

/* The state of the model, which its two files share: every_model.c makes changes, every_model_frames.c follows frames. */

#include "tests/flow/every.h"

#define BIT(type) ((uint32_t)1 << (type))

enum {
    MAX_ENTITIES = EVERY_MODEL_ENTITIES,
    MAX_EDGES = 3000,
    MAX_CHANGES = 30000,
    MAX_WAITING = 1000,
    MAX_COPIES = 3000,
    MAX_EVENTS = 20000,
    MAX_PREFAB_EDGES = 128,
    MAX_CLONES = 512,
    READERS = 4
};

typedef every_model_edge edge;

typedef struct event {
    uint64_t id;
    int entity; /* EVERY_NONE: null */
} event;

/* A row that reactions to removed rows have not seen. */
typedef struct copy {
    uint32_t reaction;
    int entity;
    uint32_t set; /* types that the row had */
    uint64_t words[EVERY_WORDS];
} copy;

typedef struct prefab {
    uint32_t member_count;
    every_values values[EVERY_MEMBERS]; /* the handle of EVERY_LINK: -1 - member, if it is one */
    bool is_through[EVERY_MEMBERS];
    int targets[EVERY_MEMBERS][EVERY_SINGLES]; /* MEMBER + number, if it is a member */
    int64_t ranks[EVERY_MEMBERS][EVERY_SINGLES];
    uint64_t edge_values[EVERY_MEMBERS][EVERY_SINGLES];
    char names[EVERY_MEMBERS][4];
    uint32_t edge_count;
    edge edges[MAX_PREFAB_EDGES]; /* source: a member; target like targets */
} prefab;

enum { MEMBER = 1 << 20 };

/* What histories save. */
typedef struct state {
    every_entity entities[MAX_ENTITIES];
    int entity_count;
    edge edges[MAX_EDGES];
    uint32_t edge_count;
    int64_t highest_rank, lowest_rank;
    event events[MAX_EVENTS];
    uint32_t event_count, positions[READERS];
    copy copies[MAX_COPIES];
    uint32_t copy_count;
    bool is_system_off[EVERY_SYSTEMS], is_reaction_off[EVERY_REACTIONS], is_switched_off;
    uint32_t order[EVERY_SYSTEMS];     /* systems in the order of registration */
    every_change waiting[MAX_WAITING]; /* commands of the world itself */
    uint32_t waiting_count;
} state;

extern state *every_state;

/* What the systems and reactions of the program ask for. */
typedef struct every_model_terms {
    const every_terms *systems, *reactions;
    const uint32_t *phases; /* by system */
    uint32_t system_count, reaction_count;
} every_model_terms;

extern every_model_terms every_model_program;

/* Begins anew with the entities of the state, and no recorded change. */
void every_model_restart(void);

/* Returns the number of an edge, or of the one after the last. */
uint32_t every_model_find_edge(uint32_t relation, int source, int target);

/* Gives an entity the handle that the world gave it. */
void every_model_set_handle(int entity, quern_entity handle);

void every_model_toggle_value(every_values *values, uint32_t type, bool enabled);

#endif
