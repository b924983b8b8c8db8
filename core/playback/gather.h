/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_GATHER_H
#define QUERN_CORE_PLAYBACK_GATHER_H

/* Gathering, the first stage of a sync point: lists the streams of all recorders in the order of their keys.
 * Later stages do not depend on which recorder a stream is from. */

#include "core/base/sort.h"
#include "core/record/view_batch.h"

typedef struct quern__gathered_stream {
    quern__stream *stream;
    bool is_located; /* the locations in its items are valid: no row has moved since recording */
} quern__gathered_stream;

typedef struct quern__gathered {
    QUERN__ARRAY(quern__gathered_stream) streams;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    uint64_t item_count;    /* number of items in all streams */
    uint64_t create_count;  /* number of creates in all streams */
    uint64_t command_count; /* number of commands as users count them: see quern__operation */
    uint64_t last_key;      /* key of the last listed stream */
    uint8_t traits;         /* quern__trait shared by all commands */
    bool is_sorted;         /* the streams were listed with ascending keys */
} quern__gathered;

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator);

/* Closes the recorders and lists their streams in the order of keys. accumulated: lists the streams of
 * accumulated values instead of commands. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, bool accumulated);

/* Destroys the values that items still own, in the order of streams. */
static inline void quern__gathered_destroy_values(const quern__gathered *gathered)
{
    if (QUERN__LIKELY((gathered->traits & QUERN__TRAIT_NO_OWNED) != 0)) return;
    for (uint32_t i = 0; i < gathered->streams.count; i++)
        quern__stream_destroy_values(gathered->streams.items[i].stream);
}

/* For loops over streams in order: prefetches the first chunk used by a stream a few positions ahead. Chunk
 * headers are aligned alike, so they share a few cache sets and would otherwise usually miss the cache. */
static inline void quern__gathered_fetch_ahead(const quern__gathered *gathered, uint32_t i)
{
    enum { STREAMS_AHEAD = 4 };
    if (i + STREAMS_AHEAD >= gathered->streams.count) return;
    const quern__gathered_stream *ahead = &gathered->streams.items[i + STREAMS_AHEAD];
    quern__command_batch *batch = ahead->stream->first;
    const uintptr_t location =
        batch->is_view ? quern__view_of(batch)->location : quern__batch_item(batch, 0)->location;
    if (location != 0 && ahead->is_located) QUERN__PREFETCH(quern__chunk_of(location));
}

#endif
