/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/jobs.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Level {
    quern_jobs *jobs;
    uint32_t piece_sizes[8];
    uint32_t size;
} Level;

typedef struct Piece {
    Level *level;
    uint32_t number;
} Piece;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void load_piece(void *user_data, uint32_t worker_index)
{
    const Piece *piece = user_data; /* the job's copy of the payload */
    (void)worker_index;
    piece->level->piece_sizes[piece->number] = 100 + piece->number;
}

static void join_pieces(void *user_data, uint32_t worker_index)
{
    Level *level = *(Level **)user_data;
    (void)worker_index;
    for (uint32_t i = 0; i < 8; i++)
        level->size += level->piece_sizes[i];
}

static void show(void *user_data, uint32_t worker_index)
{
    const Level *level = *(Level **)user_data;
    printf("size %u, on worker %u\n", level->size, worker_index);
}

int main(void)
{
    Level level = {0}, *address = &level; /* the payload of the last two jobs */
    quern_counter loaded = {0}, joined = {0}, shown = {0};
    check(quern_jobs_create(NULL, &level.jobs));
    for (uint32_t i = 0; i < 8; i++) {
        const Piece piece = {&level, i};
        quern_job_def load = {.function = load_piece,
                              .payload = &piece,
                              .payload_bytes = sizeof piece,
                              .priority = QUERN_PRIORITY_LOW, /* after the work of frames */
                              .counter = &loaded};
        check(quern_jobs_submit(level.jobs, &load));
    }
    quern_job_def join = {
        .function = join_pieces, .payload = &address, .payload_bytes = sizeof address, .counter = &joined};
    check(quern_jobs_submit_after(level.jobs, &join, &loaded));
    quern_job_def last = {.function = show,
                          .payload = &address,
                          .payload_bytes = sizeof address,
                          .on_worker = QUERN_ON_CALLER, /* windows and graphics often require one thread */
                          .counter = &shown};
    check(quern_jobs_submit_after(level.jobs, &last, &joined));
    /* A game would run frames instead of waiting, and check quern_counter_is_done between them. */
    check(quern_jobs_wait(level.jobs, &shown));
    quern_jobs_destroy(level.jobs);
    return 0;
}
