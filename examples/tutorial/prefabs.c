/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 3 of the tutorial: rocks with ore on them, all copies of one prefab. */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y;
} Velocity;

typedef struct Offset {
    float x, y; /* from the parent */
} Offset;

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
    }
}

/* Term 2 is an up-term: it reads the position of the parent. */
static void follow(quern_context *context, const quern_view *view)
{
    Position *positions = QUERN_COLUMN(view, 0, Position);
    const Offset *offsets = QUERN_COLUMN(view, 1, const Offset);
    const Position *const *parents = QUERN_UP(view, 2, Position);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        positions[i].x = parents[i]->x + offsets[i].x;
        positions[i].y = parents[i]->y + offsets[i].y;
    }
}

static void add_follow(quern_world *world, quern_schedule *schedule)
{
    const quern_component position = QUERN_ID(world, Position);
    const quern_relation parent = quern_world_parent(world);
    const quern_system_def def = {.name = "follow",
                                  .run = follow,
                                  .terms = {quern_term_write(position),
                                            quern_term_read(QUERN_ID(world, Offset)),
                                            quern_term_up(position, parent)},
                                  .after = {"move"},
                                  .levels = parent}; /* parents before their children */
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

/* Builds one rock with a piece of ore, and captures both. The original is destroyed. */
static quern_prefab make_rock(quern_world *world)
{
    quern_entity rock, ore;
    quern_prefab prefab;
    QUERN_MUST(QUERN_CREATE(world, &rock, QUERN_VALUE(Position, 0, 0), QUERN_VALUE(Velocity, 0, 1)));
    QUERN_MUST(QUERN_CREATE(world, &ore, QUERN_VALUE(Position, 0, 0), QUERN_VALUE(Offset, 1, 0)));
    QUERN_MUST(quern_entity_relate(world, ore, quern_world_parent(world), rock));
    QUERN_MUST(quern_entity_set_name(world, ore, "ore"));
    QUERN_MUST(quern_prefab_capture(world, rock, &prefab));
    QUERN_MUST(quern_entity_destroy(world, rock)); /* and the ore */
    return prefab;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_entity rocks[3];
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Offset, x, y));
    const quern_prefab rock = make_rock(world);
    const Position places[3] = {{10, 0}, {20, 2}, {30, 4}}; /* one for each instance */
    const quern_spawn_def def = {
        .overrides = {{.component = QUERN_ID(world, Position), .member = 0, .column = places}}};
    QUERN_MUST(quern_prefab_spawn_many(world, rock, 3, &def, rocks, NULL));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    add_follow(world, schedule);
    for (int frame = 0; frame < 16; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 16));
    for (int i = 0; i < 3; i++) {
        const quern_entity ore = quern_entity_first_source(world, rocks[i], quern_world_parent(world));
        const Position *at = QUERN_GET(world, ore, Position);
        printf("rock %d: %s at %g, %g\n", i, quern_entity_name(world, ore), (double)at->x, (double)at->y);
    }
    const quern_entity ore = quern_entity_first_source(world, rocks[1], quern_world_parent(world));
    QUERN_MUST(quern_entity_destroy(world, rocks[1]));
    printf("its ore is %s\n", quern_entity_is_alive(world, ore) ? "alive" : "gone, too");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
