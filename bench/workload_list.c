/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* list_push: a loop over a query appends a number to the list of each entity, and empties lists of 16 first. The control has a
 * pointer, a size and a capacity for each entity in an array, and doubles the capacity, as std::vector does. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <quern/list.h>

#include <stdlib.h>

enum { FULL = 16, FIRST_CAPACITY = 4 };

static inline uint64_t number_of(uint32_t i, uint64_t pass)
{
    return hash_mix(i + 1) + pass;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_list {
    uint64_t *items;
    size_t count, capacity;
} raw_list;

typedef struct raw_scene {
    raw_list *lists;
    uint32_t entity_count;
    uint64_t pass;
} raw_scene;

static void *open_raw(const bench_case *size)
{
    raw_scene *scene = bench_allocate(1, sizeof *scene);
    scene->entity_count = size->entity_count;
    scene->pass = 0;
    scene->lists = bench_allocate(size->entity_count, sizeof *scene->lists);
    for (uint32_t i = 0; i < size->entity_count; i++)
        scene->lists[i] = (raw_list){.items = NULL};
    return scene;
}

static void run_raw(void *state, uint32_t pass_count)
{
    raw_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, scene->pass++)
        for (uint32_t i = 0; i < scene->entity_count; i++) {
            raw_list *list = &scene->lists[i];
            if (list->count == FULL) list->count = 0;
            if (list->count == list->capacity) {
                list->capacity = list->capacity > 0 ? 2 * list->capacity : FIRST_CAPACITY;
                list->items = realloc(list->items, list->capacity * sizeof *list->items);
                if (list->items == NULL) abort();
            }
            list->items[list->count++] = number_of(i, scene->pass);
        }
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *scene = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scene->entity_count; i++)
        for (size_t k = 0; k < scene->lists[i].count; k++)
            sum += hash_mix(scene->lists[i].items[k] + k);
    return sum;
}

static void close_raw(void *state)
{
    raw_scene *scene = state;
    for (uint32_t i = 0; i < scene->entity_count; i++)
        free(scene->lists[i].items);
    free(scene->lists);
    free(scene);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct Numbers {
    QUERN_LIST(uint64_t) items;
} Numbers;

typedef struct list_scene {
    quern_world *world;
    quern_query *query;
    uint64_t pass;
} list_scene;

static void *open_quern(const bench_case *size)
{
    list_scene *scene = bench_allocate(1, sizeof *scene);
    quern_component numbers;
    scene->pass = 0;
    REQUIRE(quern_world_create(NULL, &scene->world));
    REQUIRE(quern_component_register(
        scene->world,
        &(quern_component_def){.name = "Numbers",
                               .size_bytes = sizeof(Numbers),
                               .alignment_bytes = _Alignof(Numbers),
                               .fields = {QUERN_LIST_FIELD(Numbers, items, uint64_t)}},
        &numbers));
    REQUIRE(quern_entity_create_many(scene->world, &numbers, NULL, 1, size->entity_count, NULL));
    REQUIRE(quern_query_create(scene->world, &(quern_query_def){.terms = {quern_term_write(numbers)}},
                               &scene->query));
    return scene;
}

static void run_quern(void *state, uint32_t pass_count)
{
    list_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++, scene->pass++) {
        uint32_t first = 0; /* entities were created in this order, and none moves */
        quern_query_iterator it = quern_query_iterate(scene->query);
        while (quern_query_next(&it)) {
            Numbers *numbers = quern_view_write(&it.view, 0);
            const uint32_t count = it.view.count;
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t number = number_of(first + i, scene->pass);
                if (numbers[i].items.list.count == FULL) quern_list_clear(&numbers[i].items.list);
                REQUIRE(quern_list_push(&numbers[i].items.list, sizeof number, &number));
            }
            first += count;
        }
    }
}

static uint64_t checksum_quern(void *state)
{
    const list_scene *scene = state;
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(scene->query);
    while (quern_query_next(&it)) {
        const Numbers *numbers = quern_view_write(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < numbers[i].items.list.count; k++)
                sum += hash_mix(numbers[i].items.items[k] + k);
    }
    return sum;
}

static void close_quern(void *state)
{
    list_scene *scene = state;
    quern_query_destroy(scene->query);
    quern_world_destroy(scene->world);
    free(scene);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_list_push = {
    .name = "list_push",
    .summary = "append a number to the list of each entity; lists of 16 are emptied first",
    .unit = "push",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};
