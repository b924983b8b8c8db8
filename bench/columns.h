/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_COLUMNS_H
#define QUERN_BENCH_COLUMNS_H

/* Frames over one archetype with any columns: a layout defines the columns of a row and the systems that
 * use some of them. raw: one array per column, one loop per system. raw16k: the same rows in pieces of
 * 16 KiB. quern: a schedule, in several variants. */

#include "bench/harness.h"

#include <stddef.h>
#include <stdint.h>

#include <quern/quern.h>

enum { COLUMNS_LIMIT = 12, COLUMNS_SYSTEM_LIMIT = 8 };

/* Processes `count` rows of the system's columns. `columns` is in the order of columns_system.columns. */
typedef void columns_function(void *const *columns, size_t count, uint32_t value_bytes);

typedef struct columns_system {
    columns_function *run;
    uint32_t columns[COLUMNS_LIMIT]; /* numbers of columns; the first is written, the others are read */
    uint32_t column_count;
    uint32_t value_bytes; /* bytes of a value of the first column */
} columns_system;

typedef struct columns_layout {
    uint32_t sizes[COLUMNS_LIMIT]; /* bytes of a value; 0 ends the list */
    uint32_t touched_count;        /* number of columns, from the first, that systems use; their sizes are
                                      multiples of 4 bytes */
    columns_system systems[COLUMNS_SYSTEM_LIMIT];
    uint32_t system_count;
    /* Writes the start values of `count` rows of a touched column. */
    void (*start)(uint32_t column, void *values, size_t first_row, size_t count, uint32_t value_bytes);
} columns_layout;

/* The options of the schedule in which quern subjects differ. */
typedef struct columns_variant {
    bool disable_fusing;
    quern_prefetch prefetch;
} columns_variant;

void *columns_open_raw(const columns_layout *layout, const bench_case *scene);
void columns_enter_raw(void *state);
void columns_run_raw(void *state, uint32_t pass_count);
void columns_leave_raw(void *state);
uint64_t columns_checksum_raw(void *state);
void columns_close_raw(void *state);

/* The control raw16k (pieces.h): all systems run on one piece before the next. */
void *columns_open_pieces(const columns_layout *layout, const bench_case *scene);
void columns_enter_pieces(void *state);
void columns_run_pieces(void *state, uint32_t pass_count);
void columns_leave_pieces(void *state);
uint64_t columns_checksum_pieces(void *state);
void columns_close_pieces(void *state);

void *columns_open_quern(const columns_layout *layout, const bench_case *scene, columns_variant variant);
void columns_enter_quern(void *state);
void columns_run_quern(void *state, uint32_t pass_count);
uint64_t columns_checksum_quern(void *state);
void columns_close_quern(void *state);

/* The callbacks of a subject that opens with `open`. */
#define COLUMNS_RAW(open)                                                                  \
    {                                                                                      \
        open, columns_enter_raw, columns_run_raw, columns_leave_raw, columns_checksum_raw, \
            columns_close_raw, NULL                                                        \
    }
#define COLUMNS_PIECES(open)                                                                           \
    {                                                                                                  \
        open, columns_enter_pieces, columns_run_pieces, columns_leave_pieces, columns_checksum_pieces, \
            columns_close_pieces, NULL                                                                 \
    }
#define COLUMNS_QUERN(open)                                                                              \
    {                                                                                                    \
        open, columns_enter_quern, columns_run_quern, NULL, columns_checksum_quern, columns_close_quern, \
            NULL                                                                                         \
    }

#endif
