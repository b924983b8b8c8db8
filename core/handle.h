/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HANDLE_H
#define QUERN_CORE_HANDLE_H

/* The 32 bits of component and resource handles: index + 1 below, world tag on top, zero in between. */

#include "core/base.h"

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

#endif
