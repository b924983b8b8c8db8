/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Disabled components. toggle: disables a component in a random tenth of the entities, by handle and in a
 * random order, and enables it in the next pass; the subject `many` does it by one call. walk_enabled:
 * position += velocity * step over the entities with Position enabled, nine of ten. walk_all_enabled: the
 * same loop with Position enabled in all entities. walk_half: with Position enabled in a random half, row by row by the
 * bits of rows; the subject `ranges` iterates over ranges. The control has a bit per row next to its arrays, toggles
 * bits by row, and iterates over ranges of set bits. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <quern/bulk.h>
#include <stdlib.h>

/* One in TENTH entities is disabled, in a shuffled order. */
enum { TENTH = 10, WORD_ROWS = 64 };

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_toggles {
    raw_store store;
    uint32_t entity_count;
    uint32_t *rows;         /* rows to be toggled */
    uint64_t *enabled;      /* one bit per row: whether Position is enabled */
    bool disables;          /* whether the next pass of toggle disables */
    uint32_t toggled_count; /* how many of `rows` are toggled */
} raw_toggles;

static void toggle_all_raw(raw_toggles *raw, bool disables)
{
    for (uint32_t i = 0; i < raw->toggled_count; i++) {
        const uint64_t bit = (uint64_t)1 << raw->rows[i] % WORD_ROWS;
        uint64_t *word = &raw->enabled[raw->rows[i] / WORD_ROWS];
        *word = disables ? *word & ~bit : *word | bit;
    }
}

static void *open_raw_with(const bench_case *scene, uint32_t toggled_count)
{
    raw_toggles *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw->toggled_count = toggled_count;
    raw->disables = true;
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_moving(&raw->store, i);
    raw->rows = bench_shuffled_indices(scene->entity_count);
    raw->enabled = bench_allocate(scene->entity_count / WORD_ROWS + 1, sizeof *raw->enabled);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw->enabled[i / WORD_ROWS] |= (uint64_t)1 << i % WORD_ROWS;
    return raw;
}

static void *open_raw(const bench_case *scene)
{
    return open_raw_with(scene, scene->entity_count / TENTH);
}

static void *open_raw_disabled(const bench_case *scene)
{
    raw_toggles *raw = open_raw(scene);
    toggle_all_raw(raw, true);
    return raw;
}

static void *open_raw_half(const bench_case *scene)
{
    raw_toggles *raw = open_raw_with(scene, scene->entity_count / 2);
    toggle_all_raw(raw, true);
    return raw;
}

static void run_toggle_raw(void *state, uint32_t pass_count)
{
    raw_toggles *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, raw->disables = !raw->disables)
        toggle_all_raw(raw, raw->disables);
}

/* Returns the end of the range of enabled rows that begins at this row. */
static uint32_t end_of_range(const uint64_t *enabled, uint32_t row, uint32_t count)
{
    uint64_t clear = ~enabled[row / WORD_ROWS] >> row % WORD_ROWS;
    if (clear != 0) return row + (uint32_t)__builtin_ctzll(clear);
    for (row = (row / WORD_ROWS + 1) * WORD_ROWS; row < count; row += WORD_ROWS) {
        clear = ~enabled[row / WORD_ROWS];
        if (clear != 0) return row + (uint32_t)__builtin_ctzll(clear);
    }
    return count;
}

static uint32_t begin_of_run(const uint64_t *enabled, uint32_t row, uint32_t count)
{
    while (row < count) {
        const uint64_t set = enabled[row / WORD_ROWS] >> row % WORD_ROWS;
        if (set != 0) return row + (uint32_t)__builtin_ctzll(set);
        row = (row / WORD_ROWS + 1) * WORD_ROWS;
    }
    return count;
}

static void run_walk_raw(void *state, uint32_t pass_count)
{
    const raw_toggles *raw = state;
    const raw_table *table = &raw->store.tables[RAW_MAIN];
    Position *positions = raw_column(table, RAW_POSITION);
    const Velocity *velocities = raw_column(table, RAW_VELOCITY);
    const uint32_t count = raw->entity_count;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t row = begin_of_run(raw->enabled, 0, count); row < count;) {
            const uint32_t end = end_of_range(raw->enabled, row, count);
            kernel_move(positions + row, velocities + row, end - row);
            row = begin_of_run(raw->enabled, end, count);
        }
}

static void run_walk_half_raw(void *state, uint32_t pass_count)
{
    const raw_toggles *raw = state;
    const raw_table *table = &raw->store.tables[RAW_MAIN];
    Position *positions = raw_column(table, RAW_POSITION);
    const Velocity *velocities = raw_column(table, RAW_VELOCITY);
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t first = 0; first < raw->entity_count; first += WORD_ROWS)
            for (uint64_t bits = raw->enabled[first / WORD_ROWS]; bits != 0; bits &= bits - 1) {
                const uint32_t row = first + (uint32_t)__builtin_ctzll(bits);
                kernel_move(positions + row, velocities + row, 1);
            }
}

/* Returns a checksum of the disabled rows among those that can be toggled. */
static uint64_t checksum_toggle_raw(void *state)
{
    const raw_toggles *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->toggled_count; i++)
        if ((raw->enabled[raw->rows[i] / WORD_ROWS] >> raw->rows[i] % WORD_ROWS & 1) == 0)
            sum += raw->rows[i] + 1;
    return sum;
}

static uint64_t checksum_walk_raw(void *state)
{
    const raw_toggles *raw = state;
    return raw_checksum_moving(&raw->store.tables[RAW_MAIN]) + checksum_toggle_raw(state);
}

static void close_raw(void *state)
{
    raw_toggles *raw = state;
    raw_store_close(&raw->store);
    free(raw->rows);
    free(raw->enabled);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct toggle_scene {
    bench_world bench;
    quern_component place; /* a Position that can be disabled */
    uint32_t entity_count;
    uint32_t *rows;
    quern_entity *entities; /* entities, indexed by row */
    quern_entity *toggled;
    quern_query *query;
    bool disables;
    uint32_t toggled_count;
} toggle_scene;

static void toggle_all(const toggle_scene *scene, bool disables)
{
    for (uint32_t i = 0; i < scene->toggled_count; i++)
        REQUIRE(quern_entity_set_component_enabled(scene->bench.world, scene->toggled[i], scene->place,
                                                   !disables));
}

static void run_toggle_many(void *state, uint32_t pass_count)
{
    toggle_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, quern->disables = !quern->disables)
        REQUIRE(quern_entity_set_component_enabled_many(
            quern->bench.world, quern->toggled, quern->toggled_count, quern->place, !quern->disables));
}

static void create_all(toggle_scene *quern)
{
    const quern_component components[] = {quern->place, quern->bench.velocity};
    for (uint32_t i = 0; i < quern->entity_count; i++) {
        const Position position = start_position(i);
        const Velocity velocity = start_velocity(i);
        const void *values[] = {&position, &velocity};
        REQUIRE(quern_entity_create_with(quern->bench.world, components, values, 2, &quern->entities[i]));
    }
    for (uint32_t i = 0; i < quern->toggled_count; i++)
        quern->toggled[i] = quern->entities[quern->rows[i]];
}

static void *open_quern_with(const bench_case *scene, uint32_t toggled_count)
{
    toggle_scene *quern = bench_allocate(1, sizeof *quern);
    quern->entity_count = scene->entity_count;
    quern->toggled_count = toggled_count;
    quern->disables = true;
    bench_world_open(&quern->bench);
    quern_component_def def = {QUERN_TYPE(Position), .can_disable = true};
    def.name = "Place";
    REQUIRE(quern_component_register(quern->bench.world, &def, &quern->place));
    quern->rows = bench_shuffled_indices(scene->entity_count);
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    quern->toggled = bench_allocate(quern->toggled_count + 1, sizeof *quern->toggled);
    create_all(quern);
    const quern_query_def query = {
        .terms = {quern_term_write(quern->place), quern_term_read(quern->bench.velocity)},
        .whole_chunks = true};
    REQUIRE(quern_query_create(quern->bench.world, &query, &quern->query));
    return quern;
}

static void *open_quern(const bench_case *scene)
{
    return open_quern_with(scene, scene->entity_count / TENTH);
}

static void *open_quern_half(const bench_case *scene)
{
    toggle_scene *quern = open_quern_with(scene, scene->entity_count / 2);
    toggle_all(quern, true);
    return quern;
}

static void *open_quern_disabled(const bench_case *scene)
{
    toggle_scene *quern = open_quern(scene);
    toggle_all(quern, true);
    return quern;
}

static void run_toggle(void *state, uint32_t pass_count)
{
    toggle_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, quern->disables = !quern->disables)
        toggle_all(quern, quern->disables);
}

static void run_walk(void *state, uint32_t pass_count)
{
    const toggle_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_query_iterator it = quern_query_iterate(quern->query);
        while (quern_query_next(&it)) {
            Position *positions = quern_view_write(&it.view, 0);
            const Velocity *velocities = quern_view_read(&it.view, 1);
            quern_row_range run = {0};
            while (quern_view_next_range(&it.view, &run))
                kernel_move(positions + run.first, velocities + run.first, run.count);
        }
        REQUIRE(it.result);
    }
}

static void run_walk_half(void *state, uint32_t pass_count)
{
    const toggle_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_query_iterator it = quern_query_iterate(quern->query);
        while (quern_query_next(&it)) {
            Position *positions = quern_view_write(&it.view, 0);
            const Velocity *velocities = quern_view_read(&it.view, 1);
            QUERN_EACH_ROW(&it.view, row)
            kernel_move(positions + row, velocities + row, 1);
        }
        REQUIRE(it.result);
    }
}

static uint64_t checksum_toggle(void *state)
{
    const toggle_scene *quern = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < quern->toggled_count; i++)
        if (!quern_entity_is_component_enabled(quern->bench.world, quern->toggled[i], quern->place))
            sum += quern->rows[i] + 1;
    return sum;
}

static uint64_t checksum_walk(void *state)
{
    const toggle_scene *quern = state;
    const quern_query_def def = {.terms = {quern_term_either(quern_term_read(quern->place)),
                                           quern_term_read(quern->bench.velocity)}};
    quern_query *query;
    REQUIRE(quern_query_create(quern->bench.world, &def, &query));
    uint64_t sum = checksum_toggle(state);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_moving(quern_view_read(&it.view, 0), quern_view_read(&it.view, 1), it.view.count);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

static void close_quern(void *state)
{
    toggle_scene *quern = state;
    quern_query_destroy(quern->query);
    bench_world_close(&quern->bench);
    free(quern->rows);
    free(quern->entities);
    free(quern->toggled);
    free(quern);
}

/* --------------------------------------------------------------------------------------- workloads */

static uint64_t operations_per_toggle(uint32_t entity_count)
{
    return entity_count / TENTH;
}

const bench_workload workload_toggle = {
    .name = "toggle",
    .summary = "disable or enable a component of a random tenth of the entities",
    .unit = "toggle",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = operations_per_toggle,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_toggle_raw, NULL, checksum_toggle_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_toggle, NULL, checksum_toggle, close_quern, NULL},
            {open_quern, NULL, run_toggle_many, NULL, checksum_toggle, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "many"},
};

const bench_workload workload_walk_enabled = {
    .name = "walk_enabled",
    .summary = "position += velocity * step where Position is enabled, in nine of ten entities",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw_disabled, NULL, run_walk_raw, NULL, checksum_walk_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern_disabled, NULL, run_walk, NULL, checksum_walk, close_quern, NULL},
        },
};

const bench_workload workload_walk_all_enabled = {
    .name = "walk_all_enabled",
    .summary = "position += velocity * step where Position can be disabled, but is enabled everywhere",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_walk_raw, NULL, checksum_walk_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_walk, NULL, checksum_walk, close_quern, NULL},
        },
};

const bench_workload workload_walk_half = {
    .name = "walk_half",
    .summary = "position += velocity * step where Position is enabled, in a random half of the entities",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw_half, NULL, run_walk_half_raw, NULL, checksum_walk_raw, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_quern_half, NULL, run_walk_half, NULL, checksum_walk, close_quern, NULL},
            {open_quern_half, NULL, run_walk, NULL, checksum_walk, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "ranges"},
};
