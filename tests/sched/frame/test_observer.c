/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* What frames report to an observer, recorded as text by an observer of the test. */

enum { ROWS = 20000, TEXT_BYTES = 1000, MAX_ITEMS = 100 };

typedef struct listener {
    quern__frame_observer observer;
    bool wants_all; /* observes every frame */
    bool tells_all; /* reports the calls of all ranges, or of none; a range is one chunk */
    char text[TEXT_BYTES];
    _Atomic uint32_t told_rows, reported_calls, items, open_jobs;
} listener;

static listener heard;
static quern_world *world;
static quern_component number;
static quern_schedule *schedule;
static quern__frame_observer *replaced;

static void note(const char *word)
{
    strncat(heard.text, word, sizeof heard.text - strlen(heard.text) - 1);
}

static quern_result prepare(quern__frame_observer *observer, uint32_t worker_count)
{
    cr_assert_gt(worker_count, 0u);
    note("prepare ");
    return QUERN_OK;
}

static quern_result prepare_pass(quern__frame_observer *observer, quern__pass *pass)
{
    note("pass ");
    return QUERN_OK;
}

static void begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame)
{
    cr_assert_eq(frame->frame_index, schedule->frame_index);
    observer->is_observing = heard.wants_all;
    note("frame( ");
}

static void end_frame(quern__frame_observer *observer)
{
    note(")frame ");
}

static void begin_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    cr_assert_eq(segment->passes.count, 1u);
    note("segment( ");
}

static void end_segment(quern__frame_observer *observer, const quern__segment *segment)
{
    note(")segment ");
}

/* Called by workers, so only callbacks before and after items are added to the text. */
static void begin_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    heard.open_jobs++;
    if (job->callback == QUERN__CALLBACK_RUN)
        heard.items += job->end - job->begin;
    else
        note(job->callback == QUERN__CALLBACK_BEGIN ? "begin( " : "end( ");
}

static quern__job_range next_range(quern__frame_observer *observer, const quern__observed_job *job,
                                   uint32_t begin, uint32_t end)
{
    cr_assert_leq(job->begin, begin);
    cr_assert_leq(end, job->end);
    return (quern__job_range){.end = begin + 1, .is_reported = heard.tells_all};
}

static void end_job(quern__frame_observer *observer, const quern__observed_job *job)
{
    heard.open_jobs--;
    if (job->callback != QUERN__CALLBACK_RUN) note(") ");
}

static void begin_calls(quern__frame_observer *observer, uint32_t worker_index)
{
    cr_assert_gt(heard.open_jobs, 0u);
}

static void end_call(quern__frame_observer *observer, const quern__observed_call *call)
{
    cr_assert_gt(heard.open_jobs, 0u);
    heard.told_rows += call->row_count;
    if (call->callback == QUERN__CALLBACK_RUN)
        heard.reported_calls++;
    else
        note(call->system->name), note(" ");
}

static void begin_sync(quern__frame_observer *observer)
{
    note("sync( ");
}

static void end_sync(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count)
{
    cr_assert_eq(command_count, 1u);
    note(")sync ");
}

static void begin_stage(quern__frame_observer *observer, quern__sync_stage stage)
{
    static const char *const names[] = {[QUERN__STAGE_GATHER] = "gather ",
                                        [QUERN__STAGE_MERGE] = "merge ",
                                        [QUERN__STAGE_RESOLVE] = "resolve ",
                                        [QUERN__STAGE_APPLY] = "apply "};
    note(names[stage]);
}

static void begin_loop(quern__frame_observer *observer, uint32_t part_count) {}

static void end_loop(quern__frame_observer *observer) {}

static void end_part(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns) {}

static uint64_t system_time_ns(const quern__frame_observer *observer, const quern__system *system)
{
    return system->index + 7u;
}

static void forget_system(quern__frame_observer *observer, const quern__system *system) {}

static const quern__frame_observer_calls calls = {.prepare = prepare,
                                                  .prepare_pass = prepare_pass,
                                                  .begin_frame = begin_frame,
                                                  .end_frame = end_frame,
                                                  .begin_segment = begin_segment,
                                                  .end_segment = end_segment,
                                                  .run_job = quern__pass_run_observed,
                                                  .begin_job = begin_job,
                                                  .next_range = next_range,
                                                  .end_job = end_job,
                                                  .begin_calls = begin_calls,
                                                  .end_call = end_call,
                                                  .begin_sync = begin_sync,
                                                  .end_sync = end_sync,
                                                  .begin_stage = begin_stage,
                                                  .begin_loop = begin_loop,
                                                  .end_loop = end_loop,
                                                  .end_part = end_part,
                                                  .system_time_ns = system_time_ns,
                                                  .forget_system = forget_system};

static void increment(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

static void spawn(quern_context *context)
{
    record_entity(quern_context_commands(context));
}

static bool is_wanted(quern_context *context)
{
    return true;
}

static void open_schedule(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    for (uint32_t i = 0; i < ROWS; i++)
        setup_entity_with(world, &number, 1);
    schedule = setup_schedule(world);
    make_system(schedule, "a", increment, .terms = {quern_term_write(number)}, .begin = spawn,
                .condition = is_wanted);
    setup_system(schedule, &(quern_system_def){.name = "b",
                                               .run = increment,
                                               .end = idle_callback,
                                               .terms = {quern_term_write(number)}});
    memset(&heard, 0, sizeof heard);
    heard.observer.calls = &calls;
    replaced = schedule->observer;
    schedule->observer = &heard.observer;
}

static void close_schedule(void)
{
    schedule->observer = replaced;
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

TestSuite(observer, .init = open_schedule, .fini = close_schedule);

Test(observer, observer_that_declines_is_asked_and_gets_no_reports)
{
    must_run(schedule, NULL);
    cr_assert_str_eq(heard.text, "prepare frame( pass ");
    must_run(schedule, NULL);
    cr_assert_str_eq(heard.text, "prepare frame( pass prepare frame( pass ", "a row was added");
    cr_assert_eq(heard.items, 0u);
    cr_assert_eq(heard.reported_calls, 0u);
}

Test(observer, frame_is_reported_from_beginning_to_end)
{
    heard.wants_all = true;
    schedule->playback.disable_fast_paths = true;
    must_run(schedule, NULL);
    cr_assert_str_eq(heard.text, "prepare frame( pass segment( begin( a a ) end( b ) )segment "
                                 "sync( gather merge resolve apply )sync )frame ");
    cr_assert_eq(heard.reported_calls, 0u, "no range of items was to be reported");
    cr_assert_eq(heard.open_jobs, 0u);
}

Test(observer, fast_path_reports_only_its_own_stages)
{
    heard.wants_all = true;
    must_run(schedule, NULL);
    cr_assert_not_null(strstr(heard.text, "sync( gather apply )sync "));
}

static void run_on(uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    must_run(schedule, jobs);
    const quern__pass *pass = schedule->plan.systems.items[0]->pass;
    cr_assert_eq(heard.items, pass->item_count);
    cr_assert_eq(heard.open_jobs, 0u);
    cr_assert_eq(heard.reported_calls, heard.tells_all ? 2 * pass->chunk_count : 0u);
    cr_assert_eq(heard.told_rows, heard.tells_all ? 2u * ROWS : 0u);
    quern_jobs_destroy(jobs);
}

Test(observer, items_are_in_one_job_and_calls_are_reported_in_selected_ranges)
{
    heard.wants_all = true;
    heard.tells_all = true;
    run_on(0);
}

Test(observer, frame_is_reported_on_threads)
{
    heard.wants_all = true;
    heard.tells_all = true;
    run_on(3);
}

Test(observer, ranges_without_reports_run_their_items)
{
    heard.wants_all = true;
    run_on(2);
    quern_system_stats stats;
    quern_schedule_get_system_stats(schedule, quern_schedule_system_at(schedule, 1), &stats);
    cr_assert_eq(stats.time_ns, 8u, "the time that the observer gives");
    uint64_t sum = 0;
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_read(number)}};
    cr_assert_eq(quern_query_create(world, &def, &query), QUERN_OK);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += ((const uint64_t *)quern_view_read(&it.view, 0))[i];
    cr_assert_eq(sum, 2u * ROWS);
    quern_query_destroy(query);
}
