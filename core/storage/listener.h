/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LISTENER_H
#define QUERN_CORE_STORAGE_LISTENER_H

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

#include <quern/base.h>

#include <stdbool.h>
#include <stdint.h>

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

/* Reserves the listeners' memory for the rows of `chunk_count` chunks of the archetype. Returns false if out of
 * memory. */
bool quern__row_listeners_hold(const struct quern__archetype *archetype, const quern_allocator *allocator,
                               uint32_t chunk_count);

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

#endif
