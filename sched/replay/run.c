/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Replaying. The block after a FRAME tells whether the frame ran, so one block is read ahead. If that block cannot be
 * read, the frame is run anyway, since the recorded program may have crashed in it; then replaying fails. */

#include "sched/frame/schedule_internal.h"
#include "sched/replay/replay_internal.h"

#include <float.h>

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
} replay;

/* Reads the payload of the next block. */
static quern_result read_block(replay *run, quern__byte_writer *payload, quern__replay_kind *out_kind)
{
    return quern__replay_read_block(&run->reader, run->block_count++, payload, out_kind);
}

static quern_result fail_invalid(const replay *run, const char *what)
{
    return quern__replay_fail_invalid(run->block_count - 1, what);
}

/* --------------------------------------------------------------------------------------- beginning */

/* Adds the inputs of the BEGIN block. Called after the types of the START block were checked, so all recorded
 * resources exist. */
static quern_result add_inputs(replay *run, const quern__byte_writer *block)
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
        quern_result result = quern__inputs_add(&run->inputs, index);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result begin(replay *run)
{
    quern__replay_kind kind;
    quern_result result = quern__replay_read_head(&run->reader);
    if (result == QUERN_OK) result = read_block(run, &run->next, &kind);
    if (result == QUERN_OK && kind != QUERN__REPLAY_BEGIN)
        return fail_invalid(run, "a BEGIN block was expected");
    if (result == QUERN_OK) result = read_block(run, &run->start, &kind);
    if (result == QUERN_OK && kind != QUERN__REPLAY_START)
        return fail_invalid(run, "a START block was expected");
    if (result == QUERN_OK)
        result = quern__state_read(run->world, &run->start, 1, &run->listed, &run->start_state);
    return result == QUERN_OK ? add_inputs(run, &run->next) : result;
}

/* --------------------------------------------------------------------------------------- comparing */

/* Compares the world with an expected state. listed: the types known before the expected state. */
static quern_result compare(replay *run, const quern__state *expected, quern__type_counts listed,
                            quern_result result)
{
    quern_replay_report *report = run->report;
    quern__state actual;
    report->frame = expected->frame;
    report->expected_hash = expected->hash;
    report->actual_hash = quern_world_hash(run->world);
    if (expected->hash == report->actual_hash && expected->result == (uint32_t)result) return QUERN_OK;
    const quern__state head = {
        .frame = expected->frame, .result = (uint32_t)result, .flags = expected->flags};
    quern__state_write(run->world, &head, listed, run->listed, &run->actual);
    if (run->actual.has_failed)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "frame %llu differs from the recording, and there is no memory to find the "
                           "difference: free memory and run the replay again",
                           (unsigned long long)expected->frame);
    quern_result read = quern__state_read(run->world, &run->actual, run->block_count, &listed, &actual);
    if (read != QUERN_OK) return read;
    quern__replay_compare(run->world, expected, &actual, report);
    return quern__fail(QUERN_ERROR_DIVERGED, "%s", report->text);
}

static quern_result compare_start(replay *run)
{
    run->report->is_before_first = true;
    quern_result result =
        compare(run, &run->start_state, (quern__type_counts){.component_count = 0}, QUERN_OK);
    run->report->is_before_first = result != QUERN_OK;
    return result;
}

/* Compares the world after a frame with the recorded state in `next`. */
static quern_result compare_frame(replay *run, quern_result frame_result)
{
    quern__state expected;
    const quern__type_counts listed = run->listed;
    quern_result result =
        quern__state_read(run->world, &run->next, run->block_count - 1, &run->listed, &expected);
    if (result != QUERN_OK) return result;
    if (expected.frame != run->report->frame_count) return fail_invalid(run, "it belongs to another frame");
    return compare(run, &expected, listed, frame_result);
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
    quern__inputs_set(&run->inputs, inputs);
    if (run->def->before_frame != NULL) run->def->before_frame(run->def->user_data, frame);
    quern_result result = frame == 0 ? compare_start(run) : QUERN_OK;
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
    quern_result result = begin(run);
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
