/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/departures.h"

enum { MOVE_COUNT_ALIGNMENT_BYTES = 64 };

static void release_counts(quern__departures *departures, const quern_allocator *allocator)
{
    quern__release(allocator, departures->counts, departures->capacity * sizeof *departures->counts,
                   MOVE_COUNT_ALIGNMENT_BYTES);
}

static bool resize(quern__departures *departures, const quern_allocator *allocator, uint32_t chunk_count)
{
    uint64_t *counts = quern__allocate(allocator, chunk_count * sizeof *counts, MOVE_COUNT_ALIGNMENT_BYTES);
    if (counts == NULL) return false;
    const uint32_t known = departures->capacity;
    if (known > 0) memcpy(counts, departures->counts, known * sizeof *counts);
    memset(counts + known, 0, (chunk_count - known) * sizeof *counts);
    release_counts(departures, allocator);
    departures->counts = counts;
    departures->capacity = chunk_count;
    for (quern_getter *reader = departures->first_reader; reader != NULL; reader = reader->next)
        reader->departures = counts;
    return true;
}

bool quern__departures_start(quern__departures *departures, const quern_allocator *allocator,
                             uint32_t chunk_count, quern_getter *reader)
{
    if (departures->first_reader == NULL &&
        !resize(departures, allocator, chunk_count > 0 ? chunk_count : 1))
        return false;
    reader->departures = departures->counts;
    reader->next = departures->first_reader;
    if (reader->next != NULL) reader->next->previous = reader;
    departures->first_reader = reader;
    return true;
}

void quern__departures_stop(quern__departures *departures, const quern_allocator *allocator,
                            quern_getter *reader)
{
    if (reader->next != NULL) reader->next->previous = reader->previous;
    if (reader->previous != NULL) reader->previous->next = reader->next;
    if (departures->first_reader == reader) departures->first_reader = reader->next;
    if (departures->first_reader != NULL) return;
    release_counts(departures, allocator);
    departures->counts = NULL;
    departures->capacity = 0;
}

bool quern__departures_grow(quern__departures *departures, const quern_allocator *allocator,
                            uint32_t chunk_count)
{
    if (departures->first_reader == NULL || chunk_count <= departures->capacity) return true;
    const uint32_t twice = 2 * departures->capacity;
    return resize(departures, allocator, chunk_count > twice ? chunk_count : twice);
}
