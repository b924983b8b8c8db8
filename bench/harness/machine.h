/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MACHINE_H
#define QUERN_BENCH_HARNESS_MACHINE_H

/* What was measured where: figures mean nothing without it. */

#include <stdint.h>

#include "bench/harness/base.h"

enum { QUERN__BENCH_MAX_CACHES = 8 };

typedef struct quern__bench_cache {
    uint32_t level; /* 1, 2, 3 … */
    uint64_t bytes; /* as one processor sees it, shared or not */
} quern__bench_cache;

/* Texts are owned and never NULL; what could not be found out is "unknown", or 0. */
typedef struct quern__bench_machine {
    char *processor;
    uint32_t processor_count;                           /* that this process may use */
    quern__bench_cache caches[QUERN__BENCH_MAX_CACHES]; /* for data, by level */
    uint32_t cache_count;
    uint64_t memory_bytes;
    char *system; /* name and version of the kernel */
    char *compiler;
    char *flags;
    char *version; /* of quern */
    char *commit;
    char *date;  /* UTC, as 2026-01-31T12:00:00Z */
    bool checks; /* built with QUERN_CHECKS: not for comparing speed */
} quern__bench_machine;

/* Of this machine, now. */
quern__bench_machine quern__bench_machine_describe(const quern_bench_suite *suite);

/* The texts; all zero is allowed. */
void quern__bench_machine_close(quern__bench_machine *machine);

/* 1536 is "1.5 KiB". */
enum { QUERN__BENCH_SIZE_TEXT_BYTES = 32 };
void quern__bench_format_bytes(char text[QUERN__BENCH_SIZE_TEXT_BYTES], uint64_t bytes);

/* The data caches that a folder laid out as Linux lays out /sys/devices/system/cpu/cpu0/cache describes.
 * Returns how many there are. */
uint32_t quern__bench_read_caches(const char *folder, quern__bench_cache caches[QUERN__BENCH_MAX_CACHES]);

#endif
