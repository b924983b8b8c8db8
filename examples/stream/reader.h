/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_READER_H
#define STREAM_READER_H

/* A thread that reads files, so that no worker of the pool waits for a file. io_uring or another interface
 * can replace it, if some thread releases the counter when a read has ended. */

#include <quern/jobs.h>

typedef struct Reader Reader;

/* A request. The reader owns it from reader_submit until the release of `arrived`. */
typedef struct ReadRequest {
    const char *path;
    uint64_t offset;
    void *bytes;
    uint32_t byte_count;
    quern_counter *arrived; /* held by the caller of reader_submit, released by the reader */

    uint32_t read_count; /* bytes read; fewer at the end of the file or after an error */
    int error;           /* an errno; 0: none */
    struct ReadRequest *next;
} ReadRequest;

/* Starts a reader. Returns NULL if the system refuses a thread or memory. */
Reader *reader_start(quern_jobs *jobs);

/* Queues a request and returns immediately. Threads: any. */
void reader_submit(Reader *reader, ReadRequest *request);

/* Processes the queued requests, ends the thread, and frees the reader. */
void reader_stop(Reader *reader);

#endif
