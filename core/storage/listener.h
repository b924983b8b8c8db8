/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LISTENER_H
#define QUERN_CORE_STORAGE_LISTENER_H

/* Listeners: how rooms above storage hear of changes. Storage calls the functions of a table and does not know
 * whose they are.
 *
 *   quern__row_listener        notifies of the rows of one archetype. The verbs of change.h call it
 *   quern__archetype_listener  notifies of archetypes that are made and removed. storage.c calls it
 *
 * What storage keeps beside rows itself (change versions, move_counts, bit columns) is called directly by the verbs.
 *
 * A listener is embedded in the structure of its owner, who keeps it in memory until it is taken out. Functions of
 * row listeners must not fail, must bear the threads that change.h allows, and must not look at values that the
 * caller of a verb may still have to write. */

#include <quern/base.h>

#include <stdbool.h>
#include <stdint.h>

struct quern__archetype;
struct quern__storage;

typedef struct quern__row_listener {
    const struct quern__row_events *events;
    struct quern__archetype *archetype;
    struct quern__row_listener *next; /* of the archetype, by position */
    uint32_t position;                /* listeners hear in ascending order of it */
    bool
        needs_room; /* rows that leave the archetype need `reserve` first, so that their move is not quick */
    bool calls_hooks; /* leave and move_out call hooks of types, which belong to one thread */
} quern__row_listener;

/* All functions must be there. first, from, to: the location of the first of `count` rows of one chunk. */
typedef struct quern__row_events {
    /* New entities are in these rows. */
    void (*arrive)(quern__row_listener *listener, uintptr_t first, uint32_t count);
    /* The entities in these rows are about to end; values, handles and bits are still there. */
    void (*leave)(quern__row_listener *listener, uintptr_t first, uint32_t count);
    /* Rows of the listener's archetype are about to move to the target; bits have not moved yet. */
    void (*move_out)(quern__row_listener *listener, uintptr_t from, const struct quern__archetype *target,
                     uint32_t count);
    /* Rows of the source are about to move to the listener's archetype; bits have moved already. */
    void (*move_in)(quern__row_listener *listener, uintptr_t to, const struct quern__archetype *source,
                    uint32_t count);
    /* A component of these rows was given values. source: where the rows were before; the same archetype if they
     * have not moved. */
    void (*written)(quern__row_listener *listener, const struct quern__archetype *source, uintptr_t first,
                    uint32_t count, uint32_t component_index);
    /* Up to `count` rows may leave for the target (NULL: they end) in the change of this number; what one change
     * reserves adds up. Called only if needs_room. Errors: OUT_OF_MEMORY; room that was made is kept. */
    quern_result (*reserve)(quern__row_listener *listener, const quern_allocator *allocator,
                            uint64_t change, const struct quern__archetype *target, uint32_t count);
    /* The archetype is released, and the listener with it. */
    void (*release)(quern__row_listener *listener, const quern_allocator *allocator);
} quern__row_events;

/* Adds the listener to its archetype, or takes it out. An archetype that has a listener with needs_room loses its
 * cached edges, along which rows move without a reservation. */
void quern__row_listener_add(quern__row_listener *listener);
void quern__row_listener_remove(quern__row_listener *listener);

/* Releases all listeners of an archetype that is about to be released. */
void quern__row_listeners_release(struct quern__archetype *archetype, const quern_allocator *allocator);

/* Whether some listener calls hooks when rows leave the archetype, so that one thread has to take them out. */
bool quern__row_listeners_call_hooks(const struct quern__archetype *archetype);

typedef struct quern__archetype_listener {
    /* A new archetype, which is in no list yet. May be NULL. Errors: any; nothing is kept then, and the archetype is
     * released. */
    quern_result (*created)(struct quern__storage *storage, struct quern__archetype *archetype);
    /* An archetype is removed, and plans to and from it. May be NULL. */
    void (*removed)(struct quern__storage *storage, const struct quern__archetype *archetype);
    struct quern__archetype_listener *next; /* of the storage */
} quern__archetype_listener;

#endif
