/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/angle.h"
#include "kit/transform.h"

#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The C library may be off by one unit in the last place. */
static void assert_near(float value, double expected)
{
    cr_assert(fabs((double)value - expected) <= 1.2e-7 * fmax(fabs(expected), 1e-3), "%.9g is not %.9g",
              (double)value, expected);
}

Test(angle, agrees_with_the_library)
{
    random_source random = {1};
    for (int i = 0; i < 200000; i++) {
        const float range = i % 3 == 0 ? 4.0f : i % 3 == 1 ? 100.0f : 90000.0f;
        const float a = ((float)random_below(&random, 1 << 24) / (1 << 23) - 1) * range;
        const float b = ((float)random_below(&random, 1 << 24) / (1 << 23) - 1) * range;
        cr_assert(fabs((double)quern_angle_sin(a) - sin((double)a)) < 1e-7);
        cr_assert(fabs((double)quern_angle_cos(a) - cos((double)a)) < 1e-7);
        assert_near(quern_angle_of(a, b), atan2((double)a, (double)b));
    }
}

Test(angle, knows_the_axes_and_what_is_no_angle)
{
    cr_assert_eq(quern_angle_sin(0), 0);
    cr_assert_eq(quern_angle_cos(0), 1);
    cr_assert_eq(quern_angle_of(0, 1), 0);
    cr_assert_eq(quern_angle_of(0, 0), 0);
    cr_assert_eq(quern_angle_of(0, -1), 3.14159274f);
    cr_assert_eq(quern_angle_of(1, 0), 1.57079637f);
    cr_assert_eq(quern_angle_of(-1, 0), -1.57079637f);
    cr_assert(isnan(quern_angle_sin(INFINITY)));
    cr_assert(isnan(quern_angle_cos(NAN)));
}

/* The bits that every platform must have. */
Test(angle, has_the_same_bits_everywhere)
{
    uint32_t hash = 0;
    random_source random = {2};
    for (int i = 0; i < 100000; i++) {
        const float a = (float)random_below(&random, 1 << 24) / 1048576 - 8;
        const float b = (float)random_below(&random, 1 << 24) / 1048576 - 8;
        hash = hash * 16777619u ^ bits_of(quern_angle_sin(a));
        hash = hash * 16777619u ^ bits_of(quern_angle_cos(a * 1000));
        hash = hash * 16777619u ^ bits_of(quern_angle_of(a, b));
    }
    cr_assert_eq(hash, 0xc02cb63au, "%#x", hash);
}

/* Angles of matrices end in components, so their bits are part of hashes. */
Test(angle, of_a_matrix_has_the_same_bits_everywhere)
{
    uint32_t hash = 0;
    random_source random = {3};
    for (int i = 0; i < 20000; i++) {
        float values[10];
        for (int j = 0; j < 10; j++)
            values[j] = (float)random_below(&random, 1 << 24) / 1048576 - 8;
        const quern_local2 outer = {{values[0], values[1]}, values[2], {values[3], values[4]}},
                           inner = {{values[5], values[6]}, values[7], {values[8], values[9]}};
        quern_world2 parent, world;
        quern_local2 found;
        quern_world2_place(NULL, &outer, &parent);
        quern_world2_place(&parent, &inner, &world);
        if (!quern_world2_split(&parent, &world, &found)) continue; /* too flat */
        hash = hash * 16777619u ^ bits_of(found.angle);
        hash = hash * 16777619u ^ bits_of(found.scale[0]);
        hash = hash * 16777619u ^ bits_of(found.position[1]);
    }
    cr_assert_eq(hash, 0x853f5970u, "%#x", hash);
}
