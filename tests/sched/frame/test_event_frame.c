/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/sched/frame/event_scene.h"

#include <quern/history.h>

#include <stdatomic.h>

/* Events of systems: which systems may emit and read, when events become readable, and what happens to
 * events after errors. */

TestSuite(event_frame, .init = open_world, .fini = close_world);

/* Emits as many events as requested. The number of an event is 1000 * frame + i. */
static void emit_some(quern_context *context)
{
    const uint32_t *count = quern_context_user_data(context);
    for (uint32_t i = 0; i < *count; i++) {
        const Hit value = {.number = quern_context_frame_index(context) * 1000 + i};
        cr_assert(quern_context_emit(context, hit, &value, 1));
    }
}

/* ------------------------------------------------------------------------------------- order and time */

Test(event_frame, events_are_ordered_by_system_view_and_emission_at_any_thread_count)
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

Test(event_frame, events_are_readable_after_sync_point_and_not_before)
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
    setup_system(schedule, &early); /* after the emitter, in the same phase */
    setup_system(schedule, &late);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u);
    cr_assert_eq(b_seen->count, 3u);
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 3u);
    expect_numbers(a_seen, 0, 3, 0);
    expect_numbers(b_seen, 3, 3, 1000);
}

Test(event_frame, disabled_reader_loses_no_events)
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
    must(quern_schedule_set_system_enabled(schedule, system, false));
    for (uint32_t i = 0; i < 4; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 0u);
    must(quern_schedule_set_system_enabled(schedule, system, true));
    must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 25u);
    for (uint32_t i = 0; i < 5; i++)
        expect_numbers(a_seen, i * 5, 5, i * 1000);
    quern_event_stats stats;
    must_run(schedule, NULL);
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_leq(stats.waiting_count, 5u);
}

static uint32_t loop_counts[4];

/* Loops over all events, over those before the first odd one, and over the even ones; then over those of a block. */
static void loop_over_events(quern_context *context)
{
    quern_event_iterator blocks;
    uint32_t expected = 0;
    memset(loop_counts, 0, sizeof loop_counts);
    cr_assert(quern_context_events(context, hit, &blocks));
    while (quern_event_next(&blocks))
        loop_counts[3] += blocks.block.count;
    QUERN_EACH_EVENT(context, hit, it, Hit)
    {
        cr_assert_eq(it->number, expected++);
        loop_counts[0]++;
    }
    QUERN_EACH_EVENT(context, hit, it, Hit)
    {
        if (it->number % 2 == 1) break;
        loop_counts[1]++;
    }
    QUERN_EACH_EVENT(context, hit, it, Hit)
    {
        if (it->number % 2 == 1) continue;
        loop_counts[2]++;
    }
}

/* Several blocks, one, and none. */
Test(event_frame, each_event_is_visited_once)
{
    static const uint32_t emitted[] = {3000, 1, 0};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t count = emitted[i];
        schedule = setup_phases(world, 2);
        quern_system_def emitter = system_def("emitter", NULL), reader = system_def("reader", NULL);
        emitter.begin = emit_some;
        emitter.user_data = &count;
        emitter.emits[0] = hit;
        reader.begin = loop_over_events;
        reader.reads_events[0] = hit;
        reader.phase = 1;
        setup_system(schedule, &emitter);
        setup_system(schedule, &reader);
        must_run(schedule, NULL);
        cr_assert_eq(loop_counts[3], count);
        cr_assert_eq(loop_counts[0], count);
        cr_assert_eq(loop_counts[1], count > 0 ? 1u : 0u);
        cr_assert_eq(loop_counts[2], (count + 1) / 2);
        quern_schedule_destroy(schedule);
        schedule = NULL;
    }
}

static bool says_no(quern_context *context)
{
    quern_event_iterator it;
    const bool is_odd = quern_context_frame_index(context) % 2 == 1;
    cr_assert(quern_context_events(context, hit, &it)); /* the system declares that it reads the event */
    cr_assert(quern_event_next(&it));
    return is_odd;
}

Test(event_frame, reader_with_condition_reads_all_events_when_it_runs)
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
    uint32_t count = 10; /* one block per frame, of 192 bytes */
    quern_system_def emitter = system_def("emitter", NULL), reader = reader_def("sleeper", a_seen);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = spark;
    reader.phase = 1;
    setup_system(schedule, &emitter);
    quern_system system = setup_system(schedule, &reader);
    must(quern_schedule_set_system_enabled(schedule, system, false));
    for (uint32_t i = 0; i < 5; i++)
        must_run(schedule, NULL);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    assert_message_has("10 events 'spark'");
    assert_message_has("'sleeper'");
    assert_message_has("1000 bytes");
    must(quern_schedule_set_system_enabled(schedule, system, true));
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT); /* this frame publishes before its systems run */
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

/* Views are in order. Only the emitting system decides where a block ends. */
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

static bool may_run(quern_context *context)
{
    return *(const bool *)quern_context_user_data(context);
}

Test(event_frame, items_that_extend_a_counted_block_count_in_the_statistics)
{
    bool is_wanted = false;
    schedule = setup_schedule(world);
    quern_system_def items = system_def("items", add_items);
    items.items = hit;
    items.partial_bytes = 16;
    items.condition = may_run;
    items.user_data = &is_wanted;
    const quern_system system = setup_system(schedule, &items);
    item_count = item_views = 0;
    for (uint32_t frame = 0; frame < 2; frame++) {
        is_wanted = frame == 1;
        for (uint32_t i = 0; i <= 3 * frame; i++)
            must(quern_world_emit(world, hit, &(Hit){.number = i}, 1));
        must_run(schedule, NULL);
    }
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(item_count, 5u);
    cr_assert_eq(stats.view_count, 1u);
    cr_assert_eq(stats.entity_count, 5u, "%llu", (unsigned long long)stats.entity_count);
}

Test(event_frame, items_exclude_terms_and_exclusive_systems)
{
    schedule = setup_schedule(world);
    quern_system_def def = system_def("items", add_items);
    def.items = hit;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.flags = 0;
    def.terms[0] = quern_term_with(setup_tag(world, "tag"));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.terms[0] = (quern_term){0};
    setup_system(schedule, &def);
}

static void create_for_items(quern_context *context, const quern_view *view)
{
    const Hit *hits = QUERN_EVENTS(view, Hit);
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(record_entity_with(quern_context_commands(context), &number,
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
        make_system(own, "items", create_for_items, .items = event);
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

/* ------------------------------------------------------------ iterators, plain code, steps, schedules */

static quern_event_iterator kept_iterator;

static void keep_iterator(quern_context *context)
{
    if (a_seen->run_count++ == 0) quern_context_events(context, hit, &kept_iterator);
}

Test(event_frame, kept_iterator_ends_when_its_events_are_freed)
{
    schedule = setup_schedule(world);
    make_system(schedule, "reader", NULL, .begin = keep_iterator, .reads_events = {hit});
    must(quern_world_emit(world, hit, &(Hit){.number = 1}, 1));
    must_run(schedule, NULL);
    must(quern_world_emit(world, hit, &(Hit){.number = 2}, 1));
    must_run(schedule, NULL);
    cr_assert_not(quern_event_next(&kept_iterator));
    cr_assert_null(kept_iterator.block.values);
}

Test(event_frame, kept_iterator_ends_when_a_frame_without_its_events_is_restored)
{
    schedule = setup_schedule(world);
    quern_history *history;
    make_system(schedule, "reader", NULL, .begin = keep_iterator, .reads_events = {hit});
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    must(quern_history_save(history, 0, NULL));
    must(quern_world_emit(world, hit, &(Hit){.number = 1}, 1));
    must_run(schedule, NULL);
    must(quern_history_restore(history, 0, NULL));
    cr_assert_not(quern_event_next(&kept_iterator));
    cr_assert_null(kept_iterator.block.values);
    quern_history_destroy(history);
}

/* A reader of plain code, used in an exclusive system that emits. */
static quern_event_reader *held_reader;

static void take_and_emit(quern_context *context)
{
    quern_event_block block;
    a_seen->run_count++;
    if (quern_event_reader_next(held_reader, &block)) see(a_seen, block.values, block.count);
    cr_assert(quern_context_emit(context, hit, &(Hit){.number = a_seen->run_count}, 1));
}

Test(event_frame, block_that_plain_code_reads_survives_frame)
{
    const quern_event_def def = {
        .name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = sizeof(Hit) + 32};
    must(quern_event_register(world, &def, &hit));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit}, &held_reader));
    schedule = setup_schedule(world);
    make_system(schedule, "exclusive", NULL, .begin = take_and_emit, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .emits = {hit});
    for (uint32_t i = 0; i < 5; i++)
        must_run(schedule, NULL);
    cr_assert_eq(a_seen->count, 4u);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(a_seen->hits[i].number, i + 1);
    cr_assert_eq(quern_event_reader_lost_count(held_reader), 0u);
    quern_event_reader_destroy(held_reader);
}

Test(event_frame, plain_code_and_systems_read_each_others_events)
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

Test(event_frame, plain_code_continues_the_events_of_a_frame)
{
    schedule = setup_schedule(world);
    uint32_t count = 3;
    quern_system_def emitter = system_def("emitter", NULL);
    emitter.begin = emit_some;
    emitter.user_data = &count;
    emitter.emits[0] = hit;
    quern_event_reader *plain;
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit, .name = "ui"}, &plain));
    setup_system(schedule, &emitter);
    must_run(schedule, NULL);
    must(quern_world_emit(world, hit, &(Hit){.number = 77}, 1));
    quern_event_block block;
    while (quern_event_reader_next(plain, &block))
        see(a_seen, block.values, block.count);
    cr_assert_eq(a_seen->count, 4u);
    expect_numbers(a_seen, 0, 3, 0);
    cr_assert_eq(a_seen->hits[3].number, 77u);
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
    quern_schedule_destroy(first); /* its reader no longer retains events */
    must_run(second, NULL);
    must_run(second, NULL);
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.reader_count, 1u);
    cr_assert_eq(stats.waiting_count, 3u);
    quern_schedule_destroy(second);
}

/* Frames of the reader free the events that the emitter's block holds. */
Test(event_frame, events_read_by_another_schedule_do_not_accumulate)
{
    quern_schedule *writing = setup_schedule(world), *reading = setup_schedule(world);
    uint32_t count = 900; /* after four batches, a block has no room for a fifth */
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

/* ------------------------------------------------------------------------------------------- memory */

enum { TYPE_COUNT = 10 };

/* One event of a type that changes from frame to frame. */
static void emit_one_type(quern_context *context)
{
    const quern_event *types = quern_context_user_data(context);
    const uint64_t value = 1;
    const uint64_t frame = quern_context_frame_index(context);
    cr_assert(quern_context_emit(context, types[frame % TYPE_COUNT], &value, 1));
}

static void register_types(quern_event types[TYPE_COUNT], quern_event_reader *readers[TYPE_COUNT])
{
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        const char name[] = {'e', (char)('0' + i), '\0'};
        must(quern_event_register(
            world, &(quern_event_def){.name = name, .size_bytes = 8, .alignment_bytes = 8}, &types[i]));
        must(quern_event_reader_create(world, &(quern_event_reader_def){.event = types[i], .name = name},
                                       &readers[i]));
    }
}

static void expect_one(quern_event_reader *reader)
{
    quern_event_block block;
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert_eq(block.count, 1u);
    cr_assert_not(quern_event_reader_next(reader, &block));
}

/* A sync point returns the block that a system's emitter fills, once its events are read: the next type uses it. */
Test(event_frame, types_that_systems_emit_one_after_another_share_blocks)
{
    quern_event types[TYPE_COUNT];
    quern_event_reader *readers[TYPE_COUNT];
    register_types(types, readers);
    schedule = setup_phases(world, 1);
    quern_system_def emitter = system_def("emitter", NULL);
    emitter.begin = emit_one_type;
    emitter.user_data = types;
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        emitter.emits[i] = types[i];
    setup_system(schedule, &emitter);
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        must_run(schedule, NULL);
        expect_one(readers[i]);
    }
    cr_assert_leq(stats_of_world(world).event_bytes, 2 * 65536u);
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        quern_event_reader_destroy(readers[i]);
}

/* A sync point also returns the block of a type of which plain code has emitted events. */
Test(event_frame, types_that_plain_code_emits_one_after_another_share_blocks)
{
    quern_event types[TYPE_COUNT];
    quern_event_reader *readers[TYPE_COUNT];
    register_types(types, readers);
    schedule = setup_phases(world, 1);
    const uint64_t value = 1;
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        must(quern_world_emit(world, types[i], &value, 1));
        expect_one(readers[i]);
        must_run(schedule, NULL);
    }
    cr_assert_eq(stats_of_world(world).event_bytes, 65536u);
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        quern_event_reader_destroy(readers[i]);
}

/* ---------------------------------------------------------------------------------------- descriptions */

Test(event_frame, descriptions_name_emitting_and_reading_systems)
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
    quern_text_buffer buffer = {.text = json, .capacity_bytes = sizeof json};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_text(&buffer)));
    char *end = json;
    for (const char *from = json; *from != '\0'; from++)
        if (*from != ' ' && *from != '\n') *end++ = *from;
    *end = '\0';
    cr_assert_not_null(strstr(json, "\"emits\":[\"Hit\"]"), "%s", json);
    cr_assert_not_null(strstr(json, "\"reads_events\":[\"Hit\",\"other\"]"), "%s", json);
    cr_assert_not_null(strstr(json, "\"items\":\"Hit\""), "%s", json);
    cr_assert_not_null(strstr(json, "\"kind\":\"events\""), "%s", json);
}

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
