/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_LEVEL_H
#define STREAM_LEVEL_H

/* The pieces of a level, from their files to the world. Each passes these stages, none of which waits:
 *
 *     read the head > open > read the body > decode, a job for each block > finish
 *
 * The reader reads. The other stages are jobs of low priority, which the pool runs when frames leave it
 * time. */

#include "format.h"
#include "reader.h"

#include <stdio.h>

typedef struct Sway {
    float lean, speed, stiffness;
} Sway;

/* The stage at which a piece failed. */
typedef enum piece_failure {
    PIECE_IS_SOUND,
    PIECE_HEAD_NOT_READ,
    PIECE_HEAD_DAMAGED,
    PIECE_BODY_NOT_READ,
    PIECE_BLOCK_DAMAGED
} piece_failure;

typedef struct level level;

typedef struct piece {
    level *of;
    uint32_t number;
    quern_counter ready; /* at zero, the caller may use the fields up to `sways` */
    piece_failure failure;
    uint32_t damaged_block;
    Placement placements[PIECE_ROWS];
    Sway sways[PIECE_ROWS];

    char path[512];
    quern_counter head_read, body_read, decoded;
    read_request head_request, body_request;
    bool is_block_sound[PIECE_BLOCKS]; /* each is written only by the job of its block */
    piece_head head;
    uint8_t body[BODY_BYTES_MAX];
} piece;

struct level {
    const char *folder;
    quern_jobs *jobs;
    reader *files;
};

/* Writes the file of a piece for level_ask. Returns false on failure, with the cause in errno. */
bool level_write_piece(const char *folder, uint32_t number, uint32_t byte_count_kept, bool is_damaged);

void level_piece_path(const char *folder, uint32_t number, char *out_path, size_t path_bytes);

/* Requests a piece and returns immediately. No other code may use `asked` until asked->ready is zero. */
quern_result level_ask(level *of, uint32_t number, piece *asked);

/* Prints a line with the fault of a piece and its position. */
void level_report(const piece *failed, FILE *to);

#endif
