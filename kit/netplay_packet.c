/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Packets. All numbers are little-endian:
 *
 *   all      u32 magic, u64 session, u8 kind, u8 sender; at the end u32 checksum of all that precedes
 *   FRAMES   u32 epoch, u32 next frame of the sender; per player u32 active_from, u32 dropped_from, u32 known_end;
 *            u8 count of hashes, each u32 frame, u64 hash; runs of inputs: u8 player, u32 first frame, u8 count, inputs
 *   JOIN     u32 frame of the world that is arriving (NEVER: none), u32 first chunk that is missing
 *   CHUNKS   u32 frame, u32 total bytes, u32 offset, bytes
 *   TRACE    u32 first frame, u8 count, u64 hash of each frame; u32 frame at which the recording starts that is
 *            arriving (NEVER: none), u32 first chunk that is missing
 *
 * Nothing is acknowledged by itself: FRAMES packets repeat what the receiver's known_end shows to be missing. */
#include "kit/netplay_internal.h"

#include "kit/random.h"

#include <string.h>

enum {
    MAGIC = 0x51, /* with the version of the format */
    VERSION = 1,
    HEADER_BYTES = 14,
    CHECKSUM_BYTES = 4,
    HASHES_PER_PACKET = 3,
    CALLS_PER_PROBE = 16
};

typedef enum packet_kind {
    PACKET_FRAMES = 1,
    PACKET_JOIN,   /* a machine asks for the world, and lists the chunks that it has */
    PACKET_CHUNKS, /* a part of the world, or of a recording if worlds differ */
    PACKET_TRACE   /* hashes of a machine whose world differs, and the chunks that it has */
} packet_kind;

typedef struct packet {
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
    uint32_t size; /* when reading: the position */
    uint32_t end;  /* when reading */
} packet;

/* ------------------------------------------------------------------------------------------- writing */

static void put(packet *out, uint64_t value, uint32_t byte_count)
{
    for (uint32_t i = 0; i < byte_count; i++)
        out->bytes[out->size++] = (unsigned char)(value >> (8 * i));
}

static void put_bytes(packet *out, const void *bytes, uint32_t count)
{
    memcpy(out->bytes + out->size, bytes, count);
    out->size += count;
}

uint32_t quern__netplay_checksum(uint64_t session, const unsigned char *bytes, uint32_t size)
{
    uint64_t sum = quern_random_mix(session ^ size);
    for (uint32_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 0x100000001B3u;
    return (uint32_t)(quern_random_mix(sum) >> 32);
}

static void begin_packet(const quern_netplay *netplay, packet *out, packet_kind kind)
{
    out->size = 0;
    put(out, MAGIC | VERSION << 8, 4);
    put(out, netplay->def.session, 8);
    put(out, kind, 1);
    put(out, netplay->def.player, 1);
}

static void send_packet(quern_netplay *netplay, packet *out, uint32_t player)
{
    put(out, quern__netplay_checksum(netplay->def.session, out->bytes, out->size), CHECKSUM_BYTES);
    netplay->counts.sent_bytes += out->size;
    netplay->def.transport.send(netplay->def.transport.user_data, player, out->bytes, out->size);
}

/* Writes the newest hashes of frames that will not change. */
static void put_hashes(const quern_netplay *netplay, packet *out)
{
    const uint32_t interval = netplay->def.hash_interval, last = netplay->verified / interval;
    const uint32_t count_at = out->size;
    uint32_t count = 0;
    put(out, 0, 1);
    for (uint32_t i = 0; i < HASHES_PER_PACKET && i <= last; i++) {
        const quern__netplay_hash *hash = &netplay->hashes[(last - i) % QUERN__NETPLAY_HASHES];
        if (hash->frame != (last - i) * interval) continue;
        put(out, hash->frame, 4);
        put(out, hash->hash, 8);
        count++;
    }
    out->bytes[count_at] = (unsigned char)count;
}

/* Writes the inputs of a player that the receiver lacks, as many as fit. */
static void put_run(const quern_netplay *netplay, packet *out, uint32_t player, uint32_t receiver)
{
    const quern__netplay_player *known = &netplay->players[player];
    const uint32_t bytes = netplay->def.input_bytes, first = netplay->players[receiver].acks[player];
    const uint32_t room = (uint32_t)sizeof out->bytes - CHECKSUM_BYTES - out->size;
    /* This machine has no inputs from before the world that it has loaded. */
    uint32_t count =
        known->known_end > first && first >= netplay->loaded_frame ? known->known_end - first : 0;
    if (count == 0 || count > QUERN__NETPLAY_WINDOW || room < 6 + bytes) return;
    if (count > (room - 6) / bytes) count = (room - 6) / bytes;
    if (count > UINT8_MAX) count = UINT8_MAX;
    put(out, player, 1);
    put(out, first, 4);
    put(out, count, 1);
    for (uint32_t i = 0; i < count; i++)
        put_bytes(out, known->inputs[(first + i) % QUERN__NETPLAY_WINDOW], bytes);
}

static void send_frames(quern_netplay *netplay, uint32_t receiver)
{
    packet out;
    begin_packet(netplay, &out, PACKET_FRAMES);
    put(&out, netplay->epoch, 4);
    put(&out, netplay->frame, 4);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_player *player = &netplay->players[i];
        put(&out, player->active_from, 4);
        put(&out, player->dropped_from, 4);
        put(&out, quern__netplay_limit(player), 4);
    }
    put_hashes(netplay, &out);
    put_run(netplay, &out, netplay->def.player, receiver);
    /* Only machines that have heard the last inputs of a player that is out can pass them on. */
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && i != receiver && quern__netplay_is_out(&netplay->players[i]))
            put_run(netplay, &out, i, receiver);
    send_packet(netplay, &out, receiver);
}

static void send_join(quern_netplay *netplay)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        packet out;
        if (i == netplay->def.player) continue;
        begin_packet(netplay, &out, PACKET_JOIN);
        put(&out, transfer->player == QUERN__NETPLAY_NEVER ? QUERN__NETPLAY_NEVER : transfer->frame, 4);
        put(&out, transfer->first_missing, 4);
        send_packet(netplay, &out, i);
    }
}

/* Sends a player the next chunks of the world or of a recording, from the first missing one on. */
static void send_chunks(quern_netplay *netplay, uint32_t player, uint32_t frame,
                        const quern_byte_buffer *bytes, uint32_t first_missing)
{
    for (uint32_t i = 0; i < QUERN__NETPLAY_CHUNKS_AHEAD; i++) {
        packet out;
        const uint64_t offset = ((uint64_t)first_missing + i) * QUERN__NETPLAY_CHUNK;
        if (offset >= bytes->size_bytes) return;
        const uint64_t left = bytes->size_bytes - offset;
        begin_packet(netplay, &out, PACKET_CHUNKS);
        put(&out, frame, 4);
        put(&out, bytes->size_bytes, 4);
        put(&out, offset, 4);
        put_bytes(&out, (const char *)bytes->bytes + offset,
                  left < QUERN__NETPLAY_CHUNK ? (uint32_t)left : QUERN__NETPLAY_CHUNK);
        send_packet(netplay, &out, player);
    }
}

/* Sends a player the hashes of this machine, and chunks of the recording if the player's machine asks for it. */
static void send_report(quern_netplay *netplay, uint32_t player)
{
    const quern__netplay_divergence *divergence = &netplay->divergence;
    packet out;
    begin_packet(netplay, &out, PACKET_TRACE);
    put(&out, divergence->own.first, 4);
    put(&out, divergence->own.count, 1);
    for (uint32_t i = 0; i < divergence->own.count; i++)
        put(&out, divergence->own.hashes[i], 8);
    put(&out, divergence->start, 4);
    put(&out, divergence->is_whole ? QUERN__NETPLAY_NEVER : netplay->transfer.first_missing, 4);
    send_packet(netplay, &out, player);
    if (divergence->wanted[player] != QUERN__NETPLAY_NEVER)
        send_chunks(netplay, player, divergence->start, &divergence->recording, divergence->wanted[player]);
}

void quern__netplay_send(quern_netplay *netplay)
{
    /* A machine that has loaded the world asks on until it is admitted: its requests tell the host that it has all. */
    if (!netplay->is_admitted) send_join(netplay);
    if (netplay->counts.is_joining) return;
    const quern__netplay_transfer *transfer = &netplay->transfer;
    if (netplay->is_admitted && transfer->player != QUERN__NETPLAY_NEVER && !netplay->has_diverged)
        send_chunks(netplay, transfer->player, transfer->frame, &transfer->bytes, transfer->first_missing);
    /* Players that are out get a packet now and then: two groups that have dropped each other would never meet again.
     * */
    const bool probes = netplay->call_count++ % CALLS_PER_PROBE == 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const bool is_out = quern__netplay_is_out(&netplay->players[i]);
        if (i == netplay->def.player) continue;
        if (probes || !is_out) send_frames(netplay, i);
        if (netplay->has_diverged && netplay->def.reports && !is_out) send_report(netplay, i);
    }
}

/* ------------------------------------------------------------------------------------------- reading */

/* Returns the next number; sets the size beyond the end if the packet is too short. */
static uint64_t get(packet *in, uint32_t byte_count)
{
    uint64_t value = 0;
    if (in->size > in->end || in->end - in->size < byte_count) {
        in->size = in->end + 1;
        return 0;
    }
    for (uint32_t i = 0; i < byte_count; i++)
        value |= (uint64_t)in->bytes[in->size++] << (8 * i);
    return value;
}

/* Reads the members and what the sender knows. Returns false if nothing else of the packet counts, because the sender
 * and this machine do not play together: one of them is out, joins, or has started again without the other having
 * noticed. */
static bool read_members(quern_netplay *netplay, packet *in, uint32_t sender, uint32_t epoch)
{
    uint32_t active_from[QUERN_MAX_NETPLAY_PLAYERS] = {0}, dropped_from[QUERN_MAX_NETPLAY_PLAYERS] = {0},
             known_end[QUERN_MAX_NETPLAY_PLAYERS] = {0};
    const uint32_t self = netplay->def.player;
    const quern__netplay_player *own = &netplay->players[self];
    quern__netplay_player *player = &netplay->players[sender];
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        active_from[i] = (uint32_t)get(in, 4);
        dropped_from[i] = (uint32_t)get(in, 4);
        known_end[i] = (uint32_t)get(in, 4);
    }
    if (in->size > in->end) return false;
    const bool sender_joins = quern__netplay_is_out(
        &(quern__netplay_player){.active_from = active_from[sender], .dropped_from = dropped_from[sender]});
    bool is_excluded = quern__netplay_is_out(
        &(quern__netplay_player){.active_from = active_from[self], .dropped_from = dropped_from[self]});
    if (!netplay->is_admitted) {
        /* The player takes part if the sender of the world says so, from a frame that the world does not contain. The
         * members of others may still have an earlier life of the player. */
        if (sender != netplay->transfer.sender ||
            (!is_excluded && active_from[self] < netplay->loaded_frame))
            return false;
    } else {
        const bool is_out = quern__netplay_is_out(player);
        is_excluded |= active_from[self] != own->active_from;
        /* Two groups that have lost each other, or the sender has not heard yet that this player takes part. */
        if (is_excluded && !sender_joins && (is_out || epoch >= own->first_epoch))
            quern__netplay_meet_group(netplay, sender, active_from, dropped_from);
        if (is_out || (is_excluded && epoch >= own->first_epoch)) return false;
    }
    if (epoch > netplay->epoch) quern__netplay_adopt(netplay, epoch, active_from, dropped_from);
    if (active_from[sender] != player->active_from) return false; /* of another life */
    /* Packets arrive in any order, and what a machine knows never becomes less, until it starts again. */
    for (uint32_t i = 0; i < netplay->def.player_count && epoch >= player->first_epoch; i++)
        if (known_end[i] != QUERN__NETPLAY_NEVER && known_end[i] > player->acks[i])
            player->acks[i] = known_end[i];
    return true;
}

/* Stores the inputs of a run that are not known yet, if no frame before them is missing. */
static void read_run(quern_netplay *netplay, packet *in)
{
    const uint32_t index = (uint32_t)get(in, 1), first = (uint32_t)get(in, 4), count = (uint32_t)get(in, 1);
    const uint32_t bytes = netplay->def.input_bytes;
    const bool is_whole = in->size <= in->end && in->end - in->size >= count * bytes;
    /* Arithmetic on frame numbers that are near those of this machine cannot overflow. */
    const bool is_near =
        first < QUERN__NETPLAY_NEVER / 2 &&
        (netplay->frame < QUERN__NETPLAY_WINDOW || first >= netplay->frame - QUERN__NETPLAY_WINDOW);
    if (!is_whole || index >= netplay->def.player_count || index == netplay->def.player || !is_near) {
        in->size = in->end + 1;
        return;
    }
    quern__netplay_player *player = &netplay->players[index];
    const uint32_t limit = quern__netplay_limit(player);
    for (uint32_t i = 0; i < count; i++, in->size += bytes) {
        if (limit == QUERN__NETPLAY_NEVER || first + i < limit) continue;
        if (player->known_end < limit) player->known_end = limit;
        if (first + i != player->known_end ||
            player->known_end >= netplay->frame + QUERN__NETPLAY_WINDOW / 2)
            continue;
        memcpy(player->inputs[player->known_end++ % QUERN__NETPLAY_WINDOW], in->bytes + in->size, bytes);
    }
}

static void read_frames(quern_netplay *netplay, packet *in, uint32_t sender)
{
    quern__netplay_player *player = &netplay->players[sender];
    const uint32_t epoch = (uint32_t)get(in, 4), frame = (uint32_t)get(in, 4);
    const uint64_t now = netplay->def.transport.now(netplay->def.transport.user_data);
    if (netplay->counts.is_joining) { /* the machine does not know yet which frames are near */
        player->heard_ns = now;
        return;
    }
    if (!read_members(netplay, in, sender, epoch)) return;
    player->heard_ns = now;
    if (frame > player->frame && frame < QUERN__NETPLAY_NEVER / 2) player->frame = frame;
    const uint32_t hash_count = (uint32_t)get(in, 1);
    for (uint32_t i = 0; i < hash_count && in->size <= in->end; i++) {
        const uint32_t hashed_frame = (uint32_t)get(in, 4);
        const uint64_t hash = get(in, 8);
        if (in->size <= in->end)
            player->hashes[hashed_frame / netplay->def.hash_interval % QUERN__NETPLAY_HASHES] =
                (quern__netplay_hash){.frame = hashed_frame, .epoch = epoch, .hash = hash};
    }
    while (in->size < in->end)
        read_run(netplay, in);
}

/* Returns whether the packet is whole. */
static bool read_chunk(packet *in, uint32_t sender, quern__netplay_chunk *chunk)
{
    *chunk = (quern__netplay_chunk){.sender = sender};
    chunk->frame = (uint32_t)get(in, 4);
    chunk->total_bytes = (uint32_t)get(in, 4);
    chunk->offset = (uint32_t)get(in, 4);
    if (in->size > in->end || chunk->frame >= QUERN__NETPLAY_NEVER / 2) return false;
    chunk->bytes = in->bytes + in->size;
    chunk->size_bytes = in->end - in->size;
    return true;
}

/* Reads a packet after the worlds have differed: only what a report needs. */
static quern_result read_report_packet(quern_netplay *netplay, packet *in, uint32_t sender,
                                       packet_kind kind)
{
    quern__netplay_divergence *divergence = &netplay->divergence;
    quern__netplay_chunk chunk;
    if (!netplay->def.reports) return QUERN_OK;
    if (kind == PACKET_TRACE) { /* used if this machine has found the difference, too */
        quern__netplay_trace trace = {.first = (uint32_t)get(in, 4), .count = (uint32_t)get(in, 1)};
        if (trace.count > QUERN_MAX_NETPLAY_REPORT + 1) return QUERN_OK;
        for (uint32_t i = 0; i < trace.count; i++)
            trace.hashes[i] = get(in, 8);
        const uint32_t start = (uint32_t)get(in, 4), first_missing = (uint32_t)get(in, 4);
        if (in->size <= in->end && trace.first < QUERN__NETPLAY_NEVER / 2)
            quern__netplay_take_trace(netplay, sender, &trace, start, first_missing);
    }
    if (kind != PACKET_CHUNKS || sender != divergence->report.player || divergence->is_whole ||
        divergence->start == QUERN__NETPLAY_NEVER)
        return QUERN_OK;
    if (!read_chunk(in, sender, &chunk) || chunk.frame != divergence->start) return QUERN_OK;
    return quern__netplay_store_chunk(netplay, &chunk, &divergence->is_whole);
}

static quern_result read_packet(quern_netplay *netplay, quern_jobs *jobs, packet *in, uint32_t sender)
{
    const packet_kind kind = (packet_kind)get(in, 1);
    (void)get(in, 1); /* the sender, which was compared */
    /* Requests of a machine that has started again must not keep its player from being dropped, nor packets of one that
     * has lost this machine (read_frames). */
    if (kind == PACKET_CHUNKS || quern__netplay_is_out(&netplay->players[sender]))
        netplay->players[sender].heard_ns = netplay->def.transport.now(netplay->def.transport.user_data);
    if (netplay->has_diverged) return read_report_packet(netplay, in, sender, kind);
    if (kind == PACKET_FRAMES) {
        read_frames(netplay, in, sender);
    } else if (kind == PACKET_JOIN) {
        const uint32_t frame = (uint32_t)get(in, 4), first_missing = (uint32_t)get(in, 4);
        if (in->size <= in->end && !netplay->counts.is_joining)
            return quern__netplay_serve(netplay, jobs, sender, frame, first_missing);
    } else if (kind == PACKET_CHUNKS) {
        quern__netplay_chunk chunk;
        if (read_chunk(in, sender, &chunk)) return quern__netplay_take_chunk(netplay, jobs, &chunk);
    }
    return QUERN_OK;
}

/* Returns whether a packet is one of this session, whole, and from the player that the transport names. The position is
 * then behind the session. */
static bool is_valid(const quern_netplay *netplay, packet *in, uint32_t size, uint32_t sender)
{
    if (size < HEADER_BYTES + CHECKSUM_BYTES || size > sizeof in->bytes) return false;
    in->end = size;
    in->size = size - CHECKSUM_BYTES;
    if (get(in, CHECKSUM_BYTES) !=
        quern__netplay_checksum(netplay->def.session, in->bytes, size - CHECKSUM_BYTES))
        return false;
    in->end = size - CHECKSUM_BYTES;
    in->size = 0;
    return get(in, 4) == (MAGIC | VERSION << 8) && get(in, 8) == netplay->def.session &&
           sender < netplay->def.player_count && sender != netplay->def.player &&
           in->bytes[HEADER_BYTES - 1] == sender;
}

quern_result quern__netplay_receive(quern_netplay *netplay, quern_jobs *jobs)
{
    const quern_netplay_transport *transport = &netplay->def.transport;
    quern_result result = QUERN_OK;
    packet in;
    uint32_t size, sender = 0;
    while (result == QUERN_OK &&
           (size = transport->receive(transport->user_data, &sender, in.bytes, sizeof in.bytes)) > 0) {
        if (!is_valid(netplay, &in, size, sender)) {
            netplay->counts.ignored_count++;
            continue;
        }
        netplay->counts.received_bytes += size;
        result = read_packet(netplay, jobs, &in, sender);
    }
    return result;
}
