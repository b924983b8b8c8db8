/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: streams in order. Output: values set, and components enabled or disabled, in existing rows. Commands
 * that cannot be applied in place are detected before anything is written. */
#include "core/playback/in_place.h"

#include "core/playback/kind_calls.h"
#include "core/storage/change.h"

/* Applies an item to the row at a location, or only checks it. Returns false if the entity lacks the component. */
typedef bool set_item(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                      const quern__operand *operand, bool writes);

static inline bool set_value(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                             const quern__operand *operand, bool writes)
{
    char *value = quern__storage_value(archetype, location, operand->component_index);
    if (value == NULL) return false;
    if (!writes) return true;
    quern__rows_before_write(archetype, location, 1, operand->component_index);
    quern__copy_value(value, (const char *)item + operand->offset_bytes, operand->size_bytes);
    quern__rows_written(archetype, location, 1, operand->component_index);
    return true;
}

static inline bool change_bit(const quern__archetype *archetype, uintptr_t location,
                              const quern__operand *operand, bool sets, bool writes)
{
    const uint32_t bit_column =
        quern__row_bits_find_column(archetype->row_bits, operand->row_flag, operand->component_index);
    if (bit_column == QUERN__NO_BIT_COLUMN) return false;
    if (writes) quern__row_enable(archetype, location, bit_column, !sets);
    return true;
}

static inline bool clear_bit(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                             const quern__operand *operand, bool writes)
{
    (void)item;
    return change_bit(archetype, location, operand, false, writes);
}

static inline bool set_bit(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                           const quern__operand *operand, bool writes)
{
    (void)item;
    return change_bit(archetype, location, operand, true, writes);
}

/* Always inlined, so that `set` is inlined for each kind and the loop over the items has no calls. */
QUERN__ALWAYS_INLINE bool walk_batch(const quern__storage *storage, quern__command_batch *batch,
                                     bool is_located, set_item *set, bool writes)
{
    assert(!batch->is_view);
    const quern__operation *operation = batch->operation;
    const quern__operand *operand = &operation->operands[0];
    quern__item *item = quern__batch_item(batch, 0);
    for (uint32_t i = 0; i < batch->item_count; i++, item = quern__item_next(item, operation)) {
        uintptr_t location = item->location;
        if (QUERN__UNLIKELY(!is_located)) {
            const quern__record *record = quern__entities_find(&storage->entities, item->entity);
            if (record == NULL) return false;
            location = record->location;
        }
        if (!set(quern__chunk_of(location)->archetype, item, location, operand, writes)) return false;
    }
    return true;
}

/* Sets the values of a command for a view, or only checks it. Returns false if the rows lack the component or are
 * not located. */
static QUERN__SLOW_PATH bool set_view(quern__command_batch *batch, bool is_located, bool writes)
{
    if (!quern__view_is_located(batch, is_located)) return false;
    const quern__operand *operand = &batch->operation->operands[0];
    const quern__chunk *chunk = quern__chunk_of(quern__view_of(batch)->location);
    const quern__view_items items = quern__view_items_of(batch);
    quern__view_range range = {.index = 0};
    while (quern__view_next_range(batch, &range)) {
        const uintptr_t first = quern__location_make(chunk, range.rows.first);
        char *values = quern__storage_value(chunk->archetype, first, operand->component_index);
        if (values == NULL) return false;
        if (!writes) return true; /* all rows have the same components */
        quern__rows_before_write(chunk->archetype, first, range.rows.count, operand->component_index);
        quern__view_copy_values(values, items, range.index, range.rows.count, operand->offset_bytes,
                                operand->size_bytes);
        quern__rows_written(chunk->archetype, first, range.rows.count, operand->component_index);
    }
    return true;
}

bool quern__set_values(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                       bool writes)
{
    if (QUERN__UNLIKELY(batch->is_view)) return set_view(batch, is_located, writes);
    return writes ? walk_batch(storage, batch, is_located, set_value, true)
                  : walk_batch(storage, batch, is_located, set_value, false);
}

bool quern__clear_bits(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                       bool writes)
{
    return walk_batch(storage, batch, is_located, clear_bit, writes);
}

bool quern__set_bits(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                     bool writes)
{
    return walk_batch(storage, batch, is_located, set_bit, writes);
}

static inline bool walk_streams(const quern__gathered *gathered, const quern__storage *storage, bool writes)
{
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__gathered_stream *sorted = &gathered->streams.items[i];
        quern__command_batch *batch = sorted->stream->first;
        for (uint32_t k = 0; k < sorted->stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            quern__set_function *set = quern__kind_calls_of[batch->operation->kind].set;
            if (!set(storage, batch, sorted->is_located, writes)) return false;
        }
    }
    return true;
}

bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage)
{
    return walk_streams(gathered, storage, false);
}

void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage)
{
    walk_streams(gathered, storage, true);
}
