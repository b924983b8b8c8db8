/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/pieces.h"

#include "bench/harness.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64, HANDLE_BYTES = 8 };

static size_t align_up(size_t bytes, size_t alignment_bytes)
{
    return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/* Places the columns for a number of rows. Returns whether the piece is large enough. */
static int place_columns(raw_pieces *pieces, uint32_t row_count)
{
    size_t offset_bytes = LINE_BYTES;
    for (uint32_t i = 0; i < pieces->column_count; i++) {
        pieces->offsets[i] = (uint32_t)offset_bytes;
        offset_bytes += align_up((size_t)pieces->sizes[i] * row_count, LINE_BYTES);
    }
    return offset_bytes + (size_t)HANDLE_BYTES * row_count <= PIECE_BYTES;
}

void raw_pieces_open(raw_pieces *pieces, const uint32_t *sizes, uint32_t column_count, size_t row_count)
{
    *pieces = (raw_pieces){.row_count = row_count, .column_count = column_count};
    memcpy(pieces->sizes, sizes, column_count * sizeof *sizes);
    uint32_t rows_per_piece = PIECE_BYTES / HANDLE_BYTES;
    while (!place_columns(pieces, rows_per_piece))
        rows_per_piece--;
    pieces->rows_per_piece = rows_per_piece;
    pieces->piece_count = (uint32_t)((row_count + rows_per_piece - 1) / rows_per_piece);
    pieces->memory = bench_allocate(pieces->piece_count, PIECE_BYTES);
}

void raw_pieces_close(raw_pieces *pieces)
{
    free(pieces->memory);
}
