/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/counted_items.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <sys/wait.h>
#include <unistd.h>

/* Rejected loops, and names of loops. */

TestSuite(submit_loop_refused, .timeout = 120);

Test(submit_loop_refused, without_memory_nothing_is_submitted_or_the_loop_runs)
{
    failing_allocator *memory = failing_allocator_create();
    quern_jobs_def pool = {.thread_count = 3, .allocator = failing_allocator_interface(memory)};
    quern_jobs *jobs;
    cr_assert_eq(quern_jobs_create(&pool, &jobs), QUERN_OK);
    items *of = open_items(jobs);
    failing_allocator_fail_from(memory, failing_allocator_call_count(memory) + 1);
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
