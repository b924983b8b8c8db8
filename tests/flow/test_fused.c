/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "sched/frame/schedule_internal.h"
#include "tests/flow/fused_scene.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Tests what systems see when they share passes, and when they must not share one: the same as if they
 * ran one after another, at every thread count and in every style. test_fuse.c in sched/schedule tests
 * which systems share a pass. */

/* ----------------------------------------------------------------------------------- chunk by chunk */

/* Writes what `triple_into_copy`, the system before it, read. */
static void add_copy(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    const uint64_t *copies = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] += copies[i];
}

static void make_chain(void)
{
    quern_term terms[] = {quern_term_write(number), quern_term_read(copy)};
    quern_term triple[] = {quern_term_read(number), quern_term_write(copy)};
    add("increment", increment, terms, 1);
    add("triple", triple_into_copy, triple, 2);
    add("add", add_copy, terms, 2);
}

static void check_chain(void)
{
    uint64_t count = 0;
    quern_term terms[] = {quern_term_read(number), quern_term_read(copy)};
    quern_query *query = setup_query(world, terms, 2);
    for (uint64_t i = 0; i < CROWD && !quern_entity_is_null(crowd[i]); i++, count++) {
        uint64_t expected_number = i, expected_copy = i;
        for (uint32_t frame = 0; frame < FRAMES; frame++) {
            expected_number++;
            expected_copy = 3 * expected_number + expected_copy % 2;
            expected_number += expected_copy;
        }
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, crowd[i], number), expected_number);
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, crowd[i], copy), expected_copy);
    }
    cr_assert_eq(quern_query_count(query), count);
    quern_query_destroy(query);
}

Test(fused, systems_see_writes_of_earlier_systems_to_the_chunk, .timeout = 120)
{
    play((scene){make_chain, check_chain, CROWD});
}

/* With seven entities each system has one chunk per archetype, so there are more workers than chunks. */
Test(fused, systems_see_earlier_writes_with_fewer_chunks_than_workers, .timeout = 120)
{
    memset((void *)crowd, 0, sizeof crowd);
    play((scene){make_chain, check_chain, 7});
}

/* Only the pool changes, so all that was compiled for the frame remains valid. */
Test(fused, pool_may_change_from_frame_to_frame, .timeout = 120)
{
    static const uint32_t thread_counts[FRAMES] = {8, 0, 3};
    for (uint32_t crowd_count = 7; crowd_count <= CROWD; crowd_count += CROWD - 7) {
        memset((void *)crowd, 0, sizeof crowd);
        open_crowd(crowd_count);
        schedule = setup_schedule(world);
        make_chain();
        for (uint32_t frame = 0; frame < FRAMES; frame++) {
            jobs = setup_jobs(thread_counts[frame]);
            run_frames(1);
            quern_jobs_destroy(jobs);
        }
        check_chain();
        close_world();
    }
}

/* Runs one frame with two independent systems and one that depends on the second. */
static const quern__pass *run_two_lanes_as(quern_schedule_def def, uint32_t crowd_count,
                                           uint32_t thread_count, size_t own_cache_bytes,
                                           size_t shared_cache_bytes)
{
    open_crowd(crowd_count);
    quern_term copy_term = quern_term_write(copy), number_term = quern_term_write(number);
    schedule = setup_schedule_as(world, def, 1);
    schedule->plan.own_cache_bytes = own_cache_bytes;
    schedule->plan.shared_cache_bytes = shared_cache_bytes;
    jobs = setup_jobs(thread_count);
    quern_system first = add("copy", increment, &copy_term, 1);
    add("number", increment, &number_term, 1);
    add("number again", increment, &number_term, 1);
    run_frames(1);
    quern_jobs_destroy(jobs);
    for (uint64_t i = 0; i < crowd_count; i++) {
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, crowd[i], number), i + 2);
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, crowd[i], copy), i + 1);
    }
    return quern__schedule_system(schedule, first)->pass;
}

static const quern__pass *run_two_lanes(uint32_t crowd_count, uint32_t thread_count)
{
    return run_two_lanes_as((quern_schedule_def){0}, crowd_count, thread_count, SIZE_MAX / 64, SIZE_MAX);
}

Test(fused, independent_systems_are_separate_items_if_chunks_are_few)
{
    static const uint32_t thread_counts[] = {0, 1, 3, 4, 8};
    for (uint32_t i = 0; i < COUNT_OF(thread_counts); i++) {
        const quern__pass *pass = run_two_lanes(7, thread_counts[i]);
        cr_assert_eq(pass->systems.count, 3u);
        cr_assert_eq(pass->lane_count, 2u);
        cr_assert_eq(pass->chunk_count, 3u);
        cr_assert_eq(pass->item_count, thread_counts[i] > 3 ? 6u : 3u, "%u threads", thread_counts[i]);
        close_world();
    }
}

typedef enum prefetch_distance { NOTHING, HEADS, CHUNKS } prefetch_distance;

/* Returns how far ahead a pass prefetches that touches 16 bytes of each entity, on two threads. A column
 * of 8 bytes per entity is longer than its prefetched head. */
static prefetch_distance prefetch_distance_of(quern_prefetch prefetch, size_t own_cache_bytes,
                                              size_t shared_cache_bytes)
{
    const quern_schedule_def def = {.prefetch = prefetch};
    const quern__pass *pass = run_two_lanes_as(def, CROWD, 2, own_cache_bytes, shared_cache_bytes);
    cr_assert_eq(pass->touched_bytes, CROWD * 16u);
    /* the table of the entities without further components */
    const quern__pass_table *table = &pass->tables.items[2];
    const uint32_t column_bytes = 8 * table->archetype->shape.row_capacity;
    const uint32_t fetched_bytes = table->fetch_share_bytes * 3; /* number of calls per chunk */
    cr_assert_eq(pass->prefetches, fetched_bytes > 0);
    const uint32_t fetch_limit_bytes = table->fetch_limit_bytes;
    close_world();
    if (fetched_bytes == 0) return NOTHING;
    cr_assert_geq(fetched_bytes, 2 * (fetch_limit_bytes < column_bytes ? fetch_limit_bytes : column_bytes));
    return fetch_limit_bytes < column_bytes ? HEADS : CHUNKS;
}

Test(fused, passes_prefetch_if_they_touch_more_than_the_caches_hold)
{
    enum { TOUCHED = CROWD * 16, OWN = TOUCHED / 8, SHARED = TOUCHED * 3 };
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_AUTOMATIC, OWN, SIZE_MAX), NOTHING);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SIZE_MAX), HEADS);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SHARED), HEADS);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SHARED - 3), CHUNKS);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_AUTOMATIC, TOUCHED / 2, SHARED - 3), NOTHING,
                 "the cores' own caches hold it, however little they share");
}

Test(fused, prefetch_setting_determines_the_distance)
{
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_NOTHING, 1, 1), NOTHING);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_HEADS, 1, 1), HEADS);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_HEADS, SIZE_MAX / 64, SIZE_MAX), HEADS);
    cr_assert_eq(prefetch_distance_of(QUERN_PREFETCH_CHUNKS, SIZE_MAX / 64, SIZE_MAX), CHUNKS);
}

/* Prefetching the next chunk as a whole would not be hidden: no other system has a call that could
 * overlap with it. */
Test(fused, single_system_on_a_table_prefetches_heads_only)
{
    open_crowd(CROWD);
    schedule = setup_schedule_as(world, (quern_schedule_def){.prefetch = QUERN_PREFETCH_CHUNKS}, 2);
    quern_term number_term = quern_term_write(number), tagged[] = {number_term, quern_term_with(tag)};
    quern_system all = add("all", increment, &number_term, 1);
    quern_system few = add("few", increment, tagged, 2);
    jobs = NULL;
    run_frames(1);
    cr_assert(quern_schedule_are_fused(schedule, all, few));
    const quern__pass *pass = quern__schedule_system(schedule, all)->pass;
    const quern__pass_table *shared = &pass->tables.items[0], *alone = &pass->tables.items[2];
    cr_assert_gt(shared->fetch_limit_bytes, 8 * shared->archetype->shape.row_capacity);
    cr_assert_lt(alone->fetch_limit_bytes, 8 * alone->archetype->shape.row_capacity);
    cr_assert_eq(alone->fetch_share_bytes, alone->fetch_limit_bytes);
    must(quern_schedule_set_system_enabled(schedule, few, false));
    run_frames(1);
    cr_assert_lt(shared->fetch_limit_bytes, 8 * shared->archetype->shape.row_capacity,
                 "the other is disabled");
    close_world();
}

/* ---------------------------------------------------------------------------------------- the order */

enum { MAX_CALLS = 4096 };

static char call_log[MAX_CALLS];
static uint32_t call_count;

static void log_call(quern_context *context, const quern_view *view)
{
    const char *name = quern_context_user_data(context);
    if (call_count + 2 >= MAX_CALLS) return;
    call_log[call_count++] = name[0];
    call_log[call_count++] = (char)('0' + view->ordinal);
    call_log[call_count] = '\0';
}

/* Runs two systems over the crowd's chunks on the caller alone. Returns the order of calls as text. */
static const char *order_of_calls(quern_schedule_def def, uint32_t crowd_count)
{
    open_crowd(crowd_count);
    schedule = setup_schedule_as(world, def, 1);
    static const char *const names[] = {"a", "b"};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        make_system(schedule, names[i], log_call,
                    .terms = {i == 0 ? quern_term_write(number) : quern_term_read(number)},
                    .user_data = (void *)(uintptr_t)names[i]);
    }
    call_count = 0;
    jobs = NULL;
    run_frames(1);
    close_world();
    return call_log;
}

Test(fused, all_systems_visit_a_chunk_before_the_next_chunk)
{
    cr_assert_str_eq(order_of_calls(schedule_style(0), 5), "a0b0a1b1a2b2");
    cr_assert_str_eq(order_of_calls(schedule_style(1), 5), "a0a1a2b0b1b2");
}

Test(fused, shuffling_changes_the_order_of_chunks_and_not_of_systems)
{
    char in_order[64];
    bool differs = false;
    snprintf(in_order, sizeof in_order, "%s", order_of_calls(schedule_style(0), 5));
    for (uint64_t seed = 1; seed < 8; seed++) {
        quern_schedule_def def = schedule_style(0);
        def.shuffle_seed = seed;
        const char *shuffled = order_of_calls(def, 5);
        differs |= strcmp(shuffled, in_order) != 0;
        cr_assert_eq(call_count, 12u);
        for (char chunk = '0'; chunk < '3'; chunk++) {
            char a[] = {'a', chunk, '\0'}, b[] = {'b', chunk, '\0'};
            cr_assert_not_null(strstr(shuffled, a), "%s", shuffled);
            cr_assert_not_null(strstr(strstr(shuffled, a), b), "%s", shuffled);
        }
    }
    cr_assert(differs, "no seed changed anything");
}

/* ------------------------------------------------------------------------------------------ lookups */

static void expect_frame(quern_context *context, const quern_view *view)
{
    const uint64_t *value = quern_context_lookup(context, one, number);
    expect(value != NULL && *value == 1000 + quern_context_frame_index(context));
}

static void expect_frame_before(quern_context *context, const quern_view *view)
{
    uint64_t frame = quern_context_frame_index(context);
    const uint64_t *value = quern_context_lookup(context, one, number);
    expect(value != NULL && *value == (frame == 0 ? CROWD / 2 : 1000 + frame - 1));
}

static void add_looker(const char *name, quern_view_callback *run)
{
    quern_system_def def = system_def(name, run);
    def.terms[0] = quern_term_read(copy);
    def.lookups[0].component = number;
    setup_system(schedule, &def);
}

static void make_lookers(void)
{
    quern_term term = quern_term_write(number);
    add_looker("before", expect_frame_before);
    add("writer", set_to_frame, &term, 1);
    add_looker("behind", expect_frame);
}

Test(fused, lookup_sees_all_earlier_and_no_later_writes, .timeout = 120)
{
    play((scene){make_lookers, NULL, CROWD});
}

/* --------------------------------------------------------------------------------------- statistics */

static void spawn_per_view(quern_context *context, const quern_view *view)
{
    expect(record_entity(quern_context_commands(context)).bits != 0);
}

Test(fused, each_system_has_statistics_of_its_own)
{
    for (uint32_t timing = 0; timing < 2; timing++) {
        open_crowd(CROWD);
        quern_schedule_def def = {.timing = timing == 1};
        schedule = setup_schedule_as(world, def, 1);
        jobs = setup_jobs(3);
        quern_term terms[] = {quern_term_write(number), quern_term_with(wide)};
        quern_system first = add("first", increment, terms, 1);
        quern_system second = add("second", spawn_per_view, terms, 2);
        quern_system third = add("third", idle_run, (quern_term[]){quern_term_without(number)}, 1);
        run_frames(1);
        cr_assert(quern_schedule_are_fused(schedule, first, second));
        cr_assert(quern_schedule_are_fused(schedule, first, third));
        quern_system_stats stats[3];
        quern_system systems[] = {first, second, third};
        for (uint32_t i = 0; i < 3; i++)
            must(quern_schedule_get_system_stats(schedule, systems[i], &stats[i]));
        cr_assert_eq(stats[0].entity_count, (uint64_t)CROWD);
        cr_assert_eq(stats[1].entity_count, (uint64_t)CROWD / 2 - 1);
        cr_assert_gt(stats[0].view_count, stats[1].view_count);
        cr_assert_eq(stats[0].command_count, 0u);
        cr_assert_eq(stats[1].command_count, stats[1].view_count);
        cr_assert_eq(stats[2].view_count, 0u);
        cr_assert_eq(stats[0].time_ns > 0, timing == 1);
        cr_assert_eq(stats[1].time_ns > 0, timing == 1);
        cr_assert_eq(stats[2].time_ns, 0u);
        close_world();
        quern_jobs_destroy(jobs);
    }
}

/* ------------------------------------------------------------------------------------- refused accesses */

static void write_copy(quern_context *context, const quern_view *view)
{
    if (view->ordinal == 0) expect(is_scratch(quern_view_write(view, 1), view->count * sizeof(uint64_t)));
}

Test(fused, error_names_the_system_that_caused_it)
{
    captured_reports reports;
    open_crowd(CROWD);
    schedule = setup_schedule(world);
    jobs = NULL;
    quern_term terms[] = {quern_term_write(number), quern_term_read(copy)};
    add("honest", increment, terms, 1);
    add("thief", write_copy, terms, 2);
    add("late", increment, terms, 1);
    capture_reports(&reports);
    must_not_run(schedule, jobs, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'thief'");
    cr_assert_not_null(strstr(reports.last, "'thief'"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, "'copy'"), "%s", reports.last);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    cr_assert_eq(wrong_count, 0u);
    cr_assert_eq(*(uint64_t *)quern_entity_get(world, crowd[7], number), 9u, "the others did their work");
    close_world();
}

/* Tests change filters in passes, and archetypes that are added and removed while systems share passes. */

/* ----------------------------------------------------------------------------------- filters on changes */

/* The systems with filters: one before the system that writes (`touch`), one after it, one that skips
 * every second frame, and one that writes to the views that it sees. */
enum { BEFORE, AFTER, SOMETIMES, OWN, FILTERING_COUNT };

static _Atomic uint32_t shown_counts[FILTERING_COUNT][MAX_VIEWS]; /* views seen in this frame, by ordinal */
static uint32_t touch_run, view_count;

/* In each run the writing system writes to one of three views. */
static bool is_touched(uint32_t run, uint32_t ordinal)
{
    return ordinal % 3 == run % 3;
}

static void count_touch(quern_context *context)
{
    touch_run++;
}

static void touch(quern_context *context, const quern_view *view)
{
    if (is_touched(touch_run - 1, view->ordinal)) increment(context, view);
}

static void note_shown(quern_context *context, const quern_view *view)
{
    shown_counts[(uintptr_t)quern_context_user_data(context)][view->ordinal]++;
}

static void note_shown_and_write(quern_context *context, const quern_view *view)
{
    note_shown(context, view);
    increment(context, view);
}

static bool in_even_frames(quern_context *context)
{
    return quern_context_frame_index(context) % 2 == 0;
}

static quern_system add_filtering_system(const char *name, uint32_t which)
{
    quern_term term = which == OWN ? quern_term_write(number) : quern_term_read(number);
    term = quern_term_changed(term);
    return make_system(schedule, name, which == OWN ? note_shown_and_write : note_shown, .terms = {term},
                       .condition = which == SOMETIMES ? in_even_frames : NULL,
                       .user_data = (void *)(uintptr_t)which);
}

static quern_system add_touch(void)
{
    quern_system_def def = system_def("touch", touch);
    def.begin = count_touch;
    def.terms[0] = quern_term_write(number);
    touch_run = 0;
    return setup_system(schedule, &def);
}

/* Asserts which views the system has seen in this frame. It has not seen the runs of `touch` from
 * unseen[which] on. */
static void assert_shown(uint32_t which, uint32_t frame, uint32_t runs_per_frame, uint32_t *unseen)
{
    if (which == SOMETIMES && frame % 2 == 1) return;
    uint32_t expected[MAX_VIEWS] = {0};
    for (uint32_t run = frame * runs_per_frame; run < (frame + 1) * runs_per_frame; run++) {
        uint32_t end = which == BEFORE ? run : run + 1;
        for (uint32_t ordinal = 0; ordinal < view_count; ordinal++) {
            bool is_new = run == 0;
            for (uint32_t touched = unseen[which]; touched < end; touched++)
                is_new |= is_touched(touched, ordinal);
            expected[ordinal] += is_new;
        }
        unseen[which] = end;
    }
    for (uint32_t ordinal = 0; ordinal < view_count; ordinal++)
        cr_assert_eq(shown_counts[which][ordinal], expected[ordinal],
                     "%u, frame %u, view %u: shown %u times", which, frame, ordinal,
                     shown_counts[which][ordinal]);
}

static void open_filtered(uint32_t style, uint32_t thread_count, uint32_t runs_per_frame)
{
    jobs = setup_jobs(thread_count);
    open_crowd(CROWD);
    schedule = setup_schedule_as(world, schedule_style(style), 1);
    if (runs_per_frame > 1) must(quern_schedule_set_fixed_step(schedule, 0, 0.25 / runs_per_frame, 8));
}

static void run_filtered(const bool is_there[FILTERING_COUNT], quern_system system, uint32_t runs_per_frame)
{
    uint32_t unseen[FILTERING_COUNT] = {0};
    for (uint32_t frame = 0; frame < 7; frame++) {
        quern_system_stats stats;
        memset((void *)shown_counts, 0, sizeof shown_counts);
        run_frames(1);
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        view_count = stats.view_count / runs_per_frame;
        cr_assert_gt(view_count, 30u, "the test needs many views");
        for (uint32_t which = 0; which < FILTERING_COUNT; which++)
            if (is_there[which]) assert_shown(which, frame, runs_per_frame, unseen);
    }
    close_world();
    quern_jobs_destroy(jobs);
}

static void play_filtered(uint32_t style, uint32_t thread_count, uint32_t runs_per_frame)
{
    open_filtered(style, thread_count, runs_per_frame);
    add_filtering_system("before", BEFORE);
    quern_system toucher = add_touch(), behind = add_filtering_system("behind", AFTER);
    add_filtering_system("sometimes", SOMETIMES);
    must(quern_schedule_compile(schedule));
    cr_assert_eq(quern_schedule_are_fused(schedule, toucher, behind),
                 !schedule_style(style).disable_fusing);
    run_filtered((bool[FILTERING_COUNT]){true, true, true, false}, toucher, runs_per_frame);
    open_filtered(style, thread_count, runs_per_frame);
    toucher = add_touch();
    add_filtering_system("own", OWN);
    run_filtered((bool[FILTERING_COUNT]){[OWN] = true}, toucher, runs_per_frame);
}

Test(fused_changes, filters_show_earlier_writes_of_the_frame_once, .timeout = 120)
{
    for (uint32_t i = 0; i < 2 * SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i / 2, i % 2);
        play_filtered(setting.style, setting.thread_count, 1 + i % 2);
    }
}

/* --------------------------------------------------------------------- removed and added archetypes */

/* A system of the phase before: creates entities in a new archetype. One of them is the entity that is
 * looked up. */
static void create_tagged(quern_context *context)
{
    if (quern_context_frame_index(context) != 1) return;
    quern_component set[] = {number, tag};
    uint64_t value = 0;
    const void *values[] = {&value, NULL};
    for (uint32_t i = 0; i < CROWD; i++)
        expect(record_entity_with(quern_context_commands(context), set, values, 2).bits != 0);
}

static quern_entity find_last_tagged(void)
{
    quern_term terms[] = {quern_term_read(number), quern_term_with(tag)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    quern_entity last = quern_entity_null();
    while (quern_query_next(&it))
        last = it.view.entities[it.view.count - 1];
    quern_query_destroy(query);
    return last;
}

static void expect_frame_if_tagged(quern_context *context, const quern_view *view)
{
    const uint64_t *value = quern_context_lookup(context, one, number);
    if (value != NULL) expect(*value == 1000 + quern_context_frame_index(context));
}

static void make_creator(void)
{
    make_system(schedule, "creator", NULL, .begin = create_tagged);
}

static quern_system make_late(const char *name, quern_view_callback *run, quern_term a, quern_term b,
                              bool looks_up)
{
    quern_system_def def = system_def(name, run);
    def.terms[0] = a;
    def.terms[1] = b;
    def.phase = 1;
    if (looks_up) def.lookups[0].component = number;
    return setup_system(schedule, &def);
}

/* Runs frames in which one system looks up an entity that the sync point between the phases creates. */
static void play_split(uint32_t thread_count, uint32_t style)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    copy = setup_component(world, "copy", 8, 8);
    tag = setup_tag(world, "tag");
    for (uint32_t i = 0; i < 100; i++)
        setup_entity_with(world, &copy, 1);
    one = quern_entity_null();
    wrong_count = 0;
    schedule = setup_schedule_as(world, schedule_style(style), 2);
    jobs = setup_jobs(thread_count);
    make_creator();
    quern_system writer =
        make_late("writer", set_to_frame, quern_term_write(number), quern_term_with(tag), false);
    quern_system looker =
        make_late("looker", expect_frame_if_tagged, quern_term_read(copy), quern_term_without(tag), true);
    run_frames(1);
    cr_assert_eq(quern_schedule_are_fused(schedule, writer, looker), !schedule_style(style).disable_fusing);
    /* Slots are assigned in order, so the last entity that the system creates has this handle. */
    quern_entity probe = setup_entity(world);
    one.bits = probe.bits + CROWD;
    run_frames(1);
    cr_assert_not(quern_schedule_are_fused(schedule, writer, looker), "split within the frame");
    cr_assert_eq(find_last_tagged().bits, one.bits, "the test looks up another entity than it means to");
    run_frames(2);
    cr_assert_eq(wrong_count, 0u, "style %u, %u threads", style, thread_count);
    close_world();
    quern_jobs_destroy(jobs);
}

Test(fused_changes, sync_point_may_split_a_pass_of_the_same_frame, .timeout = 120)
{
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i, 0);
        play_split(setting.thread_count, setting.style);
    }
}

enum { KINDS = 6 };

static quern_component kinds[KINDS];

/* Creates or destroys entities of a random archetype, and sometimes removes empty archetypes. */
static void create_or_destroy_some(random_source *random, quern_query *all)
{
    quern_component set[KINDS + 2] = {number, copy};
    uint32_t count = 2, bits = random_below(random, 1u << KINDS);
    for (uint32_t i = 0; i < KINDS; i++)
        if (bits >> i & 1) set[count++] = kinds[i];
    if (random_chance(random, 20)) must(quern_entity_destroy_matching(all, NULL));
    uint64_t value = 5;
    const void *values[KINDS + 2] = {&value, &value};
    for (uint32_t i = random_below(random, 900); i > 0; i--)
        must(quern_entity_create_with(world, set, values, count, NULL));
    if (random_chance(random, 30)) must(quern_world_remove_empty_archetypes(world, NULL));
}

static void expect_equal_numbers(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0), *copies = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        expect(numbers[i] == copies[i]);
}

static void increment_both(quern_context *context, const quern_view *view)
{
    increment(context, view);
    uint64_t *copies = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        copies[i]++;
}

static void decrement_copy(quern_context *context, const quern_view *view)
{
    uint64_t *copies = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        copies[i]--;
}

/* Runs systems over all rows and systems over few of them. Each must see each of its rows once. */
static void play_with_removals(uint64_t seed, uint32_t style, uint32_t thread_count)
{
    static const char *const names[KINDS] = {"k0", "k1", "k2", "k3", "k4", "k5"};
    random_source random = {seed};
    open_crowd(0);
    jobs = setup_jobs(thread_count);
    schedule = setup_schedule_as(world, schedule_style(style), 1);
    quern_term both[] = {quern_term_write(number), quern_term_write(copy)};
    quern_term read[] = {quern_term_read(number), quern_term_read(copy)};
    add("both", increment_both, both, 2);
    for (uint32_t i = 0; i < KINDS; i++)
        kinds[i] = setup_tag(world, names[i]);
    quern_term with_kind[] = {quern_term_write(copy), quern_term_with(kinds[0])};
    add("less", decrement_copy, with_kind, 2);
    quern_term number_with_kind[] = {quern_term_write(number), quern_term_with(kinds[0])};
    add("less again", decrement_copy, number_with_kind, 2);
    add("compare", expect_equal_numbers, read, 2);
    add_user("count", add_rows, QUERN_ACCESS_WRITE_CONCURRENT);
    quern_query *all = setup_query(world, read, 2);
    uint64_t expected_score = 0;
    for (uint32_t frame = 0; frame < 20; frame++) {
        create_or_destroy_some(&random, all);
        run_frames(1);
        expected_score += quern_query_count(all);
        cr_assert_eq(counter_value(world, score), expected_score, "seed %llu", (unsigned long long)seed);
    }
    cr_assert_eq(wrong_count, 0u, "seed %llu, style %u, %u threads", (unsigned long long)seed, style,
                 thread_count);
    quern_query_destroy(all);
    close_world();
    quern_jobs_destroy(jobs);
}

Test(fused_changes, archetypes_may_be_added_and_removed_between_frames, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        play_with_removals(seed, (uint32_t)seed % STYLE_COUNT, pool_threads[seed % POOL_COUNT]);
}
