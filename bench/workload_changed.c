/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Changes by row. changed_rows: in each frame, one system writes the Brain of one in a hundred entities,
 * chosen at random, by lookup; another system sums the changed rows. written_rows: a system requests
 * Position for writing in all rows, and computes position += velocity * step, which updates the versions of
 * all rows. The subject `chunk` has the same system, but versions by chunk.
 *
 * The control has an array of versions next to its values. It writes a version with each value, and reads
 * all versions to find the changes. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

/* One in HUNDREDTH entities is written in a frame. */
enum { HUNDREDTH = 100 };

/* ------------------------------------------------------------------------------------- rows to write */

/* All rows in a shuffled order. Each frame writes the rows that follow those of the frame before. */
typedef struct picked_rows {
    uint32_t *rows;
    uint32_t entity_count, next;
} picked_rows;

static picked_rows pick_rows(uint32_t entity_count)
{
    return (picked_rows){.rows = bench_shuffled_indices(entity_count), .entity_count = entity_count};
}

static uint32_t next_row(picked_rows *picked)
{
    const uint32_t row = picked->rows[picked->next];
    if (++picked->next == picked->entity_count) picked->next = 0;
    return row;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_changes {
    raw_store store;
    picked_rows picked;
    Brain *brains;
    uint64_t *versions; /* versions of the values, indexed by row */
    uint64_t clock, seen, sum;
} raw_changes;

static void *open_raw(const bench_case *scene)
{
    raw_changes *raw = bench_allocate(1, sizeof *raw);
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_moving(&raw->store, i);
    raw->picked = pick_rows(scene->entity_count);
    raw->brains = bench_allocate(scene->entity_count, sizeof *raw->brains);
    raw->versions = bench_allocate(scene->entity_count, sizeof *raw->versions);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw->brains[i].state = i;
    return raw;
}

static void run_changed_raw(void *state, uint32_t frame_count)
{
    raw_changes *raw = state;
    const uint32_t count = raw->picked.entity_count;
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        raw->clock++;
        for (uint32_t i = 0; i < count / HUNDREDTH; i++) {
            const uint32_t row = next_row(&raw->picked);
            raw->brains[row].state++;
            raw->versions[row] = raw->clock;
        }
        for (uint32_t row = 0; row < count; row++)
            if (raw->versions[row] > raw->seen) raw->sum += raw->brains[row].state;
        raw->seen = raw->clock;
    }
}

static uint64_t checksum_changed_raw(void *state)
{
    return ((raw_changes *)state)->sum;
}

static void run_written_raw(void *state, uint32_t frame_count)
{
    raw_changes *raw = state;
    const raw_table *table = &raw->store.tables[RAW_MAIN];
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        raw->clock++;
        kernel_move(raw_column(table, RAW_POSITION), raw_column(table, RAW_VELOCITY), table->count);
        for (uint32_t row = 0; row < table->count; row++)
            raw->versions[row] = raw->clock;
    }
}

static uint64_t checksum_written_raw(void *state)
{
    return raw_checksum_moving(&((raw_changes *)state)->store.tables[RAW_MAIN]);
}

static void close_raw(void *state)
{
    raw_changes *raw = state;
    raw_store_close(&raw->store);
    free(raw->picked.rows);
    free(raw->brains);
    free(raw->versions);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct change_scene {
    bench_world bench;
    quern_component place, mind; /* Position and Brain, with changes by row */
    quern_schedule *schedule;
    picked_rows picked;
    quern_entity *entities; /* entities, indexed by row */
    uint64_t sum;
} change_scene;

static void register_components(change_scene *quern, bool by_row)
{
    quern_component_def place = {QUERN_TYPE(Position), .row_changes = by_row};
    quern_component_def mind = {QUERN_TYPE(Brain), .row_changes = by_row};
    place.name = "Place";
    mind.name = "Mind";
    REQUIRE(quern_component_register(quern->bench.world, &place, &quern->place));
    REQUIRE(quern_component_register(quern->bench.world, &mind, &quern->mind));
}

static void create_all(change_scene *quern, uint32_t entity_count)
{
    const quern_component components[] = {quern->place, quern->bench.velocity, quern->mind};
    for (uint32_t i = 0; i < entity_count; i++) {
        const Position position = start_position(i);
        const Velocity velocity = start_velocity(i);
        const Brain brain = {i};
        const void *values[] = {&position, &velocity, &brain};
        REQUIRE(quern_entity_create_with(quern->bench.world, components, values, 3, &quern->entities[i]));
    }
}

static change_scene *open_scene(const bench_case *scene, bool by_row)
{
    change_scene *quern = bench_allocate(1, sizeof *quern);
    bench_world_open(&quern->bench);
    register_components(quern, by_row);
    quern->picked = pick_rows(scene->entity_count);
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    create_all(quern, scene->entity_count);
    REQUIRE(quern_schedule_create(quern->bench.world, NULL, &quern->schedule));
    quern_bench_set_schedule(quern->schedule);
    return quern;
}

static void think(quern_context *context, const quern_view *view)
{
    change_scene *quern = quern_context_user_data(context);
    for (uint32_t i = 0; i < quern->picked.entity_count / HUNDREDTH; i++) {
        const quern_entity entity = quern->entities[next_row(&quern->picked)];
        Brain *brain = quern_context_lookup_write(context, entity, quern->mind);
        brain->state++;
    }
}

static void add_up(quern_context *context, const quern_view *view)
{
    change_scene *quern = quern_context_user_data(context);
    const Brain *brains = quern_view_read(view, 0);
    uint64_t sum = 0;
    QUERN_EACH_ROW(view, i) sum += brains[i].state;
    quern->sum += sum;
}

static void *open_changed(const bench_case *scene)
{
    change_scene *quern = open_scene(scene, true);
    const quern_system_def thinks = {.name = "think",
                                     .run = think,
                                     .flags = QUERN_SYSTEM_SERIAL,
                                     .write_lookups = {{.component = quern->mind}},
                                     .user_data = quern};
    const quern_system_def adds_up = {.name = "add up",
                                      .run = add_up,
                                      .flags = QUERN_SYSTEM_SERIAL | QUERN_SYSTEM_WHOLE_CHUNKS,
                                      .terms = {quern_term_changed(quern_term_read(quern->mind))},
                                      .user_data = quern};
    REQUIRE(quern_schedule_add_system(quern->schedule, &thinks, NULL));
    REQUIRE(quern_schedule_add_system(quern->schedule, &adds_up, NULL));
    REQUIRE(quern_schedule_run(quern->schedule, NULL, 0)); /* in the first frame, all rows are changed */
    quern->picked.next = 0;
    quern->sum = 0;
    for (uint32_t i = 0; i < scene->entity_count; i++)
        *(Brain *)quern_entity_get(quern->bench.world, quern->entities[i], quern->mind) = (Brain){i};
    return quern;
}

static void move(quern_context *context, const quern_view *view)
{
    kernel_move(quern_view_write(view, 0), quern_view_read(view, 1), view->count);
}

static void look(quern_context *context, const quern_view *view) {}

/* Adds a system with a change filter, so that versions are kept, and disables it, so that it costs
 * nothing. */
static void *open_written(const bench_case *scene, bool by_row)
{
    change_scene *quern = open_scene(scene, by_row);
    const quern_system_def looks = {
        .name = "look", .run = look, .terms = {quern_term_changed(quern_term_read(quern->place))}};
    quern_system handle;
    bench_add_writer(quern->schedule, "move", move, quern->place, quern->bench.velocity);
    REQUIRE(quern_schedule_add_system(quern->schedule, &looks, &handle));
    REQUIRE(quern_schedule_set_system_enabled(quern->schedule, handle, false));
    return quern;
}

static void *open_written_by_row(const bench_case *scene)
{
    return open_written(scene, true);
}

static void *open_written_by_chunk(const bench_case *scene)
{
    return open_written(scene, false);
}

static void run_frames(void *state, uint32_t frame_count)
{
    const change_scene *quern = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        REQUIRE(quern_schedule_run(quern->schedule, NULL, (double)STEP_SECONDS));
}

static uint64_t checksum_changed(void *state)
{
    return ((change_scene *)state)->sum;
}

static uint64_t checksum_written(void *state)
{
    change_scene *quern = state;
    const quern_term terms[] = {quern_term_read(quern->place), quern_term_read(quern->bench.velocity)};
    quern_query *query = bench_world_query(&quern->bench, terms, 2);
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_moving(quern_view_read(&it.view, 0), quern_view_read(&it.view, 1), it.view.count);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

static void close_quern(void *state)
{
    change_scene *quern = state;
    quern_schedule_destroy(quern->schedule);
    bench_world_close(&quern->bench);
    free(quern->picked.rows);
    free(quern->entities);
    free(quern);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_changed_rows = {
    .name = "changed_rows",
    .alias = "changed_few",
    .summary = "write a random hundredth of the entities, and find them by a change filter on rows",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_changed_raw, NULL, checksum_changed_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_changed, NULL, run_frames, NULL, checksum_changed, close_quern, NULL},
        },
};

const bench_workload workload_written_rows = {
    .name = "written_rows",
    .summary = "position += velocity * step where Position has versions by row (chunk: by chunk)",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_written_raw, NULL, checksum_written_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_written_by_row, NULL, run_frames, NULL, checksum_written, close_quern,
                             NULL},
            [BENCH_SUBJECT_COUNT] = {open_written_by_chunk, NULL, run_frames, NULL, checksum_written,
                                     close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "chunk"},
};
