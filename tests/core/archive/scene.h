/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SCENE_H
#define QUERN_TESTS_SCENE_H

/* A small world with all that an archive knows: plain and described components, tags, relations with levels
 * and without, names, components that are disabled, entities that are off, slots that are free, instances
 * of a prefab, handles of the living and the dead in fields, resources. */

#include <quern/archive.h>
#include <quern/relation.h>

typedef struct scene_place {
    float x, y;
} scene_place;

typedef struct scene_health {
    int32_t points;
    uint16_t armour;
    bool is_poisoned;
} scene_health;

typedef struct scene_aim {
    quern_entity at;
    quern_entity last[2];
    double range;
} scene_aim;

typedef struct scene_clock {
    uint64_t ticks;
    quern_entity focus;
    void *pointer; /* not described */
} scene_clock;

typedef struct scene {
    quern_world *world;
    quern_component place, health, aim, raw, tag, shield;
    quern_relation parent, owner;
    quern_resource clock;
} scene;

/* A world with all types registered, and nobody in it. allocator may be NULL. */
void scene_open(scene *it, const quern_allocator *allocator);

/* Entities, some dozens; with more, so many of one kind besides. */
void scene_fill(const scene *it, uint32_t more);

void scene_close(scene *it);

/* Saves the world; the memory is to be released. */
quern_byte_buffer scene_save(const scene *it);

quern_result scene_load(const scene *it, const quern_byte_buffer *memory, const quern_load_def *def,
                        quern_load_report *report);

#endif
