/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Events in code between frames: emitting, and reading. */

#include "core/events/event_internal.h"

/* ----------------------------------------------------------------------------- extending the last batch */

static quern__event_batch *last_batch(const quern__channel *channel)
{
    return &channel->batches.items[channel->batches.count - 1];
}

/* Returns whether `count` events extend the last waiting batch: if it stays within the size of a batch and the channel
 * within its limit, readers exist and none has begun it, and the type is plain bytes. Without readers a publication drops
 * the waiting batches. Depends only on what a history saves, and not on the memory of the batch. */
static bool can_extend(const quern__channel *channel, uint32_t count)
{
    if (channel->head == channel->batches.count || channel->readers == NULL ||
        quern__hooks_own_resources(&channel->type.hooks))
        return false;
    const uint64_t bytes = (uint64_t)count * channel->stride_bytes;
    const uint64_t last_bytes = (uint64_t)last_batch(channel)->count * channel->stride_bytes;
    if (last_bytes + bytes > channel->batch_bytes || channel->waiting_bytes + bytes > channel->limit_bytes)
        return false;
    const uint64_t number = quern__channel_end(channel) - 1;
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        if (reader->cursor > number || reader->has_batch || reader->is_running) return false;
    return true;
}

static void count_extension(quern__channel *channel, uint32_t count)
{
    channel->waiting_count += count;
    channel->waiting_bytes += (uint64_t)count * channel->stride_bytes;
}

/* Appends values to the last waiting batch if the memory after it is free and the emitter's. Returns false, with nothing
 * changed, if it is not. Precondition: can_extend. */
static bool extend_in_place(quern__channel *channel, const void *values, uint32_t count)
{
    quern__emitter *emitter = &channel->emitter;
    quern__event_batch *last = last_batch(channel);
    const size_t bytes = (size_t)count * channel->stride_bytes;
    char *end = last->values + (size_t)last->count * channel->stride_bytes;
    if (last->block != emitter->block || end != emitter->cursor ||
        bytes > (size_t)(emitter->block_end - end))
        return false;
    if (channel->type.size_bytes == 0)
        memset(end, 0, bytes);
    else if (count == 1)
        quern__copy_value(end, values, bytes);
    else
        memcpy(end, values, bytes);
    emitter->cursor = end + bytes;
    last->count += count;
    count_extension(channel, count);
    return true;
}

/* Replaces the last waiting batch by the only batch of the emitter, which begins with the same values. */
static void replace_last(quern__channel *channel, quern__emitter *emitter)
{
    assert(emitter->batches.count == 1);
    const quern__event_batch old = *last_batch(channel), *fresh = &emitter->batches.items[0].batch;
    count_extension(channel, fresh->count - old.count);
    *last_batch(channel) = *fresh;
    emitter->batches.count = 0;
    quern__pool_drop_batch(&channel->world->events->pool, &old);
    quern__emitter_reclaim(emitter);
}

static quern_result fail_memory(const quern__channel *channel, uint32_t count)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_world_emit: no memory for %u events '%s'", count,
                       channel->type.name);
}

/* Moves the last waiting batch to a place with room for a whole batch, and extends it there. Not inlined: nearly all
 * events extend a batch in place. */
static QUERN__NO_INLINE quern_result move_and_extend(quern__channel *channel, const void *values,
                                                     uint32_t count)
{
    const quern__event_batch last = *quern__channel_batch(channel, quern__channel_end(channel) - 1);
    quern__emitter *emitter = &channel->emitter;
    quern__emitter_open(emitter, channel, 0, NULL, NULL);
    const bool has_room =
        quern__emitter_reserve(emitter, last.count + count) && quern__channel_reserve(channel, 0);
    if (has_room) {
        quern__emitter_put(emitter, last.values, last.count);
        quern__emitter_put(emitter, values, count);
    }
    quern__emitter_close(emitter);
    if (!has_room) return fail_memory(channel, count);
    replace_last(channel, emitter);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- emitting */

static quern_result check_values(const quern__channel *channel, const void *values, uint32_t count)
{
    const quern__type *type = &channel->type;
    if (values == NULL && count > 0 && type->size_bytes > 0)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                           "'values' is NULL, but event '%s' has %u bytes: pass the values", type->name,
                           type->size_bytes);
    if (!type->has_entity_fields) return QUERN_OK;
    const quern_entity found = quern__type_find_provisional(type, values, count);
    if (found.bits == 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "an event '%s' contains the provisional handle of a deferred create (number %u), which only a "
        "sync point replaces: emit it in the system that creates the entity",
        type->name, quern_entity_index(found));
}

/* Emits and publishes immediately, so the channel's own emitter never holds values between calls. */
static QUERN__NO_INLINE quern_result publish_batch(quern__channel *channel, const void *values,
                                                   uint32_t count)
{
    quern__event_loss loss = {.channel = NULL};
    if (quern__channel_would_drop(channel)) return QUERN_OK;
    quern__emitter *emitter = &channel->emitter;
    quern__emitter_open(emitter, channel, 0, NULL, NULL);
    if (!quern__emitter_reserve(emitter, count) ||
        !quern__channel_reserve(channel, emitter->batches.capacity)) {
        quern__emitter_close(emitter);
        return fail_memory(channel, count);
    }
    quern__emitter_put(emitter, values, count);
    quern__emitter_close(emitter);
    quern__channel_publish(channel, emitter, &loss);
    return loss.channel != NULL ? quern__event_loss_fail(&loss, "quern_world_emit") : QUERN_OK;
}

static quern_result emit(quern_world *world, quern_event event, const void *values, uint32_t count)
{
    static const char function[] = "quern_world_emit";
    quern__channel *channel;
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = quern__events_check(world, event, &channel);
    if (result == QUERN_OK) result = check_values(channel, values, count);
    if (result != QUERN_OK || count == 0) return quern__in_call(result, function);
    if (!can_extend(channel, count)) return publish_batch(channel, values, count);
    return extend_in_place(channel, values, count) ? QUERN_OK : move_and_extend(channel, values, count);
}

quern_result quern_world_emit(quern_world *world, quern_event event, const void *values, uint32_t count)
{
    if (world == NULL) return quern__fail_null("quern_world_emit", "world");
    if (!quern__world_enter(world, "quern_world_emit")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, emit(world, event, values, count));
}

/* -------------------------------------------------------------------------------------------- reading */

static quern_result create_reader(quern_world *world, const quern_event_reader_def *def,
                                  quern_event_reader **out_reader)
{
    const char *name = def->name != NULL ? def->name : "a reader";
    quern__channel *channel;
    quern_result result = quern__world_check_unlocked(world, "quern_event_reader_create");
    if (result == QUERN_OK) result = quern__check_name(name, "reader");
    if (result == QUERN_OK) result = quern__events_check(world, def->event, &channel);
    if (result != QUERN_OK) return result;
    quern_event_reader *reader = quern__reader_create(channel, name);
    if (reader == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a reader of event '%s'",
                           channel->type.name);
    world->user_count++;
    *out_reader = reader;
    return QUERN_OK;
}

quern_result quern_event_reader_create(quern_world *world, const quern_event_reader_def *def,
                                       quern_event_reader **out_reader)
{
    static const char function[] = "quern_event_reader_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (def == NULL) return quern__fail_null(function, "def");
    if (out_reader == NULL) return quern__fail_null(function, "out_reader");
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, quern__in_call(create_reader(world, def, out_reader), function));
}

/* Asking for the next batch counts the one that the reader holds as seen. */
bool quern_event_reader_next(quern_event_reader *reader, quern_event_block *out_block)
{
    static const char function[] = "quern_event_reader_next";
    if (reader == NULL || out_block == NULL) {
        quern__fail_null(function, reader == NULL ? "reader" : "out_block");
        return false;
    }
    *out_block = (quern_event_block){.values = NULL};
    const quern__channel *channel = reader->channel;
    if (quern__world_check_unlocked(channel->world, function) != QUERN_OK) return false;
    if (reader->has_batch) reader->cursor++;
    reader->has_batch = reader->cursor < quern__channel_end(channel);
    if (!reader->has_batch) return false;
    const quern__event_batch *batch = quern__channel_batch(channel, reader->cursor);
    *out_block = (quern_event_block){.values = batch->values, .count = batch->count};
    return true;
}

uint64_t quern_event_reader_lost_count(const quern_event_reader *reader)
{
    if (reader != NULL) return reader->lost_count;
    quern__fail_null("quern_event_reader_lost_count", "reader");
    return 0;
}

void quern_event_reader_destroy(quern_event_reader *reader)
{
    if (reader == NULL) return;
    quern_world *world = reader->channel->world;
    if (quern__world_check_unlocked(world, "quern_event_reader_destroy") != QUERN_OK) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_event_reader_destroy: " QUERN__WORLD_LOCKERS
                                " is running on its world; destroy the reader afterwards");
        return;
    }
    world->user_count--;
    quern__reader_destroy(reader);
}

bool quern_event_next(quern_event_iterator *iterator)
{
    const quern__channel *channel = iterator->channel;
    if (iterator->number >= iterator->end || iterator->number < channel->first_number) {
        iterator->block = (quern_event_block){.values = NULL};
        return false;
    }
    const quern__event_batch *batch = quern__channel_batch(channel, iterator->number++);
    iterator->block = (quern_event_block){.values = batch->values, .count = batch->count};
    return true;
}
