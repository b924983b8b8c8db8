/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/options.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/jobs.h>

#include "bench/workloads.h"

enum { DEFAULT_REPEAT_COUNT = 9, MAX_REPEAT_COUNT = 1000, MAX_ENTITY_COUNT = 1 << 28, EXIT_USAGE = 2 };

static const char help_text[] =
    "Usage: quern_bench [OPTION]...\n"
    "Measures workloads on quern and on hand-written arrays (raw), in turn, in one process.\n"
    "\n"
    "  -l, --list            list the workloads and stop\n"
    "  -w, --workload NAME   run the workloads of this name: a pattern (*, ?, [...]), or several with\n"
    "                        commas between them; may be given again; default all\n"
    "  -n, --entities N      entities, where a workload lets them be chosen; default its own\n"
    "  -t, --threads LIST    thread counts with commas between them, max for all processors;\n"
    "                        default 1,max\n"
    "  -r, --repeat N        samples of each subject, of which the median is taken; default 9\n"
    "  -j, --json            print one JSON object per workload, thread count and subject\n"
    "  -h, --help            print this help and stop\n"
    "\n"
    "Exit status: 0 when all ran and agreed, 1 when a call failed or the two subjects disagree,\n"
    "2 when the command line is wrong.\n";

static const char short_options[] = "hjln:r:t:w:";

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},           {"json", no_argument, NULL, 'j'},
    {"list", no_argument, NULL, 'l'},           {"entities", required_argument, NULL, 'n'},
    {"repeat", required_argument, NULL, 'r'},   {"threads", required_argument, NULL, 't'},
    {"workload", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0},
};

static _Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("quern_bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\nTry 'quern_bench --help'.\n", stderr);
    va_end(arguments);
    exit(EXIT_USAGE);
}

static uint32_t parse_number(const char *option, const char *text, uint32_t maximum)
{
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    const bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!is_number || value < 1 || value > maximum)
        usage_error("%s: '%s' is not a number from 1 to %u", option, text, maximum);
    return (uint32_t)value;
}

/* ----------------------------------------------------------------------------------------- threads */

static bool has_thread_count(const bench_options *options, uint32_t thread_count)
{
    for (uint32_t i = 0; i < options->thread_count_count; i++)
        if (options->thread_counts[i] == thread_count) return true;
    return false;
}

static void add_thread_count(bench_options *options, const char *text)
{
    const uint32_t thread_count = strcmp(text, "max") == 0
                                      ? quern_processor_count()
                                      : parse_number("--threads", text, QUERN_MAX_THREADS);
    if (has_thread_count(options, thread_count)) return;
    if (options->thread_count_count == BENCH_MAX_THREAD_COUNTS)
        usage_error("--threads: more than %d thread counts", BENCH_MAX_THREAD_COUNTS);
    options->thread_counts[options->thread_count_count++] = thread_count;
}

/* --------------------------------------------------------------------------------------- workloads */

/* The name of the workload that the pattern matches, or NULL. */
static const char *matched_name(const char *pattern, const bench_workload *workload)
{
    if (fnmatch(pattern, workload->name, 0) == 0) return workload->name;
    return workload->alias != NULL && fnmatch(pattern, workload->alias, 0) == 0 ? workload->alias : NULL;
}

static void add_pattern(bench_options *options, char *pattern)
{
    bool found = false;
    for (uint32_t i = 0; i < bench_workload_count; i++)
        found |= matched_name(pattern, bench_workloads[i]) != NULL;
    if (!found) usage_error("--workload: there is no workload '%s'; --list shows them", pattern);
    if (options->pattern_count == BENCH_MAX_PATTERNS)
        usage_error("--workload: more than %d names", BENCH_MAX_PATTERNS);
    options->patterns[options->pattern_count++] = pattern;
}

const char *bench_options_select(const bench_options *options, const bench_workload *workload)
{
    const char *name = options->pattern_count == 0 ? workload->name : NULL;
    for (uint32_t i = 0; i < options->pattern_count && name == NULL; i++)
        name = matched_name(options->patterns[i], workload);
    return name;
}

/* -------------------------------------------------------------------------------------------- list */

/* Calls add with each part of a comma-separated list, which it cuts up in place. */
static void for_each_part(char *list, bench_options *options, void (*add)(bench_options *, char *))
{
    char *next = list;
    while (next != NULL)
        add(options, strsep(&next, ","));
}

static void add_thread_part(bench_options *options, char *part)
{
    add_thread_count(options, part);
}

static void apply(bench_options *options, int option)
{
    switch (option) {
    case 'h':
        fputs(help_text, stdout);
        exit(EXIT_SUCCESS);
    case 'j':
        options->json = true;
        break;
    case 'l':
        options->list = true;
        break;
    case 'n':
        options->entity_count = parse_number("--entities", optarg, MAX_ENTITY_COUNT);
        break;
    case 'r':
        options->repeat_count = parse_number("--repeat", optarg, MAX_REPEAT_COUNT);
        break;
    case 't':
        for_each_part(optarg, options, add_thread_part);
        break;
    case 'w':
        for_each_part(optarg, options, add_pattern);
        break;
    default:
        fputs("Try 'quern_bench --help'.\n", stderr);
        exit(EXIT_USAGE);
    }
}

bench_options bench_options_parse(int argc, char **argv)
{
    bench_options options = {.repeat_count = DEFAULT_REPEAT_COUNT};
    for (;;) {
        const int option = getopt_long(argc, argv, short_options, long_options, NULL);
        if (option == -1) break;
        apply(&options, option);
    }
    if (optind < argc) usage_error("'%s' is not an option", argv[optind]);
    if (options.thread_count_count == 0) {
        add_thread_count(&options, "1");
        add_thread_count(&options, "max");
    }
    return options;
}
