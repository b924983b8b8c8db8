/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/footprint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t bench_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    uint64_t page_count;
    const bool found = fscanf(file, "%*u %" SCNu64, &page_count) == 1;
    fclose(file);
    return found ? page_count * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bench_figures measure_here(const bench_workload *workload, uint32_t index, const bench_case *scene)
{
    const bench_subject *subject = &workload->subjects[index];
    void *state = subject->open(scene);
    if (subject->enter != NULL) subject->enter(state);
    const uint64_t before_bytes = bench_resident_bytes();
    subject->run(state, 1);
    const uint64_t after_bytes = bench_resident_bytes();
    const double growth_bytes = after_bytes > before_bytes ? (double)(after_bytes - before_bytes) : 0;
    const double figure = growth_bytes / (double)workload->operation_count(scene->entity_count);
    return (bench_figures){figure, figure, figure, subject->checksum(state)};
}

/* All of it, or the end of the program: the other process has died, and has said why. */
static void read_all(int file, void *target, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t count = read(file, (char *)target + done, size_bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) bench_die("the process that measures memory ended early");
        done += (size_t)count;
    }
}

bench_figures bench_footprint_measure(const bench_workload *workload, uint32_t subject,
                                      const bench_case *scene)
{
    int ends[2];
    fflush(NULL); /* so that what is still buffered is not written by both processes */
    if (pipe(ends) != 0) bench_die("pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0) bench_die("fork: %s", strerror(errno));
    if (child == 0) {
        const bench_figures figures = measure_here(workload, subject, scene);
        _exit(write(ends[1], &figures, sizeof figures) == sizeof figures ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[1]);
    bench_figures figures;
    read_all(ends[0], &figures, sizeof figures);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return figures;
}
