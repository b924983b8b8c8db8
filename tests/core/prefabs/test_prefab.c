/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/prefabs/prefab_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* Prefabs: capturing, and immediate spawning. */

/* ------------------------------------------------------------------------------------------- one tree */

Test(prefab, spawns_the_captured_tree_after_it_was_destroyed, .init = open_scene)
{
    const quern_entity outside = make(&it, 1, quern_entity_null());
    const quern_entity base = make_tower(&it, outside);
    const quern_prefab tower = capture(&it, base);
    cr_assert_eq(quern_prefab_member_count(it.world, tower), 4u);
    const quern_entity children[] = {base, quern_entity_first_source(it.world, base, it.parent)};
    must(quern_entity_set(it.world, children[1], it.number, &(uint64_t){99}));
    quern_entity members[4], root;
    must(quern_prefab_spawn_many(it.world, tower, 1, NULL, &root, members));
    expect_same(root, members[0]);
    expect_tower(&it, members, quern_entity_null(), outside);
    must(quern_entity_destroy(it.world, base));
    must(quern_prefab_spawn(it.world, tower, NULL, &root));
    cr_assert_eq(list_tree(&it, root, members, 4), 4u);
    expect_tower(&it, members, quern_entity_null(), outside);
    must(quern_entity_destroy(it.world, root));
    cr_assert_eq(stats_of_world(it.world).entity_count, 5u, "an instance dies as a whole");
    close_scene(&it);
}

/* The rows of several members with the same components alternate, over borders of chunks. */
Test(prefab, values_of_members_with_the_same_components_alternate, .init = open_scene)
{
    enum { COUNT = 5000, CHILDREN = 3 };
    const quern_entity base = make(&it, 1, quern_entity_null());
    for (uint64_t i = 0; i < CHILDREN; i++)
        make(&it, 10 + i, base);
    const quern_prefab prefab = capture(&it, base);
    static quern_entity members[COUNT * (CHILDREN + 1)];
    must(quern_prefab_spawn_many(it.world, prefab, COUNT, NULL, NULL, members));
    for (uint32_t i = 0; i < COUNT * (CHILDREN + 1); i++) {
        const uint32_t member = i % (CHILDREN + 1);
        cr_assert_eq(*(const uint64_t *)quern_entity_get(it.world, members[i], it.number),
                     member == 0 ? 1 : 9 + member, "member %u", i);
    }
    close_scene(&it);
}

Test(prefab, root_gets_the_given_parent_and_not_the_captured_one, .init = open_scene)
{
    const quern_entity arena = make(&it, 1, quern_entity_null()), hill = make(&it, 2, arena);
    const quern_entity outside = make(&it, 3, hill), base = make_tower(&it, outside);
    must(quern_entity_relate(it.world, base, it.parent, arena));
    const quern_prefab tower = capture(&it, base);
    quern_entity members[4], root;
    must(quern_prefab_spawn_many(it.world, tower, 1, NULL, NULL, members));
    expect_tower(&it, members, quern_entity_null(), outside);
    must(quern_prefab_spawn_many(it.world, tower, 1, &(quern_spawn_def){.parent = hill}, NULL, members));
    expect_tower(&it, members, hill, outside);
    cr_assert_eq(quern_entity_source_count(it.world, hill, it.parent), 2u);
    expect_same(quern_entity_next_sibling(it.world, outside, it.parent), members[0]);
    must(quern_prefab_spawn(it.world, tower, &(quern_spawn_def){.parent = members[3]}, &root));
    expect_same(quern_entity_target(it.world, root, it.parent), members[3]);
    close_scene(&it);
}

Test(prefab, captures_spawned_trees_and_nested_trees, .init = open_scene)
{
    const quern_entity outside = make(&it, 1, quern_entity_null());
    const quern_prefab tower = capture(&it, make_tower(&it, outside));
    const quern_entity castle = make(&it, 20, quern_entity_null());
    must(quern_prefab_spawn_many(it.world, tower, 3, &(quern_spawn_def){.parent = castle}, NULL, NULL));
    const quern_prefab whole = capture(&it, castle);
    cr_assert_eq(quern_prefab_member_count(it.world, whole), 13u);
    quern_entity members[13];
    must(quern_prefab_spawn_many(it.world, whole, 1, NULL, NULL, members));
    /* breadth first: the castle, three bases, then gun and lamp of each, then the muzzles */
    for (uint32_t i = 0; i < 3; i++) {
        const quern_entity one[] = {members[1 + i], members[4 + 2 * i], members[5 + 2 * i],
                                    members[10 + i]};
        expect_tower(&it, one, members[0], outside);
    }
    close_scene(&it);
}

/* -------------------------------------------------------------------------------- many at the same time */

static void spawn_one_by_one(const scene *in, quern_prefab prefab, uint32_t count, quern_entity parent)
{
    for (uint32_t i = 0; i < count; i++)
        must(quern_prefab_spawn(in->world, prefab, &(quern_spawn_def){.parent = parent}, NULL));
}

/* Frees some slots in random order. */
static void scatter(const scene *in)
{
    quern_entity entities[300];
    for (uint32_t i = 0; i < 300; i++)
        entities[i] = make(in, i, quern_entity_null());
    for (uint32_t i = 0; i < 300; i++)
        if (i * 7 % 5 < 3) must(quern_entity_destroy(in->world, entities[i * 7 % 300]));
}

/* Compares two worlds: one spawns all instances by one call, the other by one call per instance. */
static void compare_many_with_single(uint32_t depth)
{
    uint64_t hashes[2];
    for (uint32_t k = 0; k < 2; k++) {
        scene in;
        open_scene_with(&in, NULL);
        scatter(&in);
        quern_entity above = quern_entity_null();
        for (uint32_t i = 0; i < depth; i++)
            above = make(&in, i, above);
        const quern_entity base = make_tower(&in, quern_entity_null());
        const quern_prefab tower = capture(&in, base);
        if (k == 0) spawn_one_by_one(&in, tower, MANY, above);
        if (k == 1)
            must(quern_prefab_spawn_many(in.world, tower, MANY, &(quern_spawn_def){.parent = above}, NULL,
                                         NULL));
        hashes[k] = quern_world_hash(in.world);
        close_scene(&in);
    }
    cr_assert_eq(hashes[0], hashes[1], "below %u ancestors", depth);
}

Test(prefab, spawning_many_equals_spawning_one_many_times)
{
    const uint32_t depths[] = {0, 1, 3, 12, 13, 14, 15, 20};
    for (uint32_t i = 0; i < sizeof depths / sizeof *depths; i++)
        compare_many_with_single(depths[i]);
}

Test(prefab, spawning_many_returns_roots_and_members_by_number, .init = open_scene)
{
    const quern_entity outside = make(&it, 1, quern_entity_null());
    const quern_prefab tower = capture(&it, make_tower(&it, outside));
    quern_entity *roots = malloc(MANY * sizeof *roots), *members = malloc(4 * MANY * sizeof *members);
    must(quern_prefab_spawn_many(it.world, tower, MANY, &(quern_spawn_def){.parent = outside}, roots,
                                 members));
    quern_entity child = quern_entity_first_source(it.world, outside, it.parent);
    for (uint32_t i = 0; i < MANY; i++) {
        expect_same(roots[i], members[4 * i]);
        expect_tower(&it, members + 4 * i, outside, outside);
        expect_same(child, roots[i]);
        child = quern_entity_next_sibling(it.world, child, it.parent);
    }
    free(roots);
    free(members);
    close_scene(&it);
}

Test(prefab, captures_a_thousand_members_and_a_long_chain, .init = open_scene)
{
    const quern_entity root = make(&it, 0, quern_entity_null());
    quern_entity *made = malloc(LARGE * sizeof *made), last = root;
    made[0] = root;
    for (uint32_t i = 1; i < LARGE; i++)
        made[i] = make(&it, i, made[(i - 1) / 4]);
    for (uint32_t i = 0; i < LARGE; i++)
        set_pair(&it, made[i], made[(i + 1) % LARGE], made[i * 37 % LARGE]);
    const quern_prefab prefab = capture(&it, root);
    quern_entity *members = malloc((size_t)3 * LARGE * sizeof *members);
    must(quern_prefab_spawn_many(it.world, prefab, 3, NULL, NULL, members));
    for (uint32_t i = 0; i < 3 * LARGE; i++) {
        const quern_entity *instance = members + i / LARGE * LARGE;
        cr_assert_eq(number_of(&it, members[i]), i % LARGE);
        expect_same(pair_of(&it, members[i]).first, instance[(i + 1) % LARGE]);
        expect_same(pair_of(&it, members[i]).second, instance[i % LARGE * 37 % LARGE]);
    }
    for (uint32_t i = 0; i < LARGE; i++)
        last = make(&it, i, last);
    const quern_prefab chain = capture(&it, root);
    cr_assert_eq(quern_prefab_member_count(it.world, chain), 2u * LARGE);
    must(quern_prefab_spawn_many(it.world, chain, 2, NULL, NULL, NULL));
    free(made);
    free(members);
    close_scene(&it);
}

/* ---------------------------------------------------------------------------------------------- hooks */

Test(prefab, copies_values_by_their_hooks, .init = open_scene)
{
    const quern_entity root = make(&it, 1, quern_entity_null()), child = make(&it, 2, root);
    tracked value;
    for (uint32_t i = 0; i < 2; i++) {
        tracked_construct(&value, 40 + i, &it.counts);
        must(quern_entity_set(it.world, i == 0 ? root : child, it.value, &value));
        tracked_destroy(&value, &it.counts);
    }
    const uint64_t before = it.counts.copied_count;
    const quern_prefab prefab = capture(&it, root);
    cr_assert_eq(it.counts.copied_count, before + 2);
    quern_entity members[2 * MANY];
    must(quern_prefab_spawn_many(it.world, prefab, MANY, NULL, NULL, members));
    cr_assert_eq(it.counts.copied_count, before + 2 + 2 * MANY);
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        const tracked *copy = quern_entity_get(it.world, members[i], it.value);
        cr_assert(tracked_is_live(copy));
        cr_assert_eq(copy->payload, 40 + i % 2);
    }
    const uint64_t destroyed = it.counts.destroyed_count;
    must(quern_prefab_destroy(it.world, prefab));
    cr_assert_eq(it.counts.destroyed_count, destroyed + 2);
    quern_prefab left = capture(&it, root); /* destroyed with the world */
    cr_assert_neq(left.bits, prefab.bits);
    close_scene(&it);
}

Test(prefab, refuses_types_that_cannot_be_copied, .init = open_scene)
{
    atomic_llong live = 0;
    const quern_component owner = owned_register(it.world, "owner", &live);
    const quern_entity root = make(&it, 1, quern_entity_null()), child = make(&it, 2, root);
    owned value;
    owned_construct(&value, 5, &live);
    must(quern_entity_set(it.world, child, owner, &value));
    quern_prefab prefab = {77};
    must_refuse(INVALID_ARGUMENT, it.world, quern_prefab_capture(it.world, root, &prefab));
    cr_assert_not_null(strstr(quern_error_message(), "'owner'"));
    cr_assert_eq(prefab.bits, 77u);
    close_scene(&it);
    cr_assert_eq(live, 0);
}

/* ---------------------------------------------------------------------------------------------- names */

static quern_entity make_named_tower(void)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    const quern_entity gun = quern_entity_first_source(it.world, base, it.parent);
    must(quern_entity_set_name(it.world, base, "tower"));
    must(quern_entity_set_name(it.world, gun, "gun"));
    must(quern_entity_set_name(it.world, quern_entity_first_source(it.world, gun, it.parent), "muzzle"));
    return base;
}

static void expect_names(quern_entity root)
{
    cr_assert_null(quern_entity_name(it.world, root));
    const quern_entity gun = quern_entity_first_source(it.world, root, it.parent);
    cr_assert_str_eq(quern_entity_name(it.world, gun), "gun");
    expect_same(quern_entity_find_child(it.world, root, "gun/muzzle"),
                quern_entity_first_source(it.world, gun, it.parent));
}

Test(prefab, members_get_the_captured_names, .init = open_scene)
{
    const quern_prefab tower = capture(&it, make_named_tower());
    cr_assert_eq(quern_prefab_find_member(it.world, tower, ""), 0u);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "gun"), 1u);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "gun/muzzle"), 3u);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "gun/"), QUERN_NO_MEMBER);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "gu"), QUERN_NO_MEMBER);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "guns"), QUERN_NO_MEMBER);
    cr_assert_eq(quern_prefab_find_member(it.world, tower, "muzzle"), QUERN_NO_MEMBER);
    cr_assert_eq(quern_prefab_find_member(it.world, (quern_prefab){0}, "gun"), QUERN_NO_MEMBER);
    quern_entity roots[MANY];
    must(quern_prefab_spawn_many(it.world, tower, MANY, NULL, roots, NULL));
    for (uint32_t i = 0; i < MANY; i++)
        expect_names(roots[i]);
    const quern_entity arena = make(&it, 1, quern_entity_null());
    quern_commands *commands = quern_world_commands(it.world);
    for (uint32_t i = 0; i < MANY; i++)
        must(quern_commands_spawn(commands, tower, &(quern_spawn_def){.parent = arena}, NULL));
    must(quern_world_flush(it.world));
    cr_assert_eq(quern_entity_source_count(it.world, arena, it.parent), MANY);
    quern_entity child = quern_entity_first_source(it.world, arena, it.parent);
    for (; child.bits != 0; child = quern_entity_next_sibling(it.world, child, it.parent))
        expect_names(child);
    close_scene(&it);
}

/* ------------------------------------------------------------------------------------ other relations */

static quern_relation add_relation(const scene *in, const char *name, bool levels)
{
    quern_relation relation = make_relation(in->world, .name = name, .levels = levels,
                                            .on_target_destroyed = QUERN_TARGET_UNRELATES);
    return relation;
}

Test(prefab, targets_inside_the_tree_are_remapped_and_others_kept, .init = open_scene)
{
    const quern_relation likes = add_relation(&it, "likes", false),
                         serves = add_relation(&it, "serves", true);
    const quern_entity king = make(&it, 1, quern_entity_null()), duke = make(&it, 2, quern_entity_null());
    must(quern_entity_relate(it.world, duke, serves, king));
    const quern_entity base = make_tower(&it, king);
    quern_entity captured[4] = {base};
    captured[1] = quern_entity_first_source(it.world, base, it.parent);
    captured[2] = quern_entity_next_sibling(it.world, captured[1], it.parent);
    captured[3] = quern_entity_first_source(it.world, captured[1], it.parent);
    must(quern_entity_relate(it.world, captured[0], likes, captured[3])); /* a cycle */
    must(quern_entity_relate(it.world, captured[3], likes, captured[0]));
    must(quern_entity_relate(it.world, captured[2], likes, king));
    must(quern_entity_relate(it.world, captured[1], serves, captured[3])); /* opposite to the hierarchy */
    must(quern_entity_relate(it.world, captured[3], serves, duke));
    must(quern_entity_relate(it.world, captured[2], serves, captured[3]));
    const quern_prefab tower = capture(&it, base);
    quern_entity members[4 * 20];
    for (uint32_t k = 0; k < 2; k++) {
        must(quern_prefab_spawn_many(it.world, tower, 20, NULL, NULL, members));
        assert_valid(it.world);
        for (uint32_t i = 0; i < 20; i++) {
            const quern_entity *one = members + 4 * i;
            expect_tower(&it, one, quern_entity_null(), king);
            expect_same(quern_entity_target(it.world, one[0], likes), one[3]);
            expect_same(quern_entity_target(it.world, one[3], likes), one[0]);
            expect_same(quern_entity_target(it.world, one[2], likes), king);
            expect_same(quern_entity_target(it.world, one[1], serves), one[3]);
            expect_same(quern_entity_target(it.world, one[2], serves), one[3]);
            expect_same(quern_entity_target(it.world, one[3], serves), duke);
        }
        if (k == 1) break;
        must(quern_entity_unrelate(it.world, duke, serves)); /* raises all of them by a level */
        must(quern_entity_relate(it.world, king, serves, duke));
    }
    cr_assert_eq(quern_entity_source_count(it.world, duke, serves), 42u);
    const quern_entity rebel = make(&it, 4, quern_entity_null());
    must(quern_entity_relate(it.world, captured[3], serves, rebel));
    const quern_prefab rebels = capture(&it, base);
    must(quern_entity_unrelate(it.world, captured[3], serves));
    must(quern_entity_destroy(it.world, rebel));
    must_refuse(STALE_ENTITY, it.world, quern_prefab_spawn(it.world, rebels, NULL, NULL));
    must_refuse(STALE_ENTITY, it.world, quern_prefab_spawn_many(it.world, rebels, 0, NULL, NULL, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "serves"));
    close_scene(&it);
}

/* ------------------------------------------------------------------------------- bad use, failed memory */

/* A random sequence of captures and destructions, beside a list by index that the test keeps itself. */
Test(prefab, prefabs_are_listed_by_index, .init = open_scene)
{
    enum { MOST = 24 };
    quern_prefab expected[MOST] = {{0}}, found[MOST + 1];
    const quern_entity base = make(&it, 1, quern_entity_null());
    random_source random = {7};
    cr_assert_eq(quern_world_list_prefabs(it.world, NULL, 0), 0u);
    for (uint32_t step = 0; step < 300; step++) {
        const uint32_t index = random_below(&random, MOST);
        if (expected[index].bits != 0) {
            must(quern_prefab_destroy(it.world, expected[index]));
            expected[index].bits = 0;
        } else {
            const quern_prefab prefab = capture(&it, base);
            cr_assert_lt((uint32_t)prefab.bits, (uint32_t)MOST);
            expected[(uint32_t)prefab.bits] = prefab;
        }
        uint32_t count = 0;
        for (uint32_t i = 0; i < MOST; i++)
            count += expected[i].bits != 0;
        const uint32_t capacity = random_below(&random, MOST + 1);
        memset(found, 0, sizeof found);
        cr_assert_eq(quern_world_list_prefabs(it.world, found, capacity), count);
        for (uint32_t i = 0, k = 0; i < MOST; i++) {
            if (expected[i].bits == 0) continue;
            cr_assert_eq(found[k].bits, k < capacity ? expected[i].bits : 0);
            k++;
        }
    }
    assert_refused_value(it.world, quern_world_list_prefabs(NULL, found, 1));
    assert_refused_value(it.world, quern_world_list_prefabs(it.world, NULL, 1));
    close_scene(&it);
}

Test(prefab, invalid_calls_are_refused, .init = open_scene)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    const quern_prefab tower = capture(&it, base), gone = capture(&it, base);
    must(quern_prefab_destroy(it.world, gone));
    quern_world *world = it.world;
    quern_prefab prefab;
    quern_entity dead = make(&it, 0, quern_entity_null());
    must(quern_entity_destroy(world, dead));
    must_refuse(NULL_ARGUMENT, world, quern_prefab_capture(NULL, base, &prefab));
    must_refuse(NULL_ARGUMENT, world, quern_prefab_capture(world, base, NULL));
    must_refuse(NULL_ENTITY, world, quern_prefab_capture(world, quern_entity_null(), &prefab));
    must_refuse(STALE_ENTITY, world, quern_prefab_capture(world, dead, &prefab));
    must_refuse(NULL_ARGUMENT, world, quern_prefab_destroy(NULL, tower));
    must_refuse(UNKNOWN_PREFAB, world, quern_prefab_destroy(world, gone));
    must_refuse(UNKNOWN_PREFAB, world, quern_prefab_spawn(world, gone, NULL, NULL));
    must_refuse(UNKNOWN_PREFAB, world, quern_prefab_spawn(world, (quern_prefab){0}, NULL, NULL));
    assert_refused_value(world, quern_prefab_member_count(world, gone));
    assert_refused_value(world, quern_prefab_member_count(NULL, tower));
    must_refuse(NULL_ARGUMENT, world, quern_prefab_spawn(NULL, tower, NULL, NULL));
    must_refuse(STALE_ENTITY, world,
                quern_prefab_spawn(world, tower, &(quern_spawn_def){.parent = dead}, NULL));
    must_refuse(LIMIT, world, quern_prefab_spawn_many(world, tower, UINT32_MAX, NULL, NULL, NULL));
    must(quern_prefab_spawn_many(world, tower, 0, NULL, NULL, NULL));
    assert_refused(
        world, QUERN_ERROR_STALE_ENTITY,
        quern_prefab_spawn_many(world, tower, 0, &(quern_spawn_def){.parent = dead}, NULL, NULL));
    scene other;
    open_scene_with(&other, NULL);
    must_refuse(UNKNOWN_PREFAB, other.world, quern_prefab_spawn(other.world, tower, NULL, NULL));
    close_scene(&other);
    const quern_prefab again = capture(&it, base);
    cr_assert_neq(again.bits, gone.bits, "a destroyed one does not come alive again");
    close_scene(&it);
}

/* Repeats a call with each of its allocations failing in turn, until it succeeds. Returns the number of failures. */
#define FAIL_EACH(allocator, world, call)                                                         \
    do {                                                                                          \
        const uint64_t hash = quern_world_hash(world);                                            \
        for (uint32_t nth = 1; runs_out_of_memory(allocator, nth, call); nth++, failed_count++) { \
            cr_assert_eq(quern_world_hash(world), hash);                                          \
            assert_valid(world);                                                                  \
        }                                                                                         \
    } while (0)

static quern_result spawn_or_leave(quern_prefab prefab, uint32_t count, const quern_spawn_def *def,
                                   quern_entity *members)
{
    const quern_result result = quern_prefab_spawn_many(it.world, prefab, count, def, NULL, members);
    if (result != QUERN_OK && members != NULL) cr_assert_eq(members[0].bits, 5u);
    return result;
}

Test(prefab, failed_allocations_change_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    uint32_t failed_count = 0;
    open_scene_with(&it, &def);
    const quern_entity base = make_tower(&it, quern_entity_null());
    tracked value;
    tracked_construct(&value, 3, &it.counts);
    must(quern_entity_set(it.world, base, it.value, &value));
    tracked_destroy(&value, &it.counts);
    must(quern_entity_set_name(it.world, quern_entity_first_source(it.world, base, it.parent), "gun"));
    quern_prefab tower;
    FAIL_EACH(allocator, it.world, quern_prefab_capture(it.world, base, &tower));
    cr_assert_geq(failed_count, 8u);
    failed_count = 0;
    quern_entity members[4 * MANY] = {{5}};
    for (uint32_t k = 0; k < 3; k++) {
        const quern_spawn_def spawn = {.parent = k == 1 ? base : quern_entity_null()};
        FAIL_EACH(allocator, it.world,
                  spawn_or_leave(tower, k == 2 ? 30000 : MANY, &spawn, k == 0 ? members : NULL));
    }
    FAIL_EACH(allocator, it.world, quern_entity_clone(it.world, base, NULL, NULL));
    cr_assert_geq(failed_count, 8u);
    close_scene(&it);
    failing_allocator_close(allocator);
}

/* -------------------------------------------------------------------------------------------- clones */

Test(prefab, a_clone_is_an_instance_beside_the_entity, .init = open_scene)
{
    const quern_entity arena = make(&it, 1, quern_entity_null()), outside = make(&it, 3, arena);
    const quern_entity base = make_tower(&it, outside);
    must(quern_entity_relate(it.world, base, it.parent, arena));
    must(quern_entity_set_name(it.world, base, "base"));
    const quern_world_stats before = stats_of_world(it.world);
    quern_entity members[4], root;
    must(quern_entity_clone(it.world, base, NULL, &root));
    cr_assert_eq(list_tree(&it, root, members, 4), 4u);
    expect_tower(&it, members, arena, outside);
    cr_expect_null(quern_entity_name(it.world, root));
    must(quern_entity_clone(it.world, base, &(quern_spawn_def){0}, &root));
    cr_assert_eq(list_tree(&it, root, members, 4), 4u);
    expect_tower(&it, members, quern_entity_null(), outside);
    const uint64_t number = 77;
    must(quern_entity_clone(
        it.world, members[1],
        &(quern_spawn_def){.parent = base, .overrides = {{.component = it.number, .column = &number}}},
        &root));
    expect_same(quern_entity_target(it.world, root, it.parent), base);
    cr_expect_eq(*(uint64_t *)quern_entity_get(it.world, root, it.number), 77u);
    must(quern_entity_clone(it.world, root, NULL, NULL));
    cr_expect_eq(stats_of_world(it.world).prefab_count, before.prefab_count, "no prefab stays");
    close_scene(&it);
}

Test(prefab, clones_of_wrong_entities_are_refused, .init = open_scene)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    quern_entity root = base;
    must_refuse(NULL_ARGUMENT, it.world, quern_entity_clone(NULL, base, NULL, &root));
    must_refuse(NULL_ENTITY, it.world, quern_entity_clone(it.world, quern_entity_null(), NULL, &root));
    const quern_spawn_def foreign = {.parent = entity_of_other_world(base)};
    must_refuse(FOREIGN_ENTITY, it.world, quern_entity_clone(it.world, base, &foreign, &root));
    expect_same(root, base);
    cr_expect_eq(stats_of_world(it.world).prefab_count, 0u);
    close_scene(&it);
}

/* ------------------------------------------------------------------------------- archetypes, statistics */

Test(prefab, plans_are_rebuilt_after_archetypes_are_removed, .init = open_scene)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    const quern_prefab tower = capture(&it, base);
    quern_entity members[4], root;
    must(quern_prefab_spawn(it.world, tower, NULL, &root));
    must(quern_entity_destroy(it.world, root));
    must(quern_entity_destroy(it.world, base));
    must(quern_world_remove_empty_archetypes(it.world, NULL));
    must(quern_prefab_spawn_many(it.world, tower, 1, NULL, NULL, members));
    expect_tower(&it, members, quern_entity_null(), quern_entity_null());
    close_scene(&it);
}

Test(prefab, memory_is_counted_in_world_statistics, .init = open_scene)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    const quern_world_stats before = stats_of_world(it.world);
    const uint64_t hash = quern_world_hash(it.world);
    const quern_prefab tower = capture(&it, base);
    const quern_world_stats after = stats_of_world(it.world);
    cr_assert_eq(after.prefab_count, before.prefab_count + 1);
    cr_assert_gt(after.held_bytes, before.held_bytes);
    cr_assert_eq(after.entity_count, before.entity_count);
    cr_assert_eq(quern_world_hash(it.world), hash, "no query sees a prefab");
    must(quern_prefab_destroy(it.world, tower));
    cr_assert_eq(stats_of_world(it.world).prefab_count, before.prefab_count);
    close_scene(&it);
}
