/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What a game shows of a session: the connection to each player, and events. All of it is found from the state of the
 * session after a call, and nothing in the session depends on it. */
#include "kit/netplay_internal.h"

#include <math.h>

/* --------------------------------------------------------------------------------------- connections */

void quern__netplay_note_sent(quern_netplay *netplay, uint32_t player, uint32_t size_bytes)
{
    if (player >= QUERN_NETPLAY_SPECTATOR) {
        netplay->stands.spectators[player - QUERN_NETPLAY_SPECTATOR].sent_bytes += size_bytes;
        netplay->stands.spectators[player - QUERN_NETPLAY_SPECTATOR].sent_packets++;
        return;
    }
    quern__netplay_link *link = &netplay->players[player].link;
    link->sent_bytes += size_bytes;
    link->sent_packets++;
    netplay->sent_at_ns[netplay->sequence % QUERN__NETPLAY_WINDOW] = netplay->now_ns;
}

void quern__netplay_note_machine(quern_netplay *netplay, uint32_t player, uint32_t sequence)
{
    quern__netplay_link *link = &netplay->players[player].link;
    link->echoed = 0;
    link->first_sequence = sequence;
    link->counted_packets = 0;
}

/* A machine answers the newest packet that it has got, in all packets until the next one arrives: only the first answer
 * tells the time. */
static void note_answer(const quern_netplay *netplay, quern__netplay_link *link, uint32_t echoed)
{
    enum { SHARE = 8 };
    if (echoed <= link->echoed || netplay->sequence - echoed >= QUERN__NETPLAY_WINDOW) return;
    const double took_ns = (double)(netplay->now_ns - netplay->sent_at_ns[echoed % QUERN__NETPLAY_WINDOW]);
    link->echoed = echoed;
    if (link->ping_ns == 0) {
        link->ping_ns = took_ns;
        return;
    }
    link->jitter_ns += (fabs(took_ns - link->ping_ns) - link->jitter_ns) / SHARE;
    link->ping_ns += (took_ns - link->ping_ns) / SHARE;
}

/* The machine numbers its packets to all others: of each so many numbers, one is for this machine. */
static uint32_t count_receivers(const quern_netplay *netplay, uint32_t player)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        count += i != player && !quern__netplay_is_out(&netplay->table.members[i]);
    return count == 0 ? 1 : count;
}

void quern__netplay_note_received(quern_netplay *netplay, uint32_t player, uint32_t size_bytes,
                                  uint32_t sequence, uint32_t echoed)
{
    enum { COUNTED = 128 };
    quern__netplay_link *link = &netplay->players[player].link;
    link->received_bytes += size_bytes;
    link->received_packets++;
    if (echoed != 0) note_answer(netplay, link, echoed);
    if (sequence < link->first_sequence || netplay->def.spectates) return;
    link->counted_packets++;
    const double sent = (double)(sequence - link->first_sequence + 1) / count_receivers(netplay, player);
    if (sent < COUNTED) return;
    const double arrived = link->counted_packets;
    link->loss = arrived < sent ? 1 - arrived / sent : 0;
    link->first_sequence = sequence + 1;
    link->counted_packets = 0;
}

static float progress_of(const quern_netplay *netplay, uint32_t player)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    if (transfer->player != player || transfer->total_bytes == 0) return 0;
    const uint64_t arrived_bytes = (uint64_t)transfer->first_missing * QUERN__NETPLAY_CHUNK;
    return arrived_bytes < transfer->total_bytes
               ? (float)((double)arrived_bytes / (double)transfer->total_bytes)
               : 1;
}

static void get_spectator_status(const quern_netplay *netplay, const quern__netplay_spectator *spectator,
                                 quern_netplay_player_status *out_status)
{
    const uint32_t shown_end = quern__netplay_shown_end(netplay);
    const double world_bytes =
        (double)netplay->stands.list.size_bytes + (double)netplay->stands.world.size_bytes;
    *out_status = (quern_netplay_player_status){
        .sent_bytes = spectator->sent_bytes,
        .received_bytes = spectator->received_bytes,
        .sent_packets = spectator->sent_packets,
        .received_packets = spectator->received_packets,
        .silent_seconds =
            spectator->life != 0 ? (double)(netplay->now_ns - spectator->contact_ns) / 1e9 : 0};
    if (!quern__netplay_is_watching(netplay, spectator)) return;
    out_status->is_present = spectator->has_world;
    if (spectator->has_world && shown_end > spectator->wanted)
        out_status->unacknowledged_frames = shown_end - spectator->wanted;
    if (!spectator->has_world && spectator->id != 0 && spectator->id == netplay->stands.world_id)
        out_status->progress =
            (float)(spectator->first_missing * (double)QUERN__NETPLAY_CHUNK / world_bytes);
    if (out_status->progress > 1) out_status->progress = 1;
}

quern_result quern_netplay_get_player_status(const quern_netplay *netplay, uint32_t player,
                                             quern_netplay_player_status *out_status)
{
    static const char function[] = "quern_netplay_get_player_status";
    if (netplay == NULL || out_status == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                               netplay == NULL ? "netplay" : "out_status");
    if (player >= QUERN_NETPLAY_SPECTATOR &&
        player - QUERN_NETPLAY_SPECTATOR < netplay->def.spectator_count) {
        get_spectator_status(netplay, &netplay->stands.spectators[player - QUERN_NETPLAY_SPECTATOR],
                             out_status);
        return QUERN_OK;
    }
    if (player >= netplay->def.player_count)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: there is no player %u; the session has players 0 to %u, and this machine "
            "%u spectators, from %u on",
            function, (unsigned)player, (unsigned)(netplay->def.player_count - 1),
            (unsigned)netplay->def.spectator_count, (unsigned)QUERN_NETPLAY_SPECTATOR);
    const quern__netplay_player *other = &netplay->players[player];
    *out_status = (quern_netplay_player_status){
        .is_present = (quern__netplay_members(&netplay->table) >> player & 1) != 0,
        .progress = progress_of(netplay, player)};
    if (player == netplay->def.player) return QUERN_OK;
    const quern__netplay_link *link = &other->link;
    uint32_t own_end = 0, acknowledged = 0;
    if (!netplay->def.spectates && out_status->is_present) {
        own_end = netplay->players[netplay->def.player].known_end;
        acknowledged = other->acks[netplay->def.player];
    }
    out_status->is_interrupted = link->is_interrupted;
    out_status->ping_seconds = link->ping_ns / 1e9;
    out_status->jitter_seconds = link->jitter_ns / 1e9;
    out_status->loss = link->loss;
    out_status->silent_seconds = (double)(netplay->now_ns - other->heard_ns) / 1e9;
    out_status->sent_bytes = link->sent_bytes;
    out_status->received_bytes = link->received_bytes;
    out_status->sent_packets = link->sent_packets;
    out_status->received_packets = link->received_packets;
    out_status->frames_ahead = other->ahead;
    out_status->unacknowledged_frames = own_end > acknowledged ? own_end - acknowledged : 0;
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- events */

static void add_event(quern_netplay *netplay, quern_netplay_event_kind kind, uint32_t player,
                      float progress)
{
    if (netplay->event_count == QUERN_NETPLAY_EVENTS) {
        netplay->event_first++;
        netplay->event_count--;
    }
    const uint32_t place = (netplay->event_first + netplay->event_count++) % QUERN_NETPLAY_EVENTS;
    netplay->events[place] = (quern_netplay_event){
        .kind = kind, .player = player, .frame = netplay->frame, .progress = progress};
}

static bool is_silent(const quern_netplay *netplay, const quern__netplay_player *player)
{
    const double most_seconds = netplay->def.timeout_seconds > 0 ? netplay->def.timeout_seconds / 4 : 1;
    return (double)(netplay->now_ns - player->heard_ns) / 1e9 > most_seconds;
}

static void note_connection(quern_netplay *netplay, uint32_t number, bool is_present)
{
    quern__netplay_player *player = &netplay->players[number];
    quern__netplay_link *link = &player->link;
    if (link->echoed != 0 && link->connected_life != player->life) {
        link->connected_life = player->life;
        add_event(netplay, QUERN_NETPLAY_CONNECTED, number, 0);
    }
    const bool is_interrupted = is_present && netplay->is_admitted && is_silent(netplay, player);
    if (is_interrupted != link->is_interrupted && is_present)
        add_event(netplay, is_interrupted ? QUERN_NETPLAY_INTERRUPTED : QUERN_NETPLAY_RESUMED, number, 0);
    link->is_interrupted = is_interrupted;
}

/* shown: twentieths that events have shown. */
static void note_progress(quern_netplay *netplay, uint32_t number, uint32_t *shown)
{
    enum { PARTS = 20 };
    const float progress = progress_of(netplay, number);
    const uint32_t parts = (uint32_t)(progress * PARTS);
    if (parts > *shown) add_event(netplay, QUERN_NETPLAY_PROGRESS, number, progress);
    *shown = parts;
}

/* Notes the spectators of this machine, or that this machine watches. */
static void note_spectators(quern_netplay *netplay)
{
    quern__netplay_stands *stands = &netplay->stands;
    quern_netplay_status status;
    (void)quern_netplay_get_status(netplay, &status);
    uint8_t present = (uint8_t)status.spectators;
    if (netplay->def.spectates) {
        note_progress(netplay, netplay->def.player, &stands->shown_twentieths);
        if (!status.is_joining) present = (uint8_t)(1u << (netplay->def.player - QUERN_NETPLAY_SPECTATOR));
    }
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_SPECTATORS; i++)
        if (((present ^ stands->shown) >> i & 1) != 0)
            add_event(netplay, (present >> i & 1) != 0 ? QUERN_NETPLAY_JOINED : QUERN_NETPLAY_DROPPED,
                      QUERN_NETPLAY_SPECTATOR + i, 0);
    stands->shown = present;
}

void quern__netplay_note_events(quern_netplay *netplay)
{
    uint8_t present = quern__netplay_members(&netplay->table);
    if (netplay->def.spectates || netplay->def.spectator_count > 0) note_spectators(netplay);
    if (!netplay->is_admitted && !netplay->def.spectates) present &= (uint8_t) ~(1u << netplay->def.player);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const bool is_present = (present >> i & 1) != 0,
                   was_present = (netplay->shown_present >> i & 1) != 0;
        if (i != netplay->def.player) note_connection(netplay, i, is_present);
        if (netplay->transfer.player == i || netplay->players[i].link.shown_twentieths != 0)
            note_progress(netplay, i, &netplay->players[i].link.shown_twentieths);
        if (is_present != was_present)
            add_event(netplay, is_present ? QUERN_NETPLAY_JOINED : QUERN_NETPLAY_DROPPED, i, 0);
    }
    netplay->shown_present = present;
    if (netplay->has_diverged && !netplay->shown_diverged)
        add_event(netplay, QUERN_NETPLAY_DIVERGED, netplay->diverged_player, 0);
    netplay->shown_diverged = netplay->has_diverged;
}

bool quern_netplay_next_event(quern_netplay *netplay, quern_netplay_event *out_event)
{
    if (netplay == NULL || out_event == NULL || netplay->event_count == 0) return false;
    *out_event = netplay->events[netplay->event_first++ % QUERN_NETPLAY_EVENTS];
    netplay->event_count--;
    return true;
}
