/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_INPUTS_H
#define KEEP_INPUTS_H

/* What a player has done in a game, as a text file: a line for each action, with the step before which it
 * is done.
 *
 *     # the ford
 *     0 build gun 21 9
 *     30 wave
 *     400 sell 21 9
 *     3600 end
 *
 * Steps do not go back. The last line says how many steps the game has. */

#include "game.h"

typedef struct Input {
    uint64_t step;
    Action action;
} Input;

typedef struct Inputs {
    Input *list;
    uint32_t count, capacity;
    uint64_t end; /* steps of the game */
} Inputs;

/* Reads a file. Returns false, and says in message which line of it is wrong, and how. */
bool inputs_load(Inputs *inputs, const char *path, char *message, size_t message_bytes);

/* Writes one. Returns false with a message, too. */
bool inputs_save(const Inputs *inputs, const char *path, char *message, size_t message_bytes);

void inputs_add(Inputs *inputs, uint64_t step, const Action *action);

/* Drops what was done from a step on: the game has been taken back to it. */
void inputs_rewind(Inputs *inputs, uint64_t step);

/* How many inputs are done before a step, and are not those of that step. */
uint32_t inputs_before(const Inputs *inputs, uint64_t step);

/* Does what is done before the next step of the game; *next is the first input that was not done yet.
 * Returns false, and says in message what the game would not do. */
bool inputs_replay(const Inputs *inputs, uint32_t *next, Game *game, char *message, size_t message_bytes);

void inputs_free(Inputs *inputs);

#endif
