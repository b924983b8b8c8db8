/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Entities with three components move between two worlds and back, as between two machines: packed to bytes, destroyed in
 * one world, and created in the other. The control packs the values of each entity by hand and creates the entities one
 * by one; the other subject uses sessions of archives. session_1000 sends 1,000 entities per message, session_1 one. */

#include "bench/harness.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

typedef struct packed_entity {
    Position position;
    Velocity velocity;
    Health health;
} packed_entity;

typedef struct migration {
    bench_world worlds[2];
    uint32_t entity_count, message_count; /* entities in all, and per message */
    uint32_t side;                        /* world that has the entities */
    quern_entity *entities;
    quern_archive *lists[2];
    quern_save_session *out[2];
    quern_load_session *in[2];
    quern_byte_buffer message;
    packed_entity *packed;
} migration;

static quern_entity create_entity(const bench_world *bench, const packed_entity *values)
{
    const quern_component components[] = {bench->position, bench->velocity, bench->health};
    const void *const addresses[] = {&values->position, &values->velocity, &values->health};
    quern_entity entity;
    REQUIRE(quern_entity_create_with(bench->world, components, addresses, 3, &entity));
    return entity;
}

static migration *open_migration(uint32_t entity_count, uint32_t message_count)
{
    migration *it = bench_allocate(1, sizeof *it);
    it->entity_count = entity_count;
    it->message_count = message_count;
    it->entities = bench_allocate(entity_count, sizeof *it->entities);
    it->packed = bench_allocate(message_count, sizeof *it->packed);
    for (uint32_t side = 0; side < 2; side++) {
        quern_world *world;
        bench_world_open(&it->worlds[side]);
        world = it->worlds[side].world;
        quern_entity other;
        REQUIRE(quern_entity_create(world, &other)); /* a world without entities would keep handles */
        REQUIRE(quern_archive_create(world, &it->lists[side]));
        REQUIRE(quern_save_session_create(world, NULL, &it->out[side]));
        REQUIRE(quern_load_session_create(world, NULL, &it->in[side]));
    }
    for (uint32_t i = 0; i < entity_count; i++) {
        const packed_entity values = {start_position(i), start_velocity(i), start_health(i)};
        it->entities[i] = create_entity(&it->worlds[0], &values);
    }
    return it;
}

static void *open_1000(const bench_case *scene)
{
    return open_migration(scene->entity_count, 1000);
}

static void *open_1(const bench_case *scene)
{
    return open_migration(scene->entity_count, 1);
}

static void send_by_hand(migration *it, quern_entity *entities, uint32_t count)
{
    const bench_world *from = &it->worlds[it->side], *to = &it->worlds[!it->side];
    for (uint32_t i = 0; i < count; i++) {
        packed_entity *packed = &it->packed[i];
        packed->position = *(const Position *)quern_entity_get(from->world, entities[i], from->position);
        packed->velocity = *(const Velocity *)quern_entity_get(from->world, entities[i], from->velocity);
        packed->health = *(const Health *)quern_entity_get(from->world, entities[i], from->health);
    }
    REQUIRE(quern_entity_destroy_many(from->world, entities, count));
    for (uint32_t i = 0; i < count; i++)
        entities[i] = create_entity(to, &it->packed[i]);
}

static void send_by_session(migration *it, quern_entity *entities, uint32_t count)
{
    const uint32_t side = it->side;
    it->message.size_bytes = 0;
    quern_archive_clear(it->lists[side]);
    REQUIRE(quern_archive_append(it->lists[side], entities, count));
    REQUIRE(quern_save_session_write(it->out[side], it->lists[side], quern_sink_bytes(&it->message)));
    REQUIRE(quern_entity_destroy_many(it->worlds[side].world, entities, count));
    REQUIRE(quern_load_session_read(it->in[!side],
                                    quern_source_bytes(it->message.bytes, it->message.size_bytes), entities,
                                    count, NULL));
}

static void run(migration *it, uint32_t pass_count,
                void (*send)(migration *it, quern_entity *entities, uint32_t count))
{
    for (uint32_t pass = 0; pass < pass_count; pass++, it->side = !it->side)
        for (uint32_t i = 0; i < it->entity_count; i += it->message_count)
            send(it, &it->entities[i], it->message_count);
}

static void run_by_hand(void *state, uint32_t pass_count)
{
    run(state, pass_count, send_by_hand);
}

static void run_by_session(void *state, uint32_t pass_count)
{
    run(state, pass_count, send_by_session);
}

static uint64_t checksum(void *state)
{
    migration *it = state;
    return bench_world_checksum_moving(&it->worlds[it->side]);
}

static void close_migration(void *state)
{
    migration *it = state;
    for (uint32_t side = 0; side < 2; side++) {
        quern_save_session_destroy(it->out[side]);
        quern_load_session_destroy(it->in[side]);
        quern_archive_destroy(it->lists[side]);
        bench_world_close(&it->worlds[side]);
    }
    quern_byte_buffer_release(&it->message);
    free(it->packed);
    free(it->entities);
    free(it);
}

const bench_workload workload_session_1000 = {
    .name = "session_1000",
    .summary =
        "move entities of 36 bytes between two worlds by messages of 1,000 entities; raw: packed by hand",
    .unit = "entity",
    .entity_counts = {1000},
    .single_thread = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects = {{open_1000, NULL, run_by_hand, NULL, checksum, close_migration, NULL},
                 {open_1000, NULL, run_by_session, NULL, checksum, close_migration, NULL}},
};

const bench_workload workload_session_1 = {
    .name = "session_1",
    .summary =
        "move entities of 36 bytes between two worlds by messages of one entity; raw: packed by hand",
    .unit = "entity",
    .entity_counts = {1000},
    .single_thread = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects = {{open_1, NULL, run_by_hand, NULL, checksum, close_migration, NULL},
                 {open_1, NULL, run_by_session, NULL, checksum, close_migration, NULL}},
};
