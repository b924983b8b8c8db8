/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads the bytes as the JSON of a world, into a world with an entity. The world must stay valid. A
 * failure must leave the existing entities unchanged. A world that was read is written and read again.
 * Then the same for a prefab: a failure must leave none, and the text of an instance is written and read again. */

#include "tests/fuzz/fuzz.h"

#include "kit/json.h"

#include <quern/name.h>

typedef struct Thing {
    int32_t number;
    float numbers[2];
    uint8_t mood;
    char title[8];
    quern_entity friend;
} Thing;

static const quern_named_value moods[] = {{"calm", 0}, {"angry", 7}, {NULL, 0}};

static quern_world *open_world(void)
{
    quern_world *world;
    quern_component ignored;
    quern_resource rules;
    const quern_component_def thing = {QUERN_TYPE(Thing),
                                       .fields = {QUERN_FIELD(Thing, number), QUERN_FIELD(Thing, numbers),
                                                  QUERN_FIELD_WITH(Thing, mood, .values = moods),
                                                  QUERN_TEXT(Thing, title), QUERN_FIELD(Thing, friend)},
                                       .can_disable = true};
    must(quern_world_create(NULL, &world));
    must(quern_component_register(world, &thing, &ignored));
    must(quern_component_register(world, &(quern_component_def){.name = "raw", .size_bytes = 3}, &ignored));
    must(quern_component_register(world, &(quern_component_def){.name = "tag"}, &ignored));
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &rules, Thing, number, friend));
    return world;
}

static void check_again(const quern_world *world)
{
    quern_text_buffer buffer = {NULL, 0, 0};
    must(quern_json_write_world(world, quern_sink_text(&buffer)));
    const size_t bytes = buffer.length_bytes;
    char *text = malloc(bytes + 1);
    require(text != NULL);
    buffer = (quern_text_buffer){text, bytes + 1, 0};
    must(quern_json_write_world(world, quern_sink_text(&buffer)));
    quern_world *other = open_world();
    must(quern_json_read_world(other, text, bytes, NULL));
    must(quern_world_validate(other));
    require(quern_world_list_entities(other, NULL, 0) == quern_world_list_entities(world, NULL, 0));
    quern_world_destroy(other);
    free(text);
}

static void play(const char *text, size_t size, bool leaves_out_unknown)
{
    const quern_json_options options = {.leaves_out_unknown = leaves_out_unknown};
    quern_world *world = open_world();
    quern_entity entity;
    must(quern_entity_create(world, &entity));
    must(quern_entity_set_name(world, entity, "root"));
    const quern_result result = quern_json_read_world(world, text, size, &options);
    must(quern_world_validate(world));
    require(quern_entity_is_alive(world, entity));
    if (result == QUERN_OK)
        check_again(world);
    else
        require(quern_world_list_entities(world, NULL, 0) == 1);
    quern_world_destroy(world);
}

/* Returns the JSON of an instance of a prefab. */
static char *write_instance(quern_world *world, quern_prefab prefab)
{
    quern_text_buffer buffer = {NULL, 0, 0};
    quern_entity root;
    must(quern_prefab_spawn(world, prefab, NULL, &root));
    must(quern_world_validate(world));
    must(quern_json_write_prefab(world, root, quern_sink_text(&buffer)));
    const size_t bytes = buffer.length_bytes + 1;
    char *text = malloc(bytes);
    require(text != NULL);
    buffer = (quern_text_buffer){text, bytes, 0};
    must(quern_json_write_prefab(world, root, quern_sink_text(&buffer)));
    must(quern_entity_destroy(world, root));
    return text;
}

static void play_prefab(const char *text, size_t size, bool leaves_out_unknown)
{
    const quern_json_options options = {.leaves_out_unknown = leaves_out_unknown};
    quern_world *world = open_world();
    quern_entity entity;
    quern_prefab prefab, again;
    quern_component slot;
    quern_relation likes;
    must(quern_prefab_slot_register(world, "slot", &slot));
    must(quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true}, &likes));
    must(quern_entity_create(world, &entity));
    must(quern_entity_set_name(world, entity, "root"));
    if (quern_json_read_prefab(world, text, size, &options, &prefab) == QUERN_OK) {
        char *first = write_instance(world, prefab);
        must(quern_json_read_prefab(world, first, strlen(first), NULL, &again));
        require(quern_prefab_member_count(world, again) == quern_prefab_member_count(world, prefab));
        char *second = write_instance(world, again);
        require(strcmp(first, second) == 0);
        free(first);
        free(second);
    } else {
        require(quern_world_list_prefabs(world, NULL, 0) == 0);
    }
    require(quern_world_list_entities(world, NULL, 0) == 1);
    must(quern_world_validate(world));
    quern_world_destroy(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    play(copy, size, false);
    play(copy, size, true);
    play_prefab(copy, size, false);
    play_prefab(copy, size, true);
    free(copy);
    return 0;
}
