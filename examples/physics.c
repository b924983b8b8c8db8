/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Balls that fall through pegs, by the physics of Chipmunk2D. Hooks make and free the body of each ball, an exclusive
 * system steps the physics, and all threads write the places back to the entities. Without a window: the program prints
 * counts and a hash, which is the same at any number of threads. `physics [FRAMES [THREADS]]`. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <chipmunk/chipmunk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BALLS_PER_FRAME = 3, PEG_ROWS = 12, PEGS_PER_ROW = 16 };

typedef struct Place {
    float x, y, angle;
} Place;

/* A ball has a body in the physics as long as it has this component. */
typedef struct Ball {
    float radius;
} Ball;

typedef struct Body {
    cpBody *body; /* NULL if the entity has none */
    cpShape *shape;
} Body;

typedef struct Physics {
    cpSpace *space;
    cpShape *pegs[PEG_ROWS][PEGS_PER_ROW];
    /* By index of the entity. Addresses in the component would differ from run to run, in hashes and archives too. */
    Body *bodies;
    uint32_t capacity, made_count, freed_count;
    quern_component place; /* the hook reads it */
} Physics;

/* -------------------------------------------------------------------------------------------- hooks */

/* Returns the bodies of an entity. A hook cannot fail, so without memory the program ends. */
static Body *body_of(Physics *physics, quern_entity entity)
{
    const uint32_t index = quern_entity_index(entity), old_capacity = physics->capacity;
    if (index < old_capacity) return &physics->bodies[index];
    physics->capacity = 2 * index + 256;
    physics->bodies = realloc(physics->bodies, physics->capacity * sizeof(Body));
    if (physics->bodies == NULL) abort();
    memset(physics->bodies + old_capacity, 0, (physics->capacity - old_capacity) * sizeof(Body));
    return &physics->bodies[index];
}

/* on_add: hooks run one after another, in the same order at any number of threads, and may read the world. */
static void make_body(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    Physics *physics = user_data;
    const Ball *ball = value;
    const Place *place = quern_entity_get(world, entity, physics->place);
    const cpFloat radius = (cpFloat)ball->radius, mass = radius * radius;
    cpBody *body =
        cpSpaceAddBody(physics->space, cpBodyNew(mass, cpMomentForCircle(mass, 0, radius, cpvzero)));
    cpBodySetPosition(body, cpv((cpFloat)place->x, (cpFloat)place->y));
    cpShape *shape = cpSpaceAddShape(physics->space, cpCircleShapeNew(body, radius, cpvzero));
    cpShapeSetElasticity(shape, 0.5);
    cpShapeSetFriction(shape, 0.5);
    *body_of(physics, entity) = (Body){body, shape};
    physics->made_count++;
}

/* on_remove: the ball is destroyed, or loses the component; destroying the world calls it for all that are left. */
static void free_body(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    (void)world, (void)value;
    Physics *physics = user_data;
    Body *body = body_of(physics, entity);
    cpSpaceRemoveShape(physics->space, body->shape);
    cpSpaceRemoveBody(physics->space, body->body);
    cpShapeFree(body->shape);
    cpBodyFree(body->body);
    *body = (Body){NULL, NULL};
    physics->freed_count++;
}

/* ------------------------------------------------------------------------------------------ systems */

/* Drops balls by commands; the sync point at the end of the phase creates them, and calls the hook for each. */
static void drop(quern_context *context, const quern_view *view)
{
    (void)view;
    for (uint64_t i = 0; i < BALLS_PER_FRAME; i++) {
        const uint64_t random = quern_random(quern_context_frame_index(context), i);
        QUERN_MUST(QUERN_CREATE(
            quern_context_commands(context), NULL,
            QUERN_VALUE(Place, (float)PEGS_PER_ROW * quern_random_unit(random), PEG_ROWS + 3, 0),
            QUERN_VALUE(Ball, 0.2f + 0.1f * quern_random_signed(random))));
    }
}

/* Exclusive: nothing else runs meanwhile, so no system reads bodies that move. */
static void step(quern_context *context, const quern_view *view)
{
    (void)view;
    const Physics *physics = quern_context_user_data(context);
    cpSpaceStep(physics->space, quern_context_delta_seconds(context));
}

/* On all threads: each view reads the bodies of its own balls, which nothing moves in this phase. */
QUERN_SYSTEM(write_back, (Place, place), (const Ball, ball))
{
    const Physics *physics = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        const cpBody *body = physics->bodies[quern_entity_index(view->entities[i])].body;
        const cpVect at = cpBodyGetPosition(body);
        place[i] = (Place){(float)at.x, (float)at.y, (float)cpBodyGetAngle(body)};
    }
}

/* What has fallen through is destroyed, and so is its body. */
QUERN_SYSTEM(lose, (const Place, place))
{
    QUERN_ROWS(i)
    {
        if (place[i].y < -2)
            QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* ------------------------------------------------------------------------------------------- set-up */

static void add_pegs(Physics *physics)
{
    cpBody *ground = cpSpaceGetStaticBody(physics->space);
    for (int row = 0; row < PEG_ROWS; row++) {
        for (int i = 0; i < PEGS_PER_ROW; i++) {
            cpShape *peg = cpCircleShapeNew(ground, 0.15, cpv(i + 0.5 * (row % 2), row));
            cpShapeSetElasticity(peg, 0.5);
            physics->pegs[row][i] = cpSpaceAddShape(physics->space, peg);
        }
    }
}

/* The bodies of balls are gone with the world. */
static void close_physics(Physics *physics)
{
    for (int i = 0; i < PEG_ROWS * PEGS_PER_ROW; i++) {
        cpShape *peg = physics->pegs[i / PEGS_PER_ROW][i % PEGS_PER_ROW];
        cpSpaceRemoveShape(physics->space, peg);
        cpShapeFree(peg);
    }
    cpSpaceFree(physics->space);
    free(physics->bodies);
}

static void register_types(quern_world *world, Physics *physics)
{
    quern_component ball;
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y, angle));
    physics->place = QUERN_ID(world, Place);
    const quern_component_def def = {
        QUERN_TYPE(Ball), .fields = QUERN_FIELDS(Ball, radius), .required = {physics->place},
        .entity_hooks = {.on_add = make_body, .on_remove = free_body, .user_data = physics}};
    QUERN_MUST(quern_component_register(world, &def, &ball));
}

int main(int argc, char **argv)
{
    const int frame_count = argc > 1 ? atoi(argv[1]) : 600;
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    Physics physics = {.space = cpSpaceNew()};
    cpSpaceSetGravity(physics.space, cpv(0, -10));
    add_pegs(&physics);
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = argc > 2 ? (uint32_t)atoi(argv[2]) : 0},
                                 &jobs));
    register_types(world, &physics);
    const quern_schedule_def def = {.phases = {"drop", "physics", "after"}, .user_data = &physics};
    QUERN_MUST(quern_schedule_create(world, &def, &schedule));
    const quern_system_def drops = {.name = "drop", .run = drop};
    const quern_system_def steps = {
        .name = "step", .phase = 1, .run = step, .flags = QUERN_SYSTEM_EXCLUSIVE};
    QUERN_MUST(quern_schedule_add_system(schedule, &drops, NULL));
    QUERN_MUST(quern_schedule_add_system(schedule, &steps, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, write_back, .phase = 2));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, lose, .phase = 2));
    for (int frame = 0; frame < frame_count; frame++)
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 60));
    const unsigned long long hash = quern_world_hash(world);
    printf("%d frames: %u balls, %u gone, hash %016llx\n", frame_count,
           physics.made_count - physics.freed_count, physics.freed_count, hash);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world); /* calls on_remove for all balls that are left */
    printf("%u bodies made, %u freed\n", physics.made_count, physics.freed_count);
    quern_jobs_destroy(jobs);
    close_physics(&physics);
    return EXIT_SUCCESS;
}
