/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Change filters by row: few of the trees burn, and only these are drawn. docs/changes.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Fuel {
    int32_t left, burning;
} Fuel;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Reads all trees, writes those that burn, and marks their rows as changed. */
static void burn(quern_context *context, const quern_view *view)
{
    Fuel *fuels = QUERN_COLUMN_ROWS(view, 0, Fuel);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        if (fuels[i].burning == 0 || fuels[i].left == 0) continue;
        fuels[i].left--;
        quern_view_mark_row(view, 0, i);
    }
}

/* Prints the trees that have changed since this system last ran. */
static void draw(quern_context *context, const quern_view *view)
{
    const Fuel *fuels = QUERN_COLUMN(view, 0, const Fuel);
    quern_row_range range = {0};
    (void)context;
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            printf("  tree %u: %d\n", quern_entity_index(view->entities[i]), fuels[i].left);
}

static void add_systems(quern_schedule *schedule, quern_component fuel)
{
    quern_system_def def = {.name = "burn", .run = burn, .terms = {quern_term_write(fuel)}};
    check(quern_schedule_add_system(schedule, &def, NULL));
    def = (quern_system_def){.name = "draw",
                             .run = draw,
                             .terms = {quern_term_changed(quern_term_read(fuel))},
                             .flags = QUERN_SYSTEM_SERIAL | QUERN_SYSTEM_WHOLE_CHUNKS};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component fuel;
    quern_entity trees[6];
    check(quern_world_create(NULL, &world));
    quern_component_def def = {QUERN_TYPE(Fuel), .row_changes = true};
    check(quern_component_register(world, &def, &fuel));
    check(quern_schedule_create(world, NULL, &schedule));
    add_systems(schedule, fuel);
    for (int32_t i = 0; i < 6; i++) {
        const Fuel start = {.left = 9, .burning = i == 2};
        check(quern_entity_create_with(world, &fuel, (const void *[]){&start}, 1, &trees[i]));
    }
    for (int frame = 1; frame <= 3; frame++) {
        const Fuel wet = {.left = 20, .burning = 0};
        printf("frame %d\n", frame);
        if (frame == 3) check(quern_entity_set(world, trees[4], fuel, &wet));
        check(quern_schedule_run(schedule, NULL, 0));
    }
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
