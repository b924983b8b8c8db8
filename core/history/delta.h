/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_H
#define QUERN_CORE_HISTORY_DELTA_H

/* The difference between two snapshots. A delta holds both snapshots, because its batches point into
 * their pages. The delta itself is stored in pages too: after a history has made a delta of some size,
 * another one of that size allocates no memory.
 *
 * The order of the batches makes each batch applicable by the public calls. Names are cleared, and
 * components and entities are removed, before any are added. So the world contains a subset of `from`
 * first and a subset of `to` afterwards. A subset of a valid world is valid: names are unique among
 * siblings, levels have no cycle, no entity has too many components, and no destroyed entity is still a
 * target.
 *
 * Two kinds of changes keep their value of `from` until they are replaced in one step, because one batch
 * with the old and the new value says more than a removal and an addition:
 *
 *   a name that changes, if no other entity has the old name in `to` (delta_names.c)
 *   a target that changes, if the old target is alive in `to`; in a relation with levels only if the source
 *   has no sources of its own in `to`. Then the path from a new target up to its root contains no source
 *   that still has its old target, because every entity on that path has sources in `to`. So the path
 *   equals the one in `to` and closes no cycle. */

#include "core/base/sort.h"
#include "core/history/delta_limit.h"

#include <quern/history.h>

struct quern_delta {
    quern__history *history;
    quern__page page;         /* contains the delta itself */
    quern__snapshot from, to; /* the delta holds one reference to each page of them */
    quern_delta_batch *batches;
    quern__page batches_page;
    quern__page handles_page; /* entity handles of the NAMED batches */
    quern__page edge_pages;   /* array of the pages of RELATED and UNRELATED batches; 0: none */
    uint32_t edge_page_count;
    uint32_t count, capacity; /* number of batches, and room for batches */
    quern_delta_stats stats;
    const quern__delta_limit *limit; /* valid while the delta is built */
};

/* Builds the delta from `from` to `to`. Errors: OUT_OF_MEMORY. */
quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, const quern_delta_def *def,
                               quern_delta **out_delta);
void quern__delta_release(quern_delta *delta);

/* Appends a batch. Returns false if out of memory. */
bool quern__delta_append(quern_delta *delta, const quern_delta_batch *batch);

/* quern__delta_list_rows lists the rows that differ. quern__delta_append_removed appends the batches of
 * removed components, quern__delta_append_destroyed those of destroyed entities. quern__delta_append_added appends the
 * batches of created entities and added or changed components, CREATED first. Each function returns
 * false if out of memory. */
bool quern__delta_list_rows(quern_delta *delta);
bool quern__delta_append_removed(quern_delta *delta);
bool quern__delta_append_destroyed(quern_delta *delta);
bool quern__delta_append_added(quern_delta *delta);

/* Appends the batches of edges that exist only in `from` (UNRELATED) or only in `to` (RELATED), by relation. Returns
 * false if out of memory. */
bool quern__delta_append_edges(quern_delta *delta, quern_delta_kind kind);

/* The names of one snapshot, sorted by slot. Each item points to its name in the snapshot's page of
 * names. */
typedef struct quern__delta_name_list {
    quern__page page; /* scratch memory of `items` */
    quern__sort_item *items;
    uint32_t count;
} quern__delta_name_list;

typedef struct quern__delta_names {
    quern__delta_name_list from, to; /* empty if both snapshots share their page of names */
    quern_entity *next_handle;       /* next free handle in the delta's handles_page */
} quern__delta_names;

/* quern__delta_names_list lists the names of both snapshots. The other two functions append the batches
 * that clear names, and the batches that set names. Each function returns false if out of memory.
 * quern__delta_names_release must be called in any case. */
bool quern__delta_names_list(quern_delta *delta, quern__delta_names *out_names);
bool quern__delta_names_append_cleared(quern_delta *delta, quern__delta_names *names);
bool quern__delta_names_append_given(quern_delta *delta, quern__delta_names *names);
void quern__delta_names_release(quern_delta *delta, const quern__delta_names *names);

#endif
