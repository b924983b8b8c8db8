/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

TestSuite(after, .timeout = 120);

static const uint32_t after_counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 63, QUERN_MAX_AFTER};

typedef struct gates {
    quern_counter counters[QUERN_MAX_AFTER];
    quern_counter *list[QUERN_MAX_AFTER];
} gates;

static void hold_all(gates *of, uint32_t count)
{
    memset((void *)of, 0, sizeof *of);
    for (uint32_t i = 0; i < count; i++) {
        of->list[i] = &of->counters[i];
        quern_counter_hold(of->list[i]);
    }
}

static void submit_after(board *of, quern_job_def *def, quern_counter *const *list, uint32_t count)
{
    def->after = list;
    def->after_count = count;
    cr_assert_eq(quern_jobs_submit(of->jobs, def), QUERN_OK, "%s", quern_error_message());
}

static void release(board *of, quern_counter *counter)
{
    cr_assert_eq(quern_counter_release(of->jobs, counter), QUERN_OK, "%s", quern_error_message());
}

/* ------------------------------------------------------------------------------------- when it begins */

/* The job does not begin before the last release, whatever the order of the releases is. */
static void release_in_turn(board *of, uint32_t count, uint32_t first, uint32_t step)
{
    gates held;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    uint32_t before = atomic_load(&of->run_count);
    hold_all(&held, count);
    submit_after(of, &def, held.list, count);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(!quern_counter_is_done(&of->counter));
        cr_assert_eq(atomic_load(&of->run_count), before);
        release(of, held.list[(first + i * step) % count]);
    }
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of->run_count), before + 1);
}

Test(after, a_job_begins_after_the_last_of_its_counters)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (size_t c = 0; c < QUERN__COUNT_OF(after_counts); c++)
            for (uint32_t first = 0; first == 0 || first < after_counts[c]; first++) {
                uint32_t count = after_counts[c];
                release_in_turn(&of, count, first, 1);
                if (count != 0) release_in_turn(&of, count, first, count - 1); /* in reverse order */
            }
        quern_jobs_destroy(of.jobs);
    }
}

Test(after, counters_at_zero_do_not_count)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        uint32_t run_count = 0;
        for (uint32_t mask = 0; mask < 128; mask++) {
            gates held;
            ticket mine = {&of, 0};
            quern_job_def def = job_of(count_run, &mine, &of.counter);
            hold_all(&held, 7);
            for (uint32_t i = 0; i < 7; i++)
                if ((mask >> i & 1) != 0) release(&of, held.list[i]);
            submit_after(&of, &def, held.list, 7);
            for (uint32_t i = 0; i < 7; i++) {
                if ((mask >> i & 1) != 0) continue;
                cr_assert_eq(atomic_load(&of.run_count), run_count);
                release(&of, held.list[i]);
            }
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), ++run_count);
        }
        quern_jobs_destroy(of.jobs);
    }
}

Test(after, the_same_counter_more_than_once_is_harmless)
{
    board of = {.jobs = open_pool(2)};
    quern_counter held = {0}, done = {0};
    quern_counter *const list[] = {&held, &done, &held, &held, &held, &done};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    quern_counter_hold(&held);
    submit_after(&of, &def, list, 6);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
    release(&of, &held);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

/* A counter that reached zero once counts as finished, even if it is in use again. */
Test(after, each_counter_counts_once)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        gates held;
        ticket mine = {&of, 0};
        quern_job_def def = job_of(count_run, &mine, &of.counter);
        hold_all(&held, 5);
        submit_after(&of, &def, held.list, 5);
        for (uint32_t i = 0; i < 5; i++) {
            cr_assert_eq(atomic_load(&of.run_count), 0u);
            release(&of, held.list[i]);
            quern_counter_hold(held.list[i]);
        }
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.run_count), 1u);
        for (uint32_t i = 0; i < 5; i++)
            release(&of, held.list[i]);
        quern_jobs_destroy(of.jobs);
    }
}

/* A diamond: 0, then 1 and 2, each with a counter of its own, then 3. */
Test(after, writes_of_jobs_are_visible_to_later_jobs)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t round = 0; round < 300; round++) {
            quern_counter counters[4] = {0}, gate = {0};
            quern_counter *const start[] = {&gate}, *const first[] = {&counters[0]};
            quern_counter *const middle[] = {&counters[1], &counters[2]};
            quern_counter *const *after[] = {start, first, first, middle};
            ticket tickets[4];
            atomic_store(&of.order, 0);
            quern_counter_hold(&gate);
            for (uint32_t i = 0; i < 4; i++) {
                tickets[i] = (ticket){&of, i};
                quern_job_def def = job_of(note_place, &tickets[i], &counters[i]);
                def.priority = (quern_priority)((round + i) % 3);
                submit_after(&of, &def, after[i], i == 3 ? 2 : 1);
            }
            release(&of, &gate);
            cr_assert_eq(quern_jobs_wait(of.jobs, &counters[3]), QUERN_OK);
            cr_assert_eq(of.places[0], 1u);
            cr_assert_eq(of.places[1] + of.places[2], 5u);
            cr_assert_eq(of.places[3], 4u);
        }
        quern_jobs_destroy(of.jobs);
    }
}

static void note_caller(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    cr_expect_eq(worker_index, 0u);
    cr_expect(pthread_equal(pthread_self(), mine->of->caller) != 0);
    count_run(mine, worker_index);
}

Test(after, caller_only_jobs_may_wait_for_several_counters)
{
    board of = {.jobs = open_pool(3), .caller = pthread_self()};
    gates held;
    quern_counter last = {0};
    ticket mine = {&of, 0};
    quern_job_def open = job_of(count_run, &mine, &of.counter), def = job_of(note_caller, &mine, &last);
    def.on_worker = QUERN_ON_CALLER;
    hold_all(&held, 4);
    quern_counter *const list[] = {held.list[0], held.list[1], held.list[2], held.list[3], &of.counter};
    submit_after(&of, &def, list, 5);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(quern_jobs_submit(of.jobs, &open), QUERN_OK);
        release(&of, held.list[i]);
    }
    cr_assert_eq(quern_jobs_wait(of.jobs, &last), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 5u);
    quern_jobs_destroy(of.jobs);
}

/* --------------------------------------------------------------------------------------- freed counters */

typedef struct loose {
    quern_jobs *jobs;
    quern_counter *counters[4];
    _Atomic uint32_t *run_count;
} loose;

/* The job frees the counters, so every thread that released one must have ended its access. */
static void free_counters(void *argument, uint32_t worker_index)
{
    loose *of = *(loose **)argument;
    for (uint32_t i = 0; i < 4; i++)
        free(of->counters[i]);
    atomic_fetch_add(of->run_count, 1);
    free(of);
}

static void release_one(void *argument, uint32_t worker_index)
{
    quern_counter *counter = ((quern_counter **)argument)[0];
    cr_expect(quern_counter_release(((quern_jobs **)argument)[1], counter) == QUERN_OK);
}

static void submit_loose(quern_jobs *jobs, _Atomic uint32_t *run_count)
{
    loose *of = malloc(sizeof *of);
    quern_counter *counters[4];
    cr_assert_not_null(of);
    of->jobs = jobs;
    of->run_count = run_count;
    for (uint32_t i = 0; i < 4; i++) {
        counters[i] = calloc(1, sizeof *counters[i]);
        cr_assert_not_null(counters[i]);
        of->counters[i] = counters[i];
        quern_counter_hold(counters[i]);
    }
    quern_job_def def = {.function = free_counters,
                         .payload = &of,
                         .payload_bytes = sizeof of,
                         .after = counters,
                         .after_count = 4};
    cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
    for (uint32_t i = 0; i < 4; i++) {
        void *payload[] = {counters[i], jobs};
        quern_job_def open = {.function = release_one, .payload = payload, .payload_bytes = sizeof payload};
        cr_assert_eq(quern_jobs_submit(jobs, &open), QUERN_OK);
    }
}

Test(after, the_job_may_free_the_counters_it_waited_for)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        _Atomic uint32_t run_count = 0;
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t round = 0; round < 2000; round++)
            submit_loose(jobs, &run_count);
        quern_jobs_destroy(jobs);
        cr_assert_eq(atomic_load(&run_count), 2000u);
    }
}

/* -------------------------------------------------------------------------------------- random programs */

enum { STEP_COUNT = 400, MOST_BEFORE = 9, ROUNDS = 12 };

typedef struct tangle tangle;

typedef struct step {
    tangle *of;
    quern_counter counter;
    uint32_t before_count;
    uint32_t before[MOST_BEFORE];
    uint32_t value; /* not atomic: a job that began too early causes a data race */
} step;

struct tangle {
    quern_jobs *jobs;
    step steps[STEP_COUNT];
    _Atomic uint32_t run_count;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint32_t value_of(const tangle *of, uint32_t number)
{
    const step *own = &of->steps[number];
    uint32_t value = number + 1;
    for (uint32_t i = 0; i < own->before_count; i++)
        value = value * 31 + of->steps[own->before[i]].value;
    return value;
}

static void run_step(void *argument, uint32_t worker_index)
{
    step *own = *(step **)argument;
    own->value = value_of(own->of, (uint32_t)(own - own->of->steps));
    atomic_fetch_add(&own->of->run_count, 1);
}

static void submit_step(step *own)
{
    quern_counter *list[MOST_BEFORE];
    quern_job_def def = {.function = run_step,
                         .payload = &own,
                         .payload_bytes = sizeof own,
                         .priority = (quern_priority)(own->before_count % 3),
                         .counter = &own->counter,
                         .after = own->before_count != 0 ? list : NULL,
                         .after_count = own->before_count};
    for (uint32_t i = 0; i < own->before_count; i++)
        list[i] = &own->of->steps[own->before[i]].counter;
    cr_expect(quern_jobs_submit(own->of->jobs, &def) == QUERN_OK);
}

static void submit_steps(void *argument, uint32_t worker_index)
{
    tangle *of = argument;
    for (uint32_t i = 0; i < STEP_COUNT; i++)
        submit_step(&of->steps[i]);
}

static void set_up_tangle(tangle *of, uint64_t *seed)
{
    memset((void *)of->steps, 0, sizeof of->steps);
    atomic_store(&of->run_count, 0);
    for (uint32_t number = 0; number < STEP_COUNT; number++) {
        step *own = &of->steps[number];
        own->of = of;
        own->before_count = number == 0 ? 0 : next_random(seed) % (MOST_BEFORE + 1);
        uint32_t reach = number < 40 ? number : 40;
        for (uint32_t i = 0; i < own->before_count; i++)
            own->before[i] = number - 1 - next_random(seed) % reach;
    }
}

static void check_tangle(tangle *of)
{
    for (uint32_t i = 0; i < STEP_COUNT; i++)
        cr_assert_eq(quern_jobs_wait(of->jobs, &of->steps[i].counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of->run_count), (uint32_t)STEP_COUNT);
    for (uint32_t i = 0; i < STEP_COUNT; i++) {
        uint32_t value = of->steps[i].value;
        cr_assert_eq(value, value_of(of, i), "step %u", i);
    }
}

Test(after, random_programs_run_in_order)
{
    uint64_t seed = 1;
    tangle *of = calloc(1, sizeof *of);
    cr_assert_not_null(of);
    for (uint32_t threads = 1; threads <= 8; threads++) {
        of->jobs = open_pool(threads);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            set_up_tangle(of, &seed);
            if (round % 2 == 0)
                submit_steps(of, 0);
            else
                cr_assert_eq(quern_jobs_run(of->jobs, submit_steps, of), QUERN_OK);
            check_tangle(of);
        }
        quern_jobs_destroy(of->jobs);
    }
    free(of);
}

/* --------------------------------------------------------------------------------------------- refusals */

Test(after, a_bad_list_is_rejected_and_nothing_is_counted)
{
    board of = {.jobs = open_pool(1)};
    gates held;
    ticket mine = {&of, 0};
    quern_counter *list[QUERN_MAX_AFTER + 1];
    hold_all(&held, 3);
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    for (uint32_t i = 0; i <= QUERN_MAX_AFTER; i++)
        list[i] = held.list[i % 3];
    def.after = list;
    def.after_count = QUERN_MAX_AFTER + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "def->after_count is 65"));
    def.after_count = 3;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, held.list[0]));
    list[2] = &of.counter;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "def->after[2]"));
    list[2] = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "def->after[2]"));
    def.after = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    def.after = held.list;
    def.after_count = 0;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, held.list[0]));
    cr_assert(quern_counter_is_done(&of.counter));
    for (uint32_t i = 0; i < 3; i++)
        release(&of, held.list[i]);
    quern_jobs_destroy(of.jobs);
    cr_assert_eq(atomic_load(&of.run_count), 0u);
}

/* The pool's first block has 63 nodes. Each of these jobs takes one of them, and 21 more for its links. */
Test(after, without_memory_nothing_is_counted_and_nothing_lost)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_jobs_def pool = {.thread_count = 1, .allocator = failing_allocator_interface(allocator)};
    board of = {0};
    gates held;
    quern_counter failed = {0};
    ticket mine = {&of, 0};
    quern_job_def def = job_of(count_run, &mine, &of.counter);
    cr_assert_eq(quern_jobs_create(&pool, &of.jobs), QUERN_OK);
    hold_all(&held, QUERN_MAX_AFTER);
    submit_after(&of, &def, held.list, QUERN_MAX_AFTER);
    submit_after(&of, &def, held.list, QUERN_MAX_AFTER);
    def.counter = &failed;
    for (uint32_t i = 0; i < 3; i++) {
        failing_allocator_fail_at(allocator, 1);
        must_refuse(OUT_OF_MEMORY, NULL, quern_jobs_submit(of.jobs, &def));
        cr_assert(quern_counter_is_done(&failed));
    }
    def.counter = &of.counter;
    submit_after(&of, &def, held.list, QUERN_MAX_AFTER);
    for (uint32_t i = 0; i < QUERN_MAX_AFTER; i++) {
        cr_assert_eq(atomic_load(&of.run_count), 0u);
        release(&of, held.list[i]);
    }
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(atomic_load(&of.run_count), 3u);
    uint64_t calls = failing_allocator_call_count(allocator);
    hold_all(&held, QUERN_MAX_AFTER);
    for (uint32_t i = 0; i < 5; i++)
        submit_after(&of, &def, held.list, QUERN_MAX_AFTER);
    cr_assert_eq(failing_allocator_call_count(allocator), calls, "nodes come from a store");
    for (uint32_t i = 0; i < QUERN_MAX_AFTER; i++)
        release(&of, held.list[i]);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    failing_allocator_close(allocator);
}

/* --------------------------------------------------------------------------------------- what runs next */

typedef struct next_job {
    _Atomic uint32_t *run_count;
    uint32_t place; /* how many of the jobs ran before */
    quern_jobs *jobs;
    quern_counter *held;
} next_job;

/* The first job ends the hold that kept its counter above zero, so that its own end is what starts the others. */
static void note_turn(void *argument, uint32_t worker_index)
{
    next_job *job = *(next_job **)argument;
    if (job->held != NULL) cr_assert_eq(quern_counter_release(job->jobs, job->held), QUERN_OK);
    job->place = atomic_fetch_add(job->run_count, 1);
}

/* The worker that finishes the first job finds two continuations: it claims the first one, and takes the one of high
 * priority before it. The pool has one thread of its own, and the caller stays outside. */
Test(after, a_continuation_of_high_priority_runs_before_a_claimed_one)
{
    quern_jobs *jobs = open_pool(2);
    for (uint32_t round = 0; round < 50; round++) {
        _Atomic uint32_t run_count = 0;
        quern_counter first = {0}, both = {0};
        next_job jobs_of[3] = {
            {&run_count, 9, jobs, &first}, {&run_count, 9, NULL, NULL}, {&run_count, 9, NULL, NULL}};
        next_job *arguments[] = {&jobs_of[0], &jobs_of[1], &jobs_of[2]};
        quern_job_def def = {
            .function = note_turn, .payload = &arguments[0], .payload_bytes = sizeof arguments[0]};
        def.counter = &both;
        quern_counter_hold(&first);
        for (uint32_t i = 1; i < 3; i++) {
            def.payload = &arguments[i];
            def.priority = i == 2 ? QUERN_PRIORITY_HIGH : QUERN_PRIORITY_NORMAL;
            cr_assert_eq(quern_jobs_submit_after(jobs, &def, &first), QUERN_OK);
        }
        def = (quern_job_def){.function = note_turn,
                              .payload = &arguments[0],
                              .payload_bytes = sizeof arguments[0],
                              .counter = &first};
        cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
        while (!quern_counter_is_done(&both))
            sched_yield();
        cr_assert_eq(jobs_of[2].place, 1);
        cr_assert_eq(jobs_of[1].place, 2);
    }
    quern_jobs_destroy(jobs);
}
