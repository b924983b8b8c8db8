/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* frame7: seven systems over one wide archetype (six components), run in this order: move, damage,
 * regenerate, rotate, think, bound, sum_bits. The last one only reads, and adds up into one counter that
 * lives on from frame to frame. */

#include "bench/raw.h"
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The components of a run of rows; the checksum of both subjects. */
typedef struct wide_rows {
    const Position *positions;
    const Velocity *velocities;
    const Rotation *rotations;
    const Health *healths;
    const Brain *brains;
    size_t count;
} wide_rows;

static uint64_t checksum_wide(const wide_rows *rows)
{
    uint64_t sum = checksum_moving(rows->positions, rows->velocities, rows->count);
    for (size_t i = 0; i < rows->count; i++)
        sum += hash_rotation(&rows->rotations[i]) + hash_health(&rows->healths[i]) +
               hash_brain(&rows->brains[i]);
    return sum;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_frame {
    raw_store store;
    uint32_t thread_count;
    raw_team *team;
    atomic_uint bits_sum;
} raw_frame;

static void raw_create_wide(raw_store *store, uint32_t i)
{
    const uint32_t row = raw_create(store);
    const raw_table *table = &store->tables[RAW_MAIN];
    raw_set_moving(store, row, i);
    ((Rotation *)raw_column(table, RAW_ROTATION))[row] = start_rotation();
    ((Health *)raw_column(table, RAW_HEALTH))[row] = start_health(i);
    ((Damage *)raw_column(table, RAW_DAMAGE))[row] = start_damage(i);
    ((Brain *)raw_column(table, RAW_BRAIN))[row] = start_brain(i);
}

static void *open_raw(const bench_case *scene)
{
    raw_frame *frame = bench_allocate(1, sizeof *frame);
    frame->thread_count = scene->thread_count;
    raw_store_open(&frame->store, RAW_WIDE);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_wide(&frame->store, i);
    return frame;
}

static void enter_raw(void *state)
{
    raw_frame *frame = state;
    frame->team = raw_team_start(frame->thread_count);
}

static void leave_raw(void *state)
{
    raw_frame *frame = state;
    raw_team_stop(frame->team);
}

static raw_range rows_of(const raw_frame *frame, uint32_t part, uint32_t part_count)
{
    return raw_team_share(frame->store.tables[RAW_MAIN].count, part, part_count);
}

static Position *positions_of(const raw_frame *frame)
{
    return raw_column(&frame->store.tables[RAW_MAIN], RAW_POSITION);
}

static Velocity *velocities_of(const raw_frame *frame)
{
    return raw_column(&frame->store.tables[RAW_MAIN], RAW_VELOCITY);
}

static Health *healths_of(const raw_frame *frame)
{
    return raw_column(&frame->store.tables[RAW_MAIN], RAW_HEALTH);
}

static void raw_move(void *state, uint32_t part, uint32_t part_count)
{
    const raw_range rows = rows_of(state, part, part_count);
    kernel_move(positions_of(state) + rows.begin, velocities_of(state) + rows.begin, rows.count);
}

static void raw_damage(void *state, uint32_t part, uint32_t part_count)
{
    const raw_frame *frame = state;
    const Damage *damages = raw_column(&frame->store.tables[RAW_MAIN], RAW_DAMAGE);
    const raw_range rows = rows_of(frame, part, part_count);
    kernel_damage(healths_of(frame) + rows.begin, damages + rows.begin, rows.count);
}

static void raw_regenerate(void *state, uint32_t part, uint32_t part_count)
{
    const raw_range rows = rows_of(state, part, part_count);
    kernel_regenerate(healths_of(state) + rows.begin, rows.count);
}

static void raw_rotate(void *state, uint32_t part, uint32_t part_count)
{
    const raw_frame *frame = state;
    Rotation *rotations = raw_column(&frame->store.tables[RAW_MAIN], RAW_ROTATION);
    const raw_range rows = rows_of(frame, part, part_count);
    kernel_rotate(rotations + rows.begin, velocities_of(frame) + rows.begin, rows.count);
}

static void raw_think(void *state, uint32_t part, uint32_t part_count)
{
    const raw_frame *frame = state;
    Brain *brains = raw_column(&frame->store.tables[RAW_MAIN], RAW_BRAIN);
    const raw_range rows = rows_of(frame, part, part_count);
    kernel_think(brains + rows.begin, rows.count);
}

static void raw_bound(void *state, uint32_t part, uint32_t part_count)
{
    const raw_range rows = rows_of(state, part, part_count);
    kernel_bound(positions_of(state) + rows.begin, rows.count);
}

/* Relaxed: only the total counts, and it is read after the team has joined. */
static void raw_sum_bits(void *state, uint32_t part, uint32_t part_count)
{
    raw_frame *frame = state;
    const raw_range rows = rows_of(frame, part, part_count);
    const uint32_t sum = kernel_sum_bits(positions_of(frame) + rows.begin, rows.count);
    atomic_fetch_add_explicit(&frame->bits_sum, sum, memory_order_relaxed);
}

static void run_raw(void *state, uint32_t pass_count)
{
    static raw_team_function *const systems[] = {raw_move,  raw_damage, raw_regenerate, raw_rotate,
                                                 raw_think, raw_bound,  raw_sum_bits};
    const raw_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
            raw_team_run(frame->team, systems[i], state);
    }
}

static uint64_t checksum_raw(void *state)
{
    raw_frame *frame = state;
    const raw_table *table = &frame->store.tables[RAW_MAIN];
    const wide_rows rows = {
        .positions = raw_column(table, RAW_POSITION),
        .velocities = raw_column(table, RAW_VELOCITY),
        .rotations = raw_column(table, RAW_ROTATION),
        .healths = raw_column(table, RAW_HEALTH),
        .brains = raw_column(table, RAW_BRAIN),
        .count = table->count,
    };
    return checksum_wide(&rows) + atomic_load_explicit(&frame->bits_sum, memory_order_relaxed);
}

static void close_raw(void *state)
{
    raw_frame *frame = state;
    raw_store_close(&frame->store);
    free(frame);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct frame_scene {
    bench_world bench;
    quern_schedule *schedule;
    quern_jobs *jobs;
    uint32_t bits_sum; /* written by the end callback of sum_bits */
} frame_scene;

static void damage(quern_context *context, const quern_view *view)
{
    (void)context;
    kernel_damage(quern_view_write(view, 0), quern_view_read(view, 1), view->count);
}

static void regenerate(quern_context *context, const quern_view *view)
{
    (void)context;
    kernel_regenerate(quern_view_write(view, 0), view->count);
}

static void rotate(quern_context *context, const quern_view *view)
{
    (void)context;
    kernel_rotate(quern_view_write(view, 0), quern_view_read(view, 1), view->count);
}

static void think(quern_context *context, const quern_view *view)
{
    (void)context;
    kernel_think(quern_view_write(view, 0), view->count);
}

static void bound(quern_context *context, const quern_view *view)
{
    (void)context;
    kernel_bound(quern_view_write(view, 0), view->count);
}

static void sum_bits(quern_context *context, const quern_view *view)
{
    uint32_t *partial = quern_context_partial(context);
    *partial = kernel_sum_bits(quern_view_read(view, 0), view->count);
}

static void sum_bits_end(quern_context *context)
{
    frame_scene *frame = quern_context_user_data(context);
    const uint32_t partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        frame->bits_sum += *(const uint32_t *)quern_context_partial_at(context, i);
}

static void add_sum_bits(frame_scene *frame)
{
    const quern_term terms[] = {quern_term_read(frame->bench.position)};
    quern_system_def def = quern_system_def_default();
    def.name = "sum_bits";
    def.run = sum_bits;
    def.end = sum_bits_end;
    def.terms = terms;
    def.term_count = 1;
    def.partial_bytes = sizeof(uint32_t);
    def.user_data = frame;
    REQUIRE(quern_schedule_add_system(frame->schedule, &def, NULL));
}

static void add_systems(frame_scene *frame)
{
    const bench_world *bench = &frame->bench;
    const quern_component none = {0};
    bench_add_move(frame->schedule, bench);
    bench_add_writer(frame->schedule, "damage", damage, bench->health, bench->damage);
    bench_add_writer(frame->schedule, "regenerate", regenerate, bench->health, none);
    bench_add_writer(frame->schedule, "rotate", rotate, bench->rotation, bench->velocity);
    bench_add_writer(frame->schedule, "think", think, bench->brain, none);
    bench_add_writer(frame->schedule, "bound", bound, bench->position, none);
    add_sum_bits(frame);
}

static void create_wide(bench_world *bench, uint32_t i)
{
    const Position position = start_position(i);
    const Velocity velocity = start_velocity(i);
    const Rotation rotation = start_rotation();
    const Health health = start_health(i);
    const Damage attack = start_damage(i);
    const Brain brain = start_brain(i);
    const quern_component components[] = {bench->position, bench->velocity, bench->rotation,
                                          bench->health,   bench->damage,   bench->brain};
    const void *const values[] = {&position, &velocity, &rotation, &health, &attack, &brain};
    REQUIRE(quern_entity_create_with(bench->world, components, values, 6, NULL));
}

static void *open_quern(const bench_case *scene)
{
    frame_scene *frame = bench_allocate(1, sizeof *frame);
    bench_world_open(&frame->bench);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_wide(&frame->bench, i);
    frame->jobs = bench_jobs_create(scene->thread_count);
    REQUIRE(quern_schedule_create(frame->bench.world, NULL, &frame->schedule));
    add_systems(frame);
    return frame;
}

static void enter_quern(void *state)
{
    const frame_scene *frame = state;
    bench_jobs_wake(frame->jobs);
}

static void run_quern(void *state, uint32_t pass_count)
{
    const frame_scene *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_schedule_run(frame->schedule, frame->jobs, (double)STEP_SECONDS));
}

static uint64_t checksum_view(const quern_view *view)
{
    const wide_rows rows = {
        .positions = quern_view_read(view, 0),
        .velocities = quern_view_read(view, 1),
        .rotations = quern_view_read(view, 2),
        .healths = quern_view_read(view, 3),
        .brains = quern_view_read(view, 4),
        .count = view->count,
    };
    assert(rows.rotations != NULL && rows.healths != NULL && rows.brains != NULL);
    return checksum_wide(&rows);
}

static uint64_t checksum_quern(void *state)
{
    frame_scene *frame = state;
    bench_world *bench = &frame->bench;
    const quern_term terms[] = {quern_term_read(bench->position), quern_term_read(bench->velocity),
                                quern_term_read(bench->rotation), quern_term_read(bench->health),
                                quern_term_read(bench->brain)};
    quern_query *query = bench_world_query(bench, terms, 5);
    uint64_t sum = frame->bits_sum;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_view(&it.view);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

static void close_quern(void *state)
{
    frame_scene *frame = state;
    quern_schedule_destroy(frame->schedule);
    quern_jobs_destroy(frame->jobs);
    bench_world_close(&frame->bench);
    free(frame);
}

const bench_workload workload_frame7 = {
    .name = "frame7",
    .summary = "seven systems in a row over one archetype of six components",
    .unit = "entity",
    .entity_counts = {100000},
    .frames = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity) + sizeof(Rotation) + sizeof(Health) +
                        sizeof(Damage) + sizeof(Brain),
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern},
        },
};
