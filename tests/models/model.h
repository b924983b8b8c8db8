/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_MODELS_MODEL_H
#define TESTS_MODELS_MODEL_H

/* What all models have in common. A model includes the shipped sources of the scheduler, so that what is
 * checked is what users get; this header comes first and makes their sizes small. For the operating system
 * and what else a model does without there are stand-ins, see platform.h.
 *
 * The model checker GenMC explores every execution of a scenario that the memory model allows: all orders
 * of the threads' steps, and every older value that a load may return. A scenario is a function without
 * parameters. It fails when an assertion does, when two accesses of plain memory race, and when memory is
 * used that was freed. An ordinary compiler compiles the models, too, so that they keep up with the
 * sources. */

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

#undef NDEBUG /* the assertions are what it is about */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if __has_include(<genmc.h>)
#include <genmc.h>
/* Hints to the processor. */
#define __builtin_prefetch(...) ((void)0)
#define __builtin_ia32_pause()  ((void)0)
#else
/* NOLINTBEGIN(bugprone-reserved-identifier): GenMC's names */
void __VERIFIER_assume(bool condition);
void __VERIFIER_loop_begin(void);
void __VERIFIER_spin_start(void);
void __VERIFIER_spin_end(bool condition);
/* NOLINTEND(bugprone-reserved-identifier) */
#endif

/* Goes on only where the condition holds: a thread that waits, and what other executions show already. */
static inline void assume(bool condition)
{
    __VERIFIER_assume(condition);
}

/* A loop that only reads, until what it reads is so. Where that never comes true GenMC reports that the
 * thread waits for ever. */
#define AWAIT(condition) (__VERIFIER_loop_begin(), __VERIFIER_spin_start(), __VERIFIER_spin_end(condition))

#endif
