/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/commands/record.h"
#include "core/world/world.h"
#include "tests/flow/flow_setup.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* A callback that waits for a counter may have to run other systems on its stack, when all workers wait.
 * That changes nothing for it, nor for the world. */

enum { WAITERS = 2, OTHERS = 6, FRAMES = 10, SPINS = 300 };

static quern_world *world;
static quern_component number;
static quern_counter counter;
static _Atomic uint32_t waiting_count, other_count, wrong_count;

static void must(quern_result result)
{
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
}

/* Lets the waiters go when all others have run inside their waits. */
static void *release_counter(void *argument)
{
    for (uint32_t i = 0; i < SPINS && (waiting_count < WAITERS || other_count < OTHERS); i++)
        usleep(1000);
    quern_jobs_release(argument, &counter);
    return NULL;
}

static quern_entity spawn(quern_context *context, uint64_t value)
{
    return quern_commands_create_with(quern_context_commands(context), &number,
                                      (const void *const[]){&value}, 1);
}

static void wait_between_commands(quern_context *context, const quern_view *view)
{
    (void)view;
    uint64_t own = *(const uint64_t *)quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const void *partial = quern_context_partial(context);
    quern_entity early = spawn(context, own);
    waiting_count++;
    if (quern_context_jobs(context) != NULL) must(quern_jobs_wait(quern_context_jobs(context), &counter));
    wrong_count += *(const uint64_t *)quern_context_user_data(context) != own;
    wrong_count += quern_context_partial(context) != partial;
    wrong_count += quern_context_commands(context) != commands;
    uint64_t value = own + 100;
    wrong_count += quern_commands_set(commands, early, number, &value) != QUERN_OK;
    spawn(context, own + 200);
}

static void spawn_at_once(quern_context *context, const quern_view *view)
{
    (void)view;
    spawn(context, *(const uint64_t *)quern_context_user_data(context));
    other_count++;
}

static void run_frame(quern_schedule *schedule, quern_jobs *jobs)
{
    pthread_t thread;
    waiting_count = other_count = 0;
    if (jobs != NULL) {
        quern_counter_hold(&counter);
        cr_assert_eq(pthread_create(&thread, NULL, release_counter, jobs), 0);
    }
    must_run(schedule, jobs);
    if (jobs != NULL) pthread_join(thread, NULL);
}

static uint64_t hash_after_frames(uint32_t thread_count)
{
    static uint64_t values[WAITERS + OTHERS];
    static const char *const names[] = {"w0", "w1", "o0", "o1", "o2", "o3", "o4", "o5"};
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    quern_schedule *schedule = setup_schedule(world);
    for (uint32_t i = 0; i < WAITERS + OTHERS; i++) {
        quern_system_def def = system_def(names[i], i < WAITERS ? wait_between_commands : spawn_at_once);
        values[i] = i;
        def.user_data = &values[i];
        def.partial_bytes = 8;
        setup_system(schedule, &def);
    }
    quern_jobs *jobs = thread_count > 0 ? setup_jobs(thread_count) : NULL;
    for (uint32_t i = 0; i < FRAMES; i++)
        run_frame(schedule, jobs);
    uint64_t hash = quern_world_hash(world);
    assert_valid(world);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return hash;
}

Test(interrupted, a_callback_that_waits_finds_its_context_and_its_commands_as_it_left_them)
{
    uint64_t expected = hash_after_frames(0);
    cr_assert_eq(hash_after_frames(WAITERS), expected);
    cr_assert_eq(wrong_count, 0u);
}

/* ----------------------------------------------------------------------------------------- recorder */

static quern_commands recorder;
static uint32_t own_count, foreign_count;

static void begin_stream(uint32_t key)
{
    quern__origin origin = {.key = key, .serial = key + 1, .name = "test"};
    quern__commands_begin(&recorder, &origin);
}

/* Two commands at a time that do not share a run. */
static void record(uint32_t times, uint32_t *count)
{
    for (uint32_t i = 0; i < times; i++) {
        uint64_t value = *count;
        cr_assert(quern_commands_create_with(&recorder, &number, (const void *const[]){&value}, 1).bits);
        cr_assert(quern_commands_create(&recorder).bits);
        *count += 2;
    }
}

/* How many streams have the key, and how many commands they have. */
static uint32_t count_streams(uint64_t key, uint32_t *item_count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < recorder.streams.count; i++) {
        const quern__stream *stream = &recorder.streams.items[i];
        if (stream->origin.key != key) continue;
        found++;
        quern__run *run = stream->first;
        for (uint32_t k = 0; k < stream->run_count; k++) {
            if (k > 0) run = quern__run_next(run);
            *item_count += run->item_count;
        }
    }
    return found;
}

static void interrupt(uint32_t key, uint32_t foreign)
{
    quern__suspension outer = quern__commands_suspend(&recorder);
    begin_stream(key);
    record(foreign, &foreign_count);
    quern__commands_resume(&recorder, &outer);
}

/* Writes commands to a stream that is interrupted three times, after so many of them. */
static void interrupt_after(uint32_t pair_count, uint32_t single_count)
{
    own_count = foreign_count = 0;
    begin_stream(1);
    record(pair_count, &own_count);
    for (uint32_t i = 0; i < single_count; i++, own_count++)
        cr_assert(quern_commands_create(&recorder).bits);
    for (uint32_t i = 0; i < 3; i++) {
        interrupt(2 + i, i);
        record(i + 1, &own_count);
    }
    quern__commands_close(&recorder);
}

/* At all places around the end of a block of 64 KiB. */
Test(interrupted, a_stream_goes_on_wherever_it_was_interrupted)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    quern__commands_init(&recorder, &world->storage);
    for (uint32_t i = 0; i < 6 * 1000; i++) {
        interrupt_after(i / 6, i % 6);
        uint32_t own_items = 0, foreign_items = 0;
        cr_assert_eq(count_streams(1, &own_items), (uint32_t)(own_count > 0));
        cr_assert_eq(own_items, own_count);
        for (uint32_t key = 2; key < 5; key++)
            cr_assert_eq(count_streams(key, &foreign_items), key > 2);
        cr_assert_eq(foreign_items, foreign_count);
        quern__commands_reset(&recorder);
    }
    quern__commands_release(&recorder);
    quern_world_destroy(world);
}
