/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_WORLD_H
#define QUERN_BENCH_WORLD_H

/* What the quern subjects have in common: a world with the components of data.h, a schedule, a job pool. */

#include <quern/quern.h>

#include "bench/data.h"

/* Ends the program with the library's message when a call fails. */
#define REQUIRE(call) bench_require((call), #call)

_Noreturn void bench_die_of(quern_result result, const char *call) __attribute__((cold));

static inline void bench_require(quern_result result, const char *call)
{
    if (result != QUERN_OK) bench_die_of(result, call);
}

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

void bench_world_open(bench_world *bench);
/* def may be NULL. */
void bench_world_open_with(bench_world *bench, const quern_world_def *def);
void bench_world_close(bench_world *bench);

/* An entity with the start values of Position and Velocity, in one call. */
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

/* Over all entities with Position and Velocity. */
uint64_t bench_world_checksum_moving(bench_world *bench);

/* Its terms must have components of this world. */
quern_query *bench_world_query(bench_world *bench, const quern_term *terms, uint32_t term_count);

/* Adds a system that writes the first component and reads the second, or only writes the first when the
 * second is null. */
void bench_add_writer(quern_schedule *schedule, const char *name, quern_view_callback *run,
                      quern_component written, quern_component read);

/* The system of workloads that move: writes Position by reading Velocity. */
void bench_add_move(quern_schedule *schedule, const bench_world *bench);

quern_jobs *bench_jobs_create(uint32_t thread_count);
/* trace may be NULL. */
quern_jobs *bench_jobs_create_with(uint32_t thread_count, quern_trace *trace);

/* Returns when every thread of the pool is awake, or after two milliseconds: a sample measures frame
 * after frame, not the first one after a sleep. */
void bench_jobs_wake(quern_jobs *jobs);

#endif
