/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Health {
    int32_t points;
} Health;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Called with the entities that had their health set since the last sync point. */
static void bury(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const Health *healths = QUERN_COLUMN(view, 0, const Health);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (healths[i].points <= 0) check(quern_commands_destroy(commands, view->entities[i]));
}

/* Called with the same entities: prints the points from before the set, and the current ones. */
static void report(quern_context *context, const quern_view *view)
{
    const Health *before = QUERN_COLUMN(view, 0, const Health);
    const Health *now = QUERN_COLUMN(view, 1, const Health);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        printf("points: %d, before %d\n", now[i].points, before[i].points);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component health;
    quern_entity monsters[3];
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &health, Health));
    check(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def system = {
        .name = "bury", .run = bury, .terms = {quern_term_read(health)}, .reacts_to = QUERN_REACT_SET};
    check(quern_schedule_add_system(schedule, &system, NULL));
    const quern_system_def reporting = {.name = "report",
                                        .run = report,
                                        .terms = {quern_term_old(health), quern_term_read(health)},
                                        .reacts_to = QUERN_REACT_SET,
                                        .flags = QUERN_SYSTEM_SERIAL};
    check(quern_schedule_add_system(schedule, &reporting, NULL));
    const Health full[3] = {{10}, {10}, {10}};
    check(quern_entity_create_many(world, &health, (const void *[]){full}, 1, 3, monsters));
    check(quern_schedule_run(schedule, NULL, 0));

    check(quern_entity_set(world, monsters[1], health, &(Health){0}));
    check(quern_world_react(world, NULL)); /* otherwise the next frame reacts */
    for (int i = 0; i < 3; i++)
        printf("monster %d: %s\n", i, quern_entity_is_alive(world, monsters[i]) ? "alive" : "dead");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
