/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>
#include <string.h>

/* Saving and restoring a world by a history. Entities have 100 bytes in four components. Before each pass,
 * all components of every chunk, or of every tenth chunk, are written; the pass saves or restores the
 * world. raw has the same bytes in blocks of 16 KiB. It copies whole blocks that were written, to or from
 * one of HISTORY_FRAMES copies, as many as the history keeps frames. */

enum { PARTS = 4, TENTH = 10, HISTORY_FRAMES = 16, BLOCK_BYTES = 16 * 1024, ROW_BYTES = 100 };

static const uint32_t part_bytes[PARTS] = {28, 24, 24, 24};

typedef enum history_pass { SAVES, RESTORES } history_pass;

/* ----------------------------------------------------------------------------------------------- raw */

typedef struct raw_blocks {
    raw_team *team;
    char *blocks, *saved;
    uint32_t block_count, stride, frame, thread_count;
    history_pass pass;
} raw_blocks;

static void *raw_open(const bench_case *scene, uint32_t stride, history_pass pass)
{
    raw_blocks *raw = bench_allocate(1, sizeof *raw);
    const uint64_t bytes = (uint64_t)scene->entity_count * ROW_BYTES;
    raw->block_count = (uint32_t)((bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
    raw->stride = stride;
    raw->pass = pass;
    raw->thread_count = scene->thread_count;
    raw->blocks = bench_allocate(raw->block_count, BLOCK_BYTES);
    raw->saved = bench_allocate((size_t)raw->block_count * HISTORY_FRAMES, BLOCK_BYTES);
    /* Write the copies once. Unwritten memory would be one shared page of zeros, which fits into the
     * first-level cache. */
    memset(raw->saved, 1, (size_t)raw->block_count * HISTORY_FRAMES * BLOCK_BYTES);
    return raw;
}

static char *saved_block(const raw_blocks *raw, uint32_t i)
{
    return raw->saved + ((size_t)(raw->frame % HISTORY_FRAMES) * raw->block_count + i) * BLOCK_BYTES;
}

static void raw_enter(void *state)
{
    raw_blocks *raw = state;
    for (uint32_t i = 0; i < raw->block_count; i += raw->stride)
        for (uint32_t k = 0; k < BLOCK_BYTES; k += 64)
            raw->blocks[(size_t)i * BLOCK_BYTES + k]++;
    raw->team = raw_team_start(raw->thread_count);
}

static void raw_copy_part(void *state, uint32_t part, uint32_t part_count)
{
    const raw_blocks *raw = state;
    const raw_range range =
        raw_team_share((raw->block_count + raw->stride - 1) / raw->stride, part, part_count);
    for (size_t i = range.begin; i < range.begin + range.count; i++) {
        char *live = raw->blocks + i * raw->stride * BLOCK_BYTES;
        char *saved = saved_block(raw, (uint32_t)i * raw->stride);
        memcpy(raw->pass == SAVES ? saved : live, raw->pass == SAVES ? live : saved, BLOCK_BYTES);
    }
}

static void raw_run(void *state, uint32_t pass_count)
{
    raw_blocks *raw = state;
    for (uint32_t i = 0; i < pass_count; i++) {
        raw_team_run(raw->team, raw_copy_part, raw);
        if (raw->pass == SAVES) raw->frame++;
    }
}

static void raw_leave(void *state)
{
    raw_team_stop(((raw_blocks *)state)->team);
}

static void raw_close(void *state)
{
    raw_blocks *raw = state;
    free(raw->blocks);
    free(raw->saved);
    free(raw);
}

/* --------------------------------------------------------------------------------------------- quern */

typedef struct history_world {
    quern_world *world;
    quern_query *query;
    quern_history *history;
    quern_jobs *jobs;
    quern_component parts[PARTS];
    uint32_t stride;
    uint64_t frame;
    history_pass pass;
} history_world;

static void *open_quern(const bench_case *scene, uint32_t stride, history_pass pass)
{
    static const char *const names[PARTS] = {"a", "b", "c", "d"};
    history_world *quern = bench_allocate(1, sizeof *quern);
    quern->stride = stride;
    quern->pass = pass;
    REQUIRE(quern_world_create(NULL, &quern->world));
    quern_query_def def = {.whole_chunks = false};
    for (uint32_t i = 0; i < PARTS; i++) {
        const quern_component_def part = {
            .name = names[i], .size_bytes = part_bytes[i], .alignment_bytes = 4};
        REQUIRE(quern_component_register(quern->world, &part, &quern->parts[i]));
        def.terms[i] = quern_term_write(quern->parts[i]);
    }
    REQUIRE(quern_query_create(quern->world, &def, &quern->query));
    for (uint32_t i = 0; i < scene->entity_count; i++)
        REQUIRE(quern_entity_create_with(quern->world, quern->parts, NULL, PARTS, NULL));
    quern->jobs = bench_jobs_create_with(scene->thread_count, quern_bench_trace());
    const quern_history_def history = {.frame_count = HISTORY_FRAMES};
    REQUIRE(quern_history_create(quern->world, &history, &quern->history));
    REQUIRE(quern_history_save(quern->history, 0, quern->jobs));
    return quern;
}

static void write_view(const quern_view *view)
{
    for (uint32_t part = 0; part < PARTS; part++) {
        char *values = quern_view_write(view, part);
        for (uint32_t i = 0; i < view->count * part_bytes[part]; i += 64)
            values[i]++;
    }
}

static void enter_quern(void *state)
{
    const history_world *quern = state;
    uint32_t number = 0;
    quern_query_iterator it = quern_query_iterate(quern->query);
    while (quern_query_next(&it))
        if (number++ % quern->stride == 0) write_view(&it.view);
    REQUIRE(it.result);
    bench_jobs_wake(quern->jobs);
}

static void run_quern(void *state, uint32_t pass_count)
{
    history_world *quern = state;
    for (uint32_t i = 0; i < pass_count; i++)
        if (quern->pass == SAVES)
            REQUIRE(quern_history_save(quern->history, ++quern->frame, quern->jobs));
        else
            REQUIRE(quern_history_restore(quern->history, quern->frame, quern->jobs));
}

static void close_quern(void *state)
{
    history_world *quern = state;
    quern_history_destroy(quern->history);
    quern_query_destroy(quern->query);
    quern_jobs_destroy(quern->jobs);
    quern_world_destroy(quern->world);
    free(quern);
}

/* ----------------------------------------------------------------------------------------- workloads */

#define HISTORY(name, stride, pass)                    \
    static void *name##_raw(const bench_case *scene)   \
    {                                                  \
        return raw_open(scene, (stride), (pass));      \
    }                                                  \
    static void *name##_quern(const bench_case *scene) \
    {                                                  \
        return open_quern(scene, (stride), (pass));    \
    }                                                  \
    const bench_workload workload_history_##name

#define HISTORY_WORKLOAD(workload, text, open)                                                             \
    {                                                                                                      \
        .name = (workload), .summary = (text), .unit = "entity", .entity_counts = {100000}, .fresh = true, \
        .pass_count = bench_passes_fresh, .operation_count = bench_operations_per_entity,                  \
        .subjects = {                                                                                      \
            {open##_raw, raw_enter, raw_run, raw_leave, NULL, raw_close, NULL},                            \
            {open##_quern, enter_quern, run_quern, NULL, NULL, close_quern, NULL},                         \
        },                                                                                                 \
    }

HISTORY(save, TENTH, SAVES) = HISTORY_WORKLOAD("history_save",
                                               "save a world with a tenth of the chunks written", save);
HISTORY(save_all, 1, SAVES) = HISTORY_WORKLOAD("history_save_all", "save a world with all chunks written",
                                               save_all);
HISTORY(restore, TENTH, RESTORES) = HISTORY_WORKLOAD("history_restore",
                                                     "restore a world with a tenth of the chunks written",
                                                     restore);
HISTORY(restore_all, 1, RESTORES) = HISTORY_WORKLOAD("history_restore_all",
                                                     "restore a world with all chunks written",
                                                     restore_all);
