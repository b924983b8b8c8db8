/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Sets of systems: their order, condition and switch; and systems that run in every n-th frame. */

#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"

#include <quern/archive.h>
#include <quern/replay.h>

#include <string.h>

enum { ENTITIES = 200 };

static failing_allocator *memory;
static quern_component number;
static quern_resource mode;
static quern_schedule *schedule;
static quern_entity entities[ENTITIES];

static void open_scene(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    mode = setup_counter(world, "mode");
    for (uint32_t i = 0; i < ENTITIES; i++)
        entities[i] = setup_entity_with(world, &number, 1);
    schedule = setup_phases(world, 3);
}

TestSuite(sets, .init = open_scene, .fini = close_valid_world, .timeout = 120);

static uint64_t value(void)
{
    return *(const uint64_t *)quern_entity_get(world, entities[5], number);
}

static void set_value(uint64_t to)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        must(quern_entity_set(world, entities[i], number, &to));
}

/* Appends the digit of the system to each number, which then shows the order of systems. */
static void append(quern_context *context, const quern_view *view)
{
    const uint64_t digit = (uint64_t)(uintptr_t)quern_context_user_data(context);
    uint64_t *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] = values[i] * 10 + digit;
}

static quern_system_def appending(const char *name, uintptr_t digit, const char *set)
{
    quern_system_def def = system_def(name, append);
    def.terms[0] = quern_term_write(number);
    def.user_data = (void *)digit;
    def.sets[0] = set;
    return def;
}

static quern_system add(const char *name, uintptr_t digit, const char *set, uint32_t phase)
{
    quern_system_def def = appending(name, digit, set);
    def.phase = phase;
    return setup_system(schedule, &def);
}

static uint64_t play(void)
{
    set_value(0);
    must_run(schedule, NULL);
    return value();
}

#define add_set(...) must(quern_schedule_add_set(schedule, &(quern_set_def){__VA_ARGS__}))

/* -------------------------------------------------------------------------------------------- order */

Test(sets, the_systems_of_a_set_are_ordered_together)
{
    add("a", 1, "late", 0);
    add("b", 2, "early", 0);
    add("c", 3, "late", 0);
    add("d", 4, NULL, 0);
    add("e", 5, "early", 0);
    add_set(.name = "late");
    add_set(.name = "early", .before = {"late"});
    cr_assert_eq(play(), 24513u);
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early", .after = {"late", "d"}}));
    cr_assert_eq(play(), 13425u);
    quern_system_def def = appending("f", 6, NULL);
    def.before[0] = "late";
    setup_system(schedule, &def);
    cr_assert_eq(play(), 461325u);
    cr_assert_not_null(strstr(described(schedule), "in set 'late'"));
    add_set(.name = "empty", .before = {"late"},
            .after = {"early"}); /* without systems there is no cycle */
    cr_assert_eq(play(), 461325u);
}

Test(sets, a_set_may_have_systems_of_several_phases_and_a_system_several_sets)
{
    add("a", 1, "late", 1);
    add("b", 2, "early", 0);
    add("c", 3, "late", 0);
    add("d", 4, "early", 1);
    quern_system_def def = appending("e", 5, "late");
    def.sets[1] = "other";
    setup_system(schedule, &def);
    add_set(.name = "late", .after = {"b"});
    add_set(.name = "early");
    add_set(.name = "other", .after = {"b"}, .before = {"c", "a"}); /* e is before a in any case */
    cr_assert_eq(play(), 25314u);
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early", .after = {"a"}}));
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("against the order of the phases");
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early", .after = {"b"}}));
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("'b' is to run after 'b'");
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early", .before = {"nowhere"}}));
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_compile(schedule));
    assert_message_has("set 'early'");
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early", .before = {"late"}}));
    must_refuse(SCHEDULE_CONFLICT, world,
                quern_schedule_compile(schedule)); /* d and a are in order, d and c not */
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "early"}));
    cr_assert_eq(play(), 25314u);
}

Test(sets, names_must_be_known_and_unique)
{
    add("a", 1, "set", 0);
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_compile(schedule));
    assert_message_has("'set'");
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_remove_set(schedule, "set"));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_enable_set(schedule, "set", true));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_replace_set(schedule, &(quern_set_def){.name = "set"}));
    assert_refused_value(world, quern_schedule_is_set_enabled(schedule, "set"));
    add_set(.name = "set");
    must(quern_schedule_compile(schedule));
    must_refuse(DUPLICATE_NAME, world, quern_schedule_add_set(schedule, &(quern_set_def){.name = "set"}));
    must_refuse(DUPLICATE_NAME, world, quern_schedule_add_set(schedule, &(quern_set_def){.name = "a"}));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_set(schedule, &(quern_set_def){.name = ""}));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_set(schedule, &(quern_set_def){0}));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_add_set(schedule, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_enable_set(schedule, NULL, true));
    quern_system_def def = appending("set", 1, NULL);
    must_refuse(DUPLICATE_NAME, world, quern_schedule_add_system(schedule, &def, NULL));
    def = appending("b", 1, "set");
    def.sets[1] = "set";
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.sets[1] = "";
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    must(quern_schedule_remove_set(schedule, "set"));
    must_refuse(UNKNOWN_SYSTEM, world, quern_schedule_run(schedule, NULL, 0));
    must(quern_schedule_replace_system(schedule, quern_schedule_find_system(schedule, "a"),
                                       &(quern_system_def){.begin = idle_callback}));
    must_run(schedule, NULL);
}

/* ------------------------------------------------------------------------------------------ enabling */

Test(sets, their_number_and_that_of_ordered_pairs_have_limits)
{
    runs_on_one_thread();
    enum { MANY = 1500 };
    char name[32];
    quern_set_def many = {.name = "many"};
    for (uint32_t i = 0; i < QUERN_MAX_ORDER; i++)
        many.before[i] = "rest";
    must(quern_schedule_add_set(schedule, &many));
    add_set(.name = "rest");
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        (void)snprintf(name, sizeof name, "system %u", (unsigned)i);
        (void)add(name, 1, i < MANY ? "many" : "rest", 0);
    }
    must_refuse(LIMIT, world, quern_schedule_compile(schedule));
    assert_message_has("pairs of systems");
    for (uint32_t i = 2; i < QUERN_MAX_SCHEDULE_SETS; i++) {
        (void)snprintf(name, sizeof name, "set %u", (unsigned)i);
        add_set(.name = name);
    }
    must_refuse(LIMIT, world, quern_schedule_add_set(schedule, &(quern_set_def){.name = "one more"}));
}

Test(sets, a_system_runs_if_it_and_all_its_sets_are_enabled)
{
    add_set(.name = "one");
    add_set(.name = "two");
    quern_system_def def = appending("both", 1, "one");
    def.sets[1] = "two";
    const quern_system both = setup_system(schedule, &def);
    add("second", 2, "two", 1);
    cr_assert_eq(play(), 12u);
    must(quern_schedule_enable_set(schedule, "one", false));
    cr_assert_not(quern_schedule_is_set_enabled(schedule, "one"));
    cr_assert(quern_schedule_is_system_enabled(schedule, both));
    cr_assert_eq(play(), 2u);
    must(quern_schedule_set_system_enabled(schedule, both, false));
    must(quern_schedule_enable_set(schedule, "one", true));
    cr_assert_eq(play(), 2u);
    must(quern_schedule_set_system_enabled(schedule, both, true));
    cr_assert_eq(play(), 12u);
    must(quern_schedule_enable_set(schedule, "two", false));
    add("third", 3, "two", 2);
    cr_assert_eq(play(), 0u, "also systems that are added later");
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "two", .before = {"four"}}));
    add("four", 4, "one", 2);
    cr_assert_eq(play(), 4u, "a replaced set stays disabled");
    must(quern_schedule_replace_system(
        schedule, both,
        &(quern_system_def){
            .run = append, .terms = {quern_term_write(number)}, .user_data = (void *)5, .sets = {"one"}}));
    cr_assert_eq(play(), 54u);
    must(quern_schedule_remove_set(schedule, "two"));
    add_set(.name = "two");
    cr_assert_eq(play(), 5234u, "a set that is added again is enabled");
}

static uint32_t shown;

static void show(quern_context *context, const quern_view *view)
{
    shown += view->count;
}

Test(sets, disabling_a_set_drops_what_its_reactions_have_not_seen)
{
    add_set(.name = "set");
    make_system(schedule, "reaction", show, .terms = {quern_term_read(number)}, .sets = {"set"},
                .reacts_to = QUERN_REACT_SET);
    shown = 0;
    set_value(1);
    must(quern_schedule_enable_set(schedule, "set", false));
    must_run(schedule, NULL);
    set_value(2);
    must(quern_schedule_enable_set(schedule, "set", true));
    must_run(schedule, NULL);
    cr_assert_eq(shown, 0u);
    set_value(3);
    must(quern_schedule_enable_set(schedule, "set", true)); /* no change */
    must_run(schedule, NULL);
    cr_assert_eq(shown, (uint32_t)ENTITIES);
}

Test(sets, histories_and_archives_restore_what_is_enabled)
{
    quern_history *history;
    quern_byte_buffer bytes = {.bytes = NULL};
    add_set(.name = "set");
    add_set(.name = "other");
    add("a", 1, "set", 0);
    add("b", 2, "other", 0);
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    must(quern_schedule_enable_set(schedule, "set", false));
    must(quern_history_save(history, 1, NULL));
    must(quern_world_save(world, quern_sink_bytes(&bytes), &(quern_save_def){.schedules = {schedule}}));
    must(quern_schedule_enable_set(schedule, "set", true));
    must(quern_schedule_enable_set(schedule, "other", false));
    cr_assert_eq(play(), 1u);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_not(quern_schedule_is_set_enabled(schedule, "set"));
    cr_assert_eq(play(), 2u);
    must(quern_schedule_enable_set(schedule, "set", true));
    must(quern_schedule_remove_set(schedule, "other"));
    add_set(.name = "other");
    add("c", 3, "set", 0);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(play(), 2u, "c is new, and in a set that the frame disables");
    must(quern_schedule_enable_set(schedule, "set", true));
    cr_assert_eq(play(), 123u);
    quern_history_destroy(history);
    /* a world without entities, and the same schedule */
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    mode = setup_counter(world, "mode");
    schedule = setup_phases(world, 3);
    add_set(.name = "set");
    add("a", 1, "set", 0);
    add("b", 2, "other", 0);
    add_set(.name = "another");
    must_refuse(LAYOUT_MISMATCH, world,
                quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                                 &(quern_load_def){.schedules = {schedule}}, NULL));
    assert_message_has("set 'another'");
    must(quern_schedule_remove_set(schedule, "another"));
    add_set(.name = "other");
    must(quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                          &(quern_load_def){.schedules = {schedule}}, NULL));
    cr_assert_not(quern_schedule_is_set_enabled(schedule, "set"));
    cr_assert(quern_schedule_is_set_enabled(schedule, "other"));
    quern_byte_buffer_release(&bytes);
}

/* ---------------------------------------------------------------------------------------- conditions */

static uint32_t asked_count;
static bool records;

static bool is_wanted(quern_context *context)
{
    asked_count++;
    cr_assert_eq(quern_context_user_data(context), (void *)&asked_count);
    if (records)
        cr_assert_neq(quern_commands_destroy(quern_context_commands(context), entities[0]), QUERN_OK);
    return *(const uint64_t *)quern_context_resource(context, mode) != 0;
}

static void add_conditional(void)
{
    add_set(.name = "set", .condition = is_wanted, .resources = {{mode, QUERN_ACCESS_READ}},
            .user_data = &asked_count);
    asked_count = 0;
    records = false;
}

static void set_mode(uint64_t to)
{
    *(uint64_t *)quern_resource_get(world, mode) = to;
}

Test(sets, a_condition_is_asked_once_for_all_systems_of_a_phase)
{
    add_conditional();
    add("a", 1, "set", 0);
    add("b", 2, "set", 0);
    add("c", 3, NULL, 0);
    add("d", 4, "set", 2);
    make_system(schedule, "e", NULL, .begin = idle_callback, .flags = QUERN_SYSTEM_EXCLUSIVE, .phase = 1);
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i % POOL_COUNT]);
        asked_count = 0;
        set_mode(i % 2);
        set_value(0);
        must_run(schedule, jobs);
        cr_assert_eq(value(), i % 2 == 1 ? 1234u : 3u);
        cr_assert_eq(asked_count, 2u);
        quern_jobs_destroy(jobs);
    }
    must(quern_schedule_set_fixed_step(schedule, 0, 0.25, 8));
    asked_count = 0;
    must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(asked_count, 3u, "once for each step");
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "d")));
    asked_count = 0;
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(asked_count, 1u, "not in phases without systems of the set");
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "set"}));
    set_mode(0);
    set_value(0);
    must(quern_schedule_run(schedule, NULL, 0.25));
    cr_assert_eq(value(), 123u, "without a condition");
}

Test(sets, a_condition_only_reads)
{
    captured_reports reports = {0};
    add_conditional();
    add("a", 1, "set", 0);
    records = true;
    set_mode(1);
    cr_assert_eq(play(), 1u);
    cr_assert(quern_entity_is_alive(world, entities[0]));
    records = false;
    must_refuse(
        INVALID_ARGUMENT, world,
        quern_schedule_replace_set(schedule, &(quern_set_def){.name = "set",
                                                              .condition = is_wanted,
                                                              .resources = {{mode, QUERN_ACCESS_WRITE}}}));
    must(quern_schedule_replace_set(
        schedule, &(quern_set_def){.name = "set", .condition = is_wanted, .user_data = &asked_count}));
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'set'");
    make_system(schedule, "reaction", show, .terms = {quern_term_read(number)}, .sets = {"set"},
                .reacts_to = QUERN_REACT_SET);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_compile(schedule));
    assert_message_has("condition");
}

Test(sets, a_set_without_memory_changes_nothing)
{
    const quern_set_def def = {.name = "new",
                               .condition = is_wanted,
                               .resources = {{mode, QUERN_ACCESS_READ}},
                               .before = {"a"},
                               .after = {"b"},
                               .user_data = &asked_count};
    add("a", 1, NULL, 0);
    add("b", 2, NULL, 0);
    add_set(.name = "old");
    cr_assert_eq(play(), 12u);
    for (uint32_t replaces = 0; replaces < 2; replaces++)
        for (uint64_t call = 1;; call++) {
            if (!runs_out_of_memory(memory, call,
                                    replaces == 1 ? quern_schedule_replace_set(schedule, &def)
                                                  : quern_schedule_add_set(schedule, &def)))
                break;
            cr_assert_eq(play(), 12u);
        }
    const quern_system c = add("c", 3, "new", 0);
    set_mode(1);
    for (uint64_t call = 1; call < 200; call++) { /* compiling */
        must(quern_schedule_replace_system(schedule, c, &(quern_system_def){.begin = idle_callback}));
        if (!runs_out_of_memory(memory, call, quern_schedule_compile(schedule))) break;
        cr_assert_eq(play(), 12u);
    }
}

/* ------------------------------------------------------------------------------------- every n-th frame */

static quern_system add_every(const char *name, uintptr_t digit, uint32_t every, uint32_t offset)
{
    quern_system_def def = appending(name, digit, NULL);
    def.every = every;
    def.offset = offset;
    return setup_system(schedule, &def);
}

Test(sets, a_system_runs_in_its_frame_of_every_n)
{
    static const uint64_t expected[] = {4, 1, 0, 0, 2, 41, 0, 0};
    add_every("a", 1, 4, 2);
    add_every("b", 2, 8, 5);
    add_every("c", 4, 5, 1);
    for (uint32_t frame = 0; frame < 8; frame++)
        cr_assert_eq(play() % 100, expected[frame] == 41 ? 14u : expected[frame], "frame %u", frame);
}

Test(sets, turns_are_chosen_so_that_systems_rarely_meet)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    static const uint32_t every[] = {4, 4, 2, 4, 8, 8};
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        add_every(names[i], i + 1, every[i], 0);
    for (uint32_t frame = 0; frame < 16; frame++) {
        const uint64_t ran = play();
        cr_assert(ran < 100, "at most two systems in frame %u, not %llu", frame, (unsigned long long)ran);
    }
    cr_assert_not_null(strstr(described(schedule), "in frame 1 of every 4, chosen"));
    /* the first three run in different frames: 1 and 2 in frames 0 and 1, or 2 and 3 of 4, and so on */
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "a")));
    quern_schedule *fresh = setup_phases(world, 3), *changed = schedule;
    schedule = fresh;
    for (uint32_t i = 1; i < COUNT_OF(names); i++)
        add_every(names[i], i + 1, every[i], 0);
    for (uint32_t frame = 0; frame < 16; frame++) { /* both schedules have run 16 frames, and none */
        const uint64_t of_fresh = play();
        schedule = changed;
        cr_assert_eq(play(), of_fresh, "the turns depend on the list of systems alone");
        schedule = fresh;
    }
    quern_schedule_destroy(fresh);
    schedule = changed;
}

Test(sets, many_systems_of_one_period_fill_all_frames_alike)
{
    char name[8];
    for (uint32_t i = 0; i < 24; i++) {
        snprintf(name, sizeof name, "s%u", i);
        make_system(schedule, name, append, .terms = {quern_term_write(number)}, .user_data = (void *)1,
                    .every = 8, .phase = i % 3);
    }
    for (uint32_t frame = 0; frame < 8; frame++)
        cr_assert_eq(play(), 111u);
}

static double last_delta;
static uint32_t run_count;

static void note_delta(quern_context *context)
{
    run_count++;
    last_delta = quern_context_delta_seconds(context);
}

static bool is_second_chance(quern_context *context)
{
    return quern_context_frame_index(context) > 4;
}

Test(sets, a_turn_has_the_time_since_the_last_one)
{
    const quern_system third =
        make_system(schedule, "third", NULL, .begin = note_delta, .every = 3, .offset = 2);
    run_count = 0;
    for (uint32_t frame = 0; frame < 8; frame++)
        must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(run_count, 3u); /* frames 1, 4 and 7 */
    cr_assert_float_eq(last_delta, 1.5, 1e-9);
    must(quern_schedule_replace_system(
        schedule, third, &(quern_system_def){.begin = note_delta, .every = 2, .offset = 1, .phase = 1}));
    must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(run_count, 4u);
    cr_assert_float_eq(last_delta, 0.5, 1e-9);
    /* in steps: 3 in the first frame, then 2 */
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 8));
    run_count = 0;
    must(quern_schedule_run(schedule, NULL, 0.75));
    cr_assert_eq(run_count, 2u);
    must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(run_count, 3u);
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_add_system(
                    schedule,
                    &(quern_system_def){.name = "x", .begin = note_delta, .every = 3, .offset = 4}, NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_add_system(
                    schedule,
                    &(quern_system_def){.name = "x", .begin = note_delta, .every = QUERN_MAX_EVERY + 1},
                    NULL));
    must_refuse(
        INVALID_ARGUMENT, world,
        quern_schedule_add_system(
            schedule,
            &(quern_system_def){.name = "x", .begin = note_delta, .every = 3, .interval_seconds = 1},
            NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_add_system(schedule,
                                          &(quern_system_def){.name = "x",
                                                              .run = show,
                                                              .terms = {quern_term_read(number)},
                                                              .reacts_to = QUERN_REACT_SET,
                                                              .every = 3},
                                          NULL));
}

Test(sets, a_condition_that_refuses_a_turn_waits_for_the_next)
{
    make_system(schedule, "third", NULL, .begin = note_delta, .every = 3, .offset = 1,
                .condition = is_second_chance);
    run_count = 0;
    for (uint32_t frame = 0; frame < 7; frame++)
        must(quern_schedule_run(schedule, NULL, 0.5));
    cr_assert_eq(run_count, 1u); /* frame 6 */
    cr_assert_float_eq(last_delta, 3.5, 1e-9);
}

static void add_periodic(void)
{
    set_mode(1);
    add_conditional();
    add_every("a", 1, 3, 0);
    add_every("b", 2, 3, 0);
    quern_system_def def = appending("c", 3, "set");
    def.every = 2;
    def.phase = 1;
    setup_system(schedule, &def);
    must(quern_schedule_set_fixed_step(schedule, 1, 0.25, 8));
}

Test(sets, histories_go_back_to_the_turns_of_a_frame)
{
    quern_history *history;
    uint64_t hashes[12];
    add_periodic();
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    for (uint32_t round = 0; round < POOL_COUNT; round++) {
        quern_jobs *jobs = setup_jobs(pool_threads[round]);
        for (uint32_t frame = round == 0 ? 0 : 4; frame < 12; frame++) {
            if (frame == 4 && round == 0) must(quern_history_save(history, 4, jobs));
            must(quern_schedule_run(schedule, jobs, 0.375));
            const uint64_t hash = quern_world_hash(world);
            if (round == 0) hashes[frame] = hash;
            cr_assert_eq(hash, hashes[frame], "frame %u", frame);
        }
        must(quern_history_restore(history, 4, jobs));
        quern_jobs_destroy(jobs);
    }
    quern_history_destroy(history);
}

Test(sets, replays_have_the_same_turns)
{
    quern_byte_buffer bytes = {.bytes = NULL};
    quern_replay_recorder *recorder;
    quern_replay_report report;
    add_periodic();
    must(quern_replay_recorder_create(schedule, quern_sink_bytes(&bytes), NULL, &recorder));
    for (uint32_t frame = 0; frame < 10; frame++)
        must(quern_replay_record(recorder, NULL, 0.375));
    must(quern_replay_finish(recorder));
    quern_schedule_destroy(schedule);
    close_valid_world();
    open_scene();
    add_periodic();
    quern_jobs *jobs = setup_jobs(3);
    must(
        quern_replay_run(schedule, jobs, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, &report));
    cr_assert_eq(report.frame_count, 10u);
    quern_jobs_destroy(jobs);
    quern_byte_buffer_release(&bytes);
}
