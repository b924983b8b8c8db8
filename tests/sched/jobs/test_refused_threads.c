/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/observe/profile_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Pools whose threads the system partly refuses. */

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

TestSuite(refused_threads, .timeout = 120);

/* Leaves address space for the stacks of a few more threads, but not for many. */
static struct rlimit leave_address_space(uint64_t bytes)
{
    unsigned long used_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file != NULL && fscanf(file, "%lu", &used_pages) == 1);
    fclose(file);
    struct rlimit before, limit;
    cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = used_pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)bytes;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    return before;
}

#if !defined(__SANITIZE_THREAD__)

Test(refused_threads, create_releases_all_threads)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_jobs_def def = {.thread_count = QUERN_MAX_THREADS,
                          .name = "crowd",
                          .allocator = failing_allocator_interface(allocator)};
    cr_assert_eq(quern_trace_create(NULL, &def.trace), QUERN_OK);
    struct rlimit before = leave_address_space(100u << 20);
    quern_jobs *jobs = NULL;
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_ERROR_THREAD_UNAVAILABLE);
    setrlimit(RLIMIT_AS, &before);
    cr_assert_null(jobs);
    cr_assert_not_null(strstr(quern_error_message(), "crowd"));
    cr_assert_eq(failing_allocator_outstanding_bytes(allocator), 0u);
    cr_assert_eq(def.trace->observer.user_count, 0u);
    quern_trace_destroy(def.trace);
    failing_allocator_destroy(allocator);
}

#endif

/* The threads search for jobs from their start, so all must know how many there are. */
Test(refused_threads, resize_keeps_the_threads_that_started)
{
    enum { ASKED_COUNT = 12 };
    const size_t stack_bytes = (size_t)256 << 20;
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = 2, .external_thread_count = 2, .stack_bytes = stack_bytes};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
    struct rlimit before = leave_address_space(5 * stack_bytes);
    quern_result result = quern_jobs_resize(jobs, ASKED_COUNT);
    setrlimit(RLIMIT_AS, &before);
    cr_assert_eq(result, QUERN_ERROR_THREAD_UNAVAILABLE);
    const uint32_t thread_count = quern_jobs_thread_count(jobs);
    cr_assert(thread_count > 2 && thread_count < ASKED_COUNT, "%u threads", thread_count);
    cr_assert_eq(quern_jobs_worker_count(jobs), thread_count + 1);
    for (uint32_t round = 0; round < 20; round++) {
        fib whole = {jobs, 12, 0};
        cr_assert_eq(quern_jobs_run(jobs, run_fib, &whole), QUERN_OK);
        cr_assert_eq(whole.result, 144u);
    }
    cr_assert_eq(quern_jobs_resize(jobs, 3), QUERN_OK);
    quern_jobs_destroy(jobs);
}

#else

Test(refused_threads, platform_cannot_refuse_threads)
{
    cr_skip_test("address space can be limited on Linux without the address sanitizer only");
}

#endif
