/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* Requests to an inspector without a server: every end point, wrong requests, pauses and kept frames, and exhausted
 * memory. */

static inspect_scene scene;

static void close_scene(void)
{
    inspect_scene_close(&scene);
}

TestSuite(inspect, .fini = close_scene);

static void run_frames(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cr_assert(inspect_scene_turn(&scene));
}

static const char *handle_text(quern_entity entity)
{
    static char text[64];
    snprintf(text, sizeof text, "entity=%u:%u", quern_entity_index(entity),
             quern_entity_generation(entity));
    return text;
}

static const char *with_handle(char arguments[128], quern_entity entity, const char *rest)
{
    snprintf(arguments, 128, "%s%s", handle_text(entity), rest);
    return arguments;
}

static cJSON *get(const char *path, const char *arguments)
{
    const char *text = inspect_get(&scene, path, arguments);
    cJSON *json = cJSON_ParseWithOpts(text, NULL, 1);
    cr_assert(json != NULL, "%s: no JSON: %s", path, text);
    return json;
}

static double number(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    cr_assert(cJSON_IsNumber(item), "no number '%s'", key);
    return item->valuedouble;
}

static int list_size(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    cr_assert(cJSON_IsArray(item), "no list '%s'", key);
    return cJSON_GetArraySize(item);
}

static void expect_status(const char *method, const char *path, const char *arguments, uint32_t expected)
{
    uint32_t status;
    const char *text = inspect_scene_ask(&scene, method, path, arguments, &status);
    cr_assert(status == expected, "%s?%s: %u instead of %u: %s", path, arguments != NULL ? arguments : "",
              status, expected, text);
    cr_assert(strncmp(text, "{\"error\":\"", 10) == 0, "%s", text);
}

/* What the server does for a WebSocket. */
static uint32_t open_channel(const char *arguments)
{
    const uint32_t channel = quern__inspect_channel_open(&scene.inspector->exchange);
    cr_assert_lt(channel, QUERN_INSPECT_MAX_CLIENTS);
    quern__inspect_channel_set(&scene.inspector->exchange, channel, arguments, strlen(arguments));
    return channel;
}

static cJSON *take_message(uint32_t channel, quern_byte_buffer *message)
{
    cr_assert(quern__inspect_channel_take(&scene.inspector->exchange, channel, message));
    return cJSON_ParseWithLength(message->bytes, message->size_bytes);
}

/* What the server does with a request. */
static quern__inspect_request *queue_request(const char *path, const char *arguments)
{
    const quern__inspect_parts parts = {.method = "GET", .path = path, .arguments = arguments};
    quern__inspect_request *request = quern__inspect_request_create(&scene.inspector->exchange, &parts);
    cr_assert(quern__inspect_request_queue(&scene.inspector->exchange, request));
    return request;
}

static void idle(quern_context *context)
{
    (void)context;
}

static Body body_of(quern_entity entity)
{
    return *(const Body *)quern_entity_get(scene.world, entity, scene.body);
}

Test(inspect, lists_a_world)
{
    inspect_scene_open(&scene, 300, NULL);
    const quern_component_def share = {.name = "Share",
                                       .size_bytes = 4,
                                       .alignment_bytes = 4,
                                       .fields = {{"part", QUERN_FIELD_F32, .count = 1, .maximum = 1}}};
    must(quern_component_register(scene.world, &share, &(quern_component){0}));
    run_frames(2);
    cJSON *json = get("world", NULL);
    cr_assert_eq(number(json, "entity_count"), 302);
    cr_assert_eq(number(json, "frame"), 2);
    cJSON_Delete(json);
    json = get("types", NULL);
    cr_assert_eq(list_size(json, "components"), (int)quern_type_count(scene.world, QUERN_TYPE_COMPONENT));
    cr_assert_eq(list_size(json, "relations"), 1);
    const cJSON *body = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "components"), 0);
    const cJSON *speed = cJSON_GetArrayItem(cJSON_GetObjectItem(body, "fields"), 1);
    cr_assert_str_eq(cJSON_GetObjectItem(speed, "unit")->valuestring, "m/s");
    cr_assert_eq(number(speed, "maximum"), 10);
    cr_assert_not_null(strstr(inspect_get(&scene, "types", NULL), "\"minimum\":0,\"maximum\":1"));
    cJSON_Delete(json);
    json = get("archetypes", NULL);
    double rows = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(json, "archetypes")) rows += number(one, "entity_count");
    cr_assert_eq(rows, 302);
    cJSON_Delete(json);
    json = get("resources", NULL);
    one = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "resources"), 0);
    cr_assert_eq(number(cJSON_GetObjectItem(one, "value"), "step"), 0.5);
    cJSON_Delete(json);
    char hash[32];
    snprintf(hash, sizeof hash, "0x%016llx", (unsigned long long)quern_world_hash(scene.world));
    cr_assert_not_null(strstr(inspect_get(&scene, "hash", NULL), hash));
    cJSON_Delete(get("prefabs", NULL));
}

/* Pages of all kinds together list each entity once. */
Test(inspect, lists_entities_in_pages)
{
    uint32_t count = 0, slot = 0;
    char arguments[96];
    inspect_scene_open(&scene, 300, NULL);
    for (bool is_last = false; !is_last;) {
        snprintf(arguments, sizeof arguments, "limit=70&cursor=%u", slot);
        cJSON *json = get("entities", arguments);
        const cJSON *next = cJSON_GetObjectItem(json, "next_cursor");
        count += (uint32_t)list_size(json, "entities");
        is_last = cJSON_IsNull(next);
        slot = is_last ? 0 : (uint32_t)next->valuedouble;
        cJSON_Delete(json);
    }
    cr_assert_eq(count, 302);
    cJSON *json = get("entities", "query=mut+Body%2C+!Marker&limit=40&offset=290&values=1");
    cr_assert_eq(number(json, "count"), 300);
    cr_assert_eq(list_size(json, "entities"), 10);
    const cJSON *last = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "entities"), 9);
    const cJSON *values = cJSON_GetObjectItem(cJSON_GetObjectItem(last, "values"), "components");
    cr_assert_eq(number(cJSON_GetObjectItem(values, "Body"), "x"), 299);
    cJSON_Delete(json);
    json = get("entities", "name=gu");
    cr_assert_eq(number(json, "count"), 1);
    cJSON_Delete(json);
    json = get("roots", "limit=1000");
    cr_assert_eq(number(json, "count"), 301);
    cr_assert_eq(list_size(json, "entities"), 301);
    cJSON_Delete(json);
    json = get("sources", handle_text(scene.root));
    cr_assert_eq(list_size(json, "entities"), 1);
    cJSON_Delete(json);
}

/* A page of sources goes on after the last one of the page before. Disabled entities are listed. */
Test(inspect, lists_sources_and_disabled_entities)
{
    quern_entity children[10];
    char arguments[128];
    inspect_scene_open(&scene, 0, NULL);
    for (int i = 0; i < 10; i++) {
        must(quern_entity_create(scene.world, &children[i]));
        must(quern_entity_relate(scene.world, children[i], scene.parent, scene.child));
    }
    snprintf(arguments, sizeof arguments, "%s&limit=4&after=%u:%u", handle_text(scene.child),
             quern_entity_index(children[6]), quern_entity_generation(children[6]));
    cJSON *json = get("sources", arguments);
    cr_assert_eq(list_size(json, "entities"), 3);
    cr_assert_eq(number(json, "count"), 10);
    cJSON_Delete(json);
    inspect_post(&scene, "enable", "entity=/arena&on=0");
    json = get("entities", "query=Marker");
    cr_assert_eq(number(json, "count"), 1);
    cJSON_Delete(json);
    json = get("entities", "query=!disabled%2C+Marker");
    cr_assert_eq(number(json, "count"), 0);
    cJSON_Delete(json);
}

Test(inspect, shows_one_entity)
{
    inspect_scene_open(&scene, 1, NULL);
    cJSON *json = get("entity", "entity=/arena/gun");
    cr_assert_str_eq(cJSON_GetObjectItem(json, "name")->valuestring, "gun");
    cr_assert_eq(list_size(json, "components"),
                 (int)quern_entity_list_components(scene.world, scene.child, NULL, 0));
    const cJSON *body =
        cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "values"), "components"), "Body");
    cr_assert_str_eq(cJSON_GetObjectItem(body, "level")->valuestring, "high");
    const cJSON *parent = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "relations"), 0);
    const cJSON *target = cJSON_GetArrayItem(cJSON_GetObjectItem(parent, "targets"), 0);
    cr_assert_str_eq(cJSON_GetObjectItem(target, "path")->valuestring, "arena");
    cJSON_Delete(json);
}

Test(inspect, edits_values)
{
    char arguments[128];
    inspect_scene_open(&scene, 1, NULL);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.speed&value=3.5");
    cr_assert_eq(body_of(scene.child).speed, 3.5f);
    inspect_post(&scene, "set_resource", "path=Rules.step&value=2");
    cr_assert_eq(((const Rules *)quern_resource_get(scene.world, scene.rules))->step, 2.0f);
    inspect_post(&scene, "name", "entity=/arena&name=h%C3%A4ll%22%0A");
    cr_assert_str_eq(quern_entity_name(scene.world, scene.root), "h\xC3\xA4ll\"\n");
    cJSON_Delete(get("entity", handle_text(scene.root)));
    inspect_post(&scene, "add", with_handle(arguments, scene.root, "&component=Marker"));
    cr_assert(quern_entity_has(scene.world, scene.root, scene.marker));
    inspect_post(&scene, "remove", with_handle(arguments, scene.root, "&component=Marker"));
    cr_assert_not(quern_entity_has(scene.world, scene.root, scene.marker));
    inspect_post(&scene, "relate", with_handle(arguments, scene.child, "&relation=parent&target="));
    cr_assert(quern_entity_is_null(quern_entity_target(scene.world, scene.child, scene.parent)));
    snprintf(arguments, sizeof arguments, "%s&relation=parent&target=%u:%u", handle_text(scene.child),
             quern_entity_index(scene.root), quern_entity_generation(scene.root));
    inspect_post(&scene, "relate", arguments);
    cr_assert(quern_entity_equal(quern_entity_target(scene.world, scene.child, scene.parent), scene.root));
    inspect_post(&scene, "create", NULL);
    inspect_post(&scene, "destroy", handle_text(scene.root));
    cr_assert_not(quern_entity_is_alive(scene.world, scene.child));
    assert_valid(scene.world);
    cr_assert_eq(scene.inspector->mark_count, 9);
}

Test(inspect, merges_json)
{
    char arguments[128];
    const char body[] = "{\"components\": {\"Body\": {\"x\": 9}}}";
    inspect_scene_open(&scene, 0, NULL);
    with_handle(arguments, scene.child, "");
    const quern_inspect_call call = {.method = "POST",
                                     .path = "merge",
                                     .arguments = arguments,
                                     .body = body,
                                     .body_bytes = strlen(body)};
    quern_text_buffer none = {NULL, 0, 0};
    uint32_t status;
    must(quern_inspect_request(scene.inspector, &call, quern_sink_text(&none), &status));
    cr_assert_eq(status, 200);
    cr_assert_eq(body_of(scene.child).x, 9.0f);
}

/* A path is whole and leads back to its entity, or there is an error instead. */
Test(inspect, shows_whole_paths_or_none)
{
    char name[QUERN_MAX_ENTITY_NAME_BYTES + 1], arguments[QUERN__INSPECT_ARGUMENT_BYTES];
    quern_entity chain[70];
    size_t lengths[70], path_bytes = 0;
    inspect_scene_open(&scene, 0, NULL);
    memset(name, 'n', sizeof name);
    for (uint32_t i = 0; i < 70; i++) {
        must(quern_entity_create(scene.world, &chain[i]));
        snprintf(name + sizeof name - 3, 3, "%02u", i);
        /* A path of exactly the limit with its zero, 4096 bytes, is one of them: 1 + 62 + 63 * 63 bytes and 64 '/'. */
        const size_t left_out = i == 0 ? sizeof name - 2 : i == 1 ? 1 : 0;
        must(quern_entity_set_name(scene.world, chain[i], name + left_out));
        path_bytes += strlen(name + left_out) + (i > 0);
        lengths[i] = path_bytes;
        if (i > 0) must(quern_entity_relate(scene.world, chain[i], scene.parent, chain[i - 1]));
    }
    for (uint32_t i = 0; i < 70; i++) {
        cJSON *json = get("entity", handle_text(chain[i]));
        const cJSON *path = cJSON_GetObjectItem(json, "path");
        const bool fits = lengths[i] < QUERN__INSPECT_PATH_BYTES;
        cr_assert_eq(cJSON_IsString(path) != 0, fits, "%u", i);
        cr_assert_eq(cJSON_GetObjectItem(json, "path_error") == NULL, fits, "%u", i);
        if (fits) {
            snprintf(arguments, sizeof arguments, "entity=/%s", path->valuestring);
            cJSON *again = get("entity", arguments);
            cr_assert_str_eq(cJSON_GetObjectItem(again, "entity")->valuestring, handle_text(chain[i]) + 7);
            cJSON_Delete(again);
        }
        cJSON_Delete(json);
    }
}

/* Messages and marks are cut between characters, and answers are UTF-8 whatever names are. */
Test(inspect, cuts_between_characters)
{
    char arguments[256] = "relation=", text[512];
    uint32_t status;
    inspect_scene_open(&scene, 0, NULL);
    memset(arguments + 9, 'r', 79);
    /* A character of three bytes from the 80th on. */
    snprintf(arguments + 88, sizeof arguments - 88, "%s", "%E2%82%AC&entity=/arena");
    snprintf(text, sizeof text, "no relation '%.79s'", arguments + 9);
    const char *answer = inspect_scene_ask(&scene, "GET", "sources", arguments, &status);
    cr_assert_eq(status, 404);
    cr_assert_not_null(strstr(answer, text), "%s", answer);
    static const char *const wrong[] = {"name=%FF",    "name=%C3",       "name=%C3a",
                                        "name=%E2%82", "name=%ED%A0%80", "name=%F4%90%80%80",
                                        "name=%C0%80", "name=%80",       "%C3=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_status("GET", "entities", wrong[i], 400);
    cJSON_Delete(get("entities", "name=%F0%9F%98%80"));
    quern_component odd;
    must(quern_component_register(scene.world, &(quern_component_def){.name = "od\xFF\xC3\xA4"}, &odd));
    must(quern_entity_add(scene.world, scene.root, odd, NULL));
    answer = inspect_get(&scene, "entity", "entity=/arena");
    cr_assert_not_null(strstr(answer, "\"od\xEF\xBF\xBD\xC3\xA4\""), "%s", answer);
}

typedef struct Link {
    quern_entity to;
    quern_entity more[2];
    char text[8];
} Link;

Test(inspect, refuses_links_to_dead_entities)
{
    const quern_component_def def = {
        QUERN_TYPE(Link),
        .fields = {QUERN_FIELD(Link, to), QUERN_FIELD(Link, more), QUERN_TEXT(Link, text)}};
    quern_component component;
    inspect_scene_open(&scene, 1, NULL);
    must(quern_component_register(scene.world, &def, &component));
    must(quern_entity_add(scene.world, scene.child, component, &(Link){.text = "a"}));
    expect_status("POST", "set", "entity=/arena/gun&path=Link.to&value=9:9", 404);
    expect_status("POST", "set", "entity=/arena/gun&path=Link.more&value=[none, 9:9]", 404);
    expect_status("POST", "set", "entity=/arena/gun&path=Link.more[1]&value=9:9", 404);
    expect_status("POST", "set", "entity=/arena/gun&path=Link.to&value=/nowhere", 400);
    expect_status("POST", "set", "entity=/arena/gun&path=Link.to&value=[", 400);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Link.to&value=/arena");
    inspect_post(&scene, "set", "entity=/arena/gun&path=Link.more[1]&value=1:1");
    inspect_post(&scene, "set", "entity=/arena/gun&path=Link.text&value=9:9"); /* no entity, but a text */
    const Link *link = quern_entity_get(scene.world, scene.child, component);
    cr_assert(quern_entity_equal(link->to, scene.root));
    cr_assert(quern_entity_is_null(link->more[0]));
    cr_assert_not(quern_entity_is_null(link->more[1]));
    cr_assert_str_eq(link->text, "9:9");
    inspect_post(&scene, "set", "entity=/arena/gun&path=Link.to&value=none");
}

/* Going on from an earlier frame drops the frames after it, so the answer says so, once. */
Test(inspect, warns_of_frames_that_a_step_drops)
{
    uint32_t status;
    inspect_scene_open(&scene, 2, NULL);
    run_frames(8);
    inspect_post(&scene, "pause", NULL);
    cr_assert_null(strstr(inspect_scene_ask(&scene, "POST", "step", NULL, &status), "warning"));
    run_frames(1);
    inspect_post(&scene, "restore", "frame=4");
    inspect_post(&scene, "restore", "frame=9"); /* the present, which is kept as the newest frame now */
    cr_assert_null(strstr(inspect_scene_ask(&scene, "POST", "step", "count=0", &status), "warning"));
    cr_assert_null(strstr(inspect_scene_ask(&scene, "POST", "resume", NULL, &status), "warning"));
    inspect_post(&scene, "restore", "frame=4");
    cr_assert_not(inspect_scene_turn(&scene));
    const char *answer = inspect_scene_ask(&scene, "POST", "step", NULL, &status);
    cr_assert_eq(status, 200);
    cr_assert_not_null(strstr(answer, "\"warning\":\"step: the frames 5 to 9 are dropped"), "%s", answer);
    run_frames(1);
    cr_assert_null(strstr(inspect_scene_ask(&scene, "POST", "step", NULL, &status), "warning"));
    run_frames(1);
    inspect_post(&scene, "restore", "frame=5");
    cr_assert_not_null(
        strstr(inspect_scene_ask(&scene, "POST", "resume", NULL, &status), "\"warning\":\"resume: "));
}

/* Each step writes the edges of one system. */
Test(inspect, divides_large_schedules)
{
    char name[32];
    inspect_scene_open(&scene, 2, NULL);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "system%d", i);
        const quern_system_def def = {
            .name = name, .begin = idle, .resources = {{scene.rules, QUERN_ACCESS_WRITE}}};
        must(quern_schedule_add_system(scene.schedule, &def, NULL));
    }
    must(quern_schedule_compile(scene.schedule));
    scene.inspector->def.budget_ns = 1;
    quern__inspect_request *request = queue_request("schedule", NULL);
    uint32_t updates = 0;
    for (; !request->is_answered; updates++)
        cr_assert(quern_inspector_update(scene.inspector, &scene.frame));
    cr_assert_geq(updates, 52u);
    cJSON *json = cJSON_ParseWithLength(request->answer.bytes, request->answer.size_bytes);
    cr_assert_eq(list_size(json, "edges"), 52);
    const cJSON *list;
    int count = 0;
    cJSON_ArrayForEach(list, cJSON_GetObjectItem(json, "edges")) count += cJSON_GetArraySize(list);
    cr_assert(count >= 50 && count < 120, "%d direct edges", count);
    cJSON_Delete(json);
    quern__inspect_request_leave(&scene.inspector->exchange, request);
    json = get("edges", "system=system49");
    cr_assert_geq(list_size(json, "edges"), 49);
    cJSON_Delete(json);
    expect_status("GET", "edges", "system=none", 404);
    expect_status("GET", "edges", NULL, 400);
}

/* Wrong requests answer with an error, and change nothing. */
Test(inspect, refuses_wrong_requests)
{
    char longest[QUERN__INSPECT_ARGUMENT_BYTES + 16];
    inspect_scene_open(&scene, 3, NULL);
    const uint64_t hash = quern_world_hash(scene.world);
    expect_status("GET", "nothing", NULL, 404);
    expect_status("GET", "../world", NULL, 404);
    expect_status("GET", "", NULL, 404);
    expect_status("GET", "set", "entity=/arena&path=Body.x&value=1", 405);
    expect_status("POST", "world", NULL, 405);
    expect_status("PUT", "set", NULL, 405);
    expect_status("GET", "entity", NULL, 400);
    expect_status("GET", "entity", "entity=77:3", 404);
    expect_status("GET", "entity", "entity=%zz", 400);
    expect_status("GET", "entity", "entity=%00", 400);
    expect_status("GET", "entity", "entity=%", 400);
    expect_status("GET", "entities", "query=Nothing", 400);
    expect_status("GET", "entities", "query=Body&name=a", 400);
    expect_status("GET", "entities", "limit=1001", 400);
    expect_status("GET", "entities", "limit=-1", 400);
    expect_status("GET", "entities", "limit=1x", 400);
    expect_status("GET", "sources", "entity=/arena&relation=none", 404);
    expect_status("GET", "sources", "entity=/arena&after=/arena", 404);
    expect_status("POST", "set", "entity=/arena/gun&path=Body.speed&value=11", 400);
    expect_status("POST", "set", "entity=/arena/gun&path=Body.speed&value=fast", 400);
    expect_status("POST", "set", "entity=/arena&path=Body.x&value=1", 404);
    expect_status("POST", "enable", "entity=/arena&on=2", 400);
    expect_status("POST", "enable", "entity=/arena&on=1&component=Nothing", 404);
    expect_status("POST", "relate", "entity=/arena&relation=parent&target=/arena/gun", 400);
    expect_status("POST", "system", "name=nothing&on=1", 404);
    expect_status("POST", "restore", "frame=5", 400);
    expect_status("POST", "restore", NULL, 400);
    expect_status("POST", "record", "frames=0", 400);
    expect_status("GET", "forecast", NULL, 404);
    expect_status("GET", "delta", "from=7&to=9", 400);
    expect_status("GET", "world", "a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q", 400);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    expect_status("GET", "world", longest, 400);
    cr_assert_eq(quern_world_hash(scene.world), hash);
    scene.inspector->def.is_read_only = true;
    expect_status("POST", "destroy", "entity=/arena", 403);
    must_refuse(NULL_ARGUMENT, scene.world,
                quern_inspect_request(NULL, NULL, quern_sink_bytes(NULL), NULL));
    const quern_inspect_call call = {.method = "GET", .path = "world"};
    must_refuse(NULL_ARGUMENT, scene.world,
                quern_inspect_request(scene.inspector, &call, (quern_sink){0}, NULL));
    must_refuse(NULL_ARGUMENT, scene.world, quern_inspector_create(NULL, NULL));
}

Test(inspect, shows_systems_and_commands)
{
    inspect_scene_open(&scene, 5, NULL);
    inspect_post(&scene, "profiling", "on=1");
    run_frames(3);
    cJSON *json = get("systems", NULL);
    cr_assert_eq(list_size(json, "systems"), 2);
    const cJSON *move = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "systems"), 0);
    cr_assert_str_eq(cJSON_GetObjectItem(move, "name")->valuestring, "move \"bodies\"");
    cr_assert_eq(number(move, "entity_count"), 6);
    cr_assert_eq(list_size(cJSON_GetObjectItem(json, "profile"), "workers"), 1);
    cr_assert_eq(number(json, "command_count"), 1);
    cJSON_Delete(json);
    cJSON_Delete(get("schedule", NULL));
    inspect_post(&scene, "system", "name=bump&on=0");
    run_frames(1);
    json = get("systems", NULL);
    cr_assert_eq(number(json, "command_count"), 0);
    cJSON_Delete(json);
}

/* A drop stays listed after its frame, while something watches. */
Test(inspect, keeps_reports_of_drops)
{
    inspect_scene_open(&scene, 5, NULL);
    inspect_post(&scene, "pause", NULL);
    scene.destroys = true;
    inspect_post(&scene, "step", "count=3");
    run_frames(3);
    cr_assert_not(inspect_scene_turn(&scene));
    cJSON *json = get("systems", NULL);
    const cJSON *commands = cJSON_GetObjectItem(json, "commands");
    cr_assert_eq(list_size(commands, "dropped"), 0);
    cr_assert_eq(list_size(commands, "recent"), 1);
    const cJSON *drop = cJSON_GetArrayItem(cJSON_GetObjectItem(commands, "recent"), 0);
    cr_assert_eq(number(drop, "frame"), 0);
    cr_assert_str_eq(cJSON_GetObjectItem(drop, "system")->valuestring, "bump");
    cr_assert_str_eq(cJSON_GetObjectItem(drop, "reason")->valuestring,
                     quern_drop_reason_string(QUERN_DROP_DESTROYED));
    cJSON_Delete(json);
}

Test(inspect, forecasts_and_traces)
{
    uint32_t status;
    inspect_scene_open(&scene, 5, NULL);
    inspect_post(&scene, "capture", NULL);
    inspect_post(&scene, "record", "frames=2");
    run_frames(1);
    inspect_scene_ask(&scene, "GET", "trace", NULL, &status);
    cr_assert_eq(status, 409);
    run_frames(2);
    cr_assert_eq(atomic_load_explicit(&scene.inspector->exchange.attention, memory_order_relaxed), 0u);
    cJSON *json = get("forecast", "threads=16");
    cr_assert_eq(list_size(json, "forecasts"), 10); /* 1 to 8, 12, 16 */
    cJSON_Delete(json);
    inspect_post(&scene, "capture", NULL);
    expect_status("GET", "forecast", NULL, 404); /* the frame of before is not the next one */
    json = get("trace", NULL);
    cr_assert(list_size(json, "traceEvents") > 4);
    cJSON_Delete(json);
}

/* While paused, no frame runs; steps run as many as asked for. */
Test(inspect, pauses_and_steps)
{
    inspect_scene_open(&scene, 2, NULL);
    run_frames(2);
    inspect_post(&scene, "pause", NULL);
    inspect_post(&scene, "pause", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    inspect_post(&scene, "step", "count=2");
    run_frames(2);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 4);
    inspect_post(&scene, "resume", NULL);
    run_frames(2);
    cr_assert_eq(atomic_load_explicit(&scene.inspector->exchange.attention, memory_order_relaxed), 0u);
}

/* Scrubbing there and back ends in the same state, and going on from an earlier frame repeats the frames. */
Test(inspect, scrubs_and_goes_on)
{
    uint64_t hashes[12];
    char arguments[32];
    inspect_scene_open(&scene, 20, NULL);
    for (int i = 0; i < 10; i++) {
        hashes[scene.frame] = quern_world_hash(scene.world);
        run_frames(1);
    }
    inspect_post(&scene, "pause", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    hashes[10] = quern_world_hash(scene.world);
    for (uint64_t frame = 10; frame-- > 2;) {
        snprintf(arguments, sizeof arguments, "frame=%u", (unsigned)frame);
        inspect_post(&scene, "restore", arguments);
        cr_assert_not(inspect_scene_turn(&scene));
        cr_assert_eq(scene.frame, frame);
        cr_assert_eq(quern_world_hash(scene.world), hashes[frame]);
    }
    inspect_post(&scene, "restore", "frame=10");
    cr_assert_eq(quern_world_hash(scene.world), hashes[10]);
    inspect_post(&scene, "restore", "frame=4");
    inspect_post(&scene, "resume", NULL);
    for (uint64_t frame = 4; frame < 10; frame++) {
        run_frames(1);
        cr_assert_eq(scene.frame, frame + 1);
        cr_assert_eq(quern_world_hash(scene.world), hashes[frame + 1]);
    }
}

Test(inspect, compares_frames)
{
    char arguments[96];
    inspect_scene_open(&scene, 20, NULL);
    run_frames(4);
    cJSON *json = get("delta", "from=1&to=2&limit=5");
    cr_assert_eq(number(cJSON_GetObjectItem(json, "counts"), "changed"),
                 20); /* not the one that is set back */
    cr_assert_eq(list_size(json, "entries"), 5);
    const cJSON *entry = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "entries"), 0);
    cr_assert(number(cJSON_GetObjectItem(entry, "new"), "x") >
              number(cJSON_GetObjectItem(entry, "old"), "x"));
    cJSON_Delete(json);
    inspect_post(&scene, "pause", NULL);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.level&value=high");
    snprintf(arguments, sizeof arguments, "from=3&to=4&%s", handle_text(scene.child));
    json = get("delta", arguments);
    const cJSON *changed = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "entries"), 0);
    cr_assert_eq(list_size(json, "entries"), 1);
    cr_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(changed, "new"), "level")->valuestring,
                     "high");
    cJSON_Delete(json);
}

/* What a WebSocket would send. */
Test(inspect, writes_messages)
{
    char arguments[128];
    inspect_scene_open(&scene, 20, NULL);
    run_frames(1);
    snprintf(arguments, sizeof arguments, "parts=systems,profile,commands,events&entities=9:9,%s,x",
             handle_text(scene.child) + 7);
    cJSON *json = get("watch", arguments);
    cr_assert_eq(list_size(json, "systems"), 2);
    cr_assert_eq(list_size(json, "entities"), 2); /* one of them is dead */
    const cJSON *dead = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "entities"), 0);
    cr_assert(cJSON_IsFalse(cJSON_GetObjectItem(dead, "alive")));
    cr_assert_eq(list_size(json, "events"), 0);
    cJSON_Delete(json);
    json = get("watch", NULL);
    cr_assert_null(cJSON_GetObjectItem(json, "systems"));
    cJSON_Delete(json);
}

Test(inspect, writes_the_parts_that_are_asked_for)
{
    static const char *const names[] = {"systems", "profile", "commands", "events"};
    static const struct {
        const char *arguments;
        unsigned parts; /* bit i for names[i] */
    } cases[] = {{"parts=systems", 1},
                 {"parts=profile", 2},
                 {"parts=commands", 4},
                 {"parts=events", 8},
                 {"parts=commands,systems", 5},
                 {"parts=other,profile,systems", 3},
                 {"parts=,events,", 8},
                 {"parts=systemsx", 0},
                 {"parts=system", 0},
                 {"parts=xsystems,xx", 0},
                 {"parts=", 0},
                 {"rate=10", 0}};
    inspect_scene_open(&scene, 2, NULL);
    run_frames(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *json = get("watch", cases[i].arguments);
        for (unsigned k = 0; k < 4; k++)
            cr_assert_eq(cJSON_GetObjectItem(json, names[k]) != NULL, (cases[i].parts >> k & 1) != 0,
                         "%s: %s", cases[i].arguments, names[k]);
        cJSON_Delete(json);
    }
}

/* A page gets the samples of all frames since it was opened, each once. */
Test(inspect, sends_each_sample_once)
{
    inspect_scene_open(&scene, 2, NULL);
    quern__inspect_client *client = &scene.inspector->clients[0];
    quern_byte_buffer message = {.bytes = NULL};
    atomic_fetch_add_explicit(&scene.inspector->exchange.attention, 1, memory_order_relaxed);
    run_frames(3); /* these samples are of no page */
    const uint32_t channel = open_channel("");
    run_frames(1);
    cJSON *first = take_message(channel, &message);
    cr_assert_eq(list_size(first, "samples"), 0);
    cJSON_Delete(first);
    double next = (double)scene.frame - 1;
    for (uint32_t round = 0; round < 6; round++) {
        run_frames(round % 3); /* no message is due */
        client->due_ns = 0;
        run_frames(1);
        cJSON *json = take_message(channel, &message);
        cr_assert_eq(list_size(json, "samples"), (int)(round % 3 + 1), "round %u", round);
        for (int i = 0; i < list_size(json, "samples"); i++) {
            const cJSON *sample = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "samples"), i);
            cr_assert_eq(cJSON_GetArrayItem(sample, 0)->valuedouble, next++);
        }
        cJSON_Delete(json);
        client->due_ns = UINT64_MAX;
    }
    quern_byte_buffer_release(&message);
}

/* The readers of events exist only while a client wants events. */
Test(inspect, keeps_the_newest_events)
{
    inspect_scene_open(&scene, 0, NULL);
    const uint32_t channel = open_channel("parts=events&rate=60");
    for (int i = 0; i < 300; i++)
        run_frames(1);
    cJSON *json = get("events", NULL);
    cr_assert_eq(list_size(json, "events"), QUERN__INSPECT_EVENTS, "%d", list_size(json, "events"));
    const cJSON *last = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "events"), QUERN__INSPECT_EVENTS - 1);
    cr_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(last, "value"), "body")->valuestring,
                     "/arena/gun");
    const cJSON *type = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "types"), 0);
    cr_assert_eq(number(type, "reader_count"), 1);
    cJSON_Delete(json);
    cr_assert(scene.inspector->exchange.channels[channel].is_ready);
    quern__inspect_channel_close(&scene.inspector->exchange, channel, false);
    atomic_fetch_add_explicit(&scene.inspector->exchange.attention, 1, memory_order_relaxed);
    run_frames(QUERN_INSPECT_MAX_CLIENTS); /* each looks at another client first */
    json = get("events", NULL);
    cr_assert_eq(number(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "types"), 0), "reader_count"), 0);
    cJSON_Delete(json);
}

/* An answer that does not fit its budget continues after the next frame, and memory does not grow. */
Test(inspect, answers_over_several_frames)
{
    inspect_scene_open(&scene, 400, NULL);
    quern__inspect_request *request = queue_request("entities", "query=Body&limit=400&values=1");
    scene.inspector->def.budget_ns = 20000;
    uint32_t turns = 0;
    for (; !request->is_answered && turns < 1000; turns++)
        run_frames(1);
    cr_assert(turns > 1, "%u turns", turns);
    cr_assert_null(scene.inspector->current);
    cr_assert_eq(request->status, 200);
    quern__inspect_request_leave(&scene.inspector->exchange, request);
}

/* While paused, an update stops at its budget, too, and the next one goes on. */
Test(inspect, keeps_its_budget_while_paused)
{
    inspect_scene_open(&scene, 400, NULL);
    inspect_post(&scene, "pause", NULL);
    scene.inspector->paused_budget_ns = 1;
    quern__inspect_request *requests[10];
    for (int i = 0; i < 10; i++)
        requests[i] = queue_request("entities", "query=Body&limit=40");
    for (int i = 0; i < 10; i++) {
        uint32_t updates = 0;
        for (; !requests[i]->is_answered; updates++) {
            cr_assert_lt(updates, 20u);
            cr_assert_not(quern_inspector_update(scene.inspector, &scene.frame));
        }
        cr_assert_geq(updates, 5u, "40 entries in %u updates", updates);
        cr_assert(i == 9 || !requests[i + 1]->is_answered);
        quern__inspect_request_leave(&scene.inspector->exchange, requests[i]);
    }
}

/* With a budget for one client alone, each gets its messages all the same. */
Test(inspect, serves_clients_in_turn)
{
    inspect_scene_open(&scene, 10, NULL);
    scene.inspector->def.budget_ns = 1;
    for (int i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        open_channel("rate=60");
    run_frames(4 * QUERN_INSPECT_MAX_CLIENTS);
    for (int i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        cr_assert(scene.inspector->exchange.channels[i].is_ready, "client %d", i);
}

/* A client that has not read its message gets no other one, and what was due meanwhile is counted. */
Test(inspect, skips_messages_of_a_client_that_does_not_read)
{
    quern_byte_buffer message = {.bytes = NULL};
    inspect_scene_open(&scene, 2, NULL);
    const uint32_t channel = open_channel("rate=60");
    run_frames(3);
    for (int i = 0; i < 5; i++) {
        scene.inspector->clients[channel].due_ns = 0;
        run_frames(1);
    }
    cr_assert_eq(scene.inspector->skipped_count, 5u);
    cJSON *json = get("world", NULL);
    cr_assert_eq(number(cJSON_GetObjectItem(json, "inspector"), "skipped_count"), 5);
    cJSON_Delete(json);
    cJSON_Delete(take_message(channel, &message));
    scene.inspector->clients[channel].due_ns = 0;
    run_frames(1);
    json = take_message(channel, &message);
    cr_assert_eq(list_size(json, "samples"), 8); /* of all frames in between */
    cJSON_Delete(json);
    quern_byte_buffer_release(&message);
}

/* A message that was built for a client that has left is not sent to the next client with its channel. */
Test(inspect, drops_a_message_for_a_client_that_has_left)
{
    char arguments[600] = "rate=60&entities=";
    quern_byte_buffer message = {.bytes = NULL};
    inspect_scene_open(&scene, 100, NULL);
    scene.inspector->def.budget_ns = 1;
    for (size_t i = 0; i < 90; i++)
        snprintf(arguments + strlen(arguments), 8, "%zu:1,", i + 1);
    const uint32_t channel = open_channel(arguments);
    while (!scene.inspector->clients[channel].is_building)
        run_frames(1);
    quern__inspect_channel_close(&scene.inspector->exchange, channel, false);
    cr_assert_eq(open_channel("rate=60"), channel);
    quern_sink_bytes(&message).write(quern_sink_bytes(&message).user_data, "late", 4);
    quern__inspect_channel_send(&scene.inspector->exchange, channel, &message);
    cr_assert_not(scene.inspector->exchange.channels[channel].is_ready);
    while (!scene.inspector->exchange.channels[channel].is_ready)
        run_frames(1);
    cJSON *json = take_message(channel, &message);
    cr_assert_eq(list_size(json, "entities"), 0);
    cJSON_Delete(json);
    quern_byte_buffer_release(&message);
}

/* Neither the world nor its schedule or history ends before the inspector. */
Test(inspect, ends_before_its_world)
{
    static captured_reports reports;
    inspect_scene_open(&scene, 2, NULL);
    capture_reports(&reports);
    quern_history_destroy(scene.history);
    cr_assert_not_null(strstr(reports.last, "quern_history_destroy: the inspector"), "%s", reports.last);
    quern_schedule_destroy(scene.schedule);
    quern_world_destroy(scene.world);
    cr_assert_not_null(strstr(reports.last, "quern_world_destroy: the inspector"), "%s", reports.last);
    cr_assert_eq(reports.log_count, 3u);
    run_frames(1);
    inspect_get(&scene, "world", NULL);
    inspect_scene_close(&scene);
    cr_assert_eq(reports.log_count, 3u);
}

/* Each allocation fails once: a request answers with an error or says that it could not, and nothing leaks. */
Test(inspect, survives_exhausted_memory)
{
    static const char *const requests[][2] = {{"types", NULL},
                                              {"entities", "query=Body&limit=500&values=1"},
                                              {"watch", "parts=systems"},
                                              {"schedule", NULL}};
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(failing);
    inspect_scene_open(&scene, 200, &allocator);
    run_frames(1);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        uint32_t failures = 0;
        for (bool has_failed = true; has_failed; failures += has_failed) {
            uint32_t status = 0;
            quern_text_buffer none = {NULL, 0, 0};
            const quern_inspect_call call = {
                .method = "GET", .path = requests[i][0], .arguments = requests[i][1]};
            const uint64_t failed = failing_allocator_failed_count(failing);
            failing_allocator_fail_at(failing, 1 + failures);
            const quern_result result =
                quern_inspect_request(scene.inspector, &call, quern_sink_text(&none), &status);
            has_failed = failing_allocator_failed_count(failing) > failed;
            cr_assert(has_failed ? result == QUERN_ERROR_OUT_OF_MEMORY || status == 503
                                 : result == QUERN_OK && status == 200,
                      "%s: %s, status %u", call.path, quern_result_string(result), status);
        }
        cr_assert(failures > 0);
    }
    failing_allocator_fail_from(failing, 2);
    cr_assert_eq(quern__inspect_set_listening(scene.inspector, true), QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(failing);
    inspect_scene_close(&scene);
    failing_allocator_close(failing);
}

/* ----------------------------------------------------------------------------------------- large worlds */

enum { MANY = 100000 };

/* Counts how often an answer is continued until it is done: each update with the smallest budget does one step. In each
 * step, the answer may write at most 8 entries, or visit QUERN__INSPECT_SEARCHED_PER_STEP entities. */
static uint32_t count_steps(const char *path, const char *arguments, cJSON **out_json)
{
    uint32_t steps = 0;
    quern__inspect_request *request = queue_request(path, arguments);
    cr_assert(quern_inspector_update(scene.inspector, &scene.frame)); /* begins the answer */
    for (; !request->is_answered; steps++) {
        cr_assert_lt(steps, MANY, "%s does not end", path);
        const quern__inspect_answer *answer = scene.inspector->current;
        const uint32_t at = answer->at, cursor = answer->search.cursor;
        const bool is_searching = answer->list != 0;
        cr_assert(quern_inspector_update(scene.inspector, &scene.frame));
        if (request->is_answered) continue;
        cr_assert_leq(answer->at - at, 8, "%s: %u entries in one frame", path, answer->at - at);
        if (is_searching && answer->search.cursor != QUERN_LIST_END)
            cr_assert_leq(answer->search.cursor - cursor, QUERN__INSPECT_SEARCHED_PER_STEP, "%u visited",
                          answer->search.cursor - cursor);
    }
    cr_assert_eq(request->status, 200, "%s", (const char *)request->answer.bytes);
    *out_json = cJSON_ParseWithLength(request->answer.bytes, request->answer.size_bytes);
    quern__inspect_request_leave(&scene.inspector->exchange, request);
    return steps;
}

static void open_large(void)
{
    char name[32];
    inspect_scene_open(&scene, MANY, NULL);
    const quern_query_def def = {.terms = {quern_term_with(scene.body)}};
    quern_query *query;
    must(quern_query_create(scene.world, &def, &query));
    static quern_entity entities[MANY + 1];
    uint32_t count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++)
            entities[count++] = it.view.entities[i];
    quern_query_destroy(query);
    for (uint32_t i = 0; i < count; i += 100) {
        snprintf(name, sizeof name, "named%06u", count - i);
        must(quern_entity_set_name(scene.world, entities[i], name));
        if (i > 0) must(quern_entity_relate(scene.world, entities[i], scene.parent, scene.root));
    }
    scene.inspector->def.budget_ns = 1;
    /* The test hands answers over by itself. */
    atomic_fetch_add_explicit(&scene.inspector->exchange.attention, 1000000, memory_order_relaxed);
}

/* With 100,000 entities, no frame has more than one part of a list, a page of the tree or a search to do. */
Test(inspect, divides_lists_of_large_worlds)
{
    cJSON *json;
    open_large();
    cr_assert_leq(count_steps("entities", "query=Body&limit=50&offset=99900", &json), 8);
    cr_assert_eq(list_size(json, "entities"), 50);
    cJSON_Delete(json);
    cr_assert_leq(count_steps("roots", "limit=50&offset=90000", &json), 8);
    cr_assert_eq(list_size(json, "entities"), 50);
    cJSON_Delete(json);
    char arguments[128];
    cr_assert_leq(count_steps("sources", with_handle(arguments, scene.root, "&limit=50"), &json), 8);
    cr_assert_eq(list_size(json, "entities"), 50);
    cr_assert_gt(number(json, "count"), 900);
    cJSON_Delete(json);
    cr_assert_geq(count_steps("entities", "name=named&limit=50", &json),
                  MANY / QUERN__INSPECT_SEARCHED_PER_STEP);
    cr_assert_eq(number(json, "count"), 1001);
    cr_assert_str_eq(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "entities"), 0), "name")
            ->valuestring,
        "named000001");
    cJSON_Delete(json);
}

static void expect_names(const char *arguments, uint32_t count, const char *prefix, uint32_t limit)
{
    quern_entity expected[64];
    char text[64];
    cJSON *json = get("entities", arguments);
    cr_assert_eq(quern_world_list_named(scene.world, prefix, expected, limit), count, "%s", prefix);
    cr_assert_eq(number(json, "count"), count, "%s", arguments);
    const cJSON *list = cJSON_GetObjectItem(json, "entities");
    cr_assert_eq(cJSON_GetArraySize(list), (int)(count < limit ? count : limit), "%s", arguments);
    for (int i = 0; i < cJSON_GetArraySize(list); i++) {
        snprintf(text, sizeof text, "%s", handle_text(expected[i]) + 7);
        cr_assert_str_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(list, i), "entity")->valuestring, text);
    }
    cJSON_Delete(json);
}

/* The search by name finds what quern_world_list_named does, in the same order, also if it keeps only some. */
Test(inspect, finds_names_and_paths)
{
    char name[32];
    quern_entity entity;
    inspect_scene_open(&scene, 300, NULL);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "gun%u", i * 7 % 40);
        must(quern_entity_create(scene.world, &entity));
        if (i % 2 == 0) must(quern_entity_relate(scene.world, entity, scene.parent, scene.root));
        must(quern_entity_set_name(scene.world, entity, name));
    }
    /* Two entities of the same name are in the order of their slots. */
    must(quern_entity_create(scene.world, &entity));
    must(quern_entity_relate(scene.world, entity, scene.parent, scene.child));
    must(quern_entity_set_name(scene.world, entity, "gun5"));
    expect_names("name=gu&limit=64", 42, "gu", 64);
    expect_names("name=gu&limit=7", 42, "gu", 7);
    expect_names("name=/arena/gun&limit=5", 21, "/arena/gun", 5);
    expect_names("name=/gun&limit=30", 20, "/gun", 30);
    expect_names("name=/arena/&limit=64", 21, "/arena/", 64);
    expect_names("name=/nowhere/gun&limit=5", 0, "/nowhere/gun", 5);
    expect_names("name=arena/gun&limit=5", 0, "arena/gun", 5);
    expect_names("name=gu&limit=0", 42, "gu", 0);
}

/* An entity that is destroyed while the search goes on is no living entry, and one that is renamed is found once. */
Test(inspect, searches_a_world_that_changes)
{
    char name[32];
    inspect_scene_open(&scene, 1000, NULL);
    quern_entity entities[4];
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "target%u", i);
        must(quern_entity_create(scene.world, &entities[i]));
        must(quern_entity_set_name(scene.world, entities[i], name));
    }
    must(quern_entity_set_name(scene.world, scene.child, "target9"));
    quern__inspect_answer *answer = quern__inspect_answer_create(scene.inspector);
    quern__inspect_answer_open(answer, "GET", "entities", "name=target");
    quern__inspect_answer_begin(answer);
    quern__inspect_answer_step(answer);
    cr_assert_eq(answer->entity_count, 1);
    must(quern_entity_set_name(scene.world, scene.child, NULL));
    must(quern_entity_destroy(scene.world, entities[2]));
    while (!answer->is_done)
        quern__inspect_answer_step(answer);
    cJSON *json = cJSON_ParseWithLength(answer->text.bytes.bytes, answer->text.bytes.size_bytes);
    cr_assert_eq(number(json, "count"), 4);
    const cJSON *list = cJSON_GetObjectItem(json, "entities");
    cr_assert_str_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "name")->valuestring, "target0");
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 3), "name")));
    cJSON_Delete(json);
    quern__inspect_answer_destroy(answer);
}

/* ------------------------------------------------------------------------------------------ long sessions */

typedef struct memory_use {
    uint64_t inspector_bytes, history_bytes, world_bytes;
} memory_use;

static memory_use measure(failing_allocator *allocator)
{
    quern_history_stats history;
    quern_world_stats world;
    must(quern_history_get_stats(scene.history, &history));
    must(quern_world_get_stats(scene.world, &world));
    return (memory_use){failing_allocator_outstanding_bytes(allocator), history.held_bytes,
                        world.held_bytes + world.event_bytes + world.link_bytes};
}

/* A page that watches, lists and edits for 10,000 frames. */
static void run_session(uint32_t frame_count)
{
    static const char *const requests[][2] = {
        {"world", NULL},
        {"watch", "parts=systems,profile,commands,events&entities=1:1"},
        {"entities", "query=Body&limit=20&values=1"},
        {"history", NULL},
        {"events", NULL},
        {"entities", "name=gu"}};
    char arguments[128];
    for (uint32_t i = 0; i < frame_count; i++) {
        run_frames(1);
        const uint32_t k = i / 16 % (sizeof requests / sizeof requests[0]);
        if (i % 16 == 0) inspect_get(&scene, requests[k][0], requests[k][1]);
        if (i % 128 == 5)
            inspect_post(&scene, "set", with_handle(arguments, scene.child, "&path=Body.x&value=2"));
    }
}

Test(inspect, does_not_grow_in_10000_frames)
{
    failing_allocator *counting = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(counting);
    inspect_scene_open(&scene, 50, &allocator);
    open_channel("parts=systems,events&entities=1:1");
    run_session(1000);
    const memory_use before = measure(counting);
    run_session(9000);
    const memory_use after = measure(counting);
    cr_assert_eq(scene.frame, 10000);
    cr_assert_leq(after.inspector_bytes, before.inspector_bytes);
    cr_assert_leq(after.history_bytes, before.history_bytes);
    cr_assert_leq(after.world_bytes, before.world_bytes);
    inspect_scene_close(&scene);
    failing_allocator_close(counting);
}
