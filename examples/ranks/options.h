/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_OPTIONS_H
#define RANKS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { NO_RANK = UINT32_MAX };

typedef struct Options {
    uint32_t rank_count; /* 0: not given */
    uint32_t thread_count, agent_count, frame_count;
    uint64_t seed;
    uint32_t balance_interval;  /* frames; 0: borders stay */
    uint32_t archive_interval;  /* frames */
    const char *archive_folder; /* NULL: no archives */
    const char *restart_folder; /* NULL: from the beginning */
    uint32_t dying_rank;        /* NO_RANK: none */
    uint32_t dying_frame;
    double timeout_seconds;
    bool json, ping;
} Options;

/* Parses the options of the command line. Ends the program, with a message, if they are wrong. */
Options options_parse(int argc, char **argv);

#endif
