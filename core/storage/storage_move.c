/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/storage_move.h"

/* So few rows are faster moved one by one than column by column. */
enum { ROWS_ONE_BY_ONE = 3 };

/* Values of one column to raw memory. */
static void move_values(const quern__type *type, char *to, char *from, uint32_t size_bytes, uint32_t count)
{
    if (QUERN__UNLIKELY(type != NULL))
        quern__type_move(type, to, from, count);
    else
        memcpy(to, from, (size_t)size_bytes * count);
}

static void carry_run(const quern__move_plan *plan, uintptr_t to, uintptr_t from, uint32_t count)
{
    const quern__move_step *step = plan->steps;
    for (const quern__move_step *end = step + plan->shared_count; step < end; step++)
        move_values(step->type, quern__location_value(to, step->target_offset_bytes, step->size_bytes),
                    quern__location_value(from, step->source_offset_bytes, step->size_bytes),
                    step->size_bytes, count);
    step += plan->added_count;
    for (const quern__move_step *end = step + plan->removed_count; step < end; step++)
        if (step->type != NULL)
            quern__type_destroy(step->type,
                                quern__location_value(from, step->source_offset_bytes, step->size_bytes),
                                count);
}

void quern__storage_carry(const quern__move_plan *plan, uintptr_t to, uintptr_t from, uint32_t count)
{
    if (count > ROWS_ONE_BY_ONE || !plan->is_plain) {
        carry_run(plan, to, from, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        quern__copy_run(plan->carry, quern__row_of(to + i), quern__row_of(from + i));
}

void quern__storage_place(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                          const quern_entity *handles, uint32_t count)
{
    quern_entity *target =
        quern__archetype_entities(archetype, quern__chunk_of(to)) + quern__location_row(to);
    for (uint32_t i = 0; i < count; i++) {
        target[i] = handles[i];
        quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(handles[i]));
        record->location = to + i;
        record->archetype_number = archetype->number;
    }
}

static void relocate_run(const quern__archetype *archetype, uintptr_t to, uintptr_t from, uint32_t count)
{
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        move_values(column->type->hooks.move != NULL ? column->type : NULL,
                    quern__location_value(to, column->offset_bytes, column->size_bytes),
                    quern__location_value(from, column->offset_bytes, column->size_bytes),
                    column->size_bytes, count);
    }
}

void quern__storage_relocate(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                             uintptr_t from, uint32_t count)
{
    if (count > ROWS_ONE_BY_ONE || !archetype->is_plain) relocate_run(archetype, to, from, count);
    for (uint32_t i = 0; i < count && count <= ROWS_ONE_BY_ONE && archetype->is_plain; i++)
        quern__copy_run(archetype->relocation, quern__row_of(to + i), quern__row_of(from + i));
    const quern_entity *handles =
        quern__archetype_entities(archetype, quern__chunk_of(from)) + quern__location_row(from);
    quern__storage_place(storage, archetype, to, handles, count);
}

void quern__storage_destroy_values(const quern__archetype *archetype, uintptr_t location, uint32_t count)
{
    if (!archetype->has_destroy) return;
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        quern__type_destroy(
            column->type, quern__location_value(location, column->offset_bytes, column->size_bytes), count);
    }
}

void quern__storage_extend(quern__archetype *archetype, uint32_t count)
{
    while (count > 0) {
        uint32_t appended;
        quern__archetype_append_run(archetype, count, &appended);
        count -= appended;
    }
}

void quern__storage_shrink(quern__storage *storage, quern__archetype *archetype, uint32_t count)
{
    while (count > 0) {
        quern__chunk_slot *last = &archetype->slots[archetype->chunk_count - 1];
        uint32_t dropped = count < last->row_count ? count : last->row_count;
        last->row_count -= dropped;
        count -= dropped;
        if (last->row_count == 0) archetype->chunk_count--;
    }
    quern__storage_unreserve_rows(storage, archetype);
}
