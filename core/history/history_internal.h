/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_HISTORY_INTERNAL_H
#define QUERN_CORE_HISTORY_HISTORY_INTERNAL_H

/* The memory of a history: pages in fixed size classes. Frames share pages by counting references. Pages
 * are cut from blocks. A page without references is reused for the next request of its size class;
 * blocks are released with the store. So a history of similar frames allocates no memory after the
 * first ones.
 *
 * Sizes are whole cache lines, like columns in chunks, up to the size of a chunk; above that, size
 * classes grow by at most a quarter. The page freed last is reused first. So code that frees pages in
 * reverse order and requests the same sizes again receives them in the same memory order as before. */

#include "core/base/base_internal.h"
#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/events/event_internal.h"
#include "core/record/record.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

#include <quern/history.h>

/* Index of a page in the store; 0: no page. */
typedef uint32_t quern__page;

enum { QUERN__PAGE_LINES = 256, QUERN__PAGE_CLASSES = QUERN__PAGE_LINES + 112 };

typedef struct quern__page_entry {
    char *memory;
    const quern__type *type; /* type of the values with hooks; NULL: none */
    uint32_t value_count;
    uint16_t size_class;
} quern__page_entry;

typedef struct quern__page_block {
    char *memory;
    size_t size_bytes, alignment_bytes;
} quern__page_block;

typedef struct quern__page_store {
    quern_allocator allocator;
    QUERN__ARRAY(quern__page_entry) pages;
    /* By page: number of references; for a free page, the next free page of its size class. */
    QUERN__ARRAY(uint32_t) reference_counts;
    QUERN__ARRAY(quern__page_block) blocks;
    quern__page first_free[QUERN__PAGE_CLASSES];
    char *unused; /* unused end of the last block */
    size_t unused_bytes;
    uint64_t held_bytes; /* sum of the sizes of all blocks */
    uint64_t used_bytes; /* sum of the sizes of all pages with a reference */
    uint32_t used_count;
} quern__page_store;

/* Slow path of quern__page_allocate: reuses or adds a page when the fast path finds none or the size
 * exceeds a chunk. */
quern__page quern__page_allocate_slow(quern__page_store *store, size_t bytes);

/* Frees a page without references: destroys its values with hooks and adds the page to the free list. */
void quern__page_free(quern__page_store *store, quern__page page);

/* Returns a page of at least `bytes` bytes with one reference, or 0 if out of memory. */
static inline quern__page quern__page_allocate(quern__page_store *store, size_t bytes)
{
    const size_t last =
        bytes > 0 ? (bytes - 1) / QUERN__CACHE_LINE_BYTES : 0; /* index of the last cache line */
    const quern__page page = last < QUERN__PAGE_LINES ? store->first_free[last] : 0;
    if (QUERN__UNLIKELY(page == 0)) return quern__page_allocate_slow(store, bytes);
    store->first_free[last] = store->reference_counts.items[page];
    store->reference_counts.items[page] = 1;
    store->used_count++;
    store->used_bytes += (last + 1) * QUERN__CACHE_LINE_BYTES;
    return page;
}

static inline char *quern__page_memory(const quern__page_store *store, quern__page page)
{
    return store->pages.items[page].memory;
}

static inline quern__page quern__page_allocate_zeros(quern__page_store *store, size_t bytes)
{
    const quern__page page = quern__page_allocate(store, bytes);
    if (page != 0) memset(quern__page_memory(store, page), 0, bytes);
    return page;
}

/* Return a reader and a writer for a page, from its start to the end of its size class. */
quern__byte_reader quern__page_reader(const quern__page_store *store, quern__page page);
quern__byte_writer quern__page_writer(const quern__page_store *store, quern__page page);

/* Removes a reference. Page 0, which means no page, is accepted and never freed. */
static inline void quern__page_release(quern__page_store *store, quern__page page)
{
    if (--store->reference_counts.items[page] == 0 && page != 0) quern__page_free(store, page);
}

/* The most recent frames of a world. Each frame is a snapshot, stored in pages that
 * snapshots share with each other.
 *
 * The history also holds the *base*: the snapshot that was saved or restored last. `base_version` is the
 * world's clock at that time. A save or restore finds what differs from the base without comparing
 * values:
 *
 *   column of a chunk     its version, or the version of the chunk's rows, is later than base_version
 *   rows of a chunk       the version of its rows is later, or the row count differs (removing the last
 *                         rows of a chunk does not change the version)
 *   row versions          like the column: components with row_changes only
 *   slots and links       their modification mark is set
 *   names                 the version of the names differs
 *   everything else       is small and is copied each time
 *
 * Where nothing has changed, a new snapshot shares the page of the base. Where a restored snapshot
 * shares a page with the base and nothing has changed, the world already has the values of that page.
 *
 * Restoring sets versions back to their saved values, but the clock continues. So later writes have
 * later versions than anything before. The versions that change filters have seen are restored too, so
 * each later comparison of versions gives the saved result.
 *
 * Errors: saving builds the new snapshot first, which may fail, and releases it in that case. Restoring
 * reserves all memory first (snapshot.c). The steps after that cannot fail.
 *
 * Archetypes are matched by their identity. Restoring restores the identity as well. */

/* An archetype in a snapshot. One page contains this struct, then the component indices, the versions of
 * the chunks (chunk.h), the words of the bit columns (of each: a count, then one bit per row), the bit
 * columns, and the pages of the chunks. Each chunk has slot_page_count pages: one per column, one for
 * the entity handles, and one per lane of row versions (chunk.h). A `slot` is the index of a
 * chunk in its archetype. */
typedef struct quern__saved_archetype {
    uint64_t identity, empty_since;
    uint64_t row_count;
    uint32_t layout_index, row_capacity;
    uint32_t chunk_count, column_count, component_count, bit_column_count, bit_column_words;
    uint32_t version_count;   /* versions of each chunk */
    uint32_t slot_page_count; /* pages of each chunk */
    uint32_t versions_offset, bit_columns_offset, words_offset, pages_offset;
    uint16_t component_indices[];
} quern__saved_archetype;

/* A block of bytes to be copied. */
typedef struct quern__transfer {
    char *target;
    const char *source;
    uint32_t bytes;
} quern__transfer;

/* A column of a chunk, or the handles of its rows, that restoring cannot copy by a transfer: copy hooks
 * copy their values, and placing handles also sets the records of their entities. */
typedef struct quern__column_restore {
    uint32_t archetype; /* index in the snapshot */
    uint32_t slot;
    uint32_t column; /* column index, or QUERN__RESTORE_HANDLES */
} quern__column_restore;

#define QUERN__RESTORE_HANDLES UINT32_MAX

/* Sets of edges of one slot that a restore has built, to replace those in the world. */
typedef struct quern__edge_restore {
    quern__edges *edges;
    uint32_t slot;
    quern__edge_node node;
} quern__edge_restore;

/* A slot in a snapshot: the generation, and either that the slot is alive or the next free slot. The rows of alive entities
 * are found in the chunks. */
typedef struct quern__saved_slot {
    uint32_t handle_high;
    uint32_t next; /* next free slot, as in the record of a free slot, or QUERN__SAVED_ALIVE */
} quern__saved_slot;

/* Value of `next` for an alive slot. No slot has this number. */
#define QUERN__SAVED_ALIVE (QUERN__SLOT_NONE - 1)
_Static_assert(QUERN_MAX_ENTITIES < QUERN__SAVED_ALIVE, "no slot has this number");

/* The entity slots of a snapshot, in groups of QUERN__SLOT_GROUP. A group has no page if the
 * world lacks its page of records. */
typedef struct quern__saved_slots {
    uint32_t slot_count, first_free, free_count, absent_count, retired_count;
    uint32_t page_count, group_count;
    quern__page absent_highs; /* uint32_t per page of records: see quern__entities */
    quern__page groups;       /* array of quern__page, by group; 0: absent */
} quern__saved_slots;

/* The links of one relation in a snapshot, or its edges. */
typedef struct quern__saved_links {
    uint32_t page_count; /* pages of links or edges in the world; each has 64 groups */
    quern__page groups;  /* array of quern__page, by group; 0: no links or edges */
} quern__saved_links;

/* Pages of values that have hooks and belong to no column, in the order in which restoring reads them. */
typedef struct quern__value_pages {
    quern__page list;
    uint32_t count;
} quern__value_pages;

/* The state of a world at one frame. A page that lists other pages holds one reference to each of them,
 * no matter how many snapshots share the list. */
typedef struct quern__snapshot {
    uint64_t frame;
    uint32_t archetype_count;
    uint32_t relation_count, resource_count;
    quern__page archetypes;   /* pages of quern__saved_archetype, in the world's order */
    quern__page relations;    /* array of quern__saved_links */
    quern__page resources;    /* array of quern__page: one value each */
    quern__page names;        /* names of all entities: see quern__saved_name */
    quern__page world_state;  /* pending reactions, events and numbers: see saved_pending.c */
    quern__page caller_state; /* written and read by the caller of quern__history_build */
    quern__page commands;     /* waiting commands; 0: none */
    quern__value_pages command_values, event_values;
    uint64_t names_version; /* version of the world's names when the snapshot was built */
    quern__saved_slots slots;
} quern__snapshot;

enum { QUERN__MAX_RECORDER_LISTS = 8 };

/* A row of an archetype in a snapshot, or the first of several rows. */
typedef struct quern__saved_row {
    const quern__saved_archetype *archetype; /* NULL: the entity is not in the snapshot */
    uint32_t slot, row;
} quern__saved_row;

/* Rows that are consecutive in both snapshots, or in the only snapshot that contains their entities. */
typedef struct quern__delta_row_range {
    quern__saved_row from, to;
    uint32_t count;
} quern__delta_row_range;

/* A row of `from`. Its entity is in another row of `to`, or not in `to` at all. */
typedef struct quern__unpaired_row {
    quern_entity handle;
    quern__saved_row at;
    bool is_in_to; /* whether `to` contains the entity */
} quern__unpaired_row;

/* Scratch memory of delta.c, reused by later deltas. */
typedef struct quern__delta_scratch {
    /* Ordered by row in `to`; then the ranges of destroyed entities, ordered by row in `from`. */
    QUERN__ARRAY(quern__delta_row_range) ranges;
    uint32_t first_destroyed; /* index of the first range of destroyed entities */
    QUERN__ARRAY(quern__unpaired_row) unpaired;
    quern__map unpaired_by_handle; /* entity handle -> index in `unpaired` */
    quern__map used_names;         /* set of the names that entities have only in `to`: see delta.c */
} quern__delta_scratch;

typedef struct quern__history {
    quern_world *world;
    quern__page_store store;
    quern__snapshot *frames; /* ring buffer: see quern__history_frame */
    uint32_t first_frame;    /* index of the oldest frame in the ring buffer */
    uint32_t frame_count, frame_capacity;
    quern__snapshot base; /* has references of its own; no archetypes: no base yet */
    uint64_t base_version;
    const quern__executor *executor; /* executor of the current call; NULL: one thread */

    QUERN__ARRAY(quern__transfer) transfers;
    QUERN__ARRAY(quern__column_restore) column_restores;
    QUERN__ARRAY(quern__edge_restore) edge_restores;
    /* List of event blocks that the current restore has reserved. */
    struct quern__event_block *event_blocks;
    uint64_t copied_bytes, copied_count; /* bytes and blocks copied by the last save or restore */

    /* Recorders of the caller to be saved or restored too, set before each call. Their order never changes. */
    quern__recorders caller_recorders[QUERN__MAX_RECORDER_LISTS];
    uint32_t caller_recorder_count;

    /* Recorders rebuilt by the current restore: see saved_pending.c. */
    struct quern__rebuilt_recorder *rebuilt;
    uint32_t rebuilt_count;
    uint32_t delta_count; /* existing deltas; each holds two snapshots */
    quern__delta_scratch delta_scratch;
} quern__history;

/* ------------------------------------------------------------------------------------- life cycle */

/* Initialises an empty history and registers it with the world. Errors: LIMIT (the world has a history
 * already), OUT_OF_MEMORY. */
quern_result quern__history_init(quern__history *history, quern_world *world,
                                 const quern_allocator *allocator, uint32_t frame_count);
void quern__history_release(quern__history *history);

/* ------------------------------------------------------------------------------------- saving */

/* quern__history_build builds a snapshot of the world, with a page of `caller_state_bytes` bytes that
 * the caller fills. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY; then no snapshot remains.
 * quern__history_add_frame makes the snapshot a frame of the history, and makes it the base. It drops
 * frames with the same or a later number, and the oldest frame if the history is full. */
quern_result quern__history_build(quern__history *history, uint64_t frame, size_t caller_state_bytes,
                                  quern__snapshot *out_snapshot);
void quern__history_add_frame(quern__history *history, const quern__snapshot *snapshot);

/* Returns the i-th retained frame, counted from the oldest. Frame numbers ascend. */
static inline quern__snapshot *quern__history_frame(const quern__history *history, uint32_t i)
{
    const uint32_t index = history->first_frame + i;
    return &history->frames[index < history->frame_capacity ? index : index - history->frame_capacity];
}

/* Returns the retained frame with this number, or NULL. */
const quern__snapshot *quern__history_find(const quern__history *history, uint64_t frame);

/* Add and remove a reference to each page of a snapshot. quern__snapshot_release also accepts a snapshot
 * that was built only in part. */
void quern__snapshot_acquire(const quern__history *history, const quern__snapshot *snapshot);
void quern__snapshot_release(quern__history *history, const quern__snapshot *snapshot);

/* Restores the world to a snapshot. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY; then the world is
 * unchanged. */
quern_result quern__history_restore(quern__history *history, const quern__snapshot *snapshot);

/* ----------------------------------------------------------------------- access to snapshots */

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

static inline quern__bit_column *quern__saved_bit_columns(const quern__saved_archetype *saved)
{
    return (quern__bit_column *)(void *)((char *)(uintptr_t)saved + saved->bit_columns_offset);
}

static inline uint64_t *quern__saved_words(const quern__saved_archetype *saved)
{
    return (uint64_t *)(void *)((char *)(uintptr_t)saved + saved->words_offset);
}

/* Returns the pages of one chunk: its columns, then the entity handles, then the lanes of row versions. */
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

/* One name in a snapshot's page of names. The page begins with the number of names. */
typedef struct quern__saved_name {
    uint32_t slot, parent;
    uint32_t length; /* of `text`, without the terminating 0 */
    const char *text;
} quern__saved_name;

static inline quern__saved_name quern__read_saved_name(quern__byte_reader *reader)
{
    const uint64_t slots = quern__read_u64(reader);
    const uint32_t length = (uint32_t)quern__read_u64(reader);
    const char *text = quern__read_in_place(reader, (size_t)length + 1);
    assert(text != NULL);
    return (quern__saved_name){(uint32_t)slots, (uint32_t)(slots >> 32), length, text};
}

/* Makes the snapshot the base for later comparisons, clears all modification marks and advances the
 * world's clock. Nothing else in the world changes. */
void quern__history_set_base(quern__history *history, const quern__snapshot *snapshot);

quern_result quern__history_fail_memory(const char *what);

/* The functions of what waits in the world: commands, events, and changes that are not yet reported to reactions. They
 * are as those of the parts in snapshot.c; the world state is restored last. Errors: INVALID_ARGUMENT (something waits that
 * cannot be copied), OUT_OF_MEMORY. archetypes: those of the world in the order of the snapshot. After an error,
 * quern__undo_world_state releases what prepare has built. */
quern_result quern__build_world_state(quern__history *history, quern__snapshot *snapshot);
quern_result quern__prepare_world_state(quern__history *history, const quern__snapshot *snapshot,
                                        quern__archetype *const *archetypes);
void quern__undo_world_state(quern__history *history);
void quern__restore_world_state(quern__history *history, const quern__snapshot *snapshot);

/* Edges in snapshots. snapshot.c calls the functions below for each group of a relation with several targets per
 * source. Both sets of each slot are saved, although one follows from the other: a restore then replaces whole sets, and
 * reserves their memory before it changes the world. */

enum { QUERN__SAVED_EDGE_SETS = 2 * QUERN__EDGE_GROUP };

/* The head of a page: the number of the first member of each set, targets first, and the number of all members. */
typedef struct quern__saved_edges {
    uint32_t first[QUERN__SAVED_EDGE_SETS + 1];
    uint32_t unused; /* padding, 0 */
} quern__saved_edges;

/* Returns a set of a page: the targets of slot `set` of the group, or from QUERN__EDGE_GROUP on, the sources. page: 0 for
 * a group without edges. */
static inline quern__edge_range quern__saved_edge_set(const quern__history *history, quern__page page,
                                                      uint32_t set)
{
    if (page == 0) return (quern__edge_range){NULL, 0};
    const char *memory = quern__page_memory(&history->store, page);
    const quern__saved_edges *head = (const quern__saved_edges *)(const void *)memory;
    return (quern__edge_range){(const uint32_t *)(const void *)(head + 1) + head->first[set],
                               head->first[set + 1] - head->first[set]};
}

enum { QUERN__GROUPS_IN_PAGE = QUERN__LINK_PAGE_SLOTS / QUERN__LINK_GROUP };

static inline quern__saved_links *quern__saved_links_in(const quern__history *history,
                                                        const quern__snapshot *snapshot)
{
    return (quern__saved_links *)(void *)quern__page_memory(&history->store, snapshot->relations);
}

/* Returns the saved links of the i-th relation; none if the relation is newer than the snapshot. */
static inline quern__saved_links quern__saved_links_of(const quern__history *history,
                                                       const quern__snapshot *snapshot, uint32_t i)
{
    return i < snapshot->relation_count ? quern__saved_links_in(history, snapshot)[i]
                                        : (quern__saved_links){0};
}

static inline quern__page quern__saved_group(const quern__history *history, const quern__saved_links *saved,
                                             uint32_t group)
{
    return group < saved->page_count * QUERN__GROUPS_IN_PAGE
               ? quern__pages_in(history, saved->groups)[group]
               : 0;
}

/* ------------------------------------------------------------------------------------------ deltas */

/* The difference between two snapshots: see delta.c. A delta holds both snapshots, because its batches point into their
 * pages. The delta itself is stored in pages too: after a history has made a delta of some size, another one of that
 * size allocates no memory. */
struct quern_delta {
    quern__history *history;
    quern__page page;         /* contains the delta itself */
    quern__snapshot from, to; /* the delta holds one reference to each page of them */
    quern_delta_batch *batches;
    quern__page batches_page;
    quern__page handles_page; /* entity handles of the NAMED batches */
    quern__page edge_pages;   /* array of the pages of RELATED and UNRELATED batches; 0: none */
    uint32_t edge_page_count;
    uint32_t count, capacity; /* number of batches, and room for batches */
    quern_delta_stats stats;
    bool lists_edge_values; /* while the delta is built: its last batches of components, those of edges */
    const struct delta_limit *limit; /* valid while the delta is built */
};

/* Builds the delta from `from` to `to`. Errors: OUT_OF_MEMORY. */
quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, const quern_delta_def *def,
                               quern_delta **out_delta);
void quern__delta_release(quern_delta *delta);

/* Whether the list of components, which a component of 0 ends, has this one. An empty list has all. */
static inline bool quern__delta_lists(const quern_component *list, quern_component component)
{
    if (list[0].bits == 0) return true;
    for (uint32_t i = 0; i < QUERN_MAX_DELTA_COMPONENTS && list[i].bits != 0; i++)
        if (list[i].bits == component.bits) return true;
    return false;
}

/* Checks a list of components, which a component of 0 ends. Errors: LIMIT, UNKNOWN_COMPONENT. */
quern_result quern__delta_check_components(const quern_world *world, const quern_component *list);

/* The head of a delta as bytes: see delta_bytes.c. */
#define QUERN__DELTA_MAGIC "QUERNDLT"
enum { QUERN__DELTA_VERSION = 1, QUERN__DELTA_NAME_LENGTH_BYTES = 1 };

typedef struct quern__delta_head {
    char magic[8];
    uint32_t version;
    uint32_t component_count, resource_count, batch_count;
    uint64_t bytes;    /* bytes after the head */
    uint64_t checksum; /* of the preceding bytes of the head, then of the bytes after it */
} quern__delta_head;

static inline uint64_t quern__delta_checksum(const quern__delta_head *head, const void *bytes)
{
    const uint64_t hash = quern__hash_bytes(0, head, offsetof(quern__delta_head, checksum));
    return quern__hash_bytes(hash, bytes, (size_t)head->bytes);
}

#endif
