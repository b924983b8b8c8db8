/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 2 of the tutorial: a gun fires bullets, which live for a second. */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y;
} Velocity;

typedef struct Gun {
    int32_t ammo;
} Gun;

typedef struct Lifetime {
    float seconds;
} Lifetime;

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
    }
}

/* Records commands: the bullets are created at the sync point, when no system runs. */
QUERN_SYSTEM(fire, (Gun, gun), (const Position, position))
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        if (gun[i].ammo == 0) {
            QUERN_MUST(QUERN_REMOVE(commands, view->entities[i], Gun));
            continue;
        }
        gun[i].ammo--;
        QUERN_MUST(QUERN_CREATE(commands, NULL, QUERN_VALUE(Position, position[i].x, position[i].y - 1),
                                QUERN_VALUE(Velocity, 0, -8), QUERN_VALUE(Lifetime, 1)));
    }
}

QUERN_SYSTEM(expire, (Lifetime, lifetime))
{
    quern_commands *commands = quern_context_commands(context);
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        lifetime[i].seconds -= seconds;
        if (lifetime[i].seconds <= 0) QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_query *bullets;
    quern_entity ship;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Gun, ammo));
    QUERN_MUST(QUERN_REGISTER(world, Lifetime, seconds));
    QUERN_MUST(QUERN_CREATE(world, &ship, QUERN_VALUE(Position, 20, 19), QUERN_VALUE(Gun, 5)));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fire, .interval_seconds = 0.25)); /* four times a second */
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, expire));
    const quern_query_def living = {.terms = {quern_term_with(QUERN_ID(world, Lifetime))}};
    QUERN_MUST(quern_query_create(world, &living, &bullets));
    for (int frame = 1; frame <= 40; frame++) {
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 16));
        if (frame % 8 == 0)
            printf("second %.1f: %d bullets, the ship %s\n", frame / 16.0, (int)quern_query_count(bullets),
                   QUERN_HAS(world, ship, Gun) ? "has a gun" : "has no gun");
    }
    quern_query_destroy(bullets);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
