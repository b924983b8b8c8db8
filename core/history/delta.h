/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_H
#define QUERN_CORE_HISTORY_DELTA_H

/* The difference between two snapshots. A delta holds both, so that its batches may point into their pages, and
 * lies in pages itself: a history that has made one like it allocates nothing.
 *
 * The order of batches makes each of them applicable by the plain calls. Names are cleared, and components and
 * entities are removed, before any are added. So while batches are applied, the world contains a part of `from`
 * first and a part of `to` afterwards. A part of a valid world is valid: names are unique among siblings, levels
 * have no cycle, no entity has too many components, and no entity that ends is a target any more.
 *
 * Two kinds of batches keep something of `from` longer, because one step tells more than two:
 *
 *   a name that changes and that no other entity has in `to` (delta_names.c)
 *   a target that changes, where the old one lives in `to`; in a relation with levels only if the source has no
 *   children in `to`. Then no source that still has its old target is met on the way from a new target up to its
 *   root: all that are met have children in `to`. So that way is as in `to`, and closes no cycle */

#include "core/base/sort.h"
#include "core/history/history_internal.h"

#include <quern/history.h>

struct quern_delta {
    quern__history *history;
    quern__page page;         /* that contains the delta */
    quern__snapshot from, to; /* held */
    quern_delta_batch *batches;
    quern__page batches_page;
    quern__page handles_page; /* entities of NAMED batches */
    uint32_t count, capacity; /* of batches */
    quern_delta_stats stats;
};

/* Errors: OUT_OF_MEMORY. */
quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, quern_delta **out_delta);
void quern__delta_release(quern_delta *delta);

/* Appends a batch. False when there is no memory. */
bool quern__delta_tell(quern_delta *delta, const quern_delta_batch *batch);

/* Lists the rows that differ; then tells of what goes, with DESTROYED last, and of what comes, with CREATED
 * first. All return false when there is no memory. */
bool quern__delta_list_rows(quern_delta *delta);
bool quern__delta_tell_removed(quern_delta *delta);
bool quern__delta_tell_added(quern_delta *delta);

/* The names of one snapshot by slot: places in its page of names. */
typedef struct quern__delta_name_list {
    quern__page page; /* scratch */
    quern__sort_item *items;
    uint32_t count;
} quern__delta_name_list;

typedef struct quern__delta_names {
    quern__delta_name_list was, is; /* empty if both snapshots share their names */
    quern_entity *next_handle;      /* in the delta's handles_page */
} quern__delta_names;

/* Lists the names of both snapshots; tells which are cleared, and which are given. All return false when there
 * is no memory. Release is due in any case. */
bool quern__delta_names_list(quern_delta *delta, quern__delta_names *out_names);
bool quern__delta_names_tell_cleared(quern_delta *delta, quern__delta_names *names);
bool quern__delta_names_tell_given(quern_delta *delta, quern__delta_names *names);
void quern__delta_names_release(quern_delta *delta, const quern__delta_names *names);

#endif
