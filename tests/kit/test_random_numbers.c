/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/random.h>

#include <criterion/criterion.h>

#include <math.h>

/* Numbers from another implementation of SplitMix64: the first outputs of the generator with seed 0, whose state grows
 * by the constant of the mixer. */
Test(random, mix_is_that_of_splitmix64)
{
    cr_assert_eq(quern_random_mix(0), 0xE220A8397B1DCDAFu);
    cr_assert_eq(quern_random_mix(0x9E3779B97F4A7C15u), 0x6E789E6AA1B965F4u);
    cr_assert_eq(quern_random_mix(0x3C6EF372FE94F82Au), 0x06C45D188009454Fu);
}

Test(random, key_and_counter_both_count)
{
    cr_assert_eq(quern_random(5, 7), quern_random_mix(5 ^ quern_random_mix(7)));
    cr_assert_neq(quern_random(5, 7), quern_random(7, 5));
    cr_assert_neq(quern_random(5, 7), quern_random(5, 8));
    cr_assert_neq(quern_random(5, 7), quern_random(6, 7));
}

Test(random, ranges_are_kept_at_their_ends)
{
    cr_assert_eq(quern_random_unit(0), 0);
    cr_assert_eq(quern_random_unit(UINT64_MAX), 1 - 0x1p-24f);
    cr_assert_eq(quern_random_signed(0), -1);
    cr_assert_eq(quern_random_signed(UINT64_MAX), 1 - 0x1p-23f);
    cr_assert_eq(quern_random_below(UINT64_MAX, 6), 5u);
    cr_assert_eq(quern_random_below(UINT64_MAX, UINT32_MAX), UINT32_MAX - 1);
    cr_assert_eq(quern_random_below(0, 6), 0u);
    cr_assert_eq(quern_random_below(UINT64_MAX, 0), 0u);
}

/* Means of 60,000 draws lie within five standard deviations of the expected ones. */
Test(random, numbers_are_uniform)
{
    enum { COUNT = 60000, FACES = 6 }; /* each face is expected 10,000 times */
    double unit = 0, sign = 0;
    uint32_t faces[FACES] = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t bits = quern_random(42, i);
        unit += (double)quern_random_unit(bits);
        sign += (double)quern_random_signed(bits);
        faces[quern_random_below(bits, FACES)]++;
    }
    cr_assert_lt(fabs(unit / COUNT - 0.5), 5 * 0.2887 / sqrt(COUNT));
    cr_assert_lt(fabs(sign / COUNT), 5 * 0.5774 / sqrt(COUNT));
    for (int i = 0; i < FACES; i++)
        cr_assert_lt(fabs((double)faces[i] - 10000), 5 * sqrt(COUNT * 5.0 / 36));
}

/* Each input bit flips about half of the output bits. */
Test(random, each_bit_of_key_and_counter_changes_half_of_the_bits)
{
    for (int bit = 0; bit < 64; bit++) {
        uint32_t by_key = 0, by_counter = 0;
        for (uint64_t i = 0; i < 256; i++) {
            const uint64_t bits = quern_random(i, i + 1);
            for (uint64_t rest = bits ^ quern_random(i ^ (UINT64_C(1) << bit), i + 1); rest != 0;
                 rest &= rest - 1)
                by_key++;
            for (uint64_t rest = bits ^ quern_random(i, (i + 1) ^ (UINT64_C(1) << bit)); rest != 0;
                 rest &= rest - 1)
                by_counter++;
        }
        cr_assert(by_key > 30 * 256 && by_key < 34 * 256, "bit %d of the key", bit);
        cr_assert(by_counter > 30 * 256 && by_counter < 34 * 256, "bit %d of the counter", bit);
    }
}
