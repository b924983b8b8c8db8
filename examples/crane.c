/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Transforms: a truck carries a crane, and the hook of the crane picks up a crate. docs/kit.md explains it. */
#include <quern/kit/transform.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Creates an entity at a position relative to its parent. The parent may be null. */
static quern_entity add_part(quern_world *world, quern_transform *transform, quern_entity parent, float x,
                             float y)
{
    quern_local3 local = quern_local3_identity();
    local.translation[0] = x;
    local.translation[1] = y;
    const quern_component components[] = {quern_transform_local(transform),
                                          quern_transform_world(transform)};
    const void *values[] = {&local, NULL};
    quern_entity part;
    check(quern_entity_create_with(world, components, values, 2, &part));
    check(quern_transform_set_parent(transform, part, parent, false));
    return part;
}

/* Rotates a part about the vertical axis, y. */
static void turn(quern_world *world, quern_transform *transform, quern_entity part, double degrees)
{
    quern_local3 *local = quern_entity_get(world, part, quern_transform_local(transform));
    const double half = degrees * acos(-1) / 360;
    local->rotation[1] = (float)sin(half);
    local->rotation[3] = (float)cos(half);
    check(quern_transform_mark(transform, part));
}

static void show(quern_world *world, quern_transform *transform, quern_entity part, const char *what)
{
    const quern_world3 *placed = quern_entity_get(world, part, quern_transform_world(transform));
    /* + 0.0 turns -0 into 0 */
    printf("%-28s %6.2f %6.2f %6.2f\n", what, round((double)placed->m[0][3] * 100) / 100 + 0.0,
           round((double)placed->m[1][3] * 100) / 100 + 0.0,
           round((double)placed->m[2][3] * 100) / 100 + 0.0);
}

/* Drives trucks along x. Their descendants move with them. */
static void drive(quern_context *context, const quern_view *view)
{
    quern_local3 *locals = QUERN_COLUMN(view, 0, quern_local3);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        locals[i].translation[0] += (float)quern_context_delta_seconds(context);
}

int main(void)
{
    quern_world *world;
    quern_transform *transform;
    quern_schedule *schedule;
    quern_component driving;
    check(quern_world_create(NULL, &world));
    check(quern_component_register(world, &(quern_component_def){.name = "Driving"}, &driving));
    check(quern_transform_register(world, NULL, &transform));
    check(quern_schedule_create(world, NULL, &schedule));
    check(quern_schedule_add_system(
        schedule,
        &(quern_system_def){
            .name = "drive",
            .run = drive,
            .terms = {quern_term_write(quern_transform_local(transform)), quern_term_with(driving)}},
        NULL));
    check(quern_transform_add_systems(transform, schedule, 0));

    const quern_entity truck = add_part(world, transform, quern_entity_null(), 10, 1);
    const quern_entity crane = add_part(world, transform, truck, -2, 2);
    const quern_entity hook = add_part(world, transform, crane, 4, 0);
    const quern_entity crate = add_part(world, transform, quern_entity_null(), 12, 0);
    check(quern_schedule_run(schedule, NULL, 1));
    show(world, transform, hook, "the hook");
    show(world, transform, crate, "the crate on the ground");

    check(quern_transform_set_parent(transform, crate, hook, true));
    check(quern_schedule_run(schedule, NULL, 1));
    show(world, transform, crate, "hung on the hook");

    turn(world, transform, crane, 90);
    check(quern_schedule_run(schedule, NULL, 1));
    show(world, transform, crate, "when the crane has turned");

    check(quern_entity_add(world, truck, driving, NULL));
    check(quern_schedule_run(schedule, NULL, 5));
    show(world, transform, crate, "when the truck has driven");

    quern_schedule_destroy(schedule);
    quern_transform_release(transform);
    quern_world_destroy(world);
    return 0;
}
