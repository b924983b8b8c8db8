/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* One call enables or disables a component of all listed entities, or of none. */

enum { ENTITIES = 3000, LONG_LIST = 20000 /* long enough that the call allocates memory */ };

static failing_allocator *allocator;
static quern_component number, other, tag, solid; /* all but the last can be disabled */
static quern_entity entities[ENTITIES];
static quern_entity list[LONG_LIST];
static captured_reports reports;

static quern_component register_component(const char *name, uint32_t size_bytes, bool can_disable)
{
    quern_component component;
    const quern_component_def def = {.name = name,
                                     .size_bytes = size_bytes,
                                     .alignment_bytes = size_bytes > 0 ? 8 : 1,
                                     .can_disable = can_disable};
    must(quern_component_register(world, &def, &component));
    return component;
}

/* Every second entity also has `other`, every third one the tag. The four archetypes have one to three bit columns. */
static void open_world(void)
{
    allocator = open_failing_world();
    other = register_component("other", 24, true);
    number = register_component("number", 8, true);
    tag = register_component("tag", 0, true);
    solid = register_component("solid", 8, false);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        entities[i] = setup_entity_with(world, (quern_component[]){number, other}, 1 + i % 2);
        if (i % 3 == 0) must(quern_entity_add(world, entities[i], tag, NULL));
    }
    capture_reports(&reports);
}

TestSuite(enable_many, .init = open_world, .fini = close_world);

static void fill_list(random_source *random, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = entities[random_below(random, ENTITIES)];
}

/* Performs the single calls on the model. */
static void set_model(bool *is_disabled, uint32_t count, bool enabled)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ENTITIES; k++)
            if (quern_entity_equal(list[i], entities[k])) is_disabled[k] = !enabled;
}

static void check_model(const bool *is_disabled, quern_component component)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        cr_assert_eq(quern_entity_is_component_enabled(world, entities[i], component), !is_disabled[i],
                     "entity %u", i);
    assert_valid(world);
}

Test(enable_many, agrees_with_single_calls)
{
    static bool is_disabled[ENTITIES];
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 128, 129, 700, 0};
    random_source random = {17};
    for (uint32_t round = 0; round < 36; round++) {
        const uint32_t count = counts[round % 9];
        const bool enabled = random_chance(&random, 50);
        fill_list(&random, count);
        must(quern_entity_set_component_enabled_many(world, list, count, number, enabled));
        set_model(is_disabled, count, enabled);
        check_model(is_disabled, number);
    }
}

Test(enable_many, long_list_may_contain_entities_repeatedly)
{
    bool all[ENTITIES], none[ENTITIES] = {false};
    memset(all, true, sizeof all);
    for (uint32_t i = 0; i < LONG_LIST; i++)
        list[i] = entities[i % ENTITIES];
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, number, false));
    check_model(all, number);
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, number, true));
    check_model(none, number);
    must(quern_entity_set_component_enabled_many(world, NULL, 0, number, false));
    check_model(none, number);
}

Test(enable_many, switches_tags_and_keeps_other_components)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTITIES; i += 3)
        list[count++] = entities[i];
    must(quern_entity_set_component_enabled_many(world, list, count, tag, false));
    for (uint32_t i = 0; i < ENTITIES; i++) {
        cr_assert_not(quern_entity_is_component_enabled(world, entities[i], tag));
        cr_assert(quern_entity_is_component_enabled(world, entities[i], number));
    }
    assert_valid(world);
}

/* Returns whether a query with a change filter on the number has any view. */
static bool has_changed(quern_query *changed)
{
    bool any = false;
    quern_query_iterator it = quern_query_iterate(changed);
    while (quern_query_next(&it))
        any = true;
    must(it.result);
    return any;
}

Test(enable_many, only_successful_call_passes_change_filters)
{
    quern_query *changed = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_read(number)))}, 1);
    has_changed(changed);
    cr_assert_not(has_changed(changed));
    memcpy(list, entities, sizeof entities);
    list[ENTITIES - 1] = quern_entity_null();
    must_refuse(NULL_ENTITY, world,
                quern_entity_set_component_enabled_many(world, list, ENTITIES, number, false));
    cr_assert_not(has_changed(changed));
    must(quern_entity_set_component_enabled_many(world, list, ENTITIES - 1, number, false));
    cr_assert(has_changed(changed));
    quern_query_destroy(changed);
}

/* ------------------------------------------------------------------------------------------- refusals */

/* Checks that a list with a wrong entity at index `place` changes nothing, with some entities disabled before. */
static void refuse_at(uint32_t place, quern_entity wrong, quern_result expected)
{
    random_source random = {place};
    fill_list(&random, LONG_LIST);
    list[place] = wrong;
    const uint32_t count = place + 1 + random_below(&random, LONG_LIST - place);
    assert_refused(world, expected,
                   quern_entity_set_component_enabled_many(world, list, count, number, false));
    assert_refused(world, expected,
                   quern_entity_set_component_enabled_many(world, list, count, number, true));
    assert_valid(world);
}

Test(enable_many, wrong_entity_changes_nothing)
{
    static const uint32_t places[] = {0, 1, 63, 64, 100, 127, 128, 5000, LONG_LIST - 1};
    const quern_entity stale = setup_entity_with(world, &number, 1);
    const quern_entity lacking = setup_entity_with(world, &solid, 1);
    must(quern_entity_destroy(world, stale));
    must(quern_entity_set_component_enabled_many(world, entities, ENTITIES / 2, number, false));
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++) {
        refuse_at(places[i], stale, QUERN_ERROR_STALE_ENTITY);
        refuse_at(places[i], lacking, QUERN_ERROR_COMPONENT_ABSENT);
        refuse_at(places[i], quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
        refuse_at(places[i], entity_provisional(3), QUERN_ERROR_PROVISIONAL_ENTITY);
        refuse_at(places[i], entity_of_other_world(entities[0]), QUERN_ERROR_FOREIGN_ENTITY);
    }
}

Test(enable_many, message_names_the_wrong_element)
{
    memcpy(list, entities, sizeof entities);
    list[77] = setup_entity_with(world, &solid, 1);
    cr_assert_eq(quern_entity_set_component_enabled_many(world, list, 100, number, false),
                 QUERN_ERROR_COMPONENT_ABSENT);
    cr_assert_not_null(strstr(quern_error_message(), "quern_entity_set_component_enabled_many: element 77: "
                                                     "entity 3000:1 does not have 'number'"),
                       "%s", quern_error_message());
    list[70] = quern_entity_null();
    cr_assert_eq(quern_entity_set_component_enabled_many(world, list, 100, number, false),
                 QUERN_ERROR_NULL_ENTITY);
    cr_assert_not_null(strstr(quern_error_message(), "element 70: "), "%s", quern_error_message());
}

static void enable_from_fill(quern_context *context, const quern_view *view)
{
    must_refuse(WORLD_LOCKED, NULL,
                quern_entity_set_component_enabled_many(world, entities, 2, number, false));
}

Test(enable_many, wrong_arguments_and_locked_world_are_refused)
{
    must_refuse(NULL_ARGUMENT, world,
                quern_entity_set_component_enabled_many(NULL, entities, 2, number, false));
    must_refuse(NULL_ARGUMENT, world,
                quern_entity_set_component_enabled_many(world, NULL, 2, number, false));
    assert_refused(
        world, QUERN_ERROR_UNKNOWN_COMPONENT,
        quern_entity_set_component_enabled_many(world, entities, 2, component_unregistered(number), false));
    must_refuse(INVALID_ARGUMENT, world,
                quern_entity_set_component_enabled_many(world, entities, 2, solid, false));
    must(quern_entity_create_filled(world, &solid, 1, 1, enable_from_fill, NULL, NULL));
}

Test(enable_many, missing_memory_changes_nothing)
{
    for (uint32_t i = 0; i < LONG_LIST; i++)
        list[i] = entities[i % ENTITIES];
    failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1);
    must_refuse(OUT_OF_MEMORY, world,
                quern_entity_set_component_enabled_many(world, list, LONG_LIST, number, false));
    must(quern_entity_set_component_enabled_many(world, list, ENTITIES, number,
                                                 false)); /* a short list needs no memory */
    failing_allocator_heal(allocator);
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, number, true));
    assert_valid(world);
}
