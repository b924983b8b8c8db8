/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CHUNK_H
#define QUERN_CORE_STORAGE_CHUNK_H

/* Move counts: per chunk number, how often rows have left the chunk. A reader that cached a value's address may reuse
 * the address while the count is unchanged: rows added since then did not replace the value's row. Counts are
 * maintained only while a reader is registered, and only for archetypes with a component that some reader reads; in
 * other archetypes a structural change only tests a pointer for NULL.
 *
 * A chunk number identifies a position in the list of slabs. The chunk at that position may be given to another
 * archetype, and its slab may be freed and replaced. But all rows leave the chunk first, and a count is never
 * reset while readers exist. Therefore no cached count recurs.
 *
 *   counts[number]   for all chunks of all slabs, while readers exist */

#include "core/base/base_internal.h"
#include "core/base/containers.h"

#include <quern/getter.h>

typedef struct quern__move_counts {
    uint64_t *counts;  /* by chunk number; NULL while no reader is registered */
    uint32_t capacity; /* length of `counts`, in chunks */
    quern_getter *first_reader;
} quern__move_counts;

/* Registers a reader and stores the address of the counts in it. The first reader allocates counts for `chunk_count`
 * chunks. Returns false and changes nothing if out of memory. */
bool quern__move_counts_add_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                   uint32_t chunk_count, quern_getter *reader);
/* Unregisters a reader. The last reader frees the counts. */
void quern__move_counts_remove_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                      quern_getter *reader);

/* Increments the count of a chunk that rows have left or are about to leave. Several threads may do this for one
 * chunk at the same time. Lost increments are harmless: each thread stores a larger count than the one before they
 * began. The load and the store are relaxed: no reader reads counts while rows leave, and readers wait for these
 * threads first. */
static inline void quern__move_counts_increment(quern__move_counts *move_counts, uint32_t chunk_number)
{
    uint64_t *count = &move_counts->counts[chunk_number];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Chunks and runs. A chunk is the rows that fit in 16 KiB: the unit of growth, of jobs and of views. A run is how chunks
 * lie in memory: one chunk, 16, or 128 adjacent chunks of one archetype, aligned to its size. The columns of a run are
 * striped: each is contiguous over the rows of all its chunks, so that a loop over many chunks reads few long streams.
 *
 *   run:     | unused line | column | column | ... | entity handles |      in any order
 *   column:  | rows of the first chunk | rows of the second | ...
 *
 * All runs of an archetype have the same shape. A small archetype has runs of one chunk, so that a small world stays
 * small; a larger one has runs of 16, in which every column begins 16 times as far from the start of the run, and the
 * largest have runs of a whole slab. An archetype that has grown changes from one shape to another between changes of
 * structure (quern__rows_gather), and one that has shrunk when the world is trimmed. Every chunk has the same row
 * capacity in all shapes.
 *
 * A location is the address of a run, and in the low bits the index of a row in the run. The value of the row is at
 *
 *   run + offset of the column + row * size
 *
 * A chunk is named by the location of its first row. A pointer to a quern__chunk is such a name, and is never
 * dereferenced. Rows of one chunk have consecutive locations.
 *
 * Runs are allocated from slabs of 2 MiB. Slabs are aligned to their size and advised to be huge pages. The first
 * slab is advised only when more than a quarter of it is in use, so that a small world stays small.
 *
 * The archetype of a run and the index of its first chunk are in tables of the slab, few cache lines for many chunks.
 * The address of the tables is in the first bytes of the slab, which no column uses. */

enum {
    QUERN__CHUNK_BYTES = 16 * 1024,
    QUERN__RUN_SHIFT = 4, /* a run has one chunk, 2^4, or the 2^7 of a slab */
    QUERN__RUN_CHUNKS = 1 << QUERN__RUN_SHIFT,
    QUERN__SLAB_SHIFT = 7,
    /* Unused in each run, so that no column has offset 0. In the first run of a slab, they hold the address of its
     * tables. */
    QUERN__CHUNK_UNUSED_BYTES = 64,
    /* Length of the beginning, and of the end, of a column that loops with one call per chunk prefetch. */
    QUERN__END_BYTES = 128,
    QUERN__SLAB_CHUNKS = 1 << QUERN__SLAB_SHIFT,
    QUERN__SLAB_BYTES = QUERN__SLAB_CHUNKS * QUERN__CHUNK_BYTES /* 2 MiB, a huge page */
};

typedef struct quern__chunk quern__chunk; /* incomplete on purpose: see above */

/* The shape of an archetype's runs. */
typedef struct quern__run_shape {
    uint32_t row_mask; /* the bits of a location that contain the row: one less than the size of a run */
    uint32_t row_capacity; /* rows of a chunk */
    uint32_t inverse;      /* 2^QUERN__INVERSE_SHIFT / row_capacity, rounded up */
    uint32_t shift;        /* runs have 2^shift chunks */
} quern__run_shape;

/* A row of a run is divided by row_capacity by a multiplication with the inverse. The inverse is too large by less than
 * row_capacity / 2^31, so the quotient is exact if row * row_capacity < 2^31. */
enum { QUERN__INVERSE_SHIFT = 31, QUERN__MAX_CHUNK_ROWS = QUERN__CHUNK_BYTES / sizeof(quern_entity) };
_Static_assert(QUERN__MAX_CHUNK_ROWS *QUERN__MAX_CHUNK_ROWS <= INT32_MAX / QUERN__SLAB_CHUNKS,
               "rows can be divided");

static inline quern__run_shape quern__run_shape_make(uint32_t row_capacity, uint32_t shift)
{
    const uint64_t one = UINT64_C(1) << QUERN__INVERSE_SHIFT;
    return (quern__run_shape){.row_mask = ((uint32_t)QUERN__CHUNK_BYTES << shift) - 1,
                              .row_capacity = row_capacity,
                              .inverse = (uint32_t)((one + row_capacity - 1) / row_capacity),
                              .shift = shift};
}

/* What is known about the chunks of a slab, by their positions in it. Entries of free chunks have no meaning. */
typedef struct quern__slab_tables {
    struct quern__archetype *archetypes[QUERN__SLAB_CHUNKS]; /* holder of each chunk */
    /* The index in its archetype's slots of the first chunk of the chunk's run. */
    uint32_t indices[QUERN__SLAB_CHUNKS];
    uint32_t slab_index; /* index of the slab in quern__slabs.list */
} quern__slab_tables;

typedef struct quern__slab {
    char *memory; /* NULL: the entry is unused */
    quern__slab_tables *tables;
    uint64_t free_mask[2]; /* one bit per chunk */
    uint32_t free_count;
    bool is_huge; /* advised to be a huge page */
} quern__slab;

/* Slabs of a world. A slab without used chunks is released. One such slab is retained, because the size of a world
 * may fluctuate around a slab boundary. */
typedef struct quern__slabs {
    QUERN__ARRAY(quern__slab) list;
    uint32_t first_index; /* no slab below it has a free chunk */
    uint32_t empty_count; /* slabs without used chunks: 0 or 1 between calls */
    uint32_t free_count;  /* free chunks in all slabs */
    uint32_t slab_count;  /* entries in use */
    /* Archetypes that hold chunks, one bit for each index in the order of archetypes. The few without rows among them
     * retain chunks for later rows. Bits after the last archetype have no meaning. */
    QUERN__ARRAY(uint64_t) holders;
    quern__move_counts move_counts; /* move counts of all chunks */
} quern__slabs;

void quern__slabs_release(quern__slabs *slabs, const quern_allocator *allocator);

/* Allocates a run of 2^shift chunks. Returns NULL if out of memory. Its memory is undefined. */
char *quern__run_allocate(quern__slabs *slabs, const quern_allocator *allocator, uint32_t shift);

/* Releases a run of 2^shift chunks. */
void quern__run_release(quern__slabs *slabs, const quern_allocator *allocator, char *run, uint32_t shift);

/* Releases all slabs without used chunks. */
void quern__slabs_trim(quern__slabs *slabs, const quern_allocator *allocator);

static inline uintptr_t quern__location_make(const quern__chunk *chunk, uint32_t row)
{
    return (uintptr_t)chunk + row;
}

/* Returns the position of a location's chunk in its run. */
static inline uint32_t quern__chunk_in_run(const quern__run_shape *shape, uintptr_t location)
{
    return (uint32_t)((uint64_t)((uint32_t)location & shape->row_mask) * shape->inverse >>
                      QUERN__INVERSE_SHIFT);
}

/* Returns the row of a location in its chunk. */
static inline uint32_t quern__location_row(const quern__run_shape *shape, uintptr_t location)
{
    return ((uint32_t)location & shape->row_mask) -
           quern__chunk_in_run(shape, location) * shape->row_capacity;
}

/* Returns the chunk of a location. */
static inline quern__chunk *quern__chunk_of(const quern__run_shape *shape, uintptr_t location)
{
    return (quern__chunk *)(location - quern__location_row(shape, location));
}

/* A place in a run: what the addresses of the values of a row, or of a chunk's first row, are computed from. */
typedef struct quern__run_place {
    char *memory;   /* the run */
    uint32_t shift; /* the run has 2^shift chunks */
    uint32_t row;   /* row in the run */
} quern__run_place;

/* Returns the place of a location. */
static inline quern__run_place quern__run_place_of(const quern__run_shape *shape, uintptr_t location)
{
    const uintptr_t row = location & shape->row_mask;
    return (quern__run_place){(char *)(location - row), shape->shift, (uint32_t)row};
}

/* Returns the address of a value in the column that begins at offset_bytes in a run of one chunk. */
static inline char *quern__run_value(quern__run_place place, uint32_t offset_bytes, uint32_t size_bytes)
{
    return place.memory + ((size_t)offset_bytes << place.shift) + (size_t)place.row * size_bytes;
}

/* Returns the address of the value at a location, in the column that begins at offset_bytes in a run of one chunk. */
static inline char *quern__location_value(const quern__run_shape *shape, uintptr_t location,
                                          uint32_t offset_bytes, uint32_t size_bytes)
{
    return quern__run_value(quern__run_place_of(shape, location), offset_bytes, size_bytes);
}

/* Returns the position in its slab of a chunk's 16 KiB that a location is in: one of its run's. */
static inline uint32_t quern__location_in_slab(uintptr_t location)
{
    return (uint32_t)(location / QUERN__CHUNK_BYTES % QUERN__SLAB_CHUNKS);
}

/* Returns the tables of the slab that contains a location. */
static inline quern__slab_tables *quern__slab_tables_of(uintptr_t location)
{
    return *(quern__slab_tables **)(location & ~(uintptr_t)(QUERN__SLAB_BYTES - 1));
}

/* Returns the archetype that holds the chunk of a location. Precondition: an archetype holds it. */
static inline struct quern__archetype *quern__archetype_at(uintptr_t location)
{
    return quern__slab_tables_of(location)->archetypes[quern__location_in_slab(location)];
}
static inline struct quern__archetype *quern__chunk_archetype(const quern__chunk *chunk)
{
    return quern__archetype_at((uintptr_t)chunk);
}

/* Returns the index in its archetype of the chunk of a location. Precondition: an archetype holds the chunk. */
static inline uint32_t quern__chunk_index_at(const quern__run_shape *shape, uintptr_t location)
{
    return quern__slab_tables_of(location)->indices[quern__location_in_slab(location)] +
           quern__chunk_in_run(shape, location);
}

/* Assigns a run to an archetype. index: that of its first chunk in the archetype's slots. */
static inline void quern__run_assign(const char *run, uint32_t shift, struct quern__archetype *archetype,
                                     uint32_t index)
{
    quern__slab_tables *tables = quern__slab_tables_of((uintptr_t)run);
    const uint32_t first = quern__location_in_slab((uintptr_t)run);
    for (uint32_t i = first; i < first + (1u << shift); i++) {
        tables->archetypes[i] = archetype;
        tables->indices[i] = index;
    }
}

/* Returns a small number that is unique among the chunks that exist at the time. */
static inline uint32_t quern__chunk_number(const quern__run_shape *shape, uintptr_t location)
{
    const uintptr_t run = location & ~(uintptr_t)shape->row_mask;
    return quern__slab_tables_of(run)->slab_index * QUERN__SLAB_CHUNKS + quern__location_in_slab(run) +
           quern__chunk_in_run(shape, location);
}

/* Prefetches a part of a column, whole cache lines, into L2. */
static inline void quern__prefetch_range(const char *begin, const char *end)
{
    for (; begin < end; begin += QUERN__CACHE_LINE_BYTES)
        QUERN__PREFETCH_LATER(begin);
}

/* Prefetches the first two and the last two cache lines of a column that will be read soon. Hardware prefetchers predict
 * the lines between them, but must detect the pattern anew where a column of the next run begins, and arrive late at
 * its end (docs/benchmarks/experiments.md, Columns). bytes: in use. */
static inline void quern__prefetch_ends(const char *column, uint32_t bytes)
{
    if (bytes <= 2 * QUERN__END_BYTES) {
        quern__prefetch_range(column, column + bytes);
        return;
    }
    quern__prefetch_range(column, column + QUERN__END_BYTES);
    quern__prefetch_range(column + bytes - QUERN__END_BYTES, column + bytes);
}

/* Change versions of chunks: the time when the rows of a chunk, and each component in it, last changed. Only
 * archetypes that some `changed` filter reads keep them; in other archetypes a write only tests a pointer for NULL.
 * Versions of single rows have a section of their own.
 *
 * Times are values of the storage's clock, which never decreases. A filter stores the time of its last check;
 * everything with a later version is new to it.
 *
 *   items[slot * stride]          rows were added to the chunk or moved in it: all components count as changed
 *   items[slot * stride + i]      the component of version index i was written, enabled or disabled: first
 *                                 the columns in their order, then the tags
 *                                 (quern__archetype_version_index)
 *
 * The structural version of a chunk, items[slot * stride], is written where rows change (core/storage/change.h): by
 * the thread that owns the world, or at a sync point. There several threads may add rows to one chunk and all store
 * the same value; the store is therefore atomic. Component versions are also written by systems, each for the columns
 * that it may write in the chunk that its job owns. Getters of several threads may write different rows of one chunk;
 * they all store the same version. */

typedef struct quern__versions {
    uint64_t *items; /* slot_capacity * stride; NULL: no versions are kept */
    uint32_t slot_capacity, stride;
    const uint64_t *clock; /* of the storage */
} quern__versions;

/* Starts to keep versions for `slot_capacity` slots, all set to the current time. `stride`: versions per slot,
 * including the structural version. Returns false if out of memory. */
bool quern__versions_start(quern__versions *versions, const quern_allocator *allocator,
                           uint32_t slot_capacity, uint32_t stride);

/* Reserves versions for `slot_capacity` slots. Does nothing if no versions are kept. Returns false and changes
 * nothing if out of memory. */
bool quern__versions_grow(quern__versions *versions, const quern_allocator *allocator,
                          uint32_t slot_capacity);

void quern__versions_release(quern__versions *versions, const quern_allocator *allocator);

/* Returns the array of versions of one chunk, or NULL if no versions are kept. */
static inline uint64_t *quern__versions_of(const quern__versions *versions, uint32_t slot)
{
    return versions->items != NULL ? versions->items + (size_t)slot * versions->stride : NULL;
}

static inline void quern__versions_note_rows(const quern__versions *versions, uint32_t slot)
{
    /* relaxed: readers wait for the writing threads before they read */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot), *versions->clock, __ATOMIC_RELAXED);
}

static inline void quern__versions_note(const quern__versions *versions, uint32_t slot,
                                        uint32_t version_index)
{
    /* relaxed: readers wait for the writing threads before they read */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot) + version_index, *versions->clock,
                         __ATOMIC_RELAXED);
}

/* Returns the index of the first version later than `base`, from index `from` on, or `count` if there is none. Tests
 * eight versions at a time, which most compilers turn into SIMD instructions. */
static inline size_t quern__versions_find_later(const uint64_t *versions, size_t from, size_t count,
                                                uint64_t base)
{
    enum { TOGETHER = 8 };
    for (bool is_later = false; from + TOGETHER <= count; from += TOGETHER) {
        for (size_t i = 0; i < TOGETHER; i++)
            is_later |= versions[from + i] > base;
        if (is_later) break;
    }
    while (from < count && versions[from] <= base)
        from++;
    return from;
}

/* Change versions of single rows: the time when a component of the row's entity last changed. A component registered
 * with row_changes has a lane in each of its archetypes that keeps change versions of chunks.
 * Other archetypes have no lanes.
 *
 *   per slot:   | lane | lane | ...              in the order of components
 *   per lane:   | ... | group | group | version | version | ...
 *                                                one version per row of the chunk's capacity
 *
 * A *group* is a version for 8 rows, at least the latest of theirs that a write gave them. The group of the first
 * rows is directly before their versions, the next one before it. A reader that looks for few changed rows reads an
 * eighth of the memory, and the versions of single rows only in groups that are new.
 *
 * A version moves with its row. A component that is added to a row has the current time as its version.
 *
 * Invariant (checked by quern_world_validate): the version of a row is at most the larger of two versions of its
 * chunk, that of the component and the structural one. A reader for which neither is new can therefore skip all rows
 * of the chunk. The invariant holds because every change of a row version also stores the current time in one of the
 * two, and rows that move carry an older version to a chunk, and the structural version of
 * that chunk becomes the current time. The version of a row is also at most the larger of its group's and the
 * structural version, for the same reason: moves leave groups alone.
 *
 * Threads: the thread that may write a row's value, or moves the row, writes its version. No other thread reads or
 * writes that version meanwhile. Several threads may raise one group. Versions of raw rows are meaningless. */

typedef struct quern__row_lane {
    uint32_t component_index;
    uint32_t version_index; /* index of the component among the versions of a chunk */
} quern__row_lane;

typedef struct quern__row_versions {
    uint64_t *items; /* slot_capacity * slot_words; NULL if slot_capacity is 0 */
    quern__row_lane *lanes;
    uint32_t *offsets; /* by version index: offset of the lane in a slot, in words, or QUERN__NO_LANE */
    const quern__run_shape *shape; /* of the archetype's runs */
    uint32_t lane_count, version_count;
    uint32_t row_capacity;
    uint32_t group_count; /* groups of a lane */
    uint32_t slot_words;  /* (group_count + row_capacity) * lane_count */
    uint32_t slot_capacity;
} quern__row_versions;

#define QUERN__NO_LANE UINT32_MAX

/* Rows of a group. quern__view_note_row in <quern/query.h> has the number, too. */
#define QUERN__ROW_GROUP 8u

/* Creates at least one lane for an archetype with version_count versions per chunk. The versions of all rows
 * are `now`. Returns NULL if out of memory. */
quern__row_versions *quern__row_versions_create(const quern_allocator *allocator,
                                                const quern__row_lane *lanes, uint32_t lane_count,
                                                uint32_t version_count, const quern__run_shape *shape,
                                                uint32_t slot_capacity, uint64_t now);

/* Frees row versions. `versions` may be NULL. */
void quern__row_versions_release(quern__row_versions *versions, const quern_allocator *allocator);

/* Reserves slots for `slot_count` chunks, with spare capacity if it grows. `versions` may be NULL, if the
 * archetype has no lanes. Returns false and changes nothing if out of memory. */
bool quern__row_versions_reserve(quern__row_versions *versions, const quern_allocator *allocator,
                                 uint32_t slot_count);

/* Frees the capacity beyond `slot_count` slots, which must not exceed it. Keeps it if there is no memory for
 * the smaller copy. `versions` may be NULL. */
void quern__row_versions_trim(quern__row_versions *versions, const quern_allocator *allocator,
                              uint32_t slot_count);

static inline size_t quern__row_versions_bytes(const quern__row_versions *versions)
{
    return (size_t)versions->slot_capacity * versions->slot_words * sizeof *versions->items;
}

static inline uint64_t *quern__row_versions_of(const quern__row_versions *versions, uint32_t slot)
{
    return versions->items + (size_t)slot * versions->slot_words;
}

/* Returns the offset of the versions of rows in a lane, in words of its slot. */
static inline uint32_t quern__row_versions_offset(const quern__row_versions *versions, uint32_t lane)
{
    return lane * (versions->group_count + versions->row_capacity) + versions->group_count;
}

/* Returns the array of versions of a slot's rows in the lane with index `lane`. */
static inline uint64_t *quern__row_versions_lane(const quern__row_versions *versions, uint32_t lane,
                                                 uint32_t slot)
{
    return quern__row_versions_of(versions, slot) + quern__row_versions_offset(versions, lane);
}

/* Returns the address of the group of a row. lane: the versions of all rows. */
static inline uint64_t *quern__row_group(uint64_t *lane, uint32_t row)
{
    return lane - 1 - row / QUERN__ROW_GROUP;
}

/* Raises the groups of `count` rows, at least one, to `version`. lane: the versions of all rows. Relaxed: threads that
 * write rows of one group at the same time write the same version, and readers wait for the writing threads. */
static inline void quern__row_groups_raise(uint64_t *lane, uint32_t row, uint32_t count, uint64_t version)
{
    uint64_t *last = quern__row_group(lane, row + count - 1);
    for (uint64_t *group = quern__row_group(lane, row); group >= last; group--)
        if (__atomic_load_n(group, __ATOMIC_RELAXED) < version)
            __atomic_store_n(group, version, __ATOMIC_RELAXED);
}

/* Raises the groups of the first `count` rows to the given versions of these rows, which are about to be written without
 * the other functions. */
void quern__row_groups_raise_to(uint64_t *lane, const uint64_t *row_versions, uint32_t count);

/* Returns the address of a row's version, in the lane that begins `offset` words into its slot. */
static inline uint64_t *quern__row_version(const quern__row_versions *versions, uint32_t offset,
                                           uintptr_t location)
{
    return quern__row_versions_of(versions, quern__chunk_index_at(versions->shape, location)) + offset +
           quern__location_row(versions->shape, location);
}

/* Sets the versions of `count` rows to `now` after their component has changed. Does nothing if the component has no
 * lane. */
static inline void quern__row_versions_note(const quern__row_versions *versions, uint32_t version_index,
                                            uintptr_t first, uint32_t count, uint64_t now)
{
    const uint32_t offset = versions->offsets[version_index];
    if (offset == QUERN__NO_LANE) return;
    const uint32_t row = quern__location_row(versions->shape, first);
    uint64_t *rows = quern__row_version(versions, offset, first);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = now;
    if (count > 0) quern__row_groups_raise(rows - row, row, count, now);
}

/* Sets the versions of `count` rows with new entities to `now` in all lanes. */
void quern__row_versions_arrive(const quern__row_versions *versions, uintptr_t first, uint32_t count,
                                uint64_t now);

/* Copies the versions of rows that move from one archetype to another or within one, for components with a lane in
 * both. In other lanes of the target the versions become `now`. `source` is NULL if that archetype has no lanes. */
void quern__row_versions_move(const quern__row_versions *target, uintptr_t to,
                              const quern__row_versions *source, uintptr_t from, uint32_t count,
                              uint64_t now);

#endif
