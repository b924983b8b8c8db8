/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reactions/old_values.h"

enum { OLD_ALIGNMENT_BYTES = 64 };

/* -------------------------------------------------------------------------------------------- blocks */

void quern__old_values_init(quern__old_values *old, quern__old_column *columns,
                            const quern__archetype *archetype, const quern_term *terms, uint32_t term_count)
{
    size_t offset_bytes = quern__align_up(term_count * sizeof(void *), OLD_ALIGNMENT_BYTES);
    *old = (quern__old_values){.columns = columns};
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
        offset_bytes += quern__column_bytes(source->size_bytes, archetype->row_capacity);
    }
    old->block_bytes = (uint32_t)offset_bytes;
}

/* Writes the addresses of the columns to the start of a block. */
static void set_addresses(const quern__old_values *old, char *block, const quern_term *terms,
                          uint32_t term_count)
{
    const void **addresses = (const void **)(void *)block;
    for (uint32_t i = 0, k = 0; i < term_count; i++)
        addresses[i] = terms[i].old ? block + old->columns[k++].offset_bytes : NULL;
}

bool quern__old_values_hold(quern__old_values *old, const quern_allocator *allocator,
                            const quern_term *terms, uint32_t term_count, uint32_t chunk_count)
{
    if (old->column_count == 0) return true;
    if (!quern__array_reserve(allocator, &old->blocks, chunk_count)) return false;
    while (old->blocks.count < chunk_count) {
        char *block = quern__allocate(allocator, old->block_bytes, OLD_ALIGNMENT_BYTES);
        if (block == NULL) return false;
        set_addresses(old, block, terms, term_count);
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

/* -------------------------------------------------------------------------------------------- values */

/* Returns the address of the old value of a row. */
static char *value_at(const quern__old_values *old, uint32_t column, uintptr_t location)
{
    const quern__old_column *of = &old->columns[column];
    return old->blocks.items[quern__chunk_index_at(location)] + of->offset_bytes +
           (size_t)quern__location_row(location) * of->size_bytes;
}

void quern__old_values_save(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count)
{
    for (uint32_t i = 0; i < old->column_count; i++) {
        const quern__old_column *column = &source->columns[i];
        const char *values = quern__location_value(from, column->source_offset_bytes, column->size_bytes);
        if (count == 1)
            quern__copy_value(value_at(old, i, to), values, column->size_bytes);
        else
            memcpy(value_at(old, i, to), values, (size_t)count * column->size_bytes);
    }
}

void quern__old_values_move(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count)
{
    for (uint32_t i = 0; i < old->column_count; i++)
        memcpy(value_at(old, i, to), value_at(source, i, from), (size_t)count * old->columns[i].size_bytes);
}

/* ------------------------------------------------------------------------------------------ visiting */

static void visit_row(const quern__old_values *old, uint32_t slot, uint32_t row, quern__old_visit *visit,
                      void *argument)
{
    for (uint32_t i = 0; i < old->column_count; i++) {
        const quern__old_column *column = &old->columns[i];
        visit(argument, column,
              old->blocks.items[slot] + column->offset_bytes + (size_t)row * column->size_bytes);
    }
}

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
            visit_row(old, slot, row, visit, argument);
            left--;
        }
    }
    return count;
}

uint32_t quern__old_values_row_bytes(const quern__old_values *old)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < old->column_count; i++)
        bytes += old->columns[i].size_bytes;
    return bytes;
}
