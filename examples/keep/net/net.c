/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "net.h"

#include "../../options.h"
#include "../game/check.h"

#include <quern/archive.h>
#include <quern/kit/random.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INPUT_DELAY = 3,
    ROLLBACK_MAX = 14,
    REPORT_CALLS_MAX = 3000,
    ACTION_STEPS = 15,
    TRIES = 30,
    MOST_MS = 1000000,
    KEY_DIGITS = 2 * WIRE_KEY_BYTES
};

const char net_usage[] =
    "Over the network:\n"
    "  --host [PORT]      let others join this game (default port: 7777)\n"
    "  --join ADDRESS     join the game of another machine: ADDRESS or ADDRESS:PORT\n"
    "  --players N        host: number of players, 2 to 4 (default 2)\n"
    "  --begin N          host: begin with N players; the others join later (default: all)\n"
    "  --transport NAME   enet or udp, the same on all machines (default: enet if the build has it)\n"
    "  --key DIGITS       secret of the game, the same on all machines: 32 hexadecimal digits (default: "
    "none)\n"
    "  --timeout-ms N     host: drop players that are silent for so long; 0 = wait (default 5000)\n"
    "  --delay-ms N       delay all packets of this machine, to try a bad network\n"
    "  --loss PERCENT     lose some of them\n"
    "  --seed N           this machine builds and sells at random, by this seed\n";

/* --------------------------------------------------------------------------------------------- opening */

static uint32_t number_of(const char *option, uint32_t most)
{
    return (uint32_t)parse_number("keep", option, optarg, 0, most);
}

/* Reads a key. One of zeros is none, as without the option. */
static void parse_key(unsigned char *key, const char *text)
{
    const size_t digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits != KEY_DIGITS || text[digits] != '\0') {
        fprintf(stderr, "keep: --key takes %u hexadecimal digits, as from: openssl rand -hex %u\n",
                KEY_DIGITS, WIRE_KEY_BYTES);
        exit(2);
    }
    for (size_t i = 0; i < KEY_DIGITS; i += 2) {
        const char pair[3] = {text[i], text[i + 1], '\0'};
        key[i / 2] = (unsigned char)strtoul(pair, NULL, 16);
    }
}

void net_parse_option(NetOptions *options, int option, int argc, char **argv)
{
    if (option == 'H') {
        options->hosts = true;
        options->port =
            (uint16_t)parse_optional_number("keep", "host", argc, argv, UINT16_MAX, options->port);
    }
    if (option == 'J') options->join = optarg;
    if (option == 'P') options->player_count = number_of("players", PLAYERS_MAX);
    if (option == 'B') options->start_count = number_of("begin", PLAYERS_MAX);
    if (option == 'N') {
        options->transport = optarg;
        if (strcmp(optarg, "enet") != 0 && strcmp(optarg, "udp") != 0) {
            fprintf(stderr, "keep: --transport %s: give enet or udp\n", optarg);
            exit(2);
        }
    }
    if (option == 'K') parse_key(options->key, optarg);
    if (option == 'T') options->timeout_ms = number_of("timeout-ms", MOST_MS);
    if (option == 'D') options->faults.delay_ms = number_of("delay-ms", 1000);
    if (option == 'L') options->faults.lost_percent = number_of("loss", 99);
}

bool net_open(Net *net, const NetOptions *options, const Level *level)
{
    const bool is_udp =
        options->transport != NULL ? strcmp(options->transport, "udp") == 0 : !wire_has(WIRE_ENET);
    *net = (Net){.hosts = options->hosts, .start_count = options->start_count};
    net->start = (WireStart){.player_count = options->player_count,
                             .frame_count = options->frame_count,
                             .timeout_ms = options->timeout_ms,
                             .session = quern_random_mix(wire_now(NULL)),
                             .level = level->hash};
    WireOptions wire = {.transport = is_udp ? WIRE_UDP : WIRE_ENET,
                        .port = options->port,
                        .session = net->start.session,
                        .faults = options->faults};
    memcpy(wire.key, options->key, sizeof wire.key);
    memcpy(net->key, options->key, sizeof net->key);
    net->wire = options->hosts ? wire_host(&wire, net->message, sizeof net->message)
                               : wire_join(options->join, &wire, net->message, sizeof net->message);
    return net->wire != NULL;
}

void net_close(Net *net)
{
    wire_close(net->wire);
    net->wire = NULL;
}

static void finish_joining(void *user_data)
{
    char message[256];
    if (game_finish_loading(user_data, message, sizeof message)) return;
    fprintf(stderr, "keep: the world of the other machine: %s\n", message);
    exit(EXIT_FAILURE);
}

static void begin_session(Net *net)
{
    const WireStart *start = &net->start;
    quern_netplay_def def = {.world = net->game->world,
                             .schedule = net->game->schedule,
                             .inputs = net->game->types.orders,
                             .input_bytes = sizeof(Order),
                             .player_count = start->player_count,
                             .player = start->player,
                             .step_seconds = 1.0 / STEPS_PER_SECOND,
                             .input_delay = INPUT_DELAY,
                             .max_rollback = ROLLBACK_MAX,
                             .timeout_seconds = start->timeout_ms / 1000.0,
                             .session = start->session,
                             .absent = start->absent,
                             .joins = start->joins != 0,
                             .reports = true,
                             .frame_count = start->frame_count,
                             .loaded = finish_joining,
                             .loaded_user_data = net->game,
                             .transport = {wire_send, wire_receive, wire_now, net->wire}};
    memcpy(def.key, net->key, sizeof def.key);
    check(quern_netplay_create(&def, &net->netplay));
    check(quern_netplay_get_status(net->netplay, &net->status));
    net->is_running = true;
}

/* Begins the game on the host, when enough machines have come. */
static bool begin_hosting(Net *net)
{
    WireStart *start = &net->start;
    wire_poll(net->wire, 10, start, 0);
    if (wire_waiting(net->wire) + 1 < net->start_count) return false;
    start->absent = (1u << start->player_count) - (1u << net->start_count);
    wire_poll(net->wire, 0, start, ((1u << net->start_count) - 1) & ~1u);
    start->joins = 1; /* for those that come later */
    return true;
}

bool net_begin(Net *net, Game *game, const Level *level)
{
    const uint64_t own_level = net->start.level;
    if (net->hosts) {
        if (!begin_hosting(net)) return false;
    } else {
        wire_poll(net->wire, 10, NULL, 0);
        if (wire_is_lost(net->wire))
            snprintf(net->message, sizeof net->message,
                     "no host answers at this address, or it has another --key; is it the right one?");
        if (!wire_started(net->wire, &net->start)) return false;
        if (net->start.level != own_level)
            snprintf(net->message, sizeof net->message, "the host plays another level: give both the same");
    }
    if (net->message[0] != '\0') return false;
    net->game = game;
    const bool joins = !net->hosts && net->start.joins != 0;
    if (joins)
        game_create_to_load(game, level, net->start.player_count);
    else if (!game_create_shared(game, level, net->start.player_count, net->message, sizeof net->message))
        return false;
    const uint32_t keeps = net->start.joins;
    net->start.joins = joins;
    begin_session(net);
    net->start.joins = keeps;
    return true;
}

void net_end(Net *net)
{
    quern_netplay_destroy(net->netplay);
    net->netplay = NULL;
    net->is_running = false;
}

/* ---------------------------------------------------------------------------------------------- orders */

bool net_act(Net *net, const Action *action)
{
    if (net->action_count == NET_ORDERS_MAX) return false;
    net->actions[net->action_count++] = *action;
    return true;
}

/* Takes the next action, before a step. A number of 0 would mean no order. */
static void take_action(Net *net)
{
    if (net->action_count == 0) return;
    net->order = game_order(&net->actions[0], net->order);
    if (net->order.number == 0) net->order.number = 1;
    net->action_count--;
    memmove(net->actions, net->actions + 1, net->action_count * sizeof *net->actions);
}

void net_act_at_random(Net *net, uint32_t seed)
{
    const uint64_t key = quern_random(seed, net->start.player), frame = net->status.frame;
    if (frame % ACTION_STEPS != 0) return;
    const uint32_t kind = quern_random_below(quern_random(key, frame), 12);
    if (kind == 0) {
        net_act(net, &(Action){.kind = ACTION_WAVE});
        return;
    }
    for (uint32_t i = 0; i < TRIES; i++) {
        const uint64_t bits = quern_random(key ^ frame, i);
        Action action = {.kind = kind == 1 ? ACTION_SELL : ACTION_BUILD,
                         .tower = (TowerKind)quern_random_below(bits, TOWER_KINDS)};
        action.at =
            game_plot((Point){quern_random_unit(quern_random_mix(bits)) * net->game->level.width,
                              quern_random_unit(quern_random_mix(~bits)) * net->game->level.height});
        const bool is_possible = kind == 1 ? !quern_entity_is_null(game_tower_at(net->game, action.at))
                                           : game_build_error(net->game, action.tower, action.at) == NULL;
        if (!is_possible) continue;
        net_act(net, &action);
        return;
    }
}

/* --------------------------------------------------------------------------------------------- reports */

static void write_file(const Net *net, const char *what, const void *bytes, size_t size_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "keep-difference-%u.%s", net->start.player, what);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size_bytes, file) != size_bytes)
        fprintf(stderr, "keep: %s cannot be written\n", path);
    if (file != NULL) fclose(file);
}

/* Writes both recordings of the frame that differs, and the world before it. */
static void write_report(const Net *net, const quern_netplay_report *report)
{
    quern_byte_buffer world = {0};
    const quern_save_def def = {.schedules = {net->game->schedule}};
    if (report->own_recording == NULL) return;
    write_file(net, "own.replay", report->own_recording, report->own_recording_bytes);
    write_file(net, "other.replay", report->other_recording, report->other_recording_bytes);
    if (quern_world_save(net->game->world, quern_sink_bytes(&world), &def) == QUERN_OK)
        write_file(net, "world", world.bytes, world.size_bytes);
    quern_byte_buffer_release(&world);
}

/* Goes on until both machines have a report, or the other one is gone. */
static void finish_report(Net *net, quern_jobs *jobs)
{
    quern_netplay_report report = {.is_complete = false};
    for (uint32_t i = 0, more = 0; i < REPORT_CALLS_MAX && more < 300 && !wire_is_lost(net->wire); i++) {
        wire_poll(net->wire, 2, &net->start, 0);
        (void)quern_netplay_advance(net->netplay, jobs, &net->order, NULL);
        check(quern_netplay_get_report(net->netplay, &report));
        more += report.is_complete;
    }
    snprintf(net->message, sizeof net->message, "%s", quern_error_message());
    write_report(net, &report);
}

/* ----------------------------------------------------------------------------------------------- steps */

/* Ends the game when all machines have run the last step. Returns whether it has ended. */
static bool end_game(Net *net)
{
    const uint32_t last = net->start.frame_count;
    if (last == 0 || net->status.confirmed_frame < last) return false;
    if (!net->is_done && !net->hosts) wire_done(net->wire);
    net->is_done = true;
    if (!wire_all_done(net->wire, net->status.present)) return false;
    if (net->hosts) wire_done(net->wire);
    wire_poll(net->wire, 20, &net->start, 0);
    return true;
}

bool net_step(Net *net, quern_jobs *jobs, uint32_t *out_step_count)
{
    const uint32_t all = (1u << net->start.player_count) - 1;
    *out_step_count = 0;
    wire_poll(net->wire, 0, &net->start, all & ~net->status.present);
    if (!net->is_done && !net->hosts && wire_is_lost(net->wire)) {
        snprintf(net->message, sizeof net->message, "the host is gone: the game has ended");
        return false;
    }
    take_action(net);
    const quern_result result = quern_netplay_advance(net->netplay, jobs, &net->order, out_step_count);
    check(quern_netplay_get_status(net->netplay, &net->status));
    if (result == QUERN_ERROR_DIVERGED)
        finish_report(net, jobs);
    else if (result != QUERN_OK)
        snprintf(net->message, sizeof net->message, "%s", quern_error_message());
    /* Too few of the others are heard: the game goes on when they are heard again. */
    return (result == QUERN_OK || result == QUERN_ERROR_UNAVAILABLE) && !end_game(net);
}
