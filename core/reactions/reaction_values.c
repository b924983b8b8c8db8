/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Values that reactions keep: copies of removed rows in blocks, and their order; and the old values of rows that
 * were set. */
#include "core/reactions/reaction.h"

#include "core/base/bytes.h"
#include "core/base/containers.h"

enum { REMOVED_ALIGNMENT_BYTES = 64, MAX_BLOCK_SHIFT = 9 };

/* ------------------------------------------------------------------------ copies of removed rows: blocks */

void quern__removed_lay_out(quern__removed *removed, const quern__archetype *archetype)
{
    uint32_t shift = MAX_BLOCK_SHIFT;
    while (1u << shift > archetype->shape.row_capacity)
        shift--;
    const uint32_t rows = 1u << shift;
    size_t offset_bytes = quern__column_bytes(sizeof(quern_entity), rows);
    for (uint32_t i = 0; i < removed->column_count; i++) {
        removed->columns[i].offset_bytes = (uint16_t)offset_bytes;
        offset_bytes += quern__column_bytes(removed->columns[i].size_bytes, rows);
    }
    assert(offset_bytes <= UINT16_MAX);
    removed->archetype = archetype;
    removed->block_rows = rows;
    removed->block_shift = shift;
    removed->keys_offset_bytes = (uint32_t)offset_bytes;
    removed->block_bytes = (uint32_t)(offset_bytes + quern__column_bytes(sizeof(uint64_t), rows));
}

static char *allocate_block(const quern__removed *removed, const quern_allocator *allocator)
{
    return quern__allocate(allocator, removed->block_bytes, REMOVED_ALIGNMENT_BYTES);
}

static void release_block(const quern__removed *removed, const quern_allocator *allocator, char *block)
{
    quern__release(allocator, block, removed->block_bytes, REMOVED_ALIGNMENT_BYTES);
}

void quern__removed_trim(quern__removed *removed, const quern_allocator *allocator, uint32_t keep_count)
{
    const uint32_t used = quern__removed_used_blocks(removed);
    while (removed->blocks.count > used + keep_count)
        release_block(removed, allocator, removed->blocks.items[--removed->blocks.count]);
}

void quern__removed_destroy_values(const quern__removed *removed, char *block, uint32_t count)
{
    for (uint32_t i = 0; i < removed->column_count; i++)
        if (removed->columns[i].type != NULL)
            quern__type_destroy(removed->columns[i].type, block + removed->columns[i].offset_bytes, count);
}

void quern__removed_clear(quern__removed *removed)
{
    const uint32_t used = quern__removed_used_blocks(removed);
    for (uint32_t i = 0; i < used; i++)
        quern__removed_destroy_values(removed, removed->blocks.items[i],
                                      quern__removed_rows_in(removed, i));
    removed->count = 0;
}

void quern__removed_release(quern__removed *removed, const quern_allocator *allocator)
{
    quern__removed_clear(removed);
    for (uint32_t i = 0; i < removed->blocks.count; i++)
        release_block(removed, allocator, removed->blocks.items[i]);
    quern__array_release(allocator, &removed->blocks);
}

static bool hold_blocks(quern__removed *removed, const quern_allocator *allocator, uint32_t wanted)
{
    if (!quern__array_reserve(allocator, &removed->blocks, wanted)) return false;
    while (removed->blocks.count < wanted) {
        char *block = allocate_block(removed, allocator);
        if (block == NULL) return false;
        removed->blocks.items[removed->blocks.count++] = block;
    }
    return true;
}

bool quern__removed_reserve_total(quern__removed *removed, const quern_allocator *allocator, uint32_t count)
{
    return hold_blocks(removed, allocator,
                       (uint32_t)(((uint64_t)count + removed->block_rows - 1) / removed->block_rows));
}

bool quern__removed_reserve(quern__removed *removed, const quern_allocator *allocator, uint64_t change,
                            uint32_t count)
{
    if (removed->change != change) {
        removed->change = change;
        removed->change_first = removed->count;
        removed->promised_count = 0;
    }
    const uint64_t row_count = removed->change_first + removed->promised_count + count;
    const uint64_t wanted = (row_count + removed->block_rows - 1) >> removed->block_shift;
    if (QUERN__UNLIKELY(wanted > removed->blocks.count) &&
        (row_count > UINT32_MAX || !hold_blocks(removed, allocator, (uint32_t)wanted)))
        return false;
    removed->promised_count += count;
    return true;
}

/* ----------------------------------------------------------------------- copies of removed rows: copying */

static uint64_t *keys_of(const quern__removed *removed, char *block)
{
    return (uint64_t *)(void *)(block + removed->keys_offset_bytes);
}

/* Returns the address of the key of a copy. */
static uint64_t *key_at(const quern__removed *removed, uint32_t number)
{
    return keys_of(removed, removed->blocks.items[number / removed->block_rows]) +
           number % removed->block_rows;
}

/* Copies rows that fit the rest of one block. */
static void copy_values(const quern__removed *removed, char *block, uint32_t row, uintptr_t first,
                        uint32_t count)
{
    const quern__run_place place = quern__run_place_of(&removed->archetype->shape, first);
    const quern_entity *handles = (const quern_entity *)(const void *)quern__run_value(
        place, removed->archetype->entities_offset_bytes, (uint32_t)sizeof(quern_entity));
    if (count == 1)
        ((quern_entity *)(void *)block)[row] = *handles;
    else
        memcpy((quern_entity *)(void *)block + row, handles, count * sizeof *handles);
    for (uint32_t i = 0; i < removed->column_count; i++) {
        const quern__removed_column *column = &removed->columns[i];
        char *targets = block + column->offset_bytes + (size_t)row * column->size_bytes;
        const char *sources = quern__run_value(place, column->source_offset_bytes, column->size_bytes);
        if (QUERN__UNLIKELY(column->type != NULL))
            quern__type_copy(column->type, targets, sources, count);
        else if (count == 1)
            quern__copy_value(targets, sources, column->size_bytes);
        else
            memcpy(targets, sources, (size_t)column->size_bytes * count);
    }
}

void quern__removed_copy_row(quern__removed *removed, uintptr_t row)
{
    const uint32_t number = removed->count++, at = number & (removed->block_rows - 1);
    assert(number >> removed->block_shift < removed->blocks.count);
    char *block = removed->blocks.items[number >> removed->block_shift];
    copy_values(removed, block, at, row, 1);
    keys_of(removed, block)[at] = (uint64_t)number << 32;
}

void quern__removed_copy(quern__removed *removed, uintptr_t first, uint32_t count, bool orders_by_row)
{
    /* Several threads make copies only at sync points. Relaxed: a thread that reads copies has waited for them. */
    uint32_t number;
    if (orders_by_row)
        number = __atomic_fetch_add(&removed->count, count, __ATOMIC_RELAXED);
    else {
        number = removed->count;
        removed->count += count;
    }
    assert(number + count <= removed->blocks.count * removed->block_rows);
    uint64_t row_in_all = (uint64_t)quern__chunk_index_at(&removed->archetype->shape, first) *
                              removed->archetype->shape.row_capacity +
                          quern__location_row(&removed->archetype->shape, first);
    for (uint32_t piece; count > 0; first += piece, number += piece, row_in_all += piece, count -= piece) {
        char *block = removed->blocks.items[number >> removed->block_shift];
        const uint32_t row = number & (removed->block_rows - 1);
        piece = removed->block_rows - row;
        if (piece > count) piece = count;
        copy_values(removed, block, row, first, piece);
        uint64_t *keys = keys_of(removed, block) + row;
        for (uint32_t i = 0; i < piece; i++)
            keys[i] = orders_by_row ? (uint64_t)removed->change_first << 32 | (row_in_all + i)
                                    : (uint64_t)(number + i) << 32;
    }
}

void quern__removed_convert(quern__removed *to, quern__removed *from, uint32_t column,
                            const quern__type_change *change)
{
    for (uint32_t number = 0, count; number < from->count; number += count) {
        const uint32_t row = number % from->block_rows, to_row = number % to->block_rows,
                       left = from->block_rows - row, room = to->block_rows - to_row;
        char *source = from->blocks.items[number / from->block_rows],
             *target = to->blocks.items[number / to->block_rows];
        count = left < room ? left : room;
        if (count > from->count - number) count = from->count - number;
        memcpy((quern_entity *)(void *)target + to_row, (quern_entity *)(void *)source + row,
               count * sizeof(quern_entity));
        memcpy(keys_of(to, target) + to_row, keys_of(from, source) + row, count * sizeof(uint64_t));
        for (uint32_t i = 0; i < from->column_count; i++) {
            const quern__removed_column *old = &from->columns[i], *fresh = &to->columns[i];
            char *targets = target + fresh->offset_bytes + (size_t)to_row * fresh->size_bytes,
                 *sources = source + old->offset_bytes + (size_t)row * old->size_bytes;
            if (i == column)
                quern__type_change_values(change, targets, sources, count);
            else if (old->type != NULL)
                quern__type_move(old->type, targets, sources, count);
            else
                memcpy(targets, sources, (size_t)old->size_bytes * count);
        }
    }
    to->count = from->count;
    to->change = 0; /* no change has the number 0 */
    from->count = 0;
}

/* ----------------------------------------------------------------------- copies of removed rows: sorting */

static bool is_sorted(const quern__removed *removed)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++) {
        const uint64_t *keys = keys_of(removed, removed->blocks.items[i]);
        for (uint32_t k = 0; k < quern__removed_rows_in(removed, i); last = keys[k++])
            if (keys[k] < last) return false;
    }
    return true;
}

/* Returns whether the key of a copy is the key of the previous copy plus one, so that no other key can be between. */
static bool is_next(const quern__removed *removed, uint32_t number)
{
    return *key_at(removed, number) == *key_at(removed, number - 1) + 1;
}

/* Lists each sequence of copies with consecutive keys: key and number of its first copy. Returns the number of
 * sequences. items may be NULL to count only. */
static uint32_t list_sequences(const quern__removed *removed, quern__sort_item *items)
{
    uint32_t sequence_count = 0;
    for (uint32_t i = 0; i < removed->count; i++) {
        if (i > 0 && is_next(removed, i)) continue;
        if (items != NULL)
            items[sequence_count] =
                (quern__sort_item){.key = *key_at(removed, i), .pointer = (void *)(uintptr_t)i};
        sequence_count++;
    }
    return sequence_count;
}

/* Returns how many copies from number `from` on have consecutive keys and fit both the rest of their block and the rest
 * of the block of number `to`. */
static uint32_t count_consecutive(const quern__removed *removed, uint32_t from, uint32_t to)
{
    const uint32_t rows = removed->block_rows;
    const uint32_t from_left = rows - from % rows, to_left = rows - to % rows;
    const uint32_t most = from_left < to_left ? from_left : to_left;
    uint32_t count = 1;
    while (count < most && from + count < removed->count && is_next(removed, from + count))
        count++;
    return count;
}

static void move_copies(const quern__removed *removed, char *to, uint32_t to_row, char *from,
                        uint32_t from_row, uint32_t count)
{
    memcpy((quern_entity *)(void *)to + to_row, (quern_entity *)(void *)from + from_row,
           count * sizeof(quern_entity));
    memcpy(keys_of(removed, to) + to_row, keys_of(removed, from) + from_row, count * sizeof(uint64_t));
    for (uint32_t i = 0; i < removed->column_count; i++) {
        const quern__removed_column *column = &removed->columns[i];
        char *targets = to + column->offset_bytes + (size_t)to_row * column->size_bytes;
        char *sources = from + column->offset_bytes + (size_t)from_row * column->size_bytes;
        if (column->type != NULL)
            quern__type_move(column->type, targets, sources, count);
        else
            memcpy(targets, sources, (size_t)column->size_bytes * count);
    }
}

/* Moves all copies to other blocks, sequence by sequence in the order of the list. */
static void move_sequences(const quern__removed *removed, char *const *blocks,
                           const quern__sort_item *sequences, uint32_t sequence_count)
{
    const uint32_t rows = removed->block_rows;
    uint32_t to = 0;
    for (uint32_t i = 0; i < sequence_count; i++) {
        uint32_t from = (uint32_t)(uintptr_t)sequences[i].pointer, count;
        do {
            count = count_consecutive(removed, from, to);
            move_copies(removed, blocks[to / rows], to % rows, removed->blocks.items[from / rows],
                        from % rows, count);
            from += count;
            to += count;
        } while (from < removed->count && is_next(removed, from));
    }
}

/* Allocates one new block for each block with copies. Returns false, with nothing allocated, if out of memory. */
static bool allocate_blocks(const quern__removed *removed, const quern_allocator *allocator, char **blocks)
{
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++) {
        blocks[i] = allocate_block(removed, allocator);
        if (blocks[i] != NULL) continue;
        while (i-- > 0)
            release_block(removed, allocator, blocks[i]);
        return false;
    }
    return true;
}

bool quern__removed_sort(quern__removed *removed, const quern_allocator *allocator)
{
    if (is_sorted(removed)) return true;
    const uint32_t sequence_count = list_sequences(removed, NULL);
    const size_t sequences_bytes = 2 * (size_t)sequence_count * sizeof(quern__sort_item);
    const size_t blocks_bytes = quern__removed_used_blocks(removed) * sizeof(char *);
    quern__sort_item *sequences = quern__allocate(allocator, sequences_bytes, REMOVED_ALIGNMENT_BYTES);
    char **blocks = quern__allocate(allocator, blocks_bytes, REMOVED_ALIGNMENT_BYTES);
    const bool has_memory =
        sequences != NULL && blocks != NULL && allocate_blocks(removed, allocator, blocks);
    if (has_memory) {
        list_sequences(removed, sequences);
        quern__sort(sequences, sequences + sequence_count, sequence_count);
        move_sequences(removed, blocks, sequences, sequence_count);
        for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++) {
            release_block(removed, allocator, removed->blocks.items[i]);
            removed->blocks.items[i] = blocks[i];
        }
    }
    quern__release(allocator, sequences, sequences_bytes, REMOVED_ALIGNMENT_BYTES);
    quern__release(allocator, blocks, blocks_bytes, REMOVED_ALIGNMENT_BYTES);
    return has_memory;
}

enum { OLD_ALIGNMENT_BYTES = 64 };

/* ------------------------------------------------------------------------------------ old values: blocks */

void quern__old_values_init(quern__old_values *old, quern__old_column *columns,
                            const quern__archetype *archetype, const quern_term *terms, uint32_t term_count)
{
    size_t offset_bytes = quern__align_up(term_count * sizeof(void *), OLD_ALIGNMENT_BYTES);
    *old = (quern__old_values){.columns = columns, .shape = &archetype->shape};
    for (uint32_t i = 0; i < term_count; i++) {
        if (!terms[i].old) continue;
        const uint32_t column =
            quern__archetype_column(archetype, quern__component_index(terms[i].component));
        assert(column < QUERN__COLUMN_TAG);
        const quern__column *source = &archetype->columns[column];
        columns[old->column_count++] = (quern__old_column){.type = source->type,
                                                           .offset_bytes = (uint32_t)offset_bytes,
                                                           .source_offset_bytes = source->offset_bytes,
                                                           .size_bytes = source->size_bytes};
        offset_bytes += quern__column_bytes(source->size_bytes, archetype->shape.row_capacity);
    }
    old->block_bytes = (uint32_t)offset_bytes;
}

bool quern__old_values_hold(quern__old_values *old, const quern_allocator *allocator,
                            const quern_term *terms, uint32_t term_count, uint32_t chunk_count)
{
    if (old->column_count == 0) return true;
    if (!quern__array_reserve(allocator, &old->blocks, chunk_count)) return false;
    while (old->blocks.count < chunk_count) {
        char *block = quern__allocate(allocator, old->block_bytes, OLD_ALIGNMENT_BYTES);
        if (block == NULL) return false;
        const void **addresses = (const void **)(void *)block;
        for (uint32_t i = 0, k = 0; i < term_count; i++)
            addresses[i] = terms[i].old ? block + old->columns[k++].offset_bytes : NULL;
        old->blocks.items[old->blocks.count++] = block;
    }
    return true;
}

void quern__old_values_trim(quern__old_values *old, const quern_allocator *allocator, uint32_t keep_count)
{
    while (old->blocks.count > keep_count)
        quern__release(allocator, old->blocks.items[--old->blocks.count], old->block_bytes,
                       OLD_ALIGNMENT_BYTES);
}

void quern__old_values_release(quern__old_values *old, const quern_allocator *allocator)
{
    quern__old_values_trim(old, allocator, 0);
    quern__array_release(allocator, &old->blocks);
}

/* ------------------------------------------------------------------------------------ old values: values */

char *quern__old_value_at(const quern__old_values *old, uint32_t column, uintptr_t location)
{
    const quern__old_column *of = &old->columns[column];
    return old->blocks.items[quern__chunk_index_at(old->shape, location)] + of->offset_bytes +
           (size_t)quern__location_row(old->shape, location) * of->size_bytes;
}

void quern__old_values_save(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count)
{
    for (uint32_t i = 0; i < old->column_count; i++) {
        const quern__old_column *column = &source->columns[i];
        const char *values =
            quern__location_value(source->shape, from, column->source_offset_bytes, column->size_bytes);
        if (count == 1)
            quern__copy_value(quern__old_value_at(old, i, to), values, column->size_bytes);
        else
            memcpy(quern__old_value_at(old, i, to), values, (size_t)count * column->size_bytes);
    }
}

void quern__old_values_move(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count)
{
    for (uint32_t i = 0; i < old->column_count; i++)
        memcpy(quern__old_value_at(old, i, to), quern__old_value_at(source, i, from),
               (size_t)count * old->columns[i].size_bytes);
}

/* ---------------------------------------------------------------------------------- old values: visiting */

uint32_t quern__old_values_visit(const quern__old_values *old, const quern__archetype *archetype,
                                 uint32_t bit_column, quern__old_visit *visit, void *argument)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < archetype->chunk_count && old->column_count > 0; slot++) {
        const uint64_t *words = quern__bit_column_words(archetype->row_bits, bit_column, slot);
        const uint32_t row_count = quern__bit_column_count(archetype->row_bits, bit_column, slot);
        count += row_count;
        for (uint32_t row = 0, left = visit != NULL ? row_count : 0; left > 0; row++) {
            if ((words[row / 64] >> row % 64 & 1) == 0) continue;
            for (uint32_t i = 0; i < old->column_count; i++) {
                const quern__old_column *column = &old->columns[i];
                char *values = old->blocks.items[slot] + column->offset_bytes;
                visit(argument, column, values + (size_t)row * column->size_bytes);
            }
            left--;
        }
    }
    return count;
}

void quern__old_value_write(void *argument, const quern__old_column *column, char *value)
{
    quern__write(argument, value, column->size_bytes);
}

uint32_t quern__old_values_row_bytes(const quern__old_values *old)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < old->column_count; i++)
        bytes += old->columns[i].size_bytes;
    return bytes;
}
