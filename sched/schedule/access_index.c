/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/access_index.h"

enum {
    LIMIT = QUERN_MAX_COMPONENTS, /* of indices of components and of resources */
    NUMBER_COUNT = QUERN__USE_KIND_COUNT * LIMIT
};

_Static_assert(QUERN_MAX_RESOURCES <= LIMIT, "components and resources have the same limit");
_Static_assert(NUMBER_COUNT <= UINT16_MAX, "numbers of sets have 16 bits");

void quern__access_index_release(quern__access_index *index, const quern_allocator *allocator)
{
    quern__array_release(allocator, &index->numbers);
    quern__array_release(allocator, &index->words);
}

bool quern__access_index_reset(quern__access_index *index, const quern_allocator *allocator,
                               uint32_t system_count)
{
    index->numbers.count = index->words.count = 0;
    index->words_per_set = QUERN__BITSET_WORDS(system_count);
    if (!quern__array_reserve(allocator, &index->numbers, NUMBER_COUNT)) return false;
    memset(index->numbers.items, 0, NUMBER_COUNT * sizeof *index->numbers.items);
    index->numbers.count = NUMBER_COUNT;
    return true;
}

/* Returns the number of the set, which is created if needed, or 0 if out of memory. */
static uint32_t number_of(quern__access_index *index, const quern_allocator *allocator,
                          quern__access_use use)
{
    uint16_t *number = &index->numbers.items[use.kind * LIMIT + use.index];
    if (*number != 0) return *number;
    const uint32_t words_per_set = index->words_per_set;
    if (!quern__array_reserve(allocator, &index->words, index->words.count + words_per_set)) return 0;
    memset(index->words.items + index->words.count, 0, words_per_set * sizeof *index->words.items);
    index->words.count += words_per_set;
    *number = (uint16_t)(index->words.count / words_per_set);
    return *number;
}

bool quern__access_index_add(quern__access_index *index, const quern_allocator *allocator,
                             uint32_t position, const quern__access *access)
{
    for (uint32_t i = 0; i < access->uses.count; i++) {
        const uint32_t number = number_of(index, allocator, access->uses.items[i]);
        if (number == 0) return false;
        quern__bitset_add(index->words.items + (size_t)(number - 1) * index->words_per_set, position);
    }
    return true;
}

const uint64_t *quern__access_index_find(const quern__access_index *index, quern__use_kind kind,
                                         uint32_t of_index)
{
    const uint32_t number = index->numbers.items[(uint32_t)kind * LIMIT + of_index];
    return number > 0 ? index->words.items + (size_t)(number - 1) * index->words_per_set : NULL;
}
