/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SCENE_H
#define QUERN_TESTS_SCENE_H

/* A small world with everything that an archive can contain: plain and described components, tags,
 * relations with and without levels and with several targets per source, names, disabled components,
 * disabled entities, free slots, instances of a prefab, fields with handles of alive and dead entities, and resources. */

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
    void *pointer; /* has no described field */
} scene_clock;

typedef struct scene {
    quern_world *world;
    quern_component place, health, aim, raw, tag, shield;
    quern_relation parent, owner, likes; /* likes: several targets per source */
    quern_resource clock;
} scene;

/* Creates a world with all types and no entities. allocator may be NULL. */
void scene_open(scene *it, const quern_allocator *allocator);

/* Creates some dozens of entities, and `more` equal ones. */
void scene_fill(const scene *it, uint32_t more);

void scene_close(scene *it);

/* Saves the world. The caller releases the bytes. */
quern_byte_buffer scene_save(const scene *it);

quern_result scene_load(const scene *it, const quern_byte_buffer *memory, const quern_load_def *def,
                        quern_load_report *report);

#endif
