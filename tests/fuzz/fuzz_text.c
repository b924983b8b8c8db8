/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The bytes are a path, a line feed and a text. A text that can be set must read back as a text that
 * gives the same bytes. A text that is rejected must change nothing. */

#include "tests/fuzz/fuzz.h"

#include <quern/name.h>
#include <quern/reflect.h>

typedef struct Thing {
    bool flag;
    int8_t i8;
    uint64_t u64;
    float f32, matrix[3];
    double f64;
    uint16_t mood;
    char title[12];
    quern_entity friend, others[2];
} Thing;

static const quern_named_value moods[] = {{"calm", 0}, {"Very angry", 7}, {NULL, 0}};

static const quern_component_def thing_def = {
    QUERN_TYPE(Thing),
    .fields = {QUERN_FIELD(Thing, flag), QUERN_FIELD(Thing, i8), QUERN_FIELD(Thing, u64),
               QUERN_FIELD(Thing, f32), QUERN_FIELD(Thing, matrix), QUERN_FIELD(Thing, f64),
               QUERN_FIELD_WITH(Thing, mood, .values = moods, .maximum = 900), QUERN_TEXT(Thing, title),
               QUERN_FIELD(Thing, friend), QUERN_FIELD(Thing, others)}};

static void check_again(quern_world *world, quern_entity entity, quern_component component,
                        const char *path)
{
    char text[512];
    quern_text_buffer buffer = {text, sizeof text, 0};
    Thing before, *thing = quern_entity_get(world, entity, component);
    must(quern_entity_get_text(world, entity, path, quern_sink_text(&buffer)));
    require(buffer.length_bytes < sizeof text);
    memcpy(&before, thing, sizeof before);
    must(quern_entity_set_text(world, entity, path, text));
    require(memcmp(&before, thing, sizeof before) == 0);
}

static void play(quern_world *world, const char *path, const char *text)
{
    quern_component component;
    quern_entity entity;
    must(quern_component_register(world, &thing_def, &component));
    must(quern_entity_create_with(world, &component, NULL, 1, &entity));
    must(quern_entity_set_name(world, entity, "one"));
    (void)quern_world_parent(world);
    const uint64_t hash = quern_world_hash(world);
    const quern_result result = quern_entity_set_text(world, entity, path, text);
    must(quern_world_validate(world));
    if (result != QUERN_OK)
        require(quern_world_hash(world) == hash);
    else if (strncmp(path, "Thing", 5) == 0)
        check_again(world, entity, component, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    quern_world *world;
    char *copy = malloc(size + 1);
    require(copy != NULL);
    if (size > 0) memcpy(copy, bytes, size);
    copy[size] = '\0';
    char *line = strchr(copy, '\n');
    if (line != NULL) {
        *line = '\0';
        must(quern_world_create(NULL, &world));
        play(world, copy, line + 1);
        quern_world_destroy(world);
    }
    free(copy);
    return 0;
}
