/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_STORAGE_H
#define QUERN_CORE_STORAGE_STORAGE_H

/* The storage of a world: all its archetypes, components and entities. Here is the registry of archetypes;
 * the ways from one to another are in move_plan.h, how rows come, go and move is in change.h, and how rooms above
 * storage hear of that is in listener.h.
 *
 * Invariants (checked by quern_world_validate):
 *   record of an alive slot -> chunk and row; handle in that row = slot index and generation
 *   chunk -> archetype and index; archetype->slots[index].chunk = chunk
 *   rows of all archetypes together = alive entities */

#include "core/storage/archetype.h"
#include "core/storage/component_internal.h"
#include "core/storage/entity.h"

#include <quern/world.h>

/* Archetypes that lost their last row keep a chunk, in case the next row comes soon; but only this many of
 * them, the last ones. */
enum { QUERN__SPARE_ARCHETYPES = 8 };

/* Where the values of one component are in each archetype, by the archetype's number; nowhere for numbers
 * that are free. Storage keeps them as archetypes come and go. */
typedef struct quern__place_table {
    quern__place *places;
    uint32_t capacity; /* at least the storage's numbered.count */
    uint32_t component_index;
    struct quern__place_table *previous, *next; /* in the storage's list */
} quern__place_table;

typedef struct quern__storage {
    quern_allocator allocator;
    quern__components components;
    quern__entities entities;
    quern__slabs slabs;
    QUERN__ARRAY(quern__archetype *) archetypes; /* in the order they were made; [0] has no components */
    /* By number. Numbers stay while places in the order change, so that records need not follow. */
    QUERN__ARRAY(quern__archetype *) numbered;
    QUERN__ARRAY(uint32_t) free_numbers;               /* the last one is taken first */
    quern__map archetype_by_set;                       /* hash of the set -> first archetype with it */
    quern__archetype *spares[QUERN__SPARE_ARCHETYPES]; /* a ring of those with is_spare, or NULL */
    uint32_t next_spare;

    /* What rooms above storage keep for this world. Storage carries these addresses for them and never follows
     * them; it calls their listeners. prefabs is NULL until one is captured. */
    struct quern__names *names;
    struct quern__relations *relations;
    struct quern__prefabs *prefabs;
    struct quern__reactions *reactions;
    struct quern__combines *combines;
    struct quern_query *first_query; /* list of all queries, also those of systems; may be NULL */
    quern__archetype_listener *first_archetype_listener;
    bool has_attachments; /* entities may have links or names, to be removed when an entity ends */
    uint64_t
        change_number; /* of the last change that reserved room for rows that leave: quern__leaving_begin */

    quern__place_table *first_place_table;
    uint64_t structure_version;  /* changes whenever rows come, go or move */
    uint64_t archetypes_version; /* changes whenever archetypes come or go */
    uint64_t last_identity;      /* that an archetype was given */
    uint64_t clock;              /* of change versions: see version.h; from 1 */
    uint32_t
        disabled_index; /* of the component that keeps entities out of queries, or QUERN__NO_COMPONENT */
    bool is_crowded;    /* the log has been told that archetypes run out */
    /* In builds with QUERN_CHECKS: the schedule that ran a frame last, and how often one has looked at
     * what happened outside its systems. */
    const void *framed_by;
    uint64_t look_count;
} quern__storage;

/* An index that no component has, and so no archetype. */
#define QUERN__NO_COMPONENT UINT32_MAX

/* From so many archetypes on a world is crowded, and says so; below so many it is no longer. Far from each
 * other, so that one that breathes does not fill the log. */
enum {
    QUERN__CROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 4 * 3,
    QUERN__UNCROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 2
};

/* first_handle_high: of slots that were never used; see handle.h. Rooms above storage are attached afterwards. */
quern_result quern__storage_init(quern__storage *storage, const quern_allocator *allocator,
                                 uint32_t first_handle_high);

/* The listener hears of archetypes from now on, until the storage is released. */
static inline void quern__storage_listen(quern__storage *storage, quern__archetype_listener *listener)
{
    listener->next = storage->first_archetype_listener;
    storage->first_archetype_listener = listener;
}

/* Destroys all values and gives all memory back. Also fit for a storage whose init failed. No archetype has
 * listeners any more. */
void quern__storage_release(quern__storage *storage);

/* ------------------------------------------------------------------------------------- archetypes */

/* The archetype of a sorted set without duplicates; one that is made is without rows, and may be left
 * when the call that wanted it fails. Errors: TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE,
 * LIMIT, OUT_OF_MEMORY. */
quern_result quern__storage_archetype(quern__storage *storage, const uint16_t *component_indices,
                                      uint32_t count, quern__archetype **out_archetype);

/* As quern__storage_archetype, but an archetype that is made gets the layout of made_index, which is not
 * below the number of archetypes. */
quern_result quern__storage_archetype_as(quern__storage *storage, const uint16_t *component_indices,
                                         uint32_t count, uint32_t made_index,
                                         quern__archetype **out_archetype);

/* Puts an archetype at the end of the order, in every list that has them in order; there is room. */
void quern__storage_link(quern__storage *storage, quern__archetype *archetype);

/* The archetype of such a set, or NULL. */
quern__archetype *quern__storage_find_archetype(const quern__storage *storage,
                                                const uint16_t *component_indices, uint32_t count);

/* For archetypes that are made now and linked later, in another order. The first call reserves room in the
 * lists that will name them. The second makes one with the layout of made_index, which keeps change
 * versions and listeners but is in no list. The third gives it a number and enters it by its set. Errors:
 * OUT_OF_MEMORY, with nothing left. */
bool quern__storage_reserve_archetypes(quern__storage *storage, uint32_t count);
quern_result quern__storage_make_archetype(quern__storage *storage, const uint16_t *component_indices,
                                           uint32_t count, uint32_t made_index,
                                           quern__archetype **out_archetype);
void quern__storage_enter(quern__storage *storage, quern__archetype *archetype);

/* Takes an archetype without rows and plans, to or from it, out of what knows it by number and by set, and
 * releases it. Lists in order are the caller's matter. */
void quern__storage_unlink(quern__storage *storage, quern__archetype *archetype);

/* ------------------------------------------------------------------------------------ place tables */

/* Fills a table for a component and keeps it from now on. It must not move. Errors: OUT_OF_MEMORY, with
 * nothing kept. */
quern_result quern__storage_keep_places(quern__storage *storage, uint32_t component_index,
                                        quern__place_table *table);
void quern__storage_drop_places(quern__storage *storage, quern__place_table *table);

/* -------------------------------------------------------------------------------------- departures */

/* Counts departures from the chunks of all archetypes, of now and later, that have the component, for
 * the reader, until the other call. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_count_departures(quern__storage *storage, uint32_t component_index,
                                             quern_getter *reader);
void quern__storage_uncount_departures(quern__storage *storage, uint32_t component_index,
                                       quern_getter *reader);

/* --------------------------------------------------------------------------------- change versions */

/* Keeps change versions of all archetypes, of now and later, that have the component, until as many calls
 * of quern__storage_unfilter. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_filter(quern__storage *storage, uint32_t component_index);
void quern__storage_unfilter(quern__storage *storage, uint32_t component_index);

/* For builds with QUERN_CHECKS. A pointer to write values of the component was given out: it is good until
 * the structure changes. And: a call wrote values of the component, and keeps no pointer. Relaxed: a world
 * is changed by one thread at a time, and what that thread does next brings the order. */
static inline void quern__storage_note_lent(const quern__storage *storage, uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(&storage->components.list.items[component_index]->hands.lent_structure,
                          storage->structure_version + 1, memory_order_relaxed);
}

/* Relaxed: as in quern__storage_note_lent. */
static inline void quern__storage_note_set(const quern__storage *storage, uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(&storage->components.list.items[component_index]->hands.written_look,
                          storage->look_count + 1, memory_order_relaxed);
}

/* ---------------------------------------------------------------------------------------- looking */

static inline quern__archetype *quern__storage_archetype_of(const quern__storage *storage,
                                                            const quern__record *record)
{
    return storage->numbered.items[record->archetype_number];
}

static inline void *quern__place_value(quern__place place, uintptr_t location)
{
    return (char *)quern__chunk_of(location) + place.offset_bytes +
           (size_t)quern__location_row(location) * place.size_bytes;
}

/* The value of a component in a row, or NULL where the archetype has no such column. */
static inline void *quern__storage_value(const quern__archetype *archetype, uintptr_t location,
                                         uint32_t component_index)
{
    const quern__place place = quern__archetype_place(archetype, component_index);
    return place.offset_bytes != 0 ? quern__place_value(place, location) : NULL;
}

#endif
