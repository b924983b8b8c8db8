/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Relations with several targets per source: definitions, refused calls, policies, large sets and damage.
 * test_random_many compares random programs with a naive model. */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <string.h>

enum { FANS = 3000 };

static quern_component number;
static quern_relation likes, owns, needs;
static quern_entity star, fans[FANS];

static quern_relation register_many(const char *name, quern_target_policy policy)
{
    quern_relation relation = {0};
    must(quern_relation_register(
        world, &(quern_relation_def){.name = name, .on_target_destroyed = policy, .many = true},
        &relation));
    return relation;
}

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 4, 4);
    likes = register_many("likes", QUERN_TARGET_UNRELATES);
    owns = register_many("owns", QUERN_TARGET_DESTROYS_SOURCE);
    needs = register_many("needs", QUERN_TARGET_REFUSES);
    star = setup_entity(world);
    for (uint32_t i = 0; i < FANS; i++) {
        fans[i] = setup_entity_with(world, &number, 1);
        must(quern_entity_set(world, fans[i], number, &i));
    }
}

TestSuite(many, .init = open_world, .fini = close_valid_world);

static void relate(quern_entity source, quern_relation relation, quern_entity target)
{
    must(quern_entity_relate(world, source, relation, target));
}

/* ------------------------------------------------------------------------------------------ definitions */

Test(many, combinations_without_meaning_are_refused)
{
    quern_relation relation;
    must_refuse(INVALID_ARGUMENT, world,
                quern_relation_register(
                    world, &(quern_relation_def){.name = "a", .many = true, .levels = true}, &relation));
    assert_refused(
        world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_relation_register(world, &(quern_relation_def){.name = "a", .many = true, .ordered = true},
                                &relation));
    assert_refused(
        world, QUERN_ERROR_DUPLICATE_NAME,
        quern_relation_register(
            world, &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES},
            &relation));
    cr_assert(quern_relation_equal(register_many("likes", QUERN_TARGET_UNRELATES), likes));
}

Test(many, the_component_is_a_tag_that_only_relating_adds)
{
    const quern_component tag = quern_relation_component(likes);
    const void *const values[] = {&star};
    quern_entity created = {0};
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add(world, fans[0], tag, &star));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set(world, fans[0], tag, &star));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_create_with(world, &tag, values, 1, &created));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_create_many(world, &tag, NULL, 1, 1, &created));
    cr_assert_not_null(strstr(quern_error_message(), "quern_entity_relate"), "%s", quern_error_message());
    relate(fans[0], likes, star);
    cr_assert(quern_entity_has(world, fans[0], tag));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add(world, fans[0], tag, &star));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set(world, fans[0], tag, &star));
}

Test(many, calls_on_siblings_name_the_right_one)
{
    relate(fans[0], likes, star);
    assert_refused_value(world, !quern_entity_is_null(quern_entity_next_sibling(world, fans[0], likes)));
    assert_refused_value(world,
                         !quern_entity_is_null(quern_entity_previous_sibling(world, fans[0], likes)));
    assert_refused_value(world,
                         quern_entity_sibling_index(world, fans[0], likes) != QUERN_NO_SIBLING_INDEX);
    cr_assert_not_null(strstr(quern_error_message(), "quern_entity_next_source"));
    cr_assert_neq(quern_entity_move_before(world, fans[0], likes, star), QUERN_OK);
}

Test(many, up_terms_and_levels_are_refused)
{
    const quern_query_def def = {.terms = {quern_term_up(number, likes)}};
    quern_query *query = NULL;
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
    cr_assert_not_null(strstr(quern_error_message(), ".many"), "%s", quern_error_message());
}

Test(many, wrong_arguments_are_refused)
{
    const quern_entity dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_relate(world, star, likes, star));
    must_refuse(STALE_ENTITY, world, quern_entity_relate(world, star, likes, dead));
    must_refuse(STALE_ENTITY, world, quern_entity_relate(world, dead, likes, star));
    must_refuse(STALE_ENTITY, world, quern_entity_unrelate_from(world, star, likes, dead));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_unrelate_from(world, star, likes, fans[0]));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_unrelate(world, star, likes));
    assert_refused_value(world, quern_entity_has_target(world, star, likes, dead));
    assert_refused_value(world, quern_entity_has_target(world, star, (quern_relation){0}, star));
    assert_refused_value(world, quern_entity_target_count(world, dead, likes));
    relate(fans[0], likes, star);
    assert_refused_value(world, quern_entity_list_targets(world, fans[0], likes, NULL, 1));
    assert_refused_value(world, quern_entity_list_sources(world, star, likes, NULL, 1));
    assert_refused_value(world, !quern_entity_is_null(quern_entity_next_target(world, dead, likes, star)));
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_unrelate_from(NULL, star, likes, star));
}

/* --------------------------------------------------------------------------------------------- sets */

Test(many, targets_of_single_relations_are_listed_by_the_same_calls)
{
    quern_relation one;
    quern_entity list[2] = {{0}};
    must(quern_relation_register(world, &(quern_relation_def){.name = "one"}, &one));
    cr_assert_eq(quern_entity_target_count(world, fans[0], one), 0u); /* no entity has links yet */
    cr_assert(quern_entity_is_null(quern_entity_previous_sibling(world, fans[0], one)));
    cr_assert_eq(quern_entity_sibling_index(world, fans[0], one), QUERN_NO_SIBLING_INDEX);
    relate(fans[0], one, star);
    relate(fans[1], one, star);
    cr_assert_eq(quern_entity_target_count(world, fans[0], one), 1u);
    cr_assert_eq(quern_entity_list_targets(world, fans[0], one, list, 2), 1u);
    cr_assert(quern_entity_equal(list[0], star));
    cr_assert_eq(quern_entity_list_targets(world, star, one, list, 2), 0u);
    cr_assert(quern_entity_has_target(world, fans[0], one, star));
    cr_assert_not(quern_entity_has_target(world, fans[0], one, fans[1]));
    cr_assert_eq(quern_entity_next_target(world, fans[0], one, quern_entity_null()).bits, star.bits);
    cr_assert(quern_entity_is_null(quern_entity_next_target(world, fans[0], one, star)));
    const quern_entity first = quern_entity_next_source(world, star, one, quern_entity_null());
    const quern_entity second = quern_entity_next_source(world, star, one, first);
    cr_assert(quern_entity_equal(first, fans[0]) || quern_entity_equal(first, fans[1]));
    cr_assert_eq(first.bits ^ second.bits, fans[0].bits ^ fans[1].bits);
    cr_assert(quern_entity_is_null(quern_entity_next_source(world, star, one, second)));
    cr_assert(quern_entity_is_null(quern_entity_next_source(world, fans[1], one, first)));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_unrelate_from(world, fans[0], one, fans[1]));
    must(quern_entity_unrelate_from(world, fans[0], one, star));
    cr_assert(quern_entity_is_null(quern_entity_next_sibling(world, fans[0], one)));
    cr_assert(quern_entity_is_null(quern_entity_previous_sibling(world, fans[0], one)));
    cr_assert_eq(quern_entity_source_count(world, star, one), 1u);
}

Test(many, hash_depends_on_edges_and_not_on_their_order_of_adding)
{
    const uint64_t none = quern_world_hash(world);
    for (uint32_t i = 0; i < FANS; i++)
        relate(fans[i], likes, star);
    for (uint32_t i = 1; i < FANS; i++)
        relate(fans[0], likes, fans[i]);
    const uint64_t ascending = quern_world_hash(world);
    cr_assert_neq(none, ascending);
    must(quern_entity_unrelate_from(world, fans[0], likes, fans[FANS / 2]));
    cr_assert_neq(quern_world_hash(world), ascending);
    for (uint32_t i = 1; i < FANS; i += 2)
        if (i != FANS / 2) must(quern_entity_unrelate_from(world, fans[0], likes, fans[i]));
    for (uint32_t i = FANS; i-- > 1;)
        relate(fans[0], likes, fans[i]);
    cr_assert_eq(quern_world_hash(world), ascending);
    must(quern_world_trim(world));
    cr_assert_eq(quern_world_hash(world), ascending);
}

Test(many, edges_split_no_archetypes)
{
    for (uint32_t i = 0; i < FANS; i++)
        for (uint32_t k = 1; k <= 3; k++)
            relate(fans[i], likes, fans[(i + k) % FANS]);
    const uint32_t archetypes = stats_of_world(world).archetype_count;
    relate(fans[0], likes, star);
    cr_assert_eq(stats_of_world(world).archetype_count, archetypes);
    cr_assert_eq(archetypes, 3u); /* none, number, number and likes */
}

Test(many, lists_are_cut_off_at_the_capacity)
{
    quern_entity list[4] = {{0}};
    void *values[4] = {0};
    quern_getter *getter;
    for (uint32_t i = 0; i < FANS; i++)
        relate(fans[i], likes, star);
    cr_assert_eq(quern_entity_list_sources(world, star, likes, list, 3), (uint32_t)FANS);
    cr_assert(quern_entity_equal(list[2], fans[2]));
    cr_assert(quern_entity_is_null(list[3]));
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &getter));
    const quern_getter_column column = {.getter = getter, .values = values};
    uint32_t count;
    cr_assert_eq(quern_entity_list_sources_many(world, &(quern_source_list){.relation = likes,
                                                                            .targets = &star,
                                                                            .target_count = 1,
                                                                            .sources = list,
                                                                            .capacity = 4,
                                                                            .counts = &count,
                                                                            .columns = &column,
                                                                            .column_count = 1}),
                 FANS);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(*(const uint32_t *)values[i], i);
    quern_getter_destroy(getter);
}

/* Iterates while removing what was visited. */
Test(many, edges_may_be_removed_while_iterating)
{
    for (uint32_t i = 0; i < FANS; i++)
        relate(fans[i], likes, star);
    uint32_t count = 0;
    for (quern_entity fan = quern_entity_first_source(world, star, likes); !quern_entity_is_null(fan);
         fan = quern_entity_next_source(world, star, likes, fan), count++)
        must(quern_entity_unrelate(world, fan, likes));
    cr_assert_eq(count, (uint32_t)FANS);
    cr_assert_eq(quern_entity_source_count(world, star, likes), 0u);
    cr_assert_eq(stats_of_world(world).edge_count, 0u);
    must(quern_world_trim(world));
    cr_assert_eq(stats_of_world(world).link_bytes, 0u);
}

/* ------------------------------------------------------------------------------------------ policies */

Test(many, sources_lose_only_the_destroyed_target)
{
    for (uint32_t i = 0; i < FANS; i++) {
        relate(fans[i], likes, star);
        if (i > 0 && i % 2 == 0) relate(fans[i], likes, fans[0]);
    }
    must(quern_entity_destroy(world, star));
    for (uint32_t i = 0; i < FANS; i++) {
        const bool remains = i > 0 && i % 2 == 0;
        cr_assert_eq(quern_entity_target_count(world, fans[i], likes), (uint32_t)remains);
        cr_assert_eq(quern_entity_has(world, fans[i], quern_relation_component(likes)), remains);
        cr_assert_eq(*(const uint32_t *)quern_entity_get(world, fans[i], number), i);
    }
}

Test(many, one_destroyed_target_destroys_the_source)
{
    relate(fans[0], owns, fans[1]);
    relate(fans[0], owns, fans[2]);
    relate(fans[3], owns, fans[0]);
    relate(fans[1], owns, fans[3]); /* a cycle */
    must(quern_entity_destroy(world, fans[2]));
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_not(quern_entity_is_alive(world, fans[i]));
    cr_assert_eq(stats_of_world(world).entity_count, (uint64_t)FANS - 3);
}

Test(many, refusing_sources_are_named)
{
    relate(fans[0], needs, star);
    relate(fans[0], needs, fans[1]);
    must_refuse(TARGET_IN_USE, world, quern_entity_destroy(world, star));
    cr_assert_not_null(strstr(quern_error_message(), "needs"));
    must(quern_entity_destroy_many(world, (quern_entity[]){star, fans[0]}, 2));
    must(quern_entity_destroy(world, fans[1]));
}

/* ------------------------------------------------------------------------------------------- damage */

static quern__edge_node *node_of(quern_entity entity)
{
    return quern__edges_at(&quern__relation_of(&world->storage, likes)->edges, quern_entity_index(entity));
}

/* Damages the integer, checks that validation detects it, and repairs it. */
static void assert_seen(uint32_t *at, uint32_t value, const char *what)
{
    const uint32_t saved = *at;
    *at = value;
    const quern_result result = quern_world_validate(world);
    *at = saved;
    cr_assert_eq(result, QUERN_ERROR_CORRUPT, "damage to %s is not seen", what);
    assert_valid(world);
}

Test(many, validation_detects_damaged_edges)
{
    for (uint32_t i = 0; i < FANS; i++)
        relate(fans[i], likes, star);
    relate(star, likes, fans[4]);
    relate(star, likes, fans[6]);
    quern__edge_node *node = node_of(star);
    assert_seen(&node->targets.slots[0], quern_entity_index(fans[5]), "a target");
    assert_seen(&node->targets.slots[0], quern_entity_index(fans[7]), "the order of targets");
    assert_seen(&node->targets.slots[0], quern_entity_index(star), "a target that is the source");
    assert_seen(&node->targets.slots[1], 1000000, "a dead target");
    assert_seen(&node->targets.count, 1, "the number of targets");
    assert_seen(&node->sources.count, 1, "the number of sources");
    assert_seen(&node->sources.directory->blocks.items[1].first, 0, "the bounds of a block");
    assert_seen(&node->sources.directory->blocks.items[1].count, 3, "the number of sources in a block");
    quern__edges *edges = &quern__relation_of(&world->storage, likes)->edges;
    edges->count++;
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    edges->count--;
    const quern__edge_node saved = *node_of(fans[8]);
    *node_of(fans[8]) = (quern__edge_node){.targets = {.slots = NULL}};
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *node_of(fans[8]) = saved;
}
