/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include <quern/jobs.h>

#include <criterion/criterion.h>

/* A system that does not say on which processors a thread may run: Linux, if it has more of them than a set of the C library
 * can hold. The library calls the function of this file instead of that of the C library. */

#if defined(__linux__) && QUERN__HAS_AFFINITY

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static uint32_t asked_count;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the names of the C library are reserved */
int sched_getaffinity(pid_t id, size_t bytes, cpu_set_t *out_set)
{
    (void)id;
    memset(out_set, 0xFF, bytes); /* the library must not use it */
    asked_count++;
    errno = EINVAL;
    return -1;
}

Test(unknown_processors, all_that_are_online_count)
{
    cr_assert_eq(quern_processor_count(), (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    cr_assert_eq(asked_count, 1u);
}

Test(unknown_processors, sets_are_refused_at_their_first_processor)
{
    quern_processors processors = {.words[0] = 1};
    uint32_t refused = 7;
    cr_assert_not(quern__thread_set_processors(&processors, &refused));
    cr_assert_eq(refused, 0u);
    cr_assert_eq(quern__count_processors_with_caller(&processors), quern_processor_count());
}

Test(unknown_processors, threads_are_neither_pinned_nor_moved)
{
    const uint32_t processor = 1;
    cr_assert_not(quern__thread_move_off(&processor, 1));
    quern__thread_pin(0);
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = 2, .pin_threads = true};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_jobs_thread_count(jobs), 2u);
    quern_jobs_destroy(jobs);
}

#endif
