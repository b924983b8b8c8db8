/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "options.h"

#include "../../options.h"

#include <quern/quern.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_MAX = 1000000 };

static const char usage[] =
    "Usage: keep [options]\n"
    "A tower defence game.\n"
    "\n"
    "  --level FILE       the level (default: levels/ford.json)\n"
    "  --input FILE       watch the recorded game in FILE\n"
    "  --record FILE      record the game to FILE, for --input and for keep_headless\n"
    "  --save FILE        the file of the saved game (default: saved.keep in your folder for such files)\n"
    "  --load             begin with the saved game\n"
    "  --threads N        number of threads; 0 = one per processor (default 0)\n"
    "  --screenshot FILE  replay some steps of a recorded game, save a picture (BMP) to FILE, and exit\n"
    "  --frames N         with --screenshot: number of steps (default 6000)\n"
    "  --overlay          show the profile from the start\n"
    "  --title            with --screenshot: picture of the title page\n"
    "  --menu             with --screenshot: picture of the menu\n"
    "  --inspect [PORT]   show the game in a browser (default: on a free port)\n"
    "  --help             print this text\n"
    "\n";

static uint32_t number_of(const char *option, const char *text, uint32_t most)
{
    return (uint32_t)parse_number("keep", option, text, 0, most);
}

/* Parses an option of games over the network. Returns false if it is another one. */
static bool parse_net(Options *options, int option, int argc, char **argv)
{
    net_parse_option(&options->net, option, argc, argv);
    if (option == 'S') options->seed = number_of("seed", optarg, FRAMES_MAX);
    return option >= 'A' && option <= 'Z';
}

static void parse_option(Options *options, int option)
{
    switch (option) {
    case 'l':
        options->level = optarg;
        break;
    case 'i':
        options->input = optarg;
        break;
    case 'r':
        options->record = optarg;
        break;
    case 'z':
        options->save = optarg;
        break;
    case 'g':
        options->loads = true;
        break;
    case 'm':
        options->menu = true;
        break;
    case 's':
        options->screenshot = optarg;
        break;
    case 'f':
        options->frame_count = number_of("frames", optarg, FRAMES_MAX);
        break;
    case 't':
        options->thread_count = number_of("threads", optarg, QUERN_MAX_THREADS);
        break;
    case 'o':
        options->overlay = true;
        break;
    case 'b':
        options->title = true;
        break;
    case 'h':
        fputs(usage, stdout);
        fputs(net_usage, stdout);
        exit(EXIT_SUCCESS);
    default:
        break;
    }
}

Options options_parse(int argc, char **argv)
{
    static const struct option list[] = {{"level", required_argument, NULL, 'l'},
                                         {"input", required_argument, NULL, 'i'},
                                         {"record", required_argument, NULL, 'r'},
                                         {"save", required_argument, NULL, 'z'},
                                         {"load", no_argument, NULL, 'g'},
                                         {"menu", no_argument, NULL, 'm'},
                                         {"screenshot", required_argument, NULL, 's'},
                                         {"frames", required_argument, NULL, 'f'},
                                         {"threads", required_argument, NULL, 't'},
                                         {"overlay", no_argument, NULL, 'o'},
                                         {"title", no_argument, NULL, 'b'},
                                         {"inspect", optional_argument, NULL, 'k'},
                                         {"host", optional_argument, NULL, 'H'},
                                         {"join", required_argument, NULL, 'J'},
                                         {"players", required_argument, NULL, 'P'},
                                         {"transport", required_argument, NULL, 'N'},
                                         {"begin", required_argument, NULL, 'B'},
                                         {"timeout-ms", required_argument, NULL, 'T'},
                                         {"delay-ms", required_argument, NULL, 'D'},
                                         {"loss", required_argument, NULL, 'L'},
                                         {"key", required_argument, NULL, 'K'},
                                         {"seed", required_argument, NULL, 'S'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    Options options = {.level = KEEP_LEVELS "/ford.json",
                       .frame_count = 6000,
                       .net = {.port = WIRE_PORT, .player_count = 2, .timeout_ms = 5000}};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;)
        if (option == '?') {
            refuse_option("keep", list, argv);
        } else if (option == 'k') {
            options.inspect = true;
            options.inspect_port =
                (uint16_t)parse_optional_number("keep", "inspect", argc, argv, UINT16_MAX, 0);
        } else if (!parse_net(&options, option, argc, argv)) {
            parse_option(&options, option);
        }
    NetOptions *net = &options.net;
    if (net->start_count == 0) net->start_count = net->player_count;
    if (net->player_count < 2 || net->start_count > net->player_count ||
        (net->hosts && net->join != NULL)) {
        fputs("keep: give --host or --join, 2 to 4 --players, and --begin with at most as many\n", stderr);
        exit(2);
    }
    if (optind < argc) {
        fprintf(stderr, "keep: unexpected argument '%s'; --help lists the options\n", argv[optind]);
        exit(2);
    }
    if (options.screenshot != NULL) net->frame_count = options.frame_count;
    options.is_shared = net->hosts || net->join != NULL;
    if (options.inspect && options.is_shared) {
        fputs("keep: --inspect is for games on this machine: leave out --host and --join\n", stderr);
        exit(2);
    }
    if (options.loads && (options.is_shared || options.input != NULL)) {
        fputs("keep: --load is for games of one player: leave out --host, --join and --input\n", stderr);
        exit(2);
    }
    if (options.screenshot != NULL && options.input == NULL && !options.loads && !options.is_shared)
        options.input = KEEP_LEVELS "/ford.txt";
    return options;
}
