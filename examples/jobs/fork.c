/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 500000, SMALL = 2000 };

typedef struct Part {
    quern_jobs *jobs;
    uint32_t *begin;
    uint32_t *end;
} Part;

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static uint32_t *partition(const Part *whole)
{
    uint32_t pivot = whole->begin[(whole->end - whole->begin) / 2];
    uint32_t *low = whole->begin, *high = whole->end - 1;
    for (;; low++, high--) {
        while (*low < pivot)
            low++;
        while (*high > pivot)
            high--;
        if (low >= high) return high + 1;
        uint32_t swapped = *low;
        *low = *high;
        *high = swapped;
    }
}

static void sort(void *user_data, uint32_t worker_index)
{
    Part *whole = user_data;
    if (whole->end - whole->begin <= SMALL) {
        qsort(whole->begin, (size_t)(whole->end - whole->begin), sizeof(uint32_t), compare);
        return;
    }
    uint32_t *middle = partition(whole);
    Part left = {whole->jobs, whole->begin, middle}, right = {whole->jobs, middle, whole->end};
    quern_fork fork;
    quern_jobs_fork(whole->jobs, &fork, sort, &left); /* another worker may run it */
    sort(&right, worker_index);
    quern_jobs_join(whole->jobs, &fork); /* runs it here if no other worker has begun it */
}

int main(void)
{
    static uint32_t numbers[COUNT];
    quern_jobs *jobs;
    if (quern_jobs_create(NULL, &jobs) != QUERN_OK) return 1;
    for (uint32_t i = 0; i < COUNT; i++)
        numbers[i] = i * 2654435761u;
    Part whole = {jobs, numbers, numbers + COUNT};
    quern_jobs_run(jobs, sort, &whole);
    uint32_t disorder_count = 0;
    for (uint32_t i = 1; i < COUNT; i++)
        disorder_count += numbers[i - 1] > numbers[i];
    printf("%u out of order\n", disorder_count);
    quern_jobs_destroy(jobs);
    return disorder_count != 0;
}
