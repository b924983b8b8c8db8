/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_DEPARTURES_H
#define QUERN_CORE_STORAGE_DEPARTURES_H

/* Departures: how often rows have left each chunk, by the number of the chunk. Who has noted the address of
 * a value may use it again as long as the count is the same: rows that came meanwhile did not take its
 * place. Counted only while somebody asks, and only for archetypes with a component that somebody asks for;
 * for the others a change costs a look at a NULL.
 *
 * A number stays with the place of a chunk in the list of slabs. What is there may change: the chunk may
 * come to another archetype, and the slab may be given back and another one come. But all rows left first,
 * and counts never begin again. So no count that was noted comes back.
 *
 *   counts[number]   for all chunks of all slabs, while there are readers */

#include "core/base/base_internal.h"

#include <quern/getter.h>

typedef struct quern__departures {
    uint64_t *counts;  /* NULL: not kept */
    uint32_t capacity; /* chunks */
    quern_getter *first_reader;
} quern__departures;

/* Counts are kept from now on, for so many chunks, and the reader is told where they are. False, with
 * nothing changed, when there is no memory. */
bool quern__departures_start(quern__departures *departures, const quern_allocator *allocator,
                             uint32_t chunk_count, quern_getter *reader);
void quern__departures_stop(quern__departures *departures, const quern_allocator *allocator,
                            quern_getter *reader);

/* Room for more chunks, if counts are kept. False, with nothing changed, when there is no memory. */
bool quern__departures_grow(quern__departures *departures, const quern_allocator *allocator,
                            uint32_t chunk_count);

/* Some rows have left, or are about to. Several threads may note departures from one chunk at the same
 * time, and one that gets lost among them does no harm: every one of them writes more than was there before
 * they began. Relaxed: nobody reads while rows leave, and who reads has waited for these threads. */
static inline void quern__departures_note(quern__departures *departures, uint32_t chunk_number)
{
    uint64_t *count = &departures->counts[chunk_number];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

#endif
