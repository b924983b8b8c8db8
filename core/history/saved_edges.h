/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_SAVED_EDGES_H
#define QUERN_CORE_HISTORY_SAVED_EDGES_H

/* Edges in snapshots. saved_links.c calls the functions below for each group of a relation with several targets per
 * source. Both sets of each slot are saved, although one follows from the other: a restore then replaces whole sets, and
 * reserves their memory before it changes the world. */

#include "core/history/history_internal.h"

enum { QUERN__SAVED_EDGE_SETS = 2 * QUERN__EDGE_GROUP };

/* The head of a page: the number of the first member of each set, targets first, and the number of all members. */
typedef struct quern__saved_edges {
    uint32_t first[QUERN__SAVED_EDGE_SETS + 1];
    uint32_t unused; /* padding, 0 */
} quern__saved_edges;

/* Returns a set of a page: the targets of slot `set` of the group, or from QUERN__EDGE_GROUP on, the sources. page: 0 for
 * a group without edges. */
static inline quern__edge_range quern__saved_edge_set(const quern__history *history, quern__page page,
                                                      uint32_t set)
{
    if (page == 0) return (quern__edge_range){NULL, 0};
    const char *memory = quern__page_memory(&history->store, page);
    const quern__saved_edges *head = (const quern__saved_edges *)(const void *)memory;
    return (quern__edge_range){(const uint32_t *)(const void *)(head + 1) + head->first[set],
                               head->first[set + 1] - head->first[set]};
}

/* Returns the page of a group of the relation in a snapshot; 0: none. Defined in saved_links.c. */
quern__page quern__saved_group(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t group);

/* Returns a number of groups that is enough for both snapshots. Defined in saved_links.c. */
uint32_t quern__saved_group_count(const quern__history *history, const quern__snapshot *a,
                                  const quern__snapshot *b, uint32_t relation_index);

/* Saves a group. *out_page remains 0 if the group has no edges. Errors: OUT_OF_MEMORY. */
quern_result quern__build_edge_group(quern__history *history, const quern__edges *edges, uint32_t group,
                                     quern__page *out_page);

/* Whether the page equals the edges of the group in the world. For builds with checks. */
bool quern__saved_edges_equal(const quern__history *history, const quern__edges *edges, uint32_t group,
                              quern__page page);

/* Builds the sets of a group. quern__undo_edges or quern__restore_edges ends the list of built sets. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__prepare_edge_group(quern__history *history, quern__edges *edges, uint32_t group,
                                       quern__page page);
void quern__undo_edges(quern__history *history);

/* Clears the sets of a group, before quern__restore_edges sets all built ones. */
void quern__clear_edge_group(const quern__history *history, quern__edges *edges, uint32_t group);
void quern__restore_edges(quern__history *history);

#endif
