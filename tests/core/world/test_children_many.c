/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <quern/relation.h>

#include <criterion/criterion.h>

#include <string.h>

/* The children of many targets in one call: the same lists as one call each. */

enum { TARGETS = 50, ROOM = 400 };

static quern_world *world;
static quern_relation parent;
static quern_entity targets[TARGETS];

/* The i-th target has i % 7 children. */
static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] = setup_entity(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        for (uint32_t k = 0; k < i % 7; k++)
            cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, targets[i]), QUERN_OK);
}

TestSuite(children_many, .init = open_world);

Test(children_many, gives_the_lists_one_after_the_other)
{
    quern_entity all[ROOM], one[8];
    uint32_t counts[TARGETS];
    const uint64_t total =
        quern_entity_get_children_many(world, targets, TARGETS, parent, all, ROOM, counts);
    uint32_t first = 0;
    for (uint32_t i = 0; i < TARGETS; i++) {
        cr_assert_eq(counts[i], i % 7);
        cr_assert_eq(quern_entity_get_children(world, targets[i], parent, one, 8), counts[i]);
        cr_assert(counts[i] == 0 || memcmp(one, all + first, counts[i] * sizeof *one) == 0);
        first += counts[i];
    }
    cr_assert_eq(total, first);
    cr_assert_eq(quern_entity_get_children_many(world, targets, TARGETS, parent, NULL, 0, NULL), total);
    quern_world_destroy(world);
}

Test(children_many, writes_no_more_than_there_is_room_for)
{
    for (uint32_t room = 0; room < 150; room++) {
        quern_entity all[ROOM], some[ROOM];
        uint32_t counts[TARGETS];
        memset(some, 0, sizeof some);
        const uint64_t total =
            quern_entity_get_children_many(world, targets, TARGETS, parent, all, ROOM, counts);
        cr_assert_eq(quern_entity_get_children_many(world, targets, TARGETS, parent, some, room, counts),
                     total);
        const uint32_t written = room < total ? room : (uint32_t)total;
        cr_assert(written == 0 || memcmp(some, all, written * sizeof *all) == 0);
        for (uint32_t i = written; i < ROOM; i++)
            cr_assert(quern_entity_is_null(some[i]));
        for (uint32_t i = 0; i < TARGETS; i++)
            cr_assert_eq(counts[i], i % 7);
    }
    quern_world_destroy(world);
}

Test(children_many, who_is_not_alive_has_none)
{
    const quern_entity gone = targets[6];
    cr_assert_eq(quern_entity_destroy(world, gone), QUERN_OK);
    const quern_entity again = setup_entity(world); /* perhaps in its slot */
    cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, again), QUERN_OK);
    const quern_entity asked[] = {quern_entity_null(), gone, entity_of_other_world(targets[5]), targets[5]};
    quern_entity children[ROOM];
    uint32_t counts[4];
    cr_assert_eq(quern_entity_get_children_many(world, asked, 4, parent, children, ROOM, counts), 5);
    cr_assert_eq(counts[0] + counts[1] + counts[2], 0);
    cr_assert_eq(counts[3], 5);
    quern_world_destroy(world);
}

Test(children_many, wrong_arguments)
{
    uint32_t counts[2] = {7, 7};
    assert_refused_value(NULL, quern_entity_get_children_many(NULL, targets, 2, parent, NULL, 0, counts));
    cr_assert_eq(counts[1], 0);
    assert_refused_value(world, quern_entity_get_children_many(world, NULL, 2, parent, NULL, 0, NULL));
    assert_refused_value(
        world, quern_entity_get_children_many(world, targets, 2, (quern_relation){0}, NULL, 0, NULL));
    cr_assert_eq(quern_entity_get_children_many(world, NULL, 0, parent, NULL, 0, NULL), 0);
    quern_world_destroy(world);
}
