/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Loads the bytes as an archive: unchanged, and with corrected checksums, so that the code behind the
 * checksums is reached; into a world that learns its types from them, into an empty world and into one with
 * entities. Worlds must stay valid, and a failed load must change nothing. A loaded world is saved and loaded
 * again and must be the same. */

#include "tests/core/archive/reseal.h"
#include "tests/fuzz/fuzz.h"

#include <quern/archive.h>
#include <quern/enabled.h>
#include <quern/name.h>
#include <quern/relation.h>

typedef struct place {
    float x, y;
} place;

typedef struct health {
    int32_t points;
    uint16_t armour;
    bool is_poisoned;
} health;

typedef struct aim {
    quern_entity at;
    quern_entity last[2];
    char title[8];
} aim;

typedef struct types {
    quern_component place, health, aim, raw, tag;
    quern_relation parent, owner, likes;
    quern_resource clock;
} types;

/* old: with the types of an older version, so that loading converts values. */
static quern_world *open_world(types *it, bool old)
{
    quern_world *world;
    const quern_component_def with_health = {.name = "health",
                                             .size_bytes = sizeof(health),
                                             .alignment_bytes = _Alignof(health),
                                             .fields = {{.name = "points",
                                                         .type = old ? QUERN_FIELD_F32 : QUERN_FIELD_I32,
                                                         .offset_bytes = offsetof(health, points)},
                                                        {.name = old ? "armor" : "armour",
                                                         .type = QUERN_FIELD_U16,
                                                         .offset_bytes = offsetof(health, armour)},
                                                        {.name = "is_poisoned",
                                                         .type = old ? QUERN_FIELD_U8 : QUERN_FIELD_BOOL,
                                                         .offset_bytes = offsetof(health, is_poisoned)}},
                                             .can_disable = true};
    const quern_component_def with_aim = {
        .name = "aim",
        .size_bytes = sizeof(aim),
        .alignment_bytes = _Alignof(aim),
        .fields = {QUERN_FIELD(aim, at), QUERN_FIELD(aim, last), QUERN_TEXT(aim, title)}};
    must(quern_world_create(NULL, &world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &it->place, place, x, y));
    must(quern_component_register(world, &with_health, &it->health));
    must(quern_component_register(world, &with_aim, &it->aim));
    must(quern_component_register(
        world, &(quern_component_def){.name = "raw", .size_bytes = 12, .alignment_bytes = 4}, &it->raw));
    must(quern_component_register(world, &(quern_component_def){.name = "tag", .can_disable = true},
                                  &it->tag));
    it->parent = quern_world_parent(world);
    must(quern_relation_register(
        world, &(quern_relation_def){.name = "owner", .on_target_destroyed = QUERN_TARGET_UNRELATES},
        &it->owner));
    must(quern_relation_register(
        world,
        &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        &it->likes));
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &it->clock, aim, at, last));
    return world;
}

/* Two entities of the loading world, which all ids refer to. */
static quern_entity known[2];

static quern_entity entity_of(void *user_data, uint64_t id)
{
    (void)user_data;
    return id % 3 < 2 ? known[id % 3] : quern_entity_null();
}

static void check(quern_world *world, quern_source source, const quern_load_def *def)
{
    const uint64_t hash = quern_world_hash(world);
    const quern_result result = quern_world_load(world, source, def, NULL);
    if (result != QUERN_OK) require(quern_world_hash(world) == hash);
    must(quern_world_validate(world));
}

/* Compares worlds by their hashes, because values without described fields may differ. */
static void check_again(quern_world *world)
{
    types ignored;
    quern_byte_buffer memory = {0};
    must(quern_world_save(world, quern_sink_bytes(&memory), NULL));
    quern_world *other = open_world(&ignored, false);
    must(quern_world_load(other, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    must(quern_world_validate(other));
    require(quern_world_hash(other) == quern_world_hash(world));
    quern_world_destroy(other);
    quern_byte_buffer_release(&memory);
}

/* Loads into a world that learns the types from the archive. */
static void check_bare(quern_source source)
{
    quern_world *world;
    must(quern_world_create(NULL, &world));
    if (quern_world_register_archived(world, source, NULL) == QUERN_OK) check(world, source, NULL);
    must(quern_world_validate(world));
    quern_world_destroy(world);
}

static void play(const void *bytes, size_t size)
{
    static const quern_load_def lenient = {
        .leave_out_missing = true, .drop_taken_names = true, .outside_entity = entity_of};
    const quern_source source = quern_source_bytes(bytes, size);
    types it;
    check_bare(source);
    quern_world *world = open_world(&it, false);
    check(world, source, NULL);
    check_again(world);
    check(world, source, &lenient);
    quern_world_destroy(world);
    world = open_world(&it, true);
    for (uint32_t i = 0; i < 2; i++)
        must(quern_entity_create_with(world, &it.raw, NULL, 1, &known[i]));
    must(quern_entity_relate(world, known[1], it.parent, known[0]));
    must(quern_entity_relate(world, known[1], it.likes, known[0]));
    check(world, source, &lenient);
    check(world, source, &lenient);
    quern_world_destroy(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char nothing[] = "";
    char *copy = fuzz_copy(bytes, size);
    play(size > 0 ? copy : nothing, size);
    reseal(copy, size);
    play(size > 0 ? copy : nothing, size);
    free(copy);
    return 0;
}
