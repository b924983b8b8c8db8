/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/random.h"

#include <quern/bulk.h>

#include <criterion/criterion.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* What systems get to see when they share passes, and when they must not: the same as one after another, at
 * every thread count and in every style. Which systems share a pass is in sched/schedule/test_fuse.c. */

enum { CROWD = 3000, FRAMES = 3 };

static quern_world *world;
static quern_component number, copy, wide, tag;
static quern_resource score;
static quern_schedule *schedule;
static quern_jobs *jobs;
static quern_entity crowd[CROWD];
static quern_entity one; /* of the crowd, that all look up */
static _Atomic uint32_t wrong_count;

/* Entities in three archetypes and many chunks, but for the last archetype, with few entities. */
static void open_crowd(uint32_t count)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    copy = setup_component(world, "copy", 8, 8);
    wide = setup_component(world, "wide", 512, 64);
    tag = setup_tag(world, "tag");
    score = setup_counter(world, "score");
    quern_component sets[3][3] = {{number, copy, tag}, {number, copy}, {number, copy, wide}};
    for (uint64_t i = 0; i < count; i++) {
        const void *values[] = {&i, &i, NULL};
        uint32_t set = i < 3 ? 0 : 1 + i % 2;
        must(quern_entity_create_with(world, sets[set], values, set == 1 ? 2 : 3, &crowd[i]));
    }
    one = crowd[count / 2];
    wrong_count = 0;
}

static void close_crowd(void)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

static void expect(bool is_right)
{
    if (!is_right) wrong_count++;
}

static void run_frames(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        must_run(schedule, jobs);
    assert_valid(world);
}

/* A test as a function that makes systems of a schedule, and looks at the world afterwards. */
typedef struct scene {
    void (*make)(void);
    void (*check)(void); /* NULL: wrong_count says it all */
    uint32_t crowd_count;
} scene;

static void play_as(const scene *it, frame_setting setting)
{
    jobs = setup_jobs(setting.thread_count);
    open_crowd(it->crowd_count);
    schedule = setup_schedule_as(world, schedule_style(setting.style), 2);
    it->make();
    run_frames(FRAMES);
    cr_assert_eq(wrong_count, 0u, "%u times, in style %u with %u threads", wrong_count, setting.style,
                 setting.thread_count);
    if (it->check != NULL) it->check();
    close_crowd();
    quern_jobs_destroy(jobs);
}

static void play(scene it)
{
    static uint32_t turn;
    for (uint32_t i = 0; i < SETTING_COUNT; i++)
        play_as(&it, frame_setting_at(i, turn));
    turn++;
}

static quern_system add(const char *name, quern_kernel *run, const quern_term *terms, uint32_t count)
{
    quern_system_def def = system_def(name, run);
    for (uint32_t i = 0; i < count; i++)
        def.terms[i] = terms[i];
    return setup_system(schedule, &def);
}

/* ----------------------------------------------------------------------------------- chunk by chunk */

static void increment(quern_context *context, const quern_view *view)
{
    (void)context;
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

/* Reads what the one before wrote. */
static void triple_into_copy(quern_context *context, const quern_view *view)
{
    (void)context;
    const uint64_t *numbers = quern_view_read(view, 0);
    uint64_t *copies = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        copies[i] = 3 * numbers[i] + copies[i] % 2;
}

/* Writes what the one before read. */
static void add_copy(quern_context *context, const quern_view *view)
{
    (void)context;
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

Test(fused, each_system_sees_what_those_before_it_did_to_the_chunk, .timeout = 120)
{
    play((scene){make_chain, check_chain, CROWD});
}

/* Each of the three has one chunk per archetype: more workers than chunks. */
Test(fused, so_they_do_with_fewer_chunks_than_workers, .timeout = 120)
{
    memset((void *)crowd, 0, sizeof crowd);
    play((scene){make_chain, check_chain, 7});
}

/* Nothing else changes, so all else that a frame had prepared holds. */
Test(fused, a_pool_may_change_from_frame_to_frame, .timeout = 120)
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
        close_crowd();
    }
}

/* Two systems that have nothing to do with each other, and one that has to do with the second. */
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

Test(fused, independent_systems_are_jobs_of_their_own_where_chunks_are_fewer_than_workers)
{
    static const uint32_t thread_counts[] = {0, 1, 3, 4, 8};
    for (uint32_t i = 0; i < COUNT_OF(thread_counts); i++) {
        const quern__pass *pass = run_two_lanes(7, thread_counts[i]);
        cr_assert_eq(pass->systems.count, 3u);
        cr_assert_eq(pass->lane_count, 2u);
        cr_assert_eq(pass->chunk_count, 3u);
        cr_assert_eq(pass->item_count, thread_counts[i] > 3 ? 6u : 3u, "%u threads", thread_counts[i]);
        close_crowd();
    }
}

typedef enum reach { NOTHING, HEADS, CHUNKS } reach;

/* How far ahead a pass fetches that touches 16 bytes of each entity, on two threads. Of a column of 8 bytes
 * each chunk has more than a head. */
static reach reach_of(quern_prefetch prefetch, size_t own_cache_bytes, size_t shared_cache_bytes)
{
    const quern_schedule_def def = {.prefetch = prefetch};
    const quern__pass *pass = run_two_lanes_as(def, CROWD, 2, own_cache_bytes, shared_cache_bytes);
    cr_assert_eq(pass->touched_bytes, CROWD * 16u);
    const quern__pass_table *table = &pass->tables.items[2]; /* has no other component */
    const uint32_t column_bytes = 8 * table->archetype->row_capacity;
    const uint32_t fetched_bytes = table->share_bytes * 3; /* calls */
    cr_assert_eq(pass->prefetches, fetched_bytes > 0);
    const uint32_t reach_bytes = table->reach_bytes;
    close_crowd();
    if (fetched_bytes == 0) return NOTHING;
    cr_assert_geq(fetched_bytes, 2 * (reach_bytes < column_bytes ? reach_bytes : column_bytes));
    return reach_bytes < column_bytes ? HEADS : CHUNKS;
}

Test(fused, passes_fetch_ahead_when_they_touch_more_than_the_caches_hold)
{
    enum { TOUCHED = CROWD * 16, OWN = TOUCHED / 8, SHARED = TOUCHED * 3 };
    cr_assert_eq(reach_of(QUERN_PREFETCH_AUTOMATIC, OWN, SIZE_MAX), NOTHING);
    cr_assert_eq(reach_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SIZE_MAX), HEADS);
    cr_assert_eq(reach_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SHARED), HEADS);
    cr_assert_eq(reach_of(QUERN_PREFETCH_AUTOMATIC, OWN - 1, SHARED - 3), CHUNKS);
    cr_assert_eq(reach_of(QUERN_PREFETCH_AUTOMATIC, TOUCHED / 2, SHARED - 3), NOTHING,
                 "the cores' own caches hold it, however little they share");
}

Test(fused, how_far_passes_fetch_ahead_can_be_said)
{
    cr_assert_eq(reach_of(QUERN_PREFETCH_NOTHING, 1, 1), NOTHING);
    cr_assert_eq(reach_of(QUERN_PREFETCH_HEADS, 1, 1), HEADS);
    cr_assert_eq(reach_of(QUERN_PREFETCH_HEADS, SIZE_MAX / 64, SIZE_MAX), HEADS);
    cr_assert_eq(reach_of(QUERN_PREFETCH_CHUNKS, SIZE_MAX / 64, SIZE_MAX), CHUNKS);
}

/* All at once would have to wait for itself. */
Test(fused, a_system_alone_with_a_table_fetches_heads_only)
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
    cr_assert_gt(shared->reach_bytes, 8 * shared->archetype->row_capacity);
    cr_assert_lt(alone->reach_bytes, 8 * alone->archetype->row_capacity);
    cr_assert_eq(alone->share_bytes, alone->reach_bytes);
    must(quern_schedule_set_enabled(schedule, few, false));
    run_frames(1);
    cr_assert_lt(shared->reach_bytes, 8 * shared->archetype->row_capacity, "the other is disabled");
    close_crowd();
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

/* Two systems over the crowd's chunks, on the caller alone: the order of calls. */
static const char *order_of_calls(quern_schedule_def def, uint32_t crowd_count)
{
    open_crowd(crowd_count);
    schedule = setup_schedule_as(world, def, 1);
    static const char *const names[] = {"a", "b"};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        quern_system_def system = system_def(names[i], log_call);
        system.terms[0] = i == 0 ? quern_term_write(number) : quern_term_read(number);
        system.user_data = (void *)(uintptr_t)names[i];
        setup_system(schedule, &system);
    }
    call_count = 0;
    jobs = NULL;
    run_frames(1);
    close_crowd();
    return call_log;
}

Test(fused, a_chunk_gets_all_systems_before_the_next_chunk_gets_any)
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

static void set_to_frame(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = 1000 + quern_context_frame_index(context);
}

static void expect_frame(quern_context *context, const quern_view *view)
{
    (void)view;
    const uint64_t *value = quern_context_lookup(context, one, number);
    expect(value != NULL && *value == 1000 + quern_context_frame_index(context));
}

static void expect_frame_before(quern_context *context, const quern_view *view)
{
    (void)view;
    uint64_t frame = quern_context_frame_index(context);
    const uint64_t *value = quern_context_lookup(context, one, number);
    expect(value != NULL && *value == (frame == 0 ? CROWD / 2 : 1000 + frame - 1));
}

static void add_looker(const char *name, quern_kernel *run)
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

Test(fused, a_lookup_sees_all_writes_before_it_and_none_behind_it, .timeout = 120)
{
    play((scene){make_lookers, NULL, CROWD});
}

/* ------------------------------------------------------------------ before and after, end and begin */

static _Atomic uint64_t rows_of_first, end_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    (void)context;
    rows_of_first += view->count;
}

static void start_counting(quern_context *context)
{
    (void)context;
    rows_of_first = 0;
    end_count = 0;
}

static void note_end(quern_context *context)
{
    (void)context;
    expect(rows_of_first == CROWD);
    end_count++;
}

static void expect_all_rows(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
    expect(rows_of_first == CROWD);
}

static void expect_end(quern_context *context)
{
    (void)context;
    expect(end_count == 1);
}

static void expect_end_in_view(quern_context *context, const quern_view *view)
{
    (void)view;
    expect_end(context);
}

static quern_system_def first_def(void)
{
    static quern_term term;
    term = quern_term_write(number);
    quern_system_def def = system_def("first", count_rows);
    def.terms[0] = term;
    def.begin = start_counting;
    return def;
}

static quern_system_def second_def(quern_component component, quern_kernel *run)
{
    static quern_term term;
    term = quern_term_write(component);
    quern_system_def def = system_def("second", run);
    def.terms[0] = term;
    def.after[0] = "first";
    return def;
}

static void make_end_before_begin(void)
{
    quern_system_def first = first_def(), second = second_def(number, idle_run);
    first.end = note_end;
    second.begin = expect_end;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
}

static void make_end_before_views(void)
{
    quern_system_def first = first_def(), second = second_def(number, expect_end_in_view);
    first.end = note_end;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
}

static void expect_all_rows_at_begin(quern_context *context)
{
    expect_all_rows(context, NULL);
}

static void make_views_before_begin(void)
{
    quern_system_def first = first_def(), second = second_def(number, idle_run);
    second.begin = expect_all_rows_at_begin;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
}

static bool expect_all_rows_when_asked(quern_context *context)
{
    expect_all_rows(context, NULL);
    return true;
}

static void make_views_before_condition(void)
{
    quern_system_def first = first_def(), second = second_def(number, idle_run);
    second.condition = expect_all_rows_when_asked;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
}

static void make_order_without_shared_components(void)
{
    quern_system_def first = first_def(), second = second_def(copy, expect_all_rows);
    setup_system(schedule, &first);
    setup_system(schedule, &second);
}

Test(fused, a_declared_order_is_kept_between_end_and_begin, .timeout = 120)
{
    play((scene){make_end_before_begin, NULL, CROWD});
}

Test(fused, a_declared_order_is_kept_between_end_and_views, .timeout = 120)
{
    play((scene){make_end_before_views, NULL, CROWD});
}

Test(fused, a_declared_order_is_kept_between_views_and_begin, .timeout = 120)
{
    play((scene){make_views_before_begin, NULL, CROWD});
}

Test(fused, a_declared_order_is_kept_between_views_and_condition, .timeout = 120)
{
    play((scene){make_views_before_condition, NULL, CROWD});
}

Test(fused, a_declared_order_is_kept_where_it_is_about_something_else, .timeout = 120)
{
    play((scene){make_order_without_shared_components, NULL, CROWD});
}

/* ---------------------------------------------------------------------------------------- resources */

static void add_rows(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t *value = quern_context_resource_write(context, score);
    atomic_fetch_add_explicit(value, view->count, memory_order_relaxed);
}

static void expect_sum(quern_context *context, const quern_view *view)
{
    (void)view;
    const uint64_t *value = quern_context_resource(context, score);
    expect(*value == CROWD * (quern_context_frame_index(context) + 1));
}

static void expect_sum_before(quern_context *context, const quern_view *view)
{
    (void)view;
    const uint64_t *value = quern_context_resource(context, score);
    expect(*value == CROWD * quern_context_frame_index(context));
}

static void add_user(const char *name, quern_kernel *run, quern_access access)
{
    quern_system_def def = system_def(name, run);
    def.terms[0] = quern_term_read(number);
    def.resources[0] = (quern_resource_access){score, access};
    setup_system(schedule, &def);
}

static void make_concurrent_users(void)
{
    add_user("before", expect_sum_before, QUERN_READ);
    add_user("adder", add_rows, QUERN_WRITE_CONCURRENT);
    add_user("behind", expect_sum, QUERN_READ);
}

static void add_rows_alone(quern_context *context, const quern_view *view)
{
    uint64_t *value = quern_context_resource_write(context, score);
    *value += view->count;
}

static void make_single_users(void)
{
    add_user("before", expect_sum_before, QUERN_READ);
    add_user("adder", add_rows_alone, QUERN_WRITE);
    add_user("behind", expect_sum, QUERN_READ);
}

Test(fused, readers_of_a_resource_see_all_or_nothing_of_a_concurrent_writer, .timeout = 120)
{
    play((scene){make_concurrent_users, NULL, CROWD});
}

Test(fused, readers_of_a_resource_see_all_or_nothing_of_a_writer, .timeout = 120)
{
    play((scene){make_single_users, NULL, CROWD});
}

/* ---------------------------------------------------------------------------- partials and ordinals */

static float float_total;
static uint32_t partial_count;

static void add_floats(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    float *sum = quern_context_partial(context);
    for (uint32_t i = 0; i < view->count; i++)
        *sum += 1.0f / (float)(numbers[i] + 1);
}

static void combine_floats(quern_context *context)
{
    float total = 0;
    partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        total += *(const float *)quern_context_partial_at(context, i);
    float_total = total;
}

static quern_system add_summing(const char *name, quern_term second)
{
    quern_system_def def = system_def(name, add_floats);
    def.terms[0] = quern_term_read(number);
    def.terms[1] = second;
    def.end = combine_floats;
    def.partial_bytes = sizeof(float);
    return setup_system(schedule, &def);
}

static void make_summing(void)
{
    quern_term term = quern_term_write(number);
    add("increment", increment, &term, 1);
    quern_term terms[] = {quern_term_read(number), quern_term_write(copy)};
    add("triple", triple_into_copy, terms, 2);
    add_summing("sum", quern_term_read(copy));
}

static uint32_t first_total_bits; /* of the first play */

static void check_sum(void)
{
    uint32_t bits;
    memcpy(&bits, &float_total, sizeof bits);
    cr_assert_gt(partial_count, 50u, "the test needs many views");
    cr_assert_gt(float_total, 0.0f);
    if (first_total_bits == 0) first_total_bits = bits;
    cr_assert_eq(bits, first_total_bits, "%.9g", (double)float_total);
}

Test(fused, partial_results_add_up_to_the_same_bits, .timeout = 120)
{
    play((scene){make_summing, check_sum, CROWD});
}

enum { MAX_VIEWS = 1024, WATCHERS = 4 };

/* By system and ordinal: the number of the view's first row, plus 1. */
static _Atomic uint64_t first_numbers[WATCHERS][MAX_VIEWS];
static quern_system watchers[WATCHERS];

static void watch(quern_context *context, const quern_view *view)
{
    uintptr_t which = (uintptr_t)quern_context_user_data(context);
    const uint64_t *numbers = quern_view_read(view, 0);
    expect(view->ordinal < MAX_VIEWS && view->count > 0);
    expect(atomic_exchange(&first_numbers[which][view->ordinal % MAX_VIEWS], numbers[0] + 1) == 0);
}

/* Systems of one pass that match different archetypes. */
static void make_watchers(void)
{
    static const char *const names[] = {"all", "tagged", "untagged", "not wide"};
    quern_term seconds[] = {quern_term_with(copy), quern_term_with(tag), quern_term_without(tag),
                            quern_term_without(wide)};
    memset((void *)first_numbers, 0, sizeof first_numbers);
    for (uint32_t i = 0; i < WATCHERS; i++) {
        quern_system_def def = system_def(names[i], watch);
        def.terms[0] = quern_term_read(number);
        def.terms[1] = seconds[i];
        def.user_data = (void *)(uintptr_t)i;
        watchers[i] = setup_system(schedule, &def);
    }
}

static void check_watcher(uint32_t which)
{
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, watchers[which], &stats));
    quern_term seconds[] = {quern_term_with(copy), quern_term_with(tag), quern_term_without(tag),
                            quern_term_without(wide)};
    quern_term terms[] = {quern_term_read(number), seconds[which]};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t ordinal = 0;
    for (; quern_query_next(&it); ordinal++) {
        const uint64_t *numbers = quern_view_read(&it.view, 0);
        cr_assert_eq(first_numbers[which][ordinal], numbers[0] + 1, "%s, view %u", stats.name, ordinal);
    }
    cr_assert_eq(stats.view_count, ordinal);
    cr_assert_eq(stats.entity_count, quern_query_count(query));
    cr_assert_eq(first_numbers[which][ordinal], 0u, "more views than there are");
    quern_query_destroy(query);
}

static void play_watchers(frame_setting setting)
{
    jobs = setup_jobs(setting.thread_count);
    open_crowd(CROWD);
    schedule = setup_schedule_as(world, schedule_style(setting.style), 1);
    make_watchers();
    for (uint32_t disabled = 0; disabled <= WATCHERS; disabled++) {
        if (disabled > 0) must(quern_schedule_set_enabled(schedule, watchers[disabled - 1], false));
        memset((void *)first_numbers, 0, sizeof first_numbers);
        run_frames(1);
        for (uint32_t i = disabled; i < WATCHERS; i++)
            check_watcher(i);
        for (uint32_t i = 0; i < disabled; i++)
            cr_assert_eq(first_numbers[i][0], 0u, "a disabled system ran");
    }
    cr_assert_eq(wrong_count, 0u);
    close_crowd();
    quern_jobs_destroy(jobs);
}

Test(fused, views_are_numbered_in_order_for_each_system_whoever_is_disabled, .timeout = 120)
{
    for (uint32_t i = 0; i < SETTING_COUNT; i++)
        play_watchers(frame_setting_at(i, 0));
}

/* --------------------------------------------------------------------------------------- statistics */

static void spawn_per_view(quern_context *context, const quern_view *view)
{
    (void)view;
    expect(quern_commands_create(quern_context_commands(context)).bits != 0);
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
        close_crowd();
        quern_jobs_destroy(jobs);
    }
}

/* ----------------------------------------------------------------------------------- filters on changes */

/* One before the system that writes, one behind it, one that sits out every second frame. */
enum { BEFORE, BEHIND, SOMETIMES, OWN, EYES };

static _Atomic uint32_t shown_counts[EYES][MAX_VIEWS]; /* by ordinal, in this frame */
static uint32_t touch_run, view_count;

/* In each run, it writes in one of three views. */
static bool is_touched(uint32_t run, uint32_t ordinal)
{
    return ordinal % 3 == run % 3;
}

static void count_touch(quern_context *context)
{
    (void)context;
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

static quern_system add_eye(const char *name, uint32_t which)
{
    quern_term term = which == OWN ? quern_term_write(number) : quern_term_read(number);
    term = quern_term_changed(term);
    quern_system_def def = system_def(name, which == OWN ? note_shown_and_write : note_shown);
    def.terms[0] = term;
    def.condition = which == SOMETIMES ? in_even_frames : NULL;
    def.user_data = (void *)(uintptr_t)which;
    return setup_system(schedule, &def);
}

static quern_system add_touch(void)
{
    quern_system_def def = system_def("touch", touch);
    def.begin = count_touch;
    def.terms[0] = quern_term_write(number);
    touch_run = 0;
    return setup_system(schedule, &def);
}

/* The runs of `touch` that the system has not been shown are those from unseen[which] on. */
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

static void run_filtered(const bool is_there[EYES], quern_system system, uint32_t runs_per_frame)
{
    uint32_t unseen[EYES] = {0};
    for (uint32_t frame = 0; frame < 7; frame++) {
        quern_system_stats stats;
        memset((void *)shown_counts, 0, sizeof shown_counts);
        run_frames(1);
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        view_count = stats.view_count / runs_per_frame;
        cr_assert_gt(view_count, 30u, "the test needs many views");
        for (uint32_t which = 0; which < EYES; which++)
            if (is_there[which]) assert_shown(which, frame, runs_per_frame, unseen);
    }
    close_crowd();
    quern_jobs_destroy(jobs);
}

static void play_filtered(uint32_t style, uint32_t thread_count, uint32_t runs_per_frame)
{
    open_filtered(style, thread_count, runs_per_frame);
    add_eye("before", BEFORE);
    quern_system toucher = add_touch(), behind = add_eye("behind", BEHIND);
    add_eye("sometimes", SOMETIMES);
    must(quern_schedule_compile(schedule));
    cr_assert_eq(quern_schedule_are_fused(schedule, toucher, behind), !schedule_style(style).no_fuse);
    run_filtered((bool[EYES]){true, true, true, false}, toucher, runs_per_frame);
    open_filtered(style, thread_count, runs_per_frame);
    toucher = add_touch();
    add_eye("own", OWN);
    run_filtered((bool[EYES]){[OWN] = true}, toucher, runs_per_frame);
}

Test(fused, filters_show_what_was_written_before_in_the_frame_and_nothing_twice, .timeout = 120)
{
    for (uint32_t i = 0; i < 2 * SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i / 2, i % 2);
        play_filtered(setting.style, setting.thread_count, 1 + i % 2);
    }
}

/* ------------------------------------------------------------------------------------- refused accesses */

static void write_copy(quern_context *context, const quern_view *view)
{
    (void)context;
    if (view->ordinal == 0) expect(is_scratch(quern_view_write(view, 1), view->count * sizeof(uint64_t)));
}

Test(fused, a_refusal_names_the_system_that_it_met)
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
    close_crowd();
}

/* --------------------------------------------------------------------------- archetypes come and go */

/* In the phase before: entities of a set that was not there, with the one that all look up. */
static void create_tagged(quern_context *context)
{
    if (quern_context_frame_index(context) != 1) return;
    quern_component set[] = {number, tag};
    uint64_t value = 0;
    const void *values[] = {&value, NULL};
    for (uint32_t i = 0; i < CROWD; i++)
        expect(quern_commands_create_with(quern_context_commands(context), set, values, 2).bits != 0);
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
    (void)view;
    const uint64_t *value = quern_context_lookup(context, one, number);
    if (value != NULL) expect(*value == 1000 + quern_context_frame_index(context));
}

static void make_creator(void)
{
    quern_system_def def = system_def("creator", NULL);
    def.begin = create_tagged;
    setup_system(schedule, &def);
}

static quern_system make_late(const char *name, quern_kernel *run, quern_term a, quern_term b,
                              bool looks_up)
{
    quern_system_def def = system_def(name, run);
    def.terms[0] = a;
    def.terms[1] = b;
    def.phase = 1;
    if (looks_up) def.lookups[0].component = number;
    return setup_system(schedule, &def);
}

/* The looker looks up an entity that is not there before the sync point. */
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
    cr_assert_eq(quern_schedule_are_fused(schedule, writer, looker), !schedule_style(style).no_fuse);
    /* Slots are given out in order, so the last of those created has this handle. */
    quern_entity probe = setup_entity(world);
    one.bits = probe.bits + CROWD;
    run_frames(1);
    cr_assert_not(quern_schedule_are_fused(schedule, writer, looker), "split within the frame");
    cr_assert_eq(find_last_tagged().bits, one.bits, "the test looks up another entity than it means to");
    run_frames(2);
    cr_assert_eq(wrong_count, 0u, "style %u, %u threads", style, thread_count);
    close_crowd();
    quern_jobs_destroy(jobs);
}

Test(fused, a_sync_point_may_split_a_pass_of_the_same_frame, .timeout = 120)
{
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i, 0);
        play_split(setting.thread_count, setting.style);
    }
}

enum { KINDS = 6 };

static quern_component kinds[KINDS];

/* Some archetype's entities come or go, and now and then the empty archetypes. */
static void meddle(random_source *random, quern_query *all)
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
    (void)context;
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
    (void)context;
    uint64_t *copies = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        copies[i]--;
}

/* Systems over the same rows, and some over few of them; each sees all rows of its own, once. */
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
    add_user("count", add_rows, QUERN_WRITE_CONCURRENT);
    quern_query *all = setup_query(world, read, 2);
    uint64_t expected_score = 0;
    for (uint32_t frame = 0; frame < 20; frame++) {
        meddle(&random, all);
        run_frames(1);
        expected_score += quern_query_count(all);
        cr_assert_eq(counter_value(world, score), expected_score, "seed %llu", (unsigned long long)seed);
    }
    cr_assert_eq(wrong_count, 0u, "seed %llu, style %u, %u threads", (unsigned long long)seed, style,
                 thread_count);
    quern_query_destroy(all);
    close_crowd();
    quern_jobs_destroy(jobs);
}

Test(fused, archetypes_come_and_go_between_frames, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        play_with_removals(seed, (uint32_t)seed % STYLE_COUNT, pool_threads[seed % POOL_COUNT]);
}
