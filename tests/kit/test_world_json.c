/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/active.h>
#include <quern/commands.h>
#include <quern/name.h>

#include "kit/json.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JSON of values, entities and worlds. */

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

/* One whose values own something: a count of those that live. */
typedef struct Owner {
    uint64_t points;
    int *owned;
} Owner;

static int owner_count;

static void owner_construct(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    Owner *owners = values;
    for (uint32_t i = 0; i < count; i++) {
        owners[i] = (Owner){.points = 5, .owned = malloc(sizeof(int))};
        *owners[i].owned = 42;
        owner_count++;
    }
}

static void owner_copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    const Owner *from = sources;
    Owner *to = targets;
    owner_construct(targets, count, user_data);
    for (uint32_t i = 0; i < count; i++) {
        to[i].points = from[i].points;
        *to[i].owned = *from[i].owned;
    }
}

static void owner_destroy(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        free(((Owner *)values)[i].owned);
    owner_count -= (int)count;
}

/* What the tests register in each world. */
typedef struct scene {
    quern_world *world;
    quern_component thing, blob, tag, toggle, owner, handed;
    quern_relation parent, likes;
    quern_resource rules;
} scene;

static scene open_scene(const quern_allocator *allocator)
{
    scene at;
    quern_world_def world_def = {.empty_archetype_checks_per_sync = 0};
    if (allocator != NULL) world_def.allocator = *allocator;
    must(quern_world_create(&world_def, &at.world));
    const quern_component_def thing_def = {
        QUERN_TYPE(Thing),
        .fields = {QUERN_FIELD(Thing, i64), QUERN_FIELD(Thing, u64), QUERN_FIELD(Thing, f64),
                   QUERN_FIELD(Thing, f32), QUERN_FIELD(Thing, matrix), QUERN_FIELD(Thing, place.at.x),
                   QUERN_FIELD(Thing, place.at.y), QUERN_FIELD(Thing, place.turn),
                   QUERN_FIELD(Thing, flags), QUERN_FIELD_WITH(Thing, mood, .values = moods),
                   QUERN_TEXT(Thing, title), QUERN_FIELD(Thing, friend), QUERN_FIELD(Thing, others),
                   QUERN_FIELD_WITH(Thing, serial, .is_read_only = true),
                   QUERN_FIELD_WITH(Thing, speed, .minimum = 0, .maximum = 10)}};
    must(quern_component_register(at.world, &thing_def, &at.thing));
    at.blob = setup_component(at.world, "blob", 5, 1);
    at.tag = setup_tag(at.world, "tag");
    const quern_component_def toggle_def = {.name = "toggle",
                                            .size_bytes = 4,
                                            .fields = {{"n", QUERN_FIELD_U32, .count = 1}},
                                            .can_disable = true};
    must(quern_component_register(at.world, &toggle_def, &at.toggle));
    quern_component_def owner_def = {
        QUERN_TYPE(Owner), .fields = {QUERN_FIELD(Owner, points)},
        .hooks = {.construct = owner_construct, .copy = owner_copy, .destroy = owner_destroy}};
    must(quern_component_register(at.world, &owner_def, &at.owner));
    owner_def.name = "Handed";
    owner_def.hooks.copy = NULL;
    must(quern_component_register(at.world, &owner_def, &at.handed));
    at.parent = quern_world_parent(at.world);
    must(quern_relation_register(at.world, &(quern_relation_def){.name = "likes"}, &at.likes));
    const quern_resource_def rules_def = {
        .name = "rules",
        .size_bytes = 16,
        .fields = {{"hero", QUERN_FIELD_ENTITY, .count = 1}, {"gravity", QUERN_FIELD_F32, 8, .count = 1}}};
    must(quern_resource_register(at.world, &rules_def, &at.rules));
    return at;
}

static char *texts[4];

static void close_texts(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

TestSuite(json, .fini = close_texts);

/* The JSON of a world, kept until the slot is used again. */
static const char *written(const quern_world *world, uint32_t slot)
{
    quern_buffer buffer = {NULL, 0, 0};
    must(quern_json_write_world(world, quern_sink_buffer(&buffer)));
    const size_t bytes = buffer.length_bytes + 1;
    free(texts[slot]);
    texts[slot] = malloc(bytes);
    buffer = (quern_buffer){texts[slot], bytes, 0};
    must(quern_json_write_world(world, quern_sink_buffer(&buffer)));
    cr_assert_eq(buffer.length_bytes + 1, bytes);
    return texts[slot];
}

static quern_result read_into(quern_world *world, const char *text)
{
    return quern_json_read_world(world, text, strlen(text), NULL);
}

/* ------------------------------------------------------------------------------------- random worlds */

static Thing random_thing(random_source *random, const quern_entity *entities, uint32_t count)
{
    Thing thing = {.serial = (int32_t)random_next(random), .speed = (float)random_below(random, 11)};
    const uint64_t wide = random_next(random) >> random_below(random, 64), bits = random_next(random);
    const uint32_t narrow = (uint32_t)random_next(random);
    thing.u64 = wide;
    memcpy(&thing.i64, &bits, sizeof bits);
    if (random_chance(random, 50)) thing.i64 %= 1000;
    memcpy(&thing.f64, &bits, sizeof bits);
    memcpy(&thing.f32, &narrow, sizeof narrow);
    thing.matrix[0] = 0.1f * (float)random_below(random, 100);
    thing.matrix[1] = random_chance(random, 20) ? -INFINITY : -0.0f;
    thing.place.at.x = 1.5f;
    thing.place.turn = (int8_t)random_next(random);
    thing.flags[random_below(random, 2)] = true;
    thing.mood = (Mood)random_below(random, 3);
    snprintf(thing.title, sizeof thing.title, "t\"\\\n%u", random_below(random, 100));
    if (random_chance(random, 10)) memset(thing.title, 0xFE, sizeof thing.title);
    thing.friend = entities[random_below(random, count)];
    thing.others[1] = entities[random_below(random, count)];
    return thing;
}

static void fill_entity(const scene *at, random_source *random, const quern_entity *entities,
                        uint32_t count, uint32_t i)
{
    const quern_entity entity = entities[i];
    const Thing thing = random_thing(random, entities, count);
    char blob[5];
    uint32_t n = random_below(random, 1000);
    memcpy(blob, &thing.i64, sizeof blob);
    if (random_chance(random, 70)) must(quern_entity_add(at->world, entity, at->thing, &thing));
    if (random_chance(random, 30)) must(quern_entity_add(at->world, entity, at->blob, blob));
    if (random_chance(random, 30)) must(quern_entity_add(at->world, entity, at->tag, NULL));
    if (random_chance(random, 50)) {
        must(quern_entity_add(at->world, entity, at->toggle, &n));
        must(quern_entity_enable(at->world, entity, at->toggle, random_chance(random, 50)));
    }
    if (random_chance(random, 20)) must(quern_entity_add(at->world, entity, at->owner, NULL));
    if (random_chance(random, 20)) must(quern_entity_add(at->world, entity, at->handed, NULL));
    if (random_chance(random, 10))
        must(quern_entity_add(at->world, entity, quern_world_disabled(at->world), NULL));
}

static void fill_scene(const scene *at, uint64_t seed)
{
    enum { COUNT = 60 };
    random_source random = {seed};
    quern_entity entities[COUNT];
    char name[32];
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create(at->world, &entities[i]));
    for (uint32_t i = 0; i < COUNT; i++)
        fill_entity(at, &random, entities, COUNT, i);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t other = random_below(&random, COUNT);
        if (random_chance(&random, 60) && other != i) /* some would be circles */
            (void)quern_entity_relate(at->world, entities[i], at->parent, entities[other]);
        if (random_chance(&random, 30) && other != i)
            must(quern_entity_relate(at->world, entities[i], at->likes, entities[other]));
        snprintf(name, sizeof name, "n \"%u", random_below(&random, 20));
        if (random_chance(&random, 50)) (void)quern_entity_set_name(at->world, entities[i], name);
    }
    for (uint32_t i = 0; i < COUNT; i++) /* handles of the dead, and gaps between slots */
        if (random_chance(&random, 10) && quern_entity_is_alive(at->world, entities[i]))
            must(quern_entity_destroy(at->world, entities[i]));
    memcpy(quern_resource_get(at->world, at->rules), &entities[7], sizeof entities[7]);
    ((float *)quern_resource_get(at->world, at->rules))[2] = -9.81f;
}

/* In a fresh world, entities get slots in the order of the list, so what is written again is the same
 * text; it has all that counts, and nothing that is another world's. */
Test(json, random_worlds_come_back_in_fresh_worlds)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const scene from = open_scene(NULL), to = open_scene(NULL);
        fill_scene(&from, seed);
        const char *first = written(from.world, 0);
        cr_assert_eq(read_into(to.world, first), QUERN_OK, "%llu: %s", (unsigned long long)seed,
                     quern_error_message());
        cr_assert_str_eq(written(to.world, 1), first, "seed %llu", (unsigned long long)seed);
        assert_valid(to.world);
        cr_assert_eq(stats_of_world(to.world).entity_count, stats_of_world(from.world).entity_count);
        cr_assert_eq(stats_of_world(to.world).name_count, stats_of_world(from.world).name_count);
        quern_world_destroy(from.world);
        quern_world_destroy(to.world);
        cr_assert_eq(owner_count, 0);
    }
}

typedef struct loaded_entities {
    quern_entity entities[64];
    uint64_t ids[64];
    uint32_t count;
} loaded_entities;

static void note_loaded(void *user_data, uint64_t id, quern_entity entity)
{
    loaded_entities *loaded = user_data;
    loaded->ids[loaded->count] = id;
    loaded->entities[loaded->count++] = entity;
}

static const char small_world[] =
    "{\"quern\": 1, \"resources\": {\"rules\": {\"hero\": 20, \"gravity\": 2}},\n"
    "\"entities\": [{\"id\": 10, \"name\": \"arena\", \"components\": {\"tag\": true}, \"children\": "
    "{\"parent\": [30, 20]}},\n"
    "{\"id\": 20, \"name\": \"gun\", \"components\": {\"Thing\": {\"friend\": 30, \"others\": [10, null], "
    "\"mood\": \"angry\"},\n"
    "\"toggle\": {\"n\": 7}}, \"disabled\": [\"toggle\"], \"children\": {\"likes\": [10, 30]}},\n"
    "{\"id\": 30, \"components\": {\"blob\": \"00ff10a0b1\", \"Owner\": {\"points\": 9}, \"Handed\": "
    "{}}}]}";

Test(json, handles_children_and_names_are_those_of_the_world_that_reads)
{
    const scene at = open_scene(NULL);
    loaded_entities loaded = {.count = 0};
    const quern_json_options options = {.loaded = note_loaded, .user_data = &loaded};
    for (uint32_t i = 0; i < 5; i++)
        setup_entity(at.world);
    must(quern_json_read_world(at.world, small_world, sizeof small_world - 1, &options));
    assert_valid(at.world);
    cr_assert(loaded.count == 3 && loaded.ids[0] == 10 && loaded.ids[2] == 30);
    const quern_entity arena = loaded.entities[0], gun = loaded.entities[1], third = loaded.entities[2];
    cr_assert(quern_entity_equal(quern_entity_find(at.world, "arena/gun"), gun));
    quern_entity children[3];
    cr_assert_eq(quern_entity_get_children(at.world, arena, at.parent, children, 3), 2u);
    cr_assert(quern_entity_equal(children[0], third) && quern_entity_equal(children[1], gun));
    cr_assert_eq(quern_entity_get_children(at.world, gun, at.likes, children, 3), 2u);
    cr_assert(quern_entity_equal(children[0], arena) && quern_entity_equal(children[1], third));
    const Thing *thing = quern_entity_get(at.world, gun, at.thing);
    cr_assert(quern_entity_equal(thing->friend, third) && quern_entity_equal(thing->others[0], arena));
    cr_assert(quern_entity_is_null(thing->others[1]) && thing->mood == MOOD_ANGRY && thing->i64 == 0);
    cr_assert_not(quern_entity_is_enabled(at.world, gun, at.toggle));
    cr_assert_eq(memcmp(quern_entity_get(at.world, third, at.blob), "\x00\xff\x10\xa0\xb1", 5), 0);
    cr_assert_eq(((const Owner *)quern_entity_get(at.world, third, at.owner))->points, 9u);
    cr_assert_eq(*((const Owner *)quern_entity_get(at.world, third, at.owner))->owned, 42);
    cr_assert_eq(((const Owner *)quern_entity_get(at.world, third, at.handed))->points, 5u);
    cr_assert(quern_entity_equal(*(const quern_entity *)quern_resource_get(at.world, at.rules), gun));
    cr_assert_eq(((const float *)quern_resource_get(at.world, at.rules))[2], 2);
    assert_refused(at.world, QUERN_ERROR_NAME_TAKEN, read_into(at.world, small_world));
    quern_world_destroy(at.world);
    cr_assert_eq(owner_count, 0);
}

Test(json, names_of_children_may_be_those_of_roots_of_the_world)
{
    const scene at = open_scene(NULL);
    const quern_entity taken = setup_entity(at.world);
    must(quern_entity_set_name(at.world, taken, "taken"));
    must(read_into(at.world,
                   "{\"quern\": 1, \"entities\": [{\"id\": 0, \"name\": \"top\", \"components\": {}, "
                   "\"children\": {\"parent\": [1]}}, {\"id\": 1, \"name\": \"taken\", "
                   "\"components\": {}}]}"));
    cr_assert(quern_entity_equal(quern_entity_find(at.world, "taken"), taken));
    const quern_entity child = quern_entity_find(at.world, "top/taken");
    cr_assert(!quern_entity_is_null(child) && !quern_entity_equal(child, taken));
    quern_world_destroy(at.world);
}

Test(json, built_in_types_are_registered_where_they_are_needed)
{
    quern_world *world = setup_world();
    must(read_into(world, "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {\"disabled\": true}},"
                          "{\"id\": 1, \"components\": {}, \"children\": {\"parent\": [0]}}]}"));
    quern_entity entities[2];
    cr_assert_eq(quern_world_entities(world, entities, 2), 2u);
    cr_assert_not(quern_entity_is_active(world, entities[0]));
    cr_assert(quern_entity_equal(quern_entity_target(world, entities[0], quern_world_parent(world)),
                                 entities[1]));
    quern_world_destroy(world);
}

/* -------------------------------------------------------------------------------------- wrong input */

#define ENTITY(components) "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": " components "}]}"
#define THING(fields)      ENTITY("{\"Thing\": {" fields "}}")
#define TWO(rest)                                                                                          \
    "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}}, {\"id\": 1, \"components\": {}, " rest \
    "}]}"

Test(json, wrong_input_is_refused_and_says_where)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "no JSON, at byte 0 of 0"},
        {"{\"quern\": 1,, }",
         "no JSON, at byte 12 of 15 (line 1, byte 12 of it): a key in quotes was expected"},
        {ENTITY("{}") " x", "no JSON, at byte"},
        {"[]", "a world is an object"},
        {"{\"quern\": 1, \"entities\": [], \"entitys\": []}", "there is no member 'entitys'"},
        {TWO("\"childern\": {}"), "entity with id 1: there is no member of an entity 'childern'"},
        {TWO("\"id\": 1"), "the object has the key 'id' already"},
        {THING("\"i64\": 1, \"i64\": 1"), "the object has the key 'i64' already"},
        {THING("\"place.turn\": 1"), "no field 'place.turn'"},
        {THING("\"place\": {\"at.x\": 1}"), "no field 'place.at.x'"},
        {THING("\"i64\": 9223372036854775808"), "'i64' of 'Thing' cannot hold '9223372036854775808'"},
        {THING("\"u64\": 18446744073709551616"), "'u64' of 'Thing' cannot hold '18446744073709551616'"},
        {THING("\"u64\": 1e20"), "'u64' of 'Thing' cannot be '1e20'"},
        {THING("\"i64\": 1e-1"), "'i64' of 'Thing' cannot be '1e-1'"},
        {THING("\"f64\": 1e400"), "'f64' of 'Thing' cannot hold '1e400'"},
        {THING("\"f64\": -1e400"), "'f64' of 'Thing' cannot hold '-1e400'"},
        {THING("\"f32\": 3.5e38"), "'f32' of 'Thing' cannot hold '3.5e38'"},
        {THING("\"title\": [1, 2, 3, 4, 5, 6, 7, 1.5]"), "bytes from 0 to 255"},
        {THING("\"title\": [1, 2, 3, 4, 5, 6, 7, -1]"), "bytes from 0 to 255"},
        {THING("\"title\": \"a\\u0000b\""), "U+0000"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 9007199254740992, \"components\": {}}]}", "no 'id'"},
        {"{\"quern\": 1.5, \"entities\": []}", "version 1.5"},
        {"{\"quern\": 2, \"entities\": []}", "version 2"},
        {"{\"quern\": 1, \"entities\": {}}", "a world is an object"},
        {"{\"quern\": 1, \"entities\": [], \"resources\": 1}", "'resources' must be an object"},
        {"{\"quern\": 1, \"entities\": [], \"resources\": {\"score\": {}}}", "no resource 'score'"},
        {"{\"quern\": 1, \"entities\": [], \"resources\": {\"rules\": {\"gravity\": \"x\"}}}",
         "expected a number"},
        {"{\"quern\": 1, \"entities\": [{}]}", "entity 0 of the list has no 'id'"},
        {"{\"quern\": 1, \"entities\": [7]}", "no 'id'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 1.5, \"components\": {}}]}", "no 'id'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": -1, \"components\": {}}]}", "no 'id'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 1}]}",
         "entity with id 1: an entity has an object 'components'"},
        {ENTITY("{\"Nothing\": {}}"), "entity with id 0: there is no component 'Nothing'"},
        {ENTITY("{\"parent\": {}}"), "'parent' is a component that the world keeps itself"},
        {ENTITY("{\"tag\": 1}"), "'tag' is a tag and must be true"},
        {ENTITY("{\"blob\": \"00\"}"), "a string of its 5 bytes"},
        {ENTITY("{\"blob\": \"00ff10a0bG\"}"), "a string of its 5 bytes"},
        {ENTITY("{\"blob\": 7}"), "a string of its 5 bytes"},
        {ENTITY("{\"Thing\": []}"), "'Thing' must be an object"},
        {THING("\"i65\": 1"), "'Thing': there is no field 'i65'"},
        {THING("\"place\": {\"at\": {\"z\": 1}}"), "no field 'place.at.z'"},
        {THING("\"place\": {\"at\": 1}"), "no field 'place.at'"},
        {THING("\"place\": {\"turn\": 128}"), "'place.turn' of 'Thing' cannot hold '128'"},
        {THING("\"i64\": 1.5"), "'i64' of 'Thing' cannot be '1.5'"},
        {THING("\"i64\": {}"), "must be a number, a string or a bool"},
        {THING("\"i64\": null"), "must be a number, a string or a bool"},
        {THING("\"i64\": 1e300"), "'i64' of 'Thing' cannot"},
        {THING("\"u64\": -1"), "'u64' of 'Thing' cannot hold '-1'"},
        {THING("\"f32\": 1e300"), "'f32' of 'Thing' cannot hold"},
        {THING("\"flags\": [true]"), "'flags' of 'Thing' must be an array of 2"},
        {THING("\"flags\": true"), "'flags' of 'Thing' must be an array of 2"},
        {THING("\"flags\": [true, 2]"), "'flags[1]' of 'Thing' cannot be '2'"},
        {THING("\"mood\": \"sad\""), "expected calm, angry"},
        {THING("\"title\": \"12345678\""), "has room for 7 bytes"},
        {THING("\"title\": 1"), "'title' of 'Thing' must be a string"},
        {THING("\"title\": [1, 2]"), "an array of all its bytes"},
        {THING("\"title\": [1, 2, 3, 4, 5, 6, 7, 256]"), "bytes from 0 to 255"},
        {THING("\"friend\": 1"), "'friend' of 'Thing' must be null or the id"},
        {THING("\"friend\": \"1:1\""), "'friend' of 'Thing' must be null or the id"},
        {THING("\"others\": [0, 0.5]"), "'others[1]' of 'Thing' must be null or the id"},
        {THING("\"speed\": 11"), "from 0 to 10"},
        {TWO("\"disabled\": 1"), "an array 'disabled'"},
        {TWO("\"disabled\": [\"toggle\"]"), "'disabled' names 'toggle', which is no component of it"},
        {TWO("\"disabled\": [7]"), "'disabled' names ''"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {\"tag\": true}, \"disabled\": "
         "[\"tag\"]}]}",
         "component 'tag' cannot be disabled"},
        {TWO("\"children\": []"), "'children' must be an object"},
        {TWO("\"children\": {\"hates\": [0]}"), "there is no relation 'hates'"},
        {TWO("\"children\": {\"parent\": 0}"), "must be an array of ids"},
        {TWO("\"children\": {\"parent\": [2]}"), "are ids of entities that are in the JSON"},
        {TWO("\"children\": {\"parent\": [1]}"), "is named as a child by 'parent' twice, or of itself"},
        {TWO("\"children\": {\"likes\": [0, 0]}"), "is named as a child by 'likes' twice"},
        {TWO("\"name\": 7"), "'name' must be a string"},
        {TWO("\"name\": \"a/b\""), "has a '/'"},
        {TWO("\"name\": \"taken\""), "a root of the world is named 'taken'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 0, \"name\": \"a\", \"components\": {}},"
         "{\"id\": 1, \"name\": \"a\", \"components\": {}}]}",
         "two siblings in the JSON are named 'a'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}, \"children\": {\"parent\": [1]}},"
         "{\"id\": 1, \"components\": {}, \"children\": {\"parent\": [0]}}]}",
         "is its own ancestor by 'parent'"},
        {"{\"quern\": 1, \"entities\": [{\"id\": 4, \"components\": {}}, {\"id\": 4, \"components\": {}}]}",
         "two entities have the id 4"},
    };
    const scene at = open_scene(NULL);
    fill_scene(&at, 99);
    must(quern_entity_set_name(at.world, setup_entity(at.world), "taken"));
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        written(at.world, 0);
        const int owners = owner_count;
        cr_assert_neq(read_into(at.world, cases[i].text), QUERN_OK, "%s", cases[i].text);
        cr_assert_not_null(strstr(quern_error_message(), cases[i].said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_str_eq(written(at.world, 1), texts[0]);
        cr_assert_eq(owner_count, owners);
        assert_valid(at.world);
    }
    quern_world_destroy(at.world);
}

Test(json, relations_without_levels_may_be_circles)
{
    const scene at = open_scene(NULL);
    must(read_into(
        at.world,
        "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}, \"children\": {\"likes\": [1]}},"
        "{\"id\": 1, \"components\": {}, \"children\": {\"likes\": [0]}}]}"));
    quern_world_destroy(at.world);
}

Test(json, what_is_not_known_is_left_out_and_listed)
{
    const scene at = open_scene(NULL);
    char list[512];
    quern_buffer buffer = {list, sizeof list, 0};
    const quern_json_options options = {.leaves_out_unknown = true, .left_out = quern_sink_buffer(&buffer)};
    static const char text[] = "{\"quern\": 1, \"resources\": {\"score\": {}}, \"entities\": [{\"id\": 0, "
                               "\"components\": {\"Other\": {},"
                               "\"Thing\": {\"i64\": 3, \"old\": 1}}, \"disabled\": [\"Other\"], "
                               "\"children\": {\"hates\": [0]}}]}";
    must(quern_json_read_world(at.world, text, sizeof text - 1, &options));
    cr_assert_str_eq(list, "component 'Other'\nfield 'old' of Thing\nresource 'score'\nrelation 'hates'\n");
    quern_entity entity;
    cr_assert_eq(quern_world_entities(at.world, &entity, 1), 1u);
    cr_assert_eq(((const Thing *)quern_entity_get(at.world, entity, at.thing))->i64, 3);
    quern_world_destroy(at.world);
}

static void clear_nothing(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

Test(json, types_with_hooks_and_without_fields_are_refused_by_name)
{
    const scene at = open_scene(NULL);
    quern_component hooked;
    const quern_component_def def = {
        .name = "hooked", .size_bytes = 8, .hooks = {.destroy = clear_nothing}};
    must(quern_component_register(at.world, &def, &hooked));
    setup_entity_with(at.world, &hooked, 1);
    char text[256];
    quern_buffer buffer = {text, sizeof text, 0};
    assert_refused(at.world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_json_write_world(at.world, quern_sink_buffer(&buffer)));
    cr_assert_not_null(strstr(quern_error_message(), "'hooked' has hooks and no described fields"));
    assert_refused(at.world, QUERN_ERROR_INVALID_ARGUMENT,
                   read_into(at.world, ENTITY("{\"hooked\": \"0011223344556677\"}")));
    quern_world_destroy(at.world);
}

/* ------------------------------------------------------------------------------------------- parsing */

static quern_result read_thing(const scene *at, Thing *thing, const char *text)
{
    quern_type_info type;
    must(quern_component_get_info(at->world, at->thing, &type));
    return quern_json_read_value(at->world, &type, thing, text, strlen(text), NULL);
}

/* After the first byte that cannot be: each is refused there, and says what was expected. */
Test(json, what_is_no_json_is_refused_at_the_byte)
{
    static const struct {
        const char *text;
        unsigned at;
        const char *said;
    } cases[] = {
        {"", 0, "a value was expected"},
        {"  ", 2, "a value was expected"},
        {"{", 1, "a key in quotes was expected"},
        {"{}x", 2, "the end of the text was expected"},
        {"{} {}", 3, "the end of the text was expected"},
        {"{\"i64\"}", 6, "':' was expected"},
        {"{\"i64\": }", 8, "a value was expected"},
        {"{\"i64\": 1,}", 10, "a key in quotes was expected"},
        {"{\"i64\": 1 2}", 10, "',' or '}' was expected"},
        {"{\"i64\": 1]", 9, "',' or '}' was expected"},
        {"{\"flags\": [1,]}", 13, "a value was expected"},
        {"{\"flags\": [1}", 12, "',' or ']' was expected"},
        {"{\"flags\": [1 2]}", 13, "',' or ']' was expected"},
        {"{, \"i64\": 1}", 1, "a key in quotes was expected"},
        {"{i64: 1}", 1, "a key in quotes was expected"},
        {"{\"i64\": 01}", 9, "',' or '}' was expected"},
        {"{\"i64\": -01}", 10, "',' or '}' was expected"},
        {"{\"i64\": 5.}", 8, "a value was expected"},
        {"{\"i64\": .5}", 8, "a value was expected"},
        {"{\"i64\": 1.e1}", 8, "a value was expected"},
        {"{\"i64\": +5}", 8, "a value was expected"},
        {"{\"i64\": -}", 8, "a value was expected"},
        {"{\"i64\": --5}", 8, "a value was expected"},
        {"{\"i64\": 1e}", 8, "a value was expected"},
        {"{\"i64\": 1e+}", 8, "a value was expected"},
        {"{\"i64\": 0x10}", 9, "',' or '}' was expected"},
        {"{\"f64\": NaN}", 8, "a value was expected"},
        {"{\"f64\": Infinity}", 8, "a value was expected"},
        {"{\"flags\": [True]}", 11, "a value was expected"},
        {"{\"flags\": [truer]}", 15, "',' or ']' was expected"},
        {"{\"title\": \"abc}", 15, "a string does not end"},
        {"{\"title\": \"a\tb\"}", 12, "control characters"},
        {"{\"title\": \"\\x\"}", 12, "there is no such escape"},
        {"{\"title\": \"\\", 12, "there is no such escape"},
        {"{\"title\": \"\\u12g4\"}", 12, "four hexadecimal digits"},
        {"{\"title\": \"\\u12\"}", 12, "four hexadecimal digits"},
        {"{\"title\": \"\\u0000\"}", 12, "U+0000"},
        {"{\"title\": \"\\ud83d\"}", 12, "surrogate"},
        {"{\"title\": \"\\ud83d\\u0041\"}", 12, "surrogate"},
        {"{\"title\": \"\\ud83d\\ue000\"}", 12, "surrogate"},
        {"{\"title\": \"\\udc00\"}", 12, "surrogate"},
        {"{\"x\": {\"a\": 1, \"b\": {\"a\": 1}, \"a\": {}}}", 31, "the object has the key 'a' already"},
        {"{\"a\": 1, \"\\u0061\": 1}", 10, "the object has the key 'a' already"},
        {"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"1\":0}", 50,
         "the object has the key '1' already"},
        {"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"7\":0}", 44,
         "the object has the key '7' already"},
        {"# comment", 0, "a value was expected"},
    };
    const scene at = open_scene(NULL);
    Thing thing, before;
    memset(&thing, 0, sizeof thing);
    before = thing;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[64];
        (void)snprintf(said, sizeof said, "at byte %u of", cases[i].at);
        cr_assert_eq(read_thing(&at, &thing, cases[i].text), QUERN_ERROR_INVALID_ARGUMENT, "%s",
                     cases[i].text);
        cr_assert_not_null(strstr(quern_error_message(), said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_not_null(strstr(quern_error_message(), cases[i].said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_eq(memcmp(&thing, &before, sizeof thing), 0);
    }
    cr_assert_eq(read_thing(&at, &thing, "{\"i64\":\n 1,\n  x}"), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "(line 3, byte 2 of it)"), "%s",
                       quern_error_message());
    quern_type_info type;
    must(quern_component_get_info(at.world, at.thing, &type));
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, "{}\0", 3, NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, "{\"title\": \"a\0b\"}", 16, NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    quern_world_destroy(at.world);
}

Test(json, strings_are_decoded)
{
    static const struct {
        const char *text, *title;
    } cases[] = {
        {"{\"title\": \"\"}", ""},
        {"{\"title\": \"\\\"\\\\\\/\"}", "\"\\/"},
        {"{\"title\": \"\\b\\f\\n\\r\\t\"}", "\b\f\n\r\t"},
        {"{\"title\": \"\\u0041\\u00e4\\u20AC\"}", "A\xC3\xA4\xE2\x82\xAC"},
        {"{\"title\": \"\\u007f\\u0080\"}", "\x7f\xC2\x80"},
        {"{\"title\": \"\\u07ff\\u0800\"}", "\xDF\xBF\xE0\xA0\x80"},
        {"{\"title\": \"\\uD83D\\ude00\"}", "\xF0\x9F\x98\x80"},
        {"{\"title\": \"\\ud800\\udc00x\"}", "\xF0\x90\x80\x80x"},
        {"{\"title\": \"\\udbff\\udfff\"}", "\xF4\x8F\xBF\xBF"},
        {" {\t\"titl\\u0065\"\r\n:\n\"x\" } ", "x"},
        {"\xEF\xBB\xBF{\"title\": \"bom\"}", "bom"},
    };
    const scene at = open_scene(NULL);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Thing thing;
        memset(&thing, 7, sizeof thing);
        cr_assert_eq(read_thing(&at, &thing, cases[i].text), QUERN_OK, "%s: %s", cases[i].text,
                     quern_error_message());
        cr_assert_str_eq(thing.title, cases[i].title);
    }
    quern_world_destroy(at.world);
}

Test(json, whole_numbers_are_exact_in_each_way_to_write_them)
{
    static const struct {
        const char *number;
        int64_t value;
    } cases[] = {
        {"9007199254740993", 9007199254740993},
        {"-9007199254740993", -9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-9223372036854775808.000", INT64_MIN},
        {"9223372036854775.807e3", INT64_MAX},
        {"92233720368547758070e-1", INT64_MAX},
        {"0", 0},
        {"-0", 0},
        {"-0.0", 0},
        {"0e999999999999999999999", 0},
        {"0.000e-5", 0},
        {"1e2", 100},
        {"1E+2", 100},
        {"100e-2", 1},
        {"0.5e1", 5},
        {"0.0012e4", 12},
        {"12.50e1", 125},
        {"1000000000000000000000000e-22", 100},
        {"\"9007199254740993\"", 9007199254740993},
    };
    static const char *const wrong[] = {"1.5",
                                        "0.5",
                                        "15e-1",
                                        "1e-1",
                                        "1e-999999999999999999999",
                                        "1e20",
                                        "1e99999",
                                        "0.1e0",
                                        "12.05e1",
                                        "9223372036854775808",
                                        "1e18446744073709551618"};
    const scene at = open_scene(NULL);
    char text[128];
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Thing thing = {.i64 = 77};
        (void)snprintf(text, sizeof text, "{\"i64\": %s}", cases[i].number);
        cr_assert_eq(read_thing(&at, &thing, text), QUERN_OK, "%s: %s", text, quern_error_message());
        cr_assert_eq(thing.i64, cases[i].value, "%s is %lld", text, (long long)thing.i64);
    }
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Thing thing = {.i64 = 77};
        (void)snprintf(text, sizeof text, "{\"i64\": %s}", wrong[i]);
        cr_assert_eq(read_thing(&at, &thing, text), QUERN_ERROR_INVALID_ARGUMENT, "%s", text);
        cr_assert_eq(thing.i64, 77);
    }
    Thing thing = {.u64 = 0};
    must(read_thing(&at, &thing, "{\"u64\": 18446744073709551615, \"flags\": [1.0, 0e5]}"));
    cr_assert(thing.u64 == UINT64_MAX && thing.flags[0] && !thing.flags[1]);
    quern_world_destroy(at.world);
}

/* A float is rounded once, from its digits: by way of a double, this one becomes 16777216. */
Test(json, floats_are_rounded_once)
{
    const scene at = open_scene(NULL);
    Thing thing = {.f32 = 0};
    must(read_thing(&at, &thing, "{\"f32\": 16777217.000000001, \"f64\": 1e-400}"));
    cr_assert_eq(thing.f32, 16777218.0f);
    cr_assert_eq(thing.f64, 0);
    char *text = malloc(2000100);
    int used = sprintf(text, "{\"f64\": ");
    memset(text + used, '9', 2000000);
    (void)sprintf(text + used + 2000000, "}");
    cr_assert_eq(read_thing(&at, &thing, text), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "'f64' of 'Thing' cannot be a number of 2000000"));
    free(text);
    quern_world_destroy(at.world);
}

/* Many members, and deep nesting, in what is left out. */
Test(json, large_objects_and_deep_arrays_are_parsed)
{
    enum { MEMBERS = 20000, DEPTH = 100000 };
    const scene at = open_scene(NULL);
    const quern_json_options options = {.leaves_out_unknown = true};
    quern_type_info type;
    Thing thing = {.i64 = 0};
    must(quern_component_get_info(at.world, at.thing, &type));
    char *text = malloc(MEMBERS * 16 + 64);
    size_t used = (size_t)sprintf(text, "{\"i64\": 3");
    for (uint32_t i = 0; i < MEMBERS; i++)
        used += (size_t)sprintf(text + used, ", \"m%u\": 0", i * 7919 % MEMBERS);
    (void)sprintf(text + used, "}");
    must(quern_json_read_value(at.world, &type, &thing, text, used + 1, &options));
    cr_assert_eq(thing.i64, 3);
    used += (size_t)sprintf(text + used, ", \"m17\": 0}");
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, text, used, &options),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "the key 'm17' already"), "%s", quern_error_message());
    used = (size_t)sprintf(text, "{\"deep\": ");
    memset(text + used, '[', DEPTH);
    memset(text + used + DEPTH, ']', DEPTH);
    used += 2 * DEPTH + (size_t)sprintf(text + used + 2 * DEPTH, ", \"i64\": 5}");
    must(quern_json_read_value(at.world, &type, &thing, text, used, &options));
    cr_assert_eq(thing.i64, 5);
    free(text);
    quern_world_destroy(at.world);
}

/* Fields with a common part of their names become members of one object, whatever lies between them. */
Test(json, parts_of_a_struct_that_are_apart_are_one_object)
{
    quern_world *world = setup_world();
    const quern_component_def def = {.name = "mixed",
                                     .size_bytes = 20,
                                     .alignment_bytes = 4,
                                     .fields = {{"a.x", QUERN_FIELD_U32, 0, .count = 1},
                                                {"b", QUERN_FIELD_U32, 4, .count = 1},
                                                {"a.in.y", QUERN_FIELD_U32, 8, .count = 1},
                                                {"ab.z", QUERN_FIELD_U32, 12, .count = 1},
                                                {"a.in.z", QUERN_FIELD_U32, 16, .count = 1}}};
    quern_component component;
    must(quern_component_register(world, &def, &component));
    quern_type_info type;
    must(quern_component_get_info(world, component, &type));
    const uint32_t value[5] = {1, 2, 3, 4, 5};
    uint32_t again[5] = {0};
    char text[256];
    quern_buffer buffer = {text, sizeof text, 0};
    must(quern_json_write_value(world, &type, value, quern_sink_buffer(&buffer)));
    cr_assert_str_eq(text,
                     "{\"a\": {\"x\": 1, \"in\": {\"y\": 3, \"z\": 5}}, \"b\": 2, \"ab\": {\"z\": 4}}");
    must(quern_json_read_value(world, &type, again, text, strlen(text), NULL));
    cr_assert_arr_eq(again, value, sizeof value);
    quern_world_destroy(world);
}

/* --------------------------------------------------------------------------------- without memory */

static void load_without_memory(uint64_t call, bool *has_passed)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    const scene at = open_scene(&allocator);
    setup_entity(at.world);
    written(at.world, 0);
    const quern_json_options options = {.allocator = allocator};
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + call);
    const quern_result result =
        quern_json_read_world(at.world, small_world, sizeof small_world - 1, &options);
    *has_passed = failing_allocator_failed_count(memory) == 0;
    failing_allocator_heal(memory);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%d: %s", (int)result,
              quern_error_message());
    assert_valid(at.world);
    if (result != QUERN_OK) {
        cr_assert_str_eq(written(at.world, 1), texts[0], "call %llu", (unsigned long long)call);
        const quern_result again =
            quern_json_read_world(at.world, small_world, sizeof small_world - 1, &options);
        cr_assert_eq(again, QUERN_OK, "call %llu: %d", (unsigned long long)call, (int)again);
    }
    cr_assert_eq(stats_of_world(at.world).entity_count, 4u);
    quern_world_destroy(at.world);
    failing_allocator_close(memory);
    cr_assert_eq(owner_count, 0);
}

Test(json, without_memory_nothing_is_read)
{
    bool has_passed = false;
    uint64_t call = 1;
    for (; !has_passed; call++)
        load_without_memory(call, &has_passed);
    cr_assert_gt(call, 5u);
}

/* ---------------------------------------------------------------------------- values, entities, calls */

Test(json, values)
{
    const scene at = open_scene(NULL);
    quern_type_info type;
    char text[1024];
    quern_buffer buffer = {text, sizeof text, 0};
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
    must(quern_json_write_value(at.world, &type, &thing, quern_sink_buffer(&buffer)));
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

Test(json, random_floats_come_back)
{
    const scene at = open_scene(NULL);
    random_source random = {5};
    quern_type_info type;
    must(quern_component_get_info(at.world, at.thing, &type));
    for (uint32_t i = 0; i < 2000; i++) {
        Thing thing = {.f32 = 0}, again = {.f32 = 0};
        char text[1024];
        quern_buffer buffer = {text, sizeof text, 0};
        const uint64_t wide = random_next(&random);
        const uint32_t narrow = (uint32_t)random_next(&random);
        memcpy(&thing.f64, &wide, sizeof wide);
        memcpy(&thing.f32, &narrow, sizeof narrow);
        must(quern_json_write_value(at.world, &type, &thing, quern_sink_buffer(&buffer)));
        must(quern_json_read_value(at.world, &type, &again, text, strlen(text), NULL));
        cr_assert(memcmp(&thing.f64, &again.f64, 8) == 0 && memcmp(&thing.f32, &again.f32, 4) == 0, "%s",
                  text);
    }
    quern_world_destroy(at.world);
}

Test(json, an_entity_is_changed_as_a_whole)
{
    const scene at = open_scene(NULL);
    const quern_entity entity = setup_entity_with(at.world, (quern_component[]){at.toggle, at.owner}, 2);
    char text[1024];
    quern_buffer buffer = {text, sizeof text, 0};
    must(quern_entity_set_name(at.world, entity, "one"));
    static const char change[] =
        "{\"components\": {\"toggle\": {\"n\": 4}, \"Owner\": {\"points\": 6}, \"blob\": "
        "\"0102030405\", \"tag\": true}, \"disabled\": [\"toggle\"]}";
    must(quern_json_read_entity(at.world, entity, change, sizeof change - 1, NULL));
    must(quern_json_write_entity(at.world, entity, quern_sink_buffer(&buffer)));
    cr_assert_str_eq(
        text,
        "{\"name\": \"one\", \"components\": {\"blob\": \"0102030405\", \"tag\": true, \"toggle\": {\"n\": "
        "4}, \"Owner\": {\"points\": 6}}, \"disabled\": [\"toggle\"]}\n");
    cr_assert_eq(*((const Owner *)quern_entity_get(at.world, entity, at.owner))->owned, 42);
    static const char wrong[] = "{\"components\": {\"toggle\": {\"n\": 5}, \"blob\": 1}}";
    assert_refused(at.world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_json_read_entity(at.world, entity, wrong, sizeof wrong - 1, NULL));
    static const char friend_text[] = "{\"components\": {\"Thing\": {\"friend\": \"/one\"}}}";
    must(quern_json_read_entity(at.world, entity, friend_text, sizeof friend_text - 1, NULL));
    cr_assert(
        quern_entity_equal(((const Thing *)quern_entity_get(at.world, entity, at.thing))->friend, entity));
    must(quern_entity_add(at.world, entity, at.handed, NULL));
    static const char handed[] = "{\"components\": {\"Handed\": {\"points\": 1}}}";
    assert_refused(at.world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_json_read_entity(at.world, entity, handed, sizeof handed - 1, NULL));
    must(quern_entity_destroy(at.world, entity));
    assert_refused(at.world, QUERN_ERROR_STALE_ENTITY,
                   quern_json_read_entity(at.world, entity, change, sizeof change - 1, NULL));
    assert_refused(at.world, QUERN_ERROR_STALE_ENTITY,
                   quern_json_write_entity(at.world, entity, quern_sink_buffer(&buffer)));
    quern_world_destroy(at.world);
    cr_assert_eq(owner_count, 0);
}

static bool write_nothing(void *user_data, const char *text, size_t bytes)
{
    (void)user_data, (void)text, (void)bytes;
    return false;
}

Test(json, wrong_calls_are_refused)
{
    const scene at = open_scene(NULL);
    char text[64];
    quern_buffer buffer = {text, sizeof text, 0};
    const quern_sink sink = quern_sink_buffer(&buffer), broken = {.write = write_nothing};
    const quern_json_options half = {.allocator = {.allocate = quern_allocator_default().allocate}};
    quern_type_info type;
    uint32_t value = 0;
    must(quern_component_get_info(at.world, at.toggle, &type));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_json_write_world(NULL, sink));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT, quern_json_write_world(at.world, (quern_sink){0}));
    assert_refused(at.world, QUERN_ERROR_FILE, quern_json_write_world(at.world, broken));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_json_write_value(at.world, NULL, &value, sink));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_json_write_value(at.world, &type, NULL, sink));
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_json_read_world(NULL, "{}", 2, NULL));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT, quern_json_read_world(at.world, NULL, 2, NULL));
    assert_refused(at.world, QUERN_ERROR_INVALID_ARGUMENT, quern_json_read_world(at.world, "{}", 2, &half));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_json_read_value(at.world, NULL, &value, "{}", 2, NULL));
    assert_refused(at.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_json_read_value(at.world, &type, NULL, "{}", 2, NULL));
    quern_world_destroy(at.world);
}

Test(json, commands_can_be_discarded)
{
    const scene at = open_scene(NULL);
    const quern_entity entity = setup_entity(at.world);
    quern_commands *commands = quern_world_commands(at.world);
    Owner owner;
    owner_construct(&owner, 1, NULL);
    must(quern_commands_add(commands, entity, at.owner, &owner));
    must(quern_commands_add(commands, entity, at.handed, &owner));
    cr_assert_not(quern_entity_is_null(quern_commands_create(commands)));
    must(quern_world_discard_commands(at.world));
    cr_assert_eq(owner_count, 0, "also what was handed over");
    must(quern_world_flush(at.world));
    cr_assert_eq(quern_entity_component_count(at.world, entity), 0u);
    cr_assert_eq(stats_of_world(at.world).entity_count, 1u);
    commands = quern_world_commands(at.world);
    must(quern_commands_add(commands, entity, at.tag, NULL));
    must(quern_world_flush(at.world));
    cr_assert(quern_entity_has(at.world, entity, at.tag), "it goes on");
    assert_refused(NULL, QUERN_ERROR_NULL_ARGUMENT, quern_world_discard_commands(NULL));
    quern_world_destroy(at.world);
}
