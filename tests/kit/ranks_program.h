/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_RANKS_PROGRAM_H
#define QUERN_TESTS_RANKS_PROGRAM_H

/* A program for worlds on several ranks, drawn from a seed: movers in two or three dimensions, some with members below them, that
 * see each other, send messages, are born and die. It keeps the rules of <quern/kit/ranks.h>, so its hash by id is the same for
 * every number of ranks and threads. */

#include <quern/kit/grid.h>
#include <quern/kit/ranks.h>

#include "tests/support/setup.h"

typedef struct program_number {
    uint64_t value;
} program_number;

typedef struct program_place {
    float x, y, z;
} program_place;

/* What others see of an entity besides its place. */
typedef struct program_look {
    uint64_t id;
    int32_t charge, reserved;
} program_look;

typedef struct program_charge {
    int32_t value;
} program_charge;

typedef struct program_mind {
    uint64_t seen, felt; /* mixtures of all that was seen, and of events in their order */
} program_mind;

typedef struct program_mark {
    uint32_t value;
} program_mark;

typedef struct program_poke {
    quern_entity entity;
    uint64_t strength;
} program_poke;

typedef struct program_draw {
    uint64_t seed;
    bool planar, has_trees, has_births, has_deaths, has_jumps, has_globals, has_near, has_far, disables,
        has_inner;
    uint32_t entity_count, frame_count, balance_every;
    float size, speed; /* radius is 1 */
} program_draw;

/* The world of one rank. */
typedef struct program_rank {
    const program_draw *draw;
    quern_world *world;
    quern_schedule *schedule, *inner; /* inner: of quern_ranks_overlap, or NULL */
    quern_grid *grid;
    quern_ranks *ranks;
    quern_component number, place, look, charge, mind, mark, trail;
    quern_relation parent;
    quern_event poke;
} program_rank;

/* Options of a run; all zero: one rank in one thread, to the end. */
typedef struct program_run {
    uint32_t rank_count, thread_count; /* thread_count 0: no pool */
    const char *folder;                /* of checkpoints, every 5 frames */
    bool restart;
    uint64_t until;                     /* frame; 0: the end */
    const quern_ranks_network *network; /* to simulate */
    double *out_seconds;                /* receives what the network needs */
} program_run;

/* Number of events that have changed a mind, in all runs. */
extern _Atomic uint64_t program_felt_count;

program_draw program_draw_from(uint64_t seed);

void program_open(program_rank *rank, const program_draw *draw, const quern_ranks_def *base,
                  quern_jobs *jobs);
void program_populate(const program_rank *rank);
void program_close(program_rank *rank);

/* Runs the program, and returns its hash. */
uint64_t program_hash(const program_draw *draw, const program_run *run, quern_ranks_stats *out_stats);

#endif
