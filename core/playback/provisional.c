/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/apply.h"

/* Builds with QUERN_CHECKS only: finds provisional handles outside of described fields. A sync point replaces
 * handles in fields described as QUERN_FIELD_ENTITY; elsewhere, a handle would silently stay provisional.
 *
 * A handle cannot be distinguished from a number there. To avoid false reports, a word is reported only if all
 * of this holds: it belongs to a value given by a command, at a multiple of the size of a handle, in a type
 * aligned like a handle, outside of all described fields, and is equal to the handle of a create of this sync
 * point. Such a number has 0 in its upper byte, the serial of a stream, which changes from frame to frame, in
 * the next three bytes, and the number of one of its creates in the lower half. */

typedef struct finding {
    const quern__gathered *gathered;
    uint32_t lowest_serial, highest_serial; /* range over all streams with creates */
    uint64_t count;
    const quern__stream *stream; /* stream of the first finding */
    const quern__type *type;     /* type of its value */
    uint32_t offset_bytes;       /* offset in the value */
    quern_entity entity;
} finding;

static void note_serials(finding *found)
{
    found->lowest_serial = UINT32_MAX;
    for (uint32_t i = 0; i < found->gathered->streams.count; i++) {
        const quern__stream *stream = found->gathered->streams.items[i].stream;
        if (stream->create_count == 0) continue;
        if (stream->origin.serial < found->lowest_serial) found->lowest_serial = stream->origin.serial;
        if (stream->origin.serial > found->highest_serial) found->highest_serial = stream->origin.serial;
    }
}

static bool is_created(const finding *found, quern_entity entity)
{
    const uint32_t serial = quern_entity_generation(entity);
    if (!quern_entity_is_provisional(entity) || serial < found->lowest_serial ||
        serial > found->highest_serial)
        return false;
    for (uint32_t i = 0; i < found->gathered->streams.count; i++) {
        const quern__stream *stream = found->gathered->streams.items[i].stream;
        if (stream->origin.serial == serial) return quern_entity_index(entity) < stream->create_count;
    }
    return false;
}

static void check_value(finding *found, const quern__stream *stream, const quern__type *type,
                        const char *value)
{
    for (uint32_t at = 0; at + sizeof(quern_entity) <= type->size_bytes; at += sizeof(quern_entity)) {
        quern_entity entity;
        memcpy(&entity, value + at, sizeof entity);
        if (!is_created(found, entity) || quern__type_has_field_in(type, at, sizeof entity)) continue;
        if (found->count++ > 0) continue;
        found->stream = stream;
        found->type = type;
        found->offset_bytes = at;
        found->entity = entity;
    }
}

static void check_batch(finding *found, const quern__stream *stream, quern__command_batch *batch)
{
    for (uint32_t i = 0; i < batch->operation->operand_count; i++) {
        const quern__operand *operand = &batch->operation->operands[i];
        if (operand->offset_bytes == 0 || operand->type->alignment_bytes < _Alignof(quern_entity)) continue;
        if (operand->is_relation) continue; /* the relate stage finds the targets of relations */
        for (uint32_t k = 0; k < quern__batch_value_count(batch); k++)
            check_value(found, stream, operand->type, quern__batch_value(batch, k) + operand->offset_bytes);
    }
}

void quern__gathered_report_provisional(const quern__gathered *gathered)
{
    finding found = {.gathered = gathered};
    note_serials(&found);
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            check_batch(&found, stream, batch);
        }
    }
    if (found.count == 0) return;
    const char *name = found.stream->origin.name;
    quern__report_violation(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "%s%s%s gave '%s' the provisional handle of a deferred create (number %u) at byte "
        "%u, where no field is described, so it remains provisional: describe the field "
        "as QUERN_FIELD_ENTITY (%llu such handles at this sync point)",
        name ? "system '" : "", name ? name : "a command", name ? "'" : "", found.type->name,
        quern_entity_index(found.entity), found.offset_bytes, (unsigned long long)found.count);
}
