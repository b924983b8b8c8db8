/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SUPPORT_STRESS_H
#define QUERN_TESTS_SUPPORT_STRESS_H

/* Duration and seed of stress tests. QUERN_STRESS_SECONDS and QUERN_STRESS_SEED in the environment
 * override a test's defaults. */

#include <stdint.h>

/* Returns the time of a monotonic clock; only differences are meaningful. */
double stress_seconds_now(void);

/* Returns the time at which a test should end that may use 1 / share of its program's time. */
double stress_deadline(double default_seconds, double share);

uint64_t stress_seed(uint64_t default_seed);

#endif
