/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A fountain of sparks, as a module that is compiled and reloaded while it runs: change a number, save, and look. */
#include <quern/kit/live.h>
#include <quern/kit/random.h>
#include <quern/quern.h>

static const float gravity = 9.81F; /* metres per second per second */
static const uint32_t sparks_per_frame = 4;

typedef struct Position {
    float x, y; /* metres; the fountain is at 0, 0 */
} Position;

typedef struct Velocity {
    float x, y; /* metres per second */
} Velocity;

typedef struct Spark {
    float seconds; /* until it goes out */
} Spark;

/* A global variable would start anew in each version. */
typedef struct Fountain {
    uint64_t count; /* of all sparks so far */
} Fountain;

static void launch(quern_context *context)
{
    Fountain *fountain = QUERN_RESOURCE(context, Fountain);
    for (uint32_t i = 0; i < sparks_per_frame; i++) {
        const uint64_t random = quern_random(1, fountain->count++);
        const float side = 3 * quern_random_signed(random),
                    up = 9 + 3 * quern_random_unit(quern_random(random, 1));
        QUERN_CREATE(quern_context_commands(context), NULL, QUERN_VALUE(Position, 0, 0),
                     QUERN_VALUE(Velocity, side, up), QUERN_VALUE(Spark, 2.5F));
    }
}

QUERN_SYSTEM(fall, (Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i) velocity[i].y -= gravity * seconds;
}

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
    }
}

QUERN_SYSTEM(burn, (Spark, spark))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        spark[i].seconds -= seconds;
        if (spark[i].seconds <= 0)
            quern_commands_destroy(quern_context_commands(context), view->entities[i]);
    }
}

static quern_result load(quern_live_module *module)
{
    quern_resource fountain;
    QUERN_TRY(QUERN_REGISTER(module->world, Position, x, y));
    QUERN_TRY(QUERN_REGISTER(module->world, Velocity, x, y));
    QUERN_TRY(QUERN_REGISTER(module->world, Spark, seconds));
    QUERN_TRY(QUERN_RESOURCE_REGISTER_FIELDS(module->world, &fountain, Fountain, count));
    const quern_system_def launched = {
        .name = "launch", .begin = launch, .resources = {{fountain, QUERN_ACCESS_WRITE}}};
    QUERN_TRY(quern_schedule_add_system(module->schedule, &launched, NULL));
    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, fall));
    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, move));
    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, burn));
    return QUERN_OK;
}

QUERN_LIVE_MODULE(load, NULL)
