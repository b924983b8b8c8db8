/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"

#include <criterion/criterion.h>

#if defined(__linux__)

#include <sched.h>

/* The tests keep two workers on one processor; the workers spin for seconds unless they yield. */

TestSuite(yield, .timeout = 120);

enum {
    SPIN_NS = 1500000000, /* far longer than TRIES milliseconds */
    TRIES = 150           /* a sleeping thread leaves the processor to the other one between tries */
};

typedef struct scene {
    quern_jobs *jobs;
    quern__worker *caller, *helper;
    cpu_set_t all, first, second; /* processors that this process may use, and two of them */
    const cpu_set_t *wanted;      /* processors for the helper, set by its job */
    _Atomic bool has_begun;
    bool is_long; /* whether the job of note_staying is long */
    bool was_seen;
} scene;

static void set_affinity(const cpu_set_t *processors)
{
    cr_assert_eq(sched_setaffinity(0, sizeof *processors, processors), 0);
}

static cpu_set_t take_first(cpu_set_t *processors)
{
    cpu_set_t taken;
    size_t processor = 0;
    while (!CPU_ISSET(processor, processors))
        processor++;
    CPU_CLR(processor, processors);
    CPU_ZERO(&taken);
    CPU_SET(processor, &taken);
    return taken;
}

static bool is_one_of(const quern__worker_mask *mask, const quern__worker *worker)
{
    return (atomic_load(&mask->words[0]) >> worker->index & 1) != 0;
}

static uint32_t yield_count(const quern__worker *worker)
{
    return atomic_load(&worker->cpu_slot.yield_count);
}

/* Returns whether the worker falls asleep long before its spin time is over. */
static bool falls_asleep(const quern__worker_mask *sleepers, const quern__worker *worker)
{
    for (int i = 0; i < TRIES && !is_one_of(sleepers, worker); i++)
        sleep_ms(1);
    return is_one_of(sleepers, worker);
}

/* Forks the function, and returns once the helper runs it. */
static void hand_over(scene *of, quern_fork *fork, quern_job_function *function)
{
    atomic_store(&of->has_begun, false);
    cr_assert_eq(quern_jobs_fork(of->jobs, fork, function, of), QUERN_OK);
    while (!atomic_load(&of->has_begun))
        sleep_ms(1);
}

static void move_helper(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    cr_expect_eq(worker_index, 1u);
    atomic_store(&of->has_begun, true);
    set_affinity(of->wanted);
}

static void let_helper_use(scene *of, const cpu_set_t *processors)
{
    quern_fork fork;
    of->wanted = processors;
    hand_over(of, &fork, move_helper);
    cr_assert_eq(quern_jobs_join(of->jobs, &fork), QUERN_OK);
}

/* Runs the play on worker 0, which is bound to the first processor; the helper starts on any. */
static void stage(quern_job_function *play)
{
    scene of = {0};
    cr_assert_eq(sched_getaffinity(0, sizeof of.all, &of.all), 0);
    if (CPU_COUNT(&of.all) < 2) cr_skip_test("no pool spins on one processor");
    const quern_jobs_def def = {.thread_count = 2, .spin_ns = SPIN_NS};
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    of.caller = &of.jobs->workers[0];
    of.helper = &of.jobs->workers[1];
    cpu_set_t rest = of.all;
    of.first = take_first(&rest);
    of.second = take_first(&rest);
    set_affinity(&of.first);
    cr_assert_eq(quern_jobs_run(of.jobs, play, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

static void play_search(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    let_helper_use(of, &of->first);
    cr_assert(falls_asleep(&of->jobs->idle, of->helper));
    cr_assert_gt(yield_count(of->helper), 0u);
}

Test(yield, searching_worker_sleeps_on_processor_of_busy_worker)
{
    stage(play_search);
}

static void watch_caller(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    atomic_store(&of->has_begun, true);
    of->was_seen = falls_asleep(&of->jobs->blocked, of->caller);
}

static void play_wait(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    quern_fork fork;
    let_helper_use(of, &of->first);
    hand_over(of, &fork, watch_caller);
    cr_assert_eq(quern_jobs_join(of->jobs, &fork), QUERN_OK);
    cr_assert(of->was_seen);
    cr_assert_gt(yield_count(of->caller), 0u);
}

Test(yield, waiting_worker_sleeps_on_processor_of_busy_worker)
{
    stage(play_wait);
}

static void watch_spinning(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    atomic_store(&of->has_begun, true);
    for (int i = 0; i < 20; i++)
        sleep_ms(1);
    of->was_seen = is_one_of(&of->jobs->blocked, of->caller);
}

static void play_apart(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    quern_fork fork;
    let_helper_use(of, &of->second);
    hand_over(of, &fork, watch_spinning);
    cr_assert_eq(quern_jobs_join(of->jobs, &fork), QUERN_OK);
    cr_assert_not(of->was_seen);
}

Test(yield, waiting_worker_spins_on_its_own_processor)
{
    stage(play_apart);
}

/* Any thread that wakes the worker may keep it from running. */
static void play_arrive(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    let_helper_use(of, &of->first);
    cr_assert(falls_asleep(&of->jobs->idle, of->helper));
    atomic_store(&of->helper->cpu_slot.checked_wakeup_count, 0);
    let_helper_use(of, &of->first);
    const uint32_t watched = atomic_load(&of->helper->cpu_slot.checked_wakeup_count);
    cr_assert_gt(watched, 1u);
    cr_assert(falls_asleep(&of->jobs->idle, of->helper));
    let_helper_use(of, &of->second);
    cr_assert_eq(atomic_load(&of->helper->cpu_slot.checked_wakeup_count), watched);
}

Test(yield, waker_yields_to_worker_woken_on_its_processor)
{
    stage(play_arrive);
}

/* The test compares processor time; a brief job takes far less than a move, even under sanitizers. */
enum { LONG_JOB_NS = 4000000, MOVE_NS = 1000000, MOST_BRIEF_CALLS = 200 };

/* Runs on the helper. */
static void note_staying(void *argument, uint32_t worker_index)
{
    scene *of = *(scene **)argument;
    cr_expect_eq(worker_index, 1u);
    of->was_seen = of->helper->cpu_slot.stays_on_shared_processor;
    of->helper->cpu_slot.move_ns = MOVE_NS;
    const uint64_t start_ns = quern__thread_time_ns();
    while (of->is_long && quern__thread_time_ns() - start_ns < LONG_JOB_NS)
        continue;
    atomic_store(&of->has_begun, true);
}

static void wait_for_sleep_of_helper(scene *of)
{
    cr_assert(falls_asleep(&of->jobs->idle, of->helper));
    while (atomic_load(&of->helper->times.asleep_since_ns) == 0)
        sleep_ms(1);
}

/* Returns whether the helper, woken on the caller's processor for such a job, stayed there. */
static bool stays_for(scene *of, quern_job_def def)
{
    def.function = note_staying;
    def.payload = &of;
    def.payload_bytes = sizeof of;
    atomic_store(&of->has_begun, false);
    cr_assert_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    while (!atomic_load(&of->has_begun))
        sleep_ms(1);
    wait_for_sleep_of_helper(of);
    return of->was_seen;
}

static void play_brief(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    let_helper_use(of, &of->first);
    wait_for_sleep_of_helper(of);
    cr_assert(stays_for(of, (quern_job_def){.name = "plain"}));
    cr_assert(stays_for(of, (quern_job_def){.priority = QUERN_PRIORITY_HIGH}));
    cr_assert(stays_for(of, (quern_job_def){.priority = QUERN_PRIORITY_LOW}));
    cr_assert(stays_for(of, (quern_job_def){.on_worker = 2}));
}

Test(yield, a_woken_worker_stays_for_a_brief_job)
{
    stage(play_brief);
}

static void play_long(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    int call_count = 1;
    let_helper_use(of, &of->first);
    wait_for_sleep_of_helper(of);
    of->is_long = true;
    cr_assert(stays_for(of, (quern_job_def){0})); /* the function is still unknown */
    cr_assert_not(stays_for(of, (quern_job_def){0}));
    of->is_long = false;
    cr_assert_not(stays_for(of, (quern_job_def){0}));
    while (!stays_for(of, (quern_job_def){0}) && call_count < MOST_BRIEF_CALLS)
        call_count++;
    cr_assert_gt(call_count, 4);
    cr_assert_lt(call_count, MOST_BRIEF_CALLS);
}

Test(yield, woken_worker_moves_away_for_recently_long_job)
{
    stage(play_long);
}

static void note_staying_in_fork(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    note_staying(&of, worker_index);
}

static void play_fork(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    quern_fork fork;
    let_helper_use(of, &of->first);
    wait_for_sleep_of_helper(of);
    of->was_seen = true;
    hand_over(of, &fork, note_staying_in_fork);
    cr_assert_eq(quern_jobs_join(of->jobs, &fork), QUERN_OK);
    cr_assert_not(of->was_seen);
}

Test(yield, woken_worker_moves_away_for_shared_work)
{
    stage(play_fork);
}

static void play_let_come(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    let_helper_use(of, &of->second); /* processor on which the helper spins */
    while (atomic_load(&of->helper->times.idle_since_ns) == 0)
        sleep_ms(1);
    const uint32_t before = yield_count(of->caller);
    quern__worker_yield_after_long_work(of->caller);
    cr_assert_eq(yield_count(of->caller), before + 1);
    let_helper_use(of, &of->first); /* processor on which the helper sleeps */
    cr_assert(falls_asleep(&of->jobs->idle, of->helper));
    while (atomic_load(&of->helper->times.asleep_since_ns) == 0)
        sleep_ms(1);
    const uint32_t later = yield_count(of->caller);
    quern__worker_yield_after_long_work(of->caller);
    cr_assert_eq(yield_count(of->caller), later);
}

Test(yield, worker_yields_after_unshared_long_loop)
{
    stage(play_let_come);
}

static uint32_t list(const cpu_set_t *processors, uint32_t *out_list)
{
    uint32_t count = 0;
    for (size_t i = 0; i < CPU_SETSIZE && count < QUERN_MAX_THREADS; i++)
        if (CPU_ISSET(i, processors)) out_list[count++] = (uint32_t)i + 1;
    return count;
}

Test(yield, pinned_thread_runs_on_one_of_its_processors)
{
    cpu_set_t all, after;
    uint32_t processors[QUERN_MAX_THREADS];
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    const uint32_t count = list(&all, processors);
    for (uint32_t i = 0; i < count + 2; i++) {
        set_affinity(&all);
        quern__thread_pin(i);
        cr_assert_eq(sched_getaffinity(0, sizeof after, &after), 0);
        cr_assert_eq(CPU_COUNT(&after), 1);
        cr_assert(CPU_ISSET(processors[i % count] - 1, &after), "number %u", i);
    }
    set_affinity(&all);
}

Test(yield, moved_worker_may_still_use_all_processors)
{
    cpu_set_t all, rest, after;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) cr_skip_test("there is nowhere to go");
    uint32_t processors[QUERN_MAX_THREADS];
    const uint32_t count = list(&all, processors);
    rest = all;
    const cpu_set_t first = take_first(&rest);
    set_affinity(&first);
    cr_assert_eq(quern__thread_processor(), processors[0]);
    cr_assert_not(quern__thread_move_off(processors, 1)); /* the thread is pinned */
    set_affinity(&all);
    cr_assert(quern__thread_move_off(processors, 1));
    cr_assert_eq(sched_getaffinity(0, sizeof after, &after), 0);
    cr_assert(CPU_EQUAL(&all, &after));
    cr_assert_not(quern__thread_move_off(processors, count)); /* all processors are in the list */
    cr_assert_eq(sched_getaffinity(0, sizeof after, &after), 0);
    cr_assert(CPU_EQUAL(&all, &after));
}

#endif
