/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/fused_scene.h"
#include "tests/support/random.h"

#include <string.h>

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
