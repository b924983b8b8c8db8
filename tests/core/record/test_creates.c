/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Creates with random components and values, among other commands. The way a create is recorded depends on the
 * create before it. Most creates are therefore equal to the previous one, and some differ in one component or
 * in whether a value is given. */

enum { CREATE_COUNT = 6000, LIST_COUNT = 5, VALUE_BYTES = 48 };

static const uint32_t sizes[] = {1, 2, 4, 6, 8, 12, 16, 20, 48, 0};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

static quern_world *world;
static quern_component number, mark, sized[SIZE_COUNT];
static quern_entity victims[CREATE_COUNT];

/* The components of a create, by index in `sized`, and whether each has a value. */
typedef struct create_spec {
    uint32_t count;
    uint32_t which[LIST_COUNT];
    bool is_given[LIST_COUNT];
} create_spec;

static create_spec create_specs[CREATE_COUNT];

static bool has_component(const create_spec *it, uint32_t which)
{
    for (uint32_t i = 0; i < it->count; i++)
        if (it->which[i] == which) return true;
    return false;
}

static void draw_list(create_spec *it, random_source *random)
{
    it->count = 0;
    const uint32_t count = random_below(random, LIST_COUNT + 1);
    while (it->count < count) {
        const uint32_t which = random_below(random, SIZE_COUNT);
        if (has_component(it, which)) continue;
        it->is_given[it->count] = random_chance(random, 80);
        it->which[it->count++] = which;
    }
}

/* Most specs are equal to the previous one, or differ slightly. */
static void draw_specs(void)
{
    random_source random = {14};
    draw_list(&create_specs[0], &random);
    for (uint32_t i = 1; i < CREATE_COUNT; i++) {
        create_spec *it = &create_specs[i];
        *it = create_specs[i - 1];
        if (random_chance(&random, 20)) draw_list(it, &random);
        if (it->count == 0 || !random_chance(&random, 20)) continue;
        const uint32_t place = random_below(&random, it->count), which = random_below(&random, SIZE_COUNT);
        if (random_chance(&random, 50))
            it->is_given[place] = !it->is_given[place];
        else if (!has_component(it, which))
            it->which[place] = which;
    }
}

static void make_value(unsigned char *value, uint32_t create, uint32_t which)
{
    for (uint32_t i = 0; i < VALUE_BYTES; i++)
        value[i] = (unsigned char)(1 + (create * 31 + which * 7 + i) % 255);
}

static void record_spec(quern_commands *commands, uint32_t create)
{
    const create_spec *it = &create_specs[create];
    _Alignas(16) unsigned char bytes[LIST_COUNT][VALUE_BYTES];
    quern_component list[LIST_COUNT + 1] = {number};
    const void *values[LIST_COUNT + 1] = {&create};
    for (uint32_t i = 0; i < it->count; i++) {
        list[i + 1] = sized[it->which[i]];
        make_value(bytes[i], create, it->which[i]);
        values[i + 1] = it->is_given[i] ? bytes[i] : NULL;
    }
    cr_assert_not(quern_entity_is_null(record_entity_with(commands, list, values, it->count + 1)), "%s",
                  quern_error_message());
}

static void record_all(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < CREATE_COUNT; i++) {
        if (i % 3 == 0) cr_assert_eq(quern_commands_destroy(commands, victims[i]), QUERN_OK);
        if (i % 7 == 0) cr_assert_eq(quern_commands_add(commands, victims[i], mark, &i), QUERN_OK);
        record_spec(commands, i);
    }
}

static void assert_spec(quern_entity entity, uint32_t create)
{
    const create_spec *it = &create_specs[create];
    static const unsigned char zeros[VALUE_BYTES];
    unsigned char value[VALUE_BYTES];
    uint32_t found = 0;
    for (uint32_t i = 0; i < SIZE_COUNT; i++)
        found += quern_entity_has(world, entity, sized[i]);
    cr_assert_eq(found, it->count, "create %u", create);
    for (uint32_t i = 0; i < it->count; i++) {
        const uint32_t which = it->which[i];
        cr_assert(quern_entity_has(world, entity, sized[which]), "create %u", create);
        if (sizes[which] == 0) continue;
        make_value(value, create, which);
        cr_assert_arr_eq(quern_entity_get(world, entity, sized[which]), it->is_given[i] ? value : zeros,
                         sizes[which], "create %u, %u bytes", create, sizes[which]);
    }
}

static void assert_specs(void)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t created = 0;
    while (quern_query_next(&it)) {
        const uint32_t *creates = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            assert_spec(it.view.entities[i], creates[i]);
        created += it.view.count;
    }
    cr_assert_eq(created, (uint32_t)CREATE_COUNT);
    quern_query_destroy(query);
}

Test(creates, each_entity_has_its_own_components_and_values)
{
    world = setup_world();
    number = setup_component(world, "number", sizeof(uint32_t), _Alignof(uint32_t));
    mark = setup_component(world, "mark", sizeof(uint32_t), _Alignof(uint32_t));
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "sized %u", i);
        sized[i] = setup_component(world, name, sizes[i], sizes[i] == 16 ? 16 : 1);
    }
    draw_specs();
    for (uint32_t round = 0; round < 2; round++) { /* the second round records over other values */
        for (uint32_t i = 0; i < CREATE_COUNT; i++)
            victims[i] = setup_entity(world);
        run_once(world, record_all);
        assert_specs();
        assert_valid(world);
        quern_query *created = setup_query(world, (quern_term[]){quern_term_with(number)}, 1);
        cr_assert_eq(quern_entity_destroy_matching(created, NULL), QUERN_OK);
        quern_query_destroy(created);
    }
    quern_world_destroy(world);
}
