/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_MODEL_H
#define QUERN_TESTS_MODEL_H

/* A naive model of the contents of a world: a list of all entities that ever existed, and the components
 * of each. A value is stored as the seed from which its bytes are generated. */

#include "tests/support/tracked.h"

#include <quern/query.h>
#include <quern/world.h>

/* seed of values made by the construct hook */
enum { MODEL_TYPE_COUNT = 12, MODEL_VALUE_BYTES = 3008, MODEL_CONSTRUCTED = 0 };

typedef enum model_kind { MODEL_PLAIN, MODEL_TRACKED, MODEL_OWNED } model_kind;

typedef struct model_type {
    const char *name;
    model_kind kind;
    uint32_t size_bytes;
    uint32_t alignment_bytes;
    bool can_disable;
} model_type;

extern const model_type model_types[MODEL_TYPE_COUNT];

typedef struct model_entity {
    quern_entity handle;
    bool is_alive;
    bool has[MODEL_TYPE_COUNT];
    bool is_disabled[MODEL_TYPE_COUNT]; /* only for components that the entity has */
    uint32_t seeds[MODEL_TYPE_COUNT];
} model_entity;

typedef struct model_world {
    quern_world *world;
    quern_component components[MODEL_TYPE_COUNT];
    model_entity *entities; /* all entities, dead ones included, indexed by number */
    uint32_t entity_count;
    uint32_t entity_capacity;
    uint32_t alive_count;
    tracked_counts tracked;
    atomic_llong owned_count;
} model_world;

/* A value to be given to the world. */
typedef struct model_value {
    _Alignas(64) unsigned char bytes[MODEL_VALUE_BYTES];
    uint32_t type;
} model_value;

/* model_init makes the model own the world. model_release destroys the world and checks that no value is
 * left. */
void model_init(model_world *model, quern_world *world);
void model_release(model_world *model);

/* Records a created entity and returns its number. */
uint32_t model_create(model_world *model, quern_entity handle);
void model_destroy(model_world *model, uint32_t entity);
void model_set(model_world *model, uint32_t entity, uint32_t type, uint32_t seed);
void model_remove(model_world *model, uint32_t entity, uint32_t type);
void model_enable(model_world *model, uint32_t entity, uint32_t type, bool enabled);

/* model_value_make generates a value for a call. model_value_drop releases it after the call; `taken`
 * says whether the call succeeded and so owns the value. */
void model_value_make(model_world *model, uint32_t type, uint32_t seed, model_value *value);
void model_value_drop(model_world *model, model_value *value, bool taken);

/* Overwrites a value in the world, as a system does. */
void model_value_overwrite(uint32_t type, uint32_t seed, void *value);

bool model_value_matches(uint32_t type, uint32_t seed, const void *value);

/* A term of a query that the model can evaluate. */
typedef struct model_term {
    uint32_t type;
    quern_match match;
    bool either; /* matches the component whether it is enabled or disabled */
} model_term;

bool model_matches(const model_entity *entity, const model_term *terms, uint32_t count);
uint32_t model_count(const model_world *model, const model_term *terms, uint32_t count);
quern_query *model_query(const model_world *model, const model_term *terms, uint32_t count);

/* The check functions fail the test if world and model differ. */
void model_check_entity(const model_world *model, uint32_t entity);
void model_check_query(const model_world *model, const model_term *terms, uint32_t count);
void model_check(const model_world *model);

#endif
