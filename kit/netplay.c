/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Creating a session, and its frames: prediction, rollback, and the comparison of hashes. */
#include "kit/netplay_internal.h"

#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------- creating */

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

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
    if (def->player >= def->player_count)
        return fail_range("player", def->player, 0, def->player_count - 1);
    if (def->input_bytes == 0 || def->input_bytes > QUERN_MAX_NETPLAY_INPUT_BYTES)
        return fail_range("input_bytes", def->input_bytes, 1, QUERN_MAX_NETPLAY_INPUT_BYTES);
    if (def->input_delay > QUERN_MAX_NETPLAY_DELAY)
        return fail_range("input_delay", def->input_delay, 0, QUERN_MAX_NETPLAY_DELAY);
    if (def->max_rollback > QUERN_MAX_NETPLAY_ROLLBACK)
        return fail_range("max_rollback", def->max_rollback, 0, QUERN_MAX_NETPLAY_ROLLBACK);
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

static quern_result check_members(const quern_netplay_def *def)
{
    const uint32_t all = (1u << def->player_count) - 1;
    if ((def->absent & ~all) != 0 || (def->absent & all) == all)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_netplay_create: absent is %#x: set bits of some of the %u players",
                               def->absent, def->player_count);
    if (!def->joins && (def->absent >> def->player & 1) != 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_netplay_create: player %u is absent: set joins, or leave the player out of absent",
            def->player);
    return QUERN_OK;
}

static quern_result check_inputs(const quern_netplay_def *def)
{
    uint32_t size_bytes;
    const quern_result result = quern_resource_get_size(def->world, def->inputs, &size_bytes);
    if (result != QUERN_OK || size_bytes == def->player_count * def->input_bytes) return result;
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_netplay_create: the resource of inputs has %u bytes: it needs %u, for %u "
                           "players with inputs of %u bytes",
                           size_bytes, def->player_count * def->input_bytes, def->player_count,
                           def->input_bytes);
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
    if (result == QUERN_OK) result = check_members(def);
    return result == QUERN_OK ? check_inputs(def) : result;
}

static void init(quern_netplay *netplay, const quern_netplay_def *def)
{
    const uint64_t now = def->transport.now(def->transport.user_data);
    netplay->def = *def;
    if (netplay->def.max_rollback == 0) netplay->def.max_rollback = 8;
    if (netplay->def.hash_interval == 0) netplay->def.hash_interval = 30;
    netplay->transfer.player = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < QUERN__NETPLAY_HASHES; i++)
        netplay->hashes[i].frame = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < def->player_count; i++) {
        quern__netplay_player *player = &netplay->players[i];
        const bool is_absent = (def->absent >> i & 1) != 0 || (def->joins && i == def->player);
        player->active_from = is_absent ? QUERN__NETPLAY_NEVER : 0;
        player->dropped_from = is_absent ? 0 : QUERN__NETPLAY_NEVER;
        player->known_end = is_absent ? 0 : def->input_delay; /* these inputs are zero */
        player->heard_ns = now;
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
            player->hashes[k].frame = QUERN__NETPLAY_NEVER;
        for (uint32_t k = 0; k < def->player_count; k++)
            player->acks[k] = def->input_delay;
    }
    netplay->counts.is_joining = def->joins;
    netplay->is_admitted = !def->joins;
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
    /* A dropped player may take a machine back to a frame that was verified; see the invariant of rings. Hashes of a frame
     * are compared at most as many frames later, and a report goes back to the hash before that. */
    const uint32_t report_count = def->reports ? netplay->def.hash_interval : 0;
    const quern_history_def history = {.schedules = {def->schedule},
                                       .frame_count = 2 * (netplay->def.max_rollback + def->input_delay) +
                                                      4 + report_count,
                                       .allocator = def->allocator};
    result = quern_history_create(def->world, &history, &netplay->history);
    if (result != QUERN_OK) {
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
    quern__netplay_end_report(netplay);
    quern_history_destroy(netplay->history);
    allocator.release(allocator.user_data, netplay, sizeof *netplay, _Alignof(quern_netplay));
}

/* -------------------------------------------------------------------------------------------- inputs */

void quern__netplay_input(const quern_netplay *netplay, uint32_t player, uint32_t frame,
                          unsigned char *out_input)
{
    const quern__netplay_player *known = &netplay->players[player];
    const uint32_t bytes = netplay->def.input_bytes;
    uint32_t from = frame;
    if (quern__netplay_is_zero(known, frame)) {
        memset(out_input, 0, bytes);
        return;
    }
    if (frame >= known->known_end) { /* the prediction */
        from = known->known_end > 0 ? known->known_end - 1 : 0;
        if (known->known_end == 0 || quern__netplay_is_zero(known, from)) {
            memset(out_input, 0, bytes);
            return;
        }
    }
    memcpy(out_input, known->inputs[from % QUERN__NETPLAY_WINDOW], bytes);
}

/* Gives the input of this machine's player to all frames up to the delay that have none yet. */
static void give_input(quern_netplay *netplay, const void *input)
{
    quern__netplay_player *self = &netplay->players[netplay->def.player];
    const uint32_t limit = quern__netplay_limit(self);
    if (limit == QUERN__NETPLAY_NEVER) return;
    for (self->known_end = limit; self->known_end <= netplay->frame + netplay->def.input_delay;
         self->known_end++)
        memcpy(self->inputs[self->known_end % QUERN__NETPLAY_WINDOW], input, netplay->def.input_bytes);
}

/* Returns the first frame with an input that is not known. */
static uint32_t find_confirmed(const quern_netplay *netplay)
{
    uint32_t confirmed = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const uint32_t limit = quern__netplay_limit(&netplay->players[i]);
        if (limit < confirmed) confirmed = limit;
    }
    return confirmed;
}

/* -------------------------------------------------------------------------------------------- frames */

static void keep_hash(quern_netplay *netplay)
{
    if (netplay->frame % netplay->def.hash_interval != 0) return;
    netplay->hashes[netplay->frame / netplay->def.hash_interval % QUERN__NETPLAY_HASHES] =
        (quern__netplay_hash){
            .frame = netplay->frame, .epoch = netplay->epoch, .hash = quern_world_hash(netplay->def.world)};
}

void quern__netplay_set_inputs(quern_netplay *netplay)
{
    unsigned char *used = netplay->used[netplay->frame % QUERN__NETPLAY_WINDOW];
    const uint32_t bytes = netplay->def.input_bytes;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        quern__netplay_input(netplay, i, netplay->frame, used + (size_t)i * bytes);
    memcpy(quern_resource_get(netplay->def.world, netplay->def.inputs), used,
           (size_t)netplay->def.player_count * bytes);
}

quern_result quern__netplay_run_frame(quern_netplay *netplay, quern_jobs *jobs)
{
    quern_result result = quern_history_save(netplay->history, netplay->frame, jobs);
    if (result != QUERN_OK) return result;
    keep_hash(netplay);
    quern__netplay_set_inputs(netplay);
    result = quern_schedule_run(netplay->def.schedule, jobs, netplay->def.step_seconds);
    if (result == QUERN_OK) netplay->frame++;
    return result;
}

quern_result quern__netplay_rerun(quern_netplay *netplay, quern_jobs *jobs, uint32_t from)
{
    const uint32_t end = netplay->frame;
    quern_result result = quern_history_restore(netplay->history, from, jobs);
    if (result != QUERN_OK) return result;
    netplay->counts.rollback_count++;
    netplay->frame = from;
    while (netplay->frame < end && result == QUERN_OK) {
        result = quern__netplay_run_frame(netplay, jobs);
        netplay->counts.rerun_count += result == QUERN_OK;
    }
    return result;
}

static bool ran_with_these_inputs(const quern_netplay *netplay, uint32_t frame)
{
    unsigned char input[QUERN_MAX_NETPLAY_INPUT_BYTES];
    const unsigned char *used = netplay->used[frame % QUERN__NETPLAY_WINDOW];
    const uint32_t bytes = netplay->def.input_bytes;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        quern__netplay_input(netplay, i, frame, input);
        if (memcmp(input, used + (size_t)i * bytes, bytes) != 0) return false;
    }
    return true;
}

/* Runs the frames again that ran with other inputs than those that are known now. */
static quern_result correct(quern_netplay *netplay, quern_jobs *jobs)
{
    const uint32_t confirmed = find_confirmed(netplay);
    quern_result result = QUERN_OK;
    uint32_t first = netplay->verified;
    while (first < netplay->frame && ran_with_these_inputs(netplay, first))
        first++;
    if (first < netplay->frame) result = quern__netplay_rerun(netplay, jobs, first);
    if (result == QUERN_OK) netplay->verified = confirmed < netplay->frame ? confirmed : netplay->frame;
    return result;
}

/* -------------------------------------------------------------------------------------------- hashes */

static quern_result fail_diverged(quern_netplay *netplay, quern_jobs *jobs, uint32_t player,
                                  const quern__netplay_hash *own, const quern__netplay_hash *other)
{
    netplay->has_diverged = true;
    if (netplay->def.reports) quern__netplay_begin_report(netplay, jobs, player, own->frame, own->hash);
    return quern_error_set(
        QUERN_ERROR_DIVERGED,
        "quern_netplay_advance: the world before frame %u has the hash %016llx here and "
        "%016llx on the machine of player %u: some system depends on data outside of the "
        "world; record both runs and compare them (quern_replay_run)",
        own->frame, (unsigned long long)own->hash, (unsigned long long)other->hash, player);
}

/* Compares the hashes of frames whose inputs are all known, here and there. Reports the first frame that differs. */
static quern_result compare_hashes(quern_netplay *netplay, quern_jobs *jobs)
{
    uint32_t player = 0, index = QUERN__NETPLAY_HASHES;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++) {
            const quern__netplay_hash *own = &netplay->hashes[k], *other = &netplay->players[i].hashes[k];
            if (i == netplay->def.player || own->frame > netplay->verified || own->frame != other->frame ||
                other->epoch != netplay->epoch || own->hash == other->hash ||
                (index < QUERN__NETPLAY_HASHES && own->frame >= netplay->hashes[index].frame))
                continue;
            player = i;
            index = k;
        }
    }
    if (index == QUERN__NETPLAY_HASHES) return QUERN_OK;
    return fail_diverged(netplay, jobs, player, &netplay->hashes[index],
                         &netplay->players[player].hashes[index]);
}

/* ----------------------------------------------------------------------------------------- advancing */

/* Returns whether the others are so far ahead that this machine should run more than one frame per call. */
static bool is_behind(const quern_netplay *netplay)
{
    uint32_t others = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && !quern__netplay_is_out(&netplay->players[i]) &&
            netplay->players[i].frame < others)
            others = netplay->players[i].frame;
    return others != QUERN__NETPLAY_NEVER && netplay->frame + netplay->def.max_rollback / 2 < others &&
           find_confirmed(netplay) > netplay->frame;
}

/* A machine that joins runs no frame before its player takes part: it could get so far ahead that it has no frame left for
 * which to give the inputs that the others wait for. */
static bool may_run(const quern_netplay *netplay)
{
    const bool serves =
        netplay->transfer.player != QUERN__NETPLAY_NEVER && netplay->transfer.player != netplay->def.player;
    const bool is_at_end = netplay->def.frame_count != 0 && netplay->frame >= netplay->def.frame_count;
    return netplay->is_admitted && !serves && !is_at_end &&
           netplay->frame < (uint64_t)find_confirmed(netplay) + netplay->def.max_rollback;
}

static quern_result run_frames(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                               uint32_t *out_frame_count)
{
    enum { MOST_FRAMES = 8 };
    quern_result result = QUERN_OK;
    *out_frame_count = 0;
    while (result == QUERN_OK && *out_frame_count < MOST_FRAMES && may_run(netplay) &&
           (*out_frame_count == 0 || is_behind(netplay))) {
        give_input(netplay, input);
        result = quern__netplay_run_frame(netplay, jobs);
        *out_frame_count += result == QUERN_OK;
    }
    if (result == QUERN_OK && *out_frame_count == 0) netplay->counts.wait_count++;
    return result;
}

/* Notes that the player of this machine takes part, and fails if it did and the others have dropped it. */
static quern_result check_own_membership(quern_netplay *netplay)
{
    static const char *const reasons[] = {
        [QUERN__NETPLAY_GOES_ON] = "the other players have dropped this one after a silence",
        [QUERN__NETPLAY_DROPPED] = "the other players have dropped this one after a silence",
        [QUERN__NETPLAY_SENDER_SILENT] =
            "the player that sent the world has fallen silent before it let this one take part",
        [QUERN__NETPLAY_TOO_OLD] =
            "a player was dropped at a frame before that of the world that this machine has loaded"};
    const bool is_out = quern__netplay_is_out(&netplay->players[netplay->def.player]);
    if (!is_out && !netplay->is_admitted) {
        netplay->is_admitted = true;
        quern__netplay_end_transfer(netplay); /* the host knows that the world has arrived */
    }
    if ((!is_out || !netplay->is_admitted) && netplay->end == QUERN__NETPLAY_GOES_ON) return QUERN_OK;
    return quern_error_set(
        QUERN_ERROR_CANCELLED,
        "quern_netplay_advance: player %u cannot go on: %s: create a world without entities "
        "and join (quern_netplay_def.joins)",
        netplay->def.player, reasons[netplay->end]);
}

static quern_result advance(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                            uint32_t *out_frame_count)
{
    quern_result result = quern__netplay_receive(netplay, jobs);
    if (result == QUERN_OK && !netplay->counts.is_joining) result = check_own_membership(netplay);
    if (result != QUERN_OK) return result;
    quern__netplay_check_silence(netplay);
    if (netplay->counts.is_joining) return QUERN_OK;
    result = correct(netplay, jobs);
    if (result == QUERN_OK) result = compare_hashes(netplay, jobs);
    if (result == QUERN_OK) result = run_frames(netplay, jobs, input, out_frame_count);
    return result;
}

/* What quern_netplay_advance does after the worlds have differed. Packets with the hashes are sent on, so that the other
 * machine finds the difference, too. */
static quern_result advance_report(quern_netplay *netplay, quern_jobs *jobs)
{
    const quern_netplay_report *report = &netplay->divergence.report;
    (void)quern__netplay_receive(netplay, jobs);
    if (!netplay->def.reports)
        return quern_error_set(
            QUERN_ERROR_DIVERGED,
            "quern_netplay_advance: the worlds have diverged before: destroy the session");
    quern__netplay_continue_report(netplay, jobs);
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
    if (input == NULL) return fail_null("quern_netplay_advance", "input");
    const quern_result result =
        netplay->has_diverged ? advance_report(netplay, jobs) : advance(netplay, jobs, input, &frame_count);
    quern__netplay_send(netplay);
    if (out_frame_count != NULL) *out_frame_count = frame_count;
    return result;
}

quern_result quern_netplay_get_status(const quern_netplay *netplay, quern_netplay_status *out_status)
{
    if (netplay == NULL) return fail_null("quern_netplay_get_status", "netplay");
    if (out_status == NULL) return fail_null("quern_netplay_get_status", "out_status");
    *out_status = netplay->counts;
    out_status->frame = netplay->frame;
    out_status->confirmed_frame = netplay->verified;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (!quern__netplay_is_out(&netplay->players[i])) out_status->present |= 1u << i;
    return QUERN_OK;
}
