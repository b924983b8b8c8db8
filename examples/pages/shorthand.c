/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Speed {
    float x, y;
} Speed;

typedef struct Heat {
    float degrees;
} Heat;

typedef struct Weather {
    float cooling; /* degrees per second */
} Weather;

QUERN_SYSTEM(move, (Place, place), (const Speed, speed))
{
    const float dt = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        place[i].x += speed[i].x * dt;
        place[i].y += speed[i].y * dt;
    }
}

/* Entities that have cooled down stop burning, and turn into ash. */
QUERN_SYSTEM(cool, (Heat, heat))
{
    const Weather *weather = QUERN_RESOURCE(context, const Weather);
    quern_commands *commands = quern_context_commands(context);
    const float loss = weather->cooling * (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        heat[i].degrees -= loss;
        if (heat[i].degrees > 0) continue;
        QUERN_MUST(QUERN_REMOVE(commands, view->entities[i], Burning));
        QUERN_MUST(QUERN_ADD(commands, view->entities[i], Ash));
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_resource weather;
    quern_entity torch;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));

    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Burning, Ash));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &weather, Weather));
    *(Weather *)quern_resource_get(world, weather) = (Weather){.cooling = 100};

    QUERN_MUST(QUERN_CREATE(world, &torch, QUERN_VALUE(Place, 1, 2), QUERN_VALUE(Speed, .x = 4),
                            QUERN_VALUE(Heat, 150), QUERN_TAG(Burning)));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, cool, .after = {"move"},
                                .terms = {quern_term_with(quern_component_find(world, "Burning"))},
                                .resources = {{weather, QUERN_ACCESS_READ}}));
    for (int frame = 1; frame <= 3; frame++) {
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
        printf("frame %d: x is %g, %s\n", frame, (double)QUERN_GET(world, torch, Place)->x,
               QUERN_HAS(world, torch, Burning) ? "burning" : "ash");
    }
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
