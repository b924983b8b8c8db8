/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Body {
    float height, speed;
} Body;

typedef struct Keys {
    bool jump;
} Keys;

typedef struct Types {
    quern_component body;
    quern_resource keys;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* The program writes the resource between frames; the system reads it. */
static void jump(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Keys *keys = quern_context_resource(context, types->keys);
    Body *bodies = QUERN_COLUMN(view, 0, Body);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (keys->jump && bodies[i].height <= 0) bodies[i].speed = 5;
}

static void fall(quern_context *context, const quern_view *view)
{
    const float seconds = (float)quern_context_delta_seconds(context);
    Body *bodies = QUERN_COLUMN(view, 0, Body);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        bodies[i].speed -= 10 * seconds;
        bodies[i].height += bodies[i].speed * seconds;
        if (bodies[i].height < 0) bodies[i].height = bodies[i].speed = 0;
    }
}

static void report(quern_context *context, const quern_view *view)
{
    const Body *bodies = QUERN_COLUMN(view, 0, const Body);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        printf("frame %d: height %.2f\n", (int)quern_context_frame_index(context),
               (double)bodies[i].height);
}

static void add_systems(quern_schedule *schedule, Types *types)
{
    const quern_term write = quern_term_write(types->body), read = quern_term_read(types->body);
    const quern_system_def systems[] = {
        {.name = "fall", .run = fall, .terms = {write}, .after = {"jump"}},
        {.name = "jump",
         .run = jump,
         .terms = {write},
         .resources = {{types->keys, QUERN_ACCESS_READ}},
         .user_data = types},
        {.name = "report",
         .phase = 1,
         .run = report,
         .terms = {read},
         .interval_seconds = 0.5, /* twice per second */
         .flags = QUERN_SYSTEM_MAIN_THREAD},
    };
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        check(quern_schedule_add_system(schedule, &systems[i], NULL));
    check(quern_schedule_set_fixed_step(schedule, 0, 1.0 / 64, 8)); /* the phase "simulation" */
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    Types types;
    check(quern_world_create(NULL, &world));
    check(quern_jobs_create(NULL, &jobs));
    check(QUERN_COMPONENT_REGISTER(world, &types.body, Body));
    check(QUERN_RESOURCE_REGISTER(world, &types.keys, Keys));
    check(quern_entity_create_with(world, &types.body, NULL, 1, NULL));
    check(quern_schedule_create(world, &(quern_schedule_def){.phases = {"simulation", "display"}},
                                &schedule));
    add_systems(schedule, &types);
    for (int frame = 0; frame < 32; frame++) { /* one and a half seconds */
        Keys *keys = quern_resource_get(world, types.keys);
        keys->jump = frame == 2;
        check(quern_schedule_run(schedule, jobs, 3.0 / 64));
    }
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
