/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_NETPLAY_H
#define QUERN_KIT_NETPLAY_H

/** @file
 * Netplay: the same world on the machines of 2 to 8 players, in lockstep with rollback. Machines exchange only
 * inputs. A machine does not wait for the inputs of the others: it predicts that they have not changed, and runs the
 * frame. When other inputs arrive, it restores that frame (<quern/history.h>) and runs the frames since then again.
 *
 *     quern_netplay_def def = {.world = world, .schedule = schedule, .inputs = inputs,
 *                              .input_bytes = sizeof(Input), .player_count = 2, .player = 0,
 *                              .step_seconds = 1.0 / 60, .transport = udp};
 *     quern_netplay_create(&def, &netplay);
 *     for (;;)                                        // 60 times per second
 *         quern_netplay_advance(netplay, jobs, &keys, NULL);
 *
 * Inputs are plain bytes of one size. The resource `inputs` has one for each player, in an array: before a frame
 * runs, netplay writes it, and systems read it. Bytes between members must be zero, as inputs are compared as bytes.
 *
 * Every machine must create the same world: the same types in the same order, the same entities by the same calls,
 * and the same systems. Frames may depend on nothing else: neither on the clock nor on data outside of the world.
 * Between calls of quern_netplay_advance a program may read the world, and must not change it.
 *
 * Machines compare hashes of frames whose inputs are all known. If they differ, quern_netplay_advance returns DIVERGED,
 * and the message names the frame, and the player that has sent different inputs to two machines, or the machine that
 * differs from all others. With `reports`, both machines then find the first frame that differs, exchange recordings of it
 * (<quern/replay.h>), and name component and entity; see quern_netplay_get_report.
 *
 * The transport is a set of functions of the program. It may lose, delay, repeat and reorder packets. Packets have a
 * checksum, and a packet that is damaged, or of another session, is ignored. `key` keeps strangers out. Packets are not
 * encrypted, nor signed by player: let the transport do that where players are not trusted.
 *
 * Players that fall silent. At least half of the players agree to drop those of which no packet has arrived for
 * timeout_seconds: from the same frame on, their inputs are zero, on all machines. Frames that are confirmed never change.
 * A machine that hears less than half waits, and quern_netplay_advance returns UNAVAILABLE after two timeouts. If two halves
 * lose each other, both go on; when they hear each other again, the half without the lowest index gets CANCELLED. Without a
 * timeout, the others wait. The timeout should be several times as long as a packet takes to arrive and be answered.
 *
 * Joining. A machine that was dropped, or that was absent from the start (`absent`), creates a world without entities,
 * and netplay with `joins`. It asks for the world until another machine sends it, as an archive with the state of the
 * schedule. The others wait meanwhile. The machine runs its first frame when the others have let its player take part. If
 * the sender of the world falls silent before that, the machine asks again; if it has loaded the world already, it gets
 * CANCELLED. A machine that joins shows that the player's earlier one is gone: it is dropped at once.
 *
 * Spectators. A machine with `spectates` has no player: it gets the world from the machine of a player with
 * `spectator_count`, and then the inputs of frames that are confirmed. It predicts nothing and runs no frame again. Players
 * do not wait for spectators, and learn nothing from them. If the machine that it watches falls silent, or stands still,
 * it goes on with that of the next player, where it left off.
 *
 * Threads: main, between frames. */

#include <quern/history.h>
#include <quern/jobs.h>
#include <quern/replay.h>
#include <quern/schedule.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_NETPLAY_PLAYERS       8  /**< Maximum number of players. */
#define QUERN_MAX_NETPLAY_ROLLBACK      32 /**< Maximum number of frames that are run again. */
#define QUERN_MAX_NETPLAY_SAVE_INTERVAL 32 /**< Maximum of save_interval. */
#define QUERN_MAX_NETPLAY_DELAY         32 /**< Maximum input delay in frames. */
#define QUERN_MAX_NETPLAY_INPUT_BYTES   64 /**< Maximum size of an input. */
#define QUERN_MAX_NETPLAY_REPORT        64 /**< Maximum of hash_interval with reports. */
#define QUERN_MAX_NETPLAY_SPECTATORS    8  /**< Maximum number of spectators of one machine. */
#define QUERN_NETPLAY_SPECTATOR         8 /**< What the transport and events call spectator 0 of a machine. */
#define QUERN_MAX_NETPLAY_KEPT_FRAMES   65536 /**< Maximum of spectator_delay, and of spectator_window. */
#define QUERN_NETPLAY_EVENTS            64    /**< Number of events that are kept until they are read. */
#define QUERN_NETPLAY_KEY_BYTES         16    /**< Size of a key. */
#define QUERN_NETPLAY_PACKET_BYTES \
    1200 /**< Maximum size of a packet: it fits the payload of one UDP datagram. */

/** One end of a netplay session; see quern_netplay_create. */
typedef struct quern_netplay quern_netplay;

/** Functions that exchange packets. They are called by quern_netplay_advance alone. */
typedef struct quern_netplay_transport {
    /** Sends a packet of at most QUERN_NETPLAY_PACKET_BYTES to the machine of a player, or of spectator `player` -
     * QUERN_NETPLAY_SPECTATOR of this machine. It may be lost. */
    void (*send)(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes);
    /** Stores a packet that has arrived, and the player, or spectator as in send, that has sent it. Returns its size, or 0
     * if there is none. */
    uint32_t (*receive)(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes);
    /** Returns a time in nanoseconds that never decreases. */
    uint64_t (*now)(void *user_data);
    void *user_data; /**< Passed to all three. */
} quern_netplay_transport;

/** Definition of one end of a session. All machines must give the same values, except for player, joins, save_interval, those of
 * spectators, predict, loaded, earlier_world, transport and allocator. */
typedef struct quern_netplay_def {
    quern_world *world QUERN__ZERO;       /**< The world. Required. It must have no history. */
    quern_schedule *schedule QUERN__ZERO; /**< Schedule of the world that runs frames. Required. */
    /** Resource of plain bytes, player_count times input_bytes long. Required. */
    quern_resource inputs QUERN__ZERO;
    uint32_t input_bytes QUERN__ZERO;  /**< Size of an input, 1 to QUERN_MAX_NETPLAY_INPUT_BYTES. */
    uint32_t player_count QUERN__ZERO; /**< Number of players, 2 to QUERN_MAX_NETPLAY_PLAYERS. */
    /** Index of the player of this machine; with spectates, of the spectator, less than QUERN_MAX_NETPLAY_SPECTATORS. */
    uint32_t player QUERN__ZERO;
    double step_seconds QUERN__ZERO; /**< Time step of each frame, greater than 0. */
    /** Frames from giving an input to its effect. Each frame of delay hides that much latency without rolling back. With
     * spectates: frames by which this machine stays behind the inputs that have arrived, so that a late packet does not stop
     * it. */
    uint32_t input_delay QUERN__ZERO;
    /** Largest delay that quern_netplay_set_input_delay may set; 0 means input_delay. The history has two more frames for
     * each frame by which it is larger than input_delay. */
    uint32_t max_input_delay QUERN__ZERO;
    /** Maximum number of frames to run ahead of the known inputs; 0 means 8. A machine waits rather than going on. */
    uint32_t max_rollback QUERN__ZERO;
    /** Frames from one saved frame to the next; 0 means 1: each frame is saved. With n, the machine saves a world every n-th
     * frame only, and keeps an n-th of the memory for them. When it goes back, it runs up to n - 1 more frames again. May differ
     * between machines. At most QUERN_MAX_NETPLAY_SAVE_INTERVAL. */
    uint32_t save_interval QUERN__ZERO;
    uint32_t hash_interval QUERN__ZERO; /**< Frames from one compared hash to the next; 0 means 30. */
    double timeout_seconds QUERN__ZERO; /**< Silence after which a player is dropped; 0 means never. */
    /** Number that the packets of this session have in common, so that those of another one are ignored. */
    uint64_t session QUERN__ZERO;
    uint32_t absent QUERN__ZERO; /**< Players that are absent at first and may join: bit i for player i. */
    bool joins QUERN__ZERO;      /**< Whether this machine joins a running session. */
    /** With joins or spectates, and otherwise refused: an archive of the world that this machine had before (quern_world_save with the schedule, not
     * compressed), for example from when it was dropped, or of a file that the game writes now and then. Parts of it that
     * the world of the others still has are not sent. It need not be of a certain frame: the world that arrives is the same
     * without it. It must stay valid until is_joining of quern_netplay_status is false. NULL: all of the world is sent. */
    const void *earlier_world QUERN__ZERO;
    size_t earlier_world_bytes QUERN__ZERO; /**< Size of earlier_world. */
    /** Whether machines whose worlds differ find out where. Costs no time before that, and memory: the history has about
     * hash_interval more frames. hash_interval is at most QUERN_MAX_NETPLAY_REPORT then. */
    bool reports QUERN__ZERO;
    /** Number of spectators that may watch this machine; 0: none may. Spectators see a frame when all players have confirmed it:
     * give all machines of a session a count if one has spectators. A machine without one tells the others only once per
     * hash_interval which frames it has confirmed, so that spectators see frames in bursts;
     * hash_interval must be less than spectator_window. */
    uint32_t spectator_count QUERN__ZERO;
    /** Frames by which spectators see what happens later, at least. No packet tells them more. */
    uint32_t spectator_delay QUERN__ZERO;
    /** Frames whose inputs are kept for spectators, in addition to spectator_delay, player_count times input_bytes for
     * each: for as long a spectator may be silent, or load the world; half of it must be longer than a packet needs to
     * arrive and be answered. 0 means 4096. */
    uint32_t spectator_window QUERN__ZERO;
    /** Whether this machine has no player and watches. Its world has no entities when netplay is created. */
    bool spectates QUERN__ZERO;
    uint32_t watches QUERN__ZERO; /**< With spectates: the player whose machine is watched first. */
    /** Number of frames to run; 0 means no end. At the end a machine goes on correcting predictions, until
     * confirmed_frame of quern_netplay_status is frame_count: then the world does not change any more. */
    uint32_t frame_count QUERN__ZERO;
    /** Predicts the input of another player that has not arrived: `last` is the last known one, `distance` the number of frames
     * since then, at least 1. `out_input` is a copy of `last` before the call; both are aligned like any type. Called several times
     * for one frame: what it writes may depend only on its arguments, or frames run again for nothing. Machines may predict
     * differently. NULL: the last input holds. */
    void (*predict)(void *user_data, uint32_t player, const void *last, uint32_t distance,
                    void *out_input) QUERN__ZERO;
    void *predict_user_data QUERN__ZERO; /**< Passed to predict. */
    /** Secret of the session, the same on all machines. If it is not all zero, packets end with a keyed hash of 64 bits
     * (SipHash-2-4), and those of machines without the key are ignored. It keeps strangers out, and players from speaking for
     * each other only as far as the transport knows who has sent a packet; it hides nothing. */
    uint8_t key[QUERN_NETPLAY_KEY_BYTES] QUERN__ZERO;
    /** Called on a machine that joins, after the world has been loaded and before its first frame. Changes that it makes
     * to the world are undone, so that it can enable trees to capture prefabs of them. NULL: nothing is called. */
    void (*loaded)(void *user_data) QUERN__ZERO;
    void *loaded_user_data QUERN__ZERO;            /**< Passed to loaded. */
    quern_netplay_transport transport QUERN__ZERO; /**< The transport. Required. */
    quern_allocator allocator QUERN__ZERO;         /**< All zero: quern_allocator_default(). */
} quern_netplay_def;

/** Progress and counts of a session. */
typedef struct quern_netplay_status {
    uint64_t frame;           /**< Number of the next frame to run. */
    uint64_t confirmed_frame; /**< Frames before this one will not change: all inputs of them are known. */
    uint64_t rollback_count;  /**< How often a wrong prediction was corrected. */
    uint64_t rerun_count;     /**< Frames that were run again. */
    uint64_t wait_count;      /**< Calls that ran no frame because inputs were missing. */
    uint64_t sent_bytes;      /**< Bytes of all packets that were sent, without headers of the transport. */
    uint64_t received_bytes;  /**< Bytes of all packets that were received and accepted. */
    uint64_t ignored_count;   /**< Packets that were damaged, or of another session. */
    uint64_t loaded_bytes;    /**< Size of the world that this machine has loaded; 0: it has loaded none. */
    uint64_t reused_bytes;    /**< Bytes of the loaded world that came from earlier_world. */
    uint32_t present; /**< Players that take part: bit i for player i. 0 on the machine of a spectator. */
    bool is_joining;  /**< Whether this machine still waits for the world. */
    uint32_t spectators; /**< Spectators that watch this machine: bit i for spectator i. */
    uint32_t watched;    /**< With spectates: the player whose machine is watched. */
} quern_netplay_status;

/** The connection to the machine of a player, as this machine sees it. */
typedef struct quern_netplay_player_status {
    bool is_present; /**< Whether the player takes part. */
    bool
        is_interrupted; /**< Whether it takes part and has been silent for a while; see QUERN_NETPLAY_INTERRUPTED. */
    /** Average time from sending a packet to the arrival of one that answers it, in seconds. Machines answer in their next
     * call, so it has half a time step of both machines in addition to the network's. 0: not known yet. */
    double ping_seconds;
    double jitter_seconds; /**< Average deviation from ping_seconds. */
    /** Estimated share of the player's packets that were lost, 0 to 1. The machine numbers its packets to all players, so with
     * more than two of them it is right on average only. 0 on the machine of a spectator. */
    double loss;
    double
        silent_seconds; /**< Time since a packet of the player has arrived that answers one of this machine. */
    uint64_t sent_bytes;       /**< Bytes of packets to the player, without headers of the transport. */
    uint64_t received_bytes;   /**< Bytes of packets from the player that were accepted. */
    uint64_t sent_packets;     /**< Packets to the player. */
    uint64_t received_packets; /**< Packets from the player that were accepted. */
    int32_t
        frames_ahead; /**< Frames by which this machine was ahead of the player's, when it was last heard. */
    uint32_t
        unacknowledged_frames; /**< Inputs of this machine that the player's has not acknowledged; 0 if the player takes no part. */
    float
        progress; /**< Share of the world that has arrived, while the player, or this machine, joins; otherwise 0. */
} quern_netplay_player_status;

/** Kind of an event of a session. */
typedef enum quern_netplay_event_kind {
    QUERN_NETPLAY_CONNECTED =
        1, /**< The first packet has arrived from a machine of the player that hears this one. */
    /** A player that takes part has been silent for a quarter of the timeout, or a second without a timeout. */
    QUERN_NETPLAY_INTERRUPTED,
    QUERN_NETPLAY_RESUMED, /**< An interrupted player is heard again. */
    QUERN_NETPLAY_DROPPED, /**< The player takes part no longer. */
    QUERN_NETPLAY_JOINED, /**< The player takes part, for the first time or again; also this machine's own. */
    QUERN_NETPLAY_PROGRESS, /**< A further twentieth of the world has gone to the joining player, which may be this one. */
    QUERN_NETPLAY_DIVERGED /**< The world differs from that of the player. */
} quern_netplay_event_kind;

/** Something that has happened in a session; see quern_netplay_next_event. */
typedef struct quern_netplay_event {
    quern_netplay_event_kind kind; /**< What has happened. */
    /** The player to which it has happened. JOINED and DROPPED of spectators, and PROGRESS of this machine as a spectator, have
     * QUERN_NETPLAY_SPECTATOR plus its index. */
    uint32_t player;
    uint64_t frame; /**< Next frame of this machine at that time. */
    float progress; /**< Of PROGRESS: share of the world that has arrived; otherwise 0. */
} quern_netplay_event;

/** The first difference between the worlds of two machines. */
typedef struct quern_netplay_report {
    /** Whether the report is complete. Before that, only `player` is set; call quern_netplay_advance again. */
    bool is_complete;
    uint32_t player; /**< Player of the other machine. */
    uint64_t frame;  /**< First frame with another result. The world is as it was before this frame. */
    /** The difference: `expected` is on the other machine, `actual` on this one. `difference.difference` is
     * QUERN_REPLAY_NONE if the frame gave the same result when it was run again: it depends on data outside of the world
     * that have changed since. */
    quern_replay_report difference;
    const void *own_recording;   /**< Recording of the frame on this machine; NULL if there is none. */
    const void *other_recording; /**< Recording of the frame on the other machine; NULL if there is none. */
    size_t own_recording_bytes;  /**< Size of own_recording. */
    size_t other_recording_bytes;           /**< Size of other_recording. */
    char text[2 * QUERN_REPLAY_TEXT_BYTES]; /**< The report as text, with frame, component and entity. */
} quern_netplay_report;

/** Creates one end of a session, and a history of the world, which it owns. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (a value out of range, a resource of another size, a joining player in a session without other players),
 * UNKNOWN_RESOURCE, those of quern_history_create, OUT_OF_MEMORY. */
QUERN_API quern_result quern_netplay_create(const quern_netplay_def *def, quern_netplay **out_netplay);

/** Destroys one end of a session, and its history. The world does not change. NULL is allowed. */
QUERN_API void quern_netplay_destroy(quern_netplay *netplay);

/** Receives packets, corrects predictions, runs a frame if enough inputs are known, and sends packets. Call it once per
 * time step. `input` is the input of this machine's player, input_bytes long; it takes effect input_delay frames later.
 * NULL on the machine of a spectator.
 * A machine that is behind the others runs several frames in one call. jobs may be NULL. out_frame_count, which may be
 * NULL, receives the number of new frames that ran: 0 if the call waits for other players.
 *
 * Errors: NULL_ARGUMENT; DIVERGED (worlds differ; every later call fails as well, and goes on with the report); CANCELLED
 * (the others have dropped this player, or the world that it got cannot be loaded, or its sender has not let it take part,
 * or no machine sends it the last inputs of a player that has left: create a new world and join; or no machine keeps the
 * inputs any more that this spectator lacks: create a new world and watch); UNAVAILABLE (less than half of the players are
 * heard for two timeouts, or a joining player has got no world for four, or a spectator hears no machine for four, or a
 * machine has another version of the protocol: the call can be repeated, and succeeds when enough are heard); those of
 * quern_history_save, quern_history_restore, quern_schedule_run and, when a player joins, of quern_world_save. After other
 * errors than DIVERGED and CANCELLED, the call can be repeated. */
QUERN_API quern_result quern_netplay_advance(quern_netplay *netplay, quern_jobs *jobs, const void *input,
                                             uint32_t *out_frame_count);

/** Changes the input delay of this machine's player, for example when the latency has changed; that of the other players
 * may be another one. When it grows, the next input takes effect in several frames; when it shrinks by n, those of the next
 * n frames take none. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (more than max_input_delay). */
QUERN_API quern_result quern_netplay_set_input_delay(quern_netplay *netplay, uint32_t input_delay);

/** Returns the progress and the counts of a session. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_netplay_get_status(const quern_netplay *netplay,
                                                quern_netplay_status *out_status);

/** Returns the connection to the machine of another player; of this machine's own player only is_present and progress. For
 * `player` from QUERN_NETPLAY_SPECTATOR on, of a spectator: is_present (whether it has the world), silent_seconds, bytes and
 * packets, unacknowledged_frames (that it may see, and has not got) and progress. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no
 * such player or spectator). */
QUERN_API quern_result quern_netplay_get_player_status(const quern_netplay *netplay, uint32_t player,
                                                       quern_netplay_player_status *out_status);

/** Stores the next event and returns true; returns false if there is none, or if an argument is NULL. Events are noted at the
 * end of quern_netplay_advance, in order of their players. The newest QUERN_NETPLAY_EVENTS are kept.
 *
 *     quern_netplay_event event;
 *     while (quern_netplay_next_event(netplay, &event))
 *         if (event.kind == QUERN_NETPLAY_DROPPED) show("player %u has left", event.player); */
QUERN_API bool quern_netplay_next_event(quern_netplay *netplay, quern_netplay_event *out_event);

/** Returns where the worlds differ, after quern_netplay_advance has returned DIVERGED in a session with `reports`. Call
 * quern_netplay_advance until is_complete, or until the other machine is gone. To see the frame again, save world and
 * schedule (quern_world_save) together with a recording: quern_replay_run runs the recording in the loaded world. The
 * recordings are valid until quern_netplay_destroy. Errors: NULL_ARGUMENT; UNAVAILABLE (no difference was found, or the
 * session has no reports). */
QUERN_API quern_result quern_netplay_get_report(const quern_netplay *netplay,
                                                quern_netplay_report *out_report);

/* ------------------------------------------------------------------------------ test of one machine */

/** Definition of a test of going back; see quern_netplay_sync_test. */
typedef struct quern_netplay_sync_def {
    quern_world *world QUERN__ZERO;       /**< The world. Required. It must have no history. */
    quern_schedule *schedule QUERN__ZERO; /**< Schedule of the world that runs frames. Required. */
    quern_resource inputs QUERN__ZERO;    /**< Resource with the inputs. Required. */
    double step_seconds QUERN__ZERO;      /**< Time step of each frame, greater than 0. */
    uint32_t frame_count QUERN__ZERO;     /**< Number of frames to run, greater than 0. */
    /** Number of frames that run again after each frame; 0 means 8. At most QUERN_MAX_NETPLAY_ROLLBACK. */
    uint32_t rollback_frames QUERN__ZERO;
    /** Writes the inputs of a frame to the value of the resource. NULL: inputs stay as they are. Called once for each
     * frame. */
    void (*give_inputs)(void *user_data, uint64_t frame, void *inputs) QUERN__ZERO;
    void *user_data QUERN__ZERO;           /**< Passed to give_inputs. */
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_netplay_sync_def;

/** Returns SipHash-2-4 (Aumasson and Bernstein, 2012) of a number, as 8 bytes with the lowest first, and of bytes after it. A
 * program that gives players their places by connections of its own can let a machine show by it that it has
 * quern_netplay_def.key: the machine returns the hash of a number that is used once. Threads: any. */
QUERN_API uint64_t quern_netplay_keyed_hash(const uint8_t key[QUERN_NETPLAY_KEY_BYTES], uint64_t number,
                                            const void *bytes, size_t size_bytes);

/** Tests without a network whether a game can be played over netplay: runs frames, goes back after each of them, runs the
 * last rollback_frames again, and compares the world after each with what it was before. out_report, which may be NULL, receives the first difference, with
 * frame, component and entity: `expected` is when the frame ran before. jobs may be NULL.
 *
 * Afterwards the world has run frame_count frames; if it differs, the world is as it was before that frame. Costs much
 * more than the frames: each is recorded with hashes of entities. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_RESOURCE,
 * DIVERGED (a frame gave another result when it ran again), those of quern_history_create, quern_history_save,
 * quern_replay_recorder_create and quern_replay_record. Threads: main, between frames. */
QUERN_API quern_result quern_netplay_sync_test(const quern_netplay_sync_def *def, quern_jobs *jobs,
                                               quern_replay_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
