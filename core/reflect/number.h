/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_NUMBER_H
#define QUERN_CORE_REFLECT_NUMBER_H

/* Conversion of numbers to text and back, independent of the locale. Floats that decimal.h does not decide are converted
 * by the C library: exactly, but with the decimal point of the locale, which is replaced here. Values are passed as bits,
 * so that the payload of a NaN is kept. */

#include "core/base/base_internal.h"

#include <quern/type.h>

enum { QUERN__NUMBER_BYTES = 48 };

typedef enum quern__number_state {
    QUERN__NUMBER_OK,
    QUERN__NUMBER_MALFORMED,   /* the text is no number */
    QUERN__NUMBER_OUT_OF_RANGE /* the number is outside of the range of the type */
} quern__number_state;

/* Writes a number as text. type: an integer type, F32 or F64. bits: those of the value; smaller integers are extended to
 * 64 bits. Returns the length of the text, which ends with a 0. */
size_t quern__number_write(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES]);

/* Parses a number of the type. `text` need not be zero-terminated. */
quern__number_state quern__number_read(quern_field_type type, const char *text, size_t bytes,
                                       uint64_t *out_bits);

/* Parses digits of base 10 or 16, without sign or prefix. The result is out of range if the number exceeds `limit`. */
quern__number_state quern__digits_read(const char *text, size_t bytes, uint32_t base, uint64_t limit,
                                       uint64_t *out_number);

#endif
