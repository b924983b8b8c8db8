/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/fused_scene.h"

#include <string.h>

/* Systems that share passes must see resources, partial results and declared orders as if they ran one
 * after another. */

/* ------------------------------------------------------------------ before and after, end and begin */

static _Atomic uint64_t rows_of_first, end_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    rows_of_first += view->count;
}

static void start_counting(quern_context *context)
{
    rows_of_first = 0;
    end_count = 0;
}

static void note_end(quern_context *context)
{
    expect(rows_of_first == CROWD);
    end_count++;
}

static void expect_all_rows(quern_context *context, const quern_view *view)
{
    expect(rows_of_first == CROWD);
}

static void expect_end(quern_context *context)
{
    expect(end_count == 1);
}

static void expect_end_in_view(quern_context *context, const quern_view *view)
{
    expect_end(context);
}

static quern_system_def first_def(void)
{
    static quern_term term;
    term = quern_term_write(number);
    return (quern_system_def){.name = "first", .run = count_rows, .terms = {term}, .begin = start_counting};
}

static quern_system_def second_def(quern_component component, quern_view_callback *run)
{
    static quern_term term;
    term = quern_term_write(component);
    return (quern_system_def){.name = "second", .run = run, .terms = {term}, .after = {"first"}};
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

Test(fused_order, a_declared_order_is_kept_between_end_and_begin, .timeout = 120)
{
    play((scene){make_end_before_begin, NULL, CROWD});
}

Test(fused_order, a_declared_order_is_kept_between_end_and_views, .timeout = 120)
{
    play((scene){make_end_before_views, NULL, CROWD});
}

Test(fused_order, a_declared_order_is_kept_between_views_and_begin, .timeout = 120)
{
    play((scene){make_views_before_begin, NULL, CROWD});
}

Test(fused_order, a_declared_order_is_kept_between_views_and_condition, .timeout = 120)
{
    play((scene){make_views_before_condition, NULL, CROWD});
}

Test(fused_order, declared_order_is_kept_without_shared_components, .timeout = 120)
{
    play((scene){make_order_without_shared_components, NULL, CROWD});
}

/* ---------------------------------------------------------------------------------------- resources */

static void expect_sum(quern_context *context, const quern_view *view)
{
    const uint64_t *value = quern_context_resource(context, score);
    expect(*value == CROWD * (quern_context_frame_index(context) + 1));
}

static void expect_sum_before(quern_context *context, const quern_view *view)
{
    const uint64_t *value = quern_context_resource(context, score);
    expect(*value == CROWD * quern_context_frame_index(context));
}

static void make_concurrent_users(void)
{
    add_user("before", expect_sum_before, QUERN_ACCESS_READ);
    add_user("adder", add_rows, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("behind", expect_sum, QUERN_ACCESS_READ);
}

static void add_rows_alone(quern_context *context, const quern_view *view)
{
    uint64_t *value = quern_context_resource_write(context, score);
    *value += view->count;
}

static void make_single_users(void)
{
    add_user("before", expect_sum_before, QUERN_ACCESS_READ);
    add_user("adder", add_rows_alone, QUERN_ACCESS_WRITE);
    add_user("behind", expect_sum, QUERN_ACCESS_READ);
}

Test(fused_order, resource_readers_see_all_or_nothing_of_a_concurrent_writer, .timeout = 120)
{
    play((scene){make_concurrent_users, NULL, CROWD});
}

Test(fused_order, resource_readers_see_all_or_nothing_of_a_serial_writer, .timeout = 120)
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
    return make_system(schedule, name, add_floats, .terms = {quern_term_read(number), second},
                       .end = combine_floats, .partial_bytes = sizeof(float));
}

static void make_summing(void)
{
    quern_term term = quern_term_write(number);
    add("increment", increment, &term, 1);
    quern_term terms[] = {quern_term_read(number), quern_term_write(copy)};
    add("triple", triple_into_copy, terms, 2);
    add_summing("sum", quern_term_read(copy));
}

static uint32_t first_total_bits; /* the bits of the total in the first setting */

static void check_sum(void)
{
    uint32_t bits;
    memcpy(&bits, &float_total, sizeof bits);
    cr_assert_gt(partial_count, 50u, "the test needs many views");
    cr_assert_gt(float_total, 0.0f);
    if (first_total_bits == 0) first_total_bits = bits;
    cr_assert_eq(bits, first_total_bits, "%.9g", (double)float_total);
}

Test(fused_order, partial_results_combine_to_the_same_bits, .timeout = 120)
{
    play((scene){make_summing, check_sum, CROWD});
}

/* Per system and ordinal: number of the view's first row, plus 1. */
static _Atomic uint64_t first_numbers[WATCHERS][MAX_VIEWS];
static quern_system watchers[WATCHERS];

static void watch(quern_context *context, const quern_view *view)
{
    uintptr_t which = (uintptr_t)quern_context_user_data(context);
    const uint64_t *numbers = quern_view_read(view, 0);
    expect(view->ordinal < MAX_VIEWS && view->count > 0);
    expect(atomic_exchange(&first_numbers[which][view->ordinal % MAX_VIEWS], numbers[0] + 1) == 0);
}

/* Adds systems that share a pass and match different archetypes. */
static void make_watchers(void)
{
    static const char *const names[] = {"all", "tagged", "untagged", "not wide"};
    quern_term seconds[] = {quern_term_with(copy), quern_term_with(tag), quern_term_without(tag),
                            quern_term_without(wide)};
    memset((void *)first_numbers, 0, sizeof first_numbers);
    for (uint32_t i = 0; i < WATCHERS; i++) {
        watchers[i] = make_system(schedule, names[i], watch, .terms = {quern_term_read(number), seconds[i]},
                                  .user_data = (void *)(uintptr_t)i);
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
        if (disabled > 0) must(quern_schedule_set_system_enabled(schedule, watchers[disabled - 1], false));
        memset((void *)first_numbers, 0, sizeof first_numbers);
        run_frames(1);
        for (uint32_t i = disabled; i < WATCHERS; i++)
            check_watcher(i);
        for (uint32_t i = 0; i < disabled; i++)
            cr_assert_eq(first_numbers[i][0], 0u, "a disabled system ran");
    }
    cr_assert_eq(wrong_count, 0u);
    close_world();
    quern_jobs_destroy(jobs);
}

Test(fused_order, ordinals_are_in_order_whichever_systems_are_disabled, .timeout = 120)
{
    for (uint32_t i = 0; i < SETTING_COUNT; i++)
        play_watchers(frame_setting_at(i, 0));
}
