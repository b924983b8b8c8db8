/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Values of edges in the JSON of worlds, entities and prefabs. */

#include "kit/json.h"
#include "tests/support/fixture.h"

#include <quern/list.h>
#include <quern/prefab.h>

#include <string.h>

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
    quern_relation relation;
    must(QUERN_COMPONENT_REGISTER_FIELDS(into, &debts, debt, amount));
    must(quern_component_register(
        into,
        &(quern_component_def){QUERN_TYPE(likings),
                               .fields = {QUERN_LIST_FIELD(likings, edges, like, target, since)}},
        &values));
    must(quern_relation_register(into,
                                 &(quern_relation_def){.name = "owes",
                                                       .on_target_destroyed = QUERN_TARGET_UNRELATES,
                                                       .value = debts},
                                 &relation));
    must(quern_relation_register(
        into,
        &(quern_relation_def){
            .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true, .value = values},
        &relation));
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
