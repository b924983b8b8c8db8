/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct Reader {
    quern_jobs *jobs;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    ReadRequest *first; /* queue in order; NULL: empty */
    ReadRequest **end;
    bool is_stopping;
    pthread_t thread;
};

/* Reads all bytes of the request. One call of pread may return fewer. */
static void read_bytes(ReadRequest *request, int file)
{
    while (request->read_count < request->byte_count) {
        char *to = (char *)request->bytes + request->read_count;
        const ssize_t count = pread(file, to, request->byte_count - request->read_count,
                                    (off_t)(request->offset + request->read_count));
        if (count == 0) return;
        if (count > 0)
            request->read_count += (uint32_t)count;
        else if (errno != EINTR) {
            request->error = errno;
            return;
        }
    }
}

static void read_file(ReadRequest *request)
{
    request->read_count = 0;
    request->error = 0;
    const int file = open(request->path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        request->error = errno;
        return;
    }
    read_bytes(request, file);
#ifdef POSIX_FADV_DONTNEED /* otherwise the next round through the level would read from memory */
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
    close(file);
}

/* Waits for the next request. Returns NULL if the queue is empty and the reader stops. */
static ReadRequest *take_request(Reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    while (reader->first == NULL && !reader->is_stopping)
        pthread_cond_wait(&reader->changed, &reader->mutex); /* woken by reader_submit and reader_stop */
    ReadRequest *request = reader->first;
    if (request != NULL) reader->first = request->next;
    if (reader->first == NULL) reader->end = &reader->first;
    pthread_mutex_unlock(&reader->mutex);
    return request;
}

static void *run(void *argument)
{
    Reader *reader = argument;
    for (ReadRequest *request = take_request(reader); request != NULL; request = take_request(reader)) {
        quern_counter *arrived = request->arrived; /* after the release, the request must not be accessed */
        read_file(request);
        if (quern_counter_release(reader->jobs, arrived) != QUERN_OK)
            abort(); /* a fault of the program: the counter was not held */
    }
    return NULL;
}

Reader *reader_start(quern_jobs *jobs)
{
    Reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return NULL;
    reader->jobs = jobs;
    reader->end = &reader->first;
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_cond_init(&reader->changed, NULL);
    if (pthread_create(&reader->thread, NULL, run, reader) == 0) return reader;
    free(reader);
    return NULL;
}

void reader_submit(Reader *reader, ReadRequest *request)
{
    request->next = NULL;
    pthread_mutex_lock(&reader->mutex);
    *reader->end = request;
    reader->end = &request->next;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
}

void reader_stop(Reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    reader->is_stopping = true;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    pthread_join(reader->thread, NULL);
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}
