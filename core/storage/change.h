/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CHANGE_H
#define QUERN_CORE_STORAGE_CHANGE_H

/* The one place where structure changes. Calls for one entity, calls for many, and the playback of commands
 * all change rows by the verbs below. Nothing else changes how many rows an archetype has, where records
 * say that entities are and which handles stand in chunks, nor moves values from row to row; the test
 * layering_check_changes sees to it.
 *
 * A run is some neighbouring rows of one chunk: the location of the first, and a count. A row of an
 * archetype is an entity's, or it is raw: counted as a row, but with no good handle, and raw memory for
 * values. The verbs:
 *
 *                          takes                                    leaves
 *   quern__rows_arrive     raw rows, and handles that were taken    rows of these new entities
 *   quern__rows_leave      rows of entities                         raw rows; slots are still to be freed
 *   quern__rows_move       rows, and raw rows of a plan's target    raw rows, and rows of the same entities
 *   quern__rows_written    rows in which values were written        the same
 *   quern__rows_enable     rows                                     the same, one component switched
 *
 *   quern__rows_append     room that was reserved                   raw rows, the last of the archetype
 *   quern__rows_relocate   rows, and raw rows of the archetype      raw rows, and rows of the same entities
 *   quern__rows_cut        raw rows, the last of the archetype      no rows
 *
 * The upper five are what happens to entities. The lower three keep house: entities do not notice. The
 * verbs for one row, quern__row_..., do all that belongs to a change: they append, free the slot, close the
 * gap.
 *
 * Failure. Before a change begins, all that may fail is done: archetypes and plans found, rows and slots
 * reserved, and room for what listeners keep of rows that leave. No verb fails. During a change raw rows
 * break the invariants of storage.h; when it is over there are none, and quern_world_validate holds.
 *
 * Values. Those that rows get by an arrival or a move are the caller's to write, and belong to it:
 * quern__rows_written tells only of those that replace what a move has carried. For a move of one call they
 * are written before, since the user may have them from a pointer into the storage, which is good until
 * something moves. For an arrival they are written after, since who fills them may want to see the handles.
 *
 * Threads. arrive, leave, move, written, enable and relocate touch the rows that they are given, the
 * records of the entities there, and the versions of their chunks; so several threads may call them at a
 * time, each for other rows, as long as no type of these rows has hooks. All else, and the verbs for one
 * row, belong to one thread that has the storage to itself. So a change that is shared out begins on one
 * thread, with append, and ends on one, with cut, quern__slots_free and quern__structure_changed.
 *
 * Listeners. Who has to hear of changes stands in one of the four quern__on_... functions, or in
 * quern__note_relocation: every path of a verb goes through its own exactly once per run. An archetype
 * where somebody listens is_watched; where nobody does, a look at that is all that a change costs. A
 * listener must not fail, must bear the threads above, and must not look at values that the caller may
 * still have to write. A location that it notes may be relocated before the change is over; a handle stays
 * good. Change versions listen to all but leave; those of single rows (core/storage/row_versions.h) follow
 * their rows. The end of a whole world is no change.
 *
 * Systems write values through their views, without a call: quern_view_write notes versions itself, and
 * whoever listens to written values has to look at versions there.
 *
 * Departures (core/storage/departures.h) listen to leave, move and relocate: what a ref has noted of a row
 * must not outlive it there. Planes (core/storage/planes.h) listen to the same: bits follow their rows.
 * Rooms above storage listen by a table of functions (core/storage/listener.h) to all but relocate: to leave and
 * move_out before bits change, to move_in afterwards. */

#include "core/storage/move_plan.h"

/* --------------------------------------------------------------------------------------- listeners */

/* Whether these are rows of one chunk of the archetype, entities' or raw. */
static inline bool quern__is_run(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    const quern__chunk *chunk = quern__chunk_of(first);
    return chunk->archetype == archetype && chunk->index < archetype->chunk_count && count > 0 &&
           quern__location_row(first) + count <= archetype->slots[chunk->index].row_count;
}

/* Rows leave this chunk of the archetype. */
static inline void quern__note_departure(const quern__archetype *archetype, uintptr_t location)
{
    if (QUERN__UNLIKELY(archetype->departures != NULL))
        quern__departures_note(archetype->departures, quern__chunk_number(quern__chunk_of(location)));
}

/* Rows move from one chunk of the archetype to another one, or within one. Somebody listens there. to: raw
 * rows. */
static inline void quern__note_relocation(const quern__archetype *archetype, uintptr_t to, uintptr_t from,
                                          uint32_t count)
{
    quern__versions_note_rows(&archetype->versions, quern__chunk_of(to)->index);
    if (archetype->row_versions != NULL)
        quern__row_versions_move(archetype->row_versions, to, archetype->row_versions, from, count,
                                 *archetype->versions.clock);
    quern__note_departure(archetype, from);
    if (archetype->planes != NULL)
        quern__planes_move_rows(archetype->planes, to, archetype->planes, from, count);
}

/* New entities are in these rows. Handles and records are good. */
static inline void quern__on_arrive(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    assert(quern__is_run(archetype, first, count));
    if (QUERN__LIKELY(!archetype->is_watched)) return;
    quern__versions_note_rows(&archetype->versions, quern__chunk_of(first)->index);
    if (archetype->row_versions != NULL)
        quern__row_versions_arrive(archetype->row_versions, first, count, *archetype->versions.clock);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->arrive(listener, first, count);
}

/* The entities in these rows are about to end. Values, handles and records are still good. */
static inline void quern__on_leave(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    assert(quern__is_run(archetype, first, count));
    if (QUERN__LIKELY(!archetype->is_watched)) return;
    quern__note_departure(archetype, first);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->leave(listener, first, count);
    if (archetype->planes != NULL) quern__planes_clear_rows(archetype->planes, first, count);
}

/* The entities in these rows of one archetype are about to move to those of the other. Values and handles
 * are still good in the source. */
static inline void quern__on_move(const quern__archetype *target, uintptr_t to,
                                  const quern__archetype *source, uintptr_t from, uint32_t count)
{
    assert(quern__is_run(source, from, count) && quern__is_run(target, to, count));
    if (QUERN__LIKELY(!source->is_watched && !target->is_watched)) return;
    quern__note_departure(source, from);
    quern__versions_note_rows(&target->versions, quern__chunk_of(to)->index);
    if (target->row_versions != NULL)
        quern__row_versions_move(target->row_versions, to, source->row_versions, from, count,
                                 *target->versions.clock);
    for (quern__row_listener *listener = source->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->move_out(listener, from, target, count);
    if (source->planes != NULL) quern__planes_move_rows(target->planes, to, source->planes, from, count);
    for (quern__row_listener *listener = target->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->move_in(listener, to, source, count);
}

/* Somebody may write the component of these rows, or has written, enabled or disabled it. Somebody listens
 * there. */
static inline void quern__note_component(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                                         uint32_t component_index)
{
    if (archetype->versions.items == NULL) return;
    const uint32_t index = quern__archetype_version_index(archetype, component_index);
    quern__versions_note(&archetype->versions, quern__chunk_of(first)->index, index);
    if (archetype->row_versions != NULL)
        quern__row_versions_note(archetype->row_versions, index, first, count, *archetype->versions.clock);
}

/* The component of the entities in these rows has values that somebody gave to it. source: where they were
 * before, the same archetype where they have not moved. */
static inline void quern__on_written(const quern__archetype *archetype, const quern__archetype *source,
                                     uintptr_t first, uint32_t count, uint32_t component_index)
{
    assert(quern__is_run(archetype, first, count));
    if (QUERN__LIKELY(!archetype->is_watched)) return;
    if (quern__archetype_column(archetype, component_index) >= QUERN__COLUMN_TAG) return;
    quern__note_component(archetype, first, count, component_index);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->written(listener, source, first, count, component_index);
}

/* Whether anybody listens to what is written in this archetype, for callers to whom it is work to say which
 * components. */
static inline bool quern__writes_are_heard(const quern__archetype *archetype)
{
    return QUERN__UNLIKELY(archetype->is_watched) &&
           (archetype->versions.items != NULL || archetype->first_listener != NULL);
}

/* ------------------------------------------------------------------------------- what may fail */

static inline quern_result quern__rows_reserve(quern__storage *storage, quern__archetype *archetype,
                                               uint32_t count)
{
    return quern__archetype_reserve(archetype, &storage->slabs, &storage->allocator, count);
}

/* Slots and rows for `count` new entities of an archetype; on failure nothing is held that was not
 * before, but for records that were absent. */
static inline quern_result quern__rows_reserve_new(quern__storage *storage, quern__archetype *archetype,
                                                   uint32_t count)
{
    quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    if (result != QUERN_OK) return result;
    result = quern__rows_reserve(storage, archetype, count);
    if (QUERN__UNLIKELY(result != QUERN_OK)) quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
}

/* A change begins to reserve for rows that leave: what changes before it reserved, and did not use, is free
 * again. */
static inline void quern__leaving_begin(quern__storage *storage)
{
    storage->change_number++;
}

/* quern__leaving_reserve for an archetype with listeners. */
quern_result quern__listeners_reserve(const quern__storage *storage, const quern__archetype *source,
                                      const quern__archetype *target, uint32_t count);

/* In the change that has begun, so many rows of the source may leave it for the target (NULL: they end).
 * What a change reserves adds up. Errors: OUT_OF_MEMORY; room that was made is kept for later changes. */
static inline quern_result quern__leaving_reserve(const quern__storage *storage,
                                                  const quern__archetype *source,
                                                  const quern__archetype *target, uint32_t count)
{
    if (QUERN__LIKELY(source->first_listener == NULL)) return QUERN_OK;
    return quern__listeners_reserve(storage, source, target, count);
}

/* A whole change of one row. Not needed where the source is_quick. */
static inline quern_result quern__row_leaving_reserve(quern__storage *storage,
                                                      const quern__archetype *source,
                                                      const quern__archetype *target)
{
    quern__leaving_begin(storage);
    return quern__leaving_reserve(storage, source, target, 1);
}

/* Takes back all that was reserved for an archetype, by a change that will not be made after all. */
void quern__rows_unreserve(quern__storage *storage, quern__archetype *archetype);

/* -------------------------------------------------------------------------- runs: the four verbs */

/* handles: `count` of quern__slots_take. */
void quern__rows_arrive(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                        const quern_entity *handles, uint32_t count);

/* Handles that rows get in turns: the i-th row of a turn gets the picks[i]-th of its handles. */
typedef struct quern__turns {
    const quern_entity *handles; /* of the first row's turn; those of the next one come a stride later */
    uint32_t stride;
    const uint32_t *picks; /* `width` of them */
    uint32_t width;
    uint32_t phase; /* which row of its turn the first one is */
} quern__turns;

/* quern__rows_arrive, with handles in turns. */
void quern__rows_arrive_in_turns(const quern__storage *storage, const quern__archetype *archetype,
                                 uintptr_t first, const quern__turns *turns, uint32_t count);

/* The same for one turn: the i-th row gets the picks[i]-th of the handles. */
static inline void quern__rows_arrive_picked(const quern__storage *storage,
                                             const quern__archetype *archetype, uintptr_t first,
                                             const quern_entity *handles, const uint32_t *picks,
                                             uint32_t count)
{
    quern_entity *target =
        quern__archetype_entities(archetype, quern__chunk_of(first)) + quern__location_row(first);
    const uint32_t number = archetype->number;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = handles[picks[i]];
        quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
        target[i] = entity;
        record->location = first + i;
        record->archetype_number = number;
    }
    quern__on_arrive(archetype, first, count);
}

/* The same for rows that are no neighbours: the i-th entity comes to the i-th of these places. */
void quern__rows_arrive_apart(const quern__storage *storage, const quern__archetype *archetype,
                              const uintptr_t *places, const quern_entity *handles, uint32_t count);

/* Takes the handles too, from slots that were reserved; afterwards they stand in the chunk. Belongs to one
 * thread. */
void quern__rows_arrive_new(quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                            uint32_t count);

/* Destroys the values. The handles stay where they are until something else comes there. */
void quern__rows_leave(const quern__archetype *archetype, uintptr_t first, uint32_t count);

/* The same for rows in their order, some of them neighbours, of an archetype whose values need not be
 * destroyed. */
void quern__rows_leave_apart(const quern__archetype *archetype, const uintptr_t *rows, uint32_t count);

/* Carries over what both archetypes have, and destroys what the target lacks. */
void quern__rows_move(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                      uintptr_t from, uint32_t count);

static inline void quern__rows_written(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                                       uint32_t component_index)
{
    quern__on_written(archetype, archetype, first, count, component_index);
}

/* The same after a move from the source, for a value that replaced one that was carried. */
static inline void quern__rows_written_from(const quern__archetype *archetype,
                                            const quern__archetype *source, uintptr_t first, uint32_t count,
                                            uint32_t component_index)
{
    quern__on_written(archetype, source, first, count, component_index);
}

/* A pointer to write the component's value in this row was given out. Whether it is used nobody hears; so
 * change versions note it, and reactions do not. */
static inline void quern__row_lent(const quern__archetype *archetype, uintptr_t location,
                                   uint32_t component_index)
{
    if (QUERN__LIKELY(!archetype->is_watched)) return;
    quern__note_component(archetype, location, 1, component_index);
}

/* plane: of the component, which the archetype has. */
void quern__rows_enable(const quern__archetype *archetype, uintptr_t first, uint32_t count, uint32_t plane,
                        bool enabled);

/* One of the two parts of quern__row_enable: the bit, which stands in these words of its plane. Returns 1,
 * or 0 where it was so. */
static inline uint64_t quern__row_put_bit(uint64_t *words, uint32_t row, bool disables)
{
    return quern__plane_put_row(words, row, disables);
}

/* The other part. */
static inline void quern__row_was_enabled(const quern__archetype *archetype, uintptr_t location,
                                          uint32_t component_index)
{
    quern__note_component(archetype, location, 1, component_index);
}

/* quern__rows_enable for one row, for who has all rows of the chunk to itself. */
static inline void quern__row_enable(const quern__archetype *archetype, uintptr_t location, uint32_t plane,
                                     bool enabled)
{
    quern__plane_put(archetype->planes, plane, location, !enabled);
    quern__row_was_enabled(archetype, location, archetype->planes->list[plane].id);
}

/* ------------------------------------------------------------------------------ runs: keeping house */

/* Appends raw rows in one chunk: at least 1, at most `wanted`, all of them reserved. Returns the first. */
uintptr_t quern__rows_append(quern__storage *storage, quern__archetype *archetype, uint32_t wanted,
                             uint32_t *out_count);

/* The same for rows of which all fit the last chunk. */
static inline bool quern__rows_fit_chunk(const quern__archetype *archetype, uint32_t count)
{
    return (uint64_t)archetype->last_slot->row_count + count <= archetype->row_capacity;
}

static inline uintptr_t quern__rows_append_fitting(quern__storage *storage, quern__archetype *archetype,
                                                   uint32_t count)
{
    quern__chunk_slot *slot = archetype->last_slot;
    assert(archetype->reserved_count >= count && quern__rows_fit_chunk(archetype, count));
    const uint32_t row = slot->row_count;
    slot->row_count += count;
    archetype->reserved_count -= count;
    storage->structure_version++;
    return quern__location_make(slot->chunk, row);
}

/* Appends so many, in as many chunks as it takes. */
void quern__rows_append_many(quern__storage *storage, quern__archetype *archetype, uint32_t count);

void quern__rows_relocate(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                          uintptr_t from, uint32_t count);

/* Raw rows, or rows of other entities that are gone, become those of entities whose slots are alive and
 * point nowhere that counts: what a history puts back. Refs into the chunk are good no longer, and nobody
 * else is told. */
void quern__rows_put_back(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                          const quern_entity *handles, uint32_t count);

/* Takes the last rows out, and gives back chunks that are not needed and what was reserved and not used. */
void quern__rows_cut(quern__storage *storage, quern__archetype *archetype, uint32_t count);

/* Slots for new entities, out of those reserved. */
void quern__slots_take(quern__storage *storage, uint32_t count, quern_entity *out_handles);

/* All slots, of a world that has none: see quern__entities_restore. The handles of those that are neither
 * free nor retired are then as if they had been taken. */
void quern__slots_restore(quern__storage *storage, const uint32_t *highs, uint32_t slot_count,
                          const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count);

/* Frees the slots of entities that have left, in this order: the last one is taken first. */
void quern__slots_free(quern__storage *storage, const uint32_t *indices, uint32_t count);

/* Locations and lists of chunks that were noted before are good no longer. Every verb that belongs to one
 * thread does this by itself; a change that was shared out among threads ends with it. */
static inline void quern__structure_changed(quern__storage *storage)
{
    storage->structure_version++;
}

/* ------------------------------------------------------------------------------ whole archetypes */

/* Appends raw rows to the plan's target for all rows of its source; they are reserved. What the plan adds
 * becomes copies of value, or is constructed where that is NULL. */
void quern__rows_append_all(quern__storage *storage, const quern__move_plan *plan, const void *value);

/* Moves all rows of the plan's source to those that were appended to its target last. What they leave is to
 * be cut. */
void quern__rows_move_all(quern__storage *storage, const quern__move_plan *plan);

/* Takes out all rows of an archetype, which are raw. */
void quern__rows_cut_all(quern__storage *storage, quern__archetype *archetype);

/* All entities of an archetype leave: slots are freed, rows cut. */
void quern__rows_leave_all(quern__storage *storage, quern__archetype *archetype);

/* --------------------------------------------------------------------------------------- one row */

/* The entity, whose slot was just taken, arrives in a reserved row. Returns its location. */
uintptr_t quern__row_arrive_as(quern__storage *storage, quern__archetype *archetype, quern_entity entity);

/* A new entity arrives in a reserved row of the archetype; its values are still to be written. */
static inline quern_entity quern__row_arrive(quern__storage *storage, quern__archetype *archetype,
                                             uintptr_t *out_location)
{
    const quern_entity entity = quern__entities_take(&storage->entities);
    *out_location = quern__row_arrive_as(storage, archetype, entity);
    return entity;
}

/* A living entity leaves. */
void quern__row_leave(quern__storage *storage, quern_entity entity);

/* An entity moves to `to`, a raw row just appended to the plan's target, with its new values. */
void quern__row_move(quern__storage *storage, quern_entity entity, quern__record *record,
                     const quern__move_plan *plan, uintptr_t to);

/* The hot half, for archetypes and plans without hooks. What it calls, if anything, it calls last: so the
 * callers, into which it is inlined, save no registers. Where somebody listens, all is done by one such
 * call. */

static inline void *quern__row_value(quern__place place, quern__row row)
{
    return row.chunk + place.offset_bytes + row.index * place.size_bytes;
}

static inline quern_entity *quern__row_handle(const quern__archetype *archetype, quern__row row)
{
    return (quern_entity *)(void *)(row.chunk + archetype->entities_offset_bytes) + row.index;
}

/* Appends a raw row that was not reserved. False when that needs another chunk than those held. */
static inline bool quern__row_append(quern__archetype *archetype, quern__row *out_row)
{
    quern__chunk_slot *slot = archetype->last_slot;
    if (slot->row_count >= archetype->row_capacity) {
        if (archetype->chunk_count == archetype->held_count) return false;
        archetype->chunk_count++;
        archetype->last_slot = ++slot;
        slot->row_count = 0;
    }
    *out_row = (quern__row){(char *)slot->chunk, slot->row_count++};
    return true;
}

/* The entity, whose slot was just taken, stands in a raw row from now on. */
static inline void quern__row_place(quern__storage *storage, const quern__archetype *archetype,
                                    quern_entity entity, quern__row row)
{
    *quern__row_handle(archetype, row) = entity;
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
    record->location = quern__row_location(row);
    record->archetype_number = archetype->number;
    storage->structure_version++;
}

/* A new entity, for which there is a slot, arrives in a raw row of an archetype where nobody listens; its
 * values are still to be written. */
static inline quern_entity quern__row_arrive_new(quern__storage *storage, const quern__archetype *archetype,
                                                 quern__row row)
{
    assert(!archetype->is_watched && quern__is_run(archetype, quern__row_location(row), 1));
    const quern_entity entity = quern__entities_take(&storage->entities);
    quern__row_place(storage, archetype, entity, row);
    return entity;
}

/* Gives chunks without rows back, but for those that may stay. Returns QUERN_OK, so that it can be the last
 * thing that a call does. */
quern_result quern__rows_trim(quern__storage *storage, quern__archetype *archetype);

/* The last chunk of an archetype has no rows any more: it goes back, or stays for the next row. */
static inline quern_result quern__rows_drop_chunk(quern__storage *storage, quern__archetype *archetype)
{
    const uint32_t left = --archetype->chunk_count;
    archetype->last_slot--;
    const bool may_stay = archetype->held_count == left + 1 && (left > 0 || archetype->is_spare);
    return may_stay ? QUERN_OK : quern__rows_trim(storage, archetype);
}

/* All values of one row of an archetype with hooks to another row, which is raw. */
void quern__row_relocate_hooked(const quern__archetype *archetype, quern__row target, quern__row source);

/* The entity of a row stands in a raw one of the same archetype from now on. */
static inline void quern__row_rehouse(quern__storage *storage, const quern__archetype *archetype,
                                      quern__row to, quern__row from)
{
    const quern_entity moved = *quern__row_handle(archetype, from);
    *quern__row_handle(archetype, to) = moved;
    quern__entities_record(&storage->entities, quern_entity_index(moved))->location =
        quern__row_location(to);
}

/* Closes the gap that a raw row is, by relocating the archetype's last row. is_plain and hears are
 * constants: whether it is, and whether somebody may listen. Returns QUERN_OK, as all of them do. */
QUERN__ALWAYS_INLINE quern_result quern__row_close_gap(quern__storage *storage, quern__archetype *archetype,
                                                       quern__row gap, bool is_plain, bool hears)
{
    quern__chunk_slot *slot = archetype->last_slot;
    const quern__row last = {(char *)slot->chunk, --slot->row_count};
    if (last.index != gap.index || last.chunk != gap.chunk) {
        if (hears && archetype->is_watched)
            quern__note_relocation(archetype, quern__row_location(gap), quern__row_location(last), 1);
        quern__row_rehouse(storage, archetype, gap, last);
        if (is_plain)
            quern__copy_row(archetype->relocation, gap, last);
        else
            quern__row_relocate_hooked(archetype, gap, last);
    }
    return QUERN__UNLIKELY(last.index == 0) ? quern__rows_drop_chunk(storage, archetype) : QUERN_OK;
}

/* hears is a constant. */
QUERN__ALWAYS_INLINE quern_result quern__row_move_along(quern__storage *storage, quern__archetype *source,
                                                        quern_entity entity, quern__record *record,
                                                        const quern__edge *edge, quern__row to, bool hears)
{
    const quern__archetype *target = edge->target;
    const quern__row from = quern__row_of(record->location);
    if (hears) quern__on_move(target, quern__row_location(to), source, record->location, 1);
    record->location = quern__row_location(to);
    record->archetype_number = edge->target_number;
    storage->structure_version++;
    *quern__row_handle(target, to) = entity;
    quern__copy_row(edge->carry, to, from);
    return quern__row_close_gap(storage, source, from, true, hears);
}

/* hears is a constant. */
QUERN__ALWAYS_INLINE quern_result quern__row_leave_gap(quern__storage *storage, quern__archetype *archetype,
                                                       quern_entity entity, quern__record *record,
                                                       bool hears)
{
    const quern__row gap = quern__row_of(record->location);
    if (hears) quern__on_leave(archetype, record->location, 1);
    quern__entities_free(&storage->entities, quern_entity_index(entity), record);
    storage->structure_version++;
    return quern__row_close_gap(storage, archetype, gap, true, hears);
}

/* The two below, where somebody listens. */
quern_result quern__row_move_heard(quern__storage *storage, quern__archetype *source, quern_entity entity,
                                   quern__record *record, const quern__edge *edge, quern__row to);
quern_result quern__row_leave_heard(quern__storage *storage, quern__archetype *archetype,
                                    quern_entity entity, quern__record *record);

/* As quern__row_move, from a source known already and along an edge. */
QUERN__ALWAYS_INLINE quern_result quern__row_move_plain(quern__storage *storage, quern__archetype *source,
                                                        quern_entity entity, quern__record *record,
                                                        const quern__edge *edge, quern__row to)
{
    if (QUERN__UNLIKELY(source->is_watched || edge->target->is_watched))
        return quern__row_move_heard(storage, source, entity, record, edge, to);
    return quern__row_move_along(storage, source, entity, record, edge, to, false);
}

/* As quern__row_move, to a row that was reserved. Such moves come many at a time, and rows and gaps lie
 * anywhere: so what fills the gap is moved with the row. */
static inline void quern__row_move_reserved(quern__storage *storage, quern_entity entity,
                                            quern__record *record, const quern__move_plan *plan)
{
    quern__archetype *source = plan->source;
    assert(plan->target->reserved_count > 0 && quern__storage_archetype_of(storage, record) == source);
    plan->target->reserved_count--;
    quern__row to = {0};
    quern__row_append(plan->target, &to);
    if (QUERN__UNLIKELY(!plan->is_plain || source->is_watched || plan->target->is_watched)) {
        quern__row_move(storage, entity, record, plan, quern__row_location(to));
        return;
    }
    quern__chunk_slot *slot = source->last_slot;
    const quern__row gap = quern__row_of(record->location), last = {(char *)slot->chunk, --slot->row_count};
    if (last.index != gap.index || last.chunk != gap.chunk) {
        quern__move_row(plan->carry, to, gap, last);
        quern__row_rehouse(storage, source, gap, last);
    } else {
        quern__copy_row(plan->carry, to, gap);
    }
    quern__row_place(storage, plan->target, entity, to);
    if (QUERN__UNLIKELY(last.index == 0)) quern__rows_drop_chunk(storage, source);
}

/* As quern__row_leave, from a plain archetype known already, and when the entity's generation ends no
 * stretch. */
static inline quern_result quern__row_leave_plain(quern__storage *storage, quern__archetype *archetype,
                                                  quern_entity entity, quern__record *record)
{
    if (QUERN__UNLIKELY(archetype->is_watched))
        return quern__row_leave_heard(storage, archetype, entity, record);
    return quern__row_leave_gap(storage, archetype, entity, record, false);
}

#endif
