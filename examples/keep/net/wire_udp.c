/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Game packets go by UDP from each machine to each other one (quern/kit/netplay_udp.h). Messages go by TCP to the host, at
 * the port of the same number: ASK (a number), ANSWER (its keyed hash), START (the host's WireStart), DONE. A message is a
 * byte, and what it has, which is filled up with zeros. */

#include "wire_kinds.h"

#include "../game/check.h"

#include <quern/kit/netplay_udp.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGE_BYTES = 1 + sizeof(WireStart),
    CONNECTIONS_MAX = 16,
    NO_PLAYER = PLAYERS_MAX,
    NO_SOCKET = -1,
    MESSAGES_AT_ONCE = 8, /* that are read of a machine in one poll: it cannot hold the game up */
    JOIN_SECONDS = 5      /* for which a machine tries to connect */
};

typedef enum Message { MESSAGE_ASK = 1, MESSAGE_ANSWER, MESSAGE_START, MESSAGE_DONE } Message;

/* A machine that is connected to the host, or the host. */
typedef struct Machine {
    int socket;      /* NO_SOCKET: none */
    uint32_t player; /* NO_PLAYER: the machine waits for a seat */
    Question question;
    bool is_done, was_present;
    unsigned char bytes[MESSAGE_BYTES]; /* of a message that has arrived in part */
    size_t size_bytes;
} Machine;

struct UdpWire {
    bool is_host, has_started, is_lost, all_done, is_connected;
    unsigned char key[WIRE_KEY_BYTES];
    int listener; /* of the host */
    WireStart start;
    Machine machines[CONNECTIONS_MAX]; /* elsewhere than on the host: only the host, as the first one */
    quern_netplay_udp *udp;            /* elsewhere than on the host: NULL until START has arrived */
    quern_netplay_transport transport;
    uint32_t present; /* players that took part: bit i for player i */
    char name[256];   /* of the host */
    uint16_t port;
    uint64_t give_up_ns;
};

/* --------------------------------------------------------------------------------------------- sockets */

static void close_socket(int *opened)
{
    if (*opened != NO_SOCKET) close(*opened);
    *opened = NO_SOCKET;
}

static void make_immediate(int opened)
{
    const int yes = 1;
    fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) | O_NONBLOCK);
    fcntl(opened, F_SETFD, FD_CLOEXEC);
    setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Opens a port for connections by IPv6 and IPv4, or by IPv4 alone if there is no IPv6. */
static int open_listener(uint16_t port)
{
    static const int families[] = {AF_INET6, AF_INET};
    for (int i = 0; i < 2; i++) {
        const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
        const void *address = i == 0 ? (const void *)&six : (const void *)&four;
        const int no = 0, yes = 1;
        int opened = socket(families[i], SOCK_STREAM, 0);
        if (opened == NO_SOCKET) continue;
        if (i == 0) setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        make_immediate(opened);
        if (bind(opened, address, i == 0 ? sizeof six : sizeof four) == 0 &&
            listen(opened, CONNECTIONS_MAX) == 0)
            return opened;
        close_socket(&opened);
    }
    return NO_SOCKET;
}

/* Begins to connect to the host. */
static int open_connection(const UdpWire *wire)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    int opened = NO_SOCKET;
    snprintf(port, sizeof port, "%u", wire->port);
    if (getaddrinfo(wire->name, port, &hints, &found) != 0) return NO_SOCKET;
    for (const struct addrinfo *at = found; at != NULL && opened == NO_SOCKET; at = at->ai_next) {
        opened = socket(at->ai_family, SOCK_STREAM, 0);
        if (opened == NO_SOCKET) continue;
        make_immediate(opened);
        if (connect(opened, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS)
            close_socket(&opened);
    }
    freeaddrinfo(found);
    return opened;
}

/* --------------------------------------------------------------------------------------------- opening */

static UdpWire *create(const WireOptions *options)
{
    UdpWire *wire = check_memory(calloc(1, sizeof *wire));
    memcpy(wire->key, options->key, sizeof wire->key);
    wire->listener = NO_SOCKET;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        wire->machines[i] = (Machine){.socket = NO_SOCKET, .player = NO_PLAYER};
    return wire;
}

static bool open_udp(UdpWire *wire, uint32_t player, uint16_t port, uint64_t session)
{
    const quern_netplay_udp_def def = {
        .player = player, .port = port, .introduces = true, .session = session};
    if (quern_netplay_udp_create(&def, &wire->udp) != QUERN_OK) return false;
    wire->transport = quern_netplay_udp_transport(wire->udp);
    return true;
}

UdpWire *udp_wire_host(const WireOptions *options, char *message, size_t message_bytes)
{
    UdpWire *wire = create(options);
    wire->is_host = true;
    wire->listener = open_listener(options->port);
    if (wire->listener != NO_SOCKET && open_udp(wire, 0, options->port, options->session)) return wire;
    snprintf(message, message_bytes, "port %u: cannot be opened; is another game using it?", options->port);
    udp_wire_close(wire);
    return NULL;
}

UdpWire *udp_wire_join(const char *name, uint16_t port, const WireOptions *options, char *message,
                       size_t message_bytes)
{
    UdpWire *wire = create(options);
    snprintf(wire->name, sizeof wire->name, "%s", name);
    wire->port = port;
    wire->give_up_ns = wire_now(NULL) + JOIN_SECONDS * (uint64_t)1000000000;
    wire->machines[0].socket = open_connection(wire);
    if (wire->machines[0].socket != NO_SOCKET) return wire;
    snprintf(message, message_bytes, "%s: there is no such host, or no way to it", name);
    udp_wire_close(wire);
    return NULL;
}

void udp_wire_close(UdpWire *wire)
{
    if (wire == NULL) return;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        close_socket(&wire->machines[i].socket);
    close_socket(&wire->listener);
    quern_netplay_udp_destroy(wire->udp);
    free(wire);
}

/* ---------------------------------------------------------------------------------------- game packets */

void udp_wire_send(UdpWire *wire, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    if (wire->udp != NULL) wire->transport.send(wire->transport.user_data, player, bytes, size_bytes);
}

uint32_t udp_wire_receive(UdpWire *wire, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    if (wire->udp == NULL) return 0;
    return wire->transport.receive(wire->transport.user_data, out_player, bytes, capacity_bytes);
}

/* -------------------------------------------------------------------------------------------- messages */

static void lose_machine(UdpWire *wire, Machine *machine)
{
    close_socket(&machine->socket);
    *machine = (Machine){.socket = NO_SOCKET, .player = NO_PLAYER};
    wire->is_lost = !wire->is_host;
}

/* A message fits the buffer of a new connection: if it cannot be sent, the connection is of no use. */
static void send_message(UdpWire *wire, Machine *machine, Message message, const void *content,
                         size_t content_bytes)
{
    unsigned char bytes[MESSAGE_BYTES] = {(unsigned char)message};
    if (machine->socket == NO_SOCKET) return;
    if (content_bytes > 0) memcpy(bytes + 1, content, content_bytes);
    if (send(machine->socket, bytes, sizeof bytes, MSG_NOSIGNAL) != (ssize_t)sizeof bytes)
        lose_machine(wire, machine);
}

static void take_start(UdpWire *wire, const unsigned char *bytes)
{
    WireStart start;
    memcpy(&start, bytes, sizeof start);
    if (wire->is_host || wire->has_started || start.player_count > PLAYERS_MAX ||
        start.player >= start.player_count || start.player == 0)
        return;
    wire->start = start;
    wire->has_started = open_udp(wire, start.player, 0, start.session) &&
                        quern_netplay_udp_set_address(wire->udp, 0, wire->name, wire->port) == QUERN_OK;
    wire->is_lost = !wire->has_started;
}

static void take_number(UdpWire *wire, Machine *machine)
{
    uint64_t number;
    memcpy(&number, machine->bytes + 1, sizeof number);
    if (wire->is_host && machine->bytes[0] == MESSAGE_ANSWER &&
        !wire_take_answer(&machine->question, wire->key, number))
        lose_machine(wire, machine);
    if (wire->is_host || machine->bytes[0] != MESSAGE_ASK) return;
    const uint64_t answer = wire_answer(wire->key, number);
    send_message(wire, machine, MESSAGE_ANSWER, &answer, sizeof answer);
}

/* Reads what a machine has sent. */
static void read_messages(UdpWire *wire, Machine *machine)
{
    for (uint32_t i = 0; i < MESSAGES_AT_ONCE && machine->socket != NO_SOCKET; i++) {
        const ssize_t count = recv(machine->socket, machine->bytes + machine->size_bytes,
                                   MESSAGE_BYTES - machine->size_bytes, 0);
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
        if (count <= 0) {
            lose_machine(wire, machine);
            return;
        }
        machine->size_bytes += (size_t)count;
        if (machine->size_bytes < MESSAGE_BYTES) continue;
        machine->size_bytes = 0;
        if (wire->is_host && !machine->question.is_answered && machine->bytes[0] != MESSAGE_ANSWER) {
            lose_machine(wire, machine); /* a stranger */
            return;
        }
        if (machine->bytes[0] == MESSAGE_START) take_start(wire, machine->bytes + 1);
        if (machine->bytes[0] == MESSAGE_ASK || machine->bytes[0] == MESSAGE_ANSWER)
            take_number(wire, machine);
        if (machine->bytes[0] != MESSAGE_DONE) continue;
        machine->is_done = true;
        wire->all_done = !wire->is_host;
    }
}

void udp_wire_done(UdpWire *wire)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        send_message(wire, &wire->machines[i], MESSAGE_DONE, NULL, 0);
}

bool udp_wire_all_done(const UdpWire *wire, uint32_t players)
{
    if (!wire->is_host) return wire->all_done || wire->is_lost;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].player != NO_PLAYER && (players >> wire->machines[i].player & 1) != 0 &&
            !wire->machines[i].is_done)
            return false;
    return true;
}

bool udp_wire_started(const UdpWire *wire, WireStart *out_start)
{
    if (wire->has_started) *out_start = wire->start;
    return wire->has_started;
}

bool udp_wire_is_lost(const UdpWire *wire)
{
    return wire->is_lost;
}

/* --------------------------------------------------------------------------------------------- polling */

static bool is_waiting(const Machine *machine)
{
    return machine->socket != NO_SOCKET && machine->player == NO_PLAYER && machine->question.is_answered;
}

uint32_t udp_wire_waiting(const UdpWire *wire)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        count += is_waiting(&wire->machines[i]);
    return count;
}

/* Returns a free place for a connection; if there is none, that of the machine that has not answered for longest; NULL if
 * all have answered. */
static Machine *free_place(UdpWire *wire)
{
    Machine *oldest = NULL;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        if (machine->socket == NO_SOCKET) return machine;
        if (machine->question.is_answered) continue;
        if (oldest == NULL || machine->question.until_ns < oldest->question.until_ns) oldest = machine;
    }
    if (oldest != NULL) lose_machine(wire, oldest);
    return oldest;
}

static void accept_machines(UdpWire *wire)
{
    for (;;) {
        int accepted = accept(wire->listener, NULL, NULL);
        if (accepted == NO_SOCKET) return;
        make_immediate(accepted);
        Machine *machine = free_place(wire);
        if (machine == NULL) {
            close_socket(&accepted);
            continue;
        }
        *machine = (Machine){.socket = accepted, .player = NO_PLAYER, .question = wire_ask(wire->key)};
        send_message(wire, machine, MESSAGE_ASK, &machine->question.number,
                     sizeof machine->question.number);
    }
}

static void leave_silent_machines(UdpWire *wire)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].socket != NO_SOCKET && wire_is_late(&wire->machines[i].question))
            lose_machine(wire, &wire->machines[i]);
}

/* Leaves machines whose player took part and is out now, and gives free seats to machines that wait for one. */
static void seat_machines(UdpWire *wire, const WireStart *start, uint32_t seats)
{
    uint32_t taken = 1u;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        if (machine->player == NO_PLAYER) continue;
        const bool is_out = (seats >> machine->player & 1) != 0;
        if (is_out && machine->was_present) {
            lose_machine(wire, machine);
            continue;
        }
        machine->was_present = !is_out;
        taken |= 1u << machine->player;
    }
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        Machine *machine = &wire->machines[i];
        const uint32_t open = seats & ~taken;
        if (!is_waiting(machine) || open == 0) continue;
        machine->player = (uint32_t)__builtin_ctz(open);
        taken |= 1u << machine->player;
        WireStart given = *start;
        given.player = machine->player;
        send_message(wire, machine, MESSAGE_START, &given, sizeof given);
    }
}

/* Forgets the addresses of players that are out, so that they can return from elsewhere. */
static void forget_players(UdpWire *wire, const WireStart *start, uint32_t seats)
{
    const uint32_t players = (1u << start->player_count) - 1;
    for (uint32_t i = 1; i < PLAYERS_MAX && wire->udp != NULL; i++)
        if (((seats & wire->present) >> i & 1) != 0 && i != start->player)
            (void)quern_netplay_udp_set_address(wire->udp, i, NULL, 0);
    wire->present = players & ~seats;
}

/* Goes on connecting to the host, which may not listen yet. */
static void connect_to_host(UdpWire *wire)
{
    int fault = 0;
    socklen_t size = sizeof fault;
    struct pollfd ready = {.fd = wire->machines[0].socket, .events = POLLOUT};
    if (ready.fd != NO_SOCKET && poll(&ready, 1, 0) == 0) {
        wire->is_lost = wire_now(NULL) > wire->give_up_ns;
        return;
    }
    if (ready.fd != NO_SOCKET) getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &fault, &size);
    wire->is_connected = ready.fd != NO_SOCKET && fault == 0;
    if (wire->is_connected) return;
    close_socket(&wire->machines[0].socket);
    if (wire_now(NULL) > wire->give_up_ns)
        wire->is_lost = true;
    else
        wire->machines[0].socket = open_connection(wire);
}

void udp_wire_poll(UdpWire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats)
{
    if (wire->is_lost) return;
    if (wait_ms > 0) nanosleep(&(struct timespec){.tv_nsec = (long)wait_ms * 1000000}, NULL);
    if (wire->is_host)
        accept_machines(wire);
    else if (!wire->is_connected)
        connect_to_host(wire);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (wire->machines[i].socket != NO_SOCKET && (wire->is_host || wire->is_connected))
            read_messages(wire, &wire->machines[i]);
    if (start != NULL) forget_players(wire, start, seats);
    if (!wire->is_host) return;
    leave_silent_machines(wire);
    seat_machines(wire, start, seats);
}
