/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PIN_H
#define QUERN_BENCH_HARNESS_PIN_H

#include <stdbool.h>
#include <stdint.h>

/* Keeps this thread, and those that it starts from now on, to the first of the processors that the process
 * had at first. False when there are not as many, or the system cannot do it; then nothing is changed. From
 * one thread only. */
bool quern__bench_pin(uint32_t processor_count);

/* Back to all of them. */
void quern__bench_unpin(void);

#endif
