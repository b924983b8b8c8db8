/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_HANDLE_H
#define QUERN_CORE_BASE_HANDLE_H

/* The 32 bits of component and resource handles: index + 1 below, world tag on top, zero in between. And
 * the upper half of entity handles, handle_high: generation below, world tag on top.
 *
 * Tags are few and come back, so the slots of each world begin with another generation: worlds that have
 * the same tag, one after the other, begin at different multiples of QUERN__STRETCH_GENERATIONS, far from
 * each other. What depends on the world alone is which life of its slot a handle stands for. */

#include "core/base/base_internal.h"

#include <quern/id.h>

enum {
    QUERN__MAX_GENERATION = 0xFFFFFF,
    QUERN__STRETCH_GENERATIONS = 1 << 12,
    QUERN__STRETCH_COUNT = (QUERN__MAX_GENERATION + 1) / QUERN__STRETCH_GENERATIONS
};

static inline uint32_t quern__handle_bits(uint32_t world_tag, uint32_t index)
{
    return world_tag << 24 | (index + 1);
}

/* The index of bits that quern__handle_is_valid. */
static inline uint32_t quern__handle_index(uint32_t bits)
{
    return (bits & 0xFFFF) - 1;
}

/* Whether the bits are those of one of the first `count` indices of the world; every bit counts. */
static inline bool quern__handle_is_valid(uint32_t bits, uint32_t world_tag, uint32_t count)
{
    return bits - quern__handle_bits(world_tag, 0) < count;
}

/* What slots of the world begin with that is the n-th with its tag, from 0. The step from stretch to
 * stretch is odd, so that it takes QUERN__STRETCH_COUNT worlds to come back, and near the golden section of
 * all, so that none comes near one before it sooner than it must. Generation 0 is none. */
static inline uint32_t quern__handle_high_first(uint32_t world_tag, uint32_t n)
{
    const uint32_t stretch = n * 2531 % QUERN__STRETCH_COUNT;
    return world_tag << 24 | (stretch > 0 ? stretch * QUERN__STRETCH_GENERATIONS : 1);
}

/* Which life of its slot a generation is, from 1, in a world whose slots begin with that. 0 for
 * generation 0, which handles do not have. */
static inline uint32_t quern__generation_life(uint32_t first_handle_high, uint32_t generation)
{
    const uint32_t first = first_handle_high & QUERN__MAX_GENERATION;
    if (generation == 0) return 0;
    return generation - first + 1 + (generation < first ? QUERN__MAX_GENERATION : 0);
}

/* What of a handle depends on the world alone, for comparing with other worlds: index and life. 0, as null,
 * for provisional handles and those of other worlds: their bits depend on the process. */
static inline uint64_t quern__entity_relative(quern_entity entity, uint32_t first_handle_high)
{
    const uint32_t life = quern__generation_life(first_handle_high, quern_entity_generation(entity));
    if (quern_entity_world_tag(entity) != first_handle_high >> 24 || life == 0) return 0;
    return (uint64_t)life << 32 | quern_entity_index(entity);
}

/* The handle of this world that has an index and a life. Null for life 0, and for lives that no slot has.
 */
static inline quern_entity quern__entity_absolute(uint64_t relative, uint32_t first_handle_high)
{
    const uint32_t life = (uint32_t)(relative >> 32);
    if (life == 0 || life > QUERN__MAX_GENERATION) return (quern_entity){0};
    const uint32_t since = (first_handle_high & QUERN__MAX_GENERATION) + life - 1;
    const uint32_t generation = since > QUERN__MAX_GENERATION ? since - QUERN__MAX_GENERATION : since;
    const uint32_t tag_bits = first_handle_high & ~(uint32_t)QUERN__MAX_GENERATION;
    return (quern_entity){(uint64_t)(tag_bits | generation) << 32 | (uint32_t)relative};
}

#endif
