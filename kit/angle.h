/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_ANGLE_H
#define QUERN_KIT_ANGLE_H

/** @file
 * Sine, cosine and arc tangent with the same bits everywhere. The last bit of sinf, cosf and atan2f differs between C
 * libraries. These functions compute in double precision, with additions, multiplications and divisions only, which
 * every platform rounds alike, and round the result to float. Compile with -ffp-contract=off. */

#include <math.h>

/* Internal: a conversion without a cast that C++ calls old. */
#ifdef __cplusplus
#define QUERN__ANGLE_CAST(type, value) static_cast<type>(value)
#else
#define QUERN__ANGLE_CAST(type, value) ((type)(value))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the sine of an angle that is `quarters` quarters of a turn beyond `angle`, in radians. Use
 * quern_angle_sin() and quern_angle_cos(). */
static inline float quern__angle_sin_beyond(float angle, int quarters)
{
    /* A quarter of a turn in two parts. The first has 33 bits, so its product with a small integer is exact. */
    const double quarter = 1.57079632673412561417, quarter_rest = 6.07710050650619224932e-11;
    const double turn = 6.28318530717958647693;
    double x = angle, count, r, square, value;
    if (!(x - x == 0)) return QUERN__ANGLE_CAST(float, x - x); /* NaN for infinities */
    if (fabs(x) > 1e5) x = fmod(x, turn);
    count = floor(x / 1.57079632679489661923 + 0.5);
    r = x - count * quarter - count * quarter_rest; /* at most an eighth of a turn */
    square = r * r;
    quarters += QUERN__ANGLE_CAST(int, count);
    if ((quarters & 1) == 0) {
        value = -1.0 / 1307674368000.0;
        value = value * square + 1.0 / 6227020800.0;
        value = value * square - 1.0 / 39916800.0;
        value = value * square + 1.0 / 362880.0;
        value = value * square - 1.0 / 5040.0;
        value = value * square + 1.0 / 120.0;
        value = value * square - 1.0 / 6.0;
        value = r + r * square * value;
    } else {
        value = 1.0 / 20922789888000.0;
        value = value * square - 1.0 / 87178291200.0;
        value = value * square + 1.0 / 479001600.0;
        value = value * square - 1.0 / 3628800.0;
        value = value * square + 1.0 / 40320.0;
        value = value * square - 1.0 / 720.0;
        value = value * square + 1.0 / 24.0;
        value = value * square - 1.0 / 2.0;
        value = 1.0 + square * value;
    }
    return QUERN__ANGLE_CAST(float, (quarters & 2) == 0 ? value : -value);
}

/** Returns the sine of an angle in radians; NaN if the angle is not finite. */
static inline float quern_angle_sin(float angle)
{
    return quern__angle_sin_beyond(angle, 0);
}

/** Returns the cosine of an angle in radians; NaN if the angle is not finite. */
static inline float quern_angle_cos(float angle)
{
    return quern__angle_sin_beyond(angle, 1);
}

/** Returns the angle of the direction (x, y) in double precision. Use quern_angle_of(), which says what it is for. */
static inline double quern__angle_of(double y, double x)
{
    const double pi = 3.14159265358979323846;
    const double across = fabs(y), along = fabs(x);
    const double larger = across > along ? across : along, smaller = across > along ? along : across;
    double t, square, sum = 0, angle;
    int eighth, i;
    if (larger == 0) return 0;
    t = smaller / larger; /* the tangent of at most an eighth of a turn */
    eighth = t > 0.41421356237309504880;
    if (eighth) t = (t - 1) / (t + 1);
    square = t * t;
    for (i = 33; i >= 1; i -= 2)
        sum = 1.0 / i - square * sum;
    angle = t * sum + (eighth ? pi / 4 : 0);
    if (across > along) angle = pi / 2 - angle;
    if (x < 0) angle = pi - angle;
    return y < 0 ? -angle : angle;
}

/** Returns the angle of the direction (x, y) to the first axis, in radians from -pi to pi, like atan2f(y, x); 0 for
 * (0, 0). Infinite coordinates give NaN. */
static inline float quern_angle_of(float y, float x)
{
    return QUERN__ANGLE_CAST(float, quern__angle_of(y, x));
}

#ifdef __cplusplus
}
#endif

#endif
