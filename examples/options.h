/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

/* The answer of programs to an option that they do not have, after getopt_long has named it. */

#include <quern/base.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
