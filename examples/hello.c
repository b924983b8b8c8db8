/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>
#include <stdio.h>

typedef float Position, Velocity;

/* Called with one range of rows at a time, on any thread. */
QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float dt = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i) position[i] += velocity[i] * dt;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_entity last;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(quern_jobs_create(NULL, &jobs)); /* one thread per processor */
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    for (int i = 0; i < 1000; i++)
        QUERN_MUST(QUERN_CREATE(world, &last, QUERN_VALUE(Position, (float)i), QUERN_VALUE(Velocity, 1)));
    for (int frame = 0; frame < 64; frame++)
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 64));
    printf("after one second the last of 1000 is at %g\n", (double)*QUERN_GET(world, last, Position));
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
