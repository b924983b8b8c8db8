/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <quern/commands.h>
#include <quern/event.h>
#include <quern/parallel.h>

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Events of systems: who may emit and read, what is seen when, and what becomes of it when something
 * fails. */

typedef struct Hit {
    quern_entity target;
    uint64_t number;
} Hit;

enum { MOST_SEEN = 200000 };

/* What a reader has seen in all its runs; of systems that run one at a time. */
typedef struct seen {
    uint32_t count, run_count;
    Hit hits[MOST_SEEN];
} seen;

static quern_world *world;
static quern_event hit, other;
static quern_component number;
static quern_schedule *schedule;
static seen *a_seen, *b_seen;
static captured_reports reports;

static void open_world(void)
{
    world = setup_world();
    must(QUERN_EVENT_REGISTER_FIELDS(world, &hit, Hit, target, number));
    must(quern_event_register(world, &(quern_event_def){.name = "other", .size_bytes = 8}, &other));
    number = setup_component(world, "number", 8, 8);
    a_seen = calloc(1, sizeof *a_seen);
    b_seen = calloc(1, sizeof *b_seen);
}

static void close_world(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    quern_world_destroy(world);
    free(a_seen);
    free(b_seen);
}

TestSuite(event_frame, .init = open_world, .fini = close_world);

/* Entities with the numbers 0, 1, 2 ... */
static void add_rows(uint32_t count)
{
    for (uint64_t i = 0; i < count; i++)
        must(quern_entity_create_with(world, &number, (const void *const[]){&i}, 1, NULL));
}

/* An event for each entity, and its number. */
static void emit_rows(quern_context *context, const quern_view *view)
{
    enum { SOME = 5 };
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint32_t i = 0, count = 1; i < view->count; i += count, count = 1) {
        const Hit value = {.target = view->entities[i], .number = numbers[i]};
        if (numbers[i] % 3 == 0) {
            cr_assert(quern_emit(emitter, &value));
        } else if (numbers[i] % 3 == 1) {
            Hit *place = QUERN_EMIT(emitter, Hit);
            cr_assert_not_null(place);
            *place = value;
        } else {
            const uint32_t left = view->count - i, most = left < SOME ? left : SOME;
            Hit *places = QUERN_EMIT_SOME(emitter, most, &count, Hit);
            cr_assert_not_null(places);
            cr_assert(count > 0 && count <= most);
            for (uint32_t k = 0; k < count; k++)
                places[k] = (Hit){.target = view->entities[i + k], .number = numbers[i + k]};
        }
    }
}

static quern_system_def emitter_def(const char *name)
{
    quern_system_def def = system_def(name, emit_rows);
    def.terms[0] = quern_term_read(number);
    def.emits[0] = hit;
    return def;
}

/* Emits so many: the number is the frame times a thousand, and so on. */
static void emit_some(quern_context *context)
{
    const uint32_t *count = quern_context_user_data(context);
    for (uint32_t i = 0; i < *count; i++) {
        const Hit value = {.number = quern_context_frame_index(context) * 1000 + i};
        cr_assert(quern_context_emit(context, hit, &value, 1));
    }
}

static void see(seen *all, const Hit *hits, uint32_t count)
{
    cr_assert_leq(all->count + count, (uint32_t)MOST_SEEN);
    memcpy(all->hits + all->count, hits, count * sizeof *hits);
    all->count += count;
}

/* The run of a system that reads. */
static void read_all(quern_context *context, const quern_view *view)
{
    seen *all = quern_context_user_data(context);
    quern_event_iterator it;
    uint64_t count = quern_context_event_count(context, hit);
    (void)view;
    cr_assert(quern_context_events(context, hit, &it));
    while (quern_event_next(&it)) {
        see(all, it.block.values, it.block.count);
        count -= it.block.count;
    }
    cr_assert_eq(count, 0u);
    cr_assert_not(quern_event_next(&it));
    all->run_count++;
}

static quern_system_def reader_def(const char *name, seen *all)
{
    quern_system_def def = system_def(name, read_all);
    def.reads_events[0] = hit;
    def.user_data = all;
    return def;
}

static void expect_numbers(const seen *all, uint32_t first, uint32_t count, uint64_t number_of_first)
{
    cr_assert_geq(all->count, first + count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(all->hits[first + i].number, number_of_first + i, "at %u", first + i);
}

/* ------------------------------------------------------------------------------------- order and time */

Test(event_frame, events_come_in_the_order_of_systems_views_and_emission_at_any_thread_count)
{
    enum { ROWS = 20000 };
    add_rows(ROWS);
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++)
        for (uint32_t style = 0; style < STYLE_COUNT; style++) {
            quern_jobs *jobs = setup_jobs(pool_threads[pool]);
            schedule = setup_schedule_as(world, schedule_style(style), 2);
            quern_system_def one = emitter_def("one"), two = emitter_def("two"),
                             reader = reader_def("r", a_seen);
            reader.phase = 1;
            setup_system(schedule, &one);
            setup_system(schedule, &two);
            setup_system(schedule, &reader);
            a_seen->count = 0;
            must_run(schedule, jobs);
            cr_assert_eq(a_seen->count, 2u * ROWS);
            cr_assert_eq(stats_of_frame(schedule).event_count, 2u * ROWS);
            expect_numbers(a_seen, 0, ROWS, 0);
            expect_numbers(a_seen, ROWS, ROWS, 0);
            must_run(schedule, jobs);
            cr_assert_eq(a_seen->count, 4u * ROWS, "each once");
            expect_numbers(a_seen, 2 * ROWS, ROWS, 0);
            quern_schedule_destroy(schedule);
            quern_jobs_destroy(jobs);
        }
    schedule = NULL;
}

Test(event_frame, what_is_emitted_shows_after_the_sync_point_and_not_before)
{
    schedule = setup_phases(world, 2);
    uint32_t count = 3;
    quern_system_def emitter = system_def("emitter", NULL), early = reader_def("early", a_seen),
                     late = reader_def("late", b_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    late.phase = 1;
    setup_system(schedule, &emitter);
    setup_system(schedule, &early); /* behind the emitter, in its phase */
    setup_system(schedule, &late);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u);
    cr_assert_eq(b_seen->count, 3u);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 3u);
    expect_numbers(a_seen, 0, 3, 0);
    expect_numbers(b_seen, 3, 3, 1000);
}

Test(event_frame, a_reader_that_is_disabled_loses_nothing)
{
    schedule = setup_phases(world, 2);
    uint32_t count = 5;
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("reader", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    reader.phase = 1;
    setup_system(schedule, &emitter);
    quern_system system = setup_system(schedule, &reader);
    must(quern_schedule_set_enabled(schedule, system, false));
    for (uint32_t i = 0; i < 4; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u);
    must(quern_schedule_set_enabled(schedule, system, true));
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 25u);
    for (uint32_t i = 0; i < 5; i++)
        expect_numbers(a_seen, i * 5, 5, i * 1000);
    quern_event_stats stats;
    must_run(schedule, NULL);
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_leq(stats.waiting_count, 5u);
}

static bool says_no(quern_context *context)
{
    quern_event_iterator it;
    const bool is_odd = quern_context_frame_index(context) % 2 == 1;
    cr_assert(quern_context_events(context, hit, &it)); /* it may look */
    cr_assert(quern_event_next(&it));
    return is_odd;
}

Test(event_frame, a_reader_that_is_held_back_sees_all_when_it_runs)
{
    schedule = setup_phases(world, 2);
    uint32_t count = 2;
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("slow", a_seen),
                     picky = reader_def("picky", b_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    reader.phase = picky.phase = 1;
    reader.interval_seconds = 10;
    picky.condition = says_no;
    setup_system(schedule, &emitter);
    setup_system(schedule, &reader);
    setup_system(schedule, &picky);
    for (uint32_t i = 0; i < 20; i++)
        must(quern_schedule_run(schedule, NULL, 1));
    cr_assert_eq(a_seen->run_count, 2u);
    cr_assert_eq(a_seen->count, 40u);
    cr_assert_eq(b_seen->run_count, 10u);
    cr_assert_eq(b_seen->count, 40u);
}

Test(event_frame, beyond_the_limit_the_frame_names_the_reader)
{
    quern_event spark;
    must(quern_event_register(
        world, &(quern_event_def){.name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = 1000},
        &spark));
    hit = spark;
    schedule = setup_phases(world, 2);
    uint32_t count = 10; /* a block for each frame: 192 bytes */
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("sleeper", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = spark;
    reader.phase = 1;
    setup_system(schedule, &emitter);
    quern_system system = setup_system(schedule, &reader);
    must(quern_schedule_set_enabled(schedule, system, false));
    for (uint32_t i = 0; i < 5; i++)
        must_run(schedule, NULL);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("10 events 'spark'");
    assert_message_has("'sleeper'");
    assert_message_has("1000 bytes");
    must(quern_schedule_set_enabled(schedule, system, true));
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT); /* this frame publishes before it runs */
    cr_assert_eq(a_seen->count, 50u);
    must_run(schedule, NULL);
}

/* --------------------------------------------------------------------------------------------- items */

typedef struct view_log {
    uint32_t view_count;
    uint64_t hash;
} view_log;

static _Atomic uint64_t item_sum, item_count, item_views;

static void add_items(quern_context *context, const quern_view *view)
{
    const Hit *hits = QUERN_EVENTS(view, Hit);
    cr_assert_not_null(hits);
    cr_assert_eq((const void *)hits, quern_view_events(view));
    cr_assert_null(view->entities);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->count; i++)
        sum += hits[i].number;
    item_sum += sum;
    item_count += view->count;
    item_views++;
    uint64_t *partial = quern_context_partial(context);
    partial[0] = hits[0].number;
    partial[1] = view->count;
}

/* The views are in order, and cut where the emitting system alone says. */
static void log_items(quern_context *context)
{
    view_log *log = quern_context_user_data(context);
    log->view_count = quern_context_partial_count(context);
    log->hash = 0;
    for (uint32_t i = 0; i < log->view_count; i++) {
        const uint64_t *partial = quern_context_partial_at(context, i);
        log->hash = (log->hash ^ partial[0] ^ partial[1] << 32) * 0x9E3779B97F4A7C15u;
    }
}

Test(event_frame, items_are_views_of_events_and_the_same_at_any_thread_count)
{
    enum { ROWS = 30000 };
    add_rows(ROWS);
    view_log first = {0};
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++)
        for (uint32_t style = 0; style < STYLE_COUNT; style++) {
            quern_jobs *jobs = setup_jobs(pool_threads[pool]);
            schedule = setup_schedule_as(world, schedule_style(style), 2);
            quern_system_def one = emitter_def("one"), two = emitter_def("two"),
                             items = system_def("items", add_items);
            view_log log = {0};
            items.phase = 1;
            items.items = hit;
            items.partial_bytes = 16;
            items.end = log_items;
            items.user_data = &log;
            if (style % 2 == 1) items.flags = QUERN_SYSTEM_SERIAL;
            setup_system(schedule, &one);
            setup_system(schedule, &two);
            quern_system system = setup_system(schedule, &items);
            for (uint32_t frame = 0; frame < 3; frame++) {
                item_sum = item_count = item_views = 0;
                must_run(schedule, jobs);
                cr_assert_eq(item_count, 2u * ROWS);
                cr_assert_eq(item_sum, (uint64_t)ROWS * (ROWS - 1));
                cr_assert_eq(item_views, log.view_count);
                if (first.view_count == 0) first = log;
                cr_assert_eq(log.view_count, first.view_count);
                cr_assert_eq(log.hash, first.hash);
                quern_system_stats stats;
                must(quern_schedule_get_system_stats(schedule, system, &stats));
                cr_assert_eq(stats.view_count, log.view_count);
                cr_assert_eq(stats.entity_count, 2u * ROWS);
            }
            cr_assert_gt(first.view_count, 2u * ROWS / 1020u);
            quern_schedule_destroy(schedule);
            quern_jobs_destroy(jobs);
        }
    schedule = NULL;
}

static void create_for_items(quern_context *context, const quern_view *view)
{
    const Hit *hits = QUERN_EVENTS(view, Hit);
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(quern_commands_create_with(quern_context_commands(context), &number,
                                             (const void *const[]){&hits[i].number}, 1)
                      .bits);
}

Test(event_frame, commands_of_items_are_applied_in_their_order)
{
    enum { COUNT = 3000 };
    uint64_t hash = 0;
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        quern_world *again = setup_world();
        quern_component numbers = setup_component(again, "number", 8, 8);
        quern_event event;
        must(QUERN_EVENT_REGISTER_FIELDS(again, &event, Hit, target, number));
        number = numbers;
        quern_jobs *jobs = setup_jobs(pool_threads[pool]);
        quern_schedule *own = setup_schedule(again);
        quern_system_def items = system_def("items", create_for_items);
        items.items = event;
        setup_system(own, &items);
        for (uint64_t i = 0; i < COUNT; i++)
            must(quern_world_emit(again, event, &(Hit){.number = i}, 1));
        must_run(own, jobs);
        must_run(own, jobs);
        cr_assert_eq(stats_of_world(again).entity_count, (uint64_t)COUNT, "each once");
        if (hash == 0) hash = quern_world_hash(again);
        cr_assert_eq(quern_world_hash(again), hash);
        quern_schedule_destroy(own);
        quern_jobs_destroy(jobs);
        quern_world_destroy(again);
    }
}

/* ------------------------------------------------------------------------------------ who else may */

static void emit_and_read_exclusively(quern_context *context)
{
    const Hit declared = {.number = 1}, plain = {.number = 2};
    quern_event_iterator it;
    cr_assert(quern_context_emit(context, hit, &declared, 1));
    must(quern_world_emit(quern_context_world(context), hit, &plain, 1)); /* at once */
    cr_assert(quern_context_events(context, hit, &it));
    while (quern_event_next(&it))
        see(a_seen, it.block.values, it.block.count);
}

Test(event_frame, exclusive_systems_emit_and_read)
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

/* Emits the number of the callback: 1 in the condition, 2 in begin, 3 and the ordinal in views, 9999 in end. */
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

Test(event_frame, condition_begin_views_and_end_emit_in_this_order)
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
    (void)context;
    return false;
}

static uint64_t rows_behind;

static void count_rows_behind(quern_context *context, const quern_view *view)
{
    (void)context;
    rows_behind += view->count;
}

static void create_and_emit(quern_context *context)
{
    (void)quern_commands_create_with(quern_context_commands(context), &number, NULL, 1);
    emit_number(context, 7);
}

/* An exclusive system between one that creates and emits, and two that look. how: 0, it runs; 1, it is disabled; 2,
 * its condition returns false; 3, its interval has not passed. */
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
    must(quern_schedule_set_enabled(schedule, exclusive, how != 1));
}

Test(event_frame, the_sync_point_of_an_exclusive_system_takes_place_also_if_it_does_not_run)
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

/* What the first exclusive system emits is readable behind the second one, and not before. */
Test(event_frame, what_an_exclusive_system_emits_waits_for_the_next_sync_point)
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

/* Emits three blocks of the event that it reads, and goes on reading after each. */
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

Test(event_frame, limit_spares_what_an_exclusive_system_reads_while_it_emits)
{
    const quern_event_def def = {.name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = 1};
    must(quern_event_register(world, &def, &hit));
    schedule = setup_schedule(world);
    quern_system_def exclusive = system_def("exclusive", NULL);
    exclusive.begin = read_while_emitting;
    exclusive.flags = QUERN_SYSTEM_EXCLUSIVE;
    exclusive.reads_events[0] = hit;
    setup_system(schedule, &exclusive);
    for (uint32_t i = 0; i < 4; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->run_count, 4u);
    cr_assert_eq(a_seen->count, 3u * 9, "each run reads what the run before it emitted");
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.lost_count, 0u);
    cr_assert_eq(stats.waiting_count, 9u);
}

static quern_event_iterator kept_iterator;

static void keep_iterator(quern_context *context)
{
    if (a_seen->run_count++ == 0) quern_context_events(context, hit, &kept_iterator);
}

Test(event_frame, iterator_that_is_kept_ends_when_its_events_are_gone)
{
    schedule = setup_schedule(world);
    quern_system_def reader = system_def("reader", NULL);
    reader.begin = keep_iterator;
    reader.reads_events[0] = hit;
    setup_system(schedule, &reader);
    must(quern_world_emit(world, hit, &(Hit){.number = 1}, 1));
    must_run(schedule, NULL);
    must(quern_world_emit(world, hit, &(Hit){.number = 2}, 1));
    must_run(schedule, NULL);
    cr_assert_not(quern_event_next(&kept_iterator));
    cr_assert_null(kept_iterator.block.values);
}

/* A reader of plain code in an exclusive system that emits. */
static quern_event_reader *held_reader;

static void take_and_emit(quern_context *context)
{
    quern_event_block block;
    a_seen->run_count++;
    if (quern_event_reader_next(held_reader, &block)) see(a_seen, block.values, block.count);
    cr_assert(quern_context_emit(context, hit, &(Hit){.number = a_seen->run_count}, 1));
}

Test(event_frame, block_given_to_plain_code_before_a_frame_is_not_lost_in_it)
{
    const quern_event_def def = {
        .name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = sizeof(Hit) + 32};
    must(quern_event_register(world, &def, &hit));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit}, &held_reader));
    schedule = setup_schedule(world);
    quern_system_def exclusive = system_def("exclusive", NULL);
    exclusive.begin = take_and_emit;
    exclusive.flags = QUERN_SYSTEM_EXCLUSIVE;
    exclusive.emits[0] = hit;
    setup_system(schedule, &exclusive);
    for (uint32_t i = 0; i < 5; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 4u);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(a_seen->hits[i].number, i + 1);
    cr_assert_eq(quern_event_reader_lost_count(held_reader), 0u);
    quern_event_reader_destroy(held_reader);
}

Test(event_frame, plain_code_reads_what_systems_emit_and_the_other_way_round)
{
    schedule = setup_schedule(world);
    uint32_t count = 4;
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("reader", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    quern_event_reader *plain;
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit, .name = "ui"}, &plain));
    setup_system(schedule, &reader);
    setup_system(schedule, &emitter);
    must(quern_world_emit(world, hit, &(Hit){.number = 77}, 1));
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 1u);
    quern_event_block block;
    while (quern_event_reader_next(plain, &block))
        see(b_seen, block.values, block.count);
    cr_assert_eq(b_seen->count, 5u);
    cr_assert_eq(b_seen->hits[0].number, 77u);
    expect_numbers(b_seen, 1, 4, 0);
    quern_event_reader_destroy(plain);
}

Test(event_frame, fixed_steps_publish_and_read_each)
{
    schedule = setup_schedule(world);
    must(quern_schedule_set_fixed_step(schedule, 0, 1, 10));
    uint32_t count = 2;
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("reader", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    setup_system(schedule, &reader);
    setup_system(schedule, &emitter);
    must(quern_schedule_run(schedule, NULL, 5));
    cr_assert_eq(a_seen->run_count, 5u);
    cr_assert_eq(a_seen->count, 8u);
    must(quern_schedule_run(schedule, NULL, 1));
    cr_assert_eq(a_seen->count, 10u);
}

Test(event_frame, schedules_of_one_world_share_events)
{
    quern_schedule *first = setup_schedule(world), *second = setup_schedule(world);
    uint32_t count = 3;
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("reader", a_seen),
                     own = reader_def("own", b_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    setup_system(first, &emitter);
    setup_system(first, &own);
    setup_system(second, &reader);
    setup_system(second, &emitter);
    must_run(first, NULL);
    must_run(second, NULL);
    must_run(first, NULL);
    must_run(second, NULL);
    cr_assert_eq(a_seen->count, 9u);
    cr_assert_eq(b_seen->count, 6u);
    quern_schedule_destroy(first); /* its reader holds nothing back any more */
    must_run(second, NULL);
    must_run(second, NULL);
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.reader_count, 1u);
    cr_assert_eq(stats.waiting_count, 3u);
    quern_schedule_destroy(second);
}

/* The reader's frames free what the emitter's block holds, behind its back. */
Test(event_frame, read_by_another_schedule_they_take_no_more_memory_with_time)
{
    quern_schedule *writing = setup_schedule(world), *reading = setup_schedule(world);
    uint32_t count = 900; /* a run does not fit what four of them leave of a block */
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("reader", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    setup_system(writing, &emitter);
    setup_system(reading, &reader);
    for (uint32_t frame = 0; frame < 100; frame++) {
        must_run(writing, NULL);
        must_run(reading, NULL);
    }
    cr_assert_eq(a_seen->count, 100 * count);
    cr_assert_leq(stats_of_world(world).event_bytes, 2 * 65536u);
    quern_schedule_destroy(writing);
    quern_schedule_destroy(reading);
}

/* ----------------------------------------------------------------------------------- handles and hooks */

static void create_and_tell(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity made = quern_commands_create_with(quern_context_commands(context), &number,
                                                             (const void *const[]){&numbers[i]}, 1);
        cr_assert(quern_entity_is_provisional(made));
        cr_assert(quern_emit(emitter, &(Hit){.target = made, .number = numbers[i]}));
    }
}

Test(event_frame, provisional_handles_in_described_fields_become_real)
{
    enum { ROWS = 5000 };
    add_rows(ROWS);
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        quern_jobs *jobs = setup_jobs(pool_threads[pool]);
        schedule = setup_phases(world, 2);
        quern_system_def maker = system_def("maker", create_and_tell), plain = emitter_def("plain"),
                         reader = reader_def("reader", a_seen);
        maker.terms[0] = quern_term_read(number);
        maker.emits[0] = hit;
        reader.phase = 1;
        setup_system(schedule, &plain);
        setup_system(schedule, &maker);
        setup_system(schedule, &reader);
        a_seen->count = 0;
        const uint64_t before = stats_of_world(world).entity_count;
        must_run(schedule, jobs);
        cr_assert_eq(a_seen->count, 2 * before);
        cr_assert_eq(stats_of_world(world).entity_count, 2 * before);
        for (uint32_t i = 0; i < a_seen->count; i++) {
            const uint64_t *value = quern_entity_get(world, a_seen->hits[i].target, number);
            cr_assert_not_null(value, "%u: %s", i, quern_error_message());
            cr_assert_eq(*value, a_seen->hits[i].number);
        }
        must_run(schedule, jobs); /* nothing is half done after that many, either */
        quern_schedule_destroy(schedule);
        quern_jobs_destroy(jobs);
        schedule = NULL;
        must(quern_schedule_create(world, NULL, &schedule));
        quern_schedule_destroy(schedule);
        schedule = NULL;
        if (before > ROWS) break;
    }
}

/* Events of two types, each of which names an entity that the callback creates; the second one also names the
 * first entity of the view. */
static quern_event birth;

static void create_two_and_tell(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_commands *commands = quern_context_commands(context);
    quern_emitter *hits = quern_context_emitter(context, hit),
                  *births = quern_context_emitter(context, birth);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t values[] = {2 * numbers[i], 2 * numbers[i] + 1};
        quern_entity made[2];
        for (uint32_t k = 0; k < 2; k++)
            made[k] = quern_commands_create_with(commands, &number, (const void *const[]){&values[k]}, 1);
        cr_assert(quern_emit(births, &(Hit){.target = made[1], .number = values[1]}));
        cr_assert(quern_emit(hits, &(Hit){.target = made[0], .number = values[0]}));
    }
}

static void expect_real(const seen *what, uint32_t count, uint32_t odd)
{
    cr_assert_eq(what->count, count);
    for (uint32_t i = 0; i < what->count; i++) {
        const uint64_t *value = quern_entity_get(world, what->hits[i].target, number);
        cr_assert_not_null(value, "%u: %s", i, quern_error_message());
        cr_assert_eq(*value, what->hits[i].number);
        cr_assert_eq(*value % 2, odd);
    }
}

static void read_births(quern_context *context)
{
    quern_event_iterator it;
    cr_assert(quern_context_events(context, birth, &it));
    while (quern_event_next(&it))
        see(b_seen, it.block.values, it.block.count);
}

Test(event_frame, provisional_handles_of_two_event_types_become_real_in_one_sync_point)
{
    enum { ROWS = 700 };
    must(quern_event_register(world,
                              &(quern_event_def){.name = "birth",
                                                 .size_bytes = sizeof(Hit),
                                                 .alignment_bytes = 8,
                                                 .fields = QUERN_FIELDS(Hit, target, number)},
                              &birth));
    add_rows(ROWS);
    for (uint32_t pool = 0; pool < 2; pool++) {
        const uint32_t before = (uint32_t)stats_of_world(world).entity_count;
        quern_jobs *jobs = setup_jobs(1 + 2 * pool);
        schedule = setup_phases(world, 2);
        quern_system_def maker = system_def("maker", create_two_and_tell),
                         reader = reader_def("reader", a_seen), births = system_def("births", NULL);
        maker.terms[0] = quern_term_read(number);
        maker.emits[0] = hit;
        maker.emits[1] = birth;
        births.begin = read_births;
        births.reads_events[0] = birth;
        reader.phase = births.phase = 1;
        setup_system(schedule, &maker);
        setup_system(schedule, &reader);
        setup_system(schedule, &births);
        a_seen->count = b_seen->count = 0;
        must_run(schedule, jobs);
        cr_assert_eq(stats_of_frame(schedule).event_count, 2u * before);
        expect_real(a_seen, before, 0);
        expect_real(b_seen, before, 1);
        quern_schedule_destroy(schedule);
        schedule = NULL;
        quern_jobs_destroy(jobs);
    }
}

static quern_entity strange_handle;

static void make_strange(quern_context *context)
{
    strange_handle = quern_commands_create(quern_context_commands(context));
}

static void tell_strange(quern_context *context)
{
    cr_assert(quern_context_emit(context, hit, &(Hit){.target = strange_handle}, 1));
}

Test(event_frame, the_provisional_handle_of_another_callback_is_reported_with_checks)
{
    schedule = setup_schedule(world);
    quern_system_def maker = system_def("maker", NULL), teller = system_def("teller", NULL);
    maker.begin = make_strange;
    teller.begin = tell_strange;
    teller.emits[0] = hit;
    setup_system(schedule, &maker);
    setup_system(schedule, &teller);
    capture_reports(&reports);
    must_run(schedule, NULL);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
    if (quern_has_checks()) cr_assert_not_null(strstr(reports.last, "'teller'"), "%s", reports.last);
}

static tracked_counts counts;
static quern_event tracked_event;

static void copy_tracked(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++) {
        tracked_construct((tracked *)targets + i, ((const tracked *)sources)[i].payload, &counts);
        if (!tracked_is_live((const tracked *)sources + i)) counts.broken_count++;
    }
}

static void destroy_tracked(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)values + i, &counts);
}

static void emit_tracked(quern_context *context, const quern_view *view)
{
    quern_emitter *emitter = quern_context_emitter(context, tracked_event);
    for (uint32_t i = 0; i < view->count; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        cr_assert(quern_emit_copy(emitter, &value));
        tracked_destroy(&value, &counts);
        tracked *place = QUERN_EMIT(emitter, tracked);
        tracked_construct(place, i, &counts); /* as if it were handed over */
        uint32_t count;
        tracked *places = QUERN_EMIT_SOME(emitter, 3, &count, tracked);
        for (uint32_t k = 0; k < count; k++)
            tracked_construct(&places[k], i, &counts);
    }
}

static void read_tracked(quern_context *context, const quern_view *view)
{
    const tracked *values = QUERN_EVENTS(view, tracked);
    (void)context;
    for (uint32_t i = 0; i < view->count; i++)
        if (!tracked_is_live(&values[i])) counts.broken_count++;
}

Test(event_frame, values_with_hooks_are_destroyed_when_they_have_been_seen)
{
    add_rows(3000);
    must(quern_event_register(
        world,
        &(quern_event_def){.name = "tracked",
                           .size_bytes = sizeof(tracked),
                           .alignment_bytes = _Alignof(tracked),
                           .type_name = "tracked",
                           .hooks = {.copy = copy_tracked, .destroy = destroy_tracked}},
        &tracked_event));
    quern_jobs *jobs = setup_jobs(3);
    schedule = setup_phases(world, 2);
    quern_system_def emitter = system_def("emitter", emit_tracked),
                     reader = system_def("reader", read_tracked);
    emitter.terms[0] = quern_term_read(number);
    emitter.emits[0] = tracked_event;
    reader.items = tracked_event;
    reader.phase = 1;
    setup_system(schedule, &emitter);
    setup_system(schedule, &reader);
    for (uint32_t i = 0; i < 3; i++)
        must_run(schedule, jobs);
    cr_assert_leq(tracked_live_count(&counts), 15000u);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    quern_jobs_destroy(jobs);
    must(quern_world_trim(world));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
}

/* ------------------------------------------------------------------------------------ several at a time */

enum { MANY_EVENTS = 5000 };

static void emit_singly(quern_context *context)
{
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint64_t i = 0; i < MANY_EVENTS; i++)
        cr_assert(quern_emit(emitter, &(Hit){.number = i}));
}

static void emit_together(quern_context *context)
{
    quern_emitter *emitter = quern_context_emitter(context, hit);
    uint32_t count = 1;
    cr_assert_null(QUERN_EMIT_SOME(emitter, 0, &count, Hit));
    cr_assert_eq(count, 0u);
    for (uint64_t i = 0; i < MANY_EVENTS; i += count) {
        Hit *places = QUERN_EMIT_SOME(emitter, (uint32_t)(MANY_EVENTS - i), &count, Hit);
        cr_assert_not_null(places);
        for (uint64_t k = 0; k < count; k++)
            places[k] = (Hit){.number = i + k};
    }
}

/* As they were emitted by one frame, with where blocks end. */
static uint64_t hash_of_events(quern_system_callback *emit)
{
    quern_event_reader *reader;
    quern_event_block block;
    uint64_t hash = 0;
    quern_system_def def = system_def("emitter", NULL);
    def.begin = emit;
    def.emits[0] = hit;
    schedule = setup_schedule(world);
    setup_system(schedule, &def);
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit}, &reader));
    must_run(schedule, NULL);
    uint32_t count = 0;
    for (; quern_event_reader_next(reader, &block); count += block.count) {
        for (uint32_t i = 0; i < block.count; i++)
            cr_assert_eq(((const Hit *)block.values)[i].number, count + i);
        hash = hash * 31 + block.count;
    }
    cr_assert_eq(count, (uint32_t)MANY_EVENTS);
    quern_event_reader_destroy(reader);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    return hash;
}

Test(event_frame, several_at_a_time_are_cut_into_the_blocks_of_single_ones)
{
    cr_assert_eq(hash_of_events(emit_together), hash_of_events(emit_singly));
}

/* --------------------------------------------------------------------------------------------- misuse */

static void assert_reported(const char *words)
{
    const uint32_t count = quern_has_checks() ? reports.assert_count : reports.log_count;
    cr_assert_eq(count, 1u, "%u reports for: %s (%s)", count, words, reports.last);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
}

/* A frame of one callback that is refused something, with these words. */
static void expect_refusal(quern_system_callback *begin, const quern_system_def *as, const char *words)
{
    quern_system_def def = as != NULL ? *as : system_def("culprit", NULL);
    def.begin = begin;
    schedule = setup_schedule(world);
    setup_system(schedule, &def);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'culprit'");
    assert_reported(words);
    quern_schedule_destroy(schedule);
    schedule = NULL;
}

static void emit_undeclared(quern_context *context)
{
    cr_assert_null(quern_context_emitter(context, hit));
    cr_assert_not(quern_context_emit(context, hit, &(Hit){.number = 1}, 1));
    cr_assert_not(quern_emit((quern_emitter *)NULL, &(Hit){.number = 1}));
    cr_assert_null(QUERN_EMIT((quern_emitter *)NULL, Hit));
    uint32_t count = 1;
    cr_assert_null(QUERN_EMIT_SOME((quern_emitter *)NULL, 1, &count, Hit));
    cr_assert_eq(count, 0u);
}

static void read_undeclared(quern_context *context)
{
    quern_event_iterator it;
    cr_assert_not(quern_context_events(context, hit, &it));
    cr_assert_not(quern_event_next(&it));
    cr_assert_eq(quern_context_event_count(context, hit), 0u);
}

static void emit_unknown(quern_context *context)
{
    cr_assert_null(quern_context_emitter(context, (quern_event){0}));
}

static void emit_null(quern_context *context)
{
    cr_assert_not(quern_context_emit(context, hit, NULL, 1));
    cr_assert(quern_context_emit(context, hit, NULL, 0));
}

static void emit_uncounted(quern_context *context)
{
    cr_assert_null(QUERN_EMIT_SOME(quern_context_emitter(context, hit), 1, NULL, Hit));
}

static void emit_as_another_type(quern_context *context)
{
    cr_assert_null(QUERN_EMIT(quern_context_emitter(context, hit), uint32_t));
}

Test(event_frame, what_is_not_declared_is_refused)
{
    quern_system_def other_def = system_def("culprit", NULL);
    other_def.emits[0] = other;
    other_def.reads_events[0] = other;
    expect_refusal(emit_undeclared, &other_def, "its emits: 'other'");
    expect_refusal(read_undeclared, &other_def, "what it reads: 'other'");
    expect_refusal(emit_undeclared, NULL, "its emits: none");
    expect_refusal(emit_unknown, NULL, "the event handle is null");
    quern_system_def right = system_def("culprit", NULL);
    right.emits[0] = hit;
    expect_refusal(emit_null, &right, "'values' is NULL");
    expect_refusal(emit_uncounted, &right, "system 'culprit' emitted 'Hit', and 'out_count' is NULL");
    expect_refusal(emit_as_another_type, &right, "as uint32_t of 4");
}

static quern_emitter *kept_emitter;

static void keep_emitter(quern_context *context)
{
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert(quern_emit(kept_emitter, &(Hit){.number = 1}));
}

static void use_kept_emitter(quern_context *context)
{
    (void)context;
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 2}));
}

Test(event_frame, an_emitter_that_is_kept_is_noticed)
{
    schedule = setup_phases(world, 2);
    quern_system_def keeper = system_def("keeper", NULL), user = system_def("user", NULL),
                     reader = reader_def("reader", a_seen);
    keeper.begin = keep_emitter;
    keeper.emits[0] = hit;
    user.begin = use_kept_emitter;
    reader.phase = 1;
    setup_system(schedule, &keeper);
    setup_system(schedule, &user);
    setup_system(schedule, &reader);
    capture_reports(&reports);
    must_run(schedule, NULL);
    assert_reported("outside the callback");
    cr_assert_eq(a_seen->count, 1u);
    capture_reports(&reports);
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 3}));
    assert_reported("outside the callback");
}

static void *emit_on_thread(void *argument)
{
    (void)argument;
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 4}));
    return NULL;
}

static void lend_emitter(quern_context *context)
{
    pthread_t thread;
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert_eq(pthread_create(&thread, NULL, emit_on_thread, NULL), 0);
    pthread_join(thread, NULL);
}

Test(event_frame, another_thread_is_noticed_with_checks)
{
    if (!quern_has_checks()) return;
    schedule = setup_schedule(world);
    quern_system_def lender = system_def("lender", NULL);
    lender.begin = lend_emitter;
    lender.emits[0] = hit;
    setup_system(schedule, &lender);
    capture_reports(&reports);
    must_run(schedule, NULL);
    assert_reported("another thread");
}

static void write_events(quern_context *context, const quern_view *view)
{
    (void)context;
    Hit *hits = (Hit *)(uintptr_t)quern_view_events(view);
    hits[0].number++;
}

Test(event_frame, writing_events_is_noticed_with_checks)
{
    if (!quern_has_checks()) return;
    schedule = setup_schedule(world);
    quern_system_def writer = system_def("writer", write_events);
    writer.items = hit;
    setup_system(schedule, &writer);
    must(quern_world_emit(world, hit, &(Hit){.number = 1}, 1));
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("'writer' wrote events 'Hit'");
}

static void ask_for_events(quern_context *context, const quern_view *view)
{
    (void)context;
    cr_assert(is_scratch(QUERN_EVENTS(view, Hit), view->count * sizeof(Hit)));
}

static void emit_in_query(quern_context *context, const quern_view *view)
{
    (void)view;
    cr_assert_null(quern_context_emitter(context, hit));
}

Test(event_frame, views_of_others_have_no_events)
{
    add_rows(1);
    schedule = setup_schedule(world);
    quern_system_def def = system_def("culprit", ask_for_events);
    def.terms[0] = quern_term_read(number);
    setup_system(schedule, &def);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("without declaring items");
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    capture_reports(&reports);
    cr_assert_eq(quern_query_parallel_for(query, NULL, emit_in_query, NULL), QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("which only systems can have");
    capture_reports(&reports);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert(is_scratch(QUERN_EVENTS(&it.view, Hit), it.view.count * sizeof(Hit)));
    assert_reported("an iteration");
    cr_assert_not(quern_query_next(&it));
    quern_query_destroy(query);
}

Test(event_frame, systems_that_declare_nonsense_are_refused)
{
    schedule = setup_schedule(world);
    quern_system_def def = system_def("a", idle_run);
    def.emits[0] = def.emits[1] = hit;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.reads_events[0] = def.items = hit;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.emits[1] = hit;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.items = hit;
    def.terms[0] = quern_term_read(number);
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.items = hit;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", NULL);
    def.items = hit;
    def.begin = idle_callback;
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.emits[0] = (quern_event){hit.bits + 10};
    assert_refused(world, QUERN_ERROR_UNKNOWN_EVENT, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.reads_events[0] = (quern_event){hit.bits + 10};
    assert_refused(world, QUERN_ERROR_UNKNOWN_EVENT, quern_schedule_add_system(schedule, &def, NULL));
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.reader_count, 0u, "what was refused holds nothing");
}

/* --------------------------------------------------------------------------------------------- memory */

static uint32_t emitted_count;

static void emit_what_fits(quern_context *context, const quern_view *view)
{
    (void)view;
    quern_emitter *emitter = quern_context_emitter(context, hit);
    Hit many[2000] = {{.number = 0}};
    for (uint32_t i = 0; i < 2000; i++)
        if (quern_emit(emitter, &many[i])) emitted_count++;
    if (quern_context_emit(context, hit, many, 2000)) emitted_count += 2000;
}

/* Each allocation of two frames is refused in turn. What was emitted comes to be read, sooner or later;
 * what was not, the frame reports. */
static void run_script(failing_allocator *memory, uint64_t failing_call)
{
    quern_world *small;
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &small));
    must(QUERN_EVENT_REGISTER_FIELDS(small, &hit, Hit, target, number));
    quern_schedule *own = setup_phases(small, 2);
    quern_system_def emitter = system_def("emitter", emit_what_fits), reader = reader_def("reader", a_seen);
    emitter.emits[0] = hit;
    reader.phase = 1;
    setup_system(own, &emitter);
    setup_system(own, &reader);
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + failing_call);
    a_seen->count = emitted_count = 0;
    uint32_t failed_count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const quern_result result = quern_schedule_run(own, NULL, 0);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        failed_count += result != QUERN_OK;
    }
    cr_assert_eq(failed_count, failing_allocator_failed_count(memory));
    cr_assert_eq(a_seen->count, emitted_count);
    quern_schedule_destroy(own);
    quern_world_destroy(small);
}

Test(event_frame, without_memory_what_was_emitted_is_kept)
{
    for (uint64_t call = 1, failed = 1; failed > 0; call++) {
        failing_allocator *memory = failing_allocator_create();
        run_script(memory, call);
        failed = failing_allocator_failed_count(memory);
        failing_allocator_close(memory);
        cr_assert_lt(call, 200u);
    }
}

Test(event_frame, a_system_without_memory_for_its_readers_is_not_added)
{
    for (uint64_t call = 1, failed = 1; failed > 0; call++) {
        failing_allocator *memory = failing_allocator_create();
        quern_world *small;
        must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)},
                                &small));
        must(QUERN_EVENT_REGISTER_FIELDS(small, &hit, Hit, target, number));
        quern_schedule *own = setup_schedule(small);
        quern_system_def def = system_def("a", idle_run);
        def.emits[0] = def.reads_events[0] = hit;
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + call);
        while (quern_schedule_add_system(own, &def, NULL) != QUERN_OK) {
            quern_event_stats stats;
            must(quern_event_get_stats(small, hit, &stats));
            cr_assert_eq(stats.reader_count, 0u);
        }
        failed = failing_allocator_failed_count(memory);
        quern_schedule_destroy(own);
        quern_world_destroy(small);
        failing_allocator_close(memory);
    }
}

/* ------------------------------------------------------------------------------------------- described */

Test(event_frame, schedules_show_who_emits_and_reads)
{
    schedule = setup_phases(world, 2);
    quern_system_def emitter = emitter_def("emitter"), reader = reader_def("reader", a_seen),
                     items = system_def("items", read_tracked);
    reader.reads_events[1] = other;
    items.items = hit;
    items.phase = 1;
    setup_system(schedule, &emitter);
    setup_system(schedule, &reader);
    setup_system(schedule, &items);
    const char *text = described(schedule);
    cr_assert_not_null(strstr(text, "'emitter': read 'number', emit 'Hit'"), "%s", text);
    cr_assert_not_null(strstr(text, "'reader': read events 'Hit', read events 'other'"), "%s", text);
    cr_assert_not_null(strstr(text, "alone, goes over events"), "%s", text);
    cr_assert_not_null(strstr(text, "'items': go over events 'Hit'"), "%s", text);
    cr_assert_not(quern_schedule_has_edge(schedule, (quern_system){1}, (quern_system){2}),
                  "they do not wait");
    static char json[16384];
    quern_buffer buffer = {.text = json, .capacity_bytes = sizeof json};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_buffer(&buffer)));
    char *end = json;
    for (const char *from = json; *from != '\0'; from++)
        if (*from != ' ' && *from != '\n') *end++ = *from;
    *end = '\0';
    cr_assert_not_null(strstr(json, "\"emits\":[\"Hit\"]"), "%s", json);
    cr_assert_not_null(strstr(json, "\"reads_events\":[\"Hit\",\"other\"]"), "%s", json);
    cr_assert_not_null(strstr(json, "\"items\":\"Hit\""), "%s", json);
    cr_assert_not_null(strstr(json, "\"kind\":\"events\""), "%s", json);
}
