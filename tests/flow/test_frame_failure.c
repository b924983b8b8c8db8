/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <stdatomic.h>
#include <string.h>

/* Runs a program of several frames in which each allocation fails once. */

enum { FRAMES = 4, PHASES = 3, TYPES = 6, WIDE_WORDS = 64, NEVER = 1000 };

/* One system of each kind per phase. The systems of a phase share a pass until an archetype appears on
 * which two of them conflict. */
enum { KINDS = 3, SYSTEMS = KINDS * PHASES };

/* Where a run of the program is cut short: in `frame`, the phases after `phase` do nothing. `records`
 * says whether `phase` itself still records its commands. */
typedef struct cut {
    uint64_t frame;
    uint32_t phase;
    bool records;
} cut;

static const cut no_cut = {NEVER, 0, true};

static failing_allocator *memory;
static quern_world *world;
static quern_schedule *schedule;
static quern_component types[TYPES], tracked_component;
static quern_resource sum;
static tracked_counts counts;
static cut here;
static bool plays_back_in_parallel;
static quern_frame_capture *capture;  /* captures each frame; NULL: frames are not captured */
static _Atomic uint32_t phases_begun; /* phases of this frame that have begun */
static _Atomic uint32_t refused_count;

/* ----------------------------------------------------------------------------------------- the program */

static uint32_t phase_of(const quern_context *context)
{
    return (uint32_t)(uintptr_t)quern_context_user_data(context);
}

static bool is_cut_off(const quern_context *context)
{
    return quern_context_frame_index(context) == here.frame && phase_of(context) > here.phase;
}

static bool may_record(const quern_context *context)
{
    bool is_there = quern_context_frame_index(context) == here.frame && phase_of(context) == here.phase;
    return !is_cut_off(context) && (!is_there || here.records);
}

static void expect(quern_result result)
{
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    if (result != QUERN_OK) refused_count++;
}

static void expect_entity(quern_entity entity)
{
    if (quern_entity_is_null(entity)) refused_count++;
}

/* Creates entities in sets of components that differ from frame to frame, so that each frame creates
 * archetypes. */
static void begin(quern_context *context)
{
    phases_begun++;
    if (!may_record(context)) return;
    uint64_t frame = quern_context_frame_index(context);
    quern_component set[] = {types[0], types[1 + (frame + phase_of(context)) % 5], tracked_component};
    for (uint32_t i = 0; i < 40; i++)
        expect_entity(record_entity_with(quern_context_commands(context), set, NULL, 3));
}

static void change(quern_context *context, quern_entity entity, uint64_t number)
{
    quern_commands *commands = quern_context_commands(context);
    uint64_t wide[WIDE_WORDS] = {number};
    tracked value;
    switch ((number + quern_context_frame_index(context)) % 8) {
    case 0:
        expect(quern_commands_add(commands, entity, types[1 + phase_of(context)], wide));
        break;
    case 1:
        tracked_construct(&value, number, &counts);
        expect(quern_commands_set(commands, entity, tracked_component, &value));
        tracked_destroy(&value, &counts);
        break;
    case 2:
        expect(quern_commands_remove(commands, entity, types[4]));
        expect(quern_commands_add(commands, entity, types[5], NULL));
        break;
    case 3:
        if (number % 3 == 0) expect(quern_commands_destroy(commands, entity));
        break;
    default:
        break;
    }
}

static void run(quern_context *context, const quern_view *view)
{
    if (is_cut_off(context)) return;
    uint64_t *numbers = quern_view_write(view, 0), *partial = quern_context_partial(context);
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t number = numbers[i]++ + quern_entity_index(view->entities[i]);
        *partial += number;
        if (may_record(context)) change(context, view->entities[i], number);
    }
}

static void end(quern_context *context)
{
    if (is_cut_off(context)) return;
    uint64_t *total = quern_context_resource_write(context, sum);
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        *total = *total * 31 + *(const uint64_t *)quern_context_partial_at(context, i);
}

static quern_result add_main_system(uint32_t phase)
{
    static const char *const names[] = {"first", "second", "third"};
    quern_system_def def = system_def(names[phase], run);
    def.phase = phase;
    def.begin = begin;
    def.end = end;
    def.terms[0] = quern_term_write(types[0]);
    def.resources[0] = (quern_resource_access){sum, QUERN_ACCESS_WRITE_CONCURRENT};
    def.partial_bytes = 8;
    def.user_data = (void *)(uintptr_t)phase;
    return quern_schedule_add_system(schedule, &def, NULL);
}

/* Returns false in every second frame. */
static bool is_wanted(quern_context *context)
{
    return (quern_context_frame_index(context) + phase_of(context)) % 2 == 0;
}

static void run_sometimes(quern_context *context, const quern_view *view)
{
    if (is_cut_off(context)) return;
    uint64_t *numbers = quern_view_write(view, 0), *others = quern_view_write(view, 1);
    uint64_t *partial = quern_context_partial(context);
    for (uint32_t i = 0; i < view->count; i++) {
        numbers[i] = numbers[i] * 3 + 1;
        if (others != NULL) others[i] += numbers[i];
        *partial = *partial * 31 + numbers[i];
    }
}

static void end_sometimes(quern_context *context)
{
    if (!may_record(context)) return;
    uint64_t total = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        total = total * 31 + *(const uint64_t *)quern_context_partial_at(context, i);
    const void *values[] = {&total};
    expect_entity(record_entity_with(quern_context_commands(context), &types[2], values, 1));
}

static quern_result add_conditional_system(uint32_t phase)
{
    static const char *const names[] = {"first, too", "second, too", "third, too"};
    quern_system_def def = system_def(names[phase], run_sometimes);
    def.phase = phase;
    def.condition = is_wanted;
    def.end = end_sometimes;
    def.terms[0] = quern_term_write(types[0]);
    def.terms[1] = quern_term_optional(types[4], QUERN_ACCESS_WRITE);
    def.partial_bytes = 100;
    def.user_data = (void *)(uintptr_t)phase;
    return quern_schedule_add_system(schedule, &def, NULL);
}

/* Looks up a component that the previous system writes, which is a conflict on archetypes with that
 * component. */
static void run_looker(quern_context *context, const quern_view *view)
{
    if (is_cut_off(context)) return;
    uint64_t *numbers = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count && numbers != NULL; i++) {
        const uint64_t *other = quern_context_lookup(context, view->entities[i], types[4]);
        numbers[i] += other != NULL ? *other : 7;
    }
}

static quern_result add_looker(uint32_t phase)
{
    static const char *const names[] = {"first looker", "second looker", "third looker"};
    quern_system_def def = system_def(names[phase], run_looker);
    def.phase = phase;
    def.terms[0] = quern_term_changed(quern_term_read(types[0]));
    def.terms[1] = quern_term_optional(types[5], QUERN_ACCESS_WRITE);
    def.lookups[0].component = types[4];
    def.user_data = (void *)(uintptr_t)phase;
    return quern_schedule_add_system(schedule, &def, NULL);
}

static quern_result add_system(uint32_t index)
{
    uint32_t phase = index % PHASES;
    if (index < PHASES) return add_main_system(phase);
    return index < 2 * PHASES ? add_conditional_system(phase) : add_looker(phase);
}

/* Adds a system with an order rule. */
static quern_result add_last_system(void)
{
    quern_system_def def = system_def("last", idle_run);
    def.after[0] = "first";
    return quern_schedule_add_system(schedule, &def, NULL);
}

static quern_world_def failing_world_def(void)
{
    quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    return def;
}

static void open_world(void)
{
    static const char *const names[TYPES] = {"t0", "t1", "t2", "t3", "t4", "t5"};
    memory = failing_allocator_create();
    memset((void *)&counts, 0, sizeof counts);
    refused_count = 0;
    quern_world_def def = failing_world_def();
    must(quern_world_create(&def, &world));
    for (uint32_t i = 0; i < TYPES; i++)
        types[i] = setup_component(world, names[i], i == 1 ? WIDE_WORDS * 8 : 8, 8);
    tracked_component = tracked_register(world, "tracked", &counts);
    sum = setup_counter(world, "sum");
    for (uint32_t i = 0; i < 200; i++)
        setup_entity_with(world, types, 1 + i % 3);
}

static void open_program(cut where)
{
    here = where;
    open_world();
    schedule = setup_phases(world, PHASES);
    if (plays_back_in_parallel) schedule->playback.parallel_command_count = 1;
    for (uint32_t i = 0; i < SYSTEMS; i++)
        must(add_system(i));
}

static void close_world(void)
{
    failing_allocator_heal(memory);
    quern_world_destroy(world);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0u, "memory was not given back");
    cr_assert_eq(failing_allocator_misuse_count(memory), 0u);
    cr_assert_eq(tracked_live_count(&counts), 0u, "values were not destroyed");
    cr_assert_eq(counts.broken_count, 0u);
    failing_allocator_destroy(memory);
}

static void close_program(void)
{
    quern_schedule_destroy(schedule);
    close_world();
}

/* ----------------------------------------------------------------------------------------- expectations */

typedef struct expectations {
    uint64_t start[FRAMES + 1];           /* hash before the frame */
    uint64_t before_sync[FRAMES][PHASES]; /* hash if the frame ends before the sync point of this phase */
    uint64_t behind_sync[FRAMES][PHASES];
} expectations;

static expectations expected;

/* Returns the hash after running the program up to the cut. */
static uint64_t play_until(cut where)
{
    open_program(where);
    for (uint32_t frame = 0; frame < FRAMES && frame <= where.frame; frame++)
        must_run(schedule, NULL);
    uint64_t hash = quern_world_hash(world);
    close_program();
    return hash;
}

static void find_expectations(void)
{
    open_program(no_cut);
    for (uint32_t frame = 0; frame <= FRAMES; frame++) {
        expected.start[frame] = quern_world_hash(world);
        if (frame < FRAMES) must_run(schedule, NULL);
    }
    close_program();
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        for (uint32_t phase = 0; phase < PHASES; phase++) {
            expected.before_sync[frame][phase] = play_until((cut){frame, phase, false});
            expected.behind_sync[frame][phase] = play_until((cut){frame, phase, true});
        }
}

/* Counts of the documented outcomes, with which the tests assert that all of them occur. */
static uint32_t ended_early_count, ended_before_sync_count, ended_behind_sync_count, not_recorded_count;

static void assert_documented_end(uint32_t frame, uint64_t call)
{
    unsigned long long n = call;
    uint64_t hash = quern_world_hash(world);
    if (refused_count > 0) {
        cr_assert_eq(phases_begun, (uint32_t)PHASES, "call %llu: the rest of the frame was not done", n);
        not_recorded_count++;
    } else if (phases_begun == 0) {
        cr_assert_eq(hash, expected.start[frame], "call %llu: the world changed before the first system",
                     n);
        ended_early_count++;
    } else if (hash == expected.before_sync[frame][phases_begun - 1]) {
        ended_before_sync_count++;
    } else {
        cr_assert_eq(hash, expected.behind_sync[frame][phases_begun - 1],
                     "call %llu: in frame %u, phase %u, the world is in no documented state", n, frame,
                     phases_begun - 1);
        ended_behind_sync_count++;
    }
}

/* ------------------------------------------------------------------------------------------------ tests */

/* Runs a frame that may run out of memory. Returns whether it did. */
static bool run_frame(quern_jobs *jobs)
{
    phases_begun = 0;
    refused_count = 0;
    refusal before = refusal_begin(NULL);
    quern_result result = capture != NULL ? quern_schedule_run_captured(schedule, jobs, 0, capture)
                                          : quern_schedule_run(schedule, jobs, 0);
    bool has_message = refusal_has_message(&before);
    assert_valid(world);
    if (result == QUERN_OK) {
        cr_assert_eq(refused_count, 0u, "a frame hid that memory was missing");
        return false;
    }
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    cr_assert(has_message, "a failed frame set no message");
    return true;
}

/* Runs the program with the call-th allocation failing. Returns false if the program makes fewer
 * allocations. */
static bool play_with_failure(uint64_t call, quern_jobs *jobs)
{
    open_program(no_cut);
    failing_allocator_fail_at(memory, call);
    bool failed = false;
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        bool fails_now = run_frame(jobs);
        cr_assert_not(failed && fails_now, "call %llu: one refusal, two failed frames",
                      (unsigned long long)call);
        if (fails_now) assert_documented_end(frame, call);
        failed |= fails_now;
    }
    if (!failed) cr_assert_eq(quern_world_hash(world), expected.start[FRAMES]);
    bool reached = failing_allocator_failed_count(memory) > 0;
    close_program();
    return reached;
}

static void play_with_every_failure(uint32_t thread_count)
{
    find_expectations();
    plays_back_in_parallel = thread_count > 0;
    quern_jobs *jobs = setup_jobs(thread_count);
    uint64_t call = 1;
    while (play_with_failure(call, jobs))
        call += effort(1, 5, 9);
    cr_assert_gt(call, 50u, "the program asks for memory %llu times", (unsigned long long)call - 1);
    quern_jobs_destroy(jobs);
}

Test(frame_failure, each_refused_allocation_ends_the_frame_as_documented, .timeout = 600)
{
    runs_on_one_thread();
    play_with_every_failure(0);
    cr_assert_gt(ended_early_count, 0u);
    cr_assert_gt(ended_before_sync_count, 0u);
    cr_assert_gt(ended_behind_sync_count, 0u);
    cr_assert_gt(not_recorded_count, 0u);
}

Test(frame_failure, each_refused_allocation_ends_the_frame_as_documented_on_several_threads, .timeout = 600)
{
    play_with_every_failure(3);
}

/* Runs on the caller alone, but applies commands as with several threads. The allocations of the capture
 * do not fail. */
Test(frame_failure, each_refused_allocation_ends_the_captured_frame_as_documented, .timeout = 600)
{
    runs_on_one_thread();
    find_expectations();
    plays_back_in_parallel = true;
    must(quern_frame_capture_create(NULL, &capture));
    uint64_t call = 1;
    while (play_with_failure(call, NULL))
        call++;
    cr_assert_gt(call, 50u);
    quern_frame_capture_destroy(capture);
    capture = NULL;
}

Test(frame_failure, program_continues_when_memory_is_available_again, .timeout = 600)
{
    runs_on_one_thread();
    for (uint64_t call = 1; call < 200; call += 3) {
        open_program(no_cut);
        failing_allocator_fail_from(memory, call);
        for (uint32_t frame = 0; frame < FRAMES; frame++)
            run_frame(NULL);
        failing_allocator_heal(memory);
        for (uint32_t frame = 0; frame < FRAMES; frame++)
            cr_assert_not(run_frame(NULL), "call %llu: %s", (unsigned long long)call,
                          quern_error_message());
        close_program();
    }
}

/* ----------------------------------------------------------------------------- losses of a failed frame */

static quern_event flash;
static uint64_t recorded_count;
static bool emits_too, loses_commands;

/* Records commands or emits events until memory runs out. All later allocations fail as well. */
static void lose(quern_context *context)
{
    const uint64_t value = 1;
    quern_commands *commands = quern_context_commands(context);
    quern_emitter *emitter = emits_too ? quern_context_emitter(context, flash) : NULL;
    if (emits_too) cr_assert(quern_emit(emitter, &value));
    record_entity(commands);
    recorded_count = 1;
    failing_allocator_fail_from(memory, 1);
    while (loses_commands && !quern_entity_is_null(record_entity(commands)))
        recorded_count++;
    while (!loses_commands && quern_emit(emitter, &value))
        continue;
}

/* Runs a frame that loses commands or events and has no memory for its sync point either. The frame must
 * report the loss. The next frame must apply the retained commands and succeed. */
static void lose_in_one_frame(const char *what)
{
    open_world();
    flash = make_event(world, .name = "flash", .size_bytes = 8);
    must(quern_schedule_create(world, NULL, &schedule));
    const quern_system loser = make_system(schedule, "loser", NULL, .begin = lose, .emits = {flash});
    const uint64_t count = stats_of_world(world).entity_count;
    must_refuse(OUT_OF_MEMORY, world, quern_schedule_run(schedule, NULL, 0));
    cr_assert_not_null(strstr(quern_error_message(), what), "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), "frame 0"), "%s", quern_error_message());
    failing_allocator_heal(memory);
    must(quern_schedule_set_system_enabled(schedule, loser, false));
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_world(world).entity_count, count + recorded_count);
    close_program();
}

Test(frame_failure, a_failed_frame_reports_what_it_lost)
{
    runs_on_one_thread();
    loses_commands = true;
    lose_in_one_frame("no memory to record a command"); /* the sync point of commands fails */
    emits_too = true;
    /* the sync point of events fails before that of commands */
    lose_in_one_frame("no memory to record a command");
    loses_commands = false;
    lose_in_one_frame("no memory to emit an event");
}

/* Creates the schedule and its systems; each call that fails is made again. */
static void build_with_failure(void)
{
    quern_schedule_def def = {.name = "building", .phases = {"a", "b", "c"}};
    uint64_t hash = quern_world_hash(world);
    for (uint32_t done = 0; done < SYSTEMS + 3;) {
        quern_result result = done == 0             ? quern_schedule_create(world, &def, &schedule)
                              : done <= SYSTEMS     ? add_system(done - 1)
                              : done == SYSTEMS + 1 ? add_last_system()
                                                    : quern_schedule_compile(schedule);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        cr_assert_eq(quern_world_hash(world), hash);
        if (done > 0) cr_assert_leq(quern_schedule_system_count(schedule), done);
        if (result == QUERN_OK) done++;
    }
}

Test(frame_failure, building_a_schedule_fails_without_a_trace)
{
    runs_on_one_thread();
    here = no_cut;
    bool reached = true;
    for (uint64_t call = 1; reached; call++) {
        open_world();
        failing_allocator_fail_at(memory, call);
        build_with_failure();
        reached = failing_allocator_failed_count(memory) > 0;
        failing_allocator_heal(memory);
        cr_assert_not(run_frame(NULL), "%s", quern_error_message());
        close_program();
    }
}

/* Asserts that the program of these tests causes the conflict described above. */
Test(frame_failure, program_fuses_systems_until_an_archetype_conflicts)
{
    open_program(no_cut);
    quern_system conditional = quern_schedule_find_system(schedule, "first, too");
    quern_system looker = quern_schedule_find_system(schedule, "first looker");
    must(quern_schedule_compile(schedule));
    cr_assert(quern_schedule_are_fused(schedule, conditional, looker));
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        must_run(schedule, NULL);
    cr_assert_not(quern_schedule_are_fused(schedule, conditional, looker));
    close_program();
}

/* Random systems. The resulting world is not known, but it must be valid and no memory may leak. */
Test(frame_failure, random_frames_survive_random_refusals, .timeout = 600)
{
    static flow_plan plan;
    static flow_subject subject;
    quern_jobs *jobs = setup_jobs(2);
    for (uint64_t seed = 1; seed <= effort(12, 6, 3); seed++) {
        memory = failing_allocator_create();
        quern_world_def def = failing_world_def();
        flow_plan_make(&plan, seed, 600);
        flow_subject_open_as(&subject, &plan, &def, schedule_style((uint32_t)seed % STYLE_COUNT));
        for (uint32_t frame = 0; frame < 12; frame++) {
            failing_allocator_fail_often(memory, 1 + (uint32_t)(seed * 5) % 30, seed + frame);
            quern_result result = flow_subject_run(&subject, frame % 2 ? jobs : NULL);
            cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s",
                      quern_error_message());
            assert_valid(subject.world);
        }
        failing_allocator_heal(memory);
        flow_subject_must_run(&subject, jobs);
        flow_subject_close(&subject);
        failing_allocator_close(memory);
    }
    quern_jobs_destroy(jobs);
}
