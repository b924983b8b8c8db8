/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/gaps.h"

enum { MOVES_PER_CALL = 1024 };

/* The gaps of one archetype, and the rows that fill them. */
typedef struct closing {
    const quern__storage *storage;
    const quern__archetype *archetype;
    const uintptr_t *gaps;
    const uintptr_t *tails;
} closing;

static uint32_t row_of(const quern__archetype *archetype, uintptr_t location)
{
    return quern__chunk_of(location)->index * archetype->row_capacity + quern__location_row(location);
}

/* Lists the rows from `end` on that are not gaps. gap: the first gap at or after `end`. */
static uint32_t list_tails(const quern__archetype *archetype, uint32_t end, const uintptr_t *gap,
                           const uintptr_t *gaps_end, uintptr_t *out_tails)
{
    uint32_t row_count = (uint32_t)quern__archetype_row_count(archetype), count = 0;
    for (uint32_t row = end; row < row_count;) {
        uintptr_t location = quern__archetype_location(archetype, row);
        uint32_t in_chunk = archetype->row_capacity - quern__location_row(location);
        for (uint32_t i = 0; i < in_chunk && row < row_count; i++, row++) {
            if (gap < gaps_end && *gap == location + i)
                gap++;
            else
                out_tails[count++] = location + i;
        }
    }
    return count;
}

/* Returns the number of pairs from the i-th on, before `end`, whose gaps and tails are consecutive. */
static uint32_t count_consecutive(const closing *it, uint32_t i, uint32_t end)
{
    const uintptr_t *gaps = it->gaps + i, *tails = it->tails + i;
    uint32_t count = 1;
    while (i + count < end && gaps[count] == gaps[0] + count && tails[count] == tails[0] + count)
        count++;
    return count;
}

/* Rows with consecutive gaps and tails are moved together, others column by column, many at a time. */
static void close_gaps(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    enum { CONSECUTIVE = 4, SCATTERED = 64 };
    (void)worker_index;
    const closing *it = argument;
    for (uint32_t i = begin, count; i < end; i += count) {
        count = count_consecutive(it, i, end);
        if (count >= CONSECUTIVE || !it->archetype->is_plain) {
            quern__rows_relocate(it->storage, it->archetype, it->gaps[i], it->tails[i], count);
            continue;
        }
        while (count < SCATTERED && i + count < end) {
            const uint32_t more = count_consecutive(it, i + count, end);
            if (more >= CONSECUTIVE) break;
            count += more;
        }
        quern__rows_relocate_scattered(it->storage, it->archetype, it->gaps + i, it->tails + i, count);
    }
}

static bool has_move_hook(const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->column_count; i++)
        if (archetype->columns[i].type->hooks.move != NULL) return true;
    return false;
}

/* Fills the gaps before the new end of the archetype. */
static void fill_gaps(const quern__storage *storage, const quern__archetype *archetype,
                      const uintptr_t *gaps, uint32_t count, uintptr_t *tails,
                      const quern__executor *executor)
{
    const uintptr_t *gaps_end = gaps + count, *gap = gaps_end;
    const uint32_t end = (uint32_t)quern__archetype_row_count(archetype) - count;
    while (gap > gaps && row_of(archetype, gap[-1]) >= end)
        gap--;
    if (gap == gaps) return; /* all gaps are at the end */
    const uint32_t tail_count = list_tails(archetype, end, gap, gaps_end, tails);
    assert(tail_count == (uint32_t)(gap - gaps));
    closing it = {.storage = storage, .archetype = archetype, .gaps = gaps, .tails = tails};
    if (executor != NULL && has_move_hook(archetype)) executor = NULL;
    quern__executor_run(executor, tail_count, MOVES_PER_CALL, close_gaps, &it);
}

void quern__rows_close_gaps(quern__storage *storage, quern__archetype *archetype, const uintptr_t *gaps,
                            uint32_t count, uintptr_t *tails, const quern__executor *executor)
{
    fill_gaps(storage, archetype, gaps, count, tails, executor);
    quern__rows_cut(storage, archetype, count);
}
