/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct level {
    quern_jobs *jobs;
    uint32_t piece_sizes[8];
    uint32_t size;
} level;

typedef struct piece {
    level *of;
    uint32_t number;
} piece;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void load_piece(void *user_data, uint32_t worker_index)
{
    const piece *loaded = user_data; /* the job's copy of the payload */
    (void)worker_index;
    loaded->of->piece_sizes[loaded->number] = 100 + loaded->number;
}

static void join_pieces(void *user_data, uint32_t worker_index)
{
    const piece *all = user_data;
    (void)worker_index;
    for (uint32_t i = 0; i < 8; i++)
        all->of->size += all->of->piece_sizes[i];
}

static void show(void *user_data, uint32_t worker_index)
{
    const piece *all = user_data;
    printf("size %u, on worker %u\n", all->of->size, worker_index);
}

int main(void)
{
    level loaded = {0};
    quern_counter pieces = {0}, joined = {0}, shown = {0};
    check(quern_jobs_create(NULL, &loaded.jobs));
    for (uint32_t i = 0; i < 8; i++) {
        piece payload = {&loaded, i};
        quern_job_def load = {.function = load_piece,
                              .payload = &payload,
                              .payload_bytes = sizeof payload,
                              .priority = QUERN_PRIORITY_LOW, /* after the work of frames */
                              .counter = &pieces};
        check(quern_jobs_submit(loaded.jobs, &load));
    }
    piece whole = {&loaded, 0};
    quern_job_def join = {
        .function = join_pieces, .payload = &whole, .payload_bytes = sizeof whole, .counter = &joined};
    check(quern_jobs_submit_after(loaded.jobs, &join, &pieces));
    quern_job_def last = {.function = show,
                          .payload = &whole,
                          .payload_bytes = sizeof whole,
                          .caller_only = true, /* windows and graphics often need one thread */
                          .counter = &shown};
    check(quern_jobs_submit_after(loaded.jobs, &last, &joined));
    check(quern_jobs_wait(loaded.jobs, &shown)); /* a game would go on with its frames and ask
                                                    quern_counter_is_done */
    quern_jobs_destroy(loaded.jobs);
    return 0;
}
