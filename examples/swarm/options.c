/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "options.h"

#include "../options.h"

#include <quern/jobs.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTITY_COUNT_MAX = 50000000, FRAME_COUNT_MAX = 100000000 };

static const char usage[] =
    "Usage: swarm [options]\n"
    "Simulates prey that flock and hunters that chase them, in a world run by Quern.\n"
    "\n"
    "  --entities N    number of agents at the start (default 100000)\n"
    "  --frames N      number of frames; 0 = until interrupted with Ctrl-C (default 300)\n"
    "  --threads N     number of threads; 0 = one per processor (default 0)\n"
    "  --seed S        seed of the world (default 1)\n"
    "  --plain         print lines instead of the map, even on a terminal\n"
    "  --no-baseline   do not repeat frames on one thread to compare\n"
    "  --explain[=F]   run some frames, then only describe the schedule; F is text (the default) or json\n"
    "  --profile       print the time by system, worker and sync point at the end\n"
    "  --counters      like --profile, with hardware counters by system if the machine permits them\n"
    "  --forecast LIST print the expected duration of a frame on these numbers of threads, such as 4,8,16\n"
    "  --trace FILE    write a trace of the last frames, by thread, to FILE, for ui.perfetto.dev\n"
    "  --record FILE   record all frames to FILE\n"
    "  --replay FILE   only run the frames recorded in FILE again, and report the first difference; needs\n"
    "                  the same --entities and --seed\n"
    "  --rewind        every 60 frames, restore the world of 60 frames before, run these frames again, "
    "and\n"
    "                  compare\n"
    "  --inspect[=P]   run until interrupted, at 60 frames per second, and show the world in a browser, on "
    "port P\n"
    "                  (default: a free one); at full speed with --frames\n"
    "  --window        run until the window is closed: the wheel zooms, the mouse moves, space pauses\n"
    "  --picture FILE  run --frames, and draw the last one to FILE (BMP), as the window would\n"
    "  --json          print the result as one line of JSON at the end\n"
    "  --help          print this text\n";

/* Parses numbers separated by commas. Overwrites the commas with 0. */
static void parse_forecasts(Options *options, char *list)
{
    options->forecast_count = 0;
    for (char *comma = list; comma != NULL;) {
        const char *number = list;
        comma = strchr(list, ',');
        if (comma != NULL) {
            *comma = '\0';
            list = comma + 1;
        }
        if (options->forecast_count == FORECAST_COUNT_MAX) {
            fprintf(stderr, "swarm: --forecast takes at most %d numbers\n", FORECAST_COUNT_MAX);
            exit(2);
        }
        options->forecasts[options->forecast_count++] =
            (uint32_t)parse_number("swarm", "forecast", number, 1, QUERN_MAX_THREADS);
    }
}

static quern_describe_format parse_format(const char *text)
{
    if (text == NULL || strcmp(text, "text") == 0) return QUERN_DESCRIBE_TEXT;
    if (strcmp(text, "json") == 0) return QUERN_DESCRIBE_JSON;
    fprintf(stderr, "swarm: --explain takes text or json, not '%s'\n", text);
    exit(2);
}

static void parse_option(Options *options, int option)
{
    switch (option) {
    case 'e':
        options->entity_count = (uint32_t)parse_number("swarm", "entities", optarg, 1, ENTITY_COUNT_MAX);
        break;
    case 'f':
        options->has_frame_count = true;
        options->frame_count = (uint32_t)parse_number("swarm", "frames", optarg, 0, FRAME_COUNT_MAX);
        break;
    case 't':
        options->thread_count = (uint32_t)parse_number("swarm", "threads", optarg, 0, QUERN_MAX_THREADS);
        break;
    case 's':
        options->seed = parse_number("swarm", "seed", optarg, 0, UINT64_MAX);
        break;
    case 'x':
        options->explain = true;
        options->explain_format = parse_format(optarg);
        break;
    case 'r':
        options->profile = true;
        break;
    case 'c':
        options->profile = options->counters = true;
        break;
    case 'T':
        options->trace = optarg;
        break;
    case 'R':
        options->record = optarg;
        break;
    case 'P':
        options->replay = optarg;
        break;
    case 'w':
        options->rewind = true;
        break;
    case 'i':
        options->inspect = true;
        if (optarg != NULL)
            options->inspect_port = (uint16_t)parse_number("swarm", "inspect", optarg, 0, UINT16_MAX);
        break;
    case 'F':
        parse_forecasts(options, optarg);
        break;
    case 'W':
        options->window = true;
        break;
    case 'B':
        options->picture = optarg;
        break;
    case 'j':
        options->json = true;
        break;
    case 'p':
        options->plain = true;
        break;
    case 'b':
        options->baseline = false;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(EXIT_SUCCESS);
    default:
        break;
    }
}

Options options_parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"entities", required_argument, NULL, 'e'}, {"frames", required_argument, NULL, 'f'},
        {"threads", required_argument, NULL, 't'},  {"seed", required_argument, NULL, 's'},
        {"profile", no_argument, NULL, 'r'},        {"counters", no_argument, NULL, 'c'},
        {"trace", required_argument, NULL, 'T'},    {"explain", optional_argument, NULL, 'x'},
        {"forecast", required_argument, NULL, 'F'}, {"inspect", optional_argument, NULL, 'i'},
        {"json", no_argument, NULL, 'j'},           {"plain", no_argument, NULL, 'p'},
        {"no-baseline", no_argument, NULL, 'b'},    {"record", required_argument, NULL, 'R'},
        {"replay", required_argument, NULL, 'P'},   {"rewind", no_argument, NULL, 'w'},
        {"window", no_argument, NULL, 'W'},         {"picture", required_argument, NULL, 'B'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    Options options = {.entity_count = 100000, .frame_count = 300, .seed = 1, .baseline = true};
    int option;
    while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        if (option == '?') refuse_option("swarm", names, argv);
        parse_option(&options, option);
    }
    if (options.inspect && !options.has_frame_count) options.frame_count = 0;
    if (optind < argc) {
        fprintf(stderr, "swarm: unexpected argument '%s'\nTry 'swarm --help'.\n", argv[optind]);
        exit(2);
    }
    return options;
}
