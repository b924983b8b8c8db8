/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H
#define QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H

/* A system: its checked definition, its query, its compiled state, and its state in the current frame. */

#include "core/base/base_internal.h"
#include "core/base/containers.h"
#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "core/world/world_internal.h"
#include "sched/jobs/deque.h"
#include "sched/schedule/access.h"

#include <quern/graph.h>
#include <quern/schedule.h>

/* A before or after rule of a definition of a system or a set. It refers to the other system or set by name until the
 * schedule is compiled, because that may be added later. */
typedef struct quern__order_rule {
    char name[QUERN_MAX_NAME_BYTES + 1];
    bool is_before;     /* before the named one; otherwise after it */
    bool sees_commands; /* it runs after the named one, and sees its commands */
} quern__order_rule;

typedef QUERN__ARRAY(quern__order_rule) quern__order_rules;

typedef enum quern__rule_kind { QUERN__BEFORE, QUERN__AFTER, QUERN__AFTER_COMMANDS_OF } quern__rule_kind;

typedef struct quern__set_name {
    char text[QUERN_MAX_NAME_BYTES + 1];
} quern__set_name;

/* A name that a system of the schedule has or had. It stays when the system is removed: recorded commands, reports of
 * the last frame and pointers that the program got refer to it. A system that is added under the name again gets a new
 * generation of the same slot; a slot whose generations are used up stays empty, and the name gets another one. */
typedef struct quern__system_slot {
    char name[QUERN_MAX_NAME_BYTES + 1]; /* empty: reserved, and not used yet */
    struct quern__system *system;        /* NULL: the system was removed */
    uint32_t generation;                 /* that of the system, or of the next one */
    uint32_t next_same_hash;             /* 1 + index of the next slot; see quern__plan.names; 0: none */
} quern__system_slot;

enum { QUERN__SYSTEM_INDEX_BITS = 16, QUERN__MAX_SYSTEM_GENERATION = 0xFFFF };

typedef struct quern__system {
    struct quern__plan *plan;
    const char *name;         /* that of its slot; until it is added, that of its definition */
    quern__accessor accessor; /* has the system's name; counts the refused accesses of a frame */
    _Atomic bool has_logged_failed_command; /* whether a failed command of this frame was logged */
    uint32_t index;                         /* in order of registration; changes when systems are removed */
    uint32_t number;                        /* index of its slot; that of its profile */
    uint32_t handle_bits;                   /* of quern_system: generation and 1 + number */
    uint32_t phase;
    uint32_t flags;     /* quern_system_flags, including flags that other declarations imply */
    bool is_enabled;    /* it and all its sets are enabled */
    bool wants_enabled; /* it is enabled itself */
    quern_view_callback *run;
    quern_system_callback *begin, *end;
    quern_system_condition *condition;
    double interval_seconds; /* time between runs; 0: the system runs in every frame */
    uint32_t every;          /* frames from one run to the next; 0 or 1: the system runs in every frame */
    uint32_t offset;         /* declared turn, from 1; 0: chosen by spread_systems */
    void *user_data;
    quern__access access;
    quern__event_use events;
    /* Without terms, the query matches no archetype: `run` is called once, or on batches of events. */
    quern__query query;
    quern__query *queries; /* the further queries; behind them, in the same allocation, their names */
    uint32_t query_count;
    size_t queries_bytes; /* size of the allocation of `queries` */
    bool has_filters;     /* `query` or a further query has change filters */
    quern_index *indexes[QUERN_MAX_SYSTEM_INDEXES];
    uint32_t index_count;
    /* Whether it declares indexes, or further queries with an order: they are brought up to date before it runs. */
    bool has_refreshes;
    /* How that went in the current segment. The system is not active if it failed. */
    quern_result refresh_result;
    quern__relation *levels;   /* relation that orders the views by level, or NULL */
    uint32_t reacts_to;        /* bits of quern_reaction_kind; 0: not a reaction */
    quern__reaction *reaction; /* pending changes for a reaction; NULL: not a reaction */
    quern__order_rules rules;
    QUERN__ARRAY(quern__set_name) set_names;

    /* set by quern__compile */
    struct quern__set *gate_sets[QUERN_MAX_SETS]; /* its sets that have conditions */
    uint32_t gate_set_count;
    uint32_t turn; /* the remainder by `every` of the numbers of frames in which it runs */
    /* in execution order */
    uint32_t position;    /* in the order of execution */
    uint32_t group_first; /* position of the first system that this one may overlap */
    /* 1 + the greatest position of the systems whose commands it must see; 0: none. */
    uint32_t sync_after;
    uint32_t checked_match_count; /* matches of the query that were checked for conflicts */
    /* query.removed_count at that time; if it has changed, checked_match_count is invalid. */
    uint32_t checked_removed_count;
    struct quern__pass *pass;
    uint32_t lane;              /* lane in its pass */
    uint32_t table_match_count; /* matches of the query that the pass's tables contain */
    /* query.removed_count at that time; if it has changed, table_match_count is invalid. */
    uint32_t table_removed_count;

    /* set by quern__pass_prepare or quern__reaction_pass_prepare */
    uint32_t view_count;
    uint32_t first_deep_ordinal; /* ordinal of the first view on the last level */
    uint64_t entity_count;
    uint32_t next_taken_rows; /* of a reaction: first entry of taken.rows without a call */
    uint32_t serial_offset;   /* first serial of its command streams, relative to the segment's */
    size_t partial_bytes;     /* size of one partial result, as declared */
    size_t partial_stride_bytes;
    char *partials; /* view_count results, at a distance of partial_stride_bytes */
    size_t partials_capacity_bytes;

    /* state in the current frame */
    bool is_active; /* runs in this frame: enabled, interval reached, condition true */
    /* of a system with an interval */
    /* Time since the last due time that a run covered; see advance_gates in frame/pass_run.c. */
    double due_seconds;
    double elapsed_seconds; /* time since the last run */
    uint64_t
        seen_resources; /* hash of the watched resources at the last run (quern__system_hash_resources); 0: none */
    double delta_seconds; /* time step of the current run */
    uint64_t command_count;
    /* Sums over the steps of a phase with a fixed step, or over the rounds of reactions. */
    uint32_t step_view_count;
    uint64_t step_entity_count;
} quern__system;

/* Checks and copies a definition. replaced: the system that the new one will replace (quern__system_take_over), or NULL.
 * Errors: those of quern_schedule_add_system except DUPLICATE_NAME and LIMIT. */
quern_result quern__system_create(quern_world *world, const quern_system_def *def, uint32_t phase_count,
                                  const quern__system *replaced, quern__system **out_system);

/* Moves the state of a replaced system to its successor: quern_schedule_replace_system lists it. Precondition: the
 * successor was created for that. Cannot fail; the replaced system can then only be destroyed. */
void quern__system_take_over(quern__system *successor, quern__system *replaced);

void quern__system_destroy(quern__system *system);

/* Enables or disables the system. Nothing is recorded for a disabled reaction; what is pending for it stays. The plan's
 * segments must be invalidated if the state changes. */
void quern__system_set_enabled(quern__system *system, bool enabled);

/* Returns the query of the system that has a target term: that of its terms, or a further one. Returns NULL if there is
 * none. */
static inline quern__query *quern__system_target_query(quern__system *system)
{
    if (system->query.target != NULL) return &system->query;
    for (uint32_t i = 0; i < system->query_count; i++)
        if (system->queries[i].target != NULL) return &system->queries[i];
    return NULL;
}

/* Brings the indexes of the system up to date, and sorts its further queries with an order. Returns whether that succeeded;
 * otherwise sets refresh_result. */
bool quern__system_refresh(quern__system *system);

/* Prepares the further queries of the system for the callbacks of worker_count workers. Errors: OUT_OF_MEMORY. */
quern_result quern__system_prepare_queries(quern__system *system, uint32_t worker_count);

static inline bool quern__system_has_flag(const quern__system *system, quern_system_flags flag)
{
    return (system->flags & (uint32_t)flag) != 0;
}

/* Reserves memory for the partial results of view_count views. Errors: OUT_OF_MEMORY. */
quern_result quern__system_reserve_partials(quern__system *system);

/* Returns whether a condition, an interval, a turn or a refresh that may fail decides during the frame if the system runs. */
static inline bool quern__system_is_gated(const quern__system *system)
{
    return system->condition != NULL || system->interval_seconds > 0 || system->every > 1 ||
           system->gate_set_count > 0 || system->has_refreshes || system->access.watches_resources;
}

/* Returns a hash of the values of the watched resources, which has 63 bits and is not 0. */
uint64_t quern__system_hash_resources(const quern__system *system);

/* Returns whether callbacks get the time since the last run of the system instead of the frame's time step. */
static inline bool quern__system_has_own_time(const quern__system *system)
{
    return system->interval_seconds > 0 || system->every > 1;
}

/* A set of systems. */
typedef struct quern__set {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t id;          /* in frames of histories; never reused in a schedule */
    bool is_enabled;      /* whether its systems may be enabled */
    bool is_open;         /* what its condition returned last; true without one */
    quern__system *asker; /* has the condition, and what that accesses; NULL: no condition */
    quern__order_rules rules;
    QUERN__ARRAY(quern__system *) members; /* set by quern__compile; in the order of registration */
} quern__set;

/* Checks and copies a definition with a valid name. Errors: those of quern_schedule_add_set except DUPLICATE_NAME. */
quern_result quern__set_create(quern_world *world, const quern_set_def *def, quern__set **out_set);

void quern__set_destroy(quern__set *set, const quern_allocator *allocator);

/* Returns whether some system of the set is in the phase. */
bool quern__set_is_in_phase(const quern__set *set, uint32_t phase);

/* ------------------------------------------------------------------------------------------------ passes */

/* A pass: a group of systems that iterate the chunks together. A job reads one chunk and calls all systems
 * of the pass on it, in order, while the chunk is in the cache. compile.h decides which systems share a pass.
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
 * before it begins the next level; see compile.h. A pass of reactions has up to two
 * stages, the first one with copies of removed rows. Every other pass has one stage. */

typedef enum quern__pass_kind {
    QUERN__PASS_CHUNKS,  /* fusible systems, over chunks in parallel */
    QUERN__PASS_SERIAL,  /* one serial system, in one job, in order: over chunks, target rows or events */
    QUERN__PASS_EVENTS,  /* one system, over batches of events in parallel */
    QUERN__PASS_ORDERED, /* one system, over pieces of its order in parallel */
    QUERN__PASS_ONCE     /* one system without terms, called once */
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
    /* Copies of the archetype's, with which the columns of its first chunk can be prefetched before the archetype is read. */
    quern__chunk_slot first_slot;
    uint32_t shift;
    uint32_t deep_range_count;  /* views on the last level */
    uint32_t fetch_limit_bytes; /* most bytes to prefetch of each column of the next chunk */
    uint32_t fetch_share_bytes; /* bytes to prefetch before each call; 0: none */
    bool fetches_ends; /* before its only call, both ends of each column of the next chunk are prefetched */
} quern__pass_table;

/* A part of a pass that finishes before the next part begins. Each stage is a node of the segment's
 * graph. */
typedef struct quern__pass_stage {
    struct quern__pass *pass;
    uint32_t first_chunk, chunk_count; /* chunks of the stage, in the iteration order of the pass */
    uint32_t item_count;
    bool is_deep; /* whether the stage is the last level, which is a single item (compile.h) */
    /* Whether the views are copies of removed rows; only for reactions. */
    bool shows_removed;
} quern__pass_stage;

/* A view of the last level: adjacent rows of one chunk that have the same depth. */
typedef struct quern__deep_range {
    uint32_t table; /* index in quern__pass.ordered_tables */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__deep_range;

/* A chunk with rows to which systems of the pass react, and the calls on it. */
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
    bool runs_reactions;            /* the systems are reactions */
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

    /* set by levels_arrange */
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

/* Ends a run of the pass: change filters of the systems that ran, also those of their further queries, have now seen all
 * changes up to their own writes. `version_base` plus the position of a system is the version of its writes. */
void quern__pass_finish(quern__pass *pass, uint64_t version_base);

/* ------------------------------------------------------------------------------------------------- plans */

/* The plan of a schedule: the declared systems and phases, and the result of compiling them (compile.h):
 * execution order, conflicts and segments. Frames execute the plan; the state of frames is in
 * sched/frame. */

/* The kinds of segments. A frame runs its segments one after another. */
typedef enum quern__segment_kind {
    QUERN__SEGMENT_RUN,       /* a graph of passes, on all threads */
    QUERN__SEGMENT_EXCLUSIVE, /* one system, alone, on the calling thread */
    QUERN__SEGMENT_SYNC       /* a sync point: applies the commands recorded since the previous one */
} quern__segment_kind;

typedef struct quern__segment {
    quern__segment_kind kind;
    uint32_t phase;
    bool runs_reactions; /* belongs to a round of reactions; `phase` is not used */
    uint32_t first, end; /* systems, by position in execution order */
    /* Of a SYNC segment that is made for after_commands_of: the position of the system that must see commands of earlier
     * ones, which is the next one; otherwise UINT32_MAX. */
    uint32_t sync_before;

    /* of RUN and EXCLUSIVE segments */
    QUERN__ARRAY(quern__pass *) passes; /* in an order that respects all edges */
    quern_graph *graph;                 /* of a RUN segment */
    /* 1 + structure version of the storage when prepared; 0: not prepared. */
    uint64_t prepared_version;
    uint32_t prepared_threads;
    bool has_depths;       /* some pass iterates the last level of a relation */
    bool has_targets;      /* some system has a target term */
    bool has_refreshes;    /* some system has has_refreshes */
    bool has_run;          /* the passes of the last run were called, even if a refresh failed */
    bool has_readers;      /* some system reads events */
    bool has_items;        /* some system iterates events (quern_system_def.items) */
    uint32_t serial_count; /* number of serials for its command streams */
    bool is_idle;          /* no frame has anything to call until the segment is prepared again */
} quern__segment;

typedef struct quern__phase {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t id;                         /* in frames of histories; never reused in a schedule */
    uint32_t first_segment, end_segment; /* set by quern__compile */
    void *user_data;                     /* user data of the phase's systems that have none of their own */
    bool syncs_between;                  /* rules of its systems also need sync points */
    double step_seconds;                 /* fixed time step; 0: the phase runs once per frame */
    uint32_t max_step_count;             /* maximum number of steps per frame */
    double elapsed_seconds;              /* time that no step has covered yet */
    uint64_t step_count;                 /* number of steps ever */
} quern__phase;

/* Two systems of which the first must run before the second. */
typedef struct quern__order_pair {
    uint32_t first, second;
} quern__order_pair;

/* The systems that must keep their order, by position (compile.h). */
typedef struct quern__conflicts {
    quern__pair_set all;
    quern__pair_set global; /* those of `all` whose conflict is not local */
    quern__access_index index;
    QUERN__ARRAY(uint64_t) words; /* bit sets of positions: working memory */
} quern__conflicts;

typedef struct quern__plan {
    struct quern_schedule *schedule; /* schedule that executes the plan; opaque to this room */
    const quern__pass_functions *functions;

    /* declared */
    quern_world *world;
    void *user_data;      /* user data of phases that have none of their own */
    quern__phase *phases; /* room for QUERN_MAX_PHASES */
    uint32_t phase_count;
    bool fuses_systems;
    uint64_t shuffle_seed; /* for tests: seed of a random order of passes and items; 0: none */
    quern_prefetch prefetch;
    size_t own_cache_bytes;                   /* size of the cache that each core has to itself */
    size_t shared_cache_bytes;                /* size of the last-level cache, which cores share */
    QUERN__ARRAY(quern__system *) systems;    /* in order of registration; their addresses are stable */
    QUERN__ARRAY(quern__system_slot *) slots; /* the names of all systems, also of removed ones */
    quern__map names;               /* hash of a name -> 1 + index of the last slot with that hash */
    uint32_t up_count;              /* largest number of up-terms of one system, also of removed ones */
    uint32_t reaction_count;        /* number of systems that are reactions */
    uint32_t max_reaction_rounds;   /* limit after one sync point */
    uint32_t emitted_channel_count; /* 1 + largest index of an emitted channel; 0: none */

    uint32_t last_phase_id;          /* id of the newest phase */
    QUERN__ARRAY(quern__set *) sets; /* in the order in which they were added */
    uint32_t last_set_id;            /* id of the newest set */

    /* Compiled: valid while is_compiled, except for archetypes that are newer than compiled_version. */
    bool is_compiled;
    uint64_t compiled_version; /* archetypes_version of the storage when compiled */
    uint32_t asked_phases;     /* phases before which conditions of sets are asked, one bit each */
    uint32_t pass_count;       /* number of passes in all segments */
    uint64_t passes_version;   /* incremented whenever passes are rebuilt */
    QUERN__ARRAY(quern__system *) order; /* systems in execution order */
    /* The before/after rules by position, each once, ascending by second system, then first. */
    QUERN__ARRAY(quern__order_pair) rules;
    quern__conflicts conflicts;
    bool has_pairs; /* the pairs of `conflicts` are known for all matches that were checked */
    /* By position: index of the system's pass in its segment. Room for as many numbers more, as working memory. */
    QUERN__ARRAY(uint32_t) pass_indices;
    QUERN__ARRAY(quern__segment) segments; /* of all phases, then of a round of reactions */
    uint32_t first_reaction_segment;
} quern__plan;

static inline const quern_allocator *quern__plan_allocator(const quern__plan *plan)
{
    return &plan->world->storage.allocator;
}

/* Makes the next run of each segment prepare its passes again. Must not be called while a segment runs. */
static inline void quern__plan_invalidate_segments(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->segments.count; i++)
        plan->segments.items[i].prepared_version = 0;
}

/* Returns the system with the name, or NULL. O(1). */
quern__system *quern__plan_find_system(const quern__plan *plan, const char *name);

/* Returns the set with the name, or NULL. */
quern__set *quern__plan_find_set(const quern__plan *plan, const char *name);

/* Returns whether the system and all its sets are enabled. */
bool quern__plan_allows(const quern__plan *plan, const quern__system *system);

/* Makes sure that quern__plan_add_system has memory and a slot for one more system with the name. Errors: LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__plan_reserve_system(quern__plan *plan, const char *name);

/* Appends a system to the plan's systems. Preconditions: room is reserved, and no system has its name. */
void quern__plan_add_system(quern__plan *plan, quern__system *system);

/* Puts a system in the place of another one, which it destroys; or removes and destroys that system if `successor` is
 * NULL. The plan is not compiled afterwards. */
void quern__plan_replace_system(quern__plan *plan, quern__system *system, quern__system *successor);

/* Moves a system directly behind another one in the order of registration, or to the beginning if that is NULL. The plan is
 * not compiled afterwards. */
void quern__plan_move_system(quern__plan *plan, quern__system *system, const quern__system *previous);

/* Destroys the plan's systems. Precondition: the compiled state is released (compile.h). */
void quern__plan_release_systems(quern__plan *plan);

/* --------------------------------------------------------------------------------------------- observers */

/* The interface through which a frame reports what it does. Frames know nothing else about their observer.
 * The observer of every schedule is the profiler of sched/observe, which feeds profiles, traces and
 * captures.
 *
 *     frame     | segment            | sync point            | segment ...
 *     segment   | job  job           |
 *               |      job  job      |      on several workers
 *     job         call call call            or, for items of a pass: range | reported range | range
 *     sync point                     | stage | stage         |
 *     stage                            part part part               of a loop, on several workers
 *
 * A job is a range of a pass's items on one worker, or all callbacks that the pass calls before or after
 * its items. In a frame that is not observed, a job costs one branch. The observer divides a job into
 * ranges, and decides for each range whether its calls are reported one by one. Reported ranges run
 * in a separate copy of the chunk loop. So other ranges cost nothing, and an observer that samples calls
 * pays only for the samples.
 *
 * Reporting never changes what a frame does. */

typedef struct quern__observed_frame {
    quern_jobs *jobs; /* NULL: the frame runs on the calling thread alone */
    uint32_t thread_count;
    uint32_t worker_count;
    uint32_t caller_index; /* worker that runs the frame */
    uint64_t frame_index;
    uint64_t begin_ns;
} quern__observed_frame;

typedef enum quern__callback_kind {
    QUERN__CALLBACK_BEGIN, /* begin callbacks and conditions */
    QUERN__CALLBACK_RUN,
    QUERN__CALLBACK_END
} quern__callback_kind;

typedef struct quern__observed_job {
    quern__pass *pass;
    const quern__pass_stage *stage; /* used if callback is RUN */
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t begin, end; /* items of the stage; used if callback is RUN */
} quern__observed_job;

/* The next range of a job, which ends before `end`. is_reported: whether each of its calls is reported to the
 * observer. Unit of the range: chunks in a serial pass (its job is a single item); otherwise items. */
typedef struct quern__job_range {
    uint32_t end;
    bool is_reported;
} quern__job_range;

/* A callback that has returned. */
typedef struct quern__observed_call {
    const quern__system *system;
    quern__callback_kind callback;
    uint32_t worker_index;
    uint32_t ordinal, row_count; /* of the callback's view; used if callback is RUN */
} quern__observed_call;

typedef struct quern__frame_observer quern__frame_observer;

/* The thread that runs the frame calls these functions, except for the functions of jobs, calls and parts:
 * the worker concerned calls those. In a frame that is not observed, only prepare, prepare_pass,
 * begin_frame, system_time_ns, forget_system and destroy are called. */
typedef struct quern__frame_observer_calls {
    /* Decides before a frame whether to observe it, and reserves memory. Errors: OUT_OF_MEMORY; the frame
     * does not begin. */
    quern_result (*prepare)(quern__frame_observer *observer, uint32_t worker_count);
    /* Reserves memory in a frame, after the items of the pass were counted. Errors: OUT_OF_MEMORY,
     * LIMIT. */
    quern_result (*prepare_pass)(quern__frame_observer *observer, quern__pass *pass);
    void (*begin_frame)(quern__frame_observer *observer, const quern__observed_frame *frame);
    void (*end_frame)(quern__frame_observer *observer);

    void (*begin_segment)(quern__frame_observer *observer, const quern__segment *segment);
    void (*end_segment)(quern__frame_observer *observer, const quern__segment *segment);

    /* Runs a job of an observed frame, by begin_job, next_range and end_job: quern__pass_run_observed. */
    void (*run_job)(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                    struct quern_context *context);
    void (*begin_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Returns the next range of the job, which begins at `begin`. [begin, end) is the rest of the job.
     * Called if the job's callback is RUN. */
    quern__job_range (*next_range)(quern__frame_observer *observer, const quern__observed_job *job,
                                   uint32_t begin, uint32_t end);
    void (*end_job)(quern__frame_observer *observer, const quern__observed_job *job);
    /* Announces a sequence of reported calls in a job with the callback RUN. In other jobs, begin_job
     * announces it. */
    void (*begin_calls)(quern__frame_observer *observer, uint32_t worker_index);
    void (*end_call)(quern__frame_observer *observer, const quern__observed_call *call);

    void (*begin_sync)(quern__frame_observer *observer);
    void (*end_sync)(quern__frame_observer *observer, uint64_t begin_ns, uint32_t command_count);
    void (*begin_stage)(quern__frame_observer *observer, quern__sync_stage stage);
    void (*begin_loop)(quern__frame_observer *observer, uint32_t call_count);
    void (*end_loop)(quern__frame_observer *observer);
    void (*end_part)(quern__frame_observer *observer, uint32_t worker_index, uint64_t begin_ns);

    /* Returns the time of the system in the last frame, in ns; 0 if it was not measured. */
    uint64_t (*system_time_ns)(const quern__frame_observer *observer, const quern__system *system);
    /* Forgets all about a system that is being removed. Called between frames. */
    void (*forget_system)(quern__frame_observer *observer, const quern__system *system);
    void (*destroy)(quern__frame_observer *observer);
} quern__frame_observer_calls;

struct quern__frame_observer {
    const quern__frame_observer_calls *calls;
    bool is_observing; /* the current frame is observed; set by prepare or begin_frame */
    /* Loops of sync points are divided into parts even on one thread. Set by prepare or begin_frame. */
    bool wants_loop_parts;
};

/* Creates the observer of a schedule that is being created. Errors: OUT_OF_MEMORY. */
typedef quern_result quern__frame_observer_create(quern__plan *plan, const quern_schedule_def *def,
                                                  quern__frame_observer **out_observer);

/* ----------------------------------------------------------------------------------- passes of reactions */

/* A pass of reactions. It does not iterate the chunks of its tables, but the rows that were added, set or
 * removed (core/reactions/reaction.h). These rows are listed again for each round.
 *
 *   stage 1   copies of removed rows, block by block; omitted if there are none
 *   stage 2   chunks with rows that were added or set: on each chunk, the systems are called in order, each
 *             on its contiguous ranges of such rows
 *
 * Stage 1 finishes before stage 2 begins, so a system that maintains an index sees removed rows before
 * added ones. Each copy belongs to one system, so the systems of a pass need no order in stage 1.
 *
 * Ordinals: the views of copies are numbered first, in order of archetype and row. Then each chunk gets one
 * ordinal per kind of change, whatever the number of its row ranges. The numbering depends on the world
 * alone.
 *
 * An exclusive reaction changes the world while it is called. So its views of stage 2 hold copies of the
 * handles, made before the first call, and no columns. */

/* Returns whether changes may be pending for a system of the segment. */
bool quern__reaction_pass_is_due(const quern__plan *plan, const quern__segment *segment);

/* Takes the pending changes of the pass's systems and arranges them as items. Discards the changes of
 * disabled systems. Errors: OUT_OF_MEMORY. */
quern_result quern__reaction_pass_prepare(quern__pass *pass);

/* Ends the segment in this round. If has_run, discards the taken changes and copies; otherwise they are
 * pending again. */
void quern__reaction_pass_finish(const quern__plan *plan, const quern__segment *segment, bool has_run);

/* Discards all pending changes of the plan's reactions. */
void quern__reaction_pass_drop_changes(const quern__plan *plan);

#endif
