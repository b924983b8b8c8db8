/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/sched/describe/describe_scene.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* Schedules described as JSON. */

TestSuite(describe_json, .init = open_world, .fini = close_world);

static cJSON *parsed(void)
{
    const char *text = written(QUERN_DESCRIBE_JSON);
    cJSON *root = cJSON_Parse(text);
    cr_assert_not_null(root, "no JSON:\n%s", text);
    return root;
}

/* Returns a member, or the item with an index, which must exist. */
static const cJSON *member(const cJSON *object, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    cr_assert_not_null(found, "no \"%s\"", key);
    return found;
}

static const cJSON *item(const cJSON *array, uint32_t index)
{
    cr_assert(cJSON_IsArray(array));
    const cJSON *found = cJSON_GetArrayItem(array, (int)index);
    cr_assert_not_null(found, "no item %u", index);
    return found;
}

static void assert_member_text(const cJSON *object, const char *key, const char *expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsString(found), "\"%s\" is no text", key);
    cr_assert_str_eq(found->valuestring, expected, "\"%s\" is %s", key, found->valuestring);
}

static void assert_number(const cJSON *object, const char *key, double expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsNumber(found), "\"%s\" is no number", key);
    cr_assert_float_eq(found->valuedouble, expected, 1e-9, "\"%s\" is %g", key, found->valuedouble);
}

static void assert_flag(const cJSON *object, const char *key, bool expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsBool(found), "\"%s\" is no flag", key);
    cr_assert_eq(cJSON_IsTrue(found) != 0, expected, "\"%s\"", key);
}

static void assert_null(const cJSON *object, const char *key)
{
    cr_assert(cJSON_IsNull(member(object, key)), "\"%s\" is not null", key);
}

static void assert_count(const cJSON *object, const char *key, int expected)
{
    cr_assert_eq(cJSON_GetArraySize(member(object, key)), expected, "\"%s\"", key);
}

static const cJSON *segment_of(const cJSON *root, uint32_t phase, uint32_t segment)
{
    return item(member(item(member(root, "phases"), phase), "segments"), segment);
}

static const cJSON *pass_of(const cJSON *root, uint32_t pass)
{
    return item(member(segment_of(root, 0, 0), "passes"), pass);
}

static const cJSON *system_of(const cJSON *root, uint32_t pass, uint32_t system)
{
    return item(member(pass_of(root, pass), "systems"), system);
}

static void assert_load(const cJSON *object, double work, double critical_path, double parallelism)
{
    const cJSON *load = member(object, "load");
    assert_number(load, "work", work);
    assert_number(load, "critical_path", critical_path);
    assert_number(load, "parallelism", parallelism);
}

static void assert_pair(const cJSON *object, const char *before, const char *after)
{
    assert_member_text(object, "before", before);
    assert_member_text(object, "after", after);
}

static void assert_cause(const cJSON *object, const char *cause, const char *name)
{
    assert_member_text(object, "cause", cause);
    assert_member_text(object, "name", name);
}

Test(describe_json, an_empty_schedule)
{
    cJSON *root = parsed();
    assert_number(root, "version", 1);
    assert_null(root, "name");
    assert_flag(root, "fuse", true);
    assert_number(root, "shuffle_seed", 0);
    assert_member_text(root, "unit", "calls");
    assert_null(member(root, "load"), "parallelism");
    const cJSON *phase = item(member(root, "phases"), 0);
    assert_member_text(phase, "name", "p0");
    assert_null(phase, "fixed_step");
    assert_member_text(segment_of(root, 0, 0), "kind", "sync");
    assert_count(root, "by_registration_alone", 0);
    cJSON_Delete(root);
}

Test(describe_json, the_name_of_a_schedule)
{
    quern_schedule *unnamed = schedule;
    must(quern_schedule_create(world, &(quern_schedule_def){.name = "combat"}, &schedule));
    cJSON *root = parsed();
    assert_member_text(root, "name", "combat");
    cJSON_Delete(root);
    quern_schedule_destroy(schedule);
    schedule = unnamed;
}

Test(describe_json, passes_edges_and_loads)
{
    const quern_component both[] = {position, velocity};
    for (uint32_t i = 0; i < ROWS; i++)
        setup_entity_with(world, both, 2);
    setup_writer(schedule, "push", velocity);
    add_terms("move", (quern_term[]){quern_term_write(position), quern_term_read(velocity)}, 2);
    add_user("count", position, score, QUERN_ACCESS_WRITE);
    cJSON *root = parsed();
    assert_load(root, 18, 8, 2.25);
    assert_load(segment_of(root, 0, 0), 18, 8, 2.25);

    const cJSON *first = pass_of(root, 0), *second = pass_of(root, 1);
    assert_number(first, "pass", 1);
    assert_member_text(first, "kind", "chunks");
    assert_null(first, "alone");
    assert_number(first, "lanes", 1);
    assert_number(first, "archetypes", 1);
    assert_number(first, "chunks", 6);
    assert_number(first, "entities", ROWS);
    assert_count(first, "waits_for", 0);
    assert_member_text(second, "kind", "serial");
    assert_member_text(member(second, "alone"), "reason", "resource");
    assert_member_text(member(second, "alone"), "name", "score");
    cr_assert_eq(item(member(second, "waits_for"), 0)->valueint, 1);

    const cJSON *edges = member(segment_of(root, 0, 0), "edges");
    cr_assert_eq(cJSON_GetArraySize(edges), 2);
    assert_pair(item(edges, 0), "push", "move");
    assert_count(item(edges, 0), "causes", 1);
    assert_cause(item(member(item(edges, 0), "causes"), 0), "component", "velocity");
    assert_flag(item(edges, 0), "chunk_local", true);
    assert_member_text(item(edges, 0), "kept_by", "pass");
    assert_flag(item(edges, 0), "by_registration_alone", true);
    assert_pair(item(edges, 1), "move", "count");
    assert_member_text(item(edges, 1), "kept_by", "graph");
    assert_count(root, "by_registration_alone", 2);
    const cJSON *accident = item(member(root, "by_registration_alone"), 1);
    assert_pair(accident, "move", "count");
    assert_cause(accident, "component", "position");
    cJSON_Delete(root);
}

static cJSON *edges_to(const char *name, bool direct_only)
{
    static char text[TEXT_BYTES];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_schedule_describe_edges(schedule, quern_schedule_find_system(schedule, name), direct_only,
                                       quern_sink_text(&buffer)));
    cJSON *edges = cJSON_Parse(text);
    cr_assert(cJSON_IsArray(edges), "no list:\n%s", text);
    return edges;
}

/* The edges to one system are those of the whole description; the passes alone have none. */
Test(describe_json, edges_of_one_system)
{
    static const char *const names[] = {"a", "b", "c", "alone", "d", "e", "f"};
    must_exist(position);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        quern_system_def def = system_def(names[i], idle_run);
        if (i == 3)
            def.flags = QUERN_SYSTEM_EXCLUSIVE;
        else
            def.terms[0] = quern_term_write(i % 2 == 0 ? position : velocity);
        if (i != 3 && i != 4 && i != 6)
            def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE};
        setup_system(schedule, &def);
    }
    cJSON *root = parsed();
    const cJSON *segment;
    uint32_t count = 0, pass_count = 0, direct_count = 0, seen_count = 0, seen_direct_count = 0;
    cJSON_ArrayForEach(segment, member(item(member(root, "phases"), 0), "segments"))
    {
        const cJSON *edge;
        cJSON_ArrayForEach(edge, cJSON_GetObjectItem(segment, "edges"))
        {
            const char *after = member(edge, "after")->valuestring;
            cJSON *all = edges_to(after, false);
            uint32_t equal_count = 0;
            const cJSON *one;
            cJSON_ArrayForEach(one, all) equal_count += cJSON_Compare(one, edge, 1) != 0;
            cr_assert_eq(equal_count, 1u, "to %s", after);
            cJSON_Delete(all);
            count++;
            pass_count += strcmp(member(edge, "kept_by")->valuestring, "pass") == 0;
            direct_count += strcmp(member(edge, "kept_by")->valuestring, "implied") != 0;
        }
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cJSON *all = edges_to(names[i], false), *direct = edges_to(names[i], true);
        seen_count += (uint32_t)cJSON_GetArraySize(all);
        seen_direct_count += (uint32_t)cJSON_GetArraySize(direct);
        cJSON_Delete(all);
        cJSON_Delete(direct);
    }
    cr_assert_eq(seen_count, count);
    cr_assert_eq(seen_direct_count, direct_count);
    cr_assert_gt(count, direct_count);
    cr_assert_gt(pass_count, 0u);
    cr_assert_gt(direct_count, pass_count);
    cJSON_Delete(root);
    const char *text = written(QUERN_DESCRIBE_PASSES);
    cr_assert_null(strstr(text, "\"edges\""));
    cr_assert_null(strstr(text, "\"by_registration_alone\""));
    cr_assert_null(strstr(text, "\"terms\""));
    root = cJSON_Parse(text);
    assert_member_text(system_of(root, 0, 0), "name", "a");
    assert_flag(system_of(root, 0, 0), "enabled", true);
    cJSON_Delete(root);
    must_refuse(NULL_ARGUMENT, world,
                quern_schedule_describe_edges(NULL, (quern_system){1}, true, quern_sink_file(stderr)));
    must_refuse(NULL_ARGUMENT, world,
                quern_schedule_describe_edges(schedule, (quern_system){1}, true, (quern_sink){0}));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_describe_edges(schedule, (quern_system){99}, true, quern_sink_file(stderr)));
}

/* One system is the same object as in the whole description, without not_in, and its terms are those of a query. */
Test(describe_json, one_system)
{
    static char text[TEXT_BYTES];
    quern_query_def query;
    const char *sets[4];
    quern_system_def def = reader_def("early", position);
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "flock"}));
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "empty"}));
    def.sets[0] = "flock";
    def.every = 3;
    def.terms[1] = quern_term_without(velocity);
    setup_system(schedule, &def);
    setup_writer(schedule, "late", position);
    cJSON *root = parsed(), *early = cJSON_Duplicate(system_of(root, 0, 0), 1);
    cJSON_DeleteItemFromObject(early, "not_in");
    const quern_system system = quern_schedule_find_system(schedule, "early");
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_schedule_describe_system(schedule, system, quern_sink_text(&buffer)));
    cJSON *one = cJSON_Parse(text);
    cr_assert(cJSON_Compare(one, early, 1), "%s", text);
    cJSON_Delete(one);
    cJSON_Delete(early);
    cJSON_Delete(root);
    must(quern_schedule_get_system_query(schedule, system, &query));
    cr_assert_str_eq(query.name, "early");
    cr_assert(quern_component_equal(query.terms[1].component, velocity));
    cr_assert_eq(query.terms[1].match, QUERN_MATCH_NONE);
    cr_assert_eq(query.terms[2].match, 0);
    cr_assert_eq(quern_schedule_list_sets(schedule, sets, 4), 2u);
    cr_assert_str_eq(sets[0], "flock");
    cr_assert_str_eq(sets[1], "empty");
    cr_assert_eq(quern_schedule_list_sets(schedule, NULL, 0), 2u);
    must_refuse(NULL_ARGUMENT, world,
                quern_schedule_describe_system(NULL, system, quern_sink_file(stderr)));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_describe_system(schedule, system, (quern_sink){0}));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_describe_system(schedule, (quern_system){99}, quern_sink_file(stderr)));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_system_query(schedule, system, NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_get_system_query(schedule, (quern_system){99}, &query));
}

/* A reaction gets rows in which a component is disabled; that says nothing of components that its rows lack. */
Test(describe_json, terms_of_a_reaction_have_a_text)
{
    char written[256];
    quern_query_def query;
    quern_system_def def = reader_def("watch", position);
    def.reacts_to = QUERN_REACT_ADDED;
    def.terms[1] = quern_term_without(velocity);
    const quern_system system = setup_system(schedule, &def);
    must(quern_schedule_get_system_query(schedule, system, &query));
    cr_assert_eq(query.terms[0].enabled, QUERN_TERM_EITHER);
    cr_assert_eq(query.terms[1].enabled, QUERN_TERM_ENABLED);
    quern_text_buffer buffer = {written, sizeof written, 0};
    must(quern_query_to_text(world, &query, quern_sink_text(&buffer)));
    cr_assert_not_null(strstr(written, ", !"), "%s", written);
}

Test(describe_json, up_terms_name_their_relation)
{
    quern_relation relation = make_relation(world, .name = "belongs to");
    quern_system_def def = reader_def("up", position);
    def.terms[1] = quern_term_up(velocity, relation);
    def.terms[2] = quern_term_up_make(velocity, relation, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST);
    setup_system(schedule, &def);
    setup_writer(schedule, "later", velocity);
    must_exist(velocity);
    cJSON *root = parsed();
    const cJSON *terms = member(system_of(root, 0, 0), "terms");
    assert_member_text(item(terms, 1), "component", "velocity");
    assert_member_text(item(terms, 1), "access", "read");
    assert_member_text(item(terms, 1), "path", "target");
    assert_member_text(item(terms, 1), "relation", "belongs to");
    assert_member_text(item(terms, 2), "match", "optional");
    assert_member_text(item(terms, 2), "path", "nearest");
    assert_count(system_of(root, 0, 0), "lookups", 0);
    cJSON_Delete(root);
}

static int compare_health(const void *a, const void *b, void *user_data)
{
    return memcmp(a, b, 4);
}

Test(describe_json, an_order_names_its_component)
{
    must_exist(health);
    quern_system_def def = reader_def("sorted", health);
    def.order_by = (quern_order){.component = health, .compare = compare_health};
    setup_system(schedule, &def);
    cJSON *root = parsed();
    const cJSON *order = member(system_of(root, 0, 0), "order_by");
    assert_member_text(order, "component", "health");
    assert_null(order, "field");
    assert_flag(order, "comparison", true);
    cJSON_Delete(root);
}

Test(describe_json, filters_by_row_and_by_chunk_differ)
{
    add_filters();
    cJSON *root = parsed();
    const cJSON *terms = member(system_of(root, 0, 0), "terms");
    assert_flag(item(terms, 0), "changed_by_row", true);
    assert_flag(item(terms, 1), "changed_by_row", false);
    cJSON_Delete(root);
}

Test(describe_json, a_system_with_all_declarations)
{
    quern_term terms[] = {quern_term_changed(quern_term_read(position)), quern_term_without(velocity)};
    quern_system_def def = system_def("rich", idle_run);
    memcpy(def.terms, terms, 2 * sizeof terms[0]);
    def.lookups[0].component = health;
    def.write_lookups[0] = (quern_lookup){setup_component(world, "mass", 4, 4), .with = health};
    def.queries[0] = (quern_query_def){.name = "others", .terms = {quern_term_write(velocity)}};
    def.queries[1] = (quern_query_def){.terms = {quern_term_read(health)}, .whole_chunks = true};
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_ACCESS_WRITE_CONCURRENT};
    def.condition = always;
    def.interval_seconds = 0.125;
    def.begin = idle_callback;
    def.partial_bytes = 24;
    must_exist(position);
    must(quern_schedule_set_system_enabled(schedule, setup_system(schedule, &def), false));
    cJSON *root = parsed();
    const cJSON *system = system_of(root, 0, 0);
    assert_member_text(system, "name", "rich");
    assert_number(system, "lane", 1);
    assert_flag(system, "enabled", false);
    assert_flag(system, "serial", true);
    assert_flag(system, "main_thread", false);
    assert_flag(system, "exclusive", false);
    assert_flag(system, "condition", true);
    assert_number(system, "interval_seconds", 0.125);
    assert_number(system, "turn", 0);
    assert_flag(system, "begin", true);
    assert_flag(system, "end", false);
    assert_number(system, "partial_bytes", 24);
    assert_number(system, "archetypes", 1);
    assert_number(system, "chunks", 1);
    const cJSON *first = item(member(system, "terms"), 0), *second = item(member(system, "terms"), 1);
    assert_member_text(first, "component", "position");
    assert_member_text(first, "match", "all");
    assert_member_text(first, "access", "read");
    assert_flag(first, "changed", true);
    assert_flag(first, "changed_by_row", false);
    assert_member_text(first, "path", "row");
    cr_assert(cJSON_IsNull(member(first, "relation")));
    assert_member_text(second, "match", "none");
    assert_member_text(second, "access", "none");
    assert_flag(second, "changed", false);
    assert_count(system, "queries", 2);
    const cJSON *query = item(member(system, "queries"), 0), *other = item(member(system, "queries"), 1);
    assert_member_text(query, "name", "others");
    assert_member_text(item(member(query, "terms"), 0), "component", "velocity");
    assert_member_text(item(member(query, "terms"), 0), "access", "write");
    cr_assert(cJSON_IsNull(member(other, "name")));
    assert_flag(other, "whole_chunks", true);
    cr_assert_str_eq(item(member(system, "lookups"), 0)->valuestring, "health");
    cr_assert_str_eq(item(member(system, "write_lookups"), 0)->valuestring, "mass");
    const cJSON *limit = item(member(system, "lookup_limits"), 0);
    assert_count(system, "lookup_limits", 1);
    assert_member_text(limit, "component", "mass");
    assert_member_text(limit, "with", "health");
    cr_assert(cJSON_IsNull(member(limit, "without")));
    assert_member_text(item(member(system, "resources"), 1), "resource", "clock");
    assert_member_text(item(member(system, "resources"), 1), "access", "write_concurrent");
    assert_count(system, "not_in", 0);
    cJSON_Delete(root);
}

Test(describe_json, reasons_for_separate_passes)
{
    add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_ACCESS_READ);
    setup_reader(schedule, "c", position);
    add_after("d", health, "b");
    cJSON *root = parsed();
    const cJSON *b = item(member(system_of(root, 1, 0), "not_in"), 0);
    assert_number(b, "pass", 1);
    assert_member_text(b, "reason", "conflict");
    assert_member_text(b, "system", "a");
    assert_member_text(b, "cause", "resource");
    assert_member_text(b, "name", "score");
    const cJSON *c = item(member(system_of(root, 0, 1), "not_in"), 0);
    assert_number(c, "pass", 2);
    assert_member_text(c, "reason", "choice");
    const cJSON *d = item(member(system_of(root, 2, 0), "not_in"), 0);
    assert_number(d, "pass", 1);
    assert_member_text(d, "reason", "order");
    assert_member_text(d, "system", "b");
    assert_member_text(d, "cause", "before_after");
    assert_null(d, "name");
    cJSON_Delete(root);
}

Test(describe_json, what_makes_a_system_serial_has_a_name)
{
    quern_system_def looking = system_def("looking", idle_run),
                     iterating = system_def("iterating", idle_run);
    looking.terms[0] = iterating.terms[0] = quern_term_read(position);
    looking.flags = iterating.flags = QUERN_SYSTEM_SERIAL;
    looking.write_lookups[0].component = health;
    iterating.queries[0] = (quern_query_def){.terms = {quern_term_write(velocity)}};
    setup_system(schedule, &looking);
    setup_system(schedule, &iterating);
    cJSON *root = parsed();
    const cJSON *first = member(pass_of(root, 0), "alone"), *second = member(pass_of(root, 1), "alone");
    assert_member_text(first, "reason", "write_lookup");
    assert_member_text(first, "name", "health");
    assert_member_text(second, "reason", "query");
    assert_member_text(second, "name", "velocity");
    cJSON_Delete(root);
}

Test(describe_json, exclusive_segments_and_fixed_steps)
{
    must(quern_schedule_set_fixed_step(schedule, 0, 0.5, 3));
    make_system(schedule, "x", idle_run, .flags = QUERN_SYSTEM_EXCLUSIVE);
    cJSON *root = parsed();
    const cJSON *fixed = member(item(member(root, "phases"), 0), "fixed_step");
    assert_number(fixed, "seconds", 0.5);
    assert_number(fixed, "max_count", 3);
    assert_member_text(segment_of(root, 0, 0), "kind", "sync");
    const cJSON *segment = segment_of(root, 0, 1);
    assert_member_text(segment, "kind", "exclusive");
    assert_load(segment, 1, 1, 1);
    const cJSON *pass = item(member(segment, "passes"), 0);
    assert_member_text(pass, "kind", "once");
    assert_member_text(member(pass, "alone"), "reason", "exclusive");
    assert_null(member(pass, "alone"), "name");
    cJSON_Delete(root);
}

Test(describe_json, reactions_have_segments_of_their_own)
{
    setup_reader(schedule, "frame", position);
    make_system(schedule, "reaction", idle_run, .terms = {quern_term_read(position)},
                .reacts_to = QUERN_REACT_SET);
    cJSON *root = parsed();
    const cJSON *reactions = member(root, "reactions");
    cr_assert(cJSON_IsNumber(member(reactions, "max_rounds")));
    const cJSON *pass = item(member(item(member(reactions, "segments"), 0), "passes"), 0);
    assert_member_text(item(member(pass, "systems"), 0), "name", "reaction");
    assert_member_text(system_of(root, 0, 0), "name", "frame");
    cJSON_Delete(root);
}

/* One and two replacement characters. */
#define BAD "\xEF\xBF\xBD"
#define TWO BAD BAD

/* A name may contain any bytes; bytes that are not UTF-8 are replaced. */
Test(describe_json, names_are_escaped)
{
    static const char *const names[] = {
        "a \"quoted\" \\ name",
        "line\nbreak\ttab\x7F",
        "gr\xC3\xB6\xC3\x9Fte \xE2\x82\xAC \xF0\x9F\x90\x9D",
        "no start \xFF\x80, no end \xC3 \xE2\x82",
        "too long \xC0\x80 \xE0\x9F\xBF \xF0\x8F\xBF\xBF",
        "too far \xF4\x90\x80\x80 \xF5\x80",
        "half a pair \xED\xA0\x80",
        "not too long \xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80, not too far \xF4\x8F\xBF\xBF\xED\x9F\xBF",
    };
    static const char *const read[] = {
        "a \"quoted\" \\ name",
        "line\nbreak\ttab\x7F",
        "gr\xC3\xB6\xC3\x9Fte \xE2\x82\xAC \xF0\x9F\x90\x9D",
        "no start " TWO ", no end " BAD " " TWO,
        "too long " TWO " " TWO BAD " " TWO TWO,
        "too far " TWO TWO " " TWO,
        "half a pair " TWO BAD,
        "not too long \xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80, not too far \xF4\x8F\xBF\xBF\xED\x9F\xBF",
    };
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        setup_reader(schedule, names[i], position);
    cJSON *root = parsed();
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        assert_member_text(system_of(root, 0, i), "name", read[i]);
    cJSON_Delete(root);
    assert_line("'line\\x0Abreak\\x09tab\\x7F': read 'position'; lane 2");
}

static void work(quern_context *context, const quern_view *view)
{
    volatile uint64_t *sum = quern_context_user_data(context);
    quern_commands_destroy(quern_context_commands(context), view->entities[0]);
    for (uint32_t i = 0; i < view->count; i++)
        *sum += i;
}

/* With measured times the unit is nanoseconds, and no path is longer than the total work. */
static void assert_times(const cJSON *object)
{
    const cJSON *load = member(object, "load");
    double all = member(load, "work")->valuedouble, path = member(load, "critical_path")->valuedouble;
    cr_assert_gt(path, 0.0);
    cr_assert_leq(path, all);
    assert_number(load, "parallelism", (double)(uint64_t)(all * 1000 / path + 0.5) / 1000);
}

Test(describe_json, measured_times_are_used_if_present)
{
    static uint64_t sum;
    quern_schedule_def def = {.timing = true};
    reopen(&def);
    for (uint32_t i = 0; i < ROWS; i++)
        must_exist(position);
    quern_system_def timed = reader_def("timed", position);
    timed.run = work;
    timed.user_data = &sum;
    timed.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &timed);
    cJSON *root = parsed();
    assert_member_text(root, "unit", "calls");
    cJSON_Delete(root);
    must_run(schedule, NULL);
    root = parsed();
    assert_member_text(root, "unit", "ns");
    assert_times(root);
    assert_times(segment_of(root, 0, 0));
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, quern_schedule_find_system(schedule, "timed"), &stats));
    assert_load(segment_of(root, 0, 0), (double)stats.time_ns, (double)stats.time_ns, 1);
    double frame_ns = (double)(stats.time_ns + stats_of_frame(schedule).sync_ns);
    assert_load(root, frame_ns, frame_ns, 1);
    cJSON_Delete(root);
    cr_assert_not_null(strstr(written(QUERN_DESCRIBE_TEXT), " us, critical path "));
}

Test(describe_json, without_timing_calls_are_counted)
{
    must_exist(position);
    setup_reader(schedule, "a", position);
    must_run(schedule, NULL);
    cJSON *root = parsed();
    assert_member_text(root, "unit", "calls");
    assert_load(root, 1, 1, 1);
    cJSON_Delete(root);
}
