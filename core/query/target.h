/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_TARGET_H
#define QUERN_CORE_QUERY_TARGET_H

/* Target terms: a query with one visits the sources of a given entity. It finds them through the entity's list of
 * sources, so archetypes are not split by target. Sources in matching archetypes are
 * sorted into the order of any iteration: by match, chunk and row. Rows that are consecutive in a chunk are
 * joined into a range; each range is a view.
 *
 * The list of ranges is valid until a row moves, an entity is related or unrelated, or the query's target is
 * set to another entity. It is then rebuilt in the same memory, so repeated iterations do not allocate. */

#include "core/base/sort.h"
#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"

/* Consecutive rows of one chunk. */
typedef struct quern__target_range {
    uint32_t match; /* index of the match in the query */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__target_range;

/* State of a query's target term. */
typedef struct quern__target {
    quern__relation *relation;
    quern_entity entity; /* target of the selected rows; null selects none */
    QUERN__ARRAY(quern__target_range) ranges;
    uint32_t list_number; /* number of times that `ranges` was built */
    bool is_listed;       /* whether the last build succeeded; the members below describe it */
    quern_entity listed;  /* target for which `ranges` was built */
    uint64_t structure_version;
    uint64_t archetypes_version; /* guards the match indices in `ranges` */
    uint64_t links_version;
    QUERN__ARRAY(quern__sort_item) rows; /* sort keys of the rows of all ranges, ascending */
    QUERN__ARRAY(quern__sort_item) sort_scratch;
} quern__target;

/* Checks the i-th term, a target term that has passed the checks common to all terms. Fails with
 * INVALID_ARGUMENT, or with the error of an invalid target handle. */
quern_result quern__target_check(const quern__storage *storage, const quern_term *terms, uint32_t i);

/* Allocates query->target if one of the query's terms is a target term. Fails with OUT_OF_MEMORY, and then
 * leaves nothing allocated. */
quern_result quern__target_create(quern__query *query);
void quern__target_destroy(const quern__query *query);

/* Sets the entity of the query's target term; null selects no rows. Fails with INVALID_ARGUMENT if the query
 * has no target term, or with the error of an invalid handle. */
quern_result quern__target_set(const quern__query *query, quern_entity target);

/* Returns whether the list of ranges is up to date. */
bool quern__target_is_listed(const quern__query *query);

/* Brings the list of ranges up to date. Precondition: the query has been refreshed. Fails with OUT_OF_MEMORY. */
quern_result quern__target_list(const quern__query *query);

/* Points a view at the i-th range. The caller sets ordinal, query and context. */
void quern__target_get_view(const quern__query *query, uint32_t i, quern_view *view);

/* Brings the list up to date, and notes its number in the iterator. Fails with OUT_OF_MEMORY. */
quern_result quern__target_begin(quern_query_iterator *iterator);

/* Returns whether the list of ranges is the one with which the iterator began, and is up to date. */
bool quern__target_is_valid(const quern_query_iterator *iterator);

/* Returns the number of rows that the query selects; 0, with a message, if there is no memory for the list. */
uint64_t quern__target_count(const quern__query *query);

/* Advances an iteration to the next range in a chunk that the change filters select. Returns false at the
 * end. Of the iterator, it uses two members in another sense: match_index is the index of the next range, and
 * chunk_index is the list_number of the ranges with which the iteration began. */
bool quern__target_next(quern_query_iterator *iterator);

#endif
