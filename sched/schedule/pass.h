/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_PASS_H
#define QUERN_SCHED_SCHEDULE_PASS_H

/* A pass: systems that go over the chunks together. A job takes a chunk and calls all of the pass's systems
 * on it, in order, while it is in the cache. Which systems share a pass is decided by fuse.h.
 *
 *   table   an archetype that some of the systems match        item   a chunk of a table
 *   call    a system of a table, with its columns there
 *
 * Lanes: systems of a pass that no local conflict connects, directly or through others, are in different
 * lanes. When there are fewer chunks than workers, an item is a chunk and a lane, so that lanes run side by
 * side.
 *
 * Stages: a pass with systems that go level by level (quern_system_def.levels) does all items of one level
 * before any of the next; see levels.h. Any other pass is one stage. */

#include "core/base/sort.h"
#include "sched/jobs/atomic.h"
#include "sched/schedule/system.h"

typedef enum quern__pass_kind {
    QUERN__PASS_CHUNKS, /* systems that may be fused, over chunks in parallel */
    QUERN__PASS_SERIAL, /* one system, over its chunks, or the rows of its target, in order, as one job */
    QUERN__PASS_EVENTS, /* one system, over the runs of an event in parallel; serially: PASS_SERIAL */
    QUERN__PASS_ONCE    /* one system without terms, called once */
} quern__pass_kind;

/* What each view takes is here side by side, also what the system knows: a frame of many small systems
 * looks at little else. */
typedef struct quern__pass_call {
    quern__system *system;
    quern_view_callback *run; /* the system's, or call_picked of quern__pass_functions */
    const quern_view_column *columns;
    const quern__query *query;
    uint32_t term_count;
    /* prepared */
    uint32_t first_ordinal; /* of the views in this table */
    bool is_conditional;    /* the system is disabled or gated, or has filters: not made on every chunk */
} quern__pass_call;

/* The part of each chunk that one column takes. */
typedef struct quern__pass_column {
    uint16_t offset_bytes;
    uint16_t size_bytes; /* of one value */
} quern__pass_column;

typedef struct quern__pass_table {
    quern__archetype *archetype;
    uint32_t first_call, end_call;
    uint32_t first_column, end_column; /* all columns that the calls touch */
    uint32_t level;                    /* of the archetype, in a pass that goes level by level */
    /* prepared */
    uint32_t first_chunk, chunk_count;         /* on the walk; 0 chunks where no call is enabled */
    const quern__pass_call *calls, *calls_end; /* where these are now */
    uint32_t deep_run_count;                   /* on the last level */
    uint32_t reach_bytes; /* so much of each column of the next chunk is fetched ahead, at most */
    uint32_t share_bytes; /* of that, before each call; 0: nothing is fetched */
} quern__pass_table;

/* Part of a pass that is over before the next begins: a node of the graph. */
typedef struct quern__stage {
    struct quern__pass *pass;
    uint32_t first_chunk, chunk_count; /* on the walk */
    uint32_t item_count;
    bool is_deep; /* the last level, which is one item: see levels.h */
    bool is_gone; /* of reactions: copies of what is gone, see reacting.h */
} quern__stage;

/* Rows of the last level that are neighbours in a chunk and lie equally deep: a view. */
typedef struct quern__deep_run {
    uint32_t table; /* on the walk */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__deep_run;

/* A chunk to whose rows something happened, and the calls on it, see reacting.h. */
typedef struct quern__reacting_chunk {
    uint32_t table, chunk_index;
    uint32_t first_call, end_call; /* in the pass's reacting_calls */
} quern__reacting_chunk;

/* The rows of a chunk that come to one system for one reason, as views with one ordinal. */
typedef struct quern__reacting_call {
    const quern__pass_call *call;
    const quern__taken_rows *rows;
    uint32_t ordinal;
} quern__reacting_call;

/* Copies of what is gone: a view of one system. */
typedef struct quern__reacting_gone {
    const quern__system *system;
    const quern__taken_block *block;
    uint32_t ordinal;
} quern__reacting_gone;

typedef struct quern__pass {
    struct quern__plan *plan;
    quern__pass_kind kind;
    uint32_t index;                           /* among those of its segment, as they were made */
    uint32_t number;                          /* among those of the plan: 0 to pass_count - 1 */
    QUERN__ARRAY(quern__system *) systems;    /* in the order of execution */
    uint64_t touched[QUERN__COMPONENT_WORDS]; /* by the terms of some system */
    uint32_t lane_count;
    bool has_begin, has_end;                 /* something to do before the first item, after the last */
    bool has_partials, has_filters;          /* some system's */
    bool reacts;                             /* its systems are reactions: see reacting.h */
    quern__relation *levels;                 /* by which some system goes; or NULL */
    uint32_t begin_node, run_node, end_node; /* in the graph of its segment; equal where one is missing */
    uint32_t run_node_count; /* from run_node on, one per stage; behind them none are left */
    QUERN__ARRAY(uint32_t)
    waits_for; /* places in the segment of the passes that end before this one begins;
                                       * without those that another of these passes waits for */

    QUERN__ARRAY(quern__pass_table) tables; /* ascending by archetype */
    QUERN__ARRAY(quern__pass_call) calls;
    QUERN__ARRAY(quern__pass_column) columns;

    /* prepared */
    const quern__pass_table *walk; /* the tables that have chunks, or all, as stages come to them */
    uint32_t walk_count;           /* less those of the last level, which stand behind */
    quern__stage stages[QUERN__LEVEL_COUNT];
    uint32_t stage_count;
    uint32_t chunk_count; /* on the walk */
    uint32_t item_count;  /* of all stages: chunks, times lanes when is_split; the last level is one */
    bool is_split;
    uint64_t touched_bytes; /* by all calls, each byte once */
    bool is_streamed;       /* that is more than the workers' own caches hold */
    bool prefetches;        /* something is fetched ahead on the way over some table */

    /* prepared, of a pass that goes level by level */
    QUERN__ARRAY(quern__pass_table) by_level; /* the walk, and behind it the tables of the last level */
    QUERN__ARRAY(quern__deep_run) deep_runs;  /* in the order of depth */
    uint64_t links_version;                   /* when these were ordered */
    QUERN__ARRAY(uint32_t) deep_slots;        /* scratch; the next two as well */
    QUERN__ARRAY(quern__sort_item) deep_rows;
    QUERN__ARRAY(quern__sort_item) sort_scratch;

    /* prepared, of a pass of reactions */
    QUERN__ARRAY(quern__reacting_gone) reacting_gone;
    QUERN__ARRAY(quern__reacting_chunk) reacting_chunks;
    QUERN__ARRAY(quern__reacting_call) reacting_calls;
    QUERN__ARRAY(quern_entity) reacting_handles; /* of the rows of an exclusive one, in order */
} quern__pass;

/* How a frame carries out a pass. The plan is given these functions, so that compiling needs nothing of frames. */
typedef struct quern__pass_functions {
    /* The nodes of a segment's graph. The argument of `begin` (intervals, conditions and begin callbacks) and of
     * `end` (end callbacks) is the pass, and they ignore the range; that of `run` is a stage, whose items the
     * range counts. */
    quern_range_function *begin, *run, *end;
    /* Stands for the function of a system with up-terms: calls that function for each run of rows of the chunk
     * that the up-terms let pass. So one view reaches the system as several views with the same ordinal, stream
     * and partial result, or not at all. */
    quern_view_callback *call_picked;
} quern__pass_functions;

void quern__pass_destroy(quern__pass *pass);

/* Puts the matches that are new into the tables; after archetypes were removed, all. Queries have been
 * refreshed. Errors: OUT_OF_MEMORY; then it has to be called again. */
quern_result quern__pass_extend(quern__pass *pass);

/* Counts items and views, and makes room for partial results. Errors: OUT_OF_MEMORY. */
quern_result quern__pass_prepare(quern__pass *pass, uint32_t thread_count);

/* Zeroes the partial results. */
void quern__pass_start(quern__pass *pass);

/* When the segment is over, whose systems write versions from that one on: the filters of those that ran
 * have seen what they were shown. */
void quern__pass_finish(quern__pass *pass, uint64_t version_base);

#endif
