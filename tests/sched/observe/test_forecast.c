/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/observe/profile_internal.h"

#include "tests/flow/flow_setup.h"
#include "tests/support/setup.h"

#include <math.h>
#include <string.h>

/* Forecasts of constructed frames, whose forecast is known, and of captured frames. */

static const quern_forecast_costs no_costs = {0};
static quern_frame_capture *capture; /* of the frame that a test constructs */

static void open_capture(void)
{
    must(quern_frame_capture_create(NULL, &capture));
    quern__capture_start(capture, 1);
}

static void close_capture(void)
{
    quern_frame_capture_destroy(capture);
}

static void begin_another_capture(void)
{
    close_capture();
    open_capture();
}

TestSuite(forecast, .init = open_capture, .fini = close_capture, .timeout = 120);

/* Adds a task with a number of items of the same duration. */
static quern__task *add_task(const char *name, uint32_t count, uint64_t item_ns)
{
    const uint32_t number = quern__capture_add_task(capture, name, count);
    cr_assert_neq(number, UINT32_MAX);
    quern__task *task = &capture->tasks.items[number];
    for (uint32_t i = 0; i < count; i++)
        capture->items_ns.items[task->first_item + i] = item_ns;
    capture->frame_ns += count * item_ns;
    return task;
}

static quern_forecast forecast_with(const quern_forecast_costs *costs, uint32_t thread_count)
{
    quern_forecast forecast;
    must(quern_frame_capture_forecast(capture, costs, thread_count, &forecast));
    cr_assert_eq(forecast.thread_count, thread_count);
    return forecast;
}

static void assert_about(double value, double expected, double share)
{
    cr_assert(fabs(value - expected) <= expected * share, "%g instead of about %g", value, expected);
}

Test(forecast, one_thread_needs_the_sum_of_all_tasks)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 100, 1000);
    add_task("b", 1, 5000);
    capture->serial_ns = 700;
    const quern_forecast forecast = forecast_with(&no_costs, 1);
    assert_about(forecast.frame_ns, 105700, 1e-9);
    assert_about(forecast.speedup, 1, 1e-9);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_NONE);
}

Test(forecast, many_chunks_scale_with_the_threads)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 6400, 1000);
    const quern_forecast forecast = forecast_with(&no_costs, 64);
    assert_about(forecast.frame_ns, 100000, 0.03);
    assert_about(forecast.speedup, 64, 0.03);
    assert_about(forecast.critical_path_ns, 1000, 1e-9);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_NONE);
    cr_assert_null(forecast.bottleneck_system);
}

Test(forecast, few_chunks_leave_threads_without_work)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 4, 1000);
    const quern_forecast forecast = forecast_with(&no_costs, 16);
    assert_about(forecast.frame_ns, 1000, 1e-9);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_CHUNKS);
    cr_assert_str_eq(forecast.bottleneck_system, "a");
    assert_about(forecast.without_limit_ns, 250, 0.01);
}

Test(forecast, serial_system_limits_the_speedup)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("wide", 800, 1000);
    add_task("alone", 1, 100000)->is_serial = true;
    quern__capture_add_wait(capture, 0);
    const quern_forecast forecast = forecast_with(&no_costs, 8);
    assert_about(forecast.frame_ns, 200000, 0.02);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_SERIAL);
    cr_assert_str_eq(forecast.bottleneck_system, "alone");
    assert_about(forecast.without_limit_ns, 112500, 0.02);
    assert_about(forecast.critical_path_ns, 101000, 1e-9);
}

Test(forecast, tasks_that_do_not_wait_for_each_other_run_side_by_side)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 1, 50000)->is_serial = true;
    add_task("b", 1, 50000)->is_serial = true;
    assert_about(forecast_with(&no_costs, 2).frame_ns, 50000, 1e-9);
    quern__capture_add_wait(capture, 0);
    assert_about(forecast_with(&no_costs, 2).frame_ns, 100000, 1e-9);
}

Test(forecast, caller_only_tasks_run_one_after_another)
{
    quern__capture_start_segment(capture, false, 0);
    for (int i = 0; i < 2; i++) {
        quern__task *task = add_task("a", 1, 50000);
        task->is_serial = task->caller_only = true;
    }
    assert_about(forecast_with(&no_costs, 4).frame_ns, 100000, 1e-9);
}

Test(forecast, begin_and_end_of_a_task_are_not_shared)
{
    quern__capture_start_segment(capture, false, 0);
    quern__task *task = add_task("a", 1000, 100);
    task->before_ns = 3000;
    task->after_ns = 2000;
    assert_about(forecast_with(&no_costs, 10).frame_ns, 15000, 0.02);
}

Test(forecast, a_sync_point_limits_a_frame)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 1000, 100);
    quern__capture_start_segment(capture, true, 0);
    quern__capture_add_gap(capture, 60000);
    const quern_forecast forecast = forecast_with(&no_costs, 10);
    assert_about(forecast.frame_ns, 70000, 0.02);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_SYNC);
    assert_about(forecast.without_limit_ns, 16000, 0.02);
}

Test(forecast, loops_of_a_sync_point_are_shared)
{
    quern__capture_start_segment(capture, true, 0);
    quern__capture_add_gap(capture, 1000);
    quern__capture_start_loop(capture, 100);
    for (int i = 0; i < 100; i++)
        quern__capture_add_part(capture, 400);
    quern__capture_finish_loop(capture, 41000);
    quern__capture_add_gap(capture, 43000);
    quern__capture_finish_segment(capture, 43000);
    capture->frame_ns = 43000;
    assert_about(forecast_with(&no_costs, 1).frame_ns, 43000, 1e-9);
    assert_about(forecast_with(&no_costs, 4).frame_ns, 13000, 0.01);
}

Test(forecast, more_threads_do_not_increase_memory_bandwidth)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 1000, 1000)->bytes = 10000000; /* 10 bytes per nanosecond */
    const quern_forecast_costs costs = {.bytes_per_ns_limit = 40};
    assert_about(forecast_with(&costs, 4).frame_ns, 250000, 0.02);
    const quern_forecast forecast = forecast_with(&costs, 16);
    assert_about(forecast.frame_ns, 250000, 1e-9);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_BANDWIDTH);
}

Test(forecast, other_workers_arrive_late_and_later_if_asleep)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 200, 1000);
    const quern_forecast_costs costs = {.steal_ns = 10000, .wake_ns = 40000};
    assert_about(forecast_with(&costs, 2).frame_ns, 105000, 0.01);
    capture->serial_ns = 1000000; /* long enough for the workers to fall asleep */
    assert_about(forecast_with(&costs, 2).frame_ns, 1120000, 0.01);
}

/* ---------------------------------------------------------------------------------- worked out by hand */

enum { EXACT = 0 };

static void assert_frame(const quern_forecast_costs *costs, uint32_t thread_count, double expected_ns)
{
    assert_about(forecast_with(costs, thread_count).frame_ns, expected_ns, EXACT);
}

/*  worker 0  |0   2|2 3|3 4|4 5|5 6|6 7|7 8|          one claim of two, an eighth of 16, then single items
 *  worker 1   .5 1.5|  2.5|  3.5|...|  7.5 8.5|       comes half an item late, and so ends half an item
 * later */
Test(forecast, claims_get_smaller_toward_the_end)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 16, 1000);
    const quern_forecast_costs costs = {.steal_ns = 500, .wake_ns = 9000};
    assert_frame(&costs, 2, 8500);
}

/* Items of one claim end together: the first claim, an eighth, includes the long item. */
Test(forecast, task_ends_with_its_longest_chunk)
{
    quern__capture_start_segment(capture, false, 0);
    const quern__task *task = add_task("a", 51, 1000);
    capture->items_ns.items[task->first_item] = 50000;
    assert_frame(&no_costs, 2, 55000);
    const quern_forecast forecast = forecast_with(&no_costs, 10);
    assert_about(forecast.frame_ns, 50000, EXACT);
    assert_about(forecast.critical_path_ns, 50000, EXACT);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_CHUNKS);
    assert_about(forecast.without_limit_ns, 10000, 0.01);
}

/* Worker 0 calls two workers, and each of these two more: so 1, 2, 4 and 8 workers arrive one step after
 * another. */
Test(forecast, workers_arrive_as_a_growing_tree)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 16, 100000);
    const quern_forecast_costs costs = {.steal_ns = 1000, .wake_ns = 20000};
    assert_frame(&costs, 16, 104000);
    capture->serial_ns = 1000000; /* long enough for the workers to fall asleep */
    assert_frame(&costs, 16, 1180000);

    begin_another_capture();
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 7, 100000);
    assert_frame(&costs, 16, 102000);
}

/*  worker 0  | a 0 - 3000      | c 3000 - 5000 |
 *  worker 1  ~| b 100 - 1100 | d 1100 - 6100                 |     d waits for b, c for a and b  */
Test(forecast, the_worker_that_makes_a_task_ready_begins_it_at_once)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 1, 3000);
    add_task("b", 1, 1000);
    add_task("c", 1, 2000);
    quern__capture_add_wait(capture, 0);
    quern__capture_add_wait(capture, 1);
    add_task("d", 1, 5000);
    quern__capture_add_wait(capture, 1);
    const quern_forecast_costs costs = {.steal_ns = 100, .wake_ns = 100};
    assert_frame(&costs, 1, 11000);
    assert_frame(&costs, 2, 6100);
    assert_about(forecast_with(&costs, 2).critical_path_ns, 6000, EXACT);
}

/*  worker 0  | before 0 - 3000 | 3000 - 4000 |
 *  worker 1                    ~~| 3200 - 4200 | after - 4700 |  */
Test(forecast, items_are_shared_after_the_part_before_them)
{
    quern__capture_start_segment(capture, false, 0);
    quern__task *task = add_task("a", 2, 1000);
    task->before_ns = 3000;
    task->after_ns = 500;
    const quern_forecast_costs costs = {.steal_ns = 200, .wake_ns = 9000};
    assert_frame(&costs, 2, 4700);
}

/* Of ten consecutive passes, only the first one finds worker 1 idle. */
Test(forecast, stealing_limits_short_passes)
{
    quern__capture_start_segment(capture, false, 0);
    for (uint32_t i = 0; i < 10; i++) {
        add_task("a", 2, 1000);
        if (i > 0) quern__capture_add_wait(capture, i - 1);
    }
    const quern_forecast_costs costs = {.steal_ns = 900, .wake_ns = 900};
    const quern_forecast forecast = forecast_with(&costs, 2);
    assert_about(forecast.frame_ns, 10900, EXACT);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_SCHEDULING);
    assert_about(forecast.without_limit_ns, 10000, EXACT);
}

/* Worker 0 runs the wide task to its end before it begins the task that only it may run. */
Test(forecast, a_caller_only_task_waits_for_the_caller)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("wide", 8, 1000);
    quern__task *own = add_task("own", 1, 2000);
    own->is_serial = own->caller_only = true;
    assert_frame(&no_costs, 2, 6000);
}

/* The demand of two simultaneous items: 20 bytes per nanosecond; memory delivers 10. */
Test(forecast, memory_demand_is_limited_by_the_number_of_items)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 2, 1000)->bytes = 20000;
    const quern_forecast_costs costs = {.bytes_per_ns_limit = 10};
    assert_frame(&costs, 1, 2000);
    assert_frame(&costs, 2, 2000);
    assert_frame(&costs, 8, 2000);
    const quern_forecast forecast = forecast_with(&costs, 2);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_BANDWIDTH);
    assert_about(forecast.without_limit_ns, 1000, EXACT);
}

Test(forecast, memory_serves_one_task_after_another)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 4, 1000)->bytes = 40000;
    add_task("b", 4, 1000)->bytes = 40000;
    const quern_forecast_costs costs = {.bytes_per_ns_limit = 10};
    assert_frame(&costs, 1, 8000);
    assert_frame(&costs, 8, 8000);
    assert_frame(&no_costs, 8, 1000);
}

/* Memory has served the other items while one item still runs. */
Test(forecast, a_long_chunk_is_not_made_longer_by_memory)
{
    quern__capture_start_segment(capture, false, 0);
    quern__task *task = add_task("a", 101, 1000);
    capture->items_ns.items[task->first_item] = 50000;
    task->bytes = 1000000;
    const quern_forecast_costs costs = {.bytes_per_ns_limit = 50};
    assert_frame(&costs, 16, 50000);
    capture->items_ns.items[task->first_item] = 1000;
    assert_frame(&costs, 16, 20000);
}

static void record_sync_point(uint64_t first_gap_ns)
{
    begin_another_capture();
    quern__capture_start_segment(capture, true, 0);
    quern__capture_add_gap(capture, first_gap_ns);
    quern__capture_start_loop(capture, 4);
    for (int i = 0; i < 4; i++)
        quern__capture_add_part(capture, 10000);
    quern__capture_finish_loop(capture, first_gap_ns + 40000);
    quern__capture_add_gap(capture, first_gap_ns + 45000);
    quern__capture_finish_segment(capture, first_gap_ns + 45000);
    capture->frame_ns = first_gap_ns + 45000;
}

/*  worker 0  | gap | 100 - 110 | 110 - 120 |  | gap 121 - 126 |         us
 *  worker 1         ~| 101 - 111 | 111 - 121 |
 * and after a gap so long that worker 1 sleeps, when worker 0 has three of the four parts:
 *  worker 0  | gap | 300 - 310 | 310 - 320 | 320 - 330 | gap 330 - 335 |
 *  worker 1         ~~~~~~~~| 315 - 325 |  */
Test(forecast, workers_sleep_in_long_gaps_of_a_sync_point)
{
    const quern_forecast_costs costs = {.steal_ns = 1000, .wake_ns = 15000};
    record_sync_point(100000);
    assert_frame(&costs, 2, 126000);
    record_sync_point(300000);
    assert_frame(&costs, 2, 335000);
    assert_about(forecast_with(&costs, 2).critical_path_ns, 315000, EXACT);
}

/* A worker that has ended its part of one segment has to be called in the next one. */
Test(forecast, the_caller_begins_each_segment)
{
    for (int i = 0; i < 2; i++) {
        quern__capture_start_segment(capture, false, 0);
        add_task("a", 2, 1000);
    }
    const quern_forecast_costs costs = {.steal_ns = 300, .wake_ns = 300};
    assert_frame(&costs, 2, 2600);
}

Test(forecast, as_many_threads_as_a_pool_can_have)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", QUERN_MAX_THREADS, 1000);
    assert_frame(&no_costs, QUERN_MAX_THREADS, 1000);
    quern_forecast forecast;
    must_refuse(INVALID_ARGUMENT, NULL,
                quern_frame_capture_forecast(capture, &no_costs, QUERN_MAX_THREADS + 1, &forecast));
}

static void add_loop(uint32_t piece_count, uint64_t took_ns)
{
    capture->loop_observer.report(&capture->loop_observer, piece_count, took_ns);
}

Test(forecast, loops_of_a_serial_system_are_shared)
{
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 1, 1000);
    capture->tasks.items[0].is_serial = true;
    quern__capture_set_loop_owner(capture, 0, QUERN__TASK_ITEM);
    add_loop(4, 400);
    add_loop(1, 500); /* one piece per thread */
    assert_frame(&no_costs, 1, 1000);
    assert_frame(&no_costs, 2, 550);
    assert_frame(&no_costs, 10, 250);
    const quern_forecast_costs costs = {.steal_ns = 20};
    assert_frame(&costs, 1, 1000);
    assert_frame(&costs, 2, 590);
    const quern_forecast_costs slow = {.steal_ns = 10000};
    assert_frame(&slow, 2, 1000); /* calling other workers takes longer than the task */
    assert_about(forecast_with(&no_costs, 10).critical_path_ns, 200, 0.01);
}

Test(forecast, loops_before_and_after_items_are_shared)
{
    quern__capture_start_segment(capture, false, 0);
    quern__task *task = add_task("a", 100, 10);
    task->before_ns = 300;
    task->after_ns = 1000;
    quern__capture_set_loop_owner(capture, 0, QUERN__TASK_BEFORE);
    add_loop(2, 200);
    quern__capture_set_loop_owner(capture, 0, QUERN__TASK_AFTER);
    add_loop(1, 800);
    assert_frame(&no_costs, 1, 2300);
    assert_frame(&no_costs, 2, 200 + 500 + 600);
    assert_frame(&no_costs, 4, 200 + 250 + 400);
    const quern_forecast forecast = forecast_with(&no_costs, 4);
    cr_assert_eq(forecast.bottleneck, QUERN_FORECAST_SERIAL, "what is left of both");
    cr_assert_str_eq(forecast.bottleneck_system, "a");
}

/* -------------------------------------------------------------------------------------------- frames */

static void count_up(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

static void check_captured(uint32_t thread_count)
{
    quern_world *world = setup_world();
    const quern_component number = setup_component(world, "number", 8, 8);
    const quern_component wide = setup_component(world, "wide", 512, 8);
    const quern_component both[] = {number, wide};
    for (uint32_t i = 0; i < 3000; i++)
        setup_entity_with(world, both, 2);
    quern_schedule *schedule = setup_schedule(world);
    const quern_system system =
        make_system(schedule, "count", count_up, .terms = {quern_term_write(number)});
    quern_jobs *jobs = setup_jobs(thread_count);
    begin_another_capture();
    must(quern_schedule_run_captured(schedule, jobs, 0.1, capture));
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(capture->segments.count, 1);
    cr_assert_eq(capture->tasks.count, 1);
    cr_assert_str_eq(capture->tasks.items[0].name, "count");
    cr_assert_eq(capture->items_ns.count, stats.view_count);
    cr_assert_eq(capture->thread_count, thread_count);
    const quern_forecast one = forecast_with(&no_costs, 1);
    cr_assert_geq(one.frame_ns, forecast_with(&no_costs, 4).frame_ns);
    must_run(schedule, jobs); /* this frame is not captured */
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}

Test(forecast, a_frame_is_captured_chunk_by_chunk)
{
    check_captured(1);
    check_captured(3);
}

typedef struct looping {
    quern_jobs *jobs;
    _Atomic uint32_t item_count;
} looping;

static void count_items(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    looping *all = user_data;
    all->item_count += end - begin;
}

/* Runs a loop of ten items ten times. */
static void loop_inside(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    looping *all = user_data;
    for (uint32_t i = begin; i < end; i++)
        must(quern_jobs_parallel_for(all->jobs, 10, 1, count_items, all));
}

static void run_loops(quern_context *context)
{
    looping *all = quern_context_user_data(context);
    must(quern_jobs_parallel_for(all->jobs, 10, 1, loop_inside, all));
    must(quern_jobs_parallel_for(all->jobs, 25, 10, count_items, all));
    must(quern_jobs_parallel_for(all->jobs, 1, 0, count_items, all));
}

static void run_loops_once(quern_context *context, const quern_view *view)
{
    run_loops(context);
}

static void check_loops(uint32_t thread_count, uint32_t expected_count)
{
    quern_world *world = setup_world();
    quern_schedule *schedule = setup_schedule(world);
    looping all = {.jobs = setup_jobs(thread_count)};
    quern_system_def def = system_def("loops", run_loops_once);
    def.begin = def.end = run_loops;
    def.user_data = &all;
    setup_system(schedule, &def);
    begin_another_capture();
    must(quern_schedule_run_captured(schedule, all.jobs, 0.1, capture));
    cr_assert_eq(capture->loops.count, expected_count);
    static const uint32_t pieces[] = {10, 3, 1};
    for (uint32_t i = 0; i < expected_count; i++) /* before, itself, after */
        cr_assert_eq(capture->loops.items[i].piece_count, pieces[i % 3]);
    for (uint32_t part = 0; part < QUERN__TASK_PART_COUNT && expected_count > 0; part++)
        cr_assert_eq(capture->tasks.items[0].first_loop[part], 3 * part + 2);
    must_run(schedule, all.jobs);
    cr_assert_eq(capture->loops.count, expected_count, "it is not captured any more");
    cr_assert_eq(all.item_count, 2 * 3 * (100u + 25 + 1));
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(all.jobs);
    quern_world_destroy(world);
}

Test(forecast, loops_of_a_serial_system_are_captured_on_one_thread)
{
    check_loops(1, 9);
    check_loops(3, 0);
}

Test(forecast, costs_are_measured)
{
    quern_forecast_costs costs = {0};
    quern_jobs *jobs = setup_jobs(2);
    must(quern_forecast_measure_costs(jobs, &costs));
    cr_assert_gt(costs.steal_ns, 0);
    cr_assert_gt(costs.wake_ns, 0);
    cr_assert_geq(costs.bytes_per_ns_limit, 0);
    /* A cost is left as it is if the other thread is late each time, because the processors are busy. */
    for (uint32_t i = 0; i < 200 && (costs.steal_ns == quern__typical_costs.steal_ns ||
                                     costs.wake_ns == quern__typical_costs.wake_ns);
         i++)
        must(quern_forecast_measure_costs(jobs, &costs));
    cr_assert_neq(costs.steal_ns, quern__typical_costs.steal_ns);
    cr_assert_neq(costs.wake_ns, quern__typical_costs.wake_ns);
    quern_jobs_destroy(jobs);
    jobs = setup_jobs(1);
    must(quern_forecast_measure_costs(jobs, &costs));
    cr_assert_eq(costs.steal_ns, quern__typical_costs.steal_ns, "one thread cannot steal");
    quern_jobs_destroy(jobs);
}

Test(forecast, invalid_costs_are_rejected)
{
    static const double wrong[] = {-1, -1e-300, NAN, INFINITY, -INFINITY};
    static const size_t fields[] = {offsetof(quern_forecast_costs, steal_ns),
                                    offsetof(quern_forecast_costs, wake_ns),
                                    offsetof(quern_forecast_costs, bytes_per_ns_limit)};
    static const char *const names[] = {"steal_ns", "wake_ns", "bytes_per_ns_limit"};
    quern__capture_start_segment(capture, false, 0);
    add_task("a", 100, 1000);
    quern_forecast forecast = {.thread_count = 77};
    for (uint32_t i = 0; i < COUNT_OF(fields); i++)
        for (uint32_t k = 0; k < COUNT_OF(wrong); k++) {
            quern_forecast_costs costs = quern__typical_costs;
            memcpy((char *)&costs + fields[i], &wrong[k], sizeof wrong[k]);
            must_refuse(INVALID_ARGUMENT, NULL,
                        quern_frame_capture_forecast(capture, &costs, 4, &forecast));
            assert_message_has(names[i]);
        }
    cr_assert_eq(forecast.thread_count, 77);
}

Test(forecast, misuse_is_rejected)
{
    quern_frame_capture *empty;
    must(quern_frame_capture_create(NULL, &empty));
    quern_forecast forecast;
    quern_forecast_costs costs;
    must_refuse(NULL_ARGUMENT, NULL, quern_frame_capture_create(NULL, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_frame_capture_forecast(empty, &no_costs, 4, &forecast));
    must_refuse(NULL_ARGUMENT, NULL, quern_frame_capture_forecast(NULL, &no_costs, 4, &forecast));
    must_refuse(NULL_ARGUMENT, NULL, quern_frame_capture_forecast(empty, &no_costs, 4, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_frame_capture_forecast(empty, &no_costs, 0, &forecast));
    must_refuse(NULL_ARGUMENT, NULL, quern_forecast_measure_costs(NULL, &costs));
    must_refuse(NULL_ARGUMENT, NULL, quern_schedule_run_captured(NULL, NULL, 0, empty));
    assert_message_has("quern_schedule_run_captured");
    quern_frame_capture_destroy(empty);
    quern_frame_capture_destroy(NULL);
    cr_assert_str_eq(quern_forecast_bottleneck_string(QUERN_FORECAST_SERIAL), "a serial system");
    cr_assert_str_eq(quern_forecast_bottleneck_string((quern_forecast_bottleneck)99), "unknown");
}
