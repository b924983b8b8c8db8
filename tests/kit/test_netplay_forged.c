/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Packets of netplay that no honest machine sends: forged ones, ones of other versions, and inputs of other players. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/failing_allocator.h"

#include <stdio.h>
#include <string.h>

Test(netplay, forged_packets_do_not_crash)
{
    random_source random = {77};
    for (uint32_t round = 0; round < 60; round++) {
        network net;
        machine machines[2];
        const quern_netplay_def def = {.player_count = 2, .timeout_seconds = round % 2 == 0 ? 0 : 0.01};
        open_network(&net, round);
        open_machines(machines, 2, &net, &def);
        for (net.tick = 0; net.tick < 60; net.tick++) {
            for (uint32_t i = 0; i < 2; i++)
                step_machine(&machines[i], NULL);
            sent_packet *forged = &net.packets[0];
            if (net.tick < 10 || net.count == 0 || forged->size < 20) continue;
            const uint32_t end = forged->size - 4;
            for (uint32_t k = 0; k < 3; k++)
                forged->bytes[2 + random_below(&random, end - 2)] = (unsigned char)random_next(&random);
            forged->bytes[2] = (unsigned char)((forged->bytes[2] & 15) | forged->from << 4);
            const uint32_t sum = quern__netplay_checksum(99, forged->bytes, end);
            for (uint32_t k = 0; k < 4; k++)
                forged->bytes[end + k] = (unsigned char)(sum >> (8 * k));
        }
        close_machines(machines, 2, &net);
    }
}

enum { PACKET_MAGIC = 0x51, PACKET_HEAD_BYTES = 23, CHUNKS = 3 };

/* Writes a packet of a kind of player 2 to player 1, as if it had heard player 1. Returns its body. The four numbers of
 * its head have five bytes each, with seven bits of the number. */
static unsigned char *forge_packet(const machine *to, sent_packet *packet, uint8_t kind,
                                   uint32_t body_bytes)
{
    const uint32_t echo[] = {7, to->netplay->players[2].sequence + 1, to->netplay->life,
                             to->netplay->sequence};
    *packet = (sent_packet){.from = 2, .to = 1, .size = PACKET_HEAD_BYTES + body_bytes + 4};
    packet->bytes[0] = PACKET_MAGIC;
    packet->bytes[1] = QUERN__NETPLAY_VERSION;
    packet->bytes[2] = (unsigned char)(kind | 2u << 4);
    for (uint32_t i = 0; i < 20; i++)
        packet->bytes[3 + i] = (unsigned char)((echo[i / 5] >> i % 5 * 7 & 0x7f) | (i % 5 < 4 ? 0x80u : 0));
    return packet->bytes + PACKET_HEAD_BYTES;
}

static void sign_packet(sent_packet *packet)
{
    const uint32_t end = packet->size - 4, sum = quern__netplay_checksum(99, packet->bytes, end);
    for (uint32_t k = 0; k < 4; k++)
        packet->bytes[end + k] = (unsigned char)(sum >> (8 * k));
}

/* A packet that announces a world of 4 GiB, of which it has nothing. */
Test(netplay, an_announced_world_costs_no_memory)
{
    network net;
    machine joining;
    failing_allocator *counting = failing_allocator_create();
    const quern_netplay_def def = {
        .player_count = 3, .joins = true, .allocator = failing_allocator_interface(counting)};
    open_network(&net, 1);
    open_machine(&joining, &net, 1, &def);
    const uint64_t before = failing_allocator_outstanding_bytes(counting);
    step_machine(&joining, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        sent_packet *packet = &net.packets[net.count++];
        const uint32_t chunk[] = {1, 5, UINT32_MAX,
                                  i == 0 ? 0 : 0xf0f0f0f0u}; /* transfer, frame, size, offset */
        memcpy(forge_packet(&joining, packet, CHUNKS, 20 + sizeof chunk), chunk, sizeof chunk);
        sign_packet(packet);
        step_machine(&joining, NULL);
        cr_assert_eq(joining.result, QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(status_of(&joining).ignored_count, 0);
    }
    cr_assert(joining.netplay->transfer.total_bytes == UINT32_MAX);
    cr_assert_leq(failing_allocator_outstanding_bytes(counting), before + 524288);
    close_machine(&joining);
    free(net.packets);
    failing_allocator_close(counting);
}

/* Gives a machine a packet with a version of the protocol. */
static void step_with_version(machine *to, uint32_t from, uint32_t version)
{
    network *net = to->net;
    sent_packet *packet = &net->packets[net->count++];
    memset(forge_packet(to, packet, CHUNKS, 40), 0, 40);
    packet->from = from;
    packet->bytes[1] = (unsigned char)version;
    packet->bytes[2] = (unsigned char)(CHUNKS | from << 4);
    sign_packet(packet);
    step_machine(to, NULL);
}

Test(netplay, another_version_of_the_protocol_is_named)
{
    for (uint32_t joins = 0; joins < 2; joins++) {
        network net;
        machine own;
        const quern_netplay_def def = {.player_count = 3, .joins = joins == 1};
        open_network(&net, 1);
        open_machine(&own, &net, 1, &def);
        step_with_version(&own, 2, 2);
        cr_assert_eq(own.result, QUERN_ERROR_UNAVAILABLE);
        cr_assert_not_null(strstr(quern_error_message(), "the machine of player 2 has version 2"), "%s",
                           quern_error_message());
        /* A machine that joins needs one other machine with its version, and a player all of them. */
        step_with_version(&own, 0, QUERN__NETPLAY_VERSION);
        cr_assert_eq(own.result, joins == 1 ? QUERN_OK : QUERN_ERROR_UNAVAILABLE);
        step_with_version(&own, 2, QUERN__NETPLAY_VERSION);
        cr_assert_eq(own.result, QUERN_OK);
        step_with_version(&own, 2, 2); /* a packet of a stranger, after the right one */
        cr_assert_eq(own.result, QUERN_OK);
        close_machines(&own, 1, &net);
    }
}

/* Puts a packet on its way as if a machine that plays from the start had sent it. Returns its body. */
static unsigned char *forge_as_player(const machine *to, sent_packet *packet, uint32_t from, uint8_t kind,
                                      uint32_t body_bytes)
{
    unsigned char *body = forge_packet(to, packet, kind, body_bytes);
    const uint32_t sequence = to->netplay->players[from].sequence + 1;
    packet->from = from;
    packet->to = to->player;
    packet->bytes[2] = (unsigned char)(kind | from << 4);
    packet->bytes[3] = 0x81; /* the life of a machine that plays from the start */
    for (uint32_t i = 0; i < 5; i++) {
        if (i > 0) packet->bytes[3 + i] = i < 4 ? 0x80 : 0;
        packet->bytes[8 + i] = (unsigned char)((sequence >> i * 7 & 0x7f) | (i < 4 ? 0x80u : 0));
    }
    memset(body, 0, body_bytes);
    return body;
}

/* Player 0 proposes with the highest ballot, and is gone: the others must be able to propose to drop it. */
Test(netplay, an_absurd_ballot_ends_no_agreement)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 400; net.tick++) {
        for (uint32_t i = 1; i < 3 && net.tick == 100; i++) {
            sent_packet *packet = &net.packets[net.count++];
            unsigned char *body = forge_as_player(&machines[i], packet, 0, 5, 9);
            memcpy(body, &machines[i].netplay->table.id, 4);
            body[4] = QUERN__NETPLAY_PROPOSE;
            memset(body + 5, 0xff, 4);
            sign_packet(packet);
        }
        for (uint32_t i = net.tick < 100 ? 0 : 1; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    for (uint32_t i = 1; i < 3; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 6);
        cr_assert_gt(machines[i].netplay->verified, 250);
    }
    close_machines(machines, 3, &net);
}

/* Player 2 sends an input of player 0, which takes part. */
Test(netplay, a_player_cannot_give_inputs_of_another)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 50; net.tick++)
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t player = 0; player <= 2; player += 2) {
        quern_netplay *netplay = machines[1].netplay;
        const uint32_t known = netplay->players[player].known_end;
        sent_packet *packet = &net.packets[net.count = 0];
        unsigned char *body = forge_as_player(&machines[1], packet, 2, 1, 13);
        memcpy(body + 1, &netplay->table.id, 4);
        body[5] = (unsigned char)known; /* next frame of the sender */
        body[6] = 128;
        body[7] = 0;
        body[8] = (unsigned char)(1u << 3 | player); /* one input, of that frame */
        body[9] = 0;
        body[10] = 2; /* the first byte differs from zero */
        body[11] = 2;
        packet->size -= 1;
        net.count = 1;
        sign_packet(packet);
        step_machine(&machines[1], NULL);
        cr_assert_eq(machines[1].result, QUERN_OK);
        cr_assert_eq(netplay->players[player].known_end, player == 2 ? known + 1 : known);
    }
    close_machines(machines, 3, &net);
}

/* The machine of player 1 sends other inputs to player 2 than to player 0. */
Test(netplay, a_player_that_sends_different_inputs_is_named)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3};
    char messages[3][512] = {{0}};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 100; net.tick++)
        for (uint32_t i = 0; i < 3; i++) {
            const bool lies = i == 1 && net.tick >= 50;
            net.liar = lies ? i + 1 : 0;
            step_machine(&machines[i], NULL);
            if (lies) change_inputs(&machines[i]);
            if (machines[i].result != QUERN_OK && messages[i][0] == '\0')
                snprintf(messages[i], sizeof messages[i], "%s", quern_error_message());
        }
    for (uint32_t i = 0; i < 3; i += 2)
        cr_assert_not_null(strstr(messages[i], "player 1 has sent other inputs"), "%u: %s", i, messages[i]);
    close_machines(machines, 3, &net);
}
