/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_FOOTPRINT_H
#define QUERN_BENCH_HARNESS_FOOTPRINT_H

/* Measures the memory of a subject: the growth of the resident set of a process of its own, so that it
 * cannot reuse memory that another one has freed. */

#include "bench/harness/base.h"

/* Of this process; 0 where the system does not tell. */
uint64_t quern__bench_resident_bytes(void);

typedef struct quern__bench_footprint {
    double growth_bytes;
    uint64_t checksum;
} quern__bench_footprint;

/* One pass. */
quern__bench_footprint quern__bench_footprint_measure(const quern_bench_subject *subject,
                                                      const quern_bench_case *scene);

#endif
