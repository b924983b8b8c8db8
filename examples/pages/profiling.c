/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

static void move(quern_context *context, const quern_view *view)
{
    float *positions = QUERN_COLUMN(view, 0, float);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        positions[i] += 1;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component position;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &position, float));
    check(quern_entity_create_many(world, &position, NULL, 1, 100000, NULL));
    check(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def system = {.name = "move", .run = move, .terms = {quern_term_write(position)}};
    check(quern_schedule_add_system(schedule, &system, NULL));

    check(quern_schedule_set_profiling(schedule, true));
    for (int frame = 0; frame < 100; frame++)
        check(quern_schedule_run(schedule, NULL, 1.0 / 60));
    check(quern_schedule_write_profile(schedule, quern_sink_file(stdout)));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
