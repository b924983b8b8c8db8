/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/program.h"
#include "tests/support/setup.h"

#include <criterion/criterion.h>
#include <quern/bulk.h>

#include <stdio.h>
#include <string.h>

/* Giving back what is not needed, memory (trim) and archetypes without rows, changes nothing else; and what
 * archetypes say of themselves. */

enum { MANY = 3000, CROWD = 60000, TAG_COUNT = 12, SET_COUNT = 1 << TAG_COUNT };

static failing_allocator *allocator;
static quern_world *world;
static quern_component number, point, wide; /* uint64_t, vec3, 64 bytes */
static quern_component tags[TAG_COUNT];
static quern_entity entities[CROWD];

static uint32_t empty_archetype_checks_per_sync; /* of the world to be opened */

static void open_bare(void)
{
    allocator = failing_allocator_create();
    quern_world_def def = {.allocator = failing_allocator_interface(allocator),
                           .empty_archetype_checks_per_sync = empty_archetype_checks_per_sync};
    quern_result result = quern_world_create(&def, &world);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    wide = setup_component(world, "wide", 64, 8);
    for (uint32_t i = 0; i < TAG_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag%u", i);
        tags[i] = setup_tag(world, name);
    }
}

/* The end of each test: an assertion after it, in .fini, would not fail it. */
static void close_bare(void)
{
    assert_valid(world);
    quern_world_destroy(world);
    failing_allocator_close(allocator);
}

TestSuite(trim, .init = open_bare);
TestSuite(archetype_stats, .init = open_bare);
TestSuite(empty_archetypes, .init = open_bare);
TestSuite(empty_archetypes_in_frames, .init = open_bare);

static void must_stay_valid(quern_result result)
{
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    assert_valid(world);
}

static quern_entity create_with(quern_component first, quern_component second, uint64_t value)
{
    quern_component components[] = {number, first, second};
    const void *values[] = {&value, NULL, NULL};
    quern_entity entity;
    uint32_t count = quern_component_is_null(first) ? 1 : quern_component_is_null(second) ? 2 : 3;
    quern_result result = quern_entity_create_with(world, components, values, count, &entity);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    return entity;
}

static const quern_component none;

static uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value);
    return *value;
}

static quern_world_stats stats(void)
{
    return stats_of_world(world);
}

static quern_archetype_stats stats_of(uint32_t index)
{
    quern_archetype_stats found;
    quern_result result = quern_world_get_archetype_stats(world, index, &found);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    return found;
}

/* Checks that nothing shows but what was meant to. Where no entity is left, records go too, and with them the
 * order of handles to come. */
static void trim(void)
{
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_world_trim(world));
    if (stats().entity_count > 0) cr_assert_eq(quern_world_hash(world), before, "trim changed the world");
    uint32_t all = stats().archetype_count;
    for (uint32_t i = 0; i < all; i++)
        cr_assert_eq(stats_of(i).held_count, stats_of(i).chunk_count, "archetype %u holds spare chunks", i);
}

static uint32_t count_empty(void)
{
    uint32_t count = 0, all = stats().archetype_count;
    for (uint32_t i = 1; i < all; i++)
        count += stats_of(i).entity_count == 0;
    return count;
}

static uint32_t remove_empty(void)
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

/* -------------------------------------------------------------------------------------------- trim */

/* More than two slabs. */
static void create_crowd(void)
{
    static uint64_t numbers[CROWD];
    for (uint32_t i = 0; i < CROWD; i++)
        numbers[i] = i;
    quern_component components[] = {number, wide};
    const void *columns[] = {numbers, NULL};
    must_stay_valid(quern_entity_create_many(world, components, columns, 2, CROWD, entities));
}

Test(trim, gives_back_what_nobody_uses)
{
    uint64_t at_first = failing_allocator_outstanding_bytes(allocator);
    create_crowd();
    must_stay_valid(quern_entity_destroy_many(world, entities, CROWD));
    trim();
    cr_assert_eq(stats().chunk_free_count, 0u);
    cr_assert_eq(stats().chunk_count, 0u);
    cr_assert_eq(stats().held_bytes, 0u);
    uint64_t kept = failing_allocator_outstanding_bytes(allocator) - at_first;
    cr_assert_lt(kept, 64u << 10, "%llu bytes are held for nobody", (unsigned long long)kept);
    create_crowd();
    cr_assert_eq(number_of(entities[CROWD - 1]), CROWD - 1u);
    close_bare();
}

Test(trim, leaves_the_rows_where_they_are)
{
    create_crowd();
    for (uint32_t i = 0; i < CROWD; i += 2)
        cr_assert_eq(quern_entity_destroy(world, entities[i]), QUERN_OK);
    const uint64_t *value = quern_entity_get(world, entities[1], number);
    uint64_t held = stats().held_bytes;
    trim();
    cr_assert_eq(value, quern_entity_get(world, entities[1], number));
    cr_assert_lt(stats().held_bytes, held);
    for (uint32_t i = 1; i < CROWD; i += 2)
        cr_assert_eq(number_of(entities[i]), i);
    close_bare();
}

/* Small archetypes each keep a chunk for the next row. */
Test(trim, takes_the_spare_chunks_of_small_archetypes)
{
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < TAG_COUNT * (TAG_COUNT - 1); i++) {
            uint32_t first = i % TAG_COUNT, second = (first + 1 + i / TAG_COUNT) % TAG_COUNT;
            entities[i] = create_with(tags[first], tags[second], i);
        }
        for (uint32_t i = 0; i < TAG_COUNT * (TAG_COUNT - 1); i++)
            if (i % 5 != 0) must_stay_valid(quern_entity_destroy(world, entities[i]));
        trim();
        trim();
    }
    close_bare();
}

Test(trim, of_an_empty_world_does_nothing)
{
    trim();
    setup_entity(world);
    trim();
    cr_assert_eq(stats().chunk_count, 1u);
    close_bare();
}

Test(trim, does_not_end_what_goes_on)
{
    create_crowd();
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    must_stay_valid(quern_entity_destroy_many(world, entities, CROWD / 2));
    uint64_t found = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        found += it.view.count;
        trim();
    }
    cr_assert_eq(it.result, QUERN_OK);
    cr_assert_eq(found, CROWD / 2u);
    quern_query_destroy(query);
    close_bare();
}

Test(trim, is_refused_without_a_world_or_in_a_frame)
{
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_world_trim(NULL));
    world->locked = true;
    assert_refused(world, QUERN_ERROR_WORLD_LOCKED, quern_world_trim(world));
    world->locked = false;
    close_bare();
}

/* ------------------------------------------------------------------------------------------- stats */

/* Whether the archetype has exactly these components. */
static bool is_of(uint32_t index, const quern_component *components, uint32_t count)
{
    quern_component found[8] = {{0}};
    if (quern_world_archetype_components(world, index, found, 8) != count) return false;
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            same += quern_component_equal(components[i], found[j]);
    return same == count;
}

/* The index of the archetype, or UINT32_MAX. */
static uint32_t index_of(const quern_component *components, uint32_t count)
{
    for (uint32_t i = 0; i < stats().archetype_count; i++)
        if (is_of(i, components, count)) return i;
    return UINT32_MAX;
}

Test(archetype_stats, tell_what_an_archetype_is_and_holds)
{
    quern_component components[] = {point, number, tags[3]};
    must_stay_valid(quern_entity_create_many(world, components, NULL, 3, MANY, NULL));
    setup_entity(world);
    cr_assert(is_of(0, NULL, 0));
    cr_assert_eq(stats_of(0).entity_count, 1u);
    cr_assert_eq(stats_of(0).row_bytes, 8u);
    quern_archetype_stats found = stats_of(index_of(components, 3));
    cr_assert_eq(found.component_count, 3u);
    cr_assert_eq(found.row_bytes, 8u + 12u + 8u);
    cr_assert_eq(found.entity_count, (uint64_t)MANY);
    cr_assert_gt(found.row_capacity, 16384u * 8 / 10 / 28);
    cr_assert_leq(found.row_capacity, 16384u / 28);
    cr_assert_eq(found.chunk_count, (MANY + found.row_capacity - 1) / found.row_capacity);
    cr_assert_geq(found.held_count, found.chunk_count);
    cr_assert_float_eq(found.occupancy, MANY * 28.0 / (found.held_count * 16384.0), 1e-9);
    close_bare();
}

Test(archetype_stats, of_an_archetype_without_rows_are_zero)
{
    quern_entity entity = create_with(tags[0], none, 1);
    must_stay_valid(quern_entity_destroy(world, entity));
    must_stay_valid(quern_world_trim(world));
    quern_archetype_stats found = stats_of(index_of((quern_component[]){number, tags[0]}, 2));
    cr_assert_eq(found.entity_count, 0u);
    cr_assert_eq(found.chunk_count, 0u);
    cr_assert_eq(found.held_count, 0u);
    cr_assert_eq(found.occupancy, 0.0);
    cr_assert_gt(found.row_capacity, 0u);
    close_bare();
}

Test(archetype_stats, add_up_to_those_of_the_world)
{
    uint64_t entity_count = 0, chunk_count = 0, used_bytes = 0;
    create_crowd();
    for (uint32_t i = 0; i < MANY; i++)
        create_with(tags[i % TAG_COUNT], none, i);
    for (uint32_t i = 0; i < stats().archetype_count; i++) {
        quern_archetype_stats found = stats_of(i);
        entity_count += found.entity_count;
        chunk_count += found.chunk_count;
        used_bytes += found.entity_count * (found.row_bytes + 16);
    }
    cr_assert_eq(entity_count, stats().entity_count);
    cr_assert_eq(chunk_count, stats().chunk_count);
    cr_assert_eq(used_bytes, stats().used_bytes);
    close_bare();
}

Test(archetype_stats, components_are_written_as_far_as_there_is_room)
{
    create_with(tags[0], tags[1], 1);
    uint32_t index = index_of((quern_component[]){number, tags[0], tags[1]}, 3);
    quern_component found[4] = {{1}, {1}, {1}, {1}};
    cr_assert_eq(quern_world_archetype_components(world, index, NULL, 0), 3u);
    cr_assert_eq(quern_world_archetype_components(world, index, found, 2), 3u);
    cr_assert_eq(found[2].bits, 1u, "more were written than there is room for");
    cr_assert_eq(quern_world_archetype_components(world, index, found, 4), 3u);
    cr_assert_neq(found[2].bits, 1u);
    cr_assert_eq(found[3].bits, 1u);
    close_bare();
}

Test(archetype_stats, out_of_range_are_refused)
{
    quern_archetype_stats found;
    quern_component component;
    uint32_t count = stats().archetype_count;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_world_get_archetype_stats(world, count, &found));
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_world_get_archetype_stats(world, UINT32_MAX, &found));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_world_get_archetype_stats(NULL, 0, &found));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_world_get_archetype_stats(world, 0, NULL));
    assert_refused_value(world, quern_world_archetype_components(world, count, &component, 1));
    assert_refused_value(world, quern_world_archetype_components(NULL, 0, &component, 1));
    refusal before = refusal_begin(world);
    cr_assert_eq(quern_world_archetype_components(world, 0, NULL, 0), 0u);
    cr_assert_not(refusal_has_message(&before), "an answer is no error");
    close_bare();
}

/* ----------------------------------------------------------------------------- archetypes without rows */

/* One entity of each of the sets {number, tags[i]}, i below count, numbered by i. */
static void create_row_of_sets(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        entities[i] = create_with(tags[i], none, i);
}

Test(empty_archetypes, takes_out_those_without_rows_and_keeps_the_order_of_the_others)
{
    create_row_of_sets(TAG_COUNT);
    for (uint32_t i = 0; i < TAG_COUNT; i++)
        if (i % 3 != 1) must_stay_valid(quern_entity_destroy(world, entities[i]));
    cr_assert_eq(remove_empty(), TAG_COUNT * 2u / 3);
    cr_assert_eq(stats().archetype_count, 1 + TAG_COUNT / 3u);
    for (uint32_t i = 1; i < TAG_COUNT; i += 3) {
        cr_assert(is_of(1 + i / 3, (quern_component[]){number, tags[i]}, 2));
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert(quern_entity_has(world, entities[i], tags[i]));
    }
    close_bare();
}

Test(empty_archetypes, keeps_the_archetype_without_components)
{
    cr_assert_eq(remove_empty(), 0u);
    create_row_of_sets(3);
    must_stay_valid(quern_entity_destroy_many(world, entities, 3));
    cr_assert_eq(remove_empty(), 3u);
    cr_assert_eq(stats().archetype_count, 1u);
    must_stay_valid(quern_entity_add(world, setup_entity(world), number, NULL));
    must_stay_valid(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_eq(stats().archetype_count, 2u);
    close_bare();
}

Test(empty_archetypes, leaves_every_record_at_its_row)
{
    create_crowd();
    for (uint32_t i = 0; i < CROWD; i++)
        cr_assert_eq(quern_entity_add(world, entities[i], tags[i % TAG_COUNT], NULL), QUERN_OK);
    for (uint32_t i = 0; i < CROWD; i++)
        if (i % TAG_COUNT % 2 == 0)
            cr_assert_eq(quern_entity_remove(world, entities[i], tags[i % TAG_COUNT]), QUERN_OK);
    cr_assert_eq(remove_empty(), TAG_COUNT / 2u);
    for (uint32_t i = 0; i < CROWD; i++) {
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert_eq(quern_entity_has(world, entities[i], tags[i % TAG_COUNT]), i % TAG_COUNT % 2 == 1);
    }
    for (uint32_t i = 0; i < CROWD; i += 7)
        cr_assert_eq(quern_entity_destroy(world, entities[i]), QUERN_OK);
    close_bare();
}

enum { QUERY_COUNT = 5 };

/* Those that look through the archetypes of one component, and those that look through all. */
static void open_queries(quern_query *queries[QUERY_COUNT])
{
    quern_term terms[QUERY_COUNT][2] = {
        {quern_term_read(number), quern_term_with(tags[2])},
        {quern_term_read(number), quern_term_without(tags[1])},
        {quern_term_without(tags[0]), quern_term_without(tags[2])},
        {quern_term_optional(number, QUERN_READ), quern_term_optional(tags[1], QUERN_NO_ACCESS)},
        {quern_term_any(tags[1], QUERN_NO_ACCESS), quern_term_any(tags[2], QUERN_NO_ACCESS)},
    };
    for (uint32_t i = 0; i < QUERY_COUNT; i++)
        queries[i] = setup_query(world, terms[i], 2);
}

static void close_queries(quern_query *queries[QUERY_COUNT])
{
    for (uint32_t i = 0; i < QUERY_COUNT; i++)
        quern_query_destroy(queries[i]);
}

static uint64_t count_walked(quern_query *query)
{
    uint64_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        count += it.view.count;
    cr_assert_eq(it.result, QUERN_OK);
    return count;
}

/* All queries find what new ones find. */
static void check_queries(quern_query *queries[QUERY_COUNT])
{
    quern_query *fresh[QUERY_COUNT];
    open_queries(fresh);
    for (uint32_t i = 0; i < QUERY_COUNT; i++) {
        uint64_t expected = count_walked(fresh[i]);
        cr_assert_eq(quern_query_count(queries[i]), expected, "query %u", i);
        cr_assert_eq(count_walked(queries[i]), expected, "query %u", i);
    }
    close_queries(fresh);
}

static void change_sets(uint32_t round)
{
    for (uint32_t i = 0; i < 4; i++)
        if (quern_entity_is_alive(world, entities[i]))
            must_stay_valid(quern_entity_destroy(world, entities[i]));
    for (uint32_t i = 0; i < 4; i++)
        if ((round >> i & 1) != 0) entities[i] = create_with(tags[i], i % 2 ? tags[i + 1] : none, i);
}

Test(empty_archetypes, leaves_queries_right)
{
    quern_query *before[QUERY_COUNT], *between[QUERY_COUNT], *unused[QUERY_COUNT];
    open_queries(before);
    open_queries(unused);
    change_sets(5);
    open_queries(between);
    for (uint32_t round = 0; round < 32; round++) {
        change_sets(round * 7 % 16);
        if (round % 4 != 3) check_queries(before);
        remove_empty();
        check_queries(before);
        check_queries(between);
    }
    check_queries(unused);
    close_queries(before);
    close_queries(between);
    close_queries(unused);
    close_bare();
}

/* In an order that unlinks the first, the last and one in the middle of those that the world knows. */
Test(empty_archetypes, knows_which_queries_there_are)
{
    quern_query *first[QUERY_COUNT], *second[QUERY_COUNT], *third[QUERY_COUNT];
    open_queries(first);
    open_queries(second);
    open_queries(third);
    change_sets(15);
    close_queries(second);
    change_sets(2);
    remove_empty();
    check_queries(first);
    close_queries(third);
    change_sets(9);
    remove_empty();
    check_queries(first);
    close_queries(first);
    change_sets(4);
    remove_empty();
    close_bare();
}

Test(empty_archetypes, ends_an_iteration_or_lets_it_find_all)
{
    create_row_of_sets(TAG_COUNT);
    for (uint32_t i = 0; i < TAG_COUNT; i += 2)
        must_stay_valid(quern_entity_destroy(world, entities[i]));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    uint64_t found = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        found += it.view.count;
        must_stay_valid(quern_world_remove_empty_archetypes(world, NULL));
    }
    if (it.result == QUERN_OK)
        cr_assert_eq(found, TAG_COUNT / 2u);
    else
        cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED);
    quern_query_destroy(query);
    close_bare();
}

/* Moves between archetypes are remembered at both ends; either end may go. */
Test(empty_archetypes, lets_moves_find_new_ways)
{
    for (uint32_t round = 0; round < 6; round++) {
        quern_entity one = create_with(none, none, round),
                     other = create_with(tags[0], tags[1], round + 50);
        must_stay_valid(quern_entity_add(world, one, tags[0], NULL));
        must_stay_valid(quern_entity_add(world, one, tags[1], NULL));
        must_stay_valid(quern_entity_add(world, one, point, NULL));
        if (round % 2 == 0) remove_empty();
        must_stay_valid(quern_entity_remove(world, one, tags[1]));
        must_stay_valid(quern_entity_remove(world, one, tags[0]));
        must_stay_valid(quern_entity_remove(world, other, tags[1]));
        remove_empty();
        must_stay_valid(quern_entity_add(world, other, tags[1], NULL));
        must_stay_valid(quern_entity_set(world, one, tags[2], NULL));
        remove_empty();
        cr_assert_eq(number_of(one), round);
        cr_assert_eq(number_of(other), round + 50);
        cr_assert(quern_entity_has(world, one, point) && quern_entity_has(world, one, tags[2]));
        must_stay_valid(quern_entity_destroy(world, one));
        must_stay_valid(quern_entity_destroy(world, other));
        if (round % 3 == 0) remove_empty();
    }
    close_bare();
}

Test(empty_archetypes, lets_bulk_calls_find_new_ways)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    create_row_of_sets(TAG_COUNT);
    for (uint32_t round = 0; round < 4; round++) {
        uint64_t count = 0;
        must_stay_valid(quern_entity_add_matching(query, point, NULL, &count));
        cr_assert_eq(count, (uint64_t)TAG_COUNT);
        cr_assert_eq(remove_empty(), (uint32_t)TAG_COUNT);
        must_stay_valid(quern_entity_remove_matching(query, point, &count));
        cr_assert_eq(count, (uint64_t)TAG_COUNT);
        if (round % 2 == 0) cr_assert_eq(remove_empty(), (uint32_t)TAG_COUNT);
    }
    for (uint32_t i = 0; i < TAG_COUNT; i++)
        cr_assert_eq(number_of(entities[i]), i);
    quern_query_destroy(query);
    close_bare();
}

/* The last list of components that was given to create_with is remembered, with its archetype. */
Test(empty_archetypes, lets_create_with_find_a_new_archetype)
{
    create_row_of_sets(4);
    for (uint32_t round = 0; round < 8; round++) {
        quern_entity entity = create_with(tags[5], tags[6], 1);
        if (round % 2 == 0) must_stay_valid(quern_entity_destroy(world, entity));
        if (round == 4) must_stay_valid(quern_entity_destroy(world, entities[1]));
        remove_empty();
        quern_entity again = create_with(tags[5], tags[6], 2);
        cr_assert_eq(number_of(again), 2u);
        cr_assert(quern_entity_has(world, again, tags[5]) && quern_entity_has(world, again, tags[6]));
        assert_valid(world);
        must_stay_valid(quern_entity_destroy(world, again));
        if (round % 2 == 1) must_stay_valid(quern_entity_destroy(world, entity));
        remove_empty();
        create_with(tags[5], none, 3);
    }
    close_bare();
}

Test(empty_archetypes, gives_the_memory_of_archetypes_back)
{
    runs_on_one_thread();
    uint64_t after_first = 0;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t set = 0; set < SET_COUNT; set++) {
            quern_component chosen[TAG_COUNT];
            uint32_t count = 0;
            for (uint32_t t = 0; t < TAG_COUNT; t++)
                if (set >> t & 1) chosen[count++] = tags[t];
            entities[set] = setup_entity_with(world, chosen, count);
        }
        must_stay_valid(quern_entity_destroy_many(world, entities, SET_COUNT));
        uint64_t full = failing_allocator_outstanding_bytes(allocator);
        cr_assert_eq(remove_empty(), SET_COUNT - 1u);
        trim();
        uint64_t left = failing_allocator_outstanding_bytes(allocator);
        cr_assert_lt(left + SET_COUNT * 100u, full, "archetypes were not given back");
        if (round == 0) after_first = left;
        cr_assert_leq(left, after_first, "memory grows from round to round");
    }
    close_bare();
}

/* More different sets than there may be at a time. */
Test(empty_archetypes, makes_room_for_more_archetypes)
{
    runs_on_one_thread();
    quern_component more[17];
    for (uint32_t i = 0; i < 17; i++) {
        char name[16];
        snprintf(name, sizeof name, "more%u", i);
        more[i] = setup_tag(world, name);
    }
    for (uint32_t set = 1; set < 1u << 17; set++) {
        quern_component chosen[17];
        uint32_t count = 0;
        for (uint32_t t = 0; t < 17; t++)
            if (set >> t & 1) chosen[count++] = more[t];
        quern_entity entity = setup_entity_with(world, chosen, count);
        cr_assert_eq(quern_entity_destroy(world, entity), QUERN_OK);
        if (set % 60000 == 0) remove_empty();
    }
    close_bare();
}

Test(empty_archetypes, is_refused_without_a_world_or_in_a_frame)
{
    uint32_t count = 77;
    create_row_of_sets(3);
    must_stay_valid(quern_entity_destroy_many(world, entities, 2));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_world_remove_empty_archetypes(NULL, &count));
    world->locked = true;
    assert_refused(world, QUERN_ERROR_WORLD_LOCKED, quern_world_remove_empty_archetypes(world, &count));
    world->locked = false;
    cr_assert_eq(count, 77u);
    cr_assert_eq(remove_empty(), 2u);
    close_bare();
}

/* Queries that have not seen everything yet need memory to see it. */
Test(empty_archetypes, without_memory_changes_nothing)
{
    for (uint64_t spared = 0; spared < 20; spared++) {
        quern_query *queries[QUERY_COUNT];
        open_queries(queries);
        create_row_of_sets(TAG_COUNT);
        must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT / 2));
        uint32_t archetype_count = stats().archetype_count, count = 77;
        uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1 + spared);
        quern_result result = quern_world_remove_empty_archetypes(world, &count);
        failing_allocator_heal(allocator);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(count, 77u);
            cr_assert_eq(stats().archetype_count, archetype_count);
        }
        cr_assert_eq(quern_world_hash(world), hash);
        remove_empty();
        check_queries(queries);
        close_queries(queries);
        must_stay_valid(quern_entity_destroy_many(world, entities + TAG_COUNT / 2, TAG_COUNT / 2));
        remove_empty();
    }
    close_bare();
}

/* --------------------------------------------------------------------------------------- schedules */

/* Counts up, by its own number, every row it is shown. */
static void count_up(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    const uint64_t *step = quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] = values[i] * 3 + *step;
}

static quern_system add_counter(quern_schedule *schedule, const char *name, quern_component tag,
                                uint64_t *step)
{
    quern_system_def def = system_def(name, count_up);
    def.terms[0] = quern_term_write(number);
    def.terms[1] = quern_term_with(tag);
    def.user_data = step;
    return setup_system(schedule, &def);
}

/* Gives what is tagged with the first tag the second instead, and half of them back. */
static void change_tags(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        quern_component gone = tags[values[i] % 3], come = tags[3 + values[i] % 4];
        quern_commands_remove(commands, view->entities[i], gone);
        quern_commands_add(commands, view->entities[i], come, NULL);
        if (values[i] % 5 == 0) quern_commands_remove(commands, view->entities[i], tags[values[i] % 7]);
    }
}

static void tidy_up(quern_context *context)
{
    quern_world *own = quern_context_world(context);
    const bool *is_on = quern_context_user_data(context);
    if (!*is_on) return;
    cr_assert_eq(quern_world_trim(own), QUERN_OK);
    cr_assert_eq(quern_world_remove_empty_archetypes(own, NULL), QUERN_OK);
}

static uint64_t steps[7] = {1, 2, 3, 4, 5, 6, 7};

/* Systems that meet only where an archetype has both of their tags, then one that changes tags. */
static quern_schedule *open_schedule(bool *tidies_in_frame)
{
    static const char *const names[] = {"count0", "count1", "count2", "count3",
                                        "count4", "count5", "count6"};
    quern_schedule *schedule = setup_phases(world, 2);
    for (uint32_t i = 0; i < 5; i++)
        add_counter(schedule, names[i], tags[i], &steps[i]);
    quern_system_def def = system_def("tidy", NULL);
    def.begin = tidy_up;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    def.user_data = tidies_in_frame;
    setup_system(schedule, &def);
    for (uint32_t i = 5; i < 7; i++)
        add_counter(schedule, names[i], tags[i], &steps[i]);
    def = system_def("change", change_tags);
    def.terms[0] = quern_term_read(number);
    def.phase = 1;
    setup_system(schedule, &def);
    return schedule;
}

enum { FRAME_ROWS = 600, FRAME_COUNT = effort(40, 40, 12) };

static void create_frame_rows(void)
{
    for (uint32_t i = 0; i < FRAME_ROWS; i++)
        entities[i] = create_with(tags[i % 7], tags[(i + 1 + i % 3) % 7], i);
}

/* What all entities hold after some frames; values may depend on nothing but the frames. */
static void run_frames(uint32_t thread_count, bool tidies_between, bool tidies_in_frame,
                       uint64_t out_values[FRAME_ROWS])
{
    open_bare();
    create_frame_rows();
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = open_schedule(&tidies_in_frame);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        if (tidies_between && frame % 3 != 0) remove_empty();
        if (tidies_between && frame % 4 == 2) trim();
        must_run(schedule, jobs);
        assert_valid(world);
    }
    for (uint32_t i = 0; i < FRAME_ROWS; i++)
        out_values[i] = number_of(entities[i]);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_bare();
}

Test(empty_archetypes_in_frames, frames_give_the_same_with_it_as_without)
{
    static uint64_t expected[FRAME_ROWS], found[FRAME_ROWS];
    close_bare();
    run_frames(0, false, false, expected);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        for (uint32_t kind = 1; kind < 8; kind += 1 + kind / 4) {
            empty_archetype_checks_per_sync = (kind & 4) != 0 ? 1 + 7 * i : 0;
            run_frames(pool_threads[i], kind & 1, kind & 2, found);
            cr_assert_eq(memcmp(found, expected, sizeof found), 0, "%u threads, kind %u", pool_threads[i],
                         kind);
        }
}

/* The archetype that makes two systems conflict goes and comes back. */
Test(empty_archetypes_in_frames, conflicts_are_seen_again)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system first = add_counter(schedule, "first", tags[0], &steps[0]);
    quern_system second = add_counter(schedule, "second", tags[1], &steps[1]);
    quern_entity alone = create_with(tags[0], none, 0), other = create_with(tags[1], none, 0);
    must_run(schedule, NULL);
    cr_assert_not(quern_schedule_has_edge(schedule, first, second));
    for (uint32_t round = 0; round < 3; round++) {
        quern_entity both = create_with(tags[0], tags[1], 1);
        must_run(schedule, NULL);
        cr_assert(quern_schedule_has_edge(schedule, first, second), "round %u", round);
        cr_assert_eq(number_of(both), (1 * 3 + 1) * 3 + 2u);
        must_stay_valid(quern_entity_destroy(world, both));
        must_run(schedule, NULL);
        cr_assert_eq(remove_empty(), 1u);
        if (round == 1) must_run(schedule, NULL);
    }
    cr_assert_gt(number_of(alone), 0u);
    cr_assert_gt(number_of(other), 0u);
    quern_schedule_destroy(schedule);
    close_bare();
}

/* An archetype that nobody had before comes in the place of one that went. */
Test(empty_archetypes_in_frames, conflicts_over_new_archetypes_are_seen_too)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system first = add_counter(schedule, "first", tags[0], &steps[0]);
    quern_system second = add_counter(schedule, "second", tags[1], &steps[1]);
    quern_system third = add_counter(schedule, "third", tags[2], &steps[2]);
    create_row_of_sets(TAG_COUNT);
    must_run(schedule, NULL);
    must_stay_valid(quern_entity_destroy_many(world, entities, 3));
    remove_empty();
    quern_entity both = create_with(tags[1], tags[2], 1);
    must_run(schedule, NULL);
    cr_assert(quern_schedule_has_edge(schedule, second, third));
    cr_assert_not(quern_schedule_has_edge(schedule, first, second));
    cr_assert_eq(number_of(both), (1 * 3 + 2) * 3 + 3u);
    quern_entity three = create_with(tags[0], tags[1], 1);
    remove_empty();
    must_run(schedule, NULL);
    cr_assert(quern_schedule_has_edge(schedule, first, second));
    cr_assert_eq(number_of(three), (1 * 3 + 1) * 3 + 2u);
    quern_schedule_destroy(schedule);
    close_bare();
}

/* Two schedules on one world, one of which is destroyed: the world must not know its systems any more. */
Test(empty_archetypes_in_frames, schedules_come_and_go)
{
    quern_schedule *kept = setup_schedule(world);
    add_counter(kept, "kept", tags[0], &steps[0]);
    for (uint32_t round = 0; round < 5; round++) {
        quern_schedule *passing = setup_schedule(world);
        add_counter(passing, "passing", tags[0], &steps[1]);
        quern_entity entity = create_with(tags[0], tags[1 + round], 0);
        if (round % 2 == 0) must_run(passing, NULL);
        must_run(kept, NULL);
        must_stay_valid(quern_entity_destroy(world, entity));
        if (round % 3 == 0) remove_empty();
        quern_schedule_destroy(passing);
        remove_empty();
        must_run(kept, NULL);
    }
    quern_schedule_destroy(kept);
    close_bare();
}

/* ---------------------------------------------------------------------------------- random programs */

enum { SEED_COUNT = 4, STEP_COUNT = 6000 };

static program run;

static void tidy_program(void)
{
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, random_chance(&run.random, 50));
    uint64_t before = quern_world_hash(run.model.world);
    quern_result result = random_chance(&run.random, 50)
                              ? quern_world_trim(run.model.world)
                              : quern_world_remove_empty_archetypes(run.model.world, NULL);
    if (run.allocator == NULL) cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
    if (stats_of_world(run.model.world).entity_count > 0)
        cr_assert_eq(quern_world_hash(run.model.world), before);
    assert_valid(run.model.world);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, false);
}

static void run_program(uint64_t seed, failing_allocator *failing)
{
    program_init(&run, seed, failing, 40);
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        program_step(&run);
        if (step % 60 == 0) tidy_program();
        if (step % 500 == 0) program_check(&run);
    }
    program_release(&run);
}

Test(empty_archetypes, among_other_calls_leaves_what_the_model_says)
{
    runs_on_one_thread();
    close_bare();
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_program(seed, NULL);
}

Test(empty_archetypes, among_calls_that_lack_memory_leaves_it_too, .timeout = 300)
{
    runs_on_one_thread();
    close_bare();
    for (uint64_t seed = 50; seed < 52; seed++) {
        failing_allocator *failing = failing_allocator_create();
        run_program(seed, failing);
        failing_allocator_close(failing);
    }
}

/* ------------------------------------------------------------------------------- at sync points, a few */

/* One sync point for each frame. */
static quern_schedule *open_syncing(uint32_t per_sync)
{
    close_bare();
    empty_archetype_checks_per_sync = per_sync;
    open_bare();
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("idle", idle_run);
    setup_system(schedule, &def);
    return schedule;
}

/* How many frames it takes until so few archetypes are left. */
static uint32_t frames_until(quern_schedule *schedule, uint32_t archetype_count)
{
    for (uint32_t frame = 0; frame < 1000; frame++) {
        if (stats().archetype_count <= archetype_count) return frame;
        must_run(schedule, NULL);
    }
    return UINT32_MAX;
}

Test(empty_archetypes_in_frames, nothing_is_taken_out_unless_the_world_asks_for_it)
{
    quern_schedule *schedule = open_syncing(0);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT));
    uint32_t count = stats().archetype_count;
    for (uint32_t frame = 0; frame < 50; frame++)
        must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, count);
    quern_schedule_destroy(schedule);
    close_bare();
}

Test(empty_archetypes_in_frames, what_is_left_goes_at_later_sync_points_and_never_more_than_a_few_at_once)
{
    quern_schedule *schedule = open_syncing(3);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT - 2));
    quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    uint64_t hash = quern_world_hash(world);
    uint32_t before = stats().archetype_count;
    for (uint32_t frame = 0; frame < 60; frame++) {
        must_run(schedule, NULL);
        uint32_t now = stats().archetype_count;
        cr_assert(now <= before && before - now <= 3, "%u archetypes after %u", now, before);
        cr_assert(frame >= 8 || now == before, "gone in frame %u", frame);
        cr_assert_eq(quern_query_count(query), 2u);
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
        before = now;
    }
    cr_assert_eq(before, 3u, "the one without components and two with entities");
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
    close_bare();
}

Test(empty_archetypes_in_frames, what_is_empty_for_a_few_sync_points_stays)
{
    quern_schedule *schedule = open_syncing(UINT32_MAX);
    quern_entity entity = create_with(tags[0], none, 1);
    uint32_t index = index_of((quern_component[]){number, tags[0]}, 2);
    for (uint32_t round = 0; round < 10; round++) {
        must_stay_valid(quern_entity_destroy(world, entity));
        for (uint32_t frame = 0; frame < 7; frame++)
            must_run(schedule, NULL);
        cr_assert_eq(index_of((quern_component[]){number, tags[0]}, 2), index, "round %u", round);
        entity = create_with(tags[0], none, 1);
        must_run(schedule, NULL);
    }
    must_stay_valid(quern_entity_destroy(world, entity));
    cr_assert_leq(frames_until(schedule, 1), 10u);
    quern_schedule_destroy(schedule);
    close_bare();
}

/* Every frame some entities with sets that there never were. */
enum { NEW_PER_FRAME = 256, CHANGING_FRAMES = 280, SET_BITS = 17 };

static quern_component set_tags[SET_BITS];
static uint32_t next_set;

static void create_new_sets(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < NEW_PER_FRAME; i++) {
        quern_component chosen[SET_BITS + 1] = {number};
        uint32_t count = 1;
        next_set++;
        for (uint32_t t = 0; t < SET_BITS; t++)
            if (next_set >> t & 1) chosen[count++] = set_tags[t];
        cr_assert(quern_commands_create_with(commands, chosen, NULL, count).bits, "%s",
                  quern_error_message());
    }
}

static void destroy_old(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        quern_commands_destroy(quern_context_commands(context), view->entities[i]);
}

Test(empty_archetypes_in_frames, a_world_of_ever_new_archetypes_stays_below_the_limit, .timeout = 600)
{
    runs_on_one_thread();
    close_bare();
    empty_archetype_checks_per_sync = 4 * NEW_PER_FRAME;
    open_bare();
    for (uint32_t t = 0; t < SET_BITS; t++)
        set_tags[t] = setup_tag(world, (char[]){'s', (char)('a' + t), '\0'});
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("destroy", destroy_old);
    def.terms[0] = quern_term_read(number);
    def.begin = create_new_sets;
    setup_system(schedule, &def);
    uint32_t most = 0;
    for (uint32_t frame = 0; frame < CHANGING_FRAMES; frame++) {
        must_run(schedule, NULL);
        if (stats().archetype_count > most) most = stats().archetype_count;
        cr_assert_eq(stats().entity_count, (uint64_t)NEW_PER_FRAME);
        if (frame % 40 == 0) assert_valid(world);
    }
    cr_assert_gt(next_set, (uint32_t)QUERN_MAX_ARCHETYPES, "there would have been too many");
    cr_assert_lt(most, 30u * NEW_PER_FRAME, "%u at a time", most);
    quern_schedule_destroy(schedule);
    close_bare();
}

/* A query that has not seen all needs memory before anything can be taken out. */
Test(empty_archetypes_in_frames, without_memory_archetypes_stay_for_another_time)
{
    quern_schedule *schedule = open_syncing(UINT32_MAX);
    quern_query *queries[QUERY_COUNT];
    open_queries(queries);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT / 2));
    for (uint32_t frame = 0; frame < 8; frame++)
        must_run(schedule, NULL);
    uint32_t count = stats().archetype_count;
    failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_OK, "%s", quern_error_message());
    failing_allocator_heal(allocator);
    assert_valid(world);
    cr_assert_eq(stats().archetype_count, count);
    cr_assert_leq(frames_until(schedule, count - TAG_COUNT / 2), 3u);
    check_queries(queries);
    close_queries(queries);
    quern_schedule_destroy(schedule);
    close_bare();
}

/* What was to go when memory lacked, and is filled again before its next turn. */
Test(empty_archetypes_in_frames, what_could_not_go_without_memory_may_be_filled_again)
{
    quern_schedule *schedule = open_syncing(2);
    quern_query *queries[QUERY_COUNT];
    open_queries(queries);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT));
    must_run(schedule, NULL);
    uint32_t count = stats().archetype_count;
    failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1);
    for (uint32_t frame = 0; frame < 4 * TAG_COUNT; frame++)
        must_run(schedule, NULL);
    failing_allocator_heal(allocator);
    cr_assert_eq(stats().archetype_count, count);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT / 2));
    cr_assert_neq(frames_until(schedule, count - TAG_COUNT / 2), UINT32_MAX);
    for (uint32_t i = 0; i < TAG_COUNT; i++)
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), i >= TAG_COUNT / 2, "entity %u", i);
    assert_valid(world);
    close_queries(queries);
    quern_schedule_destroy(schedule);
    close_bare();
}
