/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_INPUTS_H
#define KEEP_INPUTS_H

/* The actions of a player in a game, and their file: a text with one line per action. A line begins with
 * the number of the step before which the action is performed.
 *
 *     # the ford
 *     0 build gun 21 9
 *     30 wave
 *     400 sell 21 9
 *     3600 end
 *
 * The numbers never decrease. The last line has the number of steps of the game. */

#include "game.h"

#include <stdio.h>

typedef struct Input {
    uint64_t step;
    Action action;
} Input;

typedef struct Inputs {
    Input *list;
    uint32_t count, capacity;
    uint64_t end; /* number of steps of the game */
} Inputs;

/* Reads a file. Returns false on failure, with the line and its fault in message. */
bool inputs_load(Inputs *inputs, const char *path, char *message, size_t message_bytes);

/* Reads lines up to the line with "end", from a file that has them among other things. Returns the fault of the last line
 * that was read, whose number among them *out_number is; NULL if there is none. The caller frees the inputs in both cases. */
const char *inputs_read(Inputs *inputs, FILE *file, uint32_t *out_number);

/* Writes lines to a file, the last one with "end". */
void inputs_write(const Inputs *inputs, FILE *file);

/* Writes a file. Returns false on failure, with a message. */
bool inputs_save(const Inputs *inputs, const char *path, char *message, size_t message_bytes);

void inputs_add(Inputs *inputs, uint64_t step, const Action *action);

/* Drops the actions from a step on, after the game was rewound to it. */
void inputs_rewind(Inputs *inputs, uint64_t step);

/* Replaces the inputs before a step by those of an earlier part of the game. */
void inputs_continue(Inputs *inputs, const Inputs *earlier, uint64_t step);

/* Returns the number of inputs before a step, excluding those of the step itself. */
uint32_t inputs_before(const Inputs *inputs, uint64_t step);

/* Performs the actions before the next step of the game. *next is the index of the first input that was not
 * performed yet. Returns false if the game rejects an action, with the cause in message. */
bool inputs_replay(const Inputs *inputs, uint32_t *next, Game *game, char *message, size_t message_bytes);

void inputs_free(Inputs *inputs);

#endif
