/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_PLACE_H
#define QUERN_CORE_RECORD_PLACE_H

/* Places for items in a recorder's blocks. Finding one and taking it are what every command does, and call
 * nothing; preparing one may ask for memory. */

#include "core/record/record.h"

/* The open run gets no more items: counting now spares every command a counter. */
static inline void quern__run_close(quern_commands *commands)
{
    if (commands->operation == NULL) return;
    quern__stream *stream = commands->open;
    stream->command_count += (uint64_t)commands->run->item_count * commands->operation->command_count;
    stream->item_count += commands->run->item_count;
    commands->operation = NULL;
}

static inline uint32_t quern__left_bytes(const quern_commands *commands)
{
    return (uint32_t)(commands->end - commands->next);
}

/* A run of one item takes at most so many bytes, at an address with an alignment of 8. */
static inline uint32_t quern__run_bytes(const quern__operation *operation)
{
    return (uint32_t)sizeof(quern__run) + operation->alignment_bytes - 8 + operation->item_bytes;
}

/* What an item needs before it at this address. */
static inline size_t quern__place_padding(const quern__operation *operation, const char *address)
{
    return (size_t) - (uintptr_t)address & (operation->alignment_bytes - 1);
}

/* Where one more item goes: in the open run, or behind the head of another one in this block. NULL where
 * that takes preparing. A stream that is open is that of the callback that runs. */
static inline char *quern__place_find(const quern_commands *commands, const quern__operation *operation)
{
    char *next = commands->next;
    const size_t left = (size_t)(commands->end - next);
    if (commands->operation == operation && left >= operation->item_bytes) return next;
    if (commands->open == NULL || left < quern__run_bytes(operation)) return NULL;
    return next + sizeof(quern__run) + quern__place_padding(operation, next + sizeof(quern__run));
}

static inline void quern__run_begin(quern_commands *commands, const quern__operation *operation,
                                    const char *first_item)
{
    quern__run_close(commands);
    quern__run *run = (quern__run *)(void *)commands->next;
    run->operation = operation;
    run->item_count = 0;
    run->first_item_bytes = (uint32_t)(first_item - commands->next);
    commands->open->run_count++;
    commands->open->traits &= operation->traits;
    commands->run = run;
    commands->operation = operation;
}

/* One more item, in the place that has been found for it; what stands there is for the caller to give. */
static inline quern__item *quern__place_take(quern_commands *commands, const quern__operation *operation,
                                             char *place)
{
    if (place != commands->next) quern__run_begin(commands, operation, place);
    commands->next = place + operation->item_bytes;
    commands->run->item_count++;
    return (quern__item *)(void *)place;
}

/* Makes sure that `count` more items can be recorded without failing. Errors: OUT_OF_MEMORY;
 * INVALID_ARGUMENT where no callback runs that the recorder is for. */
quern_result quern__places_prepare(quern_commands *commands, const quern__operation *operation,
                                   uint32_t count, const char *function);

/* The same for items of several operations: so many bytes in all, each with a run of its own, none larger
 * than that. */
quern_result quern__places_prepare_mixed(quern_commands *commands, uint64_t bytes, uint32_t largest_bytes,
                                         const char *function);

/* A place where quern__place_find finds none, in room that has been prepared. */
char *quern__place_open(quern_commands *commands, const quern__operation *operation);

/* The place of one more item, prepared where there is none. */
static inline quern_result quern__place_ready(quern_commands *commands, const quern__operation *operation,
                                              const char *function, char **out_place)
{
    quern_result result = QUERN_OK;
    *out_place = quern__place_find(commands, operation);
    if (QUERN__LIKELY(*out_place != NULL)) return QUERN_OK;
    result = quern__places_prepare(commands, operation, 1, function);
    if (result == QUERN_OK) *out_place = quern__place_open(commands, operation);
    return result;
}

/* Says that memory is missing for a command; the sync point then fails. */
quern_result quern__record_fail_memory(quern_commands *commands);

/* Says that the recorder is not used by the callback that it is for. */
QUERN__SLOW_PATH quern_result quern__record_fail_foreign(const quern_commands *commands,
                                                         const char *function);

/* Begins with the first block again, if there is one. */
void quern__blocks_rewind(quern_commands *commands);

/* Gives the blocks after so many back. */
void quern__blocks_trim(quern_commands *commands, uint32_t keep_count);

#endif
