/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_entity_create_with caches the latest lists of components. These tests use more lists than it caches, in
 * random order: plain lists, lists with one relation, with two relations, and with a type that has a copy hook.
 * Each entity must have the components and targets of its list. */

#include "tests/support/fixture.h"
#include "tests/support/random.h"

enum { COMPONENTS = 4, LISTS = 9, ENTITIES = 3000 };

static quern_component components[COMPONENTS]; /* the last one with hooks */
static quern_relation parent, owner;

/* Contents of a list: a mask of components, and relations. */
static const struct list {
    uint32_t mask;
    bool has_parent, has_owner;
} lists[LISTS] = {{0, false, false}, {1, false, false}, {3, false, false},
                  {8, false, false}, {11, true, false}, {0, true, false},
                  {5, false, true},  {6, true, true},   {15, true, false}};

static quern_entity made[ENTITIES];
static const struct list *list_of[ENTITIES];
static uint32_t parent_of[ENTITIES], owner_of[ENTITIES]; /* target, if the list has the relation */

static void copy_negated(void *targets, const void *sources, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint32_t *)targets)[i] = ~((const uint32_t *)sources)[i];
}

static void construct_sevens(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint32_t *)values)[i] = 7;
}

static void open_world(void)
{
    world = setup_world();
    components[0] = setup_component(world, "a", 4, 4);
    components[1] = setup_component(world, "b", 4, 4);
    components[2] = setup_tag(world, "tag");
    const quern_component_def hooked = {.name = "hooked",
                                        .size_bytes = 4,
                                        .alignment_bytes = 4,
                                        .hooks = {.copy = copy_negated, .construct = construct_sevens}};
    cr_assert_eq(quern_component_register(world, &hooked, &components[3]), QUERN_OK);
    parent = quern_world_parent(world);
    cr_assert_eq(quern_relation_register(world, &(quern_relation_def){.name = "owner"}, &owner), QUERN_OK);
}

TestSuite(create_lists, .init = open_world, .fini = close_valid_world);

static bool has_values(uint32_t i)
{
    return i % 3 != 0;
}

/* Every third entity is created without values except targets. */
static void create(uint32_t i, const struct list *list, random_source *random)
{
    quern_component ids[COMPONENTS + 2];
    const void *values[COMPONENTS + 2];
    uint32_t count = 0;
    list_of[i] = list;
    parent_of[i] = owner_of[i] = i > 0 ? random_below(random, i) : 0;
    if (i == 0) list_of[i] = &lists[0];
    for (uint32_t c = 0; c < COMPONENTS; c++) {
        if ((list_of[i]->mask >> c & 1) == 0) continue;
        ids[count] = components[c];
        values[count++] = has_values(i) && c != 2 ? &i : NULL;
    }
    if (list_of[i]->has_parent) {
        ids[count] = quern_relation_component(parent);
        values[count++] = &made[parent_of[i]];
    }
    if (list_of[i]->has_owner) {
        ids[count] = quern_relation_component(owner);
        values[count++] = &made[owner_of[i]];
    }
    cr_assert_eq(quern_entity_create_with(world, ids, values, count, &made[i]), QUERN_OK, "%s",
                 quern_error_message());
}

static void check_target(uint32_t i, quern_relation relation, bool has_it, uint32_t target)
{
    cr_assert_eq(quern_entity_target(world, made[i], relation).bits, has_it ? made[target].bits : 0);
}

static void check(uint32_t i)
{
    for (uint32_t c = 0; c < COMPONENTS; c++) {
        const bool has_it = (list_of[i]->mask >> c & 1) != 0;
        cr_assert_eq(quern_entity_has(world, made[i], components[c]), has_it);
        if (!has_it || c == 2) continue;
        const uint32_t plain = has_values(i) ? i : 0, hooked = has_values(i) ? ~i : 7;
        const uint32_t *value = quern_entity_get(world, made[i], components[c]);
        cr_assert_eq(*value, c == 3 ? hooked : plain);
    }
    check_target(i, parent, list_of[i]->has_parent, parent_of[i]);
    check_target(i, owner, list_of[i]->has_owner, owner_of[i]);
}

Test(create_lists, entities_have_the_components_of_their_list)
{
    random_source random = {.state = 3};
    for (uint32_t i = 0; i < ENTITIES; i++) {
        create(i, &lists[random_below(&random, LISTS)], &random);
        check(i);
        if (i % 500 == 0) assert_valid(world);
    }
    for (uint32_t i = 0; i < ENTITIES; i++)
        check(i);
}

/* Removes all entities of a list and their archetypes, on all levels, and uses the list again. */
Test(create_lists, lists_are_found_again_after_archetypes_are_removed)
{
    random_source random = {.state = 4};
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 40; i++)
            create(i, &lists[i == 0 ? 0 : random_below(&random, LISTS)], &random);
        for (uint32_t i = 0; i < 40; i++)
            check(i);
        if (round % 4 != 3) { /* in the other rounds some entities remain */
            for (uint32_t i = 0; i < 40; i++)
                if (quern_entity_is_alive(world, made[i]))
                    cr_assert_eq(quern_entity_destroy(world, made[i]), QUERN_OK);
        }
        cr_assert_eq(quern_world_remove_empty_archetypes(world, NULL), QUERN_OK);
        assert_valid(world);
    }
}

/* A failed call must not cache a list that a later call would treat as valid. */
Test(create_lists, wrong_lists_are_not_cached)
{
    const quern_component twice[] = {components[0], components[0]},
                          related[] = {components[0], quern_relation_component(parent)};
    const uint32_t number = 1;
    const quern_entity root = setup_entity(world), null = quern_entity_null();
    const quern_entity stale = setup_entity(world);
    cr_assert_eq(quern_entity_destroy(world, stale), QUERN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        quern_entity entity;
        must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_with(world, twice, NULL, 2, &entity));
        must_refuse(NULL_ARGUMENT, world, quern_entity_create_with(world, related, NULL, 2, &entity));
        assert_refused(
            world, QUERN_ERROR_NULL_ENTITY,
            quern_entity_create_with(world, related, (const void *[]){&number, &null}, 2, &entity));
        assert_refused(
            world, QUERN_ERROR_STALE_ENTITY,
            quern_entity_create_with(world, related, (const void *[]){&number, &stale}, 2, &entity));
        cr_assert_eq(quern_entity_create_with(world, related, (const void *[]){&number, &root}, 2, &entity),
                     QUERN_OK);
        cr_assert_eq(quern_entity_target(world, entity, parent).bits, root.bits);
    }
    cr_assert_eq(quern_entity_source_count(world, root, parent), 3u);
}
