/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "format.h"

#include <string.h>

static const uint32_t magic = 0x4C455651; /* "QVEL" */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Consecutive rows of the file are close to each other in the level, so differences are small. */
void piece_make_block(uint32_t number, uint32_t block, Placement *out_rows)
{
    int32_t x = (int32_t)number * 100000, y = (int32_t)block * 5000, z = 0;
    for (uint32_t i = 0; i < BLOCK_ROWS; i++) {
        const uint64_t drawn = mix(((uint64_t)number << 32 | block << 16 | i) + 1);
        x += (int32_t)(drawn & 0x1FF) - 100;
        y += (int32_t)(drawn >> 16 & 0xFF) - 128;
        z += (int32_t)(drawn >> 32 & 0xF) - 8;
        out_rows[i] = (Placement){x, y, z, (int32_t)(drawn >> 48 & 0x3F)};
    }
}

uint64_t placement_sum(const Placement *rows, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[2];
        memcpy(words, &rows[i], sizeof words);
        sum += mix(words[0] + mix(words[1] + 1));
    }
    return sum;
}

/* Writes a difference, seven bits per byte, lowest bits first. Small differences of either sign need one
 * or two bytes. */
static uint8_t *write_value(uint8_t *to, int32_t difference)
{
    uint32_t left = (uint32_t)difference << 1 ^ (difference < 0 ? UINT32_MAX : 0);
    for (; left >= 0x80; left >>= 7)
        *to++ = (uint8_t)(left | 0x80);
    *to++ = (uint8_t)left;
    return to;
}

/* Reads a difference. Returns NULL if the bytes end before or within it. */
static const uint8_t *read_value(const uint8_t *from, const uint8_t *end, int32_t *value)
{
    uint32_t read = 0;
    for (uint32_t shift = 0; from < end && shift < 7 * VALUE_BYTES_MAX; shift += 7) {
        read |= (uint32_t)(*from & 0x7F) << shift;
        if (*from++ < 0x80) {
            *value = (int32_t)((uint32_t)*value + (read >> 1 ^ (0 - (read & 1))));
            return from;
        }
    }
    return NULL;
}

static uint8_t *write_block(uint8_t *to, const Placement *rows)
{
    Placement last = {0};
    for (uint32_t i = 0; i < BLOCK_ROWS; i++) {
        to = write_value(to, rows[i].x - last.x);
        to = write_value(to, rows[i].y - last.y);
        to = write_value(to, rows[i].z - last.z);
        to = write_value(to, rows[i].kind - last.kind);
        last = rows[i];
    }
    return to;
}

uint32_t piece_encode(uint32_t number, uint8_t *out_bytes)
{
    PieceHead head = {.magic = magic, .number = number};
    Placement rows[BLOCK_ROWS];
    uint8_t *body = out_bytes + sizeof head, *end = body;
    for (uint32_t block = 0; block < PIECE_BLOCKS; block++) {
        piece_make_block(number, block, rows);
        head.block_sums[block] = placement_sum(rows, BLOCK_ROWS);
        end = write_block(end, rows);
        head.block_ends[block] = (uint32_t)(end - body);
    }
    memcpy(out_bytes, &head, sizeof head);
    return (uint32_t)(end - out_bytes);
}

bool piece_head_is_sound(const PieceHead *head, uint32_t number)
{
    uint32_t begin = 0;
    for (uint32_t block = 0; block < PIECE_BLOCKS; block++) {
        if (head->block_ends[block] < begin) return false;
        begin = head->block_ends[block];
    }
    return head->magic == magic && head->number == number && begin <= BODY_BYTES_MAX;
}

bool piece_decode_block(const PieceHead *head, const uint8_t *body, uint32_t block, Placement *out_rows)
{
    const uint8_t *from = body + (block == 0 ? 0 : head->block_ends[block - 1]);
    const uint8_t *end = body + head->block_ends[block];
    Placement row = {0};
    for (uint32_t i = 0; i < BLOCK_ROWS; i++) {
        int32_t *values[ROW_VALUES] = {&row.x, &row.y, &row.z, &row.kind};
        for (uint32_t k = 0; k < ROW_VALUES && from != NULL; k++)
            from = read_value(from, end, values[k]);
        if (from == NULL) return false;
        out_rows[i] = row;
    }
    return from == end && placement_sum(out_rows, BLOCK_ROWS) == head->block_sums[block];
}
