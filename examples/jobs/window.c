/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Window {
    quern_jobs *jobs;
    uint32_t worker; /* worker index of the window's thread */
    _Atomic int state;
    uint32_t picture_count; /* not atomic: only one thread accesses it */
} Window;

enum { CLOSED, OPEN, CLOSING };

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void *run_window(void *data)
{
    Window *window = data;
    check(quern_jobs_register_thread(window->jobs, &window->worker));
    atomic_store(&window->state, OPEN);
    while (atomic_load(&window->state) == OPEN)
        check(quern_jobs_run_caller_jobs(window->jobs, NULL)); /* between two polls for events */
    check(quern_jobs_unregister_thread(window->jobs));         /* runs the remaining jobs */
    return NULL;
}

static void upload(void *user_data, uint32_t worker_index)
{
    Window *window = *(Window **)user_data;
    if (worker_index == window->worker) window->picture_count++;
}

int main(void)
{
    pthread_t thread;
    Window window = {0};
    Window *address = &window;
    quern_counter uploaded = {0};
    quern_jobs_def def = {.external_thread_count = 2}; /* the window's thread, and this one */
    check(quern_jobs_create(&def, &window.jobs));
    if (pthread_create(&thread, NULL, run_window, &window) != 0) return 1;
    while (atomic_load(&window.state) != OPEN) {
    }
    for (int i = 0; i < 100; i++) {
        quern_job_def job = {.function = upload,
                             .payload = &address,
                             .payload_bytes = sizeof address,
                             .counter = &uploaded,
                             .name = "upload",
                             .on_worker = window.worker + 1};
        check(quern_jobs_submit(window.jobs, &job));
    }
    check(quern_jobs_wait(window.jobs, &uploaded));
    atomic_store(&window.state, CLOSING);
    pthread_join(thread, NULL);
    printf("%u pictures\n", window.picture_count);
    quern_jobs_destroy(window.jobs);
    return 0;
}
