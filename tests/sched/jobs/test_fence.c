/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include <criterion/criterion.h>

/* The fence of all threads. What it orders shows only if two threads run at the same moment, so this test asks whether the
 * library has the system execute it. The linker redirects the library's calls to this file (--wrap; see the list of
 * tests). */

#if QUERN__HAS_MEMBARRIER

#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t registered_count, fence_count;
static int result;

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names */

long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const int command = va_arg(arguments, int);
    va_end(arguments);
    cr_assert_eq(number, SYS_membarrier);
    registered_count += command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    fence_count += command == MEMBARRIER_CMD_PRIVATE_EXPEDITED && registered_count > 0;
    return result;
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

Test(fence, of_all_threads_is_registered_and_executed)
{
    cr_assert(quern__can_fence_all_threads());
    quern__fence_all_threads();
    cr_assert_eq(fence_count, 1u);
    result = -1;
    cr_assert_not(quern__can_fence_all_threads());
}

#endif
