/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_REPORT_H
#define SWARM_REPORT_H

#include "options.h"
#include "record.h"

/* Comparison of the run with the same frames on one thread. */
typedef struct Comparison {
    bool made;
    bool same_hash;
    uint32_t frame_count; /* number of compared frames */
    double speedup;       /* ratio of the median durations */
} Comparison;

typedef struct Outcome {
    uint32_t thread_count;
    uint64_t hash;
    Census census;
    Comparison comparison;
} Outcome;

void report_print(const Options *options, const Record *record, const Outcome *outcome);
void report_print_json(const Options *options, const Record *record, const Outcome *outcome);

#endif
