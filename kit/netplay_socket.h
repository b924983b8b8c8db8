/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_NETPLAY_SOCKET_H
#define QUERN_KIT_NETPLAY_SOCKET_H

/* A socket of UDP that does not block, as the operating system has it. */

#include <stdbool.h>
#include <stdint.h>

/* An address of IPv6; one of IPv4 is mapped into it, so that two addresses are the same if their members are. */
typedef struct quern__socket_address {
    unsigned char bytes[16];
    uint32_t zone; /* number of the interface, for an address of one link (fe80::1%eth0); 0 for others */
    uint16_t port;
} quern__socket_address;

typedef struct quern__socket {
    intptr_t handle;
    bool has_six; /* whether it is one of IPv6 */
} quern__socket;

typedef enum quern__socket_error {
    QUERN__SOCKET_OK,
    QUERN__SOCKET_NO_ADDRESS, /* an address of another machine, or none */
    QUERN__SOCKET_FULL,       /* the system has no room for a datagram now */
    QUERN__SOCKET_REFUSED     /* by the system */
} quern__socket_error;

/* Opens a socket at an address of this machine, or at all if that is NULL. *out_reason: why there is no such address.
 * *out_error: number of the system. */
quern__socket_error quern__socket_open(quern__socket *out_socket, const char *address, uint16_t port,
                                       const char **out_reason, int *out_error);
void quern__socket_close(const quern__socket *socket);

/* Returns the port of a socket, or 0. */
uint16_t quern__socket_port(const quern__socket *socket);

/* Finds the address of a name; may take seconds. Returns false if there is none: *out_reason says why. */
bool quern__socket_look_up(const quern__socket *socket, const char *name, uint16_t port,
                           quern__socket_address *out_address, const char **out_reason);

/* Completes an address that a machine at `teller` has told, for example by the zone. Returns false if the socket cannot reach it, or
 * if it means another machine here than there, as one of loopback does. */
bool quern__socket_may_be_told(const quern__socket *socket, const quern__socket_address *teller,
                               quern__socket_address *address);

quern__socket_error quern__socket_send(const quern__socket *socket, const quern__socket_address *to,
                                       const unsigned char *bytes, uint32_t size, int *out_error);

/* Receives a datagram. Returns false if there is none now. *out_size: its size, at most the capacity; 0 if it is empty or
 * the system reports something else, and there may be more. */
bool quern__socket_receive(const quern__socket *socket, quern__socket_address *out_from,
                           unsigned char *bytes, uint32_t capacity, uint32_t *out_size);

/* Returns a time in nanoseconds that never goes back. */
uint64_t quern__socket_now(void);

#endif
