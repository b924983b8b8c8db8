/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "think", for prey: stay together at a distance, match velocities, flee from hunters. */

#include "check.h"
#include "neighbours.h"
#include "systems.h"

#include <quern/kit/random.h>

static const float apart_gain = 1.5f;
static const float align_gain = 4.0f;
static const float centre_gain = 3.0f;
static const float flee_gain = 20.0f;
static const float wander_gain = 1.5f;
static const float follow_gain = 1.0f;
static const float child_seconds = 3.0f; /* age up to which a child follows its mother */

/* ------------------------------------------------------------------------------------------- flock */

enum { FLOCK_POSITION, FLOCK_VELOCITY, FLOCK_GENES, FLOCK_STEERING, FLOCK_CROWD, FLOCK_PREY };

/* Sums over the agents in sight. They include the agent itself, which only softens its steering. */
typedef struct Flock {
    float weight;
    Vector velocity; /* weighted sum of velocities of neighbours */
    Vector offset;   /* weighted sum of offsets to neighbours */
    Vector apart;    /* direction away from agents that are too close */
    Vector danger;   /* direction away from hunters */
} Flock;

/* Adds a neighbour to the sums. Its weight falls from 1 at distance 0 to 0 at distance 1, without a
 * branch for larger distances. stride: the number of agents that it represents. */
static inline void add_neighbour(Flock *around, Vector from, const quern_grid_item *neighbour,
                                 Velocity velocity, float stride)
{
    float dx = neighbour->position[0] - from.x;
    float dy = neighbour->position[1] - from.y;
    float closeness = 1.0f - (dx * dx + dy * dy);
    float weight = (closeness > 0.0f ? closeness : 0.0f) * stride;
    if (neighbour->marks & NEIGHBOUR_HUNTER) {
        around->danger.x -= weight * dx;
        around->danger.y -= weight * dy;
        return;
    }
    around->weight += weight;
    around->velocity.x += weight * velocity.x;
    around->velocity.y += weight * velocity.y;
    around->offset.x += weight * dx;
    around->offset.y += weight * dy;
    around->apart.x -= weight * closeness * dx;
    around->apart.y -= weight * closeness * dy;
}

static Flock look_around(const quern_grid_cells *cells, Vector from)
{
    Flock around = {.weight = 0.0f};
    const Surroundings near = surroundings_of(cells, from);
    for (uint32_t y = near.first_y; y <= near.last_y; y++) {
        const NeighbourRow row = neighbour_row(&near, y);
        for (uint32_t i = 0; i < row.count; i += row.stride)
            add_neighbour(&around, from, &row.items[i], row.velocities[i], (float)row.stride);
    }
    return around;
}

static Steering flock_steering(const Flock *around, Velocity velocity, uint64_t random)
{
    float scale = 1.0f / (around->weight + 0.01f);
    return (Steering){
        .x = apart_gain * around->apart.x + align_gain * (scale * around->velocity.x - velocity.x) +
             centre_gain * scale * around->offset.x + flee_gain * around->danger.x +
             wander_gain * quern_random_signed(random),
        .y = apart_gain * around->apart.y + align_gain * (scale * around->velocity.y - velocity.y) +
             centre_gain * scale * around->offset.y + flee_gain * around->danger.y +
             wander_gain * quern_random_signed(random >> 32),
    };
}

static void flock(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const quern_grid_cells *cells = quern_grid_get_cells(quern_context_grid(context, types->grid));
    const Position *position = QUERN_COLUMN(view, FLOCK_POSITION, const Position);
    const Velocity *velocity = QUERN_COLUMN(view, FLOCK_VELOCITY, const Velocity);
    const Genes *genes = QUERN_COLUMN(view, FLOCK_GENES, const Genes);
    Steering *steering = QUERN_COLUMN(view, FLOCK_STEERING, Steering);
    Crowd *crowd = QUERN_COLUMN(view, FLOCK_CROWD, Crowd);
    uint64_t frame = quern_context_frame_index(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (i + NEIGHBOURS_AHEAD < count) neighbours_fetch(cells, position[i + NEIGHBOURS_AHEAD]);
        Flock around = look_around(cells, position[i]);
        steering[i] = flock_steering(&around, velocity[i], quern_random(genes[i].seed, frame));
        crowd[i].weight = around.weight;
    }
}

static void add_flock(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "flock",
                                  .phase = PHASE_THINK,
                                  .run = flock,
                                  .user_data = types,
                                  .terms = {[FLOCK_POSITION] = quern_term_read(types->position),
                                            [FLOCK_VELOCITY] = quern_term_read(types->velocity),
                                            [FLOCK_GENES] = quern_term_read(types->genes),
                                            [FLOCK_STEERING] = quern_term_write(types->steering),
                                            [FLOCK_CROWD] = quern_term_write(types->crowd),
                                            [FLOCK_PREY] = quern_term_with(types->prey)},
                                  .resources = {{types->grid, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* ----------------------------------------------------------------------------------- follow mother */

enum { FOLLOW_POSITION, FOLLOW_AGE, FOLLOW_LINEAGE, FOLLOW_STEERING, FOLLOW_PREY };

static void follow_mother(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Position *position = QUERN_COLUMN(view, FOLLOW_POSITION, const Position);
    const Age *age = QUERN_COLUMN(view, FOLLOW_AGE, const Age);
    const Lineage *lineage = QUERN_COLUMN(view, FOLLOW_LINEAGE, const Lineage);
    Steering *steering = QUERN_COLUMN(view, FOLLOW_STEERING, Steering);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (age[i].seconds > child_seconds || quern_entity_is_null(lineage[i].mother)) continue;
        const Position *mother = quern_context_lookup(context, lineage[i].mother, types->position);
        if (mother == NULL) continue;
        steering[i].x += follow_gain * (mother->x - position[i].x);
        steering[i].y += follow_gain * (mother->y - position[i].y);
    }
}

static void add_follow_mother(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "follow mother",
                                  .phase = PHASE_THINK,
                                  .run = follow_mother,
                                  .user_data = types,
                                  .terms = {[FOLLOW_POSITION] = quern_term_read(types->position),
                                            [FOLLOW_AGE] = quern_term_read(types->age),
                                            [FOLLOW_LINEAGE] = quern_term_read(types->lineage),
                                            [FOLLOW_STEERING] = quern_term_write(types->steering),
                                            [FOLLOW_PREY] = quern_term_with(types->prey)},
                                  .lookups = {{.component = types->position}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_flock(quern_schedule *schedule, Types *types)
{
    add_flock(schedule, types);
    add_follow_mother(schedule, types);
}
