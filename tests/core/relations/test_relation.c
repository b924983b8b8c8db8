/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Relations of a few entities, by immediate calls. */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <stdlib.h>
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

/* ----------------------------------------------------------------------------------------- other calls */

/* Relations with other calls: create, bulk, statistics, trim, validation; and wrong use of these. */

static failing_allocator *memory;

static void open_calls(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 4, 4);
    parent = quern_world_parent(world);
    cr_assert_eq(quern_relation_register(world, &(quern_relation_def){.name = "owner"}, &owner), QUERN_OK);
}

TestSuite(relation_calls, .init = open_calls, .fini = close_valid_world);

/* Creates an entity, with a parent unless that is null. */
static quern_entity make_below(uint32_t value, quern_entity above)
{
    const quern_component components[] = {number, quern_relation_component(parent)};
    quern_entity entity = {0};
    cr_assert_eq(quern_entity_create_with(world, components, (const void *[]){&value, &above},
                                          quern_entity_is_null(above) ? 1 : 2, &entity),
                 QUERN_OK, "%s", quern_error_message());
    return entity;
}

static uint32_t number_of(quern_entity entity)
{
    return *(const uint32_t *)quern_entity_get(world, entity, number);
}

Test(relation_calls, a_list_of_components_may_name_a_target)
{
    quern_entity chain[20] = {make_below(0, quern_entity_null())};
    for (uint32_t i = 1; i < 20; i++)
        chain[i] = make_below(i, chain[i - 1]);
    const quern_entity second = make_below(99, chain[0]);
    for (uint32_t i = 1; i < 20; i++) {
        cr_assert_eq(quern_entity_target(world, chain[i], parent).bits, chain[i - 1].bits);
        cr_assert_eq(number_of(chain[i]), i);
    }
    cr_assert_eq(quern_entity_next_sibling(world, chain[1], parent).bits, second.bits);
    cr_assert_eq(number_of(second), 99u);
}

Test(relation_calls, a_list_of_components_may_name_several_targets)
{
    const quern_component components[] = {quern_relation_component(owner), number,
                                          quern_relation_component(parent)};
    const quern_entity a = make_below(1, quern_entity_null()), b = make_below(2, a);
    const uint32_t value = 3;
    quern_entity c = {0};
    cr_assert_eq(quern_entity_create_with(world, components, (const void *[]){&a, &value, &b}, 3, &c),
                 QUERN_OK);
    cr_assert_eq(quern_entity_target(world, c, owner).bits, a.bits);
    cr_assert_eq(quern_entity_target(world, c, parent).bits, b.bits);
    cr_assert_eq(number_of(c), 3u);
}

Test(relation_calls, cached_levels_do_not_outlive_archetypes)
{
    const quern_entity a = make_below(1, quern_entity_null()), b = make_below(2, a);
    cr_assert_eq(quern_entity_destroy(world, a), QUERN_OK);
    cr_assert_not(quern_entity_is_alive(world, b));
    uint32_t removed = 0;
    cr_assert_eq(quern_world_remove_empty_archetypes(world, &removed), QUERN_OK);
    cr_assert_gt(removed, 0u);
    const quern_entity tag_user = setup_entity_with(world, &number, 1);
    const quern_entity c = make_below(3, tag_user), d = make_below(4, c);
    cr_assert_eq(quern_entity_unrelate(world, c, parent), QUERN_OK);
    cr_assert_eq(quern_world_remove_empty_archetypes(world, &removed), QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, c, parent, tag_user), QUERN_OK);
    cr_assert_eq(number_of(d), 4u);
}

Test(relation_calls, removing_the_component_from_all_matches_unrelates_them)
{
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root),
                       b = make_below(2, a), c = make_below(3, b);
    quern_component tag = setup_tag(world, "tag");
    cr_assert_eq(quern_entity_add(world, a, tag, NULL), QUERN_OK);
    cr_assert_eq(quern_entity_add(world, b, tag, NULL), QUERN_OK);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(tag)}, 1);
    uint64_t count = 0;
    cr_assert_eq(quern_entity_remove_matching(query, quern_relation_component(parent), &count), QUERN_OK);
    cr_assert_eq(count, 2u);
    cr_assert(quern_entity_is_null(quern_entity_target(world, a, parent)));
    cr_assert(quern_entity_is_null(quern_entity_target(world, b, parent)));
    cr_assert_eq(quern_entity_target(world, c, parent).bits, b.bits);
    cr_assert_eq(number_of(c), 3u);
    must_refuse(INVALID_ARGUMENT, world,
                quern_entity_add_matching(query, quern_relation_component(parent), &root, NULL));
}

Test(relation_calls, stats_and_trim_include_links)
{
    const quern_world_stats before = stats_of_world(world);
    cr_assert_eq(before.relation_count, 2u);
    cr_assert_eq(before.link_bytes, 0u);
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root);
    const quern_world_stats with = stats_of_world(world);
    cr_assert_gt(with.link_bytes, 0u);
    cr_assert_geq(with.held_bytes, with.link_bytes);
    cr_assert_eq(quern_world_trim(world), QUERN_OK);
    cr_assert_eq(stats_of_world(world).link_bytes, with.link_bytes);
    cr_assert_eq(quern_entity_unrelate(world, a, parent), QUERN_OK);
    cr_assert_eq(quern_world_trim(world), QUERN_OK);
    cr_assert_eq(stats_of_world(world).link_bytes, 0u);
}

/* Compares two worlds with equal rows and different orders of siblings. */
Test(relation_calls, hash_depends_on_targets_and_sibling_order)
{
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root),
                       b = make_below(2, root);
    const uint64_t hash = quern_world_hash(world);
    cr_assert_eq(quern_entity_move_before(world, b, parent, a), QUERN_OK);
    cr_assert_neq(quern_world_hash(world), hash);
    cr_assert_eq(quern_entity_first_source(world, root, parent).bits, b.bits);
    cr_assert_eq(quern_entity_move_before(world, b, parent, quern_entity_null()), QUERN_OK);
    cr_assert_eq(quern_world_hash(world), hash);
}

static void assert_damage_seen(uint32_t *at, uint32_t value)
{
    const uint32_t saved = *at;
    *at = value;
    const quern_result result = quern_world_validate(world);
    *at = saved;
    cr_assert_eq(result, QUERN_ERROR_CORRUPT);
    assert_valid(world);
}

Test(relation_calls, validation_finds_each_kind_of_damage)
{
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root),
                       b = make_below(2, root), other = make_below(3, quern_entity_null());
    const quern__relation *relation = quern__relation_of(&world->storage, parent);
    quern__link_node *of_a = quern__links_at(&relation->links, quern_entity_index(a)),
                     *of_b = quern__links_at(&relation->links, quern_entity_index(b)),
                     *of_root = quern__links_at(&relation->links, quern_entity_index(root));
    assert_damage_seen(&of_a->target, quern_entity_index(other));
    assert_damage_seen(&of_a->target, QUERN__SLOT_NONE);
    assert_damage_seen(&of_a->next, QUERN__SLOT_NONE);
    assert_damage_seen(&of_a->previous, quern_entity_index(a));
    assert_damage_seen(&of_b->previous, quern_entity_index(b));
    assert_damage_seen(&of_b->next, quern_entity_index(a));
    assert_damage_seen(&of_a->level, 2);
    assert_damage_seen(&of_root->level, 1);
    assert_damage_seen(&of_root->last, quern_entity_index(a));
    assert_damage_seen(&of_root->count, 1);
    assert_damage_seen(&of_root->first, quern_entity_index(b));
    uint32_t *value = quern_entity_get(world, a, quern_relation_component(parent));
    assert_damage_seen(value, quern_entity_index(other));
    cr_assert(strstr(quern_error_message(), "pointer") != NULL);
}

/* -------------------------------------------------------------------------------- failed allocation */

/* Refuses each memory request of the call in turn, and checks that the call then changes nothing. */
#define ASSERT_ALL_OR_NOTHING(call)                                                        \
    do {                                                                                   \
        quern_result result_ = QUERN_ERROR_OUT_OF_MEMORY;                                  \
        for (uint32_t i_ = 1; result_ != QUERN_OK; i_++) {                                 \
            cr_assert_eq(quern_world_trim(world), QUERN_OK);                               \
            const uint64_t hash_ = quern_world_hash(world);                                \
            failing_allocator_fail_at(memory, i_);                                         \
            result_ = (call);                                                              \
            failing_allocator_heal(memory);                                                \
            if (result_ == QUERN_OK) continue;                                             \
            cr_assert_eq(result_, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message()); \
            cr_assert_eq(quern_world_hash(world), hash_);                                  \
            assert_valid(world);                                                           \
            cr_assert_lt(i_, 1000u);                                                       \
        }                                                                                  \
    } while (0)

Test(relation_calls, missing_memory_changes_nothing)
{
    const quern_entity root = make_below(0, quern_entity_null()),
                       above = make_below(1, quern_entity_null()), a = setup_entity_with(world, &number, 1),
                       b = setup_entity_with(world, &number, 1), c = setup_entity(world);
    quern_relation added = {0};
    const quern_relation_def def = {.name = "added", .levels = true};
    ASSERT_ALL_OR_NOTHING(quern_relation_register(world, &def, &added));
    ASSERT_ALL_OR_NOTHING(quern_entity_relate(world, a, parent, root));
    ASSERT_ALL_OR_NOTHING(quern_entity_relate(world, b, parent, a));
    ASSERT_ALL_OR_NOTHING(quern_entity_relate(world, c, parent, b));
    ASSERT_ALL_OR_NOTHING(quern_entity_relate(world, root, parent, above)); /* all levels change */
    ASSERT_ALL_OR_NOTHING(quern_entity_unrelate(world, a, parent));
    ASSERT_ALL_OR_NOTHING(quern_entity_relate(world, a, added, root));
    ASSERT_ALL_OR_NOTHING(quern_entity_move_before(world, c, parent, quern_entity_null()));
    const quern_component components[] = {quern_relation_component(added),
                                          quern_relation_component(parent)};
    const void *values[] = {&a, &c};
    quern_entity d = {0};
    ASSERT_ALL_OR_NOTHING(quern_entity_create_with(world, components, values, 2, &d));
    ASSERT_ALL_OR_NOTHING(quern_entity_create_with(world, components + 1, values + 1, 1, &d));
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(components[1])}, 1);
    ASSERT_ALL_OR_NOTHING(quern_entity_remove_matching(query, components[1], NULL));
}

/* ----------------------------------------------------------------------------------------- bad use */

Test(relation_calls, wrong_registration_is_reported)
{
    quern_relation got = {0};
    const quern_relation_def nameless = {0}, taken = {.name = "number"},
                             other = {.name = "owner", .ordered = true},
                             policy = {.name = "x", .on_target_destroyed = (quern_target_policy)9},
                             good = {.name = "good"};
    must_refuse(NULL_ARGUMENT, world, quern_relation_register(NULL, &good, &got));
    must_refuse(NULL_ARGUMENT, world, quern_relation_register(world, NULL, &got));
    must_refuse(NULL_ARGUMENT, world, quern_relation_register(world, &good, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_relation_register(world, &nameless, &got));
    must_refuse(DUPLICATE_NAME, world, quern_relation_register(world, &taken, &got));
    must_refuse(DUPLICATE_NAME, world, quern_relation_register(world, &other, &got));
    must_refuse(INVALID_ARGUMENT, world, quern_relation_register(world, &policy, &got));
    quern_component component = {0};
    const quern_component_def def = {.name = "owner", .size_bytes = 8, .alignment_bytes = 8};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &component));
}

Test(relation_calls, component_limit_includes_levels)
{
    char name[16] = "c0000";
    while (stats_of_world(world).component_count < QUERN_MAX_COMPONENTS - 10) {
        const uint32_t n = stats_of_world(world).component_count;
        for (uint32_t i = 0, k = n; i < 4; i++, k /= 10)
            name[4 - i] = (char)('0' + k % 10);
        setup_tag(world, name);
    }
    const uint32_t count = stats_of_world(world).component_count;
    quern_relation got = {0};
    const quern_relation_def def = {.name = "late", .levels = true};
    must_refuse(LIMIT, world, quern_relation_register(world, &def, &got));
    cr_assert_eq(stats_of_world(world).component_count, count);
}

Test(relation_calls, wrong_relate_is_reported)
{
    const quern_entity a = make_below(1, quern_entity_null()), b = make_below(2, quern_entity_null()),
                       dead = make_below(3, quern_entity_null());
    const quern_relation none = {0}, foreign = {quern_relation_component(parent).bits ^ 1u << 24};
    cr_assert_eq(quern_entity_destroy(world, dead), QUERN_OK);
    must_refuse(NULL_ARGUMENT, world, quern_entity_relate(NULL, a, parent, b));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, a, parent, a));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, a, owner, a));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, a, none, b));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, a, foreign, b));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, a, (quern_relation){number.bits}, b));
    const quern_entity wrong[] = {quern_entity_null(), dead, entity_of_other_world(a),
                                  entity_provisional(0)};
    const quern_result results[] = {QUERN_ERROR_NULL_ENTITY, QUERN_ERROR_STALE_ENTITY,
                                    QUERN_ERROR_FOREIGN_ENTITY, QUERN_ERROR_PROVISIONAL_ENTITY};
    const quern_component component = quern_relation_component(parent);
    for (uint32_t i = 0; i < 4; i++) {
        assert_refused(world, results[i], quern_entity_relate(world, wrong[i], parent, b));
        assert_refused(world, results[i], quern_entity_relate(world, a, parent, wrong[i]));
        assert_refused(world, results[i], quern_entity_unrelate(world, wrong[i], parent));
        assert_refused(world, results[i], quern_entity_set(world, a, component, &wrong[i]));
        assert_refused(world, results[i],
                       quern_entity_create_with(world, &component, (const void *[]){&wrong[i]}, 1, NULL));
        assert_refused_value(world, quern_entity_target(world, wrong[i], parent).bits);
        assert_refused_value(world, quern_entity_source_count(world, wrong[i], parent));
    }
    must_refuse(NULL_ARGUMENT, world, quern_entity_add(world, a, component, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_entity_create_with(world, &component, NULL, 1, NULL));
}

Test(relation_calls, wrong_move_before_is_reported)
{
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root),
                       b = make_below(2, root), stranger = make_below(3, a);
    cr_assert_eq(quern_entity_relate(world, a, owner, root), QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, b, owner, root), QUERN_OK);
    cr_assert_eq(quern_entity_first_source(world, root, owner).bits,
                 b.bits); /* unordered: new sources become the first */
    must_refuse(INVALID_ARGUMENT, world, quern_entity_move_before(world, a, owner, b));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_move_before(world, a, parent, stranger));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_move_before(world, a, parent, root));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_move_before(world, root, parent, a));
    cr_assert_eq(quern_entity_destroy(world, b), QUERN_OK);
    must_refuse(STALE_ENTITY, world, quern_entity_move_before(world, a, parent, b));
    cr_assert_eq(quern_entity_move_before(world, a, parent, a), QUERN_OK);
    cr_assert_eq(quern_entity_sibling_index(world, root, parent), QUERN_NO_SIBLING_INDEX);
}

Test(relation_calls, managed_components_are_refused_by_other_calls)
{
    const quern_entity root = make_below(0, quern_entity_null()), a = make_below(1, root);
    const quern__relation *relation = quern__relation_of(&world->storage, parent);
    const quern_component component = quern_relation_component(parent),
                          tag = quern__component_handle(&world->storage.components,
                                                        quern__relation_tag(relation, 1)),
                          other = quern__component_handle(&world->storage.components,
                                                          quern__relation_tag(relation, 2));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_remove(world, a, tag));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add(world, a, other, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set(world, a, tag, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_create_with(world, &tag, NULL, 1, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_create_many(world, &component, NULL, 1, 3, NULL));
    quern_query *query;
    const quern_query_def writing = {.terms = {quern_term_write(component)}};
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &writing, &query));
}

/* ----------------------------------------------------------------------------------- destroyed targets */

/* Destruction of targets, and its effect on their sources. */

enum { CHAIN = 100000, MAX_ENDED = 16 };
static quern_component named, tag;
static quern_relation ring, friend, keeper, home;

/* Names of the entities whose values were destroyed, in order. */
static char ended[MAX_ENDED + 1];

static void note_end(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        if (strlen(ended) < MAX_ENDED) ended[strlen(ended)] = ((const char *)values)[i];
}

static void open_cascades(void)
{
    memory = open_failing_world();
    const quern_component_def named_def = {
        .name = "named", .size_bytes = 1, .hooks = {.destroy = note_end}};
    cr_assert_eq(quern_component_register(world, &named_def, &named), QUERN_OK);
    tag = setup_tag(world, "tag");
    parent = quern_world_parent(world);
    ring = register_relation(&(quern_relation_def){.name = "ring"});
    friend = register_relation(&(quern_relation_def){
        .name = "friend", .on_target_destroyed = QUERN_TARGET_UNRELATES, .ordered = true});
    keeper = register_relation(
        &(quern_relation_def){.name = "keeper", .on_target_destroyed = QUERN_TARGET_REFUSES});
    home = register_relation(&(quern_relation_def){
        .name = "home", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true});
    memset(ended, 0, sizeof ended);
}

TestSuite(cascade, .init = open_cascades, .fini = close_valid_world);

static quern_entity make_named(char name)
{
    quern_entity entity = {0};
    cr_assert_eq(quern_entity_create_with(world, &named, (const void *[]){&name}, 1, &entity), QUERN_OK);
    return entity;
}

/* Creates a tree: a has children b and c, b has d, c has e. */
static void make_tree(quern_entity *out)
{
    for (uint32_t i = 0; i < 5; i++)
        out[i] = make_named((char)('a' + i));
    relate(out[1], parent, out[0]);
    relate(out[2], parent, out[0]);
    relate(out[3], parent, out[1]);
    relate(out[4], parent, out[2]);
}

Test(cascade, sources_are_destroyed_with_their_target_and_before_it)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity other = make_named('x');
    cr_assert_eq(quern_entity_destroy(world, tree[0]), QUERN_OK);
    cr_assert_str_eq(ended, "edcba");
    cr_assert(quern_entity_is_alive(world, other));
    cr_assert_eq(stats_of_world(world).entity_count, 1u);
}

Test(cascade, destroying_a_subtree_keeps_the_rest)
{
    quern_entity tree[5];
    make_tree(tree);
    cr_assert_eq(quern_entity_destroy(world, tree[1]), QUERN_OK);
    cr_assert_str_eq(ended, "db");
    cr_assert_eq(quern_entity_source_count(world, tree[0], parent), 1u);
    cr_assert_eq(quern_entity_first_source(world, tree[0], parent).bits, tree[2].bits);
}

Test(cascade, list_is_destroyed_after_all_dependent_entities)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity alone = make_named('x');
    const quern_entity list[] = {alone, tree[1], tree[2], tree[1]};
    cr_assert_eq(quern_entity_destroy_many(world, list, 4), QUERN_OK);
    cr_assert_str_eq(ended, "edxbc");
}

Test(cascade, cycles_are_destroyed_as_a_whole)
{
    const quern_entity a = make_named('a'), b = make_named('b'), c = make_named('c');
    relate(a, ring, b);
    relate(b, ring, c);
    relate(c, ring, a);
    cr_assert_eq(quern_entity_destroy(world, b), QUERN_OK);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
    cr_assert_str_eq(ended, "cab");
}

Test(cascade, unrelating_policy_keeps_sources_alive)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity x = make_named('x'), y = make_named('y');
    relate(x, friend, tree[3]);
    relate(y, friend, tree[3]);
    relate(tree[4], friend, tree[3]); /* destroyed, too */
    cr_assert_eq(quern_entity_destroy(world, tree[0]), QUERN_OK);
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
    cr_assert_not(quern_entity_has(world, x, quern_relation_component(friend)));
    cr_assert(quern_entity_is_null(quern_entity_target(world, y, friend)));
    cr_assert_eq(*(const char *)quern_entity_get(world, y, named), 'y');
}

/* Sources lose targets in two relations at once, and the levels of all entities below them change. */
Test(cascade, source_that_loses_several_targets_moves_to_one_archetype)
{
    const quern_entity house = make_named('h'), dog = make_named('d'), flea = make_named('f'),
                       mite = make_named('m');
    relate(dog, home, house);
    relate(flea, home, dog);
    relate(mite, home, flea);
    relate(dog, friend, house);
    relate(flea, friend, house);
    cr_assert_eq(quern_entity_destroy(world, house), QUERN_OK, "%s", quern_error_message());
    assert_valid(world);
    cr_assert(quern_entity_is_null(quern_entity_target(world, dog, home)));
    cr_assert(quern_entity_is_null(quern_entity_target(world, dog, friend)));
    cr_assert(quern_entity_is_null(quern_entity_target(world, flea, friend)));
    cr_assert_eq(quern_entity_target(world, flea, home).bits, dog.bits);
    cr_assert_eq(quern_entity_target(world, mite, home).bits, flea.bits);
    cr_assert_eq(*(const char *)quern_entity_get(world, mite, named), 'm');
}

Test(cascade, refusing_policy_keeps_targets_alive)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity x = make_named('x');
    relate(x, keeper, tree[4]);
    must_refuse(TARGET_IN_USE, world, quern_entity_destroy(world, tree[0]));
    cr_assert(strstr(quern_error_message(), "'keeper'") != NULL);
    must_refuse(TARGET_IN_USE, world, quern_entity_destroy_many(world, tree, 1));
    cr_assert_eq(quern_entity_destroy(world, tree[1]), QUERN_OK);
    const quern_entity both[] = {tree[0], x};
    cr_assert_eq(quern_entity_destroy_many(world, both, 2), QUERN_OK);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}

Test(cascade, matching_entities_are_destroyed_with_all_dependent_entities)
{
    quern_entity tree[5];
    make_tree(tree);
    cr_assert_eq(quern_entity_add(world, tree[1], tag, NULL), QUERN_OK);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(tag)}, 1);
    uint64_t count = 0;
    cr_assert_eq(quern_entity_destroy_matching(query, &count), QUERN_OK);
    cr_assert_eq(count, 2u);
    cr_assert_str_eq(ended, "db");
    cr_assert_eq(quern_entity_destroy_matching(query, &count), QUERN_OK);
    cr_assert_eq(count, 0u);
    quern_query_destroy(query);
}

/* Losing the target moves the source to an archetype that the query matches. */
Test(cascade, source_that_loses_its_target_is_not_matched_afterwards)
{
    const quern_entity target = make_named('t'), source = make_named('s');
    relate(source, friend, target);
    const quern_term term = quern_term_without(quern_relation_component(friend));
    quern_query *query = setup_query(world, &term, 1);
    uint64_t count = 0;
    cr_assert_eq(quern_entity_destroy_matching(query, &count), QUERN_OK);
    cr_assert_eq(count, 1u);
    cr_assert(quern_entity_is_alive(world, source));
}

Test(cascade, out_of_memory_changes_nothing)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity x = make_named('x'), y = make_named('y');
    relate(x, home, tree[3]);
    relate(y, home, x);
    relate(y, friend, tree[3]);
    uint32_t failures = 0;
    for (;;) {
        cr_assert_eq(quern_world_trim(world), QUERN_OK);
        const uint64_t hash = quern_world_hash(world);
        if (!runs_out_of_memory(memory, 1 + failures, quern_entity_destroy(world, tree[0]))) break;
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
        failures++;
    }
    cr_assert_gt(failures, 4u);
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
}

/* ------------------------------------------------------------------------------------- a long chain */

static quern_entity *make_many(uint32_t count)
{
    quern_entity *entities = malloc(count * sizeof *entities);
    cr_assert_eq(quern_entity_create_many(world, NULL, NULL, 0, count, entities), QUERN_OK);
    return entities;
}

Test(cascade, long_chain_created_from_the_top)
{
    quern_entity *chain = make_many(CHAIN);
    for (uint32_t i = 1; i < CHAIN; i++)
        relate(chain[i], parent, chain[i - 1]);
    assert_valid(world);
    must_refuse(CYCLE, world, quern_entity_relate(world, chain[0], parent, chain[CHAIN - 1]));
    cr_assert_eq(quern_entity_destroy(world, chain[CHAIN / 2]), QUERN_OK);
    cr_assert_eq(stats_of_world(world).entity_count, CHAIN / 2);
    cr_assert_eq(quern_entity_destroy(world, chain[0]), QUERN_OK);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
    free(chain);
}

Test(cascade, long_chain_created_from_the_bottom)
{
    quern_entity *chain = make_many(CHAIN);
    for (uint32_t i = 1; i < CHAIN; i++)
        relate(chain[i - 1], home, chain[i]);
    assert_valid(world);
    cr_assert_eq(quern_entity_destroy(world, chain[CHAIN - 1]),
                 QUERN_OK); /* the others lose their targets */
    cr_assert_eq(stats_of_world(world).entity_count, CHAIN - 1);
    free(chain);
}
