/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_MERGE_H
#define QUERN_CORE_PLAYBACK_MERGE_H

/* Merging, the second stage of a sync point: all commands on one entity become one edit, and edits that do
 * the same become groups.
 *
 * What is known of an entity stands beside what is known of its neighbours: each chunk that commands touch
 * has *chunk edits*, with an edit by row. So the order that comes out is that of rows and not that of
 * commands, nothing has to be looked up by entity, and chunks can be shared out among threads. */

#include "core/base/executor.h"
#include "core/playback/drop.h"
#include "core/playback/gather.h"
#include "core/playback/sequence.h"

/* What commands do to one entity. */
typedef struct quern__edit {
    char *item;        /* of the last of its commands */
    uint32_t sequence; /* of all of them */
    uint32_t earlier;  /* the item of the command before, or QUERN__EARLIER_NONE */
} quern__edit;

#define QUERN__EARLIER_NONE UINT32_MAX

/* The item of an earlier command on the same entity. */
typedef struct quern__earlier_item {
    char *item;
    uint32_t earlier;
} quern__earlier_item;

/* An edit group: the rows of a chunk that have the same sequence. */
typedef struct quern__edit_group {
    uint32_t sequence;
    uint32_t count;
    /* by resolving: */
    uint32_t leader;  /* the first group of the chunk with the same target: the three below count there */
    uint32_t arrival; /* the rank, among all that come to the target, of the next row */
    uint32_t left_count; /* rows that fit after `at` in its chunk */
    uintptr_t at;        /* the next row's place */
} quern__edit_group;

/* Neighbouring rows of one group. */
typedef struct quern__row_run {
    uint32_t row;
    uint32_t count;
    uint32_t group;
} quern__row_run;

/* Consecutive commands of one stream that touch entities of one chunk only. */
typedef struct quern__command_span {
    quern__chunk *chunk;
    const quern__gathered_stream *stream;
    quern__run *run;                  /* where it begins, */
    uint32_t first_item;              /* and at which of the run's items */
    uint32_t item_count;              /* over as many runs as it takes */
    uint64_t first_item_number;       /* in the stream */
    struct quern__command_span *next; /* of the same chunk */
} quern__command_span;

/* What one thread merges into. */
typedef struct quern__scratch {
    quern__sequences sequences;
    QUERN__ARRAY(quern__earlier_item) earlier_items;
    QUERN__ARRAY(quern__edit_group) groups;
    QUERN__ARRAY(quern__row_run) runs;
    QUERN__ARRAY(quern__command_span) spans;
    quern__drops drops;
    bool is_out_of_memory;
} quern__scratch;

/* The edits of a chunk's rows, or those of the entities that a stream creates. */
typedef struct quern__chunk_edits {
    quern__chunk *chunk; /* NULL: of creates */
    quern__archetype *archetype;
    /* Of a chunk: a bit per row that has an edit; touched[-1] has a bit per word that is not 0. NULL: of
     * creates, which all have one. */
    uint64_t *touched;
    quern__edit *rows;
    uint32_t row_count;      /* of creates: how many */
    uint32_t root;           /* the sequence of no command */
    quern__scratch *scratch; /* that sequences, earlier items, groups and runs are of */
    uint32_t first_group, group_count;
    uint32_t first_run, run_count;
    quern__command_span *first_span, *last_span; /* on several threads */
    /* by resolving: */
    uint64_t first_gap, first_destroyed, first_created; /* in its lists */
    bool is_hooked;                                     /* some hook will be called */
} quern__chunk_edits;

/* What merging knows of a gathered stream. */
typedef struct quern__merged_stream {
    quern__scratch *scratch; /* of the thread that walked it */
    uint32_t first_span, span_count;
    uint32_t create_edits; /* in the list of all, or QUERN__EDITS_NONE */
} quern__merged_stream;

#define QUERN__EDITS_NONE UINT32_MAX

/* Memory for edits that is used again at every sync point. */
typedef struct quern__arena_block {
    char *memory;
    size_t size_bytes;
} quern__arena_block;

typedef struct quern__merged {
    QUERN__ARRAY(quern__chunk_edits) edits; /* those of creates, in the order of streams, then chunks' */
    uint32_t create_edits_count;
    uint32_t used_scratch_count; /* the first ones, by threads that may have merged at this sync point */
    uint64_t first_stamp;        /* of the first edits; unique over all sync points, and never 0 */
    QUERN__ARRAY(quern__chunk_edits *) chunk_edits; /* by archetype and chunk */
    /* As they were gathered; empty where no stream creates and one thread merges. */
    QUERN__ARRAY(quern__merged_stream) streams;
    QUERN__ARRAY(quern__scratch *) scratches; /* one per thread */
    /* Which edits are a chunk's, by quern__chunk_number. Never cleared: an entry is a guess, which counts
     * when the edits that it names are the chunk's. */
    QUERN__ARRAY(uint32_t) edits_of_chunk;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    QUERN__ARRAY(quern__arena_block) arena;
    uint32_t arena_block;
    size_t arena_used_bytes;
} quern__merged;

void quern__merged_release(quern__merged *merged, const quern_allocator *allocator);

/* What `merged` had before has been cleared. executor NULL: on the caller. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_merge(quern__merged *merged, const quern__gathered *gathered,
                                   const quern__storage *storage, const quern__executor *executor);

/* Ends the sync point: removes all edits and keeps the memory. holds_sequences: all sequences were resolved
 * and none was refused, so they are kept for later sync points. */
void quern__merged_clear_used(quern__merged *merged, const quern__storage *storage, bool holds_sequences);

static inline void quern__merged_clear(quern__merged *merged, const quern__storage *storage,
                                       bool holds_sequences)
{
    if (merged->used_scratch_count > 0) quern__merged_clear_used(merged, storage, holds_sequences);
}

/* Counts a command that is dropped: of this stream, the item with this number. */
void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason);

/* Adds a later command to the edit of an entity that no earlier command destroys. A command that only replaces
 * the one before takes its place. False: no memory.
 *
 * Equal operations count as one, although each recorder has its own: sequences, and with them the order of
 * hooks, must not depend on which recorder a command is of. */
static inline bool quern__edit_extend(quern__scratch *scratch, quern__edit *edit,
                                      const quern__operation *operation, quern__item *item)
{
    const quern__operation *last = scratch->sequences.list.items[edit->sequence].operation;
    if (quern__operation_replaces_itself(operation) &&
        (last == operation || (last->key == operation->key && quern__operation_equal(last, operation)))) {
        edit->item = (char *)item;
        return true;
    }
    const uint32_t to = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
    const uint32_t count = scratch->earlier_items.count;
    if (to == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_items, count + 1))
        return false;
    scratch->earlier_items.items[scratch->earlier_items.count++] =
        (quern__earlier_item){.item = edit->item, .earlier = edit->earlier};
    *edit = (quern__edit){.item = (char *)item, .sequence = to, .earlier = count};
    return true;
}

/* The edits of a chunk that was there when merging began, or NULL where it has none. */
static inline quern__chunk_edits *quern__merged_find(const quern__merged *merged, const quern__chunk *chunk)
{
    const uint32_t guess = merged->edits_of_chunk.items[quern__chunk_number(chunk)];
    if (guess >= merged->edits.count || merged->edits.items[guess].chunk != chunk) return NULL;
    return &merged->edits.items[guess];
}

#endif
