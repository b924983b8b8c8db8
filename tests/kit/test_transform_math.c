/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/kit/transform_setup.h"

#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <string.h>

/* The arithmetic, compared with the definitions, computed in double precision and differently: a quaternion q rotates
 * a vector v to q v q*. */

enum { SEEDS = 300 };

typedef struct vector {
    double v[3];
} vector;

static vector cross(vector a, vector b)
{
    return (vector){{a.v[1] * b.v[2] - a.v[2] * b.v[1], a.v[2] * b.v[0] - a.v[0] * b.v[2],
                     a.v[0] * b.v[1] - a.v[1] * b.v[0]}};
}

/* Scales, then rotates, then translates. */
static vector apply(const quern_local3 *local, vector point)
{
    const vector q = {{local->rotation[0], local->rotation[1], local->rotation[2]}};
    const double w = local->rotation[3];
    for (int i = 0; i < 3; i++)
        point.v[i] *= local->scale[i];
    const vector once = cross(q, point);
    vector inner;
    for (int i = 0; i < 3; i++)
        inner.v[i] = once.v[i] + w * point.v[i];
    const vector twice = cross(q, inner);
    for (int i = 0; i < 3; i++)
        point.v[i] += 2 * twice.v[i] + local->translation[i];
    return point;
}

static void assert_point(const quern_world3 *world, const float point[3], vector expected, double epsilon)
{
    float out[3];
    quern_world3_point(world, point, out);
    for (int i = 0; i < 3; i++)
        cr_assert_float_eq(out[i], expected.v[i], epsilon, "%g is not %g", (double)out[i], expected.v[i]);
}

static void assert_near3(const quern_world3 *a, const quern_world3 *b, double epsilon)
{
    for (int i = 0; i < 12; i++) {
        const double left = a->m[i / 4][i % 4], right = b->m[i / 4][i % 4];
        cr_assert_float_eq(left, right, epsilon * (1 + fabs(right)), "element %d: %g is not %g", i, left,
                           right);
    }
}

static void assert_near2(const quern_world2 *a, const quern_world2 *b, double epsilon)
{
    for (int i = 0; i < 6; i++) {
        const double left = a->m[i / 3][i % 3], right = b->m[i / 3][i % 3];
        cr_assert_float_eq(left, right, epsilon * (1 + fabs(right)), "element %d: %g is not %g", i, left,
                           right);
    }
}

Test(transform_math, local_scales_then_rotates_then_moves)
{
    const float point[3] = {1, -2, 3};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const quern_local3 outer = transform_some_local3(seed), inner = transform_some_local3(seed + 1000);
        quern_world3 parent, child;
        quern_world3_place(NULL, &outer, &parent);
        quern_world3_place(&parent, &inner, &child);
        const vector of_inner = apply(&inner, (vector){{1, -2, 3}});
        assert_point(&parent, point, apply(&outer, (vector){{1, -2, 3}}), 1e-4);
        assert_point(&child, point, apply(&outer, of_inner), 1e-3);
    }
}

Test(transform_math, quarter_turn_rotates_x_to_y)
{
    quern_local3 local = quern_local3_identity();
    local.rotation[2] = local.rotation[3] = (float)sqrt(0.5);
    quern_world3 world;
    quern_world3_place(NULL, &local, &world);
    assert_point(&world, (float[3]){1, 0, 0}, (vector){{0, 1, 0}}, 1e-6);
    assert_point(&world, (float[3]){0, 0, 1}, (vector){{0, 0, 1}}, 1e-6);

    quern_local2 flat = quern_local2_identity();
    flat.angle = (float)acos(0);
    quern_world2 plane;
    float out[2];
    quern_world2_place(NULL, &flat, &plane);
    quern_world2_point(&plane, (float[2]){1, 0}, out);
    cr_assert_float_eq(out[0], 0, 1e-6);
    cr_assert_float_eq(out[1], 1, 1e-6);
}

Test(transform_math, placing_multiplies)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const quern_local3 outer = transform_some_local3(seed), inner = transform_some_local3(seed + 1000);
        quern_world3 a, b, placed, product;
        quern_world3_place(NULL, &outer, &a);
        quern_world3_place(NULL, &inner, &b);
        quern_world3_place(&a, &inner, &placed);
        quern_world3_multiply(&a, &b, &product);
        cr_assert_arr_eq(&placed, &product, sizeof placed);
        quern_world3_multiply(&a, &b, &b); /* the output is one of the inputs */
        cr_assert_arr_eq(&b, &product, sizeof b);
    }
}

Test(transform_math, inverse_undoes_the_world)
{
    quern_world3 identity;
    const quern_local3 still = quern_local3_identity();
    quern_world3_place(NULL, &still, &identity);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const quern_local3 local = transform_some_local3(seed);
        quern_world3 world, back, product;
        quern_world3_place(NULL, &local, &world);
        cr_assert(quern_world3_invert(&world, &back));
        quern_world3_multiply(&back, &world, &product);
        assert_near3(&product, &identity, 1e-4);
        const quern_world2 plane = {{{world.m[0][0], world.m[0][1], world.m[0][3]},
                                     {world.m[1][0] + 3, world.m[1][1] - 3, world.m[1][3]}}};
        quern_world2 plane_back, plane_product;
        if (!quern_world2_invert(&plane, &plane_back)) continue;
        quern_world2_multiply(&plane_back, &plane, &plane_product);
        assert_near2(&plane_product, &(quern_world2){{{1, 0, 0}, {0, 1, 0}}}, 1e-3);
    }
}

Test(transform_math, flat_and_infinite_worlds_have_no_inverse)
{
    quern_local3 local = transform_some_local3(1);
    quern_world3 world, out;
    memset(&out, 7, sizeof out);
    const quern_world3 before = out;
    local.scale[1] = 0;
    quern_world3_place(NULL, &local, &world);
    cr_assert_not(quern_world3_invert(&world, &out));
    local.scale[1] = INFINITY;
    quern_world3_place(NULL, &local, &world);
    cr_assert_not(quern_world3_invert(&world, &out));
    local.scale[1] = NAN;
    quern_world3_place(NULL, &local, &world);
    cr_assert_not(quern_world3_invert(&world, &out));
    cr_assert_arr_eq(&out, &before, sizeof out);
}

/* Below a flat ancestor, rotations put rounding errors in the place of the lost direction. */
Test(transform_math, flat_ancestors_make_descendants_flat)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        quern_local3 local = transform_some_local3(seed), found;
        quern_local2 planar = {.angle = (float)seed, .scale = {1, 2}}, found2;
        local.scale[seed % 3] = planar.scale[seed % 2] = 0;
        quern_world3 world, out, unit;
        quern_world2 world2, out2, unit2;
        quern_world3_place(NULL, &local, &world);
        quern_world2_place(NULL, &planar, &world2);
        quern_world3_place(NULL, &(quern_local3){.rotation = {0, 0, 0, 1}, .scale = {1, 1, 1}}, &unit);
        quern_world2_place(NULL, &(quern_local2){.scale = {1, 1}}, &unit2);
        for (uint64_t depth = 1; depth < 20; depth++) {
            local = transform_some_local3(seed * 100 + depth);
            planar = (quern_local2){.angle = (float)(seed + depth), .scale = {1.5f, 0.5f}};
            quern_world3_place(&world, &local, &world);
            quern_world2_place(&world2, &planar, &world2);
            cr_assert_not(quern_world3_invert(&world, &out), "seed %u", (unsigned)seed);
            cr_assert_not(quern_world3_split(&world, &unit, &found));
            cr_assert_not(quern_world2_invert(&world2, &out2));
            cr_assert_not(quern_world2_split(&world2, &unit2, &found2));
        }
    }
}

/* Small worlds are not flat, whatever their size; thin ones, and shears of some thousandths, are not flat either. */
Test(transform_math, thin_and_small_worlds_have_an_inverse)
{
    for (int scale_digits = -12; scale_digits <= 12; scale_digits += 2)
        for (int thin_digits = -4; thin_digits <= 0; thin_digits++) {
            const float scale = powf(10, (float)scale_digits), thin = powf(10, (float)thin_digits);
            const quern_local3 local = {.rotation = {0, 0, 0.6f, 0.8f},
                                        .scale = {scale, scale * thin, scale * thin}};
            const quern_local2 planar = {.angle = 1, .scale = {scale * thin, scale}};
            quern_world3 world, back;
            quern_world2 world2, back2;
            quern_world3_place(NULL, &local, &world);
            quern_world2_place(NULL, &planar, &world2);
            cr_assert(quern_world3_invert(&world, &back), "scale %g", (double)scale);
            cr_assert(quern_world2_invert(&world2, &back2), "scale %g", (double)scale);
        }
    const quern_local3 squashed = {.rotation = {0, 0, 0, 1}, .scale = {1, 1, 0.001f}};
    const quern_local3 turned = {.rotation = {0.6f, 0, 0, 0.8f}, .scale = {1, 1, 1}};
    quern_world3 world, back, product;
    quern_world3_place(NULL, &squashed, &world);
    quern_world3_place(&world, &turned, &world);
    cr_assert(quern_world3_invert(&world, &back));
    quern_world3_multiply(&back, &world, &product);
    assert_near3(&product, &(quern_world3){{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}}, 1e-3);
}

Test(transform_math, split_finds_the_local_under_a_parent)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        quern_local3 outer = transform_some_local3(seed), inner = transform_some_local3(seed + 1000);
        if (seed % 3 == 0) inner.scale[seed / 3 % 3] *= -1; /* mirrored */
        quern_world3 parent, world, again;
        quern_local3 found;
        quern_world3_place(NULL, &outer, &parent);
        quern_world3_place(&parent, &inner, &world);
        cr_assert(quern_world3_split(&parent, &world, &found));
        quern_world3_place(&parent, &found, &again);
        assert_near3(&again, &world, 1e-5);
        double length = 0;
        for (int i = 0; i < 4; i++)
            length += (double)found.rotation[i] * found.rotation[i];
        cr_assert_float_eq(length, 1, 1e-6);
    }
}

/* All four branches of the conversion to a quaternion: half turns about x, y and z, and no rotation. */
Test(transform_math, split_finds_half_turns)
{
    for (int axis = 0; axis < 4; axis++) {
        quern_local3 local = {.translation = {1, 2, 3}, .scale = {2, 3, 4}}, found;
        local.rotation[axis] = 1;
        quern_world3 world;
        quern_world3_place(NULL, &local, &world);
        cr_assert(quern_world3_split(NULL, &world, &found));
        cr_assert_float_eq(fabsf(found.rotation[axis]), 1, 1e-6);
        cr_assert_arr_eq(found.translation, local.translation, sizeof local.translation);
        cr_assert_arr_eq(found.scale, local.scale, sizeof local.scale);
    }
}

/* A world that is flat along some axes keeps the others; of a point only the position remains. */
Test(transform_math, split_keeps_what_a_flat_world_has)
{
    for (int flat = 1; flat < 8; flat++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            quern_local3 local = transform_some_local3(seed), found;
            for (int i = 0; i < 3; i++)
                if (flat >> i & 1) local.scale[i] = 0;
            quern_world3 world, again;
            quern_world3_place(NULL, &local, &world);
            cr_assert(quern_world3_split(NULL, &world, &found));
            quern_world3_place(NULL, &found, &again);
            assert_near3(&again, &world, 1e-5);
        }
}

Test(transform_math, split_refuses_flat_parents_and_infinite_numbers)
{
    quern_local3 local = transform_some_local3(1), found = transform_some_local3(2);
    const quern_local3 before = found;
    quern_world3 parent, world;
    quern_world3_place(NULL, &local, &world);
    local.scale[0] = 0;
    quern_world3_place(NULL, &local, &parent);
    cr_assert_not(quern_world3_split(&parent, &world, &found));
    world.m[1][3] = NAN;
    cr_assert_not(quern_world3_split(NULL, &world, &found));
    world.m[1][3] = INFINITY;
    cr_assert_not(quern_world3_split(NULL, &world, &found));
    cr_assert_arr_eq(&found, &before, sizeof found);
}

/* A parent scaled along one axis shears a rotated child: its world contains the shear, the computed local does not. */
Test(transform_math, split_leaves_out_shear)
{
    quern_local3 stretched = quern_local3_identity(), turned = quern_local3_identity(), found;
    stretched.scale[0] = 3;
    turned.rotation[2] = sinf(0.4f);
    turned.rotation[3] = cosf(0.4f);
    quern_world3 parent, world, again;
    quern_world3_place(NULL, &stretched, &parent);
    quern_world3_place(&parent, &turned, &world);
    const float dot = world.m[0][0] * world.m[0][1] + world.m[1][0] * world.m[1][1];
    cr_assert(fabsf(dot) > 0.5f, "the axes are at right angles");
    cr_assert(quern_world3_split(NULL, &world, &found));
    quern_world3_place(NULL, &found, &again);
    for (int row = 0; row < 3; row++)
        cr_assert_float_eq(again.m[row][0], world.m[row][0], 1e-5, "the first axis has changed");
    cr_assert_float_eq(again.m[0][0] * again.m[0][1] + again.m[1][0] * again.m[1][1], 0, 1e-5);
}

Test(transform_math, planes_split)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const quern_local3 some = transform_some_local3(seed);
        const quern_local2 outer = {{some.translation[0], some.translation[1]},
                                    some.translation[2],
                                    {some.scale[0], some.scale[0]}};
        const quern_local2 inner = {{some.translation[2], 1},
                                    some.translation[0],
                                    {some.scale[1] * (seed % 2 ? 1.0f : -1.0f), some.scale[2]}};
        quern_world2 parent, world, again;
        quern_local2 found;
        quern_world2_place(NULL, &outer, &parent);
        quern_world2_place(&parent, &inner, &world);
        cr_assert(quern_world2_split(&parent, &world, &found));
        quern_world2_place(&parent, &found, &again);
        assert_near2(&again, &world, 1e-5);
    }
    const quern_local2 point = {.position = {3, 4}, .scale = {FLT_MIN, 0}};
    quern_world2 world;
    quern_local2 found;
    quern_world2_place(NULL, &point, &world);
    cr_assert_not(quern_world2_split(&world, &world, &found), "a point has no inside");
    cr_assert(quern_world2_split(NULL, &world, &found));
    cr_assert_arr_eq(found.position, point.position, sizeof point.position);
    cr_assert(found.scale[0] == FLT_MIN && found.scale[1] == 0);
}

/* Zero bytes are the place of the parent. */
Test(transform_math, zeroed_local_is_an_identity)
{
    const quern_local3 zero = {.scale = {0}}, at = quern_local3_at(1, 2, 3);
    const quern_local2 zero2 = {.scale = {0}}, at2 = quern_local2_at(1, 2);
    quern_local3 parent = transform_some_local3(5);
    const quern_local2 parent2 = {.position = {1, 2}, .angle = 1, .scale = {2, 3}};
    quern_world3 above, world;
    quern_world2 above2, world2;
    quern_world3_place(NULL, &parent, &above);
    quern_world3_place(&above, &zero, &world);
    assert_near3(&world, &above, 1e-6);
    quern_world2_place(NULL, &parent2, &above2);
    quern_world2_place(&above2, &zero2, &world2);
    assert_near2(&world2, &above2, 1e-6);
    quern_world3_place(NULL, &at, &world);
    assert_point(&world, (float[3]){7, 8, 9}, (vector){{8, 10, 12}}, 0);
    quern_world2_place(NULL, &at2, &world2);
    assert_near2(&world2, &(quern_world2){{{1, 0, 1}, {0, 1, 2}}}, 1e-9);
}

/* One axis of 0 flattens, also if it is the only one that is not. */
Test(transform_math, only_a_scale_of_zero_along_all_axes_counts_as_one)
{
    for (int axis = 0; axis < 3; axis++) {
        quern_local3 flat = {.scale = {0}};
        flat.scale[axis] = 2;
        quern_world3 world;
        quern_world3_place(NULL, &flat, &world);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(world.m[i][i], i == axis ? 2 : 0);
    }
    quern_world2 world2;
    quern_world2_place(NULL, &(quern_local2){.scale = {0, 2}}, &world2);
    cr_assert(world2.m[0][0] == 0 && world2.m[1][1] == 2);
    quern_world2_place(NULL, &(quern_local2){.scale = {2, 0}}, &world2);
    cr_assert(world2.m[0][0] == 2 && world2.m[1][1] == 0);
}

/* A rotation of zero bytes is none. */
Test(transform_math, zero_rotation_is_none)
{
    const quern_local3 unrotated = {.scale = {1, 1, 1}}, identity = quern_local3_identity();
    quern_world3 a, b;
    quern_world3_place(NULL, &unrotated, &a);
    quern_world3_place(NULL, &identity, &b);
    cr_assert_arr_eq(&a, &b, sizeof a);
}
