/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_VIEW_BATCH_H
#define QUERN_CORE_RECORD_VIEW_BATCH_H

/* Commands for rows of a view. Such a command is a batch with is_view set, which has a quern__view_batch instead
 * of items:
 *
 *   | batch header | quern__view_batch | handle of each row | mask | values |
 *
 * It means the same as one single command on the entity of each row, in the order of rows, and has the operation
 * of these commands. item_count is the number of rows.
 *
 * As long as no row has moved since recording, the rows are found by location and mask, many at a time. Otherwise
 * they are found by their handles. The handles are copied when the command is recorded: a later sync point may
 * retry commands after the world has changed.
 *
 * Later stages address values like those of items: quern__view_items returns an address to which the operand's
 * offset_bytes can be added. There is no item at the address. */

#include "core/base/bitset.h"
#include "core/record/record.h"
#include "core/storage/row_mask.h"

/* Maximum size of a batch. Larger commands are split into several batches. */
#define QUERN__VIEW_BATCH_MAX_BYTES ((size_t)48 * 1024)

/* Appends a batch for this many rows in reserved memory. The caller fills the quern__view_batch, of which
 * view_bytes is the whole size. */
quern__command_batch *quern__view_batch_append(quern_commands *commands, const quern__operation *operation,
                                               uint32_t row_count, uint32_t view_bytes);

static inline quern__view_batch *quern__view_of(quern__command_batch *batch)
{
    assert(batch->is_view);
    return (quern__view_batch *)(void *)quern__batch_items(batch);
}

/* Returns the handles of the rows. */
static inline quern_entity *quern__view_entities(quern__command_batch *batch)
{
    return (quern_entity *)(void *)quern__view_of(batch)->entities;
}

/* Returns the bits of the rows in the chunk. There are mask_word_count words. */
static inline uint64_t *quern__view_mask(quern__command_batch *batch)
{
    return (uint64_t *)(void *)(quern__view_of(batch)->entities + batch->item_count * sizeof(quern_entity));
}

/* Returns the value of the first row. Precondition: the operation gives a value. */
static inline char *quern__view_values(quern__command_batch *batch)
{
    return (char *)(quern__view_mask(batch) + quern__view_of(batch)->mask_word_count);
}

/* Whether the rows of the batch are where they were when it was recorded, so that location and mask may be used.
 * is_located: see quern__gathered_stream. */
static inline bool quern__view_is_located(quern__command_batch *batch, bool is_located)
{
    return is_located && !quern__view_of(batch)->has_skipped;
}

/* Addresses of the values of a batch: the one of the i-th row is an operand's offset after
 * first + i * stride_bytes. */
typedef struct quern__view_items {
    char *first;
    uint32_t stride_bytes; /* 0: all rows have the same value, or none */
} quern__view_items;

static inline quern__view_items quern__view_items_of(quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    if (operation->operand_count == 0 || operation->operands[0].offset_bytes == 0)
        return (quern__view_items){.first = (char *)batch};
    return (quern__view_items){.first = quern__view_values(batch) - operation->operands[0].offset_bytes,
                               .stride_bytes = quern__view_of(batch)->value_bytes};
}

static inline char *quern__view_item(quern__view_items items, uint32_t i)
{
    return items.first + (size_t)i * items.stride_bytes;
}

/* Copies the values of `count` rows, from the index-th on, to adjacent memory. offset_bytes: offset of the operand's
 * value. */
static inline void quern__view_copy_values(char *to, quern__view_items items, uint32_t index,
                                           uint32_t count, uint32_t offset_bytes, uint32_t size_bytes)
{
    const char *values = quern__view_item(items, index) + offset_bytes;
    if (items.stride_bytes == 0)
        quern__copy_to_many(to, values, size_bytes, count);
    else
        memcpy(to, values, (size_t)size_bytes * count);
}

/* Number of different values of a batch that gives values. */
static inline uint32_t quern__batch_value_count(quern__command_batch *batch)
{
    return batch->is_view && quern__view_of(batch)->value_bytes == 0 ? 1 : batch->item_count;
}

/* Returns the address before the i-th value, as an item or as quern__view_item. */
static inline char *quern__batch_value(quern__command_batch *batch, uint32_t i)
{
    return batch->is_view ? quern__view_item(quern__view_items_of(batch), i)
                          : (char *)quern__batch_item(batch, i);
}

/* Consecutive rows of a batch. Zeroed before the first call of quern__view_next_range. */
typedef struct quern__view_range {
    quern__bit_range rows; /* in the chunk */
    uint32_t index;        /* index of the first row among those of the batch */
} quern__view_range;

/* Advances *range to the next consecutive rows. Returns false if there are no more. */
static inline bool quern__view_next_range(quern__command_batch *batch, quern__view_range *range)
{
    const quern__view_batch *view = quern__view_of(batch);
    range->index += range->rows.count;
    if (view->mask_word_count > 0)
        return quern__bitset_next_range(quern__view_mask(batch), view->mask_word_count, &range->rows);
    if (range->rows.count > 0) return false;
    range->rows = (quern__bit_range){quern__location_row(view->location), batch->item_count};
    return true;
}

/* Lists the rows of a batch with a mask, which are item_count. out_rows has room for QUERN__BIT_COLUMN_MAX_ROWS. */
static inline void quern__view_list_rows(quern__command_batch *batch, uint16_t *out_rows)
{
    quern__bitset_list(quern__view_mask(batch), quern__view_of(batch)->mask_word_count, out_rows);
}

static inline uint32_t quern__view_first_row(quern__command_batch *batch)
{
    return quern__location_row(quern__view_of(batch)->location);
}

/* Whether two batches on the same chunk have the same rows. */
static inline bool quern__view_rows_equal(quern__command_batch *a, quern__command_batch *b)
{
    const quern__view_batch *left = quern__view_of(a), *right = quern__view_of(b);
    return left->location == right->location && a->item_count == b->item_count &&
           left->mask_word_count == right->mask_word_count &&
           memcmp(quern__view_mask(a), quern__view_mask(b), left->mask_word_count * sizeof(uint64_t)) == 0;
}

/* Whether the batch has the row of the chunk. */
static inline bool quern__view_has_row(quern__command_batch *batch, uint32_t row)
{
    const quern__view_batch *view = quern__view_of(batch);
    if (row < quern__view_first_row(batch) || row > view->last_row) return false;
    return view->mask_word_count == 0 || quern__bitset_has(quern__view_mask(batch), row);
}

#endif
