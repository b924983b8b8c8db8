/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_DECIMAL_H
#define QUERN_CORE_REFLECT_DECIMAL_H

/* Conversion between binary floats and decimal digits, in integers and independent of the locale. Both functions give
 * the exact result or none: they fail for the few numbers that their precision does not decide. The caller then uses the
 * C library. */

#include "core/base/base_internal.h"

#include <quern/type.h>

/* The number digits * 10^exponent. */
typedef struct quern__decimal {
    uint64_t digits;
    int32_t exponent;
    uint32_t
        digit_count; /* of a printed float: the precision, which counts zeros at the end of the digits */
} quern__decimal;

/* Finds the decimal of the fewest digits, but at least 6 (F32) or 15 (F64), from which reading restores the float. Of the
 * decimals with as many digits, it is the one nearest to the float; of two, the one with an even last digit.
 * type: F32 or F64. bits: those of a finite float that is not 0; the sign is ignored. */
bool quern__decimal_of_float(quern_field_type type, uint64_t bits, quern__decimal *out_decimal);

/* Finds the float nearest to a decimal; of two, the one with an even significand. decimal: digits are not 0. type: F32 or
 * F64. out_bits: those of a positive finite float. */
bool quern__decimal_to_float(quern_field_type type, const quern__decimal *decimal, uint64_t *out_bits);

#endif
