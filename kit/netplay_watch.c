/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What a game shows of a session: the connection to each player, and events. All of it is found from the state of the
 * session after a call, and nothing in the session depends on it. */
#include "kit/netplay_internal.h"

#include <math.h>

/* --------------------------------------------------------------------------------------- connections */

void quern__netplay_note_sent(quern_netplay *netplay, uint32_t player, uint32_t size_bytes)
{
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
    if (sequence < link->first_sequence) return;
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

quern_result quern_netplay_get_player_status(const quern_netplay *netplay, uint32_t player,
                                             quern_netplay_player_status *out_status)
{
    static const char function[] = "quern_netplay_get_player_status";
    if (netplay == NULL || out_status == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                               netplay == NULL ? "netplay" : "out_status");
    if (player >= netplay->def.player_count)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: there is no player %u; the session has players 0 to %u", function,
                               (unsigned)player, (unsigned)(netplay->def.player_count - 1));
    const quern__netplay_player *other = &netplay->players[player];
    *out_status = (quern_netplay_player_status){
        .is_present = (quern__netplay_members(&netplay->table) >> player & 1) != 0,
        .progress = progress_of(netplay, player)};
    if (player == netplay->def.player) return QUERN_OK;
    const quern__netplay_link *link = &other->link;
    const uint32_t own_end = netplay->players[netplay->def.player].known_end,
                   acknowledged = other->acks[netplay->def.player];
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

static void note_progress(quern_netplay *netplay, uint32_t number)
{
    enum { PARTS = 20 };
    quern__netplay_link *link = &netplay->players[number].link;
    const float progress = progress_of(netplay, number);
    const uint32_t parts = (uint32_t)(progress * PARTS);
    if (parts > link->shown_twentieths) add_event(netplay, QUERN_NETPLAY_PROGRESS, number, progress);
    link->shown_twentieths = parts;
}

void quern__netplay_note_events(quern_netplay *netplay)
{
    uint8_t present = quern__netplay_members(&netplay->table);
    if (!netplay->is_admitted) present &= (uint8_t) ~(1u << netplay->def.player);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const bool is_present = (present >> i & 1) != 0,
                   was_present = (netplay->shown_present >> i & 1) != 0;
        if (i != netplay->def.player) note_connection(netplay, i, is_present);
        if (netplay->transfer.player == i || netplay->players[i].link.shown_twentieths != 0)
            note_progress(netplay, i);
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
