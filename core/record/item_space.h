/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_ITEM_SPACE_H
#define QUERN_CORE_RECORD_ITEM_SPACE_H

/* Space for items in a recorder's blocks. Every command finds space and appends an item, inline. If the block
 * has no space left, space is reserved first; only that may allocate memory and fail. */

#include "core/record/record.h"

/* Closes the open batch. Counts its commands now, so that recording a command only updates item_count. */
static inline void quern__batch_close(quern_commands *commands)
{
    if (commands->operation == NULL) return;
    quern__stream *stream = commands->open;
    stream->command_count += (uint64_t)commands->batch->item_count * commands->operation->command_count;
    stream->item_count += commands->batch->item_count;
    commands->operation = NULL;
}

static inline uint32_t quern__block_left_bytes(const quern_commands *commands)
{
    return (uint32_t)(commands->end - commands->next);
}

/* Largest size of a batch with one item, at an address aligned to 8 bytes. */
static inline uint32_t quern__batch_max_bytes(const quern__operation *operation)
{
    return (uint32_t)sizeof(quern__command_batch) + operation->alignment_bytes - 8 + operation->item_bytes;
}

/* Number of padding bytes between the address and an item there. */
static inline size_t quern__item_padding(const quern__operation *operation, const char *address)
{
    return (size_t) - (uintptr_t)address & (operation->alignment_bytes - 1);
}

/* Returns the space for one more item: in the open batch, or after the header of a new batch in the current
 * block. Returns NULL if the callback has no stream yet or the block is full; then call quern__item_space_reserve
 * and quern__item_space_open. An open stream always belongs to the running callback. */
static inline char *quern__item_space_find(const quern_commands *commands,
                                           const quern__operation *operation)
{
    char *next = commands->next;
    const size_t left = (size_t)(commands->end - next);
    if (commands->operation == operation && left >= operation->item_bytes) return next;
    if (commands->open == NULL || left < quern__batch_max_bytes(operation)) return NULL;
    return next + sizeof(quern__command_batch) +
           quern__item_padding(operation, next + sizeof(quern__command_batch));
}

static inline void quern__batch_begin(quern_commands *commands, const quern__operation *operation,
                                      const char *first_item)
{
    quern__batch_close(commands);
    quern__command_batch *batch = (quern__command_batch *)(void *)commands->next;
    batch->operation = operation;
    batch->item_count = 0;
    batch->first_item_bytes = (uint16_t)(first_item - commands->next);
    batch->is_view = false;
    commands->open->batch_count++;
    commands->open->traits &= operation->traits;
    commands->batch = batch;
    commands->operation = operation;
}

/* Appends an item to the space that quern__item_space_find returned. The caller fills the item. */
static inline quern__item *quern__item_append(quern_commands *commands, const quern__operation *operation,
                                              char *space)
{
    if (space != commands->next) quern__batch_begin(commands, operation, space);
    commands->next = space + operation->item_bytes;
    assert(commands->next <= commands->end);
    commands->batch->item_count++;
    return (quern__item *)(void *)space;
}

/* Adds the names of the call and the system to the message of a failed call, and counts the call. The first one of a
 * system or query is logged, unless the entity was destroyed (STALE_ENTITY), the frame reports the failure
 * (OUT_OF_MEMORY), or it has been logged. Returns `result`. */
QUERN__SLOW_PATH quern_result quern__commands_fail(quern_commands *commands, quern_result result,
                                                   const char *function);

/* Reserves memory for `count` more items, so that recording them cannot fail. Errors: OUT_OF_MEMORY;
 * INVALID_ARGUMENT if no callback is running. */
quern_result quern__item_space_reserve(quern_commands *commands, const quern__operation *operation,
                                       uint32_t count, const char *function);

/* Reserves memory for items of several operations, each in its own batch. bytes: total size of the batches.
 * largest_bytes: size of the largest. Errors: like quern__item_space_reserve. */
quern_result quern__item_space_reserve_mixed(quern_commands *commands, uint64_t bytes,
                                             uint32_t largest_bytes, const char *function);

/* Returns space in reserved memory after quern__item_space_find returned NULL: continues in the next block, or
 * begins the stream of the callback. */
char *quern__item_space_open(quern_commands *commands, const quern__operation *operation);

/* Closes the open batch and returns space for a batch of this size in reserved memory, as
 * quern__item_space_open does for an item. bytes: a multiple of 8. */
char *quern__item_space_open_bytes(quern_commands *commands, uint32_t bytes);

/* Returns space for one more item, and reserves it first if necessary. Errors: like quern__item_space_reserve. */
static inline quern_result quern__item_space_get(quern_commands *commands,
                                                 const quern__operation *operation, const char *function,
                                                 char **out_space)
{
    quern_result result = QUERN_OK;
    *out_space = quern__item_space_find(commands, operation);
    if (QUERN__LIKELY(*out_space != NULL)) return QUERN_OK;
    result = quern__item_space_reserve(commands, operation, 1, function);
    if (result == QUERN_OK) *out_space = quern__item_space_open(commands, operation);
    return result;
}

/* Reports that a command could not be recorded for lack of memory. The next sync point applies the others and
 * reports the loss. */
quern_result quern__commands_fail_memory(quern_commands *commands);

/* Reports that code outside of the running callback uses the recorder. */
QUERN__SLOW_PATH quern_result quern__commands_fail_foreign_use(const quern_commands *commands,
                                                               const char *function);

/* Makes the first block, if any, the current one. */
void quern__blocks_rewind(quern_commands *commands);

/* Releases all blocks except the first keep_count. */
void quern__blocks_trim(quern_commands *commands, uint32_t keep_count);

/* Adds blocks for `bytes` bytes of commands after the current block, and touches their memory. Returns false, with
 * nothing changed, if out of memory. */
bool quern__blocks_reserve_bytes(quern_commands *commands, uint64_t bytes);

#endif
