/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_MOVE_COUNTS_H
#define QUERN_CORE_STORAGE_MOVE_COUNTS_H

/* Move counts: per chunk number, how often rows have left the chunk. A reader that cached a value's address may reuse
 * the address while the count is unchanged: rows added since then did not replace the value's row. Counts are
 * maintained only while a reader is registered, and only for archetypes with a component that some reader reads; in
 * other archetypes a structural change only tests a pointer for NULL.
 *
 * A chunk number identifies a position in the list of slabs. The chunk at that position may be given to another
 * archetype, and its slab may be freed and replaced. But all rows leave the chunk first, and a count is never
 * reset while readers exist. Therefore no cached count recurs.
 *
 *   counts[number]   for all chunks of all slabs, while readers exist */

#include "core/base/base_internal.h"

#include <quern/getter.h>

typedef struct quern__move_counts {
    uint64_t *counts;  /* by chunk number; NULL while no reader is registered */
    uint32_t capacity; /* length of `counts`, in chunks */
    quern_getter *first_reader;
} quern__move_counts;

/* Registers a reader and stores the address of the counts in it. The first reader allocates counts for `chunk_count`
 * chunks. Returns false and changes nothing if out of memory. */
bool quern__move_counts_add_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                   uint32_t chunk_count, quern_getter *reader);
/* Unregisters a reader. The last reader frees the counts. */
void quern__move_counts_remove_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                      quern_getter *reader);

/* Reserves counts for `chunk_count` chunks and updates the address in each reader. Does nothing without readers.
 * Returns false and changes nothing if out of memory. */
bool quern__move_counts_grow(quern__move_counts *move_counts, const quern_allocator *allocator,
                             uint32_t chunk_count);

/* Increments the count of a chunk that rows have left or are about to leave. Several threads may do this for one
 * chunk at the same time. Lost increments are harmless: each thread stores a larger count than the one before they
 * began. The load and the store are relaxed: no reader reads counts while rows leave, and readers wait for these
 * threads first. */
static inline void quern__move_counts_increment(quern__move_counts *move_counts, uint32_t chunk_number)
{
    uint64_t *count = &move_counts->counts[chunk_number];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

#endif
