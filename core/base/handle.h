/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_HANDLE_H
#define QUERN_CORE_BASE_HANDLE_H

/* The bits of handles. Bits of component and resource handles, 32 in all:
 *
 *   world tag (8) | zero (8) | index + 1 (16)
 *
 * The upper 32 bits of an entity handle, handle_high; the lower 32 bits are the slot:
 *
 *   world tag (8) | generation (24)
 *
 * World tags are reused, because there are only 255. To tell stale handles of an earlier world with the same tag, the
 * slots of each world start at another generation: the world's generation base. Bases are multiples of
 * QUERN__GENERATION_BASE_STEP, and those of successive worlds with one tag are far apart.
 *
 * Generations therefore depend on how many worlds the process has created. The number of times that the slot has been
 * used, its use count, does not: it is 1 for the generation base and grows with each generation. */

#include "core/base/base_internal.h"

#include <quern/id.h>

enum {
    QUERN__MAX_GENERATION = 0xFFFFFF,
    QUERN__GENERATION_BASE_STEP = 1 << 12,
    QUERN__GENERATION_BASE_COUNT = (QUERN__MAX_GENERATION + 1) / QUERN__GENERATION_BASE_STEP
};

static inline uint32_t quern__handle_bits(uint32_t world_tag, uint32_t index)
{
    return world_tag << 24 | (index + 1);
}

/* Returns the index in a handle. Precondition: quern__handle_is_valid(). */
static inline uint32_t quern__handle_index(uint32_t bits)
{
    return (bits & 0xFFFF) - 1;
}

/* Returns whether the bits are a component or resource handle of the world with an index below `count`. */
static inline bool quern__handle_is_valid(uint32_t bits, uint32_t world_tag, uint32_t count)
{
    return bits - quern__handle_bits(world_tag, 0) < count;
}

/* Returns the first handle_high of all slots, for the n-th world with this tag (from 0). The step between the bases of
 * successive worlds is odd, so a base repeats only after QUERN__GENERATION_BASE_COUNT worlds. It is near the golden
 * ratio of that count, so that new bases stay far from all earlier ones. Base 0 becomes 1, as no handle has generation
 * 0. */
static inline uint32_t quern__first_handle_high(uint32_t world_tag, uint32_t n)
{
    const uint32_t base = n * 2531 % QUERN__GENERATION_BASE_COUNT;
    return world_tag << 24 | (base > 0 ? base * QUERN__GENERATION_BASE_STEP : 1);
}

/* Converts a generation to the use count of its slot: 1 for the first generation. first_handle_high: the world's
 * first handle_high. Returns 0 for generation 0, which no handle has. */
static inline uint32_t quern__generation_use_count(uint32_t first_handle_high, uint32_t generation)
{
    const uint32_t first = first_handle_high & QUERN__MAX_GENERATION;
    if (generation == 0) return 0;
    return generation - first + 1 + (generation < first ? QUERN__MAX_GENERATION : 0);
}

/* Converts a handle to a form that is equal in all runs of a program: use count (upper half) and slot. Returns 0 for
 * the null handle, and for provisional handles and handles of other worlds: their bits differ from run to run. */
static inline uint64_t quern__entity_to_relative(quern_entity entity, uint32_t first_handle_high)
{
    const uint32_t use_count =
        quern__generation_use_count(first_handle_high, quern_entity_generation(entity));
    if (quern_entity_world_tag(entity) != first_handle_high >> 24 || use_count == 0) return 0;
    return (uint64_t)use_count << 32 | quern_entity_index(entity);
}

/* The inverse of quern__entity_to_relative. Returns the null handle if the use count is 0 or impossible. */
static inline quern_entity quern__entity_from_relative(uint64_t relative, uint32_t first_handle_high)
{
    const uint32_t use_count = (uint32_t)(relative >> 32);
    if (use_count == 0 || use_count > QUERN__MAX_GENERATION) return (quern_entity){0};
    const uint32_t since = (first_handle_high & QUERN__MAX_GENERATION) + use_count - 1;
    const uint32_t generation = since > QUERN__MAX_GENERATION ? since - QUERN__MAX_GENERATION : since;
    const uint32_t tag_bits = first_handle_high & ~(uint32_t)QUERN__MAX_GENERATION;
    return (quern_entity){(uint64_t)(tag_bits | generation) << 32 | (uint32_t)relative};
}

#endif
