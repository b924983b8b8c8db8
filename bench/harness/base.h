/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_BASE_H
#define QUERN_BENCH_HARNESS_BASE_H

/* Messages, memory and files for the rest of the harness. If memory is exhausted, these functions end the
 * program with a message. */

#include <stddef.h>
#include <stdint.h>

#include <quern/bench.h>

enum { QUERN__BENCH_MAX_SAMPLES = 1000 };   /* samples of one subject in one case */
enum { QUERN__BENCH_MAX_PASSES = 1 << 24 }; /* passes in one sample */

/* Sets the program's name, with which messages begin; "bench" until then. The text is not copied. */
void quern__bench_set_program(const char *name);
const char *quern__bench_program(void);

/* Prints the program's name and the message as one line to stderr. */
void quern__bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns a copy of the text, to be released with free(); NULL for NULL. */
char *quern__bench_copy_text(const char *text);

/* Makes room for one element more than count, by doubling the capacity if necessary. Returns the elements,
 * which may have moved. */
void *quern__bench_grow(void *elements, size_t count, size_t *capacity, size_t element_bytes);

/* Returns the contents of the file with a final zero, to be released with free(); NULL, with the cause in
 * errno, if the file cannot be read. */
char *quern__bench_read_file(const char *path);

#endif
