/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/move_counts.h"

enum { MOVE_COUNT_ALIGNMENT_BYTES = 64 };

static void release_counts(quern__move_counts *move_counts, const quern_allocator *allocator)
{
    quern__release(allocator, move_counts->counts, move_counts->capacity * sizeof *move_counts->counts,
                   MOVE_COUNT_ALIGNMENT_BYTES);
}

static bool resize(quern__move_counts *move_counts, const quern_allocator *allocator, uint32_t chunk_count)
{
    uint64_t *counts = quern__allocate(allocator, chunk_count * sizeof *counts, MOVE_COUNT_ALIGNMENT_BYTES);
    if (counts == NULL) return false;
    const uint32_t known = move_counts->capacity;
    if (known > 0) memcpy(counts, move_counts->counts, known * sizeof *counts);
    memset(counts + known, 0, (chunk_count - known) * sizeof *counts);
    release_counts(move_counts, allocator);
    move_counts->counts = counts;
    move_counts->capacity = chunk_count;
    for (quern_getter *reader = move_counts->first_reader; reader != NULL; reader = reader->next)
        reader->move_counts = counts;
    return true;
}

bool quern__move_counts_add_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                   uint32_t chunk_count, quern_getter *reader)
{
    if (move_counts->first_reader == NULL &&
        !resize(move_counts, allocator, chunk_count > 0 ? chunk_count : 1))
        return false;
    reader->move_counts = move_counts->counts;
    reader->next = move_counts->first_reader;
    if (reader->next != NULL) reader->next->previous = reader;
    move_counts->first_reader = reader;
    return true;
}

void quern__move_counts_remove_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                      quern_getter *reader)
{
    if (reader->next != NULL) reader->next->previous = reader->previous;
    if (reader->previous != NULL) reader->previous->next = reader->next;
    if (move_counts->first_reader == reader) move_counts->first_reader = reader->next;
    if (move_counts->first_reader != NULL) return;
    release_counts(move_counts, allocator);
    move_counts->counts = NULL;
    move_counts->capacity = 0;
}

bool quern__move_counts_grow(quern__move_counts *move_counts, const quern_allocator *allocator,
                             uint32_t chunk_count)
{
    if (move_counts->first_reader == NULL || chunk_count <= move_counts->capacity) return true;
    const uint32_t twice = 2 * move_counts->capacity;
    return resize(move_counts, allocator, chunk_count > twice ? chunk_count : twice);
}
