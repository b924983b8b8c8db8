/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/core/entities/archetypes_scene.h"

/* Memory that quern_world_trim releases, and statistics of archetypes. */

TestSuite(trim, .init = open_bare, .fini = close_bare);
TestSuite(archetype_stats, .init = open_bare, .fini = close_bare);

/* -------------------------------------------------------------------------------------------- trim */

Test(trim, releases_unused_memory)
{
    uint64_t at_first = failing_allocator_outstanding_bytes(allocator);
    create_crowd();
    must_stay_valid(quern_entity_destroy_many(world, entities, CROWD));
    trim();
    cr_assert_eq(stats().chunk_free_count, 0u);
    cr_assert_eq(stats().chunk_count, 0u);
    cr_assert_eq(stats().held_bytes, 0u);
    uint64_t kept = failing_allocator_outstanding_bytes(allocator) - at_first;
    cr_assert_lt(kept, 64u << 10, "%llu bytes are held without entities", (unsigned long long)kept);
    create_crowd();
    cr_assert_eq(number_of(entities[CROWD - 1]), CROWD - 1u);
}

Test(trim, keeps_rows_in_place)
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
}

/* Small archetypes each retain a chunk for the next row. */
Test(trim, releases_spare_chunks_of_small_archetypes)
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
}

Test(trim, of_an_empty_world_does_nothing)
{
    trim();
    setup_entity(world);
    trim();
    cr_assert_eq(stats().chunk_count, 1u);
}

Test(trim, keeps_iterators_valid)
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
}

Test(trim, fails_without_a_world_or_in_a_frame)
{
    must_refuse(NULL_ARGUMENT, world, quern_world_trim(NULL));
    world->locked = true;
    must_refuse(WORLD_LOCKED, world, quern_world_trim(world));
    world->locked = false;
}

/* ------------------------------------------------------------------------------------------- stats */

Test(archetype_stats, describe_an_archetype)
{
    quern_component components[] = {point, number, tags[3]};
    must_stay_valid(quern_entity_create_many(world, components, NULL, 3, MANY, NULL));
    setup_entity(world);
    cr_assert(has_exactly(0, NULL, 0));
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
}

Test(archetype_stats, sum_to_those_of_the_world)
{
    uint64_t entity_count = 0, chunk_count = 0, used_bytes = 0;
    create_crowd();
    for (uint32_t i = 0; i < MANY; i++)
        create_with(tags[i % TAG_COUNT], none, i);
    for (uint32_t i = 0; i < stats().archetype_count; i++) {
        quern_archetype_stats found = stats_of(i);
        entity_count += found.entity_count;
        chunk_count += found.chunk_count;
        used_bytes += found.entity_count * (found.row_bytes + sizeof(quern__record));
    }
    cr_assert_eq(entity_count, stats().entity_count);
    cr_assert_eq(chunk_count, stats().chunk_count);
    cr_assert_eq(used_bytes, stats().used_bytes);
}

Test(archetype_stats, writes_at_most_the_capacity_of_components)
{
    create_with(tags[0], tags[1], 1);
    uint32_t index = index_of((quern_component[]){number, tags[0], tags[1]}, 3);
    quern_component found[4] = {{1}, {1}, {1}, {1}};
    cr_assert_eq(quern_world_list_archetype_components(world, index, NULL, 0), 3u);
    cr_assert_eq(quern_world_list_archetype_components(world, index, found, 2), 3u);
    cr_assert_eq(found[2].bits, 1u, "more were written than there is room for");
    cr_assert_eq(quern_world_list_archetype_components(world, index, found, 4), 3u);
    cr_assert_neq(found[2].bits, 1u);
    cr_assert_eq(found[3].bits, 1u);
}

Test(archetype_stats, out_of_range_are_refused)
{
    quern_archetype_stats found;
    quern_component component;
    uint32_t count = stats().archetype_count;
    must_refuse(INVALID_ARGUMENT, world, quern_world_get_archetype_stats(world, count, &found));
    must_refuse(INVALID_ARGUMENT, world, quern_world_get_archetype_stats(world, UINT32_MAX, &found));
    must_refuse(NULL_ARGUMENT, world, quern_world_get_archetype_stats(NULL, 0, &found));
    must_refuse(NULL_ARGUMENT, world, quern_world_get_archetype_stats(world, 0, NULL));
    assert_refused_value(world, quern_world_list_archetype_components(world, count, &component, 1));
    assert_refused_value(world, quern_world_list_archetype_components(NULL, 0, &component, 1));
    refusal before = refusal_begin(world);
    cr_assert_eq(quern_world_list_archetype_components(world, 0, NULL, 0), 0u);
    cr_assert_not(refusal_has_message(&before), "an answer is no error");
}
