/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_OPTIONS_H
#define KEEP_OPTIONS_H

/* The command line of the game in a window. */

#include "../net/net.h"

typedef struct Options {
    const char *level;
    const char *input;      /* a recorded game to watch, or NULL */
    const char *record;     /* file for the played game, or NULL */
    const char *save;       /* file of the saved game; NULL: a file in the folder of the user */
    bool loads;             /* whether the saved game is loaded at the start */
    const char *screenshot; /* file for a picture, which is drawn instead of playing; or NULL */
    uint32_t frame_count;   /* number of steps before the picture */
    uint32_t thread_count;
    bool overlay, title, menu;
    bool inspect; /* whether the game is shown in a browser, on inspect_port (0: a free one) */
    uint16_t inspect_port;
    bool is_shared; /* whether the game is played over the network */
    uint32_t seed;  /* of a player that plays by itself over the network; 0: none */
    NetOptions net;
} Options;

Options options_parse(int argc, char **argv);

#endif
