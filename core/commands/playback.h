/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMANDS_PLAYBACK_H
#define QUERN_CORE_COMMANDS_PLAYBACK_H

/* Applying recorded commands at a sync point. The first three steps may fail and change nothing, the
 * fourth cannot fail:
 *
 *   gather   the streams of all recorders, sorted by key
 *   fold     all commands on one entity into one program (program.h)
 *   settle   for each program: final archetype, plan, where its values come from; for each archetype: how
 *            many rows come and go, and room for them
 *   commit   handles for creates, in order; then rows, chunk by chunk
 *   reset    the recorders, destroying values that nobody wanted
 *
 * The order of rows that comes out is defined by archetype, in this order:
 *   1. Entities that come from other archetypes are appended, in the order of archetype and row that they
 *      come from.
 *   2. Rows that were left are gaps. New entities, in the order of their creates, fill them, the first gap
 *      first; those that find none are appended.
 *   3. While there are gaps, the archetype ends as many rows earlier: those behind that end which are no
 *      gaps fill the gaps before it, first to first.
 * So an entity's place depends on where it was and not on the order of commands, and all that has to be
 * known of an entity lies beside that of its neighbours: the *sheet* of a chunk has an edit for each row
 * that commands touch. Sheets are also what threads share the work by. */

#include "core/base/executor.h"
#include "core/base/sort.h"
#include "core/commands/command.h"
#include "core/commands/program.h"

/* -------------------------------------------------------------------------------------------- edits */

/* What is known of one entity: its program so far and the item of the last operation. */
typedef struct quern__edit {
    char *item;
    uint32_t node;
    uint32_t earlier; /* link to the item before, or QUERN__LINK_NONE */
} quern__edit;

#define QUERN__LINK_NONE UINT32_MAX

/* The item of an earlier operation. */
typedef struct quern__link {
    char *item;
    uint32_t earlier;
} quern__link;

/* The rows of one sheet that have the same program. */
typedef struct quern__tally {
    uint32_t node;
    uint32_t count;
    uint32_t leader;  /* the first tally of the sheet with the same target: the three below count there */
    uint32_t arrival; /* the rank, among all that come to the target, of the next row */
    uint32_t left_count; /* rows that fit behind `at` in its chunk */
    uintptr_t at;        /* the next row's place */
} quern__tally;

/* Neighbouring rows of a sheet that have the same program. */
typedef struct quern__row_run {
    uint32_t row;
    uint32_t count;
    uint32_t tally;
} quern__row_run;

/* Consecutive commands of one stream that touch entities of one chunk only. */
typedef struct quern__piece {
    quern__chunk *chunk;
    struct quern__sorted_stream *stream;
    quern__run *run;            /* where it begins, */
    uint32_t first_item;        /* and at which of the run's items */
    uint32_t item_count;        /* over as many runs as it takes */
    uint64_t first_item_number; /* in the stream */
    struct quern__piece *next;  /* of the same sheet */
} quern__piece;

/* Commands of one system that were dropped for one reason. */
typedef struct quern__drop {
    uint32_t source;
    quern_drop_reason reason;
    uint64_t count;
    uint64_t first_key;         /* of the first of them: its stream's key, */
    uint64_t first_item_number; /* and the item's number in it */
    quern_entity first_entity;
} quern__drop;

/* What one thread folds into. */
typedef struct quern__scratch {
    quern__programs programs;
    QUERN__ARRAY(quern__link) links;
    QUERN__ARRAY(quern__tally) tallies;
    QUERN__ARRAY(quern__row_run) runs;
    QUERN__ARRAY(quern__piece) pieces;
    QUERN__ARRAY(quern__drop) drops;
    uint64_t dropped_count;
    bool is_out_of_memory;
} quern__scratch;

/* The edits of a chunk's rows, or of the entities that a stream creates. */
typedef struct quern__sheet {
    quern__chunk *chunk; /* NULL: of creates */
    quern__archetype *archetype;
    uint64_t *touched; /* of a chunk: a bit per row that has an edit */
    quern__edit *edits;
    uint32_t row_count; /* of creates: how many */
    uint32_t root;
    quern__scratch *scratch; /* that nodes, links, tallies and runs are of */
    uint32_t first_tally, tally_count;
    uint32_t first_run, run_count;
    uint64_t first_gap, first_destroyed; /* in the lists of playback */
    uint64_t first_created;              /* of creates: in the list of all */
    quern__piece *first_piece, *last_piece;
    bool is_hooked;
} quern__sheet;

/* A stream in its place in the order of all. */
typedef struct quern__sorted_stream {
    quern__stream *stream;
    bool is_located;       /* the locations in its items hold */
    uint32_t create_sheet; /* or QUERN__SHEET_NONE */
    uint32_t first_piece, piece_count;
    quern__scratch *scratch; /* that the pieces are in */
} quern__sorted_stream;

#define QUERN__SHEET_NONE UINT32_MAX

/* What happens to the rows of one archetype. */
typedef struct quern__flow {
    quern__archetype *archetype;
    uint32_t row_count;      /* before */
    uint32_t leaving_count;  /* destroyed, or gone to other archetypes */
    uint32_t arriving_count; /* from other archetypes */
    uint32_t created_count;
    uint32_t left_over_count; /* gaps that no create fills */
    uint64_t first_gap;
    uint32_t counted_sheet, tally; /* while a sheet's tallies are settled */
    bool is_reserved;
    bool is_emptied; /* all rows leave, and none come: gaps need not be listed */
} quern__flow;

/* Memory for edits that is used again at every sync point. */
typedef struct quern__arena_block {
    char *memory;
    size_t size_bytes;
} quern__arena_block;

typedef struct quern__playback {
    quern__storage *storage;
    uint64_t parallel_command_count; /* fewer commands than this are applied on the caller */
    const quern__executor *executor; /* while it runs; NULL: on the caller */
    /* scratch, kept from one sync point to the next */
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    QUERN__ARRAY(quern__sorted_stream) streams;
    QUERN__ARRAY(quern__sheet) sheets;
    QUERN__ARRAY(quern__sheet *) sorted_sheets; /* of chunks, by archetype and chunk */
    QUERN__ARRAY(quern__sheet *) create_sheets; /* in the order of streams */
    QUERN__ARRAY(quern__flow) flows;
    QUERN__ARRAY(uint32_t) flow_of_archetype; /* checked against the flow: never cleared */
    QUERN__ARRAY(uintptr_t) gaps;             /* locations, ascending for each flow */
    QUERN__ARRAY(uintptr_t) tails;            /* what moves into the gaps of one flow */
    QUERN__ARRAY(uint32_t) destroyed;         /* slots, in the order in which they are freed */
    uint32_t freed_count;               /* that the latest sync point has freed: they still stand there */
    QUERN__ARRAY(quern_entity) created; /* handles of creates, in order */
    QUERN__ARRAY(quern__scratch *) scratches; /* one per thread */
    QUERN__ARRAY(quern__arena_block) arena;
    uint32_t arena_block;
    size_t arena_used_bytes;
    QUERN__ARRAY(quern__drop) drops; /* since quern__playback_start_frame */
} quern__playback;

typedef struct quern__playback_stats {
    uint64_t command_count;
    uint64_t dropped_count; /* their entity did not live any more, or was refused */
    uint64_t created_count;
    uint64_t destroyed_count;
    uint64_t
        refused_count; /* entities whose commands ask for more than it, or the world, can have; dropped */
    quern_result refused_result; /* of the first of them, or QUERN_OK */
} quern__playback_stats;

void quern__playback_init(quern__playback *playback, quern__storage *storage);

void quern__playback_release(quern__playback *playback);

/* Forgets the drops reported so far. */
void quern__playback_start_frame(quern__playback *playback);

/* Applies everything recorded in `count` recorders, resets them, and adds to stats and drops. executor may
 * be NULL. On failure the world and the recorders are as before, so that it can be tried again. Errors:
 * OUT_OF_MEMORY, LIMIT. */
quern_result quern__playback_run(quern__playback *playback, quern_commands *recorders, uint32_t count,
                                 const quern__executor *executor, quern__playback_stats *stats);

/* ------------------------------------------------------------------------- the steps, for playback.c */

/* Zeroed only in its first zeroed_bytes. NULL: no memory. */
void *quern__playback_allocate(quern__playback *playback, size_t size_bytes, size_t zeroed_bytes);

/* The sheet of a chunk, made where there is none. NULL: no memory. */
quern__sheet *quern__playback_sheet(quern__playback *playback, quern__chunk *chunk);

quern_result quern__playback_fold(quern__playback *playback, uint64_t command_count);

quern_result quern__playback_settle(quern__playback *playback, quern__playback_stats *stats);

/* Gives everything back that settling has reserved. */
void quern__playback_unsettle(quern__playback *playback);

void quern__playback_commit(quern__playback *playback);

/* For builds with QUERN_CHECKS: reports provisional handles that nobody will replace, in values that have
 * not been moved yet. */
void quern__playback_look_for_provisional(const quern__playback *playback);

/* Counts dropped commands of one item. */
void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason);

/* The flow of an archetype that has one. */
static inline quern__flow *quern__playback_flow(const quern__playback *playback,
                                                const quern__archetype *archetype)
{
    return &playback->flows.items[playback->flow_of_archetype.items[archetype->index]];
}

#endif
