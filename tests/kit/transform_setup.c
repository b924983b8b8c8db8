/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/kit/transform_setup.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <math.h>

void transform_must(quern_result result)
{
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
}

transform_scene transform_open(const quern_transform_def *def, uint32_t thread_count)
{
    transform_scene scene = {.world = setup_world()};
    transform_must(quern_transform_register(scene.world, def, &scene.transform));
    transform_must(quern_schedule_create(scene.world, NULL, &scene.schedule));
    transform_must(quern_transform_add_systems(scene.transform, scene.schedule, 0));
    if (thread_count > 0) scene.jobs = setup_jobs(thread_count);
    scene.local = quern_transform_local(scene.transform);
    scene.placed = quern_transform_world(scene.transform);
    scene.parent = quern_world_parent(scene.world);
    return scene;
}

void transform_close(transform_scene *scene)
{
    assert_valid(scene->world);
    quern_schedule_destroy(scene->schedule);
    quern_transform_release(scene->transform);
    quern_jobs_destroy(scene->jobs);
    quern_world_destroy(scene->world);
}

void transform_frame(transform_scene *scene)
{
    transform_must(quern_schedule_run(scene->schedule, scene->jobs, 0));
}

quern_transform_stats transform_stats(const transform_scene *scene)
{
    quern_transform_stats stats;
    transform_must(quern_transform_get_stats(scene->transform, &stats));
    return stats;
}

quern_entity transform_node3(transform_scene *scene, const quern_local3 *local, quern_entity parent)
{
    const quern_component components[] = {scene->local, scene->placed};
    const void *values[] = {local, NULL};
    quern_entity entity;
    transform_must(quern_entity_create_with(scene->world, components, values, 2, &entity));
    if (!quern_entity_is_null(parent))
        transform_must(quern_entity_relate(scene->world, entity, scene->parent, parent));
    return entity;
}

void transform_set3(transform_scene *scene, quern_entity entity, const quern_local3 *local)
{
    transform_must(quern_entity_set(scene->world, entity, scene->local, local));
}

quern_world3 transform_world3(transform_scene *scene, quern_entity entity)
{
    const quern_world3 *placed = quern_entity_get(scene->world, entity, scene->placed);
    cr_assert_not_null(placed);
    return *placed;
}

const quern_world3 *transform_naive3(transform_scene *scene, quern_entity entity, quern_world3 *out)
{
    const quern_world3 *placed = quern_entity_get(scene->world, entity, scene->placed);
    const quern_local3 *local = quern_entity_get(scene->world, entity, scene->local);
    if (placed == NULL || local == NULL) return placed;
    const quern_entity parent = quern_entity_target(scene->world, entity, scene->parent);
    quern_world3 above;
    quern_world3_place(quern_entity_is_null(parent) ? NULL : transform_naive3(scene, parent, &above), local,
                       out);
    return out;
}

quern_local3 transform_some_local3(uint64_t seed)
{
    random_source random = {seed};
    quern_local3 local;
    float length = 0;
    for (int i = 0; i < 4; i++) {
        local.rotation[i] = (float)random_below(&random, 2001) / 1000 - 1;
        length += local.rotation[i] * local.rotation[i];
    }
    for (int i = 0; i < 4; i++)
        local.rotation[i] = length > 0.01f ? local.rotation[i] / sqrtf(length) : (float)(i == 3);
    for (int i = 0; i < 3; i++) {
        local.translation[i] = (float)random_below(&random, 2001) / 100 - 10;
        local.scale[i] = 0.5f + (float)random_below(&random, 1001) / 1000;
    }
    return local;
}

void transform_assert_right(transform_scene *scene, quern_entity entity)
{
    quern_world3 expected;
    const quern_world3 actual = transform_world3(scene, entity);
    transform_naive3(scene, entity, &expected);
    cr_assert_arr_eq(&actual, &expected, sizeof actual);
}

void transform_assert_moved(const transform_scene *scene, uint64_t count)
{
    const quern_transform_stats stats = transform_stats(scene);
    cr_assert_not(stats.swept, "swept");
    cr_assert_eq(stats.moved_count, count, "%llu moved", (unsigned long long)stats.moved_count);
}
