/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/saved_commands.h"

#include "core/calls/world_commands.h"
#include "core/playback/accumulate.h"
#include "core/record/item_space.h"
#include "core/record/view_batch.h"

/* A recorder with commands, as saved in the page. Its streams follow. */
typedef struct saved_recorder {
    uint32_t list, index; /* number of the list of recorders, and index of the recorder in that list */
    uint32_t stream_count;
    uint16_t failed;
    uint8_t is_accumulator; /* the accumulator of that recorder */
    /* The program holds the recorder (quern_world_commands) and may record more after a restore. */
    uint8_t is_held;
    uint64_t is_open; /* the last stream is still open for recording */
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
        for (uint32_t k = 0; k < batch->item_count; k++)
            quern__type_copy(operand->type, entry->memory + (size_t)k * size_bytes,
                             (char *)quern__batch_item(batch, k) + operand->offset_bytes, 1);
        entry->type = operand->type;
        entry->value_count = batch->item_count;
    }
    return QUERN_OK;
}

quern_result quern__build_commands(quern__history *history, quern__snapshot *snapshot)
{
    uint32_t page_count = 0;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    const uint32_t recorder_count = write_recorders(history, &measure);
    if (recorder_count == 0) return QUERN_OK;
    quern_result result = visit_all_batches(history, check_batch, &page_count);
    if (result != QUERN_OK) return result;
    snapshot->commands = quern__page_allocate(&history->store, sizeof(uint64_t) + measure.count);
    if (snapshot->commands == 0 ||
        !quern__value_pages_allocate(history, page_count, &snapshot->command_values))
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

static void fill_item(const quern__history *history, const quern__operation *operation, char *item,
                      const quern__page *values, uint32_t k)
{
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (!is_owned(operand)) continue;
        const char *value =
            quern__page_memory(&history->store, *values++) + (size_t)k * operand->size_bytes;
        quern__type_copy(operand->type, item + operand->offset_bytes, value, 1);
    }
}

static quern_result rebuild_view(commands_reader *reader, const saved_batch *saved,
                                 quern_commands *commands)
{
    const uint32_t bytes = (uint32_t)sizeof(quern__command_batch) + saved->view_bytes;
    const quern_result result =
        quern__item_space_reserve_mixed(commands, bytes, bytes, "quern_history_restore");
    if (result != QUERN_OK) return result;
    quern__command_batch *batch =
        quern__view_batch_append(commands, saved->operation, saved->item_count, saved->view_bytes);
    quern__read(&reader->bytes, quern__view_of(batch), saved->view_bytes);
    return QUERN_OK;
}

static quern_result rebuild_batch(commands_reader *reader, quern_commands *commands)
{
    saved_batch saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__operation *operation = saved.operation;
    assert(operation != NULL); /* cannot fail: only this library writes the page */
    if (saved.view_bytes > 0) return rebuild_view(reader, &saved, commands);
    const quern_result result =
        quern__item_space_reserve(commands, operation, saved.item_count, "quern_history_restore");
    if (result != QUERN_OK) return result;
    for (uint32_t k = 0; k < saved.item_count; k++) {
        char *item = quern__item_space_find(commands, operation);
        if (item == NULL) item = quern__item_space_open(commands, operation);
        quern__item_append(commands, operation, item);
        quern__read(&reader->bytes, item, operation->item_bytes);
        fill_item(reader->history, operation, item, reader->next_values, k);
    }
    for (uint32_t i = 0; i < operation->operand_count; i++)
        reader->next_values += is_owned(&operation->operands[i]);
    return QUERN_OK;
}

static quern_result rebuild_stream(commands_reader *reader, quern_commands *commands)
{
    saved_stream saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    quern__playback_begin(commands, &saved.origin);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < saved.batch_count && result == QUERN_OK; i++)
        result = rebuild_batch(reader, commands);
    if (result != QUERN_OK) return result;
    commands->open->create_count = saved.create_count;
    /* Playback must look up the entities again: no structural version equals UINT64_MAX. */
    commands->open->structure_version = UINT64_MAX;
    return QUERN_OK;
}

static quern_commands *target_of(const quern__history *history, const saved_recorder *saved)
{
    const quern__recorders list = list_at(history, saved->list);
    assert(list.items != NULL && saved->index < list.count); /* a list of recorders never shrinks */
    quern_commands *commands = list.items[saved->index];
    return saved->is_accumulator != 0 ? &commands->accumulator->recorder : commands;
}

static quern_result rebuild_recorder(commands_reader *reader, struct quern__rebuilt_recorder *out_rebuilt)
{
    saved_recorder saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    quern_commands *commands = &out_rebuilt->commands;
    quern_result result = QUERN_OK;
    out_rebuilt->target = target_of(reader->history, &saved);
    for (uint32_t i = 0; i < saved.stream_count && result == QUERN_OK; i++)
        result = rebuild_stream(reader, commands);
    if (result != QUERN_OK) return result;
    if (saved.is_open == 0) quern__commands_close(commands);
    commands->callback_thread = saved.is_held != 0 ? quern__this_thread() : NULL;
    commands->failed = (quern_result)saved.failed;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- restoring */

static size_t rebuilt_bytes(uint32_t count)
{
    return count * sizeof(struct quern__rebuilt_recorder);
}

quern_result quern__prepare_commands(quern__history *history, const quern__snapshot *snapshot)
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

void quern__undo_commands(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->rebuilt_count; i++)
        quern__commands_release(&history->rebuilt[i].commands);
    quern__release(allocator, history->rebuilt, rebuilt_bytes(history->rebuilt_count),
                   QUERN__RECORDER_ALIGNMENT_BYTES);
    history->rebuilt = NULL;
    history->rebuilt_count = 0;
}

/* Swaps the streams of two recorders and the memory of these streams. The operations, the accumulator
 * and the prefab lists of `target` stay in `target`. */
static void swap_streams(quern_commands *target, quern_commands *made)
{
    const quern_commands old = *target;
    *target = *made;
    target->operations = old.operations;
    target->accumulator = old.accumulator;
    memcpy(&target->spawns, &old.spawns, sizeof old.spawns);
    memcpy(&target->spawn_batches, &old.spawn_batches, sizeof old.spawn_batches);
    quern__commands_init(made, old.storage);
    memcpy(&made->blocks, &old.blocks, sizeof old.blocks);
    memcpy(&made->streams, &old.streams, sizeof old.streams);
}

void quern__restore_commands(quern__history *history)
{
    for (uint32_t i = 0; i < list_count(history); i++) {
        const quern__recorders list = list_at(history, i);
        for (uint32_t k = 0; k < list.count; k++) {
            quern__commands_end(list.items[k]);
            quern__commands_reset(list.items[k]);
        }
    }
    for (uint32_t i = 0; i < history->rebuilt_count; i++)
        swap_streams(history->rebuilt[i].target, &history->rebuilt[i].commands);
    quern__undo_commands(history);
}
