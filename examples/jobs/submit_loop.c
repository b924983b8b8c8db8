/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1000000, ENOUGH = 100 };

static float heights[CELLS], slopes[CELLS];

typedef struct Search {
    uint32_t found_counts[QUERN_MAX_THREADS]; /* one per worker */
    quern_cancel enough;
} Search;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void raise(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)user_data, (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        heights[i] = (float)(i % 1000);
}

static void compare(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)user_data, (void)worker_index;
    for (uint32_t i = begin; i < end; i++)
        slopes[i] = heights[(i + 1) % CELLS] - heights[i];
}

/* Stops the loop as soon as this worker alone has found enough. */
static void find_cliffs(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    Search *search = user_data;
    for (uint32_t i = begin; i < end; i++)
        search->found_counts[worker_index] += slopes[i] < -100;
    if (search->found_counts[worker_index] >= ENOUGH) quern_cancel_request(&search->enough);
}

int main(void)
{
    static Search search;
    quern_jobs *jobs;
    quern_counter raised = {0}, compared = {0}, searched = {0};
    check(quern_jobs_create(NULL, &jobs));
    quern_loop_def loops[] = {
        {.function = raise, .count = CELLS, .counter = &raised},
        {.function = compare,
         .count = CELLS,
         .counter = &compared,
         .after = (quern_counter *[]){&raised},
         .after_count = 1},
        {.function = find_cliffs,
         .user_data = &search,
         .count = CELLS,
         .counter = &searched,
         .after = (quern_counter *[]){&compared},
         .after_count = 1,
         .cancel = &search.enough},
    };
    for (int i = 0; i < 3; i++)
        check(quern_jobs_submit_loop(jobs, &loops[i]));
    /* a game would do other work here */
    check(quern_jobs_wait(jobs, &searched));
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < quern_jobs_worker_count(jobs); i++)
        found_count += search.found_counts[i];
    printf("%s\n", found_count >= ENOUGH ? "found enough" : "found too few");
    quern_jobs_destroy(jobs);
    return 0;
}
