/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Where two worlds differ. Each machine goes back to the last hash before the one that differs, runs the frames since
 * then again, and sends the hash before each of them (a trace). Two traces show the first frame with another result.
 * Each machine records that frame with hashes of entities, sends the recording, and replays the recording of the other
 * machine. */
#include "kit/netplay_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add_text(quern_netplay_report *report, const char *format,
                                                           ...)
{
    va_list arguments;
    const size_t length = strlen(report->text);
    va_start(arguments, format);
    vsnprintf(report->text + length, sizeof report->text - length, format, arguments);
    va_end(arguments);
}

/* Ends a report that cannot go on. */
static void give_up(quern_netplay *netplay)
{
    quern_netplay_report *report = &netplay->divergence.report;
    add_text(report, "the worlds differ, and the report failed: %s", quern_error_message());
    report->is_complete = true;
}

static quern_result restore(quern_netplay *netplay, quern_jobs *jobs, uint32_t frame)
{
    const quern_result result = quern_history_restore(netplay->history, frame, jobs);
    if (result == QUERN_OK) netplay->frame = frame;
    return result;
}

/* -------------------------------------------------------------------------------------------- traces */

static quern_result run_trace(quern_netplay *netplay, quern_jobs *jobs, uint32_t frame)
{
    quern__netplay_trace *trace = &netplay->divergence.own;
    const uint32_t interval = netplay->def.hash_interval;
    trace->first = frame >= interval ? frame - interval : 0;
    quern_result result = restore(netplay, jobs, trace->first);
    while (result == QUERN_OK && netplay->frame < frame) {
        trace->hashes[trace->count++] = quern_world_hash(netplay->def.world);
        result = quern__netplay_run_frame(netplay, jobs);
    }
    if (result == QUERN_OK) trace->hashes[trace->count++] = quern_world_hash(netplay->def.world);
    return result;
}

void quern__netplay_begin_report(quern_netplay *netplay, quern_jobs *jobs, uint32_t player, uint32_t frame,
                                 uint64_t own_hash)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern__netplay_end_transfer(netplay); /* the world of a player that joins */
    divergence->report.player = player;
    divergence->own_hash = own_hash;
    divergence->start = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_PLAYERS; i++)
        divergence->wanted[i] = QUERN__NETPLAY_NEVER;
    if (run_trace(netplay, jobs, frame) != QUERN_OK) give_up(netplay);
}

void quern__netplay_take_trace(quern_netplay *netplay, uint32_t player, const quern__netplay_trace *trace,
                               uint32_t start, uint32_t first_missing)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    if (player == divergence->report.player && divergence->other.count == 0) divergence->other = *trace;
    if (divergence->start != QUERN__NETPLAY_NEVER && start == divergence->start)
        divergence->wanted[player] = first_missing;
}

/* Returns the first frame before which the hashes of both traces differ; NEVER if there is none. */
static uint32_t find_difference(const quern__netplay_trace *own, const quern__netplay_trace *other)
{
    for (uint32_t i = 0; i < own->count; i++) {
        const uint32_t frame = own->first + i;
        if (frame >= other->first && frame - other->first < other->count &&
            own->hashes[i] != other->hashes[frame - other->first])
            return frame;
    }
    return QUERN__NETPLAY_NEVER;
}

/* ---------------------------------------------------------------------------------------- recordings */

/* Records the next frame, and returns to its beginning. */
static quern_result record_frame(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    const quern_replay_recorder_def def = {.inputs = {netplay->def.inputs},
                                           .detail = QUERN_REPLAY_ENTITIES};
    quern_replay_recorder *recorder;
    divergence->recording.allocator = netplay->allocator;
    quern_result result = restore(netplay, jobs, divergence->start);
    if (result == QUERN_OK)
        result = quern_replay_recorder_create(netplay->def.schedule,
                                              quern_sink_bytes(&divergence->recording), &def, &recorder);
    if (result != QUERN_OK) return result;
    quern__netplay_set_inputs(netplay);
    result = quern_replay_record(recorder, jobs, netplay->def.step_seconds);
    const quern_result finished = quern_replay_finish(recorder);
    if (result == QUERN_OK) result = finished;
    return result == QUERN_OK ? restore(netplay, jobs, divergence->start) : result;
}

/* Finds the frame that differs, when the trace of the other machine has arrived. */
static void compare_traces(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern_netplay_report *report = &divergence->report;
    const quern__netplay_trace *own = &divergence->own;
    const uint32_t frame = find_difference(own, &divergence->other);
    if (frame == QUERN__NETPLAY_NEVER) {
        report->frame = own->first;
        add_text(
            report,
            "frames %u to %u gave the same hashes on both machines when they were run again, and had not "
            "before: they depend on data outside of the world%s",
            own->first, own->first + own->count - 2,
            own->hashes[own->count - 1] != divergence->own_hash ? ", on this machine"
                                                                : ", on the other machine");
        report->is_complete = true;
        if (restore(netplay, jobs, own->first) != QUERN_OK) give_up(netplay);
        return;
    }
    divergence->start = frame > own->first ? frame - 1 : frame;
    report->frame = divergence->start;
    if (record_frame(netplay, jobs) != QUERN_OK) give_up(netplay);
}

/* Writes the report about the difference that the replay has found. The texts of replays begin with the frame. */
static void describe(quern_netplay *netplay)
{
    const quern__netplay_divergence *divergence = &netplay->divergence;
    quern_netplay_report *report = &netplay->divergence.report;
    const char *text = strstr(report->difference.text, ": ");
    report->difference.frame += divergence->start;
    if (report->difference.difference == QUERN_REPLAY_NONE)
        add_text(
            report,
            "frame %u gave another hash than on the machine of player %u, and the same when it was run "
            "again: it depends on data outside of the world",
            divergence->start, report->player);
    else
        add_text(report, "%s frame %u, other than on the machine of player %u: %s",
                 report->difference.is_before_first ? "before" : "in", divergence->start, report->player,
                 text != NULL ? text + 2 : report->difference.text);
    if (divergence->own.hashes[divergence->own.count - 1] != divergence->own_hash)
        add_text(report, "; on this machine, frames that were run again gave another hash");
}

/* Replays the recording of the other machine, and returns to the beginning of its frame. */
static void compare_recordings(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern_netplay_report *report = &divergence->report;
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_result result = quern_replay_run(
        netplay->def.schedule, jobs, quern_source_bytes(transfer->bytes.bytes, transfer->total_bytes), NULL,
        &report->difference);
    report->own_recording = divergence->recording.bytes;
    report->own_recording_bytes = divergence->recording.size_bytes;
    report->other_recording = transfer->bytes.bytes;
    report->other_recording_bytes = transfer->total_bytes;
    report->is_complete = true;
    if (result == QUERN_OK || result == QUERN_ERROR_DIVERGED)
        describe(netplay);
    else
        give_up(netplay);
    if (restore(netplay, jobs, divergence->start) != QUERN_OK) give_up(netplay);
}

void quern__netplay_continue_report(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    if (divergence->report.is_complete || divergence->other.count == 0) return;
    if (divergence->start == QUERN__NETPLAY_NEVER) compare_traces(netplay, jobs);
    if (!divergence->report.is_complete && divergence->is_whole) compare_recordings(netplay, jobs);
}

void quern__netplay_end_report(quern_netplay *netplay)
{
    quern_byte_buffer_release(&netplay->divergence.recording);
}

quern_result quern_netplay_get_report(const quern_netplay *netplay, quern_netplay_report *out_report)
{
    static const char function[] = "quern_netplay_get_report";
    if (netplay == NULL || out_report == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                               netplay == NULL ? "netplay" : "out_report");
    if (!netplay->has_diverged || !netplay->def.reports)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                               "%s: there is no report: call it after quern_netplay_advance has returned "
                               "DIVERGED, in a session with reports",
                               function);
    *out_report = netplay->divergence.report;
    return QUERN_OK;
}
