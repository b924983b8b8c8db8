/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_OPTIONS_H
#define SWARM_OPTIONS_H

#include <quern/schedule.h>

#include <stdbool.h>
#include <stdint.h>

enum { FORECAST_COUNT_MAX = 32 };

typedef struct Options {
    uint32_t entity_count;
    uint32_t frame_count;  /* 0: until interrupted */
    uint32_t thread_count; /* 0: all processors */
    uint64_t seed;
    bool json;          /* the last line of the output is one JSON object */
    bool plain;         /* no live view */
    bool baseline;      /* compare with one thread */
    bool profile;       /* say where the time went */
    bool counters;      /* and what processors counted */
    const char *trace;  /* file; NULL: none */
    const char *record; /* file to record all frames in; NULL: none */
    const char *replay; /* file with frames to run again, and nothing else; NULL: none */
    bool rewind;        /* take frames back and run them again */
    bool explain;       /* describe the schedule, and nothing else */
    quern_describe_format explain_format;
    /* Numbers of threads for which to say what a frame would take; none when the count is 0. */
    uint32_t forecasts[FORECAST_COUNT_MAX];
    uint32_t forecast_count;
} Options;

/* Ends the program for --help, and with exit status 2 when it cannot make sense of the arguments. */
Options options_parse(int argc, char **argv);

#endif
