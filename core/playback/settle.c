/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In: archetype deltas, gaps and what is destroyed, and room for all of it. Out: handles and raw rows at
 * the beginning, archetypes without gaps at the end. Nothing may fail. */
#include "core/playback/settle.h"

#include "core/reactions/reaction.h"
#include "core/storage/change.h"

enum { MOVES_PER_CALL = 1024 };

/* -------------------------------------------------------------------------------------------- handles */

/* Most slots taken now are those freed by the last sync point, the last one first. Their list is still
 * there, and the free list is a chain: without a hint each of its slots would be waited for. */
static void take_handles(quern__resolved *resolved, quern__storage *storage)
{
    const uint32_t count = (uint32_t)resolved->created_count;
    const uint32_t freed_count = resolved->freed.count;
    for (uint32_t i = freed_count > count ? freed_count - count : 0; i < freed_count; i++)
        __builtin_prefetch(quern__entities_record(&storage->entities, resolved->freed.items[i]), 1);
    quern__slots_take(storage, count, resolved->created.items);
    resolved->created.count = count;
}

static quern_entity remap(void *argument, quern_entity entity)
{
    const quern_entity *created = argument;
    return quern_entity_is_provisional(entity) ? created[quern_entity_index(entity)] : entity;
}

void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created)
{
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (operand->offset_bytes != 0)
            quern__type_remap(operand->type, item + operand->offset_bytes, remap, created);
    }
}

void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage)
{
    if (resolved->created_count > 0) {
        take_handles(resolved, storage);
        if (QUERN_CHECKS) quern__gathered_look_for_provisional(gathered);
    }
    for (uint32_t i = 0; i < resolved->deltas.count; i++)
        quern__rows_append_many(storage, resolved->deltas.items[i].archetype,
                                resolved->deltas.items[i].appended_count);
    storage->reactions->orders_by_row = true;
}

/* ---------------------------------------------------------------------------------------- compaction */

typedef struct settling {
    quern__resolved *resolved;
    quern__storage *storage;
    const quern__executor *executor;
} settling;

/* The gaps of one archetype that no create has filled, and the rows that go there. */
typedef struct closing {
    const quern__storage *storage;
    const quern__archetype *archetype;
    const uintptr_t *gaps;
    const uintptr_t *tails;
} closing;

static uint32_t row_of(const quern__archetype *archetype, uintptr_t location)
{
    return quern__chunk_of(location)->index * archetype->row_capacity + quern__location_row(location);
}

/* Lists the rows from `end` on that are no gaps; gap: the first one that is not before `end`. */
static uint32_t list_tails(const settling *all, const quern__archetype_delta *delta, uint32_t end,
                           const uintptr_t *gap, const uintptr_t *gaps_end)
{
    const quern__archetype *archetype = delta->archetype;
    uint32_t row_count = (uint32_t)quern__archetype_row_count(archetype), count = 0;
    for (uint32_t row = end; row < row_count;) {
        uintptr_t location = quern__archetype_location(archetype, row);
        uint32_t in_chunk = archetype->row_capacity - quern__location_row(location);
        for (uint32_t i = 0; i < in_chunk && row < row_count; i++, row++) {
            if (gap < gaps_end && *gap == location + i)
                gap++;
            else
                all->resolved->tails.items[count++] = location + i;
        }
    }
    return count;
}

static void close_gaps(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const closing *it = argument;
    for (uint32_t i = begin, count; i < end; i += count) {
        uintptr_t to = it->gaps[i], from = it->tails[i];
        count = 1;
        while (i + count < end && it->gaps[i + count] == to + count && it->tails[i + count] == from + count)
            count++;
        quern__rows_relocate(it->storage, it->archetype, to, from, count);
    }
}

static bool has_move_hook(const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->column_count; i++)
        if (archetype->columns[i].type->hooks.move != NULL) return true;
    return false;
}

static void compact(const settling *all, const quern__archetype_delta *delta)
{
    const quern__archetype *archetype = delta->archetype;
    const uintptr_t *gaps = all->resolved->gaps.items + delta->first_gap + delta->created_count;
    const uintptr_t *gaps_end = gaps + delta->left_over_count;
    uint32_t end = (uint32_t)quern__archetype_row_count(archetype) - delta->left_over_count;
    const uintptr_t *gap = gaps_end;
    while (gap > gaps && row_of(archetype, gap[-1]) >= end)
        gap--;
    uint32_t count = list_tails(all, delta, end, gap, gaps_end);
    assert(count == (uint32_t)(gap - gaps));
    closing it = {
        .storage = all->storage, .archetype = archetype, .gaps = gaps, .tails = all->resolved->tails.items};
    quern__executor_run(has_move_hook(archetype) ? NULL : all->executor, count, MOVES_PER_CALL, close_gaps,
                        &it);
}

/* ------------------------------------------------------------------------------------------- the end */

/* The list of what is freed now is a hint for the next sync point (take_handles). */
static void free_slots(quern__resolved *resolved, quern__storage *storage)
{
    quern__slots_free(storage, resolved->destroyed.items, resolved->destroyed.count);
    const quern__slot_list freed = resolved->destroyed;
    resolved->destroyed = resolved->freed;
    resolved->freed = freed;
}

void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor)
{
    const settling all = {.resolved = resolved, .storage = storage, .executor = executor};
    if (QUERN__UNLIKELY(resolved->spawned.count > 0)) quern__spawned_put(resolved, storage);
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        const quern__archetype_delta *delta = &resolved->deltas.items[i];
        if (delta->left_over_count > 0 && !delta->is_emptied) compact(&all, delta);
        quern__rows_cut(storage, delta->archetype, delta->left_over_count);
    }
    free_slots(resolved, storage);
    storage->reactions->orders_by_row = false;
    quern__structure_changed(storage);
}
