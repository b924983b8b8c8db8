/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Gun {
    int32_t damage;
} Gun;

typedef struct Hit {
    int32_t damage;
} Hit;

typedef struct Types {
    quern_component gun;
    quern_event hit;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

static void shoot(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Gun *guns = QUERN_COLUMN(view, 0, const Gun);
    quern_emitter *hits = quern_context_emitter(context, types->hit);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        quern_emit(hits, &(Hit){.damage = guns[i].damage});
}

/* The views of this system are blocks of events instead of rows of entities. */
static void sum_up(quern_context *context, const quern_view *view)
{
    const Hit *hits = QUERN_EVENTS(view, Hit);
    const uint32_t count = view->count;
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += hits[i].damage;
    printf("frame %d: %u hits, damage %d\n", (int)quern_context_frame_index(context), count, sum);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    Types types;
    const Gun guns[3] = {{5}, {7}, {9}};
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &types.gun, Gun));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types.hit, Hit, damage));
    check(quern_entity_create_many(world, &types.gun, (const void *[]){guns}, 1, 3, NULL));
    check(quern_schedule_create(world, &(quern_schedule_def){.phases = {"shots", "wounds"}}, &schedule));
    const quern_system_def systems[] = {{.name = "shoot",
                                         .run = shoot,
                                         .terms = {quern_term_read(types.gun)},
                                         .emits = {types.hit},
                                         .user_data = &types},
                                        {.name = "sum up", .phase = 1, .run = sum_up, .items = types.hit}};
    for (int i = 0; i < 2; i++)
        check(quern_schedule_add_system(schedule, &systems[i], NULL));
    for (int frame = 0; frame < 2; frame++)
        check(quern_schedule_run(schedule, NULL, 1.0 / 60));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
