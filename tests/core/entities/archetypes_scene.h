/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_CALLS_ARCHETYPES_SCENE_H
#define QUERN_TESTS_CORE_CALLS_ARCHETYPES_SCENE_H

/* A world with many archetypes, some without rows, for tests of trimming. */

#include "tests/support/fixture.h"

#include <stdio.h>

enum { MANY = 3000, CROWD = 60000, TAG_COUNT = 12, SET_COUNT = 1 << TAG_COUNT };

static failing_allocator *allocator;
static quern_component number, point, wide; /* uint64_t, vec3, 64 bytes */
static quern_component tags[TAG_COUNT];
static quern_entity entities[CROWD];

static uint32_t empty_archetype_checks_per_sync; /* setting of the next world that is opened */

static inline void open_bare(void)
{
    allocator = open_failing_world_as(
        (quern_world_def){.empty_archetype_checks_per_sync = empty_archetype_checks_per_sync});
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    wide = setup_component(world, "wide", 64, 8);
    for (uint32_t i = 0; i < TAG_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag%u", i);
        tags[i] = setup_tag(world, name);
    }
}

static inline void must_stay_valid(quern_result result)
{
    must(result);
    assert_valid(world);
}

static inline quern_entity create_with(quern_component first, quern_component second, uint64_t value)
{
    quern_component components[] = {number, first, second};
    const void *values[] = {&value, NULL, NULL};
    quern_entity entity;
    uint32_t count = quern_component_is_null(first) ? 1 : quern_component_is_null(second) ? 2 : 3;
    must(quern_entity_create_with(world, components, values, count, &entity));
    return entity;
}

static const quern_component none;

static inline uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value);
    return *value;
}

static inline quern_world_stats stats(void)
{
    return stats_of_world(world);
}

static inline quern_archetype_stats stats_of(uint32_t index)
{
    quern_archetype_stats found;
    must(quern_world_get_archetype_stats(world, index, &found));
    return found;
}

/* Checks that a call has changed only what it is meant to change. If no entity is left, pages of records are released
 * too, which changes the order of later handles. */
static inline void trim(void)
{
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_world_trim(world));
    if (stats().entity_count > 0) cr_assert_eq(quern_world_hash(world), before, "trim changed the world");
    uint32_t all = stats().archetype_count;
    for (uint32_t i = 0; i < all; i++) {
        const uint32_t held = stats_of(i).held_count, run_chunks = held < QUERN__RUN_CHUNKS ? 1u
                                                                   : held < QUERN__SLAB_CHUNKS
                                                                       ? 1u << QUERN__RUN_SHIFT
                                                                       : 1u << QUERN__SLAB_SHIFT;
        cr_assert_lt(held - stats_of(i).chunk_count, run_chunks, "archetype %u holds spare chunks", i);
    }
}

static inline uint32_t count_empty(void)
{
    uint32_t count = 0, all = stats().archetype_count;
    for (uint32_t i = 1; i < all; i++)
        count += stats_of(i).entity_count == 0;
    return count;
}

static inline uint32_t remove_empty(void)
{
    uint64_t before = quern_world_hash(world);
    uint32_t expected = count_empty(), all = stats().archetype_count, count = 77777;
    must_stay_valid(quern_world_remove_empty_archetypes(world, &count));
    cr_assert_eq(quern_world_hash(world), before, "taking archetypes out changed the world");
    cr_assert_eq(count, expected);
    cr_assert_eq(stats().archetype_count, all - count);
    cr_assert_eq(count_empty(), 0u);
    return count;
}

/* Creates CROWD entities, in more than two slabs. */
static inline void create_crowd(void)
{
    static uint64_t numbers[CROWD];
    for (uint32_t i = 0; i < CROWD; i++)
        numbers[i] = i;
    quern_component components[] = {number, wide};
    const void *columns[] = {numbers, NULL};
    must_stay_valid(quern_entity_create_many(world, components, columns, 2, CROWD, entities));
}

/* Returns whether the archetype has exactly these components. */
static inline bool has_exactly(uint32_t index, const quern_component *components, uint32_t count)
{
    quern_component found[8] = {{0}};
    if (quern_world_list_archetype_components(world, index, found, 8) != count) return false;
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            same += quern_component_equal(components[i], found[j]);
    return same == count;
}

/* Returns the index of the archetype with exactly these components, or UINT32_MAX. */
static inline uint32_t index_of(const quern_component *components, uint32_t count)
{
    for (uint32_t i = 0; i < stats().archetype_count; i++)
        if (has_exactly(i, components, count)) return i;
    return UINT32_MAX;
}

/* Creates an entity for each set {number, tags[i]} with i < count. Its number is i. */
static inline void create_row_of_sets(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        entities[i] = create_with(tags[i], none, i);
}

enum { QUERY_COUNT = 5 };

/* Queries that search the archetypes of one component, and queries that search all archetypes. */
static inline void open_queries(quern_query *queries[QUERY_COUNT])
{
    quern_term terms[QUERY_COUNT][2] = {
        {quern_term_read(number), quern_term_with(tags[2])},
        {quern_term_read(number), quern_term_without(tags[1])},
        {quern_term_without(tags[0]), quern_term_without(tags[2])},
        {quern_term_optional(number, QUERN_ACCESS_READ), quern_term_optional(tags[1], QUERN_ACCESS_NONE)},
        {quern_term_any(tags[1], QUERN_ACCESS_NONE), quern_term_any(tags[2], QUERN_ACCESS_NONE)},
    };
    for (uint32_t i = 0; i < QUERY_COUNT; i++)
        queries[i] = setup_query(world, terms[i], 2);
}

static inline void close_queries(quern_query *queries[QUERY_COUNT])
{
    for (uint32_t i = 0; i < QUERY_COUNT; i++)
        quern_query_destroy(queries[i]);
}

/* Checks that all queries find what new queries find. */
static inline void check_queries(quern_query *queries[QUERY_COUNT])
{
    quern_query *fresh[QUERY_COUNT];
    open_queries(fresh);
    for (uint32_t i = 0; i < QUERY_COUNT; i++) {
        uint64_t expected = iterate_rows(fresh[i]);
        cr_assert_eq(quern_query_count(queries[i]), expected, "query %u", i);
        cr_assert_eq(iterate_rows(queries[i]), expected, "query %u", i);
    }
    close_queries(fresh);
}

#endif
