/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_THREAD_H
#define QUERN_SCHED_JOBS_THREAD_H

/* What the scheduler needs of the operating system: threads, a fence for all of them, a clock, and a place to
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

#define QUERN__THREAD_NAME_BYTES 16 /* the end included: what Linux keeps of a name */

typedef struct quern__thread {
    pthread_t handle;
} quern__thread;

/* False when the system refuses. stack_bytes: 0 means what the system gives. */
bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument);
void quern__thread_join(quern__thread *thread);

/* The smallest stack that the system gives a thread. */
size_t quern__thread_min_stack_bytes(void);

/* Names the calling thread, for debuggers and profilers. */
void quern__thread_set_name(const char *name);

/* Keeps the calling thread on the index-th of the processors that this process may use, around and around.
 * Only a wish: nothing happens where the system cannot. */
void quern__thread_pin(uint32_t index);

/* The processor that the calling thread is on, counted from 1, or 0 where the system does not say. A moment
 * later it may be another. */
uint32_t quern__thread_processor(void);

/* Lets others run first that wait for the calling thread's processor. */
void quern__thread_yield(void);

/* Keeps the calling thread on these processors. False when the system refuses, or leaves some of them out;
 * then the first of those is in out_refused. True where the system cannot do it. */
bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused);

/* How many processors there are for threads that may run on these alone, beside a caller that runs where
 * the calling thread may. An empty set stands for all. */
uint32_t quern__count_processors_with_caller(const quern_processors *processors);

/* Between two looks at something that another thread is about to do, within a few instructions. look counts
 * the looks from 0: when they become many the other thread does not run, and is let run. */
void quern__thread_spin_wait(uint32_t look);

/* Moves the calling thread to a processor that is none of these, if it may use one. It may use all that it
 * might use before, then as well: it is not pinned. False when it stays. */
bool quern__thread_move_off(const uint32_t *processors, uint32_t count);

/* How many forks lie between this process and the one that began to watch them: a child has one thread
 * alone. */
void quern__count_forks(void);
extern uint32_t quern__fork_count;

/* Makes every running thread of the process go through a seq_cst fence before it returns; the calling one,
 * too. To be used only after can_ has said true. */
void quern__fence_all_threads(void);
bool quern__can_fence_all_threads(void);

/* Monotonic. */
uint64_t quern__clock_ns(void);

/* The processor time that the calling thread has used. */
uint64_t quern__thread_time_ns(void);

/* A permit that one thread, the owner, can sleep for and any thread can give. At most one is kept, and it
 * is kept until the owner takes it, so giving it before the owner sleeps is as good as after. */
typedef struct quern__parker {
    _Atomic uint32_t state;
#if !QUERN__FUTEX
    pthread_mutex_t mutex;
    pthread_cond_t condition;
#endif
} quern__parker;

/* False when the system refuses. */
bool quern__parker_init(quern__parker *parker);
void quern__parker_deinit(quern__parker *parker);

/* Gives the permit. What the giver wrote before is visible to the owner after it has taken the permit. */
void quern__parker_give(quern__parker *parker);

/* Takes the permit; sleeps until there is one. May be left over from an earlier reason: callers look at
 * what they wait for, and come back when it is not there. */
void quern__parker_take(quern__parker *parker);

/* The same, but sleeps no longer than until then, by quern__clock_ns; 0: as long as it takes. */
void quern__parker_take_until(quern__parker *parker, uint64_t until_ns);

/* Whether a permit lies there, for the owner while it spins. */
bool quern__parker_has_permit(const quern__parker *parker);

/* A condition whose waits may end by quern__clock_ns. False when the system refuses. */
bool quern__condition_init(pthread_cond_t *condition);

/* Waits until somebody signals, no longer than until then; 0: as long as it takes. May end early. */
void quern__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns);

#endif
