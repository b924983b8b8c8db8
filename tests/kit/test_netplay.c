/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

/* Netplay between machines in one process. A network delays, loses, repeats and reorders packets by a seed; each
 * machine is compared with a world that runs alone, with the same inputs. */

#include "kit/netplay_internal.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/stress.h"

#include <quern/kit/netplay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MACHINES = 4, MAX_PACKETS = 8192, TICK_NS = 1000000, HASH_INTERVAL = 5 };

/* ------------------------------------------------------------------------------------------ the game */

typedef struct Input {
    int16_t steer;
    uint8_t fires, padding;
} Input;

typedef struct Ship {
    int32_t player, x;
} Ship;

typedef struct Shot {
    int32_t x, left;
} Shot;

typedef struct game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component ship, shot;
    quern_resource inputs;
    uint32_t player_count;
    uint32_t input_bytes;         /* of inputs that no system reads; 0: inputs are an Input */
    const quern_netplay *netplay; /* the session, on machines that differ */
    uint32_t wrong_frame;         /* frame in which this machine changes the ship of player 1; 0: none */
    bool is_wrong_once;           /* whether it does so only the first time that the frame runs */
} game;

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

static void open_game(game *played, uint32_t player_count, bool has_entities)
{
    played->player_count = player_count;
    played->world = setup_world();
    const uint32_t input_bytes = played->input_bytes != 0 ? played->input_bytes : (uint32_t)sizeof(Input);
    const quern_resource_def inputs = {
        .name = "inputs", .size_bytes = player_count * input_bytes, .alignment_bytes = 2};
    cr_assert_eq(QUERN_COMPONENT_REGISTER(played->world, &played->ship, Ship), QUERN_OK);
    cr_assert_eq(QUERN_COMPONENT_REGISTER(played->world, &played->shot, Shot), QUERN_OK);
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
}

static void close_game(game *played)
{
    quern_schedule_destroy(played->schedule);
    quern_world_destroy(played->world);
}

/* The input that a player gives while `frame` is its next frame. It stays the same for some frames, as a player's does. */
static Input input_of(uint32_t player, uint32_t frame)
{
    random_source random = {(frame / 6 + 1) * 977u + player * 31u};
    return (Input){.steer = (int16_t)random_below(&random, 3), .fires = random_below(&random, 4) == 0};
}

/* ----------------------------------------------------------------------------------------- the network */

typedef struct sent_packet {
    uint32_t from, to, size;
    uint64_t arrival;
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} sent_packet;

typedef struct network {
    sent_packet *packets;
    uint32_t count;
    uint64_t tick;
    random_source random;
    uint32_t latency; /* ticks that each packet takes, in addition to a random delay */
    uint32_t max_delay, lost_percent, repeated_percent, damaged_percent;
    uint32_t silent; /* machines whose packets are all lost: bit i for machine i */
    uint32_t cut;    /* the same, and none reaches them */
    uint32_t liar;   /* machine that sends other inputs to player 0 than to the others, plus 1; 0: none */
} network;

typedef struct machine {
    network *net;
    game played;
    quern_netplay *netplay;
    uint32_t player;
    quern_result result;
} machine;

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

/* Changes the inputs that a machine sends next. */
static void change_inputs(const machine *changed)
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

static void open_network(network *net, uint64_t seed)
{
    *net = (network){.packets = calloc(MAX_PACKETS, sizeof(sent_packet)), .random = {seed}, .max_delay = 1};
}

static void open_machine(machine *opened, network *net, uint32_t player, const quern_netplay_def *like)
{
    quern_netplay_def def = *like;
    *opened = (machine){.net = net, .player = player};
    opened->played.input_bytes = like->input_bytes;
    open_game(&opened->played, like->player_count, !like->joins && like->input_bytes == 0);
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

static void close_machine(machine *closed)
{
    quern_netplay_destroy(closed->netplay);
    close_game(&closed->played);
}

static void close_machines(machine *machines, uint32_t count, network *net)
{
    for (uint32_t i = 0; i < count; i++)
        close_machine(&machines[i]);
    free(net->packets);
}

static quern_netplay_status status_of(const machine *asked)
{
    quern_netplay_status status;
    cr_assert_eq(quern_netplay_get_status(asked->netplay, &status), QUERN_OK);
    return status;
}

static void step_machine(machine *stepped, quern_jobs *jobs)
{
    const Input input = input_of(stepped->player, stepped->netplay->frame);
    stepped->result = quern_netplay_advance(stepped->netplay, jobs, &input, NULL);
}

/* ----------------------------------------------------------------------------------------- comparing */

/* The hashes of a world that runs alone, before each frame. */
static uint64_t *run_alone(uint32_t player_count, uint32_t delay, uint32_t frame_count)
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

/* Compares all hashes of frames that will not change. Returns how many there are. */
static uint32_t compare(const machine *compared, const uint64_t *hashes, uint32_t frame_count)
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

typedef struct plan {
    uint32_t player_count, frame_count, thread_count;
    uint32_t max_delay, lost_percent, repeated_percent, damaged_percent;
    uint32_t input_delay, max_rollback;
} plan;

/* Plays until all machines have confirmed the frames of the plan. Returns the number of ticks. */
static uint64_t play(const plan *played, uint64_t seed)
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
    for (uint32_t i = 0; i < played->player_count; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; !is_done; net.tick++) {
        cr_assert_lt(net.tick, 100ull * played->frame_count, "the machines wait for each other");
        is_done = true;
        for (uint32_t i = 0; i < played->player_count; i++) {
            step_machine(&machines[i], jobs);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
            compared_count += compare(&machines[i], hashes, played->frame_count);
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

/* --------------------------------------------------------------------------------------------- tests */

Test(netplay, inputs_that_arrive_in_time_need_no_rollback)
{
    const plan played = {.player_count = 2, .frame_count = 100, .max_delay = 1, .input_delay = 3};
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .input_delay = played.input_delay};
    open_network(&net, 1);
    for (uint32_t i = 0; i < 2; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; net.tick < 100; net.tick++)
        for (uint32_t i = 0; i < 2; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_status status = status_of(&machines[i]);
        cr_assert_eq(status.frame, 100);
        cr_assert_eq(status.rollback_count, 0);
        cr_assert_eq(status.wait_count, 0);
        cr_assert_geq(status.confirmed_frame, 98);
        close_machine(&machines[i]);
    }
    free(net.packets);
    cr_assert_lt(play(&played, 1), 110);
}

Test(netplay, machines_agree_whatever_the_network_does)
{
    const plan plans[] = {
        {.player_count = 2, .frame_count = 300, .thread_count = 1, .max_delay = 4, .max_rollback = 8},
        {.player_count = 2,
         .frame_count = 300,
         .thread_count = 2,
         .max_delay = 6,
         .lost_percent = 20,
         .input_delay = 2},
        {.player_count = 2,
         .frame_count = 300,
         .thread_count = 1,
         .max_delay = 12,
         .lost_percent = 40,
         .repeated_percent = 20},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 5,
         .lost_percent = 10,
         .repeated_percent = 10},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 2,
         .max_delay = 8,
         .lost_percent = 30,
         .input_delay = 1},
        {.player_count = 3,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 3,
         .damaged_percent = 30,
         .max_rollback = 3},
        {.player_count = 2, .frame_count = 200, .thread_count = 1, .max_delay = 2, .max_rollback = 1},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 20,
         .lost_percent = 50,
         .max_rollback = 32,
         .input_delay = 32},
    };
    for (uint32_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        play(&plans[i], 100 + i);
}

Test(netplay, a_silent_player_is_dropped_and_the_others_agree)
{
    for (uint32_t silent = 0; silent < 3; silent++) {
        network net;
        machine machines[3];
        const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.05, .max_rollback = 6};
        uint64_t last[3] = {0};
        open_network(&net, silent + 5);
        net.max_delay = 4;
        for (uint32_t i = 0; i < 3; i++)
            open_machine(&machines[i], &net, i, &def);
        for (net.tick = 0; net.tick < 600; net.tick++) {
            if (net.tick == 100) net.silent = 1u << silent;
            for (uint32_t i = 0; i < 3; i++)
                if (net.tick < 100 || i != silent) {
                    step_machine(&machines[i], NULL);
                    cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
                }
        }
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_status status = status_of(&machines[i]);
            if (i != silent) {
                cr_assert_eq(status.present, 7u & ~(1u << silent));
                cr_assert_gt(status.confirmed_frame, 400);
                last[i] = machines[i].netplay->table.members[silent].dropped_from;
            }
        }
        const uint32_t first = silent == 0 ? 1 : 0, second = silent == 2 ? 1 : 2;
        cr_assert_eq(last[first], last[second]);
        close_machines(machines, 3, &net);
    }
}

/* Plays with one machine that is not heard for a while. Stores the results of the last calls. */
static void play_with_silence(const quern_netplay_def *def, uint32_t silent, uint32_t first, uint32_t end,
                              quern_result *out_results)
{
    network net;
    machine machines[3];
    open_network(&net, 3);
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, def);
    for (net.tick = 0; net.tick < 300; net.tick++) {
        net.silent = net.tick >= first && net.tick < end ? 1u << silent : 0;
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    for (uint32_t i = 0; i < 3; i++) {
        out_results[i] = machines[i].result;
        if (i != silent) {
            cr_assert_eq(status_of(&machines[i]).present, 7u & ~(1u << silent));
            cr_assert_gt(status_of(&machines[i]).frame, 200);
        }
        close_machine(&machines[i]);
    }
    free(net.packets);
}

Test(netplay, a_dropped_player_is_told_when_it_is_heard_again)
{
    /* The silent machine hears the others until they drop it; then it drops them, and is a group of its own. */
    for (uint32_t silent = 0; silent < 3; silent++) {
        quern_result results[3];
        const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.02};
        play_with_silence(&def, silent, 20, 100, results);
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(results[i], i == silent ? QUERN_ERROR_CANCELLED : QUERN_OK, "%u of %u", i, silent);
    }
}

Test(netplay, a_player_is_told_before_it_drops_the_others)
{
    quern_result results[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.02};
    play_with_silence(&def, 1, 20, 45, results);
    cr_assert_eq(results[1], QUERN_ERROR_CANCELLED);
}

Test(netplay, forged_packets_do_not_crash)
{
    random_source random = {77};
    for (uint32_t round = 0; round < 60; round++) {
        network net;
        machine machines[2];
        const quern_netplay_def def = {.player_count = 2, .timeout_seconds = round % 2 == 0 ? 0 : 0.01};
        open_network(&net, round);
        for (uint32_t i = 0; i < 2; i++)
            open_machine(&machines[i], &net, i, &def);
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

Test(netplay, an_absent_player_joins_and_all_agree)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        network net;
        machine machines[3];
        quern_netplay_def def = {
            .player_count = 3, .absent = 4, .max_rollback = 6, .input_delay = (uint32_t)(seed % 3)};
        bool joined = false;
        open_network(&net, seed);
        net.max_delay = 5;
        net.lost_percent = seed % 2 == 0 ? 25 : 0;
        for (uint32_t i = 0; i < 2; i++)
            open_machine(&machines[i], &net, i, &def);
        for (net.tick = 0; net.tick < 900; net.tick++) {
            if (net.tick == 150) {
                def.joins = true;
                open_machine(&machines[2], &net, 2, &def);
                joined = true;
            }
            for (uint32_t i = 0; i < (joined ? 3u : 2u); i++) {
                step_machine(&machines[i], NULL);
                cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
            }
        }
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_status status = status_of(&machines[i]);
            cr_assert_eq(status.present, 7u);
            cr_assert_not(status.is_joining);
            cr_assert_gt(status.confirmed_frame, 300);
            /* the last compared hashes of all machines are equal, or advancing had failed; some must have been compared */
            uint32_t common = 0;
            for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
                for (uint32_t other = 0; other < 3; other++)
                    common += other != i && machines[i].netplay->players[other].hashes[k].frame ==
                                                machines[i].netplay->hashes[k].frame;
            cr_assert_gt(common, 0);
            close_machine(&machines[i]);
        }
        free(net.packets);
    }
}

Test(netplay, a_dropped_player_joins_again)
{
    network net;
    machine machines[3];
    quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03, .max_rollback = 6};
    open_network(&net, 8);
    net.max_delay = 4;
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; net.tick < 900; net.tick++) {
        if (net.tick == 150) net.silent = 2;
        if (net.tick == 300) {
            close_machine(&machines[1]);
            def.joins = true;
            open_machine(&machines[1], &net, 1, &def);
            net.silent = 0;
        }
        for (uint32_t i = 0; i < 3; i++) {
            step_machine(&machines[i], NULL);
            if (i != 1 || net.tick > 300)
                cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 7u);
        cr_assert_gt(status_of(&machines[i]).confirmed_frame, 400);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Plays with two machines of which the second one is gone from one tick to another, then joins. */
static void play_with_return(quern_netplay_def def, uint32_t latency, uint64_t gone_at, uint64_t back_at,
                             uint32_t shot_count)
{
    network net;
    machine machines[2];
    bool is_open[2] = {true, gone_at > 0};
    open_network(&net, 1);
    net.latency = latency;
    open_machine(&machines[0], &net, 0, &def);
    if (is_open[1]) open_machine(&machines[1], &net, 1, &def);
    for (uint32_t i = 0; i < shot_count; i++) {
        const Shot shot = {(int32_t)(i * 2654435761u), INT32_MAX};
        const void *values[] = {&shot};
        cr_assert_eq(
            quern_entity_create_with(machines[0].played.world, &machines[0].played.shot, values, 1, NULL),
            QUERN_OK);
    }
    for (net.tick = 0; net.tick < back_at + 800; net.tick++) {
        if (net.tick == gone_at && is_open[1]) {
            close_machine(&machines[1]);
            is_open[1] = false;
        }
        if (net.tick == back_at) {
            def.joins = true;
            net.count = 0;
            open_machine(&machines[1], &net, 1, &def);
            is_open[1] = true;
        }
        for (uint32_t i = 0; i < 2; i++) {
            if (!is_open[i]) continue;
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 3u);
        cr_assert_gt(machines[i].netplay->verified, machines[1].netplay->loaded_frame + 200);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

Test(netplay, a_player_joins_over_a_slow_line)
{
    for (uint32_t latency = 4; latency <= 10;
         latency += 3) /* 67 to 167 ms of a game with 60 frames per second */
        play_with_return((quern_netplay_def){.player_count = 2, .absent = 2}, latency, 0, 100, 0);
}

Test(netplay, a_player_returns_after_more_frames_than_are_kept)
{
    for (uint64_t away = 100; away <= 1000; away += 300)
        play_with_return((quern_netplay_def){.player_count = 2, .timeout_seconds = 0.03}, 1, 100,
                         100 + away, 0);
}

Test(netplay, a_join_may_last_longer_than_the_timeout)
{
    play_with_return((quern_netplay_def){.player_count = 2, .absent = 2, .timeout_seconds = 0.03}, 8, 0, 20,
                     20000);
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

/* Machines whose clocks differ by one percent. */
Test(netplay, a_faster_clock_does_not_run_ahead)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .max_rollback = 32};
    open_network(&net, 1);
    net.latency = 3;
    for (uint32_t i = 0; i < 2; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; net.tick < 4000; net.tick++) {
        step_machine(&machines[0], NULL);
        if (net.tick % 100 != 0) step_machine(&machines[1], NULL);
        cr_assert_leq(machines[0].netplay->frame, machines[1].netplay->frame + 4);
    }
    const uint64_t fast = status_of(&machines[0]).rerun_count, slow = status_of(&machines[1]).rerun_count;
    cr_assert_leq(fast, 2 * slow, "the faster machine ran %u frames again, the slower one %u",
                  (uint32_t)fast, (uint32_t)slow);
    close_machines(machines, 2, &net);
}

/* A player whose packets arrive, and that gives no more inputs: the others would wait for ever. */
Test(netplay, a_player_without_inputs_is_dropped)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; net.tick < 600; net.tick++) {
        if (net.tick == 100) machines[1].netplay->def.frame_count = machines[1].netplay->frame;
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    cr_assert_eq(machines[1].result, QUERN_ERROR_CANCELLED);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != 1) cr_assert_gt(machines[i].netplay->verified, 300);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Packets of a dead machine, again and again, do not count as heard. */
Test(netplay, repeats_of_old_packets_do_not_keep_a_player)
{
    network net;
    machine machines[3];
    sent_packet old = {.size = 0};
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
    for (net.tick = 0; net.tick < 300; net.tick++) {
        for (uint32_t i = 0; i < net.count; i++)
            if (net.tick == 100 && net.packets[i].from == 2 && net.packets[i].to == 0) old = net.packets[i];
        if (net.tick > 100) {
            old.arrival = net.tick;
            net.packets[net.count++] = old;
        }
        for (uint32_t i = 0; i < (net.tick < 100 ? 3u : 2u); i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    cr_assert_eq(old.from, 2);
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2) cr_assert_eq(status_of(&machines[i]).present, 3);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Of four players, 0 and 1 are gone at once, or 0 is cut off and heard again. */
Test(netplay, the_larger_group_goes_on)
{
    for (uint32_t heals = 0; heals < 2; heals++) {
        network net;
        machine machines[MAX_MACHINES];
        const quern_netplay_def def = {.player_count = 4, .timeout_seconds = 0.03};
        open_network(&net, 1);
        for (uint32_t i = 0; i < 4; i++)
            open_machine(&machines[i], &net, i, &def);
        for (net.tick = 0; net.tick < 500; net.tick++) {
            net.cut = net.tick >= 100 && (heals == 0 || net.tick < 250) ? (heals == 0 ? 3 : 1) : 0;
            for (uint32_t i = 0; i < 4; i++)
                step_machine(&machines[i], NULL);
        }
        for (uint32_t i = 0; i < 4; i++) {
            const bool goes_on = heals == 0 ? i >= 2 : i >= 1;
            if (goes_on) {
                cr_assert_eq(machines[i].result, QUERN_OK);
                cr_assert_eq(status_of(&machines[i]).present, heals == 0 ? 12 : 14);
                cr_assert_gt(machines[i].netplay->verified, 400);
            } else {
                cr_assert_eq(machines[i].result,
                             heals == 0 ? QUERN_ERROR_UNAVAILABLE : QUERN_ERROR_CANCELLED, "%u", i);
            }
            close_machine(&machines[i]);
        }
        free(net.packets);
    }
}

/* The leader adopts a table that drops a silent player, and is gone before another machine learns of it. The others
 * have accepted that table and take it over, even if the player that it drops is heard again and leads. */
static void play_with_lost_leader(uint32_t player_count, uint32_t silent)
{
    network net;
    machine machines[MAX_MACHINES];
    const quern_netplay_def def = {.player_count = player_count, .timeout_seconds = 0.03};
    open_network(&net, silent);
    for (uint32_t i = 0; i < player_count; i++)
        open_machine(&machines[i], &net, i, &def);
    const quern__netplay_table *adopted = &machines[0].netplay->table;
    for (net.tick = 0; net.tick < 400; net.tick++) {
        if (net.tick == 100) net.cut = 1u << silent;
        for (uint32_t i = adopted->epoch == 0 ? 0 : 1; i < player_count; i++) {
            if (machines[i].result == QUERN_OK) step_machine(&machines[i], NULL);
            if (i > 0 || adopted->epoch == 0) continue;
            net.cut = 1;
            for (uint32_t k = net.count; k-- > 0;)
                if (net.packets[k].from == 0) net.packets[k] = net.packets[--net.count];
        }
    }
    cr_assert_eq(adopted->epoch, 1);
    for (uint32_t i = 1; i < player_count; i++) {
        cr_assert_eq(machines[i].result, i == silent ? QUERN_ERROR_CANCELLED : QUERN_OK, "%u of %u, %u", i,
                     player_count, silent);
        if (i == silent) continue;
        cr_assert_eq(machines[i].netplay->table.parent, adopted->id, "%u of %u, %u", i, player_count,
                     silent);
        cr_assert_eq(status_of(&machines[i]).present, ((1u << player_count) - 1) & ~(1u << silent | 1));
        cr_assert_gt(machines[i].netplay->verified, 200);
    }
    close_machines(machines, player_count, &net);
}

Test(netplay, an_accepted_table_outlives_its_leader)
{
    for (uint32_t silent = 1; silent < 4; silent++)
        play_with_lost_leader(4, silent);
    play_with_lost_leader(3, 2); /* the only other machine that has accepted the table leads next */
}

/* Writes an input of which some bytes change now and then: those of `changing` in each frame, others every 16 frames. */
static void make_input(unsigned char *input, uint32_t bytes, uint32_t player, uint32_t frame,
                       uint32_t changing)
{
    for (uint32_t i = 0; i < bytes; i++) {
        random_source random = {((i < changing ? frame : frame / 16) + 1) * 977u + player * 31u +
                                i * 7919u};
        input[i] = i >= changing && random_chance(&random, 70) ? 0 : (unsigned char)random_next(&random);
    }
}

/* Plays with inputs that no system reads. Returns the bytes that a machine sends to each other one per frame. */
static double play_with_inputs(uint32_t player_count, uint32_t input_bytes, uint32_t changing, bool is_idle,
                               uint32_t lost_percent)
{
    enum { FRAMES = 600 };
    network net;
    machine machines[QUERN_MAX_NETPLAY_PLAYERS];
    const quern_netplay_def def = {
        .player_count = player_count, .input_bytes = input_bytes, .max_rollback = 24, .hash_interval = 30};
    uint64_t sent_bytes = 0;
    open_network(&net, input_bytes);
    net.latency = 5; /* 100 to 150 ms */
    net.max_delay = 4;
    net.lost_percent = lost_percent;
    for (uint32_t i = 0; i < player_count; i++)
        open_machine(&machines[i], &net, i, &def);
    uint32_t least = 0;
    for (net.tick = 0; net.tick < 2 * FRAMES && least < FRAMES; net.tick++) {
        least = FRAMES;
        for (uint32_t i = 0; i < player_count; i++) {
            unsigned char input[QUERN_MAX_NETPLAY_INPUT_BYTES] = {0};
            quern_netplay *netplay = machines[i].netplay;
            if (!is_idle) make_input(input, input_bytes, i, netplay->frame, changing);
            cr_assert_eq(quern_netplay_advance(netplay, NULL, input, NULL), QUERN_OK, "%s",
                         quern_error_message());
            if (netplay->verified < least) least = netplay->verified;
            /* All inputs of the frame that was confirmed are those that the players gave. */
            const uint32_t frame = netplay->verified - 1;
            for (uint32_t k = 0; k < player_count && netplay->verified > 0; k++) {
                if (!is_idle) make_input(input, input_bytes, k, frame, changing);
                cr_assert_eq(memcmp(netplay->used[frame % QUERN__NETPLAY_WINDOW] + (size_t)k * input_bytes,
                                    input, input_bytes),
                             0, "player %u, input of player %u, frame %u", i, k, frame);
            }
        }
    }
    cr_assert_eq(least, FRAMES);
    for (uint32_t i = 0; i < player_count; i++)
        sent_bytes += status_of(&machines[i]).sent_bytes;
    const double frames = (double)net.tick;
    close_machines(machines, player_count, &net);
    return (double)sent_bytes / player_count / (player_count - 1) / frames;
}

/* With so much loss, inputs that are sent only some times are lost now and then. */
Test(netplay, inputs_of_all_sizes_arrive, .timeout = 120)
{
    static const uint32_t sizes[] = {1, 2, 6, 7, 8, 9, 15, 16, 31, 63, 64};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t changing = 0; changing <= sizes[i]; changing += (sizes[i] + 1) / 2)
            (void)play_with_inputs(2, sizes[i], changing, false, 30);
}

/* Bytes of packets, without the headers of UDP and IP. */
Test(netplay, packets_are_small)
{
    const double most = 30000.0 / 60 / 7; /* 30 kB per second for each of eight players */
    const double idle = play_with_inputs(8, 8, 0, true, 5);
    const double pressing = play_with_inputs(8, 8, 0, false, 5);
    const double changing = play_with_inputs(8, 8, 8, false, 5);
    const double large = play_with_inputs(8, 64, 0, true, 5);
    cr_assert_lt(idle, 33, "%g bytes", idle);
    cr_assert_lt(large, idle + 1, "%g bytes", large);
    cr_assert_lt(pressing, 44, "%g bytes", pressing);
    cr_assert_lt(changing, most, "%g bytes", changing);
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
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
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
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
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
    for (uint32_t i = 0; i < 3; i++)
        open_machine(&machines[i], &net, i, &def);
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

/* ------------------------------------------------------------------------- players that come and go */

enum {
    SEEDS = effort(20, 6, 1),
    AWAY_TICKS = 5000,
    REUNION_TICKS = 4000,
    COMPARED_FRAMES = 100,
    NOTED_HASHES = 64
};

/* A game in which machines leave, are cut off and come back at random. */
typedef struct gathering {
    network net;
    quern_netplay_def def;
    machine machines[MAX_MACHINES];
    bool is_open[MAX_MACHINES];
    uint64_t opens_at[MAX_MACHINES]; /* tick at which a machine that is closed joins */
    uint64_t heals_at[MAX_MACHINES]; /* tick at which a machine that is cut off is heard again */
    quern__netplay_hash hashes[MAX_MACHINES][NOTED_HASHES]; /* of frames that will not change, by frame */
    uint32_t leave_count, cut_count, cancelled_count, join_count;
} gathering;

static void leave(gathering *it, uint32_t player, uint32_t most_ticks)
{
    close_machine(&it->machines[player]);
    it->is_open[player] = false;
    it->opens_at[player] = it->net.tick + random_below(&it->net.random, most_ticks);
}

static void come_back(gathering *it, uint32_t player)
{
    quern_netplay_def def = it->def;
    def.joins = true;
    /* What was on its way to the old machine does not reach the new one. */
    for (uint32_t i = it->net.count; i-- > 0;)
        if (it->net.packets[i].to == player) it->net.packets[i] = it->net.packets[--it->net.count];
    open_machine(&it->machines[player], &it->net, player, &def);
    it->is_open[player] = true;
    it->join_count++;
}

static bool plays(const gathering *it, uint32_t player)
{
    return it->is_open[player] && it->machines[player].netplay->is_admitted;
}

/* Whether the game goes on without the player: another one that is heard plays with it. */
static bool can_do_without(const gathering *it, uint32_t player)
{
    const quern_netplay *with = it->machines[player].netplay;
    for (uint32_t i = 0; i < it->def.player_count; i++)
        if (i != player && plays(it, i) && (it->net.cut >> i & 1) == 0 &&
            it->machines[i].netplay->table.id == with->table.id)
            return true;
    return false;
}

static void disturb(gathering *it)
{
    random_source *random = &it->net.random;
    const uint32_t player = random_below(random, it->def.player_count);
    if (!it->is_open[player] || (plays(it, player) && !can_do_without(it, player))) return;
    if (random_chance(random, 50)) {
        leave(it, player, random_chance(random, 50) ? 40 : 700);
        it->leave_count++;
    } else if ((it->net.cut >> player & 1) == 0) {
        it->net.cut |= 1u << player;
        it->heals_at[player] = it->net.tick + 5 + random_below(random, 200);
        it->cut_count++;
    }
}

static void step_all(gathering *it)
{
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        if (it->net.tick >= it->heals_at[i]) it->net.cut &= ~(1u << i);
        if (!it->is_open[i] && it->net.tick >= it->opens_at[i]) come_back(it, i);
        if (!it->is_open[i]) continue;
        step_machine(&it->machines[i], NULL);
        if (it->machines[i].result == QUERN_OK || it->machines[i].result == QUERN_ERROR_UNAVAILABLE)
            continue;
        cr_assert_eq(it->machines[i].result, QUERN_ERROR_CANCELLED, "tick %llu, player %u: %s",
                     (unsigned long long)it->net.tick, i, quern_error_message());
        it->cancelled_count++;
        leave(it, i, 60);
    }
    it->net.tick++;
}

static void note_hashes(gathering *it)
{
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        const quern_netplay *netplay = it->machines[i].netplay;
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES && it->is_open[i]; k++)
            if (netplay->hashes[k].frame <= netplay->verified)
                it->hashes[i][netplay->hashes[k].frame / HASH_INTERVAL % NOTED_HASHES] = netplay->hashes[k];
    }
}

/* Returns the first frame that a machine has not confirmed; 0 if a player does not take part. */
static uint32_t confirmed_by_all(const gathering *it)
{
    uint32_t frame = UINT32_MAX;
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        if (!plays(it, i) || status_of(&it->machines[i]).present != (1u << it->def.player_count) - 1)
            return 0;
        if (it->machines[i].netplay->verified < frame) frame = it->machines[i].netplay->verified;
    }
    return frame;
}

/* Plays until all have played together for some frames, and compares all hashes of these frames. */
static void play_together(gathering *it, uint64_t seed)
{
    const uint64_t limit = it->net.tick + REUNION_TICKS;
    uint32_t first = 0; /* first frame that all play; 0: they do not play together */
    while (first == 0 || confirmed_by_all(it) < first + COMPARED_FRAMES) {
        cr_assert_lt(it->net.tick, limit, "seed %llu: the game does not go on", (unsigned long long)seed);
        step_all(it);
        note_hashes(it);
        if (confirmed_by_all(it) == 0)
            first = 0;
        else if (first == 0)
            for (uint32_t i = 0; i < it->def.player_count; i++)
                if (it->machines[i].netplay->frame > first) first = it->machines[i].netplay->frame;
    }
    for (uint32_t frame = first + HASH_INTERVAL - first % HASH_INTERVAL; frame < first + COMPARED_FRAMES;
         frame += HASH_INTERVAL)
        for (uint32_t i = 0; i < it->def.player_count; i++) {
            const quern__netplay_hash *hash = &it->hashes[i][frame / HASH_INTERVAL % NOTED_HASHES];
            cr_assert_eq(hash->frame, frame, "seed %llu, player %u", (unsigned long long)seed, i);
            cr_assert_eq(hash->hash, it->hashes[0][frame / HASH_INTERVAL % NOTED_HASHES].hash,
                         "seed %llu, player %u, frame %u", (unsigned long long)seed, i, frame);
        }
}

static void play_gathering(gathering *it, uint64_t seed)
{
    *it = (gathering){.def = {.player_count = 0}};
    open_network(&it->net, seed);
    random_source *random = &it->net.random;
    it->net.latency = random_below(random, 10);
    it->net.max_delay = 1 + random_below(random, 4);
    it->net.lost_percent = random_chance(random, 50) ? random_below(random, 20) : 0;
    it->net.repeated_percent = random_below(random, 10);
    it->def = (quern_netplay_def){.player_count = 2 + random_below(random, MAX_MACHINES - 1),
                                  .input_delay = random_below(random, 4),
                                  .max_rollback = 4 + random_below(random, 10),
                                  .timeout_seconds = 0.06 + 0.001 * random_below(random, 40)};
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        open_machine(&it->machines[i], &it->net, i, &it->def);
        it->is_open[i] = true;
    }
    for (uint64_t next = 50; it->net.tick < AWAY_TICKS; step_all(it)) {
        if (it->net.tick < next) continue;
        disturb(it);
        next += random_below(random, 250);
    }
    for (uint32_t i = 0; i < it->def.player_count; i++)
        it->heals_at[i] = 0;
    play_together(it, seed);
    for (uint32_t i = 0; i < it->def.player_count; i++)
        close_machine(&it->machines[i]);
    free(it->net.packets);
}

Test(netplay, games_go_on_while_players_come_and_go, .timeout = 300)
{
    uint32_t leave_count = 0, cut_count = 0, cancelled_count = 0, join_count = 0;
    const uint64_t first = stress_seed(1); /* QUERN_STRESS_SEED=N: begins with seed N */
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        gathering played;
        play_gathering(&played, seed);
        leave_count += played.leave_count;
        cut_count += played.cut_count;
        cancelled_count += played.cancelled_count;
        join_count += played.join_count;
    }
    cr_assert_gt(leave_count, 4 * SEEDS);
    cr_assert_gt(cut_count, 4 * SEEDS);
    cr_assert_gt(cancelled_count, SEEDS);
    cr_assert_gt(join_count, 5 * SEEDS);
}

/* Plays until the worlds differ, and on until all machines that see a difference have a report. `wrong`: the machine
 * whose world differs, as `fault` says; UINT32_MAX: none. */
static void play_until_reports(const quern_netplay_def *def, network *net, machine *machines,
                               uint32_t wrong, const game *fault)
{
    for (uint32_t i = 0; i < def->player_count; i++)
        open_machine(&machines[i], net, i, def);
    if (wrong < def->player_count) {
        machines[wrong].played.netplay = machines[wrong].netplay;
        machines[wrong].played.wrong_frame = fault->wrong_frame;
        machines[wrong].played.is_wrong_once = fault->is_wrong_once;
    } else {
        cr_assert_eq(quern_entity_create(machines[1].played.world, &(quern_entity){0}), QUERN_OK);
    }
    for (net->tick = 0; net->tick < 600; net->tick++)
        for (uint32_t i = 0; i < def->player_count; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t i = 0; i < def->player_count; i++)
        cr_assert_eq(machines[i].result, QUERN_ERROR_DIVERGED);
}

static quern_netplay_report report_of(const machine *asked)
{
    quern_netplay_report report;
    cr_assert_eq(quern_netplay_get_report(asked->netplay, &report), QUERN_OK);
    cr_assert(report.is_complete, "player %u", asked->player);
    return report;
}

Test(netplay, worlds_that_differ_are_reported)
{
    network net;
    machine machines[2];
    quern_netplay_report report;
    const quern_netplay_def def = {.player_count = 2, .max_rollback = 4};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, UINT32_MAX, NULL);
    cr_assert_eq(quern_netplay_get_report(machines[0].netplay, &report), QUERN_ERROR_UNAVAILABLE);
    close_machines(machines, 2, &net);
}

/* Replays a recording in another world, which gets the world of the report. */
static quern_result replay_elsewhere(const machine *reported, const void *recording, size_t bytes,
                                     quern_replay_report *out_report)
{
    game elsewhere = {0};
    quern_byte_buffer world = {0};
    open_game(&elsewhere, reported->played.player_count, false);
    cr_assert_eq(quern_world_save(reported->played.world, quern_sink_bytes(&world),
                                  &(quern_save_def){.schedules = {reported->played.schedule}}),
                 QUERN_OK);
    cr_assert_eq(quern_world_load(elsewhere.world, quern_source_bytes(world.bytes, world.size_bytes),
                                  &(quern_load_def){.schedules = {elsewhere.schedule}}, NULL),
                 QUERN_OK, "%s", quern_error_message());
    const quern_result result =
        quern_replay_run(elsewhere.schedule, NULL, quern_source_bytes(recording, bytes), NULL, out_report);
    quern_byte_buffer_release(&world);
    close_game(&elsewhere);
    return result;
}

Test(netplay, a_report_names_frame_component_and_entity)
{
    for (uint32_t round = 0; round < 8; round++) {
        network net;
        machine machines[3];
        quern_replay_report replayed;
        const uint32_t wrong = round % 3, frame = 40 + round * 7;
        const quern_netplay_def def = {
            .player_count = 3, .reports = true, .input_delay = round % 4, .max_rollback = 3 + round};
        open_network(&net, round);
        net.max_delay = 1 + round % 5;
        net.lost_percent = round % 2 * 20;
        net.damaged_percent = round % 3 * 5;
        play_until_reports(&def, &net, machines, wrong, &(game){.wrong_frame = frame});
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_report report = report_of(&machines[i]);
            cr_assert_eq(report.player == wrong, i != wrong);
            cr_assert_eq(report.frame, frame, "%s", report.text);
            cr_assert_eq(report.difference.difference, QUERN_REPLAY_VALUE);
            cr_assert_eq(report.difference.frame, frame);
            cr_assert_eq(report.difference.component.bits, machines[i].played.ship.bits);
            const Ship *ship = quern_entity_get(machines[i].played.world, report.difference.entity,
                                                machines[i].played.ship);
            cr_assert_eq(ship->player, 1);
            cr_assert_eq(report.difference.entity_count, 1);
            char start[64];
            snprintf(start, sizeof start, "in frame %u, other than on the machine of player %u: ", frame,
                     report.player);
            cr_assert_eq(strncmp(report.text, start, strlen(start)), 0, "%s", report.text);
            cr_assert_not_null(strstr(report.text, "component 'Ship' of entity"), "%s", report.text);
            /* the world is that before the frame: one recording replays there, the other one differs */
            const bool own_is_right = i != wrong;
            cr_assert_eq(
                replay_elsewhere(&machines[i], report.own_recording, report.own_recording_bytes, &replayed),
                own_is_right ? QUERN_OK : QUERN_ERROR_DIVERGED);
            cr_assert_eq(replay_elsewhere(&machines[i], report.other_recording,
                                          report.other_recording_bytes, &replayed),
                         own_is_right ? QUERN_ERROR_DIVERGED : QUERN_OK);
        }
        close_machines(machines, 3, &net);
    }
}

Test(netplay, a_report_names_what_differs_before_the_first_frame)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, UINT32_MAX, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_report report = report_of(&machines[i]);
        cr_assert_eq(report.frame, 0);
        cr_assert(report.difference.is_before_first);
        cr_assert_eq(report.difference.difference,
                     i == 0 ? QUERN_REPLAY_ENTITY_MISSING : QUERN_REPLAY_ENTITY_EXTRA);
        cr_assert_eq(strncmp(report.text, "before frame 0, other", 21), 0, "%s", report.text);
    }
    close_machines(machines, 2, &net);
}

Test(netplay, a_report_says_that_a_frame_depends_on_something_outside)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true, .input_delay = 3};
    open_network(&net, 1); /* all inputs are in time, so the frame runs once before the report */
    play_until_reports(&def, &net, machines, 1, &(game){.wrong_frame = 33, .is_wrong_once = true});
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_report report = report_of(&machines[i]);
        cr_assert_eq(report.difference.difference, QUERN_REPLAY_NONE);
        cr_assert_null(report.own_recording);
        cr_assert_not_null(strstr(report.text, i == 1 ? "outside of the world, on this machine"
                                                      : ", on the other machine"),
                           "%s", report.text);
    }
    close_machines(machines, 2, &net);
}

Test(netplay, a_report_survives_a_forged_recording)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, 0, &(game){.wrong_frame = 33});
    quern_netplay *netplay = machines[0].netplay;
    /* what has arrived is not a recording */
    memset(netplay->transfer.bytes.bytes, 0x5a, netplay->transfer.total_bytes);
    netplay->divergence.report = (quern_netplay_report){.player = 1};
    step_machine(&machines[0], NULL);
    const quern_netplay_report report = report_of(&machines[0]);
    cr_assert_not_null(strstr(report.text, "the report failed"), "%s", report.text);
    close_machines(machines, 2, &net);
}

/* Over a line of five ticks, the machine of player 0 gives its inputs later, then earlier again. */
Test(netplay, the_input_delay_changes_while_playing)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .max_input_delay = 8, .max_rollback = 8};
    uint64_t rollbacks[3] = {0}; /* of the other machine, with each delay */
    open_network(&net, 1);
    net.latency = 4;
    for (uint32_t i = 0; i < 2; i++)
        open_machine(&machines[i], &net, i, &def);
    quern_netplay *netplay = machines[0].netplay;
    for (net.tick = 0; net.tick < 600; net.tick++) {
        if (net.tick == 200) cr_assert_eq(quern_netplay_set_input_delay(netplay, 8), QUERN_OK);
        if (net.tick == 400) cr_assert_eq(quern_netplay_set_input_delay(netplay, 1), QUERN_OK);
        const uint64_t before = status_of(&machines[1]).rollback_count;
        for (uint32_t i = 0; i < 2; i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
        if (net.tick % 200 >= 50) /* inputs that were given with the delay before are on their way */
            rollbacks[net.tick / 200] += status_of(&machines[1]).rollback_count - before;
        if (net.tick == 399) cr_assert_eq(netplay->players[0].known_end, netplay->frame + 8);
    }
    cr_assert_eq(netplay->players[0].known_end, netplay->frame + 1);
    cr_assert_gt(rollbacks[0], 10);
    cr_assert_eq(rollbacks[1], 0);
    cr_assert_gt(rollbacks[2], 10);
    cr_assert_gt(netplay->verified, 560); /* hashes of these frames were compared */
    cr_assert_eq(quern_netplay_set_input_delay(netplay, 9), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_set_input_delay(NULL, 1), QUERN_ERROR_NULL_ARGUMENT);
    close_machines(machines, 2, &net);
}

/* Writes the inputs of all players for a frame. */
static void give_inputs(void *user_data, uint64_t frame, void *inputs)
{
    const game *played = user_data;
    for (uint32_t i = 0; i < played->player_count; i++)
        ((Input *)inputs)[i] = input_of(i, (uint32_t)frame);
}

static quern_netplay_sync_def sync_def_of(game *played)
{
    return (quern_netplay_sync_def){.world = played->world,
                                    .schedule = played->schedule,
                                    .inputs = played->inputs,
                                    .step_seconds = 1.0 / 60,
                                    .frame_count = 60,
                                    .give_inputs = give_inputs,
                                    .user_data = played};
}

Test(netplay, a_sync_test_gives_the_world_of_a_plain_run)
{
    uint64_t *hashes = run_alone(3, 0, 60);
    for (uint32_t count = 0; count <= QUERN_MAX_NETPLAY_ROLLBACK; count += 4) {
        game played = {0};
        quern_replay_report report;
        failing_allocator *counting = failing_allocator_create();
        open_game(&played, 3, true);
        quern_netplay_sync_def def = sync_def_of(&played);
        def.rollback_frames = count == 4 ? 1 : count;
        def.allocator = failing_allocator_interface(counting);
        cr_assert_eq(quern_netplay_sync_test(&def, NULL, &report), QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(report.frame_count, 60);
        cr_assert_eq(report.difference, QUERN_REPLAY_NONE);
        cr_assert_eq(quern_world_hash(played.world), hashes[60]);
        close_game(&played);
        failing_allocator_close(counting);
    }
    free(hashes);
}

/* Counts runs outside of the world, and lets one of them change a ship. */
typedef struct outside {
    quern_component ship;
    uint32_t run_count, wrong_run;
} outside;

static void drift(quern_context *context, const quern_view *view)
{
    outside *counted = quern_context_user_data(context);
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    if (++counted->run_count == counted->wrong_run) ships[1].x++;
}

Test(netplay, a_sync_test_names_frame_component_and_entity)
{
    enum { BACK = 4 };
    /* Frame 0 runs first, frames 1 to 3 as well, then 0 to 3 again, then 4, 1 to 4, 5, 2 to 5 and so on. */
    static const struct {
        uint32_t run, frame, frame_count;
    } wrong[] = {{1, 0, 60}, {4, 3, 60},  {5, 0, 60},  {8, 3, 60},
                 {9, 4, 60}, {10, 1, 60}, {13, 4, 60}, {4, 1, 2} /* frames 0 and 1, and again */};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        game played = {0};
        quern_replay_report report;
        char start[64];
        open_game(&played, 3, true);
        outside counted = {.ship = played.ship, .wrong_run = wrong[i].run};
        const quern_system_def system = {
            .name = "drift", .run = drift, .terms = {quern_term_write(played.ship)}, .user_data = &counted};
        cr_assert_eq(quern_schedule_add_system(played.schedule, &system, NULL), QUERN_OK);
        quern_netplay_sync_def def = sync_def_of(&played);
        def.rollback_frames = BACK;
        def.frame_count = wrong[i].frame_count;
        cr_assert_eq(quern_netplay_sync_test(&def, NULL, &report), QUERN_ERROR_DIVERGED);
        cr_assert_eq(report.difference, QUERN_REPLAY_VALUE, "%s", report.text);
        cr_assert_eq(report.frame, wrong[i].frame, "run %u: %s", wrong[i].run, report.text);
        cr_assert_eq(report.component.bits, played.ship.bits);
        cr_assert_eq(((const Ship *)quern_entity_get(played.world, report.entity, played.ship))->player, 1);
        snprintf(start, sizeof start, "quern_netplay_sync_test: in frame %u: component 'Ship' of entity",
                 wrong[i].frame);
        cr_assert_eq(strncmp(quern_error_message(), start, strlen(start)), 0, "%s", quern_error_message());
        close_game(&played);
    }
}

Test(netplay, wrong_sync_tests_are_refused)
{
    game played = {0};
    open_game(&played, 2, true);
    const uint64_t hash = quern_world_hash(played.world);
    const quern_netplay_sync_def right = sync_def_of(&played);
    quern_netplay_sync_def wrong[6];
    for (int i = 0; i < 6; i++)
        wrong[i] = right;
    wrong[0].world = NULL;
    wrong[1].schedule = NULL;
    wrong[2].frame_count = 0;
    wrong[3].rollback_frames = QUERN_MAX_NETPLAY_ROLLBACK + 1;
    wrong[4].step_seconds = 0;
    wrong[5].inputs = (quern_resource){0};
    cr_assert_eq(quern_netplay_sync_test(NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(quern_netplay_sync_test(&wrong[i], NULL, NULL),
                     i < 2   ? QUERN_ERROR_NULL_ARGUMENT
                     : i < 5 ? QUERN_ERROR_INVALID_ARGUMENT
                             : QUERN_ERROR_UNKNOWN_RESOURCE,
                     "%d: %s", i, quern_error_message());
    cr_assert_eq(quern_world_hash(played.world), hash);
    close_game(&played);
}

Test(netplay, wrong_definitions_are_refused)
{
    network net;
    machine like;
    quern_netplay *netplay;
    const quern_netplay_def good = {.player_count = 2};
    open_network(&net, 1);
    open_machine(&like, &net, 0, &good);
    const quern_netplay_def right = like.netplay->def;
    quern_netplay_destroy(like.netplay);
    cr_assert_eq(quern_netplay_create(NULL, &netplay), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_create(&right, NULL), QUERN_ERROR_NULL_ARGUMENT);
    quern_netplay_def wrong[15];
    for (int i = 0; i < 15; i++)
        wrong[i] = right;
    wrong[0].player_count = 1;
    wrong[1].player_count = QUERN_MAX_NETPLAY_PLAYERS + 1;
    wrong[2].player = 2;
    wrong[3].input_bytes = 0;
    wrong[4].input_bytes = 5;
    wrong[5].input_delay = QUERN_MAX_NETPLAY_DELAY + 1;
    wrong[6].max_rollback = QUERN_MAX_NETPLAY_ROLLBACK + 1;
    wrong[7].step_seconds = 0;
    wrong[8].timeout_seconds = -1;
    wrong[9].absent = 4;
    wrong[10].absent = 3;
    wrong[11].absent = 1;
    wrong[12].reports = true;
    wrong[12].hash_interval = QUERN_MAX_NETPLAY_REPORT + 1;
    wrong[13].max_input_delay = QUERN_MAX_NETPLAY_DELAY + 1;
    wrong[14].input_delay = 3;
    wrong[14].max_input_delay = 2;
    for (int i = 0; i < 15; i++)
        cr_assert_eq(quern_netplay_create(&wrong[i], &netplay), QUERN_ERROR_INVALID_ARGUMENT, "%d", i);
    cr_assert_eq(quern_netplay_advance(NULL, NULL, &(Input){0}, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_create(&right, &like.netplay), QUERN_OK);
    cr_assert_eq(quern_netplay_advance(like.netplay, NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_status(like.netplay, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_report(like.netplay, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_report(like.netplay, &(quern_netplay_report){0}),
                 QUERN_ERROR_UNAVAILABLE);
    close_machine(&like);
    free(net.packets);
}
