/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "kit/json.h"
#include "tests/core/lists/bag.h"
#include "tests/kit/json_scene.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <quern/kit/json.h>
#include <quern/list.h>
#include <quern/prefab.h>

#include <math.h>
#include <stdio.h>
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

Test(json_values, keys_name_whole_parts_of_fields)
{
    const scene at = open_scene(NULL);
    quern_type_info type;
    Thing thing;
    char text[128];
    memset(&thing, 0, sizeof thing);
    must(quern_component_get_info(at.world, at.thing, &type));
    const char *const accepted = "{\"place\": {\"at\": {\"y\": 4}}}";
    must(quern_json_read_value(at.world, &type, &thing, accepted, strlen(accepted), NULL));
    cr_assert_eq(thing.place.at.y, 4);
    static const char *const refused[] = {"{\"plane\": {}}", "{\"pl\": {}}", "{\"place\": {\"by\": {}}}",
                                          "{\"place.at\": {}}", "{\"title\": {}}"};
    for (uint32_t i = 0; i < sizeof refused / sizeof *refused; i++)
        must_refuse(INVALID_ARGUMENT, at.world,
                    quern_json_read_value(at.world, &type, &thing, refused[i], strlen(refused[i]), NULL));
    for (int bytes = QUERN_MAX_NAME_BYTES - 2; bytes < QUERN_MAX_NAME_BYTES + 5; bytes++) {
        snprintf(text, sizeof text, "{\"%0*u\": 1}", bytes, 7u);
        must_refuse(INVALID_ARGUMENT, at.world,
                    quern_json_read_value(at.world, &type, &thing, text, strlen(text), NULL));
    }
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

/* ----------------------------------------------------------------------------------------------- edges */

/* Values of edges in the JSON of worlds, entities and prefabs. */

typedef struct debt {
    int32_t amount;
} debt;

typedef struct like {
    quern_entity target;
    uint32_t since;
} like;

typedef struct likings {
    QUERN_LIST(like) edges;
} likings;

static quern_world *copy;

static void register_relations(quern_world *into)
{
    quern_component debts, values;
    must(QUERN_COMPONENT_REGISTER_FIELDS(into, &debts, debt, amount));
    values = make_component(into, QUERN_TYPE(likings),
                            .fields = {QUERN_LIST_FIELD(likings, edges, like, target, since)});

    make_relation(into, .name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .value = debts);
    make_relation(into, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true,
                  .value = values);
}

static void open_world(void)
{
    world = setup_world();
    copy = setup_world();
    register_relations(world);
    register_relations(copy);
}

static void close_both(void)
{
    quern_world_destroy(copy);
    close_valid_world();
}

TestSuite(edge_value_json, .init = open_world, .fini = close_both);

static quern_entity make(const char *name)
{
    const quern_entity entity = setup_entity(world);
    must(quern_entity_set_name(world, entity, name));
    return entity;
}

static const char *text_of_world(const quern_world *of, char *text, size_t bytes)
{
    quern_text_buffer buffer = {text, bytes, 0};
    must(quern_json_write_world(of, quern_sink_text(&buffer)));
    cr_assert_lt(buffer.length_bytes, bytes);
    return text;
}

static const void *value(quern_world *of, const char *source, const char *relation, const char *target)
{
    return quern_entity_edge_value(of, quern_entity_find(of, source), quern_relation_find(of, relation),
                                   quern_entity_find(of, target));
}

static void fill(void)
{
    const quern_entity a = make("a"), b = make("b"), c = make("c");
    const quern_relation owes = quern_relation_find(world, "owes"),
                         likes = quern_relation_find(world, "likes");
    must(quern_entity_relate_with(world, a, owes, b, &(debt){30}));
    must(quern_entity_relate_with(world, c, owes, b, &(debt){31}));
    must(quern_entity_relate_with(world, c, likes, a, &(like){.since = 1}));
    must(quern_entity_relate_with(world, c, likes, b, &(like){.since = 2}));
    must(quern_entity_relate(world, a, likes, c));
}

Test(edge_value_json, worlds_are_read_with_the_values_of_edges)
{
    static char text[8192], again[8192];
    fill();
    text_of_world(world, text, sizeof text);
    must(quern_json_read_world(copy, text, strlen(text), NULL));
    assert_valid(copy);
    cr_assert_eq(((const debt *)value(copy, "a", "owes", "b"))->amount, 30);
    cr_assert_eq(((const debt *)value(copy, "c", "owes", "b"))->amount, 31);
    cr_assert_eq(((const like *)value(copy, "c", "likes", "a"))->since, 1u);
    cr_assert_eq(((const like *)value(copy, "c", "likes", "b"))->since, 2u);
    cr_assert_eq(((const like *)value(copy, "a", "likes", "c"))->since, 0u);
    cr_assert_str_eq(text_of_world(copy, again, sizeof again), text);
}

Test(edge_value_json, values_of_existing_edges_are_changed)
{
    static const char text[] = "{\"components\": {\"debt\": {\"amount\": 5}, \"likings\": {\"edges\": "
                               "[{\"target\": \"/a\", \"since\": 7}]}}}";
    fill();
    const quern_entity c = quern_entity_find(world, "c");
    const quern_result result = quern_json_read_entity(world, c, text, strlen(text), NULL);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    assert_valid(world);
    cr_assert_eq(((const debt *)value(world, "c", "owes", "b"))->amount, 5);
    cr_assert_eq(((const like *)value(world, "c", "likes", "a"))->since, 7u);
    cr_assert_eq(((const like *)value(world, "c", "likes", "b"))->since, 2u,
                 "elements that are not named stay");
}

Test(edge_value_json, a_value_needs_an_edge)
{
    static const char text[] = "{\"components\": {\"debt\": {\"amount\": 5}}}";
    fill();
    const quern_entity b = quern_entity_find(world, "b");
    cr_assert_neq(quern_json_read_entity(world, b, text, strlen(text), NULL), QUERN_OK);
    cr_assert_not_null(strstr(quern_error_message(), "relate"), "%s", quern_error_message());
    assert_valid(world);
}

Test(edge_value_json, values_of_absent_edges_change_nothing)
{
    static const char text[] =
        "{\"components\": {\"debt\": {\"amount\": 5}, \"likings\": {\"edges\": "
        "[{\"target\": \"/c\", \"since\": 7}, {\"target\": \"/b\", \"since\": 8}]}}}";
    fill();
    const quern_entity a = quern_entity_find(world, "a");
    const uint64_t hash = quern_world_hash(world);
    cr_assert_eq(quern_json_read_entity(world, a, text, strlen(text), NULL), QUERN_ERROR_COMPONENT_ABSENT);
    assert_valid(world);
    cr_assert_eq(quern_world_hash(world), hash, "%s", quern_error_message());
}

Test(edge_value_json, prefabs_are_read_with_the_values_of_edges)
{
    static const char text[] = "{\"quern\": 1, \"prefab\": {\"id\": 1, \"children\": [{\"id\": 2, "
                               "\"name\": \"x\", \"components\": "
                               "{\"debt\": {\"amount\": 9}, "
                               "\"likings\": {\"edges\": [{\"target\": 1, \"since\": 4}]}}, \"targets\": "
                               "{\"owes\": 1, \"likes\": [1]}}]}}";
    quern_prefab prefab;
    quern_entity members[2];
    const quern_result result = quern_json_read_prefab(world, text, strlen(text), NULL, &prefab);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    must(quern_prefab_spawn_many(world, prefab, 1, NULL, NULL, members));
    assert_valid(world);
    const debt *owed =
        quern_entity_edge_value(world, members[1], quern_relation_find(world, "owes"), members[0]);
    const like *liked =
        quern_entity_edge_value(world, members[1], quern_relation_find(world, "likes"), members[0]);
    cr_assert_eq(owed->amount, 9);
    cr_assert_eq(liked->since, 4u);
}

/* ----------------------------------------------------------------------------------------------- lists */

/* Lists as JSON. */

static failing_allocator *memory;
static quern_component bag_id;
static quern_byte_buffer text;

static void open_lists(void)
{
    memory = open_bag_world(&bag_id);
}

static void close_all(void)
{
    quern_byte_buffer_release(&text);
    close_bag_world(memory);
}

TestSuite(list_json, .init = open_lists, .fini = close_all);

static bag *bag_of(quern_entity entity)
{
    return quern_entity_get(world, entity, bag_id);
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
    const quern_entity entity = bag_create_filled(bag_id), other = setup_entity(world);
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

/* ----------------------------------------------------------------------------------------------- names */

/* Names that look like other text: each text form of the entity leads back to it, in this world and in another. */

typedef struct Aim {
    quern_entity at, others[2];
} Aim;

typedef struct place {
    quern_world *world;
    quern_component aim;
    quern_relation likes;
} place;

static const char *const names[] = {
    " ",
    "  door",
    "door ",
    "door  ",
    " door ",
    "\tdoor",
    "door\t",
    "door\n",
    "\ndoor",
    "door\r",
    "\r",
    "a b",
    "\"door",
    "door\"",
    "\"\"",
    "do\\or",
    "\\",
    "'",
    "#",
    "#0",
    "#1 ",
    ":",
    "0:1",
    "1:1 ",
    " 2:1",
    "none",
    "none ",
    "0x1",
    "null",
    "true",
    "[",
    "]",
    "[0]",
    "a,b",
    "a|b",
    "!a",
    "?a",
    "(a",
    "a)",
    ") ",
    "of",
    "nearest ",
    "\x01",
    "door\x1f",
    "\x7f",
    "\v",
    "door\f",
    "door.x",
    "{}",
    "%s",
    "\xC2\xA0",
    "door\xC2\xA0",
    "door\xE2\x80\x83",
    /* in two parts: the d would belong to the escape before it */
    ("\xE3\x80\x80"
     "door"),
    ("\xEF\xBB\xBF"
     "door"),
    "door\xE2\x80\xA8",
    "-1",
    "door",
    "\xF0\x9F\x9A\xAA",
};
enum { NAMES = sizeof names / sizeof names[0] };

static place open_place(void)
{
    place it;
    must(quern_world_create(NULL, &it.world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it.world, &it.aim, Aim, at, others));
    it.likes = make_relation(it.world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    (void)quern_world_parent(it.world);
    return it;
}

static char written[8192];

static quern_sink into_text(void)
{
    static quern_text_buffer buffer;
    buffer = (quern_text_buffer){written, sizeof written, 0};
    return quern_sink_text(&buffer);
}

#define SAME(actual, expected, form) \
    cr_assert_eq((actual).bits, (expected).bits, "%s of '%s', by the text '%s'", form, names[i], written)

/* Reads each text form of the entity and compares what it leads to. */
static void check_forms(const place *it, quern_entity entity, quern_entity holder, uint32_t i)
{
    quern_entity found;
    quern_query_def def = {.terms = {quern_term_target(it->likes, entity)}}, read;
    quern_type_info type;
    Aim value = {entity, {entity, quern_entity_null()}}, read_back = {{0}, {{0}}};
    must(quern_entity_to_text(it->world, entity, into_text()));
    must(quern_entity_from_text(it->world, written, &found));
    SAME(found, entity, "text");
    must(quern_entity_get_path(it->world, entity, into_text()));
    SAME(quern_entity_find(it->world, written), entity, "path");

    must(quern_entity_set(it->world, holder, it->aim, &value));
    must(quern_entity_get_text(it->world, holder, "Aim.at", into_text()));
    must(quern_entity_set(it->world, holder, it->aim, &read_back));
    must(quern_entity_set_text(it->world, holder, "Aim.at", written));
    SAME(((const Aim *)quern_entity_get(it->world, holder, it->aim))->at, entity, "field");
    must(quern_component_get_info(it->world, it->aim, &type));
    must(quern_value_get_text(it->world, &type, &value, "others", into_text()));
    must(quern_value_set_text(it->world, &type, &read_back, "others", written));
    SAME(read_back.others[0], entity, "array");

    must(quern_query_to_text(it->world, &def, into_text()));
    must(quern_query_parse(it->world, written, &read));
    SAME(read.terms[0].target, entity, "query");

    must(quern_json_write_value(it->world, &type, &value, into_text()));
    must(quern_json_read_value(it->world, &type, &read_back, written, strlen(written), NULL));
    SAME(read_back.at, entity, "value in JSON");
    SAME(read_back.others[0], entity, "array in JSON");
    must(quern_entity_set(it->world, holder, it->aim, &value));
    must(quern_json_write_entity(it->world, holder, into_text()));
    must(quern_entity_set(it->world, holder, it->aim, &(Aim){{0}, {{0}}}));
    must(quern_json_read_entity(it->world, holder, written, strlen(written), NULL));
    SAME(((const Aim *)quern_entity_get(it->world, holder, it->aim))->at, entity, "entity in JSON");
    must(quern_json_write_prefab(it->world, holder, into_text()));
    quern_prefab prefab;
    quern_entity instance;
    must(quern_json_read_prefab(it->world, written, strlen(written), NULL, &prefab));
    must(quern_prefab_spawn(it->world, prefab, NULL, &instance));
    SAME(((const Aim *)quern_entity_get(it->world, instance, it->aim))->at, entity, "prefab in JSON");
    must(quern_entity_destroy(it->world, instance));
    must(quern_prefab_destroy(it->world, prefab));
}

/* Roots and children of one parent with all names, one of them below the other. */
static void fill_place(const place *it, quern_entity roots[NAMES], quern_entity children[NAMES])
{
    for (uint32_t i = 0; i < NAMES; i++) {
        roots[i] = setup_entity(it->world);
        children[i] = setup_entity(it->world);
        must(quern_entity_set_name(it->world, roots[i], names[i]));
        must(quern_entity_relate(it->world, children[i], quern_world_parent(it->world), roots[i]));
        must(quern_entity_set_name(it->world, children[i], names[NAMES - 1 - i]));
    }
}

Test(names_as_text, each_text_leads_back_to_its_entity)
{
    place it = open_place();
    quern_entity roots[NAMES], children[NAMES];
    fill_place(&it, roots, children);
    const quern_entity holder = setup_entity_with(it.world, &it.aim, 1);
    for (uint32_t i = 0; i < NAMES; i++) {
        check_forms(&it, roots[i], holder, i);
        check_forms(&it, children[i], holder, i);
    }
    quern_world_destroy(it.world);
}

/* Checks that a world has the names of `fill`, at the same places. */
static void check_names(const quern_world *named, const char *way)
{
    char path[2 * QUERN_MAX_ENTITY_NAME_BYTES + 2];
    for (uint32_t i = 0; i < NAMES; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", names[i], names[NAMES - 1 - i]);
        const quern_entity found = quern_entity_find(named, path);
        cr_assert(quern_entity_is_alive(named, found), "%s: '%s'", way, path);
        cr_assert_str_eq(quern_entity_name(named, found), names[NAMES - 1 - i]);
    }
}

/* Archives, JSON and commands have no rules of their own: what quern_entity_set_name accepts arrives. */
Test(names_as_text, names_arrive_in_other_worlds)
{
    place from = open_place(), by_archive = open_place(), by_json = open_place(), by_command = open_place();
    quern_entity roots[NAMES], children[NAMES];
    quern_byte_buffer bytes = {0};
    fill_place(&from, roots, children);
    must(quern_world_save(from.world, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(by_archive.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    check_names(by_archive.world, "archive");
    bytes.size_bytes = 0;
    must(quern_json_write_world(from.world, quern_sink_bytes(&bytes)));
    must(quern_json_read_world(by_json.world, bytes.bytes, bytes.size_bytes, NULL));
    check_names(by_json.world, "JSON");
    quern_commands *commands = quern_world_commands(by_command.world);
    for (uint32_t i = 0; i < NAMES; i++) {
        const quern_entity root = record_entity(commands), child = record_entity(commands);
        must(quern_commands_set_name(commands, root, names[i]));
        must(quern_commands_relate(commands, child, quern_world_parent(by_command.world), root));
        must(quern_commands_set_name(commands, child, names[NAMES - 1 - i]));
    }
    must(quern_world_flush(by_command.world));
    check_names(by_command.world, "commands");
    quern_byte_buffer_release(&bytes);
    quern_world_destroy(from.world);
    quern_world_destroy(by_archive.world);
    quern_world_destroy(by_json.world);
    quern_world_destroy(by_command.world);
}

/* If the entity that a written path leads to is gone, the path leads to none, and not to one with a similar name. */
Test(names_as_text, white_space_after_a_path_belongs_to_its_name)
{
    place it = open_place();
    const quern_entity door = setup_entity(it.world), holder = setup_entity_with(it.world, &it.aim, 1);
    quern_query_def def;
    must(quern_entity_set_name(it.world, door, "door"));
    must_refuse(INVALID_ARGUMENT, it.world, quern_entity_set_text(it.world, holder, "Aim.at", "/door "));
    must_refuse(INVALID_ARGUMENT, it.world, quern_query_parse(it.world, "likes(/door )", &def));
    must(quern_entity_set_text(it.world, holder, "Aim.at", " /door"));
    cr_assert_eq(((const Aim *)quern_entity_get(it.world, holder, it.aim))->at.bits, door.bits);
    must(quern_entity_set_text(it.world, holder, "Aim.at", " none\n"));
    must(quern_query_parse(it.world, "likes( /door)", &def));
    cr_assert_eq(def.terms[0].target.bits, door.bits);
    must(quern_query_parse(it.world, "likes( none )", &def));
    quern_world_destroy(it.world);
}
