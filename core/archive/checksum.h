/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_CHECKSUM_H
#define QUERN_CORE_ARCHIVE_CHECKSUM_H

/* The checksum of archives. It detects accidental damage, but not forgery. It is part of the file
 * format, so it must not change.
 *
 * Eight lanes process the words of the input in turn. Each step of a lane (xor, multiplication by an odd
 * number, rotation) is invertible, and so is the combination of the lanes. Therefore inputs that differ
 * in only one word always have different checksums; other inputs collide with a probability of 2^-64. A
 * lane waits for its last multiplication; eight lanes are enough to keep the multiplier busy during that
 * time. */

#include "core/base/base_internal.h"

uint64_t quern__checksum(uint64_t seed, const void *bytes, size_t count);

#endif
