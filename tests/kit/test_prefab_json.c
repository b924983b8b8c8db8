/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json.h"
#include "tests/kit/json_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* JSON of prefabs. */

TestSuite(json_prefab, .fini = close_texts);

static quern_result read_prefab(const scene *at, const char *text, quern_prefab *out_prefab)
{
    return quern_json_read_prefab(at->world, text, strlen(text), NULL, out_prefab);
}

/* Writes the JSON of a tree. The text is valid until the slot is used again. */
static const char *written(const quern_world *world, quern_entity root, uint32_t slot)
{
    quern_text_buffer buffer = {NULL, 0, 0};
    must(quern_json_write_prefab(world, root, quern_sink_text(&buffer)));
    const size_t bytes = buffer.length_bytes + 1;
    free(texts[slot]);
    texts[slot] = malloc(bytes);
    buffer = (quern_text_buffer){texts[slot], bytes, 0};
    must(quern_json_write_prefab(world, root, quern_sink_text(&buffer)));
    return texts[slot];
}

static quern_component register_slot(const scene *at)
{
    quern_component slot;
    must(quern_prefab_slot_register(at->world, "muzzle", &slot));
    return slot;
}

/* Member 0 is the root, 1 "gun", 2 "left" below it, 3 "flag" below the root. */
static const char tower[] =
    "{\"quern\": 1, \"prefab\": {\"id\": 10, \"components\": {\"Thing\": {\"i64\": 7, \"place\": "
    "{\"turn\": "
    "3},\n"
    "  \"mood\": \"angry\", \"title\": \"base\", \"others\": [30, 20]}, \"tag\": true},\n"
    " \"children\": [\n"
    "  {\"id\": 20, \"name\": \"gun\", \"components\": {\"toggle\": {\"n\": 4}, \"blob\": "
    "\"00ff10a0b1\"},\n"
    "   \"disabled\": [\"toggle\"], \"targets\": {\"likes\": 10, \"knows\": [10, 30, \"/arena\"]},\n"
    "   \"children\": [{\"id\": 30, \"name\": \"left\", \"slot\": \"muzzle\",\n"
    "                 \"components\": {\"Thing\": {\"friend\": 10, \"others\": [\"/arena\", null]},\n"
    "                                \"Owner\": {\"points\": 8}}}]},\n"
    "  {\"name\": \"flag\", \"components\": {\"disabled\": true}}]}}";

enum { TOWER_MEMBERS = 4 };

static quern_entity make_arena(const scene *at)
{
    const quern_entity arena = setup_entity(at->world);
    must(quern_entity_set_name(at->world, arena, "arena"));
    return arena;
}

Test(json_prefab, a_described_tree_is_spawned)
{
    const scene at = open_scene(NULL);
    const quern_component muzzle = register_slot(&at);
    const quern_entity arena = make_arena(&at);
    quern_prefab prefab;
    quern_entity members[2 * TOWER_MEMBERS];
    must(read_prefab(&at, tower, &prefab));
    cr_assert_eq(quern_world_list_entities(at.world, NULL, 0), 1u, "no entity was created");
    cr_assert_eq(quern_prefab_member_count(at.world, prefab), (uint32_t)TOWER_MEMBERS);
    cr_assert_eq(quern_prefab_find_member(at.world, prefab, "gun/left"), 2u);
    cr_assert_eq(quern_prefab_find_member(at.world, prefab, "flag"), 3u);
    cr_assert_eq(quern_prefab_find_slot(at.world, prefab, muzzle), 2u);
    must(quern_prefab_spawn_many(at.world, prefab, 2, NULL, NULL, members));
    for (uint32_t i = 0; i < 2; i++) {
        const quern_entity *of = members + (size_t)i * TOWER_MEMBERS;
        const Thing *thing = quern_entity_get(at.world, of[0], at.thing);
        cr_assert_eq(thing->i64, 7);
        cr_assert_eq(thing->place.turn, 3);
        cr_assert_eq(thing->mood, MOOD_ANGRY);
        cr_assert_str_eq(thing->title, "base");
        cr_assert(quern_entity_equal(thing->others[0], of[2]));
        cr_assert(quern_entity_equal(thing->others[1], of[1]));
        cr_assert(quern_entity_has(at.world, of[0], at.tag));
        cr_assert(quern_entity_equal(quern_prefab_part(at.world, of[0], muzzle), of[2]));
        cr_assert_eq(*(const uint32_t *)quern_entity_get(at.world, of[1], at.toggle), 4u);
        cr_assert(!quern_entity_is_component_enabled(at.world, of[1], at.toggle));
        cr_assert_eq(memcmp(quern_entity_get(at.world, of[1], at.blob), "\x00\xff\x10\xa0\xb1", 5), 0);
        cr_assert(quern_entity_equal(quern_entity_target(at.world, of[1], at.likes), of[0]));
        cr_assert_eq(quern_entity_target_count(at.world, of[1], at.knows), 3u);
        cr_assert(quern_entity_has_target(at.world, of[1], at.knows, arena));
        thing = quern_entity_get(at.world, of[2], at.thing);
        cr_assert(quern_entity_equal(thing->friend, of[0]));
        cr_assert(quern_entity_equal(thing->others[0], arena));
        cr_assert(quern_entity_is_null(thing->others[1]));
        const Owner *owner = quern_entity_get(at.world, of[2], at.owner);
        cr_assert(owner->points == 8 && *owner->owned == 42);
        cr_assert(quern_entity_equal(quern_entity_target(at.world, of[2], at.parent), of[1]));
        cr_assert(!quern_entity_is_enabled(at.world, of[3]) && quern_entity_is_enabled(at.world, of[2]));
    }
    assert_valid(at.world);
    quern_world_destroy(at.world);
    cr_assert_eq(owner_count, 0);
}

/* The smallest prefab, and values that the text leaves out. */
Test(json_prefab, everything_is_optional)
{
    const scene at = open_scene(NULL);
    quern_prefab prefab;
    must(read_prefab(&at, "{\"quern\": 1, \"prefab\": {}}", &prefab));
    cr_assert_eq(quern_prefab_member_count(at.world, prefab), 1u);
    must(read_prefab(&at, "{\"quern\": 1, \"prefab\": {\"components\": {\"Owner\": {}}, \"children\": []}}",
                     &prefab));
    quern_entity root;
    must(quern_prefab_spawn(at.world, prefab, NULL, &root));
    cr_assert_eq(((const Owner *)quern_entity_get(at.world, root, at.owner))->points, 5u);
    assert_valid(at.world);
    quern_world_destroy(at.world);
}

/* ------------------------------------------------------------------------------------- random trees */

/* A tree below the first entity, with values, handles in and out of the tree, relations and disabled parts. */
static void fill_tree(const scene *at, uint64_t seed, quern_entity *entities, uint32_t count)
{
    random_source random = {seed};
    const quern_entity arena = make_arena(at);
    char name[32];
    for (uint32_t i = 0; i < count; i++)
        entities[i] = setup_entity(at->world);
    for (uint32_t i = count; i-- > 1;) {
        const uint32_t k = 1 + random_below(&random, count - 1); /* slots in another order than members */
        const quern_entity swapped = entities[i];
        entities[i] = entities[k];
        entities[k] = swapped;
    }
    for (uint32_t i = 1; i < count; i++) {
        must(quern_entity_relate(at->world, entities[i], at->parent, entities[random_below(&random, i)]));
        snprintf(name, sizeof name, "n%u", i);
        if (random_chance(&random, 50)) must(quern_entity_set_name(at->world, entities[i], name));
    }
    for (uint32_t i = 0; i < count; i++) {
        const Thing thing = {.i64 = (int64_t)random_next(&random),
                             .f32 = (float)random_below(&random, 100) / 7,
                             .friend = entities[random_below(&random, count)],
                             .others = {arena}};
        const uint32_t n = random_below(&random, 9);
        const uint32_t other = random_below(&random, count);
        if (random_chance(&random, 60)) must(quern_entity_add(at->world, entities[i], at->thing, &thing));
        if (random_chance(&random, 30)) must(quern_entity_add(at->world, entities[i], at->tag, NULL));
        if (random_chance(&random, 30)) must(quern_entity_add(at->world, entities[i], at->owner, NULL));
        if (random_chance(&random, 40)) {
            must(quern_entity_add(at->world, entities[i], at->toggle, &n));
            must(quern_entity_set_component_enabled(at->world, entities[i], at->toggle, n > 4));
        }
        if (other != i && random_chance(&random, 40))
            must(quern_entity_relate(at->world, entities[i], at->likes, entities[other]));
        if (other != i && random_chance(&random, 40))
            must(quern_entity_relate(at->world, entities[i], at->knows, entities[other]));
        if (random_chance(&random, 20)) must(quern_entity_relate(at->world, entities[i], at->knows, arena));
    }
    if (seed % 2 == 0) must(quern_entity_set_enabled(at->world, entities[count / 2], false));
}

/* The text of a tree makes a prefab, whose instances have the same text. */
Test(json_prefab, trees_survive_a_round_trip)
{
    enum { COUNT = 30 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const scene from = open_scene(NULL), to = open_scene(NULL);
        quern_entity entities[COUNT], root;
        quern_prefab prefab;
        fill_tree(&from, seed, entities, COUNT);
        written(from.world, entities[0], 0);
        make_arena(&to);
        cr_assert_eq(read_prefab(&to, texts[0], &prefab), QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(quern_prefab_member_count(to.world, prefab), (uint32_t)COUNT);
        must(quern_prefab_spawn(to.world, prefab, NULL, &root));
        cr_assert_str_eq(written(to.world, root, 1), texts[0]);
        assert_valid(to.world);
        quern_world_destroy(from.world);
        quern_world_destroy(to.world);
    }
    cr_assert_eq(owner_count, 0);
}

/* Slots become components of the root, and handles of dead entities null. */
Test(json_prefab, slots_and_dead_handles_are_written)
{
    const scene at = open_scene(NULL);
    const quern_component muzzle = register_slot(&at);
    const quern_entity arena = make_arena(&at);
    quern_prefab prefab;
    quern_entity root;
    must(read_prefab(&at, tower, &prefab));
    must(quern_prefab_spawn(at.world, prefab, NULL, &root));
    cr_assert_not_null(strstr(written(at.world, root, 0), "\"muzzle\": {\"part\": 2}"));
    cr_assert_not_null(strstr(texts[0], "\"others\": [\"/arena\", null]"));
    must(read_prefab(&at, texts[0], &prefab));
    cr_assert_eq(quern_prefab_find_slot(at.world, prefab, muzzle), 2u);
    must(quern_entity_destroy(at.world, arena));
    cr_assert_not_null(strstr(written(at.world, root, 0), "\"others\": [null, null]"));
    quern_world_destroy(at.world);
}

/* A tree with one member per level, deeper than a recursion could follow. */
Test(json_prefab, depth_is_limited_by_members_alone)
{
    enum { DEPTH = 3000 };
    const scene at = open_scene(NULL);
    char *text = malloc(DEPTH * 20 + 64), *end = text;
    quern_prefab prefab;
    end += sprintf(end, "{\"quern\": 1, \"prefab\": {");
    for (uint32_t i = 1; i < DEPTH; i++)
        end += sprintf(end, "\"children\": [{");
    for (uint32_t i = 1; i < DEPTH; i++)
        end += sprintf(end, "}]");
    sprintf(end, "}}");
    const quern_result result = read_prefab(&at, text, &prefab);
    cr_assert(result == QUERN_OK ? quern_prefab_member_count(at.world, prefab) == DEPTH
                                 : result != QUERN_ERROR_INVALID_ARGUMENT,
              "%s", quern_error_message());
    free(text);
    quern_world_destroy(at.world);
}

Test(json_prefab, too_many_members_are_refused)
{
    const scene at = open_scene(NULL);
    const size_t count = QUERN_MAX_PREFAB_MEMBERS; /* children, and the root */
    char *text = malloc(count * 3 + 64), *end = text;
    quern_prefab prefab;
    end += sprintf(end, "{\"quern\": 1, \"prefab\": {\"children\": [");
    for (size_t i = 0; i < count; i++, end += 3)
        memcpy(end, i + 1 < count ? "{}," : "{} ", 3);
    sprintf(end, "]}}");
    must_refuse(LIMIT, at.world, read_prefab(&at, text, &prefab));
    cr_assert_not_null(strstr(quern_error_message(), "more than 65536 members"), "%s",
                       quern_error_message());
    free(text);
    quern_world_destroy(at.world);
}

/* -------------------------------------------------------------------------------------- wrong input */

#define PREFAB(root)       "{\"quern\": 1,\n \"prefab\": " root "}"
#define CHILD(child)       PREFAB("{\"children\": [\n  {},\n  " child "]}")
#define COMPONENTS(values) CHILD("{\"name\": \"gun\", \"components\": " values "}")

Test(json_prefab, too_large_trees_are_not_written)
{
    const scene at = open_scene(NULL);
    const quern_entity root = setup_entity(at.world);
    const quern_relation parent = quern_world_parent(at.world);
    for (uint32_t i = 0; i < QUERN_MAX_PREFAB_MEMBERS; i++)
        must(quern_entity_relate(at.world, setup_entity(at.world), parent, root));
    quern_text_buffer buffer = {NULL, 0, 0};
    cr_assert_eq(quern_json_write_prefab(at.world, root, quern_sink_text(&buffer)), QUERN_ERROR_LIMIT);
    cr_assert_not_null(strstr(quern_error_message(), "65536"), "%s", quern_error_message());
    cr_assert_eq(buffer.length_bytes, 0u);
    quern_world_destroy(at.world);
}

Test(json_prefab, invalid_input_fails_and_names_the_place)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{\"quern\": 1,\n \"prefab\": {,}}", "quern_json_read_prefab: the text is not valid JSON at byte "
                                              "25 of 28 (line 2, column 13): a key in "
                                              "quotes"},
        {"[]", "quern_json_read_prefab: line 1, column 1: a prefab must be an object"},
        {"{\"prefab\": {}}", "a prefab must be an object with a number 'quern'"},
        {"{\"quern\": 1, \"prefab\": []}", "and an object 'prefab', its root"},
        {"{\"quern\": 2, \"prefab\": {}}",
         "line 1, column 2: the JSON has version 2; this library reads 1"},
        {"{\"quern\": 1, \"prefab\": {}, \"prefabs\": {}}", "line 1, column 28: unknown member 'prefabs'"},
        {PREFAB("{\"childern\": []}"), "line 2, column 13: member 0: unknown key of a member 'childern'"},
        {PREFAB("{\"children\": {}}"), "line 2, column 13: member 0: 'children' must be an array"},
        {CHILD("7"), "line 4, column 3: member 2: 'children' must be an array of objects"},
        {CHILD("{\"id\": -1}"), "line 4, column 4: member 2: 'id' must be a whole number"},
        {CHILD("{\"id\": \"gun\"}"), "'id' must be a whole number"},
        {PREFAB("{\"id\": 3, \"children\": [\n{\"id\": 3}]}"),
         "line 3, column 1: member 1: two entities have the id 3"},
        {CHILD("{\"name\": 7}"), "line 4, column 4: member 2: 'name' must be a string"},
        {CHILD("{\"name\": \"a/b\"}"), "has a '/'"},
        {PREFAB("{\"name\": \"tower\"}"), "member 0: the root has a name"},
        {PREFAB("{\"children\": [{\"name\": \"a\"},\n{\"name\": \"a\"}]}"),
         "line 3, column 1: quern_prefab_create: member 2: member 1 has the same parent and the name 'a'"},
        {CHILD("{\"slot\": 7}"), "member 2: 'slot' must be the name of a slot"},
        {CHILD("{\"slot\": \"barrel\"}"), "line 4, column 4: member 2: unknown slot 'barrel'"},
        {CHILD("{\"slot\": \"tag\"}"),
         "line 4, column 3: quern_prefab_create: member 0: the slot of member 2"},
        {PREFAB("{\"slot\": \"muzzle\"}"), "the root is no part of itself"},
        {COMPONENTS("[]"), "member 2 ('gun'): 'components' must be an object"},
        {COMPONENTS("{\"Nothing\": {}}"),
         "line 4, column 34: member 2 ('gun'): unknown component 'Nothing'"},
        {COMPONENTS("{\"parent\": {}}"), "component 'parent' is maintained by the world: list targets"},
        {COMPONENTS("{\"tag\": 1}"), "'tag' is a tag and must be true"},
        {COMPONENTS("{\"blob\": \"00\"}"), "a string of its 5 bytes"},
        {COMPONENTS("{\"Thing\": []}"), "'Thing' must be an object with its fields"},
        {COMPONENTS("{\"Thing\": {\n\"i65\": 1}}"),
         "line 5, column 1: member 2 ('gun'): 'Thing': unknown field"},
        {COMPONENTS("{\"Thing\": {\n \"i64\": 1.5}}"),
         "line 5, column 2: member 2 ('gun'): quern_value_set_text: 'i64' of 'Thing' cannot be '1.5'"},
        {COMPONENTS("{\"Thing\": {\"place\": {\n\"turn\": 128}}}"), "line 5, column 1: member 2"},
        {COMPONENTS("{\"Thing\": {\"flags\": [true,\n 2]}}"), "line 5, column 2: member 2"},
        {COMPONENTS("{\"Thing\": {\"friend\": 5}}"),
         "'friend' of 'Thing' must be null, the id of a member, or the path"},
        {COMPONENTS("{\"Thing\": {\"friend\": \"/nowhere\"}}"), "friend: quern_entity_from_text"},
        {COMPONENTS("{\"Thing\": {\"others\": [null, true]}}"),
         "'others[1]' of 'Thing' must be null, the id"},
        {CHILD("{\"disabled\": 1}"), "'disabled' must be an array of component names"},
        {CHILD("{\"disabled\": [\"toggle\"]}"), "'disabled' names 'toggle', which is not in 'components'"},
        {CHILD("{\"disabled\": [7]}"), "'disabled' names ''"},
        {CHILD("{\"components\": {\"tag\": true}, \"disabled\": [\n\"tag\"]}"),
         "line 5, column 1: member 2: component 'tag' cannot be disabled"},
        {CHILD("{\"targets\": []}"), "'targets' must be an object"},
        {CHILD("{\"targets\": {\"hates\": 1}}"), "hates: unknown relation 'hates'"},
        {CHILD("{\"targets\": {\"parent\": 1}}"),
         "'parent' is the hierarchy: list the member in 'children'"},
        {CHILD("{\"targets\": {\"likes\": 1}}"), "likes: a target must be the id of a member"},
        {CHILD("{\"targets\": {\"likes\": null}}"), "likes: a target must be the id of a member"},
        {CHILD("{\"targets\": {\"likes\": [\n\"/nowhere\"]}}"),
         "line 5, column 1: member 2: likes: quern_entity_"},
        {CHILD("{\"targets\": {\"likes\": \"none\"}}"), "quern_prefab_create: member 2: target 0: likes"},
        {CHILD("{\"targets\": {\"likes\":\n\"9:9\"}}"),
         "line 4, column 16: member 2: likes: '9:9' is not a living entity"},
        /* the bits of the handle of member 1 */
        {CHILD("{\"targets\": {\"likes\": \"0x100000001\"}}"), "'0x100000001' is not a living entity"},
        {COMPONENTS("{\"Thing\": {\"friend\": \"0x100000001\"}}"),
         "member 2 ('gun'): friend: '0x100000001' is not a living entity"},
        {CHILD("{\"id\": 1, \"targets\": {\"likes\": 1}}"), "cannot be its own target"},
        {PREFAB("{\"id\": 1, \"children\": [{\"targets\": {\"likes\": [1, 1]}}]}"),
         "two targets in 'likes'"},
        {PREFAB("{\"id\": 1, \"children\": [{\"targets\": {\"knows\": [1, 1]}}]}"),
         "a target in 'knows' twice"},
        {COMPONENTS("{\"Handed\": {}}"), "Handed"},
    };
    const scene at = open_scene(NULL);
    (void)register_slot(&at);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        quern_prefab prefab = {7};
        const uint64_t hash = quern_world_hash(at.world);
        cr_assert_neq(read_prefab(&at, cases[i].text, &prefab), QUERN_OK, "%s", cases[i].text);
        cr_assert_eq(strncmp(quern_error_message(), "quern_json_read_prefab: ", 24), 0, "%s",
                     quern_error_message());
        cr_assert_not_null(strstr(quern_error_message(), cases[i].said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_eq(prefab.bits, 7u);
        cr_assert_eq(quern_world_list_prefabs(at.world, NULL, 0), 0u);
        cr_assert_eq(quern_world_hash(at.world), hash);
        cr_assert_eq(owner_count, 0);
        assert_valid(at.world);
    }
    quern_world_destroy(at.world);
}

static bool write_nothing(void *user_data, const char *text, size_t bytes)
{
    return false;
}

Test(json_prefab, wrong_arguments_are_refused)
{
    const scene at = open_scene(NULL);
    quern_prefab prefab;
    char text[256];
    quern_text_buffer buffer = {text, sizeof text, 0};
    const quern_entity root = setup_entity(at.world);
    const quern_json_options half = {.allocator = {.allocate = quern_allocator_default().allocate}};
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_prefab(NULL, "{}", 2, NULL, &prefab));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_prefab(at.world, NULL, 2, NULL, &prefab));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_read_prefab(at.world, "{}", 2, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, at.world, quern_json_read_prefab(at.world, "{}", 2, &half, &prefab));
    must_refuse(NULL_ARGUMENT, at.world, quern_json_write_prefab(NULL, root, quern_sink_text(&buffer)));
    must_refuse(NULL_ARGUMENT, at.world,
                quern_json_write_prefab(at.world, root, (quern_sink){.write = NULL}));
    must_refuse(IO, at.world,
                quern_json_write_prefab(at.world, root, (quern_sink){.write = write_nothing}));
    must(quern_entity_destroy(at.world, root));
    must_refuse(STALE_ENTITY, at.world, quern_json_write_prefab(at.world, root, quern_sink_text(&buffer)));
    quern_world_destroy(at.world);
}

Test(json_prefab, unknown_names_are_left_out_and_listed)
{
    const scene at = open_scene(NULL);
    char list[512];
    quern_text_buffer buffer = {list, sizeof list, 0};
    const quern_json_options options = {.leaves_out_unknown = true, .left_out = quern_sink_text(&buffer)};
    static const char text[] =
        "{\"quern\": 1, \"prefab\": {\"note\": 1, \"components\": {\"Other\": {}, \"Thing\": {\"i64\": 3, "
        "\"old\": 1}}, \"slot\": \"gone\", \"disabled\": [\"Other\"], \"targets\": {\"hates\": 7}}}";
    quern_prefab prefab;
    quern_entity root;
    must(quern_json_read_prefab(at.world, text, sizeof text - 1, &options, &prefab));
    cr_assert_str_eq(
        list,
        "key of a member 'note'\nslot 'gone'\ncomponent 'Other'\nrelation 'hates'\nfield 'old' of Thing\n");
    must(quern_prefab_spawn(at.world, prefab, NULL, &root));
    cr_assert_eq(((const Thing *)quern_entity_get(at.world, root, at.thing))->i64, 3);
    quern_world_destroy(at.world);
}

static void read_in_callback(quern_context *context)
{
    const scene *at = quern_context_user_data(context);
    static const char *const prefabs[] = {
        "{\"quern\": 1, \"prefab\": {}}",
        "{\"quern\": 1, \"prefab\": {\"components\": {\"disabled\": true}}}"};
    for (uint32_t i = 0; i < 2; i++) {
        quern_prefab prefab = {7};
        cr_assert_eq(read_prefab(at, prefabs[i], &prefab), QUERN_ERROR_WORLD_LOCKED);
        cr_assert_eq(strncmp(quern_error_message(), "quern_json_read_prefab: ", 24), 0, "%s",
                     quern_error_message());
        cr_assert_eq(prefab.bits, 7u);
    }
}

Test(json_prefab, callbacks_are_refused)
{
    scene at = open_scene(NULL);
    quern_schedule *schedule;
    must(quern_schedule_create(at.world, NULL, &schedule));
    const quern_system_def def = {.name = "reader", .begin = read_in_callback, .user_data = &at};
    must(quern_schedule_add_system(schedule, &def, NULL));
    must(quern_schedule_run(schedule, NULL, 1));
    cr_assert(quern_component_is_null(quern_component_find(at.world, "disabled")));
    quern_schedule_destroy(schedule);
    quern_world_destroy(at.world);
}

/* A relation of the user with the name of the hierarchy may have cycles, which the writer does not follow. */
Test(json_prefab, only_the_hierarchy_is_followed)
{
    quern_world *world = setup_world();
    quern_relation parent = make_relation(world, .name = "parent");
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_entity_relate(world, a, parent, b));
    must(quern_entity_relate(world, b, parent, a));
    cr_assert_not_null(strstr(written(world, a, 0), "\"prefab\": {\"id\": 0, \"components\": {}"), "%s",
                       texts[0]);
    quern_world_destroy(world);
}

/* --------------------------------------------------------------------------------- without memory */

static void read_without_memory(uint64_t call, bool *has_passed)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    const scene at = open_scene(&allocator);
    (void)register_slot(&at);
    make_arena(&at);
    (void)quern_world_disabled_tag(at.world);
    const uint64_t hash = quern_world_hash(at.world);
    const quern_json_options options = {.allocator = allocator};
    quern_prefab prefab = {7};
    failing_allocator_fail_at(memory, call);
    const quern_result result =
        quern_json_read_prefab(at.world, tower, sizeof tower - 1, &options, &prefab);
    *has_passed = failing_allocator_failed_count(memory) == 0;
    failing_allocator_heal(memory);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%d: %s", (int)result,
              quern_error_message());
    assert_valid(at.world);
    if (result != QUERN_OK) {
        cr_assert_eq(prefab.bits, 7u);
        cr_assert_eq(owner_count, 0);
        cr_assert_eq(quern_world_hash(at.world), hash, "call %llu", (unsigned long long)call);
        cr_assert_eq(quern_world_list_prefabs(at.world, NULL, 0), 0u);
        must(quern_json_read_prefab(at.world, tower, sizeof tower - 1, &options, &prefab));
    }
    must(quern_prefab_spawn(at.world, prefab, NULL, NULL));
    quern_world_destroy(at.world);
    failing_allocator_close(memory);
    cr_assert_eq(owner_count, 0);
}

Test(json_prefab, reading_without_memory_changes_nothing)
{
    bool has_passed = false;
    uint64_t call = 1;
    for (; !has_passed; call++)
        read_without_memory(call, &has_passed);
    cr_assert_gt(call, 5u);
}
