/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* iter: the smallest useful loop, position += velocity * step over entities with Position and Velocity. */

#include "bench/pieces.h"
#include "bench/raw.h"
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_iter {
    raw_store store;
    uint32_t thread_count;
    raw_team *team;
} raw_iter;

static void *open_raw(const bench_case *scene)
{
    raw_iter *iter = bench_allocate(1, sizeof *iter);
    iter->thread_count = scene->thread_count;
    raw_store_open(&iter->store, RAW_MOVING);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_moving(&iter->store, i);
    return iter;
}

static void enter_raw(void *state)
{
    raw_iter *iter = state;
    iter->team = raw_team_start(iter->thread_count);
}

static void leave_raw(void *state)
{
    raw_iter *iter = state;
    raw_team_stop(iter->team);
}

static void raw_move(void *state, uint32_t part, uint32_t part_count)
{
    const raw_iter *iter = state;
    const raw_table *table = &iter->store.tables[RAW_MAIN];
    const raw_range rows = raw_team_share(table->count, part, part_count);
    Position *positions = raw_column(table, RAW_POSITION);
    const Velocity *velocities = raw_column(table, RAW_VELOCITY);
    kernel_move(positions + rows.begin, velocities + rows.begin, rows.count);
}

static void run_raw(void *state, uint32_t pass_count)
{
    const raw_iter *iter = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw_team_run(iter->team, raw_move, state);
}

static uint64_t checksum_raw(void *state)
{
    const raw_iter *iter = state;
    return raw_checksum_moving(&iter->store.tables[RAW_MAIN]);
}

static void close_raw(void *state)
{
    raw_iter *iter = state;
    raw_store_close(&iter->store);
    free(iter);
}

/* ------------------------------------------------------------------------------------------ raw16k */

typedef struct pieces_iter {
    raw_pieces pieces;
    uint32_t thread_count;
    raw_team *team;
} pieces_iter;

enum { POSITIONS, VELOCITIES };

static void *open_pieces(const bench_case *scene)
{
    static const uint32_t sizes[] = {sizeof(Position), sizeof(Velocity)};
    pieces_iter *iter = bench_allocate(1, sizeof *iter);
    iter->thread_count = scene->thread_count;
    raw_pieces_open(&iter->pieces, sizes, 2, scene->entity_count);
    for (uint32_t i = 0; i < scene->entity_count; i++) {
        const uint32_t piece = i / iter->pieces.rows_per_piece, row = i % iter->pieces.rows_per_piece;
        ((Position *)raw_pieces_column(&iter->pieces, piece, POSITIONS))[row] = start_position(i);
        ((Velocity *)raw_pieces_column(&iter->pieces, piece, VELOCITIES))[row] = start_velocity(i);
    }
    return iter;
}

static void enter_pieces(void *state)
{
    pieces_iter *iter = state;
    iter->team = raw_team_start(iter->thread_count);
}

static void leave_pieces(void *state)
{
    pieces_iter *iter = state;
    raw_team_stop(iter->team);
}

static void move_pieces(void *state, uint32_t part, uint32_t part_count)
{
    const pieces_iter *iter = state;
    const raw_range share = raw_team_share(iter->pieces.piece_count, part, part_count);
    for (uint32_t i = (uint32_t)share.begin; i < share.begin + share.count; i++)
        kernel_move(raw_pieces_column(&iter->pieces, i, POSITIONS),
                    raw_pieces_column(&iter->pieces, i, VELOCITIES), raw_pieces_rows(&iter->pieces, i));
}

static void run_pieces(void *state, uint32_t pass_count)
{
    const pieces_iter *iter = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw_team_run(iter->team, move_pieces, state);
}

static uint64_t checksum_pieces(void *state)
{
    const pieces_iter *iter = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < iter->pieces.piece_count; i++)
        sum += checksum_moving(raw_pieces_column(&iter->pieces, i, POSITIONS),
                               raw_pieces_column(&iter->pieces, i, VELOCITIES),
                               raw_pieces_rows(&iter->pieces, i));
    return sum;
}

static void close_pieces(void *state)
{
    pieces_iter *iter = state;
    raw_pieces_close(&iter->pieces);
    free(iter);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct iter_scene iter_scene;

/* Processes all entities once. */
typedef void iter_function(const iter_scene *iter);

struct iter_scene {
    bench_world bench;
    quern_query *query;
    quern_jobs *jobs; /* NULL on one thread */
    quern_schedule *schedule;
    iter_function *iterate;
};

static void iterate_query(const iter_scene *iter)
{
    quern_query_iterator it = quern_query_iterate(iter->query);
    while (quern_query_next(&it))
        kernel_move(quern_view_write(&it.view, 0), quern_view_read(&it.view, 1), it.view.count);
    REQUIRE(it.result);
}

static void move(quern_context *context, const quern_view *view)
{
    kernel_move(quern_view_write(view, 0), quern_view_read(view, 1), view->count);
}

static void iterate_parallel(const iter_scene *iter)
{
    REQUIRE(quern_query_parallel_for(iter->query, iter->jobs, move, NULL));
}

static void iterate_by_system(const iter_scene *iter)
{
    REQUIRE(quern_schedule_run(iter->schedule, iter->jobs, (double)STEP_SECONDS));
}

static void *open_walk(const bench_case *scene, iter_function *iterate)
{
    iter_scene *iter = bench_allocate(1, sizeof *iter);
    bench_world *bench = &iter->bench;
    iter->iterate = iterate;
    bench_world_open(bench);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        bench_world_create_moving(bench, i);
    const quern_term terms[] = {quern_term_write(bench->position), quern_term_read(bench->velocity)};
    iter->query = bench_world_query(bench, terms, 2);
    if (scene->thread_count > 1) iter->jobs = bench_jobs_create(scene->thread_count);
    REQUIRE(quern_schedule_create(bench->world, NULL, &iter->schedule));
    bench_add_move(iter->schedule, bench);
    return iter;
}

/* Uses the fastest method that the library documents: on one thread a loop over a query, on more threads a
 * schedule with one system. */
static void *open_quern(const bench_case *scene)
{
    return open_walk(scene, scene->thread_count > 1 ? iterate_by_system : iterate_query);
}

static void *open_system(const bench_case *scene)
{
    return open_walk(scene, iterate_by_system);
}

static void *open_parallel(const bench_case *scene)
{
    return open_walk(scene, iterate_parallel);
}

static void enter_quern(void *state)
{
    const iter_scene *iter = state;
    if (iter->jobs != NULL) bench_jobs_wake(iter->jobs);
}

static void run_quern(void *state, uint32_t pass_count)
{
    const iter_scene *iter = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        iter->iterate(iter);
}

static uint64_t checksum_quern(void *state)
{
    iter_scene *iter = state;
    return bench_world_checksum_moving(&iter->bench);
}

static void close_quern(void *state)
{
    iter_scene *iter = state;
    quern_schedule_destroy(iter->schedule);
    quern_jobs_destroy(iter->jobs);
    quern_query_destroy(iter->query);
    bench_world_close(&iter->bench);
    free(iter);
}

const bench_workload workload_iter = {
    .name = "iter",
    .summary = "position += velocity * step over entities with Position and Velocity",
    .unit = "entity",
    .entity_counts = {100000, 1000000, 5000000},
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity),
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
            {open_system, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
            {open_parallel, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
            {open_pieces, enter_pieces, run_pieces, leave_pieces, checksum_pieces, close_pieces, NULL},
        },
    .subject_names = {NULL, NULL, "system", "parallel", "raw16k"},
};
