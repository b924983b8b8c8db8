/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/drop.h"

static bool is_before(const quern__drop *a, const quern__drop *b)
{
    if (a->first_key != b->first_key) return a->first_key < b->first_key;
    return a->first_item_number < b->first_item_number;
}

bool quern__drops_add(quern__drops *drops, const quern_allocator *allocator, uint32_t first,
                      const quern__drop *drop)
{
    for (uint32_t i = 0; i < drops->count; i++) {
        quern__drop *known = &drops->items[i];
        if (known->system_number != drop->system_number || known->reason != drop->reason) continue;
        uint64_t count = known->count + drop->count;
        if (i >= first && is_before(drop, known)) *known = *drop;
        known->count = count;
        return true;
    }
    if (!quern__array_reserve(allocator, drops, drops->count + 1)) return false;
    drops->items[drops->count++] = *drop;
    return true;
}

/* Insertion sort: the list is short, with one entry per reason and system that lost commands. */
void quern__drops_sort(quern__drops *drops, uint32_t first)
{
    for (uint32_t i = first + 1; i < drops->count; i++) {
        const quern__drop drop = drops->items[i];
        uint32_t at = i;
        for (; at > first && is_before(&drop, &drops->items[at - 1]); at--)
            drops->items[at] = drops->items[at - 1];
        drops->items[at] = drop;
    }
}
