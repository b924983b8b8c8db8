/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_PIECES_H
#define QUERN_BENCH_PIECES_H

/* The control raw16k: rows in pieces of 16 KiB, each with an array per column, as the library's chunks have them, and
 * plain loops over the pieces. What raw16k takes more than raw is the price of this layout; what the library takes
 * more than raw16k is the price of everything else. */

#include <stddef.h>
#include <stdint.h>

enum { PIECES_COLUMN_LIMIT = 12, PIECE_BYTES = 16 * 1024 };

typedef struct raw_pieces {
    char *memory; /* in huge pages if there are 2 MiB of it, and the system grants them */
    uint32_t piece_count;
    uint32_t rows_per_piece;
    size_t row_count;
    uint32_t column_count;
    uint32_t sizes[PIECES_COLUMN_LIMIT];   /* bytes of a value */
    uint32_t offsets[PIECES_COLUMN_LIMIT]; /* bytes from the beginning of a piece; multiples of 64 */
} raw_pieces;

/* Lays out row_count rows of zeros. A piece has 64 bytes of header, the columns, and a handle for each row. */
void raw_pieces_open(raw_pieces *pieces, const uint32_t *sizes, uint32_t column_count, size_t row_count);
void raw_pieces_close(raw_pieces *pieces);

static inline void *raw_pieces_column(const raw_pieces *pieces, uint32_t piece, uint32_t column)
{
    return pieces->memory + (size_t)piece * PIECE_BYTES + pieces->offsets[column];
}

/* Returns the number of rows in a piece: rows_per_piece, except in the last one. */
static inline size_t raw_pieces_rows(const raw_pieces *pieces, uint32_t piece)
{
    const size_t first_row = (size_t)piece * pieces->rows_per_piece;
    const size_t left = pieces->row_count - first_row;
    return left < pieces->rows_per_piece ? left : pieces->rows_per_piece;
}

#endif
