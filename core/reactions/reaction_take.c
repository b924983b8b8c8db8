/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Passes pending changes to reactions: bits become lists of rows, and copies become blocks for views. */

#include "core/base/bitset.h"
#include "core/reactions/reaction.h"
#include "core/storage/storage.h"

static const quern_reaction_kind kinds[] = {QUERN_REACT_ADDED, QUERN_REACT_SET};
enum { KIND_COUNT = QUERN__COUNT_OF(kinds) };

/* Lists the indices of the bit columns of a subscription by kind; QUERN__NO_BIT_COLUMN for a kind without a bit column. */
static void list_bit_columns(const quern__subscription *subscription, uint32_t *out_indices)
{
    out_indices[0] = subscription->added_column;
    out_indices[1] = subscription->set_column;
}

static uint32_t count_rows(const quern__subscription *subscription, uint32_t bit_column, uint32_t slot)
{
    return bit_column != QUERN__NO_BIT_COLUMN
               ? quern__bit_column_count(subscription->archetype->row_bits, bit_column, slot)
               : 0;
}

static uint32_t row_words(const quern__subscription *subscription)
{
    return (subscription->archetype->row_capacity + 63) / 64;
}

/* ---------------------------------------------------------------------------------------------- room */

/* Adds the numbers of rows, words and blocks that a subscription will list to `counts`, and reserves memory in the lists
 * for `counts`. Returns false if out of memory. */
static bool reserve_subscription(quern__taken *taken, const quern__subscription *subscription,
                                 const quern_allocator *allocator, quern__taken *counts)
{
    if (subscription->is_pending) {
        uint32_t bit_columns[KIND_COUNT];
        list_bit_columns(subscription, bit_columns);
        for (uint32_t slot = 0; slot < subscription->archetype->chunk_count; slot++)
            for (uint32_t i = 0; i < KIND_COUNT; i++)
                if (count_rows(subscription, bit_columns[i], slot) > 0) {
                    counts->rows.count++;
                    counts->words.count += row_words(subscription);
                }
    }
    counts->removed.count += quern__removed_used_blocks(&subscription->removed);
    return quern__array_reserve(allocator, &taken->rows, counts->rows.count) &&
           quern__array_reserve(allocator, &taken->words, counts->words.count) &&
           quern__array_reserve(allocator, &taken->removed, counts->removed.count);
}

/* Reserves memory for everything that will be taken, and sorts the copies, which does not change what is pending. Returns
 * false if out of memory. */
static bool prepare(quern__reaction *reaction, const quern_allocator *allocator)
{
    quern__taken counts = {0};
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        if (!reserve_subscription(&reaction->taken, subscription, allocator, &counts) ||
            !quern__removed_sort(&subscription->removed, allocator))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------- taking */

/* Lists the rows of a chunk with a set bit, and clears the bits. */
static void take_bits(quern__taken *taken, const quern__subscription *subscription, uint32_t slot,
                      uint32_t bit_column, quern_reaction_kind kind)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    taken->rows.items[taken->rows.count++] = (quern__taken_rows){
        .archetype = subscription->archetype,
        .slot = slot,
        .first_word = taken->words.count,
        .count = quern__bit_column_count(row_bits, bit_column, slot),
        .kind = kind,
        .old = kind == QUERN_REACT_SET ? quern__old_values_of(&subscription->old, slot) : NULL};
    memcpy(taken->words.items + taken->words.count, quern__bit_column_words(row_bits, bit_column, slot),
           row_words(subscription) * sizeof *taken->words.items);
    taken->words.count += row_words(subscription);
    quern__bit_column_clear_slot(row_bits, bit_column, slot);
}

static void take_rows(quern__taken *taken, quern__subscription *subscription)
{
    if (!subscription->is_pending) return;
    uint32_t bit_columns[KIND_COUNT];
    list_bit_columns(subscription, bit_columns);
    for (uint32_t slot = 0; slot < subscription->archetype->chunk_count; slot++)
        for (uint32_t i = 0; i < KIND_COUNT; i++)
            if (count_rows(subscription, bit_columns[i], slot) > 0)
                take_bits(taken, subscription, slot, bit_columns[i], kinds[i]);
    subscription->is_pending = false;
}

/* Moves the blocks with copies from the subscription to taken->removed. */
static void take_blocks(quern__taken *taken, quern__subscription *subscription)
{
    quern__removed *removed = &subscription->removed;
    const uint32_t used = quern__removed_used_blocks(removed);
    if (used == 0) return;
    for (uint32_t i = 0; i < used; i++) {
        char *memory = removed->blocks.items[i];
        taken->removed.items[taken->removed.count++] =
            (quern__taken_block){.subscription = subscription,
                                 .memory = memory,
                                 .entities = (const quern_entity *)(const void *)memory,
                                 .columns = subscription->columns,
                                 .count = quern__removed_rows_in(removed, i)};
    }
    memmove(removed->blocks.items, removed->blocks.items + used,
            (removed->blocks.count - used) * sizeof *removed->blocks.items);
    removed->blocks.count -= used;
    removed->count = 0;
    subscription->taken_block_count = used;
}

static void note_nothing_pending(quern__reactions *registry, quern__reaction *reaction)
{
    reaction->is_pending = false;
    registry->is_pending = false;
    for (uint32_t i = 0; i < registry->list.count; i++)
        if (registry->list.items[i] != NULL && registry->list.items[i]->is_pending)
            registry->is_pending = true;
}

quern_result quern__reaction_take(quern__storage *storage, quern__reaction *reaction)
{
    quern__reaction_finish(storage, reaction);
    if (!reaction->is_pending) return QUERN_OK;
    if (!prepare(reaction, &storage->allocator))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the changes for a reaction");
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        take_rows(&reaction->taken, reaction->subscriptions.items[i]);
        take_blocks(&reaction->taken, reaction->subscriptions.items[i]);
    }
    note_nothing_pending(storage->reactions, reaction);
    return QUERN_OK;
}

/* Destroys the copies in a block and returns the block to its subscription. quern__reaction_finish then trims the
 * free blocks to the number used last. */
static void give_back(const quern__taken_block *block, const quern_allocator *allocator)
{
    quern__subscription *subscription = block->subscription;
    quern__removed *removed = &subscription->removed;
    quern__removed_destroy_values(removed, block->memory, block->count);
    if (removed->blocks.count < removed->blocks.capacity)
        removed->blocks.items[removed->blocks.count++] = block->memory;
    else
        quern__release(allocator, block->memory, removed->block_bytes, QUERN__PART_ALIGNMENT_BYTES);
    subscription->taken_block_count--;
}

void quern__reaction_finish(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0, first = 0; i < taken->removed.count; i++) {
        const quern__taken_block *block = &taken->removed.items[i];
        if (block->subscription != taken->removed.items[first].subscription) first = i;
        give_back(block, &storage->allocator);
        if (block->subscription->taken_block_count == 0)
            quern__removed_trim(&block->subscription->removed, &storage->allocator, i + 1 - first);
    }
    taken->removed.count = 0;
    taken->rows.count = 0;
    taken->words.count = 0;
}

/* ------------------------------------------------------------------------------------------ put back */

static void put_back_rows(const quern__taken *taken, const quern__taken_rows *rows,
                          quern__subscription *subscription)
{
    uint32_t bit_columns[KIND_COUNT];
    list_bit_columns(subscription, bit_columns);
    const uint32_t bit_column = bit_columns[rows->kind == QUERN_REACT_ADDED ? 0 : 1];
    const quern__chunk *chunk = rows->archetype->slots[rows->slot].chunk;
    const uint64_t *words = taken->words.items + rows->first_word;
    quern__bit_range run = {0};
    while (quern__bitset_next_range(words, row_words(subscription), &run))
        quern__bit_column_set_rows(rows->archetype->row_bits, bit_column,
                                   quern__location_make(chunk, run.first), run.count);
    subscription->is_pending = true;
}

/* Returns blocks with their copies to their subscription. Its list still has the capacity for them. */
static void put_back_blocks(const quern__taken_block *blocks, uint32_t count)
{
    quern__subscription *subscription = blocks[0].subscription;
    quern__removed *removed = &subscription->removed;
    assert(removed->count == 0 && removed->blocks.count + count <= removed->blocks.capacity);
    memmove(removed->blocks.items + count, removed->blocks.items,
            removed->blocks.count * sizeof *removed->blocks.items);
    for (uint32_t i = 0; i < count; i++) {
        removed->blocks.items[i] = blocks[i].memory;
        removed->count += blocks[i].count;
    }
    removed->blocks.count += count;
    subscription->taken_block_count -= count;
}

void quern__reaction_put_back(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0; i < taken->rows.count; i++) {
        const quern__taken_rows *rows = &taken->rows.items[i];
        put_back_rows(taken, rows, quern__find_subscription(rows->archetype, reaction));
    }
    for (uint32_t first = 0, end; first < taken->removed.count; first = end) {
        for (end = first + 1; end < taken->removed.count; end++)
            if (taken->removed.items[end].subscription != taken->removed.items[first].subscription) break;
        put_back_blocks(&taken->removed.items[first], end - first);
    }
    if (taken->rows.count + taken->removed.count > 0)
        reaction->is_pending = storage->reactions->is_pending = true;
    taken->rows.count = taken->words.count = taken->removed.count = 0;
}

void quern__reaction_drop(quern__storage *storage, quern__reaction *reaction)
{
    if (!reaction->is_pending) return;
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        uint32_t bit_columns[KIND_COUNT];
        list_bit_columns(subscription, bit_columns);
        for (uint32_t slot = 0; subscription->is_pending && slot < subscription->archetype->chunk_count;
             slot++)
            for (uint32_t k = 0; k < KIND_COUNT; k++)
                if (count_rows(subscription, bit_columns[k], slot) > 0)
                    quern__bit_column_clear_slot(subscription->archetype->row_bits, bit_columns[k], slot);
        subscription->is_pending = false;
        const uint32_t used = quern__removed_used_blocks(&subscription->removed);
        quern__removed_clear(&subscription->removed);
        quern__removed_trim(&subscription->removed, &storage->allocator, used);
    }
    note_nothing_pending(storage->reactions, reaction);
}
