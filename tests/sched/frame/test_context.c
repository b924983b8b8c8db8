/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>

/* Contexts and recorders that are used outside the callback they belong to. On another thread only builds
 * with checks notice. */

static quern_world *world;
static quern_component position;
static quern_resource score;
static quern_entity entity;
static captured_reports reports;

static quern_context *kept_context;
static quern_commands *kept_commands;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    score = setup_counter(world, "score");
    entity = setup_entity_with(world, &position, 1);
    kept_context = NULL;
    kept_commands = NULL;
    capture_reports(&reports);
}

static void close_world(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    quern_world_destroy(world);
}

TestSuite(context, .init = open_world, .fini = close_world);

/* The call was reported, with these words. */
static void assert_reported(const char *words)
{
    const uint32_t count = quern_has_checks() ? reports.assert_count : reports.log_count;
    cr_assert_eq(count, 1u, "%u reports for: %s", count, words);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    capture_reports(&reports);
}

#define ASSERT_FOREIGN(call, nothing)                \
    do {                                             \
        cr_assert((call) == (nothing), "%s", #call); \
        assert_reported("outside the callback");     \
    } while (0)

/* Every call on a context that is another callback's, or nobody's. */
static void assert_context_gives_nothing(quern_context *context)
{
    cr_assert_not_null(quern_context_commands(context));
    assert_reported("quern_context_commands");
    if (quern_has_checks()) {
        ASSERT_FOREIGN(quern_context_lookup(context, entity, position), NULL);
        ASSERT_FOREIGN(quern_context_has(context, entity, position), false);
        const void *value = &entity;
        ASSERT_FOREIGN(quern_context_lookup_many(context, &entity, 1, position, &value), 0);
        cr_assert_null(value);
    }
    ASSERT_FOREIGN(quern_context_is_alive(context, entity), false);
    ASSERT_FOREIGN(quern_context_resource(context, score), NULL);
    ASSERT_FOREIGN(quern_context_resource_write(context, score), NULL);
    ASSERT_FOREIGN(quern_context_partial(context), NULL);
    ASSERT_FOREIGN(quern_context_partial_count(context), 0);
    ASSERT_FOREIGN(quern_context_partial_at(context, 0), NULL);
    ASSERT_FOREIGN(quern_context_user_data(context), NULL);
    ASSERT_FOREIGN(quern_context_delta_seconds(context), 0);
    ASSERT_FOREIGN(quern_context_frame_index(context), 0);
    ASSERT_FOREIGN(quern_context_worker_index(context), 0);
    ASSERT_FOREIGN(quern_context_jobs(context), NULL);
    ASSERT_FOREIGN(quern_context_world(context), NULL);
}

/* Every call on a recorder that is another callback's, or nobody's. */
static void assert_commands_are_refused(quern_commands *commands)
{
    const vec3 value = {1, 2, 3};
    const quern_result code = QUERN_ERROR_INVALID_ARGUMENT;
    ASSERT_FOREIGN(quern_commands_create(commands).bits, 0);
    ASSERT_FOREIGN(quern_commands_create_with(commands, &position, NULL, 1).bits, 0);
    ASSERT_FOREIGN(quern_commands_create_many(commands, &position, NULL, 1, 2, NULL), code);
    ASSERT_FOREIGN(quern_commands_destroy(commands, entity), code);
    ASSERT_FOREIGN(quern_commands_add(commands, entity, position, NULL), code);
    ASSERT_FOREIGN(quern_commands_remove(commands, entity, position), code);
    ASSERT_FOREIGN(quern_commands_set(commands, entity, position, &value), code);
}

/* ------------------------------------------------------------------------------------- after the frame */

static void keep(quern_context *context)
{
    kept_context = context;
    kept_commands = quern_context_commands(context);
    cr_assert_neq(quern_commands_create(kept_commands).bits, 0u, "in its callback it records");
}

/* The schedule is to live on, since the context is a part of it. */
static quern_schedule *run_keeper(void)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("keeper", NULL);
    def.begin = keep;
    def.user_data = &reports;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    return schedule;
}

Test(context, one_that_is_kept_is_noticed_after_the_frame)
{
    quern_schedule *schedule = run_keeper();
    assert_context_gives_nothing(kept_context);
    quern_schedule_destroy(schedule);
}

Test(context, commands_are_not_recorded_after_the_frame)
{
    quern_schedule *schedule = run_keeper();
    const uint64_t hash = quern_world_hash(world);
    assert_commands_are_refused(kept_commands);
    cr_assert_eq(quern_schedule_kept_command_count(schedule), 0u);
    cr_assert_eq(quern_world_hash(world), hash);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 1u, "its own create and no other");
    quern_schedule_destroy(schedule);
}

/* ------------------------------------------------------------------------------- in another callback */

static void use_kept(quern_context *context)
{
    assert_commands_are_refused(kept_commands);
    quern_commands *commands = quern_context_commands(context);
    cr_assert_eq(quern_commands_destroy(commands, entity), QUERN_OK, "%s", quern_error_message());
}

/* The recorder is the worker's, so it is the same one; but the stream would be another system's. */
Test(context, a_recorder_is_not_the_next_callbacks_before_it_has_asked)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def first = system_def("first", NULL), second = system_def("second", NULL);
    first.begin = keep;
    second.begin = use_kept;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 2u);
    quern_schedule_destroy(schedule);
}

/* ------------------------------------------------------------------------------- on another thread */

static void *use_elsewhere(void *argument)
{
    (void)argument;
    assert_context_gives_nothing(kept_context);
    assert_commands_are_refused(kept_commands);
    return NULL;
}

static void lend_to_thread(quern_context *context)
{
    keep(context);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, use_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_not_null(quern_context_user_data(context), "its own thread is not disturbed");
    cr_assert_eq(quern_commands_destroy(kept_commands, entity), QUERN_OK, "%s", quern_error_message());
}

Test(context, one_that_is_lent_to_another_thread_is_noticed)
{
    if (!quern_has_checks()) return;
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("lender", NULL);
    def.begin = lend_to_thread;
    def.user_data = &reports;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 2u);
    quern_schedule_destroy(schedule);
}
