/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/kit/transform_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <math.h>
#include <string.h>

enum { CROWD = 4000 };

static const quern_entity none = {0};

/* A forest of three levels: each root has three children with two children each. Roots are created first. */
static void fill_crowd(transform_scene *scene, quern_entity *crowd)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        const quern_local3 local = transform_some_local3(i + 1);
        const uint32_t roots = CROWD / 10;
        const uint32_t parent = i < 4 * roots ? (i - roots) / 3 : roots + (i - 4 * roots) / 2;
        crowd[i] = transform_node3(scene, &local, i < roots ? none : crowd[parent]);
    }
}

static void move_marked(transform_scene *scene, quern_entity entity, uint64_t seed)
{
    quern_local3 *local = quern_entity_get(scene->world, entity, scene->local);
    *local = transform_some_local3(seed);
    transform_must(quern_transform_mark(scene->transform, entity));
}

/* ------------------------------------------------------------------------------------ frames and ways */

Test(transform, first_frame_sweeps_and_later_frames_place_changes)
{
    static quern_entity crowd[CROWD];
    transform_scene scene = transform_open(NULL, 2);
    fill_crowd(&scene, crowd);
    transform_frame(&scene);
    cr_assert(transform_stats(&scene).swept);
    cr_assert_eq(transform_stats(&scene).node_count, CROWD);
    for (uint32_t i = 0; i < CROWD; i += 7)
        transform_assert_right(&scene, crowd[i]);
    transform_frame(&scene);
    transform_assert_moved(&scene, 0);

    move_marked(&scene, crowd[3],
                77); /* a root: the walk places it and its 3 children and 6 grandchildren */
    transform_frame(&scene);
    transform_assert_moved(&scene, 10);
    cr_assert_eq(transform_stats(&scene).changed_count, 1);
    const quern_local3 local = transform_some_local3(78);
    transform_set3(&scene, crowd[CROWD - 1], &local); /* a leaf, changed by a call that filters notice */
    transform_frame(&scene);
    transform_assert_moved(&scene, 1);
    for (uint32_t i = 0; i < CROWD; i++)
        transform_assert_right(&scene, crowd[i]);
    transform_close(&scene);
}

/* Enough tops for several jobs; some are below others, some are marked twice. A change filter on worlds must
 * notice the writes of each frame. */
Test(transform, parallel_walks_give_the_bits_of_a_sweep)
{
    static quern_entity crowd[CROWD];
    static const uint32_t threads[] = {0, 1, 2, 3, 8};
    uint64_t hash = 0;
    for (int way = 0; way < 2; way++)
        for (uint32_t t = 0; t < 5; t++) {
            transform_scene scene = transform_open(&(quern_transform_def){.no_walk = way == 1}, threads[t]);
            const quern_term filter = quern_term_changed(quern_term_read(scene.placed));
            quern_query *changed = setup_query(scene.world, &filter, 1);
            fill_crowd(&scene, crowd);
            transform_frame(&scene);
            for (uint32_t frame = 0; frame < 5; frame++) {
                quern_query_iterator it = quern_query_iterate(changed);
                cr_assert(quern_query_next(&it), "what the last frame has written is not noticed");
                for (uint32_t i = 0; i < 70; i++)
                    move_marked(&scene, crowd[i * 5], frame * 1000 + i);
                for (uint32_t i = 0; i < 20; i++)
                    move_marked(&scene, crowd[i * 100], frame * 1000 + i);
                transform_frame(&scene);
                cr_assert_eq(transform_stats(&scene).swept, way == 1);
            }
            if (hash == 0) hash = quern_world_hash(scene.world);
            cr_assert_eq(quern_world_hash(scene.world), hash);
            quern_query_destroy(changed);
            transform_close(&scene);
        }
}

Test(transform, sweeps_after_many_changes)
{
    static quern_entity crowd[CROWD];
    transform_scene scene = transform_open(NULL, 0);
    fill_crowd(&scene, crowd);
    transform_frame(&scene);
    for (uint32_t i = 0; i < CROWD / 10; i++) /* all roots: few nodes, but all others are below them */
        move_marked(&scene, crowd[i], i + 5000);
    transform_frame(&scene);
    cr_assert(transform_stats(&scene).swept);
    for (uint32_t i = 0; i < CROWD; i++)
        transform_assert_right(&scene, crowd[i]);
    for (uint32_t i = 0; i < CROWD; i++) {
        const quern_local3 local = transform_some_local3(i + 9000);
        transform_set3(&scene, crowd[i], &local);
    }
    transform_frame(&scene);
    cr_assert(transform_stats(&scene).swept);
    for (uint32_t i = 0; i < CROWD; i++)
        transform_assert_right(&scene, crowd[i]);
    quern_transform_mark_all(scene.transform);
    transform_frame(&scene);
    cr_assert(transform_stats(&scene).swept);
    transform_frame(&scene);
    transform_assert_moved(&scene, 0);
    transform_close(&scene);
}

/* ------------------------------------------------------------------------------------ work of a walk */

/* Creates a chain below a root and returns its last node. */
static quern_entity fill_chain(transform_scene *scene, quern_entity *chain, uint32_t count)
{
    const quern_local3 still = quern_local3_identity();
    for (uint32_t i = 0; i < count; i++)
        chain[i] = transform_node3(scene, &still, i > 0 ? chain[i - 1] : none);
    return chain[count - 1];
}

static void assert_walked(transform_scene *scene, uint64_t moved_count, uint64_t climbed_count)
{
    transform_frame(scene);
    transform_assert_moved(scene, moved_count);
    const uint64_t climbed = transform_stats(scene).climbed_count;
    cr_assert_eq(climbed, climbed_count, "%llu ancestors were visited", (unsigned long long)climbed);
}

Test(transform, deep_changed_nodes_climb_few_steps)
{
    static quern_entity chain[CROWD];
    transform_scene scene = transform_open(NULL, 0);
    const quern_entity last = fill_chain(&scene, chain, CROWD);
    const quern_local3 still = quern_local3_identity();
    const quern_entity twig = transform_node3(&scene, &still, last);
    const quern_entity other = transform_node3(&scene, &still, last);
    transform_frame(&scene);
    move_marked(&scene, twig, 1);
    assert_walked(&scene, 1, 0);
    move_marked(&scene, twig, 2); /* marked twice in one frame */
    move_marked(&scene, twig, 3);
    assert_walked(&scene, 1, 0);
    for (uint32_t i = CROWD - 5; i < CROWD; i++) /* each is the child of the one before */
        move_marked(&scene, chain[i], i);
    assert_walked(&scene, 7, 1);
    move_marked(&scene, twig, 4); /* the climbers meet at the nodes' parent */
    move_marked(&scene, other, 5);
    assert_walked(&scene, 2, 1);
    move_marked(&scene, chain[CROWD - 100],
                6); /* 99 nodes are between the two; each climber takes 99 steps */
    move_marked(&scene, twig, 7);
    assert_walked(&scene, 102, 2 * 99 + 1);
    transform_assert_right(&scene, twig);
    transform_close(&scene);
}

/* A climber that arrives at a root disables the rule for the last climber, so the other one climbs to its root. The
 * frame still walks, because few nodes are placed. */
Test(transform, changed_root_and_deep_node_need_no_sweep)
{
    static quern_entity chain[CROWD];
    transform_scene scene = transform_open(NULL, 0);
    const quern_entity last = fill_chain(&scene, chain, CROWD);
    const quern_local3 still = quern_local3_identity();
    const quern_entity root = transform_node3(&scene, &still, none);
    transform_frame(&scene);
    for (uint32_t i = 0; i < 3; i++) {
        move_marked(&scene, i % 2 ? root : last, 2 * i + 1);
        move_marked(&scene, i % 2 ? last : root, 2 * i + 2);
        assert_walked(&scene, 2, CROWD - 1);
        transform_assert_right(&scene, last);
    }
    transform_close(&scene);
}

/* In deep random trees, the walk places exactly the changed nodes and their descendants, and visits each ancestor at
 * most once. */
Test(transform, tops_of_random_trees)
{
    enum { NODES = 600 };
    quern_entity nodes[NODES];
    uint32_t parents[NODES], walked_count = 0;
    random_source random = {5};
    transform_scene scene = transform_open(NULL, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        const quern_local3 local = quern_local3_identity();
        parents[i] = i < 3 ? NODES : i - 1 - random_below(&random, 3);
        nodes[i] = transform_node3(&scene, &local, i < 3 ? none : nodes[parents[i]]);
    }
    transform_frame(&scene);
    for (uint32_t frame = 0; frame < 300; frame++) {
        bool moves[NODES] = {false};
        uint32_t moved_count = 0;
        for (uint32_t n = 1 + random_below(&random, 8); n > 0; n--) {
            const uint32_t reach = random_chance(&random, 50) ? 60 : NODES;
            const uint32_t i = NODES - 1 - random_below(&random, reach);
            move_marked(&scene, nodes[i], frame * 100 + n);
            moves[i] = true;
        }
        for (uint32_t i = 0; i < NODES; i++) {
            moves[i] |= parents[i] != NODES && moves[parents[i]];
            moved_count += moves[i];
        }
        transform_frame(&scene);
        const quern_transform_stats stats = transform_stats(&scene);
        cr_assert_eq(stats.swept, moved_count > NODES / 4);
        cr_assert_leq(stats.climbed_count, (uint64_t)NODES);
        if (!stats.swept) transform_assert_moved(&scene, moved_count);
        walked_count += !stats.swept;
        for (uint32_t i = 0; i < NODES && frame % 20 == 0; i++)
            transform_assert_right(&scene, nodes[i]);
    }
    cr_assert_gt(walked_count, 50u);
    transform_close(&scene);
}

/* A walk may place 100 of 400 nodes. */
Test(transform, walks_place_at_most_a_quarter_of_the_nodes)
{
    enum { NODES = 400, LIMIT = NODES / 4 };
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 still = quern_local3_identity();
    const quern_entity few = transform_node3(&scene, &still, none),
                       many = transform_node3(&scene, &still, none);
    for (uint32_t i = 0; i < LIMIT - 1; i++)
        transform_node3(&scene, &still, few);
    for (uint32_t i = 0; i < LIMIT; i++)
        transform_node3(&scene, &still, many);
    for (uint32_t i = 0; i < NODES - 2 * LIMIT - 1; i++)
        transform_node3(&scene, &still, none);
    transform_frame(&scene);
    cr_assert_eq(transform_stats(&scene).node_count, NODES);
    move_marked(&scene, few, 1);
    transform_frame(&scene);
    transform_assert_moved(&scene, LIMIT);
    move_marked(&scene, many, 2);
    transform_frame(&scene);
    cr_assert(transform_stats(&scene).swept);
    transform_close(&scene);
}

/* An entity without a world separates the entities below it from those above. */
Test(transform, walks_end_at_entities_that_are_not_nodes)
{
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 local = transform_some_local3(1);
    for (uint32_t i = 0; i < 40; i++)
        transform_node3(&scene, &local, none);
    const quern_entity root = transform_node3(&scene, &local, none);
    const quern_entity between = transform_node3(&scene, &local, root);
    const quern_entity below = transform_node3(&scene, &local, between);
    transform_must(quern_entity_remove(scene.world, between, scene.placed));
    transform_frame(&scene);
    move_marked(&scene, root, 2);
    transform_frame(&scene);
    cr_assert_not(transform_stats(&scene).swept);
    cr_assert_lt(transform_stats(&scene).moved_count, 3u);
    transform_assert_right(&scene, root);
    transform_assert_right(&scene, below);
    transform_close(&scene);
}

/* If a frame could not run its sweep, because it ended early or the sweep was disabled, the next frame sweeps. */
Test(transform, a_missed_sweep_runs_in_the_next_frame)
{
    static quern_entity crowd[CROWD];
    transform_scene scene = transform_open(NULL, 0);
    const quern_system sweep = quern_schedule_find_system(scene.schedule, "sweep_transforms3");
    fill_crowd(&scene, crowd);
    transform_frame(&scene);
    for (uint32_t i = 0; i < CROWD; i++) {
        const quern_local3 local = transform_some_local3(i + 7000);
        transform_set3(&scene, crowd[i], &local);
    }
    transform_must(quern_schedule_set_system_enabled(scene.schedule, sweep, false));
    transform_frame(&scene);
    transform_must(quern_schedule_set_system_enabled(scene.schedule, sweep, true));
    transform_frame(&scene);
    for (uint32_t i = 0; i < CROWD; i++)
        transform_assert_right(&scene, crowd[i]);
    transform_frame(&scene);
    transform_assert_moved(&scene, 0);
    transform_close(&scene);
}

/* A chain with far more nodes than there are levels. */
Test(transform, deep_chain)
{
    enum { DEPTH = 3000, FREE = 12000 };
    static quern_entity chain[DEPTH];
    static quern_world3 expected[DEPTH];
    transform_scene scene = transform_open(NULL, 2);
    const quern_local3 still = quern_local3_identity();
    for (uint32_t i = 0; i < FREE; i++) /* other nodes, so that the chain is a small share */
        transform_node3(&scene, &still, none);
    quern_local3 turn = still;
    turn.translation[0] = 0.01f;
    turn.rotation[1] = sinf(0.001f);
    turn.rotation[3] = cosf(0.001f);
    for (uint32_t i = 0; i < DEPTH; i++)
        chain[i] = transform_node3(&scene, &turn, i > 0 ? chain[i - 1] : none);
    for (int frame = 0; frame < 3; frame++) {
        if (frame == 1) move_marked(&scene, chain[DEPTH / 2], 5);
        if (frame == 2) move_marked(&scene, chain[0], 6), move_marked(&scene, chain[DEPTH - 5], 7);
        transform_frame(&scene);
        cr_assert_eq(transform_stats(&scene).swept, frame == 0);
        if (frame == 1) transform_assert_moved(&scene, DEPTH / 2);
        for (uint32_t i = 0; i < DEPTH; i++) {
            const quern_local3 *local = quern_entity_get(scene.world, chain[i], scene.local);
            quern_world3_place(i > 0 ? &expected[i - 1] : NULL, local, &expected[i]);
            const quern_world3 actual = transform_world3(&scene, chain[i]);
            cr_assert_arr_eq(&actual, &expected[i], sizeof actual, "frame %d: %u is elsewhere", frame, i);
        }
    }
    transform_close(&scene);
}

static void spin(quern_context *context, const quern_view *view)
{
    quern_local3 *locals = QUERN_COLUMN(view, 0, quern_local3);
    for (uint32_t i = 0; i < view->count; i++)
        locals[i].translation[2] += 1;
}

Test(transform, writes_of_earlier_systems_count_in_the_same_frame)
{
    transform_scene scene = {.world = setup_world()};
    transform_must(quern_transform_register(scene.world, NULL, &scene.transform));
    scene.local = quern_transform_local(scene.transform);
    scene.placed = quern_transform_world(scene.transform);
    scene.parent = quern_world_parent(scene.world);
    transform_must(quern_schedule_create(scene.world, NULL, &scene.schedule));
    transform_must(quern_schedule_add_system(
        scene.schedule,
        &(quern_system_def){.name = "spin", .run = spin, .terms = {quern_term_write(scene.local)}}, NULL));
    transform_must(quern_transform_add_systems(scene.transform, scene.schedule, 0));
    const quern_local3 still = quern_local3_identity();
    const quern_entity root = transform_node3(&scene, &still, none);
    const quern_entity child = transform_node3(&scene, &still, root);
    for (int frame = 1; frame < 4; frame++) {
        transform_frame(&scene);
        cr_assert_eq(transform_world3(&scene, child).m[2][3], 2 * (float)frame);
    }
    transform_close(&scene);
}

Test(transform, writes_by_pointer_need_a_mark)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_local3 local = quern_local3_identity();
    quern_entity crowd[20];
    for (int i = 0; i < 20; i++)
        crowd[i] = transform_node3(&scene, &local, none);
    transform_frame(&scene);
    quern_local3 *value = quern_entity_get(scene.world, crowd[3], scene.local);
    value->translation[0] = 5;
    transform_frame(&scene);
    cr_assert_eq(transform_world3(&scene, crowd[3]).m[0][3], 0);
    transform_must(quern_transform_mark(scene.transform, crowd[3]));
    transform_frame(&scene);
    cr_assert_eq(transform_world3(&scene, crowd[3]).m[0][3], 5);
    transform_close(&scene);
}

/* Marks on entities that have stopped being nodes before the frame. */
Test(transform, marks_outlive_their_entities)
{
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 still = quern_local3_identity();
    quern_entity crowd[40];
    for (int i = 0; i < 40; i++)
        crowd[i] = transform_node3(&scene, &still, none);
    transform_frame(&scene);
    for (int i = 0; i < 3; i++)
        transform_must(quern_transform_mark(scene.transform, crowd[i]));
    transform_must(quern_entity_destroy(scene.world, crowd[0]));
    transform_must(quern_entity_remove(scene.world, crowd[1], scene.local));
    transform_frame(&scene);
    cr_assert_eq(transform_stats(&scene).node_count, 38);
    transform_close(&scene);
}

/* ---------------------------------------------------------------------------------- numbers that are none */

static void break_some(transform_scene *scene, const quern_entity *crowd)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY, -NAN, 0, 1e38f, -0.0f};
    for (uint32_t i = 0; i < 21; i++) {
        quern_local3 local = transform_some_local3(i + 1);
        const float value = wrong[i / 3];
        if (i % 3 == 0) local.translation[i % 2] = value;
        if (i % 3 == 1) local.rotation[i % 4] = value;
        if (i % 3 == 2) local.scale[i % 3] = value;
        transform_set3(scene, crowd[i], &local);
    }
}

Test(transform, walk_and_sweep_agree_on_infinite_and_nan_values)
{
    static quern_entity crowd[CROWD], others[CROWD];
    transform_scene walking = transform_open(NULL, 0);
    transform_scene sweeping = transform_open(&(quern_transform_def){.no_walk = true}, 2);
    fill_crowd(&walking, crowd);
    fill_crowd(&sweeping, others);
    transform_frame(&walking);
    transform_frame(&sweeping);
    for (int frame = 0; frame < 3; frame++) {
        if (frame < 2) {
            break_some(&walking, crowd + 5);
            break_some(&sweeping, others + 5);
        }
        transform_frame(&walking);
        transform_frame(&sweeping);
        cr_assert_not(transform_stats(&walking).swept);
        cr_assert(transform_stats(&sweeping).swept);
        for (uint32_t i = 0; i < CROWD; i++) {
            const quern_world3 a = transform_world3(&walking, crowd[i]);
            const quern_world3 b = transform_world3(&sweeping, others[i]);
            cr_assert_arr_eq(&a, &b, sizeof a);
        }
    }
    transform_assert_moved(&walking, 0); /* a NaN world stays the same and is not placed in each frame */
    transform_close(&walking);
    transform_close(&sweeping);
}

/* -------------------------------------------------------------------------------------- two dimensions */

Test(transform, planar)
{
    enum { NODES = 300 };
    quern_entity nodes[2][NODES];
    transform_scene scenes[2] = {
        transform_open(&(quern_transform_def){.planar = true}, 2),
        transform_open(&(quern_transform_def){.planar = true, .no_walk = true}, 0)};
    for (int s = 0; s < 2; s++) {
        transform_scene *scene = &scenes[s];
        for (uint32_t i = 0; i < NODES; i++) {
            const quern_local2 local = {{(float)i, 2}, (float)i * 0.1f, {1.5f, 1.5f}};
            const quern_component components[] = {scene->local, scene->placed};
            const void *values[] = {&local, NULL};
            transform_must(quern_entity_create_with(scene->world, components, values, 2, &nodes[s][i]));
            if (i > 99)
                transform_must(
                    quern_entity_relate(scene->world, nodes[s][i], scene->parent, nodes[s][i - 100]));
        }
        transform_frame(scene);
        for (uint32_t i = 0; i < 5; i++) {
            quern_local2 *local = quern_entity_get(scene->world, nodes[s][i], scene->local);
            local->angle += 1;
            transform_must(quern_transform_mark(scene->transform, nodes[s][i]));
        }
        transform_frame(scene);
    }
    transform_assert_moved(&scenes[0], 15);
    cr_assert_eq(quern_world_hash(scenes[0].world), quern_world_hash(scenes[1].world));
    for (uint32_t i = 0; i < NODES; i++) {
        quern_world2 computed;
        const quern_world2 *placed = quern_entity_get(scenes[0].world, nodes[0][i], scenes[0].placed);
        transform_must(quern_transform_compute(scenes[0].transform, nodes[0][i], &computed));
        for (int k = 0; k < 6; k++)
            cr_assert_float_eq(placed->m[k / 3][k % 3], computed.m[k / 3][k % 3], 1e-3);
    }
    quern_world2 before, after;
    transform_must(quern_transform_compute(scenes[0].transform, nodes[0][7], &before));
    transform_must(quern_transform_set_parent(scenes[0].transform, nodes[0][7], nodes[0][8], true));
    transform_must(quern_transform_compute(scenes[0].transform, nodes[0][7], &after));
    for (int k = 0; k < 6; k++)
        cr_assert_float_eq(after.m[k / 3][k % 3], before.m[k / 3][k % 3], 1e-4);
    transform_close(&scenes[0]);
    transform_close(&scenes[1]);
}

/* ---------------------------------------------------------------------------------- arguments and memory */

Test(transform, wrong_arguments)
{
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 still = quern_local3_identity();
    const quern_entity node = transform_node3(&scene, &still, none), bare = setup_entity(scene.world);
    const quern_entity gone = transform_node3(&scene, &still, none);
    transform_must(quern_entity_destroy(scene.world, gone));
    quern_transform *transform = scene.transform, *out = transform;
    quern_world3 world;
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_register(NULL, NULL, &out));
    must_refuse(NULL_ARGUMENT, scene.world, quern_transform_register(scene.world, NULL, NULL));
    quern_transform_def half = {.allocator = quern_allocator_default()};
    half.allocator.release = NULL;
    must_refuse(INVALID_ARGUMENT, scene.world, quern_transform_register(scene.world, &half, &out));
    cr_assert_eq(out, transform);
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_add_systems(NULL, scene.schedule, 0));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_add_systems(transform, NULL, 0));
    quern_schedule *other;
    transform_must(quern_schedule_create(scene.world, NULL, &other));
    must_refuse(INVALID_ARGUMENT, NULL, quern_transform_add_systems(transform, other, 7));
    quern_schedule_destroy(other);
    must_refuse(DUPLICATE_NAME, NULL, quern_transform_add_systems(transform, scene.schedule, 0));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_mark(NULL, node));
    must_refuse(NULL_ENTITY, scene.world, quern_transform_mark(transform, none));
    must_refuse(STALE_ENTITY, scene.world, quern_transform_mark(transform, gone));
    must_refuse(COMPONENT_ABSENT, scene.world, quern_transform_mark(transform, bare));
    transform_must(quern_entity_add(scene.world, bare, scene.local, &still));
    must_refuse(COMPONENT_ABSENT, scene.world, quern_transform_mark(transform, bare));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_compute(NULL, node, &world));
    must_refuse(NULL_ARGUMENT, scene.world, quern_transform_compute(transform, node, NULL));
    must_refuse(STALE_ENTITY, scene.world, quern_transform_compute(transform, gone, &world));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_set_parent(NULL, node, none, false));
    must_refuse(STALE_ENTITY, scene.world, quern_transform_set_parent(transform, node, gone, true));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_get_stats(transform, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_transform_get_stats(NULL, &(quern_transform_stats){0}));
    quern_transform_release(NULL);
    quern_transform_mark_all(NULL);
    transform_close(&scene);
}

Test(transform, registers_twice)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_transform *again, *flat;
    transform_must(quern_transform_register(scene.world, NULL, &again));
    transform_must(quern_transform_register(scene.world, &(quern_transform_def){.planar = true}, &flat));
    cr_assert(quern_component_equal(quern_transform_local(again), scene.local));
    cr_assert(quern_component_equal(quern_transform_world(again), scene.placed));
    cr_assert_not(quern_component_equal(quern_transform_local(flat), scene.local));
    transform_must(quern_transform_add_systems(flat, scene.schedule, 0));
    transform_frame(&scene);
    quern_transform_release(again);
    quern_schedule_destroy(scene.schedule);
    scene.schedule = NULL;
    quern_transform_release(flat);
    transform_close(&scene);
}

/* A walk without memory leaves the work to a sweep: no error, and no missed change. */
Test(transform, walks_without_memory_sweep)
{
    static quern_entity crowd[CROWD];
    uint32_t failed_count = 0;
    for (uint64_t call = 1; call < 40; call++) {
        failing_allocator *memory = failing_allocator_create();
        const quern_transform_def def = {.allocator = failing_allocator_interface(memory)};
        transform_scene scene = transform_open(&def, 0);
        fill_crowd(&scene, crowd);
        transform_frame(&scene);
        failing_allocator_fail_at(memory, call);
        for (uint32_t i = 0; i < 90; i++)
            move_marked(&scene, crowd[i], i + 3000);
        transform_frame(&scene);
        for (uint32_t i = 0; i < CROWD; i++)
            transform_assert_right(&scene, crowd[i]);
        cr_assert_eq(transform_stats(&scene).swept, failing_allocator_failed_count(memory) > 0);
        failed_count += failing_allocator_failed_count(memory) > 0;
        transform_close(&scene);
        failing_allocator_close(memory);
    }
    cr_assert_gt(failed_count, 5);
    cr_assert_lt(failed_count, 39, "the last calls succeed");
}

Test(transform, registering_without_memory_changes_nothing)
{
    for (uint64_t call = 1; call < 200; call++) {
        failing_allocator *memory = failing_allocator_create();
        const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
        quern_world *world;
        quern_transform *transform = NULL;
        transform_must(quern_world_create(&def, &world));
        failing_allocator_fail_at(memory, call);
        const quern_result result =
            quern_transform_register(world, &(quern_transform_def){.allocator = def.allocator}, &transform);
        const bool has_failed = failing_allocator_failed_count(memory) > 0;
        cr_assert_eq(result, has_failed ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
        cr_assert_eq(transform == NULL, has_failed);
        failing_allocator_heal(memory);
        if (has_failed) transform_must(quern_transform_register(world, NULL, &transform));
        quern_transform_release(transform);
        quern_world_destroy(world);
        failing_allocator_close(memory);
        if (!has_failed) return;
    }
    cr_assert_fail("it fails for ever");
}

/* ---------------------------------------------------------------------------------------- hierarchies */

/* Other code, such as a physics engine, writes the world of the parent. */
Test(transform, children_follow_a_world_without_local)
{
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 still = quern_local3_identity();
    for (int i = 0; i < 40; i++)
        transform_node3(&scene, &still, none);
    const quern_entity body = transform_node3(&scene, &still, none);
    const quern_entity hat = transform_node3(&scene, &still, body);
    transform_must(quern_entity_remove(scene.world, body, scene.local));
    quern_world3 fixed = {{{1, 0, 0, 4}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
    for (int frame = 0; frame < 4; frame++) {
        fixed.m[1][3] = (float)frame;
        transform_must(quern_entity_set(scene.world, body, scene.placed, &fixed));
        transform_frame(&scene);
        const quern_world3 world = transform_world3(&scene, hat);
        cr_assert_arr_eq(&world, &fixed, sizeof world);
        cr_assert_eq(transform_stats(&scene).swept, frame == 0);
    }
    transform_must(quern_entity_add(scene.world, body, scene.local, &still));
    transform_frame(&scene);
    cr_assert_eq(transform_world3(&scene, hat).m[0][3], 0);
    transform_must(
        quern_entity_remove(scene.world, body, scene.placed)); /* now the child has no world to follow */
    transform_set3(&scene, hat, &still);
    transform_frame(&scene);
    transform_assert_right(&scene, hat);
    transform_close(&scene);
}

Test(transform, parent_without_world_is_ignored)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_local3 local = quern_local3_identity();
    for (int i = 0; i < 2000; i++)
        transform_node3(&scene, &local, none);
    local.translation[0] = 3;
    const quern_entity parent = transform_node3(&scene, &local, none);
    const quern_entity child = transform_node3(&scene, &local, parent);
    transform_frame(&scene);
    cr_assert_eq(transform_world3(&scene, child).m[0][3], 6);
    transform_must(quern_entity_remove(scene.world, parent, scene.placed));
    transform_frame(&scene);
    transform_assert_moved(&scene, 1);
    cr_assert_eq(transform_world3(&scene, child).m[0][3], 3);
    transform_must(quern_entity_add(scene.world, parent, scene.placed, NULL));
    transform_frame(&scene);
    transform_assert_moved(&scene, 2);
    cr_assert_eq(transform_world3(&scene, child).m[0][3], 6);
    transform_close(&scene);
}

/* The new parent has the same level as the old one, so the row stays in its archetype. */
Test(transform, new_parent_moves_at_once)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_local3 local = quern_local3_identity();
    quern_entity parents[40];
    for (int i = 0; i < 40; i++) {
        local.translation[0] = (float)i;
        parents[i] = transform_node3(&scene, &local, none);
    }
    const quern_entity child = transform_node3(&scene, &local, parents[1]);
    transform_frame(&scene);
    transform_must(quern_transform_set_parent(scene.transform, child, parents[2], false));
    transform_frame(&scene);
    transform_assert_moved(&scene, 1);
    cr_assert_eq(transform_world3(&scene, child).m[0][3], 39 + 2);
    transform_must(quern_transform_set_parent(scene.transform, child, none, false));
    transform_must(
        quern_transform_set_parent(scene.transform, child, none, false)); /* it has no parent already */
    transform_frame(&scene);
    cr_assert_eq(transform_world3(&scene, child).m[0][3], 39);
    transform_close(&scene);
}

Test(transform, disabled_entities_are_placed)
{
    transform_scene scene = transform_open(NULL, 0);
    const quern_local3 still = quern_local3_identity(), moved = transform_some_local3(3);
    for (int i = 0; i < 40; i++)
        transform_node3(&scene, &still, none);
    const quern_entity parent = transform_node3(&scene, &still, none);
    const quern_entity child = transform_node3(&scene, &still, parent);
    transform_must(quern_entity_add(scene.world, parent, quern_world_disabled_tag(scene.world), NULL));
    transform_must(quern_entity_add(scene.world, child, quern_world_disabled_tag(scene.world), NULL));
    transform_frame(&scene);
    transform_assert_right(&scene, child);
    transform_set3(&scene, parent, &moved);
    transform_frame(&scene);
    transform_assert_right(&scene, child);
    transform_close(&scene);
}

/* ------------------------------------------------------------------------------------- keeping places */

static void assert_near(const quern_world3 *a, const quern_world3 *b, double epsilon)
{
    for (int i = 0; i < 12; i++) {
        const double left = a->m[i / 4][i % 4], right = b->m[i / 4][i % 4];
        cr_assert_float_eq(left, right, epsilon * (1 + fabs(right)), "%g is not %g", left, right);
    }
}

/* Trees without shear, so that a local exists: only the node's own scale may differ by axis. */
Test(transform, keep_world_keeps_the_place)
{
    enum { NODES = 60 };
    transform_scene scene = transform_open(NULL, 0);
    random_source random = {9};
    quern_entity nodes[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        quern_local3 local = transform_some_local3(i + 1);
        local.scale[1] = local.scale[2] = local.scale[0];
        nodes[i] = transform_node3(&scene, &local, i < 5 ? none : nodes[random_below(&random, i)]);
    }
    for (uint32_t i = 0; i < 200; i++) {
        const quern_entity node = nodes[random_below(&random, NODES)];
        const quern_entity parent = random_chance(&random, 10) ? none : nodes[random_below(&random, NODES)];
        quern_world3 before, after;
        transform_must(quern_transform_compute(scene.transform, node, &before));
        if (quern_transform_set_parent(scene.transform, node, parent, true) != QUERN_OK) continue;
        cr_assert(quern_entity_equal(quern_entity_target(scene.world, node, scene.parent), parent));
        transform_must(quern_transform_compute(scene.transform, node, &after));
        assert_near(&after, &before, 2e-4);
        transform_frame(&scene);
        after = transform_world3(&scene, node);
        assert_near(&after, &before, 2e-4);
    }
    transform_close(&scene);
}

/* The world of the new parent is computed from locals; the one of the last frame is outdated. */
Test(transform, keep_world_uses_the_current_place_of_the_parent)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_local3 local = transform_some_local3(1);
    local.scale[1] = local.scale[2] = local.scale[0];
    const quern_entity parent = transform_node3(&scene, &local, none);
    const quern_entity node = transform_node3(&scene, &local, none);
    transform_frame(&scene);
    local.translation[0] += 10;
    transform_set3(&scene, parent, &local);
    quern_world3 before, after;
    transform_must(quern_transform_compute(scene.transform, node, &before));
    transform_must(quern_transform_set_parent(scene.transform, node, parent, true));
    transform_must(quern_transform_compute(scene.transform, node, &after));
    assert_near(&after, &before, 2e-4);
    transform_close(&scene);
}

Test(transform, keep_world_refuses_parents_without_solution)
{
    transform_scene scene = transform_open(NULL, 0);
    quern_local3 local = transform_some_local3(1);
    const quern_entity node = transform_node3(&scene, &local, none);
    local.scale[0] = 0;
    const quern_entity flat = transform_node3(&scene, &local, none);
    local.scale[0] = NAN;
    const quern_entity broken = transform_node3(&scene, &local, none);
    const quern_entity child = transform_node3(&scene, &local, node);
    const quern_entity bare = setup_entity(scene.world);
    quern_transform *transform = scene.transform;
    must_refuse(INVALID_ARGUMENT, scene.world, quern_transform_set_parent(transform, node, flat, true));
    must_refuse(INVALID_ARGUMENT, scene.world, quern_transform_set_parent(transform, node, broken, true));
    must_refuse(INVALID_ARGUMENT, scene.world, quern_transform_set_parent(transform, child, none, true));
    must_refuse(COMPONENT_ABSENT, scene.world, quern_transform_set_parent(transform, bare, node, true));
    must_refuse(CYCLE, scene.world, quern_transform_set_parent(transform, node, child, false));
    transform_must(quern_transform_set_parent(transform, node, flat, false));
    transform_must(quern_transform_set_parent(transform, bare, node,
                                              false)); /* an entity without a local may have a parent */
    transform_close(&scene);
}

Test(transform, keep_world_refuses_parents_that_an_ancestor_has_flattened)
{
    transform_scene scene = transform_open(NULL, 0);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        quern_local3 local = transform_some_local3(seed);
        local.scale[seed % 3] = 0;
        const quern_entity flat = transform_node3(&scene, &local, none);
        local = transform_some_local3(seed + 1);
        const quern_entity parent = transform_node3(&scene, &local, flat);
        const quern_entity node = transform_node3(&scene, &local, none);
        must_refuse(INVALID_ARGUMENT, scene.world,
                    quern_transform_set_parent(scene.transform, node, parent, true));
        cr_assert(quern_entity_is_null(quern_entity_target(scene.world, node, scene.parent)));
    }
    transform_close(&scene);
}

typedef struct rider {
    quern_transform *transform;
    quern_entity horse;
    bool keeps_place;
    quern_result result;
} rider;

static void mount(quern_context *context, const quern_view *view)
{
    rider *r = quern_context_user_data(context);
    const quern_world3 *worlds = QUERN_COLUMN(view, 0, const quern_world3);
    const quern_world3 *above =
        quern_context_lookup(context, r->horse, quern_transform_world(r->transform));
    for (uint32_t i = 0; i < view->count; i++)
        r->result =
            quern_transform_record_parent(r->transform, quern_context_commands(context), view->entities[i],
                                          r->horse, r->keeps_place ? &worlds[i] : NULL, above);
}

Test(transform, parents_by_command)
{
    for (int keeps = 0; keeps < 4; keeps++) {
        transform_scene scene = transform_open(NULL, 2);
        rider r = {.transform = scene.transform, .keeps_place = keeps % 2};
        quern_local3 local = transform_some_local3(1), other = transform_some_local3(2);
        local.scale[1] = local.scale[2] = local.scale[0];
        if (keeps == 3) local.scale[2] = 0;
        const quern_entity person = transform_node3(&scene, &other, none);
        quern_component rides = setup_tag(scene.world, "rides");
        transform_must(quern_entity_add(scene.world, person, rides, NULL));
        r.horse = keeps == 2 ? none : transform_node3(&scene, &local, none);
        transform_must(quern_schedule_add_system(
            scene.schedule,
            &(quern_system_def){.name = "mount",
                                .run = mount,
                                .terms = {quern_term_read(scene.placed), quern_term_with(rides)},
                                .lookups = {{.component = scene.placed}},
                                .flags = QUERN_SYSTEM_SERIAL,
                                .user_data = &r},
            NULL));
        transform_frame(&scene);
        const quern_world3 before = transform_world3(&scene, person);
        transform_frame(&scene);
        const quern_world3 after = transform_world3(&scene, person);
        cr_assert_eq(r.result, keeps == 3 ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_OK, "%s",
                     quern_error_message());
        const quern_entity parent = quern_entity_target(scene.world, person, scene.parent);
        cr_assert(quern_entity_equal(parent, keeps == 3 ? none : r.horse));
        if (keeps > 0) assert_near(&after, &before, 2e-4);
        cr_assert_eq(keeps == 0, memcmp(&after, &before, sizeof after) != 0 &&
                                     fabsf(after.m[0][3] - before.m[0][3]) > 0.1f);
        transform_close(&scene);
    }
}
