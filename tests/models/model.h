/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_MODELS_MODEL_H
#define TESTS_MODELS_MODEL_H

/* Common parts of all models. A model includes the shipped sources of the scheduler, so that GenMC checks
 * the code that users get. This header comes before them and makes their sizes small. pool.h has
 * stand-ins for the operating system and the rest of the library. The model checker GenMC explores every
 * execution of a scenario that the memory model allows: all interleavings, and every older value that a
 * load may return. A scenario is a function without parameters. It fails if an assertion fails, if two
 * accesses of plain memory race, or if freed memory is used. An ordinary compiler compiles the models as
 * well, so that they stay consistent with the sources. */

#ifndef QUERN__DEQUE_CAPACITY
#define QUERN__DEQUE_CAPACITY 2
#endif
#ifndef QUERN__JOB_DATA_WORDS
#define QUERN__JOB_DATA_WORDS 1
#endif
#define QUERN_JOB_PAYLOAD_BYTES     ((uint32_t)sizeof(uintptr_t)) /* one word */
#define QUERN__NODE_BLOCK_COUNT     2
#define QUERN__LOOP_COST_COUNT      1
#define QUERN__SCANS_PER_CLOCK_READ 1
#define QUERN__FEW_WORKERS          3
#define QUERN_MAX_THREADS           4

#undef NDEBUG /* the assertions are the checks of a model */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if __has_include(<genmc.h>)
#include <genmc.h>
/* Prefetches do not change the behaviour. */
#define QUERN__PREFETCH_AS(address, writes, locality) ((void)(address))
#define __builtin_ia32_pause()                        ((void)0)
#define __builtin_ia32_stmxcsr()                      0u
#define __builtin_ia32_ldmxcsr(mode)                  ((void)(mode))
#else
/* NOLINTBEGIN(bugprone-reserved-identifier): GenMC's names */
void __VERIFIER_assume(bool condition);
void __VERIFIER_loop_begin(void);
void __VERIFIER_spin_start(void);
void __VERIFIER_spin_end(bool condition);
/* NOLINTEND(bugprone-reserved-identifier) */
#endif

/* Drops executions in which the condition is false: the thread would wait, or another execution shows the
 * same. */
static inline void assume(bool condition)
{
    __VERIFIER_assume(condition);
}

/* Waits until the condition, which only reads, is true. GenMC reports a thread that waits forever. */
#define AWAIT(condition) (__VERIFIER_loop_begin(), __VERIFIER_spin_start(), __VERIFIER_spin_end(condition))

#endif
