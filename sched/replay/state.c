/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The state of a world by which a replay is compared: writes it as bytes, reads it, and reports the first difference. */

#include "sched/replay/replay_internal.h"

#include "core/base/containers.h"
#include "core/check/world_hash.h"
#include "core/storage/type_internal.h"

#include <inttypes.h>

/* -------------------------------------------------------------------------------------------- types */

/* The types of a recording, and the check that a world has the same. Types are identified by their indices: the order
 * of registration determines the order of columns, and so affects hashes. */

static const quern__type *type_of(const quern_world *world, uint32_t kind, uint32_t index)
{
    return kind == QUERN__REPLAY_COMPONENT ? quern__components_type(&world->storage.components, index)
                                           : &world->resources.list.items[index].type;
}

static uint32_t type_flags_of(const quern_world *world, uint32_t kind, uint32_t index)
{
    if (kind != QUERN__REPLAY_COMPONENT) return 0;
    const quern__component *component = world->storage.components.list.items[index];
    return quern__column_flags_to_replay(component->type.flags) |
           (component->managed.relation != NULL ? QUERN__REPLAY_IS_RELATION : 0u) |
           quern__component_required_hash(component) << QUERN__REPLAY_REQUIRED_SHIFT;
}

static void write_type(const quern_world *world, uint32_t kind, uint32_t index, quern__byte_writer *bytes)
{
    const quern__type *type = type_of(world, kind, index);
    quern__write_u32(bytes, kind);
    quern__write_u32(bytes, type->size_bytes);
    quern__write_u32(bytes, type->alignment_bytes);
    quern__write_u32(bytes, type_flags_of(world, kind, index));
    quern__write_u32(bytes, type->field_count);
    quern__write_schema(bytes, quern__replay_schema, type->name, type->fields, type->field_count);
}

static void types_write(const quern_world *world, quern__type_counts listed, quern__type_counts end,
                        quern__byte_writer *bytes)
{
    quern__write_u32(bytes, end.component_count - listed.component_count + end.resource_count -
                                listed.resource_count);
    for (uint32_t i = listed.component_count; i < end.component_count; i++)
        write_type(world, QUERN__REPLAY_COMPONENT, i, bytes);
    for (uint32_t i = listed.resource_count; i < end.resource_count; i++)
        write_type(world, QUERN__REPLAY_RESOURCE, i, bytes);
}

/* ---------------------------------------------------------------------------------------- comparing */

/* A recorded type. */
typedef struct recorded_type {
    uint32_t kind, size_bytes, alignment_bytes, flags, field_count;
    quern__schema schema;
} recorded_type;

static const char *kind_name(const recorded_type *recorded)
{
    return recorded->kind == QUERN__REPLAY_COMPONENT ? "component" : "resource";
}

static quern_result check_type(const quern_world *world, const recorded_type *recorded, uint32_t index,
                               uint32_t count)
{
    const bool is_component = recorded->kind == QUERN__REPLAY_COMPONENT;
    const char *name = recorded->schema.name;
    if (index >= count)
        return quern__fail(is_component ? QUERN_ERROR_UNKNOWN_COMPONENT : QUERN_ERROR_UNKNOWN_RESOURCE,
                           "%s '%s' was recorded, and the world does not have it: register it",
                           kind_name(recorded), name);
    const quern__type *type = type_of(world, recorded->kind, index);
    if (strcmp(name, type->name) != 0)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "%s number %u was '%s' when it was recorded, and is '%s': register the same, in "
                           "the same order",
                           kind_name(recorded), index, name, type->name);
    const uint32_t flags = type_flags_of(world, recorded->kind, index);
    if (recorded->size_bytes != type->size_bytes || recorded->alignment_bytes != type->alignment_bytes)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "%s '%s' had %u bytes, aligned to %u, when it was recorded, and has %u, aligned "
                           "to %u: register it as it was recorded",
                           kind_name(recorded), recorded->schema.name, recorded->size_bytes,
                           recorded->alignment_bytes, type->size_bytes, type->alignment_bytes);
    if (recorded->field_count != type->field_count || recorded->flags != flags)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "%s '%s' was registered differently when it was recorded: with other flags or "
                           "required components, or with %u described fields, not %u",
                           kind_name(recorded), recorded->schema.name, recorded->field_count,
                           type->field_count);
    const uint32_t i = quern__type_different_field(type, recorded->schema.fields);
    if (i == type->field_count) return QUERN_OK;
    const quern_field *recorded_field = &recorded->schema.fields[i], *current_field = &type->fields[i];
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%s '%s' has other fields than when it was recorded: '%s' was at byte %u, and '%s' is "
        "at byte %u",
        kind_name(recorded), recorded->schema.name, recorded_field->name, recorded_field->offset_bytes,
        current_field->name, current_field->offset_bytes);
}

/* Reads types and checks that the world has the same types with the same indices. Adds their number to `listed`. Fails
 * with BAD_ARCHIVE, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE or LAYOUT_MISMATCH. */
static quern_result types_check(const quern_world *world, quern__byte_reader *reader, uint64_t number,
                                quern__type_counts *listed)
{
    const quern__type_counts known = quern__types_of_world(world);
    for (uint32_t left = quern__read_u32(reader); left > 0; left--) {
        recorded_type type;
        type.kind = quern__read_u32(reader);
        type.size_bytes = quern__read_u32(reader);
        type.alignment_bytes = quern__read_u32(reader);
        type.flags = quern__read_u32(reader);
        type.field_count = quern__read_u32(reader);
        quern__read_schema(reader, quern__replay_schema, type.field_count, &type.schema);
        if (!(!reader->has_failed &&
              (type.kind == QUERN__REPLAY_COMPONENT || type.kind == QUERN__REPLAY_RESOURCE)))
            return quern__replay_fail_invalid(number, "its types cannot be read");
        const bool is_component = type.kind == QUERN__REPLAY_COMPONENT;
        uint32_t *index = is_component ? &listed->component_count : &listed->resource_count;
        quern_result result =
            check_type(world, &type, *index, is_component ? known.component_count : known.resource_count);
        if (result != QUERN_OK) return result;
        ++*index;
    }
    return reader->has_failed ? quern__replay_fail_invalid(number, "its types cannot be read") : QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- writing */

static void write_pair(quern__byte_writer *bytes, uint64_t index, uint64_t hash)
{
    quern__write_u64(bytes, index);
    quern__write_u64(bytes, hash);
}

static uint64_t hash_handles(const quern__archetype *archetype, uint32_t first_handle_high)
{
    uint64_t hash = 0;
    for (uint32_t k = 0; k < archetype->chunk_count; k++) {
        const quern_entity *handles =
            quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[k]));
        for (uint32_t row = 0; row < archetype->slots[k].row_count; row++)
            hash = quern__hash_word(hash, quern__entity_to_relative(handles[row], first_handle_high));
    }
    return hash;
}

/* Hashes a column. Writes one hash per row to row_hashes unless it is NULL. */
static uint64_t hash_column(const quern__archetype *archetype, const quern__column *column,
                            uint32_t first_handle_high, char *row_hashes)
{
    uint64_t hash = 0;
    for (uint32_t k = 0; k < archetype->chunk_count; k++)
        for (uint32_t row = 0; row < archetype->slots[k].row_count; row++) {
            const void *value = quern__column_value(column, quern__slot_chunk(&archetype->slots[k]), row);
            const uint64_t row_hash = quern__type_hash(column->type, 0, value, first_handle_high);
            const uint32_t short_hash = (uint32_t)row_hash;
            hash = quern__hash_word(hash, row_hash);
            if (row_hashes == NULL) continue;
            memcpy(row_hashes, &short_hash, sizeof short_hash);
            row_hashes += sizeof short_hash;
        }
    return hash;
}

/* Hashes which rows have the component's row flags. Returns 0 if no row has any. */
static uint64_t hash_row_flags(const quern__archetype *archetype, uint32_t component_index)
{
    uint64_t hash = 0;
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++) {
        /* Continues a hash with the rows that have the bit of a bit column; no such row leaves the
             * hash unchanged. */
        const quern__bit_column which = (quern__bit_column){flag, component_index};
        const uint32_t bit_column = quern__row_bits_find_column(archetype->row_bits, which.kind, which.id);
        for (uint32_t k = 0; bit_column != QUERN__NO_BIT_COLUMN && k < archetype->chunk_count; k++) {
            if (quern__bit_column_count(archetype->row_bits, bit_column, k) == 0) continue;
            const uint64_t *words = quern__bit_column_words(archetype->row_bits, bit_column, k);
            hash = quern__hash_word(hash, (uint64_t)which.kind << 32 | k);
            for (uint32_t word = 0; word * 64 < archetype->slots[k].row_count; word++)
                hash = quern__hash_word(hash, words[word]);
        }
    }
    return hash;
}

/* Returns the column of the i-th component, or NULL for a tag. */
static const quern__column *column_of(const quern__archetype *archetype, uint32_t i)
{
    const uint32_t column = quern__archetype_column(archetype, archetype->component_indices[i]);
    return column != QUERN__COLUMN_TAG ? &archetype->columns[column] : NULL;
}

static bool write_disabled(const quern__archetype *archetype, quern__byte_writer *bytes)
{
    const size_t begin = bytes->count;
    bool has_disabled = false;
    for (uint32_t i = 0; archetype->row_bits != NULL && i < archetype->component_count; i++) {
        const uint64_t hash = hash_row_flags(archetype, archetype->component_indices[i]);
        has_disabled |= hash != 0;
        quern__write_u64(bytes, hash);
    }
    if (!has_disabled) bytes->count = begin;
    return has_disabled;
}

/* Writes an archetype. One pass over the values computes the hashes of rows and of whole columns, which have
 * separate places in the format. */
static void write_archetype(const quern__archetype *archetype, uint32_t first_handle_high,
                            bool has_entities, quern__byte_writer *bytes)
{
    const uint64_t rows = quern__archetype_row_count(archetype);
    quern__write_u32(bytes, archetype->component_count);
    const size_t flags_at = bytes->count;
    quern__write_u32(bytes, 0);
    quern__write_u64(bytes, rows);
    quern__write_u64(bytes, hash_handles(archetype, first_handle_high));
    for (uint32_t i = 0; i < archetype->component_count; i++)
        quern__write_u32(bytes, archetype->component_indices[i] |
                                    (column_of(archetype, i) == NULL ? QUERN__REPLAY_TAG_BIT : 0u));
    const size_t values_at = bytes->count;
    quern__write_room(bytes, (size_t)archetype->component_count * sizeof(uint64_t));
    const uint32_t flags = write_disabled(archetype, bytes) ? QUERN__REPLAY_SOME_DISABLED : 0;
    quern__write_back(bytes, flags_at, &flags, sizeof flags);
    if (has_entities) {
        for (uint32_t k = 0; k < archetype->chunk_count; k++) {
            const quern_entity *handles =
                quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[k]));
            const uint32_t count = archetype->slots[k].row_count;
            char *to = quern__write_room(bytes, (size_t)count * sizeof(uint64_t));
            for (uint32_t row = 0; to != NULL && row < count; row++, to += sizeof(uint64_t)) {
                const uint64_t handle = quern__entity_to_relative(handles[row], first_handle_high);
                memcpy(to, &handle, sizeof handle);
            }
        }
    }
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__column *column = column_of(archetype, i);
        char *row_hashes = has_entities && column != NULL
                               ? quern__write_room(bytes, (size_t)rows * sizeof(uint32_t))
                               : NULL;
        const uint64_t hash =
            column != NULL ? hash_column(archetype, column, first_handle_high, row_hashes) : 0;
        quern__write_back(bytes, values_at + i * sizeof hash, &hash, sizeof hash);
    }
}

static void write_archetypes(const quern_world *world, bool has_entities, quern__byte_writer *bytes)
{
    const quern__storage *storage = &world->storage;
    const size_t count_at = bytes->count;
    uint32_t count = 0;
    quern__write_u32(bytes, 0);
    for (uint32_t i = 0; i < storage->archetypes.count && !bytes->has_failed; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->chunk_count == 0) continue;
        write_archetype(archetype, storage->entities.first_handle_high, has_entities, bytes);
        count++;
    }
    quern__write_back(bytes, count_at, &count, sizeof count);
}

void quern__state_write(const quern_world *world, const quern__state *head, quern__type_counts listed,
                        quern__type_counts end, quern__byte_writer *bytes)
{
    quern__byte_writer_clear(bytes);
    const uint32_t flags = head->flags;
    quern__write_u64(bytes, head->frame);
    quern__write_u32(bytes, head->result);
    quern__write_u32(bytes, flags);
    quern__write_u64(bytes, quern_world_hash(world));
    types_write(world, listed, end, bytes);
    if (flags == 0 || bytes->has_failed) return;
    quern__write_u64(bytes, quern__hash_slots(&world->storage.entities, 0));
    quern__write_u64(bytes, quern__hash_entity_names(&world->storage, 0));
    const quern__storage *storage = &world->storage;
    size_t count_at = bytes->count;
    uint32_t count = 0;
    quern__write_u32(bytes, 0);
    for (uint32_t i = 0; i < storage->relations->list.count; i++) {
        const quern__relation *relation = storage->relations->list.items[i];
        if (relation->component_index >= end.component_count) continue;
        write_pair(bytes, relation->component_index,
                   quern__hash_edges(&relation->edges, 0, quern__hash_links(&relation->links, 0, 0)));
        count++;
    }
    quern__write_back(bytes, count_at, &count, sizeof count);
    const uint32_t first_handle_high = world->storage.entities.first_handle_high;
    count_at = bytes->count;
    count = 0;
    quern__write_u32(bytes, 0);
    for (uint32_t i = 0; i < end.resource_count; i++) {
        const quern__resource *resource = &world->resources.list.items[i];
        if (resource->type.field_count == 0) continue; /* excluded like in quern_world_hash */
        write_pair(bytes, i, quern__type_hash(&resource->type, 0, resource->value, first_handle_high));
        count++;
    }
    quern__write_back(bytes, count_at, &count, sizeof count);
    write_archetypes(world, (flags & QUERN__STATE_HAS_ENTITIES) != 0, bytes);
}

/* ----------------------------------------------------------------------------------------- reading */

/* Reads the next archetype of a state. Returns false if it cannot be read; then the reader has failed. */
static bool state_next(quern__byte_reader *reader, uint32_t flags, quern__state_archetype *out_archetype)
{
    quern__state_archetype *archetype = out_archetype;
    *archetype = (quern__state_archetype){.component_count = quern__read_u32(reader)};
    const uint32_t count = archetype->component_count, archetype_flags = quern__read_u32(reader);
    archetype->rows = quern__read_u64(reader);
    archetype->handles_hash = quern__read_u64(reader);
    archetype->components = quern__read_items(reader, count, sizeof(uint32_t));
    archetype->values = quern__read_items(reader, count, sizeof(uint64_t));
    if ((archetype_flags & QUERN__REPLAY_SOME_DISABLED) != 0)
        archetype->disabled = quern__read_items(reader, count, sizeof(uint64_t));
    if ((flags & QUERN__STATE_HAS_ENTITIES) == 0 || reader->has_failed) return !reader->has_failed;
    archetype->handles = quern__read_items(reader, archetype->rows, sizeof(uint64_t));
    archetype->row_hashes = reader->at;
    for (uint32_t i = 0; i < count && !reader->has_failed; i++)
        if ((quern__load_u32(archetype->components, i) & QUERN__REPLAY_TAG_BIT) == 0)
            quern__read_items(reader, archetype->rows, sizeof(uint32_t));
    return !reader->has_failed;
}

/* Whether all components are registered, and in ascending order. */
static bool are_components_valid(const quern__state_archetype *archetype, uint32_t known_count)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint32_t component = quern__load_u32(archetype->components, i) & ~QUERN__REPLAY_TAG_BIT;
        if (component < least || component >= known_count) return false;
        least = component + 1;
    }
    return true;
}

static bool are_indices_known(const char *pairs, uint32_t count, uint32_t known_count)
{
    for (uint32_t i = 0; i < count; i++)
        if (quern__load_u64(pairs + (size_t)i * QUERN__PAIR_BYTES, 0) >= known_count) return false;
    return true;
}

static bool read_parts(quern__byte_reader *reader, const quern__type_counts *listed, quern__state *state)
{
    state->slots_hash = quern__read_u64(reader);
    state->names_hash = quern__read_u64(reader);
    state->relation_count = quern__read_u32(reader);
    state->relations = quern__read_items(reader, state->relation_count, QUERN__PAIR_BYTES);
    state->resource_count = quern__read_u32(reader);
    state->resources = quern__read_items(reader, state->resource_count, QUERN__PAIR_BYTES);
    state->archetype_count = quern__read_u32(reader);
    if (reader->has_failed ||
        !are_indices_known(state->relations, state->relation_count, listed->component_count) ||
        !are_indices_known(state->resources, state->resource_count, listed->resource_count))
        return false;
    state->archetypes = *reader;
    quern__state_archetype archetype;
    for (uint32_t i = 0; i < state->archetype_count; i++)
        if (!state_next(reader, state->flags, &archetype) ||
            !are_components_valid(&archetype, listed->component_count))
            return false;
    return true;
}

quern_result quern__state_read(const quern_world *world, const quern__byte_writer *bytes, uint64_t number,
                               quern__type_counts *listed, quern__state *out_state)
{
    quern__byte_reader reader = quern__replay_payload(bytes);
    quern__state *state = out_state;
    *state = (quern__state){.frame = quern__read_u64(&reader)};
    state->result = quern__read_u32(&reader);
    state->flags = quern__read_u32(&reader);
    state->hash = quern__read_u64(&reader);
    quern_result result = types_check(world, &reader, number, listed);
    if (result != QUERN_OK) return result;
    const bool has_valid_flags = state->flags == 0 || state->flags == QUERN__STATE_HAS_PARTS ||
                                 state->flags == (QUERN__STATE_HAS_PARTS | QUERN__STATE_HAS_ENTITIES);
    if (!has_valid_flags || (state->flags != 0 && !read_parts(&reader, listed, state)) ||
        !quern__is_fully_read(&reader))
        return quern__replay_fail_invalid(number, "its parts cannot be read");
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- comparison */

/* Compares the parts of two states and reports the first difference. The order is from causes to consequences: which
 * entities are alive and with which components, then values, relations, names, resources and handles. An additional
 * entity also changes the hashes of values, so the first difference found is the most informative one. */

typedef quern__state_archetype archetype_of_state;

/* ------------------------------------------------------------------------------------- report text */

static const char *component_name(const quern_world *world, uint32_t index)
{
    return quern__components_type(&world->storage.components, index)->name;
}

static void list_components(const quern_world *world, const archetype_of_state *archetype,
                            quern_replay_report *report)
{
    report->archetype[0] = '\0';
    for (uint32_t i = 0; i < archetype->component_count; i++)
        quern__append(
            report->archetype, sizeof report->archetype, "%s%s", i > 0 ? ", " : "",
            component_name(world, quern__load_u32(archetype->components, i) & ~QUERN__REPLAY_TAG_BIT));
}

/* Appends to the report's text, which begins with "frame 12: ". */
#define APPEND(report, ...) quern__append((report)->text, sizeof(report)->text, __VA_ARGS__)

static void begin_text(quern_replay_report *report)
{
    report->text[0] = '\0';
    if (report->is_before_first)
        APPEND(report, "before the first frame: ");
    else
        APPEND(report, "frame %" PRIu64 ": ", report->frame);
}

static void end_text(quern_replay_report *report)
{
    if (report->archetype[0] != '\0') APPEND(report, "; archetype: %s", report->archetype);
}

static void set_entity(const quern_world *world, uint64_t relative, quern_replay_report *report)
{
    const quern__entities *entities = &world->storage.entities;
    const quern_entity entity = quern__entity_from_relative(relative, entities->first_handle_high);
    report->entity_index = (uint32_t)relative;
    report->entity_use_count = (uint32_t)(relative >> 32);
    if (quern__entities_find(entities, entity) != NULL) report->entity = entity;
}

/* -------------------------------------------------------------------------------------- archetypes */

static bool have_same_components(const archetype_of_state *a, const archetype_of_state *b)
{
    return a->component_count == b->component_count &&
           memcmp(a->components, b->components, a->component_count * sizeof(uint32_t)) == 0;
}

static bool find_same(const quern__state *state, const archetype_of_state *wanted,
                      archetype_of_state *out_found)
{
    quern__byte_reader reader = state->archetypes;
    for (uint32_t i = 0; i < state->archetype_count; i++) {
        state_next(&reader, state->flags, out_found);
        if (have_same_components(out_found, wanted)) return true;
    }
    return false;
}

static bool has_handle(const archetype_of_state *archetype, uint64_t handle)
{
    for (uint64_t row = 0; row < archetype->rows; row++)
        if (quern__load_u64(archetype->handles, row) == handle) return true;
    return false;
}

static bool state_has_handle(const quern__state *state, uint64_t handle)
{
    quern__byte_reader reader = state->archetypes;
    archetype_of_state archetype;
    for (uint32_t i = 0; i < state->archetype_count; i++) {
        state_next(&reader, state->flags, &archetype);
        if (has_handle(&archetype, handle)) return true;
    }
    return false;
}

/* Finds the first entity in one state's archetype that the other state does not have in the same archetype. */
static bool find_lacking(const archetype_of_state *side, const archetype_of_state *other,
                         uint64_t *out_handle)
{
    for (uint64_t row = 0; row < side->rows; row++) {
        *out_handle = quern__load_u64(side->handles, row);
        const bool is_there = row < other->rows && quern__load_u64(other->handles, row) == *out_handle;
        if (!is_there && !has_handle(other, *out_handle)) return true;
    }
    return false;
}

static void report_rows(const quern_world *world, const quern__state *expected, const quern__state *actual,
                        const archetype_of_state *recorded, const archetype_of_state *current,
                        quern_replay_report *report)
{
    const bool has_entities = (expected->flags & QUERN__STATE_HAS_ENTITIES) != 0;
    uint64_t handle = 0;
    list_components(world, recorded, report);
    begin_text(report);
    report->difference = QUERN_REPLAY_ENTITIES_OTHER;
    if (has_entities && find_lacking(recorded, current, &handle)) {
        report->difference =
            state_has_handle(actual, handle) ? QUERN_REPLAY_ENTITY_MOVED : QUERN_REPLAY_ENTITY_MISSING;
    } else if (has_entities && find_lacking(current, recorded, &handle)) {
        report->difference =
            state_has_handle(expected, handle) ? QUERN_REPLAY_ENTITY_MOVED : QUERN_REPLAY_ENTITY_EXTRA;
    }
    if (report->difference == QUERN_REPLAY_ENTITIES_OTHER) {
        APPEND(report, "%s: %" PRIu64 " in the recording, %" PRIu64 " here",
               recorded->rows == current->rows ? "other entities, or in another order" : "other entities",
               recorded->rows, current->rows);
    } else {
        set_entity(world, handle, report);
        APPEND(report, "entity %" PRIu32 " (use count %" PRIu32 ") %s", report->entity_index,
               report->entity_use_count,
               report->difference == QUERN_REPLAY_ENTITY_MOVED ? "has other components"
               : report->difference == QUERN_REPLAY_ENTITY_MISSING
                   ? "is alive in the recording, and not here"
                   : "is alive here, and not in the recording");
    }
    end_text(report);
}

/* Compares which entities are in each archetype: first the archetypes of the recording, then those that only the
 * world has. */
static bool compare_rows(const quern_world *world, const quern__state *expected, const quern__state *actual,
                         quern_replay_report *report)
{
    for (uint32_t side_index = 0; side_index < 2; side_index++) {
        const quern__state *side = side_index == 0 ? expected : actual,
                           *other = side_index == 0 ? actual : expected;
        quern__byte_reader reader = side->archetypes;
        for (uint32_t i = 0; i < side->archetype_count; i++) {
            archetype_of_state own, found;
            state_next(&reader, side->flags, &own);
            if (!find_same(other, &own, &found)) {
                found = own;
                found.rows = found.handles_hash = 0;
            }
            if (own.rows == found.rows && own.handles_hash == found.handles_hash) continue;
            report_rows(world, expected, actual, side_index == 0 ? &own : &found,
                        side_index == 0 ? &found : &own, report);
            return true;
        }
    }
    return false;
}

/* Counts the entities with different values and reports the first one. The archetypes must have the same rows.
 * first_hash: index of the component's first row hash. */
static void find_entities(const quern_world *world, const archetype_of_state *recorded,
                          const archetype_of_state *current, uint64_t first_hash,
                          quern_replay_report *report)
{
    for (uint64_t row = 0; row < recorded->rows; row++) {
        if (quern__load_u32(recorded->row_hashes, first_hash + row) ==
            quern__load_u32(current->row_hashes, first_hash + row))
            continue;
        if (report->entity_count++ == 0) set_entity(world, quern__load_u64(recorded->handles, row), report);
    }
}

static void report_value(const quern_world *world, const archetype_of_state *recorded, uint32_t index,
                         quern_replay_difference difference, quern_replay_report *report)
{
    const char *name = component_name(world, index);
    report->difference = difference;
    report->component = quern__component_handle(&world->storage.components, index);
    list_components(world, recorded, report);
    begin_text(report);
    if (difference == QUERN_REPLAY_DISABLED)
        APPEND(report, "component '%s' is disabled for other entities", name);
    else if (report->entity_count == 0)
        APPEND(report, "values of component '%s' differ", name);
    else
        APPEND(report,
               "component '%s' of entity %" PRIu32 " (use count %" PRIu32 ") differs, and of %" PRIu64
               " others",
               name, report->entity_index, report->entity_use_count, report->entity_count - 1);
    end_text(report);
}

static bool compare_archetype(const quern_world *world, uint32_t flags, const archetype_of_state *recorded,
                              const archetype_of_state *current, quern_replay_report *report)
{
    uint64_t first_hash = 0;
    for (uint32_t i = 0; i < recorded->component_count; i++) {
        const uint32_t component = quern__load_u32(recorded->components, i);
        const uint32_t index = component & ~QUERN__REPLAY_TAG_BIT;
        if (quern__load_u64(recorded->values, i) != quern__load_u64(current->values, i)) {
            if ((flags & QUERN__STATE_HAS_ENTITIES) != 0 && index == component)
                find_entities(world, recorded, current, first_hash, report);
            report_value(world, recorded, index, QUERN_REPLAY_VALUE, report);
            return true;
        }
        if (index == component) first_hash += recorded->rows;
        const uint64_t was_disabled =
            recorded->disabled != NULL ? quern__load_u64(recorded->disabled, i) : 0;
        const uint64_t is_disabled = current->disabled != NULL ? quern__load_u64(current->disabled, i) : 0;
        if (was_disabled == is_disabled) continue;
        report_value(world, recorded, index, QUERN_REPLAY_DISABLED, report);
        return true;
    }
    return false;
}

/* Compares values. Precondition: both states have the same archetypes with the same rows. */
static bool compare_values(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report)
{
    quern__byte_reader reader = expected->archetypes;
    for (uint32_t i = 0; i < expected->archetype_count; i++) {
        archetype_of_state recorded, current;
        state_next(&reader, expected->flags, &recorded);
        if (find_same(actual, &recorded, &current) &&
            compare_archetype(world, expected->flags, &recorded, &current, report))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------- relations and resources */

/* Finds the index of the first differing pair. Precondition: the types of both states were compared and agree; one
 * state may have more pairs. */
static bool find_pair(const char *recorded, uint32_t was_count, const char *current, uint32_t is_count,
                      uint32_t *out_index)
{
    for (uint32_t i = 0; i < was_count || i < is_count; i++) {
        const char *a = recorded + (size_t)i * QUERN__PAIR_BYTES,
                   *b = current + (size_t)i * QUERN__PAIR_BYTES;
        if (i < was_count && i < is_count && memcmp(a, b, QUERN__PAIR_BYTES) == 0) continue;
        *out_index = (uint32_t)quern__load_u64(i < was_count ? a : b, 0);
        return true;
    }
    return false;
}

static bool compare_relations(const quern_world *world, const quern__state *expected,
                              const quern__state *actual, quern_replay_report *report)
{
    uint32_t index = 0;
    if (!find_pair(expected->relations, expected->relation_count, actual->relations, actual->relation_count,
                   &index))
        return false;
    report->difference = QUERN_REPLAY_RELATION;
    report->component = quern__component_handle(&world->storage.components, index);
    begin_text(report);
    APPEND(report, "targets of relation '%s' differ, or the order of siblings",
           component_name(world, index));
    return true;
}

static bool compare_resources(const quern_world *world, const quern__state *expected,
                              const quern__state *actual, quern_replay_report *report)
{
    uint32_t index = 0;
    if (!find_pair(expected->resources, expected->resource_count, actual->resources, actual->resource_count,
                   &index))
        return false;
    const char *name = world->resources.list.items[index].type.name;
    report->difference = QUERN_REPLAY_RESOURCE_VALUE;
    report->resource = quern__resources_find(&world->resources, name);
    begin_text(report);
    APPEND(report, "the value of resource '%s' differs", name);
    return true;
}

static void report_text(quern_replay_report *report, quern_replay_difference difference, const char *words)
{
    report->difference = difference;
    begin_text(report);
    APPEND(report, "%s", words);
}

void quern__replay_compare(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report)
{
    if (expected->result != actual->result) {
        report->difference = QUERN_REPLAY_RESULT;
        begin_text(report);
        APPEND(report, "it ended with %s in the recording, and with %s here",
               quern_result_string((quern_result)expected->result),
               quern_result_string((quern_result)actual->result));
    } else if (expected->flags == 0) {
        report_text(report, QUERN_REPLAY_WORLD, "the worlds differ, and the recording does not say where");
    } else if (!compare_rows(world, expected, actual, report) &&
               !compare_values(world, expected, actual, report) &&
               !compare_relations(world, expected, actual, report)) {
        if (expected->names_hash != actual->names_hash)
            report_text(report, QUERN_REPLAY_NAMES, "names of entities differ");
        else if (!compare_resources(world, expected, actual, report))
            report_text(report, QUERN_REPLAY_HANDLES,
                        "the next handles differ, or the order of archetypes");
    }
}
