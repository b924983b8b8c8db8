/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "move": these three systems access only their own rows, so the runtime fuses them into one pass. */

#include "check.h"
#include "rules.h"
#include "systems.h"

#include <math.h>

static const Rules *rules_of(quern_context *context)
{
    const Types *types = quern_context_user_data(context);
    return quern_context_resource(context, types->rules);
}

/* ------------------------------------------------------------------------------------------- steer */

enum { STEER_STEERING, STEER_VELOCITY, STEER_HUNTER };

static void steer(quern_context *context, const quern_view *view)
{
    const Rules *rules = rules_of(context);
    const Species *species = quern_view_has(view, STEER_HUNTER) ? &rules->hunter : &rules->prey;
    const Steering *steering = QUERN_COLUMN(view, STEER_STEERING, const Steering);
    Velocity *velocity = QUERN_COLUMN(view, STEER_VELOCITY, Velocity);
    float dt = (float)quern_context_delta_seconds(context);
    float slowest = species->min_speed, fastest = species->max_speed;
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        float x = velocity[i].x + dt * steering[i].x;
        float y = velocity[i].y + dt * steering[i].y;
        float speed = sqrtf(x * x + y * y) + 0.0001f;
        float allowed = speed < slowest ? slowest : speed > fastest ? fastest : speed;
        velocity[i].x = x * (allowed / speed);
        velocity[i].y = y * (allowed / speed);
    }
}

static void add_steer(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "steer",
        .phase = PHASE_MOVE,
        .run = steer,
        .user_data = types,
        .terms = {[STEER_STEERING] = quern_term_read(types->steering),
                  [STEER_VELOCITY] = quern_term_write(types->velocity),
                  [STEER_HUNTER] = quern_term_optional(types->hunter, QUERN_ACCESS_NONE)},
        .resources = {{types->rules, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* -------------------------------------------------------------------------------------------- move */

enum { MOVE_VELOCITY, MOVE_POSITION };

/* Moves an agent along one axis. Agents bounce off the edges, and are inside afterwards at any speed. */
static inline void move_along(float *position, float *velocity, float dt, float size)
{
    float moved = *position + dt * *velocity;
    float inside = moved < 0.0f ? 0.0f : moved > size ? size : moved;
    *velocity = inside == moved ? *velocity : -*velocity;
    *position = inside;
}

static void move(quern_context *context, const quern_view *view)
{
    const Rules *rules = rules_of(context);
    Velocity *velocity = QUERN_COLUMN(view, MOVE_VELOCITY, Velocity);
    Position *position = QUERN_COLUMN(view, MOVE_POSITION, Position);
    float dt = (float)quern_context_delta_seconds(context);
    float width = rules->width, height = rules->height;
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        move_along(&position[i].x, &velocity[i].x, dt, width);
        move_along(&position[i].y, &velocity[i].y, dt, height);
    }
}

static void add_move(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "move",
                                  .phase = PHASE_MOVE,
                                  .run = move,
                                  .user_data = types,
                                  .terms = {[MOVE_VELOCITY] = quern_term_write(types->velocity),
                                            [MOVE_POSITION] = quern_term_write(types->position)},
                                  .resources = {{types->rules, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* --------------------------------------------------------------------------------------------- age */

enum { AGE_AGE };

static void age(quern_context *context, const quern_view *view)
{
    Age *ages = QUERN_COLUMN(view, AGE_AGE, Age);
    float dt = (float)quern_context_delta_seconds(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        ages[i].seconds += dt;
}

static void add_age(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "age",
                                  .phase = PHASE_MOVE,
                                  .run = age,
                                  .user_data = types,
                                  .terms = {[AGE_AGE] = quern_term_write(types->age)}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_motion(quern_schedule *schedule, Types *types)
{
    add_steer(schedule, types);
    add_move(schedule, types);
    add_age(schedule, types);
}
