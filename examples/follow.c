/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A world that follows another one: it begins with an archive, and then gets the changes of each frame as bytes.
 * Here both are in one program. docs/history.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Unit {
    uint64_t number;
} Unit;

typedef struct Aim {
    quern_entity at;
    int32_t damage;
} Aim;

typedef struct Side {
    quern_world *world;
    quern_component unit, aim;
} Side;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void open_side(Side *side)
{
    check(quern_world_create(NULL, &side->world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(side->world, &side->unit, Unit, number));
    check(QUERN_COMPONENT_REGISTER_FIELDS(side->world, &side->aim, Aim, at, damage));
}

/* A unit comes, aims at the one before, and that one goes after a while. */
static void play(const Side *side, uint64_t frame, quern_entity *units)
{
    const quern_component list[] = {side->unit, side->aim};
    const void *values[] = {&(Unit){frame}, &(Aim){frame > 0 ? units[frame - 1] : (quern_entity){0}, 1}};
    check(quern_entity_create_with(side->world, list, values, 2, &units[frame]));
    if (frame >= 3) check(quern_entity_destroy(side->world, units[frame - 3]));
}

static void send_changes(quern_history *history, uint64_t from, uint64_t to, quern_byte_buffer *packet)
{
    quern_delta *delta;
    packet->size_bytes = 0;
    check(quern_delta_create(history, from, to, &delta));
    check(quern_delta_write(delta, NULL, quern_sink_bytes(packet)));
    quern_delta_destroy(delta);
}

/* Sends only the entities that the query matches. */
static void send_seen(quern_history *history, quern_query *seen, uint64_t from, uint64_t to,
                      quern_byte_buffer *packet)
{
    const quern_delta_def def = {.query = seen, .skip_resources = true};
    quern_delta *delta;
    packet->size_bytes = 0;
    check(quern_delta_create_limited(history, from, to, &def, &delta));
    check(quern_delta_write(delta, NULL, quern_sink_bytes(packet)));
    quern_delta_destroy(delta);
}

static void receive_changes(quern_delta_applier *applier, const quern_byte_buffer *packet)
{
    check(quern_delta_apply(applier, quern_source_bytes(packet->bytes, packet->size_bytes)));
}

int main(void)
{
    enum { FRAMES = 8 };
    Side server, client;
    quern_entity units[FRAMES];
    quern_history *history;
    quern_delta_applier *applier;
    quern_byte_buffer archive = {0}, packet = {0};
    open_side(&server);
    open_side(&client);
    play(&server, 0, units);

    check(quern_world_save(server.world, quern_sink_bytes(&archive), NULL));
    check(
        quern_world_load(client.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    check(quern_history_create(server.world, NULL, &history));
    check(quern_history_save(history, 0, NULL));
    check(quern_delta_applier_create(client.world, &applier));
    for (uint64_t frame = 1; frame < FRAMES; frame++) {
        play(&server, frame, units);
        check(quern_history_save(history, frame, NULL));
        send_changes(history, frame - 1, frame, &packet);
        receive_changes(applier, &packet);
        const bool is_same = quern_world_hash_by(server.world, server.unit) ==
                             quern_world_hash_by(client.world, client.unit);
        printf("frame %u: %u bytes, %s\n", (unsigned)frame, (unsigned)packet.size_bytes,
               is_same ? "same" : "different");
    }
    /* another client sees only what aims */
    quern_query *seen;
    check(quern_query_create(server.world, &(quern_query_def){.terms = {quern_term_with(server.aim)}},
                             &seen));
    send_seen(history, seen, FRAMES - 2, FRAMES - 1, &packet);
    printf("what aims: %u bytes\n", (unsigned)packet.size_bytes);
    quern_query_destroy(seen);
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    quern_byte_buffer_release(&packet);
    quern_byte_buffer_release(&archive);
    quern_world_destroy(client.world);
    quern_world_destroy(server.world);
    return EXIT_SUCCESS;
}
