/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_NUMBER_H
#define QUERN_CORE_REFLECT_NUMBER_H

/* Numbers from and to text that no locale changes. The C library prints and reads floats, exactly, with the
 * decimal point of the locale; here that is put in and taken out. Values are their bits, so that a NaN
 * stays the one that it is. */

#include "core/base/base_internal.h"

#include <quern/type.h>

enum { QUERN__NUMBER_BYTES = 48 };

typedef enum quern__number_state {
    QUERN__NUMBER_GOOD,
    QUERN__NUMBER_WRONG, /* no number */
    QUERN__NUMBER_BEYOND /* more than the type holds */
} quern__number_state;

/* Of an integer, F32 or F64; U64 and I64 by their bits, smaller integers extended to 64. */
void quern__number_write(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES]);

/* text is not ended by a 0. */
quern__number_state quern__number_read(quern_field_type type, const char *text, size_t bytes,
                                       uint64_t *out_bits);

/* Digits of base 10 or 16, and nothing else. */
quern__number_state quern__digits_read(const char *text, size_t bytes, uint32_t base, uint64_t limit,
                                       uint64_t *out_number);

#endif
