/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/sched/replay/scene.h"

#include <string.h>

enum { HUGE_BYTES = 12000, RAW_BYTES = 5 };

/* ----------------------------------------------------------------------------------------- systems */

static void move(quern_context *context, const quern_view *view)
{
    const scene_types *types = quern_context_user_data(context);
    const input *in = quern_context_resource(context, types->input);
    vec3 *places = QUERN_COLUMN(view, 0, vec3);
    const float seconds = (float)quern_context_delta_seconds(context);
    for (uint32_t i = 0; i < view->count; i++) {
        places[i].x += in->push * seconds;
        places[i].y += places[i].x;
    }
}

static void spawn(quern_context *context, const quern_view *view)
{
    const scene_types *types = quern_context_user_data(context);
    const input *in = quern_context_resource(context, types->input);
    quern_commands *commands = quern_context_commands(context);
    const quern_component components[] = {types->place, types->tag};
    for (int32_t i = 0; i < in->spawn_count; i++)
        quern_commands_create_many(commands, components, NULL, 2, 1, NULL);
    if (!quern_entity_is_null(in->victim)) quern_commands_destroy(commands, in->victim);
    if (!in->asks_too_much || types->never_asks) return;
    quern_entity entity;
    quern_commands_create_many(commands, &types->huge, NULL, 1, 1, &entity);
    const quern_component second = {types->huge.bits + 1}; /* registered right after `huge` */
    quern_commands_add(commands, entity, second, NULL);
}

static void count(quern_context *context, const quern_view *view)
{
    const scene_types *types = quern_context_user_data(context);
    const unsigned char *raw = quern_context_resource(context, types->raw);
    score *sum = quern_context_resource_write(context, types->score);
    for (uint32_t i = 0; i < RAW_BYTES; i++)
        sum->points = (int64_t)((uint64_t)sum->points * 3 + raw[i]);
}

static void add_systems(scene *it)
{
    const quern_schedule_def def = {.phases = {"act", "count"}};
    must(quern_schedule_create(it->world, &def, &it->schedule));
    must(quern_schedule_add_system(it->schedule,
                                   &(quern_system_def){.name = "move",
                                                       .run = move,
                                                       .terms = {quern_term_write(it->place)},
                                                       .resources = {{it->input, QUERN_ACCESS_READ}},
                                                       .user_data = &it->types},
                                   NULL));
    must(quern_schedule_add_system(it->schedule,
                                   &(quern_system_def){.name = "spawn",
                                                       .run = spawn,
                                                       .resources = {{it->input, QUERN_ACCESS_READ}},
                                                       .user_data = &it->types},
                                   NULL));
    must(quern_schedule_add_system(
        it->schedule,
        &(quern_system_def){.name = "count",
                            .phase = 1,
                            .run = count,
                            .resources = {{it->raw, QUERN_ACCESS_READ}, {it->score, QUERN_ACCESS_WRITE}},
                            .user_data = &it->types},
        NULL));
}

/* ------------------------------------------------------------------------------------------- world */

static void register_types(scene *it, const scene_change *change)
{
    const quern_component_def with_health = {.name = change->health_is_renamed ? "wounds" : "health",
                                             .size_bytes = change->health_is_wide ? 8 : 4,
                                             .alignment_bytes = 4,
                                             .fields = {{.name = "points", .type = QUERN_FIELD_I32}},
                                             .can_disable = true};
    quern_resource_def with_input = {
        QUERN_TYPE(input), .fields = QUERN_FIELDS(input, push, spawn_count, victim, asks_too_much)};
    if (change->input_field_is_renamed) with_input.fields[0].name = "shove";
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->place, vec3, x, y, z));
    must(quern_component_register(it->world, &with_health, &it->health));
    it->tag = setup_tag(it->world, "tag");
    it->types.huge = setup_component(it->world, "huge", HUGE_BYTES, 4);
    make_component(it->world, .name = "huge too", .size_bytes = HUGE_BYTES, .alignment_bytes = 4,
                   .required = {change->huge_too_requires_tag ? it->tag : it->types.huge});
    it->leader = make_relation(it->world, .name = "leader", .ordered = true);
    it->likes = make_relation(it->world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                              .many = true);
    must(quern_resource_register(it->world, &with_input, &it->input));
    must(QUERN_RESOURCE_REGISTER_FIELDS(it->world, &it->score, score, points));
    if (!change->raw_is_absent) it->raw = make_resource(it->world, .name = "raw", .size_bytes = RAW_BYTES);
    it->types.place = it->place;
    it->types.health = it->health;
    it->types.tag = it->tag;
    it->types.input = it->input;
    if (change->raw_is_absent) it->raw = it->input;
    it->types.raw = it->raw;
    it->types.score = it->score;
}

static void populate(scene *it)
{
    for (uint32_t i = 0; i < SCENE_RICH; i++) {
        const health value[2] = {{(int32_t)i}}; /* large enough for the wide variant, too */
        const vec3 place = {.x = (float)i, .y = 1};
        const bool moves = i < SCENE_MOVING;
        const void *values[] = {moves ? (const void *)&place : (const void *)value};
        must(quern_entity_create_with(it->world, moves ? &it->place : &it->health, values, 1,
                                      &it->entities[i]));
    }
    must(quern_entity_relate(it->world, it->entities[2], it->likes, it->entities[0]));
    must(quern_entity_relate(it->world, it->entities[SCENE_LED], it->leader, it->entities[SCENE_LEADER]));
    must(quern_entity_relate(it->world, it->entities[SCENE_LED_TOO], it->leader,
                             it->entities[SCENE_LEADER]));
    for (uint32_t i = SCENE_RICH; i < SCENE_ENTITIES; i++)
        must(quern_entity_create_with(
            it->world,
            (quern_component[]){it->place, it->health, it->tag, quern_relation_component(it->leader)},
            (const void *[]){&(vec3){.y = (float)i}, (const health[2]){{(int32_t)i}}, NULL,
                             &it->entities[SCENE_LEADER]},
            4, &it->entities[i]));
    must(quern_entity_set_name(it->world, it->entities[SCENE_STILL], "still"));
}

void replay_scene_open_changed(scene *it, const quern_allocator *allocator, const scene_change *change)
{
    memset(it, 0, sizeof *it);
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_world_create(&def, &it->world));
    register_types(it, change);
    populate(it);
    add_systems(it);
}

void replay_scene_open(scene *it, const quern_allocator *allocator)
{
    replay_scene_open_changed(it, allocator, &(scene_change){.health_is_wide = false});
}

void replay_scene_close(scene *it)
{
    quern_schedule_destroy(it->schedule);
    quern_world_destroy(it->world);
}

void replay_scene_set_input(scene *it, uint32_t frame)
{
    input *in = quern_resource_get(it->world, it->input);
    unsigned char *raw = quern_resource_get(it->world, it->raw);
    *in = (input){.push = (float)frame * 0.5f - 1, .spawn_count = (int32_t)((frame + 1) % 3)};
    if (frame % 4 == 1) in->victim = it->entities[frame];
    for (uint32_t i = 0; i < RAW_BYTES; i++)
        raw[i] = (unsigned char)(frame * 7 + i);
}
