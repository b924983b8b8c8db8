/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_REACTION_H
#define QUERN_CORE_REACTIONS_REACTION_H

/* Old values: for a reaction with old terms (quern_term_old), the values that the rows of one archetype had before they
 * were set. There is one block for each chunk that the archetype holds:
 *
 *   block:  | address of a column for each term | column | column | ...     each column aligned to 64 bytes
 *
 * The address of a term without old values is NULL. A column has one value for each row of the chunk. A value is valid
 * while the row's SET bit is set, and from the time when the reaction takes the bit until it has run. Values are copied
 * when the bit becomes set, and move with their rows.
 *
 * Blocks are reserved with the chunks of the archetype (`hold` in core/storage/archetype.h), so copying cannot fail and
 * needs no order among threads. Old values are plain bytes: types with hooks for copies cannot have old terms. */

#include "core/base/containers.h"
#include "core/storage/archetype.h"
#include "core/storage/conversion.h"

#include <quern/query.h>

/* The values of one old term. */
typedef struct quern__old_column {
    const quern__type *type;
    uint32_t offset_bytes;        /* offset of the column in a block */
    uint16_t source_offset_bytes; /* offset of the component's column in a run of one chunk */
    uint16_t size_bytes;          /* size of one value */
} quern__old_column;

typedef struct quern__old_values {
    quern__old_column *columns;    /* in the order of the old terms */
    const quern__run_shape *shape; /* of the archetype's runs */
    uint32_t column_count;         /* 0: the reaction has no old terms, and no block is reserved */
    uint32_t block_bytes;          /* size of a block */
    QUERN__ARRAY(char *) blocks;   /* by index of the chunk in the archetype */
} quern__old_values;

/* Lays out the blocks for the old terms of a list. `columns`: memory for one column per term. Precondition: the
 * archetype has the components of the old terms. */
void quern__old_values_init(quern__old_values *old, quern__old_column *columns,
                            const quern__archetype *archetype, const quern_term *terms,
                            uint32_t term_count);

/* Reserves blocks for `chunk_count` chunks. Returns false if out of memory; blocks that were allocated are kept. */
bool quern__old_values_hold(quern__old_values *old, const quern_allocator *allocator,
                            const quern_term *terms, uint32_t term_count, uint32_t chunk_count);

/* Releases the blocks after the first `keep_count`. */
void quern__old_values_trim(quern__old_values *old, const quern_allocator *allocator, uint32_t keep_count);

/* Releases all memory. */
void quern__old_values_release(quern__old_values *old, const quern_allocator *allocator);

/* Copies the current values of consecutive rows of one chunk to the old values of the rows from `to` on. `source`: the
 * old values of the archetype of these rows; its columns belong to the same terms. */
void quern__old_values_save(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count);

/* Copies the old values of consecutive rows of one chunk to other rows. */
void quern__old_values_move(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count);

/* Calls a function for one old value. `argument`: that of the visit. */
typedef void quern__old_visit(void *argument, const quern__old_column *column, char *value);

/* Visits the old values of all rows of an archetype with a set bit in a bit column: by row, and in each row in the order
 * of terms. visit: NULL to count only. Returns the number of these rows; 0 if the reaction has no old terms. */
uint32_t quern__old_values_visit(const quern__old_values *old, const quern__archetype *archetype,
                                 uint32_t bit_column, quern__old_visit *visit, void *argument);

/* A quern__old_visit that writes the value; argument: a quern__byte_writer. */
void quern__old_value_write(void *argument, const quern__old_column *column, char *value);

/* Returns the address of an old value of a row. column: its index among the columns of old values. */
char *quern__old_value_at(const quern__old_values *old, uint32_t column, uintptr_t location);

/* Returns the size of the old values of one row in bytes. */
uint32_t quern__old_values_row_bytes(const quern__old_values *old);

/* Copies of rows that left an archetype, which one reaction processes later. Blocks contain handles and the values of
 * some columns. Copies are numbered in the order in which they are made; number n is in block n / block_rows, in row
 * n % block_rows:
 *
 *   block:  | handles | column | column | ... | keys |      each part aligned to 64 bytes
 *
 * Memory is reserved before a change begins. Threads that share a change each claim the next numbers for their rows, so
 * the numbers of one sync point depend on timing. The *keys* do not. Sorted by key, copies are in the order of changes.
 * The copies of one sync point are in the order of the rows before it. Any other change is made by one thread; its
 * copies are in the order in which they were made. */

/* A column with copied values. */
typedef struct quern__removed_column {
    const quern__type *type;      /* NULL: values are plain bytes */
    uint16_t source_offset_bytes; /* offset of the column in the archetype's chunks */
    uint16_t offset_bytes;        /* offset of the column in a block */
    uint16_t size_bytes;          /* size of one value */
} quern__removed_column;

typedef struct quern__removed {
    const quern__archetype *archetype;
    quern__removed_column *columns;
    uint32_t column_count;
    bool calls_hooks;    /* some column has a type with hooks, which copying calls */
    uint32_t block_rows; /* number of rows for which one block has room: 1 << block_shift */
    uint32_t block_shift;
    uint32_t keys_offset_bytes, block_bytes;
    uint32_t count;          /* copies; threads claim numbers by adding to it */
    uint32_t change_first;   /* value of `count` when the last change began */
    uint64_t change;         /* number of the last change that reserved memory; see quern__leaving_begin */
    uint64_t promised_count; /* copies that the last change may make */
    QUERN__ARRAY(char *) blocks;
} quern__removed;

/* Computes the layout of blocks: rows, sizes, and the offsets of columns. Precondition: all other members of the
 * columns are set. */
void quern__removed_lay_out(quern__removed *removed, const quern__archetype *archetype);

/* Destroys the copies and releases all memory. */
void quern__removed_release(quern__removed *removed, const quern_allocator *allocator);

/* Reserves memory for `count` more copies in a change. change: number of the change; reservations with the same
 * number add up. Returns false if out of memory; memory that was allocated is kept. */
bool quern__removed_reserve(quern__removed *removed, const quern_allocator *allocator, uint64_t change,
                            uint32_t count);

/* Makes sure that the blocks have memory for `count` copies in all. Returns false if out of memory; memory that was
 * allocated is kept. */
bool quern__removed_reserve_total(quern__removed *removed, const quern_allocator *allocator,
                                  uint32_t count);

/* Copies consecutive rows of one chunk. Precondition: room was reserved. orders_by_row: the change is a sync point.
 * Thread-safe for different rows unless calls_hooks. */
void quern__removed_copy(quern__removed *removed, uintptr_t first, uint32_t count, bool orders_by_row);

/* Copies one row in a change that is no sync point. Precondition: room was reserved, and no other thread copies. */
void quern__removed_copy_row(quern__removed *removed, uintptr_t row);

/* Sorts the copies by key. Returns false, with nothing changed, if out of memory. */
bool quern__removed_sort(quern__removed *removed, const quern_allocator *allocator);

/* Destroys the copies and keeps the memory. */
void quern__removed_clear(quern__removed *removed);

/* Destroys the values of the first `count` copies in a block. */
void quern__removed_destroy_values(const quern__removed *removed, char *block, uint32_t count);

/* Moves all copies, which keep their numbers and keys, to the empty blocks of another layout, for which room was
 * reserved. The values of one column are converted; column_count: none are. */
void quern__removed_convert(quern__removed *to, quern__removed *from, uint32_t column,
                            const quern__type_change *change);

/* Releases blocks without copies, except for keep_count of them. */
void quern__removed_trim(quern__removed *removed, const quern_allocator *allocator, uint32_t keep_count);

/* Returns the number of blocks with copies. */
static inline uint32_t quern__removed_used_blocks(const quern__removed *removed)
{
    return (uint32_t)(((uint64_t)removed->count + removed->block_rows - 1) / removed->block_rows);
}

/* Returns the number of copies in the i-th block. Precondition: i < quern__removed_used_blocks(). */
static inline uint32_t quern__removed_rows_in(const quern__removed *removed, uint32_t i)
{
    const uint32_t left = removed->count - i * removed->block_rows;
    return left < removed->block_rows ? left : removed->block_rows;
}

/* Reactions: systems that process the entities which entered the archetypes matched by the system, the entities with
 * values that were set there, and those that left. A reaction has a subscription in each of these archetypes, from the
 * archetype's creation on:
 *
 *   bit column ADDED   a bit per row: the entity entered, and the reaction has not processed it yet
 *   bit column SET     a bit per row: a value that the reaction reads was set; never set where ADDED is set
 *   old values         values of rows before they were set, for old terms
 *   copies             rows that left: handle, and values of the terms with access
 *
 * A subscription has only the bit columns and copies for the kinds that its reaction requests. Bits move with their rows
 * (core/storage/row_bits.h), so a pending change of an entity is not lost when it moves, and the pending rows of an
 * archetype are in order without sorting. Old values are copied when SET becomes set, and move with the bit.
 *
 * Only the net effect of a change counts. A row that moves between two archetypes with subscriptions of one reaction
 * keeps its bits. A row from an archetype without one gets ADDED. A row to an archetype without one is copied, unless
 * ADDED is set: then nothing is recorded, as the reaction has never processed it. A sync point moves each entity at most
 * once, so commands that cancel each other out cause no reaction.
 *
 * Threads. The listener functions may run on the threads that core/storage/change.h allows. Everything else belongs to
 * one thread that has the storage to itself. Several threads may raise a flag at a time, with relaxed order: the thread
 * that reads flags has waited for them.
 *
 * Failure. A listener must not fail, so memory for copies is reserved before a change begins, for each archetype that
 * rows may leave (quern__leaving_reserve in core/storage/change.h).
 *
 * A subscription is a row listener of its archetype (core/storage/archetype.h), so storage does not depend on
 * reactions. */

struct quern__storage;

/* The subscription of a reaction to one archetype that it matches. */
typedef struct quern__subscription {
    quern__row_listener listener; /* first member; its position is the reaction's number */
    struct quern__reaction *reaction;
    quern__archetype *archetype; /* same value as listener.archetype */
    bool is_pending;             /* whether a bit of its bit columns may be set */
    /* Indices of its bit columns in the archetype, or QUERN__NO_BIT_COLUMN. They change only when reactions are added and
     * removed. */
    uint32_t added_column, set_column;
    uint32_t taken_block_count; /* number of its blocks that are in reaction->taken */
    quern__removed removed;     /* copies of rows that left; empty unless the reaction requests REMOVED */
    quern__old_values old;      /* values of rows with SET from before the write */
    quern_view_column *columns; /* columns of a view of copies, one per term */
} quern__subscription;

/* Rows of one chunk for which one kind of change is pending. */
typedef struct quern__taken_rows {
    quern__archetype *archetype;
    uint32_t slot;            /* index of the chunk in the archetype */
    uint32_t first_word;      /* index in quern__taken.words of the bits of the chunk's rows */
    uint32_t count;           /* number of set bits, at least 1 */
    quern_reaction_kind kind; /* QUERN_REACT_ADDED or QUERN_REACT_SET */
    const void *const *old;   /* columns of old values by term, with all rows of the chunk; NULL: none */
} quern__taken_rows;

/* A block of copies of rows that left one archetype. A view of it refers to these entities, columns and values, and has
 * no change versions. */
typedef struct quern__taken_block {
    quern__subscription *subscription;
    char *memory;                     /* start of the block; the offsets in `columns` are relative to it */
    const quern_entity *entities;     /* handles; stale if the entity was destroyed */
    const quern_view_column *columns; /* one per term */
    uint32_t count;                   /* rows, at least 1 */
} quern__taken_block;

/* Everything that one run of a reaction processes. */
typedef struct quern__taken {
    QUERN__ARRAY(quern__taken_block) removed; /* ordered by archetype, and within one by key */
    QUERN__ARRAY(quern__taken_rows) rows;     /* ordered by archetype, chunk and kind: ADDED before SET */
    QUERN__ARRAY(uint64_t) words;             /* one bit per row of a chunk, for each item of `rows` */
} quern__taken;

typedef bool quern__matches_function(const struct quern_query *query, const quern__archetype *archetype);

typedef struct quern__reaction_def {
    uint32_t kinds;          /* bits of quern_reaction_kind */
    const quern_term *terms; /* valid terms; copied. The reaction reads the values of terms with access */
    uint32_t term_count;
    /* Whether an archetype matches; must not change for an archetype. NULL: archetypes with the component of the only
     * term match, and the reaction is the one of its entity hooks (core/reactions/hook.h). */
    quern__matches_function *matches;
    const struct quern_query *query; /* argument of `matches`; must outlive the reaction */
    /* Reaction that the new one replaces and from which it inherits what is pending, or NULL. */
    const struct quern__reaction *replaced;
} quern__reaction_def;

typedef struct quern__reaction {
    struct quern__reactions *registry;
    uint32_t number;     /* index in the registry; reused after removal */
    uint32_t id;         /* id of its bit columns, and in frames of histories; never reused */
    uint32_t kinds;      /* bits of quern_reaction_kind */
    uint32_t told_kinds; /* kinds of changes that are recorded for it: `kinds`, or 0 while it is disabled */
    bool is_pending;     /* whether a subscription may have bits or copies that were not taken */
    bool is_in_frame;    /* while a frame of a history is restored: whether it has the reaction */
    uint32_t term_count;
    quern__matches_function *matches;
    const struct quern_query *query;
    QUERN__ARRAY(quern__subscription *) subscriptions; /* ordered by archetype */
    quern__taken taken;
    quern_term terms[];
} quern__reaction;

/* Returns whether the reaction subscribes to the archetype. */
static inline bool quern__reaction_matches(const quern__reaction *reaction,
                                           const quern__archetype *archetype)
{
    if (reaction->matches != NULL) return reaction->matches(reaction->query, archetype);
    return quern__archetype_has(archetype, quern__component_index(reaction->terms[0].component));
}

/* The registry of a storage's reactions. */
typedef struct quern__reactions {
    QUERN__ARRAY(quern__reaction *) list; /* reactions by number; NULL: the number is free */
    uint32_t count;                       /* reactions in the list */
    uint32_t removed_count;               /* reactions that ask for REMOVED */
    uint32_t last_id;                     /* id of the newest reaction */
    bool is_pending;                      /* whether a reaction is pending */
    /* Whether a sync point is being applied; its copies are ordered by row. */
    bool orders_by_row;
    /* Whether a sync point combines accumulated values. While neither flag is set, one thread makes all changes. */
    bool combines_values;
    QUERN__ARRAY(quern__reaction *)
    hooks; /* those of entity hooks, ascending by component: core/reactions/hook.h */
    quern__archetype_listener listener; /* gives new archetypes their subscriptions */
} quern__reactions;

/* --------------------------------------------------------------------------------------- the registry */

/* Initialises the registry and registers it with the storage. */
void quern__reactions_init(quern__reactions *reactions, struct quern__storage *storage);

/* Removes all reactions. */
void quern__reactions_release(struct quern__storage *storage);

/* Adds a reaction and subscribes it to all archetypes that it matches, now and later. If it requests ADDED and
 * PRESENT, all existing rows count as ADDED.
 *
 * If it replaces another reaction, it inherits ADDED and SET of the rows that both match, except SET if it has old
 * terms: their values are missing. With PRESENT, only rows that the replaced reaction does not match count as ADDED.
 *
 * Errors: INVALID_ARGUMENT (the reaction asks for REMOVED, and a type
 * that its terms have access to has a destroy hook but no copy hook), OUT_OF_MEMORY; then nothing has changed.
 * Precondition: the terms have old values only if the reaction asks for SET, and of types that own no resources. */
quern_result quern__reaction_add(struct quern__storage *storage, const quern__reaction_def *def,
                                 quern__reaction **out_reaction);

/* Removes a reaction with everything that is pending for it. reaction may be NULL. */
void quern__reaction_remove(struct quern__storage *storage, quern__reaction *reaction);

/* If the reaction requests ADDED and PRESENT and is not disabled, makes all rows that it matches count as ADDED, except
 * those that `replaced` matches, unless that is NULL. */
void quern__reaction_add_present(quern__reaction *reaction, const quern__reaction *replaced);

/* Removes the subscriptions of archetypes with is_removed from the lists of reactions. Precondition: these have no
 * copies. */
void quern__reactions_forget_removed(struct quern__storage *storage);

/* Sorts the subscriptions of all reactions after the order of archetypes has changed. */
void quern__reactions_sort_subscriptions(struct quern__storage *storage);

/* Releases the memory that is reserved for copies and not in use. */
void quern__reactions_trim(struct quern__storage *storage);

/* Returns whether a reaction has copies of rows of the archetype, pending or taken. Such an archetype must not be
 * removed. */
bool quern__archetype_has_removed_copies(const quern__archetype *archetype);

/* The functions of all subscriptions. A row listener is a subscription exactly if its events are these. */
extern const quern__row_events quern__subscription_events;

/* Returns the first subscription in a list of row listeners, or NULL. */
static inline quern__subscription *quern__subscription_from(quern__row_listener *listener)
{
    while (listener != NULL && listener->events != &quern__subscription_events)
        listener = listener->next;
    return (quern__subscription *)listener;
}

/* Iterate the subscriptions of an archetype in the order of their reactions' numbers; NULL at the end. */
static inline quern__subscription *quern__first_subscription(const quern__archetype *archetype)
{
    return quern__subscription_from(archetype->first_listener);
}

static inline quern__subscription *quern__next_subscription(const quern__subscription *subscription)
{
    return quern__subscription_from(subscription->listener.next);
}

/* Returns the subscription of the reaction in an archetype, or NULL if it does not match the archetype. */
static inline quern__subscription *quern__find_subscription(const quern__archetype *archetype,
                                                            const quern__reaction *reaction)
{
    quern__subscription *subscription = quern__first_subscription(archetype);
    while (subscription != NULL && subscription->reaction != reaction)
        subscription = quern__next_subscription(subscription);
    return subscription;
}

/* ------------------------------------------------------------------------------------- what is pending */

/* Returns whether a reaction of the storage is pending. This is the only check that a sync point without pending
 * reactions makes. */
static inline bool quern__reactions_are_pending(const quern__reactions *reactions)
{
    return reactions->is_pending;
}

/* Moves everything that is pending for the reaction to reaction->taken, where it is valid until the structure of
 * the storage changes. First calls quern__reaction_finish for what was taken before. Errors: OUT_OF_MEMORY; then
 * everything is still pending. */
quern_result quern__reaction_take(struct quern__storage *storage, quern__reaction *reaction);

/* Empties reaction->taken after the reaction has processed it: destroys the copies and keeps their blocks for later
 * copies. */
void quern__reaction_finish(struct quern__storage *storage, quern__reaction *reaction);

/* Makes everything that was taken pending again. Precondition: the structure has not changed since. */
void quern__reaction_put_back(struct quern__storage *storage, quern__reaction *reaction);

/* Returns whether a reaction to values of the component, which asks for SET and not for ADDED, does not match the
 * archetype (NULL: the entity does not exist yet). If an entity of the archetype matches after a change, such a reaction
 * has no bit that marks the entity as new. */
bool quern__reactions_miss(const quern__reactions *reactions, uint32_t component_index,
                           const quern__archetype *archetype);

/* Checks that reactions can copy values of a component that gets other hooks, as adding them did. Errors:
 * INVALID_ARGUMENT. */
quern_result quern__reactions_check_hooks(const struct quern__storage *storage, uint32_t component_index,
                                          const quern__type *type);

/* Conversion of what is pending in an archetype to an archetype with the same components, of which one has another
 * layout. The first function checks the values, and reserves memory in the subscriptions of the target. The second one
 * converts; it must precede quern__rows_convert, and the target must have its rows. Errors of the first:
 * INVALID_ARGUMENT (a number that does not fit, or a reaction that has not ended), OUT_OF_MEMORY. */
quern_result quern__reactions_prepare_conversion(const struct quern__storage *storage,
                                                 const quern__archetype *source,
                                                 const quern__archetype *target,
                                                 quern__type_change *change);
void quern__reactions_convert(const quern__archetype *source, const quern__archetype *target,
                              const quern__type_change *change);

/* Discards everything that is pending for the reaction. reaction->taken does not change. */
void quern__reaction_drop(struct quern__storage *storage, quern__reaction *reaction);

#endif
