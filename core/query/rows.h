/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_ROWS_H
#define QUERN_CORE_QUERY_ROWS_H

/* Rows of a chunk that terms let stay: those that filters by row let pass (core/storage/row_versions.h), of
 * these the ones with a component enabled, or disabled, where it can be either (core/storage/planes.h), and
 * of these again the ones of which up-terms find what they ask for (up.h).
 *
 * They are found when a view is about to come to a kernel, so what earlier systems did to the chunk counts.
 * What the kernel does to the rows of its view does not change which ones these are. */

#include "core/query/up.h"
#include "core/storage/row_mask.h"

typedef enum quern__pick {
    QUERN__PICK_NONE,
    QUERN__PICK_ALL,
    QUERN__PICK_SOME /* those of the mask */
} quern__pick;

/* What filters have seen where none of them is asked: everything is new. */
#define QUERN__SEEN_NOTHING 0

/* Which rows of a view of the query filters let pass that have seen what is as old as seen_version, and
 * have what terms ask for enabled, or disabled. The mask is written where some are left out; never the runs
 * of up-terms. */
quern__pick quern__rows_pick(const quern__query *query, const quern_view *view, uint64_t seen_version,
                             quern__row_mask *out_mask);

/* Points the view at the next run of a mask from row *next on, or, where the query takes its chunks by
 * runs, lets it bear the mask, which must outlive it. False when there is none. */
bool quern__rows_next(const quern__query *query, const quern__row_mask *mask, uint32_t *next,
                      quern_view *view);

/* Where the query takes its chunks by runs: of rows that up-terms leave out the view bears a mask without
 * them. False: it has no others. */
bool quern__rows_leave_out(const quern__query *query, quern__up_rows *rows, quern_view *view,
                           quern__row_mask *mask);

/* Calls a kernel on what stays of a view of a query that picks_rows. addresses: for up-terms, if there are
 * any. */
void quern__rows_call(const quern_view *chunk_view, uint64_t seen_version, const void **addresses,
                      quern_kernel *run);

/* How many rows of all matches stay. */
uint64_t quern__rows_count(const quern__query *query);

/* How many of so many rows from this location on, in a match, stay. */
uint64_t quern__rows_count_run(const quern__query *query, const quern__query_match *match,
                               uint32_t chunk_index, uint32_t first_row, uint32_t count);

#endif
