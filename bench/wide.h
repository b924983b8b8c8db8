/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_WIDE_H
#define QUERN_BENCH_WIDE_H

/* Frames over one wide archetype: entities with six components, and a list of systems that all subjects run
 * in its order. raw: one loop per system. raw16k: the same rows in pieces of 16 KiB (pieces.h), all systems on
 * one piece before the next. quern: a schedule, in several variants. */

#include "bench/harness.h"
#include "bench/raw.h"

typedef enum wide_kind {
    WIDE_WRITE, /* writes a component, and may read another */
    WIDE_SUM    /* reads a component and adds to a sum, which continues from frame to frame */
} wide_kind;

/* A system. Components are numbered by the RAW_ constants. */
typedef struct wide_system {
    const char *name;
    wide_kind kind;
    int component; /* component that is written or summed */
    int read;      /* component that is read as well; WIDE_NOTHING: none */
    union {
        void (*write)(void *written, const void *read, size_t count);
        uint32_t (*sum)(const void *read, size_t count);
    } run;
} wide_system;

enum { WIDE_NOTHING = -1 };

typedef struct wide_list {
    const wide_system *systems;
    uint32_t count;
} wide_list;

void *wide_open_raw(const wide_list *list, const bench_case *scene);

/* The variants of the quern subject. */
typedef enum wide_variant {
    WIDE_PLAIN,
    WIDE_UNFUSED,
    WIDE_PAIRS, /* every second system looks up what an earlier one writes, so that two at most fuse */
    WIDE_PAIRS_UNFUSED,
    WIDE_PROFILED,
    WIDE_TRACED,      /* a trace records the frames */
    WIDE_WITH_HISTORY /* a history can save and restore the world */
} wide_variant;

void *wide_open_quern(const wide_list *list, const bench_case *scene, wide_variant variant);

/* The other callbacks of subjects. Each workload has its own `open`, which passes its list of systems. */
void wide_enter_raw(void *state);
void wide_run_raw(void *state, uint32_t pass_count);
void wide_leave_raw(void *state);
uint64_t wide_checksum_raw(void *state);
void wide_close_raw(void *state);

void *wide_open_pieces(const wide_list *list, const bench_case *scene);
void wide_enter_pieces(void *state);
void wide_run_pieces(void *state, uint32_t pass_count);
void wide_leave_pieces(void *state);
uint64_t wide_checksum_pieces(void *state);
void wide_close_pieces(void *state);

void wide_enter_quern(void *state);
void wide_run_quern(void *state, uint32_t pass_count);

/* Number of frames that a pass of the functions below runs. */
enum { WIDE_ROLLBACK = 8 };

/* Each pass runs WIDE_ROLLBACK frames. `eight` only runs them. `rollback` first restores the frame that the
 * previous pass has saved, and saves the world after the first frame. `rollback_every` saves the world
 * after each frame. */
void wide_run_eight(void *state, uint32_t pass_count);
void wide_run_rollback(void *state, uint32_t pass_count);
void wide_run_rollback_every(void *state, uint32_t pass_count);
quern_result wide_capture_quern(void *state, struct quern_frame_capture *capture);
uint64_t wide_checksum_quern(void *state);
void wide_close_quern(void *state);

enum {
    WIDE_ROW_BYTES = sizeof(Position) + sizeof(Velocity) + sizeof(Rotation) + sizeof(Health) +
                     sizeof(Damage) + sizeof(Brain)
};

#endif
