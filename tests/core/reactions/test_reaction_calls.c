/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "tests/core/reactions/reaction_scene.h"

/* The changes that each call and each command reports to reactions. */

TestSuite(reaction_calls, .init = open_world, .fini = close_world);

/* ------------------------------------------------------------------------------------- each call */

Test(reaction_calls, many_created_entities)
{
    quern_entity entities[MANY];
    must(quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY, entities));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_equal(told.rows[i].entity, entities[i]));
}

/* Checks the i-th reported removal. */
static void assert_gone(uint32_t i, quern_entity entity, uint64_t value)
{
    cr_assert_eq(told.rows[i].kind, QUERN_REACT_REMOVED);
    cr_assert(quern_entity_equal(told.rows[i].entity, entity), "row %u", i);
    cr_assert_eq(*(const uint64_t *)told.rows[i].values[0], value);
}

Test(reaction_calls, many_destroyed_entities_are_reported_in_list_order)
{
    quern_entity entities[MANY], list[MANY];
    create_many_old(entities, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        list[i] = entities[(i * 101) % MANY];
    must(quern_entity_destroy_many(world, list, MANY));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, list[i], (i * 101) % MANY);
}

Test(reaction_calls, all_destroyed_matches)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(number)}, 1);
    must(quern_entity_destroy_matching(query, NULL));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, entities[i], i);
    quern_query_destroy(query);
}

Test(reaction_calls, components_added_to_and_removed_from_all_matches)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(big)}, 1);
    must(quern_entity_add_matching(query, other, NULL, NULL));
    expect(0);
    must(quern_entity_remove_matching(query, number, NULL));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, entities[i], i);
    must(quern_entity_add_matching(query, number, NULL, NULL));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(told.rows[i].kind, QUERN_REACT_ADDED);
    quern_query_destroy(query);
}

Test(reaction_calls, disabled_entity_no_longer_matches)
{
    const quern_entity entity = create_old(5);
    must(quern_entity_set_enabled(world, entity, false));
    expect_gone(entity, 5);
    must(quern_entity_set_enabled(world, entity, true));
    expect_one(QUERN_REACT_ADDED, entity);
}

Test(reaction_calls, writes_through_a_pointer_must_be_marked)
{
    const quern_entity entity = create_old(1);
    quern_getter *getter;
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &getter));
    *(uint64_t *)quern_getter_get_write(getter, entity) = 2;
    *(uint64_t *)quern_entity_get(world, entity, number) = 3;
    expect(0);
    must(quern_entity_mark_changed(world, entity, number));
    expect_one(QUERN_REACT_SET, entity);
    quern_getter_destroy(getter);
}

/* Sync points with nothing but relate commands report in the order of rows, like all others. */
Test(reaction_calls, targets_that_commands_remove_are_reported_in_the_order_of_rows)
{
    enum { SOURCES = 30, TARGETS = 2 };
    const quern_relation parent = quern_world_parent(world);
    quern_entity targets[TARGETS], sources[SOURCES];
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] = create(i);
    must(quern_entity_relate(world, targets[1], parent, targets[0]));
    for (uint32_t i = 0; i < SOURCES; i++) {
        sources[i] = create(i);
        must(quern_entity_relate(world, sources[i], parent, targets[0]));
    }
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(parent)));
    for (uint32_t i = 0; i < SOURCES; i++) {
        const quern_entity source = sources[i * 7 % SOURCES];
        if (i % 3 == 0)
            must(quern_commands_relate(commands(), source, parent, targets[1])); /* another level */
        else
            must(quern_commands_unrelate(commands(), source, parent));
    }
    flush();
    cr_assert_eq(world->commands->playback.only_relates_count, 0u);
    reacting_look(&related);
    cr_assert_eq(related.count, SOURCES);
    for (uint32_t i = 1; i < SOURCES && related.rows[i].kind == QUERN_REACT_REMOVED; i++)
        cr_assert_lt(quern_entity_index(related.rows[i - 1].entity),
                     quern_entity_index(related.rows[i].entity));
    reacting_end(&related);
}

/* The rows stay where they are, and the reaction's listener belongs to their archetype. */
Test(reaction_calls, targets_that_commands_replace_in_place_are_reported_with_old_ones)
{
    quern_relation lock = make_relation(world, .name = "lock");
    const quern_entity a = create(1), b = create(2), source = create(3);
    must(quern_entity_relate(world, source, lock, a));
    reacting related = react(QUERN_REACT_SET, quern_term_old(quern_relation_component(lock)));
    must(quern_commands_relate(commands(), source, lock, b));
    flush();
    cr_assert_eq(world->commands->playback.only_relates_count, 0u);
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_eq(((const quern_entity *)related.rows[0].old[0])->bits, a.bits);
    reacting_end(&related);
}

Test(reaction_calls, first_targets_of_many_are_added_and_not_set)
{
    enum { SOURCES = 5 };
    const quern_relation parent = quern_world_parent(world);
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(parent)));
    quern_entity sources[SOURCES], targets[SOURCES];
    const quern_entity root = create(0);
    for (uint32_t i = 0; i < SOURCES; i++) {
        sources[i] = create(i);
        targets[i] = root;
    }
    must(quern_entity_relate_many(world, sources, parent, targets, SOURCES));
    reacting_look(&related);
    cr_assert_eq(related.count, SOURCES);
    for (uint32_t i = 0; i < SOURCES; i++)
        cr_assert_eq(related.rows[i].kind, QUERN_REACT_ADDED);
    reacting_end(&related);
}

Test(reaction_calls, target_is_reported_as_a_value)
{
    const quern_relation parent = quern_world_parent(world);
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(parent)));
    const quern_entity root = create(1), deep = create(2), child = create(3);
    must(quern_entity_relate(world, deep, parent, root));
    must(quern_entity_relate(world, child, parent, root));
    reacting_look(&related);
    cr_assert_eq(related.count, 2u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_ADDED, child));
    must(quern_entity_relate(world, child, parent, deep)); /* changes its level */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_SET, child));
    const quern_entity other_root = create(4);
    must(quern_entity_relate(world, deep, parent,
                             other_root)); /* the child keeps its level and its target */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_SET, deep));
    must(quern_entity_unrelate(world, deep, parent)); /* changes the level of the child */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    const reacting_row *row = reacting_find(&related, QUERN_REACT_REMOVED, deep);
    cr_assert_eq(memcmp(row->values[0], &other_root, sizeof other_root), 0);
    reacting_end(&related);
}

Test(reaction_calls, sources_destroyed_with_their_target_are_reported)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_entity root = create(1), child = create(2), grandchild = create(3);
    must(quern_entity_relate(world, child, parent, root));
    must(quern_entity_relate(world, grandchild, parent, child));
    expect(3);
    must(quern_entity_destroy(world, root));
    expect(3);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_REACT_REMOVED, root)->values[0], 1u);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_REACT_REMOVED, child)->values[0], 2u);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_REACT_REMOVED, grandchild)->values[0], 3u);
}

Test(reaction_calls, sources_that_lose_their_target_are_reported)
{
    quern_relation likes =
        make_relation(world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(likes)));
    const quern_entity target = create(1), source = create(2);
    must(quern_entity_relate(world, source, likes, target));
    reacting_look(&related);
    must(quern_entity_destroy(world, target));
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_eq(
        memcmp(reacting_find(&related, QUERN_REACT_REMOVED, source)->values[0], &target, sizeof target), 0);
    reacting_end(&related);
}

Test(reaction_calls, spawned_prefab_members)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_entity root = create(1), child = create_old(2);
    must(quern_entity_relate(world, child, parent, root));
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    quern_entity roots[10];
    expect(0);
    must(quern_prefab_spawn_many(world, prefab, 10, NULL, roots, NULL));
    expect(20);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert_not_null(reacting_find(&told, QUERN_REACT_ADDED, roots[i]));
    must(quern_entity_destroy_many(world, roots, 10));
    expect(20);
}

/* --------------------------------------------------------------------------------------- commands */

Test(reaction_calls, net_effect_of_commands)
{
    const quern_entity gone = create_old(1), set = create_old(2), back = create_old(3);
    const quern_entity moved = create_old(4), still = create_old(5);
    uint64_t value = 10;
    quern_commands *list = commands();
    must(quern_commands_set(list, gone, number, &value));
    must(quern_commands_destroy(list, gone));
    must(quern_commands_set(list, set, number, &value));
    must(quern_commands_add(list, set, other, NULL)); /* moves the entity */
    must(quern_commands_remove(list, back, number));
    must(quern_commands_add(list, back, number, &value));
    must(quern_commands_add(list, moved, tag, NULL));
    must(quern_commands_add(list, still, number, NULL)); /* keeps the existing value */
    must(quern_commands_destroy(list, record_entity_with(list, &number, NULL, 1)));
    const quern_entity created = record_entity_with(list, &number, NULL, 1);
    must(quern_commands_set(list, created, number, &value));
    flush();
    expect(4);
    assert_gone(0, gone, 1);
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_SET, set));
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_SET, back));
    uint32_t added_count = 0;
    for (uint32_t i = 0; i < told.count; i++)
        added_count += told.rows[i].kind == QUERN_REACT_ADDED;
    cr_assert_eq(added_count, 1u);
}

Test(reaction_calls, entities_removed_by_commands_are_reported_in_row_order)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    quern_commands *list = commands();
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t k = (i * 101) % MANY;
        must(k % 2 == 0 ? quern_commands_remove(list, entities[k], number)
                        : quern_commands_destroy(list, entities[k]));
    }
    flush();
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, entities[i], i);
}

Test(reaction_calls, sync_points_and_calls_between_runs_are_reported_in_order)
{
    quern_entity entities[6];
    create_many_old(entities, 6);
    must(quern_commands_destroy(commands(), entities[4]));
    must(quern_commands_destroy(commands(), entities[3]));
    flush();
    must(quern_entity_destroy(world, entities[5]));
    must(quern_entity_remove(world, entities[0], number));
    must(quern_commands_remove(commands(), entities[2], number));
    must(quern_commands_destroy(commands(), entities[1]));
    flush();
    expect(6);
    assert_gone(0, entities[3], 3);
    assert_gone(1, entities[4], 4);
    assert_gone(2, entities[5], 5);
    assert_gone(3, entities[0], 0);
    const bool is_swapped = told.rows[4].entity.bits == entities[1].bits; /* rows were relocated */
    assert_gone(is_swapped ? 4 : 5, entities[1], 1);
    assert_gone(is_swapped ? 5 : 4, entities[2], 2);
}

Test(reaction_calls, commands_that_relate)
{
    const quern_relation parent = quern_world_parent(world);
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(parent)));
    const quern_entity root = create(1), deep = create(2), child = create(3);
    must(quern_commands_relate(commands(), deep, parent, root));
    must(quern_commands_relate(commands(), child, parent, root));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 2u);
    must(quern_commands_relate(commands(), child, parent, deep));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_SET, child));
    must(quern_commands_unrelate(commands(), deep, parent));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_REMOVED, deep));
    must(quern_commands_destroy(commands(), deep));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_REACT_REMOVED, child));
    reacting_end(&related);
}
