/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/item_space.h"

#include "core/record/view_batch.h"

enum { COMMAND_BLOCK_BYTES = 64 * 1024, COMMAND_BLOCK_ALIGNMENT_BYTES = 64 };

_Static_assert(QUERN__VIEW_BATCH_MAX_BYTES + 2 * sizeof(quern__command_batch) < COMMAND_BLOCK_BYTES,
               "a block has room for a command for a view");

_Static_assert(sizeof(quern__command_batch) == 16, "a run's head is 16 bytes");
_Static_assert(sizeof(quern__item) % 8 == 0, "a batch after items is aligned to 8 bytes");

/* A block must have space for one item of the largest create, with a row that fills a chunk; in addition, the batch
 * header, a jump and padding. */
_Static_assert(2 * sizeof(quern__command_batch) + sizeof(quern__item) +
                       (size_t)(QUERN_MAX_ENTITY_COMPONENTS + 3) * (QUERN_MAX_ALIGNMENT_BYTES + 1) +
                       QUERN__CHUNK_BYTES <
                   COMMAND_BLOCK_BYTES,
               "blocks are too small");

/* -------------------------------------------------------------------------------------------- blocks */

static void use_block(quern_commands *commands, uint32_t index)
{
    commands->block_index = index;
    commands->next = commands->blocks.items[index].memory;
    commands->end = commands->next + COMMAND_BLOCK_BYTES - sizeof(quern__command_batch);
}

void quern__blocks_rewind(quern_commands *commands)
{
    if (commands->blocks.count > 0) use_block(commands, 0);
}

void quern__blocks_trim(quern_commands *commands, uint32_t keep_count)
{
    while (commands->blocks.count > keep_count)
        quern__release(&commands->storage->allocator,
                       commands->blocks.items[--commands->blocks.count].memory, COMMAND_BLOCK_BYTES,
                       COMMAND_BLOCK_ALIGNMENT_BYTES);
    if (keep_count == 0) commands->next = commands->end = NULL;
}

static bool block_add(quern_commands *commands)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    if (!quern__array_reserve(allocator, &commands->blocks, commands->blocks.count + 1)) return false;
    char *memory = quern__allocate(allocator, COMMAND_BLOCK_BYTES, COMMAND_BLOCK_ALIGNMENT_BYTES);
    if (memory == NULL) return false;
    commands->blocks.items[commands->blocks.count++] = (quern__block){.memory = memory};
    if (commands->blocks.count == 1) use_block(commands, 0);
    return true;
}

/* How many items of one batch fit into this number of bytes. */
static uint32_t items_that_fit(const quern__operation *operation, uint32_t bytes)
{
    if (bytes < quern__batch_max_bytes(operation)) return 0;
    return 1 + (bytes - quern__batch_max_bytes(operation)) / operation->item_bytes;
}

/* Reserves this many unused blocks after the current one. On failure, no new block is kept. */
static bool reserve_more(quern_commands *commands, uint64_t blocks)
{
    uint32_t held = commands->blocks.count;
    uint32_t used = held > 0 ? commands->block_index + 1 : 0;
    while (commands->blocks.count - used < blocks)
        if (!block_add(commands)) {
            quern__blocks_trim(commands, held);
            return false;
        }
    return true;
}

bool quern__blocks_reserve_bytes(quern_commands *commands, uint64_t bytes)
{
    const uint32_t held = commands->blocks.count;
    if (!reserve_more(commands, (bytes + COMMAND_BLOCK_BYTES - 1) / COMMAND_BLOCK_BYTES)) return false;
    for (uint32_t i = held; i < commands->blocks.count; i++)
        quern__touch_pages(commands->blocks.items[i].memory, COMMAND_BLOCK_BYTES);
    return true;
}

/* Reserves blocks for `count` more items, in addition to the space left in the current block. On failure, no
 * new block is kept. */
static bool reserve_blocks(quern_commands *commands, const quern__operation *operation, uint32_t count)
{
    if (count == 1 && quern__block_left_bytes(commands) >= quern__batch_max_bytes(operation)) return true;
    uint32_t fitting = items_that_fit(operation, quern__block_left_bytes(commands));
    if (fitting >= count) return true;
    uint32_t per_block =
        items_that_fit(operation, COMMAND_BLOCK_BYTES - (uint32_t)sizeof(quern__command_batch));
    assert(per_block > 0);
    return reserve_more(commands, (count - fitting - 1) / per_block + 1);
}

/* ------------------------------------------------------------------------------------------ preparing */

quern_result quern__commands_fail_memory(quern_commands *commands)
{
    commands->failed = QUERN_ERROR_OUT_OF_MEMORY;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a command");
}

quern_result quern__commands_fail_foreign_use(const quern_commands *commands, const char *function)
{
    const char *name = commands->origin.name;
    return quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: a command recorder was used outside of the callback that asked for it, or on another "
        "thread%s%s%s: ask quern_context_commands (or, between frames, quern_world_commands) for it in "
        "each "
        "callback, and use it only there",
        function, name ? " (system '" : "", name ? name : "", name ? "' had it last)" : "");
}

/* A use outside of the callback, or on another thread, was logged; the recorder may be in use meanwhile. Relaxed: the flag
 * orders no other access. */
quern_result quern__commands_fail(quern_commands *commands, quern_result result, const char *function)
{
    quern__message_add_call(result, function, commands->origin.name);
    if (commands->callback_thread != quern__this_thread() || result == QUERN_ERROR_OUT_OF_MEMORY)
        return result;
    commands->failed_count++;
    const bool is_logged = result != QUERN_ERROR_STALE_ENTITY && result != QUERN_ERROR_PROVISIONAL_ENTITY &&
                           commands->has_logged_failure != NULL;
    if (is_logged && !atomic_exchange_explicit(commands->has_logged_failure, true, memory_order_relaxed))
        quern__log(QUERN_LOG_ERROR, "%s", quern_error_message());
    return result;
}

static bool reserve_stream(quern_commands *commands)
{
    return commands->open != NULL || quern__array_reserve(&commands->storage->allocator, &commands->streams,
                                                          commands->streams.count + 1);
}

quern_result quern__item_space_reserve(quern_commands *commands, const quern__operation *operation,
                                       uint32_t count, const char *function)
{
    if (QUERN__UNLIKELY(commands->callback_thread == NULL))
        return quern__commands_fail_foreign_use(commands, function);
    if (!reserve_blocks(commands, operation, count) || !reserve_stream(commands))
        return quern__commands_fail_memory(commands);
    return QUERN_OK;
}

/* Each block may lose up to largest_bytes at its end, where the next batch does not fit. */
quern_result quern__item_space_reserve_mixed(quern_commands *commands, uint64_t bytes,
                                             uint32_t largest_bytes, const char *function)
{
    if (QUERN__UNLIKELY(commands->callback_thread == NULL))
        return quern__commands_fail_foreign_use(commands, function);
    const uint32_t per_block = COMMAND_BLOCK_BYTES - (uint32_t)sizeof(quern__command_batch) - largest_bytes;
    if ((quern__block_left_bytes(commands) < bytes && !reserve_more(commands, bytes / per_block + 1)) ||
        !reserve_stream(commands))
        return quern__commands_fail_memory(commands);
    return QUERN_OK;
}

/* Makes the next block the current one, and writes a jump to it at the end of the current one. Only a stream
 * that continues in the next block reads the jump. */
static void next_block(quern_commands *commands)
{
    quern__command_batch *jump = (quern__command_batch *)(void *)commands->next;
    use_block(commands, commands->block_index + 1);
    *jump = (quern__command_batch){.next = (quern__command_batch *)(void *)commands->next};
}

static void begin_stream(quern_commands *commands, quern__command_batch *first)
{
    commands->open = &commands->streams.items[commands->streams.count++];
    *commands->open = (quern__stream){.origin = commands->origin,
                                      .first = first,
                                      .traits = UINT8_MAX,
                                      .structure_version = commands->storage->structure_version};
}

char *quern__item_space_open_bytes(quern_commands *commands, uint32_t bytes)
{
    quern__batch_close(commands);
    if (quern__block_left_bytes(commands) < bytes) next_block(commands);
    if (commands->open == NULL) begin_stream(commands, (quern__command_batch *)(void *)commands->next);
    return commands->next;
}

char *quern__item_space_open(quern_commands *commands, const quern__operation *operation)
{
    quern__item_space_open_bytes(commands, quern__batch_max_bytes(operation));
    return quern__item_space_find(commands, operation);
}
