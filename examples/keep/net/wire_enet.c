/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Channel 0 has messages, which ENet repeats until they arrive: ASK (a number), ANSWER (its keyed hash), START (the host's
 * WireStart), DONE. Channel 1 has game packets: the byte of the receiver, the byte of the sender, and what netplay sends. */

#include "wire_kinds.h"

#include "../game/check.h"

#include <quern/kit/netplay.h>

#include <enet/enet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES = 2,
    PACKET_BYTES = QUERN_NETPLAY_PACKET_BYTES + HEAD_BYTES,
    PACKETS_MAX = 4096, /* in each queue; more are lost */
    CONNECTIONS_MAX = 16,
    PEERS_MAX =
        64, /* of ENet: those beyond the connections are refused, or replace one that has not answered */
    NO_PLAYER = PLAYERS_MAX
};

typedef enum Message { MESSAGE_ASK = 1, MESSAGE_ANSWER, MESSAGE_START, MESSAGE_DONE } Message;

typedef struct Packet {
    uint32_t size_bytes;
    unsigned char bytes[PACKET_BYTES];
} Packet;

typedef struct Queue {
    Packet *packets;
    uint32_t first, count;
} Queue;

/* A machine that is connected to the host, or the host. */
typedef struct Machine {
    ENetPeer *peer;  /* NULL: none */
    uint32_t player; /* NO_PLAYER: the machine waits for a seat */
    Question question;
    bool is_done, was_present;
} Machine;

struct EnetWire {
    ENetHost *enet;
    bool is_host, has_started, is_lost, all_done;
    unsigned char key[WIRE_KEY_BYTES];
    WireStart start;
    Machine machines[CONNECTIONS_MAX]; /* elsewhere than on the host: only the host, as the first one */
    Queue received;
};

/* ----------------------------------------------------------------------------------------------- queue */

static Packet *add_packet(Queue *queue)
{
    if (queue->count == PACKETS_MAX) return NULL;
    return &queue->packets[(queue->first + queue->count++) % PACKETS_MAX];
}

static Packet *first_packet(Queue *queue)
{
    return queue->count > 0 ? &queue->packets[queue->first] : NULL;
}

static void drop_first(Queue *queue)
{
    queue->first = (queue->first + 1) % PACKETS_MAX;
    queue->count--;
}

/* --------------------------------------------------------------------------------------------- opening */

static EnetWire *fail(EnetWire *wire, char *message, size_t message_bytes, const char *what,
                      const char *which)
{
    snprintf(message, message_bytes, "%s: %s", which, what);
    enet_wire_close(wire);
    return NULL;
}

static EnetWire *create(const ENetAddress *address, const WireOptions *options)
{
    EnetWire *wire = check_memory(calloc(1, sizeof *wire));
    memcpy(wire->key, options->key, sizeof wire->key);
    wire->received.packets = check_memory(calloc(PACKETS_MAX, sizeof(Packet)));
    if (enet_initialize() == 0)
        wire->enet = enet_host_create(address, address != NULL ? PEERS_MAX : 1, 2, 0, 0);
    return wire;
}

EnetWire *enet_wire_host(const WireOptions *options, char *message, size_t message_bytes)
{
    char which[16];
    EnetWire *wire = create(&(ENetAddress){.host = ENET_HOST_ANY, .port = options->port}, options);
    wire->is_host = true;
    snprintf(which, sizeof which, "port %u", options->port);
    if (wire->enet != NULL) return wire;
    return fail(wire, message, message_bytes, "cannot be opened; is another game using it?", which);
}

EnetWire *enet_wire_join(const char *name, uint16_t port, const WireOptions *options, char *message,
                         size_t message_bytes)
{
    ENetAddress to = {.port = port};
    EnetWire *wire = create(NULL, options);
    if (wire->enet == NULL) return fail(wire, message, message_bytes, "no socket is available", name);
    if (enet_address_set_host(&to, name) != 0)
        return fail(wire, message, message_bytes, "there is no such host", name);
    wire->machines[0] = (Machine){.peer = enet_host_connect(wire->enet, &to, 2, 0)};
    if (wire->machines[0].peer == NULL)
        return fail(wire, message, message_bytes, "no connection is available", name);
    return wire;
}

void enet_wire_close(EnetWire *wire)
{
    if (wire == NULL) return;
    if (wire->enet != NULL) {
        for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
            if (wire->machines[i].peer != NULL) enet_peer_disconnect_now(wire->machines[i].peer, 0);
        enet_host_flush(wire->enet);
        enet_host_destroy(wire->enet);
        enet_deinitialize();
    }
    free(wire->received.packets);
    free(wire);
}

/* ---------------------------------------------------------------------------------------- game packets */

static Machine *machine_of(EnetWire *wire, uint32_t player)
{
    if (!wire->is_host) return &wire->machines[0];
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].peer != NULL && wire->machines[i].player == player) return &wire->machines[i];
    return NULL;
}

/* Sends a packet to the machine of its receiver, or to the host, which passes it on. */
static void send_now(EnetWire *wire, const unsigned char *bytes, uint32_t size_bytes)
{
    const Machine *machine = machine_of(wire, bytes[0]);
    if (machine == NULL || machine->peer == NULL) return;
    ENetPacket *packet = enet_packet_create(bytes, size_bytes, ENET_PACKET_FLAG_UNSEQUENCED);
    if (packet != NULL && enet_peer_send(machine->peer, 1, packet) != 0) enet_packet_destroy(packet);
}

void enet_wire_send(EnetWire *wire, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    unsigned char packet[PACKET_BYTES] = {(unsigned char)player, (unsigned char)wire->start.player};
    memcpy(packet + HEAD_BYTES, bytes, size_bytes);
    send_now(wire, packet, size_bytes + HEAD_BYTES);
}

uint32_t enet_wire_receive(EnetWire *wire, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    for (Packet *packet; (packet = first_packet(&wire->received)) != NULL;) {
        const uint32_t size_bytes = packet->size_bytes - HEAD_BYTES;
        drop_first(&wire->received);
        if (size_bytes == 0 || size_bytes > capacity_bytes) continue;
        *out_player = packet->bytes[1];
        memcpy(bytes, packet->bytes + HEAD_BYTES, size_bytes);
        return size_bytes;
    }
    return 0;
}

/* Keeps a packet for netplay, or passes it on. The host does not believe a machine that names another sender. */
static void take_packet(EnetWire *wire, const Machine *from, const ENetPacket *packet)
{
    if (packet->dataLength < HEAD_BYTES || packet->dataLength > PACKET_BYTES) return;
    if (wire->is_host && packet->data[1] != from->player) return;
    if (packet->data[0] != wire->start.player) {
        if (wire->is_host) send_now(wire, packet->data, (uint32_t)packet->dataLength);
        return;
    }
    Packet *kept = add_packet(&wire->received);
    if (kept == NULL) return;
    kept->size_bytes = (uint32_t)packet->dataLength;
    memcpy(kept->bytes, packet->data, packet->dataLength);
}

/* -------------------------------------------------------------------------------------------- messages */

static void send_message(const Machine *machine, Message message, const void *bytes, size_t size_bytes)
{
    unsigned char whole[1 + sizeof(WireStart)] = {(unsigned char)message};
    if (machine->peer == NULL) return;
    if (size_bytes > 0) memcpy(whole + 1, bytes, size_bytes);
    ENetPacket *packet = enet_packet_create(whole, 1 + size_bytes, ENET_PACKET_FLAG_RELIABLE);
    if (packet != NULL && enet_peer_send(machine->peer, 0, packet) != 0) enet_packet_destroy(packet);
}

static void leave_machine(Machine *machine)
{
    machine->peer->data = NULL;
    enet_peer_disconnect_now(machine->peer, 0);
    *machine = (Machine){.player = NO_PLAYER};
}

static void take_number(EnetWire *wire, Machine *from, const ENetPacket *packet)
{
    uint64_t number;
    memcpy(&number, packet->data + 1, sizeof number);
    if (wire->is_host && packet->data[0] == MESSAGE_ANSWER &&
        !wire_take_answer(&from->question, wire->key, number))
        leave_machine(from);
    if (wire->is_host || packet->data[0] != MESSAGE_ASK) return;
    const uint64_t answer = wire_answer(wire->key, number);
    send_message(from, MESSAGE_ANSWER, &answer, sizeof answer);
}

static void take_message(EnetWire *wire, Machine *from, const ENetPacket *packet)
{
    const size_t size = packet->dataLength;
    if (size == 0) return;
    if (packet->data[0] == MESSAGE_ASK || packet->data[0] == MESSAGE_ANSWER) {
        if (size == 1 + sizeof(uint64_t)) take_number(wire, from, packet);
        return;
    }
    if (packet->data[0] == MESSAGE_DONE) {
        if (wire->is_host)
            from->is_done = true;
        else
            wire->all_done = true;
    } else if (packet->data[0] == MESSAGE_START && !wire->is_host && size == 1 + sizeof wire->start) {
        memcpy(&wire->start, packet->data + 1, sizeof wire->start);
        wire->has_started =
            wire->start.player_count <= PLAYERS_MAX && wire->start.player < wire->start.player_count;
    }
}

void enet_wire_done(EnetWire *wire)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        send_message(&wire->machines[i], MESSAGE_DONE, NULL, 0);
    enet_host_flush(wire->enet);
}

bool enet_wire_all_done(const EnetWire *wire, uint32_t players)
{
    if (!wire->is_host) return wire->all_done || wire->is_lost;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].peer != NULL && wire->machines[i].player != NO_PLAYER &&
            (players >> wire->machines[i].player & 1) != 0 && !wire->machines[i].is_done)
            return false;
    return true;
}

bool enet_wire_started(const EnetWire *wire, WireStart *out_start)
{
    if (wire->has_started) *out_start = wire->start;
    return wire->has_started;
}

bool enet_wire_is_lost(const EnetWire *wire)
{
    return wire->is_lost;
}

/* --------------------------------------------------------------------------------------------- polling */

/* Returns a free place for a connection; if there is none, that of the machine that has not answered for longest; NULL if
 * all have answered. */
static Machine *free_place(EnetWire *wire)
{
    Machine *oldest = NULL;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        if (machine->peer == NULL) return machine;
        if (machine->question.is_answered) continue;
        if (oldest == NULL || machine->question.until_ns < oldest->question.until_ns) oldest = machine;
    }
    if (oldest != NULL) leave_machine(oldest);
    return oldest;
}

static void connect_machine(EnetWire *wire, ENetPeer *peer)
{
    if (!wire->is_host) return;
    Machine *machine = free_place(wire);
    if (machine == NULL) {
        enet_peer_disconnect_now(peer, 0);
        return;
    }
    *machine = (Machine){.peer = peer, .player = NO_PLAYER, .question = wire_ask(wire->key)};
    peer->data = machine;
    send_message(machine, MESSAGE_ASK, &machine->question.number, sizeof machine->question.number);
}

static void disconnect_machine(EnetWire *wire, const ENetPeer *peer)
{
    Machine *machine = wire->is_host ? peer->data : &wire->machines[0];
    if (machine != NULL) machine->peer = NULL;
    wire->is_lost = !wire->is_host;
}

static void take_event(EnetWire *wire, const ENetEvent *event)
{
    if (event->type == ENET_EVENT_TYPE_CONNECT) connect_machine(wire, event->peer);
    if (event->type == ENET_EVENT_TYPE_DISCONNECT) disconnect_machine(wire, event->peer);
    if (event->type != ENET_EVENT_TYPE_RECEIVE) return;
    Machine *from = wire->is_host ? event->peer->data : &wire->machines[0];
    if (from != NULL && event->channelID == 0) take_message(wire, from, event->packet);
    if (from != NULL && event->channelID == 1) take_packet(wire, from, event->packet);
    enet_packet_destroy(event->packet);
}

static uint32_t players_of(const EnetWire *wire)
{
    uint32_t players = wire->is_host ? 1u << wire->start.player : 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].peer != NULL && wire->machines[i].player < NO_PLAYER)
            players |= 1u << wire->machines[i].player;
    return players;
}

static bool is_waiting(const Machine *machine)
{
    return machine->peer != NULL && machine->player == NO_PLAYER && machine->question.is_answered;
}

uint32_t enet_wire_waiting(const EnetWire *wire)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        count += is_waiting(&wire->machines[i]);
    return count;
}

/* Leaves machines that do not answer, and those whose player took part and is out now, so that others can have the
 * seat. */
static void leave_machines(EnetWire *wire, uint32_t seats)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        if (machine->peer == NULL) continue;
        const bool is_seated = machine->player != NO_PLAYER,
                   is_out = is_seated && (seats >> machine->player & 1) != 0;
        if (wire_is_late(&machine->question) || (is_out && machine->was_present))
            leave_machine(machine);
        else
            machine->was_present = is_seated && !is_out;
    }
}

/* Gives free seats to machines that wait for one. */
static void seat_machines(EnetWire *wire, const WireStart *start, uint32_t seats)
{
    wire->start = *start;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        const uint32_t open = seats & ~players_of(wire);
        if (!is_waiting(machine) || open == 0) continue;
        machine->player = (uint32_t)__builtin_ctz(open);
        WireStart given = *start;
        given.player = machine->player;
        send_message(machine, MESSAGE_START, &given, sizeof given);
    }
}

void enet_wire_poll(EnetWire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats)
{
    ENetEvent event;
    if (wire->is_host) {
        leave_machines(wire, seats);
        seat_machines(wire, start, seats);
    }
    if (wire->received.count > 0) wait_ms = 0;
    for (int count = enet_host_service(wire->enet, &event, wait_ms); count > 0;
         count = enet_host_service(wire->enet, &event, 0))
        take_event(wire, &event);
}

void enet_wire_flush(EnetWire *wire)
{
    enet_host_flush(wire->enet);
}
