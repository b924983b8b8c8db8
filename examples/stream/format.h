/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef STREAM_FORMAT_H
#define STREAM_FORMAT_H

/* The files of a level: one for each piece, with a head and blocks that can be decoded apart. */

#include <stdbool.h>
#include <stdint.h>

enum {
    BLOCK_ROWS = 512, /* a block is decoded in 10 us: a frame that begins does not wait long for it */
    PIECE_BLOCKS = 16,
    PIECE_ROWS = PIECE_BLOCKS * BLOCK_ROWS,
    ROW_VALUES = 4,
    VALUE_BYTES_MAX = 5,
    BODY_BYTES_MAX = PIECE_ROWS * ROW_VALUES * VALUE_BYTES_MAX
};

/* What stands where. A row of the file, and a component. */
typedef struct Placement {
    int32_t x, y, z;
    int32_t kind;
} Placement;

typedef struct piece_head {
    uint32_t magic;
    uint32_t number;
    uint32_t block_ends[PIECE_BLOCKS]; /* in the body, which follows the head */
    uint32_t reserved[2];
    uint64_t block_sums[PIECE_BLOCKS];
} piece_head;

/* What stands in a block, by the rule that the level is made by. */
void piece_make_block(uint32_t number, uint32_t block, Placement *out_rows);

/* Sums are the same in any order. */
uint64_t placement_sum(const Placement *rows, uint32_t count);

/* The bytes of a whole file; returns how many: at most sizeof(piece_head) + BODY_BYTES_MAX. */
uint32_t piece_encode(uint32_t number, uint8_t *out_bytes);

bool piece_head_is_sound(const piece_head *head, uint32_t number);

/* False: these are not the bytes that were written. */
bool piece_decode_block(const piece_head *head, const uint8_t *body, uint32_t block, Placement *out_rows);

#endif
