/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/entity.h"
#include "tests/support/fixture.h"

#include <stddef.h>
#include <string.h>

static quern_component position;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
}

TestSuite(entity, .init = open_world, .fini = close_world);

static void must_destroy(quern_entity entity)
{
    must(quern_entity_destroy(world, entity));
}

/* ---------------------------------------------------------------------------------------- lifetime */

Test(entity, is_alive_from_create_to_destroy)
{
    quern_entity entity = setup_entity(world);
    cr_assert(quern_entity_is_alive(world, entity));
    cr_assert_eq(stats_of_world(world).entity_count, 1u);
    must_destroy(entity);
    cr_assert_not(quern_entity_is_alive(world, entity));
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}

Test(entity, handles_are_distinct_and_never_null)
{
    enum { COUNT = 10000 };
    static quern_entity entities[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        entities[i] = setup_entity(world);
        cr_assert_not(quern_entity_is_null(entities[i]));
        cr_assert_not(quern_entity_is_provisional(entities[i]));
        cr_assert_gt(quern_entity_generation(entities[i]), 0u);
        if (i > 0) cr_assert_not(quern_entity_equal(entities[i], entities[i - 1]));
    }
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
    assert_valid(world);
}

Test(entity, a_recycled_slot_has_another_generation)
{
    quern_entity first = setup_entity(world);
    must_destroy(first);
    quern_entity second = setup_entity(world);
    cr_assert_eq(quern_entity_index(second), quern_entity_index(first));
    cr_assert_neq(quern_entity_generation(second), quern_entity_generation(first));
    cr_assert_not(quern_entity_is_alive(world, first));
    cr_assert(quern_entity_is_alive(world, second));
}

Test(entity, free_slots_are_reused_first)
{
    enum { COUNT = 100 };
    quern_entity entities[COUNT];
    for (uint32_t round = 0; round < 50; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            entities[i] = setup_entity(world);
            cr_assert_lt(quern_entity_index(entities[i]), (uint32_t)COUNT);
        }
        for (uint32_t i = 0; i < COUNT; i++)
            must_destroy(entities[i]);
    }
    assert_valid(world);
}

/* ------------------------------------------------------------------------------------ wrong handles */

/* Checks that every call with an entity argument refuses this handle. */
static void assert_refused_everywhere(quern_entity entity, quern_result expected)
{
    vec3 value = {1, 2, 3};
    assert_refused(world, expected, quern_entity_destroy(world, entity));
    assert_refused(world, expected, quern_entity_add(world, entity, position, &value));
    assert_refused(world, expected, quern_entity_add(world, entity, position, NULL));
    assert_refused(world, expected, quern_entity_remove(world, entity, position));
    assert_refused(world, expected, quern_entity_set(world, entity, position, &value));
    assert_refused(world, expected, quern_entity_set_if_different(world, entity, position, &value, NULL));
    assert_refused(world, expected, quern_entity_ensure(world, entity, position, NULL, NULL));
    assert_refused(world, expected, quern_entity_clear(world, entity));
    assert_refused(world, expected, quern_entity_clone(world, entity, NULL, NULL));
    assert_refused_value(world, quern_entity_get(world, entity, position));
    assert_refused_value(world, quern_entity_has(world, entity, position));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    assert_refused_value(world, quern_query_matches(query, entity));
    quern_query_destroy(query);
    cr_assert_not(quern_entity_is_alive(world, entity));
}

Test(entity, the_null_handle_is_refused_everywhere)
{
    setup_entity_with(world, &position, 1);
    assert_refused_everywhere(quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
}

Test(entity, a_stale_handle_is_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    setup_entity_with(world, &position, 1);
    must_destroy(entity);
    assert_refused_everywhere(entity, QUERN_ERROR_STALE_ENTITY);
    setup_entity_with(world, &position, 1);
    assert_refused_everywhere(entity, QUERN_ERROR_STALE_ENTITY);
}

Test(entity, a_handle_of_a_slot_never_used_is_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    quern_entity far = {entity.bits + QUERN_MAX_ENTITIES};
    quern_entity next = {entity.bits + 1};
    quern_entity later = {entity.bits + ((uint64_t)1 << 32)};
    assert_refused_everywhere(far, QUERN_ERROR_STALE_ENTITY);
    assert_refused_everywhere(next, QUERN_ERROR_STALE_ENTITY);
    assert_refused_everywhere(later, QUERN_ERROR_STALE_ENTITY);
}

Test(entity, the_next_generation_of_a_free_slot_is_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    must_destroy(entity);
    quern_entity next_life = {entity.bits + ((uint64_t)1 << 32)};
    assert_refused_everywhere(next_life, QUERN_ERROR_STALE_ENTITY);
}

Test(entity, a_foreign_handle_is_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    quern_world *other = setup_world();
    quern_entity foreign = setup_entity(other);
    assert_refused_everywhere(foreign, QUERN_ERROR_FOREIGN_ENTITY);
    assert_refused_everywhere(entity_of_other_world(entity), QUERN_ERROR_FOREIGN_ENTITY);
    quern_world_destroy(other);
}

Test(entity, a_provisional_handle_is_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    quern_entity untagged = {entity.bits & 0x00FFFFFFFFFFFFFFu};
    assert_refused_everywhere(entity_provisional(0), QUERN_ERROR_PROVISIONAL_ENTITY);
    assert_refused_everywhere(entity_provisional(7), QUERN_ERROR_PROVISIONAL_ENTITY);
    assert_refused_everywhere(untagged, QUERN_ERROR_PROVISIONAL_ENTITY);
}

/* Checks that every call with a component argument refuses this one. */
static void assert_component_refused_everywhere(quern_component component)
{
    quern_entity entity = setup_entity_with(world, &position, 1), created;
    quern_component both[] = {position, component};
    vec3 value = {1, 2, 3};
    quern_result expected = QUERN_ERROR_UNKNOWN_COMPONENT;
    assert_refused(world, expected, quern_entity_add(world, entity, component, &value));
    assert_refused(world, expected, quern_entity_remove(world, entity, component));
    assert_refused(world, expected, quern_entity_set(world, entity, component, &value));
    assert_refused(world, expected, quern_entity_set_if_different(world, entity, component, &value, NULL));
    assert_refused(world, expected, quern_entity_ensure(world, entity, component, NULL, NULL));
    assert_refused(world, expected, quern_entity_create_with(world, &component, NULL, 1, &created));
    assert_refused(world, expected, quern_entity_create_with(world, both, NULL, 2, &created));
    assert_refused_value(world, quern_entity_get(world, entity, component));
    assert_refused_value(world, quern_entity_has(world, entity, component));
}

Test(entity, an_unknown_component_is_refused_everywhere)
{
    quern_world *other = setup_world();
    assert_component_refused_everywhere((quern_component){0});
    assert_component_refused_everywhere(component_unregistered(position));
    assert_component_refused_everywhere(component_of_other_world(position));
    assert_component_refused_everywhere((quern_component){position.bits + 1});
    assert_component_refused_everywhere((quern_component){position.bits & 0xFF000000u});
    assert_component_refused_everywhere(setup_component(other, "position", sizeof(vec3), 4));
    quern_world_destroy(other);
}

Test(entity, null_arguments_are_refused_everywhere)
{
    quern_entity entity = setup_entity_with(world, &position, 1), created;
    vec3 value = {1, 2, 3};
    quern_result expected = QUERN_ERROR_NULL_ARGUMENT;
    assert_refused(world, expected, quern_entity_create(NULL, &created));
    assert_refused(world, expected, quern_entity_create_with(NULL, &position, NULL, 1, &created));
    assert_refused(world, expected, quern_entity_create_with(world, NULL, NULL, 1, &created));
    assert_refused(world, expected, quern_entity_destroy(NULL, entity));
    assert_refused(world, expected, quern_entity_add(NULL, entity, position, &value));
    assert_refused(world, expected, quern_entity_remove(NULL, entity, position));
    assert_refused(world, expected, quern_entity_set(NULL, entity, position, &value));
    assert_refused(world, expected, quern_entity_set(world, entity, position, NULL));
    assert_refused(world, expected, quern_world_validate(NULL));
    assert_refused_value(world, quern_entity_get(NULL, entity, position));
    assert_refused_value(world, quern_entity_has(NULL, entity, position));
    cr_assert_not(quern_entity_is_alive(NULL, entity));
    assert_refused(world, expected, quern_entity_create(world, NULL));
}

/* ---------------------------------------------------------------------------------------- worlds */

/* -------------------------------------------------------------------- calls that look before they change */

/* Counts the views of a query with a change filter for positions since its last iteration. */
static uint32_t changed_views(quern_query *query)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        count++;
    return count;
}

typedef struct padded {
    uint8_t letter;
    uint32_t number;
} padded;

Test(entity, an_equal_value_changes_nothing)
{
    const quern_entity entity = setup_entity(world);
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_read(position))}, 1);
    bool is_changed = false;
    vec3 value = {1, 2, 3};
    must(quern_entity_set_if_different(world, entity, position, &value, &is_changed));
    cr_expect(is_changed, "the component was missing");
    cr_expect_eq(changed_views(query), 1u);
    must(quern_entity_set_if_different(world, entity, position, &value, &is_changed));
    cr_expect_not(is_changed);
    cr_expect_eq(changed_views(query), 0u);
    value.z = 4;
    must(quern_entity_set_if_different(world, entity, position, &value, &is_changed));
    cr_expect(is_changed);
    cr_expect_eq(changed_views(query), 1u);
    must(quern_entity_set_if_different(world, entity, position, &value, NULL));
    cr_expect_eq(((vec3 *)quern_entity_get(world, entity, position))->z, 4);
    is_changed = true;
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_set_if_different(world, entity, position, NULL, &is_changed));
    cr_expect_not(is_changed);
}

Test(entity, values_are_compared_by_fields_where_fields_are_described)
{
    quern_component component =
        make_component(world, .name = "padded", .size_bytes = sizeof(padded), .alignment_bytes = 4,
                       .fields = {{"letter", QUERN_FIELD_U8, offsetof(padded, letter), .count = 1},
                                  {"number", QUERN_FIELD_U32, offsetof(padded, number), .count = 1}});
    const quern_entity entity = setup_entity(world);
    padded a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0xFF, sizeof b);
    a.letter = b.letter = 'x';
    a.number = b.number = 7;
    bool is_changed;
    must(quern_entity_set_if_different(world, entity, component, &a, &is_changed));
    cr_expect(is_changed);
    must(quern_entity_set_if_different(world, entity, component, &b, &is_changed));
    cr_expect_not(is_changed, "padding is no value");
    b.number = 8;
    must(quern_entity_set_if_different(world, entity, component, &b, &is_changed));
    cr_expect(is_changed);
}

Test(entity, tags_and_targets_are_set_once)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity entity = setup_entity(world), first = setup_entity(world),
                       second = setup_entity(world);
    quern_relation owner, likes;
    owner = make_relation(world, .name = "owner");
    likes = make_relation(world, .name = "likes", .many = true);
    bool is_changed;
    must(quern_entity_set_if_different(world, entity, tag, NULL, &is_changed));
    cr_expect(is_changed);
    must(quern_entity_set_if_different(world, entity, tag, NULL, &is_changed));
    cr_expect_not(is_changed);
    const quern_component target = quern_relation_component(owner), many = quern_relation_component(likes);
    must(quern_entity_set_if_different(world, entity, target, &first, &is_changed));
    cr_expect(is_changed);
    must(quern_entity_set_if_different(world, entity, target, &first, &is_changed));
    cr_expect_not(is_changed);
    must(quern_entity_set_if_different(world, entity, target, &second, &is_changed));
    cr_expect(is_changed);
    cr_expect(quern_entity_equal(quern_entity_target(world, entity, owner), second));
    must(quern_entity_relate(world, entity, likes, first));
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_entity_set_if_different(world, entity, many, NULL, &is_changed));
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_entity_ensure(world, entity, target, NULL, &is_changed));
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_entity_ensure(world, entity, many, NULL, &is_changed));
}

Test(entity, a_component_is_ensured)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity entity = setup_entity(world);
    bool is_added;
    void *value;
    must(quern_entity_ensure(world, entity, position, &value, &is_added));
    cr_assert_eq(value, quern_entity_get(world, entity, position));
    cr_expect(is_added);
    cr_expect_eq(((vec3 *)value)->y, 0);
    ((vec3 *)value)->y = 5;
    must(quern_entity_ensure(world, entity, position, &value, &is_added));
    cr_expect_not(is_added);
    cr_expect_eq(((vec3 *)value)->y, 5);
    must(quern_entity_ensure(world, entity, tag, &value, &is_added));
    cr_expect(is_added && value == NULL && quern_entity_has(world, entity, tag));
    must(quern_entity_ensure(world, entity, tag, NULL, NULL));
}

Test(entity, clearing_keeps_name_relations_and_state)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity parent = setup_entity(world), liked = setup_entity(world),
                       entity = setup_entity_with(world, (quern_component[]){position, tag}, 2),
                       child = setup_entity_with(world, &position, 1);
    quern_relation likes = make_relation(world, .name = "likes", .many = true);
    must(quern_entity_relate(world, entity, quern_world_parent(world), parent));
    must(quern_entity_relate(world, child, quern_world_parent(world), entity));
    must(quern_entity_relate(world, entity, likes, liked));
    must(quern_entity_set_name(world, entity, "name"));
    must(quern_entity_set_enabled(world, entity, false));
    for (uint32_t turn = 0; turn < 2; turn++) {
        must(quern_entity_clear(world, entity));
        cr_expect_not(quern_entity_has(world, entity, position));
        cr_expect_not(quern_entity_has(world, entity, tag));
        cr_expect_str_eq(quern_entity_name(world, entity), "name");
        cr_expect(
            quern_entity_equal(quern_entity_target(world, entity, quern_world_parent(world)), parent));
        cr_expect(quern_entity_has_target(world, entity, likes, liked));
        cr_expect_not(quern_entity_is_enabled(world, entity));
        cr_expect(quern_entity_has(world, child, position));
        assert_valid(world);
    }
    must(quern_entity_set_enabled(world, entity, true));
    cr_expect(quern_entity_is_enabled(world, child));
}

Test(entity, worlds_do_not_see_each_other)
{
    quern_world *other = setup_world();
    quern_entity here = setup_entity(world);
    quern_entity there = setup_entity(other);
    cr_assert_neq(quern_entity_world_tag(here), quern_entity_world_tag(there));
    must_destroy(here);
    cr_assert(quern_entity_is_alive(other, there));
    cr_assert_not(quern_entity_is_alive(world, there));
    quern_world_destroy(other);
}

Test(entity, the_256th_world_is_refused_until_one_is_destroyed)
{
    quern_world *worlds[QUERN_MAX_WORLDS] = {world};
    for (uint32_t i = 1; i < QUERN_MAX_WORLDS; i++)
        worlds[i] = setup_world();
    quern_world *one_more = NULL;
    must_refuse(LIMIT, world, quern_world_create(NULL, &one_more));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_WORLDS"));
    quern_world_destroy(worlds[100]);
    worlds[100] = setup_world();
    must_refuse(LIMIT, world, quern_world_create(NULL, &one_more));
    for (uint32_t i = 1; i < QUERN_MAX_WORLDS; i++)
        quern_world_destroy(worlds[i]);
}

Test(entity, a_thousand_worlds_one_after_another)
{
    for (uint32_t i = 0; i < 1000; i++) {
        quern_world *other = setup_world();
        setup_entity(other);
        quern_world_destroy(other);
    }
}

Test(entity, bad_world_definitions_are_refused)
{
    quern_world *created = NULL;
    quern_world_def half = {.allocator = quern_allocator_default()};
    half.allocator.release = NULL;
    quern_world_def other_half = {.allocator = quern_allocator_default()};
    other_half.allocator.allocate = NULL;
    const quern_world_def neither = {.allocator = {.user_data = &created}};
    must_refuse(INVALID_ARGUMENT, world, quern_world_create(&half, &created));
    must_refuse(INVALID_ARGUMENT, world, quern_world_create(&other_half, &created));
    must_refuse(INVALID_ARGUMENT, world, quern_world_create(&neither, &created));
    cr_assert_null(created);
    cr_assert_eq(quern_world_create(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    quern_world_destroy(NULL);
}

/* ----------------------------------------------------------------------------------------- slots */

static const quern_allocator *allocator(void)
{
    static quern_allocator plain;
    plain = quern_allocator_default();
    return &plain;
}

/* A location outside of all chunks. Slots only distinguish 0 from other locations. */
static quern_entity take(quern__entities *entities)
{
    must(quern__entities_reserve(entities, allocator(), 1));
    quern_entity entity = quern__entities_allocate(entities);
    quern__entities_record(entities, quern_entity_index(entity))->location = 1;
    return entity;
}

Test(entity, a_slot_whose_generations_ran_out_is_retired)
{
    quern__entities entities;
    quern__entities_init(&entities, quern__first_handle_high(5, 0));
    quern_entity first = take(&entities);
    uint32_t slot = quern_entity_index(first);
    quern__entities_free_or_retire(&entities, slot);
    quern__entities_record(&entities, slot)->handle_high |= QUERN__MAX_GENERATION;

    quern_entity last_life = take(&entities);
    cr_assert_eq(quern_entity_index(last_life), slot);
    cr_assert_eq(quern_entity_generation(last_life), 0xFFFFFFu);
    cr_assert_eq(quern_entity_world_tag(last_life), 5u);
    quern__entities_free_or_retire(&entities, slot);
    cr_assert_eq(entities.retired_count, 1u);
    cr_assert_null(quern__entities_find(&entities, last_life));
    cr_assert_eq(quern__entities_check(&entities, last_life), QUERN_ERROR_STALE_ENTITY);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert_neq(quern_entity_index(take(&entities)), slot);
    quern__entities_release(&entities, allocator());
}

/* Frees the slot and allocates it again. */
static quern_entity reallocate_slot(quern__entities *entities, uint32_t slot)
{
    quern__entities_free_or_retire(entities, slot);
    return take(entities);
}

Test(entity, slot_uses_each_generation_once)
{
    for (uint32_t n = 1; n < 4; n++) {
        quern__entities entities;
        const uint32_t first_handle_high = quern__first_handle_high(255, n);
        quern__entities_init(&entities, first_handle_high);
        quern_entity first = take(&entities);
        cr_assert_eq(first.bits >> 32, first_handle_high);
        quern_entity second = reallocate_slot(&entities, 0);
        cr_assert_eq(second.bits >> 32, first_handle_high + 1);

        quern__entities_record(&entities, 0)->handle_high |= QUERN__MAX_GENERATION;
        quern_entity over = reallocate_slot(&entities, 0);
        cr_assert_eq(over.bits, quern__entity_make(255, 1, 0).bits, "the tag is not touched");
        quern__entities_record(&entities, 0)->handle_high = first_handle_high - 2;
        quern_entity last = reallocate_slot(&entities, 0);
        cr_assert_eq(last.bits >> 32, first_handle_high - 1);
        cr_assert_eq(quern__generation_use_count(first_handle_high, quern_entity_generation(last)),
                     0xFFFFFFu);
        quern__entities_free_or_retire(&entities, 0);
        cr_assert_eq(entities.retired_count, 1u);
        cr_assert_neq(quern_entity_index(take(&entities)), 0u);
        quern__entities_release(&entities, allocator());
    }
}

Test(entity, first_generations_of_worlds_with_one_tag_are_all_different)
{
    static bool seen[QUERN__GENERATION_BASE_COUNT];
    for (uint32_t n = 0; n < QUERN__GENERATION_BASE_COUNT; n++) {
        const uint32_t handle_high = quern__first_handle_high(7, n),
                       generation = handle_high & QUERN__MAX_GENERATION;
        cr_assert_eq(handle_high >> 24, 7u);
        cr_assert(generation == 1 || (generation > 0 && generation % QUERN__GENERATION_BASE_STEP == 0));
        cr_assert_not(seen[generation / QUERN__GENERATION_BASE_STEP], "world %u", n);
        seen[generation / QUERN__GENERATION_BASE_STEP] = true;
        cr_assert_eq(quern__generation_use_count(handle_high, generation), 1u);
    }
}

enum { WORLD_COUNT = 1000, REUSE_COUNT = 3 };

Test(entity, handles_of_destroyed_worlds_stay_invalid)
{
    static quern_entity kept[WORLD_COUNT * REUSE_COUNT];
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < WORLD_COUNT; i++) {
        quern_world *one = setup_world();
        quern_entity mine[REUSE_COUNT];
        for (uint32_t k = 0; k < REUSE_COUNT; k++) {
            mine[k] = setup_entity(one);
            for (uint32_t old = 0; old < kept_count; old++)
                cr_assert_not(quern_entity_is_alive(one, kept[old]), "world %u, handle %u", i, old);
            cr_assert_eq(quern_entity_index(mine[k]), 0u);
            cr_assert_eq(quern_entity_use_count(one, mine[k]), k + 1);
            must(quern_entity_destroy(one, mine[k]));
        }
        memcpy(&kept[kept_count], mine, sizeof mine);
        kept_count += REUSE_COUNT;
        quern_world_destroy(one);
    }
}

Test(entity, use_count_is_known_for_own_handles_only)
{
    quern_world *one = setup_world();
    quern_entity entity = setup_entity(one);
    cr_assert_eq(quern_entity_use_count(one, entity), 1u);
    must(quern_entity_destroy(one, entity));
    cr_assert_eq(quern_entity_use_count(one, entity), 1u, "alive or not");
    assert_refused_value(one, quern_entity_use_count(NULL, entity));
    assert_refused_value(one, quern_entity_use_count(one, quern_entity_null()));
    assert_refused_value(one, quern_entity_use_count(one, entity_of_other_world(entity)));
    assert_refused_value(one, quern_entity_use_count(one, entity_provisional(0)));
    quern_world_destroy(one);
}

Test(entity, seed_follows_from_index_and_use_count)
{
    quern_world *one = setup_world(), *other = setup_world();
    const quern_entity first = setup_entity(one), second = setup_entity(one), twin = setup_entity(other);
    cr_assert_neq(first.bits, twin.bits);
    cr_assert_eq(quern_entity_seed(one, first), quern_entity_seed(other, twin), "not of the world");
    cr_assert_neq(quern_entity_seed(one, first), quern_entity_seed(one, second));
    const uint64_t seed = quern_entity_seed(one, first);
    must(quern_entity_destroy(one, first));
    cr_assert_eq(quern_entity_seed(one, first), seed, "alive or not");
    const quern_entity next = setup_entity(one);
    cr_assert_eq(quern_entity_index(next), quern_entity_index(first));
    cr_assert_neq(quern_entity_seed(one, next), seed, "another life");
    assert_refused_value(one, quern_entity_seed(one, quern_entity_null()));
    assert_refused_value(one, quern_entity_seed(one, twin));
    assert_refused_value(one, quern_entity_seed(one, entity_provisional(0)));
    quern_world_destroy(one);
    quern_world_destroy(other);
}

Test(entity, slot_limit_is_respected)
{
    quern__entities entities;
    quern__entities_init(&entities, quern__first_handle_high(1, 0));
    entities.slot_count = QUERN_MAX_ENTITIES - 1;
    cr_assert_eq(quern__entities_reserve(&entities, allocator(), 2), QUERN_ERROR_LIMIT);
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_ENTITIES"));
    entities.slot_count = 0;
    cr_assert_eq(quern__entities_reserve(&entities, allocator(), UINT32_MAX), QUERN_ERROR_LIMIT);
    cr_assert_eq(entities.pages.count, 0u);
    quern__entities_release(&entities, allocator());
}

/* ------------------------------------------------------------------------------------ provisional handles */

typedef struct pointing {
    uint64_t number;
    quern_entity targets[2];
} pointing;

static const pointing wrong = {.targets = {{0}, {(uint64_t)1 << 32}}};

static quern_component register_pointing(void)
{
    quern_component component;
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &component, pointing, number, targets));
    return component;
}

/* Checks that the call fails, with a message that names the component and the command to use instead. */
static void assert_names_command(const char *command)
{
    cr_assert_not_null(strstr(quern_error_message(), "'pointing'"), "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), command), "%s", quern_error_message());
}

Test(entity, immediate_calls_refuse_provisional_handles_in_values)
{
    const quern_component component = register_pointing();
    const pointing good = {.number = 7};
    const quern_entity without = setup_entity(world), with = setup_entity(world),
                       other = setup_entity(world);
    must(quern_entity_set(world, with, component, &good));
    for (uint32_t i = 0; i < 2; i++) { /* without and with cached edges between archetypes */
        must_refuse(PROVISIONAL_ENTITY, world, quern_entity_set(world, with, component, &wrong));
        assert_names_command("quern_commands_set");
        must_refuse(PROVISIONAL_ENTITY, world, quern_entity_set(world, without, component, &wrong));
        must_refuse(PROVISIONAL_ENTITY, world, quern_entity_add(world, without, component, &wrong));
        assert_names_command("quern_commands_set");
        if (i == 0) must(quern_entity_add(world, other, component, &good));
    }
    cr_assert_eq(((pointing *)quern_entity_get(world, with, component))->number, 7);
    must(quern_entity_set(world, with, component, &(pointing){.targets = {without, with}}));
}

Test(entity, creates_refuse_provisional_handles_in_values)
{
    const quern_component components[] = {position, register_pointing()};
    const pointing good = {.number = 7}, many[] = {good, good, wrong};
    const void *const values[] = {NULL, &wrong}, *const good_values[] = {NULL, &good},
                      *const columns[] = {NULL, many};
    for (uint32_t i = 0; i < 3; i++) { /* a new list, the latest list, and an older cached list */
        must_refuse(PROVISIONAL_ENTITY, world,
                    quern_entity_create_with(world, components, values, 2, NULL));
        assert_names_command("quern_commands_create_with");
        must(quern_entity_create_with(world, components, good_values, 2, NULL));
        if (i == 1) must(quern_entity_create_with(world, components, NULL, 1, NULL));
    }
    must_refuse(PROVISIONAL_ENTITY, world,
                quern_entity_create_many(world, components, columns, 2, 3, NULL));
    assert_names_command("quern_commands_create_many");
    must(quern_entity_create_many(world, components, columns, 2, 2, NULL));
}

Test(entity, bulk_calls_refuse_provisional_handles_in_values)
{
    const quern_component component = register_pointing();
    const pointing good = {.number = 7}, two[] = {good, wrong};
    quern_prefab prefab;
    must(quern_prefab_capture(world, setup_entity_with(world, &component, 1), &prefab));
    setup_entity_with(world, &position, 1);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    must_refuse(PROVISIONAL_ENTITY, world, quern_entity_add_matching(query, component, &wrong, NULL));
    quern_query_destroy(query);
    const quern_spawn_def def = {.overrides = {{.component = component, .column = two}}};
    must_refuse(PROVISIONAL_ENTITY, world, quern_prefab_spawn_many(world, prefab, 2, &def, NULL, NULL));
    assert_names_command("quern_commands_spawn");
    must(quern_prefab_spawn_many(world, prefab, 1, &def, NULL, NULL));
}
