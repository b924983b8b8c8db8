/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reflect/number.h"

#include "core/reflect/decimal.h"
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

/* A text of the form [sign] digits [. digits] [e [sign] digits], with a digit before the e. */
typedef struct decimal_text {
    quern__decimal decimal;
    bool is_negative;
    bool is_exact; /* whether `decimal` holds all digits and the whole exponent */
} decimal_text;

/* Reads digits at *at. More than 19 significant digits do not fit. Returns the number of digits. */
static uint32_t read_digits(const char **at, const char *end, decimal_text *out)
{
    enum { MAX_EXACT_DIGITS = 19 };
    const char *const begin = *at, *first = begin;
    uint64_t digits = out->decimal.digits;
    if (out->decimal.digit_count == 0)
        while (first < end && *first == '0')
            first++;
    const char *last = first;
    for (; last < end && is_digit(*last); last++)
        digits = digits * 10 + (uint64_t)(*last - '0');
    out->decimal.digits = digits;
    out->decimal.digit_count += (uint32_t)(last - first);
    out->is_exact &= out->decimal.digit_count <= MAX_EXACT_DIGITS;
    *at = last;
    return (uint32_t)(last - begin);
}

static bool read_exponent(const char *at, const char *end, decimal_text *out)
{
    enum { FAR = 10000 };
    const bool is_negative = at < end && *at == '-';
    int32_t exponent = 0;
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    for (; at < end && is_digit(*at); at++)
        if (exponent < FAR) exponent = exponent * 10 + (*at - '0');
    out->is_exact &= exponent < FAR;
    out->decimal.exponent += is_negative ? -exponent : exponent;
    return at == end;
}

static bool read_decimal(const char *text, size_t bytes, decimal_text *out)
{
    const char *at = text, *end = text + bytes;
    *out = (decimal_text){.is_negative = bytes > 0 && text[0] == '-', .is_exact = true};
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) at++;
    uint32_t count = read_digits(&at, end, out);
    if (at < end && *at == '.') {
        at++;
        const uint32_t fraction = read_digits(&at, end, out);
        count += fraction;
        out->decimal.exponent = -(int32_t)fraction;
    }
    if (count == 0) return false;
    if (at == end) return true;
    return (*at == 'e' || *at == 'E') && read_exponent(at + 1, end, out);
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

/* Converts a decimal text by the C library. */
static quern__number_state convert_slowly(quern_field_type type, const char *text, size_t bytes,
                                          uint64_t *out_bits)
{
    char copy[MAX_FLOAT_BYTES + 9], point[8];
    size_t used = 0;
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

static quern__number_state read_float(quern_field_type type, const char *text, size_t bytes,
                                      uint64_t *out_bits)
{
    decimal_text read;
    if (bytes > MAX_FLOAT_BYTES || !read_decimal(text, bytes, &read))
        return read_special(type, text, bytes, out_bits);
    const uint64_t sign = (uint64_t)read.is_negative << (type == QUERN_FIELD_F32 ? 31 : 63);
    *out_bits = 0;
    if (!read.is_exact ||
        (read.decimal.digits != 0 && !quern__decimal_to_float(type, &read.decimal, out_bits)))
        return convert_slowly(type, text, bytes, out_bits);
    *out_bits |= sign;
    return QUERN__NUMBER_OK;
}

quern__number_state quern__number_read(quern_field_type type, const char *text, size_t bytes,
                                       uint64_t *out_bits)
{
    const bool is_float = type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64;
    return is_float ? read_float(type, text, bytes, out_bits) : read_integer(type, text, bytes, out_bits);
}

/* ----------------------------------------------------------------------------------------- writing */

enum { DIGIT_BYTES = 20 };

/* Writes digits and returns their number. `text` has room for DIGIT_BYTES, all of which may be written. */
static uint32_t write_digits(uint64_t number, char *text)
{
    char digits[2 * DIGIT_BYTES];
    uint32_t at = DIGIT_BYTES;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(text, digits + at, DIGIT_BYTES);
    return DIGIT_BYTES - at;
}

/* Writes some of the digits. As in write_digits, DIGIT_BYTES may be written, since copies of a constant size need no
 * call. Both texts have such room. */
static char *copy_digits(char *to, const char *digits, uint32_t count)
{
    memcpy(to, digits, DIGIT_BYTES);
    return to + count;
}

/* Writes digits of a float in scientific notation. magnitude: the exponent of the first digit. Returns the end. */
static char *write_scientific(const char *digits, uint32_t count, int32_t magnitude, char *to)
{
    const uint32_t exponent = (uint32_t)(magnitude < 0 ? -magnitude : magnitude);
    *to++ = digits[0];
    if (count > 1) *to++ = '.';
    to = copy_digits(to, digits + 1, count - 1);
    *to++ = 'e';
    *to++ = magnitude < 0 ? '-' : '+';
    if (exponent < 10) *to++ = '0';
    return to + write_digits(exponent, to);
}

/* Writes a decimal as printf does by %.*g with the precision decimal->digit_count. Returns the end. */
static char *write_decimal(const quern__decimal *decimal, char *to)
{
    static const char zeros[DIGIT_BYTES + 1] = "00000000000000000000",
                                          nothing[DIGIT_BYTES + 1] = "0.000000000000000000";
    char digits[2 * DIGIT_BYTES];
    uint32_t count = write_digits(decimal->digits, digits);
    const int32_t magnitude = decimal->exponent + (int32_t)count - 1;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (magnitude < -4 || magnitude >= (int32_t)decimal->digit_count)
        return write_scientific(digits, count, magnitude, to);
    if (magnitude < 0) {
        to = copy_digits(to, nothing, (uint32_t)(1 - magnitude));
        return copy_digits(to, digits, count);
    }
    const uint32_t whole = (uint32_t)magnitude + 1;
    if (count <= whole) return copy_digits(copy_digits(to, digits, count), zeros, whole - count);
    to = copy_digits(to, digits, whole);
    *to++ = '.';
    return copy_digits(to, digits + whole, count - whole);
}

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

/* Writes a float by the C library, like write_float. */
static void write_slowly(quern_field_type type, uint64_t bits, double value, char text[QUERN__NUMBER_BYTES])
{
    const int few = type == QUERN_FIELD_F32 ? 6 : 15, most = type == QUERN_FIELD_F32 ? 9 : 17;
    for (int digits = few; digits <= most; digits++) {
        uint64_t again;
        snprintf(text, QUERN__NUMBER_BYTES, "%.*g", digits, value);
        replace_point(text);
        if (read_float(type, text, strlen(text), &again) == QUERN__NUMBER_OK && again == bits) return;
    }
}

/* Writes a float with the fewest digits from which reading restores the same bits. Whole numbers below 1e7 (F32) or 1e15
 * (F64) are written without exponent. Returns the length in bytes. */
static size_t write_float(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES])
{
    const bool is_f32 = type == QUERN_FIELD_F32;
    const double value = quern__field_real(type, bits), limit = is_f32 ? 1e7 : 1e15;
    const double size = value < 0 ? -value : value;
    quern__decimal decimal;
    char *to = text;
    if (!isfinite(value)) {
        write_special(type, bits, text);
        return strlen(text);
    }
    if (signbit(value)) *to++ = '-';
    if (size < limit && (double)(int64_t)size == size) {
        to += write_digits((uint64_t)size, to);
    } else if (quern__decimal_of_float(type, bits, &decimal)) {
        to = write_decimal(&decimal, to);
    } else {
        write_slowly(type, bits, value, text);
        return strlen(text);
    }
    *to = '\0';
    return (size_t)(to - text);
}

size_t quern__number_write(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES])
{
    char *to = text;
    if (type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64) return write_float(type, bits, text);
    const bool is_negative = type != QUERN_FIELD_U64 && bits >> 63 != 0;
    if (is_negative) *to++ = '-';
    to += write_digits(is_negative ? 0 - bits : bits, to);
    *to = '\0';
    return (size_t)(to - text);
}
