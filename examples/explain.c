/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
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

/* The schedule is only described, so what the systems do is left out. */
static void nothing(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
}

static quern_component component(quern_world *world, const char *name, uint32_t size_bytes)
{
    quern_component handle;
    quern_component_def def = quern_component_def_default();
    def.name = name;
    def.size_bytes = size_bytes;
    check(quern_component_register(world, &def, &handle));
    return handle;
}

static quern_resource resource(quern_world *world, const char *name)
{
    quern_resource handle;
    quern_resource_def def = quern_resource_def_default();
    def.name = name;
    def.size_bytes = sizeof(uint64_t);
    check(quern_resource_register(world, &def, &handle));
    return handle;
}

static quern_system_def system_on(const char *name, const quern_term *terms, uint32_t term_count)
{
    quern_system_def def = quern_system_def_default();
    def.name = name;
    def.run = nothing;
    def.terms = terms;
    def.term_count = term_count;
    return def;
}

/* explain [--json] */
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

    quern_term fly_terms[] = {quern_term_write(velocity)};
    quern_system_def fly = system_on("fly", fly_terms, 1);
    check(quern_schedule_add_system(schedule, &fly, NULL));

    quern_term move_terms[] = {quern_term_write(position), quern_term_read(velocity)};
    quern_system_def move = system_on("move", move_terms, 2);
    check(quern_schedule_add_system(schedule, &move, NULL));

    quern_term heal_terms[] = {quern_term_write(health)};
    quern_system_def heal = system_on("heal", heal_terms, 1);
    check(quern_schedule_add_system(schedule, &heal, NULL));

    /* It looks where another ship is, wherever that is stored: all of them must have moved. */
    quern_term aim_terms[] = {quern_term_read(target), quern_term_write(velocity)};
    quern_system_def aim = system_on("aim", aim_terms, 2);
    aim.lookups = &position;
    aim.lookup_count = 1;
    check(quern_schedule_add_system(schedule, &aim, NULL));

    quern_term burn_terms[] = {quern_term_write(health), quern_term_read(velocity)};
    quern_system_def burn = system_on("burn", burn_terms, 2);
    check(quern_schedule_add_system(schedule, &burn, NULL));

    /* One writer of a resource: its views come one after another. */
    quern_term count_terms[] = {quern_term_read(health)};
    quern_resource_access count_access = {score, QUERN_WRITE};
    quern_system_def count = system_on("count", count_terms, 1);
    count.resources = &count_access;
    count.resource_count = 1;
    check(quern_schedule_add_system(schedule, &count, NULL));

    check(quern_schedule_describe(schedule, as_json ? QUERN_DESCRIBE_JSON : QUERN_DESCRIBE_TEXT,
                                  quern_sink_file(stdout)));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return 0;
}
