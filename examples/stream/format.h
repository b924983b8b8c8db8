/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_FORMAT_H
#define STREAM_FORMAT_H

/* The files of a level: one per piece, with a head and blocks that can be decoded separately. */

#include <stdbool.h>
#include <stdint.h>

enum {
    BLOCK_ROWS = 512, /* decoding a block takes 10 us, so workers are soon free for a frame that begins */
    PIECE_BLOCKS = 16,
    PIECE_ROWS = PIECE_BLOCKS * BLOCK_ROWS,
    ROW_VALUES = 4,
    VALUE_BYTES_MAX = 5,
    BODY_BYTES_MAX = PIECE_ROWS * ROW_VALUES * VALUE_BYTES_MAX
};

/* An object of the level: a row of the file, and a component. */
typedef struct Placement {
    int32_t x, y, z;
    int32_t kind;
} Placement;

typedef struct PieceHead {
    uint32_t magic;
    uint32_t number;
    uint32_t block_ends[PIECE_BLOCKS]; /* ends of blocks, as offsets in the body */
    uint32_t reserved[2];
    uint64_t block_sums[PIECE_BLOCKS];
} PieceHead;

/* Computes the rows of a block, by the rule that defines the level. */
void piece_make_block(uint32_t number, uint32_t block, Placement *out_rows);

/* Returns a checksum that does not depend on the order of rows. */
uint64_t placement_sum(const Placement *rows, uint32_t count);

/* Writes the bytes of a whole file. Returns their number, at most sizeof(PieceHead) + BODY_BYTES_MAX. */
uint32_t piece_encode(uint32_t number, uint8_t *out_bytes);

bool piece_head_is_sound(const PieceHead *head, uint32_t number);

/* Decodes a block. Returns false if the bytes are damaged. */
bool piece_decode_block(const PieceHead *head, const uint8_t *body, uint32_t block, Placement *out_rows);

#endif
