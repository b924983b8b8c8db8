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
    bool json;             /* print one JSON object as the last line */
    bool plain;            /* print lines instead of the map */
    bool baseline;         /* run the frames again on one thread and compare */
    bool profile;          /* print a profile */
    bool counters;         /* print hardware counters */
    const char *trace;     /* file; NULL: none */
    const char *record;    /* file for a recording of all frames; NULL: none */
    const char *replay;    /* only run this recording again; NULL: none */
    bool rewind;           /* restore frames and run them again */
    bool inspect;          /* run with an inspector, and nothing else */
    uint16_t inspect_port; /* 0: a free one */
    bool window;           /* run in a window, and nothing else */
    const char *picture;   /* file for a picture of the last frame, and nothing else; NULL: none */
    bool has_frame_count;  /* --frames was given */
    bool explain;          /* only describe the schedule, after some frames */
    quern_describe_format explain_format;
    /* Numbers of threads to forecast; none if the count is 0. */
    uint32_t forecasts[FORECAST_COUNT_MAX];
    uint32_t forecast_count;
} Options;

/* Parses the arguments. Ends the program for --help, and with exit status 2 for wrong arguments. */
Options options_parse(int argc, char **argv);

#endif
