/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/model.h"

#include "sched/jobs/deque.c" /* NOLINT(bugprone-suspicious-include) */

/* The deque: an owner that pushes and pops, and thieves. Checked: each job is removed once and
 * completely, by one thread; that thread sees what the pusher wrote; no job is lost. */

enum { JOB_COUNT = 4, MAX_THIEVES = 2 };

static quern__deque deque;
static int written[JOB_COUNT + 1]; /* plain: a missing release or acquire is a race */
static _Atomic int taken_counts[JOB_COUNT + 1];
static int pushed_count;
static pthread_t thieves[MAX_THIEVES];
static int thief_count;
static char scopes[2][2]; /* two even addresses */

static void push(int number, const void *scope)
{
    written[number] = number;
    quern__job job = {
        .scope = scope, .target = (void *)(uintptr_t)number, .data = {(uintptr_t)number + JOB_COUNT}};
    if (quern__deque_push(&deque, &job, QUERN__JOB_DATA_WORDS)) pushed_count++;
}

static void take(const quern__job *job)
{
    int number = (int)(uintptr_t)job->target;
    if (number == 0) return; /* the placeholder of a job that was taken from between others */
    assert(number >= 1 && number <= JOB_COUNT);
    assert(job->data[0] == (uintptr_t)number + JOB_COUNT); /* the words belong to one job */
    assert(written[number] == number);
    assert(atomic_fetch_add_explicit(&taken_counts[number], 1, memory_order_relaxed) == 0);
}

static bool pop(void)
{
    quern__job job;
    quern__deque_slot *slot = quern__deque_pop(&deque);
    if (slot == NULL) return false;
    quern__deque_read_slot(slot, &job);
    take(&job);
    return true;
}

static void *steal_once(void *argument)
{
    quern__job job;
    (void)argument;
    if (quern__deque_steal(&deque, &job)) take(&job);
    return NULL;
}

static void *steal_twice(void *argument)
{
    steal_once(argument);
    return steal_once(argument);
}

/* The thief must not steal a job of another closed scope. */
static void *steal_for_scope(void *argument)
{
    for (int i = 0; i < 2; i++) {
        quern__job job;
        if (!quern__deque_steal_for(&deque, argument, INT64_MAX, argument, &job)) continue;
        assert(job.scope == argument);
        take(&job);
    }
    return NULL;
}

static void start(void *(*thief)(void *argument), void *argument)
{
    pthread_create(&thieves[thief_count++], NULL, thief, argument);
}

static void end(void)
{
    int taken_count = 0;
    for (int i = 0; i < thief_count; i++)
        pthread_join(thieves[i], NULL);
    while (pop()) {
    }
    for (int i = 1; i <= JOB_COUNT; i++)
        taken_count += atomic_load_explicit(&taken_counts[i], memory_order_relaxed);
    assert(taken_count == pushed_count);
}

/* Pops compete with thieves, above the last job and for it. */
void deque_one_thief(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    push(1, NULL);
    push(2, NULL);
    pop();
    push(3, NULL);
    pop();
    pop();
    end();
}

void deque_two_thieves(void)
{
    quern__deque_init(&deque, false);
    start(steal_once, NULL);
    start(steal_once, NULL);
    push(1, NULL);
    push(2, NULL);
    pop();
    push(3, NULL);
    pop();
    end();
}

/* The third push finds the deque full, or uses the slot of a stolen job. */
void deque_full(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    push(1, NULL);
    push(2, NULL);
    push(3, NULL);
    pop();
    push(4, NULL);
    pop();
    end();
}

/* The last job, the empty deque, and one more job. */
void deque_last(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    push(1, NULL);
    pop();
    pop();
    push(2, NULL);
    end();
}

void deque_last_two_thieves(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    start(steal_twice, NULL);
    push(1, NULL);
    pop();
    push(2, NULL);
    end();
}

static void take_at(int64_t index)
{
    quern__job job;
    const quern__job placeholder = {.target = NULL};
    if (quern__deque_take_at(&deque, index, &placeholder, &job)) take(&job);
}

/* The owner takes the newest job, or the oldest one that is left, and then the oldest one. */
void deque_taken_at(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    push(1, NULL);
    push(2, NULL);
    take_at(1);
    take_at(0);
    end();
}

/* The owner takes the job between two others, of which thieves steal the older one and maybe those after it. These
 * scenarios need room for all jobs (see run_models.sh). */
void deque_taken_middle(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    push(1, NULL);
    push(2, NULL);
    push(3, NULL);
    take_at(1);
    pop();
    push(4, NULL);
    end();
}

void deque_taken_two_thieves(void)
{
    quern__deque_init(&deque, false);
    start(steal_twice, NULL);
    start(steal_once, NULL);
    push(1, NULL);
    push(2, NULL);
    push(3, NULL);
    take_at(1);
    end();
}

void deque_closed_scopes(void)
{
    const void *closed[2] = {quern__scope_close(scopes[0]), quern__scope_close(scopes[1])};
    quern__deque_init(&deque, false);
    start(steal_for_scope, (void *)(uintptr_t)closed[0]);
    push(1, closed[0]);
    push(2, closed[1]);
    pop();
    push(3, closed[0]);
    end();
}

void deque_alone(void)
{
    quern__deque_init(&deque, true);
    push(1, NULL);
    push(2, NULL);
    push(3, NULL);
    assert(pop() && pop() && !pop());
    push(4, NULL);
    end();
}
