/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_OUTPUT_H
#define QUERN_BENCH_HARNESS_OUTPUT_H

/* A file for results. An existing file stays intact until all results have been written: they are written
 * to FILE.partial, which replaces FILE when the output is closed. If the program ends early, by a signal or
 * by quern_bench_die, it removes partial files. It keeps and names those that consist of lines, since each
 * complete line is useful. stdout and special files (a pipe, a device) are written directly. */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

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
