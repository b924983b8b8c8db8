/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Gives the bytes to machines of a netplay session as packets of the other players: a byte with the length, kind and
 * sender, then what follows the head. Head and checksum are added, such that the packets count as fresh. Two machines play, one
 * joins, one has a world that differs, and one watches. No packet may crash a machine, and the world of each must be valid
 * after it. */

#include "kit/netplay_internal.h"
#include "tests/fuzz/fuzz.h"

#include <quern/quern.h>

enum { PLAYERS = 3, SPECTATORS = 2, HEAD_BYTES = 23, SESSION = 7, LENGTH_UNIT = 5 };
enum { KIND_FRAMES = 1, KIND_JOIN = 2, KIND_CHANGE = 5, STEP_ACCEPT = 3 };

typedef struct input {
    const uint8_t *bytes;
    size_t size, at;
    uint64_t now;
    const quern_netplay *netplay; /* the machine that receives */
} input;

typedef struct machine {
    quern_world *world;
    quern_schedule *schedule;
    quern_netplay *netplay;
} machine;

static void steer(quern_context *context, const quern_view *view)
{
    const quern_resource *inputs = quern_context_user_data(context);
    const uint32_t *given = quern_context_resource(context, *inputs);
    uint32_t *values = QUERN_COLUMN(view, 0, uint32_t);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] = values[i] * 5 + given[i % PLAYERS];
}

static void lose(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    (void)user_data;
    (void)bytes;
    require((player < PLAYERS || player - QUERN_NETPLAY_SPECTATOR < SPECTATORS) &&
            size_bytes <= QUERN_NETPLAY_PACKET_BYTES);
}

/* Makes the next packet of the rest of the bytes. The calls of a tick get one packet each, then none. */
static uint32_t receive(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    input *in = user_data;
    unsigned char *packet = bytes;
    if (in->at >= in->size || in->bytes[in->at++] == 0) return 0;
    uint32_t length = in->bytes[in->at - 1] * (uint32_t)LENGTH_UNIT;
    if (length > in->size - in->at) length = (uint32_t)(in->size - in->at);
    if (length < 2 || length - 2 + HEAD_BYTES + 4 > capacity_bytes) return 0;
    const uint8_t *names = in->bytes + in->at; /* kind and sender */
    const uint32_t player = names[1];
    const uint32_t numbers[] = {names[0] == KIND_JOIN ? 5 : 1, in->netplay->sequence + (uint32_t)in->at + 1,
                                in->netplay->life, in->netplay->sequence};
    packet[0] = 0x51;
    packet[1] = QUERN__NETPLAY_VERSION;
    packet[2] = (unsigned char)((names[0] & 15) | names[1] << 4);
    for (uint32_t i = 0; i < 20; i++) /* numbers of five bytes, with seven bits each */
        packet[3 + i] = (unsigned char)((numbers[i / 5] >> i % 5 * 7 & 0x7f) | (i % 5 < 4 ? 0x80u : 0));
    memcpy(packet + HEAD_BYTES, names + 2, length - 2);
    in->at += length;
    length += HEAD_BYTES - 2;
    /* the table of the machine, which the bytes cannot know */
    if (names[0] == KIND_FRAMES && length >= HEAD_BYTES + 5)
        memcpy(packet + HEAD_BYTES + 1, &in->netplay->table.id, 4);
    if (names[0] == KIND_CHANGE && length >= HEAD_BYTES + 4)
        memcpy(packet + HEAD_BYTES, &in->netplay->table.id, 4);
    if (names[0] == KIND_CHANGE && length >= HEAD_BYTES + 17 && packet[HEAD_BYTES + 4] == STEP_ACCEPT)
        memcpy(packet + HEAD_BYTES + 13, &in->netplay->table.id, 4);
    *out_player = player;
    const uint32_t sum = quern__netplay_checksum(SESSION, packet, length);
    memcpy(packet + length, &sum, 4);
    return length + 4;
}

static uint64_t tell_time(void *user_data)
{
    return ((input *)user_data)->now += 1000000;
}

typedef enum role { PLAYS, JOINS, WATCHES } role;

static void open_machine(machine *opened, input *in, role as, quern_resource *inputs)
{
    static const uint8_t earlier[5000] = {0}; /* a list of zeros has the hashes of its parts */
    quern_component value;
    const quern_resource_def resource = {
        .name = "inputs", .size_bytes = PLAYERS * sizeof(uint32_t), .alignment_bytes = 4};
    must(quern_world_create(NULL, &opened->world));
    must(QUERN_COMPONENT_REGISTER(opened->world, &value, uint32_t));
    must(quern_resource_register(opened->world, &resource, inputs));
    must(quern_schedule_create(opened->world, NULL, &opened->schedule));
    const quern_system_def system = {.name = "steer",
                                     .run = steer,
                                     .terms = {quern_term_write(value)},
                                     .resources = {{*inputs, QUERN_ACCESS_READ}},
                                     .user_data = inputs};
    must(quern_schedule_add_system(opened->schedule, &system, NULL));
    for (uint32_t i = 0; i < PLAYERS && as == PLAYS; i++)
        must(quern_entity_create_with(opened->world, &value, NULL, 1, NULL));
    const quern_netplay_def def = {.world = opened->world,
                                   .schedule = opened->schedule,
                                   .inputs = *inputs,
                                   .input_bytes = sizeof(uint32_t),
                                   .player_count = PLAYERS,
                                   .step_seconds = 1.0 / 60,
                                   .hash_interval = 4,
                                   .save_interval = 3,
                                   .earlier_world = as == PLAYS ? NULL : earlier,
                                   .earlier_world_bytes = sizeof earlier,
                                   .timeout_seconds = 0.1,
                                   .session = SESSION,
                                   .joins = as == JOINS,
                                   .spectates = as == WATCHES,
                                   .spectator_count = as == WATCHES ? 0 : SPECTATORS,
                                   .reports = true,
                                   .transport = {lose, receive, tell_time, in}};
    must(quern_netplay_create(&def, &opened->netplay));
}

static void play(const uint8_t *bytes, size_t size, role as, uint32_t silent_ticks)
{
    machine played;
    quern_resource inputs;
    input in = {.bytes = bytes};
    open_machine(&played, &in, as, &inputs);
    in.netplay = played.netplay;
    for (uint32_t tick = 0; tick < silent_ticks; tick++)
        (void)quern_netplay_advance(played.netplay, NULL, &tick, NULL);
    in.size = size;
    for (uint32_t tick = 0; tick < 100 && (in.at < size || tick < 4); tick++)
        (void)quern_netplay_advance(played.netplay, NULL, &tick, NULL);
    must(quern_world_validate(played.world));
    quern_netplay_destroy(played.netplay);
    quern_schedule_destroy(played.schedule);
    quern_world_destroy(played.world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    play((const uint8_t *)copy, size, PLAYS, 0);
    play((const uint8_t *)copy, size, PLAYS, 6);
    play((const uint8_t *)copy, size, JOINS, 0);
    play((const uint8_t *)copy, size, WATCHES, 0);
    free(copy);
    return 0;
}
