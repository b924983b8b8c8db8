/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <string.h>

/* The sources of many targets, listed in one call, must be those of single calls. Their values must be those of
 * getters. */

enum { TARGETS = 50, ROOM = 400 };

static quern_world *world;
static quern_relation parent;
static quern_entity targets[TARGETS];

#define LIST(of_targets, count, ...) \
    quern_entity_list_sources_many(  \
        world, &(quern_source_list){ \
                   .relation = parent, .targets = (of_targets), .target_count = (count), __VA_ARGS__})

/* The i-th target has i % 7 sources. */
static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] = setup_entity(world);
    for (uint32_t i = 0; i < TARGETS; i++)
        for (uint32_t k = 0; k < i % 7; k++)
            cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, targets[i]), QUERN_OK);
}

TestSuite(sources_many, .init = open_world);

Test(sources_many, lists_sources_target_by_target)
{
    quern_entity all[ROOM], one[8];
    uint32_t counts[TARGETS];
    const uint64_t total = LIST(targets, TARGETS, .sources = all, .capacity = ROOM, .counts = counts);
    uint32_t first = 0;
    for (uint32_t i = 0; i < TARGETS; i++) {
        cr_assert_eq(counts[i], i % 7);
        cr_assert_eq(quern_entity_list_sources(world, targets[i], parent, one, 8), counts[i]);
        cr_assert(counts[i] == 0 || memcmp(one, all + first, counts[i] * sizeof *one) == 0);
        first += counts[i];
    }
    cr_assert_eq(total, first);
    cr_assert_eq(LIST(targets, TARGETS, .capacity = 0), total);
    quern_world_destroy(world);
}

Test(sources_many, writes_at_most_the_capacity)
{
    for (uint32_t room = 0; room < 150; room++) {
        quern_entity all[ROOM], some[ROOM];
        uint32_t counts[TARGETS];
        memset(some, 0, sizeof some);
        const uint64_t total = LIST(targets, TARGETS, .sources = all, .capacity = ROOM, .counts = counts);
        cr_assert_eq(LIST(targets, TARGETS, .sources = some, .capacity = room, .counts = counts), total);
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
    const quern_entity gone = targets[6];
    cr_assert_eq(quern_entity_destroy(world, gone), QUERN_OK);
    const quern_entity again = setup_entity(world); /* may reuse its slot */
    cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, again), QUERN_OK);
    const quern_entity asked[] = {quern_entity_null(), gone, entity_of_other_world(targets[5]), targets[5]};
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
                            .relation = parent, .targets = targets, .target_count = 2, .counts = counts}));
    cr_assert_eq(counts[1], 0);
    assert_refused_value(world, LIST(NULL, 2, .capacity = 0));
    assert_refused_value(
        world, quern_entity_list_sources_many(world, &(quern_source_list){.relation = (quern_relation){0},
                                                                          .targets = targets,
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
    open_world();
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        components[i] = setup_component(world, names[i], 8 * (i + 1), 8);
        must(quern_getter_create(world, &(quern_getter_def){.component = components[i]}, &getters[i]));
    }
    quern_entity all[ROOM];
    const uint64_t total = LIST(targets, TARGETS, .sources = all, .capacity = ROOM);
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
        const uint64_t total = LIST(targets, TARGETS, .sources = all, .capacity = ROOM, .counts = counts,
                                    .columns = columns, .column_count = column_count);
        cr_assert_eq(LIST(targets, TARGETS, .sources = plain, .capacity = ROOM, .counts = plain_counts),
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
            LIST(targets, TARGETS, .sources = all, .capacity = room, .columns = &column, .column_count = 1);
        cr_assert_eq(total, LIST(targets, TARGETS, .capacity = 0));
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
    LIST(targets, TARGETS, .sources = all, .capacity = ROOM, .columns = columns, .column_count = 2);
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
    assert_refused_value(world, LIST(targets, 2, .sources = all, .capacity = 8, .counts = counts,
                                     .columns = NULL, .column_count = 1));
    cr_assert_eq(counts[0] + counts[1], 0);
    assert_refused_value(world, LIST(targets, 2, .sources = all, .capacity = 8, .columns = columns,
                                     .column_count = QUERN_MAX_GETTER_COLUMNS + 1));
    assert_refused_value(world,
                         LIST(NULL, 2, .sources = all, .capacity = 8, .columns = &good, .column_count = 1));
    assert_refused_value(
        world, quern_entity_list_sources_many(world, &(quern_source_list){.relation = (quern_relation){0},
                                                                          .targets = targets,
                                                                          .target_count = 2,
                                                                          .sources = all,
                                                                          .capacity = 8,
                                                                          .columns = &good,
                                                                          .column_count = 1}));
    columns[1] = (quern_getter_column){.values = values};
    assert_refused_value(
        world, LIST(targets, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    columns[1] = (quern_getter_column){.getter = getters[1]};
    assert_refused_value(
        world, LIST(targets, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    columns[1] = (quern_getter_column){.getter = getters[1]};
    cr_assert_eq(LIST(targets, 2, .columns = columns, .column_count = 2), 1); /* nothing is stored */
    columns[1] = (quern_getter_column){.getter = foreign, .values = values};
    assert_refused_value(
        world, LIST(targets, 2, .sources = all, .capacity = 8, .columns = columns, .column_count = 2));
    quern_getter_destroy(foreign);
    quern_world_destroy(other);
}
