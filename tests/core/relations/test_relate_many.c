/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/support/setup.h"

#include <string.h>

/* Relates many entities in one call, and in a twin world by single calls. test_random_relations compares random lists
 * with a naive model, also with memory failures. */

enum { TREES = 40, TREE_NODES = 40, NODES = TREES * TREE_NODES, MOVES = 700 };

typedef struct forest {
    quern_world *world;
    quern_component number;
    quern_relation parent;
    quern_entity nodes[NODES];
} forest;

static forest many, single;
static quern_entity sources[MOVES], targets[MOVES];

static void plant(forest *f)
{
    f->world = setup_world();
    f->number = setup_component(f->world, "number", 4, 4);
    f->parent = quern_world_parent(f->world);
    for (uint32_t i = 0; i < NODES; i++) {
        f->nodes[i] = setup_entity_with(f->world, &f->number, 1);
        must(quern_entity_set(f->world, f->nodes[i], f->number, &i));
        if (i % TREE_NODES == 0) continue;
        const uint32_t above = i - i % TREE_NODES + (i % TREE_NODES - 1) / 3;
        must(quern_entity_relate(f->world, f->nodes[i], f->parent, f->nodes[above]));
    }
}

static void open_worlds(void)
{
    plant(&many);
    plant(&single);
}

static void close_worlds(void)
{
    assert_at_end(quern_world_validate(many.world) == QUERN_OK);
    quern_world_destroy(many.world);
    quern_world_destroy(single.world);
}

TestSuite(relate_many, .init = open_worlds, .fini = close_worlds);

/* Identifies an entity by its number, since handles of two worlds differ. */
static uint32_t number_of(const forest *f, quern_entity entity)
{
    return quern_entity_is_null(entity) ? UINT32_MAX
                                        : *(const uint32_t *)quern_entity_get(f->world, entity, f->number);
}

static void assert_worlds_agree(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const quern_entity a = many.nodes[i], b = single.nodes[i];
        cr_assert_eq(number_of(&many, a), i);
        cr_assert_eq(number_of(&many, quern_entity_target(many.world, a, many.parent)),
                     number_of(&single, quern_entity_target(single.world, b, single.parent)));
        cr_assert_eq(number_of(&many, quern_entity_next_sibling(many.world, a, many.parent)),
                     number_of(&single, quern_entity_next_sibling(single.world, b, single.parent)));
        const quern_entity *target = quern_entity_get(many.world, a, quern_relation_component(many.parent));
        const quern_entity linked = quern_entity_target(many.world, a, many.parent);
        cr_assert(target == NULL ? quern_entity_is_null(linked) : quern_entity_equal(*target, linked));
    }
}

/* The list is long enough for prefetching and for moves of consecutive rows. A third of the moves relate whole
 * trees, or parts of trees that an earlier move has related. */
Test(relate_many, agrees_with_single_calls)
{
    uint32_t count = 0, seed = 7;
    while (count < MOVES) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t source = (seed >> 8) % NODES, target = (seed >> 4) % NODES;
        if (source == target) continue;
        if (quern_entity_relate(single.world, single.nodes[source], single.parent, single.nodes[target]) !=
            QUERN_OK)
            continue;
        sources[count] = many.nodes[source];
        targets[count++] = many.nodes[target];
    }
    must(quern_entity_relate_many(many.world, sources, many.parent, targets, count));
    assert_worlds_agree();
}

Test(relate_many, count_zero_changes_nothing)
{
    const uint64_t hash = quern_world_hash(many.world);
    must(quern_entity_relate_many(many.world, NULL, many.parent, NULL, 0));
    for (uint32_t i = 1; i < TREE_NODES; i++) {
        sources[i - 1] = many.nodes[i];
        targets[i - 1] = quern_entity_target(many.world, many.nodes[i], many.parent);
    }
    must(quern_entity_relate_many(many.world, sources, many.parent, targets, TREE_NODES - 1));
    cr_assert_eq(quern_world_hash(many.world), hash);
}

/* The last pair is wrong, in each possible way. */
Test(relate_many, wrong_pair_changes_nothing)
{
    const quern_entity gone = setup_entity(many.world);
    must(quern_entity_destroy(many.world, gone));
    for (uint32_t i = 0; i < 10; i++) {
        sources[i] = many.nodes[TREE_NODES * (i + 1)];
        targets[i] = many.nodes[TREE_NODES * i + i];
    }
    const struct {
        quern_entity source, target;
        quern_result result;
    } wrong[] = {
        {many.nodes[0], many.nodes[TREE_NODES * 10 + 5],
         QUERN_ERROR_CYCLE}, /* a cycle because of earlier pairs */
        {many.nodes[7], many.nodes[7], QUERN_ERROR_INVALID_ARGUMENT},
        {gone, many.nodes[7], QUERN_ERROR_STALE_ENTITY},
        {many.nodes[7], gone, QUERN_ERROR_STALE_ENTITY},
        {many.nodes[7], quern_entity_null(), QUERN_ERROR_NULL_ENTITY},
        {many.nodes[7], entity_of_other_world(many.nodes[8]), QUERN_ERROR_FOREIGN_ENTITY},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sources[10] = wrong[i].source;
        targets[10] = wrong[i].target;
        assert_refused(many.world, wrong[i].result,
                       quern_entity_relate_many(many.world, sources, many.parent, targets, 11));
        cr_assert_not_null(strstr(quern_error_message(), "pair 10"), "%s", quern_error_message());
    }
    assert_worlds_agree();
}

/* Names follow their entities to other parents, and back if a later name is taken. */
Test(relate_many, taken_name_restores_all_names)
{
    const quern_entity a = many.nodes[1], b = many.nodes[2], other = many.nodes[TREE_NODES];
    must(quern_entity_set_name(many.world, a, "arm"));
    must(quern_entity_set_name(many.world, b, "hand"));
    must(quern_entity_set_name(many.world, other, "body"));
    const quern_entity twin = many.nodes[TREE_NODES + 1];
    must(quern_entity_set_name(many.world, twin, "hand"));
    const quern_entity pair_sources[] = {a, b}, pair_targets[] = {other, other};
    must_refuse(SIBLING_NAME_TAKEN, many.world,
                quern_entity_relate_many(many.world, pair_sources, many.parent, pair_targets, 2));
    cr_assert(quern_entity_equal(quern_entity_find_child(many.world, many.nodes[0], "arm"), a));
    cr_assert(quern_entity_is_null(quern_entity_find_child(many.world, other, "arm")));
    must(quern_entity_set_name(many.world, twin, NULL));
    must(quern_entity_relate_many(many.world, pair_sources, many.parent, pair_targets, 2));
    cr_assert(quern_entity_equal(quern_entity_find(many.world, "body/arm"), a));
    cr_assert(quern_entity_equal(quern_entity_find(many.world, "body/hand"), b));
}

/* An entity that gets another target at the same level does not move, but change filters must report it. */
Test(relate_many, passes_change_filters)
{
    const quern_term term = quern_term_changed(quern_term_read(quern_relation_component(many.parent)));
    quern_query *changed = setup_query(many.world, &term, 1);
    uint32_t seen_count = 0;
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_gt(seen_count, 0u);
    seen_count = 0;
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_eq(seen_count, 0u);
    must(quern_entity_relate_many(many.world, &many.nodes[2], many.parent, &many.nodes[TREE_NODES], 1));
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_gt(seen_count, 0u);
    quern_query_destroy(changed);
}

Test(relate_many, wrong_arguments_are_refused)
{
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_relate_many(NULL, sources, many.parent, targets, 1));
    must_refuse(NULL_ARGUMENT, many.world,
                quern_entity_relate_many(many.world, NULL, many.parent, targets, 1));
    must_refuse(NULL_ARGUMENT, many.world,
                quern_entity_relate_many(many.world, sources, many.parent, NULL, 1));
    assert_refused(
        many.world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_entity_relate_many(many.world, many.nodes, (quern_relation){0}, many.nodes + 1, 1));
}

/* ------------------------------------------------------------------------- listing the sources of many */

/* The sources of many targets, listed in one call, must be those of single calls. Their values must be those of
 * getters. */

enum { TARGETS = 50, ROOM = 400 };

static quern_world *world;
static quern_relation parent;
static quern_entity listed[TARGETS];

#define LIST(of_targets, count, ...) \
    quern_entity_list_sources_many(  \
        world, &(quern_source_list){ \
                   .relation = parent, .targets = (of_targets), .target_count = (count), __VA_ARGS__})

/* The i-th target has i % 7 sources. */
static void open_targets(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        listed[i] = setup_entity(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        for (uint32_t k = 0; k < i % 7; k++)
            cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, listed[i]), QUERN_OK);
}

TestSuite(sources_many, .init = open_targets);

Test(sources_many, lists_sources_target_by_target)
{
    quern_entity all[ROOM], one[8];
    uint32_t counts[TARGETS];
    const uint64_t total = LIST(listed, TARGETS, .sources = all, .capacity = ROOM, .counts = counts);
    uint32_t first = 0;
    for (uint32_t i = 0; i < TARGETS; i++) {
        cr_assert_eq(counts[i], i % 7);
        cr_assert_eq(quern_entity_list_sources(world, listed[i], parent, one, 8), counts[i]);
        cr_assert(counts[i] == 0 || memcmp(one, all + first, counts[i] * sizeof *one) == 0);
        first += counts[i];
    }
    cr_assert_eq(total, first);
    cr_assert_eq(LIST(listed, TARGETS, .capacity = 0), total);
    quern_world_destroy(world);
}

Test(sources_many, writes_at_most_the_capacity)
{
    for (uint32_t room = 0; room < 150; room++) {
        quern_entity all[ROOM], some[ROOM];
        uint32_t counts[TARGETS];
        memset(some, 0, sizeof some);
        const uint64_t total = LIST(listed, TARGETS, .sources = all, .capacity = ROOM, .counts = counts);
        cr_assert_eq(LIST(listed, TARGETS, .sources = some, .capacity = room, .counts = counts), total);
        const uint32_t written = room < total ? room : (uint32_t)total;
        cr_assert(written == 0 || memcmp(some, all, written * sizeof *all) == 0);
        for (uint32_t i = written; i < ROOM; i++)
            cr_assert(quern_entity_is_null(some[i]));
        for (uint32_t i = 0; i < TARGETS; i++)
            cr_assert_eq(counts[i], i % 7);
    }
    quern_world_destroy(world);
}

Test(sources_many, dead_target_has_no_sources)
{
    const quern_entity gone = listed[6];
    cr_assert_eq(quern_entity_destroy(world, gone), QUERN_OK);
    const quern_entity again = setup_entity(world); /* may reuse its slot */
    cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, again), QUERN_OK);
    const quern_entity asked[] = {quern_entity_null(), gone, entity_of_other_world(listed[5]), listed[5]};
    quern_entity children[ROOM];
    uint32_t counts[4];
    cr_assert_eq(LIST(asked, 4, .sources = children, .capacity = ROOM, .counts = counts), 5);
    cr_assert_eq(counts[0] + counts[1] + counts[2], 0);
    cr_assert_eq(counts[3], 5);
    quern_world_destroy(world);
}

Test(sources_many, wrong_arguments)
{
    uint32_t counts[2] = {7, 7};
    assert_refused_value(world, quern_entity_list_sources_many(world, NULL));
    assert_refused_value(
        NULL, quern_entity_list_sources_many(
                  NULL, &(quern_source_list){
                            .relation = parent, .targets = listed, .target_count = 2, .counts = counts}));
    cr_assert_eq(counts[1], 0);
    assert_refused_value(world, LIST(NULL, 2, .capacity = 0));
    assert_refused_value(
        world, quern_entity_list_sources_many(world, &(quern_source_list){.relation = (quern_relation){0},
                                                                          .targets = listed,
                                                                          .target_count = 2}));
    cr_assert_eq(LIST(NULL, 0, .capacity = 0), 0);
    quern_world_destroy(world);
}

/* -------------------------------------------------------------------------------------- with values */

enum { COMPONENTS = 3 };

static quern_component components[COMPONENTS];
static quern_getter *getters[COMPONENTS];

/* Sources have every combination of the components. */
static void open_values(void)
{
    static const char *const names[COMPONENTS] = {"a", "b", "c"};
    open_targets();
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        components[i] = setup_component(world, names[i], 8 * (i + 1), 8);
        must(quern_getter_create(world, &(quern_getter_def){.component = components[i]}, &getters[i]));
    }
    quern_entity all[ROOM];
    const uint64_t total = LIST(listed, TARGETS, .sources = all, .capacity = ROOM);
    for (uint32_t i = 0; i < total; i++)
        for (uint32_t k = 0; k < COMPONENTS; k++)
            if ((i >> k & 1) != 0) must(quern_entity_add(world, all[i], components[k], NULL));
}

static void close_values(void)
{
    for (uint32_t i = 0; i < COMPONENTS; i++)
        quern_getter_destroy(getters[i]);
    quern_world_destroy(world);
}

TestSuite(sources_values, .init = open_values, .fini = close_values);

Test(sources_values, agree_with_getters)
{
    for (uint32_t column_count = 1; column_count <= COMPONENTS; column_count++) {
        quern_entity all[ROOM], plain[ROOM];
        void *values[COMPONENTS][ROOM];
        uint32_t counts[TARGETS], plain_counts[TARGETS];
        quern_getter_column columns[COMPONENTS];
        for (uint32_t i = 0; i < column_count; i++)
            columns[i] = (quern_getter_column){.getter = getters[i], .values = values[i], .writes = i == 1};
        const uint64_t total = LIST(listed, TARGETS, .sources = all, .capacity = ROOM, .counts = counts,
                                    .columns = columns, .column_count = column_count);
        cr_assert_eq(LIST(listed, TARGETS, .sources = plain, .capacity = ROOM, .counts = plain_counts),
                     total);
        cr_assert_arr_eq(all, plain, (size_t)total * sizeof *all);
        cr_assert_arr_eq(counts, plain_counts, sizeof counts);
        for (uint32_t i = 0; i < total; i++)
            for (uint32_t k = 0; k < column_count; k++)
                cr_assert_eq(values[k][i], quern_getter_get(getters[k], all[i]));
    }
}

Test(sources_values, writes_at_most_the_capacity)
{
    for (uint32_t room = 0; room < 20; room++) {
        quern_entity all[20] = {0};
        void *values[20];
        for (uint32_t i = 0; i < 20; i++)
            values[i] = &world;
        const quern_getter_column column = {.getter = getters[0], .values = values};
        const uint64_t total =
            LIST(listed, TARGETS, .sources = all, .capacity = room, .columns = &column, .column_count = 1);
        cr_assert_eq(total, LIST(listed, TARGETS, .capacity = 0));
        for (uint32_t i = 0; i < 20; i++) {
            cr_assert_eq(quern_entity_is_null(all[i]), i >= room);
            cr_assert_eq(values[i] == &world, i >= room);
        }
    }
}

/* Only values of the column that is requested for writing count as changed. */
Test(sources_values, columns_for_writing_pass_change_filters)
{
    quern_query *changed[2];
    for (uint32_t i = 0; i < 2; i++) {
        const quern_term term = quern_term_changed(quern_term_read(components[i]));
        changed[i] = setup_query(world, &term, 1);
        for (quern_query_iterator it = quern_query_iterate(changed[i]); quern_query_next(&it);) {
        }
    }
    quern_entity all[ROOM];
    void *values[2][ROOM];
    const quern_getter_column columns[] = {{.getter = getters[0], .values = values[0]},
                                           {.getter = getters[1], .values = values[1], .writes = true}};
    LIST(listed, TARGETS, .sources = all, .capacity = ROOM, .columns = columns, .column_count = 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t seen_count = 0;
        for (quern_query_iterator it = quern_query_iterate(changed[i]); quern_query_next(&it);)
            seen_count += it.view.count;
        cr_assert_eq(seen_count > 0, i == 1);
        quern_query_destroy(changed[i]);
    }
}

Test(sources_values, wrong_arguments)
{
    quern_entity all[8];
    void *values[8];
    uint32_t counts[2] = {7, 7};
    quern_world *other = setup_world();
    quern_getter *foreign;
    must(quern_getter_create(other, &(quern_getter_def){.component = setup_component(other, "a", 8, 8)},
                             &foreign));
    const quern_getter_column good = {.getter = getters[0], .values = values};
    quern_getter_column columns[QUERN_MAX_GETTER_COLUMNS + 1];
    for (uint32_t i = 0; i <= QUERN_MAX_GETTER_COLUMNS; i++)
        columns[i] = good;
    assert_refused_value(world, LIST(listed, 2, .sources = all, .capacity = 8, .counts = counts,
                                     .columns = NULL, .column_count = 1));
    cr_assert_eq(counts[0] + counts[1], 0);
    assert_refused_value(world, LIST(listed, 2, .sources = all, .capacity = 8, .columns = columns,
                                     .column_count = QUERN_MAX_GETTER_COLUMNS + 1));
    assert_refused_value(world,
                         LIST(NULL, 2, .sources = all, .capacity = 8, .columns = &good, .column_count = 1));
    assert_refused_value(
        world, quern_entity_list_sources_many(world, &(quern_source_list){.relation = (quern_relation){0},
                                                                          .targets = listed,
                                                                          .target_count = 2,
                                                                          .sources = all,
                                                                          .capacity = 8,
                                                                          .columns = &good,
                                                                          .column_count = 1}));
    columns[1] = (quern_getter_column){.values = values};
    assert_refused_value(
        world, LIST(listed, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    columns[1] = (quern_getter_column){.getter = getters[1]};
    assert_refused_value(
        world, LIST(listed, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    columns[1] = (quern_getter_column){.getter = getters[1]};
    cr_assert_eq(LIST(listed, 2, .columns = columns, .column_count = 2), 1); /* nothing is stored */
    columns[1] = (quern_getter_column){.getter = foreign, .values = values};
    assert_refused_value(
        world, LIST(listed, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    quern_getter_destroy(foreign);
    quern_world_destroy(other);
}
