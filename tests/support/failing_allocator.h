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

/* Returns the number of calls so far; the first call is number 1. */
uint64_t failing_allocator_call_count(const failing_allocator *allocator);

/* Makes the call with this number fail. */
void failing_allocator_fail_at(failing_allocator *allocator, uint64_t call);

/* Makes every call from this number on fail. */
void failing_allocator_fail_from(failing_allocator *allocator, uint64_t call);

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
