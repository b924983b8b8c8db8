/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <cstdio>
#include <cstdlib>

struct Position {
    float x;
};

struct Velocity {
    float x;
};

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    std::fprintf(stderr, "%s\n", quern_error_message());
    std::exit(EXIT_FAILURE);
}

static void move(quern_context *context, const quern_view *view)
{
    const float dt = static_cast<float>(quern_context_delta_seconds(context));
    Position *positions = QUERN_COLUMN(view, 0, Position);
    const Velocity *velocities = QUERN_COLUMN(view, 1, const Velocity);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        positions[i].x += velocities[i].x * dt;
}

int main()
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component position, velocity;
    quern_entity entity;
    check(quern_world_create(nullptr, &world));
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    check(QUERN_COMPONENT_REGISTER(world, &velocity, Velocity));
    check(quern_entity_create(world, &entity));
    const Position start = {1};
    const Velocity speed = {2};
    check(quern_entity_set(world, entity, position, &start));
    check(quern_entity_set(world, entity, velocity, &speed));

    check(quern_schedule_create(world, nullptr, &schedule));
    const quern_system_def system = {
        .name = "move", .run = move, .terms = {quern_term_write(position), quern_term_read(velocity)}};
    check(quern_schedule_add_system(schedule, &system, nullptr));
    for (int frame = 0; frame < 64; frame++)
        check(quern_schedule_run(schedule, nullptr, 1.0 / 64));
    const Position *moved = static_cast<const Position *>(quern_entity_get(world, entity, position));
    std::printf("after one second it is at %g\n", static_cast<double>(moved->x));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
