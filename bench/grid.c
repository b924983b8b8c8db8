/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_grid: frames of every shape, to find out where prefetching and fusing pay. A workload is called
 * MODE_COLUMNSxBYTES_PERCENT: number of touched columns, bytes of a value, and their percentage of a
 * row. one: one system. chain and apart: a system per column. unfused: as apart, in passes of their own.
 * docs/benchmarks/grid.md has the results. */

#include "bench/columns.h"
#include "bench/data.h"
#include "quern_bench_build.h" /* made by CMake at each build */

/* columns, bytes, percent */
#define NARROW_SHAPES(X) \
    X(1, 4, 16)          \
    X(1, 16, 50)         \
    X(1, 64, 100)
#define WIDE_SHAPES(X) \
    X(2, 8, 16)        \
    X(2, 12, 100)      \
    X(2, 32, 50)       \
    X(3, 4, 66)        \
    X(3, 16, 33)       \
    X(3, 64, 50)       \
    X(4, 8, 33)        \
    X(4, 16, 100)      \
    X(6, 12, 66)       \
    X(8, 4, 100)       \
    X(8, 16, 50)       \
    X(8, 64, 100)

/* ----------------------------------------------------------------------------------------- systems */

static size_t word_count(size_t count, uint32_t value_bytes)
{
    return count * value_bytes / sizeof(uint32_t);
}

static void step(void *const *columns, size_t count, uint32_t value_bytes)
{
    uint32_t *words = columns[0];
    for (size_t i = 0; i < word_count(count, value_bytes); i++)
        words[i] = words[i] * 5 + 1;
}

static void add(void *const *columns, size_t count, uint32_t value_bytes)
{
    uint32_t *restrict words = columns[0];
    const uint32_t *restrict others = columns[1];
    for (size_t i = 0; i < word_count(count, value_bytes); i++)
        words[i] += others[i];
}

KERNEL void fold(void *const *columns, size_t count, uint32_t column_count)
{
    uint32_t *const words = columns[0];
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = words[i];
        for (uint32_t k = 1; k < column_count; k++)
            sum += ((const uint32_t *)columns[k])[i];
        words[i] = sum;
    }
}

/* The number of columns is a constant in each, so that loops over rows become vectors. */
#define FOLD(column_count)                                                                    \
    static void fold_##column_count(void *const *columns, size_t count, uint32_t value_bytes) \
    {                                                                                         \
        void *fixed[column_count]; /* a copy that no row can alias */                         \
        for (uint32_t k = 0; k < (column_count); k++)                                         \
            fixed[k] = columns[k];                                                            \
        fold(fixed, word_count(count, value_bytes), (column_count));                          \
    }

FOLD(3)
FOLD(4)
FOLD(6)
FOLD(8)

static columns_kernel *fold_of(uint32_t column_count)
{
    static columns_kernel *const folds[] = {
        [1] = step, [2] = add, [3] = fold_3, [4] = fold_4, [6] = fold_6, [8] = fold_8};
    return folds[column_count];
}

static void start(uint32_t column, void *values, size_t first_row, size_t count, uint32_t value_bytes)
{
    uint32_t *words = values;
    const uint32_t first = (uint32_t)word_count(first_row, value_bytes);
    for (uint32_t i = 0; i < (uint32_t)word_count(count, value_bytes); i++)
        words[i] = (first + i) * 2654435761u + column;
}

/* ---------------------------------------------------------------------------------------- layouts */

typedef enum grid_mode {
    GRID_ONE,   /* one system goes over all columns */
    GRID_CHAIN, /* a system per column, which also reads the next column */
    GRID_APART  /* a system for each column, which touches nothing else */
} grid_mode;

typedef struct grid_shape {
    uint32_t columns, bytes, percent;
} grid_shape;

/* The rest of the row: as a few columns. */
static void fill_row(columns_layout *layout, const grid_shape *shape)
{
    enum { FILLER_COUNT = 3 };
    const uint32_t touched_bytes = shape->columns * shape->bytes;
    const uint32_t rest_bytes = touched_bytes * (100 - shape->percent) / shape->percent;
    const uint32_t filler_bytes =
        rest_bytes / FILLER_COUNT / (uint32_t)sizeof(uint32_t) * (uint32_t)sizeof(uint32_t);
    for (uint32_t i = 0; i < FILLER_COUNT; i++)
        layout->sizes[shape->columns + i] = filler_bytes;
}

static columns_system system_of(const grid_shape *shape, grid_mode mode, uint32_t index)
{
    columns_system system = {
        .run = step, .value_bytes = shape->bytes, .columns = {index}, .column_count = 1};
    if (mode == GRID_CHAIN) {
        system.run = add;
        system.columns[system.column_count++] = (index + 1) % shape->columns;
    }
    if (mode == GRID_ONE) {
        system.run = fold_of(shape->columns);
        while (system.column_count < shape->columns) {
            system.columns[system.column_count] = system.column_count;
            system.column_count++;
        }
    }
    return system;
}

static columns_layout layout_of(const grid_shape *shape, grid_mode mode)
{
    columns_layout layout = {.touched_count = shape->columns, .start = start};
    for (uint32_t i = 0; i < shape->columns; i++)
        layout.sizes[i] = shape->bytes;
    fill_row(&layout, shape);
    layout.system_count = mode == GRID_ONE ? 1 : shape->columns;
    for (uint32_t i = 0; i < layout.system_count; i++)
        layout.systems[i] = system_of(shape, mode, i);
    return layout;
}

/* --------------------------------------------------------------------------------------- workloads */

static void *open_raw(const grid_shape *shape, grid_mode mode, const bench_case *scene)
{
    const columns_layout layout = layout_of(shape, mode);
    return columns_open_raw(&layout, scene);
}

static void *open_quern(const grid_shape *shape, grid_mode mode, const bench_case *scene, columns_way way)
{
    const columns_layout layout = layout_of(shape, mode);
    return columns_open_quern(&layout, scene, way);
}

/* quern chooses by itself how far passes prefetch; the others have a fixed setting. */
#define OPENED_BY(name_of_case, subject, mode, ...)                                        \
    static void *name_of_case##_##subject(const bench_case *scene)                         \
    {                                                                                      \
        return open_quern(&name_of_case##_shape, mode, scene, (columns_way){__VA_ARGS__}); \
    }

#define CASE(name_of_case, mode, disable_fusing, columns, bytes, percent)                        \
    static const grid_shape name_of_case##_shape = {columns, bytes, percent};                    \
    static void *name_of_case##_raw(const bench_case *scene)                                     \
    {                                                                                            \
        return open_raw(&name_of_case##_shape, mode, scene);                                     \
    }                                                                                            \
    OPENED_BY(name_of_case, quern, mode, disable_fusing, QUERN_PREFETCH_AUTOMATIC)               \
    OPENED_BY(name_of_case, nothing, mode, disable_fusing, QUERN_PREFETCH_NOTHING)               \
    OPENED_BY(name_of_case, heads, mode, disable_fusing, QUERN_PREFETCH_HEADS)                   \
    OPENED_BY(name_of_case, chunks, mode, disable_fusing, QUERN_PREFETCH_CHUNKS)                 \
    static const bench_workload name_of_case = {                                                 \
        .name = #name_of_case,                                                                   \
        .summary = #columns " columns of " #bytes " bytes, " #percent " % of a row",             \
        .unit = "entity",                                                                        \
        .entity_counts = {50000, 250000, 1000000, 5000000},                                      \
        .frames = true,                                                                          \
        .bytes_per_entity = (columns) * (bytes),                                                 \
        .pass_count = bench_passes_of_1m,                                                        \
        .operation_count = bench_operations_per_entity,                                          \
        .subjects = {COLUMNS_RAW(name_of_case##_raw), COLUMNS_QUERN(name_of_case##_quern),       \
                     COLUMNS_QUERN(name_of_case##_nothing), COLUMNS_QUERN(name_of_case##_heads), \
                     COLUMNS_QUERN(name_of_case##_chunks)},                                      \
    };

#define ONE(columns, bytes, percent) \
    CASE(one_##columns##x##bytes##_##percent, GRID_ONE, false, columns, bytes, percent)
#define SEVERAL(columns, bytes, percent)                                                    \
    CASE(chain_##columns##x##bytes##_##percent, GRID_CHAIN, false, columns, bytes, percent) \
    CASE(apart_##columns##x##bytes##_##percent, GRID_APART, false, columns, bytes, percent) \
    CASE(unfused_##columns##x##bytes##_##percent, GRID_APART, true, columns, bytes, percent)

NARROW_SHAPES(ONE)
WIDE_SHAPES(ONE)
WIDE_SHAPES(SEVERAL)

#define ADDRESS_OF_ONE(columns, bytes, percent) &one_##columns##x##bytes##_##percent,
#define ADDRESSES_OF_SEVERAL(columns, bytes, percent)                               \
    &chain_##columns##x##bytes##_##percent, &apart_##columns##x##bytes##_##percent, \
        &unfused_##columns##x##bytes##_##percent,

static const bench_workload *const workloads[] = {NARROW_SHAPES(ADDRESS_OF_ONE) WIDE_SHAPES(ADDRESS_OF_ONE)
                                                      WIDE_SHAPES(ADDRESSES_OF_SEVERAL)};

int main(int argc, char **argv)
{
    const quern_bench_suite suite = {
        .program = "quern_grid",
        .summary = "Measures frames of every shape, to find out where fetching ahead and fusing pay.",
        .workloads = workloads,
        .workload_count = sizeof workloads / sizeof workloads[0],
        .subject_names = {"raw", "quern", "nothing", "heads", "chunks"},
        .flags = QUERN_BENCH_FLAGS,
        .commit = QUERN_BENCH_COMMIT,
    };
    return quern_bench_main(&suite, argc, argv);
}
