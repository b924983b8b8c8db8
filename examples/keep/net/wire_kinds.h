/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_WIRE_KINDS_H
#define KEEP_WIRE_KINDS_H

/* The two transports behind wire.c. The functions are those of wire.h, without the faults of the network. */

#include "wire.h"

/* How a machine shows the host that it has the key of the game: the host asks with a number that it uses once, and the machine
 * answers with the keyed hash of the number. So strangers cannot hold the host's connections and seats. */
typedef struct Question {
    uint64_t number;
    uint64_t until_ns; /* the host leaves a machine that has not answered by then */
    bool is_answered;
} Question;

Question wire_ask(const unsigned char *key);
uint64_t wire_answer(const unsigned char *key, uint64_t number);

/* Takes an answer. Returns false if it is wrong. */
bool wire_take_answer(Question *question, const unsigned char *key, uint64_t answer);
bool wire_is_late(const Question *question);

typedef struct EnetWire EnetWire;

EnetWire *enet_wire_host(const WireOptions *options, char *message, size_t message_bytes);
EnetWire *enet_wire_join(const char *name, uint16_t port, const WireOptions *options, char *message,
                         size_t message_bytes);
void enet_wire_close(EnetWire *wire);
void enet_wire_poll(EnetWire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats);
void enet_wire_flush(EnetWire *wire); /* sends what waits to be sent */
uint32_t enet_wire_waiting(const EnetWire *wire);
bool enet_wire_started(const EnetWire *wire, WireStart *out_start);
bool enet_wire_is_lost(const EnetWire *wire);
void enet_wire_done(EnetWire *wire);
bool enet_wire_all_done(const EnetWire *wire, uint32_t players);
void enet_wire_send(EnetWire *wire, uint32_t player, const void *bytes, uint32_t size_bytes);
uint32_t enet_wire_receive(EnetWire *wire, uint32_t *out_player, void *bytes, uint32_t capacity_bytes);

typedef struct UdpWire UdpWire;

UdpWire *udp_wire_host(const WireOptions *options, char *message, size_t message_bytes);
UdpWire *udp_wire_join(const char *name, uint16_t port, const WireOptions *options, char *message,
                       size_t message_bytes);
void udp_wire_close(UdpWire *wire);
void udp_wire_poll(UdpWire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats);
uint32_t udp_wire_waiting(const UdpWire *wire);
bool udp_wire_started(const UdpWire *wire, WireStart *out_start);
bool udp_wire_is_lost(const UdpWire *wire);
void udp_wire_done(UdpWire *wire);
bool udp_wire_all_done(const UdpWire *wire, uint32_t players);
void udp_wire_send(UdpWire *wire, uint32_t player, const void *bytes, uint32_t size_bytes);
uint32_t udp_wire_receive(UdpWire *wire, uint32_t *out_player, void *bytes, uint32_t capacity_bytes);

#endif
