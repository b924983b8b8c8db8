/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_WIDE_H
#define QUERN_BENCH_WIDE_H

/* Frames over one wide archetype: entities with six components, and a list of systems that all subjects run
 * in its order. raw: one loop per system. quern: a schedule. The third subject is the same schedule with
 * fusing switched off. */

#include "bench/harness.h"
#include "bench/raw.h"

typedef enum wide_kind {
    WIDE_WRITE, /* writes a component, and may read another */
    WIDE_SUM    /* reads a component and adds up into a counter of the scene, which lives on */
} wide_kind;

/* Components by their RAW_ numbers. */
typedef struct wide_system {
    const char *name;
    wide_kind kind;
    int component;
    int read; /* or WIDE_NOTHING */
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
/* What differs between subjects. */
typedef enum wide_way {
    WIDE_PLAIN,
    WIDE_UNFUSED,
    WIDE_PROFILED,
    WIDE_TRACED, /* into a trace that runs */
    WIDE_KEPT    /* by a history */
} wide_way;

void *wide_open_quern(const wide_list *list, const bench_case *scene, wide_way way);

/* The rest of a subject; open is the workload's own, since only it knows the list. */
void wide_enter_raw(void *state);
void wide_run_raw(void *state, uint32_t pass_count);
void wide_leave_raw(void *state);
uint64_t wide_checksum_raw(void *state);
void wide_close_raw(void *state);

void wide_enter_quern(void *state);
void wide_run_quern(void *state, uint32_t pass_count);

/* Frames that a pass of these runs, from where the last pass began. */
enum { WIDE_ROLLBACK = 8 };

void wide_run_eight(void *state, uint32_t pass_count);          /* these, and nothing else */
void wide_run_rollback(void *state, uint32_t pass_count);       /* goes back, and saves the first of them */
void wide_run_rollback_every(void *state, uint32_t pass_count); /* saves each of them */
quern_result wide_capture_quern(void *state, struct quern_frame_capture *capture);
uint64_t wide_checksum_quern(void *state);
void wide_close_quern(void *state);

enum {
    WIDE_ROW_BYTES = sizeof(Position) + sizeof(Velocity) + sizeof(Rotation) + sizeof(Health) +
                     sizeof(Damage) + sizeof(Brain)
};

#endif
