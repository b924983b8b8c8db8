/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_BASE_H
#define QUERN_BENCH_HARNESS_BASE_H

/* Messages, memory and files for the rest of the harness. If memory is exhausted, these functions end the
 * program with a message. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

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

/* ------------------------------------------------------------------------------------------ outputs */

/* A file for results. An existing file stays intact until all results have been written: they are written
 * to FILE.partial, which replaces FILE when the output is closed. If the program ends early, by a signal or
 * by quern_bench_die, it removes partial files. It keeps and names those that consist of lines, since each
 * complete line is useful. stdout and special files (a pipe, a device) are written directly. */

typedef struct quern__bench_output {
    const char *path; /* path on the command line; not copied */
    FILE *file;       /* NULL: the output is closed */
    char *target;     /* file that the partial file replaces; NULL: there is no partial file */
    char *partial;    /* path of the partial file */
    dev_t device;     /* device and inode of the partial file: they reveal two names of one file */
    ino_t inode;
    bool has_lines; /* whether an incomplete file is kept when the program ends early */
} quern__bench_output;

/* Opens an output. The path "-" means stdout; NULL leaves the output closed. Returns false, with a note, if
 * the file cannot be created or is the file of another open output. The output must not move in memory
 * until it is closed. */
bool quern__bench_output_open(quern__bench_output *output, const char *path, bool has_lines);

/* Returns the path under which another function can write to the output; NULL if the output is closed. */
const char *quern__bench_output_path(const quern__bench_output *output);

/* Closes the output. The new file replaces the existing one if `keep` is set and all writes succeeded;
 * otherwise the existing file stays as it is. Returns false, with a note, if a write failed. */
bool quern__bench_output_close(quern__bench_output *output, bool keep);

/* Flushes stdout. Returns false, with a note, if anything that was printed could not be written. */
bool quern__bench_stdout_check(void);

#endif
