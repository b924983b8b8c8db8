/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct window {
    quern_jobs *jobs;
    uint32_t worker; /* worker index of the window's thread */
    _Atomic int state;
    uint32_t picture_count; /* not atomic: only one thread accesses it */
} window;

enum { CLOSED, OPEN, CLOSING };

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void *run_window(void *data)
{
    window *own = data;
    check(quern_jobs_register_thread(own->jobs, &own->worker));
    atomic_store(&own->state, OPEN);
    while (atomic_load(&own->state) == OPEN)
        check(quern_jobs_run_caller_jobs(own->jobs, NULL)); /* between two polls for events */
    check(quern_jobs_unregister_thread(own->jobs));         /* runs the remaining jobs */
    return NULL;
}

static void upload(void *user_data, uint32_t worker_index)
{
    window *own = *(window **)user_data;
    if (worker_index == own->worker) own->picture_count++;
}

int main(void)
{
    pthread_t thread;
    window own = {0};
    window *address = &own;
    quern_counter uploaded = {0};
    quern_jobs_def def = {.external_thread_count = 2}; /* the window's thread, and this one */
    check(quern_jobs_create(&def, &own.jobs));
    if (pthread_create(&thread, NULL, run_window, &own) != 0) return 1;
    while (atomic_load(&own.state) != OPEN) {
    }
    for (int i = 0; i < 100; i++) {
        quern_job_def job = {.function = upload,
                             .payload = &address,
                             .payload_bytes = sizeof address,
                             .counter = &uploaded,
                             .name = "upload",
                             .on_worker = own.worker + 1};
        check(quern_jobs_submit(own.jobs, &job));
    }
    check(quern_jobs_wait(own.jobs, &uploaded));
    atomic_store(&own.state, CLOSING);
    pthread_join(thread, NULL);
    printf("%u pictures\n", own.picture_count);
    quern_jobs_destroy(own.jobs);
    return 0;
}
