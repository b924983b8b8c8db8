/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Both conversions multiply a significand of 64 bits by a power of five of 128 bits, and keep 128 bits of the product
 * together with a bound of its error. If the bound decides how to round, the result is exact. Otherwise the conversion
 * gives up. This idea is from Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers" (PLDI 2010;
 * Grisu3), with powers of 64 bits. With 128 bits, as in Adams, "Ryu: Fast Float-to-String Conversion" (PLDI 2018), and
 * Lemire, "Number Parsing at a Gigabyte per Second" (2021), the bound decides for all numbers but those that are halfway
 * between two results. For powers from 5^0 to 5^27, the product is exact, and decides those, too. Powers are computed
 * from two short tables, as in Ryu. */
#include "core/reflect/decimal.h"

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
