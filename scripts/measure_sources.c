/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* measure_sources CASE COUNT PAD: runs a case three times to warm it, and then COUNT times in `measured`, in which
 * alone measure_sources.py counts what is called. One thread, and no input but the arguments, so that counts repeat.
 * PAD bytes are allocated first: caches with addresses as keys have collisions at some addresses. */

#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTITY_COUNT = 1000, SYSTEM_COUNT = 10 };

typedef struct Position {
    float x, y, z;
} Position;

typedef Position Velocity, Mark;

static quern_world *world;
static quern_schedule *schedule;
static quern_jobs *jobs; /* of one thread */
static quern_component position, velocity, mark;
static quern_relation parent;
static quern_entity entities[ENTITY_COUNT];
static const Mark value = {1, 2, 3};

static void set_value(void)
{
    QUERN_MUST(quern_entity_set(world, entities[0], position, &value));
}

static void get_value(void)
{
    if (quern_entity_get(world, entities[0], position) == NULL) abort();
}

static void add_and_remove(void)
{
    QUERN_MUST(quern_entity_add(world, entities[0], mark, &value));
    QUERN_MUST(quern_entity_remove(world, entities[0], mark));
}

static void create_and_destroy(void)
{
    quern_entity entity;
    QUERN_MUST(quern_entity_create_with(world, (quern_component[]){position, velocity},
                                        (const void *[]){&value, &value}, 2, &entity));
    QUERN_MUST(quern_entity_destroy(world, entity));
}

static void relate_again(void)
{
    QUERN_MUST(quern_entity_relate(world, entities[0], parent, entities[1]));
}

static void run_frame(void)
{
    QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 64));
}

static void add_by_commands(uint32_t count)
{
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < count; i++)
        QUERN_MUST(quern_commands_add(commands, entities[i], mark, &value));
    QUERN_MUST(quern_world_flush(world));
}

static void remove_by_commands(uint32_t count)
{
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < count; i++)
        QUERN_MUST(quern_commands_remove(commands, entities[i], mark));
    QUERN_MUST(quern_world_flush(world));
}

static void add_deferred(void)
{
    add_by_commands(1);
}

static void remove_deferred(void)
{
    remove_by_commands(1);
}

static void sync_1(void)
{
    add_by_commands(1);
    remove_by_commands(1);
}

static void sync_10(void)
{
    add_by_commands(10);
    remove_by_commands(10);
}

static void sync_300(void)
{
    add_by_commands(300);
    remove_by_commands(300);
}

/* `undo` is called after the warm-up, so that the case changes the same again. */
static const struct {
    const char *name;
    void (*run)(void);
    void (*undo)(void);
} cases[] = {
    {"set", set_value, NULL},
    {"get", get_value, NULL},
    {"add_remove", add_and_remove, NULL},
    {"create_destroy", create_and_destroy, NULL},
    {"relate", relate_again, NULL},
    {"frame", run_frame, NULL},
    {"sync_1", sync_1, NULL},
    {"sync_10", sync_10, NULL},
    {"sync_300", sync_300, NULL},
    {"deferred_add", add_deferred, remove_deferred},
};

static void move(quern_context *context, const quern_view *view)
{
    Position *positions = quern_view_write(view, 0);
    const Velocity *velocities = quern_view_read(view, 1);
    const float dt = (float)quern_context_delta_seconds(context);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x += velocities[i].x * dt;
}

static void open_world(void)
{
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &position, Position));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &velocity, Velocity));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &mark, Mark));
    parent = quern_world_parent(world);
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = 1}, &jobs));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    for (int i = 0; i < SYSTEM_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "move%d", i);
        const quern_system_def def = {
            .name = name, .run = move, .terms = {quern_term_write(position), quern_term_read(velocity)}};
        QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
    }
    for (int i = 0; i < ENTITY_COUNT; i++)
        QUERN_MUST(quern_entity_create_with(world, (quern_component[]){position, velocity},
                                            (const void *[]){&value, &value}, 2, &entities[i]));
}

__attribute__((noinline)) static void measured(void (*run)(void), unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        run();
}

int main(int argument_count, char **arguments)
{
    for (size_t i = 0; argument_count == 4 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(arguments[1], cases[i].name) != 0) continue;
        void *pad = malloc(strtoul(arguments[3], NULL, 10));
        open_world();
        for (int round = 0; round < 3; round++) {
            cases[i].run();
            if (cases[i].undo != NULL) cases[i].undo();
        }
        measured(cases[i].run, strtoul(arguments[2], NULL, 10));
        quern_schedule_destroy(schedule);
        quern_jobs_destroy(jobs);
        quern_world_destroy(world);
        free(pad);
        return 0;
    }
    fprintf(stderr, "usage: measure_sources CASE COUNT PAD\n");
    return 2;
}
