/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* POSIX: all systems except Windows. platform_linux.c and platform_apple.c have what these systems add or replace. */
#include "core/platform/platform.h"

#if !QUERN__ON_WINDOWS

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if QUERN__HAS_PAGES
#include <sys/mman.h>
#endif

/* -------------------------------------------------------------------------------------------- threads */

#if QUERN__HAS_THREADS

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

void quern__thread_join(quern__thread *thread)
{
    pthread_join(thread->handle, NULL);
}

size_t quern__thread_min_stack_bytes(void)
{
    long bytes = -1;
#if defined(_SC_THREAD_STACK_MIN)
    bytes = sysconf(_SC_THREAD_STACK_MIN);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)PTHREAD_STACK_MIN;
}

void quern__thread_yield(void)
{
    sched_yield();
}

static void count_fork(void)
{
    quern__fork_count++;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void quern__count_forks(void)
{
    static quern__once once = QUERN__ONCE_INIT;
    quern__call_once(&once, watch_forks);
}

#endif

void quern__thread_sleep(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&time, NULL);
}

void quern__call_once(quern__once *once, void (*function)(void))
{
    pthread_once(&once->handle, function);
}

bool quern__exit_key_init(quern__exit_key *key, void (*function)(void *value))
{
    return pthread_key_create(&key->key, function) == 0;
}

void quern__exit_key_deinit(const quern__exit_key *key)
{
    (void)pthread_key_delete(key->key);
}

bool quern__exit_key_set(const quern__exit_key *key, void *value)
{
    return pthread_setspecific(key->key, value) == 0;
}

/* ------------------------------------------------------------------------------------------ condition */

#if !QUERN__ON_APPLE

bool quern__condition_init(quern__condition *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    bool is_good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&condition->handle, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return is_good;
}

void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns)
{
    const struct timespec end = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u)};
    if (until_ns == 0)
        pthread_cond_wait(&condition->handle, &mutex->handle);
    else
        (void)pthread_cond_timedwait(&condition->handle, &mutex->handle, &end);
}

#endif

/* ---------------------------------------------------------------------------------------------- clocks */

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

/* ---------------------------------------------------------------------------------------------- memory */

void *quern__heap_allocate(size_t size_bytes, size_t alignment_bytes)
{
    return aligned_alloc(alignment_bytes, size_bytes);
}

void quern__heap_release(void *memory)
{
    free(memory);
}

#if QUERN__HAS_PAGES

static char *map(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t bytes_to_alignment(const char *memory, size_t alignment_bytes)
{
    return (size_t)(-(uintptr_t)memory & (alignment_bytes - 1));
}

/* Operating systems place a new mapping next to the previous one. After one aligned mapping, most others of the
 * same size are aligned by themselves, so a mapping without padding is tried first. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes)
{
    char *memory = map(size_bytes);
    if (memory == NULL || bytes_to_alignment(memory, alignment_bytes) == 0) return memory;
    munmap(memory, size_bytes);
    memory = map(size_bytes + alignment_bytes);
    if (memory == NULL) return NULL;
    const size_t before = bytes_to_alignment(memory, alignment_bytes);
    if (before > 0) munmap(memory, before);
    munmap(memory + before + size_bytes, alignment_bytes - before);
    return memory + before;
}

void quern__pages_unmap(void *memory, size_t size_bytes)
{
    munmap(memory, size_bytes);
}

#endif

/* ----------------------------------------------------------------------------------------------- files */

FILE *quern__file_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

int quern__file_replace(const char *from_path, const char *to_path)
{
    errno = 0;
    if (rename(from_path, to_path) == 0) return 0;
    return errno != 0 ? errno : EIO;
}

void quern__file_remove(const char *path)
{
    remove(path);
}

bool quern__file_is_device_or_pipe(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

#endif
