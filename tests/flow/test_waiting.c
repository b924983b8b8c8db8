/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* While a callback waits for a counter, its worker must not run another system. So the callback finds
 * its context and its command stream unchanged. */

enum { WAITERS = 2, OTHERS = 6, FRAMES = 10, SPINS = 300, PAUSE_US = 5000 };

static quern_world *world;
static quern_component number;
static quern_counter counter;
static _Atomic uint32_t waiting_count, wrong_count;
static _Thread_local bool is_waiting; /* whether a callback of this thread waits */

/* Releases the counter once all waiters wait and have had time to look for other work. */
static void *release_counter(void *argument)
{
    for (uint32_t i = 0; i < SPINS && waiting_count < WAITERS; i++)
        usleep(1000);
    usleep(PAUSE_US);
    quern_counter_release(argument, &counter);
    return NULL;
}

static quern_entity spawn(quern_context *context, uint64_t value)
{
    return record_entity_with(quern_context_commands(context), &number, (const void *const[]){&value}, 1);
}

static void wait_between_commands(quern_context *context, const quern_view *view)
{
    uint64_t own = *(const uint64_t *)quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const void *partial = quern_context_partial(context);
    quern_entity early = spawn(context, own);
    waiting_count++;
    is_waiting = true;
    if (quern_context_jobs(context) != NULL) must(quern_jobs_wait(quern_context_jobs(context), &counter));
    is_waiting = false;
    wrong_count += *(const uint64_t *)quern_context_user_data(context) != own;
    wrong_count += quern_context_partial(context) != partial;
    wrong_count += quern_context_commands(context) != commands;
    uint64_t value = own + 100;
    wrong_count += quern_commands_set(commands, early, number, &value) != QUERN_OK;
    spawn(context, own + 200);
}

static void spawn_at_once(quern_context *context, const quern_view *view)
{
    spawn(context, *(const uint64_t *)quern_context_user_data(context));
    wrong_count += is_waiting;
}

static void run_frame(quern_schedule *schedule, quern_jobs *jobs)
{
    pthread_t thread;
    waiting_count = 0;
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

Test(waiting, waiting_callback_keeps_its_context_and_commands)
{
    uint64_t expected = hash_after_frames(0);
    cr_assert_eq(hash_after_frames(WAITERS), expected);
    cr_assert_eq(wrong_count, 0u);
}
