/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores the waiting events of a world and the positions of their readers. Batches keep
 * their numbers and sizes. */

#include "core/events/event_pack.h"
#include "core/history/history_internal.h"
#include "core/history/saved_pending.h"

typedef struct saved_channel {
    uint64_t first_number, lost_count;
    uint32_t batch_count, reader_count;
} saved_channel;

typedef struct saved_reader {
    uint64_t identity, cursor, lost_count, has_batch;
} saved_reader;

static uint32_t channel_count(const quern_world *world)
{
    return world->events != NULL ? world->events->channels.count : 0;
}

static uint32_t waiting_count(const quern__channel *channel)
{
    return channel->batches.count - channel->head;
}

/* Whether the values of the channel are copied by hooks into pages of their own. Other values are
 * written as bytes. */
static bool has_hooks(const quern__channel *channel)
{
    return quern__hooks_exist(&channel->type.hooks);
}

static quern_result check_hooks(const quern__channel *channel)
{
    const quern_hooks *hooks = &channel->type.hooks;
    if (hooks->copy != NULL || (hooks->move == NULL && hooks->destroy == NULL)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "events of type '%s' are waiting, and the type has a move or destroy hook and no copy hook, so a "
        "snapshot cannot copy them: add a copy hook, or save after all readers have seen the events",
        channel->type.name);
}

/* -------------------------------------------------------------------------------------------- saving */

static void write_readers(const quern__channel *channel, quern__byte_writer *writer)
{
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        const saved_reader saved = {reader->identity, reader->cursor, reader->lost_count,
                                    reader->has_batch};
        quern__write(writer, &saved, sizeof saved);
    }
}

static void write_channel(const quern__channel *channel, quern__byte_writer *writer)
{
    saved_channel saved = {.first_number = channel->first_number,
                           .lost_count = channel->lost_count,
                           .batch_count = waiting_count(channel)};
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        saved.reader_count++;
    quern__write(writer, &saved, sizeof saved);
    write_readers(channel, writer);
    for (uint32_t i = channel->head; i < channel->batches.count; i++) {
        const quern__event_batch *batch = &channel->batches.items[i];
        quern__write_u64(writer, batch->count);
        if (!has_hooks(channel))
            quern__write(writer, batch->values, (size_t)batch->count * channel->stride_bytes);
    }
}

void quern__events_write(const quern_world *world, quern__byte_writer *writer)
{
    quern__write_u64(writer, channel_count(world));
    for (uint32_t i = 0; i < channel_count(world); i++)
        write_channel(world->events->channels.items[i], writer);
}

static quern_result copy_channel(quern__history *history, const quern__channel *channel, quern__page **next)
{
    for (uint32_t i = channel->head; i < channel->batches.count; i++) {
        const quern__event_batch *batch = &channel->batches.items[i];
        const quern__page page =
            quern__page_allocate(&history->store, (size_t)batch->count * channel->stride_bytes);
        if (page == 0) return quern__history_fail_memory("waiting events");
        *(*next)++ = page;
        quern__page_entry *entry = &history->store.pages.items[page];
        quern__type_copy(&channel->type, entry->memory, batch->values, batch->count);
        entry->type = &channel->type;
        entry->value_count = batch->count;
    }
    return QUERN_OK;
}

quern_result quern__events_save_values(quern__history *history, quern__value_pages *out_pages)
{
    uint32_t page_count = 0;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < channel_count(history->world) && result == QUERN_OK; i++) {
        const quern__channel *channel = history->world->events->channels.items[i];
        if (!has_hooks(channel) || waiting_count(channel) == 0) continue;
        result = check_hooks(channel);
        page_count += waiting_count(channel);
    }
    if (result != QUERN_OK || page_count == 0) return result;
    if (!quern__value_pages_allocate(history, page_count, out_pages))
        return quern__history_fail_memory("waiting events");
    quern__page *next = quern__pages_in(history, out_pages->list);
    for (uint32_t i = 0; i < channel_count(history->world) && result == QUERN_OK; i++) {
        const quern__channel *channel = history->world->events->channels.items[i];
        if (has_hooks(channel)) result = copy_channel(history, channel, &next);
    }
    return result;
}

/* -------------------------------------------------------------------------------------------- reserving */

/* Reserves blocks for the batches. Advances the reader past the batches. Returns false if out of memory. */
static bool reserve_blocks(const quern__channel *channel, uint32_t batch_count, quern__event_block **blocks,
                           quern__byte_reader *reader)
{
    quern__event_packing packing = {.blocks = blocks};
    for (uint32_t i = 0; i < batch_count; i++) {
        const size_t bytes = (size_t)quern__read_u64(reader) * channel->stride_bytes;
        if (!has_hooks(channel)) quern__read_in_place(reader, bytes);
        if (!quern__packing_reserve(&packing, channel->world, bytes)) return false;
    }
    return true;
}

static bool prepare_channel(quern__channel *channel, quern__event_block **blocks,
                            quern__byte_reader *reader)
{
    saved_channel saved;
    quern__read(reader, &saved, sizeof saved);
    quern__read_items(reader, saved.reader_count, sizeof(saved_reader));
    return reserve_blocks(channel, saved.batch_count, blocks, reader) &&
           quern__array_reserve(&channel->world->storage.allocator, &channel->batches, saved.batch_count);
}

quern_result quern__events_prepare(quern_world *world, quern__event_block **blocks,
                                   quern__byte_reader *reader)
{
    const uint32_t count = (uint32_t)quern__read_u64(reader);
    bool has_room = true;
    *blocks = NULL;
    for (uint32_t i = 0; i < count && has_room; i++)
        has_room = prepare_channel(world->events->channels.items[i], blocks, reader);
    if (has_room && world->events != NULL)
        has_room = quern__pool_reserve(&world->events->pool, &world->storage.allocator);
    return has_room ? QUERN_OK : quern__history_fail_memory("waiting events");
}

/* ---------------------------------------------------------------------------------------- restoring */

/* Restores the readers of a channel. Readers that are newer than the snapshot have seen none of the
 * waiting events. */
static void restore_readers(const quern__channel *channel, uint32_t count, quern__byte_reader *bytes)
{
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        reader->cursor = channel->first_number;
        reader->has_batch = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        saved_reader saved;
        quern__read(bytes, &saved, sizeof saved);
        quern_event_reader *reader = channel->readers;
        while (reader != NULL && reader->identity != saved.identity)
            reader = reader->next;
        if (reader == NULL) continue;
        reader->cursor = saved.cursor;
        reader->lost_count = saved.lost_count;
        reader->has_batch = saved.has_batch != 0;
    }
}

/* The source of saved values and the reserved blocks for them. */
typedef struct values_source {
    const quern__history *history;
    const quern__page *next_page;
    quern__event_block **blocks;
    quern__byte_reader *reader;
} values_source;

static void restore_values(const quern__channel *channel, char *values, uint32_t count,
                           values_source *source)
{
    if (!has_hooks(channel))
        quern__read(source->reader, values, (size_t)count * channel->stride_bytes);
    else
        quern__type_copy(&channel->type, values,
                         quern__page_memory(&source->history->store, *source->next_page++), count);
}

static void restore_batches(quern__channel *channel, uint32_t batch_count, values_source *source)
{
    quern__event_packing packing = {.blocks = source->blocks};
    for (uint32_t i = 0; i < batch_count; i++) {
        const uint32_t count = (uint32_t)quern__read_u64(source->reader);
        restore_values(channel, quern__packing_append(&packing, channel, count), count, source);
    }
}

/* Restores all channels. Channels that are newer than the snapshot become empty. */
void quern__events_restore(quern__history *history, const quern__value_pages *pages,
                           quern__byte_reader *reader)
{
    const quern_world *world = history->world;
    values_source source = {history, quern__pages_in(history, pages->list), &history->event_blocks, reader};
    const uint32_t count = (uint32_t)quern__read_u64(reader);
    for (uint32_t i = 0; i < channel_count(world); i++) {
        quern__channel *channel = world->events->channels.items[i];
        saved_channel saved = {.first_number = quern__channel_end(channel)};
        quern__channel_drop_all(channel);
        if (i < count) quern__read(reader, &saved, sizeof saved);
        channel->first_number = saved.first_number;
        channel->lost_count = saved.lost_count;
        restore_readers(channel, saved.reader_count, reader);
        restore_batches(channel, saved.batch_count, &source);
    }
}
