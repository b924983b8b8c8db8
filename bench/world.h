/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_WORLD_H
#define QUERN_BENCH_WORLD_H

/* Shared by the quern subjects: a world with the components of data.h, and systems. */

#include "bench/data.h"
#include "bench/pool.h"

typedef struct bench_world {
    quern_world *world;
    quern_component position;
    quern_component velocity;
    quern_component rotation;
    quern_component health;
    quern_component damage;
    quern_component brain;
    quern_component life;
} bench_world;

enum { BENCH_MAX_BLOCKS = 256 };

/* Large blocks that a world has released, to be reused by the next world. */
typedef struct bench_blocks {
    struct {
        void *memory;
        size_t size_bytes;
    } items[BENCH_MAX_BLOCKS];
    uint32_t count;
} bench_blocks;

/* Returns an allocator that keeps large blocks. */
quern_allocator bench_blocks_allocator(bench_blocks *blocks);
void bench_blocks_release(bench_blocks *blocks);

void bench_world_open(bench_world *bench);
/* def may be NULL. */
void bench_world_open_with(bench_world *bench, const quern_world_def *def);
void bench_world_close(bench_world *bench);

/* Creates an entity with the start values of Position and Velocity. */
static inline quern_entity bench_world_create_moving(bench_world *bench, uint32_t seed)
{
    const Position position = start_position(seed);
    const Velocity velocity = start_velocity(seed);
    const quern_component components[] = {bench->position, bench->velocity};
    const void *const values[] = {&position, &velocity};
    quern_entity entity;
    REQUIRE(quern_entity_create_with(bench->world, components, values, 2, &entity));
    return entity;
}

/* Returns the checksum of Position and Velocity over all entities that have both. */
uint64_t bench_world_checksum_moving(bench_world *bench);

/* Creates a query. The components of the terms must belong to this world. */
quern_query *bench_world_query(bench_world *bench, const quern_term *terms, uint32_t term_count);

/* Adds a system that writes one component and reads another. `read` may be the null component. */
void bench_add_writer(quern_schedule *schedule, const char *name, quern_view_callback *run,
                      quern_component written, quern_component read);

/* Adds the system "move": position += velocity * step. */
void bench_add_move(quern_schedule *schedule, const bench_world *bench);

#endif
