/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: the recorders. Output: their streams in order. Can fail: memory for the lists. */
#include "core/playback/gather.h"

#include "core/playback/accumulate.h"

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator)
{
    quern__array_release(allocator, &gathered->streams);
    quern__array_release(allocator, &gathered->order);
    quern__array_release(allocator, &gathered->order_scratch);
}

/* Closes a recorder and appends its streams. Updates is_sorted. Returns false if out of memory. */
static bool list_streams(quern__gathered *gathered, const quern__storage *storage, quern_commands *recorder)
{
    quern__commands_close(recorder);
    const uint32_t stream_count = recorder->streams.count;
    if (stream_count == 0) return true;
    if (!quern__array_reserve(&storage->allocator, &gathered->streams,
                              gathered->streams.count + stream_count))
        return false;
    quern__gathered_stream *next = gathered->streams.items + gathered->streams.count;
    const uint64_t structure_version = storage->structure_version;
    quern__stream *stream = recorder->streams.items;
    for (const quern__stream *end = stream + stream_count; stream < end; stream++, next++) {
        gathered->is_sorted &= stream->origin.key >= gathered->last_key;
        gathered->last_key = stream->origin.key;
        gathered->item_count += stream->item_count;
        gathered->create_count += stream->create_count;
        gathered->command_count += stream->command_count;
        gathered->traits &= stream->traits;
        next->stream = stream;
        next->is_located = stream->structure_version == structure_version;
    }
    gathered->streams.count += stream_count;
    return true;
}

/* Sorts the listed streams by their keys. Returns false if out of memory. */
static bool sort_streams(quern__gathered *gathered, const quern__storage *storage)
{
    const quern_allocator *allocator = &storage->allocator;
    const uint32_t count = gathered->streams.count;
    if (!quern__array_reserve(allocator, &gathered->order, count) ||
        !quern__array_reserve(allocator, &gathered->order_scratch, count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        quern__stream *stream = gathered->streams.items[i].stream;
        gathered->order.items[i] = (quern__sort_item){.key = stream->origin.key, .pointer = stream};
    }
    quern__sort(gathered->order.items, gathered->order_scratch.items, count);
    for (uint32_t i = 0; i < count; i++) {
        quern__stream *stream = gathered->order.items[i].pointer;
        gathered->streams.items[i] = (quern__gathered_stream){
            .stream = stream, .is_located = stream->structure_version == storage->structure_version};
    }
    return true;
}

quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, bool accumulated)
{
    gathered->streams.count = 0;
    gathered->item_count = gathered->create_count = gathered->command_count = 0;
    gathered->traits = UINT8_MAX;
    gathered->is_sorted = true;
    gathered->last_key = 0;
    bool has_memory = true;
    for (uint32_t i = 0; i < recorders.count && has_memory; i++) {
        quern_commands *recorder = recorders.items[i];
        if (!accumulated)
            has_memory = list_streams(gathered, storage, recorder);
        else if (recorder->accumulator != NULL)
            has_memory = list_streams(gathered, storage, &recorder->accumulator->recorder);
    }
    if (has_memory && (gathered->is_sorted || sort_streams(gathered, storage))) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather command streams");
}
