/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_NAIVE_H
#define QUERN_TESTS_FLOW_NAIVE_H

/* A world without the library, as simple as can be: entities in a plain array, commands in a list that is
 * applied one by one. Rows are kept in the order in which the library shows them: archetypes in the order
 * in which they came into being, a new row at the end, and the last row in the place of one that is gone;
 * at a sync point in the order that quern/commands.h defines. */

#include "tests/flow/flow_plan.h"

#include <quern/id.h>

typedef struct naive_entity {
    uint32_t stamp; /* the upper half of the handle of the living, or of the next one */
    bool is_alive;
    uint32_t archetype, row;
    uint32_t set;                      /* bit per type */
    uint32_t disabled;                 /* likewise, of those in the set */
    uint64_t changed[FLOW_TYPE_COUNT]; /* when a type in the set was added, given a value or switched */
    uint64_t words[FLOW_WORD_COUNT];   /* zero where the set lacks the type */
} naive_entity;

typedef struct naive_archetype {
    uint32_t set;
    uint32_t *slots; /* of its entities, by row */
    uint32_t count, capacity;
} naive_archetype;

typedef enum naive_kind {
    NAIVE_CREATE,
    NAIVE_DESTROY,
    NAIVE_ADD,
    NAIVE_REMOVE,
    NAIVE_ENABLE,
    NAIVE_ACCUMULATE
} naive_kind;

typedef struct naive_command {
    naive_kind kind;
    uint32_t source;     /* the system */
    quern_entity entity; /* provisional: its index is the number of the create */
    uint32_t type;
    flow_way way;   /* of an accumulated value */
    bool was_alive; /* likewise: the entity, when the sync point began */
    bool has_value; /* of NAIVE_ENABLE: to enable, not disable */
    uint64_t value[FLOW_MAX_TYPE_WORDS];
} naive_command;

/* What waits for one sync point. */
typedef struct naive_recorder {
    naive_command *commands;
    uint32_t command_count, command_capacity;
    uint32_t create_count; /* among the commands */
    uint32_t source;       /* of the commands that are recorded now */
} naive_recorder;

/* Commands that one system lost for one reason. */
typedef struct naive_drop {
    uint64_t count;
    quern_entity first;
} naive_drop;

typedef struct naive_stats {
    uint64_t command_count, dropped_count, created_count, destroyed_count;
    naive_drop destroyed_drops[FLOW_MAX_SYSTEMS], dead_drops[FLOW_MAX_SYSTEMS];
    naive_drop nowhere_drops[FLOW_MAX_SYSTEMS]; /* accumulated, and the entity lacks the component */
} naive_stats;

typedef struct naive_world {
    uint32_t first_stamp;   /* of a slot that was never used */
    uint32_t can_disable;   /* bit per type */
    uint64_t now;           /* goes on with all that runs */
    naive_entity *entities; /* by slot */
    uint32_t slot_count, slot_capacity;
    uint32_t *free_slots; /* the last is reused first */
    uint32_t free_count, free_capacity;
    uint32_t alive_count;
    naive_archetype archetypes[1u << FLOW_TYPE_COUNT];
    uint32_t archetype_count;
} naive_world;

void naive_open(naive_world *world, uint32_t first_stamp);
void naive_close(naive_world *world);

/* The living entity of a handle, or NULL. */
naive_entity *naive_find(const naive_world *world, quern_entity entity);
quern_entity naive_handle(const naive_world *world, uint32_t slot);

/* At once. Words of types that are not in the set do not count. */
quern_entity naive_create(naive_world *world, uint32_t set, const uint64_t *words);
void naive_destroy(naive_world *world, quern_entity entity);
void naive_change(naive_world *world, quern_entity entity, uint32_t set, const uint64_t *words);

/* Types in the entity's set, a bit each, have changed now. */
void naive_note_changed(const naive_world *world, naive_entity *entity, uint32_t types);

/* The value of a type in words of all types. */
static inline uint64_t *naive_value(uint64_t *words, uint32_t type)
{
    return words + flow_types[type].first_word;
}

/* Adds, or gives a value to, a type in a set; value NULL: zeros where the type is new. */
void naive_put(uint32_t *set, uint64_t *words, uint32_t type, const uint64_t *value);
void naive_take(uint32_t *set, uint64_t *words, uint32_t type);

/* Appends to the commands, unless the entity is refused. value may be NULL. */
void naive_record(naive_recorder *recorder, const naive_world *world, naive_kind kind, quern_entity entity,
                  uint32_t type, const uint64_t *value);
void naive_record_value(naive_recorder *recorder, quern_entity entity, uint32_t type, const uint64_t *value,
                        flow_way way);
quern_entity naive_record_create(naive_recorder *recorder);
void naive_recorder_close(naive_recorder *recorder);

/* Applies all commands of the recorder and adds to stats. */
void naive_apply(naive_world *world, naive_recorder *recorder, naive_stats *stats);

#endif
