/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_READER_H
#define STREAM_READER_H

/* A thread that reads files, so that no worker of the pool waits for one. io_uring or another interface
 * works in the same way, if some thread learns that a read has ended. */

#include <quern/jobs.h>

typedef struct reader reader;

/* A request. The reader owns it from reader_ask until the release of `arrived`. */
typedef struct read_request {
    const char *path;
    uint64_t offset;
    void *bytes;
    uint32_t byte_count;
    quern_counter *arrived; /* held by the caller of reader_ask, released by the reader */

    uint32_t read_count; /* bytes read; fewer at the end of the file or after an error */
    int error;           /* an errno; 0: none */
    struct read_request *next;
} read_request;

/* Starts a reader. Returns NULL if the system refuses a thread or memory. */
reader *reader_start(quern_jobs *jobs);

/* Queues a request and returns immediately. Threads: any. */
void reader_ask(reader *of, read_request *request);

/* Reads the queued requests, then ends the thread. */
void reader_stop(reader *of);

#endif
