/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* One machine of a game over UDP: a player, or a spectator. Its inputs are random, so that it needs neither keys nor a
 * window. Run it once on each machine; all but player 0 name the machine of player 0:
 *
 *     ./run example lan --players 2                                # player 0
 *     ./run example lan --players 2 --player 1 --host 192.0.2.7    # player 1, on another machine
 *     ./run example lan --players 2 --watch --host 192.0.2.7       # sees both
 *
 * docs/netplay.md explains it. */
#include "options.h"

#include <quern/kit/netplay_udp.h>
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef _WIN32
#include <windows.h>
#endif

enum { FRAMES_PER_SECOND = 60, SESSION = 2026, LINGER_SECONDS = 2 };

static const char usage[] =
    "Usage: lan [options]\n"
    "Runs one machine of a game over UDP.\n"
    "\n"
    "  --players N     number of players, 2 to 8 (default 2)\n"
    "  --player N      player of this machine (default 0)\n"
    "  --watch         watch, without a player\n"
    "  --host ADDRESS  machine of player 0\n"
    "  --host-port N   its port (default 7777)\n"
    "  --port N        port of this machine (default: 7777 for player 0, any for others)\n"
    "  --frames N      number of frames (default 600)\n"
    "  --help          print this text\n";

typedef struct Options {
    uint32_t player_count, player, host_port, port, frame_count;
    const char *host;
    bool watches;
} Options;

static uint32_t number_of(const char *option, const char *text, uint32_t least, uint32_t most)
{
    return (uint32_t)parse_number("lan", option, text, least, most);
}

static Options parse_options(int argc, char **argv)
{
    static const struct option list[] = {{"players", required_argument, NULL, 'n'},
                                         {"player", required_argument, NULL, 'p'},
                                         {"watch", no_argument, NULL, 'w'},
                                         {"host", required_argument, NULL, 'h'},
                                         {"host-port", required_argument, NULL, 'q'},
                                         {"port", required_argument, NULL, 'o'},
                                         {"frames", required_argument, NULL, 'f'},
                                         {"help", no_argument, NULL, 'u'},
                                         {NULL, 0, NULL, 0}};
    Options options = {.player_count = 2, .host_port = 7777, .frame_count = 600};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option == 'n') options.player_count = number_of("players", optarg, 2, 8);
        if (option == 'p') options.player = number_of("player", optarg, 0, 7);
        if (option == 'w') options.watches = true;
        if (option == 'h') options.host = optarg;
        if (option == 'q') options.host_port = number_of("host-port", optarg, 1, 65535);
        if (option == 'o') options.port = number_of("port", optarg, 1, 65535);
        if (option == 'f') options.frame_count = number_of("frames", optarg, 1, 10000000);
        if (option == '?') refuse_option("lan", list, argv);
        if (option == 'u') {
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        }
    }
    const bool is_host = !options.watches && options.player == 0;
    if (is_host != (options.host == NULL) || optind < argc) {
        fprintf(stderr, "lan: player 0 has no --host, and all other machines need one\n%s", usage);
        exit(2);
    }
    if (is_host && options.port == 0) options.port = 7777;
    return options;
}

/* ---------------------------------------------------------------------------------------- the game */

typedef struct Input {
    int32_t steer;
} Input;

typedef struct Ship {
    int32_t player, x;
} Ship;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_resource inputs;
    quern_component ship;
} Game;

static void steer(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Input *inputs = quern_context_resource(context, game->inputs);
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        ships[i].x = ships[i].x * 3 / 4 + inputs[ships[i].player].steer;
}

static void open_game(Game *game, const Options *options)
{
    const quern_resource_def inputs = {.name = "inputs",
                                       .size_bytes = options->player_count * (uint32_t)sizeof(Input),
                                       .alignment_bytes = _Alignof(Input)};
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(quern_schedule_create(game->world, NULL, &game->schedule));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->ship, Ship, player, x));
    QUERN_MUST(quern_resource_register(game->world, &inputs, &game->inputs));
    QUERN_MUST(
        quern_schedule_add_system(game->schedule,
                                  &(quern_system_def){.name = "steer",
                                                      .run = steer,
                                                      .user_data = game,
                                                      .terms = {quern_term_write(game->ship)},
                                                      .resources = {{game->inputs, QUERN_ACCESS_READ}}},
                                  NULL));
    for (uint32_t player = 0; player < options->player_count && !options->watches; player++) {
        const Ship ship = {.player = (int32_t)player};
        QUERN_MUST(
            quern_entity_create_with(game->world, &game->ship, (const void *const[]){&ship}, 1, NULL));
    }
}

/* -------------------------------------------------------------------------------------- the machine */

static void show_events(quern_netplay *netplay)
{
    static const char *const texts[] = {
        [QUERN_NETPLAY_CONNECTED] = "is connected", [QUERN_NETPLAY_INTERRUPTED] = "is silent",
        [QUERN_NETPLAY_RESUMED] = "is heard again", [QUERN_NETPLAY_DROPPED] = "has left",
        [QUERN_NETPLAY_JOINED] = "has joined",      [QUERN_NETPLAY_DIVERGED] = "has another world"};
    quern_netplay_event event;
    while (quern_netplay_next_event(netplay, &event)) {
        const bool watches = event.player >= QUERN_NETPLAY_SPECTATOR;
        if (event.kind == QUERN_NETPLAY_PROGRESS) continue;
        printf("frame %" PRIu64 ": %s %u %s\n", event.frame, watches ? "spectator" : "player",
               watches ? event.player - QUERN_NETPLAY_SPECTATOR : event.player, texts[event.kind]);
        fflush(stdout);
    }
}

static void wait_for(const quern_netplay_transport *transport, uint64_t time_ns)
{
    const uint64_t now_ns = transport->now(transport->user_data);
    if (now_ns >= time_ns) return;
#ifdef _WIN32
    Sleep((DWORD)((time_ns - now_ns) / 1000000));
#else
    const struct timespec rest = {.tv_sec = (time_t)((time_ns - now_ns) / 1000000000),
                                  .tv_nsec = (long)((time_ns - now_ns) % 1000000000)};
    nanosleep(&rest, NULL);
#endif
}

/* Plays until all frames are confirmed, and answers the others for a while. Returns whether it got so far. */
static bool play(quern_netplay *netplay, const Options *options, const quern_netplay_transport *transport)
{
    uint64_t next_ns = transport->now(transport->user_data);
    for (uint32_t left = LINGER_SECONDS * FRAMES_PER_SECOND; left > 0;) {
        quern_netplay_status status;
        QUERN_MUST(quern_netplay_get_status(netplay, &status));
        const uint64_t bits = quern_random(options->player, status.frame / 20);
        const Input input = {.steer = (int32_t)quern_random_below(bits, 201) - 100};
        const quern_result result = quern_netplay_advance(netplay, NULL, &input, NULL);
        if (result != QUERN_OK && result != QUERN_ERROR_UNAVAILABLE) {
            fprintf(stderr, "lan: %s\n", quern_error_message());
            return false;
        }
        show_events(netplay);
        left -= status.frame == options->frame_count && status.confirmed_frame == options->frame_count;
        next_ns += 1000000000 / FRAMES_PER_SECOND;
        wait_for(transport, next_ns);
    }
    return true;
}

int main(int argc, char **argv)
{
    const Options options = parse_options(argc, argv);
    const quern_netplay_udp_def wire = {.player =
                                            options.watches ? QUERN_NETPLAY_SPECTATOR : options.player,
                                        .port = (uint16_t)options.port,
                                        .introduces = true,
                                        .session = SESSION};
    Game game;
    quern_netplay_udp *udp;
    quern_netplay *netplay;
    open_game(&game, &options);
    QUERN_MUST(quern_netplay_udp_create(&wire, &udp));
    if (options.host != NULL)
        QUERN_MUST(quern_netplay_udp_set_address(udp, 0, options.host, (uint16_t)options.host_port));
    const quern_netplay_def def = {.world = game.world,
                                   .schedule = game.schedule,
                                   .inputs = game.inputs,
                                   .input_bytes = sizeof(Input),
                                   .player_count = options.player_count,
                                   .player = options.watches ? 0 : options.player,
                                   .spectates = options.watches,
                                   .spectator_count = options.watches ? 0 : 1,
                                   .step_seconds = 1.0 / FRAMES_PER_SECOND,
                                   .input_delay = 2,
                                   .session = SESSION,
                                   .frame_count = options.frame_count,
                                   .transport = quern_netplay_udp_transport(udp)};
    QUERN_MUST(quern_netplay_create(&def, &netplay));
    printf("port %u; waiting for the other players\n", quern_netplay_udp_port(udp));
    fflush(stdout);
    const bool has_played = play(netplay, &options, &def.transport);
    if (has_played)
        printf("%u frames; world hash: 0x%016" PRIx64 "\n", options.frame_count,
               quern_world_hash(game.world));
    quern_netplay_destroy(netplay);
    quern_netplay_udp_destroy(udp);
    quern_schedule_destroy(game.schedule);
    quern_world_destroy(game.world);
    return has_played ? EXIT_SUCCESS : EXIT_FAILURE;
}
