/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_PREFETCH_H
#define QUERN_SCHED_FRAME_PREFETCH_H

/* Prefetching: while a pass works on one chunk, it fetches the next chunk into the L2 cache, a share of it
 * before each call. Hardware prefetchers cannot follow from one 16 KiB chunk to the next. Fetching a whole
 * chunk at once would stall on the fetches themselves. */

#include "core/storage/archetype.h"
#include "sched/schedule/pass.h"

typedef struct quern__prefetch {
    const quern__pass_column *column, *end_column;
    const quern__chunk *chunk;
    uint32_t row_count;
    uint32_t offset_bytes;      /* position in the current column */
    uint32_t fetch_limit_bytes; /* most bytes to prefetch of each column */
    uint32_t fetch_share_bytes; /* number of bytes to prefetch before each call */
    bool fetches_ends;          /* prefetch both ends of each column instead */
} quern__prefetch;

/* Starts prefetching chunk `chunk_index` of the table. Fetches nothing if the table has no such chunk. */
static inline quern__prefetch quern__prefetch_start(const quern__pass *pass, const quern__pass_table *table,
                                                    uint32_t chunk_index)
{
    const quern__pass_column *columns = pass->columns.items;
    if (table->fetch_share_bytes == 0 || chunk_index >= table->archetype->chunk_count)
        return (quern__prefetch){.column = columns, .end_column = columns};
    const quern__chunk_slot *slot = &table->archetype->slots[chunk_index];
    return (quern__prefetch){.column = columns + table->first_column,
                             .end_column = columns + table->end_column,
                             .chunk = slot->chunk,
                             .row_count = slot->row_count,
                             .fetch_limit_bytes = table->fetch_limit_bytes,
                             .fetch_share_bytes = table->fetch_share_bytes,
                             .fetches_ends = table->fetches_ends};
}

static inline void quern__prefetch_ends(quern__prefetch *next)
{
    for (; next->column < next->end_column; next->column++)
        quern__chunk_prefetch_ends(next->chunk, next->column->offset_bytes,
                                   next->column->size_bytes * next->row_count);
}

static inline void quern__prefetch_share(quern__prefetch *next)
{
    if (next->fetches_ends) {
        quern__prefetch_ends(next);
        return;
    }
    uint32_t left_bytes = next->fetch_share_bytes;
    while (next->column < next->end_column && left_bytes > 0) {
        uint32_t column_bytes = next->column->size_bytes * next->row_count;
        if (column_bytes > next->fetch_limit_bytes) column_bytes = next->fetch_limit_bytes;
        uint32_t end =
            column_bytes - next->offset_bytes > left_bytes ? next->offset_bytes + left_bytes : column_bytes;
        quern__chunk_prefetch(next->chunk, next->column->offset_bytes + next->offset_bytes,
                              next->column->offset_bytes + end);
        left_bytes -= end - next->offset_bytes;
        next->offset_bytes = end;
        if (end < column_bytes) return;
        next->column++;
        next->offset_bytes = 0;
    }
}

#endif
