/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ARCHETYPE_H
#define QUERN_CORE_STORAGE_ARCHETYPE_H

/* Copy plans: instructions that copy the values of one row, all plain bytes, to another row. A plan is compiled in
 * advance into steps that fit one or two registers. Steps of columns with equal value sizes form a group, so that
 * the distance from a column's start to the row is computed once per group.
 *
 *   copy plan:  group, its steps, group, its steps, ..., group of 0 steps,  columns that both archetypes have
 *               group, its steps, ..., group of 0 steps                     columns that only the source has
 *
 * A row that leaves its archetype leaves a gap, which the archetype's last row fills. The same pass fills the gap:
 * each step copies a piece of the leaving row to the target, then the same piece of the last row into the gap. For
 * this reason the plan also lists the columns that only the source has, and one reading of the plan is enough.
 *
 * The inline functions call no other function, so that a function that inlines them need not save registers. */

#include "core/base/containers.h"
#include "core/storage/chunk.h"
#include "core/storage/row_bits.h"
#include "core/storage/type_internal.h"

#include <quern/base.h>
#include <quern/id.h>

#include <stdbool.h>
#include <stdint.h>

/* A row's location, split into the address of the run and the index of the row in it. */
typedef struct quern__row {
    char *run;
    size_t index;
} quern__row;

static inline quern__row quern__row_of(const quern__run_shape *shape, uintptr_t location)
{
    const uintptr_t index = location & shape->row_mask;
    return (quern__row){(char *)(location - index), index};
}

static inline uintptr_t quern__row_location(quern__row row)
{
    return (uintptr_t)row.run + row.index;
}

/* Largest value size in a copy plan: the size must fit a byte. memcpy copies larger values faster. */
enum { QUERN__COPY_MAX_BYTES = UINT8_MAX };

/* One column: the input for compiling a copy plan. */
typedef struct quern__copy {
    uint32_t source_offset_bytes; /* of the column, from the start of the run */
    uint32_t target_offset_bytes; /* of the column in a run of the target; 0: the target lacks it */
    uint16_t size_bytes;          /* of one value; at most QUERN__COPY_MAX_BYTES */
} quern__copy;

/* One word of a copy plan. */
typedef union quern__copy_word {
    struct {
        uint8_t value_bytes; /* size of one value in each column of the group */
        uint8_t step_bytes;  /* bytes copied per step: 16, 12, 8, 4 or 1 */
        uint16_t step_count; /* number of step words that follow; 0: end of this half of the plan */
    } group;
    struct {
        uint32_t source_offset_bytes, target_offset_bytes;
    } step;
} quern__copy_word;

/* Compiles a copy plan for `count` columns. Sorts `copies` in place. Returns NULL if out of memory. */
quern__copy_word *quern__copy_compile(const quern_allocator *allocator, quern__copy *copies,
                                      uint32_t count);

/* Writes a copy plan again, for the same columns at other offsets. */
void quern__copy_rewrite(quern__copy_word *plan, quern__copy *copies, uint32_t count);

/* Frees a copy plan. `plan` may be NULL. */
void quern__copy_release(const quern_allocator *allocator, quern__copy_word *plan);

/* Copies a value of any size. The memory areas must not overlap. The common sizes of three and four 32-bit numbers
 * are tested first. */
static inline void quern__copy_value(char *target, const char *source, size_t size_bytes)
{
    if (size_bytes == 12) {
        memcpy(target, source, 12);
        return;
    }
    if (size_bytes == 16) {
        memcpy(target, source, 16);
        return;
    }
    for (; size_bytes >= 16; size_bytes -= 16, target += 16, source += 16)
        memcpy(target, source, 16);
    if (size_bytes & 8) {
        memcpy(target, source, 8);
        target += 8;
        source += 8;
    }
    if (size_bytes & 4) {
        memcpy(target, source, 4);
        target += 4;
        source += 4;
    }
    if (size_bytes & 2) {
        memcpy(target, source, 2);
        target += 2;
        source += 2;
    }
    if (size_bytes & 1) *target = *source;
}

/* Copies 4, 8, 12 or 16 bytes in steps of 4. */
static inline void quern__copy_few_words(char *target, const char *source, size_t size_bytes)
{
    memcpy(target, source, 4);
    if (size_bytes <= 4) return;
    memcpy(target + 4, source + 4, 4);
    if (size_bytes <= 8) return;
    memcpy(target + 8, source + 8, 4);
    if (size_bytes <= 12) return;
    memcpy(target + 12, source + 12, 4);
}

/* Copies a value of any size that the caller has just written. The memory areas must not overlap. Values of up to 16
 * bytes are copied in steps of 4 bytes, the size of the numbers that most values consist of: a load that spans two
 * recent stores stalls until both stores have reached the cache. */
static inline void quern__copy_new_value(char *target, const char *source, size_t size_bytes)
{
    if (QUERN__UNLIKELY(size_bytes > 16 || size_bytes % 4 != 0))
        quern__copy_value(target, source, size_bytes);
    else
        quern__copy_few_words(target, source, size_bytes);
}

/* Calls an inline function with the size as its last argument: a constant, so that copies are single instructions, for the
 * sizes that most values have. */
#define QUERN__CALL_BY_SIZE(size_bytes, function, ...) \
    do {                                               \
        switch (size_bytes) {                          \
        case 4:                                        \
            function(__VA_ARGS__, 4);                  \
            break;                                     \
        case 8:                                        \
            function(__VA_ARGS__, 8);                  \
            break;                                     \
        case 12:                                       \
            function(__VA_ARGS__, 12);                 \
            break;                                     \
        case 16:                                       \
            function(__VA_ARGS__, 16);                 \
            break;                                     \
        default:                                       \
            function(__VA_ARGS__, size_bytes);         \
            break;                                     \
        }                                              \
    } while (0)

/* Copies one value to `count` adjacent ones, at least one. */
void quern__copy_to_many(char *targets, const char *value, size_t size_bytes, uint32_t count);

/* Executes the steps of one group. `to` and `from`: addresses that the rows would have in a column at offset 0.
 * `step_bytes` must be a compile-time constant. */
static inline void quern__copy_steps(const quern__copy_word *word, const quern__copy_word *end, char *to,
                                     const char *from, size_t step_bytes)
{
    do
        memcpy(to + word->step.target_offset_bytes, from + word->step.source_offset_bytes, step_bytes);
    while (++word < end);
}

/* Executes the first half of a copy plan: copies the source row to the target row. */
static inline void quern__copy_row(const quern__copy_word *plan, quern__row target, quern__row source)
{
    for (const quern__copy_word *group = plan, *end; group->group.step_count > 0; group = end) {
        end = group + 1 + group->group.step_count;
        char *to = target.run + target.index * group->group.value_bytes;
        const char *from = source.run + source.index * group->group.value_bytes;
        switch (group->group.step_bytes) {
        case 16:
            quern__copy_steps(group + 1, end, to, from, 16);
            break;
        case 12:
            quern__copy_steps(group + 1, end, to, from, 12);
            break;
        case 8:
            quern__copy_steps(group + 1, end, to, from, 8);
            break;
        case 4:
            quern__copy_steps(group + 1, end, to, from, 4);
            break;
        default:
            quern__copy_steps(group + 1, end, to, from, 1);
            break;
        }
    }
}

/* Copies one register of the leaving row from `gap` to `to`, and one register of the last row into the gap. */
#define QUERN__MOVE_REGISTER(type, to, gap, last) \
    do {                                          \
        type leaving, coming;                     \
        memcpy(&leaving, gap, sizeof leaving);    \
        memcpy(&coming, last, sizeof coming);     \
        memcpy(to, &leaving, sizeof leaving);     \
        memcpy(gap, &coming, sizeof coming);      \
    } while (0)

/* Moves one piece of the leaving row from `gap` to `to` and fills the gap from `last`. `step_bytes` must be a
 * compile-time constant. */
QUERN__ALWAYS_INLINE void quern__move_piece(char *to, char *gap, const char *last, size_t step_bytes)
{
    if (step_bytes == 16) QUERN__MOVE_REGISTER(QUERN__SIXTEEN_BYTES, to, gap, last);
    if (step_bytes == 12 || step_bytes == 8) QUERN__MOVE_REGISTER(uint64_t, to, gap, last);
    if (step_bytes == 12) QUERN__MOVE_REGISTER(uint32_t, to + 8, gap + 8, last + 8);
    if (step_bytes == 4) QUERN__MOVE_REGISTER(uint32_t, to, gap, last);
    if (step_bytes == 1) QUERN__MOVE_REGISTER(char, to, gap, last);
}

/* Executes the steps of one group for a leaving row. `to`, `gap` and `last`: addresses that the rows would have in a
 * column at offset 0. `step_bytes` must be a compile-time constant. */
QUERN__ALWAYS_INLINE void quern__move_steps(const quern__copy_word *word, const quern__copy_word *end,
                                            char *to, char *gap, const char *last, size_t step_bytes)
{
    do {
        const size_t offset_bytes = word->step.source_offset_bytes;
        quern__move_piece(to + word->step.target_offset_bytes, gap + offset_bytes, last + offset_bytes,
                          step_bytes);
    } while (++word < end);
}

/* Executes a copy plan for a leaving row: copies the row at `gap` to `target` and fills the gap with the last row.
 * `gap` and `last` must be different rows. */
QUERN__ALWAYS_INLINE void quern__move_row(const quern__copy_word *plan, quern__row target, quern__row gap,
                                          quern__row last)
{
    const quern__copy_word *group = plan, *end;
    for (; group->group.step_count > 0; group = end) {
        end = group + 1 + group->group.step_count;
        char *to = target.run + target.index * group->group.value_bytes;
        char *hole = gap.run + gap.index * group->group.value_bytes;
        const char *from = last.run + last.index * group->group.value_bytes;
        switch (group->group.step_bytes) {
        case 16:
            quern__move_steps(group + 1, end, to, hole, from, 16);
            break;
        case 12:
            quern__move_steps(group + 1, end, to, hole, from, 12);
            break;
        case 8:
            quern__move_steps(group + 1, end, to, hole, from, 8);
            break;
        case 4:
            quern__move_steps(group + 1, end, to, hole, from, 4);
            break;
        default:
            quern__move_steps(group + 1, end, to, hole, from, 1);
            break;
        }
    }
    quern__copy_row(group + 1, gap, last);
}

/* Listeners: callbacks by which storage notifies rooms above it of changes, without knowing these rooms.
 *
 *   quern__row_listener        is notified of changes of the rows of one archetype, by the verbs of change.h
 *   quern__archetype_listener  is notified when archetypes are created and removed, by storage.c
 *
 * Data that storage itself keeps about rows (change versions, move counts, row bits) needs no listener: the verbs
 * update it directly.
 *
 * A listener is embedded in a structure of its owner, which must remain in memory until the listener is removed. The
 * functions of row listeners must not fail. They may be called by the threads that change.h allows. They must not
 * read values that the caller of a verb may still have to write. */

struct quern__archetype;
struct quern__storage;

typedef struct quern__row_listener {
    const struct quern__row_events *events;
    struct quern__archetype *archetype;
    struct quern__row_listener *next; /* next listener of the archetype, ascending by position */
    uint32_t position;                /* order in which the listeners of an archetype are notified */
    bool
        needs_room; /* `reserve` must precede leave and move_out; the archetype then lacks has_fast_leave */
    bool calls_hooks;    /* leave and move_out call hooks of types, so only one thread may call them */
    bool keeps_row_data; /* it has data of each row: `hold`, `relocate` and `before_write` are called */
    bool is_hook;        /* belongs to a component with entity hooks; the archetype then has has_hooks */
} quern__row_listener;

/* The functions of a row listener. None may be NULL. `first`, `from`, `to`: location of the first of `count`
 * consecutive rows of one chunk. */
typedef struct quern__row_events {
    /* The rows hold new entities. */
    void (*arrive)(quern__row_listener *listener, uintptr_t first, uint32_t count);
    /* The entities in these rows are about to be destroyed. Values, handles and row bits are still valid. */
    void (*leave)(quern__row_listener *listener, uintptr_t first, uint32_t count);
    /* Rows of the listener's archetype are about to move to `target`. Their row bits have not moved yet. */
    void (*move_out)(quern__row_listener *listener, uintptr_t from, const struct quern__archetype *target,
                     uint32_t count);
    /* Rows at `from` of `source` are about to move to the listener's archetype. Their row bits have already moved. */
    void (*move_in)(quern__row_listener *listener, uintptr_t to, const struct quern__archetype *source,
                    uintptr_t from, uint32_t count);
    /* Values of a component are about to be overwritten in these rows, and `written` follows. Called only if
     * keeps_row_data is set. source: as for `written`. */
    void (*before_write)(quern__row_listener *listener, const struct quern__archetype *source,
                         uintptr_t first, uint32_t count, uint32_t component_index);
    /* Values of a component were written in these rows. `source`: the archetype of the entities before the change;
     * the listener's archetype if they did not move. */
    void (*written)(quern__row_listener *listener, const struct quern__archetype *source, uintptr_t first,
                    uint32_t count, uint32_t component_index);
    /* Reserves room for up to `count` rows to leave for `target` (NULL: the entities are destroyed). Reservations
     * with one change number add up; another number starts anew. Called only if needs_room is set. Errors:
     * OUT_OF_MEMORY; room that was already allocated is kept. */
    quern_result (*reserve)(quern__row_listener *listener, const quern_allocator *allocator,
                            uint64_t change, const struct quern__archetype *target, uint32_t count);
    /* Rows have moved within the archetype, and their row bits with them. Called only if keeps_row_data is set. */
    void (*relocate)(quern__row_listener *listener, uintptr_t to, uintptr_t from, uint32_t count);
    /* The archetype is about to hold `chunk_count` chunks: reserves memory for data of their rows. Called only if
     * keeps_row_data is set. Returns false if out of memory. */
    bool (*hold)(quern__row_listener *listener, const quern_allocator *allocator, uint32_t chunk_count);
    /* Releases the listener, because its archetype is about to be released. */
    void (*release)(quern__row_listener *listener, const quern_allocator *allocator);
} quern__row_events;

/* Add a listener to its archetype, and remove it. While an archetype has a listener with needs_room, its cached edges have
 * QUERN__EDGE_NEEDS_ROOM. */
void quern__row_listener_add(quern__row_listener *listener);
void quern__row_listener_remove(quern__row_listener *listener);

/* Releases all listeners of an archetype that is about to be released. */
void quern__row_listeners_release(struct quern__archetype *archetype, const quern_allocator *allocator);

/* Returns whether some listener calls hooks when rows leave the archetype. Only one thread may then remove rows. */
bool quern__row_listeners_call_hooks(const struct quern__archetype *archetype);

typedef struct quern__archetype_listener {
    /* An archetype was created; it is in no list yet. May be NULL. After an error the listener must keep no reference
     * to the archetype, which is then released. Errors: any. */
    quern_result (*created)(struct quern__storage *storage, struct quern__archetype *archetype);
    /* An archetype is about to be released. It is in no table any more, and the plans to and from it were released.
     * May be NULL. */
    void (*removed)(struct quern__storage *storage, const struct quern__archetype *archetype);
    struct quern__archetype_listener *next; /* next listener of the storage */
} quern__archetype_listener;

/* One archetype: all entities with exactly the same set of components, stored in chunks.
 *
 *   slots[0 .. chunk_count)            chunks with rows; all but the last are full
 *   slots[chunk_count .. held_count)   chunks without rows, held for later rows
 *   slots[-1]                          a sentinel without a chunk that counts as full: code that appends to the
 *                                      last slot need not check whether one exists
 *   row count of the archetype = (chunk_count - 1) * row_capacity + slots[chunk_count - 1].row_count
 *   row count of the archetype + reserved_count <= held_count * row_capacity
 *
 * A pass over the rows iterates over the table of slots and never reads the tables of slabs.
 *
 * Colour: the parts (columns and handles) of the archetype with layout_index i begin (i / 8) % 32 cache lines
 * later than the earliest possible offset. Runs are aligned to 16 KiB or more, so without colours the first rows of
 * many small archetypes would all map to the same few cache sets. The formula is not i % 32: archetypes
 * created in succession have chunks at successive addresses, so those colours would be correlated with the
 * addresses.
 *
 * From archetype 256 on there are 64 colours. All of them leave 64 cache lines unused, because a capacity
 * that shrinks with the colour would move the later parts back to the same cache sets. In addition, every 512
 * archetypes another part (a column or the handles) is placed first. This costs up to a third of the rows in a
 * chunk, but in worlds with that many archetypes most of them hold few rows. */

enum { QUERN__PART_ALIGNMENT_BYTES = 64 };
_Static_assert(QUERN__SLAB_BYTES / QUERN__PART_ALIGNMENT_BYTES <= UINT16_MAX,
               "offsets in a run fit a position");

/* Array of one component's values in every run of the archetype. Tags have no column. */
typedef struct quern__column {
    const quern__type *type;
    uint16_t component_index;
    uint16_t offset_bytes;     /* offset in a run of one chunk; a multiple of 64 */
    uint16_t size_bytes;       /* size of one value */
    uint32_t run_offset_bytes; /* offset in the runs that the archetype has */
    uint32_t row_mask;         /* of the archetype's shape */
} quern__column;

/* Position of a component's values in the runs that the archetype has, in one word for random gets. */
typedef struct quern__column_position {
    int32_t run_mask; /* the bits of a location that are the address of the run: minus the size of a run */
    uint16_t
        offset_lines; /* in units of QUERN__PART_ALIGNMENT_BYTES; 0: the archetype has no such column */
    uint16_t size_bytes;
} quern__column_position;

static inline quern__column_position quern__column_position_make(uint32_t row_mask, uint32_t offset_bytes,
                                                                 uint16_t size_bytes)
{
    return (quern__column_position){.run_mask = -1 - (int32_t)row_mask,
                                    .offset_lines = (uint16_t)(offset_bytes / QUERN__PART_ALIGNMENT_BYTES),
                                    .size_bytes = size_bytes};
}

/* When archetypes get runs of many chunks, and how large chunks are. Tests change it before they create a world, so that
 * few entities have many chunks and runs. */
typedef struct quern__chunk_policy {
    uint32_t gathered_chunks; /* an archetype that holds so many chunks gets runs of 16 */
    uint32_t slab_chunks;     /* one that holds so many gets runs of a whole slab */
    uint32_t most_rows;       /* of a chunk, even if more would fit */
} quern__chunk_policy;

extern quern__chunk_policy quern__chunk_policies;

/* Returns the shift of the runs for an archetype with so many chunks. */
static inline uint32_t quern__run_shift_for(uint32_t chunk_count)
{
    if (chunk_count < quern__chunk_policies.gathered_chunks) return 0;
    return chunk_count < quern__chunk_policies.slab_chunks ? QUERN__RUN_SHIFT : QUERN__SLAB_SHIFT;
}

/* Cached transition to the archetype with one component more or less: the data that a single call needs from the
 * plan. The plan is_plain (see storage.h). */
typedef struct quern__edge {
    uint64_t key; /* quern__edge_key; 0: no edge */
    struct quern__archetype *target;
    const quern__copy_word *carry;
    uint32_t target_number;       /* copy of target->number; the entity's next call depends on it */
    quern__column_position added; /* of the added component; size 0 if it is removed or is a tag */
} quern__edge;

/* Number of cached edges. The component determines the only entry in which an edge is stored and looked up. If two
 * edges share an entry, the later one replaces the earlier one, which quern__plan_find_edge finds again. */
enum { QUERN__EDGE_COUNT = 4 };

typedef struct quern__chunk_slot {
    char *run;
    uint32_t row_count;
    uint32_t first_row; /* of the chunk in its run */
} quern__chunk_slot;

static inline quern__chunk *quern__slot_chunk(const quern__chunk_slot *slot)
{
    return (quern__chunk *)((uintptr_t)slot->run + slot->first_row);
}

/* Returns a row of a slot's chunk. */
static inline quern__row quern__slot_row(const quern__chunk_slot *slot, uint32_t row)
{
    return (quern__row){slot->run, slot->first_row + row};
}

/* The first cache line holds the data that a query or a pass reads of an archetype with one chunk. The second to fourth
 * lines hold the data that adding and removing single rows also needs. */
typedef struct quern__archetype {
    quern__chunk_slot *slots; /* table of chunks; first_slots + 1 until more slots are needed */
    quern__chunk_slot first_slots[2];
    quern__chunk_slot *last_slot; /* slots + chunk_count - 1 */
    uint32_t chunk_count;
    quern__run_shape shape;
    uint32_t handles_offset_bytes;  /* of the entity handles, in the runs that the archetype has */
    uint16_t entities_offset_bytes; /* in a run of one chunk */
    bool tracks_changes; /* has versions, move counts, row bits or listeners, which verbs must update */
    uint32_t number;     /* archetype number in entity records; reused after removal */
    uint32_t column_of_count; /* length of column_of and column_positions */
    uint32_t column_count;
    uint32_t held_count;
    uint32_t reserved_count; /* rows reserved for later appends; 0 between structural changes */

    quern__copy_word *relocation; /* copy plan from row to row within the archetype; NULL unless is_plain */
    quern__edge edges[QUERN__EDGE_COUNT];
    bool is_plain;       /* no type has a move or destroy hook, or is larger than QUERN__COPY_MAX_BYTES */
    bool has_fast_leave; /* is_plain, and no listener must reserve room for rows that leave */
    bool has_destroy;    /* some type has a destroy hook */
    /* whether the archetype may retain one run while it has no rows; then storage->spares lists the
     * archetype */
    bool may_retain_chunk;
    bool is_removed;  /* about to be removed: see core/entities/world_life.c */
    bool has_handles; /* has a component with entity fields that users set */
    bool has_hooks;   /* has a component with entity hooks; lacks has_fast_leave then */
    quern__versions versions;
    quern__row_versions *row_versions; /* NULL if no component has row_changes, or no versions are kept */
    quern__move_counts *move_counts;   /* of the storage; NULL if no component has refs */
    quern__row_bits *row_bits;         /* NULL if the archetype has no bit columns */

    quern__column *columns;      /* ascending by component */
    uint16_t *component_indices; /* including tags; ascending */
    uint8_t *column_of; /* by component index: a column index, QUERN__COLUMN_TAG or QUERN__COLUMN_NONE */
    uint32_t component_count;
    uint32_t slot_capacity;
    uint32_t asked_count; /* chunks that quern_world_reserve asked for, held until quern_world_trim */
    quern__map plans;     /* move plans with this source: see storage.h */
    uint64_t set_hash;
    /* Position in the order of archetypes, or QUERN__UNORDERED; changes when earlier archetypes are removed. */
    uint32_t index;
    /* Determines the layout of chunks: the index at creation, so never below index. A history or an archive may set
     * that of an archetype of another world. */
    uint32_t layout_index;
    /* Unique among all present and past archetypes of the world, except that an archetype with a redefined type keeps it.
     * Ascends in the order of archetypes. A history may restore it. */
    uint64_t identity;
    uint64_t empty_since; /* first sync point that found it without rows, or 0: see world_life.c */
    struct quern__move_plan *incoming;   /* list of the move plans with this target */
    quern__row_listener *first_listener; /* listeners of rooms above storage; NULL if none */
    struct quern__archetype *next_same_hash;
    quern__column_position column_positions[]; /* by component index, like column_of */
} quern__archetype;

enum { QUERN__COLUMN_NONE = 255, QUERN__COLUMN_TAG = 254 };
_Static_assert(QUERN_MAX_ENTITY_COMPONENTS < QUERN__COLUMN_TAG, "columns are numbered in a byte");

/* The index of an archetype that is not in the order of archetypes yet. */
#define QUERN__UNORDERED UINT32_MAX

/* Creates an archetype without chunks for a sorted set of components. layout_index determines the layout of its
 * chunks; quern__storage_append_archetype sets the index. The archetype keeps change versions if some component is
 * filtered. Errors: COMPONENT_TOO_LARGE (a row does not fit in a chunk), OUT_OF_MEMORY. */
quern_result quern__archetype_create(const quern_allocator *allocator, const quern__components *components,
                                     const uint16_t *component_indices, uint32_t component_count,
                                     uint32_t layout_index, const uint64_t *clock,
                                     quern__archetype **out_archetype);

/* Starts keeping change versions. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_start_versions(quern__archetype *archetype, const quern_allocator *allocator,
                                             const quern__components *components);

/* Adds a bit column. Precondition: the archetype lacks this bit column. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_add_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                             quern__bit_column bit_column);
void quern__archetype_remove_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                        quern__bit_column bit_column);

/* Recomputes tracks_changes. */
static inline void quern__archetype_update_tracking(quern__archetype *archetype)
{
    archetype->tracks_changes = archetype->versions.items != NULL || archetype->move_counts != NULL ||
                                archetype->row_bits != NULL || archetype->first_listener != NULL;
}

/* Returns the size of a column in a chunk, in bytes, including padding. */
static inline size_t quern__column_bytes(uint32_t value_bytes, uint32_t rows)
{
    return quern__align_up((size_t)rows * value_bytes, QUERN__PART_ALIGNMENT_BYTES);
}

/* Returns the size of a chunk's contents in bytes. `columns_bytes`: the sum of quern__column_bytes over the
 * columns. */
static inline size_t quern__layout_bytes(size_t columns_bytes, uint32_t rows)
{
    return QUERN__CHUNK_UNUSED_BYTES + columns_bytes + quern__column_bytes(sizeof(quern_entity), rows);
}

/* Releases the archetype, but neither its chunks (they are released with their slabs) nor the values in them. */
void quern__archetype_release(quern__archetype *archetype, const quern_allocator *allocator);

/* Destroys all values of types with a destroy hook. */
void quern__archetype_destroy_values(quern__archetype *archetype);

static inline uint64_t quern__archetype_row_count(const quern__archetype *archetype)
{
    if (archetype->chunk_count == 0) return 0;
    uint32_t last = archetype->chunk_count - 1;
    return (uint64_t)last * archetype->shape.row_capacity + archetype->slots[last].row_count;
}

/* Returns the location of a row. `row`: its index over all chunks. */
static inline uintptr_t quern__archetype_location(const quern__archetype *archetype, uint32_t row)
{
    return quern__location_make(quern__slot_chunk(&archetype->slots[row / archetype->shape.row_capacity]),
                                row % archetype->shape.row_capacity);
}

static inline uint32_t quern__archetype_column(const quern__archetype *archetype, uint32_t component_index)
{
    return component_index < archetype->column_of_count ? archetype->column_of[component_index]
                                                        : (uint32_t)QUERN__COLUMN_NONE;
}

/* Returns the position of a component's values; offset 0 if the archetype has no such column. */
static inline quern__column_position quern__archetype_column_position(const quern__archetype *archetype,
                                                                      uint32_t component_index)
{
    return component_index < archetype->column_of_count ? archetype->column_positions[component_index]
                                                        : (quern__column_position){0};
}

/* Returns the column of a component, or NULL if the archetype has no such column. */
static inline const quern__column *quern__archetype_find_column(const quern__archetype *archetype,
                                                                uint32_t component_index)
{
    const uint32_t column = quern__archetype_column(archetype, component_index);
    return column < QUERN__COLUMN_TAG ? &archetype->columns[column] : NULL;
}

static inline bool quern__archetype_has(const quern__archetype *archetype, uint32_t component_index)
{
    return quern__archetype_column(archetype, component_index) != QUERN__COLUMN_NONE;
}

/* Returns the index of a component's version among the versions of a chunk. Precondition: the archetype has the
 * component. */
static inline uint32_t quern__archetype_version_index(const quern__archetype *archetype,
                                                      uint32_t component_index)
{
    const uint32_t column = archetype->column_of[component_index];
    if (column < QUERN__COLUMN_TAG) return 1 + column;
    uint32_t index = 1 + archetype->column_count;
    for (uint32_t i = 0; archetype->component_indices[i] != component_index; i++)
        index += archetype->column_of[archetype->component_indices[i]] == QUERN__COLUMN_TAG;
    return index;
}

/* Returns whether the entity in a row has the component, and the component is enabled. */
static inline bool quern__row_is_enabled(const quern__archetype *archetype, uintptr_t location,
                                         uint32_t component_index)
{
    if (!quern__archetype_has(archetype, component_index)) return false;
    const uint32_t bit_column =
        quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, component_index);
    return bit_column == QUERN__NO_BIT_COLUMN ||
           !quern__bit_column_test(archetype->row_bits, bit_column, location);
}

/* Returns the address of the value at a location of the position's archetype. */
static inline void *quern__position_value(quern__column_position position, uintptr_t location)
{
    const uintptr_t run = location & (uintptr_t)(intptr_t)position.run_mask;
    return (char *)run + (size_t)position.offset_lines * QUERN__PART_ALIGNMENT_BYTES +
           (location - run) * position.size_bytes;
}

/* Returns the address of the value at a location of the column's archetype. */
static inline char *quern__column_at(const quern__column *column, uintptr_t location)
{
    const uintptr_t row = location & column->row_mask;
    return (char *)(location - row) + column->run_offset_bytes + row * column->size_bytes;
}

static inline void *quern__column_value(const quern__column *column, const quern__chunk *chunk,
                                        uint32_t row)
{
    return quern__column_at(column, quern__location_make(chunk, row));
}

/* Returns the row of the archetype at a location. */
static inline quern__row quern__archetype_row(const quern__archetype *archetype, uintptr_t location)
{
    return quern__row_of(&archetype->shape, location);
}

static inline quern_entity *quern__row_handle(const quern__archetype *archetype, quern__row row)
{
    return (quern_entity *)(void *)(row.run + archetype->handles_offset_bytes) + row.index;
}

static inline quern_entity *quern__archetype_entities(const quern__archetype *archetype,
                                                      const quern__chunk *chunk)
{
    return quern__row_handle(archetype, quern__archetype_row(archetype, (uintptr_t)chunk));
}

/* Returns the chunk of a location. */
static inline quern__chunk *quern__chunk_at(uintptr_t location)
{
    return quern__chunk_of(&quern__archetype_at(location)->shape, location);
}

/* Returns the key of an edge. A single comparison of keys distinguishes the component from those of other worlds,
 * and adding from removing. The key is never 0, even for the null component. */
static inline uint64_t quern__edge_key(quern_component component, bool adds)
{
    return (adds ? 1ull : 2ull) << 32 | component.bits;
}

/* Set in the key of a cached edge if moves along it need a reservation, because the source lacks has_fast_leave, or call
 * entity hooks of the target. Fast paths, which do neither, therefore do not find the edge. */
#define QUERN__EDGE_NEEDS_ROOM (1ull << 34)

static inline quern_component quern__edge_component(uint64_t key)
{
    return (quern_component){(uint32_t)key};
}

/* Returns the only entry that can hold the edge with this key. */
static inline quern__edge *quern__archetype_edge(quern__archetype *archetype, uint64_t key)
{
    return &archetype->edges[key % QUERN__EDGE_COUNT];
}

/* ----------------------------------------------------------------------------------- room for rows */

/* Returns the number of rows that can be reserved without another chunk. */
static inline uint64_t quern__archetype_available_count(const quern__archetype *archetype)
{
    return (uint64_t)archetype->held_count * archetype->shape.row_capacity -
           quern__archetype_row_count(archetype) - archetype->reserved_count;
}

/* Reserves room for `count` more appends, with more chunks if necessary. On failure nothing is reserved. */
quern_result quern__archetype_reserve_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                             const quern_allocator *allocator, uint32_t count);

/* Reserves memory for `count` slots, and for what versions, bits and listeners keep about the rows of their chunks. Returns
 * false if out of memory. */
bool quern__archetype_make_slots(quern__archetype *archetype, const quern_allocator *allocator,
                                 uint32_t count);

/* Adds the chunks of a run of the archetype's shape. Precondition: quern__archetype_make_slots. */
void quern__archetype_add_run(quern__archetype *archetype, char *run);

/* Sets the shape of the archetype's runs to 2^shift chunks, and the offsets and the copy plan that depend on it. Others
 * that know offsets follow in quern__storage_set_shift. */
void quern__archetype_set_shift(quern__archetype *archetype, uint32_t shift);

/* Releases chunks without rows, except those needed for reserved rows and a few that are retained for later rows. */
void quern__archetype_trim(quern__archetype *archetype, quern__slabs *slabs,
                           const quern_allocator *allocator);

/* Releases all chunks without rows. */
void quern__archetype_release_spare_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                           const quern_allocator *allocator);

/* A filter on archetypes: at most one component that entities must have, and at most one that they must lack. */

enum { QUERN__FILTER_NONE = QUERN_MAX_COMPONENTS };

typedef struct quern__archetype_filter {
    uint16_t with;    /* index of the required component, or QUERN__FILTER_NONE */
    uint16_t without; /* index of the excluded component, or QUERN__FILTER_NONE */
} quern__archetype_filter;

/* Returns whether an archetype's entities pass the filter. */
static inline bool quern__archetype_filter_passes(quern__archetype_filter filter,
                                                  const quern__archetype *archetype)
{
    return (filter.with == QUERN__FILTER_NONE || quern__archetype_has(archetype, filter.with)) &&
           (filter.without == QUERN__FILTER_NONE || !quern__archetype_has(archetype, filter.without));
}

#endif
