/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Provisional handles in fields that are not described, so that they are not replaced. Builds with checks
 * find them at the sync point. */

typedef struct leash {
    uint32_t length, unused;
    quern_entity holder;
} leash;

static quern_component plain, linked, number, packed;
static quern_entity entity, kept;
static captured_reports reports;

static quern_component setup_leash(const char *name, uint32_t alignment_bytes, quern_field_type type)
{
    const quern_field fields[] = {{"length", QUERN_FIELD_U32, offsetof(leash, length), .count = 1},
                                  {"holder", type, offsetof(leash, holder), .count = 1}};
    quern_component_def def = {
        .name = name, .size_bytes = sizeof(leash), .alignment_bytes = alignment_bytes};
    memcpy(def.fields, fields, (type != QUERN_FIELD_BOOL ? 2 : 0) * sizeof fields[0]);
    quern_component component;
    cr_assert_eq(quern_component_register(world, &def, &component), QUERN_OK, "%s", quern_error_message());
    return component;
}

static void open_world(void)
{
    world = setup_world();
    plain = setup_leash("plain", 8, QUERN_FIELD_BOOL); /* a type without described fields */
    packed = setup_leash("packed", 2, QUERN_FIELD_BOOL);
    linked = setup_leash("linked", 8, QUERN_FIELD_ENTITY);
    number = setup_leash("number", 8, QUERN_FIELD_U64);
    entity = setup_entity(world);
    kept = quern_entity_null();
    capture_reports(&reports);
}

TestSuite(provisional, .init = open_world, .fini = close_world);

/* Asserts that the frame reported this once in builds with checks, and nothing in others. */
static void assert_found(const char *words)
{
    cr_assert_eq(reports.log_count, quern_has_checks() ? 1u : 0u, "%s", reports.last);
    if (quern_has_checks())
        cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    assert_valid(world);
}

static void set_plain(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    record_entity(commands);
    const leash value = {.holder = record_entity(commands)};
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
}

Test(provisional, handle_set_without_described_field_is_found)
{
    run_once(world, set_plain);
    assert_found(
        "system 'once' gave 'plain' the provisional handle of a deferred create (number 1) at byte 8, "
        "where no field is described");
    if (quern_has_checks()) cr_assert_not_null(strstr(reports.last, "(2 such handles"), "%s", reports.last);
}

static void create_with_plain(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const leash values[] = {{.length = 1}, {.holder = record_entity(commands)}};
    const void *columns[] = {values};
    cr_assert_eq(quern_commands_create_many(commands, &plain, columns, 1, 2, NULL), QUERN_OK);
}

Test(provisional, handle_in_value_of_create_is_found)
{
    run_once(world, create_with_plain);
    assert_found("system 'once' gave 'plain' the provisional handle of a deferred create (number 0)");
}

static void keep(quern_context *context)
{
    kept = record_entity(quern_context_commands(context));
}

static void give_kept(quern_context *context)
{
    const leash value = {.holder = kept};
    cr_assert_eq(quern_commands_set(quern_context_commands(context), entity, plain, &value), QUERN_OK);
}

Test(provisional, handle_of_another_system_is_found)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def first = system_def("first", NULL), second = system_def("second", NULL);
    first.begin = keep;
    second.begin = give_kept;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
    must_run(schedule, NULL);
    assert_found("system 'second' gave 'plain'");
    quern_schedule_destroy(schedule);
}

/* Values that are not reported: described, described as a number, in memory that cannot hold a handle, or
 * no handle of this sync point. */
static void give_others(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    leash value = {.holder = record_entity(commands)};
    cr_assert_eq(quern_commands_set(commands, entity, linked, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, number, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, packed, &value), QUERN_OK);
    value.holder.bits++;
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
}

Test(provisional, values_that_may_be_numbers_are_not_reported)
{
    run_once(world, give_others);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    const leash *value = quern_entity_get(world, entity, linked);
    cr_assert(quern_entity_is_alive(world, value->holder));
}
