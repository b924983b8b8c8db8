/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CHANGE_H
#define QUERN_CORE_STORAGE_CHANGE_H

/* The only code that changes structure. Calls for one entity, calls for many entities and the playback of commands
 * all change rows by the verbs below. No other code changes the row count of an archetype, the locations in the
 * entity records or the handles in chunks, and no other code moves values between rows;
 * tests/layering/check_changes.sh enforces this.
 *
 * A row range is a number of consecutive rows of one chunk: the location of the first row, and a count. A row of
 * an archetype either belongs to an entity or is raw. A raw row is included in the row count, but its handle is
 * invalid and the memory of its values is uninitialised. The verbs:
 *
 *                          input                                    result
 *   quern__rows_arrive     raw rows, and handles of new slots       rows of these new entities
 *   quern__rows_leave      rows of entities                         raw rows; the caller must still free the slots
 *   quern__rows_move       rows, and raw rows of a plan's target    raw rows, and rows of the same entities
 *   quern__rows_before_write  rows in which values will be written  unchanged rows
 *   quern__rows_written    rows in which values were written        unchanged rows
 *   quern__rows_enable     rows                                     unchanged rows, one component switched
 *
 *   quern__rows_append     reserved room                            raw rows, the last of the archetype
 *   quern__rows_relocate   rows, and raw rows of the archetype      raw rows, and rows of the same entities
 *   quern__rows_cut        raw rows, the last of the archetype      no rows
 *
 * The upper six verbs change entities. The lower three only rearrange rows; entities do not notice them. The
 * verbs for one row, quern__row_..., perform a complete change: they append the row, free the slot and close the
 * gap.
 *
 * Failure. Every step that may fail precedes the change: finding archetypes and plans, reserving rows and slots,
 * and reserving the listeners' room for rows that leave. No verb fails. During a change, raw rows break the
 * invariants of storage.h. After the change there are no raw rows, and quern_world_validate succeeds.
 *
 * Values. The caller writes the values that rows receive by an arrival or a move; these writes are part of that
 * change. After a move, quern__rows_written therefore reports only values that replaced carried ones. For a
 * move by a single call, the caller writes the values before the move: the user may have passed a pointer
 * into the storage, which is valid only until something moves. For an arrival, the caller writes the values
 * afterwards, because the code that fills them may need the handles.
 *
 * Threads. arrive, leave, move, written, enable and relocate access only the given rows, the records of the
 * entities in them, and the versions and row bits of their chunks. Several threads may call these verbs
 * concurrently for different rows, as long as no type of these rows has hooks. All other functions, and the
 * verbs for one row, require exclusive access to the storage by one thread. A change that is distributed over
 * threads therefore begins on one thread, with append, and ends on one thread, with cut, quern__slots_free
 * and quern__structure_changed.
 *
 * Listeners. All notifications pass through the five quern__on_... functions, quern__note_relocation and
 * quern__note_component. Every path of a verb calls its function exactly once per row range. An archetype
 * with a listener has tracks_changes set; without one, a change costs only the test of that flag. A listener
 * must not fail, must obey the thread rules above, and must not read values that the caller may still have to
 * write. A location recorded by a listener may be relocated before the change ends; a handle stays valid.
 * Change versions listen to arrive, move, written, enable and relocate. The versions of single rows
 * (core/storage/chunk.h) move with their rows. Releasing a whole world is not a change.
 *
 * Systems write values through their views, without calling a verb. quern_view_write notes the versions itself, and
 * a listener to written values has to check the versions for such writes.
 *
 * Move counts (core/storage/chunk.h) listen to leave, move and relocate: a ref's cached row location must not
 * stay valid after its row has left. Row bits (core/storage/row_bits.h) listen to the same verbs, because bits move
 * with their rows. Rooms above storage listen to arrive, leave, move and written, through a table of
 * functions (core/storage/archetype.h): leave and move_out are called before row bits change, move_in
 * afterwards. A listener with data of each row also listens to before_write and relocate. */

#include "core/base/base_internal.h"
#include "core/storage/conversion.h"
#include "core/storage/storage.h"

/* --------------------------------------------------------------------------------------- listeners */

/* Returns whether the range is within one chunk of the archetype and within its row count. The rows may be raw. */
static inline bool quern__is_row_range(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    const uint32_t slot = quern__chunk_index_at(&archetype->shape, first);
    return quern__archetype_at(first) == archetype && slot < archetype->chunk_count && count > 0 &&
           quern__location_row(&archetype->shape, first) + count <= archetype->slots[slot].row_count;
}

/* Counts a move for the chunk of the archetype that rows are leaving. */
static inline void quern__count_move(const quern__archetype *archetype, uintptr_t location)
{
    if (QUERN__UNLIKELY(archetype->move_counts != NULL))
        quern__move_counts_increment(archetype->move_counts,
                                     quern__chunk_number(&archetype->shape, location));
}

/* Notes that rows move between two chunks of the archetype or within one. Precondition: the archetype tracks changes,
 * and the rows at `to` are raw. */
static inline void quern__note_relocation(const quern__archetype *archetype, uintptr_t to, uintptr_t from,
                                          uint32_t count)
{
    quern__versions_note_rows(&archetype->versions, quern__chunk_index_at(&archetype->shape, to));
    if (archetype->row_versions != NULL)
        quern__row_versions_move(archetype->row_versions, to, archetype->row_versions, from, count,
                                 *archetype->versions.clock);
    quern__count_move(archetype, from);
    if (archetype->row_bits != NULL)
        quern__row_bits_move(archetype->row_bits, to, archetype->row_bits, from, count);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (QUERN__UNLIKELY(listener->keeps_row_data))
            listener->events->relocate(listener, to, from, count);
}

/* Reports that the rows hold new entities. Their handles and records are already valid. */
static inline void quern__on_arrive(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    assert(quern__is_row_range(archetype, first, count));
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    quern__versions_note_rows(&archetype->versions, quern__chunk_index_at(&archetype->shape, first));
    if (archetype->row_versions != NULL)
        quern__row_versions_arrive(archetype->row_versions, first, count, *archetype->versions.clock);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->arrive(listener, first, count);
}

/* Reports that the entities in these rows are about to be destroyed. Values, handles and records are still valid. */
static inline void quern__on_leave(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    assert(quern__is_row_range(archetype, first, count));
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    quern__count_move(archetype, first);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->leave(listener, first, count);
    if (archetype->row_bits != NULL) quern__row_bits_clear(archetype->row_bits, first, count);
}

/* Reports that the entities in these rows of `source` are about to move to the rows at `to` in `target`. Values and
 * handles are still valid in the source. */
static inline void quern__on_move(const quern__archetype *target, uintptr_t to,
                                  const quern__archetype *source, uintptr_t from, uint32_t count)
{
    assert(quern__is_row_range(source, from, count) && quern__is_row_range(target, to, count));
    if (QUERN__LIKELY(!source->tracks_changes && !target->tracks_changes)) return;
    quern__count_move(source, from);
    quern__versions_note_rows(&target->versions, quern__chunk_index_at(&target->shape, to));
    if (target->row_versions != NULL)
        quern__row_versions_move(target->row_versions, to, source->row_versions, from, count,
                                 *target->versions.clock);
    for (quern__row_listener *listener = source->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->move_out(listener, from, target, count);
    if (source->row_bits != NULL) quern__row_bits_move(target->row_bits, to, source->row_bits, from, count);
    for (quern__row_listener *listener = target->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->move_in(listener, to, source, from, count);
}

/* Performs quern__on_move for entities that are new in this change: listeners learn of them in the target only, and
 * nothing left the source. */
static inline void quern__on_move_new(const quern__archetype *target, uintptr_t to,
                                      const quern__archetype *source, uintptr_t from, uint32_t count)
{
    assert(quern__is_row_range(source, from, count) && quern__is_row_range(target, to, count));
    if (QUERN__LIKELY(!source->tracks_changes && !target->tracks_changes)) return;
    quern__count_move(source, from);
    if (source->row_bits != NULL) quern__row_bits_move(target->row_bits, to, source->row_bits, from, count);
    quern__on_arrive(target, to, count);
}

/* Notes that the component of these rows may be written, or was written, enabled or disabled. Precondition: the
 * archetype tracks changes. */
static inline void quern__note_component(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                                         uint32_t component_index)
{
    if (archetype->versions.items == NULL) return;
    const uint32_t index = quern__archetype_version_index(archetype, component_index);
    quern__versions_note(&archetype->versions, quern__chunk_index_at(&archetype->shape, first), index);
    if (archetype->row_versions != NULL)
        quern__row_versions_note(archetype->row_versions, index, first, count, *archetype->versions.clock);
}

/* Reports that values of the component are about to be overwritten in these rows. Every call of quern__on_written
 * must follow such a call with the same arguments. */
static inline void quern__on_before_write(const quern__archetype *archetype, const quern__archetype *source,
                                          uintptr_t first, uint32_t count, uint32_t component_index)
{
    assert(quern__is_row_range(archetype, first, count));
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (QUERN__UNLIKELY(listener->keeps_row_data))
            listener->events->before_write(listener, source, first, count, component_index);
}

/* Reports that the component of the entities in these rows has explicitly written values. `source`: the archetype
 * of the entities before the change; equal to `archetype` if they did not move, NULL if they are new. */
static inline void quern__on_written(const quern__archetype *archetype, const quern__archetype *source,
                                     uintptr_t first, uint32_t count, uint32_t component_index)
{
    assert(quern__is_row_range(archetype, first, count));
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    if (quern__archetype_column(archetype, component_index) >= QUERN__COLUMN_TAG) return;
    quern__note_component(archetype, first, count, component_index);
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        listener->events->written(listener, source, first, count, component_index);
}

/* Returns whether writes in this archetype are noted or have a listener. Callers use it to avoid determining which
 * components were written. */
static inline bool quern__writes_are_tracked(const quern__archetype *archetype)
{
    return QUERN__UNLIKELY(archetype->tracks_changes) &&
           (archetype->versions.items != NULL || archetype->first_listener != NULL);
}

/* ------------------------------------------------------------------------------- what may fail */

/* Implements the case of quern__rows_reserve that needs more chunks. */
quern_result quern__rows_reserve_chunks(quern__storage *storage, quern__archetype *archetype,
                                        uint32_t count);

/* Reserves room for `count` more appends. On failure nothing is reserved. */
static inline quern_result quern__rows_reserve(quern__storage *storage, quern__archetype *archetype,
                                               uint32_t count)
{
    if (QUERN__UNLIKELY(quern__archetype_available_count(archetype) < count))
        return quern__rows_reserve_chunks(storage, archetype, count);
    archetype->reserved_count += count;
    return QUERN_OK;
}

/* Moves the rows of archetypes that hold many chunks into runs of many. Precondition: no location is in use, and
 * no thread reads rows. Rows keep their chunks and their order. An archetype stays as it is if there is no memory. */
void quern__rows_gather(quern__storage *storage);

/* Moves the rows of an archetype into runs of fewer chunks if it has less than half of the chunks for which it got them.
 * Preconditions and effects are those of quern__rows_gather. */
void quern__rows_scatter(quern__storage *storage, quern__archetype *archetype);

static inline void quern__rows_gather_if_large(quern__storage *storage)
{
    if (QUERN__UNLIKELY(storage->may_gather)) quern__rows_gather(storage);
}

/* Reserves slots and rows for `count` new entities of an archetype. On failure nothing is reserved, but pages of
 * records that were absent may exist again. */
static inline quern_result quern__rows_reserve_new(quern__storage *storage, quern__archetype *archetype,
                                                   uint32_t count)
{
    quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    if (result != QUERN_OK) return result;
    result = quern__rows_reserve(storage, archetype, count);
    if (QUERN__UNLIKELY(result != QUERN_OK)) quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
}

/* Moves all rows of the source to the target: an archetype with the same components, of which one has another layout by
 * now. Its values are converted. Rows keep their order; versions of rows and chunks, and row bits, stay with them.
 * Nothing is reported to listeners. Preconditions: the target has no rows and room for these, and is registered. Cannot
 * fail. */
void quern__rows_convert(quern__storage *storage, quern__archetype *source, quern__archetype *target,
                         const quern__type_change *change);

/* Begins the reservations of a change for rows that leave. Room that earlier changes reserved and did not use
 * becomes available again. */
static inline void quern__leaving_begin(quern__storage *storage)
{
    storage->change_number++;
}

/* Implements quern__leaving_reserve for an archetype with listeners. */
quern_result quern__listeners_reserve(const quern__storage *storage, const quern__archetype *source,
                                      const quern__archetype *target, uint32_t count);

/* Reserves the listeners' room for `count` rows of the source to leave for the target (NULL: the entities are
 * destroyed). Reservations within one change, begun by quern__leaving_begin, add up. Errors: OUT_OF_MEMORY; room
 * that was already allocated is retained for later changes. */
static inline quern_result quern__leaving_reserve(const quern__storage *storage,
                                                  const quern__archetype *source,
                                                  const quern__archetype *target, uint32_t count)
{
    if (QUERN__LIKELY(source->first_listener == NULL)) return QUERN_OK;
    return quern__listeners_reserve(storage, source, target, count);
}

/* Begins a change of one row and makes its reservation for leaving. Not needed if the source has_fast_leave. */
static inline quern_result quern__row_leaving_reserve(quern__storage *storage,
                                                      const quern__archetype *source,
                                                      const quern__archetype *target)
{
    quern__leaving_begin(storage);
    return quern__leaving_reserve(storage, source, target, 1);
}

/* Cancels the reservations of an archetype that no append has used, and releases unneeded chunks. */
void quern__rows_unreserve(quern__storage *storage, quern__archetype *archetype);

/* ------------------------------------------------------------- row ranges: verbs that change entities */

/* Places new entities in raw rows. `handles`: `count` handles from quern__slots_allocate. */
void quern__rows_arrive(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                        const quern_entity *handles, uint32_t count);

/* A repeating assignment of handles to consecutive rows. One repetition covers `width` rows and `stride` handles: its
 * i-th row receives its picks[i]-th handle. */
typedef struct quern__handle_pattern {
    const quern_entity *handles; /* handles of the repetition that contains the first row */
    uint32_t stride;             /* handles per repetition */
    const uint32_t *picks;       /* `width` indices into the handles of a repetition */
    uint32_t width;              /* rows per repetition */
    uint32_t phase;              /* index of the first row within its repetition */
} quern__handle_pattern;

/* Performs quern__rows_arrive with handles assigned by a pattern. */
void quern__rows_arrive_by_pattern(const quern__storage *storage, const quern__archetype *archetype,
                                   uintptr_t first, const quern__handle_pattern *pattern, uint32_t count);

/* Performs quern__rows_arrive for a single repetition: the i-th row receives handles[picks[i]]. */
static inline void quern__rows_arrive_picked(const quern__storage *storage,
                                             const quern__archetype *archetype, uintptr_t first,
                                             const quern_entity *handles, const uint32_t *picks,
                                             uint32_t count)
{
    quern_entity *target = quern__row_handle(archetype, quern__archetype_row(archetype, first));
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

/* Performs quern__rows_arrive for rows that need not be consecutive: the i-th entity is placed at the i-th
 * location. */
void quern__rows_arrive_scattered(const quern__storage *storage, const quern__archetype *archetype,
                                  const uintptr_t *rows, const quern_entity *handles, uint32_t count);

/* Allocates `count` reserved slots and performs quern__rows_arrive with their handles. Requires exclusive access to
 * the storage by one thread. */
void quern__rows_arrive_new(quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                            uint32_t count);

/* Removes the entities from the rows and destroys their values. The handles remain in memory until the rows are
 * overwritten. */
void quern__rows_leave(const quern__archetype *archetype, uintptr_t first, uint32_t count);

/* Performs quern__rows_leave for entities that are new in this change: listeners do not learn of them. */
void quern__rows_leave_new(const quern__archetype *archetype, uintptr_t first, uint32_t count);

/* Performs quern__rows_leave for rows that need not be consecutive, in any order. Listeners are notified once for
 * each sequence of rows in the list that are consecutive in memory. Precondition: the values of the archetype need no
 * destruction. */
void quern__rows_leave_scattered(const quern__archetype *archetype, const uintptr_t *rows, uint32_t count);

/* Moves entities to the raw rows at `to`: carries over the components of both archetypes and destroys the values of
 * components that the target lacks. */
void quern__rows_move(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                      uintptr_t from, uint32_t count);

/* Performs quern__rows_move for entities that are new in this change: listeners learn of them as if they had arrived in
 * the target at first. */
void quern__rows_move_new(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                          uintptr_t from, uint32_t count);

/* Must precede the overwriting of the component's values in these rows, which quern__rows_written reports. */
static inline void quern__rows_before_write(const quern__archetype *archetype, uintptr_t first,
                                            uint32_t count, uint32_t component_index)
{
    quern__on_before_write(archetype, archetype, first, count, component_index);
}

/* Performs quern__rows_move for rows of one chunk that need not be consecutive: the listed rows, ascending, move to
 * consecutive raw rows. Listeners are notified once for each sequence of consecutive rows in the list. Precondition:
 * the plan is plain. */
void quern__rows_move_picked(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                             quern__chunk *chunk, const uint16_t *rows, uint32_t count);

/* Reports that the component's values in these rows were written. */
static inline void quern__rows_written(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                                       uint32_t component_index)
{
    quern__on_written(archetype, archetype, first, count, component_index);
}

/* Performs quern__rows_before_write after a move from `source`, for a carried value that is about to be replaced. */
static inline void quern__rows_before_write_from(const quern__archetype *archetype,
                                                 const quern__archetype *source, uintptr_t first,
                                                 uint32_t count, uint32_t component_index)
{
    quern__on_before_write(archetype, source, first, count, component_index);
}

/* Performs quern__rows_written after a move from `source`, for a value that replaced a carried value. */
static inline void quern__rows_written_from(const quern__archetype *archetype,
                                            const quern__archetype *source, uintptr_t first, uint32_t count,
                                            uint32_t component_index)
{
    quern__on_written(archetype, source, first, count, component_index);
}

/* Notes that a pointer for writing the component's value in this row was given out. Whether the caller writes
 * through it is unknown, so change versions note it and reactions do not. */
static inline void quern__row_note_pointer_given(const quern__archetype *archetype, uintptr_t location,
                                                 uint32_t component_index)
{
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    quern__note_component(archetype, location, 1, component_index);
}

/* Enables or disables one component in the rows. `bit_column`: the bits of that component, which the archetype has. */
void quern__rows_enable(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                        uint32_t bit_column, bool enabled);

/* Performs the first half of quern__row_enable: sets the row's bit in `words`, the words of its bit column. Returns 1
 * if the bit changed, else 0. */
static inline uint64_t quern__row_set_disabled_bit(uint64_t *words, uint32_t row, bool disables)
{
    return quern__bit_column_put_row(words, row, disables);
}

/* Performs the second half of quern__row_enable: notes the change of the component. */
static inline void quern__row_note_enabled(const quern__archetype *archetype, uintptr_t location,
                                           uint32_t component_index)
{
    quern__note_component(archetype, location, 1, component_index);
}

/* Performs quern__rows_enable for one row. Precondition: the caller has exclusive access to all rows of the chunk. */
static inline void quern__row_enable(const quern__archetype *archetype, uintptr_t location,
                                     uint32_t bit_column, bool enabled)
{
    quern__bit_column_put(archetype->row_bits, bit_column, location, !enabled);
    quern__row_note_enabled(archetype, location, archetype->row_bits->list[bit_column].id);
}

/* ------------------------------------------------------------------------- row ranges: rearranging */

/* Appends between 1 and `wanted` reserved raw rows, all in one chunk. Returns the location of the first row. */
uintptr_t quern__rows_append(quern__storage *storage, quern__archetype *archetype, uint32_t wanted,
                             uint32_t *out_count);

/* Returns whether `count` more rows fit in the last chunk. */
static inline bool quern__rows_fit_chunk(const quern__archetype *archetype, uint32_t count)
{
    return (uint64_t)archetype->last_slot->row_count + count <= archetype->shape.row_capacity;
}

/* Performs quern__rows_append for exactly `count` rows. Precondition: quern__rows_fit_chunk. */
static inline uintptr_t quern__rows_append_fitting(quern__storage *storage, quern__archetype *archetype,
                                                   uint32_t count)
{
    quern__chunk_slot *slot = archetype->last_slot;
    assert(archetype->reserved_count >= count && quern__rows_fit_chunk(archetype, count));
    const uint32_t row = slot->row_count;
    slot->row_count += count;
    archetype->reserved_count -= count;
    storage->structure_version++;
    return quern__row_location(quern__slot_row(slot, row));
}

/* Appends `count` reserved raw rows, in as many chunks as necessary. */
void quern__rows_append_many(quern__storage *storage, quern__archetype *archetype, uint32_t count);

/* Moves rows to raw rows of the same archetype. */
void quern__rows_relocate(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                          uintptr_t from, uint32_t count);

/* Fills rows with entities that a history restores. The rows are raw or belonged to entities that no longer exist.
 * The slots of the handles are alive, and the locations in their records are meaningless. Invalidates refs into the
 * chunk; no other listener is notified. */
void quern__rows_restore(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                         const quern_entity *handles, uint32_t count);

/* Removes the last `count` rows, which are raw. Releases unneeded chunks and cancels unused reservations. */
void quern__rows_cut(quern__storage *storage, quern__archetype *archetype, uint32_t count);

/* Allocates `count` reserved slots for new entities. */
void quern__slots_allocate(quern__storage *storage, uint32_t count, quern_entity *out_handles);

/* Restores all slots of a world that has none: see quern__entities_restore. Slots that are neither free nor retired
 * count as allocated. The caller must then place their entities in rows. */
void quern__slots_restore(quern__storage *storage, const uint32_t *highs, uint32_t slot_count,
                          const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count);

/* Frees the slots of removed entities in the given order. The slot freed last is reused first. */
void quern__slots_free(quern__storage *storage, const uint32_t *indices, uint32_t count);

/* Invalidates locations and lists of chunks that were recorded earlier. Appending, cutting and the verbs for
 * one row do this themselves; a change that is distributed over threads ends with this call. */
static inline void quern__structure_changed(quern__storage *storage)
{
    storage->structure_version++;
}

/* ------------------------------------------------------------------------------ whole archetypes */

/* Appends reserved raw rows to the plan's target for all rows of its source. If the plan adds the component, its
 * values become copies of `value`, or are constructed if `value` is NULL, and the first of them is returned. Required
 * components that the plan adds are constructed. */
const void *quern__rows_append_all(quern__storage *storage, const quern__move_plan *plan,
                                   uint32_t component_index, const void *value);

/* Moves all rows of the plan's source to the rows appended last to its target. The caller must move the rows of one
 * source before it appends for the next, and then cut the source's raw rows. */
void quern__rows_move_all(quern__storage *storage, const quern__move_plan *plan);

/* Removes all rows of an archetype. Precondition: they are raw. */
void quern__rows_cut_all(quern__storage *storage, quern__archetype *archetype);

/* Removes all entities of an archetype: frees their slots and cuts their rows. */
void quern__rows_leave_all(quern__storage *storage, quern__archetype *archetype);

/* --------------------------------------------------------------------------------------- one row */

/* Places an entity with a newly allocated slot in a reserved row. Returns the row's location. */
uintptr_t quern__row_arrive_as(quern__storage *storage, quern__archetype *archetype, quern_entity entity);

/* Creates an entity in a reserved row of the archetype. The caller must still write its values. */
static inline quern_entity quern__row_arrive(quern__storage *storage, quern__archetype *archetype,
                                             uintptr_t *out_location)
{
    const quern_entity entity = quern__entities_allocate(&storage->entities);
    *out_location = quern__row_arrive_as(storage, archetype, entity);
    return entity;
}

/* Removes an alive entity: its row and its slot. */
void quern__row_leave(quern__storage *storage, quern_entity entity);

/* Moves an entity to `to`, a raw row just appended to the plan's target. The caller must already have written
 * the values that the plan adds to that row. Closes the gap in the source. */
void quern__row_move(quern__storage *storage, quern_entity entity, quern__record *record,
                     const quern__move_plan *plan, uintptr_t to);

/* The fast path, for archetypes and plans without hooks. Each function makes at most one call, as its last action.
 * The callers that inline these functions therefore save no registers. If an archetype tracks changes, one such call
 * does all the work. */

static inline void *quern__row_value(const quern__column_position *position, quern__row row)
{
    return row.run + (size_t)position->offset_lines * QUERN__PART_ALIGNMENT_BYTES +
           row.index * position->size_bytes;
}

/* Appends a raw row without a reservation. Returns false if that would need a chunk beyond those held. */
static inline bool quern__row_append(quern__archetype *archetype, quern__row *out_row)
{
    quern__chunk_slot *slot = archetype->last_slot;
    if (slot->row_count >= archetype->shape.row_capacity) {
        if (archetype->chunk_count == archetype->held_count) return false;
        archetype->chunk_count++;
        archetype->last_slot = ++slot;
        slot->row_count = 0;
    }
    *out_row = quern__slot_row(slot, slot->row_count++);
    return true;
}

/* Writes the handle of a new entity to a raw row, and the row's location to the entity's record. */
static inline void quern__row_put_entity(quern__storage *storage, const quern__archetype *archetype,
                                         quern_entity entity, quern__row row)
{
    *quern__row_handle(archetype, row) = entity;
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
    record->location = quern__row_location(row);
    record->archetype_number = archetype->number;
    storage->structure_version++;
}

/* Creates an entity in a raw row. Preconditions: a slot is available, and the archetype does not track changes. The
 * caller must still write the entity's values. */
static inline quern_entity quern__row_arrive_new(quern__storage *storage, const quern__archetype *archetype,
                                                 quern__row row)
{
    assert(!archetype->tracks_changes && quern__is_row_range(archetype, quern__row_location(row), 1));
    const quern_entity entity = quern__entities_allocate(&storage->entities);
    quern__row_put_entity(storage, archetype, entity, row);
    return entity;
}

/* Releases chunks without rows, except those that may be retained. Returns QUERN_OK, so that callers can make it
 * their last call. */
quern_result quern__rows_trim(quern__storage *storage, quern__archetype *archetype);

/* Called when the last chunk with rows has lost its last row: decrements chunk_count. The chunk is released,
 * or retained for later rows. */
static inline quern_result quern__rows_drop_chunk(quern__storage *storage, quern__archetype *archetype)
{
    const uint32_t left = --archetype->chunk_count;
    archetype->last_slot--;
    const bool may_stay = archetype->held_count == left + 1 && (left > 0 || archetype->may_retain_chunk);
    return may_stay ? QUERN_OK : quern__rows_trim(storage, archetype);
}

/* Moves all values of one row to a raw row, for an archetype with hooks. */
void quern__row_relocate_hooked(const quern__archetype *archetype, quern__row target, quern__row source);

/* Moves an entity's handle to a raw row of the same archetype and updates the location in its record. Does not move
 * values. */
static inline void quern__row_move_handle(quern__storage *storage, const quern__archetype *archetype,
                                          quern__row to, quern__row from)
{
    const quern_entity moved = *quern__row_handle(archetype, from);
    *quern__row_handle(archetype, to) = moved;
    quern__entities_record(&storage->entities, quern_entity_index(moved))->location =
        quern__row_location(to);
}

/* Fills the raw row `gap` by relocating the archetype's last row. `is_plain` (whether the archetype is plain) and
 * `notifies` (whether listeners are possible) must be compile-time constants. Always returns QUERN_OK. */
QUERN__ALWAYS_INLINE quern_result quern__row_close_gap(quern__storage *storage, quern__archetype *archetype,
                                                       quern__row gap, bool is_plain, bool notifies)
{
    quern__chunk_slot *slot = archetype->last_slot;
    const uint32_t last_row = --slot->row_count;
    const quern__row last = quern__slot_row(slot, last_row);
    if (last.index != gap.index || last.run != gap.run) {
        if (notifies && archetype->tracks_changes)
            quern__note_relocation(archetype, quern__row_location(gap), quern__row_location(last), 1);
        quern__row_move_handle(storage, archetype, gap, last);
        if (is_plain)
            quern__copy_row(archetype->relocation, gap, last);
        else
            quern__row_relocate_hooked(archetype, gap, last);
    }
    return QUERN__UNLIKELY(last_row == 0) ? quern__rows_drop_chunk(storage, archetype) : QUERN_OK;
}

/* Moves an entity along an edge to the raw row `to`, and closes the gap in the source. `notifies` (whether
 * listeners are notified) must be a compile-time constant. */
QUERN__ALWAYS_INLINE quern_result quern__row_move_by_edge(quern__storage *storage, quern__archetype *source,
                                                          quern_entity entity, quern__record *record,
                                                          const quern__edge *edge, quern__row to,
                                                          bool notifies)
{
    const quern__archetype *target = edge->target;
    const quern__row from = quern__archetype_row(source, record->location);
    if (notifies) quern__on_move(target, quern__row_location(to), source, record->location, 1);
    record->location = quern__row_location(to);
    record->archetype_number = edge->target_number;
    storage->structure_version++;
    *quern__row_handle(target, to) = entity;
    quern__copy_row(edge->carry, to, from);
    return quern__row_close_gap(storage, source, from, true, notifies);
}

/* Removes an entity of a plain archetype, frees its slot and closes the gap. `notifies` (whether listeners
 * are notified) must be a compile-time constant. */
QUERN__ALWAYS_INLINE quern_result quern__row_leave_gap(quern__storage *storage, quern__archetype *archetype,
                                                       quern_entity entity, quern__record *record,
                                                       bool notifies)
{
    const quern__row gap = quern__archetype_row(archetype, record->location);
    if (notifies) quern__on_leave(archetype, record->location, 1);
    quern__entities_free(&storage->entities, quern_entity_index(entity), record);
    storage->structure_version++;
    return quern__row_close_gap(storage, archetype, gap, true, notifies);
}

/* Perform quern__row_move_plain and quern__row_leave_plain for archetypes that track changes. */
quern_result quern__row_move_tracked(quern__storage *storage, quern__archetype *source, quern_entity entity,
                                     quern__record *record, const quern__edge *edge, quern__row to);
quern_result quern__row_leave_tracked(quern__storage *storage, quern__archetype *archetype,
                                      quern_entity entity, quern__record *record);

/* Performs quern__row_move from a known source along an edge. */
QUERN__ALWAYS_INLINE quern_result quern__row_move_plain(quern__storage *storage, quern__archetype *source,
                                                        quern_entity entity, quern__record *record,
                                                        const quern__edge *edge, quern__row to)
{
    if (QUERN__UNLIKELY(source->tracks_changes || edge->target->tracks_changes))
        return quern__row_move_tracked(storage, source, entity, record, edge, to);
    return quern__row_move_by_edge(storage, source, entity, record, edge, to, false);
}

/* Performs quern__row_move to a reserved row. Such moves occur in large numbers, with rows and gaps anywhere in
 * memory. The row that fills the gap is therefore moved in the same copy loop. */
static inline void quern__row_move_reserved(quern__storage *storage, quern_entity entity,
                                            quern__record *record, const quern__move_plan *plan)
{
    quern__archetype *source = plan->source;
    assert(plan->target->reserved_count > 0 && quern__storage_archetype_of(storage, record) == source);
    plan->target->reserved_count--;
    quern__row to = {0};
    quern__row_append(plan->target, &to);
    if (QUERN__UNLIKELY(!plan->is_plain || source->tracks_changes || plan->target->tracks_changes)) {
        quern__row_move(storage, entity, record, plan, quern__row_location(to));
        return;
    }
    quern__chunk_slot *slot = source->last_slot;
    const uint32_t last_row = --slot->row_count;
    const quern__row gap = quern__archetype_row(source, record->location);
    const quern__row last = quern__slot_row(slot, last_row);
    if (last.index != gap.index || last.run != gap.run) {
        quern__move_row(plan->carry, to, gap, last);
        quern__row_move_handle(storage, source, gap, last);
    } else {
        quern__copy_row(plan->carry, to, gap);
    }
    quern__row_put_entity(storage, plan->target, entity, to);
    if (QUERN__UNLIKELY(last_row == 0)) quern__rows_drop_chunk(storage, source);
}

/* Performs quern__row_leave for a known plain archetype. Precondition: quern__record_may_retire_or_wrap is false for
 * the record. */
static inline quern_result quern__row_leave_plain(quern__storage *storage, quern__archetype *archetype,
                                                  quern_entity entity, quern__record *record)
{
    if (QUERN__UNLIKELY(archetype->tracks_changes))
        return quern__row_leave_tracked(storage, archetype, entity, record);
    return quern__row_leave_gap(storage, archetype, entity, record, false);
}

/* Closing many gaps of an archetype at once, for changes of many entities. The order of rows that results is part of
 * what a sync point promises (core/playback/stages.h). */

/* Fills the gaps of an archetype, and removes its last `count` rows. The rows after the new end that are no gaps fill
 * the gaps before it, in order. gaps: the locations of `count` raw rows, ascending, each once. tails: memory for
 * `count` locations. executor NULL: runs on the calling thread. */
void quern__rows_close_gaps(quern__storage *storage, quern__archetype *archetype, const uintptr_t *gaps,
                            uint32_t count, uintptr_t *tails, const quern__executor *executor);

/* Initial values, for raw memory of new rows or of a component that rows receive. */

/* Turns raw memory into `count` adjacent values: those of the caller in `values`, or constructed values if `values` is
 * NULL. */
static inline void quern__fill_values(const quern__type *type, void *targets, const void *values,
                                      uint32_t count)
{
    if (values == NULL)
        quern__type_construct(type, targets, count);
    else if (count == 1 && type->hooks.copy == NULL && type->hooks.move == NULL)
        quern__copy_value(targets, values, type->size_bytes);
    else
        quern__type_accept(type, targets, values, count);
}

/* Performs quern__fill_values for a component of consecutive rows of one chunk. Does nothing if the archetype has no
 * such column. */
static inline void quern__fill_component(const quern__storage *storage, const quern__archetype *archetype,
                                         uintptr_t first, uint32_t component_index, const void *values,
                                         uint32_t count)
{
    void *targets = quern__storage_value(archetype, first, component_index);
    if (targets == NULL) return;
    quern__fill_values(quern__components_type(&storage->components, component_index), targets, values,
                       count);
}

/* Constructs the values of required components that a plan adds with a component, for consecutive new rows. The caller
 * fills the component itself. */
static inline void quern__fill_required(const quern__move_plan *plan, uint32_t component_index,
                                        uintptr_t first, uint32_t count)
{
    if (QUERN__LIKELY(!quern__plan_adds_required(plan))) return;
    for (uint32_t i = 0; i < plan->target->column_count; i++) {
        const quern__column *column = &plan->target->columns[i];
        if (column->component_index == component_index ||
            quern__archetype_has(plan->source, column->component_index))
            continue;
        quern__type_construct(column->type, quern__column_at(column, first), count);
    }
}

/* Whether a list has a component. */
static inline bool quern__list_has(const quern_component *list, uint32_t list_count,
                                   uint32_t component_index)
{
    for (uint32_t i = 0; i < list_count; i++)
        if (quern__component_index(list[i]) == component_index) return true;
    return false;
}

/* Constructs the values of required components in consecutive rows that a list of components created: those that are not
 * in the list. */
static inline void quern__fill_unlisted(const quern__storage *storage, const quern__archetype *archetype,
                                        const quern_component *list, uint32_t list_count, uintptr_t first,
                                        uint32_t count)
{
    if (QUERN__LIKELY(!storage->components.has_requirements)) return;
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        if (quern__list_has(list, list_count, column->component_index)) continue;
        quern__type_construct(column->type, quern__column_at(column, first), count);
    }
}

#endif
