/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Events of a world: the registry of channels, readers, dropping of batches that were read or exceed a limit,
 * publication at sync points, immediate events, reading, and saved events. */
#include "core/events/event_internal.h"

#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/base/handle.h"

#include <quern/loader.h>

#include <stdio.h>

/* ----------------------------------------------------------------------------------- waiting batches */

/* Returns the bytes of a batch that count towards the limit: those of its values, plus a constant, so that many small
 * batches reach the limit, too. */
static uint64_t waiting_bytes(const quern__channel *channel, const quern__event_batch *batch)
{
    enum { BATCH_BYTES = 32 };
    return (uint64_t)batch->count * channel->stride_bytes + BATCH_BYTES;
}

/* Appends a batch, for which room was reserved. Returns its number of events. */
static uint64_t channel_append(quern__channel *channel, const quern__event_batch *batch)
{
    channel->batches.items[channel->batches.count++] = *batch;
    channel->waiting_count += batch->count;
    channel->waiting_bytes += waiting_bytes(channel, batch);
    channel->world->waiting_event_batch_count++;
    return batch->count;
}

/* Drops the first waiting batch. */
static void channel_drop_first(quern__channel *channel)
{
    quern_world *world = channel->world;
    const quern__event_batch *batch = &channel->batches.items[channel->head++];
    channel->first_number++;
    channel->waiting_count -= batch->count;
    channel->waiting_bytes -= waiting_bytes(channel, batch);
    world->waiting_event_batch_count--;
    quern__type_destroy(&channel->type, batch->values, batch->count);
    quern__pool_drop_batch(&world->events->pool, batch);
}

/* Drops all waiting batches of a channel. */
static void channel_drop_all(quern__channel *channel)
{
    while (channel->head < channel->batches.count)
        channel_drop_first(channel);
    channel->head = channel->batches.count = 0;
}

/* Restores the waiting batches of a channel into blocks that were reserved before. Batches keep their sizes. Their
 * values may be in other blocks than before, because no caller can see blocks; so the batches of a channel are packed
 * in order. Counting and packing divide the same batches in the same way. */

typedef struct event_packing {
    quern__event_block **blocks; /* list of reserved blocks; packing takes them from the front */
    quern__event_block *block;   /* the block that is filled */
    size_t left_bytes;           /* free bytes of that block */
} event_packing;

/* Reserves a block for a batch of this size, unless the previous batches leave enough room. Returns false if out of
 * memory. Precondition: the batch fits in a block. */
static inline bool packing_reserve(event_packing *packing, quern_world *world, size_t bytes)
{
    if (packing->left_bytes < bytes) {
        if (!quern__pool_get_block(&world->events->pool, &world->storage.allocator, packing->blocks))
            return false;
        packing->left_bytes = QUERN__EVENT_VALUES_BYTES;
    }
    packing->left_bytes -= bytes;
    return true;
}

/* Appends a batch of `count` values to the channel and returns the memory for its values, which the caller must fill.
 * Preconditions: blocks were reserved for all batches in this order, and channel->batches has room. */
static char *packing_append(event_packing *packing, quern__channel *channel, uint32_t count)
{
    const size_t bytes = (size_t)count * channel->stride_bytes;
    if (packing->left_bytes < bytes) {
        packing->block = *packing->blocks;
        assert(packing->block != NULL);
        *packing->blocks = packing->block->next;
        packing->left_bytes = QUERN__EVENT_VALUES_BYTES;
    }
    assert(packing->block != NULL);
    const quern__event_batch batch = {.values = (char *)packing->block + QUERN__EVENT_BLOCK_BYTES -
                                                packing->left_bytes,
                                      .count = count,
                                      .block = packing->block};
    packing->left_bytes -= bytes;
    packing->block->use_count++;
    channel_append(channel, &batch);
    return batch.values;
}

/* ------------------------------------------------------------------------------------------- registry */

static const quern__registry registry = QUERN__REGISTRY_OF_POINTERS(
    "event", "world", QUERN_MAX_EVENTS, QUERN_ERROR_UNKNOWN_EVENT, quern__channel, type.name);

static uint32_t world_tag(const quern_world *world)
{
    return world->resources.world_tag;
}

static quern_event handle_of(const quern_world *world, uint32_t index)
{
    return (quern_event){.bits = quern__handle_bits(world_tag(world), index)};
}

quern_result quern__events_check(const quern_world *world, quern_event event, quern__channel **out_channel)
{
    if (!quern__handle_is_valid(event.bits, world_tag(world), quern__events_channel_count(world)))
        return quern__registry_fail_unknown(&registry, event.bits, world_tag(world));
    *out_channel = world->events->channels.items[quern__handle_index(event.bits)];
    return QUERN_OK;
}

static void channel_release(quern__channel *channel, const quern_allocator *allocator)
{
    quern__array_release(allocator, &channel->batches);
    quern__array_release(allocator, &channel->order);
    quern__array_release(allocator, &channel->sort_scratch);
    quern__type_release(&channel->type, allocator);
    quern__release(allocator, channel, sizeof *channel, _Alignof(quern__channel));
}

static quern_result check_def(const quern_event_def *def)
{
    const uint32_t alignment_bytes = def->alignment_bytes ? def->alignment_bytes : 1;
    if (def->size_bytes > QUERN_MAX_COMPONENT_BYTES)
        return quern__fail(QUERN_ERROR_COMPONENT_TOO_LARGE,
                           "event '%.63s' has %u bytes; the limit is %d (QUERN_MAX_COMPONENT_BYTES): keep "
                           "large data elsewhere and an index in the event",
                           def->name, def->size_bytes, QUERN_MAX_COMPONENT_BYTES);
    if (def->size_bytes == 0 && quern__hooks_exist(&def->hooks))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "event '%.63s' has 0 bytes and hooks, which would never run: remove the hooks",
                           def->name);
    if (quern__is_power_of_two(alignment_bytes) && def->size_bytes % alignment_bytes != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "event '%.63s' has %u bytes, which is not a multiple of its alignment %u: pad it", def->name,
            def->size_bytes, alignment_bytes);
    return QUERN_OK;
}

static void set_layout(quern__channel *channel)
{
    const quern__type *type = &channel->type;
    channel->stride_bytes = type->size_bytes > 0 ? type->size_bytes : 1;
    channel->batch_bytes = QUERN__EVENT_BATCH_BYTES / channel->stride_bytes * channel->stride_bytes;
    channel->needs_checks = QUERN_CHECKS || type->hooks.copy != NULL || type->size_bytes == 0;
}

static quern_result channel_create(quern_world *world, const quern_event_def *def,
                                   quern__channel **out_channel)
{
    const quern_allocator *allocator = &world->storage.allocator;
    quern_result result = quern__check_name(def->name, "event");
    if (result == QUERN_OK) result = check_def(def);
    if (result != QUERN_OK) return result;
    quern__channel *channel = quern__allocate(allocator, sizeof *channel, _Alignof(quern__channel));
    if (channel == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to register an event");
    *channel = (quern__channel){.world = world};
    result =
        quern__type_init(&channel->type, allocator, "event", def->name, def->type_name, def->size_bytes,
                         def->alignment_bytes ? def->alignment_bytes : 1, &def->hooks, def->fields);
    if (result != QUERN_OK) {
        channel_release(channel, allocator);
        return result;
    }
    channel->type.flags = def->is_hidden ? QUERN__FLAG_IS_HIDDEN : 0;
    channel->type.type_id = def->type_id;
    set_layout(channel);
    channel->limit_bytes = def->limit_bytes > 0 ? def->limit_bytes : QUERN_EVENT_LIMIT_BYTES;
    *out_channel = channel;
    return QUERN_OK;
}

static quern_result append(quern_world *world, quern__channel *channel)
{
    const quern_allocator *allocator = &world->storage.allocator;
    if (world->events == NULL) {
        quern__events *events = quern__allocate(allocator, sizeof *events, _Alignof(quern__events));
        if (events != NULL) {
            *events = (quern__events){.channels = {0}};
            atomic_init(&events->pool.taken_count, 0);
            atomic_init(&events->pool.block_count, 0);
            world->events = events;
        }
    }
    if (world->events == NULL) return quern__registry_fail_memory(&registry, channel->type.name);
    const quern_result result =
        quern__registry_reserve(&registry, allocator, &world->events->channels, channel->type.name);
    if (result != QUERN_OK) return result;
    quern__type_ids *ids = &world->events->type_ids;
    if (channel->type.type_id != 0 && !quern__type_ids_reserve(ids, allocator))
        return quern__registry_fail_memory(&registry, channel->type.name);
    channel->index = world->events->channels.count;
    world->events->channels.items[world->events->channels.count++] = channel;
    quern__type_identify(&channel->type, ids, channel->type.type_id, handle_of(world, channel->index).bits);
    return QUERN_OK;
}

/* Registering a name again succeeds if type and limit are the same; the new channel is then released. */
static quern_result check_known(const quern__channel *known, const quern__channel *added)
{
    if (quern__type_same_layout(&known->type, &added->type) && known->limit_bytes == added->limit_bytes)
        return QUERN_OK;
    if (known->type.type_id != 0 && added->type.type_id != 0 && known->type.type_id != added->type.type_id)
        return quern__type_check_same_layout(&known->type, &added->type, registry.what);
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "event '%s' is registered with another layout or limit (%u bytes aligned to %u, limit "
        "%llu; now %u aligned to %u, limit %llu; or other hooks or fields): register the same definition",
        known->type.name, known->type.size_bytes, known->type.alignment_bytes,
        (unsigned long long)known->limit_bytes, added->type.size_bytes, added->type.alignment_bytes,
        (unsigned long long)added->limit_bytes);
}

quern_result quern_event_register(quern_world *world, const quern_event_def *def, quern_event *out_event)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_event);
    if (world->loader != NULL)
        return world->loader->register_type(world->loader->user_data, QUERN_TYPE_EVENT, def,
                                            &out_event->bits);
    quern__channel *channel = NULL;
    quern_result result = channel_create(world, def, &channel);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const quern_event known = quern_event_find(world, channel->type.name);
    if (known.bits != 0)
        result = check_known(world->events->channels.items[quern__handle_index(known.bits)], channel);
    else
        result = append(world, channel);
    if (result == QUERN_OK) *out_event = known.bits != 0 ? known : handle_of(world, channel->index);
    if (result != QUERN_OK || known.bits != 0) channel_release(channel, &world->storage.allocator);
    return quern__in_call(result, __func__);
}

/* Returns how many batches of the new layout a batch becomes. */
static uint32_t count_parts(const quern__event_batch *batch, uint32_t most_count)
{
    return (batch->count + most_count - 1) / most_count;
}

/* Converts the waiting events. The batches of the new layout may be more, since a batch has a maximum size; readers are
 * at the same event. Errors, with nothing changed: INVALID_ARGUMENT, OUT_OF_MEMORY. */
static quern_result convert_events(quern__channel *channel, quern__redefinition *it, uint32_t *out_frames)
{
    quern_world *world = channel->world;
    const quern_allocator *allocator = &world->storage.allocator;
    quern__channel fresh = {.type = {.size_bytes = channel->type.size_bytes, .hooks = channel->type.hooks}};
    set_layout(&fresh);
    const uint32_t most_count = fresh.batch_bytes / fresh.stride_bytes;
    quern__event_block *blocks = NULL;
    event_packing packing = {.blocks = &blocks};
    quern_result result = QUERN_OK;
    uint32_t part_count = 0;
    bool has_room = true;
    /* Relaxed: only the thread that has the world redefines. */
    if (atomic_load_explicit(&world->failed_schedule_count, memory_order_relaxed) > 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the last frame of a schedule has failed, so events '%s' may not be published yet: run "
            "a frame of that schedule first",
            channel->type.name);
    for (uint32_t i = channel->head; i < channel->batches.count && result == QUERN_OK && has_room; i++) {
        const quern__event_batch *batch = &channel->batches.items[i];
        result = quern__type_change_check(&it->change, batch->values, batch->count);
        for (uint32_t left = batch->count, count; left > 0 && has_room; left -= count, part_count++) {
            count = left < most_count ? left : most_count;
            has_room = packing_reserve(&packing, world, (size_t)count * fresh.stride_bytes);
        }
    }
    if (result == QUERN_OK && has_room)
        has_room = quern__array_reserve(allocator, &fresh.batches, part_count) &&
                   quern__pool_reserve(&world->events->pool, allocator);
    if (result == QUERN_OK && !has_room)
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "event '%s': no memory to convert its waiting events", channel->type.name);
    if (result == QUERN_OK && it->only_checks) result = QUERN__CHECKED;
    if (result != QUERN_OK) {
        quern__packing_undo(world, &blocks);
        quern__array_release(allocator, &fresh.batches);
        return result;
    }
    *out_frames = quern__redefine_drop_frames(it);
    quern__channel old = *channel;
    channel->batches.items = fresh.batches.items;
    channel->batches.capacity = fresh.batches.capacity;
    channel->batches.count = channel->head = 0;
    channel->waiting_count = channel->waiting_bytes = 0;
    world->waiting_event_batch_count -= old.batches.count - old.head;
    set_layout(channel);
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        const uint64_t unseen = reader->cursor + (reader->has_batch ? 1 : 0);
        reader->cursor = old.first_number;
        for (uint64_t n = old.first_number; n < unseen; n++)
            reader->cursor +=
                count_parts(&old.batches.items[old.head + (uint32_t)(n - old.first_number)], most_count);
        reader->has_batch = false; /* its values are gone */
    }
    packing = (event_packing){.blocks = &blocks};
    quern__world_set_locked(world, true); /* a migration must not call functions of the world */
    for (uint32_t i = old.head; i < old.batches.count; i++) {
        const quern__event_batch *batch = &old.batches.items[i];
        for (uint32_t at = 0, count; at < batch->count; at += count) {
            count = batch->count - at < most_count ? batch->count - at : most_count;
            quern__type_change_values(&it->change, packing_append(&packing, channel, count),
                                      batch->values + (size_t)at * old.stride_bytes, count);
        }
        quern__pool_drop_batch(&world->events->pool, batch);
    }
    quern__world_set_locked(world, false);
    quern__array_release(allocator, &old.batches);
    quern__emitter_reclaim(&channel->emitter);
    return QUERN_OK;
}

quern_result quern_event_redefine(quern_world *world, quern_event event, const quern_event_def *def,
                                  const quern_redefine_def *how, quern_redefine_report *out_report)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    const quern_allocator *allocator = &world->storage.allocator;
    quern__channel *channel, *fresh = NULL;
    quern_result result = quern__redefine_check_frames(world, __func__);
    if (result != QUERN_OK) return result;
    result = quern__events_check(world, event, &channel);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__redefinition it = {.world = world,
                              .what = registry.what,
                              .type = &channel->type,
                              .ids = &world->events->type_ids,
                              .handle_bits = event.bits};
    quern_event_def named = *def;
    result = quern__redefine_check_name(it.type, &named.name, it.what);
    if (result == QUERN_OK) result = channel_create(world, &named, &fresh);
    const uint64_t limit_bytes = fresh != NULL ? fresh->limit_bytes : 0;
    if (fresh != NULL) {
        it.fresh = fresh->type;
        fresh->type = (quern__type){.size_bytes = 0};
        channel_release(fresh, allocator);
    }
    uint32_t frame_count = 0;
    result = quern__redefine_begin(&it, result, QUERN__NO_COMPONENT, how, out_report);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    if (it.is_converted) result = convert_events(channel, &it, &frame_count);
    result = quern__redefine_end(&it, result, out_report);
    if (result != QUERN_OK || it.only_checks) return quern__in_call(result, __func__);
    channel->limit_bytes = limit_bytes;
    if (out_report != NULL) out_report->dropped_frame_count = frame_count;
    return QUERN_OK;
}

quern_event quern_event_find(const quern_world *world, const char *name)
{
    QUERN__NEED_OR(world, (quern_event){0});
    QUERN__NEED_OR(name, (quern_event){0});
    const uint32_t count = quern__events_channel_count(world);
    const void *channels = count > 0 ? world->events->channels.items : NULL;
    const uint32_t i = quern__registry_find(&registry, channels, 0, count, name);
    return i < count ? handle_of(world, i) : (quern_event){0};
}

const char *quern_event_name(const quern_world *world, quern_event event)
{
    QUERN__NEED_OR(world, NULL);
    quern__channel *channel;
    const quern_result result = quern__events_check(world, event, &channel);
    return quern__in_call(result, __func__) == QUERN_OK ? channel->type.name : NULL;
}

quern_result quern_event_get_stats(const quern_world *world, quern_event event,
                                   quern_event_stats *out_stats)
{
    QUERN__NEED(world);
    QUERN__NEED(out_stats);
    quern__channel *channel;
    const quern_result result = quern__events_check(world, event, &channel);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    *out_stats = (quern_event_stats){.waiting_count = channel->waiting_count,
                                     .waiting_bytes = channel->waiting_bytes,
                                     .lost_count = channel->lost_count};
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        out_stats->reader_count++;
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- readers */

quern_event_reader *quern__reader_create(quern__channel *channel, const char *name)
{
    quern_event_reader *reader =
        quern__allocate(&channel->world->storage.allocator, sizeof *reader, _Alignof(quern_event_reader));
    if (reader == NULL) return NULL;
    const uint64_t end = quern__channel_end(channel);
    *reader = (quern_event_reader){.channel = channel,
                                   .identity = ++channel->world->events->last_identity,
                                   .cursor = end,
                                   .end = end,
                                   .next = channel->readers};
    memcpy(reader->name, name, strlen(name) + 1);
    if (channel->readers != NULL) channel->readers->previous = reader;
    channel->readers = reader;
    return reader;
}

void quern__reader_destroy(quern_event_reader *reader)
{
    quern__channel *channel = reader->channel;
    if (reader->previous != NULL)
        reader->previous->next = reader->next;
    else
        channel->readers = reader->next;
    if (reader->next != NULL) reader->next->previous = reader->previous;
    quern__release(&channel->world->storage.allocator, reader, sizeof *reader,
                   _Alignof(quern_event_reader));
}

uint64_t quern__channel_count(const quern__channel *channel, uint64_t number, uint64_t end)
{
    uint64_t count = 0;
    for (uint64_t i = number < channel->first_number ? channel->first_number : number; i < end; i++)
        count += quern__channel_batch(channel, i)->count;
    return count;
}

/* ---------------------------------------------------------------------------------------- dropping */

/* Counts the batches that readers hold as seen. Called before a publication, which invalidates their values, so that no
 * loss is reported of events that a reader was given. */
static void count_held_as_seen(const quern__channel *channel)
{
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        if (reader->has_batch) reader->cursor++;
        reader->has_batch = false;
    }
}

/* Drops the batches that all readers have seen. The remaining ones move to the front of the array once they are at
 * most half of it, so that each batch is moved at most once on average. */
static void drop_seen(quern__channel *channel)
{
    uint64_t needed = quern__channel_end(channel); /* the first batch that some reader has not seen */
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        if (reader->cursor < needed) needed = reader->cursor;
    while (channel->first_number < needed)
        channel_drop_first(channel);
    const uint32_t left = channel->batches.count - channel->head;
    if (channel->head < left || channel->head == 0) return;
    if (left > 0)
        memmove(channel->batches.items, channel->batches.items + channel->head,
                left * sizeof *channel->batches.items);
    channel->batches.count = left;
    channel->head = 0;
}

static void note_loss(quern__event_loss *loss, const quern__channel *channel,
                      const quern_event_reader *reader, uint64_t count)
{
    if (loss->channel == NULL) {
        *loss = (quern__event_loss){.channel = channel};
        memcpy(loss->reader_name, reader->name, sizeof loss->reader_name);
    }
    if (loss->channel == channel && strcmp(loss->reader_name, reader->name) == 0)
        loss->count += count;
    else
        loss->other_count++;
}

/* Drops the oldest batches while the waiting bytes exceed the limit. Each reader that has not seen a dropped batch
 * loses its events. Precondition: no reader holds a batch (count_held_as_seen). */
static void enforce_limit(quern__channel *channel, uint64_t first_new, quern__event_loss *loss)
{
    if (QUERN__LIKELY(channel->waiting_bytes <= channel->limit_bytes)) return;
    uint64_t retained =
        first_new; /* batches from here on stay: new ones, and those that a running system may read */
    for (const quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
        if (reader->is_running && reader->cursor < retained) retained = reader->cursor;
    uint64_t bytes = channel->waiting_bytes, first = channel->first_number;
    for (; first < retained && bytes > channel->limit_bytes; first++)
        bytes -= waiting_bytes(channel, quern__channel_batch(channel, first));
    for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next) {
        if (reader->cursor >= first) continue;
        const uint64_t count = quern__channel_count(channel, reader->cursor, first);
        reader->cursor = first;
        reader->lost_count += count;
        channel->lost_count += count;
        note_loss(loss, channel, reader, count);
    }
    while (channel->first_number < first)
        channel_drop_first(channel);
}

quern_result quern__event_loss_fail(const quern__event_loss *loss, const char *call)
{
    char others[64] = "";
    if (loss->other_count > 0)
        snprintf(others, sizeof others, " (other readers have lost events, too: %u times)",
                 loss->other_count);
    return quern__fail(
        QUERN_ERROR_LIMIT,
        "%s: %llu events '%s' were dropped that reader '%s' had not seen%s: more than %llu bytes "
        "wait for it: let the reader read, destroy it, or raise the event's limit_bytes",
        call, (unsigned long long)loss->count, loss->channel->type.name, loss->reader_name, others,
        (unsigned long long)loss->channel->limit_bytes);
}

/* ---------------------------------------------------------------------------------------- publication */

static uint32_t batch_count(const quern__emitter_rows *rows, uint32_t channel)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->row_count; i++)
        count += rows->emitters[i * rows->channel_count + channel]->batches.count;
    return count;
}

static bool gather_channel(const quern_allocator *allocator, quern__channel *channel,
                           const quern__emitter_rows *rows)
{
    const uint32_t count = batch_count(rows, channel->index);
    channel->order.count = 0;
    if (count == 0) return true;
    if (!quern__array_reserve(allocator, &channel->order, count) ||
        !quern__array_reserve(allocator, &channel->sort_scratch, count) ||
        !quern__array_reserve(allocator, &channel->batches, channel->batches.count + count))
        return false;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const quern__emitter *emitter = rows->emitters[i * rows->channel_count + channel->index];
        for (uint32_t k = 0; k < emitter->batches.count; k++)
            channel->order.items[channel->order.count++] = (quern__sort_item){
                .key = emitter->batches.items[k].key, .pointer = &emitter->batches.items[k]};
    }
    quern__sort(channel->order.items, channel->sort_scratch.items, count);
    return true;
}

quern_result quern__events_gather(quern_world *world, const quern__emitter_rows *rows)
{
    const quern_allocator *allocator = &world->storage.allocator;
    quern__events *events = world->events;
    quern__pool_forget_taken(&events->pool);
    bool has_room = quern__pool_reserve(&events->pool, allocator);
    for (uint32_t i = 0; i < rows->channel_count && has_room; i++)
        has_room = gather_channel(allocator, events->channels.items[i], rows);
    if (has_room) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory to publish events; they are kept for the next sync point");
}

void quern__events_visit_entities(const quern_world *world, const quern__emitter_rows *rows,
                                  quern__event_visit *visit, void *argument)
{
    for (uint32_t i = 0; i < rows->channel_count; i++) {
        const quern__channel *channel = world->events->channels.items[i];
        for (uint32_t k = 0; k < channel->order.count && channel->type.has_entity_fields; k++)
            visit(argument, &channel->type, channel->order.items[k].pointer);
    }
}

/* Drops waiting batches: all of them if the channel has no reader, otherwise the oldest ones until the channel is
 * within its limit. With readers, batches from first_new on are kept, because they were just published. */
static void drop_excess(quern__channel *channel, uint64_t first_new, quern__event_loss *loss)
{
    if (channel->readers == NULL)
        drop_seen(channel);
    else
        enforce_limit(channel, first_new, loss);
}

static uint64_t publish_channel(quern__channel *channel, quern__event_loss *loss)
{
    uint64_t count = 0;
    const uint64_t first_new = quern__channel_end(channel);
    for (uint32_t i = 0; i < channel->order.count; i++) {
        const quern__keyed_batch *keyed = channel->order.items[i].pointer;
        count += channel_append(channel, &keyed->batch);
    }
    channel->order.count = 0;
    drop_excess(channel, first_new, loss);
    return count;
}

uint64_t quern__events_publish(quern_world *world, const quern__emitter_rows *rows, quern__event_loss *loss)
{
    uint64_t count = 0;
    quern__events *events = world->events;
    for (uint32_t i = 0; i < events->channels.count; i++) {
        quern__channel *channel = events->channels.items[i];
        if (channel->head < channel->batches.count) {
            count_held_as_seen(channel);
            drop_seen(channel);
        }
        if (i < rows->channel_count && channel->order.count > 0) count += publish_channel(channel, loss);
        quern__emitter_reclaim(&channel->emitter);
    }
    for (uint32_t i = 0; i < rows->row_count * rows->channel_count; i++) {
        rows->emitters[i]->batches.count = 0;
        quern__emitter_reclaim(rows->emitters[i]);
    }
    return count;
}

/* Publish the batches of one emitter outside of frames. The first function reserves memory for the batches; it returns
 * false if out of memory. The second publishes the batches and cannot fail. */
static bool channel_reserve(quern__channel *channel, uint32_t batch_count)
{
    const quern_allocator *allocator = &channel->world->storage.allocator;
    quern__event_pool *pool = &channel->world->events->pool;
    quern__pool_forget_taken(pool);
    return quern__pool_reserve(pool, allocator) &&
           quern__array_reserve(allocator, &channel->batches, channel->batches.count + batch_count);
}

/* -------------------------------------------------------------------------------- all events of a world */

/* Relaxed: no callback emits meanwhile. */
uint64_t quern__events_held_bytes(const quern_world *world)
{
    if (world->events == NULL) return 0;
    return (uint64_t)atomic_load_explicit(&world->events->pool.block_count, memory_order_relaxed) *
           QUERN__EVENT_BLOCK_BYTES;
}

/* Relaxed: no callback emits meanwhile. */
static void release_free_blocks(quern_world *world)
{
    quern__event_pool *pool = &world->events->pool;
    quern__pool_forget_taken(pool);
    for (; pool->free.count > 0; pool->free.count--) {
        quern__release(&world->storage.allocator, pool->free.items[pool->free.count - 1],
                       QUERN__EVENT_BLOCK_BYTES, QUERN__EVENT_BLOCK_ALIGNMENT_BYTES);
        atomic_fetch_sub_explicit(&pool->block_count, 1, memory_order_relaxed);
    }
}

void quern__events_trim(quern_world *world)
{
    if (world->events == NULL) return;
    quern__pool_forget_taken(&world->events->pool);
    if (quern__pool_reserve(&world->events->pool, &world->storage.allocator))
        for (uint32_t i = 0; i < world->events->channels.count; i++) {
            quern__channel *channel = world->events->channels.items[i];
            drop_seen(channel);
            quern__emitter_reclaim(&channel->emitter);
        }
    release_free_blocks(world);
}

void quern__events_drop_hooked(quern_world *world)
{
    for (uint32_t i = 0; world->events != NULL && i < world->events->channels.count; i++) {
        quern__channel *channel = world->events->channels.items[i];
        while (channel->type.hooks.destroy != NULL && channel->head < channel->batches.count)
            channel_drop_first(channel);
    }
}

void quern__events_name_reader(const quern_world *world, char *text, size_t bytes)
{
    for (uint32_t i = 0; world->events != NULL && i < world->events->channels.count; i++) {
        const quern__channel *channel = world->events->channels.items[i];
        if (channel->readers == NULL) continue;
        (void)snprintf(text, bytes, "reader %llu, '%s', of event '%s'",
                       (unsigned long long)channel->readers->identity, channel->readers->name,
                       channel->type.name);
        return;
    }
}

void quern__events_release(quern_world *world)
{
    quern__events *events = world->events;
    if (events == NULL) return;
    const quern_allocator *allocator = &world->storage.allocator;
    quern__pool_forget_taken(&events->pool);
    for (uint32_t i = 0; i < events->channels.count; i++) {
        quern__channel *channel = events->channels.items[i];
        for (uint32_t k = channel->head; k < channel->batches.count; k++) {
            const quern__event_batch *batch = &channel->batches.items[k];
            quern__type_destroy(&channel->type, batch->values, batch->count);
            if (--batch->block->use_count == 0)
                quern__release(allocator, batch->block, QUERN__EVENT_BLOCK_BYTES,
                               QUERN__EVENT_BLOCK_ALIGNMENT_BYTES);
        }
        quern__emitter_release(&channel->emitter);
        channel_release(channel, allocator);
    }
    release_free_blocks(world);
    quern__array_release(allocator, &events->pool.free);
    quern__array_release(allocator, &events->channels);
    quern__type_ids_release(&events->type_ids, allocator);
    quern__release(allocator, events, sizeof *events, _Alignof(quern__events));
    world->events = NULL;
}

/* Events in code between frames: emitting, and reading. */

/* ----------------------------------------------------------------------------- extending the last batch */

static quern__event_batch *last_batch(const quern__channel *channel)
{
    return &channel->batches.items[channel->batches.count - 1];
}

/* Returns whether `count` events extend the last waiting batch: if it stays within the size of a batch and the
 * channel within its limit, readers exist and none has begun it, and the type is plain bytes. Without readers a
 * publication drops the waiting batches. Depends only on what a history saves, and not on the memory of the batch. */
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

/* Appends values to the last waiting batch if the memory after it is free and the emitter's. Returns false, with
 * nothing changed, if it is not. Precondition: can_extend. */
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
        quern__emitter_reserve(emitter, last.count + count) && channel_reserve(channel, 0);
    if (has_room) {
        quern__emitter_put(emitter, last.values, last.count);
        quern__emitter_put(emitter, values, count);
    }
    quern__emitter_close(emitter);
    if (!has_room) return fail_memory(channel, count);
    assert(emitter->batches.count == 1);
    const quern__event_batch old = *last_batch(channel), *fresh = &emitter->batches.items[0].batch;
    count_extension(channel, fresh->count - old.count);
    *last_batch(channel) = *fresh;
    emitter->batches.count = 0;
    quern__pool_drop_batch(&channel->world->events->pool, &old);
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
    const bool would_drop = channel->readers == NULL && channel->head == channel->batches.count;
    if (would_drop && !quern__hooks_own_resources(&channel->type.hooks)) return QUERN_OK;
    quern__emitter *emitter = &channel->emitter;
    quern__emitter_open(emitter, channel, 0, NULL, NULL);
    if (!quern__emitter_reserve(emitter, count) || !channel_reserve(channel, emitter->batches.capacity)) {
        quern__emitter_close(emitter);
        return fail_memory(channel, count);
    }
    quern__emitter_put(emitter, values, count);
    quern__emitter_close(emitter);
    count_held_as_seen(channel);
    drop_seen(channel);
    const uint64_t first_new = quern__channel_end(channel);
    for (uint32_t i = 0; i < emitter->batches.count; i++)
        channel_append(channel, &emitter->batches.items[i].batch);
    emitter->batches.count = 0;
    drop_excess(channel, first_new, &loss);
    quern__emitter_reclaim(emitter);
    return loss.channel != NULL ? quern__event_loss_fail(&loss, "quern_world_emit") : QUERN_OK;
}

quern_result quern_world_emit(quern_world *world, quern_event event, const void *values, uint32_t count)
{
    QUERN__ENTER_UNLOCKED(world);
    quern__channel *channel;
    quern_result result = quern__events_check(world, event, &channel);
    if (result == QUERN_OK) result = check_values(channel, values, count);
    if (result != QUERN_OK || count == 0) return quern__in_call(result, __func__);
    if (!can_extend(channel, count)) return publish_batch(channel, values, count);
    return extend_in_place(channel, values, count) ? QUERN_OK : move_and_extend(channel, values, count);
}

/* -------------------------------------------------------------------------------------------- reading */

quern_result quern_event_reader_create(quern_world *world, const quern_event_reader_def *def,
                                       quern_event_reader **out_reader)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_reader);
    const char *name = def->name != NULL ? def->name : "a reader";
    quern__channel *channel;
    quern_result result = quern__check_name(name, "reader");
    if (result == QUERN_OK) result = quern__events_check(world, def->event, &channel);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern_event_reader *reader = quern__reader_create(channel, name);
    if (reader == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a reader of event '%s'", __func__,
                           channel->type.name);
    world->user_count++;
    *out_reader = reader;
    return QUERN_OK;
}

/* Asking for the next batch counts the one that the reader holds as seen. */
bool quern_event_reader_next(quern_event_reader *reader, quern_event_block *out_block)
{
    QUERN__NEED_OR(reader, false);
    QUERN__NEED_OR(out_block, false);
    *out_block = (quern_event_block){.values = NULL};
    const quern__channel *channel = reader->channel;
    if (quern__world_check_unlocked(channel->world, __func__) != QUERN_OK) return false;
    if (reader->has_batch) reader->cursor++;
    reader->has_batch = reader->cursor < quern__channel_end(channel);
    if (!reader->has_batch) return false;
    const quern__event_batch *batch = quern__channel_batch(channel, reader->cursor);
    *out_block = (quern_event_block){.values = batch->values, .count = batch->count};
    return true;
}

uint64_t quern_event_reader_lost_count(const quern_event_reader *reader)
{
    QUERN__NEED_OR(reader, 0);
    return reader->lost_count;
}

void quern_event_reader_destroy(quern_event_reader *reader)
{
    if (reader == NULL) return;
    quern_world *world = reader->channel->world;
    if (quern__world_check_unlocked(world, __func__) != QUERN_OK) {
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
    /* code may have kept the iterator beyond its callback, and a restored frame has lower numbers */
    if (iterator->number >= iterator->end || iterator->number < channel->first_number ||
        iterator->number >= quern__channel_end(channel)) {
        iterator->block = (quern_event_block){.values = NULL};
        return false;
    }
    const quern__event_batch *batch = quern__channel_batch(channel, iterator->number++);
    iterator->block = (quern_event_block){.values = batch->values, .count = batch->count};
    return true;
}

/* ------------------------------------------------------------------------------------- saved events */

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

static bool has_values_in_bytes(const quern__channel *channel, bool is_portable)
{
    return is_portable || !quern__hooks_exist(&channel->type.hooks);
}

quern_result quern__events_write(const quern_world *world, bool is_portable, quern__byte_writer *writer)
{
    quern__write_u32(writer, quern__events_channel_count(world));
    for (uint32_t i = 0; i < quern__events_channel_count(world); i++) {
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
    for (uint32_t k = 0; k < quern__events_channel_count(it->world); k++)
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
    event_packing packing = {.blocks = it->blocks};
    const size_t stride = channel->stride_bytes;
    if (saved.batch_count > quern__bytes_left(it->bytes) / sizeof(uint32_t)) return QUERN_ERROR_BAD_ARCHIVE;
    for (uint32_t k = 0; k < saved.batch_count; k++) {
        const uint32_t count = quern__read_u32(it->bytes);
        if (count == 0 || count > QUERN__EVENT_VALUES_BYTES / stride ||
            (has_values_in_bytes(channel, it->is_portable) &&
             quern__read_items(it->bytes, count, stride) == NULL))
            return QUERN_ERROR_BAD_ARCHIVE;
        if (!packing_reserve(&packing, it->world, count * stride)) return QUERN_ERROR_OUT_OF_MEMORY;
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
    event_packing packing = {.blocks = it->blocks};
    for (uint32_t k = 0; k < saved.batch_count; k++) {
        const uint32_t count = quern__read_u32(it->bytes);
        char *values = packing_append(&packing, channel, count);
        if (has_values_in_bytes(channel, it->is_portable))
            quern__read(it->bytes, values, (size_t)count * channel->stride_bytes);
        for (uint32_t n = 0; n < count && it->remap != NULL && channel->type.has_entity_fields; n++)
            quern__type_remap(&channel->type, values + (size_t)n * channel->stride_bytes, it->remap,
                              it->remap_argument);
    }
}

void quern__events_restore(const quern__event_reading *it)
{
    for (uint32_t i = 0; i < quern__events_channel_count(it->world); i++) {
        quern__channel *channel = it->world->events->channels.items[i];
        channel_drop_all(channel);
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
    for (uint32_t i = 0; i < quern__events_channel_count(it->world); i++) {
        const quern__channel *channel = it->world->events->channels.items[i];
        for (quern_event_reader *reader = channel->readers; reader != NULL; reader = reader->next)
            if (reader->cursor == UINT64_MAX)
                reader->cursor = it->is_portable ? quern__channel_end(channel) : channel->first_number;
    }
}
