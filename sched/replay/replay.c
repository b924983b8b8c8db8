/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording frames, and running a recording again: what was recorded is compared with what happens. */
#include "sched/replay/replay_internal.h"

#include "core/base/containers.h"
#include "core/check/world_hash.h"
#include "core/storage/type_internal.h"
#include "sched/frame/schedule_internal.h"

#include <float.h>
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

/* Reads the head. Fails with BAD_ARCHIVE if the source is not a recording, or one of another version. */
static quern_result replay_read_head(quern__source_reader *reader)
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

/* Reads the next block, of any kind, into the payload. A forged length allocates at most twice as many bytes as the
 * source has. Fails with BAD_ARCHIVE or OUT_OF_MEMORY. */
static quern_result replay_read_block(quern__source_reader *reader, uint64_t number,
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

/* Adds the resource with an index. Fails with INVALID_ARGUMENT if it has hooks or was added already. */
static quern_result inputs_add(quern__inputs *inputs, uint32_t index)
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

/* Sets the values of all inputs from inputs->bytes bytes. */
static void inputs_set(const quern__inputs *inputs, const char *at)
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

static quern_result add_inputs(quern__inputs *inputs, const quern_replay_recorder_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->inputs, QUERN_MAX_REPLAY_INPUTS, quern__is_end_of_handles,
                                            "input", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__resources_check(&inputs->world->resources, def->inputs[i]);
        if (result == QUERN_OK) result = inputs_add(inputs, quern__resource_index(def->inputs[i]));
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
    const quern__type_counts end = quern__types_of_world(world);
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
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, __func__);
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
    /* an exclusive system may call this in a frame that the recorder records */
    if (quern__world_check_unlocked(recorder->inputs.world, __func__) != QUERN_OK ||
        quern__schedule_check_idle(recorder->schedule, __func__) != QUERN_OK)
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

/* ---------------------------------------------------------------------------------------- replaying */

/* The block after a FRAME tells whether the frame ran, so one block is read ahead. If that block cannot be
 * read, the frame is run anyway, since the recorded program may have crashed in it; then replaying fails. */

typedef struct replay {
    quern_schedule *schedule;
    quern_world *world;
    quern_jobs *jobs;
    const quern_replay_run_def *def;
    quern_replay_report *report;
    quern__source_reader reader;
    uint64_t block_count; /* number of blocks read */
    quern__inputs inputs;
    quern__type_counts listed;
    /* Payloads of the start block, the current frame and the block after it. */
    quern__byte_writer start, frame, next;
    quern__byte_writer actual; /* a state of the replaying world */
    quern__state start_state;
    uint64_t layout_count; /* that of the world when the replay began */
} replay;

/* Reads the payload of the next block. */
static quern_result read_block(replay *run, quern__byte_writer *payload, quern__replay_kind *out_kind)
{
    return replay_read_block(&run->reader, run->block_count++, payload, out_kind);
}

static quern_result fail_invalid(const replay *run, const char *what)
{
    return quern__replay_fail_invalid(run->block_count - 1, what);
}

/* --------------------------------------------------------------------------------------- beginning */

/* Adds the inputs of the BEGIN block. Called after the types of the START block were checked, so all recorded
 * resources exist. */
static quern_result add_recorded_inputs(replay *run, const quern__byte_writer *block)
{
    quern__byte_reader reader = quern__replay_payload(block);
    const uint32_t count = quern__read_u32(&reader);
    const char *indices = quern__read_items(&reader, count, sizeof(uint32_t));
    if (!quern__is_fully_read(&reader) || count > QUERN_MAX_REPLAY_INPUTS)
        return quern__replay_fail_invalid(0, "its inputs cannot be read");
    run->inputs.world = run->world;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern__load_u32(indices, i);
        if (index >= run->listed.resource_count)
            return quern__replay_fail_invalid(0, "its inputs cannot be read");
        quern_result result = inputs_add(&run->inputs, index);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result begin_replay(replay *run)
{
    quern__replay_kind kind;
    quern_result result = replay_read_head(&run->reader);
    if (result == QUERN_OK) result = read_block(run, &run->next, &kind);
    if (result == QUERN_OK && kind != QUERN__REPLAY_BEGIN)
        return fail_invalid(run, "a BEGIN block was expected");
    if (result == QUERN_OK) result = read_block(run, &run->start, &kind);
    if (result == QUERN_OK && kind != QUERN__REPLAY_START)
        return fail_invalid(run, "a START block was expected");
    if (result == QUERN_OK)
        result = quern__state_read(run->world, &run->start, 1, &run->listed, &run->start_state);
    return result == QUERN_OK ? add_recorded_inputs(run, &run->next) : result;
}

/* --------------------------------------------------------------------------------------- comparing */

/* Compares the world with an expected state. The world may have more types than the recording has listed so far: relations
 * and resources of these are left out, and entities of other archetypes are a difference. */
static quern_result compare(replay *run, const quern__state *expected, quern_result result)
{
    quern__type_counts known = quern__types_of_world(run->world);
    quern_replay_report *report = run->report;
    quern__state actual;
    report->frame = expected->frame;
    report->expected_hash = expected->hash;
    report->actual_hash = quern__hash_world(run->world, run->listed.resource_count);
    if (expected->hash == report->actual_hash && expected->result == (uint32_t)result) return QUERN_OK;
    const quern__state head = {
        .frame = expected->frame, .result = (uint32_t)result, .flags = expected->flags};
    quern__state_write(run->world, &head, run->listed, run->listed, &run->actual);
    if (run->actual.has_failed)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "frame %llu differs from the recording, and there is no memory to find the "
                           "difference: free memory and run the replay again",
                           (unsigned long long)expected->frame);
    quern_result read = quern__state_read(run->world, &run->actual, run->block_count, &known, &actual);
    if (read != QUERN_OK) return read;
    quern__replay_compare(run->world, expected, &actual, report);
    return quern__fail(QUERN_ERROR_DIVERGED, "%s", report->text);
}

static quern_result compare_start(replay *run)
{
    run->report->is_before_first = true;
    quern_result result = compare(run, &run->start_state, QUERN_OK);
    run->report->is_before_first = result != QUERN_OK;
    return result;
}

/* Compares the world after a frame with the recorded state in `next`. */
static quern_result compare_frame(replay *run, quern_result frame_result)
{
    quern__state expected;
    quern_result result =
        quern__state_read(run->world, &run->next, run->block_count - 1, &run->listed, &expected);
    if (result != QUERN_OK) return result;
    if (expected.frame != run->report->frame_count) return fail_invalid(run, "it belongs to another frame");
    return compare(run, &expected, frame_result);
}

/* ----------------------------------------------------------------------------------------- running */

/* Reads the time step of a FRAME block and finds its inputs. */
static quern_result open_frame(const replay *run, double *out_delta_seconds, const char **out_inputs)
{
    quern__byte_reader reader = quern__replay_payload(&run->frame);
    const uint64_t number = quern__read_u64(&reader), bits = quern__read_u64(&reader);
    memcpy(out_delta_seconds, &bits, sizeof bits);
    *out_inputs = reader.at;
    if (reader.has_failed || number != run->report->frame_count ||
        quern__bytes_left(&reader) != run->inputs.bytes)
        return fail_invalid(run, "it is not the FRAME block of the next frame");
    return QUERN_OK;
}

/* Sets the inputs of the frame and runs it. *out_frame_result: the result of the frame. Fails if the comparison
 * before the first frame does, or if the frame does not begin. */
static quern_result run_frame(replay *run, double delta_seconds, const char *inputs,
                              quern_result *out_frame_result)
{
    const uint64_t frame_index = run->schedule->frame_index, frame = run->report->frame_count;
    quern_result result = quern__redefine_check_since(run->world, run->layout_count, "the replay");
    if (result != QUERN_OK) return result;
    inputs_set(&run->inputs, inputs);
    if (run->def->before_frame != NULL) run->def->before_frame(run->def->user_data, frame);
    if (frame == 0) result = compare_start(run);
    if (result != QUERN_OK) return result;
    *out_frame_result = quern__schedule_run(run->schedule, run->jobs, delta_seconds, "quern_replay_run");
    return run->schedule->frame_index == frame_index ? *out_frame_result : QUERN_OK;
}

/* Replays the frame of the FRAME block in `frame`. Reads the block after it, which is the frame's STATE if the frame
 * ran. On return, `next` is the block after the frame. */
static quern_result replay_frame(replay *run, quern__replay_kind *kind)
{
    double delta_seconds;
    const char *inputs;
    quern_result frame_result, result = open_frame(run, &delta_seconds, &inputs);
    if (result != QUERN_OK) return result;
    char unreadable[QUERN_REPLAY_TEXT_BYTES] = "";
    const quern_result next_result = read_block(run, &run->next, kind);
    if (next_result != QUERN_OK)
        quern__append(unreadable, sizeof unreadable, "%s", quern_error_message());
    else if (*kind == QUERN__REPLAY_FRAME || *kind == QUERN__REPLAY_END)
        return QUERN_OK; /* the frame did not begin */
    else if (*kind != QUERN__REPLAY_STATE)
        return fail_invalid(run, "a STATE block was expected");
    if (!(delta_seconds >= 0 &&
          delta_seconds <= DBL_MAX)) /* a frame with this time step cannot have begun */
        return fail_invalid(run, "the frame before it has an invalid time step");
    result = run_frame(run, delta_seconds, inputs, &frame_result);
    if (result == QUERN_OK && next_result != QUERN_OK) result = quern__fail(next_result, "%s", unreadable);
    if (result == QUERN_OK) result = compare_frame(run, frame_result);
    if (result != QUERN_OK) return result;
    const uint64_t frame = run->report->frame_count++;
    if (run->def->after_frame != NULL && !run->def->after_frame(run->def->user_data, frame))
        return quern__fail(QUERN_ERROR_CANCELLED,
                           "quern_replay_run: after_frame returned false: the replay ended there");
    return read_block(run, &run->next, kind);
}

static quern_result replay_all(replay *run)
{
    quern__replay_kind kind;
    quern_result result = begin_replay(run);
    if (result == QUERN_OK) result = read_block(run, &run->next, &kind);
    while (result == QUERN_OK && kind == QUERN__REPLAY_FRAME) {
        quern__byte_writer *a = &run->frame;
        quern__byte_writer *b = &run->next;
        const quern__byte_writer other = *a;
        *a = *b;
        *b = other;
        result = replay_frame(run, &kind);
    }
    if (result != QUERN_OK) return result;
    quern__byte_reader reader = quern__replay_payload(&run->next);
    if (kind != QUERN__REPLAY_END || quern__read_u64(&reader) != run->report->frame_count ||
        !quern__is_fully_read(&reader))
        return fail_invalid(run, "a FRAME or END block was expected");
    return QUERN_OK;
}

quern_result quern_replay_run(quern_schedule *schedule, quern_jobs *jobs, quern_source source,
                              const quern_replay_run_def *def, quern_replay_report *out_report)
{
    static const quern_replay_run_def defaults;
    quern_replay_report report;
    if (out_report == NULL) out_report = &report;
    *out_report = (quern_replay_report){.frame_count = 0};
    QUERN__NEED(schedule);
    quern_result result = quern__check_source(source, __func__);
    if (result == QUERN_OK) result = quern__world_check_unlocked(schedule->plan.world, __func__);
    if (result != QUERN_OK) return result;
    if (!QUERN__REPLAY_IS_NATIVE)
        return quern__fail(QUERN_ERROR_UNAVAILABLE, "%s: recordings need a little-endian machine",
                           __func__);
    const quern_allocator *allocator = &schedule->plan.world->storage.allocator;
    replay run = {.schedule = schedule,
                  .world = schedule->plan.world,
                  .jobs = jobs,
                  .def = def != NULL ? def : &defaults,
                  .report = out_report,
                  .layout_count = schedule->plan.world->layout_count,
                  .start = {.allocator = allocator},
                  .frame = {.allocator = allocator},
                  .next = {.allocator = allocator},
                  .actual = {.allocator = allocator}};
    quern__source_reader_open(&run.reader, source);
    result = quern__in_call(replay_all(&run), __func__);
    quern__byte_writer_release(&run.start);
    quern__byte_writer_release(&run.frame);
    quern__byte_writer_release(&run.next);
    quern__byte_writer_release(&run.actual);
    return result;
}
