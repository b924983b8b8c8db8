/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_HISTORY_INTERNAL_H
#define QUERN_CORE_HISTORY_HISTORY_INTERNAL_H

/* The last frames of a world. A snapshot is a frame; all it knows lies in pages (store.h), which it shares
 * with others. The history has one more, `live`: what the world was like when it was saved or restored
 * last, `base_version` on its clock. From it, and from what has been noted since, follows what is different
 * now:
 *
 *   a column of a chunk      its version, or that of the chunk's rows, is later than base_version
 *   which rows a chunk has   the version of its rows is later, or it has another number of rows: rows may
 *                            leave its end without a note
 *   versions of its rows     for a component with row_changes: as its column
 *   slots, links             they are marked as touched
 *   names                    their version is another one
 *   all else                 is small, and copied each time
 *
 * So where nothing is noted, a new snapshot holds the page that live holds, and a snapshot that is restored
 * and holds the same page as live is there already.
 *
 * Restoring puts versions back as they were, but the clock goes on: all that is written afterwards has
 * later versions than anything before, and what filters have seen is put back, too; so each comparison of
 * versions comes out as it did.
 *
 * Failure: saving first builds the new snapshot, which may fail, and lets it go then; restoring first makes
 * room for everything (restore.c). What follows cannot fail.
 *
 * Archetypes are known by their identity, which restoring gives back with them. */

#include "core/base/executor.h"
#include "core/history/page_store.h"
#include "core/record/record.h"
#include "core/world/world_internal.h"

/* What a frame knows of an archetype. In one page: behind it components, versions of chunks as in
 * version.h, bit columns with their words, and pages, for each slot one per column, that of the handles, and one
 * per lane of versions of rows (row_versions.h). */
typedef struct quern__saved_archetype {
    uint64_t identity, empty_since;
    uint64_t row_count;
    uint32_t layout_index, row_capacity;
    uint32_t chunk_count, column_count, component_count, bit_column_count, bit_column_words;
    uint32_t version_count;   /* of a chunk */
    uint32_t slot_page_count; /* pages of a slot */
    uint32_t versions_offset, bit_columns_offset, words_offset, pages_offset;
    uint16_t component_indices[];
} quern__saved_archetype;

/* Bytes from there to here. */
typedef struct quern__transfer {
    char *target;
    const char *source;
    uint32_t bytes;
} quern__transfer;

/* A column of a chunk that a snapshot puts back other than by a transfer, or its rows' handles. */
typedef struct quern__column_restore {
    uint32_t archetype; /* in the snapshot */
    uint32_t slot;
    uint32_t column; /* or QUERN__RESTORE_HANDLES */
} quern__column_restore;

#define QUERN__RESTORE_HANDLES UINT32_MAX

/* What the records of a world come to. A group that lies in absent pages has no page. */
typedef struct quern__saved_slots {
    uint32_t slot_count, first_free, free_count, absent_count, retired_count;
    uint32_t page_count, group_count;
    quern__page absent_highs; /* of the pages of records */
    quern__page groups;       /* pages, one for each group of slots that is not absent */
} quern__saved_slots;

/* The links of one relation. */
typedef struct quern__saved_links {
    uint32_t page_count; /* of links; a page of them has 64 groups */
    quern__page groups;  /* pages, 0 where no page of links is */
} quern__saved_links;

/* Pages with values that have hooks and lie in no column, in the order in which they are asked for. */
typedef struct quern__value_pages {
    quern__page list;
    uint32_t count;
} quern__value_pages;

/* A page that has pages in it holds each of them once, however many snapshots hold it. */
typedef struct quern__snapshot {
    uint64_t frame;
    uint32_t archetype_count;
    uint32_t relation_count, resource_count;
    quern__page archetypes;   /* pages with quern__saved_archetype, in order */
    quern__page relations;    /* with quern__saved_links */
    quern__page resources;    /* pages, one for each */
    quern__page names;        /* see attachments.c */
    quern__page world_state;  /* see rest.c */
    quern__page caller_state; /* what sched/history keeps */
    quern__page commands;     /* waiting commands, 0: none; see kept.h */
    quern__value_pages command_values, event_values;
    uint64_t names_version; /* of the world, when that was so */
    quern__saved_slots slots;
} quern__snapshot;

enum { QUERN__MAX_RECORDER_LISTS = 8 };

/* Rows of an archetype in a snapshot, from one on. */
typedef struct quern__saved_row {
    const quern__saved_archetype *archetype; /* NULL: nowhere */
    uint32_t slot, row;
} quern__saved_row;

/* Neighbours in both of two snapshots, or in the one that has them. */
typedef struct quern__delta_row_range {
    quern__saved_row from, to;
    uint32_t count;
} quern__delta_row_range;

/* A row of one snapshot that stands elsewhere in the other, or that this does not have. */
typedef struct quern__unpaired_row {
    quern_entity handle;
    quern__saved_row at;
    bool is_in_other; /* the other snapshot has it */
} quern__unpaired_row;

/* Memory of delta_rows.c and delta_names.c, kept from one delta to the next. */
typedef struct quern__delta_scratch {
    QUERN__ARRAY(quern__delta_row_range)
    ranges;                   /* by place in `to`; behind them those that end, by place in `from` */
    uint32_t first_destroyed; /* index of the first run of entities that end */
    QUERN__ARRAY(quern__unpaired_row) unpaired;
    quern__map unpaired_by_handle; /* to places in that list */
    quern__map taken_names;        /* a set: see delta_names.c */
} quern__delta_scratch;

typedef struct quern__history {
    quern_world *world;
    quern__page_store store;
    quern__snapshot *frames; /* ring: see quern__history_frame */
    uint32_t first_frame;    /* index of the oldest frame in the ring */
    uint32_t frame_count, frame_capacity;
    quern__snapshot base; /* holds pages of its own; archetypes 0: there was none yet */
    uint64_t base_version;
    const quern__executor *executor; /* of the call that runs */

    QUERN__ARRAY(quern__transfer) transfers;
    QUERN__ARRAY(quern__column_restore) column_restores;
    struct quern__event_block *event_blocks; /* for events that are put back */
    uint64_t copied_bytes, copied_count;     /* by the last call */
    quern__recorders
        caller_recorders[QUERN__MAX_RECORDER_LISTS]; /* of the call that runs: lists that sched keeps, */
    uint32_t caller_recorder_count;                  /* always in one order */
    struct quern__rebuilt_recorder *rebuilt;         /* of a restore that runs */
    uint32_t rebuilt_count;
    uint32_t delta_count; /* deltas that hold snapshots */
    quern__delta_scratch delta_scratch;
} quern__history;

/* ------------------------------------------------------------------------------------- life cycle */

/* A history without frames, which the world has from now on. Errors: LIMIT, OUT_OF_MEMORY. */
quern_result quern__history_init(quern__history *history, quern_world *world,
                                 const quern_allocator *allocator, uint32_t frame_count);
void quern__history_release(quern__history *history);

/* ------------------------------------------------------------------------------------- saving */

/* Builds a snapshot of the world as it is, with a page of so many bytes outside, which the caller fills;
 * and keeps it under its number, or lets it go. Errors of the first: INVALID_ARGUMENT, OUT_OF_MEMORY, with
 * nothing left. */
quern_result quern__history_build(quern__history *history, uint64_t frame, size_t caller_state_bytes,
                                  quern__snapshot *out_snapshot);
void quern__history_add_frame(quern__history *history, const quern__snapshot *snapshot);

/* The i-th kept frame, from the oldest on; numbers of frames ascend. */
static inline quern__snapshot *quern__history_frame(const quern__history *history, uint32_t i)
{
    const uint32_t place = history->first_frame + i;
    return &history->frames[place < history->frame_capacity ? place : place - history->frame_capacity];
}

/* The kept frame of a number, or NULL. */
const quern__snapshot *quern__history_find(const quern__history *history, uint64_t frame);

/* Holds the pages of a snapshot once more, and lets them go, also those of one that was not built to its
 * end.
 */
void quern__snapshot_acquire(const quern__history *history, const quern__snapshot *snapshot);
void quern__snapshot_release(quern__history *history, const quern__snapshot *snapshot);

/* Takes the world to a frame that is kept. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, with everything as it
 * was. */
quern_result quern__history_restore(quern__history *history, const quern__snapshot *snapshot);

/* ------------------------------------------------------------------------------------- parts */

static inline quern__page *quern__pages_in(const quern__history *history, quern__page page)
{
    return (quern__page *)(void *)quern__page_memory(&history->store, page);
}

static inline quern__saved_archetype *quern__saved_archetype_at(const quern__history *history,
                                                                const quern__snapshot *snapshot, uint32_t i)
{
    return (quern__saved_archetype *)(void *)quern__page_memory(
        &history->store, quern__pages_in(history, snapshot->archetypes)[i]);
}

static inline uint64_t *quern__saved_versions(const quern__saved_archetype *saved)
{
    return (uint64_t *)(void *)((char *)(uintptr_t)saved + saved->versions_offset);
}

static inline quern__bit_column *quern__saved_bit_columns(const quern__saved_archetype *saved)
{
    return (quern__bit_column *)(void *)((char *)(uintptr_t)saved + saved->bit_columns_offset);
}

static inline uint64_t *quern__saved_words(const quern__saved_archetype *saved)
{
    return (uint64_t *)(void *)((char *)(uintptr_t)saved + saved->words_offset);
}

/* Of a slot: those of columns, behind them that of the handles, and then those of lanes. */
static inline quern__page *quern__saved_pages(const quern__saved_archetype *saved, uint32_t slot)
{
    quern__page *pages = (quern__page *)(void *)((char *)(uintptr_t)saved + saved->pages_offset);
    return pages + (size_t)slot * saved->slot_page_count;
}

static inline uint32_t quern__saved_row_count(const quern__saved_archetype *saved, uint32_t slot)
{
    if (slot >= saved->chunk_count) return 0;
    if (slot + 1 < saved->chunk_count) return saved->row_capacity;
    return (uint32_t)(saved->row_count - (uint64_t)slot * saved->row_capacity);
}

/* The handle of the entity that lives in a slot. */
quern_entity quern__saved_entity(const quern__history *history, const quern__snapshot *snapshot,
                                 uint32_t slot);

/* Whether the entity lives in a snapshot. */
bool quern__saved_is_alive(const quern__history *history, const quern__snapshot *snapshot,
                           quern_entity entity);

/* Whether the entity of a slot is a target of the relation with this index in the registry. */
bool quern__saved_has_children(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t slot);

/* A name in the page of names, which begins with their number. */
typedef struct quern__saved_name {
    uint32_t slot, parent;
    uint32_t length; /* of the text, which ends with a zero */
    const char *text;
} quern__saved_name;

quern__saved_name quern__read_saved_name(quern__byte_reader *reader);

/* The archetypes of a world beside those of live: for each of them, in their order, its place there, or
 * UINT32_MAX. Those of live that are gone are passed by. *place is 0 in the beginning. */
static inline quern__saved_archetype *quern__find_base_archetype(const quern__history *history,
                                                                 const quern__archetype *archetype,
                                                                 uint32_t *place)
{
    for (uint32_t i = *place; history->base.archetypes != 0 && i < history->base.archetype_count; i++) {
        quern__saved_archetype *saved = quern__saved_archetype_at(history, &history->base, i);
        if (saved->identity != archetype->identity) continue;
        *place = i + 1;
        return saved;
    }
    return NULL;
}

/* Notes a transfer; true when it was. One that goes on where the last one ends, but for what fills up a
 * line on either side, becomes part of that: chunks are then copied as a whole, which is faster than by
 * columns. */
static inline bool quern__history_add_transfer(quern__history *history, char *target, const char *source,
                                               size_t bytes)
{
    if (history->transfers.count > 0) {
        quern__transfer *last = &history->transfers.items[history->transfers.count - 1];
        const size_t whole_bytes = quern__align_up(last->bytes, QUERN__CACHE_LINE_BYTES);
        if (last->target + whole_bytes == target && last->source + whole_bytes == source &&
            whole_bytes + bytes <= QUERN__CHUNK_BYTES) {
            last->bytes = (uint32_t)(whole_bytes + bytes);
            return true;
        }
    }
    if (!quern__array_reserve(&history->store.allocator, &history->transfers, history->transfers.count + 1))
        return false;
    history->transfers.items[history->transfers.count++] =
        (quern__transfer){target, source, (uint32_t)bytes};
    return true;
}

static inline bool quern__history_add_column_restore(quern__history *history, quern__column_restore restore)
{
    if (!quern__array_reserve(&history->store.allocator, &history->column_restores,
                              history->column_restores.count + 1))
        return false;
    history->column_restores.items[history->column_restores.count++] = restore;
    return true;
}

/* From now on the world is as in the snapshot: that is live, and nothing is touched. */
void quern__history_set_base(quern__history *history, const quern__snapshot *snapshot);

/* Makes the transfers that were noted, on several threads where there is an executor. into_pages: what they
 * write is pages, which nobody reads soon. */
void quern__history_run_transfers(quern__history *history, bool into_pages);

quern_result quern__history_fail_memory(const char *what);

/* A list of so many, without pages so far. False when there is no memory. And lets go what the last holder
 * of a list lets go with it, before that goes itself. */
bool quern__value_pages_allocate(quern__history *history, uint32_t count, quern__value_pages *out_pages);
void quern__value_pages_release(quern__history *history, const quern__value_pages *pages);

/* Each part of a snapshot: builds it from the world, beside live (errors as quern__history_build; what was
 * built is in the snapshot, which the caller lets go); */
quern_result quern__build_archetypes(quern__history *history, quern__snapshot *snapshot);
quern_result quern__build_slots(quern__history *history, quern__snapshot *snapshot);
quern_result quern__build_links(quern__history *history, quern__snapshot *snapshot);
quern_result quern__build_names(quern__history *history, quern__snapshot *snapshot);
quern_result quern__build_resources(quern__history *history, quern__snapshot *snapshot);
quern_result quern__build_world_state(quern__history *history, quern__snapshot *snapshot);

/* lets the pages go that the part's page holds, before that goes itself; */
void quern__release_saved_archetypes(quern__history *history, const quern__snapshot *snapshot);
void quern__release_saved_slots(quern__history *history, const quern__snapshot *snapshot);
void quern__release_saved_links(quern__history *history, const quern__snapshot *snapshot);
void quern__release_saved_resources(quern__history *history, const quern__snapshot *snapshot);

/* makes room to put it back; and does, with links after slots, and rest last. */
quern_result quern__prepare_slots(quern__history *history, const quern__snapshot *snapshot);
void quern__restore_slots(quern__history *history, const quern__snapshot *snapshot);
quern_result quern__prepare_links(quern__history *history, const quern__snapshot *snapshot);
void quern__restore_links(quern__history *history, const quern__snapshot *snapshot);
quern_result quern__prepare_names(quern__history *history, const quern__snapshot *snapshot);
void quern__restore_names(quern__history *history, const quern__snapshot *snapshot);
void quern__restore_resources(quern__history *history, const quern__snapshot *snapshot);
quern_result quern__prepare_world_state(quern__history *history, const quern__snapshot *snapshot,
                                        quern__archetype *const *archetypes);
void quern__undo_world_state(quern__history *history);
void quern__restore_world_state(quern__history *history, const quern__snapshot *snapshot);

#endif
