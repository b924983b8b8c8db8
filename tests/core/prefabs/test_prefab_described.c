/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/prefabs/prefab_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Prefabs from lists of members: they are compared with captures of the same random trees, by hash. */

enum { MOST_MEMBERS = 14 };

typedef struct described_world {
    scene scene;
    quern_component shield, muzzle;
    quern_relation likes, above, friends;
    quern_entity outside;
} described_world;

/* A random tree, as a list of members in the order of a capture: breadth first. */
typedef struct random_tree {
    quern_prefab_member_def members[MOST_MEMBERS];
    quern_prefab_value values[MOST_MEMBERS][5];
    quern_prefab_target targets[MOST_MEMBERS][5];
    uint64_t numbers[MOST_MEMBERS];
    links pairs[MOST_MEMBERS];
    tracked counted[MOST_MEMBERS];
    char names[MOST_MEMBERS][16];
    uint32_t count;
} random_tree;

static void open_world_in(described_world *in, const quern_world_def *def)
{
    open_scene_with(&in->scene, def);
    in->shield = make_component(in->scene.world, .name = "shield", .can_disable = true);
    must(quern_prefab_slot_register(in->scene.world, "muzzle", &in->muzzle));
    in->likes = make_relation(in->scene.world, .name = "likes", .ordered = true);
    in->above = make_relation(in->scene.world, .name = "above", .levels = true, .ordered = true);
    in->friends = make_relation(in->scene.world, .name = "friends", .many = true);
    in->outside = setup_entity(in->scene.world);
}

/* ------------------------------------------------------------------------------------- random trees */

static quern_entity choose_handle(random_source *random, const described_world *in, uint32_t count)
{
    if (random_chance(random, 20)) return in->outside;
    return random_chance(random, 15) ? quern_entity_null()
                                     : quern_prefab_member_handle(random_below(random, count));
}

static void add_target(random_tree *tree, uint32_t i, quern_relation relation, quern_entity target)
{
    quern_prefab_member_def *member = &tree->members[i];
    for (uint32_t k = 0; k < member->target_count; k++)
        if (tree->targets[i][k].relation.bits == relation.bits &&
            quern_entity_equal(tree->targets[i][k].target, target))
            return;
    if (!quern_entity_is_null(target) && !quern_entity_equal(target, quern_prefab_member_handle(i)))
        tree->targets[i][member->target_count++] = (quern_prefab_target){relation, target};
}

static void make_member(random_source *random, described_world *in, random_tree *tree, uint32_t i)
{
    quern_prefab_member_def *member = &tree->members[i];
    quern_prefab_value *values = tree->values[i];
    const scene *types = &in->scene;
    *member = (quern_prefab_member_def){.values = values, .targets = tree->targets[i]};
    tree->numbers[i] = random_below(random, 1000);
    tree->pairs[i] =
        (links){choose_handle(random, in, tree->count), choose_handle(random, in, tree->count)};
    tracked_construct(&tree->counted[i], random_below(random, 1000), &in->scene.counts);
    if (random_chance(random, 60))
        values[member->value_count++] = (quern_prefab_value){types->pair, .value = &tree->pairs[i]};
    if (random_chance(random, 70))
        values[member->value_count++] = (quern_prefab_value){types->number, .value = &tree->numbers[i]};
    if (random_chance(random, 30))
        values[member->value_count++] = (quern_prefab_value){types->value, .value = &tree->counted[i]};
    if (random_chance(random, 30))
        values[member->value_count++] = (quern_prefab_value){.component = types->frozen};
    if (random_chance(random, 40))
        values[member->value_count++] =
            (quern_prefab_value){in->shield, .is_disabled = random_chance(random, 50)};
    if (i > 0) {
        const uint32_t least = tree->members[i - 1].parent;
        member->parent = least + random_below(random, i - least);
        if (random_chance(random, 50)) member->name = tree->names[i];
        snprintf(tree->names[i], sizeof tree->names[i], "m%u", i);
    }
    if (random_chance(random, 30)) add_target(tree, i, in->likes, choose_handle(random, in, tree->count));
    /* levels: without a cycle, since each target is the outside or has a greater index */
    if (random_chance(random, 40))
        add_target(tree, i, in->above,
                   i + 1 < tree->count && random_chance(random, 80)
                       ? quern_prefab_member_handle(i + 1 + random_below(random, tree->count - i - 1))
                       : in->outside);
    for (uint32_t k = 0; k < 3 && random_chance(random, 40); k++)
        add_target(tree, i, in->friends, choose_handle(random, in, tree->count));
}

static void make_tree(random_source *random, described_world *in, random_tree *tree)
{
    memset((void *)tree, 0, sizeof *tree);
    tree->count = 1 + random_below(random, MOST_MEMBERS);
    for (uint32_t i = 0; i < tree->count; i++)
        make_member(random, in, tree, i);
    if (tree->count > 1 && random_chance(random, 50))
        tree->members[1 + random_below(random, tree->count - 1)].slot = in->muzzle;
}

static void release_tree(described_world *in, random_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++)
        tracked_destroy(&tree->counted[i], &in->scene.counts);
}

static quern_entity resolve(const quern_entity *built, quern_entity entity)
{
    return quern_entity_is_provisional(entity) ? built[quern_entity_index(entity)] : entity;
}

/* Builds a tree of entities by single calls. */
static void build_tree(const described_world *in, const random_tree *tree, quern_entity *out_built)
{
    quern_world *world = in->scene.world;
    for (uint32_t i = 0; i < tree->count; i++)
        must(quern_entity_create(world, &out_built[i]));
    for (uint32_t i = 0; i < tree->count; i++) {
        const quern_prefab_member_def *member = &tree->members[i];
        const quern_entity entity = out_built[i];
        if (i > 0) must(quern_entity_relate(world, entity, in->scene.parent, out_built[member->parent]));
        if (member->name != NULL) must(quern_entity_set_name(world, entity, member->name));
        if (member->slot.bits != 0) must(quern_entity_set(world, out_built[0], in->muzzle, &entity));
        for (uint32_t k = 0; k < member->value_count; k++) {
            const quern_component component = member->values[k].component;
            const links pair = {resolve(out_built, tree->pairs[i].first),
                                resolve(out_built, tree->pairs[i].second)};
            const bool is_pair = quern_component_equal(component, in->scene.pair);
            must(quern_entity_add(world, entity, component, is_pair ? &pair : member->values[k].value));
            if (member->values[k].is_disabled)
                must(quern_entity_set_component_enabled(world, entity, component, false));
        }
        for (uint32_t k = 0; k < member->target_count; k++)
            must(quern_entity_relate(world, entity, member->targets[k].relation,
                                     resolve(out_built, member->targets[k].target)));
    }
}

/* Both worlds build the same tree and destroy it. In between one world captures it, and the other one makes the prefab
 * from the list. */
static uint64_t play(uint64_t seed, bool is_described)
{
    described_world in;
    random_tree tree;
    random_source random = {seed};
    quern_entity built[MOST_MEMBERS] = {{0}}, members[4 * MOST_MEMBERS];
    quern_prefab prefab;
    open_world_in(&in, NULL);
    make_tree(&random, &in, &tree);
    build_tree(&in, &tree, built);
    if (is_described)
        must(quern_prefab_create(in.scene.world, tree.members, tree.count, &prefab));
    else
        must(quern_prefab_capture(in.scene.world, built[0], &prefab));
    must(quern_entity_destroy(in.scene.world, built[0]));
    release_tree(&in, &tree); /* the prefab has copies */
    cr_assert_eq(quern_prefab_member_count(in.scene.world, prefab), tree.count);
    cr_assert(quern_prefab_is_enabled(in.scene.world, prefab));
    must(quern_prefab_spawn_many(in.scene.world, prefab, 4, NULL, NULL, members));
    const quern_spawn_def below = {.parent = members[tree.count - 1]};
    must(quern_prefab_spawn(in.scene.world, prefab, &below, NULL));
    for (uint32_t i = 0; i < tree.count; i++)
        if (tree.members[i].slot.bits != 0)
            expect_same(quern_prefab_part(in.scene.world, members[0], in.muzzle), members[i]);
    must(quern_prefab_destroy(in.scene.world, prefab));
    const uint64_t hash = quern_world_hash(in.scene.world);
    close_scene(&in.scene);
    return hash;
}

Test(prefab_described, random_descriptions_spawn_the_same_as_captured_trees)
{
    for (uint64_t seed = 1; seed <= 300; seed++)
        cr_assert_eq(play(seed, true), play(seed, false), "seed %u", (unsigned)seed);
}

/* ------------------------------------------------------------------------------------------- fixed */

/* The tower of prefab_scene.h, depth first: base, gun, muzzle, lamp. */
static quern_prefab describe_tower(const described_world *in)
{
    static const uint64_t numbers[] = {10, 11, 13, 12};
    const links gun = {quern_prefab_member_handle(2), quern_prefab_member_handle(0)};
    const links lamp = {in->outside, quern_prefab_member_handle(3)};
    const scene *types = &in->scene;
    const quern_prefab_value base_values[] = {{types->number, .value = &numbers[0]},
                                              {types->point, .value = &(vec3){1, 2, 3}}};
    const quern_prefab_value gun_values[] = {{types->number, .value = &numbers[1]},
                                             {types->pair, .value = &gun}};
    const quern_prefab_value muzzle_values[] = {{types->number, .value = &numbers[2]},
                                                {.component = types->frozen}};
    const quern_prefab_value lamp_values[] = {{types->number, .value = &numbers[3]},
                                              {types->pair, .value = &lamp}};
    const quern_prefab_member_def members[] = {
        {.values = base_values, .value_count = 2},
        {.parent = 0, .name = "gun", .values = gun_values, .value_count = 2},
        {.parent = 1, .name = "muzzle", .slot = in->muzzle, .values = muzzle_values, .value_count = 2},
        {.parent = 0, .name = "lamp", .values = lamp_values, .value_count = 2}};
    quern_prefab tower;
    must(quern_prefab_create(types->world, members, 4, &tower));
    return tower;
}

Test(prefab_described, members_keep_their_index_in_any_order)
{
    described_world in;
    open_world_in(&in, NULL);
    const quern_prefab tower = describe_tower(&in);
    const scene *types = &in.scene;
    cr_assert_eq(quern_prefab_find_member(types->world, tower, "gun/muzzle"), 2u);
    cr_assert_eq(quern_prefab_find_member(types->world, tower, "lamp"), 3u);
    cr_assert_eq(quern_prefab_find_slot(types->world, tower, in.muzzle), 2u);
    quern_entity m[12];
    const uint64_t numbers[] = {11, 11, 11};
    const quern_spawn_def def = {
        .parent = in.outside, .overrides = {{.component = types->number, .member = 1, .column = numbers}}};
    must(quern_prefab_spawn_many(types->world, tower, 3, &def, NULL, m));
    for (uint32_t i = 0; i < 12; i += 4)
        expect_tower(types, (const quern_entity[]){m[i], m[i + 1], m[i + 3], m[i + 2]}, in.outside,
                     in.outside);
    expect_same(quern_prefab_part(types->world, m[4], in.muzzle), m[6]);
    close_scene(&in.scene);
}

Test(prefab_described, missing_values_are_constructed_and_required_components_added)
{
    described_world in;
    open_world_in(&in, NULL);
    const scene *types = &in.scene;
    static const uint64_t seven = 7;
    quern_component wheel, car;
    wheel = make_component(types->world, .name = "wheel", .size_bytes = 8, .alignment_bytes = 8,
                           .default_value = &seven);
    car = make_component(types->world, .name = "car", .required = {wheel});
    const quern_prefab_value values[] = {{.component = types->value}, {.component = car}};
    const quern_prefab_member_def root = {.values = values, .value_count = 2};
    quern_prefab prefab;
    quern_entity made;
    must(quern_prefab_create(types->world, &root, 1, &prefab));
    must(quern_prefab_spawn(types->world, prefab, NULL, &made));
    cr_assert_eq(*(const uint64_t *)quern_entity_get(types->world, made, wheel), 7u);
    cr_assert_eq(tracked_live_count(&in.scene.counts), 2u); /* in the prefab and in the instance */
    close_scene(&in.scene);
}

Test(prefab_described, disabled_members_are_disabled_by_themselves)
{
    described_world in;
    open_world_in(&in, NULL);
    const quern_prefab_value disabled[] = {{.component = quern_world_disabled_tag(in.scene.world)}};
    const quern_prefab_member_def members[] = {{.values = disabled, .value_count = 1}, {0}};
    quern_prefab prefab;
    quern_entity made[2];
    must(quern_prefab_create(in.scene.world, members, 2, &prefab));
    cr_assert_not(quern_prefab_is_enabled(in.scene.world, prefab));
    must(quern_prefab_spawn_many(in.scene.world, prefab, 1, NULL, NULL, made));
    cr_assert_not(quern_entity_is_enabled(in.scene.world, made[0]));
    cr_assert(quern_entity_is_enabled(in.scene.world, made[1]));
    close_scene(&in.scene);
}

/* ------------------------------------------------------------------------------------------ errors */

static void expect_error(const described_world *in, const quern_prefab_member_def *members, uint32_t count,
                         quern_result expected, const char *message)
{
    quern_prefab prefab = {0};
    assert_refused(in->scene.world, expected,
                   quern_prefab_create(in->scene.world, members, count, &prefab));
    cr_assert(prefab.bits == 0 && quern_world_list_prefabs(in->scene.world, NULL, 0) == 0);
    cr_assert(strncmp(quern_error_message(), message, strlen(message)) == 0,
              "'%s' does not begin with '%s'", quern_error_message(), message);
}

#define CALL "quern_prefab_create: "

static void expect_value_error(const described_world *in, quern_prefab_value value, quern_result expected,
                               const char *message)
{
    const quern_prefab_member_def members[] = {{0}, {.values = &value, .value_count = 1}};
    expect_error(in, members, 2, expected, message);
}

static void expect_target_error(const described_world *in, quern_relation relation, quern_entity target,
                                quern_result expected, const char *message)
{
    const quern_prefab_target targets[] = {{relation, target}};
    const quern_prefab_member_def members[] = {{0}, {.targets = targets, .target_count = 1}};
    expect_error(in, members, 2, expected, message);
}

Test(prefab_described, wrong_lists_are_refused)
{
    described_world in;
    open_world_in(&in, NULL);
    const scene *types = &in.scene;
    const quern_prefab_member_def one = {0};
    quern_prefab prefab;
    must_refuse(NULL_ARGUMENT, types->world, quern_prefab_create(NULL, &one, 1, &prefab));
    must_refuse(NULL_ARGUMENT, types->world, quern_prefab_create(types->world, NULL, 1, &prefab));
    must_refuse(NULL_ARGUMENT, types->world, quern_prefab_create(types->world, &one, 1, NULL));
    expect_error(&in, &one, 0, QUERN_ERROR_INVALID_ARGUMENT, CALL "the list has no members");
    expect_error(&in, &one, QUERN_MAX_PREFAB_MEMBERS + 1, QUERN_ERROR_LIMIT, CALL "the list has 65537");
    expect_error(&in, (quern_prefab_member_def[]){{.parent = 1}, {0}}, 2, QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 0: the root has member 1 as its parent");
    expect_error(&in, (quern_prefab_member_def[]){{.name = "a"}}, 1, QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 0: the root has a name");
    expect_error(&in, (quern_prefab_member_def[]){{0}, {.parent = 1}}, 2, QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 1: its parent is member 1");
    expect_error(&in, (quern_prefab_member_def[]){{0}, {.name = "a/b"}}, 2, QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 1: the name 'a/b'");
    expect_error(&in, (quern_prefab_member_def[]){{0}, {.name = "a"}, {.name = "b"}, {.name = "a"}}, 4,
                 QUERN_ERROR_SIBLING_NAME_TAKEN, CALL "member 3: member 1 has the same parent");
    expect_error(&in, (quern_prefab_member_def[]){{.slot = in.muzzle}}, 1, QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 0: the slot of member 0: the root is no part of itself");
    expect_error(&in, (quern_prefab_member_def[]){{0}, {.slot = types->number}}, 2,
                 QUERN_ERROR_INVALID_ARGUMENT,
                 CALL "member 0: the slot of member 1: 'number' is no prefab");
    expect_error(&in, (quern_prefab_member_def[]){{0}, {.slot = in.muzzle}, {.slot = in.muzzle}}, 3,
                 QUERN_ERROR_DUPLICATE_COMPONENT, CALL "member 0: the slot of member 2: it has 'muzzle'");
    expect_error(&in, (quern_prefab_member_def[]){{.value_count = 1}}, 1, QUERN_ERROR_NULL_ARGUMENT,
                 CALL "member 0: 'values' is NULL");
    expect_error(&in, (quern_prefab_member_def[]){{.target_count = 1}}, 1, QUERN_ERROR_NULL_ARGUMENT,
                 CALL "member 0: 'targets' is NULL");
    close_scene(&in.scene);
}

Test(prefab_described, wrong_values_and_targets_are_refused)
{
    described_world in;
    open_world_in(&in, NULL);
    const scene *types = &in.scene;
    const quern_component likes = quern_relation_component(in.likes);
    const links far = {quern_prefab_member_handle(2), {0}}, late = {entity_provisional(5), {0}};
    const links later = {{late.first.bits + (UINT64_C(7) << 32)}, {0}};
    expect_value_error(&in, (quern_prefab_value){.value = NULL}, QUERN_ERROR_UNKNOWN_COMPONENT,
                       CALL "member 1: value 0: ");
    expect_value_error(&in, (quern_prefab_value){.component = likes}, QUERN_ERROR_INVALID_ARGUMENT,
                       CALL "member 1: value 0: 'likes' is maintained");
    expect_value_error(&in, (quern_prefab_value){types->frozen, .value = &far},
                       QUERN_ERROR_INVALID_ARGUMENT, CALL "member 1: value 0: 'frozen' is a tag");
    expect_value_error(&in, (quern_prefab_value){types->number, .is_disabled = true},
                       QUERN_ERROR_INVALID_ARGUMENT, CALL "member 1: value 0: 'number' cannot be disabled");
    expect_value_error(&in, (quern_prefab_value){types->pair, .value = &far}, QUERN_ERROR_INVALID_ARGUMENT,
                       CALL "member 1: field 'first' of 'pair': there is no member 2");
    expect_value_error(&in, (quern_prefab_value){types->pair, .value = &later},
                       QUERN_ERROR_PROVISIONAL_ENTITY,
                       CALL "member 1: field 'first' of 'pair': the handle is");
    const quern_prefab_value twice[] = {
        {.component = types->number}, {.component = types->frozen}, {.component = types->number}};
    expect_error(&in, &(quern_prefab_member_def){.values = twice, .value_count = 3}, 1,
                 QUERN_ERROR_DUPLICATE_COMPONENT, CALL "member 0: value 2: it has 'number' twice");
    quern_entity dead = setup_entity(types->world);
    must(quern_entity_destroy(types->world, dead));
    expect_target_error(&in, types->parent, in.outside, QUERN_ERROR_INVALID_ARGUMENT,
                        CALL "member 1: target 0: the relation is 'parent', the hierarchy");
    expect_target_error(&in, (quern_relation){0}, in.outside, QUERN_ERROR_INVALID_ARGUMENT,
                        CALL "member 1: target 0: ");
    expect_target_error(&in, in.likes, dead, QUERN_ERROR_STALE_ENTITY, CALL "member 1: target 0: likes: ");
    expect_target_error(&in, in.likes, quern_entity_null(), QUERN_ERROR_NULL_ENTITY,
                        CALL "member 1: target 0: likes: ");
    expect_target_error(&in, in.likes, quern_prefab_member_handle(2), QUERN_ERROR_INVALID_ARGUMENT,
                        CALL "member 1: target 0: likes: there is no member 2");
    expect_target_error(&in, in.likes, quern_prefab_member_handle(1), QUERN_ERROR_INVALID_ARGUMENT,
                        CALL "member 1: target 0: likes: the member cannot be its own target");
    const quern_prefab_target ring[] = {{in.above, quern_prefab_member_handle(3)},
                                        {in.above, quern_prefab_member_handle(1)},
                                        {in.above, quern_prefab_member_handle(2)}};
    const quern_prefab_member_def members[] = {{.targets = &ring[1], .target_count = 1},
                                               {.targets = &ring[0], .target_count = 1},
                                               {.targets = &ring[1], .target_count = 1},
                                               {.targets = &ring[2], .target_count = 1}};
    expect_error(&in, members, 4, QUERN_ERROR_CYCLE, CALL "member 0: its targets in relation 'above'");
    const quern_prefab_target two[] = {{in.likes, in.outside}, {in.likes, setup_entity(types->world)}};
    expect_error(&in, &(quern_prefab_member_def){.targets = two, .target_count = 2}, 1,
                 QUERN_ERROR_DUPLICATE_COMPONENT, CALL "member 0: target 1: it has two targets in 'likes'");
    const quern_prefab_target same[] = {{in.friends, in.outside}, {in.friends, in.outside}};
    expect_error(&in, &(quern_prefab_member_def){.targets = same, .target_count = 2}, 1,
                 QUERN_ERROR_DUPLICATE_COMPONENT,
                 CALL "member 0: target 1: it has a target in 'friends' twice");
    close_scene(&in.scene);
}

Test(prefab_described, failed_allocations_leave_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    described_world in;
    random_tree tree;
    random_source random = {8};
    quern_prefab prefab = {0};
    open_world_in(&in, &def);
    do
        make_tree(&random, &in, &tree);
    while (tree.count < 10 && (release_tree(&in, &tree), true));
    const uint64_t hash = quern_world_hash(in.scene.world);
    uint64_t failures = 0;
    for (; prefab.bits == 0; failures++) {
        const uint64_t live = tracked_live_count(&in.scene.counts);
        if (!runs_out_of_memory(allocator, failures + 1,
                                quern_prefab_create(in.scene.world, tree.members, tree.count, &prefab)))
            break;
        cr_assert_eq(quern_world_hash(in.scene.world), hash);
        cr_assert_eq(tracked_live_count(&in.scene.counts), live);
        cr_assert_eq(quern_world_list_prefabs(in.scene.world, NULL, 0), 0u);
    }
    cr_assert_gt(failures, 15u);
    must(quern_prefab_spawn(in.scene.world, prefab, NULL, NULL));
    release_tree(&in, &tree);
    close_scene(&in.scene);
    failing_allocator_close(allocator);
}

Test(prefab_described, limit_of_components_includes_what_the_world_adds)
{
    enum { COUNT = QUERN_MAX_ENTITY_COMPONENTS };
    static quern_prefab_value values[COUNT];
    described_world in;
    open_world_in(&in, NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag %u", i);
        values[i].component = setup_tag(in.scene.world, name);
    }
    quern_prefab prefab;
    const quern_prefab_member_def members[] = {{0}, {.values = values, .value_count = COUNT - 1}};
    expect_error(&in, members, 2, QUERN_ERROR_TOO_MANY_COMPONENTS, CALL "member 1: it would have 251");
    const quern_prefab_member_def fitting[] = {{.values = values, .value_count = COUNT},
                                               {.values = values, .value_count = COUNT - 2}};
    must(quern_prefab_create(in.scene.world, fitting, 2, &prefab));
    must(quern_prefab_spawn(in.scene.world, prefab, NULL, NULL));
    close_scene(&in.scene);
}
