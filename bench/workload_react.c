/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Single calls with a reaction: react_add_one, react_set_one and react_remove_one change Velocity of each entity by a
 * call of its own, in a random order or in that of creation (ordered), while a reaction to all kinds waits; it runs
 * outside of the measured time.
 * emit_one emits an event of the same size by a call of its own, for a waiting reader. The control writes to an array
 * of values by row and, for each row, keeps what the reaction needs: a bit per row that was added or set, and a copy
 * of each removed value. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>
#include <string.h>

typedef enum change { ADD_ONE, SET_ONE, REMOVE_ONE, EMIT_ONE } change;

static uint64_t sum_of(Velocity value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --------------------------------------------------------------------------------------------- raw */

enum { WORD_ROWS = 64 };

typedef struct raw_scene {
    uint32_t count, copy_count;
    uint32_t *order;
    Velocity *values, *copies;
    uint64_t *pending;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->count = scene->entity_count;
    raw->order = bench_shuffled_indices(scene->entity_count);
    raw->values = bench_allocate(scene->entity_count, sizeof *raw->values);
    raw->copies = bench_allocate(scene->entity_count, sizeof *raw->copies);
    raw->pending = bench_allocate(scene->entity_count / WORD_ROWS + 1, sizeof *raw->pending);
    for (uint32_t i = 0; i < raw->count; i++)
        raw->values[i] = start_velocity(i);
    return raw;
}

static void enter_raw(void *state)
{
    raw_scene *raw = state;
    raw->copy_count = 0;
    memset(raw->pending, 0, (raw->count / WORD_ROWS + 1) * sizeof *raw->pending);
}

static void run_raw_set(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t i = 0; i < raw->count; i++) {
        const uint32_t row = raw->order[i];
        raw->values[row] = start_velocity(row);
        raw->pending[row / WORD_ROWS] |= (uint64_t)1 << row % WORD_ROWS;
    }
}

static void run_raw_copy(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t i = 0; i < raw->count; i++)
        raw->copies[raw->copy_count++] = raw->values[raw->order[i]];
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->copy_count; i++)
        sum += sum_of(raw->copies[i]);
    for (uint32_t i = 0; i < raw->count; i++)
        if ((raw->pending[i / WORD_ROWS] >> i % WORD_ROWS & 1) != 0) sum += sum_of(raw->values[i]);
    return sum;
}

static void close_raw(void *state)
{
    raw_scene *raw = state;
    free(raw->order);
    free(raw->values);
    free(raw->copies);
    free(raw->pending);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct react_scene {
    bench_world bench;
    quern_schedule *schedule;
    quern_event event;
    quern_event_reader *reader;
    uint32_t count;
    uint32_t *order;
    quern_entity *entities;
    uint64_t sum; /* of the values that the reaction or the reader was shown last */
} react_scene;

static void add_up(quern_context *context, const quern_view *view)
{
    react_scene *quern = quern_context_user_data(context);
    const Velocity *values = quern_view_read(view, 0);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        quern->sum += sum_of(values[i]);
}

static void react(react_scene *quern)
{
    quern_event_block block;
    quern->sum = 0;
    REQUIRE(quern_world_react(quern->bench.world, NULL));
    while (quern_event_reader_next(quern->reader, &block))
        for (uint32_t i = 0; i < block.count; i++)
            quern->sum += sum_of(((const Velocity *)block.values)[i]);
}

static void *open_quern(const bench_case *scene)
{
    react_scene *quern = bench_allocate(1, sizeof *quern);
    quern->count = scene->entity_count;
    quern->order = bench_shuffled_indices(scene->entity_count);
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    bench_world_open(&quern->bench);
    for (uint32_t i = 0; i < quern->count; i++)
        quern->entities[i] = bench_world_create_moving(&quern->bench, i);
    REQUIRE(quern_schedule_create(quern->bench.world, NULL, &quern->schedule));
    const quern_system_def def = {.name = "add up",
                                  .run = add_up,
                                  .terms = {quern_term_read(quern->bench.velocity)},
                                  .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
                                  .flags = QUERN_SYSTEM_SERIAL,
                                  .user_data = quern};
    REQUIRE(quern_schedule_add_system(quern->schedule, &def, NULL));
    const quern_event_def event = {.name = "spark", .size_bytes = sizeof(Velocity), .alignment_bytes = 4};
    REQUIRE(quern_event_register(quern->bench.world, &event, &quern->event));
    const quern_event_reader_def reader = {.event = quern->event};
    REQUIRE(quern_event_reader_create(quern->bench.world, &reader, &quern->reader));
    return quern;
}

/* The entities change in the order of their creation, which is that of their rows and records. */
static void *open_ordered(const bench_case *scene)
{
    react_scene *quern = open_quern(scene);
    for (uint32_t i = 0; i < quern->count; i++)
        quern->order[i] = i;
    return quern;
}

static void run_change(react_scene *quern, change kind)
{
    quern_world *world = quern->bench.world;
    for (uint32_t i = 0; i < quern->count; i++) {
        const uint32_t number = quern->order[i];
        const quern_entity entity = quern->entities[number];
        const Velocity value = start_velocity(number);
        REQUIRE(kind == ADD_ONE      ? quern_entity_add(world, entity, quern->bench.velocity, &value)
                : kind == SET_ONE    ? quern_entity_set(world, entity, quern->bench.velocity, &value)
                : kind == REMOVE_ONE ? quern_entity_remove(world, entity, quern->bench.velocity)
                                     : quern_world_emit(world, quern->event, &value, 1));
    }
}

static void run_add(void *state, uint32_t pass_count)
{
    run_change(state, ADD_ONE);
}

static void run_set(void *state, uint32_t pass_count)
{
    run_change(state, SET_ONE);
}

static void run_remove(void *state, uint32_t pass_count)
{
    run_change(state, REMOVE_ONE);
}

static void run_emit(void *state, uint32_t pass_count)
{
    run_change(state, EMIT_ONE);
}

/* Makes all entities have Velocity, or lack it, and lets the reaction see that. */
static void enter_with(void *state)
{
    const react_scene *quern = state;
    for (uint32_t i = 0; i < quern->count; i++)
        if (!quern_entity_has(quern->bench.world, quern->entities[i], quern->bench.velocity)) {
            const Velocity value = start_velocity(i);
            REQUIRE(
                quern_entity_add(quern->bench.world, quern->entities[i], quern->bench.velocity, &value));
        }
    react(state);
}

static void enter_without(void *state)
{
    const react_scene *quern = state;
    for (uint32_t i = 0; i < quern->count; i++)
        if (quern_entity_has(quern->bench.world, quern->entities[i], quern->bench.velocity))
            REQUIRE(quern_entity_remove(quern->bench.world, quern->entities[i], quern->bench.velocity));
    react(state);
}

static uint64_t checksum_quern(void *state)
{
    react(state);
    return ((const react_scene *)state)->sum;
}

static void close_quern(void *state)
{
    react_scene *quern = state;
    quern_event_reader_destroy(quern->reader);
    quern_schedule_destroy(quern->schedule);
    bench_world_close(&quern->bench);
    free(quern->order);
    free(quern->entities);
    free(quern);
}

/* --------------------------------------------------------------------------------------- workloads */

#define WORKLOAD(change_name, text, unit_name, raw_run, quern_enter, quern_run)                      \
    {                                                                                                \
        .name = (change_name), .summary = (text), .unit = (unit_name), .entity_counts = {100000},    \
        .single_thread = true, .fresh = true, .pass_count = bench_passes_fresh,                      \
        .operation_count = bench_operations_per_entity,                                              \
        .subjects =                                                                                  \
            {                                                                                        \
                [BENCH_RAW] = {open_raw, enter_raw, (raw_run), NULL, checksum_raw, close_raw, NULL}, \
                [BENCH_QUERN] = {open_quern, (quern_enter), (quern_run), NULL, checksum_quern,       \
                                 close_quern, NULL},                                                 \
                {open_ordered, (quern_enter), (quern_run), NULL, checksum_quern, close_quern, NULL}, \
            },                                                                                       \
        .subject_names = {NULL, NULL, "ordered"},                                                    \
    }

const bench_workload workload_react_add_one =
    WORKLOAD("react_add_one", "add a component to each entity by a call, with a reaction", "call",
             run_raw_set, enter_without, run_add);
const bench_workload workload_react_set_one =
    WORKLOAD("react_set_one", "set a component of each entity by a call, with a reaction", "call",
             run_raw_set, enter_with, run_set);
const bench_workload workload_react_remove_one =
    WORKLOAD("react_remove_one", "remove a component from each entity by a call, with a reaction", "call",
             run_raw_copy, enter_with, run_remove);
const bench_workload workload_emit_one =
    WORKLOAD("emit_one", "emit single events by calls outside of frames, for one reader", "event",
             run_raw_copy, enter_with, run_emit);
