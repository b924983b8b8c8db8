/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/stress.h"

#include <quern/archive.h>
#include <quern/redefine.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random sequences of right requests to all end points, three of them at a time, while the program changes between any two
 * steps of an answer: entities come and go, archives are loaded, types are redefined and registered, systems are removed and
 * added, frames run. Requests are drawn from docs/inspector.schema.json, every answer must be as it says there, every archive
 * must load, and the world must stay valid. QUERN_STRESS_SECONDS and QUERN_STRESS_SEED lengthen and repeat the test. */

enum { ANSWERS = 3, ENTITIES_MAX = 300 };

static inspect_scene scene;
static cJSON *schema;
static quern_component shape;
static quern_relation likes;
static quern_event ring;
static quern_resource bells;
static uint32_t type_count;
static random_source random_numbers;

#define PICK(list) (list)[random_below(&random_numbers, sizeof(list) / sizeof((list)[0]))]

/* -------------------------------------------------------------------------------------------- schema */

static const cJSON *at(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static cJSON *read_schema(void)
{
    FILE *file = fopen(QUERN_DOCS "/inspector.schema.json", "rb");
    cr_assert(file != NULL);
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(bytes + 1);
    cr_assert(text != NULL && fread(text, 1, bytes, file) == bytes);
    text[bytes] = '\0';
    cJSON *json = cJSON_Parse(text);
    cr_assert(json != NULL, "docs/inspector.schema.json is no JSON");
    free(text);
    fclose(file);
    return json;
}

static bool is_of_type(const cJSON *value, const char *type)
{
    if (strcmp(type, "integer") == 0)
        return cJSON_IsNumber(value) && value->valuedouble == (double)(int64_t)value->valuedouble;
    return (strcmp(type, "object") == 0 && cJSON_IsObject(value)) ||
           (strcmp(type, "array") == 0 && cJSON_IsArray(value)) ||
           (strcmp(type, "string") == 0 && cJSON_IsString(value)) ||
           (strcmp(type, "number") == 0 && cJSON_IsNumber(value)) ||
           (strcmp(type, "boolean") == 0 && cJSON_IsBool(value)) ||
           (strcmp(type, "null") == 0 && cJSON_IsNull(value));
}

static bool has_type(const cJSON *value, const cJSON *types)
{
    const cJSON *type;
    if (types == NULL) return true;
    if (cJSON_IsString(types)) return is_of_type(value, types->valuestring);
    cJSON_ArrayForEach(type, types) if (is_of_type(value, type->valuestring)) return true;
    return false;
}

static bool is_in(const cJSON *value, const cJSON *list)
{
    const cJSON *one;
    if (list == NULL) return true;
    cJSON_ArrayForEach(one, list) if (cJSON_Compare(one, value, true)) return true;
    return false;
}

/* Checks types, enumerations, required and unknown members, and lengths. */
static void check_value(const cJSON *rule, const cJSON *value, const char *place)
{
    const cJSON *one;
    char inner[256];
    if (at(rule, "$ref") != NULL)
        rule = at(at(schema, "$defs"), strrchr(at(rule, "$ref")->valuestring, '/') + 1);
    cr_assert(has_type(value, at(rule, "type")), "%s has a wrong type", place);
    cr_assert(is_in(value, at(rule, "enum")), "%s is not in the enumeration", place);
    if (cJSON_IsObject(value))
        cJSON_ArrayForEach(one, at(rule, "required"))
            cr_assert(at(value, one->valuestring) != NULL, "%s lacks %s", place, one->valuestring);
    if (cJSON_IsObject(value)) cJSON_ArrayForEach(one, value)
        {
            const cJSON *member = at(at(rule, "properties"), one->string);
            snprintf(inner, sizeof inner, "%.180s.%.40s", place, one->string);
            cr_assert(member != NULL || !cJSON_IsFalse(at(rule, "additionalProperties")),
                      "%s is not in the schema", inner);
            if (member != NULL) check_value(member, one, inner);
        }
    if (!cJSON_IsArray(value)) return;
    const int count = cJSON_GetArraySize(value);
    cr_assert(at(rule, "minItems") == NULL || count >= at(rule, "minItems")->valueint, "%s is short",
              place);
    cr_assert(at(rule, "maxItems") == NULL || count <= at(rule, "maxItems")->valueint, "%s is long", place);
    snprintf(inner, sizeof inner, "%.200s[]", place);
    if (at(rule, "items") != NULL)
        cJSON_ArrayForEach(one, value) check_value(at(rule, "items"), one, inner);
}

/* The end points of the library and of the schema are the same, with the same methods and arguments. */
Test(inspect_schema, has_all_end_points)
{
    const quern__inspect_route *const tables[] = {quern__inspect_world_routes,  quern__inspect_frame_routes,
                                                  quern__inspect_system_routes, quern__inspect_table_routes,
                                                  quern__inspect_probe_routes,  quern__inspect_case_routes,
                                                  quern__inspect_command_routes};
    int count = 0;
    schema = read_schema();
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const quern__inspect_route *route = tables[i]; route->path != NULL; route++, count++) {
            const cJSON *request = at(at(schema, "requests"), route->path), *argument;
            char arguments[256] = "";
            size_t size = 0;
            cr_assert(request != NULL, "%s is not in the schema", route->path);
            cr_assert_str_eq(at(request, "method")->valuestring, route->has_changes ? "POST" : "GET");
            cJSON_ArrayForEach(argument, at(request, "arguments")) size += (size_t)snprintf(
                arguments + size, sizeof arguments - size, "%s%s", size > 0 ? " " : "", argument->string);
            cr_assert_str_eq(arguments, route->arguments, "%s", route->path);
        }
    cr_assert_eq(count, cJSON_GetArraySize(at(schema, "requests")));
    cJSON_Delete(schema);
}

/* ------------------------------------------------------------------------------------------ requests */

/* Draws an entity, of which the handle may be old. */
static void draw_entity(char *text, size_t room)
{
    static const char *const paths[] = {"/arena", "/arena/gun", "0:1", "7:2"};
    quern_entity entities[ENTITIES_MAX];
    uint32_t slot = 0;
    const uint32_t count = quern_world_list_entities_from(scene.world, &slot, entities, ENTITIES_MAX);
    if (count == 0 || random_chance(&random_numbers, 10)) {
        snprintf(text, room, "%s", PICK(paths));
        return;
    }
    const quern_entity entity = entities[random_below(&random_numbers, count)];
    snprintf(text, room, "%u:%u", quern_entity_index(entity), quern_entity_generation(entity));
}

static void draw_value(const char *kind, char *text, size_t room)
{
    static const struct {
        const char *kind, *values[8];
    } kinds[] = {
        {"query",
         {"Body", "Body,!Marker", "?Marker", "Shape", "!parent", "Marker|Shape", "likes", "disabled"}},
        {"text", {"a", "gun", "/ar", "x y", "%C3%A4", "", "arena", "e"}},
        {"relation", {"parent", "likes", "parent", "likes", "parent", "likes", "none", "parent"}},
        {"component", {"Body", "Marker", "Shape", "New0", "New1", "Marker", "Shape", "parent"}},
        {"path",
         {"Body.x", "Body.level", "Shape.size", "Shape.note", "Body.speed", "Shape.sides", "New0.x",
          "Body"}},
        {"path_or_empty", {"Body.x", "", "Shape.size", "", "Body.level", "", "Shape.note", "Shape.sides"}},
        {"resource_path",
         {"Rules.step", "Rules.step", "Rules", "None.x", "Rules.step", "Rules.step", "Rules.step", ""}},
        {"value", {"1", "-3.5", "high", "true", "text", "0", "7", "1000"}},
        {"paths",
         {"Body.x", "Body.x,Shape.size", "Shape.note,Body.level", "", "Body.x,Body.x", "a,b,,", "New1.x",
          "Body.speed"}},
        {"conditions",
         {"Body.x<5", "Body.level=high", "Shape.size>=2,Body.x>1", "Shape.note~e", "Body.x!=0", "New0.x=1",
          "", "Body.speed<=1"}},
        {"system", {"bump", "look", "move%20%22bodies%22", "extra", "look", "react", "bump", "none"}},
        {"set", {"walk", "walk", "walk", "none", "walk", "walk", "walk", "walk"}},
        {"parts",
         {"systems", "profile,probes", "commands", "events", "", "systems,profile,commands,events,probes",
          "x", "probes"}},
        {"entities", {"0:1,1:1", "2:1", "", "x,3:1", "0:1", "1:1,1:1", "4:1,5:1,6:1", "9:9"}},
        {"components", {"", "", "", "Body", "Shape", "Marker,Shape", "", ""}},
        {"panel", {"Modules", "Modules", "Modules", "Modules", "None", "Modules", "Modules", "Modules"}}};
    const uint32_t drawn = random_below(&random_numbers, 8);
    text[0] = '\0';
    if (strcmp(kind, "entity") == 0 || (strcmp(kind, "target") == 0 && drawn > 1)) draw_entity(text, room);
    if (strcmp(kind, "flag") == 0) snprintf(text, room, "%u", drawn % 2);
    if (strcmp(kind, "probe") == 0)
        snprintf(text, room, "%u", 1 + random_below(&random_numbers, scene.inspector->last_probe + 1));
    if (strcmp(kind, "prefab") == 0) snprintf(text, room, "%u", drawn % 3);
    if (strcmp(kind, "count") == 0) snprintf(text, room, "%u", drawn == 0 ? 300 : drawn);
    if (strcmp(kind, "frame") == 0)
        snprintf(text, room, "%u", (uint32_t)scene.frame - (scene.frame > 7 ? drawn : 0));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0) snprintf(text, room, "%s", kinds[i].values[drawn]);
}

static void draw_arguments(const cJSON *request, char *text, size_t room)
{
    const cJSON *argument;
    size_t size = 0;
    char value[64];
    text[0] = '\0';
    cJSON_ArrayForEach(argument, at(request, "arguments"))
    {
        if (!cJSON_IsTrue(at(argument, "required")) && random_chance(&random_numbers, 50)) continue;
        draw_value(at(argument, "kind")->valuestring, value, sizeof value);
        size += (size_t)snprintf(text + size, room - size, "%s%s=%s", size > 0 ? "&" : "", argument->string,
                                 value);
    }
}

/* ------------------------------------------------------------------------------------------- answers */

typedef struct open_answer {
    quern__inspect_answer *answer;
    const cJSON *request;
    char arguments[512];
} open_answer;

static void begin(open_answer *open)
{
    const cJSON *requests = at(schema, "requests");
    static const char body[] = "{\"components\":{\"Body\":{\"x\":4}},\"name\":\"merged\"}";
    open->request = cJSON_GetArrayItem(
        requests, (int)random_below(&random_numbers, (uint32_t)cJSON_GetArraySize(requests)));
    draw_arguments(open->request, open->arguments, sizeof open->arguments);
    open->answer = quern__inspect_answer_create(scene.inspector);
    cr_assert(open->answer != NULL);
    open->answer->body = body;
    open->answer->body_bytes = sizeof body - 1;
    quern__inspect_answer_open(open->answer, at(open->request, "method")->valuestring,
                               open->request->string, open->arguments);
    quern__inspect_answer_begin(open->answer);
}

static bool is_utf8(const char *text, size_t size)
{
    for (size_t i = 0, more; i < size; i += 1 + more) {
        const unsigned char byte = (unsigned char)text[i];
        more = byte < 0x80 ? 0 : byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC2 ? 1 : SIZE_MAX;
        if (more == SIZE_MAX || more >= size - i) return false;
        for (size_t k = 1; k <= more; k++)
            if (((unsigned char)text[i + k] & 0xC0) != 0x80) return false;
    }
    return true;
}

/* Loads an archive into a world that learns its types from it. */
static void check_archive(const quern_byte_buffer *bytes)
{
    quern_world *other;
    must(quern_world_create(NULL, &other));
    const quern_source source = quern_source_bytes(bytes->bytes, bytes->size_bytes);
    must(quern_world_register_archived(other, source, NULL));
    must(quern_world_load(other, source, &(quern_load_def){.skip_resources = true}, NULL));
    assert_valid(other);
    quern_world_destroy(other);
}

static void finish(open_answer *open)
{
    const quern__inspect_answer *answer = open->answer;
    const quern_byte_buffer *bytes = &answer->text.bytes;
    const char *path = open->request->string;
    static const uint32_t statuses[] = {200, 400, 403, 404, 409, 507};
    bool is_known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        is_known = is_known || answer->status == statuses[i];
    cr_assert(is_known, "%s?%s: %u", path, open->arguments, answer->status);
    cr_assert(bytes->size_bytes > 0, "%s?%s: no answer", path, open->arguments);
    if (answer->text.is_binary) {
        cr_assert(cJSON_IsNull(at(open->request, "answer")) && answer->status == 200);
        if (strcmp(path, "case_replay") != 0) check_archive(bytes);
    } else {
        cr_assert(is_utf8(bytes->bytes, bytes->size_bytes), "%s?%s: no UTF-8", path, open->arguments);
        cJSON *json = cJSON_ParseWithLength(bytes->bytes, bytes->size_bytes);
        cr_assert(json != NULL, "%s?%s: no JSON: %.*s", path, open->arguments, (int)bytes->size_bytes,
                  (const char *)bytes->bytes);
        const char *name = answer->status == 200 ? at(open->request, "answer")->valuestring : "error";
        check_value(at(at(schema, "$defs"), name), json, path);
        cJSON_Delete(json);
    }
    quern__inspect_answer_destroy(open->answer);
    open->answer = NULL;
}

/* ------------------------------------------------------------------------------------------- program */

static void look_at_shapes(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
}

static void add_system(const char *name, bool reacts)
{
    quern_system_def def = {
        .name = name,
        .run = look_at_shapes,
        .sets = {"walk"},
        .flags = QUERN_SYSTEM_SERIAL,
        .terms = {quern_term_read(shape), quern_term_optional(scene.body, QUERN_ACCESS_READ)}};
    if (reacts) def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED | QUERN_REACT_SET;
    must(quern_schedule_add_system(scene.schedule, &def, NULL));
}

typedef struct Wide {
    double size;
    uint32_t sides;
    char note[12];
} Wide;

typedef struct Narrow {
    float size;
    char note[8];
} Narrow;

static const quern_component_def shapes[] = {
    {.name = "Shape",
     .size_bytes = sizeof(Wide),
     .alignment_bytes = _Alignof(Wide),
     .type_name = "Shape",
     .can_disable = true,
     .fields = {QUERN_FIELD(Wide, size), QUERN_FIELD(Wide, sides), QUERN_TEXT(Wide, note)}},
    {.name = "Shape",
     .size_bytes = sizeof(Narrow),
     .alignment_bytes = _Alignof(Narrow),
     .type_name = "Shape",
     .can_disable = true,
     .fields = {QUERN_FIELD(Narrow, size), QUERN_TEXT(Narrow, note)}}};

/* Some texts end within a character. */
static quern_result write_modules(void *user_data, quern_sink sink)
{
    static const char text[] = "[{\"module\":\"n\xC3\xA4m\xE2\x82\xAC\xF0\x9F\x98\x80", end[] = "\"}]";
    (void)user_data;
    return sink.write(sink.user_data, text, sizeof text - 1 - random_below(&random_numbers, 11)) &&
                   sink.write(sink.user_data, end, sizeof end - 1)
               ? QUERN_OK
               : QUERN_ERROR_IO;
}

static void register_type(void)
{
    char name[16];
    snprintf(name, sizeof name, "New%u", type_count++);
    const quern_component_def def = {.name = name,
                                     .size_bytes = 4,
                                     .alignment_bytes = 4,
                                     .fields = {{.name = "x", .type = QUERN_FIELD_I32}}};
    quern_component component;
    must(quern_component_register(scene.world, &def, &component));
}

static const quern_event_def rings[] = {{.name = "Ring",
                                         .size_bytes = 4,
                                         .alignment_bytes = 4,
                                         .fields = {{.name = "tone", .type = QUERN_FIELD_I32}}},
                                        {.name = "Ring",
                                         .size_bytes = 8,
                                         .alignment_bytes = 8,
                                         .fields = {{.name = "tone", .type = QUERN_FIELD_F64}}}};
static const quern_resource_def resources[] = {{.name = "Bells",
                                                .size_bytes = 4,
                                                .alignment_bytes = 4,
                                                .fields = {{.name = "count", .type = QUERN_FIELD_I32}}},
                                               {.name = "Bells",
                                                .size_bytes = 1,
                                                .alignment_bytes = 1,
                                                .fields = {{.name = "count", .type = QUERN_FIELD_I8}}}};

/* Redefines an event or a resource, or begins or ends to listen to events, as a page does. */
static void change_types(void)
{
    const uint32_t drawn = random_below(&random_numbers, 3), layout = random_below(&random_numbers, 2);
    if (drawn == 0) quern__inspect_set_listening(scene.inspector, layout == 0);
    if (drawn == 1) must(quern_event_redefine(scene.world, ring, &rings[layout], NULL, NULL));
    if (drawn == 2) must(quern_resource_redefine(scene.world, bells, &resources[layout], NULL, NULL));
}

/* Saves an entity with its descendants, and loads it beside itself. */
static void load_copy(quern_entity entity)
{
    quern_archive *archive;
    quern_byte_buffer bytes = {.bytes = NULL};
    must(quern_archive_create(scene.world, &archive));
    must(quern_archive_append_tree(archive, entity));
    must(quern_archive_save(archive, quern_sink_bytes(&bytes), NULL));
    quern_archive_destroy(archive);
    must(quern_world_load(scene.world, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                          &(quern_load_def){.drop_taken_names = true}, NULL));
    quern_byte_buffer_release(&bytes);
}

static void toggle_system(const char *name, bool reacts)
{
    const quern_system system = quern_schedule_find_system(scene.schedule, name);
    if (system.bits != 0)
        must(quern_schedule_remove_system(scene.schedule, system));
    else
        add_system(name, reacts);
}

static void change_entity(quern_entity entity, quern_entity other, bool has_room)
{
    quern_world *world = scene.world;
    switch (random_below(&random_numbers, 8)) {
    case 0:
        must(quern_entity_destroy(world, entity));
        break;
    case 1:
        if (quern_entity_has(world, entity, shape))
            must(quern_entity_remove(world, entity, shape));
        else
            must(quern_entity_add(world, entity, shape, NULL));
        break;
    case 2:
        must(quern_entity_set_enabled(world, entity, !quern_entity_is_enabled(world, entity)));
        break;
    case 3: /* a circle is refused, and so is an entity as its own target */
        quern_entity_relate(world, entity, scene.parent, other);
        break;
    case 4:
        quern_entity_relate(world, entity, likes, other);
        break;
    case 5: /* the name may be taken */
        quern_entity_set_name(world, entity, random_chance(&random_numbers, 50) ? "arena" : "\xC3\xA4");
        break;
    case 6:
        if (quern_entity_has(world, entity, shape))
            must(quern_entity_set_component_enabled(world, entity, shape,
                                                    random_chance(&random_numbers, 50)));
        break;
    default:
        if (has_room) load_copy(entity);
        break;
    }
}

static void change_program(void)
{
    static uint32_t layout;
    quern_entity entities[ENTITIES_MAX];
    uint32_t slot = 0;
    const uint32_t count = quern_world_list_entities_from(scene.world, &slot, entities, ENTITIES_MAX);
    const uint32_t drawn = random_below(&random_numbers, 20);
    if (count < 20 || drawn == 0) {
        const Body value = {.x = (float)drawn};
        const void *values[] = {&value};
        must(quern_entity_create_with(scene.world, &scene.body, values, 1, NULL));
    } else if (drawn == 1) {
        layout = 1 - layout;
        must(quern_component_redefine(scene.world, shape, &shapes[layout], NULL, NULL));
    } else if (drawn == 2) {
        toggle_system("look", false);
    } else if (drawn == 3) {
        toggle_system("react", true);
    } else if (drawn == 4 && type_count < 8) {
        register_type();
    } else if (drawn == 6) {
        change_types();
    } else if (drawn == 5 && count > ENTITIES_MAX / 2) {
        for (uint32_t i = 0; i < count; i += 2)
            if (quern_entity_is_alive(scene.world, entities[i]))
                must(quern_entity_destroy(scene.world, entities[i]));
    } else {
        change_entity(entities[random_below(&random_numbers, count)],
                      entities[random_below(&random_numbers, count)], count < ENTITIES_MAX);
    }
}

static void open_program(quern_jobs *jobs)
{
    quern_prefab prefab;
    type_count = 0;
    inspect_scene_open(&scene, 30, NULL);
    must(quern_component_register(scene.world, &shapes[0], &shape));
    must(
        quern_relation_register(scene.world, &(quern_relation_def){.name = "likes", .many = true}, &likes));
    must(quern_event_register(scene.world, &rings[0], &ring));
    must(quern_resource_register(scene.world, &resources[0], &bells));
    must(quern_prefab_capture(scene.world, scene.root, &prefab));
    must(quern_schedule_add_set(scene.schedule, &(quern_set_def){.name = "walk"}));
    add_system("look", false);
    add_system("react", true);
    scene.inspector->def.jobs = jobs;
    scene.inspector->def.panels[0] = (quern_inspect_panel){"Modules", write_modules, NULL};
}

static void run(uint64_t seed, uint32_t thread_count, uint32_t steps)
{
    open_answer answers[ANSWERS] = {{.request = NULL}};
    quern_jobs *jobs = NULL;
    random_numbers = (random_source){seed};
    if (thread_count > 1) must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    open_program(jobs);
    for (uint32_t i = 0; i < steps; i++) {
        open_answer *open = &answers[random_below(&random_numbers, ANSWERS)];
        if (open->answer == NULL)
            begin(open);
        else if (!open->answer->is_done)
            quern__inspect_answer_step(open->answer);
        if (open->answer->is_done) finish(open);
        if (random_chance(&random_numbers, 30)) change_program();
        if (random_chance(&random_numbers, 20)) inspect_scene_turn(&scene);
        if (random_chance(&random_numbers, 2)) quern__inspect_set_paused(scene.inspector, false);
        if (i % 16 == 0) assert_valid(scene.world);
    }
    for (uint32_t i = 0; i < ANSWERS; i++) {
        while (answers[i].answer != NULL && !answers[i].answer->is_done)
            quern__inspect_answer_step(answers[i].answer);
        if (answers[i].answer != NULL) finish(&answers[i]);
    }
    assert_valid(scene.world);
    inspect_scene_close(&scene);
    quern_jobs_destroy(jobs);
}

Test(inspect_random, answers_as_the_schema_says, .timeout = 580)
{
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    const double end = stress_deadline(4, 1);
    schema = read_schema();
    for (uint64_t seed = stress_seed(1); seed < stress_seed(1) + 4 || stress_seconds_now() < end; seed++)
        run(seed, thread_counts[seed % 4], 1500);
    cJSON_Delete(schema);
}
