/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: stress */
#include "core/reflect/reflect_internal.h"
#include "tests/support/random.h"
#include "tests/support/stress.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compares the text of random floats and the floats of random texts with those of the C library.
 * QUERN_STRESS_SECONDS sets the duration, QUERN_STRESS_SEED the first seed. */

/* NAIVE_BYTES: room for every number that "%.17g" and "%.0f" print, also for those that no test writes, since compilers
 * warn of text that could be cut. */
enum { BATCH = 1000, TEXT_BYTES = 160, NAIVE_BYTES = 400 };

static const quern_field_type types[] = {QUERN_FIELD_F32, QUERN_FIELD_F64};

static double real_of(quern_field_type type, uint64_t bits)
{
    double f64;
    float f32;
    const uint32_t low = (uint32_t)bits;
    memcpy(&f64, &bits, sizeof f64);
    memcpy(&f32, &low, sizeof f32);
    return type == QUERN_FIELD_F32 ? (double)f32 : f64;
}

static uint64_t bits_of(quern_field_type type, double real)
{
    uint64_t bits;
    uint32_t low;
    const float f32 = (float)real;
    memcpy(&bits, &real, sizeof bits);
    memcpy(&low, &f32, sizeof low);
    return type == QUERN_FIELD_F32 ? low : bits;
}

/* The C library's strtod, which rounds correctly. That of MinGW rounds some numbers beside a power of two to another
 * than the nearest; its atof is that of Windows, which is right. */
static double read_double(const char *text)
{
#if defined(__MINGW32__)
    return atof(text);
#else
    return strtod(text, NULL);
#endif
}

static uint64_t convert(quern_field_type type, const char *text)
{
    if (type == QUERN_FIELD_F64) return bits_of(type, read_double(text));
    const float f32 = strtof(text, NULL);
    uint32_t low;
    memcpy(&low, &f32, sizeof low);
    return low;
}

/* Prints a finite float as documented: whole numbers that are small without exponent, others with as few digits as
 * restore them, but at least 6 or 15. */
static void print_naively(quern_field_type type, uint64_t bits, char text[NAIVE_BYTES])
{
    const double real = real_of(type, bits), limit = type == QUERN_FIELD_F32 ? 1e7 : 1e15;
    int digits = type == QUERN_FIELD_F32 ? 6 : 15;
    if (fabs(real) < limit && real == trunc(real)) {
        snprintf(text, NAIVE_BYTES, "%.0f", real);
        return;
    }
    do
        snprintf(text, NAIVE_BYTES, "%.*g", digits++, real);
    while (convert(type, text) != bits);
}

static void check_float(quern_field_type type, uint64_t bits)
{
    char text[QUERN__NUMBER_BYTES], expected[NAIVE_BYTES];
    uint64_t again = ~bits;
    if (type == QUERN_FIELD_F32) bits = (uint32_t)bits;
    if (!isfinite(real_of(type, bits))) return;
    print_naively(type, bits, expected);
    memset(text, '?', sizeof text);
    const size_t bytes = quern__number_write(type, bits, text);
    cr_assert_str_eq(text, expected, "type %d, bits %#" PRIx64 ": '%s', expected '%s'", (int)type, bits,
                     text, expected);
    cr_assert_eq(bytes, strlen(text));
    cr_assert_eq(quern__number_read(type, text, bytes, &again), QUERN__NUMBER_OK);
    if (type == QUERN_FIELD_F32) again = (uint32_t)again;
    cr_assert_eq(again, bits, "type %d, bits %#" PRIx64 ": '%s' reads as %#" PRIx64, (int)type, bits, text,
                 again);
}

static void check_text(quern_field_type type, const char *text)
{
    const uint64_t expected = convert(type, text);
    uint64_t bits = ~expected;
    const quern__number_state state = quern__number_read(type, text, strlen(text), &bits);
    const bool is_finite = isfinite(real_of(type, expected));
    cr_assert_eq(state, is_finite ? QUERN__NUMBER_OK : QUERN__NUMBER_OUT_OF_RANGE, "'%s'", text);
    if (type == QUERN_FIELD_F32) bits = (uint32_t)bits;
    if (is_finite)
        cr_assert_eq(bits, expected, "type %d: '%s' reads as %#" PRIx64 ", expected %#" PRIx64, (int)type,
                     text, bits, expected);
}

static double power_of_ten(int exponent)
{
    char text[16];
    snprintf(text, sizeof text, "1e%d", exponent);
    return read_double(text);
}

/* Returns a random float of one of the kinds that differ in their conversion. */
static uint64_t random_float(quern_field_type type, random_source *random)
{
    const uint64_t next = random_next(random);
    const uint32_t few = random_below(random, 2000001), kind = random_below(random, 8);
    const int fraction_bits = type == QUERN_FIELD_F32 ? 23 : 52, most = type == QUERN_FIELD_F32 ? 38 : 308;
    switch (kind) {
    case 0: /* a number of a few decimals */
        return bits_of(type, ((double)few - 1e6) / power_of_ten((int)(next % 8)));
    case 1: /* near a power of two */
        return ((next >> 8) << fraction_bits) + (uint64_t)((int64_t)(next % 9) - 4);
    case 2: /* near a power of ten */
        return bits_of(type, power_of_ten((int)random_below(random, (uint32_t)(2 * most)) - most)) +
               next % 5 - 2;
    case 3: /* subnormal */
        return next & ((UINT64_C(1) << fraction_bits) - 1);
    case 4: /* a whole number */
        return bits_of(type, (double)(next >> random_below(random, 64)));
    case 5: /* few bits, so that decimals end between two others */
        return bits_of(type, ldexp(few, (int)random_below(random, 80) - 60));
    case 6: /* near one */
        return bits_of(type,
                       (double)(next >> 11) * 0x1p-53 * power_of_ten((int)random_below(random, 10) - 5));
    default:
        return next;
    }
}

Test(number, integers_are_written_up_to_their_limits)
{
    static const struct {
        quern_field_type type;
        uint64_t bits;
        const char *text;
    } cases[] = {
        {QUERN_FIELD_U64, 0, "0"},
        {QUERN_FIELD_U64, UINT64_MAX, "18446744073709551615"},
        {QUERN_FIELD_I64, UINT64_MAX, "-1"},
        {QUERN_FIELD_I64, (uint64_t)INT64_MIN, "-9223372036854775808"},
        {QUERN_FIELD_I8, (uint64_t)-128, "-128"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[QUERN__NUMBER_BYTES];
        memset(text, '?', sizeof text);
        cr_expect_eq(quern__number_write(cases[i].type, cases[i].bits, text), strlen(cases[i].text));
        cr_expect_str_eq(text, cases[i].text);
    }
}

Test(number, integers_in_two_bases)
{
    uint64_t bits = 0;
    cr_assert_eq(quern__number_read(QUERN_FIELD_U32, "0x1F", 4, &bits), QUERN__NUMBER_OK);
    cr_assert_eq(bits, 31u);
    cr_assert_eq(quern__number_read(QUERN_FIELD_U32, "0X1f", 4, &bits), QUERN__NUMBER_OK);
    cr_assert_eq(bits, 31u);
    static const char *const wrong[] = {"0x", "1x5", "x5", "5x", "0y5", "00x5", "0x-5", "0xg"};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(quern__number_read(QUERN_FIELD_U32, wrong[i], strlen(wrong[i]), &bits),
                     QUERN__NUMBER_MALFORMED, "'%s'", wrong[i]);
}

Test(number, floats_are_printed_as_by_the_c_library)
{
    random_source random = {stress_seed(1)};
    const double end = stress_deadline(0.4, 2);
    do
        for (uint32_t i = 0; i < BATCH; i++)
            check_float(types[i % 2], random_float(types[i % 2], &random));
    while (stress_seconds_now() < end);
}

/* Writes a number halfway between two floats, or just above it. */
static void print_midpoint(quern_field_type type, random_source *random, char text[TEXT_BYTES])
{
    const int bits = type == QUERN_FIELD_F32 ? 25 : 54;
    const uint64_t odd = random_next(random) >> (64 - bits) | UINT64_C(1) << (bits - 1) | 1;
    const char *more = random_chance(random, 20) ? ".0000001" : random_chance(random, 50) ? ".0" : "";
    if (random_chance(random, 50))
        snprintf(text, TEXT_BYTES, "%" PRIu64 "%s", odd << random_below(random, (uint32_t)(65 - bits)),
                 more);
    else
        snprintf(text, TEXT_BYTES, "%.*g", (int)random_below(random, 5) + 15,
                 ldexp((double)(odd & 0x1FFFFFF), -(int)random_below(random, 30)));
}

static void random_text(random_source *random, char text[TEXT_BYTES])
{
    const uint32_t count = 1 + random_below(random, random_chance(random, 90) ? 20 : 100);
    const uint32_t point = random_below(random, count + 1);
    char *to = text;
    if (random_chance(random, 30)) *to++ = random_chance(random, 50) ? '-' : '+';
    for (uint32_t i = 0; i < count; i++) {
        if (i == point && random_chance(random, 80)) *to++ = '.';
        *to++ = (char)('0' + (random_chance(random, 20) ? 0 : random_below(random, 10)));
    }
    *to = '\0';
    if (random_chance(random, 50))
        snprintf(to, 16, "%c%s%d", random_chance(random, 50) ? 'e' : 'E',
                 random_chance(random, 30) ? "+0" : "", (int)random_below(random, 40));
    else if (random_chance(random, 50))
        snprintf(to, 16, "e%d", (int)random_below(random, 800) - 400);
}

Test(number, texts_are_read_as_by_the_c_library)
{
    random_source random = {stress_seed(2)};
    const double end = stress_deadline(0.4, 2);
    char text[TEXT_BYTES];
    do
        for (uint32_t i = 0; i < BATCH; i++) {
            const quern_field_type type = types[i % 2];
            random_text(&random, text);
            check_text(type, text);
            print_midpoint(type, &random, text);
            check_text(type, text);
        }
    while (stress_seconds_now() < end);
}

Test(number, special_floats)
{
    static const double reals[] = {0.0,
                                   -0.0,
                                   5e-324,
                                   2.2250738585072014e-308,
                                   2.225073858507201e-308,
                                   0x1p-44,
                                   0x1p-24,
                                   2097152.25,
                                   2097152.75,
                                   0x1.fffffffffffffp1023,
                                   1e15,
                                   1e17,
                                   1e22,
                                   1e23,
                                   9007199254740993.0,
                                   9.5,
                                   999999.5,
                                   9999999.0,
                                   18014398509481988.0,
                                   1000000000000005.0,
                                   1e-5,
                                   0.0001,
                                   0.00001234,
                                   123456789.0,
                                   0x1p1023,
                                   1e-307,
                                   4.5e15,
                                   1e100,
                                   0x1.fffffep127,
                                   0x1p-149};
    for (uint32_t i = 0; i < sizeof reals / sizeof *reals; i++)
        for (int64_t step = -3; step <= 3; step++) {
            check_float(QUERN_FIELD_F64, bits_of(QUERN_FIELD_F64, reals[i]) + (uint64_t)step);
            if (fabs(reals[i]) < 3.4e38)
                check_float(QUERN_FIELD_F32, bits_of(QUERN_FIELD_F32, reals[i]) + (uint64_t)step);
        }
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (uint64_t step = 0; step < 3; step++) {
            check_float(QUERN_FIELD_F64, (exponent << 52) + step - 1);
            check_float(QUERN_FIELD_F32, ((exponent & 0xFF) << 23) + step - 1);
        }
}

Test(number, special_texts)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0e999999999999999999",
                                        "1e-400",
                                        "1e400",
                                        "4.9e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "7.006492321624085e-46",
                                        "7.0064923216240862e-46",
                                        "16777217",
                                        "16777219",
                                        "8388608.5",
                                        "8388609.5",
                                        "9007199254740993",
                                        "9007199254740995",
                                        "1.7976931348623157e308",
                                        "1.7976931348623158e308",
                                        "1.7976931348623159e308",
                                        "3.4028235e38",
                                        "3.4028235677973366e38",
                                        "3.40282356779733661637e38",
                                        "3.4028236e38",
                                        "2.2250738585072011e-308",
                                        "1.17549428e-38",
                                        "0.000000000000000000000000000000000000001e39",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "9999999999999999999",
                                        "99999999999999999999",
                                        "1.",
                                        ".5",
                                        "00000000000000000000000000001.50",
                                        "6.02e23",
                                        "1e23",
                                        "5e-324",
                                        "1e00000000000000000001",
                                        "1e-00000000000000000000000000000000005"};
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_text(QUERN_FIELD_F32, texts[i]);
        check_text(QUERN_FIELD_F64, texts[i]);
    }
    static const char *const wrong[] = {"",     "-",   ".",  "e5",    "1e",   "1e+",
                                        "1e5x", "1,5", " 1", "0x1p3", "1..2", "--1"};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t bits;
        cr_assert_eq(quern__number_read(QUERN_FIELD_F64, wrong[i], strlen(wrong[i]), &bits),
                     QUERN__NUMBER_MALFORMED, "'%s'", wrong[i]);
    }
}

#ifdef __SIZEOF_INT128__
/* The C library converts only floats and decimals that are halfway between two results. */
Test(number, few_floats_need_the_c_library)
{
    enum { COUNT = 20000 };
    random_source random = {3};
    uint32_t undecided_count = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint64_t bits = random_float(types[i % 2], &random) & (i % 2 == 0 ? 0x7FFFFFFF : INT64_MAX);
        quern__decimal decimal;
        uint64_t again;
        if (bits == 0 || !isfinite(real_of(types[i % 2], bits))) continue;
        if (!quern__decimal_of_float(types[i % 2], bits, &decimal) ||
            !quern__decimal_to_float(types[i % 2], &decimal, &again))
            undecided_count++;
        else
            cr_assert_eq(again, bits);
    }
    cr_assert_lt(undecided_count, COUNT / 100, "%u of %u", undecided_count, (uint32_t)COUNT);
}
#endif
