/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json.h"
#include "tests/core/lists/bag.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

/* Lists as JSON. */

static failing_allocator *memory;
static quern_component bag_id;
static quern_byte_buffer text;

static void open_world(void)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    world = setup_world();
    bag_id = bag_register(world);
}

static void close_all(void)
{
    quern_byte_buffer_release(&text);
    close_valid_world();
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(list_json, .init = open_world, .fini = close_all);

static bag *bag_of(quern_entity entity)
{
    return quern_entity_get(world, entity, bag_id);
}

static quern_entity filled_entity(void)
{
    quern_string name = {{{0}, 0, 0}};
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, bag_id, NULL));
    bag *it = bag_of(entity);
    must(QUERN_LIST_PUSH(&it->items, bag_item, {.kind = 1, .count = 2}, {.kind = 3, .owner = entity}));
    must(QUERN_LIST_PUSH(&it->scores, float, 1, 2.5f));
    must(QUERN_LIST_PUSH(&it->friends, quern_entity, entity, {0}));
    must(quern_string_set(&it->label, "a \"label\""));
    must(quern_string_set(&name, "Ann"));
    must(QUERN_LIST_PUSH(&it->names, quern_string, name));
    quern_string_free(&name);
    return entity;
}

Test(list_json, json_has_all_lists)
{
    bag_model model[20];
    quern_entity entities[20];
    random_source random = {7};
    memset(model, 0, sizeof model);
    for (uint32_t i = 0; i < 20; i++) {
        entities[i] = setup_entity(world);
        must(quern_entity_add(world, entities[i], bag_id, NULL));
    }
    for (uint32_t step = 0; step < 2000; step++) {
        const uint32_t i = random_below(&random, 20);
        (void)bag_change(bag_of(entities[i]), &model[i], &random, entities, 20);
    }
    must(quern_json_write_world(world, quern_sink_bytes(&text)));
    quern_world *const first = world;
    world = setup_world();
    bag_id = bag_register(world);
    must(quern_json_read_world(world, text.bytes, text.size_bytes, NULL));
    cr_assert_eq(quern_world_hash(world), quern_world_hash(first), "%.*s", 2000, (char *)text.bytes);
    quern_world_destroy(first);
}

Test(list_json, json_changes_a_value_or_leaves_it)
{
    const quern_entity entity = filled_entity(), other = setup_entity(world);
    must(quern_entity_add(world, other, bag_id, bag_of(entity)));
    static const char good[] =
        "{\"bag\": {\"items\": [{\"kind\": 8}, {\"kind\": 9, \"count\": 1}, {}], \"label\": \"json\"}}";
    static const char bad[] = "{\"bag\": {\"label\": \"json\", \"items\": [{\"kind\": \"x\"}]}}";
    static const char *const wrong[] = {
        "{\"bag\": {\"items\": 5}}",        "{\"bag\": {\"items\": [5]}}",
        "{\"bag\": {\"label\": 5}}",        "{\"bag\": {\"names\": [[0]]}}",
        "{\"bag\": {\"scores\": [1, {}]}}", "{\"bag\": {\"label\": \"\\u0000\"}}"};
    quern_type_info type;
    must(quern_component_get_info(world, bag_id, &type));
    const size_t skipped = sizeof "{\"bag\": " - 1;
    must_refuse(
        INVALID_ARGUMENT, world,
        quern_json_read_value(world, &type, bag_of(entity), bad + skipped, sizeof bad - 2 - skipped, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        must_refuse(INVALID_ARGUMENT, world,
                    quern_json_read_value(world, &type, bag_of(entity), wrong[i] + skipped,
                                          strlen(wrong[i]) - 1 - skipped, NULL));
    must(quern_json_read_value(world, &type, bag_of(entity), good + skipped, sizeof good - 2 - skipped,
                               NULL));
    cr_assert_eq(bag_of(entity)->items.list.count, 3u);
    cr_assert_eq(bag_of(entity)->items.items[1].kind, 9u);
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), "json");
    cr_assert_eq(bag_of(entity)->scores.list.count, 2u);
    cr_assert_str_eq(quern_string_text(&bag_of(other)->label), "a \"label\"");
}

enum { MODEST_BYTES = 8192, WRONG_COUNT = 1000 };

/* Allocates like the default allocator, but no large block. */
static void *allocate_modestly(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    const quern_allocator usual = quern_allocator_default();
    (void)user_data;
    return size_bytes <= MODEST_BYTES ? usual.allocate(usual.user_data, size_bytes, alignment_bytes) : NULL;
}

Test(list_json, elements_need_memory_when_they_are_read)
{
    const quern_allocator usual = quern_allocator_default();
    const quern_allocator modest = {allocate_modestly, usual.release, usual.user_data};
    must(quern_lists_set_allocator(&modest)); /* no list has elements yet */
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, bag_id, NULL));
    quern_type_info type;
    must(quern_component_get_info(world, bag_id, &type));
    static char wrong[WRONG_COUNT * 2 + 32];
    int bytes = snprintf(wrong, sizeof wrong, "{\"items\": [{}");
    for (uint32_t i = 0; i < WRONG_COUNT; i++)
        bytes += snprintf(wrong + bytes, sizeof wrong - (size_t)bytes, ",5");
    snprintf(wrong + bytes, sizeof wrong - (size_t)bytes, "]}");
    must_refuse(INVALID_ARGUMENT, world,
                quern_json_read_value(world, &type, bag_of(entity), wrong, strlen(wrong), NULL));
}
