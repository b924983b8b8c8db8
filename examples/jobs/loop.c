/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <stdio.h>

enum { COUNT = 1000000 };

static float values[COUNT];
static double sums[QUERN_MAX_THREADS]; /* one per worker index; calls at one time never share an index */

static void halve(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)user_data;
    for (uint32_t i = begin; i < end; i++) {
        values[i] = (float)i * 0.5f;
        sums[worker_index] += values[i];
    }
}

int main(void)
{
    quern_jobs *jobs;
    if (quern_jobs_create(NULL, &jobs) != QUERN_OK) return 1;
    quern_jobs_parallel_for(jobs, COUNT, 0, halve, NULL);
    double sum = 0;
    for (uint32_t i = 0; i < quern_jobs_thread_count(jobs); i++)
        sum += sums[i];
    printf("%.0f\n", sum);
    quern_jobs_destroy(jobs);
    return 0;
}
