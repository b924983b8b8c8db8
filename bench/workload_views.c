/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Commands for whole views. deferred_view: adds a component to all entities by one command per view, applies,
 * removes it likewise, applies. deferred_view_half: adds it to every second row, and removes it from all entities
 * that have it. destroy_view: destroys every tenth entity. record_pair: one add and one remove per entity by single
 * commands, each applied by a flush; without a schedule. */

#include "bench/commands.h"

#include <quern/commands.h>

/* --------------------------------------------------------------------------------------------- raw */

static void add_and_remove(raw_scene *raw, uint32_t step)
{
    const raw_table *main = &raw->store.tables[RAW_MAIN], *other = &raw->store.tables[RAW_WITH_HEALTH];
    for (uint32_t i = 0; i < main->count; i += step)
        raw_write(raw, main->entities[i], RAW_SET_HEALTH)->health = added_health;
    raw_apply(raw);
    for (uint32_t i = 0; i < other->count; i++)
        raw_write(raw, other->entities[i], RAW_REMOVE_HEALTH);
    raw_apply(raw);
}

static void run_view_raw(void *state, uint32_t pass_count)
{
    for (uint32_t pass = 0; pass < pass_count; pass++)
        add_and_remove(state, 1);
}

static void run_half_raw(void *state, uint32_t pass_count)
{
    for (uint32_t pass = 0; pass < pass_count; pass++)
        add_and_remove(state, 2);
}

/* ---------------------------------------------------------------------------------- add and remove */

static void add_to_view(quern_context *context, const quern_view *view)
{
    const command_scene *scene = quern_context_user_data(context);
    REQUIRE(quern_commands_add_view(quern_context_commands(context), view, NULL, scene->bench.health,
                                    &added_health));
}

static void add_to_half(quern_context *context, const quern_view *view)
{
    enum { WORDS = 64 };
    const command_scene *scene = quern_context_user_data(context);
    uint64_t mask[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        mask[i] = 0x5555555555555555u;
    if (view->count > 64 * WORDS) bench_die("deferred_view_half: a view has too many rows");
    REQUIRE(quern_commands_add_view(quern_context_commands(context), view, &(quern_view_rows){.mask = mask},
                                    scene->bench.health, &added_health));
}

static void remove_from_view(quern_context *context, const quern_view *view)
{
    const command_scene *scene = quern_context_user_data(context);
    REQUIRE(quern_commands_remove_view(quern_context_commands(context), view, NULL, scene->bench.health));
}

static void *open_pair(const bench_case *size, quern_view_callback *add)
{
    command_scene *scene = command_scene_open(size);
    quern_system_def def = command_system("add", add, quern_term_with(scene->bench.position), scene);
    def.terms[1] = quern_term_without(scene->bench.health);
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    def = command_system("remove", remove_from_view, quern_term_with(scene->bench.health), scene);
    def.phase = 1;
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

static void *open_view(const bench_case *size)
{
    return open_pair(size, add_to_view);
}

static void *open_half(const bench_case *size)
{
    return open_pair(size, add_to_half);
}

/* --------------------------------------------------------------------------------------- destroy */

typedef struct destroy_scene {
    bench_case size;
    void *state; /* raw_scene or command_scene */
} destroy_scene;

static void *open_destroy(const bench_case *size)
{
    destroy_scene *scene = bench_allocate(1, sizeof *scene);
    scene->size = *size;
    return scene;
}

static void begin_destroy_raw(void *state)
{
    destroy_scene *scene = state;
    scene->state = raw_scene_open(&scene->size);
}

static void run_destroy_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = ((destroy_scene *)state)->state;
    const raw_table *main = &raw->store.tables[RAW_MAIN];
    for (uint32_t i = 0; i < main->count; i++)
        if ((uint32_t)main->entities[i] % 10 == 0) raw_write(raw, main->entities[i], RAW_DESTROY);
    raw_apply(raw);
}

static uint64_t checksum_destroy_raw(void *state)
{
    return raw_scene_checksum(((destroy_scene *)state)->state);
}

static void end_destroy_raw(void *state)
{
    raw_scene_close(((destroy_scene *)state)->state);
}

/* The indices of entities count up from 0 in both subjects. */
static void destroy_tenth(quern_context *context, const quern_view *view)
{
    enum { WORDS = 64 };
    uint64_t mask[WORDS] = {0};
    const uint32_t count = view->count;
    if (count > 64 * WORDS) bench_die("destroy_view: a view has too many rows");
    for (uint32_t i = 0; i < count; i++)
        mask[i / 64] |= (uint64_t)(quern_entity_index(view->entities[i]) % 10 == 0) << i % 64;
    REQUIRE(quern_commands_destroy_view(quern_context_commands(context), view,
                                        &(quern_view_rows){.mask = mask}));
}

static void begin_destroy(void *state)
{
    destroy_scene *scene = state;
    command_scene *quern = command_scene_open(&scene->size);
    quern_system_def def =
        command_system("destroy", destroy_tenth, quern_term_with(quern->bench.position), quern);
    REQUIRE(quern_schedule_add_system(quern->schedule, &def, NULL));
    command_scene_enter(quern);
    scene->state = quern;
}

static void run_destroy(void *state, uint32_t pass_count)
{
    command_scene_run(((destroy_scene *)state)->state, 1);
}

static uint64_t checksum_destroy(void *state)
{
    return command_scene_checksum(((destroy_scene *)state)->state);
}

static void end_destroy(void *state)
{
    command_scene_close(((destroy_scene *)state)->state);
}

static uint64_t tenth_of_entities(uint32_t entity_count)
{
    return entity_count / 10;
}

/* ----------------------------------------------------------------------------------- record_pair */

typedef struct pair_scene {
    bench_world bench;
    quern_entity *entities;
    uint32_t entity_count;
} pair_scene;

static void *open_record_pair(const bench_case *size)
{
    pair_scene *scene = bench_allocate(1, sizeof *scene);
    bench_world_open(&scene->bench);
    scene->entity_count = size->entity_count;
    scene->entities = bench_allocate(size->entity_count, sizeof *scene->entities);
    for (uint32_t i = 0; i < size->entity_count; i++)
        scene->entities[i] = bench_world_create_moving(&scene->bench, i);
    return scene;
}

static void run_record_pair(void *state, uint32_t pass_count)
{
    const pair_scene *scene = state;
    quern_world *world = scene->bench.world;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_commands *commands = quern_world_commands(world);
        for (uint32_t i = 0; i < scene->entity_count; i++)
            REQUIRE(quern_commands_add(commands, scene->entities[i], scene->bench.health, &added_health));
        REQUIRE(quern_world_flush(world));
        commands = quern_world_commands(world);
        for (uint32_t i = 0; i < scene->entity_count; i++)
            REQUIRE(quern_commands_remove(commands, scene->entities[i], scene->bench.health));
        REQUIRE(quern_world_flush(world));
    }
}

static uint64_t checksum_record_pair(void *state)
{
    pair_scene *scene = state;
    return bench_world_checksum_moving(&scene->bench);
}

static void close_record_pair(void *state)
{
    pair_scene *scene = state;
    bench_world_close(&scene->bench);
    free(scene->entities);
    free(scene);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_deferred_view = {
    .name = "deferred_view",
    .summary = "add a third component to all entities by commands for views, apply, remove it, apply",
    .unit = "pair",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_view_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_view, command_scene_enter, command_scene_run, NULL,
                             command_scene_checksum, command_scene_close, command_scene_capture},
        },
};

static uint64_t half_of_entities(uint32_t entity_count)
{
    return entity_count / 2;
}

const bench_workload workload_deferred_view_half = {
    .name = "deferred_view_half",
    .summary = "add a component to every second row by commands for views, apply, remove it, apply",
    .unit = "pair",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = half_of_entities,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_half_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_half, command_scene_enter, command_scene_run, NULL,
                             command_scene_checksum, command_scene_close, command_scene_capture},
        },
};

const bench_workload workload_destroy_view = {
    .name = "destroy_view",
    .summary = "destroy every tenth entity by commands for views, and apply",
    .unit = "entity",
    .entity_counts = {1000000},
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = tenth_of_entities,
    .subjects =
        {
            [BENCH_RAW] = {open_destroy, begin_destroy_raw, run_destroy_raw, end_destroy_raw,
                           checksum_destroy_raw, free, NULL},
            [BENCH_QUERN] = {open_destroy, begin_destroy, run_destroy, end_destroy, checksum_destroy, free,
                             NULL},
        },
};

const bench_workload workload_record_pair = {
    .name = "record_pair",
    .summary = "record an add per entity and apply it, record a remove per entity and apply it",
    .unit = "pair",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_view_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_record_pair, NULL, run_record_pair, NULL, checksum_record_pair,
                             close_record_pair, NULL},
        },
};
