/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What helps in large programs: which systems match an entity, tables, curves, conditions that stop the program, undo,
 * panels, statistics over minutes, archives and test cases. */

static inspect_scene scene;

static void close_scene(void)
{
    inspect_scene_close(&scene);
}

TestSuite(inspect_tools, .fini = close_scene);

static void run_frames(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cr_assert(inspect_scene_turn(&scene));
}

static cJSON *get(const char *path, const char *arguments)
{
    const char *text = inspect_get(&scene, path, arguments);
    cJSON *json = cJSON_ParseWithOpts(text, NULL, 1);
    cr_assert(json != NULL, "%s: no JSON: %s", path, text);
    return json;
}

static cJSON *post(const char *path, const char *arguments)
{
    uint32_t status;
    const char *text = inspect_scene_ask(&scene, "POST", path, arguments, &status);
    cr_assert(status == 200, "%s?%s: %u %s", path, arguments, status, text);
    return cJSON_Parse(text);
}

static void refuse(const char *method, const char *path, const char *arguments, uint32_t expected)
{
    uint32_t status;
    const char *text = inspect_scene_ask(&scene, method, path, arguments, &status);
    cr_assert(status == expected, "%s?%s: %u instead of %u: %s", path, arguments != NULL ? arguments : "",
              status, expected, text);
}

static const cJSON *member(const cJSON *json, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, key);
    cr_assert(found != NULL, "no member '%s'", key);
    return found;
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, list) if (strcmp(member(one, key)->valuestring, name) == 0) return one;
    return NULL;
}

static quern_entity entity_of(const cJSON *json)
{
    quern_entity entity;
    must(quern_entity_from_text(scene.world, json->valuestring, &entity));
    return entity;
}

static const char *about(char arguments[160], quern_entity entity, const char *rest)
{
    snprintf(arguments, 160, "entity=%u:%u%s", quern_entity_index(entity), quern_entity_generation(entity),
             rest);
    return arguments;
}

static Body body_of(quern_entity entity)
{
    return *(const Body *)quern_entity_get(scene.world, entity, scene.body);
}

static void idle(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
}

/* ------------------------------------------------------------------------------------------- systems */

Test(inspect_tools, shows_what_systems_declare)
{
    inspect_scene_open(&scene, 2, NULL);
    must(quern_schedule_add_set(scene.schedule, &(quern_set_def){.name = "water"}));
    const quern_system_def def = {.name = "rest",
                                  .run = idle,
                                  .terms = {quern_term_read(scene.body)},
                                  .sets = {"water"},
                                  .every = 4,
                                  .offset = 2};
    must(quern_schedule_add_system(scene.schedule, &def, NULL));
    cJSON *json = get("access", NULL);
    cr_assert_eq(cJSON_GetArraySize(member(json, "systems")), 3);
    const cJSON *rest = named(member(json, "systems"), "name", "rest");
    cr_assert_eq(member(rest, "every")->valueint, 4);
    cr_assert_eq(member(rest, "turn")->valueint, 1);
    cr_assert_str_eq(cJSON_GetArrayItem(member(rest, "sets"), 0)->valuestring, "water");
    cr_assert_null(cJSON_GetObjectItem(rest, "not_in"));
    const cJSON *bump = named(member(json, "systems"), "name", "bump");
    cr_assert_eq(cJSON_GetArraySize(member(bump, "terms")), 2);
    cr_assert_str_eq(cJSON_GetArrayItem(member(bump, "emits"), 0)->valuestring, "Bump");
    cr_assert(cJSON_IsTrue(member(named(member(json, "sets"), "name", "water"), "enabled")));
    cJSON_Delete(json);
    inspect_post(&scene, "system_set", "name=water&on=0");
    cr_assert_not(quern_schedule_is_set_enabled(scene.schedule, "water"));
    refuse("POST", "system_set", "name=fire&on=0", 400);
    refuse("POST", "system_set", "name=water", 400);
}

/* For each system, `matches` says what a query with its terms says, and names a term where it says no. */
static void check_matches(quern_entity entity)
{
    char arguments[160];
    cJSON *json = get("matches", about(arguments, entity, ""));
    uint32_t seen_count = 0;
    for (uint32_t i = 0; i < quern_schedule_system_count(scene.schedule); i++) {
        quern_query_def def;
        quern_query *query;
        bool is_found = false;
        must(quern_schedule_get_system_query(scene.schedule, quern_schedule_system_at(scene.schedule, i),
                                             &def));
        const cJSON *one = named(member(json, "systems"), "system", def.name);
        cr_assert_eq(one != NULL, def.terms[0].match != 0);
        if (one == NULL) continue;
        seen_count++;
        must(quern_query_create(scene.world, &def, &query));
        quern_query_iterator iterator = quern_query_iterate(query);
        while (quern_query_next(&iterator))
            for (uint32_t k = 0; k < iterator.view.count; k++)
                is_found = is_found || quern_entity_equal(iterator.view.entities[k], entity);
        quern_query_destroy(query);
        cr_assert_eq(cJSON_IsTrue(member(one, "matches")) != 0, is_found, "system %s, entity %s", def.name,
                     arguments);
        cr_assert_eq(cJSON_GetArraySize(member(one, "failed")) == 0, is_found);
    }
    cr_assert_eq(cJSON_GetArraySize(member(json, "systems")), (int)seen_count);
    cJSON_Delete(json);
}

/* In a relation without levels, an entity may lead to a circle that it is not part of. */
Test(inspect_tools, says_which_systems_match_before_a_circle, .timeout = 60)
{
    quern_relation likes;
    quern_entity entities[3];
    inspect_scene_open(&scene, 0, NULL);
    must(quern_relation_register(scene.world, &(quern_relation_def){.name = "likes"}, &likes));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_create(scene.world, &entities[i]));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_relate(scene.world, entities[i], likes, entities[i == 2 ? 1 : i + 1]));
    const quern_system_def def = {
        .name = "look up", .run = idle, .terms = {quern_term_up_nearest(scene.body, likes)}};
    must(quern_schedule_add_system(scene.schedule, &def, NULL));
    check_matches(entities[0]);
}

/* Makes entities with random ones of the types, of which each second one can be disabled. */
static void make_entities(const quern_component *types, uint32_t type_count, quern_entity *entities,
                          uint32_t count, random_source *random)
{
    for (uint32_t i = 0; i < count; i++) {
        must(quern_entity_create(scene.world, &entities[i]));
        for (uint32_t k = 0; k < type_count; k++) {
            if (random_below(random, 2) == 0) continue;
            must(quern_entity_add(scene.world, entities[i], types[k], NULL));
            if (k % 2 == 1 && random_below(random, 2) == 0)
                must(quern_entity_set_component_enabled(scene.world, entities[i], types[k], false));
        }
        if (i > 0 && random_below(random, 3) > 0)
            must(quern_entity_relate(scene.world, entities[i], scene.parent,
                                     entities[random_below(random, i)]));
    }
}

Test(inspect_tools, says_which_systems_match)
{
    enum { TYPES = 6, ENTITIES = 60, SYSTEMS = 60 };
    quern_component types[TYPES];
    quern_entity entities[ENTITIES];
    char name[16];
    inspect_scene_open(&scene, 0, NULL);
    random_source random = {7};
    for (uint32_t i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "T%u", i);
        const quern_component_def def = {
            .name = name, .size_bytes = 4, .alignment_bytes = 4, .can_disable = i % 2 == 1};
        must(quern_component_register(scene.world, &def, &types[i]));
    }
    make_entities(types, TYPES, entities, ENTITIES, &random);
    for (uint32_t i = 0; i < ENTITIES; i += 9)
        must(quern_entity_set_enabled(scene.world, entities[i], false));
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        quern_system_def def = {.name = name, .run = idle, .flags = QUERN_SYSTEM_SERIAL};
        uint32_t count = 0;
        snprintf(name, sizeof name, "system%u", i);
        for (uint32_t k = 0; k < TYPES; k++) {
            const uint32_t choice = random_below(&random, 8);
            if (choice == 0) def.terms[count++] = quern_term_read(types[k]);
            if (choice == 1) def.terms[count++] = quern_term_without(types[k]);
            if (choice == 2) def.terms[count++] = quern_term_any(types[k], QUERN_ACCESS_NONE);
            if (choice == 3) def.terms[count++] = quern_term_optional(types[k], QUERN_ACCESS_READ);
            if (choice == 4 && k % 2 == 1)
                def.terms[count++] = quern_term_if_disabled(quern_term_with(types[k]));
            if (choice == 5 && k % 2 == 1)
                def.terms[count++] = quern_term_either(quern_term_with(types[k]));
        }
        if (i % 7 == 1) def.terms[count++] = quern_term_up(types[0], scene.parent);
        if (i % 7 == 2) def.terms[count++] = quern_term_up_nearest(types[1], scene.parent);
        if (i % 7 == 3) def.terms[count++] = quern_term_target(scene.parent, entities[i % 5]);
        if (i % 7 == 4) def.terms[count++] = quern_term_with(quern_world_disabled_tag(scene.world));
        if (count == 0) def.terms[count++] = quern_term_with(types[i % TYPES]);
        must(quern_schedule_add_system(scene.schedule, &def, NULL));
    }
    const quern_system_def once = {.name = "once", .run = idle};
    must(quern_schedule_add_system(scene.schedule, &once, NULL));
    must(quern_schedule_compile(scene.schedule));
    for (uint32_t i = 0; i < ENTITIES; i++)
        check_matches(entities[i]);
    refuse("GET", "matches", "entity=77:7", 404);
}

static uint32_t seen_count;

static void see(quern_context *context, const quern_view *view)
{
    (void)context;
    seen_count += view->count;
}

/* A reaction gets rows in which a component is disabled, too; a system does not. */
Test(inspect_tools, says_that_reactions_match_disabled_components)
{
    quern_component shield;
    inspect_scene_open(&scene, 0, NULL);
    const quern_component_def def = {
        .name = "Shield", .size_bytes = 4, .alignment_bytes = 4, .can_disable = true};
    must(quern_component_register(scene.world, &def, &shield));
    must(quern_entity_add(scene.world, scene.child, shield, NULL));
    must(quern_entity_set_component_enabled(scene.world, scene.child, shield, false));
    seen_count = 0;
    quern_system_def system = {.name = "reaction",
                               .run = see,
                               .flags = QUERN_SYSTEM_SERIAL,
                               .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_PRESENT,
                               .terms = {quern_term_read(shield)}};
    must(quern_schedule_add_system(scene.schedule, &system, NULL));
    system = (quern_system_def){.name = "system", .run = idle, .terms = {quern_term_read(shield)}};
    must(quern_schedule_add_system(scene.schedule, &system, NULL));
    run_frames(1);
    cr_assert_eq(seen_count, 1u);
    cJSON *json = get("matches", "entity=/arena/gun");
    cr_assert(cJSON_IsTrue(member(named(member(json, "systems"), "system", "reaction"), "matches")));
    const cJSON *other = named(member(json, "systems"), "system", "system");
    cr_assert(cJSON_IsFalse(member(other, "matches")));
    cr_assert_str_eq(member(cJSON_GetArrayItem(member(other, "failed"), 0), "reason")->valuestring,
                     "it is disabled");
    cJSON_Delete(json);
}

/* -------------------------------------------------------------------------------------------- tables */

static void expect_rows(const char *arguments, double found_count, double count, int row_count)
{
    cJSON *json = get("table", arguments);
    cr_assert_eq(member(json, "found_count")->valuedouble, found_count, "%s", arguments);
    cr_assert_eq(member(json, "count")->valuedouble, count, "%s: %f", arguments,
                 member(json, "count")->valuedouble);
    cr_assert_eq(cJSON_GetArraySize(member(json, "rows")), row_count, "%s", arguments);
    cJSON_Delete(json);
}

Test(inspect_tools, filters_and_sorts_tables)
{
    inspect_scene_open(&scene, 300, NULL);
    expect_rows("query=Body", 301, 301, 100);
    expect_rows("query=Body&limit=1000", 301, 301, 301);
    expect_rows("query=Body&offset=290", 301, 301, 11);
    expect_rows("query=Body&offset=900", 301, 301, 0);
    expect_rows("query=Body&where=Body.x<10", 301, 11, 11);
    expect_rows("query=Body&where=Body.x<10, Body.speed=1", 301, 10, 10);
    expect_rows("query=Body&where=Body.level=high", 301, 1, 1);
    expect_rows("query=Body&where=Body.level!=high&limit=5", 301, 300, 5);
    expect_rows("query=Body&where=Body.x >= 298.5", 301, 1, 1);
    expect_rows("query=Marker, !parent", 0, 0, 0);
    cJSON *json =
        get("table",
            "query=Body&sort=Body.x&descending=1&columns=Body.x,Body.level,Nothing.x&limit=3&offset=1");
    const cJSON *row = cJSON_GetArrayItem(member(json, "rows"), 0), *values = member(row, "values");
    cr_assert_str_eq(cJSON_GetArrayItem(values, 0)->valuestring, "298");
    cr_assert_str_eq(cJSON_GetArrayItem(values, 1)->valuestring, "low");
    cr_assert(cJSON_IsNull(cJSON_GetArrayItem(values, 2)));
    cJSON_Delete(json);
    refuse("GET", "table", NULL, 400);
    refuse("GET", "table", "query=Nothing", 400);
    refuse("GET", "table", "query=Body&sort=Body.none", 404);
    refuse("GET", "table", "query=Body&limit=1001", 400);
    refuse("GET", "table", "query=Body&descending=2", 400);
    static const char *const wrong[] = {"Body.x",      "Body.x<",     "<3",         "Body.x<a",
                                        "Body.x~3",    "Body.x<1 2",  "Body.x<nan", "Body.level=mid",
                                        "Body.x[2]<3", "Body.x=true1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char arguments[160];
        uint32_t status;
        snprintf(arguments, sizeof arguments, "query=Body&where=%s", wrong[i]);
        inspect_scene_ask(&scene, "GET", "table", arguments, &status);
        cr_assert(status == 400 || status == 404, "%s: %u", wrong[i], status);
    }
    refuse(
        "GET", "table",
        "query=Body&where=Body.x<1,Body.x<1,Body.x<1,Body.x<1,Body.x<1,Body.x<1,Body.x<1,Body.x<1,Body.x<1",
        400);
    cr_assert_null(scene.inspector->current);
}

typedef struct Things {
    int64_t whole;
    uint64_t natural;
    double real;
    int8_t small[3];
    bool flag;
    quern_entity other;
    char text[8];
} Things;

Test(inspect_tools, pages_of_a_table_are_those_of_the_query)
{
    inspect_scene_open(&scene, 3000, NULL);
    for (uint32_t offset = 0; offset < 3300; offset += 77) {
        char arguments[96];
        snprintf(arguments, sizeof arguments, "query=Body&offset=%u&limit=100", offset);
        cJSON *table = get("table", arguments), *list = get("entities", arguments);
        const cJSON *rows = member(table, "rows"), *entities = member(list, "entities");
        cr_assert_eq(member(table, "count")->valueint, 3001);
        cr_assert_eq(cJSON_GetArraySize(rows), cJSON_GetArraySize(entities));
        for (int i = 0; i < cJSON_GetArraySize(rows); i++)
            cr_assert_str_eq(member(cJSON_GetArrayItem(rows, i), "entity")->valuestring,
                             member(cJSON_GetArrayItem(entities, i), "entity")->valuestring);
        cJSON_Delete(table);
        cJSON_Delete(list);
    }
}

Test(inspect_tools, compares_fields_of_all_types)
{
    quern_component things;
    inspect_scene_open(&scene, 0, NULL);
    const quern_component_def def = {QUERN_TYPE(Things),
                                     .fields = {QUERN_FIELD(Things, whole), QUERN_FIELD(Things, natural),
                                                QUERN_FIELD(Things, real), QUERN_FIELD(Things, small),
                                                QUERN_FIELD(Things, flag), QUERN_FIELD(Things, other),
                                                QUERN_TEXT(Things, text)}};
    must(quern_component_register(scene.world, &def, &things));
    const Things value = {-5, 6, 0.25, {1, -2, 3}, true, scene.root, "sand"};
    must(quern_entity_add(scene.world, scene.child, things, &value));
    static const struct {
        const char *where;
        bool holds;
    } cases[] = {
        {"Things.whole<-4", true},
        {"Things.whole>-5", false},
        {"Things.natural==6", true},
        {"Things.real=0.25", true},
        {"Things.real<=0.249", false},
        {"Things.small[1]=-2", true},
        {"Things.small[2]>=3", true},
        {"Things.small=1", true},
        {"Things.flag=true", true},
        {"Things.flag=false", false},
        {"Things.other!=none", true},
        {"Things.other=none", false},
        {"Things.text=sand", true},
        {"Things.text=san", false},
        {"Things.text~an", true},
        {"Things.text~ax", false},
        {"Things.text!=sand", false},
        {"Body.speed=2, Things.whole<0", true},
        {"Body.speed=2, Things.whole>0", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char arguments[160];
        snprintf(arguments, sizeof arguments, "query=Things&where=%s", cases[i].where);
        expect_rows(arguments, 1, cases[i].holds, cases[i].holds);
    }
    for (uint32_t i = 0; i < 2; i++) {
        char arguments[160];
        snprintf(arguments, sizeof arguments, "query=Things&where=Things.other=%u:1",
                 quern_entity_index(scene.root) + i);
        expect_rows(arguments, 1, i == 0, i == 0);
    }
    refuse("GET", "table", "query=Things&where=Things.small[3]=1", 404);
    refuse("GET", "table", "query=Things&where=Things.text<a", 400);
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Tables of random sizes, asked step by step while the world runs, are those of a simple sort. */
Test(inspect_tools, sorts_as_a_simple_sort)
{
    random_source random = {3};
    for (uint32_t round = 0; round < 40; round++) {
        const uint32_t count = random_below(&random, round % 4 == 0 ? 5000 : 20);
        double *expected = calloc(count + 1, sizeof *expected);
        inspect_scene_open(&scene, count, NULL);
        scene.inspector->def.budget_ns = 1;
        quern_query *query;
        const quern_query_def def = {.terms = {quern_term_write(scene.body)}};
        must(quern_query_create(scene.world, &def, &query));
        quern_query_iterator iterator = quern_query_iterate(query);
        uint32_t seen = 0;
        while (quern_query_next(&iterator)) {
            Body *bodies = quern_view_write(&iterator.view, 0);
            for (uint32_t i = 0; i < iterator.view.count; i++) {
                bodies[i].x = (float)random_below(&random, 100);
                expected[seen++] = bodies[i].x;
            }
        }
        quern_query_destroy(query);
        qsort(expected, seen, sizeof *expected, compare_reals);
        const bool is_descending = round % 2 == 1;
        /* A part that ends among the first thousand rows is found in another way. */
        const uint32_t offset = random_below(&random, round % 8 == 4 && seen > 900 ? 900 : seen),
                       limit = round % 3 == 0 ? 1000 : 100;
        char arguments[160];
        snprintf(arguments, sizeof arguments,
                 "query=Body&sort=Body.x&columns=Body.x&descending=%d&offset=%u&limit=%u", is_descending,
                 offset, limit);
        const quern__inspect_parts parts = {.method = "GET", .path = "table", .arguments = arguments};
        quern__inspect_request *request = quern__inspect_request_create(&scene.inspector->exchange, &parts);
        cr_assert(quern__inspect_request_queue(&scene.inspector->exchange, request));
        while (!request->is_answered)
            cr_assert(quern_inspector_update(scene.inspector, &scene.frame));
        cJSON *json = cJSON_ParseWithLength(request->answer.bytes, request->answer.size_bytes);
        const cJSON *row;
        uint32_t i = offset;
        double last = NAN;
        uint32_t last_index = 0;
        cJSON_ArrayForEach(row, member(json, "rows"))
        {
            const double value = atof(cJSON_GetArrayItem(member(row, "values"), 0)->valuestring);
            cr_assert_eq(value, expected[is_descending ? seen - 1 - i : i], "row %u of %u", i, seen);
            /* Equal values keep the order of the query: here that of the slots, but for the one with another archetype. */
            const quern_entity entity = entity_of(member(row, "entity"));
            cr_assert(value != last || quern_entity_index(entity) > last_index ||
                          quern_entity_has(scene.world, entity, scene.marker) ||
                          last_index == quern_entity_index(scene.child),
                      "row %u of %u", i, seen);
            last = value;
            last_index = quern_entity_index(entity);
            i++;
        }
        cr_assert_eq(i - offset, seen - offset < limit ? seen - offset : limit);
        cJSON_Delete(json);
        quern__inspect_request_leave(&scene.inspector->exchange, request);
        free(expected);
        inspect_scene_close(&scene);
    }
}

/* Entities that are destroyed while a table is made are left out, or have no values. */
Test(inspect_tools, makes_tables_of_a_world_that_changes)
{
    inspect_scene_open(&scene, 2000, NULL);
    scene.inspector->def.budget_ns = 1;
    const quern__inspect_parts parts = {.method = "GET",
                                        .path = "table",
                                        .arguments =
                                            "query=Body&sort=Body.x&columns=Body.x&where=Body.x>=0"};
    quern__inspect_request *request = quern__inspect_request_create(&scene.inspector->exchange, &parts);
    cr_assert(quern__inspect_request_queue(&scene.inspector->exchange, request));
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_with(scene.body)}};
    must(quern_query_create(scene.world, &def, &query));
    uint32_t updates = 0;
    while (!request->is_answered) {
        cr_assert(quern_inspector_update(scene.inspector, &scene.frame));
        if (++updates == 3) must(quern_entity_destroy_matching(query, NULL));
    }
    quern_query_destroy(query);
    cr_assert_eq(request->status, 200);
    cJSON *json = cJSON_ParseWithLength(request->answer.bytes, request->answer.size_bytes);
    cr_assert_leq(member(json, "count")->valuedouble, 2000);
    cJSON_Delete(json);
    quern__inspect_request_leave(&scene.inspector->exchange, request);
}

/* -------------------------------------------------------------------------------- curves, conditions */

Test(inspect_tools, keeps_values_of_each_frame)
{
    inspect_scene_open(&scene, 2, NULL);
    cJSON *made = post("probe", "entity=/arena/gun&path=Body.level");
    char arguments[64];
    snprintf(arguments, sizeof arguments, "probe=%d", member(made, "probe")->valueint);
    cJSON_Delete(made);
    run_frames(1);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.level&value=3");
    scene.destroys = true;
    run_frames(4); /* the first of them destroys the entity at its end */
    cJSON *json = get("probes", NULL);
    const cJSON *probe = cJSON_GetArrayItem(member(json, "probes"), 0), *values = member(probe, "values");
    const int count = cJSON_GetArraySize(values);
    cr_assert_eq(count, cJSON_GetArraySize(member(json, "frames")));
    cr_assert_eq(count, 4); /* the last frame is read by the next update */
    cr_assert_eq(cJSON_GetArrayItem(values, 0)->valuedouble, 3);
    cr_assert_eq(cJSON_GetArrayItem(values, 1)->valuedouble, 0); /* bump has set a new value */
    cr_assert(cJSON_IsNull(cJSON_GetArrayItem(values, count - 1)));
    cJSON_Delete(json);
    json = get("watch", "parts=probes");
    cr_assert_eq(cJSON_GetArraySize(member(cJSON_GetArrayItem(member(json, "probes"), 0), "values")),
                 cJSON_GetArraySize(member(json, "samples")));
    cJSON_Delete(json);
    inspect_post(&scene, "unprobe", arguments);
    cr_assert_eq(atomic_load_explicit(&scene.inspector->exchange.attention, memory_order_relaxed), 0u);
    refuse("POST", "unprobe", arguments, 404);
    refuse("POST", "unprobe", "probe=0", 404);
    refuse("POST", "unprobe", NULL, 400);
    refuse("POST", "probe", "entity=/arena&path=Body.none", 404);
    refuse("POST", "probe", "entity=9:9&path=Body.x", 404);
    refuse("POST", "probe", "entity=/arena", 400);
    for (int i = 0; i < QUERN__INSPECT_PROBES; i++)
        inspect_post(&scene, "probe", "entity=/arena&path=Body.x");
    refuse("POST", "probe", "entity=/arena&path=Body.x", 409);
}

/* The program stops after the frame in which the condition became true; the frame before does not have it. */
Test(inspect_tools, stops_when_a_condition_becomes_true)
{
    inspect_scene_open(&scene, 20, NULL);
    must(quern_entity_remove(scene.world, scene.child, scene.marker));
    cJSON_Delete(post("break", "entity=/arena/gun&where=Body.x>3.5"));
    uint32_t frames = 0;
    while (inspect_scene_turn(&scene))
        cr_assert_lt(++frames, 10u);
    cr_assert_gt(body_of(scene.child).x, 3.5f);
    cJSON *json = get("probes", NULL);
    const cJSON *probe = cJSON_GetArrayItem(member(json, "probes"), 0);
    const uint64_t hit_frame = (uint64_t)member(probe, "hit_frame")->valuedouble;
    cr_assert_eq(hit_frame + 1, scene.frame);
    cr_assert(quern_entity_equal(entity_of(member(probe, "hit")), scene.child));
    cJSON_Delete(json);
    const uint64_t hash = quern_world_hash(scene.world);
    char arguments[64];
    for (int i = 0; i < 2; i++) { /* the frame can be run again and again */
        snprintf(arguments, sizeof arguments, "frame=%u", (unsigned)hit_frame);
        inspect_post(&scene, "restore", arguments);
        cr_assert_not(inspect_scene_turn(&scene));
        cr_assert_leq(body_of(scene.child).x, 3.5f);
        inspect_post(&scene, "resume", NULL);
        run_frames(1);
        cr_assert_not(inspect_scene_turn(&scene), "the program did not stop again");
        cr_assert_eq(quern_world_hash(scene.world), hash);
    }
    inspect_post(&scene, "step", "count=3"); /* it is true already: no stop */
    run_frames(3);
    cr_assert_not(inspect_scene_turn(&scene));
}

Test(inspect_tools, stops_for_any_entity_of_a_query)
{
    inspect_scene_open(&scene, 20, NULL);
    cJSON_Delete(post("break", "query=Body, !Marker&where=Body.x>=20.4"));
    inspect_post(&scene, "pause", NULL);
    inspect_post(&scene, "step", "count=50"); /* it stops in the middle of steps, too */
    uint32_t frames = 0;
    while (inspect_scene_turn(&scene))
        cr_assert_lt(++frames, 10u);
    cr_assert_eq(frames, 3u); /* 19, 19.5, 20, 20.5 */
    cJSON *json = get("probes", NULL);
    const cJSON *probe = cJSON_GetArrayItem(member(json, "probes"), 0);
    cr_assert_eq(body_of(entity_of(member(probe, "hit"))).x, 20.5f);
    cr_assert_str_eq(member(probe, "query")->valuestring, "Body, !Marker");
    cJSON_Delete(json);
    refuse("POST", "break", "query=Nothing&where=Body.x>1", 400);
    refuse("POST", "break", "query=Body&where=", 400);
    refuse("POST", "break", "where=Body.x>1", 400);
    refuse("POST", "break", "entity=/arena", 400);
}

Test(inspect_tools, stops_when_an_entity_changes)
{
    char arguments[160];
    inspect_scene_open(&scene, 2, NULL);
    must(quern_schedule_set_system_enabled(
        scene.schedule, quern_schedule_find_system(scene.schedule, "move \"bodies\""), false));
    must(quern_schedule_set_system_enabled(scene.schedule,
                                           quern_schedule_find_system(scene.schedule, "bump"), false));
    cJSON_Delete(post("break", about(arguments, scene.child, "&change=")));
    refuse("POST", "break", "entity=/arena/gun&change=Body.none", 404);
    refuse("POST", "break", "entity=/arena/gun&change=&where=Body.x<3", 400);
    refuse("POST", "break", "change=Body.x", 400);
    run_frames(3); /* nothing changes */
    /* A value, a component, its name, its parent, its state, and its end. */
    for (uint32_t i = 0; i < 6; i++) {
        if (i == 0)
            must(quern_entity_set(scene.world, scene.child, scene.body, &(Body){.x = 9}));
        else if (i == 1)
            must(quern_entity_remove(scene.world, scene.child, scene.marker));
        else if (i == 2)
            must(quern_entity_set_name(scene.world, scene.child, "cannon"));
        else if (i == 3)
            must(quern_entity_unrelate(scene.world, scene.child, scene.parent));
        else if (i == 4)
            must(quern_entity_set_enabled(scene.world, scene.child, false));
        else
            must(quern_entity_destroy(scene.world, scene.child));
        /* The change came after the last frame, so it counts as part of it. */
        cr_assert_not(inspect_scene_turn(&scene), "change %u", i);
        cJSON *json = get("probes", NULL);
        const cJSON *probe = cJSON_GetArrayItem(member(json, "probes"), 0);
        cr_assert(cJSON_IsTrue(member(probe, "change")));
        cr_assert_eq(member(probe, "hit_frame")->valuedouble, (double)scene.frame - 1);
        cJSON_Delete(json);
        cJSON_Delete(post("resume", ""));
        cr_assert(inspect_scene_turn(&scene) && inspect_scene_turn(&scene), "again after change %u", i);
    }
}

Test(inspect_tools, stops_when_a_field_changes)
{
    inspect_scene_open(&scene, 2, NULL);
    cJSON_Delete(post("break", "entity=/arena/gun&change=Body.level"));
    run_frames(1); /* "bump" sets the level to 0; the other field changes in each frame */
    cr_assert_not(inspect_scene_turn(&scene));
    cJSON_Delete(post("resume", ""));
    run_frames(5);
}

/* A type that gets another layout, or loses the field, is read as it is now. */
Test(inspect_tools, reads_a_type_that_is_redefined)
{
    inspect_scene_open(&scene, 0, NULL);
    cJSON_Delete(post("probe", "entity=/arena/gun&path=Body.level"));
    cJSON_Delete(post("break", "entity=/arena/gun&where=Body.level>100"));
    run_frames(2);
    typedef struct Thin {
        int32_t level;
    } Thin;
    const quern_component_def def = {.name = "Body",
                                     .size_bytes = sizeof(Thin),
                                     .alignment_bytes = _Alignof(Thin),
                                     .type_name = "Body",
                                     .fields = {QUERN_FIELD(Thin, level)}};
    const quern_system move = quern_schedule_find_system(scene.schedule, "move \"bodies\""),
                       bump = quern_schedule_find_system(scene.schedule, "bump");
    must(quern_schedule_remove_system(scene.schedule, move));
    must(quern_schedule_remove_system(scene.schedule, bump));
    must(quern_component_redefine(scene.world, scene.body, &def, NULL, NULL));
    run_frames(3);
    cJSON *json = get("probes", NULL);
    const cJSON *values = member(cJSON_GetArrayItem(member(json, "probes"), 0), "values");
    cr_assert_eq(cJSON_GetArrayItem(values, cJSON_GetArraySize(values) - 1)->valuedouble, 0);
    cJSON_Delete(json);
}

/* A comparison that is being written does not keep the program from redefining a type; it ends. */
Test(inspect_tools, ends_a_comparison_when_a_type_is_redefined)
{
    quern_component shape;
    const quern_component_def small = {.name = "Shape",
                                       .size_bytes = 4,
                                       .alignment_bytes = 4,
                                       .fields = {{.name = "size", .type = QUERN_FIELD_F32}}},
                              large = {.name = "Shape",
                                       .size_bytes = 8,
                                       .alignment_bytes = 8,
                                       .fields = {{.name = "size", .type = QUERN_FIELD_F64}}};
    inspect_scene_open(&scene, 60, NULL);
    must(quern_component_register(scene.world, &small, &shape));
    must(quern_entity_add(scene.world, scene.child, shape, NULL));
    run_frames(4);
    quern__inspect_answer *answers[2];
    for (uint32_t i = 0; i < 2; i++) {
        answers[i] = quern__inspect_answer_create(scene.inspector);
        quern__inspect_answer_open(answers[i], "GET", "delta", "from=1&to=3");
        quern__inspect_answer_begin(answers[i]);
        quern__inspect_answer_step(answers[i]);
        cr_assert_not(answers[i]->is_done);
    }
    must(quern_component_redefine(scene.world, shape, &large, NULL, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        quern__inspect_answer_step(answers[i]);
        cr_assert(answers[i]->is_done);
        cr_assert_eq(answers[i]->status, 409u);
        quern__inspect_answer_destroy(answers[i]);
    }
}

/* --------------------------------------------------------------------------------------------- edits */

Test(inspect_tools, takes_edits_back)
{
    inspect_scene_open(&scene, 5, NULL);
    run_frames(3);
    refuse("POST", "undo", NULL, 409);
    inspect_post(&scene, "pause", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    const uint64_t hash = quern_world_hash(scene.world);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    cJSON_Delete(post("create", "copy=/arena"));
    refuse("POST", "set", "entity=/arena/gun&path=Body.none&value=77", 400);
    cJSON *json = get("watch", NULL);
    cr_assert_eq(member(json, "edit_count")->valueint, 2);
    cJSON_Delete(json);
    inspect_post(&scene, "undo", NULL);
    cr_assert_eq(quern_world_hash(scene.world), hash);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 3);
    refuse("POST", "undo", NULL, 409);
    /* After frames have run, the program goes back to the last frame without the edit. */
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    inspect_post(&scene, "step", "count=2");
    run_frames(2);
    cr_assert_not(inspect_scene_turn(&scene));
    uint32_t status;
    const char *answer = inspect_scene_ask(&scene, "POST", "undo", NULL, &status);
    cr_assert_eq(status, 200, "%s", answer);
    cr_assert_not_null(strstr(answer, "\"warning\":\"undo: the program is back before frame 2"), "%s",
                       answer);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 2);
    inspect_post(&scene, "resume", NULL);
    run_frames(1);
    cr_assert_eq(quern_world_hash(scene.world), hash);
    /* In a program that runs, an edit is a part of the frame that is saved after it. */
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    run_frames(4);
    inspect_post(&scene, "undo", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 2);
    /* The frame before the edit is kept for some time only. */
    inspect_post(&scene, "resume", NULL);
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    run_frames(40);
    refuse("POST", "undo", NULL, 409);
    cr_assert_not_null(strstr(inspect_get(&scene, "watch", NULL), "\"edit_count\":0"));
    scene.inspector->def.history = NULL;
    refuse("POST", "undo", NULL, 404);
}

/* A program need not keep each frame. */
Test(inspect_tools, takes_edits_back_to_an_older_kept_frame)
{
    uint32_t status;
    inspect_scene_open(&scene, 5, NULL);
    run_frames(1); /* the scene saves frame 0 */
    for (; scene.frame < 5; scene.frame++) {
        cr_assert(quern_inspector_update(scene.inspector, &scene.frame));
        must(quern_inspector_run(scene.inspector, 0.1));
    }
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    const char *answer = inspect_scene_ask(&scene, "POST", "undo", NULL, &status);
    cr_assert(status == 200 && strstr(answer, "\"undone\":1") != NULL, "%s", answer);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 0);
}

Test(inspect_tools, takes_back_what_was_switched)
{
    inspect_scene_open(&scene, 5, NULL);
    run_frames(3);
    inspect_post(&scene, "pause", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    const quern_system bump = quern_schedule_find_system(scene.schedule, "bump");
    inspect_post(&scene, "system", "name=bump&on=0");
    cr_assert_not(quern_schedule_is_system_enabled(scene.schedule, bump));
    inspect_post(&scene, "undo", NULL);
    cr_assert(quern_schedule_is_system_enabled(scene.schedule, bump));
    /* What was switched since a frame was saved is saved with it before another one is restored. */
    inspect_post(&scene, "system", "name=bump&on=0");
    inspect_post(&scene, "restore", "frame=2");
    cr_assert(quern_schedule_is_system_enabled(scene.schedule, bump));
    inspect_post(&scene, "restore", "frame=3");
    cr_assert_not(quern_schedule_is_system_enabled(scene.schedule, bump));
}

/* A comparison with the present keeps the edited state in place of the one before, so undo goes further back. */
Test(inspect_tools, takes_edits_back_after_a_comparison)
{
    uint32_t status;
    inspect_scene_open(&scene, 5, NULL);
    run_frames(3);
    inspect_post(&scene, "pause", NULL);
    cr_assert_not(inspect_scene_turn(&scene));
    inspect_post(&scene, "set", "entity=/arena/gun&path=Body.x&value=77");
    cJSON_Delete(get("delta", "from=2&to=3"));
    const char *answer = inspect_scene_ask(&scene, "POST", "undo", NULL, &status);
    cr_assert(status == 200 && strstr(answer, "before frame 2") != NULL, "%s", answer);
    cr_assert_not(inspect_scene_turn(&scene));
    cr_assert_eq(scene.frame, 2);
    cr_assert_neq(body_of(scene.child).x, 77);
}

Test(inspect_tools, creates_instances_and_copies)
{
    char arguments[160];
    quern_prefab prefab;
    inspect_scene_open(&scene, 0, NULL);
    must(quern_prefab_capture(scene.world, scene.root, &prefab));
    cJSON *json = post("create", "prefab=0");
    const quern_entity instance = entity_of(member(json, "entity"));
    cJSON_Delete(json);
    cr_assert_eq(quern_entity_source_count(scene.world, instance, scene.parent), 1);
    json = post("create", "copy=/arena/gun");
    const quern_entity copy = entity_of(member(json, "entity"));
    cJSON_Delete(json);
    cr_assert_eq(body_of(copy).level, 7);
    cr_assert(quern_entity_equal(quern_entity_target(scene.world, copy, scene.parent), scene.root));
    quern_world_stats stats;
    must(quern_world_get_stats(scene.world, &stats));
    cr_assert_eq(stats.prefab_count, 1);
    refuse("POST", "create", "prefab=3", 404);
    refuse("POST", "create", "prefab=x", 400);
    refuse("POST", "create", "copy=9:9", 404);
    refuse("POST", "create", "copy=/arena&prefab=0", 400);
    snprintf(arguments, sizeof arguments, "entity=%u:%u&relation=parent&target=&from=/arena",
             quern_entity_index(copy), quern_entity_generation(copy));
    inspect_post(&scene, "relate", arguments);
    cr_assert(quern_entity_is_null(quern_entity_target(scene.world, copy, scene.parent)));
    assert_valid(scene.world);
}

Test(inspect_tools, finds_names_by_a_part)
{
    inspect_scene_open(&scene, 300, NULL);
    cJSON *json = get("entities", "name=REN&anywhere=1");
    cr_assert_eq(member(json, "count")->valueint, 1);
    cJSON_Delete(json);
    json = get("entities", "name=ren");
    cr_assert_eq(member(json, "count")->valueint, 0);
    cJSON_Delete(json);
    refuse("GET", "entities", "name=ren&anywhere=2", 400);
}

/* -------------------------------------------------------------------------------------------- panels */

static quern_result write_half(void *user_data, quern_sink sink)
{
    (void)user_data;
    if (!sink.write(sink.user_data, "[{", 2)) return QUERN_ERROR_OUT_OF_MEMORY;
    return quern_error_set(QUERN_ERROR_IO, "write_half: the file of modules cannot be read");
}

static quern_result write_panel(void *user_data, quern_sink sink)
{
    const char *text = user_data;
    if (text == NULL)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE, "write_panel: there is nothing to show");
    return sink.write(sink.user_data, text, strlen(text)) ? QUERN_OK : QUERN_ERROR_IO;
}

Test(inspect_tools, shows_panels)
{
    char text[] = "[{\"module\":\"rules\"}]", empty[] = "";
    inspect_scene_open(&scene, 0, NULL);
    scene.inspector->def.panels[0] = (quern_inspect_panel){"Modules", write_panel, text};
    scene.inspector->def.panels[1] = (quern_inspect_panel){"Nothing", write_panel, empty};
    scene.inspector->def.panels[2] = (quern_inspect_panel){"Broken", write_panel, NULL};
    scene.inspector->def.panels[3] = (quern_inspect_panel){"Half", write_half, NULL};
    cJSON *json = get("world", NULL);
    cr_assert_eq(cJSON_GetArraySize(member(member(json, "inspector"), "panels")), 4);
    cJSON_Delete(json);
    json = get("panel", "title=Modules");
    cr_assert_str_eq(member(cJSON_GetArrayItem(member(json, "value"), 0), "module")->valuestring, "rules");
    cJSON_Delete(json);
    json = get("panel", "title=Nothing");
    cr_assert(cJSON_IsNull(member(json, "value")));
    cJSON_Delete(json);
    refuse("GET", "panel", "title=Broken", 400);
    refuse("GET", "panel", "title=Half", 400);
    refuse("GET", "panel", "title=None", 404);
    refuse("GET", "panel", NULL, 400);
    quern_inspector *other;
    const quern_inspector_def def = {.world = scene.world, .panels = {{.title = "Modules"}}};
    must_refuse(INVALID_ARGUMENT, scene.world, quern_inspector_create(&def, &other));
}

Test(inspect_tools, mends_the_text_of_panels)
{
    /* A character that the panel cut before the closing quote, a byte that is no UTF-8, and an embedded surrogate. */
    char text[] = "{\"module\":\"\xC3\xA4rger\xE2\x82\",\"error\":\"\xFF\",\"note\":\"\xE2\x82\xAC\"}";
    inspect_scene_open(&scene, 0, NULL);
    scene.inspector->def.panels[0] = (quern_inspect_panel){"Modules", write_panel, text};
    cJSON *json = get("panel", "title=Modules");
    const cJSON *value = member(json, "value");
    cr_assert_str_eq(member(value, "module")->valuestring, "\xC3\xA4rger");
    cr_assert_str_eq(member(value, "error")->valuestring, "?");
    cr_assert_str_eq(member(value, "note")->valuestring, "\xE2\x82\xAC");
    cJSON_Delete(json);
}

/* ----------------------------------------------------------------------------------------- statistics */

Test(inspect_tools, sums_frames_up_by_seconds)
{
    inspect_scene_open(&scene, 3, NULL);
    run_frames(4); /* nothing watches: not counted */
    cJSON_Delete(post("probe", "entity=/arena/gun&path=Body.x"));
    run_frames(5);
    inspect_scene_turn(&scene); /* reads the last frame */
    /* The clock may have begun another second: the sums count. */
    cJSON *json = get("statistics", NULL);
    const cJSON *second;
    double frames = 0, commands = 0;
    cJSON_ArrayForEach(second, member(json, "seconds"))
    {
        frames += cJSON_GetArrayItem(second, 2)->valuedouble;
        commands += cJSON_GetArrayItem(second, 7)->valuedouble;
        cr_assert_geq(cJSON_GetArrayItem(second, 4)->valuedouble,
                      cJSON_GetArrayItem(second, 3)->valuedouble);
    }
    cr_assert_eq(frames, 5);
    cr_assert_eq(commands, 5); /* one by "bump" in each frame */
    cJSON_Delete(json);
    /* A ring that has gone around holds the newest seconds, in order. */
    scene.inspector->second_count = QUERN__INSPECT_SECONDS + 7;
    for (uint64_t i = 0; i < QUERN__INSPECT_SECONDS; i++)
        scene.inspector->seconds[(i + 7) % QUERN__INSPECT_SECONDS] =
            (quern__inspect_second){.second = i + 7, .frame_count = 1};
    json = get("statistics", NULL);
    cr_assert_eq(cJSON_GetArraySize(member(json, "seconds")), QUERN__INSPECT_SECONDS);
    cJSON_Delete(json);
    json = get("statistics", "limit=2");
    cr_assert_eq(cJSON_GetArraySize(member(json, "seconds")), 2);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(cJSON_GetArrayItem(cJSON_GetArrayItem(member(json, "seconds"), i), 0)->valuedouble,
                     QUERN__INSPECT_SECONDS + 5 + i);
    cJSON_Delete(json);
    refuse("GET", "statistics", "limit=601", 400);
}

/* ----------------------------------------------------------------------------------------- test cases */

/* Loads an archive into a world without entities, and runs a recording there. */
static quern_result run_case(const quern_byte_buffer *archive, const quern_byte_buffer *replay,
                             quern_replay_report *report)
{
    inspect_scene other;
    inspect_scene_open_empty(&other);
    must(quern_world_load(other.world, quern_source_bytes(archive->bytes, archive->size_bytes),
                          &(quern_load_def){.schedules = {other.schedule}}, NULL));
    const quern_result result = quern_replay_run(
        other.schedule, NULL, quern_source_bytes(replay->bytes, replay->size_bytes), NULL, report);
    inspect_scene_close_empty(&other);
    return result;
}

static void get_bytes(const char *path, quern_byte_buffer *bytes)
{
    uint32_t status;
    const quern_inspect_call call = {.method = "GET", .path = path};
    must(quern_inspect_request(scene.inspector, &call, quern_sink_bytes(bytes), &status));
    cr_assert_eq(status, 200, "%s: %u", path, status);
}

Test(inspect_tools, records_frames_as_a_test_case)
{
    quern_byte_buffer archive = {.bytes = NULL}, replay = {.bytes = NULL};
    quern_replay_report report;
    inspect_scene_open(&scene, 40, NULL);
    run_frames(7);
    refuse("GET", "case", NULL, 404);
    refuse("GET", "case_archive", NULL, 404);
    refuse("POST", "record_case", "frames=0", 400);
    refuse("POST", "record_case", "frames=3601", 400);
    cJSON_Delete(post("record_case", "frames=5"));
    run_frames(2);
    refuse("GET", "case_replay", NULL, 409);
    run_frames(6);
    cJSON *json = get("case", NULL);
    cr_assert_str_eq(member(json, "name")->valuestring, "frame_7");
    cr_assert_eq(member(json, "recorded_count")->valuedouble, 5);
    cr_assert(cJSON_IsFalse(member(json, "recording")));
    cr_assert(cJSON_IsNull(member(json, "fault")));
    cr_assert(strstr(member(json, "source")->valuestring, "frame_7.archive") != NULL);
    get_bytes("case_archive", &archive);
    get_bytes("case_replay", &replay);
    cr_assert_eq(member(json, "archive_bytes")->valuedouble, (double)archive.size_bytes);
    cr_assert_eq(member(json, "replay_bytes")->valuedouble, (double)replay.size_bytes);
    cJSON_Delete(json);
    must(run_case(&archive, &replay, &report));
    cr_assert_eq(report.frame_count, 5u);
    quern_byte_buffer_release(&archive);
    quern_byte_buffer_release(&replay);
}

static void copy_counts(void *to, const void *from, uint32_t count, void *user_data)
{
    memcpy(to, from, count * sizeof(uint32_t));
}

/* The value of a resource with hooks may own memory: it is no input, and keeps its first value. */
Test(inspect_tools, records_frames_beside_a_resource_with_hooks)
{
    quern_resource owner;
    inspect_scene_open(&scene, 4, NULL);
    const quern_resource_def def = {.name = "Owner",
                                    .size_bytes = 4,
                                    .alignment_bytes = 4,
                                    .fields = {{"count", QUERN_FIELD_U32, .count = 1}},
                                    .hooks = {.copy = copy_counts}};
    must(quern_resource_register(scene.world, &def, &owner));
    run_frames(1);
    cJSON_Delete(post("record_case", "frames=2"));
    run_frames(3);
    cJSON *json = get("case", NULL);
    cr_assert_eq(member(json, "recorded_count")->valuedouble, 2);
    cr_assert(cJSON_IsNull(member(json, "fault")));
    cJSON_Delete(json);
}

Test(inspect_tools, ends_a_test_case_whose_world_changes)
{
    static const char *const changes[][2] = {{"set", "entity=/arena/gun&path=Body.x&value=3"},
                                             {"restore", "frame=3"},
                                             {"system", "name=bump&on=0"},
                                             {"create", ""}};
    inspect_scene_open(&scene, 4, NULL);
    run_frames(6);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        cJSON_Delete(post("record_case", "frames=50"));
        run_frames(1);
        /* An edit that fails changes nothing. */
        refuse("POST", "set", "entity=/arena/gun&path=Body.none&value=3", 400);
        cJSON *json = get("case", NULL);
        cr_assert(cJSON_IsTrue(member(json, "recording")));
        cJSON_Delete(json);
        cJSON_Delete(post(changes[i][0], changes[i][1]));
        json = get("case", NULL);
        cr_assert(cJSON_IsFalse(member(json, "recording")));
        cr_assert(strstr(member(json, "fault")->valuestring, changes[i][0]) != NULL, "%s",
                  member(json, "fault")->valuestring);
        cr_assert_eq(member(json, "recorded_count")->valuedouble, 1);
        cJSON_Delete(json);
        cJSON_Delete(post("resume", ""));
    }
    /* So does a restore by the program itself. */
    cJSON_Delete(post("record_case", "frames=50"));
    run_frames(1);
    must(quern_history_restore(scene.history, scene.frame - 1, NULL));
    run_frames(2);
    cJSON *json = get("case", NULL);
    cr_assert(strstr(member(json, "fault")->valuestring, "restore") != NULL);
    cJSON_Delete(json);
}

/* ---------------------------------------------------------------------------------------- commands */

static cJSON *commands_of_frame(const char *arguments)
{
    cJSON *json = get("commands", arguments);
    cr_assert(cJSON_IsNumber(member(json, "frame")));
    return json;
}

Test(inspect_tools, lists_single_commands)
{
    char arguments[160];
    inspect_scene_open(&scene, 2, NULL);
    scene.destroys = true;
    cJSON *json = get("commands", NULL);
    cr_assert(cJSON_IsNull(member(json, "frame")), "no frame has run since");
    cr_assert_eq(member(json, "count")->valueint, 0);
    cJSON_Delete(json);
    (void)quern_commands_add(quern_world_commands(scene.world), scene.root, scene.marker, NULL);
    run_frames(1);
    json = commands_of_frame(NULL);
    cr_assert_eq(member(json, "frame")->valueint, 0);
    cr_assert_eq(member(json, "count")->valueint, 4);
    cr_assert_eq(member(json, "found_count")->valueint, 4);
    const cJSON *syncs = member(json, "syncs"), *list = member(json, "commands");
    cr_assert_eq(cJSON_GetArraySize(syncs), 2);
    cr_assert_str_eq(member(cJSON_GetArrayItem(syncs, 0), "place")->valuestring, "frame start");
    cr_assert_str_eq(member(cJSON_GetArrayItem(syncs, 1), "phase")->valuestring, "update");
    cr_assert_eq(member(cJSON_GetArrayItem(syncs, 1), "count")->valueint, 3);
    static const char *const kinds[] = {"add", "destroy", "set", "emit"};
    for (int i = 0; i < 4; i++) {
        const cJSON *command = cJSON_GetArrayItem(list, i);
        cr_assert_str_eq(member(command, "kind")->valuestring, kinds[i]);
        cr_assert_eq(member(command, "number")->valueint, i);
        cr_assert_eq(member(command, "sync")->valueint, i > 0);
        cr_assert_eq(member(command, "callback")->valueint, i > 0);
        cr_assert(i == 0 ? cJSON_IsNull(member(command, "system"))
                         : strcmp(member(command, "system")->valuestring, "bump") == 0);
        cr_assert(i == 2 ? strcmp(member(command, "dropped")->valuestring,
                                  "entity destroyed by an earlier command") == 0
                         : cJSON_IsNull(member(command, "dropped")));
    }
    cr_assert_str_eq(cJSON_GetArrayItem(member(cJSON_GetArrayItem(list, 2), "components"), 0)->valuestring,
                     "Body");
    cr_assert_str_eq(member(cJSON_GetArrayItem(list, 3), "event")->valuestring, "Bump");
    cr_assert_eq(entity_of(member(cJSON_GetArrayItem(list, 1), "entity")).bits, scene.child.bits);
    cJSON_Delete(json);
    const struct {
        const char *arguments;
        int found, first;
    } choices[] = {
        {"sync=0", 1, 0},    {"sync=1", 3, 1},   {"sync=2", 0, -1}, {"system=bump", 3, 1},
        {"dropped=1", 1, 2}, {"offset=3", 4, 3}, {"limit=1", 4, 0}, {"sync=1&offset=1&limit=1", 3, 2},
        {"limit=0", 4, -1}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        json = commands_of_frame(choices[i].arguments);
        cr_assert_eq(member(json, "found_count")->valueint, choices[i].found, "%s", choices[i].arguments);
        const cJSON *first = cJSON_GetArrayItem(member(json, "commands"), 0);
        cr_assert_eq(first != NULL ? member(first, "number")->valueint : -1, choices[i].first, "%s",
                     choices[i].arguments);
        cJSON_Delete(json);
    }
    json = commands_of_frame(about(arguments, scene.child, "&system=bump")); /* it has been destroyed */
    cr_assert_eq(member(json, "found_count")->valueint, 2);
    cJSON_Delete(json);
    refuse("GET", "commands", "system=none", 404);
    refuse("GET", "commands", "entity=none", 404);
    refuse("GET", "commands", "limit=1001", 400);
    refuse("GET", "commands", "dropped=x", 400);
}

Test(inspect_tools, lists_commands_only_while_they_are_asked_for)
{
    quern_command_log_stats stats;
    inspect_scene_open(&scene, 2, NULL);
    run_frames(3);
    cr_assert_null(scene.inspector->command_log);
    cJSON_Delete(get("commands", NULL));
    for (int i = 0; i < QUERN__INSPECT_COMMAND_FRAMES; i++) {
        cr_assert_not_null(scene.inspector->command_log);
        run_frames(1);
    }
    run_frames(1);
    cr_assert_null(scene.inspector->command_log);
    cr_assert_eq(scene.inspector->exchange.attention, 0u);
    /* The frames between two parts of an answer do not change what it reads. */
    cJSON_Delete(get("commands", NULL));
    run_frames(1);
    quern__inspect_answer *answer = quern__inspect_answer_create(scene.inspector);
    quern__inspect_answer_open(answer, "GET", "commands", NULL);
    quern__inspect_answer_begin(answer);
    must(quern_command_log_get_stats(scene.inspector->command_log, &stats));
    const uint64_t frame_index = stats.frame_index;
    run_frames(2 * QUERN__INSPECT_COMMAND_FRAMES);
    must(quern_command_log_get_stats(scene.inspector->command_log, &stats));
    cr_assert_eq(stats.frame_index, frame_index);
    quern__inspect_answer_destroy(answer);
    run_frames(1);
    cr_assert_null(scene.inspector->command_log);
}

static void forget(void *values, uint32_t count, void *user_data)
{
    (void)values;
    (void)count;
    (void)user_data;
}

Test(inspect_tools, saves_a_frame_as_an_archive)
{
    quern_byte_buffer archive = {.bytes = NULL};
    inspect_scene other;
    uint32_t status;
    inspect_scene_open(&scene, 40, NULL);
    run_frames(9);
    cJSON_Delete(post("pause", ""));
    cJSON_Delete(post("restore", "frame=4"));
    get_bytes("archive", &archive);
    inspect_scene_open_empty(&other);
    must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes),
                          &(quern_load_def){.schedules = {other.schedule}}, NULL));
    cr_assert_eq(quern_world_hash(other.world), quern_world_hash(scene.world));
    inspect_scene_close_empty(&other);
    refuse("GET", "archive", "leave_out=None", 404);
    const quern_inspect_call call = {.method = "GET", .path = "archive", .arguments = "leave_out=Body"};
    const size_t whole_bytes = archive.size_bytes;
    archive.size_bytes = 0;
    must(quern_inspect_request(scene.inspector, &call, quern_sink_bytes(&archive), &status));
    cr_assert(status == 200 && archive.size_bytes < whole_bytes);
    quern_byte_buffer_release(&archive);
    /* A world that cannot be saved says why, as JSON. */
    const quern_component_def owner = {
        .name = "Owner", .size_bytes = 8, .alignment_bytes = 8, .hooks = {.destroy = forget}};
    quern_component component;
    must(quern_component_register(scene.world, &owner, &component));
    must(quern_entity_add(scene.world, scene.child, component, NULL));
    refuse("GET", "archive", NULL, 400);
    refuse("POST", "record_case", NULL, 400);
}

/* ------------------------------------------------------------------------------------------- memory */

Test(inspect_tools, survives_exhausted_memory)
{
    static const char *const requests[][2] = {
        {"access", NULL},
        {"matches", "entity=/arena/gun"},
        {"table", "query=Body&sort=Body.x&where=Body.x>3&columns=Body.x"},
        {"probes", NULL},
        {"statistics", NULL},
        {"commands", NULL},
        {"archive", NULL},
        {"case", NULL},
        {"case_archive", NULL},
    };
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(failing);
    inspect_scene_open(&scene, 200, &allocator);
    run_frames(1);
    cJSON_Delete(post("record_case", "frames=1"));
    run_frames(2);
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
    inspect_scene_close(&scene);
    failing_allocator_close(failing);
}

Test(inspect_tools, keeps_no_test_case_without_memory)
{
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(failing);
    uint32_t failures = 0, status = 0;
    inspect_scene_open(&scene, 20, &allocator);
    run_frames(1);
    for (bool has_failed = true; has_failed; failures += has_failed) {
        const uint64_t failed = failing_allocator_failed_count(failing);
        const quern_inspect_call call = {.method = "POST", .path = "record_case", .arguments = "frames=2"};
        quern_text_buffer none = {NULL, 0, 0};
        failing_allocator_fail_at(failing, 1 + failures);
        const quern_result result =
            quern_inspect_request(scene.inspector, &call, quern_sink_text(&none), &status);
        has_failed = failing_allocator_failed_count(failing) > failed;
        cr_assert(has_failed ? result == QUERN_ERROR_OUT_OF_MEMORY || status != 200
                             : result == QUERN_OK && status == 200,
                  "%s, status %u", quern_result_string(result), status);
        /* A case whose answer failed may have begun. */
        cr_assert(scene.inspector->kept_case.recorder == NULL || !has_failed || result != QUERN_OK ||
                  status == 503);
    }
    cr_assert_gt(failures, 2u);
    failing_allocator_fail_at(failing, 0);
    run_frames(3);
    cJSON *json = get("case", NULL);
    cr_assert(cJSON_IsNull(member(json, "fault")));
    cJSON_Delete(json);
    /* A frame that cannot be recorded runs, and the case says why it ended. */
    cJSON_Delete(post("record_case", "frames=30"));
    run_frames(1);
    const uint64_t failed = failing_allocator_failed_count(failing);
    for (uint32_t i = 0; i < 20 && failing_allocator_failed_count(failing) == failed; i++) {
        failing_allocator_fail_at(failing, 1);
        run_frames(1);
    }
    cr_assert_gt(failing_allocator_failed_count(failing), failed);
    run_frames(30);
    json = get("case", NULL);
    cr_assert(cJSON_IsFalse(member(json, "recording")));
    cr_assert(cJSON_IsString(member(json, "fault")));
    cJSON_Delete(json);
    inspect_scene_close(&scene);
    failing_allocator_close(failing);
}
