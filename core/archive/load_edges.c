/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/load_edges.h"

typedef void put_function(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                          const quern__edge_list *list);

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the edges of entities; the world is unchanged");
}

/* Gives each slot in the upper halves of the keys the set of slots in the lower halves. slots: memory for the members
 * of the largest set. */
static bool put_sets(const quern__image *image, const quern__archived_links *links, uint32_t *slots,
                     put_function *put)
{
    quern__edges *edges = &links->relation->edges;
    const quern_allocator *allocator = &image->world->storage.allocator;
    for (uint32_t i = 0, count; i < links->edges.count; i += count) {
        const uint32_t slot = (uint32_t)(links->edges.items[i].key >> 32);
        for (count = 0; i + count < links->edges.count && links->edges.items[i + count].key >> 32 == slot;
             count++)
            slots[count] = (uint32_t)links->edges.items[i + count].key;
        quern__edge_list list;
        if (!quern__edges_reserve_page(edges, allocator, slot) ||
            !quern__edge_list_build(edges->pool, allocator, slots, count, &list))
            return false;
        put(edges, allocator, slot, &list);
    }
    return true;
}

/* Exchanges source and target in all keys, and sorts them. */
static void turn(quern__archived_links *links)
{
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        links->edges.items[i].key = key << 32 | key >> 32;
    }
    quern__sort(links->edges.items, links->scratch.items, links->edges.count);
}

/* Replaces the slots of the archive in all keys by those of the world. */
static void map_slots(quern__archived_links *links, const quern_entity *handles)
{
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        links->edges.items[i].key = (uint64_t)quern_entity_index(handles[key >> 32]) << 32 |
                                    quern_entity_index(handles[(uint32_t)key]);
    }
    quern__sort(links->edges.items, links->scratch.items, links->edges.count);
}

/* Gives the loaded entities their sets of targets and sources in the list. */
static quern_result load_sets(const quern__image *image, quern__archived_links *links,
                              const quern_entity *handles)
{
    QUERN__ARRAY(uint32_t) slots = {0};
    if (links->edges.count == 0) return QUERN_OK;
    if (!quern__array_reserve(&image->allocator, &slots, links->edges.count)) return fail_memory();
    map_slots(links, handles);
    bool is_done = put_sets(image, links, slots.items, quern__edges_put_targets);
    turn(links);
    is_done = is_done && put_sets(image, links, slots.items, quern__edges_put_sources);
    quern__array_release(&image->allocator, &slots);
    return is_done ? QUERN_OK : fail_memory();
}

/* Adds the edges that lead outside of the list. Several ids may belong to one entity of the world. */
static quern_result add_outside(const quern__image *image, quern__archived_links *links,
                                const quern_entity *handles)
{
    quern__edges *edges = &links->relation->edges;
    for (uint32_t i = 0; i < links->outside_edges.count; i++) {
        const uint64_t edge = links->outside_edges.items[i];
        const uint32_t source = quern_entity_index(handles[edge >> 32]);
        const uint32_t target = quern_entity_index(image->outside.items[(uint32_t)edge]);
        if (quern__edges_has(edges, source, target)) continue;
        if (!quern__edges_reserve(edges, &image->world->storage.allocator, source, target))
            return fail_memory();
        quern__edges_add(edges, source, target);
        links->outside_edges.items[links->outside_added_count++] = (uint64_t)source << 32 | target;
    }
    return QUERN_OK;
}

quern_result quern__load_edges(const quern__image *image, quern__archived_links *links,
                               const quern_entity *handles)
{
    const quern_result result = load_sets(image, links, handles);
    links->relation->links.version++;
    return result == QUERN_OK ? add_outside(image, links, handles) : result;
}

void quern__unload_edges(const quern__image *image, const quern__archived_links *links,
                         const quern_entity *handles)
{
    for (uint32_t i = 0; i < links->outside_added_count; i++)
        quern__edges_remove(&links->relation->edges, (uint32_t)(links->outside_edges.items[i] >> 32),
                            (uint32_t)links->outside_edges.items[i]);
    for (uint32_t slot = 0; slot < image->head.slot_count; slot++)
        if (quern__image_is_alive(image, slot))
            quern__edges_clear(&links->relation->edges, &image->world->storage.allocator,
                               quern_entity_index(handles[slot]));
}
