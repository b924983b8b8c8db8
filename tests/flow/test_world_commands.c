/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Tests callbacks that serve as system, parallel query and fill function; and commands from parallel
 * queries and from code between frames. */

enum { ROWS = 6000 };

typedef struct scene {
    failing_allocator *memory;
    quern_world *world;
    quern_component number, tag, links;
    quern_query *query; /* number (write) */
    void *user_data;
} scene;

static void fill_scene(scene *it, quern_allocator allocator, uint32_t row_count)
{
    it->world = make_world(.allocator = allocator);
    it->number = setup_component(it->world, "number", 8, 8);
    it->tag = setup_tag(it->world, "tag");
    it->links = setup_links(it->world, "links");
    for (uint64_t i = 0; i < row_count; i++)
        must(quern_entity_create_with(it->world, (quern_component[]){it->number, it->tag},
                                      (const void *const[]){&i, NULL}, 1 + (uint32_t)(i % 2), NULL));
    it->query = setup_query(it->world, (quern_term[]){quern_term_write(it->number)}, 1);
}

static scene open_scene(uint32_t row_count)
{
    scene it = {.memory = failing_allocator_create()};
    fill_scene(&it, failing_allocator_interface(it.memory), row_count);
    return it;
}

static void close_scene(scene *it)
{
    assert_valid(it->world);
    quern_query_destroy(it->query);
    quern_world_destroy(it->world);
    cr_assert_eq(failing_allocator_outstanding_bytes(it->memory), 0u, "memory was not given back");
    failing_allocator_destroy(it->memory);
}

/* ------------------------------------------------------------------------------------------ callbacks */

static void add_to_numbers(quern_context *context, const quern_view *view)
{
    const uint64_t *difference = quern_context_user_data(context);
    uint64_t *numbers = quern_view_write(view, 0);
    cr_assert_null(quern_context_partial(context));
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] += *difference;
}

Test(callbacks, one_function_serves_a_system_a_parallel_query_and_a_fill)
{
    scene it = open_scene(0);
    uint64_t difference = 5;
    must(quern_entity_create_filled(it.world, &it.number, 1, ROWS, add_to_numbers, &difference, NULL));
    quern_jobs *jobs = setup_jobs(3);
    must(quern_query_parallel_for(it.query, jobs, add_to_numbers, &difference));
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "adds", add_to_numbers, .terms = {quern_term_write(it.number)},
                .user_data = &difference);
    must_run(schedule, jobs);
    quern_query_iterator walk = quern_query_iterate(it.query);
    uint32_t count = 0;
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++, count++)
            cr_assert_eq(((const uint64_t *)quern_view_read(&walk.view, 0))[i], 15u);
    cr_assert_eq(count, (uint32_t)ROWS);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_scene(&it);
}

static scene *asked;
static quern_resource counter;

/* Calls what only systems may use. */
static void call_what_only_systems_may(quern_context *context, const quern_view *view)
{
    cr_assert_eq(quern_context_user_data(context), asked);
    cr_assert(quern_context_is_alive(context, view->entities[0]));
    const void *value = quern_context_lookup(context, view->entities[0], asked->number);
    cr_assert(is_scratch(value, sizeof(uint64_t)));
    cr_assert_not(quern_context_has(context, view->entities[0], asked->number));
    cr_assert_eq(quern_context_lookup_many(context, view->entities, 1, asked->number, &value), 0u);
    cr_assert(is_scratch(value, sizeof(uint64_t)));
    cr_assert(is_scratch(quern_context_resource(context, counter), sizeof(uint64_t)));
    cr_assert(is_scratch(quern_context_resource_write(context, counter), sizeof(uint64_t)));
    cr_assert_null(quern_context_world(context));
    cr_assert_null(quern_context_partial(context));
    cr_assert_eq(quern_context_partial_count(context), 0u);
    cr_assert_null(quern_context_partial_at(context, 0));
    cr_assert_eq(quern_context_delta_seconds(context), 0.0);
    cr_assert_eq(quern_context_frame_index(context), 0u);
    cr_assert_eq(quern_context_worker_index(context), 0u);
    cr_assert_null(quern_context_jobs(context));
}

static void record_in_fill(quern_context *context, const quern_view *view)
{
    cr_assert_null(quern_context_commands(context));
    assert_message_has("quern_context_commands: a fill callback asked for a recorder of commands");
}

Test(callbacks, calls_reserved_for_systems_are_refused_elsewhere)
{
    captured_reports reports;
    scene it = open_scene(10);
    asked = &it;
    counter = setup_counter(it.world, "counter");
    capture_reports(&reports);
    cr_assert_eq(quern_query_parallel_for(it.query, NULL, call_what_only_systems_may, &it),
                 QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("quern_query_parallel_for: ");
    cr_assert_gt(reports.log_count, 0u);
    const uint32_t log_count = reports.log_count;
    must(quern_entity_create_filled(it.world, &it.number, 1, 3, call_what_only_systems_may, &it, NULL));
    cr_assert_gt(reports.log_count, log_count);
    must(quern_entity_create_filled(it.world, &it.number, 1, 3, record_in_fill, NULL, NULL));
    close_scene(&it);
}

/* ----------------------------------------------------------------------- commands of parallel queries */

/* Records commands of all kinds, chosen by the entities' numbers alone. */
static void churn(quern_context *context, const quern_view *view)
{
    const scene *it = quern_context_user_data(context);
    const uint64_t *numbers = quern_view_read(view, 0);
    const uint32_t count = view->count;
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t n = numbers[i], next = n * 3 + 1;
        const quern_entity entity = view->entities[i];
        if (n % 7 == 0) quern_commands_destroy(commands, entity);
        if (n % 5 == 0) quern_commands_add(commands, entity, it->tag, NULL);
        if (n % 5 == 1) quern_commands_remove(commands, entity, it->tag);
        if (n % 3 == 0) quern_commands_set(commands, entity, it->number, &next);
        if (n % 11 != 0) continue;
        const quern_entity made = record_entity(commands);
        const link3 link = {.targets = {made, entity}, .number = n};
        quern_commands_set(commands, made, it->number, &next);
        quern_commands_set(commands, made, it->links, &link);
    }
}

/* Returns the world's hash after four frames of one system, or after as many parallel queries. */
static uint64_t hash_of_churn(bool is_system, uint32_t thread_count)
{
    scene it = open_scene(ROWS);
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "churns", churn, .terms = {quern_term_write(it.number)}, .user_data = &it);
    for (int round = 0; round < 4; round++)
        if (is_system)
            must_run(schedule, jobs);
        else
            must(quern_query_parallel_for(it.query, jobs, churn, &it));
    const uint64_t hash = quern_world_hash(it.world);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(it.world, &stats));
    cr_assert_eq(stats.created_count > 100, !is_system);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_scene(&it);
    return hash;
}

Test(parallel_commands, match_a_serial_system_at_every_thread_count, .timeout = 120)
{
    const uint64_t expected = hash_of_churn(true, 0);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        cr_assert_eq(hash_of_churn(false, pool_threads[i]), expected, "%u threads", pool_threads[i]);
}

static quern_commands *kept;
static quern_entity kept_entity;

static void keep_recorder(quern_context *context, const quern_view *view)
{
    kept = quern_context_commands(context);
}

Test(parallel_commands, recorder_is_valid_only_in_its_callback)
{
    captured_reports reports;
    scene it = open_scene(10);
    capture_reports(&reports);
    must(quern_query_parallel_for(it.query, NULL, keep_recorder, NULL));
    cr_assert(quern_entity_is_null(record_entity(kept)));
    assert_message_has("quern_commands_create: ");
    close_scene(&it);
}

static _Atomic uint32_t wrong_count;
static _Thread_local uint32_t depth;

static void do_nothing(void *payload, uint32_t worker_index) {}

/* Waits for jobs in the middle of its commands. */
static void wait_between_commands(quern_context *context, const quern_view *view)
{
    const scene *it = quern_context_user_data(context);
    quern_jobs *jobs = quern_context_jobs(context);
    quern_commands *commands = quern_context_commands(context);
    const quern_entity made = record_entity(commands);
    const uint64_t value = view->ordinal;
    quern_counter done = {0};
    wrong_count += depth++ > 0;
    for (int i = 0; i < 8 && jobs != NULL; i++)
        must(quern_jobs_submit(jobs, &(quern_job_def){.function = do_nothing, .counter = &done}));
    if (jobs != NULL) must(quern_jobs_wait(jobs, &done));
    depth--;
    wrong_count += quern_context_commands(context) != commands;
    wrong_count += quern_commands_set(commands, made, it->number, &value) != QUERN_OK;
}

Test(parallel_commands, waiting_callback_keeps_its_stream)
{
    scene it = open_scene(3 * ROWS);
    quern_jobs *jobs = setup_jobs(3);
    for (int round = 0; round < 20; round++)
        must(quern_query_parallel_for(it.query, jobs, wait_between_commands, &it));
    cr_assert_eq(wrong_count, 0u);
    quern_jobs_destroy(jobs);
    close_scene(&it);
}

/* Another thread that tries to enter the pool when the last view is done, and stays in it if it
 * succeeds. */
typedef struct intruder {
    quern_allocator inner;
    quern_jobs *jobs;
    const scene *it;
    uint32_t view_count;
    _Atomic uint32_t done_count;
    _Atomic bool is_due, has_tried, may_leave;
    quern_result result;
    pthread_t thread;
} intruder;

static void keep_pool(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    intruder *in = user_data;
    in->has_tried = true;
    while (!in->may_leave)
        usleep(100);
}

static void *intrude(void *user_data)
{
    intruder *in = user_data;
    in->result = quern_jobs_parallel_for(in->jobs, 1, 1, keep_pool, in);
    in->has_tried = true;
    return NULL;
}

static void *allocate_and_intrude(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    intruder *in = user_data;
    if (atomic_exchange(&in->is_due, false)) {
        cr_assert_eq(pthread_create(&in->thread, NULL, intrude, in), 0);
        while (!in->has_tried)
            usleep(100);
    }
    return in->inner.allocate(in->inner.user_data, size_bytes, alignment_bytes);
}

static void release_inner(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    const intruder *in = user_data;
    in->inner.release(in->inner.user_data, pointer, size_bytes, alignment_bytes);
}

static void churn_and_call(quern_context *context, const quern_view *view)
{
    intruder *in = asked->user_data;
    churn(context, view);
    if (atomic_fetch_add(&in->done_count, 1) + 1 == in->view_count) in->is_due = true;
}

/* The query must hold the pool until its last command is applied; otherwise commands would be applied
 * only in part. */
Test(parallel_commands, pool_is_held_until_commands_are_applied, .timeout = 60)
{
    scene plain = open_scene(ROWS);
    must(quern_query_parallel_for(plain.query, NULL, churn, &plain));
    intruder in = {.inner = quern_allocator_default(), .jobs = setup_jobs(2)};
    scene it = {.user_data = &in};
    fill_scene(
        &it,
        (quern_allocator){.allocate = allocate_and_intrude, .release = release_inner, .user_data = &in},
        ROWS);
    asked = &it;
    in.view_count = quern_query_view_count(it.query);
    const quern_result result = quern_query_parallel_for(it.query, in.jobs, churn_and_call, &it);
    in.may_leave = true;
    cr_assert(in.has_tried);
    pthread_join(in.thread, NULL);
    must(result);
    cr_assert_eq(quern_world_hash(it.world), quern_world_hash(plain.world));
    assert_valid(it.world);
    cr_assert_eq(in.result, QUERN_ERROR_POOL_BUSY);
    quern_query_destroy(it.query);
    quern_world_destroy(it.world);
    quern_jobs_destroy(in.jobs);
    close_scene(&plain);
}

/* Each allocation of a query with commands fails once. Recorded commands are kept and applied by the
 * next flush. If no callback was called, the next query does all the work. */
Test(parallel_commands, out_of_memory_loses_no_command, .timeout = 300)
{
    scene plenty = open_scene(600);
    must(quern_query_parallel_for(plenty.query, NULL, churn, &plenty));
    const uint64_t expected = quern_world_hash(plenty.world);
    close_scene(&plenty);
    uint32_t kept_count = 0;
    for (uint64_t call = 1;; call++) {
        scene it = open_scene(600);
        const uint64_t before = quern_world_hash(it.world);
        failing_allocator_fail_at(it.memory, call);
        quern_result result = quern_query_parallel_for(it.query, NULL, churn, &it);
        const bool has_failed = failing_allocator_failed_count(it.memory) > 0;
        failing_allocator_heal(it.memory);
        cr_assert_eq(result, has_failed ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
        if (has_failed && quern_world_hash(it.world) == before) {
            must(quern_world_flush(it.world));
            if (quern_world_hash(it.world) == before)
                must(quern_query_parallel_for(it.query, NULL, churn, &it));
            else
                kept_count++;
            cr_assert_eq(quern_world_hash(it.world), expected);
        }
        close_scene(&it);
        if (!has_failed) break;
    }
    cr_assert_gt(kept_count, 3u);
}

/* ---------------------------------------------------------------------------------- between frames */

/* Hashes the numbers and tags of all entities. The two worlds of a test have only these numbers in
 * common. */
static uint64_t sum_of(const scene *it)
{
    uint64_t sum = 0;
    quern_query_iterator walk = quern_query_iterate(it->query);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++) {
            const uint64_t n = ((const uint64_t *)quern_view_read(&walk.view, 0))[i];
            const bool has_tag = quern_entity_has(it->world, walk.view.entities[i], it->tag);
            sum += (n + has_tag) * 0x9E3779B97F4A7C15u;
        }
    must(walk.result);
    return sum;
}

static quern_entity nth_entity(const scene *it, uint64_t wanted)
{
    for (quern_query_iterator walk = quern_query_iterate(it->query); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++)
            if (((const uint64_t *)quern_view_read(&walk.view, 0))[i] / 2 == wanted)
                return walk.view.entities[i];
    return (quern_entity){0};
}

/* Plays one step of a random program, immediately or by commands. Entity k has the number 2k or 2k + 1. */
static void play_step(scene *it, random_source *random, bool is_recorded, uint64_t *made_count)
{
    quern_commands *commands = is_recorded ? quern_world_commands(it->world) : NULL;
    const uint32_t what = random_below(random, 4);
    const uint64_t target = random_below(random, (uint32_t)*made_count + 1), value = 2 * target + 1;
    const quern_entity entity = nth_entity(it, target);
    if (what == 0) {
        const uint64_t first = 2 * (*made_count)++;
        const void *const values[] = {&first};
        if (is_recorded)
            cr_assert_not(quern_entity_is_null(record_entity_with(commands, &it->number, values, 1)));
        else
            must(quern_entity_create_with(it->world, &it->number, values, 1, NULL));
    } else if (quern_entity_is_null(entity)) {
        return;
    } else if (what == 1) {
        must(is_recorded ? quern_commands_set(commands, entity, it->number, &value)
                         : quern_entity_set(it->world, entity, it->number, &value));
    } else if (what == 2) {
        must(is_recorded ? quern_commands_set(commands, entity, it->tag, NULL)
                         : quern_entity_set(it->world, entity, it->tag, NULL));
    } else if (random_chance(random, 30)) {
        must(is_recorded ? quern_commands_destroy(commands, entity)
                         : quern_entity_destroy(it->world, entity));
    }
}

Test(world_commands, match_immediate_calls, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        scene now = open_scene(0), later = open_scene(0);
        quern_schedule *schedule = setup_schedule(later.world);
        random_source a = {seed}, b = {seed};
        uint64_t a_count = 0, b_count = 0;
        for (int step = 0; step < 150; step++) {
            play_step(&now, &a, false, &a_count);
            play_step(&later, &b, true, &b_count);
            if (step % 3 == 0)
                must_run(schedule, NULL); /* a frame applies the commands as well */
            else
                must(quern_world_flush(later.world));
            cr_assert_eq(sum_of(&now), sum_of(&later), "seed %u, step %d", (unsigned)seed, step);
        }
        quern_schedule_destroy(schedule);
        close_scene(&now);
        close_scene(&later);
    }
}

Test(world_commands, are_applied_by_the_flush_and_return_usable_handles)
{
    scene it = open_scene(0);
    quern_commands *commands = quern_world_commands(it.world);
    const quern_entity a = record_entity(commands), b = record_entity(commands);
    const link3 link = {.targets = {b, a}, .number = 3};
    const uint64_t value = 9;
    const uint64_t before = quern_world_hash(it.world);
    must(quern_commands_set(quern_world_commands(it.world), a, it.links, &link));
    must(quern_commands_set(commands, b, it.number, &value));
    cr_assert_eq(quern_world_hash(it.world), before);
    assert_valid(it.world);
    must(quern_world_flush(it.world));
    cr_assert_eq(stats_of_world(it.world).entity_count, 2u);
    const quern_entity found = nth_entity(&it, 4);
    quern_query *linked = setup_query(it.world, (quern_term[]){quern_term_read(it.links)}, 1);
    quern_query_iterator walk = quern_query_iterate(linked);
    cr_assert(quern_query_next(&walk));
    const link3 *stored = quern_view_read(&walk.view, 0);
    cr_assert(quern_entity_equal(stored->targets[0], found));
    cr_assert(quern_entity_equal(stored->targets[1], walk.view.entities[0]));
    captured_reports reports;
    capture_reports(&reports);
    cr_assert_eq(quern_commands_destroy(quern_world_commands(it.world), a), QUERN_ERROR_PROVISIONAL_ENTITY);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(it.world, &stats));
    cr_assert_eq(stats.created_count, 2u);
    cr_assert_eq(stats.command_count, 4u);
    quern_query_destroy(linked);
    close_scene(&it);
}

static uint32_t called_count;

static void call_in(void *values, uint32_t count, void *user_data)
{
    const scene *it = user_data;
    called_count++;
    cr_assert_null(quern_world_commands(it->world));
    assert_message_has("quern_world_commands: ");
    cr_assert_eq(quern_world_flush(it->world), QUERN_ERROR_WORLD_LOCKED);
    assert_message_has("quern_world_flush: ");
}

static void remove_hooked(quern_context *context, const quern_view *view)
{
    const quern_component *hooked = quern_context_user_data(context);
    must(quern_commands_remove(quern_context_commands(context), view->entities[0], *hooked));
}

/* Hooks must not call into the world: commands that they record while commands are applied would be
 * lost. */
Test(world_commands, hooks_are_refused_while_commands_are_applied)
{
    scene it = open_scene(1);
    quern_component hooked = make_component(it.world, .name = "hooked", .size_bytes = 8,
                                            .hooks = {.destroy = call_in, .user_data = &it});
    const quern_entity entity = nth_entity(&it, 0);
    must(quern_entity_add(it.world, entity, hooked, NULL));
    must(quern_commands_remove(quern_world_commands(it.world), entity, hooked));
    must(quern_world_flush(it.world));
    must(quern_entity_add(it.world, entity, hooked, NULL));
    must(quern_query_parallel_for(it.query, NULL, remove_hooked, &hooked));
    cr_assert_eq(called_count, 2u);
    must(quern_world_flush(it.world));
    close_scene(&it);
}

static void *record_elsewhere(void *user_data)
{
    const scene *it = user_data;
    const uint64_t value = 9;
    quern_commands *commands = quern_world_commands(it->world);
    kept_entity = record_entity_with(commands, &it->number, (const void *const[]){&value}, 1);
    return NULL;
}

/* Different threads may use a world one after another. */
Test(world_commands, continue_when_the_world_passes_to_another_thread)
{
    scene it = open_scene(0);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, record_elsewhere, &it), 0);
    pthread_join(thread, NULL);
    must(quern_commands_set(quern_world_commands(it.world), kept_entity, it.tag, NULL));
    must(quern_world_flush(it.world));
    cr_assert(quern_entity_has(it.world, nth_entity(&it, 4), it.tag));
    close_scene(&it);
}

static uint64_t seen_count;

static void count_entities(quern_context *context, const quern_view *view)
{
    seen_count += view->count;
}

static void record_alone(quern_context *context)
{
    scene *it = quern_context_user_data(context);
    kept = quern_world_commands(quern_context_world(context));
    cr_assert_not_null(kept);
    cr_assert_not(quern_entity_is_null(record_entity_with(kept, &it->number, NULL, 1)));
}

/* Commands of an exclusive system on the world are applied by the next frame. Its recorder is valid
 * until its callback returns. */
Test(world_commands, are_applied_before_the_first_system_of_a_frame)
{
    captured_reports reports;
    scene it = open_scene(0);
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "counts", count_entities, .terms = {quern_term_write(it.number)});
    const quern_system records = make_system(schedule, "records", NULL, .begin = record_alone,
                                             .flags = QUERN_SYSTEM_EXCLUSIVE, .user_data = &it);
    record_entity_with(quern_world_commands(it.world), &it.number, NULL, 1);
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, 1u);
    must(quern_schedule_set_system_enabled(schedule, records, false));
    capture_reports(&reports);
    cr_assert_eq(quern_commands_destroy(kept, nth_entity(&it, 0)), QUERN_ERROR_INVALID_ARGUMENT);
    assert_message_has("quern_world_commands");
    must_run(schedule, NULL);
    cr_assert_eq(seen_count, 3u);
    cr_assert_eq(stats_of_frame(schedule).command_count, 0u, "they are not of the frame");
    quern_schedule_destroy(schedule);
    close_scene(&it);
}

static void fail_to_get(quern_context *context, const quern_view *view)
{
    scene *it = quern_context_user_data(context);
    cr_assert_null(quern_world_commands(it->world));
    assert_message_has("quern_world_commands: ");
    cr_assert_eq(quern_world_flush(it->world), QUERN_ERROR_WORLD_LOCKED);
}

Test(world_commands, are_refused_while_the_world_is_locked)
{
    scene it = open_scene(5);
    must(quern_query_parallel_for(it.query, NULL, fail_to_get, &it));
    assert_refused_value(NULL, quern_world_commands(NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_world_flush(NULL));
    must(quern_world_flush(it.world));
    close_scene(&it);
}

/* Each allocation of recording and flushing fails once. */
Test(world_commands, out_of_memory_loses_no_recorded_command, .timeout = 120)
{
    uint32_t kept_count = 0;
    for (uint64_t call = 1;; call++) {
        scene it = open_scene(50);
        const uint64_t before = quern_world_hash(it.world);
        failing_allocator_fail_at(it.memory, call);
        quern_commands *commands = quern_world_commands(it.world);
        uint64_t made_count = 0;
        for (uint64_t i = 0; i < 300 && commands != NULL; i++)
            made_count += !quern_entity_is_null(record_entity_with(commands, &it.links, NULL, 1));
        const bool has_recorded = failing_allocator_failed_count(it.memory) == 0;
        quern_result result = quern_world_flush(it.world);
        const bool has_failed = failing_allocator_failed_count(it.memory) > 0;
        failing_allocator_heal(it.memory);
        if (has_recorded && has_failed) {
            kept_count++;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(it.world), before);
            must(quern_world_flush(it.world));
        }
        cr_assert_eq(stats_of_world(it.world).entity_count, 50 + made_count);
        close_scene(&it);
        if (!has_failed) break;
    }
    cr_assert_gt(kept_count, 3u);
}

/* A flush that runs out of memory reports the command that was lost earlier. The next flush reports
 * nothing. */
Test(world_commands, lost_command_is_reported_by_the_failing_flush)
{
    scene it = open_scene(50);
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity made = record_entity_with(commands, &it.links, NULL, 1);
    failing_allocator_fail_from(it.memory, 1);
    uint64_t made_count = 0;
    for (; !quern_entity_is_null(made); made_count++)
        made = record_entity_with(commands, &it.links, NULL, 1);
    must_refuse(OUT_OF_MEMORY, it.world, quern_world_flush(it.world));
    cr_assert_not_null(strstr(quern_error_message(), "no memory to record a command"), "%s",
                       quern_error_message());
    cr_assert_eq(strncmp(quern_error_message(), "quern_world_flush: ", 19), 0);
    failing_allocator_heal(it.memory);
    must(quern_world_flush(it.world));
    cr_assert_eq(stats_of_world(it.world).entity_count, 50 + made_count);
    close_scene(&it);
}

Test(world_commands, pending_values_are_destroyed_with_the_world)
{
    tracked_counts counts = {0};
    quern_world *world = setup_world();
    quern_component tracked_type = tracked_register(world, "tracked", &counts);
    record_entity_with(quern_world_commands(world), &tracked_type, NULL, 1);
    tracked value;
    tracked_construct(&value, 7, &counts);
    const quern_entity made = record_entity(quern_world_commands(world));
    must(quern_commands_set(quern_world_commands(world), made, tracked_type, &value));
    tracked_destroy(&value, &counts);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
}
