/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/scene.h"

#include "tests/support/setup.h"

#include <stdio.h>

static void register_types(scene *it)
{
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->place, scene_place, x, y));
    it->health = make_component(it->world, QUERN_TYPE(scene_health),
                                .fields = QUERN_FIELDS(scene_health, points, armour, is_poisoned),
                                .can_disable = true);
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->aim, scene_aim, at, last, range));
    it->raw = setup_component(it->world, "raw", 12, 4);
    it->tag = setup_tag(it->world, "tag");
    it->shield = make_component(it->world, .name = "shield", .can_disable = true);
    it->parent = quern_world_parent(it->world);
    it->owner = make_relation(it->world, .name = "owner", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    it->likes = make_relation(it->world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                              .many = true);
    it->clock = make_resource(it->world, QUERN_TYPE(scene_clock),
                              .fields = QUERN_FIELDS(scene_clock, ticks, focus));
    cr_assert_neq(quern_world_disabled_tag(it->world).bits, 0);
}

void scene_open(scene *it, const quern_allocator *allocator)
{
    *it = (scene){0};
    it->world = make_world(.allocator = allocator != NULL ? *allocator : (quern_allocator){0});
    register_types(it);
}

static quern_entity create(const scene *it, uint32_t i)
{
    const scene_place place = {(float)i, -(float)i};
    const scene_health health = {
        .points = (int32_t)i - 20, .armour = (uint16_t)(i * 7), .is_poisoned = i % 3 == 0};
    const uint32_t raw[3] = {i, i * i, ~i};
    const quern_component all[] = {it->place, it->health, it->raw, it->tag};
    const void *const values[] = {&place, &health, raw, NULL};
    quern_entity entity;
    must(quern_entity_create_with(it->world, all, values, 1 + i % 4, &entity));
    return entity;
}

static void relate(const scene *it, const quern_entity *entities, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        must(quern_entity_relate(it->world, entities[i], it->parent, entities[i < 24 ? i - 1 : i / 3]));
    for (uint32_t i = 2; i < count; i += 3)
        must(quern_entity_relate(it->world, entities[i], it->owner, entities[(i * 5 + 1) % count]));
    must(quern_entity_unrelate(it->world, entities[count - 1], it->parent));
    for (uint32_t i = 0; i < count; i += 4)
        for (uint32_t k = 1; k <= i / 8; k++)
            must(quern_entity_relate(it->world, entities[i], it->likes, entities[(i + k * 7) % count]));
    /* changes the order of siblings */
    must(quern_entity_move_before(it->world, entities[26], it->parent,
                                  quern_entity_first_source(it->world, entities[8], it->parent)));
}

static void aim(const scene *it, const quern_entity *entities, uint32_t count, quern_entity dead)
{
    for (uint32_t i = 0; i < count; i += 4) {
        const scene_aim value = {.at = entities[(i + 9) % count],
                                 .last = {i % 8 == 0 ? dead : entities[i], quern_entity_null()},
                                 .range = i * 0.25};
        must(quern_entity_add(it->world, entities[i], it->aim, &value));
    }
}

static void name(const scene *it, const quern_entity *entities, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 5) {
        char text[32];
        snprintf(text, sizeof text, "number %u", i);
        must(quern_entity_set_name(it->world, entities[i], text));
    }
    must(quern_entity_set_name(it->world, entities[1], "same"));
    must(quern_entity_set_name(it->world, entities[2], "same"));
}

static void switch_off(const scene *it, const quern_entity *entities, uint32_t count)
{
    for (uint32_t i = 1; i < count; i += 4)
        must(quern_entity_set_component_enabled(it->world, entities[i], it->health, false));
    must(quern_entity_add(it->world, entities[3], it->shield, NULL));
    must(quern_entity_set_component_enabled(it->world, entities[3], it->shield, false));
    must(quern_entity_set_enabled(it->world, entities[20], false));
    must(quern_entity_set_enabled(it->world, entities[30], false));
}

static void spawn(const scene *it, quern_entity root)
{
    quern_prefab prefab;
    must(quern_prefab_capture(it->world, root, &prefab));
    must(quern_prefab_spawn_many(it->world, prefab, 3, NULL, NULL, NULL));
}

static void fill_more(const scene *it, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        create(it, i);
}

void scene_fill(const scene *it, uint32_t more)
{
    enum { COUNT = 48 };
    quern_entity entities[COUNT], gone[6];
    for (uint32_t i = 0; i < 6; i++)
        gone[i] = create(it, i);
    for (uint32_t i = 0; i < COUNT; i++)
        entities[i] = create(it, i);
    for (uint32_t i = 0; i < 5; i++)
        must(quern_entity_destroy(it->world, gone[(i * 5 + 1) % 6]));
    relate(it, entities, COUNT);
    aim(it, entities, COUNT, gone[1]);
    name(it, entities, COUNT);
    switch_off(it, entities, COUNT);
    spawn(it, entities[22]);
    fill_more(it, more);
    must(quern_entity_destroy(it->world, entities[47]));
    scene_clock *clock = quern_resource_get(it->world, it->clock);
    *clock = (scene_clock){.ticks = 77, .focus = entities[5], .pointer = clock};
    assert_valid(it->world);
}

void scene_close(scene *it)
{
    quern_world_destroy(it->world);
    *it = (scene){0};
}

quern_byte_buffer scene_save(const scene *it)
{
    quern_byte_buffer memory = {0};
    must(quern_world_save(it->world, quern_sink_bytes(&memory), NULL));
    return memory;
}

quern_result scene_load(const scene *it, const quern_byte_buffer *memory, const quern_load_def *def,
                        quern_load_report *report)
{
    return quern_world_load(it->world, quern_source_bytes(memory->bytes, memory->size_bytes), def, report);
}
