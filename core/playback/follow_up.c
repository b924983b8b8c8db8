/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/follow_up.h"

#include "core/record/item_space.h"

void quern__follow_ups_init(quern__follow_ups *follow_ups, quern__storage *storage)
{
    *follow_ups = (quern__follow_ups){.extended = {0}};
    quern__commands_init(&follow_ups->recorder, storage);
    follow_ups->recorder.operations.allows_managed = true;
}

void quern__follow_ups_release(quern__follow_ups *follow_ups)
{
    quern__array_release(&follow_ups->recorder.storage->allocator, &follow_ups->extended);
    quern__commands_release(&follow_ups->recorder);
}

void quern__follow_ups_begin(quern__follow_ups *follow_ups, const quern__gathered *gathered)
{
    quern__commands_reset(&follow_ups->recorder);
    follow_ups->extended.count = 0;
    follow_ups->recorded_traits = gathered->traits;
    follow_ups->item_count = gathered->item_count;
    follow_ups->has_extra_stream = false;
}

/* The key is larger than that of any callback. The origin has no name, since follow-up commands are never
 * dropped and reported. */
void quern__follow_ups_start(quern__follow_ups *follow_ups)
{
    const quern__origin origin = {.key = UINT64_MAX};
    quern__commands_begin(&follow_ups->recorder, &origin);
}

quern_result quern__follow_ups_create_operation(quern__follow_ups *follow_ups, uint32_t component_index,
                                                quern__operation_kind kind,
                                                const quern__operation **out_operation)
{
    quern_commands *recorder = &follow_ups->recorder;
    return quern__operations_find_single(&recorder->operations, &recorder->storage->components,
                                         &recorder->storage->allocator, component_index, kind,
                                         out_operation);
}

quern_result quern__follow_ups_add(quern__follow_ups *follow_ups, const quern__operation *operation,
                                   quern__item head, quern__item **out_item)
{
    char *space;
    const quern_result result =
        quern__item_space_get(&follow_ups->recorder, operation, "follow-up commands", &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    *out_item = quern__item_append(&follow_ups->recorder, operation, space);
    **out_item = head;
    return QUERN_OK;
}

/* Ends the list of follow-up commands and returns its stream, or NULL if it is empty. */
static quern__stream *end_list(quern__follow_ups *follow_ups, quern__gathered *gathered)
{
    const bool is_empty = follow_ups->recorder.open == NULL;
    quern__commands_end(&follow_ups->recorder);
    if (is_empty) return NULL;
    quern__stream *list = &follow_ups->recorder.streams.items[follow_ups->recorder.streams.count - 1];
    gathered->traits &= list->traits;
    gathered->item_count += list->item_count;
    return list;
}

quern_result quern__follow_ups_append_to_stream(quern__follow_ups *follow_ups, quern__gathered *gathered,
                                                quern__stream *stream, quern__command_batch *last_batch)
{
    const quern__stream *list = end_list(follow_ups, gathered);
    if (list == NULL) return QUERN_OK;
    if (!quern__array_reserve(&follow_ups->recorder.storage->allocator, &follow_ups->extended,
                              follow_ups->extended.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list follow-up commands");
    quern__command_batch *tail = (quern__command_batch *)(void *)quern__batch_end(last_batch);
    *tail = (quern__command_batch){.next = list->first};
    follow_ups->extended.items[follow_ups->extended.count++] =
        (quern__extended_stream){.stream = stream, .batch_count = stream->batch_count};
    stream->batch_count += list->batch_count;
    return QUERN_OK;
}

quern_result quern__follow_ups_add_stream(quern__follow_ups *follow_ups, quern__gathered *gathered)
{
    quern__stream *list = end_list(follow_ups, gathered);
    if (list == NULL) return QUERN_OK;
    if (!quern__array_reserve(&follow_ups->recorder.storage->allocator, &gathered->streams,
                              gathered->streams.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather follow-up commands");
    gathered->streams.items[gathered->streams.count++] =
        (quern__gathered_stream){.stream = list, .is_located = true};
    follow_ups->has_extra_stream = true;
    return QUERN_OK;
}

void quern__follow_ups_remove(quern__follow_ups *follow_ups, quern__gathered *gathered)
{
    for (uint32_t i = 0; i < follow_ups->extended.count; i++)
        follow_ups->extended.items[i].stream->batch_count = follow_ups->extended.items[i].batch_count;
    follow_ups->extended.count = 0;
    if (follow_ups->has_extra_stream) gathered->streams.count--;
    follow_ups->has_extra_stream = false;
    gathered->traits = follow_ups->recorded_traits;
    gathered->item_count = follow_ups->item_count;
}
