/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The edges in a delta: two batches per relation with several targets per source, of the edges that exist only in
 * `from`, and only in `to`. Groups of slots that both snapshots share are skipped. An edge in both snapshots
 * counts as removed and added if its source or target is another entity with the same slot. */

#include "core/history/delta.h"
#include "core/history/saved_edges.h"
#include "core/relations/relation_internal.h"

/* Arrays of a batch, by position of the edge. */
typedef struct edge_list {
    quern_entity *sources, *targets; /* NULL while edges are only counted */
    uint32_t count;
} edge_list;

typedef struct edge_diff {
    const quern__history *history;
    const quern__delta_limit *limit;
    const quern__snapshot *from, *to;
    edge_list removed, added;
} edge_diff;

static void append_edge(const edge_diff *it, edge_list *list, const quern__snapshot *snapshot,
                        uint32_t source, uint32_t target)
{
    if (list->sources != NULL) {
        list->sources[list->count] = quern__saved_entity(it->history, snapshot, source);
        list->targets[list->count] = quern__saved_entity(it->history, snapshot, target);
    }
    list->count++;
}

/* Whether the slot, which is alive in both snapshots, has the same entity in both. */
static bool is_same_entity(const edge_diff *it, uint32_t slot)
{
    return quern_entity_equal(quern__saved_entity(it->history, it->from, slot),
                              quern__saved_entity(it->history, it->to, slot));
}

/* Whether both ends of an edge of a snapshot are members of it. */
static bool has_edge(const uint64_t *members, uint32_t source, uint32_t target)
{
    return quern__limit_has(members, source) && quern__limit_has(members, target);
}

/* Compares two ascending sets of targets of a slot. */
static void compare_targets(edge_diff *it, uint32_t source, quern__edge_range from, quern__edge_range to)
{
    const bool is_same_source = from.count > 0 && to.count > 0 && is_same_entity(it, source);
    uint32_t i = 0, k = 0;
    while (i < from.count || k < to.count) {
        const uint32_t a = i < from.count ? from.slots[i] : QUERN__SLOT_NONE;
        const uint32_t b = k < to.count ? to.slots[k] : QUERN__SLOT_NONE;
        const bool was = a <= b && has_edge(it->limit->from_members, source, a);
        const bool is = b <= a && has_edge(it->limit->to_members, source, b);
        const bool is_unchanged = was && is && is_same_source && is_same_entity(it, a);
        if (was && !is_unchanged) append_edge(it, &it->removed, it->from, source, a);
        if (is && !is_unchanged) append_edge(it, &it->added, it->to, source, b);
        i += a <= b;
        k += b <= a;
    }
}

static void compare_relation(edge_diff *it, uint32_t index)
{
    it->removed.count = it->added.count = 0;
    const uint32_t count = quern__saved_group_count(it->history, it->from, it->to, index);
    for (uint32_t group = 0; group < count; group++) {
        const quern__page from = quern__saved_group(it->history, it->from, index, group),
                          to = quern__saved_group(it->history, it->to, index, group);
        for (uint32_t i = 0; (from != to || it->limit->crosses) && i < QUERN__EDGE_GROUP; i++)
            compare_targets(it, group * QUERN__EDGE_GROUP + i, quern__saved_edge_set(it->history, from, i),
                            quern__saved_edge_set(it->history, to, i));
    }
}

/* Allocates the arrays of a batch, in a page that the delta releases. */
static bool allocate_list(quern_delta *delta, edge_list *list)
{
    quern__history *history = delta->history;
    const uint32_t capacity = 2 * history->world->storage.relations->list.count;
    if (delta->edge_pages == 0) {
        delta->edge_pages = quern__page_allocate(&history->store, capacity * sizeof(quern__page));
        if (delta->edge_pages == 0) return false;
    }
    const quern__page page =
        quern__page_allocate(&history->store, (size_t)list->count * 2 * sizeof(quern_entity));
    if (page == 0) return false;
    quern__pages_in(history, delta->edge_pages)[delta->edge_page_count++] = page;
    list->sources = (quern_entity *)(void *)quern__page_memory(&history->store, page);
    list->targets = list->sources + list->count;
    return true;
}

/* Appends the batch of one relation, if any edge was removed or added. */
static bool append_relation(quern_delta *delta, quern_delta_kind kind, uint32_t index)
{
    const quern__storage *storage = &delta->history->world->storage;
    edge_diff it = {
        .history = delta->history, .limit = delta->limit, .from = &delta->from, .to = &delta->to};
    edge_list *list = kind == QUERN_DELTA_RELATED ? &it.added : &it.removed;
    compare_relation(&it, index);
    if (list->count == 0) return true;
    if (!allocate_list(delta, list)) return false;
    compare_relation(&it, index);
    const uint32_t component = storage->relations->list.items[index]->component_index;
    return quern__delta_append(
        delta, &(quern_delta_batch){.kind = kind,
                                    .count = list->count,
                                    .entities = list->sources,
                                    .component = quern__component_handle(&storage->components, component),
                                    .value_bytes = sizeof *list->targets,
                                    .values = kind == QUERN_DELTA_RELATED ? list->targets : NULL,
                                    .old_values = kind == QUERN_DELTA_UNRELATED ? list->targets : NULL});
}

static bool lists_relation(const quern_delta *delta, uint32_t index)
{
    const quern__storage *storage = &delta->history->world->storage;
    const uint32_t component = storage->relations->list.items[index]->component_index;
    return quern__limit_lists(delta->limit, quern__component_handle(&storage->components, component));
}

bool quern__delta_append_edges(quern_delta *delta, quern_delta_kind kind)
{
    const quern__relations *relations = delta->history->world->storage.relations;
    bool has_room = true;
    for (uint32_t i = 0; i < relations->list.count && relations->many_count > 0 && has_room; i++)
        if (relations->list.items[i]->is_many && lists_relation(delta, i))
            has_room = append_relation(delta, kind, i);
    return has_room;
}
