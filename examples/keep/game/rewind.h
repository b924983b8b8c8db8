/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_REWIND_H
#define KEEP_REWIND_H

/* Turns back time: the world is saved every few steps, and what was not written since is shared. All that
 * matters for the game is in the world, so there is nothing else to take back. */

#include "game.h"

enum { REWIND_STRIDE = 6, REWIND_SECONDS = 20 }; /* steps between saves, and how far back they reach */

typedef struct Rewind {
    quern_history *history;
} Rewind;

void rewind_create(Rewind *rewind, Game *game);

/* Before the game is destroyed. */
void rewind_destroy(Rewind *rewind);

/* After each step: saves the game when it is time. */
void rewind_note(Rewind *rewind, Game *game, quern_jobs *jobs);

/* Takes the game back to the last save before this step. Returns false when there is none. */
bool rewind_back(Rewind *rewind, Game *game, quern_jobs *jobs);

#endif
