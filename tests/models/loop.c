/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Loops that several workers share (sched/jobs/loop.c): slots, claims and thefts of items, offers, and
 * the wait of the caller. Checked: when the caller returns, every item has run once and its writes are
 * visible; no thread accesses the loop afterwards, because it is on the caller's stack; the wait ends. */

enum { MAX_ITEMS = 4, MAX_THREADS = 2 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static int run_counts[MAX_ITEMS]; /* plain: an item that runs twice at the same time is a race */

static void start(void *(*entry)(void *argument), void *argument)
{
    pthread_create(&threads[thread_count++], NULL, entry, argument);
}

static void join_all(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void run_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)argument, (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        run_counts[i]++;
}

static void check(uint32_t item_count)
{
    for (uint32_t i = 0; i < item_count; i++)
        assert(run_counts[i] == 1);
}

/* Steals one offer, from any worker, and runs it. */
static void *take_offer(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    quern__current_worker = worker;
    for (uint32_t index = 0; index < pool.thread_count; index++) {
        if (index == worker->index || !quern__deque_steal(&workers[index].deque, &job)) continue;
        quern__worker_run_job(worker, &job);
        break;
    }
    return NULL;
}

static void run_loop(uint32_t item_count, uint32_t grain, uint32_t thief_count)
{
    const quern__range range = {.function = run_items, .count = item_count, .grain = grain};
    set_up(thief_count + 1);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    for (uint32_t index = 1; index <= thief_count; index++)
        start(take_offer, &workers[index]);
    quern__range_share(&workers[0], &range, true, NULL);
    check(item_count);
    join_all();
}

void loop_two_items(void)
{
    run_loop(2, 1, 1);
}

void loop_three_items(void)
{
    run_loop(3, 1, 1);
}

void loop_automatic_grain(void)
{
    run_loop(4, 0, 1);
}

void loop_two_thieves(void)
{
    run_loop(2, 1, 2);
}

/* ------------------------------------------------------------------------------------------- help */

static awaited_loop awaited;
static quern__loop_slot slots[2];

/* Runs an offer that the worker has already stolen. */
static void *run_stolen_offer(void *argument)
{
    quern__worker *worker = argument;
    quern__job job = {.run = run_awaited_offer, .scope = &awaited.loop, .target = &awaited.loop};
    quern__current_worker = worker;
    quern__worker_run_job(worker, &job);
    return NULL;
}

/* The caller waits, and all items are in another worker's slot. If the caller steals items to help, it
 * must run all that it puts into its own slot: once the other worker has left the loop, no thread looks
 * into that slot. */
void loop_help(void)
{
    const quern__range range = {.function = run_items, .count = 3, .grain = 1};
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    quern__loop_init(&awaited.loop, run_awaited_offer, &awaited.loop, &range, slots, &workers[0]);
    awaited.caller = &workers[0];
    atomic_store_explicit(&slots[0].items, pack(0, 0), memory_order_relaxed);
    atomic_store_explicit(&slots[0].is_owned, true, memory_order_relaxed);
    atomic_store_explicit(&slots[1].items, pack(0, 3), memory_order_relaxed);
    atomic_store_explicit(&awaited.loop.invitation_count, 0, memory_order_relaxed);
    atomic_store_explicit(&awaited.loop.references, 1, memory_order_relaxed);
    start(run_stolen_offer, &workers[1]);
    quern__wait wait = {.scope = &awaited.loop,
                        .target = &awaited.loop,
                        .is_done = all_left,
                        .help = help_loop,
                        .announce = announce_loop};
    quern__worker_wait(&workers[0], &wait);
    check(3);
    join_all();
}
