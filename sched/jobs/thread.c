/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#if !defined(_GNU_SOURCE) && defined(__linux__)
#define _GNU_SOURCE
#endif
#include "sched/jobs/thread.h"

#include <limits.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#if __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#define HAS_MEMBARRIER 1
#endif
#endif
#ifndef HAS_MEMBARRIER
#define HAS_MEMBARRIER 0
#endif

enum { LOOKS_BEFORE_YIELD = 64 };

/* --------------------------------------------------------------------------------------------- threads */

/* Sets the stack size, rounded up to whole pages because some systems refuse others. */
static bool set_stack(pthread_attr_t *attributes, size_t stack_bytes)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (stack_bytes > SIZE_MAX - page_bytes) return false;
    size_t rounded_bytes = (stack_bytes + page_bytes - 1) / page_bytes * page_bytes;
    return pthread_attr_setstacksize(attributes, rounded_bytes) == 0;
}

bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    bool has_started = (stack_bytes == 0 || set_stack(&attributes, stack_bytes)) &&
                       pthread_create(&thread->handle, &attributes, entry, argument) == 0;
    pthread_attr_destroy(&attributes);
    return has_started;
}

size_t quern__thread_min_stack_bytes(void)
{
    long bytes = -1;
#if defined(_SC_THREAD_STACK_MIN)
    bytes = sysconf(_SC_THREAD_STACK_MIN);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)PTHREAD_STACK_MIN;
}

void quern__thread_join(quern__thread *thread)
{
    pthread_join(thread->handle, NULL);
}

void quern__thread_set_name(const char *name)
{
#if defined(__linux__)
    pthread_setname_np(pthread_self(), name);
#elif defined(__APPLE__)
    pthread_setname_np(name);
#else
    (void)name;
#endif
}

#if defined(__linux__)

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
        return quern_processor_count();
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

#else

void quern__thread_pin(uint32_t index)
{
    (void)index;
}

bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused)
{
    (void)processors;
    (void)out_refused;
    return true;
}

uint32_t quern__count_processors_with_caller(const quern_processors *processors)
{
    (void)processors;
    return quern_processor_count();
}

uint32_t quern__thread_processor(void)
{
    return 0;
}

bool quern__thread_move_off(const uint32_t *processors, uint32_t count)
{
    (void)processors;
    (void)count;
    return false;
}

#endif

void quern__thread_yield(void)
{
    sched_yield();
}

void quern__thread_spin_wait(uint32_t look)
{
    quern__relax();
    if (look % LOOKS_BEFORE_YIELD == LOOKS_BEFORE_YIELD - 1) sched_yield();
}

uint32_t quern__fork_count; /* written in a child process while it has one thread */

static void count_fork(void)
{
    quern__fork_count++;
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void quern__count_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

/* -------------------------------------------------------------------------------- fence of all threads */

#if HAS_MEMBARRIER && !QUERN__FENCE_FREE

/* Pairs with the compiler-only fences of other threads; see search.c. */
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

#else

/* Pairs with the compiler-only fences of other threads; see search.c. */
void quern__fence_all_threads(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

bool quern__can_fence_all_threads(void)
{
    return false;
}

#endif

/* ----------------------------------------------------------------------------------------------- clock */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t quern__clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t quern__thread_time_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint32_t quern_processor_count(void)
{
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return (uint32_t)CPU_COUNT(&allowed);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

/* ------------------------------------------------------------------------------------------- condition */

/* macOS cannot set a condition's clock; it has a wait with a relative timeout instead. */
#if defined(__APPLE__)

bool quern__condition_init(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL) == 0;
}

static void wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
    uint64_t now_ns = quern__clock_ns();
    struct timespec left = time_of(until_ns > now_ns ? until_ns - now_ns : 0);
    (void)pthread_cond_timedwait_relative_np(condition, mutex, &left);
}

#else

bool quern__condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    bool is_good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(condition, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return is_good;
}

static void wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
    struct timespec end = time_of(until_ns);
    (void)pthread_cond_timedwait(condition, mutex, &end);
}

#endif

void quern__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
    if (until_ns == 0)
        pthread_cond_wait(condition, mutex);
    else
        wait_until(condition, mutex, until_ns);
}

/* ---------------------------------------------------------------------------------------------- parker */

/* The owner alone sets SLEEPING and EMPTY; any thread sets PERMIT. The owner blocks only while the state is
 * SLEEPING, and the thread that replaces SLEEPING by PERMIT unblocks it. So no permit is lost, and giving
 * one to an awake owner needs no system call. */
enum { EMPTY, PERMIT, SLEEPING };

#if QUERN__FUTEX

/* Constants of the Linux futex interface, because some C libraries lack linux/futex.h. */
enum { WAKE_PRIVATE = 1 | 128, WAIT_BITSET_PRIVATE = 9 | 128 };
#define ANY_BIT UINT32_MAX

/* Blocks while the state is SLEEPING; the kernel compares and sleeps in one step. The bitset wait takes an
 * absolute time on the clock of quern__clock_ns. The kernel's time has two longs, also where timespec of
 * the C library is wider. */
static void block(quern__parker *parker, uint64_t until_ns)
{
    const struct timespec time = time_of(until_ns);
    const long end[2] = {(long)time.tv_sec, (long)time.tv_nsec};
    syscall(SYS_futex, &parker->state, WAIT_BITSET_PRIVATE, SLEEPING, until_ns != 0 ? end : NULL, NULL,
            ANY_BIT);
}

static void unblock(quern__parker *parker)
{
    syscall(SYS_futex, &parker->state, WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool quern__parker_init(quern__parker *parker)
{
    atomic_init(&parker->state, EMPTY);
    return true;
}

void quern__parker_deinit(quern__parker *parker)
{
    (void)parker;
}

#else

/* Blocks while the state is SLEEPING. The mutex makes comparing and sleeping one step: unblock cannot
 * signal in between. Relaxed: the mutex orders the load. May return early. */
static void block(quern__parker *parker, uint64_t until_ns)
{
    pthread_mutex_lock(&parker->mutex);
    if (atomic_load_explicit(&parker->state, memory_order_relaxed) == SLEEPING)
        quern__condition_wait(&parker->condition, &parker->mutex, until_ns);
    pthread_mutex_unlock(&parker->mutex);
}

static void unblock(quern__parker *parker)
{
    pthread_mutex_lock(&parker->mutex);
    pthread_cond_signal(&parker->condition);
    pthread_mutex_unlock(&parker->mutex);
}

bool quern__parker_init(quern__parker *parker)
{
    atomic_init(&parker->state, EMPTY);
    if (pthread_mutex_init(&parker->mutex, NULL) != 0) return false;
    if (quern__condition_init(&parker->condition)) return true;
    pthread_mutex_destroy(&parker->mutex);
    return false;
}

void quern__parker_deinit(quern__parker *parker)
{
    pthread_cond_destroy(&parker->condition);
    pthread_mutex_destroy(&parker->mutex);
}

#endif

/* Release: pairs with the acquire in quern__parker_take_until. */
void quern__parker_give(quern__parker *parker)
{
    if (atomic_exchange_explicit(&parker->state, PERMIT, memory_order_release) == SLEEPING) unblock(parker);
}

/* Acquire: pairs with the release in quern__parker_give. The swap is relaxed, because the exchange after
 * the sleep acquires. If the time is up, the exchange has also ended SLEEPING. */
void quern__parker_take_until(quern__parker *parker, uint64_t until_ns)
{
    while (atomic_exchange_explicit(&parker->state, EMPTY, memory_order_acquire) != PERMIT) {
        uint32_t expected = EMPTY;
        if (until_ns != 0 && quern__clock_ns() >= until_ns) return;
        /* The swap fails if a permit arrived after the exchange; the next exchange takes it. */
        if (atomic_compare_exchange_strong_explicit(&parker->state, &expected, SLEEPING,
                                                    memory_order_relaxed, memory_order_relaxed))
            block(parker, until_ns);
    }
}

void quern__parker_take(quern__parker *parker)
{
    quern__parker_take_until(parker, 0);
}

/* Acquire: pairs with the release in quern__parker_give, because the owner may immediately read what the
 * giver wrote. */
bool quern__parker_has_permit(const quern__parker *parker)
{
    return atomic_load_explicit(&parker->state, memory_order_acquire) == PERMIT;
}
