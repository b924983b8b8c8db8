/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <string.h>

/* Values of a type with a move hook and no copy hook: a call moves them from the caller. Each value refers to itself, so
 * that one moved as bytes shows. */

typedef struct pinned {
    const struct pinned *self;
    uint64_t number;
} pinned;

static int living, misplaced;
static quern_world *world;
static quern_component type;

static void construct(void *values, uint32_t count, void *user_data)
{
    pinned *made = values;
    for (uint32_t i = 0; i < count; i++)
        made[i] = (pinned){.self = &made[i]};
    living += (int)count;
}

static void move(void *targets, void *sources, uint32_t count, void *user_data)
{
    pinned *to = targets, *from = sources;
    for (uint32_t i = 0; i < count; i++) {
        misplaced += from[i].self != &from[i];
        to[i] = (pinned){.self = &to[i], .number = from[i].number};
        from[i].self = NULL;
    }
}

static void destroy(void *values, uint32_t count, void *user_data)
{
    const pinned *gone = values;
    for (uint32_t i = 0; i < count; i++)
        misplaced += gone[i].self != &gone[i];
    living -= (int)count;
}

static const quern_hooks hooks = {.construct = construct, .move = move, .destroy = destroy};

static void open_world(void)
{
    world = setup_world();
    const quern_component_def def = {.name = "pinned",
                                     .size_bytes = sizeof(pinned),
                                     .alignment_bytes = _Alignof(pinned),
                                     .hooks = hooks};
    cr_assert_eq(quern_component_register(world, &def, &type), QUERN_OK);
}

static void close_world(void)
{
    quern_world_destroy(world);
    assert_at_end(living == 0);
    assert_at_end(misplaced == 0);
}

TestSuite(moved_values, .init = open_world, .fini = close_world);

static pinned *make(pinned *value, uint64_t number)
{
    construct(value, 1, NULL);
    value->number = number;
    return value;
}

static void assert_holds(quern_entity entity, uint64_t number)
{
    const pinned *held = quern_entity_get(world, entity, type);
    cr_assert_not_null(held);
    cr_assert_eq(held->self, held);
    cr_assert_eq(held->number, number);
}

Test(moved_values, of_created_entities)
{
    pinned value, values[300];
    const void *given = make(&value, 1), *columns[] = {values};
    quern_entity entity, entities[300];
    cr_assert_eq(quern_entity_create_with(world, &type, &given, 1, &entity), QUERN_OK);
    cr_assert_null(value.self);
    assert_holds(entity, 1);
    for (uint64_t i = 0; i < 300; i++)
        make(&values[i], i);
    cr_assert_eq(quern_entity_create_many(world, &type, columns, 1, 300, entities), QUERN_OK);
    for (uint64_t i = 0; i < 300; i++)
        assert_holds(entities[i], i);
}

Test(moved_values, that_are_added_and_set)
{
    pinned first, second, third;
    quern_entity entity;
    cr_assert_eq(quern_entity_create(world, &entity), QUERN_OK);
    cr_assert_eq(quern_entity_add(world, entity, type, make(&first, 1)), QUERN_OK);
    assert_holds(entity, 1);
    cr_assert_eq(quern_entity_set(world, entity, type, make(&second, 2)), QUERN_OK);
    assert_holds(entity, 2);
    cr_assert_eq(quern_entity_create(world, &entity), QUERN_OK);
    cr_assert_eq(quern_entity_set(world, entity, type, make(&third, 3)), QUERN_OK);
    assert_holds(entity, 3);
}

Test(moved_values, of_commands)
{
    pinned first, second, third;
    const void *given = make(&first, 1);
    quern_entity entity, gone;
    cr_assert_eq(quern_entity_create(world, &entity), QUERN_OK);
    cr_assert_eq(quern_entity_create(world, &gone), QUERN_OK);
    quern_commands *commands = quern_world_commands(world);
    record_entity_with(commands, &type, &given, 1);
    cr_assert_eq(quern_commands_set(commands, entity, type, make(&second, 2)), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, gone, type, make(&third, 3)), QUERN_OK);
    cr_assert_eq(quern_entity_destroy(world, gone), QUERN_OK); /* and the world destroys the value */
    cr_assert_eq(quern_world_flush(world), QUERN_OK);
    assert_holds(entity, 2);
    cr_assert_eq(living, 2);
}

Test(moved_values, of_events)
{
    pinned value;
    quern_event event;
    const quern_event_def def = {
        .name = "pinned", .size_bytes = sizeof(pinned), .alignment_bytes = 8, .hooks = hooks};
    cr_assert_eq(quern_event_register(world, &def, &event), QUERN_OK);
    cr_assert_eq(quern_world_emit(world, event, make(&value, 1), 1), QUERN_OK);
    cr_assert_null(value.self);
}

Test(moved_values, are_not_given_to_several_entities)
{
    pinned value;
    quern_entity entities[2];
    const quern_term term = quern_term_with(type);
    quern_query *query = setup_query(world, &term, 1);
    cr_assert_eq(quern_entity_create_many(world, &type, NULL, 1, 2, entities), QUERN_OK);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    quern_commands *commands = quern_world_commands(world);
    cr_assert_eq(quern_commands_set_view(commands, &it.view, NULL, type, make(&value, 1)),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "quern_commands_set_view: "));
    cr_assert_not_null(
        strstr(quern_error_message(), "'pinned' has a move or destroy hook and no copy hook"));
    cr_assert_eq(quern_commands_add_view(commands, &it.view, NULL, type, &value),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(value.self, &value);
    destroy(&value, 1, NULL);
    pinned values[2];
    for (int i = 0; i < 2; i++)
        make(&values[i], 4 + (uint64_t)i);
    cr_assert_eq(quern_commands_set_view_values(commands, &it.view, NULL, type, values), QUERN_OK);
    quern_query_destroy(query);
    cr_assert_eq(quern_world_flush(world), QUERN_OK);
    for (uint64_t i = 0; i < 2; i++)
        assert_holds(entities[i], 4 + i);
}
