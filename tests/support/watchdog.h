/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SUPPORT_WATCHDOG_H
#define QUERN_TESTS_SUPPORT_WATCHDOG_H

/* A thread that turns a hang into a failure: it ends the process when the test has not made a step for a
 * while, and shows what every worker of the pool was doing. */

#include <quern/jobs.h>

/* For the fixtures of a suite. */
void watchdog_start(void);
void watchdog_stop(void);

/* From now on of this pool, with a seed that the report names; NULL: of none. */
void watchdog_watch(quern_jobs *jobs, uint64_t seed);

/* A step was made. Threads: any. */
void watchdog_beat(void);

#endif
