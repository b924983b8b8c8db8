/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "core/storage/change.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/reacting.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <quern/active.h>
#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/getter.h>
#include <quern/prefab.h>
#include <quern/relation.h>

#include <criterion/criterion.h>

#include <string.h>

/* What reactions are told of, change by change. */

enum {
    ALL_KINDS = QUERN_ON_ADDED | QUERN_ON_SET | QUERN_ON_REMOVED,
    MANY = 700, /* entities that take several chunks */
    WIDE_BYTES = 120
};

static failing_allocator *memory;
static quern_world *world;
static quern_component number, other, tag, big, tracked_component;
static tracked_counts counts;
static reacting told; /* of numbers, all kinds */

static reacting react(uint32_t kinds, quern_term term)
{
    return reacting_begin(world, kinds, &term, 1);
}

static void open_world(void)
{
    memory = failing_allocator_create();
    quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    must(quern_world_create(&def, &world));
    memset((void *)&counts, 0, sizeof counts);
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    big = setup_component(world, "big", WIDE_BYTES, 8);
    tag = setup_tag(world, "tag");
    tracked_component = tracked_register(world, "tracked", &counts);
    told = react(ALL_KINDS, quern_term_read(number));
}

/* At the end of each test: nothing is left over. */
static void close_world(void)
{
    if (told.reaction != NULL) reacting_end(&told);
    assert_valid(world);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
    failing_allocator_close(memory);
}

TestSuite(reaction, .init = open_world);

/* -------------------------------------------------------------------------------- shorthands */

static quern_entity create(uint64_t value)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &number, (const void *[]){&value}, 1, &entity));
    return entity;
}

/* An entity of which the reaction has been told. */
static quern_entity create_old(uint64_t value)
{
    const quern_entity entity = create(value);
    reacting_look(&told);
    reacting_done(&told);
    return entity;
}

/* Looks, and expects to be told of so many rows. */
static void expect(uint32_t count)
{
    reacting_look(&told);
    cr_assert_eq(told.count, count, "%u rows, expected %u", told.count, count);
}

static void expect_one(quern_reaction_kind kind, quern_entity entity)
{
    expect(1);
    cr_assert_eq(told.rows[0].kind, kind);
    cr_assert(quern_entity_equal(told.rows[0].entity, entity));
}

/* The same for one that went, with the number that it had. */
static void expect_gone(quern_entity entity, uint64_t value)
{
    expect_one(QUERN_ON_REMOVED, entity);
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], value);
    reacting_done(&told);
}

/* Plays what was recorded; afterwards there is nothing more to play. */
static quern_commands *commands(void)
{
    return quern_world_commands(world);
}

static void flush(void)
{
    must(quern_world_flush(world));
}

/* --------------------------------------------------------------------------------- what is told */

Test(reaction, a_created_entity_was_added_and_is_told_of_once)
{
    const quern_entity entity = create(1);
    cr_assert(quern__reactions_are_pending(world->storage.reactions));
    expect_one(QUERN_ON_ADDED, entity);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
    close_world();
}

Test(reaction, who_does_not_match_is_not_told_of)
{
    const quern_entity entity = setup_entity_with(world, &other, 1);
    must(quern_entity_add(world, entity, tag, NULL));
    must(quern_entity_set(world, entity, other, &(uint64_t){4}));
    must(quern_entity_destroy(world, entity));
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
    close_world();
}

Test(reaction, who_comes_and_goes_before_anybody_looks_is_not_told_of)
{
    must(quern_entity_destroy(world, create(1)));
    expect(0);
    const quern_entity entity = create(2);
    must(quern_entity_remove(world, entity, number));
    expect(0);
    close_world();
}

Test(reaction, who_goes_and_comes_again_is_told_of_twice)
{
    const quern_entity entity = create_old(3);
    must(quern_entity_remove(world, entity, number));
    must(quern_entity_add(world, entity, number, &(uint64_t){4}));
    expect(2);
    cr_assert_eq(told.rows[0].kind, QUERN_ON_REMOVED);
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], 3u);
    cr_assert_eq(told.rows[1].kind, QUERN_ON_ADDED);
    cr_assert(quern_entity_equal(told.rows[1].entity, entity));
    reacting_done(&told);

    must(quern_entity_remove(world, entity, number));
    must(quern_entity_add(world, entity, number, &(uint64_t){5}));
    must(quern_entity_destroy(world, entity)); /* nobody was told that it came again */
    expect_gone(entity, 4);
    close_world();
}

Test(reaction, a_value_that_is_set_is_told_of_once)
{
    const quern_entity entity = create_old(1), still = create_old(2);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    must(quern_entity_set(world, entity, number, &(uint64_t){8}));
    expect_one(QUERN_ON_SET, entity);
    must(quern_entity_mark_changed(world, still, number));
    expect_one(QUERN_ON_SET, still);
    close_world();
}

Test(reaction, values_of_who_was_just_added_belong_to_that)
{
    const quern_entity entity = create(1);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    expect_one(QUERN_ON_ADDED, entity);
    close_world();
}

Test(reaction, values_that_no_term_reads_are_not_told_of)
{
    reacting with = react(ALL_KINDS, quern_term_with(number));
    const quern_entity entity = create_old(1);
    reacting_look(&with);
    cr_assert_eq(with.count, 1u);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    must(quern_entity_add(world, entity, other, NULL));
    reacting_look(&with);
    cr_assert_eq(with.count, 0u);
    must(quern_entity_destroy(world, entity));
    reacting_look(&with);
    cr_assert_eq(with.count, 1u, "it is told of, without values");
    cr_assert_null(with.rows[0].values[0]);
    reacting_end(&with);
    close_world();
}

Test(reaction, what_is_pending_follows_a_row)
{
    const quern_entity set = create_old(1), filler = create_old(2), added = create(3);
    must(quern_entity_set(world, set, number, &(uint64_t){9}));
    must(quern_entity_add(world, set, other, NULL));
    must(quern_entity_add(world, added, other, NULL));
    must(quern_entity_add(world, added, tag, NULL));
    must(quern_entity_destroy(world, filler));
    expect(3);
    cr_assert_not_null(reacting_find(&told, QUERN_ON_SET, set));
    cr_assert_not_null(reacting_find(&told, QUERN_ON_ADDED, added));
    cr_assert_not_null(reacting_find(&told, QUERN_ON_REMOVED, filler));
    close_world();
}

Test(reaction, an_optional_value_that_comes_along_was_set)
{
    const quern_term terms[] = {quern_term_read(number), quern_term_optional(other, QUERN_READ)};
    reacting both = reacting_begin(world, ALL_KINDS, terms, 2);
    const quern_entity entity = create(1);
    reacting_look(&both);
    must(quern_entity_add(world, entity, other, NULL));
    reacting_look(&both);
    cr_assert_eq(both.count, 1u);
    cr_assert_eq(both.rows[0].kind, QUERN_ON_SET);
    must(quern_entity_remove(world, entity, other));
    reacting_look(&both);
    cr_assert_eq(both.count, 0u, "nothing was given");
    reacting_end(&both);
    close_world();
}

Test(reaction, matching_by_exclusion_and_by_any)
{
    const quern_term terms[] = {quern_term_any(number, QUERN_READ), quern_term_any(other, QUERN_READ),
                                quern_term_without(tag)};
    reacting any = reacting_begin(world, ALL_KINDS, terms, 3);
    const quern_entity entity = create(1);
    reacting_look(&any);
    cr_assert_not_null(reacting_find(&any, QUERN_ON_ADDED, entity));
    must(quern_entity_add(world, entity, tag, NULL));
    reacting_look(&any);
    cr_assert_eq(*(const uint64_t *)reacting_find(&any, QUERN_ON_REMOVED, entity)->values[0], 1u);
    cr_assert_null(any.rows[0].values[1]);
    reacting_done(&any);
    must(quern_entity_add(world, entity, other, &(uint64_t){2}));
    must(quern_entity_remove(world, entity, number));
    must(quern_entity_remove(world, entity, tag));
    reacting_look(&any);
    cr_assert_eq(any.count, 1u);
    cr_assert_not_null(reacting_find(&any, QUERN_ON_ADDED, entity));
    reacting_end(&any);
    close_world();
}

Test(reaction, each_kind_is_told_to_those_that_ask)
{
    reacting removed = react(QUERN_ON_REMOVED, quern_term_read(number));
    reacting set = react(QUERN_ON_SET, quern_term_read(number));
    reacting added = react(QUERN_ON_ADDED, quern_term_read(number));
    const quern_entity entity = create(1);
    must(quern_entity_set(world, entity, number, &(uint64_t){2}));
    reacting_look(&added);
    cr_assert_eq(added.count, 1u);
    cr_assert_eq(added.rows[0].kind, QUERN_ON_ADDED);
    reacting_look(&set);
    cr_assert_eq(set.count, 1u, "it matched before that call");
    cr_assert_eq(set.rows[0].kind, QUERN_ON_SET);
    must(quern_entity_destroy(world, entity));
    reacting_look(&removed);
    cr_assert_eq(removed.count, 1u, "who does not ask for additions is told of each that goes");
    cr_assert_eq(removed.rows[0].kind, QUERN_ON_REMOVED);
    reacting_look(&added);
    cr_assert_eq(added.count, 0u);
    reacting_end(&added);
    reacting_end(&set);
    reacting_end(&removed);
    close_world();
}

Test(reaction, who_is_present_counts_as_added_only_on_request)
{
    quern_entity entities[MANY];
    must(quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY, entities));
    reacting late = react(ALL_KINDS, quern_term_read(number));
    reacting_look(&late);
    cr_assert_eq(late.count, 0u);
    must(quern_entity_destroy(world, entities[0]));
    reacting_look(&late);
    cr_assert_eq(late.count, 1u, "it has been there");
    reacting present = react(ALL_KINDS | QUERN_ON_PRESENT, quern_term_read(number));
    reacting_look(&present);
    cr_assert_eq(present.count, MANY - 1u);
    for (uint32_t i = 1; i < MANY; i++)
        cr_assert_not_null(reacting_find(&present, QUERN_ON_ADDED, entities[i]));
    reacting_end(&present);
    reacting_end(&late);
    close_world();
}

Test(reaction, one_that_is_removed_forgets_and_leaves_the_others_alone)
{
    reacting second = react(ALL_KINDS, quern_term_read(number));
    reacting third = react(ALL_KINDS, quern_term_read(number));
    const quern_entity entity = create(1);
    must(quern_entity_set(world, create_old(2), number, &(uint64_t){3}));
    must(quern_entity_destroy(world, create_old(4)));
    reacting_end(&second);
    reacting_look(&third);
    cr_assert_not_null(reacting_find(&third, QUERN_ON_ADDED, entity));
    reacting fourth = react(ALL_KINDS, quern_term_read(number));
    cr_assert_eq(fourth.reaction->number, 1u, "the number of the one that went");
    reacting_look(&fourth);
    cr_assert_eq(fourth.count, 0u);
    reacting_end(&third);
    reacting_end(&fourth);
    close_world();
}

Test(reaction, what_is_dropped_is_not_told_of)
{
    const quern_entity old = create_old(1), set = create_old(2);
    create(3);
    must(quern_entity_set(world, set, number, &(uint64_t){3}));
    must(quern_entity_destroy(world, old));
    quern__reaction_drop(&world->storage, told.reaction);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
    close_world();
}

Test(reaction, a_world_may_end_while_something_is_pending)
{
    reacting values = react(ALL_KINDS, quern_term_read(tracked_component));
    const quern_entity entity = setup_entity_with(world, &tracked_component, 1);
    reacting_look(&values);
    must(quern_entity_destroy(world, entity));
    setup_entity_with(world, &tracked_component, 1);
    cr_assert_eq(tracked_live_count(&counts), 2u);
    quern__reaction_drop(&world->storage, values.reaction);
    reacting_end(&values);
    close_world();
}

/* ------------------------------------------------------------------------------------- each call */

Test(reaction, many_that_are_created_at_once)
{
    quern_entity entities[MANY];
    must(quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY, entities));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_equal(told.rows[i].entity, entities[i]));
    close_world();
}

static void create_many_old(quern_entity *entities, uint32_t count)
{
    uint64_t numbers[MANY];
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    must(quern_entity_create_many(world, (const quern_component[]){number, big},
                                  (const void *[]){numbers, NULL}, 2, count, entities));
    expect(count);
}

/* The i-th row that went was this one. */
static void assert_gone(uint32_t i, quern_entity entity, uint64_t value)
{
    cr_assert_eq(told.rows[i].kind, QUERN_ON_REMOVED);
    cr_assert(quern_entity_equal(told.rows[i].entity, entity), "row %u", i);
    cr_assert_eq(*(const uint64_t *)told.rows[i].values[0], value);
}

Test(reaction, many_that_are_destroyed_come_in_the_order_of_the_list)
{
    quern_entity entities[MANY], list[MANY];
    create_many_old(entities, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        list[i] = entities[(i * 101) % MANY];
    must(quern_entity_destroy_many(world, list, MANY));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, list[i], (i * 101) % MANY);
    close_world();
}

Test(reaction, all_matches_that_are_destroyed)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(number)}, 1);
    must(quern_entity_destroy_matching(query, NULL));
    expect(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_gone(i, entities[i], i);
    quern_query_destroy(query);
    close_world();
}

Test(reaction, components_of_all_matches_are_put_in_and_taken_out)
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
        cr_assert_eq(told.rows[i].kind, QUERN_ON_ADDED);
    quern_query_destroy(query);
    close_world();
}

Test(reaction, an_entity_that_is_switched_off_no_longer_matches)
{
    const quern_entity entity = create_old(5);
    must(quern_entity_set_active(world, entity, false));
    expect_gone(entity, 5);
    must(quern_entity_set_active(world, entity, true));
    expect_one(QUERN_ON_ADDED, entity);
    close_world();
}

Test(reaction, who_writes_through_a_pointer_has_to_say_so)
{
    const quern_entity entity = create_old(1);
    quern_getter *getter;
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &getter));
    *(uint64_t *)quern_getter_get_write(getter, entity) = 2;
    *(uint64_t *)quern_entity_get(world, entity, number) = 3;
    expect(0);
    must(quern_entity_mark_changed(world, entity, number));
    expect_one(QUERN_ON_SET, entity);
    quern_getter_destroy(getter);
    close_world();
}

Test(reaction, a_target_is_a_value)
{
    const quern_relation parent = quern_world_parent(world);
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(parent)));
    const quern_entity root = create(1), deep = create(2), child = create(3);
    must(quern_entity_relate(world, deep, parent, root));
    must(quern_entity_relate(world, child, parent, root));
    reacting_look(&related);
    cr_assert_eq(related.count, 2u);
    cr_assert_not_null(reacting_find(&related, QUERN_ON_ADDED, child));
    must(quern_entity_relate(world, child, parent, deep)); /* on another level */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_ON_SET, child));
    const quern_entity other_root = create(4);
    must(
        quern_entity_relate(world, deep, parent, other_root)); /* the child's level stays, and its target */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_ON_SET, deep));
    must(quern_entity_unrelate(world, deep, parent)); /* the child comes to another level */
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    const reacting_row *row = reacting_find(&related, QUERN_ON_REMOVED, deep);
    cr_assert_eq(memcmp(row->values[0], &other_root, sizeof other_root), 0);
    reacting_end(&related);
    close_world();
}

Test(reaction, all_that_end_with_a_target_are_told_of)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_entity root = create(1), child = create(2), grandchild = create(3);
    must(quern_entity_relate(world, child, parent, root));
    must(quern_entity_relate(world, grandchild, parent, child));
    expect(3);
    must(quern_entity_destroy(world, root));
    expect(3);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_ON_REMOVED, root)->values[0], 1u);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_ON_REMOVED, child)->values[0], 2u);
    cr_assert_eq(*(const uint64_t *)reacting_find(&told, QUERN_ON_REMOVED, grandchild)->values[0], 3u);
    close_world();
}

Test(reaction, who_lives_on_without_a_target_is_told_of)
{
    quern_relation likes;
    must(quern_relation_register(
        world, &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES},
        &likes));
    reacting related = react(ALL_KINDS, quern_term_read(quern_relation_component(likes)));
    const quern_entity target = create(1), source = create(2);
    must(quern_entity_relate(world, source, likes, target));
    reacting_look(&related);
    must(quern_entity_destroy(world, target));
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_eq(
        memcmp(reacting_find(&related, QUERN_ON_REMOVED, source)->values[0], &target, sizeof target), 0);
    reacting_end(&related);
    close_world();
}

Test(reaction, members_of_a_prefab_that_is_spawned)
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
        cr_assert_not_null(reacting_find(&told, QUERN_ON_ADDED, roots[i]));
    must(quern_entity_destroy_many(world, roots, 10));
    expect(20);
    close_world();
}

/* --------------------------------------------------------------------------------------- commands */

Test(reaction, what_commands_add_up_to)
{
    const quern_entity gone = create_old(1), set = create_old(2), back = create_old(3);
    const quern_entity moved = create_old(4), still = create_old(5);
    uint64_t value = 10;
    quern_commands *list = commands();
    must(quern_commands_set(list, gone, number, &value));
    must(quern_commands_destroy(list, gone));
    must(quern_commands_set(list, set, number, &value));
    must(quern_commands_add(list, set, other, NULL)); /* which moves it */
    must(quern_commands_remove(list, back, number));
    must(quern_commands_add(list, back, number, &value));
    must(quern_commands_add(list, moved, tag, NULL));
    must(quern_commands_add(list, still, number, NULL)); /* it has one, and keeps it */
    must(quern_commands_destroy(list, quern_commands_create_with(list, &number, NULL, 1)));
    const quern_entity created = quern_commands_create_with(list, &number, NULL, 1);
    must(quern_commands_set(list, created, number, &value));
    flush();
    expect(4);
    assert_gone(0, gone, 1);
    cr_assert_not_null(reacting_find(&told, QUERN_ON_SET, set));
    cr_assert_not_null(reacting_find(&told, QUERN_ON_SET, back));
    uint32_t added_count = 0;
    for (uint32_t i = 0; i < told.count; i++)
        added_count += told.rows[i].kind == QUERN_ON_ADDED;
    cr_assert_eq(added_count, 1u);
    close_world();
}

Test(reaction, those_that_commands_take_out_come_in_the_order_of_rows)
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
    close_world();
}

Test(reaction, sync_points_and_calls_before_a_look_come_one_after_the_other)
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
    close_world();
}

Test(reaction, commands_that_relate)
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
    cr_assert_not_null(reacting_find(&related, QUERN_ON_SET, child));
    must(quern_commands_unrelate(commands(), deep, parent));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_ON_REMOVED, deep));
    must(quern_commands_destroy(commands(), deep));
    flush();
    reacting_look(&related);
    cr_assert_eq(related.count, 1u);
    cr_assert_not_null(reacting_find(&related, QUERN_ON_REMOVED, child));
    reacting_end(&related);
    close_world();
}

/* ---------------------------------------------------------------------------------------- values */

Test(reaction, old_values_with_hooks_are_copies_and_are_destroyed_when_they_were_seen)
{
    const quern_term terms[] = {quern_term_read(tracked_component), quern_term_read(number)};
    reacting values = reacting_begin(world, ALL_KINDS, terms, 2);
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        must(quern_entity_add(world, entities[i], tracked_component, &value));
        tracked_destroy(&value, &counts);
    }
    reacting_look(&values);
    cr_assert_eq(values.count, MANY);
    for (uint32_t i = MANY; i-- > 0;)
        must(i % 3 == 0 ? quern_commands_remove(commands(), entities[i], number)
                        : quern_commands_destroy(commands(), entities[i]));
    flush();
    reacting_look(&values);
    cr_assert_eq(values.count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(quern_entity_equal(values.rows[i].entity, entities[i]));
        cr_assert(tracked_is_live(values.rows[i].values[0]));
        cr_assert_eq(((const tracked *)values.rows[i].values[0])->payload, i);
        cr_assert_eq(*(const uint64_t *)values.rows[i].values[1], i);
    }
    const uint64_t living = (MANY + 2) / 3;
    cr_assert_eq(tracked_live_count(&counts), living + MANY);
    reacting_done(&values);
    cr_assert_eq(tracked_live_count(&counts), living);
    must(quern_entity_remove(world, entities[0], tracked_component));
    must(quern_entity_add(world, entities[3], number, NULL));
    must(quern_entity_destroy(world, entities[3]));
    reacting_look(&values);
    cr_assert_eq(values.count, 0u, "neither matched when they were looked at");
    reacting_end(&values);
    close_world();
}

Test(reaction, a_value_that_cannot_be_copied_cannot_be_kept)
{
    atomic_llong live_count = 0;
    const quern_component boxed = owned_register(world, "boxed", &live_count);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_read(boxed)}, 1);
    quern__reaction_def def = {.kinds = QUERN_ON_REMOVED,
                               .terms = query->terms,
                               .term_count = 1,
                               .matches = quern__query_matches,
                               .query = query};
    quern__reaction *reaction;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern__reaction_add(&world->storage, &def, &reaction));
    cr_assert_not_null(strstr(quern_error_message(), "boxed"));
    def.kinds = QUERN_ON_ADDED | QUERN_ON_SET;
    must(quern__reaction_add(&world->storage, &def, &reaction));
    quern__reaction_remove(&world->storage, reaction);
    quern_query_destroy(query);
    reacting with = react(ALL_KINDS, quern_term_with(boxed));
    reacting_end(&with);
    close_world();
}

/* ------------------------------------------------------------------------------- what is taken, and back */

enum { GONE = 1300 }; /* entities that go: more than two blocks of copies */

static quern_entity gone[GONE];
static reacting_row rows_before[4 * GONE];

/* Half of them have another component, too, so that they are in two archetypes. */
static void create_gone(void)
{
    for (uint64_t i = 0; i < GONE; i++)
        must(quern_entity_create_with(world, (quern_component[]){number, other}, (const void *[]){&i, NULL},
                                      1 + i % 2, &gone[i]));
    reacting_look(&told);
    cr_assert_eq(told.count, (uint32_t)GONE);
    reacting_done(&told);
}

static void destroy_gone(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        must(quern_entity_destroy(world, gone[i]));
}

/* Looks, puts back what it saw, and expects to see the same again. */
static void expect_again(uint32_t count)
{
    expect(count);
    cr_assert_not(told.reaction->is_pending);
    memcpy(rows_before, told.rows, count * sizeof rows_before[0]);
    quern__reaction_put_back(&world->storage, told.reaction);
    cr_assert(told.reaction->is_pending && quern__reactions_are_pending(world->storage.reactions));
    expect(count);
    for (uint32_t i = 0; i < count; i++) {
        const reacting_row *was = &rows_before[i], *is = &told.rows[i];
        cr_assert(was->kind == is->kind && was->archetype == is->archetype &&
                  quern_entity_equal(was->entity, is->entity) && was->values[0] == is->values[0]);
    }
}

static uint32_t block_count(uint32_t i)
{
    return told.reaction->subscriptions.items[i]->removed.blocks.count;
}

Test(reaction, what_is_put_back_is_told_of_again)
{
    create_gone();
    for (uint64_t i = 0; i < 10; i++)
        must(quern_entity_set(world, gone[i], number, &i));
    for (uint64_t i = 0; i < MANY; i++)
        create(i);
    destroy_gone(100, GONE - 100);
    expect_again(GONE - 100 + MANY + 10);
    for (uint32_t i = 0; i < GONE - 100; i++) {
        const uint64_t value = *(const uint64_t *)told.rows[i].values[0];
        cr_assert(told.rows[i].kind == QUERN_ON_REMOVED && value >= 100 && value < GONE);
        cr_assert(quern_entity_equal(told.rows[i].entity, gone[value]));
    }
    reacting_done(&told);
    quern__reaction_put_back(&world->storage, told.reaction);
    cr_assert_not(told.reaction->is_pending, "nothing is left to put back");
    expect(0);
    close_world();
}

Test(reaction, copies_that_come_after_a_look_are_told_of_after_those_that_are_put_back)
{
    create_gone();
    destroy_gone(0, 50);
    expect(50);
    quern__reaction_put_back(&world->storage, told.reaction);
    destroy_gone(50, GONE - 50);
    expect(GONE);
    uint64_t last[2] = {0};
    for (uint32_t i = 0; i < GONE; i++) {
        const uint64_t value = *(const uint64_t *)told.rows[i].values[0];
        cr_assert(value >= last[value % 2], "in the order in which they went");
        last[value % 2] = value;
    }
    reacting_done(&told);
    close_world();
}

Test(reaction, as_many_blocks_are_kept_as_were_used_last)
{
    create_gone();
    destroy_gone(0, GONE - 20);
    expect(GONE - 20);
    cr_assert(block_count(0) == 0 && told.reaction->subscriptions.items[0]->taken_block_count >= 2);
    reacting_done(&told);
    cr_assert(block_count(0) >= 2 && told.reaction->subscriptions.items[0]->taken_block_count == 0);
    const uint64_t calls = failing_allocator_call_count(memory);
    destroy_gone(GONE - 20, 10);
    expect(10);
    reacting_done(&told);
    cr_assert_eq(failing_allocator_call_count(memory), calls, "old blocks are used again");
    cr_assert(block_count(0) == 1 && block_count(1) == 1);
    close_world();
}

Test(reaction, what_is_dropped_leaves_no_copies_and_no_other_reaction)
{
    reacting beside = react(ALL_KINDS, quern_term_read(number));
    create_gone();
    destroy_gone(0, GONE - 20);
    for (uint64_t i = GONE - 20; i < GONE; i++)
        must(quern_entity_set(world, gone[i], number, &i));
    quern__reaction_drop(&world->storage, told.reaction);
    cr_assert_not(told.reaction->is_pending);
    cr_assert(quern__reactions_are_pending(world->storage.reactions), "the other one still is");
    expect(0);
    cr_assert_eq(told.reaction->subscriptions.items[0]->removed.count, 0);
    reacting_look(&beside);
    cr_assert_eq(beside.count, 20u, "those that came and went before a look were never told of");
    reacting_done(&beside);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    reacting_end(&beside);
    close_world();
}

/* ------------------------------------------------------------------------------------ archetypes */

Test(reaction, an_archetype_stays_until_those_that_left_it_were_seen)
{
    const quern_entity entity = create_old(6);
    must(quern_entity_destroy(world, entity));
    must(quern_world_remove_empty_archetypes(world, NULL));
    expect_one(QUERN_ON_REMOVED, entity);
    must(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], 6u, "they are being looked at");
    reacting_done(&told);
    uint32_t count;
    must(quern_world_remove_empty_archetypes(world, &count));
    cr_assert_eq(count, 1u);
    cr_assert_eq(told.reaction->subscriptions.count, 0u);
    expect_one(QUERN_ON_ADDED, create(1));
    close_world();
}

Test(reaction, single_calls_take_the_short_way_again_when_nobody_keeps_what_goes)
{
    const quern_entity entity = create_old(1);
    const quern__archetype *archetype = quern__storage_archetype_of(
        &world->storage, quern__entities_find(&world->storage.entities, entity));
    cr_assert_not(archetype->is_quick);
    reacting_end(&told);
    cr_assert(archetype->is_quick);
    cr_assert_not(archetype->is_watched);
    reacting added = react(QUERN_ON_ADDED | QUERN_ON_SET, quern_term_read(number));
    cr_assert(archetype->is_quick);
    cr_assert(archetype->is_watched);
    must(quern_entity_add(world, entity, other, NULL)); /* makes an edge */
    must(quern_entity_remove(world, entity, other));
    must(quern_entity_add(world, entity, other, NULL));
    must(quern_entity_remove(world, entity, other));
    told = react(ALL_KINDS, quern_term_without(other)); /* old edges are forgotten */
    must(quern_entity_add(world, entity, other, NULL));
    expect(1);
    cr_assert_not_null(reacting_find(&told, QUERN_ON_REMOVED, entity));
    reacting_end(&added);
    close_world();
}

/* ------------------------------------------------------------------------------------ no memory */

/* What may need memory in a world with entities, half of which are of several chunks. */
typedef quern_result change(void);

static quern_entity listed[MANY];
static quern_query *with_number;

static quern_result destroy_one(void)
{
    return quern_entity_destroy(world, listed[3]);
}

static quern_result remove_one(void)
{
    return quern_entity_remove(world, listed[3], number);
}

static quern_result destroy_listed(void)
{
    return quern_entity_destroy_many(world, listed, MANY);
}

static quern_result destroy_matches(void)
{
    return quern_entity_destroy_matching(with_number, NULL);
}

static quern_result remove_matches(void)
{
    return quern_entity_remove_matching(with_number, number, NULL);
}

static quern_result destroy_tree(void)
{
    return quern_entity_destroy(world, listed[0]);
}

static quern_result unrelate_matches(void)
{
    return quern_entity_remove_matching(with_number, quern_relation_component(quern_world_parent(world)),
                                        NULL);
}

static quern_result switch_off(void)
{
    return quern_entity_set_active(world, listed[0], false);
}

static quern_result play_commands(void)
{
    return quern_world_flush(world);
}

/* Entities of which the reactions know; with a tree, the first is above all others. */
static void fill_world(bool makes_tree)
{
    const quern_component components[] = {number, big, tracked_component};
    must(quern_entity_create_many(world, components, NULL, 3, MANY, listed));
    for (uint32_t i = 1; makes_tree && i < MANY; i++)
        must(quern_entity_relate(world, listed[i], quern_world_parent(world), listed[(i - 1) / 4]));
    with_number = setup_query(world, (const quern_term[]){quern_term_with(number)}, 1);
}

static void record_mixed(void)
{
    for (uint32_t i = 0; i < MANY; i++)
        must(i % 2 == 0   ? quern_commands_destroy(commands(), listed[i])
             : i % 4 == 1 ? quern_commands_remove(commands(), listed[i], number)
                          : quern_commands_set(commands(), listed[i], number, &(uint64_t){i}));
}

static void record_turnover(void)
{
    for (uint32_t i = 0; i < MANY; i += 3)
        must(quern_commands_destroy(commands(), listed[i]));
}

/* How often it asks for memory is found out by letting the n-th request fail, n = 1, 2, 3 ... Each time
 * nothing may have happened; and afterwards, all. */
static void assert_whole_or_not_at_all(change *make, bool makes_tree, void (*record)(void),
                                       uint32_t expected_count)
{
    bool has_failed = true;
    uint64_t tried = 0;
    for (uint64_t n = 1; has_failed; n++, tried++) {
        open_world();
        const quern_term terms[] = {quern_term_read(number),
                                    quern_term_optional(tracked_component, QUERN_READ)};
        reacting values = reacting_begin(world, ALL_KINDS, terms, 2);
        fill_world(makes_tree);
        if (record != NULL) record();
        reacting_look(&values);
        quern__reaction_finish(&world->storage, values.reaction);
        quern__reaction_drop(&world->storage, told.reaction);
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + n);
        const quern_result result = make();
        has_failed = result != QUERN_OK;
        if (has_failed) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(world), hash);
            assert_valid(world);
            cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
            must(make());
        }
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1);
        while (quern__reaction_take(&world->storage, values.reaction) != QUERN_OK)
            failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 2);
        failing_allocator_heal(memory);
        quern__reaction_finish(&world->storage, values.reaction);
        reacting_look(&told);
        cr_assert_eq(told.count, expected_count, "%u of %u rows", told.count, expected_count);
        reacting_end(&values);
        quern_query_destroy(with_number);
        close_world();
    }
    cr_assert_gt(tried, 2u);
}

Test(reaction_memory, single_calls)
{
    assert_whole_or_not_at_all(destroy_one, false, NULL, 1);
    assert_whole_or_not_at_all(remove_one, false, NULL, 1);
}

Test(reaction_memory, calls_for_many)
{
    assert_whole_or_not_at_all(destroy_listed, false, NULL, MANY);
    assert_whole_or_not_at_all(destroy_matches, false, NULL, MANY);
    assert_whole_or_not_at_all(remove_matches, false, NULL, MANY);
}

Test(reaction_memory, trees)
{
    assert_whole_or_not_at_all(destroy_tree, true, NULL, MANY);
    assert_whole_or_not_at_all(destroy_matches, true, NULL, MANY);
    assert_whole_or_not_at_all(switch_off, true, NULL, MANY);
    assert_whole_or_not_at_all(unrelate_matches, true, NULL, 0);
}

Test(reaction_memory, sync_points)
{
    assert_whole_or_not_at_all(play_commands, false, record_mixed, MANY);
    assert_whole_or_not_at_all(play_commands, false, record_turnover, (MANY + 2) / 3);
}

Test(reaction_memory, a_reaction_that_is_added)
{
    bool has_failed = true;
    uint64_t n = 1;
    open_world();
    fill_world(false);
    setup_entity_with(world, (const quern_component[]){number, tag}, 2);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_read(number)}, 1);
    const quern__reaction_def def = {.kinds = ALL_KINDS | QUERN_ON_PRESENT,
                                     .terms = query->terms,
                                     .term_count = 1,
                                     .matches = quern__query_matches,
                                     .query = query};
    for (; has_failed; n++) {
        quern__reaction *reaction;
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + n);
        has_failed = quern__reaction_add(&world->storage, &def, &reaction) != QUERN_OK;
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert_eq(world->storage.reactions->count, has_failed ? 1u : 2u);
        if (!has_failed) quern__reaction_remove(&world->storage, reaction);
    }
    cr_assert_gt(n, 5u);
    quern_query_destroy(query);
    quern_query_destroy(with_number);
    close_world();
}

Test(reaction_memory, an_archetype_that_is_new)
{
    bool has_failed = true;
    uint64_t n = 1;
    open_world();
    const quern_entity entity = create_old(1);
    for (; has_failed; n++) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + n);
        has_failed = quern_entity_add(world, entity, other, NULL) != QUERN_OK;
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert_eq(told.reaction->subscriptions.count, world->storage.archetypes.count - 1);
    }
    cr_assert_gt(n, 5u);
    expect(0);
    close_world();
}
