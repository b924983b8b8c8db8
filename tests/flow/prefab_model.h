/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_PREFAB_MODEL_H
#define QUERN_TESTS_FLOW_PREFAB_MODEL_H

/* A naive model of commands on entities, trees and prefab instances, written from docs/prefabs.md,
 * docs/commands.md and the headers alone: an array of entities indexed by slot, to which commands are
 * applied one by one, in order. It has no archetypes, rows or streams. */

#include <stdbool.h>
#include <stdint.h>

enum {
    MODEL_SLOTS = 6000,
    MODEL_NONE = -1,
    MODEL_GONE = -2,     /* value of a handle to an entity whose slot is in use again */
    MODEL_MEMBERS = 6,   /* maximum number of members of a prefab */
    MODEL_OVERRIDES = 2, /* maximum number of overrides of a spawn */
    MODEL_ARGUMENTS = 2
};

/* The components of an entity: two with a value, a tag, one with a described handle, one with hooks, a prefab slot,
 * the tag of disabled entities, and the hidden tag of entities that are disabled through their parent. */
typedef enum model_part {
    MODEL_NUMBER,
    MODEL_OTHER,
    MODEL_MARK,
    MODEL_KNOWS,
    MODEL_TRACKED,
    MODEL_SEAT,
    MODEL_OFF,
    MODEL_OFF_BY_PARENT,
    MODEL_PART_COUNT
} model_part;

/* The relations: the hierarchy, and one that keeps its sources alive when their target is destroyed. */
typedef enum model_relation { MODEL_PARENT, MODEL_LIKES, MODEL_RELATION_COUNT } model_relation;

typedef struct model_thing {
    bool is_alive;
    bool has[MODEL_PART_COUNT];
    int64_t values[MODEL_PART_COUNT]; /* of MODEL_KNOWS and MODEL_SEAT: the slot of an entity */
    int targets[MODEL_RELATION_COUNT];
    uint64_t joined; /* time at which it became a child of its parent; children are ordered by it */
    char name;       /* 0: unnamed */
} model_thing;

/* A member of a prefab. `parent` is another member. `likes`, and a value of MODEL_KNOWS, is another
 * member or the slot of an entity outside of the prefab, as likes_outside and knows_member say. Only the root
 * may have MODEL_SEAT; its value is another member. */
typedef struct model_member {
    bool has[MODEL_PART_COUNT];
    int64_t values[MODEL_PART_COUNT];
    int parent, likes; /* MODEL_NONE if there is none, as for the parent of the root */
    bool knows_member, likes_outside;
    char name;
} model_member;

typedef struct model_prefab {
    model_member members[MODEL_MEMBERS];
    uint32_t member_count;
} model_prefab;

typedef enum model_action {
    MODEL_CREATE,
    MODEL_SPAWN,
    MODEL_SET,
    MODEL_ADD, /* adds a component without a value */
    MODEL_REMOVE,
    MODEL_DESTROY,
    MODEL_RELATE,
    MODEL_UNRELATE,
    MODEL_NAME_IT,
    MODEL_ACCUMULATE,
    MODEL_ENABLE, /* enables the tree */
    MODEL_DISABLE,
    MODEL_ACTION_COUNT
} model_action;

/* An entity that a command names. */
typedef struct model_ref {
    bool is_created; /* created by the same callback: `number` is relative to its first create */
    int number;      /* if not is_created: slot, or MODEL_NONE */
} model_ref;

typedef struct model_override {
    uint32_t member;
    model_part part;
    int64_t value;
    model_ref knows;
} model_override;

typedef struct model_command {
    model_action action;
    model_ref entity;
    model_ref other; /* target, parent, or the entity in a value of MODEL_KNOWS or MODEL_SEAT */
    model_part part;
    model_relation relation;
    int64_t value;
    char name;
    uint32_t prefab;
    model_override overrides[MODEL_OVERRIDES];
    uint32_t override_count;
} model_command;

typedef struct prefab_model {
    model_thing things[MODEL_SLOTS];
    uint32_t slot_count;
    uint64_t clock;
    const model_prefab *prefabs;
    /* values accumulated since the last sync point */
    struct {
        int slot;
        int64_t value;
    } accumulated[4096];
    uint32_t accumulated_count;
} prefab_model;

/* Adds a living entity without components in the next slot. Returns the slot. */
int prefab_model_add(prefab_model *model);

/* Whether values of the component are handles. */
bool model_part_is_handle(model_part part);

/* Puts a new entity without components into the slot of a destroyed one. */
void prefab_model_reuse(prefab_model *model, int slot);

/* Returns the slot of the entity in the prefab slot (MODEL_SEAT), or MODEL_NONE. */
int prefab_model_seat(const prefab_model *model, int slot);

/* Applies the commands of one callback in order. Entities that it creates get the next slots. */
void prefab_model_call(prefab_model *model, const model_command *commands, uint32_t count);

/* Ends the sync point: adds up the accumulated values. */
void prefab_model_sync(prefab_model *model);

/* Relates immediately, with the checks of the command. */
void prefab_model_relate(prefab_model *model, int source, model_relation relation, int target);

uint32_t prefab_model_alive_count(const prefab_model *model);

/* Returns the child after `child`, or the first one if `child` is MODEL_NONE; MODEL_NONE if there is
 * none. */
int prefab_model_next_child(const prefab_model *model, int parent, int child);

#endif
