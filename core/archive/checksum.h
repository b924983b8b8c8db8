/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_CHECKSUM_H
#define QUERN_CORE_ARCHIVE_CHECKSUM_H

/* The checksum of a block: against damage, not against forgers. Stable: it is part of the format.
 *
 * Eight lanes take the words of the bytes in turn. What a lane does with a word, xor, a product with an odd
 * number and a rotation, can be undone; so is what joins the lanes. Therefore bytes that differ in one word
 * alone never have the same checksum; others have it with a chance of one in 2^64. A lane waits for its
 * last product, and there are as many lanes as products fit into that time. */

#include "core/base/base_internal.h"

uint64_t quern__checksum(uint64_t seed, const void *bytes, size_t count);

#endif
