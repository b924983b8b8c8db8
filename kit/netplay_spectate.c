/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Spectators. A machine with spectators keeps the inputs of confirmed frames in a log, those of the last spectator_delay and
 * spectator_window frames. A spectator asks for the world (WATCH), gets an archive of it, and then the inputs of the frames
 * since (WATCHED), which it acknowledges.
 *
 * A spectator sees a frame when all players have verified it: a frame that one machine alone has verified may be another one
 * for the others, if they drop that machine's player before they get its last inputs. So the spectator can go on with the
 * log of another player, unless all machines die that have verified the frame, or half of the players have lost the other
 * half: then a hash differs. Machines with spectators tell each other which frames they have verified; of others, the hashes
 * tell it.
 *
 * One archive serves all that ask for it while the log has the frames since. With a delay, it is saved when the first
 * spectator asks, and sent after the delay: so nothing that is sent is younger. A new archive replaces one that is old as
 * soon as no spectator loads that, or when the log has lost the frames since.
 *
 * Spectators are not members: nothing that they send changes a table, a frame or an input. */
#include "kit/netplay_internal.h"

#include <string.h>

enum {
    REFUSED_CALLS =
        60, /* calls after a world could not be saved, or was not wanted any more, until another one is saved */
    MOST_BEHIND = 8, /* frames beyond input_delay; a spectator farther behind runs several in a call */
    MOST_FRAMES_PER_CALL = 8 /* in a call */
};

/* ------------------------------------------------------------------------------------------------ log */

static size_t row_bytes(const quern_netplay *netplay)
{
    return (size_t)netplay->def.player_count * netplay->def.input_bytes;
}

static uint32_t count_hashes(const quern_netplay *netplay)
{
    return netplay->stands.log.capacity / netplay->def.hash_interval + 2;
}

quern_result quern__netplay_stands_open(quern_netplay *netplay)
{
    quern_netplay_def *def = &netplay->def;
    quern__netplay_log *log = &netplay->stands.log;
    netplay->stands.watched = def->watches;
    netplay->stands.watched_ns = netplay->stands.fed_ns = netplay->now_ns;
    if (def->spectator_count == 0 && !def->spectates) return QUERN_OK;
    if (def->spectator_window == 0) def->spectator_window = QUERN__NETPLAY_SPECTATOR_WINDOW;
    const uint32_t least =
        def->spectates ? QUERN__NETPLAY_ARRIVED : def->spectator_delay + def->spectator_window;
    log->capacity = 1;
    while (log->capacity < least)
        log->capacity *= 2;
    const quern_allocator *allocator = &netplay->allocator;
    log->rows =
        allocator->allocate(allocator->user_data, log->capacity * row_bytes(netplay), _Alignof(uint64_t));
    log->hashes = allocator->allocate(allocator->user_data, count_hashes(netplay) * sizeof *log->hashes,
                                      _Alignof(uint64_t));
    if (log->rows == NULL || log->hashes == NULL)
        return quern_error_set(
            QUERN_ERROR_OUT_OF_MEMORY,
            "quern_netplay_create: no memory for the inputs of %u frames, which are kept "
            "for spectators: use a smaller spectator_window or spectator_delay",
            log->capacity);
    memset(log->hashes, 0, count_hashes(netplay) * sizeof *log->hashes);
    return QUERN_OK;
}

void quern__netplay_stands_close(quern_netplay *netplay)
{
    quern__netplay_log *log = &netplay->stands.log;
    const quern_allocator *allocator = &netplay->allocator;
    if (log->rows != NULL)
        allocator->release(allocator->user_data, log->rows, log->capacity * row_bytes(netplay),
                           _Alignof(uint64_t));
    if (log->hashes != NULL)
        allocator->release(allocator->user_data, log->hashes, count_hashes(netplay) * sizeof *log->hashes,
                           _Alignof(uint64_t));
    quern_byte_buffer_release(&netplay->stands.world);
    quern_byte_buffer_release(&netplay->stands.list);
}

void quern__netplay_log_begin(quern_netplay *netplay)
{
    netplay->stands.log.first = netplay->stands.log.end = netplay->frame;
    netplay->stands.fed_ns = netplay->now_ns;
}

uint64_t *quern__netplay_log_hash(const quern_netplay *netplay, uint32_t frame)
{
    return &netplay->stands.log.hashes[frame / netplay->def.hash_interval % count_hashes(netplay)];
}

void quern__netplay_log_add(quern_netplay *netplay, const unsigned char *row, uint64_t hash)
{
    quern__netplay_log *log = &netplay->stands.log;
    if (log->end - log->first == log->capacity) log->first++;
    memcpy(log->rows + (log->end & (log->capacity - 1)) * row_bytes(netplay), row, row_bytes(netplay));
    if (log->end % netplay->def.hash_interval == 0) *quern__netplay_log_hash(netplay, log->end) = hash;
    log->end++;
}

/* ---------------------------------------------------------------------------- a machine that is watched */

/* Returns whether a share of the time has passed for which a machine may be silent, also in a session without a timeout. */
static bool has_passed(const quern_netplay *netplay, uint64_t since_ns, double share)
{
    const double silence_seconds = netplay->def.timeout_seconds > 0 ? netplay->def.timeout_seconds : 2;
    return (double)(netplay->now_ns - since_ns) > share * (silence_seconds * 1e9);
}

bool quern__netplay_is_watching(const quern_netplay *netplay, const quern__netplay_spectator *spectator)
{
    return spectator->is_heard && !has_passed(netplay, spectator->contact_ns, 1);
}

uint32_t quern__netplay_shown_end(const quern_netplay *netplay)
{
    const uint32_t delay = netplay->def.spectator_delay - netplay->stands.ended_calls;
    const uint8_t members = quern__netplay_members(&netplay->table);
    uint32_t end = netplay->stands.log.end;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_player *player = &netplay->players[i];
        uint32_t verified = player->verified;
        if (i == netplay->def.player || (members >> i & 1) == 0) continue;
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
            if (player->hashes[k].frame != QUERN__NETPLAY_NEVER && player->hashes[k].frame > verified)
                verified = player->hashes[k].frame;
        if (verified < end) end = verified;
    }
    return end > delay ? end - delay : 0;
}

/* Returns whether the archive is so old that no further spectator begins to load it. */
static bool is_world_old(const quern_netplay *netplay)
{
    return netplay->stands.log.end - netplay->stands.world_frame >
           netplay->def.spectator_delay + netplay->def.spectator_window / 2;
}

bool quern__netplay_may_send_world(const quern_netplay *netplay, const quern__netplay_spectator *spectator)
{
    const quern__netplay_stands *stands = &netplay->stands;
    return stands->world.size_bytes > 0 && stands->world_frame <= quern__netplay_shown_end(netplay) &&
           (spectator->id == stands->world_id || !is_world_old(netplay));
}

quern_result quern__netplay_serve_spectators(quern_netplay *netplay, quern_jobs *jobs)
{
    quern__netplay_stands *stands = &netplay->stands;
    bool is_asked = false, is_loading = false, has_earlier = false;
    if (netplay->def.spectator_count == 0) return QUERN_OK;
    while (stands->log.end < netplay->verified) {
        const uint32_t frame = stands->log.end;
        const quern__netplay_hash *hash =
            &netplay->hashes[frame / netplay->def.hash_interval % QUERN__NETPLAY_HASHES];
        quern__netplay_log_add(netplay, netplay->used[frame % QUERN__NETPLAY_WINDOW],
                               hash->frame == frame ? hash->hash : 0);
    }
    /* After the last frame, no further ones show that the delay has passed. */
    if (netplay->def.frame_count != 0 && stands->log.end >= netplay->def.frame_count &&
        stands->ended_calls < netplay->def.spectator_delay)
        stands->ended_calls++;
    for (uint32_t i = 0; i < netplay->def.spectator_count; i++) {
        const quern__netplay_spectator *spectator = &stands->spectators[i];
        if (!quern__netplay_is_watching(netplay, spectator) || spectator->has_world) continue;
        is_asked = true;
        has_earlier = has_earlier || spectator->has_earlier;
        is_loading = is_loading || (stands->world_id != 0 && spectator->id == stands->world_id);
    }
    if (stands->refused_calls > 0) {
        stands->refused_calls--;
        return QUERN_OK;
    }
    const bool is_gone = stands->world_frame < stands->log.first;
    if (stands->world.size_bytes > 0 && is_asked && !is_gone && (is_loading || !is_world_old(netplay)))
        return QUERN_OK;
    /* A spectator that asks and stops asking in turn could make the players save the world all the time. */
    if (stands->world.size_bytes > 0 && !is_asked) stands->refused_calls = REFUSED_CALLS;
    quern_byte_buffer_release(&stands->world);
    quern_byte_buffer_release(&stands->list);
    stands->world_id = 0;
    if (!is_asked) return QUERN_OK;
    const quern_result result = quern__netplay_save_world(netplay, jobs, &stands->world);
    if (result != QUERN_OK) {
        quern_byte_buffer_release(&stands->world);
        stands->refused_calls = REFUSED_CALLS; /* players go on meanwhile */
        return result;
    }
    stands->world_id = netplay->sequence + 1;
    stands->world_frame = netplay->verified;
    if (has_earlier) quern__netplay_list_chunks(netplay, &stands->world, stands->world_id, &stands->list);
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- a spectator */

void quern__netplay_watch_next(quern_netplay *netplay)
{
    quern__netplay_stands *stands = &netplay->stands;
    stands->watched = (stands->watched + 1) % netplay->def.player_count;
    stands->watched_ns = netplay->now_ns;
    if (netplay->counts.is_joining) quern__netplay_end_transfer(netplay);
}

/* Runs the next frame with the inputs that have arrived. */
static quern_result run_watched(quern_netplay *netplay, quern_jobs *jobs)
{
    const uint32_t frame = netplay->frame, interval = netplay->def.hash_interval;
    const quern__netplay_log *log = &netplay->stands.log;
    if (frame % interval == 0) {
        const uint64_t expected = *quern__netplay_log_hash(netplay, frame),
                       hash = quern_world_hash(netplay->def.world);
        netplay->hashes[frame / interval % QUERN__NETPLAY_HASHES] =
            (quern__netplay_hash){.frame = frame, .hash = hash};
        if (expected != 0 && expected != hash) {
            netplay->has_diverged = true;
            netplay->diverged_player = netplay->stands.watched;
            return quern_error_set(
                QUERN_ERROR_DIVERGED,
                "quern_netplay_advance: the world before frame %u has the hash %016llx here and %016llx on "
                "the machine of player %u: some system depends on data outside of the world, or the "
                "machines that were watched before are gone with frames that no other one had: create a "
                "world without entities "
                "and watch again",
                frame, (unsigned long long)hash, (unsigned long long)expected, netplay->stands.watched);
        }
    }
    memcpy(quern_resource_get(netplay->def.world, netplay->def.inputs),
           log->rows + (frame & (log->capacity - 1)) * row_bytes(netplay), row_bytes(netplay));
    const quern_result result = quern_schedule_run(netplay->def.schedule, jobs, netplay->def.step_seconds);
    if (result == QUERN_OK) netplay->verified = ++netplay->frame;
    return result;
}

static quern_result run_arrived(quern_netplay *netplay, quern_jobs *jobs, uint32_t *out_frame_count)
{
    const uint32_t most = netplay->def.frame_count != 0 ? netplay->def.frame_count : QUERN__NETPLAY_NEVER;
    const uint32_t left = netplay->stands.log.end - netplay->frame;
    const uint32_t kept = netplay->stands.log.end < most ? netplay->def.input_delay : 0;
    uint32_t count = left > kept;
    if (left > kept + MOST_BEHIND) count += left - kept - MOST_BEHIND;
    if (count > MOST_FRAMES_PER_CALL) count = MOST_FRAMES_PER_CALL;
    quern_result result = QUERN_OK;
    while (*out_frame_count < count && netplay->frame < most && result == QUERN_OK) {
        result = run_watched(netplay, jobs);
        *out_frame_count += result == QUERN_OK;
    }
    if (result == QUERN_OK && *out_frame_count == 0) netplay->counts.wait_count++;
    return result;
}

quern_result quern__netplay_spectate(quern_netplay *netplay, quern_jobs *jobs, uint32_t *out_frame_count)
{
    quern__netplay_stands *stands = &netplay->stands;
    if (netplay->has_diverged)
        return quern_error_set(
            QUERN_ERROR_DIVERGED,
            "quern_netplay_advance: the worlds have diverged before: destroy the session");
    quern_result result = quern__netplay_receive(netplay, jobs);
    if (result != QUERN_OK || netplay->end != QUERN__NETPLAY_GOES_ON) return result;
    const uint64_t heard_ns = netplay->players[stands->watched].heard_ns;
    const uint64_t since_ns = heard_ns > stands->watched_ns ? heard_ns : stands->watched_ns;
    /* A machine that is heard and confirms no frames may be one that waits for the others. */
    const bool stands_still = !netplay->counts.is_joining && has_passed(netplay, stands->fed_ns, 2) &&
                              has_passed(netplay, stands->watched_ns, 2);
    if (has_passed(netplay, since_ns, 1) || stands_still) quern__netplay_watch_next(netplay);
    if (!netplay->counts.is_joining) result = run_arrived(netplay, jobs, out_frame_count);
    if (result == QUERN_OK && has_passed(netplay, netplay->progressed_ns, 4))
        return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                               "quern_netplay_advance: spectator %u hears no machine of a player that lets "
                               "it watch: call again, check the transport, or let players have a "
                               "spectator_count greater than %u",
                               netplay->def.player - QUERN_NETPLAY_SPECTATOR,
                               netplay->def.player - QUERN_NETPLAY_SPECTATOR);
    return result;
}
