/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_NETPLAY_UDP_H
#define QUERN_KIT_NETPLAY_UDP_H

/** @file
 * A transport of netplay (<quern/kit/netplay.h>) over UDP, by the sockets of the system, for IPv4 and IPv6.
 *
 *     quern_netplay_udp *udp;
 *     quern_netplay_udp_create(&(quern_netplay_udp_def){.player = 1, .port = 7777, .introduces = true}, &udp);
 *     quern_netplay_udp_set_address(udp, 0, "example.org", 7777);
 *     def.transport = quern_netplay_udp_transport(udp);
 *
 * Machines send to each other directly, so each needs the addresses of all others. With `introduces`, it is enough that
 * one machine is known to all: machines tell each other once per second the addresses that they know, and the address of
 * a player that is not known yet is that of the first datagram that names it. An address that another machine has told holds
 * until a datagram of the player comes from another one. A machine behind a router that lets nothing
 * in needs a rule of the router for its port, or the program's own relay.
 *
 * A datagram is one byte with the sender and a packet: at most 1201 bytes, which every network carries in one piece.
 * Datagrams from addresses that are not those of their player are ignored. The sender of a datagram can be forged: give
 * the session a key (quern_netplay_def.key) where strangers can reach the port.
 *
 * Threads: that of quern_netplay_advance. */

#include <quern/kit/netplay.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A socket and the addresses of players; see quern_netplay_udp_create. */
typedef struct quern_netplay_udp quern_netplay_udp;

/** Definition of a transport over UDP. */
typedef struct quern_netplay_udp_def {
    /** Index of this machine's player; of a spectator, QUERN_NETPLAY_SPECTATOR plus its index. */
    uint32_t player QUERN__ZERO;
    uint16_t port QUERN__ZERO; /**< Port of this machine; 0: any free one. */
    const char *address
        QUERN__ZERO; /**< Address of this machine to receive at, as text; NULL: all of them. */
    /** Most bytes that are sent per second, headers of UDP and IPv6 included; packets beyond are dropped, and netplay sends what
     * was in them again. A quarter of a second's bytes may be sent at once, and the largest datagram always. 0: no limit. */
    uint32_t most_bytes_per_second QUERN__ZERO;
    /** Whether addresses of players that are not known are learnt: from their own datagrams, and from other machines. All
     * machines of a session should have it or none. */
    bool introduces QUERN__ZERO;
    /** With introduces: number that the machines of a session have in common; those of another one are not introduced. */
    uint64_t session QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_netplay_udp_def;

/** Counts of a transport, in datagrams. */
typedef struct quern_netplay_udp_status {
    uint64_t sent_count;     /**< That were sent. */
    uint64_t received_count; /**< With packets of players. */
    uint64_t
        dropped_count; /**< That were not sent, for most_bytes_per_second or because the system's buffer was full. */
    uint64_t failed_count;  /**< That the system refused to send. */
    uint64_t ignored_count; /**< That came from strangers, or are none of netplay's. */
    uint32_t
        known; /**< Players whose address is known: bit i for player i, from bit 8 on for spectators. */
    int system_error; /**< The system's number for the last refusal to send; 0: none. */
} quern_netplay_udp_status;

/** Opens a socket. Errors: NULL_ARGUMENT; INVALID_ARGUMENT (a player out of range, an address that is none of this
 * machine); UNAVAILABLE (the port is in use, or the system gives no socket); OUT_OF_MEMORY. */
QUERN_API quern_result quern_netplay_udp_create(const quern_netplay_udp_def *def,
                                                quern_netplay_udp **out_udp);

/** Closes the socket. Destroy the netplay that uses the transport first. NULL is allowed. */
QUERN_API void quern_netplay_udp_destroy(quern_netplay_udp *udp);

/** Sets the address of a player, or of a spectator as in quern_netplay_udp_def: a name, which is looked up and may take
 * seconds, or a number such as "192.0.2.1", "2001:db8::1" or, on one link, "fe80::1%eth0". NULL forgets the address, so that it can be learnt anew when a
 * player has been dropped. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no such player, this machine's own, port 0),
 * UNAVAILABLE (the name is not known, or has no address that the socket can reach). */
QUERN_API quern_result quern_netplay_udp_set_address(quern_netplay_udp *udp, uint32_t player,
                                                     const char *name, uint16_t port);

/** Returns the port of this machine, which the system has chosen if the definition has none; 0 for NULL. */
QUERN_API uint16_t quern_netplay_udp_port(const quern_netplay_udp *udp);

/** Returns the counts. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_netplay_udp_get_status(const quern_netplay_udp *udp,
                                                    quern_netplay_udp_status *out_status);

/** Returns the transport for quern_netplay_def. It is valid until quern_netplay_udp_destroy. All members are NULL if udp is
 * NULL; quern_netplay_create then says so. */
QUERN_API quern_netplay_transport quern_netplay_udp_transport(quern_netplay_udp *udp);

#ifdef __cplusplus
}
#endif

#endif
