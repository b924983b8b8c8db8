/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Telling reactions what is pending: bits become lists of rows, and copies blocks of views. */

#include "core/base/bitset.h"
#include "core/reactions/reaction.h"
#include "core/storage/storage.h"

static const quern__plane_kind plane_kinds[] = {QUERN__PLANE_ADDED, QUERN__PLANE_SET};
static const quern_reaction_kind kinds[] = {QUERN_ON_ADDED, QUERN_ON_SET};
enum { KIND_COUNT = QUERN__COUNT_OF(kinds) };

/* The places of the planes of a watch, by kind; QUERN__NO_PLANE for those that it does not have. */
static void find_planes(const quern__watch *watch, uint32_t *out_indices)
{
    for (uint32_t i = 0; i < KIND_COUNT; i++)
        out_indices[i] =
            quern__planes_find(watch->archetype->planes, plane_kinds[i], watch->reaction->number);
}

static uint32_t count_rows(const quern__watch *watch, uint32_t plane, uint32_t slot)
{
    return plane != QUERN__NO_PLANE ? quern__plane_count(watch->archetype->planes, plane, slot) : 0;
}

static uint32_t row_words(const quern__watch *watch)
{
    return (watch->archetype->row_capacity + 63) / 64;
}

/* ---------------------------------------------------------------------------------------------- room */

/* Room for one watch more, whose rows and blocks are listed afterwards or not at all. */
static bool reserve_watch(quern__taken *taken, const quern__watch *watch, const quern_allocator *allocator,
                          quern__taken *counts)
{
    if (watch->is_pending) {
        uint32_t planes[KIND_COUNT];
        find_planes(watch, planes);
        for (uint32_t slot = 0; slot < watch->archetype->chunk_count; slot++)
            for (uint32_t i = 0; i < KIND_COUNT; i++)
                if (count_rows(watch, planes[i], slot) > 0) {
                    counts->rows.count++;
                    counts->words.count += row_words(watch);
                }
    }
    counts->removed.count += quern__removed_used_blocks(&watch->removed);
    return quern__array_reserve(allocator, &taken->rows, counts->rows.count) &&
           quern__array_reserve(allocator, &taken->words, counts->words.count) &&
           quern__array_reserve(allocator, &taken->removed, counts->removed.count);
}

/* All that may fail. Sorted copies are the same copies. */
static bool prepare(quern__reaction *reaction, const quern_allocator *allocator)
{
    quern__taken counts = {0};
    for (uint32_t i = 0; i < reaction->watches.count; i++) {
        quern__watch *watch = reaction->watches.items[i];
        if (!reserve_watch(&reaction->taken, watch, allocator, &counts) ||
            !quern__removed_sort(&watch->removed, allocator))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------- taking */

/* Lists the rows of a chunk that have the bit, which they lose. */
static void take_bits(quern__taken *taken, const quern__watch *watch, uint32_t slot, uint32_t plane,
                      quern_reaction_kind kind)
{
    const quern__planes *planes = watch->archetype->planes;
    taken->rows.items[taken->rows.count++] =
        (quern__taken_rows){.archetype = watch->archetype,
                            .slot = slot,
                            .first_word = taken->words.count,
                            .count = quern__plane_count(planes, plane, slot),
                            .kind = kind};
    memcpy(taken->words.items + taken->words.count, quern__plane_words(planes, plane, slot),
           row_words(watch) * sizeof *taken->words.items);
    taken->words.count += row_words(watch);
    quern__plane_clear_slot(planes, plane, slot);
}

static void take_rows(quern__taken *taken, quern__watch *watch)
{
    if (!watch->is_pending) return;
    uint32_t planes[KIND_COUNT];
    find_planes(watch, planes);
    for (uint32_t slot = 0; slot < watch->archetype->chunk_count; slot++)
        for (uint32_t i = 0; i < KIND_COUNT; i++)
            if (count_rows(watch, planes[i], slot) > 0) take_bits(taken, watch, slot, planes[i], kinds[i]);
    watch->is_pending = false;
}

/* Blocks that have copies leave the watch; the others stay. */
static void take_blocks(quern__taken *taken, quern__watch *watch)
{
    quern__removed *removed = &watch->removed;
    const uint32_t used = quern__removed_used_blocks(removed);
    if (used == 0) return;
    for (uint32_t i = 0; i < used; i++) {
        char *memory = removed->blocks.items[i];
        taken->removed.items[taken->removed.count++] =
            (quern__taken_block){.watch = watch,
                                 .memory = memory,
                                 .entities = (const quern_entity *)(const void *)memory,
                                 .columns = watch->columns,
                                 .count = quern__removed_rows_in(removed, i)};
    }
    memmove(removed->blocks.items, removed->blocks.items + used,
            (removed->blocks.count - used) * sizeof *removed->blocks.items);
    removed->blocks.count -= used;
    removed->count = 0;
    watch->handed_count = used;
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
    quern__reaction_done(storage, reaction);
    if (!reaction->is_pending) return QUERN_OK;
    if (!prepare(reaction, &storage->allocator))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list what a reaction is told");
    for (uint32_t i = 0; i < reaction->watches.count; i++) {
        take_rows(&reaction->taken, reaction->watches.items[i]);
        take_blocks(&reaction->taken, reaction->watches.items[i]);
    }
    note_nothing_pending(storage->reactions, reaction);
    return QUERN_OK;
}

/* Gives a block back to its watch. Of those that are free there, it keeps as many as it used last. */
static void give_back(const quern__taken_block *block, const quern_allocator *allocator)
{
    quern__watch *watch = block->watch;
    quern__removed *removed = &watch->removed;
    quern__removed_destroy_values(removed, block->memory, block->count);
    if (removed->blocks.count < removed->blocks.capacity)
        removed->blocks.items[removed->blocks.count++] = block->memory;
    else
        quern__release(allocator, block->memory, removed->block_bytes, QUERN__PART_ALIGNMENT_BYTES);
    watch->handed_count--;
}

void quern__reaction_done(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0, first = 0; i < taken->removed.count; i++) {
        const quern__taken_block *block = &taken->removed.items[i];
        if (block->watch != taken->removed.items[first].watch) first = i;
        give_back(block, &storage->allocator);
        if (block->watch->handed_count == 0)
            quern__removed_trim(&block->watch->removed, &storage->allocator, i + 1 - first);
    }
    taken->removed.count = 0;
    taken->rows.count = 0;
    taken->words.count = 0;
}

/* ------------------------------------------------------------------------------------------ put back */

static void put_back_rows(const quern__taken *taken, const quern__taken_rows *rows, quern__watch *watch)
{
    uint32_t planes[KIND_COUNT];
    find_planes(watch, planes);
    const uint32_t plane = planes[rows->kind == QUERN_ON_ADDED ? 0 : 1];
    const quern__chunk *chunk = rows->archetype->slots[rows->slot].chunk;
    const uint64_t *words = taken->words.items + rows->first_word;
    quern__bit_run run = {0};
    while (quern__bitset_next_run(words, row_words(watch), &run))
        quern__plane_set_run(rows->archetype->planes, plane, quern__location_make(chunk, run.first),
                             run.count);
    watch->is_pending = true;
}

/* Blocks of one watch, which had room for them before. */
static void put_back_blocks(const quern__taken_block *blocks, uint32_t count)
{
    quern__watch *watch = blocks[0].watch;
    quern__removed *removed = &watch->removed;
    assert(removed->count == 0 && removed->blocks.count + count <= removed->blocks.capacity);
    memmove(removed->blocks.items + count, removed->blocks.items,
            removed->blocks.count * sizeof *removed->blocks.items);
    for (uint32_t i = 0; i < count; i++) {
        removed->blocks.items[i] = blocks[i].memory;
        removed->count += blocks[i].count;
    }
    removed->blocks.count += count;
    watch->handed_count -= count;
}

void quern__reaction_put_back(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0; i < taken->rows.count; i++) {
        const quern__taken_rows *rows = &taken->rows.items[i];
        put_back_rows(taken, rows, quern__watch_of(rows->archetype, reaction));
    }
    for (uint32_t first = 0, end; first < taken->removed.count; first = end) {
        for (end = first + 1; end < taken->removed.count; end++)
            if (taken->removed.items[end].watch != taken->removed.items[first].watch) break;
        put_back_blocks(&taken->removed.items[first], end - first);
    }
    if (taken->rows.count + taken->removed.count > 0)
        reaction->is_pending = storage->reactions->is_pending = true;
    taken->rows.count = taken->words.count = taken->removed.count = 0;
}

void quern__reaction_drop(quern__storage *storage, quern__reaction *reaction)
{
    if (!reaction->is_pending) return;
    for (uint32_t i = 0; i < reaction->watches.count; i++) {
        quern__watch *watch = reaction->watches.items[i];
        uint32_t planes[KIND_COUNT];
        find_planes(watch, planes);
        for (uint32_t slot = 0; watch->is_pending && slot < watch->archetype->chunk_count; slot++)
            for (uint32_t k = 0; k < KIND_COUNT; k++)
                if (count_rows(watch, planes[k], slot) > 0)
                    quern__plane_clear_slot(watch->archetype->planes, planes[k], slot);
        watch->is_pending = false;
        const uint32_t used = quern__removed_used_blocks(&watch->removed);
        quern__removed_clear(&watch->removed);
        quern__removed_trim(&watch->removed, &storage->allocator, used);
    }
    note_nothing_pending(storage->reactions, reaction);
}
