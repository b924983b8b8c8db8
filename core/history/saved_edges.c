/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores the edges of relations with several targets per source, in groups of slots. A page has the sets
 * of one group: the head of saved_edges.h, then the members of all sets. Slots without edges need no page. */

#include "core/history/saved_edges.h"

#include "core/relations/relation_internal.h"

/* ------------------------------------------------------------------------------------------ saving */

static const quern__edge_list *list_at(const quern__edges *edges, uint32_t group, uint32_t set)
{
    const uint32_t slot = group * QUERN__EDGE_GROUP + set % QUERN__EDGE_GROUP;
    return set < QUERN__EDGE_GROUP ? quern__edges_targets(edges, slot) : quern__edges_sources(edges, slot);
}

/* Fills the head of a page. Returns the number of members of all sets. */
static uint32_t fill_head(const quern__edges *edges, uint32_t group, quern__saved_edges *head)
{
    uint32_t count = 0;
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++) {
        head->first[set] = count;
        count += list_at(edges, group, set)->count;
    }
    head->first[QUERN__SAVED_EDGE_SETS] = count;
    return count;
}

quern_result quern__build_edge_group(quern__history *history, const quern__edges *edges, uint32_t group,
                                     quern__page *out_page)
{
    quern__saved_edges head;
    const uint32_t count = fill_head(edges, group, &head);
    if (count == 0) return QUERN_OK;
    *out_page = quern__page_allocate(&history->store, sizeof head + count * sizeof(uint32_t));
    if (*out_page == 0) return quern__history_fail_memory("edges of entities");
    char *memory = quern__page_memory(&history->store, *out_page);
    memcpy(memory, &head, sizeof head);
    uint32_t *slots = (uint32_t *)(void *)(memory + sizeof head);
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++)
        quern__edge_list_copy(list_at(edges, group, set), slots + head.first[set]);
    return QUERN_OK;
}

static bool is_equal(const quern__edge_list *list, quern__edge_range saved)
{
    uint32_t count = 0;
    if (list->count != saved.count) return false;
    for (uint32_t i = 0; i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        for (uint32_t k = 0; k < range.count; k++)
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): both have as many slots */
            if (range.slots[k] != saved.slots[count++]) return false;
    }
    return true;
}

bool quern__saved_edges_equal(const quern__history *history, const quern__edges *edges, uint32_t group,
                              quern__page page)
{
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++)
        if (!is_equal(list_at(edges, group, set), quern__saved_edge_set(history, page, set))) return false;
    return true;
}

/* --------------------------------------------------------------------------------------- restoring */

static bool build_set(quern__history *history, quern__edge_pool *pool, quern__page page, uint32_t set,
                      quern__edge_list *out_list)
{
    const quern__edge_range saved = quern__saved_edge_set(history, page, set);
    return quern__edge_list_build(pool, &history->world->storage.allocator, saved.slots, saved.count,
                                  out_list);
}

quern_result quern__prepare_edge_group(quern__history *history, quern__edges *edges, uint32_t group,
                                       quern__page page)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    const uint32_t slot = group * QUERN__EDGE_GROUP;
    bool is_done = page == 0 || quern__edges_reserve_page(edges, allocator, slot);
    for (uint32_t i = 0; page != 0 && is_done && i < QUERN__EDGE_GROUP; i++) {
        quern__edge_node node;
        is_done = quern__array_reserve(&history->store.allocator, &history->edge_restores,
                                       history->edge_restores.count + 1);
        is_done = is_done && build_set(history, edges->pool, page, i, &node.targets);
        if (!is_done) break;
        is_done = build_set(history, edges->pool, page, QUERN__EDGE_GROUP + i, &node.sources);
        history->edge_restores.items[history->edge_restores.count++] =
            (quern__edge_restore){edges, slot + i, node};
    }
    return is_done ? QUERN_OK : quern__history_fail_memory("the edges of entities");
}

void quern__undo_edges(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->edge_restores.count; i++) {
        quern__edge_restore *built = &history->edge_restores.items[i];
        quern__edge_list_release(built->edges->pool, allocator, &built->node.targets);
        quern__edge_list_release(built->edges->pool, allocator, &built->node.sources);
    }
    history->edge_restores.count = 0;
}

void quern__clear_edge_group(const quern__history *history, quern__edges *edges, uint32_t group)
{
    for (uint32_t i = 0; i < QUERN__EDGE_GROUP; i++)
        quern__edges_clear(edges, &history->world->storage.allocator, group * QUERN__EDGE_GROUP + i);
}

void quern__restore_edges(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->edge_restores.count; i++) {
        const quern__edge_restore *built = &history->edge_restores.items[i];
        quern__edges_put_targets(built->edges, allocator, built->slot, &built->node.targets);
        quern__edges_put_sources(built->edges, allocator, built->slot, &built->node.sources);
    }
    history->edge_restores.count = 0;
}
