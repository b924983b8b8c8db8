/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The waiting events of a world and the positions of their readers, as part of an archive (archived_run.h). */

#include "core/bytes/schema.h"
#include "sched/history/archived_run.h"

/* An event type. Its schema follows, then its readers, then the batches that wait: of each the number of values, and
 * the values. */
typedef struct run_channel {
    uint32_t size_bytes, alignment_bytes, field_count;
    uint32_t reader_count, batch_count;
    uint32_t zero;
    uint64_t lost_count;
} run_channel;

/* A reader. Its name follows. Readers with one name are in the order of the channel's list. */
typedef struct run_event_reader {
    uint64_t lost_count;
    uint32_t seen_count; /* waiting batches that it has seen */
    uint32_t has_batch;
} run_event_reader;

static const quern__schema_form schema_form = {.name_length_bytes = QUERN__RUN_NAME_LENGTH_BYTES};

static uint32_t channel_count(const quern_world *world)
{
    return world->events != NULL ? world->events->channels.count : 0;
}

static quern__channel *find_channel(const quern_world *world, const char *name)
{
    for (uint32_t i = 0; i < channel_count(world); i++)
        if (strcmp(world->events->channels.items[i]->type.name, name) == 0)
            return world->events->channels.items[i];
    return NULL;
}

/* ----------------------------------------------------------------------------------------- writing */

static quern_result write_channel(const quern__channel *channel, quern__byte_writer *writer)
{
    const quern__type *type = &channel->type;
    run_channel head = {.size_bytes = type->size_bytes,
                        .alignment_bytes = type->alignment_bytes,
                        .field_count = type->field_count,
                        .batch_count = channel->batches.count - channel->head,
                        .lost_count = channel->lost_count};
    if (head.batch_count > 0 && quern__hooks_own_resources(&type->hooks))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "events '%s' are waiting, and the type has hooks, so an archive cannot save what they "
            "own: save after all readers have seen the events",
            type->name);
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        head.reader_count++;
    quern__write(writer, &head, sizeof head);
    quern__write_schema(writer, schema_form, type->name, type->fields, type->field_count);
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        const run_event_reader saved = {.lost_count = reader->lost_count,
                                        .seen_count = (uint32_t)(reader->cursor - channel->first_number),
                                        .has_batch = reader->has_batch};
        quern__write(writer, &saved, sizeof saved);
        quern__write_text(writer, QUERN__RUN_NAME_LENGTH_BYTES, reader->name);
    }
    for (uint32_t i = channel->head; i < channel->batches.count; i++) {
        const quern__event_batch *batch = &channel->batches.items[i];
        quern__write_u32(writer, batch->count);
        quern__write(writer, batch->values, (size_t)batch->count * channel->stride_bytes);
    }
    return QUERN_OK;
}

quern_result quern__run_write_events(const quern_world *world, quern__byte_writer *writer)
{
    quern_result result = QUERN_OK;
    quern__write_u32(writer, channel_count(world));
    for (uint32_t i = 0; i < channel_count(world) && result == QUERN_OK; i++)
        result = write_channel(world->events->channels.items[i], writer);
    return result;
}

/* --------------------------------------------------------------------------------------- preparing */

static quern_result check_type(const quern__channel *channel, const run_channel *saved,
                               const quern__schema *schema)
{
    const quern__type *type = &channel->type;
    if (saved->size_bytes == type->size_bytes && saved->alignment_bytes == type->alignment_bytes &&
        saved->field_count == type->field_count && !quern__hooks_own_resources(&type->hooks) &&
        quern__type_different_field(type, schema->fields) == type->field_count)
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "events '%s' are waiting in the archive, and their type differs in this world: register it "
        "as in the saved world, or load without schedules",
        type->name);
}

static bool check_readers(const run_channel *saved, quern__byte_reader *bytes)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    for (uint32_t i = 0; i < saved->reader_count && !bytes->has_failed; i++) {
        run_event_reader reader;
        quern__read(bytes, &reader, sizeof reader);
        quern__read_text(bytes, QUERN__RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, name);
        if (reader.seen_count > saved->batch_count || reader.has_batch > 1 ||
            (reader.has_batch != 0 && reader.seen_count == saved->batch_count))
            return false;
    }
    return !bytes->has_failed;
}

/* Returns the distance of values in a block. */
static size_t stride_of(const run_channel *saved)
{
    return saved->size_bytes > 0 ? saved->size_bytes : 1;
}

/* Checks the batches, and reserves memory for them unless the world lacks the channel, which is then NULL. */
static quern_result prepare_batches(quern__archived_run *run, quern__channel *channel,
                                    const run_channel *saved, quern__byte_reader *bytes)
{
    quern__event_packing packing = {.blocks = &run->event_blocks};
    if (saved->batch_count > quern__bytes_left(bytes) / sizeof(uint32_t)) return quern__run_fail("events");
    for (uint32_t i = 0; i < saved->batch_count; i++) {
        const uint32_t count = quern__read_u32(bytes);
        if (count == 0 || count > QUERN__EVENT_VALUES_BYTES / stride_of(saved) ||
            quern__read_items(bytes, count, stride_of(saved)) == NULL)
            return quern__run_fail("events");
        if (!quern__packing_reserve(&packing, run->world, count * stride_of(saved)))
            return quern__image_fail_memory();
    }
    return quern__array_reserve(&run->world->storage.allocator, &channel->batches, saved->batch_count)
               ? QUERN_OK
               : quern__image_fail_memory();
}

static quern_result prepare_channel(quern__archived_run *run, quern__byte_reader *bytes)
{
    quern__schema schema;
    run_channel saved;
    quern__read(bytes, &saved, sizeof saved);
    quern__read_schema(bytes, schema_form, saved.field_count, &schema);
    if (bytes->has_failed || saved.zero != 0 || !check_readers(&saved, bytes))
        return quern__run_fail("events");
    if (saved.batch_count == 0) return QUERN_OK;
    quern__channel *channel = find_channel(run->world, schema.name);
    if (channel == NULL)
        return quern__fail(
            QUERN_ERROR_UNKNOWN_EVENT,
            "events '%s' are waiting in the archive, and the world lacks the type: register it, or "
            "load without schedules",
            schema.name);
    const quern_result result = check_type(channel, &saved, &schema);
    return result == QUERN_OK ? prepare_batches(run, channel, &saved, bytes) : result;
}

quern_result quern__run_prepare_events(quern__archived_run *run, quern__run_reader *reader)
{
    const uint32_t count = quern__read_u32(&reader->bytes);
    quern_result result = reader->bytes.has_failed ? quern__run_fail("events") : QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = prepare_channel(run, &reader->bytes);
    if (result == QUERN_OK && run->world->events != NULL &&
        !quern__pool_reserve(&run->world->events->pool, &run->world->storage.allocator))
        result = quern__image_fail_memory();
    return result;
}

/* --------------------------------------------------------------------------------------- restoring */

/* Empties a channel. Its readers have seen everything until the archive says otherwise. `end` marks the readers that it
 * has mentioned: its value matters only while a system reads. */
static void empty_channel(quern__channel *channel)
{
    quern__channel_drop_all(channel);
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        reader->cursor = UINT64_MAX;
        reader->end = 0;
        reader->has_batch = false;
    }
}

/* Restores the position of the next reader with the name. A reader that the world lacks is skipped. */
static void restore_reader(const quern__channel *channel, const run_event_reader *saved, const char *name)
{
    quern_event_reader *reader = channel->readers;
    while (reader != NULL && (reader->end != 0 || strcmp(reader->name, name) != 0))
        reader = reader->next;
    if (reader == NULL) return;
    reader->end = 1;
    reader->cursor = channel->first_number + saved->seen_count;
    reader->lost_count = saved->lost_count;
    reader->has_batch = saved->has_batch != 0;
}

static void restore_batch(quern__channel *channel, quern__event_packing *packing, quern__run_reader *reader)
{
    const uint32_t count = quern__read_u32(&reader->bytes);
    char *values = quern__packing_append(packing, channel, count);
    quern__read(&reader->bytes, values, (size_t)count * channel->stride_bytes);
    for (uint32_t i = 0; i < count && channel->type.has_entity_fields; i++)
        quern__type_remap(&channel->type, values + (size_t)i * channel->stride_bytes, reader->remap,
                          reader->remap_argument);
}

static void restore_channel(quern__archived_run *run, quern__run_reader *reader)
{
    quern__schema schema;
    run_channel saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    quern__read_schema(&reader->bytes, schema_form, saved.field_count, &schema);
    quern__channel *channel = find_channel(run->world, schema.name);
    for (uint32_t i = 0; i < saved.reader_count; i++) {
        char name[QUERN_MAX_NAME_BYTES + 1];
        run_event_reader saved_reader;
        quern__read(&reader->bytes, &saved_reader, sizeof saved_reader);
        quern__read_text(&reader->bytes, QUERN__RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, name);
        if (channel != NULL) restore_reader(channel, &saved_reader, name);
    }
    if (channel != NULL) channel->lost_count = saved.lost_count;
    quern__event_packing packing = {.blocks = &run->event_blocks};
    for (uint32_t i = 0; i < saved.batch_count; i++)
        restore_batch(channel, &packing, reader);
}

/* A reader that the archive does not mention gets the events that are published from now on. */
static void finish_channel(const quern__channel *channel)
{
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        if (reader->cursor == UINT64_MAX) reader->cursor = quern__channel_end(channel);
}

void quern__run_restore_events(quern__archived_run *run, quern__run_reader *reader)
{
    const quern_world *world = run->world;
    for (uint32_t i = 0; i < channel_count(world); i++)
        empty_channel(world->events->channels.items[i]);
    const uint32_t count = quern__read_u32(&reader->bytes);
    for (uint32_t i = 0; i < count; i++)
        restore_channel(run, reader);
    for (uint32_t i = 0; i < channel_count(world); i++)
        finish_channel(world->events->channels.items[i]);
}
