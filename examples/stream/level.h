/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_LEVEL_H
#define STREAM_LEVEL_H

/* Loads the pieces of a level from their files. Each piece passes these stages, and none of them waits:
 *
 *     read the head > open > read the body > decode, one job per block > finish
 *
 * The reader's thread reads. The other stages are jobs of low priority, which workers run while they have
 * no work of a frame. */

#include "format.h"
#include "reader.h"

#include <stdio.h>

typedef struct Sway {
    float lean, speed, stiffness;
} Sway;

/* The fault of a piece, by the stage that found it. */
typedef enum PieceFailure {
    PIECE_IS_SOUND,
    PIECE_HEAD_NOT_READ,
    PIECE_HEAD_DAMAGED,
    PIECE_BODY_NOT_READ,
    PIECE_BLOCK_DAMAGED
} PieceFailure;

typedef struct Level Level;

typedef struct Piece {
    Level *level;
    uint32_t number;
    quern_counter ready; /* when it is zero, the caller may access the members up to `sways` */
    PieceFailure failure;
    uint32_t damaged_block; /* first damaged block; for PIECE_BLOCK_DAMAGED */
    Placement placements[PIECE_ROWS];
    Sway sways[PIECE_ROWS];

    char path[512];
    quern_counter head_read, body_read, decoded;
    ReadRequest head_request, body_request;
    bool is_block_sound[PIECE_BLOCKS]; /* one per block, written only by the job of that block */
    PieceHead head;
    uint8_t body[BODY_BYTES_MAX];
} Piece;

struct Level {
    const char *folder;
    quern_jobs *jobs;
    Reader *files;
};

/* Writes the file of a piece: its first byte_count_kept bytes, with a wrong bit if is_damaged. Returns
 * false on failure, with the cause in errno. */
bool level_write_piece(const char *folder, uint32_t number, uint32_t byte_count_kept, bool is_damaged);

void level_piece_path(const char *folder, uint32_t number, char *out_path, size_t path_bytes);

/* Requests a piece and returns immediately. No other code may access the piece until its counter `ready` is
 * zero. */
quern_result level_request(Level *level, uint32_t number, Piece *piece);

/* Prints a line with the fault of a piece. */
void level_report(const Piece *failed, FILE *to);

#endif
