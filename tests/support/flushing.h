/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLUSHING_H
#define QUERN_TESTS_FLUSHING_H

/* Sync points between frames that run out of memory, and what change filters see of sync points. For tests that compare
 * two ways to apply commands. */

#include "tests/support/failing_allocator.h"

#include <quern/query.h>

/* Flushes the world. If the seed is even, some allocations fail; the flush is then repeated with enough memory. Returns
 * the result of the last flush. Fails the test if the world is invalid after the first one. */
quern_result flush_with_failures(quern_world *world, failing_allocator *memory, uint64_t seed);

/* Flushes the world until that succeeds, with memory that ends one allocation later each time. Fails the test if a
 * failed flush changes the world. Returns the number of failed flushes. */
uint32_t flush_until_memory_suffices(quern_world *world, failing_allocator *memory);

/* Iterates a query with change filters. Returns a sum over the entities that its filters selected. */
uint64_t see_changes(quern_query *query);

#endif
