/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_PASS_H
#define QUERN_SCHED_SCHEDULE_PASS_H

/* A pass: a group of systems that iterate the chunks together. A job reads one chunk and calls all systems
 * of the pass on it, in order, while the chunk is in the cache. fuse.h decides which systems share a pass.
 *
 *   table   an archetype that at least one system of the pass matches
 *   item    a chunk of a table; jobs claim ranges of items
 *   call    one system on one table, with the system's columns there
 *
 * Lanes: two systems of a pass are in different lanes if no chain of local conflicts connects them. If
 * there are fewer chunks than threads, an item is one lane on one chunk, so that several threads can work
 * on the same chunk.
 *
 * Stages: a pass with level-ordered systems (quern_system_def.levels) finishes all items of one level
 * before it begins the next level; see levels.h. A pass of reactions has up to two stages; see
 * reaction_pass.h. Every other pass has one stage. */

#include "core/base/sort.h"
#include "sched/jobs/atomic.h"
#include "sched/schedule/system.h"

typedef enum quern__pass_kind {
    QUERN__PASS_CHUNKS, /* fusible systems, over chunks in parallel */
    QUERN__PASS_SERIAL, /* one serial system, in one job, in order: over chunks, target rows or events */
    QUERN__PASS_EVENTS, /* one system, over batches of events in parallel */
    QUERN__PASS_ONCE    /* one system without terms, called once */
} quern__pass_kind;

/* A call of a system on the chunks of a table. Copies all that a view needs, even members of the system,
 * into one place: a frame of many small systems reads little else. */
typedef struct quern__pass_call {
    quern__system *system;
    quern_view_callback *run; /* the system's function, or quern__pass_functions.call_selected_rows */
    const quern_view_column *columns;
    const quern__query *query;
    uint32_t term_count;
    /* set by quern__pass_prepare */
    uint32_t first_ordinal; /* ordinal of the view of the table's first chunk */
    /* Some chunks may be left out: the system is disabled, gated or has change filters. */
    bool is_conditional;
} quern__pass_call;

/* Location of one column in every chunk of a table. */
typedef struct quern__pass_column {
    uint16_t offset_bytes;
    uint16_t size_bytes; /* size of one value */
} quern__pass_column;

typedef struct quern__pass_table {
    quern__archetype *archetype;
    uint32_t first_call, end_call;
    uint32_t first_column, end_column; /* columns that at least one call reads or writes */
    /* Level of the archetype if the pass is level-ordered; otherwise 0. */
    uint32_t level;
    /* set by quern__pass_prepare */
    /* Chunks of the table, numbered in the iteration order of the pass. Not set, like the members that follow, if the
     * archetype has no rows or no call is enabled. */
    uint32_t first_chunk, chunk_count;
    const quern__pass_call *calls, *calls_end; /* the range of calls as pointers */
    uint32_t deep_range_count;                 /* views on the last level */
    uint32_t fetch_limit_bytes;                /* most bytes to prefetch of each column of the next chunk */
    uint32_t fetch_share_bytes;                /* bytes to prefetch before each call; 0: none */
    bool fetches_ends; /* before its only call, both ends of each column of the next chunk are prefetched */
} quern__pass_table;

/* A part of a pass that finishes before the next part begins. Each stage is a node of the segment's
 * graph. */
typedef struct quern__pass_stage {
    struct quern__pass *pass;
    uint32_t first_chunk, chunk_count; /* chunks of the stage, in the iteration order of the pass */
    uint32_t item_count;
    bool is_deep; /* whether the stage is the last level, which is a single item (levels.h) */
    /* Whether the views are copies of removed rows; only for reactions (reaction_pass.h). */
    bool shows_removed;
} quern__pass_stage;

/* A view of the last level: adjacent rows of one chunk that have the same depth. */
typedef struct quern__deep_range {
    uint32_t table; /* index in quern__pass.ordered_tables */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__deep_range;

/* A chunk with rows to which systems of the pass react, and the calls on it (reaction_pass.h). */
typedef struct quern__reaction_chunk {
    uint32_t table, chunk_index;
    uint32_t first_call, end_call; /* range in quern__pass.reaction_calls */
} quern__reaction_chunk;

/* The rows of one chunk that one system is shown for one kind of change. Each contiguous range of these
 * rows is a view; all these views have the same ordinal. */
typedef struct quern__reaction_call {
    const quern__pass_call *call;
    const quern__taken_rows *rows;
    uint32_t ordinal;
} quern__reaction_call;

/* A view of copies of removed rows, for one system. */
typedef struct quern__reaction_copies {
    const quern__system *system;
    const quern__taken_block *block;
    uint32_t ordinal;
} quern__reaction_copies;

/* The tables of 64 archetypes with consecutive indices. Nearly all archetypes of a world may be without rows:
 * quern__pass_prepare passes over them in words, and visits the tables of archetypes that hold chunks. */
typedef struct quern__table_word {
    uint64_t tables;      /* one bit per archetype: whether it has a table */
    uint32_t first_table; /* index of the first of these tables */
} quern__table_word;

typedef struct quern__pass {
    struct quern__plan *plan;
    quern__pass_kind kind;
    uint32_t index;                           /* order of creation among the passes of its segment */
    uint32_t number;                          /* unique in the plan: 0 to pass_count - 1 */
    QUERN__ARRAY(quern__system *) systems;    /* in execution order */
    uint64_t touched[QUERN__COMPONENT_WORDS]; /* components that some system's terms read or write */
    uint32_t lane_count;
    /* Some system needs a call before the first item, or after the last. */
    bool has_begin, has_end;
    bool has_partials, has_filters; /* some system has partial results, or change filters */
    bool runs_reactions;            /* the systems are reactions (reaction_pass.h) */
    quern__relation *levels;        /* relation that orders the pass by level, or NULL */
    /* Nodes in the segment's graph. Without begin callbacks, begin_node is run_node; without end callbacks,
     * end_node is the last run node. */
    uint32_t begin_node, run_node, end_node;
    uint32_t run_node_count; /* nodes from run_node on, one per stage; surplus nodes have no items */
    /* Indices in segment->passes of the passes that must end before this one begins, the greatest first. Omits
     * passes for which another of these passes waits. */
    QUERN__ARRAY(uint32_t) waits_for;

    QUERN__ARRAY(quern__pass_table) tables;      /* in ascending order of archetype */
    QUERN__ARRAY(quern__table_word) table_words; /* of the first worded_count tables */
    uint32_t worded_count;
    uint64_t order_version; /* the storage's, when table_words was built */
    QUERN__ARRAY(quern__pass_call) calls;
    QUERN__ARRAY(quern__pass_column) columns;

    /* set by quern__pass_prepare */
    QUERN__ARRAY(quern__pass_table *)
    filled_tables; /* those with chunks, in ascending order of archetype */
    /* Tables with chunks in iteration order: `filled_tables`, or the first ordered_table_count entries of
     * `tables_by_level`. The tables of the last level follow after them. */
    quern__pass_table *const *ordered_tables;
    uint32_t ordered_table_count;
    quern__pass_stage stages[QUERN__LEVEL_COUNT];
    uint32_t stage_count;
    /* Chunks in iteration order; of a target term its row ranges, of events their batches, of reactions
     * their blocks of copies and chunks. */
    uint32_t chunk_count;
    /* Sum over all stages: chunks, multiplied by the number of lanes if splits_lanes. The last level counts
     * as one item. */
    uint32_t item_count;
    bool splits_lanes;
    uint64_t touched_bytes;  /* bytes that the calls read or write, each counted once */
    bool exceeds_own_caches; /* touched_bytes exceeds the sum of the threads' own caches */
    bool prefetches;         /* some table is prefetched */

    /* set by quern__levels_arrange */
    QUERN__ARRAY(quern__pass_table *) tables_by_level; /* tables with chunks, in order of level */
    QUERN__ARRAY(quern__deep_range) deep_ranges;       /* views of the last level, in order of depth */
    uint64_t links_version;                            /* version of the relation's links in deep_ranges */
    QUERN__ARRAY(uint32_t) deep_slots;                 /* scratch memory, like the next two arrays */
    QUERN__ARRAY(quern__sort_item) deep_rows;
    QUERN__ARRAY(quern__sort_item) sort_scratch;

    /* set by quern__reaction_pass_prepare */
    QUERN__ARRAY(quern__reaction_copies) reaction_copies;
    QUERN__ARRAY(quern__reaction_chunk) reaction_chunks;
    QUERN__ARRAY(quern__reaction_call) reaction_calls;
    /* Copied handles of the rows of an exclusive reaction, in order. */
    QUERN__ARRAY(quern_entity) reaction_handles;
} quern__pass;

/* Functions with which a frame runs a pass. The plan gets them as pointers, so that this room does not
 * depend on frames. */
typedef struct quern__pass_functions {
    /* Node functions of a segment's graph. The argument of `begin` (intervals, conditions and begin
     * callbacks) and of `end` (end callbacks) is the quern__pass; both ignore the range. The argument of
     * `run` is a quern__pass_stage; the range counts the stage's items. */
    quern_range_function *begin, *run, *end;
    /* Replaces the function of a system if its query selects rows. Calls that function on each contiguous
     * range of selected rows of the chunk. All these views have the same ordinal, command stream and
     * partial result. If no row is selected, the function is not called. */
    quern_view_callback *call_selected_rows;
} quern__pass_functions;

void quern__pass_destroy(quern__pass *pass);

/* Adds matches that are new since the last call to the tables; rebuilds the tables if archetypes were
 * removed. Precondition: the queries are refreshed. Errors: OUT_OF_MEMORY; the function must then be called
 * again. */
quern_result quern__pass_extend(quern__pass *pass);

/* Counts items and views, arranges stages, and reserves memory for partial results. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__pass_prepare(quern__pass *pass, uint32_t thread_count);

/* Sets the partial results to zero. */
void quern__pass_start(quern__pass *pass);

/* Ends a run of the pass: change filters of the systems that ran have now seen all changes up to their own
 * writes. `version_base` plus the position of a system is the version of its writes. */
void quern__pass_finish(quern__pass *pass, uint64_t version_base);

#endif
