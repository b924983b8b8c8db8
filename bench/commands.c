/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/commands.h"

/* --------------------------------------------------------------------------------------------- raw */

void *raw_scene_open(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->capacity = 3 * scene->entity_count;
    raw->commands = bench_allocate(raw->capacity, sizeof *raw->commands);
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw_create_moving(&raw->store, i);
    return raw;
}

void raw_scene_close(void *state)
{
    raw_scene *raw = state;
    raw_store_close(&raw->store);
    free(raw->commands);
    free(raw);
}

static void raw_set_health(raw_store *store, uint32_t index, Health health)
{
    uint32_t row = store->records[index].row;
    if (store->records[index].table == RAW_MAIN)
        row = raw_migrate(store, index, RAW_WITH_HEALTH, RAW_MOVING, RAW_MOVING_HEALTH);
    ((Health *)raw_column(&store->tables[RAW_WITH_HEALTH], RAW_HEALTH))[row] = health;
}

static void raw_remove_health(raw_store *store, uint32_t index)
{
    if (store->records[index].table == RAW_WITH_HEALTH)
        raw_migrate(store, index, RAW_MAIN, RAW_MOVING_HEALTH, RAW_MOVING);
}

static void raw_set_position(raw_store *store, uint32_t index, Position position)
{
    const raw_record record = store->records[index];
    ((Position *)raw_column(&store->tables[record.table], RAW_POSITION))[record.row] = position;
}

static void raw_replace(raw_store *store, raw_entity entity, uint32_t seed)
{
    const bool has_health = store->records[(uint32_t)entity].table == RAW_WITH_HEALTH;
    raw_destroy(store, entity, has_health ? RAW_MOVING_HEALTH : RAW_MOVING);
    raw_create_moving(store, seed);
}

void raw_apply(raw_scene *raw)
{
    for (uint32_t i = 0; i < raw->count; i++) {
        const raw_command *command = &raw->commands[i];
        const uint32_t index = (uint32_t)command->entity;
        if (!raw_is_alive(&raw->store, command->entity)) continue;
        if (command->kind == RAW_SET_HEALTH) raw_set_health(&raw->store, index, command->health);
        if (command->kind == RAW_REMOVE_HEALTH) raw_remove_health(&raw->store, index);
        if (command->kind == RAW_SET_POSITION) raw_set_position(&raw->store, index, command->position);
        if (command->kind == RAW_REPLACE) raw_replace(&raw->store, command->entity, command->seed);
        if (command->kind == RAW_DESTROY) raw_destroy(&raw->store, command->entity, RAW_MOVING);
    }
    raw->count = 0;
}

uint64_t raw_scene_checksum(void *state)
{
    const raw_scene *raw = state;
    uint64_t sum = 0;
    for (uint32_t t = 0; t < RAW_TABLE_COUNT; t++)
        sum += raw_checksum_moving(&raw->store.tables[t]);
    const raw_table *healthy = &raw->store.tables[RAW_WITH_HEALTH];
    for (uint32_t i = 0; i < healthy->count; i++)
        sum += hash_health(&((const Health *)raw_column(healthy, RAW_HEALTH))[i]);
    return sum;
}

/* ------------------------------------------------------------------------------------------- quern */

void command_scene_fill(command_scene *scene, const bench_case *size)
{
    for (uint32_t i = 0; i < size->entity_count; i++)
        bench_world_create_moving(&scene->bench, i);
    scene->jobs = bench_jobs_create(size->thread_count);
}

void command_scene_open_schedule(command_scene *scene)
{
    quern_schedule_def def = {.phases = {"first", "second"}};
    REQUIRE(quern_schedule_create(scene->bench.world, &def, &scene->schedule));
    quern_bench_set_schedule(scene->schedule);
}

command_scene *command_scene_open(const bench_case *size)
{
    command_scene *scene = bench_allocate(1, sizeof *scene);
    bench_world_open(&scene->bench);
    command_scene_fill(scene, size);
    command_scene_open_schedule(scene);
    return scene;
}

void command_scene_enter(void *state)
{
    const command_scene *scene = state;
    bench_jobs_wake(scene->jobs);
}

void command_scene_run(void *state, uint32_t frame_count)
{
    command_scene *scene = state;
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        REQUIRE(quern_schedule_run(scene->schedule, scene->jobs, (double)STEP_SECONDS));
        scene->frame_index++;
    }
}

quern_result command_scene_capture(void *state, struct quern_frame_capture *capture)
{
    command_scene *scene = state;
    quern_result result =
        quern_schedule_run_captured(scene->schedule, scene->jobs, (double)STEP_SECONDS, capture);
    scene->frame_index++;
    return result;
}

uint64_t command_scene_checksum(void *state)
{
    command_scene *scene = state;
    uint64_t sum = bench_world_checksum_moving(&scene->bench);
    const quern_term term = quern_term_read(scene->bench.health);
    quern_query *query = bench_world_query(&scene->bench, &term, 1);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Health *healths = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            sum += hash_health(&healths[i]);
    }
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

void command_scene_close(void *state)
{
    command_scene *scene = state;
    quern_schedule_destroy(scene->schedule);
    quern_jobs_destroy(scene->jobs);
    bench_world_close(&scene->bench);
    free(scene);
}
