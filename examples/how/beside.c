/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on libraries beside Quern, and on several worlds at once, as one program. A few functions
 * stand for the libraries. */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Place {
    float x, y;
} Place;

/* --------------------------------------------------------------- in place of a library for physics */

enum { BODY_COUNT = 16 };

typedef struct Physics {
    struct {
        Place place;
        float speed;
        bool is_used;
    } bodies[BODY_COUNT];
} Physics;

static uint32_t physics_add(Physics *physics, Place place)
{
    uint32_t handle = 0;
    while (handle + 1 < BODY_COUNT && physics->bodies[handle].is_used)
        handle++;
    physics->bodies[handle].place = place;
    physics->bodies[handle].speed = 0;
    physics->bodies[handle].is_used = true;
    return handle;
}

static void physics_remove(Physics *physics, uint32_t handle)
{
    physics->bodies[handle].is_used = false;
}

/* Bodies fall, and stop on the ground. */
static void physics_step(Physics *physics, float seconds)
{
    for (int i = 0; i < BODY_COUNT; i++) {
        physics->bodies[i].speed -= 10 * seconds;
        physics->bodies[i].place.y += physics->bodies[i].speed * seconds;
        if (physics->bodies[i].place.y < 0) physics->bodies[i].place.y = 0;
    }
}

static Place physics_place(const Physics *physics, uint32_t handle)
{
    return physics->bodies[handle].place;
}

static int count_bodies(const Physics *physics)
{
    int count = 0;
    for (int i = 0; i < BODY_COUNT; i++)
        count += physics->bodies[i].is_used;
    return count;
}

/* ------------------------------------------------------------------------------------------ physics */

typedef struct Body {
    uint32_t handle; /* of the library */
} Body;

/* A resource, so that the scheduler knows which systems touch the library. */
typedef struct Simulation {
    Physics *physics;
} Simulation;

/* Reacts to entities that get a Body. */
QUERN_SYSTEM(make_bodies, (Body, body), (const Place, place))
{
    const Simulation *simulation = QUERN_RESOURCE(context, Simulation);
    QUERN_ROWS(i) body[i].handle = physics_add(simulation->physics, place[i]);
}

/* Reacts to entities that are destroyed, or lose their Body. */
QUERN_SYSTEM(free_bodies, (const Body, body))
{
    const Simulation *simulation = QUERN_RESOURCE(context, Simulation);
    QUERN_ROWS(i) physics_remove(simulation->physics, body[i].handle);
}

static void step_physics(quern_context *context)
{
    const Simulation *simulation = QUERN_RESOURCE(context, Simulation);
    physics_step(simulation->physics, (float)quern_context_delta_seconds(context));
}

/* Reads what the step has moved, on all threads. */
QUERN_SYSTEM(read_bodies, (Place, place), (const Body, body))
{
    const Simulation *simulation = QUERN_RESOURCE(context, const Simulation);
    QUERN_ROWS(i) place[i] = physics_place(simulation->physics, body[i].handle);
}

static void add_physics(quern_schedule *schedule, quern_resource simulation)
{
    const quern_system_def step = {
        .name = "step_physics", .begin = step_physics, .resources = {{simulation, QUERN_ACCESS_WRITE}}};
    QUERN_MUST(quern_schedule_add_system(schedule, &step, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, read_bodies, .resources = {{simulation, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, make_bodies, .reacts_to = QUERN_REACT_ADDED,
                                .resources = {{simulation, QUERN_ACCESS_WRITE}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, free_bodies, .reacts_to = QUERN_REACT_REMOVED,
                                .resources = {{simulation, QUERN_ACCESS_WRITE}}));
}

static void try_physics(void)
{
    Physics physics = {0};
    quern_world *world;
    quern_schedule *schedule;
    quern_resource simulation;
    quern_entity crate, barrel;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &simulation, Simulation));
    ((Simulation *)quern_resource_get(world, simulation))->physics = &physics;
    add_physics(schedule, simulation);
    QUERN_MUST(QUERN_CREATE(world, &crate, QUERN_VALUE(Place, 1, 5), QUERN_VALUE(Body, 0)));
    QUERN_MUST(QUERN_CREATE(world, &barrel, QUERN_VALUE(Place, 2, 9), QUERN_VALUE(Body, 0)));
    for (int frame = 0; frame < 32; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 32));
    printf("the crate is at %g, the barrel at %.1f\n", (double)QUERN_GET(world, crate, Place)->y,
           (double)QUERN_GET(world, barrel, Place)->y);
    QUERN_MUST(quern_entity_destroy(world, crate));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    printf("bodies: %d\n", count_bodies(&physics));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* -------------------------------------------------------------------------------------------- sound */

typedef struct Noise {
    int32_t sound; /* which one */
    float volume;  /* 0 to 1 */
} Noise;

/* Stands for a call of a library for sound. */
static void play(int sound, float volume)
{
    printf("sound %d, volume %.1f\n", sound, (double)volume);
}

static void fire(quern_context *context)
{
    const quern_event noise = *(const quern_event *)quern_context_user_data(context);
    quern_emitter *noises = quern_context_emitter(context, noise);
    if (quern_context_frame_index(context) == 1) quern_emit(noises, &(Noise){.sound = 7, .volume = 0.5f});
}

/* After each frame, on the thread that owns the device. */
static void play_noises(quern_event_reader *reader)
{
    quern_event_block block;
    while (quern_event_reader_next(reader, &block)) {
        const Noise *noises = block.values;
        for (uint32_t i = 0; i < block.count; i++)
            play(noises[i].sound, noises[i].volume);
    }
}

static void try_sound(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_event noise;
    quern_event_reader *reader;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &noise, Noise, sound, volume));
    const quern_system_def firing = {.name = "fire", .begin = fire, .emits = {noise}, .user_data = &noise};
    QUERN_MUST(quern_schedule_add_system(schedule, &firing, NULL));
    QUERN_MUST(quern_event_reader_create(
        world, &(quern_event_reader_def){.event = noise, .name = "loudspeaker"}, &reader));
    for (int frame = 0; frame < 3; frame++) {
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 60));
        play_noises(reader);
    }
    quern_event_reader_destroy(reader);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* ------------------------------------------------------------------------------------ several worlds */

typedef struct Room {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
} Room;

QUERN_SYSTEM(drift, (Place, place))
{
    QUERN_ROWS(i) place[i].x += (float)quern_context_delta_seconds(context);
}

static void run_rooms(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const Room *rooms = user_data;
    (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        QUERN_MUST(quern_schedule_run(rooms[i].schedule, rooms[i].jobs, 1));
}

/* Runs one frame of each room. The frames share the threads of one pool. */
static void run_all(quern_jobs *jobs, Room *rooms, uint32_t room_count)
{
    QUERN_MUST(quern_jobs_parallel_for(jobs, room_count, 1, run_rooms, rooms));
}

static void try_rooms(void)
{
    enum { ROOM_COUNT = 4 };
    Room rooms[ROOM_COUNT];
    quern_jobs *jobs;
    QUERN_MUST(quern_jobs_create(NULL, &jobs));
    for (int i = 0; i < ROOM_COUNT; i++) {
        rooms[i].jobs = jobs;
        QUERN_MUST(quern_world_create(NULL, &rooms[i].world));
        QUERN_MUST(quern_schedule_create(rooms[i].world, NULL, &rooms[i].schedule));
        QUERN_MUST(QUERN_ADD_SYSTEM(rooms[i].schedule, drift));
        QUERN_MUST(QUERN_CREATE(rooms[i].world, NULL, QUERN_VALUE(Place, (float)i, 0)));
    }
    for (int frame = 0; frame < 10; frame++)
        run_all(jobs, rooms, ROOM_COUNT);
    for (int i = 0; i < ROOM_COUNT; i++) {
        printf("room %d: hash %016llx\n", i, (unsigned long long)quern_world_hash(rooms[i].world));
        quern_schedule_destroy(rooms[i].schedule);
        quern_world_destroy(rooms[i].world);
    }
    quern_jobs_destroy(jobs);
}

int main(void)
{
    try_physics();
    try_sound();
    try_rooms();
}
