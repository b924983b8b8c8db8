/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_COMMANDS_H
#define QUERN_BENCH_COMMANDS_H

/* What the workloads with commands have in common. The control writes its commands into an array and applies them
 * one after the other. It uses one thread, also in cases with more. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

static const Health added_health = {.points = 100, .maximum = 100};

/* --------------------------------------------------------------------------------------------- raw */

typedef enum raw_kind {
    RAW_SET_HEALTH,
    RAW_REMOVE_HEALTH,
    RAW_SET_POSITION,
    RAW_REPLACE,
    RAW_DESTROY
} raw_kind;

typedef struct raw_command {
    raw_entity entity;
    raw_kind kind;
    uint32_t seed; /* seed of the new entity, for RAW_REPLACE */
    union {
        Health health;
        Position position;
    };
} raw_command;

typedef struct raw_scene {
    raw_store store;
    raw_command *commands;
    uint32_t count, capacity;
    uint32_t frame_index;
} raw_scene;

/* Creates a scene with entities with Position and Velocity. */
void *raw_scene_open(const bench_case *scene);
void raw_scene_close(void *state);

static inline raw_command *raw_write(raw_scene *raw, raw_entity entity, raw_kind kind)
{
    if (raw->count == raw->capacity) bench_die("raw: more commands are recorded than there is room for");
    raw_command *command = &raw->commands[raw->count++];
    command->entity = entity;
    command->kind = kind;
    return command;
}

/* Applies all commands in order. */
void raw_apply(raw_scene *raw);

uint64_t raw_scene_checksum(void *state);

/* ------------------------------------------------------------------------------------------- quern */

typedef struct command_scene {
    bench_world bench;
    quern_schedule *schedule;
    quern_jobs *jobs;
    uint32_t frame_index;
    bool refuses_memory; /* whether `allocate` fails, for record_add */
    uint64_t sum;        /* sum over the added components, for react_add */
    uint32_t entity_count;
} command_scene;

/* Creates entities with Position and Velocity, and the jobs. */
void command_scene_fill(command_scene *scene, const bench_case *size);

/* Creates a schedule with two phases, so that each half of a pair has a sync point. */
void command_scene_open_schedule(command_scene *scene);

/* Creates a world with entities, and a schedule. */
command_scene *command_scene_open(const bench_case *size);

static inline quern_system_def command_system(const char *name, quern_view_callback *run, quern_term term,
                                              command_scene *scene)
{
    return (quern_system_def){.name = name, .run = run, .terms = {term}, .user_data = scene};
}

void command_scene_enter(void *state);
void command_scene_run(void *state, uint32_t frame_count);
quern_result command_scene_capture(void *state, struct quern_frame_capture *capture);
uint64_t command_scene_checksum(void *state);
void command_scene_close(void *state);

#endif
