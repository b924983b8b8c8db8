/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A flock in C. flock.py, flock.lua and flock.mjs are the same program in other languages, and print the same hash: all
 * compute in double precision, which these languages have, and store single precision. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <math.h>
#include <stdio.h>

enum { BIRDS = 500, FRAMES = 100 };
static const double size = 16, slowest = 0.5, fastest = 2; /* in lengths that a bird can see */

typedef struct Position {
    float x, y;
} Position, Velocity, Steering;

/* Keep apart, fly as the neighbours do, stay among them. A bird sees itself, too, which changes little. */
QUERN_SYSTEM(flock, (Steering, steering), (const Position, position), (const Velocity, velocity))
{
    QUERN_ROWS(i)
    {
        const double x = (double)position[i].x, y = (double)position[i].y;
        double weight = 0.01, vx = 0, vy = 0, cx = 0, cy = 0, ax = 0, ay = 0;
        quern_query_iterator it = quern_context_query(context, 0);
        while (quern_query_next(&it)) {
            const Position *place = QUERN_COLUMN(&it.view, 0, const Position);
            const Velocity *speed = QUERN_COLUMN(&it.view, 1, const Velocity);
            for (uint32_t end = it.view.count, k = 0; k < end; k++) {
                const double dx = (double)place[k].x - x, dy = (double)place[k].y - y;
                const double near = fmax(1 - (dx * dx + dy * dy), 0);
                weight += near;
                vx += near * (double)speed[k].x, vy += near * (double)speed[k].y;
                cx += near * dx, cy += near * dy;
                ax -= near * near * dx, ay -= near * near * dy;
            }
        }
        steering[i].x = (float)(1.5 * ax + 4 * (vx / weight - (double)velocity[i].x) + 3 * (cx / weight));
        steering[i].y = (float)(1.5 * ay + 4 * (vy / weight - (double)velocity[i].y) + 3 * (cy / weight));
    }
}

/* Moves along one axis, and back at the edges. */
static void move_along(float *position, float *velocity, double seconds)
{
    const double moved = (double)*position + seconds * (double)*velocity;
    if (moved < 0 || moved > size) *velocity = -*velocity;
    *position = (float)fmin(fmax(moved, 0), size);
}

QUERN_SYSTEM(move, (Position, position), (Velocity, velocity), (const Steering, steering))
{
    const double seconds = quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        const double x = (double)velocity[i].x + seconds * (double)steering[i].x;
        const double y = (double)velocity[i].y + seconds * (double)steering[i].y;
        const double speed = sqrt(x * x + y * y) + 0.0001,
                     factor = fmin(fmax(speed, slowest), fastest) / speed;
        velocity[i] = (Velocity){(float)(x * factor), (float)(y * factor)};
        move_along(&position[i].x, &velocity[i].x, seconds);
        move_along(&position[i].y, &velocity[i].y, seconds);
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Steering, x, y));
    const quern_query_def others = {
        .terms = {quern_term_read(QUERN_ID(world, Position)), quern_term_read(QUERN_ID(world, Velocity))}};
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, flock, .queries = {others}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    for (uint64_t i = 0; i < BIRDS; i++) {
        const uint64_t place = quern_random(1, i), speed = quern_random(2, i);
        QUERN_MUST(
            QUERN_CREATE(world, NULL,
                         QUERN_VALUE(Position, 16 * quern_random_unit(place),
                                     16 * quern_random_unit(quern_random(place, 1))),
                         QUERN_VALUE(Velocity, quern_random_signed(speed), quern_random_signed(place)),
                         QUERN_VALUE(Steering, 0)));
    }
    for (int frame = 0; frame < FRAMES; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 64));
    printf("%d birds, %d frames, hash 0x%016llx\n", BIRDS, FRAMES,
           (unsigned long long)quern_world_hash(world));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
