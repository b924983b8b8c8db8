/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Netplay over sockets of the loopback interface. What arrives there depends on the system: so tests wait until
 * something has happened, for at most some seconds. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/failing_allocator.h"

#include "kit/netplay_socket.h"

#include <quern/kit/netplay_udp.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SESSION = 99, TRIES = 20000 };

static void wait_ms(uint32_t ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

static quern_netplay_udp *open_udp(const quern_netplay_udp_def *def)
{
    quern_netplay_udp *udp;
    cr_assert_eq(quern_netplay_udp_create(def, &udp), QUERN_OK, "%s", quern_error_message());
    cr_assert_neq(quern_netplay_udp_port(udp), 0);
    return udp;
}

static quern_netplay_udp_status udp_status(const quern_netplay_udp *udp)
{
    quern_netplay_udp_status status;
    cr_assert_eq(quern_netplay_udp_get_status(udp, &status), QUERN_OK);
    return status;
}

/* Receives the next packet, waiting for it. Returns its size, or 0 if none arrives in a while. */
static uint32_t await(quern_netplay_udp *udp, uint32_t *player, unsigned char *bytes)
{
    const quern_netplay_transport transport = quern_netplay_udp_transport(udp);
    for (uint32_t i = 0; i < 300; i++) {
        const uint32_t size =
            transport.receive(transport.user_data, player, bytes, QUERN_NETPLAY_PACKET_BYTES);
        if (size > 0) return size;
        wait_ms(1);
    }
    return 0;
}

static void send_bytes(quern_netplay_udp *udp, uint32_t player, const void *bytes, uint32_t size)
{
    const quern_netplay_transport transport = quern_netplay_udp_transport(udp);
    transport.send(transport.user_data, player, bytes, size);
}

Test(netplay_udp, packets_of_all_sizes_arrive_from_the_player_that_sent_them)
{
    quern_netplay_udp *a = open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1"});
    quern_netplay_udp *b = open_udp(&(quern_netplay_udp_def){.player = 3});
    unsigned char sent[QUERN_NETPLAY_PACKET_BYTES], received[QUERN_NETPLAY_PACKET_BYTES];
    static const uint32_t sizes[] = {1, 2, 100, QUERN_NETPLAY_PACKET_BYTES};
    uint32_t player;
    cr_assert_eq(quern_netplay_udp_set_address(a, 3, "127.0.0.1", quern_netplay_udp_port(b)), QUERN_OK);
    cr_assert_eq(quern_netplay_udp_set_address(b, 0, "127.0.0.1", quern_netplay_udp_port(a)), QUERN_OK);
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(sent, (int)(i + 1), sizeof sent);
        send_bytes(a, 3, sent, sizes[i]);
        cr_assert_eq(await(b, &player, received), sizes[i]);
        cr_assert_eq(player, 0);
        cr_assert_arr_eq(received, sent, sizes[i]);
        send_bytes(b, 0, sent, sizes[i]);
        cr_assert_eq(await(a, &player, received), sizes[i]);
        cr_assert_eq(player, 3);
    }
    send_bytes(a, 5, sent, 10); /* no such player is known */
    send_bytes(a, 0, sent, 10); /* itself */
    send_bytes(a, 77, sent, 10);
    cr_assert_eq(udp_status(a).sent_count, 4);
    cr_assert_eq(udp_status(a).received_count, 4);
    cr_assert_eq(udp_status(a).known, 8);
    quern_netplay_udp_destroy(a);
    quern_netplay_udp_destroy(b);
}

/* Only machine 0 is known to the others: a player joins the two, and a spectator watches. */
Test(netplay_udp, machines_find_each_other_and_play, .timeout = 120)
{
    enum { MACHINES = 4, FRAMES = 150, WATCHER = 3 };
    machine machines[MACHINES];
    quern_netplay_udp *udp[MACHINES];
    network net;
    uint64_t *hashes = run_alone(3, 2, FRAMES);
    bool is_done = false;
    open_network(&net, 1);
    for (uint32_t i = 0; i < MACHINES; i++) {
        const bool spectates = i == WATCHER;
        udp[i] = open_udp(&(quern_netplay_udp_def){
            .player = spectates ? QUERN_NETPLAY_SPECTATOR : i, .introduces = true, .session = SESSION});
        if (i > 0)
            cr_assert_eq(
                quern_netplay_udp_set_address(udp[i], 0, "127.0.0.1", quern_netplay_udp_port(udp[0])),
                QUERN_OK, "%s", quern_error_message());
        quern_netplay_def def = {
            .player_count = 3, .input_delay = 2, .max_rollback = 8, .frame_count = FRAMES};
        def.spectator_count = spectates ? 0 : 1;
        def.spectates = spectates;
        open_machine(&machines[i], &net, spectates ? 0 : i, &def);
        def = machines[i].netplay->def;
        def.player = spectates ? 0 : i;
        def.transport = quern_netplay_udp_transport(udp[i]);
        quern_netplay_destroy(machines[i].netplay);
        cr_assert_eq(quern_netplay_create(&def, &machines[i].netplay), QUERN_OK, "%s",
                     quern_error_message());
    }
    for (uint32_t tries = 0; tries < TRIES && !is_done; tries++) {
        is_done = true;
        for (uint32_t i = 0; i < MACHINES; i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
            is_done = is_done && status_of(&machines[i]).confirmed_frame == FRAMES &&
                      status_of(&machines[i]).frame == FRAMES;
        }
        wait_ms(1);
    }
    for (uint32_t i = 0; i < MACHINES; i++) {
        cr_assert_eq(quern_world_hash(machines[i].played.world), hashes[FRAMES], "machine %u", i);
        if (i != WATCHER) cr_assert_eq(udp_status(udp[i]).known & 7, 7u & ~(1u << i));
        cr_assert_eq(udp_status(udp[i]).ignored_count, 0);
        close_machine(&machines[i]);
        quern_netplay_udp_destroy(udp[i]);
    }
    free(net.packets);
    free(hashes);
}

/* Opens a socket of the system. *out_port: its port. */
static int open_plain(uint16_t *out_port)
{
    const int opened = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof own;
    cr_assert_geq(opened, 0);
    cr_assert_eq(bind(opened, (const struct sockaddr *)&own, sizeof own), 0);
    cr_assert_eq(getsockname(opened, (struct sockaddr *)&own, &size), 0);
    *out_port = ntohs(own.sin_port);
    return opened;
}

static void send_plain(int from, const quern_netplay_udp *to, const void *bytes, uint32_t size)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(quern_netplay_udp_port(to)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    cr_assert_eq(sendto(from, bytes, size, 0, (const struct sockaddr *)&address, sizeof address),
                 (ssize_t)size);
}

Test(netplay_udp, strangers_and_damaged_datagrams_are_ignored)
{
    static const struct {
        uint32_t first, size;
    } wrong[] = {
        {1, 40},      /* in the name of a player with another address */
        {0, 40},      /* in the name of this machine */
        {16, 40},     /* no player */
        {2, 1},       /* empty */
        {2, 1300},    /* larger than a packet */
        {0x81, 28},   /* an introduction in the name of a player with another address */
        {0x82, 28},   /* an introduction of another session */
        {0x82, 20},   /* an introduction of no whole number of players */
        {0x82, 3},    /* and a short one */
        {0x80, 28},   /* and one of this machine itself */
        {0xff, 1201}, /* all bits */
    };
    const uint32_t count = sizeof wrong / sizeof wrong[0];
    quern_netplay_udp *udp =
        open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1", .introduces = true, .session = SESSION});
    uint16_t port, other_port;
    const int stranger = open_plain(&other_port), player_1 = open_plain(&port);
    unsigned char bytes[2000] = {0}, received[QUERN_NETPLAY_PACKET_BYTES];
    uint32_t player;
    cr_assert_eq(quern_netplay_udp_set_address(udp, 1, "127.0.0.1", port), QUERN_OK);
    for (uint32_t i = 0; i < count; i++) {
        bytes[0] = (unsigned char)wrong[i].first;
        send_plain(stranger, udp, bytes, wrong[i].size);
    }
    send_plain(player_1, udp, "\1word", 5);
    cr_assert_eq(await(udp, &player, received), 4);
    cr_assert_eq(player, 1);
    cr_assert_arr_eq(received, "word", 4);
    cr_assert_eq(udp_status(udp).ignored_count, count);
    cr_assert_eq(udp_status(udp).known, 2);

    /* An introduction may name this machine, no player, no port, and a player that is known: only player 3 is learnt. */
    static const uint32_t named[] = {0, 200, 4, 1, 3, 9};
    unsigned char introduction[9 + sizeof named / sizeof named[0] * 19] = {0x81, SESSION};
    for (uint32_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        unsigned char *entry = introduction + 9 + 19 * i;
        entry[0] = (unsigned char)named[i];
        memset(entry + 11, 0xff, 2);
        memcpy(entry + 13, (const unsigned char[]){127, 0, 0, 1}, 4);
        entry[17] = (unsigned char)(named[i] == 4 ? 0 : other_port);
        entry[18] = (unsigned char)(named[i] == 4 ? 0 : other_port >> 8);
    }
    send_plain(player_1, udp, introduction, sizeof introduction);
    send_plain(player_1, udp, "\1word", 5);
    cr_assert_eq(await(udp, &player, received), 4);
    cr_assert_eq(udp_status(udp).known, 2 | 8);
    send_plain(stranger, udp, "\1word", 5); /* player 1 has not moved there */
    send_plain(stranger, udp, "\3word", 5);
    cr_assert_eq(await(udp, &player, received), 4);
    cr_assert_eq(player, 3);
    cr_assert_eq(close(stranger), 0);
    cr_assert_eq(close(player_1), 0);
    quern_netplay_udp_destroy(udp);
}

/* Writes an introduction of a player with an address of IPv4. Returns its size. */
static uint32_t write_introduction(unsigned char *bytes, uint32_t sender, uint32_t player, uint16_t port)
{
    memset(bytes, 0, 28);
    bytes[0] = (unsigned char)(0x80 | sender);
    bytes[1] = SESSION;
    bytes[9] = (unsigned char)player;
    memset(bytes + 20, 0xff, 2);
    memcpy(bytes + 22, (const unsigned char[]){127, 0, 0, 1}, 4);
    bytes[26] = (unsigned char)port;
    bytes[27] = (unsigned char)(port >> 8);
    return 28;
}

/* Behind a router, a player has another address for each of the others. */
Test(netplay_udp, an_address_that_was_told_gives_way_to_the_one_that_datagrams_come_from)
{
    quern_netplay_udp *udp =
        open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1", .introduces = true, .session = SESSION});
    uint16_t port_1, port_2, told_port;
    const int player_1 = open_plain(&port_1), player_2 = open_plain(&port_2), told = open_plain(&told_port);
    unsigned char bytes[28], received[QUERN_NETPLAY_PACKET_BYTES];
    uint32_t player;
    cr_assert_eq(quern_netplay_udp_set_address(udp, 1, "127.0.0.1", port_1), QUERN_OK);
    send_plain(player_1, udp, bytes, write_introduction(bytes, 1, 2, told_port));
    send_plain(player_2, udp, "\2first", 6);
    cr_assert_eq(await(udp, &player, received), 5);
    cr_assert_eq(player, 2);
    send_plain(told, udp, "\2false", 6); /* now the address of player 2 is known */
    send_plain(player_1, udp, bytes, write_introduction(bytes, 1, 2, told_port));
    send_plain(player_2, udp, "\2again", 6);
    cr_assert_eq(await(udp, &player, received), 5);
    cr_assert_arr_eq(received, "again", 5);
    cr_assert_eq(udp_status(udp).ignored_count, 1);
    cr_assert_eq(close(player_1) | close(player_2) | close(told), 0);
    quern_netplay_udp_destroy(udp);
}

/* An address that means another machine here than on the machine that tells it is of no use. */
Test(netplay_udp, addresses_of_loopback_groups_and_other_links_are_not_told)
{
    enum { FAR, OWN, LINK, TELLERS };
    static const char *const tellers[TELLERS] = {"2001:db8::1", "::1", "fe80::1"};
    static const struct {
        const char *address;
        bool is_taken[TELLERS];
    } told[] = {
        {"2001:db8::2", {true, true, true}},
        {"::ffff:192.0.2.1", {true, true, true}},
        {"::1", {false, true, false}},
        {"::ffff:127.0.0.1", {false, true, false}},
        {"fe80::2", {false, false, true}},
        {"::", {false, false, false}},
        {"::ffff:0.0.0.0", {false, false, false}},
        {"ff02::1", {false, false, false}},
        {"::ffff:224.0.0.1", {false, false, false}},
        {"::ffff:255.255.255.255", {false, false, false}},
    };
    const quern__socket socket = {.has_six = true}, four = {.has_six = false};
    for (uint32_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        for (uint32_t k = 0; k < TELLERS; k++) {
            quern__socket_address teller = {.port = 1, .zone = k == LINK ? 7 : 0}, address = {.port = 2};
            cr_assert_eq(inet_pton(AF_INET6, tellers[k], teller.bytes), 1);
            cr_assert_eq(inet_pton(AF_INET6, told[i].address, address.bytes), 1);
            cr_assert_eq(quern__socket_may_be_told(&socket, &teller, &address), told[i].is_taken[k],
                         "%s told by %s", told[i].address, tellers[k]);
            const bool is_of_link = address.bytes[0] == 0xfe;
            cr_assert_eq(address.zone, is_of_link && k == LINK ? 7 : 0);
            if (address.bytes[10] != 0xff)
                cr_assert_not(quern__socket_may_be_told(&four, &teller, &address));
        }
    }
}

/* Skips tests of a system without IPv6. */
static bool has_six(void)
{
    quern_netplay_udp *udp = NULL;
    const bool has = quern_netplay_udp_create(&(quern_netplay_udp_def){.address = "::1"}, &udp) == QUERN_OK;
    quern_netplay_udp_destroy(udp);
    return has;
}

Test(netplay_udp, an_address_of_one_link_keeps_its_zone)
{
    quern_netplay_udp *udp = open_udp(&(quern_netplay_udp_def){0});
    if (has_six()) {
        cr_assert_eq(quern_netplay_udp_set_address(udp, 1, "fe80::1%lo", 7777), QUERN_OK, "%s",
                     quern_error_message());
        send_bytes(udp, 1, "word", 4);
        cr_assert_neq(udp_status(udp).system_error, EINVAL, "the system lacks the interface");
    }
    quern_netplay_udp_destroy(udp);
}

Test(netplay_udp, an_address_that_is_taken_or_of_another_machine_is_refused_as_that)
{
    quern_netplay_udp *other = NULL;
    cr_assert_eq(quern_netplay_udp_create(&(quern_netplay_udp_def){.address = "192.0.2.1"}, &other),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "'192.0.2.1' is none of this machine"));
    if (!has_six()) cr_skip_test("this machine has no IPv6");
    quern_netplay_udp *udp = open_udp(&(quern_netplay_udp_def){.address = "::1"});
    const quern_netplay_udp_def same = {.address = "::1", .port = quern_netplay_udp_port(udp)};
    cr_assert_eq(quern_netplay_udp_create(&same, &other), QUERN_ERROR_UNAVAILABLE);
    cr_assert_not_null(strstr(quern_error_message(), "is the port in use?"));
    const quern_netplay_udp_def all = {.port = same.port};
    cr_assert_eq(quern_netplay_udp_create(&all, &other), QUERN_ERROR_UNAVAILABLE, "not of IPv4 alone");
    quern_netplay_udp_destroy(udp);
}

Test(netplay_udp, the_largest_packet_is_sent_at_the_lowest_limit)
{
    quern_netplay_udp *a =
        open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1", .most_bytes_per_second = 2000});
    quern_netplay_udp *b = open_udp(&(quern_netplay_udp_def){.player = 1, .address = "127.0.0.1"});
    const unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES] = {0};
    cr_assert_eq(quern_netplay_udp_set_address(a, 1, "127.0.0.1", quern_netplay_udp_port(b)), QUERN_OK);
    for (uint32_t i = 0; i < 1000 && udp_status(a).sent_count == 0; i++) {
        send_bytes(a, 1, bytes, sizeof bytes);
        wait_ms(1);
    }
    cr_assert_eq(udp_status(a).sent_count, 1);
    quern_netplay_udp_destroy(a);
    quern_netplay_udp_destroy(b);
}

/* Sockets may not send to all machines of a network unless they ask for it. */
Test(netplay_udp, datagrams_that_the_system_refuses_are_counted)
{
    quern_netplay_udp *udp = open_udp(&(quern_netplay_udp_def){0});
    cr_assert_eq(quern_netplay_udp_set_address(udp, 1, "255.255.255.255", 4000), QUERN_OK);
    send_bytes(udp, 1, "hello", 5);
    const quern_netplay_udp_status status = udp_status(udp);
    cr_assert(status.failed_count == 1 && status.dropped_count == 0 && status.sent_count == 0);
    cr_assert_neq(status.system_error, 0);
    quern_netplay_udp_destroy(udp);
}

Test(netplay_udp, no_more_bytes_are_sent_than_allowed)
{
    quern_netplay_udp *a =
        open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1", .most_bytes_per_second = 40000});
    quern_netplay_udp *b = open_udp(&(quern_netplay_udp_def){.player = 1, .address = "127.0.0.1"});
    const unsigned char bytes[952] = {0}; /* 1001 with the headers */
    cr_assert_eq(quern_netplay_udp_set_address(a, 1, "127.0.0.1", quern_netplay_udp_port(b)), QUERN_OK);
    const quern_netplay_transport transport = quern_netplay_udp_transport(a);
    const uint64_t begin = transport.now(transport.user_data);
    for (uint32_t i = 0; i < 200; i++)
        send_bytes(a, 1, bytes, sizeof bytes);
    const double seconds = (double)(transport.now(transport.user_data) - begin) / 1e9;
    cr_assert_geq(udp_status(a).sent_count, 9);
    cr_assert_leq((double)udp_status(a).sent_count, 10 + 40 * seconds);
    cr_assert_eq(udp_status(a).sent_count + udp_status(a).dropped_count, 200);
    cr_assert_gt(udp_status(a).dropped_count, 0);
    quern_netplay_udp_destroy(a);
    quern_netplay_udp_destroy(b);
}

Test(netplay_udp, an_address_that_was_forgotten_is_learnt_anew)
{
    quern_netplay_udp *a = open_udp(&(quern_netplay_udp_def){.address = "127.0.0.1", .introduces = true});
    quern_netplay_udp_def def = {.player = 1, .address = "127.0.0.1", .introduces = true};
    unsigned char received[QUERN_NETPLAY_PACKET_BYTES];
    uint32_t player;
    for (uint32_t life = 0; life < 2; life++) {
        quern_netplay_udp *b = open_udp(&def);
        cr_assert_eq(quern_netplay_udp_set_address(b, 0, "127.0.0.1", quern_netplay_udp_port(a)), QUERN_OK);
        send_bytes(b, 0, "hello", 5);
        cr_assert_eq(await(a, &player, received), 5);
        if (life == 0) {
            quern_netplay_udp *again = open_udp(&def); /* the same player on another port */
            cr_assert_eq(quern_netplay_udp_set_address(again, 0, "127.0.0.1", quern_netplay_udp_port(a)),
                         QUERN_OK);
            send_bytes(again, 0, "hello", 5);
            cr_assert_eq(await(a, &player, received), 0, "the first one is known");
            quern_netplay_udp_destroy(again);
            cr_assert_eq(quern_netplay_udp_set_address(a, 1, NULL, 0), QUERN_OK);
        }
        quern_netplay_udp_destroy(b);
    }
    quern_netplay_udp_destroy(a);
}

Test(netplay_udp, wrong_uses_are_refused)
{
    quern_netplay_udp *udp = open_udp(&(quern_netplay_udp_def){.player = 1}), *other = NULL;
    quern_netplay_udp_status status;
    cr_assert_eq(quern_netplay_udp_create(NULL, &other), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_create(&(quern_netplay_udp_def){0}, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_create(&(quern_netplay_udp_def){.player = 16}, &other),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_create(&(quern_netplay_udp_def){.address = "no.such.invalid"}, &other),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "'no.such.invalid' is none of this machine"));
    cr_assert_eq(
        quern_netplay_udp_create(&(quern_netplay_udp_def){.port = quern_netplay_udp_port(udp)}, &other),
        QUERN_ERROR_UNAVAILABLE);
    cr_assert_not_null(strstr(quern_error_message(), "is the port in use?"));
    cr_assert_eq(quern_netplay_udp_set_address(NULL, 0, "localhost", 1), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_set_address(udp, 1, "localhost", 1), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_set_address(udp, 16, "localhost", 1), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_set_address(udp, 0, "localhost", 0), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_set_address(udp, 0, "no.such.invalid", 1), QUERN_ERROR_UNAVAILABLE);
    cr_assert_not_null(strstr(quern_error_message(), "of player 0 is not known"));
    cr_assert_eq(quern_netplay_udp_get_status(NULL, &status), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_get_status(udp, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_udp_port(NULL), 0);
    cr_assert_null(quern_netplay_udp_transport(NULL).send);
    quern_netplay_udp_destroy(udp);
    quern_netplay_udp_destroy(NULL);

    failing_allocator *memory = failing_allocator_create();
    failing_allocator_fail_from(memory, 1);
    cr_assert_eq(quern_netplay_udp_create(
                     &(quern_netplay_udp_def){.allocator = failing_allocator_interface(memory)}, &other),
                 QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_close(memory);
}
