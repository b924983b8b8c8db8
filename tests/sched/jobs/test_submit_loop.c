/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/sched/jobs/counted_items.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <sys/wait.h>
#include <unistd.h>

TestSuite(submit_loop, .timeout = 120);

/* ------------------------------------------------------------------------------------- submit and wait */

static void run_sizes(items *of, quern_priority priority)
{
    static const uint32_t grains[] = {0, 1, 7, 5000};
    for (size_t g = 0; g < QUERN__COUNT_OF(grains); g++)
        for (uint32_t count = 1; count <= MAX_ITEMS; count = count * 3 + 1) {
            quern_loop_def def = loop_of(of, count, grains[g]);
            def.priority = priority;
            cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
            check_items(of);
        }
}

Test(submit_loop, every_item_runs_once)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        items *of = open_items(open_pool(thread_counts[t]));
        for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++)
            run_sizes(of, (quern_priority)priority);
        quern_jobs_destroy(of->jobs);
        free(of);
    }
}

static void run_sizes_inside(void *argument, uint32_t worker_index)
{
    run_sizes(argument, QUERN_PRIORITY_NORMAL);
    run_sizes(argument, QUERN_PRIORITY_HIGH);
}

Test(submit_loop, every_item_runs_once_when_a_job_submits_the_loop)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        items *of = open_items(open_pool(thread_counts[t]));
        cr_assert_eq(quern_jobs_run(of->jobs, run_sizes_inside, of), QUERN_OK);
        quern_jobs_destroy(of->jobs);
        free(of);
    }
}

Test(submit_loop, an_empty_loop_ends_at_once)
{
    items *of = open_items(open_pool(2));
    quern_loop_def def = loop_of(of, 0, 0);
    cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
    cr_assert(quern_counter_is_done(&of->counter));
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    def.counter = NULL;
    cr_assert_eq(quern_jobs_run_loop(of->jobs, &def), QUERN_OK);
    check_items(of);
    quern_jobs_destroy(of->jobs);
    free(of);
}

Test(submit_loop, the_call_does_not_wait)
{
    board gate = {.jobs = open_pool(1)};
    items *of = open_items(gate.jobs);
    quern_loop_def def = loop_of(of, 1000, 1);
    cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
    cr_assert_eq(atomic_load(&of->total), 0u); /* the pool has no other worker */
    cr_assert_not(quern_counter_is_done(&of->counter));
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    check_items(of);
    quern_jobs_destroy(of->jobs);
    free(of);
}

Test(submit_loop, a_loop_without_a_counter_runs_before_the_pool_ends)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        items *of = open_items(open_pool(thread_counts[t]));
        quern_loop_def def = loop_of(of, MAX_ITEMS, 3);
        def.counter = NULL;
        cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
        quern_jobs *jobs = of->jobs;
        quern_jobs_destroy(jobs);
        for (uint32_t i = 0; i < of->count; i++)
            cr_assert_eq(of->run_counts[i], 1);
        free(of);
    }
}

/* ------------------------------------------------------------------------------------------------ order */

typedef struct sequence {
    quern_jobs *jobs;
    _Atomic uint32_t first_count, second_count; /* number of items that have run */
    _Atomic uint32_t too_early_count;
    quern_counter first, second, third;
} sequence;

enum { STEP_ITEMS = 500 };

static void run_first(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    sequence *of = argument;
    atomic_fetch_add(&of->first_count, end - begin);
}

static void run_second(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    sequence *of = argument;
    if (atomic_load(&of->first_count) != 2 * STEP_ITEMS) atomic_fetch_add(&of->too_early_count, 1);
    atomic_fetch_add(&of->second_count, end - begin);
}

static void run_third(void *argument, uint32_t worker_index)
{
    sequence *of = *(sequence **)argument;
    if (atomic_load(&of->second_count) != STEP_ITEMS) atomic_fetch_add(&of->too_early_count, 1);
}

static void submit_step(sequence *of, quern_range_function *function, quern_counter *counter,
                        quern_counter *const *after, uint32_t after_count)
{
    const quern_loop_def def = {.function = function,
                                .user_data = of,
                                .count = STEP_ITEMS,
                                .grain = 2,
                                .counter = counter,
                                .after = after,
                                .after_count = after_count};
    cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
}

/* Two loops, then one after both, then a job after that. */
Test(submit_loop, loops_begin_after_counters_and_jobs_after_loops)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (uint32_t round = 0; round < 50; round++) {
            sequence of = {.jobs = open_pool(thread_counts[t])};
            quern_counter other = {0}, *const both[] = {&of.first, &other};
            sequence *payload = &of;
            quern_counter_hold(&of.first);
            submit_step(&of, run_first, &of.first, NULL, 0);
            submit_step(&of, run_first, &other, NULL, 0);
            submit_step(&of, run_second, &of.second, both, 2);
            quern_job_def last = {.function = run_third,
                                  .payload = &payload,
                                  .payload_bytes = sizeof payload,
                                  .counter = &of.third};
            cr_assert_eq(quern_jobs_submit_after(of.jobs, &last, &of.second), QUERN_OK);
            cr_assert_eq(quern_counter_release(of.jobs, &of.first), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.third), QUERN_OK);
            cr_assert_eq(atomic_load(&of.second_count), (uint32_t)STEP_ITEMS);
            cr_assert_eq(atomic_load(&of.too_early_count), 0u);
            quern_jobs_destroy(of.jobs);
        }
}

Test(submit_loop, an_empty_loop_ends_after_the_counters_it_waits_for)
{
    sequence of = {.jobs = open_pool(2)};
    quern_counter *const after[] = {&of.first};
    quern_counter_hold(&of.first);
    const quern_loop_def def = {
        .function = run_first, .user_data = &of, .counter = &of.second, .after = after, .after_count = 1};
    cr_assert_eq(quern_jobs_submit_loop(of.jobs, &def), QUERN_OK);
    cr_assert_not(quern_counter_is_done(&of.second));
    cr_assert_eq(quern_counter_release(of.jobs, &of.first), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.second), QUERN_OK);
    cr_assert_eq(atomic_load(&of.first_count), 0u);
    quern_jobs_destroy(of.jobs);
}

typedef struct turns {
    board of;
    _Atomic uint32_t order;
    uint32_t places[3]; /* position of the first item of each priority */
} turns;

typedef struct turn {
    turns *of;
    uint32_t number;
} turn;

static void note_turn(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const turn *mine = argument;
    if (begin == 0) mine->of->places[mine->number] = atomic_fetch_add(&mine->of->order, 1) + 1;
}

/* The other worker is busy while loops of all priorities are submitted; then it takes them. */
Test(submit_loop, high_priority_runs_first_and_low_last)
{
    turns all = {.of = {.jobs = open_pool(2)}};
    quern_counter gate = {0};
    ticket mine = {&all.of, 0};
    quern_job_def block = job_of(block_until_gate, &mine, &gate);
    block.priority = QUERN_PRIORITY_HIGH;
    cr_assert_eq(quern_jobs_submit(all.of.jobs, &block), QUERN_OK);
    while (atomic_load(&all.of.order) == 0)
        sleep_ms(1);
    static const quern_priority priorities[] = {QUERN_PRIORITY_LOW, QUERN_PRIORITY_NORMAL,
                                                QUERN_PRIORITY_HIGH};
    turn each[] = {{&all, 0}, {&all, 1}, {&all, 2}};
    for (uint32_t i = 0; i < 3; i++) {
        const quern_loop_def def = {.function = note_turn,
                                    .user_data = &each[i],
                                    .count = 1,
                                    .priority = priorities[i],
                                    .counter = &all.of.counter};
        cr_assert_eq(quern_jobs_submit_loop(all.of.jobs, &def), QUERN_OK);
    }
    open_gate(&all.of);
    while (!quern_counter_is_done(&all.of.counter))
        sleep_ms(1);
    cr_assert_eq(all.places[2], 1u);
    cr_assert_eq(all.places[1], 2u);
    cr_assert_eq(all.places[0], 3u);
    quern_jobs_destroy(all.of.jobs);
}

/* -------------------------------------------------------------------------------- participating workers */

typedef struct meeting {
    quern_jobs *jobs;
    quern_counter counter;
    _Atomic uint32_t met_count;
    uint32_t expected_count;
} meeting;

/* Ends when as many calls have been in progress at the same time as expected. */
static void meet(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    meeting *of = argument;
    atomic_fetch_add(&of->met_count, 1);
    while (atomic_load(&of->met_count) < of->expected_count)
        sleep_ms(1);
}

/* All workers are invited, whatever the loop's priority is. The caller waits and may sleep meanwhile: a
 * worker with one remaining item needs no help. */
Test(submit_loop, all_own_threads_join_a_long_loop)
{
    for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++)
        for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
            const uint32_t expected_count = thread_counts[t] > 1 ? thread_counts[t] - 1 : 1;
            meeting of = {.jobs = open_pool(thread_counts[t]), .expected_count = expected_count};
            const quern_loop_def def = {.function = meet,
                                        .user_data = &of,
                                        .count = thread_counts[t],
                                        .grain = 1,
                                        .priority = (quern_priority)priority,
                                        .counter = &of.counter};
            cr_assert_eq(quern_jobs_submit_loop(of.jobs, &def), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
            cr_assert_eq(atomic_load(&of.met_count), thread_counts[t]);
            quern_jobs_destroy(of.jobs);
        }
}

/* --------------------------------------------------------------------------------------- loops in loops */

typedef struct nest {
    quern_jobs *jobs;
    quern_counter outer, inner;
    _Atomic uint32_t inner_count, waited_count;
    bool is_waited_for;
} nest;

enum { OUTER_ITEMS = 40, INNER_ITEMS = 60 };

static void count_inner(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    nest *of = argument;
    atomic_fetch_add(&of->inner_count, end - begin);
}

static void submit_inner(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    nest *of = argument;
    for (uint32_t i = begin; i < end; i++) {
        quern_counter own = {0};
        const quern_loop_def def = {.function = count_inner,
                                    .user_data = of,
                                    .count = INNER_ITEMS,
                                    .grain = 1,
                                    .counter = of->is_waited_for ? &own : &of->inner};
        cr_expect(quern_jobs_submit_loop(of->jobs, &def) == QUERN_OK);
        if (of->is_waited_for) cr_expect(quern_jobs_wait(of->jobs, &own) == QUERN_OK);
    }
}

static void run_nest(uint32_t thread_count, bool is_waited_for)
{
    nest of = {.jobs = open_pool(thread_count), .is_waited_for = is_waited_for};
    const quern_loop_def def = {
        .function = submit_inner, .user_data = &of, .count = OUTER_ITEMS, .grain = 1, .counter = &of.outer};
    for (uint32_t round = 1; round <= 20; round++) {
        cr_assert_eq(quern_jobs_submit_loop(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.outer), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.inner), QUERN_OK);
        cr_assert_eq(atomic_load(&of.inner_count), round * OUTER_ITEMS * INNER_ITEMS);
    }
    quern_jobs_destroy(of.jobs);
}

Test(submit_loop, loops_submit_loops)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        run_nest(thread_counts[t], false);
}

Test(submit_loop, loops_submit_loops_and_wait_for_them)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        run_nest(thread_counts[t], true);
}

static void wait_for_outer(void *argument, uint32_t worker_index)
{
    nest *of = *(nest **)argument;
    cr_expect(quern_jobs_wait(of->jobs, &of->outer) == QUERN_OK);
    atomic_fetch_add(&of->waited_count, 1);
}

static void submit_waiter(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    nest *of = argument;
    for (uint32_t i = begin; i < end; i++) {
        const quern_job_def def = {
            .function = wait_for_outer, .payload = &of, .payload_bytes = sizeof of, .counter = &of->inner};
        cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    }
}

/* Those jobs are above the loop's offers in the deque of a participating worker. If the worker ran them
 * before it leaves the loop, it would wait for itself. */
Test(submit_loop, items_submit_jobs_that_wait_for_their_own_loop)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        nest of = {.jobs = open_pool(thread_counts[t])};
        const quern_loop_def def = {.function = submit_waiter,
                                    .user_data = &of,
                                    .count = OUTER_ITEMS,
                                    .grain = 1,
                                    .counter = &of.outer};
        for (uint32_t round = 1; round <= 20; round++) {
            cr_assert_eq(quern_jobs_submit_loop(of.jobs, &def), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.outer), QUERN_OK);
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.inner), QUERN_OK);
            cr_assert_eq(atomic_load(&of.waited_count), round * OUTER_ITEMS);
        }
        quern_jobs_destroy(of.jobs);
    }
}

/* The items of a loop fill one worker's deque while other workers run the jobs: offers and loops find no
 * room. */
static void submit_many_inner(void *argument, uint32_t worker_index)
{
    nest *of = argument;
    const quern_loop_def def = {
        .function = count_inner, .user_data = of, .count = 3, .grain = 1, .counter = &of->inner};
    for (uint32_t i = 0; i < 3000; i++)
        cr_expect(quern_jobs_submit_loop(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_wait(of->jobs, &of->inner) == QUERN_OK);
}

Test(submit_loop, loops_run_even_if_the_deque_is_full)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        nest of = {.jobs = open_pool(thread_counts[t])};
        cr_assert_eq(quern_jobs_run(of.jobs, submit_many_inner, &of), QUERN_OK);
        cr_assert_eq(atomic_load(&of.inner_count), 9000u);
        quern_jobs_destroy(of.jobs);
    }
}

/* -------------------------------------------------------------------------------------- several at once */

enum { LOOPS = 200, LOOP_ITEMS = 50 };

typedef struct many {
    quern_jobs *jobs;
    quern_counter counter;
    uint8_t run_counts[LOOPS][LOOP_ITEMS];
} many;

static void count_row(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    uint8_t *row = argument;
    for (uint32_t i = begin; i < end; i++)
        row[i]++;
}

static void submit_rows(many *of)
{
    for (uint32_t loop = 0; loop < LOOPS; loop++) {
        const quern_loop_def def = {.function = count_row,
                                    .user_data = of->run_counts[loop],
                                    .count = LOOP_ITEMS,
                                    .grain = loop % 4,
                                    .priority = (quern_priority)(loop % 3),
                                    .counter = &of->counter};
        cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
    }
}

static void check_rows(const many *of, uint32_t round)
{
    for (uint32_t loop = 0; loop < LOOPS; loop++)
        for (uint32_t i = 0; i < LOOP_ITEMS; i++)
            cr_assert_eq(of->run_counts[loop][i], round, "item %u of loop %u", i, loop);
}

Test(submit_loop, one_counter_counts_many_loops)
{
    for (uint32_t thread_count = 1; thread_count <= 8; thread_count++) {
        many of = {.jobs = open_pool(thread_count)};
        for (uint32_t round = 1; round <= 10; round++) {
            submit_rows(&of);
            cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
            check_rows(&of, round);
        }
        quern_jobs_destroy(of.jobs);
    }
}

Test(submit_loop, a_pool_runs_its_loops_before_it_ends_or_is_resized)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        many of = {.jobs = open_pool(thread_counts[t])};
        submit_rows(&of);
        cr_assert_eq(quern_jobs_resize(of.jobs, 9 - thread_counts[t]), QUERN_OK);
        check_rows(&of, 1);
        submit_rows(&of);
        quern_jobs_destroy(of.jobs);
        check_rows(&of, 2);
    }
}

/* --------------------------------------------------------------------------------------------- refused */

/* Rejected loops, and names of loops. */

TestSuite(submit_loop_refused, .timeout = 120);

Test(submit_loop_refused, without_memory_nothing_is_submitted_or_the_loop_runs)
{
    failing_allocator *memory = failing_allocator_create();
    quern_jobs_def pool = {.thread_count = 3, .allocator = failing_allocator_interface(memory)};
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(&pool, &jobs), QUERN_OK);
    items *of = open_items(jobs);
    failing_allocator_fail_from(memory, 1);
    quern_loop_def def = loop_of(of, 1000, 1);
    def.priority = QUERN_PRIORITY_LOW; /* has to wait in a queue */
    must_refuse(OUT_OF_MEMORY, NULL, quern_jobs_submit_loop(jobs, &def));
    cr_assert(quern_counter_is_done(&of->counter));
    quern_counter held = {0}, *const after[] = {&held};
    quern_counter_hold(&held);
    def.priority = QUERN_PRIORITY_NORMAL;
    def.after = after, def.after_count = 1;
    must_refuse(OUT_OF_MEMORY, NULL, quern_jobs_submit_loop(jobs, &def));
    cr_assert(quern_counter_is_done(&of->counter));
    cr_assert_eq(atomic_load(&of->total), 0u);
    def = loop_of(of, 1000, 1); /* needs memory only to be shared */
    cr_assert_eq(quern_jobs_submit_loop(jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(jobs, &of->counter), QUERN_OK);
    check_items(of);
    cr_assert_gt(failing_allocator_failed_count(memory), 2u);
    failing_allocator_heal(memory);
    def = loop_of(of, 1000, 1);
    cr_assert_eq(quern_jobs_submit_loop(jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(jobs, &of->counter), QUERN_OK);
    check_items(of);
    cr_assert_eq(quern_counter_release(jobs, &held), QUERN_OK);
    quern_jobs_destroy(jobs);
    free(of);
    failing_allocator_close(memory);
}

/* Consecutive loops use as many stored loops as run at the same time. */
Test(submit_loop_refused, the_store_of_loops_does_not_grow_with_their_number)
{
    failing_allocator *memory = failing_allocator_create();
    quern_jobs_def pool = {.thread_count = 3, .allocator = failing_allocator_interface(memory)};
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(&pool, &jobs), QUERN_OK);
    items *of = open_items(jobs);
    for (uint32_t round = 0; round < 1000; round++) {
        quern_loop_def def = loop_of(of, 100, 1);
        cr_assert_eq(quern_jobs_submit_loop(jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(jobs, &of->counter), QUERN_OK);
    }
    uint64_t call_count = failing_allocator_call_count(memory);
    cr_assert_leq(call_count, 8u, "%llu calls", (unsigned long long)call_count);
    quern_jobs_destroy(jobs);
    free(of);
    failing_allocator_close(memory);
}

Test(submit_loop_refused, bad_definitions_are_rejected)
{
    items *of = open_items(open_pool(2));
    quern_counter other = {0}, *const own[] = {&of->counter}, *const none[] = {NULL},
                  *const others[] = {&other};
    const quern_loop_def good = loop_of(of, 100, 1);
    quern_loop_def def = good;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_loop(NULL, &def));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_run_loop(NULL, &def));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, NULL));
    def.function = NULL;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &def));
    def = good;
    def.priority = (quern_priority)5;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &def));
    def = good;
    def.after_count = 1;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    def.after = none;
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    def.after = own;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    def.after = others;
    def.after_count = QUERN_MAX_AFTER + 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_loop(of->jobs, &def));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &good)); /* counter */
    def = good;
    def.counter = NULL;
    def.priority = QUERN_PRIORITY_LOW;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &def));
    def.priority = QUERN_PRIORITY_NORMAL;
    def.after = others, def.after_count = 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &def));
    def.after_count = 0;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_run_loop(of->jobs, &def));
    cr_assert(quern_counter_is_done(&of->counter));
    cr_assert_eq(atomic_load(&of->total), 0u);
    def = good;
    def.counter = NULL;
    cr_assert_eq(quern_jobs_run_loop(of->jobs, &def), QUERN_OK);
    check_items(of);
    quern_jobs_destroy(of->jobs);
    free(of);
}

#if !defined(__SANITIZE_THREAD__)
Test(submit_loop_refused, a_forked_process_is_rejected_and_memory_is_freed)
{
    items *of = open_items(open_pool(3));
    quern_loop_def def = loop_of(of, 1000, 1);
    cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    pid_t child = fork();
    if (child == 0) {
        bool is_refused = quern_jobs_submit_loop(of->jobs, &def) == QUERN_ERROR_THREAD_UNAVAILABLE;
        quern_jobs_destroy(of->jobs);
        _exit(is_refused && quern_counter_is_done(&of->counter) ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    quern_jobs_destroy(of->jobs);
    free(of);
}
#endif

/* ------------------------------------------------------------------------------------------------ names */

/* Takes the loop's job out of the queue directly, as workers do. */
Test(submit_loop_refused, a_loop_knows_its_name)
{
    static const char name[] = "particles";
    items *of = open_items(open_pool(1));
    quern_loop_def def = loop_of(of, 10, 1);
    for (int priority = QUERN_PRIORITY_HIGH; priority <= QUERN_PRIORITY_LOW; priority++)
        for (uint32_t named = 0; named < 2; named++) {
            quern__job job;
            def.name = named != 0 ? name : NULL;
            def.priority = (quern_priority)priority;
            cr_assert_eq(quern_jobs_submit_loop(of->jobs, &def), QUERN_OK);
            cr_assert(
                quern__queues_take(&of->jobs->queues, quern__queue_of_priority(def.priority), NULL, &job));
            cr_assert_eq(quern__job_name(&job), def.name);
            quern__counter_finish(&of->counter, 1, NULL); /* the loop will not run */
        }
    quern_jobs_destroy(of->jobs);
    free(of);
}

typedef struct shown_loop {
    quern_jobs *jobs;
    _Atomic uint32_t unseen_count;
} shown_loop;

static void look_for_name(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    shown_loop *of = argument;
    char bytes[4096] = "";
    quern_text_buffer buffer = {.text = bytes, .capacity_bytes = sizeof bytes};
    cr_expect(quern_jobs_describe(of->jobs, quern_sink_text(&buffer)) == QUERN_OK);
    if (strstr(bytes, "particles") == NULL) atomic_fetch_add(&of->unseen_count, 1);
}

Test(submit_loop_refused, names_are_published_while_a_worker_runs_items)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        shown_loop of = {.jobs = open_pool(thread_counts[t])};
        quern_counter counter = {0};
        quern_loop_def def = {
            .function = look_for_name, .user_data = &of, .count = 50, .grain = 1, .name = "particles"};
        cr_assert_eq(quern_jobs_run_loop(of.jobs, &def), QUERN_OK);
        def.counter = &counter;
        cr_assert_eq(quern_jobs_submit_loop(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &counter), QUERN_OK);
        cr_assert_eq(atomic_load(&of.unseen_count), 0u);
        quern_jobs_destroy(of.jobs);
    }
}
