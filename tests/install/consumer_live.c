/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/live.h>
#include <quern/quern.h>

#include <stdio.h>

/* consumer_live MODULE: a program whose only system is in a module, which is loaded twice. */
int main(int argument_count, char **arguments)
{
    quern_world *world = NULL;
    quern_schedule *schedule = NULL;
    quern_live *live = NULL;
    quern_entity entity;
    bool passed =
        argument_count == 2 && quern_world_create(NULL, &world) == QUERN_OK &&
        quern_schedule_create(world, NULL, &schedule) == QUERN_OK &&
        quern_live_create(&(quern_live_def){.world = world, .schedule = schedule}, &live) == QUERN_OK &&
        quern_live_add(live, arguments[1], "fruit") == QUERN_OK;
    if (passed) {
        const quern_component apples = quern_component_find(world, "Apples");
        passed = quern_entity_create_with(world, &apples, NULL, 1, &entity) == QUERN_OK &&
                 quern_schedule_run(schedule, NULL, 0) == QUERN_OK &&
                 quern_live_reload(live, "fruit") == QUERN_OK &&
                 quern_schedule_run(schedule, NULL, 0) == QUERN_OK &&
                 *(const int32_t *)quern_entity_get(world, entity, apples) == 2;
    }
    if (!passed) fprintf(stderr, "consumer_live: %s\n", quern_error_message());
    quern_live_destroy(live);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return passed ? 0 : 1;
}
