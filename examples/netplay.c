/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Netplay: two machines play one game. Here both are in one process, and the network between them delays packets and
 * loses some of them. docs/kit.md explains it. */
#include <quern/kit/netplay.h>
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAYERS = 2, TICKS = 600, MAX_PACKETS = 64, LOST_PERCENT = 20, MAX_DELAY = 6 };

typedef struct Input {
    int32_t steer; /* -1, 0 or 1 */
} Input;

typedef struct Inputs {
    Input of[PLAYERS];
} Inputs;

typedef struct Ship {
    int32_t player;
    float x, speed;
} Ship;

/* ---------------------------------------------------------------------------------------- the game */

QUERN_SYSTEM(fly, (Ship, ship))
{
    const Inputs *inputs = QUERN_RESOURCE(context, const Inputs);
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        ship[i].speed += 10 * (float)inputs->of[ship[i].player].steer * seconds;
        ship[i].x += ship[i].speed * seconds;
    }
}

/* Creates the world that all machines create. Returns the resource with the inputs. */
static quern_resource open_game(quern_world **world, quern_schedule **schedule)
{
    quern_resource inputs;
    QUERN_MUST(quern_world_create(NULL, world));
    QUERN_MUST(quern_schedule_create(*world, NULL, schedule));
    QUERN_MUST(QUERN_REGISTER(*world, Ship, player, x, speed));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(*world, &inputs, Inputs));
    for (int32_t player = 0; player < PLAYERS; player++)
        QUERN_MUST(QUERN_CREATE(*world, NULL, QUERN_VALUE(Ship, .player = player)));
    QUERN_MUST(QUERN_ADD_SYSTEM(*schedule, fly, .resources = {{inputs, QUERN_ACCESS_READ}}));
    return inputs;
}

/* ------------------------------------------------------------------------------------- the network */

typedef struct Packet {
    uint32_t to, size, arrival; /* tick of arrival */
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} Packet;

typedef struct Network {
    Packet packets[MAX_PACKETS];
    uint32_t count, tick, sent_count, lost_count;
} Network;

typedef struct Machine {
    Network *network;
    uint32_t player;
    quern_world *world;
    quern_schedule *schedule;
    quern_netplay *netplay;
} Machine;

static void send_packet(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    Network *network = ((Machine *)user_data)->network;
    const uint64_t bits = quern_random(1, network->sent_count++);
    if (network->count == MAX_PACKETS || quern_random_below(bits, 100) < LOST_PERCENT) {
        network->lost_count++;
        return;
    }
    Packet *packet = &network->packets[network->count++];
    packet->to = player;
    packet->size = size_bytes;
    packet->arrival = network->tick + 1 + quern_random_below(quern_random(bits, 0), MAX_DELAY);
    memcpy(packet->bytes, bytes, size_bytes);
}

static uint32_t receive_packet(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    const Machine *machine = user_data;
    Network *network = machine->network;
    for (uint32_t i = 0; i < network->count; i++) {
        Packet *packet = &network->packets[i];
        const uint32_t size = packet->size;
        if (packet->to != machine->player || packet->arrival > network->tick || size > capacity_bytes)
            continue;
        memcpy(bytes, packet->bytes, size);
        *out_player = 1 - machine->player;
        *packet = network->packets[--network->count];
        return size;
    }
    return 0;
}

static uint64_t tell_time(void *user_data)
{
    return ((const Machine *)user_data)->network->tick * (uint64_t)1000000000 / 60;
}

/* ------------------------------------------------------------------------------------ the machines */

static void open_machine(Machine *machine, Network *network, uint32_t player)
{
    *machine = (Machine){.network = network, .player = player};
    const quern_resource inputs = open_game(&machine->world, &machine->schedule);
    const quern_netplay_def def = {.world = machine->world,
                                   .schedule = machine->schedule,
                                   .inputs = inputs,
                                   .input_bytes = sizeof(Input),
                                   .player_count = PLAYERS,
                                   .player = player,
                                   .step_seconds = 1.0 / 60,
                                   .input_delay = 2,
                                   .transport = {send_packet, receive_packet, tell_time, machine}};
    QUERN_MUST(quern_netplay_create(&def, &machine->netplay));
}

/* Reports what the session did. */
static void report(const Machine *machine)
{
    quern_netplay_status status;
    QUERN_MUST(quern_netplay_get_status(machine->netplay, &status));
    printf("player %u: frame %d, %d confirmed; went back %d times and ran %d frames again\n",
           machine->player, (int)status.frame, (int)status.confirmed_frame, (int)status.rollback_count,
           (int)status.rerun_count);
}

int main(void)
{
    static Network network;
    Machine machines[PLAYERS];
    for (uint32_t i = 0; i < PLAYERS; i++)
        open_machine(&machines[i], &network, i);
    for (network.tick = 0; network.tick < TICKS; network.tick++)
        for (uint32_t i = 0; i < PLAYERS; i++) {
            /* a game asks the keyboard; these players steer another way every half second */
            const uint64_t bits = quern_random(i, network.tick / 30);
            const Input input = {.steer = (int32_t)quern_random_below(bits, 3) - 1};
            QUERN_MUST(quern_netplay_advance(machines[i].netplay, NULL, &input, NULL));
        }
    for (uint32_t i = 0; i < PLAYERS; i++)
        report(&machines[i]);
    printf("%u of %u packets were lost\n", network.lost_count, network.sent_count);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        quern_netplay_destroy(machines[i].netplay);
        quern_schedule_destroy(machines[i].schedule);
        quern_world_destroy(machines[i].world);
    }
}
