/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/setup.h"

#include <pthread.h>
#include <string.h>

/* Frames of one world on two threads. A callback of the first frame starts the second thread and waits for
 * its end, so the second call is always made during the first frame. */

static quern_world *shared;
static quern_component number;
static quern_entity entity;
static quern_jobs *jobs;
static quern_schedule *first, *second;
static quern_frame_capture *capture;
static captured_reports reports;

typedef struct intrusion {
    const char *function;
    quern_result (*call)(void);
    bool needs_checks; /* builds without QUERN_CHECKS refuse the call without a report */
} intrusion;

static const intrusion *intruder;
static quern_result intruder_result, inside_result;
static uint32_t callback_count;

static quern_result run_other(void)
{
    return quern_schedule_run(second, NULL, 1);
}

static quern_result run_other_on_jobs(void)
{
    return quern_schedule_run(second, jobs, 1);
}

static quern_result run_same(void)
{
    return quern_schedule_run(first, NULL, 1);
}

static quern_result run_same_captured(void)
{
    return quern_schedule_run_captured(first, NULL, 1, capture);
}

static quern_result react(void)
{
    return quern_world_react(shared, NULL);
}

static quern_result change(void)
{
    return quern_entity_set(shared, entity, number, &(uint64_t){100});
}

static const intrusion intrusions[] = {
    {"quern_schedule_run", run_other, false}, {"quern_schedule_run", run_other_on_jobs, false},
    {"quern_schedule_run", run_same, false},  {"quern_schedule_run_captured", run_same_captured, false},
    {"quern_world_react", react, false},      {"quern_entity_set", change, true},
};

enum { INTRUSION_COUNT = sizeof intrusions / sizeof intrusions[0] };

static void *intrude(void *argument)
{
    intruder_result = intruder->call();
    return NULL;
}

static void let_in(void)
{
    pthread_t thread;
    callback_count++;
    if (pthread_create(&thread, NULL, intrude, NULL) != 0) return;
    pthread_join(thread, NULL);
}

static void add_one(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

static void let_in_and_add(quern_context *context, const quern_view *view)
{
    let_in();
    add_one(context, view);
}

static void let_in_for_reaction(quern_context *context, const quern_view *view)
{
    let_in();
}

/* A call of the owner's thread, or of a worker of its pool: not a call of another thread. */
static void call_inside(quern_context *context, const quern_view *view)
{
    callback_count++;
    inside_result = intruder->call();
}

static void call_exclusive(quern_context *context, const quern_view *view)
{
    callback_count++;
    inside_result = intruder->call();
    let_in();
    cr_expect_not_null(quern_context_world(context));
}

static quern_schedule *make_schedule(const quern_system_def *system)
{
    quern_schedule *schedule;
    quern_system id;
    must(quern_schedule_create(shared, NULL, &schedule));
    must(quern_schedule_add_system(schedule, system, &id));
    return schedule;
}

static quern_schedule *make_adding(quern_view_callback *run)
{
    return make_schedule(
        &(quern_system_def){.name = "adds", .terms = {quern_term_write(number)}, .run = run});
}

static uint64_t value(void)
{
    return *(const uint64_t *)quern_entity_get(shared, entity, number);
}

static void open_shared(void)
{
    shared = setup_world();
    number = setup_component(shared, "number", 8, 8);
    entity = setup_entity_with(shared, &number, 1);
    must(quern_entity_set(shared, entity, number, &(uint64_t){0}));
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 2}, &jobs));
    must(quern_frame_capture_create(NULL, &capture));
    second = make_adding(add_one);
    callback_count = 0;
    capture_reports(&reports);
}

static void close_shared(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    quern_frame_capture_destroy(capture);
    quern_schedule_destroy(second);
    quern_schedule_destroy(first);
    quern_jobs_destroy(jobs);
    quern_world_destroy(shared);
}

TestSuite(frame_threads, .init = open_shared, .fini = close_shared, .timeout = 300);

/* Asserts the report of the intruding call. `owner`: the call of the first thread, which the message must
 * name as well. */
static void assert_intruder_reported(const char *owner)
{
    const size_t length = strlen(intruder->function);
    cr_assert_eq(callback_count, 1u);
    cr_assert_eq(intruder_result, QUERN_ERROR_WORLD_LOCKED, "%s", intruder->function);
    if (!quern_has_checks() && intruder->needs_checks) return;
    cr_assert_eq(reports.log_count, 1u, "%s: %u reports", intruder->function, reports.log_count);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u, "%s", intruder->function);
    cr_assert_eq(strncmp(reports.last, intruder->function, length), 0, "%s: %s", intruder->function,
                 reports.last);
    cr_assert_not_null(strstr(reports.last, owner), "%s: %s", intruder->function, reports.last);
}

static void check_intrusions(quern_jobs *pool)
{
    first = make_adding(let_in_and_add);
    for (uint32_t i = 0; i < INTRUSION_COUNT; i++) {
        intruder = &intrusions[i];
        intruder_result = QUERN_OK;
        callback_count = 0;
        capture_reports(&reports);
        must(quern_schedule_run(first, pool, 1));
        assert_intruder_reported("(quern_schedule_run, world ");
        cr_assert_eq(value(), i + 1, "%s changed the result", intruder->function);
        assert_valid(shared);
    }
}

Test(frame_threads, a_frame_on_another_thread_is_reported_and_refused)
{
    check_intrusions(NULL);
}

Test(frame_threads, a_frame_on_another_thread_is_reported_while_a_pool_runs_one)
{
    check_intrusions(jobs);
}

Test(frame_threads, a_frame_on_another_thread_is_reported_while_reactions_run)
{
    first = make_schedule(&(quern_system_def){.name = "watches",
                                              .terms = {quern_term_read(number)},
                                              .reacts_to = QUERN_REACT_SET,
                                              .run = let_in_for_reaction});
    for (uint32_t i = 0; i < INTRUSION_COUNT; i++) {
        must(quern_entity_set(shared, entity, number, &(uint64_t){i}));
        intruder = &intrusions[i];
        intruder_result = QUERN_OK;
        callback_count = 0;
        capture_reports(&reports);
        must(quern_world_react(shared, NULL));
        assert_intruder_reported("(quern_world_react, world ");
        cr_assert_eq(value(), i);
    }
}

/* The callback runs on the caller and, in some of the frames, also on another worker of the pool. */
Test(frame_threads, callback_that_runs_a_frame_is_refused_without_report)
{
    first = make_schedule(
        &(quern_system_def){.name = "calls", .terms = {quern_term_read(number)}, .run = call_inside});
    for (uint32_t i = 0; i < 20 * INTRUSION_COUNT; i++) {
        intruder = &intrusions[i % INTRUSION_COUNT];
        inside_result = QUERN_OK;
        must(quern_schedule_run(first, i % 2 == 0 ? jobs : NULL, 1));
        cr_assert_eq(inside_result, QUERN_ERROR_WORLD_LOCKED, "%s", intruder->function);
    }
    cr_assert_eq(callback_count, 20u * INTRUSION_COUNT);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

Test(frame_threads, exclusive_systems_run_frames_on_any_thread_in_turn)
{
    first = make_schedule(
        &(quern_system_def){.name = "exclusive", .flags = QUERN_SYSTEM_EXCLUSIVE, .run = call_exclusive});
    intruder = &intrusions[0];
    inside_result = intruder_result = QUERN_ERROR_CORRUPT;
    must(quern_schedule_run(first, jobs, 1));
    cr_assert_eq(inside_result, QUERN_OK);
    cr_assert_eq(intruder_result, QUERN_OK);
    cr_assert_eq(value(), 2u);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

Test(frame_threads, after_a_frame_any_thread_may_run_one)
{
    first = make_adding(add_one);
    intruder = &intrusions[0];
    for (uint32_t i = 0; i < 20; i++) {
        must(quern_schedule_run(first, jobs, 1));
        let_in();
        must(intruder_result);
    }
    cr_assert_eq(value(), 40u);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static void count_call(quern_context *context, const quern_view *view)
{
    callback_count++;
}

static quern_result set_and_react_on_jobs(void)
{
    must(quern_entity_set(shared, entity, number, &(uint64_t){1}));
    return quern_world_react(shared, jobs);
}

Test(frame_threads, after_reactions_any_thread_may_use_their_pool)
{
    static const intrusion reacting = {"quern_world_react", set_and_react_on_jobs, false};
    first = make_schedule(&(quern_system_def){.name = "watches",
                                              .terms = {quern_term_read(number)},
                                              .reacts_to = QUERN_REACT_SET,
                                              .run = count_call});
    intruder = &reacting;
    for (uint32_t i = 0; i < 4; i++) {
        must(set_and_react_on_jobs());
        let_in();
        must(intruder_result);
        must(quern_schedule_run(second, jobs, 1));
    }
    cr_assert_geq(callback_count, 8u, "both threads have reacted");
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

/* --------------------------------------------------------- a frame that outlives the exclusive system */

static pthread_barrier_t barrier;
static pthread_t straggler;

static void wait_twice(quern_context *context, const quern_view *view)
{
    pthread_barrier_wait(&barrier); /* the frame on the other thread has begun */
    pthread_barrier_wait(&barrier); /* the frame of the exclusive system has ended */
    add_one(context, view);
}

static void start_straggler(quern_context *context, const quern_view *view)
{
    if (callback_count++ > 0 || pthread_create(&straggler, NULL, intrude, NULL) != 0) return;
    pthread_barrier_wait(&barrier);
}

Test(frame_threads, a_frame_that_outlives_an_exclusive_system_ends_that_systems_frame)
{
    quern_schedule_destroy(second);
    second = make_adding(wait_twice);
    first = make_schedule(
        &(quern_system_def){.name = "exclusive", .flags = QUERN_SYSTEM_EXCLUSIVE, .run = start_straggler});
    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    intruder = &intrusions[0];
    cr_assert_eq(quern_schedule_run(first, NULL, 1), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(reports.log_count, 1u);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
    pthread_barrier_wait(&barrier);
    pthread_join(straggler, NULL);
    pthread_barrier_destroy(&barrier);
    must(intruder_result);
    cr_assert_eq(value(), 1u);
    must(quern_schedule_run(first, NULL, 1));
    assert_valid(shared);
}

/* Destroys the rows that it is shown, as the last thing that its frame does in the world. */
static void destroy_and_start_straggler(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) == QUERN_REACT_ADDED)
        for (uint32_t i = 0; i < view->count; i++)
            must(quern_entity_destroy(shared, view->entities[i]));
    must(quern_world_trim(shared));
    start_straggler(context, view);
}

Test(frame_threads, a_frame_that_outlives_an_exclusive_reaction_leaves_no_rows_pending)
{
    quern_schedule_destroy(second);
    const quern_component own = setup_component(shared, "own", 8, 8);
    second = make_adding(wait_twice);
    first = make_schedule(&(quern_system_def){.name = "exclusive",
                                              .flags = QUERN_SYSTEM_EXCLUSIVE,
                                              .terms = {quern_term_with(own)},
                                              .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED,
                                              .run = destroy_and_start_straggler});
    setup_entity_with(shared, &own, 1);
    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    intruder = &intrusions[0];
    cr_assert_eq(quern_schedule_run(first, NULL, 1), QUERN_ERROR_WORLD_LOCKED);
    pthread_barrier_wait(&barrier);
    pthread_join(straggler, NULL);
    pthread_barrier_destroy(&barrier);
    must(intruder_result);
    assert_valid(shared);
    cr_assert_eq(callback_count, 1u, "the reaction was called");
    must(quern_schedule_run(first, NULL, 1));
    cr_assert_eq(callback_count, 2u, "and again only for the row that it removed");
    assert_valid(shared);
}
