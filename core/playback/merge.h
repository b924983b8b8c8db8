/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_MERGE_H
#define QUERN_CORE_PLAYBACK_MERGE_H

/* Merging, the second stage of a sync point: all commands on one entity become one edit, and edits with the
 * same effect form groups.
 *
 * Edits are stored by chunk: each chunk with edited rows has *chunk edits*, an array of edits indexed by row.
 * As a result, edits are in the order of rows instead of commands, no edit is searched by entity, and threads
 * can share the chunks. */

#include "core/base/executor.h"
#include "core/playback/drop.h"
#include "core/playback/gather.h"
#include "core/playback/sequence.h"
#include "core/record/view_batch.h"

/* The edit of one entity: all commands on it at this sync point. */
typedef struct quern__edit {
    char *item;        /* item of the last command */
    uint32_t sequence; /* index of the sequence of all its operations */
    /* index of the previous command's item in earlier_items, or QUERN__EARLIER_NONE */
    uint32_t earlier;
} quern__edit;

#define QUERN__EARLIER_NONE UINT32_MAX

/* The item of an earlier command on the same entity. */
typedef struct quern__earlier_item {
    char *item;
    uint32_t earlier;
} quern__earlier_item;

/* The edit of several rows of a chunk whose commands at this sync point are all commands for views, each for
 * exactly these rows. */
typedef struct quern__view_edit {
    quern__command_batch *batch; /* first command; has the rows */
    quern__view_items items;     /* of the last command */
    uint32_t sequence;           /* index of the sequence of all operations */
    uint32_t earlier; /* index of the previous command's items in earlier_views, or QUERN__EARLIER_NONE */
    uint32_t next;    /* index of the next view edit of the chunk; unused in the last one */
    uint32_t group;   /* set while edits are grouped */
} quern__view_edit;

/* The items of an earlier command of a view edit. */
typedef struct quern__earlier_view {
    quern__view_items items;
    uint32_t earlier;
} quern__earlier_view;

/* An edit group: the rows of a chunk that have the same sequence. */
typedef struct quern__edit_group {
    uint32_t sequence;
    uint32_t count;
    /* Set by resolving: */
    /* first group of these edits with the same target archetype; its next three members hold for all of them */
    uint32_t leader;
    /* rank of the next row among all rows that arrive in the target, or that are created there */
    uint32_t arrival;
    uint32_t left_count; /* number of rows that fit from `at` to the end of the chunk */
    uintptr_t at;        /* location of the next row */
} quern__edit_group;

/* Consecutive rows of one group. */
typedef struct quern__row_range {
    uint32_t row;
    uint32_t count;
    uint32_t group;
} quern__row_range;

/* Consecutive commands of one stream on entities in the same chunk. */
typedef struct quern__command_span {
    quern__chunk *chunk;
    const quern__gathered_stream *stream;
    quern__command_batch *batch;      /* first batch */
    uint32_t first_item;              /* index of the first item in that batch */
    uint32_t item_count;              /* number of items, which may extend over several batches */
    uint64_t first_item_number;       /* number of the first item in the stream */
    struct quern__command_span *next; /* next span of the same chunk */
} quern__command_span;

/* Output lists of one merging thread. */
typedef struct quern__scratch {
    quern__sequences sequences;
    QUERN__ARRAY(quern__earlier_item) earlier_items;
    QUERN__ARRAY(quern__view_edit) view_edits;
    QUERN__ARRAY(quern__earlier_view) earlier_views;
    QUERN__ARRAY(quern__edit_group) groups;
    QUERN__ARRAY(quern__row_range) row_ranges;
    QUERN__ARRAY(quern__command_span) spans;
    quern__drops drops;
    bool is_out_of_memory;
} quern__scratch;

/* The edits of the rows of a chunk, or of the entities created by a stream. The edits of a chunk are view edits
 * (view_edits.h) as long as view_count is not 0, and edits of single rows otherwise. */
typedef struct quern__chunk_edits {
    quern__chunk *chunk; /* NULL: edits of creates */
    quern__archetype *archetype;
    /* Of a chunk: one bit per row, set if the row has an edit. touched[-1] has one bit per nonzero word. NULL
     * for creates, which all have an edit. */
    uint64_t *touched;
    quern__edit *rows;
    uint32_t row_count;      /* number of rows of the chunk, or of creates */
    uint32_t root;           /* sequence without commands */
    quern__scratch *scratch; /* owner of the sequences, earlier items, groups and row ranges */
    uint32_t first_group, group_count;
    uint32_t first_range, range_count;
    /* View edits, in the order of rows; no two of them overlap. */
    uint32_t view_count;
    uint32_t first_view, last_view;
    uint32_t current_view;                       /* the one that the latest command concerned */
    quern__command_span *first_span, *last_span; /* only if several threads merge */
    /* Set by resolving: */
    /* first indices in the lists of quern__resolved */
    uint64_t first_gap, first_destroyed, first_created;
    bool is_hooked; /* applying these edits calls hooks */
} quern__chunk_edits;

/* State of merging for one gathered stream. */
typedef struct quern__merged_stream {
    quern__scratch *scratch; /* scratch of the thread that iterated the stream */
    uint32_t first_span, span_count;
    uint32_t create_edits; /* index in quern__merged.edits, or QUERN__EDITS_NONE */
} quern__merged_stream;

#define QUERN__EDITS_NONE UINT32_MAX

/* A block of memory for edits, reused at every sync point. */
typedef struct quern__arena_block {
    char *memory;
    size_t size_bytes;
} quern__arena_block;

typedef struct quern__merged {
    /* edits of creates in the order of streams, then edits of chunks */
    QUERN__ARRAY(quern__chunk_edits) edits;
    uint32_t create_edits_count;
    /* number of leading scratches that threads may have used at this sync point */
    uint32_t used_scratch_count;
    uint64_t first_stamp; /* stamp of the first edits; unique over all sync points, and never 0 */
    QUERN__ARRAY(quern__chunk_edits *) chunk_edits; /* sorted by archetype and chunk */
    /* Parallel to the gathered streams. Empty if no stream creates entities and one thread merges. */
    QUERN__ARRAY(quern__merged_stream) streams;
    QUERN__ARRAY(quern__scratch *) scratches; /* one per thread */
    /* Index in `edits` by quern__chunk_number. Never cleared: an entry is valid only if those edits belong to
     * the chunk. */
    QUERN__ARRAY(uint32_t) edits_of_chunk;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    QUERN__ARRAY(quern__arena_block) arena;
    uint32_t arena_block;
    size_t arena_used_bytes;
} quern__merged;

void quern__merged_release(quern__merged *merged, const quern_allocator *allocator);

/* Merges all commands. `merged` must have been cleared. executor NULL: runs on the calling thread. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__commands_merge(quern__merged *merged, const quern__gathered *gathered,
                                   const quern__storage *storage, const quern__executor *executor);

/* Ends the sync point: removes all edits and keeps the memory. holds_sequences: all sequences were resolved and
 * none was refused, so later sync points can reuse them. */
void quern__merged_clear_used(quern__merged *merged, const quern__storage *storage, bool holds_sequences);

static inline void quern__merged_clear(quern__merged *merged, const quern__storage *storage,
                                       bool holds_sequences)
{
    if (merged->used_scratch_count > 0) quern__merged_clear_used(merged, storage, holds_sequences);
}

/* Counts dropped commands: those of the item with this number in the stream. */
void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason);

/* Adds a later command to an edit. No earlier command may destroy the entity. If the command only replaces the
 * effect of the one before, its item replaces that item. Returns false if out of memory.
 *
 * Equal operations of different recorders count as the same operation. Otherwise sequences, and with them the
 * order of hooks, would depend on which recorder a command is from. */
static inline bool quern__edit_extend(quern__scratch *scratch, quern__edit *edit,
                                      const quern__operation *operation, char *item)
{
    const quern__operation *last = scratch->sequences.list.items[edit->sequence].operation;
    if (quern__operation_replaces_itself(operation) &&
        (last == operation || (last->key == operation->key && quern__operation_equal(last, operation)))) {
        edit->item = item;
        return true;
    }
    const uint32_t to = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
    const uint32_t count = scratch->earlier_items.count;
    if (to == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_items, count + 1))
        return false;
    scratch->earlier_items.items[scratch->earlier_items.count++] =
        (quern__earlier_item){.item = edit->item, .earlier = edit->earlier};
    *edit = (quern__edit){.item = item, .sequence = to, .earlier = count};
    return true;
}

/* Returns the edits of a chunk, or NULL if it has none. The chunk must have existed when merging began. */
static inline quern__chunk_edits *quern__merged_find(const quern__merged *merged, const quern__chunk *chunk)
{
    const uint32_t guess = merged->edits_of_chunk.items[quern__chunk_number(chunk)];
    if (guess >= merged->edits.count || merged->edits.items[guess].chunk != chunk) return NULL;
    return &merged->edits.items[guess];
}

#endif
