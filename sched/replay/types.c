/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The types of a recording, and the check that a world has the same. Types are identified by their indices: the order
 * of registration determines the order of columns, and so affects hashes. */

#include "sched/replay/state.h"

#include "core/storage/required.h"

static const quern__type *type_of(const quern_world *world, uint32_t kind, uint32_t index)
{
    return kind == QUERN__REPLAY_COMPONENT ? quern__components_type(&world->storage.components, index)
                                           : &world->resources.list.items[index].type;
}

static uint32_t flags_of(const quern_world *world, uint32_t kind, uint32_t index)
{
    if (kind != QUERN__REPLAY_COMPONENT) return 0;
    const quern__component *component = world->storage.components.list.items[index];
    return quern__column_flags_to_replay(component->type.flags) |
           (component->managed.relation != NULL ? QUERN__REPLAY_IS_RELATION : 0u) |
           quern__component_required_hash(component) << QUERN__REPLAY_REQUIRED_SHIFT;
}

quern__type_counts quern__types_of_world(const quern_world *world)
{
    return (quern__type_counts){.component_count = world->storage.components.list.count,
                                .resource_count = world->resources.list.count};
}

/* ----------------------------------------------------------------------------------------- writing */

static void write_type(const quern_world *world, uint32_t kind, uint32_t index, quern__byte_writer *bytes)
{
    const quern__type *type = type_of(world, kind, index);
    quern__write_u32(bytes, kind);
    quern__write_u32(bytes, type->size_bytes);
    quern__write_u32(bytes, type->alignment_bytes);
    quern__write_u32(bytes, flags_of(world, kind, index));
    quern__write_u32(bytes, type->field_count);
    quern__write_schema(bytes, quern__replay_schema, type->name, type->fields, type->field_count);
}

void quern__types_write(const quern_world *world, quern__type_counts listed, quern__type_counts end,
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

static quern_result check_fields(const recorded_type *recorded, const quern__type *type)
{
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

static quern_result check_layout(const recorded_type *recorded, const quern__type *type, uint32_t flags)
{
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
    return check_fields(recorded, type);
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
    return check_layout(recorded, type, flags_of(world, recorded->kind, index));
}

static bool read_type(quern__byte_reader *reader, recorded_type *out_type)
{
    out_type->kind = quern__read_u32(reader);
    out_type->size_bytes = quern__read_u32(reader);
    out_type->alignment_bytes = quern__read_u32(reader);
    out_type->flags = quern__read_u32(reader);
    out_type->field_count = quern__read_u32(reader);
    quern__read_schema(reader, quern__replay_schema, out_type->field_count, &out_type->schema);
    return !reader->has_failed &&
           (out_type->kind == QUERN__REPLAY_COMPONENT || out_type->kind == QUERN__REPLAY_RESOURCE);
}

quern_result quern__types_check(const quern_world *world, quern__byte_reader *reader, uint64_t number,
                                quern__type_counts *listed)
{
    const quern__type_counts known = quern__types_of_world(world);
    for (uint32_t left = quern__read_u32(reader); left > 0; left--) {
        recorded_type type;
        if (!read_type(reader, &type))
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
