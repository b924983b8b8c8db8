/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_ROWS_H
#define QUERN_CORE_QUERY_ROWS_H

/* Selection of single rows of a chunk, in three steps: row filters (core/storage/row_versions.h), then terms on
 * components that can be disabled (core/storage/row_bits.h), then required up-terms (up.h). A row must pass all
 * three.
 *
 * Rows are selected immediately before a callback gets the view, so the changes of earlier systems count. What
 * the callback does to the rows of its view does not change the selection. */

#include "core/query/up.h"
#include "core/storage/row_mask.h"

/* The rows of a view that terms select. */
typedef enum quern__selection {
    QUERN__SELECT_NONE,
    QUERN__SELECT_ALL,
    QUERN__SELECT_SOME /* the rows of a mask */
} quern__selection;

/* A seen_version for which change filters select all rows. */
#define QUERN__SEEN_NOTHING 0

/* Selects the rows of a view that pass the query's row filters (changed after seen_version) and its terms on
 * enabled or disabled components. Up-terms are not applied. Writes *out_mask only if it returns
 * QUERN__SELECT_SOME. */
quern__selection quern__rows_select(const quern__query *query, const quern_view *view,
                                    uint64_t seen_version, quern__row_mask *out_mask);

/* Points the view at the next range of the mask from row *next on, and advances *next. If the query has
 * whole_chunks, the view instead keeps all rows and refers to the mask, which must outlive it. Returns false if
 * there is no further range. */
bool quern__rows_next(const quern__query *query, const quern__row_mask *mask, uint32_t *next,
                      quern_view *view);

/* Removes the rows that up-terms leave out from the selection of a view. If there are such rows, writes the
 * remaining ones to *mask and makes the view refer to it; otherwise the view does not change. Returns false
 * if no row remains. Precondition: the query has whole_chunks. */
bool quern__rows_apply_ups(const quern__query *query, quern__up_rows *rows, quern_view *view,
                           quern__row_mask *mask);

/* Calls a callback for each range of rows that the query selects in a view. Precondition: selects_rows of the
 * query. addresses: memory for the addresses of up-terms; may be NULL without up-terms. */
void quern__rows_call(const quern_view *chunk_view, uint64_t seen_version, const void **addresses,
                      quern_view_callback *callback);

/* Returns the number of selected rows in all matches. Change filters are not applied. */
uint64_t quern__rows_count(const quern__query *query);

/* Returns the number of selected rows among `count` rows of a chunk. Change filters are not applied. */
uint64_t quern__rows_count_range(const quern__query *query, const quern__query_match *match,
                                 uint32_t chunk_index, uint32_t first_row, uint32_t count);

#endif
