/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Stands for the job system of your engine. This one starts a thread per call; yours probably has a
 * queue. */
typedef struct OwnCall {
    void (*function)(void *data);
    void *data;
    bool is_used;
    pthread_t thread;
} OwnCall;

typedef struct OwnJobSystem {
    OwnCall calls[64];
    uint32_t call_count;
    pthread_mutex_t mutex;
} OwnJobSystem;

static void *run(void *data)
{
    OwnCall *call = data;
    call->function(call->data);
    return NULL;
}

/* Called from any thread. Must not make the call itself. */
static void submit(void *user_data, void (*function)(void *data), void *data)
{
    OwnJobSystem *system = user_data;
    pthread_mutex_lock(&system->mutex);
    OwnCall *call = &system->calls[system->call_count++ % 64];
    if (call->is_used) pthread_join(call->thread, NULL);
    *call = (OwnCall){.function = function, .data = data, .is_used = true};
    if (pthread_create(&call->thread, NULL, run, call) != 0) abort();
    pthread_mutex_unlock(&system->mutex);
}

static void count(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    ((uint32_t *)user_data)[worker_index] += end - begin;
}

int main(void)
{
    static OwnJobSystem system = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    uint32_t counts[3] = {0};
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = 3, /* at most two calls at a time, plus the caller */
                          .host_threads = {submit, &system}};
    if (quern_jobs_create(&def, &jobs) != QUERN_OK) return 1;
    quern_jobs_parallel_for(jobs, 1000, 1, count, counts);
    quern_jobs_destroy(jobs); /* waits for the calls in progress */
    for (uint32_t i = 0; i < 64; i++)
        if (system.calls[i].is_used) pthread_join(system.calls[i].thread, NULL);
    printf("%u items\n", counts[0] + counts[1] + counts[2]);
    return 0;
}
