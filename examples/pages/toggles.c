/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Weapon {
    int32_t shots;
} Weapon;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Fires the weapons that are enabled, and disables those that have no shots left. */
static void fire(quern_context *context, const quern_view *view)
{
    Weapon *weapons = QUERN_COLUMN(view, 0, Weapon);
    quern_row_range range = {0};
    (void)context;
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            if (--weapons[i].shots == 0) quern_view_set_enabled(view, 0, i, false);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component weapon;
    quern_entity soldiers[4];
    const Weapon weapons[4] = {{1}, {2}, {3}, {4}};
    const quern_component_def def = {QUERN_TYPE(Weapon), .can_disable = true};
    check(quern_world_create(NULL, &world));
    check(quern_component_register(world, &def, &weapon));
    check(quern_entity_create_many(world, &weapon, (const void *[]){weapons}, 1, 4, soldiers));
    check(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def system = {.name = "fire",
                                     .run = fire,
                                     .terms = {quern_term_write(weapon)},
                                     .flags = QUERN_SYSTEM_WHOLE_CHUNKS};
    check(quern_schedule_add_system(schedule, &system, NULL));
    for (int frame = 0; frame < 2; frame++)
        check(quern_schedule_run(schedule, NULL, 0));
    for (int i = 0; i < 4; i++)
        printf("soldier %d: %s\n", i,
               quern_entity_is_component_enabled(world, soldiers[i], weapon) ? "fires"
                                                                             : "has no shots left");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
