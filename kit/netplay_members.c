/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Which players take part, and how a joining player gets the world. */
#include "kit/netplay_internal.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------- members */

bool quern__netplay_is_zero(const quern__netplay_player *player, uint32_t frame)
{
    return player->active_from > player->dropped_from
               ? frame >= player->dropped_from && frame < player->active_from
               : frame < player->active_from || frame >= player->dropped_from;
}

bool quern__netplay_is_out(const quern__netplay_player *player)
{
    return player->active_from > player->dropped_from ? player->active_from == QUERN__NETPLAY_NEVER
                                                      : player->dropped_from != QUERN__NETPLAY_NEVER;
}

uint32_t quern__netplay_limit(const quern__netplay_player *player)
{
    if (!quern__netplay_is_zero(player, player->known_end)) return player->known_end;
    return player->known_end < player->active_from ? player->active_from : QUERN__NETPLAY_NEVER;
}

uint32_t quern__netplay_host(const quern_netplay *netplay)
{
    uint32_t host = 0;
    while (host < netplay->def.player_count && quern__netplay_is_out(&netplay->players[host]))
        host++;
    return host;
}

/* Returns whether a frame that ran by the members before ran with another input of the player than it has by those now,
 * because the player was dropped, or was not. Frames before a player came back are not compared: all machines have
 * verified them (quern__netplay_serve), and the members no longer tell its earlier life. */
static bool has_changed(const quern__netplay_player *before, const quern__netplay_player *now,
                        uint32_t frame)
{
    const bool was_zero = quern__netplay_is_zero(before, frame),
               is_zero = quern__netplay_is_zero(now, frame);
    if (is_zero) return !was_zero && frame >= now->dropped_from;
    return was_zero && before->active_from <= before->dropped_from && frame >= before->dropped_from;
}

/* Changes from when to when a player takes part. Frames that ran otherwise are no longer verified. */
static void set_member(quern_netplay *netplay, uint32_t index, uint32_t active_from, uint32_t dropped_from)
{
    quern__netplay_player *player = &netplay->players[index];
    const quern__netplay_player before = {.active_from = player->active_from,
                                          .dropped_from = player->dropped_from};
    const uint32_t window = QUERN__NETPLAY_WINDOW / 2;
    uint32_t frame = netplay->verified > window ? netplay->verified - window : 0;
    if (frame < netplay->loaded_frame) frame = netplay->loaded_frame;
    player->active_from = active_from;
    player->dropped_from = dropped_from;
    if (netplay->is_admitted && netplay->loaded_frame > 0 &&
        has_changed(&before, player, netplay->loaded_frame - 1))
        netplay->end = QUERN__NETPLAY_TOO_OLD;
    while (frame < netplay->verified && !has_changed(&before, player, frame))
        frame++;
    netplay->verified = frame;
    /* A frame that this machine has verified needs no inputs any more, not even those of an earlier life. */
    if (active_from > dropped_from && frame >= dropped_from && player->known_end < dropped_from)
        player->known_end = dropped_from;
}

/* The number of the next table that this machine makes as host: no other machine makes one of the same number. */
static uint32_t next_epoch(const quern_netplay *netplay)
{
    const uint32_t most = QUERN_MAX_NETPLAY_PLAYERS;
    return (netplay->epoch / most + 1) * most + netplay->def.player;
}

void quern__netplay_drop(quern_netplay *netplay, uint32_t player)
{
    const quern__netplay_player *dropped = &netplay->players[player];
    set_member(netplay, player, dropped->active_from, quern__netplay_limit(dropped));
    netplay->epoch = next_epoch(netplay);
}

/* Notes that a player takes part from now on, and forgets what its machine knew in an earlier life. `known`: frame up to
 * which its machine knows all inputs. */
static void begin_life(quern_netplay *netplay, uint32_t player, uint32_t epoch, uint32_t known)
{
    quern__netplay_player *begun = &netplay->players[player];
    begun->first_epoch = epoch;
    begun->heard_ns = netplay->def.transport.now(netplay->def.transport.user_data);
    begun->frame = known;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        begun->acks[i] = known;
}

void quern__netplay_adopt(quern_netplay *netplay, uint32_t epoch, const uint32_t *active_from,
                          const uint32_t *dropped_from)
{
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        quern__netplay_player *player = &netplay->players[i];
        const bool was_out = quern__netplay_is_out(player);
        set_member(netplay, i, active_from[i], dropped_from[i]);
        if (was_out && !quern__netplay_is_out(player)) begin_life(netplay, i, epoch, 0);
    }
    netplay->epoch = epoch;
}

/* Returns whether this share of the timeout has passed since a time. */
static bool has_passed(const quern_netplay *netplay, uint64_t since_ns, double share)
{
    const uint64_t now = netplay->def.transport.now(netplay->def.transport.user_data);
    return netplay->def.timeout_seconds > 0 &&
           (double)(now - since_ns) > share * netplay->def.timeout_seconds * 1e9;
}

void quern__netplay_meet_group(quern_netplay *netplay, uint32_t sender, const uint32_t *active_from,
                               const uint32_t *dropped_from)
{
    uint32_t own_count = 0, other_count = 0, own_first = UINT32_MAX, other_first = UINT32_MAX;
    for (uint32_t i = netplay->def.player_count; i-- > 0;) {
        const quern__netplay_player here = netplay->players[i], there = {.active_from = active_from[i],
                                                                         .dropped_from = dropped_from[i]};
        const bool is_here = i == netplay->def.player || (i != sender && !quern__netplay_is_out(&here)),
                   is_there = i == sender || (i != netplay->def.player && !quern__netplay_is_out(&there));
        if (is_here && (!is_there || here.active_from > there.active_from)) {
            own_count++;
            own_first = i;
        } else if (is_there && (!is_here || here.active_from < there.active_from)) {
            other_count++;
            other_first = i;
        }
    }
    if (other_count < own_count || (other_count == own_count && other_first > own_first))
        netplay->losing_since_ns = 0;
    else if (netplay->losing_since_ns == 0)
        netplay->losing_since_ns = netplay->def.transport.now(netplay->def.transport.user_data);
    else if (has_passed(netplay, netplay->losing_since_ns, 0.25))
        netplay->end = QUERN__NETPLAY_DROPPED;
}

static bool is_silent(const quern_netplay *netplay, uint32_t player)
{
    return player != netplay->def.player && has_passed(netplay, netplay->players[player].heard_ns, 1);
}

void quern__netplay_check_silence(quern_netplay *netplay)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const bool has_transfer = transfer->player != QUERN__NETPLAY_NEVER;
    if (!netplay->is_admitted) {
        if (!has_transfer || !has_passed(netplay, transfer->heard_ns, 1)) return;
        if (netplay->counts.is_joining)
            quern__netplay_end_transfer(netplay); /* the next host sends its world from the beginning */
        else if (quern__netplay_is_out(&netplay->players[netplay->def.player]))
            netplay->end = QUERN__NETPLAY_SENDER_SILENT;
        return;
    }
    if (has_transfer && is_silent(netplay, transfer->player)) quern__netplay_end_transfer(netplay);
    /* Silent players are dropped by the one that is the host without them. */
    for (uint32_t i = 0; i < netplay->def.player; i++)
        if (!quern__netplay_is_out(&netplay->players[i]) && !is_silent(netplay, i)) return;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (!quern__netplay_is_out(&netplay->players[i]) && is_silent(netplay, i))
            quern__netplay_drop(netplay, i);
}

/* ------------------------------------------------------------------------------------------ transfer */

void quern__netplay_end_transfer(quern_netplay *netplay)
{
    quern_byte_buffer_release(&netplay->transfer.bytes);
    netplay->transfer = (quern__netplay_transfer){.player = QUERN__NETPLAY_NEVER};
}

/* Saves the world at the last frame that will not change, and returns to the present. */
static quern_result begin_transfer(quern_netplay *netplay, quern_jobs *jobs, uint32_t player)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_save_def def = {.schedules = {netplay->def.schedule}};
    const uint32_t present = netplay->frame, frame = netplay->verified;
    quern_result result = QUERN_OK;
    if (frame < present) result = quern_history_restore(netplay->history, frame, jobs);
    if (result != QUERN_OK) return result;
    transfer->bytes.allocator = netplay->allocator;
    result = quern_world_save(netplay->def.world, quern_sink_bytes(&transfer->bytes), &def);
    if (result == QUERN_OK && transfer->bytes.size_bytes >= UINT32_MAX)
        result =
            quern_error_set(QUERN_ERROR_LIMIT,
                            "quern_netplay_advance: the world has %zu bytes: at most 4 GiB can be sent to "
                            "a player that joins",
                            transfer->bytes.size_bytes);
    const quern_result again = frame < present ? quern__netplay_rerun(netplay, jobs, frame) : QUERN_OK;
    if (result != QUERN_OK || again != QUERN_OK) {
        quern__netplay_end_transfer(netplay);
        return result != QUERN_OK ? result : again;
    }
    transfer->player = player;
    transfer->frame = frame;
    transfer->total_bytes = (uint32_t)transfer->bytes.size_bytes;
    return QUERN_OK;
}

/* Lets the player of the transfer take part from the first frame on that this machine has given no input for. */
static void admit(quern_netplay *netplay)
{
    quern__netplay_player *player = &netplay->players[netplay->transfer.player];
    player->active_from = quern__netplay_limit(&netplay->players[netplay->def.player]);
    player->known_end = player->active_from;
    netplay->epoch = next_epoch(netplay);
    begin_life(netplay, netplay->transfer.player, netplay->epoch, netplay->transfer.frame);
    quern__netplay_end_transfer(netplay);
}

/* Returns whether all machines that play know all inputs before a frame: none runs more than max_rollback frames ahead
 * of the inputs that it knows. */
static bool have_all_verified(const quern_netplay *netplay, uint32_t frame)
{
    if (netplay->verified < frame) return false;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && !quern__netplay_is_out(&netplay->players[i]) &&
            netplay->players[i].frame < frame + netplay->def.max_rollback)
            return false;
    return true;
}

quern_result quern__netplay_serve(quern_netplay *netplay, quern_jobs *jobs, uint32_t player, uint32_t frame,
                                  uint32_t first_missing)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    if (quern__netplay_host(netplay) != netplay->def.player) return QUERN_OK;
    if (transfer->player == QUERN__NETPLAY_NEVER) {
        /* A request that was sent before the player was admitted arrives late. */
        const bool is_new = frame == QUERN__NETPLAY_NEVER;
        if (!is_new) return QUERN_OK;
        /* The player has started again before its silence was noticed. */
        if (!quern__netplay_is_out(&netplay->players[player])) return QUERN_OK;
        if (!have_all_verified(netplay, netplay->players[player].dropped_from)) return QUERN_OK;
        return begin_transfer(netplay, jobs, player);
    }
    if (transfer->player != player) return QUERN_OK;
    if (frame == QUERN__NETPLAY_NEVER) transfer->first_missing = 0; /* the machine may have started again */
    if (frame != transfer->frame) return QUERN_OK;
    if (first_missing > transfer->first_missing) transfer->first_missing = first_missing;
    if ((uint64_t)transfer->first_missing * QUERN__NETPLAY_CHUNK >= transfer->total_bytes) admit(netplay);
    return QUERN_OK;
}

/* Calls the program after loading, and undoes what it has changed. */
static quern_result call_loaded(quern_netplay *netplay, quern_jobs *jobs)
{
    if (netplay->def.loaded == NULL) return QUERN_OK;
    const quern_result result = quern_history_save(netplay->history, netplay->frame, jobs);
    if (result != QUERN_OK) return result;
    netplay->def.loaded(netplay->def.loaded_user_data);
    return quern_history_restore(netplay->history, netplay->frame, jobs);
}

/* Loads the world that has arrived: everything before its frame is known. */
static quern_result load_world(quern_netplay *netplay, quern_jobs *jobs)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_load_def def = {.schedules = {netplay->def.schedule}};
    const quern_result result = quern_world_load(
        netplay->def.world, quern_source_bytes(transfer->bytes.bytes, transfer->total_bytes), &def, NULL);
    if (result != QUERN_OK) return result;
    netplay->frame = netplay->verified = netplay->loaded_frame = transfer->frame;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        netplay->players[i].known_end = transfer->frame;
    netplay->counts.is_joining = false;
    return call_loaded(netplay, jobs);
}

/* Makes room for the chunks that may arrive next. Memory grows with what has arrived: the announced size is not to be
 * trusted. */
static quern_result reserve_chunks(quern_netplay *netplay)
{
    static const char zeros[QUERN__NETPLAY_CHUNK] = {0};
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_sink sink = quern_sink_bytes(&transfer->bytes);
    const uint64_t end =
        ((uint64_t)transfer->first_missing + QUERN__NETPLAY_CHUNKS_AHEAD) * QUERN__NETPLAY_CHUNK;
    transfer->bytes.allocator = netplay->allocator;
    while (transfer->bytes.size_bytes < end && transfer->bytes.size_bytes < transfer->total_bytes)
        if (!sink.write(sink.user_data, zeros, sizeof zeros))
            return quern_error_set(
                QUERN_ERROR_OUT_OF_MEMORY,
                "quern_netplay_advance: no memory for the next part of a world, of which "
                "%u of %u chunks have arrived: free memory, and call again",
                transfer->first_missing, (transfer->total_bytes - 1) / QUERN__NETPLAY_CHUNK + 1);
    return QUERN_OK;
}

quern_result quern__netplay_store_chunk(quern_netplay *netplay, const quern__netplay_chunk *chunk,
                                        bool *out_whole)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const uint32_t number = chunk->offset / QUERN__NETPLAY_CHUNK;
    *out_whole = false;
    if (chunk->total_bytes == 0) return QUERN_OK;
    if (transfer->player != QUERN__NETPLAY_NEVER) {
        /* Another player does not end the transfer, and its sender does so only with a newer world. */
        if (chunk->sender != transfer->sender || chunk->frame < transfer->frame ||
            (chunk->frame == transfer->frame && chunk->total_bytes != transfer->total_bytes))
            return QUERN_OK;
        if (chunk->frame > transfer->frame) quern__netplay_end_transfer(netplay);
    }
    if (transfer->player == QUERN__NETPLAY_NEVER)
        *transfer = (quern__netplay_transfer){.player = netplay->def.player,
                                              .sender = chunk->sender,
                                              .frame = chunk->frame,
                                              .total_bytes = chunk->total_bytes};
    transfer->heard_ns = netplay->def.transport.now(netplay->def.transport.user_data);
    const quern_result result = reserve_chunks(netplay);
    if (result != QUERN_OK) return result;
    const uint32_t left = chunk->offset < chunk->total_bytes ? chunk->total_bytes - chunk->offset : 0;
    const uint32_t expected = left < QUERN__NETPLAY_CHUNK ? left : QUERN__NETPLAY_CHUNK;
    if (chunk->offset % QUERN__NETPLAY_CHUNK == 0 && expected > 0 && chunk->size_bytes == expected &&
        number >= transfer->first_missing &&
        number - transfer->first_missing < QUERN__NETPLAY_CHUNKS_AHEAD) {
        memcpy((char *)transfer->bytes.bytes + chunk->offset, chunk->bytes, chunk->size_bytes);
        transfer->arrived |= 1u << (number - transfer->first_missing);
    }
    for (; (transfer->arrived & 1) != 0; transfer->arrived >>= 1)
        transfer->first_missing++;
    *out_whole = (uint64_t)transfer->first_missing * QUERN__NETPLAY_CHUNK >= transfer->total_bytes;
    return QUERN_OK;
}

quern_result quern__netplay_take_chunk(quern_netplay *netplay, quern_jobs *jobs,
                                       const quern__netplay_chunk *chunk)
{
    bool is_whole;
    if (!netplay->counts.is_joining) return QUERN_OK;
    const quern_result result = quern__netplay_store_chunk(netplay, chunk, &is_whole);
    return result == QUERN_OK && is_whole ? load_world(netplay, jobs) : result;
}
