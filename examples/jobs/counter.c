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

static void load_piece(void *argument, uint32_t worker_index)
{
    const piece *loaded = argument; /* a copy of what was submitted, inside the job */
    (void)worker_index;
    loaded->of->piece_sizes[loaded->number] = 100 + loaded->number;
}

static void join_pieces(void *argument, uint32_t worker_index)
{
    const piece *all = argument;
    (void)worker_index;
    for (uint32_t i = 0; i < 8; i++)
        all->of->size += all->of->piece_sizes[i];
}

static void show(void *argument, uint32_t worker_index)
{
    const piece *all = argument;
    printf("size %u, on worker %u\n", all->of->size, worker_index);
}

static quern_job_def job_of(quern_job_function *function, const piece *payload, quern_counter *counter)
{
    quern_job_def def = quern_job_def_default();
    def.function = function;
    def.payload = payload;
    def.payload_bytes = sizeof *payload;
    def.counter = counter;
    return def;
}

int main(void)
{
    level loaded = {0};
    quern_counter pieces = {0}, joined = {0}, shown = {0};
    check(quern_jobs_create(NULL, &loaded.jobs));
    for (uint32_t i = 0; i < 8; i++) {
        piece payload = {&loaded, i};
        quern_job_def def = job_of(load_piece, &payload, &pieces);
        def.priority = QUERN_PRIORITY_LOW; /* behind the work of frames */
        check(quern_jobs_submit(loaded.jobs, &def));
    }
    piece whole = {&loaded, 0};
    quern_job_def join = job_of(join_pieces, &whole, &joined);
    check(quern_jobs_submit_after(loaded.jobs, &join, &pieces));
    quern_job_def last = job_of(show, &whole, &shown);
    last.caller_only = true; /* windows and graphics often want one thread */
    check(quern_jobs_submit_after(loaded.jobs, &last, &joined));
    check(quern_jobs_wait(loaded.jobs, &shown)); /* a game would go on with its frames and ask
                                                    quern_counter_is_done */
    quern_jobs_destroy(loaded.jobs);
    return 0;
}
