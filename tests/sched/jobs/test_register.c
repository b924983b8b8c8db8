/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(register_thread, .timeout = 120);

static quern_jobs *open_with_slots(uint32_t thread_count, uint32_t external_thread_count)
{
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = thread_count,
                                .external_thread_count = external_thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    return jobs;
}

typedef struct scene {
    quern_jobs *jobs;
    quern_counter counter;
    uint32_t worker; /* index of the registered thread's worker */
    pthread_t thread;
    _Atomic uint32_t run_count;
    _Atomic uint32_t fault_count;
    _Atomic bool is_registered;
    _Atomic bool is_over;
    bool unregisters;
} scene;

static void run_there(void *argument, uint32_t worker_index)
{
    scene *of = *(scene **)argument;
    if (worker_index != of->worker || !pthread_equal(pthread_self(), of->thread))
        atomic_fetch_add(&of->fault_count, 1);
    atomic_fetch_add(&of->run_count, 1);
}

static void run_anywhere(void *argument, uint32_t worker_index)
{
    scene *of = *(scene **)argument;
    atomic_fetch_add(&of->run_count, 1);
}

static quern_job_def job_for(scene *const *of, quern_job_function *function)
{
    return (quern_job_def){.function = function,
                           .payload = of,
                           .payload_bytes = sizeof *of,
                           .counter = &(*of)->counter,
                           .on_worker = (*of)->worker + 1};
}

static void submit_there(scene *of, quern_job_function *function)
{
    const quern_job_def def = job_for(&of, function);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK, "%s", quern_error_message());
}

/* Runs a registered thread that from time to time runs the jobs assigned to it. */
static void *own_window(void *argument)
{
    scene *of = argument;
    cr_expect_eq(quern_jobs_register_thread(of->jobs, &of->worker), QUERN_OK, "%s", quern_error_message());
    of->thread = pthread_self();
    atomic_store(&of->is_registered, true);
    while (!atomic_load(&of->is_over)) {
        cr_expect_eq(quern_jobs_run_caller_jobs(of->jobs, NULL), QUERN_OK);
        sleep_ms(1);
    }
    if (of->unregisters) cr_expect_eq(quern_jobs_unregister_thread(of->jobs), QUERN_OK);
    return NULL;
}

static pthread_t start_window(scene *of)
{
    pthread_t thread;
    atomic_store(&of->is_registered, false);
    atomic_store(&of->is_over, false);
    cr_assert_eq(pthread_create(&thread, NULL, own_window, of), 0);
    while (!atomic_load(&of->is_registered))
        sleep_ms(1);
    return thread;
}

static void end_window(scene *of, pthread_t thread)
{
    atomic_store(&of->is_over, true);
    pthread_join(thread, NULL);
}

/* -------------------------------------------------------------------------------------------- own slots */

Test(register_thread, jobs_run_on_the_thread_that_is_registered)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        scene of = {.jobs = open_with_slots(thread_counts[t], 2), .unregisters = true};
        pthread_t window = start_window(&of);
        for (uint32_t i = 0; i < 100; i++)
            submit_there(&of, run_there);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
        end_window(&of, window);
        cr_expect_eq(atomic_load(&of.run_count), 100u);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
        quern_jobs_destroy(of.jobs);
    }
}

static void note_worker(void *argument, uint32_t worker_index)
{
    *(uint32_t *)argument = worker_index;
}

/* The thread is the same worker in every call, and no other thread is that worker. */
Test(register_thread, registered_thread_alone_is_always_its_worker)
{
    scene of = {.jobs = open_with_slots(3, 3), .unregisters = true};
    uint32_t own, seen;
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &own), QUERN_OK);
    cr_assert_eq(own, 0u);
    pthread_t window = start_window(&of);
    cr_assert_eq(of.worker, 3u);
    for (uint32_t round = 0; round < 20; round++) {
        cr_assert_eq(quern_jobs_run(of.jobs, note_worker, &seen), QUERN_OK);
        cr_expect_eq(seen, own);
    }
    end_window(&of, window);
    cr_assert_eq(quern_jobs_unregister_thread(of.jobs), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

static void *try_to_run(void *argument)
{
    uint32_t seen = UINT32_MAX;
    scene *of = argument;
    must_refuse(POOL_BUSY, NULL, quern_jobs_run(of->jobs, note_worker, &seen));
    must_refuse(POOL_BUSY, NULL, quern_jobs_register_thread(of->jobs, NULL));
    cr_expect_not_null(strstr(quern_error_message(), "external_thread_count"));
    /* A wait sleeps, and submitted jobs run. */
    const quern_job_def def = {
        .function = run_anywhere, .payload = &of, .payload_bytes = sizeof of, .counter = &of->counter};
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
    return NULL;
}

Test(register_thread, slot_stays_reserved_while_thread_is_outside)
{
    pthread_t thread;
    scene of = {.jobs = open_with_slots(2, 1)};
    cr_assert_eq(quern_jobs_register_thread(of.jobs, NULL), QUERN_OK);
    cr_assert_eq(pthread_create(&thread, NULL, try_to_run, &of), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(atomic_load(&of.run_count), 1u);
    cr_assert_eq(quern_jobs_unregister_thread(of.jobs), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

Test(register_thread, a_thread_may_be_registered_with_several_pools)
{
    quern_jobs *pools[3];
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t worker;
        pools[i] = open_with_slots(1 + i, 1 + i);
        cr_assert_eq(quern_jobs_register_thread(pools[i], &worker), QUERN_OK);
        cr_assert_eq(worker, 0u);
    }
    cr_assert_eq(quern_jobs_unregister_thread(pools[1]), QUERN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        scene of = {.jobs = pools[i], .thread = pthread_self()};
        scene *address = &of;
        const quern_job_def def = job_for(&address, run_there);
        const quern_result expected = i == 1 ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_OK;
        cr_assert_eq(quern_jobs_submit(pools[i], &def), expected);
        cr_assert_eq(quern_jobs_wait(pools[i], &of.counter), QUERN_OK);
        cr_expect_eq(atomic_load(&of.run_count), i == 1 ? 0u : 1u);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
    }
    cr_assert_eq(quern_jobs_unregister_thread(pools[2]), QUERN_OK);
    for (uint32_t i = 0; i < 3; i++)
        quern_jobs_destroy(pools[i]);
}

/* ------------------------------------------------------------------------------------------------ waits */

Test(register_thread, assigned_jobs_run_in_waits_and_run_caller_jobs)
{
    scene of = {.jobs = open_with_slots(2, 2), .thread = pthread_self()};
    uint32_t count = 7;
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &of.worker), QUERN_OK);
    submit_there(&of, run_there);
    sleep_ms(2);
    cr_expect_eq(atomic_load(&of.run_count), 0u); /* no other worker runs it */
    cr_assert_eq(quern_jobs_run_caller_jobs(of.jobs, &count), QUERN_OK);
    cr_expect_eq(count, 1u);
    submit_there(&of, run_there);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 2u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    cr_assert_eq(quern_jobs_unregister_thread(of.jobs), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

static void give_to_thread(void *argument, uint32_t worker_index)
{
    scene *of = *(scene **)argument;
    sleep_ms(3); /* until the thread sleeps */
    submit_there(of, run_there);
}

Test(register_thread, worker_asleep_in_wait_is_woken)
{
    scene of = {.jobs = open_with_slots(2, 1), .thread = pthread_self()};
    scene *address = &of;
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &of.worker), QUERN_OK);
    for (uint32_t round = 0; round < 20; round++) {
        const quern_job_def def = {.function = give_to_thread,
                                   .payload = &address,
                                   .payload_bytes = sizeof address,
                                   .counter = &of.counter,
                                   .on_worker = 2};
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    }
    cr_expect_eq(atomic_load(&of.run_count), 20u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs); /* also ends the registration */
}

/* -------------------------------------------------------------------------------------------- the end */

Test(register_thread, unregistering_runs_assigned_jobs)
{
    scene of = {.jobs = open_with_slots(2, 2), .thread = pthread_self()};
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &of.worker), QUERN_OK);
    for (uint32_t i = 0; i < 10; i++)
        submit_there(&of, run_there);
    cr_assert_eq(quern_jobs_unregister_thread(of.jobs), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 10u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    cr_assert_eq(quern_jobs_register_thread(of.jobs, NULL), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

Test(register_thread, job_assigned_after_unregistering_runs_anywhere)
{
    scene of = {.jobs = open_with_slots(2, 2)};
    scene *address = &of;
    quern_counter before = {0};
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &of.worker), QUERN_OK);
    quern_counter_hold(&before);
    const quern_job_def def = job_for(&address, run_anywhere);
    cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &before), QUERN_OK);
    cr_assert_eq(quern_jobs_unregister_thread(of.jobs), QUERN_OK);
    cr_assert_eq(quern_counter_release(of.jobs, &before), QUERN_OK);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 1u);
    quern_jobs_destroy(of.jobs);
}

/* The slot becomes free, the thread's jobs run, and the pool can be destroyed. */
Test(register_thread, ending_thread_releases_its_slot)
{
    scene of = {.jobs = open_with_slots(2, 1)};
    for (uint32_t round = 0; round < 20; round++) {
        pthread_t window = start_window(&of);
        cr_assert_eq(of.worker, 0u);
        end_window(&of, window);
        cr_assert_eq(quern_jobs_run(of.jobs, note_worker, &(uint32_t){0}), QUERN_OK);
    }
    quern_jobs_destroy(of.jobs);
}

static void *register_and_end(void *argument)
{
    scene *of = argument;
    cr_expect_eq(quern_jobs_register_thread(of->jobs, &of->worker), QUERN_OK);
    for (uint32_t i = 0; i < 10; i++)
        submit_there(of, run_anywhere);
    return NULL;
}

Test(register_thread, jobs_of_a_thread_that_has_ended_run_anywhere)
{
    pthread_t thread;
    scene of = {.jobs = open_with_slots(2, 1)};
    cr_assert_eq(pthread_create(&thread, NULL, register_and_end, &of), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.run_count), 10u);
    quern_jobs_destroy(of.jobs);
}

Test(register_thread, a_pool_is_kept_while_other_threads_are_registered)
{
    scene of = {.jobs = open_with_slots(2, 2), .unregisters = true};
    pthread_t window = start_window(&of);
    must_refuse(POOL_BUSY, NULL, quern_jobs_resize(of.jobs, 3));
    if (!QUERN_CHECKS) assert_refused_value(NULL, (quern_jobs_destroy(of.jobs), false));
    submit_there(&of, run_there);
    cr_assert_eq(quern_jobs_wait(of.jobs, &of.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    end_window(&of, window);
    cr_assert_eq(quern_jobs_resize(of.jobs, 3), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

Test(register_thread, forked_child_has_no_registration)
{
    quern_jobs *jobs = open_with_slots(2, 2);
    cr_assert_eq(quern_jobs_register_thread(jobs, NULL), QUERN_OK);
    pid_t child = fork();
    if (child == 0) {
        bool is_refused = quern_jobs_unregister_thread(jobs) == QUERN_ERROR_THREAD_UNAVAILABLE;
        quern_jobs_destroy(jobs);
        quern_jobs *own;
        const quern_jobs_def def = {.thread_count = 1}; /* sanitizers allow no threads in the child */
        bool has_own =
            quern_jobs_create(&def, &own) == QUERN_OK && quern_jobs_register_thread(own, NULL) == QUERN_OK;
        if (has_own) quern_jobs_destroy(own);
        _exit(is_refused && has_own ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    quern_jobs_destroy(jobs);
}

static uint32_t count_free_keys(void)
{
    static pthread_key_t keys[4096];
    uint32_t count = 0;
    while (count < 4096 && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    for (uint32_t i = 0; i < count; i++)
        pthread_key_delete(keys[i]);
    return count;
}

static void *register_and_unregister(void *argument)
{
    cr_expect_eq(quern_jobs_register_thread(argument, NULL), QUERN_OK, "%s", quern_error_message());
    cr_expect_eq(quern_jobs_unregister_thread(argument), QUERN_OK);
    return NULL;
}

/* A function left with the system would be called after the library that contains it was unloaded. */
Test(register_thread, the_last_pool_leaves_no_key_with_the_system)
{
    const uint32_t free_key_count = count_free_keys();
    quern_jobs *jobs = open_with_slots(2, 2), *others = open_with_slots(1, 2);
    pthread_t thread;
    cr_assert_eq(quern_jobs_register_thread(jobs, NULL), QUERN_OK);
    cr_assert_eq(pthread_create(&thread, NULL, register_and_unregister, others), 0);
    pthread_join(thread, NULL);
    quern_jobs_destroy(others);
    cr_expect_eq(count_free_keys(), free_key_count - 1); /* this thread is still registered */
    quern_jobs_destroy(jobs);
    cr_expect_eq(count_free_keys(), free_key_count);
}

Test(register_thread, refused_registrations_leave_no_key_with_the_system)
{
    const uint32_t free_key_count = count_free_keys();
    scene of = {.jobs = open_with_slots(2, 1)};
    pthread_t window = start_window(&of);
    must_refuse(POOL_BUSY, NULL, quern_jobs_register_thread(of.jobs, NULL));
    end_window(&of, window); /* the thread ends without unregistering */
    quern_jobs_destroy(of.jobs);
    cr_expect_eq(count_free_keys(), free_key_count);
}

/* -------------------------------------------------------------------------------------------- refusals */

static void register_inside(void *argument, uint32_t worker_index)
{
    scene *of = argument;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_register_thread(of->jobs, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_unregister_thread(of->jobs));
}

Test(register_thread, invalid_calls_are_refused)
{
    scene of = {.jobs = open_with_slots(2, 2)};
    scene *address = &of;
    const quern_job_def def = job_for(&address, run_there);
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_register_thread(NULL, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_unregister_thread(NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_unregister_thread(of.jobs));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "quern_jobs_register_thread"));
    cr_assert_eq(quern_jobs_run(of.jobs, register_inside, &of), QUERN_OK);
    cr_assert_eq(quern_jobs_register_thread(of.jobs, NULL), QUERN_OK);
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_register_thread(of.jobs, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "as worker 0"));
    cr_assert_eq(quern_jobs_run(of.jobs, register_inside, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

Test(register_thread, describe_shows_registered_threads)
{
    char text[1000];
    quern_text_buffer buffer = {text, sizeof text, 0};
    scene of = {.jobs = open_with_slots(2, 2)};
    cr_assert_eq(quern_jobs_register_thread(of.jobs, &of.worker), QUERN_OK);
    submit_there(&of, run_anywhere);
    cr_assert_eq(quern_jobs_describe(of.jobs, quern_sink_text(&buffer)), QUERN_OK);
    cr_assert_not_null(strstr(text, "worker 0: outside, registered; deque 0 to 0; 1 for it alone"), "%s",
                       text);
    cr_assert_not_null(strstr(text, "worker 2: outside; "), "%s", text);
    quern_jobs_destroy(of.jobs);
}
