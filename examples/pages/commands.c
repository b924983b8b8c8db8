/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Fuse {
    int32_t frames_left;
} Fuse;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Destroys entities when their fuses have burnt down. The commands are applied at the end of the phase. */
static void burn(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    Fuse *fuses = QUERN_COLUMN(view, 0, Fuse);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (--fuses[i].frames_left == 0) check(quern_commands_destroy(commands, view->entities[i]));
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component fuse;
    const Fuse fuses[4] = {{1}, {2}, {2}, {3}};
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &fuse, Fuse));
    check(quern_entity_create_many(world, &fuse, (const void *[]){fuses}, 1, 4, NULL));
    check(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def system = {.name = "burn", .run = burn, .terms = {quern_term_write(fuse)}};
    check(quern_schedule_add_system(schedule, &system, NULL));
    for (int frame = 0; frame < 3; frame++) {
        quern_frame_stats stats;
        check(quern_schedule_run(schedule, NULL, 1.0 / 60));
        check(quern_schedule_get_frame_stats(schedule, &stats));
        printf("frame %d: %u destroyed\n", frame, (unsigned)stats.destroyed_count);
    }
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
