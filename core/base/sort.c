/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Natural merge sort. The input is most often a concatenation of a few sorted lists. Each pass finds the ascending runs
 * and merges them in pairs. */

#include "core/base/sort.h"

/* Returns the end of the ascending run that begins at `begin`. */
static uint32_t run_end(const quern__sort_item *items, uint32_t begin, uint32_t count)
{
    if (begin == count) return count;
    uint32_t end = begin + 1;
    while (end < count && items[end - 1].key <= items[end].key)
        end++;
    return end;
}

/* Merges [begin, middle) and [middle, end) of source into target. */
static void merge(quern__sort_item *target, const quern__sort_item *source, uint32_t begin, uint32_t middle,
                  uint32_t end)
{
    uint32_t a = begin, b = middle, to = begin;
    while (a < middle && b < end)
        target[to++] = source[a].key <= source[b].key ? source[a++] : source[b++];
    memcpy(target + to, source + a, (middle - a) * sizeof *target);
    memcpy(target + to + (middle - a), source + b, (end - b) * sizeof *target);
}

void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count)
{
    quern__sort_item *from = items, *to = scratch;
    uint32_t first_end = run_end(from, 0, count);
    while (first_end < count) {
        for (uint32_t begin = 0, middle = first_end, end; begin < count; begin = end) {
            if (begin > 0) middle = run_end(from, begin, count);
            end = run_end(from, middle, count);
            merge(to, from, begin, middle, end);
        }
        quern__sort_item *merged = to;
        to = from;
        from = merged;
        first_end = run_end(from, 0, count);
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}
