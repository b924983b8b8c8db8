/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_BASE_H
#define QUERN_BENCH_HARNESS_BASE_H

/* What the rest of the harness needs. Whatever runs out of memory here ends the program with a message. */

#include <stddef.h>
#include <stdint.h>

#include <quern/bench.h>

enum { QUERN__BENCH_MAX_SAMPLES = 1000 };   /* of one subject in one case */
enum { QUERN__BENCH_MAX_PASSES = 1 << 24 }; /* in one sample */

/* The name that messages begin with; "bench" until it is set. It is not copied. */
void quern__bench_set_program(const char *name);
const char *quern__bench_program(void);

/* Prints a line to stderr, after the name of the program. */
void quern__bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* To be freed. NULL gives NULL. */
char *quern__bench_copy_text(const char *text);

/* Room for one element more than count; capacity doubles. Returns the elements, which may have moved. */
void *quern__bench_grow(void *elements, size_t count, size_t *capacity, size_t element_bytes);

/* Returns the whole file with a final zero, to be freed; NULL if it cannot be read (errno has the
 * cause). */
char *quern__bench_read_file(const char *path);

#endif
