/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"

#include <string.h>

/* The macros of shorthand.h do what the calls that they stand for do, in any number of worlds. */

typedef struct Place {
    float x, y;
} Place;
typedef struct Speed {
    float x, y;
} Speed;
typedef struct Score {
    uint64_t points;
} Score;

static quern_schedule *schedule;
static quern_entity made; /* by the systems below */
static uint32_t row_count;
static quern_result record_result;

static void open_world(void)
{
    world = setup_world();
    must(quern_schedule_create(world, NULL, &schedule));
    row_count = 0;
}

TestSuite(shorthand, .init = open_world, .fini = close_world);

QUERN_SYSTEM(move, (Place, place), (const Speed, speed))
{
    const float dt = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        place[i].x += speed[i].x * dt;
        place[i].y += speed[i].y * dt;
    }
}

QUERN_SYSTEM(count_rows, (const Place, place))
{
    row_count += count;
}

static quern_entity create_mover(quern_world *in, float x)
{
    quern_entity entity;
    must(QUERN_CREATE(in, &entity, QUERN_VALUE(Place, x, .y = 2), QUERN_VALUE(Speed, 10, 20)));
    return entity;
}

static void ignore_log(void *user_data, quern_log_level level, const char *message) {}

static void ignore_assert(void *user_data, const char *message) {}

static void ignore_reports(void)
{
    quern_log_set_handler(ignore_log, NULL);
    quern_assert_set_handler(ignore_assert, NULL);
}

/* --------------------------------------------------------------------------------------- systems */

Test(shorthand, a_system_writes_its_columns_and_reads_const_ones)
{
    const quern_entity entity = create_mover(world, 1);
    must(QUERN_ADD_SYSTEM(schedule, move));
    must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(QUERN_GET(world, entity, Place)->x, 6);
    cr_assert_eq(QUERN_GET(world, entity, const Place)->y, 12);
    cr_assert_eq(QUERN_GET(world, entity, Speed)->x, 10);
    cr_assert_eq(quern_schedule_find_system(schedule, "move").bits, 1u);
}

static void take_place(quern_context *context, const quern_view *view)
{
    row_count += quern_view_write(view, 0) != NULL;
}

static quern_result run_taking(const quern_value *columns)
{
    must(quern__schedule_add_typed(schedule, &(quern_system_def){.name = "take"}, "take", take_place,
                                   columns, 1));
    return quern_schedule_run(schedule, NULL, 0);
}

Test(shorthand, a_const_column_makes_a_read_term)
{
    create_mover(world, 1);
    ignore_reports();
    cr_assert_eq(run_taking(&move_columns[1]), QUERN_ERROR_UNDECLARED_ACCESS);
}

Test(shorthand, a_column_that_is_not_const_makes_a_write_term)
{
    create_mover(world, 1);
    ignore_reports();
    cr_assert_eq(run_taking(&move_columns[0]), QUERN_OK);
    cr_assert_eq(row_count, 1u);
}

Test(shorthand, a_system_takes_further_members_and_terms)
{
    must(QUERN_REGISTER_TAGS(world, Frozen));
    create_mover(world, 1);
    const quern_entity frozen = create_mover(world, 2);
    must(QUERN_ADD(world, frozen, Frozen));
    const quern_component tag = quern_component_find(world, "Frozen");
    must(QUERN_ADD_SYSTEM(schedule, count_rows, .flags = QUERN_SYSTEM_SERIAL,
                          .terms = {quern_term_without(tag)}));
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(row_count, 1u);
}

QUERN_SYSTEM(score_disabled, (Score, score))
{
    QUERN_ROWS(i) score[i].points++;
}

/* A column whose term is more than reading or writing: nothing uses the table of columns. */
Test(shorthand, a_system_may_have_terms_of_its_own)
{
    quern_component score;
    quern_entity entities[2];
    const quern_component_def def = {QUERN_TYPE(Score), .can_disable = true};
    must(quern_component_register(world, &def, &score));
    for (uint32_t i = 0; i < 2; i++)
        must(QUERN_CREATE(world, &entities[i], QUERN_VALUE(Score, 10)));
    must(quern_entity_set_component_enabled(world, entities[1], score, false));
    const quern_system_def system_def = {
        .name = "score", .run = score_disabled, .terms = {quern_term_if_disabled(quern_term_write(score))}};
    must(quern_schedule_add_system(schedule, &system_def, NULL));
    must(quern_schedule_run(schedule, NULL, 1));
    cr_assert_eq(QUERN_GET(world, entities[0], Score)->points, 10u);
    cr_assert_eq(QUERN_GET(world, entities[1], Score)->points, 11u);
}

Test(shorthand, one_definition_serves_several_worlds)
{
    quern_world *other = setup_world();
    quern_schedule *others;
    must(QUERN_REGISTER_TAGS(other, First, Second)); /* so that handles differ */
    must(quern_schedule_create(other, NULL, &others));
    const quern_entity here = create_mover(world, 1), there = create_mover(other, 3);
    must(QUERN_ADD_SYSTEM(schedule, move));
    must(QUERN_ADD_SYSTEM(others, move));
    must(quern_schedule_run(schedule, NULL, 1));
    must(quern_schedule_run(others, NULL, 1));
    cr_assert_eq(QUERN_GET(world, here, Place)->x, 11);
    cr_assert_eq(QUERN_GET(other, there, Place)->x, 13);
    quern_schedule_destroy(others);
    quern_world_destroy(other);
}

Test(shorthand, a_system_whose_type_has_another_size_is_refused)
{
    quern_component place;
    must(quern_component_register(world, &(quern_component_def){.name = "Place", .size_bytes = 4}, &place));
    must_refuse(LAYOUT_MISMATCH, world, QUERN_ADD_SYSTEM(schedule, move));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_ADD_SYSTEM: component 'Place' has 4 bytes"));
    must_refuse(NULL_ARGUMENT, world, QUERN_ADD_SYSTEM(NULL, move));
}

Test(shorthand, a_system_with_more_terms_than_fit_is_refused)
{
    quern_system_def def = {.name = "much"};
    for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag %u", i);
        def.terms[i] = quern_term_with(setup_tag(world, name));
    }
    must_refuse(LIMIT, world, quern__schedule_add_typed(schedule, &def, "much", move, move_columns, 2));
    def.terms[QUERN_MAX_TERMS - 2] = (quern_term){.match = 0};
    def.terms[QUERN_MAX_TERMS - 1] = (quern_term){.match = 0};
    must(quern__schedule_add_typed(schedule, &def, "much", move, move_columns, 2));
}

/* ----------------------------------------------------------------------------------------- world */

Test(shorthand, values_are_set_found_and_removed_by_type)
{
    const quern_entity entity = create_mover(world, 1);
    const Score start = {7};
    quern_entity scored;
    must(QUERN_SET(world, entity, Score, .points = 5));
    cr_assert_eq(QUERN_GET(world, entity, Score)->points, 5u);
    must(QUERN_SET(world, entity, Score, 6));
    cr_assert_eq(QUERN_GET(world, entity, Score)->points, 6u);
    cr_assert(QUERN_HAS(world, entity, Score));
    must(QUERN_REMOVE(world, entity, Score));
    cr_assert_not(QUERN_HAS(world, entity, Score));
    cr_assert_null(QUERN_GET(world, entity, Score));
    must(QUERN_CREATE(world, &scored, QUERN_VALUE_AT(Score, &start)));
    cr_assert_eq(QUERN_GET(world, scored, Score)->points, 7u);
}

Test(shorthand, tags_are_registered_added_and_removed_by_name)
{
    quern_entity entity;
    must(QUERN_REGISTER_TAGS(world, Enemy, Burning, Last));
    must(QUERN_CREATE(world, &entity, QUERN_TAG(Enemy), QUERN_VALUE(Score, 1)));
    cr_assert(QUERN_HAS(world, entity, Enemy));
    cr_assert_not(QUERN_HAS(world, entity, Burning));
    must(QUERN_ADD(world, entity, Last));
    must(QUERN_REMOVE(world, entity, Enemy));
    cr_assert(QUERN_HAS(world, entity, Last));
    cr_assert_not(QUERN_HAS(world, entity, Enemy));
}

Test(shorthand, a_type_is_registered_once_with_its_fields)
{
    quern_type_info info;
    must(QUERN_REGISTER(world, Place, x, y));
    const quern_component place = QUERN_ID(world, Place);
    must(quern_component_get_info(world, place, &info));
    cr_assert_eq(info.field_count, 2u);
    cr_assert_eq(QUERN_ID(world, const Place).bits, place.bits);
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_COMPONENT), 1u);
    cr_assert_neq(QUERN_ID(world, Speed).bits, 0u);
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_COMPONENT), 2u);
}

Test(shorthand, wrong_calls_are_refused_and_name_the_macro)
{
    const quern_entity entity = setup_entity(world);
    quern_component place;
    must_refuse(UNKNOWN_COMPONENT, world, QUERN_ADD(world, entity, Unknown));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_ADD: the world has no component 'Unknown'"));
    must_refuse(UNKNOWN_COMPONENT, world, QUERN_REMOVE(world, entity, Unknown));
    must_refuse(UNKNOWN_COMPONENT, world, QUERN_CREATE(world, NULL, QUERN_TAG(Unknown)));
    assert_refused_value(world, QUERN_HAS(world, entity, Unknown));
    assert_refused_value(world, QUERN_GET(world, entity, Score) != NULL);
    must(quern_component_register(world, &(quern_component_def){.name = "Place", .size_bytes = 4}, &place));
    must_refuse(LAYOUT_MISMATCH, world, QUERN_SET(world, entity, Place, 1, 2));
    must_refuse(LAYOUT_MISMATCH, world, QUERN_CREATE(world, NULL, QUERN_VALUE(Place, 1, 2)));
    assert_refused_value(world, QUERN_GET(world, entity, Place) != NULL);
    assert_refused_value(world, !quern_component_is_null(QUERN_ID(world, Place)));
    quern_world *const nowhere = NULL;
    must_refuse(NULL_ARGUMENT, world, QUERN_SET(nowhere, entity, Place, 1, 2));
    assert_refused_value(world, QUERN_HAS(nowhere, entity, Place));
    assert_refused_value(world, QUERN_GET(nowhere, entity, Place) != NULL);
}

Test(shorthand, too_many_values_are_refused)
{
    quern_value values[QUERN_MAX_ENTITY_COMPONENTS + 1];
    for (uint32_t i = 0; i <= QUERN_MAX_ENTITY_COMPONENTS; i++)
        values[i] = QUERN_VALUE(Score, 1);
    must_refuse(TOO_MANY_COMPONENTS, world,
                quern__world_create_typed(world, NULL, values, QUERN_MAX_ENTITY_COMPONENTS + 1));
}

Test(shorthand, a_tag_name_that_is_too_long_is_refused)
{
    char names[2 * QUERN_MAX_NAME_BYTES];
    memset(names, 'a', sizeof names);
    names[sizeof names - 1] = '\0';
    must_refuse(INVALID_ARGUMENT, world, quern__world_register_tags(world, names));
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_COMPONENT), 0u);
}

/* -------------------------------------------------------------------------------------- commands */

static void record(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(QUERN_CREATE(commands, &made, QUERN_VALUE(Place, 3, 4), QUERN_TAG(Enemy)));
    must(QUERN_SET(commands, made, Score, 9));
    must(QUERN_ADD(commands, made, Burning));
    must(QUERN_REMOVE(commands, made, Enemy));
    must(QUERN_CREATE(commands, NULL, QUERN_VALUE(Score, 2)));
    record_result = QUERN_SET(commands, made, Speed, 1, 2);
}

Test(shorthand, commands_are_recorded_by_type)
{
    quern_query *query;
    must(QUERN_REGISTER_TAGS(world, Enemy, Burning));
    must(quern_query_create(world, &(quern_query_def){.terms = {quern_term_read(QUERN_ID(world, Score))}},
                            &query));
    QUERN_ID(world, Place);
    must(quern_schedule_add_system(schedule, &(quern_system_def){.name = "record", .begin = record}, NULL));
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(record_result, QUERN_ERROR_UNKNOWN_COMPONENT, "commands register nothing");
    cr_assert_eq(quern_query_count(query), 2u);
    quern_query_iterator it = quern_query_iterate(query);
    uint64_t sum = 0;
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity entity = it.view.entities[i];
            sum += QUERN_GET(world, entity, Score)->points;
            if (!quern_entity_has(world, entity, QUERN_ID(world, Place))) continue;
            cr_assert_eq(QUERN_GET(world, entity, Place)->y, 4);
            cr_assert(QUERN_HAS(world, entity, Burning));
            cr_assert_not(QUERN_HAS(world, entity, Enemy));
        }
    cr_assert_eq(sum, 11u);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------- resources */

static uint64_t seen_points;

static void read_score(quern_context *context)
{
    const Score *score = QUERN_RESOURCE(context, const Score);
    seen_points = score->points;
}

static void write_score(quern_context *context)
{
    QUERN_RESOURCE(context, Score)->points += 1;
}

static void run_with_score(quern_system_callback *callback, quern_access access)
{
    const quern_resource score = quern_resource_find(world, "Score");
    quern_system_def def = {.name = "only", .begin = callback};
    if (access != QUERN_ACCESS_NONE) def.resources[0] = (quern_resource_access){score, access};
    must(quern_schedule_add_system(schedule, &def, NULL));
}

Test(shorthand, resources_are_found_by_type)
{
    quern_resource score;
    must(QUERN_RESOURCE_REGISTER(world, &score, Score));
    run_with_score(write_score, QUERN_ACCESS_WRITE);
    must(quern_schedule_run(schedule, NULL, 0));
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(((Score *)quern_resource_get(world, score))->points, 2u);
}

Test(shorthand, const_resources_need_only_read_access)
{
    quern_resource score;
    must(QUERN_RESOURCE_REGISTER(world, &score, Score));
    ((Score *)quern_resource_get(world, score))->points = 8;
    run_with_score(read_score, QUERN_ACCESS_READ);
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(seen_points, 8u);
}

/* Refused accesses get zeroed memory as large as the type, so that the callback goes on. */
static void assert_score_is_refused(quern_system_callback *callback, quern_access access)
{
    ignore_reports();
    seen_points = 5;
    run_with_score(callback, access);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
}

Test(shorthand, an_undeclared_resource_is_refused)
{
    quern_resource score;
    must(QUERN_RESOURCE_REGISTER(world, &score, Score));
    assert_score_is_refused(read_score, QUERN_ACCESS_NONE);
    cr_assert_eq(seen_points, 0u);
}

Test(shorthand, writing_a_resource_that_is_declared_for_reading_is_refused)
{
    quern_resource score;
    must(QUERN_RESOURCE_REGISTER(world, &score, Score));
    assert_score_is_refused(write_score, QUERN_ACCESS_READ);
    cr_assert_eq(((Score *)quern_resource_get(world, score))->points, 0u);
}

Test(shorthand, an_unknown_resource_is_refused)
{
    assert_score_is_refused(read_score, QUERN_ACCESS_NONE);
    cr_assert_eq(seen_points, 0u);
}

Test(shorthand, a_resource_of_another_size_is_refused)
{
    quern_resource score;
    must(quern_resource_register(world, &(quern_resource_def){.name = "Score", .size_bytes = 1}, &score));
    assert_score_is_refused(write_score, QUERN_ACCESS_WRITE);
    cr_assert_eq(*(char *)quern_resource_get(world, score), 0);
}

/* ------------------------------------------------------------------------------------------ must */

static char logged[512];

static void keep_log(void *user_data, quern_log_level level, const char *message)
{
    if (level == QUERN_LOG_ERROR) snprintf(logged, sizeof logged, "%s", message);
    if (strstr(message, "quern_entity_create: 'world' is NULL") != NULL &&
        strstr(message, "test_shorthand.c") != NULL)
        _Exit(7);
}

/* The text of the call is longer than a message. */
Test(shorthand, must_logs_the_reason_of_a_long_call, .exit_code = 7)
{
    quern_log_set_handler(keep_log, NULL);
    quern_entity entity;
    QUERN_MUST(
        "a text of 512 bytes, as an initialiser of a definition may have, which would leave no room for "
        "the "
        "reason; .first = 1, .second = 2, .third = 3, .fourth = 4, .fifth = 5, .sixth = 6, .seventh = 7, "
        ".eighth = 8, .ninth = 9, .tenth = 10, .eleventh = 11, .twelfth = 12, .thirteenth = 13, "
        ".fourteenth = 14, .fifteenth = 15, .sixteenth = 16, .seventeenth = 17, .eighteenth = 18, "
        ".nineteenth = 19, .twentieth = 20, .first = 21, .second = 22, .third = 23, .fourth = 24, .fifth = "
        "25"[0] == 'a'
            ? quern_entity_create(NULL, &entity)
            : QUERN_OK);
    cr_assert_fail("QUERN_MUST went on after a failure: '%s'", logged);
}

Test(shorthand, must_logs_the_failure_before_it_aborts, .exit_code = 7)
{
    QUERN_MUST(QUERN_OK);
    quern_log_set_handler(keep_log, NULL);
    quern_entity entity;
    QUERN_MUST(quern_entity_create(NULL, &entity));
    cr_assert_fail("QUERN_MUST went on after a failure: '%s'", logged);
}
