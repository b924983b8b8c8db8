/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/entities/bulk_scene.h"
#include "tests/support/random.h"

/* Destroying lists of entities, and all matches of a query. */

TestSuite(destroy_many, .init = open_bulk);
TestSuite(query_destroy, .init = open_bulk, .fini = close_bulk);

/* ------------------------------------------------------------------------------------ destroy many */

Test(destroy_many, keeps_other_entities)
{
    static quern_entity list[MANY];
    uint32_t count = 0;
    create_mixed();
    for (uint32_t i = MANY; i-- > 0;)
        if (i % 3 != 0) list[count++] = entities[i];
    must_stay_valid(quern_entity_destroy_many(world, list, count));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), i % 3 == 0);
        if (i % 3 == 0) cr_assert_eq(number_of(entities[i]), i);
    }
    cr_assert_eq(alive_count(), (uint64_t)MANY / 3);
    close_bulk();
}

Test(destroy_many, list_may_contain_an_entity_twice)
{
    create_numbered(0, MANY, &tracked_type, 1);
    quern_entity list[] = {entities[5], entities[7], entities[5], entities[5], entities[7], entities[0]};
    must_stay_valid(quern_entity_destroy_many(world, list, 6));
    cr_assert_eq(alive_count(), (uint64_t)MANY - 3);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)MANY - 3);
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 3, list));
    cr_assert_eq(alive_count(), (uint64_t)MANY);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_lt(quern_entity_index(list[i]), (uint32_t)MANY);
    close_bulk();
}

Test(destroy_many, count_zero_does_nothing)
{
    create_numbered(0, 10, NULL, 0);
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_destroy_many(world, NULL, 0));
    must_stay_valid(quern_entity_destroy_many(world, entities, 0));
    cr_assert_eq(quern_world_hash(world), before);
    close_bulk();
}

static void check_bad_entry(quern_entity bad, quern_result expected)
{
    static const uint32_t places[] = {0, 5, 9};
    for (uint32_t p = 0; p < 3; p++) {
        quern_entity list[10];
        memcpy(list, entities, sizeof list);
        list[places[p]] = bad;
        assert_refused(world, expected, quern_entity_destroy_many(world, list, 10));
    }
    cr_assert_eq(alive_count(), (uint64_t)MANY);
}

Test(destroy_many, wrong_handle_destroys_nothing)
{
    quern_entity gone = setup_entity(world);
    must_stay_valid(quern_entity_destroy(world, gone));
    create_numbered(0, MANY, &tracked_type, 1);
    check_bad_entry(quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
    check_bad_entry(gone, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry((quern_entity){entities[0].bits | 0xFFFFFF00u}, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry(entity_of_other_world(entities[3]), QUERN_ERROR_FOREIGN_ENTITY);
    check_bad_entry(entity_provisional(3), QUERN_ERROR_PROVISIONAL_ENTITY);
    must_refuse(NULL_ARGUMENT, world, quern_entity_destroy_many(world, NULL, 1));
    must_refuse(NULL_ARGUMENT, world, quern_entity_destroy_many(NULL, entities, 1));
    cr_assert_eq(counts.destroyed_count, 0u);
    close_bulk();
}

/* Returns the first MANY entities in a random order, which is the same at every call. */
static void shuffled(uint32_t order[MANY])
{
    random_source random = {.state = 5};
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t j = random_below(&random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static uint64_t hash_after_destroying(bool at_once)
{
    static uint32_t order[MANY];
    static quern_entity list[MANY];
    open_bulk();
    create_mixed();
    shuffled(order);
    for (uint32_t i = 0; i < MANY / 2; i++) {
        list[i] = entities[order[i]];
        if (!at_once) must_stay_valid(quern_entity_destroy(world, list[i]));
    }
    if (at_once) must_stay_valid(quern_entity_destroy_many(world, list, MANY / 2));
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, MANY / 4, NULL));
    uint64_t hash = quern_world_hash(world);
    close_bulk();
    return hash;
}

Test(destroy_many, destroys_in_list_order)
{
    close_bulk();
    cr_assert_eq(hash_after_destroying(true), hash_after_destroying(false));
}

/* ------------------------------------------------------------------------------------ query destroy */

Test(query_destroy, destroys_matches_only)
{
    create_mixed();
    quern_term terms[] = {quern_term_with(tracked_type), quern_term_without(frozen)};
    quern_query *query = setup_query(world, terms, 2);
    uint64_t expected = quern_query_count(query), count = 77;
    cr_assert_eq(expected, (uint64_t)MANY / 4);
    must_stay_valid(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, expected);
    cr_assert_eq(quern_query_count(query), 0u);
    for (uint32_t i = 0; i < MANY; i++) {
        bool matched = i % 4 == 2;
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), !matched, "entity %u", i);
        if (!matched) cr_assert_eq(number_of(entities[i]), i);
    }
    must_stay_valid(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, 0u);
}

Test(query_destroy, destroys_matches_in_all_archetypes)
{
    create_mixed();
    quern_query *query = query_all(number), *left = query_all(tracked_type);
    must_stay_valid(quern_entity_destroy_matching(query, NULL));
    cr_assert_eq(alive_count(), 0u);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(quern_query_count(left), 0u);
    create_mixed();
    cr_assert_eq(quern_query_count(query), (uint64_t)MANY);
    assert_numbered(0, MANY);
}

Test(query_destroy, handles_become_stale)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_destroy_matching(query, NULL));
    static quern_entity again[MANY];
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, MANY, again));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_not(quern_entity_is_alive(world, entities[i]));
        cr_assert_lt(quern_entity_index(again[i]), (uint32_t)MANY, "slots are reused");
    }
}
