/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_NET_H
#define KEEP_NET_H

/* A game that two to four players play over the network: netplay of the kit over a wire. */

#include "../game/game.h"
#include "wire.h"

#include <quern/kit/netplay.h>

enum { NET_ORDERS_MAX = 16, NET_MESSAGE_BYTES = 1536 };

typedef struct NetOptions {
    bool hosts;
    const char *join; /* address of the host; NULL: none */
    uint16_t port;
    unsigned char key[WIRE_KEY_BYTES];  /* secret of the game; all zero: none */
    const char *transport;              /* "enet" or "udp"; NULL: the first one that the build has */
    uint32_t player_count, start_count; /* players in all, and those with whom the game begins */
    uint32_t frame_count, timeout_ms;
    WireFaults faults;
} NetOptions;

typedef struct Net {
    Wire *wire;
    bool hosts, is_running, is_done;
    uint32_t start_count;
    unsigned char key[WIRE_KEY_BYTES];
    WireStart start;
    Game *game;
    quern_netplay *netplay;
    Order order;                    /* the last one that was given to netplay */
    Action actions[NET_ORDERS_MAX]; /* actions of this player that wait for a step */
    uint32_t action_count;
    quern_netplay_status status;
    char message[NET_MESSAGE_BYTES]; /* why the game cannot go on */
} Net;

/* The options that both programs have, as text. */
extern const char net_usage[];

/* Takes the value of one of these options, which getopt_long has returned. Ends the program if it is wrong. */
void net_parse_option(NetOptions *options, int option, int argc, char **argv);

/* Opens the port or the connection. Returns false on failure, with the fault in net->message. */
bool net_open(Net *net, const NetOptions *options, const Level *level);

void net_close(Net *net);

/* Waits a short time for the other players. If all are here, creates the game and returns true. Returns false with a
 * message if the game cannot begin. The game must not move. */
bool net_begin(Net *net, Game *game, const Level *level);

/* Ends the session, before the game is destroyed. */
void net_end(Net *net);

/* Gives an action of this player to the next step. Returns false if too many actions wait. */
bool net_act(Net *net, const Action *action);

/* Plays for this player: every now and then, orders something that is possible in the world as this machine predicts
 * it. */
void net_act_at_random(Net *net, uint32_t seed);

/* Exchanges packets and runs the next step, if the other players are not too far behind. Returns false if the game has
 * ended: with net->is_done, or with a message. */
bool net_step(Net *net, quern_jobs *jobs, uint32_t *out_step_count);

#endif
