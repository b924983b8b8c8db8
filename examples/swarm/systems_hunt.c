/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "think", for hunters: choose the nearest prey, keep a distance from other hunters, and chase. */

#include "check.h"
#include "neighbours.h"
#include "systems.h"

static const float apart_gain = 4.0f;
static const float chase_gain = 10.0f;
static const float lead_seconds = 0.15f; /* hunters aim at the position of the prey after that time */
static const float lost_distance = 2.0f; /* distance beyond which a target is given up */
static const float hungry_below = 0.9f;  /* energy */

/* ----------------------------------------------------------------------------------- choose target */

enum { CHOOSE_POSITION, CHOOSE_ENERGY, CHOOSE_TARGET, CHOOSE_STEERING, CHOOSE_CROWD, CHOOSE_HUNTER };

typedef struct Sight {
    quern_entity nearest_prey;
    float nearest_square; /* square of the distance of the nearest prey */
    float crowd;          /* weighted number of other hunters nearby */
    Vector apart;         /* direction away from other hunters */
} Sight;

/* Adds a neighbour. stride: the number of agents that it represents. */
static inline void add_neighbour(Sight *sight, Vector from, const quern_grid_item *neighbour, float stride)
{
    float dx = neighbour->position[0] - from.x;
    float dy = neighbour->position[1] - from.y;
    float square = dx * dx + dy * dy;
    if (neighbour->marks & NEIGHBOUR_HUNTER) {
        bool is_other = square > 0.0f;
        float closeness = is_other && square < 1.0f ? (1.0f - square) * stride : 0.0f;
        sight->crowd += closeness;
        sight->apart.x -= closeness * dx;
        sight->apart.y -= closeness * dy;
    } else if (square < sight->nearest_square) {
        sight->nearest_square = square;
        sight->nearest_prey = neighbour->entity;
    }
}

static Sight look_around(const quern_grid_cells *cells, Vector from)
{
    Sight sight = {.nearest_square = lost_distance * lost_distance};
    const Surroundings near = surroundings_of(cells, from);
    for (uint32_t y = near.first_y; y <= near.last_y; y++) {
        const NeighbourRow row = neighbour_row(&near, y);
        for (uint32_t i = 0; i < row.count; i += row.stride)
            add_neighbour(&sight, from, &row.items[i], (float)row.stride);
    }
    return sight;
}

/* Returns whether a hunter keeps its target: while that is alive and near. If the target died since the
 * last frame, the handle is stale and the lookup finds nothing. */
static bool can_keep(quern_context *context, Target target, Vector from)
{
    const Types *types = quern_context_user_data(context);
    if (quern_entity_is_null(target.prey)) return false;
    const Position *prey = quern_context_lookup(context, target.prey, types->position);
    if (prey == NULL) return false;
    float dx = prey->x - from.x, dy = prey->y - from.y;
    return dx * dx + dy * dy < lost_distance * lost_distance;
}

static void choose_target(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const quern_grid_cells *cells = quern_grid_get_cells(quern_context_grid(context, types->grid));
    const Position *position = QUERN_COLUMN(view, CHOOSE_POSITION, const Position);
    const Energy *energy = QUERN_COLUMN(view, CHOOSE_ENERGY, const Energy);
    Target *target = QUERN_COLUMN(view, CHOOSE_TARGET, Target);
    Steering *steering = QUERN_COLUMN(view, CHOOSE_STEERING, Steering);
    Crowd *crowd = QUERN_COLUMN(view, CHOOSE_CROWD, Crowd);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        Sight sight = look_around(cells, position[i]);
        crowd[i].weight = sight.crowd;
        steering[i].x = apart_gain * sight.apart.x;
        steering[i].y = apart_gain * sight.apart.y;
        if (energy[i].value >= hungry_below)
            target[i].prey = quern_entity_null();
        else if (!can_keep(context, target[i], position[i]))
            target[i].prey = sight.nearest_prey;
    }
}

static void add_choose_target(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "choose target",
                                  .phase = PHASE_THINK,
                                  .run = choose_target,
                                  .user_data = types,
                                  .terms = {[CHOOSE_POSITION] = quern_term_read(types->position),
                                            [CHOOSE_ENERGY] = quern_term_read(types->energy),
                                            [CHOOSE_TARGET] = quern_term_write(types->target),
                                            [CHOOSE_STEERING] = quern_term_write(types->steering),
                                            [CHOOSE_CROWD] = quern_term_write(types->crowd),
                                            [CHOOSE_HUNTER] = quern_term_with(types->hunter)},
                                  .lookups = {{.component = types->position}},
                                  .resources = {{types->grid, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* ------------------------------------------------------------------------------------------- chase */

enum { CHASE_POSITION, CHASE_TARGET, CHASE_STEERING };

/* Targets are alive: they were chosen in this frame, and agents die only at the end of phase "life". */
static void chase(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Position *position = QUERN_COLUMN(view, CHASE_POSITION, const Position);
    const Target *target = QUERN_COLUMN(view, CHASE_TARGET, const Target);
    Steering *steering = QUERN_COLUMN(view, CHASE_STEERING, Steering);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (quern_entity_is_null(target[i].prey)) continue;
        const Position *prey = quern_context_lookup(context, target[i].prey, types->position);
        const Velocity *flight = quern_context_lookup(context, target[i].prey, types->velocity);
        steering[i].x += chase_gain * (prey->x + lead_seconds * flight->x - position[i].x);
        steering[i].y += chase_gain * (prey->y + lead_seconds * flight->y - position[i].y);
    }
}

static void add_chase(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "chase",
        .phase = PHASE_THINK,
        .run = chase,
        .user_data = types,
        .terms = {[CHASE_POSITION] = quern_term_read(types->position),
                  [CHASE_TARGET] = quern_term_read(types->target),
                  [CHASE_STEERING] = quern_term_write(types->steering)},
        .lookups = {{.component = types->position}, {.component = types->velocity}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_hunt(quern_schedule *schedule, Types *types)
{
    add_choose_target(schedule, types);
    add_chase(schedule, types);
}
