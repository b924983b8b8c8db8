/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Several external threads in one pool at the same time. */

TestSuite(external_threads, .timeout = 240);

enum { MAX_OUTSIDE = 8, MAX_INDEX = 32 };

/* Data shared by the threads of a test. */
typedef struct party {
    quern_jobs *jobs;
    pthread_barrier_t start;
    uint32_t thread_count; /* number of external threads */
    uint32_t round_count;
    /* Plain, by worker: two threads with one index at the same time are a race. */
    uint64_t sums[MAX_INDEX];
    bool is_busy[MAX_INDEX];
    _Atomic uint32_t run_count;
    _Atomic uint32_t refused_count;
    _Atomic uint32_t inside_count;
    _Atomic bool may_leave;
    quern_counter counter;
} party;

typedef struct outsider {
    party *of;
    uint32_t number;
    pthread_t thread;
} outsider;

static quern_jobs *open_with_slots(uint32_t thread_count, uint32_t external_thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count, .external_thread_count = external_thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    return jobs;
}

static void run_side_by_side(party *of, void *(*entry)(void *argument))
{
    outsider outsiders[MAX_OUTSIDE];
    pthread_barrier_init(&of->start, NULL, of->thread_count);
    for (uint32_t i = 0; i < of->thread_count; i++) {
        outsiders[i] = (outsider){.of = of, .number = i};
        cr_assert_eq(pthread_create(&outsiders[i].thread, NULL, entry, &outsiders[i]), 0);
    }
    for (uint32_t i = 0; i < of->thread_count; i++)
        pthread_join(outsiders[i].thread, NULL);
    pthread_barrier_destroy(&of->start);
}

/* Checks that the calling thread has its worker index to itself. */
static void occupy(party *of, uint32_t worker_index)
{
    cr_assert(worker_index < quern_jobs_worker_count(of->jobs));
    cr_expect(!of->is_busy[worker_index], "two at the same time with index %u", worker_index);
    of->is_busy[worker_index] = true;
}

static void release(party *of, uint32_t worker_index)
{
    of->is_busy[worker_index] = false;
}

/* ---------------------------------------------------------------------------------------- definitions */

Test(external_threads, pool_has_worker_per_own_thread_and_external_slot)
{
    for (uint32_t thread_count = 1; thread_count <= 3; thread_count++)
        for (uint32_t external_thread_count = 0; external_thread_count <= 4; external_thread_count++) {
            quern_jobs *jobs = open_with_slots(thread_count, external_thread_count);
            cr_expect_eq(quern_jobs_thread_count(jobs), thread_count);
            cr_expect_eq(quern_jobs_worker_count(jobs),
                         thread_count - 1 + (external_thread_count == 0 ? 1 : external_thread_count));
            quern_jobs_destroy(jobs);
        }
    cr_expect_eq(quern_jobs_worker_count(NULL), 0u);
}

static void refuse(const quern_jobs_def *def, const char *part)
{
    quern_jobs *jobs = NULL;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_create(def, &jobs));
    cr_expect(strstr(quern_error_message(), part) != NULL, "%s", quern_error_message());
    cr_expect(jobs == NULL);
}

Test(external_threads, too_many_slots_are_refused)
{
    refuse(&(quern_jobs_def){.external_thread_count = QUERN_MAX_EXTERNAL_THREADS + 1},
           "QUERN_MAX_EXTERNAL_THREADS");
    refuse(&(quern_jobs_def){.thread_count = QUERN_MAX_THREADS, .external_thread_count = 2},
           "QUERN_MAX_THREADS");
    refuse(
        &(quern_jobs_def){.thread_count = UINT32_MAX, .external_thread_count = QUERN_MAX_EXTERNAL_THREADS},
        "QUERN_MAX_THREADS");
    quern_jobs *jobs = open_with_slots(1, QUERN_MAX_EXTERNAL_THREADS);
    cr_expect_eq(quern_jobs_worker_count(jobs), (uint32_t)QUERN_MAX_EXTERNAL_THREADS);
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_resize(jobs, QUERN_MAX_THREADS));
    quern_jobs_destroy(jobs);
}

/* ---------------------------------------------------------------------------------------- no free slot */

static void stay(void *argument, uint32_t worker_index)
{
    party *of = argument;
    occupy(of, worker_index);
    atomic_fetch_add(&of->inside_count, 1);
    while (!atomic_load(&of->may_leave))
        sleep_ms(1);
    release(of, worker_index);
}

static void *come_and_stay(void *argument)
{
    outsider *self = argument;
    cr_expect_eq(quern_jobs_run(self->of->jobs, stay, self->of), QUERN_OK);
    return NULL;
}

static void do_nothing(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index) {}

static void expect_busy(quern_result result)
{
    cr_expect_eq(result, QUERN_ERROR_POOL_BUSY);
    cr_expect(strstr(quern_error_message(), ".external_thread_count") != NULL, "%s", quern_error_message());
    cr_expect(strstr(quern_error_message(), "all 2 external slots") != NULL, "%s", quern_error_message());
}

static void come_in_vain(party *of)
{
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    expect_busy(quern_jobs_parallel_for(of->jobs, 4, 1, do_nothing, NULL));
    expect_busy(quern_jobs_run(of->jobs, stay, of));
    expect_busy(quern_jobs_run_caller_jobs(of->jobs, NULL));
    expect_busy(quern_graph_run(graph, of->jobs));
    cr_expect_eq(quern_jobs_resize(of->jobs, 4), QUERN_ERROR_POOL_BUSY);
    quern_graph_destroy(graph);
}

/* Destroying and resizing fail while one external thread is inside, although a slot is free. */
static void refuse_the_end(party *of)
{
    captured_reports reports;
    cr_expect_eq(quern_jobs_resize(of->jobs, 4), QUERN_ERROR_POOL_BUSY);
    capture_reports(&reports);
    quern_jobs_destroy(of->jobs);
    cr_expect_eq(reports.log_count, 1u);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

static void submit_counted(party *of, quern_job_function *function, bool caller_only)
{
    const quern_job_def def = {.function = function,
                               .payload = &of,
                               .payload_bytes = sizeof of,
                               .on_worker = caller_only ? QUERN_ON_CALLER : 0,
                               .counter = &of->counter};
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK, "%s", quern_error_message());
}

static void count(void *argument, uint32_t worker_index)
{
    party *of = *(party **)argument;
    cr_expect(worker_index < quern_jobs_worker_count(of->jobs));
    atomic_fetch_add(&of->run_count, 1);
}

Test(external_threads, thread_without_slot_gets_error_and_may_submit_and_wait)
{
    party of = {.jobs = open_with_slots(3, 2)};
    outsider inside[2];
    for (uint32_t i = 0; i < 2; i++) {
        inside[i] = (outsider){.of = &of, .number = i};
        cr_assert_eq(pthread_create(&inside[i].thread, NULL, come_and_stay, &inside[i]), 0);
        while (atomic_load(&of.inside_count) != i + 1)
            sleep_ms(1);
        if (i == 0) refuse_the_end(&of);
    }
    come_in_vain(&of);
    for (uint32_t i = 0; i < 100; i++)
        submit_counted(&of, count, false);
    cr_expect_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 100u);
    atomic_store(&of.may_leave, true);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(inside[i].thread, NULL);
    cr_expect_eq(quern_jobs_parallel_for(of.jobs, 4, 1, do_nothing, NULL), QUERN_OK);
    cr_expect_eq(quern_jobs_resize(of.jobs, 2), QUERN_OK);
    cr_expect_eq(quern_jobs_worker_count(of.jobs), 3u);
    quern_jobs_destroy(of.jobs);
}

static void *wait_for_all(void *argument)
{
    outsider *self = argument;
    cr_expect_eq(quern_jobs_wait(self->of->jobs, &self->of->counter), QUERN_OK);
    cr_expect_eq(atomic_load(&self->of->run_count), 1u);
    return NULL;
}

/* The pool has no threads of its own, so only an external thread that slept outside can run the job. */
Test(external_threads, outside_waiter_enters_when_slot_is_free)
{
    for (uint32_t round = 0; round < 20; round++) {
        party of = {.jobs = open_with_slots(1, 2)};
        outsider inside[2], waiting[3];
        for (uint32_t i = 0; i < 2; i++) {
            inside[i] = (outsider){.of = &of, .number = i};
            cr_assert_eq(pthread_create(&inside[i].thread, NULL, come_and_stay, &inside[i]), 0);
        }
        while (atomic_load(&of.inside_count) != 2)
            sleep_ms(1);
        submit_counted(&of, count, false);
        for (uint32_t i = 0; i < 3; i++) {
            waiting[i] = (outsider){.of = &of, .number = i};
            cr_assert_eq(pthread_create(&waiting[i].thread, NULL, wait_for_all, &waiting[i]), 0);
        }
        if (round % 2 == 0) sleep_ms(2);
        cr_expect_eq(atomic_load(&of.run_count), 0u);
        atomic_store(&of.may_leave, true);
        for (uint32_t i = 0; i < 3; i++)
            pthread_join(waiting[i].thread, NULL);
        for (uint32_t i = 0; i < 2; i++)
            pthread_join(inside[i].thread, NULL);
        quern_jobs_destroy(of.jobs);
    }
}

/* ------------------------------------------------------------------------------------- at the same time */

enum { ITEM_COUNT = 200, TREE_DEPTH = 5, JOB_COUNT = 20 };

static void add_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    party *of = argument;
    occupy(of, worker_index);
    of->sums[worker_index] += end - begin;
    release(of, worker_index);
}

typedef struct branch {
    party *of;
    uint32_t depth;
} branch;

static void add_tree(void *argument, uint32_t worker_index)
{
    const branch *root = argument;
    occupy(root->of, worker_index);
    root->of->sums[worker_index]++;
    release(root->of, worker_index);
    if (root->depth == 0) return;
    branch smaller = {root->of, root->depth - 1};
    quern_fork fork;
    cr_expect_eq(quern_jobs_fork(root->of->jobs, &fork, add_tree, &smaller), QUERN_OK);
    add_tree(&smaller, worker_index);
    cr_expect_eq(quern_jobs_join(root->of->jobs, &fork), QUERN_OK);
}

static void add_one(void *argument, uint32_t worker_index)
{
    party *of = *(party **)argument;
    occupy(of, worker_index);
    of->sums[worker_index]++;
    release(of, worker_index);
}

static void submit_some(party *of, quern_counter *counter)
{
    quern_job_def def = {
        .function = add_one, .payload = &of, .payload_bytes = sizeof of, .counter = counter};
    for (uint32_t i = 0; i < JOB_COUNT; i++) {
        def.priority = (quern_priority)(i % 3);
        def.on_worker = i % 5 == 0 ? QUERN_ON_CALLER : 0;
        cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    }
}

static void *take_part(void *argument)
{
    const outsider *self = argument;
    party *of = self->of;
    pthread_barrier_wait(&of->start);
    for (uint32_t round = 0; round < of->round_count; round++) {
        quern_counter counter = {0};
        branch root = {of, TREE_DEPTH};
        submit_some(of, &counter);
        cr_expect_eq(quern_jobs_parallel_for(of->jobs, ITEM_COUNT, 1 + round % 3, add_items, of), QUERN_OK);
        cr_expect_eq(quern_jobs_run(of->jobs, add_tree, &root), QUERN_OK);
        cr_expect_eq(quern_jobs_wait(of->jobs, &counter), QUERN_OK);
    }
    return NULL;
}

static uint64_t sum_of(const party *of)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < quern_jobs_worker_count(of->jobs); i++)
        sum += of->sums[i];
    return sum;
}

static void play(quern_jobs *jobs, uint32_t outsider_count, uint32_t round_count)
{
    party of = {.jobs = jobs, .thread_count = outsider_count, .round_count = round_count};
    run_side_by_side(&of, take_part);
    const uint64_t in_round = ITEM_COUNT + ((uint64_t)2 << TREE_DEPTH) - 1 + JOB_COUNT;
    cr_expect_eq(sum_of(&of), in_round * round_count * outsider_count);
    cr_expect_eq((uint32_t)atomic_load(&jobs->external_slots), 0u, "all have left");
}

Test(external_threads, each_thread_inside_has_its_own_index)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (uint32_t external_thread_count = 1; external_thread_count <= MAX_OUTSIDE;
             external_thread_count += 1 + external_thread_count / 3) {
            quern_jobs *jobs = open_with_slots(thread_counts[t], external_thread_count);
            play(jobs, external_thread_count, 30);
            cr_expect_eq(quern_jobs_resize(jobs, 2), QUERN_OK);
            play(jobs, external_thread_count, 5);
            quern_jobs_destroy(jobs);
        }
}

Test(external_threads, work_in_pool_that_never_spins)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 3, .external_thread_count = 4, .disable_spinning = true};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    play(jobs, 4, 60);
    quern_jobs_destroy(jobs);
}

/* ---------------------------------------------------------------------------- more threads than slots */

static void *submit_and_wait(void *argument)
{
    const outsider *self = argument;
    party *of = self->of;
    pthread_barrier_wait(&of->start);
    for (uint32_t round = 0; round < of->round_count; round++) {
        quern_counter first = {0}, second = {0};
        const quern_job_def after = {
            .function = add_one, .payload = &of, .payload_bytes = sizeof of, .counter = &second};
        quern_counter_hold(&first);
        submit_some(of, &first);
        cr_expect_eq(quern_jobs_submit_after(of->jobs, &after, &first), QUERN_OK);
        cr_expect_eq(quern_counter_release(of->jobs, &first), QUERN_OK);
        cr_expect_eq(quern_jobs_wait(of->jobs, &second), QUERN_OK);
    }
    return NULL;
}

Test(external_threads, more_threads_than_slots_submit_and_wait)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++)
        for (uint32_t external_thread_count = 1; external_thread_count <= 3; external_thread_count++) {
            party of = {.jobs = open_with_slots(thread_counts[t], external_thread_count),
                        .thread_count = MAX_OUTSIDE,
                        .round_count = 30};
            run_side_by_side(&of, submit_and_wait);
            cr_expect_eq(sum_of(&of), (uint64_t)(JOB_COUNT + 1) * of.round_count * of.thread_count);
            quern_jobs_destroy(of.jobs);
        }
}

/* ------------------------------------------------------------------------------------------ caller jobs */

static void note_external(void *argument, uint32_t worker_index)
{
    party *of = *(party **)argument;
    cr_expect(worker_index == 0 || worker_index >= quern_jobs_thread_count(of->jobs),
              "worker %u is not external", worker_index);
    atomic_fetch_add(&of->run_count, 1);
}

/* Each thread waits for a hold that is released when all caller-only jobs have run, on any thread. */
static void *wait_until_released(void *argument)
{
    outsider *self = argument;
    cr_expect_eq(quern_jobs_wait(self->of->jobs, &self->of->counter), QUERN_OK);
    return NULL;
}

Test(external_threads, caller_only_jobs_run_on_any_waiting_external_thread)
{
    for (uint32_t round = 0; round < 10; round++) {
        party of = {.jobs = open_with_slots(3, 4), .thread_count = 3};
        outsider waiting[3];
        quern_counter_hold(&of.counter);
        for (uint32_t i = 0; i < 3; i++) {
            waiting[i] = (outsider){.of = &of, .number = i};
            cr_assert_eq(pthread_create(&waiting[i].thread, NULL, wait_until_released, &waiting[i]), 0);
        }
        if (round % 2 == 0) sleep_ms(2); /* the threads sleep by now */
        quern_counter done = {0};
        party *shared = &of;
        const quern_job_def def = {.function = note_external,
                                   .payload = &shared,
                                   .payload_bytes = sizeof shared,
                                   .on_worker = QUERN_ON_CALLER,
                                   .counter = &done};
        for (uint32_t i = 0; i < 40; i++)
            cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        while (!quern_counter_is_done(&done))
            sleep_ms(1); /* without entering */
        cr_expect_eq(quern_counter_release(of.jobs, &of.counter), QUERN_OK);
        for (uint32_t i = 0; i < 3; i++)
            pthread_join(waiting[i].thread, NULL);
        cr_expect_eq(atomic_load(&of.run_count), 40u);
        quern_jobs_destroy(of.jobs);
    }
}

/* ----------------------------------------------------------------------------------------- host threads */

typedef struct host_call {
    void (*function)(void *data);
    void *data;
} host_call;

static void *make_call(void *argument)
{
    host_call call = *(host_call *)argument;
    free(argument);
    call.function(call.data);
    return NULL;
}

static void start_thread(void *user_data, void (*function)(void *data), void *data)
{
    host_call *call = malloc(sizeof *call);
    pthread_t thread;
    cr_assert(call != NULL);
    *call = (host_call){function, data};
    cr_assert_eq(pthread_create(&thread, NULL, make_call, call), 0);
    pthread_detach(thread);
}

Test(external_threads, work_in_pool_on_host_threads)
{
    quern_jobs *jobs;
    quern_jobs_def def = {
        .thread_count = 3, .external_thread_count = 3, .host_threads = {.submit = start_thread}};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    play(jobs, 3, 20);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------------------ forks */

#if !defined(__SANITIZE_THREAD__) /* ThreadSanitizer does not support children of programs with threads */

/* The threads that were inside exist only in the parent, so the child must not wait for them. */
Test(external_threads, forked_child_has_no_external_threads)
{
    quern_jobs *jobs = open_with_slots(1, 2);
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        quern_result result = quern_jobs_parallel_for(jobs, 4, 1, do_nothing, NULL);
        quern_jobs_destroy(jobs);
        _exit(result == QUERN_ERROR_THREAD_UNAVAILABLE ? 0 : 1);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect_eq(quern_jobs_parallel_for(jobs, 4, 1, do_nothing, NULL), QUERN_OK);
    quern_jobs_destroy(jobs);
}

#endif

/* --------------------------------------------------------------------------------------------- describe */

Test(external_threads, describe_shows_threads_inside)
{
    party of = {.jobs = open_with_slots(2, 3)};
    outsider inside = {.of = &of};
    char text[2000];
    quern_text_buffer buffer = {text, sizeof text, 0};
    cr_assert_eq(pthread_create(&inside.thread, NULL, come_and_stay, &inside), 0);
    while (atomic_load(&of.inside_count) != 1)
        sleep_ms(1);
    cr_assert_eq(quern_jobs_describe(of.jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_expect(strstr(text, "2 threads, 1 of 3 external threads inside") != NULL, "%s", text);
    cr_expect(strstr(text, "worker 0: outside") == NULL, "%s", text);
    cr_expect(strstr(text, "worker 2: outside") != NULL, "%s", text);
    cr_expect(strstr(text, "worker 3: outside") != NULL, "%s", text);
    atomic_store(&of.may_leave, true);
    pthread_join(inside.thread, NULL);
    quern_jobs_destroy(of.jobs);
}
