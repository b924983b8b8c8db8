/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FAILING_ALLOCATOR_H
#define QUERN_TESTS_FAILING_ALLOCATOR_H

/* An allocator that fails on request and records every block: which blocks are outstanding, and whether
 * each was released with the size and alignment of its allocation. New memory is filled with a pattern,
 * so that no test passes because memory happened to be zero. Thread-safe. */

#include <quern/base.h>

typedef struct failing_allocator failing_allocator;

failing_allocator *failing_allocator_create(void);

/* Destroys the allocator and frees outstanding blocks. */
void failing_allocator_destroy(failing_allocator *allocator);

/* Destroys the allocator at the end of a test, also in .fini of a suite. The test fails if blocks are
 * outstanding or there was misuse. */
void failing_allocator_close(failing_allocator *allocator);

quern_allocator failing_allocator_interface(failing_allocator *allocator);

/* Returns the number of calls so far. */
uint64_t failing_allocator_call_count(const failing_allocator *allocator);

/* Makes the n-th call from now on fail. The next call is number 1. */
void failing_allocator_fail_at(failing_allocator *allocator, uint64_t n);

/* Makes the n-th call from now on fail, and every call after it. */
void failing_allocator_fail_from(failing_allocator *allocator, uint64_t n);

/* Makes a call of the library with its n-th allocation failing, and heals the allocator. Returns whether the call
 * failed, which it may do only for lack of memory. A test lets each allocation of a call fail in turn:
 *     for (uint64_t n = 1; runs_out_of_memory(memory, n, quern_world_flush(world)); n++)
 *         cr_assert_eq(quern_world_hash(world), hash); */
#define runs_out_of_memory(allocator, n, ...) \
    (failing_allocator_fail_at(allocator, n), \
     failing_allocator_has_run_out(allocator, (__VA_ARGS__), __LINE__, #__VA_ARGS__))

bool failing_allocator_has_run_out(failing_allocator *allocator, quern_result result, int line,
                                   const char *call);

/* Makes each call fail with this probability. */
void failing_allocator_fail_often(failing_allocator *allocator, uint32_t percent, uint64_t seed);

/* Makes no further call fail. */
void failing_allocator_heal(failing_allocator *allocator);

/* Pauses failures. Unpausing restores the previous setting. */
void failing_allocator_pause(failing_allocator *allocator, bool is_paused);

/* Returns the number of calls that have failed. */
uint64_t failing_allocator_failed_count(const failing_allocator *allocator);

uint64_t failing_allocator_outstanding_bytes(failing_allocator *allocator);

/* Returns the number of contract violations: releases of unknown blocks or with another size or
 * alignment than allocated, and invalid calls. */
uint64_t failing_allocator_misuse_count(const failing_allocator *allocator);

#endif
