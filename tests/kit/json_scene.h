/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_KIT_JSON_SCENE_H
#define QUERN_TESTS_KIT_JSON_SCENE_H

/* Worlds that are written as JSON and read back, for the tests of the JSON library. */

#include "tests/support/setup.h"

#include <stdlib.h>

typedef enum Mood { MOOD_CALM, MOOD_ANGRY } Mood;

static const quern_named_value moods[] = {{"calm", MOOD_CALM}, {"angry", MOOD_ANGRY}, {NULL, 0}};

typedef struct Thing {
    int64_t i64;
    uint64_t u64;
    double f64;
    float f32, matrix[2];
    struct {
        struct {
            float x, y;
        } at;
        int8_t turn;
    } place;
    bool flags[2];
    Mood mood;
    char title[8];
    quern_entity friend, others[2];
    int32_t serial;
    float speed;
} Thing;

/* A component whose values own memory, and the number of live values. */
typedef struct Owner {
    uint64_t points;
    int *owned;
} Owner;

static int owner_count;

static inline void owner_construct(void *values, uint32_t count, void *user_data)
{
    Owner *owners = values;
    for (uint32_t i = 0; i < count; i++) {
        owners[i] = (Owner){.points = 5, .owned = malloc(sizeof(int))};
        *owners[i].owned = 42;
        owner_count++;
    }
}

static inline void owner_copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    const Owner *from = sources;
    Owner *to = targets;
    owner_construct(targets, count, user_data);
    for (uint32_t i = 0; i < count; i++) {
        to[i].points = from[i].points;
        *to[i].owned = *from[i].owned;
    }
}

static inline void owner_destroy(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        free(((Owner *)values)[i].owned);
    owner_count -= (int)count;
}

/* The types that the tests register in each world. */
typedef struct scene {
    quern_world *world;
    quern_component thing, blob, tag, toggle, owner, handed;
    quern_relation parent, likes, knows; /* the last one with several targets per source */
    quern_resource rules;
} scene;

static inline scene open_scene(const quern_allocator *allocator)
{
    scene at;
    quern_world_def world_def = {.empty_archetype_checks_per_sync = 0};
    if (allocator != NULL) world_def.allocator = *allocator;
    must(quern_world_create(&world_def, &at.world));
    at.thing = make_component(
        at.world, QUERN_TYPE(Thing),
        .fields = {QUERN_FIELD(Thing, i64), QUERN_FIELD(Thing, u64), QUERN_FIELD(Thing, f64),
                   QUERN_FIELD(Thing, f32), QUERN_FIELD(Thing, matrix), QUERN_FIELD(Thing, place.at.x),
                   QUERN_FIELD(Thing, place.at.y), QUERN_FIELD(Thing, place.turn),
                   QUERN_FIELD(Thing, flags), QUERN_FIELD_WITH(Thing, mood, .values = moods),
                   QUERN_TEXT(Thing, title), QUERN_FIELD(Thing, friend), QUERN_FIELD(Thing, others),
                   QUERN_FIELD_WITH(Thing, serial, .is_read_only = true),
                   QUERN_FIELD_WITH(Thing, speed, .minimum = 0, .maximum = 10)});
    at.blob = setup_component(at.world, "blob", 5, 1);
    at.tag = setup_tag(at.world, "tag");
    at.toggle = make_component(at.world, .name = "toggle", .size_bytes = 4,
                               .fields = {{"n", QUERN_FIELD_U32, .count = 1}}, .can_disable = true);
    quern_component_def owner_def = {
        QUERN_TYPE(Owner), .fields = {QUERN_FIELD(Owner, points)},
        .hooks = {.construct = owner_construct, .copy = owner_copy, .destroy = owner_destroy}};
    must(quern_component_register(at.world, &owner_def, &at.owner));
    owner_def.name = "Handed";
    owner_def.hooks.copy = NULL;
    must(quern_component_register(at.world, &owner_def, &at.handed));
    at.parent = quern_world_parent(at.world);
    at.likes = make_relation(at.world, .name = "likes");
    at.knows = make_relation(at.world, .name = "knows", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                             .many = true);
    at.rules = make_resource(
        at.world, .name = "rules", .size_bytes = 16,
        .fields = {{"hero", QUERN_FIELD_ENTITY, .count = 1}, {"gravity", QUERN_FIELD_F32, 8, .count = 1}});
    return at;
}

static char *texts[4];

static inline void close_texts(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

#endif
