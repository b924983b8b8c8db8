/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Destruction of targets, and its effect on their sources. */

#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <stdlib.h>
#include <string.h>

enum { CHAIN = 100000, MAX_ENDED = 16 };

static failing_allocator *memory;
static quern_component named, tag;
static quern_relation parent, ring, friend, keeper, home;

/* Names of the entities whose values were destroyed, in order. */
static char ended[MAX_ENDED + 1];

static void note_end(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        if (strlen(ended) < MAX_ENDED) ended[strlen(ended)] = ((const char *)values)[i];
}

static quern_relation register_relation(const quern_relation_def *def)
{
    quern_relation relation = {0};
    cr_assert_eq(quern_relation_register(world, def, &relation), QUERN_OK, "%s", quern_error_message());
    return relation;
}

static void open_world(void)
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

TestSuite(cascade, .init = open_world, .fini = close_valid_world);

static quern_entity make(char name)
{
    quern_entity entity = {0};
    cr_assert_eq(quern_entity_create_with(world, &named, (const void *[]){&name}, 1, &entity), QUERN_OK);
    return entity;
}

static void relate(quern_entity source, quern_relation relation, quern_entity target)
{
    cr_assert_eq(quern_entity_relate(world, source, relation, target), QUERN_OK, "%s",
                 quern_error_message());
}

/* Creates a tree: a has children b and c, b has d, c has e. */
static void make_tree(quern_entity *out)
{
    for (uint32_t i = 0; i < 5; i++)
        out[i] = make((char)('a' + i));
    relate(out[1], parent, out[0]);
    relate(out[2], parent, out[0]);
    relate(out[3], parent, out[1]);
    relate(out[4], parent, out[2]);
}

Test(cascade, sources_are_destroyed_with_their_target_and_before_it)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity other = make('x');
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
    const quern_entity alone = make('x');
    const quern_entity list[] = {alone, tree[1], tree[2], tree[1]};
    cr_assert_eq(quern_entity_destroy_many(world, list, 4), QUERN_OK);
    cr_assert_str_eq(ended, "edxbc");
}

Test(cascade, cycles_are_destroyed_as_a_whole)
{
    const quern_entity a = make('a'), b = make('b'), c = make('c');
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
    const quern_entity x = make('x'), y = make('y');
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
    const quern_entity house = make('h'), dog = make('d'), flea = make('f'), mite = make('m');
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
    const quern_entity x = make('x');
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
    const quern_entity target = make('t'), source = make('s');
    relate(source, friend, target);
    const quern_term term = quern_term_without(quern_relation_component(friend));
    quern_query *query = setup_query(world, &term, 1);
    uint64_t count = 0;
    cr_assert_eq(quern_entity_destroy_matching(query, &count), QUERN_OK);
    cr_assert_eq(count, 1u);
    cr_assert(quern_entity_is_alive(world, source));
    quern_query_destroy(query);
}

Test(cascade, out_of_memory_changes_nothing)
{
    quern_entity tree[5];
    make_tree(tree);
    const quern_entity x = make('x'), y = make('y');
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
