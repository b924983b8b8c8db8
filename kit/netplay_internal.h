/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_NETPLAY_INTERNAL_H
#define QUERN_KIT_NETPLAY_INTERNAL_H

/* State of one end of a session, and the functions that its sources share.
 *
 * Inputs. Each player has a ring of inputs by frame. The input of a frame is *known* before known_end, zero while the
 * player is out (members below), and predicted otherwise: as the last known one. `used` is a ring of the inputs with
 * which frames ran last. A frame is *verified* if it ran with inputs that are all known. Frames before `verified` never
 * run again, and no two machines that play together verify different ones.
 *
 * Lives. A machine that plays from the start has the life 1; each one that joins has another number, so that packets of
 * a player's earlier machine are not those of the present one. Each packet has the sender's life and a sequence number,
 * and returns ("echoes") the newest pair that it got from the receiver. A packet is *fresh* if it echoes a packet that
 * this machine has sent within the timeout. Only fresh packets count as heard: repeats of old packets and lines that
 * lead one way alone do not.
 *
 * Members. A table says which players take part, in which life, from which frame on, and from which frame on the others
 * do not. If active_from <= dropped_from, the player's inputs are zero before the one and from the other on; otherwise
 * the player has come back, and they are zero in between. Machines that play together have the same table, and agree
 * on the next one (netplay_members.c) such that it changes no frame that any of them has verified.
 *
 * Ring sizes. A machine runs at most max_rollback frames ahead of the inputs that it knows, and gives its own inputs
 * at most max_input_delay frames ahead. All that any machine may still need is therefore within twice the sum of both. */

#include "kit/netplay.h"

#include <quern/archive.h>

enum {
    QUERN__NETPLAY_VERSION = 5,  /* of the protocol */
    QUERN__NETPLAY_WINDOW = 256, /* frames in each ring; a power of two */
    QUERN__NETPLAY_HASHES = 8,   /* hashes that are kept */
    QUERN__NETPLAY_CHUNK = 1024, /* bytes of the world in one packet */
    QUERN__NETPLAY_CHUNKS_PER_CALL = 16,
    QUERN__NETPLAY_CHUNK_WINDOW =
        1024, /* chunks that may arrive in any order, from the first missing one on */
    QUERN__NETPLAY_FORKS = 6,
    QUERN__NETPLAY_MARKS = 8,      /* sequence numbers by time, eight in a timeout */
    QUERN__NETPLAY_ARRIVED = 1024, /* frames whose inputs a spectator may have got before it runs them */
    QUERN__NETPLAY_SPECTATOR_WINDOW = 4096, /* frames, if the definition has none */
    QUERN__NETPLAY_NEVER = INT32_MAX
};

/* A hash of the world before a frame. */
typedef struct quern__netplay_hash {
    uint32_t frame; /* QUERN__NETPLAY_NEVER: none */
    uint64_t hash;
    /* Hashes of the last inputs of each player (note_hash); 0: not known. They show that a player has sent different inputs to
     * two machines. */
    uint32_t inputs[QUERN_MAX_NETPLAY_PLAYERS];
} quern__netplay_hash;

/* Whether and when a player takes part. */
typedef struct quern__netplay_member {
    uint32_t active_from, dropped_from;
    uint32_t life; /* of the machine that takes part, or did last; 0: none did */
} quern__netplay_member;

/* A group that went on with half of the players of the table before, without the lowest index of them: the other half
 * may have gone on as well, and has precedence. */
typedef struct quern__netplay_fork {
    uint32_t epoch, id;
} quern__netplay_fork;

/* The messages of an agreement; netplay_members.c explains them. */
typedef enum quern__netplay_step {
    QUERN__NETPLAY_NONE,
    QUERN__NETPLAY_PROPOSE,
    QUERN__NETPLAY_PROMISE,
    QUERN__NETPLAY_ACCEPT,
    QUERN__NETPLAY_ACCEPTED
} quern__netplay_step;

typedef struct quern__netplay_table {
    uint32_t epoch;  /* number of tables before it */
    uint32_t id;     /* hash of the rest */
    uint32_t parent; /* id of the table before */
    uint32_t fork_count;
    quern__netplay_fork forks[QUERN__NETPLAY_FORKS]; /* by epoch */
    quern__netplay_member members[QUERN_MAX_NETPLAY_PLAYERS];
} quern__netplay_table;

/* What is shown of the connection to a machine (netplay_watch.c). Nothing in the session depends on it. */
typedef struct quern__netplay_link {
    uint64_t sent_bytes, received_bytes, sent_packets, received_packets;
    uint32_t echoed;           /* newest packet of this machine that was echoed */
    double ping_ns, jitter_ns; /* averages; 0: not known */
    uint32_t first_sequence;   /* of the packets that are counted for the loss */
    uint32_t counted_packets;  /* that have arrived of them */
    double loss;
    uint32_t connected_life; /* of the machine that was shown as connected */
    bool is_interrupted;
    uint32_t shown_twentieths; /* of the world that has arrived, as shown */
} quern__netplay_link;

typedef struct quern__netplay_player {
    uint32_t known_end;  /* first frame whose input is not known */
    uint32_t frame;      /* the player's next frame, as last heard */
    uint32_t verified;   /* that of the player's machine, as last heard */
    int32_t ahead;       /* frames by which this machine was ahead of that one, when it was last heard */
    int32_t their_ahead; /* the same, as that machine sees it */
    /* known_end on this player's machine, as last heard, of this machine's player and of those that are out */
    uint32_t acks[QUERN_MAX_NETPLAY_PLAYERS];
    quern__netplay_hash hashes[QUERN__NETPLAY_HASHES]; /* of the player's machine */
    /* The machine of the player, which need not be a member. */
    uint32_t life, sequence; /* of its newest packet, which this machine echoes; life 0: none */
    uint32_t view;           /* id of its table, as last heard */
    uint8_t other_version;   /* version of its last packet with another version of the protocol; 0: none */
    uint64_t contact_ns;     /* when that packet arrived */
    uint64_t
        heard_ns; /* when a fresh packet of the member's life arrived; of any life, if the player is out */
    uint64_t asked_ns;    /* when it has last asked for the world; 0: never */
    bool is_unanswered;   /* it has sent frames since the last packet to it */
    bool has_gap;         /* whether inputs of it have arrived, and earlier ones have not */
    bool lacks_inputs;    /* whether its machine has such a gap in this machine's inputs */
    uint8_t suspects;     /* members that it does not hear, by its table */
    bool is_changing;     /* whether it has promised to wait for the next table */
    uint64_t preceded_ns; /* since when its table has had precedence over this machine's; 0: it has not */
    quern__netplay_step answer; /* message that the player is to get after all packets have been read */
    bool is_refused;            /* whether its machine has sent an impossible table or report */
    bool is_dead;               /* whether a new machine of the player shows that the member's is gone */
    quern__netplay_link link;
    unsigned char inputs[QUERN__NETPLAY_WINDOW][QUERN_MAX_NETPLAY_INPUT_BYTES];
} quern__netplay_player;

/* The agreement on the next table; netplay_members.c explains it. Zero: none is under way. */
typedef struct quern__netplay_change {
    /* of a member that was asked */
    uint32_t promised, accepted; /* ballots; 0: none */
    quern__netplay_table accepted_table;
    /* of the leader */
    uint32_t ballot; /* 0: this machine proposes nothing */
    uint32_t newest; /* highest ballot that was heard of */
    bool is_accepting;
    uint8_t asked, promised_by, accepted_by; /* players */
    uint32_t best;                           /* highest ballot of a table that a member has accepted */
    quern__netplay_table table;              /* that table, or the proposed one */
    uint32_t limits[QUERN_MAX_NETPLAY_PLAYERS][QUERN_MAX_NETPLAY_PLAYERS]; /* by machine and player */
    uint32_t verified[QUERN_MAX_NETPLAY_PLAYERS];
} quern__netplay_change;

/* The world on its way from the leader to a joining player, or a recording on its way between two machines. */
typedef struct quern__netplay_transfer {
    uint32_t player;        /* the joining player; QUERN__NETPLAY_NEVER: no transfer */
    uint32_t life;          /* sender: of the player's machine; joining machine: of the sender's */
    uint32_t id;            /* number of the transfer, of its sender */
    bool is_loaded;         /* sender: whether the joining machine has all chunks */
    uint32_t frame;         /* frame of the world */
    uint32_t total_bytes;   /* size of the archive; 0 while it is not known */
    uint32_t first_missing; /* first chunk that the joining machine lacks */
    uint32_t sender;        /* joining machine: the player that sends the world */
    uint64_t heard_ns;      /* joining machine: when the last chunk arrived */
    /* joining machine: bit i of byte k: chunk first_missing + 8 * k + i has arrived; sender: the same, as last heard */
    uint8_t arrived[QUERN__NETPLAY_CHUNK_WINDOW / 8];
    uint32_t next; /* sender: next chunk to send */
    quern_byte_buffer
        bytes; /* sender: the archive; joining machine: the chunks that have arrived, each in its place */
    /* Parts of an earlier world that the joining machine has (netplay_transfer.c). */
    bool has_list;          /* joining machine: whether the first chunks are hashes of the others */
    quern_byte_buffer list; /* sender: these hashes; empty: none are sent */
    bool has_used_list;
    uint32_t *
        places; /* joining machine: by chunk of the archive, the word at which the earlier world has it, plus 1 */
    uint32_t place_count;
    uint32_t reused_count; /* chunks that were taken from the earlier world */
} quern__netplay_transfer;

/* A request of a machine that joins or watches. */
typedef struct quern__netplay_request {
    bool has_earlier;                                 /* whether it has an earlier world */
    uint32_t id;                                      /* of the transfer that it receives; 0: none */
    uint32_t first_missing;                           /* chunk */
    uint8_t arrived[QUERN__NETPLAY_CHUNK_WINDOW / 8]; /* as in a transfer */
} quern__netplay_request;

/* A part of the world or of a recording, in a packet. */
typedef struct quern__netplay_chunk {
    uint32_t sender;
    uint32_t id, frame, total_bytes; /* of the whole */
    bool has_list;
    uint32_t offset, size_bytes;
    const unsigned char *bytes;
} quern__netplay_chunk;

/* Why this machine cannot go on. */
typedef enum quern__netplay_end {
    QUERN__NETPLAY_GOES_ON,
    QUERN__NETPLAY_DROPPED,       /* the other players go on without this machine */
    QUERN__NETPLAY_DAMAGED,       /* the world that arrived cannot be loaded */
    QUERN__NETPLAY_SENDER_SILENT, /* the world was loaded, and its sender has not let the player take part */
    QUERN__NETPLAY_LEFT_BEHIND    /* no machine has, or keeps, the inputs that this one lacks */
} quern__netplay_end;

/* Hashes of the world before consecutive frames. */
typedef struct quern__netplay_trace {
    uint32_t first, count;
    uint64_t hashes[QUERN_MAX_NETPLAY_REPORT + 1];
} quern__netplay_trace;

/* The report of two machines whose worlds differ; netplay.c explains it. The recording of the other machine
 * arrives in `transfer`. */
typedef struct quern__netplay_divergence {
    quern__netplay_trace own, other; /* count 0: not known yet */
    uint64_t own_hash;               /* of the frame after the traces, when it ran for the first time */
    quern_byte_buffer recording;     /* of this machine */
    /* by player: first chunk of the recording that the player's machine lacks; NEVER: it has asked for none */
    uint32_t wanted[QUERN_MAX_NETPLAY_PLAYERS];
    uint32_t next[QUERN_MAX_NETPLAY_PLAYERS]; /* chunk to send next to the player's machine */
    uint32_t start; /* frame before which the recordings start; NEVER: not known yet */
    bool is_whole;  /* whether the recording of the other machine has arrived */
    quern_netplay_report report;
} quern__netplay_divergence;

/* Inputs of all players by frame, and hashes of the world: of confirmed frames that spectators may lack, or on the machine
 * of a spectator of those that have arrived. */
typedef struct quern__netplay_log {
    unsigned char *rows; /* one for each frame; NULL: there are no spectators */
    uint64_t *hashes;    /* of frames that are multiples of hash_interval; 0: not known */
    uint32_t capacity;   /* a power of two */
    uint32_t first, end; /* frames */
} quern__netplay_log;

/* A spectator, as the machine that it watches sees it. */
typedef struct quern__netplay_spectator {
    uint32_t life, sequence; /* of its newest packet; life 0: none */
    uint64_t contact_ns;     /* when that packet arrived */
    bool is_probed; /* whether it is to get a packet, so that it can show that it hears this machine */
    bool is_heard;  /* whether a fresh packet has arrived */
    bool has_world;
    bool has_earlier;                                 /* whether it has an earlier world */
    uint32_t id;                                      /* of the world that it loads; 0: none yet */
    uint32_t first_missing, next_chunk;               /* of that world */
    uint8_t arrived[QUERN__NETPLAY_CHUNK_WINDOW / 8]; /* of that world, as in a transfer */
    uint32_t wanted;                                  /* first frame whose inputs it lacks */
    uint32_t next;                                    /* frame whose inputs are to be sent next */
    uint64_t sent_bytes, received_bytes, sent_packets, received_packets;
} quern__netplay_spectator;

/* What a machine has for its spectators, and a spectator for itself; netplay_spectate.c explains it. */
typedef struct quern__netplay_stands {
    quern__netplay_log log;
    /* of a machine that is watched */
    quern__netplay_spectator spectators[QUERN_MAX_NETPLAY_SPECTATORS];
    quern_byte_buffer world; /* an archive that spectators load; empty: none asks for it */
    quern_byte_buffer list;  /* hashes of its chunks, as in a transfer */
    uint32_t world_id, world_frame;
    uint32_t ended_calls;   /* frames of the delay that have passed since the last frame of the session */
    uint32_t refused_calls; /* calls for which no further world is saved */
    uint8_t shown;          /* spectators that events have shown */
    /* of a spectator */
    uint32_t watched;            /* player */
    uint64_t watched_ns, fed_ns; /* since when that one is watched; when inputs have last arrived */
    uint32_t gone_count;         /* players in a row that do not keep the inputs any more */
    bool has_gap;                /* whether inputs have arrived, and earlier ones have not */
    uint32_t shown_twentieths;   /* of the world, as in a link */
} quern__netplay_stands;

struct quern_netplay {
    quern_netplay_def
        def; /* on the machine of a spectator, `player` is QUERN_NETPLAY_SPECTATOR plus its index */
    quern_allocator allocator;
    quern_history *history;
    uint32_t frame;       /* next frame to run */
    uint32_t verified;    /* see above */
    uint32_t call_count;  /* calls that have sent packets */
    uint32_t early_calls; /* calls in which this machine was ahead of another one */
    uint8_t idle;         /* members that are heard, and give no inputs though all wait for them */
    bool has_diverged;
    uint32_t differing_calls; /* calls since a hash was found to differ, while others are awaited */
    bool is_admitted;         /* whether the player of this machine has taken part */
    quern__netplay_end end;
    uint32_t life;
    uint32_t sequence; /* of the last packet that was sent */
    uint32_t marks
        [QUERN__NETPLAY_MARKS]; /* `sequence` at the last times that were an eighth of the timeout apart */
    uint32_t mark_count;
    uint64_t clock_ns, now_ns;  /* last time of the transport, and time without pauses of this machine */
    uint64_t marked_ns;         /* time of the last mark */
    uint64_t minority_since_ns; /* since when less than half of the members are heard; 0: it is not so */
    uint64_t progressed_ns; /* when the inputs of a further frame were known, or a part of a world came */
    uint64_t starved_ns;    /* time since then in which this machine accepted inputs */
    uint64_t adopted_ns;    /* when the last table was adopted */
    uint64_t steady_ns;     /* since when all members have heard each other, as far as this machine knows */
    uint64_t loaded_ns;     /* joining machine: when the world was loaded */
    bool owes_loaded;       /* its program does not know yet */
    uint32_t loaded_frame;  /* first frame of this machine: that of the loaded world, or 0 */
    uint32_t confirmed;     /* first frame with an input that is not known */
    uint64_t sent_at_ns[QUERN__NETPLAY_WINDOW]; /* when packets were sent, by their numbers */
    uint32_t diverged_player;                   /* player whose world differs */
    uint8_t shown_present;                      /* players that events have shown as present */
    bool shown_diverged;
    uint32_t event_first, event_count;
    quern_netplay_event events[QUERN_NETPLAY_EVENTS];
    quern_netplay_status counts; /* the counts, and is_joining */
    quern__netplay_table table;
    quern__netplay_change change;
    quern__netplay_player players[QUERN_MAX_NETPLAY_PLAYERS];
    quern__netplay_hash hashes[QUERN__NETPLAY_HASHES]; /* of this machine */
    quern__netplay_transfer transfer;
    quern__netplay_divergence divergence;
    quern__netplay_stands stands;
    unsigned char used[QUERN__NETPLAY_WINDOW][QUERN_MAX_NETPLAY_PLAYERS * QUERN_MAX_NETPLAY_INPUT_BYTES];
};

/* ------------------------------------------------------------------------------- netplay_members.c */

/* Returns whether a table has the player as a member, with a machine of this life. */
bool quern__netplay_is_member(const quern__netplay_table *table, uint32_t player, uint32_t life);

/* Returns whether the player takes no part, now and until it joins. */
bool quern__netplay_is_out(const quern__netplay_member *member);

/* Returns whether the player's input of a frame is zero because the player is out. */
bool quern__netplay_has_zero_input(const quern__netplay_member *member, uint32_t frame);

/* Returns the first frame whose input is neither known nor zero; QUERN__NETPLAY_NEVER if there is none. */
uint32_t quern__netplay_limit(const quern_netplay *netplay, uint32_t player);

/* Returns the first frame with an input that is not known. */
uint32_t quern__netplay_find_confirmed(const quern_netplay *netplay);

/* Returns whether a frame number of another machine can be one of this time. */
bool quern__netplay_is_near(const quern_netplay *netplay, uint32_t frame);

/* Returns the members. */
uint8_t quern__netplay_members(const quern__netplay_table *table);

/* Returns whether more than a share of the timeout has passed since a time; never without a timeout. */
bool quern__netplay_has_passed(const quern_netplay *netplay, uint64_t since_ns, double share);

/* Returns the members that this machine hears, itself included. */
uint8_t quern__netplay_find_alive(const quern_netplay *netplay);

/* Returns the member that serves the world and proposes tables, as far as this machine hears; player_count if none can,
 * because it hears less than half of the members. */
uint32_t quern__netplay_find_leader(const quern_netplay *netplay);

/* Stores the id of a table. */
void quern__netplay_set_id(const quern_netplay *netplay, quern__netplay_table *table);

/* Adopts the table of a member if it is the next one. Otherwise sets `end` if the sender has heard of this machine's table
 * (`knows_own`) and its own has precedence. */
void quern__netplay_meet(quern_netplay *netplay, uint32_t sender, const quern__netplay_table *table,
                         bool knows_own);

/* The four messages of an agreement. */
void quern__netplay_take_propose(quern_netplay *netplay, uint32_t sender, uint32_t ballot);
void quern__netplay_take_promise(quern_netplay *netplay, uint32_t sender, uint32_t ballot,
                                 const quern__netplay_change *report);
void quern__netplay_take_accept(quern_netplay *netplay, uint32_t sender, uint32_t ballot,
                                const quern__netplay_table *table);
void quern__netplay_take_accepted(quern_netplay *netplay, uint32_t sender, uint32_t ballot);

/* Proposes a table if this machine leads and the members should be others. */
void quern__netplay_lead(quern_netplay *netplay);

/* --------------------------------------------------------------------------------------- netplay.c */

/* Saves the world at the last frame that will not change, `verified`, and returns to the present. */
quern_result quern__netplay_save_world(quern_netplay *netplay, quern_jobs *jobs, quern_byte_buffer *bytes);

/* The leader's side: answers a request for the world. Requests of other players than that of the transfer wait. */
quern_result quern__netplay_serve(quern_netplay *netplay, quern_jobs *jobs, uint32_t player,
                                  const quern__netplay_request *request);

/* The joining machine's side: stores a chunk, and loads the world when the last one has arrived. */
quern_result quern__netplay_take_chunk(quern_netplay *netplay, quern_jobs *jobs,
                                       const quern__netplay_chunk *chunk);

/* Takes the hashes of another machine, and the number of the first chunk that it lacks of this machine's recording. */
void quern__netplay_take_trace(quern_netplay *netplay, uint32_t player, const quern__netplay_trace *trace,
                               uint32_t start, uint32_t first_missing);

/* ------------------------------------------------------------------------------- netplay_transfer.c */

/* Ends the transfer, if there is one. */
void quern__netplay_end_transfer(quern_netplay *netplay);

/* Stores a chunk in its place. Sets *out_whole if it was the last one. */
quern_result quern__netplay_store_chunk(quern_netplay *netplay, const quern__netplay_chunk *chunk,
                                        bool *out_whole);

/* Stores hashes of the chunks of an archive in the list; none if there is no memory for them. */
void quern__netplay_list_chunks(const quern_netplay *netplay, const quern_byte_buffer *archive, uint32_t id,
                                quern_byte_buffer *out_list);

/* Returns the size of the list before the archive; 0 if there is none. */
uint32_t quern__netplay_list_bytes(const quern__netplay_transfer *transfer);

/* ------------------------------------------------------------------------------ netplay_spectate.c */

/* Makes room for the inputs that spectators may lack, or on the machine of a spectator for those that arrive. */
quern_result quern__netplay_stands_open(quern_netplay *netplay);
void quern__netplay_stands_close(quern_netplay *netplay);

/* Begins with the frame of a world that was loaded. */
void quern__netplay_log_begin(quern_netplay *netplay);

/* Adds the inputs of the next frame; those of the first frame go if there is no room. */
void quern__netplay_log_add(quern_netplay *netplay, const unsigned char *row, uint64_t hash);

/* Returns the hash of the world before a frame in the log, or 0. */
uint64_t *quern__netplay_log_hash(const quern_netplay *netplay, uint32_t frame);

/* Notes the inputs of frames that are confirmed, and saves the world if a spectator asks for one. */
quern_result quern__netplay_serve_spectators(quern_netplay *netplay, quern_jobs *jobs);

/* Returns the first frame whose inputs spectators may not see yet. */
uint32_t quern__netplay_shown_end(const quern_netplay *netplay);

/* Returns whether the world that was saved may be sent to a spectator. */
bool quern__netplay_may_send_world(const quern_netplay *netplay, const quern__netplay_spectator *spectator);

/* Returns whether a spectator is heard. */
bool quern__netplay_is_watching(const quern_netplay *netplay, const quern__netplay_spectator *spectator);

/* Performs quern_netplay_advance for a spectator, without check_end. */
quern_result quern__netplay_spectate(quern_netplay *netplay, quern_jobs *jobs, uint32_t *out_frame_count);

/* Goes on with the machine of the next player. */
void quern__netplay_watch_next(quern_netplay *netplay);

/* --------------------------------------------------------------------------------- netplay_watch.c */

/* Counts a packet to a player or a spectator. Its number is `sequence`. */
void quern__netplay_note_sent(quern_netplay *netplay, uint32_t player, uint32_t size_bytes);

/* Counts a packet of a player. echoed: number of the packet of this machine that it echoes; 0: of no packet that counts. */
void quern__netplay_note_received(quern_netplay *netplay, uint32_t player, uint32_t size_bytes,
                                  uint32_t sequence, uint32_t echoed);

/* Begins to count the packets of another machine of a player. */
void quern__netplay_note_machine(quern_netplay *netplay, uint32_t player, uint32_t sequence);

/* Notes what has changed since the last call. */
void quern__netplay_note_events(quern_netplay *netplay);

/* -------------------------------------------------------------------------------- netplay_packet.c */

/* Returns the checksum at the end of a packet with these bytes before it. */
uint32_t quern__netplay_checksum(uint64_t session, const unsigned char *bytes, uint32_t size);

/* Receives all packets that have arrived. */
quern_result quern__netplay_receive(quern_netplay *netplay, quern_jobs *jobs);

/* Sends a message of an agreement; netplay_packet.c lists what each says. */
void quern__netplay_send_change(quern_netplay *netplay, uint32_t player, quern__netplay_step step,
                                uint32_t ballot);

/* Sends the packets of a call: to each player the inputs, answers and parts of the world that its machine lacks. */
void quern__netplay_send(quern_netplay *netplay);

#endif
