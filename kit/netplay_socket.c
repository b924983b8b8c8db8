/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A socket of IPv6 also takes IPv4, as mapped addresses; where the system has no IPv6, it is one of IPv4. */
#include "kit/netplay_socket.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <winsock2.h>
#include <ws2tcpip.h>
#define SYSTEM_SOCKET(handle) ((SOCKET)(handle))
#define SYSTEM_SIZE(size)     ((int)(size))
#else
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define SYSTEM_SOCKET(handle) ((int)(handle))
#define SYSTEM_SIZE(size)     ((size_t)(size))
#endif

enum { NO_HANDLE = -1 };

/* ----------------------------------------------------------------------------------------- the system */

#if defined(_WIN32)

static bool start_sockets(void)
{
    WSADATA data;
    return WSAStartup(MAKEWORD(2, 2), &data) == 0;
}

static void stop_sockets(void)
{
    WSACleanup();
}

static void close_handle(intptr_t handle)
{
    closesocket(SYSTEM_SOCKET(handle));
}

static bool stop_blocking(intptr_t handle)
{
    u_long is_on = 1;
    return ioctlsocket(SYSTEM_SOCKET(handle), (long)FIONBIO, &is_on) == 0;
}

static int last_error(void)
{
    return WSAGetLastError();
}

static bool is_full(int error)
{
    return error == WSAEWOULDBLOCK || error == WSAENOBUFS;
}

/* Whether an address is none of this machine. */
static bool is_none_of_own(int error)
{
    return error == WSAEADDRNOTAVAIL;
}

/* Whether the port is one of another program. */
static bool is_taken(int error)
{
    return error == WSAEADDRINUSE || error == WSAEACCES;
}

/* Whether there may be more to receive: the system also reports datagrams that did not arrive at another machine, and
 * those that are too large. */
static bool is_passing(int error)
{
    return error == WSAECONNRESET || error == WSAENETRESET || error == WSAEMSGSIZE || error == WSAEINTR;
}

uint64_t quern__socket_now(void)
{
    LARGE_INTEGER count, per_second;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&per_second);
    const uint64_t whole = (uint64_t)(count.QuadPart / per_second.QuadPart),
                   rest = (uint64_t)(count.QuadPart % per_second.QuadPart);
    return whole * 1000000000u + rest * 1000000000u / (uint64_t)per_second.QuadPart;
}

#else

static bool start_sockets(void)
{
    return true;
}

static void stop_sockets(void) {}

static void close_handle(intptr_t handle)
{
    close(SYSTEM_SOCKET(handle));
}

static bool stop_blocking(intptr_t handle)
{
    const int flags = fcntl(SYSTEM_SOCKET(handle), F_GETFL, 0);
    return flags >= 0 && fcntl(SYSTEM_SOCKET(handle), F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(SYSTEM_SOCKET(handle), F_SETFD, FD_CLOEXEC) == 0;
}

static int last_error(void)
{
    return errno;
}

static bool is_full(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

static bool is_none_of_own(int error)
{
    return error == EADDRNOTAVAIL;
}

static bool is_taken(int error)
{
    return error == EADDRINUSE || error == EACCES;
}

static bool is_passing(int error)
{
    return error == ECONNREFUSED || error == EINTR || error == EHOSTUNREACH || error == ENETUNREACH;
}

uint64_t quern__socket_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif

/* ----------------------------------------------------------------------------------------- addresses */

/* An address of the system, of a socket's family. */
typedef struct system_address {
    struct sockaddr_storage bytes;
    socklen_t size;
} system_address;

static quern__socket_address read_address(const system_address *from)
{
    quern__socket_address address = {.bytes = {[10] = 0xff, [11] = 0xff}};
    if (from->bytes.ss_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, &from->bytes, sizeof six);
        memcpy(address.bytes, &six.sin6_addr, sizeof address.bytes);
        address.zone = (uint32_t)six.sin6_scope_id;
        address.port = ntohs(six.sin6_port);
    } else {
        struct sockaddr_in four;
        memcpy(&four, &from->bytes, sizeof four);
        memcpy(address.bytes + 12, &four.sin_addr, 4);
        address.port = ntohs(four.sin_port);
    }
    return address;
}

static bool is_mapped(const quern__socket_address *address)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

static system_address make_address(const quern__socket *socket, const quern__socket_address *from)
{
    system_address address = {0};
    if (socket->has_six) {
        struct sockaddr_in6 six = {
            .sin6_family = AF_INET6, .sin6_port = htons(from->port), .sin6_scope_id = from->zone};
        memcpy(&six.sin6_addr, from->bytes, sizeof from->bytes);
        memcpy(&address.bytes, &six, sizeof six);
        address.size = sizeof six;
    } else {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(from->port)};
        memcpy(&four.sin_addr, from->bytes + 12, 4);
        memcpy(&address.bytes, &four, sizeof four);
        address.size = sizeof four;
    }
    return address;
}

/* Finds the address of a name; NULL: all addresses of this machine. Of several ones, the system names first one that it has a
 * route to: so it is asked for those of both families. */
static bool look_up(bool has_six, const char *name, uint16_t port, system_address *out_address,
                    const char **out_reason)
{
    char service[8];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = has_six ? AF_INET6 : AF_INET,
                                   .ai_socktype = SOCK_DGRAM,
                                   .ai_flags = name == NULL ? AI_PASSIVE
                                               : has_six    ? AI_V4MAPPED | AI_ALL
                                                            : 0};
    snprintf(service, sizeof service, "%u", port);
    const int error = getaddrinfo(name, service, &hints, &found);
    if (error != 0 || found == NULL || found->ai_addrlen > sizeof out_address->bytes) {
        *out_reason = error != 0 ? gai_strerror(error) : "no address";
        if (found != NULL) freeaddrinfo(found);
        return false;
    }
    *out_address = (system_address){.size = (socklen_t)found->ai_addrlen};
    memcpy(&out_address->bytes, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

static bool is_loopback(const quern__socket_address *address)
{
    static const unsigned char six[16] = {[15] = 1};
    return is_mapped(address) ? address->bytes[12] == 127 : memcmp(address->bytes, six, sizeof six) == 0;
}

/* Whether an address is valid on one link only. */
static bool is_of_link(const quern__socket_address *address)
{
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

/* Whether an address is that of one machine: not of a group, of all machines, or of none. */
static bool is_of_one(const quern__socket_address *address)
{
    static const unsigned char none[16] = {0};
    if (is_mapped(address)) return address->bytes[12] != 0 && address->bytes[12] < 224;
    return address->bytes[0] != 0xff && memcmp(address->bytes, none, sizeof none) != 0;
}

bool quern__socket_may_be_told(const quern__socket *socket, const quern__socket_address *teller,
                               quern__socket_address *address)
{
    address->zone = is_of_link(address) ? teller->zone : 0;
    return address->port != 0 && (socket->has_six || is_mapped(address)) && is_of_one(address) &&
           (!is_loopback(address) || is_loopback(teller)) && (!is_of_link(address) || is_of_link(teller));
}

bool quern__socket_look_up(const quern__socket *socket, const char *name, uint16_t port,
                           quern__socket_address *out_address, const char **out_reason)
{
    system_address found;
    if (!look_up(socket->has_six, name, port, &found, out_reason)) return false;
    *out_address = read_address(&found);
    return true;
}

/* ------------------------------------------------------------------------------------------- sockets */

/* Opens a socket of a family. */
static quern__socket_error open_family(quern__socket *opened, const char *address, uint16_t port,
                                       bool has_six, const char **out_reason, int *out_error)
{
    system_address own;
    if (!look_up(has_six, address, port, &own, out_reason)) return QUERN__SOCKET_NO_ADDRESS;
    opened->has_six = has_six;
    opened->handle = (intptr_t)socket(has_six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
    if (opened->handle != NO_HANDLE) {
        const int is_off = 0;
        if (has_six)
            (void)setsockopt(SYSTEM_SOCKET(opened->handle), IPPROTO_IPV6, IPV6_V6ONLY,
                             (const char *)&is_off, sizeof is_off);
        if (bind(SYSTEM_SOCKET(opened->handle), (const struct sockaddr *)&own.bytes, own.size) == 0 &&
            stop_blocking(opened->handle))
            return QUERN__SOCKET_OK;
    }
    *out_error = last_error();
    if (opened->handle != NO_HANDLE) close_handle(opened->handle);
    if (!is_none_of_own(*out_error)) return QUERN__SOCKET_REFUSED;
    *out_reason = "of another machine";
    return QUERN__SOCKET_NO_ADDRESS;
}

quern__socket_error quern__socket_open(quern__socket *out_socket, const char *address, uint16_t port,
                                       const char **out_reason, int *out_error)
{
    *out_error = 0;
    if (!start_sockets()) return QUERN__SOCKET_REFUSED;
    quern__socket_error error = open_family(out_socket, address, port, true, out_reason, out_error);
    /* A port that is taken for IPv6 may be free for IPv4, but machines with IPv6 would not be heard at it. */
    if (error != QUERN__SOCKET_OK && !(error == QUERN__SOCKET_REFUSED && is_taken(*out_error)))
        error = open_family(out_socket, address, port, false, out_reason, out_error);
    if (error != QUERN__SOCKET_OK) stop_sockets();
    return error;
}

void quern__socket_close(const quern__socket *socket)
{
    close_handle(socket->handle);
    stop_sockets();
}

uint16_t quern__socket_port(const quern__socket *socket)
{
    system_address own = {.size = sizeof own.bytes};
    if (getsockname(SYSTEM_SOCKET(socket->handle), (struct sockaddr *)&own.bytes, &own.size) != 0) return 0;
    return read_address(&own).port;
}

quern__socket_error quern__socket_send(const quern__socket *socket, const quern__socket_address *to,
                                       const unsigned char *bytes, uint32_t size, int *out_error)
{
    const system_address address = make_address(socket, to);
    if (sendto(SYSTEM_SOCKET(socket->handle), (const char *)bytes, SYSTEM_SIZE(size), 0,
               (const struct sockaddr *)&address.bytes, address.size) >= 0)
        return QUERN__SOCKET_OK;
    *out_error = last_error();
    return is_full(*out_error) ? QUERN__SOCKET_FULL : QUERN__SOCKET_REFUSED;
}

bool quern__socket_receive(const quern__socket *socket, quern__socket_address *out_from,
                           unsigned char *bytes, uint32_t capacity, uint32_t *out_size)
{
    system_address from = {.size = sizeof from.bytes};
    *out_size = 0;
    const int64_t size = recvfrom(SYSTEM_SOCKET(socket->handle), (char *)bytes, SYSTEM_SIZE(capacity), 0,
                                  (struct sockaddr *)&from.bytes, &from.size);
    if (size < 0) return is_passing(last_error());
    *out_from = read_address(&from);
    *out_size = (uint32_t)size;
    return true;
}
