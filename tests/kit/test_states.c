/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include <quern/kit/states.h>

#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <string.h>

/* States: which systems run in which frame and in which order, entities of a state, saved worlds and refused calls. Each
 * system writes one letter of a log per run: l and e with the digit of the state that is left or entered, s with that of the
 * state in which it runs. */

enum { MENU, PLAYING, PAUSED, STATE_COUNT };

static const char *const names[STATE_COUNT] = {"menu", "playing", "paused"};

typedef struct scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_states *states;
    quern_resource log;
    uint32_t wanted; /* state that the system "choose" sets, or QUERN_NO_STATE */
    bool restarts;
} scene;

typedef struct letters {
    char text[64];
} letters;

typedef struct writer {
    scene *owner;
    char letters[3];
} writer;

static writer writers[3 * STATE_COUNT];

static void write_letters(quern_context *context, const quern_view *view)
{
    const writer *own = quern_context_user_data(context);
    letters *log = quern_context_resource_write(context, own->owner->log);
    (void)view;
    const size_t size = strlen(log->text);
    cr_assert_lt(size + 2, sizeof log->text);
    snprintf(log->text + size, sizeof log->text - size, "%s", own->letters);
}

static void choose(quern_context *context, const quern_view *view)
{
    const scene *s = quern_context_user_data(context);
    (void)view;
    if (s->wanted != QUERN_NO_STATE)
        must(quern_context_set_state(context, s->states, s->wanted, s->restarts));
}

/* `one_phase`: all systems are in one phase. Otherwise they are in three, and are added against the order of a change. */
static void open_scene(scene *s, bool one_phase, uint32_t thread_count)
{
    *s = (scene){.wanted = QUERN_NO_STATE};
    must(quern_world_create(NULL, &s->world));
    s->log = make_resource(s->world, .name = "log", .size_bytes = sizeof(letters),
                           .fields = {QUERN_TEXT(letters, text)});
    if (thread_count > 0)
        must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &s->jobs));
    must(quern_states_create(s->world,
                             &(quern_states_def){.name = "game", .states = {"menu", "playing", "paused"}},
                             &s->states));
    quern_schedule_def def = {.phases = {"first", "second", "third"}};
    if (one_phase) def.phases[1] = def.phases[2] = NULL;
    must(quern_schedule_create(s->world, &def, &s->schedule));
    static const char *const prefixes[3] = {"", "enter ", "leave "};
    must(quern_states_add_systems(s->states, s->schedule, one_phase ? 0 : 1));
    for (uint32_t kind = 0; kind < 3; kind++)
        for (uint32_t i = 0; i < STATE_COUNT; i++) {
            char set[32], name[64];
            snprintf(set, sizeof set, "%s%s", prefixes[kind], names[i]);
            snprintf(name, sizeof name, "write %s", set);
            writer *own = &writers[kind * STATE_COUNT + i];
            *own = (writer){.owner = s, .letters = {"sel"[kind], (char)('0' + i)}};
            must(quern_schedule_add_system(s->schedule,
                                           &(quern_system_def){.name = name,
                                                               .phase = one_phase ? 0 : 2 - kind,
                                                               .run = write_letters,
                                                               .resources = {{s->log, QUERN_ACCESS_WRITE}},
                                                               .sets = {set},
                                                               .user_data = own},
                                           NULL));
        }
    must(quern_schedule_add_system(
        s->schedule,
        &(quern_system_def){.name = "choose",
                            .run = choose,
                            .resources = {{quern_states_resource(s->states), QUERN_ACCESS_WRITE}},
                            .user_data = s},
        NULL));
}

static void close_scene(scene *s)
{
    assert_valid(s->world);
    quern_schedule_destroy(s->schedule);
    quern_states_destroy(s->states);
    quern_jobs_destroy(s->jobs);
    quern_world_destroy(s->world);
}

/* Runs a frame and returns what it wrote. */
static const char *frame(scene *s)
{
    letters *log = quern_resource_get(s->world, s->log);
    log->text[0] = 0;
    must(quern_schedule_run(s->schedule, s->jobs, 1));
    return log->text;
}

static const char *frame_that_sets(scene *s, uint32_t wanted, bool restarts)
{
    s->wanted = wanted;
    s->restarts = restarts;
    const char *text = frame(s);
    s->wanted = QUERN_NO_STATE;
    return text;
}

TestSuite(states, .timeout = 60);

/* ----------------------------------------------------------------------------------------- which systems run */

Test(states, a_change_leaves_then_enters_then_runs)
{
    for (uint32_t k = 0; k < 8; k++) {
        scene s;
        open_scene(&s, k % 2 == 0, k / 2);
        cr_assert_str_eq(frame(&s), "e0s0");
        cr_assert_str_eq(frame(&s), "s0");
        cr_assert_str_eq(frame_that_sets(&s, PLAYING, false), "s0");
        cr_assert_str_eq(frame(&s), "l0e1s1");
        cr_assert_eq(quern_states_get(s.states), PLAYING);
        cr_assert_str_eq(frame(&s), "s1");
        close_scene(&s);
    }
}

Test(states, setting_the_current_state_changes_nothing_unless_it_restarts)
{
    scene s;
    open_scene(&s, true, 0);
    (void)frame(&s);
    cr_assert_str_eq(frame_that_sets(&s, MENU, false), "s0");
    cr_assert_str_eq(frame_that_sets(&s, MENU, true), "s0");
    cr_assert_str_eq(frame(&s), "l0e0s0");
    cr_assert_str_eq(frame(&s), "s0");
    close_scene(&s);
}

Test(states, the_program_sets_states_between_frames)
{
    scene s;
    open_scene(&s, true, 0);
    must(quern_states_set(s.states, PAUSED));
    cr_assert_str_eq(frame(&s), "e2s2");
    must(quern_states_set(s.states, PLAYING));
    must(quern_states_set(s.states, MENU));
    cr_assert_eq(quern_states_get(s.states), MENU);
    cr_assert_str_eq(frame(&s), "l2e0s0");
    (void)frame_that_sets(&s, PLAYING, false);
    must(quern_states_set(s.states, PAUSED));
    cr_assert_str_eq(frame(&s), "l0e2s2");
    close_scene(&s);
}

/* A tool that writes the field and then sets a state: the state is entered once. */
Test(states, a_state_that_the_program_sets_does_not_restart)
{
    scene s;
    open_scene(&s, true, 0);
    (void)frame(&s);
    quern_state *state = quern_resource_get(s.world, quern_states_resource(s.states));
    state->is_again = true;
    must(quern_states_set(s.states, PAUSED));
    cr_assert_str_eq(frame(&s), "l0e2s2");
    cr_assert_str_eq(frame(&s), "s2");
    close_scene(&s);
}

static quern_result set_in_frame;

static void set_and_choose(quern_context *context, const quern_view *view)
{
    const scene *s = quern_context_user_data(context);
    (void)view;
    set_in_frame = quern_states_set(s->states, PLAYING);
    must(quern_context_set_state(context, s->states, PAUSED, false));
}

/* The resource can be written there, but the systems before and after would see two states, and no system the change. */
Test(states, an_exclusive_system_changes_the_state_by_its_context)
{
    scene s;
    open_scene(&s, true, 0);
    must(quern_schedule_add_system(
        s.schedule,
        &(quern_system_def){.name = "exclusive",
                            .run = set_and_choose,
                            .flags = QUERN_SYSTEM_EXCLUSIVE,
                            .resources = {{quern_states_resource(s.states), QUERN_ACCESS_WRITE}},
                            .user_data = &s},
        NULL));
    cr_assert_str_eq(frame(&s), "e0s0");
    cr_assert_eq(set_in_frame, QUERN_ERROR_WORLD_LOCKED);
    cr_assert_str_eq(frame(&s), "l0e2s2");
    close_scene(&s);
}

Test(states, an_index_that_does_not_exist_changes_nothing)
{
    scene s;
    open_scene(&s, true, 0);
    (void)frame(&s);
    must_refuse(INVALID_ARGUMENT, s.world, quern_resource_set_text(s.world, "game.next", "3"));
    quern_state *state = quern_resource_get(s.world, quern_states_resource(s.states));
    state->next = 7;
    cr_assert_str_eq(frame(&s), "s0");
    cr_assert_str_eq(frame(&s), "s0");
    close_scene(&s);
}

Test(states, tools_set_a_state_by_its_name)
{
    scene s;
    open_scene(&s, true, 0);
    (void)frame(&s);
    must(quern_resource_set_text(s.world, "game.next", "paused"));
    (void)frame(&s);
    cr_assert_str_eq(frame(&s), "l0e2s2");
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------- entities of a state */

Test(states, entities_of_a_state_are_destroyed_after_its_last_systems)
{
    scene s;
    open_scene(&s, true, 0);
    quern_entity only, child, other;
    must(quern_entity_create_with(s.world, (const quern_component[]){quern_states_tag(s.states, MENU)},
                                  NULL, 1, &only));
    must(quern_entity_create_with(s.world, (const quern_component[]){quern_states_tag(s.states, PLAYING)},
                                  NULL, 1, &other));
    must(quern_entity_create(s.world, &child));
    must(quern_entity_relate(s.world, child, quern_world_parent(s.world), only));
    (void)frame(&s);
    (void)frame_that_sets(&s, PLAYING, false);
    cr_assert(quern_entity_is_alive(s.world, only));
    (void)frame(&s);
    cr_assert_not(quern_entity_is_alive(s.world, only));
    cr_assert_not(quern_entity_is_alive(s.world, child));
    cr_assert(quern_entity_is_alive(s.world, other));
    close_scene(&s);
}

Test(states, disabled_entities_of_a_state_are_destroyed_with_it)
{
    scene s;
    open_scene(&s, false, 0);
    quern_entity hidden, stays;
    must(quern_entity_create_with(s.world, (const quern_component[]){quern_states_tag(s.states, MENU)},
                                  NULL, 1, &hidden));
    must(quern_entity_create(s.world, &stays));
    must(quern_entity_set_enabled(s.world, hidden, false));
    must(quern_entity_set_enabled(s.world, stays, false));
    (void)frame_that_sets(&s, PLAYING, false);
    (void)frame(&s);
    cr_assert_not(quern_entity_is_alive(s.world, hidden));
    cr_assert(quern_entity_is_alive(s.world, stays));
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------ saved worlds */

Test(states, restored_and_loaded_worlds_are_in_their_state)
{
    scene s, t;
    open_scene(&s, true, 0);
    quern_history *history;
    must(quern_history_create(s.world, &(quern_history_def){.schedules = {s.schedule}, .frame_count = 4},
                              &history));
    (void)frame(&s);
    (void)frame_that_sets(&s, PLAYING, false);
    must(quern_history_save(history, 1, NULL));
    quern_byte_buffer memory = {0};
    must(quern_world_save(s.world, quern_sink_bytes(&memory), NULL));
    cr_assert_str_eq(frame(&s), "l0e1s1");
    must(quern_history_restore(history, 1, NULL));
    cr_assert_str_eq(frame(&s), "l0e1s1");
    quern_history_destroy(history);
    close_scene(&s);
    open_scene(&t, true, 0);
    must(quern_world_load(t.world, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    cr_assert_str_eq(frame(&t), "l0e1s1");
    quern_byte_buffer_release(&memory);
    close_scene(&t);
}

/* --------------------------------------------------------------------------------------- random programs */

/* What the frames of a random program write, from states.h: a change takes effect in the next frame, and the last call
 * before it decides. */
static void run_program(uint64_t seed, uint32_t threads, uint64_t *out_hash)
{
    random_source random = {seed};
    scene s;
    open_scene(&s, random_chance(&random, 50), threads);
    uint32_t current = MENU, left = QUERN_NO_STATE, entered = MENU;
    for (uint32_t i = 0; i < 40; i++) {
        if (random_chance(&random, 20)) {
            const uint32_t next = random_below(&random, STATE_COUNT);
            must(quern_states_set(s.states, next));
            if (entered == QUERN_NO_STATE) left = current;
            current = entered = next;
        }
        const uint32_t wanted =
            random_chance(&random, 40) ? random_below(&random, STATE_COUNT) : QUERN_NO_STATE;
        const bool restarts = random_chance(&random, 50);
        char expected[16] = "";
        size_t size = 0;
        if (left != QUERN_NO_STATE) size += (size_t)snprintf(expected + size, 4, "l%u", (unsigned)left);
        if (entered != QUERN_NO_STATE)
            size += (size_t)snprintf(expected + size, 4, "e%u", (unsigned)entered);
        snprintf(expected + size, 4, "s%u", (unsigned)current);
        cr_assert_str_eq(frame_that_sets(&s, wanted, restarts), expected, "seed %llu, frame %u",
                         (unsigned long long)seed, (unsigned)i);
        left = entered = QUERN_NO_STATE;
        if (wanted != QUERN_NO_STATE && (wanted != current || restarts)) {
            left = current;
            entered = current = wanted;
        }
    }
    *out_hash = quern_world_hash(s.world);
    close_scene(&s);
}

Test(states, random_programs_agree_with_the_model_at_every_thread_count)
{
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    const uint64_t seeds = effort(40, 10, 5);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t expected, actual;
        run_program(seed, 0, &expected);
        for (uint32_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++) {
            run_program(seed, thread_counts[i], &actual);
            cr_assert_eq(actual, expected);
        }
    }
}

/* ------------------------------------------------------------------------------------------ refused calls */

Test(states, wrong_definitions_are_refused)
{
    quern_world *world = setup_world();
    quern_states *states;
    static const char long_name[] = "a name that is too long for it";
    make_resource(world, .name = "taken", .size_bytes = 4);
    const struct {
        quern_result expected;
        quern_states_def def;
    } wrong[] = {
        {QUERN_ERROR_NULL_ARGUMENT, {.states = {"a"}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "", .states = {"a"}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = long_name, .states = {"a"}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "game"}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "game", .states = {"a", long_name}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "game", .states = {"a"}, .first = 1}},
        {QUERN_ERROR_DUPLICATE_NAME, {.name = "game", .states = {"a", "b", "a"}}},
        {QUERN_ERROR_DUPLICATE_NAME, {.name = "taken", .states = {"a"}}},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(world, wrong[i].expected, quern_states_create(world, &wrong[i].def, &states));
    const quern_states_def good = {.name = "game", .states = {"a"}};
    must_refuse(NULL_ARGUMENT, world, quern_states_create(NULL, &good, &states));
    must_refuse(NULL_ARGUMENT, world, quern_states_create(world, NULL, &states));
    must_refuse(NULL_ARGUMENT, world, quern_states_create(world, &good, NULL));
    quern_world_destroy(world);
}

Test(states, wrong_calls_are_refused)
{
    scene s;
    open_scene(&s, true, 0);
    must_refuse(INVALID_ARGUMENT, s.world, quern_states_set(s.states, STATE_COUNT));
    must_refuse(NULL_ARGUMENT, s.world, quern_states_set(NULL, 0));
    must_refuse(NULL_ARGUMENT, s.world, quern_states_add_systems(NULL, s.schedule, 0));
    must_refuse(NULL_ARGUMENT, s.world, quern_states_add_systems(s.states, NULL, 0));
    must_refuse(INVALID_ARGUMENT, s.world, quern_states_add_systems(s.states, s.schedule, 2));
    must_refuse(DUPLICATE_NAME, s.world, quern_states_add_systems(s.states, s.schedule, 0));
    cr_assert_eq(quern_states_get(NULL), QUERN_NO_STATE);
    cr_assert_eq(quern_states_tag(s.states, STATE_COUNT).bits, 0);
    captured_reports reports;
    capture_reports(&reports);
    quern_world_destroy(s.world);
    cr_assert_neq(reports.log_count, 0);
    close_scene(&s);
}

Test(states, removed_systems_can_be_added_again)
{
    scene s;
    open_scene(&s, true, 0);
    const uint32_t set_count = quern_schedule_list_sets(s.schedule, NULL, 0),
                   system_count = quern_schedule_system_count(s.schedule);
    quern_schedule_info info;
    must(quern_schedule_get_info(s.schedule, &info));
    cr_assert_eq(info.phase_count, 2);
    must(quern_states_remove_systems(s.states, s.schedule));
    must(quern_schedule_get_info(s.schedule, &info));
    cr_assert_eq(info.phase_count, 1);
    cr_assert_eq(quern_schedule_list_sets(s.schedule, NULL, 0), 0);
    must_refuse(UNKNOWN_SYSTEM, s.world, quern_schedule_run(s.schedule, NULL, 1));
    must_refuse(INVALID_ARGUMENT, s.world, quern_states_remove_systems(s.states, s.schedule));
    must_refuse(NULL_ARGUMENT, s.world, quern_states_remove_systems(NULL, s.schedule));
    must_refuse(NULL_ARGUMENT, s.world, quern_states_remove_systems(s.states, NULL));
    must(quern_states_add_systems(s.states, s.schedule, 0));
    cr_assert_eq(quern_schedule_list_sets(s.schedule, NULL, 0), set_count);
    cr_assert_eq(quern_schedule_system_count(s.schedule), system_count);
    cr_assert_str_eq(frame(&s), "e0s0");
    close_scene(&s);
}

Test(states, a_name_that_is_taken_adds_nothing)
{
    static const char *const taken[] = {"b",          "enter a",      "leave b",
                                        "game clear", "game clear b", "game change"};
    for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        quern_world *world = setup_world();
        quern_states *states;
        quern_schedule *schedule;
        must(
            quern_states_create(world, &(quern_states_def){.name = "game", .states = {"a", "b"}}, &states));
        must(quern_schedule_create(world, NULL, &schedule));
        must(quern_schedule_add_set(schedule, &(quern_set_def){.name = taken[i]}));
        must_refuse(DUPLICATE_NAME, world, quern_states_add_systems(states, schedule, 0));
        cr_assert_not_null(strstr(quern_error_message(), taken[i]));
        cr_assert_eq(quern_schedule_list_sets(schedule, NULL, 0), 1);
        cr_assert_eq(quern_schedule_system_count(schedule), 0);
        quern_schedule_destroy(schedule);
        quern_states_destroy(states);
        quern_world_destroy(world);
    }
}

static void do_nothing(quern_context *context, const quern_view *view)
{
    (void)context, (void)view;
}

Test(states, a_phase_with_a_fixed_step_is_refused)
{
    quern_world *world = setup_world();
    quern_states *states;
    quern_schedule *schedule;
    quern_schedule_info info;
    must(quern_states_create(world, &(quern_states_def){.name = "game", .states = {"a", "b"}}, &states));
    must(quern_schedule_create(world, &(quern_schedule_def){.phases = {"first", "stepped"}}, &schedule));
    must(quern_schedule_set_fixed_step(schedule, 1, 0.1, 4));
    must(quern_schedule_get_info(schedule, &info));
    cr_assert(info.phase_steps_seconds[0] == 0 && info.phase_steps_seconds[1] == 0.1);
    must_refuse(INVALID_ARGUMENT, world, quern_states_add_systems(states, schedule, 1));
    cr_assert_not_null(strstr(quern_error_message(), "'stepped'"));
    cr_assert_eq(quern_schedule_system_count(schedule), 0);
    must(quern_states_add_systems(states, schedule, 0));
    quern_schedule_destroy(schedule);
    quern_states_destroy(states);
    quern_world_destroy(world);
}

Test(states, systems_of_the_program_in_the_phase_of_states_are_removed_first)
{
    scene s;
    quern_schedule_info info;
    quern_system other;
    open_scene(&s, true, 0);
    const uint32_t system_count = quern_schedule_system_count(s.schedule);
    must(quern_schedule_add_system(
        s.schedule, &(quern_system_def){.name = "other", .phase = 1, .run = do_nothing}, &other));
    must(quern_schedule_get_info(s.schedule, &info));
    cr_assert_eq(info.phase_system_counts[0], system_count - 1);
    cr_assert_eq(info.phase_system_counts[1], 2);
    must_refuse(INVALID_ARGUMENT, s.world, quern_states_remove_systems(s.states, s.schedule));
    cr_assert_not_null(strstr(quern_error_message(), "'game change'"));
    cr_assert_str_eq(frame(&s), "e0s0");
    must(quern_schedule_remove_system(s.schedule, other));
    must(quern_states_remove_systems(s.states, s.schedule));
    must(quern_states_add_systems(s.states, s.schedule, 0));
    close_scene(&s);
}

Test(states, a_phase_whose_name_is_taken_stays)
{
    quern_world *world = setup_world();
    quern_states *states;
    quern_schedule *schedule;
    quern_schedule_info info;
    must(quern_states_create(world, &(quern_states_def){.name = "game", .states = {"a", "b"}}, &states));
    must(quern_schedule_create(world, &(quern_schedule_def){.phases = {"first", "game change", "last"}},
                               &schedule));
    must_refuse(DUPLICATE_NAME, world, quern_states_add_systems(states, schedule, 0));
    cr_assert_not_null(strstr(quern_error_message(), "phase 'game change'"));
    must(quern_schedule_get_info(schedule, &info));
    cr_assert_eq(info.phase_count, 3);
    cr_assert_str_eq(info.phases[1], "game change");
    quern_schedule_destroy(schedule);
    quern_states_destroy(states);
    quern_world_destroy(world);
}

Test(states, without_memory_nothing_is_added)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world *world;
    quern_states *states;
    quern_schedule *schedule;
    world = make_world(.allocator = failing_allocator_interface(memory));
    quern_states_def def = {
        .name = "game", .states = {"a", "b"}, .allocator = failing_allocator_interface(memory)};
    for (uint32_t n = 1; runs_out_of_memory(memory, n, quern_states_create(world, &def, &states)); n++)
        continue;
    must(quern_schedule_create(world, NULL, &schedule));
    for (uint32_t call = 1; runs_out_of_memory(memory, call, quern_states_add_systems(states, schedule, 0));
         call++) {
        quern_schedule_info info;
        must(quern_schedule_get_info(schedule, &info));
        cr_assert_eq(info.phase_count, 1);
        cr_assert_eq(quern_schedule_list_sets(schedule, NULL, 0), 0);
        cr_assert_eq(quern_schedule_system_count(schedule), 0);
    }
    must(quern_schedule_run(schedule, NULL, 1));
    quern_schedule_destroy(schedule);
    quern_states_destroy(states);
    quern_world_destroy(world);
    failing_allocator_close(memory);
}
