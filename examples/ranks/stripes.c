/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "stripes.h"

void stripes_divide(Stripes *stripes, uint32_t count, int32_t width_units)
{
    stripes->count = count;
    for (uint32_t i = 0; i <= count; i++)
        stripes->borders[i] = (int32_t)((int64_t)width_units * i / count);
}

uint32_t stripes_find(const Stripes *stripes, int32_t unit)
{
    uint32_t index = 0;
    while (index + 1 < stripes->count && unit >= stripes->borders[index + 1])
        index++;
    return index;
}

/* Returns the unit to the left of which the stripes cost `part`. */
static int32_t unit_at_cost(const Stripes *stripes, const uint64_t *costs, uint64_t part)
{
    uint32_t index = 0;
    while (index + 1 < stripes->count && part >= costs[index])
        part -= costs[index++];
    if (costs[index] == 0) return stripes->borders[index];
    const uint64_t width = (uint64_t)(stripes->borders[index + 1] - stripes->borders[index]);
    return stripes->borders[index] + (int32_t)(part * width / costs[index]);
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void stripes_balance(Stripes *stripes, const uint64_t *costs)
{
    const Stripes before = *stripes;
    const int32_t width = before.borders[before.count];
    uint64_t total = 0;
    for (uint32_t i = 0; i < before.count; i++)
        total += costs[i];
    for (uint32_t i = 1; i < before.count; i++) {
        const int32_t wanted = unit_at_cost(&before, costs, total / before.count * i);
        const int32_t moved = before.borders[i] + (wanted - before.borders[i]) / 2;
        const int32_t least =
            larger(before.borders[i - 1] + STEP_UNITS_MAX, stripes->borders[i - 1] + STRIPE_UNITS_MIN);
        const int32_t most = smaller(before.borders[i + 1] - STEP_UNITS_MAX,
                                     width - (int32_t)(before.count - i) * STRIPE_UNITS_MIN);
        stripes->borders[i] = smaller(larger(moved, least), most);
    }
}
