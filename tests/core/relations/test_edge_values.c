/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Values of edges: relating with a value, defaults, and what changes and ends with edges. */

#include "tests/support/fixture.h"

#include <quern/archive.h>
#include <quern/commands.h>
#include <quern/history.h>
#include <quern/list.h>
#include <quern/prefab.h>
#include <quern/relation.h>

#include <string.h>

typedef struct debt {
    int32_t amount;
    float rate;
} debt;

typedef struct like {
    quern_entity target;
    float strength;
    uint32_t since;
} like;

typedef struct likings {
    QUERN_LIST(like) edges;
} likings;

static failing_allocator *memory;
static quern_component debts, likes_values;
static quern_relation owes, likes, boss;
static quern_component ranks;

static void register_relations(void)
{
    const debt none = {.amount = -1, .rate = 0.5f};
    const quern_component_def debt_def = {QUERN_TYPE(debt), .default_value = &none,
                                          .fields = {QUERN_FIELD(debt, amount), QUERN_FIELD(debt, rate)}};
    const quern_component_def like_def = {
        QUERN_TYPE(likings), .fields = {QUERN_LIST_FIELD(likings, edges, like, target, strength, since)}};
    cr_assert_eq(quern_component_register(world, &debt_def, &debts), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_component_register(world, &like_def, &likes_values), QUERN_OK, "%s",
                 quern_error_message());
    ranks = setup_component(world, "rank", 4, 4);
    const quern_relation_def defs[] = {
        {.name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .value = debts},
        {.name = "likes",
         .on_target_destroyed = QUERN_TARGET_UNRELATES,
         .many = true,
         .value = likes_values},
        {.name = "boss", .levels = true, .ordered = true, .value = ranks}};
    quern_relation *const out[] = {&owes, &likes, &boss};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(quern_relation_register(world, &defs[i], out[i]), QUERN_OK, "%s",
                     quern_error_message());
}

static void open_world(void)
{
    memory = open_failing_world();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    register_relations();
}

static void close_lists(void)
{
    close_valid_world();
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(edge_values, .init = open_world, .fini = close_lists);

static quern_entity make(void)
{
    return setup_entity(world);
}

static void relate(quern_entity source, quern_relation relation, quern_entity target)
{
    cr_assert_eq(quern_entity_relate(world, source, relation, target), QUERN_OK, "%s",
                 quern_error_message());
}

static void owe(quern_entity source, quern_entity target, int32_t amount)
{
    cr_assert_eq(quern_entity_relate_with(world, source, owes, target, &(debt){amount, 1}), QUERN_OK, "%s",
                 quern_error_message());
}

static void like_it(quern_entity source, quern_entity target, uint32_t since)
{
    cr_assert_eq(quern_entity_relate_with(world, source, likes, target, &(like){.since = since}), QUERN_OK,
                 "%s", quern_error_message());
}

static int32_t debt_of(quern_entity source, quern_entity target)
{
    const debt *value = quern_entity_edge_value(world, source, owes, target);
    return value != NULL ? value->amount : -100;
}

/* Returns since when the source likes the target; UINT32_MAX: it does not. */
static uint32_t liking(quern_entity source, quern_entity target)
{
    const like *value = quern_entity_edge_value(world, source, likes, target);
    cr_assert(value == NULL || quern_entity_equal(value->target, target));
    return value != NULL ? value->since : UINT32_MAX;
}

/* --------------------------------------------------------------------------- one target per source */

Test(edge_values, an_edge_begins_with_the_default_value)
{
    const quern_entity a = make(), b = make();
    relate(a, owes, b);
    cr_assert_eq(debt_of(a, b), -1);
    cr_assert(quern_entity_has(world, a, debts));
}

Test(edge_values, relating_with_a_value_sets_it)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    cr_assert_eq(debt_of(a, b), 30);
    owe(a, b, 20); /* the edge exists */
    cr_assert_eq(debt_of(a, b), 20);
    cr_assert_eq(debt_of(b, a), -100);
}

Test(edge_values, relating_to_the_same_target_keeps_the_value)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    relate(a, owes, b);
    cr_assert_eq(debt_of(a, b), 30);
}

Test(edge_values, another_target_makes_a_new_edge)
{
    const quern_entity a = make(), b = make(), c = make();
    owe(a, b, 30);
    relate(a, owes, c);
    cr_assert_eq(debt_of(a, c), -1);
    cr_assert_null(quern_entity_edge_value(world, a, owes, b));
}

Test(edge_values, a_list_of_pairs_makes_new_edges)
{
    const quern_entity a = make(), b = make(), c = make(), d = make();
    owe(a, b, 30);
    owe(d, b, 40);
    const quern_entity sources[] = {a, a, c, d}, targets[] = {c, b, b, b};
    cr_assert_eq(quern_entity_relate_many(world, sources, owes, targets, 4), QUERN_OK);
    cr_assert_eq(debt_of(a, b), -1, "the edge ended in between");
    cr_assert_eq(debt_of(c, b), -1);
    cr_assert_eq(debt_of(d, b), 40);
}

Test(edge_values, unrelating_ends_the_value)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    cr_assert_eq(quern_entity_unrelate(world, a, owes), QUERN_OK);
    cr_assert_not(quern_entity_has(world, a, debts));
    relate(a, owes, b);
    cr_assert_eq(debt_of(a, b), -1);
}

Test(edge_values, destroying_the_target_ends_the_value)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    cr_assert_eq(quern_entity_destroy(world, b), QUERN_OK);
    cr_assert_not(quern_entity_has(world, a, debts));
}

Test(edge_values, set_changes_the_value_of_an_edge)
{
    const quern_entity a = make(), b = make();
    relate(a, owes, b);
    cr_assert_eq(quern_entity_set_edge_value(world, a, owes, b, &(debt){7, 0}), QUERN_OK);
    cr_assert_eq(debt_of(a, b), 7);
    cr_assert_eq(quern_entity_set(world, a, debts, &(debt){8, 0}), QUERN_OK);
    cr_assert_eq(debt_of(a, b), 8);
}

Test(edge_values, values_stay_when_levels_change)
{
    quern_entity chain[6];
    for (uint32_t i = 0; i < 6; i++) {
        chain[i] = make();
        if (i > 0)
            cr_assert_eq(quern_entity_relate_with(world, chain[i], boss, chain[i - 1], &i), QUERN_OK);
    }
    const quern_entity top = make();
    relate(chain[0], boss, top);
    for (uint32_t i = 1; i < 6; i++)
        cr_assert_eq(*(const uint32_t *)quern_entity_edge_value(world, chain[i], boss, chain[i - 1]), i);
    cr_assert_eq(*(const uint32_t *)quern_entity_edge_value(world, chain[0], boss, top), 0u);
    cr_assert_eq(quern_entity_unrelate(world, chain[2], boss), QUERN_OK);
    cr_assert_eq(*(const uint32_t *)quern_entity_edge_value(world, chain[5], boss, chain[4]), 5u);
}

Test(edge_values, a_created_entity_may_begin_with_a_value)
{
    const quern_entity b = make();
    const quern_component list[] = {quern_relation_component(owes), debts};
    quern_entity a, c;
    cr_assert_eq(quern_entity_create_with(world, list, (const void *[]){&b, &(debt){5, 0}}, 2, &a),
                 QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_entity_create_with(world, list, (const void *[]){&b}, 1, &c), QUERN_OK);
    cr_assert_eq(debt_of(a, b), 5);
    cr_assert_eq(debt_of(c, b), -1);
}

Test(edge_values, a_value_may_come_from_another_edge)
{
    const quern_entity a = make(), b = make(), c = make();
    owe(a, b, 30);
    cr_assert_eq(quern_entity_relate_with(world, c, owes, b, quern_entity_edge_value(world, a, owes, b)),
                 QUERN_OK);
    cr_assert_eq(debt_of(c, b), 30);
}

Test(edge_values, clearing_an_entity_keeps_edges_and_values)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    like_it(a, b, 4);
    cr_assert_eq(quern_entity_clear(world, a), QUERN_OK);
    cr_assert_eq(debt_of(a, b), 30);
    cr_assert_eq(liking(a, b), 4u);
}

/* ----------------------------------------------------------------------- several targets per source */

Test(edge_values, each_of_several_edges_has_a_value)
{
    const quern_entity a = make(), b = make(), c = make(), d = make();
    like_it(a, d, 3);
    like_it(a, b, 1);
    relate(a, likes, c);
    like_it(b, a, 9);
    cr_assert_eq(liking(a, b), 1u);
    cr_assert_eq(liking(a, c), 0u);
    cr_assert_eq(liking(a, d), 3u);
    cr_assert_eq(liking(b, a), 9u);
    cr_assert_eq(liking(b, c), UINT32_MAX);
    const likings *all = quern_entity_get(world, a, likes_values);
    cr_assert_eq(all->edges.list.count, 3u);
    for (uint32_t i = 1; i < 3; i++)
        cr_assert_lt(quern_entity_index(all->edges.items[i - 1].target),
                     quern_entity_index(all->edges.items[i].target));
}

Test(edge_values, one_of_several_edges_ends_with_its_value)
{
    const quern_entity a = make(), b = make(), c = make();
    like_it(a, b, 1);
    like_it(a, c, 2);
    cr_assert_eq(quern_entity_unrelate_from(world, a, likes, b), QUERN_OK);
    cr_assert_eq(liking(a, b), UINT32_MAX);
    cr_assert_eq(liking(a, c), 2u);
    relate(a, likes, b);
    cr_assert_eq(liking(a, b), 0u);
    cr_assert_eq(quern_entity_destroy(world, c), QUERN_OK);
    cr_assert_eq(((const likings *)quern_entity_get(world, a, likes_values))->edges.list.count, 1u);
    cr_assert_eq(quern_entity_unrelate(world, a, likes), QUERN_OK);
    cr_assert_not(quern_entity_has(world, a, likes_values));
}

Test(edge_values, set_changes_the_value_of_one_of_several_edges)
{
    const quern_entity a = make(), b = make(), c = make();
    like_it(a, b, 1);
    like_it(a, c, 2);
    cr_assert_eq(quern_entity_set_edge_value(world, a, likes, b, &(like){.target = c, .since = 5}),
                 QUERN_OK);
    cr_assert_eq(liking(a, b), 5u);
    cr_assert_eq(liking(a, c), 2u);
    like_it(a, c, 6);
    cr_assert_eq(liking(a, c), 6u);
}

Test(edge_values, a_list_of_pairs_adds_edges_with_initial_values)
{
    const quern_entity a = make(), b = make(), c = make(), d = make();
    like_it(a, b, 1);
    const quern_entity sources[] = {a, a, c, d, c}, targets[] = {c, b, b, b, d};
    cr_assert_eq(quern_entity_relate_many(world, sources, likes, targets, 5), QUERN_OK);
    cr_assert_eq(liking(a, b), 1u);
    cr_assert_eq(liking(a, c), 0u);
    cr_assert_eq(liking(c, d), 0u);
    cr_assert_eq(liking(d, b), 0u);
}

/* ------------------------------------------------------------------------------------------- looking */

Test(edge_values, the_component_of_the_values_is_known)
{
    cr_assert_eq(quern_relation_value(world, owes).bits, debts.bits);
    cr_assert_eq(quern_relation_value(world, quern_world_parent(world)).bits, 0u);
}

Test(edge_values, the_hash_of_a_world_includes_values)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    like_it(a, b, 3);
    const uint64_t hash = quern_world_hash(world);
    owe(a, b, 31);
    cr_assert_neq(quern_world_hash(world), hash);
    owe(a, b, 30);
    cr_assert_eq(quern_world_hash(world), hash);
    like_it(a, b, 4);
    cr_assert_neq(quern_world_hash(world), hash);
}

Test(edge_values, the_hash_of_the_content_does_not_depend_on_the_order_of_entities)
{
    uint64_t hashes[2];
    const quern_component id = setup_component(world, "id", 8, 8);
    for (uint32_t turn = 0; turn < 2; turn++) {
        quern_entity all[3];
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t place = turn == 0 ? i : 2 - i;
            all[place] = make();
            cr_assert_eq(quern_entity_set(world, all[place], id, &(uint64_t){place}), QUERN_OK);
        }
        like_it(all[0], all[1], 1);
        like_it(all[0], all[2], 2);
        hashes[turn] = quern_world_hash_by(world, id);
        cr_assert_eq(quern_entity_destroy_many(world, all, 3), QUERN_OK);
    }
    cr_assert_eq(hashes[0], hashes[1]);
}

/* -------------------------------------------------------------------------------------------- commands */

static quern_commands *commands(void)
{
    return quern_world_commands(world);
}

static uint64_t flush(void)
{
    quern_flush_stats stats;
    must(quern_world_flush(world));
    must(quern_world_get_flush_stats(world, &stats));
    assert_valid(world);
    return stats.dropped_count;
}

Test(edge_values, the_last_command_sets_the_value)
{
    const quern_entity a = make(), b = make();
    must(quern_commands_relate_with(commands(), a, owes, b, &(debt){1, 0}));
    must(quern_commands_set_edge_value(commands(), a, owes, b, &(debt){2, 0}));
    must(quern_commands_relate(commands(), a, owes, b)); /* the edge exists */
    must(quern_commands_relate_with(commands(), a, likes, b, &(like){.since = 3}));
    must(quern_commands_relate_with(commands(), a, likes, b, &(like){.since = 4}));
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(debt_of(a, b), 2);
    cr_assert_eq(liking(a, b), 4u);
}

Test(edge_values, an_edge_that_commands_end_and_make_again_begins_anew)
{
    const quern_entity a = make(), b = make();
    owe(a, b, 30);
    like_it(a, b, 4);
    must(quern_commands_unrelate(commands(), a, owes));
    must(quern_commands_relate(commands(), a, owes, b));
    must(quern_commands_unrelate_from(commands(), a, likes, b));
    must(quern_commands_relate(commands(), a, likes, b));
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(debt_of(a, b), -1);
    cr_assert_eq(liking(a, b), 0u);
}

Test(edge_values, commands_on_missing_edges_are_dropped)
{
    const quern_entity a = make(), b = make(), c = make();
    owe(a, b, 30);
    must(quern_commands_set_edge_value(commands(), a, owes, c, &(debt){2, 0}));
    must(quern_commands_set_edge_value(commands(), a, likes, b, &(like){.since = 1}));
    must(quern_commands_destroy(commands(), b));
    must(quern_commands_set_edge_value(commands(), a, owes, b, &(debt){3, 0}));
    cr_assert_eq(flush(), 3u);
    cr_assert_not(quern_entity_has(world, a, debts));
}

Test(edge_values, created_entities_may_be_sources_and_targets)
{
    const quern_entity last = make();
    quern_entity a, b;
    const quern_component list[] = {quern_relation_component(owes), debts};
    must(quern_commands_create(commands(), &b));
    must(quern_commands_create_with(commands(), list, (const void *[]){&last, &(debt){5, 0}}, 2, &a));
    must(quern_commands_relate_with(commands(), b, likes, a, &(like){.since = 6}));
    must(quern_commands_relate_with(commands(), last, likes, b, &(like){.since = 7}));
    must(quern_commands_relate_with(commands(), last, boss, b, &(uint32_t){8}));
    cr_assert_eq(flush(), 0u);
    quern_entity made[2];
    cr_assert_eq(quern_entity_list_sources(world, last, owes, made, 2), 1u);
    a = made[0];
    cr_assert_eq(quern_entity_list_sources(world, a, likes, made, 2), 1u);
    b = made[0];
    cr_assert_eq(debt_of(a, last), 5);
    cr_assert_eq(liking(b, a), 6u);
    cr_assert_eq(liking(last, b), 7u);
    cr_assert_eq(*(const uint32_t *)quern_entity_edge_value(world, last, boss, b), 8u);
}

Test(edge_values, a_create_whose_target_has_died_has_no_value)
{
    const quern_entity target = make(), other = make();
    const quern_component list[] = {quern_relation_component(owes), debts};
    quern_entity a;
    must(quern_commands_destroy(commands(), target));
    must(quern_commands_create_with(commands(), list, (const void *[]){&target, &(debt){5, 0}}, 2, &a));
    must(quern_commands_relate_with(commands(), other, likes, a, &(like){.since = 1}));
    flush();
    a = quern_entity_target(world, other, likes);
    cr_assert_not(quern_entity_has(world, a, debts));
}

/* -------------------------------------------------------------------------------------------- prefabs */

/* A tree of three with edges inside and to `outside`. */
static quern_entity make_tree(quern_entity outside, quern_entity out_members[3])
{
    const quern_relation parent = quern_world_parent(world);
    for (uint32_t i = 0; i < 3; i++) {
        out_members[i] = make();
        if (i > 0) relate(out_members[i], parent, out_members[0]);
    }
    owe(out_members[1], out_members[2], 12);
    owe(out_members[2], outside, 13);
    like_it(out_members[0], out_members[1], 1);
    like_it(out_members[0], out_members[2], 2);
    like_it(out_members[0], outside, 3);
    like_it(out_members[2], out_members[1], 4);
    return out_members[0];
}

/* Checks a copy of the tree. */
static void check_tree(const quern_entity members[3], quern_entity outside)
{
    assert_valid(world);
    cr_assert_eq(debt_of(members[1], members[2]), 12);
    cr_assert_eq(debt_of(members[2], outside), 13);
    cr_assert_eq(liking(members[0], members[1]), 1u);
    cr_assert_eq(liking(members[0], members[2]), 2u);
    cr_assert_eq(liking(members[0], outside), 3u);
    cr_assert_eq(liking(members[2], members[1]), 4u);
}

/* Frees slots so that new entities get descending ones. */
static void reverse_slots(void)
{
    quern_entity list[16];
    for (uint32_t i = 0; i < 16; i++)
        list[i] = make();
    for (uint32_t i = 0; i < 16; i++)
        must(quern_entity_destroy(world, list[i]));
}

Test(edge_values, instances_and_clones_have_the_values_of_edges)
{
    quern_entity members[3], copies[6], clone;
    quern_prefab prefab;
    const quern_entity outside = make(), root = make_tree(outside, members);
    must(quern_prefab_capture(world, root, &prefab));
    reverse_slots();
    must(quern_prefab_spawn_many(world, prefab, 2, NULL, NULL, copies));
    check_tree(copies, outside);
    check_tree(copies + 3, outside);
    must(quern_entity_clone(world, root, NULL, &clone));
    const quern_relation parent = quern_world_parent(world);
    const quern_entity first = quern_entity_first_source(world, clone, parent);
    const quern_entity cloned[] = {clone, first, quern_entity_next_sibling(world, first, parent)};
    check_tree(cloned, outside);
}

Test(edge_values, commands_on_spawned_members_see_their_values)
{
    quern_entity members[3], spawned;
    quern_prefab prefab;
    const quern_entity outside = make(), other = make();
    must(quern_prefab_capture(world, make_tree(outside, members), &prefab));
    reverse_slots();
    must(quern_commands_spawn(commands(), prefab, NULL, &spawned));
    const quern_entity second = quern_commands_spawned_member(commands(), prefab, spawned, 1);
    must(quern_commands_set_edge_value(commands(), spawned, likes, second, &(like){.since = 9}));
    must(quern_commands_relate_with(commands(), other, owes, spawned, &(debt){1, 0}));
    cr_assert_eq(flush(), 0u);
    const quern_entity root = quern_entity_target(world, other, owes);
    const quern_relation parent = quern_world_parent(world);
    const quern_entity first = quern_entity_first_source(world, root, parent),
                       last = quern_entity_next_sibling(world, first, parent);
    cr_assert_eq(liking(root, first), 9u);
    cr_assert_eq(liking(root, last), 2u);
    cr_assert_eq(liking(root, outside), 3u);
    cr_assert_eq(liking(last, first), 4u);
    cr_assert_eq(debt_of(last, outside), 13);
}

Test(edge_values, a_spawn_whose_outside_target_has_died_keeps_other_values)
{
    quern_entity members[3], spawned;
    quern_prefab prefab;
    const quern_entity outside = make(), other = make();
    must(quern_prefab_capture(world, make_tree(outside, members), &prefab));
    must(quern_commands_destroy(commands(), outside));
    must(quern_commands_spawn(commands(), prefab, NULL, &spawned));
    must(quern_commands_relate_with(commands(), other, owes, spawned, &(debt){1, 0}));
    flush();
    const quern_entity root = quern_entity_target(world, other, owes);
    const quern_relation parent = quern_world_parent(world);
    const quern_entity first = quern_entity_first_source(world, root, parent),
                       last = quern_entity_next_sibling(world, first, parent);
    cr_assert_eq(liking(root, first), 1u);
    cr_assert_eq(liking(root, last), 2u);
    cr_assert_eq(quern_entity_target_count(world, root, likes), 2u);
    cr_assert_not(quern_entity_has(world, last, debts));
}

Test(edge_values, described_members_have_values)
{
    const like to_first = {.target = quern_prefab_member_handle(0), .since = 5};
    likings list = {.edges = {.items = NULL}};
    must(quern_list_push(&list.edges.list, sizeof(like), &to_first));
    const debt value = {9, 0};
    const quern_prefab_value values[] = {{.component = debts, .value = &value},
                                         {.component = likes_values, .value = &list}};
    const quern_prefab_target targets[] = {{owes, quern_prefab_member_handle(0)},
                                           {likes, quern_prefab_member_handle(0)},
                                           {likes, quern_prefab_member_handle(2)}};
    const quern_prefab_member_def defs[] = {
        {.parent = 0},
        {.parent = 0, .values = values, .value_count = 2, .targets = targets, .target_count = 3},
        {.parent = 0}};
    quern_prefab prefab;
    quern_entity members[3];
    must(quern_prefab_create(world, defs, 3, &prefab));
    quern_list_free(&list.edges.list);
    must(quern_prefab_spawn_many(world, prefab, 1, NULL, NULL, members));
    assert_valid(world);
    cr_assert_eq(debt_of(members[1], members[0]), 9);
    cr_assert_eq(liking(members[1], members[0]), 5u);
    cr_assert_eq(liking(members[1], members[2]), 0u);
}

Test(edge_values, described_values_without_their_edge_are_refused)
{
    const quern_entity root = quern_prefab_member_handle(0), other = quern_prefab_member_handle(2);
    const quern_entity targets[][2] = {{root, other}, {root, root}, {make(), root}};
    for (uint32_t i = 0; i < 3; i++) {
        likings list = {.edges = {.items = NULL}};
        for (uint32_t k = 0; k < 2; k++)
            must(quern_list_push(&list.edges.list, sizeof(like), &(like){.target = targets[i][k]}));
        const quern_prefab_value value = {.component = likes_values, .value = &list};
        const quern_prefab_target target = {likes, root};
        const quern_prefab_member_def defs[] = {
            {.parent = 0},
            {.values = &value, .value_count = 1, .targets = &target, .target_count = 1},
            {.parent = 0}};
        quern_prefab prefab = {0};
        cr_assert_eq(quern_prefab_create(world, defs, 3, &prefab), QUERN_ERROR_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(quern_error_message(), i == 2 ? "element 0" : "element 1"), "%s",
                           quern_error_message());
        quern_list_free(&list.edges.list);
    }
}

/* ------------------------------------------------------------------------------------------- archives */

static quern_entity outsiders[2]; /* of the saving and of the loading world */

static uint64_t id_of(void *user_data, quern_entity entity)
{
    return quern_entity_equal(entity, outsiders[0]) ? 7 : 0;
}

static quern_entity entity_of(void *user_data, uint64_t id)
{
    return id == 7 ? outsiders[1] : quern_entity_null();
}

Test(edge_values, values_of_edges_out_of_a_list_are_saved_if_the_target_is_known)
{
    quern_archive *archive;
    for (uint32_t turn = 0; turn < 2; turn++) {
        const quern_entity outside = make(), unknown = make(), a = make(), b = make();
        owe(a, outside, 30);
        owe(b, unknown, 31);
        like_it(a, unknown, 1);
        like_it(a, b, 2);
        like_it(a, outside, 3);
        outsiders[0] = outside;
        outsiders[1] = make();
        quern_byte_buffer bytes = {0};
        must(quern_archive_create(world, &archive));
        must(quern_archive_append(archive, (const quern_entity[]){b, a}, 2));
        must(quern_archive_save(archive, quern_sink_bytes(&bytes),
                                &(quern_save_def){.outside_id = turn == 0 ? id_of : NULL}));
        quern_archive_destroy(archive);
        quern_entity loaded[2] = {{0}};
        const quern_load_def def = {.outside_entity = entity_of, .entities = loaded, .entity_capacity = 2};
        must(quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, NULL));
        quern_byte_buffer_release(&bytes);
        assert_valid(world);
        const uint32_t first = quern_entity_target_count(world, loaded[0], likes) > 0 ? 0 : 1;
        const quern_entity x = loaded[first], y = loaded[1 - first];
        cr_assert_eq(liking(x, y), 2u);
        cr_assert_eq(liking(x, outsiders[1]), turn == 0 ? 3u : UINT32_MAX);
        cr_assert_eq(debt_of(x, outsiders[1]), turn == 0 ? 30 : -100);
        cr_assert_not(quern_entity_has(world, y, debts));
    }
}

/* ------------------------------------------------------------------------------------------ refusals */

/* Checks that the last call failed, with these words in its message. */
static void refuse_with(quern_result result, quern_result expected, const char *words)
{
    cr_assert_eq(result, expected, "%s: %s", quern_result_string(result), quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message());
}

Test(edge_values, values_need_an_edge)
{
    const quern_entity a = make(), b = make(), c = make();
    refuse_with(quern_entity_set_edge_value(world, a, owes, b, &(debt){1, 0}), QUERN_ERROR_COMPONENT_ABSENT,
                "does not have target");
    like_it(a, b, 1);
    refuse_with(quern_entity_set_edge_value(world, a, likes, c, &(like){.since = 1}),
                QUERN_ERROR_COMPONENT_ABSENT, "does not have target");
    refuse_with(quern_entity_set(world, a, debts, &(debt){1, 0}), QUERN_ERROR_INVALID_ARGUMENT,
                "quern_entity_relate_with");
    refuse_with(quern_entity_add(world, a, debts, NULL), QUERN_ERROR_INVALID_ARGUMENT,
                "quern_entity_relate_with");
    quern_entity created;
    refuse_with(quern_entity_create_with(world, &debts, NULL, 1, &created), QUERN_ERROR_INVALID_ARGUMENT,
                "quern_entity_relate_with");
    refuse_with(quern_entity_create_many(world, &debts, NULL, 1, 1, &created), QUERN_ERROR_INVALID_ARGUMENT,
                "quern_entity_relate_with");
    owe(a, b, 1);
    refuse_with(quern_entity_remove(world, a, debts), QUERN_ERROR_COMPONENT_REQUIRED, "owes");
}

Test(edge_values, relations_without_values_refuse_them)
{
    const quern_entity a = make(), b = make();
    const quern_relation parent = quern_world_parent(world);
    refuse_with(quern_entity_relate_with(world, a, parent, b, &(debt){1, 0}), QUERN_ERROR_INVALID_ARGUMENT,
                "'parent' have no values");
    relate(a, parent, b);
    cr_assert_null(quern_entity_edge_value(world, a, parent, b));
    cr_assert_not_null(strstr(quern_error_message(), "have no values"));
    refuse_with(quern_entity_relate_with(world, a, owes, b, NULL), QUERN_ERROR_NULL_ARGUMENT, "value");
    refuse_with(quern_entity_relate_with(world, a, owes, a, &(debt){1, 0}), QUERN_ERROR_INVALID_ARGUMENT,
                "its own target");
}

Test(edge_values, a_list_of_values_is_not_replaced_as_a_whole)
{
    const quern_entity a = make(), b = make();
    like_it(a, b, 1);
    refuse_with(quern_entity_set(world, a, likes_values, &(likings){.edges = {.items = NULL}}),
                QUERN_ERROR_INVALID_ARGUMENT, "quern_entity_set_edge_value");
}

Test(edge_values, texts_change_values_but_no_targets)
{
    const quern_entity a = make(), b = make();
    like_it(a, b, 1);
    must(quern_entity_set_name(world, b, "b"));
    must(quern_entity_set_text(world, a, "likings.edges[0].since", "8"));
    cr_assert_eq(liking(a, b), 8u);
    refuse_with(quern_entity_set_text(world, a, "likings.edges[0].target", "none"),
                QUERN_ERROR_INVALID_ARGUMENT, "quern_entity_set_edge_value");
    owe(a, b, 3);
    must(quern_entity_set_text(world, a, "debt.amount", "4"));
    cr_assert_eq(debt_of(a, b), 4);
}

Test(edge_values, only_some_components_can_hold_values)
{
    const quern_component tag = setup_tag(world, "tag"), plain = setup_component(world, "plain", 4, 4),
                          used = setup_component(world, "used", 4, 4);
    setup_entity_with(world, &used, 1);
    quern_relation refused;
    const struct {
        quern_component value;
        bool many;
        const char *words;
    } cases[] = {{tag, false, "is a tag"},
                 {debts, false, "those of another relation"},
                 {used, false, "entities have it already or had it"},
                 {quern_relation_component(owes), false, "by itself"},
                 {plain, true, "list of structs"}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse_with(
            quern_relation_register(
                world, &(quern_relation_def){.name = "new", .many = cases[i].many, .value = cases[i].value},
                &refused),
            QUERN_ERROR_INVALID_ARGUMENT, cases[i].words);
    refuse_with(
        quern_relation_register(world, &(quern_relation_def){.name = "owes", .value = plain}, &refused),
        QUERN_ERROR_DUPLICATE_NAME, "values of edges");
}

Test(edge_values, commands_that_are_older_than_the_relation_are_refused)
{
    const quern_component late = setup_component(world, "late", 4, 4);
    const quern_entity a = make();
    quern_relation relation;
    must(quern_commands_set(commands(), a, late, &(uint32_t){1}));
    must(quern_relation_register(world, &(quern_relation_def){.name = "new", .value = late}, &relation));
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not(quern_entity_has(world, a, late));
}

/* ------------------------------------------------------------------------------------------- memory */

Test(edge_values, a_call_without_memory_changes_nothing)
{
    quern_entity all[40];
    for (uint32_t i = 0; i < 40; i++)
        all[i] = make();
    for (uint32_t i = 1; i < 40; i++) {
        const uint64_t hash = quern_world_hash(world);
        for (uint32_t n = 1;; n++) {
            if (!runs_out_of_memory(
                    memory, n,
                    i % 2 == 0
                        ? quern_entity_relate_with(world, all[0], likes, all[i], &(like){.since = i})
                        : quern_entity_relate_with(world, all[i], owes, all[0], &(debt){(int32_t)i, 0})))
                break;
            cr_assert_eq(quern_world_hash(world), hash);
            assert_valid(world);
        }
    }
}

Test(edge_values, a_sync_point_without_memory_changes_nothing)
{
    quern_entity all[12];
    for (uint32_t i = 0; i < 12; i++)
        all[i] = make();
    for (uint32_t i = 1; i < 8; i++)
        like_it(all[0], all[i], i);
    quern_history *history;
    must(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    for (uint32_t turn = 0; turn < 4; turn++) {
        must(quern_history_save(history, turn + 1, NULL)); /* lists share their blocks */
        for (uint32_t i = 1; i < 12; i++) {
            must(quern_commands_relate_with(commands(), all[0], likes, all[i],
                                            &(like){.since = 10 * turn + i}));
            must(quern_commands_relate_with(commands(), all[i], owes,
                                            all[(i + turn) % 12 == i ? 0 : (i + turn) % 12],
                                            &(debt){(int32_t)(turn + i), 0}));
        }
        must(quern_commands_unrelate_from(commands(), all[0], likes, all[turn + 1]));
        const uint64_t hash = quern_world_hash(world);
        for (uint32_t n = 1; runs_out_of_memory(memory, n, quern_world_flush(world)); n++) {
            cr_assert_eq(quern_world_hash(world), hash);
            assert_valid(world);
        }
        assert_valid(world);
        cr_assert_eq(liking(all[0], all[11]), 10 * turn + 11);
        cr_assert_eq(liking(all[0], all[turn + 1]), UINT32_MAX);
        cr_assert_eq(quern_entity_target_count(world, all[0], likes), 10u);
        must(quern_entity_relate(world, all[0], likes, all[turn + 1]));
    }
    quern_history_destroy(history);
}

Test(edge_values, a_destroy_without_memory_changes_nothing)
{
    quern_entity all[12];
    quern_history *history;
    for (uint32_t i = 0; i < 12; i++)
        all[i] = make();
    for (uint32_t i = 1; i < 12; i++)
        for (uint32_t k = 0; k < i; k++)
            like_it(all[k], all[i], 100 * k + i);
    must(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    must(quern_history_save(history, 1, NULL));
    const uint64_t hash = quern_world_hash(world);
    for (uint32_t n = 1; runs_out_of_memory(memory, n, quern_entity_destroy(world, all[11])); n++) {
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
    }
    for (uint32_t k = 0; k < 10; k++)
        cr_assert_eq(liking(all[k], all[10]), 100 * k + 10);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(quern_world_hash(world), hash);
    cr_assert_eq(liking(all[3], all[11]), 311u);
    quern_history_destroy(history);
}
