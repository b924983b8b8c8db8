/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Prefabs of trees with edges: each instance has the edges of the captured tree, between its own members and to the
 * same entities outside, whether it is spawned by a call or by a command. */

#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

enum { MEMBERS = 9, OUTSIDE = 4, INSTANCES = 7, RELATIONS = 2 };

static failing_allocator *memory;
static quern_component number;
static quern_relation parent, relations[RELATIONS];
static quern_entity members[MEMBERS], outside[OUTSIDE];
static bool inner[RELATIONS][MEMBERS][MEMBERS], outer[RELATIONS][MEMBERS][OUTSIDE];
static quern_prefab prefab;

static void open_world(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 4, 4);
    parent = quern_world_parent(world);
    must(quern_relation_register(
        world,
        &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        &relations[0]));
    must(quern_relation_register(
        world,
        &(quern_relation_def){.name = "needs", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        &relations[1]));
}

TestSuite(prefab_edges, .init = open_world, .fini = close_valid_world);

/* Makes a tree with random edges, captures it, and leaves some slots to be used again. */
static void capture(uint64_t seed)
{
    random_source dice = {seed};
    quern_entity gone[10];
    for (uint32_t i = 0; i < 10; i++)
        gone[i] = setup_entity(world);
    for (uint32_t i = 0; i < OUTSIDE; i++)
        outside[i] = setup_entity(world);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = setup_entity_with(world, &number, i % 3 > 0);
        if (i > 0) must(quern_entity_relate(world, members[i], parent, members[(i - 1) / 2]));
    }
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < MEMBERS; i++) {
            for (uint32_t k = 0; k < MEMBERS; k++) {
                inner[r][i][k] = i != k && random_chance(&dice, 30);
                if (inner[r][i][k]) must(quern_entity_relate(world, members[i], relations[r], members[k]));
            }
            for (uint32_t k = 0; k < OUTSIDE; k++) {
                outer[r][i][k] = random_chance(&dice, 25);
                if (outer[r][i][k]) must(quern_entity_relate(world, members[i], relations[r], outside[k]));
            }
            must(quern_entity_relate(world, outside[0], relations[r], members[i])); /* not captured */
        }
    must(quern_prefab_capture(world, members[0], &prefab));
    for (uint32_t i = 0; i < 10; i += 2)
        must(quern_entity_destroy(world, gone[i]));
}

/* Checks the edges of an instance. Members are in the order of the captured entities, which is breadth first. */
static void check_instance(const quern_entity *instance)
{
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < MEMBERS; i++) {
            uint32_t expected = 0;
            for (uint32_t k = 0; k < MEMBERS; k++) {
                expected += inner[r][i][k];
                cr_assert_eq(quern_entity_has_target(world, instance[i], relations[r], instance[k]),
                             inner[r][i][k]);
            }
            for (uint32_t k = 0; k < OUTSIDE; k++) {
                expected += outer[r][i][k];
                cr_assert_eq(quern_entity_has_target(world, instance[i], relations[r], outside[k]),
                             outer[r][i][k]);
            }
            cr_assert_eq(quern_entity_target_count(world, instance[i], relations[r]), expected);
            cr_assert_not(quern_entity_has_target(world, outside[0], relations[r], instance[i]));
        }
}

Test(prefab_edges, spawned_instances_have_the_captured_edges)
{
    quern_entity made[INSTANCES * MEMBERS];
    for (uint64_t seed = 1; seed < 4; seed++) {
        capture(seed);
        must(quern_prefab_spawn_many(world, prefab, INSTANCES, NULL, NULL, made));
        assert_valid(world);
        for (uint32_t i = 0; i < INSTANCES; i++)
            check_instance(made + i * MEMBERS);
        must(quern_entity_destroy(world, made[0])); /* and its tree */
        const quern_spawn_def def = {.parent = outside[1]};
        must(quern_prefab_spawn_many(world, prefab, 1, &def, NULL, made));
        check_instance(made);
        assert_valid(world);
    }
}

/* Finds the members of an instance, breadth first. */
static void list_instance(quern_entity root, quern_entity *out_members)
{
    uint32_t count = 1;
    out_members[0] = root;
    for (uint32_t i = 0; i < count; i++) {
        quern_entity children[MEMBERS];
        const uint32_t child_count =
            quern_entity_list_sources(world, out_members[i], parent, children, MEMBERS);
        cr_assert_leq(count + child_count, (uint32_t)MEMBERS);
        for (uint32_t k = 0; k < child_count; k++)
            out_members[count++] = children[k];
    }
    cr_assert_eq(count, (uint32_t)MEMBERS);
}

/* Spawns by commands, and adds and removes edges of members in the same callback. */
Test(prefab_edges, commands_spawn_the_captured_edges)
{
    capture(7);
    quern_commands *commands = quern_world_commands(world);
    quern_entity root, members_of_root[MEMBERS];
    must(quern_entity_unrelate(world, outside[0], relations[0]));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_spawn(commands, prefab, NULL, &root));
    const quern_entity child = quern_commands_spawned_member(commands, prefab, root, 3);
    must(quern_commands_relate(commands, outside[0], relations[0], root));
    must(quern_commands_unrelate(commands, child, relations[0]));
    must(quern_world_flush(world));
    assert_valid(world);
    const quern_entity last = quern_entity_target(world, outside[0], relations[0]);
    cr_assert_not(quern_entity_is_null(last));
    must(quern_entity_unrelate(world, outside[0], relations[0]));
    list_instance(last, members_of_root);
    cr_assert_eq(quern_entity_target_count(world, members_of_root[3], relations[0]), 0u);
    for (uint32_t k = 0; k < MEMBERS; k++)
        inner[0][3][k] = false;
    for (uint32_t k = 0; k < OUTSIDE; k++)
        outer[0][3][k] = false;
    check_instance(members_of_root);
}

Test(prefab_edges, dead_targets_outside_are_refused_or_dropped)
{
    capture(9);
    memset(outer, 0, sizeof outer);
    must(quern_prefab_destroy(world, prefab));
    for (uint32_t i = 0; i < MEMBERS; i++)
        for (uint32_t r = 0; r < RELATIONS; r++)
            (void)quern_entity_unrelate(world, members[i], relations[r]);
    for (uint32_t r = 0; r < RELATIONS; r++)
        must(quern_entity_unrelate(world, outside[0], relations[r]));
    must(quern_entity_relate(world, members[2], relations[0], outside[1]));
    must(quern_prefab_capture(world, members[0], &prefab));
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    must(quern_entity_destroy(world, outside[1]));
    must(quern_world_flush(world)); /* the edge is dropped, and the member gets no tag */
    assert_valid(world);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert_eq(stats.dropped_count, 1u);
    cr_assert_eq(stats_of_world(world).edge_count, 0u);
    must_refuse(STALE_ENTITY, world, quern_prefab_spawn(world, prefab, NULL, NULL));
}

Test(prefab_edges, spawns_without_memory_leave_no_edge)
{
    enum { MANY = 2000 };
    static quern_entity made[MANY * MEMBERS];
    uint32_t failures = 0;
    capture(11);
    must(quern_world_trim(world));
    const uint64_t hash = quern_world_hash(world), edge_count = stats_of_world(world).edge_count;
    quern_result result;
    do {
        failing_allocator_fail_at(memory, 1 + failures);
        result = quern_prefab_spawn_many(world, prefab, MANY, NULL, NULL, made);
        failing_allocator_heal(memory);
        assert_valid(world);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(quern_world_hash(world), hash);
        cr_assert_eq(stats_of_world(world).edge_count, edge_count);
        must(quern_world_trim(world));
        failures++;
    } while (result != QUERN_OK);
    cr_assert_gt(failures, 5u);
    for (uint32_t i = 0; i < MANY; i++)
        check_instance(made + i * MEMBERS);
}
