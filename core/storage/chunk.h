/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CHUNK_H
#define QUERN_CORE_STORAGE_CHUNK_H

/* Chunks: blocks of 16 KiB, aligned to their size, so that masking any address inside a chunk yields its header.
 * Chunks are allocated from slabs of 2 MiB. Slabs are aligned to their size and advised to be huge pages. The first
 * slab is advised only when more than a quarter of it is in use, so that a small world stays small.
 *
 *   chunk:  | header, 64 bytes | column | column | ... | entity handles |  in any order, each aligned to 64
 *
 * Only the archetype knows the row capacity and the row count of a chunk.
 *
 * The index of a chunk in its archetype is stored in the chunk's header and in a table of its slab. Headers are 16
 * KiB apart, so all headers of a slab share four sets of a cache with 1024 sets and are rarely cached. The table of a
 * slab has only 8 cache lines. Code that accesses rows in random order reads the table: quern__chunk_index_at. */

#include "core/base/array.h"
#include "core/storage/move_counts.h"

enum {
    QUERN__CHUNK_BYTES = 16 * 1024,
    QUERN__CHUNK_HEADER_BYTES = 64,
    /* Length of the beginning, and of the end, of a column that loops with one call per chunk prefetch. */
    QUERN__END_BYTES = 128,
    QUERN__SLAB_BYTES = 2 * 1024 * 1024,
    QUERN__SLAB_CHUNKS = QUERN__SLAB_BYTES / QUERN__CHUNK_BYTES
};

typedef struct quern__chunk {
    struct quern__archetype *archetype; /* archetype that holds the chunk */
    uint32_t index;                     /* index of the chunk in the archetype's table */
    uint32_t slab_index;                /* index of the chunk's slab in quern__slabs.list */
    /* Table of a slab: for each of its chunks, the index in its archetype. Valid only in the slab's first chunk,
     * whether or not an archetype holds that chunk. */
    uint32_t *slab_indices;
} quern__chunk;

typedef struct quern__slab {
    char *memory;          /* NULL: the entry is unused */
    uint32_t *indices;     /* for each chunk, its index in its archetype: see the top of this file */
    uint64_t free_mask[2]; /* one bit per chunk */
    uint32_t free_count;
    bool is_huge; /* advised to be a huge page */
} quern__slab;

/* Slabs of a world. A slab without used chunks is released. One such slab is retained, because the size of a world
 * may fluctuate around a slab boundary. */
typedef struct quern__slabs {
    QUERN__ARRAY(quern__slab) list;
    uint32_t first_index; /* no slab below it has a free chunk */
    uint32_t empty_count; /* slabs without used chunks: 0 or 1 between calls */
    uint32_t free_count;  /* free chunks in all slabs */
    uint32_t slab_count;  /* entries in use */
    /* Archetypes that hold chunks, one bit for each index in the order of archetypes. The few without rows among them
     * retain chunks for later rows. Bits after the last archetype have no meaning. */
    QUERN__ARRAY(uint64_t) holders;
    quern__move_counts move_counts; /* move counts of all chunks */
} quern__slabs;

void quern__slabs_release(quern__slabs *slabs, const quern_allocator *allocator);

/* Allocates up to *count adjacent chunks and returns the first, or NULL if out of memory. *count: on entry the
 * wanted number, at least 1; on return the number of adjacent chunks found, at least 1. Each chunk has slab_index
 * set; the rest of it is undefined. */
quern__chunk *quern__chunk_allocate_adjacent(quern__slabs *slabs, const quern_allocator *allocator,
                                             uint32_t *count);

void quern__chunk_release(quern__slabs *slabs, const quern_allocator *allocator, quern__chunk *chunk);

/* Releases all slabs without used chunks. */
void quern__slabs_trim(quern__slabs *slabs, const quern_allocator *allocator);

/* Returns the chunk that contains an address. */
static inline quern__chunk *quern__chunk_of(uintptr_t address)
{
    return (quern__chunk *)(address & ~(uintptr_t)(QUERN__CHUNK_BYTES - 1));
}

/* Returns the first chunk of the slab that contains an address. */
static inline quern__chunk *quern__slab_of(uintptr_t address)
{
    return (quern__chunk *)(address & ~(uintptr_t)(QUERN__SLAB_BYTES - 1));
}

/* Returns the index in its archetype of the chunk that contains an address, without reading the chunk's header.
 * Precondition: an archetype holds the chunk. */
static inline uint32_t quern__chunk_index_at(uintptr_t address)
{
    return quern__slab_of(address)->slab_indices[address / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS];
}

/* Assigns the chunk to an archetype, in the header and in the slab's table. */
static inline void quern__chunk_assign(quern__chunk *chunk, struct quern__archetype *archetype,
                                       uint32_t index)
{
    chunk->archetype = archetype;
    chunk->index = index;
    const uintptr_t address = (uintptr_t)chunk;
    quern__slab_of(address)->slab_indices[address / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS] = index;
}

/* Prefetches a part of a column, whole cache lines, into L2. */
static inline void quern__chunk_prefetch(const quern__chunk *chunk, uint32_t begin_bytes,
                                         uint32_t end_bytes)
{
    for (uint32_t offset = begin_bytes; offset < end_bytes; offset += QUERN__CACHE_LINE_BYTES)
        QUERN__PREFETCH_LATER((const char *)chunk + offset);
}

/* Prefetches the first two and the last two cache lines of a column that will be read soon. Hardware prefetchers predict
 * the lines between them, but must detect the pattern anew where a column of the next chunk begins, and arrive late at
 * its end (docs/benchmarks/results.md, Walks). column_bytes: bytes in use. */
static inline void quern__chunk_prefetch_ends(const quern__chunk *chunk, uint32_t offset_bytes,
                                              uint32_t column_bytes)
{
    const uint32_t end_bytes = offset_bytes + column_bytes;
    if (column_bytes <= 2 * QUERN__END_BYTES) {
        quern__chunk_prefetch(chunk, offset_bytes, end_bytes);
        return;
    }
    const uint32_t last_line_bytes = (end_bytes - 1) / QUERN__CACHE_LINE_BYTES * QUERN__CACHE_LINE_BYTES;
    quern__chunk_prefetch(chunk, offset_bytes, offset_bytes + QUERN__END_BYTES);
    quern__chunk_prefetch(chunk, last_line_bytes + QUERN__CACHE_LINE_BYTES - QUERN__END_BYTES, end_bytes);
}

/* Returns a small number that is unique among the chunks that exist at the time. */
static inline uint32_t quern__chunk_number(const quern__chunk *chunk)
{
    return chunk->slab_index * QUERN__SLAB_CHUNKS +
           (uint32_t)((uintptr_t)chunk / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS);
}

/* Returns the row of a location: a location is the chunk's address with the row in the low bits (see entity.h). */
static inline uint32_t quern__location_row(uintptr_t location)
{
    return (uint32_t)(location & (QUERN__CHUNK_BYTES - 1));
}

static inline uintptr_t quern__location_make(const quern__chunk *chunk, uint32_t row)
{
    return (uintptr_t)chunk | row;
}

/* Returns the address of the value at a location, in the column that begins at offset_bytes in the chunk. */
static inline char *quern__location_value(uintptr_t location, uint32_t offset_bytes, uint32_t size_bytes)
{
    return (char *)quern__chunk_of(location) + offset_bytes +
           (size_t)quern__location_row(location) * size_bytes;
}

#endif
