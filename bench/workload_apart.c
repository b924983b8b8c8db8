/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* systems_apart: two systems without a common component, over entities of 113 bytes in seven components.
 * The systems touch 64 of these bytes: position += velocity, and an update of a mind of 48 bytes.
 *
 * iter_wide: one system over two of seven components, 24 of 72 bytes: position += velocity. */

#include "bench/columns.h"
#include "bench/data.h"
#include "bench/workloads.h"

typedef struct Place {
    float x, y;
} Place;

typedef struct Motion {
    float x, y;
} Motion;

enum { MOOD_COUNT = 10 };

typedef struct Mind {
    uint32_t seed;
    int32_t thought_count;
    float moods[MOOD_COUNT];
} Mind;

enum { PLACE, MOTION, MIND, TOUCHED_COUNT };
enum { TURN_BYTES = 16, PATH_BYTES = 20, HEALTH_BYTES = 12, LOOK_BYTES = 1 };

static void move(void *const *columns, size_t count, uint32_t value_bytes)
{
    Place *restrict places = columns[0];
    const Motion *restrict motions = columns[1];
    for (size_t i = 0; i < count; i++) {
        places[i].x += motions[i].x * STEP_SECONDS;
        places[i].y += motions[i].y * STEP_SECONDS;
    }
}

/* Moves every mood towards 1 by a hundredth of the distance. */
static void think(void *const *columns, size_t count, uint32_t value_bytes)
{
    Mind *minds = columns[0];
    for (size_t i = 0; i < count; i++) {
        minds[i].seed = next_seed(minds[i].seed);
        minds[i].thought_count++;
        for (uint32_t k = 0; k < MOOD_COUNT; k++)
            minds[i].moods[k] += (1.0f - minds[i].moods[k]) * 0.01f;
    }
}

static void start_places(Place *places, size_t first_row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Position position = start_position((uint32_t)(first_row + i));
        places[i] = (Place){position.x, position.y};
    }
}

static void start_motions(Motion *motions, size_t first_row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Velocity velocity = start_velocity((uint32_t)(first_row + i));
        motions[i] = (Motion){velocity.x, velocity.y};
    }
}

static void start_minds(Mind *minds, size_t first_row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t row = (uint32_t)(first_row + i);
        minds[i] = (Mind){.seed = next_seed(row)};
        for (uint32_t k = 0; k < MOOD_COUNT; k++)
            minds[i].moods[k] = (float)((row + k) % 100u);
    }
}

static void start(uint32_t column, void *values, size_t first_row, size_t count, uint32_t value_bytes)
{
    if (column == PLACE) start_places(values, first_row, count);
    if (column == MOTION) start_motions(values, first_row, count);
    if (column == MIND) start_minds(values, first_row, count);
}

static const columns_layout layout = {
    .sizes = {sizeof(Place), sizeof(Motion), sizeof(Mind), TURN_BYTES, PATH_BYTES, HEALTH_BYTES,
              LOOK_BYTES},
    .touched_count = TOUCHED_COUNT,
    .systems = {{move, {PLACE, MOTION}, 2, sizeof(Place)}, {think, {MIND}, 1, sizeof(Mind)}},
    .system_count = 2,
    .start = start,
};

static void *open_raw(const bench_case *scene)
{
    return columns_open_raw(&layout, scene);
}

static void *open_pieces(const bench_case *scene)
{
    return columns_open_pieces(&layout, scene);
}

static void *open_quern(const bench_case *scene)
{
    return columns_open_quern(&layout, scene, (columns_variant){0});
}

static void *open_unfused(const bench_case *scene)
{
    return columns_open_quern(&layout, scene, (columns_variant){.disable_fusing = true});
}

/* --------------------------------------------------------------------------------------- iter_wide */

enum { WIDE_POSITIONS, WIDE_VELOCITIES, WIDE_TOUCHED_COUNT };

static void move_wide(void *const *columns, size_t count, uint32_t value_bytes)
{
    kernel_move(columns[0], columns[1], count);
}

static void start_wide(uint32_t column, void *values, size_t first_row, size_t count, uint32_t value_bytes)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t row = (uint32_t)(first_row + i);
        if (column == WIDE_POSITIONS) ((Position *)values)[i] = start_position(row);
        if (column == WIDE_VELOCITIES) ((Velocity *)values)[i] = start_velocity(row);
    }
}

static const columns_layout wide_layout = {
    .sizes = {sizeof(Position), sizeof(Velocity), 16, 12, 8, 4, 8},
    .touched_count = WIDE_TOUCHED_COUNT,
    .systems = {{move_wide, {WIDE_POSITIONS, WIDE_VELOCITIES}, 2, sizeof(Position)}},
    .system_count = 1,
    .start = start_wide,
};

static void *open_wide_raw(const bench_case *scene)
{
    return columns_open_raw(&wide_layout, scene);
}

static void *open_wide_pieces(const bench_case *scene)
{
    return columns_open_pieces(&wide_layout, scene);
}

static void *open_wide_quern(const bench_case *scene)
{
    return columns_open_quern(&wide_layout, scene, (columns_variant){0});
}

const bench_workload workload_iter_wide = {
    .name = "iter_wide",
    .summary = "one system over two of seven components, 24 of 72 bytes",
    .unit = "entity",
    .entity_counts = {262144, 1000000},
    .frames = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity),
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects = {COLUMNS_RAW(open_wide_raw), COLUMNS_QUERN(open_wide_quern),
                 COLUMNS_PIECES(open_wide_pieces)},
    .subject_names = {NULL, NULL, "raw16k"},
};

const bench_workload workload_systems_apart = {
    .name = "systems_apart",
    .summary = "two systems without a common component over entities of 113 bytes",
    .unit = "entity",
    .entity_counts = {262144, 1000000},
    .frames = true,
    .bytes_per_entity = sizeof(Place) + sizeof(Motion) + sizeof(Mind),
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {COLUMNS_RAW(open_raw), COLUMNS_QUERN(open_quern), COLUMNS_QUERN(open_unfused),
                 COLUMNS_PIECES(open_pieces)},
    .subject_names = {NULL, NULL, "unfused", "raw16k"},
};
