/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/options.h"

#include "bench/harness/machine.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/base.h>
#include <quern/jobs.h>

enum {
    DEFAULT_REPEAT_COUNT = 9,
    DEFAULT_WARM_UP_COUNT = 2,
    DEFAULT_PLACEMENT_COUNT = 3,
    MAX_WARM_UP_COUNT = 100,
    MAX_TIME_S = 3600,
    MAX_ENTITY_COUNT = 1 << 28,
    SWEEP_THREADS = 64,
};

static const double default_noise = 0.05;

static const char help_text[] =
    "Selection:\n"
    "  -l, --list            list the workloads and exit\n"
    "  -i, --info            print the machine, its caches and the build, and exit\n"
    "  -w, --workload NAME   run the workloads with this name: a pattern (*, ?, [...]), or several,\n"
    "                        separated by commas; may be repeated; default all\n"
    "  -x, --exclude NAME    leave out workloads with this name; patterns and lists as for --workload\n"
    "  -n, --entities LIST   run workloads with these numbers of entities, separated by commas, such as\n"
    "                        10k,1M; workloads of a fixed size ignore it; default: each workload's sizes\n"
    "  -t, --threads LIST    run workloads on these numbers of threads, separated by commas; max: all\n"
    "                        processors; default 1,max\n"
    "Measurement:\n"
    "  -r, --repeat N        minimum number of samples of each subject; default 9\n"
    "  -s, --time SECONDS    measure each case for at least this long; default: --repeat alone decides\n"
    "      --placements N    set up each case N times, because times depend on where data are in memory;\n"
    "                        default 3\n"
    "      --warm-up N       run N samples after each set-up without recording them; default 2\n"
    "      --passes N        run at most N passes in a sample: checks that everything runs, and measures\n"
    "                        nothing useful\n"
    "      --pin             restrict each case to as many processors as it has threads\n"
    "      --crowd N         run N threads beside each case that only take processor time, as on a "
    "machine\n"
    "                        that other programs use; the results do not say so\n"
    "      --frames          also time single frames, in workloads whose passes are frames\n"
    "      --counters        count cycles, instructions and cache misses, if the machine permits it\n"
    "Results:\n"
    "  -j, --json[=FILE]     print JSON lines instead of the table, or also write them to FILE\n"
    "  -c, --csv[=FILE]      print CSV instead of the table, or also write it to FILE\n"
    "      --report FILE     write a page with charts (one HTML file); implies --frames\n"
    "      --forecast LIST   predict frame times on these numbers of threads, such as 4,8,16,64, from\n"
    "                        frames captured on the first of --threads\n"
    "      --sweep[=FILE]    measure on 1, 2, 4, ... threads up to all processors, predict up to 64, and "
    "write\n"
    "                        a page with both (as --report; default sweep.html): --threads, --forecast "
    "and\n"
    "                        --workload change what it measures\n"
    "      --profile         print the time of each system and worker; with --counters also the counts\n"
    "      --trace FILE      write a trace (JSON for ui.perfetto.dev) of some passes of the last case, by\n"
    "                        the first subject after the control\n"
    "      --load FILE       measure nothing; read the results that --json wrote to FILE, and select from\n"
    "                        them by -w, -x, -n and -t\n"
    "Comparison:\n"
    "      --compare FILE    print which results are faster or slower than those in FILE, which --json\n"
    "                        wrote\n"
    "      --noise PERCENT   smallest change that counts as faster or slower; default 5\n"
    "      --fail-slower     exit with status 3 if a result is slower than in the file of --compare\n"
    "  -h, --help            print this help and exit\n"
    "\n"
    "Exit status: 0: all workloads ran and all checksums agree; 1: a workload failed, a file could not be\n"
    "written, or a subject's checksum differs from its control's; 2: the command line is wrong; 3: with\n"
    "--fail-slower, a result is slower.\n";

enum {
    OPTION_WARM_UP = 256,
    OPTION_PLACEMENTS,
    OPTION_PASSES,
    OPTION_PIN,
    OPTION_CROWD,
    OPTION_FRAMES,
    OPTION_COUNTERS,
    OPTION_PROFILE,
    OPTION_REPORT,
    OPTION_FORECAST,
    OPTION_SWEEP,
    OPTION_TRACE,
    OPTION_LOAD,
    OPTION_COMPARE,
    OPTION_NOISE,
    OPTION_FAIL_SLOWER,
    OPTION_END,
};

/* The plus sign makes getopt stop at the first word that is no option. The colon suppresses messages of
 * getopt, and distinguishes a missing argument from an unknown option. */
static const char short_options[] = "+:hij::c::ln:r:s:t:w:x:";

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"info", no_argument, NULL, 'i'},
    {"json", optional_argument, NULL, 'j'},
    {"csv", optional_argument, NULL, 'c'},
    {"list", no_argument, NULL, 'l'},
    {"entities", required_argument, NULL, 'n'},
    {"repeat", required_argument, NULL, 'r'},
    {"time", required_argument, NULL, 's'},
    {"threads", required_argument, NULL, 't'},
    {"workload", required_argument, NULL, 'w'},
    {"exclude", required_argument, NULL, 'x'},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"placements", required_argument, NULL, OPTION_PLACEMENTS},
    {"passes", required_argument, NULL, OPTION_PASSES},
    {"pin", no_argument, NULL, OPTION_PIN},
    {"crowd", required_argument, NULL, OPTION_CROWD},
    {"frames", no_argument, NULL, OPTION_FRAMES},
    {"counters", no_argument, NULL, OPTION_COUNTERS},
    {"profile", no_argument, NULL, OPTION_PROFILE},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"forecast", required_argument, NULL, OPTION_FORECAST},
    {"sweep", optional_argument, NULL, OPTION_SWEEP},
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
    char *message;        /* buffer of QUERN__BENCH_MESSAGE_BYTES */
    unsigned *seen_count; /* number of uses of each option, by its number below OPTION_END */
} option_parser;

static bool refuse(const option_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the message. Returns false, so that callers can return its result. */
static bool refuse(const option_parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->message, QUERN__BENCH_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/* ----------------------------------------------------------------------------------------- numbers */

/* Parses a number; k and M after the digits mean thousand and million. */
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
        return refuse(parser,
                      "%s: '%s' is not a number from %u to %u (k and M stand for thousands and millions)",
                      option, text, minimum, maximum);
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
        return refuse(parser, "%s: more than %d numbers in the list; remove some", option,
                      QUERN__BENCH_MAX_LIST);
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

static bool add_name(const option_parser *parser, const char *option, quern__bench_names *names,
                     const char *pattern)
{
    if (names->count == QUERN__BENCH_MAX_PATTERNS)
        return refuse(parser, "%s: more than %d names; remove some, or use patterns", option,
                      QUERN__BENCH_MAX_PATTERNS);
    names->patterns[names->count++] = pattern;
    return true;
}

static bool add_workload(const option_parser *parser, char *pattern)
{
    return add_name(parser, "--workload", &parser->options->workloads, pattern);
}

static bool add_excluded(const option_parser *parser, char *pattern)
{
    return add_name(parser, "--exclude", &parser->options->excluded, pattern);
}

/* Calls `add` with each part of a comma-separated list. Splits the list in place. */
static bool for_each_part(const option_parser *parser, char *list,
                          bool (*add)(const option_parser *, char *))
{
    char *next = list;
    while (next != NULL)
        if (!add(parser, strsep(&next, ","))) return false;
    return true;
}

static bool matches(const quern__bench_names *names, const char *name, const char *alias)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (fnmatch(names->patterns[i], name, 0) == 0 ||
            (alias != NULL && fnmatch(names->patterns[i], alias, 0) == 0))
            return true;
    return false;
}

bool quern__bench_options_select(const quern__bench_options *options, const char *name, const char *alias)
{
    return (options->workloads.count == 0 || matches(&options->workloads, name, alias)) &&
           !matches(&options->excluded, name, alias);
}

/* Fails if a name or pattern matches no workload of the suite, since it is probably misspelt. */
static bool check_names(const option_parser *parser, const char *option, const quern__bench_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const quern__bench_names one = {.patterns = {names->patterns[i]}, .count = 1};
        bool found = false;
        quern_suggestion suggestion = {0};
        for (uint32_t w = 0; w < parser->suite->workload_count && !found; w++) {
            const quern_bench_workload *workload = parser->suite->workloads[w];
            found = matches(&one, workload->name, workload->alias);
            quern_suggestion_offer(&suggestion, names->patterns[i], strlen(names->patterns[i]),
                                   workload->name);
            quern_suggestion_offer(&suggestion, names->patterns[i], strlen(names->patterns[i]),
                                   workload->alias);
        }
        if (!found)
            return refuse(parser, "%s: there is no workload '%s'; --list shows them%s", option,
                          names->patterns[i], suggestion.text);
    }
    return true;
}

static bool check_selection(const option_parser *parser)
{
    const quern__bench_options *options = parser->options;
    if (options->load != NULL) return true;
    if (!check_names(parser, "--workload", &options->workloads) ||
        !check_names(parser, "--exclude", &options->excluded))
        return false;
    for (uint32_t i = 0; i < parser->suite->workload_count; i++)
        if (quern__bench_options_select(options, parser->suite->workloads[i]->name,
                                        parser->suite->workloads[i]->alias))
            return true;
    return refuse(parser, "--exclude leaves no workload to run; exclude fewer");
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

/* Applies options with a number or a list as argument. Returns false, with a message, for a wrong one. */
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
        return for_each_part(parser, optarg, add_workload);
    case 'x':
        return for_each_part(parser, optarg, add_excluded);
    case OPTION_FORECAST:
        return for_each_part(parser, optarg, add_forecast_count);
    case OPTION_WARM_UP:
        return parse_number(parser, "--warm-up", optarg, 0, MAX_WARM_UP_COUNT, &options->warm_up_count);
    case OPTION_CROWD:
        return parse_number(parser, "--crowd", optarg, 1, QUERN__BENCH_MAX_CROWD, &options->crowd_count);
    case OPTION_PLACEMENTS:
        return parse_number(parser, "--placements", optarg, 1, QUERN__BENCH_MAX_SAMPLES,
                            &options->placement_count);
    case OPTION_PASSES:
        return parse_number(parser, "--passes", optarg, 1, QUERN__BENCH_MAX_PASSES, &options->max_passes);
    default:
        return parse_noise(parser);
    }
}

/* Applies options without an argument or with a path. Returns false for other options. */
static bool apply_switch(quern__bench_options *options, int option)
{
    switch (option) {
    case 'h':
        options->help = true;
        return true;
    case 'i':
        options->info = true;
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
    case OPTION_SWEEP:
        options->sweep = optarg != NULL ? optarg : "sweep.html";
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

/* Fails with the reason why getopt rejected a word with two dashes: unknown, ambiguous, or with an argument
 * that the option does not have. */
static bool refuse_long(const option_parser *parser, const char *word)
{
    const size_t length = strcspn(word + 2, "=");
    const struct option *first = NULL;
    const struct option *second = NULL;
    quern_suggestion suggestion = {0};
    for (const struct option *option = long_options; option->name != NULL; option++) {
        quern_suggestion_offer(&suggestion, word + 2, length, option->name);
        if (strncmp(option->name, word + 2, length) != 0) continue;
        if (strlen(option->name) == length) return refuse(parser, "--%s takes no argument", option->name);
        second = first;
        first = option;
    }
    if (second != NULL)
        return refuse(parser, "'%s' is ambiguous: write --%s or --%s", word, second->name, first->name);
    if (first != NULL) return refuse(parser, "--%s takes no argument", first->name);
    return refuse(parser, "'%s' is not an option%s", word, suggestion.text);
}

static bool apply(const option_parser *parser, int option, const char *word)
{
    if (option == ':') return refuse(parser, "'%s' needs an argument", word);
    if (option == '?')
        return word[1] == '-' ? refuse_long(parser, word)
                              : refuse(parser, "'-%c' is not an option", optopt);
    parser->seen_count[option]++;
    return apply_switch(parser->options, option) || apply_numbers(parser, option);
}

/* ----------------------------------------------------------------------------------------- together */

static const char *long_name(int option)
{
    const struct option *item = long_options;
    while (item->name != NULL && item->val != option)
        item++;
    return item->name;
}

/* Fails if an option with a path is given twice, because the second path would silently replace the
 * first. */
static bool check_given_once(const option_parser *parser)
{
    static const int options[] = {'j',          'c',         OPTION_REPORT, OPTION_SWEEP,
                                  OPTION_TRACE, OPTION_LOAD, OPTION_COMPARE};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (parser->seen_count[options[i]] > 1)
            return refuse(parser, "--%s is given twice; remove one", long_name(options[i]));
    return true;
}

static bool check_load(const option_parser *parser)
{
    static const int measuring[] = {
        'r',           's',          OPTION_WARM_UP,  OPTION_PLACEMENTS, OPTION_PASSES,  OPTION_PIN,
        OPTION_FRAMES, OPTION_TRACE, OPTION_FORECAST, OPTION_COUNTERS,   OPTION_PROFILE, OPTION_CROWD,
        OPTION_SWEEP,
    };
    if (parser->options->load == NULL) return true;
    for (size_t i = 0; i < sizeof measuring / sizeof measuring[0]; i++)
        if (parser->seen_count[measuring[i]] > 0)
            return refuse(parser, "--%s has no effect with --load, which measures nothing; remove one",
                          long_name(measuring[i]));
    return true;
}

static bool check_compare(const option_parser *parser)
{
    static const int comparing[] = {OPTION_FAIL_SLOWER, OPTION_NOISE};
    if (parser->options->compare != NULL) return true;
    for (size_t i = 0; i < sizeof comparing / sizeof comparing[0]; i++)
        if (parser->seen_count[comparing[i]] > 0)
            return refuse(parser, "--%s needs --compare", long_name(comparing[i]));
    return true;
}

/* Adds the powers of two below `most`, and `most` itself. */
static void add_powers(quern__bench_numbers *numbers, uint32_t most)
{
    for (uint32_t count = 1; count < most; count *= 2)
        numbers->values[numbers->count++] = count;
    numbers->values[numbers->count++] = most;
}

/* Gives the options that --sweep stands for the values that the command line has not given. */
static bool apply_sweep(const option_parser *parser)
{
    quern__bench_options *options = parser->options;
    if (options->sweep == NULL) return true;
    if (options->report != NULL)
        return refuse(parser, "--sweep writes the page of --report; remove one, or write --sweep=%s",
                      options->report);
    options->report = options->sweep;
    if (options->thread_counts.count == 0) add_powers(&options->thread_counts, quern_processor_count());
    if (options->forecast_counts.count == 0) add_powers(&options->forecast_counts, SWEEP_THREADS);
    if (options->workloads.count == 0)
        for (uint32_t i = 0; i < parser->suite->sweep_count; i++)
            if (!add_name(parser, "--sweep", &options->workloads, parser->suite->sweep[i])) return false;
    return true;
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static bool check_paths(const option_parser *parser)
{
    const quern__bench_options *options = parser->options;
    const char *const names[] = {"json", "csv", "report", "trace"};
    const char *const paths[] = {options->json, options->csv, options->report, options->trace};
    enum { COUNT = sizeof paths / sizeof paths[0] };
    if (is_stdout(options->trace)) return refuse(parser, "--trace needs a file");
    for (int i = 0; i < COUNT; i++)
        for (int k = i + 1; k < COUNT; k++)
            if (paths[i] != NULL && paths[k] != NULL && strcmp(paths[i], paths[k]) == 0)
                return refuse(parser, "--%s and --%s cannot both go to %s", names[i], names[k],
                              is_stdout(paths[i]) ? "stdout; give one a file" : paths[i]);
    return true;
}

bool quern__bench_options_use_stdout(const quern__bench_options *options)
{
    return is_stdout(options->json) || is_stdout(options->csv) || is_stdout(options->report);
}

/* Fails because of a word that is no option. Options such as -j expect their argument in the same word; if
 * the word follows one of them, the message shows the right form. */
static bool refuse_rest(const option_parser *parser, const char *word, const char *previous)
{
    for (const struct option *option = long_options; option->name != NULL; option++) {
        const bool is_long = strncmp(previous, "--", 2) == 0 && strcmp(previous + 2, option->name) == 0;
        const bool is_short = previous[0] == '-' && previous[1] == option->val && previous[2] == '\0';
        if (option->has_arg == optional_argument && (is_long || is_short))
            return refuse(parser, "'%s' is not an option; to write to this file, use --%s=%s", word,
                          option->name, word);
    }
    return refuse(parser, "'%s' is not an option", word);
}

static bool parse_words(const option_parser *parser, int argc, char **argv)
{
    optind = 0; /* makes glibc's getopt start again */
    for (;;) {
        const int before = optind > 0 ? optind : 1;
        const int option = getopt_long(argc, argv, short_options, long_options, NULL);
        if (option == -1) break;
        if (!apply(parser, option, argv[before])) return false;
    }
    return optind == argc || refuse_rest(parser, argv[optind], argv[optind - 1]);
}

bool quern__bench_options_parse(quern__bench_options *options, const quern_bench_suite *suite, int argc,
                                char **argv, char message[QUERN__BENCH_MESSAGE_BYTES])
{
    *options = (quern__bench_options){
        .repeat_count = DEFAULT_REPEAT_COUNT,
        .warm_up_count = DEFAULT_WARM_UP_COUNT,
        .placement_count = DEFAULT_PLACEMENT_COUNT,
        .max_passes = QUERN__BENCH_MAX_PASSES,
        .noise = default_noise,
    };
    unsigned seen_count[OPTION_END] = {0};
    const option_parser parser = {
        .options = options, .suite = suite, .message = message, .seen_count = seen_count};
    if (!parse_words(&parser, argc, argv) || !apply_sweep(&parser)) return false;
    options->threads_chosen = options->thread_counts.count > 0;
    if (!options->threads_chosen) {
        const uint32_t all = quern_processor_count();
        options->thread_counts = (quern__bench_numbers){.values = {1, all}, .count = all > 1 ? 2 : 1};
    }
    return check_given_once(&parser) && check_load(&parser) && check_compare(&parser) &&
           check_paths(&parser) && check_selection(&parser);
}

void quern__bench_options_print_help(const quern_bench_suite *suite)
{
    printf("Usage: %s [OPTION]...\n", suite->program);
    if (suite->summary != NULL) printf("%s\n", suite->summary);
    printf("\n%s", help_text);
}
