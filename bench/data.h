/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_DATA_H
#define QUERN_BENCH_DATA_H

/* The components, their start values, the loops of the systems, and the checksums, shared by all subjects.
 * The loops, called kernels, work on ranges of rows, so that subjects differ only in how they find the
 * rows. With -ffp-contract=off, an update gives the same bits at any position of a row. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STEP_SECONDS 0.015625f
#define ARENA_LIMIT  500.0f /* coordinates are kept within -500 and 500 */

typedef struct Position {
    float x, y, z;
} Position;

typedef struct Velocity {
    float x, y, z;
} Velocity;

typedef struct Rotation {
    float x, y, z, w;
} Rotation;

typedef struct Health {
    int32_t points, maximum, death_count;
} Health;

typedef struct Damage {
    int32_t attack, defence;
} Damage;

typedef struct Brain {
    uint32_t state;
} Brain;

typedef struct Life {
    int32_t frames_left;
    uint32_t seed;
} Life;

/* ----------------------------------------------------------------- start values of the i-th entity */

static inline Position start_position(uint32_t i)
{
    return (Position){(float)(i % 1024u) * 0.5f, (float)(i % 777u) * 0.25f, (float)(i % 333u)};
}

static inline Velocity start_velocity(uint32_t i)
{
    return (Velocity){(float)((int32_t)(i * 7u % 64u) - 32) * 0.25f,
                      (float)((int32_t)(i * 11u % 32u) - 16) * 0.5f, (float)((int32_t)(i % 17u) - 8)};
}

static inline Rotation start_rotation(void)
{
    return (Rotation){0.0f, 0.0f, 0.0f, 1.0f};
}

static inline Health start_health(uint32_t i)
{
    return (Health){(int32_t)(100u + i % 50u), 150, 0};
}

static inline Damage start_damage(uint32_t i)
{
    return (Damage){(int32_t)(i % 13u), (int32_t)(i % 7u)};
}

static inline Brain start_brain(uint32_t i)
{
    return (Brain){i * 2654435761u};
}

enum { LIFE_FRAMES = 100 }; /* longest life; 1 % of the entities die in each frame */

static inline Life start_life(uint32_t i)
{
    return (Life){(int32_t)(1u + i % LIFE_FRAMES), i * 747796405u + 1u};
}

/* Returns the seed of the entity that replaces a dead one. */
static inline uint32_t next_seed(uint32_t seed)
{
    return seed * 1664525u + 1013904223u;
}

/* -------------------------------------------------------------------- kernels over a range of rows */

/* Kernels are always inlined, because gcc 12 otherwise inlines them too late: kernel_rotate is then 1.6
 * times slower. */
#define KERNEL static inline __attribute__((always_inline))

KERNEL void kernel_move(Position *restrict positions, const Velocity *restrict velocities, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        positions[i].x += velocities[i].x * STEP_SECONDS;
        positions[i].y += velocities[i].y * STEP_SECONDS;
        positions[i].z += velocities[i].z * STEP_SECONDS;
    }
}

KERNEL void kernel_damage(Health *restrict healths, const Damage *restrict damages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t loss = damages[i].attack - damages[i].defence;
        healths[i].points -= loss > 0 ? loss : 0;
    }
}

KERNEL void kernel_regenerate(Health *healths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t maximum = healths[i].maximum;
        const int32_t healed = healths[i].points + 2;
        const int32_t points = healed > maximum ? maximum : healed;
        const int32_t died = points <= 0;
        healths[i].death_count += died;
        healths[i].points = died ? maximum : points;
    }
}

/* Rotates q by the angular velocity v for one step, and normalises it. */
KERNEL void rotate_one(Rotation *q, const Velocity *v)
{
    const float half_step = 0.5f * STEP_SECONDS;
    const float x = q->x + half_step * (v->x * q->w + v->y * q->z - v->z * q->y);
    const float y = q->y + half_step * (v->y * q->w + v->z * q->x - v->x * q->z);
    const float z = q->z + half_step * (v->z * q->w + v->x * q->y - v->y * q->x);
    const float w = q->w + half_step * (-v->x * q->x - v->y * q->y - v->z * q->z);
    const float scale = 1.0f / sqrtf(x * x + y * y + z * z + w * w);
    q->x = x * scale;
    q->y = y * scale;
    q->z = z * scale;
    q->w = w * scale;
}

KERNEL void kernel_rotate(Rotation *restrict rotations, const Velocity *restrict velocities, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rotate_one(&rotations[i], &velocities[i]);
}

/* Computes with integers in a private state, which represents decisions. */
KERNEL void kernel_think(Brain *brains, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t state = brains[i].state * 1664525u + 1013904223u;
        state ^= state >> 13;
        state = state * 22695477u + 1u;
        brains[i].state = state ^ state >> 11;
    }
}

KERNEL float clamped(float value)
{
    const float raised = value < -ARENA_LIMIT ? -ARENA_LIMIT : value;
    return raised > ARENA_LIMIT ? ARENA_LIMIT : raised;
}

KERNEL void kernel_bound(Position *positions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        positions[i].x = clamped(positions[i].x);
        positions[i].y = clamped(positions[i].y);
        positions[i].z = clamped(positions[i].z);
    }
}

KERNEL uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

KERNEL uint32_t position_bits(const Position *position)
{
    return float_bits(position->x) + float_bits(position->y) + float_bits(position->z);
}

/* Sums bit patterns instead of values, because a sum of integers does not depend on the order. */
KERNEL uint32_t kernel_sum_bits(const Position *positions, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += position_bits(&positions[i]);
    return sum;
}

KERNEL uint32_t kernel_sum_points(const Health *healths, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (uint32_t)healths[i].points;
    return sum;
}

/* The remaining kernels are for frame20. Each does little work, and its values stay bounded over any number
 * of frames. */

KERNEL void kernel_drag(Velocity *velocities, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        velocities[i].x *= 0.999f;
        velocities[i].y *= 0.999f;
        velocities[i].z *= 0.999f;
    }
}

KERNEL void kernel_steer(Velocity *restrict velocities, const Brain *restrict brains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        velocities[i].x += (float)((int32_t)(brains[i].state >> 24) - 128) * 0.001f;
}

KERNEL void kernel_tire(Brain *restrict brains, const Health *restrict healths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        brains[i].state += (uint32_t)healths[i].points;
}

KERNEL void kernel_rage(Damage *restrict damages, const Brain *restrict brains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        damages[i].attack = (int32_t)(brains[i].state >> 28);
}

KERNEL void kernel_fall(Velocity *velocities, size_t count)
{
    for (size_t i = 0; i < count; i++)
        velocities[i].y -= 9.81f * STEP_SECONDS;
}

KERNEL void kernel_bounce(Velocity *restrict velocities, const Position *restrict positions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        velocities[i].y = positions[i].y <= -ARENA_LIMIT ? 40.0f : velocities[i].y;
}

KERNEL void kernel_tilt(Rotation *restrict rotations, const Position *restrict positions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rotations[i].x += positions[i].z * 0.00001f;
}

KERNEL void kernel_shield(Damage *restrict damages, const Health *restrict healths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        damages[i].defence = healths[i].points >> 5;
}

KERNEL void kernel_poison(Health *restrict healths, const Brain *restrict brains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        healths[i].points -= (int32_t)(brains[i].state & 1u);
}

KERNEL void kernel_wander(Position *restrict positions, const Brain *restrict brains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        positions[i].z += (float)((int32_t)(brains[i].state >> 16 & 255u) - 128) * 0.01f;
}

/* ------------------------------------------------- checksums of entities; their sum needs no order */

static inline uint64_t hash_mix(uint64_t hash)
{
    hash += 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return hash ^ hash >> 31;
}

static inline uint64_t hash_pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

static inline uint64_t hash_floats(float low, float high)
{
    return hash_pair(float_bits(low), float_bits(high));
}

static inline uint64_t hash_moving(const Position *position, const Velocity *velocity)
{
    uint64_t hash = hash_mix(hash_floats(position->x, position->y));
    hash = hash_mix(hash ^ float_bits(position->z));
    hash = hash_mix(hash ^ hash_floats(velocity->x, velocity->y));
    return hash_mix(hash ^ float_bits(velocity->z));
}

static inline uint64_t hash_rotation(const Rotation *rotation)
{
    const uint64_t hash = hash_mix(hash_floats(rotation->x, rotation->y));
    return hash_mix(hash ^ hash_floats(rotation->z, rotation->w));
}

static inline uint64_t hash_health(const Health *health)
{
    const uint64_t hash = hash_mix(hash_pair((uint32_t)health->points, (uint32_t)health->maximum));
    return hash_mix(hash ^ (uint32_t)health->death_count);
}

static inline uint64_t hash_damage(const Damage *damage)
{
    return hash_mix(hash_pair((uint32_t)damage->attack, (uint32_t)damage->defence));
}

static inline uint64_t hash_brain(const Brain *brain)
{
    return hash_mix(brain->state + 77u);
}

static inline uint64_t hash_life(const Life *life)
{
    return hash_mix(hash_pair((uint32_t)life->frames_left, life->seed));
}

static inline uint64_t checksum_moving(const Position *positions, const Velocity *velocities, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += hash_moving(&positions[i], &velocities[i]);
    return sum;
}

#endif
