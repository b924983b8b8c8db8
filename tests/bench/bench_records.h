/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_BENCH_RECORDS_H
#define QUERN_TESTS_BENCH_RECORDS_H

/* Creates results for tests. */

#include "bench/harness/results.h"

/* Adds a record with the samples centre * (1 + spread * k), for k from -(count - 1) / 2 to (count - 1) / 2
 * in an unsorted order. */
static inline quern__bench_record *add_made_record(quern__bench_results *results, const char *workload,
                                                   const char *subject, const char *control, size_t count,
                                                   double centre, double spread)
{
    quern__bench_record record = {
        .workload = quern__bench_copy_text(workload),
        .subject = quern__bench_copy_text(subject),
        .control = quern__bench_copy_text(control),
        .unit = quern__bench_copy_text("entity"),
        .entity_count = 1000,
        .thread_count = 1,
        .samples = quern_bench_allocate(count, sizeof(double)),
        .sample_count = count,
        .checksum = 0xFEDCBA9876543210u,
    };
    for (size_t i = 0; i < count; i++) {
        const size_t k = (i * 7 + 3) % count; /* a permutation, if 7 does not divide count */
        record.samples[i] = centre * (1 + spread * ((double)k - (double)(count - 1) / 2));
    }
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        record.counters[i] = __builtin_nan("");
    record.summary = quern__bench_summarise(record.samples, count);
    return quern__bench_results_add(results, &record);
}

static inline quern__bench_machine make_machine(void)
{
    return (quern__bench_machine){
        .processor = quern__bench_copy_text("Slide \"Rule\", 2nd"),
        .processor_count = 4,
        .caches = {{"own", "kernel files", 32768}, {"shared", "", 1048576}},
        .cache_count = 2,
        .memory_bytes = 1u << 30,
        .system = quern__bench_copy_text("Linux 6.1"),
        .compiler = quern__bench_copy_text("cc 1.0"),
        .flags = quern__bench_copy_text("-O3"),
        .version = quern__bench_copy_text("0.1.0"),
        .commit = quern__bench_copy_text("0123456789ab"),
        .date = quern__bench_copy_text("2026-01-31T12:00:00Z"),
    };
}

#endif
