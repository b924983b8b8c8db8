/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/queue.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

/* The queues of a pool, compared with a list in which each search begins at the first job. */

enum { MOST_JOBS = 60, SCOPES = 4, STEPS = 20000, SEEDS = 20 };

typedef struct known_job {
    quern__queue_index queue;
    const void *scope;
    uintptr_t number;
} known_job;

static quern__queues queues;
static known_job known[MOST_JOBS]; /* in the order of their pushes */
static uint32_t known_count;
static quern_counter counters[SCOPES]; /* their addresses are scopes */

static void run_nothing(quern__job *job, struct quern__worker *worker) {}

static const void *draw_scope(random_source *random)
{
    const uintptr_t scope = (uintptr_t)&counters[random_below(random, SCOPES)];
    return (const void *)(scope | (random_chance(random, 30) ? 1u : 0u)); /* closed, or not */
}

static quern__queue_index draw_queue(random_source *random)
{
    return (quern__queue_index)(QUERN__QUEUE_HIGH + random_below(random, 3));
}

static void push(random_source *random)
{
    static uintptr_t last_number;
    if (known_count == MOST_JOBS) return;
    known_job *pushed = &known[known_count++];
    *pushed =
        (known_job){.queue = draw_queue(random), .scope = draw_scope(random), .number = ++last_number};
    quern__node *node = quern__queues_take_node(&queues);
    cr_assert_not_null(node);
    node->job = (quern__job){.run = run_nothing, .scope = pushed->scope, .data = {pushed->number}};
    node->queue = pushed->queue;
    quern__queues_push(&queues, node);
}

/* Checks that a call has taken the known job with this index. */
static void check_taken(bool has_taken, const quern__job *job, uint32_t index)
{
    cr_assert_eq(has_taken, index < known_count);
    if (!has_taken) return;
    cr_assert_eq(job->data[0], known[index].number);
    memmove(&known[index], &known[index + 1], (--known_count - index) * sizeof *known);
}

static void take_first(random_source *random)
{
    const quern__queue_index queue = draw_queue(random);
    const void *scope = random_chance(random, 70) ? draw_scope(random) : NULL;
    uint32_t index = 0;
    quern__job job;
    while (index < known_count && !(known[index].queue == queue &&
                                    (scope == NULL || quern__scope_matches(known[index].scope, scope))))
        index++;
    check_taken(quern__queues_take(&queues, queue, scope, &job), &job, index);
}

static void take_allowed(random_source *random)
{
    const quern__queue_index queue = draw_queue(random);
    const void *awaited = draw_scope(random);
    uint32_t index = 0;
    quern__job job;
    while (index < known_count &&
           !(known[index].queue == queue && quern__scope_allows(known[index].scope, awaited)))
        index++;
    check_taken(quern__queues_take_allowed(&queues, queue, awaited, &job), &job, index);
}

static void take_newest(random_source *random)
{
    const void *awaited = draw_scope(random);
    uint32_t index = known_count;
    quern__job job;
    while (index > 0 && !quern__scope_allows(known[index - 1].scope, awaited))
        index--;
    check_taken(quern__queues_take_newest(&queues, awaited, &job), &job,
                index > 0 ? index - 1 : known_count);
}

Test(queue, jobs_are_taken_as_from_a_list)
{
    const quern_allocator allocator = quern_allocator_default();
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_source random = {seed};
        cr_assert(quern__queues_init(&queues, &allocator));
        known_count = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            const uint32_t kind = random_below(&random, 100);
            if (kind < 45)
                push(&random);
            else if (kind < 85)
                take_first(&random);
            else if (kind < 93)
                take_allowed(&random);
            else
                take_newest(&random);
        }
        quern__mutex_deinit(&queues.mutex);
        quern__queues_release(&queues);
    }
}
