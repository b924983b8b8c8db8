/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Plays on one machine as netplay does at its worst: goes back after each frame, and runs the last frames again. Each frame
 * is recorded when it runs first, with hashes of entities, and replayed each time that it runs again. */
#include "kit/netplay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static quern_result fail_null(const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "quern_netplay_sync_test: '%s' is NULL", argument);
}

static quern_result check_def(const quern_netplay_sync_def *def)
{
    if (def == NULL) return fail_null("def");
    if (def->world == NULL) return fail_null("def->world");
    if (def->schedule == NULL) return fail_null("def->schedule");
    if (def->frame_count == 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_netplay_sync_test: frame_count is 0: give the number of frames to run");
    if (def->rollback_frames > QUERN_MAX_NETPLAY_ROLLBACK)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_sync_test: rollback_frames is %u: give a number from 0 to %u",
                               def->rollback_frames, QUERN_MAX_NETPLAY_ROLLBACK);
    if (!isfinite(def->step_seconds) || def->step_seconds <= 0)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_sync_test: step_seconds is %g: give a number greater than 0",
                               def->step_seconds);
    uint32_t size_bytes;
    return quern_resource_get_size(def->world, def->inputs, &size_bytes);
}

/* Runs a frame for the first time, and records it. */
static quern_result run_first(const quern_netplay_sync_def *def, quern_jobs *jobs, uint32_t frame,
                              quern_byte_buffer *recording)
{
    const quern_replay_recorder_def recorder_def = {.inputs = {def->inputs},
                                                    .detail = QUERN_REPLAY_ENTITIES};
    quern_replay_recorder *recorder;
    recording->size_bytes = 0;
    if (def->give_inputs != NULL)
        def->give_inputs(def->user_data, frame, quern_resource_get(def->world, def->inputs));
    quern_result result =
        quern_replay_recorder_create(def->schedule, quern_sink_bytes(recording), &recorder_def, &recorder);
    if (result != QUERN_OK) return result;
    result = quern_replay_record(recorder, jobs, def->step_seconds);
    const quern_result finished = quern_replay_finish(recorder);
    return result == QUERN_OK ? finished : result;
}

quern_result quern_netplay_sync_test(const quern_netplay_sync_def *def, quern_jobs *jobs,
                                     quern_replay_report *out_report)
{
    quern_byte_buffer recordings[QUERN_MAX_NETPLAY_ROLLBACK] = {{0}};
    quern_replay_report report = {.frame_count = 0};
    quern_history *history = NULL;
    if (out_report != NULL) *out_report = report;
    quern_result result = check_def(def);
    if (result != QUERN_OK) return result;
    uint32_t count = def->rollback_frames != 0 ? def->rollback_frames : 8;
    if (count > def->frame_count) count = def->frame_count;
    const quern_history_def history_def = {
        .schedules = {def->schedule}, .frame_count = count + 1, .allocator = def->allocator};
    result = quern_history_create(def->world, &history_def, &history);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < count; i++)
        recordings[i].allocator = def->allocator;
    uint32_t again = 0;
    for (uint32_t frame = 0; frame < def->frame_count && result == QUERN_OK; frame++) {
        result = quern_history_save(history, frame, jobs);
        if (result == QUERN_OK) result = run_first(def, jobs, frame, &recordings[frame % count]);
        if (result != QUERN_OK || frame + 1 < count) continue;
        again = frame + 1 - count;
        result = quern_history_restore(history, again, jobs);
        while (result == QUERN_OK && again <= frame) {
            const quern_byte_buffer *recording = &recordings[again % count];
            result = quern_history_save(history, again, jobs);
            if (result == QUERN_OK)
                result = quern_replay_run(def->schedule, jobs,
                                          quern_source_bytes(recording->bytes, recording->size_bytes), NULL,
                                          &report);
            again += result == QUERN_OK;
        }
    }
    if (result == QUERN_ERROR_DIVERGED) {
        char text[QUERN_REPLAY_TEXT_BYTES - 32];
        const char *difference = strstr(report.text, ": "); /* the texts of replays begin with the frame */
        snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1,
                 difference != NULL ? difference + 2 : report.text);
        snprintf(report.text, sizeof report.text, "%s frame %u: %s",
                 report.is_before_first ? "before" : "in", again, text);
        report.frame = report.frame_count = again;
        result = quern_history_restore(history, again, jobs);
        if (result == QUERN_OK)
            result = quern_error_set(
                QUERN_ERROR_DIVERGED,
                "quern_netplay_sync_test: %s, when the frame ran again after going back %u frames: some "
                "system depends on data outside of the world; let it read these from the world",
                report.text, count);
    } else if (result == QUERN_OK) {
        report.frame_count = def->frame_count;
    }
    if (out_report != NULL) *out_report = report;
    for (uint32_t i = 0; i < count; i++)
        quern_byte_buffer_release(&recordings[i]);
    quern_history_destroy(history);
    return result;
}
