/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What waits in a world, saved in a snapshot and restored: recorded commands, then events and the positions of their readers,
 * then changes that are not yet reported to reactions. history_internal.h says how each is saved. */

#include "core/history/history_internal.h"

#include "core/events/event_internal.h"
#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "core/record/record.h"
#include "core/storage/list_values.h"

/* Saves and restores the recorded commands that are not applied yet: those of the world and those of the
 * caller's recorders.
 *
 * One page stores the streams, item by item as bytes. Values of types with hooks are copied by those
 * hooks into pages of their own, listed in the order of the items. An operation belongs to its recorder
 * and exists as long as the recorder. So each stream is restored into the recorder that it was saved
 * from.
 *
 * Restoring rebuilds the streams in separate recorders, which may fail. Then it swaps these streams with
 * those of the target recorders, which cannot fail. */

/* A recorder with commands, as saved in the page. Its streams follow. */
typedef struct saved_recorder {
    uint32_t list, index; /* number of the list of recorders, and index of the recorder in that list */
    uint32_t stream_count;
    uint16_t failed;
    uint8_t is_accumulator; /* the accumulator of that recorder */
    /* The program holds the recorder (quern_world_commands) and may record more after a restore. */
    uint8_t is_held;
    uint64_t is_open;     /* the last stream is still open for recording */
    quern__origin origin; /* of the next stream, if the recorder is held */
} saved_recorder;

/* A stream as saved in the page. Its command batches follow. */
typedef struct saved_stream {
    quern__origin origin;
    uint32_t batch_count, create_count;
} saved_stream;

/* The commands of one operation as saved in the page. Their items follow, or a quern__view_batch. */
typedef struct saved_batch {
    const quern__operation *operation;
    uint32_t item_count;
    uint32_t view_bytes; /* size of the quern__view_batch; 0: the batch has items */
} saved_batch;

/* A recorder, with the streams that a restore rebuilds for it. */
struct quern__rebuilt_recorder {
    quern_commands commands; /* owns the rebuilt streams until they are swapped with the target's */
    quern_commands *target;
};

enum { RECORDER_LISTS = 2 }; /* lists of the world; the caller's lists follow */

static uint32_t list_count(const quern__history *history)
{
    return RECORDER_LISTS + history->caller_recorder_count;
}

static quern__recorders list_at(const quern__history *history, uint32_t i)
{
    quern__world_commands *commands = history->world->commands;
    if (i >= RECORDER_LISTS) return history->caller_recorders[i - RECORDER_LISTS];
    if (commands == NULL) return (quern__recorders){0};
    return i == 0 ? quern__world_recorder_list(commands) : quern__world_worker_recorders(commands);
}

/* --------------------------------------------------------------------------------- visiting batches */

/* Called for each command batch of a stream, in order, until a call fails. */
typedef quern_result batch_visit(void *argument, quern__command_batch *batch);

static quern_result visit_stream(const quern__stream *stream, batch_visit *visit, void *argument)
{
    quern_result result = QUERN_OK;
    quern__command_batch *batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count && result == QUERN_OK; i++) {
        if (i > 0) batch = quern__batch_next(batch);
        result = visit(argument, batch);
    }
    return result;
}

/* Visits the batches of all streams of a recorder. */
static quern_result visit_batches(const quern_commands *commands, batch_visit *visit, void *argument)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < commands->streams.count && result == QUERN_OK; i++)
        result = visit_stream(&commands->streams.items[i], visit, argument);
    return result;
}

/* Visits the batches of all recorders in all lists, and of their accumulators. */
static quern_result visit_all_batches(const quern__history *history, batch_visit *visit, void *argument)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < list_count(history); i++) {
        const quern__recorders list = list_at(history, i);
        for (uint32_t k = 0; k < list.count && result == QUERN_OK; k++) {
            const quern_commands *commands = list.items[k];
            result = visit_batches(commands, visit, argument);
            if (result == QUERN_OK && commands->accumulator != NULL)
                result = visit_batches(&commands->accumulator->recorder, visit, argument);
        }
    }
    return result;
}

/* Whether the values of the operand are stored in pages of their own, because hooks must copy them. */
static bool is_owned(const quern__operand *operand)
{
    const quern_hooks *hooks = &operand->type->hooks;
    return operand->offset_bytes != 0 && !operand->is_plain &&
           (hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL);
}

/* Checks that the batch can be saved, and counts the pages for its values with hooks. */
static quern_result check_batch(void *argument, quern__command_batch *batch)
{
    uint32_t *page_count = argument;
    const char *unsavable_action = quern__command_kinds[batch->operation->kind].unsavable_action;
    if (unsavable_action != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "waiting commands %s, which a history cannot save: apply them first "
                           "(quern_world_flush, or run a frame)",
                           unsavable_action);
    for (uint32_t i = 0; i < batch->operation->operand_count; i++) {
        const quern__operand *operand = &batch->operation->operands[i];
        if (!is_owned(operand)) continue;
        if (operand->type->hooks.copy == NULL)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "waiting commands have values of '%s', which has a move or destroy hook and "
                               "no copy hook, so a snapshot cannot copy them: add a copy hook, or apply "
                               "the commands first (quern_world_flush, or run a frame)",
                               operand->type->name);
        ++*page_count;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- saving */

static quern_result write_batch(void *argument, quern__command_batch *batch)
{
    quern__byte_writer *writer = argument;
    const saved_batch saved = {batch->operation, batch->item_count,
                               batch->is_view ? quern__view_of(batch)->bytes : 0};
    quern__write(writer, &saved, sizeof saved);
    quern__write(writer, quern__batch_items(batch),
                 (size_t)(quern__batch_end(batch) - quern__batch_items(batch)));
    return QUERN_OK;
}

static void write_recorder(const quern_commands *commands, saved_recorder saved, quern__byte_writer *writer)
{
    saved.stream_count = commands->streams.count;
    saved.failed = (uint16_t)commands->failed;
    saved.is_held = commands->callback_thread != NULL;
    saved.is_open = commands->open != NULL;
    saved.origin = commands->origin;
    quern__write(writer, &saved, sizeof saved);
    for (uint32_t i = 0; i < commands->streams.count; i++) {
        const quern__stream *stream = &commands->streams.items[i];
        const saved_stream head = {stream->origin, stream->batch_count, stream->create_count};
        quern__write(writer, &head, sizeof head);
        (void)visit_stream(stream, write_batch, writer); /* write_batch cannot fail */
    }
}

static bool has_content(const quern_commands *commands)
{
    return commands->streams.count > 0 || commands->failed != QUERN_OK;
}

/* Writes all recorders that have commands or an error. Returns their number. */
static uint32_t write_recorders(const quern__history *history, quern__byte_writer *writer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list_count(history); i++) {
        const quern__recorders list = list_at(history, i);
        for (uint32_t k = 0; k < list.count; k++) {
            const quern_commands *commands = list.items[k];
            const quern__accumulator *accumulator = commands->accumulator;
            saved_recorder saved = {.list = i, .index = k};
            if (has_content(commands)) write_recorder(commands, saved, writer);
            count += has_content(commands);
            if (accumulator == NULL || !has_content(&accumulator->recorder)) continue;
            saved.is_accumulator = true;
            write_recorder(&accumulator->recorder, saved, writer);
            count++;
        }
    }
    return count;
}

/* Allocates a list of `count` entries, all 0. Returns false if out of memory. */
static bool allocate_value_pages(quern__history *history, uint32_t count, quern__value_pages *out_pages)
{
    *out_pages = (quern__value_pages){
        quern__page_allocate_zeros(&history->store, count * sizeof(quern__page)), count};
    return out_pages->list != 0;
}

typedef struct value_copies {
    quern__history *history;
    quern__page *next;
} value_copies;

/* Copies the values with hooks of a batch into pages, one page per operand. */
static quern_result copy_values(void *argument, quern__command_batch *batch)
{
    value_copies *it = argument;
    for (uint32_t i = 0; i < batch->operation->operand_count; i++) {
        const quern__operand *operand = &batch->operation->operands[i];
        if (!is_owned(operand)) continue;
        const uint32_t size_bytes = operand->size_bytes;
        const quern__page page =
            quern__page_allocate(&it->history->store, (size_t)batch->item_count * size_bytes);
        if (page == 0) return quern__history_fail_memory("values of waiting commands");
        *it->next++ = page;
        quern__page_entry *entry = &it->history->store.pages.items[page];
        entry->type = operand->type;
        for (uint32_t k = 0; k < batch->item_count; k++) {
            char *value = entry->memory + (size_t)k * size_bytes;
            quern__type_copy(operand->type, value,
                             (char *)quern__batch_item(batch, k) + operand->offset_bytes, 1);
            entry->value_count++;
            /* a sync point replaces provisional handles in lists, and then has no memory for lists of its own */
            if (!quern__type_own_provisional(operand->type, value))
                return quern__history_fail_memory("lists in waiting commands");
        }
    }
    return QUERN_OK;
}

static quern_result build_commands(quern__history *history, quern__snapshot *snapshot)
{
    uint32_t page_count = 0;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    const uint32_t recorder_count = write_recorders(history, &measure);
    if (recorder_count == 0) return QUERN_OK;
    quern_result result = visit_all_batches(history, check_batch, &page_count);
    if (result != QUERN_OK) return result;
    snapshot->commands = quern__page_allocate(&history->store, sizeof(uint64_t) + measure.count);
    if (snapshot->commands == 0 || !allocate_value_pages(history, page_count, &snapshot->command_values))
        return quern__history_fail_memory("waiting commands");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->commands);
    quern__write_u64(&writer, recorder_count);
    write_recorders(history, &writer);
    assert(!writer.has_failed);
    value_copies copies = {history, quern__pages_in(history, snapshot->command_values.list)};
    return visit_all_batches(history, copy_values, &copies);
}

/* ---------------------------------------------------------------------------------------- rebuilding */

typedef struct commands_reader {
    const quern__history *history;
    quern__byte_reader bytes;
    const quern__page *next_values;
} commands_reader;

static quern_result rebuild_batch(commands_reader *reader, quern_commands *commands)
{
    saved_batch saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__operation *operation = saved.operation;
    assert(operation != NULL); /* cannot fail: only this library writes the page */
    if (saved.view_bytes > 0) {
        const uint32_t bytes = (uint32_t)sizeof(quern__command_batch) + saved.view_bytes;
        const quern_result result =
            quern__item_space_reserve_mixed(commands, bytes, bytes, "quern_history_restore");
        if (result != QUERN_OK) return result;
        quern__command_batch *batch =
            quern__view_batch_append(commands, saved.operation, saved.item_count, saved.view_bytes);
        quern__read(&reader->bytes, quern__view_of(batch), saved.view_bytes);
        return QUERN_OK;
    }
    const quern_result result =
        quern__item_space_reserve(commands, operation, saved.item_count, "quern_history_restore");
    if (result != QUERN_OK) return result;
    for (uint32_t k = 0; k < saved.item_count; k++) {
        char *item = quern__item_space_find(commands, operation);
        if (item == NULL) item = quern__item_space_open(commands, operation);
        quern__item_append(commands, operation, item);
        quern__read(&reader->bytes, item, operation->item_bytes);
        const quern__page *values = reader->next_values;
        for (uint32_t i = 0; i < operation->operand_count; i++) {
            const quern__operand *operand = &operation->operands[i];
            if (!is_owned(operand)) continue;
            const char *value =
                quern__page_memory(&reader->history->store, *values++) + (size_t)k * operand->size_bytes;
            quern__type_copy(operand->type, item + operand->offset_bytes, value, 1);
        }
        for (uint32_t i = 0; i < operation->operand_count; i++)
            if (is_owned(&operation->operands[i]) &&
                !quern__type_own_provisional(operation->operands[i].type,
                                             item + operation->operands[i].offset_bytes))
                return quern__history_fail_memory("lists in waiting commands");
    }
    for (uint32_t i = 0; i < operation->operand_count; i++)
        reader->next_values += is_owned(&operation->operands[i]);
    return QUERN_OK;
}

static quern_result rebuild_recorder(commands_reader *reader, struct quern__rebuilt_recorder *out_rebuilt)
{
    saved_recorder saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    quern_commands *commands = &out_rebuilt->commands;
    quern_result result = QUERN_OK;
    const quern__recorders list = list_at(reader->history, saved.list);
    assert(list.items != NULL && saved.index < list.count); /* a list of recorders never shrinks */
    out_rebuilt->target = list.items[saved.index];
    if (saved.is_accumulator != 0) out_rebuilt->target = &out_rebuilt->target->accumulator->recorder;
    for (uint32_t i = 0; i < saved.stream_count; i++) {
        saved_stream stream;
        quern__read(&reader->bytes, &stream, sizeof stream);
        quern__playback_begin(commands, &stream.origin);
        for (uint32_t k = 0; k < stream.batch_count && result == QUERN_OK; k++)
            result = rebuild_batch(reader, commands);
        if (result != QUERN_OK) return result;
        commands->open->create_count = stream.create_count;
        /* Playback must look up the entities again: no structural version equals UINT64_MAX. */
        commands->open->structure_version = UINT64_MAX;
    }
    if (saved.is_open == 0) quern__commands_close(commands);
    commands->origin = saved.origin;
    commands->callback_thread = saved.is_held != 0 ? quern__this_thread() : NULL;
    commands->failed = (quern_result)saved.failed;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- restoring */

static size_t rebuilt_bytes(uint32_t count)
{
    return count * sizeof(struct quern__rebuilt_recorder);
}

static quern_result prepare_commands(quern__history *history, const quern__snapshot *snapshot)
{
    if (snapshot->commands == 0) return QUERN_OK;
    quern__storage *storage = &history->world->storage;
    commands_reader reader = {.history = history,
                              .bytes = quern__page_reader(&history->store, snapshot->commands),
                              .next_values = quern__pages_in(history, snapshot->command_values.list)};
    const uint32_t count = (uint32_t)quern__read_u64(&reader.bytes);
    history->rebuilt =
        quern__allocate(&storage->allocator, rebuilt_bytes(count), QUERN__RECORDER_ALIGNMENT_BYTES);
    if (history->rebuilt == NULL) return quern__history_fail_memory("waiting commands");
    history->rebuilt_count = count;
    for (uint32_t i = 0; i < count; i++)
        quern__commands_init(&history->rebuilt[i].commands, storage);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = rebuild_recorder(&reader, &history->rebuilt[i]);
    return result;
}

static void undo_commands(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->rebuilt_count; i++)
        quern__commands_release(&history->rebuilt[i].commands);
    quern__release(allocator, history->rebuilt, rebuilt_bytes(history->rebuilt_count),
                   QUERN__RECORDER_ALIGNMENT_BYTES);
    history->rebuilt = NULL;
    history->rebuilt_count = 0;
}

static void restore_commands(quern__history *history)
{
    for (uint32_t i = 0; i < list_count(history); i++) {
        const quern__recorders list = list_at(history, i);
        for (uint32_t k = 0; k < list.count; k++) {
            quern__commands_end(list.items[k]);
            quern__commands_reset(list.items[k]);
        }
    }
    for (uint32_t i = 0; i < history->rebuilt_count; i++) {
        /* Swaps the streams of two recorders and the memory of these streams. The operations, the
         * accumulator, the prefab lists, the links and the functions of `target` stay in `target`. */
        quern_commands *target = history->rebuilt[i].target;
        quern_commands *made = &history->rebuilt[i].commands;
        const quern_commands old = *target;
        *target = *made;
        target->playback_calls = old.playback_calls;
        target->operations = old.operations;
        target->accumulator = old.accumulator;
        target->next_recorder = old.next_recorder;
        target->place_recorder = old.place_recorder;
        memcpy(&target->spawns, &old.spawns, sizeof old.spawns);
        quern__commands_init(made, old.storage);
        memcpy(&made->blocks, &old.blocks, sizeof old.blocks);
        memcpy(&made->streams, &old.streams, sizeof old.streams);
    }
    undo_commands(history);
}

/* ------------------------------------------------------------------------------------------- events */

/* Values that hooks must copy have pages of their own; core/events/event.c writes everything else. */
static bool has_hooks(const quern__channel *channel)
{
    return quern__hooks_exist(&channel->type.hooks);
}

static quern_result save_event_values(quern__history *history, quern__value_pages *out_pages)
{
    const quern_world *world = history->world;
    uint32_t page_count = 0;
    for (uint32_t i = 0; i < quern__events_channel_count(world); i++) {
        const quern__channel *channel = world->events->channels.items[i];
        const quern_hooks *hooks = &channel->type.hooks;
        const uint32_t count = channel->batches.count - channel->head;
        if (!has_hooks(channel) || count == 0) continue;
        if (hooks->copy == NULL && (hooks->move != NULL || hooks->destroy != NULL))
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "events of type '%s' are waiting, and the type has a move or destroy hook "
                               "and no copy hook, so a "
                               "snapshot cannot copy them: add a copy hook, or save after all readers have "
                               "seen the events",
                               channel->type.name);
        page_count += count;
    }
    if (page_count == 0) return QUERN_OK;
    if (!allocate_value_pages(history, page_count, out_pages))
        return quern__history_fail_memory("waiting events");
    quern__page *next = quern__pages_in(history, out_pages->list);
    for (uint32_t i = 0; i < quern__events_channel_count(world); i++) {
        const quern__channel *channel = world->events->channels.items[i];
        for (uint32_t k = channel->head; has_hooks(channel) && k < channel->batches.count; k++) {
            const quern__event_batch *batch = &channel->batches.items[k];
            const quern__page page =
                quern__page_allocate(&history->store, (size_t)batch->count * channel->stride_bytes);
            if (page == 0) return quern__history_fail_memory("waiting events");
            *next++ = page;
            quern__page_entry *entry = &history->store.pages.items[page];
            quern__type_copy(&channel->type, entry->memory, batch->values, batch->count);
            entry->type = &channel->type;
            entry->value_count = batch->count;
        }
    }
    return QUERN_OK;
}

/* Precondition: the batches were restored. */
static void restore_event_values(const quern__history *history, const quern__value_pages *pages)
{
    const quern__page *next = quern__pages_in(history, pages->list);
    for (uint32_t i = 0; i < quern__events_channel_count(history->world); i++) {
        const quern__channel *channel = history->world->events->channels.items[i];
        for (uint32_t k = channel->head; has_hooks(channel) && k < channel->batches.count; k++) {
            const quern__event_batch *batch = &channel->batches.items[k];
            quern__type_copy(&channel->type, batch->values, quern__page_memory(&history->store, *next++),
                             batch->count);
        }
    }
}

/* ---------------------------------------------------------------------------------------- reactions */

/* Saves and restores what is pending for reactions: the flags of reactions and subscriptions, copies of
 * removed rows, and old values of rows that were set. Row bits are saved with their archetypes. */

/* A reaction as saved in the page. */
typedef struct saved_reaction {
    uint32_t number, id;
    uint64_t is_pending;
} saved_reaction;

/* A subscription as saved in the page. The blocks of its copies follow, then the old values of each row that was set:
 * by row, and for each by term. */
typedef struct saved_subscription {
    uint32_t number, id; /* number and id of the reaction */
    uint32_t archetype;  /* index of the archetype */
    uint32_t is_pending;
    uint32_t copy_count;
    uint32_t old_count;             /* rows with old values */
    uint64_t copy_bytes, old_bytes; /* bytes of the blocks, and of the old values */
} saved_subscription;

static quern_result check_reactions(const quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__subscription *subscription =
                 quern__first_subscription(storage->archetypes.items[i]);
             subscription != NULL; subscription = quern__next_subscription(subscription))
            if (subscription->taken_block_count > 0 ||
                (subscription->removed.count > 0 && subscription->removed.calls_hooks))
                return quern__fail(
                    QUERN_ERROR_INVALID_ARGUMENT,
                    "removed rows are pending for reactions, and their values have hooks, so a snapshot "
                    "cannot copy them: run the reactions first (quern_world_react, or run a frame)");
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- old values */

/* Visits the old values of all rows that are pending as set. Returns the number of rows. */
static uint32_t visit_old_values(const quern__subscription *subscription, quern__old_visit *visit,
                                 void *argument)
{
    if (subscription->old.column_count == 0 || !subscription->is_pending) return 0;
    const uint32_t set = quern__row_bits_find_column(subscription->archetype->row_bits,
                                                     QUERN__BIT_COLUMN_SET, subscription->reaction->id);
    return quern__old_values_visit(&subscription->old, subscription->archetype, set, visit, argument);
}

static void read_old_value(void *argument, const quern__old_column *column, char *value)
{
    quern__read(argument, value, column->size_bytes);
}

/* -------------------------------------------------------------------------------------------- saving */

/* Writes the reactions, then all subscriptions. */
static void write_reactions(const quern__storage *storage, quern__byte_writer *writer)
{
    const quern__reactions *reactions = storage->reactions;
    uint32_t count = 0;
    quern__write_u64(writer, reactions->count);
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        if (reaction == NULL) continue;
        const saved_reaction saved = {i, reaction->id, reaction->is_pending};
        quern__write(writer, &saved, sizeof saved);
        count += reaction->subscriptions.count;
    }
    quern__write_u64(writer, count);
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__subscription *subscription =
                 quern__first_subscription(storage->archetypes.items[i]);
             subscription != NULL; subscription = quern__next_subscription(subscription)) {
            const quern__removed *removed = &subscription->removed;
            const uint32_t block_count = quern__removed_used_blocks(removed),
                           old_count = visit_old_values(subscription, NULL, NULL);
            const saved_subscription saved = {.number = subscription->reaction->number,
                                              .id = subscription->reaction->id,
                                              .archetype = subscription->archetype->index,
                                              .is_pending = subscription->is_pending,
                                              .copy_count = removed->count,
                                              .copy_bytes = (uint64_t)block_count * removed->block_bytes,
                                              .old_count = old_count,
                                              .old_bytes = (uint64_t)old_count *
                                                           quern__old_values_row_bytes(&subscription->old)};
            quern__write(writer, &saved, sizeof saved);
            for (uint32_t k = 0; k < block_count; k++)
                quern__write(writer, removed->blocks.items[k], removed->block_bytes);
            visit_old_values(subscription, quern__old_value_write, writer);
        }
}

/* ------------------------------------------------------------------------------------------- reserving */

/* Returns the reaction with the number and the id, or NULL if it was removed. */
static quern__reaction *find_reaction(const quern__storage *storage, uint32_t number, uint32_t id)
{
    const quern__reactions *reactions = storage->reactions;
    quern__reaction *reaction = number < reactions->list.count ? reactions->list.items[number] : NULL;
    return reaction != NULL && reaction->id == id ? reaction : NULL;
}

/* Returns the subscription as which the saved one is restored, or NULL if its reaction was removed. */
static quern__subscription *subscription_of(const quern__storage *storage,
                                            const quern__archetype *archetype,
                                            const saved_subscription *saved)
{
    const quern__reaction *reaction = find_reaction(storage, saved->number, saved->id);
    return reaction != NULL ? quern__find_subscription(archetype, reaction) : NULL;
}

static quern_result prepare_reactions(quern__storage *storage, quern__archetype *const *archetypes,
                                      quern__byte_reader *reader)
{
    quern__read_items(reader, (size_t)quern__read_u64(reader), sizeof(saved_reaction));
    for (uint64_t left = quern__read_u64(reader); left > 0; left--) {
        saved_subscription saved;
        quern__read(reader, &saved, sizeof saved);
        quern__subscription *subscription = subscription_of(storage, archetypes[saved.archetype], &saved);
        if (subscription != NULL &&
            !quern__removed_reserve_total(&subscription->removed, &storage->allocator, saved.copy_count))
            return quern__history_fail_memory("copies of removed rows");
        quern__read_in_place(reader, (size_t)(saved.copy_bytes + saved.old_bytes));
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- restoring */

static void restore_reactions(quern__storage *storage, quern__byte_reader *reader)
{
    quern__reactions *reactions = storage->reactions;
    reactions->is_pending = false;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        quern__reaction *reaction = reactions->list.items[i];
        if (reaction == NULL) continue;
        reaction->is_pending = reaction->is_in_frame = false;
        for (uint32_t k = 0; k < reaction->subscriptions.count; k++) {
            quern__subscription *subscription = reaction->subscriptions.items[k];
            quern__removed_clear(&subscription->removed);
            subscription->removed.change =
                0; /* no change has the number 0, so the next one sets change_first */
            subscription->is_pending = false;
        }
    }
    for (uint64_t left = quern__read_u64(reader); left > 0; left--) {
        saved_reaction saved;
        quern__read(reader, &saved, sizeof saved);
        quern__reaction *reaction = find_reaction(storage, saved.number, saved.id);
        if (reaction == NULL) continue;
        reaction->is_in_frame = true;
        reaction->is_pending = saved.is_pending != 0;
        reactions->is_pending |= reaction->is_pending;
    }
    for (uint64_t left = quern__read_u64(reader); left > 0; left--) {
        saved_subscription saved;
        quern__read(reader, &saved, sizeof saved);
        quern__subscription *subscription =
            subscription_of(storage, storage->archetypes.items[saved.archetype], &saved);
        if (subscription == NULL) {
            quern__read_in_place(reader, (size_t)(saved.copy_bytes + saved.old_bytes));
            continue;
        }
        quern__removed *removed = &subscription->removed;
        subscription->is_pending = saved.is_pending != 0;
        removed->count = saved.copy_count;
        for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++)
            quern__read(reader, removed->blocks.items[i], removed->block_bytes);
        visit_old_values(subscription, read_old_value, reader);
    }
    /* A reaction that the frame does not know is as if it were added now. */
    for (uint32_t i = 0; i < reactions->list.count; i++)
        if (reactions->list.items[i] != NULL && !reactions->list.items[i]->is_in_frame)
            quern__reaction_add_present(reactions->list.items[i], NULL);
}

/* -------------------------------------------------------------------------------------------- all of it */

/* One page has the changes not yet reported to reactions, the waiting events, and some numbers. Waiting commands have a
 * page of their own. */

static void write_world_state(const quern_world *world, quern__byte_writer *writer)
{
    write_reactions(&world->storage, writer);
    (void)quern__events_write(world, false, writer); /* fails only in the portable form */
    quern__write_u64(writer, world->next_serial);
    quern__write_u64(writer, world->next_visit);
    quern__write_u64(writer, world->visit_count);
}

quern_result quern__build_world_state(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    quern_result result = check_reactions(&world->storage);
    if (result == QUERN_OK) result = save_event_values(history, &snapshot->event_values);
    if (result != QUERN_OK) return result;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_world_state(world, &measure);
    snapshot->world_state = quern__page_allocate(&history->store, measure.count);
    if (snapshot->world_state == 0) return quern__history_fail_memory("pending reactions and events");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->world_state);
    write_world_state(world, &writer);
    assert(!writer.has_failed);
    return build_commands(history, snapshot);
}

quern_result quern__prepare_world_state(quern__history *history, const quern__snapshot *snapshot,
                                        quern__archetype *const *archetypes)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    quern_result result = prepare_reactions(&history->world->storage, archetypes, &reader);
    const quern__event_reading events = {
        .world = history->world, .bytes = &reader, .blocks = &history->event_blocks};
    if (result == QUERN_OK && quern__events_prepare(&events) != QUERN_OK)
        result = quern__history_fail_memory("waiting events");
    return result == QUERN_OK ? prepare_commands(history, snapshot) : result;
}

void quern__undo_world_state(quern__history *history)
{
    quern__packing_undo(history->world, &history->event_blocks);
    undo_commands(history);
}

void quern__restore_world_state(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    restore_reactions(&world->storage, &reader);
    quern__events_restore(
        &(quern__event_reading){.world = world, .bytes = &reader, .blocks = &history->event_blocks});
    restore_event_values(history, &snapshot->event_values);
    world->next_serial = quern__read_u64(&reader);
    world->next_visit = (uint32_t)quern__read_u64(&reader);
    world->visit_count = quern__read_u64(&reader);
    assert(!reader.has_failed);
    restore_commands(history);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
