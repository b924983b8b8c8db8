/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <string.h>

/* Getters must return the values of quern_entity_get, by single calls and by calls for many entities. */

enum { ENTITY_COUNT = 3000, THREAD_COUNT = 4, ROUND_COUNT = 50 };

static quern_world *world;
static quern_component number, other, tag;
static quern_entity entities[ENTITY_COUNT]; /* every third entity lacks the number */
static quern_getter *getter;
static captured_reports reports;

static bool has_number(uint32_t i)
{
    return i % 3 != 2;
}

static quern_getter *make_getter(quern_component component)
{
    quern_getter *made = NULL;
    const quern_getter_def def = {.component = component};
    must(quern_getter_create(world, &def, &made));
    return made;
}

/* Creates entities of four archetypes, in several chunks; the number of entity i is i. */
static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 24, 8);
    tag = setup_tag(world, "tag");
    const quern_component set[] = {other, tag, number};
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        const uint64_t value = i;
        entities[i] = setup_entity_with(world, set, i % 4 == 0 ? 2 : 1);
        if (has_number(i)) must(quern_entity_add(world, entities[i], number, &value));
    }
    getter = make_getter(number);
    capture_reports(&reports);
}

static void close_world(void)
{
    quern_getter_destroy(getter);
    quern_world_destroy(world);
}

TestSuite(getter, .init = open_world, .fini = close_world);

/* Checks that the call returns NULL without a message. */
#define ASSERT_NOTHING(call)                         \
    do {                                             \
        quern_error_clear();                         \
        cr_assert_null(call);                        \
        cr_assert_str_eq(quern_error_message(), ""); \
    } while (0)

#define ASSERT_SAYS(call, words)                                                               \
    do {                                                                                       \
        quern_error_clear();                                                                   \
        cr_assert_null((void *)(uintptr_t)(call));                                             \
        cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message()); \
    } while (0)

/* ------------------------------------------------------------------------------------------ one by one */

Test(getter, returns_the_value_of_entity_get)
{
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        const uint64_t *value = quern_getter_get(getter, entities[i]);
        cr_assert_eq((const void *)value, quern_entity_get(world, entities[i], number));
        if (has_number(i))
            cr_assert_eq(*value, i);
        else
            cr_assert_null(value);
        cr_assert_eq(quern_getter_get_write(getter, entities[i]), (const void *)value);
    }
}

Test(getter, missing_value_is_null_without_error)
{
    const quern_entity dead = entities[0];
    must(quern_entity_destroy(world, dead));
    const quern_entity never = {entities[1].bits + ENTITY_COUNT};
    const quern_entity nothing[] = {
        dead, never, {0}, entities[2], entity_of_other_world(entities[1]), entity_provisional(1)};
    for (uint32_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        ASSERT_NOTHING(quern_getter_get(getter, nothing[i]));
        ASSERT_NOTHING(quern_getter_get_write(getter, nothing[i]));
    }
    const void *values[6];
    cr_assert_eq(quern_getter_get_many(getter, nothing, 6, values), 0u);
    for (uint32_t i = 0; i < 6; i++)
        cr_assert_null(values[i]);
    cr_assert_str_eq(quern_error_message(), "");
}

Test(getter, next_handle_of_a_free_slot_has_no_value)
{
    must(quern_entity_destroy(world, entities[0]));
    const quern_entity next = {entities[0].bits + (1ull << 32)};
    ASSERT_NOTHING(quern_getter_get(getter, next));
    cr_assert_eq(setup_entity_with(world, &number, 1).bits, next.bits);
    cr_assert_not_null(quern_getter_get(getter, next));
}

/* ------------------------------------------------------------------------------------------------ many */

static void assert_many(const quern_entity *list, uint32_t count)
{
    static const void *values[ENTITY_COUNT + 1];
    static void *to_write[ENTITY_COUNT + 1];
    uint32_t expected_count = 0;
    values[count] = to_write[count] = &world;
    const uint32_t found_count = quern_getter_get_many(getter, list, count, values);
    cr_assert_eq(quern_getter_get_many_write(getter, list, count, to_write), found_count);
    for (uint32_t i = 0; i < count; i++) {
        const void *expected = quern_getter_get(getter, list[i]);
        cr_assert_eq(values[i], expected, "%u of %u", i, count);
        cr_assert_eq(to_write[i], expected, "%u of %u", i, count);
        expected_count += expected != NULL;
    }
    cr_assert_eq(found_count, expected_count);
    cr_assert_eq(values[count], &world, "written beyond the end");
    cr_assert_eq(to_write[count], &world, "written beyond the end");
}

Test(getter, many_agrees_with_single_gets)
{
    random_source random = {.state = 7};
    static quern_entity list[ENTITY_COUNT];
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 10)
        must(quern_entity_destroy(world, entities[i]));
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) /* some entities are listed twice, some are dead */
        list[i] = entities[random_below(&random, ENTITY_COUNT)];
    list[5] = (quern_entity){0};
    list[6] = entity_of_other_world(list[7]);
    for (uint32_t count = 0; count < 70; count++)
        assert_many(list, count);
    assert_many(list, ENTITY_COUNT);
}

/* ----------------------------------------------------------------------------------------- archetypes */

Test(getter, new_archetypes_are_known)
{
    quern_component more[40];
    for (uint32_t i = 0; i < 40; i++) {
        char name[] = {'c', (char)('0' + i / 10), (char)('0' + i % 10), 0};
        more[i] = setup_component(world, name, 4, 4);
        must(quern_entity_add(world, entities[0], more[i], NULL));
        const uint64_t *value = quern_getter_get(getter, entities[0]);
        cr_assert_not_null(value);
        cr_assert_eq(*value, 0u);
        assert_valid(world);
    }
}

/* The numbers of removed archetypes are reused by others, which have the component in another column or not at all. */
Test(getter, removed_archetypes_are_forgotten)
{
    const quern_component narrow[] = {number, setup_component(world, "byte", 1, 1)};
    const quern_component wide[] = {setup_component(world, "first", 400, 8), number};
    const quern_component none[] = {setup_component(world, "second", 16, 8)};
    for (uint32_t round = 0; round < 12; round++) {
        const quern_component *set = round % 3 == 0 ? narrow : round % 3 == 1 ? wide : none;
        const uint64_t value = 1000 + round;
        const quern_entity entity = setup_entity_with(world, set, round % 3 == 2 ? 1 : 2);
        if (round % 3 != 2) {
            must(quern_entity_set(world, entity, number, &value));
            const uint64_t *found = quern_getter_get(getter, entity);
            cr_assert_not_null(found);
            cr_assert_eq(*found, value);
        } else {
            ASSERT_NOTHING(quern_getter_get(getter, entity));
        }
        assert_valid(world);
        must(quern_entity_destroy(world, entity));
        uint32_t removed_count = 0;
        must(quern_world_remove_empty_archetypes(world, &removed_count));
        cr_assert_geq(removed_count, 1u);
        assert_valid(world);
    }
}

Test(getter, getters_are_destroyed_in_any_order)
{
    quern_getter *second = make_getter(other), *third = make_getter(number);
    quern_getter_destroy(second);
    setup_entity_with(world, (quern_component[]){number, setup_tag(world, "new")}, 2);
    assert_valid(world);
    cr_assert_eq(quern_getter_get(third, entities[1]), quern_getter_get(getter, entities[1]));
    second = make_getter(other);
    quern_getter_destroy(third);
    setup_entity_with(world, (quern_component[]){other, setup_tag(world, "newer")}, 2);
    assert_valid(world);
    cr_assert_eq(quern_getter_get(second, entities[2]), quern_entity_get(world, entities[2], other));
    quern_getter_destroy(second);
    quern_getter_destroy(NULL);
}

/* -------------------------------------------------------------------------------------------- filters */

Test(getter, only_get_for_writing_is_a_change)
{
    const quern_term term = quern_term_changed(quern_term_read(number));
    quern_query *query = setup_query(world, &term, 1);
    void *value;
    const void *read;
    cr_assert_gt(iterate_rows(query), 0u);
    quern_getter_get(getter, entities[1]);
    quern_getter_get_many(getter, &entities[1], 1, &read);
    cr_assert_eq(iterate_rows(query), 0u, "nothing was written");
    quern_getter_get_write(getter, entities[1]);
    const uint64_t changed_count = iterate_rows(query);
    cr_assert_gt(changed_count, 0u);
    cr_assert_lt(changed_count, (uint64_t)ENTITY_COUNT / 2, "only the chunk's");
    quern_getter_get_many_write(getter, &entities[1], 1, &value);
    cr_assert_eq(iterate_rows(query), changed_count);
    quern_getter_get_write(getter, entities[2]);
    cr_assert_eq(iterate_rows(query), 0u, "there is no number to write");
    quern_query_destroy(query);
}

/* ----------------------------------------------------------------------------------------- wrong calls */

Test(getter, wrong_definitions_are_refused)
{
    quern_getter *made = getter;
    const quern_getter_def good = {.component = number}, of_tag = {.component = tag}, none = {0};
    const quern_getter_def unknown = {.component = component_unregistered(number)};
    const quern_getter_def foreign = {.component = component_of_other_world(number), .refs = true};
    must_refuse(NULL_ARGUMENT, NULL, quern_getter_create(NULL, &good, &made));
    must_refuse(NULL_ARGUMENT, world, quern_getter_create(world, NULL, &made));
    must_refuse(NULL_ARGUMENT, world, quern_getter_create(world, &good, NULL));
    must_refuse(UNKNOWN_COMPONENT, world, quern_getter_create(world, &none, &made));
    must_refuse(UNKNOWN_COMPONENT, world, quern_getter_create(world, &unknown, &made));
    must_refuse(UNKNOWN_COMPONENT, world, quern_getter_create(world, &foreign, &made));
    must_refuse(INVALID_ARGUMENT, world, quern_getter_create(world, &of_tag, &made));
    cr_assert_not_null(strstr(quern_error_message(), "'tag' is a tag"), "%s", quern_error_message());
    cr_assert_eq(made, getter, "a refused call leaves it as it was");
}

Test(getter, wrong_arguments_are_refused)
{
    const void *value = &world;
    void *to_write = &world;
    ASSERT_SAYS(quern_getter_get(NULL, entities[1]), "quern_getter_get: 'getter'");
    ASSERT_SAYS(quern_getter_get_write(NULL, entities[1]), "quern_getter_get_write: 'getter'");
    ASSERT_SAYS(quern_getter_get_many(NULL, entities, 1, &value), "quern_getter_get_many: 'getter'");
    cr_assert_null(value, "a refused call gives no values");
    ASSERT_SAYS(quern_getter_get_many(getter, entities, 1, NULL), "out_values");
    ASSERT_SAYS(quern_getter_get_many_write(getter, NULL, 1, &to_write), "entities");
    cr_assert_null(to_write);
    quern_error_clear();
    cr_assert_eq(quern_getter_get_many(getter, NULL, 0, NULL), 0u);
    cr_assert_str_eq(quern_error_message(), "");
}

Test(getter, a_world_is_not_destroyed_before_its_getters)
{
    quern_world_destroy(world);
    cr_assert_not_null(
        strstr(reports.last, "a getter of component 'number' still refers to the world, 1 objects"), "%s",
        reports.last);
    cr_assert_not_null(quern_getter_get(getter, entities[1]));
}

/* Runs with the world locked, as in systems. */
static void get_from_kernel(quern_context *context, const quern_view *view)
{
    const quern_getter_def def = {.component = number};
    quern_getter *made = NULL;
    const void *values[2] = {&world, &world};
    ASSERT_SAYS(quern_getter_get(getter, view->entities[0]), "quern_getter_get: ");
    ASSERT_SAYS(quern_getter_get_write(getter, view->entities[0]), "use views, lookups");
    ASSERT_SAYS(quern_getter_get_many(getter, entities, 2, values), "quern_getter_get_many: ");
    cr_assert_null(values[0]);
    cr_assert_null(values[1]);
    cr_assert_eq(quern_getter_create(world, &def, &made), QUERN_ERROR_WORLD_LOCKED);
    quern_getter_destroy(getter);
    cr_assert_not_null(strstr(reports.last, "quern_getter_destroy"), "%s", reports.last);
}

Test(getter, gets_fail_while_the_world_is_locked)
{
    const quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    must(quern_query_parallel_for(query, NULL, get_from_kernel, NULL));
    cr_assert_not_null(quern_getter_get(getter, entities[1]));
    quern_query_destroy(query);
}

/* -------------------------------------------------------------------------------------------- threads */

static void *get_again_and_again(void *argument)
{
    uint64_t *sum = argument;
    const void *values[100];
    for (uint32_t round = 0; round < ROUND_COUNT; round++)
        for (uint32_t first = 0; first < ENTITY_COUNT; first += 100) {
            quern_getter_get_many(getter, entities + first, 100, values);
            for (uint32_t i = 0; i < 100; i++) {
                if (values[i] != NULL) *sum += *(const uint64_t *)values[i];
                const uint64_t *single = quern_getter_get(getter, entities[first + i]);
                if (single != NULL) *sum -= *single - 1;
            }
        }
    return NULL;
}

Test(getter, threads_get_concurrently)
{
    pthread_t threads[THREAD_COUNT];
    uint64_t sums[THREAD_COUNT] = {0};
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, get_again_and_again, &sums[i]), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(sums[i], (uint64_t)ROUND_COUNT * ENTITY_COUNT / 3 * 2);
}
