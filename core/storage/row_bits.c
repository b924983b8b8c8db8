/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* All atomic operations are relaxed; the top of row_bits.h gives the reason. */

#include "core/storage/row_bits.h"

enum { BIT_COLUMN_ALIGNMENT_BYTES = 64 };

/* ---------------------------------------------------------------------------- set of bit columns */

static bool is_before(quern__bit_column a, quern__bit_column b)
{
    return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
}

static size_t list_bytes(uint32_t count)
{
    return quern__align_up(sizeof(quern__row_bits) + count * sizeof(quern__bit_column),
                           BIT_COLUMN_ALIGNMENT_BYTES);
}

/* Allocates bit columns with all bits clear. The caller must write the list. Returns NULL if out of memory. */
static quern__row_bits *allocate(const quern_allocator *allocator, uint32_t count,
                                 const quern__run_shape *shape, uint32_t slot_capacity)
{
    const uint32_t bit_column_words = 1 + (shape->row_capacity + 63) / 64;
    const size_t words_bytes = sizeof(uint64_t) * bit_column_words * count * slot_capacity;
    const size_t bytes = list_bytes(count) + words_bytes;
    char *memory = quern__allocate(allocator, bytes, BIT_COLUMN_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    memset(memory + list_bytes(count), 0, words_bytes);
    quern__row_bits *row_bits = (quern__row_bits *)(void *)memory;
    *row_bits = (quern__row_bits){.list = (quern__bit_column *)(void *)(row_bits + 1),
                                  .words = (uint64_t *)(void *)(memory + list_bytes(count)),
                                  .count = count,
                                  .shape = shape,
                                  .bit_column_words = bit_column_words,
                                  .slot_words = bit_column_words * count,
                                  .slot_capacity = slot_capacity,
                                  .bytes = bytes};
    return row_bits;
}

/* Copies `count` bit columns of all slots of `source`, from index `from` on, to `target` from index `to` on. */
static void copy_bit_columns(quern__row_bits *target, uint32_t to, const quern__row_bits *source,
                             uint32_t from, uint32_t count)
{
    memcpy(target->list + to, source->list + from, count * sizeof *target->list);
    for (uint32_t slot = 0; slot < source->slot_capacity; slot++)
        memcpy(target->words + (size_t)slot * target->slot_words + (size_t)to * target->bit_column_words,
               source->words + (size_t)slot * source->slot_words + (size_t)from * source->bit_column_words,
               sizeof(uint64_t) * source->bit_column_words * count);
}

static void replace(quern__row_bits **row_bits, const quern_allocator *allocator, quern__row_bits *other)
{
    quern__row_bits_release(row_bits, allocator);
    *row_bits = other;
}

bool quern__row_bits_add_column(quern__row_bits **row_bits, const quern_allocator *allocator,
                                quern__bit_column bit_column, const quern__run_shape *shape,
                                uint32_t slot_capacity)
{
    const quern__row_bits *old = *row_bits;
    const uint32_t count = old != NULL ? old->count : 0;
    assert(quern__row_bits_find_column(old, bit_column.kind, bit_column.id) == QUERN__NO_BIT_COLUMN);
    /* there are more slots than the archetype has if it failed to get as many after quern__row_bits_grow */
    if (old != NULL && slot_capacity < old->slot_capacity) slot_capacity = old->slot_capacity;
    quern__row_bits *larger = allocate(allocator, count + 1, shape, slot_capacity);
    if (larger == NULL) return false;
    uint32_t index = 0;
    while (index < count && is_before(old->list[index], bit_column))
        index++;
    larger->list[index] = bit_column;
    if (old != NULL) {
        copy_bit_columns(larger, 0, old, 0, index);
        copy_bit_columns(larger, index + 1, old, index, count - index);
    }
    replace(row_bits, allocator, larger);
    return true;
}

/* Removes the bit column in place, slot by slot, without allocating: the call must not fail. */
void quern__row_bits_remove_column(quern__row_bits **row_bits, const quern_allocator *allocator,
                                   quern__bit_column bit_column)
{
    quern__row_bits *old = *row_bits;
    const uint32_t index = quern__row_bits_find_column(old, bit_column.kind, bit_column.id);
    assert(index != QUERN__NO_BIT_COLUMN);
    if (old->count == 1) {
        quern__row_bits_release(row_bits, allocator);
        return;
    }
    const uint32_t before = index * old->bit_column_words, after = before + old->bit_column_words;
    const uint32_t slot_words = old->slot_words - old->bit_column_words;
    for (uint32_t slot = 0; slot < old->slot_capacity; slot++) {
        uint64_t *to = old->words + (size_t)slot * slot_words;
        const uint64_t *from = old->words + (size_t)slot * old->slot_words;
        memmove(to, from, sizeof *to * before);
        memmove(to + before, from + after, sizeof *to * (old->slot_words - after));
    }
    old->count--;
    old->slot_words = slot_words;
    memmove(old->list + index, old->list + index + 1, (old->count - index) * sizeof *old->list);
}

bool quern__row_bits_grow(quern__row_bits **row_bits, const quern_allocator *allocator,
                          uint32_t slot_capacity)
{
    const quern__row_bits *old = *row_bits;
    if (old == NULL || slot_capacity <= old->slot_capacity) return true;
    quern__row_bits *larger = allocate(allocator, old->count, old->shape, slot_capacity);
    if (larger == NULL) return false;
    copy_bit_columns(larger, 0, old, 0, old->count);
    replace(row_bits, allocator, larger);
    return true;
}

void quern__row_bits_release(quern__row_bits **row_bits, const quern_allocator *allocator)
{
    if (*row_bits != NULL)
        quern__release(allocator, *row_bits, (*row_bits)->bytes, BIT_COLUMN_ALIGNMENT_BYTES);
    *row_bits = NULL;
}

/* -------------------------------------------------------------------------------- one bit column */

/* Returns how many of `count` rows from `row` on have their bits in the word of `row`. */
static uint32_t piece_of(uint32_t row, uint32_t count)
{
    const uint32_t left = 64 - row % 64;
    return count < left ? count : left;
}

static uint64_t mask_of(uint32_t row, uint32_t count)
{
    return (count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0)) << row % 64;
}

static void add_to_count(uint64_t *words, uint64_t difference)
{
    if (difference != 0) __atomic_fetch_add(words - 1, difference, __ATOMIC_RELAXED);
}

/* Sets the masked bits. Returns how many of them were clear. */
static uint32_t set_bits(uint64_t *word, uint64_t mask)
{
    const uint64_t old = __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
    return quern__count_bits_64(mask & ~old);
}

/* Clears the masked bits and returns those that were set. Usually none is set, and then the word is not written. */
static uint64_t take_bits(uint64_t *word, uint64_t mask)
{
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) == 0) return 0;
    return __atomic_fetch_and(word, ~mask, __ATOMIC_RELAXED) & mask;
}

void quern__bit_column_set_rows(const quern__row_bits *row_bits, uint32_t index, uintptr_t first,
                                uint32_t count)
{
    uint64_t *words =
        quern__bit_column_words(row_bits, index, quern__chunk_index_at(row_bits->shape, first));
    uint32_t set_count = 0;
    for (uint32_t row = quern__location_row(row_bits->shape, first), piece; count > 0;
         row += piece, count -= piece) {
        piece = piece_of(row, count);
        set_count += set_bits(&words[row / 64], mask_of(row, piece));
    }
    add_to_count(words, set_count);
}

/* Clears the bits of `count` rows. Subtracts from the bit column's count by adding a negative difference modulo
 * 2^64. */
static void clear_run(uint64_t *words, uint32_t row, uint32_t count)
{
    uint64_t cleared_count = 0;
    for (uint32_t piece; count > 0; row += piece, count -= piece) {
        piece = piece_of(row, count);
        cleared_count += (uint64_t)quern__count_bits_64(take_bits(&words[row / 64], mask_of(row, piece)));
    }
    add_to_count(words, 0 - cleared_count);
}

void quern__bit_column_clear_rows(const quern__row_bits *row_bits, uint32_t index, uintptr_t first,
                                  uint32_t count)
{
    clear_run(quern__bit_column_words(row_bits, index, quern__chunk_index_at(row_bits->shape, first)),
              quern__location_row(row_bits->shape, first), count);
}

void quern__bit_column_clear_slot(const quern__row_bits *row_bits, uint32_t index, uint32_t slot)
{
    uint64_t *count = quern__bit_column_words(row_bits, index, slot) - 1;
    if (*count != 0) memset(count, 0, row_bits->bit_column_words * sizeof *count);
}

/* ------------------------------------------------------------------------------ all bit columns */

void quern__row_bits_clear(const quern__row_bits *row_bits, uintptr_t first, uint32_t count)
{
    const uint32_t slot = quern__chunk_index_at(row_bits->shape, first);
    for (uint32_t i = 0; i < row_bits->count; i++)
        if (quern__bit_column_count(row_bits, i, slot) != 0)
            clear_run(quern__bit_column_words(row_bits, i, slot),
                      quern__location_row(row_bits->shape, first), count);
}

/* Moves the bits of `count` rows and updates the counts. Each step moves the bits that share one word in both the
 * source and the target. */
static void move_bits(uint64_t *target, uint32_t to, uint64_t *source, uint32_t from, uint32_t count)
{
    uint64_t moved_count = 0;
    for (uint32_t piece; count > 0; to += piece, from += piece, count -= piece) {
        piece = piece_of(to, piece_of(from, count));
        const uint64_t bits = take_bits(&source[from / 64], mask_of(from, piece)) >> from % 64;
        if (bits == 0) continue;
        moved_count += (uint64_t)quern__count_bits_64(bits);
        __atomic_fetch_or(&target[to / 64], bits << to % 64, __ATOMIC_RELAXED);
    }
    if (source == target) return;
    add_to_count(source, 0 - moved_count);
    add_to_count(target, moved_count);
}

void quern__row_bits_move(const quern__row_bits *target, uintptr_t to, const quern__row_bits *source,
                          uintptr_t from, uint32_t count)
{
    uint64_t *words = quern__bit_column_words(source, 0, quern__chunk_index_at(source->shape, from));
    const uint32_t target_count = target != NULL ? target->count : 0;
    for (uint32_t i = 0, k = 0; i < source->count; i++, words += source->bit_column_words) {
        if (__atomic_load_n(words - 1, __ATOMIC_RELAXED) == 0) continue;
        while (k < target_count && is_before(target->list[k], source->list[i]))
            k++;
        if (k < target_count && !is_before(source->list[i], target->list[k]))
            move_bits(quern__bit_column_words(target, k, quern__chunk_index_at(target->shape, to)),
                      quern__location_row(target->shape, to), words,
                      quern__location_row(source->shape, from), count);
        else
            clear_run(words, quern__location_row(source->shape, from), count);
    }
}
