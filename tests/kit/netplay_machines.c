/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/kit/netplay_machines.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------ the game */

/* Returns what this machine, and no other, adds to the ship. */
static uint32_t take_fault(game *played, const Ship *ship)
{
    if (played->wrong_frame == 0 || played->netplay->frame != played->wrong_frame || ship->player != 1)
        return 0;
    if (played->is_wrong_once) played->wrong_frame = 0;
    return 1;
}

static void steer(quern_context *context, const quern_view *view)
{
    game *played = quern_context_user_data(context);
    const Input *inputs = quern_context_resource(context, played->inputs);
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    for (uint32_t i = 0; i < view->count; i++) {
        const Input *input = &inputs[ships[i].player];
        ships[i].x =
            (int32_t)((uint32_t)ships[i].x * 5 + (uint32_t)input->steer + take_fault(played, &ships[i]));
        if (!input->fires) continue;
        const Shot shot = {ships[i].x, 7};
        const void *values[] = {&shot};
        record_entity_with(quern_context_commands(context), &played->shot, values, 1);
    }
}

static void fly(quern_context *context, const quern_view *view)
{
    Shot *shots = QUERN_COLUMN(view, 0, Shot);
    for (uint32_t i = 0; i < view->count; i++) {
        shots[i].x ^= (int32_t)view->entities[i].bits;
        if (--shots[i].left == 0)
            quern_commands_destroy(quern_context_commands(context), view->entities[i]);
    }
}

/* Counts runs, so that the interval of the schedule is part of the state. */
static void grow(quern_context *context, const quern_view *view)
{
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    for (uint32_t i = 0; i < view->count; i++)
        ships[i].x = (int32_t)((uint32_t)ships[i].x + 1000);
}

void (*machines_furnish)(game *furnished, bool has_entities);
void (*machines_unfurnish)(game *furnished);

void open_game(game *played, uint32_t player_count, bool has_entities)
{
    played->player_count = player_count;
    played->world = setup_world();
    const uint32_t input_bytes = played->input_bytes != 0 ? played->input_bytes : (uint32_t)sizeof(Input);
    const quern_resource_def inputs = {
        .name = "inputs", .size_bytes = player_count * input_bytes, .alignment_bytes = 2};
    cr_assert_eq(QUERN_COMPONENT_REGISTER(played->world, &played->ship, Ship), QUERN_OK);
    cr_assert_eq(QUERN_COMPONENT_REGISTER(played->world, &played->shot, Shot), QUERN_OK);
    cr_assert_eq(QUERN_COMPONENT_REGISTER(played->world, &played->rock, Rock), QUERN_OK);
    cr_assert_eq(quern_resource_register(played->world, &inputs, &played->inputs), QUERN_OK);
    cr_assert_eq(quern_schedule_create(played->world, NULL, &played->schedule), QUERN_OK);
    const quern_system_def systems[] = {
        {.name = "steer",
         .run = steer,
         .terms = {quern_term_write(played->ship)},
         .resources = {{played->inputs, QUERN_ACCESS_READ}},
         .user_data = played},
        {.name = "fly", .run = fly, .terms = {quern_term_write(played->shot)}},
        {.name = "grow", .run = grow, .terms = {quern_term_write(played->ship)}, .interval_seconds = 0.1}};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(quern_schedule_add_system(played->schedule, &systems[i], NULL), QUERN_OK);
    for (uint32_t i = 0; i < player_count && has_entities; i++) {
        const Ship ship = {(int32_t)i, (int32_t)i};
        const void *values[] = {&ship};
        cr_assert_eq(quern_entity_create_with(played->world, &played->ship, values, 1, NULL), QUERN_OK);
    }
    if (machines_furnish != NULL) machines_furnish(played, has_entities);
}

void close_game(game *played)
{
    quern_schedule_destroy(played->schedule);
    if (machines_unfurnish != NULL) machines_unfurnish(played);
    quern_world_destroy(played->world);
}

Input input_of(uint32_t player, uint32_t frame)
{
    random_source random = {(frame / 6 + 1) * 977u + player * 31u};
    return (Input){.steer = (int16_t)random_below(&random, 3), .fires = random_below(&random, 4) == 0};
}

/* ----------------------------------------------------------------------------------------- the network */

static void add_packet(network *net, uint32_t from, uint32_t to, const void *bytes, uint32_t size)
{
    cr_assert_lt(net->count, MAX_PACKETS);
    sent_packet *packet = &net->packets[net->count++];
    *packet = (sent_packet){.from = from, .to = to, .size = size};
    packet->arrival = net->tick + net->latency + 1 + random_below(&net->random, net->max_delay);
    memcpy(packet->bytes, bytes, size);
    if (!random_chance(&net->random, net->damaged_percent)) return;
    if (random_chance(&net->random, 50))
        packet->size = random_below(&net->random, size);
    else
        packet->bytes[random_below(&net->random, size)] ^=
            (unsigned char)(1u << random_below(&net->random, 8));
}

void change_inputs(const machine *changed)
{
    for (uint32_t i = 0; i < QUERN__NETPLAY_WINDOW; i++)
        changed->netplay->players[changed->player].inputs[i][0] ^= 1;
}

static void send_packet(void *user_data, uint32_t player, const void *bytes, uint32_t size)
{
    machine *from = user_data;
    network *net = from->net;
    cr_assert_leq(size, QUERN_NETPLAY_PACKET_BYTES);
    /* Player 0 gets its packet first, and then the others get theirs. */
    if (net->liar == from->player + 1 && player == 0) change_inputs(from);
    if (((net->silent | net->cut) >> from->player & 1) != 0 || (net->cut >> player & 1) != 0 ||
        random_chance(&net->random, net->lost_percent))
        return;
    add_packet(net, from->player, player, bytes, size);
    if (random_chance(&net->random, net->repeated_percent))
        add_packet(net, from->player, player, bytes, size);
}

static uint32_t receive_packet(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity)
{
    const machine *to = user_data;
    network *net = to->net;
    for (uint32_t i = 0; i < net->count; i++) {
        sent_packet *packet = &net->packets[i];
        if (packet->to != to->player || packet->arrival > net->tick) continue;
        const uint32_t size = packet->size;
        cr_assert_leq(size, capacity);
        *out_player = packet->from;
        memcpy(bytes, packet->bytes, size);
        *packet = net->packets[--net->count];
        if (size == 0) return receive_packet(user_data, out_player, bytes, capacity);
        return size;
    }
    return 0;
}

static uint64_t tell_time(void *user_data)
{
    return ((const machine *)user_data)->net->tick * TICK_NS;
}

void open_network(network *net, uint64_t seed)
{
    *net = (network){.packets = calloc(MAX_PACKETS, sizeof(sent_packet)), .random = {seed}, .max_delay = 1};
}

void open_machine(machine *opened, network *net, uint32_t player, const quern_netplay_def *like)
{
    quern_netplay_def def = *like;
    const bool loads = like->joins || like->spectates;
    *opened = (machine){.net = net, .player = like->spectates ? QUERN_NETPLAY_SPECTATOR + player : player};
    opened->played.input_bytes = like->input_bytes;
    open_game(&opened->played, like->player_count, !loads && like->input_bytes == 0);
    def.world = opened->played.world;
    def.schedule = opened->played.schedule;
    def.inputs = opened->played.inputs;
    if (def.input_bytes == 0) def.input_bytes = sizeof(Input);
    def.player = player;
    def.step_seconds = 1.0 / 60;
    if (def.hash_interval == 0) def.hash_interval = HASH_INTERVAL;
    def.session = 99;
    def.transport = (quern_netplay_transport){send_packet, receive_packet, tell_time, opened};
    cr_assert_eq(quern_netplay_create(&def, &opened->netplay), QUERN_OK, "%s", quern_error_message());
}

void open_machines(machine *machines, uint32_t count, network *net, const quern_netplay_def *like)
{
    for (uint32_t i = 0; i < count; i++)
        open_machine(&machines[i], net, i, like);
}

void close_machine(machine *closed)
{
    quern_netplay_destroy(closed->netplay);
    close_game(&closed->played);
}

void close_machines(machine *machines, uint32_t count, network *net)
{
    for (uint32_t i = 0; i < count; i++)
        close_machine(&machines[i]);
    free(net->packets);
}

quern_netplay_status status_of(const machine *asked)
{
    quern_netplay_status status;
    cr_assert_eq(quern_netplay_get_status(asked->netplay, &status), QUERN_OK);
    return status;
}

void step_machine(machine *stepped, quern_jobs *jobs)
{
    const Input input = input_of(stepped->player, stepped->netplay->frame);
    stepped->result = quern_netplay_advance(stepped->netplay, jobs, &input, NULL);
}

/* ----------------------------------------------------------------------------------------- comparing */

uint64_t *run_alone(uint32_t player_count, uint32_t delay, uint32_t frame_count)
{
    game alone = {0};
    uint64_t *hashes = calloc(frame_count + 1, sizeof *hashes);
    open_game(&alone, player_count, true);
    for (uint32_t frame = 0; frame <= frame_count; frame++) {
        Input *inputs = quern_resource_get(alone.world, alone.inputs);
        hashes[frame] = quern_world_hash(alone.world);
        for (uint32_t i = 0; i < player_count; i++)
            inputs[i] = frame >= delay ? input_of(i, frame - delay) : (Input){0};
        cr_assert_eq(quern_schedule_run(alone.schedule, NULL, 1.0 / 60), QUERN_OK);
    }
    close_game(&alone);
    return hashes;
}

uint32_t compare_hashes(const machine *compared, const uint64_t *hashes, uint32_t frame_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < QUERN__NETPLAY_HASHES; i++) {
        const quern__netplay_hash *hash = &compared->netplay->hashes[i];
        if (hash->frame > compared->netplay->verified || hash->frame > frame_count) continue;
        cr_assert_eq(hash->hash, hashes[hash->frame], "player %u, frame %u", compared->player, hash->frame);
        count++;
    }
    return count;
}

uint64_t play_plan(const plan *played, uint64_t seed)
{
    network net;
    machine machines[MAX_MACHINES];
    quern_jobs *jobs = NULL;
    const quern_netplay_def def = {.player_count = played->player_count,
                                   .input_delay = played->input_delay,
                                   .max_rollback = played->max_rollback};
    uint64_t *hashes = run_alone(played->player_count, played->input_delay, played->frame_count);
    uint32_t compared_count = 0;
    bool is_done = false;
    open_network(&net, seed);
    net.max_delay = played->max_delay;
    net.lost_percent = played->lost_percent;
    net.repeated_percent = played->repeated_percent;
    net.damaged_percent = played->damaged_percent;
    if (played->thread_count > 1)
        cr_assert_eq(quern_jobs_create(&(quern_jobs_def){.thread_count = played->thread_count}, &jobs),
                     QUERN_OK);
    open_machines(machines, played->player_count, &net, &def);
    for (net.tick = 0; !is_done; net.tick++) {
        cr_assert_lt(net.tick, 100ull * played->frame_count, "the machines wait for each other");
        is_done = true;
        for (uint32_t i = 0; i < played->player_count; i++) {
            step_machine(&machines[i], jobs);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
            compared_count += compare_hashes(&machines[i], hashes, played->frame_count);
            is_done = is_done && machines[i].netplay->verified >= played->frame_count;
        }
    }
    cr_assert_gt(compared_count, played->frame_count / HASH_INTERVAL);
    for (uint32_t i = 0; i < played->player_count; i++) {
        const quern_netplay_status status = status_of(&machines[i]);
        cr_assert_eq(status.present, (1u << played->player_count) - 1);
        cr_assert_eq(status.ignored_count > 0, played->damaged_percent > 0);
        close_machine(&machines[i]);
    }
    quern_jobs_destroy(jobs);
    free(hashes);
    free(net.packets);
    return net.tick;
}
