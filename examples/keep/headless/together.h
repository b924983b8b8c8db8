/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_TOGETHER_H
#define KEEP_TOGETHER_H

/* A game over the network without a window: a player that builds and sells at random. */

#include "../net/net.h"

typedef struct TogetherOptions {
    NetOptions net;
    uint32_t thread_count;
    uint32_t seed; /* of the player */
    uint32_t pace; /* steps per second; 0: as many as possible */
    bool has_pace; /* whether the option was given */
    bool json;
} TogetherOptions;

/* Plays, and prints the result. Ends the program with a message if the game cannot go on. */
void play_together(const TogetherOptions *options, const Level *level);

#endif
