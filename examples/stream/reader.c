/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct reader {
    quern_jobs *jobs;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    read_request *first; /* queue in order; NULL: empty */
    read_request **end;
    bool is_stopping;
    pthread_t thread;
};

/* Reads all bytes of the request. One call of pread may return fewer. */
static void read_bytes(read_request *request, int file)
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

static void read_file(read_request *request)
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
static read_request *take(reader *of)
{
    pthread_mutex_lock(&of->mutex);
    while (of->first == NULL && !of->is_stopping)
        pthread_cond_wait(&of->changed, &of->mutex); /* woken by reader_ask and reader_stop */
    read_request *request = of->first;
    if (request != NULL) of->first = request->next;
    if (of->first == NULL) of->end = &of->first;
    pthread_mutex_unlock(&of->mutex);
    return request;
}

static void *run(void *argument)
{
    reader *of = argument;
    for (read_request *request = take(of); request != NULL; request = take(of)) {
        quern_counter *arrived = request->arrived; /* read before the release, which ends our use of it */
        read_file(request);
        if (quern_counter_release(of->jobs, arrived) != QUERN_OK) abort(); /* the counter was not held */
    }
    return NULL;
}

reader *reader_start(quern_jobs *jobs)
{
    reader *of = calloc(1, sizeof *of);
    if (of == NULL) return NULL;
    of->jobs = jobs;
    of->end = &of->first;
    pthread_mutex_init(&of->mutex, NULL);
    pthread_cond_init(&of->changed, NULL);
    if (pthread_create(&of->thread, NULL, run, of) == 0) return of;
    free(of);
    return NULL;
}

void reader_ask(reader *of, read_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&of->mutex);
    *of->end = request;
    of->end = &request->next;
    pthread_cond_signal(&of->changed);
    pthread_mutex_unlock(&of->mutex);
}

void reader_stop(reader *of)
{
    pthread_mutex_lock(&of->mutex);
    of->is_stopping = true;
    pthread_cond_signal(&of->changed);
    pthread_mutex_unlock(&of->mutex);
    pthread_join(of->thread, NULL);
    pthread_cond_destroy(&of->changed);
    pthread_mutex_destroy(&of->mutex);
    free(of);
}
