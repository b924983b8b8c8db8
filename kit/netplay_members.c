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

static void set_dropped(quern_netplay *netplay, uint32_t player, uint32_t frame)
{
    netplay->players[player].dropped_from = frame;
    if (frame < netplay->verified) netplay->verified = frame;
}

void quern__netplay_drop(quern_netplay *netplay, uint32_t player)
{
    set_dropped(netplay, player, quern__netplay_limit(&netplay->players[player]));
    netplay->epoch++;
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
        if (player->dropped_from != dropped_from[i]) set_dropped(netplay, i, dropped_from[i]);
        player->active_from = active_from[i];
        if (was_out && !quern__netplay_is_out(player)) begin_life(netplay, i, epoch, 0);
    }
    netplay->epoch = epoch;
}

void quern__netplay_meet_group(quern_netplay *netplay, const uint32_t *active_from,
                               const uint32_t *dropped_from)
{
    uint32_t own_count = 0, other_count = 0, own_first = UINT32_MAX, other_first = UINT32_MAX;
    for (uint32_t i = netplay->def.player_count; i-- > 0;) {
        const quern__netplay_player there = {.active_from = active_from[i],
                                             .dropped_from = dropped_from[i]};
        if (!quern__netplay_is_out(&netplay->players[i])) {
            own_count++;
            own_first = i;
        }
        if (!quern__netplay_is_out(&there)) {
            if (i == netplay->def.player) return; /* the player has not heard yet that it is out */
            other_count++;
            other_first = i;
        }
    }
    if (other_count > own_count || (other_count == own_count && other_first < own_first))
        netplay->is_dropped = true;
}

void quern__netplay_check_silence(quern_netplay *netplay)
{
    const uint64_t now = netplay->def.transport.now(netplay->def.transport.user_data);
    const double limit_ns = netplay->def.timeout_seconds * 1e9;
    quern__netplay_transfer *transfer = &netplay->transfer;
    if (limit_ns == 0) return;
    if (transfer->player != QUERN__NETPLAY_NEVER &&
        (double)(now - netplay->players[transfer->player].heard_ns) > limit_ns)
        quern__netplay_end_transfer(netplay);
    /* A silent host is dropped by the player that becomes the host then. */
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        if (i == netplay->def.player || quern__netplay_is_out(&netplay->players[i]) ||
            (double)(now - netplay->players[i].heard_ns) <= limit_ns)
            continue;
        const uint32_t host = quern__netplay_host(netplay);
        bool is_next = host == netplay->def.player || host == i;
        for (uint32_t k = 0; k < netplay->def.player && is_next; k++)
            is_next = k == i || quern__netplay_is_out(&netplay->players[k]);
        if (is_next) quern__netplay_drop(netplay, i);
    }
}

/* ------------------------------------------------------------------------------------------ transfer */

void quern__netplay_end_transfer(quern_netplay *netplay)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const uint32_t chunk_count = transfer->total_bytes / QUERN__NETPLAY_CHUNK + 1;
    if (transfer->has_chunk != NULL)
        netplay->allocator.release(netplay->allocator.user_data, transfer->has_chunk, chunk_count, 8);
    quern_byte_buffer_release(&transfer->bytes);
    *transfer = (quern__netplay_transfer){.player = QUERN__NETPLAY_NEVER};
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
    begin_life(netplay, netplay->transfer.player, netplay->epoch + 1, netplay->transfer.frame);
    netplay->epoch++;
    quern__netplay_end_transfer(netplay);
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
        return begin_transfer(netplay, jobs, player);
    }
    if (transfer->player != player || frame != transfer->frame) return QUERN_OK;
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
    netplay->frame = netplay->verified = transfer->frame;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        netplay->players[i].known_end = transfer->frame;
    netplay->counts.is_joining = false;
    return call_loaded(netplay, jobs);
}

static quern_result reserve_chunks(quern_netplay *netplay, uint32_t frame, uint32_t total_bytes)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_allocator *allocator = &netplay->allocator;
    quern__netplay_end_transfer(netplay);
    transfer->frame = frame;
    transfer->total_bytes = total_bytes;
    transfer->bytes =
        (quern_byte_buffer){.bytes = allocator->allocate(allocator->user_data, total_bytes, 8),
                            .size_bytes = total_bytes,
                            .capacity_bytes = total_bytes,
                            .allocator = *allocator};
    transfer->has_chunk =
        allocator->allocate(allocator->user_data, total_bytes / QUERN__NETPLAY_CHUNK + 1, 8);
    if (transfer->bytes.bytes == NULL || transfer->has_chunk == NULL) {
        if (transfer->bytes.bytes == NULL) transfer->bytes = (quern_byte_buffer){0};
        quern__netplay_end_transfer(netplay);
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY,
                               "quern_netplay_advance: no memory for a world of %u bytes", total_bytes);
    }
    memset(transfer->has_chunk, 0, total_bytes / QUERN__NETPLAY_CHUNK + 1);
    transfer->player = netplay->def.player;
    return QUERN_OK;
}

quern_result quern__netplay_store_chunk(quern_netplay *netplay, uint32_t frame, uint32_t total_bytes,
                                        uint32_t offset, const unsigned char *bytes, uint32_t size_bytes,
                                        bool *out_whole)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    *out_whole = false;
    if (total_bytes == 0) return QUERN_OK;
    if (transfer->player == QUERN__NETPLAY_NEVER || transfer->frame != frame ||
        transfer->total_bytes != total_bytes) {
        if (transfer->player != QUERN__NETPLAY_NEVER && frame <= transfer->frame)
            return QUERN_OK; /* an old one */
        const quern_result result = reserve_chunks(netplay, frame, total_bytes);
        if (result != QUERN_OK) return result;
    }
    const uint32_t left = offset < total_bytes ? total_bytes - offset : 0;
    const uint32_t expected = left < QUERN__NETPLAY_CHUNK ? left : QUERN__NETPLAY_CHUNK;
    if (transfer->bytes.bytes == NULL || offset % QUERN__NETPLAY_CHUNK != 0 || size_bytes != expected)
        return QUERN_OK;
    memcpy((char *)transfer->bytes.bytes + offset, bytes, size_bytes);
    transfer->has_chunk[offset / QUERN__NETPLAY_CHUNK] = 1;
    const uint32_t chunk_count = (total_bytes - 1) / QUERN__NETPLAY_CHUNK + 1;
    while (transfer->first_missing < chunk_count && transfer->has_chunk[transfer->first_missing])
        transfer->first_missing++;
    *out_whole = transfer->first_missing == chunk_count;
    return QUERN_OK;
}

quern_result quern__netplay_take_chunk(quern_netplay *netplay, quern_jobs *jobs, uint32_t frame,
                                       uint32_t total_bytes, uint32_t offset, const unsigned char *bytes,
                                       uint32_t size_bytes)
{
    bool is_whole;
    if (!netplay->counts.is_joining) return QUERN_OK;
    const quern_result result =
        quern__netplay_store_chunk(netplay, frame, total_bytes, offset, bytes, size_bytes, &is_whole);
    return result == QUERN_OK && is_whole ? load_world(netplay, jobs) : result;
}
