/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/transform.h>

#include <stdio.h>

/* A frame that computes one world. */
int main(void)
{
    quern_world *world = NULL;
    quern_transform *transform = NULL;
    quern_schedule *schedule = NULL;
    quern_entity entity;
    quern_local3 local = quern_local3_identity();
    local.translation[0] = 7;
    bool passed = quern_world_create(NULL, &world) == QUERN_OK &&
                  quern_transform_register(world, NULL, &transform) == QUERN_OK &&
                  quern_schedule_create(world, NULL, &schedule) == QUERN_OK &&
                  quern_transform_add_systems(transform, schedule, 0) == QUERN_OK;
    if (passed) {
        const quern_component components[] = {quern_transform_local(transform),
                                              quern_transform_world(transform)};
        const void *values[] = {&local, NULL};
        passed = quern_entity_create_with(world, components, values, 2, &entity) == QUERN_OK &&
                 quern_schedule_run(schedule, NULL, 0) == QUERN_OK;
    }
    if (passed) {
        const quern_world3 *placed = quern_entity_get(world, entity, quern_transform_world(transform));
        passed = placed != NULL && placed->m[0][3] == 7;
    }
    if (!passed) fprintf(stderr, "consumer_kit: %s\n", quern_error_message());
    quern_schedule_destroy(schedule);
    quern_transform_release(transform);
    quern_world_destroy(world);
    return passed ? 0 : 1;
}
