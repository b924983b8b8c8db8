/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_EDGE_POOL_H
#define QUERN_CORE_RELATIONS_EDGE_POOL_H

/* Memory for the sets of edges (edges.h) of all relations of a world: blocks of 4 to QUERN__EDGE_BLOCK_SLOTS slots in
 * classes of size, each class half as large again or a third larger than the previous one. A page of link_pages.h has
 * blocks of one class. Taking and giving back a block are O(1). A page without blocks in use is given back, unless it
 * is the only page of its class with free blocks; quern__edge_pool_trim gives that one back, too. */

#include "core/relations/link_pages.h"

enum { QUERN__EDGE_BLOCK_SLOTS = 1024, QUERN__EDGE_CLASSES = 17 };

typedef struct quern__edge_page quern__edge_page;

typedef struct quern__edge_pool {
    quern__link_pages *memory;
    quern__edge_page *partial[QUERN__EDGE_CLASSES]; /* by class: list of pages with free blocks */
    uint64_t directory_bytes; /* memory of directories (edges.h), which are no blocks */
} quern__edge_pool;

/* Returns the smallest capacity of a block, at least `count`. Precondition: count <= QUERN__EDGE_BLOCK_SLOTS. */
uint32_t quern__edge_pool_capacity(uint32_t count);

/* Returns a block of this capacity, which quern__edge_pool_capacity returned; NULL if out of memory. */
uint32_t *quern__edge_pool_take(quern__edge_pool *pool, const quern_allocator *allocator,
                                uint32_t capacity);

void quern__edge_pool_give(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t *block);

/* Gives back all pages without blocks in use. */
void quern__edge_pool_trim(quern__edge_pool *pool, const quern_allocator *allocator);

#endif
