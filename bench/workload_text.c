/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* json_write writes a world of entities with nine described fields as JSON, in memory. json_read reads the JSON into a
 * new world. text_get and text_set convert one field of each entity to text and back, by the path "Position.x". raw does
 * the same for one array of structs, with snprintf and strtof, and reads only JSON of its own layout. */

#include "bench/harness.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <quern/kit/json.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text_row {
    Position position;
    Velocity velocity;
    Health health;
} text_row;

enum { ROW_TEXT_BYTES = 320, FIELD_TEXT_BYTES = 32 };

/* Returns a number from -limit to limit with all digits that a float has. */
static float random_number(uint64_t *state, float limit)
{
    *state = hash_mix(*state);
    return (float)((double)(*state >> 11) * 0x1p-52 - 1) * limit;
}

static text_row start_row(uint32_t i)
{
    uint64_t state = i;
    text_row row;
    row.position =
        (Position){random_number(&state, 500), random_number(&state, 500), random_number(&state, 500)};
    row.velocity = (Velocity){random_number(&state, 8), random_number(&state, 8), random_number(&state, 8)};
    row.health = (Health){(int32_t)(i % 100), 100, (int32_t)(i % 7)};
    return row;
}

static uint64_t hash_row(const Position *position, const Velocity *velocity, const Health *health)
{
    return hash_mix(hash_moving(position, velocity) ^ hash_health(health));
}

/* ----------------------------------------------------------------------------------------------- raw */

typedef struct raw_text {
    uint32_t count;
    text_row *rows;
    char *text, (*fields)[FIELD_TEXT_BYTES];
} raw_text;

static void raw_write(raw_text *raw)
{
    char *to = raw->text;
    *to++ = '[';
    for (uint32_t i = 0; i < raw->count; i++) {
        const text_row *row = &raw->rows[i];
        to += snprintf(to, ROW_TEXT_BYTES,
                       "%s{\"id\": %" PRIu32
                       ", \"components\": {\"Position\": {\"x\": %.9g, \"y\": %.9g, \"z\": %.9g}, "
                       "\"Velocity\": {\"x\": %.9g, \"y\": %.9g, \"z\": %.9g}, "
                       "\"Health\": {\"points\": %" PRId32 ", \"maximum\": %" PRId32
                       ", \"death_count\": %" PRId32 "}}}",
                       i > 0 ? ",\n" : "", i, (double)row->position.x, (double)row->position.y,
                       (double)row->position.z, (double)row->velocity.x, (double)row->velocity.y,
                       (double)row->velocity.z, row->health.points, row->health.maximum,
                       row->health.death_count);
    }
    *to++ = ']';
    *to = '\0';
}

/* Returns the text after the next colon that ends a key: the value of a member of this layout. */
static const char *next_value(const char *at)
{
    while (*at != ':')
        at++;
    return at + 2;
}

static const char *read_float(const char *at, float *out)
{
    char *end;
    *out = strtof(next_value(at), &end);
    return end;
}

static const char *read_integer(const char *at, int32_t *out)
{
    char *end;
    *out = (int32_t)strtol(next_value(at), &end, 10);
    return end;
}

static void raw_read(raw_text *raw)
{
    const char *at = raw->text;
    for (uint32_t i = 0; i < raw->count; i++) {
        text_row *row = &raw->rows[i];
        at = next_value(next_value(next_value(at))); /* id, components, Position */
        at = read_float(read_float(read_float(at, &row->position.x), &row->position.y), &row->position.z);
        at = next_value(at);
        at = read_float(read_float(read_float(at, &row->velocity.x), &row->velocity.y), &row->velocity.z);
        at = next_value(at);
        at = read_integer(at, &row->health.points);
        at = read_integer(read_integer(at, &row->health.maximum), &row->health.death_count);
    }
}

static void *open_raw(const bench_case *scene)
{
    raw_text *raw = bench_allocate(1, sizeof *raw);
    raw->count = scene->entity_count;
    raw->rows = bench_allocate(raw->count, sizeof *raw->rows);
    raw->text = bench_allocate(raw->count + (size_t)1, ROW_TEXT_BYTES);
    raw->fields = bench_allocate(raw->count, sizeof *raw->fields);
    for (uint32_t i = 0; i < raw->count; i++) {
        raw->rows[i] = start_row(i);
        snprintf(raw->fields[i], FIELD_TEXT_BYTES, "%.9g", (double)raw->rows[i].position.x);
    }
    raw_write(raw);
    return raw;
}

static void run_raw_write(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        raw_write(state);
}

static void run_raw_read(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        raw_read(state);
}

static void run_raw_get(void *state, uint32_t pass_count)
{
    const raw_text *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < raw->count; i++)
            snprintf(raw->fields[i], FIELD_TEXT_BYTES, "%.9g", (double)raw->rows[i].position.x);
}

static void run_raw_set(void *state, uint32_t pass_count)
{
    const raw_text *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < raw->count; i++)
            raw->rows[i].position.x = strtof(raw->fields[i], NULL);
}

static uint64_t checksum_raw(void *state)
{
    raw_text *raw = state;
    uint64_t sum = 0;
    raw_read(raw);
    for (uint32_t i = 0; i < raw->count; i++) {
        text_row *row = &raw->rows[i];
        row->position.x = strtof(raw->fields[i], NULL);
        sum += hash_row(&row->position, &row->velocity, &row->health);
    }
    return sum;
}

static void close_raw(void *state)
{
    raw_text *raw = state;
    free(raw->rows);
    free(raw->text);
    free(raw->fields);
    free(raw);
}

/* --------------------------------------------------------------------------------------------- quern */

typedef struct text_scene {
    quern_world *world;
    quern_component position, velocity, health;
    uint32_t count;
    quern_entity *entities;
    char (*fields)[FIELD_TEXT_BYTES];
    quern_byte_buffer json;
} text_scene;

static void open_world(text_scene *it)
{
    REQUIRE(quern_world_create(NULL, &it->world));
    const quern_component_def position = {
        QUERN_TYPE(Position),
        .fields = {QUERN_FIELD(Position, x), QUERN_FIELD(Position, y), QUERN_FIELD(Position, z)}};
    const quern_component_def velocity = {
        QUERN_TYPE(Velocity),
        .fields = {QUERN_FIELD(Velocity, x), QUERN_FIELD(Velocity, y), QUERN_FIELD(Velocity, z)}};
    const quern_component_def health = {QUERN_TYPE(Health), .fields = {QUERN_FIELD(Health, points),
                                                                       QUERN_FIELD(Health, maximum),
                                                                       QUERN_FIELD(Health, death_count)}};
    REQUIRE(quern_component_register(it->world, &position, &it->position));
    REQUIRE(quern_component_register(it->world, &velocity, &it->velocity));
    REQUIRE(quern_component_register(it->world, &health, &it->health));
}

static void write_json(text_scene *it)
{
    it->json.size_bytes = 0;
    REQUIRE(quern_json_write_world(it->world, quern_sink_bytes(&it->json)));
}

static void read_json(text_scene *it)
{
    REQUIRE(quern_json_read_world(it->world, it->json.bytes, it->json.size_bytes, NULL));
}

static void get_texts(text_scene *it)
{
    for (uint32_t i = 0; i < it->count; i++) {
        quern_text_buffer buffer = {it->fields[i], FIELD_TEXT_BYTES, 0};
        REQUIRE(quern_entity_get_text(it->world, it->entities[i], "Position.x", quern_sink_text(&buffer)));
    }
}

static void set_texts(text_scene *it)
{
    for (uint32_t i = 0; i < it->count; i++)
        REQUIRE(quern_entity_set_text(it->world, it->entities[i], "Position.x", it->fields[i]));
}

static void *open_quern(const bench_case *scene)
{
    text_scene *it = bench_allocate(1, sizeof *it);
    it->count = scene->entity_count;
    it->entities = bench_allocate(it->count, sizeof *it->entities);
    it->fields = bench_allocate(it->count, sizeof *it->fields);
    open_world(it);
    const quern_component components[] = {it->position, it->velocity, it->health};
    for (uint32_t i = 0; i < it->count; i++) {
        const text_row row = start_row(i);
        const void *values[] = {&row.position, &row.velocity, &row.health};
        REQUIRE(quern_entity_create_with(it->world, components, values, 3, &it->entities[i]));
    }
    write_json(it);
    get_texts(it);
    return it;
}

static void run_write(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        write_json(state);
}

static void run_get(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        get_texts(state);
}

static void run_set(void *state, uint32_t pass_count)
{
    for (uint32_t i = 0; i < pass_count; i++)
        set_texts(state);
}

/* Each pass of json_read needs a world without entities. */
static void begin_read(void *state)
{
    text_scene *it = state;
    quern_world_destroy(it->world);
    open_world(it);
}

static void run_read(void *state, uint32_t pass_count)
{
    if (pass_count != 1)
        bench_die("json_read: a round must have one pass, since each pass needs a new world");
    read_json(state);
}

static uint64_t sum_world(const text_scene *it)
{
    uint64_t sum = 0;
    quern_query *query;
    REQUIRE(quern_query_create(
        it->world,
        &(quern_query_def){.terms = {quern_term_read(it->position), quern_term_read(it->velocity),
                                     quern_term_read(it->health)}},
        &query));
    quern_query_iterator view = quern_query_iterate(query);
    while (quern_query_next(&view)) {
        const Position *position = quern_view_read(&view.view, 0);
        const Velocity *velocity = quern_view_read(&view.view, 1);
        const Health *health = quern_view_read(&view.view, 2);
        for (uint32_t end = view.view.count, i = 0; i < end; i++)
            sum += hash_row(&position[i], &velocity[i], &health[i]);
    }
    REQUIRE(view.result);
    quern_query_destroy(query);
    return sum;
}

/* Sums a world that is read from the JSON, or that the texts of fields were set in. */
static uint64_t checksum_read(void *state)
{
    text_scene *it = state;
    begin_read(it);
    read_json(it);
    return sum_world(it);
}

static uint64_t checksum_fields(void *state)
{
    set_texts(state);
    return sum_world(state);
}

static void close_quern(void *state)
{
    text_scene *it = state;
    quern_world_destroy(it->world);
    quern_byte_buffer_release(&it->json);
    free(it->entities);
    free(it->fields);
    free(it);
}

/* ----------------------------------------------------------------------------------------- workloads */

const bench_workload workload_json_write = {
    .name = "json_write",
    .summary = "write a world of entities with nine fields as JSON in memory",
    .unit = "entity",
    .entity_counts = {10000},
    .single_thread = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_write, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_write, NULL, checksum_read, close_quern, NULL},
        },
};

const bench_workload workload_json_read = {
    .name = "json_read",
    .summary = "read a world of entities with nine fields from JSON in memory",
    .unit = "entity",
    .entity_counts = {10000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_read, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, begin_read, run_read, NULL, checksum_read, close_quern, NULL},
        },
};

const bench_workload workload_text_get = {
    .name = "text_get",
    .summary = "write a field of an entity, named by its path, as text",
    .unit = "field",
    .entity_counts = {10000},
    .single_thread = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_get, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_get, NULL, checksum_fields, close_quern, NULL},
        },
};

const bench_workload workload_text_set = {
    .name = "text_set",
    .summary = "set a field of an entity, named by its path, from text",
    .unit = "field",
    .entity_counts = {10000},
    .single_thread = true,
    .pass_count = bench_passes_of_100k,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_set, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_set, NULL, checksum_fields, close_quern, NULL},
        },
};
