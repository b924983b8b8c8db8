/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The faults of the network that a game is to have, and the choice between the transports: wire_enet.c in builds with
 * ENet (KEEP_ENET), wire_udp.c on systems with sockets of POSIX (KEEP_UDP). */

#include "wire_kinds.h"

#include "../game/check.h"

#include <quern/kit/netplay.h>
#include <quern/kit/random.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In a build without a transport, its calls are left out. */
#ifndef KEEP_ENET
#define KEEP_ENET 0
#endif
#ifndef KEEP_UDP
#define KEEP_UDP 0
#endif
#if KEEP_ENET
#define ENET(call) call
#else
#define ENET(call) (void)wire
#endif
#if KEEP_UDP
#define UDP(call) call
#else
#define UDP(call) (void)wire
#endif

enum {
    PACKETS_MAX = 4096, /* that wait; more are lost */
    ANSWER_SECONDS = 5
};

/* A packet that is sent later. */
typedef struct Packet {
    uint64_t due_ns;
    uint32_t player, size_bytes;
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} Packet;

struct Wire {
    EnetWire *enet; /* one of the two is NULL */
    UdpWire *udp;
    WireFaults faults;
    uint64_t seed, sent_count;
    Packet *delayed; /* a ring, in the order of their times */
    uint32_t first, count;
};

uint64_t wire_now(void *user_data)
{
    struct timespec now;
    (void)user_data;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --------------------------------------------------------------------------------------------- opening */

bool wire_has(WireTransport transport)
{
    static const bool have[] = {[WIRE_ENET] = KEEP_ENET, [WIRE_UDP] = KEEP_UDP};
    return have[transport];
}

static Wire *create(const WireOptions *options, char *message, size_t message_bytes)
{
    if (!wire_has(options->transport)) {
        snprintf(
            message, message_bytes, "%s",
            options->transport == WIRE_ENET
                ? "this build has no ENet: install it (the package libenet-dev) and build again, or give "
                  "--transport udp"
                : "this build has no UDP: give --transport enet");
        return NULL;
    }
    Wire *wire = check_memory(calloc(1, sizeof *wire));
    wire->delayed = check_memory(calloc(PACKETS_MAX, sizeof *wire->delayed));
    wire->faults = options->faults;
    wire->seed = wire_now(NULL);
    return wire;
}

static Wire *close_if_empty(Wire *wire)
{
    if (wire->enet != NULL || wire->udp != NULL) return wire;
    wire_close(wire);
    return NULL;
}

Wire *wire_host(const WireOptions *options, char *message, size_t message_bytes)
{
    Wire *wire = create(options, message, message_bytes);
    if (wire == NULL) return NULL;
    if (options->transport == WIRE_ENET)
        ENET(wire->enet = enet_wire_host(options, message, message_bytes));
    else
        UDP(wire->udp = udp_wire_host(options, message, message_bytes));
    return close_if_empty(wire);
}

/* Divides "NAME", "NAME:PORT" or "[NAME]:PORT". An address with several colons and no bracket has no port. Returns false if
 * the port is no number of a port. */
static bool parse_address(const char *address, char *name, size_t name_bytes, uint16_t *out_port)
{
    const bool has_bracket = address[0] == '[';
    const char *end = has_bracket ? strchr(address, ']') : strchr(address, ':');
    if (end == NULL || (!has_bracket && strchr(end + 1, ':') != NULL)) end = address + strlen(address);
    snprintf(name, name_bytes, "%.*s", (int)(end - address) - has_bracket, address + has_bracket);
    if (*end == ']') end++;
    if (*end == '\0') return true;
    char *rest;
    const unsigned long port = strtoul(end + 1, &rest, 10);
    if (*end != ':' || *rest != '\0' || port == 0 || port > UINT16_MAX) return false;
    *out_port = (uint16_t)port;
    return true;
}

Wire *wire_join(const char *address, const WireOptions *options, char *message, size_t message_bytes)
{
    char name[256];
    uint16_t port = WIRE_PORT;
    if (!parse_address(address, name, sizeof name, &port)) {
        snprintf(message, message_bytes, "%s: the port is no number up to 65535", address);
        return NULL;
    }
    Wire *wire = create(options, message, message_bytes);
    if (wire == NULL) return NULL;
    if (options->transport == WIRE_ENET)
        ENET(wire->enet = enet_wire_join(name, port, options, message, message_bytes));
    else
        UDP(wire->udp = udp_wire_join(name, port, options, message, message_bytes));
    return close_if_empty(wire);
}

void wire_close(Wire *wire)
{
    if (wire == NULL) return;
    if (wire->enet != NULL) ENET(enet_wire_close(wire->enet));
    if (wire->udp != NULL) UDP(udp_wire_close(wire->udp));
    free(wire->delayed);
    free(wire);
}

/* ------------------------------------------------------------------------------------------- questions */

Question wire_ask(const unsigned char *key)
{
    static uint64_t count; /* two questions in the same nanosecond differ */
    const uint64_t now_ns = wire_now(NULL);
    count++;
    return (Question){.number = quern_netplay_keyed_hash(key, now_ns, &count, sizeof count),
                      .until_ns = now_ns + ANSWER_SECONDS * (uint64_t)1000000000};
}

uint64_t wire_answer(const unsigned char *key, uint64_t number)
{
    return quern_netplay_keyed_hash(key, number, "answer", 6);
}

bool wire_take_answer(Question *question, const unsigned char *key, uint64_t answer)
{
    question->is_answered = answer == wire_answer(key, question->number);
    return question->is_answered;
}

bool wire_is_late(const Question *question)
{
    return !question->is_answered && wire_now(NULL) > question->until_ns;
}

/* -------------------------------------------------------------------------------------------- messages */

uint32_t wire_waiting(const Wire *wire)
{
    if (wire->enet != NULL) ENET(return enet_wire_waiting(wire->enet));
    UDP(return udp_wire_waiting(wire->udp));
    return 0;
}

bool wire_started(const Wire *wire, WireStart *out_start)
{
    (void)out_start;
    if (wire->enet != NULL) ENET(return enet_wire_started(wire->enet, out_start));
    UDP(return udp_wire_started(wire->udp, out_start));
    return false;
}

bool wire_is_lost(const Wire *wire)
{
    if (wire->enet != NULL) ENET(return enet_wire_is_lost(wire->enet));
    UDP(return udp_wire_is_lost(wire->udp));
    return true;
}

void wire_done(Wire *wire)
{
    if (wire->enet != NULL) ENET(enet_wire_done(wire->enet));
    if (wire->udp != NULL) UDP(udp_wire_done(wire->udp));
}

bool wire_all_done(const Wire *wire, uint32_t players)
{
    (void)players;
    if (wire->enet != NULL) ENET(return enet_wire_all_done(wire->enet, players));
    UDP(return udp_wire_all_done(wire->udp, players));
    return true;
}

/* --------------------------------------------------------------------------------------------- packets */

static void send_due(Wire *wire)
{
    for (const uint64_t now = wire_now(NULL);
         wire->count > 0 && wire->delayed[wire->first].due_ns <= now;) {
        const Packet *packet = &wire->delayed[wire->first];
        (void)packet;
        if (wire->enet != NULL)
            ENET(enet_wire_send(wire->enet, packet->player, packet->bytes, packet->size_bytes));
        if (wire->udp != NULL)
            UDP(udp_wire_send(wire->udp, packet->player, packet->bytes, packet->size_bytes));
        wire->first = (wire->first + 1) % PACKETS_MAX;
        wire->count--;
    }
}

void wire_send(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    Wire *wire = user_data;
    const uint64_t bits = quern_random(wire->seed, wire->sent_count++);
    if (quern_random_below(bits, 100) < wire->faults.lost_percent || wire->count == PACKETS_MAX) return;
    Packet *packet = &wire->delayed[(wire->first + wire->count++) % PACKETS_MAX];
    packet->due_ns = wire_now(NULL) + wire->faults.delay_ms * (uint64_t)1000000;
    packet->player = player;
    packet->size_bytes = size_bytes;
    memcpy(packet->bytes, bytes, size_bytes);
}

uint32_t wire_receive(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    Wire *wire = user_data;
    (void)out_player, (void)bytes, (void)capacity_bytes;
    if (wire->enet != NULL) ENET(return enet_wire_receive(wire->enet, out_player, bytes, capacity_bytes));
    UDP(return udp_wire_receive(wire->udp, out_player, bytes, capacity_bytes));
    return 0;
}

void wire_poll(Wire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats)
{
    (void)wait_ms, (void)start, (void)seats;
    send_due(wire);
    if (wire->enet != NULL) ENET(enet_wire_poll(wire->enet, wait_ms, start, seats));
    if (wire->udp != NULL) UDP(udp_wire_poll(wire->udp, wait_ms, start, seats));
    send_due(wire);
    if (wire->enet != NULL) ENET(enet_wire_flush(wire->enet));
}
