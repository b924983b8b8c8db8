/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLATFORM_PLATFORM_H
#define QUERN_CORE_PLATFORM_PLATFORM_H

/* Services of the operating system: threads, sleeping and waking, processors, clocks, memory, files, and hardware
 * counters. There is one source file for each system, platform_SYSTEM.c. platform_portable.c has the fallbacks for
 * services that a system lacks, and what is the same on all systems. */

#include "core/platform/systems.h"

#include <quern/hardware.h>
#include <quern/jobs.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if !QUERN__ON_WINDOWS
#include <pthread.h>
#endif

/* -------------------------------------------------------------------------------------------- threads */

#define QUERN__THREAD_NAME_BYTES 16 /* includes the terminator; Linux limits names to this */

typedef struct quern__thread {
#if QUERN__ON_WINDOWS
    void *handle;
    void *(*entry)(void *argument);
    void *argument;
#else
    pthread_t handle;
#endif
} quern__thread;

/* Starts a thread. Returns false if the system refuses it. stack_bytes: 0 means the system's default. The struct stays
 * where it is until the thread is joined. */
bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument);
void quern__thread_join(quern__thread *thread);

/* Returns the smallest stack size that the system accepts. */
size_t quern__thread_min_stack_bytes(void);

/* Names the calling thread, for debuggers and profilers. */
void quern__thread_set_name(const char *name);

/* Lets other threads that wait for the calling thread's processor run first. */
void quern__thread_yield(void);

/* Sleeps for at least this time. */
void quern__thread_sleep(uint64_t ns);

/* Pauses between two reads of a value that another thread will change within a few instructions. look:
 * number of reads so far. After many reads the other thread probably does not run, and the call yields the
 * processor. */
void quern__thread_spin_wait(uint32_t look);

/* Installs, once per process, a fork handler that increments quern__fork_count in child processes. A child
 * has one thread. */
void quern__count_forks(void);
extern uint32_t quern__fork_count;

/* Executes a seq_cst fence on every running thread of the process, including the caller, before it returns.
 * May be called only if quern__can_fence_all_threads returned true. */
void quern__fence_all_threads(void);
bool quern__can_fence_all_threads(void);

/* -------------------------------------------------------------------------------------- once, and exits */

typedef struct quern__once {
#if QUERN__ON_WINDOWS
    void *state; /* INIT_ONCE */
#else
    pthread_once_t handle;
#endif
} quern__once;

#if QUERN__ON_WINDOWS
#define QUERN__ONCE_INIT \
    {                    \
        NULL             \
    }
#else
#define QUERN__ONCE_INIT  \
    {                     \
        PTHREAD_ONCE_INIT \
    }
#endif

/* Calls the function at the first call with `once`. It has returned when any call with `once` returns. */
void quern__call_once(quern__once *once, void (*function)(void));

/* A function that the system calls with the value of an ending thread, if that value is not NULL. */
typedef struct quern__exit_key {
#if QUERN__ON_WINDOWS
    uint32_t index;
#else
    pthread_key_t key;
#endif
} quern__exit_key;

/* Returns false if the system has no key left. */
bool quern__exit_key_init(quern__exit_key *key, void (*function)(void *value));

/* Returns the key to the system, which then calls the function no more. No thread has a value. */
void quern__exit_key_deinit(const quern__exit_key *key);

/* Sets the value of the calling thread. Returns false if the system refuses it. */
bool quern__exit_key_set(const quern__exit_key *key, void *value);

/* ---------------------------------------------------------------------------------- mutex and condition */

typedef struct quern__mutex {
#if QUERN__ON_WINDOWS
    void *handle; /* SRWLOCK */
#else
    pthread_mutex_t handle;
#endif
} quern__mutex;

/* Initial value of a mutex in static memory, which needs no quern__mutex_init. */
#if QUERN__ON_WINDOWS
#define QUERN__MUTEX_INIT \
    {                     \
        NULL              \
    }
#else
#define QUERN__MUTEX_INIT         \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }
#endif

typedef struct quern__condition {
#if QUERN__ON_WINDOWS
    void *handle; /* CONDITION_VARIABLE */
#else
    pthread_cond_t handle;
#endif
} quern__condition;

#if QUERN__ON_WINDOWS

/* Returns false if the system refuses. */
bool quern__mutex_init(quern__mutex *mutex);
void quern__mutex_deinit(quern__mutex *mutex);
void quern__mutex_lock(quern__mutex *mutex);
void quern__mutex_unlock(quern__mutex *mutex);
void quern__condition_deinit(quern__condition *condition);
void quern__condition_signal(quern__condition *condition);
void quern__condition_broadcast(quern__condition *condition);

#else

static inline bool quern__mutex_init(quern__mutex *mutex)
{
    return pthread_mutex_init(&mutex->handle, NULL) == 0;
}

static inline void quern__mutex_deinit(quern__mutex *mutex)
{
    pthread_mutex_destroy(&mutex->handle);
}

static inline void quern__mutex_lock(quern__mutex *mutex)
{
    pthread_mutex_lock(&mutex->handle);
}

static inline void quern__mutex_unlock(quern__mutex *mutex)
{
    pthread_mutex_unlock(&mutex->handle);
}

static inline void quern__condition_deinit(quern__condition *condition)
{
    pthread_cond_destroy(&condition->handle);
}

static inline void quern__condition_signal(quern__condition *condition)
{
    pthread_cond_signal(&condition->handle);
}

static inline void quern__condition_broadcast(quern__condition *condition)
{
    pthread_cond_broadcast(&condition->handle);
}

#endif

/* Initializes a condition variable with quern__clock_ns as the clock of its timed waits. Returns false if the
 * system refuses. */
bool quern__condition_init(quern__condition *condition);

/* Waits for a signal, at most until until_ns on quern__clock_ns; 0: no limit. May return early. */
void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns);

/* --------------------------------------------------------------------------------------------- parker */

/* A permit that one thread, the owner, sleeps for and any thread gives. At most one permit is stored, until
 * the owner takes it. So it does not matter whether it is given before or after the owner sleeps. */
typedef struct quern__parker {
    _Atomic uint32_t state;
#if !QUERN__HAS_FUTEX
    quern__mutex mutex;
    quern__condition condition;
#endif
} quern__parker;

/* Returns false if the system refuses. */
bool quern__parker_init(quern__parker *parker);
void quern__parker_deinit(quern__parker *parker);

/* Gives the permit. The owner sees what the giver wrote before, once it has taken the permit. */
void quern__parker_give(quern__parker *parker);

/* Takes the permit, and sleeps until there is one. It may be left over from an earlier reason, so callers
 * check their condition again and sleep again if necessary. */
void quern__parker_take(quern__parker *parker);

/* Takes the permit, but sleeps at most until until_ns on quern__clock_ns; 0: no limit. */
void quern__parker_take_until(quern__parker *parker, uint64_t until_ns);

/* Returns whether there is a permit, without taking it. For the owner while it spins. */
bool quern__parker_has_permit(const quern__parker *parker);

/* Block while the parker's state is `asleep`, and end that. unblock is called after the state has changed. block may
 * return early. */
void quern__parker_block(quern__parker *parker, uint32_t asleep, uint64_t until_ns);
void quern__parker_unblock(quern__parker *parker);

/* ------------------------------------------------------------------------------------------ processors */

/* Returns how many processors the calling thread may use; at least 1. */
uint32_t quern__processor_count(void);

/* Binds the calling thread to the index-th processor that the process may use, modulo their number. Does
 * nothing if the system cannot. */
void quern__thread_pin(uint32_t index);

/* Returns the processor on which the calling thread runs, counted from 1; 0 if unknown. The result may be
 * outdated at once. */
uint32_t quern__thread_processor(void);

/* Restricts the calling thread to these processors. Returns false if the system refuses some of them, and
 * sets out_refused to the first one. Returns true if the system has no such call. */
bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused);

/* Returns how many processors are available to threads restricted to these processors plus one calling
 * thread with the restrictions of the current thread. An empty set means all processors. */
uint32_t quern__count_processors_with_caller(const quern_processors *processors);

/* Moves the calling thread to a processor other than these, then restores its processor set, so it is not
 * pinned. Returns false if it may not use another processor. */
bool quern__thread_move_off(const uint32_t *processors, uint32_t count);

/* Returns the size of the cache of this level, 2 or 3, as a call of the system tells it; 0 if it does not. */
size_t quern__host_cache_bytes(uint32_t level);

/* ----------------------------------------------------------------------------------------------- clocks */

/* Returns the time of a monotonic clock. */
uint64_t quern__clock_ns(void);

/* Returns the processor time that the calling thread has used; 0 if the system has no such clock. */
uint64_t quern__thread_time_ns(void);

/* ----------------------------------------------------------------------------------------------- memory */

/* Returns memory of the C library's heap, or NULL if out of memory. The size is a multiple of the alignment. */
void *quern__heap_allocate(size_t size_bytes, size_t alignment_bytes);
void quern__heap_release(void *memory);

/* Memory mapped from the operating system. Releasing it returns it to the system at once, while a heap would keep
 * large aligned blocks for reuse. The default allocator maps memory of at least this alignment. Slabs and pages of
 * records have it; it is also their size. */
#define QUERN__PAGES_ALIGNMENT_BYTES ((size_t)2 << 20)

#if QUERN__HAS_PAGES

/* Returns zeroed memory, or NULL if out of memory. A page becomes resident when it is first accessed. The size and the
 * alignment, a power of two, are multiples of the system's page size. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes);

void quern__pages_unmap(void *memory, size_t size_bytes);

#endif

/* Advises the system to use huge pages. No effect on systems without such advice. */
void quern__advise_huge_pages(void *memory, size_t size_bytes);

/* Turns memory that is already in use into a huge page, if the system can. Costs some hundreds of microseconds. */
void quern__collapse_huge_page(void *memory, size_t size_bytes);

/* ------------------------------------------------------------------------------------------------ files */

/* Paths are UTF-8 on all systems. Opens like fopen: NULL, and errno, if that fails. mode: of ASCII. */
FILE *quern__file_open(const char *path, const char *mode);

/* Moves a file to another path, and replaces the file there. Returns 0 or an errno. */
int quern__file_replace(const char *from_path, const char *to_path);

void quern__file_remove(const char *path);

/* Returns whether the path names something that cannot be replaced by a file, such as a terminal or a pipe. */
bool quern__file_is_device_or_pipe(const char *path);

/* ------------------------------------------------------------------------------------ hardware counters */

/* The operating system's code of an event: `type` and `config` of perf_event_attr. */
typedef struct quern__hardware_code {
    uint32_t type;
    uint64_t config;
} quern__hardware_code;

/* Codes of all events. */
extern const quern__hardware_code quern__hardware_codes[QUERN_HARDWARE_EVENT_COUNT];

/* Begins to count an event of the calling thread, or also of the threads that it will start. Returns a number for the
 * counter, or a negative errno; -ENOSYS if the system has no counters. */
int quern__hardware_counter_open(const quern__hardware_code *code, quern_hardware_scope scope);

/* Reads one event of the reading. Returns false if the system fails. */
bool quern__hardware_counter_read(int counter, quern_hardware_reading *reading, int event);
void quern__hardware_counter_close(int counter);

#endif
