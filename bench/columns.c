/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/columns.h"

#include "bench/data.h"
#include "bench/pieces.h"
#include "bench/team.h"
#include "bench/world.h"

#include <quern/bulk.h>

#include <stdio.h>
#include <stdlib.h>

static uint32_t column_count(const columns_layout *layout)
{
    uint32_t count = 0;
    while (count < COLUMNS_LIMIT && layout->sizes[count] > 0)
        count++;
    return count;
}

/* Returns a checksum that does not depend on the grouping of rows. */
static uint64_t checksum_words(uint32_t column, const uint32_t *words, size_t word_count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < word_count; i++)
        sum += words[i];
    return sum * (2 * column + 1);
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_columns {
    columns_layout layout;
    char *columns[COLUMNS_LIMIT];
    size_t row_count;
    const columns_system *running;
    uint32_t thread_count;
    raw_team *team;
} raw_columns;

void *columns_open_raw(const columns_layout *layout, const bench_case *scene)
{
    raw_columns *raw = bench_allocate(1, sizeof *raw);
    raw->layout = *layout;
    raw->row_count = scene->entity_count;
    raw->thread_count = scene->thread_count;
    for (uint32_t i = 0; i < layout->touched_count; i++) {
        raw->columns[i] = bench_allocate(raw->row_count, layout->sizes[i]);
        layout->start(i, raw->columns[i], 0, raw->row_count, layout->sizes[i]);
    }
    return raw;
}

void columns_enter_raw(void *state)
{
    raw_columns *raw = state;
    raw->team = raw_team_start(raw->thread_count);
}

static void run_part(void *state, uint32_t part, uint32_t part_count)
{
    const raw_columns *raw = state;
    const columns_system *system = raw->running;
    const raw_range rows = raw_team_share(raw->row_count, part, part_count);
    void *columns[COLUMNS_LIMIT];
    for (uint32_t i = 0; i < system->column_count; i++)
        columns[i] = raw->columns[system->columns[i]] + rows.begin * raw->layout.sizes[system->columns[i]];
    system->run(columns, rows.count, system->value_bytes);
}

void columns_run_raw(void *state, uint32_t pass_count)
{
    raw_columns *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < raw->layout.system_count; i++) {
            raw->running = &raw->layout.systems[i];
            raw_team_run(raw->team, run_part, raw);
        }
}

void columns_leave_raw(void *state)
{
    raw_columns *raw = state;
    raw_team_stop(raw->team);
}

uint64_t columns_checksum_raw(void *state)
{
    const raw_columns *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->layout.touched_count; i++)
        sum += checksum_words(i, (const uint32_t *)(const void *)raw->columns[i],
                              raw->row_count * raw->layout.sizes[i] / sizeof(uint32_t));
    return sum;
}

void columns_close_raw(void *state)
{
    raw_columns *raw = state;
    for (uint32_t i = 0; i < raw->layout.touched_count; i++)
        free(raw->columns[i]);
    free(raw);
}

/* ------------------------------------------------------------------------------------------ raw16k */

typedef struct columns_pieces {
    columns_layout layout;
    raw_pieces pieces;
    uint32_t thread_count;
    raw_team *team;
} columns_pieces;

void *columns_open_pieces(const columns_layout *layout, const bench_case *scene)
{
    columns_pieces *raw = bench_allocate(1, sizeof *raw);
    raw->layout = *layout;
    raw->thread_count = scene->thread_count;
    raw_pieces_open(&raw->pieces, layout->sizes, column_count(layout), scene->entity_count);
    for (uint32_t piece = 0; piece < raw->pieces.piece_count; piece++)
        for (uint32_t i = 0; i < layout->touched_count; i++)
            layout->start(i, raw_pieces_column(&raw->pieces, piece, i),
                          (size_t)piece * raw->pieces.rows_per_piece, raw_pieces_rows(&raw->pieces, piece),
                          layout->sizes[i]);
    return raw;
}

void columns_enter_pieces(void *state)
{
    columns_pieces *raw = state;
    raw->team = raw_team_start(raw->thread_count);
}

static void run_piece(const columns_pieces *raw, uint32_t piece)
{
    const size_t row_count = raw_pieces_rows(&raw->pieces, piece);
    for (uint32_t i = 0; i < raw->layout.system_count; i++) {
        const columns_system *system = &raw->layout.systems[i];
        void *columns[COLUMNS_LIMIT];
        for (uint32_t k = 0; k < system->column_count; k++)
            columns[k] = raw_pieces_column(&raw->pieces, piece, system->columns[k]);
        system->run(columns, row_count, system->value_bytes);
    }
}

static void run_pieces(void *state, uint32_t part, uint32_t part_count)
{
    const columns_pieces *raw = state;
    const raw_range share = raw_team_share(raw->pieces.piece_count, part, part_count);
    for (size_t i = 0; i < share.count; i++)
        run_piece(raw, (uint32_t)(share.begin + i));
}

void columns_run_pieces(void *state, uint32_t pass_count)
{
    const columns_pieces *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw_team_run(raw->team, run_pieces, state);
}

void columns_leave_pieces(void *state)
{
    columns_pieces *raw = state;
    raw_team_stop(raw->team);
}

uint64_t columns_checksum_pieces(void *state)
{
    const columns_pieces *raw = state;
    uint64_t sum = 0;
    for (uint32_t piece = 0; piece < raw->pieces.piece_count; piece++)
        for (uint32_t i = 0; i < raw->layout.touched_count; i++)
            sum += checksum_words(i, raw_pieces_column(&raw->pieces, piece, i),
                                  raw_pieces_rows(&raw->pieces, piece) * raw->layout.sizes[i] /
                                      sizeof(uint32_t));
    return sum;
}

void columns_close_pieces(void *state)
{
    columns_pieces *raw = state;
    raw_pieces_close(&raw->pieces);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct quern_columns {
    columns_layout layout;
    quern_world *world;
    quern_component components[COLUMNS_LIMIT];
    quern_schedule *schedule;
    quern_jobs *jobs;
} quern_columns;

static void run_system(quern_context *context, const quern_view *view)
{
    const columns_system *system = quern_context_user_data(context);
    void *columns[COLUMNS_LIMIT];
    columns[0] = quern_view_write(view, 0);
    for (uint32_t i = 1; i < system->column_count; i++)
        columns[i] = (void *)(uintptr_t)quern_view_read(view, i);
    system->run(columns, view->count, system->value_bytes);
}

static void register_columns(quern_columns *scene)
{
    for (uint32_t i = 0; i < column_count(&scene->layout); i++) {
        char name[QUERN_MAX_NAME_BYTES + 1];
        snprintf(name, sizeof name, "Column%u", i);
        const uint32_t bytes = scene->layout.sizes[i];
        const quern_component_def def = {
            .name = name, .size_bytes = bytes, .alignment_bytes = bytes % sizeof(uint32_t) == 0 ? 4 : 1};
        REQUIRE(quern_component_register(scene->world, &def, &scene->components[i]));
    }
}

/* Creates a query with one term for each touched column, in order. All terms have the same access. */
static quern_query *query_touched(const quern_columns *scene, quern_access access)
{
    quern_query_def def = {0};
    for (uint32_t i = 0; i < scene->layout.touched_count; i++)
        def.terms[i] = access == QUERN_ACCESS_WRITE ? quern_term_write(scene->components[i])
                                                    : quern_term_read(scene->components[i]);
    quern_query *query;
    REQUIRE(quern_query_create(scene->world, &def, &query));
    return query;
}

static void create_rows(quern_columns *scene, uint32_t row_count)
{
    REQUIRE(quern_entity_create_many(scene->world, scene->components, NULL, column_count(&scene->layout),
                                     row_count, NULL));
    quern_query *query = query_touched(scene, QUERN_ACCESS_WRITE);
    size_t first_row = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        for (uint32_t i = 0; i < scene->layout.touched_count; i++)
            scene->layout.start(i, quern_view_write(&it.view, i), first_row, it.view.count,
                                scene->layout.sizes[i]);
        first_row += it.view.count;
    }
    REQUIRE(it.result);
    quern_query_destroy(query);
}

static void add_systems(quern_columns *scene)
{
    for (uint32_t i = 0; i < scene->layout.system_count; i++) {
        columns_system *system = &scene->layout.systems[i];
        char name[QUERN_MAX_NAME_BYTES + 1];
        snprintf(name, sizeof name, "system%u", i);
        quern_system_def def = {.name = name, .run = run_system, .user_data = system};
        def.terms[0] = quern_term_write(scene->components[system->columns[0]]);
        for (uint32_t k = 1; k < system->column_count; k++)
            def.terms[k] = quern_term_read(scene->components[system->columns[k]]);
        REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    }
}

void *columns_open_quern(const columns_layout *layout, const bench_case *scene, columns_variant variant)
{
    quern_columns *columns = bench_allocate(1, sizeof *columns);
    columns->layout = *layout;
    REQUIRE(quern_world_create(NULL, &columns->world));
    register_columns(columns);
    create_rows(columns, scene->entity_count);
    columns->jobs = bench_jobs_create_with(scene->thread_count, quern_bench_trace());
    const quern_schedule_def def = {.disable_fusing = variant.disable_fusing,
                                    .prefetch = variant.prefetch,
                                    .trace = quern_bench_trace()};
    REQUIRE(quern_schedule_create(columns->world, &def, &columns->schedule));
    quern_bench_set_schedule(columns->schedule);
    add_systems(columns);
    return columns;
}

void columns_enter_quern(void *state)
{
    const quern_columns *columns = state;
    bench_jobs_wake(columns->jobs);
}

void columns_run_quern(void *state, uint32_t pass_count)
{
    const quern_columns *columns = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_schedule_run(columns->schedule, columns->jobs, (double)STEP_SECONDS));
}

uint64_t columns_checksum_quern(void *state)
{
    const quern_columns *columns = state;
    quern_query *query = query_touched(columns, QUERN_ACCESS_READ);
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < columns->layout.touched_count; i++)
            sum += checksum_words(i, quern_view_read(&it.view, i),
                                  (size_t)it.view.count * columns->layout.sizes[i] / sizeof(uint32_t));
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

void columns_close_quern(void *state)
{
    quern_columns *columns = state;
    quern_schedule_destroy(columns->schedule);
    quern_jobs_destroy(columns->jobs);
    quern_world_destroy(columns->world);
    free(columns);
}
