/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Loads the shared library named by its argument with dlopen, and runs a job on a pool of two threads. */

#include <quern/jobs.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void count(void *payload, uint32_t worker_index)
{
    uint32_t *const *counter = payload;
    (void)worker_index;
    ++**counter;
}

/* Uses memcpy because C has no cast from an object pointer to a function pointer. */
#define LOAD(library, name)                               \
    __typeof__(&(name)) name##_loaded = NULL;             \
    do {                                                  \
        void *address = dlsym(library, #name);            \
        if (address == NULL) return fail(dlerror());      \
        memcpy(&name##_loaded, &address, sizeof address); \
    } while (0)

static int fail(const char *why)
{
    fprintf(stderr, "load_shared: %s\n", why);
    return 1;
}

int main(int argument_count, char **arguments)
{
    void *library = argument_count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (library == NULL) return fail(argument_count == 2 ? dlerror() : "usage: load_shared LIBRARY");
    LOAD(library, quern_jobs_create);
    LOAD(library, quern_jobs_submit);
    LOAD(library, quern_jobs_wait);
    LOAD(library, quern_jobs_destroy);
    const quern_jobs_def def = {.thread_count = 2};
    quern_jobs *jobs;
    uint32_t counted = 0, *target = &counted;
    quern_counter counter = {0};
    const quern_job_def job = {
        .function = count, .payload = &target, .payload_bytes = sizeof target, .counter = &counter};
    if (quern_jobs_create_loaded(&def, &jobs) != QUERN_OK) return fail("quern_jobs_create");
    if (quern_jobs_submit_loaded(jobs, &job) != QUERN_OK) return fail("quern_jobs_submit");
    if (quern_jobs_wait_loaded(jobs, &counter) != QUERN_OK || counted != 1) return fail("quern_jobs_wait");
    quern_jobs_destroy_loaded(jobs);
    return dlclose(library) == 0 ? 0 : fail(dlerror());
}
