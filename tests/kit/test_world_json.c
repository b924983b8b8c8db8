/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json.h"
#include "tests/kit/json_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* JSON of worlds. */

TestSuite(json, .fini = close_texts);

/* Writes the JSON of a world. The text is valid until the slot is used again. */
static const char *written(const quern_world *world, uint32_t slot)
{
    quern_text_buffer buffer = {NULL, 0, 0};
    must(quern_json_write_world(world, quern_sink_text(&buffer)));
    const size_t bytes = buffer.length_bytes + 1;
    free(texts[slot]);
    texts[slot] = malloc(bytes);
    buffer = (quern_text_buffer){texts[slot], bytes, 0};
    must(quern_json_write_world(world, quern_sink_text(&buffer)));
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
        must(quern_entity_set_component_enabled(at->world, entity, at->toggle, random_chance(random, 50)));
    }
    if (random_chance(random, 20)) must(quern_entity_add(at->world, entity, at->owner, NULL));
    if (random_chance(random, 20)) must(quern_entity_add(at->world, entity, at->handed, NULL));
    if (random_chance(random, 10))
        must(quern_entity_add(at->world, entity, quern_world_disabled_tag(at->world), NULL));
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
        if (random_chance(&random, 60) && other != i) /* some would be cycles */
            (void)quern_entity_relate(at->world, entities[i], at->parent, entities[other]);
        if (random_chance(&random, 30) && other != i)
            must(quern_entity_relate(at->world, entities[i], at->likes, entities[other]));
        snprintf(name, sizeof name, "n \"%u", random_below(&random, 20));
        if (random_chance(&random, 50)) (void)quern_entity_set_name(at->world, entities[i], name);
    }
    random_source edges = {seed + 1000};
    for (uint32_t i = 0; i < COUNT; i++)
        (void)quern_entity_relate(at->world, entities[random_below(&edges, 9)], at->knows,
                                  entities[random_below(&edges, COUNT)]);
    for (uint32_t i = 0; i < COUNT; i++) /* leaves stale handles, and gaps between slots */
        if (random_chance(&random, 10) && quern_entity_is_alive(at->world, entities[i]))
            must(quern_entity_destroy(at->world, entities[i]));
    memcpy(quern_resource_get(at->world, at->rules), &entities[7], sizeof entities[7]);
    ((float *)quern_resource_get(at->world, at->rules))[2] = -9.81f;
}

/* In a new world, entities get slots in the order of the list, so writing it again gives the same text. The text
 * contains the whole content and nothing specific to a world. */
Test(json, random_worlds_survive_a_round_trip)
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
        cr_assert_eq(stats_of_world(to.world).edge_count, stats_of_world(from.world).edge_count);
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
    "{\"id\": 30, \"components\": {\"blob\": \"00fF10A0b1\", \"Owner\": {\"points\": 9}, \"Handed\": "
    "{}}}]}";

Test(json, ids_become_handles_of_the_reading_world)
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
    cr_assert_eq(quern_entity_list_sources(at.world, arena, at.parent, children, 3), 2u);
    cr_assert(quern_entity_equal(children[0], third) && quern_entity_equal(children[1], gun));
    cr_assert_eq(quern_entity_list_sources(at.world, gun, at.likes, children, 3), 2u);
    cr_assert(quern_entity_equal(children[0], arena) && quern_entity_equal(children[1], third));
    const Thing *thing = quern_entity_get(at.world, gun, at.thing);
    cr_assert(quern_entity_equal(thing->friend, third) && quern_entity_equal(thing->others[0], arena));
    cr_assert(quern_entity_is_null(thing->others[1]) && thing->mood == MOOD_ANGRY && thing->i64 == 0);
    cr_assert_not(quern_entity_is_component_enabled(at.world, gun, at.toggle));
    cr_assert_eq(memcmp(quern_entity_get(at.world, third, at.blob), "\x00\xff\x10\xa0\xb1", 5), 0);
    cr_assert_eq(((const Owner *)quern_entity_get(at.world, third, at.owner))->points, 9u);
    cr_assert_eq(*((const Owner *)quern_entity_get(at.world, third, at.owner))->owned, 42);
    cr_assert_eq(((const Owner *)quern_entity_get(at.world, third, at.handed))->points, 5u);
    cr_assert(quern_entity_equal(*(const quern_entity *)quern_resource_get(at.world, at.rules), gun));
    cr_assert_eq(((const float *)quern_resource_get(at.world, at.rules))[2], 2);
    must_refuse(SIBLING_NAME_TAKEN, at.world, read_into(at.world, small_world));
    quern_world_destroy(at.world);
    cr_assert_eq(owner_count, 0);
}

Test(json, children_may_have_names_of_roots)
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

Test(json, built_in_types_are_registered_if_used)
{
    quern_world *world = setup_world();
    must(read_into(world, "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {\"disabled\": true}},"
                          "{\"id\": 1, \"components\": {}, \"children\": {\"parent\": [0]}}]}"));
    quern_entity entities[2];
    cr_assert_eq(quern_world_list_entities(world, entities, 2), 2u);
    cr_assert_not(quern_entity_is_enabled(world, entities[0]));
    cr_assert(quern_entity_equal(quern_entity_target(world, entities[0], quern_world_parent(world)),
                                 entities[1]));
    quern_world_destroy(world);
}

Test(json, required_components_are_added_and_get_their_defaults)
{
    typedef struct Pair {
        int32_t a, b;
    } Pair;
    static const Pair pair = {3, 4};
    const quern_component_def def = {QUERN_TYPE(Pair), .fields = QUERN_FIELDS(Pair, a, b),
                                     .default_value = &pair};
    quern_world *world = setup_world();
    quern_component component;
    must(quern_component_register(world, &def, &component));
    make_component(world, .name = "user", .required = {component});
    must(read_into(world, "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {\"user\": true}},"
                          "{\"id\": 1, \"components\": {\"user\": true, \"Pair\": {\"b\": 9}}}]}"));
    quern_entity entities[2];
    cr_assert_eq(quern_world_list_entities(world, entities, 2), 2u);
    for (uint32_t i = 0; i < 2; i++) {
        const Pair *value = quern_entity_get(world, entities[i], component);
        cr_assert_not_null(value);
        cr_assert_eq(value->a, 3);
        cr_assert_eq(value->b, i == 0 ? 4 : 9);
    }
    quern_world_destroy(world);
}

/* -------------------------------------------------------------------------------------- wrong input */

#define ENTITY(components) "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": " components "}]}"
#define THING(fields)      ENTITY("{\"Thing\": {" fields "}}")
#define TWO(rest)                                                                                          \
    "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}}, {\"id\": 1, \"components\": {}, " rest \
    "}]}"

static const struct {
    const char *text, *said;
} invalid_worlds[] = {
    {"", "not valid JSON at byte 0 of 0"},
    {"{\"quern\": 1,, }",
     "not valid JSON at byte 12 of 15 (line 1, column 13): a key in quotes was expected"},
    {ENTITY("{}") " x", "not valid JSON at byte"},
    {"[]", "a world must be an object"},
    {"{\"quern\": 1, \"entities\": [], \"entitys\": []}", "unknown member 'entitys'"},
    {TWO("\"childern\": {}"), "entity with id 1: unknown member of an entity 'childern'"},
    {TWO("\"id\": 1"), "the object has the key 'id' already"},
    {THING("\"i64\": 1, \"i64\": 1"), "the object has the key 'i64' already"},
    {THING("\"place.turn\": 1"), "unknown field 'place.turn'"},
    {THING("\"place\": {\"at.x\": 1}"), "unknown field 'place.at.x'"},
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
    {"{\"quern\": 1, \"entities\": {}}", "a world must be an object"},
    {"{\"quern\": 1, \"entities\": [], \"resources\": 1}", "'resources' must be an object"},
    {"{\"quern\": 1, \"entities\": [], \"resources\": {\"score\": {}}}", "unknown resource 'score'"},
    {"{\"quern\": 1, \"entities\": [], \"resources\": {\"rules\": {\"gravity\": \"x\"}}}",
     "expected a number"},
    {"{\"quern\": 1, \"entities\": [{}]}", "entity 0 of 'entities' has no 'id'"},
    {"{\"quern\": 1, \"entities\": [7]}", "no 'id'"},
    {"{\"quern\": 1, \"entities\": [{\"id\": 1.5, \"components\": {}}]}", "no 'id'"},
    {"{\"quern\": 1, \"entities\": [{\"id\": -1, \"components\": {}}]}", "no 'id'"},
    {"{\"quern\": 1, \"entities\": [{\"id\": 1}]}",
     "entity with id 1: an entity must have an object 'components'"},
    {ENTITY("{\"Nothing\": {}}"), "entity with id 0: unknown component 'Nothing'"},
    {ENTITY("{\"parent\": {}}"), "component 'parent' is maintained by the world"},
    {ENTITY("{\"tag\": 1}"), "'tag' is a tag and must be true"},
    {ENTITY("{\"blob\": \"00\"}"), "a string of its 5 bytes"},
    {ENTITY("{\"blob\": \"00ff10a0bG\"}"), "a string of its 5 bytes"},
    {ENTITY("{\"blob\": 7}"), "a string of its 5 bytes"},
    {ENTITY("{\"Thing\": []}"), "'Thing' must be an object"},
    {THING("\"i65\": 1"), "'Thing': unknown field 'i65'"},
    {THING("\"tilte\": 1"), "to skip it; did you mean 'title'?"},
    {ENTITY("{\"Thingy\": {}}"), "to skip it; did you mean 'Thing'?"},
    {"{\"quern\": 1, \"entities\": [], \"resources\": {\"ruels\": {}}}",
     "to skip it; did you mean 'rules'?"},
    {TWO("\"children\": {\"paremt\": []}"),
     "unknown relation 'paremt': correct it, or set leaves_out_unknown to skip it; did you mean 'parent'?"},
    {THING("\"place\": {\"at\": {\"z\": 1}}"), "unknown field 'place.at.z'"},
    {THING("\"place\": {\"at\": 1}"), "unknown field 'place.at'"},
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
    {TWO("\"disabled\": 1"), "'disabled' of an entity must be an array"},
    {TWO("\"disabled\": [\"toggle\"]"), "'disabled' names 'toggle', which is not in 'components'"},
    {TWO("\"disabled\": [7]"), "'disabled' names ''"},
    {"{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {\"tag\": true}, \"disabled\": "
     "[\"tag\"]}]}",
     "component 'tag' cannot be disabled"},
    {TWO("\"children\": []"), "'children' must be an object"},
    {TWO("\"children\": {\"hates\": [0]}"), "unknown relation 'hates'"},
    {TWO("\"children\": {\"knows\": [0, 0]}"), "listed as a child by 'knows' twice"},
    {TWO("\"children\": {\"knows\": [1]}"), "or as its own child"},
    {ENTITY("{\"knows\": true}"), "component 'knows' is maintained by the world"},
    {TWO("\"children\": {\"parent\": 0}"), "must be an array of ids"},
    {TWO("\"children\": {\"parent\": [2]}"), "must be ids of entities in the JSON"},
    {TWO("\"children\": {\"parent\": [1]}"), "is listed as a child by 'parent' twice, or as its own child"},
    {TWO("\"children\": {\"likes\": [0, 0]}"), "is listed as a child by 'likes' twice"},
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

Test(json, invalid_input_fails_and_names_the_place)
{
    const scene at = open_scene(NULL);
    fill_scene(&at, 99);
    must(quern_entity_set_name(at.world, setup_entity(at.world), "taken"));
    for (uint32_t i = 0; i < sizeof invalid_worlds / sizeof invalid_worlds[0]; i++) {
        written(at.world, 0);
        const int owners = owner_count;
        cr_assert_neq(read_into(at.world, invalid_worlds[i].text), QUERN_OK, "%s", invalid_worlds[i].text);
        cr_assert_not_null(strstr(quern_error_message(), invalid_worlds[i].said), "%s: %s",
                           invalid_worlds[i].text, quern_error_message());
        cr_assert_str_eq(written(at.world, 1), texts[0]);
        cr_assert_eq(owner_count, owners);
        assert_valid(at.world);
    }
    quern_world_destroy(at.world);
}

Test(json, relations_without_levels_may_have_cycles)
{
    const scene at = open_scene(NULL);
    must(read_into(
        at.world,
        "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}, \"children\": {\"likes\": [1]}},"
        "{\"id\": 1, \"components\": {}, \"children\": {\"likes\": [0]}}]}"));
    quern_world_destroy(at.world);
}

Test(json, entities_may_be_listed_by_several_targets)
{
    const scene at = open_scene(NULL);
    must(read_into(at.world,
                   "{\"quern\": 1, \"entities\": [{\"id\": 0, \"components\": {}, \"children\": "
                   "{\"knows\": [2, 1]}}, {\"id\": 1, \"components\": {}, \"children\": {\"knows\": "
                   "[2, 0]}}, {\"id\": 2, \"components\": {}}]}"));
    assert_valid(at.world);
    quern_entity entities[3];
    cr_assert_eq(quern_world_list_entities(at.world, entities, 3), 3u);
    cr_assert_eq(quern_entity_target_count(at.world, entities[2], at.knows), 2u);
    cr_assert(quern_entity_has_target(at.world, entities[0], at.knows, entities[1]));
    cr_assert(quern_entity_has_target(at.world, entities[1], at.knows, entities[0]));
    cr_assert_eq(stats_of_world(at.world).edge_count, 4u);
    quern_world_destroy(at.world);
}

Test(json, unknown_names_are_left_out_and_listed)
{
    const scene at = open_scene(NULL);
    char list[512];
    quern_text_buffer buffer = {list, sizeof list, 0};
    const quern_json_options options = {.leaves_out_unknown = true, .left_out = quern_sink_text(&buffer)};
    static const char text[] = "{\"quern\": 1, \"resources\": {\"score\": {}}, \"entities\": [{\"id\": 0, "
                               "\"components\": {\"Other\": {},"
                               "\"Thing\": {\"i64\": 3, \"old\": 1}}, \"disabled\": [\"Other\"], "
                               "\"children\": {\"hates\": [0]}}]}";
    must(quern_json_read_world(at.world, text, sizeof text - 1, &options));
    cr_assert_str_eq(list, "component 'Other'\nfield 'old' of Thing\nresource 'score'\nrelation 'hates'\n");
    quern_entity entity;
    cr_assert_eq(quern_world_list_entities(at.world, &entity, 1), 1u);
    cr_assert_eq(((const Thing *)quern_entity_get(at.world, entity, at.thing))->i64, 3);
    quern_world_destroy(at.world);
}

static void clear_nothing(void *values, uint32_t count, void *user_data) {}

Test(json, types_with_hooks_and_no_fields_fail_by_name)
{
    const scene at = open_scene(NULL);
    quern_component hooked =
        make_component(at.world, .name = "hooked", .size_bytes = 8, .hooks = {.destroy = clear_nothing});
    setup_entity_with(at.world, &hooked, 1);
    char text[256];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must_refuse(INVALID_ARGUMENT, at.world, quern_json_write_world(at.world, quern_sink_text(&buffer)));
    cr_assert_not_null(strstr(quern_error_message(), "'hooked' has hooks and no described fields"));
    must_refuse(INVALID_ARGUMENT, at.world,
                read_into(at.world, ENTITY("{\"hooked\": \"0011223344556677\"}")));
    quern_world_destroy(at.world);
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
    failing_allocator_fail_at(memory, call);
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

Test(json, reading_without_memory_changes_nothing)
{
    bool has_passed = false;
    uint64_t call = 1;
    for (; !has_passed; call++)
        load_without_memory(call, &has_passed);
    cr_assert_gt(call, 5u);
}
