/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/frame/event_scene.h"

/* Events of exclusive systems and their sync points, and the order of events from different callbacks. */

TestSuite(event_exclusive, .init = open_world, .fini = close_world);

/* --------------------------------------------------------------------------------- exclusive systems */

static void emit_and_read_exclusively(quern_context *context)
{
    const Hit declared = {.number = 1}, plain = {.number = 2};
    quern_event_iterator it;
    cr_assert(quern_context_emit(context, hit, &declared, 1));
    must(quern_world_emit(quern_context_world(context), hit, &plain, 1)); /* published immediately */
    cr_assert(quern_context_events(context, hit, &it));
    while (quern_event_next(&it))
        see(a_seen, it.block.values, it.block.count);
}

Test(event_exclusive, exclusive_systems_emit_and_read)
{
    schedule = setup_schedule(world);
    quern_system_def exclusive = system_def("exclusive", NULL), late = reader_def("late", b_seen);
    exclusive.begin = emit_and_read_exclusively;
    exclusive.flags = QUERN_SYSTEM_EXCLUSIVE;
    exclusive.emits[0] = hit;
    exclusive.reads_events[0] = hit;
    setup_system(schedule, &exclusive);
    setup_system(schedule, &late);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u, "what it emits itself is new in its next run");
    cr_assert_eq(b_seen->count, 1u, "that at once; the other at the sync point");
    cr_assert_eq(b_seen->hits[0].number, 2u);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 2u);
    cr_assert_eq(a_seen->hits[0].number, 2u);
    cr_assert_eq(a_seen->hits[1].number, 1u);
}

/* ------------------------------------------------------------------------------- order within a system */

/* Emits the number of the callback: 1 in the condition, 2 in begin, 3 + ordinal in views, 9999 in end. */
static void emit_number(quern_context *context, uint64_t value)
{
    const Hit one = {.number = value};
    cr_assert(quern_context_emit(context, hit, &one, 1));
}

static bool emit_in_condition(quern_context *context)
{
    emit_number(context, 1);
    return true;
}

static void emit_in_begin(quern_context *context)
{
    emit_number(context, 2);
}

static void emit_in_view(quern_context *context, const quern_view *view)
{
    emit_number(context, 3 + view->ordinal);
}

static void emit_in_end(quern_context *context)
{
    emit_number(context, 9999);
}

Test(event_exclusive, condition_begin_views_and_end_emit_in_this_order)
{
    add_rows(5000);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        schedule = setup_phases(world, 2);
        quern_system_def def = system_def("emitter", emit_in_view), late = reader_def("late", a_seen);
        def.condition = emit_in_condition;
        def.begin = emit_in_begin;
        def.end = emit_in_end;
        def.terms[0] = quern_term_read(number);
        def.emits[0] = hit;
        late.phase = 1;
        setup_system(schedule, &def);
        setup_system(schedule, &late);
        a_seen->count = 0;
        must_run(schedule, jobs);
        cr_assert_gt(a_seen->count, 5u);
        expect_numbers(a_seen, 0, a_seen->count - 1, 1);
        cr_assert_eq(a_seen->hits[a_seen->count - 1].number, 9999u);
        quern_schedule_destroy(schedule);
        quern_jobs_destroy(jobs);
    }
    schedule = NULL;
}

/* ----------------------------------------------------------------------- sync points of exclusive systems */

static bool refuse_to_run(quern_context *context)
{
    return false;
}

static uint64_t rows_behind;

static void count_rows_behind(quern_context *context, const quern_view *view)
{
    rows_behind += view->count;
}

static void create_and_emit(quern_context *context)
{
    (void)record_entity_with(quern_context_commands(context), &number, NULL, 1);
    emit_number(context, 7);
}

/* Adds an exclusive system between one that creates and emits, and two that read. how: 0, it runs; 1, it is
 * disabled; 2, its condition returns false; 3, its interval has not passed. */
static void open_around_exclusive(uint32_t how)
{
    schedule = setup_schedule(world);
    quern_system_def before = system_def("before", NULL), between = system_def("between", NULL);
    quern_system_def rows = system_def("rows", count_rows_behind), events = reader_def("events", a_seen);
    before.begin = create_and_emit;
    before.emits[0] = hit;
    between.begin = idle_callback;
    between.flags = QUERN_SYSTEM_EXCLUSIVE;
    if (how == 2) between.condition = refuse_to_run;
    if (how == 3) between.interval_seconds = 1000;
    rows.terms[0] = quern_term_read(number);
    setup_system(schedule, &before);
    const quern_system exclusive = setup_system(schedule, &between);
    setup_system(schedule, &rows);
    setup_system(schedule, &events);
    must(quern_schedule_set_system_enabled(schedule, exclusive, how != 1));
}

Test(event_exclusive, sync_point_before_exclusive_system_happens_even_if_system_does_not_run)
{
    for (uint32_t how = 0; how < 4; how++) {
        open_around_exclusive(how);
        rows_behind = a_seen->count = 0;
        must_run(schedule, NULL);
        cr_assert_eq(rows_behind, how + 1, "%u: %llu rows", how, (unsigned long long)rows_behind);
        cr_assert_eq(a_seen->count, 1u, "%u", how);
        quern_schedule_destroy(schedule);
    }
    schedule = NULL;
}

/* Events of the first exclusive system are readable after the second one, and not before. */
Test(event_exclusive, events_of_exclusive_system_are_published_at_next_sync_point)
{
    schedule = setup_schedule(world);
    quern_system_def first = system_def("first", NULL), second = system_def("second", NULL);
    quern_system_def soon = reader_def("soon", a_seen), late = reader_def("late", b_seen);
    first.begin = create_and_emit;
    first.emits[0] = hit;
    second.begin = idle_callback;
    first.flags = second.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &first);
    setup_system(schedule, &soon);
    setup_system(schedule, &second);
    setup_system(schedule, &late);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u);
    cr_assert_eq(b_seen->count, 1u);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 1u, "that of the frame before");
    cr_assert_eq(b_seen->count, 2u);
}

/* Emits three blocks of the event that it reads, and continues to read after each block. */
static void read_while_emitting(quern_context *context)
{
    static const Hit none[3];
    quern_event_iterator it;
    uint32_t seen_count = 0;
    a_seen->run_count++;
    cr_assert(quern_context_events(context, hit, &it));
    for (uint32_t i = 0; i < 3; i++) {
        const quern_result result = quern_world_emit(quern_context_world(context), hit, none, 3);
        cr_assert_eq(result, QUERN_OK, "nothing is lost while the system reads");
        if (!quern_event_next(&it)) continue;
        seen_count += it.block.count;
        see(a_seen, it.block.values, it.block.count);
    }
    cr_assert_eq(quern_context_event_count(context, hit), seen_count);
}

Test(event_exclusive, limit_retains_events_that_exclusive_system_reads_while_it_emits)
{
    const quern_event_def def = {.name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = 1};
    must(quern_event_register(world, &def, &hit));
    schedule = setup_schedule(world);
    make_system(schedule, "exclusive", NULL, .begin = read_while_emitting, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .reads_events = {hit});
    for (uint32_t i = 0; i < 4; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->run_count, 4u);
    cr_assert_eq(a_seen->count, 3u * 9, "each run reads what the run before it emitted");
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.lost_count, 0u);
    cr_assert_eq(stats.waiting_count, 9u);
}
