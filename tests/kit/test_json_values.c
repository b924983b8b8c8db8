/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json.h"
#include "tests/kit/json_scene.h"
#include "tests/support/random.h"

#include <math.h>
#include <string.h>

/* Single values and entities as JSON, and invalid calls. */

TestSuite(json_values, .fini = close_texts);

Test(json_values, values)
{
    const scene at = open_scene(NULL);
    quern_type_info type;
    char text[1024];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_component_get_info(at.world, at.thing, &type));
    Thing thing = {.i64 = INT64_MIN,
                   .u64 = 7,
                   .f64 = (double)NAN,
                   .f32 = 0.1f,
                   .matrix = {1, -INFINITY},
                   .mood = MOOD_ANGRY,
                   .title = "K\xC3\xA4se",
                   .serial = 3,
                   .flags = {true, false}};
    must(quern_json_write_value(at.world, &type, &thing, quern_sink_text(&buffer)));
    cr_assert_str_eq(text,
                     "{\"i64\": \"-9223372036854775808\", \"u64\": 7, \"f64\": \"nan\", \"f32\": 0.1, "
                     "\"matrix\": [1, \"-inf\"], \"place\": {\"at\": {\"x\": 0, \"y\": 0}, \"turn\": 0}, "
                     "\"flags\": [true, false], \"mood\": \"angry\", \"title\": \"K\xC3\xA4se\", "
                     "\"friend\": null, \"others\": [null, null], \"serial\": 3, \"speed\": 0}");
    Thing again;
    memset(&again, 0, sizeof again);
    must(quern_json_read_value(at.world, &type, &again, text, strlen(text), NULL));
    cr_assert_eq(again.i64, INT64_MIN);
    cr_assert(isnan(again.f64) && again.f32 == 0.1f && again.serial == 3 && again.mood == MOOD_ANGRY);
    cr_assert_str_eq(again.title, thing.title);
    const Thing before = again;
    static const char half_wrong[] = "{\"u64\": 8, \"speed\": -1}";
    cr_assert_eq(quern_json_read_value(at.world, &type, &again, half_wrong, sizeof half_wrong - 1, NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(memcmp(&before, &again, sizeof again), 0);
    must(quern_json_read_value(at.world, &type, &again, "{\"u64\": 9}", 10, NULL));
    cr_assert(again.u64 == 9 && again.serial == 3);
    quern_world_destroy(at.world);
}

Test(json_values, random_floats_survive_a_round_trip)
{
    const scene at = open_scene(NULL);
    random_source random = {5};
    quern_type_info type;
    must(quern_component_get_info(at.world, at.thing, &type));
    for (uint32_t i = 0; i < 2000; i++) {
        Thing thing = {.f32 = 0}, again = {.f32 = 0};
        char text[1024];
        quern_text_buffer buffer = {text, sizeof text, 0};
        const uint64_t wide = random_next(&random);
        const uint32_t narrow = (uint32_t)random_next(&random);
        memcpy(&thing.f64, &wide, sizeof wide);
        memcpy(&thing.f32, &narrow, sizeof narrow);
        must(quern_json_write_value(at.world, &type, &thing, quern_sink_text(&buffer)));
        must(quern_json_read_value(at.world, &type, &again, text, strlen(text), NULL));
        cr_assert(memcmp(&thing.f64, &again.f64, 8) == 0 && memcmp(&thing.f32, &again.f32, 4) == 0, "%s",
                  text);
    }
    quern_world_destroy(at.world);
}

Test(json_values, an_entity_is_changed_completely_or_not_at_all)
{
    const scene at = open_scene(NULL);
    const quern_entity entity = setup_entity_with(at.world, (quern_component[]){at.toggle, at.owner}, 2);
    char text[1024];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_entity_set_name(at.world, entity, "one"));
    static const char change[] =
        "{\"components\": {\"toggle\": {\"n\": 4}, \"Owner\": {\"points\": 6}, \"blob\": "
        "\"0102030405\", \"tag\": true}, \"disabled\": [\"toggle\"]}";
    must(quern_json_read_entity(at.world, entity, change, sizeof change - 1, NULL));
    must(quern_json_write_entity(at.world, entity, quern_sink_text(&buffer)));
    cr_assert_str_eq(
        text,
        "{\"name\": \"one\", \"components\": {\"blob\": \"0102030405\", \"tag\": true, \"toggle\": {\"n\": "
        "4}, \"Owner\": {\"points\": 6}}, \"disabled\": [\"toggle\"]}\n");
    cr_assert_eq(*((const Owner *)quern_entity_get(at.world, entity, at.owner))->owned, 42);
    static const char wrong[] = "{\"components\": {\"toggle\": {\"n\": 5}, \"blob\": 1}}";
    must_refuse(INVALID_ARGUMENT, at.world,
                quern_json_read_entity(at.world, entity, wrong, sizeof wrong - 1, NULL));
    static const char friend_text[] = "{\"components\": {\"Thing\": {\"friend\": \"/one\"}}}";
    must(quern_json_read_entity(at.world, entity, friend_text, sizeof friend_text - 1, NULL));
    cr_assert(
        quern_entity_equal(((const Thing *)quern_entity_get(at.world, entity, at.thing))->friend, entity));
    must(quern_entity_add(at.world, entity, at.handed, NULL));
    static const char handed[] = "{\"components\": {\"Handed\": {\"points\": 1}}}";
    must_refuse(INVALID_ARGUMENT, at.world,
                quern_json_read_entity(at.world, entity, handed, sizeof handed - 1, NULL));
    must(quern_entity_destroy(at.world, entity));
    must_refuse(STALE_ENTITY, at.world,
                quern_json_read_entity(at.world, entity, change, sizeof change - 1, NULL));
    must_refuse(STALE_ENTITY, at.world,
                quern_json_write_entity(at.world, entity, quern_sink_text(&buffer)));
    quern_world_destroy(at.world);
    cr_assert_eq(owner_count, 0);
}

static bool write_nothing(void *user_data, const char *text, size_t bytes)
{
    return false;
}

Test(json_values, wrong_calls_are_refused)
{
    const scene at = open_scene(NULL);
    char text[64];
    quern_text_buffer buffer = {text, sizeof text, 0};
    const quern_sink sink = quern_sink_text(&buffer), broken = {.write = write_nothing};
    const quern_json_options half = {.allocator = {.allocate = quern_allocator_default().allocate}};
    quern_type_info type;
    uint32_t value = 0;
    must(quern_component_get_info(at.world, at.toggle, &type));
    must_refuse(NULL_ARGUMENT, NULL, quern_json_write_world(NULL, sink));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_write_world(at.world, (quern_sink){0}));
    must_refuse(IO, at.world, quern_json_write_world(at.world, broken));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_write_value(at.world, NULL, &value, sink));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_write_value(at.world, &type, NULL, sink));
    must_refuse(NULL_ARGUMENT, NULL, quern_json_read_world(NULL, "{}", 2, NULL));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_world(at.world, NULL, 2, NULL));
    must_refuse(INVALID_ARGUMENT, at.world, quern_json_read_world(at.world, "{}", 2, &half));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_value(at.world, NULL, &value, "{}", 2, NULL));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_value(at.world, &type, NULL, "{}", 2, NULL));
    quern_world_destroy(at.world);
}

Test(json_values, commands_can_be_discarded)
{
    const scene at = open_scene(NULL);
    const quern_entity entity = setup_entity(at.world);
    quern_commands *commands = quern_world_commands(at.world);
    Owner owner;
    owner_construct(&owner, 1, NULL);
    must(quern_commands_add(commands, entity, at.owner, &owner));
    must(quern_commands_add(commands, entity, at.handed, &owner));
    cr_assert_not(quern_entity_is_null(record_entity(commands)));
    must(quern_world_discard_commands(at.world));
    cr_assert_eq(owner_count, 0, "also what was handed over");
    must(quern_world_flush(at.world));
    cr_assert_eq(quern_entity_list_components(at.world, entity, NULL, 0), 0u);
    cr_assert_eq(stats_of_world(at.world).entity_count, 1u);
    commands = quern_world_commands(at.world);
    must(quern_commands_add(commands, entity, at.tag, NULL));
    must(quern_world_flush(at.world));
    cr_assert(quern_entity_has(at.world, entity, at.tag), "it goes on");
    must_refuse(NULL_ARGUMENT, NULL, quern_world_discard_commands(NULL));
    quern_world_destroy(at.world);
}
