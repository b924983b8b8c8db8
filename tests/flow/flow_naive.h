/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_NAIVE_H
#define QUERN_TESTS_FLOW_NAIVE_H

/* The simplest possible model of a world: entities in an array, and commands in a list that is applied
 * one by one. Its row order is that of the library: archetypes in the order of their creation, new rows
 * at the end, and the last row moved into the place of a removed one. At a sync point the order is the
 * one that quern/commands.h defines. */

#include "tests/flow/flow_plan.h"

#include <quern/id.h>

typedef struct naive_entity {
    uint32_t stamp; /* upper half of the handle of the entity, or of the next entity in this slot */
    bool is_alive;
    uint32_t archetype, row;
    uint32_t set;      /* types of the entity, one bit each */
    uint32_t disabled; /* disabled types, one bit each; a subset of set */
    /* time (naive_world.now) at which a type of the set was last added, written, enabled or disabled */
    uint64_t changed[FLOW_TYPE_COUNT];
    uint64_t words[FLOW_WORD_COUNT]; /* words of all types; 0 for types that are not in the set */
} naive_entity;

typedef struct naive_archetype {
    uint32_t set;
    uint32_t *slots; /* slots of the entities, by row */
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
    uint32_t source;     /* index of the system that recorded it */
    quern_entity entity; /* if provisional, its index is the number of the create */
    uint32_t type;
    flow_combine combine; /* NAIVE_ACCUMULATE: how the value is combined */
    bool was_alive;       /* NAIVE_ACCUMULATE: whether the entity was alive when the sync point began */
    bool has_value;       /* NAIVE_ENABLE: true to enable, false to disable */
    uint64_t value[FLOW_MAX_TYPE_WORDS];
} naive_command;

/* The commands recorded for one sync point. */
typedef struct naive_recorder {
    naive_command *commands;
    uint32_t command_count, command_capacity;
    uint32_t create_count; /* number of creates among the commands */
    uint32_t source;       /* index of the system that records at present */
} naive_recorder;

/* Commands of one system that were dropped for one reason. */
typedef struct naive_drop {
    uint64_t count;
    quern_entity first;
} naive_drop;

typedef struct naive_stats {
    uint64_t command_count, dropped_count, created_count, destroyed_count;
    naive_drop destroyed_drops[FLOW_MAX_SYSTEMS], dead_drops[FLOW_MAX_SYSTEMS];
    /* accumulated values for entities that lack the component */
    naive_drop no_component_drops[FLOW_MAX_SYSTEMS];
} naive_stats;

typedef struct naive_world {
    uint32_t first_stamp;     /* upper half of the handle for slots that were never used */
    uint32_t can_disable;     /* types that can be disabled, one bit each */
    const uint32_t *required; /* for each type, all types that it requires, one bit each */
    const uint64_t *defaults; /* words of newly constructed values of all types */
    uint64_t now;             /* time: increased by each system, call and sync point */
    naive_entity *entities;   /* indexed by slot */
    uint32_t slot_count, slot_capacity;
    uint32_t *free_slots; /* a stack: the last one is reused first */
    uint32_t free_count, free_capacity;
    uint32_t alive_count;
    naive_archetype archetypes[1u << FLOW_TYPE_COUNT];
    uint32_t archetype_count;
} naive_world;

void naive_open(naive_world *world, const flow_plan *plan, uint32_t first_stamp);
void naive_close(naive_world *world);

/* Returns the living entity with this handle, or NULL. */
naive_entity *naive_find(const naive_world *world, quern_entity entity);
quern_entity naive_handle(const naive_world *world, uint32_t slot);

/* The following three calls change the world immediately. Words of types that are not in the set are
 * ignored. */
quern_entity naive_create(naive_world *world, uint32_t set, const uint64_t *words);
void naive_destroy(naive_world *world, quern_entity entity);
void naive_change(naive_world *world, quern_entity entity, uint32_t set, const uint64_t *words);

/* Sets the time of the last change to `now` for those of `types` (one bit each) that the entity has. */
void naive_note_changed(const naive_world *world, naive_entity *entity, uint32_t types);

/* Returns the words of one type within the words of all types. */
static inline uint64_t *naive_value(uint64_t *words, uint32_t type)
{
    return words + flow_types[type].first_word;
}

/* Returns the types that a set lacks and that others in it require. */
uint32_t naive_missing(const naive_world *world, uint32_t set);

/* Adds a type to a set or gives it a value. With value NULL an added type gets its default words. */
void naive_add_type(const naive_world *world, uint32_t *set, uint64_t *words, uint32_t type,
                    const uint64_t *value);

/* Adds the missing types, with default words. */
void naive_add_missing(const naive_world *world, uint32_t *set, uint64_t *words);
void naive_remove_type(uint32_t *set, uint64_t *words, uint32_t type);

/* Appends a command unless its entity is dead, which the library refuses when it is recorded. `value`
 * may be NULL. */
void naive_record(naive_recorder *recorder, const naive_world *world, naive_kind kind, quern_entity entity,
                  uint32_t type, const uint64_t *value);
void naive_record_value(naive_recorder *recorder, quern_entity entity, uint32_t type, const uint64_t *value,
                        flow_combine combine);
quern_entity naive_record_create(naive_recorder *recorder);
void naive_recorder_close(naive_recorder *recorder);

/* Applies and removes all commands of the recorder, and adds their counts to `stats`. */
void naive_apply(naive_world *world, naive_recorder *recorder, naive_stats *stats);

#endif
