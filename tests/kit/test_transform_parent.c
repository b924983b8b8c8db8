/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/kit/transform_setup.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <math.h>
#include <string.h>

/* Which parent an entity follows, and the effect of a new parent. */

static const quern_entity none = {0};

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
