/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* archive_save saves a world of entities of 100 bytes in four components to an archive in memory.
 * archive_load loads the archive into a new world. raw copies one array of each component by memcpy, to
 * another array and back.
 *
 * All subjects reuse memory, so that the cost of fresh pages is not measured. */

#include "bench/harness.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { PARTS = 4, MOST_BYTES = 28 };

static const uint32_t part_bytes[PARTS] = {28, 24, 24, 24};

static void fill_part(char *bytes, uint32_t part, uint32_t entity)
{
    for (uint32_t i = 0; i < part_bytes[part]; i++)
        bytes[i] = (char)(entity * 31 + part * 7 + i);
}

/* Returns a checksum that does not depend on the order of values. */
static uint64_t sum_part(const char *values, uint32_t part, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++, values += part_bytes[part]) {
        uint64_t words[3];
        memcpy(words, values, sizeof words);
        sum += hash_mix(words[0] ^ words[1] * 3 ^ words[2] * 5 ^ part);
    }
    return sum;
}

/* ----------------------------------------------------------------------------------------------- raw */

typedef struct raw_copy {
    uint32_t entity_count;
    char *live[PARTS], *saved[PARTS];
} raw_copy;

static void *open_raw(const bench_case *scene)
{
    raw_copy *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    for (uint32_t part = 0; part < PARTS; part++) {
        raw->live[part] = bench_allocate(raw->entity_count, part_bytes[part]);
        raw->saved[part] = bench_allocate(raw->entity_count, part_bytes[part]);
        for (uint32_t i = 0; i < raw->entity_count; i++)
            fill_part(raw->live[part] + (size_t)i * part_bytes[part], part, i);
        memcpy(raw->saved[part], raw->live[part], (size_t)raw->entity_count * part_bytes[part]);
    }
    return raw;
}

static void run_raw_save(void *state, uint32_t pass_count)
{
    const raw_copy *raw = state;
    for (uint32_t i = 0; i < pass_count; i++)
        for (uint32_t part = 0; part < PARTS; part++)
            memcpy(raw->saved[part], raw->live[part], (size_t)raw->entity_count * part_bytes[part]);
}

static void run_raw_load(void *state, uint32_t pass_count)
{
    const raw_copy *raw = state;
    for (uint32_t i = 0; i < pass_count; i++)
        for (uint32_t part = 0; part < PARTS; part++)
            memcpy(raw->live[part], raw->saved[part], (size_t)raw->entity_count * part_bytes[part]);
}

static uint64_t checksum_raw(void *state)
{
    const raw_copy *raw = state;
    uint64_t sum = 0;
    for (uint32_t part = 0; part < PARTS; part++)
        sum += sum_part(raw->live[part], part, raw->entity_count);
    return sum;
}

static void close_raw(void *state)
{
    raw_copy *raw = state;
    for (uint32_t part = 0; part < PARTS; part++) {
        free(raw->live[part]);
        free(raw->saved[part]);
    }
    free(raw);
}

/* --------------------------------------------------------------------------------------------- quern */

typedef struct archive_scene {
    quern_world *world;
    quern_component parts[PARTS];
    quern_byte_buffer archive;
    bench_blocks blocks;
} archive_scene;

static void open_world(archive_scene *it)
{
    static const char *const names[PARTS] = {"a", "b", "c", "d"};
    REQUIRE(quern_world_create(&(quern_world_def){.allocator = bench_blocks_allocator(&it->blocks)},
                               &it->world));
    for (uint32_t part = 0; part < PARTS; part++)
        REQUIRE(quern_component_register(it->world,
                                         &(quern_component_def){.name = names[part],
                                                                .size_bytes = part_bytes[part],
                                                                .alignment_bytes = 4},
                                         &it->parts[part]));
}

static void create_entity(const archive_scene *it, uint32_t i)
{
    char values[PARTS][MOST_BYTES];
    const void *pointers[PARTS];
    for (uint32_t part = 0; part < PARTS; part++) {
        fill_part(values[part], part, i);
        pointers[part] = values[part];
    }
    REQUIRE(quern_entity_create_with(it->world, it->parts, pointers, PARTS, NULL));
}

static void save(archive_scene *it)
{
    it->archive.size_bytes = 0;
    REQUIRE(quern_world_save(it->world, quern_sink_bytes(&it->archive), NULL));
}

static void load(const archive_scene *it)
{
    REQUIRE(quern_world_load(it->world, quern_source_bytes(it->archive.bytes, it->archive.size_bytes), NULL,
                             NULL));
}

static void *open_saved(const bench_case *scene)
{
    archive_scene *it = bench_allocate(1, sizeof *it);
    open_world(it);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_entity(it, i);
    save(it);
    return it;
}

static void run_save(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        save(state);
}

static void *open_loaded(const bench_case *scene)
{
    archive_scene *it = open_saved(scene);
    quern_world_destroy(it->world);
    it->world = NULL;
    return it;
}

static void begin_load(void *state)
{
    open_world(state);
}

static void run_load(void *state, uint32_t pass_count)
{
    if (pass_count != 1)
        bench_die("archive_load: a round must have one pass, since each pass needs a new world");
    load(state);
}

static void end_load(void *state)
{
    archive_scene *it = state;
    quern_world_destroy(it->world);
    it->world = NULL;
}

/* Returns the checksum of a world loaded from the archive, since the archive is the result to be checked. */
static uint64_t checksum_quern(void *state)
{
    archive_scene *it = state;
    if (it->world != NULL) quern_world_destroy(it->world);
    open_world(it);
    load(it);
    uint64_t sum = 0;
    for (uint32_t part = 0; part < PARTS; part++) {
        quern_query *query;
        REQUIRE(quern_query_create(
            it->world, &(quern_query_def){.terms = {quern_term_read(it->parts[part])}}, &query));
        quern_query_iterator view = quern_query_iterate(query);
        while (quern_query_next(&view))
            sum += sum_part(quern_view_read(&view.view, 0), part, view.view.count);
        REQUIRE(view.result);
        quern_query_destroy(query);
    }
    quern_world_destroy(it->world);
    it->world = NULL;
    return sum;
}

static void close_quern(void *state)
{
    archive_scene *it = state;
    if (it->world != NULL) quern_world_destroy(it->world);
    quern_byte_buffer_release(&it->archive);
    bench_blocks_release(&it->blocks);
    free(it);
}

/* ----------------------------------------------------------------------------------------- workloads */

const bench_workload workload_archive_save = {
    .name = "archive_save",
    .summary = "save a world of entities of 100 bytes to an archive in memory",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_save, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_saved, NULL, run_save, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_archive_load = {
    .name = "archive_load",
    .summary = "load a world of entities of 100 bytes from an archive in memory",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_load, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_loaded, begin_load, run_load, end_load, checksum_quern, close_quern,
                             NULL},
        },
};
