/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_CROWD_H
#define QUERN_BENCH_HARNESS_CROWD_H

#include <stdbool.h>
#include <stdint.h>

enum { QUERN__BENCH_MAX_CROWD = 1000 };

/* Threads that compute without end, as other programs do on a busy machine. */

/* Starts this many. They may use the processors that the calling thread may use now. Returns false, with none
 * left, if the system refuses one. Only one thread may call these functions, in turn. */
bool quern__bench_crowd_start(uint32_t thread_count);

/* Ends the threads, if there are any. */
void quern__bench_crowd_stop(void);

#endif
