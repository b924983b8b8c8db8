/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Tests when systems run: intervals, conditions, and phases with a fixed step. Times are fractions that
 * a double represents exactly. */

static quern_world *world;
static quern_component number, other;
static quern_resource score;
static quern_schedule *schedule; /* has three phases */
static quern_jobs *jobs;         /* has 3 threads */

/* The log of callbacks: one letter each, and the elapsed time that the callback received. */
static char letters[256];
static double deltas[256];
static uint32_t letter_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void open_schedule(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    score = setup_counter(world, "score");
    schedule = setup_phases(world, 3);
    jobs = setup_jobs(3);
}

static void close_schedule(void)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_jobs_destroy(jobs);
}

TestSuite(interval, .init = open_schedule, .fini = close_schedule);
TestSuite(condition, .init = open_schedule, .fini = close_schedule);
TestSuite(fixed_step, .init = open_schedule, .fini = close_schedule);

static void log_letter(const quern_context *context, char letter)
{
    pthread_mutex_lock(&mutex);
    deltas[letter_count] = quern_context_delta_seconds(context);
    letters[letter_count++] = letter;
    letters[letter_count] = '\0';
    pthread_mutex_unlock(&mutex);
}

static char letter_of(const quern_context *context)
{
    return *(const char *)quern_context_user_data(context);
}

static void log_hook(quern_context *context)
{
    log_letter(context, letter_of(context));
}

static void log_view(quern_context *context, const quern_view *view)
{
    log_hook(context);
}

/* Returns the definition of a system with a begin callback that logs its letter. */
static quern_system_def letter_def(const char *name)
{
    return (quern_system_def){.name = name, .begin = log_hook, .user_data = (void *)(uintptr_t)name};
}

/* Runs one frame and returns the letters that it logs. */
static const char *logged(double delta_seconds)
{
    letter_count = 0;
    letters[0] = '\0';
    must(quern_schedule_run(schedule, jobs, delta_seconds));
    return letters;
}

static void assert_logged(double delta_seconds, const char *expected, double expected_delta)
{
    cr_assert_str_eq(logged(delta_seconds), expected, "logged \"%s\", not \"%s\"", letters, expected);
    for (uint32_t i = 0; i < letter_count; i++)
        cr_assert_float_eq(deltas[i], expected_delta, 0, "%g seconds, not %g", deltas[i], expected_delta);
}

/* ------------------------------------------------------------------------------------------- intervals */

static quern_system setup_interval(double seconds)
{
    quern_system_def def = letter_def("i");
    def.interval_seconds = seconds;
    return setup_system(schedule, &def);
}

Test(interval, system_runs_when_its_interval_has_elapsed)
{
    setup_interval(1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_logged(0.25, "", 0);
        assert_logged(0.25, "", 0);
        assert_logged(0.25, "", 0);
        assert_logged(0.25, "i", 1);
    }
}

Test(interval, interval_of_zero_runs_every_frame_with_its_time)
{
    setup_interval(0);
    assert_logged(0.25, "i", 0.25);
    assert_logged(0, "i", 0);
    assert_logged(4, "i", 4);
}

Test(interval, lateness_counts_towards_the_next_interval)
{
    setup_interval(0.75);
    for (uint32_t i = 0; i < 4; i++) { /* 8 runs in 6 seconds */
        assert_logged(0.5, "", 0);
        assert_logged(0.5, "i", 1);
        assert_logged(0.5, "i", 0.5);
    }
}

Test(interval, one_run_covers_all_intervals_of_a_long_frame)
{
    setup_interval(0.5);
    assert_logged(5.25, "i", 5.25);
    assert_logged(0, "", 0);
    assert_logged(0.125, "", 0);
    assert_logged(0.125, "i", 0.25); /* at 5.5 seconds */
    assert_logged(0.875, "i", 0.875);
    assert_logged(0.125, "i", 0.125);
    assert_logged(0.5, "i", 0.5);
    assert_logged(1e300, "i", 1e300);
    assert_logged(0.5, "i", 0.5);
}

Test(interval, frames_of_zero_seconds_do_not_advance_intervals)
{
    setup_interval(0.5);
    for (uint32_t i = 0; i < 10; i++)
        assert_logged(0, "", 0);
    assert_logged(0.5, "i", 0.5);
}

Test(interval, systems_have_separate_intervals)
{
    quern_system_def def = letter_def("a");
    /* makes systems serial, so that the log is in order */
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE};
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        def.name = names[i];
        def.user_data = (void *)(uintptr_t)names[i];
        def.interval_seconds = (double[]){0.5, 0, 0.75}[i];
        setup_system(schedule, &def);
    }
    cr_assert_str_eq(logged(0.25), "b");
    cr_assert_str_eq(logged(0.25), "ab");
    cr_assert_str_eq(logged(0.25), "bc");
    cr_assert_str_eq(logged(0.25), "ab");
}

Test(interval, waiting_system_runs_no_callback_and_the_rest_of_its_pass_runs)
{
    setup_entity_with(world, &number, 1);
    quern_system_def def = letter_def("i"), always = system_def("always", log_view);
    def.run = log_view;
    def.end = log_hook;
    def.interval_seconds = 0.5;
    always.user_data = (void *)(uintptr_t) "a";
    def.terms[0] = always.terms[0] = quern_term_write(number);
    quern_system waiting = setup_system(schedule, &def), beside = setup_system(schedule, &always);
    quern_system_stats stats;
    cr_assert_str_eq(logged(0.25), "a");
    cr_assert(quern_schedule_are_fused(schedule, waiting, beside));
    must(quern_schedule_get_system_stats(schedule, waiting, &stats));
    cr_assert_eq(stats.view_count + stats.entity_count, 0u);
    cr_assert_str_eq(logged(0.25), "iiai");
    must(quern_schedule_get_system_stats(schedule, waiting, &stats));
    cr_assert_eq(stats.view_count, 1u);
    cr_assert_eq(stats.entity_count, 1u);
}

/* ------------------------------------------------------------------------------------------ conditions */

static bool answer;
static uint32_t asked_count;
static double asked_delta;

static bool give_answer(quern_context *context)
{
    asked_count++;
    asked_delta = quern_context_delta_seconds(context);
    log_letter(context, '?');
    return answer;
}

/* Adds a system with a condition. It logs its letter at begin, for each view and at end; if it has
 * terms, it shares a pass with other logging systems. */
static quern_system setup_conditional(const char *name, quern_system_condition *condition, bool has_terms,
                                      uint32_t flags)
{
    static quern_term term;
    term = quern_term_write(number);
    quern_system_def def = letter_def(name);
    def.run = log_view;
    def.end = log_hook;
    def.condition = condition;
    if (has_terms) def.terms[0] = term;
    def.flags = flags;
    return setup_system(schedule, &def);
}

Test(condition, condition_is_evaluated_once_before_begin)
{
    static const uint32_t flags[] = {0, QUERN_SYSTEM_SERIAL, QUERN_SYSTEM_MAIN_THREAD,
                                     QUERN_SYSTEM_EXCLUSIVE};
    for (uint32_t i = 0; i < 100; i++)
        setup_entity_with(world, &number, 1); /* one view */
    for (uint32_t i = 0; i < 7; i++) {
        quern_schedule_destroy(schedule);
        schedule = setup_phases(world, 3);
        bool has_terms = i >= 4;
        quern_system system = setup_conditional("c", give_answer, has_terms, flags[i % 4]);
        for (uint32_t frame = 0; frame < 6; frame++) {
            quern_system_stats stats;
            answer = frame % 3 == 1;
            asked_count = 0;
            cr_assert_str_eq(logged(0.25), answer ? "?ccc" : "?", "%u: %s", i, letters);
            cr_assert_eq(asked_count, 1u);
            cr_assert_float_eq(asked_delta, 0.25, 0);
            must(quern_schedule_get_system_stats(schedule, system, &stats));
            cr_assert_eq(stats.view_count, answer ? 1u : 0u);
            cr_assert_eq(stats.entity_count, answer && has_terms ? 100u : 0u);
        }
        must(quern_schedule_set_system_enabled(schedule, system, false));
        cr_assert_str_eq(logged(0.25), "", "a disabled system is not asked");
    }
}

Test(condition, condition_does_not_affect_the_rest_of_its_pass)
{
    setup_entity_with(world, &number, 1);
    quern_system a = setup_conditional("a", NULL, true, 0);
    quern_system b = setup_conditional("b", give_answer, true, 0);
    quern_system c = setup_conditional("c", NULL, true, 0);
    answer = false;
    cr_assert_str_eq(logged(0.25), "a?cacac");
    cr_assert(quern_schedule_are_fused(schedule, a, b) && quern_schedule_are_fused(schedule, b, c));
    answer = true;
    cr_assert_str_eq(logged(0.25), "a?bcabcabc");
    answer = false;
    cr_assert_str_eq(logged(0.25), "a?cacac");
}

static bool is_score_even(quern_context *context)
{
    const uint64_t *value = quern_context_resource(context, score);
    return *value % 2 == 0;
}

static void add_one(quern_context *context)
{
    ++*(uint64_t *)quern_context_resource_write(context, score);
}

static void setup_adder(const char *name)
{
    make_system(schedule, name, NULL, .begin = add_one, .resources = {{score, QUERN_ACCESS_WRITE}});
}

Test(condition, condition_sees_the_world_in_order_of_execution)
{
    quern_system_def def = letter_def("e");
    def.condition = is_score_even;
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    setup_adder("first");
    setup_system(schedule, &def);
    setup_adder("second");
    setup_adder("third");
    for (uint32_t i = 0; i < 20; i++) /* after the first system, the score is 1, 4, 7, ... */
        assert_logged(0.25, i % 2 == 1 ? "e" : "", 0.25);
}

static bool look_at_score(quern_context *context)
{
    return quern_context_resource(context, score) == NULL;
}

Test(condition, undeclared_access_fails_and_names_the_system)
{
    captured_reports reports;
    setup_conditional("curious", look_at_score, false, 0);
    capture_reports(&reports);
    must_not_run(schedule, jobs, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'curious'");
    cr_assert_not_null(strstr(reports.last, "'score'"), "%s", reports.last);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

Test(condition, interval_stays_due_until_the_condition_is_true)
{
    quern_system_def def = letter_def("i");
    def.interval_seconds = 0.5;
    def.condition = give_answer;
    setup_system(schedule, &def);
    answer = false;
    assert_logged(0.25, "", 0);
    assert_logged(0.25, "?", 0.5);
    assert_logged(0.25, "?", 0.75);
    answer = true;
    assert_logged(0.125, "?i", 0.875);
    assert_logged(0.125, "?i", 0.125); /* the run was 0.375 seconds late */
    assert_logged(0.25, "", 0);
}

static pthread_t caller;
static bool is_on_caller;

static bool note_thread(quern_context *context)
{
    is_on_caller = pthread_equal(pthread_self(), caller) != 0;
    return true;
}

Test(condition, condition_of_main_thread_system_runs_on_main_thread)
{
    caller = pthread_self();
    for (uint32_t i = 0; i < 2000; i++)
        setup_entity_with(world, &number, 1);
    setup_writer(schedule, "writer", number);
    setup_conditional("m", note_thread, true, QUERN_SYSTEM_MAIN_THREAD);
    for (uint32_t i = 0; i < 20; i++) {
        is_on_caller = false;
        logged(0.25);
        cr_assert(is_on_caller);
    }
}

/* ---------------------------------------------------------------------------------------- fixed steps */

static void setup_letters(void)
{
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        quern_system_def def = letter_def(names[i]);
        def.phase = i;
        setup_system(schedule, &def);
    }
}

Test(fixed_step, phase_runs_once_per_elapsed_step)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 8));
    cr_assert_str_eq(logged(0.125), "ac");
    cr_assert_str_eq(logged(0.125), "abc");
    cr_assert_str_eq(logged(0.25), "abc");
    cr_assert_str_eq(logged(0.875), "abbbc"); /* 0.125 seconds are left */
    cr_assert_str_eq(logged(0), "ac");
    cr_assert_str_eq(logged(0.125), "abc");
    cr_assert_str_eq(logged(0.125), "ac");
}

Test(fixed_step, its_systems_receive_the_step_and_others_the_frame_time)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 8));
    cr_assert_str_eq(logged(0.75), "abbbc");
    static const double expected[] = {0.75, 0.25, 0.25, 0.25, 0.75};
    for (uint32_t i = 0; i < COUNT_OF(expected); i++)
        cr_assert_float_eq(deltas[i], expected[i], 0);
}

Test(fixed_step, steps_above_the_limit_are_dropped_and_the_remainder_is_kept)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 2));
    cr_assert_str_eq(logged(4.1875), "abbc");
    cr_assert_str_eq(logged(0.03125), "ac", "0.1875 was left");
    cr_assert_str_eq(logged(0.03125), "abc");
    cr_assert_str_eq(logged(0.625), "abbc", "as many as fit");
    cr_assert_str_eq(logged(0.125), "abc", "0.125 was left");
}

Test(fixed_step, changing_the_step_keeps_the_remainder)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 2));
    cr_assert_str_eq(logged(0.125), "ac");
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 2));
    cr_assert_str_eq(logged(0.125), "abc");
    cr_assert_str_eq(logged(0.1875), "ac");
    must(quern_schedule_set_fixed_step(schedule, 1, 0.125, 2));
    cr_assert_str_eq(logged(0.0625), "abbc");
    cr_assert_str_eq(logged(0.0625), "ac");
    must(quern_schedule_set_fixed_step(schedule, 1, 0, 0));
    must(quern_schedule_set_fixed_step(schedule, 1, 0.125, 2));
    cr_assert_str_eq(logged(0.0625), "ac", "running once per frame in between drops it");
}

Test(fixed_step, zero_seconds_removes_the_fixed_step)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 4));
    cr_assert_str_eq(logged(0), "ac");
    must(quern_schedule_set_fixed_step(schedule, 1, 0, 0));
    assert_logged(0, "abc", 0);
    assert_logged(1, "abc", 1);
}

Test(fixed_step, phases_have_separate_steps)
{
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 0, 0.5, 8));
    must(quern_schedule_set_fixed_step(schedule, 2, 0.25, 8));
    cr_assert_str_eq(logged(0.25), "bc");
    cr_assert_str_eq(logged(0.25), "abc");
    cr_assert_str_eq(logged(1), "aabcccc");
}

static uint64_t seen_counts[8];
static uint32_t step_count;
static _Atomic uint64_t rows_in_step;

static void start_step(quern_context *context)
{
    rows_in_step = 0;
    record_entity_with(quern_context_commands(context), &number, NULL, 1);
}

static void count_rows(quern_context *context, const quern_view *view)
{
    rows_in_step += view->count;
}

static void end_step(quern_context *context)
{
    seen_counts[step_count++] = rows_in_step;
}

Test(fixed_step, every_step_ends_at_a_sync_point)
{
    quern_system system = make_system(schedule, "step", count_rows, .begin = start_step, .end = end_step,
                                      .terms = {quern_term_read(number)});
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 8));
    logged(1);
    cr_assert_eq(step_count, 4u);
    for (uint64_t i = 0; i < 4; i++)
        cr_assert_eq(seen_counts[i], i);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(stats.command_count, 8u, "of all steps");
    cr_assert_eq(stats_of_frame(schedule).created_count, 4u);
    cr_assert_eq(stats_of_frame(schedule).frame_index, 0u, "the steps are one frame");
}

static void assert_views(quern_system system, uint32_t expected)
{
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(stats.view_count, expected);
    cr_assert_eq(stats.entity_count, 2u * expected);
}

Test(fixed_step, statistics_cover_all_steps_of_the_frame)
{
    setup_entity_with(world, &number, 1);
    setup_entity_with(world, &number, 1);
    quern_system always = setup_reader(schedule, "always", number);
    quern_system gated = setup_conditional("gated", give_answer, true, 0);
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 8));
    answer = true;
    logged(0.75);
    assert_views(always, 3);
    assert_views(gated, 3);
    answer = false;
    logged(0.5);
    assert_views(always, 2);
    assert_views(gated, 0);
    logged(0);
    assert_views(always, 0);
}

Test(fixed_step, intervals_and_conditions_apply_per_step)
{
    quern_system_def def = letter_def("i");
    def.interval_seconds = 0.5;
    def.condition = give_answer;
    setup_system(schedule, &def);
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 8));
    answer = true;
    assert_logged(1.25, "?i?i", 0.5);
    assert_logged(0.125, "", 0);
    assert_logged(0.125, "?i", 0.5);
}

static failing_allocator *memory;
static uint32_t begun_count;

/* More entities than one slab of chunks holds, so that each step allocates another slab. */
enum { MANY = 1000 };

/* Creates entities. From the third step on, all allocations fail. */
static void create_many(quern_context *context)
{
    if (++begun_count == 3) failing_allocator_fail_from(memory, 1);
    for (uint32_t i = 0; i < MANY; i++)
        record_entity_with(quern_context_commands(context), &number, NULL, 1);
}

static void note_begin(quern_context *context)
{
    begun_count += 100;
}

static void open_failing_world(void)
{
    close_schedule();
    memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    number = setup_component(world, "number", 3000, 8);
    other = setup_component(world, "other", 8, 8);
    schedule = setup_phases(world, 2);
    jobs = NULL;
}

Test(fixed_step, an_error_ends_the_steps_and_the_frame)
{
    open_failing_world();
    quern_system_def def = system_def("create", NULL), late = system_def("late", NULL);
    def.begin = create_many;
    late.begin = note_begin;
    late.phase = 1;
    setup_system(schedule, &def);
    setup_system(schedule, &late);
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 8));
    refusal before = refusal_begin(NULL);
    quern_result result = quern_schedule_run(schedule, NULL, 2);
    refusal_end_code(&before, result, QUERN_ERROR_OUT_OF_MEMORY, __LINE__, "the frame");
    cr_assert_eq(begun_count, 3u);
    cr_assert_eq(stats_of_frame(schedule).created_count, 2u * MANY);
    failing_allocator_heal(memory);
    begun_count = 3;
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_gt(begun_count, 103u, "the next frame runs");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    failing_allocator_close(memory);
    open_schedule();
}

Test(fixed_step, negative_or_infinite_frame_time_is_refused)
{
    static const double wrong[] = {-0.25, (double)NAN, (double)INFINITY, -(double)INFINITY};
    setup_interval(0.5);
    quern_system_def def = letter_def("s");
    def.phase = 1;
    setup_system(schedule, &def);
    must(quern_schedule_set_fixed_step(schedule, 1, 0.5, 8));
    cr_assert_str_eq(logged(0.25), "");
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++)
        must_refuse(INVALID_ARGUMENT, world, quern_schedule_run(schedule, jobs, wrong[i]));
    cr_assert_str_eq(letters, "");
    cr_assert_str_eq(logged(0.25), "is", "time went on as if nothing had happened");
    cr_assert_eq(stats_of_frame(schedule).frame_index, 1u);
}

static void set_step_inside(quern_context *context)
{
    must_refuse(WORLD_LOCKED, NULL, quern_schedule_set_fixed_step(schedule, 0, 1, 1));
    begun_count++;
}

Test(fixed_step, invalid_arguments_are_refused)
{
    quern_result invalid = QUERN_ERROR_INVALID_ARGUMENT;
    setup_letters();
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 8));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_set_fixed_step(NULL, 0, 1, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 3, 1, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, UINT32_MAX, 1, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 1, -0.25, 1));
    assert_message_has("'p1'");
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 1, (double)NAN, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 1, (double)INFINITY, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 1, -(double)INFINITY, 1));
    assert_refused(world, invalid, quern_schedule_set_fixed_step(schedule, 1, 0.5, 0));
    cr_assert_str_eq(logged(0.5), "abbc", "the step is as it was");
}

Test(fixed_step, step_cannot_be_changed_while_a_frame_runs)
{
    quern_system_def def = system_def("inside", NULL);
    def.begin = set_step_inside;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    logged(0.25);
    def.name = "inside, too";
    def.flags = 0;
    setup_system(schedule, &def);
    logged(0.25);
    cr_assert_eq(begun_count, 3u);
}

/* --------------------------------------------------------------------------------- against a model */

/* A model of times in whole ticks. It counts the multiples of an interval or step since the beginning;
 * the library keeps remainders instead. */
enum { PACED = 6, TICKS_PER_SECOND = 64, PACED_FRAMES = 400, MOST_CALLS = 80 };

typedef struct paced {
    char name[2];
    uint32_t interval, condition_percent, disabled_percent, phase;
    quern_system system;
    uint64_t counted, told,
        covered; /* ticks of all its frames; ticks that its runs received; multiples covered by runs */
    /* log of one frame: '?' per condition and 'r' per run, each with the ticks that it received */
    char expected[1024], seen[1024];
} paced;

static paced paces[PACED];
static random_source pace_random;
/* results of the condition for the evaluations of a frame, in order */
static bool pace_answers[PACED][MOST_CALLS];
static uint32_t pace_asked[PACED];

static void note_pace(char text[1024], char what, double ticks)
{
    const size_t used = strlen(text);
    snprintf(text + used, 1024 - used, "%c%g ", what, ticks);
}

static bool answer_pace(quern_context *context)
{
    paced *it = quern_context_user_data(context);
    note_pace(it->seen, '?', quern_context_delta_seconds(context) * TICKS_PER_SECOND);
    return pace_answers[it - paces][pace_asked[it - paces]++];
}

static void run_pace(quern_context *context)
{
    paced *it = quern_context_user_data(context);
    note_pace(it->seen, 'r', quern_context_delta_seconds(context) * TICKS_PER_SECOND);
}

/* Lets the model decide whether a system runs, and logs what it expects. */
static void model_turn(paced *it, uint64_t ticks)
{
    if (it->interval > 0) {
        it->counted += ticks;
        if (it->counted / it->interval == it->covered) return;
        ticks = it->counted - it->told;
    }
    if (it->condition_percent > 0) {
        note_pace(it->expected, '?', (double)ticks);
        if (!pace_answers[it - paces][pace_asked[it - paces]++]) return;
    }
    note_pace(it->expected, 'r', (double)ticks);
    if (it->interval == 0) return;
    it->told = it->counted;
    it->covered = it->counted / it->interval;
}

static void add_paced(uint32_t i)
{
    paced *it = &paces[i];
    *it = (paced){.name = {(char)('a' + i)},
                  .interval = random_below(&pace_random, 3) * (1 + random_below(&pace_random, 20)),
                  .condition_percent = random_below(&pace_random, 2) * 60,
                  .disabled_percent = random_below(&pace_random, 2) * 30,
                  .phase = random_below(&pace_random, 3)};
    it->system = make_system(schedule, it->name, NULL, .begin = run_pace,
                             .condition = it->condition_percent > 0 ? answer_pace : NULL,
                             .interval_seconds = (double)it->interval / TICKS_PER_SECOND,
                             .phase = it->phase, .user_data = it);
}

typedef struct paced_phase {
    uint32_t step, most;
    uint64_t counted; /* ticks since the step was set, including the remainder at that time */
    uint64_t covered; /* steps that have run or were dropped */
} paced_phase;

/* Returns the number of times that the model runs a phase in a frame of this many ticks. */
static uint32_t model_steps(paced_phase *phase, uint64_t ticks)
{
    if (phase->step == 0) return 1;
    phase->counted += ticks;
    const uint64_t reached = phase->counted / phase->step, fresh = reached - phase->covered;
    phase->covered = reached;
    return fresh < phase->most ? (uint32_t)fresh : phase->most;
}

static void change_step(paced_phase *phase, uint32_t index)
{
    const uint64_t left = phase->step > 0 ? phase->counted % phase->step : 0;
    *phase = (paced_phase){.step = random_below(&pace_random, 2) * (1 + random_below(&pace_random, 12)),
                           .most = 1 + random_below(&pace_random, 4)};
    phase->counted = phase->step > 0 ? left : 0;
    must(quern_schedule_set_fixed_step(schedule, index, (double)phase->step / TICKS_PER_SECOND,
                                       phase->most));
}

static void prepare_paces(void)
{
    for (uint32_t i = 0; i < PACED; i++) {
        paces[i].expected[0] = paces[i].seen[0] = '\0';
        for (uint32_t k = 0; k < MOST_CALLS; k++)
            pace_answers[i][k] = random_chance(&pace_random, paces[i].condition_percent);
    }
}

static void model_paced_frame(paced_phase phases[3], const bool enabled[PACED], uint64_t ticks)
{
    memset(pace_asked, 0, sizeof pace_asked);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t left = model_steps(&phases[i], ticks); left > 0; left--)
            for (uint32_t n = 0; n < PACED; n++)
                if (paces[n].phase == i && enabled[n])
                    model_turn(&paces[n], phases[i].step > 0 ? phases[i].step : ticks);
}

static void play_paced_frame(paced_phase phases[3])
{
    bool enabled[PACED];
    prepare_paces();
    for (uint32_t i = 0; i < PACED; i++) {
        enabled[i] = !random_chance(&pace_random, paces[i].disabled_percent);
        must(quern_schedule_set_system_enabled(schedule, paces[i].system, enabled[i]));
    }
    if (random_chance(&pace_random, 5)) {
        const uint32_t which = random_below(&pace_random, 3);
        change_step(&phases[which], which);
    }
    const uint64_t ticks = random_below(&pace_random, random_chance(&pace_random, 10) ? 200 : 12);
    model_paced_frame(phases, enabled, ticks);
    memset(pace_asked, 0, sizeof pace_asked);
    must(quern_schedule_run(schedule, jobs, (double)ticks / TICKS_PER_SECOND));
    for (uint32_t i = 0; i < PACED; i++)
        cr_assert_str_eq(paces[i].seen, paces[i].expected, "system %s, interval %u: \"%s\", not \"%s\"",
                         paces[i].name, paces[i].interval, paces[i].seen, paces[i].expected);
}

Test(fixed_step, random_intervals_conditions_and_steps_match_the_model)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        paced_phase phases[3] = {{0}};
        pace_random = (random_source){seed};
        quern_schedule_destroy(schedule);
        schedule = setup_phases(world, 3);
        for (uint32_t i = 0; i < PACED; i++)
            add_paced(i);
        for (uint32_t frame = 0; frame < PACED_FRAMES; frame++)
            play_paced_frame(phases);
    }
}
