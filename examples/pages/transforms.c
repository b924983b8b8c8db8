/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/transform.h>

#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_transform *transform;
    quern_entity ship, mast;
    check(quern_world_create(NULL, &world));
    check(quern_transform_register(world, NULL, &transform));
    check(quern_schedule_create(world, NULL, &schedule));
    check(quern_transform_add_systems(transform, schedule, 0));

    quern_local3 local = quern_local3_identity();
    const quern_component components[] = {quern_transform_local(transform),
                                          quern_transform_world(transform)};
    const void *values[] = {&local, NULL};
    local.translation[0] = 10;
    check(quern_entity_create_with(world, components, values, 2, &ship));
    local.translation[0] = 1;
    check(quern_entity_create_with(world, components, values, 2, &mast));
    check(quern_transform_set_parent(transform, mast, ship, false));

    check(quern_schedule_run(schedule, NULL, 1.0 / 60));
    const quern_world3 *placed = quern_entity_get(world, mast, quern_transform_world(transform));
    float top[3];
    quern_world3_point(placed, (const float[]){0, 5, 0}, top);
    printf("the top of the mast is at %g, %g\n", (double)top[0], (double)top[1]);
    quern_schedule_destroy(schedule);
    quern_transform_release(transform);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
