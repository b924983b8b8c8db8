/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FAILING_ALLOCATOR_H
#define QUERN_TESTS_FAILING_ALLOCATOR_H

/* An allocator that fails when told to, and remembers every block: what is still out, and whether each
 * came back with the size and alignment it was asked with. Fresh memory is filled with a pattern, so that
 * nothing passes because memory happened to be zero. Any thread may allocate and release. */

#include <quern/base.h>

typedef struct failing_allocator failing_allocator;

failing_allocator *failing_allocator_create(void);

/* Blocks that are still out are given back to the system too. */
void failing_allocator_destroy(failing_allocator *allocator);

/* The same at the end of a test, which fails unless all came back, and as it was got. To be called by the
 * test itself: an assertion in .fini would not fail it. */
void failing_allocator_close(failing_allocator *allocator);

quern_allocator failing_allocator_interface(failing_allocator *allocator);

/* Calls are counted from 1, over the allocator's life. */
uint64_t failing_allocator_call_count(const failing_allocator *allocator);

/* The call of that number fails. */
void failing_allocator_fail_at(failing_allocator *allocator, uint64_t call);

/* Every call from that number on fails. */
void failing_allocator_fail_from(failing_allocator *allocator, uint64_t call);

/* Each call fails with this chance. */
void failing_allocator_fail_often(failing_allocator *allocator, uint32_t percent, uint64_t seed);

/* No call fails from now on. */
void failing_allocator_heal(failing_allocator *allocator);

/* No call fails while paused; afterwards it is as it was before. */
void failing_allocator_pause(failing_allocator *allocator, bool is_paused);

/* How many calls have failed. */
uint64_t failing_allocator_failed_count(const failing_allocator *allocator);

uint64_t failing_allocator_outstanding_bytes(const failing_allocator *allocator);

/* Releases of unknown blocks, or with another size or alignment than asked for; calls out of contract. */
uint64_t failing_allocator_misuse_count(const failing_allocator *allocator);

#endif
