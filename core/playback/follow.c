/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/follow.h"

#include "core/record/item_space.h"

void quern__followers_init(quern__followers *followers, quern__storage *storage)
{
    *followers = (quern__followers){.longer = {0}};
    quern__commands_init(&followers->recorder, storage);
    followers->recorder.operations.allows_managed = true;
}

void quern__followers_release(quern__followers *followers)
{
    quern__array_release(&followers->recorder.storage->allocator, &followers->longer);
    quern__commands_release(&followers->recorder);
}

void quern__followers_begin(quern__followers *followers, const quern__gathered *gathered)
{
    quern__commands_reset(&followers->recorder);
    followers->longer.count = 0;
    followers->gathered_traits = gathered->traits;
    followers->item_count = gathered->item_count;
    followers->has_own_stream = false;
}

/* The key is larger than that of any callback. The origin has no name, since follow-up commands are never
 * dropped and reported. */
void quern__followers_open(quern__followers *followers)
{
    const quern__origin origin = {.key = UINT64_MAX};
    quern__commands_begin(&followers->recorder, &origin);
}

quern_result quern__followers_operation(quern__followers *followers, uint32_t component_index,
                                        quern__operation_kind kind, const quern__operation **out_operation)
{
    quern_commands *recorder = &followers->recorder;
    return quern__operations_find_single(&recorder->operations, &recorder->storage->components,
                                         &recorder->storage->allocator, component_index, kind,
                                         out_operation);
}

quern_result quern__followers_add(quern__followers *followers, const quern__operation *operation,
                                  quern__item head, quern__item **out_item)
{
    char *space;
    const quern_result result =
        quern__item_space_get(&followers->recorder, operation, "commands that follow from others", &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    *out_item = quern__item_append(&followers->recorder, operation, space);
    **out_item = head;
    return QUERN_OK;
}

/* Ends the list of follow-up commands and returns its stream, or NULL if it is empty. */
static quern__stream *end_part(quern__followers *followers, quern__gathered *gathered)
{
    const bool is_empty = followers->recorder.open == NULL;
    quern__commands_end(&followers->recorder);
    if (is_empty) return NULL;
    quern__stream *part = &followers->recorder.streams.items[followers->recorder.streams.count - 1];
    gathered->traits &= part->traits;
    gathered->item_count += part->item_count;
    return part;
}

quern_result quern__followers_lengthen(quern__followers *followers, quern__gathered *gathered,
                                       quern__stream *stream, quern__command_batch *last_batch)
{
    const quern__stream *part = end_part(followers, gathered);
    if (part == NULL) return QUERN_OK;
    if (!quern__array_reserve(&followers->recorder.storage->allocator, &followers->longer,
                              followers->longer.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list what follows from commands");
    quern__command_batch *tail =
        (quern__command_batch *)(void *)quern__batch_item(last_batch, last_batch->item_count);
    *tail = (quern__command_batch){.next = part->first};
    followers->longer.items[followers->longer.count++] =
        (quern__longer_stream){.stream = stream, .batch_count = stream->batch_count};
    stream->batch_count += part->batch_count;
    return QUERN_OK;
}

quern_result quern__followers_close(quern__followers *followers, quern__gathered *gathered)
{
    quern__stream *part = end_part(followers, gathered);
    if (part == NULL) return QUERN_OK;
    if (!quern__array_reserve(&followers->recorder.storage->allocator, &gathered->streams,
                              gathered->streams.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather what follows from commands");
    gathered->streams.items[gathered->streams.count++] =
        (quern__gathered_stream){.stream = part, .is_located = true};
    followers->has_own_stream = true;
    return QUERN_OK;
}

void quern__followers_cut(quern__followers *followers, quern__gathered *gathered)
{
    for (uint32_t i = 0; i < followers->longer.count; i++)
        followers->longer.items[i].stream->batch_count = followers->longer.items[i].batch_count;
    followers->longer.count = 0;
    if (followers->has_own_stream) gathered->streams.count--;
    followers->has_own_stream = false;
    gathered->traits = followers->gathered_traits;
    gathered->item_count = followers->item_count;
}
