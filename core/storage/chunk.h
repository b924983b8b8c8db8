/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CHUNK_H
#define QUERN_CORE_STORAGE_CHUNK_H

/* Chunks: 16 KiB each, aligned to their size, so that masking any address inside one finds its header. They
 * are cut from slabs of 2 MiB, aligned likewise and advised to be huge pages: the first one only when more
 * than a quarter of it is in use, so that a small world stays small.
 *
 *   chunk:  | header, 64 bytes | column | column | ... | entity handles |  in any order, each aligned to 64
 *
 * How many rows a chunk holds, and how many it has, is known to the archetype alone.
 *
 * A chunk's index in its archetype stands in its header, and once more in a table of its slab. Headers
 * are 16 KiB apart, so that those of a slab share four sets of a cache with 1024 and are seldom there; the
 * tables have 8 lines each. Who comes to rows in no order looks there: quern__chunk_index_at. */

#include "core/base/array.h"
#include "core/storage/departures.h"

enum {
    QUERN__CHUNK_BYTES = 16 * 1024,
    QUERN__CHUNK_HEADER_BYTES = 64,
    QUERN__HEAD_BYTES = 256, /* of a column: what walks that call one system on each chunk fetch ahead */
    QUERN__SLAB_BYTES = 2 * 1024 * 1024,
    QUERN__SLAB_CHUNKS = QUERN__SLAB_BYTES / QUERN__CHUNK_BYTES
};

typedef struct quern__chunk {
    struct quern__archetype *archetype; /* that holds it */
    uint32_t index;                     /* in the archetype's table */
    uint32_t slab_index;
    uint32_t *slab_indices; /* of a slab's first chunk, held or not: the indices of all of them */
} quern__chunk;

typedef struct quern__slab {
    char *memory;          /* NULL: the entry is unused */
    uint32_t *indices;     /* by chunk: see the head of this file */
    uint64_t free_mask[2]; /* one bit per chunk */
    uint32_t free_count;
    bool is_huge; /* advised to be a huge page */
} quern__slab;

/* A slab whose chunks are all free is given back to the allocator, but for one that is kept, so that a
 * world that breathes around a slab's edge does not ask for it again and again. */
typedef struct quern__slabs {
    QUERN__ARRAY(quern__slab) list;
    uint32_t first_index;         /* no slab below it has a free chunk */
    uint32_t empty_count;         /* slabs whose chunks are all free: 0 or 1 between calls */
    uint32_t free_count;          /* free chunks in all slabs */
    uint32_t slab_count;          /* entries in use */
    quern__departures departures; /* of all chunks */
} quern__slabs;

void quern__slabs_release(quern__slabs *slabs, const quern_allocator *allocator);

/* The first of *count chunks that lie one after the other, each with slab_index set, the rest
 * undefined; NULL when there is no memory. *count: wanted, at least 1; as many as were found in one
 * place, at least 1. */
quern__chunk *quern__chunk_allocate_run(quern__slabs *slabs, const quern_allocator *allocator,
                                        uint32_t *count);

void quern__chunk_release(quern__slabs *slabs, const quern_allocator *allocator, quern__chunk *chunk);

/* Gives every slab back whose chunks are all free. */
void quern__slabs_trim(quern__slabs *slabs, const quern_allocator *allocator);

/* The chunk that an address inside it belongs to. */
static inline quern__chunk *quern__chunk_of(uintptr_t address)
{
    return (quern__chunk *)(address & ~(uintptr_t)(QUERN__CHUNK_BYTES - 1));
}

/* The first chunk of the slab that an address belongs to. */
static inline quern__chunk *quern__slab_of(uintptr_t address)
{
    return (quern__chunk *)(address & ~(uintptr_t)(QUERN__SLAB_BYTES - 1));
}

/* The index of the chunk that an address belongs to, which somebody holds; its header is not looked at. */
static inline uint32_t quern__chunk_index_at(uintptr_t address)
{
    return quern__slab_of(address)->slab_indices[address / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS];
}

/* From now on somebody holds the chunk. */
static inline void quern__chunk_hold(quern__chunk *chunk, struct quern__archetype *archetype,
                                     uint32_t index)
{
    chunk->archetype = archetype;
    chunk->index = index;
    const uintptr_t address = (uintptr_t)chunk;
    quern__slab_of(address)->slab_indices[address / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS] = index;
}

/* Asks for a part of a column, from line to line, into L2. */
static inline void quern__chunk_fetch(const quern__chunk *chunk, uint32_t begin_bytes, uint32_t end_bytes)
{
    for (uint32_t offset = begin_bytes; offset < end_bytes; offset += QUERN__CACHE_LINE_BYTES)
        __builtin_prefetch((const char *)chunk + offset, 0, 2);
}

/* Asks for the head of a column that will be come to soon. Processors foresee what follows it; but where a
 * column of the next chunk begins, they have to find out anew. */
static inline void quern__chunk_fetch_head(const quern__chunk *chunk, uint32_t offset_bytes,
                                           uint32_t column_bytes)
{
    const uint32_t bytes = column_bytes < QUERN__HEAD_BYTES ? column_bytes : QUERN__HEAD_BYTES;
    quern__chunk_fetch(chunk, offset_bytes, offset_bytes + bytes);
}

/* A small number that no other chunk has at the time. */
static inline uint32_t quern__chunk_number(const quern__chunk *chunk)
{
    return chunk->slab_index * QUERN__SLAB_CHUNKS +
           (uint32_t)((uintptr_t)chunk / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS);
}

/* A row's location is the chunk's address with the row in the low bits (see entity.h). */
static inline uint32_t quern__location_row(uintptr_t location)
{
    return (uint32_t)(location & (QUERN__CHUNK_BYTES - 1));
}

static inline uintptr_t quern__location_make(const quern__chunk *chunk, uint32_t row)
{
    return (uintptr_t)chunk | row;
}

/* The value at a location, in a column that begins there in the chunk. */
static inline char *quern__location_value(uintptr_t location, uint32_t offset_bytes, uint32_t size_bytes)
{
    return (char *)quern__chunk_of(location) + offset_bytes +
           (size_t)quern__location_row(location) * size_bytes;
}

#endif
