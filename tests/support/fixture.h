/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FIXTURE_H
#define QUERN_TESTS_FIXTURE_H

/* The world of a test and its end. A test file fills the world in an opening function of its own:
 *     world = setup_world(), or
 *     memory = open_failing_world();
 * and the suite ends it: TestSuite(name, .init = open_world, .fini = close_world). A file that has more to end
 * checks it by assert_at_end. */

#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

extern quern_world *world;

/* Creates the world with an allocator that fails on request. close_world closes the allocator. */
failing_allocator *open_failing_world(void);

/* open_failing_world with other settings than the default ones. */
failing_allocator *open_failing_world_as(quern_world_def def);

/* Resets the handlers of log and asserts, and destroys the world with its schedules and queries. The test
 * fails if the allocator of open_failing_world did not get all memory back. */
void close_world(void);

/* close_world, after an assertion that the world is valid. A test may have closed the world before. */
void close_valid_world(void);

#endif
