/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_TARGET_H
#define QUERN_CORE_QUERY_TARGET_H

/* Target terms: a query with one comes to the rows whose target is one given entity. They are found by
 * walking the children of that entity, so no archetype is split for it. Those whose archetype matches are
 * sorted as any walk would come to them, and neighbours are joined: each run of rows is a view.
 *
 * The list of runs holds as long as no row has moved, no entity has got another target, and the target of
 * the query is the same. After that it is made anew, in memory that is kept: who walks children again and
 * again asks for none. */

#include "core/base/sort.h"
#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"

/* Rows that are neighbours in a chunk. */
typedef struct quern__target_run {
    uint32_t match; /* of the query */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__target_run;

/* Of a query: allocated with it, if it has a target term. */
typedef struct quern__target {
    quern__relation *relation;
    quern_entity entity; /* null: no rows */
    QUERN__ARRAY(quern__target_run) runs;
    uint32_t list_number;        /* how often the list was made */
    bool is_listed;              /* it could be made the last time */
    quern_entity listed;         /* for which it was made, */
    uint64_t structure_version;  /* and when */
    uint64_t archetypes_version; /* matches have the places that runs name */
    uint64_t links_version;
    QUERN__ARRAY(quern__sort_item) rows; /* of all runs, in their order */
    QUERN__ARRAY(quern__sort_item) sort_scratch;
} quern__target;

/* The i-th of terms that have been checked as any other. Errors: INVALID_ARGUMENT, and those of a wrong
 * handle. */
quern_result quern__target_check(const quern__storage *storage, const quern_term *terms, uint32_t i);

/* For a query with its terms, of which one may be a target term. Errors: OUT_OF_MEMORY, with nothing
 * left. */
quern_result quern__target_create(quern__query *query);
void quern__target_destroy(const quern__query *query);

/* Gives the query's term another target; null: none. Errors: INVALID_ARGUMENT (no such term), those of a
 * wrong handle. */
quern_result quern__target_set(const quern__query *query, quern_entity target);

/* Whether the list of runs is as it would be made now. */
bool quern__target_is_listed(const quern__query *query);

/* Makes the list be so. The query has been refreshed. Errors: OUT_OF_MEMORY. */
quern_result quern__target_list(const quern__query *query);

/* Points a view at the i-th run. ordinal, query and context are the caller's. */
void quern__target_show(const quern__query *query, uint32_t i, quern_view *view);

/* Begins an iteration. Errors: OUT_OF_MEMORY. */
quern_result quern__target_begin(quern_query_iterator *iterator);

/* Whether its list is still there, and right: nobody was related meanwhile, nor the target set. */
bool quern__target_holds(const quern_query_iterator *iterator);

/* How many rows there are; 0, with a message, when memory for the list is missing. */
uint64_t quern__target_count(const quern__query *query);

/* Moves an iteration on to the next run that filters let pass. Of the iterator, match_index is the next run,
 * and chunk_index the number of the list. */
bool quern__target_next(quern_query_iterator *iterator);

#endif
