/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "options.h"

#include <quern/quern.h>

#include <errno.h>
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
    "  --threads N        number of threads; 0 = one per processor (default 0)\n"
    "  --screenshot FILE  replay some steps of a recorded game, save a picture (BMP) to FILE, and exit\n"
    "  --frames N         with --screenshot: number of steps (default 6000)\n"
    "  --overlay          show the profile from the start\n"
    "  --title            with --screenshot: picture of the title page\n"
    "  --help             print this text\n";

static uint32_t parse_number(const char *option, const char *text, uint32_t most)
{
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number <= most)
        return (uint32_t)number;
    fprintf(stderr, "keep: --%s takes a whole number up to %u, not '%s'\n", option, most, text);
    exit(2);
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
    case 's':
        options->screenshot = optarg;
        break;
    case 'f':
        options->frame_count = parse_number("frames", optarg, FRAMES_MAX);
        break;
    case 't':
        options->thread_count = parse_number("threads", optarg, QUERN_MAX_THREADS);
        break;
    case 'o':
        options->overlay = true;
        break;
    case 'b':
        options->title = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(EXIT_SUCCESS);
    default:
        fputs("Try 'keep --help'.\n", stderr);
        exit(2);
    }
}

Options options_parse(int argc, char **argv)
{
    static const struct option list[] = {
        {"level", required_argument, NULL, 'l'},  {"input", required_argument, NULL, 'i'},
        {"record", required_argument, NULL, 'r'}, {"screenshot", required_argument, NULL, 's'},
        {"frames", required_argument, NULL, 'f'}, {"threads", required_argument, NULL, 't'},
        {"overlay", no_argument, NULL, 'o'},      {"title", no_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    Options options = {.level = KEEP_LEVELS "/ford.json", .frame_count = 6000};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;)
        parse_option(&options, option);
    if (optind < argc) {
        fprintf(stderr, "keep: unexpected argument '%s'; --help lists the options\n", argv[optind]);
        exit(2);
    }
    if (options.screenshot != NULL && options.input == NULL) options.input = KEEP_LEVELS "/ford.txt";
    return options;
}
