/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Netplay over UDP: one socket, and a table of addresses by player.
 *
 * A datagram of a player is its index and a packet. An introduction is INTRODUCTION plus the index of the sender, u64
 * session, and for each player that the sender knows u8 index, 16 bytes address of IPv6 (mapped for IPv4), u16 port,
 * little-endian. */
#include "kit/netplay_udp.h"

#include "kit/netplay_socket.h"

#include <string.h>

enum {
    PEERS = QUERN_NETPLAY_SPECTATOR + QUERN_MAX_NETPLAY_SPECTATORS,
    DATAGRAM_BYTES = 1 + QUERN_NETPLAY_PACKET_BYTES,
    UDP_HEADER_BYTES = 48, /* of UDP and IPv6 */
    INTRODUCTION = 0x80,
    INTRODUCTION_HEAD_BYTES = 9,
    INTRODUCED_BYTES = 19, /* of one player */
    BURSTS_PER_SECOND = 4, /* a quarter of a second's bytes may be sent at once */
    IGNORED_MOST = 1024    /* datagrams of strangers in one call: more of them must not stop the program */
};

typedef struct peer {
    bool is_known;
    bool is_told; /* whether the address is one of an introduction, and nothing has come from there */
    quern__socket_address address;
} peer;

struct quern_netplay_udp {
    quern_netplay_udp_def def;
    quern_allocator allocator;
    quern__socket socket;
    peer peers[PEERS];
    uint64_t introduced_ns; /* when introductions were sent last */
    uint64_t filled_ns;     /* when `left_bytes` was computed */
    double left_bytes;      /* that may be sent now */
    quern_netplay_udp_status status;
};

/* ----------------------------------------------------------------------------------------- addresses */

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

static bool is_same(const quern__socket_address *a, const quern__socket_address *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 && a->zone == b->zone && a->port == b->port;
}

/* Returns the peer with a number of the transport; NULL if there is none, or if it is this machine. */
static peer *find_peer(quern_netplay_udp *udp, uint32_t player)
{
    return player < PEERS && player != udp->def.player ? &udp->peers[player] : NULL;
}

/* Notes the address from which a datagram of a player has come, if the machine learns addresses and none is known. An
 * address of an introduction counts as none: behind a router, a machine has another address for each of the others. Returns
 * whether the address is the player's. */
static bool learn(const quern_netplay_udp *udp, peer *known, const quern__socket_address *address)
{
    if (udp->def.introduces && (!known->is_known || known->is_told))
        *known = (peer){.is_known = true, .address = *address};
    return known->is_known && is_same(&known->address, address);
}

/* ------------------------------------------------------------------------------------------- sending */

/* Returns whether so many bytes may be sent now. */
static bool take_bytes(quern_netplay_udp *udp, uint32_t size)
{
    const double most = udp->def.most_bytes_per_second;
    const double burst = most / BURSTS_PER_SECOND, least = DATAGRAM_BYTES + UDP_HEADER_BYTES;
    if (udp->def.most_bytes_per_second == 0) return true;
    const uint64_t time = quern__socket_now();
    udp->left_bytes += (double)(time - udp->filled_ns) / 1e9 * most;
    udp->filled_ns = time;
    /* The largest datagram must fit, or parts of worlds would never arrive. */
    if (udp->left_bytes > (burst > least ? burst : least)) udp->left_bytes = burst > least ? burst : least;
    if (udp->left_bytes < size) return false;
    udp->left_bytes -= size;
    return true;
}

static void send_datagram(quern_netplay_udp *udp, const peer *to, const unsigned char *bytes, uint32_t size)
{
    if (!take_bytes(udp, size + UDP_HEADER_BYTES)) {
        udp->status.dropped_count++;
        return;
    }
    int error = 0;
    const quern__socket_error result = quern__socket_send(&udp->socket, &to->address, bytes, size, &error);
    udp->status.sent_count += result == QUERN__SOCKET_OK;
    udp->status.dropped_count += result == QUERN__SOCKET_FULL;
    if (result != QUERN__SOCKET_REFUSED) return;
    udp->status.failed_count++;
    udp->status.system_error = error;
}

/* Tells all players the addresses of the others. */
static void introduce(quern_netplay_udp *udp)
{
    unsigned char bytes[INTRODUCTION_HEAD_BYTES + PEERS * INTRODUCED_BYTES];
    uint32_t size = INTRODUCTION_HEAD_BYTES;
    if (!udp->def.introduces) return;
    const uint64_t time = quern__socket_now();
    if (udp->introduced_ns != 0 && time - udp->introduced_ns < 1000000000u) return;
    udp->introduced_ns = time;
    bytes[0] = (unsigned char)(INTRODUCTION | udp->def.player);
    for (uint32_t i = 0; i < 8; i++)
        bytes[1 + i] = (unsigned char)(udp->def.session >> (8 * i));
    /* Spectators have numbers of their own at each player. */
    for (uint32_t i = 0; i < QUERN_NETPLAY_SPECTATOR; i++) {
        if (!udp->peers[i].is_known || udp->peers[i].is_told) continue;
        bytes[size] = (unsigned char)i;
        memcpy(bytes + size + 1, udp->peers[i].address.bytes, 16);
        bytes[size + 17] = (unsigned char)udp->peers[i].address.port;
        bytes[size + 18] = (unsigned char)(udp->peers[i].address.port >> 8);
        size += INTRODUCED_BYTES;
    }
    for (uint32_t i = 0; i < PEERS; i++)
        if (udp->peers[i].is_known) send_datagram(udp, &udp->peers[i], bytes, size);
}

static void send_packet(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    quern_netplay_udp *udp = user_data;
    const peer *to = find_peer(udp, player);
    unsigned char datagram[DATAGRAM_BYTES];
    introduce(udp);
    if (to == NULL || !to->is_known || size_bytes > QUERN_NETPLAY_PACKET_BYTES) return;
    datagram[0] = (unsigned char)udp->def.player;
    memcpy(datagram + 1, bytes, size_bytes);
    send_datagram(udp, to, datagram, size_bytes + 1);
}

/* ----------------------------------------------------------------------------------------- receiving */

/* Learns the addresses of an introduction. Returns whether it is one from the player that it names. */
static bool read_introduction(quern_netplay_udp *udp, const unsigned char *bytes, uint32_t size,
                              const quern__socket_address *from)
{
    uint64_t session = 0;
    peer *sender = find_peer(udp, bytes[0] & (uint32_t)~INTRODUCTION);
    if (!udp->def.introduces || sender == NULL || size < INTRODUCTION_HEAD_BYTES ||
        (size - INTRODUCTION_HEAD_BYTES) % INTRODUCED_BYTES != 0)
        return false;
    for (uint32_t i = 0; i < 8; i++)
        session |= (uint64_t)bytes[1 + i] << (8 * i);
    if (session != udp->def.session || !learn(udp, sender, from)) return false;
    for (const unsigned char *entry = bytes + INTRODUCTION_HEAD_BYTES; entry < bytes + size;
         entry += INTRODUCED_BYTES) {
        peer *named = entry[0] < QUERN_NETPLAY_SPECTATOR ? find_peer(udp, entry[0]) : NULL;
        quern__socket_address address = {.port = (uint16_t)(entry[17] | entry[18] << 8)};
        memcpy(address.bytes, entry + 1, sizeof address.bytes);
        if (named != NULL && !named->is_known && quern__socket_may_be_told(&udp->socket, from, &address))
            *named = (peer){.is_known = true, .is_told = true, .address = address};
    }
    return true;
}

static uint32_t receive_packet(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    quern_netplay_udp *udp = user_data;
    unsigned char datagram[DATAGRAM_BYTES + 1]; /* one more, so that larger ones are known */
    quern__socket_address from;
    uint32_t size;
    introduce(udp);
    for (uint32_t i = 0;
         i < IGNORED_MOST && quern__socket_receive(&udp->socket, &from, datagram, sizeof datagram, &size);
         i++) {
        if (size == 0) continue;
        const bool has_room = size > 1 && size <= DATAGRAM_BYTES && size - 1 <= capacity_bytes;
        if (has_room && (datagram[0] & INTRODUCTION) != 0 && read_introduction(udp, datagram, size, &from))
            continue;
        peer *sender = has_room ? find_peer(udp, datagram[0]) : NULL;
        if (sender == NULL || !learn(udp, sender, &from)) {
            udp->status.ignored_count++;
            continue;
        }
        udp->status.received_count++;
        *out_player = datagram[0];
        memcpy(bytes, datagram + 1, size - 1);
        return size - 1;
    }
    return 0;
}

static uint64_t now(void *user_data)
{
    (void)user_data;
    return quern__socket_now();
}

/* ----------------------------------------------------------------------------------------- the calls */

static quern_result open_socket(quern_netplay_udp *udp)
{
    const char *reason = "";
    int error;
    switch (quern__socket_open(&udp->socket, udp->def.address, udp->def.port, &reason, &error)) {
    case QUERN__SOCKET_OK:
        udp->def.address = NULL; /* the text need not stay valid */
        return QUERN_OK;
    case QUERN__SOCKET_NO_ADDRESS:
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_netplay_udp_create: address '%s' is none of this machine (%s): give one "
            "of its addresses, or NULL for all",
            udp->def.address == NULL ? "" : udp->def.address, reason);
    default:
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "quern_netplay_udp_create: the system gives no socket for port %u (error %d): is "
            "the port in use? Give another one, or 0 for any",
            udp->def.port, error);
    }
}

quern_result quern_netplay_udp_create(const quern_netplay_udp_def *def, quern_netplay_udp **out_udp)
{
    static const char function[] = "quern_netplay_udp_create";
    if (def == NULL) return fail_null(function, "def");
    if (out_udp == NULL) return fail_null(function, "out_udp");
    if (def->player >= PEERS)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: player is %u: give the index of a player, or QUERN_NETPLAY_SPECTATOR plus that of "
            "a spectator",
            function, def->player);
    const quern_allocator allocator =
        def->allocator.allocate != NULL ? def->allocator : quern_allocator_default();
    quern_netplay_udp *udp =
        allocator.allocate(allocator.user_data, sizeof *udp, _Alignof(quern_netplay_udp));
    if (udp == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a transport", function);
    memset(udp, 0, sizeof *udp);
    udp->def = *def;
    udp->allocator = allocator;
    udp->filled_ns = quern__socket_now();
    udp->left_bytes = (double)def->most_bytes_per_second / BURSTS_PER_SECOND;
    const quern_result result = open_socket(udp);
    if (result == QUERN_OK)
        *out_udp = udp;
    else
        allocator.release(allocator.user_data, udp, sizeof *udp, _Alignof(quern_netplay_udp));
    return result;
}

void quern_netplay_udp_destroy(quern_netplay_udp *udp)
{
    if (udp == NULL) return;
    const quern_allocator allocator = udp->allocator;
    quern__socket_close(&udp->socket);
    allocator.release(allocator.user_data, udp, sizeof *udp, _Alignof(quern_netplay_udp));
}

quern_result quern_netplay_udp_set_address(quern_netplay_udp *udp, uint32_t player, const char *name,
                                           uint16_t port)
{
    static const char function[] = "quern_netplay_udp_set_address";
    const char *reason = "";
    quern__socket_address found;
    if (udp == NULL) return fail_null(function, "udp");
    peer *known = find_peer(udp, player);
    if (known == NULL)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: player is %u: give another player than this machine's, %u, or "
                               "QUERN_NETPLAY_SPECTATOR plus the index of a spectator",
                               function, player, udp->def.player);
    if (name == NULL) {
        *known = (peer){0};
        return QUERN_OK;
    }
    if (port == 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the port of player %u is 0: give that of its machine (quern_netplay_udp_port)", function,
            player);
    if (!quern__socket_look_up(&udp->socket, name, port, &found, &reason))
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "%s: the address '%s' of player %u is not known (%s): check the name and the network", function,
            name, player, reason);
    *known = (peer){.is_known = true, .address = found};
    return QUERN_OK;
}

uint16_t quern_netplay_udp_port(const quern_netplay_udp *udp)
{
    return udp == NULL ? 0 : quern__socket_port(&udp->socket);
}

quern_result quern_netplay_udp_get_status(const quern_netplay_udp *udp,
                                          quern_netplay_udp_status *out_status)
{
    static const char function[] = "quern_netplay_udp_get_status";
    if (udp == NULL) return fail_null(function, "udp");
    if (out_status == NULL) return fail_null(function, "out_status");
    *out_status = udp->status;
    for (uint32_t i = 0; i < PEERS; i++)
        if (udp->peers[i].is_known) out_status->known |= 1u << i;
    return QUERN_OK;
}

quern_netplay_transport quern_netplay_udp_transport(quern_netplay_udp *udp)
{
    if (udp == NULL) return (quern_netplay_transport){0};
    return (quern_netplay_transport){send_packet, receive_packet, now, udp};
}
