/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_REACTING_H
#define QUERN_TESTS_REACTING_H

/* Reactions at the level of the storage, without a schedule that runs them: the rows that are reported
 * to each. */

#include "core/reactions/reaction.h"
#include "core/world/world_internal.h"

#include <quern/query.h>

/* A row that is reported to a reaction. */
typedef struct reacting_row {
    quern_entity entity;
    const quern__archetype *archetype; /* the entity's archetype; for removed entities the one it was in */
    quern_reaction_kind kind;
    const void *values[QUERN_MAX_TERMS]; /* values of the terms with access; NULL if absent */
    const void *old[QUERN_MAX_TERMS];    /* values of old terms, if the row was set */
} reacting_row;

typedef struct reacting {
    quern_query *query;
    quern__reaction *reaction;
    reacting_row *rows; /* rows of the last reacting_look */
    uint32_t count;
} reacting;

/* Creates a reaction. Fails the test if that fails. */
reacting reacting_begin(quern_world *world, uint32_t kinds, const quern_term *terms, uint32_t term_count);
void reacting_end(reacting *it);

/* Moves pending reports into `rows`: removed rows first, then the others in order. Fails the test if
 * that fails or the reports are inconsistent. */
void reacting_look(reacting *it);

/* Releases the rows of the last reacting_look. */
void reacting_done(reacting *it);

/* Returns the reported row of an entity with this kind, or NULL. */
const reacting_row *reacting_find(const reacting *it, quern_reaction_kind kind, quern_entity entity);

#endif
