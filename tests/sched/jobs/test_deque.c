/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "core/platform/platform.h"
#include "sched/jobs/deque.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>

enum { CAPACITY = QUERN__DEQUE_CAPACITY, THIEF_COUNT = 3, ITEM_COUNT = 100000 };

/* An item is the address of its number. payload is plain memory: the thread sanitizer reports a race if the
 * deque does not publish it. */
typedef struct item {
    uint32_t payload;
    _Atomic uint32_t taken_count;
} item;

static quern__deque *deque;
static item *items;

static void open_deque(void)
{
    deque = aligned_alloc(_Alignof(quern__deque), sizeof *deque);
    items = calloc(ITEM_COUNT, sizeof *items);
    cr_assert(deque != NULL && items != NULL);
    quern__deque_init(deque, false);
}

static void close_deque(void)
{
    free(items);
    free(deque);
}

TestSuite(deque, .init = open_deque, .fini = close_deque, .timeout = 120);

static bool try_push(uint32_t number)
{
    quern__job job = {.target = &items[number], .scope = &items[number % 2], .data = {number, ~number}};
    return quern__deque_push(deque, &job, 2);
}

static void push(uint32_t number)
{
    cr_assert(try_push(number), "item %u", number);
}

/* Left in the place of a job that was taken from between others. */
#define PLACEHOLDER (&items[ITEM_COUNT - 1])

static item *item_of(const quern__job *job)
{
    item *taken = job->target;
    if (taken == PLACEHOLDER) return taken;
    uint32_t number = (uint32_t)(taken - items);
    cr_expect(job->data[0] == number && job->data[1] == ~number, "item %u", number);
    cr_expect(job->scope == &items[number % 2]);
    return taken;
}

static item *pop(void)
{
    quern__job job;
    quern__deque_slot *slot = quern__deque_pop(deque);
    if (slot == NULL) return NULL;
    quern__deque_read_slot(slot, &job);
    return item_of(&job);
}

static item *steal(void)
{
    quern__job job;
    return quern__deque_steal(deque, &job) ? item_of(&job) : NULL;
}

/* ------------------------------------------------------------------------------------------ one thread */

Test(deque, starts_empty)
{
    cr_assert(quern__deque_looks_empty(deque));
    cr_assert_null(pop());
    cr_assert_null(steal());
    cr_assert(quern__deque_looks_empty(deque));
}

Test(deque, owner_pops_the_newest)
{
    for (uint32_t i = 0; i < 10; i++)
        push(i);
    cr_assert_not(quern__deque_looks_empty(deque));
    for (uint32_t i = 10; i-- != 0;)
        cr_assert_eq(pop(), &items[i], "item %u", i);
    cr_assert_null(pop());
}

Test(deque, thief_steals_the_oldest)
{
    for (uint32_t i = 0; i < 10; i++)
        push(i);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert_eq(steal(), &items[i], "item %u", i);
    cr_assert_null(steal());
}

Test(deque, pop_and_steal_meet_in_the_middle)
{
    for (uint32_t i = 0; i < 3; i++)
        push(i);
    cr_assert_eq(steal(), &items[0]);
    cr_assert_eq(pop(), &items[2]);
    cr_assert_eq(pop(), &items[1]);
    cr_assert_null(pop());
    cr_assert_null(steal());
    push(7);
    cr_assert_eq(steal(), &items[7]);
}

Test(deque, refuses_more_than_its_capacity)
{
    for (uint32_t i = 0; i < CAPACITY; i++)
        push(i);
    cr_assert_not(try_push(CAPACITY));
    cr_assert_eq(steal(), &items[0]);
    push(CAPACITY);
    cr_assert_not(try_push(CAPACITY + 1));
    for (uint32_t i = CAPACITY; i != 0; i--)
        cr_assert_eq(pop(), &items[i], "item %u", i);
    cr_assert_null(pop());
}

Test(deque, goes_around_its_ring)
{
    uint32_t pushed = 0, stolen = 0;
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < CAPACITY - 100; i++)
            push(pushed++ % ITEM_COUNT);
        for (uint32_t i = 0; i < CAPACITY - 100; i++)
            cr_assert_eq(steal(), &items[stolen++ % ITEM_COUNT], "item %u", stolen);
        cr_assert_null(pop());
    }
}

Test(deque, works_without_thieves)
{
    quern__deque_init(deque, true);
    cr_assert_null(pop());
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < CAPACITY; i++)
            push(i);
        cr_assert_not(try_push(CAPACITY));
        for (uint32_t i = CAPACITY; i-- != 0;)
            cr_assert_eq(pop(), &items[i], "item %u", i);
        cr_assert_null(pop());
    }
}

/* A thief may require a scope or a minimal index. */
Test(deque, thief_requires_scope_or_index)
{
    quern__job job;
    cr_assert_not(quern__deque_steal_for(deque, &items[0], 0, NULL, &job));
    for (uint32_t i = 0; i < 4; i++)
        push(i);
    cr_assert_not(quern__deque_steal_for(deque, &items[1], INT64_MAX, NULL, &job));
    cr_assert_not(quern__deque_steal_for(deque, NULL, 1, NULL, &job));
    cr_assert(quern__deque_steal_for(deque, &items[0], INT64_MAX, NULL, &job));
    cr_assert_eq(item_of(&job), &items[0]);
    cr_assert(quern__deque_steal_for(deque, NULL, 1, NULL, &job));
    cr_assert_eq(item_of(&job), &items[1]);
    cr_assert_eq(steal(), &items[2]);
}

/* A wait for another scope forbids the job, although the scope or the index argument would allow it. */
Test(deque, closed_job_is_stolen_only_in_wait_for_its_scope)
{
    const void *closed = quern__scope_close(&items[0]);
    quern__job job = {.scope = closed, .target = &items[0]};
    cr_assert(quern__deque_push(deque, &job, 0));
    cr_assert_not(quern__deque_steal_for(deque, closed, INT64_MIN, NULL, &job));
    cr_assert_not(quern__deque_steal_for(deque, closed, INT64_MIN, &items[1], &job));
    cr_assert_not(quern__deque_steal_for(deque, NULL, INT64_MIN, quern__scope_close(&items[1]), &job));
    cr_assert(quern__deque_steal_for(deque, closed, INT64_MAX, closed, &job));
    cr_assert_eq(job.target, &items[0]);
}

/* A worker waits for the same address if it waits for the counter of a graph, and for any scope if it has
 * no closed job on its stack. */
Test(deque, closed_job_is_stolen_for_same_address_or_any_scope)
{
    const void *closed = quern__scope_close(&items[0]);
    const void *const awaited[] = {&items[0], QUERN__ANY_SCOPE};
    for (size_t i = 0; i < sizeof awaited / sizeof awaited[0]; i++) {
        quern__job job = {.scope = closed, .target = &items[0]};
        cr_assert(quern__deque_push(deque, &job, 0));
        cr_assert(quern__deque_steal_for(deque, &items[0], INT64_MAX, awaited[i], &job));
        cr_assert_eq(job.target, &items[0]);
    }
}

static item *take_at(int64_t index)
{
    const quern__job placeholder = {.target = PLACEHOLDER};
    quern__job job;
    return quern__deque_take_at(deque, index, &placeholder, &job) ? item_of(&job) : NULL;
}

Test(deque, a_job_is_taken_from_between_others)
{
    for (uint32_t i = 0; i < 4; i++)
        push(i);
    cr_assert_eq(take_at(2), &items[2]);
    cr_assert_eq(take_at(0), &items[0]);
    cr_assert_eq(quern__deque_bottom(deque), 4);
    cr_assert_eq(pop(), &items[3]);
    cr_assert_eq(pop(), PLACEHOLDER);
    cr_assert_eq(steal(), &items[1]);
    cr_assert_null(steal());
}

Test(deque, a_stolen_job_is_not_taken_again)
{
    for (uint32_t i = 0; i < 4; i++)
        push(i);
    cr_assert_eq(steal(), &items[0]);
    cr_assert_eq(steal(), &items[1]);
    cr_assert_null(take_at(0));
    cr_assert_null(take_at(1));
    cr_assert_eq(take_at(3), &items[3]);
    cr_assert_eq(steal(), &items[2]);
    cr_assert_eq(steal(), PLACEHOLDER);
    cr_assert_null(pop());
}

/* ----------------------------------------------------------------------------------- owner and thieves */

static _Atomic bool is_over;

static void take(item *taken)
{
    if (taken == NULL || taken == PLACEHOLDER) return;
    cr_expect(taken->payload == (uint32_t)(taken - items) + 1, "item %td", taken - items);
    atomic_fetch_add_explicit(&taken->taken_count, 1, memory_order_relaxed);
}

static void *steal_until_over(void *argument)
{
    while (!atomic_load(&is_over) || !quern__deque_looks_empty(deque))
        take(steal());
    return NULL;
}

/* The owner pushes in bursts of 1 to burst_count jobs and removes about as many, also from their middle. The
 * last item is the placeholder. */
static void push_all(uint32_t burst_count)
{
    uint32_t next = 0, burst = 1;
    while (next < ITEM_COUNT - 1) {
        for (uint32_t i = 0; i < burst && next < ITEM_COUNT - 1; i++, next++) {
            items[next].payload = next + 1;
            if (!try_push(next)) take(&items[next]);
        }
        if (!quern__deque_looks_empty(deque)) take(take_at(quern__deque_bottom(deque) - 1 - burst / 2));
        for (uint32_t i = 0; i < burst; i++)
            take(pop());
        burst = burst % burst_count + 1;
    }
}

static void run_owner_and_thieves(uint32_t burst_count)
{
    pthread_t thieves[THIEF_COUNT];
    atomic_store(&is_over, false);
    for (uint32_t i = 0; i < THIEF_COUNT; i++)
        cr_assert_eq(pthread_create(&thieves[i], NULL, steal_until_over, NULL), 0);
    push_all(burst_count);
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < THIEF_COUNT; i++)
        pthread_join(thieves[i], NULL);
    for (uint32_t i = 0; i < ITEM_COUNT - 1; i++)
        cr_assert_eq(atomic_load(&items[i].taken_count), 1u, "item %u was taken %u times", i,
                     atomic_load(&items[i].taken_count));
}

Test(deque, last_item_is_removed_once)
{
    run_owner_and_thieves(1);
}

Test(deque, every_item_is_removed_once)
{
    run_owner_and_thieves(50);
}

Test(deque, every_item_is_removed_once_from_a_full_deque)
{
    run_owner_and_thieves(2 * CAPACITY);
}

/* --------------------------------------------------------------------------------------------- parking */

TestSuite(parker, .timeout = 120);

Test(parker, keeps_one_permit)
{
    quern__parker parker;
    cr_assert(quern__parker_init(&parker));
    cr_assert_not(quern__parker_has_permit(&parker));
    quern__parker_give(&parker);
    quern__parker_give(&parker);
    cr_assert(quern__parker_has_permit(&parker));
    quern__parker_take(&parker);
    cr_assert_not(quern__parker_has_permit(&parker));
    quern__parker_deinit(&parker);
}

static bool is_ready;
static quern__mutex ready_mutex = QUERN__MUTEX_INIT;
static quern__condition ready;

static void *get_ready(void *argument)
{
    quern__thread_sleep(20000000);
    quern__mutex_lock(&ready_mutex);
    is_ready = true;
    quern__condition_broadcast(&ready);
    quern__mutex_unlock(&ready_mutex);
    return argument;
}

/* Without a time, a wait of 20 ms may wake up early by itself a few times, but does not ask all the time. */
Test(parker, a_wait_for_a_condition_ends_at_its_time_or_when_woken)
{
    pthread_t thread;
    uint32_t wait_count = 0;
    cr_assert(quern__condition_init(&ready));
    quern__mutex_lock(&ready_mutex);
    const uint64_t until_ns = quern__clock_ns() + 10000000;
    while (quern__clock_ns() < until_ns)
        quern__condition_wait(&ready, &ready_mutex, until_ns);
    cr_assert_eq(pthread_create(&thread, NULL, get_ready, NULL), 0);
    for (; !is_ready; wait_count++)
        quern__condition_wait(&ready, &ready_mutex, 0);
    quern__mutex_unlock(&ready_mutex);
    pthread_join(thread, NULL);
    quern__condition_deinit(&ready);
    cr_assert_lt(wait_count, 100u);
}

typedef struct ping_pong {
    quern__parker parkers[2];
    uint32_t ball; /* plain: a permit publishes it */
} ping_pong;

static void *return_balls(void *argument)
{
    ping_pong *game = argument;
    for (uint32_t i = 0; i < 2000; i++) {
        quern__parker_take(&game->parkers[1]);
        game->ball++;
        quern__parker_give(&game->parkers[0]);
    }
    return NULL;
}

Test(parker, permit_publishes_memory)
{
    ping_pong game = {.ball = 0};
    cr_assert(quern__parker_init(&game.parkers[0]) && quern__parker_init(&game.parkers[1]));
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, return_balls, &game), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        game.ball++;
        quern__parker_give(&game.parkers[1]);
        quern__parker_take(&game.parkers[0]);
        cr_assert_eq(game.ball, 2 * i + 2);
    }
    pthread_join(thread, NULL);
    quern__parker_deinit(&game.parkers[0]);
    quern__parker_deinit(&game.parkers[1]);
}
