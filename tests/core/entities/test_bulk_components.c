/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/entities/bulk_scene.h"

/* Adding and removing a component of all matches of a query. */

static uint64_t count_all(quern_component component)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(component)}, 1);
    uint64_t count = quern_query_count(query);
    quern_query_destroy(query);
    return count;
}

TestSuite(query_add, .init = open_bulk, .fini = close_bulk);
TestSuite(query_remove, .init = open_bulk, .fini = close_bulk);

/* -------------------------------------------------------------------------------------- query add */

Test(query_add, adds_component_where_it_is_missing)
{
    create_mixed();
    quern_query *query = query_all(number);
    vec3 value = {1.0f, 2.0f, 3.0f};
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, point, &value, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    for (uint32_t i = 0; i < MANY; i++) {
        const vec3 *found = quern_entity_get(world, entities[i], point);
        cr_assert_not_null(found, "entity %u", i);
        cr_assert_eq(found->y, i / 2 % 2 == 0 ? 0.0f : 2.0f, "entity %u", i);
        cr_assert_eq(quern_entity_has(world, entities[i], tracked_type), i / 2 % 2 == 1);
        cr_assert_eq(quern_entity_has(world, entities[i], frozen), i % 2 == 1);
    }
    assert_numbered(0, MANY);
    must_stay_valid(quern_entity_add_matching(query, point, &value, &count));
    cr_assert_eq(count, 0u);
}

Test(query_add, null_value_constructs)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_add_matching(query, point, &(vec3){1.0f, 1.0f, 1.0f}, NULL));
    must_stay_valid(quern_entity_remove_matching(query, point, NULL));
    must_stay_valid(quern_entity_add_matching(query, point, NULL, NULL));
    must_stay_valid(quern_entity_add_matching(query, tracked_type, NULL, NULL));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(((vec3 *)quern_entity_get(world, entities[i], point))->x, 0.0f, "used memory shows");
        cr_assert_eq(payload_of(entities[i]), (uint64_t)TRACKED_DEFAULT);
    }
}

Test(query_add, adds_tags)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, frozen, NULL, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    cr_assert_eq(count_all(frozen), (uint64_t)MANY);
    assert_numbered(0, MANY);
}

Test(query_add, moves_existing_values_and_copies_new_one)
{
    create_numbered(0, MANY, &tracked_type, 1);
    quern_component second = tracked_register(world, "second", &counts);
    tracked value;
    tracked_construct(&value, 9, &counts);
    tracked_counts before = counts;
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_add_matching(query, second, &value, NULL));
    cr_assert_eq(counts.copied_count - before.copied_count, (uint64_t)MANY);
    cr_assert_eq(counts.moved_count - before.moved_count, (uint64_t)MANY);
    cr_assert_eq(counts.destroyed_count, before.destroyed_count);
    for (uint32_t i = 0; i < MANY; i++) {
        const tracked *found = quern_entity_get(world, entities[i], second);
        cr_assert(tracked_is_live(found) && found->payload == 9);
        cr_assert_eq(payload_of(entities[i]), (uint64_t)TRACKED_DEFAULT);
    }
    tracked_destroy(&value, &counts);
}

/* New rows are appended after existing rows, from the middle of a chunk on. */
Test(query_add, appends_to_existing_rows)
{
    quern_component others[] = {frozen};
    create_numbered(0, 700, others, 1);
    create_numbered(700, MANY - 700, NULL, 0);
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, frozen, NULL, &count));
    cr_assert_eq(count, MANY - 700u);
    assert_numbered(0, MANY);
    static quern_entity rows[MANY];
    cr_assert_eq(list_rows(query, rows), (uint32_t)MANY);
    cr_assert_eq(memcmp(rows, entities, sizeof rows), 0, "rows changed their order");
}

Test(query_add, value_may_be_in_the_world)
{
    create_mixed();
    quern_component armour = setup_component(world, "armour", 8, 8);
    for (uint32_t chosen = 0; chosen < 4; chosen++) {
        quern_query *query = query_all(number);
        must_stay_valid(quern_entity_add_matching(query, armour,
                                                  quern_entity_get(world, entities[chosen], number), NULL));
        for (uint32_t i = 0; i < MANY; i++)
            cr_assert_eq(*(uint64_t *)quern_entity_get(world, entities[i], armour), chosen);
        must_stay_valid(quern_entity_remove_matching(query, armour, NULL));
        quern_query_destroy(query);
    }
}

/* The value moves with its entity, possibly before its last copy. */
Test(query_add, value_with_hooks_may_be_in_the_world)
{
    create_mixed();
    quern_component second = tracked_register(world, "second", &counts);
    quern_query *query = query_all(number);
    tracked *value = quern_entity_get(world, entities[2], tracked_type);
    value->payload = 1234;
    must_stay_valid(quern_entity_add_matching(query, second, value, NULL));
    cr_assert_eq(counts.broken_count, 0u, "a value was copied after it had been moved away");
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(((tracked *)quern_entity_get(world, entities[i], second))->payload, 1234u, "entity %u",
                     i);
}

Test(query_add, value_without_copy_hook_is_refused)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    owned value;
    owned_construct(&value, 5, &owned_live);
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_matching(query, owned_type, &value, NULL));
    owned_destroy(&value, &owned_live);
    must_stay_valid(quern_entity_add_matching(query, owned_type, NULL, NULL));
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_null(((owned *)quern_entity_get(world, entities[i], owned_type))->box);
}

Test(query_add, failure_of_one_match_changes_no_match)
{
    quern_component large = setup_component(world, "large", 9000, 8);
    quern_component larger = setup_component(world, "larger", 9500, 4);
    create_numbered(0, 100, NULL, 0);
    create_numbered(100, 20, &tracked_type, 1);
    create_numbered(120, 20, &large, 1);
    create_numbered(140, 20, &frozen, 1);
    quern_query *query = query_all(number);
    uint64_t count = 77;
    must_refuse(COMPONENT_TOO_LARGE, world, quern_entity_add_matching(query, larger, NULL, &count));
    cr_assert_eq(count, 77u);
    cr_assert_eq(count_all(larger), 0u);
    must_stay_valid(quern_entity_add_matching(query, point, NULL, &count));
    cr_assert_eq(count, 160u);
    assert_numbered(0, 160);
}

Test(query_add, the_251st_component_is_refused)
{
    static quern_component tags[QUERN_MAX_ENTITY_COMPONENTS];
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                                            (char)('0' + i % 10), '\0'});
    must_stay_valid(quern_entity_create_many(world, tags, NULL, 5, 100, entities));
    must_stay_valid(
        quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS, 100, entities));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(tags[0])}, 1);
    must_refuse(TOO_MANY_COMPONENTS, world, quern_entity_add_matching(query, number, NULL, NULL));
    cr_assert_eq(count_all(number), 0u);
}

/* ----------------------------------------------------------------------------------- query remove */

Test(query_remove, removes_component_where_it_is_present)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_remove_matching(query, tracked_type, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    must_stay_valid(quern_entity_remove_matching(query, frozen, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    must_stay_valid(quern_entity_remove_matching(query, frozen, &count));
    cr_assert_eq(count, 0u);
    assert_numbered(0, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(quern_entity_has(world, entities[i], point), i / 2 % 2 == 0);
}

/* The query has no match left afterwards. */
Test(query_remove, may_remove_component_of_the_query)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_remove_matching(query, number, &count));
    cr_assert_eq(count, (uint64_t)MANY);
    cr_assert_eq(quern_query_count(query), 0u);
    cr_assert_eq(alive_count(), (uint64_t)MANY);
}

Test(query_remove, may_leave_entities_without_components)
{
    must_stay_valid(quern_entity_create_many(world, &tracked_type, NULL, 1, MANY, entities));
    quern_query *query = query_all(tracked_type);
    must_stay_valid(quern_entity_remove_matching(query, tracked_type, NULL));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
}
