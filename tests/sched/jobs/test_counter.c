/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

TestSuite(counter, .timeout = 120);

/* ----------------------------------------------------------------------------- continuations and holds */

/* A diamond: 0, then 1 and 2, then 3. */
Test(counter, continuations_start_when_their_counter_is_done)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t round = 0; round < 300; round++) {
            quern_counter first = {0}, middle = {0}, last = {0};
            ticket tickets[4];
            quern_job_def defs[4];
            quern_counter *counters[] = {&first, &middle, &middle, &last};
            atomic_store(&of.order, 0);
            for (uint32_t i = 0; i < 4; i++) {
                tickets[i] = (ticket){&of, i};
                defs[i] = job_of(note_place, &tickets[i], counters[i]);
                defs[i].priority = (quern_priority)((round + i) % 3);
            }
            quern_counter_hold(&first);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[1], &first), QUERN_OK);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[2], &first), QUERN_OK);
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &defs[3], &middle), QUERN_OK);
            cr_assert_eq(quern_jobs_submit(of.jobs, &defs[0]), QUERN_OK);
            cr_assert_eq(quern_counter_release(of.jobs, &first), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &last), QUERN_OK);
            cr_assert_eq(of.places[0], 1u);
            cr_assert_eq(of.places[1] + of.places[2], 5u);
            cr_assert_eq(of.places[3], 4u);
        }
        quern_jobs_destroy(of.jobs);
    }
}

Test(counter, a_continuation_of_a_finished_counter_starts_at_once)
{
    board of = {.jobs = open_pool(2)};
    quern_counter done = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &done), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

static void *release_later(void *argument)
{
    board *of = argument;
    sleep_ms(10);
    of->places[0] = 7;
    cr_expect(quern_counter_release(of->jobs, &of->counter) == QUERN_OK);
    return NULL;
}

Test(counter, a_hold_can_be_released_by_any_thread)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        pthread_t thread;
        quern_counter_hold(&of.counter);
        cr_assert_eq(pthread_create(&thread, NULL, release_later, &of), 0);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(of.places[0], 7u);
        pthread_join(thread, NULL);
        quern_jobs_destroy(of.jobs);
    }
}

Test(counter, a_job_cannot_wait_for_its_own_counter)
{
    board of = {.jobs = open_pool(2)};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, &of.counter));
    cr_assert(quern_counter_is_done(&of.counter));
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

/* ----------------------------------------------------------------------------------------------- waits */

/* Each job waits for its own two jobs, with a counter on its stack. */
static void wait_for_two(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_counter counter = {0};
    if (mine.number != 0) {
        ticket child = {mine.of, mine.number - 1};
        quern_job_def def = job_of(wait_for_two, &child, &counter);
        def.priority = (quern_priority)(mine.number % 3);
        for (uint32_t i = 0; i < 2; i++)
            cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
        cr_expect(quern_jobs_wait(mine.of->jobs, &counter) == QUERN_OK);
    }
    count_run(&mine, worker_index);
}

Test(counter, waits_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 1; i <= 5; i++) {
            ticket root = {&of, 9};
            cr_assert_eq(quern_jobs_run(of.jobs, wait_for_two, &root), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), i * 1023);
        }
        quern_jobs_destroy(of.jobs);
    }
}

/* --------------------------------------------------------------------------- a wait helps with its own */

/* The jobs of the other counter were submitted first, so a thief finds them first; they end only after the
 * wait. */
Test(counter, a_wait_does_not_run_other_work)
{
    board of = {.jobs = open_pool(3)};
    quern_counter slow = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(block_until_gate, &mine, &slow);
    for (uint32_t i = 0; i < 20; i++) {
        def.priority = (quern_priority)(i % 2 == 0 ? QUERN_PRIORITY_LOW : QUERN_PRIORITY_HIGH);
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    }
    while (atomic_load(&of.order) < 2)
        sleep_ms(1);
    submit_many(&of, 50, QUERN_PRIORITY_HIGH);
    submit_many(&of, 50, QUERN_PRIORITY_NORMAL);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 100u);
    cr_assert_eq(atomic_load(&of.order), 2u, "the wait took a job that it did not wait for");
    open_gate(&of);
    cr_assert_eq(quern_jobs_wait(of.jobs, &slow), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 120u);
    quern_jobs_destroy(of.jobs);
}

static void wait_for_other(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect(quern_jobs_wait(mine->of->jobs, &mine->of->counter) == QUERN_OK);
    count_run(mine, worker_index);
}

/* Each worker waits for a job that has not begun: one of them has to take it. */
Test(counter, the_last_waiting_worker_takes_remaining_jobs)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        quern_counter waiting = {0};
        ticket mine = {&of, 0};
        quern_counter_hold(&of.counter);
        quern_job_def def = job_of(wait_for_other, &mine, &waiting);
        for (uint32_t i = 0; i < 12; i++)
            cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        sleep_ms(5);
        def = job_of(count_run, &mine, &of.counter);
        def.priority = QUERN_PRIORITY_LOW;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_counter_release(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &waiting), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 13u);
        quern_jobs_destroy(of.jobs);
    }
}

/* ------------------------------------------------------------------------------------ deferred changes */

/* The worker helps with a loop during its wait. Its only item needs the counter to be at zero. */
static bool help_that_looks(const quern__wait *wait, quern__worker *worker)
{
    board *of = wait->target;
    if (atomic_load(&of->run_count) == 0 || atomic_load(&of->gate)) return false;
    cr_expect(quern_counter_is_done(&of->counter));
    open_gate(of);
    return true;
}

static bool gate_is_open(const quern__wait *wait)
{
    board *of = wait->target;
    return atomic_load(&of->gate);
}

static void wait_with_help(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    quern__wait wait = {.scope = of, .target = of, .is_done = gate_is_open, .help = help_that_looks};
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    quern__worker_wait(quern__current_worker, &wait);
}

Test(counter, helping_wait_counts_all_finished_jobs)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, wait_with_help, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

enum { CHAIN_STEPS = 30 };

/* Workers search for four seconds before they do anything else. If a step had to wait for that, the test
 * would time out. */
Test(counter, a_worker_takes_a_continuation_before_it_searches, .timeout = 60)
{
    board of = {0};
    quern_jobs_def def = {.thread_count = 2, .spin_ns = UINT32_MAX};
    quern_counter steps[CHAIN_STEPS + 1] = {0};
    ticket mine = {&of, 0};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    quern_counter_hold(&steps[0]);
    for (uint32_t i = 0; i < CHAIN_STEPS; i++) {
        quern_job_def job = job_of(count_run, &mine, &steps[i + 1]);
        cr_assert_eq(quern_jobs_submit_after(of.jobs, &job, &steps[i]), QUERN_OK);
    }
    cr_assert_eq(quern_counter_release(of.jobs, &steps[0]), QUERN_OK);
    while (!quern_counter_is_done(&steps[CHAIN_STEPS]))
        sleep_ms(1);
    cr_assert_eq(atomic_load(&of.run_count), (uint32_t)CHAIN_STEPS);
    quern_jobs_destroy(of.jobs);
}

enum { NEST_DEPTH = 150 };

/* Waits for a continuation of the jobs that it submits. The wait does not know about these jobs. */
static void nest(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_counter inner = {0}, last = {0};
    atomic_fetch_add(&mine.of->run_count, 1);
    if (mine.number-- == 0) return;
    quern_job_def job = job_of(nest, &mine, &inner), end = job_of(count_run, &mine, &last);
    job.priority = (quern_priority)(mine.number % 3);
    quern_counter_hold(&inner);
    cr_expect(quern_jobs_submit(mine.of->jobs, &job) == QUERN_OK);
    cr_expect(quern_jobs_submit_after(mine.of->jobs, &end, &inner) == QUERN_OK);
    cr_expect(quern_counter_release(mine.of->jobs, &inner) == QUERN_OK);
    cr_expect(quern_jobs_wait(mine.of->jobs, &last) == QUERN_OK);
}

Test(counter, waits_for_continuations_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket whole = {&of, NEST_DEPTH};
        quern_job_def job = job_of(nest, &whole, &of.counter);
        cr_assert_eq(quern_jobs_submit(of.jobs, &job), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 2 * NEST_DEPTH + 1u);
        quern_jobs_destroy(of.jobs);
    }
}

/* --------------------------------------------------------------- jobs submitted further down the stack */

typedef struct burrow {
    quern_jobs *jobs;
    quern_counter first, second, inner, outer;
    _Atomic uint32_t forked_count;
    _Atomic uint32_t stage;
} burrow;

static void wait_and_fork(void *argument, uint32_t worker_index)
{
    burrow *of = *(burrow **)argument;
    cr_expect(quern_jobs_wait(of->jobs, &of->second) == QUERN_OK);
    uint32_t begun = 0;
    atomic_compare_exchange_strong(&of->stage, &begun, 1);
    while (atomic_load(&of->stage) != 2)
        sleep_ms(1);
    for (uint32_t i = 0; i < 100; i++) {
        quern_fork fork;
        cr_expect(quern_jobs_fork(of->jobs, &fork, count_plain, (void *)&of->forked_count) == QUERN_OK);
        cr_expect(quern_jobs_join(of->jobs, &fork) == QUERN_OK);
    }
}

static void submit_and_wait_inside(void *argument, uint32_t worker_index)
{
    burrow *of = *(burrow **)argument;
    quern_job_def def = {
        .function = rest, .payload = &of, .payload_bytes = sizeof of, .counter = &of->first};
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    def.counter = &of->second;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    def.function = wait_and_fork;
    def.counter = &of->inner;
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &of->inner) == QUERN_OK);
}

/* Runs on the other worker. */
static void submit_burrow(burrow *of)
{
    quern_job_def def = {.function = submit_and_wait_inside,
                         .payload = &of,
                         .payload_bytes = sizeof of,
                         .counter = &of->outer,
                         .priority = QUERN_PRIORITY_HIGH};
    cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

/* Keeps the other worker busy, without helping. */
static void watch_burrow(void *argument, uint32_t worker_index)
{
    burrow *of = argument;
    atomic_store(&of->stage, 2);
    for (uint32_t i = 0; i < 20000 && !quern_counter_is_done(&of->outer); i++)
        sleep_ms(1);
    cr_expect(quern_counter_is_done(&of->outer), "a job does not see what it has forked");
}

Test(counter, a_job_finds_its_forks_after_a_wait_that_took_older_jobs)
{
    burrow of = {.jobs = open_pool(2)};
    submit_burrow(&of);
    while (atomic_load(&of.stage) != 1)
        sleep_ms(1);
    cr_assert_eq(quern_jobs_run(of.jobs, watch_burrow, &of), QUERN_OK);
    cr_assert_eq(atomic_load(&of.forked_count), 100u);
    quern_jobs_destroy(of.jobs);
}

/* The other worker is always busy. The awaited job is the waiting worker's own newest job, pushed by a job
 * further down on its stack. */
Test(counter, a_wait_finds_awaited_jobs_pushed_further_down_its_stack)
{
    burrow of = {.jobs = open_pool(2)};
    submit_burrow(&of);
    cr_assert_eq(quern_jobs_run(of.jobs, watch_burrow, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}
