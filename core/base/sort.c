/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/sort.h"

static bool is_sorted(const quern__sort_item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (items[i].key < items[i - 1].key) return false;
    return true;
}

/* Merges [begin, middle) and [middle, end) of source into target. */
static void merge(quern__sort_item *target, const quern__sort_item *source, uint32_t begin, uint32_t middle,
                  uint32_t end)
{
    uint32_t a = begin, b = middle;
    for (uint32_t i = begin; i < end; i++)
        target[i] = b == end || (a < middle && source[a].key <= source[b].key) ? source[a++] : source[b++];
}

static uint32_t lesser(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count)
{
    if (is_sorted(items, count)) return;
    quern__sort_item *from = items, *to = scratch;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t begin = 0; begin < count; begin += 2 * width)
            merge(to, from, (uint32_t)begin, lesser(begin + width, count),
                  lesser(begin + 2 * width, count));
        quern__sort_item *merged = to;
        to = from;
        from = merged;
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}
