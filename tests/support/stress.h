/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SUPPORT_STRESS_H
#define QUERN_TESTS_SUPPORT_STRESS_H

/* How long stress tests run and where they start. QUERN_STRESS_SECONDS and QUERN_STRESS_SEED in the
 * environment take the place of what a test has by default. */

#include <stdint.h>

/* Of a clock that only matters as a difference. */
double stress_seconds_now(void);

/* When a test that is a 1 / share of its program should end. */
double stress_deadline(double default_seconds, double share);

uint64_t stress_seed(uint64_t default_seed);

#endif
