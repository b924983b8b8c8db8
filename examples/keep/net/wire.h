/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_WIRE_H
#define KEEP_WIRE_H

/* Packets between the machines of a game, over ENet or UDP. All machines are connected to the host, which gives them seats.
 * Game packets may be lost; messages are not. Over ENet, the host passes packets on; over UDP, machines send them to each
 * other. */

#include "../game/components.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_PORT = 7777, WIRE_KEY_BYTES = 16 };

/* What the host tells a machine that it takes into the game. */
typedef struct WireStart {
    uint32_t player, player_count;
    uint32_t absent;      /* players that are absent at first: bit i for player i */
    uint32_t joins;       /* whether the game runs already */
    uint32_t frame_count; /* steps to play; 0: no end */
    uint32_t timeout_ms;
    uint64_t session;
    uint64_t level; /* hash of the level */
} WireStart;

/* A network that is worse than the real one, for tests: delay of each packet, and how many are lost. */
typedef struct WireFaults {
    uint32_t delay_ms, lost_percent;
} WireFaults;

typedef enum WireTransport { WIRE_ENET, WIRE_UDP } WireTransport;

typedef struct WireOptions {
    WireTransport transport;
    unsigned char
        key[WIRE_KEY_BYTES]; /* secret that the machines of a game have in common; all zero: none */
    uint16_t port;           /* of the host */
    uint64_t session;        /* number that the machines of a game have in common, of the host */
    WireFaults faults;
} WireOptions;

typedef struct Wire Wire;

/* Returns whether this build has a transport. */
bool wire_has(WireTransport transport);

/* Opens a port for other machines. Returns NULL on failure, with the fault in message. */
Wire *wire_host(const WireOptions *options, char *message, size_t message_bytes);

/* Connects to a host: "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT". Returns NULL on failure. */
Wire *wire_join(const char *address, const WireOptions *options, char *message, size_t message_bytes);

/* Closes all connections. NULL is allowed. */
void wire_close(Wire *wire);

/* Exchanges packets, and waits for them if none has arrived. The host gives machines that are waiting the free `seats`
 * (bit i for player i) once they have shown that they have the key. It leaves machines that do not show it, and
 * those whose player took part and is out. Elsewhere, start is NULL. */
void wire_poll(Wire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats);

/* Returns how many machines with the key wait at the host for a seat. */
uint32_t wire_waiting(const Wire *wire);

/* Returns whether the host has taken this machine into the game, and how. */
bool wire_started(const Wire *wire, WireStart *out_start);

/* Returns whether the host is gone, or was never there. */
bool wire_is_lost(const Wire *wire);

/* Tells the host that this machine has ended the game, or, on the host, all machines that all have. wire_all_done: on
 * the host, whether all other machines of `players` have ended it; elsewhere, whether the host says so. */
void wire_done(Wire *wire);
bool wire_all_done(const Wire *wire, uint32_t players);

/* The transport of netplay; user_data is the wire. */
void wire_send(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes);
uint32_t wire_receive(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes);
uint64_t wire_now(void *user_data);

#endif
