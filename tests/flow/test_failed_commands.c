/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Calls of <quern/commands.h> that fail in callbacks, whose results the callbacks ignore: the first one of a system and
 * frame is logged, and all are counted. */

static quern_schedule *schedule;
static quern_component number, unknown;
static quern_entity entity, dead;
static captured_reports reports;

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    unknown = component_unregistered(number);
    entity = setup_entity_with(world, &number, 1);
    dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    schedule = setup_schedule(world);
    capture_reports(&reports);
}

TestSuite(failed_commands, .init = open_world, .fini = close_world);

typedef void misuse(quern_commands *commands, const quern_view *view);

static void create_unknown(quern_commands *commands, const quern_view *view)
{
    cr_assert(quern_entity_is_null(record_entity_with(commands, &unknown, NULL, 1)));
}

static void create_many_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_create_many(commands, &unknown, NULL, 1, 4, NULL);
}

static void create_without_list(quern_commands *commands, const quern_view *view)
{
    quern_commands_create_many(commands, NULL, NULL, 1, 4, NULL);
}

static void add_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_add(commands, entity, unknown, NULL);
}

static void remove_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_remove(commands, entity, unknown);
}

static void set_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_set(commands, entity, unknown, &(uint64_t){1});
}

static void set_without_value(quern_commands *commands, const quern_view *view)
{
    quern_commands_set(commands, entity, number, NULL);
}

static void disable_what_cannot(quern_commands *commands, const quern_view *view)
{
    quern_commands_set_component_enabled(commands, entity, number, false);
}

static void disable_without_tag(quern_commands *commands, const quern_view *view)
{
    quern_commands_set_enabled(commands, entity, false);
}

static void destroy_null(quern_commands *commands, const quern_view *view)
{
    quern_commands_destroy(commands, quern_entity_null());
}

static void relate_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_relate(commands, entity, (quern_relation){unknown.bits}, entity);
}

static void unrelate_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_unrelate(commands, entity, (quern_relation){number.bits});
}

static void name_badly(quern_commands *commands, const quern_view *view)
{
    quern_commands_set_name(commands, entity, "a/b");
}

static void spawn_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_spawn(commands, (quern_prefab){77}, NULL, NULL);
}

static void accumulate_unknown(quern_commands *commands, const quern_view *view)
{
    quern_commands_accumulate(commands, entity, unknown, &(uint64_t){1}, QUERN_SUM);
}

static void accumulate_without_value(quern_commands *commands, const quern_view *view)
{
    quern_commands_accumulate(commands, entity, number, NULL, QUERN_SUM);
}

static void add_unknown_to_view(quern_commands *commands, const quern_view *view)
{
    quern_commands_add_view(commands, view, NULL, unknown, NULL);
}

static void create_unknown_type(quern_commands *commands, const quern_view *view)
{
    quern_entity created;
    const quern_value value = {.type_name = "Nothing", .size_bytes = 8, .value = &(uint64_t){1}};
    quern__commands_create_typed(commands, &created, &value, 1);
}

static void add_unknown_type(quern_commands *commands, const quern_view *view)
{
    quern__commands_add_named(commands, entity, "Nothing");
}

static void remove_without_view(quern_commands *commands, const quern_view *view)
{
    quern_commands_remove_view(commands, NULL, NULL, number);
}

static misuse *const misuses[] = {
    create_unknown,      create_many_unknown, create_without_list, add_unknown,
    remove_unknown,      set_unknown,         set_without_value,   disable_what_cannot,
    disable_without_tag, destroy_null,        relate_unknown,      unrelate_unknown,
    name_badly,          spawn_unknown,       accumulate_unknown,  accumulate_without_value,
    add_unknown_to_view, remove_without_view, create_unknown_type, add_unknown_type};

static misuse *tried;

static void try_twice(quern_context *context, const quern_view *view)
{
    tried(quern_context_commands(context), view);
    cr_assert_not_null(strstr(quern_error_message(), "system"), "%s", quern_error_message());
    tried(quern_context_commands(context), view);
}

static void add_misuser(const char *name)
{
    make_system(schedule, name, try_twice, .terms = {quern_term_read(number)});
}

Test(failed_commands, are_logged_once_and_counted)
{
    add_misuser("one");
    add_misuser("other");
    for (uint32_t i = 0; i < COUNT_OF(misuses); i++) {
        tried = misuses[i];
        reports.log_count = 0;
        must_run(schedule, NULL);
        cr_assert_eq(reports.log_count, 2, "misuse %u: %u messages, the last: %s", i, reports.log_count,
                     reports.last);
        cr_assert(strncmp(reports.last, "quern_commands_", 15) == 0 ||
                      strncmp(reports.last, "QUERN_", 6) == 0,
                  "%s", reports.last);
        cr_assert_not_null(strstr(reports.last, "system 'other'"), "%s", reports.last);
        cr_assert_eq(stats_of_frame(schedule).failed_command_count, 4, "misuse %u", i);
        cr_assert_eq(stats_of_frame(schedule).command_count, 0);
    }
    cr_assert_eq(reports.assert_count, 0);
}

static quern_relation asked;

static void relate_in_hierarchy(quern_commands *commands, const quern_view *view)
{
    asked = quern_world_parent(world);
    cr_assert(!quern_relation_is_null(asked) || strstr(quern_error_message(), "before the frame") != NULL,
              "%s", quern_error_message());
    quern_commands_relate(commands, record_entity(commands), asked, entity);
}

Test(failed_commands, without_a_hierarchy_name_the_call_that_makes_it)
{
    add_misuser("one");
    tried = relate_in_hierarchy;
    must_run(schedule, NULL);
    cr_assert(quern_relation_is_null(asked));
    cr_assert_eq(reports.log_count, 1);
    cr_assert_not_null(strstr(reports.last, "quern_world_parent"), "%s", reports.last);
    cr_assert(!quern_relation_is_null(quern_world_parent(world)));
    quern_error_clear();
    cr_assert_eq(stats_of_frame(schedule).failed_command_count, 2);
}

static void destroy_dead(quern_commands *commands, const quern_view *view)
{
    cr_assert_eq(quern_commands_destroy(commands, dead), QUERN_ERROR_STALE_ENTITY);
}

Test(failed_commands, on_destroyed_entities_are_only_counted)
{
    add_misuser("one");
    tried = destroy_dead;
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0);
    cr_assert_eq(stats_of_frame(schedule).failed_command_count, 2);
    tried = add_unknown;
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 1);
}

static void destroy_twice(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < 2; i++)
        must(quern_commands_destroy(quern_context_commands(context), view->entities[0]));
}

Test(failed_commands, do_not_include_dropped_ones)
{
    make_system(schedule, "one", destroy_twice, .terms = {quern_term_read(number)});
    quern_commands *commands = quern_world_commands(world);
    cr_assert_neq(quern_commands_add(commands, entity, unknown, NULL), QUERN_OK);
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0); /* no system recorded the command that failed */
    cr_assert_eq(stats_of_frame(schedule).failed_command_count, 0);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 1);
}

static void add_unknown_in_query(quern_context *context, const quern_view *view)
{
    add_unknown(quern_context_commands(context), view);
}

/* Many threads fail in one system. */
Test(failed_commands, of_many_threads_are_logged_once)
{
    enum { MANY = 20000 };
    quern_jobs *jobs = setup_jobs(4);
    must(quern_entity_create_many(world, &number, NULL, 1, MANY, NULL));
    add_misuser("one");
    tried = add_unknown;
    for (uint32_t frame = 0; frame < 3; frame++) {
        reports.log_count = 0;
        must_run(schedule, jobs);
        quern_system_stats stats;
        must(
            quern_schedule_get_system_stats(schedule, quern_schedule_find_system(schedule, "one"), &stats));
        cr_assert_eq(reports.log_count, 1);
        cr_assert_eq(stats_of_frame(schedule).failed_command_count, 2 * stats.view_count);
    }
    const quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    for (uint32_t call = 0; call < 2; call++) {
        reports.log_count = 0;
        must(quern_query_parallel_for(query, jobs, add_unknown_in_query, NULL));
        cr_assert_eq(reports.log_count, 1);
    }
    quern_query_destroy(query);
    quern_jobs_destroy(jobs);
}
