/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_REPLAY_SCENE_H
#define QUERN_TESTS_REPLAY_SCENE_H

/* A small world whose frames depend on its inputs: entities move, are created and destroyed, and have a leader. */

#include "tests/support/setup.h"

enum {
    SCENE_MOVING = 40,
    SCENE_STILL = 40,
    SCENE_LEADER = 50,
    SCENE_LED,
    SCENE_LED_TOO,
    SCENE_RICH, /* and the next two: entities with a position, health, the tag and a leader */
    SCENE_ENTITIES = SCENE_RICH + 3
};
enum { SCENE_WARM_FRAMES = 4 }; /* later frames without inputs allocate nothing */

typedef struct health {
    int32_t points;
} health;

typedef struct input {
    float push;
    int32_t spawn_count;
    quern_entity victim; /* null: no victim */
    bool asks_too_much;
} input;

typedef struct score {
    int64_t points;
} score;

typedef struct scene_types {
    quern_component place, health, tag, huge;
    quern_resource input, raw, score;
    bool never_asks; /* ignores the request of the input */
} scene_types;

typedef struct scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_component place, health, tag;
    quern_relation leader, likes; /* likes: several targets per source */
    quern_resource input, raw, score;
    quern_entity entities[SCENE_ENTITIES];
    scene_types types;
} scene;

/* Differences in the registration of a world. */
typedef struct scene_change {
    bool health_is_wide, health_is_renamed, huge_too_requires_tag, input_field_is_renamed, raw_is_absent;
} scene_change;

/* Opens a scene, which must not be moved. allocator NULL: the default. */
void replay_scene_open(scene *it, const quern_allocator *allocator);
void replay_scene_open_changed(scene *it, const quern_allocator *allocator, const scene_change *change);
void replay_scene_close(scene *it);

/* Returns the inputs of a frame, which depend on its number alone. */
void replay_scene_set_input(scene *it, uint32_t frame);

#endif
