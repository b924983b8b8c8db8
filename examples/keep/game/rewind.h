/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_REWIND_H
#define KEEP_REWIND_H

/* Rewinds the game. The world is saved every few steps; saves share the data that was not written
 * between them. All game state is in the world, so nothing else needs to be restored. */

#include "game.h"

enum { REWIND_STRIDE = 6, REWIND_SECONDS = 20 }; /* steps between saves, and the time that they cover */
enum { INSPECTED_STEPS = 240 }; /* steps that are kept for the inspector, which shows every one */

typedef struct Rewind {
    quern_history *history;
    uint32_t stride; /* steps between saves */
} Rewind;

/* Creates a history of save_count saves, one every `stride` steps. */
void rewind_create(Rewind *rewind, Game *game, uint32_t stride, uint32_t save_count);

/* Call it before the game is destroyed. */
void rewind_destroy(Rewind *rewind);

/* Saves the game every `stride` steps. Call it after each step. */
void rewind_save(Rewind *rewind, Game *game, quern_jobs *jobs);

/* Restores the last save before the current step. Returns false if there is none. */
bool rewind_restore(Rewind *rewind, Game *game, quern_jobs *jobs);

#endif
