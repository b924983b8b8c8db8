/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_UP_H
#define QUERN_CORE_QUERY_UP_H

/* Up-terms: terms on what the target of a row has. Before a view comes to a kernel, the addresses of the
 * values are found for all its rows, as find_many.h finds those of handles:
 *
 *   target, in the row's own column -> its record -> place of the component by archetype -> address
 *
 * The records of a batch are asked for while those before it are looked at, and each value as soon as it is
 * known where it is. Rows that are neighbours and have the same target share one search. The targets are
 * alive: relations see to that. A value that was written over them is no living handle, most likely, and
 * counts as a target without the component.
 *
 * Addresses lie in memory of whoever makes the views, one array of QUERN__UP_STRIDE per up-term, by row of
 * the chunk. Nothing moves while views are out, so they are good whenever they were found. */

#include "core/query/query_internal.h"

/* An up-term of a query. */
typedef struct quern__up {
    quern__place_table values;  /* where the component is, by archetype */
    quern__place_table targets; /* likewise the relation's; kept for is_nearest alone */
    uint32_t relation_index;    /* of the relation's component */
    bool is_optional;
    bool is_nearest;
} quern__up;

/* The rows of a view that have not come to a kernel yet. */
typedef struct quern__up_rows {
    uint32_t next, end; /* rows of the chunk */
    bool leaves_some_out;
} quern__up_rows;

/* Addresses of one iteration of a query. A loop that is left early does not end its iteration, so a query has a few
 * of these. When all are in use, one is taken over: first of those whose iterator object a later iteration has
 * used again, as the next turn of an outer loop does; else the one that has not moved for longest. */
typedef struct quern__up_walk {
    const void **addresses;
    quern__up_rows rows;
    uint32_t number;            /* of the iteration, new with each view; 0: of none */
    uint64_t structure_version; /* when it began: once that changes, it goes no further */
    const quern_query_iterator
        *iterator; /* the object that moved it last, to be compared only; NULL: none yet */
} quern__up_walk;

enum { QUERN__UP_WALKS = 8 };

/* Of a query: allocated with it, if it has up-terms. */
typedef struct quern__ups {
    uint32_t count;
    uint32_t walk_number; /* of the iteration that moved last */
    bool leaves_rows_out; /* some up-term is not optional */
    quern__up_walk walks[QUERN__UP_WALKS];
    const void **worker_addresses; /* for parallel queries */
    uint32_t worker_count;         /* that these are for */
    quern__up items[];
} quern__ups;

_Static_assert(QUERN__UP_STRIDE > (QUERN__CHUNK_BYTES - QUERN__CHUNK_HEADER_BYTES) / sizeof(quern_entity),
               "a chunk has fewer rows than an up-term has addresses");

/* A term that has been checked as any other. Errors: INVALID_ARGUMENT. */
quern_result quern__up_check(const quern__storage *storage, const quern_term *term, uint32_t i);

/* For a query with its terms. Errors: OUT_OF_MEMORY, with nothing left. */
quern_result quern__ups_create(quern__query *query);
void quern__ups_destroy(quern__query *query);

/* How many addresses a worker needs room for. */
static inline size_t quern__ups_address_count(uint32_t up_count)
{
    return (size_t)up_count * QUERN__UP_STRIDE;
}

/* Makes sure of addresses for so many workers of a parallel query. Errors: OUT_OF_MEMORY. */
quern_result quern__ups_reserve_workers(const quern__query *query, uint32_t worker_count);

/* Begins an iteration of a query that has up-terms. Errors: OUT_OF_MEMORY. */
quern_result quern__ups_begin_walk(quern_query_iterator *iterator);

/* Whether the iteration has its addresses still. */
static inline bool quern__ups_has_walk(const quern_query_iterator *iterator)
{
    return iterator->up_walk->number == iterator->up_number;
}

/* Numbers the walk anew: it is the last one in use. Of those that were left early none is. */
static inline void quern__ups_use_walk(quern_query_iterator *iterator)
{
    quern__ups *ups = iterator->query->ups;
    ups->walk_number += ups->walk_number == UINT32_MAX ? 2 : 1; /* never 0 */
    iterator->up_walk->number = iterator->up_number = ups->walk_number;
}

/* Finds the addresses for the rows of a view of the query; addresses: room for them. The view is not good
 * before quern__up_next. */
quern__up_rows quern__up_find(const quern__query *query, const void **addresses, quern_view *view);

/* Points the view at the next run of rows of its chunk that stay. False when there is none. */
bool quern__up_next(const quern__query *query, quern__up_rows *rows, quern_view *view);

/* The first up-term that reads what another term writes in the rows themselves; term_count: there is none.
 * levels: by which targets come before their sources, so that up-terms by it may do so; or null. */
uint32_t quern__query_up_conflict(const quern__query *query, quern_relation levels);

/* Whether up-terms let a row of a match stay. */
bool quern__up_stays(const quern__query *query, const quern__archetype *archetype, uintptr_t location);

#endif
