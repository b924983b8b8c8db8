/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A schedule that explains itself: which systems run together, which one waits for which, and why.
 * docs/passes.md explains the output.
 *
 * usage: explain [--json] */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Vector {
    float x, y;
} Vector;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* The schedule is only described, so the systems do nothing. */
static void nothing(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
}

static quern_component component(quern_world *world, const char *name, uint32_t size_bytes)
{
    quern_component handle;
    const quern_component_def def = {.name = name, .size_bytes = size_bytes};
    check(quern_component_register(world, &def, &handle));
    return handle;
}

static quern_resource resource(quern_world *world, const char *name)
{
    quern_resource handle;
    const quern_resource_def def = {.name = name, .size_bytes = sizeof(uint64_t)};
    check(quern_resource_register(world, &def, &handle));
    return handle;
}

int main(int argument_count, char **arguments)
{
    bool as_json = argument_count > 1 && strcmp(arguments[1], "--json") == 0;
    quern_world *world;
    check(quern_world_create(NULL, &world));
    quern_component position = component(world, "Position", sizeof(Vector));
    quern_component velocity = component(world, "Velocity", sizeof(Vector));
    quern_component health = component(world, "Health", sizeof(float));
    quern_component target = component(world, "Target", sizeof(quern_entity));
    quern_resource score = resource(world, "Score");
    const quern_component ship[] = {position, velocity, health, target};
    for (int i = 0; i < 2000; i++)
        check(quern_entity_create_with(world, ship, NULL, 4, NULL));

    quern_schedule *schedule;
    check(quern_schedule_create(world, NULL, &schedule));

    const quern_system_def systems[] = {
        {.name = "fly", .run = nothing, .terms = {quern_term_write(velocity)}},
        {.name = "move", .run = nothing, .terms = {quern_term_write(position), quern_term_read(velocity)}},
        {.name = "heal", .run = nothing, .terms = {quern_term_write(health)}},
        /* Looks up the position of another ship, in any chunk, so all ships must have moved. */
        {.name = "aim",
         .run = nothing,
         .terms = {quern_term_read(target), quern_term_write(velocity)},
         .lookups = {{.component = position}}},
        {.name = "burn", .run = nothing, .terms = {quern_term_write(health), quern_term_read(velocity)}},
        /* Writes a resource, so its views are processed one after another. */
        {.name = "count",
         .run = nothing,
         .terms = {quern_term_read(health)},
         .resources = {{score, QUERN_ACCESS_WRITE}}},
    };
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        check(quern_schedule_add_system(schedule, &systems[i], NULL));

    check(quern_schedule_describe(schedule, as_json ? QUERN_DESCRIBE_JSON : QUERN_DESCRIBE_TEXT,
                                  quern_sink_file(stdout)));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return 0;
}
