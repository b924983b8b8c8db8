/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

TestSuite(wait_any, .timeout = 120);

enum { MOST = QUERN_MAX_AFTER };

static const uint64_t NO_LIMIT = UINT64_MAX;

typedef struct scene {
    quern_jobs *jobs;
    quern_counter counters[MOST];
    quern_counter *list[MOST];
    uint32_t count;
    uint64_t limit_ns;
    uint32_t index; /* result of a wait */
    bool is_done;
    uint32_t released; /* set by release_later */
} scene;

static void hold_all(scene *of, uint32_t count)
{
    memset((void *)of->counters, 0, sizeof of->counters);
    of->count = count;
    for (uint32_t i = 0; i < count; i++) {
        of->list[i] = &of->counters[i];
        quern_counter_hold(of->list[i]);
    }
}

/* Checks that no counter is held, and that no link remains in a list. */
static void release_all(scene *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        cr_assert_null(of->counters[i].links);
        if (!quern_counter_is_done(of->list[i]))
            cr_assert_eq(quern_counter_release(of->jobs, of->list[i]), QUERN_OK);
        cr_assert(quern_counter_is_done(of->list[i]));
    }
}

static void wait_any_job(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    cr_expect(quern_jobs_wait_any(of->jobs, of->list, of->count, of->limit_ns, &of->index) == QUERN_OK);
}

static void wait_for_job(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    cr_expect(quern_jobs_wait_for(of->jobs, of->list[0], of->limit_ns, &of->is_done) == QUERN_OK);
}

/* Waits from outside of the pool or from inside of a job. */
static void call(scene *of, quern_job_function *function, bool is_inside)
{
    if (is_inside)
        cr_assert_eq(quern_jobs_run(of->jobs, function, of), QUERN_OK);
    else
        function(of, 0);
}

static void *release_later(void *argument)
{
    scene *of = argument;
    sleep_ms((long)(of->released % 3));
    cr_expect(quern_counter_release(of->jobs, of->list[of->released]) == QUERN_OK);
    return NULL;
}

/* -------------------------------------------------------------------------------------- which it was */

Test(wait_any, reports_the_counter_that_reached_zero)
{
    static const uint32_t counts[] = {1, 2, 3, 7, MOST};
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        scene of = {.jobs = open_pool(thread_counts[t]), .limit_ns = NO_LIMIT};
        for (size_t c = 0; c < QUERN__COUNT_OF(counts); c++)
            for (uint32_t i = 0; i < counts[c]; i += 1 + counts[c] / 8) {
                pthread_t thread;
                hold_all(&of, counts[c]);
                of.released = i;
                cr_assert_eq(pthread_create(&thread, NULL, release_later, &of), 0);
                call(&of, wait_any_job, i % 2 == 0);
                cr_assert_eq(of.index, i);
                pthread_join(thread, NULL);
                release_all(&of);
            }
        quern_jobs_destroy(of.jobs);
    }
}

Test(wait_any, reports_the_first_of_several_finished_counters)
{
    scene of = {.jobs = open_pool(2)};
    const uint64_t limits[] = {0, 1, NO_LIMIT};
    for (uint32_t mask = 1; mask < 32; mask++)
        for (size_t l = 0; l < QUERN__COUNT_OF(limits); l++) {
            hold_all(&of, 5);
            for (uint32_t i = 0; i < 5; i++)
                if ((mask >> i & 1) != 0)
                    cr_assert_eq(quern_counter_release(of.jobs, of.list[i]), QUERN_OK);
            of.limit_ns = limits[l];
            call(&of, wait_any_job, mask % 2 == 0);
            cr_assert_eq(of.index, (uint32_t)__builtin_ctz(mask));
            release_all(&of);
        }
    quern_jobs_destroy(of.jobs);
}

Test(wait_any, the_same_counter_twice_is_harmless)
{
    scene of = {.jobs = open_pool(2), .limit_ns = 2000000};
    hold_all(&of, 2);
    of.list[1] = of.list[0];
    wait_any_job(&of, 0);
    cr_assert_eq(of.index, 2u);
    cr_assert_eq(quern_counter_release(of.jobs, of.list[0]), QUERN_OK);
    wait_any_job(&of, 0);
    cr_assert_eq(of.index, 0u);
    cr_assert_null(of.counters[0].links);
    quern_jobs_destroy(of.jobs);
}

/* ------------------------------------------------------------------------------------- limits in time */

Test(wait_any, ends_at_the_time_limit_and_not_before)
{
    static const uint64_t limits[] = {0, 1, 1000, 300000, 3000000};
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        scene of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 0; i < 4 * QUERN__COUNT_OF(limits); i++) {
            of.limit_ns = limits[i / 4];
            of.is_done = true;
            hold_all(&of, 3);
            uint64_t start_ns = quern__clock_ns();
            call(&of, i / 2 % 2 == 0 ? wait_any_job : wait_for_job, i % 2 == 0);
            cr_assert_geq(quern__clock_ns() - start_ns, of.limit_ns);
            if (i / 2 % 2 == 0)
                cr_assert_eq(of.index, 3u);
            else
                cr_assert(!of.is_done);
            release_all(&of);
        }
        quern_jobs_destroy(of.jobs);
    }
}

Test(wait_any, an_unreached_limit_makes_no_difference)
{
    const uint64_t limits[] = {60000000000, NO_LIMIT - 1, NO_LIMIT};
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        scene of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 0; i < 12; i++) {
            pthread_t thread;
            hold_all(&of, 1);
            of.limit_ns = limits[i % 3];
            of.released = 0;
            of.is_done = false;
            cr_assert_eq(pthread_create(&thread, NULL, release_later, &of), 0);
            call(&of, wait_for_job, i % 2 == 0);
            cr_assert(of.is_done);
            pthread_join(thread, NULL);
            release_all(&of);
        }
        quern_jobs_destroy(of.jobs);
    }
}

/* A sleeper gets its permit in time, or its time limit ends. */
Test(wait_any, a_sleep_with_a_limit_ends_by_time_and_by_permit)
{
    quern__parker parker;
    cr_assert(quern__parker_init(&parker));
    uint64_t start_ns = quern__clock_ns();
    quern__parker_take_until(&parker, start_ns + 2000000);
    cr_assert_geq(quern__clock_ns() - start_ns, 2000000u);
    cr_assert(!quern__parker_has_permit(&parker));
    quern__parker_give(&parker);
    quern__parker_take_until(&parker, quern__clock_ns() + 60000000000);
    cr_assert(!quern__parker_has_permit(&parker));
    quern__parker_take_until(&parker, 1); /* long ago */
    quern__parker_deinit(&parker);
}

/* ---------------------------------------------------------------------------------- helping meanwhile */

/* In a pool of one thread, no other thread can. */
Test(wait_any, the_caller_helps_with_all_counters)
{
    for (uint32_t which = 0; which < 3; which++)
        for (uint32_t priority = 0; priority < 3; priority++) {
            board of = {.jobs = open_pool(1)};
            quern_counter counters[3] = {0};
            quern_counter *list[] = {&counters[0], &counters[1], &counters[2]};
            uint32_t index;
            ticket mine = {&of, 0};
            quern_job_def def = job_of(count_run, &mine, &counters[which]);
            def.priority = (quern_priority)priority;
            for (uint32_t i = 0; i < 3; i++)
                quern_counter_hold(list[i]);
            for (uint32_t i = 0; i < 10; i++)
                cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
            cr_assert_eq(quern_counter_release(of.jobs, list[which]), QUERN_OK);
            cr_assert_eq(quern_jobs_wait_any(of.jobs, list, 3, NO_LIMIT, &index), QUERN_OK);
            cr_assert_eq(index, which);
            cr_assert_eq(atomic_load(&of.run_count), 10u);
            quern_jobs_destroy(of.jobs);
        }
}

typedef struct own_jobs {
    quern_jobs *jobs;
    bool is_for_any;
    uint32_t rest_count; /* number of unrelated jobs that had begun when the wait ended */
} own_jobs;

static void count_rest(void *argument, uint32_t worker_index)
{
    own_jobs *of = *(own_jobs **)argument;
    of->rest_count++;
}

static void do_nothing(void *argument, uint32_t worker_index) {}

static void wait_before_the_rest(void *argument, uint32_t worker_index)
{
    own_jobs *of = argument;
    quern_counter rest = {0}, first = {0};
    quern_counter *both[] = {&rest, &first};
    uint32_t index = 0;
    quern_job_def later = {
        .function = count_rest, .payload = &of, .payload_bytes = sizeof of, .counter = &rest};
    quern_job_def sooner = {.function = do_nothing, .counter = &first};
    cr_expect(quern_jobs_submit(of->jobs, &later) == QUERN_OK);
    later.priority = QUERN_PRIORITY_HIGH;
    cr_expect(!of->is_for_any || quern_jobs_submit(of->jobs, &later) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &sooner) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &sooner) == QUERN_OK);
    if (of->is_for_any) {
        cr_expect(quern_jobs_wait_any(of->jobs, both, 2, NO_LIMIT, &index) == QUERN_OK);
        cr_expect(index == 1);
    } else {
        cr_expect(quern_jobs_wait(of->jobs, &first) == QUERN_OK);
    }
    cr_expect(of->rest_count == 0, "a job was begun that nothing waited for any more");
    cr_expect(quern_jobs_wait(of->jobs, &rest) == QUERN_OK);
}

/* Finished jobs are subtracted from their counter in batches, but early enough that a finished wait begins
 * no more jobs. */
Test(wait_any, a_finished_wait_begins_no_more_of_its_own_jobs)
{
    for (int is_inside = 0; is_inside < 2; is_inside++)
        for (int is_for_any = 0; is_for_any < 2; is_for_any++) {
            own_jobs of = {.jobs = open_pool(1), .is_for_any = is_for_any};
            if (is_inside)
                cr_assert_eq(quern_jobs_run(of.jobs, wait_before_the_rest, &of), QUERN_OK);
            else
                wait_before_the_rest(&of, 0);
            cr_expect_eq(of.rest_count, 1u + (uint32_t)is_for_any);
            quern_jobs_destroy(of.jobs);
        }
}

/* The job of the last counter, for which only the waiting worker is free, is pushed while this worker
 * sleeps. */
static void push_part_and_watch(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t before = atomic_load(&of->run_count);
        if (i % 50 == 0) sleep_ms(2);
        cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
        for (uint32_t look = 0; look < 20000 && atomic_load(&of->run_count) == before; look++)
            sleep_ms(look < 10 ? 0 : 1);
        cr_expect(atomic_load(&of->run_count) != before, "no sleeper was woken for the job");
    }
}

typedef struct watched {
    board *of;
    quern_counter *list[3];
} watched;

static void wait_for_last(void *argument, uint32_t worker_index)
{
    watched *mine = *(watched **)argument;
    uint32_t index;
    cr_expect(quern_jobs_wait_any(mine->of->jobs, mine->list, 3, NO_LIMIT, &index) == QUERN_OK);
    cr_expect(index == 2);
}

Test(wait_any, a_sleeper_is_woken_for_a_job_of_any_counter)
{
    board of = {.jobs = open_pool(2)};
    quern_counter held[2] = {0}, waiting = {0};
    watched mine = {&of, {&held[0], &held[1], &of.counter}}, *payload = &mine;
    quern_job_def def = {.function = wait_for_last,
                         .payload = &payload,
                         .payload_bytes = sizeof payload,
                         .priority = QUERN_PRIORITY_HIGH,
                         .counter = &waiting};
    quern_counter_hold(&held[0]);
    quern_counter_hold(&held[1]);
    quern_counter_hold(&of.counter);
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    sleep_ms(2); /* the other worker runs it */
    cr_assert_eq(quern_jobs_run(of.jobs, push_part_and_watch, &of), QUERN_OK);
    cr_assert_eq(quern_counter_release(of.jobs, &of.counter), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &waiting), QUERN_OK);
    cr_assert_eq(quern_counter_release(of.jobs, &held[0]), QUERN_OK);
    cr_assert_eq(quern_counter_release(of.jobs, &held[1]), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

/* A tree of jobs: each waits for its two children with short limits, in varying order. */
static void wait_in_pieces(void *argument, uint32_t worker_index)
{
    ticket mine = *(ticket *)argument;
    quern_counter counters[2] = {0};
    quern_counter *list[] = {&counters[0], &counters[1]};
    atomic_fetch_add(&mine.of->run_count, 1);
    if (mine.number == 0) return;
    ticket child = {mine.of, mine.number - 1};
    for (uint32_t i = 0; i < 2; i++) {
        quern_job_def def = job_of(wait_in_pieces, &child, list[i]);
        def.priority = (quern_priority)((mine.number + i) % 3);
        cr_expect(quern_jobs_submit(mine.of->jobs, &def) == QUERN_OK);
    }
    uint32_t index = 2;
    for (uint64_t limit_ns = 1; index == 2; limit_ns = limit_ns * 2 % 1000003)
        cr_expect(quern_jobs_wait_any(mine.of->jobs, list, 2, limit_ns, &index) == QUERN_OK);
    bool is_done = false;
    for (uint64_t limit_ns = 1; !is_done; limit_ns = limit_ns * 2 % 1000003)
        cr_expect(quern_jobs_wait_for(mine.of->jobs, list[1 - index], limit_ns, &is_done) == QUERN_OK);
}

Test(wait_any, waits_with_limits_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        ticket root = {&of, 8};
        for (uint32_t i = 1; i <= 3; i++) {
            cr_assert_eq(quern_jobs_run(of.jobs, wait_in_pieces, &root), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), i * 511);
        }
        quern_jobs_destroy(of.jobs);
    }
}

/* ---------------------------------------------------------------------- external threads without a slot */

static void sleep_until_gate(void *argument, uint32_t worker_index)
{
    board *of = argument;
    atomic_store(&of->order, 1);
    while (!atomic_load(&of->gate))
        sleep_ms(1);
}

static void *occupy(void *argument)
{
    board *of = argument;
    cr_expect(quern_jobs_run(of->jobs, sleep_until_gate, of) == QUERN_OK);
    return NULL;
}

Test(wait_any, threads_without_a_slot_sleep_with_a_limit)
{
    board of = {.jobs = open_pool(2)};
    pthread_t occupant, thread;
    scene waits = {.jobs = of.jobs, .limit_ns = 3000000};
    cr_assert_eq(pthread_create(&occupant, NULL, occupy, &of), 0);
    while (atomic_load(&of.order) == 0)
        sleep_ms(1);
    for (uint32_t round = 0; round < 4; round++) {
        hold_all(&waits, 3);
        wait_any_job(&waits, 0);
        cr_assert_eq(waits.index, 3u);
        wait_for_job(&waits, 0);
        cr_assert(!waits.is_done);
        waits.released = round % 3;
        cr_assert_eq(pthread_create(&thread, NULL, release_later, &waits), 0);
        cr_assert_eq(quern_jobs_wait_any(of.jobs, waits.list, 3, NO_LIMIT, &waits.index), QUERN_OK);
        cr_assert_eq(waits.index, round % 3);
        pthread_join(thread, NULL);
        release_all(&waits);
    }
    open_gate(&of);
    pthread_join(occupant, NULL);
    quern_jobs_destroy(of.jobs);
}

/* ----------------------------------------------------------- waits that end while the counter finishes */

enum { RACE_ROUNDS = 300, RACERS = 3 };

/* One thread waits with short limits for its own counters, which other threads release at the same time;
 * then the counters are freed. */
typedef struct race {
    quern_jobs *jobs;
    quern_counter *counters[RACERS];
    _Atomic uint32_t runs;
    uint64_t seed;
} race;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void burn(uint32_t looks)
{
    for (uint32_t i = 0; i < looks; i++)
        quern__relax();
}

static void release_soon(void *argument, uint32_t worker_index)
{
    void **mine = argument;
    burn((uint32_t)(uintptr_t)mine[2]);
    cr_expect(quern_counter_release(mine[0], mine[1]) == QUERN_OK);
}

static void count_race(void *argument, uint32_t worker_index)
{
    race *of = *(race **)argument;
    atomic_fetch_add(&of->runs, 1);
}

static void start_racers(race *of)
{
    for (uint32_t i = 0; i < RACERS; i++) {
        of->counters[i] = calloc(1, sizeof *of->counters[i]);
        cr_assert_not_null(of->counters[i]);
        quern_counter_hold(of->counters[i]);
        void *payload[] = {of->jobs, of->counters[i], (void *)(uintptr_t)(next_random(&of->seed) % 300)};
        quern_job_def def = {.function = release_soon, .payload = payload, .payload_bytes = sizeof payload};
        cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    }
    quern_job_def last = {.function = count_race,
                          .payload = &of,
                          .payload_bytes = sizeof of,
                          .after = of->counters,
                          .after_count = RACERS};
    cr_expect(quern_jobs_submit(of->jobs, &last) == QUERN_OK);
}

static void run_race(void *argument, uint32_t worker_index)
{
    race *of = argument;
    uint32_t left = RACERS, index;
    bool is_done;
    start_racers(of);
    while (left != 0) {
        uint64_t limit_ns = next_random(&of->seed) % 20000;
        cr_expect(quern_jobs_wait_any(of->jobs, of->counters, left, limit_ns, &index) == QUERN_OK);
        if (index == left) {
            index = next_random(&of->seed) % left;
            limit_ns = next_random(&of->seed) % 20000;
            cr_expect(quern_jobs_wait_for(of->jobs, of->counters[index], limit_ns, &is_done) == QUERN_OK);
            if (!is_done) continue;
        }
        free(of->counters[index]);
        of->counters[index] = of->counters[--left];
    }
}

static void *race_outside(void *argument)
{
    for (uint32_t round = 0; round < RACE_ROUNDS; round++)
        run_race(argument, 0);
    return NULL;
}

static void race_inside(void *argument, uint32_t worker_index)
{
    race *of = *(race **)argument;
    for (uint32_t round = 0; round < RACE_ROUNDS; round++)
        run_race(of, worker_index);
}

Test(wait_any, waits_end_while_other_threads_finish_their_counters)
{
    for (uint32_t threads = 1; threads <= 8; threads++) {
        quern_jobs *jobs = open_pool(threads);
        race races[5];
        pthread_t outside[2];
        quern_counter inside = {0};
        for (uint32_t i = 0; i < 5; i++) {
            races[i] = (race){.jobs = jobs, .seed = threads * 5 + i};
            race *payload = &races[i];
            quern_job_def def = {.function = race_inside,
                                 .payload = &payload,
                                 .payload_bytes = sizeof payload,
                                 .counter = &inside};
            if (i < 2)
                cr_assert_eq(pthread_create(&outside[i], NULL, race_outside, &races[i]), 0);
            else
                cr_assert_eq(quern_jobs_submit(jobs, &def), QUERN_OK);
        }
        cr_assert_eq(quern_jobs_wait(jobs, &inside), QUERN_OK);
        pthread_join(outside[0], NULL);
        pthread_join(outside[1], NULL);
        quern_jobs_destroy(jobs);
        for (uint32_t i = 0; i < 5; i++)
            cr_assert_eq(atomic_load(&races[i].runs), (uint32_t)RACE_ROUNDS);
    }
}

/* --------------------------------------------------------------------------------------------- refusals */

/* These workers repeat short waits until another thread has released the counter. */
typedef struct pollers {
    quern_jobs *jobs;
    quern_counter awaited;
    _Atomic uint32_t begun_count;
    uint32_t count;
} pollers;

static void release_awaited(void *argument, uint32_t worker_index)
{
    pollers *of = *(pollers **)argument;
    cr_expect(quern_counter_release(of->jobs, &of->awaited) == QUERN_OK);
}

/* The last worker to arrive submits the job that all of them wait for, but their waits do not know that. */
static void poll_awaited(void *argument, uint32_t worker_index)
{
    pollers *of = *(pollers **)argument;
    bool is_done = false;
    if (atomic_fetch_add(&of->begun_count, 1) + 1 == of->count) {
        const quern_job_def def = {.function = release_awaited,
                                   .payload = &of,
                                   .payload_bytes = sizeof of,
                                   .priority = QUERN_PRIORITY_HIGH};
        cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    }
    while (!is_done)
        cr_expect(quern_jobs_wait_for(of->jobs, &of->awaited, 1, &is_done) == QUERN_OK);
}

Test(wait_any, workers_with_limits_too_short_for_sleep_make_progress)
{
    for (uint32_t thread_count = 1; thread_count <= 4; thread_count++) {
        pollers all = {.jobs = open_pool(thread_count), .count = thread_count}, *of = &all;
        quern_counter over = {0};
        const quern_job_def def = {
            .function = poll_awaited, .payload = &of, .payload_bytes = sizeof of, .counter = &over};
        quern_counter_hold(&all.awaited);
        for (uint32_t i = 0; i < thread_count; i++)
            cr_assert_eq(quern_jobs_submit(all.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(all.jobs, &over), QUERN_OK);
        quern_jobs_destroy(all.jobs);
    }
}

Test(wait_any, bad_lists_are_rejected)
{
    scene of = {.jobs = open_pool(1)};
    quern_counter *list[MOST + 1] = {0};
    hold_all(&of, 2);
    of.index = 7;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_wait_any(of.jobs, of.list, 0, 0, &of.index));
    cr_assert_eq(of.index, 0u);
    for (uint32_t i = 0; i <= MOST; i++)
        list[i] = of.list[0];
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_wait_any(of.jobs, list, MOST + 1, 0, &of.index));
    cr_assert_eq(of.index, (uint32_t)MOST + 1);
    list[5] = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_wait_any(of.jobs, list, MOST, 0, &of.index));
    cr_assert_not_null(strstr(quern_error_message(), "counters[5]"));
    cr_assert_eq(of.index, (uint32_t)MOST);
    of.is_done = true;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_wait_for(of.jobs, NULL, 0, &of.is_done));
    cr_assert(!of.is_done);
    cr_assert_eq(quern_jobs_wait_any(of.jobs, of.list, 2, 0, NULL), QUERN_OK);
    cr_assert_eq(quern_jobs_wait_for(of.jobs, of.list[0], 0, NULL), QUERN_OK);
    release_all(&of);
    quern_jobs_destroy(of.jobs);
}

/* ----------------------------------------------------------------------------------------------- order */

/* What a wait runs first: the awaited job and what that one waits for, before other jobs of the waiting one. */

TestSuite(wait_order, .timeout = 60);

enum { COUNT = 100 };

typedef struct crowd {
    quern_jobs *jobs;
    quern_counter counters[COUNT];
    quern_priority priorities[COUNT];
    uint32_t awaited[COUNT]; /* of each job: 1 + the job for which it waits, or 0 */
    uint32_t wanted;         /* the job for which the first wait is */
    uint32_t run_count;      /* at the end of that wait */
    _Atomic uint32_t begun_count;
    uint32_t begun_by_caller[COUNT]; /* numbers of the jobs that worker 0 has begun, in order */
    uint32_t caller_count;
    _Atomic bool is_open; /* whether jobs that wait may do so */
} crowd;

typedef struct member {
    crowd *of;
    uint32_t number;
} member;

static void run_member(void *argument, uint32_t worker_index)
{
    const member *mine = argument;
    crowd *of = mine->of;
    atomic_fetch_add(&of->begun_count, 1);
    if (worker_index == 0) of->begun_by_caller[of->caller_count++] = mine->number;
    if (of->awaited[mine->number] == 0) return;
    while (!atomic_load(&of->is_open))
        sleep_ms(1);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[of->awaited[mine->number] - 1]), QUERN_OK);
}

static void submit_members(crowd *of, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        const member each = {of, i};
        cr_expect_eq(quern_jobs_submit(of->jobs, &(quern_job_def){.function = run_member,
                                                                  .payload = &each,
                                                                  .payload_bytes = sizeof each,
                                                                  .priority = of->priorities[i],
                                                                  .counter = &of->counters[i]}),
                     QUERN_OK);
    }
}

static void wait_for_one_then_all(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    submit_members(of, 0, COUNT);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[of->wanted]), QUERN_OK);
    of->run_count = atomic_load(&of->begun_count);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[i]), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT);
}

/* Runs the crowd outside and inside of a job, and checks how many jobs have begun at the end of the first wait. */
static void expect_run_count(const crowd *given, uint32_t run_count)
{
    static crowd of;
    for (uint32_t inside = 0; inside < 2; inside++) {
        memcpy((void *)&of, (const void *)given, sizeof of);
        of.jobs = open_pool(1);
        of.is_open = true;
        if (inside != 0)
            cr_assert_eq(quern_jobs_run(of.jobs, wait_for_one_then_all, &of), QUERN_OK);
        else
            wait_for_one_then_all(&of, 0);
        cr_expect_eq(of.run_count, run_count, "%u jobs ran, inside %u", of.run_count, inside);
        quern_jobs_destroy(of.jobs);
    }
}

Test(wait_order, the_awaited_job_runs_before_newer_ones)
{
    static crowd of = {.wanted = 50};
    expect_run_count(&of, 1);
}

Test(wait_order, an_awaited_job_of_any_priority_runs_first)
{
    for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
        static crowd of = {.wanted = 50};
        of.priorities[50] = (quern_priority)priority;
        expect_run_count(&of, 1);
    }
}

Test(wait_order, what_the_awaited_job_waits_for_runs_before_others)
{
    static crowd of = {.wanted = 50, .awaited = {[50] = 1 + 20, [20] = 1 + 70, [70] = 1 + 0}};
    expect_run_count(&of, 4);
}

/* All jobs of one counter are spread over the deque: placeholders do not hide them. */
static void share_counter(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    quern_counter even = {0}, odd = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        const member each = {of, i};
        cr_expect_eq(quern_jobs_submit(of->jobs, &(quern_job_def){.function = run_member,
                                                                  .payload = &each,
                                                                  .payload_bytes = sizeof each,
                                                                  .counter = i % 2 == 0 ? &even : &odd}),
                     QUERN_OK);
    }
    cr_expect_eq(quern_jobs_wait(of->jobs, &even), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT / 2);
    cr_expect_eq(quern_jobs_wait(of->jobs, &odd), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT);
}

Test(wait_order, all_jobs_of_the_awaited_counter_run_before_others)
{
    static crowd of;
    of.jobs = open_pool(1);
    cr_assert_eq(quern_jobs_run(of.jobs, share_counter, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

/* Worker 1 runs job 0, which waits for job 2. That one is between others in the deque of worker 0, where worker 1
 * cannot take it. */
static void help_the_helper(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    submit_members(of, 0, 1);
    while (atomic_load(&of->begun_count) == 0)
        sleep_ms(1);
    submit_members(of, 1, 5);
    atomic_store(&of->is_open, true);
    const void *awaited;
    do
        awaited = atomic_load(&of->jobs->workers[1].awaited_scope);
    while (awaited != &of->counters[2]);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[0]), QUERN_OK);
}

Test(wait_order, what_another_worker_waits_for_runs_before_others)
{
    static crowd of = {.awaited = {[0] = 1 + 2}};
    of.jobs = open_pool(2);
    cr_assert_eq(quern_jobs_run(of.jobs, help_the_helper, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    cr_expect_eq(of.begun_by_caller[0], 2u);
}
