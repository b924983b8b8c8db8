/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* What a schedule accepts, and in which order it runs its systems. */

static quern_component position, velocity;
static quern_resource score;
static quern_schedule *schedule; /* has two phases */

static _Atomic uint32_t run_count;
static uint32_t log_count;

static void open_schedule(void)
{
    run_count = 0;
    log_count = 0;
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    score = setup_counter(world, "score");
    schedule = setup_phases(world, 2);
}

TestSuite(schedule, .init = open_schedule, .fini = close_world);
TestSuite(schedule_order, .init = open_schedule, .fini = close_world);

static quern_system setup_idle(const char *name)
{
    return make_system(schedule, name, idle_run);
}

/* ------------------------------------------------------------------------------ definitions of systems */

/* Changes a valid definition so that it is invalid in one way. */
typedef struct mistake {
    const char *what;
    void (*make)(quern_system_def *def);
    quern_result expected;
} mistake;

static const char too_long[] = "a name of 64 bytes, which is one more than a name is allowed to have";

static void use_term(quern_system_def *def, quern_term term)
{
    def->terms[0] = term;
}

static void use_resource(quern_system_def *def, quern_resource resource, quern_access access)
{
    def->resources[0] = (quern_resource_access){resource, access};
}

static void no_name(quern_system_def *def)
{
    def->name = NULL;
}

static void empty_name(quern_system_def *def)
{
    def->name = "";
}

static void long_name(quern_system_def *def)
{
    def->name = too_long;
}

static void known_name(quern_system_def *def)
{
    def->name = "known";
}

static void no_callback(quern_system_def *def)
{
    def->run = NULL;
}

static void terms_without_run(quern_system_def *def)
{
    use_term(def, quern_term_read(position));
    def->run = NULL;
    def->begin = idle_callback;
}

static void unknown_phase(quern_system_def *def)
{
    def->phase = 2;
}

static void unknown_flag(quern_system_def *def)
{
    def->flags = QUERN_SYSTEM_WHOLE_CHUNKS * 2;
}

static void null_term(quern_system_def *def)
{
    use_term(def, quern_term_read((quern_component){0}));
}

static void term_after_the_end(quern_system_def *def)
{
    def->terms[QUERN_MAX_TERMS - 1] = quern_term_read(position);
}

static void unknown_term(quern_system_def *def)
{
    use_term(def, quern_term_read(component_unregistered(position)));
}

static void same_term_twice(quern_system_def *def)
{
    def->terms[0] = quern_term_read(position);
    def->terms[1] = quern_term_write(position);
}

static void access_to_excluded(quern_system_def *def)
{
    use_term(def, quern_term_make(position, QUERN_MATCH_NONE, QUERN_ACCESS_READ));
}

static void concurrent_term(quern_system_def *def)
{
    use_term(def, quern_term_make(position, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE_CONCURRENT));
}

static void unknown_match(quern_system_def *def)
{
    use_term(def, quern_term_make(position, (quern_match)9, QUERN_ACCESS_READ));
}

static void lookup_after_the_end(quern_system_def *def)
{
    def->lookups[1].component = position;
}

static void unknown_lookup(quern_system_def *def)
{
    def->lookups[0].component = component_unregistered(position);
}

static void lookup_of_own_write(quern_system_def *def)
{
    use_term(def, quern_term_write(position));
    def->lookups[0].component = position;
}

static void null_resource(quern_system_def *def)
{
    use_resource(def, (quern_resource){0}, QUERN_ACCESS_READ);
}

static void resource_after_the_end(quern_system_def *def)
{
    def->resources[2] = (quern_resource_access){score, QUERN_ACCESS_READ};
}

static void unknown_resource(quern_system_def *def)
{
    use_resource(def, (quern_resource){score.bits + 1}, QUERN_ACCESS_READ);
}

static void resource_without_access(quern_system_def *def)
{
    use_resource(def, score, QUERN_ACCESS_NONE);
}

static void resource_with_strange_access(quern_system_def *def)
{
    use_resource(def, score, (quern_access)17);
}

static void same_resource_twice(quern_system_def *def)
{
    use_resource(def, score, QUERN_ACCESS_READ);
    def->resources[1] = def->resources[0];
}

static void exclusive_with_terms(quern_system_def *def)
{
    use_term(def, quern_term_read(position));
    def->flags = QUERN_SYSTEM_EXCLUSIVE;
}

static void exclusive_with_partial(quern_system_def *def)
{
    def->partial_bytes = 8;
    def->flags = QUERN_SYSTEM_EXCLUSIVE;
}

static void before_after_the_end(quern_system_def *def)
{
    def->before[1] = "known";
}

static void after_after_the_end(quern_system_def *def)
{
    def->after[0] = "known";
    def->after[2] = "known";
}

static void empty_name_after(quern_system_def *def)
{
    def->after[0] = "";
}

static void negative_interval(quern_system_def *def)
{
    def->interval_seconds = -0.5;
}

static void interval_of_no_number(quern_system_def *def)
{
    def->interval_seconds = (double)NAN;
}

static void infinite_interval(quern_system_def *def)
{
    def->interval_seconds = (double)INFINITY;
}

static void same_lookup_twice(quern_system_def *def)
{
    def->lookups[0].component = def->lookups[1].component = position;
}

static bool always(quern_context *context)
{
    return true;
}

static void condition_alone(quern_system_def *def)
{
    def->run = NULL;
    def->condition = always;
}

static const mistake mistakes[] = {
    {"no name", no_name, QUERN_ERROR_INVALID_ARGUMENT},
    {"empty name", empty_name, QUERN_ERROR_INVALID_ARGUMENT},
    {"name too long", long_name, QUERN_ERROR_INVALID_ARGUMENT},
    {"name known", known_name, QUERN_ERROR_DUPLICATE_NAME},
    {"no callback", no_callback, QUERN_ERROR_NULL_ARGUMENT},
    {"terms without run", terms_without_run, QUERN_ERROR_NULL_ARGUMENT},
    {"unknown phase", unknown_phase, QUERN_ERROR_INVALID_ARGUMENT},
    {"unknown flag", unknown_flag, QUERN_ERROR_INVALID_ARGUMENT},
    {"term without component", null_term, QUERN_ERROR_UNKNOWN_COMPONENT},
    {"term after the end", term_after_the_end, QUERN_ERROR_INVALID_ARGUMENT},
    {"unknown component", unknown_term, QUERN_ERROR_UNKNOWN_COMPONENT},
    {"component twice", same_term_twice, QUERN_ERROR_DUPLICATE_COMPONENT},
    {"infinite interval", infinite_interval, QUERN_ERROR_INVALID_ARGUMENT},
    {"lookup twice", same_lookup_twice, QUERN_ERROR_DUPLICATE_COMPONENT},
    {"access to excluded", access_to_excluded, QUERN_ERROR_INVALID_ARGUMENT},
    {"concurrent term", concurrent_term, QUERN_ERROR_INVALID_ARGUMENT},
    {"unknown match", unknown_match, QUERN_ERROR_INVALID_ARGUMENT},
    {"lookup after the end", lookup_after_the_end, QUERN_ERROR_INVALID_ARGUMENT},
    {"unknown lookup", unknown_lookup, QUERN_ERROR_UNKNOWN_COMPONENT},
    {"lookup of own write", lookup_of_own_write, QUERN_ERROR_SCHEDULE_CONFLICT},
    {"access to no resource", null_resource, QUERN_ERROR_UNKNOWN_RESOURCE},
    {"resource after the end", resource_after_the_end, QUERN_ERROR_INVALID_ARGUMENT},
    {"unknown resource", unknown_resource, QUERN_ERROR_UNKNOWN_RESOURCE},
    {"resource without access", resource_without_access, QUERN_ERROR_INVALID_ARGUMENT},
    {"resource with strange access", resource_with_strange_access, QUERN_ERROR_INVALID_ARGUMENT},
    {"resource twice", same_resource_twice, QUERN_ERROR_INVALID_ARGUMENT},
    {"exclusive with terms", exclusive_with_terms, QUERN_ERROR_INVALID_ARGUMENT},
    {"exclusive with partial", exclusive_with_partial, QUERN_ERROR_INVALID_ARGUMENT},
    {"before after the end", before_after_the_end, QUERN_ERROR_INVALID_ARGUMENT},
    {"after after the end", after_after_the_end, QUERN_ERROR_INVALID_ARGUMENT},
    {"negative interval", negative_interval, QUERN_ERROR_INVALID_ARGUMENT},
    {"interval of no number", interval_of_no_number, QUERN_ERROR_INVALID_ARGUMENT},
    {"condition alone", condition_alone, QUERN_ERROR_NULL_ARGUMENT},
    {"name in after empty", empty_name_after, QUERN_ERROR_INVALID_ARGUMENT},
};

Test(schedule, every_mistake_in_a_definition_is_refused_and_leaves_the_schedule_as_it_was)
{
    setup_idle("known");
    for (uint32_t i = 0; i < COUNT_OF(mistakes); i++) {
        quern_system_def def = system_def("candidate", idle_run);
        mistakes[i].make(&def);
        refusal before = refusal_begin(world);
        quern_result result = quern_schedule_add_system(schedule, &def, NULL);
        refusal_end_code(&before, result, mistakes[i].expected, __LINE__, mistakes[i].what);
        cr_assert_eq(quern_schedule_system_count(schedule), 1u);
        must_run(schedule, NULL);
    }
}

Test(schedule, a_message_names_what_is_wrong)
{
    quern_system_def def = system_def("candidate", idle_run);
    after_after_the_end(&def);
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    assert_message_has("candidate");
    assert_message_has("after 1 is zero, which ends the list, but after 2 is set: leave no gap");
    def = system_def("candidate", idle_run);
    lookup_of_own_write(&def);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    assert_message_has("candidate");
    assert_message_has("position");
}

Test(schedule, a_serial_system_may_look_up_what_it_writes)
{
    static const uint32_t flags[] = {QUERN_SYSTEM_SERIAL, QUERN_SYSTEM_MAIN_THREAD};
    for (uint32_t i = 0; i < COUNT_OF(flags); i++) {
        quern_system_def def = system_def(i ? "main" : "serial", idle_run);
        lookup_of_own_write(&def);
        def.flags = flags[i];
        setup_system(schedule, &def);
    }
    must_run(schedule, NULL);
}

Test(schedule, definitions_are_copied)
{
    char name[] = "mover";
    quern_system_def def = system_def(name, idle_run);
    def.terms[0] = quern_term_write(position);
    quern_system system = setup_system(schedule, &def);
    name[0] = 'x';
    def.terms[0] = quern_term_read(velocity);
    cr_assert_eq(quern_schedule_find_system(schedule, "mover").bits, system.bits);
    cr_assert_not_null(strstr(described(schedule), "write 'position'"));
}

/* ---------------------------------------------------------------------------------- other arguments */

static void assert_schedule_refused(const char *const *phases, uint32_t count, quern_result expected)
{
    quern_schedule_def def = {0};
    for (uint32_t i = 0; i < count; i++)
        def.phases[i] = phases[i];
    quern_schedule *other = NULL;
    assert_refused(world, expected, quern_schedule_create(world, &def, &other));
    cr_assert_null(other);
}

Test(schedule, wrong_definitions_of_a_schedule_are_refused)
{
    static const char *phases[QUERN_MAX_PHASES];
    for (uint32_t i = 0; i < COUNT_OF(phases); i++)
        phases[i] = "phase";
    assert_schedule_refused(phases, 2, QUERN_ERROR_DUPLICATE_NAME);
    phases[1] = too_long;
    assert_schedule_refused(phases, 2, QUERN_ERROR_INVALID_ARGUMENT);
    phases[1] = "";
    assert_schedule_refused(phases, 2, QUERN_ERROR_INVALID_ARGUMENT);
    phases[1] = NULL;
    assert_schedule_refused(phases, 3, QUERN_ERROR_INVALID_ARGUMENT);
    assert_message_has("phase 1 is zero, which ends the list, but phase 2 is set: leave no gap");
    quern_schedule *other = NULL;
    quern_schedule_def def = {.prefetch = QUERN_PREFETCH_CHUNKS + 1};
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_create(world, &def, &other));
    assert_message_has("quern_schedule_create: prefetch is 4, which is no quern_prefetch");
    cr_assert_null(other);
    must_refuse(NULL_ARGUMENT, world, quern_schedule_create(NULL, NULL, &other));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_create(world, NULL, NULL));
}

Test(schedule, the_default_schedule_has_one_phase_and_may_be_empty)
{
    quern_schedule *other;
    must(quern_schedule_create(world, NULL, &other));
    must_run(other, NULL);
    quern_system_def def = system_def("late", idle_run);
    def.phase = 1;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(other, &def, NULL));
    quern_schedule_destroy(other);
    quern_schedule_destroy(NULL);
}

Test(schedule, null_arguments_and_unknown_systems_are_refused)
{
    quern_system_def def = system_def("system", idle_run);
    quern_system none = {0}, unknown = {7};
    quern_system known = setup_idle("known");
    quern_system_stats stats;
    quern_result null = QUERN_ERROR_NULL_ARGUMENT, invalid = QUERN_ERROR_INVALID_ARGUMENT;
    assert_refused(world, null, quern_schedule_add_system(NULL, &def, NULL));
    assert_refused(world, null, quern_schedule_add_system(schedule, NULL, NULL));
    assert_refused(world, null, quern_schedule_set_system_enabled(NULL, known, true));
    assert_refused(world, invalid, quern_schedule_set_system_enabled(schedule, none, true));
    assert_refused(world, invalid, quern_schedule_set_system_enabled(schedule, unknown, true));
    assert_refused_value(world, quern_schedule_is_system_enabled(NULL, known));
    assert_refused_value(world, quern_schedule_is_system_enabled(schedule, unknown));
    assert_refused(world, null, quern_schedule_compile(NULL));
    assert_refused(world, null, quern_schedule_run(NULL, NULL, 0));
    assert_refused(world, null,
                   quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(NULL)));
    assert_refused(world, null,
                   quern_schedule_describe(NULL, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)));
    assert_refused(world, null, quern_schedule_get_system_stats(NULL, known, &stats));
    assert_refused(world, null, quern_schedule_get_system_stats(schedule, known, NULL));
    assert_refused(world, invalid, quern_schedule_get_system_stats(schedule, unknown, &stats));
    assert_refused_value(world, quern_schedule_has_edge(schedule, known, unknown));
    assert_refused_value(world, quern_schedule_has_edge(NULL, known, known));
    assert_refused_value(world, quern_schedule_find_system(schedule, NULL).bits);
    assert_refused_value(world, quern_schedule_find_system(NULL, "known").bits);
    cr_assert_eq(quern_schedule_find_system(schedule, "nobody").bits, 0u);
    cr_assert_eq(quern_schedule_system_count(NULL), 0u);
    cr_assert_eq(quern_schedule_system_at(NULL, 0).bits, 0u);
}

/* -------------------------------------------------------------------------------------------- order */

enum { LOG_COUNT = 64 };

static char log_text[LOG_COUNT];
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Appends the letter in user_data. Conflicts order the systems that could run at the same time. */
static void note(quern_context *context)
{
    pthread_mutex_lock(&log_mutex);
    if (log_count < LOG_COUNT - 1)
        log_text[log_count++] = (char)(uintptr_t)quern_context_user_data(context);
    log_text[log_count] = '\0';
    pthread_mutex_unlock(&log_mutex);
}

typedef struct rule {
    const char *before, *after;
    uint32_t phase;
} rule;

/* Creates a system that is named by one letter and writes the score, so that no two of them run at the same
 * time. */
static quern_system setup_letter(const char *name, rule how)
{
    quern_system_def def = system_def(name, NULL);
    def.begin = note;
    def.user_data = (void *)(uintptr_t)name[0];
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE};
    def.phase = how.phase;
    if (how.before != NULL) def.before[0] = how.before;
    if (how.after != NULL) def.after[0] = how.after;
    return setup_system(schedule, &def);
}

static void assert_order(const char *expected)
{
    must(quern_schedule_compile(schedule));
    for (uint32_t i = 0; i < strlen(expected); i++) {
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, quern_schedule_system_at(schedule, i), &stats));
        cr_assert_eq(stats.name[0], expected[i], "system %u is '%s'", i, stats.name);
    }
    cr_assert_eq(quern_schedule_system_at(schedule, (uint32_t)strlen(expected)).bits, 0u);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        log_count = 0;
        must_run(schedule, jobs);
        cr_assert_str_eq(log_text, expected, "%u threads", pool_threads[i]);
        quern_jobs_destroy(jobs);
    }
}

Test(schedule_order, systems_run_in_the_order_of_registration)
{
    setup_letter("c", (rule){0});
    cr_assert_eq(quern_schedule_system_at(schedule, 0).bits, 0u, "not compiled yet");
    setup_letter("a", (rule){0});
    setup_letter("b", (rule){0});
    assert_order("cab");
}

Test(schedule_order, phases_precede_other_rules)
{
    setup_letter("c", (rule){.phase = 1});
    setup_letter("a", (rule){.phase = 0});
    setup_letter("b", (rule){.phase = 1});
    setup_letter("d", (rule){.phase = 0});
    assert_order("adcb");
}

Test(schedule_order, before_and_after_precede_registration_order)
{
    setup_letter("d", (rule){.after = "b"});
    setup_letter("c", (rule){.before = "d"});
    setup_letter("b", (rule){0});
    setup_letter("a", (rule){.before = "c"});
    assert_order("bacd");
}

Test(schedule_order, system_added_later_is_ordered_by_its_rules)
{
    setup_letter("a", (rule){0});
    setup_letter("b", (rule){0});
    assert_order("ab");
    setup_letter("c", (rule){.before = "b"});
    assert_order("acb");
}

Test(schedule_order, a_long_chain_against_the_registration_is_followed)
{
    char name[2] = {0}, after[2] = {0};
    char expected[27] = {0};
    for (char letter = 'a'; letter <= 'z'; letter++) {
        name[0] = letter;
        after[0] = (char)(letter + 1);
        setup_letter(name, (rule){.after = letter < 'z' ? after : NULL});
        expected['z' - letter] = letter;
    }
    assert_order(expected);
}

/* Compiling, describing and running fail with the same error each time, and no system runs. */
static void assert_cannot_run(quern_result expected, const char *first_name, const char *second_name)
{
    for (uint32_t i = 0; i < 2; i++) {
        assert_refused(world, expected, quern_schedule_compile(schedule));
        assert_refused(world, expected, quern_schedule_run(schedule, NULL, 0));
        assert_message_has(first_name);
        assert_message_has(second_name);
        assert_refused(world, expected,
                       quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)));
    }
    cr_assert_eq(log_count, 0u);
    cr_assert_eq(quern_schedule_system_at(schedule, 0).bits, 0u);
}

Test(schedule_order, a_cycle_is_refused_with_its_names)
{
    setup_letter("x", (rule){0});
    setup_letter("a", (rule){.before = "b"});
    setup_letter("b", (rule){.before = "c"});
    setup_letter("c", (rule){.before = "a"});
    setup_letter("d", (rule){.after = "c"});
    assert_cannot_run(QUERN_ERROR_SCHEDULE_CONFLICT, "'a'", "'c'");
    assert_message_has("'b'");
    cr_assert_null(strstr(quern_error_message(), "'x'"), "%s", quern_error_message());
    cr_assert_null(strstr(quern_error_message(), "'d'"), "it waits for the cycle, but is not in it");
    assert_message_has("; remove one of these rules");
}

Test(schedule_order, system_cannot_precede_itself)
{
    setup_letter("a", (rule){.before = "a"});
    assert_cannot_run(QUERN_ERROR_SCHEDULE_CONFLICT, "'a'", "'a'");
}

Test(schedule_order, unknown_name_is_refused_until_system_is_added)
{
    setup_letter("a", (rule){.after = "later"});
    assert_cannot_run(QUERN_ERROR_UNKNOWN_SYSTEM, "'a'", "'later'");
    setup_letter("later", (rule){0});
    assert_order("la");
}

Test(schedule_order, unknown_name_that_is_misspelt_is_corrected)
{
    setup_letter("latte",
                 (rule){.after = "latter"}); /* as close as the next one, but it cannot mean itself */
    setup_letter("later", (rule){0});
    assert_cannot_run(QUERN_ERROR_UNKNOWN_SYSTEM, "'latte'", "remove the rule; did you mean 'later'?");
}

Test(schedule_order, order_across_phases_is_refused)
{
    setup_letter("a", (rule){.phase = 0});
    setup_letter("b", (rule){.phase = 1, .after = "a"});
    assert_cannot_run(QUERN_ERROR_SCHEDULE_CONFLICT, "'a'", "'b'");
    assert_message_has("'p1'");
}

Test(schedule_order, a_schedule_that_ran_fails_after_a_bad_system_was_added)
{
    setup_letter("a", (rule){0});
    assert_order("a");
    setup_letter("b", (rule){.after = "nobody"});
    log_count = 0;
    assert_cannot_run(QUERN_ERROR_UNKNOWN_SYSTEM, "'b'", "'nobody'");
}

/* --------------------------------------------------------------------------------------------- limits */

static void count_run(quern_context *context, const quern_view *view)
{
    cr_assert_eq(view->count, 0u, "a system without terms gets an empty view");
    run_count++;
}

Test(schedule, schedule_has_room_for_65535_systems, .timeout = 120)
{
    runs_on_one_thread(); /* the frame on two threads is that of other tests, and long */
    quern_system_def def = system_def(NULL, count_run);
    char name[16];
    def.name = name;
    for (uint32_t i = 0; i < QUERN_MAX_SYSTEMS; i++) {
        snprintf(name, sizeof name, "s%u", i);
        setup_system(schedule, &def);
    }
    def.name = "one more";
    must_refuse(LIMIT, world, quern_schedule_add_system(schedule, &def, NULL));
    assert_message_has("QUERN_MAX_SYSTEMS");
    quern_jobs *jobs = setup_jobs(2);
    must_run(schedule, jobs);
    cr_assert_eq(run_count, (uint32_t)QUERN_MAX_SYSTEMS);
    quern_jobs_destroy(jobs);
}

static quern_system_def greedy; /* its lists have no end: they are full */

static void read_all(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->term_count; i++)
        cr_assert_not_null(quern_view_read(view, i));
    for (uint32_t i = 0; i < QUERN_MAX_ACCESS; i++) {
        cr_assert_not_null(quern_context_lookup(context, view->entities[0], greedy.lookups[i].component));
        cr_assert_not_null(quern_context_resource(context, greedy.resources[i].resource));
    }
    run_count++;
}

Test(schedule, system_may_have_32_terms_lookups_and_resources)
{
    quern_component components[QUERN_MAX_ACCESS];
    greedy = system_def("greedy", read_all);
    for (uint32_t i = 0; i < QUERN_MAX_ACCESS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        components[i] = setup_component(world, name, 8, 8);
        greedy.lookups[i].component = components[i];
        greedy.terms[i] = quern_term_read(components[i]);
        greedy.resources[i] = (quern_resource_access){setup_counter(world, name), QUERN_ACCESS_READ};
    }
    setup_entity_with(world, components, QUERN_MAX_ACCESS);
    setup_system(schedule, &greedy);
    must_run(schedule, NULL);
    cr_assert_eq(run_count, 1u);
}

/* ------------------------------------------------------------------- enabled and disabled systems */

static void note_run(quern_context *context, const quern_view *view)
{
    note(context);
}

static quern_system setup_noisy(const char *name, uint32_t flags)
{
    return make_system(schedule, name, note_run, .begin = note, .end = note, .flags = flags,
                       .user_data = (void *)(uintptr_t)name[0]);
}

static char user_data_seen[8];
static uint32_t user_data_count;

static void note_user_data(quern_context *context)
{
    user_data_seen[user_data_count++] = *(const char *)quern_context_user_data(context);
}

Test(schedule, user_data_is_that_of_the_system_or_its_phase_or_the_schedule)
{
    quern_schedule *owner;
    char of_schedule = 's', of_phase = 'p', of_system = 'o';
    const quern_schedule_def def = {
        .phases = {"first", "second"}, .user_data = &of_schedule, .phase_user_data = {[1] = &of_phase}};
    user_data_count = 0;
    must(quern_schedule_create(world, &def, &owner));
    for (uint32_t phase = 0; phase < 2; phase++) {
        char name[2] = {(char)('a' + 2 * phase), '\0'};
        quern_system_def system = {.name = name, .phase = phase, .begin = note_user_data};
        setup_system(owner, &system);
        name[0]++;
        system.user_data = &of_system;
        setup_system(owner, &system);
    }
    must_run(owner, NULL);
    cr_assert_eq(user_data_count, 4u);
    cr_assert_arr_eq(user_data_seen, "sopo", 4);
}

Test(schedule, a_disabled_system_is_left_out_with_its_begin_and_end)
{
    quern_system a = setup_noisy("a", 0), b = setup_noisy("b", QUERN_SYSTEM_EXCLUSIVE);
    must(quern_schedule_set_system_enabled(schedule, a, false));
    must(quern_schedule_set_system_enabled(schedule, b, false));
    cr_assert_not(quern_schedule_is_system_enabled(schedule, a));
    must_run(schedule, NULL);
    cr_assert_eq(log_count, 0u);
    cr_assert_not_null(strstr(described(schedule), "disabled"));
    must(quern_schedule_set_system_enabled(schedule, a, true));
    cr_assert(quern_schedule_is_system_enabled(schedule, a));
    cr_assert_not(quern_schedule_is_system_enabled(schedule, b));
    must_run(schedule, NULL);
    cr_assert_str_eq(log_text, "aaa");
    must(quern_schedule_set_system_enabled(schedule, b, true));
    must(quern_schedule_set_system_enabled(schedule, b, true));
    must_run(schedule, NULL);
    cr_assert_str_eq(log_text, "aaaaaabbb");
}

Test(schedule, a_disabled_system_has_no_views_in_its_statistics)
{
    setup_entity_with(world, &position, 1);
    quern_system reader = setup_reader(schedule, "reader", position);
    quern_system_stats stats;
    for (uint32_t enabled = 0; enabled < 2; enabled++) {
        must(quern_schedule_set_system_enabled(schedule, reader, enabled == 1));
        must_run(schedule, NULL);
        must(quern_schedule_get_system_stats(schedule, reader, &stats));
        cr_assert_eq(stats.view_count, enabled);
        cr_assert_eq(stats.entity_count, enabled);
    }
}

Test(schedule, statistics_of_a_system_that_has_not_run_are_zero)
{
    setup_idle("first");
    must_run(schedule, NULL);
    quern_system last = {0};
    for (char name[] = "a"; name[0] <= 'z'; name[0]++)
        last = setup_idle(name);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, last, &stats));
    cr_assert_str_eq(stats.name, "z");
    cr_assert_eq(stats.time_ns, 0u);
    cr_assert_eq(stats.view_count, 0u);
    cr_assert_eq(stats.command_count, 0u);
}

Test(schedule, schedules_are_listed_in_the_order_of_creation)
{
    static const char *const names[] = {"first", NULL, "third"};
    quern_schedule *made[4] = {schedule}, *listed[4];
    for (uint32_t i = 0; i < 3; i++)
        must(quern_schedule_create(world, &(quern_schedule_def){.name = names[i]}, &made[i + 1]));
    cr_assert_eq(quern_world_list_schedules(world, NULL, 0), 4u);
    memset(listed, 0, sizeof listed);
    cr_assert_eq(quern_world_list_schedules(world, listed, 3), 4u);
    cr_assert_arr_eq(listed, made, 3 * sizeof *made);
    cr_assert_null(listed[3]);
    quern_schedule_destroy(made[2]);
    made[2] = made[3];
    cr_assert_eq(quern_world_list_schedules(world, listed, 4), 3u);
    cr_assert_arr_eq(listed, made, 3 * sizeof *made);
    quern_schedule_destroy(made[1]);
    quern_schedule_destroy(made[3]);
    assert_refused_value(world, quern_world_list_schedules(NULL, listed, 4));
    assert_refused_value(world, quern_world_list_schedules(world, NULL, 4));
}

Test(schedule, schedule_describes_itself_to_tools)
{
    char name[] = "simulation";
    quern_schedule *named;
    quern_schedule_info info;
    const quern_schedule_def def = {.name = name, .phases = {"input", "move"}};
    must(quern_schedule_create(world, &def, &named));
    name[0] = 'x';
    must(quern_schedule_get_info(named, &info));
    cr_assert_str_eq(info.name, "simulation");
    cr_assert_str_eq(info.phases[0], "input");
    cr_assert_str_eq(info.phases[1], "move");
    cr_assert(info.phases[2] == NULL && info.phase_count == 2 && info.system_count == 0);
    must_run(named, NULL);
    quern_schedule_destroy(named);
    setup_idle("idle");
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    must(quern_schedule_get_info(schedule, &info));
    cr_assert(info.name == NULL && info.system_count == 1 && info.frame_index == 2);
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_info(NULL, &info));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_info(schedule, NULL));
}

Test(schedule, names_of_schedules_are_checked)
{
    quern_schedule *none = NULL;
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_create(world, &(quern_schedule_def){.name = ""}, &none));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_create(world, &(quern_schedule_def){.name = too_long}, &none));
    cr_assert_null(none);
    cr_assert_eq(quern_world_list_schedules(world, NULL, 0), 1u);
}
