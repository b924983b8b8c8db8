/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Both conversions multiply a significand of 64 bits by a power of five of 128 bits, and keep 128 bits of the product
 * together with a bound of its error. If the bound decides how to round, the result is exact. Otherwise the conversion
 * gives up. This idea is from Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers" (PLDI 2010;
 * Grisu3), with powers of 64 bits. With 128 bits, as in Adams, "Ryu: Fast Float-to-String Conversion" (PLDI 2018), and
 * Lemire, "Number Parsing at a Gigabyte per Second" (2021), the bound decides for all numbers but those that are halfway
 * between two results. For powers from 5^0 to 5^27, the product is exact, and decides those, too. Powers are computed
 * from two short tables, as in Ryu. */
#include "core/reflect/reflect_internal.h"

#include "core/storage/type_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide;

/* An error bound of all products and distances below, in units of their last bit. The power has an error below 2: below 1
 * from the rounded table and below 1 from cutting, which may double in normalising. Multiplying and cutting adds 1. A half
 * distance adds 2. */
enum { ERROR = 8 };

enum { LEAST_POWER = -364, MOST_POWER = 391, STEP = 28, EXACT_POWERS = 28 };

/* The layout of a float, and the limits of its text. */
typedef struct float_layout {
    int32_t fraction_bits, exponent_bits;
    uint32_t least_digits, most_digits; /* most_digits restore every float */
} float_layout;

static const float_layout layout_f32 = {23, 8, 6, 9}, layout_f64 = {52, 11, 15, 17};

static const float_layout *layout_of(quern_field_type type)
{
    return type == QUERN_FIELD_F32 ? &layout_f32 : &layout_f64;
}

static int32_t bias_of(const float_layout *layout)
{
    return (1 << (layout->exponent_bits - 1)) - 1;
}

/* 5^j for j from 0 to 27, shifted left to 64 bits. */
static const uint64_t small_powers[STEP] = {
    UINT64_C(0x8000000000000000), UINT64_C(0xA000000000000000), UINT64_C(0xC800000000000000),
    UINT64_C(0xFA00000000000000), UINT64_C(0x9C40000000000000), UINT64_C(0xC350000000000000),
    UINT64_C(0xF424000000000000), UINT64_C(0x9896800000000000), UINT64_C(0xBEBC200000000000),
    UINT64_C(0xEE6B280000000000), UINT64_C(0x9502F90000000000), UINT64_C(0xBA43B74000000000),
    UINT64_C(0xE8D4A51000000000), UINT64_C(0x9184E72A00000000), UINT64_C(0xB5E620F480000000),
    UINT64_C(0xE35FA931A0000000), UINT64_C(0x8E1BC9BF04000000), UINT64_C(0xB1A2BC2EC5000000),
    UINT64_C(0xDE0B6B3A76400000), UINT64_C(0x8AC7230489E80000), UINT64_C(0xAD78EBC5AC620000),
    UINT64_C(0xD8D726B7177A8000), UINT64_C(0x878678326EAC9000), UINT64_C(0xA968163F0A57B400),
    UINT64_C(0xD3C21BCECCEDA100), UINT64_C(0x84595161401484A0), UINT64_C(0xA56FA5B99019A5C8),
    UINT64_C(0xCECB8F27F4200F3A)};

/* 5^(28 i) for i from -13 to 13, scaled by a power of two to 128 bits and rounded to nearest. */
static const uint64_t large_powers[][2] = {{UINT64_C(0xE1AFA13AFBD14D6D), UINT64_C(0x82189C09A3A1EC21)},
                                           {UINT64_C(0xE3E27A444D8D98B7), UINT64_C(0xFD1B1B2308169B25)},
                                           {UINT64_C(0xE61ACF033D1A45DF), UINT64_C(0x6FB92487298E33BE)},
                                           {UINT64_C(0xE858AD248F5C22C9), UINT64_C(0xD1B3400F8F9CFF69)},
                                           {UINT64_C(0xEA9C227723EE8BCB), UINT64_C(0x465E15A979C1CADC)},
                                           {UINT64_C(0xECE53CEC4A314EBD), UINT64_C(0xA4F8BF5635246428)},
                                           {UINT64_C(0xEF340A98172AACE4), UINT64_C(0x86FB897116C87C35)},
                                           {UINT64_C(0xF18899B1BC3F8CA1), UINT64_C(0xDC44E6C3CB279AC2)},
                                           {UINT64_C(0xF3E2F893DEC3F126), UINT64_C(0x5A89DBA3C3EFCCFB)},
                                           {UINT64_C(0xF64335BCF065D37D), UINT64_C(0x4D4617B5FF4A16D6)},
                                           {UINT64_C(0xF8A95FCF88747D94), UINT64_C(0x75A44C6397CE912A)},
                                           {UINT64_C(0xFB158592BE068D2E), UINT64_C(0xEED6E2F0F0D56713)},
                                           {UINT64_C(0xFD87B5F28300CA0D), UINT64_C(0x8BCA9D6E188853FC)},
                                           {UINT64_C(0x8000000000000000), UINT64_C(0x0000000000000000)},
                                           {UINT64_C(0x813F3978F8940984), UINT64_C(0x4000000000000000)},
                                           {UINT64_C(0x82818F1281ED449F), UINT64_C(0xBFF8F10E7A8921A4)},
                                           {UINT64_C(0x83C7088E1AAB65DB), UINT64_C(0x792667C6DA79E0FA)},
                                           {UINT64_C(0x850FADC09923329E), UINT64_C(0x03E2CF6BC604DDB0)},
                                           {UINT64_C(0x865B86925B9BC5C2), UINT64_C(0x0B8A2392BA45A9B2)},
                                           {UINT64_C(0x87AA9AFF79042286), UINT64_C(0x90FB44D2F05D0843)},
                                           {UINT64_C(0x88FCF317F22241E2), UINT64_C(0x441FECE3BDF81F03)},
                                           {UINT64_C(0x8A5296FFE33CC92F), UINT64_C(0x82BD6B70D99AAA70)},
                                           {UINT64_C(0x8BAB8EEFB6409C1A), UINT64_C(0x1AD089B6C2F7548E)},
                                           {UINT64_C(0x8D07E33455637EB2), UINT64_C(0xDB0B487B6423E1E8)},
                                           {UINT64_C(0x8E679C2F5E44FF8F), UINT64_C(0x570F09EAA7EA7648)},
                                           {UINT64_C(0x8FCAC257558EE4E6), UINT64_C(0x213A4F0AA5E8A7B2)},
                                           {UINT64_C(0x91315E37DB165AA9), UINT64_C(0x2C0DE8DD3D020C0C)}};

/* Returns the upper 128 bits of the product of a number of 64 bits and one of 128 bits; out_rest: its lower 64 bits. */
static wide multiply(uint64_t a, wide b, uint64_t *out_rest)
{
    const wide low = (wide)a * (uint64_t)b;
    *out_rest = (uint64_t)low;
    return (wide)a * (uint64_t)(b >> 64) + (uint64_t)(low >> 64);
}

/* A power of ten: power * 2^exponent, with the highest bit of `power` set. */
typedef struct ten_power {
    wide power;
    int32_t exponent;
    bool is_exact; /* whether the lower 64 bits of `power` are 0, so that products with 64 bits are exact */
} ten_power;

static ten_power power_of_ten(int32_t exponent)
{
    const uint32_t step = (uint32_t)(exponent - LEAST_POWER) / STEP,
                   rest = (uint32_t)(exponent - LEAST_POWER) % STEP;
    const wide large = (wide)large_powers[step][0] << 64 | large_powers[step][1];
    uint64_t lower;
    wide power = multiply(small_powers[rest], large, &lower);
    if (power >> 127 == 0) power = power << 1 | lower >> 63;
    /* 152170 / 2^16 is the logarithm of five to base two, precisely enough for its floor. */
    return (ten_power){.power = power,
                       .exponent = exponent + ((exponent * 152170) >> 16) - 127,
                       .is_exact = exponent >= 0 && exponent < EXACT_POWERS};
}

/* ------------------------------------------------------------------------------------------ to text */

/* A float on the scale of its longest decimal: the float is number / 2^point, and point is at least 65. Decimals between
 * number - below and number + above are read as the float; those at the bounds are read as the float if has_bounds. */
typedef struct scaled_float {
    wide number, below, above;
    uint32_t point;
    bool is_exact;
    bool has_bounds;
} scaled_float;

/* Rounds a scaled float to units of `unit`. out_is_same: whether the float can be restored from the result. Returns false
 * if the error bound does not decide that, or, of a restorable float, the rounding. */
static bool round_to(const scaled_float *scaled, uint64_t unit, uint64_t *out_count, bool *out_is_same)
{
    const uint64_t count = (uint64_t)(scaled->number >> scaled->point) / unit;
    const wide down = scaled->number - ((wide)(count * unit) << scaled->point),
               up = ((wide)unit << scaled->point) - down;
    const bool is_up = up < down || (up == down && count % 2 == 1);
    const wide distance = is_up ? up : down, bound = is_up ? scaled->above : scaled->below;
    const wide uncertain = scaled->is_exact ? 0 : 2 * ERROR;
    *out_count = count + is_up;
    *out_is_same = false;
    if (distance > bound + uncertain) return true;
    *out_is_same = distance < bound || (distance == bound && scaled->has_bounds);
    return scaled->is_exact ||
           (distance + uncertain < bound && (is_up ? down - up : up - down) > uncertain);
}

/* Scales a float such that its whole part has `digits` digits. out_power: the exponent of that scale. */
static bool scale_float(const float_layout *layout, uint64_t bits, uint32_t digits, uint64_t limit,
                        scaled_float *out, int32_t *out_power)
{
    const uint64_t implicit = UINT64_C(1) << layout->fraction_bits, fraction = bits & (implicit - 1);
    const int32_t biased = (int32_t)(bits >> layout->fraction_bits) & ((1 << layout->exponent_bits) - 1);
    const uint64_t significand = biased > 0 ? fraction | implicit : fraction;
    const int32_t shift = 63 - (int32_t)quern__highest_bit_64(significand);
    const int32_t exponent = (biased > 0 ? biased : 1) - bias_of(layout) - layout->fraction_bits - shift;
    /* 78913 / 2^18 is the logarithm of two to base ten. The result is right, or too small by one. */
    int32_t magnitude = ((exponent + 63) * 78913) >> 18;
    for (uint32_t attempt = 0; attempt < 2; attempt++, magnitude++) {
        const int32_t power = (int32_t)digits - 1 - magnitude;
        const ten_power ten = power_of_ten(power);
        uint64_t lower;
        out->number = multiply(significand << shift, ten.power, &lower);
        out->point = (uint32_t) - (64 + ten.exponent + exponent);
        out->above = ten.power >> (65 - shift);
        out->below = fraction == 0 && biased > 1 ? out->above >> 1 : out->above;
        out->is_exact = ten.is_exact;
        out->has_bounds = significand % 2 == 0;
        *out_power = -power;
        if ((uint64_t)(out->number >> out->point) < limit) return true;
    }
    return false;
}

bool quern__decimal_of_float(quern_field_type type, uint64_t bits, quern__decimal *out_decimal)
{
    static const uint64_t tens[] = {1, 10, 100, 1000};
    const float_layout *layout = layout_of(type);
    const uint64_t limit = layout->most_digits == 9 ? UINT64_C(1000000000) : UINT64_C(100000000000000000);
    scaled_float scaled;
    int32_t power;
    if (!scale_float(layout, bits, layout->most_digits, limit, &scaled, &power)) return false;
    /* The distance to a decimal of the same float, in units of the last digit, rounded up. */
    const uint64_t farthest = (uint64_t)(scaled.above >> scaled.point) + 2;
    const uint64_t whole = (uint64_t)(scaled.number >> scaled.point);
    for (uint32_t left_out = layout->most_digits - layout->least_digits + 1; left_out-- > 0;) {
        uint64_t count;
        bool is_same;
        const uint64_t rest = whole % tens[left_out];
        if (rest > farthest && tens[left_out] - rest > farthest) continue;
        if (!round_to(&scaled, tens[left_out], &count, &is_same)) return false;
        if (!is_same) continue;
        *out_decimal = (quern__decimal){count, power + (int32_t)left_out, layout->most_digits - left_out};
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------- from text */

bool quern__decimal_to_float(quern_field_type type, const quern__decimal *decimal, uint64_t *out_bits)
{
    const float_layout *layout = layout_of(type);
    const int32_t bias = bias_of(layout), shift = 63 - (int32_t)quern__highest_bit_64(decimal->digits);
    uint64_t lower;
    if (decimal->exponent < LEAST_POWER || decimal->exponent > MOST_POWER) return false;
    const ten_power ten = power_of_ten(decimal->exponent);
    const wide number = multiply(decimal->digits << shift, ten.power, &lower);
    const int32_t top = number >> 127 != 0 ? 127 : 126;
    const int32_t exponent = top + 64 + ten.exponent - shift; /* the number begins with 2^exponent */
    const int32_t lost = exponent < 1 - bias ? 1 - bias - exponent : 0; /* bits that a subnormal lacks */
    const int32_t dropped = top - layout->fraction_bits + lost;
    if (exponent > bias || lost > layout->fraction_bits) return false;
    const wide half = (wide)1 << (dropped - 1), rest = number & (2 * half - 1);
    const wide gap = rest < half ? half - rest : rest - half;
    if (!ten.is_exact && gap <= ERROR) return false;
    const uint64_t kept = (uint64_t)(number >> dropped);
    const uint64_t rounded = kept + (rest > half || (rest == half && kept % 2 == 1));
    /* The exponent is added: if rounding has carried, it becomes one more. */
    *out_bits = rounded;
    if (lost == 0) *out_bits += (uint64_t)(exponent + bias - 1) << layout->fraction_bits;
    return *out_bits < (uint64_t)(2 * bias + 1) << layout->fraction_bits;
}

#else

/* Without integers of 128 bits, the C library converts all numbers. */

bool quern__decimal_of_float(quern_field_type type, uint64_t bits, quern__decimal *out_decimal)
{
    (void)type, (void)bits, (void)out_decimal;
    return false;
}

bool quern__decimal_to_float(quern_field_type type, const quern__decimal *decimal, uint64_t *out_bits)
{
    (void)type, (void)decimal, (void)out_bits;
    return false;
}

#endif

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

quern__number_state quern__digits_read(const char *text, size_t bytes, uint32_t base, uint64_t limit,
                                       uint64_t *out_number)
{
    uint64_t number = 0;
    bool is_out_of_range = false;
    for (size_t i = 0; i < bytes; i++) {
        const char lower = (char)(text[i] | 0x20);
        const uint32_t digit = is_digit(text[i])              ? (uint32_t)(text[i] - '0')
                               : lower >= 'a' && lower <= 'f' ? (uint32_t)(lower - 'a') + 10
                                                              : UINT32_MAX;
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
        /* Replaces the decimal point of the locale by '.'. In a printed finite float, the point is
         * everything that is no digit, sign or e. */
        char *to = text;
        bool is_in_point = false;
        for (const char *from = text; *from != '\0'; from++) {
            const bool is_plain = is_digit(*from) || *from == '-' || *from == '+' || *from == 'e';
            if (is_plain || !is_in_point) *to++ = (char)(is_plain ? *from : '.');
            is_in_point = !is_plain;
        }
        *to = '\0';
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
