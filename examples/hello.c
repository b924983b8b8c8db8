/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y;
} Velocity;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Called with a run of rows at a time, from any thread. */
static void move(quern_context *context, const quern_view *view)
{
    float dt = (float)quern_context_delta_seconds(context);
    Position *position = QUERN_COLUMN(view, 0, Position);
    const Velocity *velocity = QUERN_COLUMN(view, 1, const Velocity);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        position[i].x += velocity[i].x * dt;
        position[i].y += velocity[i].y * dt;
    }
}

int main(void)
{
    quern_world *world;
    check(quern_world_create(NULL, &world));

    quern_component position, velocity;
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    check(QUERN_COMPONENT_REGISTER(world, &velocity, Velocity));

    quern_entity last = {0};
    for (int i = 0; i < 1000; i++) {
        const quern_component components[] = {position, velocity};
        const void *values[] = {&(Position){(float)i, 0}, &(Velocity){1, 2}};
        check(quern_entity_create_with(world, components, values, 2, &last));
    }

    quern_schedule *schedule;
    check(quern_schedule_create(world, NULL, &schedule));

    const quern_system_def def = {
        .name = "move", .run = move, .terms = {quern_term_write(position), quern_term_read(velocity)}};
    check(quern_schedule_add_system(schedule, &def, NULL));

    quern_jobs *jobs; /* as many threads as there are processors */
    check(quern_jobs_create(NULL, &jobs));
    for (int frame = 0; frame < 64; frame++)
        check(quern_schedule_run(schedule, jobs, 1.0 / 64));

    const Position *p = quern_entity_get(world, last, position);
    printf("after one second the last of 1000 stands at %g, %g\n", (double)p->x, (double)p->y);

    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return 0;
}
