/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_STORAGE_H
#define QUERN_CORE_STORAGE_STORAGE_H

/* The storage of a world, and every structural change that can be made to it.
 *
 * A change is made in two steps. First everything that may fail: find or make the archetype, the plan, room
 * for rows and records (results are returned, an unused empty archetype may stay behind, nothing else).
 * Then the change itself, which cannot fail.
 *
 * Invariants (checked by quern_world_validate):
 *   record of an alive slot -> chunk and row; handle in that row = slot index and generation
 *   chunk -> archetype and index; archetype->slots[index].chunk = chunk
 *   rows of all archetypes together = alive entities */

#include "core/storage/archetype.h"
#include "core/storage/component.h"
#include "core/storage/entity.h"

#include <quern/world.h>

/* One value of a row, on its way from one archetype to another. */
typedef struct quern__move_step {
    const quern__type *type;      /* NULL: plain bytes */
    uint16_t source_offset_bytes; /* of the column; unused when the value is added */
    uint16_t target_offset_bytes; /* unused when it is removed */
    uint16_t size_bytes;
} quern__move_step;

/* How to move a row to another archetype: steps[0 .. shared) carry a value over, [shared .. shared + added)
 * make a new one, and the remaining `removed` steps destroy one. Cached in the source archetype twice:
 * under the target's number, and, where the sets differ by one component, under that component. */
typedef struct quern__move_plan {
    quern__archetype *source, *target;
    struct quern__move_plan *next_incoming, **place_incoming; /* in the target's list */
    quern__copy_word *carry; /* does what the shared steps do; NULL unless is_plain */
    quern__place added;      /* of the first added step; size 0 when there is none */
    bool is_plain;           /* no step has a type, or is larger than QUERN__COPY_MAX_BYTES */
    uint32_t shared_count, added_count, removed_count;
    quern__move_step steps[];
} quern__move_plan;

/* Archetypes that lost their last row keep a chunk, in case the next row comes soon; but only this many of
 * them, the latest. */
enum { QUERN__SPARE_ARCHETYPES = 8 };

typedef struct quern__storage {
    quern_allocator allocator;
    quern__components components;
    quern__entities entities;
    quern__slabs slabs;
    QUERN__ARRAY(quern__archetype *) archetypes; /* in the order they were made; [0] has no components */
    /* By number. Numbers stay while places in the order change, so that records need not follow. */
    QUERN__ARRAY(quern__archetype *) numbered;
    QUERN__ARRAY(uint32_t) free_numbers;               /* the latest one is taken first */
    quern__map archetype_by_set;                       /* hash of the set -> first archetype with it */
    quern__archetype *spares[QUERN__SPARE_ARCHETYPES]; /* a ring of those with is_spare, or NULL */
    uint32_t next_spare;
    struct quern_query *first_query; /* all queries, also those of systems: see core/world/reclaim.c */
    uint64_t structure_version;      /* changes whenever rows come, go or move */
    uint64_t archetypes_version;     /* changes whenever archetypes come or go */
    uint64_t clock;                  /* of change versions: see version.h; from 1 */
    bool is_crowded;                 /* the log has been told that archetypes run out */
    /* In builds with QUERN_CHECKS: the schedule that ran a frame latest, and how often one has looked at
     * what happened outside its systems. */
    const void *framed_by;
    uint64_t look_count;
} quern__storage;

/* From so many archetypes on a world is crowded, and says so; below so many it is no longer. Far from each
 * other, so that one that breathes does not fill the log. */
enum {
    QUERN__CROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 4 * 3,
    QUERN__UNCROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 2
};

/* The stamp is that of slots that were never used: see handle.h. */
quern_result quern__storage_init(quern__storage *storage, const quern_allocator *allocator,
                                 uint32_t first_stamp);

/* Destroys all values and gives all memory back. Also fit for a storage whose init failed. */
void quern__storage_release(quern__storage *storage);

/* ------------------------------------------------------------------------- steps that may fail */

/* The archetype of a sorted set without duplicates. Errors: TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE,
 * LIMIT, OUT_OF_MEMORY. */
quern_result quern__storage_archetype(quern__storage *storage, const uint16_t *component_indices,
                                      uint32_t count, quern__archetype **out_archetype);

/* The plan between two archetypes. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_plan(quern__storage *storage, quern__archetype *source,
                                 quern__archetype *target, const quern__move_plan **out_plan);

/* The plan to the archetype with one component more, or less where the source has it. Errors: as both
 * above. */
quern_result quern__storage_toggle(quern__storage *storage, quern__archetype *source,
                                   uint32_t component_index, const quern__move_plan **out_plan);

static inline quern_result quern__storage_reserve_rows(quern__storage *storage, quern__archetype *archetype,
                                                       uint32_t count)
{
    return quern__archetype_reserve(archetype, &storage->slabs, &storage->allocator, count);
}

/* Records and rows for `count` new entities of an archetype; on failure nothing is held that was not
 * before. */
static inline quern_result quern__storage_reserve_new(quern__storage *storage, quern__archetype *archetype,
                                                      uint32_t count)
{
    quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    if (result != QUERN_OK) return result;
    result = quern__storage_reserve_rows(storage, archetype, count);
    if (QUERN__UNLIKELY(result != QUERN_OK)) quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
}

/* Takes back the promises made to an archetype by a change that will not be made after all. */
void quern__storage_unreserve_rows(quern__storage *storage, quern__archetype *archetype);

/* ---------------------------------------------------------------------- steps that cannot fail */

/* Puts an archetype at the end of the order, in every list that has them in order; there is room. */
void quern__storage_link(quern__storage *storage, quern__archetype *archetype);

/* Takes an archetype without rows and plans, to or from it, out of what knows it by number and by set, and
 * releases it. Lists in order are the caller's matter. */
void quern__storage_unlink(quern__storage *storage, quern__archetype *archetype);

/* Forgets all plans of an archetype; they are made again when they are needed. */
void quern__storage_forget_plans(quern__storage *storage, quern__archetype *archetype);

/* Gives a taken entity a reserved row of the archetype. Its values are raw memory; the new location. */
uintptr_t quern__storage_insert(quern__storage *storage, quern_entity entity, quern__archetype *archetype);

/* Moves an entity's row to `to`, a row of raw memory just appended to the plan's target. Values that the
 * source did not have (steps `added` of the plan) are left alone, those that the target lacks are
 * destroyed. New values are filled in before the move: until then pointers into the storage, where a user
 * may have them from, hold. */
void quern__storage_move(quern__storage *storage, quern_entity entity, quern__record *record,
                         const quern__move_plan *plan, uintptr_t to);

/* Gives `count` new entities reserved rows in one chunk, whose first has this location; records must
 * have been reserved, and rows appended. Their handles stand in the chunk afterwards; their values
 * are raw memory. */
void quern__storage_insert_run(quern__storage *storage, quern__archetype *archetype, uintptr_t first,
                               uint32_t count);

/* Appends rows for all rows of an archetype to the target of one of its plans, which has room for them
 * reserved. The values that the plan adds become copies of value, or are constructed where that is NULL;
 * the rest is raw memory. */
void quern__storage_append_all(const quern__archetype *source, const quern__move_plan *plan,
                               const void *value);

/* Moves all rows of an archetype to those appended last to the plan's target. What is left behind is raw
 * memory until quern__storage_drop_rows. */
void quern__storage_move_all(quern__storage *storage, const quern__archetype *source,
                             const quern__move_plan *plan);

/* Takes all rows out of an archetype: raw memory whose entities are elsewhere by now. */
void quern__storage_drop_rows(quern__storage *storage, quern__archetype *archetype);

/* Destroys all values and entities of an archetype. */
void quern__storage_erase_all(quern__storage *storage, quern__archetype *archetype);

/* Destroys all values of a living entity and frees its row and slot. */
void quern__storage_erase(quern__storage *storage, quern_entity entity);

/* Keeps change versions of all archetypes, of now and later, that have the component, until as many calls
 * of quern__storage_unfilter. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_filter(quern__storage *storage, uint32_t component_index);
void quern__storage_unfilter(quern__storage *storage, uint32_t component_index);

/* Notes that the value of a component in a row was written. */
void quern__storage_note_write(const quern__archetype *archetype, uintptr_t location,
                               uint32_t component_index);

/* For builds with QUERN_CHECKS. A pointer to write values of the component was given out: it is good until
 * the structure changes. And: a call wrote values of the component, and keeps no pointer. */
static inline void quern__storage_note_lent(const quern__storage *storage, uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(&storage->components.list.items[component_index]->hands.lent_structure,
                          storage->structure_version + 1, memory_order_relaxed);
}

static inline void quern__storage_note_set(const quern__storage *storage, uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(&storage->components.list.items[component_index]->hands.written_look,
                          storage->look_count + 1, memory_order_relaxed);
}

/* Gives chunks without rows back, but for those that may stay. Returns QUERN_OK, so that it can be the last
 * thing that a call does. */
quern_result quern__storage_trim_rows(quern__storage *storage, quern__archetype *archetype);

/* Moves all values of one row of an archetype that is not plain to another row of it, raw memory. */
void quern__storage_relocate_hooked(const quern__archetype *archetype, quern__row target,
                                    quern__row source);

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
    if (component_index >= archetype->column_of_count) return NULL;
    quern__place place = archetype->places[component_index];
    return place.offset_bytes != 0 ? quern__place_value(place, location) : NULL;
}

/* ------------------------------------------------------------------------------------ single rows
 *
 * The hot half of moves and erasures, for archetypes and plans without hooks. What it calls, if anything,
 * it calls last: so the callers, into which it is inlined, save no registers. */

static inline void *quern__row_value(quern__place place, quern__row row)
{
    return row.chunk + place.offset_bytes + row.index * place.size_bytes;
}

static inline quern_entity *quern__row_handle(const quern__archetype *archetype, quern__row row)
{
    return (quern_entity *)(void *)(row.chunk + archetype->entities_offset_bytes) + row.index;
}

/* The last chunk of an archetype has no rows any more: it goes back, or stays for the next row. */
static inline quern_result quern__storage_drop_chunk(quern__storage *storage, quern__archetype *archetype)
{
    const uint32_t left = --archetype->chunk_count;
    const bool may_stay = archetype->held_count == left + 1 && (left > 0 || archetype->is_spare);
    return may_stay ? QUERN_OK : quern__storage_trim_rows(storage, archetype);
}

/* Closes the gap that a row of raw memory is, by moving the archetype's last row into it. is_plain is a
 * constant. Returns QUERN_OK, as all three do. */
static inline quern_result quern__storage_close_gap(quern__storage *storage, quern__archetype *archetype,
                                                    quern__row gap, bool is_plain)
{
    const quern__row last = quern__archetype_drop_last(archetype);
    if (last.index != gap.index || last.chunk != gap.chunk) {
        if (QUERN__UNLIKELY(archetype->versions.items != NULL))
            quern__versions_note_rows(&archetype->versions,
                                      ((const quern__chunk *)(const void *)gap.chunk)->index);
        const quern_entity moved = *quern__row_handle(archetype, last);
        *quern__row_handle(archetype, gap) = moved;
        quern__entities_record(&storage->entities, quern_entity_index(moved))->location =
            quern__row_location(gap);
        if (is_plain)
            quern__copy_run(archetype->relocation, gap, last);
        else
            quern__storage_relocate_hooked(archetype, gap, last);
    }
    return QUERN__UNLIKELY(last.index == 0) ? quern__storage_drop_chunk(storage, archetype) : QUERN_OK;
}

/* As quern__storage_move, from a source known already and with a plain plan. */
static inline quern_result quern__storage_move_plain(quern__storage *storage, quern__archetype *source,
                                                     quern_entity entity, quern__record *record,
                                                     const quern__move_plan *plan, quern__row to)
{
    const quern__row from = quern__row_of(record->location);
    record->location = quern__row_location(to);
    record->archetype_number = plan->target->number;
    storage->structure_version++;
    *quern__row_handle(plan->target, to) = entity;
    quern__copy_run(plan->carry, to, from);
    return quern__storage_close_gap(storage, source, from, true);
}

/* As quern__storage_erase, from a plain archetype known already, and when the entity's generation ends no
 * stretch. */
static inline quern_result quern__storage_erase_plain(quern__storage *storage, quern__archetype *archetype,
                                                      quern_entity entity, quern__record *record)
{
    const quern__row gap = quern__row_of(record->location);
    quern__entities_free(&storage->entities, quern_entity_index(entity), record);
    storage->structure_version++;
    return quern__storage_close_gap(storage, archetype, gap, true);
}

#endif
