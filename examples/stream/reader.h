/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_READER_H
#define STREAM_READER_H

/* A thread that reads files, so that no worker of the pool has to wait for one. The same shape fits
 * io_uring or whatever a system has: all that it takes is somebody who is told that a read has ended. */

#include <quern/jobs.h>

typedef struct reader reader;

/* Belongs to the reader from the call that asks until the hold on `arrived` is off. */
typedef struct read_request {
    const char *path;
    uint64_t offset;
    void *bytes;
    uint32_t byte_count;
    quern_counter *arrived; /* held by whoever asks; the reader takes the hold off */

    uint32_t read_count; /* less than byte_count: the file ends there, or there was an error */
    int error;           /* an errno; 0: none */
    struct read_request *next;
} read_request;

/* NULL: the system refused a thread or memory. */
reader *reader_start(quern_jobs *jobs);

/* Returns at once. Threads: any. */
void reader_ask(reader *of, read_request *request);

/* Reads what was asked for, then ends the thread. */
void reader_stop(reader *of);

#endif
