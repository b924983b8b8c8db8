/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/footprint.h"

#include <errno.h>
#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t quern__bench_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    uint64_t page_count;
    const bool found = fscanf(file, "%*u %" SCNu64, &page_count) == 1;
    fclose(file);
    return found ? page_count * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t checksum_of(const quern_bench_subject *subject, void *state)
{
    return subject->checksum != NULL ? subject->checksum(state) : 0;
}

/* Returns the free memory of the heap to the system. Workloads before may have left much of it, and what a subject takes
 * of it would not make the process grow. */
static void trim_heap(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static quern__bench_footprint measure_here(const quern_bench_subject *subject,
                                           const quern_bench_case *scene)
{
    trim_heap();
    void *state = subject->open != NULL ? subject->open(scene) : NULL;
    if (subject->enter != NULL) subject->enter(state);
    const uint64_t before_bytes = quern__bench_resident_bytes();
    subject->run(state, 1);
    const uint64_t after_bytes = quern__bench_resident_bytes();
    return (quern__bench_footprint){
        .growth_bytes = after_bytes > before_bytes ? (double)(after_bytes - before_bytes) : 0,
        .checksum = checksum_of(subject, state),
    };
}

/* Reads all bytes from the forked process. Ends the program if the forked process ended early; unless a
 * signal ended it, it has printed the cause. */
static void read_all(int file, void *target, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t count = read(file, (char *)target + done, size_bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) quern_bench_die("the process that measures memory ended before its pass was done");
        done += (size_t)count;
    }
}

quern__bench_footprint quern__bench_footprint_measure(const quern_bench_subject *subject,
                                                      const quern_bench_case *scene)
{
    int ends[2];
    fflush(NULL); /* otherwise both processes would write the buffered output */
    if (pipe(ends) != 0) quern_bench_die("cannot create a pipe to measure memory: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0) quern_bench_die("cannot fork a process to measure memory: %s", strerror(errno));
    if (child == 0) {
        const quern__bench_footprint footprint = measure_here(subject, scene);
        _exit(write(ends[1], &footprint, sizeof footprint) == sizeof footprint ? EXIT_SUCCESS
                                                                               : EXIT_FAILURE);
    }
    close(ends[1]);
    quern__bench_footprint footprint;
    read_all(ends[0], &footprint, sizeof footprint);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return footprint;
}
