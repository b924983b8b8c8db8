/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/wide.h"

#include "bench/pieces.h"
#include "bench/team.h"
#include "bench/world.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The columns of a range of rows. */
typedef struct wide_rows {
    const Position *positions;
    const Velocity *velocities;
    const Rotation *rotations;
    const Health *healths;
    const Damage *damages;
    const Brain *brains;
    size_t count;
} wide_rows;

static uint64_t checksum_wide(const wide_rows *rows)
{
    uint64_t sum = checksum_moving(rows->positions, rows->velocities, rows->count);
    for (size_t i = 0; i < rows->count; i++)
        sum += hash_rotation(&rows->rotations[i]) + hash_health(&rows->healths[i]) +
               hash_damage(&rows->damages[i]) + hash_brain(&rows->brains[i]);
    return sum;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_frame {
    raw_store store;
    const wide_list *list;
    const wide_system *running;
    uint32_t thread_count;
    raw_team *team;
    atomic_uint sum;
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

void *wide_open_raw(const wide_list *list, const bench_case *scene)
{
    raw_frame *frame = bench_allocate(1, sizeof *frame);
    frame->list = list;
    frame->thread_count = scene->thread_count;
    raw_store_open(&frame->store, RAW_WIDE);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_wide(&frame->store, i);
    return frame;
}

void wide_enter_raw(void *state)
{
    raw_frame *frame = state;
    frame->team = raw_team_start(frame->thread_count);
}

void wide_leave_raw(void *state)
{
    raw_frame *frame = state;
    raw_team_stop(frame->team);
}

static char *column_from(const raw_frame *frame, int component, size_t row)
{
    if (component == WIDE_NOTHING) return NULL;
    char *column = raw_column(&frame->store.tables[RAW_MAIN], component);
    return column + row * raw_component_bytes(component);
}

/* Relaxed: only the final sum is used, and it is read after all parts have ended. */
static void run_part(void *state, uint32_t part, uint32_t part_count)
{
    raw_frame *frame = state;
    const wide_system *system = frame->running;
    const raw_range rows = raw_team_share(frame->store.tables[RAW_MAIN].count, part, part_count);
    char *column = column_from(frame, system->component, rows.begin);
    if (system->kind == WIDE_WRITE)
        system->run.write(column, column_from(frame, system->read, rows.begin), rows.count);
    else
        atomic_fetch_add_explicit(&frame->sum, system->run.sum(column, rows.count), memory_order_relaxed);
}

void wide_run_raw(void *state, uint32_t pass_count)
{
    raw_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < frame->list->count; i++) {
            frame->running = &frame->list->systems[i];
            raw_team_run(frame->team, run_part, frame);
        }
}

uint64_t wide_checksum_raw(void *state)
{
    raw_frame *frame = state;
    const raw_table *table = &frame->store.tables[RAW_MAIN];
    const wide_rows rows = {
        .positions = raw_column(table, RAW_POSITION),
        .velocities = raw_column(table, RAW_VELOCITY),
        .rotations = raw_column(table, RAW_ROTATION),
        .healths = raw_column(table, RAW_HEALTH),
        .damages = raw_column(table, RAW_DAMAGE),
        .brains = raw_column(table, RAW_BRAIN),
        .count = table->count,
    };
    return checksum_wide(&rows) + atomic_load_explicit(&frame->sum, memory_order_relaxed);
}

void wide_close_raw(void *state)
{
    raw_frame *frame = state;
    raw_store_close(&frame->store);
    free(frame);
}

/* ------------------------------------------------------------------------------------------ raw16k */

typedef struct pieces_frame {
    raw_pieces pieces; /* its columns are numbered by the RAW_ constants */
    const wide_list *list;
    uint32_t thread_count;
    raw_team *team;
    atomic_uint sum;
} pieces_frame;

enum { WIDE_COLUMN_COUNT = RAW_BRAIN + 1 };

static void start_piece_row(const raw_pieces *pieces, uint32_t i)
{
    const uint32_t piece = i / pieces->rows_per_piece, row = i % pieces->rows_per_piece;
    ((Position *)raw_pieces_column(pieces, piece, RAW_POSITION))[row] = start_position(i);
    ((Velocity *)raw_pieces_column(pieces, piece, RAW_VELOCITY))[row] = start_velocity(i);
    ((Rotation *)raw_pieces_column(pieces, piece, RAW_ROTATION))[row] = start_rotation();
    ((Health *)raw_pieces_column(pieces, piece, RAW_HEALTH))[row] = start_health(i);
    ((Damage *)raw_pieces_column(pieces, piece, RAW_DAMAGE))[row] = start_damage(i);
    ((Brain *)raw_pieces_column(pieces, piece, RAW_BRAIN))[row] = start_brain(i);
}

void *wide_open_pieces(const wide_list *list, const bench_case *scene)
{
    pieces_frame *frame = bench_allocate(1, sizeof *frame);
    uint32_t sizes[WIDE_COLUMN_COUNT];
    for (int i = 0; i < WIDE_COLUMN_COUNT; i++)
        sizes[i] = (uint32_t)raw_component_bytes(i);
    frame->list = list;
    frame->thread_count = scene->thread_count;
    raw_pieces_open(&frame->pieces, sizes, WIDE_COLUMN_COUNT, scene->entity_count);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        start_piece_row(&frame->pieces, i);
    return frame;
}

void wide_enter_pieces(void *state)
{
    pieces_frame *frame = state;
    frame->team = raw_team_start(frame->thread_count);
}

void wide_leave_pieces(void *state)
{
    pieces_frame *frame = state;
    raw_team_stop(frame->team);
}

/* Returns what the systems add to the sum. */
static uint32_t run_piece(const pieces_frame *frame, uint32_t piece)
{
    const raw_pieces *pieces = &frame->pieces;
    const size_t row_count = raw_pieces_rows(pieces, piece);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < frame->list->count; i++) {
        const wide_system *system = &frame->list->systems[i];
        void *column = raw_pieces_column(pieces, piece, (uint32_t)system->component);
        if (system->kind == WIDE_SUM)
            sum += system->run.sum(column, row_count);
        else
            system->run.write(column,
                              system->read == WIDE_NOTHING
                                  ? NULL
                                  : raw_pieces_column(pieces, piece, (uint32_t)system->read),
                              row_count);
    }
    return sum;
}

/* Relaxed: as in run_part. */
static void run_pieces(void *state, uint32_t part, uint32_t part_count)
{
    pieces_frame *frame = state;
    const raw_range share = raw_team_share(frame->pieces.piece_count, part, part_count);
    uint32_t sum = 0;
    for (size_t i = 0; i < share.count; i++)
        sum += run_piece(frame, (uint32_t)(share.begin + i));
    atomic_fetch_add_explicit(&frame->sum, sum, memory_order_relaxed);
}

void wide_run_pieces(void *state, uint32_t pass_count)
{
    const pieces_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw_team_run(frame->team, run_pieces, state);
}

uint64_t wide_checksum_pieces(void *state)
{
    pieces_frame *frame = state;
    const raw_pieces *pieces = &frame->pieces;
    uint64_t sum = atomic_load_explicit(&frame->sum, memory_order_relaxed);
    for (uint32_t i = 0; i < pieces->piece_count; i++) {
        const wide_rows rows = {
            .positions = raw_pieces_column(pieces, i, RAW_POSITION),
            .velocities = raw_pieces_column(pieces, i, RAW_VELOCITY),
            .rotations = raw_pieces_column(pieces, i, RAW_ROTATION),
            .healths = raw_pieces_column(pieces, i, RAW_HEALTH),
            .damages = raw_pieces_column(pieces, i, RAW_DAMAGE),
            .brains = raw_pieces_column(pieces, i, RAW_BRAIN),
            .count = raw_pieces_rows(pieces, i),
        };
        sum += checksum_wide(&rows);
    }
    return sum;
}

void wide_close_pieces(void *state)
{
    pieces_frame *frame = state;
    raw_pieces_close(&frame->pieces);
    free(frame);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct quern_frame {
    bench_world bench;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_trace *trace;     /* trace that this subject owns; NULL: none */
    quern_history *history; /* NULL: none */
    uint64_t frame;         /* frame in the history that the next pass restores */
    const wide_list *list;
    struct frame_system *systems; /* list->count elements */
} quern_frame;

/* A system with its sum. Sums are separate, because two systems that only read may run `end` at the same
 * time. */
typedef struct frame_system {
    const wide_system *wide;
    uint32_t sum;
} frame_system;

static quern_component component_of(const bench_world *bench, int component)
{
    const quern_component components[] = {
        [RAW_POSITION] = bench->position, [RAW_VELOCITY] = bench->velocity,
        [RAW_ROTATION] = bench->rotation, [RAW_HEALTH] = bench->health,
        [RAW_DAMAGE] = bench->damage,     [RAW_BRAIN] = bench->brain,
    };
    return components[component];
}

static void run_write(quern_context *context, const quern_view *view)
{
    const frame_system *system = quern_context_user_data(context);
    const void *read = system->wide->read == WIDE_NOTHING ? NULL : quern_view_read(view, 1);
    system->wide->run.write(quern_view_write(view, 0), read, view->count);
}

static void run_sum(quern_context *context, const quern_view *view)
{
    const frame_system *system = quern_context_user_data(context);
    *(uint32_t *)quern_context_partial(context) =
        system->wide->run.sum(quern_view_read(view, 0), view->count);
}

static void end_sum(quern_context *context)
{
    frame_system *system = quern_context_user_data(context);
    const uint32_t partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        system->sum += *(const uint32_t *)quern_context_partial_at(context, i);
}

/* Returns the component that the last system before the i-th one writes, of those that this one does not write. */
static int written_before(const wide_list *list, uint32_t i)
{
    for (uint32_t k = i; k-- > 0;)
        if (list->systems[k].kind == WIDE_WRITE && list->systems[k].component != list->systems[i].component)
            return list->systems[k].component;
    return WIDE_NOTHING;
}

static void add_system(quern_frame *frame, frame_system *system, int looked_up)
{
    const wide_system *wide = system->wide;
    const quern_component component = component_of(&frame->bench, wide->component);
    quern_system_def def = {.name = wide->name, .user_data = system};
    def.terms[0] = wide->kind == WIDE_WRITE ? quern_term_write(component) : quern_term_read(component);
    def.run = wide->kind == WIDE_WRITE ? run_write : run_sum;
    if (wide->kind == WIDE_SUM) {
        def.end = end_sum;
        def.partial_bytes = sizeof(uint32_t);
    } else if (wide->read != WIDE_NOTHING) {
        def.terms[1] = quern_term_read(component_of(&frame->bench, wide->read));
    }
    if (looked_up != WIDE_NOTHING) def.lookups[0].component = component_of(&frame->bench, looked_up);
    REQUIRE(quern_schedule_add_system(frame->schedule, &def, NULL));
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

static void open_trace(quern_frame *frame, uint32_t thread_count)
{
    quern_trace_def def = {.track_count = thread_count};
    REQUIRE(quern_trace_create(&def, &frame->trace));
    quern_trace_start(frame->trace);
}

static void open_schedule(quern_frame *frame, const bench_case *scene, wide_variant variant)
{
    if (variant == WIDE_TRACED) open_trace(frame, scene->thread_count);
    quern_trace *trace = frame->trace != NULL ? frame->trace : quern_bench_trace();
    frame->jobs = bench_jobs_create_with(scene->thread_count, trace);
    quern_schedule_def def = {.disable_fusing = variant == WIDE_UNFUSED || variant == WIDE_PAIRS_UNFUSED,
                              .trace = trace};
    REQUIRE(quern_schedule_create(frame->bench.world, &def, &frame->schedule));
    quern_bench_set_schedule(frame->schedule);
    REQUIRE(quern_schedule_set_profiling(frame->schedule, variant == WIDE_PROFILED));
}

void *wide_open_quern(const wide_list *list, const bench_case *scene, wide_variant variant)
{
    quern_frame *frame = bench_allocate(1, sizeof *frame);
    bench_world_open(&frame->bench);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_wide(&frame->bench, i);
    open_schedule(frame, scene, variant);
    frame->list = list;
    frame->systems = bench_allocate(list->count, sizeof *frame->systems);
    const bool has_pairs = variant == WIDE_PAIRS || variant == WIDE_PAIRS_UNFUSED;
    for (uint32_t i = 0; i < list->count; i++) {
        frame->systems[i] = (frame_system){.wide = &list->systems[i]};
        add_system(frame, &frame->systems[i],
                   has_pairs && i % 2 == 1 ? written_before(list, i) : WIDE_NOTHING);
    }
    if (variant == WIDE_WITH_HISTORY) {
        const quern_history_def def = {.schedules = {frame->schedule}, .frame_count = 2 * WIDE_ROLLBACK};
        REQUIRE(quern_history_create(frame->bench.world, &def, &frame->history));
        REQUIRE(quern_history_save(frame->history, 0, frame->jobs));
    }
    return frame;
}

void wide_enter_quern(void *state)
{
    const quern_frame *frame = state;
    bench_jobs_wake(frame->jobs);
}

void wide_run_quern(void *state, uint32_t pass_count)
{
    const quern_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_schedule_run(frame->schedule, frame->jobs, (double)STEP_SECONDS));
}

void wide_run_eight(void *state, uint32_t pass_count)
{
    wide_run_quern(state, pass_count * WIDE_ROLLBACK);
}

void wide_run_rollback(void *state, uint32_t pass_count)
{
    quern_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        REQUIRE(quern_history_restore(frame->history, frame->frame, frame->jobs));
        wide_run_quern(frame, 1);
        REQUIRE(quern_history_save(frame->history, ++frame->frame, frame->jobs));
        wide_run_quern(frame, WIDE_ROLLBACK - 1);
    }
}

void wide_run_rollback_every(void *state, uint32_t pass_count)
{
    quern_frame *frame = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        REQUIRE(quern_history_restore(frame->history, frame->frame++, frame->jobs));
        for (uint32_t i = 0; i < WIDE_ROLLBACK; i++) {
            wide_run_quern(frame, 1);
            REQUIRE(quern_history_save(frame->history, frame->frame + i, frame->jobs));
        }
    }
}

quern_result wide_capture_quern(void *state, struct quern_frame_capture *capture)
{
    const quern_frame *frame = state;
    return quern_schedule_run_captured(frame->schedule, frame->jobs, (double)STEP_SECONDS, capture);
}

static uint64_t checksum_view(const quern_view *view)
{
    const wide_rows rows = {
        .positions = quern_view_read(view, 0),
        .velocities = quern_view_read(view, 1),
        .rotations = quern_view_read(view, 2),
        .healths = quern_view_read(view, 3),
        .damages = quern_view_read(view, 4),
        .brains = quern_view_read(view, 5),
        .count = view->count,
    };
    assert(rows.rotations != NULL && rows.healths != NULL && rows.damages != NULL && rows.brains != NULL);
    return checksum_wide(&rows);
}

uint64_t wide_checksum_quern(void *state)
{
    quern_frame *frame = state;
    bench_world *bench = &frame->bench;
    const quern_term terms[] = {quern_term_read(bench->position), quern_term_read(bench->velocity),
                                quern_term_read(bench->rotation), quern_term_read(bench->health),
                                quern_term_read(bench->damage),   quern_term_read(bench->brain)};
    quern_query *query = bench_world_query(bench, terms, 6);
    uint32_t total = 0; /* wraps around like the control's sum */
    for (uint32_t i = 0; i < frame->list->count; i++)
        total += frame->systems[i].sum;
    uint64_t sum = total;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_view(&it.view);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

void wide_close_quern(void *state)
{
    quern_frame *frame = state;
    quern_history_destroy(frame->history);
    quern_schedule_destroy(frame->schedule);
    quern_jobs_destroy(frame->jobs);
    quern_trace_destroy(frame->trace);
    bench_world_close(&frame->bench);
    free(frame->systems);
    free(frame);
}
