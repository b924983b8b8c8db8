/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_PREFAB_MODEL_H
#define QUERN_TESTS_FLOW_PREFAB_MODEL_H

/* A naive model of commands on entities and on instances of prefabs, written from docs/prefabs.md,
 * docs/commands.md and the headers alone: one array of entities, by slot, and each command done at once, in
 * order. It knows nothing of archetypes, rows, streams or compact instances. */

#include <stdbool.h>
#include <stdint.h>

enum {
    MODEL_SLOTS = 6000,
    MODEL_NONE = -1,
    MODEL_MEMBERS = 6,   /* of a prefab, at most */
    MODEL_OVERRIDES = 2, /* of a spawn, at most */
    MODEL_ARGUMENTS = 2
};

/* Parts of an entity: components with a value, a tag, a described handle, and a value with hooks. */
typedef enum model_part {
    MODEL_NUMBER,
    MODEL_OTHER,
    MODEL_MARK,
    MODEL_KNOWS,
    MODEL_TRACKED,
    MODEL_PART_COUNT
} model_part;

/* Relations: the hierarchy, and one whose sources stay when their target goes. */
typedef enum model_relation { MODEL_PARENT, MODEL_LIKES, MODEL_RELATION_COUNT } model_relation;

typedef struct model_thing {
    bool is_alive;
    bool has[MODEL_PART_COUNT];
    int64_t values[MODEL_PART_COUNT]; /* of MODEL_KNOWS: a slot */
    int targets[MODEL_RELATION_COUNT];
    uint64_t joined; /* when it came to its parent: children are in this order */
    char name;       /* 0: none */
} model_thing;

/* A member of a prefab. Slots in it are members, or ~slot for an entity outside of the tree. */
typedef struct model_member {
    bool has[MODEL_PART_COUNT];
    int64_t values[MODEL_PART_COUNT];
    int parent, likes; /* MODEL_NONE: none; the parent of the root is */
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
    MODEL_ADD, /* without a value */
    MODEL_REMOVE,
    MODEL_DESTROY,
    MODEL_RELATE,
    MODEL_UNRELATE,
    MODEL_NAME_IT,
    MODEL_ACCUMULATE,
    MODEL_ACTION_COUNT
} model_action;

/* An entity that a command names. */
typedef struct model_ref {
    bool is_created; /* by this callback: the number of its create */
    int number;      /* otherwise its slot, or MODEL_NONE */
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
    model_ref other; /* target, parent, or what a value knows */
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
    /* of the sync point */
    struct {
        int slot;
        int64_t value;
    } accumulated[4096];
    uint32_t accumulated_count;
} prefab_model;

/* A living entity without anything in the next slot, which it returns. */
int prefab_model_add(prefab_model *model);

/* The commands of one callback, one after the other; what it creates takes the next slots. */
void prefab_model_call(prefab_model *model, const model_command *commands, uint32_t count);

/* The end of the sync point: accumulated values are combined. */
void prefab_model_sync(prefab_model *model);

/* Immediately, as the commands do. */
void prefab_model_relate(prefab_model *model, int source, model_relation relation, int target);

uint32_t prefab_model_alive_count(const prefab_model *model);

/* The child after this one, MODEL_NONE: the first one or no more. */
int prefab_model_next_child(const prefab_model *model, int parent, int child);

#endif
