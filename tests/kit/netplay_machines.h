/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_NETPLAY_MACHINES_H
#define QUERN_TESTS_NETPLAY_MACHINES_H

/* Machines of netplay in one process. A network delays, loses, repeats and reorders packets by a seed; each machine is
 * compared with a world that runs alone, with the same inputs. */

#include "kit/netplay_internal.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdlib.h>

enum { MAX_MACHINES = 4, MAX_PACKETS = 8192, TICK_NS = 1000000, HASH_INTERVAL = 5 };

typedef struct Input {
    int16_t steer;
    uint8_t fires, padding;
} Input;

typedef struct Ship {
    int32_t player, x;
} Ship;

typedef struct Shot {
    int32_t x, left;
} Shot;

/* A component that no system writes, of entities that a test creates. */
typedef struct Rock {
    uint32_t kinds[6];
} Rock;

typedef struct game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component ship, shot, rock;
    quern_resource inputs;
    uint32_t player_count;
    uint32_t input_bytes;         /* of inputs that no system reads; 0: inputs are an Input */
    const quern_netplay *netplay; /* the session, on machines that differ */
    uint32_t wrong_frame;         /* frame in which this machine changes the ship of player 1; 0: none */
    bool is_wrong_once;           /* whether it does so only the first time that the frame runs */
    void *furniture;
} game;

/* Add to the world and schedule of each game that is opened, and take it away. NULL: games have ships and shots alone. */
extern void (*machines_furnish)(game *furnished, bool has_entities);
extern void (*machines_unfurnish)(game *furnished);

void open_game(game *played, uint32_t player_count, bool has_entities);

void close_game(game *played);

/* The input that a player gives while `frame` is its next frame. It stays the same for some frames, as a player's does. */
Input input_of(uint32_t player, uint32_t frame);

typedef struct sent_packet {
    uint32_t from, to, size;
    uint64_t arrival;
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} sent_packet;

typedef struct network {
    sent_packet *packets;
    uint32_t count;
    uint64_t tick;
    random_source random;
    uint32_t latency; /* ticks that each packet takes, in addition to a random delay */
    uint32_t max_delay, lost_percent, repeated_percent, damaged_percent;
    uint32_t silent; /* machines whose packets are all lost: bit i for machine i */
    uint32_t cut;    /* the same, and none reaches them */
    uint32_t liar;   /* machine that sends other inputs to player 0 than to the others, plus 1; 0: none */
} network;

typedef struct machine {
    network *net;
    game played;
    quern_netplay *netplay;
    uint32_t player;
    quern_result result;
} machine;

void open_network(network *net, uint64_t seed);

/* Changes the inputs that a machine sends next. */
void change_inputs(const machine *changed);

/* player: index of the player, or of the spectator if `like` spectates. */
void open_machine(machine *opened, network *net, uint32_t player, const quern_netplay_def *like);

void close_machine(machine *closed);

void close_machines(machine *machines, uint32_t count, network *net);

quern_netplay_status status_of(const machine *asked);

void step_machine(machine *stepped, quern_jobs *jobs);

/* The hashes of a world that runs alone, before each frame. */
uint64_t *run_alone(uint32_t player_count, uint32_t delay, uint32_t frame_count);

/* Compares all hashes of frames that will not change. Returns how many there are. */
uint32_t compare_hashes(const machine *compared, const uint64_t *hashes, uint32_t frame_count);

typedef struct plan {
    uint32_t player_count, frame_count, thread_count;
    uint32_t max_delay, lost_percent, repeated_percent, damaged_percent;
    uint32_t input_delay, max_rollback;
} plan;

/* Plays until all machines have confirmed the frames of the plan. Returns the number of ticks. */
uint64_t play_plan(const plan *played, uint64_t seed);

/* Opens machines of the players from 0 on. */
void open_machines(machine *machines, uint32_t count, network *net, const quern_netplay_def *like);

#endif
