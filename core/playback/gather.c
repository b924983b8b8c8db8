/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In: the recorders. Out: their streams in order. What may fail: memory for the lists. */
#include "core/playback/gather.h"

#include "core/playback/accumulate.h"

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator)
{
    quern__array_release(allocator, &gathered->streams);
    quern__array_release(allocator, &gathered->order);
    quern__array_release(allocator, &gathered->order_scratch);
}

quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, uint32_t stream_count, bool accumulated)
{
    const quern_allocator *allocator = &storage->allocator;
    gathered->streams.count = 0;
    gathered->item_count = 0;
    gathered->create_count = 0;
    gathered->traits = UINT8_MAX;
    if (!quern__array_reserve(allocator, &gathered->streams, stream_count) ||
        !quern__array_reserve(allocator, &gathered->order, stream_count) ||
        !quern__array_reserve(allocator, &gathered->order_scratch, stream_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather %u command streams",
                           stream_count);
    quern__sort_item *next = gathered->order.items;
    for (uint32_t i = 0; i < recorders.count; i++) {
        const quern__accumulator *accumulator = recorders.items[i]->accumulator;
        if (accumulated && accumulator == NULL) continue;
        const quern_commands *recorder = accumulated ? &accumulator->recorder : recorders.items[i];
        for (uint32_t k = 0; k < recorder->streams.count; k++) {
            quern__stream *stream = &recorder->streams.items[k];
            *next++ = (quern__sort_item){.key = stream->origin.key, .pointer = stream};
        }
    }
    quern__sort(gathered->order.items, gathered->order_scratch.items, stream_count);
    for (uint32_t i = 0; i < stream_count; i++) {
        quern__stream *stream = gathered->order.items[i].pointer;
        gathered->item_count += stream->item_count;
        gathered->create_count += stream->create_count;
        gathered->traits &= stream->traits;
        gathered->streams.items[gathered->streams.count++] = (quern__gathered_stream){
            .stream = stream,
            .is_located = stream->structure_version == storage->structure_version,
        };
    }
    return QUERN_OK;
}
