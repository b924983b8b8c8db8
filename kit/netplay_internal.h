/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_NETPLAY_INTERNAL_H
#define QUERN_KIT_NETPLAY_INTERNAL_H

/* State of one end of a session, and the functions that its sources share.
 *
 * Inputs. Each player has a ring of inputs by frame. The input of a frame is *known* before known_end, zero while the
 * player is out (members below), and predicted otherwise: as the last known one. `used` is a ring of the inputs with
 * which frames ran last. A frame is *verified* if it ran with inputs that are all known; frames before `verified` never
 * run again, unless the host drops a player at an earlier frame.
 *
 * Members. Each player has two frame numbers that all machines agree on: active_from and dropped_from. Only the host
 * (the present player with the lowest index) changes them, and raises `epoch`, which also tells the host, so that no
 * two tables have the same; the others adopt a table with a higher epoch, unless they are out of it and their group is
 * the larger one. If active_from <= dropped_from, the player's inputs are zero before the one and from the other on;
 * otherwise the player has come back, and they are zero in between. No machine passes a frame unless it knows the table
 * that the host had when it gave its own input for that frame, since each packet with inputs has the table. So the host
 * may let a player take part from the first frame on for which it has not given an input yet.
 *
 * Ring sizes. A machine runs at most max_rollback frames ahead of the inputs that it knows, and gives its own inputs
 * input_delay frames ahead. All that any machine may still need is therefore within twice the sum of both. */

#include "kit/netplay.h"

#include <quern/archive.h>

enum {
    QUERN__NETPLAY_WINDOW = 256,      /* frames in each ring; a power of two */
    QUERN__NETPLAY_HASHES = 8,        /* hashes that are kept */
    QUERN__NETPLAY_CHUNK = 1024,      /* bytes of the world in one packet */
    QUERN__NETPLAY_CHUNKS_AHEAD = 16, /* chunks that are sent from the first missing one on */
    QUERN__NETPLAY_NEVER = INT32_MAX
};

/* A hash of the world before a frame. */
typedef struct quern__netplay_hash {
    uint32_t frame; /* QUERN__NETPLAY_NEVER: none */
    uint32_t epoch;
    uint64_t hash;
} quern__netplay_hash;

typedef struct quern__netplay_player {
    uint32_t active_from, dropped_from;
    uint32_t first_epoch; /* epoch since which the player takes part */
    uint32_t known_end;   /* first frame whose input is not known */
    uint32_t frame;       /* the player's next frame, as last heard */
    uint32_t acks
        [QUERN_MAX_NETPLAY_PLAYERS]; /* known_end of each player on this player's machine, as last heard */
    uint64_t heard_ns;               /* when the last packet arrived */
    quern__netplay_hash hashes[QUERN__NETPLAY_HASHES]; /* of the player's machine */
    unsigned char inputs[QUERN__NETPLAY_WINDOW][QUERN_MAX_NETPLAY_INPUT_BYTES];
} quern__netplay_player;

/* The world on its way from the host to a joining player, or a recording on its way between two machines. */
typedef struct quern__netplay_transfer {
    uint32_t player;         /* the joining player; QUERN__NETPLAY_NEVER: no transfer */
    uint32_t frame;          /* frame of the world */
    uint32_t total_bytes;    /* size of the archive; 0 while it is not known */
    uint32_t first_missing;  /* first chunk that the joining machine lacks */
    uint32_t sender;         /* joining machine: the player that sends the world */
    uint64_t heard_ns;       /* joining machine: when the last chunk arrived */
    uint32_t arrived;        /* joining machine: bit i: chunk first_missing + i has arrived */
    quern_byte_buffer bytes; /* host: the archive; joining machine: what has arrived, in its place */
} quern__netplay_transfer;

/* A part of the world or of a recording, in a packet. */
typedef struct quern__netplay_chunk {
    uint32_t sender;
    uint32_t frame, total_bytes; /* of the whole */
    uint32_t offset, size_bytes;
    const unsigned char *bytes;
} quern__netplay_chunk;

/* Why this machine cannot go on. */
typedef enum quern__netplay_end {
    QUERN__NETPLAY_GOES_ON,
    QUERN__NETPLAY_DROPPED, /* a larger group of players goes on without this machine */
    QUERN__NETPLAY_SENDER_SILENT, /* the world was loaded, and its sender fell silent before it admitted the player */
    QUERN__NETPLAY_TOO_OLD /* frames before the loaded world would have to run again */
} quern__netplay_end;

/* Hashes of the world before consecutive frames. */
typedef struct quern__netplay_trace {
    uint32_t first, count;
    uint64_t hashes[QUERN_MAX_NETPLAY_REPORT + 1];
} quern__netplay_trace;

/* What two machines do after their worlds have differed; see reports in netplay.c. The recording of the other machine
 * arrives in `transfer`. */
typedef struct quern__netplay_divergence {
    quern__netplay_trace own, other; /* count 0: not known yet */
    uint64_t own_hash;               /* of the frame after the traces, when it ran for the first time */
    quern_byte_buffer recording;     /* of this machine */
    /* by player: first chunk of the recording that the player's machine lacks; NEVER: it has asked for none */
    uint32_t wanted[QUERN_MAX_NETPLAY_PLAYERS];
    uint32_t start; /* frame before which the recordings start; NEVER: not known yet */
    bool is_whole;  /* whether the recording of the other machine has arrived */
    quern_netplay_report report;
} quern__netplay_divergence;

struct quern_netplay {
    quern_netplay_def def;
    quern_allocator allocator;
    quern_history *history;
    uint32_t frame;    /* next frame to run */
    uint32_t verified; /* see above */
    uint32_t epoch;
    uint32_t call_count; /* calls that have sent packets */
    bool has_diverged;
    bool is_admitted; /* whether the player of this machine has taken part */
    quern__netplay_end end;
    uint64_t losing_since_ns;    /* since when another group has been the larger one; 0: it is not */
    uint32_t loaded_frame;       /* first frame of this machine: that of the loaded world, or 0 */
    quern_netplay_status counts; /* only the counting members */
    quern__netplay_player players[QUERN_MAX_NETPLAY_PLAYERS];
    quern__netplay_hash hashes[QUERN__NETPLAY_HASHES]; /* of this machine */
    quern__netplay_transfer transfer;
    quern__netplay_divergence divergence;
    unsigned char used[QUERN__NETPLAY_WINDOW][QUERN_MAX_NETPLAY_PLAYERS * QUERN_MAX_NETPLAY_INPUT_BYTES];
};

/* --------------------------------------------------------------------------------------- netplay.c */

/* Returns whether the player takes no part, now and until it joins. */
bool quern__netplay_is_out(const quern__netplay_player *player);

/* Returns the first frame whose input is neither known nor zero; QUERN__NETPLAY_NEVER if there is none. */
uint32_t quern__netplay_limit(const quern__netplay_player *player);

/* Adopts the members of a packet with a higher epoch. */
void quern__netplay_adopt(quern_netplay *netplay, uint32_t epoch, const uint32_t *active_from,
                          const uint32_t *dropped_from);

/* Compares the members of a sender with those of this machine, which are two groups that have lost each other: the
 * smaller one ends, or that without the player with the lowest index. A player counts for the group that has the
 * player's last life; for none if both have it. Sets `end` if the smaller one has been this machine's for a quarter of
 * the timeout: each group may still count players that have left, and then both would end. */
void quern__netplay_meet_group(quern_netplay *netplay, uint32_t sender, const uint32_t *active_from,
                               const uint32_t *dropped_from);

/* The host's side: answers a request for the world. Requests of other players than that of the transfer wait. */
quern_result quern__netplay_serve(quern_netplay *netplay, quern_jobs *jobs, uint32_t player, uint32_t frame,
                                  uint32_t first_missing);

/* The joining machine's side: stores a chunk, and loads the world when the last one has arrived. */
quern_result quern__netplay_take_chunk(quern_netplay *netplay, quern_jobs *jobs,
                                       const quern__netplay_chunk *chunk);

/* Stores a chunk in its place. Sets *out_whole if it was the last one. */
quern_result quern__netplay_store_chunk(quern_netplay *netplay, const quern__netplay_chunk *chunk,
                                        bool *out_whole);

/* Takes the hashes of another machine, and what it lacks of this machine's recording. */
void quern__netplay_take_trace(quern_netplay *netplay, uint32_t player, const quern__netplay_trace *trace,
                               uint32_t start, uint32_t first_missing);

/* -------------------------------------------------------------------------------- netplay_packet.c */

/* Returns the checksum at the end of a packet with these bytes before it. */
uint32_t quern__netplay_checksum(uint64_t session, const unsigned char *bytes, uint32_t size);

/* Receives all packets that have arrived. */
quern_result quern__netplay_receive(quern_netplay *netplay, quern_jobs *jobs);

/* Sends what the others lack. */
void quern__netplay_send(quern_netplay *netplay);

#endif
