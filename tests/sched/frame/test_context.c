/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <pthread.h>
#include <string.h>

/* Contexts and recorders that are used outside of the callback to which they belong. Use on another thread
 * is only detected in builds with checks. */

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

TestSuite(context, .init = open_world, .fini = close_world);

/* Asserts that the call was reported with these words. */
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
        assert_reported("outside of the callback");  \
    } while (0)

/* Asserts that every call returns nothing on a context of another callback, or of a finished one. */
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

/* Asserts that every call is refused on a recorder of another callback, or of a finished one. */
static void assert_commands_are_refused(quern_commands *commands)
{
    const vec3 value = {1, 2, 3};
    const quern_result code = QUERN_ERROR_INVALID_ARGUMENT;
    ASSERT_FOREIGN(record_entity(commands).bits, 0);
    ASSERT_FOREIGN(record_entity_with(commands, &position, NULL, 1).bits, 0);
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
    cr_assert_neq(record_entity(kept_commands).bits, 0u, "in its callback it records");
}

/* Returns the schedule without destroying it, because it owns the kept context. */
static quern_schedule *run_keeper(void)
{
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "keeper", NULL, .begin = keep, .user_data = &reports);
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    return schedule;
}

Test(context, context_kept_after_frame_is_reported)
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

/* Both callbacks have the worker's recorder, but its stream would be that of the other system. */
Test(context, recorder_is_refused_to_next_callback_until_it_asks_for_it)
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

Test(context, context_used_on_another_thread_is_reported)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "lender", NULL, .begin = lend_to_thread, .user_data = &reports);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 2u);
    quern_schedule_destroy(schedule);
}

/* -------------------------------------------------------------------------------- after workers were added */

static quern_event hit;
static quern_emitter *kept_emitter;

static void keep_all(quern_context *context)
{
    keep(context);
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert_not_null(kept_emitter);
}

static void emit_nothing(quern_context *context, const quern_view *view) {}

/* Adds a system with an up-term and an event of its own, so that workers need more addresses and more
 * emitters. */
static void add_demanding_system(quern_schedule *schedule)
{
    quern_event other;
    must(quern_event_register(world, &(quern_event_def){.name = "other", .size_bytes = 8}, &other));
    make_system(schedule, "demanding", emit_nothing,
                .terms = {quern_term_up(position, quern_world_parent(world))}, .emits = {other});
}

/* The memory of the first worker keeps its address, whatever later frames need. */
Test(context, kept_context_is_reported_after_schedule_has_more_workers)
{
    const uint64_t value = 1;
    quern_schedule *schedule = setup_schedule(world);
    quern_jobs *jobs;
    must(quern_event_register(world, &(quern_event_def){.name = "hit", .size_bytes = 8}, &hit));
    const quern_system keeper =
        make_system(schedule, "keeper", NULL, .begin = keep_all, .emits = {hit}, .user_data = &reports);
    must_run(schedule, NULL);
    quern_context *context = kept_context;
    quern_commands *commands = kept_commands;
    quern_emitter *emitter = kept_emitter;
    must(quern_schedule_set_system_enabled(schedule, keeper, false));
    add_demanding_system(schedule);
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 4}, &jobs));
    must_run(schedule, jobs);
    assert_context_gives_nothing(context);
    assert_commands_are_refused(commands);
    ASSERT_FOREIGN(quern_emit(emitter, &value), false);
    must(quern_schedule_set_system_enabled(schedule, keeper, true));
    must_run(schedule, NULL);
    cr_assert_eq(kept_context, context);
    cr_assert_eq(kept_commands, commands);
    cr_assert_eq(kept_emitter, emitter);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
}

static void keep_of_query(quern_context *context, const quern_view *view)
{
    if (kept_context == NULL) keep(context);
}

Test(context, context_of_parallel_query_is_reported_after_query_with_more_workers)
{
    const quern_term term = quern_term_read(position);
    quern_query *query = setup_query(world, &term, 1);
    quern_jobs *jobs;
    must(quern_query_parallel_for(query, NULL, keep_of_query, NULL));
    quern_context *context = kept_context;
    quern_commands *commands = kept_commands;
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 4}, &jobs));
    must(quern_query_parallel_for(query, jobs, keep_of_query, NULL));
    ASSERT_FOREIGN(quern_context_user_data(context), NULL);
    assert_commands_are_refused(commands);
    kept_context = NULL;
    must(quern_query_parallel_for(query, NULL, keep_of_query, NULL));
    cr_assert_eq(kept_context, context);
    cr_assert_eq(kept_commands, commands);
    quern_jobs_destroy(jobs);
    quern_query_destroy(query);
}
