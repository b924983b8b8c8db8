/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/options.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/jobs.h>

enum {
    DEFAULT_REPEAT_COUNT = 9,
    DEFAULT_WARM_UP_COUNT = 2,
    DEFAULT_PLACEMENT_COUNT = 3,
    MAX_WARM_UP_COUNT = 100,
    MAX_TIME_S = 3600,
    MAX_ENTITY_COUNT = 1 << 28,
};

static const double default_noise = 0.05;

static const char help_text[] =
    "What to measure:\n"
    "  -l, --list            list the workloads and stop\n"
    "  -w, --workload NAME   run the workloads of this name: a pattern (*, ?, [...]), or several with\n"
    "                        commas between them; may be given again; default all\n"
    "  -n, --entities LIST   numbers of entities with commas between them, such as 10k,1M, where a "
    "workload\n"
    "                        lets them be chosen; default its own\n"
    "  -t, --threads LIST    thread counts with commas between them, max for all processors; default "
    "1,max\n"
    "How:\n"
    "  -r, --repeat N        samples of each subject, at least; default 9\n"
    "  -s, --time SECONDS    go on taking samples of each case for this long; default: only --repeat "
    "counts\n"
    "      --placements N    set each case up so many times, since it matters where data come to lie; "
    "default 3\n"
    "      --warm-up N       rounds in each of them that are not counted; default 2\n"
    "      --pin             keep each case to as many processors as it has threads\n"
    "      --frames          time single frames, too, where a pass is a frame\n"
    "      --counters        count cycles, instructions and misses, where the system allows it\n"
    "Results:\n"
    "  -j, --json[=FILE]     JSON lines instead of the table, or into a file besides it\n"
    "  -c, --csv[=FILE]      the same with CSV\n"
    "      --report FILE     write a page with charts (HTML, all in one file); implies --frames\n"
    "      --forecast LIST   what frames would take on so many threads, such as 4,8,16,64, from one that "
    "is\n"
    "                        recorded on the first of --threads, where a workload has frames to record\n"
    "      --profile         where the time of frames goes, by system and worker; with --counters, and "
    "what\n"
    "                        processors counted meanwhile\n"
    "      --trace FILE      write a trace of some passes of the last case (JSON for ui.perfetto.dev), of\n"
    "                        the subject after the control\n"
    "      --load FILE       measure nothing: take results that --json wrote before\n"
    "Comparing:\n"
    "      --compare FILE    say what is faster and what is slower than in FILE, which --json wrote "
    "before\n"
    "      --noise PERCENT   a change must be greater than this to be called one; default 5\n"
    "      --fail-slower     exit with status 3 when something is slower\n"
    "  -h, --help            print this help and stop\n"
    "\n"
    "Exit status: 0 when all ran and agreed, 1 when something failed or a subject disagrees with its "
    "control,\n"
    "2 when the command line is wrong, 3 with --fail-slower when something is slower.\n";

enum {
    OPTION_WARM_UP = 256,
    OPTION_PLACEMENTS,
    OPTION_PIN,
    OPTION_FRAMES,
    OPTION_COUNTERS,
    OPTION_PROFILE,
    OPTION_REPORT,
    OPTION_FORECAST,
    OPTION_TRACE,
    OPTION_LOAD,
    OPTION_COMPARE,
    OPTION_NOISE,
    OPTION_FAIL_SLOWER,
};

/* + stops at the first word that is no option; the colon leaves messages to us, and tells a missing
 * argument from an unknown option. */
static const char short_options[] = "+:hj::c::ln:r:s:t:w:";

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", optional_argument, NULL, 'j'},
    {"csv", optional_argument, NULL, 'c'},
    {"list", no_argument, NULL, 'l'},
    {"entities", required_argument, NULL, 'n'},
    {"repeat", required_argument, NULL, 'r'},
    {"time", required_argument, NULL, 's'},
    {"threads", required_argument, NULL, 't'},
    {"workload", required_argument, NULL, 'w'},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"placements", required_argument, NULL, OPTION_PLACEMENTS},
    {"pin", no_argument, NULL, OPTION_PIN},
    {"frames", no_argument, NULL, OPTION_FRAMES},
    {"counters", no_argument, NULL, OPTION_COUNTERS},
    {"profile", no_argument, NULL, OPTION_PROFILE},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"forecast", required_argument, NULL, OPTION_FORECAST},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"load", required_argument, NULL, OPTION_LOAD},
    {"compare", required_argument, NULL, OPTION_COMPARE},
    {"noise", required_argument, NULL, OPTION_NOISE},
    {"fail-slower", no_argument, NULL, OPTION_FAIL_SLOWER},
    {NULL, 0, NULL, 0},
};

typedef struct option_parser {
    quern__bench_options *options;
    const quern_bench_suite *suite;
    char *message; /* QUERN__BENCH_MESSAGE_BYTES */
} option_parser;

static bool refuse(const option_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns false, for the caller to return. */
static bool refuse(const option_parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->message, QUERN__BENCH_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/* ----------------------------------------------------------------------------------------- numbers */

/* k and M behind the digits stand for thousand and million. */
static bool parse_number(const option_parser *parser, const char *option, const char *text,
                         uint32_t minimum, uint32_t maximum, uint32_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const bool has_digits = text[0] >= '0' && text[0] <= '9' && errno == 0;
    const unsigned scale = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : 1;
    if (scale > 1) end++;
    if (!has_digits || *end != '\0' || value > maximum / scale || value * scale < minimum)
        return refuse(parser, "%s: '%s' is not a number from %u to %u", option, text, minimum, maximum);
    *number = (uint32_t)value * scale;
    return true;
}

static bool parse_real(const option_parser *parser, const char *option, const char *text, double maximum,
                       double *number)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= maximum))
        return refuse(parser, "%s: '%s' is not a number from 0 to %g", option, text, maximum);
    *number = value;
    return true;
}

static bool add_number(const option_parser *parser, const char *option, quern__bench_numbers *numbers,
                       uint32_t number)
{
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->values[i] == number) return true;
    if (numbers->count == QUERN__BENCH_MAX_LIST)
        return refuse(parser, "%s: more than %d numbers", option, QUERN__BENCH_MAX_LIST);
    numbers->values[numbers->count++] = number;
    return true;
}

/* ------------------------------------------------------------------------------------------- lists */

static bool add_thread_count(const option_parser *parser, char *text)
{
    uint32_t count = quern_processor_count();
    if (strcmp(text, "max") != 0 && !parse_number(parser, "--threads", text, 1, QUERN_MAX_THREADS, &count))
        return false;
    return add_number(parser, "--threads", &parser->options->thread_counts, count);
}

static bool add_forecast_count(const option_parser *parser, char *text)
{
    uint32_t count = 0;
    return parse_number(parser, "--forecast", text, 1, QUERN_MAX_THREADS, &count) &&
           add_number(parser, "--forecast", &parser->options->forecast_counts, count);
}

static bool add_entity_count(const option_parser *parser, char *text)
{
    uint32_t count = 0;
    return parse_number(parser, "--entities", text, 1, MAX_ENTITY_COUNT, &count) &&
           add_number(parser, "--entities", &parser->options->entity_counts, count);
}

static bool matches(const char *pattern, const quern_bench_workload *workload)
{
    return fnmatch(pattern, workload->name, 0) == 0 ||
           (workload->alias != NULL && fnmatch(pattern, workload->alias, 0) == 0);
}

static bool add_pattern(const option_parser *parser, char *pattern)
{
    quern__bench_options *options = parser->options;
    bool found = false;
    for (uint32_t i = 0; i < parser->suite->workload_count; i++)
        found |= matches(pattern, parser->suite->workloads[i]);
    if (!found) return refuse(parser, "--workload: there is no workload '%s'; --list shows them", pattern);
    if (options->pattern_count == QUERN__BENCH_MAX_PATTERNS)
        return refuse(parser, "--workload: more than %d names", QUERN__BENCH_MAX_PATTERNS);
    options->patterns[options->pattern_count++] = pattern;
    return true;
}

/* Calls add with each part of a comma-separated list, which it cuts up in place. */
static bool for_each_part(const option_parser *parser, char *list,
                          bool (*add)(const option_parser *, char *))
{
    char *next = list;
    while (next != NULL)
        if (!add(parser, strsep(&next, ","))) return false;
    return true;
}

bool quern__bench_options_select(const quern__bench_options *options, const quern_bench_workload *workload)
{
    bool found = options->pattern_count == 0;
    for (uint32_t i = 0; i < options->pattern_count && !found; i++)
        found = matches(options->patterns[i], workload);
    return found;
}

/* ------------------------------------------------------------------------------------------ options */

static const char *path_or_stdout(const char *argument)
{
    return argument != NULL ? argument : "-";
}

static bool parse_noise(const option_parser *parser)
{
    if (!parse_real(parser, "--noise", optarg, 100, &parser->options->noise)) return false;
    parser->options->noise /= 100;
    return true;
}

/* Options whose argument is a number or a list; false, with a message, when it is a bad one. */
static bool apply_numbers(const option_parser *parser, int option)
{
    quern__bench_options *options = parser->options;
    switch (option) {
    case 'n':
        return for_each_part(parser, optarg, add_entity_count);
    case 'r':
        return parse_number(parser, "--repeat", optarg, 1, QUERN__BENCH_MAX_SAMPLES,
                            &options->repeat_count);
    case 's':
        return parse_real(parser, "--time", optarg, MAX_TIME_S, &options->time_s);
    case 't':
        return for_each_part(parser, optarg, add_thread_count);
    case 'w':
        return for_each_part(parser, optarg, add_pattern);
    case OPTION_FORECAST:
        return for_each_part(parser, optarg, add_forecast_count);
    case OPTION_WARM_UP:
        return parse_number(parser, "--warm-up", optarg, 0, MAX_WARM_UP_COUNT, &options->warm_up_count);
    case OPTION_PLACEMENTS:
        return parse_number(parser, "--placements", optarg, 1, QUERN__BENCH_MAX_SAMPLES,
                            &options->placement_count);
    default:
        return parse_noise(parser);
    }
}

/* Switches and paths; false when the option is none of them. */
static bool apply_switch(quern__bench_options *options, int option)
{
    switch (option) {
    case 'h':
        options->help = true;
        return true;
    case 'l':
        options->list = true;
        return true;
    case 'j':
        options->json = path_or_stdout(optarg);
        return true;
    case 'c':
        options->csv = path_or_stdout(optarg);
        return true;
    case OPTION_PIN:
        options->pin = true;
        return true;
    case OPTION_FRAMES:
        options->frames = true;
        return true;
    case OPTION_COUNTERS:
        options->counters = true;
        return true;
    case OPTION_PROFILE:
        options->profile = true;
        return true;
    case OPTION_REPORT:
        options->report = optarg;
        options->frames = true;
        return true;
    case OPTION_TRACE:
        options->trace = optarg;
        return true;
    case OPTION_LOAD:
        options->load = optarg;
        return true;
    case OPTION_COMPARE:
        options->compare = optarg;
        return true;
    case OPTION_FAIL_SLOWER:
        options->fail_slower = true;
        return true;
    default:
        return false;
    }
}

static bool apply(const option_parser *parser, int option, const char *word)
{
    if (option == '?') return refuse(parser, "'%s' is not an option, or not a complete one", word);
    if (option == ':') return refuse(parser, "'%s' needs an argument", word);
    return apply_switch(parser->options, option) || apply_numbers(parser, option);
}

static bool check_together(const option_parser *parser)
{
    const quern__bench_options *options = parser->options;
    const bool json = options->json != NULL && strcmp(options->json, "-") == 0;
    const bool csv = options->csv != NULL && strcmp(options->csv, "-") == 0;
    if (json && csv) return refuse(parser, "--json and --csv cannot both go to stdout; give one a file");
    if (options->fail_slower && options->compare == NULL)
        return refuse(parser, "--fail-slower needs --compare");
    return true;
}

bool quern__bench_options_take_stdout(const quern__bench_options *options)
{
    return (options->json != NULL && strcmp(options->json, "-") == 0) ||
           (options->csv != NULL && strcmp(options->csv, "-") == 0);
}

static void set_default_thread_counts(quern__bench_numbers *counts)
{
    const uint32_t all = quern_processor_count();
    *counts = (quern__bench_numbers){.values = {1, all}, .count = all > 1 ? 2 : 1};
}

static bool parse_words(const option_parser *parser, int argc, char **argv)
{
    optind = 0; /* glibc: begin anew */
    for (;;) {
        const int before = optind > 0 ? optind : 1;
        const int option = getopt_long(argc, argv, short_options, long_options, NULL);
        if (option == -1) break;
        if (!apply(parser, option, argv[before])) return false;
    }
    return optind == argc || refuse(parser, "'%s' is not an option", argv[optind]);
}

bool quern__bench_options_parse(quern__bench_options *options, const quern_bench_suite *suite, int argc,
                                char **argv, char message[QUERN__BENCH_MESSAGE_BYTES])
{
    *options = (quern__bench_options){
        .repeat_count = DEFAULT_REPEAT_COUNT,
        .warm_up_count = DEFAULT_WARM_UP_COUNT,
        .placement_count = DEFAULT_PLACEMENT_COUNT,
        .noise = default_noise,
    };
    const option_parser parser = {.options = options, .suite = suite, .message = message};
    if (!parse_words(&parser, argc, argv)) return false;
    if (options->thread_counts.count == 0) set_default_thread_counts(&options->thread_counts);
    return check_together(&parser);
}

void quern__bench_options_print_help(const quern_bench_suite *suite)
{
    printf("Usage: %s [OPTION]...\n", suite->program);
    if (suite->summary != NULL) printf("%s\n", suite->summary);
    printf("\n%s", help_text);
}
