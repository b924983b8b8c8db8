/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_STRIPES_H
#define RANKS_STRIPES_H

/* The field is divided into stripes along x, one for each rank. Borders are whole numbers of units, so all ranks
 * compute the same ones. */

#include <stdbool.h>
#include <stdint.h>

enum {
    RANKS_MAX = 64,
    UNITS_PER_CELL = 16, /* a cell is as wide as an agent can see */
    /* Width of the region beside a border in which agents are shown to the other side: more than a cell, so that
     * rounded distances do not matter. */
    GHOST_UNITS = UNITS_PER_CELL + 1,
    /* A stripe is wide enough that an agent sees no farther than the adjacent stripe. */
    STRIPE_UNITS_MIN = GHOST_UNITS,
    STEP_UNITS_MAX = 1 /* agents move less than that in a frame */
};

/* Stripe i has the units from borders[i] to borders[i + 1] - 1. */
typedef struct Stripes {
    uint32_t count;
    int32_t borders[RANKS_MAX + 1];
} Stripes;

/* Divides a width into stripes of almost equal width. Precondition: each gets STRIPE_UNITS_MIN. */
void stripes_divide(Stripes *stripes, uint32_t count, int32_t width_units);

/* Returns the stripe that has a unit. A unit outside of the field belongs to the stripe at that edge. */
uint32_t stripes_find(const Stripes *stripes, int32_t unit);

/* Moves borders so that costs become equal, if the cost of a stripe is the same everywhere in it. costs[i]: of stripe i,
 * below 2^40. A border moves half of the way, and stays between its neighbours before: an agent that leaves its stripe,
 * or whose stripe leaves it, is then in an adjacent stripe. */
void stripes_balance(Stripes *stripes, const uint64_t *costs);

#endif
