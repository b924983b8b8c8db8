/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/type_internal.h"

#include <criterion/criterion.h>

#include <float.h>
#include <math.h>

/* Tests of loading and storing elements of fields, and of conversions between number types. */

static uint64_t of_real(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static uint64_t of_float(float real)
{
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

Test(field, storing_restores_the_loaded_bytes)
{
    const unsigned char bytes[9] = {0xFF, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    for (int type = QUERN_FIELD_BOOL; type <= QUERN_FIELD_F64; type++) {
        char copy[9] = {0};
        const char *at = (const char *)bytes + 1; /* not aligned */
        const uint32_t size = quern__field_bytes((quern_field_type)type);
        quern__field_store((quern_field_type)type, copy, quern__field_load((quern_field_type)type, at));
        cr_assert_arr_eq(copy, at, size, "type %d", type);
        cr_assert_eq(copy[size], 0, "type %d", type);
    }
}

Test(field, loading_sign_extends_signed_integers)
{
    const int8_t small = -3;
    const int32_t large = INT32_MIN;
    cr_assert_eq((int64_t)quern__field_load(QUERN_FIELD_I8, (const char *)&small), -3);
    cr_assert_eq((int64_t)quern__field_load(QUERN_FIELD_I32, (const char *)&large), INT32_MIN);
    cr_assert_eq(quern__field_load(QUERN_FIELD_U8, (const char *)&small), 253);
    cr_assert_eq(quern__field_real(QUERN_FIELD_I32, (uint64_t)(int64_t)large), (double)INT32_MIN);
    cr_assert_eq(quern__field_real(QUERN_FIELD_U64, UINT64_MAX), 0x1p64);
}

typedef struct conversion_case {
    quern_field_type from, to;
    uint64_t bits;
    bool fits;
    uint64_t expected;
} conversion_case;

Test(field, conversion_fails_only_for_numbers_out_of_range)
{
    const conversion_case cases[] = {
        {QUERN_FIELD_I64, QUERN_FIELD_I8, (uint64_t)-128, true, (uint64_t)-128},
        {QUERN_FIELD_I64, QUERN_FIELD_I8, (uint64_t)-129, false, 0},
        {QUERN_FIELD_I64, QUERN_FIELD_U64, (uint64_t)-1, false, 0},
        {QUERN_FIELD_U64, QUERN_FIELD_I64, UINT64_MAX, false, 0},
        {QUERN_FIELD_U64, QUERN_FIELD_I64, INT64_MAX, true, INT64_MAX},
        {QUERN_FIELD_U32, QUERN_FIELD_U8, 255, true, 255},
        {QUERN_FIELD_U32, QUERN_FIELD_U8, 256, false, 0},
        {QUERN_FIELD_BOOL, QUERN_FIELD_U8, 0x40, true, 1},
        {QUERN_FIELD_I16, QUERN_FIELD_BOOL, (uint64_t)-7, true, 1},
        {QUERN_FIELD_F64, QUERN_FIELD_BOOL, of_real(-0.0), true, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_BOOL, of_real(0.25), true, 1},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(-0.9), true, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(-1), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(255.9), true, 255},
        {QUERN_FIELD_F64, QUERN_FIELD_I64, of_real(-0x1p63), true, (uint64_t)INT64_MIN},
        {QUERN_FIELD_F64, QUERN_FIELD_I64, of_real(0x1p63), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U64, of_real(0x1p63), true, UINT64_C(1) << 63},
        {QUERN_FIELD_F64, QUERN_FIELD_U64, of_real(0x1p64), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_I32, of_real(-2.75), true, (uint64_t)-2},
        {QUERN_FIELD_F64, QUERN_FIELD_I32, of_real(NAN), false, 0},
        {QUERN_FIELD_F32, QUERN_FIELD_U64, of_float(INFINITY), false, 0},
        {QUERN_FIELD_F32, QUERN_FIELD_F64, of_float(0.5f), true, of_real(0.5)},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(FLT_MAX), true, of_float(FLT_MAX)},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(1e39), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(-INFINITY), true, of_float(-INFINITY)},
        {QUERN_FIELD_I64, QUERN_FIELD_F64, (uint64_t)-5, true, of_real(-5)},
        {QUERN_FIELD_I64, QUERN_FIELD_F32, (uint64_t)-5, true, of_float(-5)},
        {QUERN_FIELD_BOOL, QUERN_FIELD_F32, 0x40, true, of_float(1)},
        /* direct rounding goes up; rounding by a double first would hit the middle and go down to even */
        {QUERN_FIELD_I64, QUERN_FIELD_F32, UINT64_C(0x1000001000000001), true, of_float(0x1.000002p60f)},
        {QUERN_FIELD_U64, QUERN_FIELD_F32, UINT64_C(0x8000008000000001), true, of_float(0x1.000002p63f)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const conversion_case *it = &cases[i];
        uint64_t bits = 77;
        cr_assert_eq(quern__field_convert(it->from, it->bits, it->to, &bits), it->fits, "case %zu", i);
        if (it->fits) cr_assert_eq(bits, it->expected, "case %zu", i);
    }
}

Test(field, types_beyond_the_last_have_no_size)
{
    cr_assert_eq(quern__field_bytes(QUERN_FIELD_TEXT), 1u);
    cr_assert_eq(quern__field_bytes((quern_field_type)(QUERN_FIELD_LIST + 1)), 0u);
    cr_assert_eq(quern__field_bytes((quern_field_type)0), 0u);
}
