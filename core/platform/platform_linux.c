/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What Linux has beyond POSIX: futexes, sets of processors, a fence on all threads, huge pages, hardware counters. */
#include "core/platform/platform.h"

#if QUERN__ON_LINUX

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if QUERN__HAS_MEMBARRIER
#include <linux/membarrier.h>
#endif
#if QUERN__HAS_PERF_EVENT
#include <linux/perf_event.h>
#endif

#if !QUERN__PORTABLE

void quern__thread_set_name(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

#endif

/* ------------------------------------------------------------------------------------------ processors */

#if QUERN__HAS_AFFINITY

void quern__thread_pin(uint32_t index)
{
    cpu_set_t allowed, chosen;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    index %= (uint32_t)CPU_COUNT(&allowed);
    size_t processor = 0;
    for (; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &allowed) && index-- == 0) break;
    CPU_ZERO(&chosen);
    CPU_SET(processor, &chosen);
    pthread_setaffinity_np(pthread_self(), sizeof chosen, &chosen);
}

static void list_processors(const quern_processors *processors, cpu_set_t *out_set)
{
    CPU_ZERO(out_set);
    for (uint32_t i = 0; i < QUERN_MAX_PROCESSORS && i < CPU_SETSIZE; i++)
        if ((processors->words[i / 64] >> i % 64 & 1) != 0) CPU_SET(i, out_set);
}

/* The system ignores processors that it does not allow, and fails if none is left; so the result is read
 * back. */
bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused)
{
    cpu_set_t wanted, got;
    list_processors(processors, &wanted);
    if (sched_setaffinity(0, sizeof wanted, &wanted) != 0 || sched_getaffinity(0, sizeof got, &got) != 0)
        CPU_ZERO(&got);
    for (*out_refused = 0; *out_refused < CPU_SETSIZE; ++*out_refused)
        if (CPU_ISSET(*out_refused, &wanted) && !CPU_ISSET(*out_refused, &got)) return false;
    return true;
}

uint32_t quern__count_processors_with_caller(const quern_processors *processors)
{
    cpu_set_t own, callers, all;
    list_processors(processors, &own);
    const uint32_t own_count = (uint32_t)CPU_COUNT(&own);
    if (own_count == 0 || sched_getaffinity(0, sizeof callers, &callers) != 0)
        return quern__processor_count();
    CPU_OR(&all, &own, &callers);
    const uint32_t all_count = (uint32_t)CPU_COUNT(&all);
    return all_count > own_count ? own_count + 1 : own_count;
}

uint32_t quern__thread_processor(void)
{
    int processor = sched_getcpu();
    return processor >= 0 ? (uint32_t)processor + 1 : 0;
}

/* The system moves a thread at once if its processor is no longer in its set. */
bool quern__thread_move_off(const uint32_t *processors, uint32_t count)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    others = allowed;
    for (uint32_t i = 0; i < count; i++)
        CPU_CLR(processors[i] - 1, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
    return true;
}

uint32_t quern__processor_count(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return (uint32_t)CPU_COUNT(&allowed);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

#endif

/* -------------------------------------------------------------------------------- fence of all threads */

#if QUERN__HAS_MEMBARRIER

/* Pairs with the compiler-only fences of other threads; see search.c. Linux makes the call a full fence of the caller, too;
 * the fence before it is for emulations of Linux. */
void quern__fence_all_threads(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* Registers the process, which the expedited command requires. Registering again does no harm. */
bool quern__can_fence_all_threads(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

#endif

/* ---------------------------------------------------------------------------------------------- futex */

#if QUERN__HAS_FUTEX

/* Constants of the Linux futex interface, because some C libraries lack linux/futex.h. */
enum { WAKE_PRIVATE = 1 | 128, WAIT_BITSET_PRIVATE = 9 | 128 };
#define ANY_BIT UINT32_MAX

/* The kernel compares and sleeps in one step. The bitset wait takes an absolute time on the clock of quern__clock_ns.
 * The kernel's time has two longs, also where timespec of the C library is wider. */
void quern__parker_block(quern__parker *parker, uint32_t asleep, uint64_t until_ns)
{
    const long end[2] = {(long)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    syscall(SYS_futex, &parker->state, WAIT_BITSET_PRIVATE, asleep, until_ns != 0 ? end : NULL, NULL,
            ANY_BIT);
}

void quern__parker_unblock(quern__parker *parker)
{
    syscall(SYS_futex, &parker->state, WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif

/* ----------------------------------------------------------------------------------------- huge pages */

#if !QUERN__PORTABLE

void quern__advise_huge_pages(void *memory, size_t size_bytes)
{
#if defined(MADV_HUGEPAGE)
    madvise(memory, size_bytes, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size_bytes;
#endif
}

void quern__collapse_huge_page(void *memory, size_t size_bytes)
{
    enum { COLLAPSE = 25 }; /* MADV_COLLAPSE of Linux 6.1; headers of older C libraries lack it */
    quern__advise_huge_pages(memory, size_bytes);
    madvise(memory, size_bytes, COLLAPSE);
}

#endif

/* ----------------------------------------------------------------------------------- hardware counters */

#if QUERN__HAS_PERF_EVENT

#define CACHE_EVENT(cache, result)                                    \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
     PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* Linux has no event for the second level. An access to the last level has missed the second one. */
const quern__hardware_code quern__hardware_codes[QUERN_HARDWARE_EVENT_COUNT] = {
    [QUERN_HARDWARE_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [QUERN_HARDWARE_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [QUERN_HARDWARE_L1_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, MISS)},
    [QUERN_HARDWARE_L2_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, ACCESS)},
    [QUERN_HARDWARE_LLC_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, MISS)},
    [QUERN_HARDWARE_TLB_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(DTLB, MISS)},
};

int quern__hardware_counter_open(const quern__hardware_code *code, quern_hardware_scope scope)
{
    struct perf_event_attr attributes = {
        .type = code->type,
        .size = sizeof attributes,
        .config = code->config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = scope == QUERN_HARDWARE_PROCESS,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return file >= 0 ? (int)file : -errno;
}

bool quern__hardware_counter_read(int counter, quern_hardware_reading *reading, int event)
{
    uint64_t values[3];
    if (read(counter, values, sizeof values) != (ssize_t)sizeof values) return false;
    reading->counts[event] = values[0];
    reading->enabled_ns[event] = values[1];
    reading->running_ns[event] = values[2];
    return true;
}

void quern__hardware_counter_close(int counter)
{
    close(counter);
}

#endif

#endif
