/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_UP_H
#define QUERN_CORE_QUERY_UP_H

/* Up-terms: terms that read a component of the row's target or of another ancestor. Before a callback gets a
 * view, the addresses of the values are looked up for all rows of the view, as in find_many.h:
 *
 *   target, in the row's own column -> record of the target -> position of the component -> address
 *
 * The records of a batch are prefetched while the previous batch is looked up, and each value as soon as its
 * address is known. Consecutive rows with one target share one search. Relations guarantee that targets are
 * alive. If an application overwrites a target through a pointer, the value is most likely no valid handle;
 * the target then counts as one without the component.
 *
 * The caller that makes the views provides the memory for addresses: an array of QUERN__UP_STRIDE addresses
 * per up-term, indexed by row of the chunk. No value moves while views are valid, so the addresses stay valid
 * as long as the views. */

#include "core/query/query_internal.h"

/* An up-term of a query. */
typedef struct quern__up {
    quern__position_table values;  /* positions of the component, by archetype number */
    quern__position_table targets; /* positions of the relation's component; only with is_nearest */
    uint32_t relation_index;       /* component index of the relation */
    bool is_optional;              /* whether rows without a value are selected, too */
    bool is_nearest;               /* whether the search continues at the target's target, and so on */
} quern__up;

/* The remaining rows of a view: those that no callback or iteration has visited yet. */
typedef struct quern__up_rows {
    uint32_t next, end;   /* range of rows in the chunk */
    bool leaves_some_out; /* whether some row of the view lacks the value of a required up-term */
} quern__up_rows;

/* Addresses for one iteration of a query. A loop that is left early does not end its iteration, so a query has
 * several of these. When all are in use, a new iteration reuses one: preferably one with an iterator object
 * in which a later iteration runs by now, as for an inner loop that is left early again and again; otherwise
 * the least recently used one. */
typedef struct quern__up_buffer {
    const void **addresses;
    quern__up_rows rows;
    /* Number of the last step of the iteration that uses the addresses. The iterator has a copy, up_number. Numbers
     * grow with each view of any iteration, so they order the buffers by their last use. 0: not in use. */
    uint32_t number;
    /* Structure version at the start of the iteration. The iteration is over once the world has another. */
    uint64_t structure_version;
    /* Object that made the last step, only to be compared; it may not exist any more. NULL before a step. */
    const quern_query_iterator *iterator;
} quern__up_buffer;

enum { QUERN__UP_BUFFERS = 8 };

/* State of a query's up-terms. */
typedef struct quern__ups {
    uint32_t count;
    uint32_t step_number; /* number of the last step of any iteration, see quern__up_buffer */
    bool has_required;    /* whether some up-term is required (not optional) */
    quern__up_buffer buffers[QUERN__UP_BUFFERS];
    const void **worker_addresses; /* addresses for the workers of parallel queries, one block per worker */
    uint32_t worker_count;         /* number of workers for which there are addresses */
    quern__up items[];             /* `count` up-terms, in the order of the terms */
} quern__ups;

_Static_assert(QUERN__UP_STRIDE > (QUERN__CHUNK_BYTES - QUERN__CHUNK_HEADER_BYTES) / sizeof(quern_entity),
               "a chunk has fewer rows than an up-term has addresses");

/* Checks the i-th term, an up-term that has passed the checks common to all terms. Fails with
 * INVALID_ARGUMENT, or with the error of an invalid relation. */
quern_result quern__up_check(const quern__storage *storage, const quern_term *term, uint32_t i);

/* Allocates query->ups for the query's up-terms. Fails with OUT_OF_MEMORY, and then leaves nothing allocated. */
quern_result quern__ups_create(quern__query *query);
void quern__ups_destroy(quern__query *query);

/* Returns the number of addresses that one worker or iteration needs. */
static inline size_t quern__ups_address_count(uint32_t up_count)
{
    return (size_t)up_count * QUERN__UP_STRIDE;
}

/* Reserves addresses for the workers of a parallel query. Fails with OUT_OF_MEMORY. */
quern_result quern__ups_reserve_workers(const quern__query *query, uint32_t worker_count);

/* Assigns addresses to a new iteration. Precondition: the query has up-terms. Fails with OUT_OF_MEMORY. */
quern_result quern__ups_begin_iteration(quern_query_iterator *iterator);

/* Returns whether the iteration still has its addresses: no later iteration has reused them. */
static inline bool quern__ups_owns_buffer(const quern_query_iterator *iterator)
{
    return iterator->up_buffer->number == iterator->up_number;
}

/* Marks the addresses of the iteration as the most recently used ones. */
static inline void quern__ups_mark_used(quern_query_iterator *iterator)
{
    quern__ups *ups = iterator->query->ups;
    ups->step_number += ups->step_number == UINT32_MAX ? 2 : 1; /* never 0 */
    iterator->up_buffer->number = iterator->up_number = ups->step_number;
}

/* Looks up the addresses for all rows of a view, and stores them in `addresses` and the view's `up`. Returns
 * the rows to visit. The view still contains rows that the up-terms leave out; quern__up_next or
 * quern__rows_apply_ups removes them. */
quern__up_rows quern__up_find(const quern__query *query, const void **addresses, quern_view *view);

/* Points the view at the next range of rows that the up-terms select. Returns false if there is none. */
bool quern__up_next(const quern__query *query, quern__up_rows *rows, quern_view *view);

/* Returns the index of the first up-term that reads a component which another term writes in the rows themselves,
 * or term_count if there is none. levels: relation that orders the system by levels, or null. Up-terms by it are no
 * conflict, because the system processes all targets before their sources. */
uint32_t quern__query_up_conflict(const quern__query *query, quern_relation levels);

/* Returns whether the up-terms select a row of a match. */
bool quern__up_selects(const quern__query *query, const quern__archetype *archetype, uintptr_t location);

#endif
