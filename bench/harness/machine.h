/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MACHINE_H
#define QUERN_BENCH_HARNESS_MACHINE_H

/* Describes the machine and the build of the measured code. Figures mean nothing without them. */

#include <stdint.h>

#include "bench/harness/base.h"

enum { QUERN__BENCH_MAX_CACHES = 8 };

enum { QUERN__BENCH_CACHE_TEXT_BYTES = 16 };

typedef struct quern__bench_cache {
    char name[QUERN__BENCH_CACHE_TEXT_BYTES];   /* "own" or "shared"; "L2" from files of older versions */
    char source[QUERN__BENCH_CACHE_TEXT_BYTES]; /* where the size is from, such as "sysconf"; may be "" */
    uint64_t bytes; /* size of the cache that one processor uses, also if it shares the cache */
} quern__bench_cache;

/* The texts are owned and never NULL. An unknown text is "unknown", an unknown number 0. */
typedef struct quern__bench_machine {
    char *processor;                                    /* model of the processor */
    uint32_t processor_count;                           /* processors that this process may use */
    quern__bench_cache caches[QUERN__BENCH_MAX_CACHES]; /* those that quern_processor_caches returns */
    uint32_t cache_count;
    uint64_t memory_bytes;
    char *system;   /* name and version of the operating system's kernel */
    char *compiler; /* compiler, flags and commit of the measured code */
    char *flags;
    char *version; /* version of quern */
    char *commit;
    char *date;  /* UTC, as 2026-01-31T12:00:00Z */
    bool checks; /* whether quern was built with QUERN_CHECKS, which makes it slower */
} quern__bench_machine;

/* Describes this machine at the current time. */
quern__bench_machine quern__bench_machine_describe(const quern_bench_suite *suite);

/* Frees the texts. `machine` may be all zero. */
void quern__bench_machine_close(quern__bench_machine *machine);

/* Formats a size with a binary unit: 1536 becomes "1.5 KiB". */
enum { QUERN__BENCH_SIZE_TEXT_BYTES = 32 };
void quern__bench_format_bytes(char text[QUERN__BENCH_SIZE_TEXT_BYTES], uint64_t bytes);

#endif
