/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_GATHER_H
#define QUERN_CORE_PLAYBACK_GATHER_H

/* Gathering, the first stage of a sync point: the streams of all recorders, in the order of their keys.
 * From here on it does not matter who recorded a stream. */

#include "core/base/sort.h"
#include "core/record/record.h"

typedef struct quern__gathered_stream {
    quern__stream *stream;
    bool is_located; /* the locations in its items hold: nothing has moved since they were recorded */
} quern__gathered_stream;

typedef struct quern__gathered {
    QUERN__ARRAY(quern__gathered_stream) streams;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    uint64_t item_count;    /* of all streams */
    uint64_t create_count;  /* creates among them */
    uint64_t command_count; /* as users count them: see quern__operation */
    uint64_t last_key;      /* of the last stream that was listed */
    uint8_t traits;         /* quern__trait, those of all commands */
    bool is_sorted;         /* the keys ascended while streams were listed */
} quern__gathered;

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator);

/* Closes the recorders and lists their streams, or the streams of accumulated values, in the order of their
 * keys. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, bool accumulated);

/* Destroys the values that no command has moved out, in the order of streams. */
static inline void quern__gathered_destroy_values(const quern__gathered *gathered)
{
    if (QUERN__LIKELY((gathered->traits & QUERN__TRAIT_NO_OWNED) != 0)) return;
    for (uint32_t i = 0; i < gathered->streams.count; i++)
        quern__stream_destroy_values(gathered->streams.items[i].stream);
}

/* Streams whose commands are walked in order: fetches the first chunk that one a few further on touches.
 * Headers of chunks all fall on the same few sets of the caches, so each would be waited for. */
static inline void quern__gathered_fetch_ahead(const quern__gathered *gathered, uint32_t i)
{
    enum { STREAMS_AHEAD = 4 };
    if (i + STREAMS_AHEAD >= gathered->streams.count) return;
    const quern__gathered_stream *ahead = &gathered->streams.items[i + STREAMS_AHEAD];
    const quern__item *item = quern__run_item(ahead->stream->first, 0);
    if (item->location != 0 && ahead->is_located) __builtin_prefetch(quern__chunk_of(item->location));
}

#endif
