/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PIN_H
#define QUERN_BENCH_HARNESS_PIN_H

#include <stdbool.h>
#include <stdint.h>

/* Restricts this thread, and the threads that it starts from now on, to the first processor_count
 * processors of those that it could use before it was pinned. Returns false, and changes nothing, if there
 * are fewer processors or the system has no such call. Only one thread may call these functions. */
bool quern__bench_pin(uint32_t processor_count);

/* Lets this thread use all processors again that it could use before it was pinned. */
void quern__bench_unpin(void);

#endif
