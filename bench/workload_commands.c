/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording and applying commands. add_remove_deferred: adds a component to all entities, applies, removes
 * it from all, applies. record_add: records without applying. playback_mixed: records and applies commands
 * of all kinds. react_add: add_remove_deferred with a reaction that sums a field of the added components;
 * the subject `alone` has no reaction. */

#include "bench/commands.h"

/* ------------------------------------------------------------------------------ add_remove_deferred */

static void run_add_remove_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        const raw_table *main = &raw->store.tables[RAW_MAIN], *other = &raw->store.tables[RAW_WITH_HEALTH];
        for (uint32_t i = 0; i < main->count; i++)
            raw_write(raw, main->entities[i], RAW_SET_HEALTH)->health = added_health;
        raw_apply(raw);
        for (uint32_t i = 0; i < other->count; i++)
            raw_write(raw, other->entities[i], RAW_REMOVE_HEALTH);
        raw_apply(raw);
    }
}

static void add_health(quern_context *context, const quern_view *view)
{
    const command_scene *scene = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        REQUIRE(quern_commands_add(commands, view->entities[i], scene->bench.health, &added_health));
}

static void remove_health(quern_context *context, const quern_view *view)
{
    const command_scene *scene = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        REQUIRE(quern_commands_remove(commands, view->entities[i], scene->bench.health));
}

static void *open_add_remove(const bench_case *size)
{
    command_scene *scene = command_scene_open(size);
    quern_system_def def = command_system("add", add_health, quern_term_with(scene->bench.position), scene);
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    def = command_system("remove", remove_health, quern_term_with(scene->bench.health), scene);
    def.phase = 1;
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

/* --------------------------------------------------------------------------------------- react_add */

static void check_sum(uint64_t sum, uint32_t pass_count, uint64_t entity_count)
{
    if (sum != pass_count * entity_count * (uint64_t)added_health.points)
        bench_die("react_add: the reaction did not sum all added components");
}

static void run_react_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    const uint32_t entity_count = raw->store.tables[RAW_MAIN].count;
    uint64_t sum = 0;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        const raw_table *main = &raw->store.tables[RAW_MAIN], *other = &raw->store.tables[RAW_WITH_HEALTH];
        const uint32_t first = other->count;
        for (uint32_t i = 0; i < main->count; i++)
            raw_write(raw, main->entities[i], RAW_SET_HEALTH)->health = added_health;
        raw_apply(raw);
        const Health *healths = (const Health *)raw_column(other, RAW_HEALTH);
        for (uint32_t i = first; i < other->count; i++)
            sum += (uint64_t)healths[i].points;
        for (uint32_t i = 0; i < other->count; i++)
            raw_write(raw, other->entities[i], RAW_REMOVE_HEALTH);
        raw_apply(raw);
    }
    check_sum(sum, pass_count, entity_count);
}

static void sum_points(quern_context *context, const quern_view *view)
{
    const Health *healths = QUERN_COLUMN(view, 0, const Health);
    const uint32_t count = view->count;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (uint64_t)healths[i].points;
    *(uint64_t *)quern_context_partial(context) += sum;
}

static void add_partials(quern_context *context)
{
    command_scene *scene = quern_context_user_data(context);
    const uint32_t count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < count; i++)
        scene->sum += *(const uint64_t *)quern_context_partial_at(context, i);
}

static void *open_react(const bench_case *size)
{
    command_scene *scene = open_add_remove(size);
    quern_system_def def = command_system("sum", sum_points, quern_term_read(scene->bench.health), scene);
    def.reacts_to = QUERN_REACT_ADDED;
    def.partial_bytes = sizeof(uint64_t);
    def.end = add_partials;
    scene->entity_count = size->entity_count;
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

static void run_react(void *state, uint32_t frame_count)
{
    command_scene *scene = state;
    scene->sum = 0;
    command_scene_run(state, frame_count);
    check_sum(scene->sum, frame_count, scene->entity_count);
}

/* --------------------------------------------------------------------------------------- record_add */

static void run_record_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    const raw_table *main = &raw->store.tables[RAW_MAIN];
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < main->count; i++)
            if (raw_is_alive(&raw->store, main->entities[i]))
                raw_write(raw, main->entities[i], RAW_SET_HEALTH)->health = added_health;
        raw->count = 0;
    }
}

static void *allocate(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    const command_scene *scene = user_data;
    if (scene->refuses_memory) return NULL;
    return aligned_alloc(alignment_bytes,
                         (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
}

static void release(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    free(pointer);
}

static void refuse_memory(quern_context *context)
{
    command_scene *scene = quern_context_user_data(context);
    scene->refuses_memory = true;
}

/* Records commands. The sync point gets no memory and so applies nothing; the commands are then discarded. */
static void run_record(void *state, uint32_t frame_count)
{
    command_scene *scene = state;
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        if (quern_schedule_run(scene->schedule, scene->jobs, (double)STEP_SECONDS) !=
            QUERN_ERROR_OUT_OF_MEMORY)
            bench_die("record_add: the sync point applied commands although it got no memory");
        scene->refuses_memory = false;
        REQUIRE(quern_schedule_discard_commands(scene->schedule));
    }
}

static void *open_record(const bench_case *size)
{
    command_scene *scene = bench_allocate(1, sizeof *scene);
    quern_world_def world_def = {
        .allocator = (quern_allocator){.allocate = allocate, .release = release, .user_data = scene}};
    bench_world_open_with(&scene->bench, &world_def);
    command_scene_fill(scene, size);
    command_scene_open_schedule(scene);
    quern_system_def def = command_system("add", add_health, quern_term_with(scene->bench.position), scene);
    def.end = refuse_memory;
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

/* ----------------------------------------------------------------------------------- playback_mixed */

/* Chooses the command for an entity by its values, the system and the frame. The choice must not depend on
 * the handle, which differs between subjects. */
static uint32_t choose(const Position *position, const Velocity *velocity, uint32_t salt)
{
    uint64_t hash = hash_moving(position, velocity);
    return (uint32_t)hash_mix(hash ^ salt);
}

static uint32_t salt_of(uint32_t frame_index, uint32_t system)
{
    return frame_index * 2u + system + 1u;
}

static Health mixed_health(uint32_t roll)
{
    return (Health){.points = (int32_t)(roll >> 8), .maximum = 100};
}

static void record_mixed_raw(raw_scene *raw, const raw_table *table, uint32_t system)
{
    const Position *positions = raw_column(table, RAW_POSITION);
    const Velocity *velocities = raw_column(table, RAW_VELOCITY);
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t roll = choose(&positions[i], &velocities[i], salt_of(raw->frame_index, system));
        if (roll % 8 < 3)
            raw_write(raw, table->entities[i], RAW_SET_HEALTH)->health = mixed_health(roll);
        else if (roll % 8 < 5)
            raw_write(raw, table->entities[i], RAW_REMOVE_HEALTH);
        else if (roll % 8 < 7 || system == 0)
            raw_write(raw, table->entities[i], RAW_SET_POSITION)->position = start_position(roll);
        else
            raw_write(raw, table->entities[i], RAW_REPLACE)->seed = roll;
    }
}

static void run_mixed_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, raw->frame_index++) {
        for (uint32_t system = 0; system < 2; system++)
            for (uint32_t t = 0; t < RAW_TABLE_COUNT; t++)
                record_mixed_raw(raw, &raw->store.tables[t], system);
        raw_apply(raw);
    }
}

static void replace(quern_commands *commands, const bench_world *bench, quern_entity entity, uint32_t seed)
{
    const Position position = start_position(seed);
    const Velocity velocity = start_velocity(seed);
    const quern_component components[] = {bench->position, bench->velocity};
    const void *const values[] = {&position, &velocity};
    REQUIRE(quern_commands_destroy(commands, entity));
    REQUIRE(quern_commands_create_with(commands, components, values, 2, NULL));
}

static void record_mixed(quern_commands *commands, const bench_world *bench, quern_entity entity,
                         uint32_t roll, uint32_t system)
{
    const Health health = mixed_health(roll);
    const Position position = start_position(roll);
    if (roll % 8 < 3)
        REQUIRE(quern_commands_set(commands, entity, bench->health, &health));
    else if (roll % 8 < 5)
        REQUIRE(quern_commands_remove(commands, entity, bench->health));
    else if (roll % 8 < 7 || system == 0)
        REQUIRE(quern_commands_set(commands, entity, bench->position, &position));
    else
        replace(commands, bench, entity, roll);
}

static void mix(quern_context *context, const quern_view *view, uint32_t system)
{
    const command_scene *scene = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const Position *positions = quern_view_read(view, 0);
    const Velocity *velocities = quern_view_read(view, 1);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        record_mixed(commands, &scene->bench, view->entities[i],
                     choose(&positions[i], &velocities[i], salt_of(scene->frame_index, system)), system);
}

static void mix_first(quern_context *context, const quern_view *view)
{
    mix(context, view, 0);
}

static void mix_second(quern_context *context, const quern_view *view)
{
    mix(context, view, 1);
}

static void *open_mixed(const bench_case *size)
{
    command_scene *scene = command_scene_open(size);
    quern_system_def def =
        command_system("first", mix_first, quern_term_read(scene->bench.position), scene);
    def.terms[1] = quern_term_read(scene->bench.velocity);
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    def.name = "second";
    def.run = mix_second;
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

static uint32_t mixed_pass_count(uint32_t entity_count)
{
    return entity_count < 1000000 ? 1 + 1000000 / entity_count : 1;
}

static uint64_t two_operations(uint32_t entity_count)
{
    return 2ull * entity_count;
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_add_remove_deferred = {
    .name = "add_remove_deferred",
    .summary = "add a third component to all entities by commands, apply, remove it, apply",
    .unit = "pair",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_add_remove_raw, NULL, raw_scene_checksum,
                           raw_scene_close, NULL},
            [BENCH_QUERN] = {open_add_remove, command_scene_enter, command_scene_run, NULL,
                             command_scene_checksum, command_scene_close, command_scene_capture},
        },
};

const bench_workload workload_react_add = {
    .name = "react_add",
    .summary = "add_remove_deferred with a reaction that sums the added components (alone: without it)",
    .unit = "pair",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_react_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_react, command_scene_enter, run_react, NULL, command_scene_checksum,
                             command_scene_close, command_scene_capture},
            {open_add_remove, command_scene_enter, command_scene_run, NULL, command_scene_checksum,
             command_scene_close, command_scene_capture},
        },
    .subject_names = {NULL, NULL, "alone"},
};

const bench_workload workload_record_add = {
    .name = "record_add",
    .summary = "record a command that adds 12 bytes for each entity, and apply nothing",
    .unit = "command",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_record_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_record, command_scene_enter, run_record, NULL, command_scene_checksum,
                             command_scene_close, NULL},
        },
};

const bench_workload workload_playback_mixed = {
    .name = "playback_mixed",
    .summary = "record and apply two commands of random kinds for each entity",
    .unit = "command",
    .entity_counts = {500000},
    .pass_count = mixed_pass_count,
    .operation_count = two_operations,
    .subjects =
        {
            [BENCH_RAW] = {raw_scene_open, NULL, run_mixed_raw, NULL, raw_scene_checksum, raw_scene_close,
                           NULL},
            [BENCH_QUERN] = {open_mixed, command_scene_enter, command_scene_run, NULL,
                             command_scene_checksum, command_scene_close, command_scene_capture},
        },
};
