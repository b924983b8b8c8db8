/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/replay/replay_internal.h"

#include "core/base/containers.h"
#include "core/storage/type_internal.h"
#include "sched/frame/schedule_internal.h"

#include <inttypes.h>

enum { STEP_BYTES = 64 * 1024 };

typedef struct block_head {
    uint32_t kind, bytes;
    uint64_t checksum;
} block_head;
_Static_assert(sizeof(block_head) == QUERN__REPLAY_BLOCK_BYTES, "as it is written");

static uint64_t checksum_of(const block_head *head, uint64_t number, const void *payload)
{
    uint64_t hash = quern__hash_word(number, (uint64_t)head->kind << 32 | head->bytes);
    return quern__hash_bytes(hash, payload, head->bytes);
}

static quern_result fail_cut_off(const quern__source_reader *reader, uint64_t number)
{
    if (reader->error != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording could not be read after byte %" PRIu64 ", in block %" PRIu64
                           ": %s",
                           reader->offset_bytes, number, strerror(reader->error));
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the recording is cut off at byte %" PRIu64 ", in block %" PRIu64
                       ": use a complete copy",
                       reader->offset_bytes, number);
}

quern_result quern__replay_read_head(quern__source_reader *reader)
{
    char magic[8];
    uint32_t version[2];
    if (!quern__source_read(reader, magic, sizeof magic) ||
        !quern__source_read(reader, version, sizeof version))
        return fail_cut_off(reader, 0);
    if (memcmp(magic, QUERN__REPLAY_MAGIC, sizeof magic) != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "the source is not a recording: it does not begin with "
                                                    "'" QUERN__REPLAY_MAGIC "'");
    if (version[0] != QUERN__REPLAY_VERSION || version[1] != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording has version %" PRIu32 "; this library reads version %d",
                           version[0], QUERN__REPLAY_VERSION);
    return QUERN_OK;
}

quern_result quern__replay_read_block(quern__source_reader *reader, uint64_t number,
                                      quern__byte_writer *payload, quern__replay_kind *out_kind)
{
    block_head head;
    const uint64_t start = reader->offset_bytes;
    if (!quern__source_read(reader, &head, sizeof head)) return fail_cut_off(reader, number);
    quern__byte_writer_clear(payload);
    while (payload->count < head.bytes) {
        const size_t left = head.bytes - payload->count, room = payload->capacity - payload->count;
        size_t step = room > STEP_BYTES ? room : STEP_BYTES;
        if (step > left) step = left;
        char *at = quern__write_room(payload, step);
        if (at == NULL)
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for block %" PRIu64, number);
        if (!quern__source_read(reader, at, step)) return fail_cut_off(reader, number);
    }
    if (checksum_of(&head, number, payload->bytes) != head.checksum)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording is damaged: block %" PRIu64 ", from byte %" PRIu64
                           ", has a wrong checksum",
                           number, start);
    *out_kind = head.kind;
    return QUERN_OK;
}

quern_result quern__replay_fail_invalid(uint64_t number, const char *what)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "block %" PRIu64 " of the recording is invalid: %s", number,
                       what);
}

_Static_assert(sizeof(quern_entity) == sizeof(uint64_t), "a handle has the size of index and use count");

static const quern__resource *resource_of(const quern__inputs *inputs, uint32_t i)
{
    return &inputs->world->resources.list.items[inputs->indices[i]];
}

static size_t field_bytes(const quern_field *field)
{
    return (size_t)quern__field_bytes(field->type) * field->count;
}

static size_t value_bytes(const quern__type *type)
{
    size_t bytes = type->field_count == 0 ? type->size_bytes : 0;
    for (uint32_t i = 0; i < type->field_count; i++)
        bytes += field_bytes(&type->fields[i]);
    return bytes;
}

quern_result quern__inputs_add(quern__inputs *inputs, uint32_t index)
{
    const quern__type *type = &inputs->world->resources.list.items[index].type;
    if (type->hooks.copy != NULL || type->hooks.move != NULL || type->hooks.destroy != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "resource '%s' cannot be an input: it has hooks, so its bytes may hold pointers",
                           type->name);
    for (uint32_t i = 0; i < inputs->count; i++)
        if (inputs->indices[i] == index)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "resource '%s' is an input twice: list it once", type->name);
    inputs->indices[inputs->count++] = index;
    inputs->bytes += value_bytes(type);
    return QUERN_OK;
}

static void write_field(const quern_field *field, const char *value, uint32_t first_handle_high,
                        quern__byte_writer *bytes)
{
    const char *at = value + field->offset_bytes;
    if (field->type != QUERN_FIELD_ENTITY) {
        quern__write(bytes, at, field_bytes(field));
        return;
    }
    for (uint32_t i = 0; i < field->count; i++) {
        quern_entity entity;
        memcpy(&entity, at + i * sizeof entity, sizeof entity);
        quern__write_u64(bytes, quern__entity_to_relative(entity, first_handle_high));
    }
}

static void set_field(const quern_field *field, char *value, uint32_t first_handle_high, const char *at)
{
    char *to = value + field->offset_bytes;
    if (field->type != QUERN_FIELD_ENTITY) {
        memcpy(to, at, field_bytes(field));
        return;
    }
    for (uint32_t i = 0; i < field->count; i++) {
        const quern_entity entity = quern__entity_from_relative(quern__load_u64(at, i), first_handle_high);
        memcpy(to + i * sizeof entity, &entity, sizeof entity);
    }
}

void quern__inputs_set(const quern__inputs *inputs, const char *at)
{
    const uint32_t first_handle_high = inputs->world->storage.entities.first_handle_high;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const quern__resource *resource = resource_of(inputs, i);
        const quern__type *type = &resource->type;
        if (type->field_count == 0) memcpy(resource->value, at, type->size_bytes);
        for (uint32_t f = 0, offset = 0; f < type->field_count; f++) {
            set_field(&type->fields[f], resource->value, first_handle_high, at + offset);
            offset += (uint32_t)field_bytes(&type->fields[f]);
        }
        at += value_bytes(type);
    }
}

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

/* Returns how many component and resource types the world has. */
static quern__type_counts types_of_world(const quern_world *world)
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
    quern__write_u32(bytes, type_flags_of(world, kind, index));
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

quern_result quern__types_check(const quern_world *world, quern__byte_reader *reader, uint64_t number,
                                quern__type_counts *listed)
{
    const quern__type_counts known = types_of_world(world);
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

struct quern_replay_recorder {
    quern_schedule *schedule;
    quern__sink_writer sink;
    quern_replay_detail detail;
    uint32_t entity_interval;
    quern__inputs inputs;
    quern__type_counts listed;
    quern__byte_writer payload;
    bool has_begun;
    uint64_t block_number;
    uint64_t frame;        /* number of the next frame */
    quern_result failure;  /* error that ended the recording, or QUERN_OK */
    uint64_t layout_count; /* that of the world when the recorder was created */
};

/* ---------------------------------------------------------------------------------------- creating */

static bool is_end_of_inputs(const void *list, uint32_t i)
{
    return ((const quern_resource *)list)[i].bits == 0;
}

static quern_result add_inputs(quern__inputs *inputs, const quern_replay_recorder_def *def)
{
    uint32_t count = 0;
    quern_result result =
        quern__list_count(def->inputs, QUERN_MAX_REPLAY_INPUTS, is_end_of_inputs, "input", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__resources_check(&inputs->world->resources, def->inputs[i]);
        if (result == QUERN_OK) result = quern__inputs_add(inputs, quern__resource_index(def->inputs[i]));
        if (result != QUERN_OK) quern__message_add_element(result, "input", i);
    }
    return result;
}

static quern_result create(quern_schedule *schedule, quern_sink sink, const quern_replay_recorder_def *def,
                           quern_replay_recorder **out_recorder)
{
    quern_world *world = schedule->plan.world;
    const quern_allocator *allocator = &world->storage.allocator;
    quern__inputs inputs = {.world = world};
    if (!QUERN__REPLAY_IS_NATIVE)
        return quern__fail(QUERN_ERROR_UNAVAILABLE, "recordings need a little-endian machine");
    quern_result result = add_inputs(&inputs, def);
    if (result == QUERN_OK && (uint32_t)def->detail > QUERN_REPLAY_ENTITIES)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "detail %d is not a value of quern_replay_detail", (int)def->detail);
    if (result != QUERN_OK) return result;
    quern_replay_recorder *recorder =
        quern__allocate(allocator, sizeof *recorder, _Alignof(quern_replay_recorder));
    if (recorder == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a recorder");
    *recorder =
        (quern_replay_recorder){.schedule = schedule,
                                .sink = {.sink = sink},
                                .detail = def->detail,
                                .entity_interval = def->entity_interval != 0 ? def->entity_interval : 1,
                                .inputs = inputs,
                                .payload = {.allocator = allocator},
                                .layout_count = schedule->plan.world->layout_count};
    *out_recorder = recorder;
    return QUERN_OK;
}

quern_result quern_replay_recorder_create(quern_schedule *schedule, quern_sink sink,
                                          const quern_replay_recorder_def *def,
                                          quern_replay_recorder **out_recorder)
{
    static const quern_replay_recorder_def defaults;
    QUERN__NEED(schedule);
    QUERN__NEED(out_recorder);
    quern_result result = quern__check_sink(sink, __func__);
    if (result == QUERN_OK) result = quern__world_check_unlocked(schedule->plan.world, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(create(schedule, sink, def != NULL ? def : &defaults, out_recorder), __func__);
}

/* --------------------------------------------------------------------------------------- recording */

static void check_sink_failure(quern_replay_recorder *recorder)
{
    if (recorder->sink.has_failed) recorder->failure = QUERN_ERROR_IO;
}

static void write_block(quern_replay_recorder *recorder, quern__replay_kind kind)
{
    const quern__byte_writer *payload = &recorder->payload;
    if (recorder->failure != QUERN_OK) return;
    if (payload->has_failed)
        recorder->failure = QUERN_ERROR_OUT_OF_MEMORY;
    else if (payload->count > UINT32_MAX)
        recorder->failure = QUERN_ERROR_LIMIT;
    if (recorder->failure != QUERN_OK) return;
    quern__sink_writer *sink = &recorder->sink;
    const uint64_t number = recorder->block_number++;
    block_head head = {.kind = kind, .bytes = (uint32_t)payload->count};
    head.checksum = checksum_of(&head, number, payload->bytes);
    quern__sink_write(sink, &head, sizeof head);
    quern__sink_write(sink, payload->bytes, payload->count);
    check_sink_failure(recorder);
}

/* Flushes the sink: before each frame, since the program may crash in it, and at the end of the recording. */
static void flush(quern_replay_recorder *recorder)
{
    if (recorder->failure != QUERN_OK) return;
    quern__sink_write(&recorder->sink, "", 0);
    check_sink_failure(recorder);
}

static uint32_t frame_flags_of(const quern_replay_recorder *recorder)
{
    if (recorder->detail == QUERN_REPLAY_WHOLE) return 0;
    const bool has_entities =
        recorder->detail == QUERN_REPLAY_ENTITIES && recorder->frame % recorder->entity_interval == 0;
    return QUERN__STATE_HAS_PARTS | (has_entities ? (uint32_t)QUERN__STATE_HAS_ENTITIES : 0u);
}

static void write_state(quern_replay_recorder *recorder, quern__replay_kind kind, quern_result result)
{
    const quern_world *world = recorder->inputs.world;
    const quern__type_counts end = types_of_world(world);
    if (recorder->failure != QUERN_OK) return;
    const quern__state head = {
        .frame = recorder->frame, .result = (uint32_t)result, .flags = frame_flags_of(recorder)};
    quern__state_write(world, &head, recorder->listed, end, &recorder->payload);
    recorder->listed = end;
    write_block(recorder, kind);
}

static void begin(quern_replay_recorder *recorder)
{
    if (recorder->has_begun) return;
    recorder->has_begun = true;
    /* Writes the head of a recording, before the first block. */
    quern__sink_writer *sink = &recorder->sink;
    const uint32_t version[2] = {QUERN__REPLAY_VERSION, 0};
    quern__sink_write(sink, QUERN__REPLAY_MAGIC, 8);
    quern__sink_write(sink, version, sizeof version);
    check_sink_failure(recorder);
    quern__byte_writer_clear(&recorder->payload);
    quern__write_u32(&recorder->payload, recorder->inputs.count);
    for (uint32_t i = 0; i < recorder->inputs.count; i++)
        quern__write_u32(&recorder->payload, recorder->inputs.indices[i]);
    write_block(recorder, QUERN__REPLAY_BEGIN);
    write_state(recorder, QUERN__REPLAY_START, QUERN_OK);
}

static void write_frame(quern_replay_recorder *recorder, double delta_seconds)
{
    quern__byte_writer_clear(&recorder->payload);
    quern__write_u64(&recorder->payload, recorder->frame);
    quern__write(&recorder->payload, &delta_seconds, sizeof delta_seconds);
    const quern__inputs *inputs = &recorder->inputs;
    quern__byte_writer *bytes = &recorder->payload;
    const uint32_t first_handle_high = inputs->world->storage.entities.first_handle_high;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const quern__resource *resource = resource_of(inputs, i);
        const quern__type *type = &resource->type;
        if (type->field_count == 0) quern__write(bytes, resource->value, type->size_bytes);
        for (uint32_t f = 0; f < type->field_count; f++)
            write_field(&type->fields[f], resource->value, first_handle_high, bytes);
    }
    write_block(recorder, QUERN__REPLAY_FRAME);
    flush(recorder);
}

static quern_result fail_recording(const quern_replay_recorder *recorder, const char *function)
{
    const char *why = "there is no memory";
    if (recorder->failure == QUERN_OK) return QUERN_OK;
    if (recorder->failure == QUERN_ERROR_LIMIT) why = "a block would exceed 4 GiB";
    if (recorder->failure == QUERN_ERROR_IO)
        why = recorder->sink.error != 0 ? strerror(recorder->sink.error) : "the sink failed";
    return quern__fail(recorder->failure, "%s: the recording ends in frame %" PRIu64 ": %s", function,
                       recorder->frame, why);
}

quern_result quern_replay_record(quern_replay_recorder *recorder, quern_jobs *jobs, double delta_seconds)
{
    QUERN__NEED(recorder);
    quern_schedule *schedule = recorder->schedule;
    quern_result result = quern__world_check_unlocked(recorder->inputs.world, __func__);
    if (result == QUERN_OK)
        result = quern__in_call(
            quern__redefine_check_since(recorder->inputs.world, recorder->layout_count, "the recorder"),
            __func__);
    if (result != QUERN_OK) return result;
    const uint64_t frame_index = schedule->frame_index;
    begin(recorder);
    write_frame(recorder, delta_seconds);
    result = quern__schedule_run(schedule, jobs, delta_seconds, __func__);
    if (schedule->frame_index == frame_index) return result; /* the frame did not begin */
    const bool has_failed = recorder->failure != QUERN_OK;
    write_state(recorder, QUERN__REPLAY_STATE, result);
    if (!has_failed && recorder->failure == QUERN_OK) recorder->frame++;
    return result != QUERN_OK ? result : fail_recording(recorder, __func__);
}

quern_result quern_replay_finish(quern_replay_recorder *recorder)
{
    if (recorder == NULL) return QUERN_OK;
    if (quern__world_check_unlocked(recorder->inputs.world, __func__) != QUERN_OK)
        return QUERN_ERROR_WORLD_LOCKED;
    const quern_allocator *allocator = recorder->payload.allocator;
    begin(recorder);
    quern__byte_writer_clear(&recorder->payload);
    quern__write_u64(&recorder->payload, recorder->frame);
    write_block(recorder, QUERN__REPLAY_END);
    flush(recorder);
    const quern_result result = fail_recording(recorder, __func__);
    quern__byte_writer_release(&recorder->payload);
    quern__release(allocator, recorder, sizeof *recorder, _Alignof(quern_replay_recorder));
    return result;
}
