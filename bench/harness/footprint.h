/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_FOOTPRINT_H
#define QUERN_BENCH_HARNESS_FOOTPRINT_H

/* Measures the memory of a subject: the growth of the resident set of a forked process. Each subject has a
 * process of its own, so that it cannot reuse memory that another subject has freed. */

#include "bench/harness/base.h"

/* Returns the size of the resident set of this process in bytes; 0 if the system does not report it. */
uint64_t quern__bench_resident_bytes(void);

typedef struct quern__bench_footprint {
    double growth_bytes; /* growth of the resident set during the pass */
    uint64_t checksum;
} quern__bench_footprint;

/* Runs one pass of the subject in a forked process and returns its memory and its checksum. */
quern__bench_footprint quern__bench_footprint_measure(const quern_bench_subject *subject,
                                                      const quern_bench_case *scene);

#endif
