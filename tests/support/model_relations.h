/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_MODEL_RELATIONS_H
#define QUERN_TESTS_MODEL_RELATIONS_H

/* A naive model of the relations between a model's entities. Each entity stores its target and an order
 * among siblings. All other answers are found by visiting all entities. */

#include "tests/support/model.h"

#include <quern/relation.h>

enum { MODEL_RELATION_COUNT = 5 };

extern const quern_relation_def model_relation_defs[MODEL_RELATION_COUNT];

typedef struct model_tie {
    uint32_t target; /* number of the target + 1; 0: none */
    int64_t order;   /* order among siblings, ascending */
} model_tie;

typedef struct model_relations {
    model_world *model;
    quern_relation relations[MODEL_RELATION_COUNT];
    model_tie *ties[MODEL_RELATION_COUNT]; /* indexed by number of the entity */
    /* indexed by number of the entity: marked by model_expect_destroy */
    bool *is_dying;
    uint32_t capacity;
    int64_t first, last; /* lowest and highest order given so far */
} model_relations;

/* Registers the relations in the model's world. */
void model_relations_init(model_relations *relations, model_world *model);
void model_relations_release(model_relations *relations);

/* Makes room for all entities of the model. Call after creating entities. */
void model_relations_grow(model_relations *relations);

/* Returns whether an entity has a target, and the target. */
bool model_target(const model_relations *relations, uint32_t relation, uint32_t source,
                  uint32_t *out_target);

/* Returns the expected result of relating two living entities: OK, CYCLE or INVALID_ARGUMENT. */
quern_result model_expect_relate(const model_relations *relations, uint32_t relation, uint32_t source,
                                 uint32_t target);
void model_relate(model_relations *relations, uint32_t relation, uint32_t source, uint32_t target);
void model_unrelate(model_relations *relations, uint32_t relation, uint32_t source);

/* Moves a source before a sibling. `before` equal to the source moves it to the end. */
void model_place(model_relations *relations, uint32_t relation, uint32_t source, uint32_t before);

/* model_expect_destroy returns the expected result of destroying living entities, OK or TARGET_IN_USE,
 * and marks the entities that would be destroyed with them. model_destroy_marked destroys the marked
 * ones. */
quern_result model_expect_destroy(model_relations *relations, const uint32_t *entities, uint32_t count);
void model_destroy_marked(model_relations *relations);

/* Fails the test if world and model differ. */
void model_check_relations(const model_relations *relations);

#endif
