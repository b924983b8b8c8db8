/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/change.h"

/* Up to this many rows are moved row by row, which is faster than column by column. */
enum { ROWS_ONE_BY_ONE = 3 };

/* Number of entities by which records are prefetched ahead of their use, because their addresses are random. */
enum { PREFETCH_DISTANCE = 12 };

/* ------------------------------------------------------------------------------------ reservations */

/* Lets an archetype without rows retain a run. The archetype that was listed longest may no longer retain one. */
static void note_spare(quern__storage *storage, quern__archetype *archetype)
{
    if (archetype->may_retain_chunk) return;
    quern__archetype **oldest = &storage->spares[storage->next_spare++ % QUERN__SPARE_ARCHETYPES];
    if (*oldest != NULL) {
        (*oldest)->may_retain_chunk = false;
        if ((*oldest)->chunk_count == 0 && (*oldest)->reserved_count == 0)
            quern__archetype_release_spare_chunks(*oldest, &storage->slabs, &storage->allocator);
    }
    archetype->may_retain_chunk = true;
    *oldest = archetype;
}

quern_result quern__rows_reserve_chunks(quern__storage *storage, quern__archetype *archetype,
                                        uint32_t count)
{
    if (archetype->chunk_count == 0 && archetype->reserved_count == 0) {
        /* No row prevents a change of shape. Half of the chunks that a growing archetype would need are enough. */
        const uint32_t shift = quern__run_shift_for(2 * (count / archetype->shape.row_capacity));
        if (shift > archetype->shape.shift)
            quern__archetype_release_spare_chunks(archetype, &storage->slabs, &storage->allocator);
        if (archetype->held_count == 0 && archetype->shape.shift != shift)
            quern__storage_set_shift(storage, archetype, shift);
    }
    const quern_result result =
        quern__archetype_reserve_chunks(archetype, &storage->slabs, &storage->allocator, count);
    storage->may_gather |= archetype->shape.shift < quern__run_shift_for(archetype->held_count);
    return result;
}

quern_result quern__listeners_reserve(const quern__storage *storage, const quern__archetype *source,
                                      const quern__archetype *target, uint32_t count)
{
    quern_result result = QUERN_OK;
    for (quern__row_listener *listener = source->first_listener; listener != NULL && result == QUERN_OK;
         listener = listener->next)
        if (listener->needs_room)
            result = listener->events->reserve(listener, &storage->allocator, storage->change_number,
                                               target, count);
    return result;
}

void quern__rows_unreserve(quern__storage *storage, quern__archetype *archetype)
{
    archetype->reserved_count = 0;
    quern__rows_trim(storage, archetype);
}

quern_result quern__rows_trim(quern__storage *storage, quern__archetype *archetype)
{
    quern__archetype_trim(archetype, &storage->slabs, &storage->allocator);
    if (archetype->chunk_count == 0) note_spare(storage, archetype);
    return QUERN_OK;
}

uintptr_t quern__rows_append(quern__storage *storage, quern__archetype *archetype, uint32_t wanted,
                             uint32_t *out_count)
{
    assert(wanted > 0 && archetype->reserved_count > 0);
    quern__row first = {0};
    quern__row_append(archetype, &first);
    quern__chunk_slot *slot = archetype->last_slot;
    const uint32_t left = archetype->shape.row_capacity - slot->row_count;
    const uint32_t more = wanted - 1 < left ? wanted - 1 : left;
    slot->row_count += more;
    archetype->reserved_count -= 1 + more;
    storage->structure_version++;
    *out_count = 1 + more;
    return quern__row_location(first);
}

void quern__rows_append_many(quern__storage *storage, quern__archetype *archetype, uint32_t count)
{
    for (uint32_t appended; count > 0; count -= appended)
        quern__rows_append(storage, archetype, count, &appended);
}

void quern__rows_cut(quern__storage *storage, quern__archetype *archetype, uint32_t count)
{
    while (count > 0) {
        quern__chunk_slot *last = archetype->last_slot;
        const uint32_t cut = count < last->row_count ? count : last->row_count;
        last->row_count -= cut;
        count -= cut;
        if (last->row_count > 0) continue;
        archetype->chunk_count--;
        archetype->last_slot--;
    }
    quern__rows_unreserve(storage, archetype);
    storage->structure_version++;
}

void quern__slots_allocate(quern__storage *storage, uint32_t count, quern_entity *out_handles)
{
    quern__entities_allocate_many(&storage->entities, count, out_handles);
}

void quern__slots_restore(quern__storage *storage, const uint32_t *highs, uint32_t slot_count,
                          const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count)
{
    quern__entities_restore(&storage->entities, highs, slot_count, free_slots, free_count, retired_count);
    storage->structure_version++;
}

void quern__slots_free(quern__storage *storage, const uint32_t *indices, uint32_t count)
{
    quern__entities *entities = &storage->entities;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_DISTANCE < count)
            QUERN__PREFETCH_WRITE(quern__entities_record(entities, indices[i + PREFETCH_DISTANCE]));
        quern__record *record = quern__entities_record(entities, indices[i]);
        if (QUERN__LIKELY(!quern__record_may_retire_or_wrap(record)))
            quern__entities_free(entities, indices[i], record);
        else
            quern__entities_free_or_retire(entities, indices[i]);
    }
}

/* ------------------------------------------------------------------------------- values and handles */

static quern_entity *handles_at(const quern__archetype *archetype, uintptr_t location)
{
    return quern__row_handle(archetype, quern__archetype_row(archetype, location));
}

/* Points the record of an entity at its row. Loops over many rows keep pages (of the records), number (of the archetype) and
 * the entity in registers. A compiler would load all of them again, since the stores could change them. */
static inline void point_record(quern__record *const *pages, uint32_t number, quern_entity entity,
                                uintptr_t location)
{
    quern__record *record = quern__entities_record_in(pages, quern_entity_index(entity));
    record->location = location;
    record->archetype_number = number;
}

/* Writes handles to rows and the rows' locations to the records of these entities. */
static void place_entities(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                           const quern_entity *handles, uint32_t count)
{
    quern_entity *target = handles_at(archetype, to);
    quern__record *const *pages = storage->entities.pages.items;
    const uint32_t number = archetype->number;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = handles[i];
        target[i] = entity;
        point_record(pages, number, entity, to + i);
    }
}

/* Moves the values of one column to raw memory. `type`: NULL if the values are plain bytes. */
static void move_values(const quern__type *type, char *to, char *from, uint32_t size_bytes, uint32_t count)
{
    if (QUERN__UNLIKELY(type != NULL))
        quern__type_move(type, to, from, count);
    else
        memcpy(to, from, (size_t)size_bytes * count);
}

static char *value_at(quern__row row, uint32_t offset_bytes, uint32_t size_bytes)
{
    return row.run + offset_bytes + row.index * size_bytes;
}

/* Always inlined: quern__rows_move is called for single rows, too. */
QUERN__ALWAYS_INLINE void carry(const quern__move_plan *plan, uintptr_t to, uintptr_t from, uint32_t count)
{
    if (count > ROWS_ONE_BY_ONE || !plan->is_plain) {
        const quern__row target = quern__archetype_row(plan->target, to),
                         source = quern__archetype_row(plan->source, from);
        const quern__move_step *step = plan->steps;
        for (const quern__move_step *end = step + plan->shared_count; step < end; step++)
            move_values(step->type, value_at(target, step->target_offset_bytes, step->size_bytes),
                        value_at(source, step->source_offset_bytes, step->size_bytes), step->size_bytes,
                        count);
        step += plan->added_count;
        for (const quern__move_step *end = step + plan->removed_count; step < end; step++)
            if (step->type != NULL)
                quern__type_destroy(step->type,
                                    value_at(source, step->source_offset_bytes, step->size_bytes), count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        quern__copy_row(plan->carry, quern__archetype_row(plan->target, to + i),
                        quern__archetype_row(plan->source, from + i));
}

static void relocate_columns(const quern__archetype *archetype, uintptr_t to, uintptr_t from,
                             uint32_t count)
{
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        move_values(column->type->hooks.move != NULL ? column->type : NULL, quern__column_at(column, to),
                    quern__column_at(column, from), column->size_bytes, count);
    }
}

/* -------------------------------------------------------------------------------------- gathering */

/* Allocates the runs of 2^shift chunks for all rows of the archetype, and all that it needs to hold them. Returns false
 * if out of memory. */
static bool allocate_runs(quern__storage *storage, quern__archetype *archetype, char **runs, uint32_t count,
                          uint32_t shift)
{
    uint32_t i = 0;
    while (i < count &&
           (runs[i] = quern__run_allocate(&storage->slabs, &storage->allocator, shift)) != NULL)
        i++;
    if (i == count && quern__archetype_make_slots(archetype, &storage->allocator, count << shift))
        return true;
    while (i > 0)
        quern__run_release(&storage->slabs, &storage->allocator, runs[--i], shift);
    return false;
}

/* Moves the rows of a chunk to the place in a run of 2^shift chunks where they stay in order. */
static void gather_chunk(const quern__storage *storage, const quern__archetype *archetype, quern__row to,
                         uint32_t shift, quern__row from, uint32_t count)
{
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        move_values(column->type->hooks.move != NULL ? column->type : NULL,
                    value_at(to, (uint32_t)column->offset_bytes << shift, column->size_bytes),
                    value_at(from, column->run_offset_bytes, column->size_bytes), column->size_bytes,
                    count);
    }
    const quern_entity *handles = quern__row_handle(archetype, from);
    quern_entity *gathered = (quern_entity *)(void *)value_at(
        to, (uint32_t)archetype->entities_offset_bytes << shift, (uint32_t)sizeof(quern_entity));
    quern__record *const *pages = storage->entities.pages.items;
    const uint32_t number = archetype->number;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = handles[i];
        gathered[i] = entity;
        point_record(pages, number, entity, quern__row_location(to) + i);
    }
    quern__count_move(archetype, quern__row_location(from));
}

/* Gives an archetype that has or keeps chunks runs of 2^shift. */
static void gather(quern__storage *storage, quern__archetype *archetype, uint32_t shift)
{
    const uint32_t chunk_count = archetype->chunk_count, asked_count = archetype->asked_count,
                   wanted_count = chunk_count > asked_count ? chunk_count : asked_count,
                   run_chunks = 1u << shift, run_count = (wanted_count + run_chunks - 1) / run_chunks;
    char **runs = quern__allocate(&storage->allocator, run_count * sizeof *runs, _Alignof(char *));
    if (runs == NULL || !allocate_runs(storage, archetype, runs, run_count, shift)) {
        quern__release(&storage->allocator, runs, run_count * sizeof *runs, _Alignof(char *));
        return;
    }
    for (uint32_t i = 0; i < chunk_count; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        const quern__row to = {runs[i / run_chunks],
                               (size_t)(i % run_chunks) * archetype->shape.row_capacity};
        gather_chunk(storage, archetype, to, shift, quern__slot_row(slot, 0), slot->row_count);
    }
    const uint32_t last_count = archetype->last_slot->row_count;
    archetype->asked_count = 0;
    archetype->chunk_count = 0;
    quern__archetype_release_spare_chunks(archetype, &storage->slabs, &storage->allocator);
    quern__storage_set_shift(storage, archetype, shift);
    for (uint32_t i = 0; i < run_count; i++)
        quern__archetype_add_run(archetype, runs[i]);
    if (archetype->index != QUERN__UNORDERED)
        quern__bitset_add(storage->slabs.holders.items, archetype->index);
    for (uint32_t i = 0; i < chunk_count; i++)
        archetype->slots[i].row_count = archetype->shape.row_capacity;
    if (chunk_count > 0) archetype->slots[chunk_count - 1].row_count = last_count;
    archetype->chunk_count = chunk_count;
    archetype->asked_count = asked_count; /* at most held_count */
    storage->structure_version++;
    quern__release(&storage->allocator, runs, run_count * sizeof *runs, _Alignof(char *));
}

void quern__rows_gather(quern__storage *storage)
{
    storage->may_gather = false;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        const uint32_t shift = quern__run_shift_for(archetype->held_count);
        const bool keeps_chunks = archetype->chunk_count > 0 || archetype->asked_count > 0;
        if (archetype->shape.shift < shift && keeps_chunks && archetype->reserved_count == 0)
            gather(storage, archetype, shift);
    }
}

void quern__rows_scatter(quern__storage *storage, quern__archetype *archetype)
{
    const uint32_t shift = quern__run_shift_for(2 * archetype->chunk_count);
    if (archetype->shape.shift > shift && archetype->chunk_count > 0) gather(storage, archetype, shift);
}

/* --------------------------------------------------------------------------------------- converting */

/* Moves the values of consecutive rows of one chunk to rows of one chunk of another layout. */
static void convert_values(const quern__archetype *source, const quern__archetype *target, uintptr_t to,
                           uintptr_t from, uint32_t count, const quern__type_change *change)
{
    for (uint32_t i = 0; i < target->column_count; i++) {
        const quern__column *column = &target->columns[i], *old = &source->columns[i];
        assert(old->component_index == column->component_index);
        char *targets = quern__column_at(column, to), *sources = quern__column_at(old, from);
        if (column->component_index == change->component_index)
            quern__type_change_values(change, targets, sources, count);
        else
            move_values(column->type->hooks.move != NULL ? column->type : NULL, targets, sources,
                        column->size_bytes, count);
    }
}

/* Gives a chunk the versions of a chunk with rows that move to it, where those are later. The versions of both archetypes
 * are in the same order: columns and tags are the same. */
static void raise_versions(const quern__archetype *target, uint32_t to_slot, const quern__archetype *source,
                           uint32_t from_slot)
{
    uint64_t *to = quern__versions_of(&target->versions, to_slot);
    const uint64_t *from = quern__versions_of(&source->versions, from_slot);
    for (uint32_t i = 0; to != NULL && from != NULL && i < target->versions.stride; i++)
        if (to[i] < from[i]) to[i] = from[i];
}

void quern__rows_convert(quern__storage *storage, quern__archetype *source, quern__archetype *target,
                         const quern__type_change *change)
{
    const uint32_t old_rows = source->shape.row_capacity, rows = target->shape.row_capacity,
                   row_count = (uint32_t)quern__archetype_row_count(source);
    const bool keeps_versions = target->versions.items != NULL && source->versions.items != NULL;
    quern__rows_append_many(storage, target, row_count);
    for (uint32_t i = 0; i < target->chunk_count && keeps_versions; i++)
        memset(quern__versions_of(&target->versions, i), 0, target->versions.stride * sizeof(uint64_t));
    for (uint32_t row = 0, count; row < row_count; row += count) {
        const uint32_t left = old_rows - row % old_rows, room = rows - row % rows;
        count = left < room ? left : room;
        if (count > row_count - row) count = row_count - row;
        const uintptr_t from = quern__archetype_location(source, row),
                        to = quern__archetype_location(target, row);
        raise_versions(target, row / rows, source, row / old_rows);
        if (target->row_versions != NULL)
            quern__row_versions_move(target->row_versions, to, source->row_versions, from, count,
                                     *target->versions.clock);
        quern__count_move(source, from);
        if (source->row_bits != NULL)
            quern__row_bits_move(target->row_bits, to, source->row_bits, from, count);
        convert_values(source, target, to, from, count, change);
        place_entities(storage, target, to, handles_at(source, from), count);
    }
    for (uint32_t i = 0; i < target->chunk_count && target->row_versions != NULL; i++)
        for (uint32_t k = 0; k < target->row_versions->lane_count; k++) {
            uint64_t *lane = quern__row_versions_lane(target->row_versions, k, i);
            quern__row_groups_raise_to(lane, lane, target->slots[i].row_count);
        }
    const uint32_t column = quern__archetype_column(target, change->component_index);
    for (uint32_t i = 0; i < target->chunk_count && column < QUERN__COLUMN_TAG; i++)
        quern__note_component(target, quern__location_make(quern__slot_chunk(&target->slots[i]), 0),
                              target->slots[i].row_count, change->component_index);
    if (row_count > 0) quern__rows_cut(storage, source, row_count);
}

/* -------------------------------------------------------------------------------------- row ranges */

void quern__rows_arrive(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                        const quern_entity *handles, uint32_t count)
{
    place_entities(storage, archetype, first, handles, count);
    quern__on_arrive(archetype, first, count);
}

void quern__rows_arrive_by_pattern(const quern__storage *storage, const quern__archetype *archetype,
                                   uintptr_t first, const quern__handle_pattern *pattern, uint32_t count)
{
    quern_entity *target = handles_at(archetype, first);
    const quern_entity *handles = pattern->handles;
    quern__record *const *pages = storage->entities.pages.items;
    const uint32_t number = archetype->number;
    for (uint32_t i = 0, at = pattern->phase; i < count; i++) {
        const quern_entity entity = handles[pattern->picks[at]];
        target[i] = entity;
        point_record(pages, number, entity, first + i);
        if (++at < pattern->width) continue;
        at = 0;
        handles += pattern->stride;
    }
    quern__on_arrive(archetype, first, count);
}

void quern__rows_arrive_scattered(const quern__storage *storage, const quern__archetype *archetype,
                                  const uintptr_t *rows, const quern_entity *handles, uint32_t count)
{
    quern__record *const *pages = storage->entities.pages.items;
    const uint32_t number = archetype->number;
    for (uint32_t i = 0; i < count; i++) {
        *handles_at(archetype, rows[i]) = handles[i];
        point_record(pages, number, handles[i], rows[i]);
        quern__on_arrive(archetype, rows[i], 1);
    }
}

void quern__rows_arrive_new(quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                            uint32_t count)
{
    quern_entity *handles = handles_at(archetype, first);
    for (uint32_t i = 0; i < count; i++) {
        handles[i] = quern__entities_allocate(&storage->entities);
        point_record(storage->entities.pages.items, archetype->number, handles[i], first + i);
    }
    quern__on_arrive(archetype, first, count);
}

void quern__rows_restore(const quern__storage *storage, const quern__archetype *archetype, uintptr_t first,
                         const quern_entity *handles, uint32_t count)
{
    assert(quern__is_row_range(archetype, first, count));
    place_entities(storage, archetype, first, handles, count);
    quern__count_move(archetype, first);
}

static inline void destroy_values(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    for (uint32_t i = 0; i < archetype->column_count && archetype->has_destroy; i++) {
        const quern__column *column = &archetype->columns[i];
        quern__type_destroy(column->type, quern__column_at(column, first), count);
    }
}

void quern__rows_leave(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    quern__on_leave(archetype, first, count);
    destroy_values(archetype, first, count);
}

void quern__rows_leave_new(const quern__archetype *archetype, uintptr_t first, uint32_t count)
{
    quern__count_move(archetype, first);
    if (archetype->row_bits != NULL) quern__row_bits_clear(archetype->row_bits, first, count);
    destroy_values(archetype, first, count);
}

void quern__rows_leave_scattered(const quern__archetype *archetype, const uintptr_t *rows, uint32_t count)
{
    assert(!archetype->has_destroy);
    if (QUERN__LIKELY(!archetype->tracks_changes)) return;
    const quern__run_shape *shape = &archetype->shape;
    for (uint32_t i = 0, run; i < count; i += run) {
        /* the first row of the next chunk of a run may be consecutive, too */
        const uint32_t left = shape->row_capacity - quern__location_row(shape, rows[i]);
        run = 1;
        while (run < left && i + run < count && rows[i + run] == rows[i] + run)
            run++;
        quern__on_leave(archetype, rows[i], run);
    }
}

void quern__rows_move(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                      uintptr_t from, uint32_t count)
{
    quern__on_move(plan->target, to, plan->source, from, count);
    carry(plan, to, from, count);
    place_entities(storage, plan->target, to, handles_at(plan->source, from), count);
}

void quern__rows_move_new(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                          uintptr_t from, uint32_t count)
{
    quern__on_move_new(plan->target, to, plan->source, from, count);
    carry(plan, to, from, count);
    place_entities(storage, plan->target, to, handles_at(plan->source, from), count);
}

/* Copies the values of listed rows of one column to adjacent memory. size_bytes is a constant in most inlined
 * copies. */
static inline void pick_values(char *to, const char *column, const uint16_t *rows, uint32_t count,
                               size_t size_bytes)
{
    for (uint32_t i = 0; i < count; i++, to += size_bytes)
        memcpy(to, column + rows[i] * size_bytes, size_bytes);
}

static void pick_column(char *to, const char *column, const uint16_t *rows, uint32_t count,
                        uint32_t size_bytes)
{
    switch (size_bytes) {
    case 4:
        pick_values(to, column, rows, count, 4);
        break;
    case 8:
        pick_values(to, column, rows, count, 8);
        break;
    case 12:
        pick_values(to, column, rows, count, 12);
        break;
    case 16:
        pick_values(to, column, rows, count, 16);
        break;
    default:
        for (uint32_t i = 0; i < count; i++, to += size_bytes)
            quern__copy_value(to, column + (size_t)rows[i] * size_bytes, size_bytes);
        break;
    }
}

/* Performs quern__on_move for each sequence of consecutive rows in the list. */
static QUERN__SLOW_PATH void note_picked(const quern__move_plan *plan, uintptr_t to,
                                         const quern__chunk *chunk, const uint16_t *rows, uint32_t count)
{
    for (uint32_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && rows[i + run] == rows[i] + run)
            run++;
        quern__on_move(plan->target, to + i, plan->source, quern__location_make(chunk, rows[i]), run);
    }
}

void quern__rows_move_picked(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                             quern__chunk *chunk, const uint16_t *rows, uint32_t count)
{
    assert(plan->is_plain);
    if (plan->source->tracks_changes || plan->target->tracks_changes)
        note_picked(plan, to, chunk, rows, count);
    const quern__row target = quern__archetype_row(plan->target, to),
                     source = quern__archetype_row(plan->source, (uintptr_t)chunk);
    const quern__move_step *step = plan->steps;
    for (const quern__move_step *end = step + plan->shared_count; step < end; step++)
        pick_column(value_at(target, step->target_offset_bytes, step->size_bytes),
                    value_at(source, step->source_offset_bytes, step->size_bytes), rows, count,
                    step->size_bytes);
    const quern_entity *handles = quern__archetype_entities(plan->source, chunk);
    quern_entity *moved = handles_at(plan->target, to);
    quern__record *const *pages = storage->entities.pages.items;
    const uint32_t number = plan->target->number;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = handles[rows[i]];
        moved[i] = entity;
        point_record(pages, number, entity, to + i);
    }
}

void quern__rows_enable(const quern__archetype *archetype, uintptr_t first, uint32_t count,
                        uint32_t bit_column, bool enabled)
{
    assert(quern__is_row_range(archetype, first, count));
    if (enabled)
        quern__bit_column_clear_rows(archetype->row_bits, bit_column, first, count);
    else
        quern__bit_column_set_rows(archetype->row_bits, bit_column, first, count);
    quern__note_component(archetype, first, count, archetype->row_bits->list[bit_column].id);
}

void quern__rows_relocate(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                          uintptr_t from, uint32_t count)
{
    assert(quern__is_row_range(archetype, to, count) && quern__is_row_range(archetype, from, count));
    if (QUERN__UNLIKELY(archetype->tracks_changes)) quern__note_relocation(archetype, to, from, count);
    if (count > ROWS_ONE_BY_ONE || !archetype->is_plain) relocate_columns(archetype, to, from, count);
    for (uint32_t i = 0; i < count && count <= ROWS_ONE_BY_ONE && archetype->is_plain; i++)
        quern__copy_row(archetype->relocation, quern__archetype_row(archetype, to + i),
                        quern__archetype_row(archetype, from + i));
    place_entities(storage, archetype, to, handles_at(archetype, from), count);
}

/* Copies values of one column between listed rows. size_bytes is a constant in most inlined copies. */
static inline void relocate_values(const uintptr_t *to, const uintptr_t *from, uint32_t count,
                                   const quern__column *column, uint32_t size_bytes)
{
    for (uint32_t i = 0; i < count; i++)
        quern__copy_value(quern__column_at(column, to[i]), quern__column_at(column, from[i]), size_bytes);
}

/* Performs quern__rows_relocate for single rows: the i-th row moves from from[i] to to[i], one column after the other.
 * Precondition: the archetype is plain. */
static void rows_relocate_scattered(const quern__storage *storage, const quern__archetype *archetype,
                                    const uintptr_t *to, const uintptr_t *from, uint32_t count)
{
    assert(archetype->is_plain);
    for (uint32_t i = 0; i < count && QUERN__UNLIKELY(archetype->tracks_changes); i++)
        quern__note_relocation(archetype, to[i], from[i], 1);
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        QUERN__CALL_BY_SIZE(column->size_bytes, relocate_values, to, from, count, column);
    }
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity moved = *handles_at(archetype, from[i]);
        *handles_at(archetype, to[i]) = moved;
        quern__entities_record(&storage->entities, quern_entity_index(moved))->location = to[i];
    }
}

/* ------------------------------------------------------------------------------- whole archetypes */

/* Turns raw memory into `count` copies of one value. */
static void fill_with_one(const quern__type *type, char *targets, const void *value, uint32_t count)
{
    const size_t size_bytes = type->size_bytes;
    if (type->hooks.copy == NULL)
        quern__copy_to_many(targets, value, size_bytes, count);
    else
        for (uint32_t i = 0; i < count; i++, targets += size_bytes)
            quern__type_copy(type, targets, value, 1);
}

const void *quern__rows_append_all(quern__storage *storage, const quern__move_plan *plan,
                                   uint32_t component_index, const void *value)
{
    const quern__type *type = quern__components_type(&storage->components, component_index);
    const void *first_value = NULL;
    uint32_t count;
    for (uint64_t left = quern__archetype_row_count(plan->source); left > 0; left -= count) {
        uint32_t wanted =
            left < plan->target->shape.row_capacity ? (uint32_t)left : plan->target->shape.row_capacity;
        uintptr_t first = quern__rows_append(storage, plan->target, wanted, &count);
        char *targets = quern__storage_value(plan->target, first, component_index);
        quern__fill_required(plan, component_index, first, count);
        if (targets == NULL) continue;
        if (first_value == NULL) first_value = targets;
        if (value == NULL)
            quern__fill_values(type, targets, NULL, count);
        else
            fill_with_one(type, targets, value, count);
    }
    return first_value;
}

void quern__rows_move_all(quern__storage *storage, const quern__move_plan *plan)
{
    const quern__archetype *source = plan->source, *target = plan->target;
    uint64_t to = quern__archetype_row_count(target) - quern__archetype_row_count(source);
    for (uint32_t i = 0; i < source->chunk_count; i++) {
        const quern__chunk_slot *slot = &source->slots[i];
        for (uint32_t row = 0, count; row < slot->row_count; row += count, to += count) {
            uint32_t to_row = (uint32_t)(to % target->shape.row_capacity);
            count = target->shape.row_capacity - to_row;
            if (count > slot->row_count - row) count = slot->row_count - row;
            quern__rows_move(
                storage, plan,
                quern__location_make(quern__slot_chunk(&target->slots[to / target->shape.row_capacity]),
                                     to_row),
                quern__location_make(quern__slot_chunk(slot), row), count);
        }
    }
    storage->structure_version++;
}

void quern__rows_cut_all(quern__storage *storage, quern__archetype *archetype)
{
    if (archetype->chunk_count > 0)
        quern__rows_cut(storage, archetype, (uint32_t)quern__archetype_row_count(archetype));
}

void quern__rows_leave_all(quern__storage *storage, quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        quern__rows_leave(archetype, quern__location_make(quern__slot_chunk(slot), 0), slot->row_count);
    }
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        const quern_entity *handles = quern__archetype_entities(archetype, quern__slot_chunk(slot));
        for (uint32_t row = 0; row < slot->row_count; row++)
            quern__entities_free_or_retire(&storage->entities, quern_entity_index(handles[row]));
    }
    quern__rows_cut_all(storage, archetype);
}

/* ---------------------------------------------------------------------------------------- one row */

uintptr_t quern__row_arrive_as(quern__storage *storage, quern__archetype *archetype, quern_entity entity)
{
    assert(archetype->reserved_count > 0);
    archetype->reserved_count--;
    quern__row row = {0};
    quern__row_append(archetype, &row);
    quern__row_put_entity(storage, archetype, entity, row);
    quern__on_arrive(archetype, quern__row_location(row), 1);
    return quern__row_location(row);
}

static void leave_with_hooks_or_retire(quern__storage *storage, quern__archetype *archetype,
                                       quern_entity entity, const quern__record *record)
{
    const uintptr_t gap = record->location;
    quern__rows_leave(archetype, gap, 1);
    quern__entities_free_or_retire(&storage->entities, quern_entity_index(entity));
    storage->structure_version++;
    quern__row_close_gap(storage, archetype, quern__archetype_row(archetype, gap), false, true);
}

void quern__row_leave(quern__storage *storage, quern_entity entity)
{
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (archetype->is_plain && !quern__record_may_retire_or_wrap(record))
        quern__row_leave_plain(storage, archetype, entity, record);
    else
        leave_with_hooks_or_retire(storage, archetype, entity, record);
}

quern_result quern__row_move_tracked(quern__storage *storage, quern__archetype *source, quern_entity entity,
                                     quern__record *record, const quern__edge *edge, quern__row to)
{
    return quern__row_move_by_edge(storage, source, entity, record, edge, to, true);
}

quern_result quern__row_leave_tracked(quern__storage *storage, quern__archetype *archetype,
                                      quern_entity entity, quern__record *record)
{
    return quern__row_leave_gap(storage, archetype, entity, record, true);
}

void quern__row_relocate_hooked(const quern__archetype *archetype, quern__row target, quern__row source)
{
    relocate_columns(archetype, quern__row_location(target), quern__row_location(source), 1);
}

void quern__row_move(quern__storage *storage, quern_entity entity, quern__record *record,
                     const quern__move_plan *plan, uintptr_t to)
{
    quern__archetype *source = plan->source;
    assert(quern__storage_archetype_of(storage, record) == source);
    if (plan->is_plain) {
        const quern__edge edge = quern__plan_edge(plan, 0);
        quern__row_move_plain(storage, source, entity, record, &edge,
                              quern__archetype_row(plan->target, to));
        return;
    }
    const uintptr_t from = record->location;
    quern__rows_move(storage, plan, to, from, 1);
    storage->structure_version++;
    quern__row_close_gap(storage, source, quern__archetype_row(source, from), false, true);
}

enum { MOVES_PER_CALL = 1024 };

/* The gaps of one archetype, and the rows that fill them. */
typedef struct closing {
    const quern__storage *storage;
    const quern__archetype *archetype;
    const uintptr_t *gaps;
    const uintptr_t *tails;
} closing;

static uint32_t row_of(const quern__archetype *archetype, uintptr_t location)
{
    return quern__chunk_index_at(&archetype->shape, location) * archetype->shape.row_capacity +
           quern__location_row(&archetype->shape, location);
}

/* Lists the rows from `end` on that are not gaps. gap: the first gap at or after `end`. */
static uint32_t list_tails(const quern__archetype *archetype, uint32_t end, const uintptr_t *gap,
                           const uintptr_t *gaps_end, uintptr_t *out_tails)
{
    uint32_t row_count = (uint32_t)quern__archetype_row_count(archetype), count = 0;
    for (uint32_t row = end; row < row_count;) {
        uintptr_t location = quern__archetype_location(archetype, row);
        uint32_t in_chunk =
            archetype->shape.row_capacity - quern__location_row(&archetype->shape, location);
        for (uint32_t i = 0; i < in_chunk && row < row_count; i++, row++) {
            if (gap < gaps_end && *gap == location + i)
                gap++;
            else
                out_tails[count++] = location + i;
        }
    }
    return count;
}

/* Returns the number of pairs from the i-th on, before `end`, whose gaps and tails are consecutive rows of one chunk. In
 * a run, the first row of a chunk follows the last row of the chunk before. */
static uint32_t count_consecutive(const closing *it, uint32_t i, uint32_t end)
{
    const uintptr_t *gaps = it->gaps + i, *tails = it->tails + i;
    uint32_t count = 1;
    if (i + 1 == end || gaps[1] != gaps[0] + 1 || tails[1] != tails[0] + 1) return count;
    const quern__run_shape *shape = &it->archetype->shape;
    const uint32_t gap_row = quern__location_row(shape, *gaps),
                   tail_row = quern__location_row(shape, *tails),
                   left = shape->row_capacity - (gap_row > tail_row ? gap_row : tail_row);
    if (end > i + left) end = i + left;
    while (i + count < end && gaps[count] == gaps[0] + count && tails[count] == tails[0] + count)
        count++;
    return count;
}

/* Rows with consecutive gaps and tails are moved together, others column by column, many at a time. */
static void close_gaps(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    enum { CONSECUTIVE = 4, SCATTERED = 64 };
    (void)worker_index;
    const closing *it = argument;
    for (uint32_t i = begin, count; i < end; i += count) {
        count = count_consecutive(it, i, end);
        if (count >= CONSECUTIVE || !it->archetype->is_plain) {
            quern__rows_relocate(it->storage, it->archetype, it->gaps[i], it->tails[i], count);
            continue;
        }
        while (count < SCATTERED && i + count < end) {
            const uint32_t more = count_consecutive(it, i + count, end);
            if (more >= CONSECUTIVE) break;
            count += more;
        }
        rows_relocate_scattered(it->storage, it->archetype, it->gaps + i, it->tails + i, count);
    }
}

static bool has_move_hook(const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->column_count; i++)
        if (archetype->columns[i].type->hooks.move != NULL) return true;
    return false;
}

/* Fills the gaps before the new end of the archetype. */
static void fill_gaps(const quern__storage *storage, const quern__archetype *archetype,
                      const uintptr_t *gaps, uint32_t count, uintptr_t *tails,
                      const quern__executor *executor)
{
    const uintptr_t *gaps_end = gaps + count, *gap = gaps_end;
    const uint32_t end = (uint32_t)quern__archetype_row_count(archetype) - count;
    while (gap > gaps && row_of(archetype, gap[-1]) >= end)
        gap--;
    if (gap == gaps) return; /* all gaps are at the end */
    const uint32_t tail_count = list_tails(archetype, end, gap, gaps_end, tails);
    assert(tail_count == (uint32_t)(gap - gaps));
    closing it = {.storage = storage, .archetype = archetype, .gaps = gaps, .tails = tails};
    if (executor != NULL && has_move_hook(archetype)) executor = NULL;
    quern__executor_run(executor, tail_count, MOVES_PER_CALL, close_gaps, &it);
}

void quern__rows_close_gaps(quern__storage *storage, quern__archetype *archetype, const uintptr_t *gaps,
                            uint32_t count, uintptr_t *tails, const quern__executor *executor)
{
    fill_gaps(storage, archetype, gaps, count, tails, executor);
    quern__rows_cut(storage, archetype, count);
}
