/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"
#include "sched/replay/inputs.h"
#include "sched/replay/state.h"

#include <inttypes.h>

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
    uint64_t frame;       /* number of the next frame */
    quern_result failure; /* error that ended the recording, or QUERN_OK */
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
                                .payload = {.allocator = allocator}};
    *out_recorder = recorder;
    return QUERN_OK;
}

quern_result quern_replay_recorder_create(quern_schedule *schedule, quern_sink sink,
                                          const quern_replay_recorder_def *def,
                                          quern_replay_recorder **out_recorder)
{
    static const char function[] = "quern_replay_recorder_create";
    static const quern_replay_recorder_def defaults;
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    if (out_recorder == NULL) return quern__fail_null(function, "out_recorder");
    quern_result result = quern__check_sink(sink, function);
    if (result == QUERN_OK) result = quern__world_check_unlocked(schedule->plan.world, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(create(schedule, sink, def != NULL ? def : &defaults, out_recorder), function);
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
    quern__replay_write_block(&recorder->sink, kind, recorder->block_number++, payload);
    check_sink_failure(recorder);
}

/* Flushes the sink: before each frame, since the program may crash in it, and at the end of the recording. */
static void flush(quern_replay_recorder *recorder)
{
    if (recorder->failure != QUERN_OK) return;
    quern__sink_write(&recorder->sink, "", 0);
    check_sink_failure(recorder);
}

static uint32_t flags_of(const quern_replay_recorder *recorder)
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
    quern__state_write(world, recorder->frame, result, flags_of(recorder), recorder->listed, end,
                       &recorder->payload);
    recorder->listed = end;
    write_block(recorder, kind);
}

static void begin(quern_replay_recorder *recorder)
{
    if (recorder->has_begun) return;
    recorder->has_begun = true;
    quern__replay_write_head(&recorder->sink);
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
    quern__inputs_write(&recorder->inputs, &recorder->payload);
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
    static const char function[] = "quern_replay_record";
    if (recorder == NULL) return quern__fail_null(function, "recorder");
    quern_schedule *schedule = recorder->schedule;
    quern_result result = quern__world_check_unlocked(recorder->inputs.world, function);
    if (result != QUERN_OK) return result;
    const uint64_t frame_index = schedule->frame_index;
    begin(recorder);
    write_frame(recorder, delta_seconds);
    result = quern__schedule_run(schedule, jobs, delta_seconds, function);
    if (schedule->frame_index == frame_index) return result; /* the frame did not begin */
    const bool has_failed = recorder->failure != QUERN_OK;
    write_state(recorder, QUERN__REPLAY_STATE, result);
    if (!has_failed && recorder->failure == QUERN_OK) recorder->frame++;
    return result != QUERN_OK ? result : fail_recording(recorder, function);
}

quern_result quern_replay_finish(quern_replay_recorder *recorder)
{
    static const char function[] = "quern_replay_finish";
    if (recorder == NULL) return QUERN_OK;
    if (quern__world_check_unlocked(recorder->inputs.world, function) != QUERN_OK)
        return QUERN_ERROR_WORLD_LOCKED;
    const quern_allocator *allocator = recorder->payload.allocator;
    begin(recorder);
    quern__byte_writer_clear(&recorder->payload);
    quern__write_u64(&recorder->payload, recorder->frame);
    write_block(recorder, QUERN__REPLAY_END);
    flush(recorder);
    const quern_result result = fail_recording(recorder, function);
    quern__byte_writer_release(&recorder->payload);
    quern__release(allocator, recorder, sizeof *recorder, _Alignof(quern_replay_recorder));
    return result;
}
