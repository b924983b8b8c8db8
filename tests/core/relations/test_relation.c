/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Relations of a few entities, by immediate calls. */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <string.h>

static quern_relation parent, owner;
static quern_component number;

static quern_relation register_relation(const quern_relation_def *def)
{
    quern_relation relation = {0};
    cr_assert_eq(quern_relation_register(world, def, &relation), QUERN_OK, "%s", quern_error_message());
    cr_assert_not(quern_relation_is_null(relation));
    return relation;
}

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 4, 4);
    parent = quern_world_parent(world);
    owner = register_relation(&(quern_relation_def){.name = "owner"});
}

TestSuite(relation, .init = open_world, .fini = close_valid_world);

static quern_entity make(uint32_t value)
{
    quern_entity entity = {0};
    cr_assert_eq(quern_entity_create_with(world, &number, (const void *[]){&value}, 1, &entity), QUERN_OK);
    return entity;
}

static void relate(quern_entity source, quern_relation relation, quern_entity target)
{
    cr_assert_eq(quern_entity_relate(world, source, relation, target), QUERN_OK, "%s",
                 quern_error_message());
}

static uint32_t level_of(quern_entity entity)
{
    const quern__relation *relation = quern__relation_of(&world->storage, parent);
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    return quern__relation_level(relation, quern__storage_archetype_of(&world->storage, record));
}

static void assert_children(quern_relation relation, quern_entity target, const quern_entity *expected,
                            uint32_t count)
{
    quern_entity children[16];
    cr_assert_eq(quern_entity_list_sources(world, target, relation, children, 16), count);
    cr_assert_eq(quern_entity_source_count(world, target, relation), count);
    cr_assert_eq(quern_entity_first_source(world, target, relation).bits, count ? expected[0].bits : 0);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(children[i].bits, expected[i].bits);
        cr_assert_eq(quern_entity_sibling_index(world, children[i], relation), i);
        cr_assert_eq(quern_entity_target(world, children[i], relation).bits, target.bits);
        cr_assert_eq(quern_entity_next_sibling(world, children[i], relation).bits,
                     i + 1 < count ? expected[i + 1].bits : 0);
        cr_assert_eq(quern_entity_previous_sibling(world, children[i], relation).bits,
                     i > 0 ? expected[i - 1].bits : 0);
    }
}

#define ASSERT_CHILDREN(relation, target, ...)                                 \
    assert_children((relation), (target), (const quern_entity[]){__VA_ARGS__}, \
                    sizeof((const quern_entity[]){__VA_ARGS__}) / sizeof(quern_entity))

Test(relation, is_found_by_name_and_registered_once)
{
    const quern_relation_def def = {.name = "owner"};
    quern_relation again = {0};
    cr_assert_eq(quern_relation_register(world, &def, &again), QUERN_OK);
    cr_assert(quern_relation_equal(again, owner));
    cr_assert(quern_relation_equal(quern_relation_find(world, "owner"), owner));
    cr_assert(quern_relation_equal(quern_relation_find(world, "parent"), quern_world_parent(world)));
    cr_assert(quern_relation_is_null(quern_relation_find(world, "number")));
    cr_assert(quern_relation_is_null(quern_relation_find(world, "nobody")));
    cr_assert(quern_component_equal(quern_component_find(world, "owner"), quern_relation_component(owner)));
    cr_assert_str_eq(quern_component_name(world, quern_relation_component(parent)), "parent");
    cr_assert(quern_component_is_null(quern_component_find(world, "level 1 of parent")));
}

Test(relation, sources_are_listed_in_the_order_of_relating)
{
    const quern_entity root = make(0), a = make(1), b = make(2), c = make(3);
    relate(a, parent, root);
    relate(b, parent, root);
    relate(c, parent, root);
    ASSERT_CHILDREN(parent, root, a, b, c);
    relate(a, parent, root); /* the same target: its position in the list does not change */
    ASSERT_CHILDREN(parent, root, a, b, c);
    relate(b, parent, a);
    ASSERT_CHILDREN(parent, root, a, c);
    ASSERT_CHILDREN(parent, a, b);
    cr_assert_eq(*(uint32_t *)quern_entity_get(world, b, number), 2u);
}

Test(relation, levels_equal_the_depth)
{
    quern_entity chain[20];
    for (uint32_t i = 0; i < 20; i++) {
        chain[i] = make(i);
        if (i > 0) relate(chain[i], parent, chain[i - 1]);
    }
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(level_of(chain[i]), i < 15 ? i : 15);
    cr_assert_eq(quern_entity_unrelate(world, chain[5], parent), QUERN_OK);
    for (uint32_t i = 0; i < 20; i++) {
        cr_assert_eq(level_of(chain[i]), i < 5 ? i : i - 5);
        cr_assert_eq(*(uint32_t *)quern_entity_get(world, chain[i], number), i);
    }
    assert_valid(world);
    relate(chain[5], parent, chain[4]);
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(level_of(chain[i]), i < 15 ? i : 15);
}

Test(relation, cycles_are_refused_in_relations_with_levels)
{
    const quern_entity a = make(0), b = make(1), c = make(2);
    relate(b, parent, a);
    relate(c, parent, b);
    must_refuse(CYCLE, world, quern_entity_relate(world, a, parent, c));
    cr_assert(strstr(quern_error_message(), "quern_entity_relate") != NULL);
    relate(a, owner, b);
    relate(b, owner, a);
    ASSERT_CHILDREN(owner, a, b);
    ASSERT_CHILDREN(owner, b, a);
}

Test(relation, target_can_be_set_through_the_component)
{
    const quern_component component = quern_relation_component(parent);
    const quern_entity a = make(0), b = make(1), c = make(2);
    cr_assert_eq(quern_entity_add(world, b, component, &a), QUERN_OK);
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, b, component, &c));
    ASSERT_CHILDREN(parent, a, b);
    cr_assert_eq(quern_entity_set(world, b, component, &c), QUERN_OK);
    ASSERT_CHILDREN(parent, c, b);
    cr_assert_eq(quern_entity_source_count(world, a, parent), 0u);
    cr_assert_eq(quern_entity_set(world, c, component, &a), QUERN_OK);
    cr_assert_eq(level_of(b), 2u);
    cr_assert_eq(((const quern_entity *)quern_entity_get(world, b, component))->bits, c.bits);
    cr_assert_eq(quern_entity_remove(world, b, component), QUERN_OK);
    cr_assert_not(quern_entity_has(world, b, component));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_remove(world, b, component));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_unrelate(world, b, parent));
}
