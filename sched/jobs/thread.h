/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_THREAD_H
#define QUERN_SCHED_JOBS_THREAD_H

/* Operating system services for the scheduler: threads, processors, a fence for all threads, clocks, and
 * sleep. */

#include "sched/jobs/atomic.h"

#include <quern/jobs.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__linux__) && !defined(QUERN__NO_FUTEX)
#define QUERN__FUTEX 1
#else
#define QUERN__FUTEX 0
#endif

#define QUERN__THREAD_NAME_BYTES 16 /* includes the terminator; Linux limits names to this */

typedef struct quern__thread {
    pthread_t handle;
} quern__thread;

/* Starts a thread. Returns false if the system refuses it. stack_bytes: 0 means the system's default. */
bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument);
void quern__thread_join(quern__thread *thread);

/* Returns the smallest stack size that the system accepts. */
size_t quern__thread_min_stack_bytes(void);

/* Names the calling thread, for debuggers and profilers. */
void quern__thread_set_name(const char *name);

/* Binds the calling thread to the index-th processor that the process may use, modulo their number. Does
 * nothing if the system cannot. */
void quern__thread_pin(uint32_t index);

/* Returns the processor on which the calling thread runs, counted from 1; 0 if unknown. The result may be
 * outdated at once. */
uint32_t quern__thread_processor(void);

/* Lets other threads that wait for the calling thread's processor run first. */
void quern__thread_yield(void);

/* Restricts the calling thread to these processors. Returns false if the system refuses some of them, and
 * sets out_refused to the first one. Returns true if the system has no such call. */
bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused);

/* Returns how many processors are available to threads restricted to these processors plus one calling
 * thread with the restrictions of the current thread. An empty set means all processors. */
uint32_t quern__count_processors_with_caller(const quern_processors *processors);

/* Pauses between two reads of a value that another thread will change within a few instructions. look:
 * number of reads so far. After many reads the other thread probably does not run, and the call yields the
 * processor. */
void quern__thread_spin_wait(uint32_t look);

/* Moves the calling thread to a processor other than these, then restores its processor set, so it is not
 * pinned. Returns false if it may not use another processor. */
bool quern__thread_move_off(const uint32_t *processors, uint32_t count);

/* Installs, once per process, a fork handler that increments quern__fork_count in child processes. A child
 * has one thread. */
void quern__count_forks(void);
extern uint32_t quern__fork_count;

/* Executes a seq_cst fence on every running thread of the process, including the caller, before it returns.
 * May be called only if quern__can_fence_all_threads returned true. */
void quern__fence_all_threads(void);
bool quern__can_fence_all_threads(void);

/* Returns the time of a monotonic clock. */
uint64_t quern__clock_ns(void);

/* Returns the processor time that the calling thread has used. */
uint64_t quern__thread_time_ns(void);

/* A permit that one thread, the owner, sleeps for and any thread gives. At most one permit is stored, until
 * the owner takes it. So it does not matter whether it is given before or after the owner sleeps. */
typedef struct quern__parker {
    _Atomic uint32_t state;
#if !QUERN__FUTEX
    pthread_mutex_t mutex;
    pthread_cond_t condition;
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

/* Initializes a condition variable with quern__clock_ns as the clock of its timed waits. Returns false if the
 * system refuses. */
bool quern__condition_init(pthread_cond_t *condition);

/* Waits for a signal, at most until until_ns on quern__clock_ns; 0: no limit. May return early. */
void quern__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns);

#endif
