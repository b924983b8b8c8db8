/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Packets. `v32` is a number of 32 bits in 7 bits per byte, the lowest first, with the highest bit of each byte set
 * except the last one's; `s32` is a signed number as a v32 (0, -1, 1, -2 ... as 0, 1, 2, 3 ...). Other numbers are
 * little-endian:
 *
 *   all      u8 magic, u8 version, u8 kind (low 4 bits) and sender, v32 life and v32 sequence number of the packet, and
 *            the same of the newest packet from the receiver; at the end u32 checksum of the session and all that precedes, or
 *            u64 keyed hash of both in a session with a key
 *   FRAMES   u8 flags, u32 id of the table; if any, u8 members that the sender does not hear; if the receiver has another
 *            table as last heard, u32 its id, and the sender's table; v32 next frame of the sender; u8 frames by which it is
 *            ahead of the receiver, plus 128; for the receiver and each player that is out, the first frame whose input is
 *            not known: v32 0 if there is none, or 1 plus the folded number of frames by which it lies before that next
 *            frame; if the sender may have spectators, v32 number of frames by which the first one that it has not
 *            verified lies before that next frame; if one is sent, v32 frame of a hash, u64 hash, per player u32 hash of
 *            its inputs; runs of inputs
 *   a run    v32 player, plus 8 times the count of inputs; s32 number of frames by which it begins before the next
 *            frame of the sender; the inputs (put_run)
 *   JOIN     u8 flags, u32 id of the transfer (0: none), u32 first chunk that is missing, u8 count of bytes with a bit for
 *            each chunk from that one on that has arrived, and these bytes
 *   WATCH    of a spectator: u8 flags; if it has the world, v32 first frame whose inputs it lacks; otherwise what follows
 *            the flags of JOIN
 *   WATCHED  to a spectator: u8 flags; v32 first frame and v32 count of rows; if one is sent, v32 frame of a hash, u64
 *            hash; the rows: inputs of all players of a frame, one after the other, as one input of a run
 *   CHUNKS   u8 flags, u32 id of the transfer, u32 frame, u32 total bytes, u32 offset, bytes
 *   TRACE    u32 first frame, u8 count, u64 hash of each frame; u32 frame at which the recording starts that is
 *            arriving (NEVER: none), u32 first chunk that is missing
 *   CHANGE   u32 id of the table, u8 step, u32 ballot; PROMISE: u32 verified, per player u32 first frame whose input is not
 *            known, u32 ballot of the accepted table, the table if that is not 0; ACCEPT: the table
 *   a table  u32 epoch, u32 parent, u8 count of forks, each u32 epoch, u32 id; per player u32 active_from, u32
 *            dropped_from, u32 life
 *
 * Nothing is acknowledged by itself: FRAMES packets repeat what the receiver's known_end shows to be missing. A packet can
 * be read without any other one, so that none is in vain because an earlier one was lost.
 *
 * Every version begins with the magic and the version, and ends with the checksum: so a machine recognises packets of its
 * session from a machine with another version. */
#include "kit/netplay_internal.h"

#include "kit/random.h"

#include <string.h>

enum {
    MAGIC = 0x51,
    HEADER_BYTES = 7, /* at least */
    SENDER_SHIFT = 4,
    CHECKSUM_BYTES = 4,
    KEYED_HASH_BYTES = 8, /* instead of a checksum */
    HASHES_SENT = 3,
    MOST_CALLS_PER_HASH = 10,
    CALLS_PER_PROBE = 16,
    MOST_SEQUENCE_STEP = 1 << 20,
    MOST_BALLOT_STEP =
        1 << 16,    /* no agreement takes so many: no member could propose more than the highest ballot */
    FLAG_TABLE = 1, /* the table follows */
    FLAG_CHANGING = 2,  /* the sender takes no inputs until there is a new table */
    FLAG_SUSPECTS = 4,  /* members that the sender does not hear follow */
    FLAG_HASH = 8,      /* a hash follows */
    FLAG_VERIFIED = 32, /* which frames are verified follows */
    FLAG_GAP = 16,      /* inputs of the receiver's player have arrived, and earlier ones have not */
    FLAGS = FLAG_TABLE | FLAG_CHANGING | FLAG_SUSPECTS | FLAG_HASH | FLAG_GAP | FLAG_VERIFIED,
    WATCH_HAS_WORLD = 1, /* of WATCH */
    WATCH_GAP = 2,       /* of WATCH: inputs have arrived, and earlier ones have not */
    JOIN_EARLIER = 4,    /* of JOIN and WATCH: the sender has an earlier world */
    CHUNKS_LIST = 1,     /* of CHUNKS: the first ones are hashes of the others */
    WATCHED_HASH = 1,    /* of WATCHED: a hash follows */
    WATCHED_GONE = 2,    /* of WATCHED: the sender does not keep the inputs any more */
    ROW_BYTES = QUERN_MAX_NETPLAY_PLAYERS * QUERN_MAX_NETPLAY_INPUT_BYTES, /* at most */
    RUN_BYTES = 32,     /* of a run of inputs that the receiver may have got already */
    RUN_FRAMES = 4,     /* the same, at least */
    RUN_HEAD_BYTES = 7, /* at most */
    HOLDS = 1,
    MOST_RUN = 128 /* frames; as many as the byte with HOLDS can count */
};

typedef enum packet_kind {
    PACKET_FRAMES = 1,
    PACKET_JOIN,   /* a machine asks for the world, and lists the chunks that it has */
    PACKET_CHUNKS, /* a part of the world, or of a recording if worlds differ */
    PACKET_TRACE,  /* hashes of a machine whose world differs, and the chunks that it has */
    PACKET_CHANGE, /* a message of an agreement on the next table */
    PACKET_WATCH,  /* a spectator asks for the world, or acknowledges inputs */
    PACKET_WATCHED /* inputs for a spectator */
} packet_kind;

typedef struct packet {
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
    uint32_t size;        /* when reading: the position */
    uint32_t end;         /* when reading */
    uint32_t whole_bytes; /* when reading: with the checksum */
} packet;

/* ------------------------------------------------------------------------------------------- writing */

static void put(packet *out, uint64_t value, uint32_t byte_count)
{
    for (uint32_t i = 0; i < byte_count; i++)
        out->bytes[out->size++] = (unsigned char)(value >> (8 * i));
}

static void put_v32(packet *out, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(out, (value & 0x7f) | 0x80, 1);
    put(out, value, 1);
}

/* Signed numbers of small size are small as v32. */
static uint32_t fold(int32_t value)
{
    return value < 0 ? ~((uint32_t)value << 1) : (uint32_t)value << 1;
}

static int32_t unfold(uint32_t folded)
{
    return (int32_t)(folded >> 1) ^ -(int32_t)(folded & 1);
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

static uint64_t rotate(uint64_t word, uint32_t bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix_rounds(uint64_t *v, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static uint64_t read_word(const uint8_t *bytes, uint32_t count)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static void mix_word(uint64_t *v, uint64_t word)
{
    v[3] ^= word;
    mix_rounds(v, 2);
    v[0] ^= word;
}

uint64_t quern_netplay_keyed_hash(const uint8_t key[QUERN_NETPLAY_KEY_BYTES], uint64_t number,
                                  const void *bytes, size_t size_bytes)
{
    const unsigned char *from = bytes;
    const uint64_t low = read_word(key, 8), high = read_word(key + 8, 8);
    uint64_t v[4] = {low ^ 0x736f6d6570736575u, high ^ 0x646f72616e646f6du, low ^ 0x6c7967656e657261u,
                     high ^ 0x7465646279746573u};
    const size_t whole = size_bytes / 8 * 8;
    mix_word(v, number);
    for (size_t i = 0; i < whole; i += 8)
        mix_word(v, read_word(from + i, 8));
    mix_word(v, read_word(from + whole, (uint32_t)(size_bytes - whole)) | (uint64_t)(size_bytes + 8) << 56);
    v[2] ^= 0xff;
    mix_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool has_key(const quern_netplay *netplay)
{
    for (uint32_t i = 0; i < QUERN_NETPLAY_KEY_BYTES; i++)
        if (netplay->def.key[i] != 0) return true;
    return false;
}

/* Size of what follows the content of a packet. */
static uint32_t sum_bytes(const quern_netplay *netplay)
{
    return has_key(netplay) ? KEYED_HASH_BYTES : CHECKSUM_BYTES;
}

/* Returns the keyed hash or the checksum of a packet. */
static uint64_t sum_of(const quern_netplay *netplay, const unsigned char *bytes, uint32_t size)
{
    return has_key(netplay) ? quern_netplay_keyed_hash(netplay->def.key, netplay->def.session, bytes, size)
                            : quern__netplay_checksum(netplay->def.session, bytes, size);
}

static void begin_packet(quern_netplay *netplay, packet *out, packet_kind kind, uint32_t receiver)
{
    const bool is_spectator = receiver >= QUERN_NETPLAY_SPECTATOR;
    const quern__netplay_player *player = is_spectator ? NULL : &netplay->players[receiver];
    const quern__netplay_spectator *spectator =
        is_spectator ? &netplay->stands.spectators[receiver - QUERN_NETPLAY_SPECTATOR] : NULL;
    out->size = 0;
    put(out, MAGIC, 1);
    put(out, QUERN__NETPLAY_VERSION, 1);
    put(out, (uint32_t)kind | netplay->def.player << SENDER_SHIFT, 1);
    put_v32(out, netplay->life);
    put_v32(out, ++netplay->sequence);
    put_v32(out, is_spectator ? spectator->life : player->life);
    put_v32(out, is_spectator ? spectator->sequence : player->sequence);
}

static void put_table(const quern_netplay *netplay, packet *out, const quern__netplay_table *table)
{
    put(out, table->epoch, 4);
    put(out, table->parent, 4);
    put(out, table->fork_count, 1);
    for (uint32_t i = 0; i < table->fork_count; i++) {
        put(out, table->forks[i].epoch, 4);
        put(out, table->forks[i].id, 4);
    }
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        put(out, table->members[i].active_from, 4);
        put(out, table->members[i].dropped_from, 4);
        put(out, table->members[i].life, 4);
    }
}

static void send_packet(quern_netplay *netplay, packet *out, uint32_t player)
{
    put(out, sum_of(netplay, out->bytes, out->size), sum_bytes(netplay));
    netplay->counts.sent_bytes += out->size;
    quern__netplay_note_sent(netplay, player, out->size);
    netplay->def.transport.send(netplay->def.transport.user_data, player, out->bytes, out->size);
}

/* Returns one of the newest hashes of frames that will not change, in turn; NULL if this call sends none. Each is sent
 * several times, and more often while a difference is looked into. */
static const quern__netplay_hash *choose_hash(const quern_netplay *netplay)
{
    const uint32_t interval = netplay->def.hash_interval, last = netplay->verified / interval;
    uint32_t calls_per_hash = interval / 3;
    if (calls_per_hash > MOST_CALLS_PER_HASH) calls_per_hash = MOST_CALLS_PER_HASH;
    if (calls_per_hash == 0 || netplay->differing_calls > 0) calls_per_hash = 1;
    if (netplay->call_count % calls_per_hash != 0) return NULL;
    const uint32_t back = netplay->call_count / calls_per_hash % HASHES_SENT;
    const uint32_t number = last >= back ? last - back : 0;
    const quern__netplay_hash *hash = &netplay->hashes[number % QUERN__NETPLAY_HASHES];
    return hash->frame == number * interval && hash->frame <= netplay->verified ? hash : NULL;
}

/* Returns the size of an input in a run, after the input of the frame before. */
static uint32_t measure_input(const quern_netplay *netplay, const quern__netplay_player *player,
                              uint32_t frame)
{
    const unsigned char *input = player->inputs[frame % QUERN__NETPLAY_WINDOW];
    const unsigned char *last = player->inputs[(frame - 1) % QUERN__NETPLAY_WINDOW];
    uint32_t changed = 0;
    for (uint32_t i = 0; i < netplay->def.input_bytes; i++)
        changed += input[i] != last[i];
    return changed == 0 ? 0 : netplay->def.input_bytes / 8 + 1 + changed;
}

/* Returns the first frame of the run of this machine's inputs for a player. Inputs are repeated until the receiver says that
 * it has them, as long as they are few bytes. Others are sent several times, and again if the receiver says that they
 * were lost. */
static uint32_t begin_run(const quern_netplay *netplay, uint32_t receiver)
{
    const quern__netplay_player *self = &netplay->players[netplay->def.player];
    const uint32_t acknowledged = netplay->players[receiver].acks[netplay->def.player];
    uint32_t first = self->known_end, size_bytes = 0;
    if (netplay->players[receiver].lacks_inputs) return acknowledged;
    while (first > acknowledged && (size_bytes < RUN_BYTES || self->known_end - first < RUN_FRAMES))
        size_bytes += measure_input(netplay, self, --first);
    return first > acknowledged ? first : acknowledged;
}

/* Inputs in a ring, by frame. */
typedef struct input_ring {
    const unsigned char *inputs;
    uint32_t stride_bytes; /* from one frame to the next */
    uint32_t capacity;     /* frames; a power of two */
    uint32_t input_bytes;
} input_ring;

static const unsigned char *input_at(const input_ring *ring, uint32_t frame)
{
    return ring->inputs + (size_t)(frame & (ring->capacity - 1)) * ring->stride_bytes;
}

/* Codes the inputs of frames from `first` on, as many as fit. The first one follows an input of zeros. Each
 * input that differs from the one before is a mask and the bytes that differ: bit i + 1 of the mask says whether byte i
 * does. If the lowest bit of the mask, HOLDS, is set, its first byte stands alone, and the last input holds for as many
 * frames as the other bits say, and one more. Returns how many were coded. */
static uint32_t code_inputs(packet *coded, const input_ring *ring, uint32_t first, uint32_t count,
                            uint32_t room)
{
    const uint32_t bytes = ring->input_bytes, mask_bytes = bytes / 8 + 1;
    unsigned char last[ROW_BYTES] = {0};
    uint32_t done = 0;
    while (done < count && coded->size + mask_bytes + bytes <= room) {
        const unsigned char *input = input_at(ring, first + done);
        uint32_t held = 0;
        while (done + held < count && held < MOST_RUN &&
               memcmp(input_at(ring, first + done + held), last, bytes) == 0)
            held++;
        if (held > 0) {
            put(coded, (held - 1) << 1 | HOLDS, 1);
            done += held;
            continue;
        }
        unsigned char *mask = coded->bytes + coded->size;
        memset(mask, 0, mask_bytes);
        coded->size += mask_bytes;
        for (uint32_t i = 0; i < bytes; i++) {
            if (input[i] == last[i]) continue;
            mask[(i + 1) / 8] |= (unsigned char)(1u << (i + 1) % 8);
            put(coded, input[i], 1);
        }
        memcpy(last, input, bytes);
        done++;
    }
    return done;
}

/* Writes the inputs of a player that the receiver lacks, as many as fit. */
static void put_run(const quern_netplay *netplay, packet *out, uint32_t player, uint32_t first)
{
    const quern__netplay_player *known = &netplay->players[player];
    const input_ring ring = {known->inputs[0], sizeof known->inputs[0], QUERN__NETPLAY_WINDOW,
                             netplay->def.input_bytes};
    const uint32_t room = (uint32_t)sizeof out->bytes - sum_bytes(netplay) - RUN_HEAD_BYTES - out->size;
    /* This machine has no inputs from before the world that it has loaded. */
    uint32_t count =
        known->known_end > first && first >= netplay->loaded_frame ? known->known_end - first : 0;
    if (count > QUERN__NETPLAY_WINDOW) return;
    if (count > MOST_RUN) count = MOST_RUN;
    packet coded = {.size = 0};
    const uint32_t done = code_inputs(&coded, &ring, first, count, room);
    if (done == 0) return;
    put_v32(out, done << 3 | player);
    put_v32(out, fold((int32_t)netplay->frame - (int32_t)first));
    put_bytes(out, coded.bytes, coded.size);
}

static void send_frames(quern_netplay *netplay, uint32_t receiver)
{
    packet out;
    const bool has_other_table = netplay->players[receiver].view != netplay->table.id;
    const uint32_t suspects =
        quern__netplay_members(&netplay->table) & (uint8_t)~quern__netplay_find_alive(netplay);
    const quern__netplay_hash *hash = choose_hash(netplay);
    begin_packet(netplay, &out, PACKET_FRAMES, receiver);
    put(&out,
        (uint32_t)(has_other_table ? FLAG_TABLE : 0) |
            (uint32_t)(netplay->change.promised != 0 ? FLAG_CHANGING : 0) |
            (uint32_t)(suspects != 0 ? FLAG_SUSPECTS : 0) | (uint32_t)(hash != NULL ? FLAG_HASH : 0) |
            (uint32_t)(netplay->players[receiver].has_gap ? FLAG_GAP : 0) |
            (uint32_t)(netplay->def.spectator_count > 0 ? FLAG_VERIFIED : 0),
        1);
    put(&out, netplay->table.id, 4);
    if (suspects != 0) put(&out, suspects, 1);
    if (has_other_table) {
        put(&out, netplay->players[receiver].view, 4);
        put_table(netplay, &out, &netplay->table);
    }
    put_v32(&out, netplay->frame);
    const int32_t ahead = netplay->players[receiver].ahead;
    put(&out, (uint32_t)(ahead < -100 ? 28 : ahead > 100 ? 228 : ahead + 128), 1);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const uint32_t limit = quern__netplay_limit(netplay, i);
        if (i != receiver && !quern__netplay_is_out(&netplay->table.members[i])) continue;
        put_v32(&out,
                limit == QUERN__NETPLAY_NEVER ? 0 : 1 + fold((int32_t)netplay->frame - (int32_t)limit));
    }
    if (netplay->def.spectator_count > 0) put_v32(&out, netplay->frame - netplay->verified);
    if (hash != NULL) {
        put_v32(&out, hash->frame);
        put(&out, hash->hash, 8);
        for (uint32_t i = 0; i < netplay->def.player_count; i++)
            put(&out, hash->inputs[i], 4);
    }
    put_run(netplay, &out, netplay->def.player, begin_run(netplay, receiver));
    /* Only machines that have heard the last inputs of a player that is out can pass them on. */
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && i != receiver && quern__netplay_is_out(&netplay->table.members[i]))
            put_run(netplay, &out, i, netplay->players[receiver].acks[i]);
    send_packet(netplay, &out, receiver);
}

/* Writes which chunks this machine has of the world that the receiver sends. */
static void put_request(const quern_netplay *netplay, packet *out, uint32_t receiver)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const bool sends = transfer->player != QUERN__NETPLAY_NEVER && transfer->sender == receiver;
    uint32_t count = sends ? sizeof transfer->arrived : 0;
    while (count > 0 && transfer->arrived[count - 1] == 0)
        count--;
    put(out, sends ? transfer->id : 0, 4);
    put(out, sends ? transfer->first_missing : 0, 4);
    put(out, count, 1);
    put_bytes(out, transfer->arrived, count);
}

static void send_join(quern_netplay *netplay)
{
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        packet out;
        if (i == netplay->def.player) continue;
        begin_packet(netplay, &out, PACKET_JOIN, i);
        put(&out, netplay->def.earlier_world != NULL ? JOIN_EARLIER : 0, 1);
        put_request(netplay, &out, i);
        send_packet(netplay, &out, i);
    }
}

void quern__netplay_send_change(quern_netplay *netplay, uint32_t player, quern__netplay_step step,
                                uint32_t ballot)
{
    const quern__netplay_change *change = &netplay->change;
    packet out;
    begin_packet(netplay, &out, PACKET_CHANGE, player);
    put(&out, netplay->table.id, 4);
    put(&out, step, 1);
    put(&out, ballot, 4);
    if (step == QUERN__NETPLAY_PROMISE) {
        put(&out, change->verified[netplay->def.player], 4);
        for (uint32_t i = 0; i < netplay->def.player_count; i++)
            put(&out, change->limits[netplay->def.player][i], 4);
        put(&out, change->accepted, 4);
        if (change->accepted != 0) put_table(netplay, &out, &change->accepted_table);
    }
    if (step == QUERN__NETPLAY_ACCEPT) put_table(netplay, &out, &change->table);
    send_packet(netplay, &out, player);
}

/* A world or a recording on its way to a player. */
typedef struct chunk_source {
    uint32_t id, frame;
    const quern_byte_buffer *list; /* chunks before those of `bytes`; NULL: none */
    const quern_byte_buffer *bytes;
    uint32_t first_missing;
    const uint8_t *arrived; /* bits of chunks from first_missing on; NULL: none is known to have arrived */
    uint32_t *next;         /* chunk to begin with */
} chunk_source;

/* Sends a player the next chunks of the world or of a recording that have not arrived, in turn: after those of the window
 * the first missing ones again. */
static void send_chunks(quern_netplay *netplay, uint32_t player, const chunk_source *source)
{
    const uint32_t first = source->first_missing;
    const uint64_t list_bytes = source->list != NULL ? source->list->size_bytes : 0;
    const uint64_t size_bytes = list_bytes + source->bytes->size_bytes;
    const uint64_t chunk_count = (size_bytes + QUERN__NETPLAY_CHUNK - 1) / QUERN__NETPLAY_CHUNK;
    if (first >= chunk_count) return;
    const uint32_t window = chunk_count - first < QUERN__NETPLAY_CHUNK_WINDOW
                                ? (uint32_t)(chunk_count - first)
                                : QUERN__NETPLAY_CHUNK_WINDOW;
    uint32_t sent = 0;
    for (uint32_t i = 0; i < window && sent < QUERN__NETPLAY_CHUNKS_PER_CALL; i++) {
        if (*source->next < first || *source->next - first >= window) *source->next = first;
        const uint32_t number = (*source->next)++, at = number - first;
        const uint64_t offset = (uint64_t)number * QUERN__NETPLAY_CHUNK, left = size_bytes - offset;
        packet out;
        if (source->arrived != NULL && (source->arrived[at / 8] >> at % 8 & 1) != 0) continue;
        const char *bytes = offset < list_bytes
                                ? (const char *)source->list->bytes + offset
                                : (const char *)source->bytes->bytes + (offset - list_bytes);
        begin_packet(netplay, &out, PACKET_CHUNKS, player);
        put(&out, list_bytes > 0 ? CHUNKS_LIST : 0, 1);
        put(&out, source->id, 4);
        put(&out, source->frame, 4);
        put(&out, size_bytes, 4);
        put(&out, offset, 4);
        put_bytes(&out, bytes, left < QUERN__NETPLAY_CHUNK ? (uint32_t)left : QUERN__NETPLAY_CHUNK);
        send_packet(netplay, &out, player);
        sent++;
    }
}

/* Sends a player the hashes of this machine, and chunks of the recording if the player's machine asks for it. */
static void send_report(quern_netplay *netplay, uint32_t player)
{
    const quern__netplay_divergence *divergence = &netplay->divergence;
    packet out;
    begin_packet(netplay, &out, PACKET_TRACE, player);
    put(&out, divergence->own.first, 4);
    put(&out, divergence->own.count, 1);
    for (uint32_t i = 0; i < divergence->own.count; i++)
        put(&out, divergence->own.hashes[i], 8);
    put(&out, divergence->start, 4);
    put(&out, divergence->is_whole ? QUERN__NETPLAY_NEVER : netplay->transfer.first_missing, 4);
    send_packet(netplay, &out, player);
    if (divergence->wanted[player] == QUERN__NETPLAY_NEVER) return;
    send_chunks(netplay, player,
                &(chunk_source){.frame = divergence->start,
                                .bytes = &divergence->recording,
                                .first_missing = divergence->wanted[player],
                                .next = &netplay->divergence.next[player]});
}

/* Sends a spectator rows from `first` on. Returns the frame after them. */
static uint32_t send_rows(quern_netplay *netplay, uint32_t receiver, uint32_t flags, uint32_t first,
                          uint32_t end)
{
    enum { WATCHED_HEAD_BYTES = 32 }; /* of the message, at most */
    const quern__netplay_log *log = &netplay->stands.log;
    const uint32_t interval = netplay->def.hash_interval,
                   row_bytes = netplay->def.player_count * netplay->def.input_bytes;
    const input_ring ring = {log->rows, row_bytes, log->capacity, row_bytes};
    packet out, coded = {.size = 0};
    begin_packet(netplay, &out, PACKET_WATCHED, receiver);
    const uint32_t room = (uint32_t)sizeof out.bytes - sum_bytes(netplay) - WATCHED_HEAD_BYTES - out.size;
    const uint32_t count = end > first ? code_inputs(&coded, &ring, first, end - first, room) : 0;
    /* The last hash of these frames, if there is one. */
    const uint32_t hashed = count > 0 ? (first + count - 1) / interval * interval : 0;
    if (count > 0 && hashed >= first && *quern__netplay_log_hash(netplay, hashed) != 0)
        flags |= WATCHED_HASH;
    put(&out, flags, 1);
    put_v32(&out, first);
    put_v32(&out, count);
    if ((flags & WATCHED_HASH) != 0) {
        put_v32(&out, hashed);
        put(&out, *quern__netplay_log_hash(netplay, hashed), 8);
    }
    put_bytes(&out, coded.bytes, coded.size);
    send_packet(netplay, &out, receiver);
    return first + count;
}

/* Sends a spectator the inputs that it may see and lacks, in several packets in turn. The last ones are repeated until
 * they are acknowledged: so a spectator that lacks earlier ones notices it and says so, and then all are sent again. */
static void send_watched(quern_netplay *netplay, uint32_t number)
{
    enum { PACKETS_PER_CALL = 4, REPEATED = 8 };
    quern__netplay_spectator *spectator = &netplay->stands.spectators[number];
    const uint32_t receiver = QUERN_NETPLAY_SPECTATOR + number, end = quern__netplay_shown_end(netplay);
    if (spectator->has_world && spectator->wanted < netplay->stands.log.first) {
        (void)send_rows(netplay, receiver, WATCHED_GONE, 0, 0);
        return;
    }
    if (!spectator->has_world) {
        (void)send_rows(netplay, receiver, 0, 0, 0);
        return;
    }
    uint32_t from = spectator->next;
    if (from + REPEATED > end) from = end > REPEATED ? end - REPEATED : 0;
    if (from < spectator->wanted) from = spectator->wanted;
    for (uint32_t i = 0; i < PACKETS_PER_CALL && (i == 0 || from < end); i++)
        from = send_rows(netplay, receiver, 0, from, end);
    spectator->next = from;
}

static void send_to_spectators(quern_netplay *netplay)
{
    quern__netplay_stands *stands = &netplay->stands;
    for (uint32_t i = 0; i < netplay->def.spectator_count; i++) {
        quern__netplay_spectator *spectator = &stands->spectators[i];
        if (quern__netplay_is_watching(netplay, spectator))
            send_watched(netplay, i);
        else if (spectator->is_probed)
            (void)send_rows(netplay, QUERN_NETPLAY_SPECTATOR + i, 0, 0, 0);
        spectator->is_probed = false;
        if (!quern__netplay_is_watching(netplay, spectator) || spectator->has_world ||
            !quern__netplay_may_send_world(netplay, spectator))
            continue;
        send_chunks(netplay, QUERN_NETPLAY_SPECTATOR + i,
                    &(chunk_source){.id = stands->world_id,
                                    .frame = stands->world_frame,
                                    .list = &stands->list,
                                    .bytes = &stands->world,
                                    .first_missing = spectator->first_missing,
                                    .arrived = spectator->arrived,
                                    .next = &spectator->next_chunk});
    }
}

/* Sends the request or the acknowledgement of a spectator. */
static void send_watch(quern_netplay *netplay)
{
    const quern__netplay_stands *stands = &netplay->stands;
    packet out;
    begin_packet(netplay, &out, PACKET_WATCH, stands->watched);
    if (netplay->counts.is_joining) {
        put(&out, netplay->def.earlier_world != NULL ? JOIN_EARLIER : 0, 1);
        put_request(netplay, &out, stands->watched);
    } else {
        put(&out, (uint32_t)WATCH_HAS_WORLD | (uint32_t)(stands->has_gap ? WATCH_GAP : 0), 1);
        put_v32(&out, stands->log.end);
    }
    send_packet(netplay, &out, stands->watched);
}

void quern__netplay_send(quern_netplay *netplay)
{
    if (netplay->def.spectates) {
        send_watch(netplay);
        return;
    }
    /* A machine that has loaded the world asks on until it is admitted: its requests tell the leader that it has all chunks. */
    if (!netplay->is_admitted) {
        send_join(netplay);
        return;
    }
    const quern__netplay_transfer *transfer = &netplay->transfer;
    if (transfer->player != QUERN__NETPLAY_NEVER && !netplay->has_diverged)
        send_chunks(netplay, transfer->player,
                    &(chunk_source){.id = transfer->id,
                                    .frame = transfer->frame,
                                    .list = &transfer->list,
                                    .bytes = &transfer->bytes,
                                    .first_missing = transfer->first_missing,
                                    .arrived = transfer->arrived,
                                    .next = &netplay->transfer.next});
    /* Players that are out get a packet now and then: two groups that have dropped each other would never meet again,
     * and a machine that joins has to return the number of a packet. Their packets are answered at once, as the answer must
     * return a number that is not older than a timeout, which may be shorter than the time between two probes. */
    const bool probes = netplay->call_count++ % CALLS_PER_PROBE == 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_player *player = &netplay->players[i];
        const bool is_out = quern__netplay_is_out(&netplay->table.members[i]);
        const bool asks = player->asked_ns != 0 && !quern__netplay_has_passed(netplay, player->asked_ns, 1);
        if (i == netplay->def.player) continue;
        if (player->answer != QUERN__NETPLAY_NONE)
            quern__netplay_send_change(netplay, i, player->answer,
                                       player->answer == QUERN__NETPLAY_PROMISE ? netplay->change.promised
                                                                                : netplay->change.accepted);
        netplay->players[i].answer = QUERN__NETPLAY_NONE;
        if (probes || !is_out || asks || player->is_unanswered) send_frames(netplay, i);
        netplay->players[i].is_unanswered = false;
        if (netplay->has_diverged && netplay->def.reports && !is_out) send_report(netplay, i);
    }
    if (netplay->def.spectator_count > 0) send_to_spectators(netplay);
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

static uint32_t get_v32(packet *in)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 35; shift += 7) {
        const uint64_t next = get(in, 1);
        value |= (next & 0x7f) << shift;
        if (next < 0x80 && value <= UINT32_MAX) return (uint32_t)value;
    }
    in->size = in->end + 1;
    return 0;
}

/* Reads a table. Returns whether it is whole and its numbers are possible. */
static bool read_table(const quern_netplay *netplay, packet *in, quern__netplay_table *out_table)
{
    quern__netplay_table *table = out_table;
    *table = (quern__netplay_table){.epoch = (uint32_t)get(in, 4), .parent = (uint32_t)get(in, 4)};
    table->fork_count = (uint32_t)get(in, 1);
    if (table->fork_count > QUERN__NETPLAY_FORKS) return false;
    for (uint32_t i = 0; i < table->fork_count; i++) {
        table->forks[i].epoch = (uint32_t)get(in, 4);
        table->forks[i].id = (uint32_t)get(in, 4);
    }
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_PLAYERS; i++) {
        quern__netplay_member *member = &table->members[i];
        *member = (quern__netplay_member){.active_from = QUERN__NETPLAY_NEVER};
        if (i >= netplay->def.player_count) continue;
        member->active_from = (uint32_t)get(in, 4);
        member->dropped_from = (uint32_t)get(in, 4);
        member->life = (uint32_t)get(in, 4);
        if (member->active_from > QUERN__NETPLAY_NEVER || member->dropped_from > QUERN__NETPLAY_NEVER)
            return false;
    }
    quern__netplay_set_id(netplay, table);
    return in->size <= in->end;
}

/* Reads the next input of a run into `input`, which has the last one. *held: frames for which that still holds. Returns
 * whether the run is whole. */
static bool read_input(packet *in, unsigned char *input, uint32_t bytes, uint32_t *held)
{
    unsigned char mask[ROW_BYTES / 8 + 1];
    if (*held > 0) {
        --*held;
        return true;
    }
    mask[0] = (unsigned char)get(in, 1);
    if ((mask[0] & HOLDS) != 0) {
        *held = mask[0] >> 1;
        return in->size <= in->end;
    }
    for (uint32_t i = 1; i < bytes / 8 + 1; i++)
        mask[i] = (unsigned char)get(in, 1);
    for (uint32_t i = 0; i < bytes; i++)
        if ((mask[(i + 1) / 8] >> (i + 1) % 8 & 1) != 0) input[i] = (unsigned char)get(in, 1);
    return in->size <= in->end;
}

/* Stores the inputs of a run that are not known yet, if no frame before them is missing. `frame`: next frame of the
 * sender. A machine gives the inputs of its own player, and passes on those of players that are out. */
static void read_run(quern_netplay *netplay, packet *in, uint32_t sender, uint32_t frame)
{
    const uint32_t head = get_v32(in), index = head & (QUERN_MAX_NETPLAY_PLAYERS - 1), count = head >> 3;
    const uint32_t first = frame - (uint32_t)unfold(get_v32(in));
    unsigned char input[QUERN_MAX_NETPLAY_INPUT_BYTES] = {0};
    uint32_t held = 0;
    /* Arithmetic on frame numbers that are near those of this machine cannot overflow. */
    const bool is_near =
        first < QUERN__NETPLAY_NEVER / 2 &&
        (netplay->frame < QUERN__NETPLAY_WINDOW || first >= netplay->frame - QUERN__NETPLAY_WINDOW);
    if (in->size > in->end || count > MOST_RUN || index >= netplay->def.player_count ||
        index == netplay->def.player || !is_near ||
        (index != sender && !quern__netplay_is_out(&netplay->table.members[index]))) {
        in->size = in->end + 1;
        return;
    }
    quern__netplay_player *player = &netplay->players[index];
    const uint32_t limit = quern__netplay_limit(netplay, index);
    player->has_gap = limit != QUERN__NETPLAY_NEVER && first > limit;
    for (uint32_t i = 0; i < count && read_input(in, input, netplay->def.input_bytes, &held); i++) {
        if (limit == QUERN__NETPLAY_NEVER || first + i < limit) continue;
        if (player->known_end < limit) player->known_end = limit;
        if (first + i != player->known_end || netplay->change.promised != 0 ||
            player->known_end >= netplay->frame + QUERN__NETPLAY_WINDOW / 2)
            continue;
        memcpy(player->inputs[player->known_end++ % QUERN__NETPLAY_WINDOW], input,
               netplay->def.input_bytes);
    }
    if (held > 0) in->size = in->end + 1; /* more than the run has */
}

/* `is_newest`: whether no later packet of the sender has arrived. */
static void read_frames(quern_netplay *netplay, packet *in, uint32_t sender, bool is_fresh, bool is_newest)
{
    quern__netplay_player *player = &netplay->players[sender];
    quern__netplay_table table;
    const uint32_t life = player->life, flags = (uint32_t)get(in, 1), id = (uint32_t)get(in, 4);
    const uint32_t suspects = (flags & FLAG_SUSPECTS) != 0 ? (uint32_t)get(in, 1) : 0;
    if ((flags & FLAGS) != flags || in->size > in->end) return;
    if ((flags & FLAG_TABLE) != 0) {
        const uint32_t own_id = (uint32_t)get(in, 4);
        if (!read_table(netplay, in, &table) || table.id != id ||
            !quern__netplay_is_member(&table, sender, life))
            return;
        if (is_fresh) quern__netplay_meet(netplay, sender, &table, own_id == netplay->table.id);
    }
    if (is_fresh && is_newest) player->view = id;
    if (id != netplay->table.id || !netplay->is_admitted || netplay->end != QUERN__NETPLAY_GOES_ON ||
        !quern__netplay_is_member(&netplay->table, sender, life))
        return;
    const uint32_t frame = get_v32(in);
    const int32_t ahead = (int32_t)get(in, 1) - 128;
    if (is_newest && quern__netplay_is_near(netplay, frame)) {
        player->ahead = (int32_t)netplay->frame - (int32_t)frame;
        player->their_ahead = ahead;
    }
    if (is_newest) {
        player->suspects = (uint8_t)suspects;
        player->is_changing = (flags & FLAG_CHANGING) != 0;
        player->lacks_inputs = (flags & FLAG_GAP) != 0;
    }
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        if (i != netplay->def.player && !quern__netplay_is_out(&netplay->table.members[i])) continue;
        const uint32_t before = get_v32(in);
        const uint32_t known_end =
            before == 0 ? QUERN__NETPLAY_NEVER : frame - (uint32_t)unfold(before - 1);
        /* The newest packet counts, even if it knows less: an earlier one may have been false. */
        if (in->size <= in->end && is_newest &&
            (known_end == QUERN__NETPLAY_NEVER || quern__netplay_is_near(netplay, known_end)))
            player->acks[i] = known_end;
    }
    if ((flags & FLAG_VERIFIED) != 0) {
        const uint32_t verified = frame - get_v32(in);
        if (in->size <= in->end && is_newest && quern__netplay_is_near(netplay, verified))
            player->verified = verified;
    }
    if (in->size > in->end) return;
    if (frame > player->frame && quern__netplay_is_near(netplay, frame)) player->frame = frame;
    if ((flags & FLAG_HASH) != 0) {
        quern__netplay_hash hash = {.frame = get_v32(in), .hash = get(in, 8)};
        for (uint32_t i = 0; i < netplay->def.player_count; i++)
            hash.inputs[i] = (uint32_t)get(in, 4);
        if (in->size > in->end || hash.frame >= QUERN__NETPLAY_NEVER) return;
        player->hashes[hash.frame / netplay->def.hash_interval % QUERN__NETPLAY_HASHES] = hash;
    }
    while (in->size < in->end)
        read_run(netplay, in, sender, frame);
}

static void read_change(quern_netplay *netplay, packet *in, uint32_t sender)
{
    const uint32_t id = (uint32_t)get(in, 4), step = (uint32_t)get(in, 1), ballot = (uint32_t)get(in, 4);
    quern__netplay_change report = {0};
    quern__netplay_table table;
    if (in->size > in->end || !netplay->is_admitted || id != netplay->table.id || ballot == 0 ||
        ballot > (uint64_t)netplay->change.newest + MOST_BALLOT_STEP ||
        !quern__netplay_is_member(&netplay->table, sender, netplay->players[sender].life))
        return;
    switch (step) {
    case QUERN__NETPLAY_PROPOSE:
        quern__netplay_take_propose(netplay, sender, ballot);
        break;
    case QUERN__NETPLAY_PROMISE:
        report.verified[sender] = (uint32_t)get(in, 4);
        for (uint32_t i = 0; i < netplay->def.player_count; i++) {
            report.limits[sender][i] = (uint32_t)get(in, 4);
            if (report.limits[sender][i] > QUERN__NETPLAY_NEVER) return;
        }
        report.accepted = (uint32_t)get(in, 4);
        if (in->size > in->end ||
            (report.accepted != 0 && !read_table(netplay, in, &report.accepted_table)))
            return;
        quern__netplay_take_promise(netplay, sender, ballot, &report);
        break;
    case QUERN__NETPLAY_ACCEPT:
        if (read_table(netplay, in, &table)) quern__netplay_take_accept(netplay, sender, ballot, &table);
        break;
    case QUERN__NETPLAY_ACCEPTED:
        quern__netplay_take_accepted(netplay, sender, ballot);
        break;
    default:
        break;
    }
}

/* Reads what put_request has written. Returns whether it is whole. */
static bool read_request(packet *in, bool has_earlier, quern__netplay_request *out_request)
{
    *out_request = (quern__netplay_request){.has_earlier = has_earlier};
    out_request->id = (uint32_t)get(in, 4);
    out_request->first_missing = (uint32_t)get(in, 4);
    const uint32_t count = (uint32_t)get(in, 1);
    if (count > sizeof out_request->arrived) return false;
    for (uint32_t i = 0; i < count; i++)
        out_request->arrived[i] = (uint8_t)get(in, 1);
    return in->size <= in->end;
}

/* Returns whether the packet is whole. */
static bool read_chunk(packet *in, uint32_t sender, quern__netplay_chunk *chunk)
{
    *chunk = (quern__netplay_chunk){.sender = sender};
    chunk->has_list = (get(in, 1) & CHUNKS_LIST) != 0;
    chunk->id = (uint32_t)get(in, 4);
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
    if (!read_chunk(in, sender, &chunk) || chunk.has_list || chunk.frame != divergence->start)
        return QUERN_OK; /* recordings have no list */
    return quern__netplay_store_chunk(netplay, &chunk, &divergence->is_whole);
}

/* Reads the request or the acknowledgement of a spectator. Only fresh packets count: a stranger that sends in the
 * name of another address cannot make this machine send a world there. */
static void read_watch(quern_netplay *netplay, packet *in, uint32_t number, uint32_t life,
                       uint32_t sequence, bool is_fresh)
{
    quern__netplay_spectator *spectator = &netplay->stands.spectators[number];
    const bool is_silent = !quern__netplay_is_watching(netplay, spectator);
    spectator->is_probed = true;
    if (spectator->life != life) {
        if (spectator->life != 0 && !is_fresh && !is_silent) return;
        *spectator = (quern__netplay_spectator){.life = life, .is_probed = true};
    } else if (sequence <= spectator->sequence ? !is_fresh || !is_silent
                                               : sequence - spectator->sequence > MOST_SEQUENCE_STEP) {
        return;
    }
    spectator->sequence = sequence;
    spectator->contact_ns = netplay->now_ns;
    spectator->received_bytes += in->whole_bytes;
    spectator->received_packets++;
    if (!is_fresh) return;
    const uint32_t flags = (uint32_t)get(in, 1);
    if ((flags & WATCH_HAS_WORLD) != 0) {
        const uint32_t wanted = get_v32(in);
        if (in->size > in->end) return;
        if (!spectator->has_world || wanted < spectator->wanted || (flags & WATCH_GAP) != 0)
            spectator->next = wanted;
        spectator->wanted = wanted;
        spectator->has_world = true;
    } else {
        quern__netplay_request request;
        if (!read_request(in, (flags & JOIN_EARLIER) != 0, &request)) return;
        const bool is_loading = request.id != 0 && request.id == netplay->stands.world_id;
        spectator->has_earlier = request.has_earlier;
        spectator->id = is_loading ? request.id : 0;
        spectator->first_missing = is_loading ? request.first_missing : 0;
        memset(spectator->arrived, 0, sizeof spectator->arrived);
        if (is_loading) memcpy(spectator->arrived, request.arrived, sizeof request.arrived);
        spectator->has_world = false;
    }
    spectator->is_heard = true;
}

/* Reads inputs for this spectator. */
static void read_watched(quern_netplay *netplay, packet *in)
{
    quern__netplay_stands *stands = &netplay->stands;
    const uint32_t row_bytes = netplay->def.player_count * netplay->def.input_bytes;
    const uint32_t flags = (uint32_t)get(in, 1), first = get_v32(in), count = get_v32(in);
    unsigned char row[ROW_BYTES] = {0};
    uint32_t hashed = QUERN__NETPLAY_NEVER, held = 0;
    uint64_t hash = 0;
    if ((flags & WATCHED_HASH) != 0) {
        hashed = get_v32(in);
        hash = get(in, 8);
    }
    if (in->size > in->end || first >= QUERN__NETPLAY_NEVER / 2 || count >= QUERN__NETPLAY_NEVER / 2 ||
        (hashed != QUERN__NETPLAY_NEVER && hashed % netplay->def.hash_interval != 0))
        return;
    if (netplay->counts.is_joining) return;
    if ((flags & WATCHED_GONE) != 0) {
        if (++stands->gone_count >= netplay->def.player_count)
            netplay->end = QUERN__NETPLAY_LEFT_BEHIND;
        else
            quern__netplay_watch_next(netplay);
        return;
    }
    if (count > 0) stands->has_gap = first > stands->log.end;
    for (uint32_t i = 0; i < count && read_input(in, row, row_bytes, &held); i++) {
        if (first + i != stands->log.end || stands->log.end - netplay->frame >= stands->log.capacity)
            continue;
        quern__netplay_log_add(netplay, row, 0);
        stands->fed_ns = netplay->now_ns;
        stands->gone_count = 0;
    }
    if (hashed >= netplay->frame && hashed < stands->log.end)
        *quern__netplay_log_hash(netplay, hashed) = hash;
}

/* Notes the number of a packet if it is the newest of its sender, for the echo. A packet of another machine of the player
 * counts if it is fresh, or if the machine before has fallen silent. Returns whether the packet counts. */
static bool note_sequence(quern_netplay *netplay, uint32_t sender, uint32_t life, uint32_t sequence,
                          bool is_fresh, bool *out_newest)
{
    quern__netplay_player *player = &netplay->players[sender];
    *out_newest = true;
    if (player->life == life) {
        /* No machine sends so many packets between two that arrive: the number would hide all later ones. */
        if (sequence > player->sequence && sequence - player->sequence > MOST_SEQUENCE_STEP) return false;
        /* A fresh packet was sent within two timeouts, however rarely advance is called. If the packet with the highest
         * number arrived before that, that number was false, and would hide this packet and all later ones. */
        if (sequence <= player->sequence &&
            !(is_fresh && quern__netplay_has_passed(netplay, player->contact_ns, 2))) {
            *out_newest = false;
            return true;
        }
    } else {
        if (player->life != 0 && !is_fresh && !quern__netplay_has_passed(netplay, player->contact_ns, 1))
            return false;
        player->life = life;
        quern__netplay_note_machine(netplay, sender, sequence);
        player->view = 0;
        player->preceded_ns = 0;
        player->asked_ns = 0;
    }
    player->sequence = sequence;
    player->contact_ns = netplay->now_ns;
    return true;
}

static quern_result read_packet(quern_netplay *netplay, quern_jobs *jobs, packet *in, uint32_t sender)
{
    const packet_kind kind = (packet_kind)(get(in, 1) & ((1u << SENDER_SHIFT) - 1));
    const uint32_t life = get_v32(in), sequence = get_v32(in);
    const uint32_t echoed_life = get_v32(in), echoed_sequence = get_v32(in);
    const uint32_t oldest = netplay->mark_count < QUERN__NETPLAY_MARKS
                                ? 0
                                : netplay->marks[netplay->mark_count % QUERN__NETPLAY_MARKS];
    const bool is_fresh = echoed_life == netplay->life && echoed_sequence >= oldest &&
                          echoed_sequence <= netplay->sequence && echoed_sequence != 0;
    bool is_newest;
    if (in->size > in->end) return QUERN_OK;
    if (sender >= QUERN_NETPLAY_SPECTATOR) {
        if (kind == PACKET_WATCH)
            read_watch(netplay, in, sender - QUERN_NETPLAY_SPECTATOR, life, sequence, is_fresh);
        return QUERN_OK;
    }
    quern__netplay_player *player = &netplay->players[sender];
    const quern__netplay_member *member = &netplay->table.members[sender];
    if (!note_sequence(netplay, sender, life, sequence, is_fresh, &is_newest)) return QUERN_OK;
    quern__netplay_note_received(netplay, sender, in->whole_bytes, sequence,
                                 is_fresh ? echoed_sequence : 0);
    if (is_fresh && (member->life == life || quern__netplay_is_out(member)))
        player->heard_ns = netplay->now_ns;
    if (netplay->def.spectates) {
        quern__netplay_chunk chunk;
        if (sender != netplay->stands.watched || !is_fresh) return QUERN_OK;
        netplay->progressed_ns = netplay->now_ns;
        if (kind == PACKET_WATCHED) read_watched(netplay, in);
        if (kind == PACKET_CHUNKS && read_chunk(in, sender, &chunk))
            return quern__netplay_take_chunk(netplay, jobs, &chunk);
        return QUERN_OK;
    }
    if (netplay->has_diverged) return read_report_packet(netplay, in, sender, kind);
    if (kind == PACKET_FRAMES) {
        player->is_unanswered |= is_newest;
        read_frames(netplay, in, sender, is_fresh, is_newest);
    } else if (kind == PACKET_JOIN) {
        const uint32_t flags = (uint32_t)get(in, 1);
        quern__netplay_request request;
        if (!read_request(in, (flags & JOIN_EARLIER) != 0, &request) || !netplay->is_admitted || !is_newest)
            return QUERN_OK;
        player->asked_ns = netplay->now_ns;
        if (!is_fresh) return QUERN_OK;
        if (member->life == life) {
            /* A machine that has loaded the world asks no longer than six timeouts: this one has said so falsely. */
            if (player->frame == 0 && !quern__netplay_is_out(member) &&
                quern__netplay_has_passed(netplay, netplay->adopted_ns, 7))
                player->is_dead = true;
            return QUERN_OK;
        }
        player->is_dead = !quern__netplay_is_out(member);
        return quern__netplay_serve(netplay, jobs, sender, &request);
    } else if (kind == PACKET_CHUNKS) {
        quern__netplay_chunk chunk;
        if (is_fresh && read_chunk(in, sender, &chunk))
            return quern__netplay_take_chunk(netplay, jobs, &chunk);
    } else if (kind == PACKET_CHANGE && is_fresh) {
        read_change(netplay, in, sender);
    }
    return QUERN_OK;
}

/* Returns whether a packet is one of this session and version, whole, and from the player that the transport names. The
 * position is then at the kind. Notes the version of a packet that has another one. */
static bool is_valid(quern_netplay *netplay, packet *in, uint32_t size, uint32_t sender)
{
    const uint32_t rest = sum_bytes(netplay);
    const bool is_spectator = sender >= QUERN_NETPLAY_SPECTATOR &&
                              sender - QUERN_NETPLAY_SPECTATOR < netplay->def.spectator_count;
    if (size < HEADER_BYTES + rest || size > sizeof in->bytes ||
        (sender >= netplay->def.player_count && !is_spectator) || sender == netplay->def.player)
        return false;
    in->whole_bytes = in->end = size;
    in->size = size - rest;
    if (get(in, rest) != sum_of(netplay, in->bytes, size - rest) || in->bytes[0] != MAGIC) return false;
    in->end = size - rest;
    in->size = 2;
    if (in->bytes[1] != QUERN__NETPLAY_VERSION) {
        if (!is_spectator) netplay->players[sender].other_version = in->bytes[1];
        return false;
    }
    return in->bytes[2] >> SENDER_SHIFT == sender;
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
