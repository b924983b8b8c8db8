/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#define QUERN__JOB_DATA_WORDS 5 /* size of a submitted loop */
#define MODEL_WITH_SUBMITTED_LOOPS
#include "tests/models/pool.h"

#include "sched/jobs/submit_loop.c" /* NOLINT(bugprone-suspicious-include) */

/* Submitted loops (sched/jobs/submit_loop.c), and cancelled loops. No thread waits in a submitted loop:
 * the last worker that leaves puts the loop back into the store and decrements the counter, and offers
 * may outlive the loop that they are for. Checked: when the counter is zero, every item has run once
 * (after a cancel request at most once), and none runs any more; its writes are visible; a loop that is
 * used again has no visitors of its earlier use. */

enum { MAX_ITEMS = 3 };

static pthread_t thief;
/* plain: an item that runs twice at the same time, or late, is a race */
static int run_counts[2][MAX_ITEMS];
static quern_counter counters[2];
static quern_cancel cancel;

static void run_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    int *counts = argument;
    (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        counts[i]++;
}

/* Steals one offer and runs it. */
static void *take_offer(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    quern__current_worker = worker;
    if (quern__deque_steal(&workers[0].deque, &job)) quern__worker_run_job(worker, &job);
    quern__worker_flush_finished(worker);
    return NULL;
}

static void set_up_loops(void)
{
    set_up(2);
    quern__current_worker = &workers[0];
    quern__submitted_loop *stored = malloc(sizeof *stored + 2 * sizeof(quern__loop_slot));
    atomic_init(&stored->state, 0);
    stored->next_free = NULL;
    pool.free_loops = stored;
}

/* Begins a shared loop like the worker that runs the submitted job. */
static void begin_shared(uint32_t number, uint32_t item_count, const quern_cancel *asked)
{
    static quern__sharing sharing;
    sharing.rest.function = run_items;
    sharing.rest.user_data = run_counts[number];
    sharing.rest.count = item_count;
    sharing.rest.grain = 1;
    sharing.rest.cancel = asked;
    sharing.wake = true;
    quern__job job = {.scope = &counters[number]};
    job.data[QUEUE] = (uintptr_t)QUERN__QUEUE_NORMAL << QUEUE_SHIFT;
    const quern__named_work work = {.name = NULL};
    atomic_fetch_add_explicit(&counters[number].pending, 1, memory_order_relaxed);
    const bool is_stored = share_stored(&job, &workers[0], &sharing, &work, NULL);
    assert(is_stored);
    quern__worker_flush_finished(&workers[0]);
}

static void wait_for(uint32_t number)
{
    AWAIT(quern_counter_is_done(&counters[number]));
}

static void check(uint32_t number, uint32_t item_count)
{
    for (uint32_t i = 0; i < item_count; i++)
        assert(run_counts[number][i] == 1);
}

static void run_one(uint32_t item_count)
{
    set_up_loops();
    pthread_create(&thief, NULL, take_offer, &workers[1]);
    begin_shared(0, item_count, NULL);
    wait_for(0);
    check(0, item_count);
    pthread_join(thief, NULL);
    assert((uint32_t)atomic_load_explicit(&pool.free_loops->state, memory_order_relaxed) == 0);
}

void submitted_two_items(void)
{
    run_one(2);
}

void submitted_three_items(void)
{
    run_one(3);
}

/* The thief may run an offer of the first loop while the second loop runs in the same memory. */
void submitted_again(void)
{
    set_up_loops();
    pthread_create(&thief, NULL, take_offer, &workers[1]);
    begin_shared(0, 2, NULL);
    wait_for(0);
    check(0, 2);
    begin_shared(1, 2, NULL);
    wait_for(1);
    check(1, 2);
    pthread_join(thief, NULL);
}

static void *ask(void *argument)
{
    quern_cancel_request(argument);
    return NULL;
}

/* The items are read after the counter has reached zero. An item that runs late is a race. */
void submitted_cancelled(void)
{
    pthread_t asking;
    int count = 0;
    set_up_loops();
    pthread_create(&thief, NULL, take_offer, &workers[1]);
    pthread_create(&asking, NULL, ask, &cancel);
    begin_shared(0, 2, &cancel);
    wait_for(0);
    for (uint32_t i = 0; i < 2; i++) {
        assert(run_counts[0][i] <= 1);
        count += run_counts[0][i];
    }
    assert(count == 2 || quern_cancel_is_requested(&cancel));
    pthread_join(thief, NULL);
    pthread_join(asking, NULL);
}

/* The waiting call reports a cancelled loop if and only if items did not run. */
void submitted_cancelled_wait(void)
{
    pthread_t asking;
    int count = 0;
    static quern__range range;
    range.function = run_items;
    range.user_data = run_counts[0];
    range.count = 2;
    range.grain = 1;
    range.cancel = &cancel;
    set_up_loops();
    pthread_create(&thief, NULL, take_offer, &workers[1]);
    pthread_create(&asking, NULL, ask, &cancel);
    bool is_whole = quern__range_share(&workers[0], &range, true, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        assert(run_counts[0][i] <= 1);
        count += run_counts[0][i];
    }
    assert(is_whole == (count == 2));
    pthread_join(thief, NULL);
    pthread_join(asking, NULL);
}
