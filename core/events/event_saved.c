/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The waiting events of a world and the positions of their readers, as bytes: see quern__event_reading. */

#include "core/base/bytes.h"
#include "core/events/event_internal.h"

enum { EVENT_NAME_LENGTH_BYTES = 1 };

static const quern__schema_form schema_form = {.name_length_bytes = EVENT_NAME_LENGTH_BYTES};

/* An event type. Its schema follows in the portable form; in a frame, the number of its first waiting batch. Then follow
 * its readers, then the batches that wait: of each the number of values, and the values if has_values_in_bytes. */
typedef struct saved_channel {
    uint32_t size_bytes, alignment_bytes, field_count;
    uint32_t reader_count, batch_count;
    uint32_t zero;
    uint64_t lost_count;
} saved_channel;

/* A reader. Its name follows in the portable form, in which readers with one name are in the order of the channel's list;
 * in a frame, its identity. */
typedef struct saved_reader {
    uint64_t lost_count;
    uint32_t seen_count; /* waiting batches that it has seen */
    uint32_t has_batch;
} saved_reader;

static uint32_t channel_count(const quern_world *world)
{
    return world->events != NULL ? world->events->channels.count : 0;
}

static bool has_values_in_bytes(const quern__channel *channel, bool is_portable)
{
    return is_portable || !quern__hooks_exist(&channel->type.hooks);
}

quern_result quern__events_write(const quern_world *world, bool is_portable, quern__byte_writer *writer)
{
    quern__write_u32(writer, channel_count(world));
    for (uint32_t i = 0; i < channel_count(world); i++) {
        const quern__channel *channel = world->events->channels.items[i];
        const quern__type *type = &channel->type;
        saved_channel head = {.size_bytes = type->size_bytes,
                              .alignment_bytes = type->alignment_bytes,
                              .field_count = type->field_count,
                              .batch_count = channel->batches.count - channel->head,
                              .lost_count = channel->lost_count};
        if (is_portable && head.batch_count > 0 && quern__hooks_own_resources(&type->hooks))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "events '%s' are waiting, and the type has hooks, so an archive cannot save what they "
                "own: save after all readers have seen the events",
                type->name);
        for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
            head.reader_count++;
        quern__write(writer, &head, sizeof head);
        if (is_portable)
            quern__write_schema(writer, schema_form, type->name, type->fields, type->field_count);
        else
            quern__write_u64(writer, channel->first_number);
        for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
            const saved_reader saved = {.lost_count = reader->lost_count,
                                        .seen_count = (uint32_t)(reader->cursor - channel->first_number),
                                        .has_batch = reader->has_batch};
            quern__write(writer, &saved, sizeof saved);
            if (is_portable)
                quern__write_text(writer, EVENT_NAME_LENGTH_BYTES, reader->name);
            else
                quern__write_u64(writer, reader->identity);
        }
        for (uint32_t k = channel->head; k < channel->batches.count; k++) {
            const quern__event_batch *batch = &channel->batches.items[k];
            quern__write_u32(writer, batch->count);
            if (has_values_in_bytes(channel, is_portable))
                quern__write(writer, batch->values, (size_t)batch->count * channel->stride_bytes);
        }
    }
    return QUERN_OK;
}

/* Reads the head of the i-th channel, and its schema or the number of its first batch. Returns the channel, or NULL if the
 * world lacks it. */
static quern__channel *read_head(const quern__event_reading *it, uint32_t i, saved_channel *out_head,
                                 quern__schema *out_schema, uint64_t *out_first_number)
{
    quern__read(it->bytes, out_head, sizeof *out_head);
    if (!it->is_portable) {
        *out_first_number = quern__read_u64(it->bytes);
        return it->world->events->channels.items[i];
    }
    quern__read_schema(it->bytes, schema_form, out_head->field_count, out_schema);
    for (uint32_t k = 0; k < channel_count(it->world); k++)
        if (strcmp(it->world->events->channels.items[k]->type.name, out_schema->name) == 0)
            return it->world->events->channels.items[k];
    return NULL;
}

/* Reads a reader, and its name or its identity. */
static void read_reader(const quern__event_reading *it, saved_reader *out_reader, char *out_name,
                        uint64_t *out_identity)
{
    quern__read(it->bytes, out_reader, sizeof *out_reader);
    if (it->is_portable)
        quern__read_text(it->bytes, EVENT_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, out_name);
    else
        *out_identity = quern__read_u64(it->bytes);
}

static quern_result prepare_channel(const quern__event_reading *it, uint32_t i)
{
    quern__schema schema;
    saved_channel saved;
    uint64_t number;
    quern__channel *channel = read_head(it, i, &saved, &schema, &number);
    if (it->bytes->has_failed || saved.zero != 0) return QUERN_ERROR_BAD_ARCHIVE;
    for (uint32_t k = 0; k < saved.reader_count && !it->bytes->has_failed; k++) {
        char name[QUERN_MAX_NAME_BYTES + 1];
        saved_reader reader;
        read_reader(it, &reader, name, &number);
        if (reader.seen_count > saved.batch_count || reader.has_batch > 1 ||
            (reader.has_batch != 0 && reader.seen_count == saved.batch_count))
            return QUERN_ERROR_BAD_ARCHIVE;
    }
    if (it->bytes->has_failed) return QUERN_ERROR_BAD_ARCHIVE;
    if (saved.batch_count == 0) return QUERN_OK;
    if (channel == NULL)
        return quern__fail(
            QUERN_ERROR_UNKNOWN_EVENT,
            "events '%s' are waiting in the archive, and the world lacks the type: register it, or "
            "load without schedules",
            schema.name);
    const quern__type *type = &channel->type;
    if (it->is_portable &&
        (saved.size_bytes != type->size_bytes || saved.alignment_bytes != type->alignment_bytes ||
         saved.field_count != type->field_count || quern__hooks_own_resources(&type->hooks) ||
         quern__type_different_field(type, schema.fields) != type->field_count))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "events '%s' are waiting in the archive, and their type differs in this world: register it "
            "as in the saved world, or load without schedules",
            type->name);
    quern__event_packing packing = {.blocks = it->blocks};
    const size_t stride = channel->stride_bytes;
    if (saved.batch_count > quern__bytes_left(it->bytes) / sizeof(uint32_t)) return QUERN_ERROR_BAD_ARCHIVE;
    for (uint32_t k = 0; k < saved.batch_count; k++) {
        const uint32_t count = quern__read_u32(it->bytes);
        if (count == 0 || count > QUERN__EVENT_VALUES_BYTES / stride ||
            (has_values_in_bytes(channel, it->is_portable) &&
             quern__read_items(it->bytes, count, stride) == NULL))
            return QUERN_ERROR_BAD_ARCHIVE;
        if (!quern__packing_reserve(&packing, it->world, count * stride)) return QUERN_ERROR_OUT_OF_MEMORY;
    }
    return quern__array_reserve(&it->world->storage.allocator, &channel->batches, saved.batch_count)
               ? QUERN_OK
               : QUERN_ERROR_OUT_OF_MEMORY;
}

quern_result quern__events_prepare(const quern__event_reading *it)
{
    const uint32_t count = quern__read_u32(it->bytes);
    quern_result result = it->bytes->has_failed ? QUERN_ERROR_BAD_ARCHIVE : QUERN_OK;
    *it->blocks = NULL;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = prepare_channel(it, i);
    if (result == QUERN_OK && it->world->events != NULL &&
        !quern__pool_reserve(&it->world->events->pool, &it->world->storage.allocator))
        result = QUERN_ERROR_OUT_OF_MEMORY;
    return result;
}

static void restore_channel(const quern__event_reading *it, uint32_t i)
{
    quern__schema schema;
    saved_channel saved;
    uint64_t identity = 0;
    quern__channel *channel =
        read_head(it, i, &saved, &schema, &identity); /* and the number of the first batch */
    if (channel != NULL) {
        channel->lost_count = saved.lost_count;
        if (!it->is_portable) channel->first_number = identity;
    }
    for (uint32_t k = 0; k < saved.reader_count; k++) {
        char name[QUERN_MAX_NAME_BYTES + 1] = "";
        saved_reader from;
        read_reader(it, &from, name, &identity);
        quern_event_reader *reader = channel != NULL ? channel->readers : NULL;
        while (reader != NULL && (reader->end != 0 || (it->is_portable ? strcmp(reader->name, name) != 0
                                                                       : reader->identity != identity)))
            reader = reader->next;
        if (reader == NULL) continue; /* the world lacks the reader */
        reader->end = 1;
        reader->cursor = channel->first_number + from.seen_count;
        reader->lost_count = from.lost_count;
        reader->has_batch = from.has_batch != 0;
    }
    quern__event_packing packing = {.blocks = it->blocks};
    for (uint32_t k = 0; k < saved.batch_count; k++) {
        const uint32_t count = quern__read_u32(it->bytes);
        char *values = quern__packing_append(&packing, channel, count);
        if (has_values_in_bytes(channel, it->is_portable))
            quern__read(it->bytes, values, (size_t)count * channel->stride_bytes);
        for (uint32_t n = 0; n < count && it->remap != NULL && channel->type.has_entity_fields; n++)
            quern__type_remap(&channel->type, values + (size_t)n * channel->stride_bytes, it->remap,
                              it->remap_argument);
    }
}

void quern__events_restore(const quern__event_reading *it)
{
    for (uint32_t i = 0; i < channel_count(it->world); i++) {
        quern__channel *channel = it->world->events->channels.items[i];
        quern__channel_drop_all(channel);
        if (!it->is_portable) channel->lost_count = 0;
        /* `end` marks the readers that the bytes mention: its value matters only while a system reads */
        for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
            reader->cursor = UINT64_MAX;
            reader->end = 0;
            reader->has_batch = false;
        }
    }
    const uint32_t count = quern__read_u32(it->bytes);
    for (uint32_t i = 0; i < count; i++)
        restore_channel(it, i);
    /* A reader that is newer than a frame has seen none of its events. One that an archive lacks gets the events that
     * are published from now on. */
    for (uint32_t i = 0; i < channel_count(it->world); i++) {
        const quern__channel *channel = it->world->events->channels.items[i];
        for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
            if (reader->cursor == UINT64_MAX)
                reader->cursor = it->is_portable ? quern__channel_end(channel) : channel->first_number;
    }
}
