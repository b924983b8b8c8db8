/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A session of netplay: the inputs of frames, prediction and rollback, how a joining player gets the world, and the
 * report if worlds differ. netplay_internal.h has the invariants; netplay_members.c agrees on the players
 * that take part; netplay_packet.c reads and writes packets. */
#include "kit/netplay_internal.h"

#include "kit/random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

/* -------------------------------------------------------------------------------------------- inputs */

/* Stores the input of a player for a frame: known, zero or predicted. */
static void get_input(const quern_netplay *netplay, uint32_t player, uint32_t frame,
                      unsigned char *out_input)
{
    const quern__netplay_player *known = &netplay->players[player];
    const quern__netplay_member *member = &netplay->table.members[player];
    const uint32_t bytes = netplay->def.input_bytes;
    uint32_t from = frame;
    if (quern__netplay_has_zero_input(member, frame)) {
        memset(out_input, 0, bytes);
        return;
    }
    if (frame >= known->known_end) { /* the prediction */
        from = known->known_end > 0 ? known->known_end - 1 : 0;
        if (known->known_end == 0 || quern__netplay_has_zero_input(member, from)) {
            memset(out_input, 0, bytes);
            return;
        }
        if (netplay->def.predict != NULL) {
            _Alignas(QUERN_MAX_NETPLAY_INPUT_BYTES) unsigned char last[QUERN_MAX_NETPLAY_INPUT_BYTES];
            _Alignas(QUERN_MAX_NETPLAY_INPUT_BYTES) unsigned char predicted[QUERN_MAX_NETPLAY_INPUT_BYTES];
            memcpy(last, known->inputs[from % QUERN__NETPLAY_WINDOW], bytes);
            memcpy(predicted, last, bytes);
            netplay->def.predict(netplay->def.predict_user_data, player, last, frame - from, predicted);
            memcpy(out_input, predicted, bytes);
            return;
        }
    }
    memcpy(out_input, known->inputs[from % QUERN__NETPLAY_WINDOW], bytes);
}

/* Gives the input of this machine's player to all frames up to the delay that have none yet. */
static void give_input(quern_netplay *netplay, const void *input)
{
    quern__netplay_player *self = &netplay->players[netplay->def.player];
    const uint32_t limit = quern__netplay_limit(netplay, netplay->def.player);
    if (limit == QUERN__NETPLAY_NEVER) return;
    for (self->known_end = limit; self->known_end <= netplay->frame + netplay->def.input_delay;
         self->known_end++)
        memcpy(self->inputs[self->known_end % QUERN__NETPLAY_WINDOW], input, netplay->def.input_bytes);
}

/* -------------------------------------------------------------------------------------------- frames */

/* Writes the inputs of the next frame to their resource. A verified frame has those with which it ran before: its members
 * may be those of an earlier table. */
static void set_inputs(quern_netplay *netplay)
{
    unsigned char *used = netplay->used[netplay->frame % QUERN__NETPLAY_WINDOW];
    const uint32_t bytes = netplay->def.input_bytes;
    for (uint32_t i = 0; i < netplay->def.player_count && netplay->frame >= netplay->verified; i++)
        get_input(netplay, i, netplay->frame, used + (size_t)i * bytes);
    memcpy(quern_resource_get(netplay->def.world, netplay->def.inputs), used,
           (size_t)netplay->def.player_count * bytes);
}

/* Notes the hash of the world before the next frame, and those of the inputs since the hash before the last one, and of as
 * many frames more as may be verified at once: the hashes before this one may be lost on the way to another machine, or not be
 * sent. */
static void note_hash(quern_netplay *netplay)
{
    const uint32_t interval = netplay->def.hash_interval, bytes = netplay->def.input_bytes;
    quern__netplay_hash *hash = &netplay->hashes[netplay->frame / interval % QUERN__NETPLAY_HASHES];
    if (hash->frame == netplay->frame && netplay->frame < netplay->verified)
        return; /* it has not changed */
    *hash = (quern__netplay_hash){.frame = netplay->frame, .hash = quern_world_hash(netplay->def.world)};
    uint32_t span = 2 * interval + netplay->def.max_rollback + netplay->def.max_input_delay;
    if (span > QUERN__NETPLAY_WINDOW && interval <= QUERN__NETPLAY_WINDOW) span = QUERN__NETPLAY_WINDOW;
    if (span > netplay->frame) span = netplay->frame;
    const uint32_t first = netplay->frame - span;
    if (first < netplay->loaded_frame || span > QUERN__NETPLAY_WINDOW) return;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        for (uint32_t frame = first; frame < netplay->frame; frame++)
            hash->inputs[i] = quern__netplay_checksum(
                hash->inputs[i] + 1, netplay->used[frame % QUERN__NETPLAY_WINDOW] + (size_t)i * bytes,
                bytes);
}

/* Returns the last saved frame that is not later than a frame: every save_interval-th one is saved, and the first one of
 * this machine. */
static uint32_t find_saved(const quern_netplay *netplay, uint32_t frame)
{
    const uint32_t saved = frame - frame % netplay->def.save_interval;
    return saved > netplay->loaded_frame ? saved : netplay->loaded_frame;
}

/* Runs one frame, and saves the world before it if it is one of those that are saved. */
static quern_result run_frame(quern_netplay *netplay, quern_jobs *jobs)
{
    quern_result result = QUERN_OK;
    if (find_saved(netplay, netplay->frame) == netplay->frame)
        result = quern_history_save(netplay->history, netplay->frame, jobs);
    if (result != QUERN_OK) return result;
    if (netplay->frame % netplay->def.hash_interval == 0) note_hash(netplay);
    set_inputs(netplay);
    result = quern_schedule_run(netplay->def.schedule, jobs, netplay->def.step_seconds);
    if (result == QUERN_OK) netplay->frame++;
    return result;
}

/* Runs the frames up to `end` again. */
static quern_result run_again(quern_netplay *netplay, quern_jobs *jobs, uint32_t end)
{
    quern_result result = QUERN_OK;
    while (netplay->frame < end && result == QUERN_OK) {
        result = run_frame(netplay, jobs);
        netplay->counts.rerun_count += result == QUERN_OK;
    }
    return result;
}

/* Goes back to an earlier frame: restores the last saved one, and runs the frames since then again, which have the same
 * inputs as before. */
static quern_result go_back(quern_netplay *netplay, quern_jobs *jobs, uint32_t frame)
{
    const uint32_t saved = find_saved(netplay, frame);
    const quern_result result = quern_history_restore(netplay->history, saved, jobs);
    if (result != QUERN_OK) return result;
    netplay->frame = saved;
    /* Frames that run again may fail: no hash of their former result may count until they have run. */
    for (uint32_t i = 0; i < QUERN__NETPLAY_HASHES; i++)
        if (netplay->hashes[i].frame > frame && netplay->hashes[i].frame > netplay->verified)
            netplay->hashes[i].frame = QUERN__NETPLAY_NEVER;
    return run_again(netplay, jobs, frame);
}

static bool ran_with_these_inputs(const quern_netplay *netplay, uint32_t frame)
{
    unsigned char input[QUERN_MAX_NETPLAY_INPUT_BYTES];
    const unsigned char *used = netplay->used[frame % QUERN__NETPLAY_WINDOW];
    const uint32_t bytes = netplay->def.input_bytes;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        get_input(netplay, i, frame, input);
        if (memcmp(input, used + (size_t)i * bytes, bytes) != 0) return false;
    }
    return true;
}

/* Runs the frames again whose inputs were predicted wrongly. */
static quern_result correct(quern_netplay *netplay, quern_jobs *jobs)
{
    const uint32_t confirmed = quern__netplay_find_confirmed(netplay);
    const uint32_t end = netplay->frame;
    uint32_t first = netplay->verified;
    /* A call that failed may have left verified frames to be run again. */
    quern_result result = run_again(netplay, jobs, netplay->verified);
    while (first < end && ran_with_these_inputs(netplay, first))
        first++;
    if (first < end && result == QUERN_OK) {
        result = go_back(netplay, jobs, first);
        netplay->counts.rollback_count += result == QUERN_OK;
        if (result == QUERN_OK) result = run_again(netplay, jobs, end);
    }
    if (result == QUERN_OK) netplay->verified = confirmed < netplay->frame ? confirmed : netplay->frame;
    return result;
}

/* ------------------------------------------------------------------------------------------ transfer */

quern_result quern__netplay_save_world(quern_netplay *netplay, quern_jobs *jobs, quern_byte_buffer *bytes)
{
    const quern_save_def def = {.schedules = {netplay->def.schedule}};
    const uint32_t present = netplay->frame, frame = netplay->verified;
    /* A call that failed may have left verified frames to be run again. */
    quern_result result = frame < present ? go_back(netplay, jobs, frame) : run_again(netplay, jobs, frame);
    if (result != QUERN_OK) return result;
    bytes->allocator = netplay->allocator;
    result = quern_world_save(netplay->def.world, quern_sink_bytes(bytes), &def);
    if (result == QUERN_OK && bytes->size_bytes >= UINT32_MAX)
        result =
            quern_error_set(QUERN_ERROR_LIMIT,
                            "quern_netplay_advance: the world has %zu bytes: at most 4 GiB can be sent to "
                            "a machine that joins or watches",
                            bytes->size_bytes);
    const quern_result again = run_again(netplay, jobs, present);
    return result != QUERN_OK ? result : again;
}

static quern_result begin_transfer(quern_netplay *netplay, quern_jobs *jobs, uint32_t player, bool has_list)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_result result = quern__netplay_save_world(netplay, jobs, &transfer->bytes);
    if (result != QUERN_OK) {
        quern__netplay_end_transfer(netplay);
        return result;
    }
    transfer->player = player;
    transfer->life = netplay->players[player].life;
    transfer->id = netplay->sequence;
    transfer->frame = netplay->verified;
    if (has_list) quern__netplay_list_chunks(netplay, &transfer->bytes, transfer->id, &transfer->list);
    transfer->total_bytes = (uint32_t)(transfer->list.size_bytes + transfer->bytes.size_bytes);
    return QUERN_OK;
}

quern_result quern__netplay_serve(quern_netplay *netplay, quern_jobs *jobs, uint32_t player,
                                  const quern__netplay_request *request)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    if (quern__netplay_find_leader(netplay) != netplay->def.player) return QUERN_OK;
    if (transfer->player == player && transfer->life != netplay->players[player].life)
        quern__netplay_end_transfer(netplay); /* another machine of the player asks */
    if (transfer->player == QUERN__NETPLAY_NEVER) {
        if (!quern__netplay_is_out(&netplay->table.members[player]) || netplay->change.promised != 0)
            return QUERN_OK;
        /* The joining machine gets no inputs from before the world that is sent. */
        for (uint32_t i = 0; i < netplay->def.player_count; i++) {
            const quern__netplay_member *member = &netplay->table.members[i];
            if (member->dropped_from != QUERN__NETPLAY_NEVER && netplay->verified < member->dropped_from)
                return QUERN_OK;
        }
        return begin_transfer(netplay, jobs, player, request->has_earlier);
    }
    if (transfer->player != player || (request->id != transfer->id && request->id != 0)) return QUERN_OK;
    /* Less may have arrived than before: a machine that hears nothing for too long gives up the chunks that it has. */
    transfer->first_missing = request->id != 0 ? request->first_missing : 0;
    memcpy(transfer->arrived, request->arrived, sizeof transfer->arrived);
    transfer->is_loaded = (uint64_t)transfer->first_missing * QUERN__NETPLAY_CHUNK >= transfer->total_bytes;
    return QUERN_OK;
}

/* Tells the program that the world is loaded, unless it knows. The changes that it makes in the call are undone. */
static quern_result tell_loaded(quern_netplay *netplay, quern_jobs *jobs)
{
    if (!netplay->owes_loaded) return QUERN_OK;
    const quern_result result = quern_history_save(netplay->history, netplay->frame, jobs);
    if (result != QUERN_OK) return result;
    netplay->owes_loaded = false;
    netplay->def.loaded(netplay->def.loaded_user_data);
    return quern_history_restore(netplay->history, netplay->frame, jobs);
}

quern_result quern__netplay_take_chunk(quern_netplay *netplay, quern_jobs *jobs,
                                       const quern__netplay_chunk *chunk)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_load_def def = {.schedules = {netplay->def.schedule}};
    bool is_whole;
    if (!netplay->counts.is_joining) return QUERN_OK;
    quern_result result = quern__netplay_store_chunk(netplay, chunk, &is_whole);
    if (result != QUERN_OK || !is_whole) return result;
    const uint32_t list_bytes = quern__netplay_list_bytes(transfer);
    const char *archive = (const char *)transfer->bytes.bytes + list_bytes;
    result = quern_world_load(netplay->def.world,
                              quern_source_bytes(archive, transfer->total_bytes - list_bytes), &def, NULL);
    if (result != QUERN_OK && result != QUERN_ERROR_OUT_OF_MEMORY && transfer->reused_count > 0) {
        /* A part of the earlier world may have the hash of another one: ask for all of it. */
        netplay->def.earlier_world = NULL;
        quern__netplay_end_transfer(netplay);
        return QUERN_OK;
    }
    if (result != QUERN_OK && result != QUERN_ERROR_OUT_OF_MEMORY) {
        netplay->end = QUERN__NETPLAY_DAMAGED;
        return QUERN_OK;
    }
    if (result != QUERN_OK) {
        netplay->transfer
            .first_missing--; /* the last chunk is sent again, and then the world is loaded again */
        return result;
    }
    /* Everything before the frame of the world is known. */
    netplay->frame = netplay->verified = netplay->loaded_frame = transfer->frame;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        netplay->players[i].known_end = transfer->frame;
    netplay->counts.is_joining = false;
    netplay->counts.loaded_bytes = transfer->total_bytes - list_bytes;
    netplay->counts.reused_bytes = (uint64_t)transfer->reused_count * QUERN__NETPLAY_CHUNK;
    netplay->def.earlier_world = NULL; /* the program may release it */
    netplay->loaded_ns = netplay->now_ns;
    quern__netplay_log_begin(netplay);
    if (netplay->def.spectates) quern__netplay_end_transfer(netplay);
    netplay->owes_loaded = netplay->def.loaded != NULL;
    return tell_loaded(netplay, jobs);
}

/* --------------------------------------------------------------------------------------- silence */

/* Counts the time, without pauses of this machine: after a pause, the others have not been silent. */
static void tell_time(quern_netplay *netplay)
{
    const uint64_t clock_ns = netplay->def.transport.now(netplay->def.transport.user_data);
    const uint64_t timeout_ns = (uint64_t)(netplay->def.timeout_seconds * 1e9);
    uint64_t passed_ns = clock_ns > netplay->clock_ns ? clock_ns - netplay->clock_ns : 0;
    if (timeout_ns > 0 && passed_ns > timeout_ns / 4) passed_ns = timeout_ns / 4;
    netplay->clock_ns = clock_ns;
    netplay->now_ns += passed_ns;
    if (netplay->change.promised == 0) netplay->starved_ns += passed_ns;
    if (netplay->now_ns - netplay->marked_ns < timeout_ns / QUERN__NETPLAY_MARKS || timeout_ns == 0) return;
    netplay->marks[netplay->mark_count++ % QUERN__NETPLAY_MARKS] = netplay->sequence;
    netplay->marked_ns = netplay->now_ns;
}

/* Gives up a transfer from or to a machine that has fallen silent, or that this machine no longer leads. */
static void check_transfer(quern_netplay *netplay)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const bool has_transfer = transfer->player != QUERN__NETPLAY_NEVER;
    if (netplay->is_admitted) {
        if (has_transfer &&
            (quern__netplay_find_leader(netplay) != netplay->def.player ||
             quern__netplay_has_passed(netplay, netplay->players[transfer->player].asked_ns, 1)))
            quern__netplay_end_transfer(netplay);
    } else if (netplay->counts.is_joining) {
        if (has_transfer && quern__netplay_has_passed(netplay, transfer->heard_ns, 1))
            quern__netplay_end_transfer(netplay); /* the next leader sends its world from the beginning */
    } else if (quern__netplay_has_passed(netplay, netplay->players[transfer->sender].contact_ns, 1) ||
               quern__netplay_has_passed(netplay, netplay->loaded_ns, 6)) {
        netplay->end = QUERN__NETPLAY_SENDER_SILENT;
    }
}

/* ------------------------------------------------------------------------------------------ reports */

/* Each machine goes back to the last hash before the one that differs, runs the frames since then again, and sends the
 * hash before each of them (a trace). Two traces show the first frame with another result. Each machine records that
 * frame with hashes of entities, sends the recording, and replays the recording of the other machine. */

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

/* -------------------------------------------------------------------------------------------- traces */

/* Begins a report: the hashes of the world before `frame` differ from those of another player. `own_hash`: that of this
 * machine. */
static void begin_report(quern_netplay *netplay, quern_jobs *jobs, uint32_t player, uint32_t frame,
                         uint64_t own_hash)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern__netplay_end_transfer(netplay); /* the world of a player that joins */
    divergence->report.player = player;
    divergence->own_hash = own_hash;
    divergence->start = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_PLAYERS; i++)
        divergence->wanted[i] = QUERN__NETPLAY_NEVER;
    const uint32_t interval = netplay->def.hash_interval;
    quern__netplay_trace *trace = &divergence->own;
    trace->first = frame >= netplay->loaded_frame + interval ? frame - interval : netplay->loaded_frame;
    quern_result result = go_back(netplay, jobs, trace->first);
    while (result == QUERN_OK && netplay->frame < frame) {
        trace->hashes[trace->count++] = quern_world_hash(netplay->def.world);
        result = run_frame(netplay, jobs);
    }
    if (result == QUERN_OK)
        trace->hashes[trace->count++] = quern_world_hash(netplay->def.world);
    else
        give_up(netplay);
}

void quern__netplay_take_trace(quern_netplay *netplay, uint32_t player, const quern__netplay_trace *trace,
                               uint32_t start, uint32_t first_missing)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    if (player == divergence->report.player && divergence->other.count == 0) divergence->other = *trace;
    if (divergence->start != QUERN__NETPLAY_NEVER && start == divergence->start)
        divergence->wanted[player] = first_missing;
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
    quern_result result = go_back(netplay, jobs, divergence->start);
    if (result == QUERN_OK)
        result = quern_replay_recorder_create(netplay->def.schedule,
                                              quern_sink_bytes(&divergence->recording), &def, &recorder);
    if (result != QUERN_OK) return result;
    set_inputs(netplay);
    result = quern_replay_record(recorder, jobs, netplay->def.step_seconds);
    const quern_result finished = quern_replay_finish(recorder);
    if (result == QUERN_OK) result = finished;
    return result == QUERN_OK ? go_back(netplay, jobs, divergence->start) : result;
}

/* Finds the frame that differs, when the trace of the other machine has arrived. */
static void compare_traces(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern_netplay_report *report = &divergence->report;
    const quern__netplay_trace *own = &divergence->own, *other = &divergence->other;
    uint32_t i = 0; /* of the first hash that both traces have and that differs */
    for (; i < own->count; i++) {
        const uint32_t frame = own->first + i;
        if (frame >= other->first && frame - other->first < other->count &&
            own->hashes[i] != other->hashes[frame - other->first])
            break;
    }
    if (i == own->count) {
        report->frame = own->first;
        add_text(
            report,
            "frames %u to %u gave the same hashes on both machines when they were run again, and had not "
            "before: they depend on data outside of the world%s",
            own->first, own->first + own->count - 2,
            own->hashes[own->count - 1] != divergence->own_hash ? ", on this machine"
                                                                : ", on the other machine");
        report->is_complete = true;
        if (go_back(netplay, jobs, own->first) != QUERN_OK) give_up(netplay);
        return;
    }
    divergence->start = i > 0 ? own->first + i - 1 : own->first;
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
    if (go_back(netplay, jobs, divergence->start) != QUERN_OK) give_up(netplay);
}

/* -------------------------------------------------------------------------------------------- hashes */

/* Returns the hash of a player's machine with the index, if it can be compared; NULL otherwise. */
static const quern__netplay_hash *find_hash(const quern_netplay *netplay, uint32_t player, uint32_t index)
{
    const quern__netplay_hash *own = &netplay->hashes[index];
    const quern__netplay_hash *other =
        player == netplay->def.player ? own : &netplay->players[player].hashes[index];
    return own->frame <= netplay->verified && other->frame == own->frame ? other : NULL;
}

/* Writes which of the machines errs, as far as the hashes with the index tell: a player has sent other inputs to one
 * machine than to another one, or one machine differs from all others. Two other machines may tell more than this one,
 * if it has just joined. Sets *player to the machine to report. */
static void judge(const quern_netplay *netplay, uint32_t index, uint32_t *player, char *text,
                  size_t text_bytes)
{
    const quern__netplay_hash *own = &netplay->hashes[index];
    uint32_t known = 0, same[QUERN_MAX_NETPLAY_PLAYERS] = {0};
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_hash *a = find_hash(netplay, i, index);
        known += a != NULL;
        for (uint32_t k = 0; k < netplay->def.player_count && a != NULL; k++) {
            const quern__netplay_hash *b = find_hash(netplay, k, index);
            same[i] += b != NULL && b->hash == a->hash;
            if (b == NULL || b->hash == a->hash) continue;
            for (uint32_t from = 0; from < netplay->def.player_count; from++) {
                if (from == netplay->def.player || from == i || from == k || a->inputs[from] == 0 ||
                    b->inputs[from] == 0 || a->inputs[from] == b->inputs[from])
                    continue;
                *player = a->hash != own->hash ? i : k;
                snprintf(
                    text, text_bytes,
                    "player %u has sent other inputs to the machine of player %u than to that of player "
                    "%u: end the session, and play without player %u",
                    from, i, k, from);
                return;
            }
        }
    }
    const uint32_t most = known - 1;
    for (uint32_t i = 0; i < netplay->def.player_count && known > 2; i++)
        if (i != netplay->def.player && find_hash(netplay, i, index) != NULL && same[i] == 1 &&
            same[netplay->def.player] == most)
            *player = i;
    snprintf(text, text_bytes,
             "%ssome system depends on data outside of the world; record both runs and compare them "
             "(quern_replay_run)",
             known > 2 && same[*player] == 1 && same[netplay->def.player] == most
                 ? "that machine is the odd one out: "
             : known > 2 && same[netplay->def.player] == 1 && same[*player] == most
                 ? "this machine is the odd one out: "
                 : "");
}

/* Compares the hashes of frames whose inputs are known on both machines. Reports the first frame that differs, when the
 * hashes of all members are known, or after some calls. *out_waits: whether this machine waits for hashes. */
static quern_result compare_hashes(quern_netplay *netplay, quern_jobs *jobs, bool *out_waits)
{
    enum { MOST_CALLS = 60 };
    uint32_t player = 0, index = QUERN__NETPLAY_HASHES;
    char reason[256];
    *out_waits = false;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++) {
            const quern__netplay_hash *own = &netplay->hashes[k], *other = find_hash(netplay, i, k);
            if (other == NULL || own->hash == other->hash ||
                (index < QUERN__NETPLAY_HASHES && own->frame >= netplay->hashes[index].frame))
                continue;
            player = i;
            index = k;
        }
    }
    if (index == QUERN__NETPLAY_HASHES) {
        netplay->differing_calls = 0;
        return QUERN_OK;
    }
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        *out_waits = *out_waits || ((quern__netplay_members(&netplay->table) >> i & 1) != 0 &&
                                    find_hash(netplay, i, index) == NULL);
    if (*out_waits && netplay->differing_calls++ < MOST_CALLS) return QUERN_OK;
    judge(netplay, index, &player, reason, sizeof reason);
    const quern__netplay_hash *own = &netplay->hashes[index];
    const quern__netplay_hash *other = &netplay->players[player].hashes[index];
    netplay->has_diverged = true;
    netplay->diverged_player = player;
    if (netplay->def.reports) begin_report(netplay, jobs, player, own->frame, own->hash);
    return quern_error_set(QUERN_ERROR_DIVERGED,
                           "quern_netplay_advance: the world before frame %u has the hash %016llx here and "
                           "%016llx on the machine of player %u: %s",
                           own->frame, (unsigned long long)own->hash, (unsigned long long)other->hash,
                           player, reason);
}

/* ----------------------------------------------------------------------------------------- creating */

enum { FIRST_LIFE = 1, DEFAULT_HASH_INTERVAL = 30 };

static quern_result fail_range(const char *name, uint32_t value, uint32_t least, uint32_t most)
{
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_netplay_create: %s is %u: give a number from %u to %u", name, value,
                           least, most);
}

static quern_result check_numbers(const quern_netplay_def *def)
{
    if (def->player_count < 2 || def->player_count > QUERN_MAX_NETPLAY_PLAYERS)
        return fail_range("player_count", def->player_count, 2, QUERN_MAX_NETPLAY_PLAYERS);
    if (!def->spectates && def->player >= def->player_count)
        return fail_range("player", def->player, 0, def->player_count - 1);
    if (def->spectates && def->player >= QUERN_MAX_NETPLAY_SPECTATORS)
        return fail_range("player of a spectator", def->player, 0, QUERN_MAX_NETPLAY_SPECTATORS - 1);
    if (def->watches >= def->player_count)
        return fail_range("watches", def->watches, 0, def->player_count - 1);
    if (def->spectator_count > QUERN_MAX_NETPLAY_SPECTATORS)
        return fail_range("spectator_count", def->spectator_count, 0, QUERN_MAX_NETPLAY_SPECTATORS);
    if (def->spectator_delay > QUERN_MAX_NETPLAY_KEPT_FRAMES)
        return fail_range("spectator_delay", def->spectator_delay, 0, QUERN_MAX_NETPLAY_KEPT_FRAMES);
    if (def->spectator_window > QUERN_MAX_NETPLAY_KEPT_FRAMES)
        return fail_range("spectator_window", def->spectator_window, 0, QUERN_MAX_NETPLAY_KEPT_FRAMES);
    if (def->input_bytes == 0 || def->input_bytes > QUERN_MAX_NETPLAY_INPUT_BYTES)
        return fail_range("input_bytes", def->input_bytes, 1, QUERN_MAX_NETPLAY_INPUT_BYTES);
    if (def->input_delay > QUERN_MAX_NETPLAY_DELAY)
        return fail_range("input_delay", def->input_delay, 0, QUERN_MAX_NETPLAY_DELAY);
    if (def->max_input_delay > QUERN_MAX_NETPLAY_DELAY ||
        (def->max_input_delay != 0 && def->max_input_delay < def->input_delay))
        return fail_range("max_input_delay", def->max_input_delay, def->input_delay,
                          QUERN_MAX_NETPLAY_DELAY);
    if (def->max_rollback > QUERN_MAX_NETPLAY_ROLLBACK)
        return fail_range("max_rollback", def->max_rollback, 0, QUERN_MAX_NETPLAY_ROLLBACK);
    if (def->save_interval > QUERN_MAX_NETPLAY_SAVE_INTERVAL)
        return fail_range("save_interval", def->save_interval, 0, QUERN_MAX_NETPLAY_SAVE_INTERVAL);
    if (def->reports && def->hash_interval > QUERN_MAX_NETPLAY_REPORT)
        return fail_range("hash_interval with reports", def->hash_interval, 0, QUERN_MAX_NETPLAY_REPORT);
    if (!isfinite(def->step_seconds) || def->step_seconds <= 0)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: step_seconds is %g: give a number greater than 0",
                               def->step_seconds);
    if (!isfinite(def->timeout_seconds) || def->timeout_seconds < 0)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: timeout_seconds is %g: give 0 or more",
                               def->timeout_seconds);
    return QUERN_OK;
}

static quern_result check_def(const quern_netplay_def *def)
{
    static const char function[] = "quern_netplay_create";
    if (def->world == NULL) return fail_null(function, "def->world");
    if (def->schedule == NULL) return fail_null(function, "def->schedule");
    if (def->transport.send == NULL) return fail_null(function, "def->transport.send");
    if (def->transport.receive == NULL) return fail_null(function, "def->transport.receive");
    if (def->transport.now == NULL) return fail_null(function, "def->transport.now");
    quern_result result = check_numbers(def);
    if (result != QUERN_OK) return result;
    const uint32_t all = (1u << def->player_count) - 1;
    if ((def->absent & ~all) != 0 || (def->absent & all) == all)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: absent is %#x: set bits of some of the %u players",
                               def->absent, def->player_count);
    if (def->spectates && (def->joins || def->spectator_count > 0))
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: a machine that spectates has %s: leave it out; a "
                               "spectator has no player, and no spectators of its own",
                               def->joins ? "joins" : "a spectator_count");
    const uint32_t interval = def->hash_interval != 0 ? def->hash_interval : DEFAULT_HASH_INTERVAL;
    const uint32_t window =
        def->spectator_window != 0 ? def->spectator_window : QUERN__NETPLAY_SPECTATOR_WINDOW;
    if (def->spectator_count > 0 && interval >= window)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_netplay_create: hash_interval is %u and spectator_window %u frames: make the window "
            "longer "
            "than the interval; spectators would see nothing while another machine has no spectator_count",
            interval, window);
    if (!def->joins && !def->spectates && def->earlier_world != NULL)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: a machine that neither joins nor spectates has an "
                               "earlier_world: leave it out; the world "
                               "of no other machine is sent to this one");
    if (!def->joins && !def->spectates && (def->absent >> def->player & 1) != 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_netplay_create: player %u is absent: set joins, or leave the player out of absent",
            def->player);
    uint32_t size_bytes;
    result = quern_resource_get_size(def->world, def->inputs, &size_bytes);
    if (result != QUERN_OK || size_bytes == def->player_count * def->input_bytes) return result;
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_netplay_create: the resource of inputs has %u bytes: it needs %u, for %u "
                           "players with inputs of %u bytes",
                           size_bytes, def->player_count * def->input_bytes, def->player_count,
                           def->input_bytes);
}

static void init(quern_netplay *netplay, const quern_netplay_def *def)
{
    netplay->def = *def;
    if (netplay->def.max_rollback == 0) netplay->def.max_rollback = 8;
    if (netplay->def.max_input_delay == 0) netplay->def.max_input_delay = def->input_delay;
    if (netplay->def.hash_interval == 0) netplay->def.hash_interval = DEFAULT_HASH_INTERVAL;
    if (netplay->def.save_interval == 0) netplay->def.save_interval = 1;
    netplay->transfer.player = QUERN__NETPLAY_NEVER;
    netplay->clock_ns = def->transport.now(def->transport.user_data);
    netplay->now_ns = netplay->progressed_ns = 1; /* 0 stands for no time */
    netplay->life = FIRST_LIFE;
    const bool starts = !def->joins && !def->spectates;
    if (def->spectates) netplay->def.player = QUERN_NETPLAY_SPECTATOR + def->player;
    if (!starts)
        netplay->life = (uint32_t)(quern_random(netplay->clock_ns, def->session + def->player) >> 36) |
                        (FIRST_LIFE + 1);
    for (uint32_t i = 0; i < QUERN__NETPLAY_HASHES; i++)
        netplay->hashes[i].frame = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_PLAYERS; i++) {
        const bool is_out = !starts || i >= def->player_count || (def->absent >> i & 1) != 0;
        netplay->table.members[i] =
            is_out ? (quern__netplay_member){.active_from = QUERN__NETPLAY_NEVER}
                   : (quern__netplay_member){.dropped_from = QUERN__NETPLAY_NEVER, .life = FIRST_LIFE};
        quern__netplay_player *player = &netplay->players[i];
        player->known_end = is_out ? 0 : def->input_delay; /* these inputs are zero */
        player->heard_ns = netplay->now_ns;
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
            player->hashes[k].frame = QUERN__NETPLAY_NEVER;
        for (uint32_t k = 0; k < def->player_count; k++)
            player->acks[k] = def->input_delay;
    }
    quern__netplay_set_id(netplay, &netplay->table);
    netplay->counts.is_joining = !starts;
    netplay->is_admitted = starts;
    netplay->shown_present = quern__netplay_members(&netplay->table);
}

quern_result quern_netplay_create(const quern_netplay_def *def, quern_netplay **out_netplay)
{
    if (def == NULL) return fail_null("quern_netplay_create", "def");
    if (out_netplay == NULL) return fail_null("quern_netplay_create", "out_netplay");
    quern_result result = check_def(def);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator =
        def->allocator.allocate != NULL ? def->allocator : quern_allocator_default();
    quern_netplay *netplay =
        allocator.allocate(allocator.user_data, sizeof *netplay, _Alignof(quern_netplay));
    if (netplay == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "quern_netplay_create: no memory for a session");
    memset(netplay, 0, sizeof *netplay);
    netplay->allocator = allocator;
    init(netplay, def);
    result = quern__netplay_stands_open(netplay);
    /* A machine goes back to `verified` at most, which is within the frames that the rings hold (netplay_internal.h).
     * Hashes of a frame are compared at most as many frames later, and a report goes back to the hash before. */
    const uint32_t report_count = def->reports ? netplay->def.hash_interval : 0;
    const uint32_t frame_count =
        2 * (netplay->def.max_rollback + netplay->def.max_input_delay) + 4 + report_count;
    const uint32_t interval = netplay->def.save_interval;
    const quern_history_def history = {
        .schedules = {def->schedule},
        /* with the one before these frames, and the first one of this machine */
        .frame_count = interval == 1 ? frame_count : frame_count / interval + 3,
        .allocator = def->allocator};
    if (result == QUERN_OK) result = quern_history_create(def->world, &history, &netplay->history);
    if (result != QUERN_OK) {
        quern__netplay_stands_close(netplay);
        allocator.release(allocator.user_data, netplay, sizeof *netplay, _Alignof(quern_netplay));
        return result;
    }
    *out_netplay = netplay;
    return QUERN_OK;
}

void quern_netplay_destroy(quern_netplay *netplay)
{
    if (netplay == NULL) return;
    const quern_allocator allocator = netplay->allocator;
    quern__netplay_end_transfer(netplay);
    quern_byte_buffer_release(&netplay->divergence.recording);
    quern__netplay_stands_close(netplay);
    quern_history_destroy(netplay->history);
    allocator.release(allocator.user_data, netplay, sizeof *netplay, _Alignof(quern_netplay));
}

/* ----------------------------------------------------------------------------------------- advancing */

/* Returns whether the others are so far ahead that this machine should run more than one frame per call. */
static bool is_behind(const quern_netplay *netplay)
{
    uint32_t others = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && !quern__netplay_is_out(&netplay->table.members[i]) &&
            netplay->players[i].frame < others)
            others = netplay->players[i].frame;
    return others != QUERN__NETPLAY_NEVER && netplay->frame + netplay->def.max_rollback / 2 < others &&
           quern__netplay_find_confirmed(netplay) > netplay->frame;
}

/* A machine that joins runs no frame before its player takes part: it could get so far ahead that it has no frame left
 * for which to give the inputs that the others wait for. */
static bool may_run(const quern_netplay *netplay)
{
    const bool serves =
        netplay->transfer.player != QUERN__NETPLAY_NEVER && netplay->transfer.player != netplay->def.player;
    const bool is_at_end = netplay->def.frame_count != 0 && netplay->frame >= netplay->def.frame_count;
    return netplay->is_admitted && !serves && !is_at_end &&
           netplay->frame < (uint64_t)quern__netplay_find_confirmed(netplay) + netplay->def.max_rollback;
}

/* Returns whether this machine skips a frame because it is ahead of another one: by half of the difference between the
 * leads that both see, since a packet takes as long in one direction as in the other. Otherwise a machine with the faster clock
 * would have to correct all predictions. */
static bool is_early(quern_netplay *netplay)
{
    enum { TWICE_FRAMES = 3, EARLY_CALLS_MOST = 12 };
    int32_t most = 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_player *player = &netplay->players[i];
        if (i != netplay->def.player && !quern__netplay_is_out(&netplay->table.members[i]) &&
            player->ahead - player->their_ahead > most)
            most = player->ahead - player->their_ahead;
    }
    netplay->early_calls = most >= TWICE_FRAMES ? netplay->early_calls + 1 : 0;
    if (netplay->early_calls < EARLY_CALLS_MOST) return false;
    netplay->early_calls = 0;
    return true;
}

static quern_result run_frames(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                               uint32_t *out_frame_count)
{
    enum { MOST_FRAMES = 8 };
    quern_result result = QUERN_OK;
    *out_frame_count = 0;
    if (is_early(netplay)) return QUERN_OK;
    while (result == QUERN_OK && *out_frame_count < MOST_FRAMES && may_run(netplay) &&
           (*out_frame_count == 0 || is_behind(netplay))) {
        give_input(netplay, input);
        result = run_frame(netplay, jobs);
        *out_frame_count += result == QUERN_OK;
    }
    if (result == QUERN_OK && *out_frame_count == 0) netplay->counts.wait_count++;
    return result;
}

/* Returns a player that this machine needs, and has heard only with another version of the protocol; player_count if
 * there is none. */
static uint32_t find_other_version(const quern_netplay *netplay)
{
    uint32_t found = netplay->def.player_count;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_player *player = &netplay->players[i];
        if (netplay->counts.is_joining && player->life != 0) return netplay->def.player_count;
        if (player->life == 0 && player->other_version != 0 &&
            (netplay->counts.is_joining || !quern__netplay_is_out(&netplay->table.members[i])))
            found = i;
    }
    return found;
}

/* Fails if this machine cannot go on. */
static quern_result check_end(const quern_netplay *netplay)
{
    if (netplay->end != QUERN__NETPLAY_GOES_ON && netplay->def.spectates)
        return quern_error_set(
            QUERN_ERROR_CANCELLED,
            "quern_netplay_advance: spectator %u cannot go on: %s: create a world without entities and "
            "watch again (quern_netplay_def.spectates)",
            netplay->def.player - QUERN_NETPLAY_SPECTATOR,
            netplay->end == QUERN__NETPLAY_DAMAGED
                ? "the world that a player has sent cannot be loaded, or it is one of another game"
                : "no player keeps the inputs any more that it lacks (quern_netplay_def.spectator_window)");
    if (netplay->end != QUERN__NETPLAY_GOES_ON)
        return quern_error_set(
            QUERN_ERROR_CANCELLED,
            "quern_netplay_advance: player %u cannot go on: %s: create a world without entities "
            "and join (quern_netplay_def.joins)",
            netplay->def.player,
            netplay->end == QUERN__NETPLAY_DAMAGED
                ? "the world that another player has sent cannot be loaded, or it is one of another game"
            : netplay->end == QUERN__NETPLAY_DROPPED
                ? "the other players have dropped this one after a silence"
            : netplay->end == QUERN__NETPLAY_LEFT_BEHIND
                ? "no player has sent it the last inputs of one that has left, which it lacks"
                : "the player that sent the world has not let this one take part");
    const uint32_t other = find_other_version(netplay);
    if (other < netplay->def.player_count)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                               "quern_netplay_advance: the machine of player %u has version %u of the "
                               "protocol of netplay, and this one version %u: play with one version of "
                               "Quern on all machines",
                               other, netplay->players[other].other_version, QUERN__NETPLAY_VERSION);
    if (netplay->def.spectates) return QUERN_OK;
    if (netplay->counts.is_joining && quern__netplay_has_passed(netplay, netplay->progressed_ns, 4))
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "quern_netplay_advance: player %u has asked for the world in vain: no player is "
            "heard that hears at least half of the players, or others join before: call "
            "again, or begin another session, with the world of a player that has one",
            netplay->def.player);
    if (netplay->minority_since_ns == 0 ||
        !quern__netplay_has_passed(netplay, netplay->minority_since_ns, 2))
        return QUERN_OK;
    return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                           "quern_netplay_advance: player %u hears less than half of the players (bits %#x "
                           "of %#x), and the others may go on without it: call again until they are heard, "
                           "or end the session and join (quern_netplay_def.joins)",
                           netplay->def.player, quern__netplay_find_alive(netplay),
                           quern__netplay_members(&netplay->table));
}

static quern_result advance(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                            uint32_t *out_frame_count)
{
    quern_result result = tell_loaded(netplay, jobs);
    if (result != QUERN_OK) return result;
    if (netplay->def.spectates) {
        result = quern__netplay_spectate(netplay, jobs, out_frame_count);
        return result == QUERN_OK ? check_end(netplay) : result;
    }
    result = quern__netplay_receive(netplay, jobs);
    if (result != QUERN_OK) return result;
    check_transfer(netplay);
    if (netplay->is_admitted && netplay->end == QUERN__NETPLAY_GOES_ON) quern__netplay_lead(netplay);
    if (netplay->end != QUERN__NETPLAY_GOES_ON) return check_end(netplay);
    if (netplay->counts.is_joining) return check_end(netplay);
    result = correct(netplay, jobs);
    if (result == QUERN_OK) result = quern__netplay_serve_spectators(netplay, jobs);
    bool waits = false;
    if (result == QUERN_OK) result = compare_hashes(netplay, jobs, &waits);
    if (result == QUERN_OK && !waits) result = run_frames(netplay, jobs, input, out_frame_count);
    return result == QUERN_OK ? check_end(netplay) : result;
}

/* Goes on with the report after the worlds have differed. Packets with the hashes are sent on, so that the
 * other machine finds the difference, too. */
static quern_result advance_report(quern_netplay *netplay, quern_jobs *jobs)
{
    const quern_netplay_report *report = &netplay->divergence.report;
    (void)quern__netplay_receive(netplay, jobs);
    if (!netplay->def.reports)
        return quern_error_set(
            QUERN_ERROR_DIVERGED,
            "quern_netplay_advance: the worlds have diverged before: destroy the session");
    /* The next step for which everything has arrived. */
    quern__netplay_divergence *divergence = &netplay->divergence;
    if (!report->is_complete && divergence->other.count > 0) {
        if (divergence->start == QUERN__NETPLAY_NEVER) compare_traces(netplay, jobs);
        if (!report->is_complete && divergence->is_whole) compare_recordings(netplay, jobs);
    }
    if (!report->is_complete)
        return quern_error_set(QUERN_ERROR_DIVERGED,
                               "quern_netplay_advance: the worlds have diverged, and the report waits for "
                               "the machine of player %u: call again, or destroy the session",
                               report->player);
    return quern_error_set(QUERN_ERROR_DIVERGED, "quern_netplay_advance: the worlds have diverged: %s",
                           report->text);
}

quern_result quern_netplay_advance(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                                   uint32_t *out_frame_count)
{
    uint32_t frame_count = 0;
    if (netplay == NULL) return fail_null("quern_netplay_advance", "netplay");
    if (input == NULL && !netplay->def.spectates) return fail_null("quern_netplay_advance", "input");
    if (netplay->end != QUERN__NETPLAY_GOES_ON) return check_end(netplay);
    tell_time(netplay);
    const quern_result result = netplay->has_diverged && !netplay->def.spectates
                                    ? advance_report(netplay, jobs)
                                    : advance(netplay, jobs, input, &frame_count);
    if (netplay->end == QUERN__NETPLAY_GOES_ON) quern__netplay_send(netplay);
    quern__netplay_note_events(netplay);
    if (out_frame_count != NULL) *out_frame_count = frame_count;
    return result;
}

quern_result quern_netplay_set_input_delay(quern_netplay *netplay, uint32_t input_delay)
{
    if (netplay == NULL) return fail_null("quern_netplay_set_input_delay", "netplay");
    if (input_delay > netplay->def.max_input_delay)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_set_input_delay: input_delay is %u: give a number from 0 to "
                               "%u, or create the session with a larger max_input_delay",
                               input_delay, netplay->def.max_input_delay);
    netplay->def.input_delay = input_delay;
    return QUERN_OK;
}

quern_result quern_netplay_get_status(const quern_netplay *netplay, quern_netplay_status *out_status)
{
    if (netplay == NULL) return fail_null("quern_netplay_get_status", "netplay");
    if (out_status == NULL) return fail_null("quern_netplay_get_status", "out_status");
    *out_status = netplay->counts;
    out_status->frame = netplay->frame;
    out_status->confirmed_frame = netplay->verified;
    out_status->present = quern__netplay_members(&netplay->table);
    out_status->watched = netplay->stands.watched;
    if (netplay->def.spectates) out_status->confirmed_frame = netplay->stands.log.end;
    for (uint32_t i = 0; i < netplay->def.spectator_count; i++) {
        const quern__netplay_spectator *spectator = &netplay->stands.spectators[i];
        if (spectator->has_world && quern__netplay_is_watching(netplay, spectator))
            out_status->spectators |= 1u << i;
    }
    return QUERN_OK;
}

quern_result quern_netplay_get_report(const quern_netplay *netplay, quern_netplay_report *out_report)
{
    static const char function[] = "quern_netplay_get_report";
    if (netplay == NULL) return fail_null(function, "netplay");
    if (out_report == NULL) return fail_null(function, "out_report");
    if (!netplay->has_diverged || !netplay->def.reports || netplay->def.spectates)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                               "%s: there is no report: call it after quern_netplay_advance has returned "
                               "DIVERGED, in a session with reports",
                               function);
    *out_report = netplay->divergence.report;
    return QUERN_OK;
}
