/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Waits for any of several counters, and waits with a time limit (sched/jobs/wait.c). Time may
 * advance at any moment. Checked: the result of a wait is true, and earlier writes are visible; after its
 * return no thread uses its links, which are freed; other links in the lists fire once. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter counters[2];
static quern_counter *const addresses[] = {&counters[0], &counters[1]};
static int written[2]; /* plain: a missing release or acquire is a race */

static void start(void *(*entry)(void *argument), uintptr_t number)
{
    pthread_create(&threads[thread_count++], NULL, entry, (void *)number);
}

static void join_all(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void set_up_limits(bool is_entered)
{
    set_up(2);
    if (is_entered) atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern_counter_hold(&counters[0]);
    quern_counter_hold(&counters[1]);
}

static void *release(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    written[number] = 1;
    quern__counter_finish(&counters[number], 1, NULL);
    return NULL;
}

static void *let_time_pass(void *argument)
{
    atomic_store_explicit(&model_time, 1, memory_order_relaxed);
    return argument;
}

typedef struct own_wait {
    job_counter_wait wait;
    quern__link links[2];
} own_wait;

static own_wait *begin(uint32_t count, uint64_t until_ns)
{
    own_wait *own = malloc(sizeof *own);
    begin_wait(&own->wait, addresses, own->links, count);
    own->wait.until_ns = until_ns;
    return own;
}

static void end(own_wait *own)
{
    uint32_t index = find_done(&own->wait);
    assert(index != own->wait.count || atomic_load_explicit(&model_time, memory_order_relaxed) == 1);
    assert(index == own->wait.count || written[index] == 1);
    free(own);
}

/* Like a job of worker 1, without the search for jobs, of which there are none. */
static void *sleep_inside(void *argument)
{
    own_wait *own = argument;
    quern__wait wait = make_wait(&own->wait);
    announce(&wait, &workers[1]);
    while (!is_over(&wait))
        quern__worker_park(&workers[1], wait.until_ns);
    remove_links(&own->wait, &pool, &workers[1]);
    end(own);
    return NULL;
}

static void *wait_with_all(void *argument)
{
    own_wait *own = argument;
    quern__current_worker = &workers[1];
    own_index_or_0 = 1;
    wait_inside(&workers[1], &own->wait);
    end(own);
    return NULL;
}

static void *sleep_outside_the_pool(void *argument)
{
    own_wait *own = argument;
    quern__current_worker = NULL;
    wait_outside(&pool, &own->wait);
    end(own);
    return NULL;
}

static quern__node continuation;
static quern__job submitted;

static void add_continuation(void)
{
    quern_counter *counter = &counters[0];
    continuation.job.scope = &submitted;
    continuation.queue = QUERN__QUEUE_NORMAL;
    continuation.job.run = run_placeholder;
    continuation.jobs = &pool;
    quern__node_submit_after(&continuation, &counter, 1, NULL);
}

static void *add_late(void *argument)
{
    add_continuation();
    return argument;
}

/* The continuation is in the queue, or in the deque of the sleeper if that was the last to hold the
 * list. */
static void check_continuation(void)
{
    const quern__node *queued = pool.queues.queues[QUERN__QUEUE_NORMAL].first;
    bool is_queued = queued == &continuation && queued->next == NULL;
    assert(is_queued + quern__deque_bottom(&workers[1].deque) == 1);
}

/* Checks that the counters are unlocked and have no links. */
static void check_pending(uint32_t first_pending, uint32_t second_pending)
{
    const uint32_t expected[] = {first_pending, second_pending};
    for (int i = 0; i < 2; i++) {
        assert(atomic_load_explicit(&counters[i].pending, memory_order_relaxed) == expected[i]);
        assert(counters[i].links == NULL);
    }
}

/* The time is up, or the counter reaches zero, or both. */
void limit_one(void)
{
    set_up_limits(false);
    start(sleep_inside, (uintptr_t)begin(1, 1));
    start(release, 0);
    start(let_time_pass, 0);
    join_all();
    check_pending(0, 1);
}

/* Two counters reach zero at the same time. */
void limit_any(void)
{
    set_up_limits(false);
    start(sleep_inside, (uintptr_t)begin(2, 0));
    start(release, 0);
    start(release, 1);
    join_all();
    check_pending(0, 0);
}

/* One of two counters reaches zero; the other one keeps no link. */
void limit_any_of_which_one(void)
{
    set_up_limits(false);
    start(sleep_inside, (uintptr_t)begin(2, 1));
    start(release, 1);
    start(let_time_pass, 0);
    join_all();
    check_pending(1, 0);
}

/* A continuation is in the list when the link is removed, or is added then. */
void limit_with_continuation(void)
{
    set_up_limits(false);
    start(sleep_inside, (uintptr_t)begin(1, 1));
    start(release, 0);
    add_continuation();
    let_time_pass(NULL);
    join_all();
    check_pending(0, 1);
    check_continuation();
}

void limit_with_late_continuation(void)
{
    set_up_limits(false);
    start(sleep_inside, (uintptr_t)begin(1, 1));
    start(release, 0);
    start(add_late, 0);
    let_time_pass(NULL);
    join_all();
    check_pending(0, 1);
    check_continuation();
}

/* A complete wait, with its search for jobs and its announced sleep. */
void limit_inside(void)
{
    set_up_limits(true);
    start(wait_with_all, (uintptr_t)begin(2, 1));
    start(release, 1);
    let_time_pass(NULL);
    join_all();
    check_pending(1, 0);
}

/* An outside thread without an external slot. */
void limit_outside(void)
{
    set_up_limits(true);
    start(sleep_outside_the_pool, (uintptr_t)begin(1, 1));
    start(release, 0);
    let_time_pass(NULL);
    join_all();
    check_pending(0, 1);
}
