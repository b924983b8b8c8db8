/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Arithmetic of locals and worlds. The sweep and the walk place entities with the same functions of this file, which
 * are not inlined. So the same input gives the same bits in both, even where the bits of a NaN depend on the order
 * of operands that a compiler chose. The file is compiled without contraction of products and sums into fused
 * operations, so that all compilers agree. */

#include "kit/transform.h"

#include "kit/angle.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__GNUC__)
#define ALONE __attribute__((noinline))
#else
#define ALONE
#endif

/* ----------------------------------------------------------------------------------- three dimensions */

quern_local3 quern_local3_identity(void)
{
    return quern_local3_at(0, 0, 0);
}

quern_local3 quern_local3_at(float x, float y, float z)
{
    return (quern_local3){.translation = {x, y, z}, .rotation = {0, 0, 0, 1}, .scale = {1, 1, 1}};
}

/* A matrix row as a vector: compilers do not vectorise these loops by themselves. */
typedef float four __attribute__((vector_size(16)));

static inline four four_at(const float *values)
{
    four loaded;
    memcpy(&loaded, values, sizeof loaded);
    return loaded;
}

static inline void put_rows(const four rows[3], quern_world3 *out)
{
    memcpy(out->m[0], &rows[0], sizeof rows[0]);
    memcpy(out->m[1], &rows[1], sizeof rows[1]);
    memcpy(out->m[2], &rows[2], sizeof rows[2]);
}

static inline void rows_of_local3(const quern_local3 *local, four rows[3])
{
    const float x = local->rotation[0], y = local->rotation[1];
    const float z = local->rotation[2], w = local->rotation[3];
    const float x2 = x + x, y2 = y + y, z2 = z + z;
    const float xx = x * x2, yy = y * y2, zz = z * z2;
    const float xy = x * y2, xz = x * z2, yz = y * z2;
    const float wx = w * x2, wy = w * y2, wz = w * z2;
    /* An all-zero scale counts as 1, so that a zeroed local is an identity. */
    const float unscaled = local->scale[0] == 0 && local->scale[1] == 0 && local->scale[2] == 0 ? 1 : 0;
    const float sx = local->scale[0] + unscaled, sy = local->scale[1] + unscaled,
                sz = local->scale[2] + unscaled;
    const float *t = local->translation;
    rows[0] = (four){(1 - (yy + zz)) * sx, (xy - wz) * sy, (xz + wy) * sz, t[0]};
    rows[1] = (four){(xy + wz) * sx, (1 - (xx + zz)) * sy, (yz - wx) * sz, t[1]};
    rows[2] = (four){(xz - wy) * sx, (yz + wx) * sy, (1 - (xx + yy)) * sz, t[2]};
}

/* Multiplies affine matrices: the implied last row of inner, 0 0 0 1, contributes nothing to the first columns. */
static inline void multiply3(const quern_world3 *outer, const four inner[3], four out[3])
{
    for (int i = 0; i < 3; i++) {
        const four of_outer = four_at(outer->m[i]);
        const four last = {0, 0, 0, of_outer[3]};
        /* The casts round: compilers for processors without float registers keep scalars in a wider format. */
        out[i] = (float)of_outer[0] * inner[0] + (float)of_outer[1] * inner[1] +
                 (float)of_outer[2] * inner[2] + last;
    }
}

ALONE void quern_world3_place(const quern_world3 *parent, const quern_local3 *local, quern_world3 *out)
{
    four own[3];
    rows_of_local3(local, own);
    if (parent == NULL) {
        put_rows(own, out);
        return;
    }
    four placed[3];
    multiply3(parent, own, placed);
    put_rows(placed, out);
}

void quern_world3_multiply(const quern_world3 *outer, const quern_world3 *inner, quern_world3 *out)
{
    const four rows[3] = {four_at(inner->m[0]), four_at(inner->m[1]), four_at(inner->m[2])};
    four product[3];
    multiply3(outer, rows, product);
    put_rows(product, out);
}

typedef struct vector {
    double x, y, z;
} vector;

static vector scaled(vector a, double factor)
{
    return (vector){a.x * factor, a.y * factor, a.z * factor};
}

static vector minus(vector a, vector b)
{
    return (vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static double dot(vector a, vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static vector cross(vector a, vector b)
{
    return (vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static vector axis_of(const quern_world3 *world, int column)
{
    return (vector){world->m[0][column], world->m[1][column], world->m[2][column]};
}

static bool all_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

/* The columns of a world in double precision. */
typedef struct columns {
    vector axes[3], origin;
} columns;

static columns columns_of(const quern_world3 *world)
{
    return (columns){{axis_of(world, 0), axis_of(world, 1), axis_of(world, 2)}, axis_of(world, 3)};
}

static vector direction_in(const columns *c, vector v)
{
    return (vector){c->axes[0].x * v.x + c->axes[1].x * v.y + c->axes[2].x * v.z,
                    c->axes[0].y * v.x + c->axes[1].y * v.y + c->axes[2].y * v.z,
                    c->axes[0].z * v.x + c->axes[1].z * v.y + c->axes[2].z * v.z};
}

static double length_of(vector a)
{
    return sqrt(dot(a, a));
}

/* Whether a world is about as thin, relative to its length, as the rounding errors of floats. Worlds are products of
 * floats: if an ancestor is flat and a node below it is rotated, the lost direction consists of rounding errors
 * alone, some units in the last place per level. spanned: volume or area of the axes; spanned_without: sum of the
 * areas or lengths of its sides, so that the quotient is the thickness; length: sum of the lengths of the axes.
 * Also true if a number is not finite. */
static bool is_flat(double spanned, double spanned_without, double length)
{
    enum { ROUNDING_UNITS = 16 };
    return !(fabs(spanned) > spanned_without * length * (ROUNDING_UNITS * (double)FLT_EPSILON));
}

/* The rows of the inverse are the cross products of the axes, divided by the volume. */
static bool invert3(const columns *c, columns *out)
{
    const vector *a = c->axes;
    const vector x = cross(a[1], a[2]), y = cross(a[2], a[0]), z = cross(a[0], a[1]);
    const double volume = dot(a[0], x);
    const double areas = length_of(x) + length_of(y) + length_of(z);
    if (is_flat(volume, areas, length_of(a[0]) + length_of(a[1]) + length_of(a[2]))) return false;
    out->axes[0] = scaled((vector){x.x, y.x, z.x}, 1 / volume);
    out->axes[1] = scaled((vector){x.y, y.y, z.y}, 1 / volume);
    out->axes[2] = scaled((vector){x.z, y.z, z.z}, 1 / volume);
    out->origin = scaled(direction_in(out, c->origin), -1);
    return true;
}

bool quern_world3_invert(const quern_world3 *world, quern_world3 *out)
{
    const columns c = columns_of(world);
    columns back;
    if (!invert3(&c, &back)) return false;
    quern_world3 inverse;
    for (int i = 0; i < 4; i++) {
        const vector column = i < 3 ? back.axes[i] : back.origin;
        inverse.m[0][i] = (float)column.x;
        inverse.m[1][i] = (float)column.y;
        inverse.m[2][i] = (float)column.z;
    }
    if (!all_finite(inverse.m[0], 12)) return false;
    *out = inverse;
    return true;
}

/* Normalises what remains of an axis. Returns false if the remainder is negligible relative to the whole axis. */
static bool direction_of(vector part, double whole_length, vector *out)
{
    const double length = length_of(part);
    if (!(length > whole_length * FLT_EPSILON)) return false;
    *out = scaled(part, 1 / length);
    return true;
}

/* Returns any direction at right angles to `direction`. */
static vector beside(vector direction)
{
    const vector helper = fabs(direction.x) < 0.75 ? (vector){1, 0, 0} : (vector){0, 1, 0};
    vector found = {0, 0, 1};
    direction_of(cross(direction, helper), 0, &found);
    return found;
}

/* Builds a right-handed orthonormal frame close to the axes (Gram-Schmidt). The first axis with a length keeps its
 * direction, and the next one stays in its plane with the first. Missing directions are chosen. The last direction
 * is the cross product of the others, so the frame has the orientation of x, y, z. */
static void frame_of(const vector axes[3], const double lengths[3], vector frame[3])
{
    bool has[3];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        vector part = axes[i];
        for (int k = 0; k < i; k++)
            if (has[k]) part = minus(part, scaled(frame[k], dot(frame[k], axes[i])));
        has[i] = direction_of(part, lengths[i], &frame[i]);
        count += has[i];
    }
    if (count == 0) {
        frame[0] = (vector){1, 0, 0};
        has[0] = true;
    }
    for (int i = 0; i < 3 && count < 2; i++) {
        if (!has[i]) continue;
        const int next = (i + 1) % 3;
        frame[next] = beside(frame[i]);
        has[next] = true;
        break;
    }
    const int last = !has[0] ? 0 : !has[1] ? 1 : 2;
    frame[last] = cross(frame[(last + 1) % 3], frame[(last + 2) % 3]);
}

/* Computes the largest component from the diagonal, and the other three from it (Shepperd 1978). */
static void quaternion_of(const vector f[3], float out[4])
{
    const double trace = f[0].x + f[1].y + f[2].z;
    double q[4];
    if (trace > 0) {
        const double s = sqrt(trace + 1) * 2;
        q[3] = s / 4;
        q[0] = (f[1].z - f[2].y) / s;
        q[1] = (f[2].x - f[0].z) / s;
        q[2] = (f[0].y - f[1].x) / s;
    } else if (f[0].x > f[1].y && f[0].x > f[2].z) {
        const double s = sqrt(1 + f[0].x - f[1].y - f[2].z) * 2;
        q[0] = s / 4;
        q[3] = (f[1].z - f[2].y) / s;
        q[1] = (f[1].x + f[0].y) / s;
        q[2] = (f[2].x + f[0].z) / s;
    } else if (f[1].y > f[2].z) {
        const double s = sqrt(1 + f[1].y - f[0].x - f[2].z) * 2;
        q[1] = s / 4;
        q[3] = (f[2].x - f[0].z) / s;
        q[0] = (f[1].x + f[0].y) / s;
        q[2] = (f[2].y + f[1].z) / s;
    } else {
        const double s = sqrt(1 + f[2].z - f[0].x - f[1].y) * 2;
        q[2] = s / 4;
        q[3] = (f[0].y - f[1].x) / s;
        q[0] = (f[2].x + f[0].z) / s;
        q[1] = (f[2].y + f[1].z) / s;
    }
    for (int i = 0; i < 4; i++)
        out[i] = (float)q[i];
}

/* Transforms columns from world space into the parent's space. Returns false if the parent is flat. */
static bool relative3(const quern_world3 *parent, columns *c)
{
    if (parent == NULL) return true;
    const columns of_parent = columns_of(parent);
    columns back;
    if (!invert3(&of_parent, &back)) return false;
    for (int i = 0; i < 3; i++)
        c->axes[i] = direction_in(&back, c->axes[i]);
    c->origin = direction_in(&back, minus(c->origin, of_parent.origin));
    return true;
}

bool quern_world3_split(const quern_world3 *parent, const quern_world3 *world, quern_local3 *out)
{
    columns c = columns_of(world);
    if (!relative3(parent, &c)) return false;
    const bool is_mirrored = dot(c.axes[0], cross(c.axes[1], c.axes[2])) < 0;
    if (is_mirrored) c.axes[0] = scaled(c.axes[0], -1);
    double lengths[3];
    for (int i = 0; i < 3; i++)
        lengths[i] = length_of(c.axes[i]);
    vector frame[3];
    frame_of(c.axes, lengths, frame);
    quern_local3 local = {.translation = {(float)c.origin.x, (float)c.origin.y, (float)c.origin.z},
                          .scale = {(float)lengths[0], (float)lengths[1], (float)lengths[2]}};
    quaternion_of(frame, local.rotation);
    if (is_mirrored) local.scale[0] = -local.scale[0];
    if (local.scale[0] == 0 && local.scale[1] == 0 && local.scale[2] == 0)
        local.scale[0] = FLT_MIN; /* not 1 */
    if (!all_finite(local.translation, 3) || !all_finite(local.rotation, 4) || !all_finite(local.scale, 3))
        return false;
    *out = local;
    return true;
}

void quern_world3_point(const quern_world3 *world, const float point[3], float out[3])
{
    const float x = point[0], y = point[1], z = point[2];
    for (int row = 0; row < 3; row++)
        out[row] = world->m[row][0] * x + world->m[row][1] * y + world->m[row][2] * z + world->m[row][3];
}

/* ------------------------------------------------------------------------------------- two dimensions */

quern_local2 quern_local2_identity(void)
{
    return quern_local2_at(0, 0);
}

quern_local2 quern_local2_at(float x, float y)
{
    return (quern_local2){.position = {x, y}, .scale = {1, 1}};
}

static inline void multiply2(const float outer[2][3], const float inner[2][3], float out[2][3])
{
    for (int row = 0; row < 2; row++) {
        const float last[3] = {0, 0, outer[row][2]};
        for (int column = 0; column < 3; column++)
            out[row][column] =
                outer[row][0] * inner[0][column] + outer[row][1] * inner[1][column] + last[column];
    }
}

ALONE void quern_world2_place(const quern_world2 *parent, const quern_local2 *local, quern_world2 *out)
{
    const float sine = quern_angle_sin(local->angle), cosine = quern_angle_cos(local->angle);
    const float unscaled = local->scale[0] == 0 && local->scale[1] == 0 ? 1 : 0; /* as in rows_of_local3 */
    const float sx = local->scale[0] + unscaled, sy = local->scale[1] + unscaled;
    const quern_world2 own = {
        {{cosine * sx, -sine * sy, local->position[0]}, {sine * sx, cosine * sy, local->position[1]}}};
    if (parent == NULL) {
        *out = own;
        return;
    }
    quern_world2 placed;
    multiply2(parent->m, own.m, placed.m);
    *out = placed;
}

void quern_world2_multiply(const quern_world2 *outer, const quern_world2 *inner, quern_world2 *out)
{
    quern_world2 product;
    multiply2(outer->m, inner->m, product.m);
    *out = product;
}

/* The matrix  a b x
 *             c d y  in double precision. */
typedef struct plane {
    double a, b, c, d, x, y;
} plane;

static plane plane_of(const quern_world2 *world)
{
    return (plane){world->m[0][0], world->m[0][1], world->m[1][0],
                   world->m[1][1], world->m[0][2], world->m[1][2]};
}

static bool invert2(const plane *p, plane *out)
{
    const double area = p->a * p->d - p->b * p->c;
    const double lengths = sqrt(p->a * p->a + p->c * p->c) + sqrt(p->b * p->b + p->d * p->d);
    if (is_flat(area, lengths, lengths)) return false;
    *out = (plane){.a = p->d / area, .b = -p->b / area, .c = -p->c / area, .d = p->a / area};
    out->x = -(out->a * p->x + out->b * p->y);
    out->y = -(out->c * p->x + out->d * p->y);
    return true;
}

bool quern_world2_invert(const quern_world2 *world, quern_world2 *out)
{
    const plane p = plane_of(world);
    plane back;
    if (!invert2(&p, &back)) return false;
    const quern_world2 inverse = {
        {{(float)back.a, (float)back.b, (float)back.x}, {(float)back.c, (float)back.d, (float)back.y}}};
    if (!all_finite(inverse.m[0], 6)) return false;
    *out = inverse;
    return true;
}

/* Transforms from world space into the parent's space. Returns false if the parent is flat. */
static bool relative2(const quern_world2 *parent, plane *p)
{
    if (parent == NULL) return true;
    const plane of_parent = plane_of(parent);
    plane back;
    if (!invert2(&of_parent, &back)) return false;
    const double x = p->x - of_parent.x, y = p->y - of_parent.y;
    *p =
        (plane){back.a * p->a + back.b * p->c, back.a * p->b + back.b * p->d, back.c * p->a + back.d * p->c,
                back.c * p->b + back.d * p->d, back.a * x + back.b * y,       back.c * x + back.d * y};
    return true;
}

bool quern_world2_split(const quern_world2 *parent, const quern_world2 *world, quern_local2 *out)
{
    plane p = plane_of(world);
    if (!relative2(parent, &p)) return false;
    const double sign = p.a * p.d < p.b * p.c ? -1 : 1; /* -1: mirrored */
    const double x_length = sqrt(p.a * p.a + p.c * p.c), y_length = sqrt(p.b * p.b + p.d * p.d);
    double angle = 0;
    if (y_length > 0) angle = quern__angle_of(-p.b, p.d);
    if (x_length > 0) angle = quern__angle_of(sign * p.c, sign * p.a);
    quern_local2 local = {.position = {(float)p.x, (float)p.y},
                          .angle = (float)angle,
                          .scale = {(float)(sign * x_length), (float)y_length}};
    if (local.scale[0] == 0 && local.scale[1] == 0)
        local.scale[0] = FLT_MIN; /* an all-zero scale would count as 1 */
    if (!all_finite(local.position, 2) || !isfinite(local.angle) || !all_finite(local.scale, 2))
        return false;
    *out = local;
    return true;
}

void quern_world2_point(const quern_world2 *world, const float point[2], float out[2])
{
    const float x = point[0], y = point[1];
    for (int row = 0; row < 2; row++)
        out[row] = world->m[row][0] * x + world->m[row][1] * y + world->m[row][2];
}
