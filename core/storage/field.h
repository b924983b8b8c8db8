/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_FIELD_H
#define QUERN_CORE_STORAGE_FIELD_H

/* Field elements of any type as 64 bits: unsigned integers are zero-extended, signed integers are sign-extended. F32
 * and F64 are stored as their bit patterns, which preserves the payload of a NaN. A bool is its byte. */

#include "core/storage/type_internal.h"

/* Load and store one element at `at`, which need not be aligned. */
uint64_t quern__field_load(quern_field_type type, const char *at);
void quern__field_store(quern_field_type type, char *at, uint64_t bits);

/* Returns an element as a double. Integers beyond the precision of a double are rounded. */
double quern__field_real(quern_field_type type, uint64_t bits);

/* Converts a number from one field type to another. To F32 or F64: rounds to nearest. To an integer: truncates the
 * fraction. To bool: true unless the number is 0. Returns false if the number is out of the target's range. */
bool quern__field_convert(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits);

#endif
