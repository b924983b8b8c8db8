/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/field.h"

/* Uses memcpy because fields need not be aligned. */
uint64_t quern__field_load(quern_field_type type, const char *at)
{
    uint8_t b8 = 0;
    uint16_t b16 = 0;
    uint32_t b32 = 0;
    uint64_t b64 = 0;
    switch (quern__field_bytes(type)) {
    case 1:
        memcpy(&b8, at, 1);
        return type == QUERN_FIELD_I8 ? (uint64_t)(int8_t)b8 : b8;
    case 2:
        memcpy(&b16, at, 2);
        return type == QUERN_FIELD_I16 ? (uint64_t)(int16_t)b16 : b16;
    case 4:
        memcpy(&b32, at, 4);
        return type == QUERN_FIELD_I32 ? (uint64_t)(int32_t)b32 : b32;
    default:
        memcpy(&b64, at, 8);
        return b64;
    }
}

void quern__field_store(quern_field_type type, char *at, uint64_t bits)
{
    const uint8_t b8 = (uint8_t)bits;
    const uint16_t b16 = (uint16_t)bits;
    const uint32_t b32 = (uint32_t)bits;
    switch (quern__field_bytes(type)) {
    case 1:
        memcpy(at, &b8, 1);
        return;
    case 2:
        memcpy(at, &b16, 2);
        return;
    case 4:
        memcpy(at, &b32, 4);
        return;
    default:
        memcpy(at, &bits, 8);
        return;
    }
}

static float f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double quern__field_real(quern_field_type type, uint64_t bits)
{
    if (type == QUERN_FIELD_F32) return (double)f32_of(bits);
    if (type == QUERN_FIELD_F64) return f64_of(bits);
    return type == QUERN_FIELD_U64 ? (double)bits : (double)(int64_t)bits;
}

/* -------------------------------------------------------------------------------------- conversion */

static bool is_floating(quern_field_type type)
{
    return type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64;
}

/* Converts to the bits of the nearest F32. Returns false for a finite number beyond the range of F32. NaN and the
 * infinities stay NaN and infinities. */
static bool to_f32(double real, uint64_t *out_bits)
{
    const double most =
        0x1.fffffefffffffp127; /* from the next larger double on, the nearest float is infinite */
    const bool is_finite = real - real == 0;
    if (is_finite && (real > most || real < -most)) return false;
    const float value = (float)real;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out_bits = bits;
    return true;
}

/* Truncates to an I64 if the number is at most -1, otherwise to a U64. Returns false if the result is out of range.
 * The bounds are exact doubles. The comparison with 2^64 is negated so that it also rejects NaN. */
static bool whole_of(double real, uint64_t *out_bits, bool *out_is_negative)
{
    *out_is_negative = real <= -1;
    if (*out_is_negative ? real < -0x1p63 : !(real < 0x1p64)) return false;
    *out_bits = *out_is_negative ? (uint64_t)(int64_t)real : real < 1 ? 0 : (uint64_t)real;
    return true;
}

/* Converts an integer to the bits of the nearest F32. An intermediate double would round twice. */
static uint64_t f32_of_integer(quern_field_type from, uint64_t bits)
{
    const float value = from == QUERN_FIELD_U64 ? (float)bits : (float)(int64_t)bits;
    uint32_t low;
    memcpy(&low, &value, sizeof low);
    return low;
}

static bool to_integer(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits)
{
    int64_t least, greatest;
    quern__field_integer_range(from, &least, &greatest);
    bool is_negative = least < 0 && (int64_t)bits < 0;
    *out_bits = bits;
    if (is_floating(from) && !whole_of(quern__field_real(from, bits), out_bits, &is_negative)) return false;
    quern__field_integer_range(to, &least, &greatest);
    return is_negative ? (int64_t)*out_bits >= least : *out_bits <= (uint64_t)greatest;
}

bool quern__field_convert(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits)
{
    /* fabricated data may contain bools with bytes other than 0 and 1 */
    if (from == QUERN_FIELD_BOOL) bits = bits != 0;
    const double real = quern__field_real(from, bits);
    switch (to) {
    case QUERN_FIELD_BOOL:
        *out_bits = is_floating(from) ? real != 0 : bits != 0;
        return true;
    case QUERN_FIELD_F32:
        if (is_floating(from)) return to_f32(real, out_bits);
        *out_bits = f32_of_integer(from, bits);
        return true;
    case QUERN_FIELD_F64:
        memcpy(out_bits, &real, sizeof real);
        return true;
    default:
        return to_integer(from, bits, to, out_bits);
    }
}
