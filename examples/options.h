/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

/* Options of programs: numbers, and the answer to an option that a program does not have, after getopt_long has named it. */

#include <quern/base.h>

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of an option, in decimal or after 0x. Ends the program if the text is no number from least to most. */
static inline uint64_t parse_number(const char *program, const char *option, const char *text,
                                    uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number >= least && number <= most)
        return number;
    fprintf(stderr, "%s: --%s takes a whole number from %llu to %llu, not '%s'\n", program, option,
            (unsigned long long)least, (unsigned long long)most, text);
    exit(2);
}

/* Returns the number of an option whose argument is optional and may be the next word; `otherwise` if there is none. */
static inline uint64_t parse_optional_number(const char *program, const char *option, int argc, char **argv,
                                             uint64_t most, uint64_t otherwise)
{
    if (optarg == NULL && optind < argc && argv[optind][0] != '-') optarg = argv[optind++];
    return optarg != NULL ? parse_number(program, option, optarg, 0, most) : otherwise;
}

/* Prints which option the user probably meant, and how to list all, and ends the program. `words` are the arguments, of
 * which getopt_long has refused the last one that it has read. */
static inline _Noreturn void refuse_option(const char *program, const struct option *options, char **words)
{
    const char *word = words[optind - 1];
    quern_suggestion suggestion = {0};
    if (optopt == 0) /* an unknown name, and not a wrong argument of a known one */
        for (const struct option *option = options; option->name != NULL; option++)
            quern_suggestion_offer(&suggestion, word + 2, strcspn(word + 2, "="), option->name);
    fprintf(stderr, "%s: '%s --help' lists the options%s\n", program, program, suggestion.text);
    exit(2);
}

#endif
