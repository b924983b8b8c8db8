/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <pthread.h>
#include <string.h>

/* Tests sync points with many commands: systems add, set, remove, create and destroy over many entities
 * in several archetypes. The result must be equal at every thread count. Commands must not be lost if
 * memory runs out. Frames must not allocate once they are warm. */

enum { ENTITIES = 3000, SYSTEMS = 3 };

static failing_allocator *memory;
static quern_world *world;
static quern_schedule *schedule;
static quern_component number, links, tag, tracked_component;
static tracked_counts counts;
static uint64_t salt;

/* ----------------------------------------------------------------------------------------- the program */

static uint64_t mix(uint64_t x)
{
    random_source source = {x};
    return random_next(&source);
}

/* Recording calls may run out of memory in tests with failing allocations; counts how often they did. */
static _Atomic uint32_t refused_count;

static void expect(quern_result result)
{
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    refused_count += result != QUERN_OK;
}

static void set_tracked(quern_commands *commands, quern_entity entity, uint64_t payload)
{
    tracked value;
    tracked_construct(&value, payload, &counts);
    expect(quern_commands_set(commands, entity, tracked_component, &value));
    tracked_destroy(&value, &counts);
}

/* Creates three entities that contain handles of each other in one call, and records further commands
 * for them. */
static void create_some(quern_commands *commands, quern_entity old, uint64_t random)
{
    quern_component kind[] = {number, links, tag};
    uint64_t numbers[] = {random, random + 1, random + 2};
    link3 all[3] = {{.targets = {old}}, {.number = random}, {.number = 5}};
    const void *columns[] = {numbers, all, NULL};
    quern_entity created[3];
    quern_result result = quern_commands_create_many(commands, kind, columns, 3, 3, created);
    expect(result);
    if (result != QUERN_OK) return;
    all[0].targets[1] = created[1];
    all[0].targets[2] = created[2];
    expect(quern_commands_set(commands, created[0], links, &all[0]));
    if (random % 3 == 0) expect(quern_commands_set(commands, old, links, &all[0]));
    if (random % 5 == 0) expect(quern_commands_destroy(commands, created[2]));
    if (random % 7 == 0) set_tracked(commands, created[1], random);
}

static void change(quern_commands *commands, quern_entity entity, uint64_t random)
{
    uint64_t value = random;
    switch (random % 8) {
    case 0:
        expect(quern_commands_add(commands, entity, number, &value));
        break;
    case 1:
        expect(quern_commands_remove(commands, entity, number));
        break;
    case 2:
        set_tracked(commands, entity, random);
        break;
    case 3:
        expect(quern_commands_remove(commands, entity, tracked_component));
        break;
    case 4:
        expect(quern_commands_add(commands, entity, tag, NULL));
        break;
    case 5:
        expect(quern_commands_add(commands, entity, links, NULL));
        break;
    case 6:
        if (random % 3 == 0) expect(quern_commands_destroy(commands, entity));
        break;
    default:
        if (random % 5 == 0) create_some(commands, entity, random);
        break;
    }
}

static uint64_t random_of(const quern_context *context, uint64_t what)
{
    uint64_t system = (uintptr_t)quern_context_user_data(context);
    return mix(mix(salt ^ system) + quern_context_frame_index(context) * 1000003 + what);
}

static void run(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++)
        change(commands, view->entities[i], random_of(context, quern_entity_index(view->entities[i])));
}

/* Entities from all chunks, so that a stream touches many chunks and several streams touch the same
 * entity. */
static quern_entity known[ENTITIES];

static void end(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t random = random_of(context, i + 77777777);
        quern_entity entity = known[random % ENTITIES];
        if (quern_context_is_alive(context, entity)) change(commands, entity, mix(random));
    }
}

static void open_with(const quern_allocator *allocator)
{
    memset((void *)&counts, 0, sizeof counts);
    refused_count = 0;
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_world_create(&def, &world));
    number = setup_component(world, "number", 8, 8);
    links = setup_links(world, "links");
    tag = setup_tag(world, "tag");
    tracked_component = tracked_register(world, "tracked", &counts);
    quern_component sets[] = {number, links, tag, number, links};
    for (uint32_t i = 0; i < ENTITIES; i++)
        known[i] = setup_entity_with(world, sets + i % 3, 1 + i % 3);
    quern_schedule_def schedule_def = {0};
    must(quern_schedule_create(world, &schedule_def, &schedule));
}

static void add_systems(void)
{
    static const char *const names[SYSTEMS] = {"one", "two", "three"};
    quern_component of_system[SYSTEMS] = {number, links, tag};
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        make_system(schedule, names[i], run, .terms = {quern_term_with(of_system[i])}, .end = end,
                    .user_data = (void *)(uintptr_t)i);
    }
}

static void enable_systems(bool enabled)
{
    for (uint32_t i = 0; i < quern_schedule_system_count(schedule); i++)
        must(quern_schedule_set_system_enabled(schedule, (quern_system){i + 1}, enabled));
}

static void close_all(void)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u, "values were not destroyed");
    cr_assert_eq(counts.broken_count, 0u, "hooks were called on dead values");
}

/* --------------------------------------------------------------------------------- numbers of threads */

enum { FRAMES = 6, SEEDS = effort(4, 4, 2) };

static uint64_t hashes[FRAMES];

static void play(uint32_t thread_count, bool is_first)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_with(NULL);
    add_systems();
    schedule->playback.parallel_command_count = 1;
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        must_run(schedule, jobs);
        assert_valid(world);
        uint64_t hash = quern_world_hash(world);
        if (is_first) hashes[frame] = hash;
        cr_assert_eq(hash, hashes[frame], "frame %u, %u threads", frame, thread_count);
        cr_assert_gt(stats_of_frame(schedule).command_count, 1000u);
    }
    close_all();
    quern_jobs_destroy(jobs);
}

Test(sync, many_commands_have_the_same_result_at_every_thread_count, .timeout = 600)
{
    for (salt = 1; salt <= SEEDS; salt++) {
        play(0, true);
        play(2, false);
        play(3, false);
        play(8, false);
    }
}

/* --------------------------------------------------------------------------------------------- hooks */

enum { MAX_LOG = 100000 };

/* The calls of hooks in order: kind of hook and value. Addresses are not logged. */
static uint64_t hook_log[MAX_LOG], expected_log[MAX_LOG];
static uint32_t log_count, expected_log_count;
static pthread_t frame_thread;
static bool is_logging;

static void log_values(const uint64_t *values, uint32_t count, uint64_t which)
{
    if (!is_logging) return;
    cr_assert(pthread_equal(pthread_self(), frame_thread), "a hook ran on another thread");
    for (uint32_t i = 0; i < count && log_count < MAX_LOG; i++)
        hook_log[log_count++] = values[i] << 2 | which;
}

static void logged_construct(void *values, uint32_t count, void *user_data)
{
    memset(values, 0, count * sizeof(uint64_t));
    log_values(values, count, 0);
}

static void logged_move(void *targets, void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(uint64_t));
    log_values(targets, count, 1);
}

static void logged_destroy(void *values, uint32_t count, void *user_data)
{
    log_values(values, count, 2);
}

static void logged_copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(uint64_t));
}

static void change_logged(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t random = random_of(context, quern_entity_index(view->entities[i]));
        quern_entity entity = view->entities[i];
        if (random % 7 == 0) must(quern_commands_destroy(commands, entity));
        if (random % 5 == 1) must(quern_commands_set(commands, entity, links, &(link3){.number = 3}));
        if (random % 5 == 2) must(quern_commands_remove(commands, entity, number));
        if (random % 5 == 3) must(quern_commands_set(commands, entity, number, &random));
        const void *values[] = {&random};
        if (random % 5 == 4) cr_assert(record_entity_with(commands, &number, values, 1).bits);
    }
}

static quern_component register_logged(const char *name)
{
    quern_component_def def = {.name = name};
    def.size_bytes = def.alignment_bytes = 8;
    def.hooks = (quern_hooks){logged_construct, logged_copy, logged_move, logged_destroy, NULL};
    quern_component component;
    must(quern_component_register(world, &def, &component));
    return component;
}

/* Creates a world in which the hooks of `number` are logged. */
static void open_logged(void)
{
    world = setup_world();
    number = register_logged("number");
    links = setup_links(world, "links");
    tag = setup_tag(world, "tag");
    for (uint64_t i = 0; i < ENTITIES; i++) {
        quern_component set[] = {tag, number};
        const void *values[] = {NULL, &i};
        must(quern_entity_create_with(world, set, values, 1 + i % 2, NULL));
    }
    schedule = setup_schedule(world);
    schedule->playback.parallel_command_count = 1;
}

static void play_logged(uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_logged();
    make_system(schedule, "change", change_logged, .terms = {quern_term_with(tag)});
    log_count = 0;
    frame_thread = pthread_self();
    is_logging = true;
    for (uint32_t frame = 0; frame < 3; frame++)
        must_run(schedule, jobs);
    is_logging = false;
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_jobs_destroy(jobs);
}

Test(sync, hooks_run_on_the_frame_thread_in_the_same_order)
{
    static const uint32_t threads[] = {0, 2, 3, 8};
    salt = 9;
    for (uint32_t i = 0; i < COUNT_OF(threads); i++) {
        play_logged(threads[i]);
        cr_assert_lt(log_count, (uint32_t)MAX_LOG);
        if (i == 0) {
            memcpy(expected_log, hook_log, sizeof hook_log);
            expected_log_count = log_count;
            cr_assert_gt(log_count, 1000u);
        }
        cr_assert_eq(log_count, expected_log_count, "%u threads", threads[i]);
        cr_assert_arr_eq(hook_log, expected_log, log_count * sizeof *hook_log, "%u threads", threads[i]);
    }
}

/* Records on two recorders: commands that give `other` to entities with a number, and a second command
 * for one of them, which `recorder` records under another stream. */
static void play_recorded_by(uint32_t recorder)
{
    enum { ROWS = 4 };
    open_logged();
    quern_component other = register_logged("other");
    quern_commands recorders[2];
    for (uint32_t i = 0; i < 2; i++)
        quern__commands_init(&recorders[i], &world->storage);
    quern_entity entities[ROWS];
    quern__commands_begin(&recorders[0], &(quern__origin){.key = 1, .serial = 1, .name = "first"});
    for (uint64_t i = 0; i < ROWS; i++) {
        const void *values[] = {&i};
        must(quern_entity_create_with(world, &number, values, 1, &entities[i]));
    }
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_commands_set(&recorders[0], entities[i], other, &(uint64_t){100 + i}));
    quern__commands_begin(&recorders[recorder], &(quern__origin){.key = 2, .serial = 2, .name = "second"});
    must(quern_commands_set(&recorders[recorder], entities[1], other, &(uint64_t){200}));
    log_count = 0;
    frame_thread = pthread_self();
    is_logging = true;
    quern__playback_stats stats = {0};
    quern_commands *const list[] = {&recorders[0], &recorders[1]};
    must(quern__playback_run(&schedule->playback, (quern__recorders){list, 2}, NULL, &stats));
    is_logging = false;
    for (uint32_t i = 0; i < 2; i++)
        quern__commands_release(&recorders[i]);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

Test(sync, order_of_hooks_does_not_depend_on_the_recorder)
{
    play_recorded_by(0);
    memcpy(expected_log, hook_log, sizeof hook_log);
    expected_log_count = log_count;
    play_recorded_by(1);
    cr_assert_eq(log_count, expected_log_count);
    cr_assert_arr_eq(hook_log, expected_log, log_count * sizeof *hook_log);
}

/* ----------------------------------------------------------------------------------------- create many */

enum { MANY = 20000 };

static quern_entity many[MANY];

static void create_many(quern_context *context)
{
    static uint64_t numbers[MANY];
    static link3 all[MANY];
    quern_commands *commands = quern_context_commands(context);
    quern_component kind[] = {links, number};
    const void *columns[] = {all, numbers};
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[i] = i * 3;
        all[i] = (link3){.targets = {known[0]}, .number = i};
    }
    must(quern_commands_create_many(commands, kind, columns, 2, MANY, many));
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_is_provisional(many[i]) && quern_entity_index(many[i]) == i);
    must(quern_commands_set(commands, many[7], number, &(uint64_t){123}));
    must(quern_commands_destroy(commands, many[8]));
    must(quern_commands_create_many(commands, NULL, NULL, 0, 0, NULL));
}

Test(sync, one_command_creates_entities_over_many_blocks)
{
    open_with(NULL);
    quern_frame_stats stats = run_once(world, create_many);
    cr_assert_eq(stats.created_count, (uint64_t)MANY);
    cr_assert_eq(stats.command_count, 3u * MANY + 2);
    assert_valid(world);
    for (uint32_t i = 0; i < MANY; i++) {
        quern_entity entity = {known[ENTITIES - 1].bits + 1 + i};
        cr_assert_eq(quern_entity_is_alive(world, entity), i != 8);
        if (i == 8) continue;
        const uint64_t *value = quern_entity_get(world, entity, number);
        const link3 *link = quern_entity_get(world, entity, links);
        cr_assert_eq(*value, i == 7 ? 123u : i * 3u);
        cr_assert_eq(link->number, i);
        cr_assert(quern_entity_equal(link->targets[0], known[0]));
    }
    close_all();
}

static void refuse_create_many(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_component twice[] = {number, number}, unknown = component_unregistered(number);
    link3 smuggled = {.targets = {entity_provisional(3)}};
    const void *columns[] = {&smuggled};
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_many(NULL, &number, NULL, 1, 1, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_commands_create_many(commands, NULL, NULL, 1, 1, NULL));
    must_refuse(DUPLICATE_COMPONENT, NULL, quern_commands_create_many(commands, twice, NULL, 2, 1, NULL));
    must_refuse(UNKNOWN_COMPONENT, NULL, quern_commands_create_many(commands, &unknown, NULL, 1, 1, NULL));
    must_refuse(LIMIT, NULL, quern_commands_create_many(commands, &number, NULL, 1, UINT32_MAX, NULL));
    must_refuse(PROVISIONAL_ENTITY, NULL,
                quern_commands_create_many(commands, &links, columns, 1, 1, NULL));
}

Test(sync, create_many_refuses_invalid_arguments_and_records_nothing)
{
    static captured_reports reports;
    capture_reports(&reports);
    open_with(NULL);
    cr_assert_eq(run_once(world, refuse_create_many).command_count, 0u);
    close_all();
}

/* --------------------------------------------------------------------------------- dropped commands */

static void destroy_known(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_destroy(commands, known[5]));
    must(quern_commands_destroy(commands, known[5]));
    quern_entity created = record_entity(commands);
    must(quern_commands_destroy(commands, created));
    must(quern_commands_add(commands, created, number, NULL));
}

static void set_known(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 4; i < 7; i++)
        must(quern_commands_set(commands, known[i], number, &(uint64_t){i}));
}

static void outlive(quern_context *context)
{
    must(quern_commands_remove(quern_context_commands(context), known[9], number));
    must(quern_entity_destroy(quern_context_world(context), known[9]));
}

static quern_component wide[2];

static void ask_for_too_much(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_add(commands, known[20], wide[0], NULL));
    must(quern_commands_add(commands, known[20], wide[1], NULL));
    quern_entity created = record_entity_with(commands, &wide[0], NULL, 1);
    must(quern_commands_add(commands, created, wide[1], NULL));
}

static void add_callback(const char *name, quern_system_callback *callback, uint32_t flags)
{
    make_system(schedule, name, NULL, .begin = callback, .flags = flags);
}

static void assert_drop(uint32_t i, const char *system, quern_drop_reason reason, uint64_t count,
                        quern_entity first)
{
    quern_dropped_command dropped;
    must(quern_schedule_get_dropped_command(schedule, i, &dropped));
    cr_assert_str_eq(dropped.system_name, system);
    cr_assert_eq(dropped.system.bits, quern_schedule_find_system(schedule, system).bits);
    cr_assert_eq(dropped.reason, reason, "%s: %s", system, quern_drop_reason_string(dropped.reason));
    cr_assert_eq(dropped.count, count, "%s: %llu", system, (unsigned long long)dropped.count);
    if (!quern_entity_is_null(first)) cr_assert(quern_entity_equal(dropped.first, first), "%s", system);
}

Test(sync, frame_reports_system_and_reason_of_dropped_commands)
{
    open_with(NULL);
    wide[0] = setup_component(world, "wide0", 9000, 8);
    wide[1] = setup_component(world, "wide1", 9000, 8);
    add_callback("destroy", destroy_known, QUERN_SYSTEM_DEFAULT);
    add_callback("set", set_known, QUERN_SYSTEM_DEFAULT);
    add_callback("outlive", outlive, QUERN_SYSTEM_EXCLUSIVE);
    add_callback("greedy", ask_for_too_much, QUERN_SYSTEM_DEFAULT);
    must_not_run(schedule, NULL, QUERN_ERROR_COMPONENT_TOO_LARGE);
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 4u);
    assert_drop(0, "destroy", QUERN_DROP_DESTROYED, 2, known[5]);
    assert_drop(1, "set", QUERN_DROP_DESTROYED, 1, known[5]);
    assert_drop(2, "outlive", QUERN_DROP_DEAD, 1, known[9]);
    assert_drop(3, "greedy", QUERN_DROP_REFUSED, 4, known[20]);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 8u);
    enable_systems(false);
    must_run(schedule, NULL);
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 0u, "the report is of the last frame");
    close_all();
}

Test(sync, report_of_dropped_commands_refuses_invalid_arguments)
{
    quern_dropped_command dropped;
    open_with(NULL);
    assert_refused_value(NULL, quern_schedule_dropped_command_count(NULL));
    assert_refused_value(NULL, quern_schedule_kept_command_count(NULL));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_dropped_command(NULL, 0, &dropped));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_get_dropped_command(schedule, 0, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_get_dropped_command(schedule, 0, &dropped));
    must_refuse(NULL_ARGUMENT, world, quern_schedule_discard_commands(NULL));
    cr_assert_str_eq(quern_drop_reason_string((quern_drop_reason)99), "unknown reason");
    close_all();
}

/* ----------------------------------------------------------------------------------- missing memory */

/* Runs one frame of all systems in which the n-th allocation fails. Returns the kind of outcome. */
typedef enum ending { ALL_DONE, NOT_RECORDED, KEPT, ELSEWHERE } ending;

static void open_failing(uint32_t thread_count)
{
    memory = failing_allocator_create();
    quern_allocator allocator = failing_allocator_interface(memory);
    open_with(&allocator);
    add_systems();
    if (thread_count > 0) schedule->playback.parallel_command_count = 1;
}

static void close_failing(void)
{
    close_all();
    failing_allocator_close(memory);
}

static ending run_refused(quern_jobs *jobs, uint64_t call)
{
    uint64_t before = quern_world_hash(world);
    failing_allocator_fail_at(memory, call);
    quern_result result = quern_schedule_run(schedule, jobs, 0);
    if (failing_allocator_failed_count(memory) == 0) must(result);
    assert_valid(world);
    if (refused_count > 0) return NOT_RECORDED;
    if (result == QUERN_OK) return ALL_DONE;
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    if (quern_schedule_kept_command_count(schedule) == 0) return ELSEWHERE;
    cr_assert_eq(quern_world_hash(world), before, "call %llu", (unsigned long long)call);
    return KEPT;
}

/* Makes each allocation of a frame fail once. The next frame must apply the commands that the failed
 * frame kept, with the same result as without failure, or discard them. */
static void refuse_each(uint32_t thread_count, uint64_t step)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_failing(thread_count);
    must_run(schedule, jobs);
    uint64_t expected = quern_world_hash(world);
    uint64_t command_count = stats_of_frame(schedule).command_count;
    close_failing();
    uint32_t kept_count = 0;
    ending last = KEPT;
    for (uint64_t call = 1; last != ALL_DONE; call += step) {
        open_failing(thread_count);
        uint64_t before = quern_world_hash(world);
        last = run_refused(jobs, call);
        if (last == KEPT) {
            cr_assert_eq(quern_schedule_kept_command_count(schedule), command_count);
            enable_systems(false);
            if (kept_count++ % 2 == 0) must(quern_schedule_discard_commands(schedule));
            bool discarded = quern_schedule_kept_command_count(schedule) == 0;
            must_run(schedule, jobs);
            cr_assert_eq(quern_world_hash(world), discarded ? before : expected, "call %llu",
                         (unsigned long long)call);
            cr_assert_eq(quern_schedule_kept_command_count(schedule), 0u);
        }
        close_failing();
    }
    cr_assert_gt(kept_count, 10u, "the test meets few refusals at the sync point");
    quern_jobs_destroy(jobs);
}

Test(sync_memory, commands_are_kept_when_out_of_memory, .timeout = 600)
{
    salt = 3;
    refuse_each(0, 1);
}

Test(sync_memory, commands_are_kept_on_several_threads_too, .timeout = 600)
{
    salt = 3;
    refuse_each(3, 3);
}

/* Creates and destroys more entities each frame; none of them remain. */
static void create_and_destroy_more(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    uint32_t count = MANY - 4000 + 80 * (uint32_t)quern_context_frame_index(context);
    must(quern_commands_create_many(commands, NULL, NULL, 0, count, many));
    for (uint32_t i = 0; i < count; i++)
        must(quern_commands_destroy(commands, many[i]));
}

Test(sync_memory, slowly_growing_sync_points_leak_no_memory)
{
    open_failing(0);
    enable_systems(false);
    make_system(schedule, "create", create_and_destroy_more);
    must_run(schedule, NULL);
    uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    for (uint32_t frame = 1; frame <= 50; frame++)
        must_run(schedule, NULL);
    cr_assert_lt(failing_allocator_outstanding_bytes(memory), bytes + 2 * 1024 * 1024);
    close_failing();
}

/* Records commands, and makes all later allocations fail. */
static void record_and_refuse(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint64_t i = 0; i < 10; i++)
        must(quern_commands_set(commands, known[i], number, &i));
    quern_entity created = record_entity_with(commands, &tag, NULL, 1);
    must(quern_commands_set(commands, known[3], links, &(link3){.targets = {created}}));
    failing_allocator_fail_from(memory, 1);
}

static void keep_commands(void)
{
    memory = failing_allocator_create();
    quern_allocator allocator = failing_allocator_interface(memory);
    open_with(&allocator);
    add_callback("keeper", record_and_refuse, QUERN_SYSTEM_DEFAULT);
    must_not_run(schedule, NULL, QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    enable_systems(false);
    cr_assert_eq(quern_schedule_kept_command_count(schedule), 13u);
}

Test(sync_memory, kept_commands_find_their_entities_in_a_changed_world)
{
    keep_commands();
    must(quern_entity_destroy(world, known[0]));
    /* these entities and those next to them have moved to other rows */
    for (uint32_t i = 1; i < ENTITIES; i += 2)
        must(quern_entity_add(world, known[i], tracked_component, NULL));
    add_callback("later", idle_callback, QUERN_SYSTEM_DEFAULT);
    quern_jobs *jobs = setup_jobs(3);
    schedule->playback.parallel_command_count = 1;
    must_run(schedule, jobs);
    assert_valid(world);
    for (uint64_t i = 1; i < 10; i++) {
        const uint64_t *value = quern_entity_get(world, known[i], number);
        cr_assert(value != NULL && *value == i, "entity %llu", (unsigned long long)i);
    }
    const link3 *link = quern_entity_get(world, known[3], links);
    cr_assert(quern_entity_has(world, link->targets[0], tag));
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 1u);
    assert_drop(0, "keeper", QUERN_DROP_DEAD, 1, known[0]);
    quern_jobs_destroy(jobs);
    close_failing();
}

Test(sync_memory, schedule_may_be_destroyed_with_kept_commands)
{
    keep_commands();
    close_failing();
}

/* Adds and removes a component in alternate frames, and replaces some entities. */
static void alternate_links(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    bool is_even = quern_context_frame_index(context) % 2 == 0;
    for (uint32_t i = 0; i < view->count; i++) {
        quern_entity entity = view->entities[i];
        if (is_even) must(quern_commands_set(commands, entity, links, &(link3){.number = i}));
        if (!is_even) must(quern_commands_remove(commands, entity, links));
        if (i % 20 != 0) continue;
        must(quern_commands_destroy(commands, entity));
        cr_assert(record_entity_with(commands, &number, NULL, 1).bits);
    }
}

Test(sync_memory, warm_frames_do_not_allocate)
{
    open_failing(0);
    enable_systems(false);
    make_system(schedule, "breathe", alternate_links, .terms = {quern_term_with(number)});
    for (uint32_t frame = 0; frame < 24; frame++) /* run until the archetypes and their chunks exist */
        must_run(schedule, NULL);
    uint64_t call_count = failing_allocator_call_count(memory);
    for (uint32_t frame = 0; frame < 8; frame++)
        must_run(schedule, NULL);
    cr_assert_gt(stats_of_frame(schedule).created_count, 10u);
    cr_assert_eq(failing_allocator_call_count(memory), call_count);
    close_failing();
}
