/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_FORECAST_H
#define SWARM_FORECAST_H

/* --forecast: the duration of a frame on other numbers of threads. */

#include "options.h"

#include <signal.h>

/* Runs frame_count frames from the start, captures some and prints forecasts of them: for the requested
 * numbers of threads, for thread_count and, with the baseline, for 1. For the latter two it also prints
 * the measured duration of the same frames. Prints nothing if *is_interrupted becomes true. */
void forecast_print(const Options *options, uint32_t thread_count, uint32_t frame_count,
                    const volatile sig_atomic_t *is_interrupted);

#endif
