/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What is the same on all systems, and fallbacks for services that a system lacks. */
#include "core/platform/platform.h"

#include <errno.h>

#if !QUERN__ON_WINDOWS
#include <unistd.h>
#endif

uint32_t quern__fork_count; /* written in a child process while it has one thread */

enum { LOOKS_BEFORE_YIELD = 64 };

void quern__thread_spin_wait(uint32_t look)
{
    quern__relax();
    if (look % LOOKS_BEFORE_YIELD == LOOKS_BEFORE_YIELD - 1) quern__thread_yield();
}

/* --------------------------------------------------------------------------------------------- parker */

/* The owner alone sets SLEEPING and EMPTY; any thread sets PERMIT. The owner blocks only while the state is
 * SLEEPING, and the thread that replaces SLEEPING by PERMIT unblocks it. So no permit is lost, and giving
 * one to an awake owner needs no system call. */
enum { EMPTY, PERMIT, SLEEPING };

/* Release: pairs with the acquire in quern__parker_take_until. */
void quern__parker_give(quern__parker *parker)
{
    if (atomic_exchange_explicit(&parker->state, PERMIT, memory_order_release) == SLEEPING)
        quern__parker_unblock(parker);
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
            quern__parker_block(parker, SLEEPING, until_ns);
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

#if QUERN__HAS_FUTEX

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

bool quern__parker_init(quern__parker *parker)
{
    atomic_init(&parker->state, EMPTY);
    if (!quern__mutex_init(&parker->mutex)) return false;
    if (quern__condition_init(&parker->condition)) return true;
    quern__mutex_deinit(&parker->mutex);
    return false;
}

void quern__parker_deinit(quern__parker *parker)
{
    quern__condition_deinit(&parker->condition);
    quern__mutex_deinit(&parker->mutex);
}

/* The mutex makes comparing and sleeping one step: unblock cannot signal in between. Relaxed: the mutex orders the
 * load. */
void quern__parker_block(quern__parker *parker, uint32_t asleep, uint64_t until_ns)
{
    quern__mutex_lock(&parker->mutex);
    if (atomic_load_explicit(&parker->state, memory_order_relaxed) == asleep)
        quern__condition_wait(&parker->condition, &parker->mutex, until_ns);
    quern__mutex_unlock(&parker->mutex);
}

void quern__parker_unblock(quern__parker *parker)
{
    quern__mutex_lock(&parker->mutex);
    quern__condition_signal(&parker->condition);
    quern__mutex_unlock(&parker->mutex);
}

#endif

/* -------------------------------------------------------------------------------------------- threads */

#if !QUERN__HAS_THREADS

bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument)
{
    (void)thread, (void)stack_bytes, (void)entry, (void)argument;
    return false;
}

void quern__thread_join(quern__thread *thread)
{
    (void)thread;
}

size_t quern__thread_min_stack_bytes(void)
{
    return 64 * 1024;
}

void quern__thread_yield(void) {}

void quern__count_forks(void) {}

#endif

#if !QUERN__ON_WINDOWS && !QUERN__ON_APPLE && (!QUERN__ON_LINUX || QUERN__PORTABLE)

void quern__thread_set_name(const char *name)
{
    (void)name;
}

#endif

#if !QUERN__HAS_MEMBARRIER

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

/* ------------------------------------------------------------------------------------------ processors */

#if !QUERN__HAS_AFFINITY

uint32_t quern__processor_count(void)
{
#if QUERN__HAS_THREADS && !QUERN__ON_WINDOWS
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
#else
    return 1;
#endif
}

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
    return quern__processor_count();
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

#if !QUERN__ON_WINDOWS && !QUERN__ON_APPLE

/* On AMD processors, sysconf of glibc 2.36 multiplies the size of the last level by the number of core complexes: 508 MiB
 * where each core shares 32 MiB. So the last level counts up to 32 MiB: too small a size costs up to a tenth of the time
 * of frames whose data fit the cache, too large a size up to two fifths of that of frames whose data do not. */
size_t quern__host_cache_bytes(uint32_t level)
{
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE) && !QUERN__PORTABLE
    enum { MOST_SHARED_BYTES = 32 * 1024 * 1024 };
    const long bytes = sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
    if (level == 3 && bytes > MOST_SHARED_BYTES) return MOST_SHARED_BYTES;
    return bytes > 0 ? (size_t)bytes : 0;
#else
    (void)level;
    return 0;
#endif
}

#endif

/* ----------------------------------------------------------------------------------------- huge pages */

#if !QUERN__ON_LINUX || QUERN__PORTABLE

void quern__advise_huge_pages(void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}

void quern__collapse_huge_page(void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}

#endif

/* ----------------------------------------------------------------------------------- hardware counters */

#if !QUERN__HAS_PERF_EVENT

const quern__hardware_code quern__hardware_codes[QUERN_HARDWARE_EVENT_COUNT];

int quern__hardware_counter_open(const quern__hardware_code *code, quern_hardware_scope scope)
{
    (void)code;
    (void)scope;
    return -ENOSYS;
}

bool quern__hardware_counter_read(int counter, quern_hardware_reading *reading, int event)
{
    (void)counter;
    (void)reading;
    (void)event;
    return false;
}

void quern__hardware_counter_close(int counter)
{
    (void)counter;
}

#endif
