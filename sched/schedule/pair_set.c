/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/pair_set.h"

enum { UNIT_BITS = 16, UNITS_PER_WORD = 4, UNUSED_UNITS = 65536 };

void quern__pair_set_release(quern__pair_set *set, const quern_allocator *allocator)
{
    quern__array_release(allocator, &set->units);
    quern__array_release(allocator, &set->rows);
}

bool quern__pair_set_reset(quern__pair_set *set, const quern_allocator *allocator, uint32_t row_count)
{
    set->units.count = set->rows.count = set->unused_count = 0;
    /* One unit, so that also a set without pairs has an address of units. */
    if (!quern__array_reserve(allocator, &set->units, 1) ||
        !quern__array_reserve(allocator, &set->rows, row_count))
        return false;
    if (row_count > 0) memset(set->rows.items, 0, row_count * sizeof *set->rows.items);
    set->rows.count = row_count;
    return true;
}

static uint32_t units_of_bits(uint32_t later)
{
    return later / UNIT_BITS + 1;
}

static uint32_t count_bits(const uint64_t *words, uint32_t word_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        if (words[i] != 0) count += quern__count_bits_64(words[i]);
    return count;
}

/* Moves all rows to the beginning of new memory, in order. Returns false, with the set unchanged, if out of memory. */
static bool compact(quern__pair_set *set, const quern_allocator *allocator)
{
    const uint32_t count = set->units.count - set->unused_count;
    quern__pair_set fresh = {.unused_count = 0};
    if (!quern__array_reserve(allocator, &fresh.units, count)) return false;
    for (uint32_t i = 0; i < set->rows.count; i++) {
        quern__pair_row *row = &set->rows.items[i];
        if (row->unit_count > 0) /* NOLINTNEXTLINE(clang-analyzer-core*): room was reserved */
            memcpy(fresh.units.items + fresh.units.count, set->units.items + row->first_unit,
                   row->unit_count * sizeof *fresh.units.items);
        row->first_unit = fresh.units.count;
        fresh.units.count += row->unit_count;
    }
    quern__array_release(allocator, &set->units);
    set->units = fresh.units;
    set->unused_count = 0;
    return true;
}

static void write_units(const quern__pair_set *set, const quern__pair_row *row, uint32_t word_count,
                        const uint64_t *words)
{
    uint16_t *units = set->units.items + row->first_unit;
    if (!row->is_bits)
        quern__bitset_list(words, word_count, units);
    else
        for (uint32_t i = 0; i < row->unit_count; i++)
            units[i] = (uint16_t)(words[i / UNITS_PER_WORD] >> i % UNITS_PER_WORD * UNIT_BITS);
}

bool quern__pair_set_put(quern__pair_set *set, const quern_allocator *allocator, uint32_t later,
                         const uint64_t *words)
{
    quern__pair_row *row = &set->rows.items[later];
    const uint32_t word_count = QUERN__BITSET_WORDS(later + 1), count = count_bits(words, word_count);
    const bool is_bits = count > units_of_bits(later);
    const uint32_t unit_count = is_bits ? units_of_bits(later) : count;
    if (unit_count > row->unit_count) {
        if (set->unused_count > UNUSED_UNITS && set->unused_count > set->units.count / 2 &&
            !compact(set, allocator))
            return false;
        if (!quern__array_reserve(allocator, &set->units, set->units.count + unit_count)) return false;
        set->unused_count += row->unit_count;
        row->first_unit = set->units.count;
        set->units.count += unit_count;
    } else
        set->unused_count += row->unit_count - unit_count;
    row->unit_count = (uint16_t)unit_count;
    row->is_bits = is_bits;
    write_units(set, row, word_count, words);
    return true;
}

void quern__pair_set_get(const quern__pair_set *set, uint32_t later, uint64_t *words)
{
    const quern__pair_row *row = &set->rows.items[later];
    const uint16_t *units = set->units.items + row->first_unit;
    for (uint32_t i = 0; i < row->unit_count; i++)
        if (row->is_bits)
            words[i / UNITS_PER_WORD] |= (uint64_t)units[i] << i % UNITS_PER_WORD * UNIT_BITS;
        else
            quern__bitset_add(words, units[i]);
}

bool quern__pair_set_has(const quern__pair_set *set, uint32_t earlier, uint32_t later)
{
    const quern__pair_row *row = &set->rows.items[later];
    const uint16_t *units = set->units.items + row->first_unit;
    if (row->is_bits) return (units[earlier / UNIT_BITS] >> earlier % UNIT_BITS) & 1;
    uint32_t low = 0, high = row->unit_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (units[middle] < earlier)
            low = middle + 1;
        else
            high = middle;
    }
    return low < row->unit_count && units[low] == earlier;
}
