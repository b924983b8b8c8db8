/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* spawn: frames that destroy and create entities. All entities have Position, Velocity and Life. The system
 * `move` moves all of them. The system `age` counts each Life down; when it ends, `age` destroys the entity
 * and creates a new one by commands. Each frame destroys and creates 1 % of the entities. */

#include "bench/raw.h"
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { FRAMES_PER_SAMPLE = 20 };

static uint32_t pass_count(uint32_t entity_count)
{
    return FRAMES_PER_SAMPLE;
}

static uint64_t checksum_lives(const Life *lives, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += hash_life(&lives[i]);
    return sum;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_death {
    raw_entity entity;
    uint32_t seed;
} raw_death;

/* The deaths that one thread found in its part of the rows. Aligned to a cache line, since all threads write
 * at the same time. */
typedef struct raw_deaths {
    _Alignas(64) raw_death *items;
    size_t count;
    size_t capacity;
} raw_deaths;

typedef struct raw_spawn {
    raw_store store;
    uint32_t thread_count;
    raw_team *team;
    raw_deaths *deaths; /* thread_count elements */
} raw_spawn;

static void raw_create_living(raw_store *store, uint32_t seed, Life life)
{
    const uint32_t row = raw_create(store);
    raw_set_moving(store, row, seed);
    ((Life *)raw_column(&store->tables[RAW_MAIN], RAW_LIFE))[row] = life;
}

static void *open_raw(const bench_case *scene)
{
    raw_spawn *spawn = bench_allocate(1, sizeof *spawn);
    spawn->thread_count = scene->thread_count;
    spawn->deaths = aligned_alloc(_Alignof(raw_deaths), scene->thread_count * sizeof *spawn->deaths);
    if (spawn->deaths == NULL) bench_die("out of memory");
    memset(spawn->deaths, 0, scene->thread_count * sizeof *spawn->deaths);
    raw_store_open(&spawn->store, RAW_MOVING_LIFE);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_living(&spawn->store, i, start_life(i));
    return spawn;
}

static void enter_raw(void *state)
{
    raw_spawn *spawn = state;
    spawn->team = raw_team_start(spawn->thread_count);
}

static void leave_raw(void *state)
{
    raw_spawn *spawn = state;
    raw_team_stop(spawn->team);
}

static void raw_move(void *state, uint32_t part, uint32_t part_count)
{
    const raw_spawn *spawn = state;
    const raw_table *table = &spawn->store.tables[RAW_MAIN];
    const raw_range rows = raw_team_share(table->count, part, part_count);
    Position *positions = raw_column(table, RAW_POSITION);
    const Velocity *velocities = raw_column(table, RAW_VELOCITY);
    kernel_move(positions + rows.begin, velocities + rows.begin, rows.count);
}

static void raw_record_death(raw_deaths *deaths, raw_entity entity, uint32_t seed)
{
    if (deaths->count == deaths->capacity) {
        deaths->capacity = deaths->capacity > 0 ? deaths->capacity * 2 : 1024;
        deaths->items = realloc(deaths->items, deaths->capacity * sizeof *deaths->items);
        if (deaths->items == NULL) bench_die("out of memory");
    }
    deaths->items[deaths->count++] = (raw_death){.entity = entity, .seed = seed};
}

static void raw_age(void *state, uint32_t part, uint32_t part_count)
{
    raw_spawn *spawn = state;
    const raw_table *table = &spawn->store.tables[RAW_MAIN];
    const raw_range rows = raw_team_share(table->count, part, part_count);
    raw_deaths *deaths = &spawn->deaths[part];
    Life *lives = raw_column(table, RAW_LIFE);
    deaths->count = 0;
    for (size_t i = rows.begin; i < rows.begin + rows.count; i++) {
        if (--lives[i].frames_left == 0) raw_record_death(deaths, table->entities[i], lives[i].seed);
    }
}

static void raw_replace_dead(raw_store *store, const raw_deaths *deaths)
{
    for (size_t i = 0; i < deaths->count; i++) {
        const uint32_t seed = next_seed(deaths->items[i].seed);
        raw_destroy(store, deaths->items[i].entity, RAW_MOVING_LIFE);
        raw_create_living(store, seed, (Life){.frames_left = LIFE_FRAMES, .seed = seed});
    }
}

static void run_raw(void *state, uint32_t frame_count)
{
    raw_spawn *spawn = state;
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        raw_team_run(spawn->team, raw_move, spawn);
        raw_team_run(spawn->team, raw_age, spawn);
        for (uint32_t part = 0; part < spawn->thread_count; part++)
            raw_replace_dead(&spawn->store, &spawn->deaths[part]);
    }
}

static uint64_t checksum_raw(void *state)
{
    const raw_spawn *spawn = state;
    const raw_table *table = &spawn->store.tables[RAW_MAIN];
    return raw_checksum_moving(table) + checksum_lives(raw_column(table, RAW_LIFE), table->count);
}

static void close_raw(void *state)
{
    raw_spawn *spawn = state;
    for (uint32_t part = 0; part < spawn->thread_count; part++)
        free(spawn->deaths[part].items);
    free(spawn->deaths);
    raw_store_close(&spawn->store);
    free(spawn);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct spawn_scene {
    bench_world bench;
    quern_schedule *schedule;
    quern_jobs *jobs;
} spawn_scene;

static void create_living(bench_world *bench, uint32_t i)
{
    const Position position = start_position(i);
    const Velocity velocity = start_velocity(i);
    const Life life = start_life(i);
    const quern_component components[] = {bench->position, bench->velocity, bench->life};
    const void *const values[] = {&position, &velocity, &life};
    REQUIRE(quern_entity_create_with(bench->world, components, values, 3, NULL));
}

static void replace(quern_commands *commands, const bench_world *bench, quern_entity dead, uint32_t seed)
{
    const Position position = start_position(seed);
    const Velocity velocity = start_velocity(seed);
    const Life life = {.frames_left = LIFE_FRAMES, .seed = seed};
    const quern_component components[] = {bench->position, bench->velocity, bench->life};
    const void *const values[] = {&position, &velocity, &life};
    REQUIRE(quern_commands_destroy(commands, dead));
    REQUIRE(quern_commands_create_with(commands, components, values, 3, NULL));
}

static void age(quern_context *context, const quern_view *view)
{
    const bench_world *bench = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    Life *lives = quern_view_write(view, 0);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (--lives[i].frames_left == 0)
            replace(commands, bench, view->entities[i], next_seed(lives[i].seed));
    }
}

static void add_age(spawn_scene *spawn)
{
    quern_system_def def = {.name = "age",
                            .run = age,
                            .terms = {quern_term_write(spawn->bench.life)},
                            .user_data = &spawn->bench};
    REQUIRE(quern_schedule_add_system(spawn->schedule, &def, NULL));
}

static void *open_quern(const bench_case *scene)
{
    spawn_scene *spawn = bench_allocate(1, sizeof *spawn);
    bench_world_open(&spawn->bench);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_living(&spawn->bench, i);
    spawn->jobs = bench_jobs_create(scene->thread_count);
    REQUIRE(quern_schedule_create(spawn->bench.world, NULL, &spawn->schedule));
    quern_bench_set_schedule(spawn->schedule);
    bench_add_move(spawn->schedule, &spawn->bench);
    add_age(spawn);
    return spawn;
}

static void enter_quern(void *state)
{
    const spawn_scene *spawn = state;
    bench_jobs_wake(spawn->jobs);
}

static void run_quern(void *state, uint32_t frame_count)
{
    const spawn_scene *spawn = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        REQUIRE(quern_schedule_run(spawn->schedule, spawn->jobs, (double)STEP_SECONDS));
}

static quern_result capture_quern(void *state, struct quern_frame_capture *capture)
{
    const spawn_scene *spawn = state;
    return quern_schedule_run_captured(spawn->schedule, spawn->jobs, (double)STEP_SECONDS, capture);
}

static uint64_t checksum_quern(void *state)
{
    spawn_scene *spawn = state;
    const quern_term terms[] = {quern_term_read(spawn->bench.life)};
    quern_query *query = bench_world_query(&spawn->bench, terms, 1);
    uint64_t sum = bench_world_checksum_moving(&spawn->bench);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_lives(quern_view_read(&it.view, 0), it.view.count);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

static void close_quern(void *state)
{
    spawn_scene *spawn = state;
    quern_schedule_destroy(spawn->schedule);
    quern_jobs_destroy(spawn->jobs);
    bench_world_close(&spawn->bench);
    free(spawn);
}

const bench_workload workload_spawn = {
    .name = "spawn",
    .summary = "frames that destroy and create 1 % of the entities by commands",
    .unit = "frame",
    .entity_counts = {100000},
    .frames = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity) + sizeof(Life),
    .pass_count = pass_count,
    .operation_count = bench_operations_per_frame,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern,
                             capture_quern},
        },
};
