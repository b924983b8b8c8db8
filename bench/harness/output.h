/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_OUTPUT_H
#define QUERN_BENCH_HARNESS_OUTPUT_H

/* A file for results. An existing file remains until everything has been written: the new file is
 * written as FILE.partial, and replaces it when it is closed. A program that ends early, by a signal or
 * by quern_bench_die, names the file with the lines that it has written, and leaves no other files.
 * stdout and special files (a pipe, a device) are written directly. */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct quern__bench_output {
    const char *path; /* as it was given; not copied */
    FILE *file;       /* NULL: not open */
    char *target;     /* file that the partial file replaces; NULL: there is no partial file */
    char *partial;
    dev_t device; /* with the inode: two names of one file are found out */
    ino_t inode;
    bool has_lines; /* of which each is worth keeping, when the rest was not written */
} quern__bench_output;

/* "-" is stdout; NULL leaves the output closed. False, with a note, when there can be no such file, or when
 * another output goes there. The output must not move until it is closed. */
bool quern__bench_output_open(quern__bench_output *output, const char *path, bool has_lines);

/* The path under which another function can write to the output; NULL when it is closed. */
const char *quern__bench_output_path(const quern__bench_output *output);

/* Without keep, or when not all could be written, what stood there before stays. False, with a note, when
 * not all could be written. */
bool quern__bench_output_close(quern__bench_output *output, bool keep);

/* False, with a note, when not all that was printed could be written. */
bool quern__bench_stdout_check(void);

#endif
