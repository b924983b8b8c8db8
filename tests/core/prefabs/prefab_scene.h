/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_PREFABS_PREFAB_SCENE_H
#define QUERN_TESTS_CORE_PREFABS_PREFAB_SCENE_H

/* A world with a tower to capture, for tests of prefabs. */

#include "tests/support/setup.h"
#include "tests/support/tracked.h"

enum { MANY = 700, LARGE = 1000 };

typedef struct links {
    quern_entity first, second;
} links;

typedef struct scene {
    quern_world *world;
    quern_component number, point, frozen, pair, value;
    quern_relation parent;
    tracked_counts counts;
} scene;

static scene it;

static inline void open_scene_with(scene *to, const quern_world_def *def)
{
    *to = (scene){0};
    must(quern_world_create(def, &to->world));
    to->number = setup_component(to->world, "number", 8, 8);
    to->point = setup_component(to->world, "point", sizeof(vec3), 4);
    to->frozen = setup_tag(to->world, "frozen");
    to->value = tracked_register(to->world, "value", &to->counts);
    to->pair = make_component(to->world, .name = "pair", .size_bytes = sizeof(links), .alignment_bytes = 8,
                              .fields = {{"first", QUERN_FIELD_ENTITY, 0, .count = 1},
                                         {"second", QUERN_FIELD_ENTITY, 8, .count = 1}});
    to->parent = quern_world_parent(to->world);
}

static inline void open_scene(void)
{
    open_scene_with(&it, NULL);
}

static inline void close_scene(scene *of)
{
    assert_valid(of->world);
    quern_world_destroy(of->world);
    cr_assert_eq(of->counts.broken_count, 0u, "hooks were called on what was no live value");
    cr_assert_eq(tracked_live_count(&of->counts), 0u, "values were not destroyed, or twice");
}

static inline quern_entity make(const scene *in, uint64_t number, quern_entity parent)
{
    quern_entity entity;
    must(quern_entity_create_with(in->world, &in->number, (const void *[]){&number}, 1, &entity));
    if (parent.bits != 0) must(quern_entity_relate(in->world, entity, in->parent, parent));
    return entity;
}

static inline void set_pair(const scene *in, quern_entity entity, quern_entity first, quern_entity second)
{
    must(quern_entity_set(in->world, entity, in->pair, &(links){first, second}));
}

static inline uint64_t number_of(const scene *in, quern_entity entity)
{
    const uint64_t *number = quern_entity_get(in->world, entity, in->number);
    cr_assert_not_null(number, "%s", quern_error_message());
    return *number;
}

static inline links pair_of(const scene *in, quern_entity entity)
{
    const links *pair = quern_entity_get(in->world, entity, in->pair);
    cr_assert_not_null(pair, "%s", quern_error_message());
    return *pair;
}

/* Creates a tower: a base (10) with children gun (11) and lamp (12); the gun has a muzzle (13). The gun has handles of
 * the muzzle and the base, the lamp has the handle `outside`. */
static inline quern_entity make_tower(const scene *in, quern_entity outside)
{
    const quern_entity base = make(in, 10, quern_entity_null());
    const quern_entity gun = make(in, 11, base), lamp = make(in, 12, base), muzzle = make(in, 13, gun);
    set_pair(in, gun, muzzle, base);
    set_pair(in, lamp, outside, lamp);
    must(quern_entity_add(in->world, muzzle, in->frozen, NULL));
    must(quern_entity_set(in->world, base, in->point, &(vec3){1, 2, 3}));
    return base;
}

/* Lists the members of a tree in the order in which a prefab numbers them. */
static inline uint32_t list_tree(const scene *in, quern_entity root, quern_entity *out_members,
                                 uint32_t capacity)
{
    uint32_t count = 1;
    out_members[0] = root;
    for (uint32_t i = 0; i < count; i++)
        count += quern_entity_list_sources(in->world, out_members[i], in->parent, out_members + count,
                                           capacity - count);
    return count;
}

static inline quern_prefab capture(const scene *in, quern_entity root)
{
    quern_prefab prefab;
    must(quern_prefab_capture(in->world, root, &prefab));
    return prefab;
}

static inline void expect_same(quern_entity a, quern_entity b)
{
    cr_assert_eq(a.bits, b.bits, "%llx and %llx", (unsigned long long)a.bits, (unsigned long long)b.bits);
}

/* Checks all members of an instance of the tower. */
static inline void expect_tower(const scene *in, const quern_entity *members, quern_entity parent,
                                quern_entity outside)
{
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(number_of(in, members[i]), 10 + i);
    expect_same(quern_entity_target(in->world, members[0], in->parent), parent);
    quern_entity children[3];
    cr_assert_eq(quern_entity_list_sources(in->world, members[0], in->parent, children, 3), 2u);
    expect_same(children[0], members[1]);
    expect_same(children[1], members[2]);
    expect_same(quern_entity_first_source(in->world, members[1], in->parent), members[3]);
    cr_assert_eq(quern_entity_source_count(in->world, members[2], in->parent), 0u);
    expect_same(pair_of(in, members[1]).first, members[3]);
    expect_same(pair_of(in, members[1]).second, members[0]);
    expect_same(pair_of(in, members[2]).first, outside);
    expect_same(pair_of(in, members[2]).second, members[2]);
    cr_assert(quern_entity_has(in->world, members[3], in->frozen));
    cr_assert_not(quern_entity_has(in->world, members[0], in->frozen));
    cr_assert_eq(((const vec3 *)quern_entity_get(in->world, members[0], in->point))->y, 2.0f);
}

#endif
