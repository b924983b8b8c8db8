/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* event: one parallel system emits an event of 16 bytes for each entity of 4 bytes, and another one sums
 * the events. event_emit and event_read are the two halves. The control has an array per thread, with
 * enough room; its threads write to these arrays, and then sum them. */

#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

typedef struct Spark {
    uint32_t source;
    float heat;
    uint64_t seed;
} Spark;

static inline Spark spark_of(uint32_t state)
{
    return (Spark){.source = state, .heat = 0.5f, .seed = state};
}

static inline uint64_t sum_sparks(const Spark *sparks, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += sparks[i].source + sparks[i].seed;
    return sum;
}

/* ------------------------------------------------------------------------------------------------- raw */

enum { MAX_THREADS = 256, LINE_BYTES = 128 };

typedef struct raw_part {
    Spark *sparks;
    size_t count;
    uint64_t sum;
    char unused[LINE_BYTES - 24]; /* keeps the parts of threads on separate cache lines */
} raw_part;

typedef struct raw_scene {
    uint32_t entity_count, thread_count;
    Brain *brains;
    raw_part *parts;
    raw_team *team;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw->thread_count = scene->thread_count < MAX_THREADS ? scene->thread_count : MAX_THREADS;
    raw->brains = bench_allocate(scene->entity_count, sizeof *raw->brains);
    raw->parts = bench_allocate(raw->thread_count, sizeof *raw->parts);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw->brains[i].state = i;
    for (uint32_t i = 0; i < raw->thread_count; i++)
        raw->parts[i].sparks = bench_allocate(
            raw_team_share(scene->entity_count, i, raw->thread_count).count, sizeof *raw->parts[i].sparks);
    return raw;
}

static void close_raw(void *state)
{
    raw_scene *raw = state;
    for (uint32_t i = 0; i < raw->thread_count; i++)
        free(raw->parts[i].sparks);
    free(raw->parts);
    free(raw->brains);
    free(raw);
}

static void emit_raw(void *argument, uint32_t part_index, uint32_t part_count)
{
    const raw_scene *raw = argument;
    raw_part *part = &raw->parts[part_index];
    const raw_range rows = raw_team_share(raw->entity_count, part_index, part_count);
    const Brain *brains = raw->brains + rows.begin;
    for (size_t i = 0; i < rows.count; i++)
        part->sparks[i] = spark_of(brains[i].state);
    part->count = rows.count;
}

static void read_raw(void *argument, uint32_t part_index, uint32_t part_count)
{
    raw_part *part = &((const raw_scene *)argument)->parts[part_index];
    part->sum = sum_sparks(part->sparks, part->count);
}

static void start_team(void *state)
{
    raw_scene *raw = state;
    if (raw->thread_count > 1) raw->team = raw_team_start(raw->thread_count);
}

static void stop_team(void *state)
{
    raw_scene *raw = state;
    if (raw->thread_count > 1) raw_team_stop(raw->team);
}

static void run_team(raw_scene *raw, raw_team_function *function)
{
    if (raw->thread_count > 1)
        raw_team_run(raw->team, function, raw);
    else
        function(raw, 0, 1);
}

static void run_raw_emit(void *state, uint32_t pass_count)
{
    run_team(state, emit_raw);
}

static void run_raw_read(void *state, uint32_t pass_count)
{
    run_team(state, read_raw);
}

static void run_raw(void *state, uint32_t pass_count)
{
    run_raw_emit(state, pass_count);
    run_raw_read(state, pass_count);
}

static void enter_raw_read(void *state)
{
    start_team(state);
    run_raw_emit(state, 1);
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    uint64_t sum = 0;
    run_raw_read(state, 1);
    for (uint32_t i = 0; i < raw->thread_count; i++)
        sum += raw->parts[i].sum;
    return sum;
}

/* ----------------------------------------------------------------------------------------------- quern */

typedef struct quern_scene {
    bench_world bench;
    quern_jobs *jobs;
    quern_schedule *emitting, *reading;
    quern_event spark;
    uint64_t sum;
} quern_scene;

static void emit_run(quern_context *context, const quern_view *view)
{
    const quern_scene *scene = quern_context_user_data(context);
    const Brain *brains = QUERN_COLUMN(view, 0, const Brain);
    quern_emitter *emitter = quern_context_emitter(context, scene->spark);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        Spark *spark = QUERN_EMIT(emitter, Spark);
        if (spark != NULL) *spark = spark_of(brains[i].state);
    }
}

static void emit_copies_run(quern_context *context, const quern_view *view)
{
    const quern_scene *scene = quern_context_user_data(context);
    const Brain *brains = QUERN_COLUMN(view, 0, const Brain);
    quern_emitter *emitter = quern_context_emitter(context, scene->spark);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Spark spark = spark_of(brains[i].state);
        quern_emit(emitter, &spark);
    }
}

static void emit_some_run(quern_context *context, const quern_view *view)
{
    const quern_scene *scene = quern_context_user_data(context);
    const Brain *brains = QUERN_COLUMN(view, 0, const Brain);
    quern_emitter *emitter = quern_context_emitter(context, scene->spark);
    const uint32_t count = view->count;
    for (uint32_t row = 0, some; row < count; row += some) {
        Spark *sparks = QUERN_EMIT_SOME(emitter, count - row, &some, Spark);
        if (sparks == NULL) break;
        for (uint32_t i = 0; i < some; i++)
            sparks[i] = spark_of(brains[row + i].state);
    }
}

static void read_run(quern_context *context, const quern_view *view)
{
    const Spark *sparks = QUERN_EVENTS(view, Spark);
    uint64_t *sum = quern_context_partial(context);
    *sum = sum_sparks(sparks, view->count);
}

static void read_end(quern_context *context)
{
    quern_scene *scene = quern_context_user_data(context);
    const uint32_t count = quern_context_partial_count(context);
    if (count > 0) scene->sum = 0;
    for (uint32_t i = 0; i < count; i++)
        scene->sum += *(const uint64_t *)quern_context_partial_at(context, i);
}

static void *open_scene(const bench_case *of, quern_view_callback *emit)
{
    quern_scene *scene = bench_allocate(1, sizeof *scene);
    bench_world_open(&scene->bench);
    REQUIRE(QUERN_EVENT_REGISTER(scene->bench.world, &scene->spark, Spark));
    for (uint32_t i = 0; i < of->entity_count; i++) {
        const Brain brain = {.state = i};
        REQUIRE(quern_entity_create_with(scene->bench.world, &scene->bench.brain,
                                         (const void *const[]){&brain}, 1, NULL));
    }
    const quern_schedule_def def = {.trace = quern_bench_trace()};
    REQUIRE(quern_schedule_create(scene->bench.world, &def, &scene->emitting));
    REQUIRE(quern_schedule_create(scene->bench.world, NULL, &scene->reading));
    const quern_system_def emitter = {.name = "emit",
                                      .run = emit,
                                      .terms = {quern_term_read(scene->bench.brain)},
                                      .emits = {scene->spark},
                                      .user_data = scene};
    const quern_system_def reader = {.name = "read",
                                     .run = read_run,
                                     .end = read_end,
                                     .items = scene->spark,
                                     .partial_bytes = sizeof(uint64_t),
                                     .user_data = scene};
    REQUIRE(quern_schedule_add_system(scene->emitting, &emitter, NULL));
    REQUIRE(quern_schedule_add_system(scene->reading, &reader, NULL));
    if (of->thread_count > 1) scene->jobs = bench_jobs_create(of->thread_count);
    return scene;
}

static void *open_quern(const bench_case *of)
{
    return open_scene(of, emit_run);
}

static void *open_copies(const bench_case *of)
{
    return open_scene(of, emit_copies_run);
}

static void *open_some(const bench_case *of)
{
    return open_scene(of, emit_some_run);
}

static void close_quern(void *state)
{
    quern_scene *scene = state;
    quern_schedule_destroy(scene->emitting);
    quern_schedule_destroy(scene->reading);
    quern_jobs_destroy(scene->jobs);
    bench_world_close(&scene->bench);
    free(scene);
}

static void run_quern_emit(void *state, uint32_t pass_count)
{
    const quern_scene *scene = state;
    REQUIRE(quern_schedule_run(scene->emitting, scene->jobs, STEP_SECONDS));
}

static void run_quern_read(void *state, uint32_t pass_count)
{
    const quern_scene *scene = state;
    REQUIRE(quern_schedule_run(scene->reading, scene->jobs, STEP_SECONDS));
}

static void run_quern(void *state, uint32_t pass_count)
{
    run_quern_emit(state, pass_count);
    run_quern_read(state, pass_count);
}

static void enter_quern(void *state)
{
    const quern_scene *scene = state;
    if (scene->jobs != NULL) bench_jobs_wake(scene->jobs);
}

static void enter_quern_read(void *state)
{
    run_quern_emit(state, 1);
    enter_quern(state);
}

static void leave_quern_emit(void *state)
{
    run_quern_read(state, 1);
}

static uint64_t checksum_quern(void *state)
{
    const quern_scene *scene = state;
    run_quern_read(state, 1);
    return scene->sum;
}

const bench_workload workload_event = {
    .name = "event",
    .summary = "one system emits an event of 16 bytes for each entity, and another one reads the events",
    .unit = "event",
    .entity_counts = {1000000},
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, start_team, run_raw, stop_team, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
            {open_copies, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
            {open_some, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "copied", "some"},
};

const bench_workload workload_event_emit = {
    .name = "event_emit",
    .summary = "the frames of the workload event that emit",
    .unit = "event",
    .entity_counts = {1000000},
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, start_team, run_raw_emit, stop_team, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern_emit, leave_quern_emit, checksum_quern,
                             close_quern, NULL},
            {open_copies, enter_quern, run_quern_emit, leave_quern_emit, checksum_quern, close_quern, NULL},
            {open_some, enter_quern, run_quern_emit, leave_quern_emit, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "copied", "some"},
};

const bench_workload workload_event_read = {
    .name = "event_read",
    .summary = "the frames of the workload event that read",
    .unit = "event",
    .entity_counts = {1000000},
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw_read, run_raw_read, stop_team, checksum_raw, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_quern, enter_quern_read, run_quern_read, NULL, checksum_quern,
                             close_quern, NULL},
        },
};
