/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_REACTING_H
#define QUERN_TESTS_REACTING_H

/* Reactions as the storage knows them, without a schedule that runs them: what each is told, row by row. */

#include "core/world/world_internal.h"

#include <quern/query.h>

/* One row that a reaction is told of. */
typedef struct reacting_row {
    quern_entity entity;
    const quern__archetype *archetype; /* where it is, or where it was */
    quern_reaction_kind kind;
    const void *values[QUERN_MAX_TERMS]; /* of the terms with access, where there are some */
} reacting_row;

typedef struct reacting {
    quern_query *query;
    quern__reaction *reaction;
    reacting_row *rows; /* of the last look */
    uint32_t count;
} reacting;

/* Fails the test when it fails. */
reacting reacting_begin(quern_world *world, uint32_t kinds, const quern_term *terms, uint32_t term_count);
void reacting_end(reacting *it);

/* Takes what is pending into rows: what went first, then the others in order. Fails the test when that
 * fails, or when something about what was taken is not as it must be. */
void reacting_look(reacting *it);

/* The rows of the last look are done with. */
void reacting_done(reacting *it);

/* The row of the entity among those of a kind in the last look, or NULL. */
const reacting_row *reacting_find(const reacting *it, quern_reaction_kind kind, quern_entity entity);

#endif
