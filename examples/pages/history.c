/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef float Height;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

static void fall(quern_context *context, const quern_view *view)
{
    Height *heights = QUERN_COLUMN(view, 0, Height);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        heights[i] -= 1;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_history *history;
    quern_component height;
    quern_entity stone;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &height, Height));
    check(quern_entity_create_with(world, &height, (const void *[]){&(Height){100}}, 1, &stone));
    check(quern_schedule_create(world, NULL, &schedule));
    check(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "fall", .run = fall, .terms = {quern_term_write(height)}},
        NULL));
    const quern_history_def def = {.schedules = {schedule}, .frame_count = 60};
    check(quern_history_create(world, &def, &history));

    for (uint64_t frame = 0; frame < 10; frame++) {
        check(quern_history_save(history, frame, NULL)); /* the world before this frame */
        check(quern_schedule_run(schedule, NULL, 1.0 / 60));
    }
    printf("after ten frames: %g\n", (double)*(const Height *)quern_entity_get(world, stone, height));
    check(quern_history_restore(history, 4, NULL));
    printf("before frame 4: %g\n", (double)*(const Height *)quern_entity_get(world, stone, height));

    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
