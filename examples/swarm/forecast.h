/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_FORECAST_H
#define SWARM_FORECAST_H

/* --forecast: what a frame would take on other numbers of threads. */

#include "options.h"

#include <signal.h>

/* Runs so many frames from the start, records some and prints forecasts of them, for the numbers of threads
 * that were asked for, for thread_count and, with the baseline, for 1; of the latter two with what the same
 * frames took. Prints nothing when *is_interrupted becomes true meanwhile. */
void forecast_print(const Options *options, uint32_t thread_count, uint32_t frame_count,
                    const volatile sig_atomic_t *is_interrupted);

#endif
