/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reflect/number.h"

#include "core/storage/field.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FLOAT_BYTES = 128 }; /* longer texts of floats are refused, so that a copy fits on the stack */

#define F32_QUIET_NAN UINT32_C(0x7FC00000)
#define F64_QUIET_NAN UINT64_C(0x7FF8000000000000)

static bool is_nan(quern_field_type type, uint64_t bits)
{
    return type == QUERN_FIELD_F32 ? (bits & 0x7FFFFFFF) > 0x7F800000
                                   : (bits & UINT64_C(0x7FFFFFFFFFFFFFFF)) > UINT64_C(0x7FF0000000000000);
}

/* ----------------------------------------------------------------------------------------- reading */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static uint32_t digit_of(char byte)
{
    if (is_digit(byte)) return (uint32_t)(byte - '0');
    const char lower = (char)(byte | 0x20);
    return lower >= 'a' && lower <= 'f' ? (uint32_t)(lower - 'a') + 10 : UINT32_MAX;
}

quern__number_state quern__digits_read(const char *text, size_t bytes, uint32_t base, uint64_t limit,
                                       uint64_t *out_number)
{
    uint64_t number = 0;
    bool is_out_of_range = false;
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t digit = digit_of(text[i]);
        if (digit >= base) return QUERN__NUMBER_MALFORMED;
        is_out_of_range |= digit > limit || number > (limit - digit) / base;
        number = number * base + digit;
    }
    if (bytes == 0) return QUERN__NUMBER_MALFORMED;
    *out_number = number;
    return is_out_of_range ? QUERN__NUMBER_OUT_OF_RANGE : QUERN__NUMBER_OK;
}

static bool is_hexadecimal(const char *text, size_t bytes)
{
    return bytes > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

static quern__number_state read_integer(quern_field_type type, const char *text, size_t bytes,
                                        uint64_t *out_bits)
{
    int64_t least, greatest;
    quern__field_integer_range(type, &least, &greatest);
    const bool is_negative = bytes > 0 && text[0] == '-',
               has_sign = is_negative || (bytes > 0 && text[0] == '+');
    const uint64_t limit = is_negative ? 0 - (uint64_t)least : (uint64_t)greatest;
    uint64_t number;
    quern__number_state state;
    if (has_sign) text++, bytes--;
    if (is_hexadecimal(text, bytes))
        state = quern__digits_read(text + 2, bytes - 2, 16, limit, &number);
    else
        state = quern__digits_read(text, bytes, 10, limit, &number);
    if (state == QUERN__NUMBER_OK) *out_bits = is_negative ? 0 - number : number;
    return state;
}

static size_t count_digits(const char *text, size_t bytes)
{
    size_t count = 0;
    while (count < bytes && is_digit(text[count]))
        count++;
    return count;
}

/* Returns whether a text has the form [sign] digits [. digits] [e [sign] digits], with a digit before the e. */
static bool is_decimal(const char *text, size_t bytes)
{
    size_t at = bytes > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    size_t digits = count_digits(text + at, bytes - at);
    at += digits;
    if (at < bytes && text[at] == '.') {
        const size_t fraction = count_digits(text + at + 1, bytes - at - 1);
        at += 1 + fraction;
        digits += fraction;
    }
    if (digits == 0) return false;
    if (at == bytes) return true;
    if (text[at] != 'e' && text[at] != 'E') return false;
    at++;
    if (at < bytes && (text[at] == '-' || text[at] == '+')) at++;
    const size_t exponent = count_digits(text + at, bytes - at);
    return exponent > 0 && at + exponent == bytes;
}

static bool equals(const char *text, size_t bytes, const char *word)
{
    return strlen(word) == bytes && memcmp(text, word, bytes) == 0;
}

/* Parses inf and nan, with optional sign, and nan(0x...) with all bits of the NaN. */
static quern__number_state read_special(quern_field_type type, const char *text, size_t bytes,
                                        uint64_t *out_bits)
{
    static const char nan_of[] = "nan(0x";
    const size_t nan_of_bytes = sizeof nan_of - 1;
    const bool is_f32 = type == QUERN_FIELD_F32;
    if (bytes > nan_of_bytes + 1 && memcmp(text, nan_of, nan_of_bytes) == 0 && text[bytes - 1] == ')') {
        const quern__number_state state = quern__digits_read(
            text + nan_of_bytes, bytes - nan_of_bytes - 1, 16, is_f32 ? UINT32_MAX : UINT64_MAX, out_bits);
        return state == QUERN__NUMBER_OK && !is_nan(type, *out_bits) ? QUERN__NUMBER_MALFORMED : state;
    }
    const bool is_negative = bytes > 0 && text[0] == '-';
    const uint64_t sign = (uint64_t)is_negative << (is_f32 ? 31 : 63);
    if (bytes > 0 && (is_negative || text[0] == '+')) text++, bytes--;
    if (equals(text, bytes, "inf"))
        *out_bits = sign | (is_f32 ? 0x7F800000 : UINT64_C(0x7FF0000000000000));
    else if (equals(text, bytes, "nan"))
        *out_bits = sign | (is_f32 ? F32_QUIET_NAN : F64_QUIET_NAN);
    else
        return QUERN__NUMBER_MALFORMED;
    return QUERN__NUMBER_OK;
}

/* Writes the decimal point of the locale into `point`: the text between the digits of a printed 0.5. Returns its length
 * in bytes. */
static size_t locale_point(char point[8])
{
    char probe[16];
    const int bytes = snprintf(probe, sizeof probe, "%.1f", 0.5);
    const size_t point_bytes = bytes > 2 && bytes <= 9 ? (size_t)bytes - 2 : 1;
    memcpy(point, probe + 1, point_bytes);
    return point_bytes;
}

static quern__number_state read_float(quern_field_type type, const char *text, size_t bytes,
                                      uint64_t *out_bits)
{
    char copy[MAX_FLOAT_BYTES + 9], point[8];
    size_t used = 0;
    if (!is_decimal(text, bytes)) return read_special(type, text, bytes, out_bits);
    if (bytes > MAX_FLOAT_BYTES) return QUERN__NUMBER_MALFORMED;
    const size_t point_bytes = locale_point(point);
    for (size_t i = 0; i < bytes; i++) {
        const bool is_point = text[i] == '.';
        memcpy(copy + used, is_point ? point : text + i, is_point ? point_bytes : 1);
        used += is_point ? point_bytes : 1;
    }
    copy[used] = '\0';
    if (type == QUERN_FIELD_F32) {
        const float value = strtof(copy, NULL);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        *out_bits = bits;
        return isfinite(value) ? QUERN__NUMBER_OK : QUERN__NUMBER_OUT_OF_RANGE;
    }
    const double value = strtod(copy, NULL);
    memcpy(out_bits, &value, sizeof value);
    return isfinite(value) ? QUERN__NUMBER_OK : QUERN__NUMBER_OUT_OF_RANGE;
}

quern__number_state quern__number_read(quern_field_type type, const char *text, size_t bytes,
                                       uint64_t *out_bits)
{
    const bool is_float = type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64;
    return is_float ? read_float(type, text, bytes, out_bits) : read_integer(type, text, bytes, out_bits);
}

/* ----------------------------------------------------------------------------------------- writing */

/* Replaces the decimal point of the locale by '.'. In a printed finite float, the point is everything that is no digit,
 * sign or e. */
static void replace_point(char *text)
{
    char *to = text;
    bool is_in_point = false;
    for (const char *from = text; *from != '\0'; from++) {
        const bool is_plain = is_digit(*from) || *from == '-' || *from == '+' || *from == 'e';
        if (is_plain || !is_in_point) *to++ = (char)(is_plain ? *from : '.');
        is_in_point = !is_plain;
    }
    *to = '\0';
}

static void write_special(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES])
{
    const bool is_f32 = type == QUERN_FIELD_F32;
    const uint64_t sign = UINT64_C(1) << (is_f32 ? 31 : 63);
    const char *minus = (bits & sign) != 0 ? "-" : "";
    if (!is_nan(type, bits))
        snprintf(text, QUERN__NUMBER_BYTES, "%sinf", minus);
    else if ((bits & ~sign) == (is_f32 ? F32_QUIET_NAN : F64_QUIET_NAN))
        snprintf(text, QUERN__NUMBER_BYTES, "%snan", minus);
    else
        snprintf(text, QUERN__NUMBER_BYTES, "nan(0x%0*" PRIx64 ")", is_f32 ? 8 : 16, bits);
}

/* Writes a float with the fewest digits from which reading restores the same bits. Whole numbers below 1e7 (F32) or 1e15
 * (F64) are written without exponent. */
static void write_float(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES])
{
    const bool is_f32 = type == QUERN_FIELD_F32;
    const int few = is_f32 ? 6 : 15, most = is_f32 ? 9 : 17;
    const double value = quern__field_real(type, bits), limit = is_f32 ? 1e7 : 1e15;
    const bool is_small = value > -limit && value < limit;
    if (!isfinite(value)) {
        write_special(type, bits, text);
        return;
    }
    if (is_small && (double)(int64_t)value == value) {
        snprintf(text, QUERN__NUMBER_BYTES, "%.0f", value);
        return;
    }
    for (int digits = few; digits <= most; digits++) {
        uint64_t again;
        snprintf(text, QUERN__NUMBER_BYTES, "%.*g", digits, value);
        replace_point(text);
        if (read_float(type, text, strlen(text), &again) == QUERN__NUMBER_OK && again == bits) return;
    }
}

void quern__number_write(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES])
{
    if (type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64)
        write_float(type, bits, text);
    else if (type == QUERN_FIELD_U64)
        snprintf(text, QUERN__NUMBER_BYTES, "%" PRIu64, bits);
    else
        snprintf(text, QUERN__NUMBER_BYTES, "%" PRId64, (int64_t)bits);
}
