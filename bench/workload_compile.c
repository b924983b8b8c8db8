/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* compile_1000 and compile_4000: compiling a schedule of many systems. A system writes one of 200 components and reads
 * two; one in four runs after another one. 100 archetypes have eight of the components each.
 *
 * raw compiles the same declarations by hand: it orders the systems by their rules, keeps the last writer and the
 * readers since then of each component, and lists for each system those for which it must wait. It knows neither
 * archetypes nor passes. */

#include "bench/harness.h"
#include "bench/world.h"

#include <quern/bulk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS = 200, TERMS = 3, SETS = 100, SET_SIZE = 8, NAME_BYTES = 24, NO_SYSTEM = UINT32_MAX };

typedef struct declared_system {
    uint32_t components[TERMS]; /* different ones; the first is written, the others are read */
    uint32_t after;             /* NO_SYSTEM: none */
} declared_system;

static bool is_among(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

/* Chooses `count` different components. */
static void choose_components(uint32_t *seed, uint32_t *components, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        do {
            *seed = next_seed(*seed);
            components[i] = (*seed >> 8) % COMPONENTS;
        } while (is_among(components, i, components[i]));
}

/* Rules lead from the front to the back of a shuffled order, so that they form no cycle. */
static declared_system *declare(uint32_t system_count)
{
    declared_system *systems = bench_allocate(system_count, sizeof *systems);
    uint32_t *shuffled = bench_shuffled_indices(system_count);
    uint32_t seed = 1;
    for (uint32_t i = 0; i < system_count; i++) {
        declared_system *system = &systems[shuffled[i]];
        choose_components(&seed, system->components, TERMS);
        seed = next_seed(seed);
        system->after = i > 0 && (seed >> 8) % 4 == 0 ? shuffled[(seed >> 10) % i] : NO_SYSTEM;
    }
    free(shuffled);
    return systems;
}

static uint64_t checksum_order(uint64_t sum, uint32_t position, uint32_t system)
{
    return sum + (uint64_t)(position + 1) * (system + 1);
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct number_list {
    uint32_t *items;
    uint32_t count, capacity;
} number_list;

typedef struct raw_compile {
    uint32_t count;
    declared_system *systems;
    uint32_t *order;
    number_list *waits;      /* per system: systems that must end before it begins */
    number_list *successors; /* per system: systems that are declared to run after it */
    number_list readers[COMPONENTS];
    uint32_t writers[COMPONENTS];
} raw_compile;

static void append(number_list *list, uint32_t number)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity > 0 ? 2 * list->capacity : 8;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        if (list->items == NULL) bench_die("out of memory");
    }
    list->items[list->count++] = number;
}

static void *open_raw(const bench_case *scene)
{
    raw_compile *raw = bench_allocate(1, sizeof *raw);
    raw->count = scene->entity_count;
    raw->systems = declare(raw->count);
    return raw;
}

static void enter_raw(void *state)
{
    raw_compile *raw = state;
    raw->order = bench_allocate(raw->count, sizeof *raw->order);
    raw->waits = bench_allocate(raw->count, sizeof *raw->waits);
    raw->successors = bench_allocate(raw->count, sizeof *raw->successors);
    memset(raw->readers, 0, sizeof raw->readers);
    memset(raw->writers, 0xFF, sizeof raw->writers); /* NO_SYSTEM */
}

/* Orders the systems: each time, the first declared one that is ready. */
static void order_raw(raw_compile *raw)
{
    const uint32_t word_count = (raw->count + 63) / 64;
    uint64_t *ready = bench_allocate(word_count, sizeof *ready);
    uint32_t placed_count = 0;
    for (uint32_t i = 0; i < raw->count; i++)
        if (raw->systems[i].after != NO_SYSTEM)
            append(&raw->successors[raw->systems[i].after], i);
        else
            ready[i / 64] |= 1ull << i % 64;
    for (uint32_t word = 0; word < word_count;) {
        if (ready[word] == 0) {
            word++;
            continue;
        }
        const uint32_t system = 64 * word + (uint32_t)__builtin_ctzll(ready[word]);
        ready[word] &= ready[word] - 1;
        raw->order[placed_count++] = system;
        for (uint32_t i = 0; i < raw->successors[system].count; i++) {
            const uint32_t next = raw->successors[system].items[i];
            ready[next / 64] |= 1ull << next % 64;
            if (next / 64 < word) word = next / 64;
        }
    }
    free(ready);
}

static void link_raw(raw_compile *raw, uint32_t system)
{
    const declared_system *declared = &raw->systems[system];
    number_list *waits = &raw->waits[system];
    if (declared->after != NO_SYSTEM) append(waits, declared->after);
    for (uint32_t i = 0; i < TERMS; i++) {
        const uint32_t component = declared->components[i];
        number_list *readers = &raw->readers[component];
        if (raw->writers[component] != NO_SYSTEM) append(waits, raw->writers[component]);
        if (i > 0) {
            append(readers, system);
            continue;
        }
        for (uint32_t k = 0; k < readers->count; k++)
            append(waits, readers->items[k]);
        readers->count = 0;
        raw->writers[component] = system;
    }
}

static void run_raw(void *state, uint32_t pass_count)
{
    raw_compile *raw = state;
    (void)pass_count; /* 1 */
    order_raw(raw);
    for (uint32_t i = 0; i < raw->count; i++)
        link_raw(raw, raw->order[i]);
}

static void leave_raw(void *state)
{
    raw_compile *raw = state;
    for (uint32_t i = 0; i < raw->count; i++) {
        free(raw->waits[i].items);
        free(raw->successors[i].items);
    }
    for (uint32_t i = 0; i < COMPONENTS; i++)
        free(raw->readers[i].items);
    free(raw->successors);
    free(raw->waits);
    free(raw->order);
}

static uint64_t checksum_raw(void *state)
{
    const raw_compile *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->count; i++)
        sum = checksum_order(sum, i, raw->order[i]);
    return sum;
}

static void close_raw(void *state)
{
    raw_compile *raw = state;
    free(raw->systems);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct compile_scene {
    uint32_t count;
    declared_system *systems;
    quern_world *world;
    quern_component components[COMPONENTS];
    quern_schedule *schedule;
} compile_scene;

static void run_nothing(quern_context *context, const quern_view *view) {}

static void *open_quern(const bench_case *scene)
{
    compile_scene *compile = bench_allocate(1, sizeof *compile);
    compile->count = scene->entity_count;
    compile->systems = declare(compile->count);
    REQUIRE(quern_world_create(NULL, &compile->world));
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "Component%u", i);
        const quern_component_def def = {.name = name, .size_bytes = 4, .alignment_bytes = 4};
        REQUIRE(quern_component_register(compile->world, &def, &compile->components[i]));
    }
    uint32_t seed = 2;
    for (uint32_t i = 0; i < SETS; i++) {
        uint32_t numbers[SET_SIZE];
        quern_component set[SET_SIZE];
        choose_components(&seed, numbers, SET_SIZE);
        for (uint32_t k = 0; k < SET_SIZE; k++)
            set[k] = compile->components[numbers[k]];
        REQUIRE(quern_entity_create_many(compile->world, set, NULL, SET_SIZE, 1, NULL));
    }
    return compile;
}

static void enter_quern(void *state)
{
    compile_scene *compile = state;
    REQUIRE(quern_schedule_create(compile->world, NULL, &compile->schedule));
    for (uint32_t i = 0; i < compile->count; i++) {
        const declared_system *declared = &compile->systems[i];
        char name[NAME_BYTES], after[NAME_BYTES];
        snprintf(name, sizeof name, "system%u", i);
        snprintf(after, sizeof after, "system%u", declared->after);
        quern_system_def def = {.name = name, .run = run_nothing};
        def.terms[0] = quern_term_write(compile->components[declared->components[0]]);
        for (uint32_t k = 1; k < TERMS; k++)
            def.terms[k] = quern_term_read(compile->components[declared->components[k]]);
        if (declared->after != NO_SYSTEM) def.after[0] = after;
        REQUIRE(quern_schedule_add_system(compile->schedule, &def, NULL));
    }
}

static void run_quern(void *state, uint32_t pass_count)
{
    const compile_scene *compile = state;
    (void)pass_count; /* 1 */
    REQUIRE(quern_schedule_compile(compile->schedule));
}

static void leave_quern(void *state)
{
    const compile_scene *compile = state;
    quern_schedule_destroy(compile->schedule);
}

static uint64_t checksum_quern(void *state)
{
    const compile_scene *compile = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < compile->count; i++)
        sum = checksum_order(sum, i, quern_schedule_system_at(compile->schedule, i).bits - 1);
    return sum;
}

static void close_quern(void *state)
{
    compile_scene *compile = state;
    quern_world_destroy(compile->world);
    free(compile->systems);
    free(compile);
}

static uint32_t count_passes(uint32_t system_count)
{
    return 20000 / system_count;
}

#define WORKLOAD_COMPILE(size, words)                                                                  \
    const bench_workload workload_compile_##size = {                                                   \
        .name = "compile_" #size,                                                                      \
        .summary =                                                                                     \
            "compiling a schedule of " words " systems; raw: readers and writers of each component",   \
        .unit = "compile",                                                                             \
        .entity_counts = {size},                                                                       \
        .fixed_size = true,                                                                            \
        .single_thread = true,                                                                         \
        .fresh = true,                                                                                 \
        .pass_count = count_passes,                                                                    \
        .subjects = {[BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw,  \
                                    NULL},                                                             \
                     [BENCH_QUERN] = {open_quern, enter_quern, run_quern, leave_quern, checksum_quern, \
                                      close_quern, NULL}},                                             \
    }

WORKLOAD_COMPILE(1000, "1,000");
WORKLOAD_COMPILE(4000, "4,000");
