/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_FOOTPRINT_H
#define QUERN_BENCH_FOOTPRINT_H

/* How much memory a subject takes: the growth of the resident set of a process made for it alone, so that it
 * cannot live in memory that another one has left behind. */

#include "bench/harness.h"

/* Of this process; 0 where the system does not tell. */
uint64_t bench_resident_bytes(void);

/* One pass of a workload's subject. */
bench_figures bench_footprint_measure(const bench_workload *workload, uint32_t subject,
                                      const bench_case *scene);

#endif
