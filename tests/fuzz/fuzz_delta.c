/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Applies the bytes as a delta: unchanged, and with a corrected head, so that the code behind the checksum is reached.
 * The world must stay valid, and damaged bytes must change nothing. */

#include "core/history/history_internal.h"
#include "tests/fuzz/fuzz.h"

#include <quern/enabled.h>
#include <quern/name.h>
#include <quern/relation.h>

typedef struct place {
    float x, y;
} place;

typedef struct aim {
    quern_entity at;
    quern_entity last[2];
    int32_t power;
} aim;

typedef struct types {
    quern_component place, aim, tag;
    quern_relation parent, owner, likes;
    quern_resource clock;
} types;

static quern_world *open_world(types *it)
{
    quern_world *world;
    quern_entity first, entity;
    must(quern_world_create(NULL, &world));
    must(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(place), .fields = QUERN_FIELDS(place, x, y), .can_disable = true},
        &it->place));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &it->aim, aim, at, last, power));
    must(quern_component_register(world, &(quern_component_def){.name = "tag"}, &it->tag));
    it->parent = quern_world_parent(world);
    (void)quern_world_disabled_tag(world);
    must(quern_relation_register(
        world, &(quern_relation_def){.name = "owner", .on_target_destroyed = QUERN_TARGET_UNRELATES},
        &it->owner));
    must(quern_relation_register(
        world,
        &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        &it->likes));
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &it->clock, aim, at, last, power));
    const quern_component components[] = {it->place, it->aim, it->tag};
    must(quern_entity_create_with(world, components, NULL, 3, &first));
    for (uint32_t i = 0; i < 5; i++)
        must(quern_entity_create_with(world, components, NULL, 1 + i % 3, &entity));
    must(quern_entity_relate(world, entity, it->parent, first));
    must(quern_entity_relate(world, entity, it->owner, first));
    must(quern_entity_relate(world, entity, it->likes, first));
    must(quern_entity_set_name(world, entity, "child"));
    return world;
}

static void play(const void *bytes, size_t size)
{
    types it;
    quern_delta_applier *applier;
    quern_world *world = open_world(&it);
    must(quern_delta_applier_create(world, &applier));
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t hash = quern_world_hash(world);
        const quern_result result = quern_delta_apply(applier, quern_source_bytes(bytes, size));
        if (result != QUERN_OK && result != QUERN_ERROR_INVALID_ARGUMENT)
            require(quern_world_hash(world) == hash);
        must(quern_world_validate(world));
    }
    quern_delta_applier_destroy(applier);
    quern_world_destroy(world);
}

/* Corrects size and checksum in the head. */
static void reseal(char *bytes, size_t size)
{
    quern__delta_head head;
    if (size < sizeof head) return;
    memcpy(&head, bytes, sizeof head);
    head.bytes = size - sizeof head;
    head.checksum = quern__delta_checksum(&head, bytes + sizeof head);
    memcpy(bytes, &head, sizeof head);
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
