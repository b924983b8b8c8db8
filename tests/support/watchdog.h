/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SUPPORT_WATCHDOG_H
#define QUERN_TESTS_SUPPORT_WATCHDOG_H

/* A thread that turns a hang into a failure: if the test makes no step for a while, it prints the state
 * of every worker of the pool and ends the process. */

#include <quern/jobs.h>

/* Start and end the watchdog, in the fixtures of a suite. */
void watchdog_start(void);
void watchdog_stop(void);

/* Sets the pool to report on, and the seed that the report names. NULL: no pool. */
void watchdog_watch(quern_jobs *jobs, uint64_t seed);

/* Reports a step of the test. Thread-safe. */
void watchdog_beat(void);

#endif
