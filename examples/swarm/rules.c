/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "rules.h"

#include <math.h>

static const double agents_per_cell = 2.5;
static const double width_by_height = 16.0 / 9.0;

/* Returns slightly less than a whole number of cells, so that an agent at the edge is in the last cell. */
static float size_in_cells(double square)
{
    return nextafterf((float)fmax(3.0, ceil(sqrt(square))), 0.0f);
}

Rules rules_make(uint64_t seed, uint32_t agent_count)
{
    double cell_count = agent_count / agents_per_cell;
    Rules rules = {.seed = seed};
    rules.width = size_in_cells(cell_count * width_by_height);
    rules.height = size_in_cells(cell_count / width_by_height);
    rules.prey = (Species){.min_speed = 0.8f,
                           .max_speed = 2.0f,
                           .lifetime_seconds = 20.0f,
                           .income = 0.45f,
                           .crowding = 0.048f,
                           .floor_count = agent_count / 10 + 1};
    rules.hunter = (Species){.min_speed = 0.5f,
                             .max_speed = 2.8f,
                             .lifetime_seconds = 16.0f,
                             .income = -0.06f,
                             .crowding = 1.0f,
                             .floor_count = agent_count / 200 + 1};
    return rules;
}
