/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/archetype.h"

#include "core/base/containers.h"
#include "core/storage/storage.h"

enum { ARRAY_ALIGNMENT_BYTES = 64 };

quern__chunk_policy quern__chunk_policies = {
    .gathered_chunks = QUERN__RUN_CHUNKS, .slab_chunks = 2 * QUERN__SLAB_CHUNKS, .most_rows = UINT32_MAX};

/* Constants of the colours of archetypes: see the top of archetype.h. */
enum {
    COLOUR_STEP = 8,
    COLOUR_COUNT = 32,
    LATE_INDEX = COLOUR_STEP * COLOUR_COUNT,
    LATE_COLOUR_COUNT = 64
};

/* ------------------------------------------------------------------------------------- definition */

/* Returns the size of a chunk with `rows` rows in bytes, without colour. */
static size_t layout_bytes(const quern__archetype *archetype, uint32_t rows)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < archetype->column_count; i++)
        bytes += quern__column_bytes(archetype->columns[i].size_bytes, rows);
    return quern__layout_bytes(bytes, rows);
}

/* Returns how many of `rows` rows must go so that the part of each chunk in the columns of a run ends with a cache line:
 * then threads that process neighbouring chunks share none. Returns 0 if it would cost more than an eighth. */
static uint32_t rows_beyond_lines(const quern__archetype *archetype, uint32_t rows)
{
    uint32_t sizes = (uint32_t)sizeof(quern_entity);
    for (uint32_t i = 0; i < archetype->column_count; i++)
        sizes |= archetype->columns[i].size_bytes;
    const uint32_t divisor = sizes & (0 - sizes); /* largest power of two that divides every size */
    const uint32_t multiple = divisor < QUERN__CACHE_LINE_BYTES ? QUERN__CACHE_LINE_BYTES / divisor : 1;
    return rows % multiple <= rows / 8 ? rows % multiple : 0;
}

/* Returns the largest number of rows that fit in a chunk of which `unused_bytes` are not available, less those of
 * rows_beyond_lines. */
static uint32_t find_row_capacity(const quern__archetype *archetype, size_t unused_bytes)
{
    size_t row_bytes = sizeof(quern_entity);
    for (uint32_t i = 0; i < archetype->column_count; i++)
        row_bytes += archetype->columns[i].size_bytes;
    size_t chunk_bytes = QUERN__CHUNK_BYTES - unused_bytes;
    uint32_t rows = (uint32_t)((chunk_bytes - QUERN__CHUNK_UNUSED_BYTES) / row_bytes);
    while (rows > 0 && layout_bytes(archetype, rows) > chunk_bytes)
        rows--;
    if (QUERN__UNLIKELY(rows > quern__chunk_policies.most_rows)) return quern__chunk_policies.most_rows;
    return rows - rows_beyond_lines(archetype, rows);
}

/* Sets the row capacity and returns the colour of the archetype (see the top of archetype.h): the number of
 * bytes by which the parts of its chunks begin later. Returns 0 if the colour would cost more than an eighth
 * of the rows, or, from archetype LATE_INDEX on, more than a third. */
static size_t find_colour_bytes(quern__archetype *archetype)
{
    const bool is_late = archetype->layout_index >= LATE_INDEX;
    const uint32_t colour_count = is_late ? LATE_COLOUR_COUNT : COLOUR_COUNT;
    const uint32_t colour = archetype->layout_index / COLOUR_STEP % colour_count;
    const uint32_t unused_lines = is_late ? colour_count : colour;
    const uint32_t most = find_row_capacity(archetype, 0);
    const uint32_t rows = find_row_capacity(archetype, (size_t)unused_lines * QUERN__PART_ALIGNMENT_BYTES);
    const bool is_cheap = rows >= most - most / (is_late ? 3 : 8);
    archetype->shape.row_capacity = is_cheap ? rows : most;
    return is_cheap ? (size_t)colour * QUERN__PART_ALIGNMENT_BYTES : 0;
}

/* Sets the offset of one part, a column or the handles. Returns the offset of the part after it. */
static size_t place_part(quern__archetype *archetype, uint32_t part, size_t offset_bytes)
{
    if (part == archetype->column_count) {
        archetype->entities_offset_bytes = (uint16_t)offset_bytes;
        return offset_bytes + quern__column_bytes(sizeof(quern_entity), archetype->shape.row_capacity);
    }
    quern__column *column = &archetype->columns[part];
    column->offset_bytes = (uint16_t)offset_bytes;
    return offset_bytes + quern__column_bytes(column->size_bytes, archetype->shape.row_capacity);
}

static quern_result lay_out(quern__archetype *archetype)
{
    size_t offset_bytes = QUERN__CHUNK_UNUSED_BYTES + find_colour_bytes(archetype);
    if (archetype->shape.row_capacity == 0)
        return quern__fail(
            QUERN_ERROR_COMPONENT_TOO_LARGE,
            "the %u components of the entity need %zu bytes of chunk together; a chunk has %d",
            archetype->component_count, layout_bytes(archetype, 1), QUERN__CHUNK_BYTES);
    uint32_t part_count = archetype->column_count + 1; /* the columns, then the handles */
    uint32_t first_part = archetype->layout_index / (COLOUR_STEP * LATE_COLOUR_COUNT);
    for (uint32_t i = 0; i < part_count; i++)
        offset_bytes = place_part(archetype, (first_part + i) % part_count, offset_bytes);
    return QUERN_OK;
}

static QUERN__SLOW_PATH uint32_t list_copies(const quern__archetype *archetype, quern__copy *out_copies)
{
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        out_copies[i] = (quern__copy){.source_offset_bytes = column->run_offset_bytes,
                                      .target_offset_bytes = column->run_offset_bytes,
                                      .size_bytes = column->size_bytes};
    }
    return archetype->column_count;
}

void quern__archetype_set_shift(quern__archetype *archetype, uint32_t shift)
{
    archetype->shape = quern__run_shape_make(archetype->shape.row_capacity, shift);
    archetype->handles_offset_bytes = (uint32_t)archetype->entities_offset_bytes << shift;
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        quern__column *column = &archetype->columns[i];
        column->run_offset_bytes = (uint32_t)column->offset_bytes << shift;
        column->row_mask = archetype->shape.row_mask;
        archetype->column_positions[column->component_index] =
            quern__column_position_make(column->row_mask, column->run_offset_bytes, column->size_bytes);
    }
    quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
    if (archetype->relocation != NULL)
        quern__copy_rewrite(archetype->relocation, copies, list_copies(archetype, copies));
}

static bool compile_relocation(quern__archetype *archetype, const quern_allocator *allocator)
{
    if (!archetype->is_plain) return true;
    quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count = list_copies(archetype, copies);
    archetype->relocation = quern__copy_compile(allocator, copies, count);
    return archetype->relocation != NULL;
}

/* Fills the columns, the map from component to column, and the flags that depend on the types. */
static void fill_columns(quern__archetype *archetype, const quern__components *components)
{
    memset(archetype->column_of, QUERN__COLUMN_NONE, archetype->column_of_count);
    memset(archetype->column_positions, 0,
           archetype->column_of_count * sizeof *archetype->column_positions);
    uint32_t columns = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        uint16_t index = archetype->component_indices[i];
        const quern__type *type = quern__components_type(components, index);
        archetype->column_of[index] = type->size_bytes ? (uint8_t)columns : (uint8_t)QUERN__COLUMN_TAG;
        if (type->size_bytes == 0) continue;
        archetype->has_handles |=
            type->has_entity_fields && !quern__components_is_managed(components, index);
        archetype->has_destroy |= type->hooks.destroy != NULL;
        archetype->is_plain &= type->hooks.destroy == NULL && type->hooks.move == NULL &&
                               type->size_bytes <= QUERN__COPY_MAX_BYTES;
        archetype->columns[columns++] = (quern__column){
            .type = type, .component_index = index, .size_bytes = (uint16_t)type->size_bytes};
    }
    archetype->column_count = columns;
}

/* Layout of an archetype's allocation: the structure with its column positions, then columns (at most one per
 * component), the component set, and the map column_of. */
typedef struct archetype_layout {
    size_t columns_offset, set_offset, map_offset, total_bytes;
} archetype_layout;

static archetype_layout layout_of(uint32_t component_count, uint32_t column_of_count)
{
    archetype_layout layout;
    size_t places_end = sizeof(quern__archetype) + column_of_count * sizeof(quern__column_position);
    layout.columns_offset = quern__align_up(places_end, _Alignof(quern__column));
    layout.set_offset = layout.columns_offset + component_count * sizeof(quern__column);
    layout.map_offset = layout.set_offset + component_count * sizeof(uint16_t);
    layout.total_bytes = layout.map_offset + column_of_count;
    return layout;
}

/* Adds the bit columns of components. They precede all others, so that their indices never change. */
static quern_result add_bit_columns(quern__archetype *archetype, const quern_allocator *allocator,
                                    const quern__components *components)
{
    quern_result result = QUERN_OK;
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++) {
            const uint32_t index = archetype->component_indices[i];
            if (quern__components_has_flag(components, index, 1u << flag))
                result =
                    quern__archetype_add_bit_column(archetype, allocator, (quern__bit_column){flag, index});
        }
    return result;
}

static bool is_filtered(const quern__components *components, const uint16_t *component_indices,
                        uint32_t component_count)
{
    for (uint32_t i = 0; i < component_count; i++)
        if (components->list.items[component_indices[i]]->filter_count > 0) return true;
    return false;
}

static bool start_versions(quern__archetype *archetype, const quern_allocator *allocator,
                           const quern__components *components)
{
    quern__row_lane lanes[QUERN_MAX_ENTITY_COMPONENTS];
    uint32_t lane_count = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint32_t index = archetype->component_indices[i];
        if (quern__components_has_flag(components, index, QUERN__FLAG_ROW_CHANGES))
            lanes[lane_count++] =
                (quern__row_lane){index, quern__archetype_version_index(archetype, index)};
    }
    const uint32_t stride = 1 + archetype->component_count;
    if (!quern__versions_start(&archetype->versions, allocator, archetype->slot_capacity, stride))
        return false;
    if (lane_count == 0) return true;
    archetype->row_versions =
        quern__row_versions_create(allocator, lanes, lane_count, stride, &archetype->shape,
                                   archetype->held_count, *archetype->versions.clock);
    if (archetype->row_versions != NULL) return true;
    quern__versions_release(&archetype->versions, allocator);
    return false;
}

quern_result quern__archetype_start_versions(quern__archetype *archetype, const quern_allocator *allocator,
                                             const quern__components *components)
{
    if (archetype->versions.items != NULL || start_versions(archetype, allocator, components)) {
        quern__archetype_update_tracking(archetype);
        return QUERN_OK;
    }
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the change versions of %u chunks",
                       archetype->slot_capacity);
}

quern_result quern__archetype_add_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                             quern__bit_column bit_column)
{
    if (!quern__row_bits_add_column(&archetype->row_bits, allocator, bit_column, &archetype->shape,
                                    archetype->slot_capacity))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a bit for each row of %u chunks",
                           archetype->slot_capacity);
    quern__archetype_update_tracking(archetype);
    return QUERN_OK;
}

void quern__archetype_remove_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                        quern__bit_column bit_column)
{
    quern__row_bits_remove_column(&archetype->row_bits, allocator, bit_column);
    quern__archetype_update_tracking(archetype);
}

/* The sentinel slots[-1]. Its row count exceeds the capacity of any chunk. */
static const quern__chunk_slot full_slot = {.row_count = UINT32_MAX};

static quern__archetype *archetype_allocate(const quern_allocator *allocator,
                                            const uint16_t *component_indices, uint32_t component_count)
{
    uint32_t column_of_count = component_count ? component_indices[component_count - 1] + 1u : 0;
    archetype_layout layout = layout_of(component_count, column_of_count);
    char *memory = quern__allocate(allocator, layout.total_bytes, ARRAY_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    quern__archetype *archetype = (quern__archetype *)(void *)memory;
    *archetype = (quern__archetype){
        .index = QUERN__UNORDERED,
        .component_count = component_count,
        .is_plain = true,
        .columns = (quern__column *)(void *)(memory + layout.columns_offset),
        .component_indices = (uint16_t *)(void *)(memory + layout.set_offset),
        .column_of = (uint8_t *)(memory + layout.map_offset),
        .column_of_count = column_of_count,
        .first_slots = {full_slot},
        .slots = archetype->first_slots + 1,
        .last_slot = archetype->first_slots,
        .slot_capacity = 1,
    };
    if (component_count > 0)
        memcpy(archetype->component_indices, component_indices,
               component_count * sizeof *component_indices);
    return archetype;
}

quern_result quern__archetype_create(const quern_allocator *allocator, const quern__components *components,
                                     const uint16_t *component_indices, uint32_t component_count,
                                     uint32_t layout_index, const uint64_t *clock,
                                     quern__archetype **out_archetype)
{
    quern__archetype *archetype = archetype_allocate(allocator, component_indices, component_count);
    if (archetype == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for an archetype of %u components",
                           component_count);
    archetype->layout_index = layout_index;
    archetype->versions.clock = clock;
    fill_columns(archetype, components);
    archetype->has_fast_leave = archetype->is_plain;
    quern_result result = lay_out(archetype);
    if (result == QUERN_OK) quern__archetype_set_shift(archetype, 0);
    if (result == QUERN_OK && !compile_relocation(archetype, allocator))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to move the rows of an archetype");
    if (result == QUERN_OK) result = add_bit_columns(archetype, allocator, components);
    if (result == QUERN_OK && is_filtered(components, component_indices, component_count))
        result = quern__archetype_start_versions(archetype, allocator, components);
    if (result != QUERN_OK)
        quern__archetype_release(archetype, allocator);
    else
        *out_archetype = archetype;
    return result;
}

static void release_slots(quern__archetype *archetype, const quern_allocator *allocator)
{
    if (archetype->slots != archetype->first_slots + 1)
        quern__release(allocator, archetype->slots - 1,
                       (archetype->slot_capacity + 1) * sizeof *archetype->slots, ARRAY_ALIGNMENT_BYTES);
}

void quern__archetype_release(quern__archetype *archetype, const quern_allocator *allocator)
{
    release_slots(archetype, allocator);
    quern__map_release(&archetype->plans, allocator);
    quern__copy_release(allocator, archetype->relocation);
    quern__versions_release(&archetype->versions, allocator);
    quern__row_versions_release(archetype->row_versions, allocator);
    quern__row_bits_release(&archetype->row_bits, allocator);
    archetype_layout layout = layout_of(archetype->component_count, archetype->column_of_count);
    quern__release(allocator, archetype, layout.total_bytes, ARRAY_ALIGNMENT_BYTES);
}

void quern__archetype_destroy_values(quern__archetype *archetype)
{
    if (!archetype->has_destroy) return;
    for (uint32_t c = 0; c < archetype->column_count; c++) {
        const quern__column *column = &archetype->columns[c];
        if (column->type->hooks.destroy == NULL) continue;
        for (uint32_t i = 0; i < archetype->chunk_count; i++) {
            const quern__chunk_slot *slot = &archetype->slots[i];
            quern__type_destroy(column->type, quern__column_value(column, quern__slot_chunk(slot), 0),
                                slot->row_count);
        }
    }
}

/* ----------------------------------------------------------------------------------- room for rows */

static bool grow_slots(quern__archetype *archetype, const quern_allocator *allocator, uint32_t wanted)
{
    if (wanted <= archetype->slot_capacity) return true;
    uint32_t capacity = archetype->slot_capacity < 4 ? 4 : 2 * archetype->slot_capacity;
    if (capacity < wanted) capacity = wanted;
    if (!quern__versions_grow(&archetype->versions, allocator, capacity) ||
        !quern__row_bits_grow(&archetype->row_bits, allocator, capacity))
        return false;
    quern__chunk_slot *slots =
        quern__allocate(allocator, (capacity + 1) * sizeof *slots, ARRAY_ALIGNMENT_BYTES);
    if (slots == NULL) return false;
    memcpy(slots, archetype->slots - 1, (archetype->held_count + 1) * sizeof *slots);
    release_slots(archetype, allocator);
    archetype->slots = slots + 1;
    archetype->last_slot = slots + archetype->chunk_count;
    archetype->slot_capacity = capacity;
    return true;
}

bool quern__archetype_make_slots(quern__archetype *archetype, const quern_allocator *allocator,
                                 uint32_t count)
{
    if (!grow_slots(archetype, allocator, count) ||
        !quern__row_versions_reserve(archetype->row_versions, allocator, count))
        return false;
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (listener->keeps_row_data && !listener->events->hold(listener, allocator, count)) return false;
    return true;
}

void quern__archetype_add_run(quern__archetype *archetype, char *run)
{
    const quern__run_shape *shape = &archetype->shape;
    quern__run_assign(run, shape->shift, archetype, archetype->held_count);
    for (uint32_t i = 0; i < 1u << shape->shift; i++)
        archetype->slots[archetype->held_count++] =
            (quern__chunk_slot){.run = run, .first_row = i * shape->row_capacity};
}

static bool allocate_run(quern__archetype *archetype, quern__slabs *slabs, const quern_allocator *allocator)
{
    if (!quern__archetype_make_slots(archetype, allocator,
                                     archetype->held_count + (1u << archetype->shape.shift)))
        return false;
    char *run = quern__run_allocate(slabs, allocator, archetype->shape.shift);
    if (run == NULL) return false;
    if (archetype->held_count == 0 && archetype->index != QUERN__UNORDERED)
        quern__bitset_add(slabs->holders.items, archetype->index);
    quern__archetype_add_run(archetype, run);
    return true;
}

/* Releases the last runs of which none of the first `keep_count` chunks is a part. */
static void release_runs(quern__archetype *archetype, quern__slabs *slabs, const quern_allocator *allocator,
                         uint32_t keep_count)
{
    const uint32_t shift = archetype->shape.shift;
    if (keep_count < archetype->asked_count) keep_count = archetype->asked_count;
    while (archetype->held_count >= keep_count + (1u << shift)) {
        archetype->held_count -= 1u << shift;
        quern__run_release(slabs, allocator, archetype->slots[archetype->held_count].run, shift);
    }
    if (archetype->held_count == 0 && archetype->index != QUERN__UNORDERED)
        quern__bitset_remove(slabs->holders.items, archetype->index);
}

/* Returns how many chunks beyond those with rows an archetype may hold: one run, or as many chunks as it had to add. */
static uint32_t spare_count(const quern__archetype *archetype)
{
    if (archetype->shape.shift > 0) return 1u << archetype->shape.shift;
    if (archetype->chunk_count > QUERN__RUN_CHUNKS) return QUERN__RUN_CHUNKS;
    return archetype->chunk_count > 0 ? archetype->chunk_count : 1;
}

void quern__archetype_trim(quern__archetype *archetype, quern__slabs *slabs,
                           const quern_allocator *allocator)
{
    uint32_t keep = archetype->chunk_count + spare_count(archetype);
    if (keep >= archetype->held_count) return;
    uint64_t promised = quern__archetype_row_count(archetype) + archetype->reserved_count;
    uint32_t needed =
        (uint32_t)((promised + archetype->shape.row_capacity - 1) / archetype->shape.row_capacity);
    release_runs(archetype, slabs, allocator, needed > keep ? needed : keep);
}

quern_result quern__archetype_reserve_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                             const quern_allocator *allocator, uint32_t count)
{
    uint32_t held_before = archetype->held_count;
    while (quern__archetype_available_count(archetype) < count) {
        if (allocate_run(archetype, slabs, allocator)) continue;
        release_runs(archetype, slabs, allocator, held_before);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for %u more rows of %u components", count,
                           archetype->component_count);
    }
    archetype->reserved_count += count;
    return QUERN_OK;
}

void quern__archetype_release_spare_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                           const quern_allocator *allocator)
{
    release_runs(archetype, slabs, allocator, archetype->chunk_count);
}

/* Updates the flags of an archetype after a listener was added or removed, and drops its cached edges, because these may
 * need a reservation now, or need none any more. */
static void update_flags(quern__archetype *archetype)
{
    archetype->has_fast_leave = archetype->is_plain;
    archetype->has_hooks = false;
    for (const quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next) {
        if (listener->needs_room || listener->is_hook) archetype->has_fast_leave = false;
        archetype->has_hooks |= listener->is_hook;
    }
    memset(archetype->edges, 0, sizeof archetype->edges);
    quern__archetype_update_tracking(archetype);
}

void quern__row_listener_add(quern__row_listener *listener)
{
    quern__row_listener **link = &listener->archetype->first_listener;
    while (*link != NULL && (*link)->position < listener->position)
        link = &(*link)->next;
    listener->next = *link;
    *link = listener;
    update_flags(listener->archetype);
}

void quern__row_listener_remove(quern__row_listener *listener)
{
    quern__row_listener **link = &listener->archetype->first_listener;
    while (*link != listener)
        link = &(*link)->next;
    *link = listener->next;
    update_flags(listener->archetype);
}

void quern__row_listeners_release(quern__archetype *archetype, const quern_allocator *allocator)
{
    while (archetype->first_listener != NULL) {
        quern__row_listener *listener = archetype->first_listener;
        archetype->first_listener = listener->next;
        listener->events->release(listener, allocator);
    }
}

bool quern__row_listeners_call_hooks(const quern__archetype *archetype)
{
    for (const quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (listener->needs_room && listener->calls_hooks) return true;
    return false;
}

enum { COPY_PLAN_ALIGNMENT_BYTES = 8 };

static bool target_lacks(const quern__copy *copy)
{
    return copy->target_offset_bytes == 0;
}

static bool is_copy_before(const quern__copy *a, const quern__copy *b)
{
    return target_lacks(a) != target_lacks(b) ? target_lacks(b) : a->size_bytes < b->size_bytes;
}

/* Sorts by value size, with the columns that the target lacks at the end. */
static void sort_by_size(quern__copy *copies, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const quern__copy copy = copies[i];
        uint32_t index = i;
        for (; index > 0 && is_copy_before(&copy, &copies[index - 1]); index--)
            copies[index] = copies[index - 1];
        copies[index] = copy;
    }
}

/* Output state while a plan is written, or while its words are only counted. */
typedef struct plan_writer {
    quern__copy_word *out; /* NULL: words are only counted */
    uint32_t count;
} plan_writer;

static void put(plan_writer *to, quern__copy_word word)
{
    if (to->out != NULL) to->out[to->count] = word;
    to->count++;
}

/* Consecutive columns with equal value sizes. */
typedef struct column_set {
    const quern__copy *copies;
    uint32_t count;
} column_set;

/* Writes a group that copies the values from byte `begin_bytes` on, in as many steps of `step_bytes` as fit. Writes
 * nothing if no step fits. Returns the offset of the first byte that the group does not copy. */
static uint32_t put_steps(plan_writer *to, const column_set *columns, uint32_t begin_bytes,
                          uint32_t step_bytes)
{
    const uint32_t step_count = (columns->copies->size_bytes - begin_bytes) / step_bytes;
    const uint32_t end_bytes = begin_bytes + step_count * step_bytes;
    if (step_count == 0) return end_bytes;
    put(to, (quern__copy_word){.group = {.value_bytes = (uint8_t)columns->copies->size_bytes,
                                         .step_bytes = (uint8_t)step_bytes,
                                         .step_count = (uint16_t)(columns->count * step_count)}});
    for (uint32_t i = 0; i < columns->count; i++)
        for (uint32_t at = begin_bytes; at < end_bytes; at += step_bytes) {
            const quern__copy *copy = &columns->copies[i];
            const uint32_t target_offset_bytes =
                target_lacks(copy) ? copy->source_offset_bytes : copy->target_offset_bytes;
            put(to, (quern__copy_word){.step = {.source_offset_bytes = copy->source_offset_bytes + at,
                                                .target_offset_bytes = target_offset_bytes + at}});
        }
    return end_bytes;
}

static void put_columns(plan_writer *to, const column_set *columns)
{
    static const uint32_t steps_bytes[] = {16, 12, 8, 4, 1};
    uint32_t begin_bytes = 0;
    for (uint32_t i = 0; i < QUERN__COUNT_OF(steps_bytes); i++)
        begin_bytes = put_steps(to, columns, begin_bytes, steps_bytes[i]);
}

static void put_half(plan_writer *to, const quern__copy *copies, uint32_t count)
{
    for (uint32_t i = 0, group_count; i < count; i += group_count) {
        for (group_count = 1; i + group_count < count; group_count++)
            if (copies[i + group_count].size_bytes != copies[i].size_bytes) break;
        put_columns(to, &(column_set){.copies = copies + i, .count = group_count});
    }
    put(to, (quern__copy_word){.group = {.step_count = 0}});
}

/* Writes the plan to `out`, or only counts its words if `out` is NULL. Returns the number of words. */
static uint32_t write_plan(const quern__copy *copies, uint32_t count, quern__copy_word *out)
{
    plan_writer writer = {.out = out};
    uint32_t leaving_count = 0;
    while (leaving_count < count && !target_lacks(&copies[leaving_count]))
        leaving_count++;
    put_half(&writer, copies, leaving_count);
    put_half(&writer, copies + leaving_count, count - leaving_count);
    return writer.count;
}

quern__copy_word *quern__copy_compile(const quern_allocator *allocator, quern__copy *copies, uint32_t count)
{
    sort_by_size(copies, count);
    const uint32_t word_count = write_plan(copies, count, NULL);
    quern__copy_word *plan =
        quern__allocate(allocator, word_count * sizeof *plan, COPY_PLAN_ALIGNMENT_BYTES);
    if (plan != NULL) write_plan(copies, count, plan);
    return plan;
}

void quern__copy_rewrite(quern__copy_word *plan, quern__copy *copies, uint32_t count)
{
    sort_by_size(copies, count);
    write_plan(copies, count, plan);
}

void quern__copy_release(const quern_allocator *allocator, quern__copy_word *plan)
{
    if (plan == NULL) return;
    uint32_t word_count = 0;
    for (uint32_t ends = 0; ends < 2; word_count++) {
        ends += plan[word_count].group.step_count == 0;
        word_count += plan[word_count].group.step_count;
    }
    quern__release(allocator, plan, word_count * sizeof *plan, COPY_PLAN_ALIGNMENT_BYTES);
}

/* Each copy repeats all values written so far, which is faster than one copy per value. */
void quern__copy_to_many(char *targets, const char *value, size_t size_bytes, uint32_t count)
{
    const size_t bytes = size_bytes * count;
    memcpy(targets, value, size_bytes);
    for (size_t written = size_bytes, more; written < bytes; written += more) {
        more = written < bytes - written ? written : bytes - written;
        memcpy(targets + written, targets, more);
    }
}
