/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_MODEL_RELATIONS_H
#define QUERN_TESTS_MODEL_RELATIONS_H

/* Relations between the entities of a model, in the most naive way: each entity knows its target and a number
 * by which siblings are ordered; whatever else is asked is found by looking at all entities. */

#include "tests/support/model.h"

#include <quern/relation.h>

enum { MODEL_RELATION_COUNT = 5 };

extern const quern_relation_def model_relation_defs[MODEL_RELATION_COUNT];

typedef struct model_tie {
    uint32_t target; /* number of an entity + 1; 0: none */
    int64_t order;   /* ascending from sibling to sibling */
} model_tie;

typedef struct model_relations {
    model_world *model;
    quern_relation relations[MODEL_RELATION_COUNT];
    model_tie *ties[MODEL_RELATION_COUNT]; /* by number of the entity */
    bool *is_dying;                        /* likewise */
    uint32_t capacity;
    int64_t first, last; /* orders given so far */
} model_relations;

/* Registers the relations in the model's world. */
void model_relations_init(model_relations *relations, model_world *model);
void model_relations_release(model_relations *relations);

/* To be called after entities were created. */
void model_relations_grow(model_relations *relations);

/* The target of an entity, if it has one. */
bool model_target(const model_relations *relations, uint32_t relation, uint32_t source,
                  uint32_t *out_target);

/* What relating gives: OK, CYCLE or INVALID_ARGUMENT. Both live. */
quern_result model_expect_relate(const model_relations *relations, uint32_t relation, uint32_t source,
                                 uint32_t target);
void model_relate(model_relations *relations, uint32_t relation, uint32_t source, uint32_t target);
void model_unrelate(model_relations *relations, uint32_t relation, uint32_t source);

/* before: an entity, or the source's own number for the end. */
void model_place(model_relations *relations, uint32_t relation, uint32_t source, uint32_t before);

/* What destroying living entities gives: OK or TARGET_IN_USE; who dies with them is marked until the next
 * call, and is destroyed by the other. */
quern_result model_expect_destroy(model_relations *relations, const uint32_t *entities, uint32_t count);
void model_destroy_marked(model_relations *relations);

/* Fails the test when world and model differ. */
void model_check_relations(const model_relations *relations);

#endif
