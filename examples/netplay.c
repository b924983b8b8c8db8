/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Netplay: several machines play one game. Here all are in one process, and the network between them delays, repeats and
 * reorders packets and loses some of them, by a seed. docs/netplay.md explains it. */
#include "options.h"

#include <quern/kit/netplay.h>
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAYERS_MAX = QUERN_MAX_NETPLAY_PLAYERS,
    SPECTATORS_MAX = 2,
    MACHINES_MAX = PLAYERS_MAX + SPECTATORS_MAX, /* spectators are the last ones */
    PACKETS_MAX = 8192,
    TICKS_PER_SECOND = 60,
    REPEATED_PERCENT = 5,
    ROLLBACK_MAX = 12,
    SHOT_FRAMES = 90
};

/* --------------------------------------------------------------------------------------- the options */

static const char usage[] =
    "Usage: netplay [options]\n"
    "Runs a session of netplay in one process, over a network that is as bad as wished.\n"
    "\n"
    "  --players N      number of players, 2 to 8 (default 2)\n"
    "  --spectators N   number of machines that watch player 0, 0 to 2 (default 0)\n"
    "  --frames N       number of frames (default 600)\n"
    "  --delay-ms N     least delay of a packet; the largest is half as much more (default 100)\n"
    "  --loss PERCENT   packets that are lost, 0 to 90 (default 5)\n"
    "  --seed N         number that decides inputs and network (default 1)\n"
    "  --threads N      number of threads; 0 = one per processor (default 1)\n"
    "  --sync-test N    without a network: after each frame, go back by N frames, 1 to 32, and run them "
    "again\n"
    "  --json           print the result as one line of JSON at the end\n"
    "  --help           print this text\n";

typedef struct Options {
    uint32_t player_count, spectator_count, frame_count, delay_ms, loss, seed, thread_count, sync_frames;
    bool json;
} Options;

static uint32_t number_of(const char *option, const char *text, uint32_t least, uint32_t most)
{
    return (uint32_t)parse_number("netplay", option, text, least, most);
}

static Options parse_options(int argc, char **argv)
{
    static const struct option list[] = {{"players", required_argument, NULL, 'p'},
                                         {"spectators", required_argument, NULL, 'w'},
                                         {"frames", required_argument, NULL, 'f'},
                                         {"delay-ms", required_argument, NULL, 'd'},
                                         {"loss", required_argument, NULL, 'l'},
                                         {"seed", required_argument, NULL, 's'},
                                         {"threads", required_argument, NULL, 't'},
                                         {"sync-test", required_argument, NULL, 'y'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    Options options = {
        .player_count = 2, .frame_count = 600, .delay_ms = 100, .loss = 5, .seed = 1, .thread_count = 1};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option == 'p') options.player_count = number_of("players", optarg, 2, PLAYERS_MAX);
        if (option == 'w') options.spectator_count = number_of("spectators", optarg, 0, SPECTATORS_MAX);
        if (option == 'f') options.frame_count = number_of("frames", optarg, 1, 10000000);
        if (option == 'd') options.delay_ms = number_of("delay-ms", optarg, 0, 1000);
        if (option == 'l') options.loss = number_of("loss", optarg, 0, 90);
        if (option == 's') options.seed = number_of("seed", optarg, 0, UINT32_MAX);
        if (option == 't') options.thread_count = number_of("threads", optarg, 0, QUERN_MAX_THREADS);
        if (option == 'y')
            options.sync_frames = number_of("sync-test", optarg, 1, QUERN_MAX_NETPLAY_ROLLBACK);
        if (option == 'j') options.json = true;
        if (option == '?') refuse_option("netplay", list, argv);
        if (option == 'h') {
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        }
    }
    if (optind == argc) return options;
    fprintf(stderr, "netplay: unexpected argument '%s'; --help lists the options\n", argv[optind]);
    exit(2);
}

/* ---------------------------------------------------------------------------------------- the game */

typedef struct Input {
    int32_t steer; /* -1, 0 or 1 */
    uint32_t fires;
} Input;

typedef struct Ship {
    int32_t player;
    float x, speed;
} Ship;

typedef struct Shot {
    float x, speed;
    uint32_t left; /* frames */
} Shot;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_resource inputs;
    quern_component ship, shot;
} Game;

static void fly(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Input *inputs = quern_context_resource(context, game->inputs);
    const float seconds = (float)quern_context_delta_seconds(context);
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const Input *input = &inputs[ships[i].player];
        ships[i].speed += 10 * (float)input->steer * seconds;
        ships[i].x += ships[i].speed * seconds;
        const Shot shot = {ships[i].x, ships[i].speed + 50, SHOT_FRAMES};
        if (input->fires)
            QUERN_MUST(quern_commands_create_with(quern_context_commands(context), &game->shot,
                                                  (const void *const[]){&shot}, 1, NULL));
    }
}

static void move_shots(quern_context *context, const quern_view *view)
{
    const float seconds = (float)quern_context_delta_seconds(context);
    Shot *shots = QUERN_COLUMN(view, 0, Shot);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        shots[i].x += shots[i].speed * seconds;
        if (--shots[i].left == 0)
            QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* Creates the world that all machines create. That of a spectator has no entities: they come from a player. */
static void open_game(Game *game, uint32_t player_count, bool has_entities)
{
    const quern_resource_def inputs = {.name = "inputs",
                                       .size_bytes = player_count * (uint32_t)sizeof(Input),
                                       .alignment_bytes = _Alignof(Input)};
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(quern_schedule_create(game->world, NULL, &game->schedule));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->ship, Ship, player, x, speed));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->shot, Shot, x, speed, left));
    QUERN_MUST(quern_resource_register(game->world, &inputs, &game->inputs));
    const quern_system_def systems[] = {
        {.name = "fly",
         .run = fly,
         .user_data = game,
         .terms = {quern_term_write(game->ship)},
         .resources = {{game->inputs, QUERN_ACCESS_READ}}},
        {.name = "move shots", .run = move_shots, .terms = {quern_term_write(game->shot)}}};
    for (int i = 0; i < 2; i++)
        QUERN_MUST(quern_schedule_add_system(game->schedule, &systems[i], NULL));
    for (uint32_t player = 0; player < player_count && has_entities; player++) {
        const Ship ship = {.player = (int32_t)player};
        QUERN_MUST(
            quern_entity_create_with(game->world, &game->ship, (const void *const[]){&ship}, 1, NULL));
    }
}

/* A game asks the keyboard; these players do something else every half second. */
static Input make_input(const Options *options, uint32_t player, uint64_t frame)
{
    const uint64_t bits = quern_random(quern_random(options->seed, player), frame / 30);
    return (Input){.steer = (int32_t)quern_random_below(bits, 3) - 1,
                   .fires = quern_random_below(quern_random_mix(bits), 4) == 0};
}

/* ------------------------------------------------------------------------------------- the network */

typedef struct Packet {
    uint32_t from, to, size;
    uint64_t arrival; /* tick of arrival */
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} Packet;

typedef struct Network {
    const Options *options;
    Packet *packets;
    uint32_t count, sent_count, lost_count;
    uint64_t tick;
} Network;

typedef struct Machine {
    Network *network;
    uint32_t player; /* or spectator, from QUERN_NETPLAY_SPECTATOR on */
    Game game;
    quern_netplay *netplay;
} Machine;

/* Puts a packet on its way. Those that leave later may arrive earlier. */
static void add_packet(const Machine *machine, uint32_t player, const void *bytes, uint32_t size_bytes,
                       uint64_t bits)
{
    Network *network = machine->network;
    const uint32_t delay = network->options->delay_ms * TICKS_PER_SECOND / 1000;
    if (network->count == PACKETS_MAX || quern_random_below(bits, 100) < network->options->loss) {
        network->lost_count++;
        return;
    }
    Packet *packet = &network->packets[network->count++];
    *packet = (Packet){.from = machine->player, .to = player, .size = size_bytes};
    packet->arrival = network->tick + 1 + delay + quern_random_below(quern_random(bits, 0), delay / 2 + 1);
    memcpy(packet->bytes, bytes, size_bytes);
}

static void send_packet(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    const Machine *machine = user_data;
    const uint64_t bits = quern_random(machine->network->options->seed, machine->network->sent_count++);
    add_packet(machine, player, bytes, size_bytes, bits);
    if (quern_random_below(quern_random(bits, 1), 100) < REPEATED_PERCENT)
        add_packet(machine, player, bytes, size_bytes, quern_random(bits, 2));
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
        *out_player = packet->from;
        *packet = network->packets[--network->count];
        return size;
    }
    return 0;
}

static uint64_t tell_time(void *user_data)
{
    return ((const Machine *)user_data)->network->tick * (uint64_t)1000000000 / TICKS_PER_SECOND;
}

/* ------------------------------------------------------------------------------------ the machines */

static void open_machine(Machine *machine, Network *network, uint32_t player)
{
    const Options *options = network->options;
    const bool spectates = player >= QUERN_NETPLAY_SPECTATOR;
    *machine = (Machine){.network = network, .player = player};
    open_game(&machine->game, options->player_count, !spectates);
    const quern_netplay_def def = {.world = machine->game.world,
                                   .schedule = machine->game.schedule,
                                   .inputs = machine->game.inputs,
                                   .input_bytes = sizeof(Input),
                                   .player_count = options->player_count,
                                   .player = spectates ? player - QUERN_NETPLAY_SPECTATOR : player,
                                   .spectates = spectates,
                                   .spectator_count = spectates ? 0 : options->spectator_count,
                                   .step_seconds = 1.0 / TICKS_PER_SECOND,
                                   .input_delay = 2,
                                   .max_rollback = ROLLBACK_MAX,
                                   .frame_count = options->frame_count,
                                   .reports = true,
                                   .transport = {send_packet, receive_packet, tell_time, machine}};
    QUERN_MUST(quern_netplay_create(&def, &machine->netplay));
}

static void close_machine(Machine *machine)
{
    quern_netplay_destroy(machine->netplay);
    quern_schedule_destroy(machine->game.schedule);
    quern_world_destroy(machine->game.world);
}

static quern_netplay_status status_of(const Machine *machine)
{
    quern_netplay_status status;
    QUERN_MUST(quern_netplay_get_status(machine->netplay, &status));
    return status;
}

/* Runs a tick of all machines. Returns whether all have run all frames, with all inputs. */
static bool advance(Machine *machines, const Options *options, quern_jobs *jobs)
{
    bool is_done = true;
    for (uint32_t i = 0; i < options->player_count; i++) {
        const Input input = make_input(options, i, status_of(&machines[i]).frame);
        QUERN_MUST(quern_netplay_advance(machines[i].netplay, jobs, &input, NULL));
        is_done = is_done && status_of(&machines[i]).confirmed_frame == options->frame_count;
    }
    for (uint32_t i = PLAYERS_MAX; i < PLAYERS_MAX + options->spectator_count; i++) {
        QUERN_MUST(quern_netplay_advance(machines[i].netplay, jobs, NULL, NULL));
        is_done = is_done && status_of(&machines[i]).frame == options->frame_count;
    }
    return is_done;
}

/* Prints what the sessions did. Returns whether all worlds are the same. */
static bool report(const Machine *machines, const Network *network)
{
    const Options *options = network->options;
    const double seconds = (double)network->tick / TICKS_PER_SECOND;
    const uint64_t hash = quern_world_hash(machines[0].game.world);
    bool is_same = true;
    for (uint32_t i = 0; i < options->player_count; i++) {
        const quern_netplay_status status = status_of(&machines[i]);
        const uint64_t own_hash = quern_world_hash(machines[i].game.world);
        is_same = is_same && own_hash == hash;
        printf("player %u: went back %d times, ran %d frames again, waited %d times, sent %.0f bytes per "
               "second; "
               "world hash: 0x%016" PRIx64 "\n",
               i, (int)status.rollback_count, (int)status.rerun_count, (int)status.wait_count,
               (double)status.sent_bytes / seconds, own_hash);
    }
    for (uint32_t i = PLAYERS_MAX; i < PLAYERS_MAX + options->spectator_count; i++) {
        const uint64_t own_hash = quern_world_hash(machines[i].game.world);
        is_same = is_same && own_hash == hash;
        printf("spectator %u: waited %d times, got %.0f bytes per second; world hash: 0x%016" PRIx64 "\n",
               i - PLAYERS_MAX, (int)status_of(&machines[i]).wait_count,
               (double)status_of(&machines[i]).received_bytes / seconds, own_hash);
    }
    printf("%u frames in %.1f s; %u of %u packets were lost; the worlds are %s\n", options->frame_count,
           seconds, network->lost_count, network->sent_count, is_same ? "the same" : "not the same");
    if (!options->json) return is_same;
    printf("{\"frames\": %u, \"players\": %u, \"threads\": %u, \"ticks\": %" PRIu64 ", \"hashes\": [",
           options->frame_count, options->player_count, options->thread_count, network->tick);
    for (uint32_t i = 0; i < options->player_count; i++)
        printf("%s\"0x%016" PRIx64 "\"", i == 0 ? "" : ", ", quern_world_hash(machines[i].game.world));
    printf("]}\n");
    return is_same;
}

/* Writes the inputs of all players for a frame of the test. */
static void give_inputs(void *user_data, uint64_t frame, void *inputs)
{
    const Options *options = user_data;
    for (uint32_t i = 0; i < options->player_count; i++)
        ((Input *)inputs)[i] = make_input(options, i, frame);
}

/* Runs each frame several times in one world. Returns whether it had the same result each time. */
static bool test_sync(Options *options, quern_jobs *jobs)
{
    Game game;
    open_game(&game, options->player_count, true);
    const quern_netplay_sync_def def = {.world = game.world,
                                        .schedule = game.schedule,
                                        .inputs = game.inputs,
                                        .step_seconds = 1.0 / TICKS_PER_SECOND,
                                        .frame_count = options->frame_count,
                                        .rollback_frames = options->sync_frames,
                                        .give_inputs = give_inputs,
                                        .user_data = options};
    const quern_result result = quern_netplay_sync_test(&def, jobs, NULL);
    if (result == QUERN_OK)
        printf(
            "%u frames gave the same world when the last %u ran again after each; world hash: 0x%016" PRIx64
            "\n",
            options->frame_count, options->sync_frames, quern_world_hash(game.world));
    else
        printf("%s\n", quern_error_message());
    quern_schedule_destroy(game.schedule);
    quern_world_destroy(game.world);
    return result == QUERN_OK;
}

int main(int argc, char **argv)
{
    Options options = parse_options(argc, argv);
    Machine machines[MACHINES_MAX];
    Network network = {.options = &options, .packets = calloc(PACKETS_MAX, sizeof(Packet))};
    quern_jobs *jobs;
    if (network.packets == NULL) abort();
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = options.thread_count}, &jobs));
    if (options.sync_frames > 0) {
        const bool agrees = test_sync(&options, jobs);
        quern_jobs_destroy(jobs);
        free(network.packets);
        return agrees ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < options.player_count; i++)
        open_machine(&machines[i], &network, i);
    for (uint32_t i = 0; i < options.spectator_count; i++)
        open_machine(&machines[PLAYERS_MAX + i], &network, QUERN_NETPLAY_SPECTATOR + i);
    while (!advance(machines, &options, jobs))
        network.tick++;
    const bool is_same = report(machines, &network);
    for (uint32_t i = 0; i < MACHINES_MAX; i++)
        if (i < options.player_count || (i >= PLAYERS_MAX && i < PLAYERS_MAX + options.spectator_count))
            close_machine(&machines[i]);
    quern_jobs_destroy(jobs);
    free(network.packets);
    return is_same ? EXIT_SUCCESS : EXIT_FAILURE;
}
