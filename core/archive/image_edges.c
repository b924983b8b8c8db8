/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The edges of relations with several targets per source, in an archive that is read. */

#include "core/archive/image.h"

quern_result quern__image_add_edge(const quern__image *image, quern__archived_links *links, uint32_t source,
                                   uint32_t target)
{
    if (!quern__array_reserve(&image->allocator, &links->edges, links->edges.count + 1))
        return quern__image_fail_memory();
    links->edges.items[links->edges.count++] = (quern__sort_item){.key = (uint64_t)source << 32 | target};
    return QUERN_OK;
}

quern_result quern__image_add_outside_edge(const quern__image *image, quern__archived_links *links,
                                           uint32_t source, uint32_t number)
{
    if (!quern__array_reserve(&image->allocator, &links->outside_edges, links->outside_edges.count + 1))
        return quern__image_fail_memory();
    links->outside_edges.items[links->outside_edges.count++] = (uint64_t)source << 32 | number;
    return QUERN_OK;
}

/* Drops edges to entities that are not alive, and marks the sources of the others. Returns false if an edge is invalid. */
static bool keep_outside(const quern__image *image, quern__archived_links *links)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < links->outside_edges.count; i++) {
        const uint64_t edge = links->outside_edges.items[i];
        const uint32_t source = (uint32_t)(edge >> 32), number = (uint32_t)edge;
        if (number >= image->outside.count || !quern__image_is_alive(image, source)) return false;
        if (image->outside.items[number].bits == 0) continue;
        links->outside_edges.items[kept++] = edge;
        links->outside_count += (links->levels[source] & QUERN__EDGES_LEAD_OUTSIDE) == 0;
        links->levels[source] |= QUERN__EDGES_LEAD_OUTSIDE;
    }
    links->outside_edges.count = kept;
    return true;
}

/* Whether each edge occurs once and connects living entities, and its source has the tag. Counts the sources. */
static bool are_valid(const quern__image *image, quern__archived_links *links)
{
    uint32_t last_source = QUERN__SLOT_NONE;
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        const uint32_t source = (uint32_t)(key >> 32), target = (uint32_t)key;
        if (!quern__image_is_alive(image, source) || !quern__image_is_alive(image, target) ||
            links->levels[source] == 0 || (i > 0 && links->edges.items[i - 1].key == key))
            return false;
        links->link_count += source != last_source;
        last_source = source;
    }
    return links->link_count == links->source_count;
}

quern_result quern__image_check_edges(const quern__image *image, quern__archived_links *links)
{
    if (!quern__array_reserve(&image->allocator, &links->scratch, links->edges.count))
        return quern__image_fail_memory();
    quern__sort(links->edges.items, links->scratch.items, links->edges.count);
    return are_valid(image, links) && keep_outside(image, links)
               ? QUERN_OK
               : quern__image_fail("an edge is there twice, has a dead end, or differs from the rows");
}
