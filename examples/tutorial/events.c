/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 4 of the tutorial: bullets hit rocks, rocks break, and the score counts them. */
#include <quern/kit/grid.h>
#include <quern/quern.h>

#include <stdio.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y;
} Velocity;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Score {
    int32_t rocks;
} Score;

/* An event: a rock has broken. */
typedef struct Broken {
    quern_entity rock;
} Broken;

typedef struct Types {
    quern_component health;
    quern_resource grid; /* the rocks by their position */
    quern_event broken;
} Types;

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
    }
}

/* Several bullets may hit one rock in one frame: the sync point adds up the losses. */
QUERN_SYSTEM(hit, (const Position, position))
{
    const Types *types = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, types->grid);
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        quern_grid_hit nearest;
        if (quern_grid_nearest(grid, &position[i].x, 1, &nearest, 1) == 0) continue;
        QUERN_MUST(quern_commands_accumulate(commands, nearest.item->entity, types->health, &(Health){-1},
                                             QUERN_SUM));
        QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

/* A reaction: it runs after a sync point, with the entities that got another health. */
QUERN_SYSTEM(bury, (const Health, health))
{
    const Types *types = quern_context_user_data(context);
    quern_emitter *broken = quern_context_emitter(context, types->broken);
    QUERN_ROWS(i)
    {
        if (health[i].points > 0) continue;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
        quern_emit(broken, &(Broken){view->entities[i]});
    }
}

/* The views of this system are events instead of entities. */
static void count_broken(quern_context *context, const quern_view *view)
{
    QUERN_RESOURCE(context, Score)->rocks += (int32_t)view->count;
    printf("frame %d: %u broken\n", (int)quern_context_frame_index(context), view->count);
}

static void add_systems(quern_world *world, quern_schedule *schedule, Types *types, quern_resource score)
{
    const quern_system_def counting = {.name = "count_broken",
                                       .run = count_broken,
                                       .items = types->broken,
                                       .resources = {{score, QUERN_ACCESS_WRITE}},
                                       .flags = QUERN_SYSTEM_SERIAL};
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, hit, .user_data = types,
                                .terms = {quern_term_with(quern_component_find(world, "Bullet"))},
                                .resources = {{types->grid, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, bury, .user_data = types, .reacts_to = QUERN_REACT_SET,
                                .emits = {types->broken}));
    QUERN_MUST(quern_schedule_add_system(schedule, &counting, NULL));
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_grid *grid;
    quern_resource score;
    Types types;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Health, points));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Rock, Bullet));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &score, Score));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &types.broken, Broken, rock));
    types.health = QUERN_ID(world, Health);
    const quern_grid_def rocks = {.name = "rocks",
                                  .position = QUERN_ID(world, Position),
                                  .planar = true,
                                  .cell_size = 2,
                                  .with = {quern_component_find(world, "Rock")}};
    QUERN_MUST(quern_grid_create(world, &rocks, &grid));
    types.grid = quern_grid_resource(grid);
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(quern_grid_add_systems(grid, schedule, 0));
    add_systems(world, schedule, &types, score);
    for (int i = 0; i < 4; i++) {
        const float x = 4.0f * (float)i;
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Position, x, 4), QUERN_VALUE(Health, 1 + i / 2),
                                QUERN_TAG(Rock)));
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Position, x, 12), QUERN_VALUE(Velocity, 0, -8),
                                QUERN_TAG(Bullet)));
    }
    for (int frame = 0; frame < 32; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 16));
    printf("score: %d\n", ((const Score *)quern_resource_get(world, score))->rocks);
    quern_schedule_destroy(schedule);
    quern_grid_destroy(grid);
    quern_world_destroy(world);
}
