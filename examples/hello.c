/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>

typedef float Position, Velocity;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Called with one range of rows at a time, on any thread. */
static void move(quern_context *context, const quern_view *view)
{
    const float dt = (float)quern_context_delta_seconds(context);
    Position *positions = QUERN_COLUMN(view, 0, Position);
    const Velocity *velocities = QUERN_COLUMN(view, 1, const Velocity);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        positions[i] += velocities[i] * dt;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_component position, velocity;
    quern_entity last = {0};
    check(quern_world_create(NULL, &world));
    check(quern_schedule_create(world, NULL, &schedule));
    check(quern_jobs_create(NULL, &jobs)); /* a thread for each processor */
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    check(QUERN_COMPONENT_REGISTER(world, &velocity, Velocity));
    const quern_system_def system = {
        .name = "move", .run = move, .terms = {quern_term_write(position), quern_term_read(velocity)}};
    check(quern_schedule_add_system(schedule, &system, NULL));
    for (int i = 0; i < 1000; i++)
        check(quern_entity_create_with(world, (quern_component[]){position, velocity},
                                       (const void *[]){&(Position){(float)i}, &(Velocity){1}}, 2, &last));
    for (int frame = 0; frame < 64; frame++)
        check(quern_schedule_run(schedule, jobs, 1.0 / 64));
    const Position *p = quern_entity_get(world, last, position);
    printf("after one second the last of 1000 is at %g\n", (double)*p);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
