/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_CALLS_BULK_SCENE_H
#define QUERN_TESTS_CORE_CALLS_BULK_SCENE_H

/* A world and lists of entities for tests of calls that change many entities. */

#include "tests/support/fixture.h"
#include "tests/support/tracked.h"

#include <string.h>

enum { MANY = 3000, HUGE_COUNT = 200000 };

static quern_component number, point, frozen; /* uint64_t, vec3, a tag */
static tracked_counts counts;
static quern_component tracked_type;
static atomic_llong owned_live;
static quern_component owned_type;
static quern_entity entities[HUGE_COUNT];
static uint64_t numbers[HUGE_COUNT];

static inline void open_bulk(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    frozen = setup_tag(world, "frozen");
    counts = (tracked_counts){0};
    tracked_type = tracked_register(world, "tracked", &counts);
    owned_type = owned_register(world, "owned", &owned_live);
    for (uint32_t i = 0; i < HUGE_COUNT; i++)
        numbers[i] = i;
}

static inline void close_bulk(void)
{
    close_valid_world();
    assert_at_end(counts.broken_count == 0u);
    assert_at_end(tracked_live_count(&counts) == 0u);
    assert_at_end(owned_live == 0);
}

static inline void must_stay_valid(quern_result result)
{
    must(result);
    assert_valid(world);
}

static inline uint64_t alive_count(void)
{
    return stats_of_world(world).entity_count;
}

static inline uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value);
    return *value;
}

static inline uint64_t payload_of(quern_entity entity)
{
    const tracked *value = quern_entity_get(world, entity, tracked_type);
    cr_assert_not_null(value);
    cr_assert(tracked_is_live(value), "the value was moved as bytes");
    return value->payload;
}

/* Creates `count` entities numbered from `first`, with these further components. */
static inline void create_numbered(uint32_t first, uint32_t count, const quern_component *others,
                                   uint32_t other_count)
{
    quern_component components[8] = {number};
    const void *columns[8] = {&numbers[first]};
    for (uint32_t i = 0; i < other_count; i++)
        components[1 + i] = others[i];
    must_stay_valid(
        quern_entity_create_many(world, components, columns, 1 + other_count, count, &entities[first]));
}

static inline void assert_numbered(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        cr_assert_eq(number_of(entities[i]), i, "entity %u", i);
}

static inline quern_query *query_all(quern_component component)
{
    return setup_query(world, (quern_term[]){quern_term_read(component)}, 1);
}

/* Lists the rows of all matches of a query. */
static inline uint32_t list_rows(quern_query *query, quern_entity *out_entities)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        memcpy(&out_entities[count], it.view.entities, it.view.count * sizeof *out_entities);
        count += it.view.count;
    }
    cr_assert_eq(it.result, QUERN_OK);
    return count;
}

static inline void count_call(quern_context *context, const quern_view *view)
{
    uint32_t *calls = quern_context_user_data(context);
    (*calls)++;
}

/* Creates MANY entities, of four archetypes in turn. */
static inline void create_mixed(void)
{
    quern_component others[] = {point, tracked_type};
    for (uint32_t i = 0; i < MANY; i++) {
        quern_component components[] = {number, others[i / 2 % 2], frozen};
        const void *values[] = {&numbers[i], NULL, NULL};
        must_stay_valid(quern_entity_create_with(world, components, values, 2 + i % 2, &entities[i]));
    }
}

#endif
