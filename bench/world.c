/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/world.h"

#include <stdatomic.h>

#include "bench/harness.h"

enum { WAKE_LIMIT_NS = 2000000 };

void bench_die_of(quern_result result, const char *call)
{
    bench_die("%s: %s: %s", call, quern_result_string(result), quern_error_message());
}

/* ------------------------------------------------------------------------------------------- world */

enum { LARGE_BYTES = 64 * 1024, SLAB_BYTES = 2 * 1024 * 1024 };

static void *allocate_block(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    bench_blocks *blocks = user_data;
    const quern_allocator system = quern_allocator_default();
    for (uint32_t i = blocks->count; i-- > 0;) {
        void *memory = blocks->items[i].memory;
        if (blocks->items[i].size_bytes != size_bytes || (uintptr_t)memory % alignment_bytes != 0) continue;
        blocks->items[i] = blocks->items[--blocks->count];
        return memory;
    }
    return system.allocate(system.user_data, size_bytes,
                           size_bytes < LARGE_BYTES ? alignment_bytes : SLAB_BYTES);
}

static void release_block(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    bench_blocks *blocks = user_data;
    const quern_allocator system = quern_allocator_default();
    if (size_bytes < LARGE_BYTES) {
        system.release(system.user_data, pointer, size_bytes, alignment_bytes);
    } else if (blocks->count < BENCH_MAX_BLOCKS) {
        blocks->items[blocks->count].memory = pointer;
        blocks->items[blocks->count++].size_bytes = size_bytes;
    } else {
        system.release(system.user_data, pointer, size_bytes, SLAB_BYTES);
    }
}

quern_allocator bench_blocks_allocator(bench_blocks *blocks)
{
    return (quern_allocator){allocate_block, release_block, blocks};
}

void bench_blocks_release(bench_blocks *blocks)
{
    const quern_allocator system = quern_allocator_default();
    while (blocks->count > 0) {
        --blocks->count;
        system.release(system.user_data, blocks->items[blocks->count].memory,
                       blocks->items[blocks->count].size_bytes, SLAB_BYTES);
    }
}

void bench_world_open(bench_world *bench)
{
    bench_world_open_with(bench, NULL);
}

void bench_world_open_with(bench_world *bench, const quern_world_def *def)
{
    REQUIRE(quern_world_create(def, &bench->world));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->position, Position));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->velocity, Velocity));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->rotation, Rotation));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->health, Health));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->damage, Damage));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->brain, Brain));
    REQUIRE(QUERN_COMPONENT_REGISTER(bench->world, &bench->life, Life));
}

void bench_world_close(bench_world *bench)
{
    quern_world_destroy(bench->world);
    bench->world = NULL;
}

quern_query *bench_world_query(bench_world *bench, const quern_term *terms, uint32_t term_count)
{
    quern_query_def def = {0};
    for (uint32_t i = 0; i < term_count; i++)
        def.terms[i] = terms[i];
    quern_query *query;
    REQUIRE(quern_query_create(bench->world, &def, &query));
    return query;
}

uint64_t bench_world_checksum_moving(bench_world *bench)
{
    const quern_term terms[] = {quern_term_read(bench->position), quern_term_read(bench->velocity)};
    quern_query *query = bench_world_query(bench, terms, 2);
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_moving(quern_view_read(&it.view, 0), quern_view_read(&it.view, 1), it.view.count);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

/* ----------------------------------------------------------------------------------------- systems */

void bench_add_writer(quern_schedule *schedule, const char *name, quern_view_callback *run,
                      quern_component written, quern_component read)
{
    quern_system_def def = {.name = name, .run = run, .terms = {quern_term_write(written)}};
    if (!quern_component_is_null(read)) def.terms[1] = quern_term_read(read);
    REQUIRE(quern_schedule_add_system(schedule, &def, NULL));
}

static void move(quern_context *context, const quern_view *view)
{
    kernel_move(quern_view_write(view, 0), quern_view_read(view, 1), view->count);
}

void bench_add_move(quern_schedule *schedule, const bench_world *bench)
{
    bench_add_writer(schedule, "move", move, bench->position, bench->velocity);
}

/* -------------------------------------------------------------------------------------------- jobs */

quern_jobs *bench_jobs_create(uint32_t thread_count)
{
    return bench_jobs_create_with(thread_count, NULL);
}

quern_jobs *bench_jobs_create_with(uint32_t thread_count, quern_trace *trace)
{
    quern_jobs_def def = {.thread_count = thread_count, .trace = trace};
    quern_jobs *jobs;
    REQUIRE(quern_jobs_create(&def, &jobs));
    return jobs;
}

typedef struct wake_round {
    atomic_uint arrived;
    uint32_t expected;
    uint64_t deadline_ns;
} wake_round;

/* Keeps a thread in its job until all threads have arrived. Relaxed: the count publishes no data. */
static void arrive(void *argument, uint32_t worker_index)
{
    wake_round *round = *(wake_round **)argument;
    atomic_fetch_add_explicit(&round->arrived, 1, memory_order_relaxed);
    while (atomic_load_explicit(&round->arrived, memory_order_relaxed) < round->expected &&
           bench_now_ns() < round->deadline_ns) {
    }
}

void bench_jobs_wake(quern_jobs *jobs)
{
    const uint32_t thread_count = quern_jobs_thread_count(jobs);
    wake_round round = {.expected = thread_count, .deadline_ns = bench_now_ns() + WAKE_LIMIT_NS};
    wake_round *payload = &round;
    quern_counter counter = {0};
    quern_job_def def = {
        .function = arrive, .payload = &payload, .payload_bytes = sizeof payload, .counter = &counter};
    for (uint32_t i = 0; i < thread_count; i++)
        REQUIRE(quern_jobs_submit(jobs, &def));
    REQUIRE(quern_jobs_wait(jobs, &counter));
}
