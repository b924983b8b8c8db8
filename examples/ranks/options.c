/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "options.h"
#include "stripes.h"

#include <quern/jobs.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: ranks [options]\n"
    "Simulates one flock on several ranks, each with a stripe of the field. Prints its hash by id, which "
    "is the same\n"
    "for every number of ranks and threads.\n"
    "\n"
    "  --ranks N             number of ranks, 1 to 64. Over MPI, mpirun -n N decides it (default 1)\n"
    "  --threads T           threads of each rank; 0 = one per processor (default 1)\n"
    "  --agents N            number of agents at the beginning (default 10000)\n"
    "  --frames N            number of frames (default 300)\n"
    "  --seed S              seed of the flock (default 1)\n"
    "  --balance N           move the borders every N frames, by measured time; 0 = never (default 10)\n"
    "  --archives FOLDER     save each rank to this folder, which exists, every --archive-every frames\n"
    "  --archive-every N     (default 100)\n"
    "  --restart FOLDER      go on from the last frame that all ranks have saved to this folder\n"
    "  --timeout SECONDS     time after which a rank that does not answer is taken as lost (default 10)\n"
    "  --die RANK@FRAME      end a rank without a word, in this frame, to see what the others do\n"
    "  --ping                only measure latency and bandwidth between two ranks\n"
    "  --json                print the result as one line of JSON\n"
    "  --help                print this text\n";

static uint64_t parse_number(const char *option, const char *text, char end_mark, uint64_t least,
                             uint64_t most, char **out_end)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 0);
    const bool is_number = text[0] >= '0' && text[0] <= '9' && *end == end_mark && errno == 0;
    if (!is_number || number < least || number > most) {
        fprintf(stderr, "ranks: --%s takes a whole number from %llu to %llu, not '%s'\n", option,
                (unsigned long long)least, (unsigned long long)most, text);
        exit(2);
    }
    *out_end = end;
    return number;
}

static uint32_t parse_count(const char *option, const char *text, uint32_t least, uint32_t most)
{
    char *end;
    return (uint32_t)parse_number(option, text, '\0', least, most, &end);
}

static void parse_death(Options *options, const char *text)
{
    char *end;
    options->dying_rank = (uint32_t)parse_number("die", text, '@', 0, RANKS_MAX - 1, &end);
    options->dying_frame = parse_count("die", end + 1, 0, UINT32_MAX);
}

static const struct option list[] = {{"ranks", required_argument, NULL, 'r'},
                                     {"threads", required_argument, NULL, 't'},
                                     {"agents", required_argument, NULL, 'a'},
                                     {"frames", required_argument, NULL, 'f'},
                                     {"seed", required_argument, NULL, 's'},
                                     {"balance", required_argument, NULL, 'b'},
                                     {"archives", required_argument, NULL, 'A'},
                                     {"archive-every", required_argument, NULL, 'e'},
                                     {"restart", required_argument, NULL, 'R'},
                                     {"timeout", required_argument, NULL, 'w'},
                                     {"die", required_argument, NULL, 'd'},
                                     {"ping", no_argument, NULL, 'p'},
                                     {"json", no_argument, NULL, 'j'},
                                     {"help", no_argument, NULL, 'h'},
                                     {NULL, 0, NULL, 0}};

static void set_option(Options *options, int option)
{
    char *end;
    switch (option) {
    case 'r':
        options->rank_count = parse_count("ranks", optarg, 1, RANKS_MAX);
        break;
    case 't':
        options->thread_count = parse_count("threads", optarg, 0, QUERN_MAX_THREADS);
        break;
    case 'a':
        options->agent_count = parse_count("agents", optarg, 1, 100000000);
        break;
    case 'f':
        options->frame_count = parse_count("frames", optarg, 1, 100000000);
        break;
    case 's':
        options->seed = parse_number("seed", optarg, '\0', 0, UINT64_MAX, &end);
        break;
    case 'b':
        options->balance_interval = parse_count("balance", optarg, 0, 1000000);
        break;
    case 'A':
        options->archive_folder = optarg;
        break;
    case 'e':
        options->archive_interval = parse_count("archive-every", optarg, 1, 100000000);
        break;
    case 'R':
        options->restart_folder = optarg;
        break;
    case 'w':
        options->timeout_seconds = parse_count("timeout", optarg, 1, 86400);
        break;
    case 'd':
        parse_death(options, optarg);
        break;
    case 'p':
        options->ping = true;
        break;
    case 'j':
        options->json = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(EXIT_SUCCESS);
    default:
        exit(2);
    }
}

Options options_parse(int argc, char **argv)
{
    Options options = {.thread_count = 1,
                       .agent_count = 10000,
                       .frame_count = 300,
                       .seed = 1,
                       .balance_interval = 10,
                       .archive_interval = 100,
                       .dying_rank = NO_RANK,
                       .timeout_seconds = 10};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;)
        set_option(&options, option);
    if (optind == argc) return options;
    fprintf(stderr, "ranks: unexpected argument '%s'; --help lists the options\n", argv[optind]);
    exit(2);
}
