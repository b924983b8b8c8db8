/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_RESTART_SCENE_H
#define QUERN_TESTS_RESTART_SCENE_H

/* A world with a schedule of which every part keeps something from one frame to the next: a fixed step, intervals,
 * events that wait for slow readers, reactions with pending rows, change filters by chunk and by row, a target term
 * and a disabled system. Everything that systems see is mixed into resources, which are part of the world's hash. */

#include <quern/event.h>
#include <quern/relation.h>
#include <quern/schedule.h>

enum { RESTART_COUNTERS = 8 };

typedef struct restart_unit {
    uint64_t number, sum;
    quern_entity friend;
} restart_unit;

typedef struct restart_hit {
    quern_entity entity;
    uint64_t amount;
} restart_hit;

typedef struct restart_scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_component unit, heat, small;
    quern_relation owner;
    quern_event hit, tick;
    quern_event_reader *outside; /* of code between frames */
    quern_resource counters[RESTART_COUNTERS];
    quern_system shoot, at_target, slow;
    quern_query *all;
} restart_scene;

/* Creates the world and the schedule, without entities. allocator may be NULL. */
void restart_open(restart_scene *it, const quern_allocator *allocator);
void restart_fill(const restart_scene *it, uint32_t count);
void restart_close(restart_scene *it);

/* What code between frames does before a frame: it changes entities, emits and reads events, and changes the target
 * of a system. The result depends on the world and the number of the frame. */
void restart_disturb(restart_scene *it, uint64_t frame);

quern_result restart_run(restart_scene *it, quern_jobs *jobs);

/* Saves the world with its schedule. The caller releases the bytes. */
quern_byte_buffer restart_save(const restart_scene *it);
quern_result restart_load(const restart_scene *it, const void *bytes, size_t size_bytes);

#endif
